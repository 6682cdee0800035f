//! An in-memory store, which several servers in one process can share as if each ran in its own, and functions that test
//! implementations of stores.
//!
//! ```
//! # async fn test() {
//! use linchpin_testing::store::{self, MemoryStore};
//!
//! let store = MemoryStore::default();
//! store::check_sessions(&store).await;
//! store::check_events(&store).await;
//! store::check_expiry(&store, &store, tokio::time::advance).await;
//! store::check_changes(&store.node(), &store.node()).await;
//! # }
//! ```

use bytes::Bytes;
use linchpin_core::service::BoxFuture;
use linchpin_core::store::{ChangeRelay, EventStore, SessionStore, StoreError, StoredEvent};
use linchpin_core::{Features, ServerChange, SessionRecord};
use linchpin_types::version::Revision;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// A store that keeps sessions, events and changes in the memory of this process. Clones share them.
///
/// ```
/// use linchpin::store::{SessionRecord, SessionStore};
/// use linchpin::types::version::Revision;
/// use linchpin_testing::store::MemoryStore;
/// use std::time::Duration;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), linchpin::store::StoreError> {
/// let store = MemoryStore::default();
/// store.save("a", SessionRecord::bare(Revision::V2025_11_25), Duration::from_secs(60)).await?;
/// assert_eq!(store.clone().sessions(), 1);
/// assert!(store.load("a").await?.is_some());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Default)]
pub struct MemoryStore(Arc<Mutex<Memory>>);

#[derive(Default)]
struct Memory {
    /// As JSON text, so that what is stored is what another process would read.
    sessions: HashMap<String, (String, Instant)>,
    streams: HashMap<(String, u64), Stream>,
    listeners: Vec<(usize, Deliver)>,
    nodes: usize,
}

type Deliver = Arc<dyn Fn(ServerChange) -> bool + Send + Sync>;

struct Stream {
    events: BTreeMap<u32, Bytes>,
    /// The number of the newest event that was trimmed.
    trimmed: u32,
    until: Instant,
}

impl MemoryStore {
    fn lock(&self) -> MutexGuard<'_, Memory> {
        let mut memory = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        memory.sessions.retain(|_, (_, until)| *until > now);
        memory.streams.retain(|_, stream| stream.until > now);
        memory
    }

    /// Returns the number of stored sessions.
    pub fn sessions(&self) -> usize {
        self.lock().sessions.len()
    }

    /// Creates a node of a server, a relay for its changes.
    pub fn node(&self) -> MemoryNode {
        let mut memory = self.lock();
        memory.nodes += 1;
        MemoryNode { store: self.clone(), number: memory.nodes }
    }
}

fn ready<T: Send + 'static>(value: T) -> BoxFuture<'static, Result<T, StoreError>> {
    Box::pin(std::future::ready(Ok(value)))
}

impl SessionStore for MemoryStore {
    fn save(&self, id: &str, record: SessionRecord, ttl: Duration) -> BoxFuture<'_, Result<(), StoreError>> {
        match serde_json::to_string(&record) {
            Ok(text) => {
                self.lock().sessions.insert(id.to_owned(), (text, Instant::now() + ttl));
                ready(())
            }
            Err(error) => Box::pin(std::future::ready(Err(StoreError::new(error)))),
        }
    }

    fn load(&self, id: &str) -> BoxFuture<'_, Result<Option<SessionRecord>, StoreError>> {
        let found = self.lock().sessions.get(id).map(|(text, _)| serde_json::from_str(text));
        Box::pin(std::future::ready(found.transpose().map_err(StoreError::new)))
    }

    fn touch(&self, ids: Vec<String>, ttl: Duration) -> BoxFuture<'_, Result<(), StoreError>> {
        let mut memory = self.lock();
        for id in ids {
            if let Some((_, until)) = memory.sessions.get_mut(&id) {
                *until = Instant::now() + ttl;
            }
        }
        ready(())
    }

    fn delete(&self, id: &str) -> BoxFuture<'_, Result<bool, StoreError>> {
        let found = self.lock().sessions.remove(id).is_some();
        ready(found)
    }
}

