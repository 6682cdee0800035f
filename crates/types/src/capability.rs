//! Capabilities of clients and servers. Each is an object whose presence declares it; unknown members are ignored.

use std::collections::BTreeMap;

use serde::de::Deserializer;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::read::{eq_by_json, null_is_default};
use crate::setters::setters;

/// A capability without members.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct EmptyCapability {}

/// The client's capabilities.
///
/// ```
/// use linchpin_types::capability::{ClientCapabilities, ElicitationCapability, RootsCapability};
///
/// let can = ClientCapabilities::new()
///     .with_roots(RootsCapability::new().with_list_changed(true))
///     .with_elicitation(ElicitationCapability::new());
/// assert_eq!(serde_json::to_string(&can).unwrap(), r#"{"roots":{"listChanged":true},"elicitation":{}}"#);
/// ```
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ClientCapabilities {
    /// The client lists its roots.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub roots: Option<RootsCapability>,
    /// The client supports sampling.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sampling: Option<SamplingCapability>,
    /// The client supports elicitation (2025-06-18 and later).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elicitation: Option<ElicitationCapability>,
    /// Which of the server's requests may become tasks (2025-11-25 only).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tasks: Option<TasksCapability>,
    /// Extensions by identifier, with their settings (2026-07-28).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty", deserialize_with = "null_is_default")]
    pub extensions: BTreeMap<String, Box<RawValue>>,
    /// Experimental capabilities, which are part of no revision.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty", deserialize_with = "null_is_default")]
    pub experimental: BTreeMap<String, Box<RawValue>>,
}

/// Identifiers of the specification's extensions.
pub mod extension {
    /// Tasks (2026-07-28). Before, tasks were part of the protocol.
    pub const TASKS: &str = "io.modelcontextprotocol/tasks";
    /// Skills.
    pub const SKILLS: &str = "io.modelcontextprotocol/skills";
    /// MCP Apps.
    pub const UI: &str = "io.modelcontextprotocol/ui";
}

impl ClientCapabilities {
    /// None.
    pub fn new() -> Self {
        Self::default()
    }
}

setters!(ClientCapabilities {
    /// Declares the capability for roots.
    with_roots = some roots: RootsCapability;
    /// Declares the capability for sampling.
    with_sampling = some sampling: SamplingCapability;
    /// Declares the capability for elicitation.
    with_elicitation = some elicitation: ElicitationCapability;
    /// Declares which of the server's requests may become tasks (2025-11-25 only).
    with_tasks = some tasks: TasksCapability;
});

/// The server's capabilities.
///
/// ```
/// use linchpin_types::capability::{EmptyCapability, ServerCapabilities, ToolsCapability};
///
/// let can = ServerCapabilities::new().with_tools(ToolsCapability::new()).with_logging(EmptyCapability::default());
/// assert_eq!(serde_json::to_string(&can).unwrap(), r#"{"tools":{},"logging":{}}"#);
/// ```
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ServerCapabilities {
    /// The server has tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<ToolsCapability>,
    /// The server has resources.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<ResourcesCapability>,
    /// The server has prompts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompts: Option<PromptsCapability>,
    /// The server sends log messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logging: Option<EmptyCapability>,
    /// The server suggests values for arguments (2025-03-26 and later; before that, unannounced).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completions: Option<EmptyCapability>,
    /// Which of the client's requests may become tasks (2025-11-25 only).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tasks: Option<TasksCapability>,
    /// Extensions by identifier, with their settings (2026-07-28).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty", deserialize_with = "null_is_default")]
    pub extensions: BTreeMap<String, Box<RawValue>>,
    /// Experimental capabilities, which are part of no revision.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty", deserialize_with = "null_is_default")]
    pub experimental: BTreeMap<String, Box<RawValue>>,
}

impl ServerCapabilities {
    /// None.
    pub fn new() -> Self {
        Self::default()
    }
}

setters!(ServerCapabilities {
    /// Declares the capability for tools.
    with_tools = some tools: ToolsCapability;
    /// Declares the capability for resources.
    with_resources = some resources: ResourcesCapability;
    /// Declares the capability for prompts.
    with_prompts = some prompts: PromptsCapability;
    /// Declares the capability for log messages.
    with_logging = some logging: EmptyCapability;
    /// Declares the capability for completion (2025-03-26 and later).
    with_completions = some completions: EmptyCapability;
    /// Declares which of the client's requests may become tasks (2025-11-25 only).
    with_tasks = some tasks: TasksCapability;
});

eq_by_json!(ClientCapabilities, ServerCapabilities);

/// The client lists its roots.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct RootsCapability {
    /// Whether changes of the roots are announced (2024-11-05 to 2025-11-25).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub list_changed: Option<bool>,
}

impl RootsCapability {
    /// Creates the capability without members.
    pub fn new() -> Self {
        Self::default()
    }
}

setters!(RootsCapability {
    /// Sets whether list changes are announced.
    with_list_changed = some list_changed: bool;
});

/// The client supports sampling. The members are new in 2025-11-25.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SamplingCapability {
    /// `includeContext` may be other than `none` (2025-11-25 and later).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<EmptyCapability>,
    /// `tools` and `toolChoice` may be given (2025-11-25 and later).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<EmptyCapability>,
}

impl SamplingCapability {
    /// Creates the capability without members.
    pub fn new() -> Self {
        Self::default()
    }
}

