//! A memory in a temporary directory, and calls as a client makes them.
#![allow(dead_code, unreachable_pub, reason = "each test file uses its own part")]

use linchpin::client::RawCallToolResult;
use linchpin::prelude::*;
use linchpin::types::version::Revision;
use linchpin_memory::{Config, Memory};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// A memory file in a directory of its own, served in process.
pub struct World {
    pub dir: tempfile::TempDir,
    pub client: Connection,
}

impl World {
    pub async fn new() -> World {
        World::with("", |_| {}).await
    }

    /// With this file, unless it is empty, and this configuration.
    pub async fn with(file: impl AsRef<[u8]>, change: impl FnOnce(&mut Config)) -> World {
        let dir = tempfile::tempdir().expect("a directory");
        if !file.as_ref().is_empty() {
            std::fs::write(dir.path().join("memory.jsonl"), file).expect("a file");
        }
        let mut config = at(dir.path().join("memory.jsonl"));
        change(&mut config);
        let client = connect(config, None).await;
        World { dir, client }
    }

    pub fn path(&self) -> PathBuf {
        self.dir.path().join("memory.jsonl")
    }

    pub fn beside(&self, suffix: &str) -> PathBuf {
        self.dir.path().join(format!("memory.jsonl.{suffix}"))
    }

    /// The file's text.
    pub fn file(&self) -> String {
        std::fs::read_to_string(self.path()).expect("a file")
    }

    pub fn put(&self, text: impl AsRef<[u8]>) {
        std::fs::write(self.path(), text).expect("a file");
    }

    /// Calls a tool that must succeed: its first text block and its structured content.
    pub async fn call(&self, tool: &str, args: Value) -> (String, Value) {
        call(&self.client, tool, args).await
    }

    pub async fn text(&self, tool: &str, args: Value) -> String {
        self.call(tool, args).await.0
    }

    pub async fn value(&self, tool: &str, args: Value) -> Value {
        self.call(tool, args).await.1
    }

    /// Calls a tool that must fail: its text.
    pub async fn error(&self, tool: &str, args: Value) -> String {
        let result = self.raw(tool, args.clone()).await;
        assert!(result.is_error(), "{tool} {} succeeded: {}", short(&args), result.text());
        result.text()
    }

    pub async fn raw(&self, tool: &str, args: Value) -> RawCallToolResult {
        self.client.call(tool, args).await.expect("an answer")
    }

    /// Creates entities of these names, without observations.
    pub async fn create(&self, names: &[&str]) {
        let entities: Vec<Value> = names.iter().map(|name| entity(name, &[])).collect();
        self.call("create_entities", json!({ "entities": entities })).await;
    }

    /// The names of all entities.
    pub async fn names(&self) -> Vec<String> {
        let graph = self.value("read_graph", json!({})).await;
        let entities = graph["entities"].as_array().expect("a list").clone();
        entities.iter().map(|entity| entity["name"].as_str().expect("a name").to_owned()).collect()
    }
}

pub async fn call(client: &Connection, tool: &str, args: Value) -> (String, Value) {
    let shown = short(&args);
    let result = client.call(tool, args).await.expect("an answer");
    assert!(!result.is_error(), "{tool} {shown} failed: {}", result.text());
    let content = result.content().expect("content");
    let text = content[0].as_text().expect("text").to_owned();
    let value = serde_json::from_str(result.structured().expect("structured content")).expect("JSON");
    (text, value)
}

fn short(args: &Value) -> String {
    args.to_string().chars().take(200).collect()
}

pub fn server(config: Config) -> Server<Memory> {
    let (memory, _) = Memory::open(config).expect("it can be opened");
    memory.add_to(Server::new("memory-server", "1")).expect("the choice of tools is good")
}

pub async fn connect(config: Config, revision: Option<Revision>) -> Connection {
    let mut client = Client::new("test", "1");
    if let Some(revision) = revision {
        client = client.revisions(&[revision]);
    }
    client.connect(in_process(server(config))).await.expect("a connection")
}

/// The configuration for this file, with the rare tools too.
pub fn at(path: impl AsRef<Path>) -> Config {
    Config::default().with(|config| {
        config.file = Some(path.as_ref().to_owned());
        // Rare tools too.
        config.tools.toolsets = vec!["all".into()];
    })
}

/// What opening says that must fail.
pub fn refused(config: Config) -> String {
    match Memory::open(config) {
        Ok(_) => panic!("it was opened"),
        Err(fault) => fault.to_string(),
    }
}

pub fn entity(name: &str, observations: &[&str]) -> Value {
    json!({ "name": name, "entityType": "t", "observations": observations })
}

pub fn relation(from: &str, to: &str) -> Value {
    json!({ "from": from, "to": to, "relationType": "r" })
}

/// Lines as the published server writes them.
pub fn e_line(name: &str, observations: &[&str]) -> String {
    let list = serde_json::to_string(observations).expect("JSON");
    format!("{{\"type\":\"entity\",\"name\":{},\"entityType\":\"t\",\"observations\":{list}}}", json!(name))
}

pub fn r_line(from: &str, to: &str) -> String {
    format!("{{\"type\":\"relation\",\"from\":{},\"to\":{},\"relationType\":\"r\"}}", json!(from), json!(to))
}
