//! Who shares a connection, which tools clients see, and what is recorded.

use crate::{able, bridge, curious, revisions, serve};
use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use linchpin::client::{Tap, Traffic};
use linchpin::prelude::Server;
use linchpin::transport::{Connector, HttpExt, HttpOptions, IntoService, in_process};
use linchpin_core::service::BoxFuture;
use linchpin_core::{Answer, ClientTransport, ConnectOptions, Features, Inbox, Outgoing, Principal, TransportError};
use linchpin_gateway::{Bridge, Isolation};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// Counts how often it is connected to.
struct Counted(Arc<dyn Connector>, Arc<AtomicUsize>);

impl Connector for Counted {
    fn name(&self) -> String {
        self.0.name()
    }

    fn key(&self) -> Option<String> {
        None
    }

    fn connect(&self, options: ConnectOptions) -> BoxFuture<'_, Result<Arc<dyn ClientTransport>, TransportError>> {
        self.1.fetch_add(1, Ordering::SeqCst);
        self.0.connect(options)
    }
}

#[tokio::test]
async fn connections_are_shared_as_it_was_said() {
    // How many connections two clients need that make three calls each, one after the other, at an upstream with sessions.
    for (isolation, least, most) in [
        (Isolation::User, 1, 1),
        (Isolation::Shared, 1, 1),
        (Isolation::Auto, 2, 2),
        // One for what opens the sessions, one that is lent.
        (Isolation::Call, 2, 2),
        // One for what opens them, one a call, and those that wait.
        (Isolation::Fresh, 7, 9),
    ] {
        let count = Arc::<AtomicUsize>::default();
        let server = Arc::new(in_process(curious().into_shared().unwrap()));
        let bridge = Bridge::new(Counted(server, count.clone())).options(|options| {
            options.isolation = isolation;
            options.upstream = revisions(false);
        });
        let service = bridge.into_shared().unwrap();
        let revision = Features::all().find(|features| features.has_sessions).unwrap().revision;
        let mut clients = [able(serve(service.clone()), revision), able(serve(service), revision)];
        for client in &mut clients {
            client.open().await;
            for _ in 0..3 {
                let result = client.call("roots", json!({})).await;
                let text = format!("{result:?}");
                // One that all share cannot ask.
                assert_eq!(text.contains("file:///work"), isolation != Isolation::Shared, "{isolation:?}: {text}");
            }
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
        let count = count.load(Ordering::SeqCst);
        assert!((least..=most).contains(&count), "{isolation:?}: {count}");
    }
}

/// Each connection is to a server of its own, which knows its number.
struct Numbered(AtomicUsize);

impl Connector for Numbered {
    fn name(&self) -> String {
        "numbered".to_owned()
    }

    fn key(&self) -> Option<String> {
        None
    }

    fn connect(&self, options: ConnectOptions) -> BoxFuture<'_, Result<Arc<dyn ClientTransport>, TransportError>> {
        let number = self.0.fetch_add(1, Ordering::SeqCst).to_string();
        let server = Server::new("numbered", "1").tool("number", move || number.clone());
        Box::pin(async move { in_process(server).connect(options).await })
    }
}

/// The numbers of the servers that answer three stateless requests of each of these users.
async fn numbers(isolation: Isolation, stateless: bool, users: [&'static str; 2]) -> [BTreeSet<String>; 2] {
    let bridge = Bridge::new(Numbered(AtomicUsize::new(0))).options(|options| {
        options.isolation = isolation;
        options.upstream = revisions(stateless);
    });
    let service = bridge.into_service_with(HttpOptions::default()).unwrap();
    let modern = Features::all().find(|features| features.stateless).unwrap().revision.as_str();
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "number", "_meta": {
        "io.modelcontextprotocol/protocolVersion": modern,
        "io.modelcontextprotocol/clientCapabilities": {},
    } } });
    let mut all = [BTreeSet::new(), BTreeSet::new()];
    for _ in 0..3 {
        for (user, numbers) in users.into_iter().zip(&mut all) {
            let mut request = Request::post("/mcp").header("host", "localhost");
            for (name, value) in [
                ("content-type", "application/json"),
                ("accept", "application/json, text/event-stream"),
                ("mcp-protocol-version", modern),
                ("mcp-method", "tools/call"),
                ("mcp-name", "number"),
            ] {
                request = request.header(name, value);
            }
            if !user.is_empty() {
                request = request.extension(Principal::new(user));
            }
            let Ok(response) = service.handle(request.body(Full::new(Bytes::from(call.to_string()))).unwrap()).await;
            let body = response.into_body().collect().await.unwrap().to_bytes();
            let answer: Value = serde_json::from_slice(&body).unwrap();
            let number = answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}"));
            numbers.insert(number.to_owned());
        }
    }
    all
}

