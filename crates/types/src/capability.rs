//! Capabilities of clients and servers. Each is an object whose presence declares the capability; unknown members are
//! ignored.

use std::collections::BTreeMap;

use serde::de::Deserializer;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::read::{eq_by_json, null_is_default};
use crate::setters::setters;

/// A capability without members.
///
/// # Example
///
/// ```
/// use linchpin_types::capability::{EmptyCapability, ServerCapabilities};
///
/// let can = ServerCapabilities::new().with_completions(EmptyCapability::default());
/// assert_eq!(serde_json::to_string(&can).unwrap(), r#"{"completions":{}}"#);
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct EmptyCapability {}

/// The client's capabilities.
///
/// # Example
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
    /// The client provides its roots.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub roots: Option<RootsCapability>,
    /// The client supports sampling.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sampling: Option<SamplingCapability>,
    /// The client supports elicitation (2025-06-18 and later).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elicitation: Option<ElicitationCapability>,
    /// Which requests of the server may run as tasks (2025-11-25 only).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tasks: Option<TasksCapability>,
    /// The settings of the supported extensions, by their identifiers (2026-07-28).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty", deserialize_with = "null_is_default")]
    pub extensions: BTreeMap<String, Box<RawValue>>,
    /// Experimental capabilities, which are not part of any revision.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty", deserialize_with = "null_is_default")]
    pub experimental: BTreeMap<String, Box<RawValue>>,
}

/// Identifiers of the specification's extensions.
pub mod extension {
    /// Tasks (2026-07-28). In 2025-11-25, tasks are part of the protocol itself.
    pub const TASKS: &str = "io.modelcontextprotocol/tasks";
    /// Skills.
    pub const SKILLS: &str = "io.modelcontextprotocol/skills";
    /// MCP Apps.
    pub const UI: &str = "io.modelcontextprotocol/ui";
}

impl ClientCapabilities {
    /// Creates capabilities that declare nothing.
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
    /// Declares which requests of the server may run as tasks (2025-11-25 only).
    with_tasks = some tasks: TasksCapability;
});

impl ClientCapabilities {
    /// Declares an extension, with its settings (2026-07-28).
    #[must_use]
    pub fn with_extension(mut self, identifier: impl Into<String>, settings: &serde_json::Value) -> Self {
        self.extensions.insert(identifier.into(), crate::setters::raw(settings));
        self
    }

    /// Declares an experimental capability, which is not part of any revision.
    #[must_use]
    pub fn with_experimental(mut self, name: impl Into<String>, settings: &serde_json::Value) -> Self {
        self.experimental.insert(name.into(), crate::setters::raw(settings));
        self
    }
}

/// The server's capabilities.
///
/// # Example
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
    /// The server suggests values for arguments (2025-03-26 and later; servers of 2024-11-05 do not declare it).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completions: Option<EmptyCapability>,
    /// Which requests of the client may run as tasks (2025-11-25 only).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tasks: Option<TasksCapability>,
    /// The settings of the supported extensions, by their identifiers (2026-07-28).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty", deserialize_with = "null_is_default")]
    pub extensions: BTreeMap<String, Box<RawValue>>,
    /// Experimental capabilities, which are not part of any revision.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty", deserialize_with = "null_is_default")]
    pub experimental: BTreeMap<String, Box<RawValue>>,
}

impl ServerCapabilities {
    /// Creates capabilities that declare nothing.
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
    /// Declares which requests of the client may run as tasks (2025-11-25 only).
    with_tasks = some tasks: TasksCapability;
});

impl ServerCapabilities {
    /// Declares an extension, with its settings (2026-07-28).
    #[must_use]
    pub fn with_extension(mut self, identifier: impl Into<String>, settings: &serde_json::Value) -> Self {
        self.extensions.insert(identifier.into(), crate::setters::raw(settings));
        self
    }

    /// Declares an experimental capability, which is not part of any revision.
    #[must_use]
    pub fn with_experimental(mut self, name: impl Into<String>, settings: &serde_json::Value) -> Self {
        self.experimental.insert(name.into(), crate::setters::raw(settings));
        self
    }
}

eq_by_json!(ClientCapabilities, ServerCapabilities);

/// The capability to provide roots (clients).
///
/// # Example
///
/// ```
/// use linchpin_types::capability::{ClientCapabilities, RootsCapability};
///
/// let can = ClientCapabilities::new().with_roots(RootsCapability::new().with_list_changed(true));
/// assert_eq!(serde_json::to_string(&can).unwrap(), r#"{"roots":{"listChanged":true}}"#);
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct RootsCapability {
    /// Whether the client sends notifications when its roots change (2024-11-05 to 2025-11-25).
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
    /// Sets whether notifications are sent when the list changes.
    with_list_changed = some list_changed: bool;
});

