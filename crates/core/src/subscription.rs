//! Change notifications for subscribers: coalesced, bounded, and never blocking the publisher.
//!
//! A list change is one bit and a resource update one entry of a set, so a subscriber that never reads costs a bounded
//! amount of memory, and one that reads late still learns which lists and resources have changed.

use crate::budget::{Budget, EXHAUSTED, Reservation};
use crate::id::Id;
use crate::json::write_str;
use crate::render;
use bytes::Bytes;
use std::any::Any;
use std::collections::{BTreeSet, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// Something that changed.
///
/// ```
/// use linchpin_core::ServerChange;
///
/// // What a relay between processes may send for it.
/// fn written(change: &ServerChange) -> Option<String> {
///     match change {
///         ServerChange::Tools => Some("tools".to_owned()),
///         ServerChange::Prompts => Some("prompts".to_owned()),
///         ServerChange::Resources => Some("resources".to_owned()),
///         ServerChange::Updated(uri) => Some(format!("updated {uri}")),
///         // It is for one session only.
///         _ => None,
///     }
/// }
/// assert_eq!(written(&ServerChange::Updated("file:///a".into())).as_deref(), Some("updated file:///a"));
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ServerChange {
    /// The list of tools.
    Tools,
    /// The list of prompts.
    Prompts,
    /// The list of resources or templates.
    Resources,
    /// The resource of this URI.
    Updated(Arc<str>),
    /// A log message for the session, as a complete frame. The oldest are dropped if the client does not read them.
    Log(Bytes),
    /// A request for the client of the session, or its cancellation, as a complete frame. Never dropped.
    Request(Bytes),
}

/// The list changes that a subscription receives.
///
/// ```
/// use linchpin_core::ChangeBus;
/// use linchpin_core::subscription::Filter;
/// use std::sync::Arc;
///
/// let bus = Arc::new(ChangeBus::default());
/// let only_tools = Filter { tools: true, ..Filter::default() };
/// assert!(bus.open(only_tools, 10).is_some());
/// ```
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub struct Filter {
    /// Changes of the tool list.
    pub tools: bool,
    /// Changes of the prompt list.
    pub prompts: bool,
    /// Changes of the resource list.
    pub resources: bool,
}

const TOOLS: u8 = 1;
const PROMPTS: u8 = 2;
const RESOURCES: u8 = 4;
/// The most log messages that wait.
const LOGS_MAX: usize = 128;
/// Longest URI that can be subscribed to, and the longest total of one subscription's URIs.
const URI_BYTES_MAX: usize = 8 << 10;
const URIS_BYTES_MAX: usize = 256 << 10;

/// The pending changes of one subscriber.
///
/// ```
/// use linchpin_core::subscription::{Filter, ServerChange};
/// use linchpin_core::{Budget, ChangeBus};
/// use std::sync::Arc;
/// use std::task::{Context, Poll, Waker};
///
/// let bus = Arc::new(ChangeBus::default());
/// let handle = bus.open(Filter::default(), 10).unwrap();
/// let subscription = handle.feed();
/// subscription.subscribe("file:///a", 10, &Budget::new(1024))?;
/// bus.publish(&ServerChange::Updated("file:///a".into()));
/// bus.publish(&ServerChange::Updated("file:///b".into()));
///
/// let mut cx = Context::from_waker(Waker::noop());
/// let updated = ServerChange::Updated("file:///a".into());
/// assert_eq!(subscription.poll_next(&mut cx), Poll::Ready(Some(updated)));
/// assert_eq!(subscription.poll_next(&mut cx), Poll::Pending);
/// # Ok::<(), linchpin_core::SubscribeError>(())
/// ```
pub struct Subscription {
    inner: Mutex<Inner>,
    subscriber: Option<Subscriber>,
}

#[derive(Default)]
struct Inner {
    wants: u8,
    pending: u8,
    uris: BTreeSet<Box<str>>,
    /// For the bytes of `uris`.
    kept: Option<Reservation>,
    updated: VecDeque<Arc<str>>,
    /// Log messages and requests, in the order of sending.
    messages: VecDeque<(Kind, Bytes)>,
    waker: Option<Waker>,
    closed: bool,
    /// Counts changes of `uris`.
    changes: u32,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Log,
    /// With its id.
    Request(u64),
    Withdrawal,
}

impl Inner {
    fn add(&mut self, kind: Kind, frame: Bytes) {
        self.messages.push_back((kind, frame));
        self.wake();
    }

    fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

/// The owner of a subscription: a value of the service, for [`ChangeBus::publish_to`].
pub type Subscriber = Arc<dyn Any + Send + Sync>;

impl Subscription {
    fn new(filter: Filter, subscriber: Option<Subscriber>) -> Subscription {
        let bit = |on, bit| if on { bit } else { 0 };
        let wants = bit(filter.tools, TOOLS) | bit(filter.prompts, PROMPTS) | bit(filter.resources, RESOURCES);
        Subscription { inner: Mutex::new(Inner { wants, ..Inner::default() }), subscriber }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the subscriber, if the subscription was opened with [`ChangeBus::open_for`].
    pub fn subscriber(&self) -> Option<&Subscriber> {
        self.subscriber.as_ref()
    }

    /// Whether it is subscribed to a change.
    fn wants(&self, change: &ServerChange) -> bool {
        let inner = self.lock();
        match change {
            ServerChange::Tools => inner.wants & TOOLS != 0,
            ServerChange::Prompts => inner.wants & PROMPTS != 0,
            ServerChange::Resources => inner.wants & RESOURCES != 0,
            ServerChange::Updated(uri) => inner.uris.contains(&**uri),
            ServerChange::Log(_) | ServerChange::Request(_) => true,
        }
    }

    /// Adds a request to the client.
    pub(crate) fn request(&self, id: u64, frame: Bytes) {
        self.lock().add(Kind::Request(id), frame);
    }

    /// Withdraws a request. If it still waits, the client hears nothing of it; otherwise `frame` says it.
    pub(crate) fn withdraw(&self, id: u64, frame: Bytes) {
        let mut inner = self.lock();
        match inner.messages.iter().position(|(kind, _)| *kind == Kind::Request(id)) {
            Some(at) => drop(inner.messages.remove(at)),
            None => inner.add(Kind::Withdrawal, frame),
        }
    }

    /// Adds `change` if the subscriber wants it. Repeats of a pending change are combined. Returns whether an older log message
    /// was dropped to make room.
    pub fn push(&self, change: &ServerChange) -> bool {
        let mut inner = self.lock();
        let inner = &mut *inner;
        let mut gave_way = false;
        match change {
            ServerChange::Tools => inner.pending |= TOOLS & inner.wants,
            ServerChange::Prompts => inner.pending |= PROMPTS & inner.wants,
            ServerChange::Resources => inner.pending |= RESOURCES & inner.wants,
            // `updated` has no duplicates, so it is bounded by the number of subscribed URIs.
            ServerChange::Updated(uri) if inner.uris.contains(&**uri) && !inner.updated.contains(uri) => {
                inner.updated.push_back(uri.clone())
            }
            ServerChange::Updated(_) => return false,
            ServerChange::Log(frame) => {
                let is_log = |(kind, _): &&(Kind, Bytes)| *kind == Kind::Log;
                if inner.messages.len() >= LOGS_MAX && inner.messages.iter().filter(is_log).count() >= LOGS_MAX {
                    let oldest = inner.messages.iter().position(|(kind, _)| *kind == Kind::Log);
                    oldest.map(|at| inner.messages.remove(at));
                    gave_way = true;
                }
                inner.add(Kind::Log, frame.clone());
            }
            ServerChange::Request(frame) => inner.add(Kind::Withdrawal, frame.clone()),
        }
        if inner.pending != 0 || !inner.updated.is_empty() {
            inner.wake();
        }
        gave_way
    }

    /// Polls for the next change; `None` once the subscription is closed and empty. Only the last task that polled is woken.
    pub fn poll_next(&self, cx: &mut Context<'_>) -> Poll<Option<ServerChange>> {
        let mut inner = self.lock();
        let inner = &mut *inner;
        if inner.pending != 0 {
            let bit = 1 << inner.pending.trailing_zeros();
            inner.pending &= !bit;
            return Poll::Ready(Some(match bit {
                TOOLS => ServerChange::Tools,
                PROMPTS => ServerChange::Prompts,
                _ => ServerChange::Resources,
            }));
        }
        if let Some(uri) = inner.updated.pop_front() {
            return Poll::Ready(Some(ServerChange::Updated(uri)));
        }
        if let Some((kind, frame)) = inner.messages.pop_front() {
            let change = if kind == Kind::Log { ServerChange::Log(frame) } else { ServerChange::Request(frame) };
            return Poll::Ready(Some(change));
        }
        if inner.closed {
            return Poll::Ready(None);
        }
        match &mut inner.waker {
            Some(waker) => waker.clone_from(cx.waker()),
            none => *none = Some(cx.waker().clone()),
        }
        Poll::Pending
    }

    /// Subscribes to updates of a resource, up to `max` resources. The URI's memory is taken from `budget`.
    ///
    /// # Errors
    /// If a limit is reached; the error's text is for the client.
    pub fn subscribe(&self, uri: &str, max: usize, budget: &Arc<Budget>) -> Result<(), SubscribeError> {
        let mut inner = self.lock();
        if inner.uris.contains(uri) {
            return Ok(());
        }
        if uri.len() > URI_BYTES_MAX {
            return Err(SubscribeError::UriTooLong { max: URI_BYTES_MAX });
        }
        if inner.uris.len() >= max {
            return Err(SubscribeError::TooMany { max });
        }
        let kept = inner.kept.as_ref().map_or(0, Reservation::bytes) + uri.len();
        if kept > URIS_BYTES_MAX {
            return Err(SubscribeError::UrisTooLong { max: URIS_BYTES_MAX });
        }
        let reserved = match &mut inner.kept {
            Some(kept) => kept.grow(uri.len()),
            none => {
                *none = budget.reserve(uri.len());
                none.is_some()
            }
        };
        if !reserved {
            return Err(SubscribeError::OutOfMemory);
        }
        inner.uris.insert(uri.into());
        inner.changes = inner.changes.wrapping_add(1);
        Ok(())
    }

    /// Unsubscribes from a resource. Unknown URIs are ignored.
    pub fn unsubscribe(&self, uri: &str) {
        let mut inner = self.lock();
        if inner.uris.remove(uri) {
            inner.changes = inner.changes.wrapping_add(1);
            if let Some(kept) = &mut inner.kept {
                kept.shrink(uri.len());
            }
        }
        inner.updated.retain(|u| &**u != uri);
    }

    /// Returns how often a resource was subscribed to or unsubscribed from.
    pub fn changes(&self) -> u32 {
        self.lock().changes
    }

    /// Returns the URIs of the subscribed resources.
    pub fn subscriptions(&self) -> Vec<Box<str>> {
        self.lock().uris.iter().cloned().collect()
    }

    /// Closes the subscription. Changes that are already pending can still be polled.
    pub fn close(&self) {
        let mut inner = self.lock();
        inner.closed = true;
        if let Some(waker) = inner.waker.take() {
            waker.wake();
        }
    }
}

impl fmt::Debug for Subscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscription").finish_non_exhaustive()
    }
}

/// Why subscribing to a resource failed. The text is for the client.
///
/// ```
/// use linchpin_core::subscription::Filter;
/// use linchpin_core::{Budget, ChangeBus, SubscribeError};
/// use std::sync::Arc;
///
/// let handle = Arc::new(ChangeBus::default()).open(Filter::default(), 10).unwrap();
/// let (limit, budget) = (1, Budget::new(1024));
/// handle.feed().subscribe("file:///a", limit, &budget)?;
/// let error = handle.feed().subscribe("file:///b", limit, &budget).unwrap_err();
/// assert_eq!(error, SubscribeError::TooMany { max: 1 });
/// # Ok::<(), SubscribeError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SubscribeError {
    /// The URI is too long.
    UriTooLong {
        /// The limit in bytes.
        max: usize,
    },
    /// Too many subscribed resources.
    TooMany {
        /// The limit.
        max: usize,
    },
    /// The URIs are too long in total.
    UrisTooLong {
        /// The limit in bytes.
        max: usize,
    },
    /// The server's memory budget is exhausted. The request itself is valid.
    OutOfMemory,
}

