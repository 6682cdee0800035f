//! Events of a server, for metrics, traces and audit logs.

use crate::caller::Session;
use crate::features::Features;
use crate::id::Id;
use crate::message::{Kind, Message, Request};
use crate::method::Method;
use crate::principal::Principal;
use crate::reply::ReplyKind;
use http::HeaderMap;
use linchpin_types::version::Revision;
use std::sync::Arc;
use std::time::Duration;
use tracing::Span;
use tracing::field::Empty;

/// Watches a server: its calls, sessions and streams. Every method does nothing by default.
///
/// Methods are called on the task that serves the peer, so they must be short and must not block; hand work that needs
/// I/O to a channel. A panic ends the connection.
///
/// ```
/// use linchpin_core::observer::{CallEnd, CallInfo, Observer};
/// use std::sync::atomic::{AtomicU64, Ordering};
///
/// #[derive(Default)]
/// struct Errors(AtomicU64);
///
/// impl Observer for Errors {
///     fn call_ended(&self, _: &CallInfo, end: &CallEnd) {
///         if end.outcome.is_error() {
///             self.0.fetch_add(1, Ordering::Relaxed);
///         }
///     }
/// }
/// ```
pub trait Observer: Send + Sync + 'static {
    /// Called before a request is started. Its span is [`CallInfo::span`], which has not been entered yet.
    fn call_started(&self, call: &CallInfo) {
        let _ = call;
    }

    /// Called when a request has ended, with a response or without one: once for each [`Observer::call_started`].
    fn call_ended(&self, call: &CallInfo, end: &CallEnd) {
        let _ = (call, end);
    }

    /// Called when a client has opened a session with `initialize`.
    fn session_opened(&self, session: &crate::Session) {
        let _ = session;
    }

    /// Called when a session has ended: once for each [`Observer::session_opened`].
    fn session_closed(&self, session: &crate::Session) {
        let _ = session;
    }

    /// Called when an event stream was opened: a GET, or a response with more than one message.
    fn stream_opened(&self) {}

    /// Called when an event stream has ended: once for each [`Observer::stream_opened`].
    fn stream_closed(&self) {}

    /// Called when a notification was dropped because its reader is too slow.
    fn notification_dropped(&self) {}
}

/// Calls all of them, in order.
impl Observer for Vec<Arc<dyn Observer>> {
    fn call_started(&self, call: &CallInfo) {
        self.iter().for_each(|o| o.call_started(call));
    }

    fn call_ended(&self, call: &CallInfo, end: &CallEnd) {
        self.iter().for_each(|o| o.call_ended(call, end));
    }

    fn session_opened(&self, session: &crate::Session) {
        self.iter().for_each(|o| o.session_opened(session));
    }

    fn session_closed(&self, session: &crate::Session) {
        self.iter().for_each(|o| o.session_closed(session));
    }

    fn stream_opened(&self) {
        self.iter().for_each(|o| o.stream_opened());
    }

    fn stream_closed(&self) {
        self.iter().for_each(|o| o.stream_closed());
    }

    fn notification_dropped(&self) {
        self.iter().for_each(|o| o.notification_dropped());
    }
}

/// A request that is observed, without its parameters.
///
/// ```
/// use linchpin_core::observer::{CallEnd, CallInfo};
///
/// fn line(call: &CallInfo, end: &CallEnd) -> String {
///     format!("{} {} {} {:?}", call.method, call.target.as_deref().unwrap_or("-"), end.outcome.as_str(), end.duration)
/// }
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CallInfo {
    /// The JSON-RPC id.
    pub id: Id,
    /// The method, for example `tools/call`. Chosen by the client: it may not exist.
    pub method: Box<str>,
    /// The name of the tool or prompt, or the URI of the resource, at most 256 bytes. Chosen by the client: it may not
    /// exist.
    pub target: Option<Box<str>>,
    /// The session's [public id](crate::Session::public_id). `None` for stateless requests.
    pub session: Option<u64>,
    /// The protocol revision.
    pub revision: Revision,
    /// The authenticated caller.
    pub principal: Option<Principal>,
    /// Bytes of the request's message.
    pub request_bytes: usize,
    /// The trace context sent by the client.
    pub trace: Option<TraceContext>,
    /// The request's span, with the principal's identity and without the URI of a resource. It is disabled unless a
    /// `tracing` subscriber enables `linchpin::call` at level `info`. Its fields `outcome`, `code` (of an error) and
    /// `duration` are recorded when the call ends; then there is an event at level `debug`.
    pub span: Span,
}

