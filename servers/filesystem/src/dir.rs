//! System calls on single names, and directory walks built on them.
//!
//! Every function of the first part takes an open directory and a *single* name and never follows a symlink in that
//! name; none takes a path, except [`open_ambient`], which is only for directories named by the operator or by a
//! client's roots. This is the confinement: callers cannot express a location elsewhere.
//!
//! The second part walks directories: [`Scan`] for reading, which can stop anywhere and continue at a cursor, and
//! [`each_entry`] for operations on a whole directory. Neither follows symlinks.
//!
//! Rejected: `cap-std`. It refuses every absolute symlink target, even one that points back inside, and has no
//! rename-without-replace; the first needs a custom walk and the second `rustix` anyway.

use std::cmp::Ordering;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{Read, Seek, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{self, AtomicU64};

use globset::{GlobBuilder, GlobMatcher};
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use linchpin_kit::ToolError;
use rustix::fs::{self, AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use crate::list::{ListMore, cursor_after};
use crate::resolve::{Last, Place};
use crate::{Inner, io_fault};

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

const NEVER_FOLLOW: OFlags = OFlags::NOFOLLOW.union(OFlags::CLOEXEC);

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

/// A file that gets its name when it is complete. Until then it is unnamed, so that a killed process leaves nothing
/// behind, or, where the system does not support that, it has a temporary name beside its destination.
pub(crate) struct Temp<'a> {
    at: BorrowedFd<'a>,
    /// Its final name.
    target: &'a OsStr,
    /// Its temporary name; the file is removed on drop.
    name: Option<OsString>,
    file: File,
}

impl<'a> Temp<'a> {
    /// Creates the file that will be `target` in `at`. With `private`, for a file that replaces another, others cannot
    /// read it until it has the mode of the old file.
    pub(crate) fn create(at: BorrowedFd<'a>, target: &'a OsStr, private: bool) -> Result<Self, Errno> {
        let mode = Mode::from_raw_mode(if private { 0o600 } else { 0o666 });
        match nameless(at, mode) {
            Some(file) => Ok(Self { at, target, name: None, file }),
            None => Self::named(at, target, mode),
        }
    }

    fn named(at: BorrowedFd<'a>, target: &'a OsStr, mode: Mode) -> Result<Self, Errno> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | NEVER_FOLLOW;
        loop {
            let name = temp_name(target);
            match fs::openat(at, &name, flags, mode) {
                Ok(fd) => return Ok(Self { at, target, name: Some(name), file: File::from(fd) }),
                Err(Errno::EXIST) => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// The open temporary file.
    pub(crate) fn file(&mut self) -> &mut File {
        &mut self.file
    }

    /// Writes `bytes`.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), Errno> {
        self.file.write_all(bytes).map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
    }

    /// Gives the file the mode of `old` as a write would leave it, and its owner and extended attributes as far as the
    /// system allows.
    pub(crate) fn dress_as(&self, old: &File, meta: &Meta) -> Result<(), Errno> {
        let mine = meta_of(self.file.as_fd())?;
        if mine.owner != meta.owner {
            let (user, group) = (fs::Uid::from_raw(meta.owner.0), fs::Gid::from_raw(meta.owner.1));
            if fs::fchown(&self.file, Some(user), Some(group)).is_err() {
                let _ = fs::fchown(&self.file, None, Some(group));
            }
        }
        copy_attributes(old, &self.file);
        // Last, because ACLs among the attributes change the mode.
        self.set_mode(mode_after_write(meta.mode))
    }

    /// Sets the mode of the file.
    pub(crate) fn set_mode(&self, mode: u32) -> Result<(), Errno> {
        fs::fchmod(&self.file, Mode::from_raw_mode(mode as _))
    }

    /// Atomically replaces the existing file, and syncs it to disk.
    pub(crate) fn replace(mut self) -> Result<(), Errno> {
        fs::fsync(&self.file)?;
        while self.name.is_none() {
            // Only a named file can replace another.
            let name = temp_name(self.target);
            match self.link(&name) {
                Ok(()) => self.name = Some(name),
                Err(Errno::EXIST) => {}
                Err(_) => self = self.copied()?,
            }
        }
        if let Some(name) = &self.name {
            fs::renameat(self.at, name, self.at, self.target)?;
        }
        self.name = None;
        sync_dir(self.at);
        Ok(())
    }

    /// Links the file under its new name; `EEXIST` if the name exists.
    pub(crate) fn place_new(mut self) -> Result<(), Errno> {
        fs::fsync(&self.file)?;
        if self.name.is_none() {
            match self.link(self.target) {
                Ok(()) => {}
                Err(Errno::EXIST) => return Err(Errno::EXIST),
                Err(_) => self = self.copied()?,
            }
        }
        if let Some(name) = &self.name {
            rename_new(self.at, name, self.at, self.target)?;
        }
        self.name = None;
        sync_dir(self.at);
        Ok(())
    }

    /// Links an unnamed file under this name.
    fn link(&self, name: &OsStr) -> Result<(), Errno> {
        fs::linkat(fs::CWD, open_path(self.file.as_fd()), self.at, name, AtFlags::SYMLINK_FOLLOW)
    }

    /// The same with a temporary name, for systems that create unnamed files but refuse to link them.
    fn copied(mut self) -> Result<Self, Errno> {
        let mut copy = Self::named(self.at, self.target, Mode::from_raw_mode(0o600))?;
        let read = self.file.rewind().and_then(|()| std::io::copy(&mut self.file, &mut copy.file));
        read.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
        copy.dress_as(&self.file, &meta_of(self.file.as_fd())?)?;
        fs::fsync(&copy.file)?;
        Ok(copy)
    }
}

impl Drop for Temp<'_> {
    fn drop(&mut self) {
        if let Some(name) = &self.name {
            let _ = fs::unlinkat(self.at, name, AtFlags::empty());
        }
    }
}

/// The `/proc` path of an open file of this process.
fn open_path(fd: BorrowedFd<'_>) -> String {
    format!("/proc/self/fd/{}", fd.as_raw_fd())
}

/// An unnamed file in `at` that can be linked later; `None` if unsupported.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn nameless(at: BorrowedFd<'_>, mode: Mode) -> Option<File> {
    let fd = fs::openat(at, ".", OFlags::RDWR | OFlags::TMPFILE | OFlags::CLOEXEC, mode).ok()?;
    fs::access(open_path(fd.as_fd()), fs::Access::EXISTS).ok()?;
    // Kernels before 6.0 ignore the umask here on file systems without ACLs.
    let forgot_umask = meta_of(fd.as_fd()).ok()?.mode & 0o002 != 0;
    (!forgot_umask).then(|| File::from(fd))
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn nameless(_: BorrowedFd<'_>, _: Mode) -> Option<File> {
    None
}

/// The mode of a file whose content is replaced, as `write(2)` leaves it: set-user-ID is cleared, and set-group-ID if
/// the group may execute. Otherwise set-group-ID means mandatory locking, and is kept.
pub(crate) fn mode_after_write(mode: u32) -> u32 {
    let mode = mode & !0o4000;
    if mode & 0o0010 == 0 { mode } else { mode & !0o2000 }
}

/// Makes a rename durable, best effort: not every file system supports syncing a directory.
fn sync_dir(at: BorrowedFd<'_>) {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    if let Ok(fd) = fs::openat(at, ".", flags, Mode::empty()) {
        let _ = fs::fsync(fd);
    }
}

