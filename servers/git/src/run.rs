//! Runs git: the only place that starts the program.
//!
//! Every call is a process of its own, in its own process group, with a fixed environment, a deadline and a bound on
//! what is read while it is read. Dropping the call (the client cancelled, or the deadline passed) asks the group to
//! end, so that git removes its lock files, and kills it two seconds later.

use crate::Config;
use linchpin_kit::{ErrorKind, ToolError, redact_urls};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};
use tokio::sync::Semaphore;

/// The program and what every run of it has in common.
#[derive(Debug)]
pub(crate) struct Program {
    path: PathBuf,
    /// What is passed on from the operator's environment to every run.
    base: Vec<(OsString, OsString)>,
    /// What is passed on to runs that talk to remotes, besides.
    network: Vec<(OsString, OsString)>,
    /// Runs at the same time.
    slots: Semaphore,
    /// Bytes of memory that each process of a run may take, where the system can hold it to that.
    memory: Option<u64>,
}

/// What is done with the output.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Keep {
    /// Keep this many bytes; when more comes, stop git. For runs that only read.
    Upto(usize),
    /// The same from this byte on; what comes before is thrown away.
    From(u64, usize),
    /// Keep this many bytes and throw the rest away, but let git finish.
    Head(usize),
    /// The same, but of what stands between line feeds and NULs only the beginning: so many bytes of each, and so many
    /// in all.
    Parts(usize, usize),
    /// Keep the records (ended by NUL) that begin with this, at most so many bytes.
    Records(&'static [u8], usize),
}

/// One run.
#[derive(Debug)]
pub(crate) struct Job<'a> {
    /// The working directory.
    pub(crate) dir: &'a Path,
    /// The arguments, the subcommand first.
    pub(crate) args: Vec<OsString>,
    /// Configuration of this run, which wins over every file.
    pub(crate) settings: &'a [(String, String)],
    /// Variables of this run.
    pub(crate) vars: Vec<(&'static str, OsString)>,
    /// What git reads.
    pub(crate) input: Vec<u8>,
    /// What is done with what it writes.
    pub(crate) keep: Keep,
    /// Whether it talks to remotes, and so gets the operator's proxies, agents and helpers.
    pub(crate) network: bool,
    /// The runs that its repository may have at the same time.
    pub(crate) share: Option<&'a Semaphore>,
    /// How long it may take.
    pub(crate) limit: Limit,
}

/// How long a run may take, and the option that says so.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limit {
    time: Duration,
    option: &'static str,
}

impl Limit {
    /// Of a run of git, or of one that talks to a remote.
    pub(crate) fn of(config: &Config, remote: bool) -> Self {
        if remote {
            Self { time: config.remote_timeout, option: "--remote-timeout" }
        } else {
            Self { time: config.timeout, option: "--timeout" }
        }
    }
}

/// What the calls in one repository have in common, its work trees included.
#[derive(Debug)]
pub(crate) struct Share {
    pub(crate) turn: Arc<tokio::sync::RwLock<()>>,
    /// Runs of git at the same time, so that others get theirs while it hangs.
    pub(crate) runs: Semaphore,
}

impl Default for Share {
    fn default() -> Self {
        Self { turn: Arc::default(), runs: Semaphore::new(RUNS_MAX / 2) }
    }
}

/// What came of it.
#[derive(Debug)]
pub(crate) struct Done {
    /// The exit code; `None` when a signal ended it, for example ours after the output was cut.
    pub(crate) code: Option<i32>,
    pub(crate) out: Vec<u8>,
    /// Whether there was more output than was kept.
    pub(crate) cut: bool,
    /// The first 64 KiB of what it complained about.
    pub(crate) err: Vec<u8>,
    /// The subcommand.
    pub(crate) what: OsString,
}

impl Done {
    /// Whether git was content; output that was cut counts as such.
    pub(crate) fn good(&self) -> bool {
        self.code == Some(0) || self.cut && self.code.is_none()
    }

    /// The output as text: what is not UTF-8 becomes U+FFFD, and the line feed at the end is dropped.
    pub(crate) fn text(&self) -> String {
        let mut text = lossy(&self.out);
        if text.ends_with('\n') {
            text.pop();
        }
        text
    }

