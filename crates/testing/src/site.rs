//! A web server on a local port that follows the script of a test: complete responses, and every kind of failure.
//!
//! ```
//! use linchpin_testing::site::{Do, Site, answer};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! let site = Site::new(|n, request| match (n, request.path()) {
//!     (0, "/items") => vec![Do::Write(answer(503, "retry-after: 0\r\n", ""))],
//!     (_, "/items") => vec![Do::Write(answer(200, "content-type: application/json\r\n", "[]"))],
//!     _ => vec![Do::Reset],
//! })
//! .await;
//! let address = site.url("/items");
//! # assert!(address.starts_with("http://127.0.0.1:"));
//! # assert!(site.requests().is_empty());
//! # }
//! ```

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// A request as received by a [`Site`].
///
/// ```
/// use linchpin_testing::site::Seen;
///
/// let request = Seen {
///     method: "GET".to_owned(),
///     target: "/items?page=2".to_owned(),
///     headers: vec![("accept".to_owned(), "application/json".to_owned())],
///     ..Seen::default()
/// };
/// assert_eq!((request.path(), request.query()), ("/items", "page=2"));
/// assert_eq!(request.header("accept"), Some("application/json"));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// The method.
    pub method: String,
    /// The path and query as sent.
    pub target: String,
    /// The headers: names in lower case, and values.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
    /// The number of the connection, counted from 0.
    pub connection: usize,
}

impl Seen {
    /// Returns the value of a header, by its name in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }

    /// Returns the path without the query.
    pub fn path(&self) -> &str {
        self.target.split('?').next().unwrap_or_default()
    }

    /// Returns the query as sent, without `?`.
    pub fn query(&self) -> &str {
        self.target.split_once('?').map_or("", |(_, query)| query)
    }

    /// Returns the whole request as text, for tests that search it for forbidden contents.
    pub fn everything(&self) -> String {
        let headers: String = self.headers.iter().map(|(name, value)| format!("{name}: {value}\n")).collect();
        format!("{} {}\n{headers}\n{}", self.method, self.target, String::from_utf8_lossy(&self.body))
    }
}

/// A step in the script of a [`Site`].
///
/// ```
/// use linchpin_testing::site::{Do, Site, answer};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> std::io::Result<()> {
/// // The connection is closed in the middle of the body.
/// let response = answer(200, "", "a long text");
/// let half = response[..response.len() - 5].to_vec();
/// let site = Site::new(move |_, _| vec![Do::Write(half.clone()), Do::Close]).await;
/// # use tokio::io::{AsyncReadExt, AsyncWriteExt};
/// # let mut stream = tokio::net::TcpStream::connect(("127.0.0.1", site.port())).await?;
/// # stream.write_all(b"GET / HTTP/1.1\r\n\r\n").await?;
/// # let mut text = String::new();
/// # stream.read_to_string(&mut text).await?;
/// # assert!(text.ends_with("a long"));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub enum Do {
    /// Writes these bytes.
    Write(Vec<u8>),
    /// Writes these bytes one by one, with this pause after each.
    Drip(Vec<u8>, Duration),
    /// Writes these bytes repeatedly until the peer disconnects.
    Flood(Vec<u8>),
    /// Waits.
    Wait(Duration),
    /// Closes the connection.
    Close,
    /// Resets the connection.
    Reset,
    /// Writes nothing more until the peer closes the connection.
    Hold,
}

type Script = dyn Fn(usize, &Seen) -> Vec<Do> + Send + Sync;

