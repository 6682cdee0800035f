//! One client of the HTTP+SSE transport: its engine, and the messages for its stream.

use crate::driver;
use crate::http::{Calls, Counted, HttpBody, Shared, accepted, refuse};
use bytes::Bytes;
use http::{Response, StatusCode};
use linchpin_core::budget::{Budget, EXHAUSTED, Reservation};
use linchpin_core::{
    Limits, Message, Observer, Principal, Request, RequestContext, ServerChange, Service, Subscription,
};
use linchpin_proto::Engine;
use linchpin_proto::driver::{HasEngine, Out, Received, Started, Unfinished, receive};
use linchpin_proto::frame::{self, Frame, Unreadable};
use linchpin_proto::http::{rules, sse};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};

/// See the module's documentation.
#[derive(Clone)]
pub(crate) struct Peer(Arc<Inner>);

struct Inner {
    /// The identity of the principal that opened the stream.
    owner: Option<Arc<str>>,
    limits: Arc<Limits>,
    budget: Arc<Budget>,
    observer: Option<Arc<dyn Observer>>,
    engine: Mutex<Engine>,
    outbox: Mutex<Outbox>,
    /// Calls that run or have messages to queue.
    sending: AtomicUsize,
}

/// Messages for the stream.
#[derive(Default)]
struct Outbox {
    /// Encoded events; `true` for those that may be dropped.
    events: VecDeque<(Bytes, bool)>,
    notices: usize,
    feed: Option<Arc<Subscription>>,
    /// For what the client declared.
    declared: Option<Reservation>,
    waker: Option<Waker>,
    /// The stream ends when no call has more to say and no message is pending.
    draining: bool,
    closed: bool,
}

impl Peer {
    /// A client whose stream starts with the URL for its messages.
    pub(crate) fn new(service: &dyn Service, principal: Option<&Principal>, address: &str) -> Peer {
        let mut first = Vec::new();
        sse::named(&mut first, "endpoint", address.as_bytes());
        let outbox = Outbox { events: [(first.into(), false)].into(), ..Outbox::default() };
        let (limits, budget) = (service.limits().clone(), service.budget().clone());
        let owner = principal.map(|principal| principal.identity().clone());
        let engine = Mutex::new(driver::engine(service));
        let observer = service.observer().cloned();
        Peer(Arc::new(Inner {
            owner,
            limits,
            budget,
            observer,
            engine,
            outbox: Mutex::new(outbox),
            sending: AtomicUsize::new(0),
        }))
    }

    pub(crate) fn belongs_to(&self, principal: Option<&Principal>) -> bool {
        self.0.owner.as_ref() == principal.map(Principal::identity)
    }

    /// Handles a POST.
    pub(crate) fn receive(&self, shared: &Shared, head: Arc<RequestContext>, body: Bytes) -> Response<HttpBody> {
        let inner = &self.0;
        if inner.outbox().events.len() > inner.limits.messages.queued_max + inner.limits.calls.per_peer_max {
            return refuse(
                StatusCode::SERVICE_UNAVAILABLE,
                None,
                "too many messages are waiting on the session's stream; read them first",
            );
        }
        let parts = match frame::read(body, &inner.limits) {
            Ok(Frame::One(message)) => {
                inner.take(shared, message, head);
                return accepted();
            }
            Ok(Frame::Batch(parts)) if inner.engine().batches() => parts,
            Ok(Frame::Batch(_)) => {
                return refuse(
                    StatusCode::BAD_REQUEST,
                    None,
                    "batches are not part of this protocol revision; send each message alone",
                );
            }
            Err(Unreadable { reply, .. }) => return crate::http::reply(rules::status(reply.kind(), None), reply),
        };
        for part in parts {
            match frame::message(part, &inner.limits) {
                Ok(message) => inner.take(shared, message, head.clone()),
                Err(Unreadable { is_response: true, .. }) => {}
                Err(Unreadable { reply, .. }) => inner.push(&reply.frame(), false),
            }
        }
        accepted()
    }

    /// The next event of the stream.
    pub(crate) fn poll_bytes(&self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        loop {
            // Before the outbox: a call queues its last message before it is no longer counted.
            let is_quiet = self.0.sending.load(Ordering::Acquire) == 0;
            let mut outbox = self.0.outbox();
            if let Some((event, notice)) = outbox.events.pop_front() {
                outbox.notices -= usize::from(notice);
                return Poll::Ready(Some(event));
            }
            if outbox.closed || (outbox.draining && is_quiet) {
                return Poll::Ready(None);
            }
            outbox.waker = Some(cx.waker().clone());
            let (feed, draining) = (outbox.feed.clone(), outbox.draining);
            drop(outbox);
            // The last call may have ended before there was somebody to wake.
            if draining && self.0.sending.load(Ordering::Acquire) == 0 {
                continue;
            }
            let Some(feed) = feed else { return Poll::Pending };
            match ready!(feed.poll_next(cx)) {
                Some(change) => self.0.push_change(&change),
                None => {
                    let mut outbox = self.0.outbox();
                    (outbox.feed, outbox.draining) = (None, true);
                }
            }
        }
    }

    /// Ends the stream once no call is running and no message is pending.
    pub(crate) fn drain(&self) {
        self.0.outbox().draining = true;
        self.0.wake();
    }

    /// Ends everything.
    pub(crate) fn close(&self) {
        let cancellers = self.0.engine().close();
        for cancel in cancellers {
            cancel.cancel();
        }
        self.0.outbox().closed = true;
        self.0.wake();
    }
}

