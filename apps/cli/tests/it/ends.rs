//! Programs that go on until somebody ends them: a transcript served over HTTP, and a call that is given up.
#![cfg(all(unix, feature = "client"))]

#[cfg(feature = "postgres")]
use crate::cluster;
use crate::common;

use common::Raw;
use serde_json::json;
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

/// A server started by a shell that said something first.
fn after(said: &str, words: &[&str], home: &std::path::Path) -> Raw {
    let mut shell = common::command("/bin/sh", home);
    shell.args(["-c", &format!("{said}; exec \"$0\" \"$@\""), env!("CARGO_BIN_EXE_linchpin")]).args(words);
    Raw::start(&mut shell)
}

#[test]
fn whoever_asks_for_an_end_gets_an_orderly_one() {
    let home = tempfile::tempdir().unwrap();
    for signal in ["TERM", "INT", "HUP"] {
        let server = after("true", &["serve", "everything"], home.path());
        server.signal(signal);
        let code = server.code();
        // Where nobody can know whether SIGHUP is ignored, it is left alone.
        let wanted = if signal == "HUP" && !cfg!(target_os = "linux") { None } else { Some(0) };
        assert_eq!(code, wanted, "{signal}");
    }
}

#[test]
fn under_nohup_a_terminal_may_go() {
    let home = tempfile::tempdir().unwrap();
    let mut server = after("trap '' HUP", &["serve", "everything"], home.path());
    server.signal("HUP");
    let said = server.call("echo", json!({ "message": "still there" }));
    assert_eq!(said["result"]["content"][0]["text"], "Echo: still there");
    server.signal("TERM");
    assert_eq!(server.code(), Some(0));
}

/// A server that starts descendants which leave its group, and what is left of them in every way its client ends.
#[cfg(target_os = "linux")]
#[test]
fn nothing_that_a_server_has_started_outlives_its_client() {
    let program = env!("CARGO_BIN_EXE_linchpin");
    for end in ["nothing", "KILL", "TERM", "INT", "HUP"] {
        let argument = format!("{}.{}", std::process::id(), end.len());
        let script = format!(
            "(trap '' TERM HUP; exec sleep {argument}) & setsid sleep {argument} & (setsid setsid sleep {argument} &); \
             exec {program} serve everything"
        );
        let words: &[&str] = match end {
            "nothing" => &["tools"],
            _ => &["call", "trigger-long-running-operation", "duration=60"],
        };
        let mut client = linchpin(words);
        let mut client = client.args(["--", "sh", "-c", &script]).stdout(Stdio::null()).spawn().unwrap();
        let own = format!("sleep\0{argument}\0");
        let living = || {
            let all = std::fs::read_dir("/proc")
                .unwrap()
                .filter_map(|entry| std::fs::read(entry.ok()?.path().join("cmdline")).ok());
            all.filter(|words| words == own.as_bytes()).count()
        };
        let wait = |wanted: usize| {
            for _ in 0..4_000 {
                if living() == wanted {
                    return;
                }
                std::thread::sleep(std::time::Duration::from_millis(5));
            }
            panic!("{end}: {} are there, not {wanted}", living());
        };
        if end != "nothing" {
            wait(3);
            assert!(
                Command::new("kill").args([format!("-{end}"), client.id().to_string()]).status().unwrap().success()
            );
        }
        let status = client.wait().unwrap();
        assert_eq!(status.success(), end == "nothing", "{end}: {status}");
        wait(0);
    }
}

#[test]
fn a_file_that_may_not_grow_is_an_error_of_the_call() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("memory.jsonl");
    let words = ["serve", "memory", "--file", file.to_str().unwrap()];
    // Blocks of 512 bytes.
    let mut server = after("ulimit -f 64", &words, home.path());
    let named = |name: &str, size: usize| json!({ "entities": [{ "name": name, "entityType": "test", "observations": ["x".repeat(size)] }] });
    let kept = server.call("create_entities", named("small", 10));
    assert_eq!(kept["result"]["isError"], json!(null), "{kept}");
    let refused = server.call("create_entities", named("large", 100_000));
    assert_eq!(refused["result"]["isError"], true, "{refused}");
    let graph = server.call("read_graph", json!({}))["result"]["content"][0]["text"].to_string();
    assert!(graph.contains("small") && !graph.contains("large"), "{graph}");
}