#[tokio::test]
async fn users_do_not_share_an_upstream_that_may_remember_what_it_was_told() {
    for isolation in [Isolation::Auto, Isolation::User, Isolation::Call, Isolation::Session, Isolation::Fresh] {
        let [ada, bob] = numbers(isolation, false, ["ada", "bob"]).await;
        assert!(ada.is_disjoint(&bob), "{isolation:?}: {ada:?} and {bob:?}");
        let each = if matches!(isolation, Isolation::Session | Isolation::Fresh) { 3 } else { 1 };
        assert_eq!((ada.len(), bob.len()), (each, each), "{isolation:?}");
    }
    // Where nobody is known, or all share, or nothing is remembered, one is enough.
    for (isolation, stateless, users) in [
        (Isolation::Auto, false, ["", ""]),
        (Isolation::Shared, false, ["ada", "bob"]),
        (Isolation::Auto, true, ["ada", "bob"]),
    ] {
        let [ada, bob] = numbers(isolation, stateless, users).await;
        assert_eq!((ada.len(), &ada), (1, &bob), "{isolation:?} {stateless} {users:?}");
    }
}

/// Sends a notification when it may.
#[derive(Clone)]
struct Held<T>(T, Arc<Semaphore>, Arc<AtomicUsize>);

impl Connector for Held<Arc<dyn Connector>> {
    fn name(&self) -> String {
        self.0.name()
    }

    fn key(&self) -> Option<String> {
        None
    }

    fn connect(&self, options: ConnectOptions) -> BoxFuture<'_, Result<Arc<dyn ClientTransport>, TransportError>> {
        Box::pin(async {
            let transport = self.0.connect(options).await?;
            Ok(Arc::new(Held(transport, self.1.clone(), self.2.clone())) as Arc<dyn ClientTransport>)
        })
    }
}

impl ClientTransport for Held<Arc<dyn ClientTransport>> {
    fn exchange(&self, out: Outgoing) -> BoxFuture<'_, Result<Answer, TransportError>> {
        self.0.exchange(out)
    }

    fn notify(&self, out: Outgoing) -> BoxFuture<'_, Result<(), TransportError>> {
        Box::pin(async {
            self.2.fetch_add(1, Ordering::SeqCst);
            let _may = self.1.acquire().await.unwrap();
            self.0.notify(out).await
        })
    }

    fn notify_detached(&self, out: Outgoing) {
        self.0.notify_detached(out);
    }

    fn cancels_by_dropping(&self) -> bool {
        self.0.cancels_by_dropping()
    }

    fn negotiated(&self, features: &'static Features) {
        self.0.negotiated(features);
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.0.close()
    }
}

#[tokio::test]
async fn a_client_that_leaves_while_the_upstream_is_told_of_it_holds_up_nobody() {
    let (may, told) = (Arc::new(Semaphore::new(0)), Arc::<AtomicUsize>::default());
    let server: Arc<dyn Connector> = Arc::new(in_process(curious().into_shared().unwrap()));
    let bridge = Bridge::new(Held(server, may.clone(), told.clone())).options(|options| {
        options.isolation = Isolation::Shared;
        options.upstream = revisions(false);
    });
    let service = bridge.into_shared().unwrap();
    let revision = Features::all().find(|features| features.has_sessions).unwrap().revision;
    let mut first = able(serve(service.clone()), revision);
    let params = json!({ "protocolVersion": revision.as_str(), "capabilities": {}, "clientInfo": { "name": "c", "version": "1" } });
    first.start("initialize", params).await;
    while told.load(Ordering::SeqCst) == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    drop(first);
    tokio::time::sleep(Duration::from_millis(50)).await;
    may.add_permits(1);
    let mut second = able(serve(service), revision);
    second.open().await;
    let called = tokio::time::timeout(Duration::from_secs(10), second.call("roots", json!({}))).await;
    assert!(called.is_ok(), "the call waits");
    assert_eq!(told.load(Ordering::SeqCst), 1, "the upstream is told once");
}

