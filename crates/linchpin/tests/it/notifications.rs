//! Handlers of notifications and subscriptions: in every revision and on every transport.

use crate::common::{Logged, MODERN, Peer, service};
use linchpin::client::Connection;
use linchpin::prelude::*;
use linchpin::types::root::Root;
use linchpin::types::version::Revision;
use serde_json::json;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

const SAVED: &str = "notifications/example.com/saved";

/// What the handlers were called with, as lines.
struct Log(UnboundedSender<String>);

impl Log {
    fn line(&self, line: String) {
        self.0.send(line).expect("the test reads");
    }
}

#[derive(Deserialize, JsonSchema)]
struct Saved {
    path: String,
}

#[derive(Deserialize, JsonSchema)]
struct Subscription {
    uri: String,
}

fn client(cx: &Cx) -> String {
    cx.client().map_or_else(|| "nobody".to_owned(), |client| client.name)
}

async fn saved(log: &Log, cx: &Cx, saved: Saved) -> Result<()> {
    tokio::task::yield_now().await;
    log.line(format!("{} saved {}", client(cx), saved.path));
    Ok(())
}

fn subscribed(log: &Log, to: Subscription) -> Result<()> {
    if to.uri == "note://secret" {
        return Err(Error::protocol(-32602, "not for you"));
    }
    log.line(format!("subscribe {}", to.uri));
    Ok(())
}

fn server() -> (Server<Log>, UnboundedReceiver<String>) {
    let (log, heard) = unbounded_channel();
    let server = Server::new("notes", "1.0")
        .resource("note://{name}", |cx: &Cx| cx.uri().unwrap_or_default().to_owned())
        .state(Log(log))
        .on_notification(SAVED, saved)
        .on_initialized(|log: &Log, cx: &Cx| log.line(format!("initialized {}", client(cx))))
        .on_roots_changed(|log: &Log| log.line("roots".to_owned()))
        .on_subscribe(subscribed)
        .on_unsubscribe(async |log: &Log, cx: &Cx| log.line(format!("unsubscribe {}", cx.uri().unwrap_or_default())));
    (server, heard)
}

fn host(revision: Revision) -> Client {
    Client::new("h", "1.0").revisions(&[revision]).roots(vec![Root::new("file:///a")])
}

async fn expect(heard: &mut UnboundedReceiver<String>, line: &str) {
    let next = tokio::time::timeout(Duration::from_secs(20), heard.recv()).await;
    assert_eq!(next.ok().flatten().as_deref(), Some(line));
}

async fn check(c: Connection, heard: &mut UnboundedReceiver<String>) {
    let sessions = c.revision() < Revision::V2026_07_28;
    if sessions {
        expect(heard, "initialized h").await;
    }
    c.notify(SAVED, json!({ "path": "a", "_meta": { "x.y/z": 1 } })).await.unwrap();
    expect(heard, "h saved a").await;
    c.roots_changed().await.unwrap();
    if sessions {
        expect(heard, "roots").await;
    }
    let changes = c.subscribe("note://a").await.unwrap();
    expect(heard, "subscribe note://a").await;
    drop(changes);
    expect(heard, "unsubscribe note://a").await;
    assert!(c.subscribe("note://secret").await.is_err());
    let _changes = c.subscribe("note://b").await.unwrap();
    expect(heard, "subscribe note://b").await;
    c.close().await;
    expect(heard, "unsubscribe note://b").await;
}

#[tokio::test]
async fn handlers_hear_notifications_and_subscriptions_in_every_revision_in_memory() {
    for revision in Revision::ALL {
        let (server, mut heard) = server();
        check(host(revision).connect(in_process(server)).await.unwrap(), &mut heard).await;
    }
}

#[cfg(all(feature = "http", feature = "remote"))]
#[tokio::test]
async fn handlers_hear_notifications_and_subscriptions_in_every_revision_over_http() {
    for revision in Revision::ALL {
        let (server, mut heard) = server();
        let (ready, address) = tokio::sync::oneshot::channel();
        let http = http("127.0.0.1:0").on_ready(move |address| ready.send(address).expect("somebody waits"));
        let served = tokio::spawn(server.serve(http));
        let url = format!("http://{}/mcp", address.await.unwrap());
        check(host(revision).connect(remote(&url).unwrap()).await.unwrap(), &mut heard).await;
        served.abort();
    }
}

