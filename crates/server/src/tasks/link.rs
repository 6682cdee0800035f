//! Between a call and the task that it may become. It is below the context of calls, and knows neither stores nor runners.

use crate::error::Result;
use crate::request_error::RequestError;
use crate::tasks::kept_headers::KeptHeaders;
use crate::tasks::options::Mode;
use bytes::Bytes;
use http::HeaderMap;
use linchpin_core::json::write_str;
use linchpin_core::service::BoxFuture;
use serde_json::value::RawValue;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// How often a step that may not begin looks whether it may.
const LEAVING_AGAIN: Duration = Duration::from_millis(50);

/// A task that runs, as its handler sees it.
pub(crate) trait RunningTask: Send + Sync {
    fn id(&self) -> &str;

    /// Asks the client, and waits for the answer. `refused` is the key of the last answer to this question, and why it did not
    /// do. Returns the key on the wire and the answer: an object, or the client's error as `[code, message]`.
    fn ask<'a>(
        &'a self,
        name: &'a str,
        method: &'a str,
        params: &'a RawValue,
        refused: Option<(String, String)>,
    ) -> BoxFuture<'a, Result<(String, Box<RawValue>), RequestError>>;

    /// Sets the message of the task's status.
    fn say(&self, message: &str);

    /// The result of a step that was done, by this run of the handler or an earlier one.
    fn step(&self, key: &str) -> Option<Box<RawValue>>;

    /// Keeps the result of a step.
    fn keep<'a>(&'a self, key: &'a str, result: Box<RawValue>) -> BoxFuture<'a, Result<()>>;
}

/// What became of a call.
#[derive(Clone, Default)]
enum Fate {
    /// It may still be answered directly.
    #[default]
    Open,
    Task(Arc<dyn RunningTask>),
    /// It stays a call, because no task could be made.
    Call,
}

/// See the module's documentation.
pub(crate) struct Link {
    pub(crate) mode: Mode,
    /// The headers of its request.
    headers: KeptHeaders,
    fate: Mutex<Fate>,
    decided: Notify,
    /// The handler wants the task now.
    wanted: AtomicBool,
    /// The future has moved: the call can no longer be cancelled.
    moved: AtomicBool,
    /// Steps that were done before the task was made.
    steps: Mutex<Vec<(String, Box<RawValue>)>>,
    pub(crate) running: Arc<RunningSteps>,
}

/// How many steps of a task run at the moment, and whether another one may begin.
#[derive(Default)]
pub(crate) struct RunningSteps {
    count: AtomicUsize,
    is_leaving: AtomicBool,
}

impl RunningSteps {
    /// A step begins. It never does in a process that ends, or once the task is suspended: whoever goes on with the task does
    /// it.
    pub(crate) async fn begin(self: &Arc<Self>) -> RunningStep {
        loop {
            // Counted first: who leaves looks at both in the other order.
            let step = RunningStep(self.clone());
            self.count.fetch_add(1, Ordering::SeqCst);
            if !self.is_leaving.load(Ordering::SeqCst) {
                return step;
            }
            drop(step);
            tokio::time::sleep(LEAVING_AGAIN).await;
        }
    }

    /// No other step begins.
    pub(crate) fn leave(&self) {
        self.is_leaving.store(true, Ordering::SeqCst);
    }

    /// Others begin after all.
    pub(crate) fn stay(&self) {
        self.is_leaving.store(false, Ordering::SeqCst);
    }

    pub(crate) fn are_done(&self) -> bool {
        self.count.load(Ordering::SeqCst) == 0
    }
}

/// A step that runs, until this is dropped.
pub(crate) struct RunningStep(Arc<RunningSteps>);

impl Drop for RunningStep {
    fn drop(&mut self) {
        self.0.count.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Link {
    pub(crate) fn new(mode: Mode, headers: &HeaderMap) -> Link {
        Link {
            mode,
            headers: KeptHeaders::new(headers),
            fate: Mutex::default(),
            decided: Notify::new(),
            wanted: AtomicBool::new(mode == Mode::Must),
            moved: AtomicBool::new(false),
            steps: Mutex::default(),
            running: Arc::default(),
        }
    }

    /// The headers of the call's request.
    pub(crate) fn headers(&self) -> &HeaderMap {
        self.headers.map()
    }

    fn fate(&self) -> MutexGuard<'_, Fate> {
        self.fate.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The task, if it was made.
    pub(crate) fn task(&self) -> Option<Arc<dyn RunningTask>> {
        match &*self.fate() {
            Fate::Task(task) => Some(task.clone()),
            Fate::Open | Fate::Call => None,
        }
    }

    /// Decides what becomes of the call. Without a task it stays one.
    pub(crate) fn decide(&self, task: Option<Arc<dyn RunningTask>>) {
        *self.fate() = task.map_or(Fate::Call, Fate::Task);
        self.decided.notify_waiters();
    }

    /// Whether the task is to be made now.
    pub(crate) fn is_wanted(&self) -> bool {
        self.wanted.load(Ordering::Acquire) && matches!(*self.fate(), Fate::Open)
    }

    /// Whether the call has moved to where it runs as a task.
    pub(crate) fn has_moved(&self) -> bool {
        self.moved.load(Ordering::Acquire)
    }

    pub(crate) fn set_moved(&self, moved: bool) {
        self.moved.store(moved, Ordering::Release);
    }

    /// Makes the task, unless there is one already. `wake` wakes who polls the call. `None` if it cannot be made.
    pub(crate) async fn make(&self, wake: impl Fn()) -> Option<Arc<dyn RunningTask>> {
        loop {
            let decided = self.decided.notified();
            tokio::pin!(decided);
            decided.as_mut().enable();
            match &*self.fate() {
                Fate::Task(task) => return Some(task.clone()),
                Fate::Call => return None,
                Fate::Open => {}
            }
            self.wanted.store(true, Ordering::Release);
            wake();
            decided.await;
        }
    }

    /// The result of a step that was done before the task was made.
    pub(crate) fn early_step(&self, key: &str) -> Option<Box<RawValue>> {
        let steps = self.steps.lock().unwrap_or_else(PoisonError::into_inner);
        steps.iter().find(|(known, _)| known == key).map(|(_, result)| result.clone())
    }

    /// Keeps the result of a step until the task is made.
    pub(crate) fn keep_early(&self, key: &str, result: Box<RawValue>) {
        self.steps.lock().unwrap_or_else(PoisonError::into_inner).push((key.to_owned(), result));
    }

    /// The steps, for the task that is being made.
    pub(crate) fn steps(&self) -> Vec<(String, Box<RawValue>)> {
        self.steps.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The first `count` steps are the task's now.
    pub(crate) fn drop_steps(&self, count: usize) {
        self.steps.lock().unwrap_or_else(PoisonError::into_inner).drain(..count);
    }
}

/// A notification with parameters, and with the `_meta` that names the task to which it belongs.
pub(crate) fn related(frame: &Bytes, id: &str) -> Bytes {
    let Some(open) = frame.strip_suffix(b"}}") else { return frame.clone() };
    let mut out = open.to_vec();
    out.extend_from_slice(b",\"_meta\":{\"io.modelcontextprotocol/related-task\":{\"taskId\":");
    write_str(&mut out, id);
    out.extend_from_slice(b"}}}}");
    out.into()
}
