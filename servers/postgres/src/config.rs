//! Which databases, and how they are reached: connection strings, `PG*` variables, service and password files, as libpq
//! has them.

use crate::Access;
use crate::resources::{percent_decode, percent_encode};
use linchpin_kit::{Secret, ToolChoice, ToolError, Vars};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

/// Maximum bytes of a password, service or configuration file.
const FILE_BYTES_MAX: u64 = 1 << 20;

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
        let text = read_file(path)?;
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

/// A place a server listens at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Host {
    Tcp(String, u16),
    /// The directory of the socket, and the port in its name.
    Unix(PathBuf, u16),
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(host, port) => write!(f, "{host}:{port}"),
            Self::Unix(directory, port) => write!(f, "{}/.s.PGSQL.{port}", directory.display()),
        }
    }
}

/// A database, everything looked up.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    pub(crate) name: String,
    pub(crate) hosts: Vec<Host>,
    pub(crate) user: String,
    pub(crate) database: String,
    /// For each of the hosts.
    passwords: Vec<Option<Secret>>,
    pub(crate) ssl: SslMode,
    /// A file with certificates, or `system`.
    pub(crate) root_certificate: Option<String>,
    pub(crate) client_certificate: Option<(PathBuf, PathBuf)>,
    pub(crate) connect_timeout: Duration,
    pub(crate) application_name: String,
    pub(crate) schemas: Vec<String>,
    /// `user@host:port` as in the URIs of resources.
    pub(crate) authority: String,
}

/// Connection parameters as a connection string says them.
#[derive(Default)]
struct Parameters {
    values: BTreeMap<String, String>,
    /// The authority of a URL as it was written, without the password.
    authority: Option<String>,
    /// See [`shown_url`].
    shown: Option<String>,
}

/// Parameters that change nothing here.
const IGNORED: [&str; 12] = [
    "gssdelegation",
    "load_balance_hosts",
    "max_protocol_version",
    "keepalives",
    "keepalives_idle",
    "keepalives_interval",
    "keepalives_count",
    "tcp_user_timeout",
    "sslcompression",
    "sslsni",
    "fallback_application_name",
    "client_encoding",
];

/// Parameters of libpq that are not supported, and that may matter too much to be ignored.
const REFUSED: [&str; 19] = [
    "gssencmode",
    "gsslib",
    "hostaddr",
    "krbsrvname",
    "min_protocol_version",
    "options",
    "passfile",
    "replication",
    "require_auth",
    "requirepeer",
    "requiressl",
    "servicefile",
    "ssl_max_protocol_version",
    "ssl_min_protocol_version",
    "sslcertmode",
    "sslcrl",
    "sslcrldir",
    "sslnegotiation",
    "sslpassword",
];

/// Values of these that ask for nothing else than what is done anyway.
const AS_IT_IS: [(&str, &[&str]); 7] = [
    ("gssencmode", &["disable", "prefer"]),
    ("min_protocol_version", &["3.0"]),
    ("requiressl", &["0"]),
    ("ssl_max_protocol_version", &["TLSv1.3"]),
    ("ssl_min_protocol_version", &["TLSv1", "TLSv1.1", "TLSv1.2"]),
    ("sslcertmode", &["allow"]),
    ("sslnegotiation", &["postgres"]),
];

/// Parameters that are understood.
const KNOWN: [&str; 14] = [
    "host",
    "port",
    "user",
    "password",
    "dbname",
    "sslmode",
    "sslrootcert",
    "sslcert",
    "sslkey",
    "connect_timeout",
    "application_name",
    "service",
    "channel_binding",
    "target_session_attrs",
];

