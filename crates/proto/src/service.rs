//! The one door between a wire and a server.
//!
//! A transport turns bytes into a [`Request`] and hands it to a [`Service`]; what comes back is either the finished
//! answer or an [`Exchange`] that is polled in place. The transport knows no methods, the service knows no sockets, and
//! a call that is ready at its first poll touches no task, channel or lock.

use crate::Caller;
use crate::budget::Budget;
use crate::caller::Locals;
use crate::feed::{FeedHandle, Hub};
use crate::frame::{Name, Request};
use crate::limits::Limits;
use crate::reply::Reply;
use bytes::Bytes;
use std::sync::Arc;
use std::task::{Context, Poll};

/// What a transport drives. Implemented by the server crate, and by anything that wants to stand behind a wire.
pub trait Service: Send + Sync + 'static {
    /// The limits in force, for engine and transport alike.
    fn limits(&self) -> &Arc<Limits>;

    /// The memory that clients may hold: one budget of [`Limits::memory_bytes_max`] for all wires.
    fn budget(&self) -> &Arc<Budget>;

    /// Starts a request and polls it once.
    ///
    /// `cx` is the context of the task that will go on polling. Never panics: a panicking handler is an error answer.
    fn start(&self, request: Request, door: Door, cx: &mut Context<'_>) -> Started;

    /// Takes a notification of the client, for example `notifications/roots/list_changed`.
    fn notified(&self, caller: &Caller, name: &Name, params: &str);

    /// The `x-mcp-header` annotations of a tool: which arguments must be mirrored in which headers. Empty for most.
    fn header_params(&self, tool: &str) -> Option<Arc<[HeaderParam]>>;

    /// Where changes are published to feeds.
    fn hub(&self) -> &Arc<Hub>;

    /// Opens the feed of a session: it hears of every list change and of the resources it subscribes to later.
    fn open_feed(&self) -> Option<FeedHandle>;

    /// Called when the whole service must end, for all its peers: running listen exchanges finish with their final answer.
    /// The end of one peer is none of the service: its subscriptions are ended by [`Cancel::finish`].
    fn close(&self);

    /// What is left to do once serving has ended and its calls were dropped. Whoever serves waits for it before the runtime
    /// goes; it has a deadline of its own. Nothing by default.
    fn ended(&self) -> BoxFuture<'static, ()> {
        Box::pin(std::future::ready(()))
    }
}

/// What the wire knows about a request that the message does not say.
#[derive(Default)]
pub struct Door {
    /// HTTP request headers; empty on other wires.
    pub headers: http::HeaderMap,
    /// What layers in front of the service left for handlers.
    pub extensions: http::Extensions,
    /// Who asks, as verified by the transport's authentication. `None` without authentication.
    pub principal: Option<Arc<str>>,
    /// What the service keeps for the connection, on wires where each client has a connection of its own.
    pub connection: Option<Arc<Locals>>,
}

/// The outcome of [`Service::start`].
pub enum Started {
    /// Finished at the first poll, without notifications.
    Done(Reply),
    /// Still running, or with messages waiting: poll it.
    Running(Box<dyn Exchange>),
}

/// A running request. Dropping it cancels the work.
pub trait Exchange: Send {
    /// The next thing to do for this request. After [`Step::Done`] or [`Step::Cancelled`] it must not be polled again.
    fn poll_step(&mut self, cx: &mut Context<'_>) -> Poll<Step>;

    /// A handle that ends the exchange from elsewhere: its next poll yields [`Step::Cancelled`].
    fn canceller(&self) -> Arc<dyn Cancel>;
}

/// Ends an exchange from outside the task that polls it.
pub trait Cancel: Send + Sync {
    /// Ends it. Idempotent; wakes the polling task.
    fn cancel(&self);

    /// Ends a subscription gracefully: what waits is delivered, then its final answer. Cancels any other exchange.
    fn finish(&self) {
        self.cancel();
    }
}

/// One thing a running request wants of its wire.
pub enum Step {
    /// Send this notification frame on the request's stream.
    Notify(Bytes),
    /// Send this question to the client and deliver its answer.
    Ask(Ask),
    /// Close the request's stream now, if the wire can resume it later; the request goes on. The client is told to come
    /// back after this many milliseconds. Wires that cannot resume ignore it.
    Pause(u64),
    /// The answer. Nothing follows.
    Done(Reply),
    /// Cancelled. Nothing may be sent any more.
    Cancelled,
}

/// A request of the server to the client, in eras that have such.
pub struct Ask {
    /// The method, for example `elicitation/create`.
    pub method: &'static str,
    /// `params` as JSON text.
    pub params: String,
    /// Takes the answer: the `result` as JSON text, or why there is none.
    pub answer: Box<dyn FnOnce(Result<String, AskError>) + Send>,
}

/// Why a question has no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AskError {
    /// The client answered with this error: code and message.
    Refused(i32, String),
    /// The connection or the request ended first.
    Gone,
}

/// One argument of a tool that is mirrored in an HTTP header.
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderParamKind {
    /// Compared as text.
    String,
    /// Compared as a number.
    Integer,
    /// `true` or `false`.
    Boolean,
}

/// A boxed future, as traits that are used as objects return it.
pub type BoxFuture<'a, T> = std::pin::Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A place a service can be served at: a pipe, a socket, an address.
pub trait Bind: Send + 'static {
    /// Serves until the peer ends or the place is told to shut down; dropping the future ends it, too. An error is one of the
    /// place itself, for example an address in use.
    fn serve(self, service: Arc<dyn Service>) -> BoxFuture<'static, std::io::Result<()>>;
}

/// Something that can be put behind a wire: a configured server, or a service itself.
pub trait IntoService {
    /// The service. An error says what is wrong with the configuration, for example two tools of one name.
    fn into_shared(self) -> std::io::Result<Arc<dyn Service>>;
}

impl IntoService for Arc<dyn Service> {
    fn into_shared(self) -> std::io::Result<Arc<dyn Service>> {
        Ok(self)
    }
}
