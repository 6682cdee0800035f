//! Tasks of two nodes on one Redis server: whoever is asked answers, and one that dies is survived.

use super::node::{Node, STEPS, answer, counts, get, make, until};
use super::{CORE, Desk, ask_as, declared, id, server, shared};
use crate::common::{self, MODERN, Peer, code};
use crate::redis_server::Server;
use linchpin::Tasks;
use linchpin::store::{Secrets, Store};
use linchpin::transport::Service;
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// A node, in this process.
fn node(redis: &Server, desk: &Arc<Desk>) -> Arc<dyn Service> {
    let store = Store::redis(redis.url().as_str(), Secrets::new([7; 32])).expect("a store");
    shared(server(desk).tasks(Tasks::at(store)))
}

async fn ask(service: &Arc<dyn Service>, method: &str, params: Value) -> Value {
    ask_as(service, Some("ada"), MODERN, method, params).await
}

async fn reaches(service: &Arc<dyn Service>, id: &str, status: &str) -> Value {
    let begun = Instant::now();
    loop {
        let task = ask(service, "tasks/get", json!({ "taskId": id })).await["result"].clone();
        if task["status"] == status {
            return task;
        }
        assert!(begun.elapsed() < Duration::from_secs(10), "not {status}: {task}");
        tokio::time::sleep(Duration::from_millis(60)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a Redis server: `cargo xtask test --only redis`"]
async fn a_task_of_one_node_is_read_answered_and_cancelled_through_the_other() {
    let redis = Server::start();
    let (here, there): (Arc<Desk>, Arc<Desk>) = Default::default();
    let (a, b) = (node(&redis, &here), node(&redis, &there));
    let answers = json!({ "sure": { "action": "accept", "content": { "yes": true } } });
    for (one, other) in [(&a, &b), (&b, &a)] {
        let made = ask(one, "tools/call", json!({ "name": "asks" })).await;
        let asks = id(&made);
        let task = reaches(other, &asks, "input_required").await;
        assert_eq!(task["createdAt"], made["result"]["createdAt"]);
        // One that does not fit is asked again, by whichever node.
        ask(other, "tasks/update", json!({ "taskId": asks, "inputResponses": { "sure": 7 } })).await;
        let task = reaches(one, &asks, "input_required").await;
        assert!(task["inputRequests"].get("sure#2").is_some(), "{task}");
        let again = json!({ "sure#2": answers["sure"] });
        let updated = ask(other, "tasks/update", json!({ "taskId": asks, "inputResponses": again })).await;
        assert_eq!(updated["result"]["resultType"], "complete", "{updated}");
        for node in [one, other] {
            let done = reaches(node, &asks, "completed").await;
            assert_eq!(done["result"]["content"][0]["text"], "sure: true");
        }
        // The other generation sees the same, and others see nothing.
        let listed = ask_as(other, Some("ada"), CORE, "tasks/list", json!({})).await;
        assert_eq!(listed["result"]["tasks"][0]["taskId"], *asks);
        let foreign = ask_as(other, Some("eve"), MODERN, "tasks/get", json!({ "taskId": asks })).await;
        assert_eq!(code(&foreign), -32602);
    }
    let made = ask(&a, "tools/call", json!({ "name": "must", "arguments": { "ms": 60_000 } })).await;
    common::until("it runs", || here.begun.load(Ordering::SeqCst) == 1).await;
    ask(&b, "tasks/cancel", json!({ "taskId": id(&made) })).await;
    reaches(&a, &id(&made), "cancelled").await;
    common::until("its handler was dropped", || here.dropped.load(Ordering::SeqCst) == 1).await;
    assert_eq!(there.begun.load(Ordering::SeqCst), 0, "nothing ran twice");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a Redis server: `cargo xtask test --only redis`"]
async fn a_stream_of_one_node_tells_of_tasks_of_the_other() {
    let redis = Server::start();
    let (here, there): (Arc<Desk>, Arc<Desk>) = Default::default();
    let (a, b) = (node(&redis, &here), node(&redis, &there));
    let (mut one, mut other) = (Peer::of(a, MODERN, declared()).await, Peer::of(b, MODERN, declared()).await);
    let made = one.call("asks", json!({})).await;
    let id = id(&made);
    other.request("subscriptions/listen", json!({ "notifications": { "taskIds": [id] } })).await;
    let acknowledged = other.message().await;
    assert_eq!(acknowledged["params"]["notifications"], json!({ "taskIds": [id] }), "{acknowledged}");
    let answers = json!({ "sure": { "action": "accept", "content": { "yes": true } } });
    one.ask("tasks/update", json!({ "taskId": id, "inputResponses": answers })).await;
    loop {
        let told = other.said("notifications/tasks").await;
        if told["params"]["status"] == "completed" {
            assert_eq!(told["params"]["result"]["content"][0]["text"], "sure: true");
            break;
        }
    }
}

/// A node is killed with `kill -9` while its tasks run.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a Redis server: `cargo xtask test --only redis`"]
async fn the_tasks_of_a_node_that_is_killed_go_on_at_the_other_or_fail() {
    let redis = Server::start();
    let folder = tempfile::tempdir().expect("a folder");
    let folder: &Path = folder.path();
    let url = redis.url();
    let [killed, other] = ["a", "b"].map(|name| Node::start(folder, name, Some(&url)));
    let (mut client, mut there) = (killed.client().await, other.client().await);
    let mut steps = Vec::new();
    for _ in 0..8 {
        steps.push(make(&mut client, "steps", json!({ "ms": 100 })).await);
    }
    let once = make(&mut client, "once", json!({ "ms": 60_000 })).await;
    let elsewhere = make(&mut there, "once", json!({ "ms": 3_000 })).await;
    common::until("they run", || counts(folder, "kept").len() >= 8).await;
    drop(killed);
    let task = until(&mut there, &once, "failed").await;
    assert!(task["error"]["message"].as_str().unwrap().contains("it was not started again"), "{task}");
    for id in &steps {
        until(&mut there, id, "input_required").await;
        answer(&mut there, id).await;
    }
    for id in &steps {
        let task = until(&mut there, id, "completed").await;
        assert_eq!(task["result"]["content"][0]["text"], "5 steps, true");
    }
    assert_eq!(until(&mut there, &elsewhere, "completed").await["result"]["content"][0]["text"], "once");
    assert!(counts(folder, "once").values().all(|count| *count == 1), "what is not resumable ran once");
    // And once more after they were suspended.
    assert!(counts(folder, "starts").values().all(|count| *count <= 3), "they were started again once");
    let effects = counts(folder, "effects");
    let again: usize = effects.values().map(|count| count - 1).sum();
    assert!(
        effects.len() == 8 * STEPS && again <= 8,
        "only the step of each task that was interrupted is done again: {again}"
    );
    assert_eq!(get(&mut there, &once).await["status"], "failed");
}

/// Row 13 of the faults, with the server itself: it goes away while a task runs, and what it had is still there when it is back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a Redis server: `cargo xtask test --only redis`"]
async fn a_task_ends_although_the_redis_server_was_away_meanwhile() {
    let redis = Server::with(&["--appendonly", "yes", "--appendfsync", "always"]);
    let desk: Arc<Desk> = Arc::default();
    let service = node(&redis, &desk);
    let call = |ms: u64| json!({ "name": "must", "arguments": { "ms": ms } });
    let made = ask(&service, "tools/call", call(500)).await;
    redis.kill();
    let refused = ask(&service, "tools/call", call(0)).await;
    assert_eq!(code(&refused), -32603, "nothing is promised: {refused}");
    tokio::time::sleep(Duration::from_millis(600)).await;
    redis.run();
    let begun = Instant::now();
    loop {
        let task = ask(&service, "tasks/get", json!({ "taskId": id(&made) })).await;
        if task["result"]["status"] == "completed" {
            break;
        }
        assert!(begun.elapsed() < Duration::from_secs(30), "{task}");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    assert_eq!(desk.begun.load(Ordering::SeqCst), 1);
}
