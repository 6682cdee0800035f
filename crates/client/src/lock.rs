//! Locks without poisoning.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks and ignores poisoning: the guarded data is consistent between statements.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
