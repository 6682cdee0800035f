//! Whatever a repository holds, calls end: odd bytes, huge diffs, long logs, a git that hangs, clients that go away.
#![cfg(unix)]

use crate::common;

use common::{Session, World, on};
use serde_json::{Value, json};
use std::path::Path;
use std::time::Duration;

#[tokio::test]
async fn bytes_that_are_not_text_never_end_anything() {
    use std::os::unix::ffi::OsStrExt;
    let w = World::new();
    let odd = w.path("r").join(std::ffi::OsStr::from_bytes(b"caf\xe9.txt"));
    std::fs::write(&odd, b"na\xefve\nline\n").unwrap();
    std::fs::write(w.path("r/bin"), b"\0\xff\xfe\x80").unwrap();
    std::fs::write(w.path("r/f.txt"), b"1\n\xe9\xe8\n3\n").unwrap();
    let s = w.open().await;
    let r = w.at("r");
    for (tool, args, part) in [
        ("git_status", json!({}), "caf"),
        ("git_diff_unstaged", json!({}), "+\u{fffd}\u{fffd}"),
        ("git_add", json!({"files": ["."]}), "Files staged"),
        ("git_diff_staged", json!({}), "na\u{fffd}ve"),
        ("git_status", json!({}), "caf"),
        ("git_commit", json!({"message": "odd"}), "Changes committed"),
        ("git_show", json!({"revision": "HEAD"}), "na\u{fffd}ve"),
        ("git_show", json!({"revision": "HEAD:"}), "caf\u{fffd}.txt"),
        ("git_show", json!({"revision": "HEAD:f.txt"}), "\u{fffd}\u{fffd}\n"),
        ("git_show", json!({"revision": "HEAD:bin"}), "\u{fffd}"),
        ("git_grep", json!({"pattern": "line"}), "caf\u{fffd}.txt:2:line"),
        ("git_blame", json!({"path": "f.txt"}), "\u{fffd}\u{fffd}"),
        ("git_diff", json!({"target": "v1..HEAD", "stat_only": true}), "f.txt"),
    ] {
        let text = s.text(tool, on(&r, args.clone())).await;
        assert!(text.contains(part), "{tool} {args}: {text:?}");
    }
    // A message and an author in Latin-1, with and without saying so.
    for encoding in ["", "encoding ISO-8859-1\n"] {
        let head = w.git("r", &["rev-parse", "HEAD"]);
        let tree = w.git("r", &["rev-parse", "HEAD^{tree}"]);
        let mut commit = format!("tree {tree}\nparent {head}\nauthor Ren").into_bytes();
        commit.extend_from_slice(b"\xe9 <r@x> 1700000000 +0000\ncommitter C <c@x> 1700000000 +0000\n");
        commit.extend_from_slice(encoding.as_bytes());
        commit.extend_from_slice(b"\ncaf\xe9\n");
        std::fs::write(w.path("commit"), commit).unwrap();
        let id = w.git("r", &["hash-object", "-t", "commit", "-w", "--literally", &w.at("commit")]);
        w.git("r", &["update-ref", "refs/heads/latin", &id]);
        let expected = if encoding.is_empty() { ("Ren\u{fffd}", "caf\u{fffd}\n") } else { ("René", "café\n") };
        let (_, value) = s.good("git_log", on(&r, json!({"revision": "latin", "max_count": 1}))).await;
        let commit = &value["commits"][0];
        assert_eq!((commit["author"].as_str(), commit["message"].as_str()), (Some(expected.0), Some(expected.1)));
        let text = s.text("git_show", on(&r, json!({"revision": "latin"}))).await;
        assert!(text.contains(expected.0) && text.contains(expected.1.trim()), "{text}");
    }
}

