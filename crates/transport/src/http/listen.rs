//! The HTTP listener: the accept loop and graceful shutdown.

use super::body::BoxError;
use super::connection::{self, App, Connections, Deadlines, Phase};
use super::layered::{LayeredService, RequestBody};
use super::options::HttpOptions;
use super::service::HttpService;
#[cfg(feature = "tls")]
use super::tls::RELOAD_INTERVAL;
use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use linchpin_core::Limits;
use linchpin_core::gate::Gate;
use linchpin_core::service::{Bind, BoxFuture};
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tower_layer::Layer;
use tower_service::Service;

/// Serves Streamable HTTP at `addr`, for example `"127.0.0.1:8931"`; port 0 selects a free port.
///
/// HTTP/1.1 and HTTP/2 (with prior knowledge) are detected by a connection's first bytes. The server runs until the signal of
/// [`Http::with_graceful_shutdown`] completes or its future is dropped. No signals are handled: SIGTERM and SIGINT
/// end the process immediately, unless a shutdown signal is set:
///
/// ```no_run
/// use linchpin_transport::{http::http, shutdown_signal};
///
/// let transport = http("127.0.0.1:8931").with_graceful_shutdown(shutdown_signal());
/// ```
///
/// By default only local clients are accepted, as determined by `Host` and `Origin`. Allow others with
/// [`Http::allow_host`] and [`Http::allow_origin`].
#[doc(alias = "StreamableHttp")]
#[doc(alias = "serve_http")]
pub fn http(addr: impl Into<Address>) -> Http {
    Http {
        addr: addr.into(),
        options: HttpOptions::default(),
        #[cfg(feature = "tls")]
        tls: None,
        on_ready: None,
        layers: Vec::new(),
        shutdown: None,
    }
}

/// The address to listen on: text (host names are resolved), a socket address, or a bound listener.
///
/// ```
/// use linchpin_transport::http::http;
///
/// # fn main() -> std::io::Result<()> {
/// let named = http("localhost:8931");
/// // A listener that is bound already: its port is known before the server starts.
/// let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
/// println!("http://{}/mcp", listener.local_addr()?);
/// let bound = http(listener);
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Address(ListenAddr);

#[derive(Debug)]
enum ListenAddr {
    Name(String),
    Socket(SocketAddr),
    Listener(std::net::TcpListener),
}

impl From<&str> for Address {
    fn from(addr: &str) -> Address {
        Address(ListenAddr::Name(addr.to_owned()))
    }
}

impl From<String> for Address {
    fn from(addr: String) -> Address {
        Address(ListenAddr::Name(addr))
    }
}

impl From<SocketAddr> for Address {
    fn from(addr: SocketAddr) -> Address {
        Address(ListenAddr::Socket(addr))
    }
}

impl From<std::net::TcpListener> for Address {
    fn from(listener: std::net::TcpListener) -> Address {
        Address(ListenAddr::Listener(listener))
    }
}

/// The HTTP transport of a server, created by [`http()`].
///
/// ```
/// use linchpin_transport::http::http;
///
/// let transport = http("0.0.0.0:8931")
///     .path("/tools")
///     .allow_host("mcp.example")
///     .allow_origin("https://app.example")
///     .on_ready(|addr| eprintln!("listening on {addr}"));
/// ```
pub struct Http {
    addr: Address,
    options: HttpOptions,
    #[cfg(feature = "tls")]
    tls: Option<super::tls::Tls>,
    on_ready: Option<Box<dyn FnOnce(SocketAddr) + Send>>,
    layers: Vec<Wrap>,
    shutdown: Option<BoxFuture<'static, ()>>,
}

/// Adds one layer.
type Wrap = Box<dyn FnOnce(LayeredService) -> LayeredService + Send>;

impl Http {
    /// Sets the endpoint's path. Default `/mcp`.
    pub fn path(mut self, path: impl Into<String>) -> Http {
        self.options.path = Some(path.into());
        self
    }

