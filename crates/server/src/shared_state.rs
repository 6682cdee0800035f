//! Sessions and the events of streams, in a store.
//!
//! ```text
//! session/SERVER/SESSION           the record, sealed                                  Kv
//! stream/SERVER/SESSION/STREAM     that the session has the stream                     Kv
//! events/SERVER/SESSION/STREAM     the stream's events, each sealed, by number + 1     Log
//! change/SERVER/NODE/CHANGE        a change of the last two minutes, sealed            Kv, and a Topic that says it
//! ```
//!
//! `SERVER`, `SESSION` and `CHANGE` are digests: the id of a session is a secret.

mod changes;

use crate::digest::digest;
use crate::shared::random;
use bytes::Bytes;
use changes::Changes;
use linchpin_core::service::BoxFuture;
use linchpin_core::store::{ChangeRelay, EventStore, SessionStore, StoreError, StoredEvent};
use linchpin_core::{ServerChange, SessionRecord};
use linchpin_store::{Append, Error, Expect, Fence, Read, Store};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// The most numbers in a row that may be missing among the events of a stream.
const GAP_MAX: u64 = 1_024;
/// How many bytes of events are read at once.
const READ_BYTES: usize = 1 << 20;
/// How many streams are deleted at once.
const PAGE: usize = 256;

/// Keeps the sessions of a server, the events of its streams, and its changes in a [`Store`], so that other processes, or
/// this one after a restart, go on with them.
///
/// It is a [`SessionStore`] and an [`EventStore`] for `HttpOptions`, and a [`ChangeRelay`] for
/// [`Server::change_relay`](crate::Server::change_relay). Each process has one; clones are the same one. What clients sent
/// and what they are sent is sealed before it reaches the store, and the ids of sessions are stored as digests. With
/// `Store::sqlite`, processes of one machine share a file; with `Store::redis`, processes of several machines share a
/// server.
///
/// A change reaches the other processes if they can reach the store within two minutes.
///
/// ```
/// use linchpin_server::store::Store;
/// use linchpin_server::{Server, SharedState};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let dir = std::env::temp_dir().join(format!("linchpin-shared-{}", std::process::id()));
/// # std::fs::create_dir_all(&dir)?;
/// # let store = Store::memory();
/// # #[cfg(feature = "store-sqlite")]
/// let store = Store::sqlite(dir.join("state.db"))?;
/// let state = SharedState::new("notes", store);
/// let server = Server::new("notes", "1.0").change_relay(state.clone());
/// // Over HTTP: `options.sessions = Some(Arc::new(state.clone()))`, and `options.events = Some(Arc::new(state))`.
/// # std::fs::remove_dir_all(&dir)?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct SharedState(Arc<Inner>);

struct Inner {
    store: Store,
    /// A digest of the server's name.
    server: String,
    changes: Changes,
}

impl SharedState {
    /// The state of the server of this name, in `store`. Servers of different names may use the same store.
    pub fn new(name: &str, store: Store) -> SharedState {
        let server = digest(name);
        let node = random::<8>().iter().map(|byte| format!("{byte:02x}")).collect();
        let changes = Changes::new(store.clone(), &server, node);
        SharedState(Arc::new(Inner { store, server, changes }))
    }

    fn session_key(&self, id: &str) -> String {
        format!("session/{}/{}", self.0.server, digest(id))
    }

    /// The keys of a stream: of its record, and of its log.
    fn stream_keys(&self, session: &str, stream: u64) -> (String, String) {
        let name = format!("{}/{}/{stream}", self.0.server, digest(session));
        (format!("stream/{name}"), format!("events/{name}"))
    }
}

impl fmt::Debug for SharedState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedState").field("store", &self.0.store).finish_non_exhaustive()
    }
}

impl SessionStore for SharedState {
    fn save(&self, id: &str, record: SessionRecord, ttl: Duration) -> BoxFuture<'_, Result<(), StoreError>> {
        let key = self.session_key(id);
        Box::pin(async move {
            let value = serde_json::to_vec(&record).map_err(StoreError::new)?;
            let put = self.0.store.sealed().put(&key, value.into(), Expect::Any, ttl).await;
            put.map(drop).map_err(StoreError::new)
        })
    }

    fn load(&self, id: &str) -> BoxFuture<'_, Result<Option<SessionRecord>, StoreError>> {
        let key = self.session_key(id);
        Box::pin(async move {
            match self.0.store.sealed().get(&key).await.map_err(StoreError::new)? {
                Some(record) => serde_json::from_slice(&record.value).map(Some).map_err(StoreError::new),
                None => Ok(None),
            }
        })
    }

    fn touch(&self, ids: Vec<String>, ttl: Duration) -> BoxFuture<'_, Result<(), StoreError>> {
        let keys: Vec<_> = ids.iter().map(|id| self.session_key(id)).collect();
        Box::pin(async move {
            let keys: Vec<_> = keys.iter().map(String::as_str).collect();
            self.0.store.kv().touch(&keys, ttl).await.map_err(StoreError::new)
        })
    }

    fn delete(&self, id: &str) -> BoxFuture<'_, Result<bool, StoreError>> {
        let key = self.session_key(id);
        Box::pin(async move {
            let deleted = self.0.store.kv().delete(&key, Expect::Any).await.map_err(StoreError::new)?;
            Ok(deleted == linchpin_store::Delete::Deleted)
        })
    }
}

