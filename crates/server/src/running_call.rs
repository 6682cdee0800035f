//! A running handler: polled in place, protected against panics, timeouts and floods, and cancelled by dropping it.

use crate::chain::Chain;
use crate::cx::{CallState, Cx, Out};
use crate::shared::Shared;
use crate::target::CallStart as Call;
use linchpin_core::message::Request;
use linchpin_core::reply::MissingScopes;
use linchpin_core::server_request::REQUIRED_META;
use linchpin_core::service::{BoxFuture, CallStart};
use linchpin_core::{CallEvent, Cancel, Reply, ReplyKind, RunningCall};
use linchpin_types::error::code;
use serde_json::{Map, Value};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::time::Sleep;

/// Polls a started call once. A call that is ready at once and sent nothing costs no more than its own future.
/// `name` is that of its handler, for the log.
pub(crate) fn launch(
    shared: &Arc<Shared>,
    request: &Arc<Request>,
    call: Call,
    name: Option<&Arc<str>>,
    task: &mut Context<'_>,
) -> CallStart {
    match refuse_busy(shared, request) {
        Some(refused) => CallStart::Done(refused),
        None => polled(shared, (request, name), call, None, true, task),
    }
}

/// Rejects a call while too many others run. Asked before it runs, because a half-run call could not be retried. Concurrent
/// threads may exceed the limit by their number.
pub(crate) fn refuse_busy(shared: &Shared, request: &Request) -> Option<Reply> {
    let limit = shared.limits.calls.concurrent_max;
    (shared.calls.load(Ordering::Relaxed) >= limit).then(|| {
        let why = format!("the server is busy (limit of {limit} calls at once); try again");
        Reply::error(Some(&request.id), code::INTERNAL_ERROR, &why, None)
    })
}

/// Like [`launch`], for a call that waits for something with a time limit of its own.
#[cfg(feature = "tasks")]
pub(crate) fn launch_without_limit(
    shared: &Arc<Shared>,
    request: &Arc<Request>,
    call: Call,
    task: &mut Context<'_>,
) -> CallStart {
    polled(shared, (request, None), call, None, false, task)
}

/// Like [`launch`], for the layers around a request. Limits of number and time are those of the request at their end.
pub(crate) fn launch_chain(
    shared: &Arc<Shared>,
    request: &Arc<Request>,
    call: Call,
    chain: Arc<Chain>,
    task: &mut Context<'_>,
) -> CallStart {
    polled(shared, (request, None), call, Some(chain), false, task)
}

fn polled(
    shared: &Arc<Shared>,
    (request, name): (&Arc<Request>, Option<&Arc<str>>),
    call: Call,
    chain: Option<Arc<Chain>>,
    limited: bool,
    task: &mut Context<'_>,
) -> CallStart {
    let Call { mut future, cx } = call;
    let done = match poll(shared, request, name.map(|name| &**name), &mut future, task) {
        Poll::Ready(reply) => {
            let reply = settle(shared, cx.as_ref(), reply);
            let Some(cx) = &cx else { return CallStart::Done(reply) };
            if cx.0.queue().out.is_empty() {
                cx.0.close();
                return CallStart::Done(reply);
            }
            Some(reply)
        }
        Poll::Pending => None,
    };
    let counted = chain.is_none().then(|| Counted::new(shared));
    let limited = limited && done.is_none();
    let stop = match (&cx, chain) {
        (_, Some(chain)) => Stop::Chain(chain),
        (Some(cx), None) => Stop::Call(cx.0.clone()),
        (None, None) => Stop::Flag(Arc::default()),
    };
    let deadline = limited.then(|| Box::pin(tokio::time::sleep(Duration::from_millis(shared.limits.calls.run_ms_max))));
    let future = done.is_none().then_some(future);
    CallStart::Running(Box::new(Running {
        shared: shared.clone(),
        about: About { request: request.clone(), name: name.cloned() },
        future,
        done,
        cx,
        stop,
        deadline,
        _counted: counted,
    }))
}

/// What a running call is about.
pub(crate) struct About {
    pub(crate) request: Arc<Request>,
    pub(crate) name: Option<Arc<str>>,
}

/// Polls a handler. Its panics are caught.
pub(crate) fn poll(
    shared: &Shared,
    request: &Request,
    name: Option<&str>,
    future: &mut BoxFuture<'static, Reply>,
    task: &mut Context<'_>,
) -> Poll<Reply> {
    match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(task))) {
        Ok(polled) => polled,
        Err(panic) => {
            let what = panic
                .downcast_ref::<&str>()
                .map(|s| (*s).to_owned())
                .or_else(|| panic.downcast_ref::<String>().cloned());
            let what = what.as_deref().unwrap_or("not a string");
            tracing::error!(method = request.method.as_str(), name, panic = what, "a handler panicked");
            Poll::Ready(shared.failed(request, "it stopped unexpectedly because of a bug in the server"))
        }
    }
}

