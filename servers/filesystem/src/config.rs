//! Configuration: directories, limits, refused paths and names, tools.
//!
//! Plain data without a command-line parser. `from_env` reads the `MCP_FS_*` variables; flags are applied after it and
//! take precedence.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use linchpin_kit::{RootsPolicy, ToolChoice, ToolError, Vars};
use unicode_normalization::UnicodeNormalization;

use crate::resolve::expand_home;

/// The flag that enables `fs_delete`.
pub(crate) const ALLOW_DELETE: &str = "--allow-delete";

/// The supported roots policies: all.
pub const ROOTS: &[RootsPolicy] = &[RootsPolicy::Ignore, RootsPolicy::Narrow, RootsPolicy::Use, RootsPolicy::Replace];

/// The configuration. `Config::default()` is the drop-in behaviour without an allowed directory.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Config {
    /// Allowed directories; `~` is expanded, relative paths are relative to the working directory. Default none.
    pub directories: Vec<String>,
    /// Globs of hidden paths, case-insensitive; see the README for the dialect. Default none.
    pub deny: Vec<String>,
    /// Maximum bytes that a single read loads into memory. Default 10 MiB.
    pub max_read_bytes: u64,
    /// Maximum bytes of text of a listing, search or range read before it is truncated, to continue at a cursor.
    /// Default 100,000.
    pub max_result_bytes: usize,
    /// Maximum entries of a listing, tree or search before it is truncated, to continue at a cursor; 0 counts as 1.
    /// Default 10,000.
    pub max_entries: usize,
    /// Maximum entries that one call examines before it stops, to continue at a cursor, or fails if it writes. Default
    /// 2,000,000.
    pub max_scan: usize,
    /// Enables `fs_delete` (`--allow-delete`). Default off.
    pub allow_delete: bool,
    /// Allows new names with invisible, bidirectional or control characters, and makes an exact name take precedence
    /// over one that differs only in Unicode composition. Default off.
    pub allow_odd_names: bool,
    /// Refuses names with a special meaning on Windows (`CON`, `a:b`, trailing dots); for shares and WSL mounts.
    /// Default off; on for Windows.
    pub windows_names: bool,
    /// Whether symlinks are followed. Default: while they stay inside the allowed directories.
    pub follow_symlinks: FollowSymlinks,
    /// The effect of a client's roots on its own calls; `None` is `Ignore`. With `Narrow`, only paths both in a
    /// configured directory and in a root are accessible, which may be none. With `Use` (if no directory is configured)
    /// and `Replace` the client decides, and may name the whole disk: use these only for clients with the rights of
    /// this process, such as the one that started it, not for a server that others can connect to. Roots that cannot be
    /// opened are skipped; if none can, the configured directories remain. A client that declares roots but does not
    /// return them within ten seconds has no access. Default `None`.
    pub roots: Option<RootsPolicy>,
    /// Exposes files as resources, `file:///{+path}`. Default off.
    pub resources: bool,
    /// Restores the text handling of the published server: U+FFFD for invalid UTF-8, LF after `tail` and edits,
    /// insertion at the start for an empty `oldText`. Confinement is never relaxed. Default off.
    pub compat: bool,
    /// The enabled tools and their names. Default all but `fs_delete`, without prefix.
    pub tools: ToolChoice,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            directories: Vec::new(),
            deny: Vec::new(),
            max_read_bytes: 10 * 1024 * 1024,
            max_result_bytes: 100_000,
            max_entries: 10_000,
            max_scan: 2_000_000,
            allow_delete: false,
            allow_odd_names: false,
            windows_names: cfg!(windows),
            follow_symlinks: FollowSymlinks::Inside,
            roots: None,
            resources: false,
            compat: false,
            tools: ToolChoice::default(),
        }
    }
}

/// Whether symbolic links are followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FollowSymlinks {
    /// Followed while they stay inside an allowed directory.
    #[default]
    Inside,
    /// Never followed; a path through a link is refused.
    Never,
}

