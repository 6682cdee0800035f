//! Stores for the state of a server that several processes share: sessions, events for replay, and changes for subscribers.
//!
//! By default all three are kept in memory and end with the process. A server that runs on several nodes, or that
//! continues sessions after a restart, needs a [`SessionStore`] and an [`EventStore`] (`HttpOptions`) and a
//! [`ChangeRelay`] (`Server::change_relay`). `linchpin_testing::store` tests implementations of these traits.

use crate::service::BoxFuture;
use crate::session_record::SessionRecord;
use crate::subscription::ServerChange;
use bytes::Bytes;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Keeps sessions, so that another process can continue them.
///
/// A session is used by one process at a time: clients are expected to return to the same process as long as it lives.
/// A process asks the store only for sessions that it does not have itself.
///
/// The `id` is the value of the client's `Mcp-Session-Id` header, which is as secret as a password. A store that others can
/// read should keep a digest of it.
///
/// This store keeps sessions in memory; a durable one would write the record, which serializes to text, to a database.
///
/// ```
/// use linchpin_core::service::BoxFuture;
/// use linchpin_core::{SessionRecord, SessionStore, StoreError};
/// use std::collections::HashMap;
/// use std::sync::Mutex;
/// use std::time::{Duration, Instant};
///
/// #[derive(Default)]
/// struct Sessions(Mutex<HashMap<String, (SessionRecord, Instant)>>);
///
/// impl SessionStore for Sessions {
///     fn save(&self, id: &str, record: SessionRecord, ttl: Duration) -> BoxFuture<'_, Result<(), StoreError>> {
///         self.0.lock().unwrap().insert(id.to_owned(), (record, Instant::now() + ttl));
///         Box::pin(async { Ok(()) })
///     }
///
///     fn load(&self, id: &str) -> BoxFuture<'_, Result<Option<SessionRecord>, StoreError>> {
///         let found = self.0.lock().unwrap().get(id).filter(|(_, end)| *end > Instant::now()).cloned();
///         Box::pin(async { Ok(found.map(|(record, _)| record)) })
///     }
///
///     fn touch(&self, ids: Vec<String>, ttl: Duration) -> BoxFuture<'_, Result<(), StoreError>> {
///         let mut sessions = self.0.lock().unwrap();
///         for id in ids {
///             if let Some((_, end)) = sessions.get_mut(&id) {
///                 *end = Instant::now() + ttl;
///             }
///         }
///         Box::pin(async { Ok(()) })
///     }
///
///     fn delete(&self, id: &str) -> BoxFuture<'_, Result<bool, StoreError>> {
///         let found = self.0.lock().unwrap().remove(id).is_some();
///         Box::pin(async move { Ok(found) })
///     }
/// }
/// ```
pub trait SessionStore: Send + Sync + 'static {
    /// Stores a session, replacing any record already stored under this id. It may be forgotten after `ttl`.
    fn save(&self, id: &str, record: SessionRecord, ttl: Duration) -> BoxFuture<'_, Result<(), StoreError>>;

    /// Returns a session. `None` if it does not exist, was deleted, or has been forgotten.
    fn load(&self, id: &str) -> BoxFuture<'_, Result<Option<SessionRecord>, StoreError>>;

    /// Keeps sessions for another `ttl`. Unknown ids are ignored.
    fn touch(&self, ids: Vec<String>, ttl: Duration) -> BoxFuture<'_, Result<(), StoreError>>;

    /// Deletes a session. Returns whether it existed.
    fn delete(&self, id: &str) -> BoxFuture<'_, Result<bool, StoreError>>;
}

/// Encrypts a session's record into its id, so that any process that has the key can continue the session, without a
/// [`SessionStore`] and even after a restart. What changed after `initialize` (subscriptions, the log level) is not part of
/// the id.
///
/// ```
/// use linchpin_core::{SessionRecord, SessionSeal};
///
/// /// Not encrypted: for a test of what a session's id holds.
/// struct Plain;
///
/// impl SessionSeal for Plain {
///     fn seal(&self, key: &str, record: &SessionRecord) -> Option<String> {
///         let json = serde_json::to_string(record).ok()?;
///         Some(format!("{key}{json}").bytes().map(|byte| format!("{byte:02x}")).collect())
///     }
///
///     fn open(&self, key: &str, sealed: &str) -> Option<SessionRecord> {
///         let pairs = sealed.as_bytes().chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok());
///         let text = String::from_utf8(pairs.collect::<Option<Vec<u8>>>()?).ok()?;
///         serde_json::from_str(text.strip_prefix(key)?).ok()
///     }
/// }
/// # let record = SessionRecord::bare(linchpin_types::version::Revision::V2025_11_25);
/// # assert!(Plain.open("k", &Plain.seal("k", &record).unwrap()).is_some());
/// # assert!(Plain.open("other", &Plain.seal("k", &record).unwrap()).is_none());
/// ```
pub trait SessionSeal: Send + Sync + 'static {
    /// Returns the second half of the id of a session whose first half is `key`: letters, digits, `-` and `_`. `None` if the
    /// record is too long for a header; such a session ends with its process.
    fn seal(&self, key: &str, record: &SessionRecord) -> Option<String>;

    /// Returns the record from which [`SessionSeal::seal`] made this text. `None` if the text was changed, belongs to another
    /// session, has expired, or was made with another key.
    fn open(&self, key: &str, sealed: &str) -> Option<SessionRecord>;
}

