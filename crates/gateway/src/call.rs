//! A call of a client while the upstream works on it.

use crate::lock;
use bytes::Bytes;
use linchpin_core::service::{CallEvent, Cancel, RunningCall, ServerRequest};
use linchpin_core::{Id, Reply};
use linchpin_proto::translate::notice;
use linchpin_types::logging::LoggingLevel;
use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use tokio::sync::Notify;

/// Messages of one call that its client has not taken. Beyond that, notifications are dropped.
const WAITING_MAX: usize = 1_024;
/// Questions of one call that the client has not been sent.
pub(crate) const QUESTIONS_MAX: usize = 16;

/// Takes the messages of a call that may outlive its client's request.
pub(crate) trait Relay: Send + Sync {
    fn notify(&self, frame: Bytes);
    fn ask(&self, question: ServerRequest);
}

/// Where the messages of a call go.
pub(crate) struct Outlet {
    /// The client's id of the request.
    pub(crate) id: Id,
    /// The client's progress token as JSON text.
    token: Option<Box<str>>,
    /// Takes the messages in place of this.
    relay: Option<Arc<dyn Relay>>,
    /// The least severe log messages that a stateless client wants, or none; unknown of a session, whose upstream knows.
    logs: Mutex<Option<Option<LoggingLevel>>>,
    /// The call is a stream of changes, which ends when its client says so.
    pub(crate) listens: bool,
    /// The client can be asked: its revision has requests of servers.
    pub(crate) may_ask: bool,
    queue: Mutex<Queue>,
    /// Something came from the upstream: the deadline begins anew.
    pub(crate) touched: Notify,
    finished: AtomicBool,
    /// The upstream has answered the call.
    pub(crate) answered: Arc<AtomicBool>,
    /// The client's revision has no texts in progress.
    textless: AtomicBool,
    /// The progress that the client was told last, if it is told of increases only.
    progress: Mutex<Option<f64>>,
}

#[derive(Default)]
struct Queue {
    events: VecDeque<CallEvent>,
    questions: usize,
    cancelled: bool,
    waker: Option<Waker>,
}

impl Outlet {
    pub(crate) fn new(id: Id, token: Option<Box<str>>, listens: bool, may_ask: bool) -> Arc<Outlet> {
        Arc::new(Outlet {
            id,
            token,
            relay: None,
            logs: Mutex::default(),
            listens,
            may_ask,
            queue: Mutex::default(),
            touched: Notify::new(),
            finished: AtomicBool::new(false),
            answered: Arc::default(),
            textless: AtomicBool::new(false),
            progress: Mutex::default(),
        })
    }

    /// That of a call whose messages go elsewhere.
    pub(crate) fn relayed(id: Id, token: Option<Box<str>>, relay: Arc<dyn Relay>) -> Arc<Outlet> {
        Arc::new(Outlet {
            id,
            token,
            relay: Some(relay),
            logs: Mutex::default(),
            listens: false,
            may_ask: true,
            queue: Mutex::default(),
            touched: Notify::new(),
            finished: AtomicBool::new(false),
            answered: Arc::default(),
            textless: AtomicBool::new(false),
            progress: Mutex::default(),
        })
    }

    /// Progress goes to the client without its texts.
    pub(crate) fn omit_texts(&self) {
        self.textless.store(true, Ordering::Relaxed);
    }

    /// Progress that does not increase is dropped from now on.
    pub(crate) fn only_increase(&self) {
        lock(&self.progress).get_or_insert(f64::NEG_INFINITY);
    }

    /// Whether the client is told this: anything but progress that does not increase.
    fn increases(&self, frame: &[u8]) -> bool {
        let mut last = lock(&self.progress);
        let Some(last) = last.as_mut() else { return true };
        let Some(now) = notice::progressed(frame) else { return true };
        let more = now > *last;
        *last = last.max(now);
        more
    }

    pub(crate) fn texts(&self) -> bool {
        !self.textless.load(Ordering::Relaxed)
    }

    pub(crate) fn set_logs(&self, level: Option<LoggingLevel>) {
        *lock(&self.logs) = Some(level);
    }

    /// Whether the client wants log messages of this level.
    pub(crate) fn wants(&self, level: Option<LoggingLevel>) -> bool {
        match (*lock(&self.logs), level) {
            (None, _) => true,
            (Some(None), _) => false,
            (Some(Some(least)), level) => level.is_none_or(|level| level >= least),
        }
    }

    pub(crate) fn token(&self) -> Option<&str> {
        self.token.as_deref()
    }

