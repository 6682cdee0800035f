//! Shared by the tools that write.

use std::ffi::OsStr;
use std::os::fd::BorrowedFd;
use std::path::Path;

use linchpin_kit::ToolError;
use rustix::io::Errno;

use crate::config::check_new_name;
use crate::error::io_fault;
use crate::inner::Inner;
use crate::open::open_failed;
use crate::os::{self, Kind, Temp};
use crate::resolve::{Last, Place};
use crate::walk::{Stop, each_entry};

impl Inner {
    /// Refuses to replace anything but a regular file.
    pub(crate) fn replaceable(&self, place: &Place, kind: Kind) -> Result<(), ToolError> {
        match kind {
            Kind::File => Ok(()),
            Kind::Dir => Err(io_fault(Errno::ISDIR, "open", &place.shown())),
            Kind::Link | Kind::Other => Err(open_failed(&os::OpenError::Special, place, "open")),
        }
    }

    /// Resolves a destination: it must not exist, its directory must.
    pub(crate) fn new_place(&self, destination: &str) -> Result<Place, ToolError> {
        let target = self.resolve(destination, Last::Follow)?;
        if target.meta().is_some() {
            return Err(already_exists(destination));
        }
        let [name] = target.missing() else {
            return Err(io_fault(Errno::NOENT, "open", &target.shown()));
        };
        check_new_name(name, self.config.allow_odd_names)?;
        Ok(target)
    }

    /// Refuses to move or delete a directory that contains a denied entry: after a move the pattern might no longer
    /// match, and deleting it would delete the entry.
    pub(crate) fn refuse_hidden_content(&self, place: &Place, what: &str) -> Result<(), ToolError> {
        if self.deny.is_empty() {
            return Ok(());
        }
        let (base, belows) = (place.path(), self.belows(place));
        let mut visit = |_: BorrowedFd<'_>, _: &OsStr, rest: &Path, _: Kind| {
            if self.deny.covers(&base, &belows, rest) { Err(Stop::Denied) } else { Ok(()) }
        };
        match each_entry(place, self.config.max_scan, &mut visit) {
            Ok(()) => Ok(()),
            Err(Stop::Denied) => Err(ToolError::new(format!(
                "Access denied - cannot {what} a directory that contains something excluded by a deny pattern: {}",
                place.shown()
            ))
            .hint("Handle the other entries one by one.")),
            Err(stop) => Err(stop.into_error(place)),
        }
    }
}

/// Replaces an existing file with these bytes; sets the mode as a write would leave it.
pub(crate) fn replace_with(place: &Place, bytes: &[u8]) -> Result<(), ToolError> {
    let failed = |error| io_fault(error, "open", &place.shown());
    let mut temp = Temp::create(place.dir(), place.name(), true).map_err(failed)?;
    temp.write(bytes).map_err(failed)?;
    match os::open_file(place.dir(), place.name()) {
        Ok((old, meta)) => temp.dress_as(&old, &meta).map_err(failed)?,
        // Writable but not readable: only the mode can be kept.
        Err(os::OpenError::System(Errno::ACCESS)) => {
            let meta = os::meta(place.dir(), place.name()).map_err(failed)?;
            temp.set_mode(os::mode_after_write(meta.mode)).map_err(failed)?;
        }
        Err(error) => return Err(open_failed(&error, place, "open")),
    }
    temp.replace().map_err(failed)
}

pub(crate) fn copy_file(source: &Place, at: BorrowedFd<'_>, name: &OsStr, replace: bool) -> Result<(), os::OpenError> {
    copy_between(source.dir(), source.name(), at, name, replace)
}

/// Copies the content and mode of one regular file.
pub(crate) fn copy_between(
    from: BorrowedFd<'_>,
    old: &OsStr,
    to: BorrowedFd<'_>,
    new: &OsStr,
    replace: bool,
) -> Result<(), os::OpenError> {
    let (mut file, meta) = os::open_file(from, old)?;
    let mut temp = Temp::create(to, new, true)?;
    std::io::copy(&mut file, temp.file()).map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
    // Set-ID bits apply to this file only, not to copies.
    temp.set_mode(meta.mode & 0o777)?;
    if replace {
        temp.replace()?
    } else {
        temp.place_new()?
    }
    Ok(())
}

pub(crate) fn already_exists(destination: &str) -> ToolError {
    ToolError::new(format!("Destination already exists: {destination}"))
        .hint("Choose another destination, or move the existing file first.")
}
