//! Subscriptions: a listen stream that is kept open or, with sessions, subscriptions that are renewed.
//!
//! Specification: 2026-07-28 "Subscriptions"; 2025-11-25 "Resources", subscriptions.

use crate::connection_state::{ActiveTransport, Cancel, ConnectionState, Options, RequestParts, Response, lock};
use crate::error::{Error, ErrorKind};
use crate::mrtr::Round;
use crate::queue::Queue;
use crate::{Change, Result};
use futures_core::Stream;
use linchpin_proto::message_writer::Extras;
use linchpin_types::subscribe::SubscriptionFilter;
use std::collections::HashMap;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::Instant;

/// A filter for changes to subscribe to.
///
/// ```
/// # use linchpin_client::ChangeFilter;
/// let filter = ChangeFilter::lists().resource("file:///notes");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct ChangeFilter {
    tools: bool,
    prompts: bool,
    resources: bool,
    uris: Vec<String>,
}

impl ChangeFilter {
    /// Creates an empty filter.
    pub fn new() -> ChangeFilter {
        ChangeFilter::default()
    }

    /// Creates a filter for all lists.
    pub fn lists() -> ChangeFilter {
        ChangeFilter { tools: true, prompts: true, resources: true, uris: Vec::new() }
    }

    /// Adds the list of tools.
    pub fn tools(mut self) -> ChangeFilter {
        self.tools = true;
        self
    }

    /// Adds the list of prompts.
    pub fn prompts(mut self) -> ChangeFilter {
        self.prompts = true;
        self
    }

    /// Adds the lists of resources and templates.
    pub fn resources(mut self) -> ChangeFilter {
        self.resources = true;
        self
    }

    /// Adds a resource and its sub-resources: `file:///a` includes `file:///a/b`, but not `file:///ab`.
    pub fn resource(mut self, uri: impl Into<String>) -> ChangeFilter {
        self.uris.push(uri.into());
        self
    }

    fn includes(&self, change: &Change) -> bool {
        match change {
            Change::Tools => self.tools,
            Change::Prompts => self.prompts,
            Change::Resources => self.resources,
            // Servers may notify about a sub-resource of a subscribed resource.
            Change::Updated(uri) => self.uris.iter().any(|mine| is_part(uri, mine)),
        }
    }

    fn all(&self) -> Vec<Change> {
        let lists = [(self.tools, Change::Tools), (self.prompts, Change::Prompts), (self.resources, Change::Resources)];
        let lists = lists.into_iter().filter(|(on, _)| *on).map(|(_, change)| change);
        lists.chain(self.uris.iter().cloned().map(Change::Updated)).collect()
    }

    fn filter(&self) -> SubscriptionFilter {
        let mut filter = SubscriptionFilter::new().with_resource_subscriptions(self.uris.iter());
        filter.tools_list_changed = self.tools.then_some(true);
        filter.prompts_list_changed = self.prompts.then_some(true);
        filter.resources_list_changed = self.resources.then_some(true);
        filter
    }
}

/// Whether `uri` is `whole` or a sub-resource of it. The specification does not define this, so path segments, the
/// query and the fragment are the boundaries.
fn is_part(uri: &str, whole: &str) -> bool {
    let Some(rest) = uri.strip_prefix(whole) else { return false };
    rest.is_empty() || whole.ends_with('/') || rest.starts_with(['/', '?', '#'])
}

/// A stream of changes. Ends with the connection; dropping it unsubscribes. Also a [`Stream`].
///
/// It resubscribes after a reconnect and then reports everything in its filter as changed, because changes may have
/// been missed. If changes arrive faster than they are read, the oldest are dropped (`messages.queued_max`).
pub struct Changes {
    core: Arc<ConnectionState>,
    key: u64,
    listener: Arc<Listener>,
}

impl Changes {
    /// Returns the next change; `None` once the connection has ended. Cancel-safe.
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

/// All subscribers of one connection.
#[derive(Default)]
pub(crate) struct Listeners {
    all: HashMap<u64, (Arc<Listener>, Option<AbortHandle>)>,
    last: u64,
    closed: bool,
}

pub(crate) struct Listener {
    interests: ChangeFilter,
    queue: Queue<Change>,
    /// The id of the open listen request.
    current: Mutex<Option<u64>>,
    /// Whether changes may have been missed since the last listen stream.
    missed: AtomicBool,
    state: watch::Sender<State>,
}

#[derive(Clone, Default)]
struct State {
    acknowledged: bool,
    granted: Option<SubscriptionFilter>,
    failed: Option<Error>,
}

impl Listeners {
    fn add(&mut self, listener: &Arc<Listener>) -> u64 {
        self.last += 1;
        if self.closed {
            listener.queue.close();
        }
        self.all.insert(self.last, (listener.clone(), None));
        self.last
    }

    fn runs(&mut self, key: u64, task: AbortHandle) {
        match self.all.get_mut(&key) {
            Some((_, slot)) if !self.closed => *slot = Some(task),
            _ => task.abort(),
        }
    }

    /// Removes a subscriber. Returns the URIs without other subscribers.
    fn remove(&mut self, key: u64) -> Vec<String> {
        let Some((listener, task)) = self.all.remove(&key) else { return Vec::new() };
        if let Some(task) = task {
            task.abort();
        }
        let others = self.subscribed();
        listener.interests.uris.iter().filter(|uri| !others.contains(uri)).cloned().collect()
    }

