//! What goes wrong between a task and its store, its process, its tool or its owner. The numbers of rows are those of the table in
//! `docs/TASKS.md`.

use super::faulty::{Fate, Faulty};
use super::{Desk, For, Sure, ask_as, call, declared, id, server, shared, until};
use crate::common::{self, MODERN, Peer, code, service, text};
use linchpin::middleware::RateLimit;
use linchpin::prelude::*;
use linchpin::store::{Secrets, Store};
use linchpin::transport::Service;
use linchpin::{Principal, Tasks};
use linchpin_store::Read;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

/// A store that nodes share.
struct Shared(Store);

impl Shared {
    fn new() -> Shared {
        Shared(Store::builder().secrets(Secrets::new([7; 32])).memory())
    }

    /// Tasks of another node.
    fn tasks(&self) -> (Arc<Faulty>, Tasks) {
        let (faulty, store) = Faulty::around(self.0.clone(), Secrets::new([7; 32]));
        (faulty, Tasks::at(store))
    }

    /// Another node, whose death others notice soon.
    fn node(&self, desk: &Arc<Desk>) -> (Arc<Faulty>, Arc<dyn Service>) {
        let (faulty, tasks) = self.tasks();
        (faulty, shared(server(desk).limits(|limits| limits.tasks.lease_ms = 90).tasks(tasks)))
    }

    async fn ids(&self) -> Vec<String> {
        let found = self.0.kv().scan("task/", None, 100).await.expect("a list");
        found.into_iter().map(|(key, _)| key.rsplit('/').next().expect("an id").to_owned()).collect()
    }
}

async fn ask(service: &Arc<dyn Service>, method: &str, params: Value) -> Value {
    ask_as(service, Some("ada"), MODERN, method, params).await
}

async fn make(service: &Arc<dyn Service>, tool: &str, arguments: Value) -> Value {
    ask(service, "tools/call", json!({ "name": tool, "arguments": arguments })).await
}

async fn reaches(service: &Arc<dyn Service>, id: &str, status: &str) -> Value {
    let begun = Instant::now();
    loop {
        let answer = ask(service, "tasks/get", json!({ "taskId": id })).await;
        if answer["result"]["status"] == status {
            return answer["result"].clone();
        }
        assert!(begun.elapsed() < Duration::from_secs(15), "not {status}: {answer}");
        tokio::time::sleep(Duration::from_millis(60)).await;
    }
}

fn why(task: &Value) -> &str {
    task["error"]["message"].as_str().unwrap_or_else(|| panic!("no error: {task}"))
}

/// Row 4: ids that were guessed, and ones that differ from a task's in one letter.
#[tokio::test]
async fn guesses_of_ids_find_nothing_and_can_be_limited() {
    let (desk, world) = (Arc::default(), Shared::new());
    let (faulty, tasks) = world.tasks();
    let looks = Arc::new(AtomicUsize::new(0));
    let limited = server(&desk).tasks(tasks).layer_requests(RateLimit::new(1_000, Duration::from_secs(3_600)).layer());
    let limited = shared(limited);
    let (_, open) = world.node(&desk);
    let call = json!({ "name": "must", "arguments": { "ms": 60_000 } });
    let real = id(&ask_as(&open, None, MODERN, "tools/call", call).await);
    let letters: Vec<char> = "abcdefghijklmnopqrstuvwxyz234567".chars().collect();
    let mut guesses: Vec<String> = (3..29)
        .flat_map(|at| letters.iter().map(move |letter| (at, *letter)))
        .map(|(at, letter)| format!("{}{letter}{}", &real[..at], &real[at + 1..]))
        .filter(|guess| *guess != real)
        .collect();
    let mut seed = 1_u64;
    guesses.extend((0..2_000).map(|_| {
        let mut letter = || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            letters[(seed >> 59) as usize]
        };
        format!("tk_{}", (0..26).map(|_| letter()).collect::<String>())
    }));
    for guess in &guesses {
        let answer = ask_as(&open, None, MODERN, "tasks/get", json!({ "taskId": guess })).await;
        assert_eq!(answer["error"], json!({ "code": -32602, "message": format!("unknown task: {guess}") }));
    }
    let seen = ask_as(&open, None, MODERN, "tasks/get", json!({ "taskId": real })).await;
    assert_eq!(seen["result"]["status"], "working");
    // Where guesses are limited, the others do not reach the store.
    let count = looks.clone();
    faulty.rule(move |operation, key| {
        count.fetch_add(usize::from(operation == "get" && key.starts_with("task/")), Ordering::SeqCst);
        Fate::Goes
    });
    let mut refused = 0;
    for guess in &guesses {
        let answer = ask_as(&limited, None, MODERN, "tasks/get", json!({ "taskId": guess })).await;
        refused += usize::from(code(&answer) == -31005);
    }
    let looks = looks.load(Ordering::SeqCst);
    assert!((1_000..1_010).contains(&looks) && looks + refused == guesses.len(), "{looks} looks, {refused} refused");
}