/// The capability for sampling (clients). The members are new in 2025-11-25.
///
/// # Example
///
/// ```
/// use linchpin_types::capability::{ClientCapabilities, EmptyCapability, SamplingCapability};
///
/// let sampling = SamplingCapability::new().with_tools(EmptyCapability::default());
/// let can = ClientCapabilities::new().with_sampling(sampling);
/// assert_eq!(serde_json::to_string(&can).unwrap(), r#"{"sampling":{"tools":{}}}"#);
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SamplingCapability {
    /// `includeContext` may have values other than `none` (2025-11-25 and later).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<EmptyCapability>,
    /// Requests may contain `tools` and `toolChoice` (2025-11-25 and later).
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

/// The capability for elicitation (clients; 2025-06-18 and later). The members are new in 2025-11-25; an empty object
/// means that only forms are supported.
///
/// # Example
///
/// ```
/// use linchpin_types::capability::{ClientCapabilities, ElicitationCapability, EmptyCapability};
///
/// let elicitation = ElicitationCapability::new()
///     .with_form(EmptyCapability::default())
///     .with_url(EmptyCapability::default());
/// let can = ClientCapabilities::new().with_elicitation(elicitation);
/// assert_eq!(serde_json::to_string(&can).unwrap(), r#"{"elicitation":{"form":{},"url":{}}}"#);
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ElicitationCapability {
    /// The client can show a form (2025-11-25 and later).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub form: Option<EmptyCapability>,
    /// The client can direct the user to a URL (2025-11-25 and later).
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

/// The capability to provide tools (servers).
///
/// # Example
///
/// ```
/// use linchpin_types::capability::{ServerCapabilities, ToolsCapability};
///
/// let can = ServerCapabilities::new().with_tools(ToolsCapability::new().with_list_changed(true));
/// assert_eq!(serde_json::to_string(&can).unwrap(), r#"{"tools":{"listChanged":true}}"#);
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ToolsCapability {
    /// Whether the server sends notifications when the list changes.
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
    /// Sets whether notifications are sent when the list changes.
    with_list_changed = some list_changed: bool;
});

/// The capability to provide resources (servers).
///
/// # Example
///
/// ```
/// use linchpin_types::capability::{ResourcesCapability, ServerCapabilities};
///
/// let can = ServerCapabilities::new().with_resources(ResourcesCapability::new().with_subscribe(true));
/// assert_eq!(serde_json::to_string(&can).unwrap(), r#"{"resources":{"subscribe":true}}"#);
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ResourcesCapability {
    /// Whether clients can subscribe to individual resources.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subscribe: Option<bool>,
    /// Whether the server sends notifications when the list changes.
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
    /// Sets whether clients can subscribe to individual resources.
    with_subscribe = some subscribe: bool;
    /// Sets whether notifications are sent when the list changes.
    with_list_changed = some list_changed: bool;
});

/// The capability to provide prompts (servers).
///
/// # Example
///
/// ```
/// use linchpin_types::capability::ServerCapabilities;
///
/// let can: ServerCapabilities = serde_json::from_str(r#"{"prompts":{"listChanged":true}}"#).unwrap();
/// assert_eq!(can.prompts.and_then(|prompts| prompts.list_changed), Some(true));
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct PromptsCapability {
    /// Whether the server sends notifications when the list changes.
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
    /// Sets whether notifications are sent when the list changes.
    with_list_changed = some list_changed: bool;
});

/// The capability for tasks (servers and clients): which of the requests that they receive may run as tasks, and which
/// operations on these tasks are supported.
///
/// # Example
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
    /// `tasks/list` is supported.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "declared")]
    pub list: Option<EmptyCapability>,
    /// `tasks/cancel` is supported.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "declared")]
    pub cancel: Option<EmptyCapability>,
    /// The requests that may run as tasks; all others may not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests: Option<TaskRequests>,
}

/// The requests that may run as tasks.
///
/// # Example
///
/// ```
/// use linchpin_types::capability::ServerCapabilities;
///
/// let json = r#"{"tasks":{"requests":{"tools":{"call":{}}}}}"#;
/// let can: ServerCapabilities = serde_json::from_str(json).unwrap();
/// let requests = can.tasks.and_then(|tasks| tasks.requests).unwrap_or_default();
/// assert!(requests.tools.is_some() && requests.sampling.is_none());
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TaskRequests {
    /// The requests about tools, which servers receive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<ToolRequests>,
    /// The requests about sampling, which clients receive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sampling: Option<SamplingRequests>,
    /// The requests about elicitation, which clients receive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elicitation: Option<ElicitationRequests>,
}

