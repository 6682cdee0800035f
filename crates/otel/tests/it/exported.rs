//! What a collector receives of calls, from both sides.

use crate::collector::{attributes, collector};
use linchpin::otel::{Otel, trace_context};
use linchpin::prelude::*;
use linchpin::types::version::Revision;
use linchpin::{CallEnd, CallInfo, Observer};
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use serde_json::json;
use std::time::Duration;

fn server() -> Server {
    Server::new("s", "1.0")
        .tool("works", || "the answer")
        .tool("fails", || -> Result<String, &str> { Err("no") })
        .tool("waits", || async { std::future::pending::<String>().await })
        .resource("memo://secret", || "text")
        .prompt("ask", || "text")
}

/// Tells the names of calls that have ended, after the observers before it.
struct Ended(tokio::sync::mpsc::UnboundedSender<String>);

impl Observer for Ended {
    fn call_ended(&self, call: &CallInfo, _: &CallEnd) {
        let _ = self.0.send(call.target.as_deref().unwrap_or_default().to_owned());
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[tokio::test]
async fn calls_are_spans_of_one_trace_on_both_sides_and_metrics_under_the_names_of_the_conventions() {
    let collector = collector().await;
    let otel = Otel::builder("test").endpoint(&collector.url).install().unwrap();
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let (ended, mut cancelled) = tokio::sync::mpsc::unbounded_channel();
        let server = server().observe(otel.observer()).observe(Ended(ended));
        let client = Client::new("c", "1.0").revisions(&[revision]).trace_context(trace_context);
        let connection = client.connect(in_process(server)).await.unwrap();
        connection.call("works", json!({ "secret": "hunter2" })).await.unwrap();
        connection.call("fails", json!({})).await.unwrap();
        connection.call("missing", json!({})).await.unwrap_err();
        connection.read("memo://secret").await.unwrap();
        connection.prompt("ask", json!({})).await.unwrap();
        let waiting = tokio::time::timeout(Duration::from_millis(50), connection.call("waits", json!({})));
        assert!(waiting.await.is_err());
        while cancelled.recv().await.unwrap() != "waits" {}
        connection.close().await;
    }
    otel.shutdown().await;

    let received = collector.received.lock().unwrap();
    assert!(received.services.iter().all(|name| name == "test") && !received.services.is_empty());
    for (name, error) in [
        ("tools/call works", [None, None]),
        ("tools/call fails", [None, Some("tool_error")]),
        ("tools/call missing", [Some("_OTHER"), Some("-32602")]),
        ("resources/read", [None, None]),
        ("prompts/get ask", [None, None]),
    ] {
        let of = |kind: SpanKind| {
            let mine = received.spans.iter().filter(|span| span.name == name && span.kind == kind as i32);
            mine.collect::<Vec<_>>()
        };
        let (clients, servers) = (of(SpanKind::Client), of(SpanKind::Server));
        assert_eq!((clients.len(), servers.len()), (2, 2), "{name}");
        for server in servers {
            let parent = clients.iter().find(|client| client.span_id == server.parent_span_id);
            let parent = parent.unwrap_or_else(|| panic!("{name} has parent {}", hex(&server.parent_span_id)));
            assert_eq!(parent.trace_id, server.trace_id, "{name}");
            for (span, error) in [(*parent, error[0]), (server, error[1])] {
                let attributes = attributes(&span.attributes);
                assert_eq!(attributes.get("error.type").map(String::as_str), error, "{name} {attributes:?}");
                assert_eq!(span.status.as_ref().is_some_and(|status| status.code == 2), error.is_some(), "{name}");
                assert!(name.starts_with(&attributes["mcp.method.name"]));
            }
        }
    }
    let works =
        received.spans.iter().find(|span| span.name == "tools/call works" && span.kind == SpanKind::Server as i32);
    let works = attributes(&works.unwrap().attributes);
    assert_eq!(
        (works["gen_ai.tool.name"].as_str(), works["gen_ai.operation.name"].as_str()),
        ("works", "execute_tool")
    );
    assert_eq!((works["mcp.protocol.version"].as_str(), works["mcp.session.id"].len()), ("2025-11-25", 16));
    let everything = format!("{:?}{:?}", received.spans, received.points);
    assert!(["hunter2", "the answer", "memo://"].iter().all(|text| !everything.contains(text)));

    let tool = |name: &str, error: &str| {
        format!(
            "mcp.server.operation.duration {{{error}\"gen_ai.operation.name\": \"execute_tool\", \"gen_ai.tool.name\": \"{name}\", \
             \"mcp.method.name\": \"tools/call\", \"mcp.protocol.version\": \"2026-07-28\"}}"
        )
    };
    let client = |name: &str, error: &str| {
        format!(
            "mcp.client.operation.duration {{{error}\"gen_ai.operation.name\": \"execute_tool\", \"gen_ai.tool.name\": \"{name}\", \
             \"mcp.method.name\": \"tools/call\"}}"
        )
    };
    for (point, value) in [
        (client("works", ""), 2.0),
        (client("missing", "\"error.type\": \"_OTHER\", "), 2.0),
        (client("waits", "\"error.type\": \"cancelled\", "), 2.0),
        (tool("waits", "\"error.type\": \"cancelled\", "), 1.0),
        (tool("works", ""), 1.0),
        (tool("fails", "\"error.type\": \"tool_error\", "), 1.0),
        (tool("_OTHER", "\"error.type\": \"-32602\", "), 1.0),
        ("mcp.server.session.duration {\"mcp.protocol.version\": \"2025-11-25\"}".to_owned(), 1.0),
        ("mcp.server.active_operations {}".to_owned(), 0.0),
        ("mcp.server.active_sessions {}".to_owned(), 0.0),
    ] {
        assert_eq!(received.points.get(&point), Some(&value), "{point} in {:#?}", received.points);
    }
    assert!(received.points["mcp.server.request.size {}"] > 100.0);
}

#[tokio::test]
async fn without_a_collector_calls_go_on_and_the_end_comes_soon() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let otel = Otel::builder("test").endpoint(format!("http://127.0.0.1:{port}")).install().unwrap();
    let connection = Client::new("c", "1.0").connect(in_process(server().observe(otel.observer()))).await.unwrap();
    assert_eq!(connection.call("works", json!({})).await.unwrap().text(), "the answer");
    tokio::time::timeout(Duration::from_secs(30), otel.shutdown()).await.unwrap();
}

