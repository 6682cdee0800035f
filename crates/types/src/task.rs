//! Tasks: calls that are answered later.
//!
//! The types here are those of the extension [`EXTENSION`] for 2026-07-28. What 2025-11-25 had in its core is in
//! [`experimental`]: the same record in other words.

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

/// The identifier of the extension, under which clients and servers declare it in `extensions`, with `{}` as its settings.
pub const EXTENSION: &str = crate::capability::extension::TASKS;

/// Where a task is. It goes to and fro between the first two; each of the other three is an end, after which nothing changes.
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
    /// `working`: it runs.
    Working,
    /// `input_required`: it waits for the client's answers.
    InputRequired,
    /// `completed`: its result is there. For the extension that may be a failure of the tool (`isError`).
    Completed,
    /// `failed`: it ended with a JSON-RPC error; in 2025-11-25 also with a failure of the tool.
    Failed,
    /// `cancelled`: somebody ended it before its end.
    Cancelled,
}

impl TaskStatus {
    /// All of them.
    pub const ALL: [TaskStatus; 5] = [
        TaskStatus::Working,
        TaskStatus::InputRequired,
        TaskStatus::Completed,
        TaskStatus::Failed,
        TaskStatus::Cancelled,
    ];

    /// The word on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            TaskStatus::Working => "working",
            TaskStatus::InputRequired => "input_required",
            TaskStatus::Completed => "completed",
            TaskStatus::Failed => "failed",
            TaskStatus::Cancelled => "cancelled",
        }
    }

    /// Whether this is an end: `completed`, `failed` or `cancelled`.
    pub const fn is_terminal(self) -> bool {
        matches!(self, TaskStatus::Completed | TaskStatus::Failed | TaskStatus::Cancelled)
    }
}

impl std::fmt::Display for TaskStatus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

/// What is known of a task, but for its result and its questions ([`DetailedTask`] has those).
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
    /// Its identifier, which the server chose.
    pub task_id: String,
    /// Where it is.
    pub status: TaskStatus,
    /// What it is doing, or why it ended; for people, perhaps for models.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status_message: Option<String>,
    /// When it was made, in ISO 8601.
    pub created_at: String,
    /// When it last changed, in ISO 8601.
    pub last_updated_at: String,
    /// How long after its creation the server keeps it, in milliseconds. None (`null`) is without end.
    #[serde(default, deserialize_with = "lenient_ms")]
    pub ttl_ms: Option<u64>,
    /// How long to wait between two looks at it, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "lenient_ms")]
    pub poll_interval_ms: Option<u64>,
}

impl Task {
    /// A task that was made at this time, in ISO 8601, and has not changed since; kept without end.
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

    /// Sets when it last changed, in ISO 8601.
    #[must_use]
    pub fn with_last_updated_at(mut self, at: impl Into<String>) -> Self {
        self.last_updated_at = at.into();
        self
    }
}

setters!(Task {
    /// Sets what it is doing, or why it ended.
    with_status_message = some status_message: String;
    /// Sets how long after its creation it is kept, in milliseconds.
    with_ttl_ms = some ttl_ms: u64;
    /// Sets how long to wait between two looks at it, in milliseconds.
    with_poll_interval_ms = some poll_interval_ms: u64;
});

