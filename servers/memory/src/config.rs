//! Configuration: the file, its limits, backups and history, the tools.

use linchpin_kit::{TEXT_BYTES_MAX, ToolChoice, ToolError, Vars};
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

/// The configuration. `Config::default()` is the drop-in behaviour with the default file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Config {
    /// The memory file; `~/` is expanded, relative paths are relative to the working directory. `None` is the default
    /// file, or that of `scope`. Tool calls cannot choose it. Default `None`.
    pub file: Option<PathBuf>,
    /// Whether `file` is the value of `MEMORY_FILE_PATH`, whose relative paths the published server resolves
    /// differently; [`Memory::open`](crate::Memory::open) then warns. Default `false`.
    pub file_of_published: bool,
    /// A separate memory beside the default one, for example for a project. Excludes `file`. Default none.
    pub scope: Option<String>,
    /// The directory for application data, in which `mcp-memory/` is created. Default `None`: from the environment.
    pub data_home: Option<PathBuf>,
    /// A memory file to import at start, `~/` expanded. Existing records are not added again. Default none.
    pub import: Option<PathBuf>,
    /// Maximum entities; creating more is refused. Default 50,000.
    pub max_entities: usize,
    /// Maximum bytes of the file; a change that would exceed it is refused, and a larger file is not opened. Default 64
    /// MiB.
    pub max_file_bytes: u64,
    /// Number of backups, `FILE.bak.1` (the newest), `FILE.bak.2`, … One is made before a change if there is none or
    /// the newest is more than a day old. 0 disables backups. Default 3.
    pub backup: u32,
    /// Number of changes that `memory_history` lists and `memory_undo` can undo; stored in `FILE.history` with the
    /// deleted content. 0 disables the history. Default 200.
    pub history: usize,
    /// Stores in `FILE.history` when entities were created and changed. The memory file itself contains no times.
    /// Default `true`.
    pub timestamps: bool,
    /// Maximum bytes of records in the text of a result, and in its structured content, before it is truncated.
    /// Excludes the surrounding JSON and warnings, which have a quarter as many bytes. 0 never truncates, as published.
    /// Default 100,000.
    pub max_result_bytes: usize,
    /// How long a change waits for others, in this process or another, before it fails. Default 15 s.
    pub lock_wait: Duration,
    /// The enabled tools and their names. Default: all, without prefix.
    pub tools: ToolChoice,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            file: None,
            file_of_published: false,
            scope: None,
            data_home: None,
            import: None,
            max_entities: 50_000,
            max_file_bytes: 64 << 20,
            backup: 3,
            history: 200,
            timestamps: true,
            max_result_bytes: TEXT_BYTES_MAX,
            lock_wait: Duration::from_secs(15),
            tools: ToolChoice::default(),
        }
    }
}

impl Config {
    /// Changes some of these options.
    ///
    /// ```
    /// # use linchpin_memory::Config;
    /// let config = Config::default().with(|config| config.backup = 1);
    /// ```
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    /// The default configuration with `MEMORY_FILE_PATH` and the `MCP_MEMORY_*` variables applied.
    ///
    /// # Errors
    /// When the value of a variable is invalid; the message names the variable.
    pub fn from_env(vars: Vars<'_>) -> Result<Self, ToolError> {
        let mut config = Self { tools: vars.tool_choice("MCP_MEMORY")?, ..Self::default() };
        config.file = vars.path("MCP_MEMORY_FILE");
        if config.file.is_none() {
            config.file = vars.path("MEMORY_FILE_PATH");
            config.file_of_published = config.file.is_some();
        }
        config.scope = vars.text("MCP_MEMORY_SCOPE");
        config.import = vars.path("MCP_MEMORY_IMPORT");
        config.data_home = data_home(vars);
        vars.number("MCP_MEMORY_MAX_ENTITIES", &mut config.max_entities)?;
        vars.number("MCP_MEMORY_MAX_FILE_BYTES", &mut config.max_file_bytes)?;
        vars.number("MCP_MEMORY_BACKUP", &mut config.backup)?;
        vars.number("MCP_MEMORY_HISTORY", &mut config.history)?;
        vars.switch("MCP_MEMORY_TIMESTAMPS", &mut config.timestamps)?;
        vars.number("MCP_MEMORY_MAX_RESULT_BYTES", &mut config.max_result_bytes)?;
        let mut wait_ms = u64::try_from(config.lock_wait.as_millis()).unwrap_or(u64::MAX);
        vars.number("MCP_MEMORY_LOCK_WAIT", &mut wait_ms)?;
        config.lock_wait = Duration::from_millis(wait_ms);
        Ok(config)
    }

