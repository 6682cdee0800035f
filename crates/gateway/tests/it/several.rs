//! Several connections to one upstream: which of them a call has, and what reaches whom.

use crate::bytes::{Client, Upstream, said};
use crate::faults::{ABLE, answer, asked, json_of};
use crate::{curious, revisions};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use linchpin::prelude::*;
use linchpin::transport::{Bind, Connector, HttpExt, HttpOptions, HttpService, IntoService, in_process, memory, pipes};
use linchpin_core::service::BoxFuture;
use linchpin_core::{ClientTransport, ConnectOptions, Principal, TransportError};
use linchpin_gateway::{Bridge, BridgeOptions, Isolation};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, BufReader, simplex};

/// Connections that are opened one after the other.
struct InTurn(Mutex<VecDeque<Arc<dyn Connector>>>);

impl InTurn {
    fn new(all: impl IntoIterator<Item = Arc<dyn Connector>>) -> Arc<InTurn> {
        Arc::new(InTurn(Mutex::new(all.into_iter().collect())))
    }
}

impl Connector for InTurn {
    fn name(&self) -> String {
        "in turn".to_owned()
    }

    fn key(&self) -> Option<String> {
        None
    }

    fn connect(&self, options: ConnectOptions) -> BoxFuture<'_, Result<Arc<dyn ClientTransport>, TransportError>> {
        let next = self.0.lock().unwrap().pop_front().expect("one more connection");
        Box::pin(async move { next.connect(options).await })
    }
}

/// Takes half a second to start, and counts how often it was started.
struct Slow(Arc<dyn Connector>, Arc<AtomicUsize>);

impl Connector for Slow {
    fn name(&self) -> String {
        "slow".to_owned()
    }

    fn key(&self) -> Option<String> {
        None
    }

    fn connect(&self, options: ConnectOptions) -> BoxFuture<'_, Result<Arc<dyn ClientTransport>, TransportError>> {
        self.1.fetch_add(1, Ordering::SeqCst);
        Box::pin(async {
            tokio::time::sleep(Duration::from_millis(500)).await;
            self.0.connect(options).await
        })
    }
}

/// A pipe to an upstream that is written here.
fn pipe() -> (Arc<dyn Connector>, Upstream) {
    let (to_read, to_write) = simplex(1 << 20);
    let (from_read, from_write) = simplex(1 << 20);
    (Arc::new(pipes(from_read, to_write)), Upstream::new(to_read, from_write))
}

/// A client of a bridge on a pipe.
fn client(bridge: Bridge) -> Client {
    let (place, stream) = memory();
    tokio::spawn(place.serve(bridge.into_shared().unwrap()));
    let (read, write) = tokio::io::split(stream);
    (BufReader::new(read).lines(), write)
}

fn bridge(to: Arc<dyn Connector>, change: impl FnOnce(&mut BridgeOptions)) -> Bridge {
    Bridge::to(to).options(change)
}

/// A client of a bridge to an upstream with sessions, and two connections to that.
fn to_two(change: impl FnOnce(&mut BridgeOptions)) -> (Client, Upstream, Upstream) {
    let ((one, first), (other, second)) = (pipe(), pipe());
    let client = client(bridge(InTurn::new([one, other]), |options| {
        options.upstream = revisions(false);
        change(options);
    }));
    (client, first, second)
}

async fn opened(upstream: &mut Upstream) -> Value {
    let first = asked(upstream).await;
    assert_eq!(first["method"], "initialize");
    let can = json!({ "tools": { "listChanged": true }, "logging": {} });
    let result = json!({ "protocolVersion": first["params"]["protocolVersion"], "capabilities": can, "serverInfo": { "name": "s", "version": "1" } });
    answer(upstream, &first, json!({ "result": result })).await;
    assert_eq!(asked(upstream).await["method"], "notifications/initialized");
    first
}

fn call(id: u32, meta: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"t",{meta}}}}}"#)
}

/// Asks for a name during a call, and gives back what the client was told of it.
async fn asks(upstream: &mut Upstream, client: &mut Client, id: u32) -> Value {
    let question = json!({ "jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": { "message": format!("of {id}"), "requestedSchema": { "type": "object", "properties": {} } } });
    upstream.say(&question.to_string()).await;
    let told = json_of(client).await;
    assert_eq!(told["id"], id, "{told}");
    told["result"]["inputRequests"].clone()
}

