//! The other door: between a client and the wire to a server.
//!
//! A [`Dial`] knows how to reach a server; what it opens is a [`Link`]. The client crate drives the link and knows no
//! sockets; the transport moves messages and knows no methods: what HTTP must repeat in headers stands ready in an
//! [`Outgoing`]. Messages that answer nothing go to the client's [`Inbox`].

use crate::era::Wire;
use crate::frame::Message;
use crate::limits::ClientLimits;
use crate::service::BoxFuture;
use bytes::Bytes;
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

/// A place where a server can be reached: a command to run, an address, a socket. It can be dialled more than once.
pub trait Dial: Send + Sync + 'static {
    /// What to call the place in errors: the command line or the address, without secrets.
    fn name(&self) -> String;

    /// Under which key a client remembers what the server spoke; `None` when every dial may reach another. The same for all
    /// that reach this server from this process.
    fn key(&self) -> Option<String>;

    /// Opens a link. Nothing has been said on it yet.
    ///
    /// # Errors
    /// When the place cannot be reached: the program is missing, nobody listens.
    fn dial(&self, dialing: Dialing) -> BoxFuture<'_, Result<Arc<dyn Link>, LinkError>>;
}

/// What a link is opened with.
#[derive(Clone)]
pub struct Dialing {
    /// Takes what answers nothing.
    pub inbox: Arc<dyn Inbox>,
    /// The limits in force.
    pub limits: Arc<ClientLimits>,
    /// Sees everything that passes.
    pub tap: Option<Arc<dyn Tap>>,
}

impl Dialing {
    /// Shows something to the tap, if there is one. `event` is only built when there is.
    pub fn show<'a>(&self, event: impl FnOnce() -> Traffic<'a>) {
        if let Some(tap) = &self.tap {
            tap.saw(event());
        }
    }
}

/// An open way to a server.
pub trait Link: Send + Sync + 'static {
    /// Sends a request and waits for its answer, which may be an error object. Messages heard on the way are given to
    /// the inbox before the answer is returned.
    ///
    /// Cancel-safe: dropping the future forgets the request; an answer that comes later is discarded. It tells the
    /// server nothing, except where [`Link::cancels_by_dropping`].
    ///
    /// # Errors
    /// When there will be no answer. The link may still serve other requests, unless [`LinkError::is_closed`].
    fn exchange(&self, out: Outgoing) -> BoxFuture<'_, Result<Answer, LinkError>>;

    /// Sends a notification, or the answer to a request of the server.
    ///
    /// # Errors
    /// When it could not be handed over.
    fn tell(&self, out: Outgoing) -> BoxFuture<'_, Result<(), LinkError>>;

    /// The same without waiting, for destructors. Failures are ignored.
    fn tell_later(&self, out: Outgoing);

    /// Whether dropping an exchange is how this wire cancels a request now, so that nothing else must be said.
    fn cancels_by_dropping(&self) -> bool;

    /// Whether an old server may leave an unknown request without any answer here, so that silence tells its age.
    fn may_stay_silent(&self) -> bool {
        true
    }

    /// Whether a person is being waited for right now, to log in. Deadlines of the client do not run meanwhile; the wait
    /// has a limit of its own.
    fn waits_for_person(&self) -> bool {
        false
    }

    /// The opening is over: this revision is spoken from now on. Wires that listen for messages of the server on a
    /// stream of their own open it now.
    fn settled(&self, wire: &'static Wire);

    /// Another way to the same server, for when the opening was refused in a manner that old servers have. `None` when
    /// there is none.
    fn fallback(&self) -> BoxFuture<'_, Option<Result<Arc<dyn Link>, LinkError>>> {
        Box::pin(std::future::ready(None))
    }

    /// Ends the link in good order, within the limits' deadlines. Idempotent. Exchanges still running fail with
    /// [`LinkError::Closed`].
    fn close(&self) -> BoxFuture<'_, ()>;
}

/// Where a link puts what it hears and what answers nothing. Implemented by the client. Never blocks.
pub trait Inbox: Send + Sync + 'static {
    /// A request or notification of the server. Answers do not come here.
    fn heard(&self, message: Message);

    /// The link is gone. Called at most once, after which nothing more is heard; not called after [`Link::close`].
    fn closed(&self, why: LinkError);
}

