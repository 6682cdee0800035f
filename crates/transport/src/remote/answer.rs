//! Reads responses of a server: one JSON text, or an event stream whose messages are dispatched.

use super::endpoint::Endpoint;
use super::error_body::beginning;
use bytes::Bytes;
use http::StatusCode;
use http::header::CONTENT_TYPE;
use linchpin_core::connector::{Answer, Traffic, TransportError};
use linchpin_core::message::{Kind, Message};
use linchpin_proto::frame;
use linchpin_proto::http::sse::{SseEvent, SseParser};
use linchpin_web::{WebBody, WebError, WebErrorKind, WebResponse};
use std::time::Duration;

/// The kind of a body.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Json,
    Stream,
    /// Unknown from its type; decided by its first byte.
    Unknown,
}

impl Form {
    pub(super) fn of(answer: &WebResponse) -> Form {
        let Some(value) = answer.parts.headers.get(CONTENT_TYPE) else { return Form::Unknown };
        let value = value.as_bytes();
        let essence = value.split(|b| *b == b';').next().unwrap_or_default().trim_ascii();
        if essence.eq_ignore_ascii_case(b"application/json") {
            Form::Json
        } else if essence.eq_ignore_ascii_case(b"text/event-stream") {
            Form::Stream
        } else {
            Form::Unknown
        }
    }

    /// The kind of a body that starts like this.
    fn guess(first: &[u8]) -> Option<Form> {
        let first = first.trim_ascii_start();
        let stream = [b"data".as_slice(), b"event", b"id", b"retry", b":"].iter().any(|field| first.starts_with(field));
        match first.first() {
            Some(b'{' | b'[') => Some(Form::Json),
            _ if stream => Some(Form::Stream),
            _ => None,
        }
    }
}

/// An event stream and its position. It outlives the bodies that carry it.
pub(super) struct Stream {
    parser: SseParser,
    events: Vec<SseEvent>,
    bytes_max: usize,
    /// The last event id of this body.
    said: String,
    /// The id to resume after; empty if there is none.
    pub(super) last_id: String,
    /// The reconnection delay requested by the server.
    pub(super) retry_ms: Option<u64>,
    /// Whether a message was received since the last reset. Ids alone are not progress.
    pub(super) moved: bool,
}

impl Stream {
    pub(super) fn new(bytes_max: usize) -> Stream {
        let parser = SseParser::new(bytes_max);
        Stream {
            parser,
            events: Vec::new(),
            bytes_max,
            said: String::new(),
            last_id: String::new(),
            retry_ms: None,
            moved: false,
        }
    }

    /// Continues with another body; an incomplete event at the end of the last one is discarded.
    pub(super) fn again(&mut self) {
        self.parser = SseParser::new(self.bytes_max);
        self.events.clear();
        self.said.clear();
        self.moved = false;
    }

    /// Takes a piece. Complete events with data can be taken with [`Stream::next`], even when this fails.
    pub(super) fn feed(&mut self, piece: &[u8]) -> Result<(), TransportError> {
        let fed = self.parser.feed(piece, &mut self.events);
        // A body without ids keeps the known one.
        if self.parser.last_event_id() != self.said {
            self.parser.last_event_id().clone_into(&mut self.said);
            self.last_id.clone_from(&self.said);
        }
        self.moved |= self.events.iter().any(is_message);
        self.retry_ms = self.parser.retry_ms().or(self.retry_ms);
        // Taken from the end.
        self.events.reverse();
        fed.map_err(|e| TransportError::Unreadable(e.to_string().into()))
    }

    pub(super) fn next(&mut self) -> Option<SseEvent> {
        self.events.pop()
    }

    /// How long to wait before the stream is resumed for the `n`th time in vain, counted from 0: what the server asks
    /// for, but no shorter than [`RETRY_MS_MIN`] and no longer than `ms_max`.
    pub(super) fn wait(&self, n: u32, ms_max: u64) -> Duration {
        let wanted = self.retry_ms.unwrap_or(RETRY_MS).max(RETRY_MS_MIN);
        Duration::from_millis(wanted.saturating_mul(1 << n.min(16)).min(ms_max))
    }
}

