//! Change notifications on their way to those who listen: coalesced, bounded, and never blocking the publisher.
//!
//! A list change is one bit and a resource update one entry of a set, so a reader who never comes costs a bounded amount
//! of memory, and one who comes late still learns everything that matters.

use crate::budget::{Budget, EXHAUSTED, Reservation};
use crate::id::Id;
use crate::json::write_str;
use crate::render;
use bytes::Bytes;
use std::collections::{BTreeSet, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// Something that changed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Change {
    /// The list of tools.
    Tools,
    /// The list of prompts.
    Prompts,
    /// The list of resources or templates.
    Resources,
    /// The resource of this URI.
    Updated(Arc<str>),
    /// A log message for the session, already a frame.
    Log(Bytes),
}

/// What a feed wants to hear of.
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
const LOGS_MAX: usize = 128;
/// Longest URI that can be subscribed to, and the longest that those of one feed may be together.
const URI_BYTES_MAX: usize = 8 << 10;
const URIS_BYTES_MAX: usize = 256 << 10;

/// What waits for one listener.
pub struct Feed(Mutex<Inner>);

#[derive(Default)]
struct Inner {
    wants: u8,
    pending: u8,
    uris: BTreeSet<Box<str>>,
    /// For the bytes of `uris`.
    kept: Option<Reservation>,
    updated: VecDeque<Arc<str>>,
    logs: VecDeque<Bytes>,
    waker: Option<Waker>,
    closed: bool,
}

