//! Entries that are appended.

use crate::BoxFuture;
use crate::error::Error;
use crate::lease::Fence;
use bytes::Bytes;
use std::time::Duration;

/// Logs under keys: entries in a sequence without gaps.
///
/// The writer numbers the entries, from 1 unless it says otherwise with its first append, and so a log that a store has lost
/// goes on where its writer is. Keys are `space/name`.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), linchpin_store::Error> {
/// use linchpin_store::{Append, Fence, Read, Store};
/// use std::time::Duration;
///
/// let store = Store::memory();
/// let (log, ttl) = (store.log(), Duration::from_secs(60));
/// let events = vec!["a".into(), "b".into()];
/// assert_eq!(log.append("stream/7", 1, events.clone(), Fence::NONE, ttl).await?, Append::Stored);
/// assert_eq!(log.append("stream/7", 1, events, Fence::NONE, ttl).await?, Append::Stored); // once more changes nothing
/// let Read::Entries { entries, next } = log.read("stream/7", 1, 1 << 20).await? else { panic!("stored") };
/// assert_eq!((entries, next), (vec![(2, "b".into())], 3));
/// # Ok(())
/// # }
/// ```
pub trait Log: Send + Sync + 'static {
    /// Appends entries, of which the first has the number `first_seq`. The log's time to live starts anew.
    ///
    /// Numbers that are stored already are skipped, so that the same append twice is one. A number greater than the next one
    /// is refused, and so is a fence older than one that was used: `append` of nothing stops all older writers.
    fn append<'a>(
        &'a self,
        key: &'a str,
        first_seq: u64,
        entries: Vec<Bytes>,
        fence: Fence,
        ttl: Duration,
    ) -> BoxFuture<'a, Result<Append, Error>>;

    /// Returns the entries that follow number `after`, in order: the first, and more while all are within `bytes_max`.
    fn read<'a>(&'a self, key: &'a str, after: u64, bytes_max: usize) -> BoxFuture<'a, Result<Read, Error>>;

    /// Deletes the entries up to and including number `through`.
    fn trim<'a>(&'a self, key: &'a str, through: u64) -> BoxFuture<'a, Result<(), Error>>;

    /// Deletes a log, with its numbers and fence.
    fn delete<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<(), Error>>;
}

/// What became of a [`Log::append`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Append {
    /// All entries are stored.
    Stored,
    /// Nothing was stored: the next entry must have this number.
    Gap {
        /// The number.
        next: u64,
    },
    /// Nothing was stored: this newer fence was used.
    Stale(Fence),
}

/// The result of a [`Log::read`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Read {
    /// The entries with their numbers.
    Entries {
        /// In order, without gaps.
        entries: Vec<(u64, Bytes)>,
        /// The number of the entry that is appended next.
        next: u64,
    },
    /// Entries that follow `after` were trimmed: those up to and including this one.
    Trimmed {
        /// The number of the newest entry that is gone.
        through: u64,
    },
    /// There is no such log, or it expired.
    Unknown,
}
