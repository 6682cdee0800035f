//! Repositories to play in, made by real git, and calls by a real client.
#![allow(dead_code, reason = "each test file uses its own part")]

use linchpin::client::{Connection, RawCallToolResult};
use linchpin::prelude::*;
use linchpin_git::{Config, Git};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};

/// A temporary directory with a home and a repository `r` with one commit in it.
pub(crate) struct World {
    _base: tempfile::TempDir,
    base: PathBuf,
}

impl World {
    /// Without any repository.
    pub(crate) fn bare() -> Self {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let base = std::fs::canonicalize(dir.path()).expect("its true name");
        let world = Self { _base: dir, base };
        world.put(
            "home/.gitconfig",
            "[user]\n\tname = U\n\temail = u@x\n[init]\n\tdefaultBranch = main\n[commit]\n\tgpgsign = false\n",
        );
        world
    }

    /// With the repository `r`: `f.txt` of three lines in three commits, a branch `feat`, a tag `v1`.
    pub(crate) fn new() -> Self {
        let world = Self::bare();
        world.init("r");
        for (n, text) in [(1, "1\n"), (2, "1\n2\n"), (3, "1\n2\n3\n")] {
            world.put("r/f.txt", text);
            world.git("r", &["add", "f.txt"]);
            world.commit_at("r", &format!("c{n}\n\nbody line\n"), &format!("2026-01-0{n}T10:00:00+0100"));
        }
        world.git("r", &["tag", "v1"]);
        world.git("r", &["branch", "feat"]);
        world
    }

    /// A copy elsewhere.
    pub(crate) fn copied(&self) -> Self {
        let world = Self::bare();
        let from = format!("{}/.", self.at(""));
        assert!(Command::new("cp").args(["-a", &from, &world.at("")]).status().expect("cp").success());
        world
    }

    pub(crate) fn init(&self, name: &str) {
        std::fs::create_dir_all(self.path(name)).expect("a directory");
        self.git(name, &["init", "--quiet", "--initial-branch=main"]);
    }

    pub(crate) fn commit_at(&self, repo: &str, message: &str, date: &str) {
        let mut command = self.command(repo);
        command.args(["commit", "--quiet", "--cleanup=verbatim", "-m", message]);
        command.env("GIT_AUTHOR_DATE", date).env("GIT_COMMITTER_DATE", date);
        assert!(command.status().expect("git").success());
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.base.join(name)
    }

    pub(crate) fn at(&self, name: &str) -> String {
        self.path(name).to_str().expect("UTF-8").to_owned()
    }

    pub(crate) fn put(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("directories");
        std::fs::write(path, content).expect("a file");
    }

    pub(crate) fn read(&self, name: &str) -> String {
        String::from_utf8_lossy(&std::fs::read(self.path(name)).expect("a file")).into_owned()
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.path(name).symlink_metadata().is_ok()
    }

    pub(crate) fn link(&self, target: impl AsRef<Path>, name: &str) {
        std::os::unix::fs::symlink(target, self.path(name)).expect("a link");
    }

    /// A script that leaves a mark when it runs, and otherwise does nothing wrong.
    pub(crate) fn script(&self, name: &str, mark: &str) -> String {
        self.put(name, format!("#!/bin/sh\necho \"$0 $*\" >> '{}'\nexit 0\n", self.at(mark)));
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(self.path(name), mode).expect("a mode");
        self.at(name)
    }

    fn command(&self, repo: &str) -> Command {
        let mut command = Command::new(program());
        command.current_dir(self.path(repo)).env_clear();
        command.env("PATH", std::env::var("PATH").unwrap_or_default()).env("HOME", self.at("home"));
        // Without the sample hooks that come with git: worlds are copied a lot.
        command.env("GIT_CONFIG_NOSYSTEM", "1").env("LC_ALL", "C").env("GIT_TEMPLATE_DIR", "");
        command
    }

    /// Runs real git as a user would; it must succeed.
    pub(crate) fn git(&self, repo: &str, args: &[&str]) -> String {
        let (good, out) = self.try_git(repo, args);
        assert!(good, "git {args:?} in {repo}: {out}");
        out
    }

    pub(crate) fn try_git(&self, repo: &str, args: &[&str]) -> (bool, String) {
        let done = self.command(repo).args(args).output().expect("git");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end().to_owned();
        if done.status.success() {
            (true, text(&done.stdout))
        } else {
            (false, format!("{}{}", text(&done.stdout), text(&done.stderr)))
        }
    }

    /// Allows `r`.
    pub(crate) fn config(&self) -> Config {
        self.config_of(&["r"])
    }

    pub(crate) fn config_of(&self, names: &[&str]) -> Config {
        let path = std::env::var("PATH").unwrap_or_default();
        Config::default().with(|config| {
            config.repositories = names.iter().map(|name| self.path(name)).collect();
            config.environment = vec![("PATH".into(), path), ("HOME".into(), self.at("home"))];
            config.program = Some(program());
            // Rare ones too.
            config.tools.toolsets = vec!["all".into()];
        })
    }

    pub(crate) async fn open(&self) -> Session {
        Session::of(self.config()).await
    }

