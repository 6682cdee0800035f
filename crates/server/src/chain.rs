//! The cancellation of a request that runs within layers.

use crate::cx::CallState;
use linchpin_core::Cancel;
use std::sync::{Arc, OnceLock};

/// Ends a chain, or the request at its end.
pub(crate) struct Chain {
    pub(crate) call: Arc<CallState>,
    pub(crate) inner: OnceLock<Arc<dyn Cancel>>,
}

impl Cancel for Chain {
    fn cancel(&self) {
        self.call.cancel();
    }

    fn finish(&self) {
        match self.inner.get() {
            Some(inner) => inner.finish(),
            None => self.call.cancel(),
        }
    }
}
