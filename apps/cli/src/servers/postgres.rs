//! `linchpin serve postgres`.

use super::{Main, Native};
use clap::{Args, ValueHint};
use linchpin::Server;
use linchpin_kit::{Service, ToolChoice, ToolError, Vars};
use linchpin_postgres::{Config, Postgres, SERVICE, Secret};
use std::path::PathBuf;
use std::time::Duration;

#[derive(Args)]
pub(crate) struct PostgresArgs {
    /// The database: postgres://user@host:port/database?sslmode=verify-full, or host=… dbname=… [default: DATABASE_URL].
    #[arg(value_name = "URL", value_hint = ValueHint::Url)]
    url: Option<String>,

    /// TOML file with several databases.
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath)]
    config: Option<PathBuf>,

    /// Whether statements may write [default: read-only].
    #[arg(long, value_name = "read-only|write")]
    access_mode: Option<String>,

    /// Limit access to these schemas.
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    schemas: Vec<String>,

    /// Maximum number of rows in a result [default: 1000].
    #[arg(long, value_name = "N")]
    max_rows: Option<usize>,

    /// Maximum size of the rows in a result, in bytes [default: 1 MiB].
    #[arg(long, value_name = "BYTES")]
    max_bytes: Option<usize>,

    /// Timeout of a statement, in milliseconds [default: 30000].
    #[arg(long, value_name = "MS")]
    statement_timeout: Option<u64>,

    /// Timeout of a lock wait, in milliseconds [default: 2000].
    #[arg(long, value_name = "MS")]
    lock_timeout: Option<u64>,

    /// Number of connections to each database [default: 4].
    #[arg(long, value_name = "N")]
    connections: Option<usize>,

    /// Connect even if the role can do more than read.
    #[arg(long)]
    allow_privileged_role: bool,

    /// Additional functions allowed in read-only mode.
    #[arg(long, value_name = "SCHEMA.NAME,…", value_delimiter = ',')]
    allow_functions: Vec<String>,
}

/// The URL may hold a password.
impl std::fmt::Debug for PostgresArgs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PostgresArgs").finish_non_exhaustive()
    }
}

impl Native for PostgresArgs {
    const NAME: &'static str = "postgres";
    const TITLE: &'static str = "PostgreSQL";
    const ABOUT: &'static str = "PostgreSQL databases, read-only unless you say otherwise";
    const EXAMPLES: &'static str = "  \
  linchpin serve postgres postgres://reader@localhost/shop
  PGPASSWORD_FILE=/run/secrets/db \\
    linchpin serve postgres 'postgres://reader@db/shop?sslmode=verify-full'
  linchpin serve postgres --config databases.toml --schemas app
";
    const NOTES: &'static str = "PGHOST, PGUSER, PGPASSWORD, PGSERVICE, ~/.pgpass and the like work as in psql; \
                                 PGPASSWORD_FILE is a file with the password, PGPASSWORD_KEYRING=SERVICE/ACCOUNT an entry \
                                 of the keyring (in programs built with the feature keyring). Each flag has an \
                                 equivalent environment variable, MCP_POSTGRES_ and its name; the command line takes precedence.";
    const SERVICE: Service = SERVICE;
    const MAIN: Main = Main::Word;
    const SCHEMES: &'static [&'static str] = &["postgres", "postgresql"];

    type Config = Config;

    fn config(self, vars: Vars<'_>) -> Result<Config, ToolError> {
        let mut config = Config::from_env(vars)?;
        if let Some(url) = self.url {
            config.url = Some(Secret::new(url));
        }
        if self.config.is_some() {
            config.file = self.config;
        }
        if let Some(mode) = self.access_mode {
            config.access = mode.parse()?;
        }
        if !self.schemas.is_empty() {
            config.schemas = self.schemas;
        }
        if let Some(rows) = self.max_rows {
            config.max_rows = rows;
        }
        if let Some(bytes) = self.max_bytes {
            config.max_bytes = bytes;
        }
        if let Some(time) = self.statement_timeout {
            config.statement_timeout = Duration::from_millis(time);
        }
        if let Some(time) = self.lock_timeout {
            config.lock_timeout = Duration::from_millis(time);
        }
        if let Some(connections) = self.connections {
            config.connections = connections;
        }
        config.allow_privileged_role |= self.allow_privileged_role;
        if !self.allow_functions.is_empty() {
            config.allow_functions = self.allow_functions;
        }
        Ok(config)
    }

    fn address(value: &str) -> String {
        linchpin_postgres::shown_url(value).unwrap_or_else(|| "URL".to_owned())
    }

    fn choice(config: &mut Config) -> &mut ToolChoice {
        &mut config.tools
    }

    fn add(config: Config, server: Server) -> Result<(Server, Vec<String>), ToolError> {
        let (postgres, warnings) = Postgres::open(config)?;
        Ok((postgres.add_to(server)?.state(()), warnings))
    }
}