/// Row 7.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_answers_at_two_nodes_one_wins_and_both_are_acknowledged() {
    let (desk, world) = (Arc::default(), Shared::new());
    let ((_, a), (_, b)) = (world.node(&desk), world.node(&desk));
    for _ in 0..20 {
        let asks = id(&make(&a, "asks", json!({})).await);
        reaches(&b, &asks, "input_required").await;
        let answer = |yes: bool| {
            let content = json!({ "sure": { "action": "accept", "content": { "yes": yes } } });
            json!({ "taskId": asks, "inputResponses": content })
        };
        let (one, other) = tokio::join!(ask(&a, "tasks/update", answer(true)), ask(&b, "tasks/update", answer(false)));
        for acknowledged in [one, other] {
            assert_eq!(acknowledged["result"]["resultType"], "complete", "{acknowledged}");
        }
        let (here, there) = (reaches(&a, &asks, "completed").await, reaches(&b, &asks, "completed").await);
        assert_eq!(here["result"], there["result"]);
        let said = here["result"]["content"][0]["text"].as_str().unwrap();
        assert!(["sure: true", "sure: false"].contains(&said), "{said}");
    }
}

/// Row 9: the process dies when the record is stored and nobody was told.
#[tokio::test]
async fn a_task_that_nobody_was_told_of_ends_and_a_retry_makes_another() {
    let (desk, world) = (Arc::<Desk>::default(), Shared::new());
    let (faulty, killed) = world.node(&desk);
    faulty.rule(|operation, key| match operation == "put" && key.starts_with("task/") {
        true => Fate::DiesAfter,
        false => Fate::Goes,
    });
    let told = tokio::time::timeout(Duration::from_millis(200), make(&killed, "must", json!({}))).await;
    assert!(told.is_err() && faulty.is_dead(), "nobody was told");
    let (_, other) = world.node(&desk);
    let again = id(&make(&other, "must", json!({})).await);
    reaches(&other, &again, "completed").await;
    let untold: Vec<_> = world.ids().await.into_iter().filter(|id| *id != again).collect();
    assert_eq!(untold.len(), 1);
    let task = reaches(&other, &untold[0], "failed").await;
    assert!(why(&task).contains("it was not started again"), "{task}");
    assert_eq!(desk.begun.load(Ordering::SeqCst), 1, "the handler of the first never ran");
}

/// Row 11: the process dies when the end is stored and nobody was told.
#[tokio::test]
async fn an_end_that_nobody_was_told_of_is_read_and_told_elsewhere() {
    let (desk, world) = (Arc::default(), Shared::new());
    let (faulty, killed) = world.node(&desk);
    let mut peer = Peer::of(killed, MODERN, declared()).await;
    faulty.rule(|operation, key| match operation == "publish" && key.contains("/tk_") {
        true => Fate::Dies,
        false => Fate::Goes,
    });
    // This one says nothing before its end.
    let id = id(&call(&mut peer, "fails", json!({})).await);
    common::until("it has ended", || faulty.is_dead()).await;
    let (_, other) = world.node(&desk);
    let mut peer = Peer::of(other, MODERN, declared()).await;
    peer.request("subscriptions/listen", json!({ "notifications": { "taskIds": [id] } })).await;
    peer.said("notifications/subscriptions/acknowledged").await;
    let told = peer.said("notifications/tasks").await;
    assert_eq!((&told["params"]["taskId"], &told["params"]["status"]), (&json!(id), &json!("completed")), "{told}");
    let task = until(&mut peer, &id, "completed").await;
    assert_eq!(task["result"]["isError"], true);
}