    /// What git said, for errors: its own words, those of remotes, and names and values of the repository. Passwords in
    /// URLs are redacted.
    pub(crate) fn words(&self) -> String {
        let words = if self.err.trim_ascii().is_empty() { &self.out } else { &self.err };
        redact_urls(&lossy(words))
    }

    /// The complaints to be looked into: without lists of names, which stand on lines of their own after a tab, and what
    /// a remote said.
    pub(crate) fn complaint(&self) -> String {
        let text = lossy(&self.err);
        let of_others =
            |line: &&str| line.starts_with('\t') || line.starts_with("remote:") || line.contains("remote error:");
        text.lines().filter(|line| !of_others(line)).collect::<Vec<_>>().join("\n")
    }
}

impl Program {
    /// Finds git: `given`, or the first `git` in the absolute directories of `PATH`.
    pub(crate) fn find(given: Option<&Path>, environment: &[(String, String)]) -> Result<Self, ToolError> {
        let path = environment.iter().find(|(name, _)| name == "PATH").map(|(_, value)| value.as_str());
        // Entries that are not absolute would be looked up in the repository.
        let absolute = |dir: &PathBuf| dir.is_absolute();
        let dirs: Vec<PathBuf> = std::env::split_paths(path.unwrap_or_default()).filter(absolute).collect();
        let name = if cfg!(windows) { "git.exe" } else { "git" };
        let found = match given {
            Some(path) if path.is_absolute() => Some(path.to_owned()).filter(|path| path.is_file()),
            Some(_) => None,
            None => dirs.iter().map(|dir| dir.join(name)).find(|path| path.is_file()),
        };
        let path = found.ok_or_else(|| {
            ToolError::new("git was not found")
                .hint("Install git, or set its absolute path with --git or MCP_GIT_PROGRAM.")
        })?;
        let (mut base, mut network) = (Vec::new(), Vec::new());
        for (name, value) in environment {
            let value = match name.as_str() {
                "PATH" => std::env::join_paths(&dirs).unwrap_or_default(),
                _ => OsString::from(value),
            };
            let list = if NETWORK_VARS.contains(&name.as_str()) { &mut network } else { &mut base };
            list.push((OsString::from(name), value));
        }
        Ok(Self { path, base, network, slots: Semaphore::new(RUNS_MAX), memory: None })
    }