impl fmt::Display for SubscribeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SubscribeError::UriTooLong { max } => write!(f, "the URI is longer than {max} bytes"),
            SubscribeError::TooMany { max } => write!(f, "too many subscriptions (limit {max}); end one first"),
            SubscribeError::UrisTooLong { max } => {
                write!(f, "the subscribed URIs are longer than {max} bytes together; end one first")
            }
            SubscribeError::OutOfMemory => f.write_str(EXHAUSTED),
        }
    }
}

impl std::error::Error for SubscribeError {}

/// All subscriptions of one server.
///
/// ```
/// use linchpin_core::subscription::{Filter, ServerChange};
/// use linchpin_core::ChangeBus;
/// use std::sync::Arc;
/// use std::task::{Context, Poll, Waker};
///
/// let bus = Arc::new(ChangeBus::default());
/// let handle = bus.open(Filter { tools: true, ..Filter::default() }, 10).unwrap();
/// bus.publish(&ServerChange::Tools);
/// bus.publish(&ServerChange::Prompts);
/// bus.close();
///
/// let mut cx = Context::from_waker(Waker::noop());
/// assert_eq!(handle.feed().poll_next(&mut cx), Poll::Ready(Some(ServerChange::Tools)));
/// assert_eq!(handle.feed().poll_next(&mut cx), Poll::Ready(None));
/// ```
#[derive(Default)]
pub struct ChangeBus(Mutex<Slots>);