#[tokio::test]
async fn tools_that_are_not_shown_do_not_exist() {
    for features in Features::all() {
        for stateless in [false, true] {
            let bridge = bridge(curious(), stateless, |options| {
                options.tools = vec!["s*".into(), "form".into()];
                options.hidden_tools = vec!["f?rm".into()];
            });
            let mut client = able(crate::stream(bridge), features.revision);
            client.open().await;
            let listed = client.request("tools/list", json!({})).await.unwrap();
            let names: Vec<_> = listed["tools"].as_array().unwrap().iter().map(|tool| tool["name"].clone()).collect();
            assert_eq!(names, [json!("sample")], "{}", features.revision);
            for hidden in ["form", "roots"] {
                let refused =
                    client.request("tools/call", json!({ "name": hidden, "arguments": {} })).await.unwrap_err();
                assert_eq!(refused.code, -32602, "{refused}");
            }
            for odd in [json!({ "name": ["form"] }), json!({ "name": 1 }), json!({})] {
                let refused = client.request("tools/call", odd).await.unwrap_err();
                assert_eq!(refused.code, -32602, "{refused}");
            }
            assert!(client.call("sample", json!({})).await.is_ok());
        }
    }
}

#[tokio::test]
async fn revisions_that_are_not_served_are_refused_with_those_that_are() {
    for served in [false, true] {
        for features in Features::all() {
            let bridge = bridge(curious(), false, |options| options.clients = revisions(served));
            let mut client = able(crate::stream(bridge), features.revision);
            let method = if features.stateless { "tools/list" } else { "initialize" };
            let params = json!({ "protocolVersion": features.revision.as_str(), "capabilities": {}, "clientInfo": { "name": "c", "version": "1" } });
            let outcome = client.request(method, params).await;
            match features.stateless == served {
                true => assert!(outcome.is_ok(), "{}: {outcome:?}", features.revision),
                false => {
                    let error = outcome.unwrap_err();
                    assert_eq!(error.code, -32022, "{error}");
                    let names: Vec<_> = revisions(served).iter().map(|features| features.revision.as_str()).collect();
                    let data: serde_json::Value = serde_json::from_str(error.data.unwrap().get()).unwrap();
                    assert_eq!(data["supported"], json!(names));
                }
            }
        }
    }
}

#[derive(Default)]
struct Kept(Mutex<Vec<String>>);

impl Tap for Kept {
    fn saw(&self, event: Traffic<'_>) {
        let line = match event {
            Traffic::Sent(text) => format!("sent {text}"),
            Traffic::Heard(text) => format!("heard {text}"),
            _ => return,
        };
        self.0.lock().unwrap().push(line);
    }
}

#[tokio::test]
async fn both_sides_can_be_watched() {
    let (up, down) = (Arc::<Kept>::default(), Arc::<Kept>::default());
    let bridge = bridge(curious(), true, |options| {
        options.tap = Some(up.clone());
        options.client_tap = Some(down.clone());
    });
    let revision = Features::all().find(|features| features.has_sessions).unwrap().revision;
    let mut client = able(crate::stream(bridge), revision);
    client.open().await;
    client.call("roots", json!({})).await.unwrap();
    let text = |kept: &Kept| kept.0.lock().unwrap().join("\n");
    for part in [
        "heard {\"jsonrpc\":\"2.0\",",
        "\"method\":\"initialize\"",
        "notifications/initialized",
        "sent {\"jsonrpc\":\"2.0\",\"method\":\"roots/list\"",
        "file:///work",
    ] {
        assert!(text(&down).contains(part), "{part} in {}", text(&down));
    }
    assert!(text(&up).contains("server/discover") && text(&up).contains("inputResponses"), "{}", text(&up));
}

