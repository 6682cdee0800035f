//! The requests of the server that the host is answering: the timeouts of the calls during which they came are paused.

use crate::lock::lock;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use tokio::sync::Notify;

/// The requests of the server that wait for the host.
#[derive(Default)]
pub(crate) struct Questions {
    /// How many, by the request during which they came; those that could belong to any are under `None`.
    open: Mutex<HashMap<Option<u64>, usize>>,
    changed: Notify,
}

impl Questions {
    /// The host is asked something, until what is returned is dropped.
    pub(crate) fn ask(self: &Arc<Questions>, during: Option<u64>) -> Question {
        *lock(&self.open).entry(during).or_default() += 1;
        self.changed.notify_waiters();
        Question { questions: self.clone(), during }
    }

    /// Waits until the host is asked something during this request, or is not any more.
    pub(crate) async fn until(&self, request: u64, asked: bool) {
        loop {
            // Created before the look: what changes after it is heard.
            let changed = self.changed.notified();
            if self.asks(request) == asked {
                return;
            }
            changed.await;
        }
    }

    fn asks(&self, request: u64) -> bool {
        let open = lock(&self.open);
        !open.is_empty() && (open.contains_key(&None) || open.contains_key(&Some(request)))
    }
}

/// A request of the server that waits for the host.
pub(crate) struct Question {
    questions: Arc<Questions>,
    during: Option<u64>,
}

impl Drop for Question {
    fn drop(&mut self) {
        let mut open = lock(&self.questions.open);
        if let Some(count) = open.get_mut(&self.during) {
            *count -= 1;
            if *count == 0 {
                open.remove(&self.during);
            }
        }
        drop(open);
        self.questions.changed.notify_waiters();
    }
}
