//! What holds for tasks of both generations: how they end, who declares them, whose they are.

use super::{CORE, EXTENSION, RELATED, ask_as, call, call_as_task, core, declared, id, modern, server, shared, until};
use crate::common::{self, MODERN, Peer, code, service, text};
use linchpin::prelude::*;
use linchpin::types::sample::{CreateMessageRequestParams, SamplingMessage};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

#[tokio::test]
async fn how_a_task_ends_is_what_the_call_would_have_answered() {
    let desk = Arc::default();
    let (mut new, mut old) = (modern(&desk).await, core(&desk).await);
    // The tool, the status with the extension, and in the revision that has tasks of its own.
    let rows = [
        ("must", "completed", "completed"),
        ("fails", "completed", "failed"),
        ("breaks", "failed", "failed"),
        ("panics", "failed", "failed"),
        ("big", "failed", "failed"),
    ];
    for (tool, extended, own) in rows {
        let made = call(&mut new, tool, json!({})).await;
        let task = until(&mut new, &id(&made), extended).await;
        assert_eq!(task.get("result").is_some(), extended == "completed", "{tool}: {task}");
        assert_eq!(task.get("error").is_some(), extended == "failed", "{tool}: {task}");
        let made = call_as_task(&mut old, tool, json!({})).await;
        let id = id(&made);
        assert_eq!(
            (&made["result"]["task"]["status"], &made["result"]["task"]["ttl"]),
            (&json!("working"), &json!(60_000))
        );
        let task = until(&mut old, &id, own).await;
        assert!(task.get("result").is_none() && task.get("error").is_none(), "{tool}: {task}");
        // Whoever only polls learns why.
        let said = &task["statusMessage"];
        assert!(
            if tool == "fails" { said == "no luck" } else { own != "failed" || said.is_string() },
            "{tool}: {task}"
        );
        let result = old.ask("tasks/result", json!({ "taskId": id })).await;
        match tool {
            "must" => assert_eq!(text(&result), "worked in true"),
            "fails" => assert_eq!(result["result"]["isError"], true),
            "breaks" => assert_eq!((code(&result), &result["error"]["data"]["why"]), (-7, &json!(1))),
            "panics" => assert_eq!(code(&result), -32603),
            _ => assert!(result["error"]["message"].as_str().unwrap().contains("4194304 bytes"), "{result}"),
        }
        if result.get("result").is_some() {
            assert_eq!(result["result"]["_meta"][RELATED], json!({ "taskId": id }));
        }
    }
}

#[tokio::test]
async fn tasks_are_declared_as_the_revision_has_them_and_only_by_servers_that_have_some() {
    let desk = Arc::default();
    let mut peer = modern(&desk).await;
    let found = peer.ask("server/discover", json!({})).await;
    let capabilities = &found["result"]["capabilities"];
    assert_eq!((&capabilities["extensions"][EXTENSION], capabilities.get("tasks")), (&json!({}), None));
    let tools = peer.ask("tools/list", json!({})).await;
    assert!(tools["result"]["tools"].as_array().unwrap().iter().all(|tool| tool.get("execution").is_none()));

    let hello = |revision: &str| json!({ "protocolVersion": revision, "capabilities": {}, "clientInfo": { "name": "t", "version": "0" } });
    for revision in common::LEGACY {
        let mut peer = Peer::silent(shared(server(&desk)));
        let answer = peer.ask("initialize", hello(revision)).await;
        let want = json!({ "list": {}, "cancel": {}, "requests": { "tools": { "call": {} } } });
        let tasks = &answer["result"]["capabilities"]["tasks"];
        assert_eq!(*tasks, if revision == CORE { want } else { Value::Null }, "{revision}");
        let tools = peer.ask("tools/list", json!({})).await;
        let support = |name: &str| {
            let all = tools["result"]["tools"].as_array().unwrap();
            all.iter().find(|tool| tool["name"] == name).unwrap()["execution"]["taskSupport"].clone()
        };
        let want = |support: &str| if revision == CORE { json!(support) } else { Value::Null };
        assert_eq!(
            [support("work"), support("must"), support("plain")],
            [want("optional"), want("required"), Value::Null]
        );
    }

    let none = || service(Server::new("none", "1").tool("plain", || "plain"));
    let mut peer = Peer::of(none(), MODERN, declared()).await;
    let found = peer.ask("server/discover", json!({})).await;
    assert!(found["result"]["capabilities"].get("extensions").is_none(), "{found}");
    for method in ["tasks/get", "tasks/update", "tasks/cancel", "tasks/result", "tasks/list"] {
        assert_eq!(code(&peer.ask(method, json!({ "taskId": "x" })).await), -32601, "{method}");
    }
    let mut peer = Peer::of(none(), CORE, json!({})).await;
    assert_eq!(text(&call_as_task(&mut peer, "plain", json!({})).await), "plain", "`task` means nothing without tasks");
    assert_eq!(code(&peer.ask("tasks/get", json!({ "taskId": "x" })).await), -32601);
}

