//! The interface between a client and its transports.
//!
//! A [`Connector`] knows how to reach a server and opens a [`ClientTransport`]. The client crate drives the transport and does
//! not depend on sockets; the transport moves messages and does not depend on methods: an [`Outgoing`] already contains the
//! values that HTTP repeats in headers. Messages that are not responses are passed to the client's [`Inbox`].

use crate::features::Features;
use crate::limits::ClientLimits;
use crate::message::Message;
use crate::service::BoxFuture;
use bytes::Bytes;
use linchpin_types::capability::ServerCapabilities;
use linchpin_types::lifecycle::Implementation;
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

/// What a client connects to: a command to run, an address, a socket. Can be used more than once.
///
/// ```
/// use linchpin_core::connector::{ClientTransport, ConnectOptions, Connector, TransportError};
/// use linchpin_core::service::BoxFuture;
/// use std::sync::Arc;
///
/// /// Connects to the first of two that can be reached.
/// struct Either<A, B>(A, B);
///
/// impl<A: Connector, B: Connector> Connector for Either<A, B> {
///     fn name(&self) -> String {
///         format!("{} or {}", self.0.name(), self.1.name())
///     }
///
///     fn key(&self) -> Option<String> {
///         None
///     }
///
///     fn connect(&self, options: ConnectOptions) -> BoxFuture<'_, Result<Arc<dyn ClientTransport>, TransportError>> {
///         Box::pin(async move {
///             match self.0.connect(options.clone()).await {
///                 Ok(transport) => Ok(transport),
///                 Err(_) => self.1.connect(options).await,
///             }
///         })
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not something that a client can connect to",
    note = "use `child(\"npx some-server\")?`, `remote(\"https://example.com/mcp\")?`, `unix(path)`, `pipes(read, write)` or `in_process(server)`"
)]
pub trait Connector: Send + Sync + 'static {
    /// Returns a name for error messages: the command line or the URL, without secrets.
    fn name(&self) -> String;

    /// Returns the key under which a client remembers which revisions the server speaks; `None` if each connection may
    /// reach another server.
    ///
    /// Connectors of this process that reach the same server return the same key.
    fn key(&self) -> Option<String>;

    /// Opens a transport. No message has been exchanged on it yet.
    ///
    /// # Errors
    /// If the server cannot be reached: the program is missing, or the connection is refused.
    fn connect(&self, options: ConnectOptions) -> BoxFuture<'_, Result<Arc<dyn ClientTransport>, TransportError>>;
}

/// The parameters of a new transport. The client makes them; only tests of a connector need to.
///
/// ```
/// use linchpin_core::{ConnectOptions, Inbox, Tap};
/// use std::sync::Arc;
///
/// fn options(inbox: Arc<dyn Inbox>, tap: Arc<dyn Tap>) -> ConnectOptions {
///     ConnectOptions::new(inbox, Arc::default()).with(|options| options.tap = Some(tap))
/// }
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub struct ConnectOptions {
    /// Receives messages that are not responses.
    pub inbox: Arc<dyn Inbox>,
    /// The limits that apply.
    pub limits: Arc<ClientLimits>,
    /// Sees all traffic. Default: `None`.
    pub tap: Option<Arc<dyn Tap>>,
}

impl ConnectOptions {
    /// Creates the parameters of a transport with this inbox and these limits, without a tap.
    pub fn new(inbox: Arc<dyn Inbox>, limits: Arc<ClientLimits>) -> ConnectOptions {
        ConnectOptions { inbox, limits, tap: None }
    }

    /// Changes some of these options.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    /// Passes an event to the tap. `event` is only called if there is one.
    pub fn show<'a>(&self, event: impl FnOnce() -> Traffic<'a>) {
        if let Some(tap) = &self.tap {
            tap.saw(event());
        }
    }
}

