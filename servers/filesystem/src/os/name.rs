//! System calls on single names.
//!
//! Every function takes an open directory and a *single* name and never follows a symlink in that name; none takes a
//! path, except [`open_ambient`], which is only for directories named by the operator or by a client's roots. This is
//! the confinement: callers cannot express a location elsewhere.
//!
//! Rejected: `cap-std`. It refuses every absolute symlink target, even one that points back inside, and has no
//! rename-without-replace; the first needs a custom walk and the second `rustix` anyway.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use rustix::fs::{self, AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

/// The type of an entry; symlinks are not followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A regular file.
    File,
    /// A directory.
    Dir,
    /// A symbolic link.
    Link,
    /// FIFO, socket, device: never opened.
    Other,
}

/// File metadata. Times are seconds since 1970.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Meta {
    pub(crate) kind: Kind,
    pub(crate) size: u64,
    pub(crate) mode: u32,
    pub(crate) owner: (u32, u32),
    pub(crate) links: u64,
    pub(crate) identity: (u64, u64),
    pub(crate) accessed: i64,
    pub(crate) modified: i64,
    pub(crate) changed: i64,
}

impl Meta {
    // The types of these fields differ between systems.
    #[allow(clippy::unnecessary_cast, clippy::useless_conversion)]
    fn of(stat: &Stat) -> Self {
        Self {
            kind: kind_of(FileType::from_raw_mode(stat.st_mode)),
            size: u64::try_from(stat.st_size).unwrap_or(0),
            mode: stat.st_mode as u32 & 0o7777,
            owner: (stat.st_uid, stat.st_gid),
            links: u64::from(stat.st_nlink),
            identity: (stat.st_dev as u64, stat.st_ino as u64),
            accessed: stat.st_atime as i64,
            modified: stat.st_mtime as i64,
            changed: stat.st_ctime as i64,
        }
    }
}

fn kind_of(file_type: FileType) -> Kind {
    match file_type {
        FileType::RegularFile => Kind::File,
        FileType::Directory => Kind::Dir,
        FileType::Symlink => Kind::Link,
        _ => Kind::Other,
    }
}

/// A directory handle that needs no read permission, where the system supports it.
#[cfg(any(target_os = "linux", target_os = "android"))]
const WALK: OFlags = OFlags::PATH;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const WALK: OFlags = OFlags::RDONLY;

pub(super) const NEVER_FOLLOW: OFlags = OFlags::NOFOLLOW.union(OFlags::CLOEXEC);