/// Row 16 of the faults.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_an_end_and_a_cancellation_one_wins_and_stays() {
    let desk = Arc::default();
    let service = shared(server(&desk).limits(|limits| limits.tasks.polls_per_second_max = u32::MAX));
    let mut seen = std::collections::BTreeMap::<String, usize>::new();
    for round in 0..200 {
        let call = json!({ "name": "must", "arguments": { "ms": round % 3 } });
        let made = ask_as(&service, Some("ada"), MODERN, "tools/call", call).await;
        let get = json!({ "taskId": id(&made) });
        if round % 2 == 0 {
            tokio::time::sleep(Duration::from_micros(700 + 10 * round)).await;
        }
        ask_as(&service, Some("ada"), MODERN, "tasks/cancel", get.clone()).await;
        let first = ask_as(&service, Some("ada"), MODERN, "tasks/get", get.clone()).await["result"].clone();
        tokio::time::sleep(Duration::from_millis(1)).await;
        let second = ask_as(&service, Some("ada"), MODERN, "tasks/get", get).await["result"].clone();
        assert_eq!(first, second);
        *seen.entry(first["status"].as_str().unwrap().to_owned()).or_default() += 1;
    }
    assert!(seen.keys().all(|status| ["cancelled", "completed"].contains(&status.as_str())), "{seen:?}");
}

/// Row 3 of the faults.
#[tokio::test]
async fn a_task_is_its_owners_and_for_others_it_does_not_exist() {
    let desk = Arc::default();
    let service = shared(server(&desk));
    let call = json!({ "name": "must", "arguments": { "ms": 60_000 } });
    let made = ask_as(&service, Some("ada"), MODERN, "tools/call", call).await;
    let id = id(&made);
    let wrong = format!("tk_{}", "a".repeat(26));
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        for (who, id) in [(Some("eve"), &id), (None, &id), (Some("ada"), &wrong), (Some("eve"), &wrong)] {
            let params = json!({ "taskId": id, "inputResponses": {} });
            let answer = ask_as(&service, who, MODERN, method, params).await;
            let want = json!({ "code": -32602, "message": format!("unknown task: {id}") });
            assert_eq!(answer["error"], want, "{method} {who:?}");
        }
    }
    let seen = ask_as(&service, Some("ada"), MODERN, "tasks/get", json!({ "taskId": id })).await;
    assert_eq!(seen["result"]["status"], "working");
    let listed = ask_as(&service, Some("eve"), CORE, "tasks/list", json!({})).await;
    assert_eq!(listed["result"]["tasks"], json!([]));
    let listed = ask_as(&service, Some("ada"), CORE, "tasks/list", json!({})).await;
    assert_eq!(listed["result"]["tasks"][0]["taskId"], *id, "both generations show one record");
}

