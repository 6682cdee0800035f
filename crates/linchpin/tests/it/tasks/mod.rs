//! Tasks of both generations: a server that has some, and its peers.

mod both;
mod faults;
mod faulty;
#[cfg(unix)]
mod kills;
mod legacy;
mod limits;
mod memory;
mod modern;
#[cfg(unix)]
mod node;
mod processes;
#[cfg(unix)]
mod redis;
mod suspended;

use crate::common::{MODERN, Peer};
use linchpin::Principal;
use linchpin::prelude::*;
use linchpin::transport::Service;
use linchpin_core::service::{CallEvent, RequestContext};
use linchpin_core::{CallStart, ClientCaps, Features, Session};
use linchpin_proto::{engine, frame};
use serde_json::{Value, json};
use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const CORE: &str = "2025-11-25";
const EXTENSION: &str = "io.modelcontextprotocol/tasks";
const RELATED: &str = "io.modelcontextprotocol/related-task";

fn declared() -> Value {
    json!({ "elicitation": {}, "extensions": { EXTENSION: {} } })
}

#[derive(Deserialize, JsonSchema)]
struct For {
    ms: Option<u64>,
}

#[derive(Deserialize, JsonSchema)]
struct Sure {
    yes: bool,
}

#[derive(Deserialize, JsonSchema)]
struct Name {
    name: String,
}

/// Counts what handlers did.
#[derive(Default)]
struct Desk {
    begun: AtomicUsize,
    dropped: AtomicUsize,
    steps: AtomicUsize,
}

struct Dropped<'a>(&'a Desk);

impl Drop for Dropped<'_> {
    fn drop(&mut self) {
        self.0.dropped.fetch_add(1, Ordering::SeqCst);
    }
}

impl Desk {
    async fn work(&self, cx: &Cx, q: For) -> String {
        self.begun.fetch_add(1, Ordering::SeqCst);
        let _dropped = Dropped(self);
        cx.progress_with(1.0, Some(2.0), "half done");
        tokio::time::sleep(Duration::from_millis(q.ms.unwrap_or(0))).await;
        format!("worked in {}", cx.task_id().is_some())
    }

    async fn asks(&self, cx: &Cx, _: NoArgs) -> Result<String> {
        let sure: Sure = cx.elicit("sure", "Really?").await?;
        Ok(format!("sure: {}", sure.yes))
    }

    async fn later(&self, cx: &Cx, _: NoArgs) -> Result<String> {
        let who: Name = cx.elicit("who", "Who?").await?;
        let became = cx.become_task().await;
        Ok(format!("{}, {became}", who.name))
    }

    /// A step and a question before it is a task, and both again after.
    async fn moves(&self, cx: &Cx, _: NoArgs) -> Result<String> {
        let one = cx.memoize("one", async { Ok(self.steps.fetch_add(1, Ordering::SeqCst) + 1) }).await?;
        let who: Name = cx.elicit("who", "Who?").await?;
        let became = cx.become_task().await;
        let again = cx.memoize("one", async { Ok(self.steps.fetch_add(1, Ordering::SeqCst) + 1) }).await?;
        let sure: Sure = cx.elicit("sure", "Really?").await?;
        Ok(format!("{one}, {again}, {}, {became}, {}", who.name, sure.yes))
    }

    async fn steps(&self, cx: &Cx, _: NoArgs) -> Result<String> {
        let one = cx.memoize("one", async { Ok(self.steps.fetch_add(1, Ordering::SeqCst) + 1) }).await?;
        let sure: Sure = cx.elicit("sure", "Really?").await?;
        Ok(format!("{one}, {}", sure.yes))
    }
}

async fn fails() -> Result<String> {
    Err(Error::tool("no luck"))
}

async fn breaks() -> Result<String> {
    Err(Error::protocol_with(-7, "broken", json!({ "why": 1 })))
}

async fn panics(_: NoArgs) -> String {
    panic!("on purpose")
}

async fn big() -> String {
    "x".repeat(5 << 20)
}

