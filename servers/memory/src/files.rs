//! Files: opening without following symlinks, atomic replacement, the lock file.

use linchpin_kit::{ErrorKind, ToolError, io_text};
use std::fs::{self, File, OpenOptions};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

/// Options that do not follow a symlink at the end of the path and do not block on a pipe; new files are private to
/// this user.
pub(crate) fn options() -> OpenOptions {
    #[cfg_attr(not(unix), allow(unused_mut, reason = "the flags are Unix's"))]
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    {
        use rustix::fs::OFlags;
        use std::os::unix::fs::OpenOptionsExt;
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
        options.mode(0o600).custom_flags(flags.bits().cast_signed());
    }
    options
}

/// The error of a failed operation, without the error number.
pub(crate) fn io_fault(what: &str, path: &Path, error: &io::Error) -> ToolError {
    let fault = ToolError::new(format!("Cannot {what} {}: {}", path.display(), io_text(error)));
    match error.kind() {
        io::ErrorKind::PermissionDenied => {
            fault.kind(ErrorKind::Denied).hint("The user that the server runs as lacks the permission. Tell the user.")
        }
        io::ErrorKind::StorageFull => fault
            .kind(ErrorKind::Limited { retry_after: None })
            .hint("The disk is full. Nothing was changed; tell the user."),
        io::ErrorKind::ReadOnlyFilesystem => {
            fault.kind(ErrorKind::Denied).hint("The disk is read-only. Tell the user.")
        }
        _ => fault.hint("Nothing was changed. Try again once; if it fails again, tell the user."),
    }
}

/// `path` with `.suffix` appended to its name.
pub(crate) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(suffix);
    name.into()
}

/// Identifies a state of a file. Together with an open handle, which prevents reuse of the inode number, a replaced file
/// always differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stamp {
    bytes: u64,
    modified: Option<SystemTime>,
    #[cfg(unix)]
    identity: (u64, u64, i64, i64),
}

impl Stamp {
    pub(crate) fn of(meta: &fs::Metadata) -> Stamp {
        #[cfg(unix)]
        use std::os::unix::fs::MetadataExt;
        Stamp {
            bytes: meta.len(),
            modified: meta.modified().ok(),
            #[cfg(unix)]
            identity: (meta.dev(), meta.ino(), meta.ctime(), meta.ctime_nsec()),
        }
    }

    /// Whether `later` can be the same file with more appended.
    pub(crate) fn continues_in(&self, later: &Stamp) -> bool {
        #[cfg(unix)]
        let same = (self.identity.0, self.identity.1) == (later.identity.0, later.identity.1);
        #[cfg(not(unix))]
        let same = false;
        same && self.bytes < later.bytes
    }
}

/// Atomically replaces a file with `bytes`: a temporary file in the same directory, flushed to disk, renamed over it.
/// `like` gives owner and mode. Returns the new file and whether the directory was flushed too. Call it under the lock:
/// its holder removes temporary files.
pub(crate) fn replace(path: &Path, bytes: &[u8], like: Option<&fs::Metadata>) -> Result<(File, bool), ToolError> {
    let random = || RandomState::new().build_hasher().finish();
    let temporary = beside(path, &format!("{:016x}{:016x}.tmp", random(), random()));
    let write = || -> io::Result<File> {
        let mut file = options().write(true).create_new(true).open(&temporary)?;
        file.write_all(bytes)?;
        if let Some(like) = like {
            #[cfg(unix)]
            {
                use std::os::unix::fs::{MetadataExt, PermissionsExt};
                // Only root can change owners; for others the file stays their own.
                let _ = std::os::unix::fs::fchown(&file, Some(like.uid()), Some(like.gid()));
                // New content must not run with the rights of the old file.
                file.set_permissions(fs::Permissions::from_mode(like.mode() & 0o777))?;
            }
            #[cfg(not(unix))]
            file.set_permissions(like.permissions())?;
        }
        file.sync_all()?;
        fs::rename(&temporary, path)?;
        Ok(file)
    };
    match write() {
        Ok(file) => Ok((file, sync_parent(path))),
        Err(error) => {
            let _ = fs::remove_file(&temporary);
            Err(io_fault("write", path, &error))
        }
    }
}

/// Flushes the directory, without which a power failure could restore the old file.
fn sync_parent(path: &Path) -> bool {
    if cfg!(windows) {
        return true;
    }
    path.parent().is_some_and(|parent| File::open(parent).and_then(|dir| dir.sync_all()).is_ok())
}

/// The part between the name of the memory file and the random part in names of temporary files: for the file itself,
/// and for each other file that is replaced.
const TEMPORARY: [&str; 3] = ["", "history.", "bak.1."];

