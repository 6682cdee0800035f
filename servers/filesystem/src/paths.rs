//! Paths as text.

use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

pub(crate) fn expand_home(text: &str) -> PathBuf {
    let rest = match text.strip_prefix('~') {
        Some("") => "",
        Some(rest) if rest.starts_with('/') => rest.trim_start_matches('/'),
        _ => return PathBuf::from(text),
    };
    match std::env::var_os("HOME").filter(|home| !home.is_empty()) {
        Some(home) if rest.is_empty() => PathBuf::from(home),
        Some(home) => PathBuf::from(home).join(rest),
        None => PathBuf::from(text),
    }
}

/// Removes `.` and `..` from a path lexically.
pub(crate) fn normalize(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                out.pop();
            }
            other => out.push(other),
        }
    }
    out
}

/// The `file://` URI of a path.
pub(crate) fn path_uri(path: &Path) -> String {
    format!("file://{}", percent_encoded(path, b"/-._~!$&'()*+,;=:@"))
}

/// Percent-encodes the path, which need not be UTF-8: all but letters, digits and the `plain` characters.
pub(crate) fn percent_encoded(path: &Path, plain: &[u8]) -> String {
    let mut text = String::new();
    for &byte in path.as_os_str().as_bytes() {
        if byte.is_ascii_alphanumeric() || plain.contains(&byte) {
            text.push(char::from(byte));
        } else {
            text.push_str(&format!("%{byte:02X}"));
        }
    }
    text
}
