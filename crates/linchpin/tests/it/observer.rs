//! Observers and spans: each call once, with its outcome, whatever its end.

use crate::common::{ALL, Logged, MODERN, Peer, service, text, until};
use linchpin::prelude::*;
use linchpin::{CallEnd, CallInfo, Observer};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What was observed, a line for each.
#[derive(Clone, Default)]
pub(crate) struct Record(Arc<Mutex<Vec<String>>>);

impl Record {
    fn add(&self, line: String) {
        self.0.lock().unwrap().push(line);
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }

    pub(crate) fn count(&self, line: &str) -> usize {
        self.lines().iter().filter(|l| *l == line).count()
    }
}

impl Observer for Record {
    fn call_started(&self, call: &CallInfo) {
        self.add(format!("start {}", call.method));
    }

    fn call_ended(&self, call: &CallInfo, end: &CallEnd) {
        assert!(call.request_bytes > 0);
        assert_eq!(end.response_bytes == 0, end.outcome == linchpin::Outcome::Cancelled);
        let target = call.target.as_deref().unwrap_or("-");
        self.add(format!("end {} {target} {}", call.method, end.outcome.as_str()));
    }

    fn session_opened(&self, session: &linchpin::Session) {
        assert_ne!(session.public_id(), 0);
        self.add("session opened".into());
    }

    fn session_closed(&self, _: &linchpin::Session) {
        self.add("session closed".into());
    }

    fn stream_opened(&self) {
        self.add("stream opened".into());
    }

    fn stream_closed(&self) {
        self.add("stream closed".into());
    }

    fn notification_dropped(&self) {
        self.add("dropped".into());
    }
}

fn server(record: &Record) -> Server {
    Server::new("s", "1.0")
        .limits(|limits| limits.calls.drain_ms_max = 50)
        .observe(record.clone())
        .tool("works", || "done")
        .tool("fails", || -> Result<String, &str> { Err("no") })
        .tool("waits", || async { std::future::pending::<String>().await })
        .resource("memo://a", || "text")
}

#[tokio::test]
async fn every_call_is_observed_once_with_its_outcome_in_every_revision() {
    for revision in ALL {
        let record = Record::default();
        let mut peer = Peer::of(service(server(&record)), revision, json!({})).await;
        peer.call("works", json!({})).await;
        peer.call("fails", json!({})).await;
        peer.call("missing", json!({})).await;
        peer.ask("resources/read", json!({ "uri": "memo://a" })).await;
        peer.ask("example.com/unknown", json!({})).await;
        let id = peer.start("waits", json!({})).await;
        let record_of = record.clone();
        until("the call has started", move || record_of.count("start tools/call") == 4).await;
        let cancelled = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id } });
        peer.send(cancelled).await;
        let record_of = record.clone();
        until("the call has ended", move || record_of.count("end tools/call waits cancelled") == 1).await;
        peer.start("waits", json!({})).await;
        drop(peer);
        let record_of = record.clone();
        until("the call has ended", move || record_of.count("end tools/call waits cancelled") == 2).await;

        let modern = revision == MODERN;
        let mut expected: Vec<&str> = Vec::new();
        if !modern {
            expected.extend(["start initialize", "end initialize - ok"]);
        }
        expected.extend([
            "start tools/call",
            "end tools/call works ok",
            "start tools/call",
            "end tools/call fails tool_error",
            "start tools/call",
            "end tools/call missing error",
            "start resources/read",
            "end resources/read memo://a ok",
            "start example.com/unknown",
            "end example.com/unknown - error",
            "start tools/call",
            "end tools/call waits cancelled",
            "start tools/call",
            "end tools/call waits cancelled",
        ]);
        let calls: Vec<_> = record.lines().into_iter().filter(|line| !line.starts_with("session")).collect();
        assert_eq!(calls, expected, "{revision}");
        let record_of = record.clone();
        until("the session has ended", move || record_of.count("session closed") == usize::from(!modern)).await;
        assert_eq!(record.count("session opened"), usize::from(!modern), "{revision}");
    }
}

