//! Tasks: the examples that the tasks extension and the core of 2025-11-25 publish are read, and written as they were.

use linchpin_types::RawValue;
use linchpin_types::capability::{ClientCapabilities, ServerCapabilities, TasksCapability};
use linchpin_types::error::MissingRequiredClientCapabilityData;
use linchpin_types::meta::key;
use linchpin_types::page::ResultType;
use linchpin_types::subscribe::SubscriptionsListenRequestParams;
use linchpin_types::task::{
    CreateTaskResult, DetailedTask, EXTENSION, GetTaskResult, Task, TaskRequestParams, TaskStatus,
    TaskStatusNotificationParams, UpdateTaskRequestParams, UpdateTaskResult, experimental,
};
use linchpin_types::tool::CallToolRequestParams;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// Reads this as a `T`, from text and from a tree, and wants the same JSON written.
#[track_caller]
fn survive<T: DeserializeOwned + Serialize>(published: Value) -> T {
    let from_tree: T = serde_json::from_value(published.clone()).unwrap_or_else(|why| panic!("{published}: {why}"));
    assert_eq!(serde_json::to_value(&from_tree).unwrap(), published);
    let read: T = serde_json::from_str(&published.to_string()).unwrap_or_else(|why| panic!("{published}: {why}"));
    assert_eq!(serde_json::to_value(&read).unwrap(), published);
    read
}

const ID: &str = "786512e2-9e0d-44bd-8f29-789f320fe840";

#[test]
fn the_extensions_examples_survive() {
    let made: CreateTaskResult = survive(json!({
        "resultType": "task", "taskId": ID, "status": "working", "statusMessage": "The operation is now in progress.",
        "createdAt": "2025-11-25T10:30:00Z", "lastUpdatedAt": "2025-11-25T10:40:00Z", "ttlMs": 60000, "pollIntervalMs": 5000
    }));
    assert_eq!((made.result_type, made.task.poll_interval_ms), (ResultType::Task, Some(5000)));
    survive::<CreateTaskResult>(json!({
        "resultType": "task", "taskId": ID, "status": "working", "createdAt": "2025-11-25T10:30:00Z",
        "lastUpdatedAt": "2025-11-25T10:50:00Z", "ttlMs": null, "_meta": { "io.modelcontextprotocol/serverInfo": { "name": "s" } }
    }));
    survive::<GetTaskResult>(json!({
        "resultType": "complete", "taskId": ID, "status": "working", "createdAt": "2025-11-25T10:30:00Z",
        "lastUpdatedAt": "2025-11-25T10:50:00Z", "ttlMs": 3_600_000, "pollIntervalMs": 5000
    }));
    let asks: GetTaskResult = survive(json!({
        "resultType": "complete", "taskId": ID, "status": "input_required", "createdAt": "2025-11-25T10:30:00Z",
        "lastUpdatedAt": "2025-11-25T10:50:00Z", "ttlMs": 3_600_000, "pollIntervalMs": 5000,
        "inputRequests": { "name": { "method": "elicitation/create", "params": {
            "mode": "form", "message": "Please enter your name.", "requestedSchema": {
                "type": "object", "properties": { "name": { "type": "string" } }, "required": ["name"]
            }
        } } }
    }));
    assert_eq!(asks.input_requests.unwrap()["name"].method(), "elicitation/create");
    survive::<GetTaskResult>(json!({
        "resultType": "complete", "taskId": ID, "status": "completed", "createdAt": "2025-11-25T10:30:00Z",
        "lastUpdatedAt": "2025-11-25T10:50:00Z", "ttlMs": 3_600_000, "pollIntervalMs": 5000,
        "result": { "content": [{ "type": "text", "text": "Hello, Luca!" }], "isError": false }
    }));
    // These two examples say `task` where the text beside them demands `complete`.
    let failed: GetTaskResult = survive(json!({
        "resultType": "task", "taskId": "786512e2-9e0d-44bd-8f29-789f820fe840", "status": "failed",
        "createdAt": "2025-11-25T10:30:00Z", "lastUpdatedAt": "2025-11-25T10:40:00Z", "ttlMs": 3_600_000,
        "statusMessage": "Tool execution failed: API rate limit exceeded",
        "error": { "code": -32603, "message": "API rate limit exceeded" }
    }));
    assert_eq!(failed.error.unwrap().code, -32603);
    survive::<GetTaskResult>(json!({
        "resultType": "task", "taskId": "786512e2-9e0d-44bd-8f29-789f820fe840", "status": "completed",
        "createdAt": "2025-11-25T10:30:00Z", "lastUpdatedAt": "2025-11-25T10:40:00Z", "ttlMs": 3_600_000,
        "result": { "content": [{ "type": "text", "text": "Failed to process request: invalid input" }], "isError": true }
    }));
    let told: TaskStatusNotificationParams = survive(json!({
        "taskId": ID, "status": "completed", "createdAt": "2025-11-25T10:30:00Z", "lastUpdatedAt": "2025-11-25T10:50:00Z",
        "ttlMs": 60000, "pollIntervalMs": 5000,
        "result": { "content": [{ "type": "text", "text": "Operation completed successfully." }], "isError": false }
    }));
    assert!(told.task.status.is_terminal() && told.result_type.is_none());
    survive::<UpdateTaskRequestParams>(
        json!({ "taskId": ID, "inputResponses": { "name": { "action": "accept", "content": { "input": "Luca" } } } }),
    );
    survive::<TaskRequestParams>(
        json!({ "taskId": ID, "_meta": { "io.modelcontextprotocol/clientCapabilities": {} } }),
    );
    survive::<UpdateTaskResult>(json!({ "resultType": "complete" }));
    survive::<SubscriptionsListenRequestParams>(json!({ "notifications": { "taskIds": [ID] } }));
    let missing: MissingRequiredClientCapabilityData =
        survive(json!({ "requiredCapabilities": { "extensions": { EXTENSION: {} } } }));
    assert!(missing.required_capabilities.extensions.contains_key("io.modelcontextprotocol/tasks"));
}

