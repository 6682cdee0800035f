//! Observers and spans: each call once, with its outcome, whatever its end.

use crate::common::{ALL, Logged, MODERN, Peer, service, until};
use linchpin::prelude::*;
use linchpin::{CallEnd, CallInfo, Observer};
use serde_json::json;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

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
    assert!(text.contains("method=\"tools/call\" name=\"works\""), "{text}");
    assert!(text.trim_end().ends_with("outcome=\"ok\""), "{text}");
    assert!(!text.contains("hunter2") && !text.contains("the answer"), "{text}");
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
    use http_body_util::Full;
    let record = Record::default();
    let options = linchpin::transport::HttpOptions::default().with(|options| options.no_sessions = true);
    let service = server(&record).into_service_with(options).unwrap();
    let call =
        json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "works", "arguments": {} } });
    let request = http::Request::post("/mcp").header("host", "localhost").header("content-type", "application/json");
    let request =
        request.header("accept", "application/json, text/event-stream").header("mcp-protocol-version", "2025-11-25");
    let response =
        service.handle(request.body(Full::new(bytes::Bytes::from(call.to_string()))).unwrap()).await.unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!(
        (record.count("end tools/call works ok"), record.count("session opened")),
        (1, 0),
        "{:?}",
        record.lines()
    );
}
