//! Subscriptions: a listen stream that is kept open or, with sessions, subscriptions that are renewed.
//!
//! Specification: 2026-07-28 "Subscriptions"; 2025-11-25 "Resources", subscriptions.

use crate::active_transport::{ActiveTransport, Cancel};
use crate::connection_state::ConnectionState;
use crate::error::{Error, ErrorKind};
use crate::listeners::{ChangeFilter, Listener};
use crate::lock::lock;
use crate::queue::Queue;
use crate::request_parts::Round;
use crate::request_parts::{Options, RequestParts};
use crate::response::Response;
use crate::{Change, Result};
use futures_core::Stream;
use linchpin_core::service::boxed;
use linchpin_proto::message_writer::Extras;
use linchpin_types::subscribe::SubscriptionFilter;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// A stream of changes, which ends with the connection. Dropping it unsubscribes. It implements [`Stream`].
///
/// It resubscribes after a reconnect and then reports everything in its filter as changed, because changes may have
/// been missed. If changes arrive faster than they are read, the oldest are dropped (`messages.queued_max`).
///
/// ```
/// use linchpin_client::ChangeFilter;
///
/// # async fn watch(server: linchpin_client::Connection) -> linchpin_client::Result<()> {
/// let mut changes = server.listen(ChangeFilter::default().tools().resource("memo://today")).await?;
/// while let Some(change) = changes.next().await {
///     println!("{change:?}");
/// }
/// # Ok(()) }
/// ```
pub struct Changes {
    core: Arc<ConnectionState>,
    key: u64,
    listener: Arc<Listener>,
}

impl Changes {
    /// Returns the next change, or `None` once the connection has ended or the server has refused the subscription
    /// after a reconnect. Cancel-safe.
    pub async fn next(&mut self) -> Option<Change> {
        self.listener.queue.next().await
    }

    /// Returns the filter that the server granted, if it sent one; it may be smaller than requested.
    pub fn granted(&self) -> Option<SubscriptionFilter> {
        self.listener.state.borrow().granted.clone()
    }
}

impl Stream for Changes {
    type Item = Change;
    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Change>> {
        self.listener.queue.poll_next(cx)
    }
}

impl Drop for Changes {
    fn drop(&mut self) {
        let unused = lock(&self.core.listeners).remove(self.key);
        let Some(live) = self.core.latest().filter(|l| !l.agreed.features.listens && l.lost.get().is_none()) else {
            return;
        };
        for uri in unused {
            let out = live.writer.request(self.core.next_id(), "resources/unsubscribe", Extras::default(), |members| {
                members.text("uri", &uri);
            });
            live.link.notify_detached(out);
        }
    }
}

fn listener(core: &ConnectionState, interests: ChangeFilter) -> Arc<Listener> {
    let queue = Queue::new(core.config.limits.messages.queued_max);
    Arc::new(Listener {
        interests,
        queue,
        current: Mutex::default(),
        missed: AtomicBool::new(false),
        state: watch::Sender::default(),
    })
}

pub(crate) async fn listen(core: &Arc<ConnectionState>, interests: ChangeFilter) -> Result<Changes> {
    let live = core.live().await?;
    let listener = listener(core, interests);
    let limit = core.config.limits.calls.run_ms_max;
    if live.agreed.features.listens {
        let key = lock(&core.listeners).add(&listener);
        let changes = Changes { core: core.clone(), key, listener: listener.clone() };
        start(core, key, &listener);
        let mut state = listener.state.subscribe();
        let settled = state.wait_for(|state| state.acknowledged || state.failed.is_some());
        let settled = match Duration::from_millis(limit) {
            Duration::ZERO => settled.await,
            limit => tokio::time::timeout(limit, settled).await.map_err(|_| Error::timeout(limit))?,
        };
        if let Some(why) = settled.ok().and_then(|state| state.failed.clone()) {
            return Err(why);
        }
        return Ok(changes);
    }
    let before = lock(&core.listeners).subscribed();
    let key = lock(&core.listeners).add(&listener);
    // From here on, dropping `changes` unsubscribes.
    let changes = Changes { core: core.clone(), key, listener: listener.clone() };
    if let (Some(why), None) = (live.lost.get(), &core.config.restart) {
        return Err(why.clone().into());
    }
    for uri in listener.interests.uris.iter().filter(|uri| !before.contains(uri)) {
        let mut request = RequestParts::new("resources/subscribe");
        request.members.text("uri", uri);
        once(core, &live, &request).await?;
    }
    Ok(changes)
}

