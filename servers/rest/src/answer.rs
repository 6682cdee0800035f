//! What the code of a row returns.

use http::HeaderMap;
use linchpin::types::content::ContentBlock;
use serde_json::Value;

/// What the code of a row returns: JSON, which is projected and shown like the answer of an API, and blocks beside it.
#[derive(Debug, Clone)]
pub struct Answer {
    pub(crate) value: Value,
    /// Of a row without code: the headers, and the request's parameter that counts pages.
    pub(crate) reply: Option<(HeaderMap, Option<String>)>,
    pub(crate) blocks: Vec<ContentBlock>,
}

impl From<Value> for Answer {
    fn from(value: Value) -> Answer {
        Answer { value, reply: None, blocks: Vec::new() }
    }
}

impl Answer {
    /// Adds a block, such as an image.
    #[must_use]
    pub fn block(mut self, block: ContentBlock) -> Answer {
        self.blocks.push(block);
        self
    }
}