/// A task together with what its status brings along: the answer to `tasks/get`, and what `notifications/tasks` tells.
///
/// ```
/// use linchpin_types::task::{DetailedTask, Task, TaskStatus};
/// use serde_json::json;
///
/// let task = Task::new("tk_1", TaskStatus::Completed, "2026-08-01T10:30:00Z").with_ttl_ms(60_000u64);
/// let result = serde_json::value::to_raw_value(&json!({ "content": [] }))?;
/// let told: DetailedTask = serde_json::from_str(&serde_json::to_string(&DetailedTask::new(task).with_result(result))?)?;
/// assert!(told.task.status.is_terminal() && told.result.is_some());
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct DetailedTask {
    /// `complete` in the answer to `tasks/get`, where it is required; absent in notifications.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_type: Option<ResultType>,
    /// The task; its members stand beside the others.
    #[serde(flatten)]
    pub task: Task,
    /// All questions that are open, by keys that are never used twice; with [`TaskStatus::InputRequired`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_requests: Option<InputRequests>,
    /// What the request would have been answered with; with [`TaskStatus::Completed`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Box<RawValue>>,
    /// The error that the request would have been answered with; with [`TaskStatus::Failed`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorObject>,
    /// The `_meta` object; in notifications it holds the subscription's id.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

/// The answer to `tasks/get`: a task with `resultType: "complete"`.
pub type GetTaskResult = DetailedTask;

/// The parameters of `notifications/tasks`: what `tasks/get` would answer at that moment.
pub type TaskStatusNotificationParams = DetailedTask;

impl DetailedTask {
    /// This task, without result, error and questions.
    pub fn new(task: Task) -> Self {
        DetailedTask { result_type: None, task, input_requests: None, result: None, error: None, meta: None }
    }
}

setters!(DetailedTask {
    /// Sets the result type, which is `complete` in answers to `tasks/get`.
    with_result_type = some result_type: ResultType;
    /// Sets the questions that are open.
    with_input_requests = some input_requests: InputRequests;
    /// Sets what the request would have been answered with.
    with_result = some result: Box<RawValue>;
    /// Sets the error that the request would have been answered with.
    with_error = some error: ErrorObject;
    /// Sets `_meta`.
    with_meta = meta meta;
});

/// What a request is answered with in place of its result: the task that will have it (`resultType: "task"`).
///
/// ```
/// use linchpin_types::task::{CreateTaskResult, Task, TaskStatus};
///
/// let made = CreateTaskResult::new(Task::new("tk_1", TaskStatus::Working, "2026-08-01T10:30:00Z"));
/// assert!(serde_json::to_string(&made).unwrap().starts_with(r#"{"resultType":"task","taskId":"tk_1","#));
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CreateTaskResult {
    /// Always [`ResultType::Task`].
    pub result_type: ResultType,
    /// The task; its members stand beside the others.
    #[serde(flatten)]
    pub task: Task,
    /// The `_meta` object.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl CreateTaskResult {
    /// This task will have the result.
    pub fn new(task: Task) -> Self {
        CreateTaskResult { result_type: ResultType::Task, task, meta: None }
    }
}

setters!(CreateTaskResult {
    /// Sets `_meta`.
    with_meta = meta meta;
});

/// The parameters of `tasks/get` and `tasks/cancel`, and of `tasks/result` (2025-11-25 only).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct TaskRequestParams {
    /// Which task.
    pub task_id: String,
    /// The `_meta` object (required in 2026-07-28).
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl TaskRequestParams {
    /// This task.
    pub fn new(task_id: impl Into<String>) -> Self {
        TaskRequestParams { task_id: task_id.into(), meta: None }
    }
}

setters!(TaskRequestParams {
    /// Sets `_meta`.
    with_meta = meta meta;
});

/// The parameters of `tasks/update`: answers to open questions of a task, all or some.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct UpdateTaskRequestParams {
    /// Which task.
    pub task_id: String,
    /// The answers, by the keys of the questions.
    #[serde(deserialize_with = "null_is_default")]
    pub input_responses: InputResponses,
    /// The `_meta` object (required in 2026-07-28).
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl UpdateTaskRequestParams {
    /// These answers to the questions of this task.
    pub fn new(task_id: impl Into<String>, input_responses: InputResponses) -> Self {
        UpdateTaskRequestParams { task_id: task_id.into(), input_responses, meta: None }
    }
}

setters!(UpdateTaskRequestParams {
    /// Sets `_meta`.
    with_meta = meta meta;
});

/// The answer to `tasks/update`: the answers have arrived.
pub type UpdateTaskResult = EmptyResult;

/// The answer to `tasks/cancel`: the wish has arrived. The task may still end otherwise.
pub type CancelTaskResult = EmptyResult;

eq_by_json!(DetailedTask, UpdateTaskRequestParams);
