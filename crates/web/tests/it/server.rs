//! A scripted HTTP server on a raw socket. Shared with the tests of `linchpin-transport`.
#![allow(dead_code, reason = "each of the two programs needs a part of it")]

use linchpin_web::{Web, WebOptions};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// A request as it arrived.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
    /// Which connection it came on, counted from 0.
    pub(crate) connection: usize,
    pub(crate) at: Instant,
}

impl Seen {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str())
    }
}

/// What the server does next on a connection.
#[derive(Clone)]
pub(crate) enum Do {
    Write(Vec<u8>),
    /// Writes byte by byte, each in a packet of its own.
    Drip(Vec<u8>),
    /// Writes the same again and again until the peer is gone.
    Forever(Vec<u8>),
    Wait(u64),
    Close,
    /// Waits until the peer closes.
    Hold,
    /// Writes whatever is appended to a text, until the peer closes.
    Follow(watch::Receiver<String>),
}

pub(crate) struct Server {
    pub(crate) port: u16,
    pub(crate) seen: Arc<Mutex<Vec<Seen>>>,
    /// Connections that a peer closed while the server held them or wrote to them.
    pub(crate) left: watch::Receiver<usize>,
    /// When the server last closed a connection by itself.
    pub(crate) closed_at: Arc<Mutex<Option<Instant>>>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Server {
    /// A server whose answer depends on how many requests came before and on the request.
    pub(crate) async fn new(script: impl Fn(usize, &Seen) -> Vec<Do> + Send + Sync + 'static) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let closed_at = Arc::new(Mutex::new(None));
        let (gone, left) = watch::channel(0);
        let (script, gone) = (Arc::new(script), Arc::new(gone));
        let task = tokio::spawn({
            let (seen, closed_at) = (seen.clone(), closed_at.clone());
            async move {
                let connections = AtomicUsize::new(0);
                loop {
                    let (stream, _) = listener.accept().await.unwrap();
                    stream.set_nodelay(true).unwrap();
                    let connection = connections.fetch_add(1, Ordering::Relaxed);
                    let (seen, script) = (seen.clone(), script.clone());
                    let (gone, closed_at) = (gone.clone(), closed_at.clone());
                    tokio::spawn(async move {
                        if serve(stream, connection, &seen, &*script).await {
                            *closed_at.lock().unwrap() = Some(Instant::now());
                        } else {
                            gone.send_modify(|n| *n += 1);
                        }
                    });
                }
            }
        });
        Server { port, seen, left, closed_at, task }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}/mcp", self.port)
    }

    pub(crate) fn requests(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    /// Waits until that many requests have come.
    pub(crate) async fn requests_at_least(&self, n: usize) -> Vec<Seen> {
        for _ in 0..2_000 {
            if self.requests().len() >= n {
                break;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        self.requests()
    }

    /// Waits until that many peers have left.
    pub(crate) async fn left_at_least(&mut self, n: usize) {
        tokio::time::timeout(Duration::from_secs(10), self.left.wait_for(|left| *left >= n)).await.unwrap().unwrap();
    }
}

/// `true` when the server closed, `false` when the peer did.
async fn serve(
    mut stream: TcpStream,
    connection: usize,
    seen: &Mutex<Vec<Seen>>,
    script: &(dyn Fn(usize, &Seen) -> Vec<Do> + Send + Sync),
) -> bool {
    let mut buffer = Vec::new();
    loop {
        let Some(request) = read(&mut stream, &mut buffer, connection).await else { return false };
        let number = {
            let mut seen = seen.lock().unwrap();
            seen.push(request.clone());
            seen.len() - 1
        };
        for step in script(number, &request) {
            let went = match step {
                Do::Write(bytes) => stream.write_all(&bytes).await.is_ok(),
                Do::Drip(bytes) => {
                    let mut went = true;
                    for byte in bytes {
                        went = went && stream.write_all(&[byte]).await.is_ok();
                        tokio::task::yield_now().await;
                    }
                    went
                }
                Do::Forever(bytes) => {
                    while stream.write_all(&bytes).await.is_ok() {}
                    false
                }
                Do::Wait(ms) => {
                    tokio::time::sleep(Duration::from_millis(ms)).await;
                    true
                }
                Do::Close => return true,
                Do::Follow(mut text) => {
                    let mut written = 0;
                    loop {
                        let more = text.borrow_and_update()[written..].to_owned();
                        written += more.len();
                        if stream.write_all(more.as_bytes()).await.is_err() {
                            break false;
                        }
                        let mut rest = [0; 64];
                        tokio::select! {
                            _ = text.changed() => {}
                            _ = stream.read(&mut rest) => break false,
                        }
                    }
                }
                Do::Hold => {
                    let mut rest = [0; 64];
                    while matches!(stream.read(&mut rest).await, Ok(1..)) {}
                    false
                }
            };
            if !went {
                return false;
            }
        }
    }
}

async fn read(stream: &mut TcpStream, buffer: &mut Vec<u8>, connection: usize) -> Option<Seen> {
    let mut chunk = [0; 8192];
    loop {
        if let Some(end) = buffer.windows(4).position(|w| w == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&buffer[..end]).into_owned();
            let mut lines = head.split("\r\n");
            let mut first = lines.next()?.split(' ');
            let (method, path) = (first.next()?.to_owned(), first.next()?.to_owned());
            let headers: Vec<(String, String)> = lines
                .filter_map(|line| line.split_once(": ").map(|(n, v)| (n.to_ascii_lowercase(), v.to_owned())))
                .collect();
            let length = headers.iter().find(|(n, _)| n == "content-length").map_or(0, |(_, v)| v.parse().unwrap());
            if buffer.len() >= end + 4 + length {
                let body = String::from_utf8_lossy(&buffer[end + 4..end + 4 + length]).into_owned();
                buffer.drain(..end + 4 + length);
                return Some(Seen { method, path, headers, body, connection, at: Instant::now() });
            }
        }
        match stream.read(&mut chunk).await {
            Ok(n @ 1..) => buffer.extend_from_slice(&chunk[..n]),
            _ => return None,
        }
    }
}

/// A whole answer.
pub(crate) fn answer(status: u16, headers: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("HTTP/1.1 {status} Status\r\n{headers}content-length: {length}\r\n\r\n{body}").into_bytes()
}

pub(crate) fn json(body: &str) -> Vec<u8> {
    answer(200, "content-type: application/json\r\n", body)
}

/// The head of an event stream that ends with its connection.
pub(crate) const STREAM: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";

/// A stream of these events, to be ended by closing.
pub(crate) fn events(body: &str) -> Vec<u8> {
    format!("{STREAM}{body}").into_bytes()
}

/// A whole stream in one answer.
pub(crate) fn whole_events(body: &str) -> Vec<u8> {
    answer(200, "content-type: text/event-stream\r\n", body)
}

/// A client without proxies, whatever the environment says.
pub(crate) fn web() -> Web {
    Web::new(WebOptions::default().with(|options| options.proxies = false))
}
