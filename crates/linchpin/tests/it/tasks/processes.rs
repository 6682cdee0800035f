//! Tasks that outlive their process.

use super::{Desk, ask_as, id, server, shared};
use crate::common::{self, MODERN};
use linchpin::Tasks;
use linchpin::prelude::*;
use linchpin::store::Store;
use linchpin::transport::Service;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

fn sqlite(folder: &tempfile::TempDir) -> Tasks {
    Tasks::at(Store::sqlite(folder.path().join("tasks.db")).expect("a file"))
}

/// A server ends while two tasks wait: the one that may be started again goes on elsewhere, with its step and its question;
/// the other one fails and says why.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tasks_outlive_their_process_in_a_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let desk: Arc<Desk> = Arc::default();
    let first = shared(server(&desk).tasks(sqlite(&folder)));
    let call = |name: &str, ms: u64| json!({ "name": name, "arguments": { "ms": ms } });
    let resumed = id(&ask_as(&first, Some("ada"), MODERN, "tools/call", json!({ "name": "steps" })).await);
    let lost = id(&ask_as(&first, Some("ada"), MODERN, "tools/call", call("must", 60_000)).await);
    let ended = id(&ask_as(&first, Some("ada"), MODERN, "tools/call", call("must", 0)).await);
    let get = async |service: &Arc<dyn Service>, id: &str, status: &str| {
        let begun = Instant::now();
        loop {
            let task =
                ask_as(service, Some("ada"), MODERN, "tasks/get", json!({ "taskId": id })).await["result"].clone();
            if task["status"] == status {
                return task;
            }
            assert!(begun.elapsed() < Duration::from_secs(15), "not {status}: {task}");
            tokio::time::sleep(Duration::from_millis(60)).await;
        }
    };
    get(&first, &resumed, "input_required").await;
    get(&first, &ended, "completed").await;
    first.close();
    first.ended().await;
    drop(first);

    let second = shared(server(&desk).tasks(sqlite(&folder)));
    let task = get(&second, &lost, "failed").await;
    assert!(task["error"]["message"].as_str().unwrap().contains("the server stopped"), "{task}");
    assert_eq!(get(&second, &ended, "completed").await["result"]["content"][0]["text"], "worked in true");
    let task = get(&second, &resumed, "input_required").await;
    assert_eq!(task["inputRequests"].as_object().unwrap().keys().collect::<Vec<_>>(), ["sure"], "under its key");
    let answers =
        json!({ "taskId": resumed, "inputResponses": { "sure": { "action": "accept", "content": { "yes": true } } } });
    assert!(ask_as(&second, Some("ada"), MODERN, "tasks/update", answers).await.get("result").is_some());
    let done = get(&second, &resumed, "completed").await;
    assert_eq!(done["result"]["content"][0]["text"], "1, true", "the step was not repeated");
    assert_eq!(desk.steps.load(Ordering::SeqCst), 1);
}

/// Steps and answers of the rounds before the task are kept with it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_rounds_have_done_is_not_repeated_elsewhere() {
    let folder = tempfile::tempdir().expect("a folder");
    let desk: Arc<Desk> = Arc::default();
    let first = shared(server(&desk).tasks(sqlite(&folder)));
    let ask = async |service: &Arc<dyn Service>, method: &str, params: Value| {
        ask_as(service, Some("ada"), MODERN, method, params).await["result"].clone()
    };
    let accept = |content: Value| json!({ "action": "accept", "content": content });
    let round = ask(&first, "tools/call", json!({ "name": "moves", "arguments": {} })).await;
    let params = json!({
        "name": "moves", "arguments": {}, "requestState": round["requestState"],
        "inputResponses": { "who": accept(json!({ "name": "Ada" })) },
    });
    let made = ask_as(&first, Some("ada"), MODERN, "tools/call", params).await;
    let id = id(&made);
    let get = async |service: &Arc<dyn Service>, status: &str| {
        let begun = Instant::now();
        loop {
            let task = ask(service, "tasks/get", json!({ "taskId": id })).await;
            if task["status"] == status {
                return task;
            }
            assert!(begun.elapsed() < Duration::from_secs(15), "not {status}: {task}");
            tokio::time::sleep(Duration::from_millis(60)).await;
        }
    };
    get(&first, "input_required").await;
    first.close();
    first.ended().await;
    drop(first);

    let second = shared(server(&desk).tasks(sqlite(&folder)));
    let task = get(&second, "input_required").await;
    assert_eq!(task["inputRequests"].as_object().unwrap().keys().collect::<Vec<_>>(), ["sure"]);
    let answers = json!({ "taskId": id, "inputResponses": { "sure": accept(json!({ "yes": true })) } });
    ask(&second, "tasks/update", answers).await;
    let done = get(&second, "completed").await;
    assert_eq!(done["result"]["content"][0]["text"], "1, 1, Ada, true, true");
    assert_eq!(desk.steps.load(Ordering::SeqCst), 1);
}

