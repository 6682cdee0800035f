//! A task as its handler sees it: questions, messages, steps.

use crate::error::{Error, Result};
use crate::request_error::{RequestError, RequestErrorKind};
use crate::tasks::link::RunningTask;
use crate::tasks::record::{Kept, Record};
use crate::tasks::storage::{Edit, Live, Stop, TaskError, ask_again, failed};
use linchpin_core::service::{BoxFuture, boxed};
use linchpin_proto::task::{Change, Event, cut};
use linchpin_store::{Append, Fence, Read};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// See the module's documentation.
pub(crate) struct Handled {
    pub(crate) live: Arc<Live>,
    /// Nothing yet of a task that has said, asked and kept nothing.
    inner: Mutex<Option<Box<Inner>>>,
    /// Steps are kept one after the other.
    turn: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct Inner {
    /// How many times this run has asked under a name.
    asked: BTreeMap<String, u32>,
    /// The message that is not written yet, and whether somebody is going to write it.
    message: Option<String>,
    is_writing: bool,
    steps: BTreeMap<String, Box<RawValue>>,
    step_bytes: usize,
    steps_kept: u64,
}

/// A step in the log.
#[derive(Serialize, Deserialize)]
struct Step<'a> {
    #[serde(borrow)]
    key: std::borrow::Cow<'a, str>,
    #[serde(borrow)]
    result: &'a RawValue,
}

impl Handled {
    pub(crate) fn new(live: Arc<Live>) -> Arc<Handled> {
        Arc::new(Handled { live, inner: Mutex::default(), turn: tokio::sync::Mutex::new(()) })
    }

    fn with<T>(&self, look: impl FnOnce(&mut Inner) -> T) -> T {
        look(self.inner.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_default())
    }

    fn log_key(&self) -> String {
        self.live.storage.key("task-steps", &self.live.owner, &self.live.id)
    }

