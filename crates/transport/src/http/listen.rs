//! An address to serve at: the accept loop, and its end.

use super::HttpOptions;
use super::connection::{self, Connections, Deadlines, Phase};
use super::service::HttpService;
use linchpin_proto::Service;
use linchpin_proto::service::{Bind, BoxFuture};
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Serves Streamable HTTP at `addr`, for example `"127.0.0.1:8931"`; port 0 takes any free one.
///
/// HTTP/1.1 and HTTP/2 (with prior knowledge) are told apart by a connection's first bytes. It serves until
/// [`Http::with_graceful_shutdown`] says otherwise, or its future is dropped. No signal is listened to: SIGTERM and SIGINT
/// end the process at once, unless the program asks for more:
///
/// ```no_run
/// use linchpin_transport::{http::http, shutdown_signal};
///
/// let place = http("127.0.0.1:8931").with_graceful_shutdown(shutdown_signal());
/// ```
///
/// Only clients on the same machine are let in, by their `Host` and `Origin`, until [`Http::allow_host`] and
/// [`Http::allow_origin`] say otherwise.
pub fn http(addr: impl Into<Address>) -> Http {
    Http { addr: addr.into(), options: HttpOptions::default(), on_ready: None, shutdown: None }
}

/// Where to listen: an address as text (names are resolved), a socket address, or a listener that already listens.
#[derive(Debug)]
pub struct Address(Place);

#[derive(Debug)]
enum Place {
    Name(String),
    Socket(SocketAddr),
    Listener(std::net::TcpListener),
}

impl From<&str> for Address {
    fn from(addr: &str) -> Address {
        Address(Place::Name(addr.to_owned()))
    }
}

impl From<String> for Address {
    fn from(addr: String) -> Address {
        Address(Place::Name(addr))
    }
}

impl From<SocketAddr> for Address {
    fn from(addr: SocketAddr) -> Address {
        Address(Place::Socket(addr))
    }
}

impl From<std::net::TcpListener> for Address {
    fn from(listener: std::net::TcpListener) -> Address {
        Address(Place::Listener(listener))
    }
}

/// A place to serve at. See [`http()`].
pub struct Http {
    addr: Address,
    options: HttpOptions,
    on_ready: Option<Box<dyn FnOnce(SocketAddr) + Send>>,
    shutdown: Option<BoxFuture<'static, ()>>,
}

impl Http {
    /// The endpoint's path. Default `/mcp`.
    pub fn path(mut self, path: impl Into<String>) -> Http {
        self.options.path = Some(path.into());
        self
    }

    /// Also answers to this name in `Host`, with a port (`mcp.example:8443`) or on any (`mcp.example`). The loopback
    /// names and the bound address are always among the allowed ones.
    pub fn allow_host(mut self, host: impl Into<String>) -> Http {
        let loopback = || ["localhost", "127.0.0.1", "[::1]"].map(String::from).to_vec();
        self.options.allowed_hosts.get_or_insert_with(loopback).push(host.into());
        self
    }

    /// Answers to any `Host`. Only behind a proxy that checks it: otherwise any web page can reach the server through
    /// DNS rebinding.
    pub fn allow_any_host(mut self) -> Http {
        self.options.any_host = true;
        self
    }

    /// Lets pages of this origin in, for example `https://app.example`, and gives them the CORS headers that their browser
    /// wants. The default rule (pages of this machine) ends
    /// with the first call; name those origins too if they are still wanted.
    pub fn allow_origin(mut self, origin: impl Into<String>) -> Http {
        self.options.allowed_origins.get_or_insert_default().push(origin.into());
        self
    }

    /// Also serves the HTTP+SSE transport of revision 2024-11-05, at `/sse` and `/message`.
    #[cfg(feature = "sse")]
    pub fn with_sse(mut self) -> Http {
        self.options.sse_2024 = true;
        self
    }

    /// Replaces all options at once.
    pub fn options(mut self, options: HttpOptions) -> Http {
        self.options = options;
        self
    }

    /// Calls `ready` with the bound address once connections are accepted.
    pub fn on_ready(mut self, ready: impl FnOnce(SocketAddr) + Send + 'static) -> Http {
        self.on_ready = Some(Box::new(ready));
        self
    }

    /// Ends when `signal` does: no new connections, then running requests are waited for up to the limit `drain_ms_max`.
    pub fn with_graceful_shutdown(mut self, signal: impl Future<Output = ()> + Send + 'static) -> Http {
        self.shutdown = Some(Box::pin(signal));
        self
    }
}

impl fmt::Debug for Http {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Http").field("addr", &self.addr).field("options", &self.options).finish_non_exhaustive()
    }
}

impl Bind for Http {
    /// Listens and serves until the end. An error is one of the address.
    fn serve(self, service: Arc<dyn Service>) -> BoxFuture<'static, io::Result<()>> {
        Box::pin(self.run(service))
    }
}

