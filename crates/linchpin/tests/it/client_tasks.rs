//! Tasks in the hands of a host, against a scripted server that records everything.

use crate::common::scripted::{Heard, connect, refusal, result};
use linchpin::client::{Client, Connection, ErrorKind, Progress};
use linchpin::types::elicit::ElicitResult;
use linchpin::types::task::{EXTENSION, TaskStatus};
use linchpin::types::version::Revision;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::Instant;

const DISCOVERED: &str = r#"{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}}"#;
const FORM: &str = r#"{"method":"elicitation/create","params":{"message":"Sure?","requestedSchema":{"type":"object","properties":{}}}}"#;

fn modern() -> Client {
    Client::new("h", "1").revisions(&[Revision::V2026_07_28])
}

fn legacy() -> Client {
    Client::new("h", "1").revisions(&[Revision::V2025_11_25])
}

/// The answer that makes a task, which asks to be looked at every second.
fn made() -> String {
    result(
        r#"{"resultType":"task","taskId":"t1","status":"working","createdAt":"2026-08-01T00:00:00Z","lastUpdatedAt":"2026-08-01T00:00:00Z","ttlMs":60000,"pollIntervalMs":1000}"#,
    )
}

/// The members of a record.
fn record(status: &str, more: &str) -> String {
    format!(
        r#""taskId":"t1","status":"{status}","createdAt":"2026-08-01T00:00:00Z","lastUpdatedAt":"2026-08-01T00:00:01Z","ttlMs":60000,"pollIntervalMs":1000{more}"#
    )
}