#[tokio::test]
async fn a_stateless_notification_needs_claims_and_never_belongs_to_a_session() {
    let (server, mut heard) = server();
    let mut peer = Peer::of(service_of(server), MODERN, json!({})).await;
    let claims = json!({
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let bad = json!({ "io.modelcontextprotocol/protocolVersion": "2031-01-01", "io.modelcontextprotocol/clientCapabilities": {} });
    for (method, params) in [
        (SAVED, json!({ "path": "without claims" })),
        (SAVED, json!({ "path": "bad claims", "_meta": bad })),
        (SAVED, json!(["no object"])),
        ("notifications/initialized", json!({ "_meta": claims })),
        ("notifications/roots/list_changed", json!({ "_meta": claims })),
        ("notifications/other", json!({ "_meta": claims })),
        (SAVED, json!({ "path": "with claims", "_meta": claims })),
    ] {
        peer.send(json!({ "jsonrpc": "2.0", "method": method, "params": params })).await;
    }
    expect(&mut heard, "nobody saved with claims").await;
}

fn service_of(server: Server<Log>) -> std::sync::Arc<dyn linchpin::transport::Service> {
    linchpin::transport::IntoService::into_shared(server).expect("it is put together rightly")
}

#[tokio::test]
async fn handlers_that_are_ready_at_once_run_in_order_before_the_next_request() {
    let count = std::sync::Arc::new(AtomicUsize::new(0));
    let (first, second) = (count.clone(), count.clone());
    let server = Server::new("s", "1")
        .on_notification(SAVED, move || _ = first.compare_exchange(0, 1, Ordering::SeqCst, Ordering::SeqCst))
        .on_notification(SAVED, move || _ = second.compare_exchange(1, 2, Ordering::SeqCst, Ordering::SeqCst))
        .tool("count", move || count.load(Ordering::SeqCst).to_string());
    let mut peer = Peer::plain(server, "2025-06-18").await;
    peer.send(json!({ "jsonrpc": "2.0", "method": SAVED })).await;
    let counted = peer.ask("tools/call", json!({ "name": "count" })).await;
    assert_eq!(counted["result"]["content"][0]["text"], "2", "{counted}");
}

/// Logs the roots, or why there are none.
async fn ask_for_roots(log: &Log, cx: &Cx) {
    let roots = cx.roots("roots").await.map(|roots| roots.into_iter().map(|root| root.uri).collect::<Vec<_>>());
    log.line(roots.map_or_else(|error| format!("{:?}", error.kind()), |roots| roots.join(" ")));
}

fn asking() -> (Server<Log>, UnboundedReceiver<String>) {
    let (log, heard) = unbounded_channel();
    let server = Server::new("s", "1").state(Log(log)).on_initialized(ask_for_roots).on_roots_changed(ask_for_roots);
    (server.on_notification(SAVED, ask_for_roots), heard)
}

#[tokio::test]
async fn handlers_ask_clients_with_sessions_in_memory() {
    for revision in Revision::ALL {
        let (server, mut heard) = asking();
        let c = host(revision).connect(in_process(server)).await.unwrap();
        check_asking(c, &mut heard).await;
    }
}

#[cfg(all(feature = "http", feature = "remote"))]
#[tokio::test]
async fn handlers_ask_clients_with_sessions_over_http() {
    for revision in Revision::ALL {
        let (server, mut heard) = asking();
        let (ready, address) = tokio::sync::oneshot::channel();
        let http = http("127.0.0.1:0").on_ready(move |address| ready.send(address).expect("somebody waits"));
        let served = tokio::spawn(server.serve(http));
        let url = format!("http://{}/mcp", address.await.unwrap());
        check_asking(host(revision).connect(remote(&url).unwrap()).await.unwrap(), &mut heard).await;
        served.abort();
    }
}

async fn check_asking(c: Connection, heard: &mut UnboundedReceiver<String>) {
    if c.revision() < Revision::V2026_07_28 {
        expect(heard, "file:///a").await;
        c.roots_changed().await.unwrap();
        expect(heard, "file:///a").await;
    }
    c.notify(SAVED, ()).await.unwrap();
    expect(heard, if c.revision() < Revision::V2026_07_28 { "file:///a" } else { "Unsupported" }).await;
}

#[tokio::test(start_paused = true)]
async fn a_request_of_a_handler_is_withdrawn_when_nobody_answers_and_fails_when_the_client_leaves() {
    let (server, mut heard) = asking();
    let mut peer = Peer::of(service_of(server), "2025-06-18", json!({ "roots": {} })).await;
    let question = peer.message().await;
    assert_eq!(question["method"], "roots/list");
    tokio::time::advance(Duration::from_millis(300_000)).await;
    let withdrawn = peer.said("notifications/cancelled").await;
    assert_eq!(withdrawn["params"]["requestId"], question["id"]);
    expect(&mut heard, "Timeout").await;
    peer.reply(&question, json!({ "roots": [] })).await;
    peer.send(json!({ "jsonrpc": "2.0", "method": SAVED })).await;
    let another = peer.message().await;
    assert!(another["method"] == "roots/list" && another["id"] != question["id"], "{another}");
    drop(peer);
    expect(&mut heard, "Closed").await;
}

#[tokio::test]
async fn requests_of_handlers_are_limited_for_each_session_and_their_logs_go_to_it() {
    async fn ask(cx: &Cx) {
        let error = cx.roots("roots").await.unwrap_err();
        cx.log(LoggingLevel::Error, format!("{:?}", error.kind()));
    }
    let server = Server::new("s", "1").on_notification(SAVED, ask);
    let mut peer = Peer::of(service(server), "2025-06-18", json!({ "roots": {} })).await;
    for _ in 0..17 {
        peer.send(json!({ "jsonrpc": "2.0", "method": SAVED })).await;
    }
    for _ in 0..16 {
        assert_eq!(peer.message().await["method"], "roots/list");
    }
    assert_eq!(peer.message().await["params"]["data"], "Closed");
}

#[tokio::test]
async fn errors_and_panics_of_handlers_are_logged_and_end_nothing_else() {
    let logged = Logged::default();
    let _guard = tracing::subscriber::set_default(logged.clone());
    let server = Server::new("s", "1")
        .on_notification("a", || -> Result<(), &str> { Err("disk full") })
        .on_notification("a", || -> () { panic!("a bug") })
        .on_notification("a", |_: Saved| ());
    let mut peer = Peer::plain(server, "2025-06-18").await;
    peer.send(json!({ "jsonrpc": "2.0", "method": "a" })).await;
    assert!(peer.ask("ping", json!({})).await.get("result").is_some());
    let text = logged.text();
    for part in ["disk full", "a handler panicked", "the parameters of a notification are invalid"] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[tokio::test]
async fn handlers_that_do_not_end_are_limited_in_number_and_end_with_the_server() {
    let (log, mut heard) = unbounded_channel();
    let server = Server::new("s", "1")
        .limits(|limits| limits.calls.concurrent_max = 2)
        .state(Log(log))
        .on_notification(SAVED, async |log: &Log, saved: Saved| {
            log.line(saved.path);
            std::future::pending::<()>().await;
        });
    let service = service_of(server);
    let mut peer = Peer::of(service.clone(), "2025-06-18", json!({})).await;
    for n in 0..5 {
        peer.send(json!({ "jsonrpc": "2.0", "method": SAVED, "params": { "path": n.to_string() } })).await;
    }
    peer.ask("ping", json!({})).await;
    assert_eq!([heard.recv().await, heard.recv().await], [Some("0".to_owned()), Some("1".to_owned())]);
    assert!(heard.try_recv().is_err());
    drop(peer);
    service.ended().await;
    drop(service);
    // The handlers held the state.
    assert_eq!(tokio::time::timeout(Duration::from_secs(20), heard.recv()).await, Ok(None));
}

#[test]
fn mistakes_in_names_are_reported_at_the_start() {
    for (name, expected) in [
        ("notifications/cancelled", "notification `notifications/cancelled`: it cancels the call, whose `Cx` tells"),
        ("a b", "notification `a b`: a name is 1 to 128 printable ASCII characters"),
    ] {
        let server = Server::new("s", "1").on_notification(name, || ());
        let Err(error) = linchpin::transport::IntoService::into_shared(server) else { panic!("{name} passed") };
        assert!(error.to_string().contains(expected), "{error}");
    }
}

/// Two hooks for subscriptions: the first is slow, the second refuses secrets. Each says what it hears.
fn slow() -> (Server<Log>, UnboundedReceiver<String>) {
    let (log, heard) = unbounded_channel();
    let server = Server::new("notes", "1.0")
        .resource("note://{name}", |cx: &Cx| cx.uri().unwrap_or_default().to_owned())
        .limits(|limits| limits.calls.run_ms_max = 2_000)
        .state(Log(log))
        .on_subscribe(async |log: &Log, to: Subscription| {
            tokio::time::sleep(Duration::from_millis(if to.uri.ends_with("never") { 60_000 } else { 100 })).await;
            log.line(format!("+{}", to.uri));
        })
        .on_subscribe(|to: Subscription| match to.uri.ends_with("secret") {
            true => Err(Error::protocol(-32602, "not for you")),
            false => Ok(()),
        })
        .on_unsubscribe(|log: &Log, cx: &Cx| log.line(format!("-{}", cx.uri().unwrap_or_default())));
    (server, heard)
}

#[tokio::test(start_paused = true)]
async fn hooks_of_subscriptions_that_overlap_run_in_order_and_each_begin_has_one_end() {
    let (server, mut heard) = slow();
    let mut peer = Peer::of(service_of(server), "2025-06-18", json!({})).await;
    let about = |uri: &str| json!({ "uri": uri });
    // Unsubscribed while the hook runs.
    let begin = peer.request("resources/subscribe", about("note://a")).await;
    let end = peer.request("resources/unsubscribe", about("note://a")).await;
    assert!(peer.answer(begin).await["result"].is_object() && peer.answer(end).await["result"].is_object());
    expect(&mut heard, "+note://a").await;
    expect(&mut heard, "-note://a").await;
    // Twice at once is once.
    let one = peer.request("resources/subscribe", about("note://b")).await;
    let two = peer.request("resources/subscribe", about("note://b")).await;
    assert!(peer.answer(one).await["result"].is_object() && peer.answer(two).await["result"].is_object());
    expect(&mut heard, "+note://b").await;
    // The second hook refuses: the first hears that it has ended.
    assert_eq!(peer.ask("resources/subscribe", about("note://secret")).await["error"]["code"], -32602);
    expect(&mut heard, "+note://secret").await;
    expect(&mut heard, "-note://secret").await;
    drop(peer);
    expect(&mut heard, "-note://b").await;
    assert!(heard.try_recv().is_err());
}

#[tokio::test(start_paused = true)]
async fn who_cancels_a_subscription_or_waits_too_long_hears_of_no_changes() {
    let (server, mut heard) = slow();
    let handle = server.handle();
    let mut peer = Peer::of(service_of(server), "2025-06-18", json!({})).await;
    let id = peer.request("resources/subscribe", json!({ "uri": "note://a" })).await;
    let cancelled = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id } });
    peer.send(cancelled).await;
    let late = peer.ask("resources/subscribe", json!({ "uri": "note://never" })).await;
    assert!(late["error"].is_object(), "{late}");
    for uri in ["note://a", "note://never"] {
        handle.resource_updated(uri);
    }
    peer.quiet().await;
    assert!(heard.try_recv().is_err());
}

