//! Tasks of both generations: made, looked at, asked, answered, cancelled, listened to, kept.

use crate::common;

use common::{MODERN, Peer, code, service, text};
use linchpin::prelude::*;
use linchpin::store::Store;
use linchpin::transport::Service;
use linchpin::{Principal, Tasks};
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
    let context = Arc::new(RequestContext { principal: who.map(Principal::new), ..RequestContext::default() });
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
    let asked = peer.message().await;
    assert_eq!(asked["method"], "elicitation/create", "{asked}");
    assert_eq!(asked["params"]["_meta"][RELATED], json!({ "taskId": id }));
    let second = peer.request("tasks/result", json!({ "taskId": id })).await;
    peer.quiet().await;
    // The one that asked is cut: the other asks, under another id, and the old answer is nobody's.
    peer.send(json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": first } })).await;
    let withdrawn = peer.said("notifications/cancelled").await;
    assert_eq!(withdrawn["params"]["requestId"], asked["id"]);
    let again = peer.said("elicitation/create").await;
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
    let asked = peer.said("elicitation/create").await;
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
        asked.push(peer.said("elicitation/create").await);
    }
    for question in &asked {
        peer.reply(question, json!({ "action": "accept", "content": { "yes": true } })).await;
    }
    assert_eq!(text(&peer.answer(waiting).await), "16");
}