impl Target {
    fn resolve(
        name: &str,
        text: &str,
        password_file: Option<&Path>,
        config: &Config,
        warnings: &mut Vec<String>,
    ) -> Result<Self, ToolError> {
        let environment = &config.environment;
        let Parameters { values: mut given, authority, .. } = parameters(text)?;
        let service = given.get("service").or_else(|| environment.parameters.get("service")).cloned();
        if let Some(service) = service {
            for (key, value) in service_parameters(&service, environment.service_file.as_deref())? {
                given.entry(key).or_insert(value);
            }
        }
        for (key, value) in &environment.parameters {
            given.entry(key.clone()).or_insert_with(|| value.clone());
        }
        let not_taken = |key: &str| !KNOWN.contains(&key) && !IGNORED.contains(&key);
        for (other, value) in given.iter().filter(|(key, _)| not_taken(key)) {
            if AS_IT_IS.iter().any(|(key, values)| key == other && values.contains(&value.as_str())) {
                continue;
            }
            if REFUSED.contains(&other.as_str()) {
                let variable = PARAMETERS.iter().find(|(_, key)| key == other).map(|(name, _)| format!(" ({name})"));
                let variable = variable.unwrap_or_default();
                return Err(ToolError::new(format!("The connection parameter {other}{variable} is not supported"))
                    .hint("Remove it if the connection does not require it."));
            }
            warnings.push(format!("Warning: the connection parameter {other} is unknown and ignored"));
        }
        let get = |key: &str| given.get(key).filter(|value| !value.is_empty());
        if get("channel_binding").is_some_and(|value| value == "require") {
            return Err(ToolError::new("channel_binding=require is not supported")
                .hint("Use sslmode=verify-full, which also protects against interception."));
        }
        if get("target_session_attrs").is_some_and(|value| value != "any") {
            return Err(
                ToolError::new("target_session_attrs is not supported").hint("Specify the single host to connect to.")
            );
        }
        let user = get("user").or(environment.user.as_ref()).cloned().ok_or_else(|| {
            ToolError::new("No user name").hint("Add it to the URL (postgres://user@host/database), or set PGUSER.")
        })?;
        let database = get("dbname").unwrap_or(&user).clone();
        let hosts = hosts(get("host").map_or("", String::as_str), get("port").map_or("", String::as_str))?;
        let root_certificate = get("sslrootcert").cloned();
        let home_root = environment.root_certificate.as_ref().filter(|path| path.exists());
        let mut ssl = get("sslmode").map_or(Ok(SslMode::Prefer), |mode| mode.parse())?;
        if root_certificate.as_deref() == Some("system") {
            if get("sslmode").is_some() && ssl != SslMode::VerifyFull {
                return Err(
                    ToolError::new("sslrootcert=system requires sslmode=verify-full").hint("Change one of the two.")
                );
            }
            ssl = SslMode::VerifyFull;
        }
        let root_certificate = root_certificate.or_else(|| home_root.map(|path| path.display().to_string()));
        if ssl == SslMode::VerifyCa && root_certificate.is_none() {
            return Err(ToolError::new("sslmode=verify-ca requires sslrootcert").hint(
                "Set it to the file with the CA certificate, or use verify-full with the system's certificates.",
            ));
        }
        // As libpq has it, also for a file that is in the usual place and not named.
        if ssl == SslMode::Require && root_certificate.is_some() {
            ssl = SslMode::VerifyCa;
        }
        let seconds = get("connect_timeout").map_or(Ok(10), |text| text.parse::<u64>()).map_err(|_| {
            ToolError::new("connect_timeout is not a number of seconds").hint("Use an integer, for example 10.")
        })?;
        let mut target = Self {
            name: name.to_owned(),
            authority: authority.unwrap_or_else(|| own_authority(&user, &hosts[0])),
            hosts,
            user,
            database,
            passwords: Vec::new(),
            ssl,
            root_certificate,
            client_certificate: get("sslcert").zip(get("sslkey")).map(|(cert, key)| (cert.into(), key.into())),
            connect_timeout: Duration::from_secs(if seconds == 0 { 60 } else { seconds.clamp(2, 300) }),
            application_name: get("application_name").map_or("linchpin-postgres", |v| v).to_owned(),
            schemas: config.schemas.clone(),
        };
        let said = match (password_file, get("password")) {
            (Some(path), _) => Some(Secret::new(first_line(path)?)),
            (None, Some(password)) => Some(Secret::new(password)),
            (None, None) => environment.password.clone(),
        };
        target.passwords = match said {
            Some(password) => vec![Some(password); target.hosts.len()],
            None => target.passwords_from_file(environment.pass_file.as_deref(), warnings),
        };
        Ok(target)
    }

    /// What to log in with at one of the hosts.
    pub(crate) fn password(&self, host: &Host) -> Option<&Secret> {
        self.hosts.iter().zip(&self.passwords).find(|(of, _)| *of == host)?.1.as_ref()
    }

    fn passwords_from_file(&self, path: Option<&Path>, warnings: &mut Vec<String>) -> Vec<Option<Secret>> {
        let Some(path) = path.filter(|path| path.exists()) else { return Vec::new() };
        if let Some(why) = too_open(path) {
            warnings.push(format!("Warning: {} is ignored: {why}", path.display()));
            return Vec::new();
        }
        let text = match read_file(path) {
            Ok(text) => text,
            Err(fault) => {
                warnings.push(format!("Warning: {}", fault.message()));
                return Vec::new();
            }
        };
        let lines: Vec<_> = text.lines().filter(|line| !line.starts_with('#')).map(colon_fields).collect();
        self.hosts.iter().map(|host| self.password_for(host, &lines)).collect()
    }

    /// What a password file has for this host.
    fn password_for(&self, host: &Host, lines: &[Vec<(String, bool)>]) -> Option<Secret> {
        let (host, port) = match host {
            Host::Tcp(host, port) => (host.clone(), *port),
            // As libpq has it: a directory where sockets are by default is this machine, another one is itself.
            Host::Unix(directory, port) if SOCKETS.iter().any(|usual| directory == Path::new(usual)) => {
                ("localhost".to_owned(), *port)
            }
            Host::Unix(directory, port) => (directory.to_string_lossy().into_owned(), *port),
        };
        let wanted = [host, port.to_string(), self.database.clone(), self.user.clone()];
        lines.iter().find_map(|fields| {
            let matches = fields.len() == 5
                && fields.iter().zip(&wanted).all(|((field, plain), wanted)| field == wanted || *plain && field == "*");
            matches.then(|| Secret::new(fields[4].0.clone()))
        })
    }
}