/// Temporary files of this memory: being written, or left by a killed process.
fn temporary_files(path: &Path) -> Vec<PathBuf> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name().and_then(|name| name.to_str())) else {
        return Vec::new();
    };
    let is_ours = |file: &str| {
        let rest = file.strip_prefix(name)?.strip_prefix('.')?.strip_suffix(".tmp")?;
        let is_random = |hex: &str| hex.len() == 32 && hex.bytes().all(|b| b.is_ascii_hexdigit());
        TEMPORARY.iter().find(|part| rest.strip_prefix(**part).is_some_and(is_random))
    };
    let names = fs::read_dir(parent).into_iter().flatten().flatten().map(|entry| entry.file_name());
    names.filter(|name| name.to_str().and_then(is_ours).is_some()).map(|name| parent.join(name)).collect()
}

/// Removes files of killed processes. Call it under the lock: then nobody is writing a temporary file.
pub(crate) fn sweep(path: &Path) {
    for left in temporary_files(path) {
        let _ = fs::remove_file(left);
    }
}

/// The same if there are any and the lock is free, without waiting for it.
pub(crate) fn sweep_if_free(path: &Path) {
    if !temporary_files(path).is_empty()
        && let Ok(_held) = lock(path, &Patience::until(Instant::now()))
    {
        sweep(path);
    }
}