    /// The same with a bound on memory, in bytes.
    pub(crate) fn within(self, memory: u64) -> Self {
        Self { memory: Some(memory), ..self }
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The home that git takes `~` for.
    pub(crate) fn home(&self) -> Option<&OsStr> {
        self.base.iter().find(|(name, _)| name == "HOME").map(|(_, value)| value.as_os_str())
    }

    /// Runs it to its end.
    pub(crate) async fn run(&self, job: Job<'_>) -> Result<Done, ToolError> {
        let Limit { time, option } = job.limit;
        let what = job.args.first().cloned().unwrap_or_default();
        tokio::time::timeout(time, self.run_unbounded(job)).await.unwrap_or_else(|_| {
            let seconds = time.as_secs();
            Err(ToolError::new(format!("git {} did not finish within {seconds} s and was stopped", what.display()))
                .kind(ErrorKind::Timeout)
                .hint(format!(
                    "Request less, or the operator can raise the limit with {option}. Check git_status \
                     before trying again."
                )))
        })
    }

    async fn run_unbounded(&self, job: Job<'_>) -> Result<Done, ToolError> {
        let share = match job.share {
            Some(share) => share.acquire().await.map(Some),
            None => Ok(None),
        };
        let Ok(_share) = share else { return Err(ToolError::new("The server is shutting down")) };
        let Ok(_slot) = self.slots.acquire().await else { return Err(ToolError::new("The server is shutting down")) };
        let mut command = self.command(&job);
        let mut child = command.spawn().map_err(|error| {
            ToolError::new(format!("git could not be started: {}", error.kind()))
                .hint("Check whether the repository still exists.")
        })?;
        // Git is young yet: it has started nothing and taken nothing.
        if let Some(most) = self.memory {
            confine(&child, most);
        }
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let mut group = Group { child: Some(child) };
        let feed = async {
            if let Some(mut stdin) = stdin {
                // Git may stop reading before the end; its exit code says what that means.
                let _ = stdin.write_all(&job.input).await;
            }
        };
        let mut sink = Sink::new(job.keep);
        let mut complaints = Sink::new(Keep::Head(STDERR_MAX));
        let enough = tokio::sync::Notify::new();
        let stopped = {
            let read = async {
                if let Some(stdout) = stdout
                    && sink.fill(stdout).await
                {
                    enough.notify_one();
                }
            };
            let hear = async {
                if let Some(stderr) = stderr {
                    complaints.fill(stderr).await;
                }
            };
            tokio::select! {
                biased;
                () = enough.notified() => true,
                _ = async { tokio::join!(feed, read, hear) } => false,
            }
        };
        let code = if stopped {
            group.end().await;
            None
        } else {
            group.wait().await
        };
        let (cut, err, what) = (sink.cut, complaints.kept(), job.args.into_iter().next().unwrap_or_default());
        let most = self.memory.filter(|_| code != Some(0) && !stopped && starved(&err));
        most.map_or(Ok(Done { code, cut, out: sink.kept(), err, what }), |most| {
            let what = format!("git exceeded its memory limit ({} MiB)", most / 1024 / 1024);
            Err(ToolError::new(what).kind(ErrorKind::Limited { retry_after: None }).hint(
                "Request less: pass paths, or use a simpler pattern. The operator can raise the limit with \
                 --max-memory-bytes.",
            ))
        })
    }

    fn command(&self, job: &Job<'_>) -> Command {
        let mut command = Command::new(&self.path);
        // A stash gets no paths from us and cleans up by itself with a pathspec that is not literal.
        let literal = job.args.first().is_none_or(|first| first != "stash");
        command.arg("--no-pager").args(literal.then_some("--literal-pathspecs")).args(&job.args);
        command.current_dir(job.dir).env_clear();
        command.envs(self.base.iter().map(|(name, value)| (name, value)));
        command.envs(FIXED_VARS.iter().copied());
        if cfg!(windows) {
            command.env("NoDefaultCurrentDirectoryInExePath", "1");
        }
        if job.network {
            command.env("GIT_LFS_SKIP_SMUDGE", "0");
            command.envs(self.network.iter().map(|(name, value)| (name, value)));
            // Without a terminal nobody can answer ssh: a question must fail at once instead of waiting for the
            // deadline.
            command.env("SSH_ASKPASS_REQUIRE", "force");
        }
        command.env("GIT_CEILING_DIRECTORIES", job.dir.parent().unwrap_or(job.dir));
        command.env("GIT_CONFIG_COUNT", job.settings.len().to_string());
        for (at, (name, value)) in job.settings.iter().enumerate() {
            command.env(format!("GIT_CONFIG_KEY_{at}"), name).env(format!("GIT_CONFIG_VALUE_{at}"), value);
        }
        command.envs(job.vars.iter().map(|(name, value)| (name, value)));
        command.stdin(if job.input.is_empty() { Stdio::null() } else { Stdio::piped() });
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        #[cfg(unix)]
        command.process_group(0);
        command
    }
}

/// A running git and everything it started.
struct Group {
    child: Option<Child>,
}

impl Group {
    async fn wait(&mut self) -> Option<i32> {
        let code = match self.child.as_mut() {
            Some(child) => child.wait().await.ok().and_then(|status| status.code()),
            None => None,
        };
        // Reaped: there is nothing left to stop.
        self.child = None;
        code
    }

    /// Asks the group to end, and makes it.
    async fn end(&mut self) {
        if let Some(child) = self.child.take() {
            end(child).await;
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let Some(child) = self.child.take() else { return };
        // Without a runtime (it is being shut down), `kill_on_drop` ends git itself.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            signal(&child, false);
            runtime.spawn(end(child));
        }
    }
}

async fn end(mut child: Child) {
    signal(&child, false);
    for _ in 0..GRACE_STEPS {
        if over(&child) {
            break;
        }
        tokio::time::sleep(GRACE_STEP).await;
    }
    // The group first, then the wait: until its leader is reaped, its number cannot come to mean other processes.
    signal(&child, true);
    let _ = child.start_kill();
    let _ = child.wait().await;
}

#[cfg(unix)]
fn signal(child: &Child, kill: bool) {
    use rustix::process::{Pid, Signal, kill_process_group};
    let id = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
    if let Some(id) = id {
        let _ = kill_process_group(id, if kill { Signal::KILL } else { Signal::TERM });
    }
}

#[cfg(not(unix))]
fn signal(_: &Child, _: bool) {}

/// Bounds the memory that git, and each process it will start, can take for itself: heap and stacks of threads. Files
/// that are only mapped to be read, as git does with its packs, do not count.
#[cfg(target_os = "linux")]
fn confine(child: &Child, most: u64) {
    use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};
    let Some(id) = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw) else { return };
    // What is allowed already cannot be raised.
    let most = getrlimit(Resource::Data).maximum.map_or(most, |allowed| allowed.min(most));
    // It fails only when git is over already: what is reaped here is nobody else's yet.
    let _ = prlimit(Some(id), Resource::Data, Rlimit { current: Some(most), maximum: Some(most) });
}

