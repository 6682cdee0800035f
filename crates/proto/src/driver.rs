//! The life of a call, for every transport: received, started, polled, and ended.
//!
//! A transport gives its messages to [`receive`] and the outcome to [`Event::deliver`], starts what is a call with
//! [`start`], tells the engine of it with [`Engine::started`], and turns every [`CallEvent`] of it into messages for the
//! peer with [`Engine::send`]. Where the engine is behind a lock, [`Unfinished`] does this as the call is polled. A call of
//! a stateless request over HTTP has no engine; [`poll_stateless`] is all that it needs.

use crate::engine::{Engine, Event};
use crate::short_duration::ShortDuration;
use bytes::Bytes;
use linchpin_core::message::{Message, Request};
use linchpin_core::observer::CALL_TARGET;
use linchpin_core::service::{CallEvent, CallStart, Cancel, RequestContext, RunningCall, Service};
use linchpin_core::{CallEnd, CallInfo, Caller, Id, Observer, Outcome, Reply, Session};
use std::ops::Deref;
use std::sync::{Arc, MutexGuard};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

/// What a transport has to do for a message of its peer.
pub enum Received {
    /// Start this request with [`start`], and tell the engine with [`Engine::started`].
    Call(Arc<Request>),
    /// Send this response.
    Reply(Reply),
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
    /// Hands responses to those who wait for them, and notifications to the service. Cancels a call, after `withdraw` has
    /// sent each cancellation of its server requests on its stream. The rest is left to the transport. To be called without a
    /// lock on the engine: it runs code of the service.
    #[inline]
    pub fn deliver(
        self,
        service: &dyn Service,
        context: &Arc<RequestContext>,
        mut withdraw: impl FnMut(&Arc<dyn Cancel>, &Bytes),
    ) -> Received {
        match self {
            Event::Call(request) => return Received::Call(request),
            Event::Reply(reply) => return Received::Reply(reply),
            Event::Cancel(Some(cancel), frames) => {
                frames.iter().for_each(|frame| withdraw(&cancel, frame));
                cancel.cancel();
            }
            Event::Answer(ask, answer) => (ask.answer)(answer),
            Event::Notified(told) => service.notified(*told, context.clone()),
            // A call without a canceller was started in this very moment: [`Engine::started`] finds it cancelled.
            Event::Cancel(None, _) | Event::Nothing => {}
        }
        Received::Nothing
    }
}

/// What became of a call that was started. `C` names the call: its [`Id`], or [`Unfinished`].
pub enum Started<C> {
    /// It has ended. Send this response: none if the call was cancelled.
    Ended(Option<Reply>),
    /// It runs, and can be cancelled. Send what [`Engine::send`] or [`Unfinished::poll`] says of its events.
    Running(C, Box<dyn RunningCall>, Arc<dyn Cancel>),
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
    /// Takes note of how the request `id` has started.
    #[inline]
    pub fn started(&mut self, id: Id, started: CallStart) -> Started<Id> {
        match started {
            CallStart::Done(reply) => Started::Ended(self.end(&id, reply)),
            CallStart::Running(call) => {
                let cancel = call.canceller();
                self.attach(&id, cancel.clone());
                Started::Running(id, call, cancel)
            }
        }
    }

    /// Ends a call that has sent no server request. Returns the response to send: none if the call was cancelled.
    #[inline]
    pub fn end(&mut self, id: &Id, reply: Reply) -> Option<Reply> {
        let (may_send, _) = self.finish(id);
        may_send.then_some(reply)
    }

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

/// A peer whose calls reach its engine from several tasks.
pub trait HasEngine {
    /// The engine, locked.
    fn engine(&self) -> MutexGuard<'_, Engine>;
}

/// A call that the engine of its peer counts as running. Dropping it frees its id.
pub struct Unfinished<P: Deref<Target: HasEngine>> {
    peer: P,
    id: Id,
    /// Already finished: a second time could affect a new request with the same id.
    ended: bool,
}

impl<P: Deref<Target: HasEngine>> Unfinished<P> {
    /// The call of a request that was received from `peer`, before or after it is started.
    pub fn new(peer: P, id: Id) -> Unfinished<P> {
        Unfinished { peer, id, ended: false }
    }

    /// Tells the engine how it has started.
    pub fn started(mut self, started: CallStart) -> Started<Self> {
        match started {
            CallStart::Done(reply) => {
                self.ended = true;
                Started::Ended(self.peer.engine().end(&self.id, reply))
            }
            CallStart::Running(call) => {
                let cancel = call.canceller();
                self.peer.engine().attach(&self.id, cancel.clone());
                Started::Running(self, call, cancel)
            }
        }
    }

    /// Polls it, and hands the messages of its next event to `out`, which is called with a lock on the engine. Returns
    /// whether it has ended. `is_heard` says whether a server request can still reach the client.
    pub fn poll(
        &mut self,
        call: &mut dyn RunningCall,
        is_heard: bool,
        out: impl FnMut(Out),
        cx: &mut Context<'_>,
    ) -> Poll<bool> {
        match ready!(call.poll_event(cx)) {
            CallEvent::ServerRequest(request) if !is_heard => request.refuse(),
            event => self.ended = self.peer.engine().send(&self.id, event, out),
        }
        Poll::Ready(self.ended)
    }
}

impl<P: Deref<Target: HasEngine>> Drop for Unfinished<P> {
    fn drop(&mut self) {
        if !self.ended {
            self.peer.engine().finish(&self.id);
        }
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
        let duration = tracing::field::display(ShortDuration(end.duration));
        tracing::record_all!(span, outcome = end.outcome.as_str(), duration = duration);
        // The span's fields say the rest.
        span.in_scope(|| tracing::debug!(target: CALL_TARGET, "call ended"));
    }
    if let Some(observer) = observer {
        observer.call_ended(info, end);
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
