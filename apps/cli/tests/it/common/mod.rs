//! What several of these tests need: the program over a pipe and over HTTP, with an environment of its own, and rows of
//! servers to try.
#![allow(dead_code, reason = "each test uses its own part")]

use linchpin::client::{Client, Connection};
use linchpin::transport::Child;
use linchpin::transport::remote;
use linchpin::types::version::Revision;
use serde_json::{Value, json};
use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

pub(crate) const REVISIONS: [Revision; 2] = [Revision::V2025_11_25, Revision::V2026_07_28];

pub(crate) fn program() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_linchpin"))
}

/// The program (or a link to it), with nothing in its environment but a home and a path.
pub(crate) fn command(program: impl AsRef<OsStr>, home: &Path) -> Command {
    let mut command = Command::new(program);
    command.env_clear().env("HOME", home).env("PATH", "/usr/bin:/bin").stdin(Stdio::null()).current_dir(home);
    command
}

/// Runs it to its end: exit code, standard output, standard error.
pub(crate) fn run(home: &Path, words: &[&str]) -> (Option<i32>, String, String) {
    finished(command(program(), home).args(words))
}

pub(crate) fn finished(command: &mut Command) -> (Option<i32>, String, String) {
    let output = command.output().unwrap();
    (output.status.code(), String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
}

/// Runs commands in this folder, each on a terminal: exit codes, and what was seen. Rows are as `terminals.py` has them.
pub(crate) fn on_terminals(folder: &Path, rows: Vec<Value>) -> Vec<(i64, String)> {
    let mut python = Command::new("python3")
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/common/terminals.py"))
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    python.stdin.take().unwrap().write_all(Value::Array(rows).to_string().as_bytes()).unwrap();
    let output = python.wait_with_output().unwrap();
    serde_json::from_slice(&output.stdout).unwrap()
}

/// A server over a pipe, message by message, with its standard error.
pub(crate) struct Raw {
    child: std::process::Child,
    stdin: std::process::ChildStdin,
    stdout: BufReader<std::process::ChildStdout>,
    stderr: Said,
    asked: u64,
}

impl Raw {
    /// Starts it, and opens a session.
    pub(crate) fn start(command: &mut Command) -> Raw {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (stdin, stdout) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        let stderr = Said::by(child.stderr.take().unwrap());
        let mut raw = Raw { child, stdin, stdout, stderr, asked: 0 };
        let hello = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "test", "version": "0" } });
        let answer = raw.ask("initialize", hello);
        assert!(answer["result"]["serverInfo"].is_object(), "{answer}");
        raw.line(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }).to_string());
        raw
    }

    /// Writes a line as it is.
    pub(crate) fn line(&mut self, line: &str) {
        self.stdin.write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    /// The whole message that answers a request.
    pub(crate) fn ask(&mut self, method: &str, params: Value) -> Value {
        self.asked += 1;
        self.line(&json!({ "jsonrpc": "2.0", "id": self.asked, "method": method, "params": params }).to_string());
        loop {
            let mut line = String::new();
            assert!(self.stdout.read_line(&mut line).unwrap() > 0, "it ended before it answered {method}");
            let message: Value = serde_json::from_str(&line).unwrap();
            if message["id"] == self.asked {
                return message;
            }
        }
    }

    pub(crate) fn call(&mut self, tool: &str, arguments: Value) -> Value {
        self.ask("tools/call", json!({ "name": tool, "arguments": arguments }))
    }

    /// Its process.
    #[allow(dead_code, reason = "for some tests")]
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends it a signal.
    pub(crate) fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-s", name, &id]).status().unwrap().success());
    }

    /// Waits until it ends by itself, the pipe still open: its exit code, `None` when a signal ended it.
    pub(crate) fn code(mut self) -> Option<i32> {
        self.child.wait().unwrap().code()
    }

    /// Closes the pipe; what it said on standard error until its end.
    pub(crate) fn ended(mut self) -> String {
        drop(self.stdin);
        self.child.wait().unwrap();
        self.stderr.ended()
    }

    /// Waits until it says this on standard error; `false` when it does not within half a minute.
    pub(crate) fn says(&self, text: &str) -> bool {
        self.stderr.says(text)
    }
}

/// What somebody says, read as it comes, so that nobody waits for room.
struct Said {
    bytes: Arc<Mutex<Vec<u8>>>,
    reader: std::thread::JoinHandle<()>,
}

impl Said {
    fn by(mut stderr: impl Read + Send + 'static) -> Said {
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let all = bytes.clone();
        let reader = std::thread::spawn(move || {
            let mut piece = [0; 4_096];
            while let Ok(read @ 1..) = stderr.read(&mut piece) {
                all.lock().unwrap().extend_from_slice(&piece[..read]);
            }
        });
        Said { bytes, reader }
    }

    fn says(&self, text: &str) -> bool {
        let heard = || self.so_far().contains(text);
        (0..600).any(|_| {
            heard() || {
                std::thread::sleep(std::time::Duration::from_millis(50));
                false
            }
        }) || heard()
    }

    fn so_far(&self) -> String {
        String::from_utf8_lossy(&self.bytes.lock().unwrap()).into_owned()
    }

    fn ended(self) -> String {
        self.reader.join().unwrap();
        String::from_utf8_lossy(&self.bytes.lock().unwrap()).into_owned()
    }
}

