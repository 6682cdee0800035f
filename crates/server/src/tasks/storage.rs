//! Tasks in the store, and those that run here.
//!
//! Every change of a task is one compare-and-swap of its record, so that of an end and a cancellation exactly one wins,
//! whichever process it comes from.

use crate::digest::digest;
use crate::mrtr::{Answered, now_ms};
use crate::shared::random;
use crate::tasks::capacity::{Capacity, Place, Slot, Victim};
use crate::tasks::join::join_writes;
use crate::tasks::link::RunningSteps;
use crate::tasks::options::{IsRevoked, Tasks};
use crate::tasks::owner::{self, Owner};
use crate::tasks::record::{Call, INLINE_BYTES_MAX, Kept, Record, Runner};
use bytes::Bytes;
use linchpin_core::limits::TaskLimits;
use linchpin_core::service::boxed;
use linchpin_core::{Limits, ServerChange, Session, render};
use linchpin_proto::task::{self, Change, End, Event, FETCH_MS_MIN, State};
use linchpin_store::{Clock, Expect, Kv, Put, Rev, Store};
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::sync::{Notify, OnceCell};

/// The pauses between two attempts to write what must be written.
pub(crate) const PAUSE_MIN: Duration = Duration::from_millis(100);
pub(crate) const PAUSE_MAX: Duration = Duration::from_secs(5);

/// Why something could not be done with a task.
#[derive(Debug)]
pub(crate) enum TaskError {
    /// There is no such task, or not for this owner.
    Unknown,
    /// A limit, in words for the peer.
    Busy(String),
    /// The store failed. Only the log says why.
    Store,
}

impl From<linchpin_store::Error> for TaskError {
    fn from(error: linchpin_store::Error) -> TaskError {
        tracing::error!(%error, "the store of tasks failed");
        TaskError::Store
    }
}

impl fmt::Display for TaskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TaskError::Unknown => "unknown task",
            TaskError::Busy(why) => why,
            TaskError::Store => "the store of tasks cannot be reached; try again",
        })
    }
}

/// The time of tokio's clock, so that tests can move it.
struct TokioClock;

impl Clock for TokioClock {
    fn now(&self) -> Duration {
        Duration::from_millis(now_ms())
    }
}

/// The tasks of one server.
pub(crate) struct Storage {
    pub(crate) store: Store,
    kv: Arc<dyn Kv>,
    /// What keys begin with, after their space: the server's name, as a digest.
    server: String,
    pub(crate) limits: Arc<Limits>,
    pub(crate) node: Box<str>,
    /// What the store's time is ahead of this process's.
    pub(crate) clock_ms: AtomicI64,
    pub(crate) has_clock: OnceCell<()>,
    pub(crate) is_listed: OnceCell<()>,
    runs: AtomicU64,
    live: Mutex<HashMap<Arc<str>, Arc<Live>>>,
    pub(crate) capacity: Arc<Capacity>,
    polls: Mutex<Polls>,
    /// Questions that some `tasks/result` is asking, by task and key.
    pub(crate) asking: Mutex<HashSet<(String, String)>>,
    is_closing: AtomicBool,
    /// Whether somebody looks after tasks of processes that have died.
    pub(crate) is_tended: AtomicBool,
    /// Whether somebody's tasks are to end.
    pub(crate) is_revoked: Option<IsRevoked>,
}

#[derive(Default)]
struct Polls {
    second: u64,
    counts: HashMap<Box<str>, u32>,
}

/// What a task is made of.
pub(crate) struct NewTask {
    pub(crate) owner: Owner,
    pub(crate) tool: Box<str>,
    pub(crate) revision: u8,
    pub(crate) ttl_ms: u64,
    /// How it is started again, if it may be.
    pub(crate) again: Option<Call>,
    /// Whether it may be suspended.
    pub(crate) suspends: bool,
    /// What the rounds before have answered, for a handler that is started again.
    pub(crate) answered: Vec<Answered>,
}

