//! The error type of the client.

use linchpin_core::TransportError;
use linchpin_types::error::{ErrorObject, code};
use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// A boxed error, for example from a callback of the host.
pub type BoxError = Box<dyn StdError + Send + Sync>;

/// The error of a connection or a call.
///
/// Its message says what happened and, if known, what to do about it. It includes the message of its
/// [source](StdError::source), and its wording may change: programs should match on [`Error::kind`].
///
/// ```
/// # use linchpin_client::{Connection, Error, ErrorKind};
/// async fn sum(server: &Connection) -> Result<String, Error> {
///     match server.call("sum", serde_json::json!({ "a": 1, "b": 2 })).await {
///         Ok(result) => Ok(result.text()),
///         Err(e) if e.is_timeout() => Ok("too slow".to_owned()),
///         // The server's own error: a code and a message.
///         Err(e) if e.rpc().is_some_and(|rpc| rpc.code == -32602) => Ok("there is no such tool".to_owned()),
///         Err(e) if e.kind() == ErrorKind::Unauthorized => Ok("log in first".to_owned()),
///         Err(e) => Err(e),
///     }
/// }
/// ```
#[derive(Clone)]
pub struct Error(Arc<Inner>);

struct Inner {
    kind: ErrorKind,
    message: String,
    cause: Cause,
}

enum Cause {
    None,
    Rpc(ErrorObject),
    Transport(TransportError),
    /// The identifier of the task that the error is about.
    Task(Box<str>),
    Other(BoxError),
}