/// Keeps the events of streams, so that a client can resume a stream at another process.
///
/// Streams are identified by the session's id and a number of their own; numbers of different processes differ.
///
/// `linchpin::testing::store::check_events` tests an implementation.
///
/// ```
/// use linchpin_core::service::BoxFuture;
/// use linchpin_core::{EventStore, StoreError, StoredEvent};
/// use std::collections::HashMap;
/// use std::sync::Mutex;
/// use std::time::Duration;
///
/// /// In memory, without expiry and without a limit.
/// #[derive(Default)]
/// struct Events(Mutex<HashMap<(String, u64), Vec<StoredEvent>>>);
///
/// impl EventStore for Events {
///     fn append(
///         &self,
///         session: &str,
///         stream: u64,
///         events: Vec<StoredEvent>,
///         _ttl: Duration,
///     ) -> BoxFuture<'_, Result<(), StoreError>> {
///         let mut streams = self.0.lock().unwrap();
///         let stored = streams.entry((session.to_owned(), stream)).or_default();
///         let last = stored.last().map_or(0, |event| event.number);
///         stored.extend(events.into_iter().filter(|event| event.number > last));
///         Box::pin(async { Ok(()) })
///     }
///
///     fn after(
///         &self,
///         session: &str,
///         stream: u64,
///         after: u32,
///     ) -> BoxFuture<'_, Result<Option<Vec<StoredEvent>>, StoreError>> {
///         let streams = self.0.lock().unwrap();
///         let found = streams.get(&(session.to_owned(), stream));
///         let found = found.map(|events| events.iter().filter(|event| event.number > after).cloned().collect());
///         Box::pin(async { Ok(found) })
///     }
///
///     fn trim(&self, session: &str, stream: u64, through: u32) -> BoxFuture<'_, Result<(), StoreError>> {
/// #       let _ = (session, stream, through);
///         // Deletes nothing: `after` then still returns what it must.
///         Box::pin(async { Ok(()) })
///     }
///
///     fn delete(&self, session: &str) -> BoxFuture<'_, Result<(), StoreError>> {
///         self.0.lock().unwrap().retain(|(of, _), _| of != session);
///         Box::pin(async { Ok(()) })
///     }
/// }
/// ```
pub trait EventStore: Send + Sync + 'static {
    /// Appends events, whose numbers are greater than those stored before; gaps are possible. Repeating an append has no
    /// effect.
    fn append(
        &self,
        session: &str,
        stream: u64,
        events: Vec<StoredEvent>,
        ttl: Duration,
    ) -> BoxFuture<'_, Result<(), StoreError>>;

    /// Returns the events of a stream that follow event `after`, in order; an empty list after the last one. `None` if the
    /// stream is unknown or forgotten, or events after `after` were trimmed.
    fn after(
        &self,
        session: &str,
        stream: u64,
        after: u32,
    ) -> BoxFuture<'_, Result<Option<Vec<StoredEvent>>, StoreError>>;

    /// Deletes the events of a stream up to and including `through`.
    fn trim(&self, session: &str, stream: u64, through: u32) -> BoxFuture<'_, Result<(), StoreError>>;

    /// Deletes all streams of a session.
    fn delete(&self, session: &str) -> BoxFuture<'_, Result<(), StoreError>>;
}

/// An event of a stream.
///
/// ```
/// use linchpin_core::StoredEvent;
///
/// let event = StoredEvent::new(3, "id: 1-3\ndata: {}\n\n".into());
/// assert_eq!(event.number, 3);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoredEvent {
    /// Its number in the stream.
    pub number: u32,
    /// The event as it is sent, including its id.
    pub bytes: Bytes,
}

impl StoredEvent {
    /// Creates an event with this number.
    pub fn new(number: u32, bytes: Bytes) -> StoredEvent {
        StoredEvent { number, bytes }
    }
}

/// Carries changes to the other processes of a server, whose clients have subscribed to them.
///
/// This relay connects two servers in one process; between processes, a change would be sent as text.
///
/// ```
/// use linchpin_core::{ChangeRelay, ServerChange};
/// use std::sync::{Arc, Mutex};
///
/// type Deliver = Arc<dyn Fn(ServerChange) -> bool + Send + Sync>;
///
/// /// This server, and the other one.
/// struct Pair(Arc<Mutex<Option<Deliver>>>, Arc<Mutex<Option<Deliver>>>);
///
/// impl ChangeRelay for Pair {
///     fn publish(&self, change: &ServerChange) {
///         let other = self.1.lock().unwrap().clone();
///         if let Some(deliver) = other {
///             deliver(change.clone());
///         }
///     }
///
///     fn start(&self, deliver: Deliver) {
///         *self.0.lock().unwrap() = Some(deliver);
///     }
/// }
/// ```
pub trait ChangeRelay: Send + Sync + 'static {
    /// Sends a change to all other processes. Must not block.
    fn publish(&self, change: &ServerChange);

    /// Called once, when the server starts. The relay calls `deliver` with each change of another process, until it returns
    /// `false`.
    fn start(&self, deliver: Arc<dyn Fn(ServerChange) -> bool + Send + Sync>);
}

/// The reason why a store failed.
///
/// ```
/// use linchpin_core::StoreError;
///
/// fn failed(error: std::io::Error) -> StoreError {
///     StoreError::new(error)
/// }
/// assert_eq!(StoreError::new("the database is read-only").to_string(), "the database is read-only");
/// # let _ = failed;
/// ```
#[derive(Debug)]
pub struct StoreError(Box<dyn std::error::Error + Send + Sync>);

impl StoreError {
    /// Wraps an error, or a text.
    pub fn new(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> StoreError {
        StoreError(error.into())
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl std::error::Error for StoreError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source()
    }
}