#[tokio::test]
async fn the_span_of_a_call_names_it_and_never_shows_its_arguments() {
    let logged = Logged::default();
    let _guard = tracing::subscriber::set_default(logged.clone());
    let mut peer = Peer::of(service(Server::new("s", "1").tool("works", || "the answer")), MODERN, json!({})).await;
    let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    peer.meta = json!({ "traceparent": trace });
    peer.call("works", json!({ "secret": "hunter2" })).await;
    let text = logged.text();
    let span = format!("method=\"tools/call\" name=\"works\" revision=\"2026-07-28\" traceparent=\"{trace}\"");
    assert!(text.contains(&span), "{text}");
    assert!(text.contains("outcome=\"ok\" duration=") && text.contains("DEBUG message=call ended"), "{text}");
    assert!(!text.contains("hunter2") && !text.contains("the answer"), "{text}");
}

/// The number is for logs only: handlers, observers and spans have the same one.
#[tokio::test]
async fn the_span_of_a_call_has_the_id_of_its_session_that_handlers_see() {
    #[derive(Clone, Default)]
    struct Sessions(Arc<Mutex<Vec<Option<u64>>>>);
    impl Observer for Sessions {
        fn session_opened(&self, session: &linchpin::Session) {
            self.0.lock().unwrap().push(Some(session.public_id()));
        }
        fn call_started(&self, call: &CallInfo) {
            if call.method.as_ref() == "tools/call" {
                self.0.lock().unwrap().push(call.session);
            }
        }
    }
    let logged = Logged::default();
    let _guard = tracing::subscriber::set_default(logged.clone());
    for revision in ALL {
        let seen = Sessions::default();
        let tell = |cx: &Cx| cx.session_id().map_or("none".to_owned(), |id| format!("{id:016x}"));
        let server = Server::new("s", "1").observe(seen.clone()).tool("session", tell);
        let mut peer = Peer::of(service(server), revision, json!({})).await;
        let answer = peer.call("session", json!({})).await;
        let seen = seen.0.lock().unwrap().clone();
        if revision == MODERN {
            assert_eq!((text(&answer), seen), ("none", vec![None]));
            let span = format!("name=\"session\" revision=\"{revision}\"");
            assert!(logged.text().contains(&span), "{}", logged.text());
        } else {
            let id = text(&answer);
            let number = u64::from_str_radix(id, 16).unwrap();
            assert_eq!(seen, [Some(number), Some(number)], "{revision}");
            let span = format!("name=\"session\" session={id} revision=\"{revision}\"");
            assert!(logged.text().contains(&span), "{}", logged.text());
        }
    }
}

#[tokio::test]
async fn the_duration_of_a_call_is_the_time_that_its_handler_takes() {
    const ASLEEP: Duration = Duration::from_millis(30);
    #[derive(Clone, Default)]
    struct Durations(Arc<Mutex<Vec<Duration>>>);
    impl Observer for Durations {
        fn call_ended(&self, call: &CallInfo, end: &CallEnd) {
            if call.method.as_ref() == "tools/call" {
                self.0.lock().unwrap().push(end.duration);
            }
        }
    }
    let durations = Durations::default();
    let server = Server::new("s", "1").observe(durations.clone()).tool("sleeps", || async {
        tokio::time::sleep(ASLEEP).await;
        "awake"
    });
    let service = service(server);
    for revision in ALL {
        let mut peer = Peer::of(service.clone(), revision, json!({})).await;
        peer.call("sleeps", json!({})).await;
        let lasted = std::mem::take(&mut *durations.0.lock().unwrap());
        assert!(matches!(lasted[..], [lasted] if lasted >= ASLEEP), "{revision}: {lasted:?}");
    }
}

