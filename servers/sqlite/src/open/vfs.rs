//! Which files SQLite may touch: the database, and its `-journal`, `-wal` and `-shm`.
//!
//! No statement is needed for SQLite to reach others. A journal that a crash left behind may name a super-journal,
//! which SQLite looks for, reads and then deletes; whoever can put a journal beside the database, at any time, chooses
//! the file. This is a VFS over SQLite's own that hands on what is about these four and refuses the rest, each time
//! SQLite asks.
#![allow(unsafe_code, reason = "SQLite takes a VFS as a table of C functions only")]

use linchpin_kit::ToolError;
use rusqlite::ffi::{self, sqlite3_file, sqlite3_vfs};
use std::collections::BTreeSet;
use std::ffi::{CStr, c_char, c_int};
use std::ptr;
use std::sync::{Mutex, OnceLock, PoisonError};

/// Bytes of a path. SQLite has room for names from journals that are no longer, whatever its own VFS allows.
pub(crate) const PATH_BYTES_MAX: usize = 500;

/// What is said to SQLite, and by it to us: another file was wanted, or one that is no file of its own.
const OUTSIDE: c_int = ffi::SQLITE_PERM | 1 << 8;
const ODD: c_int = ffi::SQLITE_PERM | 2 << 8;

/// The functions of SQLite's own VFS that are behind those here.
struct Own {
    open: unsafe extern "C" fn(*mut sqlite3_vfs, *const c_char, *mut sqlite3_file, c_int, *mut c_int) -> c_int,
    delete: unsafe extern "C" fn(*mut sqlite3_vfs, *const c_char, c_int) -> c_int,
    access: unsafe extern "C" fn(*mut sqlite3_vfs, *const c_char, c_int, *mut c_int) -> c_int,
}

static OWN: OnceLock<Option<Own>> = OnceLock::new();

/// The databases that were opened, by the names SQLite has for them, where links are followed.
static DATABASES: Mutex<BTreeSet<Vec<u8>>> = Mutex::new(BTreeSet::new());

/// The name of the VFS; none if there is no file system.
pub(crate) fn name() -> Option<&'static CStr> {
    const NAME: &CStr = c"linchpin";
    let register = || {
        // SAFETY: SQLite's own VFS is there for ever and does not change.
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
        // SAFETY: it is complete, and there for ever.
        let done = unsafe { ffi::sqlite3_vfs_register(Box::leak(Box::new(vfs)), 0) };
        (done == ffi::SQLITE_OK).then_some(own)
    };
    OWN.get_or_init(register).as_ref().map(|_| NAME)
}

fn own() -> Result<&'static Own, c_int> {
    OWN.get().and_then(Option::as_ref).ok_or(ffi::SQLITE_CANTOPEN)
}

/// The words for what was refused here.
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

/// The database that a name belongs to, and what follows its name.
fn split(name: &[u8]) -> Result<(&[u8], &[u8]), c_int> {
    let known = DATABASES.lock().unwrap_or_else(PoisonError::into_inner);
    [&b"-journal"[..], b"-wal"]
        .iter()
        .find_map(|end| name.strip_suffix(*end).filter(|name| known.contains(*name)).map(|name| (name, *end)))
        .ok_or(OUTSIDE)
}

/// Whether SQLite may open this name.
fn may_open(name: Option<&CStr>, flags: c_int) -> Result<(), c_int> {
    // What has no name is temporary: it is made anew, and gone when it is closed.
    let Some(name) = name.map(CStr::to_bytes) else { return Ok(()) };
    if flags & ffi::SQLITE_OPEN_MAIN_DB != 0 {
        // No statement can open a database, so this is the configured one.
        DATABASES.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned());
        return Ok(());
    }
    if flags & (ffi::SQLITE_OPEN_MAIN_JOURNAL | ffi::SQLITE_OPEN_WAL) == 0 {
        return Err(OUTSIDE);
    }
    let (database, end) = split(name)?;
    is_plain(name)?;
    // SQLite opens this one without asking, next.
    if end == b"-wal" { is_plain(&[database, b"-shm"].concat()) } else { Ok(()) }
}

/// Refuses what is there and is not a regular file with this name only. SQLite follows no symbolic links here, but
/// would wait for a pipe, and overwrite what a hard link leads to.
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
/// As `xOpen` of SQLite.
unsafe extern "C" fn open(
    vfs: *mut sqlite3_vfs,
    name: *const c_char,
    file: *mut sqlite3_file,
    flags: c_int,
    out: *mut c_int,
) -> c_int {
    // SAFETY: SQLite passes NULL, or a text that ends with NUL.
    let asked = (!name.is_null()).then(|| unsafe { CStr::from_ptr(name) });
    match may_open(asked, flags).and_then(|()| own()) {
        // SAFETY: all of it is as SQLite passed it, and the VFS is a copy of its own.
        Ok(own) => unsafe { (own.open)(vfs, name, file, flags, out) },
        Err(code) => {
            // SAFETY: SQLite has room for the file there; without methods it is not open.
            unsafe { (*file).pMethods = ptr::null() };
            code
        }
    }
}

/// # Safety
/// As `xDelete` of SQLite.
unsafe extern "C" fn delete(vfs: *mut sqlite3_vfs, name: *const c_char, sync: c_int) -> c_int {
    // SAFETY: SQLite passes a text that ends with NUL, and all of it is handed on as it was passed.
    unsafe {
        match split(CStr::from_ptr(name).to_bytes()).and_then(|_| own()) {
            Ok(own) => (own.delete)(vfs, name, sync),
            Err(code) => code,
        }
    }
}

/// # Safety
/// As `xAccess` of SQLite.
unsafe extern "C" fn access(vfs: *mut sqlite3_vfs, name: *const c_char, flags: c_int, out: *mut c_int) -> c_int {
    // SAFETY: SQLite passes a text that ends with NUL, and all of it is handed on as it was passed.
    unsafe {
        match split(CStr::from_ptr(name).to_bytes()).and_then(|_| own()) {
            Ok(own) => (own.access)(vfs, name, flags, out),
            Err(code) => code,
        }
    }
}
