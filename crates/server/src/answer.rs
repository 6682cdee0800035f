//! What a tool may answer with, and how it is written: once, straight into the response.

use crate::error::{Error, Kind};
use crate::schema::{self, Described};
use base64::Engine as _;
use linchpin_proto::{Reply, ReplyKind, ResultWriter, fit};
use linchpin_types::content::ContentBlock;
use linchpin_types::error::code;
use linchpin_types::tool::CallToolResult;
use serde::Serialize;
use serde_json::Value;
use std::any::Any;
use std::borrow::Cow;
use std::fmt;

/// A piece of an answer: text, an image, audio, a resource or a link to one.
pub type Content = ContentBlock;

/// A whole tool result, for when the parts must be chosen one by one.
pub type Answer = CallToolResult;

/// A value as structured content, with the same JSON as text for clients that read only text. The tool's output schema
/// is derived from `T`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Json<T>(pub T);

/// Structured content whose text form is something else than its JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Structured<T> {
    /// What models and people read.
    pub text: String,
    /// What programs read.
    pub value: T,
}

/// An answer of a tool.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the answer of a tool",
    label = "not a tool answer",
    note = "return `String`, `Json<T>`, `Content`, `Vec<Content>`, `()`, or `Result<_, E>` of one of these; wrap structured data in `Json`"
)]
pub trait IntoReply {
    /// Writes the answer.
    fn into_reply(self, out: ResultWriter) -> Reply;

    /// The schema of the structured content, if there is any.
    fn output_schema() -> Option<Value> {
        None
    }
}

fn text(mut out: ResultWriter, text: &str, kind: ReplyKind) -> Reply {
    out.key("content");
    out.push(b"[{\"type\":\"text\",\"text\":");
    out.string(text);
    out.push(b"}]");
    if kind == ReplyKind::ToolError {
        out.key("isError");
        out.push(b"true");
    }
    out.finish(kind)
}

/// A failure for the model to read.
pub(crate) fn failure(out: ResultWriter, message: &str) -> Reply {
    text(out, message, ReplyKind::ToolError)
}

impl IntoReply for String {
    fn into_reply(self, out: ResultWriter) -> Reply {
        text(out, &self, ReplyKind::Complete)
    }
}

impl IntoReply for &'static str {
    fn into_reply(self, out: ResultWriter) -> Reply {
        text(out, self, ReplyKind::Complete)
    }
}

impl IntoReply for Cow<'static, str> {
    fn into_reply(self, out: ResultWriter) -> Reply {
        text(out, &self, ReplyKind::Complete)
    }
}

impl IntoReply for crate::text::Text {
    fn into_reply(self, out: ResultWriter) -> Reply {
        text(out, &self, ReplyKind::Complete)
    }
}

impl IntoReply for () {
    fn into_reply(self, mut out: ResultWriter) -> Reply {
        out.key("content");
        out.push(b"[]");
        out.finish(ReplyKind::Complete)
    }
}

impl IntoReply for ContentBlock {
    fn into_reply(self, out: ResultWriter) -> Reply {
        vec![self].into_reply(out)
    }
}

impl IntoReply for Vec<ContentBlock> {
    fn into_reply(self, out: ResultWriter) -> Reply {
        CallToolResult { content: self, ..CallToolResult::default() }.into_reply(out)
    }
}

impl IntoReply for CallToolResult {
    fn into_reply(self, mut out: ResultWriter) -> Reply {
        let wire = out.wire();
        let kind = if self.is_error == Some(true) { ReplyKind::ToolError } else { ReplyKind::Complete };
        let mut content: Vec<_> = self.content.into_iter().map(|block| fit::content(block, wire)).collect();
        if let Some(value) = self.structured_content.as_deref().filter(|_| content.is_empty()) {
            // For clients that read only text, and those whose revision has nothing else.
            content.push(ContentBlock::text(value.get()));
        }
        out.key("content");
        if let Err(e) = out.serialize(&content) {
            return unwritable(out, &e);
        }
        if let Some(value) =
            self.structured_content.filter(|v| wire.structured && (wire.structured_any || v.get().starts_with('{')))
        {
            out.key("structuredContent");
            out.push(value.get().as_bytes());
        }
        if kind == ReplyKind::ToolError {
            out.key("isError");
            out.push(b"true");
        }
        let meta = self.meta.and_then(|m| serde_json::to_string(&m).ok());
        // One brace at each end: the last member may be an object itself.
        if let Some(members) =
            meta.as_deref().and_then(|m| m.strip_prefix('{')?.strip_suffix('}')).filter(|m| !m.is_empty())
        {
            out.meta(members.as_bytes());
        }
        out.finish(kind)
    }
}

impl<T: Serialize + Described> IntoReply for Json<T> {
    fn into_reply(self, out: ResultWriter) -> Reply {
        structured(out, &self.0, None)
    }

    fn output_schema() -> Option<Value> {
        Some(schema::of_answer::<T>())
    }
}

impl<T: Serialize + Described> IntoReply for Structured<T> {
    fn into_reply(self, out: ResultWriter) -> Reply {
        structured(out, &self.value, Some(&self.text))
    }

    fn output_schema() -> Option<Value> {
        Some(schema::of_answer::<T>())
    }
}

/// Serialises once; the text form is made of the bytes just written.
fn structured<T: Serialize>(mut out: ResultWriter, value: &T, as_text: Option<&str>) -> Reply {
    let wire = out.wire();
    out.key("structuredContent");
    let start = out.mark();
    if let Err(e) = out.serialize(value) {
        return unwritable(out, &e);
    }
    let end = out.mark();
    let object = out.written(start, end).first() == Some(&b'{');
    if !wire.structured || !(object || wire.structured_any) {
        // This revision has no place for it: keep the text alone.
        let json = String::from_utf8(out.written(start, end).to_vec()).unwrap_or_default();
        out.restart();
        return text(out, as_text.unwrap_or(&json), ReplyKind::Complete);
    }
    out.key("content");
    out.push(b"[{\"type\":\"text\",\"text\":");
    match as_text {
        Some(text) => out.string(text),
        None => out.quote_from(start, end),
    }
    out.push(b"}]");
    out.finish(ReplyKind::Complete)
}

fn unwritable(out: ResultWriter, e: &serde_json::Error) -> Reply {
    tracing::error!(error = %e, "an answer could not be serialised");
    out.error(code::INTERNAL_ERROR, "the answer could not be written as JSON", None)
}

impl<T: IntoReply, E: fmt::Display + Send + 'static> IntoReply for Result<T, E> {
    fn into_reply(self, out: ResultWriter) -> Reply {
        match self {
            Ok(answer) => answer.into_reply(out),
            Err(e) => match (&e as &dyn Any).downcast_ref::<Error>() {
                Some(error) => own_error(error, out),
                None => failure(out, &e.to_string()),
            },
        }
    }

    fn output_schema() -> Option<Value> {
        T::output_schema()
    }
}

fn own_error(error: &Error, out: ResultWriter) -> Reply {
    error.log_chain();
    match error.kind() {
        Kind::Protocol(code, data) => {
            let data = data.as_ref().map(Value::to_string);
            out.error(*code, &error.to_string(), data.as_deref())
        }
        Kind::Answer(answer) => answer.clone().into_reply(out),
        _ => failure(out, &error.to_string()),
    }
}

/// Binary data as the wire wants it.
pub(crate) fn base64(bytes: &[u8]) -> String {
    base64::engine::general_purpose::STANDARD.encode(bytes)
}