    /// Sends a notification to the client.
    pub(crate) fn notify(&self, frame: Bytes) {
        if !self.increases(&frame) {
            // The upstream works all the same.
            return self.touched.notify_one();
        }
        if let Some(relay) = &self.relay {
            self.touched.notify_one();
            return relay.notify(frame);
        }
        let waker = {
            let mut queue = lock(&self.queue);
            if queue.events.len() >= WAITING_MAX {
                return;
            }
            queue.events.push_back(CallEvent::Notify(frame));
            queue.waker.take()
        };
        self.wake(waker);
    }

    /// Asks the client. Too many questions at once are refused, and those of a client that cannot be asked.
    pub(crate) fn ask(&self, question: ServerRequest) {
        if let Some(relay) = &self.relay {
            self.touched.notify_one();
            return relay.ask(question);
        }
        let waker = {
            let mut queue = lock(&self.queue);
            if !self.may_ask || queue.cancelled || queue.questions >= QUESTIONS_MAX {
                drop(queue);
                return question.refuse();
            }
            queue.questions += 1;
            queue.events.push_back(CallEvent::ServerRequest(question));
            queue.waker.take()
        };
        self.wake(waker);
    }

    fn wake(&self, waker: Option<Waker>) {
        self.touched.notify_one();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn next(&self, cx: &mut Context<'_>) -> Option<CallEvent> {
        let mut queue = lock(&self.queue);
        if queue.cancelled {
            return Some(CallEvent::Cancelled);
        }
        let event = queue.events.pop_front();
        match &event {
            Some(CallEvent::ServerRequest(_)) => queue.questions -= 1,
            Some(_) => {}
            None => queue.waker = Some(cx.waker().clone()),
        }
        event
    }
}

impl Cancel for Outlet {
    fn cancel(&self) {
        let mut queue = lock(&self.queue);
        queue.cancelled = true;
        let (events, waker) = (std::mem::take(&mut queue.events), queue.waker.take());
        drop(queue);
        for event in events {
            if let CallEvent::ServerRequest(question) = event {
                question.refuse();
            }
        }
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn finish(&self) {
        if !self.listens {
            return self.cancel();
        }
        self.finished.store(true, Ordering::Release);
        if let Some(waker) = lock(&self.queue).waker.take() {
            waker.wake();
        }
    }
}

/// The work of a call, which ends with the response.
pub(crate) type Work = Pin<Box<dyn Future<Output = Reply> + Send>>;

/// A call that the client's connection polls in place.
pub(crate) struct Forwarded {
    work: Option<Work>,
    done: Option<Reply>,
    outlet: Arc<Outlet>,
}

impl Forwarded {
    pub(crate) fn new(work: Work, outlet: Arc<Outlet>) -> Forwarded {
        Forwarded { work: Some(work), done: None, outlet }
    }

    /// Polls the work once, so that requests leave in the order in which they came. The response, if there is one already
    /// and nothing comes before it.
    pub(crate) fn begin(&mut self, cx: &mut Context<'_>) -> Option<Reply> {
        self.work(cx);
        if lock(&self.outlet.queue).events.is_empty() { self.done.take() } else { None }
    }

    fn work(&mut self, cx: &mut Context<'_>) {
        if let Some(work) = &mut self.work
            && let Poll::Ready(reply) = work.as_mut().poll(cx)
        {
            self.work = None;
            self.done = Some(reply);
        }
    }
}

impl RunningCall for Forwarded {
    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<CallEvent> {
        loop {
            if let Some(event) = self.outlet.next(cx) {
                if matches!(event, CallEvent::Cancelled) {
                    self.work = None;
                }
                return Poll::Ready(event);
            }
            if let Some(reply) = self.done.take() {
                return Poll::Ready(CallEvent::Done(reply));
            }
            if self.outlet.finished.swap(false, Ordering::AcqRel) {
                self.work = None;
                return Poll::Ready(CallEvent::Done(finished(&self.outlet.id)));
            }
            self.work(cx);
            if self.done.is_none() && lock(&self.outlet.queue).events.is_empty() {
                return Poll::Pending;
            }
        }
    }

    fn canceller(&self) -> Arc<dyn Cancel> {
        self.outlet.clone()
    }
}

impl Drop for Forwarded {
    fn drop(&mut self) {
        // Questions that were not sent have no answer.
        self.outlet.cancel();
    }
}

/// The last message of a stream of changes that ends on this side.
fn finished(id: &Id) -> Reply {
    let result = format!(
        "{{\"resultType\":\"complete\",\"_meta\":{{\"io.modelcontextprotocol/subscriptionId\":{}}}}}",
        id.as_json()
    );
    Reply::with_result(id, result.into())
}