#[tokio::test]
async fn a_huge_diff_is_cut_and_says_what_it_is_about() {
    let w = World::new();
    let lines = |n: usize| (0..n).map(|i| format!("line {i} of many\n")).collect::<String>();
    w.put("r/huge.txt", lines(150_000));
    w.put("r/small.txt", "s\n");
    w.put("r/one line.txt", "x".repeat(300_000));
    w.git("r", &["add", "."]);
    let s = w.open().await;
    let r = w.at("r");
    let result = s.call("git_diff_staged", on(&r, json!({}))).await;
    let value: Value = serde_json::from_str(result.as_json()).unwrap();
    let (text, notice) = (value["content"][0]["text"].as_str().unwrap(), value["content"][1]["text"].as_str().unwrap());
    assert!(text.len() <= 100_100 && text.starts_with("Staged changes:\ndiff --git"), "{}", text.len());
    assert!(
        notice.contains("3 files changed, 150002 lines added") && notice.contains("huge.txt +150000 -0"),
        "{notice}"
    );
    assert!(notice.contains("paths") && notice.contains("stat_only"), "{notice}");
    let structured = &value["structuredContent"];
    assert_eq!((&structured["truncated"], structured["files"].as_array().unwrap().len()), (&json!(true), 3));
    let text = s.text("git_diff_staged", on(&r, json!({"paths": ["small.txt"]}))).await;
    assert!(text.ends_with("+s"), "{text}");
    let text = s.text("git_diff_staged", on(&r, json!({"stat_only": true}))).await;
    assert!(text.contains("3 files changed"), "{text}");
    s.text("git_commit", on(&r, json!({"message": "huge"}))).await;
    for revision in ["HEAD", "HEAD:huge.txt", "HEAD:one line.txt"] {
        let result = s.call("git_show", on(&r, json!({"revision": revision}))).await;
        let value: Value = serde_json::from_str(result.as_json()).unwrap();
        assert!(value["content"][0]["text"].as_str().unwrap().len() <= 101_000, "{revision}");
        assert!(value["content"][1]["text"].as_str().unwrap().starts_with("[Truncated"), "{revision}");
        assert_eq!(value["structuredContent"]["truncated"], true, "{revision}");
    }
    let result = s.call("git_grep", on(&r, json!({"pattern": "x"}))).await;
    assert!(result.text().len() < 10_000, "long lines are cut");
    let (_, value) = s.good("git_grep", on(&r, json!({"pattern": "line"}))).await;
    assert_eq!((value["matches"].as_array().unwrap().len(), &value["truncated"]), (200, &json!(true)));
}

#[tokio::test]
async fn a_log_without_limit_is_cut() {
    let w = World::new();
    let mut stream = String::new();
    for n in 0..3_000 {
        stream.push_str(&format!("commit refs/heads/main\ncommitter U <u@x> {} +0000\ndata 2\nm\n", 1_800_000_000 + n));
        if n == 0 {
            stream.push_str("from refs/heads/main^0\n");
        }
    }
    w.put("stream", stream);
    let done = std::process::Command::new(common::program())
        .args(["fast-import", "--quiet"])
        .current_dir(w.path("r"))
        .stdin(std::fs::File::open(w.path("stream")).unwrap())
        .status()
        .unwrap();
    assert!(done.success());
    let s = w.open().await;
    let (text, value) = s.good("git_log", on(&w.at("r"), json!({"max_count": -1}))).await;
    let first = value["commits"].as_array().unwrap().len();
    assert!(text.len() <= 200_000 && first <= 1_000 && value["truncated"] == true);
    let (_, value) = s.good("git_log", on(&w.at("r"), json!({"max_count": -1, "cursor": value["next_cursor"]}))).await;
    assert!(!value["commits"].as_array().unwrap().is_empty());
}

#[tokio::test]
async fn many_changed_files_are_cut() {
    let w = World::new();
    for n in 0..1_500 {
        w.put(&format!("r/many/{n:04}.txt"), "x");
    }
    let mut config = w.config();
    config.max_output_bytes = 2_000;
    let s = Session::of(config).await;
    s.text("git_add", on(&w.at("r"), json!({"files": ["."]}))).await;
    let result = s.call("git_status", on(&w.at("r"), json!({}))).await;
    let value: Value = serde_json::from_str(result.as_json()).unwrap();
    assert!(value["content"][0]["text"].as_str().unwrap().len() <= 2_000);
    assert!(value["content"][1]["text"].as_str().unwrap().starts_with("[Truncated"));
    let listed = value["structuredContent"]["entries"].as_array().unwrap().len();
    assert!((10..100).contains(&listed), "{listed}");
    assert_eq!(value["structuredContent"]["truncated"], true);
}

/// A git that hangs when it is asked to stage something, with a child that ignores polite requests.
fn hanging(w: &World) -> linchpin_git::Config {
    let real = common::program();
    w.script("git", "unused");
    w.put(
        "git",
        format!(
            "#!/bin/sh\ncase \"$*\" in *' add '*)\n echo $$ > {0}/leader\n sh -c 'trap \"\" TERM; echo $$ > {0}/child; sleep 600 & wait; sleep 600' &\n wait;;\n\
             *) exec '{1}' \"$@\";; esac\n",
            w.at(""),
            real.display()
        ),
    );
    let mut config = w.config();
    config.program = Some(w.path("git"));
    config
}

async fn gone(pid_file: &Path) {
    let pid = std::fs::read_to_string(pid_file).unwrap();
    common::ended(pid.trim()).await;
}

