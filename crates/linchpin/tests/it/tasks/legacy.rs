//! Tasks of 2025-11-25: the requestor decides, and a waiting `tasks/result` asks the questions.

use super::{
    CORE, RELATED, Sure, ask_as, ask_deaf, call, call_as_task, core, declared, id, modern, server, shared, until,
};
use crate::common::{self, MODERN, Peer, code, service, text};
use linchpin::prelude::*;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

const STATUS: &str = "notifications/tasks/status";

/// The next message that is not about a status.
pub(super) async fn said(peer: &mut Peer, method: &str) -> Value {
    loop {
        let message = peer.message().await;
        if message["method"] != STATUS {
            assert_eq!(message["method"], method, "{message}");
            return message;
        }
    }
}

#[tokio::test]
async fn where_the_requestor_decides_the_tool_says_whether_it_may() {
    let desk = Arc::default();
    let mut peer = core(&desk).await;
    assert_eq!(text(&call(&mut peer, "work", json!({ "ms": 80 })).await), "worked in false");
    assert_eq!(code(&call(&mut peer, "must", json!({})).await), -32601);
    assert_eq!(code(&call_as_task(&mut peer, "plain", json!({})).await), -32601);
    let made = call_as_task(&mut peer, "must", json!({})).await;
    let meanwhile = &made["result"]["_meta"]["io.modelcontextprotocol/model-immediate-response"];
    assert_eq!(meanwhile, "It takes a while.");
    assert!(made["result"].get("resultType").is_none());
    let params = json!({ "name": "work", "arguments": {}, "task": { "ttl": 1e12 } });
    let long = peer.ask("tools/call", params).await;
    assert_eq!(long["result"]["task"]["ttl"], 86_400_000, "cut to what is allowed");
}

#[tokio::test]
async fn what_is_no_request_for_a_task_is_refused() {
    let desk = Arc::default();
    let mut peer = core(&desk).await;
    for task in [json!(5), json!([60_000]), json!("now"), json!(true), json!({ "ttl": "x" }), json!({ "ttl": {} })] {
        for tool in ["work", "must", "plain"] {
            let params = json!({ "name": tool, "arguments": {}, "task": task });
            assert_eq!(code(&peer.ask("tools/call", params).await), -32602, "{tool} {task}");
        }
    }
    for task in [json!({}), json!({ "ttl": null }), json!({ "ttl": 60_000 })] {
        let params = json!({ "name": "work", "arguments": {}, "task": task });
        let made = peer.ask("tools/call", params).await;
        assert!(made["result"]["task"].is_object(), "{task}: {made}");
    }
}

