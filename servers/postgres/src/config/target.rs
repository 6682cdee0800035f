//! A database with everything looked up: connection string, service, environment, password files.

use super::service::{first_line, service_parameters};
use super::url::{IGNORED, KNOWN, Parameters, parameters, percent_encode};
use super::{Config, PARAMETERS, SslMode};
use linchpin_kit::{Secret, ToolError};
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

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
    pub(super) passwords: Vec<Option<Secret>>,
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

impl Target {
    pub(super) fn resolve(
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
}

/// The places that `host` and `port` name, which may be lists.
pub(super) fn hosts(host: &str, port: &str) -> Result<Vec<Host>, ToolError> {
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
pub(super) const SOCKETS: [&str; 2] = ["/var/run/postgresql", "/tmp"];

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