impl EventStore for MemoryStore {
    fn append(
        &self,
        session: &str,
        stream: u64,
        events: Vec<StoredEvent>,
        ttl: Duration,
    ) -> BoxFuture<'_, Result<(), StoreError>> {
        let mut memory = self.lock();
        let until = Instant::now() + ttl;
        let stream = memory.streams.entry((session.to_owned(), stream));
        let stream = stream.or_insert_with(|| Stream { events: BTreeMap::new(), trimmed: 0, until });
        stream.until = until;
        stream.events.extend(events.into_iter().map(|event| (event.number, event.bytes)));
        ready(())
    }

    fn after(
        &self,
        session: &str,
        stream: u64,
        after: u32,
    ) -> BoxFuture<'_, Result<Option<Vec<StoredEvent>>, StoreError>> {
        let memory = self.lock();
        let stream = memory.streams.get(&(session.to_owned(), stream)).filter(|stream| stream.trimmed <= after);
        let events = stream.map(|stream| {
            let after = stream.events.iter().filter(|(number, _)| **number > after);
            after.map(|(number, bytes)| StoredEvent::new(*number, bytes.clone())).collect()
        });
        ready(events)
    }

    fn trim(&self, session: &str, stream: u64, through: u32) -> BoxFuture<'_, Result<(), StoreError>> {
        if let Some(stream) = self.lock().streams.get_mut(&(session.to_owned(), stream)) {
            stream.events.retain(|number, _| *number > through);
            stream.trimmed = stream.trimmed.max(through);
        }
        ready(())
    }

    fn delete(&self, session: &str) -> BoxFuture<'_, Result<(), StoreError>> {
        self.lock().streams.retain(|(of, _), _| of != session);
        ready(())
    }
}

/// One node of a server whose changes go through a [`MemoryStore`].
///
/// ```
/// use linchpin::store::{ChangeRelay, ServerChange};
/// use linchpin_testing::store::MemoryStore;
/// use std::sync::mpsc;
///
/// let store = MemoryStore::default();
/// let (one, other) = (store.node(), store.node());
/// let (sender, changes) = mpsc::channel();
/// other.start(std::sync::Arc::new(move |change| sender.send(change).is_ok()));
/// one.publish(&ServerChange::Tools);
/// assert_eq!(changes.recv(), Ok(ServerChange::Tools));
/// ```
pub struct MemoryNode {
    store: MemoryStore,
    number: usize,
}

impl ChangeRelay for MemoryNode {
    fn publish(&self, change: &ServerChange) {
        let others: Vec<_> = self.store.lock().listeners.clone();
        let gone: Vec<_> = others
            .into_iter()
            .filter(|(number, deliver)| *number != self.number && !deliver(change.clone()))
            .map(|(number, _)| number)
            .collect();
        self.store.lock().listeners.retain(|(number, _)| !gone.contains(number));
    }

    fn start(&self, deliver: Deliver) {
        self.store.lock().listeners.push((self.number, deliver));
    }
}

/// A time that no check waits for.
const LONG: Duration = Duration::from_secs(600);