/// A task that runs in this process.
pub(crate) struct Live {
    pub(crate) storage: Arc<Storage>,
    pub(crate) id: Arc<str>,
    pub(crate) owner: Owner,
    key: Arc<str>,
    /// The number of this run among those of this process.
    run: u64,
    held: Mutex<(Arc<Record>, Rev)>,
    /// Changes of this process are made one after the other.
    turn: tokio::sync::Mutex<()>,
    /// The record has changed.
    pub(crate) changed: Notify,
    /// Wakes the runner, so that it looks why it should stop.
    waker: Mutex<Option<Waker>>,
    stopped: AtomicU8,
    place: Place,
    slot: Mutex<Option<Slot>>,
    /// The session that made it, where it is told of the status.
    session: OnceLock<Weak<Session>>,
    /// The steps of its handler.
    steps: OnceLock<Arc<RunningSteps>>,
    /// Whether it may have steps in the store.
    pub(crate) has_kept_steps: AtomicBool,
}

/// Why a task stops that has not ended by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Stop {
    /// It was cancelled, or another process runs it: nothing more is written.
    Over = 1,
    /// This process ends.
    Leave = 2,
}

/// An edit of a record: what changes in it.
pub(crate) type Edit<'a> = dyn FnMut(&mut Record) -> Change + Send + 'a;

impl Storage {
    pub(crate) fn new(tasks: Option<&Tasks>, server: &str, limits: &Arc<Limits>) -> Storage {
        let memory = || Store::builder().clock(Arc::new(TokioClock)).memory();
        let store = tasks.and_then(|tasks| tasks.store.clone()).unwrap_or_else(memory).durable();
        // What is in this process's memory need not be sealed from it.
        let kv = if store.kind() == "memory" { store.kv() } else { store.sealed() }.clone();
        let node = random::<8>().iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        Storage {
            kv,
            store,
            server: digest(server),
            limits: limits.clone(),
            node: node.into(),
            clock_ms: AtomicI64::new(0),
            has_clock: OnceCell::new(),
            is_listed: OnceCell::new(),
            runs: AtomicU64::new(0),
            live: Mutex::default(),
            capacity: Arc::default(),
            polls: Mutex::default(),
            asking: Mutex::default(),
            is_closing: AtomicBool::new(false),
            is_tended: AtomicBool::new(false),
            is_revoked: tasks.and_then(|tasks| tasks.is_revoked.clone()),
        }
    }

    /// Whether tasks outlive this process.
    pub(crate) fn outlives(&self) -> bool {
        self.store.kind() != "memory"
    }

    fn live(&self) -> MutexGuard<'_, HashMap<Arc<str>, Arc<Live>>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The tasks that run here.
    pub(crate) fn running(&self) -> Vec<Arc<Live>> {
        self.live().values().cloned().collect()
    }

    /// A key of a task in a space: `task`, or `task-` and what it is.
    pub(crate) fn key(&self, space: &str, owner: &Owner, id: &str) -> String {
        [space, "/", &self.server, "/", owner.as_str(), "/", id].concat()
    }

    /// What the keys of this server begin with in a space.
    pub(crate) fn prefix(&self, space: &str) -> String {
        format!("{space}/{}/", self.server)
    }

    /// The topic of a task.
    pub(crate) fn topic(&self, id: &str) -> String {
        ["task-topic/", &self.server, "/", id].concat()
    }

    /// The topic of a process: somebody else has changed one of its tasks.
    pub(crate) fn node_topic(&self, node: &str) -> String {
        format!("task-topic/{}/node/{node}", self.server)
    }

    /// No new tasks from now on.
    pub(crate) fn close(&self) {
        self.is_closing.store(true, Ordering::Release);
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.is_closing.load(Ordering::Acquire)
    }

    pub(crate) fn next_runner(&self) -> Runner {
        Runner { node: self.node.clone(), run: self.runs.fetch_add(1, Ordering::Relaxed) }
    }

    /// Counts a look at a task. The error says how long to wait between two.
    pub(crate) fn polled(&self, id: &str) -> bool {
        let second = now_ms() / 1_000;
        let mut polls = self.polls.lock().unwrap_or_else(PoisonError::into_inner);
        if polls.second != second {
            *polls = Polls { second, counts: HashMap::new() };
        }
        match polls.counts.get_mut(id) {
            Some(count) => {
                *count += 1;
                *count <= self.limits.tasks.polls_per_second_max
            }
            None => {
                polls.counts.insert(id.into(), 1);
                true
            }
        }
    }

