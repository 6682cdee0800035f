//! Which databases, and how they are reached: connection strings, `PG*` variables, service and password files, as libpq
//! has them.

mod pgpass;
mod service;
mod target;
mod url;

pub(crate) use target::{Host, Target};
pub(crate) use url::percent_encode;
pub use url::shown_url;

use crate::Access;
use linchpin_kit::{Secret, ToolChoice, ToolError, Vars};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

/// Encryption of a connection, as in libpq's `sslmode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SslMode {
    /// Never.
    Disable,
    /// Only if the server refuses an unencrypted connection.
    Allow,
    /// If the server supports it. A failed handshake is an error, without an unencrypted retry.
    Prefer,
    /// Always; the certificate is checked, as with `VerifyCa`, only if there is a root certificate: `sslrootcert` or the
    /// default file.
    Require,
    /// Always; the certificate must be signed by `sslrootcert`.
    VerifyCa,
    /// Always; the certificate must also match the host.
    VerifyFull,
}

impl FromStr for SslMode {
    type Err = ToolError;

    fn from_str(text: &str) -> Result<Self, ToolError> {
        Ok(match text {
            "disable" => Self::Disable,
            "allow" => Self::Allow,
            "prefer" => Self::Prefer,
            "require" => Self::Require,
            "verify-ca" => Self::VerifyCa,
            "verify-full" => Self::VerifyFull,
            other => {
                return Err(ToolError::new(format!("Unknown sslmode: {other}"))
                    .hint("Use disable, allow, prefer, require, verify-ca or verify-full."));
            }
        })
    }
}

/// The configuration. The default is a drop-in for the published server, without a database.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Config {
    /// The connection string: `postgres://user@host:port/database?sslmode=…` or `host=… dbname=…`.
    pub url: Option<Secret>,
    /// A TOML file with several databases; see the README.
    pub file: Option<PathBuf>,
    /// Whether statements may change data. Default: read-only.
    pub access: Access,
    /// The schemas whose relations may be read; also the `search_path`. Empty means all.
    pub schemas: Vec<String>,
    /// Maximum rows of a result. Default 1,000.
    pub max_rows: usize,
    /// Maximum bytes of rows in a result. Default 1 MiB.
    pub max_bytes: usize,
    /// Timeout of a statement. Default 30 s.
    pub statement_timeout: Duration,
    /// Timeout of waiting for a lock. Default 2 s.
    pub lock_timeout: Duration,
    /// Accepts a role with more than read privileges; see [`crate::Postgres`]. Default `false`.
    pub allow_privileged_role: bool,
    /// Additional functions allowed in read-only mode: `schema.name`, all overloads.
    pub allow_functions: Vec<String>,
    /// Maximum connections to each database. Default 4.
    pub connections: usize,
    /// The `PG*` variables and the home directory.
    pub environment: Environment,
    /// The enabled tools. `read_only` takes precedence over `access`.
    pub tools: ToolChoice,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            url: None,
            file: None,
            access: Access::ReadOnly,
            schemas: Vec::new(),
            max_rows: 1_000,
            max_bytes: 1 << 20,
            statement_timeout: Duration::from_secs(30),
            lock_timeout: Duration::from_secs(2),
            allow_privileged_role: false,
            allow_functions: Vec::new(),
            connections: 4,
            environment: Environment::default(),
            tools: ToolChoice::default(),
        }
    }
}

/// The environment that libpq would use.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Environment {
    /// Connection parameters by their libpq names (`host`, `port`, `user`, `dbname`, `sslmode`, …).
    pub parameters: BTreeMap<String, String>,
    /// `PGPASSWORD`, or the content of `PGPASSWORD_FILE` or `PGPASSWORD_KEYRING`.
    pub password: Option<Secret>,
    /// `PGPASSFILE`, or `~/.pgpass`.
    pub pass_file: Option<PathBuf>,
    /// `PGSERVICEFILE`, or `~/.pg_service.conf`.
    pub service_file: Option<PathBuf>,
    /// `~/.postgresql/root.crt`, used if it exists and nothing else is set.
    pub root_certificate: Option<PathBuf>,
    /// The name of the operating system's user.
    pub user: Option<String>,
}