fn server(desk: &Arc<Desk>) -> Server<Desk> {
    let tool = |name: &str| Tool::new(name, "");
    Server::new("tasks", "1")
        .limits(|limits| limits.tasks.grace_ms = 40)
        .shared_state(desk.clone())
        .tool(tool("work").task(), Desk::work)
        .tool(tool("must").task_required().meanwhile("It takes a while."), Desk::work)
        .tool(tool("asks").task(), Desk::asks)
        .tool(tool("later").task_later(), Desk::later)
        .tool(tool("moves").task_later().resumable(), Desk::moves)
        .tool(tool("steps").task_required().resumable(), Desk::steps)
        .tool(tool("fails").task_required(), fails)
        .tool(tool("breaks").task_required(), breaks)
        .tool(tool("panics").task_required(), panics)
        .tool(tool("big").task_required(), big)
        .tool("plain", || "plain")
}

fn shared(server: Server<Desk>) -> Arc<dyn Service> {
    use linchpin::transport::IntoService;
    server.into_shared().expect("it is put together rightly")
}

async fn modern(desk: &Arc<Desk>) -> Peer {
    Peer::of(shared(server(desk)), MODERN, declared()).await
}

async fn core(desk: &Arc<Desk>) -> Peer {
    Peer::of(shared(server(desk)), CORE, json!({ "elicitation": {} })).await
}

fn id(answer: &Value) -> String {
    let result = &answer["result"];
    let task = if result["task"].is_object() { &result["task"] } else { result };
    task["taskId"].as_str().unwrap_or_else(|| panic!("no task: {answer}")).to_owned()
}

/// Looks until a task has this status.
async fn until(peer: &mut Peer, id: &str, status: &str) -> Value {
    let begun = Instant::now();
    loop {
        let answer = peer.ask("tasks/get", json!({ "taskId": id })).await;
        if answer["result"]["status"] == status {
            return answer["result"].clone();
        }
        assert!(begun.elapsed() < Duration::from_secs(10), "not {status}: {answer}");
        tokio::time::sleep(Duration::from_millis(60)).await;
    }
}

async fn call(peer: &mut Peer, name: &str, arguments: Value) -> Value {
    peer.ask("tools/call", json!({ "name": name, "arguments": arguments })).await
}

/// A call as a task, where the requestor decides.
async fn call_as_task(peer: &mut Peer, name: &str, arguments: Value) -> Value {
    peer.ask("tools/call", json!({ "name": name, "arguments": arguments, "task": { "ttl": 60_000 } })).await
}

/// Sends a request as somebody, past all transports.
async fn ask_as(service: &Arc<dyn Service>, who: Option<&str>, revision: &str, method: &str, params: Value) -> Value {
    ask_deaf(service, (who, revision), method, params, &AtomicUsize::new(0)).await
}

/// Like [`ask_as`]; counts the requests of the server, which reach nobody.
async fn ask_deaf(
    service: &Arc<dyn Service>,
    (who, revision): (Option<&str>, &str),
    method: &str,
    params: Value,
    asked: &AtomicUsize,
) -> Value {
    let mut params = params;
    let features = Features::all().find(|f| f.revision.as_str() == revision).expect("a revision");
    let session = features.has_sessions.then(|| {
        let declared = r#"{"elicitation":{}}"#;
        let caps = ClientCaps::read(declared).expect("capabilities");
        Arc::new(Session::new(features, caps, declared, ""))
    });
    if session.is_none() {
        params["_meta"]["io.modelcontextprotocol/protocolVersion"] = revision.into();
        params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = declared();
    }
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    let message = frame::message(message.to_string().into(), service.limits()).expect("a message");
    let request = match engine::open(&message, session.as_ref()) {
        Ok(request) => request,
        Err(reply) => return serde_json::from_slice(&reply.frame()).expect("JSON"),
    };
    let context = Arc::new(RequestContext::default().with(|context| context.principal = who.map(Principal::new)));
    let mut started = None;
    let reply = poll_fn(|cx| {
        let running = match &mut started {
            None => match service.start(request.clone(), context.clone(), cx) {
                CallStart::Done(reply) => return std::task::Poll::Ready(reply),
                CallStart::Running(running) => started.insert(running),
            },
            Some(running) => running,
        };
        loop {
            match std::task::ready!(running.poll_event(cx)) {
                CallEvent::Done(reply) => return std::task::Poll::Ready(reply),
                CallEvent::Cancelled => panic!("cancelled"),
                CallEvent::ServerRequest(request) => {
                    assert!(asked.fetch_add(1, Ordering::SeqCst) < 100, "it is asked again and again");
                    request.refuse();
                }
                _ => {}
            }
        }
    });
    serde_json::from_slice(&reply.await.into_frame()).expect("JSON")
}
