//! Tasks of processes that have died: found by their leases, and started again or failed.
//!
//! Each process holds one lease, and is on the list of processes. Who finds one on the list without a lease claims its tasks.

use crate::dispatch;
use crate::invocation::{Args, Source};
use crate::mrtr::now_ms;
use crate::running_server::RunningServer;
use crate::tasks::link::Link;
use crate::tasks::live::{Handle, Handled};
use crate::tasks::options::Mode;
use crate::tasks::owner::{self, Owner};
use crate::tasks::record::{Call, Kept, Record};
use crate::tasks::runner;
use crate::tasks::storage::{Live, Stop, Storage, TaskError, failed};
use bytes::Bytes;
use linchpin_core::service::RequestContext;
use linchpin_core::{ClientCaps, Features, Reply, Session};
use linchpin_proto::task::{Change, EXPIRED, Event};
use linchpin_proto::{engine, frame};
use linchpin_store::{Claim, Expect};
use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::task::Poll;
use std::time::Duration;

/// How long a process that has died is remembered, if nobody looks.
const LISTED: Duration = Duration::from_secs(30 * 24 * 3600);
/// How often a task is started.
const ATTEMPTS_MAX: u32 = 3;

const LOST: &str = "the server stopped while the task ran; it was not started again";

/// Looks after the tasks, if they outlive this process and nobody does yet. Without a runtime it is left to the next call.
pub(crate) fn ensure(core: &RunningServer) {
    let storage = core.tasks();
    let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
    if storage.outlives() && !storage.is_tended.swap(true, Ordering::AcqRel) {
        runtime.spawn(tend(core.this.clone(), storage.clone()));
    }
}

