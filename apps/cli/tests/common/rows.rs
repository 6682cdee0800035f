//! One row for each server: how to start it, and what its most common tool answers.

use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;

/// A server to try.
pub(crate) struct Row {
    /// The name after `linchpin serve` and `mcp-server-`.
    pub(crate) name: &'static str,
    /// The arguments of the published server, which ours takes too.
    pub(crate) original: Vec<String>,
    /// Arguments that only ours has, wanted by this test.
    pub(crate) ours: Vec<String>,
    pub(crate) env: Vec<(String, String)>,
    /// The word for it beside other servers.
    pub(crate) word: String,
    /// Its name before tools, beside other servers.
    pub(crate) prefix: &'static str,
    pub(crate) tool: &'static str,
    pub(crate) arguments: Value,
    /// Part of what the tool says.
    pub(crate) says: String,
    /// What it needs to live.
    #[allow(dead_code, reason = "it only has to live")]
    pub(crate) keep: Vec<Box<dyn std::any::Any>>,
}

impl Row {
    pub(crate) fn words(&self) -> Vec<String> {
        self.original.iter().chain(&self.ours).cloned().collect()
    }
}

fn row(name: &'static str, tool: &'static str, arguments: Value, says: &str) -> Row {
    Row {
        name,
        original: Vec::new(),
        ours: Vec::new(),
        env: Vec::new(),
        word: name.to_owned(),
        prefix: name,
        tool,
        arguments,
        says: says.to_owned(),
        keep: Vec::new(),
    }
}

/// A row for each server of this build, with what it needs in `home`.
pub(crate) fn rows(home: &Path) -> Vec<Row> {
    let mut rows = Vec::new();
    if cfg!(feature = "filesystem") {
        let folder = made(home, "files");
        std::fs::write(folder.join("a.txt"), "some words\n").unwrap();
        let path = folder.join("a.txt").display().to_string();
        let mut row = row("filesystem", "read_text_file", json!({ "path": path }), "some words");
        row.original = vec![folder.display().to_string()];
        row.word = format!("filesystem:{}", folder.display());
        row.prefix = "fs";
        rows.push(row);
    }
    if cfg!(feature = "memory") {
        let mut row = row("memory", "search_nodes", json!({ "query": "sings" }), "\"Ann\"");
        row.env = vec![("MEMORY_FILE_PATH".to_owned(), home.join("memory.jsonl").display().to_string())];
        std::fs::write(
            home.join("memory.jsonl"),
            r#"{"type":"entity","name":"Ann","entityType":"person","observations":["sings"]}"#,
        )
        .unwrap();
        rows.push(row);
    }
    if cfg!(feature = "everything") {
        rows.push(row("everything", "echo", json!({ "message": "hello" }), "Echo: hello"));
    }
    rows
}

fn made(home: &Path, name: &str) -> std::path::PathBuf {
    let folder = home.join(name);
    std::fs::create_dir_all(&folder).unwrap();
    folder.canonicalize().unwrap()
}

/// Runs a program of the system in a folder.
#[allow(dead_code, reason = "for some rows")]
fn system(folder: &Path, program: &str, args: &[&str]) {
    let output = Command::new(program).args(args).current_dir(folder).env("HOME", folder).output().unwrap();
    assert!(output.status.success(), "{program} {args:?}: {}", String::from_utf8_lossy(&output.stderr));
}