/// Rows 13 and 14: the store is away, or takes nothing more.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_that_fails_refuses_new_tasks_and_loses_none() {
    let (desk, world) = (Arc::<Desk>::default(), Shared::new());
    let (faulty, service) = world.node(&desk);
    let made = id(&make(&service, "must", json!({ "ms": 1_000 })).await);
    let asks = id(&make(&service, "asks", json!({})).await);
    reaches(&service, &asks, "input_required").await;
    faulty.rule(|_, _| Fate::Fails);
    // Nothing is promised, and what need not be a task is none.
    let refused = make(&service, "must", json!({})).await;
    assert_eq!(code(&refused), -32603);
    assert!(refused["error"]["message"].as_str().unwrap().contains("cannot be reached"), "{refused}");
    assert_eq!(text(&make(&service, "work", json!({ "ms": 80 })).await), "worked in false");
    assert_eq!(code(&ask(&service, "tasks/get", json!({ "taskId": made })).await), -32603);
    let yes =
        json!({ "taskId": asks, "inputResponses": { "sure": { "action": "accept", "content": { "yes": true } } } });
    assert_eq!(
        code(&ask(&service, "tasks/update", yes.clone()).await),
        -32603,
        "what is not stored is not acknowledged"
    );
    tokio::time::sleep(Duration::from_millis(1_200)).await;
    // It can be read, and takes nothing: full, or read-only.
    faulty.rule(|operation, _| if ["put", "append"].contains(&operation) { Fate::Fails } else { Fate::Goes });
    assert_eq!(code(&make(&service, "must", json!({})).await), -32603);
    let task = ask(&service, "tasks/get", json!({ "taskId": made })).await;
    assert_eq!(task["result"]["status"], "working", "its end is not stored yet, so nobody is told: {task}");
    assert_eq!(world.ids().await.len(), 2, "what was refused is not there");
    faulty.rule(|_, _| Fate::Goes);
    let task = reaches(&service, &made, "completed").await;
    assert_eq!(task["result"]["content"][0]["text"], "worked in true");
    reaches(&service, &asks, "input_required").await;
    ask(&service, "tasks/update", yes).await;
    reaches(&service, &asks, "completed").await;
}

/// Row 15: the clock of a node is an hour ahead.
#[tokio::test]
async fn the_time_of_the_store_counts_where_the_clocks_of_nodes_differ() {
    let (desk, world) = (Arc::<Desk>::default(), Shared::new());
    let (_, here) = world.node(&desk);
    let made = make(&here, "must", json!({ "ms": 60_000 })).await["result"].clone();
    let (inner, seen) = (world.0.clone(), made["taskId"].clone());
    let ahead = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
        runtime.expect("a runtime").block_on(async {
            tokio::time::advance(Duration::from_secs(3_700)).await;
            tokio::time::resume();
            let (_, there) = Shared(inner).node(&Arc::default());
            let seen = ask(&there, "tasks/get", json!({ "taskId": seen })).await;
            (seen, make(&there, "must", json!({})).await)
        })
    });
    let (seen, theirs) = tokio::task::spawn_blocking(|| ahead.join().expect("no panic")).await.expect("no panic");
    assert_eq!(seen["result"]["status"], "working", "its hour is not over: {seen}");
    let hour = |task: &Value| task["createdAt"].as_str().expect("a time")[..13].to_owned();
    let minute = |task: &Value| task["createdAt"].as_str().expect("a time")[14..16].parse::<i32>().expect("a minute");
    let apart = (minute(&theirs["result"]) - minute(&made)).rem_euclid(60);
    assert!(apart <= 1 && (hour(&theirs["result"]) == hour(&made) || apart == 1), "{theirs} {made}");
    reaches(&here, made["taskId"].as_str().unwrap(), "working").await;
}

