//! Configuration.

use linchpin_kit::{RootsPolicy, TEXT_BYTES_MAX, ToolChoice, ToolError, flag};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::open::place::{Place, check_kind};

/// The flag that enables `sqlite_import_csv`.
pub const IMPORT_DIR: &str = "--import-dir";

/// The supported roots policies. With `Narrow` a client that declares roots can use the database only if it is in one of
/// them, and nothing is opened or created before the first permitted call.
pub const ROOTS: &[RootsPolicy] = &[RootsPolicy::Ignore, RootsPolicy::Narrow];

/// The default database of the published server.
const DB_PATH: &str = "./sqlite_mcp_server.db";

linchpin_kit::options! {
    /// The configuration. The default behaves like the published server without flags.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Config: "MCP_SQLITE" {
        /// The database file, or `:memory:`.
        ///
        /// The name is literal even if it looks like a `file:` URI; `~` is the home directory. `:memory:` is a database
        /// that ends with the process.
        pub db_path: PathBuf = DB_PATH.into() => flag::file("PATH").word("PATH"),
        /// Create the file if it is missing.
        ///
        /// Its parents too; never with `tools.read_only`.
        pub create: bool = true => flag::on_off(),
        /// Maximum number of rows in a result, 1 to 100,000.
        pub max_rows: usize = 1_000 => flag::number("N"),
        /// Maximum size of a result's text, in bytes, 1,000 to 10,000,000.
        pub max_bytes: usize = TEXT_BYTES_MAX => flag::bytes(),
        /// Timeout of a call, in seconds, at most an hour.
        ///
        /// Waiting is included.
        pub timeout: Duration = Duration::from_secs(30) => flag::seconds(),
        /// How long a call waits for another program's lock, in seconds.
        ///
        /// At most `timeout`.
        pub busy_timeout: Duration = Duration::from_secs(5) => flag::seconds(),
        /// Enforce foreign keys.
        ///
        /// Neither SQLite itself nor the published server does by default.
        pub foreign_keys: bool = false => flag::switch(),
        /// Format results in Python notation, like the published server.
        pub compat_repr: bool = false => flag::switch(),
        /// Store the memo of insights in this file, as JSON Lines.
        ///
        /// Otherwise the memo ends with the process.
        pub memo_file: Option<PathBuf> = None => flag::file("PATH"),
        /// Offer `sqlite_import_csv`, for CSV files in this directory.
        pub import_dir: Option<PathBuf> = None => flag::directory("DIR"),
        /// How to use the client's roots.
        ///
        /// One of [`ROOTS`]; `None` is `Narrow` for the default path, which was not configured, and `Ignore` otherwise.
        pub roots: Option<RootsPolicy> = None
            => flag::roots(ROOTS).default("narrow for the default path, else ignore"),
        /// The enabled tools. `read_only` opens the file read-only.
        pub tools: ToolChoice = ToolChoice::default() => flag::group(),
    }
}

impl Config {
    /// Checks the ranges of numbers.
    pub(crate) fn check(&self) -> Result<(), ToolError> {
        let within = |what: &str, ok: bool, range: &str| {
            if ok {
                Ok(())
            } else {
                Err(ToolError::new(format!("{what} is out of range")).hint(format!("Use {range}.")))
            }
        };
        within("The number of rows", (1..=100_000).contains(&self.max_rows), "1 to 100,000")?;
        within("The number of bytes", (1_000..=10_000_000).contains(&self.max_bytes), "1,000 to 10,000,000")?;
        let timeout = Duration::from_millis(10)..=Duration::from_secs(3_600);
        within("The timeout", timeout.contains(&self.timeout), "1 to 3,600 seconds")?;
        self.roots.map_or(Ok(()), |policy| policy.restrict_to(ROOTS).map(drop))
    }

    /// The roots policy. A database in memory has no location.
    pub(crate) fn roots_policy(&self, place: &Place) -> RootsPolicy {
        let nobody_named_it = self.db_path == Path::new(DB_PATH);
        match place {
            Place::Memory => RootsPolicy::Ignore,
            Place::File(_) if nobody_named_it => self.roots.unwrap_or(RootsPolicy::Narrow),
            Place::File(_) => self.roots.unwrap_or(RootsPolicy::Ignore),
        }
    }

    /// The location of the database. Creates nothing, but fails if the file is missing and must not be created.
    pub(crate) fn place(&self) -> Result<Place, ToolError> {
        if self.db_path == Path::new(":memory:") {
            return Ok(Place::Memory);
        }
        let path = in_full(&self.db_path)?;
        if check_kind(&path)? {
            return Ok(Place::File(path));
        }
        if self.tools.read_only || !self.create {
            let why =
                if self.tools.read_only { "a read-only server does not create it" } else { "creating it is disabled" };
            return Err(ToolError::new(format!("{} does not exist, and {why}", path.display()))
                .hint("Use an existing database file."));
        }
        Ok(Place::File(path))
    }
}