/// The fields of a line of a password file, and whether each was written without escapes.
fn colon_fields(line: &str) -> Vec<(String, bool)> {
    let mut fields = vec![(String::new(), true)];
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        let last = fields.len() - 1;
        match letter {
            ':' => fields.push((String::new(), true)),
            '\\' => {
                fields[last].0.extend(letters.next());
                fields[last].1 = false;
            }
            letter => fields[last].0.push(letter),
        }
    }
    fields
}

#[cfg(unix)]
fn too_open(path: &Path) -> Option<String> {
    use std::os::unix::fs::PermissionsExt;
    let mode = std::fs::metadata(path).ok()?.permissions().mode();
    (mode & 0o077 != 0).then(|| "it is readable by others; run chmod 600 on it".to_owned())
}

#[cfg(not(unix))]
fn too_open(_: &Path) -> Option<String> {
    None
}

fn read_file(path: &Path) -> Result<String, ToolError> {
    use std::io::Read;
    let failed = |e: std::io::Error| ToolError::new(format!("{} cannot be read: {e}", path.display()));
    let file = std::fs::File::open(path).map_err(failed)?;
    let mut text = String::new();
    file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text).map_err(failed)?;
    if text.len() as u64 > FILE_BYTES_MAX {
        return Err(ToolError::new(format!("{} is larger than {FILE_BYTES_MAX} bytes", path.display())));
    }
    Ok(text)
}

fn first_line(path: &Path) -> Result<String, ToolError> {
    match read_file(path)?.lines().next() {
        Some(line) if !line.is_empty() => Ok(line.to_owned()),
        _ => Err(ToolError::new(format!("{}: the first line is empty", path.display()))
            .hint("The first line is the password.")),
    }
}

fn service_parameters(service: &str, file: Option<&Path>) -> Result<Vec<(String, String)>, ToolError> {
    let file = file.ok_or_else(|| ToolError::new("No service file found").hint("Set PGSERVICEFILE."))?;
    let text = read_file(file)?;
    let mut found = None;
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if let Some(section) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            if found.is_some() {
                break;
            }
            found = (section == service).then(Vec::new);
        } else if let (Some(found), Some((key, value))) = (&mut found, line.split_once('=')) {
            found.push((key.trim().to_owned(), value.trim().to_owned()));
        }
    }
    found.ok_or_else(|| ToolError::new(format!("{} has no service {service}", file.display())))
}

fn hosts(host: &str, port: &str) -> Result<Vec<Host>, ToolError> {
    let names: Vec<&str> = host.split(',').collect();
    let ports: Vec<&str> = port.split(',').collect();
    if ports.len() > 1 && ports.len() != names.len() {
        return Err(ToolError::new("The number of ports does not match the number of hosts")
            .hint("Pass one port for all, or one for each."));
    }
    let host = |(at, name): (usize, &&str)| {
        let port = match ports.get(at).or(ports.first()).copied().unwrap_or_default() {
            "" => 5432,
            text => text.parse::<u16>().ok().filter(|port| *port > 0).ok_or_else(|| {
                // It may be the beginning of a password that has a slash in it.
                ToolError::new("Invalid port")
                    .hint("Use a number from 1 to 65535; percent-encode special characters of a password as %XX.")
            })?,
        };
        Ok(match *name {
            "" => default_host(port),
            path if path.starts_with('/') => Host::Unix(PathBuf::from(path), port),
            name => Host::Tcp(name.to_owned(), port),
        })
    };
    names.iter().enumerate().map(host).collect()
}

/// Where Debian's and most others' servers have their socket.
const SOCKETS: [&str; 2] = ["/var/run/postgresql", "/tmp"];

/// The directory of these that has the socket, else the loopback.
fn default_host(port: u16) -> Host {
    let socket = SOCKETS.into_iter().map(Path::new).find(|d| cfg!(unix) && d.join(format!(".s.PGSQL.{port}")).exists());
    socket.map_or_else(|| Host::Tcp("localhost".to_owned(), port), |d| Host::Unix(d.to_path_buf(), port))
}

fn own_authority(user: &str, host: &Host) -> String {
    let user = percent_encode(user);
    match host {
        Host::Tcp(host, port) if host.contains(':') => format!("{user}@[{host}]:{port}"),
        Host::Tcp(host, port) => format!("{user}@{host}:{port}"),
        Host::Unix(directory, port) => format!("{user}@{}:{port}", percent_encode(&directory.to_string_lossy())),
    }
}

/// Where the database is, as it was written, with the passwords hidden: for people to read. It is taken apart as it is
/// for connecting, and nothing is shown of parameters that are unknown: they may be the rest of a password. `None`
/// where it cannot be understood, or where something may be meant in another way.
#[must_use]
pub fn shown_url(url: &str) -> Option<String> {
    let Parameters { values, shown, .. } = parameters(url).ok()?;
    let get = |key: &str| values.get(key).map_or("", String::as_str);
    hosts(get("host"), get("port")).ok()?;
    shown
}