#[tokio::test]
async fn the_span_of_a_call_says_who_called() {
    let logged = Logged::default();
    let _guard = tracing::subscriber::set_default(logged.clone());
    let who = |cx: &Cx| cx.principal().map_or("nobody".to_owned(), |p| p.subject().to_owned());
    let server = in_process(Server::new("s", "1").tool("who", who));
    for name in ["ada", "bob"] {
        let user = server.clone().with_principal(linchpin::Principal::new(name));
        let user = Client::new("c", "1").connect(user).await.unwrap();
        assert_eq!(user.call("who", ()).await.unwrap().text(), name);
        let span = format!("name=\"who\" revision=\"2026-07-28\" principal=\"{name}\"");
        assert!(logged.text().contains(&span), "{}", logged.text());
    }
}

/// Knows whether an event is inside of a span.
#[derive(Clone, Default)]
struct Inside {
    depth: Arc<AtomicUsize>,
    events: Arc<Mutex<Vec<bool>>>,
}

impl tracing::Subscriber for Inside {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}

    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        if event.metadata().target() == "ours" {
            self.events.lock().unwrap().push(self.depth.load(Ordering::SeqCst) > 0);
        }
    }

    fn enter(&self, _: &tracing::span::Id) {
        self.depth.fetch_add(1, Ordering::SeqCst);
    }

    fn exit(&self, _: &tracing::span::Id) {
        self.depth.fetch_sub(1, Ordering::SeqCst);
    }
}

struct Tells;

impl Drop for Tells {
    fn drop(&mut self) {
        tracing::info!(target: "ours", "dropped");
    }
}

#[tokio::test]
async fn what_a_call_says_when_it_is_dropped_is_inside_of_its_span() {
    let inside = Inside::default();
    let _guard = tracing::subscriber::set_default(inside.clone());
    for revision in ALL {
        let server = Server::new("s", "1").tool("hang", || async {
            let _tells = Tells;
            tracing::info!(target: "ours", "started");
            std::future::pending::<String>().await
        });
        let server = server.limits(|limits| limits.calls.drain_ms_max = 10);
        let mut peer = Peer::of(service(server), revision, json!({})).await;
        peer.start("hang", json!({})).await;
        let events = inside.events.clone();
        until("the call has started", move || events.lock().unwrap().len() == 1).await;
        drop(peer);
        let events = inside.events.clone();
        until("the call was dropped", move || events.lock().unwrap().len() == 2).await;
        assert_eq!(std::mem::take(&mut *inside.events.lock().unwrap()), [true, true], "{revision}");
    }
}

#[tokio::test]
async fn a_trace_is_continued_from_client_to_server_and_on_to_the_next() {
    let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let context = linchpin::TraceContext::new(trace, Some("a=1"), None).unwrap();
    async fn traced(cx: &Cx) -> String {
        let trace = cx.trace().expect("a trace");
        format!("{} {}", trace.traceparent, trace.tracestate.unwrap_or_default())
    }
    async fn next(cx: &Cx) -> Result<String> {
        let server =
            Client::new("middle", "1").connect(in_process(Server::new("last", "1").tool("traced", traced))).await?;
        let request = server.call("traced", ());
        let request = match cx.trace() {
            Some(trace) => request.trace(&trace),
            None => request,
        };
        Ok(request.await?.text())
    }
    let client = Client::new("first", "1").trace_context(move || Some(context.clone()));
    let server = client.connect(in_process(Server::new("middle", "1").tool("next", next))).await.unwrap();
    assert_eq!(server.call("next", ()).await.unwrap().text(), format!("{trace} a=1"));
}

#[tokio::test]
async fn the_span_of_a_clients_request_has_its_outcome() {
    let server = Server::new("s", "1").tool("works", || "the answer");
    let server = Client::new("c", "1").connect(in_process(server)).await.unwrap();
    let logged = Logged::default();
    let _guard = tracing::subscriber::set_default(logged.clone());
    server.call("works", json!({ "secret": "hunter2" })).await.unwrap();
    let text = logged.text();
    assert!(text.contains("method=\"tools/call\" name=\"works\" revision=\"2026-07-28\""), "{text}");
    let (_, end) = text.rsplit_once("outcome=\"ok\" duration=").expect(&text);
    let text = &text;
    let (end, event) = end.split_once(' ').expect(text);
    assert_eq!(event.trim(), "DEBUG message=request ended", "{text}");
    let number = end.strip_suffix("ms").or_else(|| end.strip_suffix("µs")).expect(text);
    number.parse::<u64>().expect(text);
    assert!(!text.contains("hunter2") && !text.contains("the answer"), "{text}");
}