/// The absolute form of a path, `~` expanded. Absolute paths are never URIs to SQLite.
pub(crate) fn in_full(path: &Path) -> Result<PathBuf, ToolError> {
    let expanded = match path.strip_prefix("~") {
        Ok(rest) => {
            let home = std::env::home_dir().filter(|home| !home.as_os_str().is_empty());
            home.ok_or_else(|| {
                ToolError::new("Cannot determine the home directory for ~").hint("Use an absolute path.")
            })?
            .join(rest)
        }
        Err(_) if path.to_string_lossy().starts_with('~') && !path.exists() => {
            return Err(ToolError::new(format!("{} is in another user's home directory", path.display()))
                .hint("Use an absolute path, or ./ before a name that starts with ~."));
        }
        Err(_) => path.to_owned(),
    };
    if expanded.as_os_str().is_empty() {
        return Err(ToolError::new("The path of the database is empty").hint("Use a file, or :memory:."));
    }
    std::path::absolute(&expanded)
        .map_err(|error| ToolError::new(format!("Invalid path {}: {}", path.display(), error.kind())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use linchpin_kit::Vars;

    fn read(pairs: &[(&str, &str)]) -> Result<Config, ToolError> {
        let get = |name: &str| pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
        Config::from_env(Vars::new(&get))
    }

    #[test]
    fn the_environment_says_all_there_is() {
        let config = read(&[
            ("MCP_SQLITE_DB_PATH", "x.db"),
            ("MCP_SQLITE_CREATE", "0"),
            ("MCP_SQLITE_MAX_ROWS", "5"),
            ("MCP_SQLITE_MAX_BYTES", "5000"),
            ("MCP_SQLITE_TIMEOUT", "2"),
            ("MCP_SQLITE_BUSY_TIMEOUT", "1"),
            ("MCP_SQLITE_FOREIGN_KEYS", "1"),
            ("MCP_SQLITE_COMPAT_REPR", "yes"),
            ("MCP_SQLITE_MEMO_FILE", "m"),
            ("MCP_SQLITE_IMPORT_DIR", "d"),
            ("MCP_SQLITE_ROOTS", "narrow"),
            ("MCP_SQLITE_READ_ONLY", "1"),
        ])
        .unwrap();
        let mut tools = ToolChoice::default();
        tools.read_only = true;
        assert_eq!(
            config,
            Config {
                db_path: "x.db".into(),
                create: false,
                max_rows: 5,
                max_bytes: 5_000,
                timeout: Duration::from_secs(2),
                busy_timeout: Duration::from_secs(1),
                foreign_keys: true,
                compat_repr: true,
                memo_file: Some("m".into()),
                import_dir: Some("d".into()),
                roots: Some(RootsPolicy::Narrow),
                tools,
            }
        );
        assert_eq!(read(&[]), Ok(Config::default()));
        for (name, value) in [("MCP_SQLITE_TIMEOUT", "soon"), ("MCP_SQLITE_ROOTS", "use")] {
            assert!(read(&[(name, value)]).unwrap_err().to_string().contains(name), "{name}");
        }
    }

    #[test]
    fn what_cannot_work_is_refused() {
        let cases: &[fn(&mut Config)] = &[
            |c| c.max_rows = 0,
            |c| c.max_rows = 100_001,
            |c| c.max_bytes = 10,
            |c| c.timeout = Duration::ZERO,
            |c| c.timeout = Duration::from_secs(4_000),
            |c| c.roots = Some(RootsPolicy::Use),
            |c| c.roots = Some(RootsPolicy::Replace),
        ];
        for change in cases {
            let mut config = Config::default();
            config.check().unwrap();
            change(&mut config);
            assert!(config.check().is_err(), "{config:?}");
        }
    }

    #[test]
    fn paths_are_made_absolute_and_never_uris() {
        let home = std::env::home_dir().unwrap();
        assert_eq!(in_full(Path::new("~/a.db")).unwrap(), home.join("a.db"));
        assert!(in_full(Path::new("~nobody-of-this-name/a.db")).is_err());
        assert!(in_full(Path::new("")).is_err());
        for path in ["file:x?mode=memory", "x.db", "./~x"] {
            let full = in_full(Path::new(path)).unwrap();
            assert!(full.is_absolute() && full.ends_with(path.trim_start_matches("./")), "{full:?}");
        }
    }
}
