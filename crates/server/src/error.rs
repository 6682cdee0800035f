//! The error type of handlers: one message for the peer, and the causes for the log.

use crate::request_error::RequestError;
use linchpin_core::{Reply, ResultWriter};
use linchpin_types::error::{ErrorObject, code};
use linchpin_types::tool::CallToolResult;
use serde_json::Value;
use serde_json::value::RawValue;
use std::any::Any;
use std::error::Error as StdError;
use std::fmt;

/// The result of a handler.
///
/// ```
/// # use linchpin_server::{Error, Result};
/// fn half(n: i64) -> Result<i64> {
///     if n % 2 == 0 { Ok(n / 2) } else { Err(Error::tool(format!("{n} is odd"))) }
/// }
/// assert_eq!(half(8).ok(), Some(4));
/// ```
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A boxed error.
pub type BoxError = Box<dyn StdError + Send + Sync>;

/// The error of a handler.
///
/// [`Error::tool`] (and any error converted by `?`) is for the model: it becomes a result with `isError`. Only the
/// outermost message is sent; the chain of sources is logged. [`Error::tool_result`] does the same with content blocks.
/// [`Error::protocol`] becomes a JSON-RPC error. [`Error::internal`] logs its cause and hides it from the peer.
///
/// Like `anyhow::Error` it does not implement `std::error::Error` itself, so that all other errors convert into it. It
/// converts into `Box<dyn Error + Send + Sync>` and, with the feature `anyhow`, into `anyhow::Error`; a handler that
/// returns one of these sends the same response as one that returns this error.
///
/// ```
/// # use linchpin_server::{Cx, Error, ResultExt as _};
/// fn load(path: &str) -> linchpin_server::Result<String> {
///     // A standard error: `?` is enough, and the model reads its text.
///     let text = std::fs::read_to_string(path)?;
///     // Hidden from the model.
///     let first = text.lines().next().ok_or("an empty file").map_err(Error::internal)?;
///     // An error that implements only `Display`.
///     first.parse::<u32>().map_err(|e| format!("not a number: {e}")).tool_err()?;
///     Ok(text)
/// }
///
/// fn main_of_a_program() -> Result<(), Box<dyn std::error::Error>> {
///     load("/nowhere")?;
///     Ok(())
/// }
/// assert!(main_of_a_program().unwrap_err().is::<std::io::Error>());
/// ```
pub struct Error(Box<Inner>);

struct Inner {
    kind: Kind,
    message: String,
    source: Source,
}

pub(crate) enum Kind {
    /// Its message is that of its source, if there is one.
    Tool,
    Result(CallToolResult),
    Protocol(i32, Option<Value>),
    /// The source is only logged.
    Internal,
}

/// The source of an error.
enum Source {
    None,
    Boxed(BoxError),
    #[cfg(feature = "anyhow")]
    Anyhow(anyhow::Error),
}

/// The message of an internal error for the peer.
const INTERNAL: &str = "internal error";

impl Error {
    fn new(kind: Kind, message: impl Into<String>) -> Error {
        Error(Box::new(Inner { kind, message: message.into(), source: Source::None }))
    }

    /// Creates an error for the model to read and correct.
    ///
    /// ```
    /// # use linchpin_server::{Error, Result};
    /// fn half(n: i64) -> Result<i64> {
    ///     if n % 2 == 0 { Ok(n / 2) } else { Err(Error::tool(format!("{n} is odd; pass an even number"))) }
    /// }
    /// assert_eq!(half(3).unwrap_err().to_string(), "3 is odd; pass an even number");
    /// ```
    pub fn tool(message: impl Into<String>) -> Error {
        Error::new(Kind::Tool, message)
    }