#[derive(Deserialize, JsonSchema)]
struct Number {
    #[allow(dead_code, reason = "it is asked for")]
    n: u32,
}

#[derive(Deserialize, JsonSchema)]
struct Word {
    #[allow(dead_code, reason = "it is asked for")]
    n: String,
}

/// Does a step of this name, and then asks.
async fn stepped(desk: &Desk, cx: &Cx, step: &str) -> Result<String> {
    let count = cx.memoize(step, async { Ok(desk.steps.fetch_add(1, Ordering::SeqCst) + 1) }).await?;
    let sure: Sure = cx.elicit("sure", "Really?").await?;
    Ok(format!("{step}: {count}, {}", sure.yes))
}

async fn before(desk: &Desk, cx: &Cx, _: Number) -> Result<String> {
    stepped(desk, cx, "before").await
}

async fn other_arguments(desk: &Desk, cx: &Cx, _: Word) -> Result<String> {
    stepped(desk, cx, "before").await
}

async fn after(desk: &Desk, cx: &Cx, _: Number) -> Result<String> {
    stepped(desk, cx, "after").await
}

fn resumable(name: &str) -> Tool {
    Tool::new(name, "").task_required().resumable()
}

fn changing(tasks: Tasks, desk: &Arc<Desk>) -> Server<Desk> {
    Server::new("changing", "1").limits(|limits| limits.tasks.lease_ms = 90).tasks(tasks).shared_state(desk.clone())
}

/// Rows 22 and 23: the server is another one when its tasks are started again.
#[tokio::test]
async fn a_tool_that_has_changed_fails_its_tasks_or_does_what_is_missing() {
    let (desk, world) = (Arc::<Desk>::default(), Shared::new());
    let (faulty, tasks) = world.tasks();
    let names = ["gone", "narrower", "other_steps"];
    let first = shared(names.into_iter().fold(changing(tasks, &desk), |all, name| all.tool(resumable(name), before)));
    let mut made = Vec::new();
    for name in names {
        let id = id(&make(&first, name, json!({ "n": 7 })).await);
        reaches(&first, &id, "input_required").await;
        made.push(id);
    }
    faulty.rule(|_, _| Fate::Dies);
    let (_, tasks) = world.tasks();
    let second = changing(tasks, &desk).tool(resumable("narrower"), other_arguments);
    let second = shared(second.tool(resumable("other_steps"), after));
    make(&second, "other_steps", json!({ "n": 1 })).await;
    let gone = reaches(&second, &made[0], "failed").await;
    assert!(why(&gone).contains("tool `gone` is gone"), "{gone}");
    let narrower = reaches(&second, &made[1], "failed").await;
    assert!(why(&narrower).contains("tool `narrower` takes other arguments now: "), "{narrower}");
    // The question is still open under its key, the entry of another step is ignored, the missing one is done.
    let answers = json!({ "sure": { "action": "accept", "content": { "yes": true } } });
    ask(&second, "tasks/update", json!({ "taskId": made[2], "inputResponses": answers })).await;
    let done = reaches(&second, &made[2], "completed").await;
    let said = done["result"]["content"][0]["text"].as_str().unwrap();
    assert!(said.starts_with("after: ") && said.ends_with(", true"), "{done}");
    assert_eq!(desk.steps.load(Ordering::SeqCst), 5, "three before, one of the new task, and the missing one");
}

