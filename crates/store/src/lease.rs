//! Who may act.

use crate::BoxFuture;
use crate::error::Error;
use std::time::Duration;

/// Leases under names: at most one holder, by the store's clock.
///
/// A holder renews its lease, and stops acting when two thirds of its time have passed without a renewal. What it writes
/// elsewhere carries its [`Fence`], so that a holder which slept through its lease is refused. Names are `space/name`.
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
    /// `owner` is one holder: two tasks that must not act at the same time have two names, as has a process after its restart.
    /// Who holds the lease already gets the same fence and a new `ttl`, so that repeating a claim is safe.
    fn claim<'a>(&'a self, name: &'a str, owner: &'a str, ttl: Duration) -> BoxFuture<'a, Result<Claim, Error>>;

    /// Keeps a lease for `ttl` from now. `false` if it was lost.
    fn renew<'a>(&'a self, name: &'a str, fence: Fence, ttl: Duration) -> BoxFuture<'a, Result<bool, Error>>;

    /// Gives a lease back. `false` if it was lost.
    fn release<'a>(&'a self, name: &'a str, fence: Fence) -> BoxFuture<'a, Result<bool, Error>>;

    /// Returns who holds a lease.
    fn holder<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Option<(String, Fence)>, Error>>;
}

/// A number that grows with every holder of a lease, also when the store lost the lease: it is at least the time of the
/// claim in milliseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fence(pub(crate) u64);

impl Fence {
    /// Older than every other one: for a log that nobody competes for.
    pub const NONE: Fence = Fence(0);

    /// The fence of this number, as [`Fence::number`] gave it.
    pub fn from_number(number: u64) -> Fence {
        Fence(number)
    }

    /// The fence as a number, below 2^53.
    pub fn number(self) -> u64 {
        self.0
    }
}

/// What became of a [`Lease::claim`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum Claim {
    /// The lease is held.
    Held(Fence),
    /// Somebody else holds it.
    Busy {
        /// Who.
        owner: String,
        /// How long at most, unless it is renewed.
        left: Duration,
    },
}