/// The requests about tools that may run as tasks.
///
/// # Example
///
/// ```
/// use linchpin_types::capability::TasksCapability;
///
/// let requests = TasksCapability::new().with_tools_call().requests.unwrap_or_default();
/// assert!(requests.tools.is_some_and(|tools| tools.call.is_some()));
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolRequests {
    /// `tools/call`.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "declared")]
    pub call: Option<EmptyCapability>,
}

/// The requests about sampling that may run as tasks.
///
/// # Example
///
/// ```
/// use linchpin_types::capability::{EmptyCapability, SamplingRequests, TaskRequests, TasksCapability};
///
/// let mut sampling = SamplingRequests::default();
/// sampling.create_message = Some(EmptyCapability::default());
/// let mut requests = TaskRequests::default();
/// requests.sampling = Some(sampling);
/// let mut tasks = TasksCapability::new().with_cancel();
/// tasks.requests = Some(requests);
/// assert!(tasks.sampling_create_message());
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SamplingRequests {
    /// `sampling/createMessage`.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "declared")]
    pub create_message: Option<EmptyCapability>,
}

/// The requests about elicitation that may run as tasks.
///
/// # Example
///
/// ```
/// use linchpin_types::capability::{ElicitationRequests, EmptyCapability};
/// use linchpin_types::capability::{TaskRequests, TasksCapability};
///
/// let mut elicitation = ElicitationRequests::default();
/// elicitation.create = Some(EmptyCapability::default());
/// let mut requests = TaskRequests::default();
/// requests.elicitation = Some(elicitation);
/// let mut tasks = TasksCapability::new();
/// tasks.requests = Some(requests);
/// assert!(tasks.elicitation_create());
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ElicitationRequests {
    /// `elicitation/create`.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "declared")]
    pub create: Option<EmptyCapability>,
}

impl TasksCapability {
    /// Creates a capability in which no request may run as a task.
    pub fn new() -> Self {
        Self::default()
    }

    /// Declares support for `tasks/list`.
    #[must_use]
    pub fn with_list(mut self) -> Self {
        self.list = Some(EmptyCapability::default());
        self
    }

    /// Declares support for `tasks/cancel`.
    #[must_use]
    pub fn with_cancel(mut self) -> Self {
        self.cancel = Some(EmptyCapability::default());
        self
    }

    /// Declares that `tools/call` may run as a task (servers).
    #[must_use]
    pub fn with_tools_call(mut self) -> Self {
        let tools = ToolRequests { call: Some(EmptyCapability::default()) };
        self.requests.get_or_insert_default().tools = Some(tools);
        self
    }

    /// Declares that `sampling/createMessage` may run as a task (clients).
    #[must_use]
    pub fn with_sampling_create_message(mut self) -> Self {
        let sampling = SamplingRequests { create_message: Some(EmptyCapability::default()) };
        self.requests.get_or_insert_default().sampling = Some(sampling);
        self
    }

    /// Declares that `elicitation/create` may run as a task (clients).
    #[must_use]
    pub fn with_elicitation_create(mut self) -> Self {
        let elicitation = ElicitationRequests { create: Some(EmptyCapability::default()) };
        self.requests.get_or_insert_default().elicitation = Some(elicitation);
        self
    }

    /// Returns whether `tools/call` may run as a task.
    pub fn tools_call(&self) -> bool {
        self.requests.and_then(|requests| requests.tools).is_some_and(|tools| tools.call.is_some())
    }

    /// Returns whether `sampling/createMessage` may run as a task.
    pub fn sampling_create_message(&self) -> bool {
        self.requests.and_then(|requests| requests.sampling).is_some_and(|sampling| sampling.create_message.is_some())
    }

    /// Returns whether `elicitation/create` may run as a task.
    pub fn elicitation_create(&self) -> bool {
        self.requests.and_then(|requests| requests.elicitation).is_some_and(|elicitation| elicitation.create.is_some())
    }
}

/// Reads a declaration: the schema says an object, the text says a boolean, and peers write either.
fn declared<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<EmptyCapability>, D::Error> {
    let raw = Box::<RawValue>::deserialize(deserializer)?;
    Ok((!matches!(raw.get(), "null" | "false")).then(EmptyCapability::default))
}
