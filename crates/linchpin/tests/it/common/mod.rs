//! The peer of a server in memory: one message per line, in any revision.

#![allow(dead_code, unreachable_pub, reason = "each test file uses its own part")]

pub mod scripted;

pub use linchpin::testing::Logged;

use linchpin::prelude::*;
use linchpin::transport::Service;
use linchpin::transport::{Bind, IntoService};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, ReadHalf, WriteHalf};
use tokio::task::JoinHandle;

/// The timeout for expected messages; only a failing test reaches it.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long a test waits for unexpected messages.
const QUIET: Duration = Duration::from_millis(120);

pub const MODERN: &str = "2026-07-28";
pub const LEGACY: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];
pub const ALL: [&str; 5] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", MODERN];

const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

pub struct Peer {
    lines: tokio::io::Lines<BufReader<ReadHalf<DuplexStream>>>,
    out: Option<WriteHalf<DuplexStream>>,
    next: u64,
    revision: &'static str,
    /// The capabilities of the client; in the modern era each request carries them.
    pub capabilities: Value,
    /// Additional members for `_meta` of each request.
    pub meta: Value,
    /// Messages that arrived while another was expected.
    pub aside: VecDeque<Value>,
    /// The task that serves this peer.
    pub served: JoinHandle<std::io::Result<()>>,
}

pub fn service(server: Server) -> Arc<dyn Service> {
    server.into_shared().expect("it is put together rightly")
}

impl Peer {
    /// A peer that has sent nothing yet.
    pub fn silent(service: Arc<dyn Service>) -> Peer {
        let (ours, theirs) = memory();
        let served = tokio::spawn(ours.serve(service));
        let (input, out) = tokio::io::split(theirs);
        let (capabilities, meta) = (json!({}), json!({}));
        Peer {
            lines: BufReader::new(input).lines(),
            out: Some(out),
            next: 0,
            revision: "",
            capabilities,
            meta,
            aside: VecDeque::new(),
            served,
        }
    }

    /// A peer of this revision that declares `capabilities`, after `initialize` if the revision has it.
    pub async fn of(service: Arc<dyn Service>, revision: &'static str, capabilities: Value) -> Peer {
        let mut peer = Peer::silent(service);
        peer.revision = revision;
        peer.capabilities = capabilities.clone();
        if !peer.modern() {
            let hello = json!({ "protocolVersion": revision, "capabilities": capabilities, "clientInfo": { "name": "t", "version": "0" } });
            let answer = peer.ask("initialize", hello).await;
            assert_eq!(answer["result"]["protocolVersion"], revision, "{answer}");
            peer.send(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
        }
        peer
    }

    /// [`Peer::of`] without capabilities.
    pub async fn plain(server: Server, revision: &'static str) -> Peer {
        Peer::of(service(server), revision, json!({})).await
    }

    pub fn modern(&self) -> bool {
        self.revision == MODERN
    }

    pub async fn send(&mut self, message: Value) {
        self.send_line(message.to_string().as_bytes()).await;
    }

    pub async fn send_line(&mut self, line: &[u8]) {
        let out = self.out.as_mut().expect("not ended yet");
        out.write_all(line).await.expect("the server reads");
        out.write_all(b"\n").await.expect("the server reads");
    }

    /// Closes the server's input.
    pub async fn end(&mut self) {
        self.out.take().expect("not ended yet").shutdown().await.expect("the server is there");
    }

    /// Sends a request of this peer's revision. Returns its id.
    pub async fn request(&mut self, method: &str, params: Value) -> u64 {
        let message = self.render(method, params);
        self.send(message).await;
        self.next
    }

    /// A request of this peer's revision, with the next id.
    pub fn render(&mut self, method: &str, mut params: Value) -> Value {
        self.next += 1;
        if self.modern() {
            params["_meta"][VERSION] = MODERN.into();
            params["_meta"][CAPABILITIES] = self.capabilities.clone();
        }
        if let Some(more) = self.meta.as_object() {
            for (key, value) in more {
                params["_meta"][key] = value.clone();
            }
        }
        json!({ "jsonrpc": "2.0", "id": self.next, "method": method, "params": params })
    }

    /// The next line as received; `None` at the end.
    pub async fn line(&mut self) -> Option<String> {
        tokio::time::timeout(PATIENCE, self.lines.next_line())
            .await
            .expect("the server says something")
            .expect("a line")
    }

    /// The next message, in order of arrival.
    pub async fn message(&mut self) -> Value {
        if let Some(message) = self.aside.pop_front() {
            return message;
        }
        let line = self.line().await.expect("the server is there");
        serde_json::from_str(&line).unwrap_or_else(|e| panic!("{e}: {line}"))
    }

    /// The next message that is not a response: a notification or a server request.
    pub async fn said(&mut self, method: &str) -> Value {
        let message = self.message().await;
        assert_eq!(message["method"], method, "{message}");
        message
    }

    /// The response to `id`. Earlier messages are kept.
    pub async fn answer(&mut self, id: impl Into<Value>) -> Value {
        let id = id.into();
        if let Some(at) = self.aside.iter().position(|m| m["id"] == id && m.get("method").is_none()) {
            return self.aside.remove(at).expect("it is there");
        }
        loop {
            let line = self.line().await.unwrap_or_else(|| panic!("the server left without answering {id}"));
            let message: Value = serde_json::from_str(&line).unwrap_or_else(|e| panic!("{e}: {line}"));
            if message["id"] == id && message.get("method").is_none() {
                return message;
            }
            self.aside.push_back(message);
        }
    }

    /// Sends a request and waits for the response.
    pub async fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.request(method, params).await;
        self.answer(id).await
    }

    /// Calls a tool and waits for the response.
    pub async fn call(&mut self, name: &str, arguments: Value) -> Value {
        self.ask("tools/call", json!({ "name": name, "arguments": arguments })).await
    }

    /// Starts a tool call. Returns its id.
    pub async fn start(&mut self, name: &str, arguments: Value) -> u64 {
        self.request("tools/call", json!({ "name": name, "arguments": arguments })).await
    }

    /// Responds to a server request.
    pub async fn reply(&mut self, question: &Value, result: Value) {
        self.send(json!({ "jsonrpc": "2.0", "id": question["id"], "result": result })).await;
    }

    /// No message arrives for a while.
    pub async fn quiet(&mut self) {
        assert!(self.aside.is_empty(), "unexpected: {:?}", self.aside);
        if let Ok(line) = tokio::time::timeout(QUIET, self.lines.next_line()).await {
            panic!("unexpected: {line:?}");
        }
    }

    /// The server still responds.
    pub async fn alive(&mut self) {
        let method = if self.modern() { "server/discover" } else { "ping" };
        let answer = self.ask(method, json!({})).await;
        assert!(answer["result"].is_object(), "{answer}");
    }
}

/// The text of a tool's result.
pub fn text(answer: &Value) -> &str {
    answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("no text: {answer}"))
}

/// The text of a tool's result with `isError`.
pub fn failed(answer: &Value) -> &str {
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    text(answer)
}

/// The code of a JSON-RPC error.
pub fn code(answer: &Value) -> i64 {
    answer["error"]["code"].as_i64().unwrap_or_else(|| panic!("no error: {answer}"))
}

/// Waits until `done` returns true; only a failing test waits long.
pub async fn until(what: &str, done: impl Fn() -> bool) {
    for _ in 0..2_000 {
        if done() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("never came true: {what}");
}
