//! Tool errors.

use crate::names::as_listed;
use crate::provenance::from_outside;
use crate::visible;
use linchpin::Error;
use linchpin::types::content::ContentBlock;
use linchpin::types::tool::CallToolResult;
use serde_json::{Value, json};
use std::time::Duration;
use std::{fmt, io};

/// The key of the kind of an error in the `_meta` of a tool result: `{"kind": "limited", "retry_after": 5}`.
///
/// Not in `structuredContent`: the official TypeScript client (1.x) checks that against the tool's output schema also
/// where `isError` is set, and would replace the error by one of its own.
pub const ERROR_META: &str = "linchpin/error";

/// Maximum bytes of a [`ToolError::detail`].
pub const DETAIL_BYTES_MAX: usize = 2_048;

/// What kind of error it is, for programs: in the result's `_meta` under [`ERROR_META`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The named thing does not exist.
    NotFound,
    /// It exists, or may, but is not allowed: by the server's rules, or for lack of permissions.
    Denied,
    /// The arguments, or their combination, are invalid.
    Invalid,
    /// It does not fit the present state: something exists already, was changed meanwhile, or is locked.
    Conflict,
    /// A quota or limit was reached.
    Limited {
        /// When it is worth another try, if that is known.
        retry_after: Option<Duration>,
    },
    /// The service or program behind the server failed.
    Upstream {
        /// The HTTP status, if there was one.
        status: Option<u16>,
    },
    /// It took too long.
    Timeout,
}

impl ErrorKind {
    /// The kind's name in `_meta`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NotFound => "not_found",
            Self::Denied => "denied",
            Self::Invalid => "invalid",
            Self::Conflict => "conflict",
            Self::Limited { .. } => "limited",
            Self::Upstream { .. } => "upstream",
            Self::Timeout => "timeout",
        }
    }

    fn meta(self) -> Value {
        let mut error = json!({ "kind": self.as_str() });
        match self {
            // Whole seconds, rounded up: never too early.
            Self::Limited { retry_after: Some(after) } => {
                error["retry_after"] = json!(after.as_secs() + u64::from(after.subsec_nanos() > 0));
            }
            Self::Upstream { status: Some(status) } => error["status"] = json!(status),
            _ => {}
        }
        json!({ ERROR_META: error })
    }
}

/// A tool error for the model: what happened, then what to do next.
///
/// Returned by a handler it becomes a tool result with `isError`; `?` in a handler that returns [`linchpin::Result`]
/// does the same and keeps blocks and kind. The first line equals that of the published server where it has one; a
/// `Hint:` line says what to do. It never contains a secret, a stack trace or the type name of a library. Words of third
/// parties belong in [`ToolError::detail`].
///
/// ```
/// # use linchpin_kit::{ErrorKind, ToolError};
/// let error = ToolError::new("git commit failed").kind(ErrorKind::Conflict).detail("error: pathspec 'x' did not match");
/// assert_eq!(error.into_result().content.len(), 2);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolError {
    message: String,
    hint: Option<String>,
    kind: Option<ErrorKind>,
    detail: Option<String>,
}

impl ToolError {
    /// What happened.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None, kind: None, detail: None }
    }

    /// The named thing does not exist.
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(message).kind(ErrorKind::NotFound)
    }

    /// The server's rules, or missing permissions, forbid it.
    pub fn denied(message: impl Into<String>) -> Self {
        Self::new(message).kind(ErrorKind::Denied)
    }

    /// The arguments are invalid.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(message).kind(ErrorKind::Invalid)
    }

    /// It does not fit the present state.
    pub fn conflict(message: impl Into<String>) -> Self {
        Self::new(message).kind(ErrorKind::Conflict)
    }

    /// Sets the hint: what to do next, in whole sentences. Tool names in it are replaced by their listed names.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Sets the kind.
    #[must_use]
    pub fn kind(mut self, kind: ErrorKind) -> Self {
        self.kind = Some(kind);
        self
    }

    /// Adds words of third parties: what git or a database said, the text of a trigger, names of files. They are a block
    /// of their own after the server's, marked as third-party content, of at most [`DETAIL_BYTES_MAX`] bytes, and
    /// [`visible`]. Blank text is nothing. The caller must have redacted secrets.
    #[must_use]
    pub fn detail(mut self, text: impl AsRef<str>) -> Self {
        let text = text.as_ref().trim();
        if !text.is_empty() {
            self.detail = Some(visible(text, DETAIL_BYTES_MAX));
        }
        self
    }

    /// The first line, without the hint.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// What to do next.
    #[must_use]
    pub fn advice(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    /// The words of third parties, as they are shown.
    #[must_use]
    pub fn quoted(&self) -> Option<&str> {
        self.detail.as_deref()
    }

    /// The kind, if one was set.
    #[must_use]
    pub fn error_kind(&self) -> Option<ErrorKind> {
        self.kind
    }

    /// Whether it is a "not found" error.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        self.kind == Some(ErrorKind::NotFound)
    }

    /// The tool result with `isError`: the server's text, then the detail, which is marked as data for the model as in
    /// results. The kind is in `_meta`.
    #[must_use]
    pub fn into_result(self) -> CallToolResult {
        let text = ContentBlock::text(self.to_string());
        let detail = self.detail.map(|detail| from_outside(ContentBlock::text(detail)));
        let result = CallToolResult::new([text].into_iter().chain(detail).collect()).with_is_error(true);
        match self.kind {
            Some(kind) => result.with_meta(kind.meta()),
            None => result,
        }
    }

    /// The error of a resource: "resource not found" if it is missing, otherwise an error of the request. That has no
    /// blocks, so that words of third parties are left out.
    #[must_use]
    pub fn for_resource(self) -> Error {
        if self.is_not_found() { Error::not_found() } else { Self { detail: None, ..self }.into() }
    }
}

/// The server's text, without the detail.
impl fmt::Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match &self.hint {
            Some(hint) => write!(f, "\nHint: {}", as_listed(hint)),
            None => Ok(()),
        }
    }
}

/// The text of an I/O error without the operating system's number.
///
/// ```
/// assert_eq!(linchpin_kit::io_text(&std::io::Error::from_raw_os_error(2)), "No such file or directory");
/// ```
#[must_use]
pub fn io_text(error: &io::Error) -> String {
    let mut text = error.to_string();
    if let Some(end) = text.find(" (os error") {
        text.truncate(end);
    }
    text
}

/// Not through `std::error::Error`, which would keep only the text.
impl From<ToolError> for Error {
    fn from(fault: ToolError) -> Self {
        Self::tool_result(fault.into_result())
    }
}