#[tokio::test]
async fn the_span_of_a_clients_request_never_shows_a_uri() {
    for revision in [linchpin::types::version::Revision::V2025_11_25, linchpin::types::version::Revision::V2026_07_28] {
        let server = Server::new("s", "1").resource("memo://hunter2", || "text");
        let server = Client::new("c", "1").revisions(&[revision]).connect(in_process(server)).await.unwrap();
        let logged = Logged::default();
        let _guard = tracing::subscriber::set_default(logged.clone());
        server.read("memo://hunter2").await.unwrap();
        server.request("resources/read", json!({ "uri": "memo://hunter2" })).await.unwrap();
        let _ = server.request("example.com/open", json!({})).named("memo://hunter2").await;
        let text = logged.text();
        let begun = format!("method=\"resources/read\" revision=\"{}\" ", revision.as_str());
        assert!(text.starts_with(&begun), "{text}");
        assert!(!text.contains("hunter2"), "{text}");
    }
}

#[tokio::test]
async fn the_log_of_a_definition_that_is_refused_never_shows_a_uri() {
    let listed = json!({ "resources": [{ "uri": "memo://hunter2" }, { "name": "nameless", "uri": 2 }] });
    let server = linchpin::LowLevelServer::new("s", "1")
        .capabilities(json!({ "resources": {} }))
        .method("resources/list", move |_, _| std::future::ready(Ok(listed.clone())));
    let server = Client::new("c", "1").connect(in_process(server)).await.unwrap();
    let logged = Logged::default();
    let _guard = tracing::subscriber::set_default(logged.clone());
    assert!(server.resources().await.unwrap().is_empty());
    let text = logged.text();
    assert_eq!(text.matches("a definition of the server was refused").count(), 2, "{text}");
    assert!(text.contains("name=\"nameless\"") && text.contains("name=\"(no name)\""), "{text}");
    assert!(!text.contains("hunter2"), "{text}");
}

#[tokio::test]
async fn dropped_notifications_are_observed() {
    let record = Record::default();
    let server = server(&record).limits(|limits| limits.messages.queued_max = 10).tool("floods", async |cx: &Cx| {
        for n in 0..100 {
            cx.progress(f64::from(n), None);
        }
    });
    let mut peer = Peer::of(service(server), MODERN, json!({})).await;
    peer.meta = json!({ "progressToken": 1 });
    peer.call("floods", json!({})).await;
    assert_eq!(record.count("dropped"), 90);
}

#[tokio::test]
async fn requests_that_are_refused_before_the_service_sees_them_are_observed() {
    let record = Record::default();
    let mut peer = Peer::of(service(server(&record)), "2025-11-25", json!({})).await;
    let id = peer.start("waits", json!({})).await;
    let twice = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/list", "params": {} });
    peer.send(twice).await;
    assert!(peer.message().await["error"].is_object());
    assert_eq!(record.count("start tools/list"), 1);
    assert_eq!(record.count("end tools/list - error"), 1, "{:?}", record.lines());
}