    /// The file as an absolute path, and whether its name is built in (the default or a scope).
    pub(crate) fn path(&self) -> Result<(PathBuf, bool), ToolError> {
        match (&self.file, &self.scope) {
            (Some(_), Some(_)) => Err(ToolError::new("Both a file and a scope are configured")
                .hint("A scope is a file in the default location: omit one of the two.")),
            (Some(file), None) => {
                let path = std::path::absolute(expanded(file)?)
                    .map_err(|_| ToolError::new(format!("Invalid memory file: {}", file.display())))?;
                Ok((path, false))
            }
            (None, scope) => {
                let home = self.data_home.clone().or_else(|| data_home(Vars::new(&from_process)));
                let home = home.ok_or_else(|| {
                    ToolError::new("Cannot determine the directory of the memory file")
                        .hint("Set HOME or XDG_DATA_HOME, or pass the file with --file.")
                })?;
                let folder = home.join("mcp-memory");
                match scope {
                    None => Ok((folder.join("memory.jsonl"), true)),
                    Some(scope) if scope_ok(scope) => Ok((folder.join("scopes").join(format!("{scope}.jsonl")), true)),
                    Some(scope) => Err(ToolError::new(format!("Invalid scope: {scope}"))
                        .hint("Use 1 to 64 characters of A-Z a-z 0-9 _ - and, except at the start, dots.")),
                }
            }
        }
    }
}

fn scope_ok(scope: &str) -> bool {
    (1..=64).contains(&scope.len())
        && scope.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-.".contains(&b))
        && !scope.starts_with('.')
}

