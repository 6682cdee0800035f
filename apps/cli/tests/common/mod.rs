//! What several of these tests need: the program over a pipe and over HTTP, with an environment of its own, and rows of
//! servers to try.
#![allow(dead_code, reason = "each test uses its own part")]

use linchpin::client::{Client, Connection, Error};
use linchpin::transport::child::Child;
use linchpin::transport::remote::remote;
use linchpin::types::version::Revision;
use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

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

/// A server over HTTP for the length of a test.
pub(crate) struct Served {
    child: std::process::Child,
    pub(crate) url: String,
    /// What it says when it is ready, with its address.
    pub(crate) said: String,
}

impl Served {
    pub(crate) fn start(command: &mut Command) -> Served {
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut said = String::new();
        while !said.contains("Stop it with Ctrl-C.") {
            let mut line = String::new();
            assert!(stderr.read_line(&mut line).unwrap() > 0, "it ended: {said}");
            said.push_str(&line);
        }
        let at = said.find("http://127.0.0.1:").unwrap_or_else(|| panic!("no address in {said}"));
        let url = said[at..].split_whitespace().next().unwrap().to_owned();
        std::thread::spawn(move || stderr.read_to_end(&mut Vec::new()));
        Served { child, url, said }
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
    match connection.call(tool, serde_json::json!({})).await {
        Err(Error::Refused(refused)) => (refused.code, refused.message),
        other => panic!("{tool}: {other:?}"),
    }
}

pub(crate) fn words(all: &[&str]) -> Vec<String> {
    all.iter().map(|word| (*word).to_owned()).collect()
}
