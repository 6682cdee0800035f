//! Tools: what a model may call.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::content::{ContentBlock, Icon};
use crate::meta::Meta;
use crate::mrtr::InputResponses;
use crate::page::{CacheScope, Cursor, ResultType};
use crate::read::{eq_by_json, lenient_ms, null_is_default, null_is_some};
use crate::setters::setters;

/// A tool, as a server lists it.
///
/// ```
/// use linchpin_types::tool::{Tool, ToolAnnotations};
/// use serde_json::json;
///
/// let schema = serde_json::value::to_raw_value(&json!({ "type": "object" }))?;
/// let tool = Tool::new("list", schema)
///     .with_description("Lists all files.")
///     .with_annotations(ToolAnnotations::new().with_read_only_hint(true))
///     .with_meta(json!({ "example.com/cost": 1 }));
/// assert_eq!(
///     serde_json::to_string(&tool)?,
///     r#"{"name":"list","description":"Lists all files.","inputSchema":{"type":"object"},"#.to_owned()
///         + r#""annotations":{"readOnlyHint":true},"_meta":{"example.com/cost":1}}"#,
/// );
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Tool {
    /// The name, for programs.
    pub name: String,
    /// The display name (2025-06-18 and later).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What it does, for models.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Its icons (2025-11-25 and later).
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
    /// The `_meta` object (2025-06-18 and later).
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl Default for Tool {
    /// A tool without a name that takes any object.
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
    /// A tool of this name, whose arguments have this JSON Schema.
    pub fn new(name: impl Into<String>, input_schema: Box<RawValue>) -> Self {
        Tool { name: name.into(), input_schema, ..Default::default() }
    }

    /// The display name: the title, else that of its annotations (2025-03-26 has only that one), else the name.
    pub fn display_title(&self) -> &str {
        let of_annotations = || self.annotations.as_ref().and_then(|annotations| annotations.title.as_deref());
        self.title.as_deref().or_else(of_annotations).unwrap_or(&self.name)
    }
}

setters!(Tool {
    /// Sets the display name (2025-06-18 and later).
    with_title = some title: String;
    /// Sets the description.
    with_description = some description: String;
    /// Sets the icons (2025-11-25 and later).
    with_icons = list icons: Icon;
    /// Sets the JSON Schema of its structured content (2025-06-18 and later).
    with_output_schema = some output_schema: Box<RawValue>;
    /// Sets the annotations (2025-03-26 and later).
    with_annotations = some annotations: ToolAnnotations;
    /// Sets how the tool may be run (2025-11-25 only).
    with_execution = some execution: ToolExecution;
    /// Sets `_meta`.
    with_meta = meta meta;
});

/// The smallest schema a tool may have; also what a tool that forgot its schema is read as.
fn any_object() -> Box<RawValue> {
    RawValue::from_string(r#"{"type":"object"}"#.to_owned()).expect("the literal is JSON")
}

/// Hints about what a tool does (2025-03-26 and later). Nobody should trust those of a server they do not trust.
///
/// ```
/// use linchpin_types::tool::ToolAnnotations;
///
/// let hints = ToolAnnotations::new().with_destructive_hint(false).with_idempotent_hint(true).with_open_world_hint(false);
/// assert_eq!(
///     serde_json::to_string(&hints).unwrap(),
///     r#"{"destructiveHint":false,"idempotentHint":true,"openWorldHint":false}"#,
/// );
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ToolAnnotations {
    /// The display name; `Tool::title` goes first where there is one.
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

impl ToolAnnotations {
    /// No hints yet.
    pub fn new() -> Self {
        Self::default()
    }
}

setters!(ToolAnnotations {
    /// Sets the display name.
    with_title = some title: String;
    /// Sets whether the tool is read-only.
    with_read_only_hint = some read_only_hint: bool;
    /// Sets whether the tool may be destructive.
    with_destructive_hint = some destructive_hint: bool;
    /// Sets whether a repeated call has no further effect.
    with_idempotent_hint = some idempotent_hint: bool;
    /// Sets whether the tool interacts with an open world.
    with_open_world_hint = some open_world_hint: bool;
});

/// How a tool may be run (2025-11-25 only).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ToolExecution {
    /// Whether it may run as a task. Absent means forbidden.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_support: Option<TaskSupport>,
}

/// Whether a tool may run as a task (2025-11-25 only).
///
/// ```
/// use linchpin_types::tool::{TaskSupport, ToolExecution};
///
/// assert_eq!(ToolExecution::from(TaskSupport::Optional).task_support, Some(TaskSupport::Optional));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum TaskSupport {
    /// It may not.
    Forbidden,
    /// It may.
    Optional,
    /// It must.
    Required,
}

impl From<TaskSupport> for ToolExecution {
    fn from(support: TaskSupport) -> Self {
        ToolExecution { task_support: Some(support) }
    }
}

/// One page of a server's tools.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ListToolsResult {
    /// The tools.
    pub tools: Vec<Tool>,
    /// Where the next page starts; absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<Cursor>,
    /// How long the result may be kept, in milliseconds from when it is received (2026-07-28, required there).
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "lenient_ms")]
    pub ttl_ms: Option<u64>,
    /// Who may share the kept result (2026-07-28, required there).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_scope: Option<CacheScope>,
    /// Whether the request is complete (2026-07-28, required there).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_type: Option<ResultType>,
    /// The `_meta` object.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl ListToolsResult {
    /// These tools, the last of the list.
    pub fn new(tools: impl IntoIterator<Item = Tool>) -> Self {
        ListToolsResult { tools: tools.into_iter().collect(), ..Default::default() }
    }
}

