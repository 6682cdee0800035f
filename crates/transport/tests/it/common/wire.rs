//! A client that writes and reads HTTP/1.1 byte by byte, and the server it talks to.

use super::Fake;
use linchpin_core::Service;
use linchpin_core::service::Bind;
use linchpin_transport::http::{Http, HttpOptions, http};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// How long a test waits for something that must come; only a failing test waits that long.
const PATIENCE: Duration = Duration::from_secs(20);

pub struct Server {
    pub addr: SocketAddr,
    pub fake: Arc<Fake>,
    stop: Option<tokio::sync::oneshot::Sender<()>>,
    ended: tokio::task::JoinHandle<std::io::Result<()>>,
}

impl Server {
    pub async fn start(fake: Arc<Fake>) -> Server {
        Server::start_with(fake, |http| http).await
    }

    pub async fn start_with(fake: Arc<Fake>, setup: impl FnOnce(Http) -> Http) -> Server {
        let (ready, addr) = tokio::sync::oneshot::channel();
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let http = setup(http("127.0.0.1:0")).on_ready(move |addr| ready.send(addr).unwrap()).with_graceful_shutdown(
            async move {
                let _ = stopped.await;
            },
        );
        let ended = tokio::spawn(http.serve(fake.clone() as Arc<dyn Service>));
        Server { addr: addr.await.unwrap(), fake, stop: Some(stop), ended }
    }

    pub fn options(change: impl FnOnce(&mut HttpOptions)) -> impl FnOnce(Http) -> Http {
        move |http| http.options(change)
    }

    pub async fn stop(mut self) {
        self.begin_stop();
        tokio::time::timeout(PATIENCE, self.ended).await.expect("the server ends").unwrap().unwrap();
    }

    /// Drops the serving future.
    pub fn abort(self) {
        self.ended.abort();
    }

    pub fn begin_stop(&mut self) {
        let _ = self.stop.take().map(|s| s.send(()));
    }

    pub async fn connect(&self) -> Conn {
        Conn { tcp: TcpStream::connect(self.addr).await.unwrap(), buf: Vec::new(), chunked: false, sse: String::new() }
    }

    /// One request on a connection of its own.
    pub async fn ask(&self, request: &str) -> Response {
        let mut conn = self.connect().await;
        conn.send(request).await;
        conn.response().await
    }

    /// Opens a session of this revision; its id.
    pub async fn session(&self, revision: &str) -> String {
        let r = self.ask(&post(&[], &initialize(revision))).await;
        assert_eq!(r.status, 200, "{r:?}");
        r.header("mcp-session-id").expect("an id").to_owned()
    }
}

/// The answer to one request.
#[derive(Debug)]
pub struct Response {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: String,
}

impl Response {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str())
    }
}

pub struct Conn {
    tcp: TcpStream,
    buf: Vec<u8>,
    chunked: bool,
    sse: String,
}

impl Conn {
    pub async fn send(&mut self, bytes: &str) {
        self.send_bytes(bytes.as_bytes()).await;
    }

    pub async fn send_bytes(&mut self, bytes: &[u8]) {
        self.tcp.write_all(bytes).await.unwrap();
    }

    /// Reads more; `false` at the end of the connection.
    async fn fill(&mut self) -> bool {
        let read = tokio::time::timeout(PATIENCE, self.tcp.read_buf(&mut self.buf)).await;
        matches!(read.expect("the server says something"), Ok(n) if n > 0)
    }

    async fn line(&mut self) -> String {
        loop {
            if let Some(at) = self.buf.windows(2).position(|w| w == b"\r\n") {
                let line = String::from_utf8(self.buf[..at].to_vec()).unwrap();
                self.buf.drain(..at + 2);
                return line;
            }
            assert!(self.fill().await, "the connection ended in the middle: {:?}", String::from_utf8_lossy(&self.buf));
        }
    }

    async fn exactly(&mut self, n: usize) -> String {
        while self.buf.len() < n {
            assert!(self.fill().await, "the connection ended in the middle of a body");
        }
        String::from_utf8(self.buf.drain(..n).collect()).unwrap()
    }

