//! Append-only logs.

use crate::BoxFuture;
use crate::error::Error;
use crate::lease::Fence;
use bytes::Bytes;
use std::time::Duration;

/// Append-only logs, identified by keys: entries in a sequence without gaps.
///
/// The writer numbers the entries. They start with 1 unless the first append says otherwise, so that after a store has
/// lost a log, the writer can continue with its own numbers. Keys have the form `space/name`.
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
/// assert_eq!(log.append("stream/7", 1, events, Fence::NONE, ttl).await?, Append::Stored); // a retry changes nothing
/// let Read::Entries { entries, next } = log.read("stream/7", 1, 1 << 20).await? else { panic!("stored") };
/// assert_eq!((entries, next), (vec![(2, "b".into())], 3));
/// # Ok(())
/// # }
/// ```
pub trait Log: Send + Sync + 'static {
    /// Appends entries, the first of which has the number `first_seq`. The log's time to live starts anew.
    ///
    /// Numbers that are already stored are skipped, so retrying an append is safe. A number greater than the next one
    /// is rejected, and so is a fence older than one that was used before: appending no entries with a new fence stops
    /// all older writers.
    fn append<'a>(
        &'a self,
        key: &'a str,
        first_seq: u64,
        entries: Vec<Bytes>,
        fence: Fence,
        ttl: Duration,
    ) -> BoxFuture<'a, Result<Append, Error>>;

    /// Returns the entries that follow number `after`, in order: at least one, and more as long as their total size is
    /// at most `bytes_max`.
    fn read<'a>(&'a self, key: &'a str, after: u64, bytes_max: usize) -> BoxFuture<'a, Result<Read, Error>>;

    /// Deletes the entries up to and including number `through`.
    fn trim<'a>(&'a self, key: &'a str, through: u64) -> BoxFuture<'a, Result<(), Error>>;

    /// Deletes a log, including its numbers and fence.
    fn delete<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<(), Error>>;
}

/// The result of [`Log::append`].
///
/// # Example
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), linchpin_store::Error> {
/// use linchpin_store::{Append, Fence, Store};
/// use std::time::Duration;
///
/// let store = Store::memory();
/// let (log, ttl) = (store.log(), Duration::from_secs(60));
/// let append = log.append("stream/7", 1, vec!["a".into()], Fence::NONE, ttl).await?;
/// assert_eq!(append, Append::Stored);
/// let append = log.append("stream/7", 3, vec!["c".into()], Fence::NONE, ttl).await?;
/// assert_eq!(append, Append::Gap { next: 2 });
/// # Ok(())
/// # }
/// ```
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
    /// Nothing was stored, because this newer fence has been used.
    Stale(Fence),
}

/// The result of [`Log::read`].
///
/// # Example
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), linchpin_store::Error> {
/// use linchpin_store::{Fence, Read, Store};
/// use std::time::Duration;
///
/// let store = Store::memory();
/// let (log, ttl) = (store.log(), Duration::from_secs(60));
/// assert_eq!(log.read("stream/7", 0, 1 << 20).await?, Read::Unknown);
/// let _ = log.append("stream/7", 1, vec!["a".into(), "b".into()], Fence::NONE, ttl).await?;
/// let entries = vec![(2, "b".into())];
/// assert_eq!(log.read("stream/7", 1, 1 << 20).await?, Read::Entries { entries, next: 3 });
/// log.trim("stream/7", 1).await?;
/// assert_eq!(log.read("stream/7", 0, 1 << 20).await?, Read::Trimmed { through: 1 });
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Read {
    /// The entries with their numbers.
    Entries {
        /// The numbers and entries, in order and without gaps.
        entries: Vec<(u64, Bytes)>,
        /// The number that the next appended entry must have.
        next: u64,
    },
    /// Some of the entries that follow `after` were trimmed.
    Trimmed {
        /// The number of the newest trimmed entry.
        through: u64,
    },
    /// The log does not exist, or has expired.
    Unknown,
}
