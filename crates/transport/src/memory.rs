//! A wire in memory, for tests and for servers inside a program.

use crate::pipe;
use linchpin_proto::service::{Bind, BoxFuture, Service};
use std::io;
use std::sync::Arc;
use tokio::io::DuplexStream;

/// A pair of ends that are connected: serve a server at the first, speak one message a line on the second.
///
/// Up to 64 KiB wait in each direction; then the writer waits.
pub fn memory() -> (Memory, DuplexStream) {
    let (ours, theirs) = tokio::io::duplex(64 << 10);
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
