//! Response bodies: either one chunk, or a stream of events with keep-alive comments.

use super::intake::{SMALL_BYTES_MAX, STREAM_BYTES};
use super::pace::{PIECE_BYTES_MAX, Pace};
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt as _;
use http_body_util::combinators::UnsyncBoxBody;
use linchpin_core::{Budget, Observer, Principal, Reply, Service};
use linchpin_proto::http::sse;
use std::any::Any;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, SystemTime};
use tokio::time::{Instant, Sleep, sleep};

/// What a tower layer may fail with.
pub(super) type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The body of every response. It is a concrete type, so that services around it do not need to box it.
///
/// Dropping it before its end has the effect of a closed connection: a stateless request is cancelled, one in a
/// session continues and can be resumed.
///
/// ```
/// use bytes::Bytes;
/// use http_body_util::{BodyExt, Full};
/// use linchpin_transport::http::{HttpBody, HttpService};
///
/// async fn call(mcp: &HttpService, request: http::Request<Full<Bytes>>) -> Option<Bytes> {
///     let Ok(response) = mcp.handle(request).await;
///     let body: HttpBody = response.into_body();
///     Some(body.collect().await.ok()?.to_bytes())
/// }
/// ```
pub struct HttpBody {
    kind: Kind,
    paced: Option<Box<Paced>>,
}

/// The state of a body that is sent in pieces.
struct Paced {
    pace: Arc<Pace>,
    rest: Bytes,
    _hold: Box<dyn Send>,
}

enum Kind {
    Full(Option<Bytes>),
    /// Three chunks, the middle one shared with other responses.
    Shared(Box<[Bytes; 3]>, usize),
    Stream(Box<Stream<dyn Source>>),
    /// What a layer made of it, and what is kept until its end.
    Other(UnsyncBoxBody<Bytes, BoxError>, Option<Box<dyn Send>>),
}

impl HttpBody {
    fn new(kind: Kind) -> HttpBody {
        HttpBody { kind, paced: None }
    }

