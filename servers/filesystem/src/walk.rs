//! Operations on everything in a directory. Symlinks are not followed.

use std::ffi::OsStr;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use linchpin_kit::ToolError;
use rustix::io::Errno;

use crate::error::io_fault;
use crate::os::{Kind, entries, remove};
use crate::resolve::Place;

/// Maximum names of one directory; the rest is omitted.
pub(crate) const NAMES_MAX: usize = 2_000_000;

/// Maximum depth of a walk.
pub(crate) const DEPTH_MAX: usize = 256;

/// Called with the directory, the name, the path relative to the start and the type.
pub(crate) type Visit<'a> = dyn FnMut(BorrowedFd<'_>, &OsStr, &Path, Kind) -> Result<(), Stop> + 'a;

/// Why a recursive operation ended early.
pub(crate) enum Stop {
    /// Do not descend into this directory.
    Prune,
    /// An entry matches a deny pattern.
    Denied,
    /// Too many entries or levels for one operation.
    TooMuch,
    /// The system call failed.
    System(Errno),
}

impl From<Errno> for Stop {
    fn from(error: Errno) -> Self {
        Self::System(error)
    }
}

impl Stop {
    pub(crate) fn into_error(self, place: &Place) -> ToolError {
        match self {
            Self::System(error) => io_fault(error, "open", &place.shown()),
            _ => ToolError::new(format!("Too many entries or levels for one operation: {}", place.shown()))
                .hint("Act on its subdirectories one by one."),
        }
    }
}

/// Visits everything below a directory, parents before children, without following symlinks, at most `most` entries.
/// [`Stop::Prune`] from the visitor skips the content of that directory.
pub(crate) fn each_entry(place: &Place, most: usize, visit: &mut Visit<'_>) -> Result<(), Stop> {
    let mut left = most;
    each_below(place.dir(), place.name(), Path::new(""), 0, &mut left, visit)
}

fn each_below(
    at: BorrowedFd<'_>,
    name: &OsStr,
    rest: &Path,
    depth: usize,
    left: &mut usize,
    visit: &mut Visit<'_>,
) -> Result<(), Stop> {
    if depth > DEPTH_MAX {
        return Err(Stop::TooMuch);
    }
    let (fd, entries, more) = entries(at, name, *left)?;
    if more {
        return Err(Stop::TooMuch);
    }
    *left -= entries.len();
    for (name, kind) in entries {
        let path = rest.join(&name);
        match visit(fd.as_fd(), &name, &path, kind) {
            Err(Stop::Prune) => continue,
            result => result?,
        }
        if kind == Kind::Dir {
            each_below(fd.as_fd(), &name, &path, depth + 1, left, visit)?;
        }
    }
    Ok(())
}

/// Removes everything in a directory, deepest first, at most `left` entries.
pub(crate) fn empty(at: BorrowedFd<'_>, name: &OsStr, depth: usize, left: &mut usize) -> Result<(), Errno> {
    let (fd, entries, more) = entries(at, name, *left)?;
    if more || depth > DEPTH_MAX {
        return Err(Errno::OVERFLOW);
    }
    *left -= entries.len();
    for (name, kind) in entries {
        if kind == Kind::Dir {
            empty(fd.as_fd(), &name, depth + 1, left)?;
        }
        remove(fd.as_fd(), &name, kind)?;
    }
    Ok(())
}
