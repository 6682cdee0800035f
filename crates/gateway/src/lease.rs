//! A connection to the upstream while a request has it.

use crate::instance::Instance;
use crate::pool::Pool;
use std::sync::Arc;

/// A connection that a request has: it is not closed in favour of another client before this is dropped.
pub(crate) struct Lease {
    instance: Arc<Instance>,
    pool: Arc<Pool>,
    /// No other call that may be asked something has it meanwhile.
    asks: bool,
}

impl Lease {
    /// `None` if it was closed.
    pub(crate) fn new(pool: &Arc<Pool>, instance: Arc<Instance>) -> Option<Lease> {
        instance.hold().then(|| Lease { instance, pool: pool.clone(), asks: false })
    }

    /// One that was opened just now, and is held since.
    pub(crate) fn opened(pool: &Arc<Pool>, instance: Arc<Instance>) -> Lease {
        Lease { instance, pool: pool.clone(), asks: false }
    }

    /// The same for a call that may be asked something. `None` if another one has the connection.
    pub(crate) fn for_questions(mut self, capabilities: &str) -> Option<Lease> {
        self.asks = self.instance.reserve_for_questions(capabilities);
        self.asks.then_some(self)
    }

    pub(crate) fn instance(&self) -> &Arc<Instance> {
        &self.instance
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if self.asks {
            self.instance.end_reservation();
        }
        self.instance.release();
        self.pool.freed();
    }
}