/// A server whose hook is slow and refuses the first subscription of all.
fn refuses_the_first() -> Server<AtomicUsize> {
    Server::new("notes", "1.0")
        .resource("note://{name}", |cx: &Cx| cx.uri().unwrap_or_default().to_owned())
        .state(AtomicUsize::new(0))
        .on_subscribe(async |asked: &AtomicUsize| {
            let first = asked.fetch_add(1, Ordering::SeqCst) == 0;
            tokio::time::sleep(Duration::from_millis(100)).await;
            if first { Err(Error::protocol(-32602, "not yet")) } else { Ok(()) }
        })
}

#[tokio::test(start_paused = true)]
async fn a_refused_subscription_leaves_those_that_wait_behind_it() {
    let server = refuses_the_first();
    let handle = server.handle();
    let service = linchpin::transport::IntoService::into_shared(server).unwrap();
    let mut peer = Peer::of(service, "2025-06-18", json!({})).await;
    let note = json!({ "uri": "note://a" });
    let refused = peer.request("resources/subscribe", note.clone()).await;
    let accepted = peer.request("resources/subscribe", note).await;
    assert_eq!(peer.answer(refused).await["error"]["code"], -32602);
    assert!(peer.answer(accepted).await["result"].is_object());
    handle.resource_updated("note://a");
    assert_eq!(peer.said("notifications/resources/updated").await["params"]["uri"], "note://a");
}