/// A parameter as [`shown_url`] has it; its value as it is written there.
fn shown_value<'a>(key: &str, value: &'a str) -> Option<&'a str> {
    match key {
        "password" | "sslpassword" => Some("PASSWORD"),
        key => (KNOWN.contains(&key) || IGNORED.contains(&key)).then_some(value),
    }
}

fn parameters(text: &str) -> Result<Parameters, ToolError> {
    let text = text.trim();
    match text.split_once("://") {
        Some((scheme @ ("postgres" | "postgresql"), rest)) => from_url(scheme, rest),
        Some((scheme, _)) if !scheme.contains('=') => {
            Err(ToolError::new("The scheme of the database URL is not postgres://")
                .hint("Use postgres://user@host:port/database."))
        }
        _ => from_pairs(text),
    }
}

/// `user:password@host:port,host:port/database?key=value`. Nothing of it is shown in errors: any part may be a secret
/// that was written in the wrong place.
fn from_url(scheme: &str, rest: &str) -> Result<Parameters, ToolError> {
    let broken = |what: &str| {
        ToolError::new(format!("Invalid database URL: {what}"))
            .hint("Use postgres://user:password@host:port/database?sslmode=…, with special characters as %XX.")
    };
    let decode = |text: &str, what: &str| percent_decode(text).ok_or_else(|| broken(what));
    let whole = rest;
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let (login, places) = authority.rsplit_once('@').map_or((None, authority), |(login, places)| (Some(login), places));
    let mut values = BTreeMap::new();
    let (mut who, mut hidden) = (String::new(), "");
    if let Some(login) = login {
        let (user, password) = login.split_once(':').map_or((login, None), |(user, password)| (user, Some(password)));
        if !user.is_empty() {
            values.insert("user".to_owned(), decode(user, "the user")?);
            who = user.to_owned();
        }
        if let Some(password) = password {
            values.insert("password".to_owned(), decode(password, "the password")?);
            hidden = ":PASSWORD";
        }
    }
    let (mut names, mut ports) = (Vec::new(), Vec::new());
    for place in places.split(',') {
        let (name, port) = match place.strip_prefix('[') {
            Some(inner) => {
                let (name, after) = inner.split_once(']').ok_or_else(|| broken("an address in brackets"))?;
                (name, after.strip_prefix(':').unwrap_or_default())
            }
            None => place.split_once(':').unwrap_or((place, "")),
        };
        names.push(decode(name, "the host")?);
        ports.push(port);
    }
    if !places.is_empty() {
        values.insert("host".to_owned(), names.join(","));
        values.insert("port".to_owned(), ports.join(","));
    }
    if !path.is_empty() {
        values.insert("dbname".to_owned(), decode(path, "the database")?);
    }
    let at = if login.is_some() { "@" } else { "" };
    let path_shown = &whole[authority.len()..rest.len()];
    let mut shown = format!("{scheme}://{who}{hidden}{at}{places}{path_shown}");
    let mut sign = '?';
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (written, raw) = pair.split_once('=').ok_or_else(|| broken("a parameter without a value"))?;
        let (key, value) = (decode(written, "a parameter")?, raw);
        let (key, value) = match (key.as_str(), decode(value, "a parameter's value")?) {
            ("ssl", value) if value == "true" => ("sslmode", "require".to_owned()),
            ("database", value) => ("dbname", value),
            (key, value) => (key, value),
        };
        if let Some(value) = shown_value(key, raw) {
            shown.extend([&*String::from(sign), written, "=", value]);
            sign = '&';
        }
        values.insert(key.to_owned(), value);
    }
    // The end of a password with a `/` or `?` in it would be here.
    let shown = (!whole[authority.len()..].contains('@')).then_some(shown);
    // The host can come from the query; then only the whole tells what the authority is.
    let at = if who.is_empty() { "" } else { "@" };
    let authority = (!places.is_empty()).then(|| format!("{who}{at}{places}"));
    Ok(Parameters { values, authority, shown })
}

