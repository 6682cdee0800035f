//! Tasks of processes that have died: found by their leases, and started again or failed.
//!
//! Each process holds one lease, and is on the list of processes. Who finds one on the list without a lease claims its tasks.

use crate::digest::digest;
use crate::dispatch;
use crate::invocation::{Args, Source};
use crate::running_server::RunningServer;
use crate::tasks::capacity::Slot;
use crate::tasks::link::Link;
use crate::tasks::live::{Handle, Handled};
use crate::tasks::options::Mode;
use crate::tasks::owner::Owner;
use crate::tasks::record::{Call, Kept, Record, Runner};
use crate::tasks::runner;
use crate::tasks::storage::{Live, PAUSE_MAX, PAUSE_MIN, Stop, Storage, TaskError, failed};
use linchpin_core::service::{RequestContext, boxed};
use linchpin_core::{ClientCaps, Features, Reply, Session};
use linchpin_proto::task::{Change, EXPIRED, Event};
use linchpin_proto::{engine, frame};
use linchpin_store::{Claim, Expect, Fence, Rev};
use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::task::Poll;
use std::time::Duration;

/// How often a process puts itself on the list again.
const LISTED_AGAIN: Duration = Duration::from_secs(24 * 3600);
/// How often the store's time is looked at.
const CLOCK_AGAIN: Duration = Duration::from_secs(60);
/// How often a task is started.
const ATTEMPTS_MAX: u32 = 3;

const LOST: &str = "the server stopped while the task ran; it was not started again";

/// Looks after the tasks, if they outlive this process and nobody does yet. Without a runtime it is left to the next call.
pub(crate) fn ensure(core: &RunningServer) {
    let storage = core.tasks();
    let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
    if storage.outlives() && !storage.is_tended.swap(true, Ordering::AcqRel) {
        runtime.spawn(boxed(tend(core.this.clone(), storage.clone())));
    }
}

async fn tend(core: Weak<RunningServer>, storage: Arc<Storage>) {
    let node = storage.node.to_string();
    let topic = storage.node_topic(&node);
    let mut watch = None;
    let mut is_counted = false;
    let mut lease = Held::default();
    let mut clock_at = tokio::time::Instant::now();
    while core.strong_count() > 0 && !storage.is_closing() {
        if !is_counted {
            is_counted = count(&storage).await.is_ok();
        }
        if clock_at.elapsed() >= CLOCK_AGAIN && storage.set_clock().await.is_ok() {
            clock_at = tokio::time::Instant::now();
        }
        if watch.is_none() {
            watch = storage.store.topic().watch(&[topic.as_str()]).await.ok();
        }
        if let Some(core) = core.upgrade()
            && let Err(error) = look_around(&core, &storage, &mut lease).await
        {
            tracing::warn!(%error, "tasks of other processes could not be looked for");
        }
        let mut tick = pin!(tokio::time::sleep(storage.lasts() / 3));
        loop {
            let was_told = match &mut watch {
                Some(watch) => {
                    let mut next = pin!(watch.next());
                    poll_fn(|context| match tick.as_mut().poll(context) {
                        Poll::Ready(()) => Poll::Ready(false),
                        Poll::Pending => next.as_mut().poll(context).map(|_| true),
                    })
                    .await
                }
                None => {
                    tick.as_mut().await;
                    false
                }
            };
            if !was_told {
                break;
            }
            for live in storage.running() {
                live.refresh().await;
            }
        }
    }
}

/// What is kept already counts.
async fn count(storage: &Storage) -> Result<(), TaskError> {
    for (owner, id, record) in storage.scan(None).await? {
        let state = &record.state;
        storage.capacity.found(&owner, &id, state.deleted_ms(), state.status.is_end());
    }
    Ok(())
}

/// The lease of this process, as it was seen last.
#[derive(Default)]
struct Held {
    fence: Option<Fence>,
    /// When this process was put on the list.
    listed: Option<tokio::time::Instant>,
}

/// Renews the lease and the place on the list.
async fn renew(storage: &Storage, held: &mut Held) -> Result<(), TaskError> {
    let fence = storage.claim_lease().await?;
    let was_lost = fence != held.fence;
    if was_lost || held.listed.is_none_or(|at| at.elapsed() >= LISTED_AGAIN) {
        storage.enlist().await?;
        held.listed = Some(tokio::time::Instant::now());
    }
    if was_lost {
        // Runs that were replaced stop.
        for live in storage.running() {
            live.refresh().await;
        }
    }
    held.fence = fence;
    Ok(())
}