/// A variable cannot be set for one test: the test runs itself again with it.
#[tokio::test]
async fn the_variable_of_the_service_name_takes_precedence() {
    const NAME: &str = "of-the-operator";
    if std::env::var_os("OTEL_SERVICE_NAME").is_none() {
        let mut again = std::process::Command::new(std::env::current_exe().unwrap());
        again.args(["--exact", "exported::the_variable_of_the_service_name_takes_precedence"]);
        let output = again.env("OTEL_SERVICE_NAME", NAME).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && said.contains("1 passed"), "{said}");
        return;
    }
    let collector = collector().await;
    let otel = Otel::builder("test").endpoint(&collector.url).install().unwrap();
    let connection = Client::new("c", "1.0").connect(in_process(server().observe(otel.observer()))).await.unwrap();
    connection.call("works", json!({})).await.unwrap();
    otel.shutdown().await;
    let received = collector.received.lock().unwrap();
    assert!(received.services.iter().all(|name| name == NAME) && !received.services.is_empty());
}

#[test]
fn what_is_missing_is_told() {
    let error = Otel::builder("test").build().unwrap_err().to_string();
    assert!(error.starts_with("cannot send telemetry: there is no reactor running"), "{error}");
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let error = runtime.block_on(async { Otel::builder("test").endpoint("no url").build().unwrap_err().to_string() });
    assert!(error.starts_with("cannot send telemetry: "), "{error}");
}