/// Variables that are connection parameters, including unsupported ones: requests for more security must not be ignored
/// silently.
const PARAMETERS: [(&str, &str); 27] = [
    ("PGHOST", "host"),
    ("PGPORT", "port"),
    ("PGUSER", "user"),
    ("PGDATABASE", "dbname"),
    ("PGSSLMODE", "sslmode"),
    ("PGSSLROOTCERT", "sslrootcert"),
    ("PGSSLCERT", "sslcert"),
    ("PGSSLKEY", "sslkey"),
    ("PGCONNECT_TIMEOUT", "connect_timeout"),
    ("PGAPPNAME", "application_name"),
    ("PGSERVICE", "service"),
    ("PGCHANNELBINDING", "channel_binding"),
    ("PGGSSENCMODE", "gssencmode"),
    ("PGHOSTADDR", "hostaddr"),
    ("PGMINPROTOCOLVERSION", "min_protocol_version"),
    ("PGOPTIONS", "options"),
    ("PGREQUIREAUTH", "require_auth"),
    ("PGREQUIREPEER", "requirepeer"),
    ("PGREQUIRESSL", "requiressl"),
    ("PGSSLCERTMODE", "sslcertmode"),
    ("PGSSLCRL", "sslcrl"),
    ("PGSSLCRLDIR", "sslcrldir"),
    ("PGSSLMAXPROTOCOLVERSION", "ssl_max_protocol_version"),
    ("PGSSLMINPROTOCOLVERSION", "ssl_min_protocol_version"),
    ("PGSSLNEGOTIATION", "sslnegotiation"),
    ("PGSSLPASSWORD", "sslpassword"),
    ("PGTARGETSESSIONATTRS", "target_session_attrs"),
];

impl Config {
    /// Changes some of these options.
    ///
    /// ```
    /// # use linchpin_postgres::Config;
    /// let config = Config::default().with(|config| config.max_rows = 100);
    /// ```
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    /// From `DATABASE_URL` or `DATABASE_URI` (and `…_FILE`, `…_KEYRING`), the `PG*` variables, and
    /// `MCP_POSTGRES_CONFIG`, `_ACCESS_MODE`, `_SCHEMAS`, `_MAX_ROWS`, `_MAX_BYTES`, `_STATEMENT_TIMEOUT` and
    /// `_LOCK_TIMEOUT` (milliseconds), `_ALLOW_PRIVILEGED_ROLE`, `_ALLOW_FUNCTIONS`, `_CONNECTIONS`, and those of every
    /// server.
    ///
    /// # Errors
    /// When a variable is invalid.
    pub fn from_env(vars: Vars<'_>) -> Result<Self, ToolError> {
        let mut config = Self { tools: vars.tool_choice("MCP_POSTGRES")?, ..Self::default() };
        config.url = vars.secret_of(&["DATABASE_URL", "DATABASE_URI"])?;
        config.file = vars.path("MCP_POSTGRES_CONFIG");
        config.access = vars.parsed("MCP_POSTGRES_ACCESS_MODE")?.unwrap_or(config.access);
        config.schemas = vars.list("MCP_POSTGRES_SCHEMAS", ',').unwrap_or_default();
        config.allow_functions = vars.list("MCP_POSTGRES_ALLOW_FUNCTIONS", ',').unwrap_or_default();
        vars.number("MCP_POSTGRES_MAX_ROWS", &mut config.max_rows)?;
        vars.number("MCP_POSTGRES_MAX_BYTES", &mut config.max_bytes)?;
        vars.number("MCP_POSTGRES_CONNECTIONS", &mut config.connections)?;
        for (name, target) in [
            ("MCP_POSTGRES_STATEMENT_TIMEOUT", &mut config.statement_timeout),
            ("MCP_POSTGRES_LOCK_TIMEOUT", &mut config.lock_timeout),
        ] {
            let mut milliseconds = u64::try_from(target.as_millis()).unwrap_or(u64::MAX);
            vars.number(name, &mut milliseconds)?;
            *target = Duration::from_millis(milliseconds);
        }
        vars.switch("MCP_POSTGRES_ALLOW_PRIVILEGED_ROLE", &mut config.allow_privileged_role)?;
        let home = vars.text("HOME").or_else(|| vars.text("USERPROFILE")).map(PathBuf::from);
        let at_home = |name: &str| home.as_ref().map(|home| home.join(name));
        config.environment = Environment {
            parameters: PARAMETERS
                .iter()
                .filter_map(|(name, parameter)| Some(((*parameter).to_owned(), vars.text(name)?)))
                .collect(),
            password: vars.secret("PGPASSWORD")?,
            pass_file: vars.path("PGPASSFILE").or_else(|| at_home(".pgpass")),
            service_file: vars.path("PGSERVICEFILE").or_else(|| at_home(".pg_service.conf")),
            root_certificate: at_home(".postgresql/root.crt"),
            user: vars.text("USER").or_else(|| vars.text("LOGNAME")).or_else(|| vars.text("USERNAME")),
        };
        Ok(config)
    }