/// A scripted web server, which stops when it is dropped.
///
/// ```
/// use linchpin_testing::site::{Site, answer};
/// use tokio::io::AsyncWriteExt;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> std::io::Result<()> {
/// let site = Site::saying(answer(200, "", "hello")).await;
/// let mut stream = tokio::net::TcpStream::connect(("127.0.0.1", site.port())).await?;
/// stream.write_all(b"GET /greeting HTTP/1.1\r\n\r\n").await?;
/// # let mut first = [0; 12];
/// # tokio::io::AsyncReadExt::read_exact(&mut stream, &mut first).await?;
/// # assert_eq!(&first, b"HTTP/1.1 200");
/// assert_eq!(site.requests()[0].path(), "/greeting");
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Site {
    port: u16,
    seen: Arc<Mutex<Vec<Seen>>>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Site {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Site {
    /// Starts a site whose script depends on the number of previous requests and on the request. A connection is kept open for
    /// further requests unless the script closes it.
    ///
    /// # Panics
    /// If no port can be opened.
    pub async fn new(script: impl Fn(usize, &Seen) -> Vec<Do> + Send + Sync + 'static) -> Site {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port of this machine");
        let port = listener.local_addr().expect("an address").port();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (script, log): (Arc<Script>, _) = (Arc::new(script), seen.clone());
        let task = tokio::spawn(async move {
            let connections = AtomicUsize::new(0);
            loop {
                let Ok((stream, _)) = listener.accept().await else { continue };
                let number = connections.fetch_add(1, Ordering::Relaxed);
                let (script, log) = (script.clone(), log.clone());
                tokio::spawn(async move {
                    // A peer that is gone is not a failure of the site.
                    let _ = serve(stream, number, &log, &*script).await;
                });
            }
        });
        Site { port, seen, task }
    }

    /// Starts a site that sends the same response to every request.
    pub async fn saying(bytes: Vec<u8>) -> Site {
        Site::new(move |_, _| vec![Do::Write(bytes.clone())]).await
    }

    /// Returns the URL of a path that begins with `/`.
    pub fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// Returns the port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns the requests so far, in order.
    pub fn requests(&self) -> Vec<Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

async fn serve(mut stream: TcpStream, connection: usize, log: &Mutex<Vec<Seen>>, script: &Script) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut buffer = Vec::new();
    while let Some(request) = read(&mut stream, &mut buffer, connection).await? {
        let number = {
            let mut seen = log.lock().unwrap_or_else(PoisonError::into_inner);
            seen.push(request.clone());
            seen.len() - 1
        };
        for step in script(number, &request) {
            match step {
                Do::Write(bytes) => stream.write_all(&bytes).await?,
                Do::Drip(bytes, pause) => {
                    for byte in bytes {
                        stream.write_all(&[byte]).await?;
                        tokio::time::sleep(pause).await;
                    }
                }
                Do::Flood(bytes) => loop {
                    stream.write_all(&bytes).await?;
                },
                Do::Wait(time) => tokio::time::sleep(time).await,
                Do::Close => return stream.shutdown().await,
                Do::Reset => {
                    // Zero does not block, which is why others are deprecated.
                    #[allow(deprecated, reason = "its replacement is newer than the oldest tokio that is supported")]
                    return stream.set_linger(Some(Duration::ZERO));
                }
                Do::Hold => while matches!(stream.read(&mut [0; 64]).await, Ok(1..)) {},
            }
        }
    }
    Ok(())
}

/// The next request on a connection; `None` when the peer closed it.
async fn read(stream: &mut TcpStream, buffer: &mut Vec<u8>, connection: usize) -> io::Result<Option<Seen>> {
    loop {
        if let Some((seen, end)) = parse(buffer, connection) {
            buffer.drain(..end);
            return Ok(Some(seen));
        }
        let mut chunk = [0; 8_192];
        match stream.read(&mut chunk).await? {
            0 => return Ok(None),
            n => buffer.extend_from_slice(&chunk[..n]),
        }
    }
}

/// The request that these bytes begin with, and its length, once all of it is there.
fn parse(bytes: &[u8], connection: usize) -> Option<(Seen, usize)> {
    let head_end = bytes.windows(4).position(|four| four == b"\r\n\r\n")?;
    let head = String::from_utf8_lossy(&bytes[..head_end]).into_owned();
    let mut lines = head.split("\r\n");
    let mut first = lines.next()?.split(' ');
    let (method, target) = (first.next()?.to_owned(), first.next()?.to_owned());
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let end = head_end + 4 + length.and_then(|(_, length)| length.parse().ok()).unwrap_or(0);
    let body = bytes.get(head_end + 4..end)?.to_vec();
    Some((Seen { method, target, headers, body, connection }, end))
}

/// Returns a complete response with a `content-length`; `headers` are lines, each with its `\r\n`.
pub fn answer(status: u16, headers: &str, body: impl AsRef<[u8]>) -> Vec<u8> {
    let body = body.as_ref();
    let head = format!("HTTP/1.1 {status} Status\r\n{headers}content-length: {}\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}

/// Returns a complete JSON response.
pub fn json(status: u16, headers: &str, body: &serde_json::Value) -> Vec<u8> {
    answer(status, &format!("content-type: application/json\r\n{headers}"), body.to_string())
}
