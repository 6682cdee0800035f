//! Advisories against other implementations, tested against this one over real sockets. The subject of each, and the
//! location of its other tests:
//! - CVE-2026-25536, answers that reach another client: here; `transport/tests/http_post.rs`, `sse_2024.rs`
//! - CVE-2026-52869 and -52870, a stranger in somebody's session: here; by principal in `transport/tests/http_limits.rs`
//!   (sessions) and `mrtr.rs` (sealed state); subscriptions in `runtime.rs`
//! - CVE-2025-66416, CVE-2025-9611, CVE-2026-59950, pages that rebind a name: `transport/tests/http_post.rs`, every endpoint
//! - CVE-2026-27896, keys read without regard to case: `safety.rs` over a pipe; here over HTTP

#![cfg(feature = "http")]

use crate::common;

use common::MODERN;
use linchpin::prelude::*;
use linchpin::types::logging::LoggingLevel;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;

const PATIENCE: Duration = Duration::from_secs(20);

#[derive(Deserialize, JsonSchema)]
struct Work {
    of: String,
}

#[derive(Deserialize, JsonSchema)]
struct Sure {
    #[allow(dead_code, reason = "whatever is answered")]
    yes: bool,
}

/// The calls of both clients interleave their messages.
struct Desk {
    turn: [Semaphore; 2],
}

impl Desk {
    async fn work(&self, cx: &Cx, work: Work) -> Result<String> {
        let (mine, other) = if work.of == "ann" { (0, 1) } else { (1, 0) };
        for step in 1..=5 {
            self.turn[mine].acquire().await.expect("it is never closed").forget();
            cx.progress_with(f64::from(step), Some(5.0), &format!("progress of {}", work.of));
            cx.log(LoggingLevel::Error, format!("log of {}", work.of));
            self.turn[other].add_permits(1);
        }
        Ok(format!("result of {}", work.of))
    }

    async fn ask(&self, cx: &Cx, _: NoArgs) -> Result<String> {
        let _: Sure = cx.elicit("sure", "Really?").await?;
        Ok("answered".to_owned())
    }
}

async fn start() -> SocketAddr {
    let (ready, addr) = tokio::sync::oneshot::channel();
    let desk = Arc::new(Desk { turn: [Semaphore::new(1), Semaphore::new(0)] });
    let server = Server::new("desk", "1")
        .shared_state(desk)
        .tool("work", Desk::work)
        .tool("ask", Desk::ask)
        .resource("notes://one", |_: NoArgs| async { "a secret" });
    tokio::spawn(server.serve(http("127.0.0.1:0").on_ready(move |addr| ready.send(addr).expect("somebody waits"))));
    addr.await.expect("it listens")
}

/// Sends a request on a new connection and returns the connection.
async fn send(addr: SocketAddr, method: &str, headers: &[(&str, &str)], body: &str) -> TcpStream {
    let mut tcp = TcpStream::connect(addr).await.expect("it listens");
    let mut request =
        format!("{method} /mcp HTTP/1.1\r\nhost: {addr}\r\nconnection: close\r\ncontent-type: application/json\r\n");
    request += "accept: application/json, text/event-stream\r\n";
    for (name, value) in headers {
        request += &format!("{name}: {value}\r\n");
    }
    request += &format!("content-length: {}\r\n\r\n{body}", body.len());
    tcp.write_all(request.as_bytes()).await.expect("it reads");
    tcp
}

/// Reads until the server closes: status line, headers, body.
async fn all(mut tcp: TcpStream) -> String {
    let mut bytes = Vec::new();
    tokio::time::timeout(PATIENCE, tcp.read_to_end(&mut bytes)).await.expect("in time").expect("it answers");
    String::from_utf8(bytes).expect("UTF-8")
}

