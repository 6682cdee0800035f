//! The interface between a transport and a server.
//!
//! A transport turns bytes into a [`Request`] and passes it to a [`Service`], which returns either the finished
//! response or a [`RunningCall`] that is polled in place. The transport does not depend on methods, the service does not
//! depend on sockets, and a call that completes on its first poll needs no task, channel or lock.

use crate::budget::Budget;
use crate::caller::{Caller, Locals};
use crate::limits::Limits;
use crate::message::{Notification, Request};
use crate::observer::Observer;
use crate::principal::Principal;
use crate::reply::Reply;
pub use crate::server_request::{ServerRequest, ServerRequestError};
use crate::subscription::SubscriptionHandle;
use bytes::Bytes;
use core::net::SocketAddr;
use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};

/// A server as a transport drives it. Implemented by the server crate.
///
/// ```
/// use linchpin_core::service::{CallStart, HeaderParam, RequestContext, Service};
/// use linchpin_core::{Budget, Caller, Limits, Reply, Request, SubscriptionHandle};
/// use std::sync::Arc;
/// use std::task::Context;
///
/// /// Answers every request with an empty result.
/// struct Empty {
///     limits: Arc<Limits>,
///     budget: Arc<Budget>,
/// }
///
/// impl Service for Empty {
///     fn limits(&self) -> &Arc<Limits> {
///         &self.limits
///     }
///
///     fn budget(&self) -> &Arc<Budget> {
///         &self.budget
///     }
///
///     fn start(&self, request: Arc<Request>, _: Arc<RequestContext>, _: &mut Context<'_>) -> CallStart {
///         CallStart::Done(Reply::with_result(&request.id, "{}".into()))
///     }
///
///     fn header_params(&self, _: &str, _: &Caller, _: &RequestContext) -> Option<Arc<[HeaderParam]>> {
///         None
///     }
///
///     fn open_feed(&self, _: &Caller, _: &RequestContext) -> Option<SubscriptionHandle> {
///         None
///     }
///
///     fn close(&self) {}
/// }
///
/// let limits = Arc::new(Limits::default());
/// let budget = Budget::new(limits.connections.memory_bytes_max);
/// let service: Arc<dyn Service> = Arc::new(Empty { limits, budget });
/// assert!(!service.defines("example/translate"));
/// ```
pub trait Service: Send + Sync + 'static {
    /// Returns the limits that apply to the engine and the transports.
    fn limits(&self) -> &Arc<Limits>;

    /// Returns the memory budget of all clients, which all transports share:
    /// [`connections.memory_bytes_max`](crate::limits::ConnectionLimits::memory_bytes_max).
    fn budget(&self) -> &Arc<Budget>;

    /// Starts a request and polls it once.
    ///
    /// `cx` is the context of the task that continues polling. Never panics: a panic in a handler becomes an error response.
    fn start(&self, request: Arc<Request>, context: Arc<RequestContext>, cx: &mut Context<'_>) -> CallStart;

    /// Returns whether the service implements a method that is not part of the specification. Default: `false`.
    ///
    /// [`Service::start`] is also called for methods that the service does not implement.
    fn defines(&self, method: &str) -> bool {
        let _ = method;
        false
    }

    /// Returns the member of such a method's parameters that the `Mcp-Name` header repeats over HTTP. Default: `None`.
    fn named_by(&self, method: &str) -> Option<Arc<str>> {
        let _ = method;
        None
    }

    /// Handles a notification of the client, for example `notifications/roots/list_changed`. Never blocks and never panics.
    /// By default it is ignored.
    fn notified(&self, notification: Notification, context: Arc<RequestContext>) {
        let _ = (notification, context);
    }

    /// Returns whether any item of the service requires scopes, so that it cannot be served to unauthenticated clients
    /// without a gate. Default: `false`.
    fn demands_scopes(&self) -> bool {
        false
    }

    /// Returns a tool's `x-mcp-header` annotations: the arguments that this caller must mirror in headers. Empty for most
    /// tools.
    fn header_params(&self, tool: &str, caller: &Caller, context: &RequestContext) -> Option<Arc<[HeaderParam]>>;

    /// Opens the subscription of a new session: it receives the list changes that concern the caller, and changes of
    /// resources it subscribes to later. `context` is that of the request that opened the session.
    fn open_feed(&self, caller: &Caller, context: &RequestContext) -> Option<SubscriptionHandle>;

    /// Called when a session that another process opened is continued here, with its subscriptions. Does nothing by
    /// default.
    fn session_resumed(&self, caller: &Caller, context: &RequestContext) {
        let _ = (caller, context);
    }

    /// Returns the observer of the service's calls, sessions and streams. Default: `None`.
    fn observer(&self) -> Option<&Arc<dyn Observer>> {
        None
    }

    /// Closes the whole service, for all its peers: running `subscriptions/listen` requests finish with their final response.
    ///
    /// Not called when a single peer disconnects: its subscriptions are ended with [`Cancel::finish`].
    fn close(&self);

    /// Runs after serving has ended and its calls have been dropped.
    ///
    /// The caller awaits it before the runtime ends; it has its own deadline. Does nothing by default.
    fn ended(&self) -> BoxFuture<'static, ()> {
        Box::pin(std::future::ready(()))
    }
}

