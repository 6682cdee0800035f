//! Tools: what a model may call.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::content::{ContentBlock, Icon};
use crate::meta::Meta;
use crate::mrtr::InputResponses;
use crate::page::{CacheScope, Cursor, ResultType};
use crate::read::{eq_by_json, null_is_default, null_is_some};

/// A tool, as a server lists it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Tool {
    /// Its name, for programs.
    pub name: String,
    /// Its name, for people (2025-06-18 and later).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What it does, for models.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Pictures for it (2025-11-25 and later).
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    pub icons: Vec<Icon>,
    /// The JSON Schema of its arguments; its `type` is `object`.
    #[serde(default = "any_object")]
    pub input_schema: Box<RawValue>,
    /// The JSON Schema of its structured content (2025-06-18 and later; of `type` `object` before 2026-07-28).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Box<RawValue>>,
    /// Hints about what it does (2025-03-26 and later).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<ToolAnnotations>,
    /// Whether it may run as a task (2025-11-25 only).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution: Option<ToolExecution>,
    /// Anything else (2025-06-18 and later).
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl Default for Tool {
    /// A tool without a name that takes any object: a start for struct update.
    fn default() -> Self {
        Tool {
            name: String::new(),
            title: None,
            description: None,
            icons: Vec::new(),
            input_schema: any_object(),
            output_schema: None,
            annotations: None,
            execution: None,
            meta: None,
        }
    }
}

impl Tool {
    /// Its name, for people: the title, else that of its annotations (2025-03-26 has only that one), else the name.
    pub fn display_title(&self) -> &str {
        let of_annotations = || self.annotations.as_ref().and_then(|annotations| annotations.title.as_deref());
        self.title.as_deref().or_else(of_annotations).unwrap_or(&self.name)
    }
}

/// The smallest schema a tool may have; also what a tool that forgot its schema is read as.
fn any_object() -> Box<RawValue> {
    RawValue::from_string(r#"{"type":"object"}"#.to_owned()).expect("the literal is JSON")
}

/// Hints about what a tool does (2025-03-26 and later). Nobody should trust those of a server they do not trust.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolAnnotations {
    /// Its name, for people; `Tool::title` goes first where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// It changes nothing. Absent means false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_only_hint: Option<bool>,
    /// It may destroy, not only add. Absent means true. Says nothing about read-only tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destructive_hint: Option<bool>,
    /// Calling it again with the same arguments changes nothing more. Absent means false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotent_hint: Option<bool>,
    /// It deals with an open world (the web), not a closed one (a memory). Absent means true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_world_hint: Option<bool>,
}

/// How a tool may be run (2025-11-25 only).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolExecution {
    /// Whether it may run as a task. Absent means forbidden.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_support: Option<TaskSupport>,
}

/// Whether a tool may run as a task (2025-11-25 only).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TaskSupport {
    /// It may not.
    Forbidden,
    /// It may.
    Optional,
    /// It must.
    Required,
}

/// One page of a server's tools.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ListToolsResult {
    /// The tools.
    pub tools: Vec<Tool>,
    /// Where the next page starts; absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<Cursor>,
    /// How long the result may be kept, in milliseconds from when it is received (2026-07-28, required there).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_ms: Option<u64>,
    /// Who may share the kept result (2026-07-28, required there).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_scope: Option<CacheScope>,
    /// Whether the request is complete (2026-07-28, required there).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_type: Option<ResultType>,
    /// Anything else.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

/// The parameters of `tools/call`.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CallToolRequestParams {
    /// Which tool.
    pub name: String,
    /// The arguments, an object; absent means none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Box<RawValue>>,
    /// Answers to the input requests of the previous round (2026-07-28).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_responses: Option<InputResponses>,
    /// What the server said at the previous round, unchanged (2026-07-28).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_state: Option<String>,
    /// Run it as a task (2025-11-25 only).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<Box<RawValue>>,
    /// Anything else (required in 2026-07-28).
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

/// What a tool answered.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CallToolResult {
    /// The answer, for people and models. Always written; a peer that leaves it out is read as saying nothing.
    #[serde(default, deserialize_with = "null_is_default")]
    pub content: Vec<ContentBlock>,
    /// The answer, for programs (2025-06-18 and later): an object before 2026-07-28, any JSON since. `null` is kept
    /// apart from absent, because in 2026-07-28 it is an answer.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "null_is_some")]
    pub structured_content: Option<Box<RawValue>>,
    /// The tool failed and `content` says why. Absent means it did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_error: Option<bool>,
    /// Whether the request is complete (2026-07-28, required there).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_type: Option<ResultType>,
    /// Anything else.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl CallToolResult {
    /// A success that says this.
    pub fn new(content: Vec<ContentBlock>) -> Self {
        CallToolResult { content, ..Default::default() }
    }

    /// A failure that the model can read.
    pub fn error(text: impl Into<String>) -> Self {
        CallToolResult { content: vec![ContentBlock::text(text)], is_error: Some(true), ..Default::default() }
    }
}

eq_by_json!(Tool, CallToolRequestParams, CallToolResult);