/// Renews the lease, and takes over what others have left.
async fn look_around(core: &Arc<RunningServer>, storage: &Arc<Storage>, held: &mut Held) -> Result<(), TaskError> {
    storage.know_clock().await?;
    renew(storage, held).await?;
    let prefix = storage.prefix("task-node");
    let mut after: Option<String> = None;
    let mut is_listed = false;
    loop {
        let page = storage.store.kv().scan(&prefix, after.as_deref(), 100).await?;
        let is_last = page.len() < 100;
        for (key, _) in page {
            let node = key[prefix.len()..].to_owned();
            if *node == *storage.node {
                is_listed = true;
            } else if storage.store.lease().holder(&storage.lease(&node)).await?.is_none() {
                take_over(core, storage, &node).await?;
            }
            after = Some(key);
        }
        if is_last {
            break;
        }
    }
    if !is_listed {
        // Somebody who took this process for dead has struck it off after all.
        held.listed = None;
    }
    Ok(())
}

/// Takes over the tasks of a process that has died, oldest first.
async fn take_over(core: &Arc<RunningServer>, storage: &Arc<Storage>, node: &str) -> Result<(), TaskError> {
    let turn = storage.lease(&format!("take/{node}"));
    let Claim::Held(fence) = storage.store.lease().claim(&turn, &storage.node, storage.lasts() * 5).await? else {
        return Ok(());
    };
    let mut all = storage.scan(None).await?;
    all.retain(|(_, _, record)| !record.state.status.is_end() && is_of(record, node) && !record.is_idle());
    all.sort_by_key(|(_, _, record)| record.state.created_ms);
    let mut is_done = true;
    for (owner, id, record) in all {
        is_done &= take(core, storage, node, (owner, id), &record).await == Taken::Done;
        let _ = storage.store.lease().renew(&turn, fence, storage.lasts() * 5).await?;
    }
    if is_done {
        let _ = storage.store.kv().delete(&format!("{}{node}", storage.prefix("task-node")), Expect::Any).await?;
    }
    let _ = storage.store.lease().release(&turn, fence).await?;
    Ok(())
}

/// A suspended task has an answer: it is started again here, once there is room.
pub(crate) fn resume(core: &Arc<RunningServer>, owner: &Owner, id: &str, found: Record) {
    let (core, storage) = (Arc::downgrade(core), core.tasks().clone());
    let (owner, id) = (owner.clone(), id.to_owned());
    tokio::spawn(boxed(async move {
        let mut pause = PAUSE_MIN;
        while let Some(core) = core.upgrade().filter(|_| !storage.is_closing()) {
            // Where the store failed, it goes on by itself.
            if take(&core, &storage, "", (owner.clone(), id.clone()), &found).await != Taken::NoRoom {
                return;
            }
            drop(core);
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }));
}

/// Whether a task was run by a process, or was left for anybody.
fn is_of(record: &Record, node: &str) -> bool {
    record.runner.as_ref().is_none_or(|runner| &*runner.node == node)
}

/// A task that is being taken over.
struct Taking {
    /// The process that ran it.
    node: Box<str>,
    owner: Owner,
    id: String,
    tool: Box<str>,
    /// Who runs it then. All attempts have the same, so that one which succeeded without saying so is known.
    runner: Runner,
    /// Whether there is room for it.
    may_run: bool,
}

/// What became of an attempt to take a task over.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Taken {
    /// It runs here, or another process has it, or it has ended.
    Done,
    /// Too many tasks run here now.
    NoRoom,
    /// The store failed. The attempt is repeated.
    Store,
}

/// Why a task is not started again, if it is not.
fn lost(record: &Record, now: u64) -> Option<String> {
    match record.attempts() {
        _ if now >= record.state.expires_ms() => Some(EXPIRED.to_owned()),
        _ if !record.resumable => Some(LOST.to_owned()),
        attempt if attempt >= ATTEMPTS_MAX => {
            Some(format!("the server stopped while the task ran; it was started {attempt} times and not once more"))
        }
        _ => None,
    }
}

/// Takes over one task.
async fn take(
    core: &Arc<RunningServer>,
    storage: &Arc<Storage>,
    node: &str,
    (owner, id): (Owner, String),
    found: &Record,
) -> Taken {
    // One that fails needs no room.
    let slot = storage.capacity.run(&owner, &storage.limits.tasks).ok();
    if slot.is_none() && lost(found, storage.now_ms()).is_none() {
        return Taken::NoRoom;
    }
    let (tool, runner) = (found.tool.clone(), storage.next_runner());
    let taking = Taking { node: node.into(), owner, id, tool, runner, may_run: slot.is_some() };
    match taking.claim(storage).await {
        Ok(Some(held)) => taking.begin(core, storage, held, slot),
        Ok(None) => {}
        Err(_) => {
            tokio::spawn(boxed(taking.again(Arc::downgrade(core), storage.clone(), slot)));
            return Taken::Store;
        }
    }
    Taken::Done
}

