//! A wire in memory, for tests and for servers inside a program.

use crate::link::{PipeLink, Stream};
use crate::pipe;
use linchpin_proto::service::{Bind, BoxFuture, IntoService, Service};
use linchpin_proto::{Dial, Dialing, Link, LinkError};
use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::io::DuplexStream;

/// A pair of ends that are connected: serve a server at the first, speak one message a line on the second.
///
/// Up to 64 KiB wait in each direction; then the writer waits. When the second end is dropped, the server ends. For
/// several clients of one server use [`in_process`].
pub fn memory() -> (Memory, DuplexStream) {
    let (ours, theirs) = tokio::io::duplex(WAITING_BYTES);
    (Memory(ours), theirs)
}

/// The server's end of [`memory`].
#[derive(Debug)]
pub struct Memory(DuplexStream);

impl Bind for Memory {
    fn serve(self, service: Arc<dyn Service>) -> BoxFuture<'static, io::Result<()>> {
        Box::pin(async move {
            let (input, output) = tokio::io::split(self.0);
            pipe::serve(service, input, output, std::future::pending()).await
        })
    }
}

/// A server inside this program, for clients of the same program.
///
/// Every connection to it is served by a task of its own; the end of one does not end the others. A server that is
/// configured wrongly is an error when a client connects.
pub fn in_process(server: impl IntoService) -> InProcess {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let service = server.into_shared().map_err(|e| Arc::from(format!("the server cannot start: {e}")));
    InProcess { service, number: COUNT.fetch_add(1, Ordering::Relaxed) }
}

/// See [`in_process`]. Clones are the same server.
#[derive(Clone)]
pub struct InProcess {
    service: Result<Arc<dyn Service>, Arc<str>>,
    number: u64,
}

impl Dial for InProcess {
    fn name(&self) -> String {
        "a server in this program".to_owned()
    }

    fn key(&self) -> Option<String> {
        Some(format!("memory:{}", self.number))
    }

    fn dial(&self, dialing: Dialing) -> BoxFuture<'_, Result<Arc<dyn Link>, LinkError>> {
        Box::pin(async move {
            let service = self.service.clone().map_err(LinkError::Unreachable)?;
            let (ours, theirs) = tokio::io::duplex(WAITING_BYTES);
            tokio::spawn(async move {
                let (input, output) = tokio::io::split(theirs);
                if let Err(e) = pipe::serve(service, input, output, std::future::pending()).await {
                    tracing::debug!(error = %e, "a connection in memory ended");
                }
            });
            let (input, output) = tokio::io::split(ours);
            Ok(Arc::new(PipeLink::open(dialing, input, output, Arc::new(Stream))) as Arc<dyn Link>)
        })
    }
}

impl fmt::Debug for InProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InProcess").field("number", &self.number).finish_non_exhaustive()
    }
}

/// Bytes that wait in each direction.
const WAITING_BYTES: usize = 64 << 10;
