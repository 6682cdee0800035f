//! Files that pages are given, and files that are written: only in the operator's directories.

use linchpin_kit::{ToolError, io_text};
use std::path::{Path, PathBuf};

/// Most files in a call.
const FILES_MAX: usize = 50;

/// The files at these paths, links resolved, if all of them are in the directories that may be uploaded from.
///
/// # Errors
/// When one is not, or is not a file.
pub(crate) fn allowed(directories: &[PathBuf], paths: &[String]) -> Result<Vec<PathBuf>, ToolError> {
    if paths.is_empty() {
        return Ok(Vec::new());
    }
    if paths.len() > FILES_MAX {
        return Err(ToolError::invalid(format!("At most {FILES_MAX} files can be uploaded at once")));
    }
    let Some(first) = directories.first() else {
        return Err(ToolError::denied("Files are not uploaded: there is no upload directory")
            .hint("The operator can allow a directory with --upload-dir."));
    };
    let roots: Vec<PathBuf> = directories.iter().filter_map(|directory| directory.canonicalize().ok()).collect();
    paths.iter().map(|path| one(&roots, first, path)).collect()
}

fn one(roots: &[PathBuf], first: &Path, path: &str) -> Result<PathBuf, ToolError> {
    // Nothing is said of what is outside, not even whether it exists.
    let outside = || {
        ToolError::denied("The file is not in a directory that may be uploaded from")
            .hint("The operator can allow more directories with --upload-dir.")
            .detail(path)
    };
    let asked = first.join(path);
    let file = match asked.canonicalize() {
        Ok(file) => file,
        Err(e) => {
            let parent = asked.parent().and_then(|parent| parent.canonicalize().ok());
            return Err(match parent.is_some_and(|parent| roots.iter().any(|root| parent.starts_with(root))) {
                true => ToolError::not_found(format!("The file cannot be read: {}", io_text(&e))).detail(path),
                false => outside(),
            });
        }
    };
    if !roots.iter().any(|root| file.starts_with(root)) {
        return Err(outside());
    }
    match file.is_file() {
        true => Ok(file),
        false => Err(ToolError::invalid("Not a file").detail(path)),
    }
}

/// A new file in the download directory, named as the caller wishes, without replacing one.
///
/// # Errors
/// When the name is none, or the file cannot be written.
pub(crate) fn save(directory: &Path, name: &str, bytes: &[u8]) -> Result<PathBuf, ToolError> {
    let plain = !name.is_empty()
        && name.len() <= 200
        && !name.starts_with('.')
        && !name.chars().any(|c| c.is_control() || "/\\:*?\"<>|".contains(c));
    if !plain {
        return Err(ToolError::invalid("The name is not one for a file")
            .hint("Use a plain name without directories, such as page.pdf.")
            .detail(name));
    }
    let unusable = |e: std::io::Error| ToolError::new(format!("The file cannot be written: {}", io_text(&e)));
    std::fs::create_dir_all(directory).map_err(unusable)?;
    let path = directory.join(name);
    let created = std::fs::OpenOptions::new().write(true).create_new(true).open(&path);
    let mut file = created.map_err(|e| match e.kind() {
        std::io::ErrorKind::AlreadyExists => ToolError::conflict("There is a file of that name already").detail(name),
        _ => unusable(e),
    })?;
    std::io::Write::write_all(&mut file, bytes).map_err(unusable)?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_within_the_upload_directories_are_given_to_pages() {
        let dir = tempfile::tempdir().unwrap();
        let (inside, outside) = (dir.path().join("in"), dir.path().join("secret.txt"));
        std::fs::create_dir_all(inside.join("deep")).unwrap();
        std::fs::write(inside.join("deep/a.txt"), "a").unwrap();
        std::fs::write(&outside, "s").unwrap();
        #[cfg(unix)]
        std::os::unix::fs::symlink(&outside, inside.join("link.txt")).unwrap();
        let roots = [inside.clone()];
        let ask = |path: &str| allowed(&roots, &[path.to_owned()]);
        let full = inside.join("deep/a.txt");
        assert_eq!(ask("deep/a.txt").unwrap(), [full.canonicalize().unwrap()]);
        assert_eq!(ask(full.to_str().unwrap()).unwrap().len(), 1);
        for path in [
            "../secret.txt",
            outside.to_str().unwrap(),
            "/etc/hostname",
            "/no/such",
            "link.txt",
            "deep/../../secret.txt",
        ] {
            if path == "link.txt" && !cfg!(unix) {
                continue;
            }
            let refused = ask(path).unwrap_err();
            assert_eq!(refused.message(), "The file is not in a directory that may be uploaded from", "{path}");
        }
        assert!(ask("deep/b.txt").unwrap_err().is_not_found());
        assert_eq!(ask("deep").unwrap_err().message(), "Not a file");
        assert!(allowed(&[], &["a".to_owned()]).unwrap_err().advice().unwrap().contains("--upload-dir"));
    }

    #[test]
    fn saved_files_stay_in_their_directory_and_replace_none() {
        let dir = tempfile::tempdir().unwrap();
        assert!(save(dir.path(), "page.pdf", b"1").is_ok());
        assert!(save(dir.path(), "page.pdf", b"2").is_err());
        assert_eq!(std::fs::read(dir.path().join("page.pdf")).unwrap(), b"1");
        for name in ["../x", "a/b", "/x", "", ".bashrc", "a\\b", "c:x", "a\nb"] {
            assert!(save(dir.path(), name, b"").is_err(), "{name:?}");
        }
    }
}
