//! Files that get their names once they are complete.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{Seek, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::sync::atomic::{self, AtomicU64};

use rustix::fs::{self, AtFlags, Mode, OFlags};
use rustix::io::Errno;

use super::name::{Meta, NEVER_FOLLOW, meta_of, rename_new};

/// A file that gets its name once it is complete. Until then it is unnamed, so a killed process leaves nothing behind;
/// or, where the system does not support that, it has a temporary name next to its destination.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::os::open_ambient;
    use std::path::Path;

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
}