#[tokio::test(start_paused = true)]
async fn who_cancels_while_waiting_for_a_hook_leaves_the_subscriptions_of_others_and_revives_none() {
    let (server, mut heard) = slow();
    let handle = server.handle();
    let mut peer = Peer::of(service_of(server), "2025-06-18", json!({})).await;
    for (uri, ended) in [("note://a", false), ("note://b", true)] {
        let first = peer.request("resources/subscribe", json!({ "uri": uri })).await;
        if ended {
            peer.ask("resources/unsubscribe", json!({ "uri": uri })).await;
        }
        let second = peer.request("resources/subscribe", json!({ "uri": uri })).await;
        let cancelled = json!({ "requestId": second });
        peer.send(json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancelled })).await;
        assert!(peer.answer(first).await["result"].is_object());
        handle.resource_updated(uri);
        if !ended {
            assert_eq!(peer.said("notifications/resources/updated").await["params"]["uri"], uri);
        }
        peer.quiet().await;
    }
    drop(peer);
    for line in ["+note://a", "+note://b", "-note://b", "-note://a"] {
        expect(&mut heard, line).await;
    }
}

/// A server that runs `max` handlers of notifications at once. Those of [`SAVED`] never end, those of ends of subscriptions when told.
fn crowded(max: usize) -> (Server<Log>, UnboundedReceiver<String>, &'static Notify) {
    static GO: Notify = Notify::const_new();
    let (log, heard) = unbounded_channel();
    let server = Server::new("notes", "1.0")
        .resource("note://{name}", |cx: &Cx| cx.uri().unwrap_or_default().to_owned())
        .limits(|limits| limits.calls.concurrent_max = max)
        .state(Log(log))
        .on_notification(SAVED, async |log: &Log| {
            log.line("saved".to_owned());
            std::future::pending::<()>().await;
        })
        .on_subscribe(|_: Subscription| ())
        .on_unsubscribe(async |log: &Log, to: Subscription| {
            log.line(format!("-{}", to.uri));
            GO.notified().await;
            log.line(format!("over: {}", to.uri));
        });
    (server, heard, &GO)
}

