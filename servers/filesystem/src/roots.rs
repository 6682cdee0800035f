//! The allowed directories.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use linchpin_kit::{ToolError, io_text};

use crate::os;
use crate::paths::normalize;

/// An allowed directory.
#[derive(Debug)]
pub(crate) struct Root {
    /// The configured path, made absolute.
    pub(crate) given: PathBuf,
    /// The path with symlinks resolved when it was opened.
    pub(crate) real: PathBuf,
    pub(crate) handle: Arc<OwnedFd>,
}

/// The allowed directories.
#[derive(Debug, Default)]
pub(crate) struct Roots {
    pub(crate) list: Vec<Arc<Root>>,
}

impl Roots {
    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Opens a directory named by the operator or a client's roots.
    pub(crate) fn add_ambient(&mut self, given: &Path) -> Result<(), String> {
        let path = std::path::absolute(given).map_err(|error| io_text(&error))?;
        let given = normalize(&path);
        let handle = os::open_ambient(&given).map_err(|error| io_text(&error.into()))?;
        let real = std::fs::canonicalize(&given).map_err(|error| io_text(&error))?;
        self.add(Root { given, real, handle: Arc::new(handle) });
        Ok(())
    }

    pub(crate) fn add(&mut self, root: Root) {
        if !self.list.iter().any(|known| known.given == root.given && known.real == root.real) {
            self.list.push(Arc::new(root));
        }
    }

    /// All spellings of the allowed directories, without duplicates.
    pub(crate) fn spellings(&self) -> Vec<String> {
        let mut all: Vec<String> = Vec::new();
        for path in self.list.iter().flat_map(|root| [&root.given, &root.real]) {
            let path = path.to_string_lossy().into_owned();
            if !all.contains(&path) {
                all.push(path);
            }
        }
        all
    }

    /// The innermost allowed directory that contains `path`, and the path relative to it.
    pub(crate) fn holding(&self, path: &Path) -> Option<(Arc<Root>, PathBuf)> {
        let mut best: Option<(usize, Arc<Root>, PathBuf)> = None;
        for root in &self.list {
            for top in [&root.given, &root.real] {
                let depth = top.components().count();
                if best.as_ref().is_some_and(|(deepest, ..)| *deepest >= depth) {
                    continue;
                }
                if let Ok(rest) = path.strip_prefix(top) {
                    best = Some((depth, Arc::clone(root), rest.to_owned()));
                }
            }
        }
        best.map(|(_, root, rest)| (root, rest))
    }

    /// `path` relative to every allowed directory that contains it.
    pub(crate) fn belows(&self, path: &Path) -> Vec<PathBuf> {
        let tops = self.list.iter().flat_map(|root| [&root.given, &root.real]);
        let mut belows: Vec<PathBuf> = tops.filter_map(|top| path.strip_prefix(top).ok()).map(Path::to_owned).collect();
        belows.dedup();
        belows
    }

    pub(crate) fn outside(&self, what: &str, path: &Path) -> ToolError {
        let allowed = self.spellings().join(", ");
        ToolError::denied(format!(
            "Access denied - {what} outside allowed directories: {} not in {allowed}",
            path.display()
        ))
        .hint("Use a path below one of these directories; list_allowed_directories lists them.")
    }
}