/// An open connection to a server, below the protocol.
///
/// ```
/// use linchpin_core::connector::{Answer, ClientTransport, Outgoing, TransportError};
/// use linchpin_core::Features;
/// use linchpin_core::service::BoxFuture;
///
/// /// A connection that has been lost: every request fails.
/// struct Lost;
///
/// impl ClientTransport for Lost {
///     fn exchange(&self, _: Outgoing) -> BoxFuture<'_, Result<Answer, TransportError>> {
///         Box::pin(async { Err(TransportError::Closed("the server has exited".into())) })
///     }
///
///     fn notify(&self, _: Outgoing) -> BoxFuture<'_, Result<(), TransportError>> {
///         Box::pin(async { Err(TransportError::Closed("the server has exited".into())) })
///     }
///
///     fn notify_detached(&self, _: Outgoing) {}
///
///     fn cancels_by_dropping(&self) -> bool {
///         false
///     }
///
///     fn negotiated(&self, _: &'static Features) {}
///
///     fn close(&self) -> BoxFuture<'_, ()> {
///         Box::pin(async {})
///     }
/// }
/// assert!(Lost.may_stay_silent());
/// ```
pub trait ClientTransport: Send + Sync + 'static {
    /// Sends a request and waits for its response, which may be an error object.
    ///
    /// Messages received before it are passed to the inbox first. Cancel-safe: dropping the future forgets the request,
    /// and a late response is discarded. The server is not notified, unless [`ClientTransport::cancels_by_dropping`].
    ///
    /// # Errors
    /// If there will be no response. The transport can still serve other requests, unless [`TransportError::is_closed`].
    fn exchange(&self, out: Outgoing) -> BoxFuture<'_, Result<Answer, TransportError>>;

    /// Sends a notification, or the response to a server request.
    ///
    /// # Errors
    /// If it could not be sent.
    fn notify(&self, out: Outgoing) -> BoxFuture<'_, Result<(), TransportError>>;

    /// Sends a notification without waiting, for destructors. Failures are ignored.
    fn notify_detached(&self, out: Outgoing);

    /// Returns whether dropping an exchange cancels the request at the server, so that no notification must be sent.
    fn cancels_by_dropping(&self) -> bool;

    /// Returns whether an old server may ignore an unknown request on this transport, so that a timeout means that the
    /// server is old.
    fn may_stay_silent(&self) -> bool {
        true
    }

    /// Returns whether each request has a stream of its own, so that [`Inbox::received`] gets the request that a
    /// message belongs to.
    fn attributes(&self) -> bool {
        false
    }

    /// Returns whether the transport is waiting for a user to log in. The client's timeouts are paused meanwhile; the
    /// login has its own.
    fn waits_for_user(&self) -> bool {
        false
    }

    /// Called once the revision is negotiated. Transports with a separate stream for server messages open it now.
    fn negotiated(&self, features: &'static Features);

    /// Opens another transport to the same server, after it rejected the first request the way old servers do. Returns
    /// `None` if there is no other transport.
    fn fallback(&self) -> BoxFuture<'_, Option<Result<Arc<dyn ClientTransport>, TransportError>>> {
        Box::pin(std::future::ready(None))
    }

    /// Returns the resident memory in bytes of the server process and its descendants. `None` if the server is not a
    /// child process, or if its memory use cannot be read. May block for about a millisecond.
    fn memory(&self) -> Option<u64> {
        None
    }

    /// Returns the number of bytes that the server process has written to standard error so far. 0 if the server is not
    /// a child process. A child that writes while it is opened is given more time
    /// ([`ClientChildLimits::open_ms_max`](crate::limits::ClientChildLimits)).
    ///
    /// ```
    /// # use linchpin_core::connector::ClientTransport;
    /// fn has_logged(server: &dyn ClientTransport) -> bool {
    ///     server.stderr_bytes() > 0
    /// }
    /// ```
    fn stderr_bytes(&self) -> u64 {
        0
    }

    /// Closes the transport gracefully, within the deadlines of the limits. Idempotent. Running exchanges fail with
    /// [`TransportError::Closed`].
    fn close(&self) -> BoxFuture<'_, ()>;
}

/// What a client and a server have agreed on: a revision, and what the server said about itself.
///
/// ```
/// use linchpin_core::{Agreed, Features};
/// use linchpin_types::version::Revision;
///
/// let result = r#"{"supportedVersions":["2026-07-28"],"capabilities":{}}"#;
/// let agreed = Agreed::new(Features::of(Revision::V2026_07_28), result)
///     .with(|agreed| agreed.versions = vec!["2026-07-28".to_owned()]);
/// assert!(agreed.features.stateless && agreed.capabilities.tools.is_none());
/// assert_eq!(&*agreed.result, result);
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Agreed {
    /// The revision.
    pub features: &'static Features,
    /// The server's implementation info.
    pub server: Option<Implementation>,
    /// The server's capabilities.
    pub capabilities: ServerCapabilities,
    /// The server's instructions.
    pub instructions: Option<String>,
    /// Every version it named.
    pub versions: Vec<String>,
    /// The whole result of `server/discover` or `initialize`, as JSON text.
    pub result: Box<str>,
}

