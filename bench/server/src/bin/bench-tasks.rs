//! What tasks cost, in process, through the HTTP service but without a wire: the creation of one in memory beside a plain call, how
//! many a second a SQLite file takes, and the memory of those that nobody looks at.
//!
//!     bench-tasks             a table
//!     bench-tasks --json      one JSON object per line

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use linchpin::prelude::*;
use linchpin::store::Store;
use linchpin::transport::{HttpOptions, HttpService};
use linchpin::{BoxError, Tasks};
use serde_json::{Value, json};
use std::io::Write as _;
use std::time::{Duration, Instant};

const REVISION: &str = "2026-07-28";
const CALLS: usize = 20_000;
const MADE: usize = 5_000;
const DURABLE: usize = 4_000;
/// How many clients make durable tasks at the same time.
const CLIENTS: usize = 16;
const IDLE: usize = 10_000;
/// How long tasks may take to their end after the last was made.
const END: Duration = Duration::from_secs(60);

#[derive(Deserialize, JsonSchema)]
struct Note {
    text: Text,
}

async fn note(q: Note) -> Text {
    q.text
}

/// Waits for what never comes.
async fn wait(_: Note) -> Text {
    std::future::pending().await
}

#[derive(Deserialize, JsonSchema)]
struct Sure {
    #[serde(rename = "yes")]
    _yes: bool,
}

/// Asks somebody who never answers.
async fn ask_and_wait(cx: &Cx, _: Note) -> Result<Text> {
    cx.elicit::<Sure>("sure", "Really?").await?;
    Ok("sure".into())
}

/// The server: a tool as it always was, one whose calls are tasks, and one that waits. Nobody is refused for having too many.
fn service(tasks: Option<Tasks>) -> Result<HttpService, BoxError> {
    let server = Server::new("bench-tasks", "1").tool(("plain", "Return the text"), note);
    let server = match tasks {
        Some(tasks) => server
            .tool(Tool::new("note", "Return the text later").task_required().resumable(), note)
            .tool(Tool::new("wait", "Wait").task_required(), wait)
            .tool(Tool::new("ask", "Ask").task_required().resumable(), ask_and_wait)
            .tasks(tasks)
            .limits(|limits| {
                let most = 2 * IDLE;
                (limits.tasks.running_per_owner_max, limits.tasks.running_max) = (most, most);
                (limits.tasks.kept_per_owner_max, limits.tasks.kept_max) = (most, most);
                (limits.calls.concurrent_max, limits.calls.per_peer_max) = (most, most);
                limits.tasks.suspend_ms = 100;
            }),
        None => server,
    };
    Ok(server.into_service_with(HttpOptions::default())?)
}

async fn ask(service: &HttpService, method: &str, name: &str, params: Value) -> Value {
    let mut params = params;
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": REVISION,
        "io.modelcontextprotocol/clientCapabilities": { "extensions": { "io.modelcontextprotocol/tasks": {} } },
    });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string();
    let answer = send(service, method, name, Bytes::from(body)).await;
    serde_json::from_slice(&answer).unwrap_or_else(|e| panic!("{method}: {e}: {}", String::from_utf8_lossy(&answer)))
}

async fn send(service: &HttpService, method: &str, name: &str, body: Bytes) -> Bytes {
    let request = Request::post("/mcp")
        .header("host", "localhost")
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", REVISION)
        .header("mcp-method", method)
        .header("mcp-name", name)
        .body(Full::new(body))
        .expect("headers are valid");
    let response = service.handle(request).await.unwrap_or_else(|never| match never {});
    let (status, body) = (response.status(), response.into_body().collect().await);
    let body = body.expect("the body of an answer").to_bytes();
    assert_eq!(status, 200, "{}", String::from_utf8_lossy(&body));
    body
}

/// A call of a tool, ready to be sent again and again.
fn call(tool: &str) -> Bytes {
    let params = json!({
        "name": tool, "arguments": { "text": "Quick brown fox 0123456789" },
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": REVISION,
            "io.modelcontextprotocol/clientCapabilities":
                { "elicitation": {}, "extensions": { "io.modelcontextprotocol/tasks": {} } },
        },
    });
    Bytes::from(json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }).to_string())
}

/// The id of a task that was made.
fn id(answer: &[u8]) -> String {
    let answer: Value = serde_json::from_slice(answer).unwrap_or_default();
    answer["result"]["taskId"].as_str().unwrap_or_else(|| panic!("no task: {answer}")).to_owned()
}

/// Waits until a task has completed.
async fn ended(service: &HttpService, id: &str) -> Result<(), BoxError> {
    let start = Instant::now();
    loop {
        let task = ask(service, "tasks/get", id, json!({ "taskId": id })).await;
        if task["result"]["status"] == "completed" {
            return Ok(());
        }
        if start.elapsed() > END {
            return Err(format!("a task does not end: {task}").into());
        }
        tokio::time::sleep(Duration::from_millis(60)).await;
    }
}

/// Microseconds of a call, one after the other.
async fn calls(service: &HttpService) -> f64 {
    let body = call("plain");
    for _ in 0..CALLS / 20 {
        send(service, "tools/call", "plain", body.clone()).await;
    }
    let start = Instant::now();
    for _ in 0..CALLS {
        send(service, "tools/call", "plain", body.clone()).await;
    }
    start.elapsed().as_secs_f64() * 1e6 / CALLS as f64
}