    /// The body of a response that went through a tower layer. Trailers are left out.
    pub(super) fn from_layer<B>(body: B) -> HttpBody
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        if_same(body).unwrap_or_else(|body| {
            let body = body.map_err(Into::into).boxed_unsync();
            HttpBody::new(if body.is_end_stream() { Kind::Full(None) } else { Kind::Other(body, None) })
        })
    }

    /// No bytes.
    pub(crate) fn empty() -> HttpBody {
        HttpBody::new(Kind::Full(None))
    }

    /// These bytes.
    pub(crate) fn full(bytes: impl Into<Bytes>) -> HttpBody {
        HttpBody::new(Kind::Full(Some(bytes.into()).filter(|b: &Bytes| !b.is_empty())))
    }

    /// A complete response. Shared chunks are not copied.
    pub(crate) fn reply(reply: Reply) -> HttpBody {
        match reply.into_parts() {
            (frame, None) => HttpBody::full(frame),
            (head, Some((shared, tail))) => HttpBody::new(Kind::Shared(Box::new([head, shared, tail]), 0)),
        }
    }

    /// Charges a response to `budget` until it is sent, on HTTP/1.1 only a large one. `false` if the budget is exceeded.
    ///
    /// Data shared with other responses is not counted, and a stream counts its messages itself.
    pub(crate) fn reserve(&mut self, budget: &Arc<Budget>) -> bool {
        let Kind::Full(Some(bytes)) = &mut self.kind else { return true };
        let beside = match Pace::current() {
            Some(_) => STREAM_BYTES,
            None if bytes.len() > SMALL_BYTES_MAX => 0,
            None => return true,
        };
        let Some(reservation) = budget.reserve(bytes.len() + beside) else { return false };
        *bytes = reservation.own(std::mem::take(bytes));
        true
    }

    /// The bytes of a body that is not a stream.
    pub(crate) fn collected(self) -> Bytes {
        match self.kind {
            Kind::Full(bytes) => bytes.unwrap_or_default(),
            Kind::Shared(parts, _) => parts.concat().into(),
            Kind::Stream(_) | Kind::Other(..) => Bytes::new(),
        }
    }

    /// The events of `source` for a client of `service`, with a comment whenever it was quiet for as long as the limit
    /// says (never when that is 0).
    pub(crate) fn stream(source: impl Source + 'static, service: &dyn Service) -> HttpBody {
        let keep_alive = KeepAlive::new(service.limits().connections.keep_alive_ms);
        let observed = service.observer().map(|observer| {
            observer.stream_opened();
            Observed(observer.clone())
        });
        HttpBody::new(Kind::Stream(Box::new(Stream {
            keep_alive,
            expires: None,
            revocable: None,
            hold: None,
            _observed: observed,
            source,
        })))
    }

    /// Ends a stream when the authentication of its reader expires or is revoked.
    pub(crate) fn until_expiry(self, principal: Option<&Principal>) -> HttpBody {
        self.until_expired_for(Duration::ZERO, principal)
    }

    /// The same so long after it, for a stream that a service may end itself, with a response.
    pub(crate) fn until_expired_for(mut self, grace: Duration, principal: Option<&Principal>) -> HttpBody {
        if let Kind::Stream(stream) = &mut self.kind
            && let Some(lasts) = principal.and_then(|principal| principal.lasts(SystemTime::now()))
        {
            stream.expires = Some(Box::pin(sleep(lasts.saturating_add(grace))));
        }
        if let Kind::Stream(stream) = &mut self.kind
            && let Some(principal) = principal.filter(|principal| principal.is_revocable())
        {
            stream.revocable = Some(Revocable { principal: principal.clone(), sleep: Box::pin(sleep(REVOKED_AGAIN)) });
        }
        self
    }

    /// Keeps `hold` until the stream ends. A body of one chunk ends at once and does not need it.
    pub(crate) fn hold(&mut self, hold: impl FnOnce() -> Box<dyn Send>) {
        match &mut self.kind {
            Kind::Stream(stream) => stream.hold = Some(hold()),
            Kind::Other(_, held) => *held = Some(hold()),
            Kind::Full(_) | Kind::Shared(..) => {}
        }
    }

    /// Sends the body in pieces, and keeps `hold` until the last one is sent.
    pub(crate) fn pace(&mut self, pace: Arc<Pace>, hold: Box<dyn Send>) {
        self.paced = Some(Box::new(Paced { pace, rest: Bytes::new(), _hold: hold }));
    }

    fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, BoxError>>> {
        let next = match &mut self.kind {
            Kind::Full(bytes) => return Poll::Ready(bytes.take().map(Ok)),
            Kind::Shared(parts, at) => {
                let part = parts.get_mut(*at).map(std::mem::take);
                *at += 1;
                return Poll::Ready(part.map(Ok));
            }
            Kind::Stream(stream) => stream.poll_bytes(cx).map(|bytes| bytes.map(Ok)),
            Kind::Other(body, _) => match ready!(Pin::new(body).poll_frame(cx)) {
                Some(Ok(frame)) => Poll::Ready(Some(Ok(frame.into_data().unwrap_or_default()))),
                other => Poll::Ready(other.map(|frame| frame.map(|_| Bytes::new()))),
            },
        };
        if matches!(next, Poll::Ready(None)) {
            self.kind = Kind::Full(None);
        }
        next
    }

    /// The next piece. The last one is a single byte: hyper hands it over only when the reader has room for it, so as
    /// long as anything waits the stream is not finished, and can still be reset.
    fn poll_piece(&mut self, paced: &mut Paced, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, BoxError>>> {
        if paced.rest.is_empty() {
            match self.poll_chunk(cx) {
                Poll::Ready(Some(Ok(chunk))) => paced.rest = chunk,
                Poll::Ready(end) => return Poll::Ready(end),
                Poll::Pending => {
                    paced.pace.caught_up();
                    return Poll::Pending;
                }
            }
        }
        let rest = paced.rest.len();
        let before_last = rest.saturating_sub(usize::from(self.is_given()));
        let piece = paced.rest.split_to(before_last.clamp(1, PIECE_BYTES_MAX).min(rest));
        paced.pace.gave();
        Poll::Ready(Some(Ok(piece)))
    }

    /// Whether [`HttpBody::poll_chunk`] has ended.
    fn is_given(&self) -> bool {
        match &self.kind {
            Kind::Full(bytes) => bytes.is_none(),
            Kind::Shared(_, at) => *at >= 3,
            Kind::Stream(_) => false,
            Kind::Other(body, _) => body.is_end_stream(),
        }
    }
}

