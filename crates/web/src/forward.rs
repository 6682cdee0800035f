//! A forward proxy that connects to checked addresses only: for a program that makes its requests by itself, such as a browser.

use crate::{Web, WebError};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::header::{HOST, HeaderMap, HeaderName, HeaderValue, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION};
use http::{Method, Request, Response, StatusCode, Uri};
use http_body::{Body, Frame, SizeHint};
use http_body_util::Empty;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use std::io;
use std::net::Ipv4Addr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::timeout;

/// Connections of clients at once; browsers open six to a host, and more for tunnels.
const CONNECTIONS_MAX: usize = 512;
/// How long connecting to one address may take.
const CONNECT_TIME: Duration = Duration::from_secs(10);
/// Most bytes of one response, and of one direction of a tunnel.
const RESPONSE_BYTES_MAX: u64 = 512 << 20;
const TUNNEL_BYTES_MAX: u64 = 2 << 30;
const USER: &str = "linchpin";

/// A forward proxy (HTTP, and `CONNECT` for everything else) on a loopback address, which only serves clients with its
/// credential. It resolves names itself, and connects only to addresses that the rules of a [`Web`] allow; it connects to
/// the address that was checked. If a request is refused, its connection is closed.
///
/// It has its own limits: 512 concurrent connections, 512 MiB for a response, 2 GiB for each direction of a tunnel. Dropping
/// it closes all connections.
///
/// ```
/// use linchpin_web::{ForwardProxy, Reach, Web, WebOptions};
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let web = Web::new(WebOptions::default().with(|options| options.reach = Reach::Public));
/// let proxy = ForwardProxy::start(web, |url, why| eprintln!("{url}: {why}")).await?;
/// let (user, password) = proxy.credential();
/// println!("--proxy-server={}, {user} with {} characters", proxy.address(), password.len());
/// # Ok::<(), std::io::Error>(()) }).unwrap();
/// ```
pub struct ForwardProxy {
    port: u16,
    password: String,
    _task: JoinSet<()>,
}

/// Is told which URL was not connected to, and why.
type Refused = Box<dyn Fn(&str, &WebError) + Send + Sync>;

/// What every connection needs.
struct Shared {
    web: Web,
    refused: Refused,
    /// The value of the header that proves who asks.
    expected: HeaderValue,
}

impl ForwardProxy {
    /// Starts a proxy on a free port, with the rules of this client. `refused` is called with each URL that is refused
    /// or whose host cannot be resolved, and the reason; for `CONNECT`, the URL is `https://host:port/`. Must be called
    /// within a tokio runtime.
    ///
    /// # Errors
    /// If there is no loopback interface, or the random number generator fails.
    pub async fn start(
        web: Web,
        refused: impl Fn(&str, &WebError) + Send + Sync + 'static,
    ) -> io::Result<ForwardProxy> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let port = listener.local_addr()?.port();
        let mut bytes = [0_u8; 24];
        getrandom::fill(&mut bytes).map_err(|e| io::Error::other(e.to_string()))?;
        let password: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let credential = format!("Basic {}", STANDARD.encode(format!("{USER}:{password}")));
        let expected = HeaderValue::try_from(credential).map_err(io::Error::other)?;
        let mut task = JoinSet::new();
        task.spawn(accept(listener, Arc::new(Shared { web, refused: Box::new(refused), expected })));
        Ok(ForwardProxy { port, password, _task: task })
    }

    /// Returns its address as a URL: `http://127.0.0.1:4321`.
    pub fn address(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Returns the user name and password that clients must send (`Basic`).
    pub fn credential(&self) -> (&'static str, &str) {
        (USER, &self.password)
    }
}

impl std::fmt::Debug for ForwardProxy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ForwardProxy").field("port", &self.port).finish_non_exhaustive()
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    // Dropped with this task, and with them what they do.
    let mut connections = JoinSet::new();
    loop {
        let Ok(place) = places.clone().acquire_owned().await else { return };
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            // No descriptors are left, for example.
            Err(_) => {
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        while connections.try_join_next().is_some() {}
        let shared = shared.clone();
        connections.spawn(async move {
            let _place = place;
            serve(stream, shared).await;
        });
    }
}

/// Serves one connection of a client: requests one after the other, or one tunnel.
async fn serve(stream: TcpStream, shared: Arc<Shared>) {
    let _ = stream.set_nodelay(true);
    // A tunnel is handed out of the service and served here, so that it ends with this task.
    let (tunnels, mut opened) = tokio::sync::mpsc::channel(1);
    let service = service_fn(move |request| {
        let (shared, tunnels) = (shared.clone(), tunnels.clone());
        async move { answer(request, &shared, &tunnels).await }
    });
    let connection = hyper::server::conn::http1::Builder::new()
        .preserve_header_case(true)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    let _ = connection.await;
    if let Some((upgrade, upstream)) = opened.recv().await {
        tunnel(upgrade, upstream).await;
    }
}

type Opened = (hyper::upgrade::OnUpgrade, TcpStream);

