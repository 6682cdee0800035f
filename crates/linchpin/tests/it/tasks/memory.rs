//! What a task keeps of the message that made it.

use super::EXTENSION;
use crate::common::MODERN;
use bytes::Bytes;
use http::{HeaderValue, Request};
use http_body_util::{BodyExt as _, Full};
use linchpin::Tasks;
use linchpin::prelude::*;
use linchpin::transport::HttpOptions;
use serde_json::json;

#[derive(Deserialize, JsonSchema)]
struct Note {
    text: Text,
}

async fn wait(cx: &Cx, note: Note) -> Text {
    // The arguments, the headers and the caller stay as they were.
    assert_eq!(cx.headers()["x-mark"], "kept");
    assert!(cx.client_capabilities().contains(EXTENSION) && note.text.as_str() == "remember the milk");
    std::future::pending().await
}

/// A transport's read buffer is 8 KiB, and a task may wait for days.
#[tokio::test]
async fn a_task_that_waits_keeps_nothing_of_the_transports_buffer() {
    keeps_nothing(Tool::new("wait", "Wait").task_required()).await;
    // One that becomes a task because it takes long.
    keeps_nothing(Tool::new("wait", "Wait").task()).await;
}

async fn keeps_nothing(tool: Tool) {
    let server = Server::new("test", "1").tool(tool, wait).tasks(Tasks::memory());
    let service = server.into_service_with(HttpOptions::default()).unwrap();
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": { "extensions": { EXTENSION: {} } },
    });
    let params = json!({ "name": "wait", "arguments": { "text": "remember the milk" }, "_meta": meta });
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }).to_string();
    let head = Bytes::from(b"kept".to_vec());
    let body = Bytes::from(message.into_bytes());
    let request = Request::post("/mcp")
        .header("host", "localhost")
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", MODERN)
        .header("mcp-method", "tools/call")
        .header("mcp-name", "wait")
        .header("x-mark", HeaderValue::from_maybe_shared(head.clone()).unwrap())
        .body(Full::new(body.clone()))
        .unwrap();
    let response = service.handle(request).await.unwrap_or_else(|never| match never {});
    let answer = response.into_body().collect().await.unwrap().to_bytes();
    let answer: serde_json::Value = serde_json::from_slice(&answer).unwrap();
    assert_eq!(answer["result"]["status"], "working", "{answer}");
    tokio::task::yield_now().await;
    assert!(body.is_unique() && head.is_unique());
}
