//! Several processes of one server that share a store, here several services in one process.

#![cfg(feature = "http")]

use crate::common::Logged;
use bytes::Bytes;
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use linchpin::prelude::*;
use linchpin::store::{ChangeRelay, EventStore, SessionStore, StoreError, StoredEvent};
use linchpin::testing::store::MemoryStore;
use linchpin::transport::{HttpOptions, HttpService};
use linchpin::types::logging::LoggingLevel;
use linchpin::{Audience, BoxFuture, Handle, Principal};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

async fn log(cx: &Cx) -> &'static str {
    cx.log(LoggingLevel::Debug, "details");
    "logged"
}

async fn count(cx: &Cx) -> &'static str {
    for n in 1..=3 {
        cx.progress(f64::from(n), None);
    }
    "counted"
}

async fn slow(cx: &Cx) -> &'static str {
    for n in 1..=3 {
        cx.progress(f64::from(n), None);
        tokio::time::sleep(Duration::from_millis(30)).await;
    }
    "counted"
}

fn server() -> Server {
    Server::new("s", "1")
        .tool("slow", slow)
        .tool("log", log)
        .tool("count", count)
        .resource("memo://a", || "text")
        .resource("memo://b", || "text")
}

/// One node, and the handle of its server.
fn node(store: &MemoryStore) -> (HttpService, Handle) {
    node_of(store, store.node())
}

/// One node with this store and relay.
pub(crate) fn node_of(
    store: &(impl SessionStore + EventStore + Clone),
    relay: impl ChangeRelay,
) -> (HttpService, Handle) {
    let server = server().change_relay(relay);
    let handle = server.handle();
    let service = server.into_service_with(HttpOptions::default().with(|options| {
        options.sessions = Some(Arc::new(store.clone()));
        options.events = Some(Arc::new(store.clone()));
    }));
    (service.unwrap(), handle)
}

pub(crate) struct Response {
    pub(crate) status: StatusCode,
    session: Option<String>,
    pub(crate) body: String,
}

impl Response {
    pub(crate) fn messages(&self) -> Vec<Value> {
        let data = self.body.lines().filter_map(|line| line.strip_prefix("data: ")).filter(|data| !data.is_empty());
        let messages: Vec<_> = data.map(|data| serde_json::from_str(data).unwrap()).collect();
        if messages.is_empty() { vec![serde_json::from_str(&self.body).unwrap_or_default()] } else { messages }
    }

    /// The ids of the events.
    pub(crate) fn events(&self) -> Vec<&str> {
        self.body.lines().filter_map(|line| line.strip_prefix("id: ")).collect()
    }
}

pub(crate) struct Caller<'a> {
    pub(crate) session: Option<&'a str>,
    pub(crate) user: Option<&'a str>,
}

pub(crate) async fn send(
    node: &HttpService,
    method: Method,
    by: &Caller<'_>,
    more: &[(&str, &str)],
    body: &Value,
) -> Response {
    let mut request = Request::builder().method(method).uri("/mcp").header("host", "localhost");
    request =
        request.header("accept", "application/json, text/event-stream").header("content-type", "application/json");
    request = by.session.into_iter().fold(request, |request, id| request.header("mcp-session-id", id));
    request = more.iter().fold(request, |request, (name, value)| request.header(*name, *value));
    let body = if body.is_null() { Bytes::new() } else { body.to_string().into() };
    let mut request = request.body(Full::new(body)).unwrap();
    if let Some(user) = by.user {
        request.extensions_mut().insert(Principal::new(user));
    }
    let Ok(response) = node.handle(request).await;
    let session = response.headers().get("mcp-session-id").map(|id| id.to_str().unwrap().to_owned());
    let status = response.status();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    Response { status, session, body: String::from_utf8(body.to_vec()).unwrap() }
}

pub(crate) async fn ask(node: &HttpService, session: &str, method: &str, params: Value) -> Response {
    let by = Caller { session: Some(session), user: None };
    send(node, Method::POST, &by, &[], &json!({ "jsonrpc": "2.0", "id": 5, "method": method, "params": params })).await
}

