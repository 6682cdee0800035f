//! A connection to the upstream while a request has it.

use crate::instance::Instance;
use crate::pool::Pool;
use std::sync::Arc;

/// A connection that a request has: it is not closed in favour of another client before this is dropped.
pub(crate) struct Lease {
    instance: Arc<Instance>,
    pool: Arc<Pool>,
}

impl Lease {
    /// `None` if it was closed.
    pub(crate) fn new(pool: &Arc<Pool>, instance: Arc<Instance>) -> Option<Lease> {
        instance.hold().then(|| Lease { instance, pool: pool.clone() })
    }

    /// One that was opened just now, and is held since.
    pub(crate) fn opened(pool: &Arc<Pool>, instance: Arc<Instance>) -> Lease {
        Lease { instance, pool: pool.clone() }
    }

    pub(crate) fn instance(&self) -> &Arc<Instance> {
        &self.instance
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.instance.release();
        self.pool.freed();
    }
}
