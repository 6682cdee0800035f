//! Leases.

use crate::BoxFuture;
use crate::error::Error;
use std::time::Duration;

/// Named leases, each with at most one holder at a time by the store's clock.
///
/// A holder must renew its lease, and must stop acting when two thirds of the lease time have passed without a renewal.
/// Its writes to other places carry its [`Fence`], so that a holder that missed the end of its lease is rejected there.
/// Names have the form `space/name`.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), linchpin_store::Error> {
/// use linchpin_store::{Claim, Store};
/// use std::time::Duration;
///
/// let store = Store::memory();
/// let (lease, ttl) = (store.lease(), Duration::from_secs(6));
/// let Claim::Held(fence) = lease.claim("session/7", "node a", ttl).await? else { panic!("free") };
/// assert!(matches!(lease.claim("session/7", "node b", ttl).await?, Claim::Busy { .. }));
/// assert!(lease.release("session/7", fence).await?);
/// # Ok(())
/// # }
/// ```
pub trait Lease: Send + Sync + 'static {
    /// Claims a lease for `ttl`.
    ///
    /// `owner` identifies one holder: two tasks that must not act at the same time need different names, and so does a
    /// process after a restart. If `owner` already holds the lease, it gets the same fence and a new `ttl`, so retrying
    /// is safe.
    fn claim<'a>(&'a self, name: &'a str, owner: &'a str, ttl: Duration) -> BoxFuture<'a, Result<Claim, Error>>;

    /// Extends a lease to `ttl` from now. Returns `false` if the lease was lost.
    fn renew<'a>(&'a self, name: &'a str, fence: Fence, ttl: Duration) -> BoxFuture<'a, Result<bool, Error>>;

    /// Releases a lease. Returns `false` if the lease was lost.
    fn release<'a>(&'a self, name: &'a str, fence: Fence) -> BoxFuture<'a, Result<bool, Error>>;

    /// Returns the owner and the fence of a lease, if it is held.
    fn holder<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Option<(String, Fence)>, Error>>;
}

/// A number that grows with every new holder of a lease.
///
/// It is at least the time of the claim in milliseconds since 1970, so it grows even if the store has lost the lease.
///
/// # Example
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), linchpin_store::Error> {
/// use linchpin_store::{Append, Claim, Fence, Store};
/// use std::time::Duration;
///
/// let store = Store::memory();
/// let (log, ttl) = (store.log(), Duration::from_secs(60));
/// let claim = store.lease().claim("session/7", "node a", ttl).await?;
/// let Claim::Held(fence) = claim else { panic!("another node holds the lease") };
/// assert_eq!(log.append("stream/7", 1, vec!["a".into()], fence, ttl).await?, Append::Stored);
///
/// // A writer with an older fence is rejected.
/// let older = Fence::from_number(fence.number() - 1);
/// assert_eq!(log.append("stream/7", 2, vec!["b".into()], older, ttl).await?, Append::Stale(fence));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fence(pub(crate) u64);

impl Fence {
    /// The fence that is older than every other fence, for logs with a single writer.
    pub const NONE: Fence = Fence(0);

    /// Creates a fence from a number that [`Fence::number`] returned.
    pub fn from_number(number: u64) -> Fence {
        Fence(number)
    }

    /// Returns the fence as a number, below 2^53.
    pub fn number(self) -> u64 {
        self.0
    }
}

/// The result of [`Lease::claim`].
///
/// # Example
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), linchpin_store::Error> {
/// use linchpin_store::{Claim, Store};
/// use std::time::Duration;
///
/// let store = Store::memory();
/// let (lease, ttl) = (store.lease(), Duration::from_secs(6));
/// let _ = lease.claim("session/7", "node a", ttl).await?;
/// match lease.claim("session/7", "node b", ttl).await? {
///     Claim::Held(fence) => println!("node b may act, with the fence {fence:?}"),
///     Claim::Busy { owner, left } => assert!(owner == "node a" && left <= ttl),
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum Claim {
    /// The lease is held.
    Held(Fence),
    /// Another owner holds the lease.
    Busy {
        /// The owner.
        owner: String,
        /// The remaining time of the lease, unless it is renewed.
        left: Duration,
    },
}
