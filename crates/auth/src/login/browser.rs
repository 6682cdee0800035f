//! The user's own browser, and a listener on the loopback interface (RFC 8252, section 7.3).

use super::callback::{callback_params, state_of};
use super::{Login, LoginError, page};
use linchpin_core::service::BoxFuture;
use std::fmt;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::timeout;

/// How long a login may take by default.
const WAIT: Duration = Duration::from_secs(300);

/// How long a connection may take to send its request, and again to read the response.
const VISIT_WAIT: Duration = Duration::from_secs(5);

/// Maximum concurrent connections; others wait in the listener's queue.
const VISITS_MAX: usize = 16;

/// Maximum size of a request head in bytes. It includes the cookies of all programs on this machine, whatever
/// the port.
const HEAD_BYTES_MAX: usize = 48 * 1024;

/// How many header fields are read.
const HEADERS_MAX: usize = 100;

/// How often accepting may fail in a row.
const ACCEPT_ERRORS_MAX: u32 = 20;

const PATH: &str = "/callback";

type Notice = Arc<dyn Fn(&str) + Send + Sync>;
type Opener = Arc<dyn Fn(&str) -> io::Result<()> + Send + Sync>;

/// A login that opens the user's browser and waits for the callback, by default on `http://127.0.0.1:PORT/callback`.
///
/// The listener is open from [`Login::redirect_uri`] until the login ends, and serves only one small page. It accepts
/// only requests with a loopback address in `Host` and, if the browser sends this information, only navigations, so
/// that other web pages cannot reach it. For a callback with the `state` of another login, it shows an error page and
/// continues to wait.
///
/// ```
/// use linchpin_auth::{OAuth, login::Browser};
/// use std::time::Duration;
///
/// let login = Browser::new().wait(Duration::from_secs(120)).notice(|url| eprintln!("log in at {url}"));
/// let oauth = OAuth::new().login(login);
/// # let _ = oauth;
/// ```
pub struct Browser {
    host: &'static str,
    port: u16,
    path: Box<str>,
    wait: Duration,
    notice: Option<Notice>,
    opener: Option<Opener>,
    listener: Mutex<Option<TcpListener>>,
}

impl Browser {
    /// Creates a login that listens on a free port, waits five minutes, and opens the default browser.
    ///
    /// Without the feature `browser`, no browser is opened, and the URL is only passed to the notice.
    pub fn new() -> Browser {
        #[cfg(feature = "browser")]
        let opener: Option<Opener> = Some(Arc::new(|url| open::that_detached(url)));
        #[cfg(not(feature = "browser"))]
        let opener = None;
        Browser {
            host: "127.0.0.1",
            port: 0,
            path: PATH.into(),
            wait: WAIT,
            notice: None,
            opener,
            listener: Mutex::new(None),
        }
    }

    /// Sets the port, for clients that are registered with a fixed one; 0 means any free port.
    #[must_use]
    pub fn port(mut self, port: u16) -> Browser {
        self.port = port;
        self
    }

    /// Uses the host `localhost` in the redirect URI, for clients that are registered with it.
    #[must_use]
    pub fn localhost(mut self) -> Browser {
        self.host = "localhost";
        self
    }

    /// Sets the path of the redirect URI, for clients that are registered with it. It begins with a slash.
    #[must_use]
    pub fn path(mut self, path: impl Into<Box<str>>) -> Browser {
        self.path = path.into();
        self
    }

    /// Sets how long the user may take after the browser is opened.
    #[must_use]
    pub fn wait(mut self, wait: Duration) -> Browser {
        self.wait = wait;
        self
    }

    /// Sets a function that shows each URL to the user, in case the browser does not open, or the wrong one does.
    ///
    /// With a notice, it is not an error if no browser can be opened.
    #[must_use]
    pub fn notice(mut self, notice: impl Fn(&str) + Send + Sync + 'static) -> Browser {
        self.notice = Some(Arc::new(notice));
        self
    }

    /// Sets a function that opens URLs instead of the default browser. It may block.
    #[must_use]
    pub fn open_with(mut self, opener: impl Fn(&str) -> io::Result<()> + Send + Sync + 'static) -> Browser {
        self.opener = Some(Arc::new(opener));
        self
    }

    async fn listen(&self) -> Result<String, LoginError> {
        let asked_before = self.slot().as_ref().map(TcpListener::local_addr);
        let address = match asked_before {
            Some(address) => address.map_err(LoginError::Listen)?,
            None => {
                let listener = TcpListener::bind(("127.0.0.1", self.port)).await.map_err(LoginError::Listen)?;
                let address = listener.local_addr().map_err(LoginError::Listen)?;
                *self.slot() = Some(listener);
                address
            }
        };
        Ok(self.uri(address.port()))
    }