#[tokio::test]
async fn sessions_that_share_a_connection_hear_of_changes_and_only_the_logs_that_they_want() {
    for isolation in [Isolation::User, Isolation::Shared] {
        for stateless in crate::UPSTREAMS {
            let bridge = bridge(linchpin_conformance::server(), stateless, |options| options.isolation = isolation);
            let service = bridge.into_shared().unwrap();
            let revision = Features::all().find(|features| features.has_sessions).unwrap().revision;
            let mut clients = [able(serve(service.clone()), revision), able(serve(service), revision)];
            let watched = json!({ "uri": "test://watched-resource" });
            for (client, level) in clients.iter_mut().zip(["debug", "emergency"]) {
                client.open().await;
                client.request("logging/setLevel", json!({ "level": level })).await.unwrap();
                // The stream that is held for them is open once a subscription is acknowledged.
                client.request("resources/subscribe", watched.clone()).await.unwrap();
            }
            clients[1].request("resources/unsubscribe", watched).await.unwrap();
            tokio::time::sleep(Duration::from_millis(if stateless { 300 } else { 0 })).await;
            clients[0].call("test_trigger_prompt_change", json!({})).await.unwrap();
            for client in &mut clients {
                client.expect("notifications/prompts/list_changed").await;
                client.drain(Duration::from_millis(50)).await;
                client.call("test_tool_with_logging", json!({})).await.unwrap();
            }
            let logs = |told: &[serde_json::Value]| told.iter().any(|told| told["method"] == "notifications/message");
            let about = format!("{isolation:?} to stateless {stateless}");
            assert!(!logs(&clients[1].drain(Duration::from_millis(50)).await), "{about}");
            // Where nobody is told apart, messages that no call can be given are the operator's.
            let told = logs(&clients[0].drain(Duration::from_millis(50)).await);
            assert_eq!(told, isolation == Isolation::User, "{about}");
        }
    }
}

/// Can be told that its session is forgotten, as a server over HTTP tells it after a restart.
struct Forgetful(Arc<dyn Connector>, Arc<Mutex<Vec<Arc<dyn Inbox>>>>);

impl Connector for Forgetful {
    fn name(&self) -> String {
        self.0.name()
    }

    fn key(&self) -> Option<String> {
        None
    }

    fn connect(&self, options: ConnectOptions) -> BoxFuture<'_, Result<Arc<dyn ClientTransport>, TransportError>> {
        self.1.lock().unwrap().push(options.inbox.clone());
        self.0.connect(options)
    }
}

#[tokio::test]
async fn when_an_upstream_forgets_a_session_the_next_request_opens_another() {
    for features in Features::all() {
        let inboxes = Arc::<Mutex<Vec<Arc<dyn Inbox>>>>::default();
        let server = Arc::new(in_process(curious().into_shared().unwrap()));
        let bridge = Bridge::new(Forgetful(server, inboxes.clone())).options(|o| o.upstream = revisions(false));
        let mut client = able(serve(bridge.into_shared().unwrap()), features.revision);
        client.open().await;
        for connections in 1..=2 {
            let result = format!("{:?}", client.call("roots", json!({})).await);
            assert!(result.contains("file:///work"), "{result}");
            assert_eq!(inboxes.lock().unwrap().len(), connections, "{:?}", features.revision);
            inboxes.lock().unwrap()[connections - 1].forgotten();
        }
    }
}

/// Cannot be reached, which takes a second to find out.
struct Unreachable(Arc<AtomicUsize>);

impl Connector for Unreachable {
    fn name(&self) -> String {
        "nowhere".to_owned()
    }

    fn key(&self) -> Option<String> {
        None
    }

    fn connect(&self, _: ConnectOptions) -> BoxFuture<'_, Result<Arc<dyn ClientTransport>, TransportError>> {
        self.0.fetch_add(1, Ordering::SeqCst);
        Box::pin(async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            Err(TransportError::Unreachable("nobody is there".into()))
        })
    }
}

#[tokio::test(start_paused = true)]
async fn after_many_failures_one_request_tries_again_and_the_others_are_refused() {
    let count = Arc::<AtomicUsize>::default();
    let bridge = Bridge::new(Unreachable(count.clone())).options(|options| options.upstream = revisions(true));
    let service = bridge.into_shared().unwrap();
    let revision = Features::all().find(|features| features.stateless).unwrap().revision;
    let call = || {
        let mut client = able(serve(service.clone()), revision);
        async move { format!("{:?}", client.call("roots", json!({})).await) }
    };
    for failures in 1..=5 {
        assert!(call().await.contains("nobody is there"));
        assert_eq!(count.load(Ordering::SeqCst), failures);
    }
    // The next attempt is not due.
    assert!(call().await.contains("nobody is there"));
    assert_eq!(count.load(Ordering::SeqCst), 5);
    tokio::time::sleep(Duration::from_secs(60)).await;
    let refused = (0..8).map(|_| call()).collect::<JoinSet<_>>().join_all().await;
    assert!(refused.iter().all(|why| why.contains("nobody is there")), "{refused:?}");
    assert_eq!(count.load(Ordering::SeqCst), 6);
}
