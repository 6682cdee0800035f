//! A connection to the upstream while a request has it.

use crate::instance::{Instance, Reservation};
use crate::pool::Pool;
use std::sync::Arc;
use tokio::sync::oneshot;

/// A connection that a request has: it is not closed in favour of another client before this is dropped.
pub(crate) struct Lease {
    instance: Arc<Instance>,
    pool: Arc<Pool>,
    /// No other call that may be asked something has it meanwhile.
    reservation: Option<Reservation>,
}

impl Lease {
    /// `None` if it was closed.
    pub(crate) fn new(pool: &Arc<Pool>, instance: Arc<Instance>) -> Option<Lease> {
        instance.hold().then(|| Lease::opened(pool, instance))
    }

    /// One that was opened just now, and is held since.
    pub(crate) fn opened(pool: &Arc<Pool>, instance: Arc<Instance>) -> Lease {
        Lease { instance, pool: pool.clone(), reservation: None }
    }

    /// One that was reserved for a call that may be asked something. `None` if it was closed.
    pub(crate) fn reserved(pool: &Arc<Pool>, reservation: Reservation) -> Option<Lease> {
        let mut lease = Lease::new(pool, reservation.instance().clone())?;
        lease.reservation = Some(reservation);
        Some(lease)
    }

    /// The same for a call that may be asked something. If another one has the connection, the reservation comes later, or
    /// never.
    pub(crate) fn for_questions(mut self, capabilities: &str) -> Result<Lease, Option<oneshot::Receiver<Reservation>>> {
        self.reservation = Some(self.instance.reserve(capabilities)?);
        Ok(self)
    }

    pub(crate) fn instance(&self) -> &Arc<Instance> {
        &self.instance
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        drop(self.reservation.take());
        self.instance.release();
        self.pool.freed();
    }
}
