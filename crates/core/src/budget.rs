//! A memory budget for data that a server holds for its peers.
//!
//! Memory is reserved before it is used: for request bodies, responses not yet sent, events kept for replay, and what
//! clients declare in sessions. If the budget is exhausted, the request is rejected or the connection is closed.
//! Dropping a reservation returns its bytes to the budget.

use bytes::Bytes;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The error message if the budget is exhausted.
pub const EXHAUSTED: &str = "the server's memory budget for clients is exhausted; try again later";

/// Reservations of at least this size cannot use the last eighth of a budget.
const LARGE_BYTES_MIN: usize = 16 << 10;

/// The memory budget of all peers of a server. The last eighth is for small reservations, so that large messages leave
/// room for the messages and sessions of others. Its size is
/// [`connections.memory_bytes_max`](crate::limits::ConnectionLimits::memory_bytes_max).
///
/// ```
/// use linchpin_core::Budget;
///
/// let budget = Budget::new(1024);
/// let body = budget.own(vec![0; 1000]).unwrap();
/// assert_eq!(budget.used(), 1000);
/// assert!(budget.reserve(100).is_none());
/// drop(body);
/// assert_eq!(budget.used(), 0);
/// ```
pub struct Budget {
    used: AtomicUsize,
    max: usize,
}

impl Budget {
    /// Creates a budget of `max` bytes.
    pub fn new(max: usize) -> Arc<Budget> {
        Arc::new(Budget { used: AtomicUsize::new(0), max })
    }

    /// Reserves `bytes`. Returns `None` if the budget does not have that much left.
    pub fn reserve(self: &Arc<Self>, bytes: usize) -> Option<Reservation> {
        let mut reservation = Reservation { budget: self.clone(), bytes: 0 };
        reservation.grow(bytes).then_some(reservation)
    }

    /// Charges `data` to the budget until its last clone is dropped. Returns `None` if the budget does not have that much
    /// left.
    pub fn own(self: &Arc<Self>, data: impl AsRef<[u8]> + Send + 'static) -> Option<Bytes> {
        Some(self.reserve(data.as_ref().len())?.own(data))
    }

    /// Returns the number of bytes that are reserved now.
    pub fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }
}

impl fmt::Debug for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Budget").field("used", &self.used()).field("max", &self.max).finish()
    }
}

/// A share of a [`Budget`]. Dropping it returns the bytes to the budget.
///
/// ```
/// use linchpin_core::Budget;
///
/// let budget = Budget::new(1024);
/// let mut reservation = budget.reserve(100).unwrap();
/// assert!(reservation.grow(500));
/// assert!(!reservation.grow(500), "the budget is exhausted");
/// reservation.shrink(400);
/// assert_eq!((reservation.bytes(), budget.used()), (200, 200));
/// ```
#[derive(Debug)]
pub struct Reservation {
    budget: Arc<Budget>,
    bytes: usize,
}

impl Reservation {
    /// Reserves `more` bytes. Returns `false`, and changes nothing, if the budget does not have that much left.
    pub fn grow(&mut self, more: usize) -> bool {
        let large = self.bytes.saturating_add(more) > LARGE_BYTES_MIN;
        let max = if large { self.budget.max - self.budget.max / 8 } else { self.budget.max };
        let fits = |used: usize| used.checked_add(more).filter(|sum| *sum <= max);
        let grown = self.budget.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).is_ok();
        if grown {
            self.bytes += more;
        }
        grown
    }

    /// Returns `fewer` bytes to the budget, at most all of them.
    pub fn shrink(&mut self, fewer: usize) {
        let fewer = fewer.min(self.bytes);
        self.bytes -= fewer;
        self.budget.used.fetch_sub(fewer, Ordering::Relaxed);
    }

    /// Attaches the reservation to `data`: it ends when the last clone or slice is dropped.
    pub fn own(self, data: impl AsRef<[u8]> + Send + 'static) -> Bytes {
        Bytes::from_owner(Owned { data, _reservation: self })
    }

    /// Returns the number of reserved bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.shrink(self.bytes);
    }
}

struct Owned<D> {
    data: D,
    _reservation: Reservation,
}

impl<D: AsRef<[u8]>> AsRef<[u8]> for Owned<D> {
    fn as_ref(&self) -> &[u8] {
        self.data.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_eighth_is_for_what_is_small() {
        let budget = Budget::new(80_000);
        let large = budget.reserve(70_000).unwrap();
        assert!(budget.reserve(20_000).is_none());
        let mut small = budget.reserve(8_000).unwrap();
        assert!(!small.grow(10_000));
        drop(large);
        assert!(small.grow(10_000));
    }

    #[test]
    fn what_is_dropped_is_free_again_and_nothing_is_reserved_past_the_end() {
        let budget = Budget::new(10);
        let mut one = budget.reserve(6).unwrap();
        assert!(budget.reserve(5).is_none() && !one.grow(5) && !one.grow(usize::MAX));
        assert!(one.grow(4));
        assert_eq!(budget.used(), 10);
        one.shrink(100);
        assert_eq!(budget.used(), 0);
        drop(one);
        let data = budget.own(vec![1; 8]).unwrap();
        let slice = data.slice(2..3);
        drop(data);
        assert_eq!(budget.used(), 8, "a slice keeps the whole");
        drop(slice);
        assert_eq!(budget.used(), 0);
    }
}