/// Opens a directory by path, following symlinks: only for directories named by the operator or by a client's roots.
pub(crate) fn open_ambient(path: &Path) -> Result<OwnedFd, Errno> {
    let fd = fs::open(path, WALK | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    refuse_process_info(fd.as_fd())?;
    Ok(fd)
}

/// Opens the directory `name` in `at`. A symlink is an error.
pub(crate) fn open_dir(at: BorrowedFd<'_>, name: &OsStr) -> Result<OwnedFd, Errno> {
    let fd = fs::openat(at, name, WALK | OFlags::DIRECTORY | NEVER_FOLLOW, Mode::empty())?;
    refuse_process_info(fd.as_fd())?;
    Ok(fd)
}

/// Opens the directory several names below `at` in one system call, if the kernel can guarantee that no symlink and no
/// `..` is involved. `None` means that it must be walked name by name.
#[cfg(target_os = "linux")]
pub(crate) fn open_dir_beneath(at: BorrowedFd<'_>, names: &Path) -> Option<OwnedFd> {
    use rustix::fs::ResolveFlags;
    let how = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let fd = fs::openat2(at, names, WALK | OFlags::DIRECTORY | NEVER_FOLLOW, Mode::empty(), how).ok()?;
    refuse_process_info(fd.as_fd()).ok()?;
    Some(fd)
}

/// Without `openat2`, every path is walked name by name.
#[cfg(not(target_os = "linux"))]
pub(crate) fn open_dir_beneath(_: BorrowedFd<'_>, _: &Path) -> Option<OwnedFd> {
    None
}

/// Refuses `proc` file systems: `/proc/self/environ` contains the server's own secrets, and links such as
/// `/proc/self/root` lead anywhere.
#[cfg(any(target_os = "linux", target_os = "android"))]
// The width of `f_type` differs between architectures.
#[allow(clippy::unnecessary_cast)]
fn refuse_process_info(fd: BorrowedFd<'_>) -> Result<(), Errno> {
    const PROC_SUPER_MAGIC: i64 = 0x9fa0;
    if fs::fstatfs(fd)?.f_type as i64 == PROC_SUPER_MAGIC { Err(Errno::ACCESS) } else { Ok(()) }
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn refuse_process_info(_: BorrowedFd<'_>) -> Result<(), Errno> {
    Ok(())
}

/// The metadata of `name` in `at`; for a symlink, its own.
pub(crate) fn meta(at: BorrowedFd<'_>, name: &OsStr) -> Result<Meta, Errno> {
    fs::statat(at, name, AtFlags::SYMLINK_NOFOLLOW).map(|stat| Meta::of(&stat))
}

/// The metadata of an open file.
pub(crate) fn meta_of(fd: BorrowedFd<'_>) -> Result<Meta, Errno> {
    fs::fstat(fd).map(|stat| Meta::of(&stat))
}

/// The creation time of `name` in seconds since 1970, if the file system records it.
#[cfg(target_os = "linux")]
pub(crate) fn created(at: BorrowedFd<'_>, name: &OsStr) -> Option<i64> {
    use rustix::fs::StatxFlags;
    let stat = fs::statx(at, name, AtFlags::SYMLINK_NOFOLLOW, StatxFlags::BTIME).ok()?;
    (stat.stx_mask & StatxFlags::BTIME.bits() != 0).then_some(stat.stx_btime.tv_sec)
}

/// Not available on this system.
#[cfg(not(target_os = "linux"))]
pub(crate) fn created(_: BorrowedFd<'_>, _: &OsStr) -> Option<i64> {
    None
}

/// The target of the symlink `name` in `at`.
pub(crate) fn read_link(at: BorrowedFd<'_>, name: &OsStr) -> Result<OsString, Errno> {
    fs::readlinkat(at, name, Vec::new()).map(|target| OsString::from_vec(target.into_bytes()))
}

/// Opens the regular file `name` in `at` for reading. Never blocks and never opens a device: other types are refused
/// before they are opened, and again after, in case the entry was replaced in between.
pub(crate) fn open_file(at: BorrowedFd<'_>, name: &OsStr) -> Result<(File, Meta), OpenError> {
    expect_regular(meta(at, name)?)?;
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | NEVER_FOLLOW;
    let fd = fs::openat(at, name, flags, Mode::empty())?;
    let meta = expect_regular(meta_of(fd.as_fd())?)?;
    refuse_process_info(fd.as_fd())?;
    Ok((File::from(fd), meta))
}

/// Opens the regular file `name` in `at` for appending, creating it when `create` and it is missing.
pub(crate) fn open_append(at: BorrowedFd<'_>, name: &OsStr, create: bool) -> Result<(File, Meta), OpenError> {
    let mut flags = OFlags::WRONLY | OFlags::APPEND | OFlags::NONBLOCK | OFlags::NOCTTY | NEVER_FOLLOW;
    match meta(at, name) {
        Ok(meta) => {
            expect_regular(meta)?;
        }
        Err(Errno::NOENT) if create => flags |= OFlags::CREATE | OFlags::EXCL,
        Err(error) => return Err(error.into()),
    }
    let fd = fs::openat(at, name, flags, Mode::from_raw_mode(0o666))?;
    let meta = expect_regular(meta_of(fd.as_fd())?)?;
    refuse_process_info(fd.as_fd())?;
    Ok((File::from(fd), meta))
}

fn expect_regular(meta: Meta) -> Result<Meta, OpenError> {
    match meta.kind {
        Kind::File => Ok(meta),
        Kind::Dir => Err(OpenError::System(Errno::ISDIR)),
        Kind::Link => Err(OpenError::System(Errno::LOOP)),
        Kind::Other => Err(OpenError::Special),
    }
}

/// Why a file could not be opened.
#[derive(Debug)]
pub(crate) enum OpenError {
    /// It is a FIFO, socket or device.
    Special,
    /// The system call failed.
    System(Errno),
}

impl From<Errno> for OpenError {
    fn from(error: Errno) -> Self {
        Self::System(error)
    }
}

/// An open directory, its names with their types in byte order, and whether there are more.
pub(crate) type Listing = (OwnedFd, Vec<(OsString, Kind)>, bool);

/// The names in directory `name` of `at` (`.` for `at` itself) with their types, in byte order; at most `limit`, and
/// whether there are more.
pub(crate) fn entries(at: BorrowedFd<'_>, name: &OsStr, limit: usize) -> Result<Listing, Errno> {
    let fd = fs::openat(at, name, OFlags::RDONLY | OFlags::DIRECTORY | NEVER_FOLLOW, Mode::empty())?;
    refuse_process_info(fd.as_fd())?;
    let mut found = Vec::new();
    let mut more = false;
    for entry in fs::Dir::read_from(&fd)? {
        let entry = entry?;
        let bytes = entry.file_name().to_bytes();
        if bytes == b"." || bytes == b".." {
            continue;
        }
        if found.len() >= limit {
            more = true;
            break;
        }
        let name = OsString::from_vec(bytes.to_vec());
        let kind = match entry.file_type() {
            // Some file systems do not report the type.
            FileType::Unknown => meta(fd.as_fd(), &name).map_or(Kind::Other, |meta| meta.kind),
            known => kind_of(known),
        };
        found.push((name, kind));
    }
    found.sort_unstable_by(|a, b| a.0.as_bytes().cmp(b.0.as_bytes()));
    Ok((fd, found, more))
}

/// Creates the directory `name` in `at`.
pub(crate) fn make_dir(at: BorrowedFd<'_>, name: &OsStr) -> Result<(), Errno> {
    fs::mkdirat(at, name, Mode::from_raw_mode(0o777))
}

/// Removes the file, symlink or empty directory `name` in `at`.
pub(crate) fn remove(at: BorrowedFd<'_>, name: &OsStr, kind: Kind) -> Result<(), Errno> {
    let flags = if kind == Kind::Dir { AtFlags::REMOVEDIR } else { AtFlags::empty() };
    fs::unlinkat(at, name, flags)
}

/// Renames, failing with `EEXIST` when the destination exists.
pub(crate) fn rename_new(from: BorrowedFd<'_>, old: &OsStr, to: BorrowedFd<'_>, new: &OsStr) -> Result<(), Errno> {
    match rename_exclusive(from, old, to, new) {
        // Not supported by the system or the file system (some network and FUSE mounts): check, then rename.
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => match meta(to, new) {
            Ok(_) => Err(Errno::EXIST),
            Err(Errno::NOENT) => fs::renameat(from, old, to, new),
            Err(error) => Err(error),
        },
        result => result,
    }
}

#[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
fn rename_exclusive(from: BorrowedFd<'_>, old: &OsStr, to: BorrowedFd<'_>, new: &OsStr) -> Result<(), Errno> {
    fs::renameat_with(from, old, to, new, fs::RenameFlags::NOREPLACE)
}

#[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
fn rename_exclusive(_: BorrowedFd<'_>, _: &OsStr, _: BorrowedFd<'_>, _: &OsStr) -> Result<(), Errno> {
    Err(Errno::NOSYS)
}
