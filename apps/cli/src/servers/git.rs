//! `linchpin serve git`.

use super::{Main, Native, Reach};
use clap::{Args, ValueHint};
use linchpin::Server;
use linchpin_git::{Config, Git, ROOTS, SERVICE};
use linchpin_kit::{RootsPolicy, Service, ToolChoice, ToolError, Vars};
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, Args)]
pub(crate) struct GitArgs {
    /// Repositories to serve, or directories in them [default: those in the client's roots, not over HTTP].
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    directories: Vec<PathBuf>,

    /// Same as DIR, as in the published server. May be repeated.
    #[arg(short, long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    repository: Vec<PathBuf>,

    /// Without DIR: allow every repository on this machine.
    #[arg(long)]
    allow_any: bool,

    /// Offer git_fetch, git_pull and git_push.
    #[arg(long)]
    allow_remote: bool,

    /// Allow remotes on this host only. May be repeated [default: any].
    #[arg(long, value_name = "HOST", value_hint = ValueHint::Hostname)]
    remote_host: Vec<String>,

    /// Allow git_push to force-push when requested.
    #[arg(long)]
    allow_force: bool,

    /// Run programs configured by a repository: hooks, filters, drivers, helpers.
    #[arg(long)]
    trust_repo_config: bool,

    /// Sign commits and tags with your own key.
    #[arg(long)]
    sign: bool,

    /// How to use the client's roots [default: ignore, or use if none of DIR, --allow-any and --http is given].
    #[arg(long, value_name = "ignore|narrow|use")]
    roots: Option<String>,

    /// Timeout of a git command, in seconds [default: 60].
    #[arg(long, value_name = "SECONDS")]
    timeout: Option<u64>,

    /// Timeout of a git command that contacts a remote, in seconds [default: 300].
    #[arg(long, value_name = "SECONDS")]
    remote_timeout: Option<u64>,

    /// Maximum text of a result, in bytes [default: 100000].
    #[arg(long, value_name = "BYTES")]
    max_output_bytes: Option<usize>,

    /// Maximum memory of each git process, in bytes; Linux only [default: 2147483648].
    #[arg(long, value_name = "BYTES")]
    max_memory_bytes: Option<u64>,

    /// Absolute path of the git program [default: the first in PATH].
    #[arg(long, value_name = "PATH", value_hint = ValueHint::ExecutablePath)]
    git: Option<PathBuf>,
}

impl Native for GitArgs {
    const NAME: &'static str = "git";
    const TITLE: &'static str = "Git";
    const ABOUT: &'static str = "Git, with hooks, filters and other repository-supplied programs disabled";
    const EXAMPLES: &'static str = "  \
  linchpin serve git .
  linchpin serve git --read-only ~/work/one ~/work/two
  linchpin serve git . --allow-remote
";
    const NOTES: &'static str = "Each flag has an equivalent environment variable, MCP_GIT_ and its name \
                                 (MCP_GIT_REPOSITORIES, one per line; MCP_GIT_PROGRAM for --git); the command line takes precedence.";
    const SERVICE: Service = SERVICE;
    const MAIN: Main = Main::Flag("--repository");
    const TAKES_SEVERAL: bool = true;

    type Config = Config;

    fn config(self, vars: Vars<'_>) -> Result<Config, ToolError> {
        let mut config = Config::from_env(vars)?;
        if !self.directories.is_empty() || !self.repository.is_empty() {
            config.repositories = [self.directories, self.repository].concat();
        }
        if !self.remote_host.is_empty() {
            config.remote_hosts = self.remote_host;
        }
        for (given, set) in [
            (self.allow_any, &mut config.allow_any),
            (self.allow_remote, &mut config.allow_remote),
            (self.allow_force, &mut config.allow_force),
            (self.trust_repo_config, &mut config.trust_repo_config),
            (self.sign, &mut config.sign),
        ] {
            *set |= given;
        }
        if let Some(policy) = &self.roots {
            config.roots = Some(RootsPolicy::parse(policy, ROOTS)?);
        }
        if let Some(seconds) = self.timeout {
            config.timeout = Duration::from_secs(seconds);
        }
        if let Some(seconds) = self.remote_timeout {
            config.remote_timeout = Duration::from_secs(seconds);
        }
        if let Some(bytes) = self.max_output_bytes {
            config.max_output_bytes = bytes;
        }
        if let Some(bytes) = self.max_memory_bytes {
            config.max_memory_bytes = bytes;
        }
        if self.git.is_some() {
            config.program = self.git;
        }
        Ok(config)
    }

    fn choice(config: &mut Config) -> &mut ToolChoice {
        &mut config.tools
    }

    fn reach(config: &mut Config) -> Option<Reach<'_>> {
        let named = config.allow_any || !config.repositories.is_empty();
        Some(Reach { named, roots: &mut config.roots, how: "a repository: DIR or MCP_GIT_REPOSITORIES" })
    }

    fn add(config: Config, server: Server) -> Result<(Server, Vec<String>), ToolError> {
        let (git, warnings) = Git::open(config)?;
        Ok((git.add_to(server)?.state(()), warnings))
    }
}