/// What a transport knows about a request in addition to its message.
///
/// ```
/// use linchpin_core::service::RequestContext;
///
/// fn user_agent(context: &RequestContext) -> Option<&str> {
///     context.headers.get("user-agent")?.to_str().ok()
/// }
/// assert_eq!(user_agent(&RequestContext::default()), None);
/// ```
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct RequestContext {
    /// HTTP request headers; empty on other transports.
    pub headers: http::HeaderMap,
    /// Values that layers in front of the service set for handlers.
    pub extensions: http::Extensions,
    /// The authenticated caller, as verified by a gate or a layer in front. `None` without authentication.
    pub principal: Option<Principal>,
    /// Whether the scopes that items require are checked against the principal. Set by transports that anyone can reach;
    /// others do not check scopes.
    pub scoped: bool,
    /// The address of the client, where the transport knows it.
    pub peer: Option<SocketAddr>,
    /// The service's state for the connection, on transports where each client has its own connection.
    pub connection: Option<Arc<Locals>>,
}

impl RequestContext {
    /// Creates the context of a request over HTTP, whose principal must have the scopes that items require. For other
    /// transports, change [`RequestContext::default`].
    ///
    /// ```
    /// use linchpin_core::Principal;
    /// use linchpin_core::service::RequestContext;
    ///
    /// let (head, ()) = http::Request::post("/mcp").header("user-agent", "curl").body(()).unwrap().into_parts();
    /// let context = RequestContext::of_http(head.headers, head.extensions, Some(Principal::new("ada")));
    /// assert!(context.scoped && context.headers["user-agent"] == "curl");
    /// ```
    #[inline]
    pub fn of_http(
        headers: http::HeaderMap,
        extensions: http::Extensions,
        principal: Option<Principal>,
    ) -> RequestContext {
        RequestContext { headers, extensions, principal, scoped: true, peer: None, connection: None }
    }

    /// Returns the context with the changes that a closure makes.
    ///
    /// ```
    /// use linchpin_core::Principal;
    /// use linchpin_core::service::RequestContext;
    ///
    /// let context = RequestContext::default().with(|context| context.principal = Some(Principal::new("ada")));
    /// assert!(!context.scoped && context.headers.is_empty());
    /// ```
    #[must_use]
    #[inline]
    pub fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    /// Returns a copy without the headers.
    ///
    /// ```
    /// use linchpin_core::service::RequestContext;
    ///
    /// fn keep(context: &RequestContext, kept: &mut Vec<RequestContext>) {
    ///     kept.push(context.without_headers());
    /// }
    /// ```
    #[must_use]
    pub fn without_headers(&self) -> RequestContext {
        let RequestContext { headers: _, extensions, principal, scoped, peer, connection } = self;
        RequestContext {
            headers: http::HeaderMap::new(),
            extensions: extensions.clone(),
            principal: principal.clone(),
            scoped: *scoped,
            peer: *peer,
            connection: connection.clone(),
        }
    }
}

/// The outcome of [`Service::start`].
///
/// ```
/// use linchpin_core::service::CallStart;
/// use linchpin_core::{Id, Reply};
///
/// let start = CallStart::Done(Reply::with_result(&Id::number(1), "{}".into()));
/// assert!(matches!(start, CallStart::Done(reply) if reply.body() == "{}"));
/// ```
pub enum CallStart {
    /// The call completed on its first poll, without notifications.
    Done(Reply),
    /// The call is running or has pending messages: poll it.
    Running(Box<dyn RunningCall>),
}

