//! Who wrote what a result says.

use linchpin::types::content::{Annotations, ContentBlock, Role};

/// The author of a result's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Provenance {
    /// The server itself.
    Server,
    /// Third parties: the content of files, pages, rows and messages. Its blocks are marked as meant for the model
    /// (`annotations.audience`).
    ThirdParty,
}

/// Marks a block as data for the model (third-party content).
#[must_use]
pub fn from_outside(block: ContentBlock) -> ContentBlock {
    block.with_annotations(Annotations::new().with_audience([Role::Assistant]))
}