    /// Creates an error for the model from content blocks, for example to annotate them.
    ///
    /// `isError` is set. Resources and prompts have no such results; their error has the texts as its message.
    ///
    /// ```
    /// # use linchpin_server::{CallToolResult, ContentBlock, Error};
    /// # use linchpin_types::content::{Annotations, Role};
    /// let quoted = ContentBlock::text("no such column: prize")
    ///     .with_annotations(Annotations::new().with_audience([Role::Assistant]));
    /// let error = Error::tool_result(CallToolResult::new(vec![ContentBlock::text("The database refused it:"), quoted]));
    /// assert_eq!(error.to_string(), "The database refused it:\nno such column: prize");
    /// ```
    pub fn tool_result(answer: CallToolResult) -> Error {
        let texts: Vec<&str> = answer.content.iter().filter_map(|block| block.as_text()).collect();
        let message = texts.join("\n");
        Error::new(Kind::Result(answer.with_is_error(true)), message)
    }

    /// Creates a JSON-RPC error with this code. Application-defined codes lie outside -32768..=-32000.
    pub fn protocol(code: i32, message: impl Into<String>) -> Error {
        Error::new(Kind::Protocol(code, None), message)
    }

    /// Creates a JSON-RPC error with `data`.
    pub fn protocol_with(code: i32, message: impl Into<String>, data: Value) -> Error {
        Error::new(Kind::Protocol(code, Some(data)), message)
    }

    /// Creates an invalid-params error (-32602).
    pub fn invalid_params(message: impl Into<String>) -> Error {
        Error::protocol(code::INVALID_PARAMS, message)
    }

    /// Creates a not-found error for a resource, in the form of the client's revision and with the URI.
    pub fn not_found() -> Error {
        Error::protocol(code::RESOURCE_NOT_FOUND, "resource not found")
    }

    /// Creates an error whose cause is hidden from the peer, for example because it contains paths, SQL or messages of
    /// other systems.
    ///
    /// The cause is logged at once with its sources, at level `error`. The peer receives "internal error", even if
    /// context is added later.
    ///
    /// The cause is any error or text: a standard error, `anyhow::Error`, `Box<dyn Error + Send + Sync>`, `String`,
    /// `&str`.
    ///
    /// ```
    /// # use linchpin_server::Error;
    /// fn secret() -> linchpin_server::Result<String> {
    ///     std::fs::read_to_string("/srv/keys/payment").map_err(Error::internal)
    /// }
    /// assert_eq!(secret().unwrap_err().to_string(), "internal error");
    /// ```
    pub fn internal(cause: impl Into<BoxError>) -> Error {
        let cause = cause.into();
        let causes = chain(cause.source());
        tracing::error!(error = %cause, ?causes, "internal error in a handler");
        Error(Box::new(Inner { kind: Kind::Internal, message: INTERNAL.to_owned(), source: Source::Boxed(cause) }))
    }

    /// Converts a boxed error into an error for the model, as `?` does for other errors.
    ///
    /// A boxed `Error` is returned unchanged.
    ///
    /// ```
    /// # use linchpin_server::Error;
    /// # fn query() -> Result<u32, Box<dyn std::error::Error + Send + Sync>> { Ok(1) }
    /// async fn rows() -> linchpin_server::Result<String> {
    ///     let rows = query().map_err(Error::from_boxed)?;
    ///     Ok(format!("{rows} rows"))
    /// }
    /// ```
    pub fn from_boxed(error: BoxError) -> Error {
        match error.downcast::<Carried>() {
            Ok(carried) => carried.0,
            Err(error) => {
                let message = error.to_string();
                Error(Box::new(Inner { kind: Kind::Tool, message, source: Source::Boxed(error) }))
            }
        }
    }