setters!(ListToolsResult {
    /// Sets the cursor of the next page.
    with_next_cursor = some next_cursor: Cursor;
    /// Sets how long it may be cached, in milliseconds (2026-07-28).
    with_ttl_ms = some ttl_ms: u64;
    /// Sets the cache scope (2026-07-28).
    with_cache_scope = some cache_scope: CacheScope;
    /// Sets `_meta`.
    with_meta = meta meta;
});

/// The parameters of `tools/call`.
///
/// ```
/// use linchpin_types::tool::CallToolRequestParams;
/// use serde_json::json;
///
/// let arguments = serde_json::value::to_raw_value(&json!({ "a": 1, "b": 2 }))?;
/// let params = CallToolRequestParams::new("add").with_arguments(arguments);
/// assert_eq!(serde_json::to_string(&params)?, r#"{"name":"add","arguments":{"a":1,"b":2}}"#);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
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
    /// Run it as a task (2025-11-25 only): a [`TaskMetadata`](crate::task::experimental::TaskMetadata). Raw, because the
    /// other revisions must ignore it whatever it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<Box<RawValue>>,
    /// The `_meta` object (required in 2026-07-28).
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl CallToolRequestParams {
    /// A call of this tool, without arguments.
    pub fn new(name: impl Into<String>) -> Self {
        CallToolRequestParams { name: name.into(), ..Default::default() }
    }
}

setters!(CallToolRequestParams {
    /// Sets the arguments, an object.
    with_arguments = some arguments: Box<RawValue>;
    /// Sets `_meta`.
    with_meta = meta meta;
});

/// What a tool answered.
///
/// ```
/// use linchpin_types::content::ContentBlock;
/// use linchpin_types::tool::CallToolResult;
///
/// let answer = CallToolResult::text("12 degrees");
/// let chart = CallToolResult::new(vec![ContentBlock::text("Today:"), ContentBlock::image(b"\x89PNG", "image/png")]);
/// let failure = CallToolResult::error("no such city");
/// assert_eq!(serde_json::to_string(&answer).unwrap(), r#"{"content":[{"type":"text","text":"12 degrees"}]}"#);
/// # assert_eq!((chart.content.len(), failure.is_error), (2, Some(true)));
/// ```
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
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
    /// The `_meta` object.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl CallToolResult {
    /// A success that says this.
    pub fn new(content: Vec<ContentBlock>) -> Self {
        CallToolResult { content, ..Default::default() }
    }

    /// A success that says this text.
    pub fn text(text: impl Into<String>) -> Self {
        CallToolResult::new(vec![ContentBlock::text(text)])
    }

    /// A failure that the model can read.
    pub fn error(text: impl Into<String>) -> Self {
        CallToolResult { content: vec![ContentBlock::text(text)], is_error: Some(true), ..Default::default() }
    }
}

setters!(CallToolResult {
    /// Sets the structured content (2025-06-18 and later).
    with_structured_content = some structured_content: Box<RawValue>;
    /// Sets whether the call failed.
    with_is_error = some is_error: bool;
    /// Sets `_meta`.
    with_meta = meta meta;
});

eq_by_json!(Tool, CallToolRequestParams, CallToolResult);
