//! Tasks: requests whose results are available later.
//!
//! The types in this module are those of the extension [`EXTENSION`] for 2026-07-28. The tasks of 2025-11-25, which are
//! part of the protocol itself, are in [`experimental`]. They contain the same information under other names.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::error::ErrorObject;
use crate::jsonrpc::EmptyResult;
use crate::meta::Meta;
use crate::mrtr::{InputRequests, InputResponses};
use crate::page::ResultType;
use crate::read::{eq_by_json, lenient_ms, null_is_default};
use crate::setters::setters;

pub mod experimental;

/// The identifier of the extension, under which clients and servers declare it in `extensions`, with `{}` as its
/// settings.
pub const EXTENSION: &str = crate::capability::extension::TASKS;

/// The status of a task. A task can alternate between the first two. The other three are terminal: they never change.
///
/// # Example
///
/// ```
/// use linchpin_types::task::TaskStatus;
///
/// assert!(TaskStatus::Completed.is_terminal() && !TaskStatus::Working.is_terminal());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TaskStatus {
    /// `working`: the task is running.
    Working,
    /// `input_required`: the task is waiting for the client's input.
    InputRequired,
    /// `completed`: the result is available. In the extension, it may report a failure of the tool (`isError`).
    Completed,
    /// `failed`: the task ended with a JSON-RPC error or, in 2025-11-25, with a failure of the tool.
    Failed,
    /// `cancelled`: the task was cancelled before it was completed.
    Cancelled,
}

impl TaskStatus {
    /// All statuses.
    pub const ALL: [TaskStatus; 5] = [
        TaskStatus::Working,
        TaskStatus::InputRequired,
        TaskStatus::Completed,
        TaskStatus::Failed,
        TaskStatus::Cancelled,
    ];

    /// The name of the status, as it is serialized.
    pub const fn as_str(self) -> &'static str {
        match self {
            TaskStatus::Working => "working",
            TaskStatus::InputRequired => "input_required",
            TaskStatus::Completed => "completed",
            TaskStatus::Failed => "failed",
            TaskStatus::Cancelled => "cancelled",
        }
    }

    /// Returns whether this status is terminal: `completed`, `failed` or `cancelled`.
    pub const fn is_terminal(self) -> bool {
        matches!(self, TaskStatus::Completed | TaskStatus::Failed | TaskStatus::Cancelled)
    }
}

impl std::fmt::Display for TaskStatus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

/// The state of a task, without its result and its input requests, which are part of [`DetailedTask`].
///
/// # Example
///
/// ```
/// use linchpin_types::task::{Task, TaskStatus};
///
/// let task = Task::new("tk_1", TaskStatus::Working, "2026-08-01T10:30:00.000Z").with_poll_interval_ms(1000u64);
/// assert_eq!(
///     serde_json::to_string(&task).unwrap(),
///     r#"{"taskId":"tk_1","status":"working","createdAt":"2026-08-01T10:30:00.000Z","#.to_owned()
///         + r#""lastUpdatedAt":"2026-08-01T10:30:00.000Z","ttlMs":null,"pollIntervalMs":1000}"#,
/// );
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Task {
    /// The identifier, which the server chooses.
    pub task_id: String,
    /// The status.
    pub status: TaskStatus,
    /// A description of the current activity or of the reason why the task ended, for people and possibly for models.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status_message: Option<String>,
    /// When the task was created, in ISO 8601.
    pub created_at: String,
    /// When the task last changed, in ISO 8601.
    pub last_updated_at: String,
    /// How long the server keeps the task after its creation, in milliseconds. `None` (`null`) means indefinitely.
    #[serde(default, deserialize_with = "lenient_ms")]
    pub ttl_ms: Option<u64>,
    /// How long the client should wait between two `tasks/get` requests, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "lenient_ms")]
    pub poll_interval_ms: Option<u64>,
}

impl Task {
    /// Creates a task that was created at this time, in ISO 8601, has not changed since and is kept indefinitely.
    pub fn new(task_id: impl Into<String>, status: TaskStatus, created_at: impl Into<String>) -> Self {
        let created_at = created_at.into();
        Task {
            task_id: task_id.into(),
            status,
            status_message: None,
            last_updated_at: created_at.clone(),
            created_at,
            ttl_ms: None,
            poll_interval_ms: None,
        }
    }

    /// Sets when the task last changed, in ISO 8601.
    #[must_use]
    pub fn with_last_updated_at(mut self, at: impl Into<String>) -> Self {
        self.last_updated_at = at.into();
        self
    }
}

setters!(Task {
    /// Sets the description of the current activity or of the reason why the task ended.
    with_status_message = some status_message: String;
    /// Sets how long the server keeps the task after its creation, in milliseconds.
    with_ttl_ms = some ttl_ms: u64;
    /// Sets how long the client should wait between two `tasks/get` requests, in milliseconds.
    with_poll_interval_ms = some poll_interval_ms: u64;
});

