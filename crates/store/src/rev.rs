//! Revisions that are made where a record is written, before the store sees it: a write that is repeated is recognised.

use crate::kv::Rev;
use crate::secret::fill;
use std::sync::atomic::{AtomicU64, Ordering};

/// Makes revisions: different ones here, and in all likelihood other ones than every other process makes.
pub(crate) struct Revs(AtomicU64);

impl Revs {
    pub(crate) fn new() -> Revs {
        let mut start = [0; 8];
        fill(&mut start);
        Revs(AtomicU64::new(u64::from_ne_bytes(start)))
    }

    pub(crate) fn next(&self) -> Rev {
        Rev(self.0.fetch_add(1, Ordering::Relaxed))
    }
}
