//! Private files.

use super::{StoreKey, Turn};
use std::ffi::OsString;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use zeroize::Zeroizing;

/// Timeout of waiting for a lock. It is held for one write.
const LOCK_WAIT: Duration = Duration::from_secs(30);

/// How often a lock is tried.
const LOCK_RETRY: Duration = Duration::from_millis(10);

/// An error about a file, with a hint.
pub(super) fn problem(kind: io::ErrorKind, path: &Path, why: &str) -> io::Error {
    io::Error::new(kind, format!("{} {why}", path.display()))
}

/// The error of the operating system, with the file it is about.
pub(super) fn because(path: &Path, error: io::Error) -> io::Error {
    problem(error.kind(), path, &format!("cannot be used: {error}"))
}

/// How often it is looked whether another program has got its tokens.
const TURN_RETRY: Duration = Duration::from_millis(100);

/// Waits until no other program gets tokens for this key: see [`TokenStore::turn`](super::TokenStore::turn). There is one
/// lock file for each key, so that logins at different servers do not wait for each other; it is beside `path`.
pub(super) fn turn(
    path: PathBuf,
    suffix: &str,
    key: &StoreKey,
) -> impl Future<Output = io::Result<Turn>> + Send + use<> {
    let file = beside(&path, &format!("{suffix}-{:016x}", digest(key)));
    async move {
        loop {
            let file = file.clone();
            let taken = tokio::task::spawn_blocking(move || {
                make_dir(&file)?;
                Lock::try_take(&file)
            });
            match taken.await.unwrap_or_else(|error| Err(io::Error::other(error)))? {
                Some(lock) => return Ok(Turn::holding(lock)),
                None => tokio::time::sleep(TURN_RETRY).await,
            }
        }
    }
}

/// A number that tells keys apart in names of files (FNV-1a). Two that have the same wait for each other, that is all.
fn digest(key: &StoreKey) -> u64 {
    let bytes = key.issuer.bytes().chain([0]).chain(key.resource.bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |sum, byte| (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Returns the path with a suffix.
pub(super) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// The user's state directory.
pub(super) fn state_dir() -> io::Result<PathBuf> {
    state_dir_by(|name| std::env::var_os(name))
}

fn state_dir_by(variable: impl Fn(&str) -> Option<OsString>) -> io::Result<PathBuf> {
    // A relative path would depend on the working directory; XDG says to ignore it.
    let from = |name: &str| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = if cfg!(windows) {
        from("LOCALAPPDATA")
    } else if cfg!(target_os = "macos") {
        from("HOME").map(|home| home.join("Library/Application Support"))
    } else {
        from("XDG_STATE_HOME").or_else(|| from("HOME").map(|home| home.join(".local/state")))
    };
    let why = "cannot determine the user's state directory: set HOME, or specify a file";
    base.map(|base| base.join("linchpin")).ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, why))
}

/// The directory of `file`.
fn dir_of(file: &Path) -> &Path {
    match file.parent() {
        Some(dir) if !dir.as_os_str().is_empty() => dir,
        _ => Path::new("."),
    }
}

/// Creates the directory of `file`, if it is missing, for the user alone. Refuses one in which others could replace
/// files.
pub(super) fn make_dir(file: &Path) -> io::Result<()> {
    let dir = dir_of(file);
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(dir).map_err(|error| because(dir, error))?;
    check_dir(dir)
}

#[cfg(unix)]
fn check_dir(dir: &Path) -> io::Result<()> {
    use std::os::unix::fs::MetadataExt as _;
    let about = std::fs::metadata(dir).map_err(|error| because(dir, error))?;
    let me = rustix::process::geteuid().as_raw();
    if about.uid() != me && about.uid() != 0 {
        let why = "belongs to another user, so tokens are not stored in it; use another directory";
        return Err(problem(io::ErrorKind::PermissionDenied, dir, why));
    }
    // In a sticky directory (as for temporary files) users cannot replace the files of others.
    if about.mode() & 0o022 != 0 && about.mode() & 0o1000 == 0 {
        let why = "is writable by other users, so tokens are not stored in it; run chmod 700 on it";
        return Err(problem(io::ErrorKind::PermissionDenied, dir, why));
    }
    Ok(())
}

#[cfg(not(unix))]
fn check_dir(_dir: &Path) -> io::Result<()> {
    // Directories of a Windows profile are private by inheritance.
    Ok(())
}

/// Makes a rename in the directory of `file` durable.
pub(super) fn sync_dir(file: &Path) -> io::Result<()> {
    #[cfg(unix)]
    {
        let dir = dir_of(file);
        File::open(dir).and_then(|dir| dir.sync_all()).map_err(|error| because(dir, error))?;
    }
    let _ = file;
    Ok(())
}

/// A new file that only its owner may read and write; an error when there is one.
pub(super) fn create(path: &Path) -> io::Result<File> {
    options().write(true).create_new(true).open(path)
}

/// Reads a private file; `None` if it does not exist.
pub(super) fn read(path: &Path, bytes_max: usize) -> io::Result<Option<Zeroizing<Vec<u8>>>> {
    let file = match open_checked(path, options().read(true)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file?,
    };
    let about = file.metadata().map_err(|error| because(path, error))?;
    let too_large = || {
        let why = format!("is larger than {bytes_max} bytes; remove it and log in again");
        problem(io::ErrorKind::FileTooLarge, path, &why)
    };
    let len = usize::try_from(about.len()).ok().filter(|len| *len <= bytes_max).ok_or_else(too_large)?;
    // With room for all of it from the start, no copies are left behind by growing.
    let mut bytes = Zeroizing::new(Vec::with_capacity(len + 1));
    file.take(bytes_max as u64 + 1).read_to_end(&mut bytes).map_err(|error| because(path, error))?;
    if bytes.len() > bytes_max {
        return Err(too_large());
    }
    Ok(Some(bytes))
}

/// Options that make a new file private, follow no symbolic link and do not wait at a pipe.
#[cfg(unix)]
fn options() -> OpenOptions {
    use rustix::fs::OFlags;
    use std::os::unix::fs::OpenOptionsExt as _;
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let mut options = OpenOptions::new();
    options.mode(0o600).custom_flags(flags.bits() as i32);
    options
}

/// Options for a private file. On Windows it inherits the permissions of the user's profile.
#[cfg(not(unix))]
fn options() -> OpenOptions {
    OpenOptions::new()
}

/// Opens a file and checks that it is private to the user. A missing file is an error of
/// the kind `NotFound`.
fn open_checked(path: &Path, options: &OpenOptions) -> io::Result<File> {
    let refuse = |why: &str| Err(problem(io::ErrorKind::PermissionDenied, path, why));
    let link = "is a symlink, whose target may belong to others; use the path of the target";
    #[cfg(not(unix))]
    if std::fs::symlink_metadata(path).is_ok_and(|about| about.is_symlink()) {
        return refuse(link);
    }
    let file = match options.open(path) {
        Ok(file) => file,
        #[cfg(unix)]
        Err(error) if error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) => return refuse(link),
        Err(error) => return Err(because(path, error)),
    };
    let about = file.metadata().map_err(|error| because(path, error))?;
    if !about.is_file() {
        return refuse("is not a regular file; name another");
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt as _;
        if about.uid() != rustix::process::geteuid().as_raw() {
            return refuse("belongs to another user, so it is not used; name another file");
        }
        if about.mode() & 0o077 != 0 {
            let why = format!(
                "has the mode {:04o}, so other users may have read its tokens; run chmod 600 on it, or remove it and log in again",
                about.mode() & 0o7777
            );
            return refuse(&why);
        }
    }
    Ok(file)
}

