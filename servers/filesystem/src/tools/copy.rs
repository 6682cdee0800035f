//! `fs_copy`: copies a file or a directory.

use linchpin_kit::{ToolError, ToolSpec};
use rustix::io::Errno;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::ffi::OsStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::answer::Answer;
use crate::change::{already_exists, copy_between, copy_file};
use crate::error::io_fault;
use crate::inner::Inner;
use crate::open::open_failed;
use crate::os::{self, Kind};
use crate::resolve::{Last, Place};
use crate::walk::{Stop, each_entry};

pub(crate) const COPY: ToolSpec = ToolSpec::writes(
    "fs_copy",
    "Copy File",
    "copy",
    "Copies a file, or a directory with recursive. Replaces an existing file only with overwrite.",
)
.extra()
.on_request()
.destructive();

/// Arguments of `fs_copy`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub struct FsCopy {
    /// The file or directory to copy.
    pub source: String,
    /// The destination; its directory must exist.
    pub destination: String,
    /// Replace an existing file (never a directory)
    #[serde(default)]
    pub overwrite: bool,
    /// Copy a directory and everything in it
    #[serde(default)]
    pub recursive: bool,
}

/// Additional structured content of `fs_copy`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CopyMore {
    /// Files copied.
    pub files: u64,
    /// Entries skipped: symlinks, special files and denied paths.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub skipped: u64,
}

#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Inner {
    pub(crate) fn copy(&self, args: &FsCopy) -> Result<Answer<CopyMore>, ToolError> {
        let source = self.resolve(&args.source, Last::Follow)?;
        let kind = source.existing("open")?.kind;
        let mut more = CopyMore::default();
        if kind == Kind::Dir {
            if !args.recursive {
                return Err(ToolError::new(format!("{} is a directory", args.source))
                    .hint("Pass recursive to copy a directory and everything in it."));
            }
            let target = self.new_place(&args.destination)?;
            if target.path().starts_with(source.path()) {
                return Err(
                    ToolError::new("A directory cannot be copied into itself").hint("Choose another destination.")
                );
            }
            self.copy_tree(&source, &target, &mut more)?;
        } else {
            let target = if args.overwrite {
                let target = self.resolve(&args.destination, Last::Follow)?;
                match target.meta() {
                    Some(meta) => {
                        self.replaceable(&target, meta.kind)?;
                        target
                    }
                    None => self.new_place(&args.destination)?,
                }
            } else {
                self.new_place(&args.destination)?
            };
            copy_file(&source, target.dir(), target.name(), target.meta().is_some()).map_err(|error| match error {
                os::OpenError::System(Errno::EXIST) => already_exists(&args.destination),
                error => open_failed(&error, &source, "copy"),
            })?;
            more.files = 1;
        }
        Ok(Answer::new(format!("Successfully copied {} to {}", args.source, args.destination), more))
    }

    fn copy_tree(&self, source: &Place, target: &Place, more: &mut CopyMore) -> Result<(), ToolError> {
        let (base, belows) = (source.path(), self.belows(source));
        let (target_base, target_belows) = (target.path(), self.belows(target));
        // The created parent directories of the current entry, outermost first.
        let mut made: Vec<(PathBuf, Arc<OwnedFd>)> = Vec::new();
        let new_dir = |at: BorrowedFd<'_>, name: &OsStr| os::make_dir(at, name).and_then(|()| os::open_dir(at, name));
        let top = new_dir(target.dir(), target.name()).map_err(|error| io_fault(error, "mkdir", &target.shown()))?;
        made.push((PathBuf::new(), Arc::new(top)));
        let mut visit = |at: BorrowedFd<'_>, name: &OsStr, rest: &Path, kind: Kind| -> Result<(), Stop> {
            let denied = self.deny.covers(&base, &belows, rest) || self.deny.covers(&target_base, &target_belows, rest);
            if denied || matches!(kind, Kind::Link | Kind::Other) {
                more.skipped += 1;
                return if kind == Kind::Dir { Err(Stop::Prune) } else { Ok(()) };
            }
            let parent = rest.parent().unwrap_or(Path::new(""));
            while made.len() > 1 && made.last().is_some_and(|(path, _)| path != parent) {
                made.pop();
            }
            let into = made.last().map_or_else(|| target.dir(), |(_, fd)| fd.as_fd());
            if kind == Kind::Dir {
                let fd = new_dir(into, name)?;
                made.push((rest.to_owned(), Arc::new(fd)));
            } else {
                copy_between(at, name, into, name, false).map_err(|error| match error {
                    os::OpenError::System(error) => Stop::System(error),
                    os::OpenError::Special => Stop::System(Errno::INVAL),
                })?;
                more.files += 1;
            }
            Ok(())
        };
        let done = each_entry(source, self.config.max_scan, &mut visit);
        done.map_err(|stop| {
            let words = stop.into_error(source);
            let text = format!("{} (after {} files)", words.message(), more.files);
            ToolError::new(text)
                .hint(format!("The copied files are in {}; choose a new destination to try again.", target.shown()))
        })
    }
}