/// `<name>.<32 hex digits>.tmp` as in the published server, with the name shortened if the whole is too long.
fn temp_name(name: &OsStr) -> OsString {
    use std::hash::{BuildHasher, Hasher, RandomState};
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let half = || {
        let mut hasher = RandomState::new().build_hasher();
        hasher.write_u64(COUNT.fetch_add(1, atomic::Ordering::Relaxed));
        hasher.finish()
    };
    let mut bytes = name.as_bytes();
    bytes = &bytes[..bytes.len().min(200)];
    let mut temp = bytes.to_vec();
    temp.extend_from_slice(format!(".{:016x}{:016x}.tmp", half(), half()).as_bytes());
    OsString::from_vec(temp)
}

/// Copies extended attributes (including ACLs), best effort.
#[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
fn copy_attributes(from: &File, to: &File) {
    let mut names = vec![0_u8; 64 * 1024];
    let Ok(length) = fs::flistxattr(from, &mut names[..]) else {
        return;
    };
    let mut value = vec![0_u8; 64 * 1024];
    // A write clears the capabilities of a file.
    let kept = |name: &&[u8]| !name.is_empty() && *name != b"security.capability";
    for name in names[..length].split(|byte| *byte == 0).filter(kept) {
        if let Ok(size) = fs::fgetxattr(from, name, &mut value[..]) {
            let _ = fs::fsetxattr(to, name, &value[..size], fs::XattrFlags::empty());
        }
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
fn copy_attributes(_: &File, _: &File) {}

/// Maximum names of one directory; the rest is omitted.
pub(crate) const NAMES_MAX: usize = 2_000_000;
/// Maximum depth of a walk.
const DEPTH_MAX: usize = 256;

/// An entry of a walk.
pub(crate) struct Entry<'a> {
    pub(crate) at: BorrowedFd<'a>,
    pub(crate) name: &'a OsStr,
    /// The path relative to the start.
    pub(crate) rest: &'a Path,
    pub(crate) kind: Kind,
    pub(crate) depth: usize,
    /// Whether an earlier page contained it; repeated because following entries may be inside it.
    pub(crate) seen: bool,
}

/// What to do after an entry.
pub(crate) enum Flow {
    /// Continue, and descend if it is a directory.
    Into,
    /// Continue without descending.
    Over,
    /// Stop before it; the cursor points to the previous entry.
    Stop,
}

/// A walk that can stop and continue at a cursor.
pub(crate) struct Scan<'a> {
    inner: &'a Inner,
    base: PathBuf,
    belows: Vec<PathBuf>,
    after: Vec<OsString>,
    left: usize,
    last: Option<PathBuf>,
    stopped: bool,
    skipped: usize,
    ignore: Option<Vec<Gitignore>>,
}