impl Http {
    async fn run(self, service: Arc<dyn Service>) -> io::Result<()> {
        let listener = match self.addr.0 {
            Place::Name(name) => TcpListener::bind(&name).await.map_err(|e| unusable(&name, e))?,
            Place::Socket(addr) => TcpListener::bind(addr).await.map_err(|e| unusable(&addr.to_string(), e))?,
            Place::Listener(listener) => {
                listener.set_nonblocking(true)?;
                TcpListener::from_std(listener)?
            }
        };
        let addr = listener.local_addr()?;
        let app = HttpService::bound(service.clone(), &self.options, &own_hosts(addr));
        let shutdown = self.shutdown.unwrap_or_else(|| Box::pin(std::future::pending()));
        announce(addr, &self.options);
        if let Some(ready) = self.on_ready {
            ready(addr);
        }
        let limits = service.limits().clone();
        let deadlines = Deadlines {
            header_read_ms_max: limits.header_read_ms_max,
            idle_ms_max: self.options.idle_ms_max,
            write_ms_max: self.options.write_ms_max,
        };
        let places = limits.connections_max.clamp(1, u32::MAX as usize >> 4);
        let (gate, all) = (Arc::new(Semaphore::new(places)), Arc::new(Connections::new(deadlines)));
        let _end = End { app: app.clone(), all: all.clone() };
        accept(listener, shutdown, &app, &gate, &all).await;
        tracing::debug!("no new connections; waiting for running requests");
        service.close();
        app.end_listening();
        all.set_phase(Phase::Draining);
        let everyone = gate.acquire_many(places as u32);
        let _ = tokio::time::timeout(Duration::from_millis(limits.drain_ms_max), everyone).await;
        Ok(())
    }
}

/// Ends what is still there, also when serving is given up by dropping it.
struct End {
    app: HttpService,
    all: Arc<Connections>,
}

impl Drop for End {
    fn drop(&mut self) {
        self.all.set_phase(Phase::Over);
        self.app.close_sessions();
    }
}

/// Accepts connections until `shutdown`.
async fn accept(
    listener: TcpListener,
    shutdown: BoxFuture<'static, ()>,
    app: &HttpService,
    gate: &Arc<Semaphore>,
    all: &Arc<Connections>,
) {
    let mut shutdown = pin!(shutdown);
    let mut looks = tokio::time::interval(all.tick());
    looks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    looks.reset();
    let mut next = pin!(connection(&listener, gate));
    loop {
        tokio::select! {
            biased;
            () = &mut shutdown => return,
            _ = looks.tick() => all.look(),
            (tcp, place) = &mut next => {
                next.set(connection(&listener, gate));
                let (app, limits, all) = (app.clone(), app.limits().clone(), all.clone());
                tokio::spawn(async move {
                    connection::serve(tcp, app, limits, all).await;
                    drop(place);
                });
            }
        }
    }
}

/// The next connection that there is a place for.
async fn connection(listener: &TcpListener, gate: &Arc<Semaphore>) -> (TcpStream, OwnedSemaphorePermit) {
    loop {
        let Ok(place) = gate.clone().acquire_owned().await else { std::future::pending().await };
        match listener.accept().await {
            Ok((tcp, _)) => {
                // Answers are written whole, so waiting for more to send only costs time.
                let _ = tcp.set_nodelay(true);
                return (tcp, place);
            }
            Err(error) => {
                tracing::debug!(%error, "could not accept a connection");
                // Out of file descriptors, say: without a pause this would spin until some are free.
                let transient =
                    [io::ErrorKind::ConnectionAborted, io::ErrorKind::ConnectionReset].contains(&error.kind());
                tokio::time::sleep(Duration::from_millis(if transient { 0 } else { 100 })).await;
            }
        }
    }
}

/// Says where it listens, and that nobody else will get in where that was hardly meant.
fn announce(addr: SocketAddr, options: &HttpOptions) {
    tracing::info!("listening on http://{addr}{}", options.path.as_deref().unwrap_or_default());
    if addr.ip().is_unspecified() && options.allowed_hosts.is_none() && !options.any_host {
        tracing::warn!(
            "{addr} is reachable from other machines, but only a Host of localhost, 127.0.0.1 or [::1] is allowed; \
             allow the name that clients use with .allow_host(..), or --accept-host of `linchpin serve`"
        );
    }
}

/// The name under which the bound address is reached, when it is one address.
fn own_hosts(addr: SocketAddr) -> Vec<String> {
    match addr {
        _ if addr.ip().is_unspecified() => Vec::new(),
        SocketAddr::V4(addr) => vec![addr.ip().to_string()],
        SocketAddr::V6(addr) => vec![format!("[{}]", addr.ip())],
    }
}

fn unusable(addr: &str, error: io::Error) -> io::Error {
    let hint = match error.kind() {
        io::ErrorKind::AddrInUse => "; another program listens there: stop it or take another port",
        io::ErrorKind::PermissionDenied => "; ports below 1024 need privileges: take a higher one",
        io::ErrorKind::InvalidInput => "; write it as host:port",
        _ => "",
    };
    io::Error::new(error.kind(), format!("cannot listen on {addr}: {error}{hint}"))
}
