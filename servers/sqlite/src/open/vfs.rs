//! Which files SQLite may touch: the database, and its `-journal`, `-wal` and `-shm`.
//!
//! SQLite can reach other files without a statement: a journal left by a crash may name a super-journal, which SQLite
//! looks up, reads and then deletes. Whoever can put a journal next to the database chooses that file. This VFS wraps
//! SQLite's own; it passes on requests for these four files and refuses all others, each time SQLite asks.
#![allow(unsafe_code, reason = "SQLite takes a VFS as a table of C functions only")]

use linchpin_kit::ToolError;
use rusqlite::ffi::{self, sqlite3_file, sqlite3_vfs};
use std::collections::BTreeSet;
use std::ffi::{CStr, c_char, c_int};
use std::ptr;
use std::sync::{Mutex, OnceLock, PoisonError};

/// Maximum bytes of a path. SQLite's buffers for names from journals are no larger, whatever its own VFS allows.
pub(crate) const PATH_BYTES_MAX: usize = 500;

/// Error codes passed through SQLite: another file was requested, or one that is not a regular file of its own.
const OUTSIDE: c_int = ffi::SQLITE_PERM | 1 << 8;
const ODD: c_int = ffi::SQLITE_PERM | 2 << 8;

/// The functions of SQLite's own VFS.
struct Own {
    open: unsafe extern "C" fn(*mut sqlite3_vfs, *const c_char, *mut sqlite3_file, c_int, *mut c_int) -> c_int,
    delete: unsafe extern "C" fn(*mut sqlite3_vfs, *const c_char, c_int) -> c_int,
    access: unsafe extern "C" fn(*mut sqlite3_vfs, *const c_char, c_int, *mut c_int) -> c_int,
}

static OWN: OnceLock<Option<Own>> = OnceLock::new();

/// The opened databases, by the names that SQLite uses for them after following links.
static DATABASES: Mutex<BTreeSet<Vec<u8>>> = Mutex::new(BTreeSet::new());

/// The name of the VFS; `None` if there is no file system.
pub(crate) fn name() -> Option<&'static CStr> {
    const NAME: &CStr = c"linchpin";
    let register = || {
        // SAFETY: SQLite's own VFS is static and does not change.
        let base = unsafe { ffi::sqlite3_vfs_find(ptr::null()).as_ref() }?;
        let own = Own { open: base.xOpen?, delete: base.xDelete?, access: base.xAccess? };
        let vfs = sqlite3_vfs {
            zName: NAME.as_ptr(),
            pNext: ptr::null_mut(),
            mxPathname: base.mxPathname.min(512),
            xOpen: Some(open),
            xDelete: Some(delete),
            xAccess: Some(access),
            ..*base
        };
        // SAFETY: it is complete and static.
        let done = unsafe { ffi::sqlite3_vfs_register(Box::leak(Box::new(vfs)), 0) };
        (done == ffi::SQLITE_OK).then_some(own)
    };
    OWN.get_or_init(register).as_ref().map(|_| NAME)
}

fn own() -> Result<&'static Own, c_int> {
    OWN.get().and_then(Option::as_ref).ok_or(ffi::SQLITE_CANTOPEN)
}

/// The message and hint for a refusal of this VFS.
pub(crate) fn error(code: c_int) -> Option<ToolError> {
    let (what, advice) = match code {
        OUTSIDE => (
            "the database has a hot journal that refers to another file",
            "Its journal (the database's name and -journal) names that file, as a transaction over several databases does, or a \
             malicious one. Nothing was read, changed or deleted. The operator must check it: the program \
             that started the transaction can finish it.",
        ),
        ODD => (
            "a file beside the database is not a regular file",
            "One of its -journal, -wal and -shm files is a link, a pipe or similar, so nothing was opened. The operator \
             must check it.",
        ),
        _ => return None,
    };
    Some(ToolError::denied(format!("Database error: {what}")).hint(advice))
}

