//! Programs that go on until somebody ends them: a transcript served over HTTP, and a call that is given up.
#![cfg(all(unix, feature = "client"))]

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

fn linchpin(args: &[&str]) -> Command {
    let home = std::env::temp_dir().join(format!("linchpin-no-home-{}", std::process::id()));
    let mut command = Command::new(env!("CARGO_BIN_EXE_linchpin"));
    command.args(args).env_remove("RUST_LOG").env("HOME", &home).stdin(Stdio::null());
    command.env_remove("XDG_DATA_HOME").env_remove("XDG_CONFIG_HOME").env_remove("XDG_STATE_HOME");
    command
}

#[test]
fn a_transcript_is_served_over_http_to_both_eras() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/given/counter.jsonl");
    let mut child = linchpin(&["replay", file, "--http", "127.0.0.1:0"]).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    stderr.read_line(&mut line).unwrap();
    let url = line.trim().rsplit(' ').next().unwrap();
    // One after the other: the second is answered as it was the second time.
    let said = ["modern", "legacy"].map(|era| linchpin(&["call", url, "next", "--era", era]).output().unwrap());
    child.kill().unwrap();
    child.wait().unwrap();
    let said = said.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    assert_eq!(said, ["one\n", "two\n"], "{line}");
}

#[test]
fn ctrl_c_tells_the_server_and_ends_with_130() {
    let program = env!("CARGO_BIN_EXE_linchpin");
    let words =
        ["call", "trigger-long-running-operation", "duration=60", "--trace", "--", program, "serve", "everything"];
    let mut child = linchpin(&words).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut seen = String::new();
    for line in BufReader::new(child.stderr.take().unwrap()).lines() {
        let line = line.unwrap();
        seen.push_str(&line);
        seen.push('\n');
        if line.starts_with("-->") && line.contains("\"tools/call\"") {
            let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
            assert!(killed.success());
        }
    }
    assert_eq!(child.wait().unwrap().code(), Some(130), "{seen}");
    assert!(seen.contains("notifications/cancelled"), "{seen}");
}
