//! Tasks of the extension: the server decides, and answers are given by updates.

use super::{Desk, EXTENSION, RELATED, call, call_as_task, declared, id, modern, server, shared, until};
use crate::common::{self, MODERN, Peer, code, text};
use linchpin::prelude::*;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

#[tokio::test]
async fn a_call_that_is_done_within_the_grace_is_answered_directly() {
    let desk = Arc::default();
    let mut peer = modern(&desk).await;
    let answer = call(&mut peer, "work", json!({})).await;
    assert_eq!((text(&answer), &answer["result"]["resultType"]), ("worked in false", &json!("complete")));
}

#[tokio::test]
async fn a_call_that_takes_longer_becomes_a_task_with_its_result() {
    let desk = Arc::default();
    let mut peer = modern(&desk).await;
    let made = call(&mut peer, "work", json!({ "ms": 150 })).await;
    let result = &made["result"];
    assert_eq!((&result["resultType"], &result["status"]), (&json!("task"), &json!("working")), "{made}");
    assert_eq!((&result["ttlMs"], &result["pollIntervalMs"]), (&json!(3_600_000), &json!(1_000)));
    for never in ["task", "ttl", "pollInterval", "requestState", "inputRequests", "result", "error"] {
        assert!(result.get(never).is_none(), "{never}: {made}");
    }
    let id = id(&made);
    assert!(id.starts_with("tk_") && id.len() == 29, "{id}");
    let done = until(&mut peer, &id, "completed").await;
    assert_eq!(done["resultType"], "complete");
    assert_eq!(done["result"]["content"][0]["text"], "worked in true");
    assert!(done["result"]["_meta"].get(RELATED).is_none(), "{done}");
}

/// Rows 1 and 2 of the faults.
#[tokio::test]
async fn each_request_says_whether_its_sender_knows_tasks() {
    let desk = Arc::default();
    let mut peer = modern(&desk).await;
    let made = call(&mut peer, "must", json!({ "ms": 5_000 })).await;
    let id = id(&made);
    peer.capabilities = json!({ "elicitation": {} });
    let refused = call(&mut peer, "must", json!({})).await;
    let required = json!({ "requiredCapabilities": { "extensions": { EXTENSION: {} } } });
    assert_eq!((code(&refused), &refused["error"]["data"]), (-32021, &required));
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        let refused = peer.ask(method, json!({ "taskId": id, "inputResponses": {} })).await;
        assert_eq!((code(&refused), &refused["error"]["data"]), (-32021, &required), "{method}");
    }
    let listen = json!({ "notifications": { "taskIds": [id] } });
    assert_eq!(code(&peer.ask("subscriptions/listen", listen).await), -32021);
    // A tool that may be a task runs in place, also when it asks and with a `task` that means nothing here.
    let answer = call_as_task(&mut peer, "work", json!({ "ms": 80 })).await;
    assert_eq!(text(&answer), "worked in false");
    assert_eq!(call(&mut peer, "asks", json!({})).await["result"]["resultType"], "input_required");
    // In revisions without tasks, too.
    let mut old = Peer::of(shared(server(&desk)), "2025-06-18", json!({})).await;
    assert_eq!(text(&call_as_task(&mut old, "work", json!({ "ms": 80 })).await), "worked in false");
    assert_eq!(code(&call(&mut old, "must", json!({})).await), -32601);
    assert_eq!(code(&old.ask("tasks/get", json!({ "taskId": id })).await), -32601);
}

