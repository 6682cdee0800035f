//! Rate limits, by caller and item.

use crate::common::{MODERN, Peer, code, failed, service, text};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use linchpin::Elicited;
use linchpin::middleware::RateLimit;
use linchpin::prelude::*;
use linchpin::transport::HttpService;
use linchpin::types::version::Revision;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::time::Duration;
use tower_service::Service as _;

fn server(limit: RateLimit) -> Server {
    Server::new("s", "1.0")
        .tool("a", || "from a")
        .tool("b", || "from b")
        .resource("memo://a", || "text")
        .layer(limit.layer())
}

#[tokio::test(start_paused = true)]
async fn each_item_has_a_limit_of_its_own_and_calls_beyond_are_told_when_to_come_back() {
    for revision in ["2025-11-25", MODERN] {
        let limit = "2/min".parse::<RateLimit>().unwrap();
        let mut peer = Peer::of(service(server(limit)), revision, json!({})).await;
        for _ in 0..2 {
            assert_eq!(text(&peer.call("a", json!({})).await), "from a");
        }
        let refused = peer.call("a", json!({})).await;
        assert_eq!(failed(&refused), "rate limit of 2/min exceeded for a; try again in 30 s");
        assert_eq!(text(&peer.call("b", json!({})).await), "from b");
        for _ in 0..2 {
            assert!(peer.ask("resources/read", json!({ "uri": "memo://a" })).await["result"].is_object());
        }
        let refused = peer.ask("resources/read", json!({ "uri": "memo://a" })).await;
        let message = "rate limit of 2/min exceeded for memo://a; try again in 30 s";
        assert_eq!((code(&refused), refused["error"]["message"].as_str()), (-31005, Some(message)));
        assert_eq!(refused["error"]["data"], json!({ "retryAfterMs": 30_000 }));
        tokio::time::advance(Duration::from_secs(30)).await;
        assert_eq!(text(&peer.call("a", json!({})).await), "from a");
        assert!(failed(&peer.call("a", json!({})).await).contains("try again in 30 s"));
        // What is no call is not limited.
        peer.alive().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_template_has_one_limit_whatever_its_variables_are_and_items_can_share_one() {
    for (over_all, revision) in [(false, "2025-11-25"), (true, "2025-11-25"), (false, MODERN), (true, MODERN)] {
        let limit = RateLimit::new(2, Duration::from_secs(60));
        let limit = if over_all { limit.over_all_items() } else { limit };
        let server = server(limit).resource("note://{id}", || "a note");
        let mut peer = Peer::of(service(server), revision, json!({})).await;
        for id in 1..=2 {
            let read = peer.ask("resources/read", json!({ "uri": format!("note://{id}") })).await;
            assert!(read["result"].is_object(), "{read}");
        }
        assert_eq!(code(&peer.ask("resources/read", json!({ "uri": "note://3" })).await), -31005);
        let other = peer.call("a", json!({})).await;
        assert_eq!(other["result"]["isError"] == true, over_all, "{other}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_asks_its_client_takes_one_token_in_every_revision() {
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let limit = RateLimit::new(2, Duration::from_secs(60));
        let server = Server::new("s", "1.0").tool("delete", delete).layer(limit.layer());
        let client = Client::new("h", "1.0").revisions(&[revision]);
        let client = client.on_elicitation(async |asked| asked.accept(json!({ "sure": true })));
        let connection = client.connect(in_process(server)).await.unwrap();
        for deleted in [true, true, false] {
            let result = connection.call("delete", ()).await.unwrap();
            assert_eq!(!result.is_error(), deleted, "{revision:?}: {}", result.text());
        }
    }
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Consent {
    sure: bool,
}

async fn delete(cx: &Cx) -> linchpin::Result<String> {
    match cx.elicit_form::<Consent>("sure", "Sure?").await? {
        Elicited::Accepted(Consent { sure: true }) => Ok("deleted".to_owned()),
        _ => Ok("kept".to_owned()),
    }
}

/// Calls tool `a` as this caller; whether it was allowed.
async fn calls(service: &mut HttpService, principal: Option<&str>, address: &str) -> bool {
    let meta =
        json!({ "io.modelcontextprotocol/protocolVersion": MODERN, "io.modelcontextprotocol/clientCapabilities": {} });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "a", "_meta": meta } });
    let mut request = http::Request::post("http://localhost/mcp")
        .header("host", "localhost")
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", MODERN)
        .header("mcp-method", "tools/call")
        .header("mcp-name", "a")
        .body(Full::new(Bytes::from(body.to_string())))
        .unwrap();
    request.extensions_mut().insert(address.parse::<SocketAddr>().unwrap());
    if let Some(principal) = principal {
        request.extensions_mut().insert(linchpin::Principal::new(principal));
    }
    let body = service.call(request).await.unwrap().into_body().collect().await.unwrap().to_bytes();
    let answer: Value = serde_json::from_slice(&body).unwrap();
    match answer["result"]["isError"].as_bool() {
        Some(true) => {
            failed(&answer);
            false
        }
        _ => text(&answer) == "from a",
    }
}

#[tokio::test]
async fn principals_have_limits_of_their_own_and_others_share_one_for_each_address() {
    let mut service = server("1/h".parse::<RateLimit>().unwrap()).into_service().unwrap();
    for (principal, address, allowed) in [
        (Some("ada"), "192.0.2.1:1", true),
        (Some("ada"), "192.0.2.2:1", false),
        (Some("bob"), "192.0.2.2:1", true),
        (None, "192.0.2.2:1", true),
        (None, "192.0.2.2:2", false),
        (None, "192.0.2.3:1", true),
        // Nobody gets somebody else's limit by a name that looks like an address.
        (Some(" 192.0.2.4"), "192.0.2.1:1", true),
        (None, "192.0.2.4:1", true),
        (None, "[2001:db8::1]:1", true),
        (None, "[2001:db8::ffff:2]:1", false),
    ] {
        assert_eq!(calls(&mut service, principal, address).await, allowed, "{principal:?} {address}");
    }
}
