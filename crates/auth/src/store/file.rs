//! Token storage in one file that only its owner can read.

use super::private::{self, Lock};
use super::{StoreKey, Stored, TokenStore, Turn};
use linchpin_core::service::BoxFuture;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

/// Maximum size of the file in bytes. A login takes some 5 KB.
const FILE_BYTES_MAX: usize = 4 << 20;

/// The version of the file format; a file of a later version is not touched.
const VERSION: u32 = 1;

/// A store that keeps tokens in one JSON file.
///
/// The file has the mode 0600 and its directory, if it is created, 0700. A file is rejected if other users may read or
/// write it, if it belongs to another user, or if it is a symbolic link; so is a directory that other users may write
/// to. Each change replaces the whole file under a lock file that other processes respect, so that reads are consistent
/// and no change is lost. A damaged file is an error and is never overwritten. The maximum size is 4 MiB.
///
/// ```
/// use linchpin_auth::{OAuth, store::FileStore};
///
/// let oauth = OAuth::new().store(FileStore::new("my-host/tokens.json"));
/// # let _ = oauth;
/// ```
#[derive(Clone, Debug)]
pub struct FileStore {
    path: PathBuf,
}

impl FileStore {
    /// Creates a store in the file at `path`. Neither the file nor its directory need exist.
    pub fn new(path: impl Into<PathBuf>) -> FileStore {
        FileStore { path: path.into() }
    }

    /// Returns the store in the user's state directory, shared by all programs that use this method.
    ///
    /// The file is `linchpin/tokens.json` in `$XDG_STATE_HOME` (by default `.local/state` in the home directory), on
    /// macOS in `Library/Application Support`, on Windows in `%LOCALAPPDATA%`.
    ///
    /// # Errors
    /// If the environment does not name that directory.
    pub fn standard() -> io::Result<FileStore> {
        Ok(FileStore::new(private::state_dir()?.join("tokens.json")))
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Runs a blocking file operation on a thread that may block.
    fn aside<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Path) -> io::Result<T> + Send + 'static,
    ) -> BoxFuture<'_, io::Result<T>> {
        let path = self.path.clone();
        Box::pin(async move {
            tokio::task::spawn_blocking(move || work(&path)).await.unwrap_or_else(|error| Err(io::Error::other(error)))
        })
    }
}

impl TokenStore for FileStore {
    fn load(&self, key: &StoreKey) -> BoxFuture<'_, io::Result<Option<Stored>>> {
        let key = key.clone();
        self.aside(move |path| Ok(read(path)?.remove(&key)))
    }

    fn save(&self, key: &StoreKey, value: &Stored) -> BoxFuture<'_, io::Result<()>> {
        let (key, value) = (key.clone(), value.clone());
        self.aside(move |path| change(path, |kept| kept.insert(key, value.clone()).as_ref() != Some(&value)))
    }

    fn forget(&self, key: &StoreKey) -> BoxFuture<'_, io::Result<()>> {
        let key = key.clone();
        self.aside(move |path| change(path, |kept| kept.remove(&key).is_some()))
    }

    fn turn(&self, key: &StoreKey) -> BoxFuture<'_, io::Result<Turn>> {
        Box::pin(private::turn(self.path.clone(), ".turn", key))
    }

    fn list(&self) -> BoxFuture<'_, io::Result<Vec<StoreKey>>> {
        self.aside(|path| Ok(read(path)?.into_keys().collect()))
    }
}

type Kept = BTreeMap<StoreKey, Stored>;

/// The content of the file.
#[derive(Serialize, Deserialize)]
struct Format {
    version: u32,
    entries: Vec<Entry>,
}

#[derive(Serialize, Deserialize)]
struct Entry {
    key: StoreKey,
    value: Stored,
}

/// Reads the file. A missing one is empty.
fn read(path: &Path) -> io::Result<Kept> {
    let Some(bytes) = private::read(path, FILE_BYTES_MAX)? else {
        return Ok(Kept::new());
    };
    let format: Format = serde_json::from_slice(&bytes).map_err(|error| {
        // Only the position: the text of a JSON error may quote a token.
        let (line, column) = (error.line(), error.column());
        let why = format!("is damaged at line {line}, column {column}; repair it, or remove it and log in again");
        private::problem(io::ErrorKind::InvalidData, path, &why)
    })?;
    if format.version != VERSION {
        let why = "was written by another version of this program; use that one, or remove the file and log in again";
        return Err(private::problem(io::ErrorKind::InvalidData, path, why));
    }
    let mut kept = Kept::new();
    kept.extend(format.entries.into_iter().map(|entry| (entry.key, entry.value)));
    Ok(kept)
}

/// Changes the file under the lock, and writes it if `change` returns true.
fn change(path: &Path, change: impl FnOnce(&mut Kept) -> bool) -> io::Result<()> {
    private::make_dir(path)?;
    let _lock = Lock::take(&private::beside(path, ".lock"))?;
    let mut kept = read(path)?;
    if !change(&mut kept) {
        return Ok(());
    }
    let entries = kept.into_iter().map(|(key, value)| Entry { key, value }).collect();
    let mut bytes = Zeroizing::new(serde_json::to_vec_pretty(&Format { version: VERSION, entries })?);
    bytes.push(b'\n');
    if bytes.len() > FILE_BYTES_MAX {
        let why = "would grow beyond 4 MiB; log out of servers that are no longer used";
        return Err(private::problem(io::ErrorKind::FileTooLarge, path, why));
    }
    replace(path, &bytes)
}

/// Replaces the file atomically: readers see the old or the new one, even after a power failure. Requires the lock.
fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let fresh = private::beside(path, ".new");
    // Left behind by a killed process; the holder of the lock may remove it.
    match std::fs::remove_file(&fresh) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(private::because(&fresh, error)),
        _ => {}
    }
    let written = private::create(&fresh).and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_all()
    });
    let replaced = written.map_err(|error| private::because(&fresh, error)).and_then(|()| {
        std::fs::rename(&fresh, path).map_err(|error| private::because(path, error))?;
        private::sync_dir(path)
    });
    if replaced.is_err() {
        // It contains tokens, so it is removed; if that fails too, the first error is more useful.
        let _ = std::fs::remove_file(&fresh);
    }
    replaced
}
