//! The options, and where they come from.

use crate::exec::program::{Limit, operators};
use linchpin_kit::{Given, RootsPolicy, TEXT_BYTES_MAX, ToolChoice, ToolError, Vars, flag};
use std::path::PathBuf;
use std::time::Duration;

/// The supported roots policies.
pub const ROOTS: &[RootsPolicy] = &[RootsPolicy::Ignore, RootsPolicy::Narrow, RootsPolicy::Use];

linchpin_kit::options! {
    /// The configuration. The default allows no repository and no remote and trusts nothing.
    #[derive(Debug, Clone)]
    pub struct Config: "MCP_GIT" then settle {
        /// Repositories to serve, or directories in them.
        ///
        /// Everything below their top level is allowed: a path inside a repository means the whole repository. In
        /// `MCP_GIT_REPOSITORIES` one per line.
        pub repositories: Vec<PathBuf> = Vec::new()
            => flag::repeated("DIR", '\n').named("repository").variable("MCP_GIT_REPOSITORIES").short('r').word("DIR")
                .directories().default("those in the client's roots, not over HTTP"),
        /// Without DIR: allow every repository on this machine.
        ///
        /// As the published server does without `--repository`.
        pub allow_any: bool = false => flag::switch(),
        /// Offer `git_fetch`, `git_pull` and `git_push`.
        pub allow_remote: bool = false => flag::switch(),
        /// Allow remotes on this host only. May be repeated.
        ///
        /// Names or addresses as in the URLs of remotes; empty means any. If set, redirects are not followed.
        pub remote_hosts: Vec<String> = Vec::new()
            => flag::repeated("HOST", ',').named("remote-host").variable("MCP_GIT_REMOTE_HOSTS").host().default("any"),
        /// Allow `git_push` to force-push when requested.
        ///
        /// That replaces commits of a remote.
        pub allow_force: bool = false => flag::switch(),
        /// Run programs configured by a repository: hooks, filters, drivers, helpers.
        pub trust_repo_config: bool = false => flag::switch(),
        /// Sign commits and tags with your own key.
        ///
        /// The key of the user's configuration.
        pub sign: bool = false => flag::switch(),
        /// How to use the client's roots.
        ///
        /// One of [`ROOTS`]; `None` is `Ignore`. If a repository is configured, `Use` is like `Narrow`; otherwise the
        /// client decides, and may name every repository on the disk: use it only for clients with the rights of this
        /// process, such as the one that started it, not for a server that others can connect to.
        pub roots: Option<RootsPolicy> = None
            => flag::roots(ROOTS).default("ignore, or use if none of DIR, --allow-any and --http is given"),
        /// Timeout of a git command, in seconds.
        ///
        /// At most a day.
        pub timeout: Duration = Duration::from_secs(60) => flag::seconds(),
        /// Timeout of a git command that contacts a remote, in seconds.
        ///
        /// At most a day.
        pub remote_timeout: Duration = Duration::from_secs(300) => flag::seconds(),
        /// Maximum size of a result's text, in bytes.
        ///
        /// The same holds for its structured content as JSON. At least 1,000.
        pub max_output_bytes: usize = TEXT_BYTES_MAX => flag::bytes(),
        /// Maximum memory of each git process, in bytes; Linux only.
        ///
        /// Without files mapped for reading. At least 64 MiB.
        pub max_memory_bytes: u64 = 2 << 30 => flag::bytes(),
        /// Absolute path of the git program.
        pub program: Option<PathBuf> = None
            => flag::program("PATH").named("git").variable("MCP_GIT_PROGRAM").default("the first in PATH"),
        /// The environment variables passed to git; all others are removed.
        pub environment: Vec<(String, String)> = operators(&|name| std::env::var(name).ok()),
        /// The enabled tools and their names.
        pub tools: ToolChoice = ToolChoice::default() => flag::group(),
    }
}

impl Config {
    fn settle(&mut self, vars: Vars<'_>, _: &Given) -> Result<(), ToolError> {
        self.environment = operators(&|name| vars.raw(name));
        Ok(())
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