    /// Converts an `anyhow::Error` into an error for the model, with its outermost context as the message.
    ///
    /// If the context wraps an `Error`, its other properties are kept: the code, the result, or that its cause is
    /// hidden.
    ///
    /// ```
    /// # use linchpin_server::Error; use anyhow::Context as _;
    /// # fn query() -> anyhow::Result<u32> { anyhow::bail!("no such table") }
    /// async fn rows() -> linchpin_server::Result<String> {
    ///     let rows = query().context("counting rows").map_err(Error::from_anyhow)?;
    ///     Ok(format!("{rows} rows"))
    /// }
    /// ```
    #[cfg(feature = "anyhow")]
    pub fn from_anyhow(error: anyhow::Error) -> Error {
        let message = error.to_string();
        if error.downcast_ref::<Carried>().is_some_and(|carried| !matches!(carried.0.kind(), Kind::Tool)) {
            return match error.downcast::<Carried>() {
                Ok(Carried(mut error)) => {
                    if let Kind::Protocol(..) = error.0.kind {
                        error.0.message = message;
                    }
                    error
                }
                Err(error) => Error::tool(error.to_string()),
            };
        }
        Error(Box::new(Inner { kind: Kind::Tool, message, source: Source::Anyhow(error) }))
    }

    /// Converts the error of a handler: an `Error`, also within another error, or any other `Display` type.
    pub(crate) fn from_printable<E: fmt::Display + 'static>(error: E) -> Error {
        fn take<T: 'static>(slot: &mut dyn Any) -> Option<T> {
            slot.downcast_mut::<Option<T>>()?.take()
        }
        let mut slot = Some(error);
        if let Some(error) = take::<Error>(&mut slot) {
            return error;
        }
        if let Some(error) = take::<BoxError>(&mut slot) {
            return Error::from_boxed(error);
        }
        #[cfg(feature = "anyhow")]
        if let Some(error) = take::<anyhow::Error>(&mut slot) {
            return Error::from_anyhow(error);
        }
        Error::tool(slot.map(|error| error.to_string()).unwrap_or_default())
    }

    pub(crate) fn kind(&self) -> &Kind {
        &self.0.kind
    }

    pub(crate) fn into_kind(self) -> (Kind, String) {
        (self.0.kind, self.0.message)
    }

    /// Returns whether the call needs input from the client. If so, return the error with `?`, and the client is asked.
    pub fn is_input_required(&self) -> bool {
        self.downcast_ref::<RequestError>().is_some_and(RequestError::is_input_required)
    }

    /// Returns the error that this one was created from, if it is of type `E`.
    ///
    /// ```
    /// # use linchpin_server::Error;
    /// let error = Error::from(std::io::Error::other("full"));
    /// assert!(error.downcast_ref::<std::io::Error>().is_some());
    /// assert!(Error::tool("full").downcast_ref::<std::io::Error>().is_none());
    /// ```
    pub fn downcast_ref<E: StdError + Send + Sync + 'static>(&self) -> Option<&E> {
        match &self.0.source {
            Source::None => None,
            Source::Boxed(error) => error.downcast_ref(),
            #[cfg(feature = "anyhow")]
            Source::Anyhow(error) => error.downcast_ref(),
        }
    }

    /// The cause behind the message.
    fn cause(&self) -> Option<&(dyn StdError + 'static)> {
        let source: &(dyn StdError + 'static) = match &self.0.source {
            Source::None => return None,
            Source::Boxed(error) => &**error,
            #[cfg(feature = "anyhow")]
            Source::Anyhow(error) => &**error,
        };
        // If the message is that of the source, the cause is the next source.
        if let Kind::Internal = self.0.kind { Some(source) } else { source.source() }
    }

    /// The response of a handler that is not a tool's: only tools have `isError`.
    pub(crate) fn into_rpc(self, out: ResultWriter) -> Reply {
        self.log_chain();
        match self.kind() {
            Kind::Protocol(code, data) => {
                let data = data.as_ref().map(Value::to_string);
                out.error(*code, &self.to_string(), data.as_deref())
            }
            // The cause of an internal error is nobody's business but the log's.
            _ => match self.downcast_ref::<ErrorObject>().filter(|_| !matches!(self.kind(), Kind::Internal)) {
                Some(object) => out.error(object.code, &object.message, object.data.as_deref().map(RawValue::get)),
                None => out.error(code::INTERNAL_ERROR, &self.to_string(), None),
            },
        }
    }

    pub(crate) fn log_chain(&self) {
        // An internal error was logged when it was created.
        if let Kind::Internal = self.0.kind {
            return;
        }
        let causes = chain(self.cause());
        if !causes.is_empty() {
            tracing::debug!(?causes, "a handler failed");
        }
    }
}

