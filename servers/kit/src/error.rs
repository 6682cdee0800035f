//! Tool errors.

use crate::names::as_listed;
use crate::output::from_outside;
use linchpin::Error;
use linchpin::types::content::ContentBlock;
use linchpin::types::tool::CallToolResult;
use std::fmt;

/// A tool error for the model: what happened, then what to do next.
///
/// Returned by a handler it becomes a tool result with `isError`; `?` in a handler that returns [`linchpin::Result`]
/// does the same and keeps its provenance ([`ToolError::as_outside`]). The first line equals that of the published
/// server where it has one; a `Hint:` line says what to do. It never contains a secret, a stack trace or the type name
/// of a library.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolError {
    message: String,
    hint: Option<String>,
    missing: bool,
    outside: bool,
}

impl ToolError {
    /// What happened.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None, missing: false, outside: false }
    }

    /// The named thing does not exist.
    pub fn missing(message: impl Into<String>) -> Self {
        Self { missing: true, ..Self::new(message) }
    }

    /// Sets the hint: what to do next, in whole sentences. Tool names in it are replaced by their listed names.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Marks it as a "not found" error.
    #[must_use]
    pub fn as_missing(mut self) -> Self {
        self.missing = true;
        self
    }

    /// Marks its text as third-party content, see [`ToolError::into_result`].
    #[must_use]
    pub fn as_outside(mut self) -> Self {
        self.outside = true;
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

    /// Whether it is a "not found" error.
    #[must_use]
    pub fn is_missing(&self) -> bool {
        self.missing
    }

    /// Whether its text is third-party content.
    #[must_use]
    pub fn is_outside(&self) -> bool {
        self.outside
    }

    /// The tool result with `isError`. Third-party content is marked as data for the model, as in results.
    #[must_use]
    pub fn into_result(self) -> CallToolResult {
        let text = ContentBlock::text(self.to_string());
        let text = if self.outside { from_outside(text) } else { text };
        CallToolResult::new(vec![text]).with_is_error(true)
    }

    /// The error of a resource: "resource not found" if it is missing, otherwise an error of
    /// the request.
    #[must_use]
    pub fn for_resource(self) -> Error {
        if self.missing { Error::not_found() } else { self.into() }
    }
}

impl fmt::Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match &self.hint {
            Some(hint) => write!(f, "\nHint: {}", as_listed(hint)),
            None => Ok(()),
        }
    }
}

/// Not through `std::error::Error`, which would keep only the text.
impl From<ToolError> for Error {
    fn from(fault: ToolError) -> Self {
        Self::tool_result(fault.into_result())
    }
}