/// Each request is a session of its own there, which is nothing that anybody opened.
#[cfg(feature = "http")]
#[tokio::test]
async fn a_service_without_sessions_opens_none_for_observers() {
    use http_body_util::{BodyExt as _, Full};
    let record = Record::default();
    let options = linchpin::transport::HttpOptions::default().with(|options| options.no_sessions = true);
    let server = server(&record).tool("session", |cx: &Cx| format!("session: {:?}", cx.session_id()));
    let service = server.into_service_with(options).unwrap();
    let call =
        json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "session", "arguments": {} } });
    let request = http::Request::post("/mcp").header("host", "localhost").header("content-type", "application/json");
    let request =
        request.header("accept", "application/json, text/event-stream").header("mcp-protocol-version", "2025-11-25");
    let response =
        service.handle(request.body(Full::new(bytes::Bytes::from(call.to_string()))).unwrap()).await.unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!(
        (record.count("end tools/call session ok"), record.count("session opened")),
        (1, 0),
        "{:?}",
        record.lines()
    );
    let body = response.into_body().collect().await.unwrap().to_bytes();
    assert_eq!(text(&serde_json::from_slice(&body).unwrap()), "session: None");
}

/// The server with a tool that sends a hundred notifications one by one, of which ten may wait.
#[cfg(feature = "http")]
fn flooding(record: &Record) -> Server {
    server(record).limits(|limits| limits.messages.queued_max = 10).tool("floods", async |cx: &Cx| {
        for n in 0..100 {
            cx.progress(f64::from(n), None);
            // So that it waits in the stream of its client and not with the handler.
            tokio::task::yield_now().await;
        }
    })
}

#[cfg(feature = "http")]
#[tokio::test]
async fn dropped_notifications_of_a_session_over_http_are_observed() {
    use crate::nodes::{Caller, open};
    use http_body_util::Full;
    let record = Record::default();
    let service = flooding(&record).into_service().unwrap();
    let session = open(&service, None).await;
    let call = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call",
        "params": { "name": "floods", "_meta": { "progressToken": 1 } } });
    let request = http::Request::post("/mcp").header("host", "localhost").header("content-type", "application/json");
    let request = request.header("accept", "application/json, text/event-stream").header("mcp-session-id", &session);
    let request = request.body(Full::new(bytes::Bytes::from(call.to_string()))).unwrap();
    // Its reader leaves before it has read anything: the call goes on.
    drop(service.handle(request).await.unwrap());
    let record_of = record.clone();
    until("the call has ended", move || record_of.count("end tools/call floods ok") == 1).await;
    assert_eq!(record.count("dropped"), 90);
    let by = Caller { session: Some(&session), user: None };
    let ended = crate::nodes::send(&service, http::Method::DELETE, &by, &[], &json!(null)).await;
    assert_eq!((ended.status.as_u16(), record.count("session closed")), (204, 1));
}

/// A client of HTTP+SSE.
#[cfg(feature = "sse")]
pub(crate) struct OldClient {
    service: linchpin::transport::HttpService,
    stream: linchpin::transport::HttpBody,
    pub(crate) address: String,
    user: Option<&'static str>,
}

#[cfg(feature = "sse")]
impl OldClient {
    pub(crate) async fn open(server: Server, user: Option<&'static str>) -> OldClient {
        let options = linchpin::transport::HttpOptions::default().with(|options| options.sse_2024 = true);
        let service = server.into_service_with(options).unwrap();
        let response = OldClient::send(&service, http::Request::get("/sse"), user, "").await;
        assert_eq!(response.status(), 200);
        let mut client = OldClient { service, stream: response.into_body(), address: String::new(), user };
        let first = client.event().await;
        client.address = first.strip_prefix("event: endpoint\ndata: ").expect(&first).trim_end().to_owned();
        client
    }

    async fn send(
        service: &linchpin::transport::HttpService,
        request: http::request::Builder,
        user: Option<&str>,
        body: &str,
    ) -> http::Response<linchpin::transport::HttpBody> {
        let request = request.header("host", "localhost").header("content-type", "application/json");
        let body = http_body_util::Full::new(bytes::Bytes::copy_from_slice(body.as_bytes()));
        let mut request = request.body(body).unwrap();
        if let Some(user) = user {
            request.extensions_mut().insert(linchpin::Principal::new(user));
        }
        service.handle(request).await.unwrap()
    }

    /// The status of a POST of this user.
    pub(crate) async fn post_as(&self, user: Option<&str>, message: Value) -> u16 {
        let post = http::Request::post(&self.address);
        OldClient::send(&self.service, post, user, &message.to_string()).await.status().as_u16()
    }