    /// Makes a task that runs here.
    pub(crate) async fn create(self: &Arc<Self>, new: NewTask, slot: Slot) -> Result<Arc<Live>, TaskError> {
        if self.is_closing() {
            return Err(TaskError::Busy("the server is shutting down".to_owned()));
        }
        self.know_clock().await?;
        self.be_listed().await?;
        let now = self.now_ms();
        let limits = &self.limits.tasks;
        let (id, runner): (Arc<str>, _) = (owner::new_id().into(), self.next_runner());
        let run = runner.run;
        let state = begun(State::new(now, new.ttl_ms), &new.answered, limits);
        let kept = self.capacity.keep(&new.owner, &id, state.deleted_ms(), now, limits);
        let (place, victim) = kept.map_err(TaskError::Busy)?;
        if let Some(victim) = victim
            && let Err(error) = self.delete_victim(&victim).await
        {
            self.capacity.forget(&new.owner, place);
            self.capacity.found(&victim.owner, &victim.id, now.saturating_add(FETCH_MS_MIN), true);
            return Err(error);
        }
        let record = Record {
            state,
            tool: new.tool,
            revision: new.revision,
            runner: Some(runner),
            resumable: new.again.is_some(),
            suspends: new.suspends && new.again.is_some(),
            suspended: None,
            suspensions: 0,
            end: None,
        };
        let key: Arc<str> = self.key("task", &new.owner, &id).into();
        let ttl = Duration::from_millis(record.state.deleted_ms() - now);
        let again: linchpin_store::BoxFuture<'_, Result<(), linchpin_store::Error>> = Box::pin(async {
            let Some(call) = &new.again else { return Ok(()) };
            let bytes = serde_json::to_vec(call).unwrap_or_default();
            let key = self.key("task-call", &new.owner, &id);
            self.kv.put(&key, bytes.into(), Expect::Any, ttl).await.map(drop)
        });
        // Both are on the disk before anybody is told.
        let stored = join_writes(again, self.kv.put(&key, record.bytes(), Expect::Absent, ttl));
        let rev = match stored.await {
            Ok(Put::Stored(rev)) => rev,
            Ok(Put::Conflict(_)) => {
                self.capacity.forget(&new.owner, place);
                return Err(TaskError::Store);
            }
            Err(error) => {
                self.capacity.forget(&new.owner, place);
                return Err(error.into());
            }
        };
        tracing::debug!(target: "linchpin::task", task = %id, tool = &*record.tool, "task created");
        Ok(self.run_here((id, key), new.owner, run, (record, rev), place, slot))
    }

    /// A task runs here from now on.
    pub(crate) fn run_here(
        self: &Arc<Self>,
        (id, key): (Arc<str>, Arc<str>),
        owner: Owner,
        run: u64,
        (record, rev): (Record, Rev),
        place: Place,
        slot: Slot,
    ) -> Arc<Live> {
        let live = Arc::new(Live {
            storage: self.clone(),
            id,
            owner,
            key: key.clone(),
            run,
            held: Mutex::new((Arc::new(record), rev)),
            turn: tokio::sync::Mutex::new(()),
            changed: Notify::new(),
            waker: Mutex::default(),
            stopped: AtomicU8::new(0),
            place,
            slot: Mutex::new(Some(slot)),
            session: OnceLock::new(),
            steps: OnceLock::new(),
            has_kept_steps: AtomicBool::new(false),
        });
        self.live().insert(key, live.clone());
        live
    }

    /// A task of an owner. One whose time is over has ended, whoever should have noticed.
    pub(crate) async fn get(&self, owner: &Owner, id: &str) -> Result<Record, TaskError> {
        if !owner::is_id(id) {
            return Err(TaskError::Unknown);
        }
        self.know_clock().await?;
        let found = self.kv.get(&self.key("task", owner, id)).await?.ok_or(TaskError::Unknown)?;
        let record = read(&found.value)?;
        if record.state.status.is_end() || self.now_ms() < record.state.expires_ms() {
            return Ok(record);
        }
        let mut expired = record.clone();
        self.change(owner, id, &mut |record| {
            let change = record.state.apply(&Event::Expire, self.now_ms());
            if change == Change::Ended {
                record.end = Some(Kept::Here(failed(linchpin_proto::task::EXPIRED)));
            }
            expired.clone_from(record);
            change
        })
        .await?;
        Ok(expired)
    }

    /// How long it is until then.
    pub(crate) fn left(&self, until_ms: u64) -> Duration {
        Duration::from_millis(until_ms.saturating_sub(self.now_ms()))
    }

    /// The end of a task that has one.
    pub(crate) async fn end(&self, owner: &Owner, id: &str, record: &Record) -> Result<Option<End>, TaskError> {
        match &record.end {
            None => Ok(None),
            Some(Kept::Here(end)) => Ok(Some(end.clone())),
            Some(Kept::Apart(run)) => {
                let found = self.kv.get(&self.end_key(owner, id, run)).await?.ok_or(TaskError::Unknown)?;
                serde_json::from_slice(&found.value).map(Some).map_err(corrupt)
            }
        }
    }

    /// The key of a long end: each run has its own, so that one that was replaced overwrites nothing.
    fn end_key(&self, owner: &Owner, id: &str, run: &Runner) -> String {
        format!("{}/{}-{}", self.key("task-end", owner, id), run.node, run.run)
    }

    /// Changes a task, whoever runs it.
    pub(crate) async fn change(&self, owner: &Owner, id: &str, edit: &mut Edit<'_>) -> Result<Change, TaskError> {
        if !owner::is_id(id) {
            return Err(TaskError::Unknown);
        }
        let key = self.key("task", owner, id);
        let live = self.live().get(&*key).cloned();
        if let Some(live) = live {
            let changed = live.change(edit).await;
            // It may have been suspended before, and run here again since.
            let begun = self.live().get(&*key).filter(|begun| !Arc::ptr_eq(begun, &live)).cloned();
            if let Some(begun) = begun {
                begun.refresh().await;
            }
            return changed;
        }
        self.know_clock().await?;
        let found = self.kv.get(&key).await?.ok_or(TaskError::Unknown)?;
        let mut held = (Arc::new(read(&found.value)?), found.rev);
        let change = self.swap(&key, &mut held, edit).await?;
        if change == Change::Ended {
            self.capacity.found(owner, id, held.0.state.deleted_ms(), true);
        }
        if change != Change::None {
            self.told(id, &held.0).await;
            // It may run here since, with the record of before (`take` looks once more when it has begun).
            let begun = self.live().get(&*key).cloned();
            if let Some(live) = begun {
                live.refresh().await;
            }
        }
        Ok(change)
    }

    /// Compares and swaps until it succeeds. `held` is the newest known record, before and after.
    async fn swap(&self, key: &str, held: &mut (Arc<Record>, Rev), edit: &mut Edit<'_>) -> Result<Change, TaskError> {
        loop {
            let mut new = Record::clone(&held.0);
            let change = edit(&mut new);
            if change == Change::None {
                return Ok(change);
            }
            let ttl = Duration::from_millis(new.state.deleted_ms().saturating_sub(self.now_ms()).max(1));
            match self.kv.put(key, new.bytes(), Expect::Rev(held.1), ttl).await? {
                Put::Stored(rev) => {
                    *held = (Arc::new(new), rev);
                    return Ok(change);
                }
                Put::Conflict(Some(found)) => *held = (Arc::new(read(&found.value)?), found.rev),
                Put::Conflict(None) => return Err(TaskError::Unknown),
            }
        }
    }

    /// Tells those who wait for changes of a task.
    async fn told(&self, id: &str, record: &Record) {
        let topic = self.store.topic();
        let elsewhere = record.runner.as_ref().filter(|runner| runner.node != self.node && self.outlives());
        let told = async {
            topic.publish(&self.topic(id)).await?;
            match elsewhere {
                Some(runner) => topic.publish(&self.node_topic(&runner.node)).await,
                None => Ok(()),
            }
        };
        if let Err(error) = told.await {
            tracing::warn!(%error, "a change of a task could not be published");
        }
    }

    /// Claims a task of a process that died: `edit` names the new runner.
    pub(crate) async fn claim(
        &self,
        owner: &Owner,
        id: &str,
        edit: &mut Edit<'_>,
    ) -> Result<Option<(Record, Rev)>, TaskError> {
        let key = self.key("task", owner, id);
        let Some(found) = self.kv.get(&key).await? else { return Ok(None) };
        let mut held = (Arc::new(read(&found.value)?), found.rev);
        let change = self.swap(&key, &mut held, edit).await?;
        if change == Change::Ended {
            self.told(id, &held.0).await;
        }
        Ok((change != Change::None).then(|| (Arc::unwrap_or_clone(held.0), held.1)))
    }

    /// How a task is started again.
    pub(crate) async fn again(&self, owner: &Owner, id: &str) -> Result<Option<Call>, TaskError> {
        let found = self.kv.get(&self.key("task-call", owner, id)).await?;
        found.map(|found| serde_json::from_slice(&found.value).map_err(corrupt)).transpose()
    }

    /// The tasks of an owner, or of all: their owners, ids and records, in the order of their keys.
    pub(crate) async fn scan(&self, owner: Option<&Owner>) -> Result<Vec<(Owner, String, Record)>, TaskError> {
        const PAGE: usize = 500;
        let mut prefix = self.prefix("task");
        if let Some(owner) = owner {
            prefix = format!("{prefix}{}/", owner.as_str());
        }
        let (mut all, mut after) = (Vec::new(), None::<String>);
        loop {
            let page = self.kv.scan(&prefix, after.as_deref(), PAGE).await?;
            let is_last = page.len() < PAGE;
            after = page.last().map(|(key, _)| key.clone());
            for (key, found) in page {
                let mut parts = key.rsplitn(3, '/');
                if let (Some(id), Some(owner)) = (parts.next(), parts.next())
                    && let Ok(record) = read(&found.value)
                {
                    all.push((Owner::named(owner), id.to_owned(), record));
                }
            }
            if is_last {
                return Ok(all);
            }
        }
    }

    /// A step as the log keeps it: sealed, where the store is not this process's memory.
    pub(crate) fn seal_step(&self, key: &str, step: Vec<u8>) -> Bytes {
        match self.outlives() {
            true => self.store.seal().seal("task-steps", key.as_bytes(), &step),
            false => step.into(),
        }
    }

    pub(crate) fn open_step(&self, key: &str, entry: &Bytes) -> Result<Bytes, TaskError> {
        match self.outlives() {
            true => Ok(self.store.seal().open("task-steps", key.as_bytes(), entry)?),
            false => Ok(entry.clone()),
        }
    }

    async fn delete_victim(&self, victim: &Victim) -> Result<(), TaskError> {
        if !victim.has_only_record {
            return self.delete(&victim.owner, &victim.id).await;
        }
        let _ = self.kv.delete(&self.key("task", &victim.owner, &victim.id), Expect::Any).await?;
        Ok(())
    }

    async fn delete(&self, owner: &Owner, id: &str) -> Result<(), TaskError> {
        if let Some(found) = self.kv.get(&self.key("task", owner, id)).await?
            && let Ok(Record { end: Some(Kept::Apart(run)), .. }) = read(&found.value)
        {
            let _ = self.kv.delete(&self.end_key(owner, id, &run), Expect::Any).await?;
        }
        for space in ["task", "task-call"] {
            let _ = self.kv.delete(&self.key(space, owner, id), Expect::Any).await?;
        }
        self.store.log().delete(&self.key("task-steps", owner, id)).await?;
        Ok(())
    }
}