/// The kind of an [`Error`].
///
/// ```
/// use linchpin_client::ErrorKind;
///
/// # async fn call(server: linchpin_client::Connection) {
/// if let Err(error) = server.call("search", ()).await {
///     match error.kind() {
///         ErrorKind::Transport => println!("try again later"),
///         ErrorKind::Rpc => println!("{:?}", error.rpc().map(|rpc| rpc.code)),
///         _ => println!("{error}"),
///     }
/// }
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The connection could not be opened: the server is unreachable, or no protocol revision is shared.
    Connect,
    /// The connection or this request was lost, see [`Error::transport`].
    Transport,
    /// The server requires a login or rejected the credentials, see [`Error::transport`].
    Unauthorized,
    /// The server returned a JSON-RPC error, see [`Error::rpc`].
    Rpc,
    /// The tool failed (`isError`); the message is its text. Only returned by methods that decode the result.
    Tool,
    /// No response within the timeout of the call.
    Timeout,
    /// The server requested input more often than the client's limits allow.
    TooManyRoundTrips,
    /// The client cannot handle a server request, or the host's result does not match the request. If the host's
    /// callback failed, its error is the source.
    Input,
    /// The definition of the tool is invalid, and the client refuses to call it.
    InvalidTool,
    /// The host passed a value that cannot be sent.
    InvalidRequest,
    /// The response is malformed or does not match its declared schema.
    InvalidResponse,
    /// The connection was closed by this side.
    Closed,
    /// The server does not know the task: it never existed, was deleted, or belongs to another principal.
    TaskLost,
    /// The task was cancelled before it ended.
    TaskCancelled,
    /// The task did not end within the time that the host waits. It continues to run; see [`Error::task_id`].
    StillRunning,
    /// The server grants nothing of what a subscription asks for.
    NotGranted,
    /// The record of open tasks ([`crate::Client::book`]) cannot be read or written.
    Book,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Error {
        Error::caused(kind, message.into(), Cause::None)
    }

    pub(crate) fn with_source(kind: ErrorKind, message: impl Into<String>, source: impl Into<BoxError>) -> Error {
        Error::caused(kind, message.into(), Cause::Other(source.into()))
    }

    fn caused(kind: ErrorKind, message: String, cause: Cause) -> Error {
        Error(Arc::new(Inner { kind, message, cause }))
    }

    /// A failed connection: the reason, and the last transport error, if there is one.
    pub(crate) fn connect(why: &str, cause: Option<TransportError>) -> Error {
        Error::caused(ErrorKind::Connect, cannot_connect(why), cause.map_or(Cause::None, Cause::Transport))
    }

    /// A connection that timed out.
    pub(crate) fn connect_late(why: &str, elapsed: tokio::time::error::Elapsed) -> Error {
        Error::with_source(ErrorKind::Connect, cannot_connect(why), elapsed)
    }

    /// A failed connection: the transport error.
    pub(crate) fn connecting(why: TransportError) -> Error {
        let kind = match why {
            TransportError::Unauthorized(_) => ErrorKind::Unauthorized,
            _ => ErrorKind::Connect,
        };
        Error::caused(kind, cannot_connect(&why.to_string()), Cause::Transport(why))
    }

    /// A JSON-RPC error, read from its JSON text as leniently as possible.
    pub(crate) fn refused(json: &str) -> Error {
        let unreadable = |_| {
            let shown: String = json.chars().take(200).collect();
            ErrorObject::new(code::INTERNAL_ERROR, format!("an error that cannot be read: {shown}"))
        };
        let error = serde_json::from_str::<ErrorObject>(json).unwrap_or_else(unreadable);
        Error::caused(ErrorKind::Rpc, format!("the server answered with an error: {error}"), Cause::Rpc(error))
    }

    /// A tool error with this text.
    pub(crate) fn tool(text: &str) -> Error {
        Error::new(ErrorKind::Tool, format!("the tool failed: {text}"))
    }

    pub(crate) fn timeout(after: Duration) -> Error {
        let waited = after.as_secs_f64();
        let message = format!("no answer within {waited} s; raise the timeout, or request progress, which extends it");
        Error::new(ErrorKind::Timeout, message)
    }

    /// A task that the server does not know.
    pub(crate) fn task_lost(id: &str, why: &Error) -> Error {
        let said = why.rpc().map_or("", |error| &error.message);
        let message = format!("the server does not know the task {id}, so its result is lost: {said}");
        Error::caused(ErrorKind::TaskLost, message, Cause::Task(id.into()))
    }

    /// A task that was cancelled.
    pub(crate) fn task_cancelled(id: &str, said: Option<&str>) -> Error {
        let said = said.map_or_else(String::new, |said| format!(": {said}"));
        Error::caused(ErrorKind::TaskCancelled, format!("the task {id} was cancelled{said}"), Cause::Task(id.into()))
    }

    /// A task that takes longer than the host waits.
    pub(crate) fn still_running(id: &str, waited: Duration) -> Error {
        let message = format!("the task {id} did not end within {} s; it goes on", waited.as_secs_f64());
        Error::caused(ErrorKind::StillRunning, message, Cause::Task(id.into()))
    }

    pub(crate) fn closed() -> Error {
        Error::new(ErrorKind::Closed, "the connection is closed")
    }

    /// Returns the kind of the error.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// Returns whether a call, the opening of the connection, or the host's answer to an input request timed out.
    pub fn is_timeout(&self) -> bool {
        let elapsed = matches!(&self.0.cause, Cause::Other(error) if error.is::<tokio::time::error::Elapsed>());
        self.0.kind == ErrorKind::Timeout || elapsed
    }

    /// Returns whether the connection is closed, by either side, so that other calls fail too.
    pub fn is_closed(&self) -> bool {
        match &self.0.cause {
            Cause::Transport(why) => self.0.kind == ErrorKind::Transport && why.is_closed(),
            _ => self.0.kind == ErrorKind::Closed,
        }
    }

    /// Returns the JSON-RPC error of the server: its code, message and data.
    pub fn rpc(&self) -> Option<&ErrorObject> {
        match &self.0.cause {
            Cause::Rpc(error) => Some(error),
            _ => None,
        }
    }

    /// Returns the error of the transport, if the transport failed or could not be opened.
    pub fn transport(&self) -> Option<&TransportError> {
        match &self.0.cause {
            Cause::Transport(why) => Some(why),
            _ => None,
        }
    }

    /// Returns the identifier of the task that the error is about, for [`ErrorKind::StillRunning`],
    /// [`ErrorKind::TaskLost`] and [`ErrorKind::TaskCancelled`].
    pub fn task_id(&self) -> Option<&str> {
        match &self.0.cause {
            Cause::Task(id) => Some(id),
            _ => None,
        }
    }

    pub(crate) fn is_rpc(&self, code: i32) -> bool {
        self.rpc().is_some_and(|error| error.code == code)
    }
}

/// Some causes say so themselves.
fn cannot_connect(why: &str) -> String {
    if why.starts_with("cannot connect") { why.to_owned() } else { format!("cannot connect: {why}") }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        // The message has the text of a transport or JSON-RPC error; those are at `transport` and `rpc`.
        match &self.0.cause {
            Cause::Other(error) => Some(&**error),
            Cause::None | Cause::Rpc(_) | Cause::Transport(_) | Cause::Task(_) => None,
        }
    }
}

impl From<TransportError> for Error {
    fn from(why: TransportError) -> Error {
        let kind = match why {
            TransportError::Unauthorized(_) => ErrorKind::Unauthorized,
            _ => ErrorKind::Transport,
        };
        Error::caused(kind, why.to_string(), Cause::Transport(why))
    }
}