/// `host=localhost dbname='my db'`
fn from_pairs(text: &str) -> Result<Parameters, ToolError> {
    let broken =
        || ToolError::new("Invalid connection string").hint("Use postgres://user@host/database, or key=value pairs.");
    let (mut values, mut shown) = (BTreeMap::new(), Vec::new());
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let (key, after) = rest.split_once('=').ok_or_else(broken)?;
        let key = key.trim_end();
        // A name of more than one word begins with the rest of a value that should be in quotes.
        if key.contains(char::is_whitespace) {
            return Err(broken());
        }
        let after = after.trim_start();
        let quoted = after.starts_with('\'');
        let mut value = String::new();
        let mut letters = after.char_indices().skip(usize::from(quoted));
        let mut end = None;
        while let Some((at, letter)) = letters.next() {
            match letter {
                '\\' => value.extend(letters.next().map(|(_, letter)| letter)),
                '\'' if quoted => {
                    end = Some(at + 1);
                    break;
                }
                letter if !quoted && letter.is_whitespace() => {
                    end = Some(at);
                    break;
                }
                letter => value.push(letter),
            }
        }
        if quoted && end.is_none() {
            return Err(broken());
        }
        rest = after[end.unwrap_or(after.len())..].trim_start();
        if let Some(value) = shown_value(key, &value) {
            let plain = !value.is_empty() && !value.contains(|c: char| c.is_whitespace() || c == '\'' || c == '\\');
            let quoted = || format!("'{}'", value.replace('\\', "\\\\").replace('\'', "\\'"));
            shown.push(format!("{key}={}", if plain { value.to_owned() } else { quoted() }));
        }
        values.insert(key.to_owned(), value);
    }
    Ok(Parameters { values, authority: None, shown: Some(shown.join(" ")) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(url: &str) -> Target {
        resolve(url, &Config::default()).unwrap()
    }

    fn resolve(url: &str, config: &Config) -> Result<Target, ToolError> {
        let config = Config { url: Some(Secret::new(url)), ..config.clone() };
        Ok(config.targets()?.0.remove(0))
    }

    fn first_password(target: &Target) -> Option<&str> {
        target.password(&target.hosts[0]).map(Secret::reveal)
    }

    #[test]
    fn urls_and_pairs_are_read_as_libpq_does() {
        let t = target("postgresql://me%40x:p%3Aw@db.example:6000/my%20db?sslmode=verify-full&connect_timeout=3");
        assert_eq!((t.user.as_str(), t.database.as_str()), ("me@x", "my db"));
        assert_eq!(t.hosts, [Host::Tcp("db.example".into(), 6000)]);
        assert_eq!(t.password(&t.hosts[0]).unwrap().reveal(), "p:w");
        assert_eq!((t.ssl, t.connect_timeout), (SslMode::VerifyFull, Duration::from_secs(3)));
        assert_eq!(t.authority, "me%40x@db.example:6000");

        let t = target("postgres://u@[::1]:7/d");
        assert_eq!(t.hosts, [Host::Tcp("::1".into(), 7)]);
        let t = target("postgres://u@a,b:7/d");
        assert_eq!(t.hosts, [Host::Tcp("a".into(), 5432), Host::Tcp("b".into(), 7)]);
        let t = target("postgres://u@%2Fvar%2Frun/d");
        assert_eq!(t.hosts, [Host::Unix("/var/run".into(), 5432)]);
        let t =
            target("host=h port=8 user='it''s' dbname='a b\\'c' sslmode = disable".replace("''s'", "\\'s'").as_str());
        assert_eq!((t.user.as_str(), t.database.as_str(), t.ssl), ("it's", "a b'c", SslMode::Disable));
        assert_eq!(t.hosts, [Host::Tcp("h".into(), 8)]);
        assert_eq!(target("postgres://u@h").database, "u");
    }

    #[test]
    fn what_is_wrong_is_said_without_showing_secrets() {
        for bad in [
            "postgres://u:hunter2%zz@h/d",
            "postgres://u:hunter2@h:port/d",
            "postgres://u:hunter2@h/d?sslmode=sometimes",
            "postgres://u:hunter2@h/d?require_auth=scram-sha-256",
            "postgres://u:hunter2@h/d?sslmode=verify-ca",
            "postgres://u:hunter2@h/d?channel_binding=require",
            "postgres://u:hunter2@h/d?sslrootcert=system&sslmode=require",
            "mysql://u:hunter2@h/d",
            "postgres://u:hunter2@[::1/d",
            "password=hunter2 user='x",
        ] {
            let fault = resolve(bad, &Config::default()).unwrap_err();
            assert!(!fault.to_string().contains("hunter2"), "{bad}: {fault}");
        }
        let config = Config { url: Some(Secret::new("postgres://u:hunter2@h/d")), ..Config::default() };
        assert!(!format!("{config:?} {:?}", config.targets().unwrap()).contains("hunter2"));
        assert!(!config.targets().unwrap().0[0].authority.contains("hunter2"));
        // What others put into URLs is no reason not to start.
        let config = Config { url: Some(Secret::new("postgres://u@h/d?pgbouncer=true")), ..Config::default() };
        assert!(config.targets().unwrap().1[0].contains("pgbouncer"));
    }

    #[test]
    fn what_is_shown_of_an_address_has_no_password_and_means_the_same() {
        for (url, expected) in [
            ("postgres://me:secret@h:1/d?sslmode=require", "postgres://me:PASSWORD@h:1/d?sslmode=require"),
            ("postgresql://me:s%65c:r%40et@h,[::1]:7", "postgresql://me:PASSWORD@h,[::1]:7"),
            ("postgres://me:se@cret@h/d", "postgres://me:PASSWORD@h/d"),
            ("postgres://:secret@h/", "postgres://:PASSWORD@h/"),
            ("postgres://me@h/my%20db", "postgres://me@h/my%20db"),
            ("postgres://me@h/d?password=secret&port=7", "postgres://me@h/d?password=PASSWORD&port=7"),
            (
                "postgres://me@h/d?p%61ssword=se%63ret&sslpassword=secret",
                "postgres://me@h/d?p%61ssword=PASSWORD&sslpassword=PASSWORD",
            ),
            // The rest of a password with a `&` in it looks like a parameter.
            ("postgres://me@h/d?password=se&cret=x&port=7", "postgres://me@h/d?password=PASSWORD&port=7"),
            ("host=127.0.0.1 user=u dbname=x password = 'secretx'", "host=127.0.0.1 user=u dbname=x password=PASSWORD"),
            (r"password='a\'secret' host=h", "password=PASSWORD host=h"),
            (r"password=sec\ ret host='a b\'c\\' dbname=''", r"password=PASSWORD host='a b\'c\\' dbname=''"),
            ("host=h password=sec://ret sslpassword=x", "host=h password=PASSWORD sslpassword=PASSWORD"),
            ("host=h secret=secret", "host=h"),
        ] {
            let shown = shown_url(url);
            assert_eq!(shown.as_deref(), Some(expected), "{url}");
            let (given, pasted) = (parameters(url).unwrap().values, parameters(expected).unwrap().values);
            for (key, value) in &pasted {
                assert!(given[key] == *value || value == "PASSWORD", "{url}: {key}");
            }
        }
        for unclear in [
            "postgres://me:se/cret@h/d",
            "postgres://me:12/3secret@h/d",
            "postgres://me:12?a=secret@h/d",
            "postgres://me:secret%zz@h/d",
            "postgres://me:secret@h:port/d",
            "postgres://me@h/d?secret",
            "mysql://me:secret@h/d",
            "host=h password=my secret dbname=d",
            "host=h password='secret",
            "secret",
        ] {
            assert_eq!(shown_url(unclear), None, "{unclear}");
            if let Err(fault) = resolve(unclear, &Config::default()) {
                assert!(
                    !fault.to_string().contains("secret") && !fault.to_string().contains("cret"),
                    "{unclear}: {fault}"
                );
            }
        }
    }

    #[test]
    fn require_with_a_root_certificate_verifies_and_the_system_store_means_full() {
        assert_eq!(target("postgres://u@h/d?sslmode=require").ssl, SslMode::Require);
        assert_eq!(target("postgres://u@h/d?sslmode=require&sslrootcert=/x").ssl, SslMode::VerifyCa);
        assert_eq!(target("postgres://u@h/d?sslrootcert=system").ssl, SslMode::VerifyFull);
        assert_eq!(target("postgres://u@h/d").ssl, SslMode::Prefer);
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut config = Config::default();
        config.environment.root_certificate = Some(file.path().to_owned());
        for (mode, expected) in [
            ("prefer", SslMode::Prefer),
            ("require", SslMode::VerifyCa),
            ("verify-ca", SslMode::VerifyCa),
            ("verify-full", SslMode::VerifyFull),
        ] {
            let t = resolve(&format!("postgres://u@h/d?sslmode={mode}"), &config).unwrap();
            assert_eq!((t.ssl, t.root_certificate.as_deref()), (expected, file.path().to_str()), "{mode}");
        }
        config.environment.root_certificate = Some(file.path().with_extension("none"));
        assert_eq!(resolve("postgres://u@h/d?sslmode=require", &config).unwrap().ssl, SslMode::Require);
    }

    #[test]
    fn passwords_come_from_the_places_libpq_looks_in() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = dir.path().join(name);
            std::fs::write(&path, text).unwrap();
            #[cfg(unix)]
            std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
            path
        };
        let pass = write("pgpass", "# h:5432:d:u:no\nx:*:*:*:no\nh:5432:d\\:e:u:a\\:b\\\\c\n*:*:*:u:any\n");
        let service = write("services", "[one]\nhost=h\nuser=u\n\n[two]\nhost=other\nport=9\nuser=u2\ndbname=d2\n");
        let file = write("password", "from-file\nrest\n");
        let mut config = Config::default();
        config.environment.pass_file = Some(pass.clone());
        config.environment.service_file = Some(service);
        let password =
            |url: &str, config: &Config| first_password(&resolve(url, config).unwrap()).map(ToOwned::to_owned);
        assert_eq!(password("postgres://u@h/d:e", &config).as_deref(), Some("a:b\\c"));
        assert_eq!(password("postgres://u@h/other", &config).as_deref(), Some("any"));
        assert_eq!(password("postgres://v@h/other", &config), None);
        let from = |pairs: &[(&str, &str)]| {
            let vars = |name: &str| pairs.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_owned());
            let look = |service: &str, account: &str| Ok(Secret::new(format!("{account} of {service}")));
            Config::from_env(Vars::new(&vars).keyring(&look)).unwrap().environment.password
        };
        let (file, ring) = (("PGPASSWORD_FILE", file.to_str().unwrap()), ("PGPASSWORD_KEYRING", "shop/u"));
        for (pairs, expected) in [
            (&[ring][..], "u of shop"),
            (&[ring, file], "from-file"),
            (&[ring, file, ("PGPASSWORD", "from-env")], "from-env"),
        ] {
            config.environment.password = from(pairs);
            assert_eq!(
                password("postgres://u@h/other", &config).as_deref(),
                Some(expected),
                "before the password file"
            );
        }
        assert_eq!(password("postgres://u:in-url@h/other", &config).as_deref(), Some("in-url"));
        let t = resolve("service=two", &config).unwrap();
        assert_eq!((t.hosts, t.user.as_str(), t.database.as_str()), (vec![Host::Tcp("other".into(), 9)], "u2", "d2"));
        assert!(resolve("service=three", &config).is_err());
        #[cfg(unix)]
        {
            std::fs::set_permissions(&pass, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
            let mut open = Config { url: Some(Secret::new("postgres://u@h/d")), ..Config::default() };
            open.environment.pass_file = Some(pass);
            let (targets, warnings) = open.targets().unwrap();
            assert!(first_password(&targets[0]).is_none());
            assert!(warnings[0].contains("chmod 600"), "{warnings:?}");
        }
    }

    #[test]
    fn a_password_file_is_asked_for_each_host_by_its_own_name() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let lines = "one:5432:d:u:first\nlocalhost:5432:d:u:here\n/elsewhere:5432:d:u:there\ntwo:7:d:u:second\n";
        std::fs::write(file.path(), lines).unwrap();
        let mut config = Config::default();
        config.environment.pass_file = Some(file.path().to_owned());
        for (url, expected) in [
            ("postgres://u@one,two:7/d", [Some("first"), Some("second")]),
            ("postgres://u@two:7,one/d", [Some("second"), Some("first")]),
            ("postgres://u@two,one/d", [None, Some("first")]),
            // Only where sockets are by default is this machine.
            ("host=/var/run/postgresql,/elsewhere user=u dbname=d", [Some("here"), Some("there")]),
            ("host=/tmp,/nowhere user=u dbname=d", [Some("here"), None]),
            ("host=one,two port=5432,7 user=u dbname=d password=said", [Some("said"), Some("said")]),
        ] {
            let t = resolve(url, &config).unwrap();
            let found: Vec<_> = t.hosts.iter().map(|host| t.password(host).map(Secret::reveal)).collect();
            assert_eq!(found, expected, "{url}");
        }
    }

    #[test]
    fn several_databases_come_from_a_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("databases.toml");
        std::fs::write(
            &path,
            "default = \"b\"\n[databases.a]\nurl = \"postgres://u@h/a\"\n[databases.b]\nurl = \"postgres://u@h/b\"\nschemas = [\"s\"]\n",
        )
        .unwrap();
        let config = Config { file: Some(path.clone()), ..Config::default() };
        let (targets, _) = config.targets().unwrap();
        let names: Vec<_> = targets.iter().map(|t| (t.name.as_str(), t.database.as_str())).collect();
        assert_eq!(names, [("b", "b"), ("a", "a")]);
        assert_eq!(targets[0].schemas, ["s"]);
        std::fs::write(&path, "[databases.a]\nurl = \"postgres://u:hunter2@h/a\"\nurl2 = 1\n").unwrap();
        assert!(!config.targets().unwrap_err().to_string().contains("hunter2"));
        assert!(Config::default().targets().unwrap_err().message().starts_with("Please provide a database URL"));
    }

    #[test]
    fn the_environment_is_read() {
        let vars = |name: &str| {
            let value = match name {
                "DATABASE_URI" => "postgres://u@h/d",
                "PGSSLMODE" => "require",
                "MCP_POSTGRES_ACCESS_MODE" => "write",
                "MCP_POSTGRES_READ_ONLY" => "1",
                "MCP_POSTGRES_SCHEMAS" => "a, b",
                "MCP_POSTGRES_STATEMENT_TIMEOUT" => "1500",
                _ => return None,
            };
            Some(value.to_owned())
        };
        let config = Config::from_env(Vars::new(&vars)).unwrap();
        assert_eq!(config.schemas, ["a", "b"]);
        assert_eq!(config.statement_timeout, Duration::from_millis(1500));
        assert_eq!(config.access, Access::Write);
        assert!(!config.writes(), "--read-only beats --access-mode write");
        assert_eq!(config.targets().unwrap().0[0].ssl, SslMode::Require);
    }

    /// What libpq would do for one of these variables is not done here, so nothing is done at all.
    #[test]
    fn variables_that_ask_for_more_than_there_is_stop_the_start_like_parameters() {
        let with = |variable: &str, value: &str| {
            let vars = |name: &str| {
                (name == variable)
                    .then(|| value.to_owned())
                    .or_else(|| (name == "DATABASE_URL").then(|| "postgres://u@h/d".to_owned()))
            };
            Config::from_env(Vars::new(&vars)).unwrap().targets()
        };
        for (variable, value, parameter) in [
            ("PGHOSTADDR", "10.0.0.1", "hostaddr"),
            ("PGOPTIONS", "-c role=reader", "options"),
            ("PGREQUIREAUTH", "scram-sha-256", "require_auth"),
            ("PGREQUIREPEER", "postgres", "requirepeer"),
            ("PGREQUIRESSL", "1", "requiressl"),
            ("PGSSLCERTMODE", "require", "sslcertmode"),
            ("PGSSLCRL", "/x", "sslcrl"),
            ("PGSSLCRLDIR", "/x", "sslcrldir"),
            ("PGSSLMINPROTOCOLVERSION", "TLSv1.3", "ssl_min_protocol_version"),
            ("PGSSLMAXPROTOCOLVERSION", "TLSv1.2", "ssl_max_protocol_version"),
            ("PGSSLNEGOTIATION", "direct", "sslnegotiation"),
            ("PGSSLPASSWORD", "hunter2", "sslpassword"),
            ("PGMINPROTOCOLVERSION", "3.2", "min_protocol_version"),
            ("PGGSSENCMODE", "require", "gssencmode"),
            ("PGTARGETSESSIONATTRS", "read-only", "target_session_attrs"),
            ("PGCHANNELBINDING", "require", "channel_binding"),
            ("PGSSLMODE", "sometimes", "sslmode"),
        ] {
            let fault = with(variable, value).map(|_| ()).expect_err(variable).to_string();
            assert!(fault.contains(parameter) && !fault.contains("hunter2"), "{variable}: {fault}");
            let url = format!("postgres://u@h/d?{parameter}={value}").replace(' ', "%20");
            assert!(resolve(&url, &Config::default()).is_err(), "{url}");
        }
        for (variable, value) in [
            ("PGGSSENCMODE", "prefer"),
            ("PGSSLMINPROTOCOLVERSION", "TLSv1.2"),
            ("PGTARGETSESSIONATTRS", "any"),
            ("PGCHANNELBINDING", "prefer"),
            ("PGSSLNEGOTIATION", "postgres"),
            ("PGOPTIONS", ""),
        ] {
            assert_eq!(with(variable, value).expect(variable).1, [""; 0], "{variable}");
        }
    }

    #[test]
    fn urls_services_and_passwords_come_from_files_too() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = dir.path().join(name);
            std::fs::write(&path, text).unwrap();
            path.display().to_string()
        };
        let (one, two) = (write("one", "postgres://u@h/one\nrest\n"), write("two", "postgres://u@h/two"));
        let services = write("services", "[shop]\nhost=db\nport=7\nuser=seller\ndbname=shop\nsslmode=verify-full\n");
        let from = |pairs: &[(&str, &str)]| {
            let vars = |name: &str| pairs.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_owned());
            Config::from_env(Vars::new(&vars))
        };
        let database = |pairs: &[(&str, &str)]| from(pairs).unwrap().targets().unwrap().0.remove(0).database;
        assert_eq!(database(&[("DATABASE_URL_FILE", &one)]), "one");
        assert_eq!(database(&[("DATABASE_URI_FILE", &two)]), "two");
        assert_eq!(database(&[("DATABASE_URI_FILE", &two), ("DATABASE_URL_FILE", &one)]), "one");
        assert_eq!(database(&[("DATABASE_URL_FILE", &one), ("DATABASE_URI", "postgres://u@h/said")]), "said");
        assert!(from(&[("DATABASE_URL_FILE", "/nowhere/url")]).unwrap_err().message().contains("/nowhere/url"));

        let t = from(&[
            ("PGSERVICE", "shop"),
            ("PGSERVICEFILE", &services),
            ("PGUSER", "nobody"),
            ("PGSSLMODE", "disable"),
        ]);
        let t = t.unwrap().targets().unwrap().0.remove(0);
        assert_eq!(
            (t.hosts, t.user.as_str()),
            (vec![Host::Tcp("db".into(), 7)], "seller"),
            "a service beats variables"
        );
        assert_eq!((t.database.as_str(), t.ssl), ("shop", SslMode::VerifyFull));
        let missing = from(&[("PGSERVICE", "other"), ("PGSERVICEFILE", &services)]).unwrap().targets();
        assert!(missing.unwrap_err().message().contains("other"));

        let secret = write("secret", "geheim\nrest\n");
        let list = format!(
            "[databases.a]\nurl = \"postgres://u:in-url@h/a\"\npassword_file = {secret:?}\n[databases.b]\nurl = \"postgres://u:in-url@h/b\"\n"
        );
        let list = write("list", &list);
        let targets = from(&[("MCP_POSTGRES_CONFIG", &list), ("PGPASSWORD", "variable")]).unwrap().targets().unwrap().0;
        let passwords: Vec<_> = targets.iter().map(first_password).collect();
        assert_eq!(passwords, [Some("geheim"), Some("in-url")]);
        let list = write("list", "[databases.a]\nurl = \"postgres://u@h/a\"\npassword_file = \"/nowhere/secret\"\n");
        let failed = from(&[("MCP_POSTGRES_CONFIG", &list)]).unwrap().targets().unwrap_err();
        assert!(failed.message().contains("/nowhere/secret"), "{failed}");
        for empty in ["", "\n", "\r\n", "\ngeheim\n"] {
            let secret = write("secret", empty);
            let list =
                write("list", &format!("[databases.a]\nurl = \"postgres://u@h/a\"\npassword_file = {secret:?}\n"));
            let failed = from(&[("MCP_POSTGRES_CONFIG", &list)]).unwrap().targets().unwrap_err();
            assert!(
                failed.message().contains(&secret) && failed.message().contains("first line"),
                "{empty:?}: {failed}"
            );
        }
    }
}
