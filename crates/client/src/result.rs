//! Results: what a server answered, decoded when somebody looks.

use crate::Result;
use crate::error::Error;
use bytestring::ByteString;
use linchpin_proto::json::{Scanner, Span};
use linchpin_types::content::{ContentBlock, ResourceContents};
use linchpin_types::resource::ReadResourceResult;
use linchpin_types::tool::CallToolResult;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::fmt;
use std::ops::Deref;

/// What a tool answered. Kept as it arrived; each method decodes what it needs.
#[derive(Clone)]
pub struct CallResult {
    text: ByteString,
    content: Option<Span>,
    structured: Option<Span>,
    meta: Option<Span>,
    is_error: bool,
    input_required: bool,
}

impl CallResult {
    pub(crate) fn read(text: ByteString) -> Result<CallResult> {
        let mut found = CallResult {
            text: text.clone(),
            content: None,
            structured: None,
            meta: None,
            is_error: false,
            input_required: false,
        };
        let mut s = Scanner::new(&text, 127);
        if s.peek() != Some(b'{') {
            return Err(Error::Unexpected("the result of the tool is not an object".to_owned()));
        }
        let scanned = s.object(&mut |s, key| {
            let value = s.value()?;
            match &*key.name() {
                "content" => found.content = Some(value),
                "structuredContent" => found.structured = Some(value),
                "_meta" => found.meta = Some(value),
                "isError" => found.is_error = value.of(&text) == "true",
                "resultType" => found.input_required = value.of(&text) == "\"input_required\"",
                _ => {}
            }
            Ok(())
        });
        scanned.map_err(|e| Error::Unexpected(format!("the result of the tool cannot be read: {}", e.what)))?;
        Ok(found)
    }

    /// Whether the tool says that it failed. Its content then says why.
    pub fn is_error(&self) -> bool {
        self.is_error
    }

    /// Whether the server wants input first. Only when the rounds are left to the host, see [`crate::Client::rounds`]:
    /// [`CallResult::decode`] it as [`linchpin_types::mrtr::InputRequiredResult`].
    pub fn input_required(&self) -> bool {
        self.input_required
    }

    /// The content's text blocks, joined by line feeds. Blocks of other kinds, and ones that cannot be read, are left
    /// out.
    pub fn text(&self) -> String {
        #[derive(Deserialize)]
        struct Block {
            #[serde(rename = "type", default)]
            kind: String,
            #[serde(default)]
            text: Option<String>,
        }
        let content = self.content.map_or("[]", |span| span.of(&self.text));
        let blocks: Vec<Block> = serde_json::from_str(content).unwrap_or_default();
        let texts: Vec<String> = blocks.into_iter().filter(|b| b.kind == "text").filter_map(|b| b.text).collect();
        texts.join("\n")
    }

    /// The content.
    ///
    /// # Errors
    /// When a block is of a kind that no revision has.
    pub fn content(&self) -> Result<Vec<ContentBlock>> {
        let Some(span) = self.content else { return Ok(Vec::new()) };
        serde_json::from_str(span.of(&self.text)).map_err(|e| unexpected("the content of the result", &e))
    }

    /// The structured content as JSON text, if there is any.
    pub fn structured(&self) -> Option<&str> {
        self.structured.map(|span| span.of(&self.text))
    }

    /// The structured content as a type of the host; without any, the text, read as JSON.
    ///
    /// # Errors
    /// [`Error::Tool`] with the tool's text when it failed, [`Error::Unexpected`] when the result is of another shape.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T> {
        if self.is_error {
            return Err(Error::Tool(self.text()));
        }
        match self.structured() {
            Some(json) => serde_json::from_str(json).map_err(|e| unexpected("the structured result", &e)),
            None => serde_json::from_str(&self.text()).map_err(|e| unexpected("the result's text", &e)),
        }
    }

    /// The text, or an error when the tool failed.
    ///
    /// # Errors
    /// [`Error::Tool`] with the tool's text.
    pub fn ok(self) -> Result<CallResult> {
        if self.is_error { Err(Error::Tool(self.text())) } else { Ok(self) }
    }

    /// `_meta` as JSON text, if there is any.
    pub fn meta(&self) -> Option<&str> {
        self.meta.map(|span| span.of(&self.text))
    }

    /// The whole result as JSON text, as it arrived.
    pub fn as_json(&self) -> &str {
        &self.text
    }

    /// The whole result in the words of the specification.
    ///
    /// # Errors
    /// When it is not of that shape.
    pub fn result(&self) -> Result<CallToolResult> {
        self.decode()
    }

    /// The whole result as any type.
    ///
    /// # Errors
    /// When it is not of that shape.
    pub fn decode<T: DeserializeOwned>(&self) -> Result<T> {
        serde_json::from_str(&self.text).map_err(|e| unexpected("the result", &e))
    }
}

impl fmt::Debug for CallResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// A result decoded as `T`, with the text it came from.
#[derive(Clone)]
pub struct Decoded<T> {
    value: T,
    text: ByteString,
}

impl<T: DeserializeOwned> Decoded<T> {
    pub(crate) fn of(text: ByteString) -> Result<Decoded<T>> {
        let value = serde_json::from_str(&text).map_err(|e| unexpected("the result", &e))?;
        Ok(Decoded { value, text })
    }
}

impl<T> Decoded<T> {
    /// The decoded value, without its text.
    pub fn into_inner(self) -> T {
        self.value
    }

    /// The result as JSON text, as it arrived.
    pub fn as_json(&self) -> &str {
        &self.text
    }
}

impl Decoded<ReadResourceResult> {
    /// The contents that are text, joined by line feeds.
    pub fn text(&self) -> String {
        let texts = self.value.contents.iter().filter_map(|contents| match contents {
            ResourceContents::Text(text) => Some(text.text.as_str()),
            ResourceContents::Blob(_) => None,
        });
        texts.collect::<Vec<_>>().join("\n")
    }
}

impl<T> Deref for Decoded<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> fmt::Debug for Decoded<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

pub(crate) fn unexpected(what: &str, e: &serde_json::Error) -> Error {
    Error::Unexpected(format!("{what} is of an unexpected shape: {e}"))
}
