//! What a server is asked is nowhere in what it says on standard error, however much it was asked to say.
#![cfg(all(feature = "client", unix))]

use crate::common;
use crate::rows;

use common::{REVISIONS, Raw, Served, command, over_http, program, run};
use rows::{Row, rows};
use serde_json::{Value, json};
use std::path::Path;

/// Stands in every argument, and nowhere else.
const MARKER: &str = "zebra-in-the-arguments";

/// Calls with the marker in their arguments, good ones and bad ones; each answer has it too, unless the call is said to keep it
/// in a file of this name.
fn calls(row: &Row, home: &Path) -> Vec<(&'static str, Value, Option<&'static str>)> {
    let path = |name: &str| home.join(name).display().to_string();
    let address = row.arguments["url"].as_str().unwrap_or_default();
    let thought = |branch: Value| {
        json!({ "thought": MARKER, "nextThoughtNeeded": true, "thoughtNumber": 1, "totalThoughts": 2,
                "branchFromThought": 1, "branchId": branch })
    };
    match row.name {
        "filesystem" => vec![
            ("write_file", json!({ "path": path("files/b.txt"), "content": MARKER }), Some("files/b.txt")),
            ("read_text_file", json!({ "path": path(&format!("files/{MARKER}")) }), None),
            ("read_text_file", json!({ "path": format!("/etc/{MARKER}") }), None),
            (
                "edit_file",
                json!({ "path": path("files/a.txt"), "edits": [{ "oldText": MARKER, "newText": "" }] }),
                None,
            ),
        ],
        "git" => vec![
            ("git_show", json!({ "repo_path": path("repository"), "revision": MARKER }), None),
            ("git_show", json!({ "repo_path": path(MARKER), "revision": "HEAD" }), None),
            ("git_checkout", json!({ "repo_path": path("repository"), "branch_name": format!("--{MARKER}") }), None),
            ("git_add", json!({ "repo_path": path("repository"), "files": [format!("../{MARKER}")] }), None),
        ],
        "fetch" => vec![
            ("fetch", json!({ "url": format!("{address}?{MARKER}") }), None),
            ("fetch", json!({ "url": format!("http://127.0.0.1:1/{MARKER}") }), None),
            ("fetch", json!({ "url": format!("http://{MARKER}.invalid/") }), None),
            ("fetch", json!({ "url": format!("ftp://x/{MARKER}") }), None),
        ],
        "memory" => vec![
            (
                "create_entities",
                json!({ "entities": [{ "name": MARKER, "entityType": "x", "observations": [MARKER] }] }),
                Some("memory.jsonl"),
            ),
            ("open_nodes", json!({ "names": [MARKER] }), None),
            (
                "add_observations",
                json!({ "observations": [{ "entityName": format!("no {MARKER}"), "contents": [MARKER] }] }),
                None,
            ),
        ],
        "sqlite" => vec![
            ("write_query", json!({ "query": format!("CREATE TABLE IF NOT EXISTS \"{MARKER}\" (a)") }), Some("a.db")),
            ("read_query", json!({ "query": format!("SELECT '{MARKER}' AS a") }), None),
            ("read_query", json!({ "query": format!("SELECT * FROM \"no {MARKER}\"") }), None),
        ],
        "postgres" => vec![
            ("query", json!({ "sql": format!("SELECT '{MARKER}' AS a") }), None),
            ("query", json!({ "sql": "SELECT $1::text AS a", "params": [MARKER] }), None),
            ("query", json!({ "sql": format!("SELECT * FROM \"no {MARKER}\"") }), None),
        ],
        "time" => vec![
            ("get_current_time", json!({ "timezone": MARKER }), None),
            ("convert_time", json!({ "source_timezone": "UTC", "time": "1:00", "target_timezone": MARKER }), None),
        ],
        "sequential-thinking" => vec![("sequentialthinking", thought(json!(MARKER)), None)],
        "brave-search" => vec![
            ("brave_web_search", json!({ "query": MARKER, MARKER: 1 }), None),
            ("brave_web_search", json!({ "query": MARKER, "cursor": MARKER }), None),
        ],
        "gitlab" => vec![
            ("create_issue", json!({ "project_id": "a/b", "title": "t", "description": MARKER, MARKER: 1 }), None),
            ("get_file_contents", json!({ "project_id": "a/b", "file_path": "x", "cursor": MARKER }), None),
        ],
        "slack" => vec![
            ("slack_post_message", json!({ "channel_id": "C1", "text": MARKER, MARKER: 1 }), None),
            ("slack_get_users", json!({ "cursor": MARKER }), None),
        ],
        "google-maps" => vec![
            ("maps_geocode", json!({ "address": MARKER, MARKER: 1 }), None),
            ("maps_search_places", json!({ "query": MARKER, "cursor": MARKER }), None),
        ],
        "google-drive" => vec![
            ("search", json!({ "query": MARKER, MARKER: 1 }), None),
            ("search", json!({ "query": "x", "cursor": MARKER }), None),
        ],
        "github" => vec![
            ("search_users", json!({ "q": MARKER, MARKER: 1 }), None),
            ("search_issues", json!({ "q": MARKER, "cursor": MARKER }), None),
            ("create_issue", json!({ "owner": "o", "repo": "r", "title": MARKER, MARKER: 1 }), None),
        ],
        "sentry" => vec![("get_sentry_issue", json!({ "issue_id_or_url": MARKER, MARKER: 1 }), None)],
        "aws-kb" => {
            vec![("retrieve_from_aws_kb", json!({ "query": MARKER, "knowledgeBaseId": "ABCDE12345", MARKER: 1 }), None)]
        }
        "everart" => vec![("generate_image", json!({ "prompt": MARKER }), None)],
        "browser" => vec![("puppeteer_navigate", json!({ "url": format!("{MARKER}:x") }), None)],
        "everything" => vec![("echo", json!({ "message": MARKER }), None)],
        other => panic!("{other} has no calls here"),
    }
}