/// A process ends while a step runs: it is finished and kept, the next one is left to others. Half of the steps begin before the
/// call is a task.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_step_that_runs_is_finished_before_its_process_ends() {
    let folder = tempfile::tempdir().expect("a folder");
    let desk: Arc<Desk> = Arc::default();
    let two = async |desk: &Desk, cx: &Cx, _: NoArgs| -> Result<String> {
        for step in ["one", "two"] {
            let work = async {
                desk.begun.fetch_add(1, Ordering::SeqCst);
                tokio::time::sleep(Duration::from_millis(400)).await;
                desk.steps.fetch_add(1, Ordering::SeqCst);
                Ok(())
            };
            cx.memoize(step, work).await?;
        }
        Ok("both".to_owned())
    };
    let node = || {
        let server = server(&desk).tasks(sqlite(&folder));
        let server = server.tool(Tool::new("early", "").task().resumable(), two);
        shared(server.tool(Tool::new("late", "").task_required().resumable(), two))
    };
    let first = node();
    let mut made = Vec::new();
    for tool in ["early", "late"] {
        made.push(id(&ask_as(&first, Some("ada"), MODERN, "tools/call", json!({ "name": tool })).await));
    }
    common::until("both have begun", || desk.begun.load(Ordering::SeqCst) == 2).await;
    assert_eq!(desk.steps.load(Ordering::SeqCst), 0, "in the middle of a step");
    first.close();
    first.ended().await;
    drop(first);
    assert_eq!((desk.begun.load(Ordering::SeqCst), desk.steps.load(Ordering::SeqCst)), (2, 2), "no other began");
    let second = node();
    for id in made {
        let begun = Instant::now();
        loop {
            let get = json!({ "taskId": id });
            let task = ask_as(&second, Some("ada"), MODERN, "tasks/get", get).await["result"].clone();
            if task["status"] == "completed" {
                break;
            }
            assert!(begun.elapsed() < Duration::from_secs(15), "{task}");
            tokio::time::sleep(Duration::from_millis(60)).await;
        }
    }
    assert_eq!(desk.begun.load(Ordering::SeqCst), 4, "no step was begun twice");
}

/// Who took over the tasks of a process that only slept has struck it off the list: it puts itself there again, so that the
/// tasks it makes later are taken over, too.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_that_was_struck_off_the_list_is_there_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Store::sqlite(folder.path().join("tasks.db")).expect("a file");
    let desk: Arc<Desk> = Arc::default();
    let server = server(&desk).limits(|limits| limits.tasks.lease_ms = 90).tasks(Tasks::at(store.clone()));
    let service = shared(server);
    let call = json!({ "name": "must", "arguments": { "ms": 60_000 } });
    ask_as(&service, Some("ada"), MODERN, "tools/call", call).await;
    let listed = async |after: Option<_>| {
        let begun = Instant::now();
        loop {
            let found = store.kv().scan("task-node/", None, 10).await.expect("a list");
            if let Some((key, record)) = found.into_iter().next()
                && Some(record.rev) != after
            {
                return (key, record.rev);
            }
            assert!(begun.elapsed() < Duration::from_secs(10), "not on the list");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let (key, rev) = listed(None).await;
    store.kv().touch(&[&key], Duration::from_millis(1)).await.expect("it is forgotten");
    assert_eq!(listed(Some(rev)).await.0, key);
}
