//! The published server and this one, side by side on equal repositories: the same texts, but for the differences listed
//! here, each with its reason.
#![cfg(unix)]

use crate::common;

use common::{Session, World, first_text, on};
use linchpin::client::Connection;
use linchpin::prelude::*;
use serde_json::{Value, json};

async fn theirs(w: &World) -> Connection {
    let dir =
        std::env::var("LINCHPIN_PUBLISHED").expect("LINCHPIN_PUBLISHED names the directory of the published packages");
    let program = format!("{dir}/py/bin/mcp-server-git");
    let path = std::env::var("PATH").unwrap();
    let server = linchpin::transport::Child::new(program)
        .args(["--repository", &w.at("r")])
        .clear_env()
        .env("PATH", path)
        .env("HOME", w.at("home"))
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_AUTHOR_DATE", "2026-02-01T00:00:00+0000")
        .env("GIT_COMMITTER_DATE", "2026-02-01T00:00:00+0000");
    Client::new("t", "1").connect(server).await.expect("the published server starts")
}

/// A repository with something of everything.
fn world() -> World {
    let w = World::new();
    w.git("r", &["checkout", "-q", "feat"]);
    w.put("r/f.txt", "1\n2\nfeat\n");
    w.put("r/two words.txt", "a\nb\nc\nd\ne\n");
    w.put("r/d/é.txt", "e\n");
    w.put("r/bin", b"\0\x01\x02");
    w.put("r/empty", "");
    w.git("r", &["add", "."]);
    w.commit_at("r", "feat: several\n\n  indented\n\ttab\n\n\n", "2026-01-04T10:00:00-0530");
    w.git("r", &["mv", "two words.txt", "renamed.txt"]);
    w.put("r/renamed.txt", "a\nb\nc\nd\nE\n");
    w.git("r", &["rm", "-q", "empty"]);
    w.git("r", &["add", "."]);
    w.commit_at("r", "no line feed at the end", "2026-01-05T10:00:00+0000");
    w.git("r", &["tag", "-a", "-m", "annotated", "v2"]);
    w.git("r", &["checkout", "-q", "main"]);
    // Theirs never answers a diff in Latin-1, only a commit: it is gone again in the next one.
    w.put("r/latin.txt", b"caf\xe9\n");
    w.put("r/main.txt", "main\n");
    w.git("r", &["add", "."]);
    w.commit_at("r", "main\n", "2026-01-06T10:00:00+1245");
    w.git("r", &["update-ref", "refs/remotes/origin/main", "main"]);
    w.git("r", &["merge", "-q", "--no-commit", "-s", "ours", "feat"]);
    w.git("r", &["rm", "-q", "latin.txt"]);
    w.commit_at("r", "merged\n", "2026-01-07T10:00:00+0000");
    w.put("r/f.txt", "1\n2\n3\nunstaged\n");
    w.put("r/main.txt", "staged\n");
    w.git("r", &["add", "main.txt"]);
    w.put("r/untracked.txt", "u\n");
    std::fs::create_dir(w.path("r/sub")).unwrap();
    w
}