#[tokio::test]
async fn a_server_that_ends_at_an_unknown_first_message_is_started_again() {
    for stateless in [true, false] {
        let (first, mut upstream) = pipe();
        let again: Arc<dyn Connector> = Arc::new(in_process(curious()));
        let mut client = client(bridge(InTurn::new([first, again]), |_| {}));
        let request = match stateless {
            true => format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{{{ABLE}}}}}"#),
            false => r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#.to_owned(),
        };
        said(&mut client, &request).await;
        upstream.next().await;
        upstream.end().await;
        let told = json_of(&mut client).await;
        assert!(told["result"].is_object(), "{told}");
    }
}

#[tokio::test]
async fn calls_at_once_on_a_pipe_are_asked_only_their_own_questions() {
    let (mut client, mut first, mut second) = to_two(|_| {});
    said(&mut client, &call(1, ABLE)).await;
    opened(&mut first).await;
    asked(&mut first).await;
    said(&mut client, &call(2, ABLE)).await;
    opened(&mut second).await;
    let theirs = asked(&mut second).await;
    assert_eq!(asks(&mut first, &mut client, 1).await["q1"]["params"]["message"], "of 1");
    answer(&mut second, &theirs, json!({ "result": { "content": [] } })).await;
    assert_eq!(json_of(&mut client).await["id"], 2);
    // One after the other they have one connection.
    said(&mut client, &call(3, ABLE)).await;
    assert_eq!(asked(&mut second).await["method"], "tools/call");
}

