//! `linchpin serve memory`.

use super::{Main, Native};
use clap::{Args, ValueHint};
use linchpin::Server;
use linchpin_kit::{Service, ToolChoice, ToolError, Vars};
use linchpin_memory::{Config, Memory, SERVICE};
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, Args)]
pub(crate) struct MemoryArgs {
    /// The memory file [default: mcp-memory/memory.jsonl in the user's data directory].
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with_all = ["file", "scope"])]
    path: Option<PathBuf>,

    /// Same as FILE.
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath, conflicts_with = "scope")]
    file: Option<PathBuf>,

    /// Use a separate memory, for example for a project, next to the default one.
    #[arg(long, value_name = "NAME")]
    scope: Option<String>,

    /// Import another memory file, skipping what exists already.
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath)]
    import: Option<PathBuf>,

    /// Maximum number of entities [default: 50000].
    #[arg(long, value_name = "N")]
    max_entities: Option<usize>,

    /// Maximum size of the memory file, in bytes [default: 64 MiB].
    #[arg(long, value_name = "BYTES")]
    max_file_bytes: Option<u64>,

    /// Number of backups to keep, at most one per day; 0 for none [default: 3].
    #[arg(long, value_name = "N")]
    backup: Option<u32>,

    /// Number of changes that can be undone; 0 disables the history [default: 200].
    #[arg(long, value_name = "N")]
    history: Option<usize>,

    /// Record when entities were created and changed [default: true].
    #[arg(long, value_name = "true|false", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    timestamps: Option<bool>,

    /// Maximum size of a result, in bytes; 0 for no limit, like the published server [default: 100000].
    #[arg(long, value_name = "BYTES")]
    max_result_bytes: Option<usize>,

    /// How long a change waits for other programs' locks on the file, in milliseconds [default: 15000].
    #[arg(long, value_name = "MS")]
    lock_wait: Option<u64>,
}

impl Native for MemoryArgs {
    const NAME: &'static str = "memory";
    const TITLE: &'static str = "Memory";
    const ABOUT: &'static str = "A knowledge-graph memory that persists across conversations";
    const EXAMPLES: &'static str = "  \
  linchpin serve memory
  linchpin serve memory --scope my-project
  linchpin serve memory ~/notes/memory.jsonl --backup 10
";
    const NOTES: &'static str = "MEMORY_FILE_PATH also sets the file. Each flag has an equivalent environment \
                                variable, MCP_MEMORY_ and its name; the command line takes precedence.";
    const SERVICE: Service = SERVICE;
    const MAIN: Main = Main::Flag("--file");

    type Config = Config;

    fn config(self, vars: Vars<'_>) -> Result<Config, ToolError> {
        let mut config = Config::from_env(vars)?;
        // A file and a scope are mutually exclusive; the command line overrides both variables.
        let file = self.path.or(self.file);
        if file.is_some() || self.scope.is_some() {
            (config.file, config.scope, config.file_of_published) = (file, self.scope, false);
        }
        if self.import.is_some() {
            config.import = self.import;
        }
        if let Some(most) = self.max_entities {
            config.max_entities = most;
        }
        if let Some(bytes) = self.max_file_bytes {
            config.max_file_bytes = bytes;
        }
        if let Some(count) = self.backup {
            config.backup = count;
        }
        if let Some(count) = self.history {
            config.history = count;
        }
        if let Some(kept) = self.timestamps {
            config.timestamps = kept;
        }
        if let Some(bytes) = self.max_result_bytes {
            config.max_result_bytes = bytes;
        }
        if let Some(wait) = self.lock_wait {
            config.lock_wait = Duration::from_millis(wait);
        }
        Ok(config)
    }

    fn choice(config: &mut Config) -> &mut ToolChoice {
        &mut config.tools
    }

    fn add(config: Config, server: Server) -> Result<(Server, Vec<String>), ToolError> {
        let (memory, warnings) = Memory::open(config)?;
        Ok((memory.add_to(server)?.state(()), warnings))
    }
}
