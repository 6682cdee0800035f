//! The results of text tools.

use linchpin_kit::{Provenance, ToolOutput};
use schemars::JsonSchema;
use serde::Serialize;

/// The result of a text tool: `content` is both the text block and `structuredContent.content`; `more` adds fields that
/// the published server does not have, and may be empty.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Answer<M> {
    /// The text, exactly as in the text block.
    pub content: String,
    /// Additional structured content.
    #[serde(flatten)]
    pub more: M,
    /// A second text block for clients that only read text: what was omitted and how to get it.
    #[serde(skip)]
    pub notice: Option<String>,
}

impl<M> Answer<M> {
    pub(crate) fn new(content: impl Into<String>, more: M) -> Self {
        Self { content: content.into(), more, notice: None }
    }
}

/// No additional structured content.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct NoMore {}

/// Converts an answer to a tool result; `provenance` says whether the text is file content or by the server.
pub(crate) trait Answered: Sized {
    fn shown(self, provenance: Provenance) -> ToolOutput<Self>;
}

impl<M> Answered for Answer<M> {
    fn shown(mut self, provenance: Provenance) -> ToolOutput<Self> {
        let notice = self.notice.take();
        ToolOutput { provenance, ..ToolOutput::ours(self.content.clone(), self) }.notice(notice)
    }
}
