//! Tools: functions that a model can call.

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
/// # Example
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
    /// The name, intended for programmatic use.
    pub name: String,
    /// The display name (2025-06-18 and later).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The description for models.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The icons (2025-11-25 and later).
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    pub icons: Vec<Icon>,
    /// The JSON Schema of the arguments; its `type` is `object`.
    #[serde(default = "any_object")]
    pub input_schema: Box<RawValue>,
    /// The JSON Schema of the structured content (2025-06-18 and later; its `type` is `object` before 2026-07-28).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Box<RawValue>>,
    /// Hints about the behavior of the tool (2025-03-26 and later).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<ToolAnnotations>,
    /// How the tool may be run (2025-11-25 only).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution: Option<ToolExecution>,
    /// The `_meta` object (2025-06-18 and later).
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl Default for Tool {
    /// Creates a tool without a name that takes any object as its arguments.
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
    /// Creates a tool with this name, whose arguments have this JSON Schema.
    pub fn new(name: impl Into<String>, input_schema: Box<RawValue>) -> Self {
        Tool { name: name.into(), input_schema, ..Default::default() }
    }

    /// Returns the display name: the title, otherwise the title in the annotations (2025-03-26 has only this one),
    /// otherwise the name.
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
    /// Sets the JSON Schema of the structured content (2025-06-18 and later).
    with_output_schema = some output_schema: Box<RawValue>;
    /// Sets the annotations (2025-03-26 and later).
    with_annotations = some annotations: ToolAnnotations;
    /// Sets how the tool may be run (2025-11-25 only).
    with_execution = some execution: ToolExecution;
    /// Sets `_meta`.
    with_meta = meta meta;
});

/// The smallest valid schema of a tool. It also replaces a missing schema when a tool is deserialized.
fn any_object() -> Box<RawValue> {
    RawValue::from_string(r#"{"type":"object"}"#.to_owned()).expect("the literal is JSON")
}

/// Hints about the behavior of a tool (2025-03-26 and later). Do not rely on the hints of a server that you do not
/// trust.
///
/// # Example
///
/// ```
/// use linchpin_types::tool::ToolAnnotations;
///
/// let hints = ToolAnnotations::new()
///     .with_destructive_hint(false)
///     .with_idempotent_hint(true)
///     .with_open_world_hint(false);
/// assert_eq!(
///     serde_json::to_string(&hints).unwrap(),
///     r#"{"destructiveHint":false,"idempotentHint":true,"openWorldHint":false}"#,
/// );
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ToolAnnotations {
    /// The display name; [`Tool::title`] takes precedence over it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The tool does not modify its environment. Absent means false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_only_hint: Option<bool>,
    /// The tool may make destructive changes, not only additive ones. Absent means true. It has no meaning for
    /// read-only tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destructive_hint: Option<bool>,
    /// Another call with the same arguments has no additional effect. Absent means false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotent_hint: Option<bool>,
    /// The tool interacts with an open world (such as the web), not a closed one (such as a memory). Absent means true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_world_hint: Option<bool>,
}

impl ToolAnnotations {
    /// Creates annotations without any hints.
    pub fn new() -> Self {
        Self::default()
    }
}

setters!(ToolAnnotations {
    /// Sets the display name.
    with_title = some title: String;
    /// Sets whether the tool only reads, without modifying its environment.
    with_read_only_hint = some read_only_hint: bool;
    /// Sets whether the tool may make destructive changes.
    with_destructive_hint = some destructive_hint: bool;
    /// Sets whether a repeated call has no further effect.
    with_idempotent_hint = some idempotent_hint: bool;
    /// Sets whether the tool interacts with an open world.
    with_open_world_hint = some open_world_hint: bool;
});

/// How a tool may be run (2025-11-25 only).
///
/// # Example
///
/// ```
/// use linchpin_types::tool::{TaskSupport, ToolExecution};
///
/// let execution = ToolExecution::from(TaskSupport::Required);
/// assert_eq!(serde_json::to_string(&execution).unwrap(), r#"{"taskSupport":"required"}"#);
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ToolExecution {
    /// Whether the tool may run as a task. Absent means [`TaskSupport::Forbidden`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_support: Option<TaskSupport>,
}

/// Whether a tool may run as a task (2025-11-25 only).
///
/// # Example
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
    /// The tool may not run as a task.
    Forbidden,
    /// The tool may run as a task.
    Optional,
    /// The tool must run as a task.
    Required,
}

impl From<TaskSupport> for ToolExecution {
    fn from(support: TaskSupport) -> Self {
        ToolExecution { task_support: Some(support) }
    }
}