type Look<'a> = dyn FnMut(&Entry<'_>) -> Flow + 'a;

impl<'a> Scan<'a> {
    /// A walk that starts after the entry `after`, a path below `place` that need not exist any more.
    pub(crate) fn new(inner: &'a Inner, place: &Place, after: Option<PathBuf>, gitignore: bool) -> Self {
        let base = place.path();
        let mut scan = Scan {
            inner,
            belows: inner.belows(place),
            after: after.iter().flatten().map(OsStr::to_owned).collect(),
            last: after,
            left: inner.config.max_scan.max(1),
            stopped: false,
            skipped: 0,
            ignore: gitignore.then(Vec::new),
            base,
        };
        if gitignore {
            scan.ignore_above(place);
        }
        scan
    }

    /// Reads the `.gitignore` files between the allowed directory and the start.
    fn ignore_above(&mut self, place: &Place) {
        let steps = place.below().components().count();
        let above: Vec<PathBuf> = self.base.ancestors().skip(1).take(steps).map(Path::to_owned).collect();
        for directory in above.into_iter().rev() {
            let path = directory.join(".gitignore");
            if let Some(Ok(file)) = path.to_str().map(|path| self.inner.resolve(path, Last::Follow)) {
                self.read_ignore(file.dir(), file.name(), &directory);
            }
        }
    }