/// Tests an implementation of [`SessionStore`]. [`check_expiry`] tests its time to live.
///
/// # Panics
/// If the store does not behave as documented.
pub async fn check_sessions(store: &dyn SessionStore) {
    let revision = with_sessions();
    let record = |level| {
        let capabilities = r#"{"roots":{},"x":{"big":12345678901234567890123}}"#.to_owned();
        let capabilities = serde_json::value::RawValue::from_string(capabilities).expect("JSON");
        let mut record = SessionRecord::new(revision, capabilities);
        (record.log_level, record.public_id, record.owner) = (level, u64::MAX, Some("ada".into()));
        record.subscriptions = vec!["memo://a".into(), "memo://b".into()];
        record
    };
    let text = |record: &SessionRecord| serde_json::to_string(record).expect("JSON");
    let (debug, alert) = (linchpin_types::logging::LoggingLevel::Debug, linchpin_types::logging::LoggingLevel::Alert);
    assert!(loaded(store, "contract-a").await.is_none(), "a session that was never saved does not exist");
    store.save("contract-a", record(debug), LONG).await.expect("saved");
    store.save("contract-b", record(debug), LONG).await.expect("saved");
    let found = loaded(store, "contract-a").await.expect("a session that was saved exists");
    assert_eq!(text(&found), text(&record(debug)), "a session is loaded as it was saved");
    store.save("contract-a", record(alert), LONG).await.expect("saved");
    let found = loaded(store, "contract-a").await.expect("a session that was saved exists");
    assert_eq!(text(&found), text(&record(alert)), "a record replaces the one before");
    store.touch(vec!["contract-a".into(), "contract-unknown".into()], LONG).await.expect("touched");
    assert!(loaded(store, "contract-unknown").await.is_none(), "touching creates no session");
    assert!(store.delete("contract-a").await.expect("deleted"), "a session that exists was there");
    assert!(!store.delete("contract-a").await.expect("deleted"), "a deleted session was not there");
    assert!(loaded(store, "contract-a").await.is_none(), "a deleted session does not exist");
    assert!(loaded(store, "contract-b").await.is_some(), "another session stays");
    store.delete("contract-b").await.expect("deleted");
}

/// The latest revision with sessions.
fn with_sessions() -> Revision {
    let revisions = Features::all().filter(|features| features.has_sessions).map(|features| features.revision);
    revisions.last().expect("a revision with sessions")
}

async fn loaded(store: &dyn SessionStore, id: &str) -> Option<SessionRecord> {
    store.load(id).await.expect("loaded")
}

/// Tests an implementation of [`EventStore`].
///
/// # Panics
/// If the store does not behave as documented.
pub async fn check_events(store: &dyn EventStore) {
    let (session, stream) = ("contract-events", 7 << 32 | 3);
    let event = |number: u32| StoredEvent::new(number, format!("data: {number}\n\n").into());
    assert_eq!(events(store, session, stream, 0).await, None, "a stream without events is unknown");
    store.append(session, stream, vec![event(1), event(2)], LONG).await.expect("appended");
    store.append(session, stream, vec![event(2)], LONG).await.expect("appended");
    store.append(session, stream, vec![event(4)], LONG).await.expect("appended");
    let all = Some(vec![event(1), event(2), event(4)]);
    assert_eq!(events(store, session, stream, 0).await, all, "events are in order, each once, gaps included");
    assert_eq!(events(store, session, stream, 2).await, Some(vec![event(4)]), "earlier events are left out");
    assert_eq!(events(store, session, stream, 4).await, Some(vec![]), "nothing follows the last event");
    assert_eq!(events(store, session, stream + 1, 0).await, None, "streams are separate");
    assert_eq!(events(store, "contract-other", stream, 0).await, None, "sessions are separate");
    store.trim(session, stream, 2).await.expect("trimmed");
    assert_eq!(events(store, session, stream, 1).await, None, "what was trimmed cannot be resumed");
    assert_eq!(events(store, session, stream, 2).await, Some(vec![event(4)]), "what was not trimmed can");
    store.delete(session).await.expect("deleted");
    assert_eq!(events(store, session, stream, 2).await, None, "a deleted session has no streams");
}

async fn events(store: &dyn EventStore, session: &str, stream: u64, after: u32) -> Option<Vec<StoredEvent>> {
    store.after(session, stream, after).await.expect("read")
}

