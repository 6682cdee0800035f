//! New files under names that others have chosen.

use crate::without_hidden;
use std::fs::{File, OpenOptions};
use std::io::{Error, ErrorKind};
use std::path::{Path, PathBuf};

/// Longest name, in characters, and longest extension that is kept of a longer one.
const NAME_MAX: usize = 60;
const EXTENSION_MAX: usize = 12;

/// How many files of the same name there may be.
const SAME_NAMES: usize = 100;

/// Creates a file of about this name in a directory. What is there is neither replaced nor followed: the second `a.txt` is
/// `a (1).txt`.
///
/// # Errors
/// When it cannot be created, or there are a hundred files of that name.
pub fn new_file(directory: &Path, name: &str) -> std::io::Result<(PathBuf, File)> {
    let name = safe_name(name);
    let (stem, extension) = match name.rsplit_once('.') {
        Some((stem, extension)) if !stem.is_empty() => (stem, format!(".{extension}")),
        _ => (name.as_str(), String::new()),
    };
    for n in 0..SAME_NAMES {
        let own = if n == 0 { name.clone() } else { format!("{stem} ({n}){extension}") };
        let path = directory.join(own);
        match OpenOptions::new().write(true).create_new(true).open(&path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            created => return created.map(|file| (path, file)),
        }
    }
    Err(Error::new(ErrorKind::AlreadyExists, format!("there are {SAME_NAMES} files of that name")))
}

/// A name of one file on every system: no separators, no hidden files, none of Windows' devices.
fn safe_name(name: &str) -> String {
    let plain = |c: char| if c.is_control() || "/\\:*?\"<>|".contains(c) { '_' } else { c };
    let mut name: Vec<char> = without_hidden(name).chars().map(plain).collect();
    if name.len() > NAME_MAX {
        // What kind of file it is stays.
        let kept = name.iter().rev().take(EXTENSION_MAX).position(|c| *c == '.').map_or(0, |at| at + 1);
        name.drain(NAME_MAX - kept..name.len() - kept);
    }
    let name = String::from_iter(name);
    let name = name.trim_matches(|c: char| c == '.' || c.is_whitespace());
    let stem = name.split('.').next().unwrap_or_default().to_ascii_lowercase();
    let is_device = matches!(stem.as_str(), "con" | "prn" | "aux" | "nul")
        || stem.len() == 4 && (stem.starts_with("com") || stem.starts_with("lpt"));
    match (name.is_empty(), is_device) {
        (true, _) => "file".to_owned(),
        (_, true) => format!("_{name}"),
        _ => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_in_the_directory() {
        let (long, dots) = (format!("{}.tar.gz", "a".repeat(90)), format!("b.{}", "a".repeat(90)));
        for (name, want) in [
            ("Plan.md", "Plan.md"),
            ("../../etc/passwd", "_.._etc_passwd"),
            ("/etc/passwd", "_etc_passwd"),
            (".bashrc", "bashrc"),
            ("..", "file"),
            ("a\nb:c", "a_b_c"),
            ("CON.txt", "_CON.txt"),
            ("", "file"),
            (&long, &format!("{}.gz", "a".repeat(57))),
            (&dots, &format!("b.{}", "a".repeat(58))),
        ] {
            assert_eq!(safe_name(name), want);
        }
    }

    #[test]
    fn what_is_there_is_neither_replaced_nor_followed() {
        let home = tempfile::tempdir().unwrap();
        std::fs::write(home.path().join("a.md"), "kept").unwrap();
        #[cfg(unix)]
        std::os::unix::fs::symlink("/etc/passwd", home.path().join("x.md")).unwrap();
        #[cfg(not(unix))]
        std::fs::write(home.path().join("x.md"), "").unwrap();
        for (name, want) in [("a.md", "a (1).md"), ("a.md", "a (2).md"), ("x.md", "x (1).md"), ("new", "new")] {
            assert_eq!(new_file(home.path(), name).unwrap().0, home.path().join(want));
        }
        assert_eq!(std::fs::read_to_string(home.path().join("a.md")).unwrap(), "kept");
    }
}