impl Inner {
    fn outbox(&self) -> MutexGuard<'_, Outbox> {
        self.outbox.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wake(&self) {
        let waker = self.outbox().waker.take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn push_change(&self, change: &ServerChange) {
        self.push(&change.frame(None), !matches!(change, ServerChange::Request(_)));
    }

    /// Queues a message. Past the limit the oldest notification is dropped; requests and responses never are.
    fn push(&self, frame: &[u8], notice: bool) {
        let mut event = Vec::with_capacity(frame.len() + 24);
        sse::named(&mut event, "message", frame);
        let event = self.budget.own(event);
        let mut outbox = self.outbox();
        if outbox.closed {
            return;
        }
        let Some(event) = event else {
            tracing::debug!(EXHAUSTED);
            outbox.closed = !notice;
            drop(outbox);
            self.wake();
            if notice {
                self.dropped();
            }
            return;
        };
        outbox.events.push_back((event, notice));
        outbox.notices += usize::from(notice);
        let mut dropped = None;
        if outbox.notices > self.limits.messages.queued_max
            && let Some(at) = outbox.events.iter().position(|(_, notice)| *notice)
        {
            dropped = outbox.events.remove(at);
            outbox.notices -= 1;
        }
        drop(outbox);
        self.wake();
        if dropped.is_some() {
            self.dropped();
        }
    }

    /// Tells the observer that a notification was dropped.
    fn dropped(&self) {
        if let Some(observer) = &self.observer {
            observer.notification_dropped();
        }
    }

    fn take(self: &Arc<Self>, shared: &Shared, message: Message, context: Arc<RequestContext>) {
        let event = {
            let mut engine = self.engine();
            let event = receive(&mut engine, &*shared.service, &context, &message);
            let mut outbox = self.outbox();
            if outbox.declared.is_none()
                && let Some(session) = engine.session()
            {
                outbox.feed = session.feed().map(|feed| feed.feed().clone());
                outbox.declared = self.budget.reserve(session.declared_bytes());
                outbox.closed |= outbox.declared.is_none();
            }
            event
        };
        match event.deliver(&*shared.service, &context, |_, frame| self.push(frame, false)) {
            Received::Call(request) => {
                let (counts, service, calls) =
                    (Sending::new(self.clone()), shared.service.clone(), shared.calls.clone());
                tokio::spawn(async move { counts.0.call(&*service, &calls, request, context).await });
            }
            Received::Reply(reply) => self.push(&reply.frame(), false),
            Received::Nothing => {}
        }
    }

    async fn call(
        &self,
        service: &dyn Service,
        calls: &Arc<Calls>,
        request: Arc<Request>,
        context: Arc<RequestContext>,
    ) {
        let unfinished = Unfinished::new(self, request.id.clone());
        let started = driver::in_task(|cx| driver::start(service, request, context, cx)).await;
        match unfinished.started(started) {
            Started::Ended(reply) => reply.into_iter().for_each(|reply| self.send(Out::Reply(reply))),
            Started::Running(mut unfinished, call, cancel) => {
                let mut counted = Counted::new(call, cancel, calls);
                let mut ended = false;
                while !ended {
                    let mut messages = Vec::new();
                    ended = poll_fn(|cx| unfinished.poll(&mut *counted.call, true, |out| messages.push(out), cx)).await;
                    messages.into_iter().for_each(|message| self.send(message));
                }
            }
        }
    }

    /// Queues a message of a call.
    fn send(&self, message: Out) {
        match message {
            Out::Notice(frame) => self.push(&frame, true),
            Out::Request(frame) => self.push(&frame, false),
            Out::Reply(reply) => self.push(&reply.frame(), false),
            // The stream of this transport cannot be resumed.
            Out::Pause(_) => {}
        }
    }
}

impl HasEngine for Inner {
    fn engine(&self) -> MutexGuard<'_, Engine> {
        self.engine.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Counts a call until it and its messages are gone, and then wakes the stream: one that drains may end with its last call.
struct Sending(Arc<Inner>);

impl Sending {
    fn new(inner: Arc<Inner>) -> Sending {
        inner.sending.fetch_add(1, Ordering::Relaxed);
        Sending(inner)
    }
}

impl Drop for Sending {
    fn drop(&mut self) {
        self.0.sending.fetch_sub(1, Ordering::Release);
        self.0.wake();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::task::Waker;

    #[test]
    fn a_stream_that_drains_waits_for_the_last_message_of_a_call_that_the_engine_has_forgotten() {
        let limits = Arc::new(Limits::default());
        let engine = Mutex::new(Engine::new(limits.clone()));
        let budget = Budget::new(1 << 20);
        let (outbox, sending) = (Mutex::default(), AtomicUsize::new(0));
        let inner = Arc::new(Inner { owner: None, limits, budget, observer: None, engine, outbox, sending });
        let peer = Peer(inner.clone());
        let mut cx = Context::from_waker(Waker::noop());
        let call = Sending::new(inner.clone());
        peer.drain();
        assert_eq!(inner.engine().running(), 0);
        assert!(peer.poll_bytes(&mut cx).is_pending(), "the call may have a reply to queue");
        inner.push(b"{}", false);
        drop(call);
        assert!(matches!(peer.poll_bytes(&mut cx), Poll::Ready(Some(_))));
        assert_eq!(peer.poll_bytes(&mut cx), Poll::Ready(None));
    }
}