/// One message of the client, rendered.
#[derive(Clone, Debug)]
pub struct Outgoing {
    /// The id of a request; `None` for everything else.
    pub id: Option<u64>,
    /// The method's name; empty for answers.
    pub method: Cow<'static, str>,
    /// What it is about, where HTTP repeats that in a header: a tool's or prompt's name, a resource's URI.
    pub about: Option<Box<str>>,
    /// Arguments that HTTP repeats: header names in lower case and their finished values.
    pub mirrored: Vec<(Box<str>, String)>,
    /// The revision it is written in; `None` while that is being found out by `initialize`.
    pub wire: Option<&'static Wire>,
    /// The message's JSON text, without a line end.
    pub frame: Bytes,
}

/// What answers a request.
#[derive(Debug)]
pub struct Answer {
    /// The response.
    pub message: Message,
    /// The status it came with, on wires that have such.
    pub status: Option<u16>,
}

/// Why there is no answer.
#[derive(Clone, Debug)]
pub enum LinkError {
    /// The place cannot be reached: what was tried and what happened.
    Unreachable(Arc<str>),
    /// The link is gone. Says how it ended: an exit status and last lines, an I/O error, or that it was closed.
    Closed(Arc<str>),
    /// Answered with a status and nothing that is a message.
    Status {
        /// The status.
        status: u16,
        /// The beginning of the body, as text, at most 2 KiB.
        body: Arc<str>,
    },
    /// What the link remembered of the conversation is not known to the server any more: it must be opened anew.
    Forgotten,
    /// The stream of this request ended without its answer and cannot be resumed: why.
    CutOff(Arc<str>),
    /// Something unreadable or too long came instead: what.
    Unreadable(Arc<str>),
    /// Permission was not granted: why, and what to do.
    Unauthorized(Arc<str>),
}

impl LinkError {
    /// Whether the whole link is gone, and not only this request.
    pub fn is_closed(&self) -> bool {
        matches!(self, LinkError::Closed(_) | LinkError::Unreachable(_))
    }
}

impl fmt::Display for LinkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LinkError::Unreachable(why)
            | LinkError::Closed(why)
            | LinkError::CutOff(why)
            | LinkError::Unreadable(why)
            | LinkError::Unauthorized(why) => f.write_str(why),
            LinkError::Status { status, body } if body.is_empty() => {
                write!(f, "the server answered with status {status}")
            }
            LinkError::Status { status, body } => write!(f, "the server answered with status {status}: {body}"),
            LinkError::Forgotten => f.write_str("the server does not know this session any more"),
        }
    }
}

impl std::error::Error for LinkError {}

/// Sees everything that passes a link, for logs, transcripts and tests. Called in order and in line: be quick.
pub trait Tap: Send + Sync + 'static {
    /// Something passed.
    fn saw(&self, event: Traffic<'_>);
}

impl<T: Tap> Tap for Arc<T> {
    fn saw(&self, event: Traffic<'_>) {
        T::saw(self, event);
    }
}

/// What a [`Tap`] sees. Header values that carry credentials are marked sensitive; show those as dots.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Traffic<'a> {
    /// A message to the server.
    Sent(&'a str),
    /// A message of the server.
    Heard(&'a str),
    /// Something on the message stream that is no message.
    Garbage(&'a str),
    /// A line of the server's standard error.
    Stderr(&'a str),
    /// An HTTP request's head.
    Request {
        /// The method.
        method: &'a http::Method,
        /// Where to.
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
    /// Something about the link itself, for a person: connected, restarted, closed.
    Note(&'a str),
}

/// The address of the server that a request is for, in the extensions of its head. Permission is asked for under this
/// address, wherever the request itself goes: to where a redirect led, or to an endpoint that the server named. Without
/// it, the request's own address counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BelongsTo(pub http::Uri);

/// Gets permission for HTTP requests: puts credentials on them and reacts when they are refused.
pub trait Authorizer: Send + Sync + 'static {
    /// Puts credentials on a request that is about to be sent. May take long: a person may have to log in.
    ///
    /// # Errors
    /// Why there are none, and what to do about it. Never holds a credential.
    fn authorize<'a>(&'a self, head: &'a mut http::request::Parts) -> BoxFuture<'a, Result<(), Arc<str>>>;

    /// Looks at the head of an answer, whatever its status (servers hand out nonces on any). `true` means: send the
    /// request again, things have changed. The caller bounds how often.
    ///
    /// # Errors
    /// Why permission cannot be had, and what to do about it. Never holds a credential.
    fn answered<'a>(
        &'a self,
        request: &'a http::request::Parts,
        status: http::StatusCode,
        headers: &'a http::HeaderMap,
    ) -> BoxFuture<'a, Result<bool, Arc<str>>>;
}