    /// Text with the base directory written as `BASE`.
    pub(crate) fn shown(&self, text: &str) -> String {
        text.replace(self.base.to_str().expect("UTF-8"), "BASE")
    }
}

/// The git under test: `GIT_UNDER_TEST`, or the first in `PATH`.
pub(crate) fn program() -> PathBuf {
    if let Some(path) = std::env::var_os("GIT_UNDER_TEST") {
        return path.into();
    }
    let dirs = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&dirs).map(|dir| dir.join("git")).find(|path| path.is_file()).expect("git is installed")
}

/// A client of a server in this process.
pub(crate) struct Session {
    pub(crate) client: Connection,
}

impl Session {
    pub(crate) async fn of(config: Config) -> Self {
        Self::with(config, Client::new("test", "1")).await
    }

    pub(crate) async fn with(config: Config, client: Client) -> Self {
        let (git, warnings) = Git::open(config).expect("it opens");
        assert_eq!(warnings, Vec::<String>::new());
        let server = git.add_to(Server::new("git", "1")).expect("its tools");
        Self { client: client.connect(in_process(server)).await.expect("a connection") }
    }

    pub(crate) async fn call(&self, tool: &str, args: Value) -> RawCallToolResult {
        self.client.call(tool, args.clone()).await.unwrap_or_else(|error| panic!("{tool} {args}: {error}"))
    }

    /// A call that must succeed: its first text and its structured content.
    pub(crate) async fn good(&self, tool: &str, args: Value) -> (String, Value) {
        let result = self.call(tool, args.clone()).await;
        assert!(!result.is_error(), "{tool} {args} failed: {}", result.text());
        let structured = result.structured().unwrap_or_else(|| panic!("{tool}: no structured content"));
        (first_text(&result), serde_json::from_str(structured).expect("JSON"))
    }

    pub(crate) async fn text(&self, tool: &str, args: Value) -> String {
        self.good(tool, args).await.0
    }

    /// A call that must fail: our words, and those of others, which are marked as such.
    pub(crate) async fn refused(&self, tool: &str, args: Value) -> (String, String) {
        let result = self.call(tool, args.clone()).await;
        assert!(result.is_error(), "{tool} {args} succeeded: {}", result.text());
        parts(&result)
    }

    /// A call that must fail: its text.
    pub(crate) async fn bad(&self, tool: &str, args: Value) -> String {
        let result = self.call(tool, args.clone()).await;
        assert!(result.is_error(), "{tool} {args} succeeded: {}", result.text());
        result.text()
    }
}

/// Of an error: our words, and those of others.
pub(crate) fn parts(result: &RawCallToolResult) -> (String, String) {
    let blocks = serde_json::to_value(&result.result().expect("a result").content).expect("JSON");
    let blocks = blocks.as_array().expect("blocks");
    assert!((1..=2).contains(&blocks.len()), "{blocks:?}");
    assert_eq!(blocks[0].get("annotations"), None, "{blocks:?}");
    if let Some(theirs) = blocks.get(1) {
        assert_eq!(theirs["annotations"]["audience"], json!(["assistant"]), "{blocks:?}");
    }
    let text = |at: usize| blocks.get(at).and_then(|block| block["text"].as_str()).unwrap_or_default().to_owned();
    (text(0), text(1))
}

pub(crate) fn first_text(result: &RawCallToolResult) -> String {
    let value: Value = serde_json::from_str(result.as_json()).expect("JSON");
    value["content"][0]["text"].as_str().unwrap_or_default().to_owned()
}

/// A listener on loopback that remembers what it is asked.
pub(crate) struct Heard {
    pub(crate) port: u16,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Heard {
    /// Answers each connection with what `answer` makes of its first request; nothing ends the connection.
    pub(crate) fn with(answer: impl Fn(&str) -> Vec<u8> + Send + 'static) -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("its number").port();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&requests);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(mut stream) = stream else { return };
                let mut bytes = [0; 4096];
                let read = stream.read(&mut bytes).unwrap_or(0);
                let request = String::from_utf8_lossy(&bytes[..read]).into_owned();
                let reply = answer(&request);
                heard.lock().expect("a list").push(request);
                let _ = stream.write_all(&reply);
            }
        });
        Self { port, requests }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// What it was asked since this was called last.
    pub(crate) fn taken(&self) -> Vec<String> {
        std::mem::take(&mut *self.requests.lock().expect("a list"))
    }
}

/// An HTTP answer without a body.
pub(crate) fn http(status: &str, headers: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status}\r\n{headers}Content-Length: 0\r\nConnection: close\r\n\r\n").into_bytes()
}

/// The one that asks for a password.
pub(crate) const WHO_ARE_YOU: &str = "WWW-Authenticate: Basic realm=\"x\"\r\n";

/// Waits until there is no such process any more.
pub(crate) async fn ended(pid: &str) {
    for _ in 0..500 {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        // Nobody may reap what was orphaned here, so a zombie is gone as well.
        if stat.is_empty() || stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('Z')) {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    panic!("process {pid} still runs");
}

/// `args` with `repo_path` added.
pub(crate) fn on(path: &str, args: Value) -> Value {
    let mut all = json!({ "repo_path": path });
    for (name, value) in args.as_object().into_iter().flatten() {
        all[name] = value.clone();
    }
    all
}
