//! Tasks that wait for people: their handlers are dropped meanwhile, and started again with the answer.

use super::{CORE, Desk, Sure, ask_as, call, declared, id, shared};
use crate::common::{self, MODERN, Peer};
use linchpin::Tasks;
use linchpin::prelude::*;
use linchpin::store::Store;
use linchpin::transport::Service;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

impl Desk {
    /// Five steps with a question after each: more starts than a task has that dies.
    async fn interviews(&self, cx: &Cx, _: NoArgs) -> Result<String> {
        self.begun.fetch_add(1, Ordering::SeqCst);
        let _dropped = super::Dropped(self);
        let mut said = String::new();
        for n in 0..5 {
            let step = async { Ok(self.steps.fetch_add(1, Ordering::SeqCst)) };
            said += &cx.memoize(&format!("step {n}"), step).await?.to_string();
            let sure: Sure = cx.elicit(&format!("sure {n}"), "Really?").await?;
            said += if sure.yes { "y" } else { "n" };
        }
        Ok(said)
    }

    /// A step goes on while a question waits.
    async fn works(&self, cx: &Cx, _: NoArgs) -> Result<String> {
        self.begun.fetch_add(1, Ordering::SeqCst);
        let step = cx.memoize("long", async {
            tokio::time::sleep(Duration::from_millis(400)).await;
            Ok(self.steps.fetch_add(1, Ordering::SeqCst))
        });
        let question = cx.elicit::<Sure>("sure", "Really?");
        let (_, sure) = tokio::join!(step, question);
        Ok(format!("sure: {}", sure?.yes))
    }
}

fn node(desk: &Arc<Desk>, tasks: Tasks, running: usize) -> Arc<dyn Service> {
    let tool = |name: &str| Tool::new(name, "").task_required();
    let server = Server::new("suspended", "1")
        .limits(|limits| {
            (limits.tasks.suspend_ms, limits.tasks.lease_ms) = (40, 400);
            limits.tasks.running_max = running;
            limits.tasks.kept_per_owner_max = 3;
            limits.tasks.polls_per_second_max = 1_000;
        })
        .shared_state(desk.clone())
        .tool(tool("interviews").resumable(), Desk::interviews)
        .tool(tool("works").resumable(), Desk::works)
        .tool(tool("short").resumable().task_ttl(Duration::from_millis(600)), Desk::interviews)
        .tool(tool("idempotent").idempotent(), Desk::interviews)
        .tool(tool("once"), Desk::interviews);
    shared(server.tasks(tasks))
}

async fn make(service: &Arc<dyn Service>, name: &str) -> String {
    id(&ask_as(service, Some("ada"), MODERN, "tools/call", json!({ "name": name })).await)
}

async fn get(service: &Arc<dyn Service>, id: &str) -> Value {
    ask_as(service, Some("ada"), MODERN, "tasks/get", json!({ "taskId": id })).await["result"].clone()
}

async fn answer(service: &Arc<dyn Service>, id: &str, key: &str) {
    let answers = json!({ key: { "action": "accept", "content": { "yes": true } } });
    let params = json!({ "taskId": id, "inputResponses": answers });
    let answer = ask_as(service, Some("ada"), MODERN, "tasks/update", params).await;
    assert!(answer.get("result").is_some(), "{answer}");
}