#[test]
fn the_cores_examples_survive() {
    let can: ServerCapabilities =
        survive(json!({ "tasks": { "list": {}, "cancel": {}, "requests": { "tools": { "call": {} } } } }));
    assert!(can.tasks.is_some_and(|tasks| tasks.tools_call()));
    let can: ClientCapabilities = survive(json!({ "tasks": { "list": {}, "cancel": {}, "requests": {
        "sampling": { "createMessage": {} }, "elicitation": { "create": {} }
    } } }));
    let can = can.tasks.unwrap();
    assert!(can.sampling_create_message() && can.elicitation_create() && !can.tools_call());

    let params: CallToolRequestParams =
        survive(json!({ "name": "get_weather", "arguments": { "city": "New York" }, "task": { "ttl": 60000 } }));
    let asked: experimental::TaskMetadata = serde_json::from_str(params.task.unwrap().get()).unwrap();
    assert_eq!(asked, experimental::TaskMetadata::new().with_ttl(60_000u64));
    survive::<experimental::TaskMetadata>(json!({}));

    let task = json!({
        "taskId": ID, "status": "working", "statusMessage": "The operation is now in progress.",
        "createdAt": "2025-11-25T10:30:00Z", "lastUpdatedAt": "2025-11-25T10:40:00Z", "ttl": 60000, "pollInterval": 5000
    });
    survive::<experimental::CreateTaskResult>(json!({ "task": task }));
    let made: experimental::CreateTaskResult =
        survive(json!({ "task": task, "_meta": { "io.modelcontextprotocol/model-immediate-response": "It runs." } }));
    let to_model: Option<String> = made.meta.unwrap().get_as(key::MODEL_IMMEDIATE_RESPONSE).unwrap();
    assert_eq!(to_model.as_deref(), Some("It runs."));
    survive::<experimental::GetTaskResult>(task.clone());
    survive::<experimental::CancelTaskResult>(json!({
        "taskId": ID, "status": "cancelled", "statusMessage": "The task was cancelled by request.",
        "createdAt": "2025-11-25T10:30:00Z", "lastUpdatedAt": "2025-11-25T10:40:00Z", "ttl": 30000, "pollInterval": 5000
    }));
    survive::<experimental::TaskStatusNotificationParams>(task.clone());
    survive::<experimental::ListTasksResult>(json!({ "tasks": [task, {
        "taskId": "abc123-def456-ghi789", "status": "completed", "createdAt": "2025-11-25T09:15:00Z",
        "lastUpdatedAt": "2025-11-25T10:40:00Z", "ttl": null
    }], "nextCursor": "next-page-cursor" }));
    survive::<experimental::RelatedTaskMetadata>(json!({ "taskId": ID }));
}

