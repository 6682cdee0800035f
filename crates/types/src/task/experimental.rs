//! Tasks of 2025-11-25, where they are an experimental part of the protocol. The next revision has an extension
//! instead.
//!
//! The sender of a request decides that it runs as a task, and gets the result with `tasks/result`. Clients and servers
//! declare their support as [`TasksCapability`](crate::capability::TasksCapability).

use serde::{Deserialize, Serialize};

use super::TaskStatus;
use crate::meta::Meta;
use crate::page::Cursor;
use crate::read::lenient_ms;
use crate::setters::setters;

/// The member `task` in the parameters of a request, which asks the receiver to run it as a task.
///
/// # Example
///
/// ```
/// use linchpin_types::task::experimental::TaskMetadata;
/// use linchpin_types::tool::CallToolRequestParams;
///
/// let mut params = CallToolRequestParams::new("report");
/// params.task = Some(serde_json::value::to_raw_value(&TaskMetadata::new().with_ttl(60_000_u64))?);
/// assert_eq!(serde_json::to_string(&params)?, r#"{"name":"report","task":{"ttl":60000}}"#);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TaskMetadata {
    /// How long the receiver should keep the task after its creation, in milliseconds. The receiver makes the decision.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "lenient_ms")]
    pub ttl: Option<u64>,
}

impl TaskMetadata {
    /// Creates metadata that lets the receiver choose how long to keep the task.
    pub fn new() -> Self {
        Self::default()
    }
}

setters!(TaskMetadata {
    /// Sets how long the receiver should keep the task after its creation, in milliseconds.
    with_ttl = some ttl: u64;
});

/// The state of a task, as in 2025-11-25. It can be converted from and to [`super::Task`].
///
/// # Example
///
/// ```
/// use linchpin_types::task::{self, TaskStatus, experimental};
///
/// let json = r#"{"taskId":"tk_1","status":"working","createdAt":"2025-12-01T10:30:00Z",
///                "lastUpdatedAt":"2025-12-01T10:30:00Z","ttl":60000}"#;
/// let old: experimental::Task = serde_json::from_str(json).unwrap();
/// let new = task::Task::from(old);
/// assert_eq!((new.status, new.ttl_ms), (TaskStatus::Working, Some(60_000)));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Task {
    /// The identifier, which the receiver of the request chooses.
    pub task_id: String,
    /// The status.
    pub status: TaskStatus,
    /// A description of the current activity or of the reason why the task ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status_message: Option<String>,
    /// When the task was created, in ISO 8601.
    pub created_at: String,
    /// When the task last changed, in ISO 8601.
    pub last_updated_at: String,
    /// How long the receiver keeps the task after its creation, in milliseconds. `None` (`null`) means indefinitely.
    #[serde(default, deserialize_with = "lenient_ms")]
    pub ttl: Option<u64>,
    /// How long to wait between two `tasks/get` requests, in milliseconds.
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

/// The result of a request that runs as a task. The final result is available with `tasks/result` later.
///
/// # Example
///
/// ```
/// use linchpin_types::task::{Task, TaskStatus, experimental::CreateTaskResult};
///
/// let task = Task::new("tk_1", TaskStatus::Working, "2025-12-01T10:30:00Z").with_ttl_ms(60_000_u64);
/// assert_eq!(
///     serde_json::to_string(&CreateTaskResult::new(task)).unwrap(),
///     r#"{"task":{"taskId":"tk_1","status":"working","createdAt":"2025-12-01T10:30:00Z","#.to_owned()
///         + r#""lastUpdatedAt":"2025-12-01T10:30:00Z","ttl":60000}}"#,
/// );
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CreateTaskResult {
    /// The task.
    pub task: Task,
    /// The `_meta` object, which may contain a text for the model as
    /// [`MODEL_IMMEDIATE_RESPONSE`](crate::meta::key::MODEL_IMMEDIATE_RESPONSE).
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl CreateTaskResult {
    /// Creates a result with this task.
    pub fn new(task: impl Into<Task>) -> Self {
        CreateTaskResult { task: task.into(), meta: None }
    }
}

setters!(CreateTaskResult {
    /// Sets `_meta`.
    with_meta = meta meta;
});

/// The result of `tasks/get`.
///
/// # Example
///
/// ```
/// use linchpin_types::task::{Task, TaskStatus, experimental::GetTaskResult};
///
/// let task = Task::new("tk_1", TaskStatus::Completed, "2025-12-01T10:30:00Z");
/// assert_eq!(
///     serde_json::to_string(&GetTaskResult::new(task)).unwrap(),
///     r#"{"taskId":"tk_1","status":"completed","createdAt":"2025-12-01T10:30:00Z","#.to_owned()
///         + r#""lastUpdatedAt":"2025-12-01T10:30:00Z","ttl":null}"#,
/// );
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct GetTaskResult {
    /// The task. Its members are serialized next to `_meta`.
    #[serde(flatten)]
    pub task: Task,
    /// The `_meta` object.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl GetTaskResult {
    /// Creates a result with this task.
    pub fn new(task: impl Into<Task>) -> Self {
        GetTaskResult { task: task.into(), meta: None }
    }
}

setters!(GetTaskResult {
    /// Sets `_meta`.
    with_meta = meta meta;
});

/// The result of `tasks/cancel`: the task, whose status is `cancelled`.
pub type CancelTaskResult = GetTaskResult;

/// The parameters of `notifications/tasks/status`.
pub type TaskStatusNotificationParams = GetTaskResult;

/// The result of `tasks/list`: one page of the tasks that the sender of the request created.
///
/// # Example
///
/// ```
/// use linchpin_types::task::{Task, TaskStatus, experimental::ListTasksResult};
///
/// let task = Task::new("tk_1", TaskStatus::Working, "2025-12-01T10:30:00Z");
/// let page = ListTasksResult::new([task]).with_next_cursor("page-2");
/// assert_eq!(page.tasks[0].task_id, "tk_1");
/// assert_eq!(page.next_cursor.as_deref(), Some("page-2"));
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ListTasksResult {
    /// The tasks.
    pub tasks: Vec<Task>,
    /// The cursor of the next page; absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<Cursor>,
    /// The `_meta` object.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl ListTasksResult {
    /// Creates the last page of a list, with these tasks.
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

/// The value of [`RELATED_TASK`](crate::meta::key::RELATED_TASK) in `_meta`: the task that a message belongs to.
///
/// # Example
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
    /// The identifier of the task.
    pub task_id: String,
}

impl RelatedTaskMetadata {
    /// Creates metadata for the task with this identifier.
    pub fn new(task_id: impl Into<String>) -> Self {
        RelatedTaskMetadata { task_id: task_id.into() }
    }
}
