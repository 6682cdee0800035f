//! `linchpin bridge`, and other bridges' command lines.
#![cfg(all(unix, feature = "client", feature = "everything", feature = "time"))]

use crate::common::{REVISIONS, Raw, Served, command, host, over_http, program, run};
use linchpin::transport::Child;
use serde_json::json;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// The processes that serve `everything` for a bridge in this home.
fn upstreams(home: &Path) -> Vec<u32> {
    let mark = format!("--bridged={}", home.display());
    let listed = Command::new("ps").args(["-eo", "pid=,args="]).output().unwrap();
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    // The shell that holds the mark is the program's parent in its own group.
    let own = |line: &&str| line.contains(&mark) && line.contains("exec-everything") && !line.contains(" bridge ");
    listed.lines().filter(own).filter_map(pid).collect()
}

fn pid(line: &str) -> Option<u32> {
    line.split_whitespace().next()?.parse().ok()
}

/// Waits until there are so many of them; `false` after 20 seconds.
fn become_(home: &Path, count: usize) -> bool {
    for _ in 0..200 {
        if upstreams(home).len() == count {
            return true;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    false
}

/// A command that serves `everything` and can be found among all processes.
fn upstream(home: &Path) -> Vec<String> {
    let script = format!(": exec-everything --bridged={}; \"$0\" serve everything; true", home.display());
    vec!["sh".into(), "-c".into(), script, program().display().to_string()]
}

#[test]
fn no_process_is_left_whoever_is_killed() {
    let home = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    for revision in REVISIONS {
        let words = ["bridge", "--http", "127.0.0.1:0", "--"];
        let served = Served::start(command(program(), home.path()).args(words).args(upstream(home.path())));
        runtime.block_on(async {
            let connection = over_http(&served.url, revision).await;
            let echoed = connection.call("echo", json!({ "message": "hi" })).await.unwrap();
            assert!(echoed.text().contains("hi"), "{revision}");
            // The upstream is killed: the next call has a new one.
            let before = upstreams(home.path());
            assert!(!before.is_empty());
            for pid in &before {
                Command::new("kill").args(["-9", &pid.to_string()]).status().unwrap();
            }
            let mut again = connection.call("echo", json!({ "message": "again" })).await;
            for _ in 0..50 {
                if again.is_ok() {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(100)).await;
                again = connection.call("echo", json!({ "message": "again" })).await;
            }
            assert!(again.is_ok_and(|result| result.text().contains("again")), "{revision}");
            assert!(upstreams(home.path()).iter().all(|pid| !before.contains(pid)));
        });
        // The bridge is killed.
        drop(served);
        assert!(become_(home.path(), 0), "{:?}", upstreams(home.path()));
    }
}

#[test]
fn an_old_server_is_behind_a_new_client_on_standard_input_and_output() {
    let home = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    for era in ["legacy", "modern"] {
        for revision in REVISIONS {
            let child = Child::new(program())
                .args(["bridge", "--era", era, "--"])
                .args(upstream(home.path()))
                .env("HOME", home.path());
            runtime.block_on(async {
                let connection = host(revision).connect(child).await.unwrap();
                let sum = connection.call("get-sum", json!({ "a": 2, "b": 40 })).await.unwrap();
                assert!(sum.text().contains("42"), "{revision} to {era}");
                connection.close().await;
            });
        }
    }
    assert!(become_(home.path(), 0));
}

#[test]
fn the_program_of_another_bridge_is_understood_by_name_and_by_link() {
    let home = tempfile::tempdir().unwrap();
    let line = format!("{} serve time", program().display());
    let mut raw = Raw::start(command(program(), home.path()).args([
        "supergateway",
        "--stdio",
        &line,
        "--outputTransport",
        "stdio",
    ]));
    let time = raw.call("get_current_time", json!({ "timezone": "UTC" }));
    assert!(time.to_string().contains("UTC"), "{time}");
    let link = home.path().join("mcp-proxy");
    std::os::unix::fs::symlink(program(), &link).unwrap();
    let shown =
        crate::common::finished(command(&link, home.path()).args(["--show-as-linchpin", "--port", "1", "a", "b"]));
    assert_eq!((shown.0, shown.1.as_str()), (Some(0), "linchpin bridge --http 127.0.0.1:1 --sse -- a b\n"));
    let (code, out, err) = run(home.path(), &["mcp-remote", "https://example.com", "--protocl", "auto"]);
    assert_eq!((code, out.as_str()), (Some(2), ""));
    assert!(err.contains("no flag --protocl") && err.contains("--protocol?"), "{err}");
}

#[test]
fn nothing_is_open_to_other_machines_unless_it_is_said() {
    let home = tempfile::tempdir().unwrap();
    for (address, refused) in [("0.0.0.0:0", true), ("[::]:0", true), ("192.0.2.1:0", true), ("example.com:0", true)] {
        let (code, _, err) = run(home.path(), &["bridge", "--http", address, "--", "true"]);
        assert_eq!((code, err.contains("--no-auth-i-know")), (Some(2), refused), "{address}: {err}");
    }
    for (header, why) in
        [("Authorization", "never sent on"), ("mcp-session-id", "never sent on"), ("a b", "not the name")]
    {
        let (code, _, err) = run(home.path(), &["bridge", "--forward-header", header, "--", "true"]);
        assert!(code == Some(2) && err.contains(why), "{header}: {err}");
    }
}
