//! One row for each server: how to start it, and what its most common tool answers.

use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;

#[cfg(feature = "postgres")]
use crate::cluster;

/// A server to try.
#[allow(dead_code, reason = "each test uses its own part")]
pub(crate) struct Row {
    /// The name after `linchpin serve`.
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
    /// Whether that is an error: of a server that cannot do its work here.
    pub(crate) fails: bool,
    /// What it needs to live.
    pub(crate) keep: Vec<Box<dyn std::any::Any>>,
}

/// The name of the published server of this name.
#[allow(dead_code, reason = "each test uses its own part")]
pub(crate) fn published_name(name: &str) -> String {
    let published = match name {
        "aws-kb" => "aws-kb-retrieval",
        "google-drive" => "gdrive",
        "browser" => "puppeteer",
        name => name,
    };
    format!("mcp-server-{published}")
}

impl Row {
    /// The name of the published server.
    #[allow(dead_code, reason = "each test uses its own part")]
    pub(crate) fn published(&self) -> String {
        published_name(self.name)
    }

    #[allow(dead_code, reason = "each test uses its own part")]
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
        fails: false,
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
    if cfg!(feature = "git") {
        let folder = made(home, "repository");
        std::fs::write(folder.join("a.txt"), "some words\n").unwrap();
        system(&folder, "git", &["init", "--quiet", "--initial-branch=main"]);
        let path = folder.display().to_string();
        let mut row = row("git", "git_status", json!({ "repo_path": path }), "Repository status:");
        row.original = vec!["--repository".to_owned(), path];
        row.word = format!("git:{}", folder.display());
        rows.push(row);
    }
    if cfg!(feature = "fetch") {
        let page = site(
            "text/html",
            "<!doctype html><html><body><article><h1>Title</h1><p>Some words of a page.</p></article></body></html>",
        );
        let mut row = row("fetch", "fetch", json!({ "url": page }), "Some words of a page.");
        row.original = vec!["--allow-private-ips".to_owned(), "--ignore-robots-txt".to_owned()];
        row.word = "fetch --allow-private-ips --ignore-robots-txt".to_owned();
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
    if cfg!(feature = "sqlite") {
        // An empty file is an empty database; a read-only server makes none.
        std::fs::write(home.join("a.db"), "").unwrap();
        let file = home.join("a.db").display().to_string();
        let mut row = row("sqlite", "read_query", json!({ "query": "SELECT 20 + 22 AS sum" }), "42");
        row.original = vec!["--db-path".to_owned(), file.clone()];
        row.word = format!("sqlite:{file}");
        rows.push(row);
    }
    #[cfg(feature = "postgres")]
    // `cargo xtask test` could not install one, and says that it left this out.
    if std::env::var_os("LINCHPIN_POSTGRES_BIN").is_none_or(|said| said != "none") {
        let cluster = cluster::Cluster::start();
        cluster.sql("create role reader login");
        let url = cluster.url("reader");
        let mut row = row("postgres", "query", json!({ "sql": "SELECT 20 + 22 AS sum" }), "42");
        row.original = vec![url.clone()];
        row.word = url;
        row.prefix = "pg";
        row.keep = vec![Box::new(cluster)];
        rows.push(row);
    }
    if cfg!(feature = "time") {
        let mut row = row("time", "get_current_time", json!({ "timezone": "Asia/Kathmandu" }), "+05:45");
        row.original = vec!["--local-timezone=Europe/Oslo".to_owned()];
        row.word = "time:Europe/Oslo".to_owned();
        rows.push(row);
    }
    if cfg!(feature = "sequential-thinking") {
        let thought = json!({ "thought": "First.", "nextThoughtNeeded": true, "thoughtNumber": 1, "totalThoughts": 2 });
        let mut row = row("sequential-thinking", "sequentialthinking", thought, "\"totalThoughts\": 2");
        row.prefix = "sequentialthinking";
        rows.push(row);
    }
    if cfg!(feature = "brave-search") {
        let found = r#"{"web":{"results":[{"title":"<strong>Some</strong> words","url":"https://a.example/"}]}}"#;
        let mut row = row("brave-search", "brave_web_search", json!({ "query": "words" }), "Title: Some words");
        row.env = vec![
            ("BRAVE_API_KEY".to_owned(), "key".to_owned()),
            ("BRAVE_API_URL".to_owned(), site("application/json", found)),
            ("MCP_BRAVE_PACE_MS".to_owned(), "0".to_owned()),
        ];
        row.prefix = "brave";
        rows.push(row);
    }
    if cfg!(feature = "gitlab") {
        let made = r#"{"iid":6,"title":"Some words"}"#;
        let arguments =
            json!({ "project_id": "a/b", "title": "Some words", "source_branch": "a", "target_branch": "b" });
        let mut row = row("gitlab", "create_merge_request", arguments, "\"title\": \"Some words\"");
        row.env = vec![
            ("GITLAB_PERSONAL_ACCESS_TOKEN".to_owned(), "key".to_owned()),
            ("GITLAB_API_URL".to_owned(), site("application/json", made)),
        ];
        rows.push(row);
    }
    if cfg!(feature = "slack") {
        let found = r#"{"ok":true,"members":[{"id":"U1","name":"ann"}]}"#;
        let mut row = row("slack", "slack_get_users", json!({}), r#"{"ok":true,"members":[{"id":"U1","name":"ann"}]"#);
        row.env = vec![
            ("SLACK_BOT_TOKEN".to_owned(), "xoxb-1".to_owned()),
            ("SLACK_TEAM_ID".to_owned(), "T1".to_owned()),
            ("SLACK_CHANNEL_IDS".to_owned(), "C1".to_owned()),
            ("SLACK_API_URL".to_owned(), site("application/json", found)),
        ];
        row.prefix = "slack";
        rows.push(row);
    }
    if cfg!(feature = "google-maps") {
        let found = r#"{"status":"OK","results":[{"formatted_address":"Some street 1","place_id":"x"}]}"#;
        let mut row = row("google-maps", "maps_geocode", json!({ "address": "words" }), "Some street 1");
        row.env = vec![
            ("GOOGLE_MAPS_API_KEY".to_owned(), "key".to_owned()),
            ("MCP_MAPS_API_URL".to_owned(), site("application/json", found)),
        ];
        row.prefix = "maps";
        rows.push(row);
    }
    if cfg!(feature = "google-drive") {
        let found = r#"{"files":[{"id":"1Some","name":"Some words","mimeType":"text/plain"}]}"#;
        let says = "Some words (text/plain) — gdrive:///1Some";
        let mut row = row("google-drive", "search", json!({ "query": "words" }), says);
        row.env = vec![
            ("GDRIVE_ACCESS_TOKEN".to_owned(), "key".to_owned()),
            ("MCP_GDRIVE_API_URL".to_owned(), site("application/json", found)),
        ];
        row.prefix = "gdrive";
        rows.push(row);
    }
    if cfg!(feature = "github") {
        let found = r#"{"total_count":1,"items":[{"login":"some-words"}]}"#;
        let mut row = row("github", "search_users", json!({ "q": "words" }), "\"login\": \"some-words\"");
        row.env = vec![
            ("GITHUB_TOKEN".to_owned(), "key".to_owned()),
            ("GITHUB_API_URL".to_owned(), site("application/json", found)),
            ("MCP_GITHUB_TOOLSETS".to_owned(), "original".to_owned()),
        ];
        rows.push(row);
    }
    if cfg!(feature = "sentry") {
        let found = r#"{"id":"7","title":"Some words","groupId":"7"}"#;
        let mut row = row("sentry", "get_sentry_issue", json!({ "issue_id_or_url": "7" }), "Sentry Issue: Some words");
        row.env = vec![
            ("SENTRY_TOKEN".to_owned(), "key".to_owned()),
            ("MCP_SENTRY_API_URL".to_owned(), site("application/json", found)),
        ];
        rows.push(row);
    }
    if cfg!(feature = "everart") {
        let made = r#"{"generations":[{"id":"7","status":"SUCCEEDED","image_url":"https://cdn.everart.ai/some.png"}]}"#;
        let mut row = row("everart", "generate_image", json!({ "prompt": "words" }), "https://cdn.everart.ai/some.png");
        row.env = vec![
            ("EVERART_API_KEY".to_owned(), "key".to_owned()),
            ("MCP_EVERART_API_URL".to_owned(), site("application/json", made)),
        ];
        rows.push(row);
    }
    if cfg!(feature = "aws-kb") {
        let found = r#"{"retrievalResults":[{"content":{"text":"Some words"},"score":0.5}]}"#;
        let arguments = json!({ "query": "words", "knowledgeBaseId": "ABCDE12345" });
        let mut row = row("aws-kb", "retrieve_from_aws_kb", arguments, "Context: Some words");
        row.env = vec![
            ("AWS_REGION".to_owned(), "us-east-1".to_owned()),
            ("AWS_ACCESS_KEY_ID".to_owned(), "key".to_owned()),
            ("AWS_SECRET_ACCESS_KEY".to_owned(), "secret".to_owned()),
            ("AWS_ENDPOINT_URL".to_owned(), site("application/json", found)),
        ];
        row.prefix = "aws_kb";
        rows.push(row);
    }
    if cfg!(feature = "browser") {
        // No browser is started for this: `browser.rs` has the rest.
        let arguments = json!({ "url": "ftp://some.words/" });
        let mut row = row("browser", "puppeteer_navigate", arguments, "ftp: URLs are not opened");
        row.env = vec![
            ("MCP_BROWSER_EXECUTABLE".to_owned(), "/bin/sh".to_owned()),
            ("MCP_BROWSER_TOOLSETS".to_owned(), "puppeteer".to_owned()),
        ];
        row.fails = true;
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

/// A page of this type at an address of this machine, for the length of the test.
#[allow(dead_code, reason = "for some rows")]
fn site(content_type: &'static str, page: &'static str) -> String {
    use std::io::{BufRead, BufReader, Write};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/page", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let lines = BufReader::new(stream.try_clone().unwrap()).lines();
            lines.map_while(Result::ok).take_while(|line| !line.is_empty()).for_each(drop);
            let head = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: {content_type}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
                page.len()
            );
            // A client that hung up has what it wanted.
            let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(page.as_bytes()));
        }
    });
    url
}

/// Runs a program of the system in a folder.
#[allow(dead_code, reason = "for some rows")]
fn system(folder: &Path, program: &str, args: &[&str]) {
    let output = Command::new(program).args(args).current_dir(folder).env("HOME", folder).output().unwrap();
    assert!(output.status.success(), "{program} {args:?}: {}", String::from_utf8_lossy(&output.stderr));
}
