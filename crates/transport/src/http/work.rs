//! The running calls of one POST inside a session: usually one, several for a batch.

use super::calls::{Calls, Counted};
use super::session::HttpSession;
use linchpin_core::{Cancel, RunningCall};
use linchpin_proto::driver::{Out, Unfinished};
use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll};

/// Calls that are polled together. Dropping them cancels them and notifies the engine.
pub(crate) struct Work {
    session: Arc<HttpSession>,
    calls: Vec<Call>,
    /// The output of a step after its first frame.
    queued: VecDeque<Out>,
}

struct Call {
    // Dropped first: the engine learns of the end, then the call goes.
    unfinished: Unfinished<Arc<HttpSession>>,
    cancel: Arc<dyn Cancel>,
    counted: Counted,
}

impl Work {
    /// No calls yet.
    pub(crate) fn new(session: Arc<HttpSession>) -> Work {
        Work { session, calls: Vec::new(), queued: VecDeque::new() }
    }

    /// Adds a call that is still running.
    pub(crate) fn add(
        &mut self,
        unfinished: Unfinished<Arc<HttpSession>>,
        call: Box<dyn RunningCall>,
        cancel: Arc<dyn Cancel>,
        calls: &Arc<Calls>,
    ) {
        let counted = Counted::new(call, cancel.clone(), calls);
        self.calls.push(Call { unfinished, cancel, counted });
    }

    /// Whether no call is left.
    pub(crate) fn is_empty(&self) -> bool {
        self.calls.is_empty() && self.queued.is_empty()
    }

    /// The session the calls belong to.
    pub(crate) fn session(&self) -> &Arc<HttpSession> {
        &self.session
    }

    /// Cancels the calls from elsewhere.
    pub(crate) fn cancellers(&self) -> Box<[Arc<dyn Cancel>]> {
        self.calls.iter().map(|c| c.cancel.clone()).collect()
    }

    /// What comes next; `None` when all calls have ended. `heard` says whether a question can still reach the client.
    pub(crate) fn poll_next(&mut self, heard: bool, cx: &mut Context<'_>) -> Poll<Option<Out>> {
        loop {
            if let Some(out) = self.queued.pop_front() {
                return Poll::Ready(Some(out));
            }
            if self.calls.is_empty() {
                return Poll::Ready(None);
            }
            let queued = &mut self.queued;
            let ready = self.calls.iter_mut().enumerate().find_map(|(at, Call { unfinished, counted, .. })| {
                match unfinished.poll(&mut *counted.call, heard, |out| queued.push_back(out), cx) {
                    Poll::Ready(ended) => Some((at, ended)),
                    Poll::Pending => None,
                }
            });
            let Some((at, ended)) = ready else { return Poll::Pending };
            if ended {
                self.calls.swap_remove(at);
                self.session.save();
            }
        }
    }
}

/// Lets calls run to their end when their client disconnected before it had a stream to resume: their output is lost,
/// their effects are not.
pub(crate) fn run_unheard(mut work: Work) {
    // Without a runtime they cannot run, and end here.
    if let Ok(runtime) = tokio::runtime::Handle::try_current() {
        tracing::debug!("a client disconnected; its call continues");
        runtime.spawn(async move { while std::future::poll_fn(|cx| work.poll_next(false, cx)).await.is_some() {} });
    }
}