#[derive(Default)]
struct Slots {
    feeds: Vec<Option<Arc<Subscription>>>,
    free: Vec<u32>,
    closed: bool,
}

impl ChangeBus {
    fn lock(&self) -> MutexGuard<'_, Slots> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens a subscription until its handle is dropped. `None` if `max` subscriptions are open.
    ///
    /// It receives the changes of [`ChangeBus::publish`].
    pub fn open(self: &Arc<Self>, filter: Filter, max: usize) -> Option<SubscriptionHandle> {
        self.insert(filter, max, None)
    }

    /// Like [`ChangeBus::open`]; the subscription also receives the changes of [`ChangeBus::publish_to`] for this
    /// subscriber.
    pub fn open_for(
        self: &Arc<Self>,
        filter: Filter,
        max: usize,
        subscriber: Subscriber,
    ) -> Option<SubscriptionHandle> {
        self.insert(filter, max, Some(subscriber))
    }

    fn insert(
        self: &Arc<Self>,
        filter: Filter,
        max: usize,
        subscriber: Option<Subscriber>,
    ) -> Option<SubscriptionHandle> {
        let mut slots = self.lock();
        if slots.feeds.len() - slots.free.len() >= max {
            return None;
        }
        let feed = Arc::new(Subscription::new(filter, subscriber));
        if slots.closed {
            feed.close();
        }
        let slot = match slots.free.pop() {
            Some(slot) => slot,
            None => {
                slots.feeds.push(None);
                (slots.feeds.len() - 1) as u32
            }
        };
        slots.feeds[slot as usize] = Some(feed.clone());
        Some(SubscriptionHandle { feed, changes: self.clone(), slot })
    }