#[tokio::test(start_paused = true)]
async fn hooks_of_ended_subscriptions_run_while_too_many_handlers_of_notifications_do() {
    let (server, mut heard, _) = crowded(1);
    let service = service_of(server);
    let mut peers = Vec::new();
    for uri in ["note://a", "note://b", "note://c"] {
        let mut peer = Peer::of(service.clone(), "2025-06-18", json!({})).await;
        assert!(peer.ask("resources/subscribe", json!({ "uri": uri })).await["result"].is_object());
        peers.push(peer);
    }
    peers[0].send(json!({ "jsonrpc": "2.0", "method": SAVED })).await;
    expect(&mut heard, "saved").await;
    peers[1].ask("resources/unsubscribe", json!({ "uri": "note://b" })).await;
    expect(&mut heard, "-note://b").await;
    // The end of its session ends the last one.
    peers.truncate(2);
    expect(&mut heard, "-note://c").await;
}

#[tokio::test(start_paused = true)]
async fn nobody_subscribes_while_the_hooks_of_too_many_ended_subscriptions_run() {
    let (server, mut heard, go) = crowded(2);
    let handle = server.handle();
    let mut peer = Peer::of(service_of(server), "2025-06-18", json!({})).await;
    let about = |uri: &str| json!({ "uri": uri });
    let uris = ["note://a", "note://b", "note://c"];
    for uri in uris {
        assert!(peer.ask("resources/subscribe", about(uri)).await["result"].is_object());
    }
    for uri in uris {
        assert!(peer.ask("resources/unsubscribe", about(uri)).await["result"].is_object());
        expect(&mut heard, &format!("-{uri}")).await;
    }
    let busy = peer.ask("resources/subscribe", about("note://d")).await;
    assert_eq!(busy["error"]["code"], -32603, "{busy}");
    handle.resource_updated("note://d");
    peer.quiet().await;
    go.notify_waiters();
    for uri in uris {
        expect(&mut heard, &format!("over: {uri}")).await;
    }
    assert!(peer.ask("resources/subscribe", about("note://d")).await["result"].is_object());
    handle.resource_updated("note://d");
    peer.said("notifications/resources/updated").await;
}

