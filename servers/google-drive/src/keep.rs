//! Files with secrets: JSON objects.

use linchpin_kit::{ToolError, io_text};
use serde_json::{Map, Value};
use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::path::Path;

/// Most bytes of such a file.
const BYTES_MAX: u64 = 1 << 20;

/// Reads one; `None` if there is none. Errors show nothing of it.
pub(crate) fn read(path: &Path) -> Result<Option<Map<String, Value>>, ToolError> {
    let mut text = String::new();
    match File::open(path).and_then(|file| file.take(BYTES_MAX).read_to_string(&mut text)) {
        Ok(_) => parse(&path.display().to_string(), &text).map(Some),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(ToolError::new(format!("{} cannot be read: {}", path.display(), io_text(&error)))),
    }
}

/// The object in a text that came from `what`.
pub(crate) fn parse(what: &str, text: &str) -> Result<Map<String, Value>, ToolError> {
    match serde_json::from_str(text) {
        Ok(Value::Object(members)) => Ok(members),
        _ => Err(ToolError::new(format!("{what} is not a JSON object"))),
    }
}

/// Replaces a file by one that only its owner can read. A symlink is refused: what it leads to may be somebody else's.
pub(crate) fn write(path: &Path, members: &Map<String, Value>) -> Result<(), ToolError> {
    let failed = |why: &str| ToolError::new(format!("{} cannot be written: {why}", path.display()));
    let io = |error: std::io::Error| failed(&io_text(&error));
    match std::fs::symlink_metadata(path) {
        Ok(about) if about.is_symlink() => {
            return Err(failed("it is a symlink").hint("Name the file that it leads to."));
        }
        Ok(about) if !about.is_file() => return Err(failed("it is not a file")),
        _ => {}
    }
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        std::fs::create_dir_all(folder).map_err(io)?;
    }
    // Beside it, so that there is always a whole one; two processes have two.
    let mut beside = path.as_os_str().to_owned();
    beside.push(format!(".{}", std::process::id()));
    let _ = std::fs::remove_file(&beside);
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let text = Value::Object(members.clone()).to_string();
    let written = options.open(&beside).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        std::fs::rename(&beside, path)
    });
    written.map_err(|error| {
        let _ = std::fs::remove_file(&beside);
        io(error)
    })
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use serde_json::json;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn only_the_owner_reads_it_and_symlinks_are_refused() {
        let home = tempfile::tempdir().unwrap();
        let (path, link) = (home.path().join("deep/er/file.json"), home.path().join("link.json"));
        let Value::Object(members) = json!({ "refresh_token": "r" }) else { unreachable!() };
        for _ in 0..2 {
            write(&path, &members).unwrap();
            assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
            // As the published server leaves it.
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        }
        assert_eq!(read(&path).unwrap(), Some(members.clone()));
        let target = home.path().join("target.json");
        std::fs::write(&target, "{}").unwrap();
        std::os::unix::fs::symlink(&target, &link).unwrap();
        assert!(write(&link, &members).unwrap_err().message().ends_with("it is a symlink"));
        assert!(write(home.path(), &members).is_err());
        assert_eq!(std::fs::read_to_string(&target).unwrap(), "{}");
        assert_eq!(std::fs::read_dir(path.parent().unwrap()).unwrap().count(), 1, "nothing is left beside it");
    }

    #[test]
    fn errors_show_nothing_of_a_file() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("x");
        assert_eq!(read(&path).unwrap(), None);
        std::fs::write(&path, "secret").unwrap();
        assert!(!format!("{:?}", read(&path)).contains("secret"));
    }
}