    /// Reads the steps of earlier runs. From then on no older run can keep any.
    pub(crate) async fn recall(&self) -> Result<(), TaskError> {
        let (storage, key) = (&self.live.storage, self.log_key());
        let log = storage.store.log();
        if !matches!(log.append(&key, 1, Vec::new(), self.fence(), self.live.kept()).await?, Append::Stored) {
            return Err(TaskError::Unknown);
        }
        let mut after = 0;
        loop {
            let Read::Entries { entries, .. } = log.read(&key, after, 1 << 20).await? else { return Ok(()) };
            let Some((last, _)) = entries.last() else { return Ok(()) };
            after = *last;
            self.with(|inner| {
                for (_, entry) in &entries {
                    let opened = storage.open_step(&key, entry)?;
                    if let Ok(step) = serde_json::from_slice::<Step<'_>>(&opened) {
                        inner.step_bytes += step.result.get().len();
                        inner.steps.insert(step.key.into_owned(), step.result.to_owned());
                    }
                }
                inner.steps_kept = after;
                Ok::<(), TaskError>(())
            })?;
        }
    }

    /// Each attempt has a fence of its own, which is newer than those of the attempts before.
    fn fence(&self) -> Fence {
        Fence::from_number(u64::from(self.live.look(|record| record.state.attempt)))
    }

    /// This run had asked this before the task was made.
    pub(crate) fn has_asked(&self, name: &str, times: u32) {
        let kept = |nth: &u32| self.live.look(|record| record.state.question(name, *nth).is_some());
        let times = (1..=times).take_while(kept).count();
        self.with(|inner| inner.asked.insert(name.to_owned(), u32::try_from(times).unwrap_or_default()));
    }

    /// Keeps steps that were done before the task was made.
    pub(crate) async fn keep_all(&self, steps: Vec<(String, Box<RawValue>)>) -> Result<()> {
        for (key, result) in steps {
            self.keep_one(&key, result).await?;
        }
        Ok(())
    }

    async fn keep_one(&self, key: &str, result: Box<RawValue>) -> Result<()> {
        let _turn = self.turn.lock().await;
        let (storage, limits) = (&self.live.storage, &self.live.storage.limits.tasks);
        let (next, bytes) = self.with(|inner| (inner.steps_kept + 1, inner.step_bytes + result.get().len()));
        if next > limits.steps_max as u64 || bytes > limits.step_bytes_max {
            let why = match next > limits.steps_max as u64 {
                true => format!("the task did more than {} steps", limits.steps_max),
                false => format!("the results of the task's steps exceed {} bytes", limits.step_bytes_max),
            };
            self.fail(&why).await;
            return Err(Error::tool(why));
        }
        let log_key = self.log_key();
        let step = Step { key: key.into(), result: &result };
        let entry = storage.seal_step(&log_key, serde_json::to_vec(&step)?);
        let log = storage.store.log();
        // Set before the check: `Live::leave` reads it after the task was marked as over.
        self.live.has_kept_steps.store(true, Ordering::SeqCst);
        if self.live.stopped() == Some(Stop::Over) {
            return Err(Error::tool("the task is over"));
        }
        let appended = log.append(&log_key, next, vec![entry], self.fence(), self.live.kept()).await;
        match appended {
            Ok(Append::Stored) => {}
            // Another process runs the task now, and this run is over.
            Ok(Append::Stale(_) | Append::Gap { .. }) => {
                self.live.refresh().await;
                return Err(Error::tool("another process runs this task now"));
            }
            Err(error) => return Err(Error::internal(error)),
        }
        self.with(|inner| {
            (inner.steps_kept, inner.step_bytes) = (next, bytes);
            inner.steps.insert(key.to_owned(), result);
        });
        Ok(())
    }

    /// The task fails, whatever its handler returns.
    async fn fail(&self, why: &str) {
        let mut edit = |record: &mut Record| {
            record.end = Some(Kept::Here(failed(why)));
            record.state.apply(&Event::Fail(why), self.live.storage.now_ms())
        };
        if let Err(error) = self.live.change_as_runner(&mut edit).await {
            tracing::warn!(task = &*self.live.id, %error, "could not mark the task as failed");
        }
    }

    /// Takes the message that is not written yet.
    pub(crate) fn take_message(&self) -> Option<String> {
        self.with(|inner| inner.message.take())
    }

    /// Writes the newest message, and once more while there are newer ones.
    async fn write_messages(self: Arc<Self>) {
        let pause = Duration::from_millis(self.live.storage.limits.tasks.status_ms_min);
        loop {
            let message = self.with(|inner| {
                let message = inner.message.take().filter(|_| self.live.stopped().is_none());
                inner.is_writing = message.is_some();
                message
            });
            let Some(message) = message else { return };
            let mut edit =
                |record: &mut Record| record.state.apply(&Event::Message(&message), self.live.storage.now_ms());
            if let Err(error) = self.live.change_as_runner(&mut edit).await {
                tracing::debug!(task = &*self.live.id, %error, "a task's message could not be written");
            }
            tokio::time::sleep(pause).await;
        }
    }

    async fn asked(
        &self,
        name: &str,
        method: &str,
        params: &RawValue,
        refused: Option<(String, String)>,
    ) -> Result<(String, Box<RawValue>), RequestError> {
        let nth = self.with(|inner| {
            let asked = inner.asked.entry(name.to_owned()).or_default();
            *asked += u32::from(refused.is_none());
            *asked
        });
        if let Some((key, why)) = refused {
            let limits = &self.live.storage.limits.tasks;
            let storage = &self.live.storage;
            self.edit(&mut |record| ask_again(record, (&key, &why), limits, storage.now_ms())).await?;
        }
        let mut withdraw = Withdraw { live: &self.live, key: None };
        loop {
            let changed = self.live.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            let found = self.live.look(|record| {
                record.state.question(name, nth).map(|question| (question.key.clone(), question.answer.clone()))
            });
            match found {
                Some((key, Some(answer))) => {
                    withdraw.key = None;
                    return Ok((key, answer));
                }
                Some((key, None)) => withdraw.key = Some(key),
                None if self.live.stopped().is_some() => {}
                None => {
                    self.ask_first(name, nth, method, params).await?;
                    continue;
                }
            }
            if !self.live.can_be_suspended() {
                changed.await;
                continue;
            }
            let wait = Duration::from_millis(self.live.storage.limits.tasks.suspend_ms);
            if tokio::time::timeout(wait, changed).await.is_err() && self.suspend(name, nth).await {
                // The runner drops the handler where it waits.
                return std::future::pending().await;
            }
        }
    }

    /// Nobody has answered for long: whoever takes the answer starts the task again. `false` if there is one, or a step runs.
    async fn suspend(&self, name: &str, nth: u32) -> bool {
        let mut held = NoSteps { live: &self.live, is_suspended: false };
        self.live.finish_steps();
        if self.live.is_between_steps() {
            // It stays until it is written: perhaps the task is not suspended.
            let message = self.with(|inner| inner.message.clone());
            let mut edit = |record: &mut Record| {
                if record.state.question(name, nth).is_none_or(|question| !question.is_open()) {
                    return Change::None;
                }
                if let Some(message) = &message {
                    let _ = record.state.apply(&Event::Message(message), self.live.storage.now_ms());
                }
                record.suspended = Some(record.state.open().count());
                record.suspensions += 1;
                record.runner = None;
                Change::Changed
            };
            held.is_suspended = matches!(self.live.change_as_runner(&mut edit).await, Ok(Change::Changed));
        }
        if held.is_suspended {
            tracing::debug!(target: "linchpin::task", task = &*self.live.id, "task suspended");
        }
        held.is_suspended
    }

    async fn ask_first(&self, name: &str, nth: u32, method: &str, params: &RawValue) -> Result<(), RequestError> {
        let limits = &self.live.storage.limits.tasks;
        let mut why = None;
        // Who sees the question sees what was said before it.
        let message = self.take_message();
        let change = self
            .edit(&mut |record| {
                why = None;
                if let Some(message) = &message {
                    let _ = record.state.apply(&Event::Message(message), self.live.storage.now_ms());
                }
                if record.state.open().count() >= limits.input_requests_open_max {
                    why = Some(format!(
                        "too many open input requests in this task (limit {})",
                        limits.input_requests_open_max
                    ));
                } else if record.state.asked() >= limits.steps_max {
                    why = Some(format!("too many input requests in this task (limit {})", limits.steps_max));
                } else {
                    return record.state.apply(&Event::Ask { name, nth, method, params }, self.live.storage.now_ms());
                }
                Change::None
            })
            .await?;
        match why {
            Some(why) => Err(RequestError::invalid(why)),
            // The task is over: the handler is dropped where it waits.
            None if change == Change::None => std::future::pending().await,
            None => Ok(()),
        }
    }

    async fn edit(&self, edit: &mut Edit<'_>) -> Result<Change, RequestError> {
        let changed = self.live.change_as_runner(edit).await;
        changed.map_err(|error| RequestError::new(RequestErrorKind::Closed, error.to_string()))
    }
}

