//! Request intake: checks of the headers, and the body under limits of size and time.

use super::pace::Pace;
use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_ENCODING, CONTENT_TYPE};
use http::{HeaderMap, StatusCode};
use http_body::Body;
use linchpin_core::budget::{Budget, EXHAUSTED, Reservation};
use linchpin_core::{Limits, Service};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::{Sleep, sleep};

/// Why a request is rejected before its message is read.
pub(crate) type Refusal = (StatusCode, &'static str);

const UNSUPPORTED: StatusCode = StatusCode::UNSUPPORTED_MEDIA_TYPE;

/// Checks the content headers of a POST.
pub(crate) fn check_body_headers(headers: &HeaderMap) -> Result<(), Refusal> {
    let is_json = |v: &[u8]| v == b"application/json" || is_type(v, b"application/json");
    if !headers.get(CONTENT_TYPE).is_some_and(|v| is_json(v.as_bytes())) {
        return Err((UNSUPPORTED, "send the message as `Content-Type: application/json`"));
    }
    match headers.get(CONTENT_ENCODING) {
        None => Ok(()),
        Some(v) if v.as_bytes().eq_ignore_ascii_case(b"identity") => Ok(()),
        Some(_) => Err((UNSUPPORTED, "compressed requests are not accepted; send the body without a Content-Encoding")),
    }
}

/// Checks the content headers of a POST, and that its sender accepts both response types, as [`check_post_accept`].
pub(crate) fn check_post_headers(headers: &HeaderMap) -> Result<bool, Refusal> {
    // Fast path for the values that all client libraries send, in one pass: a map hashes a name for each look-up.
    let (mut is_json, mut is_usual) = (false, false);
    for (name, value) in headers {
        match name.as_str() {
            "content-type" if !is_json && value == "application/json" => is_json = true,
            "accept" if !is_usual && value == "application/json, text/event-stream" => is_usual = true,
            "content-type" | "accept" | "content-encoding" => {
                check_body_headers(headers)?;
                return check_post_accept(headers);
            }
            _ => {}
        }
    }
    if is_json && is_usual {
        return Ok(false);
    }
    check_body_headers(headers)?;
    check_post_accept(headers)
}

/// Checks that the sender of a POST accepts both response types. A missing header means any, as in HTTP. Returns whether
/// it names `text/event-stream` before `application/json`, and so would rather have a stream.
fn check_post_accept(headers: &HeaderMap) -> Result<bool, Refusal> {
    let accept = headers.get(ACCEPT).map(|v| v.as_bytes());
    if accepts(headers, b"application/json") && accepts(headers, b"text/event-stream") {
        return Ok(accept.is_some_and(prefers_stream));
    }
    Err((StatusCode::NOT_ACCEPTABLE, "send `Accept: application/json, text/event-stream`: the response may be either"))
}

fn prefers_stream(value: &[u8]) -> bool {
    let place = |wanted: &[u8]| value.split(|b| *b == b',').position(|r| media_type(r).eq_ignore_ascii_case(wanted));
    matches!((place(b"text/event-stream"), place(b"application/json")), (Some(stream), Some(document)) if stream < document)
}

/// Checks that the sender of a GET accepts an event stream.
pub(crate) fn check_get_accept(headers: &HeaderMap) -> Result<(), Refusal> {
    if accepts(headers, b"text/event-stream") {
        return Ok(());
    }
    Err((StatusCode::NOT_ACCEPTABLE, "send `Accept: text/event-stream`: the response is an event stream"))
}

/// Whether a browser asks for a page: it names HTML, and no event stream.
pub(crate) fn is_of_browser(headers: &HeaderMap) -> bool {
    let names = |wanted: &[u8]| {
        headers
            .get_all(ACCEPT)
            .iter()
            .flat_map(|v| v.as_bytes().split(|b| *b == b','))
            .any(|range| is_type(range, wanted))
    };
    names(b"text/html") && !names(b"text/event-stream")
}

fn accepts(headers: &HeaderMap, wanted: &[u8]) -> bool {
    let mut values = headers.get_all(ACCEPT).iter().peekable();
    if values.peek().is_none() {
        return true;
    }
    let group = wanted.iter().position(|b| *b == b'/').map_or(wanted, |at| &wanted[..at]);
    values.flat_map(|v| v.as_bytes().split(|b| *b == b',')).any(|range| {
        is_type(range, wanted)
            || is_type(range, b"*/*")
            || media_type(range).strip_suffix(b"/*").is_some_and(|g| g.eq_ignore_ascii_case(group))
    })
}

fn is_type(value: &[u8], wanted: &[u8]) -> bool {
    media_type(value).eq_ignore_ascii_case(wanted)
}

/// A media type or range without its parameters.
fn media_type(value: &[u8]) -> &[u8] {
    let end = value.iter().position(|b| *b == b';').unwrap_or(value.len());
    value[..end].trim_ascii()
}

/// An incoming body. A single chunk is passed on unchanged; several are joined in one buffer.
#[derive(Default)]
pub(crate) struct Intake {
    first: Option<Bytes>,
    joined: Vec<u8>,
    /// The budget of a body that is not small; held as long as the body.
    reserved: Option<Reservation>,
    /// Of a request over HTTP/2 that is not complete at once: the bytes of its head, which count with its body. A
    /// connection has many of them.
    http_2_head: Option<usize>,
    deadline: Option<Pin<Box<Sleep>>>,
}

impl Intake {
    /// Reads the whole body, up to `max` bytes. Fails as soon as it is known to be too long, when it takes too long to arrive, and when
    /// the budget is exceeded.
    pub(crate) fn poll<B>(
        &mut self,
        mut body: Pin<&mut B>,
        head: &HeaderMap,
        service: &dyn Service,
        max: usize,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Bytes, Refusal>>
    where
        B: Body<Data = Bytes>,
    {
        let limits: &Limits = service.limits();
        if body.size_hint().lower() > max as u64 {
            return Poll::Ready(Err(TOO_LARGE));
        }
        loop {
            match body.as_mut().poll_frame(cx) {
                Poll::Ready(Some(Ok(frame))) => {
                    let Ok(data) = frame.into_data() else { continue };
                    let so_far = self.first.as_ref().map_or(0, Bytes::len) + self.joined.len();
                    if data.len() > max - so_far.min(max) {
                        return Poll::Ready(Err(TOO_LARGE));
                    }
                    if !self.reserve(so_far + data.len(), service.budget()) {
                        return Poll::Ready(Err(NO_ROOM));
                    }
                    self.push(data, body.size_hint().exact(), max);
                    if body.is_end_stream() {
                        return Poll::Ready(Ok(self.take()));
                    }
                }
                Poll::Ready(Some(Err(_))) => {
                    return Poll::Ready(Err((StatusCode::BAD_REQUEST, "the body could not be read")));
                }
                Poll::Ready(None) => return Poll::Ready(Ok(self.take())),
                Poll::Pending => {
                    if self.http_2_head.is_none() && !self.count_head(head, service.budget()) {
                        return Poll::Ready(Err(NO_ROOM));
                    }
                    // Usually the body arrived with the head, and no timer is ever set.
                    let deadline = self.deadline.get_or_insert_with(|| {
                        Box::pin(sleep(Duration::from_millis(limits.connections.body_read_ms_max)))
                    });
                    return deadline.as_mut().poll(cx).map(|()| Err(TOO_SLOW));
                }
            }
        }
    }

    /// Counts the head and what there is of the body, if that is to be done.
    fn count_head(&mut self, head: &HeaderMap, budget: &Arc<Budget>) -> bool {
        let bytes = head.iter().map(|(name, value)| name.as_str().len() + value.len()).sum::<usize>() + STREAM_BYTES;
        self.http_2_head = Some(if Pace::current().is_some() { bytes } else { 0 });
        self.reserve(self.first.as_ref().map_or(0, Bytes::len) + self.joined.len(), budget)
    }

    /// Reserves room for a body of `bytes`.
    fn reserve(&mut self, bytes: usize, budget: &Arc<Budget>) -> bool {
        let head = self.http_2_head.unwrap_or(0);
        let bytes = bytes + head;
        match &mut self.reserved {
            _ if bytes <= SMALL_BYTES_MAX && head == 0 => true,
            Some(reserved) => reserved.grow(bytes - reserved.bytes()),
            none => {
                *none = budget.reserve(bytes);
                none.is_some()
            }
        }
    }

    fn push(&mut self, data: Bytes, rest: Option<u64>, max: usize) {
        if self.first.is_none() && self.joined.is_empty() {
            self.first = Some(data);
            return;
        }
        if let Some(first) = self.first.take() {
            // The announced length is within the limit, or the body would have been refused before.
            let more = rest.map_or(data.len(), |rest| data.len() + rest as usize);
            self.joined.reserve_exact((first.len() + more).min(max));
            self.joined.extend_from_slice(&first);
        }
        self.joined.extend_from_slice(&data);
    }

    fn take(&mut self) -> Bytes {
        let body = match self.first.take() {
            Some(only) => only,
            None => std::mem::take(&mut self.joined).into(),
        };
        match self.reserved.take() {
            Some(reserved) => reserved.own(body),
            None => body,
        }
    }
}

/// Bodies and responses up to this size are not counted on HTTP/1.1, where a connection has one of them at a time.
pub(crate) const SMALL_BYTES_MAX: usize = 16 << 10;
/// Memory of an HTTP/2 stream besides its head and body.
pub(crate) const STREAM_BYTES: usize = 1 << 10;

const TOO_LARGE: Refusal =
    (StatusCode::PAYLOAD_TOO_LARGE, "the message exceeds the size limit of this server; send several smaller messages");
const NO_ROOM: Refusal = (StatusCode::SERVICE_UNAVAILABLE, EXHAUSTED);
const TOO_SLOW: Refusal = (StatusCode::REQUEST_TIMEOUT, "the body took too long to arrive");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_form_named_first_is_preferred() {
        for (value, stream) in [
            ("application/json, text/event-stream", false),
            ("text/event-stream, application/json", true),
            ("text/event-stream;q=0.9 ,Application/JSON", true),
            ("text/event-stream", false),
            ("*/*", false),
        ] {
            let headers = HeaderMap::from_iter([(ACCEPT, value.parse().unwrap())]);
            assert_eq!(check_post_accept(&headers).is_ok_and(|streams| streams), stream, "{value}");
        }
    }

    #[test]
    fn accept_covers_ranges_lists_and_absence() {
        for (values, fine) in [
            (&[][..], true),
            (&["application/json, text/event-stream"], true),
            (&["application/json", "text/event-stream"], true),
            (&["text/event-stream;q=0.5 , Application/JSON; charset=utf-8"], true),
            (&["*/*"], true),
            (&["application/*, text/*"], true),
            (&["application/json"], false),
            (&["text/event-stream"], false),
            (&["text/html, image/*"], false),
            (&["application/jsonx, text/event-stream"], false),
        ] {
            let mut headers = HeaderMap::new();
            for v in values {
                headers.append(ACCEPT, v.parse().unwrap());
            }
            assert_eq!(check_post_accept(&headers).is_ok(), fine, "{values:?}");
        }
    }
}