/// What a server asks outside of calls is never dropped for what it logs.
#[tokio::test]
async fn a_request_outside_of_calls_waits_for_its_reader_behind_any_number_of_logs() {
    use bytes::Bytes;
    use http_body_util::{BodyExt as _, Full};
    let server = Server::new("s", "1").on_initialized(async |cx: &Cx| {
        let peer = cx.peer();
        let (_, ()) = tokio::join!(cx.roots("roots"), async {
            for n in 0..200 {
                if let Some(peer) = &peer {
                    peer.log(LoggingLevel::Error, None, n);
                }
            }
        });
    });
    let service = server.into_service_with(linchpin::transport::HttpOptions::default()).unwrap();
    let send = async |method: &str, session: Option<&str>, body: serde_json::Value| {
        let mut request = http::Request::builder().method(method).uri("/mcp").header("host", "localhost");
        request =
            request.header("accept", "application/json, text/event-stream").header("content-type", "application/json");
        request = session.into_iter().fold(request, |request, id| request.header("mcp-session-id", id));
        service.handle(request.body(Full::new(Bytes::from(body.to_string()))).unwrap()).await.unwrap()
    };
    let hello = json!({ "protocolVersion": "2025-06-18", "capabilities": { "roots": {} },
        "clientInfo": { "name": "t", "version": "0" } });
    let opened =
        send("POST", None, json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello })).await;
    let session = opened.headers()["mcp-session-id"].to_str().unwrap().to_owned();
    send("POST", Some(&session), json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    let mut stream = send("GET", Some(&session), json!(null)).await.into_body();
    let mut text = String::new();
    while !text.contains("roots/list") {
        let frame = tokio::time::timeout(Duration::from_secs(20), stream.frame()).await.expect("it is asked");
        text.push_str(&String::from_utf8_lossy(&frame.unwrap().unwrap().into_data().unwrap()));
    }
}

/// A transport's read buffer is 8 KiB, and a stream may be open for days.
#[cfg(feature = "http")]
#[tokio::test]
async fn an_open_stream_keeps_nothing_of_the_transports_buffer() {
    use http_body_util::{BodyExt as _, Full};
    let server = Server::new("s", "1").tool("one", || "1").resource("memo://a", || "text");
    let handle = server.handle();
    let service = server.into_service_with(linchpin::transport::HttpOptions::default()).unwrap();
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "t", "version": "0" },
        "io.modelcontextprotocol/clientCapabilities": { "elicitation": {} },
    });
    let wanted = json!({ "toolsListChanged": true, "resourceSubscriptions": ["memo://a"] });
    let params = json!({ "notifications": wanted, "_meta": meta });
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": params }).to_string();
    let head = bytes::Bytes::from(b"kept".to_vec());
    let body = bytes::Bytes::from(message.into_bytes());
    let request = http::Request::post("/mcp")
        .header("host", "localhost")
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", "subscriptions/listen")
        .header("x-mark", http::HeaderValue::from_maybe_shared(head.clone()).unwrap())
        .body(Full::new(body.clone()))
        .unwrap();
    let mut stream = service.handle(request).await.unwrap_or_else(|never| match never {}).into_body();
    let opened = stream.frame().await.unwrap().unwrap().into_data().unwrap();
    assert!(String::from_utf8_lossy(&opened).contains("acknowledged"), "{opened:?}");
    assert!(body.is_unique() && head.is_unique());
    handle.resource_updated("memo://a");
    let told = stream.frame().await.unwrap().unwrap().into_data().unwrap();
    assert!(String::from_utf8_lossy(&told).contains("memo://a"), "{told:?}");
}
