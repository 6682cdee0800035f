//! The life of a call, for every transport: received, started, polled, and ended.
//!
//! A transport gives its messages to [`receive`] and the outcome to [`Event::deliver`], starts what is a call with
//! [`start`], tells the engine of what still runs with [`Engine::attach`], and turns every [`CallEvent`] of it into
//! messages for the peer with [`Engine::send`]. A call of a stateless request over HTTP has no engine; [`poll_stateless`]
//! is all that it needs.

use crate::engine::{Engine, Event};
use bytes::Bytes;
use linchpin_core::message::{Message, Notification, Request};
use linchpin_core::observer::CALL_TARGET;
use linchpin_core::service::{CallEvent, CallStart, Cancel, RequestContext, RunningCall, Service};
use linchpin_core::{CallEnd, CallInfo, Caller, Id, Observer, Outcome, Reply, Session};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

/// What a transport has to do for a message of its peer.
pub enum Received {
    /// Start this request with [`start`]. When it ends, however it ends, call [`Engine::finish`] once, unless
    /// [`Engine::send`] said so; while it runs, [`Engine::attach`] its canceller.
    Call(Arc<Request>),
    /// Send this response.
    Reply(Reply),
    /// Send these cancellations of server requests on the call's stream, then cancel it.
    Cancel(Arc<dyn Cancel>, Vec<Bytes>),
    /// Hand this notification to [`Service::notified`].
    Notified(Box<Notification>),
    /// Nothing.
    Nothing,
}

/// Gives a message to the peer's engine. A session that it opens gets its feed of changes at once, so that none is lost.
#[inline]
pub fn receive(engine: &mut Engine, service: &dyn Service, context: &RequestContext, message: &Message) -> Event {
    let was_open = engine.session().is_some();
    let event = engine.receive(message);
    if !was_open
        && let Some(session) = engine.session()
        && let Some(feed) = service.open_feed(&Caller::of_session(session.clone()), context)
    {
        session.set_feed(feed);
    }
    if let Event::Reply(reply) = &event {
        refused(service, context, engine.session().map(|session| &**session), message, reply);
    }
    event
}

/// Tells the service's observer of a request that is refused before the service sees it.
#[cold]
pub fn refused(
    service: &dyn Service,
    context: &RequestContext,
    session: Option<&Session>,
    message: &Message,
    reply: &Reply,
) {
    let observer = service.observer();
    if observer.is_none() && !tracing::enabled!(target: CALL_TARGET, tracing::Level::INFO) {
        return;
    }
    let Some(info) = CallInfo::refused(message, session, context.principal.clone()) else { return };
    if let Some(observer) = observer {
        observer.call_started(&info);
    }
    ended(&info, observer, &CallEnd::new(reply.kind().into(), reply.frame_len(), Duration::ZERO));
}

impl Event {
    /// Hands responses to those who wait for them; the rest is left to the transport. To be called without a lock on the
    /// engine: it runs code of the service.
    #[inline]
    pub fn deliver(self) -> Received {
        match self {
            Event::Call(request) => return Received::Call(request),
            Event::Reply(reply) => return Received::Reply(reply),
            Event::Cancel(Some(cancel), frames) => return Received::Cancel(cancel, frames),
            Event::Answer(ask, answer) => (ask.answer)(answer),
            Event::Notified(told) => return Received::Notified(told),
            // A call without a canceller was started in this very moment: attaching it finds it cancelled.
            Event::Cancel(None, _) | Event::Nothing => {}
        }
        Received::Nothing
    }
}

/// A message of a running call for its peer.
pub enum Out {
    /// A notification: may be dropped when nobody reads.
    Notice(Bytes),
    /// A server request, or the cancellation of one: never dropped.
    Request(Bytes),
    /// The response: never dropped, and the last.
    Reply(Reply),
    /// Close the call's stream, which the client resumes after so many milliseconds. Ignored where streams cannot be
    /// resumed.
    Pause(u64),
}

impl Engine {
    /// Turns an event of the running call `id` into messages for the peer: none if the call was cancelled. Returns whether
    /// the call has ended; then it is finished.
    pub fn send(&mut self, id: &Id, event: CallEvent, mut out: impl FnMut(Out)) -> bool {
        let reply = match event {
            CallEvent::Notify(frame) => {
                if self.may_send(id) {
                    out(Out::Notice(frame));
                }
                return false;
            }
            CallEvent::ServerRequest(request) => {
                if let Some(frame) = self.ask(id, request) {
                    out(Out::Request(frame));
                }
                return false;
            }
            CallEvent::Pause(ms) => {
                out(Out::Pause(ms));
                return false;
            }
            CallEvent::Done(reply) => Some(reply),
            CallEvent::Cancelled => None,
        };
        let (may_send, orphans) = self.finish(id);
        orphans.into_iter().for_each(|frame| out(Out::Request(frame)));
        if let Some(reply) = reply.filter(|_| may_send) {
            out(Out::Reply(reply));
        }
        true
    }
}