    /// All subscribed URIs, without duplicates.
    pub(crate) fn subscribed(&self) -> Vec<String> {
        let mut uris: Vec<String> =
            self.all.values().flat_map(|(listener, _)| listener.interests.uris.iter().cloned()).collect();
        uris.sort();
        uris.dedup();
        uris
    }

    /// Reports a change; `listen` is the stream that it arrived on, if there is one.
    pub(crate) fn changed(&self, change: &Change, listen: Option<u64>) {
        for (listener, _) in self.all.values() {
            let mine = listen.is_none_or(|id| *lock(&listener.current) == Some(id));
            if mine && listener.interests.includes(change) {
                listener.queue.push(change.clone());
            }
        }
    }

    /// A listen stream was opened. Returns the changes that may have been missed since the one before.
    pub(crate) fn acknowledged(&self, listen: u64, granted: Option<SubscriptionFilter>) -> Vec<Change> {
        let mut missed = Vec::new();
        for (listener, _) in self.all.values().filter(|(l, _)| *lock(&l.current) == Some(listen)) {
            listener.state.send_modify(|state| {
                state.acknowledged = true;
                state.granted.clone_from(&granted);
            });
            if listener.missed.swap(false, Ordering::AcqRel) {
                for change in listener.interests.all() {
                    listener.queue.push(change.clone());
                    missed.push(change);
                }
            }
        }
        missed
    }

    /// The transport was lost. Without a listen stream, which ends by itself, nothing else tells a subscriber so.
    pub(crate) fn lost(&self, for_good: bool) {
        for (listener, task) in self.all.values() {
            *lock(&listener.current) = None;
            if for_good && task.is_none() {
                listener.queue.close();
            }
        }
    }

    /// No more changes will arrive.
    pub(crate) fn close(&mut self) {
        self.closed = true;
        for (listener, task) in self.all.values_mut() {
            listener.queue.close();
            if let Some(task) = task.take() {
                task.abort();
            }
        }
    }
}

fn listener(core: &ConnectionState, interests: ChangeFilter) -> Arc<Listener> {
    let queue = Queue::new(core.recipe.limits.messages.queued_max);
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
    let limit = Duration::from_millis(core.recipe.limits.calls.run_ms_max.max(1));
    if live.agreed.features.listens {
        let key = lock(&core.listeners).add(&listener);
        let changes = Changes { core: core.clone(), key, listener: listener.clone() };
        start(core, key, &listener);
        let mut state = listener.state.subscribe();
        let settled = state.wait_for(|state| state.acknowledged || state.failed.is_some());
        let settled = tokio::time::timeout(limit, settled).await.map_err(|_| Error::timeout(limit))?;
        if let Some(why) = settled.ok().and_then(|state| state.failed.clone()) {
            return Err(why);
        }
        return Ok(changes);
    }
    let before = lock(&core.listeners).subscribed();
    let key = lock(&core.listeners).add(&listener);
    // From here on, dropping `changes` unsubscribes.
    let changes = Changes { core: core.clone(), key, listener: listener.clone() };
    if let (Some(why), None) = (live.lost.get(), &core.recipe.restart) {
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
    if core.recipe.on_change.is_none() || !live.agreed.features.listens {
        return;
    }
    let can = &live.agreed.capabilities;
    let interests = ChangeFilter {
        tools: can.tools.is_some_and(|c| c.list_changed == Some(true)),
        prompts: can.prompts.is_some_and(|c| c.list_changed == Some(true)),
        resources: can.resources.is_some_and(|c| c.list_changed == Some(true)),
        uris: Vec::new(),
    };
    if interests == ChangeFilter::new() {
        return;
    }
    let listener = listener(core, interests);
    let key = lock(&core.listeners).add(&listener);
    start(core, key, &listener);
}

fn start(core: &Arc<ConnectionState>, key: u64, listener: &Arc<Listener>) {
    let task = tokio::spawn(keep(core.clone(), listener.clone()));
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
            Err(why) if matches!(why.kind(), ErrorKind::Closed | ErrorKind::Rpc) => break why,
            Err(why) if why.is_closed() && core.recipe.restart.is_none() => break why,
            Err(why) => tracing::debug!(%why, "a listen stream ended"),
            Ok(()) => tracing::debug!("the server ended a listen stream"),
        }
        *lock(&listener.current) = None;
        times += 1;
        if began.elapsed() > longest {
            pause = shortest;
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(longest);
    };
    listener.queue.close();
    listener.state.send_modify(|state| state.failed = Some(why));
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
    let answer = live.link.exchange(out).await;
    cancel.answered = true;
    core.response(answer?, live.agreed.features).map(drop)
}

/// One request on this transport, without reconnecting.
pub(crate) async fn once(
    core: &Arc<ConnectionState>,
    live: &Arc<ActiveTransport>,
    request: &RequestParts,
) -> Result<Response> {
    let limit = core.recipe.limits.calls.run_ms_max;
    let options = Options { timeout: (limit > 0).then(|| Duration::from_millis(limit)), ..Options::default() };
    core.exchange_on(live, request, &options, &Round::default()).await
}
