//! A handler on its way: polled in place, guarded against panics, deadlines and floods, and dropped to cancel.

use crate::call::Started as Call;
use crate::core::Core;
use crate::cx::{CallState, Cx, Out};
use linchpin_proto::frame::Request;
use linchpin_proto::service::{BoxFuture, Started};
use linchpin_proto::{Cancel, Exchange, Id, Method, Reply, Step, Wire};
use linchpin_types::error::code;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::time::Sleep;

/// Polls a started call once. A call that is ready and sent nothing costs no more than its own future.
pub(crate) fn launch(core: &Arc<Core>, request: &Request, call: Call, task: &mut Context<'_>) -> Started {
    let Call { mut future, cx, name } = call;
    let about = About { id: request.id.clone(), wire: request.caller.wire(), method: request.method, name };
    // Refused before it runs: half a call could not be tried again. Threads that pass here together may exceed the limit by
    // their number.
    if core.calls.load(Ordering::Relaxed) >= core.limits.calls_max {
        let why = format!("the server is busy (limit of {} calls at once); try again", core.limits.calls_max);
        return Started::Done(Reply::error(Some(&about.id), code::INTERNAL_ERROR, &why, None));
    }
    let done = match poll(core, &about, &mut future, task) {
        Poll::Ready(reply) => {
            let reply = settle(core, cx.as_ref(), reply);
            let Some(cx) = &cx else { return Started::Done(reply) };
            if cx.0.queue().out.is_empty() {
                cx.0.close();
                return Started::Done(reply);
            }
            Some(reply)
        }
        Poll::Pending => None,
    };
    core.calls.fetch_add(1, Ordering::Relaxed);
    let stop = match &cx {
        Some(cx) => Stop::Call(cx.0.clone()),
        None => Stop::Flag(Arc::default()),
    };
    let deadline =
        (done.is_none()).then(|| Box::pin(tokio::time::sleep(Duration::from_millis(core.limits.call_ms_max))));
    let future = done.is_none().then_some(future);
    Started::Running(Box::new(Running { core: core.clone(), about, future, done, cx, stop, deadline }))
}

struct About {
    id: Id,
    wire: &'static Wire,
    method: Method,
    name: Option<Arc<str>>,
}

fn poll(core: &Core, about: &About, future: &mut BoxFuture<'static, Reply>, task: &mut Context<'_>) -> Poll<Reply> {
    match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(task))) {
        Ok(polled) => polled,
        Err(panic) => {
            let what = panic
                .downcast_ref::<&str>()
                .map(|s| (*s).to_owned())
                .or_else(|| panic.downcast_ref::<String>().cloned());
            let (name, what) = (about.name.as_deref(), what.as_deref().unwrap_or("not a string"));
            tracing::error!(method = %about.method, name, panic = what, "a handler panicked");
            Poll::Ready(core.failed(
                &about.id,
                about.wire,
                about.method,
                "it stopped unexpectedly because of a bug in the server",
            ))
        }
    }
}

/// An answer that failed only because the client must first be asked becomes that question.
fn settle(core: &Core, cx: Option<&Cx>, reply: Reply) -> Reply {
    match cx {
        Some(cx) if reply.is_error() && cx.caller().wire().elicits_in_rounds => {
            let mut rounds = cx.rounds();
            if rounds.pending() { rounds.reply(&cx.0.request, cx.principal(), core) } else { reply }
        }
        _ => reply,
    }
}

struct Running {
    core: Arc<Core>,
    about: About,
    future: Option<BoxFuture<'static, Reply>>,
    done: Option<Reply>,
    cx: Option<Cx>,
    stop: Stop,
    deadline: Option<Pin<Box<Sleep>>>,
}

#[derive(Clone)]
enum Stop {
    Call(Arc<CallState>),
    Flag(Arc<Flag>),
}

impl Exchange for Running {
    fn poll_step(&mut self, task: &mut Context<'_>) -> Poll<Step> {
        loop {
            if self.stopped(task) {
                self.future = None;
                return Poll::Ready(Step::Cancelled);
            }
            if let Some(out) = self.cx.as_ref().and_then(|cx| cx.0.queue().out.pop_front()) {
                return Poll::Ready(match out {
                    Out::Notify(frame) => Step::Notify(frame),
                    Out::Ask(ask) => Step::Ask(ask),
                    Out::Pause(ms) => Step::Pause(ms),
                });
            }
            if let Some(reply) = self.done.take() {
                return Poll::Ready(Step::Done(reply));
            }
            let Some(future) = &mut self.future else { return Poll::Ready(Step::Cancelled) };
            if let Poll::Ready(reply) = poll(&self.core, &self.about, future, task) {
                self.future = None;
                self.done = Some(settle(&self.core, self.cx.as_ref(), reply));
                continue;
            }
            if self.deadline.as_mut().is_some_and(|d| d.as_mut().poll(task).is_ready()) {
                self.future = None;
                let why = format!("it took longer than the server's limit of {} ms", self.core.limits.call_ms_max);
                self.done = Some(self.core.failed(&self.about.id, self.about.wire, self.about.method, &why));
                continue;
            }
            // The handler may have sent something in this very poll.
            if self.cx.as_ref().is_none_or(|cx| cx.0.queue().out.is_empty()) {
                return Poll::Pending;
            }
        }
    }

    fn canceller(&self) -> Arc<dyn Cancel> {
        match &self.stop {
            Stop::Call(call) => call.clone(),
            Stop::Flag(flag) => flag.clone(),
        }
    }
}

impl Running {
    fn stopped(&self, task: &Context<'_>) -> bool {
        match (&self.stop, &self.cx) {
            (Stop::Flag(flag), _) => flag.poll(task),
            (Stop::Call(call), Some(cx)) => {
                call.queue().waker = Some(task.waker().clone());
                cx.is_cancelled()
            }
            (Stop::Call(_), None) => false,
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.core.calls.fetch_sub(1, Ordering::Relaxed);
        self.future = None;
        if let Some(cx) = &self.cx {
            cx.0.close();
        }
    }
}

/// A cancellation that wakes whoever polls.
#[derive(Default)]
pub(crate) struct Flag {
    set: AtomicBool,
    waker: Mutex<Option<Waker>>,
}

impl Flag {
    /// Whether it is set; the task is woken when that changes.
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
