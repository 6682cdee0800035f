//! Records that are replaced as a whole.

use crate::BoxFuture;
use crate::error::Error;
use bytes::Bytes;
use std::time::Duration;

/// A key-value store whose records have a revision and a time to live.
///
/// Reads and writes of one key are linearizable; there are no guarantees across keys. An expired record does not exist:
/// it may remain visible up to a second too long, but never disappears too early. Keys are `space/name` of at most
/// [`KEY_BYTES_MAX`](crate::KEY_BYTES_MAX) bytes, values at most [`VALUE_BYTES_MAX`](crate::VALUE_BYTES_MAX).
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), linchpin_store::Error> {
/// use linchpin_store::{Expect, Put, Store};
/// use std::time::Duration;
///
/// let store = Store::memory();
/// let (kv, ttl) = (store.kv(), Duration::from_secs(60));
///
/// // A code is redeemed only once: the loser of a race gets the record of the winner.
/// let Put::Stored(rev) = kv.put("code/7f", "fresh".into(), Expect::Absent, ttl).await? else { panic!("new") };
/// assert!(kv.put("code/7f", "redeemed".into(), Expect::Rev(rev), ttl).await?.is_stored());
/// match kv.put("code/7f", "redeemed".into(), Expect::Rev(rev), ttl).await? {
///     Put::Conflict(Some(winner)) => assert_eq!(winner.value, "redeemed"),
///     other => panic!("{other:?}"),
/// }
/// # Ok(())
/// # }
/// ```
pub trait Kv: Send + Sync + 'static {
    /// Returns a record.
    fn get<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Option<Record>, Error>>;

    /// Stores a record if the existing one is as expected. Its time to live starts anew.
    ///
    /// After an error the record may or may not have been stored: call [`Kv::get`] to find out.
    fn put<'a>(
        &'a self,
        key: &'a str,
        value: Bytes,
        expect: Expect,
        ttl: Duration,
    ) -> BoxFuture<'a, Result<Put, Error>>;

    /// Deletes a record if it is as expected. [`Expect::Absent`] is an error.
    fn delete<'a>(&'a self, key: &'a str, expect: Expect) -> BoxFuture<'a, Result<Delete, Error>>;

    /// Extends the life of records to `ttl` from now, without changing their revisions. Keys without a record are
    /// ignored.
    fn touch<'a>(&'a self, keys: &'a [&'a str], ttl: Duration) -> BoxFuture<'a, Result<(), Error>>;

    /// Returns up to `n` records whose keys start with `prefix` and follow `after`, in the order of the keys' bytes.
    ///
    /// The prefix must contain at least the space: `client/`. A record that exists while all pages are read is returned
    /// exactly once.
    fn scan<'a>(
        &'a self,
        prefix: &'a str,
        after: Option<&'a str>,
        n: usize,
    ) -> BoxFuture<'a, Result<Vec<(String, Record)>, Error>>;
}

/// A stored record.
///
/// # Example
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), linchpin_store::Error> {
/// use linchpin_store::{Expect, Put, Record, Store};
/// use std::time::Duration;
///
/// let store = Store::memory();
/// let ttl = Duration::from_secs(60);
/// let put = store.kv().put("client/7", "ada".into(), Expect::Any, ttl).await?;
/// let Put::Stored(rev) = put else { panic!("not stored") };
/// let record = store.kv().get("client/7").await?;
/// assert_eq!(record, Some(Record { value: "ada".into(), rev }));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The stored value.
    pub value: Bytes,
    /// The revision, which changes with every [`Kv::put`], even when a record is deleted and stored again.
    pub rev: Rev,
}

/// The revision of a record. Revisions can be compared for equality, but have no order.
///
/// # Example
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), linchpin_store::Error> {
/// use linchpin_store::{Expect, Put, Store};
/// use std::time::Duration;
///
/// let store = Store::memory();
/// let (kv, ttl) = (store.kv(), Duration::from_secs(60));
/// let Put::Stored(first) = kv.put("count/7", "1".into(), Expect::Any, ttl).await? else { panic!() };
/// let Put::Stored(second) = kv.put("count/7", "2".into(), Expect::Rev(first), ttl).await? else {
///     panic!("the record has changed")
/// };
/// assert_ne!(first, second);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rev(pub(crate) u64);

/// The precondition of a write.
///
/// # Example
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), linchpin_store::Error> {
/// use linchpin_store::{Expect, Store};
/// use std::time::Duration;
///
/// let store = Store::memory();
/// let (kv, ttl) = (store.kv(), Duration::from_secs(60));
/// assert!(kv.put("code/7f", "a".into(), Expect::Absent, ttl).await?.is_stored());
/// assert!(!kv.put("code/7f", "b".into(), Expect::Absent, ttl).await?.is_stored());
/// assert!(kv.put("code/7f", "c".into(), Expect::Any, ttl).await?.is_stored());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// No precondition: the record may exist or not.
    Any,
    /// The record must not exist.
    Absent,
    /// The record must exist with this revision.
    Rev(Rev),
}

impl Expect {
    /// Whether a record of this revision, or none, is what is expected.
    pub(crate) fn meets(self, found: Option<Rev>) -> bool {
        match self {
            Expect::Any => true,
            Expect::Absent => found.is_none(),
            Expect::Rev(rev) => found == Some(rev),
        }
    }
}

/// The result of [`Kv::put`].
///
/// # Example
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), linchpin_store::Error> {
/// use linchpin_store::{Expect, Put, Store};
/// use std::time::Duration;
///
/// let store = Store::memory();
/// let (kv, ttl) = (store.kv(), Duration::from_secs(60));
/// let _ = kv.put("code/7f", "first".into(), Expect::Any, ttl).await?;
/// match kv.put("code/7f", "second".into(), Expect::Absent, ttl).await? {
///     Put::Stored(rev) => println!("stored with revision {rev:?}"),
///     Put::Conflict(Some(found)) => assert_eq!(found.value, "first"),
///     Put::Conflict(None) => unreachable!("an absent record was expected"),
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum Put {
    /// The record was stored with this revision.
    Stored(Rev),
    /// The record was not stored, because the precondition failed: this is the existing record, if any.
    Conflict(Option<Record>),
}

impl Put {
    /// Returns whether the record was stored.
    pub fn is_stored(&self) -> bool {
        matches!(self, Put::Stored(_))
    }
}

/// The result of [`Kv::delete`].
///
/// # Example
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), linchpin_store::Error> {
/// use linchpin_store::{Delete, Expect, Store};
/// use std::time::Duration;
///
/// let store = Store::memory();
/// let kv = store.kv();
/// let _ = kv.put("code/7f", "fresh".into(), Expect::Any, Duration::from_secs(60)).await?;
/// assert_eq!(kv.delete("code/7f", Expect::Any).await?, Delete::Deleted);
/// assert_eq!(kv.delete("code/7f", Expect::Any).await?, Delete::Absent);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum Delete {
    /// The record was deleted.
    Deleted,
    /// There was no record.
    Absent,
    /// The record was not deleted, because the precondition failed: this is the existing record.
    Conflict(Record),
}
