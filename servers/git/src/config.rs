//! The options, and where they come from.

use crate::exec::program::{Limit, operators};
use linchpin_kit::{RootsPolicy, TEXT_BYTES_MAX, ToolChoice, ToolError, Vars};
use std::path::PathBuf;
use std::time::Duration;

/// The supported roots policies.
pub const ROOTS: &[RootsPolicy] = &[RootsPolicy::Ignore, RootsPolicy::Narrow, RootsPolicy::Use];

/// The configuration.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Config {
    /// The allowed repositories, with everything below their top level. A path inside a repository means the whole
    /// repository. (`--repository`, `-r`, repeatable; `MCP_GIT_REPOSITORIES`, one per line.)
    pub repositories: Vec<PathBuf>,
    /// Allows every repository on this machine, as in the published server without `--repository`. (`--allow-any`)
    pub allow_any: bool,
    /// Enables `git_fetch`, `git_pull` and `git_push`. (`--allow-remote`)
    pub allow_remote: bool,
    /// The allowed hosts of remotes, as names or addresses in their URLs; empty means any. If set, redirects are not
    /// followed. (`--remote-host`, repeatable; `MCP_GIT_REMOTE_HOSTS`, separated by `,`)
    pub remote_hosts: Vec<String>,
    /// Allows `git_push` with `force`, which replaces commits of a remote. (`--allow-force`)
    pub allow_force: bool,
    /// Runs the hooks, filters, drivers and helpers of a repository. (`--trust-repo-config`)
    pub trust_repo_config: bool,
    /// Signs commits and tags with the key of the user's configuration. (`--sign`)
    pub sign: bool,
    /// The effect of a client's roots, one of [`ROOTS`]; `None` is `Ignore`. If a repository is configured, `Use` is
    /// like `Narrow`; otherwise the client decides, and may name every repository on the disk: use it only for clients
    /// with the rights of this process, such as the one that started it, not for a server that others can connect to.
    /// Default `None`. (`--roots`)
    pub roots: Option<RootsPolicy>,
    /// Timeout of one run of git; default 60 s, at most a day. (`--timeout`, seconds)
    pub timeout: Duration,
    /// Timeout of one run that contacts a remote; default 300 s, at most a day. (`--remote-timeout`, seconds)
    pub remote_timeout: Duration,
    /// Maximum bytes of a result's text, and of its structured content as JSON, before it is truncated; default 100
    /// 000, at least 1 000. (`--max-output-bytes`)
    pub max_output_bytes: usize,
    /// Maximum bytes of memory of each git process, without files mapped for reading; default 2 GiB, at least 64 MiB.
    /// Enforced only on Linux. (`--max-memory-bytes`)
    pub max_memory_bytes: u64,
    /// The absolute path of git; `None` searches `PATH`. (`--git`)
    pub program: Option<PathBuf>,
    /// The environment variables passed to git; all others are removed.
    pub environment: Vec<(String, String)>,
    /// The enabled tools and their names.
    pub tools: ToolChoice,
}

impl Default for Config {
    /// No repository allowed, nothing trusted, no remotes; the environment of this process, as far as git needs it.
    fn default() -> Self {
        Self {
            repositories: Vec::new(),
            allow_any: false,
            allow_remote: false,
            remote_hosts: Vec::new(),
            allow_force: false,
            trust_repo_config: false,
            sign: false,
            roots: None,
            timeout: Duration::from_secs(60),
            remote_timeout: Duration::from_secs(300),
            max_output_bytes: TEXT_BYTES_MAX,
            max_memory_bytes: 2 * 1024 * 1024 * 1024,
            program: None,
            environment: operators(&|name| std::env::var(name).ok()),
            tools: ToolChoice::default(),
        }
    }
}