/// Calls that change nothing.
fn readings() -> Vec<(&'static str, Value)> {
    let mut all = vec![("git_status", json!({}))];
    for lines in [0, 1, 3, 50] {
        all.push(("git_diff_unstaged", json!({"context_lines": lines})));
        all.push(("git_diff_staged", json!({"context_lines": lines})));
        all.push(("git_diff", json!({"target": "feat", "context_lines": lines})));
    }
    for target in ["HEAD", "main", "v1", "v2", "HEAD~2", "HEAD^2", "feat^{tree}", "refs/heads/feat"] {
        all.push(("git_diff", json!({"target": target})));
    }
    for max_count in [-1, 0, 1, 2, 100] {
        all.push(("git_log", json!({"max_count": max_count})));
    }
    all.push(("git_log", json!({})));
    for (start, end) in [
        ("2026-01-02T00:00:00", "2026-01-05T23:59:59"),
        ("2026-01-03T10:00:00+0100", ""),
        ("", "Jan 4 2026 12:00"),
        ("10 years ago", "2026-01-03T00:00:00Z"),
    ] {
        let optional = |text: &str| if text.is_empty() { Value::Null } else { json!(text) };
        all.push(("git_log", json!({"start_timestamp": optional(start), "end_timestamp": optional(end)})));
    }
    for revision in [
        "HEAD",
        "HEAD~1",
        "main~1",
        "feat",
        "feat~1",
        "v1",
        "v2",
        "v1~2",
        "HEAD:",
        "feat:",
        "feat:d",
        "feat:d/é.txt",
        "HEAD:f.txt",
        "main:main.txt",
        "main~1:latin.txt",
        "feat:bin",
        "HEAD^{tree}",
        "origin/main",
    ] {
        all.push(("git_show", json!({"revision": revision})));
    }
    for branch_type in ["local", "remote", "all"] {
        all.push(("git_branch", json!({"branch_type": branch_type})));
        all.push(("git_branch", json!({"branch_type": branch_type, "contains": "v1"})));
        all.push(("git_branch", json!({"branch_type": branch_type, "not_contains": "feat"})));
        all.push(("git_branch", json!({"branch_type": branch_type, "contains": "v1", "not_contains": "main"})));
    }
    all
}

#[tokio::test]
#[ignore = "needs the published packages: cargo xtask test --only published"]
async fn reading_answers_the_same_texts() {
    let w = world();
    let (theirs, ours) = (theirs(&w).await, w.open().await);
    for (tool, args) in readings() {
        let args = on(&w.at("r"), args);
        let expected = theirs.call(tool, args.clone()).await.unwrap_or_else(|error| panic!("{tool} {args}: {error}"));
        let result = ours.call(tool, args.clone()).await;
        assert!(!expected.is_error() && !result.is_error(), "{tool} {args}: {} / {}", expected.text(), result.text());
        assert_eq!(first_text(&result), first_text(&expected), "{tool} {args}");
    }
}

#[tokio::test]
#[ignore = "needs the published packages: cargo xtask test --only published"]
async fn changing_answers_the_same_texts_and_leaves_the_same_repository() {
    let steps = [
        ("git_commit", json!({"message": "staged already"})),
        ("git_commit", json!({"message": "nothing left"})),
        ("git_add", json!({"files": ["untracked.txt"]})),
        ("git_add", json!({"files": ["untracked.txt"]})),
        ("git_commit", json!({"message": "no line feed"})),
        ("git_add", json!({"files": ["."]})),
        ("git_add", json!({"files": ["."]})),
        ("git_reset", json!({})),
        ("git_status", json!({})),
        ("git_add", json!({"files": ["./f.txt"]})),
        ("git_commit", json!({"message": "-m x\n\n# kept\n\n"})),
        ("git_create_branch", json!({"branch_name": "nb"})),
        ("git_create_branch", json!({"branch_name": "nb"})),
        ("git_create_branch", json!({"branch_name": "deep/nb", "base_branch": "v1"})),
        ("git_create_branch", json!({"branch_name": "from-remote", "base_branch": "origin/main"})),
        ("git_create_branch", json!({"branch_name": "x", "base_branch": "zzz"})),
        ("git_branch", json!({"branch_type": "local"})),
        ("git_checkout", json!({"branch_name": "feat"})),
        ("git_show", json!({"revision": "HEAD"})),
        ("git_checkout", json!({"branch_name": "v1"})),
        ("git_branch", json!({"branch_type": "all"})),
        ("git_status", json!({})),
        ("git_create_branch", json!({"branch_name": "detached"})),
        ("git_checkout", json!({"branch_name": "origin/main"})),
        ("git_checkout", json!({"branch_name": "nosuch"})),
        ("git_checkout", json!({"branch_name": "main"})),
        ("git_log", json!({"max_count": 3})),
    ];
    let (a, b) = (world(), world());
    let (theirs, ours) = (theirs(&a).await, b.open().await);
    for (tool, args) in steps {
        let expected = theirs.call(tool, on(&a.at("r"), args.clone())).await.unwrap();
        let result = ours.call(tool, on(&b.at("r"), args.clone())).await;
        assert_eq!(result.is_error(), expected.is_error(), "{tool} {args}: {} / {}", result.text(), expected.text());
        let strip = |text: &str| text.lines().map(without_hashes).collect::<Vec<_>>().join("\n");
        if expected.is_error() {
            // Their prefix names the SDK's words for any failure; ours has a hint after the first line.
            let prefix = format!("Error executing tool {tool}: ");
            let expected = expected.text().trim_start_matches(prefix.as_str()).to_owned();
            assert_eq!(result.text().lines().next().unwrap_or_default(), expected, "{tool} {args}");
        } else {
            assert_eq!(strip(&first_text(&result)), strip(&first_text(&expected)), "{tool} {args}");
        }
    }
    let shape = |w: &World| {
        let refs = w.git("r", &["for-each-ref", "--format=%(refname) %(tree) %(contents)"]);
        let commits = w.git("r", &["log", "--all", "--topo-order", "--format=%T %an %ae %cn %B", "main"]);
        format!("{}\n{refs}\n{commits}", w.git("r", &["status", "--porcelain"]))
    };
    assert_eq!(shape(&b), shape(&a));
}

