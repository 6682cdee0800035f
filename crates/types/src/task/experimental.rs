//! Tasks as 2025-11-25 had them in its core, where they were called experimental; the next revision has the extension instead.
//! The requester decides that its request is a task, and fetches the result with `tasks/result`.

use serde::de::Deserializer;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::TaskStatus;
use crate::capability::EmptyCapability;
use crate::meta::Meta;
use crate::page::Cursor;
use crate::read::lenient_ms;
use crate::setters::setters;

/// The capability `tasks` of servers and clients: which of the requests they receive may be tasks, and what can be done with
/// these.
///
/// ```
/// use linchpin_types::task::experimental::TasksCapability;
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

/// The member `task` of a request's parameters: run this as a task.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TaskMetadata {
    /// How long after its creation the requester wants it kept, in milliseconds; the receiver decides.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "lenient_ms")]
    pub ttl: Option<u64>,
}

impl TaskMetadata {
    /// As a task, kept as long as the receiver likes.
    pub fn new() -> Self {
        Self::default()
    }
}

setters!(TaskMetadata {
    /// Sets how long it should be kept, in milliseconds.
    with_ttl = some ttl: u64;
});

/// What is known of a task, in the words of 2025-11-25; converts from and to [`super::Task`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Task {
    /// Its identifier, which the receiver chose.
    pub task_id: String,
    /// Where it is.
    pub status: TaskStatus,
    /// What it is doing, or why it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status_message: Option<String>,
    /// When it was made, in ISO 8601.
    pub created_at: String,
    /// When it last changed, in ISO 8601.
    pub last_updated_at: String,
    /// How long after its creation the receiver keeps it, in milliseconds. None (`null`) is without end.
    #[serde(default, deserialize_with = "lenient_ms")]
    pub ttl: Option<u64>,
    /// How long to wait between two looks at it, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "lenient_ms")]
    pub poll_interval: Option<u64>,
}

impl From<super::Task> for Task {
    fn from(task: super::Task) -> Self {
        Task {
            task_id: task.task_id,
            status: task.status,
            status_message: task.status_message,
            created_at: task.created_at,
            last_updated_at: task.last_updated_at,
            ttl: task.ttl_ms,
            poll_interval: task.poll_interval_ms,
        }
    }
}

impl From<Task> for super::Task {
    fn from(task: Task) -> Self {
        super::Task {
            task_id: task.task_id,
            status: task.status,
            status_message: task.status_message,
            created_at: task.created_at,
            last_updated_at: task.last_updated_at,
            ttl_ms: task.ttl,
            poll_interval_ms: task.poll_interval,
        }
    }
}

/// What a request with `task` is answered with: the task that will have its result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CreateTaskResult {
    /// The task.
    pub task: Task,
    /// The `_meta` object; [`MODEL_IMMEDIATE_RESPONSE`](crate::meta::key::MODEL_IMMEDIATE_RESPONSE) in it is for the model.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl CreateTaskResult {
    /// This task will have the result.
    pub fn new(task: impl Into<Task>) -> Self {
        CreateTaskResult { task: task.into(), meta: None }
    }
}

setters!(CreateTaskResult {
    /// Sets `_meta`.
    with_meta = meta meta;
});

/// The answer to `tasks/get`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct GetTaskResult {
    /// The task; its members stand beside `_meta`.
    #[serde(flatten)]
    pub task: Task,
    /// The `_meta` object.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl GetTaskResult {
    /// This task.
    pub fn new(task: impl Into<Task>) -> Self {
        GetTaskResult { task: task.into(), meta: None }
    }
}

setters!(GetTaskResult {
    /// Sets `_meta`.
    with_meta = meta meta;
});

/// The answer to `tasks/cancel`: the task, which is `cancelled`.
pub type CancelTaskResult = GetTaskResult;

/// The parameters of `notifications/tasks/status`.
pub type TaskStatusNotificationParams = GetTaskResult;

/// The answer to `tasks/list`: one page of the requester's tasks.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ListTasksResult {
    /// The tasks.
    pub tasks: Vec<Task>,
    /// Where the next page starts; absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<Cursor>,
    /// The `_meta` object.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl ListTasksResult {
    /// These tasks, the last of the list.
    pub fn new(tasks: impl IntoIterator<Item = impl Into<Task>>) -> Self {
        ListTasksResult { tasks: tasks.into_iter().map(Into::into).collect(), ..Default::default() }
    }
}

setters!(ListTasksResult {
    /// Sets the cursor of the next page.
    with_next_cursor = some next_cursor: Cursor;
    /// Sets `_meta`.
    with_meta = meta meta;
});

/// The value of [`RELATED_TASK`](crate::meta::key::RELATED_TASK) in `_meta`: which task a message belongs to.
///
/// ```
/// use linchpin_types::meta::{Meta, key};
/// use linchpin_types::task::experimental::RelatedTaskMetadata;
///
/// let mut meta = Meta::new();
/// meta.insert_as(key::RELATED_TASK, &RelatedTaskMetadata::new("tk_1"))?;
/// assert_eq!(serde_json::to_string(&meta)?, r#"{"io.modelcontextprotocol/related-task":{"taskId":"tk_1"}}"#);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct RelatedTaskMetadata {
    /// The task.
    pub task_id: String,
}

impl RelatedTaskMetadata {
    /// This task.
    pub fn new(task_id: impl Into<String>) -> Self {
        RelatedTaskMetadata { task_id: task_id.into() }
    }
}
