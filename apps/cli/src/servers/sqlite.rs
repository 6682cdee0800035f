//! `linchpin serve sqlite`.

use super::{Main, Native};
use clap::{Args, ValueHint};
use linchpin::Server;
use linchpin_kit::{RootsPolicy, Service, ToolChoice, ToolError, Vars};
use linchpin_sqlite::{Config, ROOTS, SERVICE, Sqlite};
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, Args)]
pub(crate) struct SqliteArgs {
    /// The database file, or :memory: [default: ./sqlite_mcp_server.db].
    #[arg(value_name = "PATH", value_hint = ValueHint::FilePath)]
    path: Option<PathBuf>,

    /// Same as PATH, as in the published server.
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath, conflicts_with = "path")]
    db_path: Option<PathBuf>,

    /// Create the file if it is missing [default: true].
    #[arg(long, value_name = "true|false", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    create: Option<bool>,

    /// Maximum number of rows in a result [default: 1000].
    #[arg(long, value_name = "N")]
    max_rows: Option<usize>,

    /// Maximum text of a result, in bytes [default: 100000].
    #[arg(long, value_name = "BYTES")]
    max_bytes: Option<usize>,

    /// Timeout of a call, in seconds [default: 30].
    #[arg(long, value_name = "SECONDS")]
    timeout: Option<u64>,

    /// How long a call waits for another program's lock, in seconds [default: 5].
    #[arg(long, value_name = "SECONDS")]
    busy_timeout: Option<u64>,

    /// Enforce foreign keys.
    #[arg(long)]
    foreign_keys: bool,

    /// Format results in Python notation, like the published server.
    #[arg(long)]
    compat_repr: bool,

    /// Store the memo of insights in this file.
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath)]
    memo_file: Option<PathBuf>,

    /// Offer sqlite_import_csv, for CSV files in this directory.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    import_dir: Option<PathBuf>,

    /// How to use the client's roots [default: narrow for the default path, else ignore].
    #[arg(long, value_name = "ignore|narrow")]
    roots: Option<String>,
}

impl Native for SqliteArgs {
    const NAME: &'static str = "sqlite";
    const TITLE: &'static str = "SQLite";
    const ABOUT: &'static str = "One SQLite database, without access to other files";
    const EXAMPLES: &'static str = "  \
  linchpin serve sqlite shop.db
  linchpin serve sqlite --read-only --timeout 5 /var/lib/app/app.db
  linchpin serve sqlite notes.db --memo-file insights.jsonl
";
    const NOTES: &'static str = "Each flag has an equivalent environment variable, MCP_SQLITE_ and its name; the \
                                 command line takes precedence.";
    const SERVICE: Service = SERVICE;
    const MAIN: Main = Main::Word;

    type Config = Config;

    fn config(self, vars: Vars<'_>) -> Result<Config, ToolError> {
        let mut config = Config::from_env(vars)?;
        if let Some(path) = self.path.or(self.db_path) {
            config.db_path = path;
        }
        if let Some(create) = self.create {
            config.create = create;
        }
        if let Some(rows) = self.max_rows {
            config.max_rows = rows;
        }
        if let Some(bytes) = self.max_bytes {
            config.max_bytes = bytes;
        }
        if let Some(seconds) = self.timeout {
            config.timeout = Duration::from_secs(seconds);
        }
        if let Some(seconds) = self.busy_timeout {
            config.busy_timeout = Duration::from_secs(seconds);
        }
        config.foreign_keys |= self.foreign_keys;
        config.compat_repr |= self.compat_repr;
        if self.memo_file.is_some() {
            config.memo_file = self.memo_file;
        }
        if self.import_dir.is_some() {
            config.import_dir = self.import_dir;
        }
        if let Some(policy) = &self.roots {
            config.roots = Some(RootsPolicy::parse(policy, ROOTS)?);
        }
        Ok(config)
    }

    fn choice(config: &mut Config) -> &mut ToolChoice {
        &mut config.tools
    }

    fn add(config: Config, server: Server) -> Result<(Server, Vec<String>), ToolError> {
        let (sqlite, warnings) = Sqlite::open(config)?;
        Ok((sqlite.add_to(server)?.state(()), warnings))
    }
}