/// The `tracing` target of the spans of calls.
pub const CALL_TARGET: &str = "linchpin::call";

/// Bytes of [`CallInfo::target`].
const TARGET_BYTES_MAX: usize = 256;

impl CallInfo {
    /// Describes a request, and creates its span.
    pub fn new(request: &Request, headers: &HeaderMap, principal: Option<Principal>) -> CallInfo {
        let named = match request.known() {
            Some(Method::ToolsCall | Method::PromptsGet) => request.params.name,
            Some(Method::ResourcesRead | Method::ResourcesSubscribe | Method::ResourcesUnsubscribe) => {
                request.params.uri
            }
            _ => None,
        };
        let target = request.string(named).map(|name| Box::from(clip(&name)));
        let trace = TraceContext::of_request(request, headers);
        let session = request.caller.session().map(|session| session.public_id()).filter(|id| *id != 0);
        let revision = request.caller.features().revision;
        let method = request.method.as_str();
        let span = tracing::info_span!(
            target: CALL_TARGET,
            "call",
            method = clip(method),
            // A URI may hold what must not be logged.
            name = target.as_deref().filter(|_| request.params.uri.is_none()),
            session = session.map(|id| display(PublicId(id))),
            revision = revision.as_str(),
            principal = principal.as_ref().map(|principal| clip(principal.identity())),
            traceparent = trace.as_ref().map(|trace| &*trace.traceparent),
            outcome = Empty,
            code = Empty,
            duration = Empty,
        );
        CallInfo {
            id: request.id.clone(),
            method: clip(method).into(),
            target,
            session,
            revision,
            principal,
            request_bytes: request.frame.len(),
            trace,
            span,
        }
    }
}

impl CallInfo {
    /// Describes a request that was refused before it reached the service: its method may not exist, and its target is not
    /// known. Returns `None` if the message is not a request.
    pub fn refused(message: &Message, session: Option<&Session>, principal: Option<Principal>) -> Option<CallInfo> {
        let Kind::Request { id, method } = &message.kind else { return None };
        let without_session = || Features::all().find(|features| !features.has_sessions);
        let features = session.map(|session| session.features()).or_else(without_session)?;
        let session = session.map(|session| session.public_id()).filter(|id| *id != 0);
        let (method, revision) = (clip(method.as_str()), features.revision);
        let span = tracing::info_span!(
            target: CALL_TARGET,
            "call",
            method,
            session = session.map(|id| display(PublicId(id))),
            revision = revision.as_str(),
            principal = principal.as_ref().map(|principal| clip(principal.identity())),
            outcome = Empty,
            code = Empty,
            duration = Empty,
        );
        Some(CallInfo {
            id: id.clone(),
            method: method.into(),
            target: None,
            session,
            revision,
            principal,
            request_bytes: message.frame().len(),
            trace: None,
            span,
        })
    }
}

/// A session's public id as logs show it: 16 hexadecimal digits.
struct PublicId(u64);

impl std::fmt::Display for PublicId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

