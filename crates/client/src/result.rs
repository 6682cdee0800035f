//! Results, decoded on demand.

use crate::Result;
use crate::error::{Error, ErrorKind};
use crate::response::ResultText;
use bytestring::ByteString;
use linchpin_core::json::Span;
use linchpin_core::message::ResultMembers;
use linchpin_types::content::{ContentBlock, ResourceContents};
use linchpin_types::resource::ReadResourceResult;
use linchpin_types::tool::CallToolResult;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use std::fmt;
use std::ops::Deref;

/// A `CallToolResult` as received. Each method decodes only what it needs; [`RawCallToolResult::result`] decodes all of
/// it.
///
/// ```
/// # use linchpin_client::{RawCallToolResult, Result};
/// # #[derive(serde::Deserialize)] struct Report { highs: Vec<f64> }
/// fn highs(result: &RawCallToolResult) -> Result<Vec<f64>> {
///     if result.is_error() {
///         eprintln!("the tool failed: {}", result.text());
///     }
///     // Structured content, or the text read as JSON; `Err` if the tool failed.
///     Ok(result.json::<Report>()?.highs)
/// }
/// ```
#[derive(Clone)]
#[doc(alias = "CallToolResult")]
pub struct RawCallToolResult {
    text: ByteString,
    content: Option<Span>,
    structured: Option<Span>,
    meta: Option<Span>,
    is_error: bool,
    input_required: bool,
}

impl RawCallToolResult {
    pub(crate) fn read(result: ResultText) -> Result<RawCallToolResult> {
        let ResultText { text, members } = result;
        if !text.starts_with('{') {
            return Err(Error::new(ErrorKind::InvalidResponse, "the result of the tool is not an object"));
        }
        let is = |span: Option<Span>, value: &str| span.is_some_and(|span| span.of(&text) == value);
        Ok(RawCallToolResult {
            content: members.content,
            structured: members.structured_content,
            meta: members.meta,
            is_error: is(members.is_error, "true"),
            input_required: is(members.result_type, "\"input_required\""),
            text,
        })
    }

    /// Reads a result that is part of other JSON.
    pub(crate) fn of(result: &RawValue) -> Result<RawCallToolResult> {
        let text = ByteString::from(result.get().to_owned());
        let members = members_of(&text)?;
        RawCallToolResult::read(ResultText { text, members })
    }

    /// Returns whether the tool failed. The content then describes the error.
    pub fn is_error(&self) -> bool {
        self.is_error
    }

    /// Returns whether the server requires input first.
    ///
    /// This happens only if [`crate::Client::multi_round_trip`] is off. Use [`RawCallToolResult::decode`] to decode it
    /// as [`linchpin_types::mrtr::InputRequiredResult`].
    pub fn input_required(&self) -> bool {
        self.input_required
    }

    /// Returns the text blocks of the content, joined by line feeds.
    ///
    /// Other blocks are omitted. The text is empty if a block is malformed.
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

    /// Returns the content.
    ///
    /// # Errors
    /// If a block has an unknown type or is malformed.
    pub fn content(&self) -> Result<Vec<ContentBlock>> {
        let Some(span) = self.content else { return Ok(Vec::new()) };
        serde_json::from_str(span.of(&self.text)).map_err(|e| unexpected("the content of the result", e))
    }

    /// Returns the structured content as JSON text, if there is any.
    pub fn structured(&self) -> Option<&str> {
        self.structured.map(|span| span.of(&self.text))
    }

    /// Decodes the structured content or, if there is none, the text as JSON.
    ///
    /// # Errors
    /// [`ErrorKind::Tool`] with the tool's text if it failed, [`ErrorKind::InvalidResponse`] if the result has another
    /// shape.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T> {
        if self.is_error {
            return Err(Error::tool(&self.text()));
        }
        match self.structured() {
            Some(json) => serde_json::from_str(json).map_err(|e| unexpected("the structured result", e)),
            None => serde_json::from_str(&self.text()).map_err(|e| unexpected("the result's text", e)),
        }
    }

    /// Returns the result, or an error if the tool failed.
    ///
    /// # Errors
    /// [`ErrorKind::Tool`] with the tool's text.
    pub fn ok(self) -> Result<RawCallToolResult> {
        if self.is_error { Err(Error::tool(&self.text())) } else { Ok(self) }
    }

    /// Returns `_meta` as JSON text, if there is any.
    pub fn meta(&self) -> Option<&str> {
        self.meta.map(|span| span.of(&self.text))
    }

    /// Returns the whole result as JSON text, as received.
    pub fn as_json(&self) -> &str {
        &self.text
    }

    /// Decodes the whole result as the type of the specification.
    ///
    /// # Errors
    /// If it has another shape.
    pub fn result(&self) -> Result<CallToolResult> {
        self.decode()
    }

    /// Decodes the whole result as any type.
    ///
    /// # Errors
    /// If it has another shape.
    pub fn decode<T: DeserializeOwned>(&self) -> Result<T> {
        serde_json::from_str(&self.text).map_err(|e| unexpected("the result", e))
    }
}

impl fmt::Debug for RawCallToolResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// A result decoded as `T`, with its JSON text. Derefs to `T`.
///
/// ```
/// # use linchpin_client::{Connection, Result};
/// async fn notes(server: &Connection) -> Result<()> {
///     let read = server.read("notes://all").await?;
///     println!("{} contents: {}", read.contents.len(), read.text());
///     println!("as received: {}", read.as_json());
///     Ok(())
/// }
/// ```
#[derive(Clone)]
pub struct Decoded<T> {
    value: T,
    text: ByteString,
}

impl<T: DeserializeOwned> Decoded<T> {
    pub(crate) fn of(text: ByteString) -> Result<Decoded<T>> {
        let value = serde_json::from_str(&text).map_err(|e| unexpected("the result", e))?;
        Ok(Decoded { value, text })
    }
}

impl<T> Decoded<T> {
    /// Returns the decoded value.
    pub fn into_inner(self) -> T {
        self.value
    }

    /// Returns the result as JSON text, as received.
    pub fn as_json(&self) -> &str {
        &self.text
    }
}

impl Decoded<ReadResourceResult> {
    /// Returns the text contents, joined by line feeds.
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

/// Finds the members of a result that did not come as the result of a response.
pub(crate) fn members_of(text: &str) -> Result<ResultMembers> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Found<'a> {
        #[serde(borrow, default)]
        content: Option<&'a RawValue>,
        #[serde(borrow, default, deserialize_with = "present")]
        structured_content: Option<&'a RawValue>,
        #[serde(borrow, default)]
        is_error: Option<&'a RawValue>,
        #[serde(borrow, default, rename = "_meta")]
        meta: Option<&'a RawValue>,
    }
    let found: Found<'_> = serde_json::from_str(text).map_err(|e| unexpected("the result of the task", e))?;
    let span = |raw: Option<&RawValue>| {
        let start = (raw?.get().as_ptr() as usize).checked_sub(text.as_ptr() as usize)?;
        Some(Span::new(start, start + raw?.get().len()))
    };
    Ok(ResultMembers::default().with(|members| {
        members.content = span(found.content);
        members.structured_content = span(found.structured_content);
        members.is_error = span(found.is_error);
        members.meta = span(found.meta);
    }))
}

/// Keeps a `null` that is there apart from a member that is not.
fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> std::result::Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

pub(crate) fn unexpected(what: &str, e: serde_json::Error) -> Error {
    Error::with_source(ErrorKind::InvalidResponse, format!("{what} is of an unexpected shape: {e}"), e)
}