pub(crate) async fn open(node: &HttpService, user: Option<&str>) -> String {
    let hello =
        json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "0" } });
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello });
    let response = send(node, Method::POST, &Caller { session: None, user }, &[], &hello).await;
    assert_eq!(response.status, StatusCode::OK, "{}", response.body);
    response.session.expect("a session")
}

/// Waits until what was stored in the background is stored.
pub(crate) async fn stored(
    store: &impl SessionStore,
    id: &str,
    done: impl Fn(&linchpin::store::SessionRecord) -> bool,
) {
    for _ in 0..1_000 {
        if store.load(id).await.unwrap().is_some_and(|record| done(&record)) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("it was never stored");
}

#[tokio::test]
async fn another_node_goes_on_with_a_session_and_all_that_it_has_set() {
    let store = MemoryStore::default();
    let (a, _) = node(&store);
    let id = open(&a, None).await;
    assert_eq!(ask(&a, &id, "logging/setLevel", json!({ "level": "debug" })).await.status, StatusCode::OK);
    assert_eq!(ask(&a, &id, "resources/subscribe", json!({ "uri": "memo://a" })).await.status, StatusCode::OK);
    stored(&store, &id, |record| record.log_level == LoggingLevel::Debug && record.subscriptions.len() == 1).await;
    // The first process ends; its sessions do not.
    a.shutdown().await;
    let (b, handle) = node(&store);
    let logged = ask(&b, &id, "tools/call", json!({ "name": "log" })).await.messages();
    assert_eq!(logged[0]["params"]["data"], "details", "{logged:?}");
    let listening = tokio::spawn({
        let (b, id) = (b.clone(), id.clone());
        async move {
            let by = Caller { session: Some(&id), user: None };
            send(&b, Method::GET, &by, &[], &Value::Null).await
        }
    });
    tokio::time::sleep(Duration::from_millis(20)).await;
    handle.resource_updated("memo://a");
    tokio::time::sleep(Duration::from_millis(20)).await;
    b.shutdown().await;
    let heard = listening.await.unwrap().messages();
    assert!(heard.iter().any(|m| m["method"] == "notifications/resources/updated"), "{heard:?}");
}

#[tokio::test]
async fn the_hooks_of_subscriptions_run_at_each_node_that_goes_on_with_the_session() {
    #[derive(Deserialize, JsonSchema)]
    struct To {
        uri: String,
    }
    let store = MemoryStore::default();
    let node = |name: &'static str, log: tokio::sync::mpsc::UnboundedSender<String>| {
        let end = log.clone();
        let server = server()
            .on_subscribe(move |to: To| log.send(format!("{name} + {}", to.uri)).unwrap())
            .on_unsubscribe(move |to: To| end.send(format!("{name} - {}", to.uri)).unwrap());
        let options = HttpOptions::default().with(|options| options.sessions = Some(Arc::new(store.clone())));
        server.into_service_with(options).unwrap()
    };
    let (log, mut heard) = tokio::sync::mpsc::unbounded_channel();
    let (a, b) = (node("a", log.clone()), node("b", log));
    let id = open(&a, None).await;
    ask(&a, &id, "resources/subscribe", json!({ "uri": "memo://a" })).await;
    stored(&store, &id, |record| record.subscriptions.len() == 1).await;
    ask(&b, &id, "ping", json!({})).await;
    ask(&b, &id, "resources/unsubscribe", json!({ "uri": "memo://a" })).await;
    let lines = [heard.recv().await.unwrap(), heard.recv().await.unwrap(), heard.recv().await.unwrap()];
    assert_eq!(lines, ["a + memo://a", "b + memo://a", "b - memo://a"]);
}

