//! Which databases, and how they are reached: connection strings, `PG*` variables, service and password files, as libpq
//! has them.

mod databases;
mod pgpass;
mod service;
mod target;
mod url;

pub(crate) use target::{Host, Target};
pub(crate) use url::percent_encode;
pub use url::shown_url;

use crate::Access;
use linchpin_kit::{Given, Secret, ToolChoice, ToolError, Vars, flag};
use std::collections::BTreeMap;
use std::path::PathBuf;
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

linchpin_kit::options! {
    /// The configuration. The default is a drop-in for the published server, without a database.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Config: "MCP_POSTGRES" then settle {
        /// The database: `postgres://user@host:port/database?sslmode=verify-full`, or `host=… dbname=…`.
        pub url: Option<Secret> = None
            => flag::url("URL").only_word("URL").variable("DATABASE_URL").variable("DATABASE_URI").secret(),
        /// TOML file with several databases.
        ///
        /// See the README.
        pub file: Option<PathBuf> = None => flag::file("PATH").named("config"),
        /// Whether statements may write.
        pub access: Access = Access::ReadOnly
            => flag::choice("read-only|write").named("access-mode").default("read-only"),
        /// Limit access to these schemas.
        ///
        /// Those whose relations may be read; also the `search_path`. Empty means all.
        pub schemas: Vec<String> = Vec::new() => flag::list("NAME,…"),
        /// Maximum number of rows in a result.
        pub max_rows: usize = 1_000 => flag::number("N"),
        /// Maximum size of the rows in a result, in bytes.
        pub max_bytes: usize = 1 << 20 => flag::bytes(),
        /// Timeout of a statement, in milliseconds.
        pub statement_timeout: Duration = Duration::from_secs(30) => flag::millis(),
        /// Timeout of a lock wait, in milliseconds.
        pub lock_timeout: Duration = Duration::from_secs(2) => flag::millis(),
        /// Number of connections to each database.
        pub connections: usize = 4 => flag::number("N"),
        /// Connect even if the role can do more than read.
        ///
        /// See [`crate::Postgres`].
        pub allow_privileged_role: bool = false => flag::switch(),
        /// Additional functions allowed in read-only mode.
        ///
        /// All overloads of each.
        pub allow_functions: Vec<String> = Vec::new() => flag::list("SCHEMA.NAME,…"),
        /// The `PG*` variables and the home directory.
        pub environment: Environment = Environment::default(),
        /// The enabled tools. `read_only` takes precedence over `access`.
        pub tools: ToolChoice = ToolChoice::default() => flag::group(),
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
    fn settle(&mut self, vars: Vars<'_>, _: &Given) -> Result<(), ToolError> {
        let home = vars.text("HOME").or_else(|| vars.text("USERPROFILE")).map(PathBuf::from);
        let at_home = |name: &str| home.as_ref().map(|home| home.join(name));
        self.environment = Environment {
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
        Ok(())
    }

    /// Whether statements may change data.
    #[must_use]
    pub fn writes(&self) -> bool {
        self.access == Access::Write && !self.tools.read_only
    }
}

#[cfg(test)]
mod tests;