/// A new task with the questions that were answered before it was made, as far as there is room.
fn begun(mut state: State, answered: &[Answered], limits: &TaskLimits) -> State {
    for Answered { name, method, params, answer, times } in answered {
        for nth in 1..=*times {
            if state.asked() >= limits.steps_max
                || state.answer_bytes() + answer.get().len() > limits.input_response_bytes_max
            {
                return state;
            }
            let now = state.created_ms;
            let _ = state.apply(&Event::Ask { name, nth, method, params }, now);
            let Some(key) = state.question(name, nth).map(|question| question.key.clone()) else { continue };
            let _ = state.apply(&Event::Answer { key: &key, value: answer }, now);
        }
    }
    state
}

fn read(bytes: &Bytes) -> Result<Record, TaskError> {
    Record::read(bytes).map_err(corrupt)
}

fn corrupt(error: serde_json::Error) -> TaskError {
    tracing::error!(%error, "a stored task cannot be read");
    TaskError::Store
}

/// The end of a task that failed by itself.
pub(crate) fn failed(why: &str) -> End {
    let error = serde_json::json!({ "code": linchpin_types::error::code::INTERNAL_ERROR, "message": why });
    End::Error(serde_json::value::to_raw_value(&error).unwrap_or_default())
}

/// Asks a question once more, for an answer that does not do. A task that has asked too often fails.
pub(crate) fn ask_again(record: &mut Record, (key, why): (&str, &str), limits: &TaskLimits, now: u64) -> Change {
    if record.state.asked() < limits.steps_max {
        return record.state.apply(&Event::AskAgain { key, why }, now);
    }
    let why = format!(
        "too many input requests in this task (limit {}), most of them repeated after invalid responses",
        limits.steps_max
    );
    record.end = Some(Kept::Here(failed(&why)));
    record.state.apply(&Event::Fail(&why), now)
}