    fn read_ignore(&mut self, at: BorrowedFd<'_>, name: &OsStr, directory: &Path) -> bool {
        let Some(stack) = &mut self.ignore else {
            return false;
        };
        let mut text = String::new();
        let read = open_file(at, name).is_ok_and(|(file, _)| file.take(1 << 20).read_to_string(&mut text).is_ok());
        let mut builder = GitignoreBuilder::new(directory);
        for line in text.lines() {
            // Git skips invalid lines too.
            let _ = builder.add_line(None, line);
        }
        match builder.build() {
            Ok(rules) if read => {
                stack.push(rules);
                true
            }
            _ => false,
        }
    }

    fn ignored(&self, rest: &Path, kind: Kind) -> bool {
        let Some(stack) = &self.ignore else {
            return false;
        };
        if rest.file_name().is_some_and(|name| name == ".git") {
            return true;
        }
        let path = self.base.join(rest);
        let verdicts = stack.iter().rev().map(|rules| rules.matched(&path, kind == Kind::Dir));
        verdicts.into_iter().find(|verdict| !verdict.is_none()).is_some_and(|verdict| verdict.is_ignore())
    }

    /// Walks everything below `place`.
    pub(crate) fn run(&mut self, place: &Place, visit: &mut Look<'_>) -> Result<(), ToolError> {
        let on_path = !self.after.is_empty();
        self.directory(place.dir(), place.name(), Path::new(""), 0, on_path, visit)
            .map_err(|error| io_fault(error, "scandir", &place.shown()))
    }

    fn directory(
        &mut self,
        at: BorrowedFd<'_>,
        name: &OsStr,
        rest: &Path,
        depth: usize,
        on_path: bool,
        visit: &mut Look<'_>,
    ) -> Result<(), Errno> {
        let (fd, entries, more) = entries(at, name, NAMES_MAX)?;
        self.skipped += usize::from(more);
        let ignoring =
            self.ignore.is_some() && self.read_ignore(fd.as_fd(), OsStr::new(".gitignore"), &self.base.join(rest));
        for (name, kind) in &entries {
            let mark = if on_path { self.after.get(depth) } else { None };
            let order = mark.map_or(Ordering::Greater, |mark| name.as_bytes().cmp(mark.as_bytes()));
            if order == Ordering::Less {
                continue;
            }
            let path = rest.join(name);
            if self.inner.deny.covers(&self.base, &self.belows, &path) || self.ignored(&path, *kind) {
                continue;
            }
            let seen = order == Ordering::Equal;
            if !seen {
                if self.left == 0 {
                    self.stopped = true;
                    break;
                }
                self.left -= 1;
            }
            let flow = visit(&Entry { at: fd.as_fd(), name, rest: &path, kind: *kind, depth, seen });
            if let Flow::Stop = flow {
                self.stopped = true;
                break;
            }
            if !seen {
                self.last = Some(path.clone());
            }
            if *kind == Kind::Dir && matches!(flow, Flow::Into) {
                let still = seen && self.after.len() > depth + 1;
                let gone =
                    depth + 1 >= DEPTH_MAX || self.directory(fd.as_fd(), name, &path, depth + 1, still, visit).is_err();
                self.skipped += usize::from(gone);
            }
            if self.stopped {
                break;
            }
        }
        if ignoring && let Some(stack) = &mut self.ignore {
            stack.pop();
        }
        Ok(())
    }

    pub(crate) fn more(&self) -> ListMore {
        let last = self.last.as_deref().filter(|_| self.stopped);
        ListMore::cut(last.map(cursor_after), self.skipped)
    }
}

/// Globs in the dialect of the published server: `*` and `?` stay within a name, `**` crosses directories, `{a,b}` and
/// `[a-z]` work, names that start with a dot are like any other, a leading `!` negates the pattern.
#[derive(Default)]
pub(crate) struct Patterns {
    list: Vec<(GlobMatcher, bool)>,
}