impl Config {
    /// Changes some of these options.
    ///
    /// ```
    /// # use linchpin_git::Config;
    /// let config = Config::default().with(|config| config.allow_remote = true);
    /// ```
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    /// The default configuration with the `MCP_GIT_*` variables applied: `REPOSITORIES` (one per line), `ALLOW_ANY`,
    /// `ALLOW_REMOTE`, `REMOTE_HOSTS` (separated by `,`), `ALLOW_FORCE`, `TRUST_REPO_CONFIG`, `SIGN`, `ROOTS`,
    /// `TIMEOUT`, `REMOTE_TIMEOUT`, `MAX_OUTPUT_BYTES`, `MAX_MEMORY_BYTES`, `PROGRAM`, and those of the choice of
    /// tools.
    ///
    /// # Errors
    /// When a variable is invalid; the message names it.
    pub fn from_env(vars: Vars<'_>) -> Result<Self, ToolError> {
        let mut config = Self {
            environment: operators(&|name| vars.raw(name)),
            tools: vars.tool_choice("MCP_GIT")?,
            ..Self::default()
        };
        config.repositories =
            vars.list("MCP_GIT_REPOSITORIES", '\n').unwrap_or_default().into_iter().map(PathBuf::from).collect();
        config.remote_hosts = vars.list("MCP_GIT_REMOTE_HOSTS", ',').unwrap_or_default();
        for (name, target) in [
            ("MCP_GIT_ALLOW_ANY", &mut config.allow_any),
            ("MCP_GIT_ALLOW_REMOTE", &mut config.allow_remote),
            ("MCP_GIT_ALLOW_FORCE", &mut config.allow_force),
            ("MCP_GIT_TRUST_REPO_CONFIG", &mut config.trust_repo_config),
            ("MCP_GIT_SIGN", &mut config.sign),
        ] {
            vars.switch(name, target)?;
        }
        vars.seconds("MCP_GIT_TIMEOUT", &mut config.timeout)?;
        vars.seconds("MCP_GIT_REMOTE_TIMEOUT", &mut config.remote_timeout)?;
        vars.number("MCP_GIT_MAX_OUTPUT_BYTES", &mut config.max_output_bytes)?;
        vars.number("MCP_GIT_MAX_MEMORY_BYTES", &mut config.max_memory_bytes)?;
        config.roots = vars.read("MCP_GIT_ROOTS", |text| RootsPolicy::parse(text, ROOTS))?;
        config.program = vars.path("MCP_GIT_PROGRAM");
        Ok(config)
    }

    /// How long a run of git may take, or one that talks to a remote.
    pub(crate) fn limit(&self, remote: bool) -> Limit {
        if remote {
            Limit { time: self.remote_timeout, option: "--remote-timeout" }
        } else {
            Limit { time: self.timeout, option: "--timeout" }
        }
    }

    /// Checks the ranges of numbers.
    pub(crate) fn check(&self) -> Result<(), ToolError> {
        let usable = Duration::from_nanos(1)..=TIME_MAX;
        for (name, time) in [("timeout", self.timeout), ("remote-timeout", self.remote_timeout)] {
            if !usable.contains(&time) {
                let variable = name.replace('-', "_").to_uppercase();
                return Err(ToolError::new(format!("Invalid timeout for one run of git: {} seconds", time.as_secs()))
                    .hint(format!("--{name} (MCP_GIT_{variable}) takes 1 to {}.", TIME_MAX.as_secs())));
            }
        }
        if self.max_memory_bytes < MEMORY_MIN {
            return Err(ToolError::new(format!("{} bytes are not enough memory for git", self.max_memory_bytes))
                .hint(format!("--max-memory-bytes (MCP_GIT_MAX_MEMORY_BYTES) takes {MEMORY_MIN} or more.")));
        }
        if !(OUTPUT_MIN..=OUTPUT_MAX).contains(&self.max_output_bytes) {
            return Err(ToolError::new(format!("Invalid maximum size of a result: {} bytes", self.max_output_bytes))
                .hint(format!("--max-output-bytes (MCP_GIT_MAX_OUTPUT_BYTES) takes {OUTPUT_MIN} to {OUTPUT_MAX}.")));
        }
        Ok(())
    }
}

/// The option that allows remotes.
pub(crate) const REMOTE: &str = "--allow-remote";
const TIME_MAX: Duration = Duration::from_secs(24 * 60 * 60);

const MEMORY_MIN: u64 = 64 * 1024 * 1024;

const OUTPUT_MIN: usize = 1_000;

const OUTPUT_MAX: usize = 100_000_000;