/// A lock against other processes and other tasks of this one, until it is dropped. The file stays: removing it would
/// race with waiters.
pub(super) struct Lock {
    _file: File,
}

impl Lock {
    /// Takes the lock at `path` unless somebody has it. Does not wait.
    pub(super) fn try_take(path: &Path) -> io::Result<Option<Lock>> {
        Ok(try_lock(path)?.map(|file| Lock { _file: file }))
    }

    /// Waits for the lock at `path`, thirty seconds at most. Blocks.
    pub(super) fn take(path: &Path) -> io::Result<Lock> {
        let deadline = Instant::now() + LOCK_WAIT;
        loop {
            if let Some(file) = try_lock(path)? {
                return Ok(Lock { _file: file });
            }
            if Instant::now() >= deadline {
                let why = "has been locked by another process for thirty seconds; end that process and try again";
                return Err(problem(io::ErrorKind::TimedOut, path, why));
            }
            std::thread::sleep(LOCK_RETRY);
        }
    }
}

/// Tries to lock; `None` if it is taken. The lock is released with the file, and so with the process.
#[cfg(unix)]
fn try_lock(path: &Path) -> io::Result<Option<File>> {
    use rustix::fs::{FlockOperation, flock};
    let file = open_checked(path, options().write(true).create(true).truncate(false))?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(file)),
        Err(rustix::io::Errno::WOULDBLOCK | rustix::io::Errno::INTR) => Ok(None),
        Err(error) => Err(because(path, error.into())),
    }
}

/// Tries to lock; `None` if it is taken. On Windows the file is opened exclusively.
#[cfg(windows)]
fn try_lock(path: &Path) -> io::Result<Option<File>> {
    use std::os::windows::fs::OpenOptionsExt as _;
    const SHARING_VIOLATION: i32 = 32;
    match options().write(true).create(true).truncate(false).share_mode(0).open(path) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.raw_os_error() == Some(SHARING_VIOLATION) => Ok(None),
        Err(error) => Err(because(path, error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(all(unix, not(target_os = "macos")))]
    #[test]
    fn the_state_directory_is_where_xdg_says() {
        type Row<'a> = (&'a [(&'a str, &'a str)], Option<&'a str>);
        let rows: [Row<'_>; 7] = [
            (&[("XDG_STATE_HOME", "/state"), ("HOME", "/me")], Some("/state/linchpin")),
            (&[("XDG_STATE_HOME", "/state")], Some("/state/linchpin")),
            (&[("HOME", "/me")], Some("/me/.local/state/linchpin")),
            (&[("XDG_STATE_HOME", "state"), ("HOME", "/me")], Some("/me/.local/state/linchpin")),
            (&[("XDG_STATE_HOME", ""), ("HOME", "/me")], Some("/me/.local/state/linchpin")),
            (&[("HOME", "me")], None),
            (&[], None),
        ];
        for (variables, expected) in rows {
            let variable =
                |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.into());
            assert_eq!(state_dir_by(variable).ok(), expected.map(PathBuf::from), "{variables:?}");
        }
    }
}