/// Commits made at different times have different ids and dates.
fn without_hashes(line: &str) -> String {
    let word = |word: &str| {
        let is_hash = (word.len() == 40 || word.len() == 7) && word.bytes().all(|byte| byte.is_ascii_hexdigit());
        if is_hash { "HASH".to_owned() } else { word.to_owned() }
    };
    if line.starts_with("Date:") || line.starts_with("index ") {
        return line.split(':').next().unwrap_or_default().to_owned();
    }
    line.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

#[tokio::test]
#[ignore = "needs the published packages: cargo xtask test --only published"]
async fn concluding_a_merge_answers_the_same() {
    let (a, b) = (World::new(), World::new());
    for w in [&a, &b] {
        w.git("r", &["checkout", "-q", "feat"]);
        w.put("r/f.txt", "feat\n");
        w.git("r", &["commit", "-qam", "feat"]);
        w.git("r", &["checkout", "-q", "main"]);
        w.put("r/f.txt", "main\n");
        w.put("r/side.txt", "s\n");
        w.git("r", &["add", "."]);
        w.git("r", &["commit", "-qm", "main"]);
        w.put("r/side.txt", "dirty\n");
        w.try_git("r", &["merge", "--autostash", "feat"]);
        w.put("r/f.txt", "both\n");
    }
    let (theirs, ours) = (theirs(&a).await, b.open().await);
    for (tool, args) in [("git_add", json!({"files": ["f.txt"]})), ("git_commit", json!({"message": "merged"}))] {
        let expected = theirs.call(tool, on(&a.at("r"), args.clone())).await.unwrap();
        let result = ours.call(tool, on(&b.at("r"), args)).await;
        let strip = |text: String| text.lines().map(without_hashes).collect::<Vec<_>>();
        assert_eq!(strip(first_text(&result)), strip(first_text(&expected)));
    }
    for name in ["MERGE_HEAD", "MERGE_MSG", "MERGE_AUTOSTASH"] {
        assert_eq!(a.has(&format!("r/.git/{name}")), b.has(&format!("r/.git/{name}")), "{name}");
    }
    assert_eq!(a.read("r/side.txt"), b.read("r/side.txt"));
}

/// What is different on purpose: the call, the beginning of their text (`!` for an error), of ours, and why.
const DIFFERENT: &[(&str, &str, &str, &str, &str)] = &[
    (
        "git_status",
        r#"{"repo_path":"R/sub"}"#,
        "!R/sub",
        "Repository status:",
        "a directory of the repository stands for it",
    ),
    (
        "git_diff",
        r#"{"target":"main..feat"}"#,
        "!Ref 'main..feat' did not",
        "Diff with main..feat:\ndiff",
        "ranges work",
    ),
    (
        "git_diff",
        r#"{"target":"main...feat"}"#,
        "!Ref 'main...feat' did not",
        "Diff with main...feat:\n",
        "ranges work",
    ),
    (
        "git_show",
        r#"{"revision":"HEAD:nope"}"#,
        "!\"Blob or Tree named 'nope' not found\"",
        "!Blob or Tree named 'nope' not found",
        "without Python's quotes",
    ),
    (
        "git_add",
        r#"{"files":["nope.txt"]}"#,
        "!Cmd('git') failed due to: exit code(128)",
        "!pathspec 'nope.txt' did not match any files",
        "git's own words, without the command line",
    ),
    ("git_add", r#"{"files":["unt*.txt"]}"#, "Files staged", "!pathspec 'unt*.txt' did not match", "paths are literal"),
    (
        "git_create_branch",
        r#"{"branch_name":"bad..name"}"#,
        "!Invalid reference 'refs/heads/bad..name'",
        "!Invalid branch name: 'bad..name'",
        "our words",
    ),
    (
        "git_create_branch",
        r#"{"branch_name":"at-hash","base_branch":"HEAD~1"}"#,
        "!No item found with id HEAD~1",
        "Created branch 'at-hash' from 'HEAD~1'",
        "any commit can be a base",
    ),
    ("git_log", r#"{"max_count":2.0}"#, "Commit history:", "Commit history:", "the same, for whole numbers written so"),
    (
        "git_diff_staged",
        r#"{"context_lines":-1}"#,
        "Staged changes:\n",
        "!Invalid context_lines: -1",
        "git makes a strange diff of it",
    ),
];

#[tokio::test]
#[ignore = "needs the published packages: cargo xtask test --only published"]
async fn the_differences_are_those_that_are_written_down() {
    let w = world();
    let (theirs, ours) = (theirs(&w).await, w.open().await);
    for (tool, args, their_text, our_text, why) in DIFFERENT {
        let mut args: Value = serde_json::from_str(&args.replace("R/", &format!("{}/", w.at("r")))).unwrap();
        if args.get("repo_path").is_none() {
            args["repo_path"] = json!(w.at("r"));
        }
        let prefix = format!("Error executing tool {tool}: ");
        let shown = |result: &linchpin::client::RawCallToolResult| {
            let text = first_text(result);
            let text = text.trim_start_matches(prefix.as_str()).replace(&w.at("r"), "R");
            if result.is_error() { format!("!{text}") } else { text }
        };
        let expected = theirs.call(tool, args.clone()).await.unwrap_or_else(|error| panic!("{tool} {args}: {error}"));
        let expected = shown(&expected);
        assert!(expected.starts_with(their_text), "theirs, {tool} {args} ({why}): {expected}");
        w.git("r", &["reset", "-q"]);
        let result = ours.call(tool, args.clone()).await;
        let (ours, quoted) = (shown(&result), result.text());
        // Git's own words are a block of their own.
        let told = ours.starts_with(our_text) || quoted.contains(our_text.trim_start_matches('!'));
        assert!(told, "ours, {tool} {args} ({why}): {quoted}");
    }
}

#[tokio::test]
#[ignore = "needs the published packages: cargo xtask test --only published"]
async fn hooks_run_there_and_not_here_unless_trusted() {
    for (trust, which) in [(None, "theirs"), (Some(false), "ours"), (Some(true), "ours, trusting")] {
        let w = world();
        w.script("r/.git/hooks/post-checkout", "mark");
        let args = on(&w.at("r"), json!({"branch_name": "nosuch"}));
        w.git("r", &["stash", "-q"]);
        let _ = std::fs::remove_file(w.path("mark"));
        let mut args = args;
        args["branch_name"] = json!("feat");
        match trust {
            None => drop(theirs(&w).await.call("git_checkout", args).await.unwrap()),
            Some(trust) => {
                let mut config = w.config();
                config.trust_repo_config = trust;
                Session::of(config).await.text("git_checkout", args).await;
            }
        }
        assert_eq!(w.has("mark"), trust != Some(false), "{which}");
    }
}