    /// Whether statements may change data.
    #[must_use]
    pub fn writes(&self) -> bool {
        self.access == Access::Write && !self.tools.read_only
    }

    /// The databases, the default one first, and warnings.
    pub(crate) fn targets(&self) -> Result<(Vec<Target>, Vec<String>), ToolError> {
        let mut warnings = Vec::new();
        let mut targets = Vec::new();
        let environment = &self.environment;
        let in_environment =
            ["host", "dbname", "user", "service"].iter().any(|p| environment.parameters.contains_key(*p));
        if let Some(url) = &self.url {
            targets.push(Target::resolve("default", url.reveal(), None, self, &mut warnings)?);
        }
        if let Some(path) = &self.file {
            targets.extend(self.listed_in(path, &mut warnings)?);
        }
        if targets.is_empty() && in_environment {
            targets.push(Target::resolve("default", "", None, self, &mut warnings)?);
        }
        if targets.is_empty() {
            return Err(ToolError::new("Please provide a database URL as a command-line argument")
                .hint("For example postgres://reader@localhost/mydb; or set DATABASE_URL, or PGHOST and PGDATABASE."));
        }
        Ok((targets, warnings))
    }

    fn listed_in(&self, path: &Path, warnings: &mut Vec<String>) -> Result<Vec<Target>, ToolError> {
        let text = service::read_file(path)?;
        let file: File = toml::from_str(&text).map_err(|e| {
            // The parser's message shows the line, which may hold a password.
            ToolError::new(format!("{} is invalid: {}", path.display(), e.message())).hint(
                "The file needs [databases.NAME] tables with url, password_file and schemas, and default = \"NAME\".",
            )
        })?;
        let mut names: Vec<&String> = file.databases.keys().collect();
        if let Some(default) = &file.default {
            if !file.databases.contains_key(default) {
                return Err(ToolError::new(format!(
                    "{} does not define its default database {default}",
                    path.display()
                )));
            }
            names.sort_by_key(|name| *name != default);
        }
        let targets = names.into_iter().map(|name| {
            let entry = &file.databases[name];
            let mut target = Target::resolve(name, entry.url.reveal(), entry.password_file.as_deref(), self, warnings)?;
            if let Some(schemas) = &entry.schemas {
                target.schemas.clone_from(schemas);
            }
            Ok(target)
        });
        targets.collect()
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    default: Option<String>,
    databases: BTreeMap<String, Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    url: Secret,
    password_file: Option<PathBuf>,
    schemas: Option<Vec<String>>,
}

#[cfg(test)]
mod tests;