    fn uri(&self, port: u16) -> String {
        format!("http://{}:{port}{}", self.host, self.path)
    }

    /// Opens the listener of the next login.
    fn slot(&self) -> std::sync::MutexGuard<'_, Option<TcpListener>> {
        self.listener.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn send(&self, url: String) -> Result<String, LoginError> {
        // Taken out of its slot, so that it is closed when this future is dropped.
        let listener = self.slot().take().ok_or(LoginError::NotListening)?;
        // Programs that open URLs also open files and start programs.
        if !["https://", "http://"]
            .iter()
            .any(|scheme| url.get(..scheme.len()).is_some_and(|s| s.eq_ignore_ascii_case(scheme)))
        {
            return Err(LoginError::NotForBrowser);
        }
        let port = listener.local_addr().map_err(LoginError::Listen)?.port();
        let desk = Arc::new(CallbackServer {
            port,
            path: self.path.clone(),
            uri: self.uri(port),
            state: state_of(&url),
            taken: AtomicBool::new(false),
        });
        if let Some(notice) = &self.notice {
            notice(&url);
        }
        let mut opened = open_aside(self.opener.clone(), url);
        let answer = async {
            let served = serve(listener, desk);
            tokio::pin!(served);
            tokio::select! {
                biased;
                answer = &mut served => return answer.map_err(LoginError::Listen),
                opened = &mut opened => match opened.unwrap_or_else(|_| Err(io::Error::other("the opener did not finish"))) {
                    Ok(()) => {}
                    // The user has the URL and can open it.
                    Err(error) if self.notice.is_some() => tracing::debug!(kind = ?error.kind(), "no browser opened"),
                    Err(error) => return Err(LoginError::Browser(error)),
                },
            }
            served.await.map_err(LoginError::Listen)
        };
        timeout(self.wait, answer).await.unwrap_or(Err(LoginError::TimedOut(self.wait)))
    }
}

impl Default for Browser {
    fn default() -> Browser {
        Browser::new()
    }
}

impl fmt::Debug for Browser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Browser").field("port", &self.port).field("wait", &self.wait).finish_non_exhaustive()
    }
}

impl Login for Browser {
    fn redirect_uri(&self) -> BoxFuture<'_, Result<String, LoginError>> {
        Box::pin(self.listen())
    }

    fn authorize(&self, url: &str) -> BoxFuture<'_, Result<String, LoginError>> {
        Box::pin(self.send(url.to_owned()))
    }
}

/// Opens a URL on a separate thread: the opener may run as long as the browser does, and a runtime does not
/// shut down before its own threads end.
fn open_aside(opener: Option<Opener>, url: String) -> oneshot::Receiver<io::Result<()>> {
    let (tell, opened) = oneshot::channel();
    let Some(open) = opener else {
        // The receiver is closed if the login was cancelled meanwhile, here and below.
        let _ = tell.send(Err(io::ErrorKind::Unsupported.into()));
        return opened;
    };
    let thread = std::thread::Builder::new().name("browser".to_owned()).spawn(move || {
        let _ = tell.send(open(&url));
    });
    if let Err(error) = thread {
        tracing::debug!(kind = ?error.kind(), "no thread for the browser");
    }
    opened
}

