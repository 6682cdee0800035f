//! The time of a store.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The source of time for expiry in memory and SQLite stores. Redis uses the time of its server.
///
/// # Example
///
/// ```
/// use linchpin_store::{Clock, Store};
/// use std::sync::Arc;
/// use std::time::Duration;
///
/// struct Stopped;
///
/// impl Clock for Stopped {
///     fn now(&self) -> Duration {
///         Duration::from_secs(1_790_000_000)
///     }
/// }
///
/// let store = Store::builder().clock(Arc::new(Stopped)).memory();
/// # assert_eq!(store.kind(), "memory");
/// ```
pub trait Clock: Send + Sync + 'static {
    /// Returns the time since 1970. It never goes back.
    fn now(&self) -> Duration;
}

/// The system's time, except that it never goes back: expired entries stay expired when the system's clock is changed.
///
/// # Example
///
/// ```
/// use linchpin_store::{Clock, SystemClock};
///
/// let clock = SystemClock::new();
/// let start = clock.now();
/// assert!(clock.now() >= start);
/// ```
pub struct SystemClock {
    started: Duration,
    since: Instant,
    last_us: AtomicU64,
}

impl SystemClock {
    /// Creates a clock that starts at the system's time.
    pub fn new() -> SystemClock {
        SystemClock { started: system(), since: Instant::now(), last_us: AtomicU64::new(0) }
    }
}

impl Default for SystemClock {
    fn default() -> SystemClock {
        SystemClock::new()
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Duration {
        // The system's time counts the time that a machine sleeps; the monotonic one goes on when the system's is set back.
        let now = (self.started + self.since.elapsed()).max(system());
        let now_us = u64::try_from(now.as_micros()).unwrap_or(u64::MAX);
        Duration::from_micros(self.last_us.fetch_max(now_us, Ordering::Relaxed).max(now_us))
    }
}

impl fmt::Debug for SystemClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SystemClock").field(&self.now()).finish()
    }
}

fn system() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// A clock for tests, which stands still until it is advanced.
///
/// # Example
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), linchpin_store::Error> {
/// use linchpin_store::{Expect, ManualClock, Store};
/// use std::sync::Arc;
/// use std::time::Duration;
///
/// let clock = Arc::new(ManualClock::default());
/// let store = Store::builder().clock(clock.clone()).memory();
/// let ttl = Duration::from_secs(60);
/// let _ = store.kv().put("code/7f", "fresh".into(), Expect::Any, ttl).await?;
/// clock.advance(Duration::from_secs(61));
/// assert!(store.kv().get("code/7f").await?.is_none()); // expired
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct ManualClock(AtomicU64);

impl ManualClock {
    /// Creates a clock that shows this time since 1970.
    pub fn at(now: Duration) -> ManualClock {
        ManualClock(AtomicU64::new(micros(now)))
    }

    /// Moves the clock forward.
    pub fn advance(&self, by: Duration) {
        self.0.fetch_add(micros(by), Ordering::SeqCst);
    }
}

impl Default for ManualClock {
    /// Creates a clock that shows a time in 2026.
    fn default() -> ManualClock {
        ManualClock::at(Duration::from_secs(1_790_000_000))
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Duration {
        Duration::from_micros(self.0.load(Ordering::SeqCst))
    }
}

/// A duration in whole microseconds, for 285 years at most: what every store can add to the present.
pub(crate) fn micros(duration: Duration) -> u64 {
    const MAX: u64 = 1 << 53;
    u64::try_from(duration.as_micros()).unwrap_or(MAX).min(MAX)
}