    /// Adds a change to every subscription whose filter includes it.
    pub fn publish(&self, change: &ServerChange) {
        for feed in self.lock().feeds.iter().flatten() {
            feed.push(change);
        }
    }

    /// Adds a change to every subscription whose filter includes it and for whose subscriber `concerns` returns `true`. No
    /// lock is held while `concerns` runs.
    pub fn publish_to(&self, change: &ServerChange, concerns: impl Fn(&(dyn Any + Send + Sync)) -> bool) {
        let all: Vec<_> = self.lock().feeds.iter().flatten().filter(|feed| feed.wants(change)).cloned().collect();
        for feed in all {
            if feed.subscriber.as_deref().is_some_and(&concerns) {
                feed.push(change);
            }
        }
    }

    /// Returns the number of open subscriptions.
    pub fn open_feeds(&self) -> usize {
        let slots = self.lock();
        slots.feeds.len() - slots.free.len()
    }

    /// Closes all subscriptions, including those opened later.
    pub fn close(&self) {
        let mut slots = self.lock();
        slots.closed = true;
        for feed in slots.feeds.iter().flatten() {
            feed.close();
        }
    }
}

impl fmt::Debug for ChangeBus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChangeBus").field("open", &self.open_feeds()).finish()
    }
}

/// An open subscription. Dropping it removes the subscription from the bus: it receives no more changes.
///
/// ```
/// use linchpin_core::ChangeBus;
/// use linchpin_core::subscription::Filter;
/// use std::sync::Arc;
///
/// let bus = Arc::new(ChangeBus::default());
/// let handle = bus.open(Filter::default(), 10).unwrap();
/// assert_eq!(bus.open_feeds(), 1);
/// drop(handle);
/// assert_eq!(bus.open_feeds(), 0);
/// ```
#[derive(Debug)]
pub struct SubscriptionHandle {
    feed: Arc<Subscription>,
    changes: Arc<ChangeBus>,
    slot: u32,
}

impl SubscriptionHandle {
    /// Returns the subscription, to poll it from elsewhere.
    pub fn feed(&self) -> &Arc<Subscription> {
        &self.feed
    }
}

impl Drop for SubscriptionHandle {
    fn drop(&mut self) {
        let mut slots = self.changes.lock();
        slots.feeds[self.slot as usize] = None;
        slots.free.push(self.slot);
        if slots.free.len() == slots.feeds.len() {
            *slots = Slots { closed: slots.closed, ..Slots::default() };
        }
    }
}