    async fn post(&self, message: Value) {
        assert_eq!(self.post_as(self.user, message).await, 202);
    }

    async fn initialize(&mut self) {
        let hello = json!({ "protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": { "name": "t", "version": "0" } });
        self.post(json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello })).await;
        let answer = self.event().await;
        assert!(answer.contains("\"protocolVersion\":\"2024-11-05\""), "{answer}");
        self.post(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
    }

    /// The next event of the stream.
    async fn event(&mut self) -> String {
        use http_body_util::BodyExt as _;
        let frame = self.stream.frame().await.expect("the stream goes on").unwrap();
        String::from_utf8(frame.into_data().unwrap().to_vec()).unwrap()
    }
}

#[cfg(feature = "sse")]
#[tokio::test]
async fn calls_sessions_and_streams_over_http_and_sse_are_observed() {
    let record = Record::default();
    let mut client = OldClient::open(server(&record), None).await;
    assert_eq!(record.lines(), ["stream opened"]);
    client.initialize().await;
    let call =
        |id: u32, name: &str| json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": { "name": name } });
    client.post(call(1, "works")).await;
    assert!(client.event().await.contains("done"));
    client.post(call(2, "fails")).await;
    assert!(client.event().await.contains("isError"));
    client.post(call(3, "waits")).await;
    let record_of = record.clone();
    until("the call has started", move || record_of.count("start tools/call") == 3).await;
    drop(client);
    let record_of = record.clone();
    until("the call has ended", move || record_of.count("end tools/call waits cancelled") == 1).await;
    let record_of = record.clone();
    until("the session has ended", move || record_of.count("session closed") == 1).await;
    let calls: Vec<_> = record.lines().into_iter().filter(|line| line.contains(' ') && line.contains('/')).collect();
    let expected = [
        "start tools/call",
        "end tools/call works ok",
        "start tools/call",
        "end tools/call fails tool_error",
        "start tools/call",
        "end tools/call waits cancelled",
    ];
    assert_eq!(calls, expected);
    for once in ["stream opened", "session opened", "start initialize", "end initialize - ok", "stream closed"] {
        assert_eq!(record.count(once), 1, "{once}: {:?}", record.lines());
    }
    assert_eq!(record.lines().len(), expected.len() + 6, "{:?}", record.lines());
}

#[cfg(feature = "sse")]
#[tokio::test]
async fn dropped_notifications_over_http_and_sse_are_observed() {
    let record = Record::default();
    let mut client = OldClient::open(flooding(&record), None).await;
    client.initialize().await;
    let params = json!({ "name": "floods", "_meta": { "progressToken": 1 } });
    client.post(json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params })).await;
    let record_of = record.clone();
    until("the call has ended", move || record_of.count("end tools/call floods ok") == 1).await;
    assert_eq!(record.count("dropped"), 90);
}

/// It is told what strangers to a session are told; the log says more, but not the id, which opens the session.
#[cfg(feature = "sse")]
#[tokio::test]
async fn a_message_to_the_stream_of_another_principal_is_logged_without_its_id() {
    let logged = Logged::default();
    let _guard = tracing::subscriber::set_default(logged.clone());
    let mut client = OldClient::open(server(&Record::default()), Some("ada")).await;
    client.initialize().await;
    assert!(!logged.text().contains("another principal"), "{}", logged.text());
    let ping = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" });
    assert_eq!(client.post_as(Some("eve"), ping.clone()).await, 404);
    assert_eq!(client.post_as(None, ping).await, 404);
    let text = logged.text();
    let refused = "INFO message=refused a request status=404 why=\"the session belongs to another principal\"";
    assert_eq!(text.matches(refused).count(), 2, "{text}");
    assert_eq!(text.matches(&format!("{refused} principal=\"eve\"")).count(), 1, "{text}");
    let id = client.address.rsplit_once('=').unwrap().1;
    assert!(!text.contains(id), "{text}");
}
