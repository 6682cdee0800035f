//! An open transport.

use linchpin_core::{Agreed, ClientTransport, TransportError};
use linchpin_proto::message_writer::Writer;
use std::sync::{Arc, OnceLock};
use tokio::time::Instant;

/// An open transport and the negotiated properties.
pub(crate) struct ActiveTransport {
    pub(crate) link: Arc<dyn ClientTransport>,
    pub(crate) agreed: Agreed,
    pub(crate) writer: Writer,
    pub(crate) generation: u64,
    pub(crate) since: Instant,
    pub(crate) lost: OnceLock<TransportError>,
}

/// Cancels the request at the server if dropped before the response.
pub(crate) struct Cancel<'a> {
    pub(crate) live: &'a ActiveTransport,
    pub(crate) id: u64,
    pub(crate) answered: bool,
}

impl Drop for Cancel<'_> {
    fn drop(&mut self) {
        if self.answered || self.live.link.cancels_by_dropping() || self.live.lost.get().is_some() {
            return;
        }
        let id = self.id.to_string();
        self.live.link.notify_detached(self.live.writer.notification("notifications/cancelled", |members| {
            members.raw("requestId", &id);
            members.text("reason", "the caller no longer waits");
        }));
    }
}
