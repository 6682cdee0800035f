//! Configuration: directories, limits, refused paths and names, tools.
//!
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use linchpin_kit::{RootsPolicy, TEXT_BYTES_MAX, ToolChoice, ToolError, flag};
use unicode_normalization::UnicodeNormalization;

use crate::paths::expand_home;

/// The flag that enables `fs_delete`.
pub(crate) const ALLOW_DELETE: &str = "--allow-delete";

/// The supported roots policies: all.
pub const ROOTS: &[RootsPolicy] = &[RootsPolicy::Ignore, RootsPolicy::Narrow, RootsPolicy::Use, RootsPolicy::Replace];

linchpin_kit::options! {
    /// The configuration. `Config::default()` is the drop-in behaviour without an allowed directory.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Config: "MCP_FS" {
        /// Directories to serve. Nothing outside them is accessible, not even through symlinks.
        ///
        /// `~` is expanded, relative paths are relative to the working directory. In `MCP_FS_DIRS` separated by `:` or
        /// newlines.
        pub directories: Vec<String> = Vec::new()
            => flag::repeated("DIR", ':').only_word("DIR").variable("MCP_FS_DIRS").directories(),
        /// Files that are never accessed or listed, for example `'**/.env'`. May be repeated.
        ///
        /// Globs, case-insensitive; see the README for the dialect.
        pub deny: Vec<String> = Vec::new() => flag::repeated("GLOB", ',').adds(),
        /// Maximum size of a file read whole, in bytes.
        pub max_read_bytes: u64 = 10 << 20 => flag::bytes(),
        /// Maximum size of a result's text, in bytes, before it is truncated, to continue at a cursor.
        ///
        /// Of a listing, search or range read.
        pub max_result_bytes: usize = TEXT_BYTES_MAX => flag::bytes(),
        /// Maximum number of entries in a listing, tree or search before it is truncated, to continue at a cursor.
        ///
        /// 0 counts as 1.
        pub max_entries: usize = 10_000 => flag::number("N"),
        /// Maximum number of entries that one call examines.
        ///
        /// Then it stops, to continue at a cursor, or fails if it writes.
        pub max_scan: usize = 2_000_000 => flag::number("N"),
        /// Also offer `fs_delete`.
        pub allow_delete: bool = false => flag::switch(),
        /// Allow invisible or direction-changing characters in new names.
        ///
        /// Also makes an exact name take precedence over one that differs only in Unicode composition.
        pub allow_odd_names: bool = false => flag::switch(),
        /// Refuse names with a special meaning on Windows, such as CON or a:b; for shares and WSL mounts.
        ///
        /// The default on Windows.
        pub windows_names: bool = cfg!(windows) => flag::switch(),
        /// Follow symlinks that stay inside the directories, or none.
        pub follow_symlinks: FollowSymlinks = FollowSymlinks::Inside
            => flag::choice("inside|never").default("inside"),
        /// How to use the client's roots.
        ///
        /// On its own calls; `None` is `Ignore`. With `Narrow`, only paths both in a configured directory and in a root are
        /// accessible, which may be none. With `Use` (if no directory is configured) and `Replace` the client decides, and
        /// may name the whole disk: use these only for clients with the rights of this process, such as the one that
        /// started it, not for a server that others can connect to. Roots that cannot be opened are skipped; if none can,
        /// the configured directories remain. A client that declares roots but does not return them within ten seconds
        /// has no access.
        pub roots: Option<RootsPolicy> = None
            => flag::roots(ROOTS).default("ignore, or use if neither DIR nor --http is given"),
        /// Also offer files as resources (`file:///…`).
        pub resources: bool = false => flag::switch(),
        /// Match the published server exactly, without this server's improvements.
        ///
        /// Its text handling: U+FFFD for invalid UTF-8, LF after `tail` and edits, insertion at the start for an empty
        /// `oldText`. Confinement is never relaxed.
        pub compat: bool = false => flag::switch(),
        /// The enabled tools and their names. By default all but `fs_delete`, without prefix.
        pub tools: ToolChoice = ToolChoice::default() => flag::group(),
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
            other => Err(ToolError::new(format!("unknown value: {other}")).hint("Use inside or never.")),
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
        return Some("the name is a device of Windows");
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
