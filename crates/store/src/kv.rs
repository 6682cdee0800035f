//! Records that are replaced as a whole.

use crate::BoxFuture;
use crate::error::Error;
use bytes::Bytes;
use std::time::Duration;

/// Records under keys, each with a revision and a time to live.
///
/// Reads and writes of one key are linearizable; nothing is promised across keys. An expired record does not exist: it may
/// be seen up to a second too long, never too short. Keys are `space/name` of at most [`KEY_BYTES_MAX`](crate::KEY_BYTES_MAX)
/// bytes, values at most [`VALUE_BYTES_MAX`](crate::VALUE_BYTES_MAX).
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
/// // A code is redeemed once: whoever loses sees what won.
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

    /// Stores a record if the one before is as expected. Its time to live starts anew.
    ///
    /// After an error it may have been stored or not: [`Kv::get`] tells.
    fn put<'a>(
        &'a self,
        key: &'a str,
        value: Bytes,
        expect: Expect,
        ttl: Duration,
    ) -> BoxFuture<'a, Result<Put, Error>>;

    /// Deletes a record if it is as expected. To expect that it is absent is an error.
    fn delete<'a>(&'a self, key: &'a str, expect: Expect) -> BoxFuture<'a, Result<Delete, Error>>;

    /// Keeps records for `ttl` from now. Those that do not exist are ignored; their revisions stay.
    fn touch<'a>(&'a self, keys: &'a [&'a str], ttl: Duration) -> BoxFuture<'a, Result<(), Error>>;

    /// Returns up to `n` records whose keys start with `prefix` and follow `after`, in the order of the keys' bytes.
    ///
    /// A prefix names at least the space: `client/`. Records that exist while all pages are read are returned once.
    fn scan<'a>(
        &'a self,
        prefix: &'a str,
        after: Option<&'a str>,
        n: usize,
    ) -> BoxFuture<'a, Result<Vec<(String, Record)>, Error>>;
}

/// A stored record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// What was stored.
    pub value: Bytes,
    /// The revision: another one after every [`Kv::put`], also when a record is deleted and stored again.
    pub rev: Rev,
}

/// A revision of a record. Revisions are compared, not ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rev(pub(crate) u64);

/// What must be there for a write to happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// Anything, or nothing.
    Any,
    /// Nothing.
    Absent,
    /// The record of this revision.
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

/// What became of a [`Kv::put`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum Put {
    /// Stored, with this revision.
    Stored(Rev),
    /// Not stored: this is there instead of what was expected.
    Conflict(Option<Record>),
}

impl Put {
    /// Whether it was stored.
    pub fn is_stored(&self) -> bool {
        matches!(self, Put::Stored(_))
    }
}

/// What became of a [`Kv::delete`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum Delete {
    /// It was there.
    Deleted,
    /// It was not there.
    Absent,
    /// Not deleted: this is there instead of what was expected.
    Conflict(Record),
}
