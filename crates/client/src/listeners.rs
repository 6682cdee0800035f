//! The subscriptions of a host.

use crate::Change;
use crate::error::{Error, ErrorKind};
use crate::queue::Queue;
use linchpin_types::subscribe::SubscriptionFilter;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use tokio::sync::watch;
use tokio::task::AbortHandle;

use crate::lock::lock;

/// A filter for changes to subscribe to.
///
/// ```
/// # use linchpin_client::ChangeFilter;
/// let filter = ChangeFilter::lists().resource("file:///notes");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct ChangeFilter {
    pub(crate) tools: bool,
    pub(crate) prompts: bool,
    pub(crate) resources: bool,
    pub(crate) uris: Vec<String>,
    /// Tasks, by their identifiers; for this crate only, which passes what it hears on to who waits for them.
    pub(crate) tasks: Vec<String>,
}

impl ChangeFilter {
    /// Creates an empty filter.
    pub fn new() -> ChangeFilter {
        ChangeFilter::default()
    }

    /// Creates a filter for all lists.
    pub fn lists() -> ChangeFilter {
        ChangeFilter { tools: true, prompts: true, resources: true, ..ChangeFilter::default() }
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

    /// The error if the server grants nothing of what is asked for.
    fn refused(&self, granted: &SubscriptionFilter) -> Option<Error> {
        let lists = [
            (self.tools, granted.tools_list_changed, "the list of tools"),
            (self.prompts, granted.prompts_list_changed, "the list of prompts"),
            (self.resources, granted.resources_list_changed, "the lists of resources"),
        ];
        let asked = lists.iter().filter(|(asked, ..)| *asked);
        let resources = !self.uris.is_empty() && !granted.resource_subscriptions.is_empty();
        if resources || asked.clone().any(|(_, granted, _)| *granted == Some(true)) {
            return None;
        }
        let names: Vec<&str> = asked.map(|(.., name)| *name).chain(self.uris.iter().map(String::as_str)).collect();
        if names.is_empty() {
            return None;
        }
        let shown: String = names.join(", ").chars().take(NAMES_CHARS).collect();
        Some(Error::new(
            ErrorKind::NotGranted,
            format!("the server does not grant notifications of changes of {shown}"),
        ))
    }

    pub(crate) fn filter(&self) -> SubscriptionFilter {
        let mut filter =
            SubscriptionFilter::new().with_resource_subscriptions(self.uris.iter()).with_task_ids(self.tasks.iter());
        filter.tools_list_changed = self.tools.then_some(true);
        filter.prompts_list_changed = self.prompts.then_some(true);
        filter.resources_list_changed = self.resources.then_some(true);
        filter
    }
}

/// How much of what was asked for is named in an error.
const NAMES_CHARS: usize = 300;

/// Whether `uri` is `whole` or a sub-resource of it. The specification does not define this, so path segments, the
/// query and the fragment are the boundaries.
fn is_part(uri: &str, whole: &str) -> bool {
    let Some(rest) = uri.strip_prefix(whole) else { return false };
    rest.is_empty() || whole.ends_with('/') || rest.starts_with(['/', '?', '#'])
}

/// All subscribers of one connection.
#[derive(Default)]
pub(crate) struct Listeners {
    pub(crate) all: HashMap<u64, (Arc<Listener>, Option<AbortHandle>)>,
    pub(crate) last: u64,
    pub(crate) closed: bool,
}

pub(crate) struct Listener {
    pub(crate) interests: ChangeFilter,
    pub(crate) queue: Queue<Change>,
    /// The id of the open listen request.
    pub(crate) current: Mutex<Option<u64>>,
    /// Whether changes may have been missed since the last listen stream.
    pub(crate) missed: AtomicBool,
    pub(crate) state: watch::Sender<State>,
}

#[derive(Clone, Default)]
pub(crate) struct State {
    pub(crate) acknowledged: bool,
    pub(crate) granted: Option<SubscriptionFilter>,
    /// Nothing was granted.
    pub(crate) refused: Option<Error>,
    pub(crate) failed: Option<Error>,
}

impl Listeners {
    pub(crate) fn add(&mut self, listener: &Arc<Listener>) -> u64 {
        self.last += 1;
        if self.closed {
            listener.queue.close();
        }
        self.all.insert(self.last, (listener.clone(), None));
        self.last
    }

    pub(crate) fn runs(&mut self, key: u64, task: AbortHandle) {
        match self.all.get_mut(&key) {
            Some((_, slot)) if !self.closed => *slot = Some(task),
            _ => task.abort(),
        }
    }

    /// Removes a subscriber. Returns the URIs without other subscribers.
    pub(crate) fn remove(&mut self, key: u64) -> Vec<String> {
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
        uris.sort_unstable();
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
            let refused = granted.as_ref().and_then(|granted| listener.interests.refused(granted));
            listener.state.send_modify(|state| {
                state.acknowledged |= refused.is_none();
                state.granted.clone_from(&granted);
                state.refused = refused;
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

    /// The server refused to renew the subscriptions to these URIs: who waits for nothing else would wait for ever.
    pub(crate) fn refused(&self, uris: &[String]) {
        for (listener, _) in self.all.values() {
            let interests = &listener.interests;
            let lists = interests.tools || interests.prompts || interests.resources;
            if !lists && !interests.uris.is_empty() && interests.uris.iter().all(|uri| uris.contains(uri)) {
                listener.queue.close();
            }
        }
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