impl Taking {
    /// Claims the task, or fails it. `None` if somebody else did.
    async fn claim(&self, storage: &Storage) -> Result<Option<(Record, Rev)>, TaskError> {
        let mut edit = |record: &mut Record| {
            if record.state.status.is_end() {
                return Change::None;
            }
            if record.runner.as_ref() == Some(&self.runner) {
                return Change::Changed;
            }
            if !is_of(record, &self.node) || record.is_idle() {
                return Change::None;
            }
            let Some(why) = lost(record, storage.now_ms()) else {
                if !self.may_run {
                    return Change::None;
                }
                (record.runner, record.suspended) = (Some(self.runner.clone()), None);
                return record.state.apply(&Event::Restart, storage.now_ms());
            };
            record.end = Some(Kept::Here(failed(&why)));
            record.state.apply(&Event::Fail(&why), storage.now_ms())
        };
        storage.claim(&self.owner, &self.id, &mut edit).await
    }

    /// Goes on until the store says what became of the claim.
    async fn again(self, core: Weak<RunningServer>, storage: Arc<Storage>, slot: Option<Slot>) {
        let mut pause = PAUSE_MIN;
        loop {
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(PAUSE_MAX);
            let Some(core) = core.upgrade().filter(|_| !storage.is_closing()) else { return };
            match self.claim(&storage).await {
                Ok(Some(held)) => return self.begin(&core, &storage, held, slot),
                Ok(None) => return,
                Err(_) => {}
            }
        }
    }

    /// The task runs here now, if it has not ended.
    fn begin(&self, core: &Arc<RunningServer>, storage: &Arc<Storage>, held: (Record, Rev), slot: Option<Slot>) {
        let (id, tool, state) = (&self.id, &*self.tool, &held.0.state);
        let place = storage.capacity.found(&self.owner, id, state.deleted_ms(), state.status.is_end());
        if state.status.is_end() {
            tracing::info!(target: "linchpin::task", task = id, tool, "task of another process failed");
            return;
        }
        let Some(slot) = slot else { return };
        let key = storage.key("task", &self.owner, id).into();
        let live = storage.run_here((id.as_str().into(), key), self.owner.clone(), self.runner.run, held, place, slot);
        tracing::info!(target: "linchpin::task", task = id, tool, "task started again");
        tokio::spawn(boxed(start_or_fail(Arc::downgrade(core), live)));
    }
}