impl Patterns {
    pub(crate) fn of<'a>(patterns: impl IntoIterator<Item = &'a str>) -> Result<Self, ToolError> {
        let mut this = Self::default();
        for pattern in patterns {
            this.add(pattern)?;
        }
        Ok(this)
    }

    pub(crate) fn add(&mut self, pattern: &str) -> Result<(), ToolError> {
        if ["!(", "+(", "@(", "?(", "*("].iter().any(|group| pattern.contains(group)) {
            return Err(ToolError::new(format!("Pattern groups such as !(…) or +(…) are not supported: {pattern}"))
                .hint("Use {a,b} for alternatives, and excludePatterns to exclude files."));
        }
        let body = pattern.trim_start_matches('!');
        let negated = (pattern.len() - body.len()) % 2 == 1;
        let body = body.strip_prefix("./").unwrap_or(body);
        let glob = GlobBuilder::new(body).literal_separator(true).build().map_err(|error| {
            ToolError::new(format!("Invalid pattern {pattern}: {}", error.kind()))
                .hint("Use *, **, ?, [a-z] and {a,b}.")
        })?;
        self.list.push((glob.compile_matcher(), negated));
        Ok(())
    }

    pub(crate) fn matches(&self, rest: &Path) -> bool {
        self.list.iter().any(|(glob, negated)| glob.is_match(rest) != *negated)
    }
}

/// Called with the directory, the name, the path relative to the start and the type.
pub(crate) type Visit<'a> = dyn FnMut(BorrowedFd<'_>, &OsStr, &Path, Kind) -> Result<(), Stop> + 'a;

/// Why a recursive operation ended early.
pub(crate) enum Stop {
    /// Do not descend into this directory.
    Prune,
    /// An entry matches a deny pattern.
    Denied,
    /// Too many entries or levels for one operation.
    TooMuch,
    /// The system call failed.
    System(Errno),
}

impl From<Errno> for Stop {
    fn from(error: Errno) -> Self {
        Self::System(error)
    }
}

impl Stop {
    pub(crate) fn words(self, place: &Place) -> ToolError {
        match self {
            Self::System(error) => io_fault(error, "open", &place.shown()),
            _ => ToolError::new(format!("Too many entries or levels for one operation: {}", place.shown()))
                .hint("Act on its subdirectories one by one."),
        }
    }
}

/// Visits everything below a directory, parents before children, without following symlinks, at most `most` entries.
/// [`Stop::Prune`] from the visitor skips the content of that directory.
pub(crate) fn each_entry(place: &Place, most: usize, visit: &mut Visit<'_>) -> Result<(), Stop> {
    let mut left = most;
    each_below(place.dir(), place.name(), Path::new(""), 0, &mut left, visit)
}

fn each_below(
    at: BorrowedFd<'_>,
    name: &OsStr,
    rest: &Path,
    depth: usize,
    left: &mut usize,
    visit: &mut Visit<'_>,
) -> Result<(), Stop> {
    if depth > DEPTH_MAX {
        return Err(Stop::TooMuch);
    }
    let (fd, entries, more) = entries(at, name, *left)?;
    if more {
        return Err(Stop::TooMuch);
    }
    *left -= entries.len();
    for (name, kind) in entries {
        let path = rest.join(&name);
        match visit(fd.as_fd(), &name, &path, kind) {
            Err(Stop::Prune) => continue,
            result => result?,
        }
        if kind == Kind::Dir {
            each_below(fd.as_fd(), &name, &path, depth + 1, left, visit)?;
        }
    }
    Ok(())
}