    /// Also accepts this `Host`, with a port (`mcp.example:8443`) or for any port (`mcp.example`).
    ///
    /// The loopback names and the bound address are always allowed.
    pub fn allow_host(mut self, host: impl Into<String>) -> Http {
        let loopback = || ["localhost", "127.0.0.1", "[::1]"].map(String::from).to_vec();
        self.options.allowed_hosts.get_or_insert_with(loopback).push(host.into());
        self
    }

    /// Accepts any `Host`.
    ///
    /// Use this only behind a proxy that checks the header: otherwise any web page can reach the server through DNS
    /// rebinding.
    pub fn allow_any_host(mut self) -> Http {
        self.options.any_host = true;
        self
    }

    /// Accepts requests from pages of this origin, for example `https://app.example`, and sends them CORS headers.
    ///
    /// The first call replaces the default rule (pages of the same host, and loopback pages); name those origins too if
    /// you still need them.
    pub fn allow_origin(mut self, origin: impl Into<String>) -> Http {
        self.options.allowed_origins.get_or_insert_default().push(origin.into());
        self
    }

    /// Sets the gate that authorizes requests: a `Guard`, an `Issuer`, or one of your own, for which you need the crate
    /// `http` (`cargo add http`).
    ///
    /// ```
    /// use linchpin_core::Principal;
    /// use linchpin_core::gate::{Admit, Gate, Refusal};
    /// # use linchpin_transport::http::http;
    /// use http::{header::AUTHORIZATION, request};
    /// use std::net::SocketAddr;
    ///
    /// struct Password;
    ///
    /// impl Gate for Password {
    ///     fn admit(&self, head: &request::Parts, _: Option<SocketAddr>) -> Admit {
    ///         match head.headers.get(AUTHORIZATION) {
    ///             Some(value) if value == "Bearer swordfish" => Admit::Yes(Principal::new("somebody")),
    ///             _ => Admit::No(Refusal::unauthorized("send the password as a bearer token")),
    ///         }
    ///     }
    /// }
    ///
    /// let transport = http("127.0.0.1:8931").guard(Password);
    /// ```
    #[doc(alias = "auth")]
    #[doc(alias = "gate")]
    pub fn guard(mut self, gate: impl Gate) -> Http {
        self.options.gate = Some(Arc::new(gate));
        self
    }

    /// Also serves the HTTP+SSE transport of revision 2024-11-05, at `/sse` and `/message`.
    #[cfg(feature = "sse")]
    pub fn with_sse(mut self) -> Http {
        self.options.sse_2024 = true;
        self
    }

    /// Serves only HTTPS with this certificate, over HTTP/2 and HTTP/1.1.
    ///
    /// A handshake must complete within `connections.header_read_ms_max`.
    ///
    /// ```no_run
    /// use linchpin_transport::http::{Tls, http};
    ///
    /// # fn example() -> Result<(), linchpin_transport::http::TlsError> {
    /// let transport = http("0.0.0.0:8443").allow_host("mcp.example").tls(Tls::from_files("cert.pem", "key.pem")?);
    /// # Ok(()) }
    /// ```
    #[cfg(feature = "tls")]
    pub fn tls(mut self, tls: super::tls::Tls) -> Http {
        self.tls = Some(tls);
        self
    }