async fn there(path: &Path) {
    for _ in 0..1_000 {
        if std::fs::read_to_string(path).is_ok_and(|text| text.ends_with('\n')) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("{} was never written", path.display());
}

#[tokio::test]
async fn a_git_that_hangs_is_stopped_with_everything_it_started() {
    let w = World::new();
    let mut config = hanging(&w);
    config.timeout = Duration::from_secs(5);
    let s = Session::of(config).await;
    let text = s.bad("git_add", on(&w.at("r"), json!({"files": ["f.txt"]}))).await;
    assert!(text.starts_with("git add did not finish within 5 s and was stopped\nHint: "), "{text}");
    assert!(text.contains("the limit with --timeout"), "{text}");
    gone(&w.path("child")).await;
    gone(&w.path("leader")).await;
    // The repository is free again.
    s.text("git_reset", on(&w.at("r"), json!({}))).await;
}

#[tokio::test]
async fn a_call_that_is_dropped_stops_its_git() {
    use linchpin::types::version::Revision;
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let w = World::new();
        let client = linchpin::prelude::Client::new("t", "1").revisions(&[revision]);
        let s = Session::with(hanging(&w), client).await;
        {
            let call = s.client.call("git_add", on(&w.at("r"), json!({"files": ["f.txt"]})));
            let call = std::pin::pin!(std::future::IntoFuture::into_future(call));
            let started = w.path("child");
            tokio::select! {
                _ = call => panic!("it hangs"),
                () = there(&started) => {}
            }
        }
        gone(&w.path("child")).await;
        gone(&w.path("leader")).await;
        s.text("git_reset", on(&w.at("r"), json!({}))).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_on_one_repository_wait_for_each_other() {
    let w = World::new();
    let s = std::sync::Arc::new(w.open().await);
    let mut tasks = Vec::new();
    for n in 0..12 {
        w.put(&format!("r/n{n}.txt"), "x");
        let (s, r) = (std::sync::Arc::clone(&s), w.at("r"));
        tasks.push(tokio::spawn(async move {
            s.text("git_add", on(&r, json!({"files": [format!("n{n}.txt")]}))).await;
            s.text("git_status", on(&r, json!({}))).await;
            s.text("git_create_branch", on(&r, json!({"branch_name": format!("b{n}")}))).await;
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(w.git("r", &["diff", "--cached", "--name-only"]).lines().count(), 12);
    assert_eq!(w.git("r", &["branch", "--list", "b*"]).lines().count(), 12);
}

#[tokio::test]
async fn a_remote_that_hangs_is_stopped_and_the_option_for_it_is_named() {
    let w = World::new();
    w.script("ssh", "unused");
    w.put("ssh", format!("#!/bin/sh\necho $$ > {}\nexec sleep 600\n", w.at("pid")));
    w.git("r", &["remote", "add", "origin", "ssh://127.0.0.1:9/x"]);
    let mut config = w.config();
    config.allow_remote = true;
    config.remote_timeout = Duration::from_secs(2);
    config.environment.push(("GIT_SSH_COMMAND".into(), w.at("ssh")));
    let text = Session::of(config).await.bad("git_fetch", on(&w.at("r"), json!({}))).await;
    assert!(text.starts_with("git fetch did not finish within 2 s and was stopped\nHint: "), "{text}");
    assert!(text.contains("the limit with --remote-timeout") && !text.contains(" --timeout"), "{text}");
    gone(&w.path("pid")).await;
}

#[test]
fn numbers_with_which_no_call_could_succeed_are_refused_at_the_start() {
    use linchpin_git::{Config, Git};
    use linchpin_kit::Vars;
    let w = World::new();
    let most = u64::MAX.to_string();
    for (variable, value, option) in [
        ("MCP_GIT_TIMEOUT", "0", "--timeout"),
        ("MCP_GIT_TIMEOUT", "86401", "--timeout"),
        ("MCP_GIT_TIMEOUT", most.as_str(), "--timeout"),
        ("MCP_GIT_REMOTE_TIMEOUT", "0", "--remote-timeout"),
        ("MCP_GIT_REMOTE_TIMEOUT", most.as_str(), "--remote-timeout"),
        ("MCP_GIT_MAX_OUTPUT_BYTES", "0", "--max-output-bytes"),
        ("MCP_GIT_MAX_OUTPUT_BYTES", "999", "--max-output-bytes"),
        ("MCP_GIT_MAX_OUTPUT_BYTES", most.as_str(), "--max-output-bytes"),
        ("MCP_GIT_TIMEOUT", "1", ""),
        ("MCP_GIT_REMOTE_TIMEOUT", "86400", ""),
        ("MCP_GIT_MAX_OUTPUT_BYTES", "1000", ""),
    ] {
        let get = |name: &str| (name == variable).then(|| value.to_owned());
        let mut config = Config::from_env(Vars::new(&get)).unwrap();
        config.repositories = vec![w.path("r")];
        config.program = Some(common::program());
        match Git::open(config) {
            Ok(_) => assert_eq!(option, "", "{variable}={value}"),
            Err(fault) => {
                let text = fault.to_string();
                let named = text.contains(&format!("{option} ({variable}) takes "));
                assert!(named && !option.is_empty() && text.contains(value), "{variable}={value}: {text}");
            }
        }
    }
}
