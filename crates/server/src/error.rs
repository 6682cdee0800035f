//! One error with two faces: what the peer reads, and what the log keeps.

use crate::answer::Answer;
use linchpin_types::error::code;
use serde_json::Value;
use std::fmt;

/// The result of a handler.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a call failed.
///
/// [`Error::tool`] (and any error converted by `?`) is for the model: it becomes a result with `isError`. Only the
/// outermost message travels; the chain of sources is logged. [`Error::answer`] is the same as more than a text.
/// [`Error::protocol`] becomes a JSON-RPC error.
///
/// Like `anyhow::Error` it does not implement `std::error::Error` itself, so that everything else converts into it.
pub struct Error(Box<Inner>);

struct Inner {
    kind: Kind,
    message: String,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

pub(crate) enum Kind {
    Tool,
    Answer(Answer),
    Protocol(i32, Option<Value>),
    /// Carried out by `?` while the call's own record says what input is missing.
    Input,
}

impl Error {
    fn new(kind: Kind, message: impl Into<String>) -> Error {
        Error(Box::new(Inner { kind, message: message.into(), source: None }))
    }

    /// A failure that the model should read and may correct.
    pub fn tool(message: impl Into<String>) -> Error {
        Error::new(Kind::Tool, message)
    }

    /// A failure that the model should read, as a whole answer: for when its blocks must be chosen one by one, for example
    /// to annotate them. `isError` is set. Resources and prompts have no such answers and carry its texts as the message.
    ///
    /// ```
    /// # use linchpin_server::{Answer, Content, Error};
    /// # use linchpin_types::content::{Annotations, Role};
    /// let quoted = Content::text("no such column: prize")
    ///     .with_annotations(Annotations { audience: vec![Role::Assistant], ..Annotations::default() });
    /// let error = Error::answer(Answer::new(vec![Content::text("The database refused it:"), quoted]));
    /// assert_eq!(error.to_string(), "The database refused it:\nno such column: prize");
    /// ```
    pub fn answer(answer: Answer) -> Error {
        let texts: Vec<&str> = answer.content.iter().filter_map(|block| block.as_text()).collect();
        let message = texts.join("\n");
        Error::new(Kind::Answer(Answer { is_error: Some(true), ..answer }), message)
    }

    /// A JSON-RPC error of this code. Codes of your own lie outside -32768..=-32000.
    pub fn protocol(code: i32, message: impl Into<String>) -> Error {
        Error::new(Kind::Protocol(code, None), message)
    }

    /// A JSON-RPC error with `data`.
    pub fn protocol_with(code: i32, message: impl Into<String>, data: Value) -> Error {
        Error::new(Kind::Protocol(code, Some(data)), message)
    }

    /// Parameters that make no sense (-32602).
    pub fn invalid_params(message: impl Into<String>) -> Error {
        Error::protocol(code::INVALID_PARAMS, message)
    }

    /// The resource does not exist. The client is told so in its revision's way, with the URI it asked for.
    pub fn not_found() -> Error {
        Error::protocol(code::RESOURCE_NOT_FOUND, "resource not found")
    }

    pub(crate) fn input(message: impl Into<String>) -> Error {
        Error::new(Kind::Input, message)
    }

    pub(crate) fn kind(&self) -> &Kind {
        &self.0.kind
    }

    /// Whether the call still needs input of the client: pass it on with `?` and the client will be asked.
    pub fn is_input_required(&self) -> bool {
        matches!(self.0.kind, Kind::Input)
    }

    pub(crate) fn log_chain(&self) {
        if let Some(source) = &self.0.source {
            let mut chain = Vec::new();
            let mut next = source.source();
            while let Some(cause) = next {
                chain.push(cause.to_string());
                next = cause.source();
            }
            if !chain.is_empty() {
                tracing::debug!(causes = ?chain, "a handler failed");
            }
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // What `fn main() -> Result<()>` prints: the message and its causes.
        f.write_str(&self.0.message)?;
        let mut next = self.0.source.as_deref().and_then(|s| s.source());
        while let Some(cause) = next {
            write!(f, "\n  caused by: {cause}")?;
            next = cause.source();
        }
        Ok(())
    }
}

impl<E: std::error::Error + Send + Sync + 'static> From<E> for Error {
    fn from(e: E) -> Error {
        Error(Box::new(Inner { kind: Kind::Tool, message: e.to_string(), source: Some(Box::new(e)) }))
    }
}