impl Config {
    /// Changes some of these options.
    ///
    /// ```
    /// # use linchpin_filesystem::Config;
    /// let config = Config::default().with(|config| config.allow_delete = true);
    /// ```
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    /// The default configuration with the `MCP_FS_*` variables applied.
    ///
    /// Lists (`MCP_FS_DIRS`, `MCP_FS_DENY`, `MCP_FS_ENABLE_TOOLS`, `MCP_FS_DISABLE_TOOLS`, `MCP_FS_TOOLSETS`) are
    /// separated by newlines or `:` (the first) or `,` (the others). Switches take `1/true/yes/on` or `0/false/no/off`.
    ///
    /// # Errors
    /// When the value of a variable is invalid; the message names the variable.
    pub fn from_env(vars: Vars<'_>) -> Result<Self, ToolError> {
        let mut config = Self { tools: vars.tool_choice("MCP_FS")?, ..Self::default() };
        config.directories = vars.list("MCP_FS_DIRS", ':').unwrap_or_default();
        config.deny = vars.list("MCP_FS_DENY", ',').unwrap_or_default();
        vars.switch("MCP_FS_ALLOW_DELETE", &mut config.allow_delete)?;
        vars.switch("MCP_FS_ALLOW_ODD_NAMES", &mut config.allow_odd_names)?;
        vars.switch("MCP_FS_WINDOWS_NAMES", &mut config.windows_names)?;
        vars.switch("MCP_FS_RESOURCES", &mut config.resources)?;
        vars.switch("MCP_FS_COMPAT", &mut config.compat)?;
        vars.number("MCP_FS_MAX_READ_BYTES", &mut config.max_read_bytes)?;
        vars.number("MCP_FS_MAX_RESULT_BYTES", &mut config.max_result_bytes)?;
        vars.number("MCP_FS_MAX_ENTRIES", &mut config.max_entries)?;
        vars.number("MCP_FS_MAX_SCAN", &mut config.max_scan)?;
        if let Some(policy) = vars.parsed("MCP_FS_FOLLOW_SYMLINKS")? {
            config.follow_symlinks = policy;
        }
        config.roots = vars.read("MCP_FS_ROOTS", |text| RootsPolicy::parse(text, ROOTS))?;
        Ok(config)
    }

    /// The choice of tools with the flags of this configuration.
    pub(crate) fn choice(&self) -> ToolChoice {
        let mut choice = self.tools.clone();
        choice.grant(ALLOW_DELETE, self.allow_delete);
        choice
    }
}

impl std::str::FromStr for FollowSymlinks {
    type Err = ToolError;

    fn from_str(text: &str) -> Result<Self, ToolError> {
        match text {
            "inside" => Ok(Self::Inside),
            "never" => Ok(Self::Never),
            other => {
                Err(ToolError::new(format!("Unknown value for follow-symlinks: {other}")).hint("Use inside or never."))
            }
        }
    }
}

/// The deny patterns.
#[derive(Debug)]
pub(crate) struct Deny {
    /// Matched against paths below an allowed directory.
    below: GlobSet,
    /// Patterns that begin with `/`, matched against absolute paths.
    absolute: GlobSet,
}

impl Deny {
    /// Parses the patterns. One without `/` matches that name at any depth; case is ignored.
    pub(crate) fn new(patterns: &[String]) -> Result<Self, ToolError> {
        let (mut below, mut absolute) = (GlobSetBuilder::new(), GlobSetBuilder::new());
        for pattern in patterns {
            let trimmed = expand_home(pattern.trim_end_matches('/')).to_string_lossy().into_owned();
            let anywhere = if trimmed.contains('/') { trimmed } else { format!("**/{trimmed}") };
            let composed: String = anywhere.nfc().collect();
            let glob = GlobBuilder::new(&composed)
                .literal_separator(true)
                .case_insensitive(true)
                .build()
                .map_err(|error| ToolError::new(format!("Invalid deny pattern {pattern}: {}", error.kind())))?;
            if composed.starts_with('/') {
                absolute.add(glob)
            } else {
                below.add(glob)
            };
        }
        let finish = |set: GlobSetBuilder| {
            set.build().map_err(|error| ToolError::new(format!("Invalid deny patterns: {error}")))
        };
        Ok(Self { below: finish(below)?, absolute: finish(absolute)? })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.below.is_empty() && self.absolute.is_empty()
    }