/// Microseconds of a task, made one after the other, each run to its end.
async fn tasks(service: &HttpService) -> Result<f64, BoxError> {
    let body = call("note");
    ended(service, &id(&send(service, "tools/call", "note", body.clone()).await)).await?;
    let (start, mut last) = (Instant::now(), Bytes::new());
    for _ in 0..MADE {
        last = send(service, "tools/call", "note", body.clone()).await;
        // Its runner has this thread, too.
        tokio::task::yield_now().await;
    }
    let took = start.elapsed().as_secs_f64() * 1e6 / MADE as f64;
    ended(service, &id(&last)).await?;
    Ok(took)
}

/// Tasks a second that are stored in a file, made by so many clients, from the first call to the end of the last task.
async fn durable(service: &HttpService, clients: usize, made: usize) -> Result<f64, BoxError> {
    let start = Instant::now();
    let all: Vec<_> = (0..clients)
        .map(|_| {
            let service = service.clone();
            tokio::spawn(async move {
                let (body, mut last) = (call("note"), Bytes::new());
                for _ in 0..made / clients {
                    last = send(&service, "tools/call", "note", body.clone()).await;
                }
                ended(&service, &id(&last)).await.map_err(|e| e.to_string())
            })
        })
        .collect();
    for one in all {
        one.await??;
    }
    Ok(made as f64 / start.elapsed().as_secs_f64())
}

/// The memory of this process in bytes, without files such as the program itself.
fn memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let anonymous =
        status.lines().find_map(|line| line.strip_prefix("RssAnon:")?.split_whitespace().next()?.parse().ok());
    anonymous.unwrap_or(0_u64) * 1024
}

/// Bytes of each of many tasks, and microseconds of making one.
async fn idle(service: &HttpService, tool: &str) -> (f64, f64) {
    let body = call(tool);
    // What the first ones cost is not theirs.
    for _ in 0..100 {
        send(service, "tools/call", tool, body.clone()).await;
        tokio::task::yield_now().await;
    }
    let (before, start) = (memory(), Instant::now());
    for _ in 0..IDLE {
        send(service, "tools/call", tool, body.clone()).await;
        // Its runner has this thread, too.
        tokio::task::yield_now().await;
    }
    let us = start.elapsed().as_secs_f64() * 1e6 / IDLE as f64;
    tokio::time::sleep(Duration::from_millis(300)).await;
    (memory().saturating_sub(before) as f64 / IDLE as f64, us)
}

/// Bytes of each of many tasks that wait for an answer, and are suspended meanwhile.
async fn suspended(service: &HttpService) -> Result<f64, BoxError> {
    let make = async |made: usize| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|_| {
                let service = service.clone();
                tokio::spawn(async move {
                    let (body, mut last) = (call("ask"), String::new());
                    for _ in 0..made / CLIENTS {
                        last = id(&send(&service, "tools/call", "ask", body.clone()).await);
                    }
                    last
                })
            })
            .collect();
        let mut last = Vec::new();
        for client in clients {
            last.push(client.await?);
        }
        // The last ones ask, and are suspended.
        tokio::time::sleep(Duration::from_secs(2)).await;
        for id in last {
            let task = ask(service, "tasks/get", &id, json!({ "taskId": id })).await;
            assert_eq!(task["result"]["status"], "input_required", "{task}");
        }
        Ok::<(), BoxError>(())
    };
    // What the first ones cost is not theirs: so many run at the same time later, too.
    make(IDLE / 4).await?;
    let before = memory();
    make(IDLE).await?;
    Ok(memory().saturating_sub(before) as f64 / IDLE as f64)
}

fn main() -> Result<(), BoxError> {
    let one = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let folder = std::env::temp_dir().join(format!("linchpin-bench-tasks-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    // First, while nothing was given back to the allocator that they could use; none of them is dropped before the end.
    let (ends, waits) = (service(Some(Tasks::memory()))?, service(Some(Tasks::memory()))?);
    let (ended, _) = one.block_on(idle(&ends, "note"));
    let (waiting, made) = one.block_on(idle(&waits, "wait"));
    let mut rows = vec![
        ("memory of a task that has ended, bytes", ended),
        ("memory of a task that waits, bytes", waiting),
        ("a call, a server without tasks, us", one.block_on(calls(&service(None)?))),
    ];
    let memory = service(Some(Tasks::memory()))?;
    rows.push(("a call, a server with tasks, us", one.block_on(calls(&memory))));
    rows.push(("a task in memory that waits, us", made));
    rows.push(("a task in memory, to its end, us", one.block_on(tasks(&memory))?));
    let many = tokio::runtime::Runtime::new()?;
    for (case, clients, made) in [
        ("tasks a second in SQLite, one at a time", 1, DURABLE / 4),
        ("tasks a second in SQLite, 16 clients", CLIENTS, DURABLE),
    ] {
        let store = Store::sqlite(folder.join(format!("{clients}.db")))?;
        let service = many.block_on(async { service(Some(Tasks::at(store))) })?;
        rows.push((case, many.block_on(durable(&service, clients, made))?));
    }
    let store = Store::sqlite(folder.join("suspended.db"))?;
    let service = many.block_on(async { service(Some(Tasks::at(store))) })?;
    rows.push(("memory of a suspended task, bytes", many.block_on(suspended(&service))?));
    let json = std::env::args().any(|word| word == "--json");
    let mut out = std::io::stdout();
    for (case, value) in rows {
        match json {
            true => writeln!(out, "{}", json!({ "case": case, "value": value }))?,
            false => writeln!(out, "{case:42} {value:9.1}")?,
        }
    }
    std::fs::remove_dir_all(&folder)?;
    Ok(())
}
