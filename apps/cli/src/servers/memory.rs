//! `linchpin serve memory`.

use super::{Main, Native};
use clap::{Args, ValueHint};
use linchpin::server::Server;
use linchpin_kit::{Fault, Service, ToolChoice, Vars};
use linchpin_memory::{Config, Memory, SERVICE};
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, Args)]
pub(crate) struct MemoryArgs {
    /// The memory file [default: mcp-memory/memory.jsonl where programs keep data].
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath, conflicts_with = "scope")]
    file: Option<PathBuf>,

    /// A memory of its own, for a project or a purpose, beside the default one.
    #[arg(long, value_name = "NAME")]
    scope: Option<String>,

    /// Add what another memory file holds; what is known already is skipped.
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath)]
    import: Option<PathBuf>,

    /// Most entities to remember [default: 50000].
    #[arg(long, value_name = "N")]
    max_entities: Option<usize>,

    /// Largest memory file, in bytes [default: 64 MiB].
    #[arg(long, value_name = "BYTES")]
    max_file_bytes: Option<u64>,

    /// How many backups to keep, one a day at most; 0 for none [default: 3].
    #[arg(long, value_name = "N")]
    backup: Option<u32>,

    /// How many changes can be undone; 0 keeps no history [default: 200].
    #[arg(long, value_name = "N")]
    history: Option<usize>,

    /// Keep when entities were created and changed [default: true].
    #[arg(long, value_name = "true|false", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    timestamps: Option<bool>,

    /// Cut answers behind this many bytes; 0 never cuts, like the published server [default: 100000].
    #[arg(long, value_name = "BYTES")]
    max_result_bytes: Option<usize>,

    /// How long a change waits for other programs that use the file, in milliseconds [default: 15000].
    #[arg(long, value_name = "MS")]
    lock_wait: Option<u64>,
}

impl Native for MemoryArgs {
    const NAME: &'static str = "memory";
    const TITLE: &'static str = "Memory";
    const ABOUT: &'static str = "What is to be remembered across conversations, as a graph in one file";
    const EXAMPLES: &'static str = "  \
  linchpin serve memory
  linchpin serve memory --scope my-project
  linchpin serve memory --file ~/notes/memory.jsonl --backup 10
";
    const NOTES: &'static str = "MEMORY_FILE_PATH names the file too. Each flag has an environment variable of the same \
                                 meaning, MCP_MEMORY_ and its name; the command line wins.";
    const SERVICE: Service = SERVICE;
    const MAIN: Main = Main::Flag("--file");

    type Config = Config;

    fn config(self, vars: Vars<'_>) -> Result<Config, Fault> {
        let mut config = Config::from_env(vars)?;
        // A file and a scope exclude each other; the command line beats both of the environment.
        if self.file.is_some() || self.scope.is_some() {
            (config.file, config.scope, config.file_of_published) = (self.file, self.scope, false);
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

    fn add(config: Config, server: Server) -> Result<(Server, Vec<String>), Fault> {
        let (memory, warnings) = Memory::open(config)?;
        Ok((memory.add_to(server)?.state(()), warnings))
    }
}