/// The messages of an error and its sources.
fn chain(first: Option<&(dyn StdError + 'static)>) -> Vec<String> {
    std::iter::successors(first, |&error| error.source()).map(|error| error.to_string()).collect()
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The output of `fn main() -> Result<()>`: the message and its causes.
        f.write_str(&self.0.message)?;
        chain(self.cause()).iter().try_for_each(|cause| write!(f, "\n  caused by: {cause}"))
    }
}

impl<E: StdError + Send + Sync + 'static> From<E> for Error {
    fn from(e: E) -> Error {
        Error(Box::new(Inner { kind: Kind::Tool, message: e.to_string(), source: Source::Boxed(Box::new(e)) }))
    }
}

impl From<Error> for BoxError {
    /// Returns the original error if its message is for the peer; otherwise this error.
    fn from(error: Error) -> BoxError {
        let Inner { kind, message, source } = *error.0;
        match (kind, source) {
            (Kind::Tool, Source::Boxed(error)) => error,
            #[cfg(feature = "anyhow")]
            (Kind::Tool, Source::Anyhow(error)) => error.into(),
            (kind, source) => Box::new(Carried(Error(Box::new(Inner { kind, message, source })))),
        }
    }
}

impl From<Error> for Box<dyn StdError> {
    fn from(error: Error) -> Box<dyn StdError> {
        BoxError::from(error)
    }
}

#[cfg(feature = "anyhow")]
impl From<Error> for anyhow::Error {
    /// As for `Box<dyn Error>`.
    fn from(error: Error) -> anyhow::Error {
        let Inner { kind, message, source } = *error.0;
        match (kind, source) {
            (Kind::Tool, Source::Anyhow(error)) => error,
            (Kind::Tool, Source::Boxed(error)) => anyhow::Error::from_boxed(error),
            (kind, source) => anyhow::Error::new(Carried(Error(Box::new(Inner { kind, message, source })))),
        }
    }
}

/// An [`Error`] within a type that requires a standard error.
struct Carried(Error);

impl fmt::Display for Carried {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for Carried {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl StdError for Carried {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.cause()
    }
}

/// Converts errors that `?` cannot convert into a handler's [`Error`].
///
/// These are errors that implement `Display` but not `std::error::Error`, such as `String`, `anyhow::Error` and
/// `Box<dyn Error + Send + Sync>`.
///
/// ```
/// use linchpin_server::ResultExt as _;
///
/// fn parse(text: &str) -> Result<u32, String> {
///     text.parse().map_err(|_| format!("`{text}` is not a number"))
/// }
///
/// fn double(text: &str) -> linchpin_server::Result<u32> {
///     Ok(parse(text).tool_err()? * 2)
/// }
/// assert_eq!(double("x").unwrap_err().to_string(), "`x` is not a number");
/// ```
pub trait ResultExt<T>: sealed::Sealed {
    /// Converts the error with [`Error::tool`], or with [`Error::from_boxed`] or [`Error::from_anyhow`] if it is of
    /// their type.
    ///
    /// [`Error::from_anyhow`]: Error#method.from_anyhow
    fn tool_err(self) -> Result<T>;
}

impl<T, E: fmt::Display + 'static> ResultExt<T> for std::result::Result<T, E> {
    fn tool_err(self) -> Result<T> {
        self.map_err(Error::from_printable)
    }
}

mod sealed {
    pub trait Sealed {}
    impl<T, E> Sealed for Result<T, E> {}
}