/// Whether an event contains a message: not those of other types than `message`, nor those without data.
fn is_message(event: &SseEvent) -> bool {
    !event.data.is_empty() && event.name == "message"
}

impl Endpoint {
    /// Parses a message of the server and dispatches it: responses to `answers`, everything else to the inbox, with the request
    /// during which it came. A tap sees what cannot be read as garbage.
    pub(super) fn hear(
        &self,
        text: Bytes,
        during: Option<u64>,
        answers: &mut dyn FnMut(Message),
    ) -> Result<(), String> {
        let options = &self.options;
        let mut shown = options.tap.is_some().then(|| text.clone());
        let heard = frame::hear(text, &options.limits, &mut |message| {
            if let Some(shown) = shown.take() {
                let shown = String::from_utf8_lossy(&shown);
                options.show(|| Traffic::Heard(&shown));
            }
            match message.kind {
                Kind::Response { .. } => answers(message),
                Kind::Request { .. } | Kind::Notification { .. } => options.inbox.received(message, during),
            }
        });
        if let Some(shown) = shown {
            let shown = String::from_utf8_lossy(&shown);
            options.show(|| Traffic::Garbage(&shown));
        }
        heard
    }

    /// The same for an event of a stream. Events without a message are ignored.
    pub(super) fn hear_event(&self, event: SseEvent, during: Option<u64>, answers: &mut dyn FnMut(Message)) {
        if is_message(&event) {
            // One invalid event does not affect the others.
            let _ = self.hear(event.data.into(), during, answers);
        }
    }

    /// Reads a response that is one JSON text.
    pub(super) async fn read_json(
        &self,
        body: &mut WebBody,
        before: Bytes,
        id: u64,
    ) -> Result<Message, TransportError> {
        let limit = self.options.limits.messages.frame_bytes_max;
        let mut text = body.read_all(limit.saturating_sub(before.len())).await.map_err(|e| broken(&e))?;
        if !before.is_empty() {
            text = [before, text].concat().into();
        }
        if text.trim_ascii().is_empty() {
            return Err(TransportError::Unreadable(format!("{} returned an empty response", self.name).into()));
        }
        let mut found = None;
        self.hear(text, Some(id), &mut |message| pick(&mut found, message, id))
            .map_err(|why| TransportError::Unreadable(format!("the response of {} is {why}", self.name).into()))?;
        found.ok_or_else(|| {
            TransportError::Unreadable(format!("{} returned a response to another request", self.name).into())
        })
    }

    /// Reads a stream until the response, its end (`None`), or an error.
    pub(super) async fn read_stream(
        &self,
        body: &mut WebBody,
        before: Bytes,
        stream: &mut Stream,
        id: u64,
    ) -> Result<Option<Message>, TransportError> {
        let mut piece = before;
        loop {
            let fed = stream.feed(&piece);
            let mut found = None;
            while found.is_none()
                && let Some(event) = stream.next()
            {
                self.hear_event(event, Some(id), &mut |message| pick(&mut found, message, id));
            }
            if found.is_some() {
                return Ok(found);
            }
            fed?;
            match body.chunk().await.map_err(|e| broken(&e))? {
                Some(next) => piece = next,
                None => return Ok(None),
            }
        }
    }