setters!(SamplingCapability {
    /// Declares support for `includeContext` (2025-11-25 and later).
    with_context = some context: EmptyCapability;
    /// Declares support for tools (2025-11-25 and later).
    with_tools = some tools: EmptyCapability;
});

/// The client supports elicitation (2025-06-18 and later). The members are new in 2025-11-25; an empty object
/// means forms only.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ElicitationCapability {
    /// By a form (2025-11-25 and later).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub form: Option<EmptyCapability>,
    /// By sending them to a URL (2025-11-25 and later).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<EmptyCapability>,
}

impl ElicitationCapability {
    /// Creates the capability without members.
    pub fn new() -> Self {
        Self::default()
    }
}

setters!(ElicitationCapability {
    /// Declares support for forms (2025-11-25 and later).
    with_form = some form: EmptyCapability;
    /// Declares support for URLs (2025-11-25 and later).
    with_url = some url: EmptyCapability;
});

/// The server has tools.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ToolsCapability {
    /// Whether list changes are announced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub list_changed: Option<bool>,
}

impl ToolsCapability {
    /// Creates the capability without members.
    pub fn new() -> Self {
        Self::default()
    }
}

setters!(ToolsCapability {
    /// Sets whether list changes are announced.
    with_list_changed = some list_changed: bool;
});

/// The server has resources.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ResourcesCapability {
    /// Whether clients can subscribe to single resources.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subscribe: Option<bool>,
    /// Whether list changes are announced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub list_changed: Option<bool>,
}

impl ResourcesCapability {
    /// Creates the capability without members.
    pub fn new() -> Self {
        Self::default()
    }
}

setters!(ResourcesCapability {
    /// Sets whether clients can subscribe to single resources.
    with_subscribe = some subscribe: bool;
    /// Sets whether list changes are announced.
    with_list_changed = some list_changed: bool;
});

/// The server has prompts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct PromptsCapability {
    /// Whether list changes are announced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub list_changed: Option<bool>,
}

impl PromptsCapability {
    /// Creates the capability without members.
    pub fn new() -> Self {
        Self::default()
    }
}

setters!(PromptsCapability {
    /// Sets whether list changes are announced.
    with_list_changed = some list_changed: bool;
});

/// The capability `tasks` of servers and clients: which of the requests they receive may be tasks, and what can be done with
/// these.
///
/// ```
/// use linchpin_types::capability::TasksCapability;
///
/// let can = TasksCapability::new().with_cancel().with_tools_call();
/// assert_eq!(serde_json::to_string(&can).unwrap(), r#"{"cancel":{},"requests":{"tools":{"call":{}}}}"#);
/// assert!(can.tools_call() && !can.sampling_create_message());
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TasksCapability {
    /// `tasks/list` is there.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "declared")]
    pub list: Option<EmptyCapability>,
    /// `tasks/cancel` is there.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "declared")]
    pub cancel: Option<EmptyCapability>,
    /// Which requests may be tasks; those that are not named may not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests: Option<TaskRequests>,
}

/// Which requests may be tasks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TaskRequests {
    /// Those about tools (of servers).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<ToolRequests>,
    /// Those about sampling (of clients).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sampling: Option<SamplingRequests>,
    /// Those about elicitation (of clients).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elicitation: Option<ElicitationRequests>,
}

/// Which requests about tools may be tasks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolRequests {
    /// `tools/call`.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "declared")]
    pub call: Option<EmptyCapability>,
}

/// Which requests about sampling may be tasks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SamplingRequests {
    /// `sampling/createMessage`.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "declared")]
    pub create_message: Option<EmptyCapability>,
}

/// Which requests about elicitation may be tasks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ElicitationRequests {
    /// `elicitation/create`.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "declared")]
    pub create: Option<EmptyCapability>,
}

impl TasksCapability {
    /// Nothing may be a task yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Declares `tasks/list`.
    #[must_use]
    pub fn with_list(mut self) -> Self {
        self.list = Some(EmptyCapability::default());
        self
    }

    /// Declares `tasks/cancel`.
    #[must_use]
    pub fn with_cancel(mut self) -> Self {
        self.cancel = Some(EmptyCapability::default());
        self
    }

    /// Declares that `tools/call` may be a task (servers).
    #[must_use]
    pub fn with_tools_call(mut self) -> Self {
        let tools = ToolRequests { call: Some(EmptyCapability::default()) };
        self.requests.get_or_insert_default().tools = Some(tools);
        self
    }

    /// Whether `tools/call` may be a task.
    pub fn tools_call(&self) -> bool {
        self.requests.and_then(|requests| requests.tools).is_some_and(|tools| tools.call.is_some())
    }

    /// Whether `sampling/createMessage` may be a task.
    pub fn sampling_create_message(&self) -> bool {
        self.requests.and_then(|requests| requests.sampling).is_some_and(|sampling| sampling.create_message.is_some())
    }

    /// Whether `elicitation/create` may be a task.
    pub fn elicitation_create(&self) -> bool {
        self.requests.and_then(|requests| requests.elicitation).is_some_and(|elicitation| elicitation.create.is_some())
    }
}

/// Reads a declaration: the schema says an object, the text says a boolean, and peers write either.
fn declared<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<EmptyCapability>, D::Error> {
    let raw = Box::<RawValue>::deserialize(deserializer)?;
    Ok((!matches!(raw.get(), "null" | "false")).then(EmptyCapability::default))
}