#[cfg(not(target_os = "linux"))]
fn confine(_: &Child, _: u64) {}

/// Whether git says that it got no more memory.
fn starved(err: &[u8]) -> bool {
    let said = lossy(err);
    ["ut of memory", "Memory exhausted", "Cannot allocate memory"].iter().any(|words| said.contains(words))
}

/// Whether it has exited, without reaping it.
#[cfg(unix)]
fn over(child: &Child) -> bool {
    use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
    let Some(id) = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw) else { return true };
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
    !matches!(waitid(WaitId::Pid(id), options), Ok(None))
}

#[cfg(not(unix))]
fn over(_: &Child) -> bool {
    true
}

/// Takes output in, within its bounds.
struct Sink {
    keep: Keep,
    out: Vec<u8>,
    cut: bool,
    /// Bytes that were thrown away before those that are kept.
    passed: u64,
    /// Bytes since the last line feed or NUL.
    part: usize,
}

impl Sink {
    fn new(keep: Keep) -> Self {
        Self { keep, out: Vec::new(), cut: false, passed: 0, part: 0 }
    }

    /// Reads to the end; `true` when it stopped before, because there is more than may be kept.
    async fn fill(&mut self, mut from: impl AsyncRead + Unpin) -> bool {
        // Not filled beforehand: most answers are short, and memory that is not touched costs nothing.
        let mut chunk = Vec::with_capacity(64 * 1024);
        loop {
            chunk.clear();
            let read = match from.read_buf(&mut chunk).await {
                Ok(0) | Err(_) => return false,
                Ok(_) => chunk.as_slice(),
            };
            match self.keep {
                Keep::Upto(max) => {
                    self.take(read, max);
                    if self.cut {
                        return true;
                    }
                }
                Keep::From(start, max) => {
                    let before = start.saturating_sub(self.passed).min(read.len() as u64);
                    self.passed += before;
                    self.take(&read[usize::try_from(before).unwrap_or(read.len())..], max);
                    if self.cut {
                        return true;
                    }
                }
                Keep::Parts(each, max) => {
                    self.parts(read, each, max);
                    if self.cut {
                        return true;
                    }
                }
                Keep::Head(max) => self.take(read, max),
                Keep::Records(prefix, max) => self.records(read, prefix, max),
            }
        }
    }

    fn take(&mut self, read: &[u8], max: usize) {
        let room = max.saturating_sub(self.out.len());
        self.cut |= read.len() > room;
        self.out.extend_from_slice(&read[..read.len().min(room)]);
    }

    fn parts(&mut self, read: &[u8], each: usize, max: usize) {
        for piece in read.split_inclusive(|byte| matches!(byte, b'\n' | b'\0')) {
            let (body, end) = match piece.split_last() {
                Some((b'\n' | b'\0', body)) => (body, &piece[body.len()..]),
                _ => (piece, &piece[piece.len()..]),
            };
            let room = each.saturating_sub(self.part).min(body.len());
            self.take(&body[..room], max);
            self.take(end, max);
            self.part = if end.is_empty() { self.part + body.len() } else { 0 };
        }
    }

    /// The last record in `out` may be unfinished; a finished one that is not wanted is taken out again.
    fn records(&mut self, read: &[u8], prefix: &[u8], max: usize) {
        for piece in read.split_inclusive(|byte| *byte == 0) {
            self.take(piece, max);
            if self.out.last() == Some(&0) && !self.cut {
                let body = &self.out[..self.out.len() - 1];
                let start = body.iter().rposition(|byte| *byte == 0).map_or(0, |at| at + 1);
                if !body[start..].starts_with(prefix) {
                    self.out.truncate(start);
                }
            }
        }
    }