/// Row 42.
#[tokio::test(start_paused = true)]
async fn tasks_of_somebody_who_is_revoked_run_on_or_are_cancelled_if_that_is_wanted() {
    for is_wanted in [false, true] {
        let desk: Arc<Desk> = Arc::default();
        let is_revoked = Arc::new(AtomicBool::new(false));
        let ask_it = is_revoked.clone();
        let tasks = match is_wanted {
            true => Tasks::memory().cancel_on_revoke(move |principal: &Principal| {
                principal.subject() == "ada" && ask_it.load(Ordering::SeqCst)
            }),
            false => Tasks::memory(),
        };
        let service = shared(server(&desk).tasks(tasks));
        let call = json!({ "name": "must", "arguments": { "ms": 60_000 } });
        let hers = id(&ask_as(&service, Some("ada"), MODERN, "tools/call", call.clone()).await);
        let his = id(&ask_as(&service, Some("bob"), MODERN, "tools/call", call).await);
        tokio::time::sleep(Duration::from_secs(10)).await;
        assert_eq!(desk.dropped.load(Ordering::SeqCst), 0);
        is_revoked.store(true, Ordering::SeqCst);
        tokio::time::sleep(Duration::from_secs(10)).await;
        assert_eq!(desk.dropped.load(Ordering::SeqCst), usize::from(is_wanted));
        let task = ask_as(&service, Some("ada"), MODERN, "tasks/get", json!({ "taskId": hers })).await;
        assert_eq!(task["result"]["status"], if is_wanted { "cancelled" } else { "working" });
        let task = ask_as(&service, Some("bob"), MODERN, "tasks/get", json!({ "taskId": his })).await;
        assert_eq!(task["result"]["status"], "working");
    }
}

/// Row 30: a question that the client cannot answer is an error in the handler, and no open question.
#[tokio::test]
async fn a_question_to_a_client_that_cannot_be_asked_is_the_handlers_error() {
    let asks = async |cx: &Cx, _: For| match cx.elicit::<Sure>("sure", "Really?").await {
        Ok(_) => "asked".to_owned(),
        Err(error) => error.to_string(),
    };
    let server = Server::new("asks", "1").tool(Tool::new("asks", "").task_required(), asks);
    let mut without = declared();
    without.as_object_mut().unwrap().remove("elicitation");
    let mut peer = Peer::of(service(server), MODERN, without).await;
    let made = call(&mut peer, "asks", json!({})).await;
    let done = until(&mut peer, &id(&made), "completed").await;
    let said = done["result"]["content"][0]["text"].as_str().unwrap();
    assert!(said.contains("elicitation"), "{said}");
}

/// What a process has left behind fails although no other task may run: only one that is started again needs a place.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tasks_that_are_not_started_again_fail_where_there_is_no_room() {
    let (world, desk) = (Shared::new(), Arc::default());
    let (faulty, first) = world.node(&desk);
    let lost = id(&make(&first, "must", json!({ "ms": 60_000 })).await);
    faulty.rule(|_, _| Fate::Dies);
    let (_, tasks) = world.tasks();
    let full = server(&desk).limits(|limits| (limits.tasks.lease_ms, limits.tasks.running_max) = (90, 1));
    let second = shared(full.tasks(tasks));
    let running = id(&make(&second, "must", json!({ "ms": 60_000 })).await);
    let failed = reaches(&second, &lost, "failed").await;
    assert!(why(&failed).contains("it was not started again"), "{failed}");
    reaches(&second, &running, "working").await;
}

/// A task that could not be made takes no place, and the one that would have gone for it stays.
#[tokio::test]
async fn a_store_that_fails_while_it_forgets_a_task_leaves_the_counts_as_they_were() {
    let (world, desk) = (Shared::new(), Arc::default());
    let (faulty, tasks) = world.tasks();
    let service = shared(server(&desk).limits(|limits| limits.tasks.kept_per_owner_max = 2).tasks(tasks));
    for _ in 0..2 {
        let made = id(&make(&service, "must", json!({ "ms": 0 })).await);
        reaches(&service, &made, "completed").await;
    }
    faulty.rule(|operation, _| if operation == "delete" { Fate::Fails } else { Fate::Goes });
    for _ in 0..3 {
        let refused = ask(&service, "tools/call", json!({ "name": "must", "arguments": { "ms": 0 } })).await;
        assert_eq!(code(&refused), -32603, "{refused}");
    }
    faulty.rule(|_, _| Fate::Goes);
    for _ in 0..3 {
        let made = id(&make(&service, "must", json!({ "ms": 0 })).await);
        reaches(&service, &made, "completed").await;
    }
}