/// Removes everything in a directory, deepest first, at most `left` entries.
pub(crate) fn empty(at: BorrowedFd<'_>, name: &OsStr, depth: usize, left: &mut usize) -> Result<(), Errno> {
    let (fd, entries, more) = entries(at, name, *left)?;
    if more || depth > DEPTH_MAX {
        return Err(Errno::OVERFLOW);
    }
    *left -= entries.len();
    for (name, kind) in entries {
        if kind == Kind::Dir {
            empty(fd.as_fd(), &name, depth + 1, left)?;
        }
        remove(fd.as_fd(), &name, kind)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is in a directory: names, contents and modes.
    fn all(dir: &Path) -> Vec<(String, String, u32)> {
        use std::os::unix::fs::PermissionsExt;
        let entries = std::fs::read_dir(dir).expect("a directory").map(|entry| entry.expect("an entry").path());
        let mut all: Vec<_> = entries
            .map(|path| {
                let mode = path.metadata().expect("metadata").permissions().mode() & 0o777;
                let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                (name, std::fs::read_to_string(path).expect("text"), mode)
            })
            .collect();
        all.sort();
        all
    }

    fn entry(name: &str, content: &str) -> (String, String, u32) {
        (name.to_owned(), content.to_owned(), 0o640)
    }

    #[test]
    fn what_is_being_written_has_no_name_before_it_is_complete() {
        let dir = tempfile::tempdir().expect("a directory");
        let fd = open_ambient(dir.path()).expect("a handle");
        if nameless(fd.as_fd(), Mode::from_raw_mode(0o600)).is_none() {
            return;
        }
        let (at, name) = (fd.as_fd(), OsStr::new("a"));
        let written = |content: &str| {
            let mut temp = Temp::create(at, name, true).expect("a file");
            temp.write(content.as_bytes()).and_then(|()| temp.set_mode(0o640)).expect("written");
            temp
        };
        let unfinished = written("0");
        assert_eq!(all(dir.path()), []);
        written("1").place_new().expect("a new file");
        assert_eq!(written("2").place_new(), Err(Errno::EXIST));
        assert_eq!(all(dir.path()), [entry("a", "1")]);
        written("3").replace().expect("a replaced file");
        drop(unfinished);
        assert_eq!(all(dir.path()), [entry("a", "3")]);
    }

    #[test]
    fn a_file_that_may_not_be_named_is_copied_to_one_that_has_a_name() {
        let dir = tempfile::tempdir().expect("a directory");
        let fd = open_ambient(dir.path()).expect("a handle");
        let (at, name) = (fd.as_fd(), OsStr::new("a"));
        let copied = |content: &str| {
            let mut temp = Temp::create(at, name, true).expect("a file");
            // Where files have names from the beginning there is nothing to copy.
            let has_name = temp.name.is_some();
            temp.write(content.as_bytes()).and_then(|()| temp.set_mode(0o640)).expect("written");
            if has_name { temp } else { temp.copied().expect("a copy") }
        };
        copied("1").place_new().expect("a new file");
        assert_eq!(copied("2").place_new(), Err(Errno::EXIST));
        assert_eq!(all(dir.path()), [entry("a", "1")]);
        copied("3").replace().expect("a replaced file");
        drop(copied("4"));
        assert_eq!(all(dir.path()), [entry("a", "3")]);
    }

    #[test]
    fn patterns_follow_the_published_dialect() {
        for (pattern, path, expected) in [
            ("*.txt", "a.txt", true),
            ("*.txt", "d/a.txt", false),
            ("**/*.txt", "a.txt", true),
            ("**/*.txt", "d/e/a.txt", true),
            ("d/**", "d", false),
            ("d/**", "d/e/f", true),
            ("*", ".hid", true),
            ("{a,b}.rs", "b.rs", true),
            ("[ab].rs", "c.rs", false),
            ("!*.rs", "a.txt", true),
            ("!*.rs", "a.rs", false),
            ("./a.rs", "a.rs", true),
            ("?.rs", "a.rs", true),
        ] {
            let patterns = Patterns::of([pattern]).expect("a readable pattern");
            assert_eq!(patterns.matches(Path::new(path)), expected, "{pattern} on {path}");
        }
        assert!(Patterns::of(["!(a)"]).is_err_and(|error| error.to_string().contains("{a,b}")));
    }
}