/// The source of a response's events.
pub(crate) trait Source: Send {
    /// The next bytes of the stream, already encoded; `None` at its end, after which it is not polled again.
    fn poll_bytes(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>>;
}

struct Stream<S: ?Sized> {
    keep_alive: KeepAlive,
    expires: Option<Pin<Box<Sleep>>>,
    revocable: Option<Revocable>,
    hold: Option<Box<dyn Send>>,
    _observed: Option<Observed>,
    source: S,
}

impl Stream<dyn Source> {
    fn poll_bytes(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if self.expires.as_mut().is_some_and(|expires| expires.as_mut().poll(cx).is_ready()) {
            return Poll::Ready(None);
        }
        if self.revocable.as_mut().is_some_and(|revocable| revocable.poll_revoked(cx)) {
            return Poll::Ready(None);
        }
        match self.source.poll_bytes(cx) {
            Poll::Ready(Some(bytes)) => {
                self.keep_alive.sent();
                Poll::Ready(Some(bytes))
            }
            Poll::Ready(None) => Poll::Ready(None),
            Poll::Pending => self.keep_alive.poll_comment(cx).map(Some),
        }
    }
}

/// How often is asked whether the authentication of a stream's reader is revoked.
const REVOKED_AGAIN: Duration = Duration::from_secs(5);

/// The reader of a stream, whose authentication may be revoked.
struct Revocable {
    principal: Principal,
    sleep: Pin<Box<Sleep>>,
}

impl Revocable {
    fn poll_revoked(&mut self, cx: &mut Context<'_>) -> bool {
        while self.sleep.as_mut().poll(cx).is_ready() {
            if self.principal.is_revoked() {
                return true;
            }
            self.sleep.as_mut().reset(Instant::now() + REVOKED_AGAIN);
        }
        false
    }
}

/// Tells the observer when the stream has ended.
struct Observed(Arc<dyn Observer>);

impl Drop for Observed {
    fn drop(&mut self) {
        self.0.stream_closed();
    }
}

impl http_body::Body for HttpBody {
    type Data = Bytes;
    /// Only what a tower layer's body fails with: those of the service itself never fail.
    type Error = Box<dyn std::error::Error + Send + Sync>;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let chunk = match self.paced.take() {
            None => self.poll_chunk(cx),
            Some(mut paced) => {
                let piece = self.poll_piece(&mut paced, cx);
                self.paced = Some(paced);
                piece
            }
        };
        chunk.map_ok(Frame::data)
    }

    fn is_end_stream(&self) -> bool {
        self.is_given() && self.paced.as_ref().is_none_or(|paced| paced.rest.is_empty())
    }

    fn size_hint(&self) -> SizeHint {
        let rest = self.paced.as_ref().map_or(0, |paced| paced.rest.len() as u64);
        match &self.kind {
            Kind::Full(bytes) => SizeHint::with_exact(rest + bytes.as_ref().map_or(0, |b| b.len() as u64)),
            Kind::Shared(parts, _) => SizeHint::with_exact(rest + parts.iter().map(|b| b.len() as u64).sum::<u64>()),
            Kind::Stream(_) => SizeHint::default(),
            Kind::Other(body, _) => body.size_hint(),
        }
    }
}

impl From<Bytes> for HttpBody {
    fn from(bytes: Bytes) -> HttpBody {
        HttpBody::full(bytes)
    }
}

impl fmt::Debug for HttpBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.kind {
            Kind::Full(_) => "HttpBody::Full",
            Kind::Shared(..) => "HttpBody::Shared",
            Kind::Stream(_) => "HttpBody::Stream",
            Kind::Other(..) => "HttpBody::Other",
        })
    }
}

/// A timer that is created when a stream is idle for the first time.
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
pub(crate) fn event(frame: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(frame.len() + 8);
    sse::event(&mut out, None, frame);
    out
}

/// The value itself if it is an `A`.
pub(super) fn if_same<A: 'static, B: 'static>(value: B) -> Result<A, B> {
    let mut value = Some(value);
    if let Some(same) = (&mut value as &mut dyn Any).downcast_mut::<Option<A>>().and_then(Option::take) {
        return Ok(same);
    }
    Err(value.expect("it is not an A"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_answer_is_counted_until_it_is_gone_and_refused_without_room() {
        let budget = Budget::new(100_000);
        let mut small = HttpBody::full(vec![b'x'; SMALL_BYTES_MAX]);
        assert!(small.reserve(&budget) && budget.used() == 0);
        let mut large = HttpBody::full(vec![b'x'; 60_000]);
        assert!(large.reserve(&budget) && budget.used() == 60_000);
        assert!(!HttpBody::full(vec![b'x'; 60_000]).reserve(&budget));
        drop(large.collected());
        assert_eq!(budget.used(), 0);
    }
}