/// Requests that nobody can do anything with.
fn oddities(row: &Row) -> Vec<(&'static str, Value)> {
    vec![
        ("tools/call", json!({ "name": "no_such_tool", "arguments": { "x": MARKER } })),
        ("tools/call", json!({ "name": row.tool, "arguments": { MARKER: MARKER } })),
        ("tools/call", json!({ "name": row.tool, "arguments": MARKER })),
        ("tools/call", json!({ "name": { "x": MARKER } })),
        ("resources/read", json!({ "uri": format!("memory://{MARKER}") })),
        ("prompts/get", json!({ "name": "fetch", "arguments": { "url": format!("nonsense {MARKER}") } })),
        ("prompts/get", json!({ "name": "no_such_prompt", "arguments": { "x": MARKER } })),
        (
            "completion/complete",
            json!({ "ref": { "type": "ref/prompt", "name": "x" }, "argument": { "name": "x", "value": MARKER } }),
        ),
        ("no/such/method", json!({ "x": MARKER })),
    ]
}

fn arrived(home: &Path, tool: &str, answer: &str, kept: Option<&str>) {
    let kept = kept.map(|name| String::from_utf8_lossy(&std::fs::read(home.join(name)).unwrap()).into_owned());
    assert!(kept.as_deref().unwrap_or(answer).contains(MARKER), "control: {tool} was not told the marker: {answer}");
}

fn silent(row: &Row, how: &str, said: &str) {
    let line = said.lines().find(|line| line.contains(MARKER));
    assert_eq!(line, None, "{} {how}", row.name);
}

