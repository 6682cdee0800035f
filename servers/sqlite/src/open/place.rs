//! Where the database is, and which calls may access it.

use linchpin_kit::{ToolError, clip, resolve_symlinks, root_path};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// The place of the database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    /// In memory, for the lifetime of this process.
    Memory,
    /// A file; the path is absolute, so SQLite never takes it for a URI.
    File(PathBuf),
}

/// Maximum number of a client's roots that are considered; the rest are ignored.
const ROOTS_MAX: usize = 1_000;

/// The roots that limit a call. Without a scope no call gets a connection.
#[derive(Debug)]
pub(crate) struct RootsScope {
    roots: Option<Vec<String>>,
    /// When the call began; requesting the roots counts towards its time.
    pub(crate) begun: Instant,
}

impl RootsScope {
    /// For a client without roots, or if roots are not enforced.
    pub(crate) fn as_configured() -> RootsScope {
        RootsScope { roots: None, begun: Instant::now() }
    }

    /// For a client with these roots.
    pub(crate) fn within(roots: Vec<String>, begun: Instant) -> RootsScope {
        RootsScope { roots: Some(roots), begun }
    }
}

impl Place {
    /// Whether this call may access the database: symlinks are resolved, and whole path components compared, at this
    /// moment.
    pub(crate) fn admit(&self, scope: &RootsScope) -> Result<(), ToolError> {
        let (Place::File(path), Some(roots)) = (self, &scope.roots) else { return Ok(()) };
        let real = resolve_symlinks(path);
        let holds = |root: &String| {
            let root = root_path(root).and_then(|root| std::fs::canonicalize(root).ok());
            root.is_some_and(|root| real.starts_with(root))
        };
        if roots.iter().take(ROOTS_MAX).any(holds) {
            return Ok(());
        }
        Err(ToolError::denied(format!(
            "Error: the database {} is not in the roots of this client: {}",
            path.display(),
            listed(roots)
        ))
        .hint(
            "Nothing was opened or created. Open the folder of the database in the client; or the operator can configure a \
             database inside a root, or start the server with --roots ignore.",
        ))
    }
}

/// Lists some of the roots.
fn listed(roots: &[String]) -> String {
    const SHOWN_MAX: usize = 10;
    const BYTES_MAX: usize = 200;
    let shown = |root: &String| clip(root, BYTES_MAX).text.replace(char::is_control, " ");
    match roots.len() {
        0 => "it has none".into(),
        count if count > SHOWN_MAX => {
            let first: Vec<String> = roots.iter().take(SHOWN_MAX).map(shown).collect();
            format!("{} and {} more", first.join(", "), count - SHOWN_MAX)
        }
        _ => roots.iter().map(shown).collect::<Vec<_>>().join(", "),
    }
}

/// Refuses anything that cannot be a database file: SQLite would block on a pipe.
pub(crate) fn check_kind(path: &Path) -> Result<bool, ToolError> {
    match std::fs::metadata(path) {
        Ok(meta) if meta.is_file() => Ok(true),
        Ok(meta) => {
            let what = if meta.is_dir() { "a directory" } else { "not a regular file" };
            Err(ToolError::new(format!("{} is {what}", path.display())).hint("Use a database file."))
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(ToolError::new(format!("{} cannot be accessed: {}", path.display(), error.kind()))),
    }
}
