//! `linchpin serve sequential-thinking`.

use super::{Main, Native};
use clap::Args;
use linchpin::Server;
use linchpin_kit::{Service, ToolChoice, ToolError, Vars};
use linchpin_sequential_thinking::{Config, SERVICE, SequentialThinking, ThoughtLog};
use std::time::Duration;

#[derive(Debug, Args)]
pub(crate) struct SequentialThinkingArgs {
    /// Maximum number of thoughts in a history; the oldest are dropped [default: 1000].
    #[arg(long, value_name = "COUNT")]
    max_thoughts: Option<usize>,

    /// Maximum size of a thought, in bytes [default: 64 KiB].
    #[arg(long, value_name = "BYTES")]
    max_thought_bytes: Option<usize>,

    /// Maximum number of branches in a history; the oldest are dropped [default: 100].
    #[arg(long, value_name = "COUNT")]
    max_branches: Option<usize>,

    /// How long an unused history without a session is kept, in seconds [default: 3600].
    #[arg(long, value_name = "SECONDS")]
    ttl: Option<u64>,

    /// Log thoughts to standard error, like the published server.
    #[arg(long)]
    log_thoughts: bool,
}

impl Native for SequentialThinkingArgs {
    const NAME: &'static str = "sequential-thinking";
    const TITLE: &'static str = "Sequential thinking";
    const ABOUT: &'static str = "Step-by-step thinking with revisions and branches";
    const EXAMPLES: &'static str = "  \
  linchpin serve sequential-thinking
  linchpin serve sequential-thinking --toolsets all
  linchpin serve sequential-thinking --http 127.0.0.1:8931
";
    const NOTES: &'static str = "Each flag has an equivalent environment variable, MCP_SEQUENTIAL_THINKING_ and its \
                                 name; the command line takes precedence. DISABLE_THOUGHT_LOGGING=false is --log-thoughts.";
    const SERVICE: Service = SERVICE;
    const MAIN: Main = Main::Nothing;

    type Config = Config;

    fn config(self, vars: Vars<'_>) -> Result<Config, ToolError> {
        let mut config = Config::from_env(vars)?;
        let limits = &mut config.limits;
        for (given, limit) in [
            (self.max_thoughts, &mut limits.thoughts_max),
            (self.max_thought_bytes, &mut limits.thought_bytes_max),
            (self.max_branches, &mut limits.branches_max),
        ] {
            if let Some(given) = given {
                *limit = given;
            }
        }
        if let Some(seconds) = self.ttl {
            limits.ttl = Duration::from_secs(seconds);
        }
        if self.log_thoughts {
            config.log = ThoughtLog::to_stderr();
        }
        Ok(config)
    }

    fn choice(config: &mut Config) -> &mut ToolChoice {
        &mut config.tools
    }

    /// Requires a handle for calls, because clients share the server.
    fn shared(config: &mut Config) {
        config.one_client = false;
    }

    fn add(config: Config, server: Server) -> Result<(Server, Vec<String>), ToolError> {
        let (thinking, warnings) = SequentialThinking::open(config)?;
        Ok((thinking.add_to(server)?.state(()), warnings))
    }
}