impl ServerChange {
    /// Returns the notification frame, with the id of the `subscriptions/listen` request if there is one.
    pub fn frame(&self, subscription: Option<&Id>) -> Bytes {
        let (method, uri) = match self {
            ServerChange::Log(frame) | ServerChange::Request(frame) => return frame.clone(),
            ServerChange::Tools => ("notifications/tools/list_changed", None),
            ServerChange::Prompts => ("notifications/prompts/list_changed", None),
            ServerChange::Resources => ("notifications/resources/list_changed", None),
            ServerChange::Updated(uri) => ("notifications/resources/updated", Some(uri)),
        };
        let mut params = Vec::new();
        if let Some(id) = subscription {
            render::subscription_meta(&mut params, id);
        }
        if let Some(uri) = uri {
            params.extend_from_slice(if params.is_empty() { b"\"uri\":" } else { b",\"uri\":" });
            write_str(&mut params, uri);
        }
        render::notification(method, &params)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drain(feed: &Subscription) -> Vec<ServerChange> {
        let mut cx = Context::from_waker(Waker::noop());
        let mut all = Vec::new();
        while let Poll::Ready(Some(change)) = feed.poll_next(&mut cx) {
            all.push(change);
        }
        all
    }

    #[test]
    fn changes_are_coalesced_and_only_wanted_ones_arrive() {
        let changes = Arc::new(ChangeBus::default());
        let all = changes.open(Filter { tools: true, prompts: true, resources: true }, 2).unwrap();
        let some = changes.open(Filter { tools: true, ..Filter::default() }, 2).unwrap();
        some.feed().subscribe("a:1", 1, &Budget::new(9)).unwrap();
        assert!(changes.open(Filter::default(), 2).is_none(), "the third feed is over the limit");
        for change in [
            ServerChange::Tools,
            ServerChange::Prompts,
            ServerChange::Tools,
            ServerChange::Updated("a:1".into()),
            ServerChange::Updated("a:2".into()),
            ServerChange::Updated("a:1".into()),
        ] {
            changes.publish(&change);
        }
        assert_eq!(drain(all.feed()), [ServerChange::Tools, ServerChange::Prompts]);
        assert_eq!(drain(some.feed()), [ServerChange::Tools, ServerChange::Updated("a:1".into())]);
        drop(some);
        assert_eq!(changes.open_feeds(), 1);
        changes.close();
        assert_eq!(all.feed().poll_next(&mut Context::from_waker(Waker::noop())), Poll::Ready(None));
    }

    #[test]
    fn subscriptions_are_bounded_and_end() {
        let changes = Arc::new(ChangeBus::default());
        let h = changes.open(Filter::default(), 2).unwrap();
        let budget = Budget::new(2 * URIS_BYTES_MAX);
        let subscribe = |uri: &str, max| h.feed().subscribe(uri, max, &budget);
        for uri in ["a:1", "a:2", "a:1"] {
            subscribe(uri, 2).unwrap();
        }
        assert_eq!(subscribe("a:3", 2).unwrap_err().to_string(), "too many subscriptions (limit 2); end one first");
        let long = |n: usize| format!("a:{n:0>width$}", width = URI_BYTES_MAX - 2);
        assert_eq!(subscribe(&format!("{}x", long(1)), 99), Err(SubscribeError::UriTooLong { max: 8192 }));
        let fitting = (0..99).take_while(|n| subscribe(&long(*n), 99).is_ok()).count();
        assert_eq!(fitting, 31, "beside two short ones");
        assert!(subscribe(&long(99), 99).unwrap_err().to_string().contains("262144 bytes together"));
        let other = changes.open(Filter::default(), 2).unwrap();
        assert_eq!(other.feed().subscribe(&long(99), 99, &Budget::new(100)).unwrap_err(), SubscribeError::OutOfMemory);
        (0..fitting).for_each(|n| h.feed().unsubscribe(&long(n)));
        assert_eq!(budget.used(), 6);
        drop(other);
        changes.publish(&ServerChange::Updated("a:1".into()));
        h.feed().unsubscribe("a:1");
        changes.publish(&ServerChange::Updated("a:1".into()));
        assert_eq!(drain(h.feed()), []);
    }

    #[test]
    fn frames_name_their_subscription() {
        let id = Id::from_json("\"x\"").unwrap();
        assert_eq!(
            ServerChange::Updated("a:1".into()).frame(Some(&id)),
            r#"{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"x"},"uri":"a:1"}}"#
        );
        assert_eq!(ServerChange::Tools.frame(None), r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#);
    }
}