/// Row 6 of the faults.
#[tokio::test]
async fn questions_of_a_task_are_answered_by_updates() {
    let desk = Arc::default();
    let mut peer = modern(&desk).await;
    // It asks within the grace: a task is made of it, not a round.
    let made = call(&mut peer, "asks", json!({})).await;
    let id = id(&made);
    let task = until(&mut peer, &id, "input_required").await;
    let question = &task["inputRequests"]["sure"];
    assert_eq!(
        (&question["method"], &question["params"]["message"]),
        (&json!("elicitation/create"), &json!("Really?"))
    );
    let mut update = async |responses: &str| {
        let line = format!(r#"{{"taskId":"{id}","inputResponses":{responses}}}"#);
        // The text matters where a key is there twice.
        let mut message = peer.render("tasks/update", json!({ "at": "here" })).to_string();
        message = message.replace(r#""at":"here""#, &line[1..line.len() - 1]);
        peer.send_line(message.as_bytes()).await;
        let answer = peer.message().await;
        let task = peer.ask("tasks/get", json!({ "taskId": id })).await["result"].clone();
        (answer, task)
    };
    let yes = r#"{"action":"accept","content":{"yes":true}}"#;
    let (answer, task) = update(&format!(r#"{{"other":{yes},"sure#2":{yes}}}"#)).await;
    assert_eq!((&answer["result"]["resultType"], &task["status"]), (&json!("complete"), &json!("input_required")));
    let (answer, _) = update(&format!(r#"{{"sure":{yes},"sure":{yes}}}"#)).await;
    assert_eq!(code(&answer), -32602, "{answer}");
    for (at, wrong) in [r#"7"#, r#"{"action":"accept","content":{"yes":"maybe"}}"#].into_iter().enumerate() {
        let key = if at == 0 { "sure".to_owned() } else { format!("sure#{}", at + 1) };
        let (answer, task) = update(&format!(r#"{{"{key}":{wrong}}}"#)).await;
        assert_eq!(answer["result"]["resultType"], "complete", "{answer}");
        let asked = task["inputRequests"].as_object().unwrap();
        assert_eq!(asked.len(), 1, "{task}");
        let again = &asked[&format!("sure#{}", at + 2)]["params"]["message"];
        assert!(again.as_str().unwrap().starts_with("Really? (the last answer did not fit: "), "{again}");
    }
    let (_, task) = update(&format!(r#"{{"sure#3":{yes}}}"#)).await;
    assert_ne!(task["status"], "input_required", "{task}");
    let done = until(&mut peer, &id, "completed").await;
    assert_eq!(done["result"]["content"][0]["text"], "sure: true");
    let late = peer.ask("tasks/update", json!({ "taskId": id, "inputResponses": { "sure#3": 7 } })).await;
    assert_eq!(late["result"]["resultType"], "complete", "an ended task takes no answers, and says so to nobody");
    let many: serde_json::Map<_, _> = (0..17).map(|n| (n.to_string(), json!({}))).collect();
    assert_eq!(code(&peer.ask("tasks/update", json!({ "taskId": id, "inputResponses": many })).await), -32602);
}

#[tokio::test]
async fn rounds_come_before_the_task_where_the_handler_says_so() {
    let desk = Arc::default();
    let mut peer = modern(&desk).await;
    let round = call(&mut peer, "later", json!({})).await;
    assert_eq!(round["result"]["resultType"], "input_required", "{round}");
    let answers = json!({ "who": { "action": "accept", "content": { "name": "Ada" } } });
    let state = round["result"]["requestState"].clone();
    let params = json!({ "name": "later", "arguments": {}, "inputResponses": answers, "requestState": state });
    let made = peer.ask("tools/call", params).await;
    assert_eq!(made["result"]["resultType"], "task", "{made}");
    assert!(made["result"].get("requestState").is_none());
    let done = until(&mut peer, &id(&made), "completed").await;
    assert_eq!(done["result"]["content"][0]["text"], "Ada, true");
}

/// The first attempt finds no room for a task, and is answered like any other call.
#[tokio::test]
async fn an_attempt_that_was_no_task_runs_its_step_and_asks_its_question_once() {
    let desk: Arc<Desk> = Arc::default();
    let limited = server(&desk)
        .tool(Tool::new("books", "").task(), Desk::steps)
        .limits(|limits| (limits.tasks.running_per_owner_max, limits.tasks.grace_ms) = (1, 40));
    let mut peer = Peer::of(shared(limited), MODERN, declared()).await;
    let busy = id(&call(&mut peer, "must", json!({ "ms": 60_000 })).await);
    let round = call(&mut peer, "books", json!({})).await;
    assert_eq!(round["result"]["resultType"], "input_required", "{round}");
    peer.ask("tasks/cancel", json!({ "taskId": busy })).await;
    common::until("it is over", || desk.dropped.load(Ordering::SeqCst) == 1).await;
    // Its place is free a moment later. While it is not, this would show less, but not fail.
    tokio::time::sleep(Duration::from_millis(500)).await;
    let answers = json!({ "sure": { "action": "accept", "content": { "yes": true } } });
    let state = &round["result"]["requestState"];
    let params = json!({ "name": "books", "arguments": {}, "inputResponses": answers, "requestState": state });
    let end = peer.ask("tools/call", params).await;
    assert_eq!(text(&end), "1, true", "{end}");
    assert_eq!(desk.steps.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_cancelled_task_is_dropped_and_cancelling_again_changes_nothing() {
    let desk: Arc<Desk> = Arc::default();
    let mut peer = modern(&desk).await;
    let made = call(&mut peer, "work", json!({ "ms": 60_000 })).await;
    let id = id(&made);
    for _ in 0..2 {
        let answer = peer.ask("tasks/cancel", json!({ "taskId": id })).await;
        let members: Vec<_> = answer["result"].as_object().unwrap().keys().collect();
        assert_eq!(members, ["resultType", "_meta"], "{answer}");
    }
    until(&mut peer, &id, "cancelled").await;
    common::until("its handler was dropped", || desk.dropped.load(Ordering::SeqCst) == 1).await;
}

/// Rows 17 and 18 of the faults.
#[tokio::test]
async fn a_task_goes_on_when_its_call_is_cancelled_or_its_connection_ends() {
    let desk: Arc<Desk> = Arc::default();
    let service = shared(server(&desk));
    let mut peer = Peer::of(service.clone(), MODERN, declared()).await;
    let call_id = peer.start("must", json!({ "ms": 200 })).await;
    let made = peer.answer(call_id).await;
    peer.send(json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": call_id } }))
        .await;
    peer.end().await;
    drop(peer);
    let mut other = Peer::of(service, MODERN, declared()).await;
    let done = until(&mut other, &id(&made), "completed").await;
    assert_eq!(done["result"]["content"][0]["text"], "worked in true");
}

#[tokio::test]
async fn streams_tell_of_tasks_that_their_reader_has() {
    let desk = Arc::default();
    let mut peer = modern(&desk).await;
    let made = call(&mut peer, "asks", json!({})).await;
    let id = id(&made);
    let wanted = json!({ "notifications": { "taskIds": [id, "tk_other", id] } });
    let stream = peer.request("subscriptions/listen", wanted).await;
    let acknowledged = peer.message().await;
    assert_eq!(acknowledged["method"], "notifications/subscriptions/acknowledged");
    assert_eq!(acknowledged["params"]["notifications"], json!({ "taskIds": [id] }), "only those that exist");
    let told = peer.message().await;
    assert_eq!((&told["method"], &told["params"]["taskId"]), (&json!("notifications/tasks"), &json!(id)), "{told}");
    assert_eq!(told["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], stream);
    let answers = json!({ "sure": { "action": "accept", "content": { "yes": true } } });
    let updated = peer.ask("tasks/update", json!({ "taskId": id, "inputResponses": answers })).await;
    assert!(updated.get("result").is_some(), "{updated}");
    loop {
        let told = peer.said("notifications/tasks").await;
        if told["params"]["status"] == "completed" {
            assert_eq!(told["params"]["result"]["content"][0]["text"], "sure: true");
            break;
        }
    }
}