/// Refusing a request breaks the connection, so that no page of ours stands in for the one that was asked for.
async fn answer(
    mut request: Request<Incoming>,
    shared: &Shared,
    tunnels: &tokio::sync::mpsc::Sender<Opened>,
) -> io::Result<Response<Relayed>> {
    if request.headers().get(PROXY_AUTHORIZATION) != Some(&shared.expected) {
        let mut response = Response::new(Relayed::Nothing);
        *response.status_mut() = StatusCode::PROXY_AUTHENTICATION_REQUIRED;
        let ask = HeaderValue::from_static("Basic realm=\"linchpin\"");
        response.headers_mut().insert(PROXY_AUTHENTICATE, ask);
        return Ok(response);
    }
    if request.method() == Method::CONNECT {
        let Some(authority) = request.uri().authority() else { return Err(io::ErrorKind::InvalidInput.into()) };
        // The port is always written; the scheme is not known, and only its usual port would matter.
        let url = format!("https://{authority}/");
        let upstream = connect(shared, &url).await?;
        let upgrade = hyper::upgrade::on(&mut request);
        tunnels.try_send((upgrade, upstream)).map_err(io::Error::other)?;
        return Ok(Response::new(Relayed::Nothing));
    }
    if request.uri().scheme_str() != Some("http") {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let upstream = connect(shared, &request.uri().to_string()).await?;
    relay(request, upstream).await
}

/// Connects to the first checked address that answers.
async fn connect(shared: &Shared, url: &str) -> io::Result<TcpStream> {
    let addresses = shared.web.addresses(url).await.inspect_err(|e| (shared.refused)(url, e))?;
    let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
    for address in addresses {
        match timeout(CONNECT_TIME, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => {
                let _ = stream.set_nodelay(true);
                return Ok(stream);
            }
            Ok(Err(e)) => last = e,
            Err(_) => last = io::ErrorKind::TimedOut.into(),
        }
    }
    Err(last)
}

/// Passes one request on, over a connection of its own.
async fn relay(request: Request<Incoming>, upstream: TcpStream) -> io::Result<Response<Relayed>> {
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(upstream)).await.map_err(io::Error::other)?;
    let mut driver = JoinSet::new();
    driver.spawn(async move { drop(connection.await) });
    let (mut parts, body) = request.into_parts();
    let host = parts.uri.authority().map(|authority| authority.as_str()).unwrap_or_default();
    let host = host.rsplit('@').next().and_then(|host| HeaderValue::from_str(host).ok());
    let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
    parts.uri = Uri::try_from(path).map_err(io::Error::other)?;
    only_end_to_end(&mut parts.headers);
    if let Some(host) = host {
        parts.headers.insert(HOST, host);
    }
    let response = sender.send_request(Request::from_parts(parts, body)).await.map_err(io::Error::other)?;
    let (mut parts, body) = response.into_parts();
    only_end_to_end(&mut parts.headers);
    Ok(Response::from_parts(parts, Relayed::Body { body, left: RESPONSE_BYTES_MAX, _driver: driver }))
}

/// Removes what is said between two ends of one connection.
fn only_end_to_end(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(http::header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    let usual = ["connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection", "te"];
    let usual = usual.into_iter().chain(["trailer", "transfer-encoding", "upgrade"]).map(HeaderName::from_static);
    for name in named.into_iter().chain(usual) {
        headers.remove(name);
    }
}

/// Passes bytes both ways until one side ends.
async fn tunnel(upgrade: hyper::upgrade::OnUpgrade, upstream: TcpStream) {
    let Ok(upgraded) = upgrade.await else { return };
    let (from_client, mut to_client) = tokio::io::split(TokioIo::new(upgraded));
    let (from_site, mut to_site) = upstream.into_split();
    let mut up = from_client.take(TUNNEL_BYTES_MAX);
    let mut down = from_site.take(TUNNEL_BYTES_MAX);
    let up = async {
        let _ = tokio::io::copy(&mut up, &mut to_site).await;
        let _ = to_site.shutdown().await;
    };
    let down = async {
        let _ = tokio::io::copy(&mut down, &mut to_client).await;
        let _ = to_client.shutdown().await;
    };
    tokio::join!(up, down);
}

/// The body of a response: nothing, or that of the site, cut off where it is too long.
enum Relayed {
    Nothing,
    Body { body: Incoming, left: u64, _driver: JoinSet<()> },
}

impl Body for Relayed {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        match self.get_mut() {
            Relayed::Nothing => Pin::new(&mut Empty::<Bytes>::new()).poll_frame(cx).map_err(|never| match never {}),
            Relayed::Body { body, left, .. } => Pin::new(body).poll_frame(cx).map(|frame| {
                let frame = frame?.map_err(io::Error::other);
                let bytes = frame.as_ref().ok().and_then(Frame::data_ref).map_or(0, Bytes::len) as u64;
                match left.checked_sub(bytes) {
                    Some(rest) => *left = rest,
                    None => return Some(Err(io::Error::other("the response is too long"))),
                }
                Some(frame)
            }),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Relayed::Nothing => true,
            Relayed::Body { body, .. } => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Relayed::Nothing => SizeHint::with_exact(0),
            Relayed::Body { body, .. } => body.size_hint(),
        }
    }
}
