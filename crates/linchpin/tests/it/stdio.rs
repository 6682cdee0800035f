//! A real process: the example `hello` over its standard input and output.

#![cfg(all(unix, feature = "stdio"))]

use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

const PATIENCE: Duration = Duration::from_secs(20);

struct Process {
    child: Child,
    input: Option<ChildStdin>,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Process {
    fn start() -> Process {
        let program = program();
        let mut command = Command::new(&program);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().unwrap_or_else(|e| panic!("{}: {e}", program.display()));
        let (input, output) = (child.stdin.take(), child.stdout.take().expect("piped"));
        Process { child, input, lines: BufReader::new(output).lines() }
    }

    async fn send(&mut self, message: Value) {
        self.input.as_mut().expect("open").write_all(format!("{message}\n").as_bytes()).await.expect("it reads");
    }

    /// The next line of standard output, which must be a message; `None` at the end.
    async fn next(&mut self) -> Option<Value> {
        let line = tokio::time::timeout(PATIENCE, self.lines.next_line()).await.expect("in time").expect("a line")?;
        let message: Value = serde_json::from_str(&line).unwrap_or_else(|e| panic!("not a message, {e}: {line}"));
        assert_eq!(message["jsonrpc"], "2.0", "{line}");
        Some(message)
    }

    /// The rest of standard output, the exit status, and standard error.
    async fn end(mut self) -> (Vec<Value>, bool, String) {
        let mut left = Vec::new();
        while let Some(message) = self.next().await {
            left.push(message);
        }
        let status = tokio::time::timeout(PATIENCE, self.child.wait()).await.expect("it ends").expect("a status");
        let mut said = String::new();
        self.child.stderr.take().expect("piped").read_to_string(&mut said).await.expect("text");
        (left, status.success(), said)
    }
}

/// The example. Cargo builds it beside the tests, one folder up, unless it was told to build this test alone.
fn program() -> PathBuf {
    let test = std::env::current_exe().expect("this test is a file");
    let profile = test.parent().and_then(|p| p.parent()).expect("target/<profile>/deps");
    let program = profile.join("examples/hello");
    if !program.exists() {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut build = std::process::Command::new(cargo);
        build.args(["build", "--quiet", "--locked", "-p", "linchpin", "--example", "hello", "--target-dir"]);
        build.arg(profile.parent().expect("target/<profile>"));
        if profile.ends_with("release") {
            build.arg("--release");
        }
        assert!(build.status().expect("cargo runs").success(), "the example can be built");
    }
    program
}

fn call(id: u64, tool: &str, arguments: Value) -> Value {
    let meta = json!({ "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {} });
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": { "name": tool, "arguments": arguments, "_meta": meta } })
}

#[tokio::test]
async fn a_process_writes_nothing_but_messages_and_ends_with_its_input() {
    let mut process = Process::start();
    process.send(call(1, "greet", json!({ "name": "Ada" }))).await;
    assert_eq!(process.next().await.expect("an answer")["result"]["content"][0]["text"], "Hello, Ada!");
    process.input.as_mut().expect("open").write_all(b"no message\n").await.expect("it reads");
    assert_eq!(process.next().await.expect("an answer")["error"]["code"], -32700);
    process.send(call(2, "wait", json!({ "ms": 100 }))).await;
    process.input = None;
    let (left, success, said) = process.end().await;
    assert_eq!(left.len(), 1, "the running call was waited for: {left:?}");
    assert_eq!((left[0]["id"].as_u64(), &left[0]["result"]["content"][0]["text"]), (Some(2), &json!("waited")));
    assert!(success && said.is_empty(), "{said}");
}

#[tokio::test]
async fn sigterm_ends_a_process_cleanly_after_its_running_calls() {
    let mut process = Process::start();
    process.send(call(1, "greet", json!({ "name": "Ada" }))).await;
    process.next().await.expect("an answer");
    process.send(call(2, "wait", json!({ "ms": 300 }))).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    let id = process.child.id().expect("it runs").to_string();
    assert!(Command::new("kill").args(["-TERM", &id]).status().await.expect("kill runs").success());
    let (left, success, said) = process.end().await;
    assert_eq!(left.iter().map(|m| m["id"].as_u64()).collect::<Vec<_>>(), [Some(2)], "{left:?}");
    assert!(success, "{said}");
}

#[tokio::test]
async fn sigterm_ends_a_process_whose_output_nobody_reads() {
    let mut process = Process::start();
    let name = "x".repeat(100_000);
    let mut input = process.input.take().expect("open");
    // More responses than a pipe can hold, none of which is read.
    let flood = tokio::spawn(async move {
        for id in 0..100 {
            let line = format!("{}\n", call(id, "greet", json!({ "name": name })));
            if input.write_all(line.as_bytes()).await.is_err() {
                break;
            }
        }
        input
    });
    tokio::time::sleep(Duration::from_millis(300)).await;
    let id = process.child.id().expect("it runs").to_string();
    assert!(Command::new("kill").args(["-TERM", &id]).status().await.expect("kill runs").success());
    let status = tokio::time::timeout(PATIENCE, process.child.wait()).await.expect("it ends").expect("a status");
    assert!(status.success(), "{status}");
    drop(flood.await);
}

#[tokio::test]
async fn a_process_whose_client_is_gone_ends_without_complaint() {
    let mut process = Process::start();
    process.send(call(1, "greet", json!({ "name": "Ada" }))).await;
    process.next().await.expect("an answer");
    let Process { mut child, mut input, lines } = process;
    drop(lines);
    let line =
        format!("{}\n{}\n", call(2, "wait", json!({ "ms": 60_000 })), call(3, "greet", json!({ "name": "Ada" })));
    input.as_mut().expect("open").write_all(line.as_bytes()).await.expect("it reads");
    let status = tokio::time::timeout(Duration::from_secs(2), child.wait()).await.expect("at once").expect("a status");
    let mut said = String::new();
    child.stderr.take().expect("piped").read_to_string(&mut said).await.expect("text");
    assert!(status.success() && said.is_empty(), "{status}: {said}");
}

#[tokio::test]
async fn a_unix_socket_serves_many_clients_and_lets_in_only_its_user() {
    use linchpin::prelude::*;
    use linchpin::transport::unix;
    use std::os::unix::fs::PermissionsExt;

    let folder = std::env::temp_dir().join(format!("linchpin-unix-{}", std::process::id()));
    std::fs::create_dir(&folder).expect("a folder");
    let path = folder.join("socket");
    let server = || Server::new("socket", "1").tool("greet", |_: NoArgs| async { "hello" });
    let serving = tokio::spawn(server().serve(unix(&path)));
    let mut clients = Vec::new();
    while clients.len() < 3 {
        match tokio::net::UnixStream::connect(&path).await {
            Ok(stream) => clients.push(stream),
            Err(_) => tokio::time::sleep(Duration::from_millis(5)).await,
        }
    }
    let mode = std::fs::metadata(&path).expect("the socket").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let taken = server().serve(unix(&path)).await.expect_err("one server a socket").to_string();
    assert!(taken.contains("another server"), "{taken}");
    for (n, mut client) in (0..).zip(clients) {
        client.write_all(format!("{}\n", call(n, "greet", json!({}))).as_bytes()).await.expect("it reads");
        let mut line = String::new();
        let mut reader = BufReader::new(&mut client);
        tokio::time::timeout(PATIENCE, reader.read_line(&mut line)).await.expect("in time").expect("a line");
        let answer: Value = serde_json::from_str(&line).expect("JSON");
        assert_eq!(
            answer["result"]["content"][0]["text"], "hello",
            "the end of one client is not the end of the others"
        );
    }
    serving.abort();
    let _ = serving.await;
    // The socket of a killed server is replaced; a file that is not a socket is left alone.
    let file = folder.join("file");
    std::fs::write(&file, "precious").expect("a file");
    let refused = server().serve(unix(&file)).await.expect_err("no socket").to_string();
    assert!(
        refused.contains("not a socket") && std::fs::read_to_string(&file).expect("still there") == "precious",
        "{refused}"
    );
    std::fs::remove_dir_all(&folder).expect("a folder");
}

#[tokio::test]
async fn a_server_on_a_unix_socket_logs_where_it_listens_unless_it_tells_its_program() {
    use linchpin::prelude::*;
    let logged = linchpin::testing::Logged::default();
    let _guard = tracing::subscriber::set_default(logged.clone());
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    let told = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let tell = told.clone();
    let place = linchpin::transport::unix(path("told")).with_graceful_shutdown(std::future::pending());
    let place = place.on_ready(move || tell.store(true, std::sync::atomic::Ordering::SeqCst));
    let first = tokio::spawn(Server::new("unix", "1").serve(place));
    crate::common::until("it says so", || told.load(std::sync::atomic::Ordering::SeqCst)).await;
    assert!(!logged.text().contains("listening on"), "{}", logged.text());
    let second = tokio::spawn(Server::new("unix", "1").serve(linchpin::transport::unix(path("logged"))));
    let line = format!("INFO message=listening on {}", path("logged").display());
    crate::common::until("it says so", || logged.text().contains(&line)).await;
    assert!(tokio::net::UnixStream::connect(path("logged")).await.is_ok(), "it is true");
    first.abort();
    second.abort();
}