    /// Wraps the HTTP service in a tower layer, for example for authentication, compression or CORS; the last layer added
    /// runs first.
    ///
    /// A layer receives requests on every path, before any check, even of `Host` and `Origin`. It may change them,
    /// respond itself, and change responses and their bodies; `cx.get()` returns the values that it inserts into a
    /// request's extensions. If it fails, the response has status 500. `tower::ServiceBuilder` combines several layers
    /// into one.
    ///
    /// ```
    /// use http::Request;
    /// use linchpin_transport::http::{LayeredService, RequestBody, http};
    /// use std::task::{Context, Poll};
    /// use tower_layer::layer_fn;
    /// use tower_service::Service;
    ///
    /// /// Tells handlers which tenant a request is for.
    /// #[derive(Clone)]
    /// struct Tenant(String);
    ///
    /// #[derive(Clone)]
    /// struct WithTenant(LayeredService);
    ///
    /// impl Service<Request<RequestBody>> for WithTenant {
    ///     type Response = <LayeredService as Service<Request<RequestBody>>>::Response;
    ///     type Error = <LayeredService as Service<Request<RequestBody>>>::Error;
    ///     type Future = <LayeredService as Service<Request<RequestBody>>>::Future;
    ///
    ///     fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
    ///         Poll::Ready(Ok(()))
    ///     }
    ///
    ///     fn call(&mut self, mut request: Request<RequestBody>) -> Self::Future {
    ///         let tenant = request.headers().get("x-tenant").and_then(|value| value.to_str().ok());
    ///         let tenant = Tenant(tenant.unwrap_or("public").to_owned());
    ///         request.extensions_mut().insert(tenant);
    ///         self.0.call(request)
    ///     }
    /// }
    ///
    /// let transport = http("127.0.0.1:8931").layer(layer_fn(WithTenant));
    /// ```
    #[doc(alias = "tower")]
    #[doc(alias = "middleware")]
    pub fn layer<L, B>(mut self, layer: L) -> Http
    where
        L: Layer<LayeredService> + Send + 'static,
        L::Service: Service<Request<RequestBody>, Response = Response<B>> + Clone + Send + Sync + 'static,
        <L::Service as Service<Request<RequestBody>>>::Error: Into<BoxError>,
        <L::Service as Service<Request<RequestBody>>>::Future: Send,
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        self.layers.push(Box::new(move |inner| LayeredService::erase(layer.layer(inner))));
        self
    }

    /// Responds to probes: to `GET /healthz` with 200, and to `GET /readyz` with 200 or, once the shutdown has begun, with 503.
    ///
    /// After the shutdown signal new connections are refused at once, unless
    /// [`shutdown_delay_ms`](HttpOptions::shutdown_delay_ms) is set.
    ///
    /// ```
    /// use linchpin_transport::{http::http, shutdown_signal};
    ///
    /// let transport = http("0.0.0.0:8931")
    ///     .health()
    ///     .options(|options| options.shutdown_delay_ms = 5_000)
    ///     .with_graceful_shutdown(shutdown_signal());
    /// ```
    #[doc(alias = "liveness")]
    #[doc(alias = "readiness")]
    pub fn health(mut self) -> Http {
        self.options.health = true;
        self
    }

    /// Serves the text that `render` returns, in the format of Prometheus, at `GET /metrics`.
    ///
    /// ```
    /// use linchpin_transport::http::http;
    ///
    /// let transport = http("127.0.0.1:8931").metrics(|| "up 1\n".to_owned());
    /// ```
    #[doc(alias = "prometheus")]
    pub fn metrics(mut self, render: impl Fn() -> String + Send + Sync + 'static) -> Http {
        self.options.metrics = Some(Arc::new(render));
        self
    }

    /// Changes options. Each has a default; see [`HttpOptions`].
    ///
    /// ```
    /// # use linchpin_transport::http::http;
    /// let transport = http("127.0.0.1:8931").options(|options| options.retry_ms = 5_000);
    /// ```
    pub fn options(mut self, change: impl FnOnce(&mut HttpOptions)) -> Http {
        change(&mut self.options);
        self
    }

    /// Calls `ready` with the bound address once connections are accepted, in place of the log message `listening on URL`.
    pub fn on_ready(mut self, ready: impl FnOnce(SocketAddr) + Send + 'static) -> Http {
        self.on_ready = Some(Box::new(ready));
        self
    }

    /// Stops when `signal` completes: no new connections are accepted, and running requests may finish within
    /// `calls.drain_ms_max`.
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
    /// Listens and serves until shutdown. Returns an error if the address cannot be bound, if the gate is
    /// misconfigured, or if the server requires scopes and there is no gate.
    fn serve(self, service: Arc<dyn linchpin_core::Service>) -> BoxFuture<'static, io::Result<()>> {
        Box::pin(self.run(service))
    }
}