impl EventStore for SharedState {
    fn append(
        &self,
        session: &str,
        stream: u64,
        events: Vec<StoredEvent>,
        ttl: Duration,
    ) -> BoxFuture<'_, Result<(), StoreError>> {
        let (record, log) = self.stream_keys(session, stream);
        Box::pin(async move {
            let Some((first, entries)) = self.entries(&log, &events) else { return Ok(()) };
            let store = &self.0.store;
            store.kv().put(&record, Bytes::new(), Expect::Any, ttl).await.map(drop).map_err(StoreError::new)?;
            self.append_entries(&log, first, entries, ttl).await.map_err(StoreError::new)
        })
    }

    fn after(
        &self,
        session: &str,
        stream: u64,
        after: u32,
    ) -> BoxFuture<'_, Result<Option<Vec<StoredEvent>>, StoreError>> {
        let (_, log) = self.stream_keys(session, stream);
        Box::pin(async move { self.read(&log, after).await.map_err(StoreError::new) })
    }

    fn trim(&self, session: &str, stream: u64, through: u32) -> BoxFuture<'_, Result<(), StoreError>> {
        let (_, log) = self.stream_keys(session, stream);
        Box::pin(async move { self.0.store.log().trim(&log, seq(through)).await.map_err(StoreError::new) })
    }

    fn delete(&self, session: &str) -> BoxFuture<'_, Result<(), StoreError>> {
        let name = format!("{}/{}/", self.0.server, digest(session));
        Box::pin(async move { self.delete_streams(&name).await.map_err(StoreError::new) })
    }
}

impl SharedState {
    /// Events as the entries of a log without gaps: what is missing is empty. Returns the number of the first one. Of events
    /// before a gap that is too long, nothing is kept: they cannot be resumed past it.
    fn entries(&self, log: &str, events: &[StoredEvent]) -> Option<(u64, Vec<Bytes>)> {
        let (mut first, mut entries) = (seq(events.first()?.number), Vec::with_capacity(events.len()));
        for event in events {
            let missing = seq(event.number).saturating_sub(first + entries.len() as u64);
            if missing > GAP_MAX {
                (first, entries) = (seq(event.number), Vec::new());
            } else {
                entries.resize(entries.len() + missing as usize, Bytes::new());
            }
            let place = place(log, seq(event.number));
            entries.push(self.0.store.seal().seal("events", place.as_bytes(), &event.bytes).into());
        }
        Some((first, entries))
    }

    async fn append_entries(&self, key: &str, first: u64, entries: Vec<Bytes>, ttl: Duration) -> Result<(), Error> {
        let log = self.0.store.log();
        let Append::Gap { next } = log.append(key, first, entries.clone(), Fence::NONE, ttl).await? else {
            return Ok(());
        };
        let missing = first.saturating_sub(next);
        if missing > GAP_MAX {
            log.delete(key).await?;
            return log.append(key, first, entries, Fence::NONE, ttl).await.map(drop);
        }
        let mut all = vec![Bytes::new(); missing as usize];
        all.extend(entries);
        log.append(key, next, all, Fence::NONE, ttl).await.map(drop)
    }

    async fn read(&self, key: &str, after: u32) -> Result<Option<Vec<StoredEvent>>, Error> {
        let (mut last, mut events) = (seq(after), Vec::new());
        loop {
            let Read::Entries { entries, next } = self.0.store.log().read(key, last, READ_BYTES).await? else {
                return Ok(None);
            };
            for (seq, entry) in &entries {
                if !entry.is_empty() {
                    let bytes = self.0.store.seal().open("events", place(key, *seq).as_bytes(), entry)?;
                    let number = u32::try_from(seq - 1).unwrap_or(u32::MAX);
                    events.push(StoredEvent::new(number, bytes));
                }
            }
            match entries.last() {
                Some((seq, _)) if seq + 1 < next => last = *seq,
                _ => return Ok(Some(events)),
            }
        }
    }

    async fn delete_streams(&self, name: &str) -> Result<(), Error> {
        let (kv, log) = (self.0.store.kv(), self.0.store.log());
        let prefix = format!("stream/{name}");
        loop {
            let page = kv.scan(&prefix, None, PAGE).await?;
            for (key, _) in &page {
                let stream = key.strip_prefix(&prefix).unwrap_or_default();
                log.delete(&format!("events/{name}{stream}")).await?;
                let _ = kv.delete(key, Expect::Any).await?;
            }
            if page.len() < PAGE {
                return Ok(());
            }
        }
    }
}

/// The number of an event in its log, whose numbers begin at 1.
fn seq(number: u32) -> u64 {
    u64::from(number) + 1
}

/// Where a sealed event is, so that it opens nowhere else.
fn place(log: &str, seq: u64) -> String {
    format!("{log}/{seq}")
}

impl ChangeRelay for SharedState {
    fn publish(&self, change: &ServerChange) {
        self.0.changes.publish(change);
    }

    fn start(&self, deliver: Arc<dyn Fn(ServerChange) -> bool + Send + Sync>) {
        self.0.changes.start(deliver);
    }
}
