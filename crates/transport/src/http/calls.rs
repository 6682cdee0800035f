//! The running calls of one service: counted, so that a shutdown can wait for them and cancel them.
//!
//! Calls that complete on their first poll are not counted.

use linchpin_core::{Cancel, RunningCall};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// Capacity kept while no call is running.
const KEPT: usize = 1_024;

/// See the module's documentation.
#[derive(Default)]
pub(crate) struct Calls {
    slots: Mutex<Slots>,
    idle: Notify,
}

#[derive(Default)]
struct Slots {
    all: Vec<Option<Arc<dyn Cancel>>>,
    free: Vec<usize>,
    over: bool,
}

impl Calls {
    fn lock(&self) -> MutexGuard<'_, Slots> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a call until the returned guard is dropped.
    fn enter(self: &Arc<Self>, cancel: Arc<dyn Cancel>) -> Entered {
        let mut slots = self.lock();
        if slots.over {
            cancel.cancel();
        }
        let slot = slots.free.pop().unwrap_or_else(|| {
            slots.all.push(None);
            slots.all.len() - 1
        });
        slots.all[slot] = Some(cancel);
        Entered { calls: self.clone(), slot }
    }

    /// Waits until none is running.
    pub(crate) async fn idle(&self) {
        loop {
            let mut idle = std::pin::pin!(self.idle.notified());
            idle.as_mut().enable();
            if self.lock().is_empty() {
                return;
            }
            idle.await;
        }
    }

    /// Cancels all calls, including later ones.
    pub(crate) fn cancel(&self) {
        let running: Vec<_> = {
            let mut slots = self.lock();
            slots.over = true;
            slots.all.iter().flatten().cloned().collect()
        };
        running.iter().for_each(|cancel| cancel.cancel());
    }
}

impl Slots {
    fn is_empty(&self) -> bool {
        self.free.len() == self.all.len()
    }
}

/// A call that is counted until it is dropped.
pub(crate) struct Counted {
    pub(crate) call: Box<dyn RunningCall>,
    // After the call, because what it uses may be dropped once it is not counted.
    _entered: Entered,
}

impl Counted {
    pub(crate) fn new(call: Box<dyn RunningCall>, cancel: Arc<dyn Cancel>, calls: &Arc<Calls>) -> Counted {
        Counted { call, _entered: calls.enter(cancel) }
    }
}

struct Entered {
    calls: Arc<Calls>,
    slot: usize,
}

impl Drop for Entered {
    fn drop(&mut self) {
        let mut slots = self.calls.lock();
        slots.all[self.slot] = None;
        slots.free.push(self.slot);
        if !slots.is_empty() {
            return;
        }
        if slots.all.len() > KEPT {
            (slots.all, slots.free) = (Vec::new(), Vec::new());
        }
        drop(slots);
        self.calls.idle.notify_waiters();
    }
}