impl Live {
    fn held(&self) -> MutexGuard<'_, (Arc<Record>, Rev)> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn runner(&self) -> Runner {
        Runner { node: self.storage.node.clone(), run: self.run }
    }

    fn is_runner(&self, record: &Record) -> bool {
        record.runner.as_ref().is_some_and(|runner| runner.run == self.run && runner.node == self.storage.node)
    }

    /// Looks at the newest record that is known here.
    pub(crate) fn look<T>(&self, look: impl FnOnce(&Record) -> T) -> T {
        look(&self.held().0)
    }

    /// Changes the task.
    pub(crate) async fn change(&self, edit: &mut Edit<'_>) -> Result<Change, TaskError> {
        let turn = self.turn.lock().await;
        let mut held = self.held().clone();
        let result = self.storage.swap(&self.key, &mut held, edit).await;
        let record = held.0.clone();
        self.took(held);
        drop(turn);
        if matches!(result, Ok(Change::None)) {
            return result;
        }
        if result.is_ok() {
            self.storage.told(&self.id, &record).await;
        }
        result
    }

    /// Changes the task, as its runner: nothing happens if it is another one now.
    pub(crate) async fn change_as_runner(&self, edit: &mut Edit<'_>) -> Result<Change, TaskError> {
        self.change(&mut |record| match self.is_runner(record) {
            true => edit(record),
            false => Change::None,
        })
        .await
    }

    /// Stores a long end, and says where an end is.
    pub(crate) async fn keep_end(&self, end: &End) -> Result<Kept, TaskError> {
        let length = match end {
            End::Result(json) | End::Error(json) => json.get().len(),
        };
        if length <= INLINE_BYTES_MAX {
            return Ok(Kept::Here(end.clone()));
        }
        let bytes = serde_json::to_vec(end).map_err(corrupt)?;
        let key = self.storage.end_key(&self.owner, &self.id, &self.runner());
        let _ = self.storage.kv.put(&key, bytes.into(), Expect::Any, self.kept()).await?;
        Ok(Kept::Apart(self.runner()))
    }

    /// Forgets a long end that is not the task's: another one came first, or another run.
    pub(crate) async fn drop_end(&self) -> Result<(), TaskError> {
        let key = self.storage.end_key(&self.owner, &self.id, &self.runner());
        let _ = self.storage.kv.delete(&key, Expect::Any).await?;
        Ok(())
    }

    /// Reads what others have written.
    pub(crate) async fn refresh(&self) {
        let turn = self.turn.lock().await;
        match self.storage.kv.get(&self.key).await {
            Ok(Some(found)) => {
                if let Ok(record) = read(&found.value) {
                    self.took((Arc::new(record), found.rev));
                }
            }
            Ok(None) => self.stop(Stop::Over),
            Err(error) => tracing::debug!(%error, "a task could not be read"),
        }
        drop(turn);
    }

    /// Takes a newer record: who waits for changes looks again, and who runs it stops if it is over.
    fn took(&self, held: (Arc<Record>, Rev)) {
        let is_over = held.0.state.status.is_end() || !self.is_runner(&held.0);
        self.tell_session(&held.0);
        *self.held() = held;
        self.changed.notify_waiters();
        if is_over {
            self.stop(Stop::Over);
        }
    }

    /// The handler runs: these are its steps, and this is the session that made the task, if there is one.
    pub(crate) fn runs(&self, steps: Arc<RunningSteps>, session: Option<&Arc<Session>>) {
        let _ = self.steps.set(steps);
        if let Some(session) = session.filter(|_| self.look(Record::features).core_tasks) {
            let _ = self.session.set(Arc::downgrade(session));
        }
    }

    /// Tells the session of another status or message. Clients do not rely on it.
    fn tell_session(&self, new: &Record) {
        let Some(session) = self.session.get().and_then(Weak::upgrade) else { return };
        let Some(feed) = session.feed() else { return };
        let shown = |record: &Record| (record.state.status, record.state.message.clone());
        if shown(new) == self.look(shown) {
            return;
        }
        let mut members = Vec::with_capacity(256);
        task::members(&mut members, &self.id, &new.state, None, new.features(), self.storage.now_ms());
        feed.feed().push(&ServerChange::Log(render::notification("notifications/tasks/status", &members)));
    }

    /// This process ends: the steps that run are done, others do not begin.
    pub(crate) fn finish_steps(&self) {
        self.steps.get().into_iter().for_each(|steps| steps.leave());
    }

    /// Steps may begin again.
    pub(crate) fn go_on_with_steps(&self) {
        self.steps.get().into_iter().for_each(|steps| steps.stay());
    }

    /// Whether its handler may be dropped while it waits for an answer.
    pub(crate) fn can_be_suspended(&self) -> bool {
        let storage = &self.storage;
        // A session is told of what its task does, and who may be revoked is looked at, while it runs.
        storage.limits.tasks.suspend_ms > 0
            && storage.outlives()
            && storage.is_revoked.is_none()
            && self.session.get().is_none()
            && self.look(|record| record.suspends)
    }

    /// Whether none of its steps runs.
    pub(crate) fn is_between_steps(&self) -> bool {
        self.steps.get().is_none_or(|steps| steps.are_done())
    }

    /// Stops the run.
    pub(crate) fn stop(&self, why: Stop) {
        let _ = self.stopped.compare_exchange(0, why as u8, Ordering::SeqCst, Ordering::SeqCst);
        let waker = self.waker.lock().unwrap_or_else(PoisonError::into_inner).take();
        waker.into_iter().for_each(Waker::wake);
    }

    /// Waits until it should stop. Only the runner does.
    pub(crate) fn poll_stopped(&self, context: &mut Context<'_>) -> Poll<()> {
        *self.waker.lock().unwrap_or_else(PoisonError::into_inner) = Some(context.waker().clone());
        self.stopped().map_or(Poll::Pending, |_| Poll::Ready(()))
    }

    /// Why it should stop, if it should.
    pub(crate) fn stopped(&self) -> Option<Stop> {
        match self.stopped.load(Ordering::SeqCst) {
            1 => Some(Stop::Over),
            2 => Some(Stop::Leave),
            _ => None,
        }
    }

    /// Nobody runs it here any more.
    pub(crate) fn leave(&self) {
        let mut running = self.storage.live();
        // A suspended task may run here again already.
        if running.get(&self.key).is_some_and(|live| std::ptr::eq(&raw const **live, self)) {
            running.remove(&self.key);
        }
        drop(running);
        self.slot.lock().unwrap_or_else(PoisonError::into_inner).take();
        let record = self.held().0.clone();
        if record.state.status.is_end() {
            let has_only_record = !record.resumable
                && !matches!(record.end, Some(Kept::Apart(_)))
                && !self.has_kept_steps.load(Ordering::SeqCst);
            self.storage.capacity.ended(&self.owner, self.place, record.state.deleted_ms(), has_only_record);
        }
    }

    /// The task could not be made after all: nothing of it is left here, nor in the store as soon as that can be reached.
    pub(crate) fn undo(self: &Arc<Self>) {
        self.leave();
        self.storage.capacity.forget(&self.owner, self.place);
        let live = self.clone();
        tokio::spawn(boxed(async move {
            let last = tokio::time::Instant::now() + live.kept();
            let mut pause = PAUSE_MIN;
            while live.storage.delete(&live.owner, &live.id).await.is_err() && tokio::time::Instant::now() < last {
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(PAUSE_MAX);
            }
        }));
    }

    /// When it has to be over, by tokio's clock.
    pub(crate) fn deadline(&self) -> tokio::time::Instant {
        let left = self.look(|record| record.state.expires_ms()).saturating_sub(self.storage.now_ms());
        tokio::time::Instant::now() + Duration::from_millis(left)
    }

    /// How long its record is kept, at least.
    pub(crate) fn kept(&self) -> Duration {
        let left = self.look(|record| record.state.expires_ms()).saturating_sub(self.storage.now_ms());
        Duration::from_millis(left.saturating_add(FETCH_MS_MIN))
    }
}
