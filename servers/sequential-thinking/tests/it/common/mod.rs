//! The server in this program, and calls as a client makes them.
#![allow(dead_code, unreachable_pub, reason = "each test file uses its own part")]

use linchpin::client::{Client, Connection, Error};
use linchpin::prelude::*;
use linchpin::types::version::Revision;
use linchpin_kit::ToolChoice;
use linchpin_sequential_thinking::{Config, SequentialThinking};
use serde_json::{Value, json};
use std::net::SocketAddr;

pub const MODERN: &[Revision] = &[Revision::V2026_07_28];
pub const LEGACY: &[Revision] = &[Revision::V2025_11_25];

/// A configuration that offers all three tools.
pub fn with_all_tools() -> Config {
    let mut tools = ToolChoice::default();
    tools.toolsets.push("all".into());
    Config::default().with(|config| config.tools = tools)
}

pub fn server(config: Config) -> Server<SequentialThinking> {
    let (thinking, warnings) = SequentialThinking::open(config).expect("it opens");
    assert_eq!(warnings, Vec::<String>::new());
    thinking.add_to(Server::new("linchpin-sequential-thinking", "0")).expect("it is put together rightly")
}

/// A server at a port of this machine, for clients to dial.
pub async fn listening(config: Config) -> SocketAddr {
    let (ready, addr) = tokio::sync::oneshot::channel();
    let server = server(config);
    tokio::spawn(server.serve(http("127.0.0.1:0").on_ready(move |addr| ready.send(addr).expect("somebody waits"))));
    addr.await.expect("it listens")
}

pub async fn dial(addr: SocketAddr, revisions: &[Revision]) -> Caller {
    let remote = remote(&format!("http://{addr}/mcp")).expect("an address");
    Caller(
        Client::new("test", "0").revisions(revisions).check_results(true).connect(remote).await.expect("it connects"),
    )
}

pub struct Caller(pub Connection);

impl Caller {
    pub async fn of(config: Config) -> Self {
        Self::speaking(config, &Revision::ALL).await
    }

    pub async fn speaking(config: Config, revisions: &[Revision]) -> Self {
        let client = Client::new("test", "0").revisions(revisions).check_results(true);
        Self(client.connect(in_process(server(config))).await.expect("it connects"))
    }

    /// For many calls: what comes back is not held against the schema.
    pub async fn quick(config: Config) -> Self {
        let client = Client::new("test", "0").revisions(MODERN);
        Self(client.connect(in_process(server(config))).await.expect("it connects"))
    }

    /// Text and structured content, or the text of the error.
    pub async fn call(&self, tool: &str, arguments: Value) -> Result<(String, Value), String> {
        let result = self.0.call(tool, arguments).await.unwrap_or_else(|error: Error| panic!("{tool}: {error}"));
        if result.is_error() {
            return Err(result.text());
        }
        let structured = result.structured().map(|json| serde_json::from_str(json).expect("JSON"));
        Ok((result.text(), structured.unwrap_or(Value::Null)))
    }

    /// The structured content of a call that must succeed.
    pub async fn value(&self, tool: &str, arguments: Value) -> Value {
        let answer = self.call(tool, arguments.clone()).await;
        answer.unwrap_or_else(|error| panic!("{tool} {arguments} failed: {error}")).1
    }

    /// The error of a call that must fail.
    pub async fn error(&self, tool: &str, arguments: Value) -> String {
        match self.call(tool, arguments.clone()).await {
            Err(error) => error,
            Ok((text, _)) => panic!("{tool} {arguments} succeeded: {text}"),
        }
    }

    /// A thought with some more arguments, which must be noted.
    pub async fn think(&self, number: u64, more: Value) -> Value {
        self.value("sequentialthinking", thought(number, more)).await
    }
}

/// A thought's arguments.
pub fn thought(number: u64, more: Value) -> Value {
    let mut args = json!({ "thought": format!("thought {number}"), "nextThoughtNeeded": true, "thoughtNumber": number, "totalThoughts": 5 });
    for (name, value) in more.as_object().expect("an object") {
        args[name] = value.clone();
    }
    args
}
