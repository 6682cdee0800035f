//! Sessions: their life, their headers, batches, questions, the stream of changes.
#![cfg(feature = "http")]

use crate::common;

use bytes::Bytes;
use common::Fake;
use common::wire::*;
use http_body_util::{BodyExt, Full};
use linchpin_core::{ServerChange, Service};
use linchpin_transport::http::HttpExt;
use std::sync::Arc;

#[tokio::test]
async fn a_session_lives_from_initialize_to_delete() {
    let server = Server::start(Fake::new()).await;
    let r = server.ask(&post(&[], &initialize("2025-11-25"))).await;
    assert_eq!(r.status, 200);
    let id = r.header("mcp-session-id").unwrap().to_owned();
    assert!(id.len() == 32 && id.bytes().all(|b| b.is_ascii_hexdigit()), "visible ASCII: {id}");
    assert_ne!(server.session("2025-11-25").await, id);
    let with = |body: &str| post(&[("mcp-session-id", &id)], body);
    let r = server.ask(&with(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#)).await;
    assert_eq!((r.status, r.body.as_str(), r.header("content-type")), (202, "", None));
    server.fake.until("notified notifications/initialized").await;
    let r = server.ask(&with(&call("5", "echo", ""))).await;
    assert_eq!((r.status, r.body.as_str()), (200, r#"{"jsonrpc":"2.0","id":5,"result":{"v":"echo"}}"#));
    assert_eq!(r.header("mcp-session-id"), None);
    let r = server.ask(&with(&initialize("2025-11-25"))).await;
    assert!(r.body.contains("-32600"), "a second initialize is refused: {r:?}");
    let r = server.ask(&with(r#"{"jsonrpc":"2.0","id":9,"result":{}}"#)).await;
    assert_eq!(r.status, 202, "an answer that nobody waits for");
    let r = server.ask(&with(r#"{"jsonrpc":"2.0","method":5}"#)).await;
    assert_eq!(r.status, 400, "a notification of the wrong shape");
    let r = server.ask(&with(r#"{"jsonrpc":"2.0","id":6,"method":"no/such"}"#)).await;
    assert_eq!((r.status, r.body.contains("-32601")), (200, true), "errors inside a session are answers");
    assert_eq!(server.ask(&bare("DELETE", "/mcp", &[("mcp-session-id", &id)])).await.status, 204);
    for request in [
        with(&call("7", "echo", "")),
        bare("GET", "/mcp", &[("mcp-session-id", &id)]),
        bare("DELETE", "/mcp", &[("mcp-session-id", &id)]),
    ] {
        assert_eq!(server.ask(&request).await.status, 404);
    }
}

#[tokio::test]
async fn an_initialize_that_is_refused_opens_nothing() {
    let server = Server::start(Fake::new()).await;
    let r = server.ask(&post(&[], &initialize("2025-11-25").replace("\"c\"", "\"refused\""))).await;
    assert!(r.body.contains("as asked"), "{r:?}");
    assert_eq!((r.header("mcp-session-id"), server.fake.changes().open_feeds()), (None, 0));
}

#[tokio::test]
async fn the_version_header_must_be_the_sessions() {
    let server = Server::start(Fake::new()).await;
    for (revision, header, status) in [
        ("2025-11-25", "", 200),
        ("2025-11-25", "2025-11-25", 200),
        ("2025-11-25", "2025-06-18", 400),
        ("2025-11-25", "1999-01-01", 400),
        ("2025-11-25", "nonsense", 400),
        ("2025-06-18", "2025-06-18", 200),
        ("2025-06-18", "2025-03-26", 400),
        ("2025-03-26", "2025-03-26", 200),
        ("2025-03-26", "2025-06-18", 200),
        ("2025-03-26", "1999-01-01", 400),
        ("2024-11-05", "", 200),
    ] {
        let id = server.session(revision).await;
        let headers = [("mcp-session-id", id.as_str()), ("mcp-protocol-version", header)];
        let r = server.ask(&post(&headers, &call("5", "echo", ""))).await;
        assert_eq!(r.status, status, "{revision} with {header:?}: {r:?}");
        if status == 400 {
            assert!(r.body.contains(r#""id":5"#), "{r:?}");
            assert_eq!(server.ask(&bare("GET", "/mcp", &headers)).await.status, 400);
        }
    }
}

#[tokio::test]
async fn a_request_that_stands_alone_needs_no_session_beside_one() {
    let server = Server::start(Fake::new()).await;
    let id = server.session("2025-11-25").await;
    for headers in [&[][..], &[("mcp-session-id", id.as_str())], &[("mcp-session-id", "unknown")]] {
        let r = server.ask(&alone_with("1", "echo", "", headers)).await;
        assert_eq!((r.status, r.body.contains("resultType")), (200, true), "{headers:?}");
    }
}

#[tokio::test]
async fn a_question_travels_on_the_calls_stream_and_its_answer_on_a_post() {
    let server = Server::start(Fake::new()).await;
    for (revision, primed) in [("2025-11-25", true), ("2025-06-18", false)] {
        let id = server.session(revision).await;
        let mut conn = server.connect().await;
        conn.send(&post(&[("mcp-session-id", &id)], &call("1", "t", "ask"))).await;
        assert_eq!(conn.head().await.header("content-type"), Some("text/event-stream"));
        if primed {
            assert_eq!(conn.event().await.unwrap(), "id: 1-1\nretry: 1000\ndata: ");
        }
        let question = conn.event().await.unwrap();
        assert!(question.contains(r#""id":1,"method":"elicitation/create""#), "{question}");
        let answer = r#"{"jsonrpc":"2.0","id":1,"result":{"action":"accept"}}"#;
        assert_eq!(server.ask(&post(&[("mcp-session-id", &id)], answer)).await.status, 202);
        assert!(conn.event().await.unwrap().contains(r#"{\"action\":\"accept\"}"#));
        assert_eq!(conn.event().await, None);
    }
}

#[tokio::test]
async fn a_cancelled_call_is_never_answered() {
    let server = Server::start(Fake::new()).await;
    let id = server.session("2025-11-25").await;
    let cancel = |call: u32| {
        let body = format!(r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{call}}}}}"#);
        post(&[("mcp-session-id", &id)], &body)
    };
    // One that has said nothing yet, one that streams, and one that asked.
    let mut conn = server.connect().await;
    conn.send(&post(&[("mcp-session-id", &id)], &call("1", "silent", "gate:never"))).await;
    server.fake.until("started silent").await;
    assert_eq!(server.ask(&cancel(1)).await.status, 202);
    let r = conn.response().await;
    assert_eq!((r.status, r.body.as_str()), (200, ""));
    server.fake.until("cancelled silent").await;
    conn.send(&post(&[("mcp-session-id", &id)], &call("2", "noisy", "note ask"))).await;
    conn.head().await;
    conn.event().await.unwrap();
    conn.event().await.unwrap();
    assert!(conn.event().await.unwrap().contains("elicitation/create"));
    assert_eq!(server.ask(&cancel(2)).await.status, 202);
    let withdrawal = conn.event().await.unwrap();
    assert!(withdrawal.contains("notifications/cancelled") && withdrawal.contains(r#""requestId":1"#), "{withdrawal}");
    assert_eq!(conn.event().await, None);
    server.fake.until("cancelled noisy").await;
    // The ids are free again.
    conn.send(&post(&[("mcp-session-id", &id)], &call("1", "echo", ""))).await;
    assert_eq!(conn.response().await.status, 200);
}

#[test]
fn a_cancellation_that_comes_while_the_call_starts_ends_it_all_the_same() {
    // Without sockets: one thread is held inside the start of a call while another cancels it.
    let fake = Fake::new();
    let service = (fake.clone() as Arc<dyn Service>).into_service().unwrap();
    let ask = move |session: Option<&str>, body: String| {
        let mut request =
            http::Request::post("/").header("host", "localhost").header("content-type", "application/json");
        if let Some(session) = session {
            request = request.header("mcp-session-id", session);
        }
        let request = request.body(Full::new(Bytes::from(body))).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let r = runtime.block_on(service.handle(request)).unwrap();
        let (parts, body) = r.into_parts();
        (parts, runtime.block_on(body.collect()).unwrap().to_bytes())
    };
    let opened = ask(None, initialize("2025-11-25")).0;
    let session = opened.headers["mcp-session-id"].to_str().unwrap();
    let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;
    // One that would run on for ever, and one that is ready at its start.
    for (gate, rest) in [("a", "gate:never"), ("b", "done")] {
        std::thread::scope(|scope| {
            let held = scope.spawn(|| ask(Some(session), call("1", gate, &format!("hold:{gate} {rest}"))));
            while !fake.happened(&format!("started {gate}")) {
                std::thread::yield_now();
            }
            assert_eq!(ask(Some(session), cancel.to_owned()).0.status, 202);
            fake.open_gate(gate);
            assert_eq!(held.join().unwrap().1, "", "nothing is said about it any more");
        });
    }
    assert!(fake.happened("cancelled a"));
}

#[tokio::test]
async fn a_call_that_panics_takes_its_connection_along_and_nothing_else() {
    let server = Server::start(Fake::new()).await;
    let id = server.session("2025-11-25").await;
    for (tool, words) in [("silent", "gate:silent panic"), ("noisy", "note gate:noisy panic")] {
        let mut conn = server.connect().await;
        conn.send(&post(&[("mcp-session-id", &id)], &call("1", tool, words))).await;
        server.fake.until(&format!("started {tool}")).await;
        if tool == "noisy" {
            conn.head().await;
            conn.event().await.unwrap();
            conn.event().await.unwrap();
        }
        server.fake.open_gate(tool);
        assert!(conn.is_closed().await);
        let r = server.ask(&post(&[("mcp-session-id", &id)], &call("1", "echo", ""))).await;
        assert!(r.body.contains(r#""v":"echo""#), "the id is free again: {r:?}");
    }
    let resume = [("mcp-session-id", id.as_str()), ("last-event-id", "1-2")];
    assert_eq!(server.ask(&bare("GET", "/mcp", &resume)).await.body, "", "the stream has ended");
}

#[tokio::test]
async fn an_id_is_refused_while_its_call_runs_and_sessions_do_not_share_ids() {
    let server = Server::start(Fake::new()).await;
    let (a, b) = (server.session("2025-11-25").await, server.session("2025-11-25").await);
    let mut conn = server.connect().await;
    conn.send(&post(&[("mcp-session-id", &a)], &call("1", "first", "gate:a"))).await;
    server.fake.until("started first").await;
    let r = server.ask(&post(&[("mcp-session-id", &a)], &call("1", "echo", ""))).await;
    assert!(r.body.contains("-32600"), "{r:?}");
    let r = server.ask(&post(&[("mcp-session-id", &b)], &call("1", "other", ""))).await;
    assert!(r.body.contains(r#""v":"other""#), "{r:?}");
    server.fake.open_gate("a");
    assert!(conn.response().await.body.contains(r#""v":"first""#));
}

#[tokio::test]
async fn batches_are_answered_together_where_the_revision_has_them() {
    let server = Server::start(Fake::new()).await;
    let id = server.session("2025-03-26").await;
    let send = |parts: &[&str]| post(&[("mcp-session-id", &id)], &format!("[{}]", parts.join(",")));
    let note = r#"{"jsonrpc":"2.0","method":"notifications/x"}"#;
    let (one, two) = (call("1", "one", ""), call("2", "two", "gate:b"));
    server.fake.open_gate("b");
    let r = server.ask(&send(&[&one, note, &two, "5"])).await;
    assert_eq!((r.status, r.header("content-type")), (200, Some("application/json")));
    let all: Vec<serde_json::Value> = serde_json::from_str(&r.body).unwrap();
    assert_eq!(all.len(), 3, "{all:?}");
    assert!(all.iter().any(|m| m["result"]["v"] == "one") && all.iter().any(|m| m["result"]["v"] == "two"));
    assert!(all.iter().any(|m| m["error"]["code"] == -32600 && m.get("id").is_none()));
    assert_eq!(server.ask(&send(&[note, note])).await.status, 202);
    assert_eq!(server.ask(&send(&["5"])).await.status, 400);
    let r = server.ask(&send(&[&initialize("2025-03-26")])).await;
    assert!(r.body.contains("-32600"), "{r:?}");
    let stateless = alone("1", "echo", "");
    let r = server.ask(&send(&[stateless.split("\r\n\r\n").nth(1).unwrap()])).await;
    assert!(r.body.contains("-32600") && r.body.contains("a stateless request"), "{r:?}");
    // With a notification, as a stream: each answer its own event.
    let mut conn = server.connect().await;
    conn.send(&send(&[&call("3", "three", ""), &call("4", "four", "note gate:c"), &call("5", "five", "gate:d")])).await;
    assert_eq!(conn.head().await.header("content-type"), Some("text/event-stream"));
    assert!(conn.event().await.unwrap().contains(r#""v":"three""#));
    assert!(conn.event().await.unwrap().contains(r#""method":"note""#));
    server.fake.open_gate("d");
    assert!(conn.event().await.unwrap().contains(r#""v":"five""#));
    server.fake.open_gate("c");
    assert!(conn.event().await.unwrap().contains(r#""v":"four""#));
    assert_eq!(conn.event().await, None);
    for other in ["2024-11-05", "2025-06-18", "2025-11-25"] {
        let id = server.session(other).await;
        let r = server.ask(&post(&[("mcp-session-id", &id)], &format!("[{one}]"))).await;
        assert_eq!((r.status, r.body.contains("batches")), (400, true), "{other}");
    }
}

#[tokio::test]
async fn the_sessions_stream_brings_changes_and_only_one_may_be_open() {
    let server = Server::start(Fake::new()).await;
    let id = server.session("2025-11-25").await;
    let get = bare("GET", "/mcp", &[("mcp-session-id", &id), ("accept", "text/event-stream")]);
    // What changed before the stream was opened is not lost.
    server.fake.changes().publish(&ServerChange::Prompts);
    let mut conn = server.connect().await;
    conn.send(&get).await;
    let head = conn.head().await;
    assert_eq!((head.status, head.header("content-type")), (200, Some("text/event-stream")));
    assert_eq!(conn.event().await.unwrap(), "id: 0-1\nretry: 1000\ndata: ");
    let prompts = r#"data: {"jsonrpc":"2.0","method":"notifications/prompts/list_changed"}"#;
    assert_eq!(conn.event().await.unwrap(), format!("id: 0-2\n{prompts}"));
    assert_eq!(server.ask(&get).await.status, 409);
    server.fake.changes().publish(&ServerChange::Tools);
    assert!(conn.event().await.unwrap().contains("tools/list_changed"));
    // Who names an event of it takes it over, and gets what came after that event.
    let again = bare("GET", "/mcp", &[("mcp-session-id", &id), ("last-event-id", "0-2")]);
    let mut second = server.connect().await;
    second.send(&again).await;
    assert_eq!(second.head().await.status, 200);
    assert!(second.event().await.unwrap().contains("tools/list_changed"));
    assert_eq!(conn.event().await, None, "the first reader is sent away");
    // A closed one makes room.
    drop(second);
    let mut third = server.connect().await;
    loop {
        third.send(&get).await;
        match third.head().await {
            r if r.status == 200 => break,
            r => {
                assert_eq!(r.status, 409);
                third = server.connect().await;
            }
        }
    }
    let r = server.ask(&bare("GET", "/mcp", &[("mcp-session-id", &id), ("accept", "application/json")])).await;
    assert_eq!(r.status, 406);
    // The end of the session is the end of its stream.
    assert_eq!(server.ask(&bare("DELETE", "/mcp", &[("mcp-session-id", &id)])).await.status, 204);
    while let Some(event) = third.event().await {
        assert!(event.starts_with("id: 0-"), "{event}");
    }
}

#[tokio::test]
async fn the_end_of_a_session_ends_its_calls() {
    let server = Server::start(Fake::new()).await;
    let id = server.session("2025-11-25").await;
    let mut silent = server.connect().await;
    silent.send(&post(&[("mcp-session-id", &id)], &call("1", "silent", "gate:never"))).await;
    let mut noisy = server.connect().await;
    noisy.send(&post(&[("mcp-session-id", &id)], &call("2", "noisy", "note gate:never"))).await;
    noisy.head().await;
    server.fake.until("started silent").await;
    assert_eq!(server.ask(&bare("DELETE", "/mcp", &[("mcp-session-id", &id)])).await.status, 204);
    assert_eq!(silent.response().await.body, "");
    while noisy.event().await.is_some() {}
    assert!(!server.fake.happened("finished silent") && !server.fake.happened("finished noisy"));
    assert_eq!(server.fake.changes().open_feeds(), 0, "nothing is kept");
}