#[tokio::test]
async fn a_session_of_another_node_is_found_by_its_owner_only_and_not_once_it_was_deleted() {
    let store = MemoryStore::default();
    let ((a, _), (b, _), (c, _)) = (node(&store), node(&store), node(&store));
    let id = open(&a, Some("ada")).await;
    let list = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list" });
    for (user, status) in [(Some("bob"), 404), (None, 404), (Some("ada"), 200)] {
        let response = send(&b, Method::POST, &Caller { session: Some(&id), user }, &[], &list).await;
        assert_eq!(response.status, status, "{user:?}: {}", response.body);
    }
    let ada = Caller { session: Some(&id), user: Some("ada") };
    assert_eq!(send(&c, Method::DELETE, &ada, &[], &Value::Null).await.status, StatusCode::NO_CONTENT);
    assert_eq!(store.sessions(), 0);
    let (d, _) = node(&store);
    for method in [Method::POST, Method::GET, Method::DELETE] {
        assert_eq!(send(&d, method, &ada, &[], &list).await.status, StatusCode::NOT_FOUND);
    }
    let unknown = "0123456789abcdef0123456789abcdef";
    assert_eq!(ask(&d, unknown, "tools/list", json!({})).await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_stream_is_resumed_at_another_node_without_loss_or_repetition() {
    let store = MemoryStore::default();
    let ((a, _), (b, _)) = (node(&store), node(&store));
    let id = open(&a, None).await;
    let whole = ask(&a, &id, "tools/call", json!({ "name": "count", "_meta": { "progressToken": 1 } })).await;
    let events = whole.events();
    assert_eq!(whole.messages().len(), 4, "{}", whole.body);
    let by = Caller { session: Some(&id), user: None };
    for (at, event) in events.iter().enumerate() {
        let rest = send(&b, Method::GET, &by, &[("last-event-id", event)], &Value::Null).await;
        match &events[at + 1..] {
            // The response was sent, or its process died with it.
            [] => assert_eq!(rest.status, StatusCode::BAD_REQUEST, "{event}"),
            left => assert_eq!((rest.status, rest.events()), (StatusCode::OK, left.to_vec()), "{event}"),
        }
    }
    let (stream, _) = events[0].split_once('-').unwrap();
    let other = (stream.parse::<u64>().unwrap() + 1).to_string();
    for unknown in [format!("{other}-1"), "x".to_owned(), String::new()] {
        let refused = send(&b, Method::GET, &by, &[("last-event-id", &unknown)], &Value::Null).await;
        assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{unknown}");
    }
    // Streams of the same session at both nodes have different numbers.
    let more = ask(&b, &id, "tools/call", json!({ "name": "count", "_meta": { "progressToken": 1 } })).await;
    assert!(!more.events()[0].starts_with(&format!("{stream}-")), "{}", more.body);
}

#[tokio::test]
async fn a_change_at_one_node_reaches_the_subscribers_of_all() {
    let store = MemoryStore::default();
    let ((a, handle), (b, _)) = (node(&store), node(&store));
    let id = open(&b, None).await;
    let listening = tokio::spawn({
        let b = b.clone();
        async move { send(&b, Method::GET, &Caller { session: Some(&id), user: None }, &[], &Value::Null).await }
    });
    tokio::time::sleep(Duration::from_millis(20)).await;
    handle.tools().disable("count").unwrap();
    tokio::time::sleep(Duration::from_millis(20)).await;
    b.shutdown().await;
    let heard = listening.await.unwrap().messages();
    assert!(heard.iter().any(|m| m["method"] == "notifications/tools/list_changed"), "{heard:?}");
    drop(a);
}

#[tokio::test]
async fn a_quiet_stream_of_changes_goes_on_at_another_node() {
    let store = MemoryStore::default();
    let ((a, _), (b, handle)) = (node(&store), node(&store));
    let id = open(&a, None).await;
    let listening = tokio::spawn({
        let b = b.clone();
        // The number of a stream of the first node whose events are forgotten.
        let (id, last) = (id.clone(), format!("{}-3", 7_u64 << 32));
        async move {
            let by = Caller { session: Some(&id), user: None };
            send(&b, Method::GET, &by, &[("last-event-id", &last)], &Value::Null).await
        }
    });
    tokio::time::sleep(Duration::from_millis(20)).await;
    handle.tools().disable("count").unwrap();
    tokio::time::sleep(Duration::from_millis(20)).await;
    b.shutdown().await;
    let heard = listening.await.unwrap();
    assert_eq!(heard.status, StatusCode::OK);
    assert!(heard.messages().iter().any(|m| m["method"] == "notifications/tools/list_changed"), "{}", heard.body);
}

/// A store that never answers, or panics.
struct Broken(bool);

impl Broken {
    fn call<T: Send + 'static>(&self) -> BoxFuture<'static, Result<T, StoreError>> {
        let panics = self.0;
        Box::pin(async move { if panics { panic!("a bug of the store") } else { std::future::pending().await } })
    }
}

impl SessionStore for Broken {
    fn save(&self, _: &str, _: linchpin::store::SessionRecord, _: Duration) -> BoxFuture<'_, Result<(), StoreError>> {
        self.call()
    }
    fn load(&self, _: &str) -> BoxFuture<'_, Result<Option<linchpin::store::SessionRecord>, StoreError>> {
        self.call()
    }
    fn touch(&self, _: Vec<String>, _: Duration) -> BoxFuture<'_, Result<(), StoreError>> {
        self.call()
    }
    fn delete(&self, _: &str) -> BoxFuture<'_, Result<bool, StoreError>> {
        self.call()
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_that_hangs_or_panics_has_failed() {
    for panics in [false, true] {
        let options = HttpOptions::default().with(|options| options.sessions = Some(Arc::new(Broken(panics))));
        let service = server().into_service_with(options).unwrap();
        let unknown = "0123456789abcdef0123456789abcdef";
        let refused = ask(&service, unknown, "tools/list", json!({})).await;
        assert_eq!(refused.status, StatusCode::SERVICE_UNAVAILABLE, "{}", refused.body);
    }
}