/// A server over HTTP for the length of a test.
pub(crate) struct Served {
    child: std::process::Child,
    later: Option<Said>,
    pub(crate) url: String,
    /// What it says when it is ready, with its address.
    pub(crate) said: String,
}

impl Served {
    pub(crate) fn start(command: &mut Command) -> Served {
        Served::try_start(command).unwrap_or_else(|said| panic!("it ended: {said}"))
    }

    /// The same; where it ends before it is ready, what it said.
    pub(crate) fn try_start(command: &mut Command) -> Result<Served, String> {
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut said = String::new();
        while !said.contains("Press Ctrl-C to stop.") {
            let mut line = String::new();
            if stderr.read_line(&mut line).unwrap() == 0 {
                child.wait().unwrap();
                return Err(said);
            }
            said.push_str(&line);
        }
        let at = ["http://127.0.0.1:", "https://localhost:"].iter().find_map(|url| said.find(url));
        let at = at.unwrap_or_else(|| panic!("no address in {said}"));
        let url = said[at..].split_whitespace().next().unwrap().to_owned();
        let later = Some(Said::by(stderr));
        Ok(Served { child, later, url, said })
    }

    /// Stops it; what it said on standard error.
    pub(crate) fn stopped(mut self) -> String {
        let _ = self.child.kill();
        let later = self.later.take().unwrap().ended();
        format!("{}{later}", self.said)
    }

    /// Its process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits until it says this on standard error; `false` when it does not within half a minute.
    pub(crate) fn says(&self, text: &str) -> bool {
        self.later.as_ref().is_some_and(|later| later.says(text))
    }

    /// What it has said on standard error since it is ready.
    pub(crate) fn heard(&self) -> String {
        self.later.as_ref().map(Said::so_far).unwrap_or_default()
    }

    /// `127.0.0.1:PORT`.
    pub(crate) fn address(&self) -> &str {
        self.url.trim_start_matches("http://").split('/').next().unwrap()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A web site (or an HTTP proxy, which is one that is asked for whole addresses) at an address of this machine: it writes down the
/// heads of requests, and answers what the test says.
pub(crate) struct Site {
    address: std::net::SocketAddr,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Site {
    /// `answer` is given the head of a request, and makes all bytes of the answer.
    pub(crate) fn start(answer: impl Fn(&str) -> Vec<u8> + Send + 'static) -> Site {
        Site::speaking(answer, |_| Ok(()))
    }

    /// The same with something that is spoken before HTTP is.
    pub(crate) fn speaking(
        answer: impl Fn(&str) -> Vec<u8> + Send + 'static,
        before: impl Fn(&mut TcpStream) -> std::io::Result<()> + Send + 'static,
    ) -> Site {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let log = seen.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                // A client that hung up has what it wanted.
                let _ = before(&mut stream).and_then(|()| {
                    let mut head = Vec::new();
                    let mut byte = [0];
                    while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte)? == 1 {
                        head.push(byte[0]);
                    }
                    let head = String::from_utf8_lossy(&head).into_owned();
                    log.lock().unwrap().push(head.clone());
                    stream.write_all(&answer(&head))
                });
            }
        });
        Site { address, seen }
    }

    /// An answer of this type.
    pub(crate) fn page(content_type: &str, body: &str) -> Vec<u8> {
        Site::answer("200 OK", &format!("content-type: {content_type}\r\n"), body)
    }

    pub(crate) fn answer(status: &str, head: &str, body: &str) -> Vec<u8> {
        let length = body.len();
        format!("HTTP/1.1 {status}\r\n{head}content-length: {length}\r\nconnection: close\r\n\r\n{body}").into_bytes()
    }

    /// `127.0.0.1:PORT`.
    pub(crate) fn host(&self) -> String {
        self.address.to_string()
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// The heads of the requests so far.
    pub(crate) fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }

    /// Their first lines.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.seen().iter().map(|head| head.lines().next().unwrap_or_default().to_owned()).collect()
    }
}

pub(crate) fn host(revision: Revision) -> Client {
    Client::new("test-host", "0.1").revisions(&[revision])
}

/// A connection over a pipe to the program or a link to it.
pub(crate) async fn over_pipe(
    program: impl AsRef<OsStr>,
    home: &Path,
    words: &[String],
    env: &[(String, String)],
    revision: Revision,
) -> Connection {
    let child = Child::new(program.as_ref()).args(words).clear_env().env("HOME", home).env("PATH", "/usr/bin:/bin");
    let child = child.envs(env.iter().cloned()).cwd(home);
    host(revision).connect(child).await.unwrap_or_else(|e| panic!("{words:?}: {e}"))
}

pub(crate) async fn over_http(url: &str, revision: Revision) -> Connection {
    host(revision).connect(remote(url).unwrap()).await.unwrap_or_else(|e| panic!("{url}: {e}"))
}

pub(crate) async fn names(connection: &Connection) -> Vec<String> {
    connection.tools().await.unwrap().iter().map(|tool| tool.name.clone()).collect()
}

/// A call that is refused by the protocol, not by a tool: its code and message.
pub(crate) async fn refused(connection: &Connection, tool: &str) -> (i32, String) {
    let error = connection.call(tool, serde_json::json!({})).await.expect_err(tool);
    let rpc = error.rpc().unwrap_or_else(|| panic!("{tool}: {error}"));
    (rpc.code, rpc.message.clone())
}

pub(crate) fn words(all: &[&str]) -> Vec<String> {
    all.iter().map(|word| (*word).to_owned()).collect()
}