impl Agreed {
    /// Creates an agreement on a revision, with the server's result as JSON text; nothing of that is read.
    pub fn new(features: &'static Features, result: impl Into<Box<str>>) -> Agreed {
        Agreed {
            features,
            server: None,
            capabilities: ServerCapabilities::default(),
            instructions: None,
            versions: Vec::new(),
            result: result.into(),
        }
    }

    /// Returns the agreement with the changes that a closure makes.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }
}

/// Receives a transport's messages that are not responses. Implemented by the client. Never blocks.
///
/// ```
/// use linchpin_core::connector::{Inbox, TransportError};
/// use linchpin_core::message::Message;
/// use std::sync::Mutex;
///
/// /// Collects the frames that it receives.
/// #[derive(Default)]
/// struct Frames(Mutex<Vec<String>>);
///
/// impl Inbox for Frames {
///     fn received(&self, message: Message, _: Option<u64>) {
///         self.0.lock().unwrap().push(message.frame().to_string());
///     }
///
///     fn closed(&self, why: TransportError) {
///         eprintln!("the connection was lost: {why}");
///     }
/// }
/// # use linchpin_core::message::{Kind, MethodName, Params};
/// # let text = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
/// # let kind = Kind::Notification { method: MethodName::Other("notifications/tools/list_changed".into()) };
/// let frames = Frames::default();
/// # let message = Message::new(text.into(), kind, Params::default());
/// frames.received(message, None);
/// assert_eq!(frames.0.lock().unwrap().len(), 1);
/// ```
pub trait Inbox: Send + Sync + 'static {
    /// Called with each request or notification of the server, not with responses.
    ///
    /// `during` is the id of the request on whose stream the message arrived, if the transport has a stream for each
    /// request; `None` on pipes and on the standalone stream.
    fn received(&self, message: Message, during: Option<u64>);

    /// Called at most once, when the connection is lost; no message follows. Not called after
    /// [`ClientTransport::close`].
    fn closed(&self, why: TransportError);

    /// Called when the standalone stream finds that the server no longer knows the session, for example because it was
    /// restarted. Until the session is initialized again, nothing more is received and requests fail with
    /// [`TransportError::Forgotten`].
    ///
    /// ```
    /// # use linchpin_core::connector::{Inbox, TransportError};
    /// # use linchpin_core::message::Message;
    /// use std::sync::atomic::{AtomicBool, Ordering};
    ///
    /// /// Notes that the session is to be initialized again.
    /// #[derive(Default)]
    /// struct Sessions(AtomicBool);
    ///
    /// impl Inbox for Sessions {
    ///     # fn received(&self, _: Message, _: Option<u64>) {}
    ///     # fn closed(&self, _: TransportError) {}
    ///     fn forgotten(&self) {
    ///         self.0.store(true, Ordering::Relaxed);
    ///     }
    /// }
    /// ```
    fn forgotten(&self) {}
}

/// A serialized message of the client.
///
/// ```
/// use linchpin_core::connector::Outgoing;
/// use linchpin_core::{Features, render};
/// use linchpin_types::version::Revision;
///
/// let frame = render::request(1, "tools/call", r#"{"name":"add","arguments":{"a":1,"b":2}}"#);
/// let mut out = Outgoing::new("tools/call", Some(Features::of(Revision::V2025_11_25)), frame);
/// out.id = Some(1);
/// out.about = Some("add".into());
/// assert!(out.frame.starts_with(br#"{"jsonrpc":"2.0","id":1,"method":"tools/call""#));
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Outgoing {
    /// The id of a request; `None` for everything else.
    pub id: Option<u64>,
    /// The method's name; empty for responses.
    pub method: Cow<'static, str>,
    /// The tool's or prompt's name or the resource's URI, if HTTP repeats it in a header.
    pub about: Option<Box<str>>,
    /// Arguments that HTTP repeats: header names in lower case and encoded values.
    pub mirrored: Vec<(Box<str>, String)>,
    /// The revision of the message; `None` while `initialize` negotiates it.
    pub features: Option<&'static Features>,
    /// The message's JSON text, without a line end.
    pub frame: Bytes,
}

