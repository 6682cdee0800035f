//! The result types of tools, written directly into the response.

use crate::downgrade;
use crate::error::{Error, Kind};
use crate::schema::{self, Described};
use linchpin_core::{Reply, ReplyKind, ResultWriter};
use linchpin_types::content::ContentBlock;
use linchpin_types::error::code;
use linchpin_types::tool::CallToolResult;
use serde::Serialize;
use serde_json::Value;
use std::borrow::Cow;
use std::fmt;

/// A value as structured content, with the same JSON as text for clients that read only text.
///
/// The tool's output schema is derived from `T`.
///
/// ```
/// # use linchpin_server::{Json, Server};
/// #[derive(serde::Serialize, schemars::JsonSchema)]
/// struct Report { highs: Vec<f64> }
///
/// let server = Server::new("weather", "1.0")
///     .tool(("forecast", "Returns a forecast."), || Json(Report { highs: vec![12.5, 14.0] }));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[doc(alias = "structuredContent")]
#[doc(alias = "structured_content")]
pub struct Json<T>(pub T);

/// Structured content with a text that differs from its JSON.
///
/// ```
/// # use linchpin_server::Structured;
/// # #[derive(serde::Serialize, schemars::JsonSchema)] struct Report { highs: Vec<f64> }
/// fn forecast() -> Structured<Report> {
///     Structured { text: "12.5 °C, then 14 °C".to_owned(), value: Report { highs: vec![12.5, 14.0] } }
/// }
/// # linchpin_server::Server::new("s", "1").tool("forecast", forecast);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Structured<T> {
    /// The text, for models and users.
    pub text: String,
    /// The value, for programs.
    pub value: T,
}

/// The result of a tool handler.
///
/// ```
/// # use linchpin_server::{Json, Server};
/// #[derive(serde::Serialize, schemars::JsonSchema)]
/// struct Sum { sum: i64 }
///
/// // Text; structured content; a result that may fail, with any error that can be printed.
/// let server = Server::new("s", "1")
///     .tool("hello", || "Hello!")
///     .tool("sum", || Json(Sum { sum: 3 }))
///     .tool("read", || std::fs::read_to_string("notes.md"));
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the answer of a tool",
    label = "not a tool answer",
    note = "return `String`, `Json<T>`, `ContentBlock`, `Vec<ContentBlock>`, `()`, or `Result<_, E>` of one of these; wrap structured data in `Json`"
)]
pub trait IntoReply {
    /// Writes the response.
    fn into_reply(self, out: ResultWriter) -> Reply;

    /// Returns the schema of the structured content, if there is any.
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

/// An error result for the model.
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

impl IntoReply for crate::text_arg::Text {
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
        CallToolResult::new(self).into_reply(out)
    }
}

impl IntoReply for CallToolResult {
    fn into_reply(self, mut out: ResultWriter) -> Reply {
        let features = out.features();
        let kind = if self.is_error == Some(true) { ReplyKind::ToolError } else { ReplyKind::Complete };
        let mut content: Vec<_> = self.content.into_iter().map(|block| downgrade::content(block, features)).collect();
        if let Some(value) = self.structured_content.as_deref().filter(|_| content.is_empty()) {
            // For clients that read only text, and revisions without structured content.
            content.push(ContentBlock::text(value.get()));
        }
        out.key("content");
        if let Err(e) = out.serialize(&content) {
            return unwritable(out, &e);
        }
        if let Some(value) = self
            .structured_content
            .filter(|v| features.structured && (features.structured_any || v.get().starts_with('{')))
        {
            out.key("structuredContent");
            out.push(value.get().as_bytes());
        }
        if kind == ReplyKind::ToolError {
            out.key("isError");
            out.push(b"true");
        }
        let meta = self.meta.and_then(|m| serde_json::to_string(&m).ok());
        // Strip one brace at each end only: the last member may be an object itself.
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

/// Serialises once; the text is quoted from the bytes just written.
fn structured<T: Serialize>(mut out: ResultWriter, value: &T, as_text: Option<&str>) -> Reply {
    let features = out.features();
    out.key("structuredContent");
    let start = out.mark();
    if let Err(e) = out.serialize(value) {
        return unwritable(out, &e);
    }
    let end = out.mark();
    let object = out.written(start, end).first() == Some(&b'{');
    if !features.structured || !(object || features.structured_any) {
        // The revision has no structured content: keep only the text.
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
    out.error(code::INTERNAL_ERROR, "cannot serialize the result", None)
}

impl<T: IntoReply, E: fmt::Display + Send + 'static> IntoReply for Result<T, E> {
    fn into_reply(self, out: ResultWriter) -> Reply {
        match self {
            Ok(answer) => answer.into_reply(out),
            Err(error) => failed(Error::from_printable(error), out),
        }
    }

    fn output_schema() -> Option<Value> {
        T::output_schema()
    }
}

fn failed(error: Error, out: ResultWriter) -> Reply {
    error.log_chain();
    match error.into_kind() {
        (Kind::Protocol(code, data), message) => {
            let data = data.as_ref().map(Value::to_string);
            out.error(code, &message, data.as_deref())
        }
        (Kind::Result(answer), _) => answer.into_reply(out),
        (Kind::Tool | Kind::Internal, message) => failure(out, &message),
    }
}