/// Turns the response of a call that needs input into `input_required`.
///
/// A handler that went on without the input is asked for it too: sessions would have waited there. Where the client cannot
/// give the input, what the handler did without it counts. Revisions with sessions have no error for a capability that the
/// client lacks: the tool's error says it, and its `_meta` for bridges.
pub(crate) fn settle(shared: &Shared, cx: Option<&Cx>, mut reply: Reply) -> Reply {
    if let Some(cx) = cx.filter(|_| reply.is_error())
        && let Some(required) = cx.round_trips().scopes.take()
    {
        let missing = MissingScopes { required, principal: cx.principal().cloned() };
        return Reply::missing_scopes(&cx.0.request.id, missing);
    }
    match cx {
        Some(cx) if cx.caller().features().multi_round_trip => {
            let mut round_trips = cx.round_trips();
            let needed = if reply.is_error() { round_trips.pending() } else { round_trips.asks() };
            if needed { round_trips.reply(&cx.0.request, cx.principal(), shared) } else { reply }
        }
        Some(cx) if reply.kind() == ReplyKind::ToolError => {
            if let Some(missing) = cx.round_trips().missing() {
                reply.edit_exactly(|result| {
                    let meta = result.entry("_meta").or_insert_with(|| Value::Object(Map::new()));
                    meta.as_object_mut().map(|meta| meta.insert(REQUIRED_META.to_owned(), missing));
                });
            }
            reply
        }
        _ => reply,
    }
}

struct Running {
    shared: Arc<Shared>,
    about: About,
    future: Option<BoxFuture<'static, Reply>>,
    done: Option<Reply>,
    cx: Option<Cx>,
    stop: Stop,
    deadline: Option<Pin<Box<Sleep>>>,
    _counted: Option<Counted>,
}

/// Counts a running call until it is dropped.
pub(crate) struct Counted(Arc<Shared>);

impl Counted {
    pub(crate) fn new(shared: &Arc<Shared>) -> Counted {
        shared.calls.fetch_add(1, Ordering::Relaxed);
        Counted(shared.clone())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        if self.0.calls.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.idle.notify_waiters();
        }
    }
}

/// Waits until no call runs. Calls that complete on their first poll are not waited for.
pub(crate) async fn idle(shared: &Shared) {
    loop {
        let mut idle = std::pin::pin!(shared.idle.notified());
        // Before the look, so that nothing is missed after it.
        idle.as_mut().enable();
        if shared.calls.load(Ordering::Acquire) == 0 {
            return;
        }
        idle.await;
    }
}

#[derive(Clone)]
enum Stop {
    Call(Arc<CallState>),
    Chain(Arc<Chain>),
    Flag(Arc<Flag>),
}

impl RunningCall for Running {
    fn poll_event(&mut self, task: &mut Context<'_>) -> Poll<CallEvent> {
        loop {
            if self.stopped(task) {
                self.future = None;
                return Poll::Ready(CallEvent::Cancelled);
            }
            if let Some(out) = self.cx.as_ref().and_then(|cx| cx.0.queue().out.pop_front()) {
                return Poll::Ready(match out {
                    Out::Notify(frame) => CallEvent::Notify(frame),
                    Out::ServerRequest(ask) => CallEvent::ServerRequest(ask),
                    Out::Pause(ms) => CallEvent::Pause(ms),
                });
            }
            if let Some(reply) = self.done.take() {
                return Poll::Ready(CallEvent::Done(reply));
            }
            let Some(future) = &mut self.future else { return Poll::Ready(CallEvent::Cancelled) };
            let about = &self.about;
            if let Poll::Ready(reply) = poll(&self.shared, &about.request, about.name.as_deref(), future, task) {
                self.future = None;
                self.done = Some(settle(&self.shared, self.cx.as_ref(), reply));
                continue;
            }
            if self.deadline.as_mut().is_some_and(|d| d.as_mut().poll(task).is_ready()) {
                self.future = None;
                let why =
                    format!("it took longer than the server's limit of {} ms", self.shared.limits.calls.run_ms_max);
                self.done = Some(self.shared.failed(&self.about.request, &why));
                continue;
            }
            // The handler may have sent a message in this poll.
            if self.cx.as_ref().is_none_or(|cx| cx.0.queue().out.is_empty()) {
                return Poll::Pending;
            }
        }
    }

    fn canceller(&self) -> Arc<dyn Cancel> {
        match &self.stop {
            Stop::Call(call) => call.clone(),
            Stop::Chain(chain) => chain.clone(),
            Stop::Flag(flag) => flag.clone(),
        }
    }
}

impl Running {
    fn stopped(&self, task: &Context<'_>) -> bool {
        match (&self.stop, &self.cx) {
            (Stop::Flag(flag), _) => flag.poll(task),
            (Stop::Call(_) | Stop::Chain(_), Some(cx)) => {
                cx.0.queue().waker = Some(task.waker().clone());
                cx.is_cancelled()
            }
            (Stop::Call(_) | Stop::Chain(_), None) => false,
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.future = None;
        if let Some(cx) = &self.cx {
            cx.0.close();
        }
    }
}

/// A cancellation that wakes the polling task.
#[derive(Default)]
pub(crate) struct Flag {
    set: AtomicBool,
    waker: Mutex<Option<Waker>>,
}

impl Flag {
    /// Returns whether it is set, and registers the task to be woken.
    pub(crate) fn poll(&self, task: &Context<'_>) -> bool {
        if self.set.load(Ordering::Acquire) {
            return true;
        }
        let mut waker = self.waker.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *waker {
            Some(waker) => waker.clone_from(task.waker()),
            none => *none = Some(task.waker().clone()),
        }
        drop(waker);
        self.set.load(Ordering::Acquire)
    }
}

impl Cancel for Flag {
    fn cancel(&self) {
        self.set.store(true, Ordering::Release);
        if let Some(waker) = self.waker.lock().unwrap_or_else(PoisonError::into_inner).take() {
            waker.wake();
        }
    }
}