impl Feed {
    fn new(filter: Filter) -> Feed {
        let bit = |on, bit| if on { bit } else { 0 };
        let wants = bit(filter.tools, TOOLS) | bit(filter.prompts, PROMPTS) | bit(filter.resources, RESOURCES);
        Feed(Mutex::new(Inner { wants, ..Inner::default() }))
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds `change` if the feed wants it. Repeats of a change that still waits are one.
    pub fn push(&self, change: &Change) {
        let mut inner = self.lock();
        let inner = &mut *inner;
        match change {
            Change::Tools => inner.pending |= TOOLS & inner.wants,
            Change::Prompts => inner.pending |= PROMPTS & inner.wants,
            Change::Resources => inner.pending |= RESOURCES & inner.wants,
            // `updated` holds no URI twice, so it is bounded by the subscriptions.
            Change::Updated(uri) if inner.uris.contains(&**uri) && !inner.updated.contains(uri) => {
                inner.updated.push_back(uri.clone())
            }
            Change::Updated(_) => return,
            Change::Log(frame) => {
                if inner.logs.len() == LOGS_MAX {
                    inner.logs.pop_front();
                }
                inner.logs.push_back(frame.clone());
            }
        }
        if (inner.pending != 0 || !inner.updated.is_empty() || !inner.logs.is_empty())
            && let Some(waker) = inner.waker.take()
        {
            waker.wake();
        }
    }

    /// The next change; `None` once the feed is closed and empty. Only the last task that polled is woken.
    pub fn poll_next(&self, cx: &mut Context<'_>) -> Poll<Option<Change>> {
        let mut inner = self.lock();
        let inner = &mut *inner;
        for (bit, change) in [(TOOLS, Change::Tools), (PROMPTS, Change::Prompts), (RESOURCES, Change::Resources)] {
            if inner.pending & bit != 0 {
                inner.pending &= !bit;
                return Poll::Ready(Some(change));
            }
        }
        if let Some(uri) = inner.updated.pop_front() {
            return Poll::Ready(Some(Change::Updated(uri)));
        }
        if let Some(frame) = inner.logs.pop_front() {
            return Poll::Ready(Some(Change::Log(frame)));
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

    /// Subscribes to updates of a resource, at most `max` of them. What is kept of the URI comes out of `budget`.
    ///
    /// # Errors
    /// What to tell the client: the URI is too long, or there are too many subscriptions, or too long ones.
    pub fn subscribe(&self, uri: &str, max: usize, budget: &Arc<Budget>) -> Result<(), String> {
        let mut inner = self.lock();
        if inner.uris.contains(uri) {
            return Ok(());
        }
        if uri.len() > URI_BYTES_MAX {
            return Err(format!("the URI is longer than {URI_BYTES_MAX} bytes"));
        }
        if inner.uris.len() >= max {
            return Err(format!("too many subscriptions (limit {max}); end one first"));
        }
        let kept = inner.kept.as_ref().map_or(0, Reservation::bytes) + uri.len();
        if kept > URIS_BYTES_MAX {
            return Err(format!("the subscribed URIs are longer than {URIS_BYTES_MAX} bytes together; end one first"));
        }
        let reserved = match &mut inner.kept {
            Some(kept) => kept.grow(uri.len()),
            none => {
                *none = budget.reserve(uri.len());
                none.is_some()
            }
        };
        if !reserved {
            return Err(EXHAUSTED.to_owned());
        }
        inner.uris.insert(uri.into());
        Ok(())
    }

    /// Ends a subscription. Unknown URIs are ignored.
    pub fn unsubscribe(&self, uri: &str) {
        let mut inner = self.lock();
        if inner.uris.remove(uri)
            && let Some(kept) = &mut inner.kept
        {
            kept.shrink(uri.len());
        }
        inner.updated.retain(|u| &**u != uri);
    }

    /// Resources the feed is subscribed to.
    pub fn subscriptions(&self) -> Vec<Box<str>> {
        self.lock().uris.iter().cloned().collect()
    }

    /// Ends the feed once what waits was taken.
    pub fn close(&self) {
        let mut inner = self.lock();
        inner.closed = true;
        if let Some(waker) = inner.waker.take() {
            waker.wake();
        }
    }
}

impl fmt::Debug for Feed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Feed").finish_non_exhaustive()
    }
}

/// All feeds of one server.
#[derive(Default)]
pub struct Hub(Mutex<Slots>);

#[derive(Default)]
struct Slots {
    feeds: Vec<Option<Arc<Feed>>>,
    free: Vec<u32>,
    closed: bool,
}

impl Hub {
    fn lock(&self) -> MutexGuard<'_, Slots> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens a feed. It is heard until its handle is dropped. `None` when `max` feeds are open.
    pub fn open(self: &Arc<Self>, filter: Filter, max: usize) -> Option<FeedHandle> {
        let mut slots = self.lock();
        if slots.feeds.len() - slots.free.len() >= max {
            return None;
        }
        let feed = Arc::new(Feed::new(filter));
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
        Some(FeedHandle { feed, hub: self.clone(), slot })
    }

    /// Tells every feed that wants to know.
    pub fn publish(&self, change: &Change) {
        for feed in self.lock().feeds.iter().flatten() {
            feed.push(change);
        }
    }

    /// How many feeds are open.
    pub fn open_feeds(&self) -> usize {
        let slots = self.lock();
        slots.feeds.len() - slots.free.len()
    }

    /// Closes every feed, and those opened later.
    pub fn close(&self) {
        let mut slots = self.lock();
        slots.closed = true;
        for feed in slots.feeds.iter().flatten() {
            feed.close();
        }
    }
}

impl fmt::Debug for Hub {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hub").field("open", &self.open_feeds()).finish()
    }
}

/// An open feed; dropping it closes it.
#[derive(Debug)]
pub struct FeedHandle {
    feed: Arc<Feed>,
    hub: Arc<Hub>,
    slot: u32,
}

impl FeedHandle {
    /// The feed, for those who poll it from elsewhere.
    pub fn feed(&self) -> &Arc<Feed> {
        &self.feed
    }
}

impl Drop for FeedHandle {
    fn drop(&mut self) {
        let mut slots = self.hub.lock();
        slots.feeds[self.slot as usize] = None;
        slots.free.push(self.slot);
        if slots.free.len() == slots.feeds.len() {
            *slots = Slots { closed: slots.closed, ..Slots::default() };
        }
    }
}

