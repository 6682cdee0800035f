//! Small files of git, read within limits.

use linchpin_kit::ToolError;
use std::fs;
use std::io::Read;
use std::path::Path;

pub(crate) fn small_file(path: &Path, what: &str) -> Result<String, ToolError> {
    bounded_file(path, what, SMALL_MAX)
}

pub(crate) fn bounded_file(path: &Path, what: &str, max: u64) -> Result<String, ToolError> {
    // Opening a pipe would block until its other end is opened.
    if fs::metadata(path).is_ok_and(|meta| !meta.is_file()) {
        return Err(ToolError::new(format!("{what} cannot be parsed")));
    }
    let file = match fs::File::open(path) {
        Ok(file) => file,
        Err(error) if matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory) => {
            return Err(ToolError::not_found(format!("{what} does not exist")));
        }
        Err(error) => return Err(ToolError::new(format!("{what} cannot be read: {}", error.kind()))),
    };
    let regular = file.metadata().is_ok_and(|meta| meta.is_file());
    let mut text = String::new();
    let read = file.take(max).read_to_string(&mut text);
    match read {
        Ok(read) if regular && (read as u64) < max => Ok(text),
        _ => Err(ToolError::new(format!("{what} cannot be parsed"))),
    }
}

const SMALL_MAX: u64 = 64 * 1024;
