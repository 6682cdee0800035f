//! Why a tool could not do what was asked.

use crate::names::as_listed;
use crate::output::from_outside;
use linchpin::Error;
use linchpin::types::content::ContentBlock;
use linchpin::types::tool::CallToolResult;
use std::fmt;

/// Why a tool could not do what was asked, in words for the model that asked: what happened, then what to do next.
///
/// Returned by a handler it becomes a tool result with `isError`; by `?` in one that returns [`linchpin::Result`] it becomes the
/// same, with its mark of whose words it holds ([`ToolError::as_outside`]). The first line is the published server's where it has
/// one; a `Hint:` line says what to do. It never holds a secret, a stack trace or the name of a library's type.
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

    /// The thing named does not exist.
    pub fn missing(message: impl Into<String>) -> Self {
        Self { missing: true, ..Self::new(message) }
    }

    /// What to do next, in whole sentences. Tools that it names are shown under the names that they are listed under.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Marks it as being about something that does not exist.
    #[must_use]
    pub fn as_missing(mut self) -> Self {
        self.missing = true;
        self
    }

    /// Marks it as holding the words of others, which may be anything: see [`ToolError::into_result`].
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

    /// Whether the thing named does not exist.
    #[must_use]
    pub fn is_missing(&self) -> bool {
        self.missing
    }

    /// Whether it holds the words of others.
    #[must_use]
    pub fn is_outside(&self) -> bool {
        self.outside
    }

    /// The tool result with `isError`; the words of others are marked as data for the model, as they are in answers.
    #[must_use]
    pub fn into_result(self) -> CallToolResult {
        let text = ContentBlock::text(self.to_string());
        let text = if self.outside { from_outside(text) } else { text };
        CallToolResult::new(vec![text]).with_is_error(true)
    }

    /// The same for a resource, where a missing one is the protocol's "resource not found" and everything else an error of
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

/// Not by way of `std::error::Error`, which would leave nothing of it but its text.
impl From<ToolError> for Error {
    fn from(fault: ToolError) -> Self {
        Self::tool_result(fault.into_result())
    }
}