/// Looks until a task asks this, or has this status.
async fn until(service: &Arc<dyn Service>, id: &str, what: &str) -> Value {
    let begun = Instant::now();
    loop {
        let task = get(service, id).await;
        if task["status"] == what || task["inputRequests"].get(what).is_some() {
            return task;
        }
        assert!(begun.elapsed() < Duration::from_secs(15), "not {what}: {task}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

fn sqlite(folder: &tempfile::TempDir) -> Tasks {
    Tasks::at(Store::sqlite(folder.path().join("tasks.db")).expect("a file"))
}

fn dropped(desk: &Desk) -> usize {
    desk.dropped.load(Ordering::SeqCst)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_that_waits_for_long_goes_on_with_the_answer_wherever_that_comes() {
    let folder = tempfile::tempdir().expect("a folder");
    let desk: Arc<Desk> = Arc::default();
    let nodes = [node(&desk, sqlite(&folder), 9), node(&desk, sqlite(&folder), 9)];
    let id = make(&nodes[0], "interviews").await;
    for n in 0..5 {
        until(&nodes[n % 2], &id, &format!("sure {n}")).await;
        common::until("its handler is dropped", || dropped(&desk) == n + 1).await;
        assert_eq!(get(&nodes[0], &id).await["status"], "input_required");
        answer(&nodes[n % 2], &id, &format!("sure {n}")).await;
    }
    let done = until(&nodes[1], &id, "completed").await;
    assert_eq!(done["result"]["content"][0]["text"], "0y1y2y3y4y", "no step is repeated");
    assert_eq!((desk.begun.load(Ordering::SeqCst), dropped(&desk)), (6, 6));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_suspended_task_leaves_its_place_to_others_and_waits_for_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let desk: Arc<Desk> = Arc::default();
    let service = node(&desk, sqlite(&folder), 1);
    let first = make(&service, "interviews").await;
    common::until("its handler is dropped", || dropped(&desk) == 1).await;
    // This one is not resumable: it keeps its place.
    let second = make(&service, "once").await;
    until(&service, &second, "sure 0").await;
    answer(&service, &first, "sure 0").await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!((desk.begun.load(Ordering::SeqCst), dropped(&desk)), (2, 1));
    ask_as(&service, Some("ada"), MODERN, "tasks/cancel", json!({ "taskId": second })).await;
    until(&service, &first, "sure 1").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_suspended_task_is_cancelled_like_any_other() {
    let folder = tempfile::tempdir().expect("a folder");
    let desk: Arc<Desk> = Arc::default();
    let service = node(&desk, sqlite(&folder), 9);
    let id = make(&service, "interviews").await;
    common::until("its handler is dropped", || dropped(&desk) == 1).await;
    ask_as(&service, Some("ada"), MODERN, "tasks/cancel", json!({ "taskId": id })).await;
    assert_eq!(get(&service, &id).await["status"], "cancelled");
    answer(&service, &id, "sure 0").await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(desk.begun.load(Ordering::SeqCst), 1);
    // It goes for the fourth one, as tasks do that have ended.
    for n in 2..=4 {
        make(&service, "interviews").await;
        common::until("its handler is dropped", || dropped(&desk) == n).await;
    }
    assert!(get(&service, &id).await.is_null());
}

/// The process that took the answer ends before it starts the task: another one finds that.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answered_task_is_started_by_another_process_where_the_first_one_has_no_place() {
    let folder = tempfile::tempdir().expect("a folder");
    let desk: Arc<Desk> = Arc::default();
    let first = node(&desk, sqlite(&folder), 1);
    let id = make(&first, "interviews").await;
    common::until("its handler is dropped", || dropped(&desk) == 1).await;
    make(&first, "once").await;
    answer(&first, &id, "sure 0").await;
    first.close();
    first.ended().await;
    drop(first);
    let second = node(&desk, sqlite(&folder), 9);
    until(&second, &id, "sure 1").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_is_not_suspended_in_the_middle_of_a_step() {
    let folder = tempfile::tempdir().expect("a folder");
    let desk: Arc<Desk> = Arc::default();
    let service = node(&desk, sqlite(&folder), 9);
    let id = make(&service, "works").await;
    until(&service, &id, "sure").await;
    common::until("the step is done", || desk.steps.load(Ordering::SeqCst) == 1).await;
    tokio::time::sleep(Duration::from_millis(150)).await;
    answer(&service, &id, "sure").await;
    until(&service, &id, "completed").await;
    // Begun twice: it was suspended after the step, which was not done twice.
    assert_eq!((desk.begun.load(Ordering::SeqCst), desk.steps.load(Ordering::SeqCst)), (2, 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_in_memory_or_of_a_tool_that_is_not_resumable_is_not_suspended() {
    let folder = tempfile::tempdir().expect("a folder");
    let desk: Arc<Desk> = Arc::default();
    let (memory, file) = (node(&desk, Tasks::memory(), 9), node(&desk, sqlite(&folder), 9));
    for (service, tool) in [(&memory, "interviews"), (&file, "once"), (&file, "idempotent")] {
        let id = make(service, tool).await;
        until(service, &id, "sure 0").await;
    }
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!((desk.begun.load(Ordering::SeqCst), dropped(&desk)), (3, 0));
}

/// Whoever waits for it learns that its time is over, although nothing runs that could notice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_waits_for_a_suspended_task_hears_when_its_time_is_over() {
    let folder = tempfile::tempdir().expect("a folder");
    let desk: Arc<Desk> = Arc::default();
    let service = node(&desk, sqlite(&folder), 9);
    let mut stateless = Peer::of(service.clone(), MODERN, declared()).await;
    let mut session = Peer::of(service, CORE, json!({ "elicitation": {} })).await;
    let id = id(&call(&mut stateless, "short", json!({})).await);
    stateless.request("subscriptions/listen", json!({ "notifications": { "taskIds": [id] } })).await;
    common::until("its handler is dropped", || dropped(&desk) == 1).await;
    let waiting = session.request("tasks/result", json!({ "taskId": id })).await;
    assert_eq!(session.message().await["method"], "elicitation/create");
    let result = session.answer(waiting).await;
    assert!(result["error"]["message"].as_str().is_some_and(|why| why.contains("time to live")), "{result}");
    while stateless.message().await["params"]["status"] != "failed" {}
    assert_eq!(desk.begun.load(Ordering::SeqCst), 1);
}
