//! Serializes changes to the same file.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Serializes changes to the same file, so that concurrent calls do not undo each other's work. Files may share a lock
/// by hash; no call waits for anything else while it holds one.
#[derive(Debug, Default)]
pub(crate) struct Turns([Mutex<()>; 32]);

impl Turns {
    /// Locks this path.
    pub(crate) fn take(&self, path: &Path) -> MutexGuard<'_, ()> {
        let mut hasher = DefaultHasher::new();
        path.hash(&mut hasher);
        let index = usize::try_from(hasher.finish() % 32).unwrap_or(0);
        // The lock guards no data, so it cannot be poisoned in a harmful way.
        self.0[index].lock().unwrap_or_else(PoisonError::into_inner)
    }
}