    fn kept(self) -> Vec<u8> {
        self.out
    }
}

/// Text with U+FFFD for what is not UTF-8.
pub(crate) fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Arguments from texts.
pub(crate) fn args(texts: &[&str]) -> Vec<OsString> {
    texts.iter().map(OsString::from).collect()
}

/// Arguments from texts, and more of them.
pub(crate) fn args_and<S: AsRef<OsStr>>(texts: &[&str], more: &[S]) -> Vec<OsString> {
    let mut all = args(texts);
    all.extend(more.iter().map(|text| text.as_ref().to_owned()));
    all
}

/// Set for every run. What is not named here or in the operator's share is not there at all.
const FIXED_VARS: &[(&str, &str)] = &[
    ("LC_ALL", "C.UTF-8"),
    ("LANGUAGE", "C"),
    ("GIT_CONFIG_NOSYSTEM", "1"),
    ("GIT_ATTR_NOSYSTEM", "1"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_PAGER", "cat"),
    ("GIT_EDITOR", ":"),
    ("GIT_SEQUENCE_EDITOR", ":"),
    ("GIT_MERGE_AUTOEDIT", "no"),
    // Nothing is fetched by the way, not even what a partial clone lacks.
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_ALLOW_PROTOCOL", "none"),
    ("GIT_PROTOCOL_FROM_USER", "0"),
    ("GIT_LFS_SKIP_SMUDGE", "1"),
    // Set and empty, these keep the configuration from naming programs.
    ("GIT_PROXY_COMMAND", ""),
    ("GIT_ASKPASS", ""),
    ("SSH_ASKPASS", ""),
];

/// Of the operator's variables, those for remotes only.
const NETWORK_VARS: &[&str] = &[
    "SSH_AUTH_SOCK",
    "SSH_ASKPASS",
    "GIT_ASKPASS",
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "GIT_SSL_CAINFO",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
];

/// Of the operator's variables, those that every run may have.
const BASE_VARS: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "TMPDIR",
    "TZ",
    "XDG_CONFIG_HOME",
    "GNUPGHOME",
    "GIT_CONFIG_GLOBAL",
    "GIT_AUTHOR_NAME",
    "GIT_AUTHOR_EMAIL",
    "GIT_COMMITTER_NAME",
    "GIT_COMMITTER_EMAIL",
    "SystemRoot",
    "USERPROFILE",
    "APPDATA",
    "LOCALAPPDATA",
    "TEMP",
];

/// The operator's share of the environment.
pub(crate) fn operators(get: &dyn Fn(&str) -> Option<String>) -> Vec<(String, String)> {
    let names = BASE_VARS.iter().chain(NETWORK_VARS);
    names.filter_map(|name| Some(((*name).to_owned(), get(name)?))).collect()
}

const RUNS_MAX: usize = 16;
const STDERR_MAX: usize = 64 * 1024;
const GRACE_STEP: Duration = Duration::from_millis(20);
const GRACE_STEPS: u32 = 100;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_long_parts_the_beginning_is_kept_however_they_arrive() {
        let whole = b"short\nlonger than that\0\n\nlonger";
        for size in 1..=whole.len() {
            let mut sink = Sink::new(Keep::Parts(6, 100));
            whole.chunks(size).for_each(|piece| sink.parts(piece, 6, 100));
            assert_eq!(
                (sink.out.as_slice(), sink.cut),
                (&b"short\nlonger\0\n\nlonger"[..], false),
                "in pieces of {size}"
            );
        }
    }

    #[test]
    fn only_wanted_records_are_kept_however_they_arrive() {
        let whole = b"160000 a\x00100644 b\x00160000 c\x00";
        for size in 1..whole.len() {
            let mut sink = Sink::new(Keep::Records(b"160000", 100));
            for piece in whole.chunks(size) {
                sink.records(piece, b"160000", 100);
            }
            assert_eq!(sink.out, b"160000 a\x00160000 c\x00", "in pieces of {size}");
        }
    }
}
