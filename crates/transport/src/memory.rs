//! The in-memory transport, for tests and for servers inside a program.

use crate::link::{PipeTransport, Stream};
use crate::pipe;
use linchpin_core::service::{Bind, BoxFuture, IntoService, Service};
use linchpin_core::{ClientTransport, ConnectOptions, Connector, Principal, TransportError};
use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::io::DuplexStream;

/// Returns two connected ends: serve a server on the first; the second exchanges one message per line with it.
///
/// Each direction buffers up to 64 KiB; then the writer waits. When the second end is dropped, the server ends. For
/// several clients of one server use [`in_process`].
///
/// ```
/// # use linchpin_core::service::{Bind, IntoService};
/// # use linchpin_transport::memory::memory;
/// use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
///
/// async fn ping(server: impl IntoService) -> std::io::Result<String> {
///     let (transport, mut client) = memory();
///     tokio::spawn(transport.serve(server.into_shared()?));
///     client.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n").await?;
///     let mut line = String::new();
///     BufReader::new(client).read_line(&mut line).await?;
///     Ok(line)
/// }
/// ```
pub fn memory() -> (Memory, DuplexStream) {
    let (ours, theirs) = tokio::io::duplex(WAITING_BYTES);
    (Memory { stream: ours, principal: None }, theirs)
}

/// The server's end of [`memory`].
///
/// ```
/// # use linchpin_core::service::{Bind, IntoService};
/// use linchpin_transport::memory::{Memory, memory};
///
/// async fn run(server: impl IntoService, transport: Memory) -> std::io::Result<()> {
///     transport.serve(server.into_shared()?).await
/// }
/// let (transport, client) = memory();
/// # let _ = (transport, client);
/// ```
#[derive(Debug)]
pub struct Memory {
    stream: DuplexStream,
    principal: Option<Principal>,
}

impl Memory {
    /// Serves the client as this principal, as if a guard had authenticated it.
    ///
    /// ```
    /// use linchpin_core::Principal;
    /// use linchpin_transport::memory::memory;
    ///
    /// let (transport, client) = memory();
    /// let transport = transport.with_principal(Principal::new("ada"));
    /// # let _ = (transport, client);
    /// ```
    #[must_use]
    pub fn with_principal(mut self, principal: Principal) -> Memory {
        self.principal = Some(principal);
        self
    }
}

impl Bind for Memory {
    fn serve(self, service: Arc<dyn Service>) -> BoxFuture<'static, io::Result<()>> {
        Box::pin(async move {
            let (input, output) = tokio::io::split(self.stream);
            pipe::serve(service, self.principal, input, output, std::future::pending()).await
        })
    }
}

/// Returns a connector to a server inside this program.
///
/// Each connection is served by its own task; the end of one does not end the others. If the server's configuration is
/// invalid, connecting returns an error.
///
/// ```
/// # use linchpin_core::{Connector, service::IntoService};
/// use linchpin_transport::memory::in_process;
///
/// fn local(server: impl IntoService) -> impl Connector {
///     in_process(server)
/// }
/// ```
pub fn in_process(server: impl IntoService) -> InProcess {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let service = server.into_shared().map_err(|e| Arc::from(format!("the server cannot start: {e}")));
    InProcess { service, number: COUNT.fetch_add(1, Ordering::Relaxed), principal: None }
}

/// A server inside this program, created by [`in_process`]. Clones share the server.
///
/// ```
/// # use linchpin_core::service::IntoService;
/// use linchpin_transport::memory::{InProcess, in_process};
///
/// // Both connect to the same server.
/// fn twice(server: impl IntoService) -> (InProcess, InProcess) {
///     let connector = in_process(server);
///     (connector.clone(), connector)
/// }
/// ```
#[derive(Clone)]
pub struct InProcess {
    service: Result<Arc<dyn Service>, Arc<str>>,
    number: u64,
    principal: Option<Principal>,
}

impl InProcess {
    /// Connects as this principal, as if a guard had authenticated it. This is useful for tests of servers with several
    /// users.
    ///
    /// ```
    /// # use linchpin_core::service::IntoService;
    /// use linchpin_core::Principal;
    /// use linchpin_transport::memory::{InProcess, in_process};
    ///
    /// fn users(server: impl IntoService) -> [InProcess; 2] {
    ///     let connector = in_process(server);
    ///     ["ada", "bob"].map(|name| connector.clone().with_principal(Principal::new(name)))
    /// }
    /// ```
    #[must_use]
    pub fn with_principal(mut self, principal: Principal) -> InProcess {
        self.principal = Some(principal);
        self
    }
}

impl Connector for InProcess {
    fn name(&self) -> String {
        "a server in this program".to_owned()
    }

    fn key(&self) -> Option<String> {
        Some(format!("memory:{}", self.number))
    }

    fn connect(&self, options: ConnectOptions) -> BoxFuture<'_, Result<Arc<dyn ClientTransport>, TransportError>> {
        Box::pin(async move {
            let service = self.service.clone().map_err(TransportError::Unreachable)?;
            let (ours, theirs) = tokio::io::duplex(WAITING_BYTES);
            let principal = self.principal.clone();
            tokio::spawn(async move {
                let (input, output) = tokio::io::split(theirs);
                if let Err(e) = pipe::serve(service, principal, input, output, std::future::pending()).await {
                    tracing::debug!(error = %e, "a connection in memory ended");
                }
            });
            let (input, output) = tokio::io::split(ours);
            Ok(Arc::new(PipeTransport::open(options, input, output, Arc::new(Stream))) as Arc<dyn ClientTransport>)
        })
    }
}

impl fmt::Debug for InProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InProcess").field("number", &self.number).finish_non_exhaustive()
    }
}

/// Bytes buffered in each direction.
const WAITING_BYTES: usize = 64 << 10;