/// The allocator keeps what is freed: half a GiB after forty messages like these.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[test]
fn memory_of_large_messages_goes_back_to_the_system_when_they_are_gone() {
    use std::io::{Read as _, Write as _};
    use std::net::TcpStream;
    use std::sync::Barrier;
    const MIB: usize = 1 << 20;
    const MESSAGES: usize = 12;
    let home = tempfile::tempdir().unwrap();
    let words = ["serve", "everything", "--http", "127.0.0.1:0"];
    let served = common::Served::start(common::command(common::program(), home.path()).args(words));
    let status = format!("/proc/{}/status", served.id());
    let bytes = |field: &str| -> usize {
        let status = std::fs::read_to_string(&status).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix(field)).unwrap();
        line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() << 10
    };
    // Pages of the program's file come and go as they are used.
    let at_start = bytes("RssAnon:");
    let message = |size: usize| {
        json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "echo", "arguments": { "message": "x".repeat(size) }, "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "0" },
            "io.modelcontextprotocol/clientCapabilities": {} } } })
        .to_string()
    };
    let send = |message: &str, there: &Barrier| {
        let (all_but_one, last) = message.as_bytes().split_at(message.len() - 1);
        let mut socket = TcpStream::connect(served.address()).unwrap();
        let (host, length) = (served.address(), message.len());
        let head = "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: echo\r\nConnection: close";
        write!(socket, "POST /mcp HTTP/1.1\r\nHost: {host}\r\n{head}\r\nContent-Length: {length}\r\n\r\n").unwrap();
        socket.write_all(all_but_one).unwrap();
        there.wait();
        socket.write_all(last).unwrap();
        let mut answer = Vec::new();
        socket.read_to_end(&mut answer).unwrap();
        assert!(answer.starts_with(b"HTTP/1.1 200 ") && answer.len() > MIB, "{} bytes", answer.len());
    };
    let message = message(12 * MIB);
    let there = Barrier::new(MESSAGES);
    std::thread::scope(|scope| (0..MESSAGES).for_each(|_| drop(scope.spawn(|| send(&message, &there)))));
    assert!(bytes("VmHWM:") > 8 * 12 * MIB, "the messages were not in memory together");
    let kept = || bytes("RssAnon:").saturating_sub(at_start) / MIB;
    let back = (0..1200).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(50));
        kept() < 32
    });
    assert!(back, "{} MiB more than at the start are kept", kept());
}

/// The server of the database would go on computing for nobody, up to the limit for statements.
#[cfg(feature = "postgres")]
#[test]
fn a_query_ends_with_the_program() {
    use std::io::Write as _;
    if std::env::var_os("LINCHPIN_POSTGRES_BIN").is_some_and(|said| said == "none") {
        // `cargo xtask test` could not install one, and says that it left this out.
        return;
    }
    let cluster = cluster::Cluster::start();
    cluster.sql("CREATE ROLE reader LOGIN");
    let running = |wanted: &str| {
        let count = "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND usename = 'reader'";
        (0..100).any(|_| {
            let is = cluster.sql(count) == wanted;
            if !is {
                std::thread::sleep(std::time::Duration::from_millis(50));
            }
            is
        })
    };
    for end in ["nothing", "-TERM", "-INT"] {
        let mut child = linchpin(&["serve", "postgres", &cluster.url("reader")])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let mut input = child.stdin.take().unwrap();
        for line in [
            r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#,
            r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"query","arguments":{"sql":"SELECT count(*) FROM generate_series(1, 1000000000000)"}}}"#,
        ] {
            writeln!(input, "{line}").unwrap();
        }
        assert!(running("1"), "it begins");
        if end == "nothing" {
            drop(input);
        } else {
            assert!(Command::new("kill").args([end, &child.id().to_string()]).status().unwrap().success());
        }
        assert_eq!(child.wait().unwrap().code(), Some(0), "{end}");
        // The limit for statements is 30 s.
        assert!(running("0"), "{end}: it goes on");
    }
}