/// Tests that sessions and streams are kept for their time to live, and not much longer (at most about a second).
///
/// `pass` lets time pass for the store: it advances the clock of a test, or sleeps. It is called for 12 seconds in
/// total.
///
/// # Panics
/// If a store does not behave as documented.
pub async fn check_expiry(sessions: &dyn SessionStore, events: &dyn EventStore, pass: impl AsyncFn(Duration)) {
    let (ttl, part) = (Duration::from_secs(5), Duration::from_secs(3));
    let record = || SessionRecord::bare(with_sessions());
    let event = |number: u32| vec![StoredEvent::new(number, "data: x\n\n".into())];
    for id in ["contract-kept", "contract-left"] {
        sessions.save(id, record(), ttl).await.expect("saved");
        events.append(id, 1, event(1), ttl).await.expect("appended");
    }
    pass(part).await;
    assert!(loaded(sessions, "contract-left").await.is_some(), "a session is kept for its time to live");
    let left = self::events(events, "contract-left", 1, 0).await;
    assert!(left.is_some(), "a stream is kept for its time to live");
    sessions.touch(vec!["contract-kept".into()], ttl).await.expect("touched");
    events.append("contract-kept", 1, event(2), ttl).await.expect("appended");
    pass(part).await;
    assert!(loaded(sessions, "contract-kept").await.is_some(), "touching a session keeps it for its time to live");
    let kept = self::events(events, "contract-kept", 1, 0).await.map(|events| events.len());
    assert_eq!(kept, Some(2), "appending to a stream keeps it for its time to live");
    pass(part * 2).await;
    for id in ["contract-kept", "contract-left"] {
        assert!(loaded(sessions, id).await.is_none(), "a session is forgotten after its time to live");
        assert_eq!(self::events(events, id, 1, 0).await, None, "a stream is forgotten after its time to live");
    }
}