/// The answer to `tasks/get`.
fn state(status: &str, more: &str) -> String {
    result(&format!(r#"{{"resultType":"complete",{}}}"#, record(status, more)))
}

fn done() -> String {
    state("completed", r#","result":{"content":[{"type":"text","text":"the end"}],"isError":false}"#)
}

fn told(status: &str, more: &str) -> String {
    format!("{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tasks\",\"params\":{{{}}}}}\n", record(status, more))
}

/// A server that makes a task `t1` of every call, and then answers what is asked about it one after the other; the last
/// answer is repeated.
fn task_server(answers: Vec<String>) -> impl FnMut(&Value) -> String + Send + 'static {
    let mut looks = 0;
    move |m| match m["method"].as_str() {
        Some("server/discover") => result(DISCOVERED),
        Some("tools/call") => made(),
        Some("tasks/get") => {
            looks += 1;
            answers.get(looks - 1).or(answers.last()).cloned().unwrap_or_default()
        }
        Some("tasks/update" | "tasks/cancel") => result(r#"{"resultType":"complete"}"#),
        Some("subscriptions/listen") => refusal(-32601),
        _ => String::new(),
    }
}

/// Waits until the server heard this method.
async fn until(heard: &Heard, method: &str) {
    for _ in 0..200 {
        if heard.count(method) > 0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("the server never heard {method}: {:?}", heard.methods());
}

#[tokio::test(start_paused = true)]
async fn a_call_that_became_a_task_is_awaited_like_any_other() {
    let answers = vec![
        state("working", r#","statusMessage":"one of two""#),
        state("working", r#","statusMessage":"one of two""#),
        state("working", r#","statusMessage":"two of two""#),
        done(),
    ];
    let (server, heard) = connect(modern(), task_server(answers)).await;
    let seen = Arc::new(Mutex::new(Vec::new()));
    let hear = seen.clone();
    let began = Instant::now();
    let call = server.call("slow", json!({})).on_progress(move |p: Progress| hear.lock().unwrap().push(p));
    assert_eq!(call.await.unwrap().text(), "the end");
    let waited = began.elapsed().as_secs_f64();
    assert!((3.6..4.4).contains(&waited), "the server asked for a look a second: {waited}");
    let seen: Vec<_> = seen.lock().unwrap().iter().map(|p| (p.progress, p.message.clone().unwrap())).collect();
    assert_eq!(seen, [(1.0, "one of two".to_owned()), (2.0, "two of two".to_owned())]);
    for message in heard.messages().iter().filter(|m| m["id"].is_number()) {
        let meta = &message["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"];
        assert_eq!(meta["extensions"], json!({ EXTENSION: {} }), "{message}");
    }
    let looks: Vec<_> = heard.messages().into_iter().filter(|m| m["method"] == "tasks/get").collect();
    assert!(looks.len() == 4 && looks.iter().all(|m| m["params"]["taskId"] == "t1"), "{looks:?}");
    assert_eq!(heard.count("tasks/cancel"), 0);
    assert!(server.tasks().await.unwrap().is_empty(), "an ended task is in nobody's book");
}

#[tokio::test(start_paused = true)]
async fn each_question_is_asked_once_and_answered_with_an_update() {
    let asks = |keys: &[&str]| {
        let open: Vec<String> = keys.iter().map(|key| format!("\"{key}\":{FORM}")).collect();
        state("input_required", &format!(r#","inputRequests":{{{}}}"#, open.join(",")))
    };
    let answers =
        vec![asks(&["a", "b"]), asks(&["a", "b"]), asks(&["b"]), state("working", ""), asks(&["a#2"]), done()];
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    let client = modern().on_elicitation(move |form| {
        count.fetch_add(1, Ordering::SeqCst);
        async move {
            tokio::time::sleep(Duration::from_millis(700)).await;
            form.accept_defaults()
        }
    });
    let (server, heard) = connect(client, task_server(answers)).await;
    assert_eq!(server.call("slow", ()).await.unwrap().text(), "the end");
    assert_eq!(asked.load(Ordering::SeqCst), 3);
    let updates: Vec<_> = heard.messages().into_iter().filter(|m| m["method"] == "tasks/update").collect();
    let answered: Vec<_> = updates.iter().map(|m| m["params"]["inputResponses"].clone()).collect();
    let accept = json!({ "action": "accept", "content": {} });
    assert_eq!(answered, [json!({ "a": accept }), json!({ "b": accept }), json!({ "a#2": accept })]);
    assert!(updates.iter().all(|m| m["params"]["taskId"] == "t1"));
}

#[tokio::test(start_paused = true)]
async fn a_question_that_is_taken_back_is_not_asked_any_longer() {
    let asks = state("input_required", &format!(r#","inputRequests":{{"a":{FORM}}}"#));
    let client = modern().on_elicitation(|_| std::future::pending());
    let (server, heard) = connect(client, task_server(vec![asks, state("working", ""), done()])).await;
    assert_eq!(server.call("slow", ()).await.unwrap().text(), "the end");
    assert_eq!(heard.count("tasks/update"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_key_that_is_used_for_another_question_is_refused() {
    let other = FORM.replace("Sure?", "Your password?");
    let asks = |form: &str| state("input_required", &format!(r#","inputRequests":{{"k":{form}}}"#));
    let asked = Arc::new(Mutex::new(Vec::new()));
    let hear = asked.clone();
    let client = modern().on_elicitation(move |form| {
        hear.lock().unwrap().push(form.message.clone());
        async move { form.accept_defaults() }
    });
    let (server, heard) = connect(client, task_server(vec![asks(FORM), asks(&other)])).await;
    let why = server.call("slow", ()).await.unwrap_err();
    assert_eq!(why.kind(), ErrorKind::InvalidResponse);
    assert!(why.to_string().contains("`k`"), "{why}");
    assert_eq!(*asked.lock().unwrap(), ["Sure?"]);
    until(&heard, "tasks/cancel").await;
}

#[tokio::test(start_paused = true)]
async fn a_refused_answer_means_a_lost_task_only_if_the_task_is_gone() {
    let asks = state("input_required", &format!(r#","inputRequests":{{"k":{FORM}}}"#));
    for (then, kind) in [(asks.clone(), ErrorKind::Rpc), (refusal(-32602), ErrorKind::TaskLost)] {
        let mut tasks = task_server(vec![asks.clone(), then]);
        let answer = move |m: &Value| if m["method"] == "tasks/update" { refusal(-32602) } else { tasks(m) };
        let client = modern().on_elicitation(|form| async move { form.accept_defaults() });
        let (server, heard) = connect(client, answer).await;
        assert_eq!(server.call("slow", ()).await.unwrap_err().kind(), kind);
        assert_eq!(heard.count("tasks/update"), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_question_that_the_host_cannot_answer_fails_the_call_and_cancels_its_task() {
    let asks = state("input_required", &format!(r#","inputRequests":{{"k":{FORM}}}"#));
    let (server, heard) = connect(modern(), task_server(vec![asks.clone()])).await;
    let why = server.call("slow", ()).await.unwrap_err();
    assert_eq!(why.kind(), ErrorKind::Input, "{why}");
    until(&heard, "tasks/cancel").await;
    // A task that goes on by itself is left to somebody who can.
    let (server, heard) = connect(modern(), task_server(vec![asks])).await;
    assert_eq!(server.task("t1").await.unwrap_err().kind(), ErrorKind::Input);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(heard.count("tasks/cancel"), 0);
}

#[tokio::test(start_paused = true)]
async fn ends_are_told_apart() {
    let cases = [
        (
            state("failed", r#","statusMessage":"s","error":{"code":-7,"message":"out of paper"}"#),
            ErrorKind::Rpc,
            "paper",
        ),
        (state("failed", r#","statusMessage":"out of ink""#), ErrorKind::Rpc, "ink"),
        (state("cancelled", r#","statusMessage":"by the boss""#), ErrorKind::TaskCancelled, "by the boss"),
        (refusal(-32602), ErrorKind::TaskLost, "does not know the task t1"),
        (refusal(-32601), ErrorKind::Rpc, "-32601"),
        (state("completed", ""), ErrorKind::InvalidResponse, "has no result"),
        (state("done", ""), ErrorKind::InvalidResponse, "done"),
        (state("working", "").replace("t1", "t2"), ErrorKind::InvalidResponse, "another"),
    ];
    for (answer, kind, said) in cases {
        let (server, _) = connect(modern(), task_server(vec![answer.clone()])).await;
        let why = server.call("slow", ()).await.unwrap_err();
        assert_eq!(why.kind(), kind, "{answer}: {why}");
        assert!(why.to_string().contains(said), "{answer}: {why}");
        let about = matches!(kind, ErrorKind::TaskCancelled | ErrorKind::TaskLost).then_some("t1");
        assert_eq!(why.task_id(), about, "{answer}");
    }
    let failed = r#","result":{"content":[{"type":"text","text":"no paper"}],"isError":true}"#;
    let (server, _) = connect(modern(), task_server(vec![state("completed", failed)])).await;
    let result = server.call("slow", ()).await.unwrap();
    assert!(result.is_error() && result.text() == "no paper", "a tool that failed is a result");
}

#[tokio::test(start_paused = true)]
async fn intervals_of_servers_are_kept_within_bounds() {
    for (asked, least, most) in
        [("0", 0.089, 0.112), ("-1", 0.089, 0.112), ("1000000000000", 53.9, 66.1), ("null", 4.49, 5.51)]
    {
        let working = state("working", "").replace("\"pollIntervalMs\":1000", &format!("\"pollIntervalMs\":{asked}"));
        let (server, heard) = connect(modern(), task_server(vec![working, done()])).await;
        let task = server.task("t1");
        let began = Instant::now();
        task.await.unwrap();
        let waited = began.elapsed().as_secs_f64();
        assert!((least..most).contains(&waited), "{asked}: {waited}");
        assert_eq!(heard.count("tasks/get"), 2);
    }
}

#[tokio::test(start_paused = true)]
async fn tasks_where_none_may_be_are_refused_and_never_asked_for() {
    let anywhere = |m: &Value| match m["method"].as_str() {
        Some("server/discover") => result(DISCOVERED),
        _ => made(),
    };
    let (server, heard) = connect(modern(), anywhere).await;
    let outcomes = [
        server.tools().await.map(drop),
        server.prompt("p", ()).await.map(drop),
        server.read("a:b").await.map(drop),
        server.request("example.com/other", ()).await.map(drop),
    ];
    for outcome in outcomes {
        let why = outcome.unwrap_err();
        assert!(why.kind() == ErrorKind::InvalidResponse && why.to_string().contains("\"task\""), "{why}");
    }
    assert_eq!(heard.count("tasks/get"), 0);
    let (server, heard) = connect(modern().without_tasks(), anywhere).await;
    assert_eq!(server.call("slow", ()).await.unwrap_err().kind(), ErrorKind::InvalidResponse);
    assert_eq!(heard.count("tasks/get"), 0);
    assert!(heard.lines().iter().all(|line| !line.contains(EXTENSION)), "nothing is declared");
}

#[tokio::test(start_paused = true)]
async fn dropping_a_call_cancels_its_task_and_dropping_a_task_does_not() {
    let (server, heard) = connect(modern(), task_server(vec![state("working", "")])).await;
    let call = server.call("slow", ());
    assert!(tokio::time::timeout(Duration::from_secs(3), call).await.is_err());
    until(&heard, "tasks/cancel").await;
    let cancel = heard.messages().into_iter().find(|m| m["method"] == "tasks/cancel").unwrap();
    assert_eq!(cancel["params"]["taskId"], "t1");
    assert!(server.tasks().await.unwrap().is_empty());

    let (server, heard) = connect(modern(), task_server(vec![state("working", "")])).await;
    let task = server.call("slow", ()).detached().await.unwrap();
    assert_eq!((task.id(), task.tool()), (Some("t1"), Some("slow")));
    assert!(tokio::time::timeout(Duration::from_secs(3), task).await.is_err());
    drop(server.call("slow", ()).detached().await.unwrap());
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(heard.count("tasks/cancel"), 0);
    assert_eq!(server.tasks().await.unwrap().len(), 1, "the same task was made twice");
    let still = server.task("t1").timeout(Duration::from_secs(2)).await.unwrap_err();
    assert_eq!((still.kind(), still.task_id()), (ErrorKind::StillRunning, Some("t1")));
    server.task("t1").cancel().await.unwrap();
    assert_eq!(heard.count("tasks/cancel"), 1);
}

#[tokio::test(start_paused = true)]
async fn the_wait_for_a_task_is_limited_and_the_task_goes_on() {
    let client = modern().limits(|limits| limits.calls.task_ms_max = 10_000);
    let (server, heard) = connect(client, task_server(vec![state("working", "")])).await;
    let began = Instant::now();
    let why = server.call("slow", ()).await.unwrap_err();
    assert_eq!((why.kind(), why.task_id()), (ErrorKind::StillRunning, Some("t1")));
    assert_eq!(began.elapsed().as_secs(), 10);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(heard.count("tasks/cancel"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_handle_has_what_was_answered_directly_and_shows_the_state_of_a_task() {
    let (server, heard) = connect(modern(), |m| match m["method"].as_str() {
        Some("server/discover") => result(DISCOVERED),
        _ => result(r#"{"resultType":"complete","content":[{"type":"text","text":"at once"}]}"#),
    })
    .await;
    let task = server.call("fast", ()).detached().await.unwrap();
    assert_eq!(task.id(), None);
    assert_eq!(task.state().await.unwrap().task.status, TaskStatus::Completed);
    task.cancel().await.unwrap();
    assert_eq!(task.await.unwrap().text(), "at once");
    assert_eq!(heard.count("tasks/get") + heard.count("tasks/cancel"), 0);

    let asks = state("input_required", &format!(r#","statusMessage":"asks","inputRequests":{{"k":{FORM}}}"#));
    let (server, heard) = connect(modern(), task_server(vec![asks, done()])).await;
    let task = server.call("slow", ()).detached().await.unwrap();
    let now = task.state().await.unwrap();
    assert_eq!((now.task.status, now.task.ttl_ms), (TaskStatus::InputRequired, Some(60_000)));
    assert_eq!(now.input_requests.keys().collect::<Vec<_>>(), ["k"]);
    task.answer("k", ElicitResult::decline()).await.unwrap();
    assert_eq!(heard.messages().last().unwrap()["params"]["inputResponses"], json!({ "k": { "action": "decline" } }));
    assert_eq!(task.state().await.unwrap().result.unwrap().text(), "the end");
}

#[tokio::test(start_paused = true)]
async fn progress_is_heard_before_a_handle_is_there_and_after() {
    let hold = |token: &Value, id: &Value| {
        format!(
            "{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{{\"progressToken\":{token},\"progress\":1,\"message\":\"by token\"}}}}\n{}",
            made().replace("ID", &id.to_string())
        )
    };
    let mut looks = 0;
    let (server, _) = connect(modern(), move |m| match m["method"].as_str() {
        Some("server/discover") => result(DISCOVERED),
        Some("tools/call") => hold(&m["params"]["_meta"]["progressToken"], &m["id"]),
        _ => {
            looks += 1;
            if looks == 1 { state("working", r#","statusMessage":"by task""#) } else { done() }
        }
    })
    .await;
    let seen = Arc::new(Mutex::new(Vec::new()));
    let hear = seen.clone();
    let call = server.call("slow", ()).on_progress(move |p: Progress| hear.lock().unwrap().push(p.message.unwrap()));
    let task = call.detached().await.unwrap();
    assert_eq!(task.await.unwrap().text(), "the end");
    assert_eq!(*seen.lock().unwrap(), ["by token", "by task"]);
}

#[tokio::test(start_paused = true)]
async fn an_older_task_is_listened_to_and_ends_when_the_server_tells() {
    let listens = Arc::new(Mutex::new(Vec::new()));
    let seen = listens.clone();
    let mut looks = 0;
    let (server, heard) = connect(modern(), move |m| match m["method"].as_str() {
        Some("server/discover") => result(DISCOVERED),
        Some("tools/call") => made(),
        Some("subscriptions/listen") => {
            seen.lock().unwrap().push(m["params"]["notifications"].clone());
            let stream = &m["id"];
            format!(
                "{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/subscriptions/acknowledged\",\"params\":{{\"notifications\":{{\"taskIds\":[\"t1\"]}},\"_meta\":{{\"io.modelcontextprotocol/subscriptionId\":{stream}}}}}}}\n"
            )
        }
        Some("tasks/get") => {
            looks += 1;
            // After the stream is there, one look for what was missed; with the fifth look the server tells.
            let told_now = match looks {
                // The answer that it still works comes before, and is older.
                4 => told("completed", r#","result":{"content":[{"type":"text","text":"told"}]}"#),
                _ => String::new(),
            };
            format!("{}{}", state("working", ""), told_now)
        }
        _ => String::new(),
    })
    .await;
    let began = Instant::now();
    assert_eq!(server.call("slow", ()).await.unwrap().text(), "told");
    assert_eq!(*listens.lock().unwrap(), [json!({ "taskIds": ["t1"] })]);
    // Looks after 1 s, perhaps after 2 s, at once after the acknowledgement, then every 4 s; all ±10 %.
    let waited = began.elapsed().as_secs_f64();
    assert!((5.0..11.5).contains(&waited), "{waited}: {:?}", heard.methods());
    until(&heard, "notifications/cancelled").await;
}

#[tokio::test(start_paused = true)]
async fn a_task_outlives_failed_looks_at_it() {
    let answers = vec![refusal(-32603), refusal(-32603), state("working", ""), done()];
    let (server, heard) = connect(modern(), task_server(answers)).await;
    assert_eq!(server.call("slow", ()).await.unwrap().text(), "the end");
    assert_eq!(heard.count("tasks/get"), 4);
    let (server, heard) = connect(modern(), task_server(vec![refusal(-32603)])).await;
    assert_eq!(server.call("slow", ()).await.unwrap_err().kind(), ErrorKind::Rpc);
    assert_eq!(heard.count("tasks/get"), 6, "not for ever");
}

#[tokio::test(start_paused = true)]
async fn a_task_outlives_its_host_by_the_book() {
    let folder = std::env::temp_dir().join(format!("linchpin-tasks-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    let (server, _) = connect(modern().book(&folder), task_server(vec![state("working", "")])).await;
    let task = server.call("slow", json!({ "secret": "xyzzy" })).detached().await.unwrap();
    drop((task, server));
    let kept: String = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| std::fs::read_to_string(entry.unwrap().path()).unwrap())
        .collect();
    assert!(kept.contains("\"t1\"") && kept.contains("slow") && !kept.contains("xyzzy"), "{kept}");

    // Another process: it knows nothing but the book.
    let (server, _) = connect(modern().book(&folder), task_server(vec![state("working", ""), done()])).await;
    let open = server.tasks().await.unwrap();
    assert_eq!(open.iter().map(|task| task.task_id.as_str()).collect::<Vec<_>>(), ["t1"]);
    assert_eq!(server.task(&open[0].task_id).await.unwrap().text(), "the end");
    assert!(modern().book(&folder).booked().await.unwrap().is_empty());
    std::fs::remove_dir_all(folder).unwrap();
}

/// A server with sessions, and tools of every kind.
fn sessions(
    capability: &'static str,
    mut rest: impl FnMut(&str, &Value) -> String + Send + 'static,
) -> impl FnMut(&Value) -> String + Send + 'static {
    let tool = |name: &str, support: &str| {
        format!(r#"{{"name":"{name}","inputSchema":{{"type":"object"}},"execution":{{"taskSupport":"{support}"}}}}"#)
    };
    let tools = [tool("must", "required"), tool("may", "optional"), tool("not", "forbidden")].join(",");
    let tools = format!(r#"{{"tools":[{tools},{{"name":"plain","inputSchema":{{"type":"object"}}}}]}}"#);
    move |m| match m["method"].as_str() {
        Some("initialize") => result(&format!(
            r#"{{"protocolVersion":"2025-11-25","capabilities":{{"tools":{{}}{capability}}},"serverInfo":{{"name":"old","version":"1"}}}}"#
        )),
        Some("notifications/initialized") => String::new(),
        Some("tools/list") => result(&tools),
        method => rest(method.unwrap_or_default(), m),
    }
}

const TASKS: &str = r#","tasks":{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}"#;

/// The members of a record of 2025-11-25.
fn old_record(status: &str) -> String {
    format!(
        r#""taskId":"t1","status":"{status}","createdAt":"2026-01-01T00:00:00Z","lastUpdatedAt":"2026-01-01T00:00:01Z","ttl":null,"pollInterval":1000"#
    )
}

#[tokio::test(start_paused = true)]
async fn with_sessions_the_client_decides_by_what_the_tool_says() {
    let cases = [
        (TASKS, "must", false, true),
        (TASKS, "must", true, true),
        (TASKS, "may", false, false),
        (TASKS, "may", true, true),
        (TASKS, "not", true, false),
        (TASKS, "plain", true, false),
        ("", "must", true, false),
        (r#","tasks":{"list":{},"cancel":{}}"#, "must", true, false),
    ];
    for (capability, tool, wanted, asked) in cases {
        let answer = move |method: &str, m: &Value| match method {
            "tools/call" if m["params"]["task"].is_object() => {
                result(&format!(r#"{{"task":{{{}}}}}"#, old_record("working")))
            }
            "tools/call" | "tasks/result" => result(r#"{"content":[{"type":"text","text":"ok"}]}"#),
            _ => String::new(),
        };
        let (server, heard) = connect(legacy(), sessions(capability, answer)).await;
        let call = server.call(tool, ());
        let call = if wanted { call.as_task() } else { call };
        assert_eq!(call.await.unwrap().text(), "ok");
        let sent = heard.messages().into_iter().find(|m| m["method"] == "tools/call").unwrap();
        assert_eq!(sent["params"].get("task").is_some(), asked, "{tool} {wanted} {capability}");
        assert_eq!(heard.count("tasks/result"), usize::from(asked), "{tool} {wanted} {capability}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_refused_cancellation_is_no_lost_task_unless_the_task_is_gone() {
    for (looked, kind) in
        [(result(&format!("{{{}}}", old_record("cancelled"))), ErrorKind::Rpc), (refusal(-32602), ErrorKind::TaskLost)]
    {
        let answer = move |method: &str, _: &Value| match method {
            "tasks/cancel" => refusal(-32602),
            "tasks/get" => looked.clone(),
            _ => String::new(),
        };
        let (server, _) = connect(legacy(), sessions(TASKS, answer)).await;
        assert_eq!(server.task("t1").cancel().await.unwrap_err().kind(), kind);
    }
}

#[tokio::test(start_paused = true)]
async fn with_sessions_the_result_is_fetched_and_questions_come_while_it_is() {
    let mut fetching = Value::Null;
    let mut looks = 0;
    let answer = move |method: &str, m: &Value| match method {
        "tools/call" => {
            let token = &m["params"]["_meta"]["progressToken"];
            format!(
                "{}{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{{\"progressToken\":{token},\"progress\":7,\"message\":\"by token\"}}}}\n",
                result(&format!(r#"{{"task":{{{}}}}}"#, old_record("working")))
            )
        }
        "tasks/result" => {
            fetching = m["id"].clone();
            let form = &FORM[1..FORM.len() - 2];
            format!(
                "{{\"jsonrpc\":\"2.0\",\"id\":\"q\",{form},\"_meta\":{{\"io.modelcontextprotocol/related-task\":{{\"taskId\":\"t1\"}}}}}}}}\n"
            )
        }
        "tasks/get" => {
            looks += 1;
            let message = format!(r#","statusMessage":"look {looks}""#);
            result(&format!("{{{}{message}}}", old_record("input_required")))
        }
        // The answer to the question.
        "" => format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":{fetching},\"result\":{{\"content\":[{{\"type\":\"text\",\"text\":\"fetched\"}}],\"_meta\":{{\"io.modelcontextprotocol/related-task\":{{\"taskId\":\"t1\"}}}}}}}}\n"
        ),
        _ => String::new(),
    };
    let client = legacy().on_elicitation(|form| async move {
        tokio::time::sleep(Duration::from_millis(1_500)).await;
        form.accept_defaults()
    });
    let (server, heard) = connect(client, sessions(TASKS, answer)).await;
    let seen = Arc::new(Mutex::new(Vec::new()));
    let hear = seen.clone();
    let call = server.call("must", ()).on_progress(move |p: Progress| hear.lock().unwrap().push(p.message.unwrap()));
    assert_eq!(call.await.unwrap().text(), "fetched");
    assert_eq!(*seen.lock().unwrap(), ["by token", "look 1"]);
    let reply = heard.messages().into_iter().find(|m| m["id"] == "q").unwrap();
    let expected = json!({ "action": "accept", "content": {},
        "_meta": { "io.modelcontextprotocol/related-task": { "taskId": "t1" } } });
    assert_eq!(reply["result"], expected);
    for method in ["tasks/get", "tasks/result"] {
        let sent = heard.messages().into_iter().find(|m| m["method"] == method).unwrap();
        assert_eq!(sent["params"], json!({ "taskId": "t1" }), "no related-task here");
    }
}

#[tokio::test(start_paused = true)]
async fn with_sessions_a_server_that_does_not_wait_is_polled() {
    let mut looks = 0;
    let answer = move |method: &str, _: &Value| match method {
        "tools/call" => result(&format!(r#"{{"task":{{{}}}}}"#, old_record("working"))),
        "tasks/get" => {
            looks += 1;
            result(&format!("{{{}}}", old_record(if looks < 4 { "working" } else { "completed" })))
        }
        "tasks/result" if looks < 4 => refusal(-32602),
        "tasks/result" => result(r#"{"content":[{"type":"text","text":"ok"}]}"#),
        _ => String::new(),
    };
    let (server, heard) = connect(legacy(), sessions(TASKS, answer)).await;
    assert_eq!(server.call("must", ()).await.unwrap().text(), "ok");
    assert_eq!((heard.count("tasks/result"), heard.count("tasks/get")), (2, 4));
}

#[tokio::test(start_paused = true)]
async fn with_sessions_a_server_that_refuses_results_while_it_asks_is_left_in_peace() {
    let mut looks = 0;
    let answer = move |method: &str, _: &Value| match method {
        "tools/call" => result(&format!(r#"{{"task":{{{}}}}}"#, old_record("working"))),
        "tasks/get" => {
            looks += 1;
            let status = match looks {
                ..6 => "input_required",
                6 => "working",
                _ => "completed",
            };
            result(&format!("{{{}}}", old_record(status)))
        }
        "tasks/result" if looks < 6 => refusal(-32602),
        "tasks/result" => result(r#"{"content":[{"type":"text","text":"ok"}]}"#),
        _ => String::new(),
    };
    let (server, heard) = connect(legacy(), sessions(TASKS, answer)).await;
    let began = Instant::now();
    assert_eq!(server.call("must", ()).await.unwrap().text(), "ok");
    let waited = began.elapsed();
    assert!(waited >= Duration::from_secs(2) && heard.count("tasks/result") <= 8, "{waited:?} {:?}", heard.methods());
}

#[tokio::test(start_paused = true)]
async fn with_sessions_ends_are_told_apart_too() {
    for (status, kind) in [("failed", ErrorKind::Rpc), ("cancelled", ErrorKind::TaskCancelled)] {
        let answer = move |method: &str, _: &Value| match method {
            "tools/call" => result(&format!(r#"{{"task":{{{}}}}}"#, old_record("working"))),
            "tasks/get" => result(&format!("{{{}}}", old_record(status))),
            "tasks/result" => refusal(-32000),
            _ => String::new(),
        };
        let (server, _) = connect(legacy(), sessions(TASKS, answer)).await;
        assert_eq!(server.call("must", ()).await.unwrap_err().kind(), kind, "{status}");
    }
    // Python's SDK has a result of every task that has ended, with nothing in it for one that failed or was cancelled.
    let ends = [("failed", Some(ErrorKind::Rpc)), ("cancelled", Some(ErrorKind::TaskCancelled)), ("completed", None)];
    for (status, kind) in ends {
        let answer = move |method: &str, _: &Value| match method {
            "tools/call" => result(&format!(r#"{{"task":{{{}}}}}"#, old_record("working"))),
            "tasks/get" => result(&format!(r#"{{{},"statusMessage":"so it was"}}"#, old_record(status))),
            "tasks/result" => result(r#"{"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t1"}}}"#),
            _ => String::new(),
        };
        let (server, _) = connect(legacy(), sessions(TASKS, answer)).await;
        let outcome = server.call("must", ()).await;
        assert_eq!(outcome.as_ref().err().map(|why| why.kind()), kind, "{status}");
        assert!(outcome.is_ok_and(|result| result.text().is_empty()) || kind.is_some(), "{status}");
    }
    let unasked = |method: &str, _: &Value| match method {
        "tools/call" => result(&format!(r#"{{"task":{{{}}}}}"#, old_record("working"))),
        _ => String::new(),
    };
    let (server, heard) = connect(legacy(), sessions(TASKS, unasked)).await;
    assert_eq!(server.call("plain", ()).await.unwrap_err().kind(), ErrorKind::InvalidResponse);
    assert_eq!(heard.count("tasks/get") + heard.count("tasks/result"), 0);
}

#[tokio::test(start_paused = true)]
async fn with_sessions_tasks_are_listed_page_by_page_and_cancelled_where_that_exists() {
    let answer = |method: &str, m: &Value| match (method, m["params"]["cursor"].as_str()) {
        ("tasks/list", None) => result(&format!(r#"{{"tasks":[{{{}}}],"nextCursor":"p2"}}"#, old_record("working"))),
        ("tasks/list", Some("p2")) => {
            result(&format!(r#"{{"tasks":[{{{}}}],"nextCursor":"p2"}}"#, old_record("failed").replace("t1", "t0")))
        }
        ("tasks/cancel", _) => result(&format!("{{{}}}", old_record("cancelled"))),
        _ => String::new(),
    };
    let (server, heard) = connect(legacy(), sessions(TASKS, answer)).await;
    let tasks = server.tasks().await.unwrap();
    let seen: Vec<_> = tasks.iter().map(|task| (task.task_id.as_str(), task.status)).collect();
    assert_eq!(seen, [("t1", TaskStatus::Working), ("t0", TaskStatus::Failed)]);
    assert_eq!(heard.count("tasks/list"), 2, "a cursor that leads back ends the list");
    server.task("t1").cancel().await.unwrap();

    let (server, heard) = connect(legacy(), sessions(r#","tasks":{"requests":{"tools":{"call":{}}}}"#, answer)).await;
    let why = server.task("t1").cancel().await.unwrap_err();
    assert_eq!(why.kind(), ErrorKind::InvalidRequest);
    assert!(server.tasks().await.unwrap().is_empty(), "no list, nothing in the book");
    assert_eq!(heard.count("tasks/cancel") + heard.count("tasks/list"), 0);
}

/// Both kinds of handles can be given to another thread.
#[test]
fn handles_can_be_sent() {
    fn sent<T: Send + 'static>() {}
    sent::<linchpin::client::Task>();
    sent::<Connection>();
}