#[tokio::test]
async fn what_a_client_declares_later_is_known_to_whoever_asks() {
    let (mut client, mut first, mut second) = to_two(|_| {});
    let nothing = ABLE.replace(r#"{"elicitation":{"form":{},"url":{}},"sampling":{}}"#, "{}");
    said(&mut client, &format!(r#"{{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{{{nothing}}}}}"#))
        .await;
    assert_eq!(opened(&mut first).await["params"]["capabilities"], json!({}));
    json_of(&mut client).await;
    said(&mut client, &call(2, ABLE)).await;
    assert!(opened(&mut second).await["params"]["capabilities"]["elicitation"].is_object());
    asked(&mut second).await;
    assert!(asks(&mut second, &mut client, 2).await.is_object());
}

#[tokio::test]
async fn changes_of_a_connection_that_is_lent_reach_the_streams_of_its_client() {
    let (mut client, mut first, mut second) = to_two(|_| {});
    said(&mut client, &call(1, ABLE)).await;
    opened(&mut first).await;
    asked(&mut first).await;
    said(&mut client, &format!(r#"{{"jsonrpc":"2.0","id":2,"method":"subscriptions/listen","params":{{"notifications":{{"toolsListChanged":true}},{ABLE}}}}}"#)).await;
    assert_eq!(json_of(&mut client).await["method"], "notifications/subscriptions/acknowledged");
    said(&mut client, &call(3, ABLE)).await;
    opened(&mut second).await;
    asked(&mut second).await;
    second.say(r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#).await;
    assert_eq!(json_of(&mut client).await["method"], "notifications/tools/list_changed");
}

#[tokio::test]
async fn the_log_level_of_a_session_is_that_of_connections_for_one_call_too() {
    let (mut client, mut shared, mut lent) = to_two(|options| options.isolation = Isolation::Call);
    said(&mut client, r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#).await;
    opened(&mut shared).await;
    json_of(&mut client).await;
    said(&mut client, r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await;
    said(&mut client, r#"{"jsonrpc":"2.0","id":2,"method":"logging/setLevel","params":{"level":"error"}}"#).await;
    let set = asked(&mut shared).await;
    answer(&mut shared, &set, json!({ "result": {} })).await;
    json_of(&mut client).await;
    said(&mut client, r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"t"}}"#).await;
    opened(&mut lent).await;
    let set = asked(&mut lent).await;
    assert_eq!((&set["method"], &set["params"]["level"]), (&json!("logging/setLevel"), &json!("error")));
    answer(&mut lent, &set, json!({ "result": {} })).await;
    let theirs = asked(&mut lent).await;
    for level in ["info", "error"] {
        let log =
            json!({ "jsonrpc": "2.0", "method": "notifications/message", "params": { "level": level, "data": "d" } });
        lent.say(&log.to_string()).await;
    }
    answer(&mut lent, &theirs, json!({ "result": { "content": [] } })).await;
    assert_eq!(json_of(&mut client).await["params"]["level"], "error");
    assert_eq!(json_of(&mut client).await["id"], 3);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_waits_for_its_client_gives_way_when_all_connections_are_in_use() {
    let (mut client, mut first, mut second) = to_two(|options| options.instances_max = 1);
    said(&mut client, &call(1, ABLE)).await;
    opened(&mut first).await;
    asked(&mut first).await;
    assert!(asks(&mut first, &mut client, 1).await.is_object());
    said(&mut client, &call(2, ABLE)).await;
    opened(&mut second).await;
    let theirs = asked(&mut second).await;
    answer(&mut second, &theirs, json!({ "result": { "content": [] } })).await;
    assert_eq!(json_of(&mut client).await["result"]["content"], json!([]));
}

/// Makes 40 short calls at once. Returns how many connections were opened.
async fn forty(change: impl FnOnce(&mut BridgeOptions)) -> usize {
    async fn short(_: &(), _: &Cx, _: NoArgs) -> Result<&'static str> {
        tokio::time::sleep(Duration::from_millis(10)).await;
        Ok("done")
    }
    let count = Arc::<AtomicUsize>::default();
    let server = Arc::new(in_process(Server::new("s", "1").tool("t", short).into_shared().unwrap()));
    let mut client = client(bridge(Arc::new(Slow(server, count.clone())), |options| {
        options.upstream = revisions(false);
        change(options);
    }));
    for id in 1..=40 {
        said(&mut client, &call(id, ABLE)).await;
    }
    for _ in 1..=40 {
        let told = json_of(&mut client).await;
        assert_eq!(told["result"]["content"][0]["text"], "done", "{told}");
    }
    count.load(Ordering::SeqCst)
}

#[tokio::test(start_paused = true)]
async fn many_short_calls_at_once_open_few_connections() {
    // The first connection of a client on a pipe is its own. Four are opened at a time.
    for (isolation, most) in [(Isolation::Auto, 5), (Isolation::Call, 8), (Isolation::Session, 5)] {
        let count = forty(|options| options.isolation = isolation).await;
        assert!(count <= most, "{isolation:?}: {count} connections");
    }
}

#[tokio::test(start_paused = true)]
async fn no_more_connections_are_opened_in_advance_than_was_said() {
    for warm in [1, 4, 9] {
        let count = Arc::<AtomicUsize>::default();
        let server = Arc::new(in_process(curious().into_shared().unwrap()));
        let mut client = client(bridge(Arc::new(Slow(server, count.clone())), |options| {
            options.isolation = Isolation::Fresh;
            options.warm = warm;
            options.upstream = revisions(false);
        }));
        said(&mut client, &call(1, ABLE).replace(r#""t""#, r#""form""#)).await;
        assert!(json_of(&mut client).await["result"]["inputRequests"].is_object());
        tokio::time::sleep(Duration::from_secs(60)).await;
        let count = count.load(Ordering::SeqCst);
        // One to learn the upstream's revision, one for the call, and those that wait.
        assert!((warm + 2..=warm + 4).contains(&count), "{warm} in advance: {count} connections");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_take_turns_when_there_may_be_no_more_connections() {
    let count = forty(|options| options.instances_max = 2).await;
    assert!(count <= 4, "{count} connections");
}

#[tokio::test(start_paused = true)]
async fn calls_that_wait_for_their_client_hold_up_no_others() {
    let count = Arc::<AtomicUsize>::default();
    let server = Arc::new(in_process(curious().into_shared().unwrap()));
    let mut client = client(bridge(Arc::new(Slow(server, count.clone())), |options| {
        options.opening_max = 1;
        options.upstream = revisions(false);
    }));
    for id in 1..=6 {
        said(&mut client, &call(id, ABLE).replace(r#""t""#, r#""form""#)).await;
    }
    for _ in 1..=6 {
        let told = json_of(&mut client).await;
        assert!(told["result"]["inputRequests"].is_object(), "{told}");
    }
    assert_eq!(count.load(Ordering::SeqCst), 6);
}

#[tokio::test]
async fn an_upstream_that_comes_back_in_the_other_era_is_spoken_to_in_that() {
    let ((one, mut first), (other, mut second)) = (pipe(), pipe());
    let mut client = client(bridge(InTurn::new([one, other]), |_| {}));
    let done = json!({ "result": { "content": [], "resultType": "complete" } });
    said(&mut client, &call(1, ABLE)).await;
    crate::faults::opened(&mut first, true).await;
    let theirs = asked(&mut first).await;
    assert_eq!(theirs["method"], "tools/call");
    answer(&mut first, &theirs, done.clone()).await;
    assert_eq!(json_of(&mut client).await["id"], 1);
    first.end().await;
    // Now it has sessions.
    said(&mut client, &call(2, ABLE)).await;
    let next = called(&mut second).await;
    assert!(next["params"]["_meta"].get("io.modelcontextprotocol/protocolVersion").is_none(), "{next}");
    answer(&mut second, &next, done).await;
    let told = json_of(&mut client).await;
    assert_eq!((&told["id"], &told["result"]["content"]), (&json!(2), &json!([])), "{told}");
}

/// Sends a stateless call of a user that declares nothing, over HTTP, and returns its answer once there is one.
fn of_user(service: &HttpService, user: &'static str) -> tokio::task::JoinHandle<Value> {
    let meta = json!({ "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {} });
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": user, "_meta": meta } });
    let mut request = http::Request::post("/mcp").header("host", "localhost");
    for (name, value) in [
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/call"),
        ("mcp-name", user),
    ] {
        request = request.header(name, value);
    }
    let request = request.extension(Principal::new(user)).body(Full::new(Bytes::from(call.to_string()))).unwrap();
    let service = service.clone();
    tokio::spawn(async move {
        let Ok(response) = service.handle(request).await;
        serde_json::from_slice(&response.into_body().collect().await.unwrap().to_bytes()).unwrap()
    })
}

/// The next call of this upstream, which is opened as one with sessions if it is not yet.
async fn called(upstream: &mut Upstream) -> Value {
    loop {
        let next = asked(upstream).await;
        match next["method"].as_str() {
            Some("tools/call") => return next,
            Some("initialize") => {
                let result = json!({ "protocolVersion": "2025-11-25", "capabilities": { "tools": {} }, "serverInfo": { "name": "s", "version": "2" } });
                answer(upstream, &next, json!({ "result": result })).await;
            }
            Some("notifications/initialized") => {}
            _ => {
                answer(upstream, &next, json!({ "error": { "code": -32601, "message": "method not found" } })).await;
            }
        }
    }
}

#[tokio::test]
async fn users_that_shared_a_stateless_upstream_part_when_it_comes_back_with_sessions() {
    let pipes: Vec<_> = (0..4).map(|_| pipe()).collect();
    let (connectors, mut upstreams): (Vec<_>, Vec<_>) = pipes.into_iter().unzip();
    let service = bridge(InTurn::new(connectors), |_| {}).into_service_with(HttpOptions::default()).unwrap();
    let done = json!({ "result": { "content": [], "resultType": "complete" } });
    // Both at once, when nothing is known of it: one connection.
    let both = [of_user(&service, "ada"), of_user(&service, "bob")];
    let mut first = upstreams.remove(0);
    crate::faults::opened(&mut first, true).await;
    for _ in 0..2 {
        let theirs = asked(&mut first).await;
        assert_eq!(theirs["method"], "tools/call");
        answer(&mut first, &theirs, done.clone()).await;
    }
    for one in both {
        assert_eq!(one.await.unwrap()["result"]["content"], json!([]));
    }
    first.end().await;
    // Now it has sessions: each user has one, and keeps it.
    let mut theirs = upstreams.drain(..2).collect::<Vec<_>>();
    for (user, upstream) in ["bob", "ada"].into_iter().zip(&mut theirs) {
        for _ in 0..2 {
            let call = of_user(&service, user);
            let asked = called(upstream).await;
            assert_eq!(asked["params"]["name"], user);
            answer(upstream, &asked, done.clone()).await;
            assert_eq!(call.await.unwrap()["result"]["content"], json!([]));
        }
    }
}