async fn tend(core: Weak<RunningServer>, storage: Arc<Storage>) {
    let node = storage.node.to_string();
    let topic = storage.node_topic(&node);
    let mut watch = None;
    let mut is_listed = false;
    while core.strong_count() > 0 && !storage.is_closing() {
        if !is_listed {
            is_listed = enlist(&storage).await.is_ok();
        }
        if watch.is_none() {
            watch = storage.store.topic().watch(&[topic.as_str()]).await.ok();
        }
        if let Some(core) = core.upgrade()
            && let Err(error) = look_around(&core, &storage).await
        {
            tracing::warn!(%error, "tasks of other processes could not be looked for");
        }
        let mut tick = pin!(tokio::time::sleep(lasts(&storage) / 3));
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

/// How long a lease lasts. Three times as often it is renewed, and others are looked at.
fn lasts(storage: &Storage) -> Duration {
    Duration::from_millis(storage.limits.tasks.lease_ms.max(30))
}

fn lease(storage: &Storage, node: &str) -> String {
    format!("{}{node}", storage.prefix("task-lease"))
}

/// Puts this process on the list, with its lease.
async fn enlist(storage: &Storage) -> Result<(), TaskError> {
    let _ = storage.store.lease().claim(&lease(storage, &storage.node), &storage.node, lasts(storage)).await?;
    let key = format!("{}{}", storage.prefix("task-node"), storage.node);
    let _ = storage.store.kv().put(&key, Bytes::from_static(b"{}"), Expect::Any, LISTED).await?;
    // What is kept already counts.
    for (owner, id, record) in storage.scan(None).await? {
        let state = &record.state;
        storage.capacity.found(&owner, &id, state.deleted_ms(), state.status.is_end());
    }
    Ok(())
}

/// Renews the lease, and takes over what others have left.
async fn look_around(core: &Arc<RunningServer>, storage: &Arc<Storage>) -> Result<(), TaskError> {
    // Repeating the claim renews it. A lease that was lost meanwhile is claimed anew; what others took over is theirs.
    let _ = storage.store.lease().claim(&lease(storage, &storage.node), &storage.node, lasts(storage)).await?;
    let prefix = storage.prefix("task-node");
    let mut after: Option<String> = None;
    loop {
        let page = storage.store.kv().scan(&prefix, after.as_deref(), 100).await?;
        let is_last = page.len() < 100;
        for (key, _) in page {
            let node = key[prefix.len()..].to_owned();
            if *node != *storage.node && storage.store.lease().holder(&lease(storage, &node)).await?.is_none() {
                take_over(core, storage, &node).await?;
            }
            after = Some(key);
        }
        if is_last {
            return Ok(());
        }
    }
}

/// Takes over the tasks of a process that has died, oldest first.
async fn take_over(core: &Arc<RunningServer>, storage: &Arc<Storage>, node: &str) -> Result<(), TaskError> {
    let turn = lease(storage, &format!("take/{node}"));
    let Claim::Held(fence) = storage.store.lease().claim(&turn, &storage.node, lasts(storage) * 5).await? else {
        return Ok(());
    };
    let mut all = storage.scan(None).await?;
    all.retain(|(_, _, record)| !record.state.status.is_end() && is_of(record, node));
    all.sort_by_key(|(_, _, record)| record.state.created_ms);
    let mut is_done = true;
    for (owner, id, record) in all {
        is_done &= take(core, storage, node, (&owner, &id), &record).await?;
        let _ = storage.store.lease().renew(&turn, fence, lasts(storage) * 5).await?;
    }
    if is_done {
        let _ = storage.store.kv().delete(&format!("{}{node}", storage.prefix("task-node")), Expect::Any).await?;
    }
    let _ = storage.store.lease().release(&turn, fence).await?;
    Ok(())
}

/// Whether a task was run by a process, or was left for anybody.
fn is_of(record: &Record, node: &str) -> bool {
    record.runner.as_ref().is_none_or(|runner| &*runner.node == node)
}

/// Takes over one task. `false` if there is no room for it now.
async fn take(
    core: &Arc<RunningServer>,
    storage: &Arc<Storage>,
    node: &str,
    (owner, id): (&Owner, &str),
    found: &Record,
) -> Result<bool, TaskError> {
    let Ok(slot) = storage.capacity.run(owner, &storage.limits.tasks) else { return Ok(false) };
    let runner = storage.next_runner();
    let mut edit = |record: &mut Record| {
        if !is_of(record, node) || record.state.status.is_end() {
            return Change::None;
        }
        let why = match record.state.attempt {
            _ if now_ms() >= record.state.expires_ms() => EXPIRED.to_owned(),
            _ if !record.resumable => LOST.to_owned(),
            attempt if attempt >= ATTEMPTS_MAX => {
                format!("the server stopped while the task ran; it was started {attempt} times and not once more")
            }
            _ => {
                record.runner = Some(runner.clone());
                return record.state.apply(&Event::Restart, now_ms());
            }
        };
        record.end = Some(Kept::Here(failed(&why)));
        record.state.apply(&Event::Fail(&why), now_ms())
    };
    let Some(held) = storage.claim(owner, id, &mut edit).await? else { return Ok(true) };
    let place = storage.capacity.found(owner, id, held.0.state.deleted_ms(), held.0.state.status.is_end());
    if held.0.state.status.is_end() {
        tracing::info!(target: "linchpin::task", task = id, tool = &*found.tool, "task of another process failed");
        return Ok(true);
    }
    let live = storage.run_here(id.into(), owner.clone(), runner, held, place, slot);
    tracing::info!(target: "linchpin::task", task = id, tool = &*found.tool, "task started again");
    if let Err(why) = start_again(core, &live).await {
        fail(&live, &why).await;
        live.leave();
    }
    Ok(true)
}

async fn fail(live: &Live, why: &str) {
    let mut edit = |record: &mut Record| {
        record.end = Some(Kept::Here(failed(why)));
        record.state.apply(&Event::Fail(why), now_ms())
    };
    if let Err(error) = live.change_as_runner(&mut edit).await {
        tracing::warn!(task = &*live.id, %error, "a task could not be failed");
    }
}

/// Starts the handler of a task from its beginning. The error says why it cannot be.
async fn start_again(core: &Arc<RunningServer>, live: &Arc<Live>) -> Result<(), String> {
    let lost = |error: TaskError| error.to_string();
    let call = live.storage.again(&live.owner, &live.id).await.map_err(lost)?;
    let call = call.ok_or("the task cannot be started again: its call was not kept")?;
    let (name, features) = live.look(|record| (record.tool.clone(), record.features()));
    let entry = core.registries.tools.snapshot().get(&name).cloned();
    let entry = entry.ok_or_else(|| format!("the task cannot be started again: tool `{name}` is gone"))?;
    let arguments = arguments(&call)?;
    if owner::digest(entry.item.def.input_schema.get()) != call.schema
        && let Some(explain) = &entry.item.target.explain
    {
        let problems = explain.problems(&arguments, explain.problems_max());
        if !problems.is_empty() {
            let problems = problems.join("; ");
            return Err(format!(
                "the task cannot be started again: tool `{name}` takes other arguments now: {problems}"
            ));
        }
    }
    let request = request(&call, features, &core.limits)?;
    let context = Arc::new(RequestContext {
        principal: call.principal.as_ref().map(|who| who.principal()),
        ..RequestContext::default()
    });
    let handled = Handled::new(live.clone());
    handled.recall().await.map_err(lost)?;
    let link = Arc::new(Link::new(Mode::Must));
    link.set_moved(true);
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
    let message = frame::message(text.into(), limits).map_err(damaged)?;
    let capabilities = call.capabilities.get();
    let session = features.has_sessions.then(|| {
        let info = call.client_info.as_ref().map_or("", |info| info.get());
        let caps = ClientCaps::read(capabilities).unwrap_or_default();
        Arc::new(Session::new(features, caps, capabilities, info))
    });
    engine::open(&message, session.as_ref()).map_err(damaged)
}

/// This process ends: tasks that others can start again are left to them, others have `drain` to end.
pub(crate) async fn leave(storage: Arc<Storage>, drain: Duration) {
    storage.close();
    let running = storage.running();
    if running.is_empty() && !storage.outlives() {
        return;
    }
    let can_resume = |live: &Arc<Live>| live.look(|record| record.resumable);
    running.iter().filter(|live| can_resume(live)).for_each(|live| live.stop(Stop::Leave));
    let drain = if storage.outlives() { drain } else { Duration::ZERO };
    let last = tokio::time::Instant::now() + drain;
    while storage.running().iter().any(|live| !can_resume(live)) && tokio::time::Instant::now() < last {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    storage.running().iter().for_each(|live| live.stop(Stop::Leave));
    let last = tokio::time::Instant::now() + Duration::from_millis(500);
    while !storage.running().is_empty() && tokio::time::Instant::now() < last {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    if storage.outlives() && storage.is_tended.load(Ordering::Acquire) {
        // Others need not wait until it expires.
        let name = lease(&storage, &storage.node);
        if let Ok(Claim::Held(fence)) = storage.store.lease().claim(&name, &storage.node, lasts(&storage)).await {
            let _ = storage.store.lease().release(&name, fence).await;
        }
    }
}
