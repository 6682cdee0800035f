//! Configuration: the file, its limits, backups and history, the tools.

use linchpin_kit::{Given, TEXT_BYTES_MAX, ToolChoice, ToolError, Vars, flag};
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

linchpin_kit::options! {
    /// The configuration. `Config::default()` is the drop-in behaviour with the default file.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Config: "MCP_MEMORY" then settle {
        /// The memory file.
        ///
        /// `~/` is expanded, relative paths are relative to the working directory. `None` is the default file, or that of
        /// `scope`. Tool calls cannot choose it. `MEMORY_FILE_PATH`, which the published server reads, sets it too.
        pub file: Option<PathBuf> = None
            => flag::file("FILE").word("FILE").excludes(&["scope"])
                .default("mcp-memory/memory.jsonl in the user's data directory"),
        /// Whether `file` is the value of `MEMORY_FILE_PATH`, whose relative paths the published server resolves
        /// differently; [`Memory::open`](crate::Memory::open) then warns.
        pub file_of_published: bool = false,
        /// Use a separate memory, for example for a project, next to the default one.
        ///
        /// Excludes `file`.
        pub scope: Option<String> = None => flag::text("NAME").excludes(&["file"]),
        /// The directory for application data, in which `mcp-memory/` is created; `None` is that of the environment.
        pub data_home: Option<PathBuf> = None,
        /// Import another memory file, skipping what exists already.
        ///
        /// `~/` is expanded.
        pub import: Option<PathBuf> = None => flag::file("FILE"),
        /// Maximum number of entities.
        ///
        /// Creating more is refused.
        pub max_entities: usize = 50_000 => flag::number("N"),
        /// Maximum size of the memory file, in bytes.
        ///
        /// A change that would exceed it is refused, and a larger file is not opened.
        pub max_file_bytes: u64 = 64 << 20 => flag::bytes(),
        /// Number of backups to keep, at most one per day; 0 for none.
        ///
        /// `FILE.bak.1` (the newest), `FILE.bak.2`, … One is made before a change if there is none or the newest is more
        /// than a day old.
        pub backup: u32 = 3 => flag::number("N"),
        /// Number of changes that can be undone; 0 disables the history.
        ///
        /// Those that `memory_history` lists; stored in `FILE.history` with the deleted content.
        pub history: usize = 200 => flag::number("N"),
        /// Record when entities were created and changed.
        ///
        /// In `FILE.history`: the memory file itself contains no times.
        pub timestamps: bool = true => flag::on_off(),
        /// Maximum size of a result, in bytes; 0 for no limit, like the published server.
        ///
        /// Of the records in its text, and in its structured content. Excludes the surrounding JSON and warnings, which
        /// have a quarter as many bytes.
        pub max_result_bytes: usize = TEXT_BYTES_MAX => flag::bytes(),
        /// How long a change waits for other programs' locks on the file, in milliseconds.
        pub lock_wait: Duration = Duration::from_secs(15) => flag::millis(),
        /// The enabled tools and their names.
        pub tools: ToolChoice = ToolChoice::default() => flag::group(),
    }
}

impl Config {
    fn settle(&mut self, vars: Vars<'_>, given: &Given) -> Result<(), ToolError> {
        if self.file.is_none() && !given.has("scope") {
            self.file = vars.path("MEMORY_FILE_PATH");
            self.file_of_published = self.file.is_some();
        }
        self.data_home = data_home(vars);
        Ok(())
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