#[test]
fn no_server_repeats_what_it_was_asked_on_standard_error_over_a_pipe() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path().canonicalize().unwrap();
    assert_eq!(run(&home, &["install-names", "names", "--all"]).0, Some(0));
    let mut logged = String::new();
    for row in rows(&home) {
        let name = home.join("names").join(row.published());
        for (how, verbose) in [("with RUST_LOG=trace", &[][..]), ("with -v -v -v", &["-v", "-v", "-v"])] {
            let mut serve = command(&name, &home);
            serve.args(row.words()).args(verbose).envs(row.env.iter().cloned());
            if verbose.is_empty() {
                serve.env("RUST_LOG", "trace");
            }
            let mut server = Raw::start(&mut serve);
            for (tool, arguments, kept) in calls(&row, &home) {
                let answer = server.call(tool, arguments);
                arrived(&home, tool, &answer.to_string(), kept);
            }
            for (method, params) in oddities(&row) {
                server.ask(method, params);
            }
            server.line(&format!("{{ \"{MARKER}\""));
            server.line(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": MARKER, "reason": MARKER } }).to_string());
            assert!(server.ask("ping", json!({}))["result"].is_object());
            let said = server.ended();
            silent(&row, how, &said);
            logged.push_str(&said);
        }
    }
    assert!(logged.contains("TRACE") || logged.contains("DEBUG"), "control: something was logged: {logged}");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_server_repeats_what_it_was_asked_on_standard_error_over_http() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path().canonicalize().unwrap();
    for row in rows(&home) {
        let mut serve = command(program(), &home);
        serve.args(["serve", row.name]).args(row.words()).args(["--http", "127.0.0.1:0"]);
        let served = Served::start(serve.envs(row.env.iter().cloned()).env("RUST_LOG", "trace"));
        for revision in REVISIONS {
            let connection = over_http(&served.url, revision).await;
            for (tool, arguments, kept) in calls(&row, &home) {
                let answer = connection.call(tool, arguments).await.unwrap_or_else(|e| panic!("{tool}: {e}"));
                // What the server knows by heart (histories of thoughts have handles here) is in the structured content.
                arrived(&home, tool, &format!("{} {:?}", answer.text(), answer.structured()), kept);
            }
            let _ = connection.call("no_such_tool", json!({ "x": MARKER })).await;
            let _ = connection.call(row.tool, json!({ MARKER: MARKER })).await;
            connection.close().await;
        }
        silent(&row, "over HTTP", &served.stopped());
    }
}

#[test]
fn one_v_shows_one_line_for_each_call_and_none_without_it() {
    let home = tempfile::tempdir().unwrap();
    for (verbose, expected) in [(&[][..], 0), (&["-v"][..], 3)] {
        let mut server = Raw::start(command(program(), home.path()).args(["serve", "everything"]).args(verbose));
        server.call("echo", json!({ "message": MARKER }));
        server.ask("example.com/unknown", json!({}));
        let said = server.ended();
        let calls: Vec<&str> = said.lines().filter(|line| line.contains("call ended")).collect();
        assert_eq!(calls.len(), expected, "{said}");
        for wanted in &["name=\"echo\"", "outcome=\"ok\"", "code=-32601", "duration="][..expected.min(1) * 4] {
            assert!(said.contains(wanted), "{wanted}: {said}");
        }
    }
}

#[test]
fn one_v_of_a_client_shows_one_line_for_each_request_and_none_without_it() {
    let home = tempfile::tempdir().unwrap();
    for (verbose, expected) in [(&[][..], 0), (&["-v"][..], 1)] {
        let mut call = command(program(), home.path());
        call.args(["call", "echo", &format!("message={MARKER}")]).args(verbose);
        let done = call.arg("--").arg(program()).args(["serve", "everything"]).output().unwrap();
        let said = String::from_utf8_lossy(&done.stderr);
        let lines: Vec<&str> = said.lines().filter(|line| line.contains("tools/call")).collect();
        assert_eq!(lines.len(), expected, "{said}");
        for wanted in &["request ended", "name=\"echo\"", "outcome=\"ok\"", "duration="][..expected * 4] {
            assert!(lines[0].contains(wanted), "{wanted}: {said}");
        }
        assert!(done.status.success() && !said.contains(MARKER), "{said}");
    }
}
