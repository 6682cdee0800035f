//! A failure keeps its kind and its mark of whose words it holds on its way through `?`.

use linchpin::client::Client;
use linchpin::transport::in_process;
use linchpin::types::version::Revision;
use linchpin::{NoArgs, Resource, Server, Tool};
use linchpin_kit::{DETAIL_BYTES_MAX, ERROR_META, ErrorKind, ToolError, ToolOutput};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};
use std::time::Duration;

#[derive(Serialize, JsonSchema)]
struct Never {}

async fn resource(_: &(), _: NoArgs) -> linchpin::Result<String> {
    Err(ToolError::new("Failed").hint("Try again."))?
}

#[tokio::test]
async fn an_error_of_a_request_has_no_blocks() {
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let server = Server::new("test", "0").resource(Resource::new("test://fail"), resource);
        let connection = Client::new("t", "0").revisions(&[revision]).connect(in_process(server)).await.unwrap();
        let refused = connection.read("test://fail").await.unwrap_err().to_string();
        assert!(refused.contains("Failed\nHint: Try again."), "{refused}");
        connection.close().await;
    }
}

async fn quote(_: &(), _: NoArgs) -> linchpin::Result<ToolOutput<Never>> {
    Err(ToolError::not_found("git failed").hint("Look.").detail("fatal: \x1b]0;x\x07 no 'a\u{202e}b'\n"))?
}

#[tokio::test]
async fn words_of_third_parties_are_a_marked_block_of_their_own_and_the_kind_is_in_meta() {
    for revision in [Revision::V2024_11_05, Revision::V2025_11_25, Revision::V2026_07_28] {
        let server = Server::new("test", "0").tool(Tool::new("quote", "Fails."), quote);
        let connection = Client::new("t", "0").revisions(&[revision]).connect(in_process(server)).await.unwrap();
        let said = connection.call("quote", json!({})).await.unwrap();
        assert!(said.is_error());
        let result = serde_json::to_value(said.result().unwrap()).unwrap();
        let blocks = [
            json!({ "type": "text", "text": "git failed\nHint: Look." }),
            json!({
                "type": "text", "text": "fatal: \\u{1b}]0;x\\u{7} no 'a\\u{202e}b'",
                "annotations": { "audience": ["assistant"] }
            }),
        ];
        assert_eq!(result["content"], json!(blocks), "{revision:?}");
        assert_eq!(result["_meta"][ERROR_META], json!({ "kind": "not_found" }), "{revision:?}");
        // Official clients check it against the output schema, which it would violate.
        assert_eq!(result.get("structuredContent"), None);
        connection.close().await;
    }
}

#[test]
fn kinds_have_their_words_and_no_kind_has_no_meta() {
    let meta = |fault: ToolError| serde_json::to_value(fault.into_result()).unwrap()["_meta"].clone();
    let limited = |millis| ErrorKind::Limited { retry_after: Some(Duration::from_millis(millis)) };
    for (kind, wanted) in [
        (ErrorKind::NotFound, json!({ "kind": "not_found" })),
        (ErrorKind::Denied, json!({ "kind": "denied" })),
        (ErrorKind::Invalid, json!({ "kind": "invalid" })),
        (ErrorKind::Conflict, json!({ "kind": "conflict" })),
        (ErrorKind::Limited { retry_after: None }, json!({ "kind": "limited" })),
        (limited(2_000), json!({ "kind": "limited", "retry_after": 2 })),
        (limited(2_001), json!({ "kind": "limited", "retry_after": 3 })),
        (ErrorKind::Upstream { status: None }, json!({ "kind": "upstream" })),
        (ErrorKind::Upstream { status: Some(502) }, json!({ "kind": "upstream", "status": 502 })),
        (ErrorKind::Timeout, json!({ "kind": "timeout" })),
    ] {
        assert_eq!(meta(ToolError::new("x").kind(kind)), json!({ ERROR_META: wanted }));
    }
    assert_eq!(meta(ToolError::new("x")), Value::Null);
}

#[test]
fn details_are_capped_blank_ones_omitted_and_requests_told_without_them() {
    let long = ToolError::new("x").detail("\u{202e}".repeat(10_000));
    assert!(long.quoted().unwrap().len() <= DETAIL_BYTES_MAX);
    assert_eq!(ToolError::new("x").detail(" \n").into_result().content.len(), 1);
    let fault = ToolError::new("ours").detail("theirs");
    assert_eq!(fault.to_string(), "ours");
    assert_eq!(fault.for_resource().to_string(), "ours");
}