    /// Whether the entry `rest` of a directory is denied, given the directory's absolute path and its paths below the
    /// allowed directories. Its parents were checked before.
    pub(crate) fn covers(&self, base: &Path, belows: &[PathBuf], rest: &Path) -> bool {
        !self.is_empty()
            && (matches(&self.absolute, &base.join(rest))
                || belows.iter().any(|below| matches(&self.below, &below.join(rest))))
    }

    /// Refuses a path that is denied or below a denied one.
    pub(crate) fn check(&self, path: &Path, belows: &[PathBuf], asked: &Path) -> Result<(), ToolError> {
        let covered = !self.is_empty()
            && (path.ancestors().any(|path| matches(&self.absolute, path))
                || belows.iter().flat_map(|below| below.ancestors()).any(|below| matches(&self.below, below)));
        if covered {
            return Err(ToolError::new(format!(
                "Access denied - path is excluded by a deny pattern: {}",
                asked.display()
            ))
            .hint("The operator has excluded it; other spellings are denied too."));
        }
        Ok(())
    }
}

fn matches(set: &GlobSet, path: &Path) -> bool {
    match path.to_str() {
        _ if path.as_os_str().is_empty() => false,
        Some(text) if !text.is_ascii() => set.is_match(text.nfc().collect::<String>()),
        _ => set.is_match(path),
    }
}

/// Why Windows would treat this name specially; `None` if it would not.
pub(crate) fn windows_name_problem(name: &str) -> Option<&'static str> {
    if name.is_empty() || name == "." || name == ".." {
        return None;
    }
    if name.contains(':') {
        return Some("the name contains a drive or an alternate data stream");
    }
    if name.ends_with(['.', ' ']) {
        return Some("the name ends with a dot or space");
    }
    if name.chars().any(|c| c < ' ' || "<>\"|?*".contains(c)) {
        return Some("the name contains a character reserved by Windows");
    }
    let stem = name.split('.').next().unwrap_or(name).trim_end().to_ascii_uppercase();
    let numbered = stem.strip_prefix("COM").or_else(|| stem.strip_prefix("LPT"));
    let port = numbered.is_some_and(|rest| {
        let mut chars = rest.chars();
        matches!((chars.next(), chars.next()), (Some('0'..='9' | '\u{b9}' | '\u{b2}' | '\u{b3}'), None))
    });
    if port || matches!(stem.as_str(), "CON" | "PRN" | "AUX" | "NUL" | "CONIN$" | "CONOUT$") {
        return Some("the name is a Windows device name name name name");
    }
    let bytes = name.as_bytes();
    let tilde = bytes.iter().position(|byte| *byte == b'~');
    if tilde.is_some_and(|at| at <= 6 && bytes.get(at + 1).is_some_and(u8::is_ascii_digit)) && name.len() <= 12 {
        return Some("the name has the form of a short (8.3) name");
    }
    None
}

/// Refuses a new name with invisible or misleading characters.
pub(crate) fn check_new_name(name: &OsStr, allow_odd: bool) -> Result<(), ToolError> {
    let Some(text) = name.to_str().filter(|_| !allow_odd) else {
        return Ok(());
    };
    match text.chars().find(|c| is_odd(*c)) {
        None => Ok(()),
        Some(odd) => Err(ToolError::new(format!(
            "Refused - the new name contains the invisible or control character U+{:04X}",
            u32::from(odd)
        ))
        .hint("Omit the character, or start the server with --allow-odd-names.")),
    }
}

fn is_odd(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{180e}' | '\u{3164}' | '\u{feff}'
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{ffa0}'
            | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}