/// Keeps the newest `count` states of a file as `FILE.bak.1`, `FILE.bak.2`, …: makes a new one if there is none or the
/// newest is older than `age`.
pub(crate) fn back_up(path: &Path, count: u32, age: Duration) -> io::Result<()> {
    let name = |number: u32| beside(path, &format!("bak.{number}"));
    if let Ok(newest) = fs::symlink_metadata(name(1)) {
        // A date in the future must not cause a backup at every change.
        if newest.modified().ok().and_then(|at| at.elapsed().ok()).is_none_or(|elapsed| elapsed < age) {
            return Ok(());
        }
    }
    let mut bytes = Vec::new();
    options().read(true).open(path)?.read_to_end(&mut bytes)?;
    for number in (1..count).rev() {
        match fs::rename(name(number), name(number + 1)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    replace(&name(1), &bytes, None).map(|_| ()).map_err(|fault| io::Error::other(fault.to_string()))
}

/// How long a caller waits for a change.
#[derive(Debug, Clone)]
pub(crate) struct Patience {
    until: Instant,
    gone: Arc<AtomicBool>,
}

/// Upgradable while somebody waits.
#[derive(Debug)]
pub(crate) struct Waiting(Arc<AtomicBool>);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Patience {
    pub(crate) fn until(until: Instant) -> Self {
        Self { until, gone: Arc::default() }
    }

    /// For a caller that may be cancelled.
    pub(crate) fn waiting(&self) -> Waiting {
        Waiting(self.gone.clone())
    }

    /// # Errors
    /// When the call was cancelled or the client has disconnected.
    pub(crate) fn lasts(&self) -> Result<(), ToolError> {
        if self.gone.load(Ordering::Relaxed) {
            return Err(ToolError::new("The call was cancelled").hint("Nothing was changed."));
        }
        Ok(())
    }
}

/// Takes the advisory lock of a file: an exclusive lock on a separate file, which is never renamed or removed. Released
/// when the result is dropped, or the process ends in any way.
pub(crate) fn lock(path: &Path, patience: &Patience) -> Result<File, ToolError> {
    let lock = beside(path, "lock");
    let fail = |error: &io::Error| io_fault("lock", &lock, error);
    loop {
        let file = options().read(true).write(true).create(true).open(&lock).map_err(|e| fail(&e))?;
        let mut pause = Duration::from_millis(1);
        loop {
            patience.lasts()?;
            match fs4::FileExt::try_lock(&file) {
                Ok(()) => break,
                Err(fs4::TryLockError::Error(error)) => return Err(fail(&error)),
                Err(fs4::TryLockError::WouldBlock) if Instant::now() < patience.until => std::thread::sleep(pause),
                Err(fs4::TryLockError::WouldBlock) => return Err(busy("another program")),
            }
            pause = (pause * 2).min(Duration::from_millis(8));
        }
        // If the lock file was removed while we waited, others lock a new one.
        if same_file(&file, &lock).map_err(|e| fail(&e))? {
            return Ok(file);
        }
    }
}

/// Maximum bytes of a note in a lock file.
const NOTE_BYTES_MAX: u64 = 100;

/// Writes a note into the lock file, which is protected by its own lock.
pub(crate) fn note_in_lock(locked: &mut File, note: &str) -> io::Result<()> {
    locked.set_len(0)?;
    locked.seek(SeekFrom::Start(0))?;
    locked.write_all(note.as_bytes())
}

/// The note in the lock file of `path`, if there is one.
pub(crate) fn lock_note(path: &Path) -> Option<String> {
    let mut note = String::new();
    let file = options().read(true).open(beside(path, "lock")).ok()?;
    file.take(NOTE_BYTES_MAX).read_to_string(&mut note).ok()?;
    Some(note)
}

/// The error of a change that timed out.
pub(crate) fn busy(who: &str) -> ToolError {
    ToolError::conflict(format!("Timed out waiting for {who} to finish changing the memory file"))
        .hint("Nothing was changed. Try again in a moment.")
}

#[cfg(unix)]
fn same_file(file: &File, path: &Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt;
    let ours = file.metadata()?;
    match fs::symlink_metadata(path) {
        Ok(there) => Ok((ours.dev(), ours.ino()) == (there.dev(), there.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(not(unix))]
fn same_file(_: &File, _: &Path) -> io::Result<bool> {
    // There, an open file cannot be removed.
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_temporary_files_of_this_memory_are_swept() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("m.jsonl");
        let hex = "0123456789abcdef0123456789abcdef";
        let left = TEMPORARY.map(|part| format!("m.jsonl.{part}{hex}.tmp"));
        let kept = [
            "m.jsonl".to_owned(),
            format!("other.{hex}.tmp"),
            // Of a memory that is called so.
            format!("m.jsonl.other.{hex}.tmp"),
            "m.jsonl.mine.tmp".to_owned(),
            format!("m.jsonl.{}.tmp", &hex[1..]),
            format!("m.jsonl.{hex}.txt"),
        ];
        for name in left.iter().chain(&kept) {
            fs::write(dir.path().join(name), "x").unwrap();
        }
        sweep(&path);
        for (name, there) in left.iter().map(|n| (n, false)).chain(kept.iter().map(|n| (n, true))) {
            assert_eq!(dir.path().join(name).exists(), there, "{name}");
        }
    }

    #[test]
    fn backups_are_made_when_the_newest_is_old_and_the_oldest_goes() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("m.jsonl");
        let backup = |n: u32| fs::read_to_string(beside(&path, &format!("bak.{n}"))).ok();
        let day = Duration::from_secs(86_400);
        for (n, age) in [(1, Duration::ZERO), (2, Duration::ZERO), (3, Duration::ZERO), (4, day), (5, Duration::ZERO)] {
            fs::write(&path, n.to_string()).unwrap();
            back_up(&path, 3, age).unwrap();
        }
        assert_eq!([1, 2, 3, 4].map(backup), [Some("5".into()), Some("3".into()), Some("2".into()), None]);
    }

    #[test]
    fn a_lock_excludes_others_and_waiting_for_it_ends() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("m.jsonl");
        let held = lock(&path, &Patience::until(Instant::now())).unwrap();
        let short = Patience::until(Instant::now() + Duration::from_millis(30));
        let refused = lock(&path, &short).unwrap_err();
        assert!(refused.message().contains("another program"), "{refused}");
        drop(held);
        lock(&path, &Patience::until(Instant::now())).unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn a_lock_file_that_was_removed_does_not_split_the_lock() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("m.jsonl");
        let first = lock(&path, &Patience::until(Instant::now())).unwrap();
        let waiting = std::thread::spawn({
            let path = path.clone();
            move || {
                lock(&path, &Patience::until(Instant::now() + Duration::from_secs(20)))
                    .map(|file| same_file(&file, &beside(&path, "lock")))
            }
        });
        std::thread::sleep(Duration::from_millis(30));
        fs::remove_file(beside(&path, "lock")).unwrap();
        drop(first);
        assert!(waiting.join().unwrap().unwrap().unwrap(), "the waiting one took the file that is there now");
    }

    #[cfg(unix)]
    #[test]
    fn links_are_neither_followed_nor_written_through() {
        let dir = tempfile::tempdir().unwrap();
        let (target, link) = (dir.path().join("target"), dir.path().join("m.jsonl"));
        fs::write(&target, "precious").unwrap();
        for name in [link.clone(), beside(&link, "lock"), beside(&link, "bak.1")] {
            std::os::unix::fs::symlink(&target, name).unwrap();
        }
        assert!(options().read(true).open(&link).is_err());
        assert!(lock(&link, &Patience::until(Instant::now())).is_err());
        // Replacing replaces the link itself.
        replace(&link, b"new", None).unwrap();
        fs::remove_file(beside(&link, "bak.1")).unwrap();
        std::os::unix::fs::symlink(&target, beside(&link, "bak.1")).unwrap();
        back_up(&link, 3, Duration::ZERO).unwrap();
        assert_eq!(fs::read_to_string(&target).unwrap(), "precious");
    }
}