#[tokio::test]
async fn a_change_at_one_node_is_not_told_at_others_to_those_for_whom_the_resource_does_not_exist() {
    let store = MemoryStore::default();
    let ((a, handle), (b, there)) = (node(&store), node(&store));
    let id = open(&b, Some("ada")).await;
    let by = |session| Caller { session, user: Some("ada") };
    for uri in ["memo://a", "memo://b"] {
        let subscribe = json!({ "jsonrpc": "2.0", "id": 2, "method": "resources/subscribe", "params": { "uri": uri } });
        let subscribed = send(&b, Method::POST, &by(Some(&id)), &[], &subscribe).await;
        assert_eq!(subscribed.status, StatusCode::OK, "{}", subscribed.body);
    }
    there.resources().disable_for("memo://a", &Audience::principal(&Principal::new("ada"))).unwrap();
    handle.resource_updated("memo://a");
    handle.resource_updated("memo://b");
    let listening = tokio::spawn({
        let b = b.clone();
        async move { send(&b, Method::GET, &Caller { session: Some(&id), user: Some("ada") }, &[], &Value::Null).await }
    });
    tokio::time::sleep(Duration::from_millis(40)).await;
    b.shutdown().await;
    let heard = listening.await.unwrap().messages();
    let updated = heard.iter().filter(|m| m["method"] == "notifications/resources/updated");
    assert_eq!(updated.map(|m| &m["params"]["uri"]).collect::<Vec<_>>(), ["memo://b"], "{heard:?}");
    drop(a);
}

/// A store that is away.
struct Away;

fn away<T: Send + 'static>() -> BoxFuture<'static, Result<T, StoreError>> {
    Box::pin(std::future::ready(Err(StoreError::new("no route to the store"))))
}

impl SessionStore for Away {
    fn save(&self, _: &str, _: linchpin::store::SessionRecord, _: Duration) -> BoxFuture<'_, Result<(), StoreError>> {
        away()
    }
    fn load(&self, _: &str) -> BoxFuture<'_, Result<Option<linchpin::store::SessionRecord>, StoreError>> {
        away()
    }
    fn touch(&self, _: Vec<String>, _: Duration) -> BoxFuture<'_, Result<(), StoreError>> {
        away()
    }
    fn delete(&self, _: &str) -> BoxFuture<'_, Result<bool, StoreError>> {
        away()
    }
}