/// Subscribes to the lists for the `on_change` callback, in revisions that require it.
pub(crate) fn lists_for_handler(core: &Arc<ConnectionState>, live: &ActiveTransport) {
    if core.config.on_change.is_none() || !live.agreed.features.listens {
        return;
    }
    let can = &live.agreed.capabilities;
    let interests = ChangeFilter {
        tools: can.tools.is_some_and(|c| c.list_changed == Some(true)),
        prompts: can.prompts.is_some_and(|c| c.list_changed == Some(true)),
        resources: can.resources.is_some_and(|c| c.list_changed == Some(true)),
        ..ChangeFilter::default()
    };
    if interests == ChangeFilter::new() {
        return;
    }
    let listener = listener(core, interests);
    let key = lock(&core.listeners).add(&listener);
    start(core, key, &listener);
}

fn start(core: &Arc<ConnectionState>, key: u64, listener: &Arc<Listener>) {
    let task = tokio::spawn(boxed(keep(core.clone(), listener.clone())));
    lock(&core.listeners).runs(key, task.abort_handle());
}

/// Keeps one listen stream open until it is refused or the connection ends.
async fn keep(core: Arc<ConnectionState>, listener: Arc<Listener>) {
    let (shortest, longest) = (Duration::from_millis(200), Duration::from_secs(30));
    let mut pause = shortest;
    let mut times = 0;
    let why = loop {
        let began = Instant::now();
        match open(&core, &listener, times > 0).await {
            Err(why) if matches!(why.kind(), ErrorKind::Closed | ErrorKind::Rpc | ErrorKind::NotGranted) => break why,
            Err(why) if why.is_closed() && core.config.restart.is_none() => break why,
            Err(why) => tracing::debug!(%why, "a listen stream ended"),
            Ok(()) => tracing::debug!("the server ended a listen stream"),
        }
        *lock(&listener.current) = None;
        core.feed.ended(&listener.interests.tasks);
        times += 1;
        if began.elapsed() > longest {
            pause = shortest;
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(longest);
    };
    core.feed.ended(&listener.interests.tasks);
    if why.kind() == ErrorKind::NotGranted {
        tracing::warn!(%why, "a subscription ended");
    }
    listener.queue.close();
    listener.state.send_modify(|state| state.failed = Some(why));
}

/// How long to wait for other tasks to listen to before the stream is opened with the new set.
const GATHER: Duration = Duration::from_millis(50);

/// Opens the one stream that tells of tasks again, soon, if it is to tell of others than now.
pub(crate) fn follow_tasks(core: &Arc<ConnectionState>) {
    if core.feed.scheduled.swap(true, Ordering::AcqRel) {
        return;
    }
    let core = Arc::downgrade(core);
    tokio::spawn(boxed(async move {
        tokio::time::sleep(GATHER).await;
        let Some(core) = core.upgrade() else { return };
        core.feed.scheduled.store(false, Ordering::Release);
        let tasks = core.feed.wanted();
        let mut stream = lock(&core.feed.stream);
        if stream.as_ref().map_or(tasks.is_empty(), |(_, now)| *now == tasks) {
            return;
        }
        if let Some((key, before)) = stream.take() {
            lock(&core.listeners).remove(key);
            core.feed.ended(&before);
        }
        if !tasks.is_empty() {
            let listener = listener(&core, ChangeFilter { tasks: tasks.clone(), ..ChangeFilter::default() });
            let key = lock(&core.listeners).add(&listener);
            start(&core, key, &listener);
            *stream = Some((key, tasks));
        }
    }));
}

async fn open(core: &Arc<ConnectionState>, listener: &Listener, again: bool) -> Result<()> {
    let live = core.live().await?;
    let id = core.next_id();
    listener.missed.fetch_or(again, Ordering::AcqRel);
    *lock(&listener.current) = Some(id);
    let out = live.writer.request(id, "subscriptions/listen", Extras::default(), |members| {
        // A struct of booleans and strings: serialising cannot fail.
        let _ = members.value("notifications", &listener.interests.filter());
    });
    let mut cancel = Cancel { live: &live, id, answered: false };
    let answer = tokio::select! {
        biased;
        why = refused(listener) => return Err(why),
        answer = live.link.exchange(out) => answer,
    };
    cancel.answered = true;
    core.response(id, answer?, live.agreed.features, "subscriptions/listen").map(drop)
}

/// Waits until the server acknowledges the subscription without granting anything of it.
async fn refused(listener: &Listener) -> Error {
    let mut state = listener.state.subscribe();
    let refused = state.wait_for(|state| state.refused.is_some()).await.ok().and_then(|state| state.refused.clone());
    match refused {
        Some(why) => why,
        None => std::future::pending().await,
    }
}

/// One request on this transport, without reconnecting.
pub(crate) async fn once(
    core: &Arc<ConnectionState>,
    live: &Arc<ActiveTransport>,
    request: &RequestParts,
) -> Result<Response> {
    let limit = core.config.limits.calls.run_ms_max;
    let options = Options { timeout: (limit > 0).then(|| Duration::from_millis(limit)), ..Options::default() };
    core.exchange_on(live, request, &options, &Round::default()).await
}