fn from_process(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// Expands `~` to the user's home directory. A directory literally named `~` is never created in the working directory.
pub(crate) fn expanded(path: &Path) -> Result<PathBuf, ToolError> {
    if let Ok(rest) = path.strip_prefix("~") {
        let home = home(Vars::new(&from_process));
        let home = home.ok_or_else(|| {
            ToolError::new(format!("Cannot determine the home directory for {}", path.display()))
                .hint("Set HOME (on Windows USERPROFILE), or use an absolute path.")
        })?;
        return Ok(home.join(rest));
    }
    if path.to_string_lossy().starts_with('~') && !path.exists() {
        return Err(ToolError::new(format!("{} is in another user's home directory", path.display()))
            .hint("Use an absolute path, or ./ before a name that starts with ~."));
    }
    Ok(path.to_owned())
}

fn home(vars: Vars<'_>) -> Option<PathBuf> {
    let name = if cfg!(windows) { "USERPROFILE" } else { "HOME" };
    vars.path(name).filter(|home| home.is_absolute())
}

/// The directory for application data on this system.
fn data_home(vars: Vars<'_>) -> Option<PathBuf> {
    let absolute = |name: &str| vars.path(name).filter(|path| path.is_absolute());
    if cfg!(windows) {
        return absolute("LOCALAPPDATA").or_else(|| absolute("APPDATA"));
    }
    absolute("XDG_DATA_HOME").or_else(|| {
        let below = if cfg!(target_vendor = "apple") { "Library/Application Support" } else { ".local/share" };
        Some(home(vars)?.join(below))
    })
}

/// Whether a file that does not exist yet (or is empty) may become a memory file. Files that other programs execute or
/// read as settings, such as `.bashrc` or `.vscode/settings.json`, must not: setting the path would otherwise allow
/// arbitrary changes to them.
pub(crate) fn may_become_memory(path: &Path) -> Result<(), ToolError> {
    let extension = path.extension().and_then(|e| e.to_str()).unwrap_or_default().to_ascii_lowercase();
    if extension == "jsonl" || extension == "ndjson" {
        return Ok(());
    }
    // The directory may be a link to a hidden one.
    let real = path.parent().and_then(|parent| parent.canonicalize().ok());
    let parts = path.components().chain(real.iter().flat_map(|real| real.components()));
    let hidden = parts.filter_map(|part| match part {
        Component::Normal(name) => name.to_str(),
        _ => None,
    });
    if extension == "json" && !hidden.into_iter().any(|name| name.starts_with('.')) {
        return Ok(());
    }
    Err(ToolError::denied(format!("Refusing to create a memory file of this name: {}", path.display()))
        .hint("Use a name that ends in .jsonl, so that no other program reads the file as settings or a script."))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from(pairs: &[(&str, &str)]) -> Result<Config, ToolError> {
        let get = |name: &str| pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
        Config::from_env(Vars::new(&get))
    }

    #[cfg(all(unix, not(target_vendor = "apple")))]
    #[test]
    fn the_default_file_lies_where_data_of_programs_lies() {
        for (pairs, expected) in [
            (&[("XDG_DATA_HOME", "/x"), ("HOME", "/h")][..], "/x/mcp-memory/memory.jsonl"),
            (&[("XDG_DATA_HOME", "relative"), ("HOME", "/h")], "/h/.local/share/mcp-memory/memory.jsonl"),
            (&[("HOME", "/h")], "/h/.local/share/mcp-memory/memory.jsonl"),
            (&[("HOME", "/h"), ("MCP_MEMORY_SCOPE", "work.2")], "/h/.local/share/mcp-memory/scopes/work.2.jsonl"),
            (&[("HOME", "/h"), ("MEMORY_FILE_PATH", "")], "/h/.local/share/mcp-memory/memory.jsonl"),
            (&[("HOME", "/h"), ("MEMORY_FILE_PATH", "/m/x.json")], "/m/x.json"),
            (&[("MEMORY_FILE_PATH", "/m/x.json"), ("MCP_MEMORY_FILE", "/ours.jsonl")], "/ours.jsonl"),
        ] {
            assert_eq!(from(pairs).unwrap().path().unwrap().0, Path::new(expected), "{pairs:?}");
        }
    }

    #[test]
    fn a_relative_file_starts_at_the_working_directory() {
        let config = from(&[("MEMORY_FILE_PATH", "m.jsonl")]).unwrap();
        assert!(config.file_of_published);
        assert_eq!(config.path().unwrap().0, std::env::current_dir().unwrap().join("m.jsonl"));
        assert!(!from(&[("MCP_MEMORY_FILE", "m.jsonl")]).unwrap().file_of_published);
    }

    #[test]
    fn numbers_are_read_and_mistakes_name_the_variable() {
        let config = from(&[
            ("MCP_MEMORY_MAX_ENTITIES", "7"),
            ("MCP_MEMORY_MAX_FILE_BYTES", "8"),
            ("MCP_MEMORY_BACKUP", "0"),
            ("MCP_MEMORY_HISTORY", "9"),
            ("MCP_MEMORY_TIMESTAMPS", "false"),
            ("MCP_MEMORY_MAX_RESULT_BYTES", "0"),
            ("MCP_MEMORY_LOCK_WAIT", "250"),
            ("MCP_MEMORY_READ_ONLY", "1"),
        ])
        .unwrap();
        assert_eq!((config.max_entities, config.max_file_bytes, config.backup, config.history), (7, 8, 0, 9));
        assert_eq!((config.max_result_bytes, config.lock_wait), (0, Duration::from_millis(250)));
        assert!(config.tools.read_only && !config.timestamps && Config::default().timestamps);
        let error = from(&[("MCP_MEMORY_BACKUP", "some")]).unwrap_err();
        assert!(error.message().contains("MCP_MEMORY_BACKUP"), "{error}");
    }

    #[test]
    fn scopes_are_names_and_never_paths() {
        for scope in ["..", ".x", "a/b", "a\\b", "", "ä", &"x".repeat(65)] {
            let config =
                Config { scope: Some(scope.to_owned()), data_home: Some(std::env::temp_dir()), ..Config::default() };
            assert!(config.path().is_err(), "{scope:?}");
        }
        let both = Config { scope: Some("a".into()), file: Some("b.jsonl".into()), ..Config::default() };
        assert!(both.path().is_err());
    }

    #[test]
    fn only_harmless_names_may_become_memory_files() {
        for (path, ok) in [
            ("/h/memory.jsonl", true),
            ("/h/.memory.jsonl", true),
            ("/h/.claude/memory.JSONL", true),
            ("/h/m.ndjson", true),
            ("/h/memory.json", true),
            ("/h/.memory.json", false),
            ("/h/.vscode/settings.json", false),
            ("/h/.bashrc", false),
            ("/h/.zshenv", false),
            ("/h/.ssh/authorized_keys", false),
            ("/h/.git/hooks/pre-commit", false),
            ("/etc/cron.d/x", false),
            ("/h/memory", false),
            ("/h/run.sh", false),
            ("/h/.jsonl", false),
        ] {
            assert_eq!(may_become_memory(Path::new(path)).is_ok(), ok, "{path}");
        }
    }
}
