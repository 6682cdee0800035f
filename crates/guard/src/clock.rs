//! The clock of a guard.

use std::fmt;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// The clock of a guard, in seconds since 1970. The default is the system's clock.
///
/// ```
/// use linchpin_guard::Clock;
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicU64, Ordering};
///
/// // A clock for tests.
/// let now = Arc::new(AtomicU64::new(1_900_000_000));
/// let clock = Clock::new({
///     let now = now.clone();
///     move || now.load(Ordering::Relaxed)
/// });
/// # let _ = clock;
/// ```
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> u64 + Send + Sync>);

impl Clock {
    /// Creates a clock that calls this function.
    pub fn new(read: impl Fn() -> u64 + Send + Sync + 'static) -> Clock {
        Clock(Arc::new(read))
    }

    pub(crate) fn now(&self) -> u64 {
        (self.0)()
    }
}

impl Default for Clock {
    fn default() -> Clock {
        Clock::new(|| SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()))
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Clock")
    }
}