fn clip(text: &str) -> &str {
    let mut end = text.len().min(TARGET_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// How a call ended.
///
/// ```
/// use linchpin_core::observer::{CallEnd, Outcome};
/// use std::time::Duration;
///
/// let end = CallEnd::new(Outcome::Ok, 120, Duration::from_millis(3));
/// assert!(!end.outcome.is_error());
/// ```
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct CallEnd {
    /// The outcome.
    pub outcome: Outcome,
    /// Bytes of the response's message, 0 without one. Notifications are not counted.
    pub response_bytes: usize,
    /// Time from the start of the call to its end.
    pub duration: Duration,
}

impl CallEnd {
    /// Creates the end of a call.
    pub fn new(outcome: Outcome, response_bytes: usize, duration: Duration) -> CallEnd {
        CallEnd { outcome, response_bytes, duration }
    }
}

/// The outcome of a call.
///
/// ```
/// use linchpin_core::observer::Outcome;
///
/// assert_eq!(Outcome::Error(-32602).as_str(), "error");
/// assert!(Outcome::ToolError.is_error() && !Outcome::InputRequired.is_error());
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Outcome {
    /// A result.
    Ok,
    /// A tool's result with `isError`.
    ToolError,
    /// The client is asked for input and will repeat the request.
    InputRequired,
    /// The call became a task: it continues to run, and the client fetches its result.
    Task,
    /// A JSON-RPC error with this code.
    Error(i32),
    /// Cancelled, or its client has disconnected: no response.
    Cancelled,
}

impl Outcome {
    /// Returns whether it is a JSON-RPC error or a tool error.
    pub fn is_error(self) -> bool {
        matches!(self, Outcome::Error(_) | Outcome::ToolError)
    }

    /// Returns a word for labels: `ok`, `tool_error`, `input_required`, `task`, `error` or `cancelled`.
    pub fn as_str(self) -> &'static str {
        match self {
            Outcome::Ok => "ok",
            Outcome::ToolError => "tool_error",
            Outcome::InputRequired => "input_required",
            Outcome::Task => "task",
            Outcome::Error(_) => "error",
            Outcome::Cancelled => "cancelled",
        }
    }
}

impl From<ReplyKind> for Outcome {
    fn from(kind: ReplyKind) -> Outcome {
        match kind {
            ReplyKind::Complete => Outcome::Ok,
            ReplyKind::ToolError => Outcome::ToolError,
            ReplyKind::InputRequired => Outcome::InputRequired,
            ReplyKind::Task => Outcome::Task,
            ReplyKind::Error(code) => Outcome::Error(code),
        }
    }
}

/// A place in a distributed trace: the W3C `traceparent`, `tracestate` and `baggage`.
///
/// Clients send it in a request's `_meta` ([SEP-414](https://modelcontextprotocol.io/community/seps/414)) or, over HTTP,
/// in headers of these names; `_meta` wins.
///
/// ```
/// use linchpin_core::TraceContext;
///
/// let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
/// let trace = TraceContext::new(parent, Some("vendor=1"), None).unwrap();
/// assert_eq!(&*trace.traceparent, parent);
/// assert_eq!(TraceContext::new("not a trace", None, None), None);
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct TraceContext {
    /// `traceparent`, checked to have the right form: version, trace id, parent id and flags in hexadecimal digits.
    pub traceparent: Box<str>,
    /// `tracestate`, at most 512 bytes.
    pub tracestate: Option<Box<str>>,
    /// `baggage`, at most 8 KiB.
    pub baggage: Option<Box<str>>,
}

impl TraceContext {
    /// Creates a trace context. Returns `None` if `traceparent` is malformed; a `tracestate` or `baggage` that is too long is
    /// left out.
    pub fn new(traceparent: &str, tracestate: Option<&str>, baggage: Option<&str>) -> Option<TraceContext> {
        let mut parts = traceparent.split('-');
        let is_hex = |part: Option<&str>, len: usize| {
            part.is_some_and(|p| p.len() == len && p.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')))
        };
        let formed = [2, 32, 16, 2].into_iter().all(|len| is_hex(parts.next(), len));
        // Version 0 has four parts; a later version may have more.
        if !formed || (traceparent.starts_with("00") && parts.next().is_some()) || traceparent.len() > 128 {
            return None;
        }
        let short = |text: Option<&str>, bytes_max| text.filter(|t| (1..=bytes_max).contains(&t.len())).map(Box::from);
        let (tracestate, baggage) = (short(tracestate, 512), short(baggage, 8 << 10));
        Some(TraceContext { traceparent: traceparent.into(), tracestate, baggage })
    }

    /// Returns the trace context of a request, from its `_meta` or its headers.
    pub fn of_request(request: &Request, headers: &HeaderMap) -> Option<TraceContext> {
        let claims = &request.params.claims;
        if let Some(parent) = request.string(claims.traceparent) {
            let (state, baggage) = (request.string(claims.tracestate), request.string(claims.baggage));
            return TraceContext::new(&parent, state.as_deref(), baggage.as_deref());
        }
        let header = |name| headers.get(name).and_then(|value| value.to_str().ok());
        TraceContext::new(header("traceparent")?, header("tracestate"), header("baggage"))
    }
}

#[cfg(test)]
mod tests {
    use super::TraceContext;

    #[test]
    fn only_a_well_formed_traceparent_is_continued() {
        let (trace, parent) = ("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331");
        for (text, ok) in [
            (format!("00-{trace}-{parent}-01"), true),
            (format!("00-{trace}-{parent}-01-more"), false),
            (format!("01-{trace}-{parent}-01-more"), true),
            (format!("00-{trace}-{parent}"), false),
            (format!("00-{}-{parent}-01", trace.to_uppercase()), false),
            (String::new(), false),
        ] {
            assert_eq!(TraceContext::new(&text, None, None).is_some(), ok, "{text}");
        }
        let long = "a".repeat(513);
        let context = TraceContext::new(&format!("00-{trace}-{parent}-01"), Some(&long), None);
        assert!(context.is_some_and(|context| context.tracestate.is_none()));
    }
}
