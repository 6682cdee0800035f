//! Work that blocks, beside the runtime's own threads.

use std::sync::{Arc, Mutex, PoisonError};
use tokio::task::JoinHandle;

/// Runs `work` on the runtime's blocking pool. `None` if it panicked, or the runtime ended before it began.
///
/// A future that is dropped does not stop work that has begun.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// assert_eq!(linchpin_kit::blocking(|| 2 + 3).await, Some(5));
/// # });
/// ```
pub async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let done = Arc::new(Mutex::new(None));
    let place = done.clone();
    let task = spawn(Box::new(move || {
        let answer = work();
        *place.lock().unwrap_or_else(PoisonError::into_inner) = Some(answer);
    }));
    task.await.ok()?;
    done.lock().unwrap_or_else(PoisonError::into_inner).take()
}

// The runtime's code for a task is there once for this type, and not once for each kind of work.
fn spawn(work: Box<dyn FnOnce() + Send>) -> JoinHandle<()> {
    tokio::task::spawn_blocking(work)
}
