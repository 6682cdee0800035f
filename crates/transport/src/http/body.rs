//! Response bodies: either one chunk, or a stream of events with keep-alive comments in quiet times.

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use linchpin_proto::Reply;
use linchpin_proto::http::sse;
use std::convert::Infallible;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::{Instant, Sleep, sleep};

/// The body of every response: concrete, so that a service in front pays for no box.
///
/// Dropping it before its end is what a closed connection means: a request that stands alone is cancelled, one inside a
/// session goes on and can be resumed.
pub struct HttpBody(Kind);

enum Kind {
    Full(Option<Bytes>),
    /// Three chunks, the middle one shared with other responses.
    Shared(Box<[Bytes; 3]>, usize),
    Stream(Box<Stream<dyn Source>>),
}

impl HttpBody {
    /// No bytes.
    pub(crate) fn empty() -> HttpBody {
        HttpBody(Kind::Full(None))
    }

    /// These bytes.
    pub(crate) fn full(bytes: impl Into<Bytes>) -> HttpBody {
        HttpBody(Kind::Full(Some(bytes.into()).filter(|b: &Bytes| !b.is_empty())))
    }

    /// A whole answer. What it shares with others is not copied.
    pub(crate) fn reply(reply: Reply) -> HttpBody {
        match reply.into_parts() {
            (frame, None) => HttpBody::full(frame),
            (head, Some((shared, tail))) => HttpBody(Kind::Shared(Box::new([head, shared, tail]), 0)),
        }
    }

    /// The bytes of a body that is not a stream.
    pub(crate) fn collected(self) -> Bytes {
        match self.0 {
            Kind::Full(bytes) => bytes.unwrap_or_default(),
            Kind::Shared(parts, _) => parts.concat().into(),
            Kind::Stream(_) => Bytes::new(),
        }
    }

    /// The events of `source`, with a comment whenever it was quiet for `keep_alive_ms` (never when that is 0).
    pub(crate) fn stream(source: impl Source + 'static, keep_alive_ms: u64) -> HttpBody {
        HttpBody(Kind::Stream(Box::new(Stream { keep_alive: KeepAlive::new(keep_alive_ms), hold: None, source })))
    }

    /// Keeps `hold` until the stream ends. A body of one chunk ends at once and needs no such thing.
    pub(crate) fn hold(&mut self, hold: impl FnOnce() -> Box<dyn Send>) {
        if let Kind::Stream(stream) = &mut self.0 {
            stream.hold = Some(hold());
        }
    }
}

/// Where the events of a response come from.
pub(crate) trait Source: Send {
    /// The next bytes of the stream, already encoded; `None` at its end, after which it is not polled again.
    fn poll_bytes(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>>;
}

struct Stream<S: ?Sized> {
    keep_alive: KeepAlive,
    hold: Option<Box<dyn Send>>,
    source: S,
}

impl http_body::Body for HttpBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let next = match &mut self.0 {
            Kind::Full(bytes) => return Poll::Ready(bytes.take().map(|b| Ok(Frame::data(b)))),
            Kind::Shared(parts, at) => {
                let part = parts.get_mut(*at).map(std::mem::take);
                *at += 1;
                return Poll::Ready(part.map(|b| Ok(Frame::data(b))));
            }
            Kind::Stream(stream) => match stream.source.poll_bytes(cx) {
                Poll::Ready(Some(bytes)) => {
                    stream.keep_alive.sent();
                    Poll::Ready(Some(bytes))
                }
                Poll::Ready(None) => Poll::Ready(None),
                Poll::Pending => stream.keep_alive.poll_comment(cx).map(Some),
            },
        };
        if matches!(next, Poll::Ready(None)) {
            self.0 = Kind::Full(None);
        }
        next.map(|next| next.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.0, Kind::Full(None) | Kind::Shared(_, 3..))
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Kind::Full(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, |b| b.len() as u64)),
            Kind::Shared(parts, _) => SizeHint::with_exact(parts.iter().map(|b| b.len() as u64).sum()),
            Kind::Stream(_) => SizeHint::default(),
        }
    }
}

impl fmt::Debug for HttpBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Kind::Full(_) => "HttpBody::Full",
            Kind::Shared(..) => "HttpBody::Shared",
            Kind::Stream(_) => "HttpBody::Stream",
        })
    }
}

/// A timer that exists only once a stream was quiet for the first time.
struct KeepAlive {
    every: Duration,
    last: Option<Instant>,
    sleep: Option<Pin<Box<Sleep>>>,
}

impl KeepAlive {
    fn new(ms: u64) -> KeepAlive {
        KeepAlive { every: Duration::from_millis(ms), last: None, sleep: None }
    }

    fn sent(&mut self) {
        if self.sleep.is_some() {
            self.last = Some(Instant::now());
        }
    }

    fn poll_comment(&mut self, cx: &mut Context<'_>) -> Poll<Bytes> {
        if self.every.is_zero() {
            return Poll::Pending;
        }
        let sleep = self.sleep.get_or_insert_with(|| Box::pin(sleep(self.every)));
        while sleep.as_mut().poll(cx).is_ready() {
            let now = Instant::now();
            let due = self.last.take().map_or(now, |last| last + self.every);
            if due > now {
                // Something was sent since the timer was set: the quiet time counts from there.
                sleep.as_mut().reset(due);
                continue;
            }
            sleep.as_mut().reset(now + self.every);
            let mut comment = Vec::with_capacity(16);
            sse::comment(&mut comment, "keep-alive");
            return Poll::Ready(comment.into());
        }
        Poll::Pending
    }
}

/// One event without an id.
pub(crate) fn event(frame: &[u8]) -> Bytes {
    let mut out = Vec::with_capacity(frame.len() + 8);
    sse::event(&mut out, None, frame);
    out.into()
}