/// Rows 24 and 25 of the faults.
#[tokio::test]
async fn a_waiting_result_asks_the_questions_and_whoever_comes_next_asks_again() {
    let desk = Arc::default();
    let service = shared(server(&desk));
    let mut peer = Peer::of(service, CORE, json!({ "elicitation": {} })).await;
    let made = call_as_task(&mut peer, "asks", json!({})).await;
    let id = id(&made);
    until(&mut peer, &id, "input_required").await;
    // Nobody waits: it waits. Two who wait: one is asked.
    let first = peer.request("tasks/result", json!({ "taskId": id })).await;
    let asked = said(&mut peer, "elicitation/create").await;
    assert_eq!(asked["params"]["_meta"][RELATED], json!({ "taskId": id }));
    let second = peer.request("tasks/result", json!({ "taskId": id })).await;
    peer.aside.retain(|message| message["method"] != STATUS);
    peer.quiet().await;
    // The one that asked is cut: the other asks, under another id, and the old answer is nobody's.
    peer.send(json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": first } })).await;
    let withdrawn = said(&mut peer, "notifications/cancelled").await;
    assert_eq!(withdrawn["params"]["requestId"], asked["id"]);
    let again = said(&mut peer, "elicitation/create").await;
    assert_ne!(again["id"], asked["id"]);
    peer.reply(&asked, json!({ "action": "accept", "content": { "yes": false } })).await;
    let third = peer.request("tasks/result", json!({ "taskId": id })).await;
    peer.reply(&again, json!({ "action": "accept", "content": { "yes": true } })).await;
    for waiting in [second, third] {
        assert_eq!(text(&peer.answer(waiting).await), "sure: true");
    }
    assert_eq!(text(&peer.ask("tasks/result", json!({ "taskId": id })).await), "sure: true", "and at once, again");

    let made = call_as_task(&mut peer, "must", json!({ "ms": 60_000 })).await;
    let id = self::id(&made);
    let cancelled = peer.ask("tasks/cancel", json!({ "taskId": id })).await;
    assert_eq!(cancelled["result"]["status"], "cancelled", "{cancelled}");
    assert_eq!(code(&peer.ask("tasks/cancel", json!({ "taskId": id })).await), -32602);
    let result = peer.ask("tasks/result", json!({ "taskId": id })).await;
    assert!(result["error"]["message"].as_str().unwrap().contains("cancelled"), "{result}");
}

/// A client without the extension answers a question with an error: it is the handler's, and the question is not asked again.
#[tokio::test]
async fn an_error_to_a_question_reaches_the_handler() {
    let desk = Arc::default();
    let mut peer = core(&desk).await;
    let made = call_as_task(&mut peer, "asks", json!({})).await;
    let waiting = peer.request("tasks/result", json!({ "taskId": id(&made) })).await;
    let asked = said(&mut peer, "elicitation/create").await;
    let error = json!({ "code": -1, "message": "User rejected" });
    peer.send(json!({ "jsonrpc": "2.0", "id": asked["id"], "error": error })).await;
    let result = peer.answer(waiting).await;
    assert!(result.to_string().contains("User rejected"), "{result}");
    // In an update it would be an answer that does not fit.
    let mut peer = modern(&desk).await;
    let made = call(&mut peer, "asks", json!({})).await;
    let id = id(&made);
    until(&mut peer, &id, "input_required").await;
    let answers = json!({ "taskId": id, "inputResponses": { "sure": [-1, "User rejected"] } });
    peer.ask("tasks/update", answers).await;
    let task = until(&mut peer, &id, "input_required").await;
    assert!(task["inputRequests"].get("sure#2").is_some(), "{task}");
}

/// In 2025-11-25 a response cannot be refused, and whoever is asked again would answer as much.
#[tokio::test]
async fn an_answer_over_the_limit_fails_the_task() {
    let desk = Arc::default();
    let small = server(&desk).limits(|limits| limits.tasks.input_response_bytes_max = 60);
    let mut peer = Peer::of(shared(small), CORE, json!({ "elicitation": {} })).await;
    let made = call_as_task(&mut peer, "asks", json!({})).await;
    let waiting = peer.request("tasks/result", json!({ "taskId": id(&made) })).await;
    let asked = said(&mut peer, "elicitation/create").await;
    let long = json!({ "action": "accept", "content": { "yes": true, "more": "x".repeat(60) } });
    peer.reply(&asked, long).await;
    let result = peer.answer(waiting).await;
    assert!(result["error"]["message"].as_str().unwrap().contains("exceed 60 bytes"), "{result}");
    let task = until(&mut peer, &id(&made), "failed").await;
    assert!(task["statusMessage"].as_str().unwrap().contains("exceed 60 bytes"), "{task}");
}

#[tokio::test]
async fn who_cannot_be_asked_is_asked_once_and_waits_for_the_end() {
    let desk = Arc::default();
    let service = shared(server(&desk));
    let params = json!({ "name": "asks", "arguments": {}, "task": {} });
    let made = ask_as(&service, Some("ada"), CORE, "tools/call", params).await;
    let about = json!({ "taskId": id(&made) });
    let asked = AtomicUsize::new(0);
    let waiting = ask_deaf(&service, (Some("ada"), CORE), "tasks/result", about.clone(), &asked);
    let cancel = async {
        common::until("it was asked", || asked.load(Ordering::SeqCst) > 0).await;
        tokio::time::sleep(Duration::from_millis(50)).await;
        ask_as(&service, Some("ada"), CORE, "tasks/cancel", about.clone()).await
    };
    let (result, _) = tokio::join!(waiting, cancel);
    assert!(result["error"]["message"].as_str().unwrap().contains("cancelled"), "{result}");
    assert_eq!(asked.load(Ordering::SeqCst), 1);
}

/// All questions that may be open are asked at once, and no answer to them is lost.
#[tokio::test]
async fn a_waiting_result_takes_as_many_answers_as_questions_may_be_open() {
    let sixteen = async |cx: &Cx| -> Result<String> {
        let ask = |n: u32| {
            let cx = cx.clone();
            tokio::spawn(async move { cx.elicit::<Sure>(&format!("q{n}"), "Sure?").await.map(|sure| sure.yes) })
        };
        let asked: Vec<_> = (0..16).map(ask).collect();
        let mut yes = 0;
        for one in asked {
            yes += u32::from(one.await.expect("no panic")?);
        }
        Ok(yes.to_string())
    };
    let server = Server::new("asks", "1").tool(Tool::new("sixteen", "").task_required(), sixteen);
    let mut peer = Peer::of(service(server), CORE, json!({ "elicitation": {} })).await;
    let made = call_as_task(&mut peer, "sixteen", json!({})).await;
    let waiting = peer.request("tasks/result", json!({ "taskId": id(&made) })).await;
    let mut asked = Vec::new();
    for _ in 0..16 {
        asked.push(said(&mut peer, "elicitation/create").await);
    }
    for question in &asked {
        peer.reply(question, json!({ "action": "accept", "content": { "yes": true } })).await;
    }
    assert_eq!(text(&peer.answer(waiting).await), "16");
}

/// Row 26 of the faults.
#[tokio::test]
async fn lists_are_paged_newest_first_and_only_for_somebody() {
    let desk = Arc::default();
    let service = shared(server(&desk).limits(|limits| limits.tasks.page_items_max = 2));
    let mut ids = Vec::new();
    for _ in 0..5 {
        let params = json!({ "name": "must", "arguments": {}, "task": {} });
        ids.insert(0, id(&ask_as(&service, Some("ada"), CORE, "tools/call", params).await));
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let (mut all, mut cursor) = (Vec::new(), None::<Value>);
    loop {
        let params = cursor.take().map_or(json!({}), |cursor| json!({ "cursor": cursor }));
        let page = ask_as(&service, Some("ada"), CORE, "tasks/list", params.clone()).await["result"].clone();
        if let Some(foreign) = page.get("nextCursor") {
            let stolen = ask_as(&service, Some("eve"), CORE, "tasks/list", json!({ "cursor": foreign })).await;
            assert_eq!(code(&stolen), -32602);
        }
        let tasks = page["tasks"].as_array().unwrap().clone();
        assert!(tasks.len() <= 2);
        all.extend(tasks.iter().map(|task| task["taskId"].as_str().unwrap().to_owned()));
        match page.get("nextCursor") {
            Some(next) => cursor = Some(next.clone()),
            None => break,
        }
    }
    assert_eq!(all, ids);
    assert_eq!(code(&ask_as(&service, None, CORE, "tasks/list", json!({})).await), -32601);
    assert_eq!(code(&ask_as(&service, Some("ada"), CORE, "tasks/list", json!({ "cursor": "x" })).await), -32602);
    assert_eq!(code(&ask_as(&service, Some("ada"), MODERN, "tasks/list", json!({})).await), -32601);
    assert_eq!(code(&ask_as(&service, Some("ada"), MODERN, "tasks/result", json!({ "taskId": ids[0] })).await), -32601);
}

#[tokio::test]
async fn progress_and_logs_of_a_task_reach_the_session_and_name_the_task() {
    let desk = Arc::default();
    let mut peer = core(&desk).await;
    let params = json!({ "name": "must", "arguments": { "ms": 100 }, "task": {}, "_meta": { "progressToken": "p" } });
    let made = peer.ask("tools/call", params).await;
    let told = said(&mut peer, "notifications/progress").await;
    assert_eq!((&told["params"]["progressToken"], &told["params"]["message"]), (&json!("p"), &json!("half done")));
    assert_eq!(told["params"]["_meta"][RELATED], json!({ "taskId": id(&made) }));
}

/// Only the session that made it, and only where the revision has it: with the message, and without what the result is.
#[tokio::test]
async fn the_session_is_told_of_the_status_of_its_tasks() {
    let desk = Arc::default();
    let service = shared(server(&desk));
    let mut peer = Peer::of(service.clone(), CORE, json!({ "elicitation": {} })).await;
    let mut other = Peer::of(service.clone(), CORE, json!({})).await;
    let made = call_as_task(&mut peer, "asks", json!({})).await;
    let told = peer.said(STATUS).await["params"].clone();
    assert_eq!((&told["taskId"], &told["status"]), (&made["result"]["task"]["taskId"], &json!("input_required")));
    for member in ["createdAt", "lastUpdatedAt", "ttl", "pollInterval"] {
        assert!(told.get(member).is_some(), "{member}: {told}");
    }
    assert!(told.get("_meta").is_none(), "the task is named already: {told}");
    let waiting = peer.request("tasks/result", json!({ "taskId": told["taskId"] })).await;
    let asked = peer.said("elicitation/create").await;
    peer.reply(&asked, json!({ "action": "accept", "content": { "yes": true } })).await;
    peer.answer(waiting).await;
    let mut statuses = Vec::new();
    while statuses.last().is_none_or(|last| *last != "completed") {
        let told = peer.said(STATUS).await["params"].clone();
        assert!(told.get("result").is_none() && told.get("content").is_none(), "{told}");
        statuses.push(told["status"].clone());
    }
    assert_eq!(statuses, ["working", "completed"]);
    other.quiet().await;
    let mut new = Peer::of(service, MODERN, declared()).await;
    let made = call(&mut new, "must", json!({})).await;
    until(&mut new, &id(&made), "completed").await;
    new.quiet().await;
}