/// No step begins while a task is being suspended, nor afterwards.
struct NoSteps<'a> {
    live: &'a Live,
    is_suspended: bool,
}

impl Drop for NoSteps<'_> {
    fn drop(&mut self) {
        if self.is_suspended || self.live.stopped().is_some() || self.live.storage.is_closing() {
            return;
        }
        self.live.go_on_with_steps();
        // This process may have begun to end meanwhile.
        if self.live.storage.is_closing() {
            self.live.finish_steps();
        }
    }
}

/// Withdraws a question that nobody waits for any more.
struct Withdraw<'a> {
    live: &'a Arc<Live>,
    key: Option<String>,
}

impl Drop for Withdraw<'_> {
    fn drop(&mut self) {
        let Some(key) = self.key.take().filter(|_| self.live.stopped().is_none()) else { return };
        let (live, Ok(runtime)) = (self.live.clone(), tokio::runtime::Handle::try_current()) else { return };
        runtime.spawn(boxed(async move {
            let mut edit =
                |record: &mut Record| record.state.apply(&Event::Withdraw { key: &key }, live.storage.now_ms());
            if let Err(error) = live.change_as_runner(&mut edit).await {
                tracing::debug!(%error, "could not withdraw an input request");
            }
        }));
    }
}

/// A handle for the link between call and task.
pub(crate) struct Handle(pub(crate) Arc<Handled>);

impl RunningTask for Handle {
    fn id(&self) -> &str {
        &self.0.live.id
    }

    fn ask<'a>(
        &'a self,
        name: &'a str,
        method: &'a str,
        params: &'a RawValue,
        refused: Option<(String, String)>,
    ) -> BoxFuture<'a, Result<(String, Box<RawValue>), RequestError>> {
        Box::pin(self.0.asked(name, method, params, refused))
    }

    fn say(&self, message: &str) {
        let max = self.0.live.storage.limits.tasks.status_bytes_max;
        let is_written = self.0.with(|inner| {
            inner.message = Some(cut(message, max).to_owned());
            std::mem::replace(&mut inner.is_writing, true)
        });
        if !is_written {
            tokio::spawn(boxed(self.0.clone().write_messages()));
        }
    }

    fn step(&self, key: &str) -> Option<Box<RawValue>> {
        self.0.with(|inner| inner.steps.get(key).cloned())
    }

    fn keep<'a>(&'a self, key: &'a str, result: Box<RawValue>) -> BoxFuture<'a, Result<()>> {
        Box::pin(self.0.keep_one(key, result))
    }
}