/// A running request. Dropping it cancels the work.
///
/// ```
/// use linchpin_core::service::{CallEvent, Cancel, RunningCall};
/// use linchpin_core::{Id, Reply};
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicBool, Ordering};
/// use std::task::{Context, Poll, Waker};
///
/// /// Responds on its first poll, unless it was cancelled before.
/// struct Ping {
///     id: Id,
///     cancelled: Arc<Cancelled>,
/// }
///
/// #[derive(Default)]
/// struct Cancelled(AtomicBool);
///
/// impl Cancel for Cancelled {
///     fn cancel(&self) {
///         self.0.store(true, Ordering::Relaxed);
///     }
/// }
///
/// impl RunningCall for Ping {
///     fn poll_event(&mut self, _: &mut Context<'_>) -> Poll<CallEvent> {
///         Poll::Ready(match self.cancelled.0.load(Ordering::Relaxed) {
///             true => CallEvent::Cancelled,
///             false => CallEvent::Done(Reply::with_result(&self.id, "{}".into())),
///         })
///     }
///
///     fn canceller(&self) -> Arc<dyn Cancel> {
///         self.cancelled.clone()
///     }
/// }
///
/// let mut call = Ping { id: Id::number(1), cancelled: Arc::default() };
/// call.canceller().cancel();
/// let event = call.poll_event(&mut Context::from_waker(Waker::noop()));
/// assert!(matches!(event, Poll::Ready(CallEvent::Cancelled)));
/// ```
pub trait RunningCall: Send {
    /// Polls for the next event of this request. Must not be called after [`CallEvent::Done`] or [`CallEvent::Cancelled`].
    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<CallEvent>;

    /// Returns a handle that cancels the call from elsewhere: its next poll returns [`CallEvent::Cancelled`].
    fn canceller(&self) -> Arc<dyn Cancel>;
}

/// Cancels a call from outside the task that polls it.
///
/// ```
/// use linchpin_core::service::Cancel;
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicBool, Ordering};
///
/// #[derive(Default)]
/// struct Flag(AtomicBool);
///
/// impl Cancel for Flag {
///     fn cancel(&self) {
///         self.0.store(true, Ordering::Relaxed);
///     }
/// }
///
/// let flag = Arc::new(Flag::default());
/// let cancel: Arc<dyn Cancel> = flag.clone();
/// cancel.finish();
/// assert!(flag.0.load(Ordering::Relaxed));
/// ```
pub trait Cancel: Send + Sync {
    /// Cancels the call. Idempotent; wakes the polling task.
    fn cancel(&self);

    /// Ends a subscription gracefully: pending changes are delivered, then its final response. Cancels any other call.
    fn finish(&self) {
        self.cancel();
    }
}

/// An event of a running call, for the transport to act on.
///
/// ```
/// use linchpin_core::service::CallEvent;
/// use linchpin_core::{Id, Reply};
///
/// /// The frame to write for an event.
/// fn frame(event: CallEvent) -> Option<Vec<u8>> {
///     match event {
///         CallEvent::Notify(frame) => Some(frame.into()),
///         CallEvent::Done(reply) => Some(reply.into_frame()),
///         CallEvent::ServerRequest(request) => {
///             request.refuse();
///             None
///         }
///         CallEvent::Pause(_) | CallEvent::Cancelled => None,
///     }
/// }
/// let event = CallEvent::Done(Reply::with_result(&Id::number(1), "{}".into()));
/// assert_eq!(frame(event).unwrap(), br#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
/// ```
pub enum CallEvent {
    /// Send this notification frame on the request's stream.
    Notify(Bytes),
    /// Send this server request to the client and deliver its response.
    ServerRequest(ServerRequest),
    /// Close the request's SSE stream now; the call continues. The client is told to reconnect after this many milliseconds.
    /// Transports without resumable streams ignore this.
    Pause(u64),
    /// The response. Nothing follows.
    Done(Reply),
    /// Cancelled. Nothing more may be sent.
    Cancelled,
}

/// One argument of a tool that is mirrored in an HTTP header.
///
/// ```
/// use linchpin_core::service::{HeaderParam, HeaderParamKind};
///
/// /// The argument `region`, which clients repeat as `Mcp-Param-Region`.
/// let region = HeaderParam {
///     header: "mcp-param-region".into(),
///     path: ["region".into()].into(),
///     kind: HeaderParamKind::String,
/// };
/// assert_eq!(region.path.join("."), "region");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeaderParam {
    /// The header's name in lower case, `mcp-param-` included.
    pub header: Box<str>,
    /// The path of the argument below `arguments`, by member names.
    pub path: Box<[Box<str>]>,
    /// The argument's JSON type.
    pub kind: HeaderParamKind,
}

