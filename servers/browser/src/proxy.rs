//! The forward proxy that the browser must use: it connects to checked addresses only.
//!
//! It listens on a loopback address, and serves only who knows its credential, which the browser is told through its
//! pipe. So what the DevTools protocol does not announce (WebSockets, prefetches, the browser's own requests) is checked as
//! well, and the address that was checked is the one that is connected to.

use crate::egress::Egress;
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
use std::net::{Ipv4Addr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::timeout;

/// Connections of the browser at once; browsers open six to a host, and more for tunnels.
const CONNECTIONS_MAX: usize = 512;
/// How long connecting to one address may take.
const CONNECT_TIME: Duration = Duration::from_secs(10);
/// Most bytes of one response, and of one direction of a tunnel.
const RESPONSE_BYTES_MAX: u64 = 512 << 20;
const TUNNEL_BYTES_MAX: u64 = 2 << 30;
const USER: &str = "linchpin";

/// A running proxy. Dropping it ends it, and all its connections.
pub(crate) struct Proxy {
    port: u16,
    password: String,
    _task: JoinSet<()>,
}

/// What every connection needs.
struct Shared {
    egress: Arc<Egress>,
    /// The value of the header that proves who asks.
    expected: HeaderValue,
}

impl Proxy {
    /// Starts it on a free port. Must be called in a tokio runtime.
    ///
    /// # Errors
    /// When there is no loopback interface, or no random number.
    pub(crate) async fn start(egress: Arc<Egress>) -> io::Result<Proxy> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let port = listener.local_addr()?.port();
        let mut bytes = [0_u8; 24];
        getrandom::fill(&mut bytes).map_err(|e| io::Error::other(e.to_string()))?;
        let password: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let credential = format!("Basic {}", STANDARD.encode(format!("{USER}:{password}")));
        let expected = HeaderValue::try_from(credential).map_err(io::Error::other)?;
        let mut task = JoinSet::new();
        task.spawn(accept(listener, Arc::new(Shared { egress, expected })));
        Ok(Proxy { port, password, _task: task })
    }

    /// Its address, as the browser's flag has it.
    pub(crate) fn address(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// User and password.
    pub(crate) fn credential(&self) -> (&'static str, &str) {
        (USER, &self.password)
    }
}

impl std::fmt::Debug for Proxy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Proxy").field("port", &self.port).finish_non_exhaustive()
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
            Err(e) => {
                tracing::warn!(error = %e, "the proxy cannot accept a connection");
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

/// Serves one connection of the browser: requests one after the other, or one tunnel.
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
        let upstream = connect(&shared.egress, &url).await?;
        let upgrade = hyper::upgrade::on(&mut request);
        tunnels.try_send((upgrade, upstream)).map_err(io::Error::other)?;
        return Ok(Response::new(Relayed::Nothing));
    }
    if request.uri().scheme_str() != Some("http") {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let upstream = connect(&shared.egress, &request.uri().to_string()).await?;
    relay(request, upstream).await
}

/// Connects to the first checked address that answers.
async fn connect(egress: &Egress, url: &str) -> io::Result<TcpStream> {
    let addresses: Vec<SocketAddr> = egress.addresses(url).await?;
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
    let (from_browser, mut to_browser) = tokio::io::split(TokioIo::new(upgraded));
    let (from_site, mut to_site) = upstream.into_split();
    let mut up = from_browser.take(TUNNEL_BYTES_MAX);
    let mut down = from_site.take(TUNNEL_BYTES_MAX);
    let up = async {
        let _ = tokio::io::copy(&mut up, &mut to_site).await;
        let _ = to_site.shutdown().await;
    };
    let down = async {
        let _ = tokio::io::copy(&mut down, &mut to_browser).await;
        let _ = to_browser.shutdown().await;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use linchpin::testing::site::{Do, Site, answer};

    /// What the proxy answers to these bytes.
    async fn ask(proxy: &Proxy, request: &str) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", proxy.port)).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        let _ = timeout(Duration::from_millis(500), stream.read_to_end(&mut answer)).await;
        String::from_utf8_lossy(&answer).into_owned()
    }

    #[tokio::test]
    async fn only_who_knows_the_credential_gets_to_what_is_allowed() {
        let head = "connection: x-hop\r\nx-hop: 1\r\nx-end: 2\r\n";
        let site = Site::new(move |_, request| vec![Do::Write(answer(200, head, &request.target))]).await;
        let (port, other) = (site.port(), Site::saying(answer(200, "", "inside")).await);
        let config = Config::default()
            .with(|config| config.allow_private_hosts = vec![format!("127.0.0.1:{port}").parse().unwrap()]);
        let proxy = Proxy::start(Arc::new(Egress::new(&config))).await.unwrap();
        let (user, password) = proxy.credential();
        let credential = format!("Proxy-Authorization: Basic {}\r\n", STANDARD.encode(format!("{user}:{password}")));

        let host = format!("127.0.0.1:{port}");
        let got = ask(&proxy, &format!("GET http://{host}/a?b HTTP/1.1\r\nHost: x\r\n{credential}TE: x\r\n\r\n")).await;
        assert!(got.starts_with("HTTP/1.1 200") && got.ends_with("/a?b"), "{got}");
        assert!(got.contains("x-end: 2") && !got.contains("x-hop"), "{got}");
        let seen = site.requests();
        assert_eq!((seen[0].header("host"), seen[0].header("te")), (Some(&*host), None));
        assert_eq!(seen[0].header("proxy-authorization"), None);
        let tunnel =
            format!("CONNECT {host} HTTP/1.1\r\nHost: x\r\n{credential}\r\nGET /t HTTP/1.1\r\nHost: y\r\n\r\n");
        let got = ask(&proxy, &tunnel).await;
        assert!(got.starts_with("HTTP/1.1 200") && got.ends_with("/t"), "{got}");

        let inside = format!("127.0.0.1:{}", other.port());
        for (request, wanted) in [
            (format!("GET http://{host}/ HTTP/1.1\r\nHost: x\r\n\r\n"), "HTTP/1.1 407"),
            (format!("CONNECT {host} HTTP/1.1\r\nHost: x\r\nProxy-Authorization: Basic eDp5\r\n\r\n"), "HTTP/1.1 407"),
            (format!("GET http://{inside}/ HTTP/1.1\r\nHost: {host}\r\n{credential}\r\n"), ""),
            (format!("CONNECT {inside} HTTP/1.1\r\nHost: {host}\r\n{credential}\r\n"), ""),
            (format!("CONNECT 127.0.0.1:22 HTTP/1.1\r\nHost: x\r\n{credential}\r\n"), ""),
            (format!("GET ftp://{host}/ HTTP/1.1\r\nHost: x\r\n{credential}\r\n"), ""),
            (format!("GET / HTTP/1.1\r\nHost: {host}\r\n{credential}\r\n"), ""),
        ] {
            let got = ask(&proxy, &request).await;
            assert!(got.starts_with(wanted) && (!wanted.is_empty() || got.is_empty()), "{request} {got}");
        }
        assert!(other.requests().is_empty() && site.requests().len() == 2);
    }
}
