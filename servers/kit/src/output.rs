//! Results: text for clients that only read text, structured content for others.

use crate::ToolError;
use crate::names::as_listed;
use crate::output_schema;
use crate::provenance::{Provenance, from_outside};
use linchpin::types::content::ContentBlock;
use linchpin::types::tool::CallToolResult;
use linchpin::{IntoReply, Json, Reply, ResultWriter};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use std::borrow::Cow;

/// The result of a tool: `text` has the format of the published server, `value` is `structuredContent` and defines the
/// output schema.
#[derive(Debug, Clone)]
pub struct ToolOutput<T> {
    /// The first text block; omitted if `blocks` is the whole content.
    pub text: Option<String>,
    /// Structured content; a struct.
    pub value: T,
    /// The author of `text`.
    pub provenance: Provenance,
    /// A second text block by the server: that the result is truncated, and how to continue. Tool names in it are
    /// replaced by their listed names.
    pub notice: Option<String>,
    /// Further blocks (images, embedded resources).
    pub blocks: Vec<ContentBlock>,
}

impl<T> ToolOutput<T> {
    /// Text of the server and its structured form.
    pub fn ours(text: impl Into<String>, value: T) -> Self {
        Self { text: Some(text.into()), value, provenance: Provenance::Server, notice: None, blocks: Vec::new() }
    }

    /// Third-party text and its structured form.
    pub fn outside(text: impl Into<String>, value: T) -> Self {
        Self { provenance: Provenance::ThirdParty, ..Self::ours(text, value) }
    }

    /// Blocks instead of a text.
    pub fn blocks(blocks: Vec<ContentBlock>, value: T) -> Self {
        Self { text: None, value, provenance: Provenance::ThirdParty, notice: None, blocks }
    }

    /// Adds the truncation notice, if any.
    #[must_use]
    pub fn notice(mut self, notice: Option<String>) -> Self {
        self.notice = notice;
        self
    }
}

impl<T: Serialize> ToolOutput<T> {
    /// The value as JSON indented by two spaces, as the published servers write it, and as structured content.
    ///
    /// # Errors
    /// When the value cannot be serialized, which is a bug in the server.
    pub fn json(value: T, provenance: Provenance) -> Result<Self, ToolError> {
        let text = serde_json::to_string_pretty(&value).map_err(|e| unwritable(&e))?;
        Ok(Self { provenance, ..Self::ours(text, value) })
    }

    /// Converts it to the result type of the protocol.
    ///
    /// # Errors
    /// When the value cannot be serialized, which is a bug in the server.
    pub fn into_result(self) -> Result<CallToolResult, ToolError> {
        let structured = serde_json::value::to_raw_value(&self.value).map_err(|e| unwritable(&e))?;
        let text = self.text.map(ContentBlock::text).map(|text| match self.provenance {
            Provenance::ThirdParty => from_outside(text),
            Provenance::Server => text,
        });
        let notice = self.notice.map(|notice| match as_listed(&notice) {
            Cow::Owned(said) => ContentBlock::text(said),
            Cow::Borrowed(_) => ContentBlock::text(notice),
        });
        let content = text.into_iter().chain(self.blocks).chain(notice).collect();
        Ok(CallToolResult::new(content).with_structured_content(structured))
    }
}

fn unwritable(error: &serde_json::Error) -> ToolError {
    ToolError::new(format!("Cannot serialize the result: {error}"))
}

impl<T: Serialize + JsonSchema + 'static> IntoReply for ToolOutput<T> {
    fn into_reply(self, out: ResultWriter) -> Reply {
        #[cfg(feature = "validate")]
        as_described(&self.value);
        self.into_result().into_reply(out)
    }

    fn output_schema() -> Option<Value> {
        <Json<T> as IntoReply>::output_schema().map(output_schema::reduce)
    }
}

/// With the feature `validate`, which the tests of all servers enable, a result that violates its output schema panics;
/// the caller gets an error.
#[cfg(feature = "validate")]
fn as_described<T: Serialize + JsonSchema + 'static>(value: &T) {
    use std::any::TypeId;
    use std::collections::HashMap;
    use std::sync::{Arc, LazyLock, Mutex, PoisonError};
    static KNOWN: LazyLock<Mutex<HashMap<TypeId, Arc<jsonschema::Validator>>>> = LazyLock::new(Mutex::default);

    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let validator = known.entry(TypeId::of::<T>()).or_insert_with(|| {
        let schema = <ToolOutput<T> as IntoReply>::output_schema().unwrap_or(Value::Bool(true));
        Arc::new(jsonschema::validator_for(&schema).expect("a derived schema is valid"))
    });
    let validator = Arc::clone(validator);
    drop(known);
    let value = serde_json::to_value(value).unwrap_or_default();
    let wrong: Vec<String> = validator.iter_errors(&value).map(|e| format!("{} at {}", e, e.instance_path())).collect();
    assert!(wrong.is_empty(), "{} violates its schema: {}", std::any::type_name::<T>(), wrong.join("; "));
}