/// A message of a call without an engine.
pub enum Stateless {
    /// A notification.
    Notice(Bytes),
    /// The response, the last.
    Reply(Reply),
    /// Cancelled: nothing follows.
    Cancelled,
}

/// Polls a call of a peer that cannot be asked, and whose stream cannot be resumed.
pub fn poll_stateless(call: &mut dyn RunningCall, cx: &mut Context<'_>) -> Poll<Stateless> {
    loop {
        return Poll::Ready(match ready!(call.poll_event(cx)) {
            CallEvent::Notify(frame) => Stateless::Notice(frame),
            CallEvent::Done(reply) => Stateless::Reply(reply),
            CallEvent::Cancelled => Stateless::Cancelled,
            CallEvent::ServerRequest(request) => {
                request.refuse();
                continue;
            }
            CallEvent::Pause(_) => continue,
        });
    }
}

/// Starts a request and polls it once, within its span and before the service's observer. `now` reads the clock.
///
/// Without an observer, and without a `tracing` subscriber that wants the span, this is [`Service::start`].
// The requests are large: each function that is not inlined copies them.
#[inline]
pub fn start(
    service: &dyn Service,
    request: Arc<Request>,
    context: Arc<RequestContext>,
    now: fn() -> Instant,
    cx: &mut Context<'_>,
) -> CallStart {
    if service.observer().is_none() && !tracing::enabled!(target: CALL_TARGET, tracing::Level::INFO) {
        return service.start(request, context, cx);
    }
    start_observed(service, request, context, now, cx)
}

#[cold]
fn start_observed(
    service: &dyn Service,
    request: Arc<Request>,
    context: Arc<RequestContext>,
    now: fn() -> Instant,
    cx: &mut Context<'_>,
) -> CallStart {
    let observer = service.observer();
    let info = CallInfo::new(&request, &context.headers, context.principal.clone());
    if let Some(observer) = observer {
        observer.call_started(&info);
    }
    let mut observed = Observed { info, observer: observer.cloned(), started: now(), now, ended: false };
    let span = observed.info.span.clone();
    match span.in_scope(|| service.start(request, context, cx)) {
        CallStart::Done(reply) => {
            observed.end(reply.kind().into(), reply.frame_len());
            CallStart::Done(reply)
        }
        CallStart::Running(call) => {
            let cancel = call.canceller();
            CallStart::Running(Box::new(ObservedCall { call: Some(call), cancel, observed }))
        }
    }
}

struct Observed {
    info: CallInfo,
    observer: Option<Arc<dyn Observer>>,
    started: Instant,
    now: fn() -> Instant,
    ended: bool,
}

impl Observed {
    fn end(&mut self, outcome: Outcome, response_bytes: usize) {
        if std::mem::replace(&mut self.ended, true) {
            return;
        }
        let end = CallEnd::new(outcome, response_bytes, (self.now)().saturating_duration_since(self.started));
        ended(&self.info, self.observer.as_ref(), &end);
    }
}

fn ended(info: &CallInfo, observer: Option<&Arc<dyn Observer>>, end: &CallEnd) {
    let span = &info.span;
    if !span.is_disabled() {
        if let Outcome::Error(code) = end.outcome {
            span.record("code", code);
        }
        let duration = tracing::field::display(Short(end.duration));
        tracing::record_all!(span, outcome = end.outcome.as_str(), duration = duration);
        // The span's fields say the rest.
        span.in_scope(|| tracing::debug!(target: CALL_TARGET, "call ended"));
    }
    if let Some(observer) = observer {
        observer.call_ended(info, end);
    }
}

/// A duration as logs show it: whole milliseconds, or microseconds of one shorter than ten milliseconds.
struct Short(Duration);

impl std::fmt::Display for Short {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0.as_micros() as u64 {
            us @ ..10_000 => write!(f, "{us}µs"),
            us => write!(f, "{}ms", us / 1_000),
        }
    }
}

impl Drop for Observed {
    fn drop(&mut self) {
        self.end(Outcome::Cancelled, 0);
    }
}

/// A running call that is polled within its span.
struct ObservedCall {
    /// There until it is dropped.
    call: Option<Box<dyn RunningCall>>,
    cancel: Arc<dyn Cancel>,
    observed: Observed,
}

impl Drop for ObservedCall {
    /// What the call does when it is dropped is part of it.
    fn drop(&mut self) {
        let (span, call) = (&self.observed.info.span, &mut self.call);
        span.in_scope(|| *call = None);
    }
}

impl RunningCall for ObservedCall {
    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<CallEvent> {
        let Some(call) = &mut self.call else { return Poll::Ready(CallEvent::Cancelled) };
        let event = ready!(self.observed.info.span.in_scope(|| call.poll_event(cx)));
        match &event {
            CallEvent::Done(reply) => self.observed.end(reply.kind().into(), reply.frame_len()),
            CallEvent::Cancelled => self.observed.end(Outcome::Cancelled, 0),
            _ => {}
        }
        Poll::Ready(event)
    }

    fn canceller(&self) -> Arc<dyn Cancel> {
        self.cancel.clone()
    }
}