/// Reads until the server sends this text.
async fn until(tcp: &mut TcpStream, words: &str) -> String {
    let mut text = String::new();
    while !text.contains(words) {
        let mut part = [0; 4096];
        let n = tokio::time::timeout(PATIENCE, tcp.read(&mut part)).await.expect("in time").expect("it answers");
        assert!(n > 0, "it ended: {text}");
        text.push_str(&String::from_utf8_lossy(&part[..n]));
    }
    text
}

async fn post(addr: SocketAddr, headers: &[(&str, &str)], body: &Value) -> String {
    all(send(addr, "POST", headers, &body.to_string()).await).await
}

fn status(response: &str) -> u16 {
    response.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_default()
}

async fn session(addr: SocketAddr) -> String {
    let hello = json!({ "protocolVersion": "2025-11-25", "capabilities": { "elicitation": {} }, "clientInfo": { "name": "t", "version": "0" } });
    let r = post(addr, &[], &json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello })).await;
    let id = r.lines().find_map(|line| line.strip_prefix("mcp-session-id: ")).expect("a session").to_owned();
    let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    assert_eq!(status(&post(addr, &[("mcp-session-id", &id)], &ready).await), 202);
    id
}

fn work(of: &str, more: Value) -> String {
    let mut meta = more;
    meta["progressToken"] = 7.into();
    let params = json!({ "name": "work", "arguments": { "of": of }, "_meta": meta });
    json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params }).to_string()
}

/// Each sends five progress notifications and five logs, then ends, without messages of the other.
fn own_only(said: &str, own: &str, other: &str) {
    for (words, times) in [("progress of", 5), ("log of", 5), ("result of", 1)] {
        assert_eq!(said.matches(&format!("{words} {own}")).count(), times, "{words} {own} in {said}");
        assert_eq!(said.matches(&format!("{words} {other}")).count(), 0, "{words} {other} in {said}");
    }
}

#[tokio::test]
async fn interleaved_calls_with_equal_ids_and_tokens_reach_their_own_clients_in_sessions() {
    let addr = start().await;
    let (ann, bob) = (session(addr).await, session(addr).await);
    let a = send(addr, "POST", &[("mcp-session-id", &ann)], &work("ann", json!({}))).await;
    let b = send(addr, "POST", &[("mcp-session-id", &bob)], &work("bob", json!({}))).await;
    let (a, b) = tokio::join!(all(a), all(b));
    own_only(&a, "ann", "bob");
    own_only(&b, "bob", "ann");
}

#[tokio::test]
async fn interleaved_calls_with_equal_ids_and_tokens_reach_their_own_clients_without_sessions() {
    let addr = start().await;
    let headers = [("mcp-protocol-version", MODERN), ("mcp-method", "tools/call"), ("mcp-name", "work")];
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/logLevel": "debug",
    });
    let a = send(addr, "POST", &headers, &work("ann", meta.clone())).await;
    let b = send(addr, "POST", &headers, &work("bob", meta)).await;
    let (a, b) = tokio::join!(all(a), all(b));
    own_only(&a, "ann", "bob");
    own_only(&b, "bob", "ann");
}

#[tokio::test]
async fn a_session_that_was_guessed_is_not_there_and_gives_nothing_away() {
    let addr = start().await;
    let ann = session(addr).await;
    let call = json!({ "jsonrpc": "2.0", "id": 2, "method": "resources/read", "params": { "uri": "notes://one" } });
    let near = format!("{}{}", &ann[..ann.len() - 1], if ann.ends_with('0') { '1' } else { '0' });
    for id in [near.as_str(), &ann.to_uppercase().replace('0', "O"), &ann[..8], "1", "*", "%", "../", &"x".repeat(2000)]
    {
        if id == ann {
            continue;
        }
        for (method, body) in [("POST", call.to_string()), ("GET", String::new()), ("DELETE", String::new())] {
            let r = all(send(addr, method, &[("mcp-session-id", id)], &body).await).await;
            assert!([400, 404].contains(&status(&r)), "{method} with {id}: {r}");
            assert!(!r.contains("a secret"), "{method} with {id}: {r}");
        }
    }
    let r = post(addr, &[("mcp-session-id", &ann)], &call).await;
    assert!(status(&r) == 200 && r.contains("a secret"), "ann's session lives: {r}");
}