#[tokio::test]
async fn answers_that_never_fit_fail_the_task_in_the_end() {
    let desk = Arc::default();
    let limited = server(&desk).limits(|limits| limits.tasks.steps_max = 3);
    let mut peer = Peer::of(shared(limited), MODERN, declared()).await;
    let made = call(&mut peer, "asks", json!({})).await;
    let id = id(&made);
    until(&mut peer, &id, "input_required").await;
    for key in ["sure", "sure#2", "sure#3"] {
        peer.ask("tasks/update", json!({ "taskId": id, "inputResponses": { key: 7 } })).await;
    }
    let task = until(&mut peer, &id, "failed").await;
    assert!(task["error"]["message"].as_str().unwrap().contains("limit 3"), "{task}");
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

/// Rows 20 and 21 of the faults.
#[tokio::test]
async fn limits_refuse_before_the_handler_runs_and_fail_what_grows() {
    let desk: Arc<Desk> = Arc::default();
    let limited = server(&desk).limits(|limits| {
        limits.tasks.running_per_owner_max = 2;
        limits.tasks.running_max = 3;
        limits.tasks.kept_per_owner_max = 4;
        limits.tasks.argument_bytes_max = 100;
    });
    let service = shared(limited);
    let call = |name: &str, ms: u64| json!({ "name": name, "arguments": { "ms": ms } });
    let mut running = Vec::new();
    for who in ["ada", "ada", "bob"] {
        running.push(id(&ask_as(&service, Some(who), MODERN, "tools/call", call("must", 60_000)).await));
    }
    let begun = desk.begun.load(Ordering::SeqCst);
    for (who, why) in [("ada", "limit of 2 tasks at once for you"), ("eve", "limit of 3 tasks at once")] {
        let refused = ask_as(&service, Some(who), MODERN, "tools/call", call("must", 0)).await;
        assert_eq!(code(&refused), -32603);
        assert!(refused["error"]["message"].as_str().unwrap().contains(why), "{refused}");
    }
    assert_eq!(desk.begun.load(Ordering::SeqCst), begun, "no handler ran");
    let in_place = ask_as(&service, Some("ada"), MODERN, "tools/call", call("work", 80)).await;
    assert_eq!(text(&in_place), "worked in false", "what need not be a task is none");
    let long = json!({ "name": "must", "arguments": { "ms": 1, "more": "x".repeat(100) } });
    assert_eq!(code(&ask_as(&service, Some("ada"), MODERN, "tools/call", long).await), -32602);

    // One ends: there is room again, and the oldest that has ended goes when too many are kept.
    let first = running.remove(0);
    ask_as(&service, Some("ada"), MODERN, "tasks/cancel", json!({ "taskId": first })).await;
    for _ in 0..3 {
        let begun = Instant::now();
        loop {
            let made = ask_as(&service, Some("ada"), MODERN, "tools/call", call("must", 0)).await;
            if made.get("result").is_some() {
                break;
            }
            assert!(begun.elapsed() < Duration::from_secs(5), "{made}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
    let gone = ask_as(&service, Some("ada"), MODERN, "tasks/get", json!({ "taskId": first })).await;
    assert_eq!(code(&gone), -32602, "{gone}");
    let kept = ask_as(&service, Some("ada"), MODERN, "tasks/get", json!({ "taskId": running[0] })).await;
    assert_eq!(kept["result"]["status"], "working");
    let mut polls = 0;
    while code_of(&ask_as(&service, Some("ada"), MODERN, "tasks/get", json!({ "taskId": running[0] })).await).is_none()
    {
        polls += 1;
        assert!(polls < 100, "polls are limited");
    }
}

fn code_of(answer: &Value) -> Option<i64> {
    answer["error"]["code"].as_i64()
}

/// Row 19 of the faults: a task that overruns its time to live.
#[tokio::test(start_paused = true)]
async fn a_task_that_takes_too_long_fails_and_is_forgotten_later() {
    let desk: Arc<Desk> = Arc::default();
    let service = shared(
        server(&desk).tool(Tool::new("short", "").task_required().task_ttl(Duration::from_secs(30)), Desk::work),
    );
    let call = json!({ "name": "short", "arguments": { "ms": 3_600_000 } });
    let made = ask_as(&service, Some("ada"), MODERN, "tools/call", call).await;
    assert_eq!(made["result"]["ttlMs"], 30_000);
    let get = json!({ "taskId": id(&made) });
    tokio::time::sleep(Duration::from_secs(31)).await;
    let failed = ask_as(&service, Some("ada"), MODERN, "tasks/get", get.clone()).await["result"].clone();
    assert_eq!((&failed["status"], &failed["error"]["code"]), (&json!("failed"), &json!(-32603)), "{failed}");
    assert!(failed["statusMessage"].as_str().unwrap().contains("time to live"));
    assert_eq!(desk.dropped.load(Ordering::SeqCst), 1);
    tokio::time::sleep(Duration::from_secs(601)).await;
    assert_eq!(code(&ask_as(&service, Some("ada"), MODERN, "tasks/get", get).await), -32602);
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

#[tokio::test(start_paused = true)]
async fn messages_of_a_task_are_written_once_a_second_and_the_last_one_stays() {
    let noisy = async |cx: &Cx| {
        cx.become_task().await;
        for n in 1..=10_000 {
            cx.progress_with(f64::from(n), None, &format!("{n} {}", "é".repeat(1_000)));
        }
        tokio::time::sleep(Duration::from_secs(10)).await;
        "done"
    };
    let server = Server::new("noisy", "1").tool(Tool::new("noisy", "").task_required(), noisy);
    let service = service(server);
    let made = ask_as(&service, Some("ada"), MODERN, "tools/call", json!({ "name": "noisy" })).await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    let task = ask_as(&service, Some("ada"), MODERN, "tasks/get", json!({ "taskId": id(&made) })).await;
    let message = task["result"]["statusMessage"].as_str().unwrap();
    assert!(message.starts_with("10000 ") && (1_020..=1_024).contains(&message.len()), "{} bytes", message.len());
}

#[tokio::test]
async fn progress_and_logs_of_a_task_reach_the_session_and_name_the_task() {
    let desk = Arc::default();
    let mut peer = core(&desk).await;
    let params = json!({ "name": "must", "arguments": { "ms": 100 }, "task": {}, "_meta": { "progressToken": "p" } });
    let made = peer.ask("tools/call", params).await;
    let told = peer.said("notifications/progress").await;
    assert_eq!((&told["params"]["progressToken"], &told["params"]["message"]), (&json!("p"), &json!("half done")));
    assert_eq!(told["params"]["_meta"][RELATED], json!({ "taskId": id(&made) }));
}

/// Row 20 of the faults, and what else a task may hold.
#[tokio::test]
async fn more_than_a_task_may_hold_is_an_error_in_its_handler_or_fails_it() {
    let questions = async |cx: &Cx| {
        let asked = (0..3).map(|n| {
            let cx = cx.clone();
            tokio::spawn(async move { cx.elicit::<Name>(&format!("q{n}"), "Who?").await.map(|who| who.name) })
        });
        let asked: Vec<_> = asked.collect();
        // The last one asked is the first one looked at: the others wait.
        for one in asked.into_iter().rev() {
            if let Ok(Err(refused)) = one.await {
                return refused.to_string();
            }
        }
        "asked all".to_owned()
    };
    let steps = async |cx: &Cx| -> Result<&'static str> {
        for n in 0..5 {
            cx.memoize(&format!("step {n}"), async { Ok("x".repeat(20)) }).await?;
        }
        Ok("did all")
    };
    let many = |steps_max, step_bytes_max, answer_bytes_max| {
        let server = Server::new("holds", "1").limits(|limits| {
            limits.tasks.questions_open_max = 2;
            (limits.tasks.steps_max, limits.tasks.step_bytes_max) = (steps_max, step_bytes_max);
            limits.tasks.answer_bytes_max = answer_bytes_max;
        });
        let server = server.tool(Tool::new("questions", "").task_required(), questions);
        service(server.tool(Tool::new("steps", "").task_required(), steps))
    };
    for (steps_max, bytes_max, why) in [(3, 1_000, "more than 3 steps"), (9, 70, "exceed 70 bytes"), (9, 1_000, "")] {
        let mut peer = Peer::of(many(steps_max, bytes_max, 1_000), MODERN, declared()).await;
        let made = call(&mut peer, "steps", json!({})).await;
        let status = if why.is_empty() { "completed" } else { "failed" };
        let task = until(&mut peer, &id(&made), status).await;
        let message = task["error"]["message"].as_str().unwrap_or_default();
        assert!(message.contains(why), "{task}");
    }
    let mut peer = Peer::of(many(100, 1_000, 100), MODERN, declared()).await;
    let made = call(&mut peer, "questions", json!({})).await;
    let task = until(&mut peer, &id(&made), "completed").await;
    let told = task["result"]["content"][0]["text"].as_str().unwrap();
    assert!(told.contains("too many open questions in this task (limit 2)"), "{told}");

    let desk = Arc::default();
    let small = server(&desk).limits(|limits| limits.tasks.answer_bytes_max = 60);
    let mut peer = Peer::of(shared(small), MODERN, declared()).await;
    let made = call(&mut peer, "asks", json!({})).await;
    let id = id(&made);
    until(&mut peer, &id, "input_required").await;
    let long = json!({ "sure": { "action": "accept", "content": { "yes": true, "more": "x".repeat(60) } } });
    let refused = peer.ask("tasks/update", json!({ "taskId": id, "inputResponses": long })).await;
    assert!(refused["error"]["message"].as_str().unwrap().contains("60 bytes"), "{refused}");
}

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
