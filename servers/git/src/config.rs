//! What the operator decides. Plain data without a command line parser; flags are applied over [`Config::from_env`].

use crate::run;
use linchpin_kit::{Fault, RootsPolicy, TEXT_BYTES_MAX, ToolChoice, Vars};
use std::path::PathBuf;
use std::time::Duration;

/// What a client's roots may do here.
pub const ROOTS: &[RootsPolicy] = &[RootsPolicy::Ignore, RootsPolicy::Narrow, RootsPolicy::Use];

/// Everything the operator can set.
#[derive(Debug, Clone)]
pub struct Config {
    /// Repositories that can be used, with everything below their top level. A path inside a repository stands for the
    /// whole of it. (`--repository`, `-r`, repeatable; `MCP_GIT_REPOSITORIES`, one per line.)
    pub repositories: Vec<PathBuf>,
    /// Every repository on this machine can be used, as in the published server without `--repository`. (`--allow-any`)
    pub allow_any: bool,
    /// Offer `git_fetch`, `git_pull` and `git_push`. (`--allow-remote`)
    pub allow_remote: bool,
    /// The only hosts that remotes may be on, by the names or addresses that their URLs have; empty means any. Redirects are
    /// not followed then. (`--remote-host`, repeatable; `MCP_GIT_REMOTE_HOSTS`, separated by `,`)
    pub remote_hosts: Vec<String>,
    /// Let `git_push` replace commits of a remote when asked to. (`--allow-force`)
    pub allow_force: bool,
    /// Run what a repository's own configuration and hooks name: hooks, filters, drivers, helpers. (`--trust-repo-config`)
    pub trust_repo_config: bool,
    /// Sign commits and tags with the key of the user's own configuration. (`--sign`)
    pub sign: bool,
    /// What a client's roots do, one of [`ROOTS`]; `None` is `Use` when neither `repositories` nor `allow_any` is set, `Ignore`
    /// otherwise. Where something is configured `Use` is as `Narrow`. (`--roots`)
    pub roots: Option<RootsPolicy>,
    /// How long one run of git may take; default 60 s. (`--timeout`, seconds)
    pub timeout: Duration,
    /// How long one run that talks to a remote may take; default 300 s. (`--remote-timeout`, seconds)
    pub remote_timeout: Duration,
    /// Bytes of text an answer holds before it is cut; default 100 000. (`--max-output-bytes`)
    pub max_output_bytes: usize,
    /// The absolute path of git; `None` looks for it in `PATH`. (`--git`)
    pub program: Option<PathBuf>,
    /// The variables of the operator's environment that git gets to see; everything else is left out.
    pub environment: Vec<(String, String)>,
    /// Which tools are offered and under which names.
    pub tools: ToolChoice,
}

impl Default for Config {
    /// No repository allowed, nothing trusted, nothing remote; the environment is this process's, as far as git needs it.
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
            program: None,
            environment: run::operators(&|name| std::env::var(name).ok()),
            tools: ToolChoice::default(),
        }
    }
}

impl Config {
    /// The default configuration changed by the `MCP_GIT_*` variables: `REPOSITORIES` (one per line), `ALLOW_ANY`,
    /// `ALLOW_REMOTE`, `REMOTE_HOSTS` (separated by `,`), `ALLOW_FORCE`, `TRUST_REPO_CONFIG`, `SIGN`, `ROOTS`, `TIMEOUT`, `REMOTE_TIMEOUT`, `MAX_OUTPUT_BYTES`,
    /// `PROGRAM`, and those of the choice of tools.
    ///
    /// # Errors
    /// When a variable cannot be understood; the message names it.
    pub fn from_env(vars: Vars<'_>) -> Result<Self, Fault> {
        let mut config = Self {
            environment: run::operators(&|name| vars.text(name)),
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
        for (name, target) in
            [("MCP_GIT_TIMEOUT", &mut config.timeout), ("MCP_GIT_REMOTE_TIMEOUT", &mut config.remote_timeout)]
        {
            let mut seconds = target.as_secs();
            vars.number(name, &mut seconds)?;
            *target = Duration::from_secs(seconds);
        }
        vars.number("MCP_GIT_MAX_OUTPUT_BYTES", &mut config.max_output_bytes)?;
        config.roots = vars.read("MCP_GIT_ROOTS", |text| RootsPolicy::parse(text, ROOTS))?;
        config.program = vars.text("MCP_GIT_PROGRAM").filter(|path| !path.is_empty()).map(PathBuf::from);
        Ok(config)
    }
}