/// Tests an implementation of [`ChangeRelay`], of which `a` and `b` are two nodes.
///
/// # Panics
/// If the relay does not behave as documented, or a change does not arrive within 10 seconds.
pub async fn check_changes(a: &dyn ChangeRelay, b: &dyn ChangeRelay) {
    let (at_a, at_b) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Mutex::new(Vec::new())));
    for (node, seen) in [(a, &at_a), (b, &at_b)] {
        let seen = seen.clone();
        node.start(Arc::new(move |change| {
            seen.lock().unwrap_or_else(PoisonError::into_inner).push(change);
            true
        }));
    }
    let changes = [ServerChange::Tools, ServerChange::Updated("memo://a".into()), ServerChange::Resources];
    changes.iter().for_each(|change| a.publish(change));
    let seen = |seen: &Mutex<Vec<ServerChange>>| seen.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let arrived = async |node: &Mutex<Vec<ServerChange>>, count: usize| {
        for _ in 0..1_000 {
            if seen(node).len() >= count {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    arrived(&at_b, changes.len()).await;
    assert_eq!(seen(&at_b), changes, "changes arrive at the other node, in order");
    b.publish(&ServerChange::Prompts);
    arrived(&at_a, 1).await;
    // For what should not arrive.
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(seen(&at_a).contains(&ServerChange::Prompts), "changes arrive in both directions");
    assert_eq!(seen(&at_a), [ServerChange::Prompts], "a node's own changes do not come back");
    assert_eq!(seen(&at_b), changes, "nothing else arrives");
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::task::Poll;

    #[tokio::test(start_paused = true)]
    async fn memory_keeps_the_promises_of_stores() {
        let store = MemoryStore::default();
        check_sessions(&store).await;
        check_events(&store).await;
        check_changes(&store.node(), &store.node()).await;
        check_expiry(&store, &store, tokio::time::advance).await;
        assert_eq!(store.sessions(), 0);
    }

    /// What a store or relay does wrong.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    enum Flaw {
        SavesNothing,
        InventsSessions,
        LosesOwners,
        KeepsTheFirstRecord,
        CreatesWhatIsTouched,
        DeniesDeletions,
        DeletesWhatIsNotThere,
        LoadsDeletedSessions,
        DeletesAllSessions,
        InventsStreams,
        ReversesEvents,
        RepeatsEvents,
        IgnoresWhatWasRead,
        ForgetsEndedStreams,
        MixesStreams,
        MixesSessions,
        TrimsNothing,
        TrimsEverything,
        KeepsDeletedStreams,
        ExpiresEarly,
        ExpiresStreamsEarly,
        IgnoresTouches,
        IgnoresLaterAppends,
        KeepsSessionsForEver,
        KeepsStreamsForEver,
    }

    /// A store with one fault.
    struct Broken {
        store: MemoryStore,
        /// What was saved, whatever was deleted since.
        saved: MemoryStore,
        fault: Flaw,
    }

    impl Broken {
        fn new(fault: Flaw) -> Broken {
            Broken { store: MemoryStore::default(), saved: MemoryStore::default(), fault }
        }

        fn has(&self, id: &str) -> bool {
            self.store.lock().sessions.contains_key(id)
        }

        fn key<'a>(&self, session: &'a str, stream: u64) -> (&'a str, u64) {
            match self.fault {
                Flaw::MixesStreams => (session, 0),
                Flaw::MixesSessions => ("", stream),
                _ => (session, stream),
            }
        }
    }

    impl SessionStore for Broken {
        fn save(&self, id: &str, record: SessionRecord, ttl: Duration) -> BoxFuture<'_, Result<(), StoreError>> {
            let mut record = record;
            if self.fault == Flaw::LosesOwners {
                record.owner = None;
            }
            let ttl = match self.fault {
                Flaw::SavesNothing => return ready(()),
                Flaw::KeepsTheFirstRecord if self.has(id) => return ready(()),
                Flaw::ExpiresEarly => ttl / 2,
                Flaw::KeepsSessionsForEver => LONG,
                Flaw::LoadsDeletedSessions => {
                    drop(self.store.save(id, SessionRecord::bare(record.revision), ttl));
                    return self.saved.save(id, record, ttl);
                }
                _ => ttl,
            };
            self.store.save(id, record, ttl)
        }

        fn load(&self, id: &str) -> BoxFuture<'_, Result<Option<SessionRecord>, StoreError>> {
            match self.fault {
                Flaw::InventsSessions if !self.has(id) => ready(Some(SessionRecord::bare(with_sessions()))),
                Flaw::LoadsDeletedSessions => self.saved.load(id),
                _ => self.store.load(id),
            }
        }

        fn touch(&self, ids: Vec<String>, ttl: Duration) -> BoxFuture<'_, Result<(), StoreError>> {
            match self.fault {
                Flaw::IgnoresTouches => return ready(()),
                Flaw::CreatesWhatIsTouched => {
                    for id in ids.iter().filter(|id| !self.has(id)) {
                        drop(self.store.save(id, SessionRecord::bare(with_sessions()), ttl));
                    }
                }
                _ => {}
            }
            self.store.touch(ids, ttl)
        }

        fn delete(&self, id: &str) -> BoxFuture<'_, Result<bool, StoreError>> {
            let was_there = self.has(id);
            if self.fault == Flaw::DeletesAllSessions {
                self.store.lock().sessions.clear();
            }
            drop(SessionStore::delete(&self.store, id));
            match self.fault {
                Flaw::DeniesDeletions => ready(false),
                Flaw::DeletesWhatIsNotThere => ready(true),
                _ => ready(was_there),
            }
        }
    }

    impl EventStore for Broken {
        fn append(
            &self,
            session: &str,
            stream: u64,
            events: Vec<StoredEvent>,
            ttl: Duration,
        ) -> BoxFuture<'_, Result<(), StoreError>> {
            let (session, stream) = self.key(session, stream);
            let place = (session.to_owned(), stream);
            let until = self.store.lock().streams.get(&place).map(|stream| stream.until);
            let ttl = match self.fault {
                Flaw::ExpiresStreamsEarly => ttl / 2,
                Flaw::KeepsStreamsForEver => LONG,
                _ => ttl,
            };
            drop(self.store.append(session, stream, events, ttl));
            if let (Flaw::IgnoresLaterAppends, Some(until)) = (self.fault, until)
                && let Some(stream) = self.store.lock().streams.get_mut(&place)
            {
                stream.until = until;
            }
            ready(())
        }

        fn after(
            &self,
            session: &str,
            stream: u64,
            after: u32,
        ) -> BoxFuture<'_, Result<Option<Vec<StoredEvent>>, StoreError>> {
            let (session, stream) = self.key(session, stream);
            let after = if self.fault == Flaw::IgnoresWhatWasRead { 0 } else { after };
            let found = self.store.after(session, stream, after);
            Box::pin(async move {
                let found = found.await?;
                Ok(match self.fault {
                    Flaw::InventsStreams => Some(found.unwrap_or_default()),
                    Flaw::ReversesEvents => found.map(|events| events.into_iter().rev().collect()),
                    Flaw::RepeatsEvents => found.map(|events| [events.clone(), events].concat()),
                    Flaw::ForgetsEndedStreams => found.filter(|events| !events.is_empty()),
                    _ => found,
                })
            })
        }

        fn trim(&self, session: &str, stream: u64, through: u32) -> BoxFuture<'_, Result<(), StoreError>> {
            match self.fault {
                Flaw::TrimsNothing => ready(()),
                Flaw::TrimsEverything => self.store.trim(session, stream, u32::MAX),
                _ => self.store.trim(session, stream, through),
            }
        }

        fn delete(&self, session: &str) -> BoxFuture<'_, Result<(), StoreError>> {
            match self.fault {
                Flaw::KeepsDeletedStreams => ready(()),
                _ => EventStore::delete(&self.store, session),
            }
        }
    }

    /// What a check panics with.
    async fn complaint(check: impl Future<Output = ()>) -> String {
        let mut check = std::pin::pin!(check);
        let caught = std::future::poll_fn(|cx| {
            let poll = catch_unwind(AssertUnwindSafe(|| check.as_mut().poll(cx)));
            poll.map_or_else(|panic| Poll::Ready(Err(panic)), |poll| poll.map(Ok))
        });
        let panic = caught.await.expect_err("the fault is noticed");
        let text = panic.downcast_ref::<String>().map(String::as_str);
        text.or_else(|| panic.downcast_ref::<&str>().copied()).expect("a text").to_owned()
    }

    #[tokio::test(start_paused = true)]
    async fn each_fault_of_a_session_store_is_reported_in_its_own_words() {
        for (fault, words) in [
            (Flaw::InventsSessions, "a session that was never saved does not exist"),
            (Flaw::SavesNothing, "a session that was saved exists"),
            (Flaw::LosesOwners, "a session is loaded as it was saved"),
            (Flaw::KeepsTheFirstRecord, "a record replaces the one before"),
            (Flaw::CreatesWhatIsTouched, "touching creates no session"),
            (Flaw::DeniesDeletions, "a session that exists was there"),
            (Flaw::DeletesWhatIsNotThere, "a deleted session was not there"),
            (Flaw::LoadsDeletedSessions, "a deleted session does not exist"),
            (Flaw::DeletesAllSessions, "another session stays"),
        ] {
            let said = complaint(check_sessions(&Broken::new(fault))).await;
            assert!(said.contains(words), "{fault:?}: {said}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn each_fault_of_an_event_store_is_reported_in_its_own_words() {
        for (fault, words) in [
            (Flaw::InventsStreams, "a stream without events is unknown"),
            (Flaw::ReversesEvents, "events are in order, each once, gaps included"),
            (Flaw::RepeatsEvents, "events are in order, each once, gaps included"),
            (Flaw::IgnoresWhatWasRead, "earlier events are left out"),
            (Flaw::ForgetsEndedStreams, "nothing follows the last event"),
            (Flaw::MixesStreams, "streams are separate"),
            (Flaw::MixesSessions, "sessions are separate"),
            (Flaw::TrimsNothing, "what was trimmed cannot be resumed"),
            (Flaw::TrimsEverything, "what was not trimmed can"),
            (Flaw::KeepsDeletedStreams, "a deleted session has no streams"),
        ] {
            let said = complaint(check_events(&Broken::new(fault))).await;
            assert!(said.contains(words), "{fault:?}: {said}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn stores_that_forget_early_late_or_never_are_reported() {
        for (fault, words) in [
            (Flaw::ExpiresEarly, "a session is kept for its time to live"),
            (Flaw::ExpiresStreamsEarly, "a stream is kept for its time to live"),
            (Flaw::IgnoresTouches, "touching a session keeps it for its time to live"),
            (Flaw::IgnoresLaterAppends, "appending to a stream keeps it for its time to live"),
            (Flaw::KeepsSessionsForEver, "a session is forgotten after its time to live"),
            (Flaw::KeepsStreamsForEver, "a stream is forgotten after its time to live"),
        ] {
            let store = Broken::new(fault);
            let said = complaint(check_expiry(&store, &store, tokio::time::advance)).await;
            assert!(said.contains(words), "{fault:?}: {said}");
        }
    }

    /// A node with a fault of its own: how a change arrives at this node and at the other one.
    struct Wire<F> {
        ends: Arc<Mutex<Vec<Deliver>>>,
        number: usize,
        carry: F,
    }

    impl<F: Fn(&ServerChange, &Deliver, &Deliver) + Send + Sync + 'static> ChangeRelay for Wire<F> {
        fn publish(&self, change: &ServerChange) {
            let ends = self.ends.lock().unwrap().clone();
            (self.carry)(change, &ends[self.number], &ends[1 - self.number]);
        }

        fn start(&self, deliver: Deliver) {
            self.ends.lock().unwrap().push(deliver);
        }
    }

    async fn complaint_about(
        carry: impl Fn(&ServerChange, &Deliver, &Deliver) + Clone + Send + Sync + 'static,
    ) -> String {
        let ends = Arc::default();
        let node = |number| Wire { ends: Arc::clone(&ends), number, carry: carry.clone() };
        complaint(check_changes(&node(0), &node(1))).await
    }

    #[tokio::test(start_paused = true)]
    async fn each_fault_of_a_relay_is_reported_in_its_own_words() {
        let (arrive, own) = ("changes arrive at the other node, in order", "a node's own changes do not come back");
        let lost = complaint_about(|_, _, _| {}).await;
        assert!(lost.contains(arrive), "{lost}");
        let without_urls = complaint_about(|change, _, other| {
            if !matches!(change, ServerChange::Updated(_)) {
                other(change.clone());
            }
        });
        let some_lost = without_urls.await;
        assert!(some_lost.contains(arrive), "{some_lost}");
        let late = complaint_about(|change, _, other| {
            let (wait, change, other) = (Duration::from_millis(30), change.clone(), other.clone());
            let wait = if change == ServerChange::Tools { wait * 2 } else { wait };
            tokio::spawn(async move {
                tokio::time::sleep(wait).await;
                other(change);
            });
        });
        let out_of_order = late.await;
        assert!(out_of_order.contains(arrive), "{out_of_order}");
        let twice = complaint_about(|change, _, other| {
            other(change.clone());
            other(change.clone());
        });
        let twice = twice.await;
        assert!(twice.contains(arrive), "{twice}");
        let echoed = complaint_about(|change, this, other| {
            other(change.clone());
            this(change.clone());
        });
        let echoed = echoed.await;
        assert!(echoed.contains(own), "{echoed}");
        // What comes back later than it reaches the other node.
        let later = complaint_about(|change, this, other| {
            other(change.clone());
            let (change, this) = (change.clone(), this.clone());
            tokio::spawn(async move {
                tokio::time::sleep(Duration::from_millis(30)).await;
                this(change);
            });
        });
        let later = later.await;
        assert!(later.contains(own), "{later}");
        let one_way = complaint_about(|change, _, other| {
            if *change != ServerChange::Prompts {
                other(change.clone());
            }
        });
        let one_way = one_way.await;
        assert!(one_way.contains("changes arrive in both directions"), "{one_way}");
    }
}
