//! Errors of system calls, in the published server's wording.

use linchpin_kit::{ErrorKind, ToolError, io_text};

/// The error of a failed system call in the format of the published server: `CODE: text, call 'path'`.
pub(crate) fn io_fault(error: rustix::io::Errno, call: &str, path: &str) -> ToolError {
    use rustix::io::Errno;
    let (code, text, hint) = describe_errno(error);
    let fault = ToolError::new(format!("{code}: {text}, {call} '{path}'"));
    let kind = match error {
        Errno::NOENT | Errno::NOTDIR => Some(ErrorKind::NotFound),
        Errno::ACCESS | Errno::PERM | Errno::ROFS => Some(ErrorKind::Denied),
        Errno::EXIST | Errno::NOTEMPTY => Some(ErrorKind::Conflict),
        Errno::ISDIR | Errno::NAMETOOLONG | Errno::INVAL => Some(ErrorKind::Invalid),
        Errno::NOSPC | Errno::DQUOT => Some(ErrorKind::Limited { retry_after: None }),
        _ => None,
    };
    let fault = match kind {
        Some(kind) => fault.kind(kind),
        None => fault,
    };
    hint.map_or(fault.clone(), |hint| fault.hint(hint))
}

/// The symbolic name, message and hint for an error number.
fn describe_errno(error: rustix::io::Errno) -> (String, String, Option<&'static str>) {
    use rustix::io::Errno;
    let known = match error {
        Errno::NOENT => (
            "ENOENT",
            "no such file or directory",
            Some("Check the spelling with list_directory on the parent, or create the parent with create_directory."),
        ),
        Errno::EXIST => ("EEXIST", "file already exists", Some("Choose another name, or move the existing file.")),
        Errno::ISDIR => ("EISDIR", "illegal operation on a directory", Some("Use list_directory to list its content.")),
        Errno::NOTDIR => ("ENOTDIR", "not a directory", Some("A parent in this path is a file, not a directory.")),
        Errno::ACCESS => {
            ("EACCES", "permission denied", Some("The user that the server runs as lacks the permission."))
        }
        Errno::PERM => {
            ("EPERM", "operation not permitted", Some("The operating system or the file system does not permit this."))
        }
        Errno::ROFS => ("EROFS", "read-only file system", Some("This directory is mounted read-only.")),
        Errno::NOSPC => ("ENOSPC", "no space left on device", Some("Free some space first; nothing was changed.")),
        Errno::LOOP => ("ELOOP", "too many symbolic links encountered", Some("The symlinks form a cycle.")),
        Errno::NAMETOOLONG => ("ENAMETOOLONG", "name too long", Some("Use a shorter name.")),
        Errno::NOTEMPTY => ("ENOTEMPTY", "directory not empty", Some("Pass recursive to delete its content too.")),
        Errno::XDEV => ("EXDEV", "cross-device link not permitted", Some("Copy with fs_copy instead.")),
        Errno::MFILE | Errno::NFILE => ("EMFILE", "too many open files", Some("Try again in a moment.")),
        Errno::INVAL => ("EINVAL", "invalid argument", None),
        Errno::BUSY => {
            ("EBUSY", "resource busy or locked", Some("It is a mount point or in use; nothing was changed."))
        }
        other => {
            let text = io_text(&std::io::Error::from(other)).to_lowercase();
            return (format!("E{}", other.raw_os_error()), text, None);
        }
    };
    (known.0.to_owned(), known.1.to_owned(), known.2)
}