    /// Reads a status and headers; the body is left.
    pub async fn head(&mut self) -> Response {
        let status = self.line().await;
        let status = status.split(' ').nth(1).unwrap_or_else(|| panic!("no status in {status:?}")).parse().unwrap();
        let mut headers = Vec::new();
        loop {
            let line = self.line().await;
            let Some((name, value)) = line.split_once(':') else { break };
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        let r = Response { status, headers, body: String::new() };
        self.chunked = r.header("transfer-encoding").is_some();
        self.sse.clear();
        r
    }

    async fn chunk(&mut self) -> Option<String> {
        let size = usize::from_str_radix(&self.line().await, 16).unwrap();
        let chunk = self.exactly(size).await;
        assert_eq!(self.line().await, "");
        if size == 0 { None } else { Some(chunk) }
    }

    /// Reads a whole response.
    pub async fn response(&mut self) -> Response {
        let mut r = self.head().await;
        if self.chunked {
            while let Some(chunk) = self.chunk().await {
                r.body.push_str(&chunk);
            }
        } else {
            let length = r.header("content-length").map_or(0, |n| n.parse().unwrap());
            r.body = self.exactly(length).await;
        }
        r
    }

    /// Reads the next event or comment of a stream, without its blank line; `None` at the stream's end.
    pub async fn event(&mut self) -> Option<String> {
        loop {
            if let Some((event, rest)) = self.sse.split_once("\n\n") {
                let (event, rest) = (event.to_owned(), rest.to_owned());
                self.sse = rest;
                return Some(event);
            }
            match self.chunk().await {
                Some(chunk) => self.sse.push_str(&chunk),
                None => return None,
            }
        }
    }

    /// Whether a response in chunks comes to its end, rather than the connection before it.
    pub async fn ends_well(&mut self) -> bool {
        while self.fill().await {}
        self.buf.ends_with(b"\r\n0\r\n\r\n")
    }

    /// Whether the server closes the connection without saying anything more.
    pub async fn is_closed(&mut self) -> bool {
        self.buf.is_empty() && !self.fill().await
    }
}

pub const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;

pub fn initialize(revision: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":0,"method":"initialize","params":{{"protocolVersion":"{revision}","capabilities":{{}},"clientInfo":{{"name":"c","version":"1"}}}}}}"#
    )
}

/// A call inside a session.
pub fn call(id: &str, tool: &str, words: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}","arguments":{{"do":"{words}"}}}}}}"#
    )
}

/// A POST with the usual headers, then `headers`, then `body`. A header given without a value is left out.
pub fn post(headers: &[(&str, &str)], body: &str) -> String {
    post_to("/mcp", headers, body)
}

pub fn post_to(path: &str, headers: &[(&str, &str)], body: &str) -> String {
    let usual = [
        ("host", "localhost"),
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
    ];
    let length = body.len().to_string();
    request("POST", path, &[&usual[..], &[("content-length", length.as_str())]].concat(), headers) + body
}

/// A request without a body.
pub fn bare(method: &str, path: &str, headers: &[(&str, &str)]) -> String {
    request(method, path, &[("host", "localhost")], headers)
}

fn request(method: &str, path: &str, usual: &[(&str, &str)], headers: &[(&str, &str)]) -> String {
    let mut out = format!("{method} {path} HTTP/1.1\r\n");
    let replaced = |name: &str| headers.iter().any(|(n, _)| n.eq_ignore_ascii_case(name));
    for (name, value) in usual.iter().filter(|(n, _)| !replaced(n)).chain(headers) {
        if !value.is_empty() {
            out += &format!("{name}: {value}\r\n");
        }
    }
    out + "\r\n"
}

/// A call that is stateless, with its headers.
pub fn alone(id: &str, tool: &str, words: &str) -> String {
    alone_with(id, tool, words, &[])
}

pub fn alone_with(id: &str, tool: &str, words: &str, headers: &[(&str, &str)]) -> String {
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}","arguments":{{"do":"{words}"}},{META}}}}}"#
    );
    let usual = [("mcp-protocol-version", "2026-07-28"), ("mcp-method", "tools/call"), ("mcp-name", tool)];
    post(&[&usual[..], headers].concat(), &body)
}