/// Starts a task that was taken over. A store that is away is waited for, as long as the task is this process's.
async fn start_or_fail(core: Weak<RunningServer>, live: Arc<Live>) {
    let mut pause = PAUSE_MIN;
    // What was answered between the claim and now.
    live.refresh().await;
    while live.stopped().is_none() {
        let Some(core) = core.upgrade() else { break };
        let why = match start_again(&core, &live).await {
            Ok(()) => return,
            Err(NotStarted::Store) if tokio::time::Instant::now() < live.deadline() => None,
            Err(NotStarted::Store) => Some(EXPIRED.to_owned()),
            Err(NotStarted::Because(why)) => Some(why),
        };
        drop(core);
        if let Some(why) = why {
            fail(&live, &why).await;
            break;
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(PAUSE_MAX);
    }
    if live.stopped() == Some(Stop::Leave) {
        runner::release(&live).await;
    }
    live.leave();
}

/// Why a task was not started again.
enum NotStarted {
    /// The store failed: later it may.
    Store,
    /// It never will be.
    Because(String),
}

impl From<String> for NotStarted {
    fn from(why: String) -> NotStarted {
        NotStarted::Because(why)
    }
}

impl From<&str> for NotStarted {
    fn from(why: &str) -> NotStarted {
        NotStarted::Because(why.to_owned())
    }
}

impl From<TaskError> for NotStarted {
    fn from(error: TaskError) -> NotStarted {
        match error {
            TaskError::Store => NotStarted::Store,
            error => NotStarted::Because(error.to_string()),
        }
    }
}

/// Fails a task. A store that is away is waited for.
async fn fail(live: &Live, why: &str) {
    let last = tokio::time::Instant::now() + live.kept();
    let mut pause = PAUSE_MIN;
    let mut edit = |record: &mut Record| {
        record.end = Some(Kept::Here(failed(why)));
        record.state.apply(&Event::Fail(why), live.storage.now_ms())
    };
    while let Err(error) = live.change_as_runner(&mut edit).await {
        let is_over = tokio::time::Instant::now() >= last || live.stopped().is_some();
        if is_over || !matches!(error, TaskError::Store) {
            tracing::warn!(task = &*live.id, %error, "could not mark the task as failed");
            return;
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(PAUSE_MAX);
    }
}

/// Starts the handler of a task from its beginning. The error says why it cannot be.
async fn start_again(core: &Arc<RunningServer>, live: &Arc<Live>) -> Result<(), NotStarted> {
    let call = live.storage.again(&live.owner, &live.id).await?;
    let call = call.ok_or("the task cannot be started again: its call was not kept")?;
    let (name, features) = live.look(|record| (record.tool.clone(), record.features()));
    let entry = core.registries.tools.snapshot().get(&name).cloned();
    let entry = entry.ok_or_else(|| format!("the task cannot be started again: tool `{name}` is gone"))?;
    let arguments = arguments(&call)?;
    if digest(entry.item.def.input_schema.get()) != call.schema
        && let Some(explain) = &entry.item.target.explain
    {
        let problems = explain.problems(&arguments, explain.problems_max());
        if !problems.is_empty() {
            let problems = problems.join("; ");
            let why = format!("the task cannot be started again: tool `{name}` takes other arguments now: {problems}");
            return Err(why.into());
        }
    }
    let request = request(&call, features, &core.limits)?;
    let principal = call.principal.as_ref().map(|who| who.principal());
    let context = Arc::new(RequestContext::default().with(|context| context.principal = principal));
    let handled = Handled::new(live.clone());
    handled.recall().await?;
    let link = Arc::new(Link::new(Mode::Must, &context.headers));
    link.set_moved(true);
    live.runs(link.running.clone(), None);
    link.decide(Some(Arc::new(Handle(handled.clone()))));
    let target = &entry.item.target;
    let args = Args(Source::Owned(arguments.into()));
    let layers = core.layers(&target.layers);
    let refused = |reply: Reply| format!("the task cannot be started again: {}", reply.body());
    let started = dispatch::start_linked(&core.shared, layers, target, (&request, context), args, link);
    let started = started.map_err(refused)?;
    let cx = started.cx.ok_or("a task needs a context")?;
    tokio::spawn(runner::run(handled, started.future, cx));
    Ok(())
}

fn arguments(call: &Call) -> Result<String, String> {
    #[derive(serde::Deserialize)]
    struct Params<'a> {
        #[serde(borrow)]
        arguments: &'a serde_json::value::RawValue,
    }
    let params: Result<Params<'_>, _> = serde_json::from_str(call.params.get());
    params.map(|params| params.arguments.get().to_owned()).map_err(|_| "the task's call is damaged".to_owned())
}

/// The request of a call, as its handler gets it.
fn request(
    call: &Call,
    features: &'static Features,
    limits: &linchpin_core::Limits,
) -> Result<Arc<linchpin_core::message::Request>, String> {
    let damaged = |reply: Reply| format!("the task's call is damaged: {}", reply.body());
    let text = format!(r#"{{"jsonrpc":"2.0","id":0,"method":"tools/call","params":{}}}"#, call.params.get());
    let message = frame::message(text.into(), limits).map_err(|unreadable| damaged(unreadable.reply))?;
    let capabilities = call.capabilities.get();
    let session = features.has_sessions.then(|| {
        let info = call.client_info.as_ref().map_or("", |info| info.get());
        let caps = ClientCaps::read(capabilities).unwrap_or_default();
        Arc::new(Session::new(features, caps, capabilities, info))
    });
    engine::open(&message, session.as_ref()).map_err(damaged)
}

/// This process ends: tasks that others can start again are left to them between two steps, others have `drain` to end.
pub(crate) async fn leave(storage: Arc<Storage>, drain: Duration) {
    storage.close();
    let running = storage.running();
    if running.is_empty() && !storage.outlives() {
        return;
    }
    let can_resume = |live: &Arc<Live>| live.look(|record| record.resumable);
    running.iter().filter(|live| can_resume(live)).for_each(|live| live.finish_steps());
    let drain = if storage.outlives() { drain } else { Duration::ZERO };
    let last = tokio::time::Instant::now() + drain;
    loop {
        let running = storage.running();
        let is_free = |live: &&Arc<Live>| can_resume(live) && live.is_between_steps();
        running.iter().filter(is_free).for_each(|live| live.stop(Stop::Leave));
        if running.iter().all(|live| is_free(&live)) || tokio::time::Instant::now() >= last {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    storage.running().iter().for_each(|live| live.stop(Stop::Leave));
    let last = tokio::time::Instant::now() + Duration::from_millis(500);
    while !storage.running().is_empty() && tokio::time::Instant::now() < last {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    if storage.outlives() && storage.is_tended.load(Ordering::Acquire) {
        // Others need not wait until it expires.
        if let Ok(Some(fence)) = storage.claim_lease().await {
            let _ = storage.store.lease().release(&storage.lease(&storage.node), fence).await;
        }
    }
}