#[test]
fn both_generations_show_one_record() {
    let task = Task::new("t", TaskStatus::InputRequired, "2026-08-01T00:00:00Z")
        .with_last_updated_at("2026-08-01T00:00:01Z")
        .with_status_message("asks")
        .with_ttl_ms(60_000u64)
        .with_poll_interval_ms(1000u64);
    let core = experimental::Task::from(task.clone());
    assert_eq!(
        serde_json::to_value(&core).unwrap(),
        json!({
            "taskId": "t", "status": "input_required", "statusMessage": "asks", "createdAt": "2026-08-01T00:00:00Z",
            "lastUpdatedAt": "2026-08-01T00:00:01Z", "ttl": 60000, "pollInterval": 1000
        })
    );
    assert_eq!(Task::from(core), task);
}

#[test]
fn odd_numbers_and_declarations_are_read_leniently() {
    let task = |ttl: &str, poll: &str| -> Task {
        let text = format!(
            r#"{{"taskId":"t","status":"working","createdAt":"a","lastUpdatedAt":"b","ttlMs":{ttl},"pollIntervalMs":{poll},"new":[{{}}]}}"#
        );
        serde_json::from_str(&text).unwrap_or_else(|why| panic!("{text}: {why}"))
    };
    for (ttl, poll, ttl_ms, poll_ms) in [
        ("null", "null", None, None),
        ("-1", "-1", Some(0), Some(0)),
        ("0", "1000000000000", Some(0), Some(1_000_000_000_000)),
        ("1.5", "1e30", Some(1), Some(u64::MAX)),
    ] {
        let task = task(ttl, poll);
        assert_eq!((task.ttl_ms, task.poll_interval_ms), (ttl_ms, poll_ms), "{ttl} {poll}");
    }
    for (text, list, call) in [
        (r#"{"list":true,"requests":{"tools":{"call":true}}}"#, true, true),
        (r#"{"list":false,"cancel":null,"requests":{"tools":{"call":{"new":1}}}}"#, false, true),
        (r#"{"list":{},"requests":{"tools":{}}}"#, true, false),
        (r#"{"requests":{}}"#, false, false),
        ("{}", false, false),
    ] {
        let can: TasksCapability = serde_json::from_str(text).unwrap();
        assert_eq!((can.list.is_some(), can.tools_call()), (list, call), "{text}");
    }
}

#[test]
fn what_is_no_task_is_refused_by_name() {
    for (text, said) in [
        (r#"{"status":"working","createdAt":"a","lastUpdatedAt":"b","ttlMs":1}"#, "taskId"),
        (r#"{"taskId":"t","createdAt":"a","lastUpdatedAt":"b","ttlMs":1}"#, "status"),
        (r#"{"taskId":"t","status":"done","createdAt":"a","lastUpdatedAt":"b","ttlMs":1}"#, "done"),
        (r#"{"taskId":7,"status":"working","createdAt":"a","lastUpdatedAt":"b","ttlMs":1}"#, "string"),
    ] {
        let why = serde_json::from_str::<DetailedTask>(text).unwrap_err().to_string();
        assert!(why.contains(said), "{text}: {why}");
    }
}

#[test]
fn results_keep_their_bytes_beside_the_flat_members() {
    let odd = r#"{ "content" : [],"n":1.0e2 }"#;
    let text = format!(
        r#"{{"taskId":"t","status":"completed","createdAt":"a","lastUpdatedAt":"b","ttlMs":null,"result":{odd}}}"#
    );
    let told: DetailedTask = serde_json::from_str(&text).unwrap();
    assert_eq!(told.result.as_deref().map(RawValue::get), Some(odd));
    assert_eq!(serde_json::to_string(&told).unwrap(), text);
}

#[test]
fn statuses_are_the_five_words() {
    for (status, word) in
        TaskStatus::ALL.into_iter().zip(["working", "input_required", "completed", "failed", "cancelled"])
    {
        assert_eq!(serde_json::to_string(&status).unwrap(), format!("{word:?}"));
        assert_eq!((status.as_str(), status.to_string()), (word, word.to_owned()));
        assert_eq!(status.is_terminal(), !matches!(word, "working" | "input_required"));
    }
}