#[tokio::test]
async fn a_stranger_can_neither_answer_nor_cancel_nor_continue_what_another_session_does() {
    let addr = start().await;
    let (ann, bob) = (session(addr).await, session(addr).await);
    let call =
        json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": { "name": "ask", "arguments": {} } });
    let mut a = send(addr, "POST", &[("mcp-session-id", &ann)], &call.to_string()).await;
    let question = until(&mut a, "elicitation/create").await;
    let event = question.lines().rev().find_map(|line| line.strip_prefix("id: ")).expect("events have ids").to_owned();
    let answer = json!({ "jsonrpc": "2.0", "id": 1, "result": { "action": "accept", "content": { "yes": true } } });
    let cancel = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 7 } });
    for said in [&answer, &cancel] {
        assert_eq!(status(&post(addr, &[("mcp-session-id", &bob)], said).await), 202);
    }
    // Bob requests the rest of ann's stream.
    let mut b = send(addr, "GET", &[("mcp-session-id", &bob), ("last-event-id", &event)], "").await;
    let mut heard = vec![0; 4096];
    let n = match tokio::time::timeout(Duration::from_millis(150), b.read(&mut heard)).await {
        Ok(read) => read.expect("it answers"),
        Err(_) => 0,
    };
    let heard = String::from_utf8_lossy(&heard[..n]).into_owned();
    // All of it had no effect: ann's call still waits.
    let early = tokio::time::timeout(Duration::from_millis(50), a.read(&mut [0; 4096])).await;
    assert!(early.is_err(), "{early:?}");
    // Only ann's own response ends the call.
    assert_eq!(status(&post(addr, &[("mcp-session-id", &ann)], &answer).await), 202);
    let end = all(a).await;
    assert!(end.contains("answered"), "{end}");
    assert!(!heard.contains("elicitation") && !heard.contains("answered"), "{heard}");
    // There are no tasks, and so none of other clients.
    for method in ["tasks/get", "tasks/result", "tasks/cancel", "tasks/list"] {
        let r = post(
            addr,
            &[("mcp-session-id", &bob)],
            &json!({ "jsonrpc": "2.0", "id": 8, "method": method, "params": { "taskId": "1" } }),
        )
        .await;
        assert!(r.contains("-32601"), "{method}: {r}");
    }
}

#[tokio::test]
async fn keys_in_other_cases_and_twice_have_one_meaning_over_http_too() {
    let addr = start().await;
    let ann = session(addr).await;
    let said = async |line: &str| all(send(addr, "POST", &[("mcp-session-id", &ann)], line).await).await;
    for (line, expected) in [
        (r#"{"jsonrpc":"2.0","id":7,"Method":"resources/read","params":{"uri":"notes://one"}}"#, "-32600"),
        (
            r#"{"jsonrpc":"2.0","id":7,"method":"ping","method":"resources/read","params":{"uri":"notes://one"}}"#,
            "-32600",
        ),
        (r#"{"jsonrpc":"2.0","id":7,"method":"resources/read","Params":{"uri":"notes://one"}}"#, "-32602"),
        (r#"{"jsonrpc":"2.0","id":7,"method":"resources/read","params":{"Uri":"notes://one"}}"#, "-32602"),
        (r#"{"jsonrpc":"2.0","id":7,"method":"ping","params":{},"params":{}}"#, "-32600"),
    ] {
        let r = said(line).await;
        assert!(r.contains(expected) && !r.contains("a secret"), "{line}: {r}");
    }
    let both = r#"{"jsonrpc":"2.0","id":7,"method":"ping","Method":"resources/read","params":{},"Params":{"uri":"notes://one"}}"#;
    let r = said(both).await;
    assert!(r.contains(r#""result":{}"#) && !r.contains("a secret"), "the exact key counts: {r}");
}
