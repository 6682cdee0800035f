//! Sessions and the events of streams, in a store.
//!
//! ```text
//! session/SERVER/SESSION           the record, sealed                                  Kv
//! stream/SERVER/SESSION/STREAM     that the session has the stream                     Kv
//! events/SERVER/SESSION/STREAM     the stream's events, each sealed, by number + 1     Log
//! changes/SERVER/NODE              the changes at a process, each sealed               Log
//! node/SERVER/NODE                 the number of its last change                       Kv
//! changes/SERVER                   that there are new ones                             Topic
//! ```
//!
//! `SERVER` and `SESSION` are digests: the id of a session is a secret. An entry of a stream's log may also say that an event
//! of this number does not exist (it is empty), or that it was too long to be stored.

mod changes;

use crate::digest::digest;
use crate::shared::random;
use bytes::Bytes;
use changes::Changes;
use linchpin_core::service::BoxFuture;
use linchpin_core::store::{ChangeRelay, EventStore, SessionStore, StoreError, StoredEvent};
use linchpin_core::{ServerChange, SessionRecord};
use linchpin_store::{Append, Error, ErrorKind, Expect, Fence, Read, Store, VALUE_BYTES_MAX};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::{JoinError, JoinSet};

/// The most numbers in a row that may be missing among the events of a stream.
const GAP_MAX: u64 = 1_024;
/// How many bytes of events are read at once.
const READ_BYTES: usize = 1 << 20;
/// How many bytes of events are written at once, but for a single longer one.
const WRITE_BYTES: usize = 1 << 20;
/// How many streams are looked up at once, and how many are deleted at once.
const PAGE: usize = 256;
const DELETES: usize = 16;
/// The longest event that is stored: sealing adds to it.
const EVENT_BYTES_MAX: usize = VALUE_BYTES_MAX - 64;
/// The content of an event that was too long.
const TOO_LONG: &[u8] = b"\0";

/// The sessions of a server, the events of its streams, and its changes, kept in a [`Store`] so that other processes,
/// or this one after a restart, can continue them.
///
/// It is a [`SessionStore`] and an [`EventStore`] for `HttpOptions`, and a [`ChangeRelay`] for
/// [`Server::change_relay`](crate::Server::change_relay). Each process creates one; clones share it. Data from and for
/// clients is encrypted before it reaches the store, and the ids of sessions are stored as digests. With
/// `Store::sqlite`, processes on one machine share a file; with `Store::redis`, processes on several machines share a
/// Redis server.
///
/// Changes wait while the store cannot be reached, and are kept for an hour, up to 4,096 of each process. A process
/// that missed some notifies its subscribers that all lists have changed. Events larger than 8 MiB are not stored: a
/// stream cannot be resumed from a point before such an event.
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
    /// Creates the state of the server with this name, in `store`. Servers with different names may use the same store.
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
            let found = match self.0.store.sealed().get(&key).await {
                Ok(found) => found.map(|record| serde_json::from_slice(&record.value)).transpose(),
                Err(error) if error.kind() == ErrorKind::Corrupt => {
                    tracing::warn!(%error, "a session cannot be opened; its client begins a new one");
                    return Ok(None);
                }
                Err(error) => return Err(StoreError::new(error)),
            };
            Ok(found.unwrap_or_else(|error| {
                tracing::warn!(%error, "a stored session cannot be read; its client begins a new one");
                None
            }))
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
            self.append_all(&log, first, entries, ttl).await.map_err(StoreError::new)
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
            let next = first + entries.len() as u64;
            let missing = seq(event.number).saturating_sub(next);
            if missing > GAP_MAX {
                (first, entries) = (seq(event.number), Vec::new());
            } else {
                entries.extend(self.missing(log, next..next + missing));
            }
            let bytes = if event.bytes.len() > EVENT_BYTES_MAX { TOO_LONG } else { &event.bytes };
            entries.push(self.sealed(log, seq(event.number), bytes));
        }
        Some((first, entries))
    }

    fn sealed(&self, log: &str, seq: u64, bytes: &[u8]) -> Bytes {
        self.0.store.seal().seal("events", place(log, seq).as_bytes(), bytes)
    }

    /// The entries of events that do not exist.
    fn missing<'a>(&'a self, log: &'a str, seqs: Range<u64>) -> impl Iterator<Item = Bytes> + use<'a> {
        seqs.map(|seq| self.sealed(log, seq, b""))
    }

    /// Appends entries in parts.
    async fn append_all(&self, key: &str, mut first: u64, mut rest: Vec<Bytes>, ttl: Duration) -> Result<(), Error> {
        while !rest.is_empty() {
            let mut bytes = 0;
            let fits = |entry: &&Bytes| {
                bytes += entry.len();
                bytes <= WRITE_BYTES
            };
            let count = rest.iter().take_while(fits).count().max(1);
            let later = rest.split_off(count);
            self.append_entries(key, first, std::mem::replace(&mut rest, later), ttl).await?;
            first += count as u64;
        }
        Ok(())
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
        let mut all: Vec<_> = self.missing(key, next..first).collect();
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
                let bytes = match self.0.store.seal().open("events", place(key, *seq).as_bytes(), entry) {
                    Ok(bytes) if bytes == TOO_LONG => return Ok(None),
                    Ok(bytes) => bytes,
                    Err(error) => {
                        tracing::warn!(%error, "an event cannot be opened; its stream cannot be resumed");
                        return Ok(None);
                    }
                };
                if !bytes.is_empty() {
                    events.push(StoredEvent::new(u32::try_from(seq - 1).unwrap_or(u32::MAX), bytes));
                }
            }
            match entries.last() {
                Some((seq, _)) if seq + 1 < next => last = *seq,
                _ => return Ok(Some(events)),
            }
        }
    }

    async fn delete_streams(&self, name: &str) -> Result<(), Error> {
        let prefix = format!("stream/{name}");
        loop {
            let page = self.0.store.kv().scan(&prefix, None, PAGE).await?;
            let count = page.len();
            let mut deletes = JoinSet::new();
            for (record, _) in page {
                let stream = record.strip_prefix(&prefix).unwrap_or_default();
                let (store, log) = (self.0.store.clone(), format!("events/{name}{stream}"));
                if deletes.len() >= DELETES {
                    joined(deletes.join_next().await)?;
                }
                deletes.spawn(async move {
                    store.log().delete(&log).await?;
                    store.kv().delete(&record, Expect::Any).await.map(drop)
                });
            }
            while let Some(done) = deletes.join_next().await {
                joined(Some(done))?;
            }
            if count < PAGE {
                return Ok(());
            }
        }
    }
}

/// What a task of ours returned.
fn joined(done: Option<Result<Result<(), Error>, JoinError>>) -> Result<(), Error> {
    match done {
        Some(Ok(result)) => result,
        Some(Err(_)) => Err(Error::unavailable("the runtime ends")),
        None => Ok(()),
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