impl Outgoing {
    /// Creates a notification of this method, or a response if `method` is empty. For a request, set the `id` as well.
    pub fn new(
        method: impl Into<Cow<'static, str>>,
        features: Option<&'static Features>,
        frame: impl Into<Bytes>,
    ) -> Outgoing {
        let (method, frame) = (method.into(), frame.into());
        Outgoing { id: None, method, about: None, mirrored: Vec::new(), features, frame }
    }
}

/// The response to a request.
///
/// ```
/// use linchpin_core::connector::Answer;
/// use linchpin_core::message::{Kind, Message};
/// use linchpin_core::{Id, Span};
///
/// let text = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
/// let kind = Kind::Response { id: Id::number(1), outcome: Ok(Span::new(33, 35)) };
/// let answer = Answer::new(Message::with_result(text.into(), kind, Default::default()), Some(200));
/// assert_eq!(&**answer.message.frame(), text);
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub struct Answer {
    /// The response.
    pub message: Message,
    /// The HTTP status, on transports that have one.
    pub status: Option<u16>,
}

impl Answer {
    /// Creates an answer.
    pub fn new(message: Message, status: Option<u16>) -> Answer {
        Answer { message, status }
    }
}

/// The reason why a request got no response.
///
/// ```
/// use linchpin_core::connector::TransportError;
///
/// let error = TransportError::Unreachable("127.0.0.1:8931 refused the connection".into());
/// assert!(error.is_closed());
/// assert_eq!(error.to_string(), "127.0.0.1:8931 refused the connection");
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum TransportError {
    /// The server cannot be reached. The text says what was tried and what happened.
    Unreachable(Arc<str>),
    /// The connection has ended. The text gives an exit status and the last lines, or an I/O error, or says that it was
    /// closed.
    Closed(Arc<str>),
    /// The response is an HTTP status without a message.
    Status {
        /// The status.
        status: u16,
        /// The beginning of the body, as text, at most 2 KiB.
        body: Arc<str>,
    },
    /// The server no longer knows the session: it must be initialized again.
    Forgotten,
    /// The stream of this request ended without its response and cannot be resumed. The text says why.
    CutOff(Arc<str>),
    /// The server sent something invalid or too long. The text says what.
    Unreadable(Arc<str>),
    /// Authorization failed. The text says why, and what to do about it.
    Unauthorized(Arc<str>),
}

impl TransportError {
    /// Returns whether the whole connection has ended, not only this request.
    pub fn is_closed(&self) -> bool {
        matches!(self, TransportError::Closed(_) | TransportError::Unreachable(_))
    }
}

impl fmt::Display for TransportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TransportError::Unreachable(why)
            | TransportError::Closed(why)
            | TransportError::CutOff(why)
            | TransportError::Unreadable(why)
            | TransportError::Unauthorized(why) => f.write_str(why),
            TransportError::Status { status, body } if body.is_empty() => {
                write!(f, "the server returned status {status}")
            }
            TransportError::Status { status, body } => write!(f, "the server returned status {status}: {body}"),
            TransportError::Forgotten => f.write_str("the server no longer knows this session"),
        }
    }
}

impl std::error::Error for TransportError {}

/// Sees all traffic of a connection, for logs, recordings and tests. It is called synchronously and in order, so it
/// must be quick.
///
/// ```
/// use linchpin_core::connector::{Tap, Traffic};
/// use std::sync::Mutex;
///
/// /// Records the messages in both directions.
/// #[derive(Default)]
/// struct Transcript(Mutex<Vec<String>>);
///
/// impl Tap for Transcript {
///     fn saw(&self, event: Traffic<'_>) {
///         match event {
///             Traffic::Sent(text) => self.0.lock().unwrap().push(format!("> {text}")),
///             Traffic::Heard(text) => self.0.lock().unwrap().push(format!("< {text}")),
///             _ => {}
///         }
///     }
/// }
///
/// let transcript = Transcript::default();
/// transcript.saw(Traffic::Sent(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#));
/// assert_eq!(transcript.0.lock().unwrap()[0], r#"> {"jsonrpc":"2.0","id":1,"method":"ping"}"#);
/// ```
pub trait Tap: Send + Sync + 'static {
    /// Called with each event.
    fn saw(&self, event: Traffic<'_>);
}