/// The result of `tools/list`: one page of a server's tools.
///
/// # Example
///
/// ```
/// use linchpin_types::RawValue;
/// use linchpin_types::tool::{ListToolsResult, Tool};
///
/// let schema = RawValue::from_string(r#"{"type":"object"}"#.to_owned()).unwrap();
/// let page = ListToolsResult::new([Tool::new("list", schema)]).with_next_cursor("page-2");
/// assert_eq!(
///     serde_json::to_string(&page).unwrap(),
///     r#"{"tools":[{"name":"list","inputSchema":{"type":"object"}}],"nextCursor":"page-2"}"#,
/// );
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ListToolsResult {
    /// The tools.
    pub tools: Vec<Tool>,
    /// The cursor of the next page; absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<Cursor>,
    /// How long the result may be cached, in milliseconds from its receipt (2026-07-28, required there).
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "lenient_ms")]
    pub ttl_ms: Option<u64>,
    /// Who may share the cached result (2026-07-28, required there).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_scope: Option<CacheScope>,
    /// The type of this result (2026-07-28, required there).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_type: Option<ResultType>,
    /// The `_meta` object.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl ListToolsResult {
    /// Creates the last page of a list, with these tools.
    pub fn new(tools: impl IntoIterator<Item = Tool>) -> Self {
        ListToolsResult { tools: tools.into_iter().collect(), ..Default::default() }
    }
}

setters!(ListToolsResult {
    /// Sets the cursor of the next page.
    with_next_cursor = some next_cursor: Cursor;
    /// Sets how long the result may be cached, in milliseconds (2026-07-28).
    with_ttl_ms = some ttl_ms: u64;
    /// Sets the cache scope (2026-07-28).
    with_cache_scope = some cache_scope: CacheScope;
    /// Sets `_meta`.
    with_meta = meta meta;
});

/// The parameters of `tools/call`.
///
/// # Example
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
    /// The name of the tool.
    pub name: String,
    /// The arguments, an object. Absent means that there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Box<RawValue>>,
    /// The responses to the input requests of the previous result (2026-07-28).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_responses: Option<InputResponses>,
    /// The `requestState` of the previous result, unchanged (2026-07-28).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_state: Option<String>,
    /// Asks the server to run the call as a task (2025-11-25 only): a
    /// [`TaskMetadata`](crate::task::experimental::TaskMetadata). It is raw JSON, because the other revisions must
    /// ignore it, even if it is invalid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<Box<RawValue>>,
    /// The `_meta` object (required in 2026-07-28).
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl CallToolRequestParams {
    /// Creates the parameters for a call of this tool, without arguments.
    pub fn new(name: impl Into<String>) -> Self {
        CallToolRequestParams { name: name.into(), ..Default::default() }
    }
}

setters!(CallToolRequestParams {
    /// Sets the answers of the user or client to the requests of an `input_required` result (2026-07-28).
    with_input_responses = some input_responses: InputResponses;
    /// Sets the `requestState` of that result, unchanged (2026-07-28).
    with_request_state = some request_state: String;
    /// Asks for the call to run as a task (2025-11-25 only): an object, with `ttl` if wanted.
    with_task = some task: Box<RawValue>;
    /// Sets the arguments, an object.
    with_arguments = some arguments: Box<RawValue>;
    /// Sets `_meta`.
    with_meta = meta meta;
});

/// The result of `tools/call`.
///
/// # Example
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
    /// The result for people and models. It is always serialized; if it is absent when deserialized, it is empty.
    #[serde(default, deserialize_with = "null_is_default")]
    pub content: Vec<ContentBlock>,
    /// The result for programs (2025-06-18 and later): an object before 2026-07-28, any JSON value since. A `null` is
    /// not the same as an absent member, because it is a valid result in 2026-07-28.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "null_is_some")]
    pub structured_content: Option<Box<RawValue>>,
    /// Whether the tool failed, in which case `content` gives the reason. Absent means false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_error: Option<bool>,
    /// The type of this result (2026-07-28, required there).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_type: Option<ResultType>,
    /// The `_meta` object.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl CallToolResult {
    /// Creates the result of a successful call, with this content.
    pub fn new(content: Vec<ContentBlock>) -> Self {
        CallToolResult { content, ..Default::default() }
    }

    /// Creates the result of a successful call, with this text.
    pub fn text(text: impl Into<String>) -> Self {
        CallToolResult::new(vec![ContentBlock::text(text)])
    }

    /// Creates the result of a failed call, with an explanation for the model.
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