/// JSON types that may be mirrored.
///
/// ```
/// use linchpin_core::service::HeaderParamKind;
///
/// /// Whether a header's value is an argument of this type.
/// fn fits(kind: HeaderParamKind, value: &str) -> bool {
///     match kind {
///         HeaderParamKind::String => true,
///         HeaderParamKind::Integer => value.parse::<i64>().is_ok(),
///         HeaderParamKind::Boolean => matches!(value, "true" | "false"),
///     }
/// }
/// assert!(fits(HeaderParamKind::Integer, "42"));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderParamKind {
    /// Compared as text.
    String,
    /// Compared as a number.
    Integer,
    /// `true` or `false`.
    Boolean,
}

/// A boxed future, as returned by object-safe traits.
pub type BoxFuture<'a, T> = std::pin::Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Boxes a future for `tokio::spawn`, whose code for a task is there once for each output, and not once for each future.
///
/// Costs an allocation: not for what is spawned with every message. As cancel-safe as the future itself.
///
/// ```
/// use linchpin_core::service::boxed;
/// use std::task::{Context, Poll, Waker};
///
/// let mut sum = boxed(async { 2 + 3 });
/// assert_eq!(sum.as_mut().poll(&mut Context::from_waker(Waker::noop())), Poll::Ready(5));
/// ```
pub fn boxed<T>(future: impl Future<Output = T> + Send + 'static) -> BoxFuture<'static, T> {
    Box::pin(future)
}

/// A transport that a service can be served on: a pipe, a socket, an address.
///
/// ```
/// use linchpin_core::service::{Bind, BoxFuture, Service};
/// use std::io;
/// use std::sync::Arc;
///
/// /// Tells where it serves, and leaves the rest to another transport.
/// struct Told<B>(&'static str, B);
///
/// impl<B: Bind> Bind for Told<B> {
///     fn serve(self, service: Arc<dyn Service>) -> BoxFuture<'static, io::Result<()>> {
///         eprintln!("serving on {}", self.0);
///         self.1.serve(service)
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a transport that can be served on",
    note = "use `stdio()`, `http(\"127.0.0.1:8931\")`, `unix(path)`, `pipes(read, write)` or `memory()`"
)]
pub trait Bind: Send + 'static {
    /// Serves until the peer disconnects or shutdown is requested. Dropping the future ends it too.
    ///
    /// Returns an error of the transport itself, for example an address in use.
    fn serve(self, service: Arc<dyn Service>) -> BoxFuture<'static, std::io::Result<()>>;
}

/// Conversion into a service that transports can drive: a configured server, or a service itself.
///
/// ```
/// use linchpin_core::service::{ConfigError, IntoService};
///
/// /// How many bytes all clients of a server may hold together.
/// fn memory_of(server: impl IntoService) -> Result<u64, ConfigError> {
///     Ok(server.into_shared()?.limits().connections.memory_bytes_max as u64)
/// }
/// ```
pub trait IntoService {
    /// Converts the value into a service.
    ///
    /// # Errors
    /// If the configuration is invalid, for example two tools have the same name.
    fn into_shared(self) -> Result<Arc<dyn Service>, ConfigError>;
}

impl IntoService for Arc<dyn Service> {
    fn into_shared(self) -> Result<Arc<dyn Service>, ConfigError> {
        Ok(self)
    }
}

/// The problems of a server's configuration, each a sentence, with its location in the source if known.
///
/// ```
/// use linchpin_core::service::ConfigError;
///
/// let error = ConfigError::from_iter(["tool `a` is defined twice".to_owned(), "tool `b` has no name".to_owned()]);
/// assert_eq!(error.problems().count(), 2);
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct ConfigError {
    problems: Vec<String>,
}

impl ConfigError {
    /// Creates an error with one problem.
    pub fn new(problem: impl Into<String>) -> ConfigError {
        ConfigError { problems: vec![problem.into()] }
    }

    /// Returns the problems, in the order in which they were found.
    pub fn problems(&self) -> impl Iterator<Item = &str> {
        self.problems.iter().map(String::as_str)
    }
}

impl FromIterator<String> for ConfigError {
    fn from_iter<I: IntoIterator<Item = String>>(problems: I) -> ConfigError {
        ConfigError { problems: problems.into_iter().collect() }
    }
}

impl fmt::Display for ConfigError {
    /// Writes the problems, one per line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.problems.join("\n"))
    }
}

impl fmt::Debug for ConfigError {
    // What `fn main() -> Result<(), ConfigError>` prints.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for ConfigError {}

impl From<ConfigError> for std::io::Error {
    fn from(error: ConfigError) -> std::io::Error {
        std::io::Error::new(std::io::ErrorKind::InvalidInput, error)
    }
}
