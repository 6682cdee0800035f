//! The git program, its environment and its limits.

use crate::exec::output::{Done, Keep, Sink, lossy};

use linchpin_kit::{ErrorKind, ToolError};
use linchpin_process::{Graceful, Limits};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;
use tokio::sync::Semaphore;

/// The program, and what all its runs have in common.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) path: PathBuf,
    /// Variables of the operator's environment that every run gets.
    pub(crate) base: Vec<(OsString, OsString)>,
    /// Additional variables for runs that contact remotes.
    pub(crate) network: Vec<(OsString, OsString)>,
    /// Maximum number of concurrent runs.
    pub(crate) slots: Semaphore,
    /// Memory limit of each process of a run in bytes, where the system can enforce it.
    pub(crate) memory: Option<u64>,
}

/// A single run.
#[derive(Debug)]
pub(crate) struct Job<'a> {
    /// The working directory.
    pub(crate) dir: &'a Path,
    /// The arguments, beginning with the subcommand.
    pub(crate) args: Vec<OsString>,
    /// Configuration of this run; takes precedence over every file.
    pub(crate) settings: &'a [(String, String)],
    /// Environment variables of this run.
    pub(crate) vars: Vec<(&'static str, OsString)>,
    /// Git's input.
    pub(crate) input: Vec<u8>,
    /// How to read its output.
    pub(crate) keep: Keep,
    /// Whether it contacts remotes, and so gets the operator's proxies, agents and helpers.
    pub(crate) network: bool,
    /// The concurrent runs allowed for its repository.
    pub(crate) repo_runs: Option<&'a Semaphore>,
    /// Its time limit.
    pub(crate) limit: Limit,
}

/// A time limit, and the option that sets it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limit {
    pub(crate) time: Duration,
    pub(crate) option: &'static str,
}

/// State shared by the calls in a repository, including its work trees.
#[derive(Debug)]
pub(crate) struct RepoState {
    pub(crate) turn: Arc<tokio::sync::RwLock<()>>,
    /// Concurrent runs of git, so that other repositories get theirs even if this one hangs.
    pub(crate) runs: Semaphore,
}

impl Default for RepoState {
    fn default() -> Self {
        Self { turn: Arc::default(), runs: Semaphore::new(RUNS_MAX / 2) }
    }
}

impl Program {
    /// Finds git: `given`, or the first `git` in the absolute directories of `PATH`.
    pub(crate) fn find(given: Option<&Path>, environment: &[(String, String)]) -> Result<Self, ToolError> {
        let path = environment.iter().find(|(name, _)| name == "PATH").map(|(_, value)| value.as_str());
        // Relative entries would be looked up in the repository.
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

    /// The same with a memory limit in bytes.
    pub(crate) fn within(self, memory: u64) -> Self {
        Self { memory: Some(memory), ..self }
    }

    /// The path of the program.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The home directory that git uses for `~`.
    pub(crate) fn home(&self) -> Option<&OsStr> {
        self.base.iter().find(|(name, _)| name == "HOME").map(|(_, value)| value.as_os_str())
    }

    /// Runs it to completion.
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

    pub(crate) async fn run_unbounded(&self, job: Job<'_>) -> Result<Done, ToolError> {
        let slot = match job.repo_runs {
            Some(runs) => runs.acquire().await.map(Some),
            None => Ok(None),
        };
        let Ok(_repo_slot) = slot else { return Err(ToolError::new("The server is shutting down")) };
        let Ok(_slot) = self.slots.acquire().await else { return Err(ToolError::new("The server is shutting down")) };
        let mut command = self.command(&job);
        let mut group = Graceful::start(&mut command).map_err(|error| {
            ToolError::new(format!("git could not be started: {}", error.kind()))
                .hint("Check whether the repository still exists.")
        })?;
        let Some(child) = group.child() else { return Err(ToolError::new("git could not be started")) };
        // Git was just started: it has no child processes and holds no locks yet.
        if let Some(memory) = self.memory {
            let limits = |limits: &mut Limits| (limits.memory, limits.cpu) = (memory, job.limit.time * CPU_SHARE);
            Limits::default().with(limits).apply_to(child);
        }
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let feed = async {
            if let Some(mut stdin) = stdin {
                // Git may stop reading early; its exit code tells whether that is an error.
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

    pub(crate) fn command(&self, job: &Job<'_>) -> Command {
        let mut command = Command::new(&self.path);
        // A stash gets no paths from us, and cleans up with a pathspec that is not literal.
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
            // There is no terminal on which somebody could answer ssh: a prompt must fail at once, not at the deadline.
            command.env("SSH_ASKPASS_REQUIRE", "force");
        }
        command.env("GIT_CEILING_DIRECTORIES", job.dir.parent().unwrap_or(job.dir));
        command.env("GIT_CONFIG_COUNT", job.settings.len().to_string());
        for (at, (name, value)) in job.settings.iter().enumerate() {
            command.env(format!("GIT_CONFIG_KEY_{at}"), name).env(format!("GIT_CONFIG_VALUE_{at}"), value);
        }
        command.envs(job.vars.iter().map(|(name, value)| (name, value)));
        command.stdin(if job.input.is_empty() { Stdio::null() } else { Stdio::piped() });
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }
}

/// Whether git reports that it ran out of memory.
fn starved(err: &[u8]) -> bool {
    let said = lossy(err);
    ["ut of memory", "Memory exhausted", "Cannot allocate memory"].iter().any(|words| said.contains(words))
}

/// Arguments from strings.
pub(crate) fn args(texts: &[&str]) -> Vec<OsString> {
    texts.iter().map(OsString::from).collect()
}

/// Arguments from strings, followed by more.
pub(crate) fn args_and<S: AsRef<OsStr>>(texts: &[&str], more: &[S]) -> Vec<OsString> {
    let mut all = args(texts);
    all.extend(more.iter().map(|text| text.as_ref().to_owned()));
    all
}

/// Set for every run. No other variables are passed, except those of the operator's environment listed below.
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
    // Nothing is fetched on demand, not even objects that a partial clone lacks.
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_ALLOW_PROTOCOL", "none"),
    ("GIT_PROTOCOL_FROM_USER", "0"),
    ("GIT_LFS_SKIP_SMUDGE", "1"),
    // Empty values keep the configuration from naming programs.
    ("GIT_PROXY_COMMAND", ""),
    ("GIT_ASKPASS", ""),
    ("SSH_ASKPASS", ""),
];

/// Variables of the operator's environment, for remotes only.
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

/// Variables of the operator's environment, for every run.
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

/// Selects variables of the operator's environment.
pub(crate) fn operators(get: &dyn Fn(&str) -> Option<String>) -> Vec<(String, String)> {
    let names = BASE_VARS.iter().chain(NETWORK_VARS);
    names.filter_map(|name| Some(((*name).to_owned(), get(name)?))).collect()
}

const RUNS_MAX: usize = 16;
/// Processors that one git process may use for its whole time limit.
const CPU_SHARE: u32 = 64;

const STDERR_MAX: usize = 64 * 1024;