impl Change {
    /// The notification frame, naming the subscription it belongs to where streams are subscriptions.
    pub fn frame(&self, subscription: Option<&Id>) -> Bytes {
        let (method, uri) = match self {
            Change::Log(frame) => return frame.clone(),
            Change::Tools => ("notifications/tools/list_changed", None),
            Change::Prompts => ("notifications/prompts/list_changed", None),
            Change::Resources => ("notifications/resources/list_changed", None),
            Change::Updated(uri) => ("notifications/resources/updated", Some(uri)),
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

    fn drain(feed: &Feed) -> Vec<Change> {
        let mut cx = Context::from_waker(Waker::noop());
        let mut all = Vec::new();
        while let Poll::Ready(Some(change)) = feed.poll_next(&mut cx) {
            all.push(change);
        }
        all
    }

    #[test]
    fn changes_are_coalesced_and_only_wanted_ones_arrive() {
        let hub = Arc::new(Hub::default());
        let all = hub.open(Filter { tools: true, prompts: true, resources: true }, 2).unwrap();
        let some = hub.open(Filter { tools: true, ..Filter::default() }, 2).unwrap();
        some.feed().subscribe("a:1", 1, &Budget::new(9)).unwrap();
        assert!(hub.open(Filter::default(), 2).is_none(), "the third feed is over the limit");
        for change in [
            Change::Tools,
            Change::Prompts,
            Change::Tools,
            Change::Updated("a:1".into()),
            Change::Updated("a:2".into()),
            Change::Updated("a:1".into()),
        ] {
            hub.publish(&change);
        }
        assert_eq!(drain(all.feed()), [Change::Tools, Change::Prompts]);
        assert_eq!(drain(some.feed()), [Change::Tools, Change::Updated("a:1".into())]);
        drop(some);
        assert_eq!(hub.open_feeds(), 1);
        hub.close();
        assert_eq!(all.feed().poll_next(&mut Context::from_waker(Waker::noop())), Poll::Ready(None));
    }

    #[test]
    fn subscriptions_are_bounded_and_end() {
        let hub = Arc::new(Hub::default());
        let h = hub.open(Filter::default(), 2).unwrap();
        let budget = Budget::new(2 * URIS_BYTES_MAX);
        let subscribe = |uri: &str, max| h.feed().subscribe(uri, max, &budget);
        for uri in ["a:1", "a:2", "a:1"] {
            subscribe(uri, 2).unwrap();
        }
        assert_eq!(subscribe("a:3", 2).unwrap_err(), "too many subscriptions (limit 2); end one first");
        let long = |n: usize| format!("a:{n:0>width$}", width = URI_BYTES_MAX - 2);
        assert_eq!(subscribe(&format!("{}x", long(1)), 99).unwrap_err(), "the URI is longer than 8192 bytes");
        let fitting = (0..99).take_while(|n| subscribe(&long(*n), 99).is_ok()).count();
        assert_eq!(fitting, 31, "beside two short ones");
        assert!(subscribe(&long(99), 99).unwrap_err().contains("262144 bytes together"));
        let other = hub.open(Filter::default(), 2).unwrap();
        assert_eq!(other.feed().subscribe(&long(99), 99, &Budget::new(100)).unwrap_err(), EXHAUSTED);
        (0..fitting).for_each(|n| h.feed().unsubscribe(&long(n)));
        assert_eq!(budget.used(), 6);
        drop(other);
        hub.publish(&Change::Updated("a:1".into()));
        h.feed().unsubscribe("a:1");
        hub.publish(&Change::Updated("a:1".into()));
        assert_eq!(drain(h.feed()), []);
    }

    #[test]
    fn frames_name_their_subscription() {
        let id = Id::from_json("\"x\"").unwrap();
        assert_eq!(
            Change::Updated("a:1".into()).frame(Some(&id)),
            r#"{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"x"},"uri":"a:1"}}"#
        );
        assert_eq!(Change::Tools.frame(None), r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#);
    }
}