/// Serves connections until one of them delivers the callback. Dropping it closes them all.
async fn serve(listener: TcpListener, desk: Arc<CallbackServer>) -> io::Result<String> {
    let mut visits = JoinSet::new();
    let mut errors = 0;
    loop {
        tokio::select! {
            Some(visit) = visits.join_next() => if let Ok(Some(url)) = visit {
                return Ok(url);
            },
            accepted = listener.accept(), if visits.len() < VISITS_MAX => match accepted {
                Ok((stream, _)) => {
                    errors = 0;
                    visits.spawn(visit(stream, Arc::clone(&desk)));
                }
                // A connection that was closed again, or too many open files at the moment.
                Err(_) if errors < ACCEPT_ERRORS_MAX => {
                    errors += 1;
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
                Err(error) => return Err(error),
            },
        }
    }
}

/// Serves one request; returns the callback URL if it is the callback.
async fn visit(mut stream: TcpStream, desk: Arc<CallbackServer>) -> Option<String> {
    let (answer, callback, whole) = match timeout(VISIT_WAIT, read_head(&mut stream)).await.ok()?.ok()? {
        Some(head) => {
            let (answer, callback) = desk.judge(&head);
            (answer, callback, true)
        }
        None => (page::response("431 Request Header Fields Too Large", "Too large", ""), None, false),
    };
    let said = timeout(VISIT_WAIT, async {
        stream.write_all(&answer).await?;
        stream.shutdown().await?;
        if !whole {
            // Closing with unread bytes would reset the connection and lose the response.
            tokio::io::copy(&mut stream.take(1 << 20), &mut tokio::io::sink()).await?;
        }
        io::Result::Ok(())
    });
    // The callback counts even if the page cannot be sent.
    let _ = said.await;
    callback
}

/// Reads up to the empty line; `None` if the limit is reached first.
async fn read_head(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<Option<Vec<u8>>> {
    let mut head = Vec::with_capacity(2048);
    loop {
        let seen = head.len();
        if (&mut *stream).take((HEAD_BYTES_MAX - seen) as u64).read_buf(&mut head).await? == 0 {
            return if seen == HEAD_BYTES_MAX { Ok(None) } else { Err(io::ErrorKind::UnexpectedEof.into()) };
        }
        // The empty line may start in the previous chunk.
        if head[seen.saturating_sub(3)..].windows(4).any(|window| window == b"\r\n\r\n") {
            return Ok(Some(head));
        }
    }
}

/// Decides about requests.
struct CallbackServer {
    port: u16,
    path: Box<str>,
    /// The redirect URI.
    uri: String,
    /// The `state` of the login, if the URL has one.
    state: Option<String>,
    /// Whether a callback was accepted: there is only one.
    taken: AtomicBool,
}

impl CallbackServer {
    /// Returns the response to a request, and the callback URL if it is the expected one.
    fn judge(&self, head: &[u8]) -> (Vec<u8>, Option<String>) {
        let refuse = |status: &str, why: &str| (page::response(status, "Not found", why), None);
        let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
        let mut request = httparse::Request::new(&mut headers);
        match request.parse(head) {
            Ok(httparse::Status::Complete(_)) => {}
            Err(httparse::Error::TooManyHeaders) => return refuse("431 Request Header Fields Too Large", ""),
            _ => return refuse("400 Bad Request", "This is not a HTTP request."),
        }
        let header = |name: &str| {
            let mut values = request.headers.iter().filter(|header| header.name.eq_ignore_ascii_case(name));
            (values.next().map(|header| header.value), values.next().is_some())
        };
        let (host, hosts) = header("host");
        if hosts || !host.is_some_and(|host| self.is_here(host)) {
            return refuse("403 Forbidden", "This address is only for this machine.");
        }
        let (path, query) = request.path.map_or(("", ""), |target| target.split_once('?').unwrap_or((target, "")));
        if path != &*self.path {
            return refuse("404 Not Found", "");
        }
        if request.method != Some("GET") {
            return refuse("405 Method Not Allowed", "");
        }
        // A page that loads this as an image or a script is not the user's callback.
        if header("sec-fetch-dest").0.is_some_and(|dest| dest != b"document") {
            return refuse("403 Forbidden", "");
        }
        self.judge_callback(format!("{}?{query}", self.uri))
    }

    fn judge_callback(&self, url: String) -> (Vec<u8>, Option<String>) {
        let refuse = |text: &str| (page::response("400 Bad Request", "Invalid callback", text), None);
        let callback = match callback_params(&url) {
            Ok(callback) => callback,
            Err(error) => return refuse(&error.to_string()),
        };
        if self.state.is_some() && callback.state.is_some() && self.state != callback.state {
            return refuse("This belongs to another login than the one that is waited for. Please start again.");
        }
        if self.taken.swap(true, Ordering::Relaxed) {
            return refuse("This login is finished already. You may close this window.");
        }
        let page = match &callback.error {
            Some(error) => page::refused(error, callback.error_description.as_deref()),
            None => page::done(),
        };
        (page, Some(url))
    }

    /// Whether a `Host` is this listener. Any other name that resolves to it is DNS rebinding.
    fn is_here(&self, host: &[u8]) -> bool {
        let Some((name, port)) = std::str::from_utf8(host).ok().and_then(|host| host.rsplit_once(':')) else {
            // Browsers omit port 80.
            return self.port == 80 && (host == b"127.0.0.1" || host.eq_ignore_ascii_case(b"localhost"));
        };
        port.parse() == Ok(self.port) && (name == "127.0.0.1" || name.eq_ignore_ascii_case("localhost"))
    }
}
