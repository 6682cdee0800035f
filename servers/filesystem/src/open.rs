//! Opens files for reading, with the errors of the published server.

use std::fs::File;
use std::io::Read;

use linchpin_kit::ToolError;
use rustix::io::Errno;

use crate::error::io_fault;
use crate::os::{self, Kind, Meta, OpenError};
use crate::resolve::Place;

/// Opens a file for reading, with the error messages of the published server.
pub(crate) fn open(place: &Place) -> Result<(File, Meta), ToolError> {
    place.existing("open")?;
    os::open_file(place.dir(), place.name()).map_err(|error| open_failed(&error, place, "read"))
}

/// The error for a file that could not be opened for `call`.
pub(crate) fn open_failed(error: &OpenError, place: &Place, call: &str) -> ToolError {
    let shown = place.shown();
    match error {
        OpenError::Special => ToolError::new(format!("Not a regular file: {shown}"))
            .hint("It is a FIFO, socket or device; only regular files and directories can be used."),
        OpenError::System(Errno::ISDIR) => ToolError::new(format!("EISDIR: illegal operation on a directory, {call}"))
            .hint("Use list_directory for directories."),
        OpenError::System(Errno::LOOP) => {
            ToolError::new(format!("The path changed while it was being opened: {shown}"))
                .hint("Another program is replacing it; try again later.")
        }
        OpenError::System(error) => io_fault(*error, "open", &shown),
    }
}

pub(crate) fn read_failed(error: &std::io::Error, place: &Place) -> ToolError {
    io_fault(Errno::from_io_error(error).unwrap_or(Errno::IO), "read", &place.shown())
}

/// Reads a whole file of at most `cap` bytes; `advice` is the hint for a larger one.
pub(crate) fn read_whole(place: &Place, cap: u64, advice: &str) -> Result<(File, Meta, Vec<u8>), ToolError> {
    let (file, meta) = open(place)?;
    let too_large = |size: u64| {
        ToolError::new(format!("File too large: {} has {size} bytes, the limit is {cap}", place.shown()))
            .hint(format!("Instead, {advice}."))
    };
    if meta.size > cap {
        return Err(too_large(meta.size));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(meta.size).unwrap_or(0) + 1);
    // The file may grow while it is read, or report no size.
    (&file).take(cap.saturating_add(1)).read_to_end(&mut bytes).map_err(|error| read_failed(&error, place))?;
    if bytes.len() as u64 > cap {
        return Err(too_large(bytes.len() as u64));
    }
    Ok((file, meta, bytes))
}

/// Refuses everything but a directory.
pub(crate) fn expect_dir(place: &Place) -> Result<(), ToolError> {
    match place.existing("scandir")?.kind {
        Kind::Dir => Ok(()),
        _ => Err(io_fault(Errno::NOTDIR, "scandir", &place.shown())),
    }
}
