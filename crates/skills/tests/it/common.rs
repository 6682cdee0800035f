//! Directories of skills, and clients.
#![allow(unreachable_pub, reason = "each test file uses its own part")]

use linchpin::client::Connection;
use linchpin::prelude::*;
use linchpin::skills::Skills;
use linchpin::types::version::Revision;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use tempfile::TempDir;

/// The front matter and text of a skill.
pub fn skill_md(name: &str, more: &str) -> String {
    format!("---\nname: {name}\ndescription: What {name} does.\n{more}---\n# {name}\n")
}

/// Writes files below a new directory.
pub fn directory(files: &[(&str, &str)]) -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    for (path, content) in files {
        write(directory.path(), path, content);
    }
    directory
}

pub fn write(root: &Path, path: &str, content: impl AsRef<[u8]>) {
    let place = root.join(path);
    fs::create_dir_all(place.parent().unwrap()).unwrap();
    fs::write(place, content).unwrap();
}

/// A catalogue with a skill of several files and one below another directory.
pub fn catalogue() -> TempDir {
    let pdf = skill_md("pdf-processing", "license: MIT\nmetadata:\n  version: '2.1'\n");
    let refunds = skill_md("refunds", "");
    let directory = directory(&[
        ("pdf-processing/SKILL.md", &pdf),
        ("pdf-processing/references/FORMS.md", "# Forms\n"),
        ("pdf-processing/references/deep/x y.txt", "text"),
        ("acme/billing/refunds/SKILL.md", &refunds),
        ("README.md", "not a skill"),
    ]);
    write(directory.path(), "pdf-processing/assets/logo.png", [0x89, b'P', 0xff]);
    directory
}

pub fn server(skills: Skills) -> Server {
    Server::new("s", "1.0").with(skills)
}

pub async fn connect(server: Server) -> Connection {
    connect_as(server, Revision::LATEST).await
}

pub async fn connect_as(server: Server, revision: Revision) -> Connection {
    // A client of a revision with sessions is told of extensions that it declares.
    let client = Client::new("h", "1.0").extension("io.modelcontextprotocol/skills", &json!({})).revisions(&[revision]);
    client.connect(in_process(server)).await.unwrap()
}

/// The result of a request, or the code and message of its error.
pub async fn ask(c: &Connection, method: &str, params: Value) -> Result<Value, (i32, String)> {
    match c.request(method, params).await {
        Ok(raw) => Ok(serde_json::from_str(raw.get()).unwrap()),
        Err(error) => {
            let rpc = error.rpc().unwrap_or_else(|| panic!("{method}: {error}"));
            Err((rpc.code, rpc.message.to_string()))
        }
    }
}