/// Of a task that goes for a new one nothing is left: neither its call nor its steps nor a long result.
#[tokio::test]
async fn a_task_that_goes_for_another_leaves_nothing_in_the_store() {
    let (world, desk) = (Shared::new(), Arc::default());
    let (faulty, tasks) = world.tasks();
    let long = async |cx: &Cx| -> Result<String> {
        let step = cx.memoize("step", async { Ok("x".repeat(10 << 10)) }).await?;
        Ok(step)
    };
    let one_step = async |cx: &Cx| -> Result<String> { cx.memoize("step", async { Ok("1".to_owned()) }).await };
    let service = server(&desk)
        .tool(Tool::new("long", "").task_required(), long)
        .tool(Tool::new("again", "").task_required().resumable(), long)
        .tool(Tool::new("one-step", "").task_required(), one_step)
        .limits(|limits| limits.tasks.kept_per_owner_max = 1);
    let service = shared(service.tasks(tasks));
    let written: Arc<Mutex<BTreeSet<(bool, String)>>> = Arc::default();
    let keys = written.clone();
    faulty.rule(move |operation, key| {
        if key.starts_with("task") && !key.contains("/node/") && matches!(operation, "put" | "append") {
            keys.lock().expect("no panic").insert((operation == "append", key.to_owned()));
        }
        Fate::Goes
    });
    for tool in ["long", "again", "one-step", "must", "must"] {
        let made = id(&make(&service, tool, json!({})).await);
        reaches(&service, &made, "completed").await;
    }
    let last = world.ids().await;
    let written = written.lock().expect("no panic").clone();
    let spaces: BTreeSet<&str> = written.iter().filter_map(|(_, key)| key.split('/').next()).collect();
    assert!(["task", "task-call", "task-end", "task-steps"].iter().all(|space| spaces.contains(space)), "{spaces:?}");
    for (is_log, key) in written.iter().filter(|(_, key)| !key.starts_with("task-node/") && !key.contains(&last[0])) {
        let is_gone = match is_log {
            true => matches!(world.0.log().read(key, 0, 1).await, Ok(Read::Unknown)),
            false => matches!(world.0.kv().get(key).await, Ok(None)),
        };
        assert!(is_gone, "{key}");
    }
}

/// A step that something else goes on with when the handler is done is not kept: whoever forgets the task would not know of it.
#[tokio::test]
async fn a_step_that_ends_after_its_task_is_not_kept() {
    let (world, desk) = (Shared::new(), Arc::default());
    let (faulty, tasks) = world.tasks();
    static HEARD: OnceLock<Result<String, String>> = OnceLock::new();
    let stray = async |cx: &Cx| {
        let cx = cx.clone();
        tokio::spawn(async move {
            let step = async {
                tokio::time::sleep(Duration::from_millis(100)).await;
                Ok("late".to_owned())
            };
            let _ = HEARD.set(cx.memoize("step", step).await.map_err(|error| error.to_string()));
        });
        tokio::task::yield_now().await;
        "done"
    };
    let service = server(&desk).tool(Tool::new("stray", "").task_required(), stray);
    let service = shared(service.tasks(tasks));
    faulty.rule(|operation, key| {
        assert!(operation != "append" || !key.starts_with("task-steps/"), "{key} was written");
        Fate::Goes
    });
    let made = id(&make(&service, "stray", json!({})).await);
    reaches(&service, &made, "completed").await;
    let heard = loop {
        match HEARD.get() {
            Some(heard) => break heard.clone(),
            None => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    };
    assert_eq!(heard, Err("the task is over".to_owned()));
}