impl<T: Tap> Tap for Arc<T> {
    fn saw(&self, event: Traffic<'_>) {
        T::saw(self, event);
    }
}

/// An event that a [`Tap`] sees. Header values that carry credentials are marked sensitive; show those as dots.
///
/// ```
/// use linchpin_core::connector::Traffic;
///
/// /// The headers of a request, without credentials.
/// fn shown(event: Traffic<'_>) -> Vec<String> {
///     let Traffic::Request { headers, .. } = event else { return Vec::new() };
///     let shown = headers.iter().map(|(name, value)| match value.is_sensitive() {
///         true => format!("{name}: •••"),
///         false => format!("{name}: {}", value.to_str().unwrap_or_default()),
///     });
///     shown.collect()
/// }
/// assert!(shown(Traffic::Note("connected")).is_empty());
/// ```
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Traffic<'a> {
    /// A message to the server.
    Sent(&'a str),
    /// A message of the server.
    Heard(&'a str),
    /// A line on the message stream that is not a message.
    Garbage(&'a str),
    /// A line of the server's standard error.
    Stderr(&'a str),
    /// An HTTP request's head.
    Request {
        /// The method.
        method: &'a http::Method,
        /// The target URL.
        uri: &'a http::Uri,
        /// Its headers.
        headers: &'a http::HeaderMap,
    },
    /// An HTTP response's head.
    Response {
        /// The status.
        status: http::StatusCode,
        /// Its headers.
        headers: &'a http::HeaderMap,
    },
    /// A note about the connection itself, for the user: connected, restarted, closed.
    Note(&'a str),
}

/// The URL of the server that a request belongs to, in the request's extensions.
///
/// Credentials are requested for this URL, wherever the request itself is sent: to the target of a redirect, or to an
/// endpoint that the server named. Without it, the request's own URL is used.
///
/// ```
/// use linchpin_core::connector::BelongsTo;
///
/// fn server_of(head: &http::request::Parts) -> &http::Uri {
///     head.extensions.get::<BelongsTo>().map_or(&head.uri, |server| &server.0)
/// }
/// # let head = http::Request::new(()).into_parts().0;
/// # assert_eq!(server_of(&head), &head.uri);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BelongsTo(pub http::Uri);

/// Authorizes HTTP requests: adds credentials to them and reacts when they are rejected.
///
/// The types of requests come from the crate `http` (`cargo add http`).
///
/// ```
/// use http::{HeaderMap, HeaderValue, StatusCode, request};
/// use linchpin_core::connector::Authorizer;
/// use linchpin_core::service::BoxFuture;
/// use std::sync::Arc;
///
/// /// A key in a header of its own.
/// struct ApiKey(HeaderValue);
///
/// impl Authorizer for ApiKey {
///     fn authorize<'a>(&'a self, head: &'a mut request::Parts) -> BoxFuture<'a, Result<(), Arc<str>>> {
///         head.headers.insert("x-api-key", self.0.clone());
///         Box::pin(async { Ok(()) })
///     }
///
///     fn answered<'a>(
///         &'a self,
///         _: &'a request::Parts,
///         status: StatusCode,
///         _: &'a HeaderMap,
///     ) -> BoxFuture<'a, Result<bool, Arc<str>>> {
///         let refused = status == StatusCode::UNAUTHORIZED;
///         Box::pin(async move { if refused { Err("the API key is not accepted".into()) } else { Ok(false) } })
///     }
/// }
/// ```
pub trait Authorizer: Send + Sync + 'static {
    /// Adds credentials to a request that is about to be sent. This may take long, because a user may have to log in.
    ///
    /// # Errors
    /// The reason why there are no credentials, and what to do about it. Never contains a credential.
    fn authorize<'a>(&'a self, head: &'a mut http::request::Parts) -> BoxFuture<'a, Result<(), Arc<str>>>;

    /// Inspects the headers of a response with any status (servers issue nonces with any). Returns `true` if the
    /// request should be sent again. The caller limits how often.
    ///
    /// # Errors
    /// The reason why authorization failed, and what to do about it. Never contains a credential.
    fn answered<'a>(
        &'a self,
        request: &'a http::request::Parts,
        status: http::StatusCode,
        headers: &'a http::HeaderMap,
    ) -> BoxFuture<'a, Result<bool, Arc<str>>>;
}
