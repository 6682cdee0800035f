//! Tasks as 2025-11-25 had them in its core, where they were called experimental; the next revision has the extension instead.
//! The requester decides that its request is a task, and fetches the result with `tasks/result`. What is declared is
//! [`TasksCapability`](crate::capability::TasksCapability).

use serde::{Deserialize, Serialize};

use super::TaskStatus;
use crate::meta::Meta;
use crate::page::Cursor;
use crate::read::lenient_ms;
use crate::setters::setters;

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
