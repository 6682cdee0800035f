//! A unix socket: one message per line, like stdio, for any number of clients.

use crate::link::{PipeTransport, Stream};
use crate::pipe;
use linchpin_core::service::{Bind, BoxFuture, Service};
use linchpin_core::{ClientTransport, ConnectOptions, Connector, Principal, TransportError};
use std::fmt;
use std::io;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Returns the unix socket at this path, for a server to listen on or a client to connect to.
///
/// The principal of requests is the user of the client's process: `uid:1000`.
///
/// On the server's side only the user who runs the server may connect (mode 0600). A stale socket is replaced; anything
/// else at the path is an error. The server runs until the signal of [`Unix::with_graceful_shutdown`] completes or its
/// future is dropped; then the socket is removed. No signals are handled unless the program does so:
///
/// ```
/// use linchpin_transport::{shutdown_signal, unix::unix};
///
/// let server = unix("/run/user/1000/weather.sock").with_graceful_shutdown(shutdown_signal());
/// let client = unix("/run/user/1000/weather.sock");
/// ```
pub fn unix(path: impl Into<PathBuf>) -> Unix {
    Unix { path: path.into() }
}

/// A unix socket as a transport, created by [`unix`].
///
/// ```
/// use linchpin_transport::unix::{Unix, unix};
///
/// let socket: Unix = unix("/run/user/1000/weather.sock");
/// ```
#[derive(Clone, Debug)]
pub struct Unix {
    path: PathBuf,
}

impl Unix {
    /// For a server: stops when `signal` completes. No new connections are accepted, and running calls may finish
    /// within `calls.drain_ms_max`.
    pub fn with_graceful_shutdown(self, signal: impl Future<Output = ()> + Send + 'static) -> UnixServer {
        UnixServer { path: self.path, shutdown: Box::pin(signal), on_ready: None }
    }
}

/// A unix socket to serve on, created by [`Unix::with_graceful_shutdown`].
///
/// ```
/// use linchpin_transport::{shutdown_signal, unix::unix};
///
/// let socket = unix("/run/user/1000/weather.sock")
///     .with_graceful_shutdown(shutdown_signal())
///     .on_ready(|| eprintln!("ready"));
/// ```
pub struct UnixServer {
    path: PathBuf,
    shutdown: BoxFuture<'static, ()>,
    on_ready: Option<Box<dyn FnOnce() + Send>>,
}

impl UnixServer {
    /// Calls `ready` once the socket accepts connections, in place of the log message `listening on PATH`.
    pub fn on_ready(mut self, ready: impl FnOnce() + Send + 'static) -> UnixServer {
        self.on_ready = Some(Box::new(ready));
        self
    }
}

impl fmt::Debug for UnixServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UnixServer").field("path", &self.path).finish_non_exhaustive()
    }
}

impl Bind for Unix {
    fn serve(self, service: Arc<dyn Service>) -> BoxFuture<'static, io::Result<()>> {
        self.with_graceful_shutdown(std::future::pending()).serve(service)
    }
}

impl Bind for UnixServer {
    fn serve(self, service: Arc<dyn Service>) -> BoxFuture<'static, io::Result<()>> {
        Box::pin(async move {
            let listener = bind(&self.path).await?;
            match self.on_ready {
                Some(ready) => ready(),
                None => tracing::info!("listening on {}", self.path.display()),
            }
            let _bound = Bound(self.path);
            accept(&listener, service, self.shutdown).await;
            Ok(())
        })
    }
}

/// The socket's file; dropping it removes the file.
struct Bound(PathBuf);

impl Drop for Bound {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

impl Connector for Unix {
    fn name(&self) -> String {
        self.path.display().to_string()
    }

    fn key(&self) -> Option<String> {
        let path = std::path::absolute(&self.path).unwrap_or_else(|_| self.path.clone());
        Some(format!("unix:{}", path.display()))
    }