impl EventStore for Away {
    fn append(&self, _: &str, _: u64, _: Vec<StoredEvent>, _: Duration) -> BoxFuture<'_, Result<(), StoreError>> {
        away()
    }
    fn after(&self, _: &str, _: u64, _: u32) -> BoxFuture<'_, Result<Option<Vec<StoredEvent>>, StoreError>> {
        away()
    }
    fn trim(&self, _: &str, _: u64, _: u32) -> BoxFuture<'_, Result<(), StoreError>> {
        away()
    }
    fn delete(&self, _: &str) -> BoxFuture<'_, Result<(), StoreError>> {
        away()
    }
}

#[tokio::test]
async fn a_store_that_is_away_refuses_sessions_and_loses_no_event() {
    let logged = Logged::default();
    let _guard = tracing::subscriber::set_default(logged.clone());
    let options = HttpOptions::default().with(|options| options.sessions = Some(Arc::new(Away)));
    let service = server().into_service_with(options).unwrap();
    let hello =
        json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "0" } });
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello });
    let nobody = Caller { session: None, user: None };
    let refused = send(&service, Method::POST, &nobody, &[], &hello).await;
    assert_eq!((refused.status, refused.session), (StatusCode::SERVICE_UNAVAILABLE, None), "{}", refused.body);
    let unknown = "0123456789abcdef0123456789abcdef";
    assert_eq!(ask(&service, unknown, "tools/list", json!({})).await.status, StatusCode::SERVICE_UNAVAILABLE);

    let options = HttpOptions::default().with(|options| options.events = Some(Arc::new(Away)));
    let service = server().into_service_with(options).unwrap();
    let id = open(&service, None).await;
    let counted = ask(&service, &id, "tools/call", json!({ "name": "count", "_meta": { "progressToken": 1 } })).await;
    assert_eq!(counted.messages().len(), 4, "{}", counted.body);
    assert!(logged.text().contains("no route to the store"), "{}", logged.text());
    assert!(!logged.text().contains(&id), "the id of a session is a secret");
}

/// A store that keeps events but for one of this number, and what it was told to forget.
#[derive(Clone)]
struct Trimmed(MemoryStore, Arc<std::sync::atomic::AtomicU32>, Option<u32>);

impl EventStore for Trimmed {
    fn append(
        &self,
        session: &str,
        stream: u64,
        events: Vec<StoredEvent>,
        ttl: Duration,
    ) -> BoxFuture<'_, Result<(), StoreError>> {
        if self.2.is_some_and(|number| events.iter().any(|event| event.number == number)) {
            return away();
        }
        self.0.append(session, stream, events, ttl)
    }

    fn after(
        &self,
        session: &str,
        stream: u64,
        after: u32,
    ) -> BoxFuture<'_, Result<Option<Vec<StoredEvent>>, StoreError>> {
        self.0.after(session, stream, after)
    }

    fn trim(&self, session: &str, stream: u64, through: u32) -> BoxFuture<'_, Result<(), StoreError>> {
        self.1.fetch_max(through, std::sync::atomic::Ordering::Relaxed);
        self.0.trim(session, stream, through)
    }

    fn delete(&self, session: &str) -> BoxFuture<'_, Result<(), StoreError>> {
        EventStore::delete(&self.0, session)
    }
}