/// The database that a name belongs to, and the suffix after its name.
fn split(name: &[u8]) -> Result<(&[u8], &[u8]), c_int> {
    let known = DATABASES.lock().unwrap_or_else(PoisonError::into_inner);
    [&b"-journal"[..], b"-wal"]
        .iter()
        .find_map(|end| name.strip_suffix(*end).filter(|name| known.contains(*name)).map(|name| (name, *end)))
        .ok_or(OUTSIDE)
}

/// Whether SQLite may open this name.
fn may_open(name: Option<&CStr>, flags: c_int) -> Result<(), c_int> {
    // A file without a name is temporary: created on opening and deleted on closing.
    let Some(name) = name.map(CStr::to_bytes) else { return Ok(()) };
    if flags & ffi::SQLITE_OPEN_MAIN_DB != 0 {
        // Statements cannot open databases, so this is the configured one.
        DATABASES.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned());
        return Ok(());
    }
    if flags & (ffi::SQLITE_OPEN_MAIN_JOURNAL | ffi::SQLITE_OPEN_WAL) == 0 {
        return Err(OUTSIDE);
    }
    let (database, end) = split(name)?;
    is_plain(name)?;
    // SQLite opens this one next without checking access first.
    if end == b"-wal" { is_plain(&[database, b"-shm"].concat()) } else { Ok(()) }
}

/// Refuses a file that exists and is not a regular file with a single link. SQLite does not follow symlinks here, but
/// would block on a pipe, and overwrite the target of a hard link.
fn is_plain(name: &[u8]) -> Result<(), c_int> {
    #[cfg(unix)]
    let path: &std::ffi::OsStr = std::os::unix::ffi::OsStrExt::from_bytes(name);
    #[cfg(not(unix))]
    let path = &*String::from_utf8_lossy(name);
    let Ok(meta) = std::fs::symlink_metadata(path) else { return Ok(()) };
    #[cfg(unix)]
    let one = std::os::unix::fs::MetadataExt::nlink(&meta) <= 1;
    #[cfg(not(unix))]
    let one = true;
    if meta.is_file() && one { Ok(()) } else { Err(ODD) }
}

/// # Safety
/// Same contract as SQLite's `xOpen`.
unsafe extern "C" fn open(
    vfs: *mut sqlite3_vfs,
    name: *const c_char,
    file: *mut sqlite3_file,
    flags: c_int,
    out: *mut c_int,
) -> c_int {
    // SAFETY: SQLite passes NULL or a NUL-terminated string.
    let asked = (!name.is_null()).then(|| unsafe { CStr::from_ptr(name) });
    match may_open(asked, flags).and_then(|()| own()) {
        // SAFETY: all arguments are passed on unchanged, with SQLite's own VFS.
        Ok(own) => unsafe { (own.open)(vfs, name, file, flags, out) },
        Err(code) => {
            // SAFETY: SQLite provides the memory for the file; without methods it counts as not open.
            unsafe { (*file).pMethods = ptr::null() };
            code
        }
    }
}

/// # Safety
/// Same contract as SQLite's `xDelete`.
unsafe extern "C" fn delete(vfs: *mut sqlite3_vfs, name: *const c_char, sync: c_int) -> c_int {
    // SAFETY: SQLite passes a NUL-terminated string; all arguments are passed on unchanged.
    unsafe {
        match split(CStr::from_ptr(name).to_bytes()).and_then(|_| own()) {
            Ok(own) => (own.delete)(vfs, name, sync),
            Err(code) => code,
        }
    }
}

/// # Safety
/// Same contract as SQLite's `xAccess`.
unsafe extern "C" fn access(vfs: *mut sqlite3_vfs, name: *const c_char, flags: c_int, out: *mut c_int) -> c_int {
    // SAFETY: SQLite passes a NUL-terminated string; all arguments are passed on unchanged.
    unsafe {
        match split(CStr::from_ptr(name).to_bytes()).and_then(|_| own()) {
            Ok(own) => (own.access)(vfs, name, flags, out),
            Err(code) => code,
        }
    }
}