    /// Detects the kind of a body of unknown type by its first chunk.
    pub(super) async fn look(&self, answer: &mut WebResponse) -> Result<(Form, Bytes), TransportError> {
        let form = Form::of(answer);
        if form != Form::Unknown {
            return Ok((form, Bytes::new()));
        }
        // White space may come first, but not for long.
        let mut first = Bytes::new();
        while first.trim_ascii_start().is_empty() && first.len() < LOOK_BYTES {
            match answer.body.chunk().await.map_err(|e| broken(&e))? {
                Some(more) if first.is_empty() => first = more,
                Some(more) => first = [first, more].concat().into(),
                None => break,
            }
        }
        if let Some(form) = Form::guess(&first) {
            return Ok((form, first));
        }
        let status = answer.parts.status.as_u16();
        let why = match answer.parts.headers.get(CONTENT_TYPE).map(|value| String::from_utf8_lossy(value.as_bytes())) {
            _ if first.is_empty() => format!("{} returned status {status} with an empty body", self.name),
            Some(form) => format!("{} returned {form}, which is neither JSON nor an event stream", self.name),
            None => format!("{} returned neither JSON nor an event stream", self.name),
        };
        Err(TransportError::Unreadable(why.into()))
    }

    /// Handles a response with an error status: a JSON-RPC error in it is the response.
    pub(super) async fn refused(&self, mut answer: WebResponse, id: Option<u64>) -> Result<Answer, TransportError> {
        let status = answer.parts.status;
        let reading = beginning(&mut answer.body, ERROR_BYTES);
        let text = tokio::time::timeout(ERROR_READ, reading).await.unwrap_or_default().freeze();
        self.finish(answer.body);
        if let Some(id) = id
            && Form::guess(&text) == Some(Form::Json)
        {
            let mut found = None;
            let _ = self.hear(text.clone(), Some(id), &mut |message| pick(&mut found, message, id));
            if let Some(message) = found {
                return Ok(Answer::new(message, Some(status.as_u16())));
            }
        }
        Err(status_error(status, &text))
    }
}

/// The error for a status without a message.
fn status_error(status: StatusCode, text: &[u8]) -> TransportError {
    let text = String::from_utf8_lossy(&text[..text.len().min(STATUS_TEXT_BYTES)]);
    let text = text.trim_end_matches('\u{fffd}').trim();
    TransportError::Status { status: status.as_u16(), body: text.into() }
}

/// Stores the response to `id`. An error without a numeric id applies to the pending request.
fn pick(found: &mut Option<Message>, message: Message, id: u64) {
    let Kind::Response { id: theirs, outcome } = &message.kind else { return };
    let ours = match theirs.as_number() {
        Some(number) => number == id,
        None => outcome.is_err(),
    };
    if ours && found.is_none() {
        *found = Some(message);
    }
}

/// The error of a body that ends early.
pub(super) fn broken(error: &WebError) -> TransportError {
    match error.kind() {
        WebErrorKind::TooLong => TransportError::Unreadable(error.text()),
        _ => TransportError::CutOff(error.text()),
    }
}

const RETRY_MS: u64 = 1_000;
const RETRY_MS_MIN: u64 = 100;
const LOOK_BYTES: usize = 4 << 10;
const ERROR_BYTES: usize = 256 << 10;
const ERROR_READ: Duration = Duration::from_secs(5);
const STATUS_TEXT_BYTES: usize = 2 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_says_retry_at_once_is_left_alone_for_a_moment_all_the_same() {
        let waits = |said: &str, ms_max| {
            let mut stream = Stream::new(1_000);
            stream.feed(said.as_bytes()).unwrap();
            [0, 1, 2, 31].map(|n| stream.wait(n, ms_max).as_millis())
        };
        for (said, ms_max, want) in [
            ("", 30_000, [1_000, 2_000, 4_000, 30_000]),
            ("retry: 0\n\n", 30_000, [100, 200, 400, 30_000]),
            ("retry: 99\n\n", 30_000, [100, 200, 400, 30_000]),
            ("retry: 300\n\n", 30_000, [300, 600, 1_200, 30_000]),
            ("retry: 18446744073709551615\n\n", 30_000, [30_000; 4]),
            // The host's own bound is its own affair.
            ("retry: 0\n\n", 20, [20; 4]),
        ] {
            assert_eq!(waits(said, ms_max), want, "{said:?} {ms_max}");
        }
    }
}