    /// Opens a new connection within `connections.connect_ms_max`.
    fn connect(&self, options: ConnectOptions) -> BoxFuture<'_, Result<Arc<dyn ClientTransport>, TransportError>> {
        Box::pin(async move {
            let limit = Duration::from_millis(options.limits.connections.connect_ms_max);
            let stream = match tokio::time::timeout(limit, connect(&self.path)).await {
                Ok(Ok(stream)) => stream,
                Ok(Err(e)) => return Err(TransportError::Unreachable(self.unreachable(&e).into())),
                Err(_) => {
                    let why = format!("the server at {} did not accept a connection within {limit:?}", self.name());
                    return Err(TransportError::Unreachable(why.into()));
                }
            };
            let (input, output) = stream.into_split();
            Ok(Arc::new(PipeTransport::open(options, input, output, Arc::new(Stream))) as Arc<dyn ClientTransport>)
        })
    }
}

impl Unix {
    fn unreachable(&self, e: &io::Error) -> String {
        let hint = match e.kind() {
            io::ErrorKind::NotFound => ": the socket does not exist; is the server running?".to_owned(),
            io::ErrorKind::ConnectionRefused => ": connection refused; is the server running?".to_owned(),
            io::ErrorKind::PermissionDenied => {
                ": permission denied; usually only the user that runs the server may connect".to_owned()
            }
            _ => format!(": {e}"),
        };
        format!("cannot connect to {}{hint}", self.name())
    }
}

/// Connects, and retries while the listener's queue is full.
async fn connect(path: &Path) -> io::Result<UnixStream> {
    loop {
        match UnixStream::connect(path).await {
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => tokio::time::sleep(Duration::from_millis(20)).await,
            other => return other,
        }
    }
}

async fn bind(path: &Path) -> io::Result<UnixListener> {
    let named = |e: io::Error| io::Error::new(e.kind(), format!("cannot listen on {}: {e}", path.display()));
    if let Ok(found) = std::fs::symlink_metadata(path) {
        if !found.file_type().is_socket() {
            return Err(named(io::Error::new(io::ErrorKind::AlreadyExists, "the path exists and is not a socket")));
        }
        if UnixStream::connect(path).await.is_ok() {
            return Err(named(io::Error::new(io::ErrorKind::AddrInUse, "another server is listening on this socket")));
        }
        std::fs::remove_file(path).map_err(named)?;
    }
    // Bound in a private directory first, so that there is no moment in which others could connect.
    let parent = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let private = parent.join(format!(".linchpin-{}", std::process::id()));
    std::fs::create_dir(&private).map_err(named)?;
    let bound = (|| {
        std::fs::set_permissions(&private, std::fs::Permissions::from_mode(0o700))?;
        let listener = UnixListener::bind(private.join("s"))?;
        std::fs::set_permissions(private.join("s"), std::fs::Permissions::from_mode(0o600))?;
        std::fs::rename(private.join("s"), path)?;
        Ok(listener)
    })();
    let _ = std::fs::remove_dir_all(&private);
    bound.map_err(named)
}

/// Accepts connections until shutdown; dropping the future ends open ones.
async fn accept(listener: &UnixListener, service: Arc<dyn Service>, mut shutdown: BoxFuture<'static, ()>) {
    let limits = service.limits().clone();
    let mut connections = JoinSet::new();
    let (stop, stopped) = watch::channel(false);
    loop {
        let room = connections.len() < limits.connections.concurrent_max;
        let stream = tokio::select! {
            accepted = listener.accept(), if room => match accepted {
                Ok((stream, _)) => stream,
                Err(e) => {
                    tracing::warn!(error = %e, "accept failed");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    continue;
                }
            },
            Some(_) = connections.join_next() => continue,
            () = &mut shutdown => break,
        };
        let (service, mut stopped) = (service.clone(), stopped.clone());
        connections.spawn(async move {
            // What belongs to a user, such as tasks, is theirs on each of their connections.
            let user = stream.peer_cred().ok().map(|peer| Principal::new(format!("uid:{}", peer.uid())));
            let (input, output) = stream.into_split();
            let stop = async move { drop(stopped.wait_for(|s| *s).await) };
            if let Err(e) = pipe::serve(service, user, input, output, stop).await {
                tracing::debug!(error = %e, "a connection ended");
            }
        });
    }
    service.close();
    let _ = stop.send(true);
    let limit = Duration::from_millis(2 * limits.calls.drain_ms_max);
    let _ = tokio::time::timeout(limit, async { while connections.join_next().await.is_some() {} }).await;
}
