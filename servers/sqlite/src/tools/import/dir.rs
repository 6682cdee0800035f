//! The import directory.

use super::{FILE_BYTES_MAX, shown};
use crate::config;
use linchpin_kit::ToolError;
use std::fs::File;
use std::path::{Path, PathBuf};

/// A directory from which files are imported.
#[derive(Debug)]
pub(crate) struct ImportDir {
    #[cfg(unix)]
    handle: std::os::fd::OwnedFd,
    #[cfg(not(unix))]
    path: PathBuf,
}

impl ImportDir {
    /// Opens the directory.
    pub(crate) fn open(path: &Path) -> Result<ImportDir, ToolError> {
        let path = config::in_full(path)?;
        if !path.is_dir() {
            return Err(ToolError::new(format!("{} is not a directory", path.display()))
                .hint("Use an existing directory for CSV imports."));
        }
        Self::of(path)
    }

    #[cfg(unix)]
    fn of(path: PathBuf) -> Result<ImportDir, ToolError> {
        use rustix::fs::{Mode, OFlags};
        let handle = rustix::fs::open(&path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty());
        handle
            .map(|handle| ImportDir { handle })
            .map_err(|error| ToolError::new(format!("{} cannot be opened: {}", path.display(), error.kind())))
    }

    #[cfg(not(unix))]
    fn of(path: PathBuf) -> Result<ImportDir, ToolError> {
        Ok(ImportDir { path })
    }

    /// A regular file directly in the directory.
    pub(super) fn file(&self, name: &str) -> Result<File, ToolError> {
        let refused = |why: &str| {
            ToolError::new(format!("Error: {} {why}", shown(name)))
                .hint("Pass the bare name of a CSV file in the import directory.")
        };
        if name.is_empty() || name == "." || name == ".." || name.contains(['/', '\\', '\0', ':']) {
            return Err(refused("is not a bare file name"));
        }
        let file = self.entry(name).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => refused("does not exist in the import directory"),
            _ => refused("cannot be opened; symlinks are not followed"),
        })?;
        let meta = file.metadata().map_err(|_| refused("cannot be accessed"))?;
        if !meta.is_file() {
            return Err(refused("is not a regular file"));
        }
        if meta.len() > FILE_BYTES_MAX {
            return Err(refused("is too large"));
        }
        Ok(file)
    }

    #[cfg(unix)]
    fn entry(&self, name: &str) -> std::io::Result<File> {
        use rustix::fs::{Mode, OFlags};
        // Without NONBLOCK, opening a pipe with this name would block.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        Ok(rustix::fs::openat(&self.handle, name, flags, Mode::empty())?.into())
    }

    #[cfg(not(unix))]
    fn entry(&self, name: &str) -> std::io::Result<File> {
        let path = self.path.join(name);
        if std::fs::symlink_metadata(&path)?.file_type().is_symlink() {
            return Err(std::io::ErrorKind::InvalidInput.into());
        }
        File::open(path)
    }
}