impl Http {
    async fn run(self, service: Arc<dyn linchpin_core::Service>) -> io::Result<()> {
        if self.options.gate.is_none() && service.demands_scopes() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, NO_GATE));
        }
        if let Some(gate) = &self.options.gate {
            gate.check().map_err(|why| io::Error::new(io::ErrorKind::InvalidInput, why))?;
        }
        let listener = match self.addr.0 {
            ListenAddr::Name(name) => TcpListener::bind(&name).await.map_err(|e| unusable(&name, e))?,
            ListenAddr::Socket(addr) => TcpListener::bind(addr).await.map_err(|e| unusable(&addr.to_string(), e))?,
            ListenAddr::Listener(listener) => {
                listener.set_nonblocking(true)?;
                TcpListener::from_std(listener)?
            }
        };
        let addr = listener.local_addr()?;
        let app = HttpService::bound(service.clone(), &self.options, &own_hosts(addr));
        #[cfg(feature = "tls")]
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        #[cfg(not(feature = "tls"))]
        let scheme = "http";
        let front = match self.layers.is_empty() {
            true => App::Bare(app.clone()),
            false => {
                let bare = LayeredService::new(app.clone());
                App::Layered(self.layers.into_iter().fold(bare, |inner, wrap| wrap(inner)))
            }
        };
        let signal = self.shutdown.unwrap_or_else(|| Box::pin(std::future::pending()));
        let (ending, delay) = (app.clone(), Duration::from_millis(self.options.shutdown_delay_ms));
        let shutdown = Box::pin(async move {
            signal.await;
            ending.announce_shutdown();
            tokio::time::sleep(delay).await;
        });
        match self.on_ready {
            Some(ready) => ready(addr),
            None => announce(addr, scheme, &self.options),
        }
        warn_of_hosts(addr, &self.options);
        let limits = service.limits().clone();
        let deadlines = Deadlines {
            header_read_ms_max: limits.connections.header_read_ms_max,
            idle_ms_max: self.options.idle_ms_max,
            write_ms_max: self.options.write_ms_max,
        };
        let places = limits.connections.concurrent_max.clamp(1, u32::MAX as usize >> 4);
        let slots = Arc::new(Semaphore::new(places));
        #[cfg_attr(not(feature = "tls"), expect(unused_mut, reason = "only TLS changes it"))]
        let mut all = Connections::new(deadlines);
        #[cfg(feature = "tls")]
        {
            all.tls = self.tls;
        }
        let all = Arc::new(all);
        let _end = End { app: app.clone(), all: all.clone() };
        accept(listener, shutdown, &front, limits.clone(), &slots, &all).await;
        tracing::debug!("no new connections; waiting for running requests");
        service.close();
        app.end_listening();
        all.set_phase(Phase::Draining);
        let everyone = slots.acquire_many(places as u32);
        let _ = tokio::time::timeout(Duration::from_millis(limits.calls.drain_ms_max), everyone).await;
        Ok(())
    }
}

const NO_GATE: &str =
    "this server requires scopes, but nothing authenticates its clients: add a gate, `http(…).guard(…)`";