/// A task together with the members that depend on its status: the result of `tasks/get`, and the parameters of
/// `notifications/tasks`.
///
/// # Example
///
/// ```
/// use linchpin_types::task::{DetailedTask, Task, TaskStatus};
/// use serde_json::json;
///
/// let task = Task::new("tk_1", TaskStatus::Completed, "2026-08-01T10:30:00Z").with_ttl_ms(60_000u64);
/// let result = serde_json::value::to_raw_value(&json!({ "content": [] }))?;
/// let json = serde_json::to_string(&DetailedTask::new(task).with_result(result))?;
///
/// let task: DetailedTask = serde_json::from_str(&json)?;
/// assert!(task.task.status.is_terminal() && task.result.is_some());
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct DetailedTask {
    /// `complete` in the result of `tasks/get`, where it is required; absent in notifications.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_type: Option<ResultType>,
    /// The task. Its members are serialized next to the others.
    #[serde(flatten)]
    pub task: Task,
    /// All open input requests, by keys that are never reused, if the status is [`TaskStatus::InputRequired`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_requests: Option<InputRequests>,
    /// The result of the original request, if the status is [`TaskStatus::Completed`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Box<RawValue>>,
    /// The error of the original request, if the status is [`TaskStatus::Failed`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorObject>,
    /// The `_meta` object, which contains the id of the subscription in notifications.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

/// The result of `tasks/get`: a task with `resultType: "complete"`.
pub type GetTaskResult = DetailedTask;

/// The parameters of `notifications/tasks`: the current result of `tasks/get`.
pub type TaskStatusNotificationParams = DetailedTask;

impl DetailedTask {
    /// Creates a detailed task without a result, an error or input requests.
    pub fn new(task: Task) -> Self {
        DetailedTask { result_type: None, task, input_requests: None, result: None, error: None, meta: None }
    }
}

setters!(DetailedTask {
    /// Sets the result type, which is `complete` in the result of `tasks/get`.
    with_result_type = some result_type: ResultType;
    /// Sets the open input requests.
    with_input_requests = some input_requests: InputRequests;
    /// Sets the result of the original request.
    with_result = some result: Box<RawValue>;
    /// Sets the error of the original request.
    with_error = some error: ErrorObject;
    /// Sets `_meta`.
    with_meta = meta meta;
});

/// The result of a request that runs as a task (`resultType: "task"`). The final result is available from the task
/// later.
///
/// # Example
///
/// ```
/// use linchpin_types::task::{CreateTaskResult, Task, TaskStatus};
///
/// let created = CreateTaskResult::new(Task::new("tk_1", TaskStatus::Working, "2026-08-01T10:30:00Z"));
/// assert!(serde_json::to_string(&created).unwrap().starts_with(r#"{"resultType":"task","taskId":"tk_1","#));
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CreateTaskResult {
    /// Always [`ResultType::Task`].
    pub result_type: ResultType,
    /// The task. Its members are serialized next to the others.
    #[serde(flatten)]
    pub task: Task,
    /// The `_meta` object.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl CreateTaskResult {
    /// Creates a result with this task.
    pub fn new(task: Task) -> Self {
        CreateTaskResult { result_type: ResultType::Task, task, meta: None }
    }
}

setters!(CreateTaskResult {
    /// Sets `_meta`.
    with_meta = meta meta;
});

/// The parameters of `tasks/get` and `tasks/cancel`, and of `tasks/result` (2025-11-25 only).
///
/// # Example
///
/// ```
/// use linchpin_types::task::TaskRequestParams;
///
/// let params = TaskRequestParams::new("tk_1");
/// assert_eq!(serde_json::to_string(&params).unwrap(), r#"{"taskId":"tk_1"}"#);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct TaskRequestParams {
    /// The identifier of the task.
    pub task_id: String,
    /// The `_meta` object (required in 2026-07-28).
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl TaskRequestParams {
    /// Creates the parameters for the task with this identifier.
    pub fn new(task_id: impl Into<String>) -> Self {
        TaskRequestParams { task_id: task_id.into(), meta: None }
    }
}

setters!(TaskRequestParams {
    /// Sets `_meta`.
    with_meta = meta meta;
});

/// The parameters of `tasks/update`: responses to some or all of the open input requests of a task.
///
/// # Example
///
/// ```
/// use linchpin_types::elicit::ElicitResult;
/// use linchpin_types::mrtr::InputResponses;
/// use linchpin_types::task::UpdateTaskRequestParams;
///
/// let response = serde_json::value::to_raw_value(&ElicitResult::accept([("name", "Ann")]))?;
/// let responses = InputResponses::from([("q1".to_owned(), response)]);
/// assert_eq!(
///     serde_json::to_string(&UpdateTaskRequestParams::new("tk_1", responses))?,
///     r#"{"taskId":"tk_1","inputResponses":{"q1":{"action":"accept","content":{"name":"Ann"}}}}"#,
/// );
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct UpdateTaskRequestParams {
    /// The identifier of the task.
    pub task_id: String,
    /// The responses, by the keys of the input requests.
    #[serde(deserialize_with = "null_is_default")]
    pub input_responses: InputResponses,
    /// The `_meta` object (required in 2026-07-28).
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl UpdateTaskRequestParams {
    /// Creates the parameters with these responses to input requests of the task.
    pub fn new(task_id: impl Into<String>, input_responses: InputResponses) -> Self {
        UpdateTaskRequestParams { task_id: task_id.into(), input_responses, meta: None }
    }
}

setters!(UpdateTaskRequestParams {
    /// Sets `_meta`.
    with_meta = meta meta;
});

/// The result of `tasks/update`, which acknowledges the responses.
pub type UpdateTaskResult = EmptyResult;

/// The result of `tasks/cancel`, which acknowledges the request. The task may still end in another way.
pub type CancelTaskResult = EmptyResult;

eq_by_json!(DetailedTask, UpdateTaskRequestParams);
