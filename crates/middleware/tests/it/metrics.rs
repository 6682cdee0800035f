//! Metrics for Prometheus.

use crate::common::{ALL, MODERN, Peer, service, until};
use linchpin::middleware::Metrics;
use linchpin::prelude::*;
use serde_json::json;

fn server(metrics: &Metrics) -> Server {
    Server::new("s", "1.0")
        .limits(|limits| limits.calls.drain_ms_max = 50)
        .observe(metrics.clone())
        .tool("works", || "done")
        .tool("fails", || -> Result<String, &str> { Err("no") })
        .tool("waits", || async { std::future::pending::<String>().await })
        .tool("codes", |q: Code| -> Result<String> { Err(Error::protocol(q.code, "as asked")) })
        .resource("memo://secret", || "text")
        .prompt("ask", || "text")
}

#[derive(Deserialize, JsonSchema)]
struct Code {
    code: i32,
}

/// The value of a line.
fn value(metrics: &Metrics, line: &str) -> Option<f64> {
    let text = metrics.render();
    let found = text.lines().find_map(|l| l.strip_prefix(line)?.strip_prefix(' '))?;
    Some(found.parse().unwrap_or_else(|_| panic!("{line} {found}")))
}

#[tokio::test]
async fn calls_sessions_and_bytes_are_counted_in_every_revision() {
    for revision in ALL {
        let metrics = Metrics::new();
        let mut peer = Peer::of(service(server(&metrics)), revision, json!({})).await;
        let session = u8::from(revision != MODERN);
        let is =
            |line: &str, want: f64| assert_eq!(value(&metrics, line), Some(want), "{line} in\n{}", metrics.render());
        is("mcp_server_active_sessions", session.into());
        peer.call("works", json!({})).await;
        peer.call("works", json!({})).await;
        peer.call("fails", json!({})).await;
        peer.ask("prompts/get", json!({ "name": "ask" })).await;
        peer.ask("resources/read", json!({ "uri": "memo://secret" })).await;
        peer.call("codes", json!({ "code": -32050 })).await;
        peer.start("waits", json!({})).await;
        let of = metrics.clone();
        until("the call runs", move || value(&of, "mcp_server_active_operations") == Some(1.0)).await;
        drop(peer);
        let of = metrics.clone();
        until("all is over", move || {
            value(&of, "mcp_server_active_operations") == Some(0.0)
                && value(&of, "mcp_server_active_sessions") == Some(0.0)
        })
        .await;

        let count = |labels: &str, want: f64| {
            is(&format!("mcp_server_operation_duration_seconds_count{{{labels}}}"), want);
            is(&format!("mcp_server_operation_duration_seconds_bucket{{{labels},le=\"+Inf\"}}"), want);
            is(&format!("mcp_server_operation_duration_seconds_bucket{{{labels},le=\"300\"}}"), want);
        };
        count(r#"mcp_method_name="tools/call",gen_ai_tool_name="works""#, 2.0);
        count(r#"mcp_method_name="tools/call",gen_ai_tool_name="fails",error_type="tool_error""#, 1.0);
        count(r#"mcp_method_name="tools/call",gen_ai_tool_name="codes",error_type="-32050""#, 1.0);
        count(r#"mcp_method_name="tools/call",gen_ai_tool_name="waits",error_type="cancelled""#, 1.0);
        count(r#"mcp_method_name="prompts/get",gen_ai_prompt_name="ask""#, 1.0);
        count(r#"mcp_method_name="resources/read""#, 1.0);
        if session == 1 {
            is(&format!("mcp_server_session_duration_seconds_count{{mcp_protocol_version=\"{revision}\"}}"), 1.0);
        }
        assert!(value(&metrics, "mcp_server_request_bytes_total").unwrap() > 100.0);
        assert!(value(&metrics, "mcp_server_response_bytes_total").unwrap() > 100.0);
        assert!(!metrics.render().contains("memo://"), "{}", metrics.render());
    }
}

#[tokio::test]
async fn clients_cannot_make_the_labels_grow() {
    let metrics = Metrics::new();
    let mut peer = Peer::of(service(server(&metrics)), MODERN, json!({})).await;
    for n in 0..50 {
        peer.call(&format!("unknown {n}"), json!({})).await;
        peer.ask(&format!("example.com/unknown-{n}"), json!({})).await;
    }
    let count = |labels: &str| {
        value(&metrics, &format!("mcp_server_operation_duration_seconds_count{{{labels}}}")).unwrap_or_default()
    };
    assert_eq!(count(r#"mcp_method_name="tools/call",gen_ai_tool_name="_OTHER",error_type="-32602""#), 50.0);
    assert_eq!(count(r#"mcp_method_name="_OTHER",error_type="-32601""#), 50.0);
    for n in 0..1_200 {
        peer.call("codes", json!({ "code": -40_000 - n })).await;
    }
    assert_eq!(count(r#"mcp_method_name="_OTHER",error_type="_OTHER""#), 202.0);
    // Series that exist go on.
    peer.call("codes", json!({ "code": -40_000 })).await;
    assert_eq!(count(r#"mcp_method_name="tools/call",gen_ai_tool_name="codes",error_type="-40000""#), 2.0);
    peer.call("works", json!({})).await;
    assert_eq!(count(r#"mcp_method_name="_OTHER""#), 1.0);
}