/// Ends remaining connections and sessions, also when the serving future is dropped.
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
    app: &App,
    limits: Arc<Limits>,
    slots: &Arc<Semaphore>,
    all: &Arc<Connections>,
) {
    let mut shutdown = pin!(shutdown);
    let mut looks = tokio::time::interval(all.tick());
    looks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    looks.reset();
    let mut reloads = pin!(reload(all));
    let mut next = pin!(connection(&listener, slots));
    loop {
        tokio::select! {
            biased;
            () = &mut shutdown => return,
            _ = looks.tick() => all.look(),
            () = &mut reloads => {}
            (tcp, place) = &mut next => {
                next.set(connection(&listener, slots));
                let (app, limits, all) = (app.clone(), limits.clone(), all.clone());
                tokio::spawn(async move {
                    connection::serve(tcp, app, limits, all).await;
                    drop(place);
                });
            }
        }
    }
}

/// Keeps the certificate up to date, forever.
async fn reload(all: &Connections) {
    #[cfg(feature = "tls")]
    if let Some(tls) = all.tls.as_ref().filter(|tls| tls.has_files()) {
        loop {
            tokio::time::sleep(RELOAD_INTERVAL).await;
            let tls = tls.clone();
            // Files may be on a slow disk.
            let _ = tokio::task::spawn_blocking(move || tls.look()).await;
        }
    }
    let _ = all;
    std::future::pending().await
}

/// Accepts the next connection once there is a free slot.
async fn connection(listener: &TcpListener, slots: &Arc<Semaphore>) -> (TcpStream, OwnedSemaphorePermit) {
    loop {
        let Ok(place) = slots.clone().acquire_owned().await else { std::future::pending().await };
        match listener.accept().await {
            Ok((tcp, _)) => {
                // Responses are written whole, so Nagle's algorithm would only add latency.
                let _ = tcp.set_nodelay(true);
                return (tcp, place);
            }
            Err(error) => {
                tracing::debug!(%error, "could not accept a connection");
                // For example, out of file descriptors: without a pause this would spin until some are free.
                let transient =
                    [io::ErrorKind::ConnectionAborted, io::ErrorKind::ConnectionReset].contains(&error.kind());
                tokio::time::sleep(Duration::from_millis(if transient { 0 } else { 100 })).await;
            }
        }
    }
}

/// Logs the address under which this machine reaches it.
fn announce(addr: SocketAddr, scheme: &str, options: &HttpOptions) {
    let reached = match addr.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => SocketAddr::new(Ipv4Addr::LOCALHOST.into(), addr.port()),
        IpAddr::V6(ip) if ip.is_unspecified() => SocketAddr::new(Ipv6Addr::LOCALHOST.into(), addr.port()),
        _ => addr,
    };
    tracing::info!("listening on {scheme}://{reached}{}", options.endpoint().unwrap_or_default());
}

/// Logs a warning if the server is reachable but no remote host is allowed.
fn warn_of_hosts(addr: SocketAddr, options: &HttpOptions) {
    if addr.ip().is_unspecified() && options.allowed_hosts.is_none() && !options.any_host {
        tracing::warn!(
            "{addr} is reachable from other machines, but only a Host of localhost, 127.0.0.1 or [::1] is allowed; \
             allow the name that clients use with .allow_host(..), or the flag --accept-host"
        );
    }
}

/// Returns the `Host` of the bound address, unless that is unspecified.
fn own_hosts(addr: SocketAddr) -> Vec<String> {
    match addr {
        _ if addr.ip().is_unspecified() => Vec::new(),
        SocketAddr::V4(addr) => vec![addr.ip().to_string()],
        SocketAddr::V6(addr) => vec![format!("[{}]", addr.ip())],
    }
}

fn unusable(addr: &str, error: io::Error) -> io::Error {
    let hint = match error.kind() {
        io::ErrorKind::AddrInUse => {
            let why = "another program is listening there; stop it or use another port";
            return io::Error::new(error.kind(), format!("cannot listen on {addr}: {why}"));
        }
        io::ErrorKind::PermissionDenied => "; ports below 1024 require privileges: use a higher one",
        io::ErrorKind::InvalidInput => "; write it as host:port",
        _ => "",
    };
    io::Error::new(error.kind(), format!("cannot listen on {addr}: {error}{hint}"))
}