/// Row 19 of the faults: a handler that blocks its thread keeps nobody else waiting.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn others_go_on_while_a_handler_blocks_its_thread() {
    let (release, held) = std::sync::mpsc::channel::<()>();
    let held = Arc::new(std::sync::Mutex::new(held));
    let blocks = move |_: NoArgs| {
        let held = held.clone();
        async move {
            held.lock().expect("one at a time").recv().expect("it is released");
            "released"
        }
    };
    let desk = Arc::default();
    let service = shared(server(&desk).tool(Tool::new("blocks", "").task_required(), blocks));
    let make = async |name: &str| {
        id(&ask_as(&service, Some("ada"), MODERN, "tools/call", json!({ "name": name, "arguments": {} })).await)
    };
    let status = async |id: &str| {
        ask_as(&service, Some("ada"), MODERN, "tasks/get", json!({ "taskId": id })).await["result"]["status"].clone()
    };
    let blocked = make("blocks").await;
    let other = make("must").await;
    while status(&other).await != "completed" {
        tokio::time::sleep(Duration::from_millis(60)).await;
    }
    assert_eq!(status(&blocked).await, "working");
    release.send(()).expect("it waits");
    while status(&blocked).await != "completed" {
        tokio::time::sleep(Duration::from_millis(60)).await;
    }
}

/// Whatever a task asks, it is asked in the way that the client's revision has.
#[tokio::test]
async fn messages_of_models_and_roots_are_asked_inside_tasks_too() {
    let rows = [
        (
            "think",
            "sampling/createMessage",
            json!({ "role": "assistant", "model": "m", "content": { "type": "text", "text": "done" } }),
            "done",
        ),
        ("places", "roots/list", json!({ "roots": [{ "uri": "file:///a" }] }), "file:///a"),
    ];
    let able = json!({ "sampling": {}, "roots": {}, "extensions": { EXTENSION: {} } });
    for (tool, method, response, expected) in rows {
        let mut new = Peer::of(service(asking()), MODERN, able.clone()).await;
        let made = id(&call(&mut new, tool, json!({})).await);
        let task = until(&mut new, &made, "input_required").await;
        let (key, asked) = task["inputRequests"].as_object().unwrap().iter().next().expect("a question");
        assert_eq!(asked["method"], method, "{task}");
        let update = json!({ "taskId": made, "inputResponses": { key.as_str(): response } });
        assert_eq!(new.ask("tasks/update", update).await["result"]["resultType"], "complete");
        let done = until(&mut new, &made, "completed").await;
        assert_eq!(done["result"]["content"][0]["text"], expected);

        let mut old = Peer::of(service(asking()), CORE, able.clone()).await;
        let made = id(&call_as_task(&mut old, tool, json!({})).await);
        until(&mut old, &made, "input_required").await;
        let waiting = old.request("tasks/result", json!({ "taskId": made })).await;
        let asked = super::legacy::said(&mut old, method).await;
        assert_eq!(asked["params"]["_meta"][RELATED], json!({ "taskId": made }), "{asked}");
        old.reply(&asked, response).await;
        assert_eq!(text(&old.answer(waiting).await), expected);
    }
}

/// A server whose tasks ask for something else than a form.
fn asking() -> Server {
    let think = async |cx: &Cx| -> Result<String> {
        let request = CreateMessageRequestParams::new([SamplingMessage::user("Think.")], 10);
        let answer = cx.sample("thought", request).await?;
        Ok(answer.content[0].as_text().unwrap_or_default().to_owned())
    };
    let places = async |cx: &Cx| -> Result<String> {
        let roots = cx.roots("roots").await?;
        Ok(roots.into_iter().map(|root| root.uri).collect())
    };
    let tool = |name: &str| Tool::new(name, "").task_required();
    Server::new("asking", "1").tool(tool("think"), think).tool(tool("places"), places)
}