#[tokio::test]
async fn events_that_are_not_kept_here_are_not_kept_in_the_store() {
    let memory = MemoryStore::default();
    let store = Trimmed(memory.clone(), Arc::default(), None);
    let server = server().limits(|limits| limits.messages.queued_max = 16);
    let handle = server.handle();
    let options = HttpOptions::default().with(|options| {
        options.sessions = Some(Arc::new(memory.clone()));
        options.events = Some(Arc::new(store.clone()));
    });
    let service = server.into_service_with(options).unwrap();
    let session = open(&service, None).await;
    let subscribed = ask(&service, &session, "resources/subscribe", json!({ "uri": "memo://a" })).await;
    assert_eq!(subscribed.status, StatusCode::OK);
    let request = Request::get("/mcp").header("host", "localhost").header("accept", "text/event-stream");
    let request = request.header("mcp-session-id", &session).body(Full::new(Bytes::new())).unwrap();
    let mut stream = service.handle(request).await.unwrap().into_body();
    let mut heard = 0;
    while heard < 300 {
        handle.resource_updated("memo://a");
        let frame = tokio::time::timeout(Duration::from_secs(20), stream.frame()).await.expect("a change");
        heard += usize::from(!frame.unwrap().unwrap().into_data().unwrap().is_empty());
    }
    for _ in 0..1000 {
        if store.1.load(std::sync::atomic::Ordering::Relaxed) >= 200 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("trimmed through {:?} of 300", store.1);
}

#[tokio::test]
async fn a_stream_is_not_resumed_elsewhere_past_an_event_that_could_not_be_stored() {
    let memory = MemoryStore::default();
    let with = |events: Trimmed| {
        server().into_service_with(HttpOptions::default().with(|options| {
            options.sessions = Some(Arc::new(memory.clone()));
            options.events = Some(Arc::new(events));
        }))
    };
    let (store, healthy) =
        (Trimmed(memory.clone(), Arc::default(), Some(2)), Trimmed(memory.clone(), Arc::default(), None));
    let (a, b) = (with(store.clone()).unwrap(), with(healthy).unwrap());
    let id = open(&a, None).await;
    let handle = json!({ "name": "slow", "_meta": { "progressToken": 1 } });
    let whole = ask(&a, &id, "tools/call", handle).await;
    let events = whole.events();
    for _ in 0..1_000 {
        if store.1.load(std::sync::atomic::Ordering::Relaxed) >= 2 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let by = Caller { session: Some(&id), user: None };
    let status = async |event: &str| send(&b, Method::GET, &by, &[("last-event-id", event)], &Value::Null).await.status;
    assert_eq!(status(events[0]).await, StatusCode::BAD_REQUEST, "{events:?}");
    assert_eq!(status(events[events.len() - 2]).await, StatusCode::OK, "{events:?}");
}

/// Who names it is told that there is no such session; the log says more, but not the id, which opens the session.
#[tokio::test]
async fn a_request_for_the_session_of_another_principal_is_logged_without_its_id() {
    let logged = Logged::default();
    let _guard = tracing::subscriber::set_default(logged.clone());
    let store = MemoryStore::default();
    let (here, _) = node(&store);
    let session = open(&here, Some("ada")).await;
    stored(&store, &session, |_| true).await;
    let (there, _) = node(&store);
    let ping = json!({ "jsonrpc": "2.0", "id": 2, "method": "ping" });
    let refused =
        "INFO message=refused a request status=404 why=\"the session belongs to another principal\" session=\"";
    let as_user = |user| Caller { session: Some(&session), user };
    // At the second node it is brought back from the store only for its owner.
    for (node, method, body) in [
        (&here, Method::POST, &ping),
        (&there, Method::POST, &ping),
        (&here, Method::GET, &Value::Null),
        (&here, Method::DELETE, &Value::Null),
    ] {
        let before = logged.text().len();
        let status = send(node, method.clone(), &as_user(Some("eve")), &[("mcp-protocol-version", "2025-11-25")], body)
            .await
            .status;
        assert_eq!(status, StatusCode::NOT_FOUND, "{method}");
        let said = logged.text().split_off(before);
        assert_eq!(
            (said.matches(refused).count(), said.matches("principal=\"eve\"").count()),
            (1, 1),
            "{method}: {said}"
        );
        assert!(!said.contains(&session), "{said}");
    }
    let before = logged.text().len();
    for node in [&here, &there] {
        assert_eq!(send(node, Method::POST, &as_user(None), &[], &ping).await.status, StatusCode::NOT_FOUND);
        assert_eq!(send(node, Method::POST, &as_user(Some("ada")), &[], &ping).await.status, StatusCode::OK);
    }
    let said = logged.text().split_off(before);
    assert_eq!((said.matches(refused).count(), said.matches("principal=\"eve\"").count()), (2, 0), "{said}");
}
