//! Tokens in the keyring of the operating system.

use super::private::{self, Lock};
use super::{StoreKey, Stored, TokenStore, Turn};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use keyring_core::{CredentialStore, Entry, Error};
use linchpin_core::service::BoxFuture;
use linchpin_oauth::{Secret, random_id};
use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;
use tokio::sync::{Mutex, OwnedMutexGuard, oneshot};
use zeroize::Zeroizing;

/// Timeout of the keyring, which includes a password prompt for the user.
const WAIT: Duration = Duration::from_secs(120);
const LATE: &str = "the keyring did not respond within two minutes; is it prompting for its password?";

/// Maximum bytes of a keyring entry. Windows refuses more than 2560; other systems have no such limit.
const PART_BYTES_MAX: usize = if cfg!(windows) { 2048 } else { 1 << 20 };

/// Maximum bytes of a value.
const VALUE_BYTES_MAX: usize = 1 << 20;

/// The longest readable name of an entry, in bytes; longer ones are hashed.
const NAME_BYTES_MAX: usize = 200;

/// The entry with the index of all others: not every keyring can be searched.
const INDEX: &str = "index";

/// How often a value is read again when another process changes it meanwhile.
const READS_MAX: u32 = 3;

/// A store in the user's keyring: the Secret Service on Linux and the BSDs (GNOME Keyring, KWallet, KeePassXC), the
/// login keychain on macOS, the Credential Manager on Windows.
///
/// The keyring may prompt the user for its password, so each operation may take up to two minutes. Processes that
/// change the same keyring are synchronized with a lock file in the user's state directory. A value that is too large
/// for one entry is split into several; the maximum is 1 MiB.
///
/// # Example
///
/// ```
/// use linchpin_auth::OAuth;
/// use linchpin_auth::store::KeyringStore;
///
/// let oauth = OAuth::new().store(KeyringStore::new("my-host"));
/// # let _ = oauth;
/// ```
#[derive(Clone)]
pub struct KeyringStore {
    room: Arc<Room>,
}

impl KeyringStore {
    /// Returns the store that is shared by all programs that use this method. Its entries belong to the service
    /// `linchpin`.
    pub fn standard() -> KeyringStore {
        KeyringStore::new("linchpin")
    }

    /// Creates a store whose entries belong to a service with this name. The keyring is opened on first use.
    pub fn new(service: impl Into<String>) -> KeyringStore {
        // Without a state directory, processes do not take turns: the worst that happens is an unlisted key.
        let lock = private::state_dir().ok().map(|dir| dir.join("keyring.lock"));
        let keyring = Arc::new(Mutex::new(None));
        let room = Room { service: service.into(), lock, part_bytes_max: PART_BYTES_MAX, keyring };
        KeyringStore { room: Arc::new(room) }
    }

    /// Does something with the keyring where it may block.
    ///
    /// Uses a separate thread, not the runtime's blocking pool: a runtime waits for its blocking threads, and the
    /// keyring may wait for a password for as long as it likes.
    fn aside<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Ring<'_>) -> Result<T, Trouble> + Send + 'static,
    ) -> BoxFuture<'_, io::Result<T>> {
        let room = Arc::clone(&self.room);
        let done = async move {
            // One at a time: a second password prompt would not help.
            let mut slot = Arc::clone(&room.keyring).lock_owned().await;
            let (answer, answered) = oneshot::channel();
            std::thread::Builder::new().name("keyring".to_owned()).spawn(move || {
                let worked = room.open(&mut slot).and_then(|keyring| work(&Ring { room: &room, keyring }));
                // The caller is gone; the operation is done anyway.
                let _ = answer.send(worked.map_err(io::Error::from));
            })?;
            answered.await.unwrap_or_else(|_| Err(io::Error::other("the keyring's library panicked")))
        };
        Box::pin(async move {
            tokio::time::timeout(WAIT, done)
                .await
                .unwrap_or_else(|_| Err(io::Error::new(io::ErrorKind::TimedOut, LATE)))
        })
    }
}

impl fmt::Debug for KeyringStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyringStore").field("service", &self.room.service).finish_non_exhaustive()
    }
}

impl TokenStore for KeyringStore {
    fn load(&self, key: &StoreKey) -> BoxFuture<'_, io::Result<Option<Stored>>> {
        let name = name_of(key);
        self.aside(move |ring| ring.read(&name))
    }

    fn save(&self, key: &StoreKey, value: &Stored) -> BoxFuture<'_, io::Result<()>> {
        let (key, value) = (key.clone(), value.clone());
        self.aside(move |ring| {
            let _lock = ring.lock()?;
            ring.write(&name_of(&key), &value)?;
            let mut index = ring.index()?;
            if index.insert(key) { ring.write(INDEX, &index) } else { Ok(()) }
        })
    }

    fn forget(&self, key: &StoreKey) -> BoxFuture<'_, io::Result<()>> {
        let key = key.clone();
        self.aside(move |ring| {
            let _lock = ring.lock()?;
            // The secrets first: a stale index is the lesser harm.
            ring.remove(&name_of(&key))?;
            let mut index = ring.index()?;
            if index.remove(&key) { ring.write(INDEX, &index) } else { Ok(()) }
        })
    }

    fn turn(&self, key: &StoreKey) -> BoxFuture<'_, io::Result<Turn>> {
        match &self.room.lock {
            Some(lock) => Box::pin(private::turn(lock.clone(), ".turn", key)),
            None => Box::pin(async { Ok(Turn::default()) }),
        }
    }

    fn list(&self) -> BoxFuture<'_, io::Result<Vec<StoreKey>>> {
        self.aside(|ring| Ok(ring.index()?.into_iter().collect()))
    }
}

/// Reads a password that the user or another program stored in the keyring under a service and an account. Returns
/// `None` if the entry does not exist.
///
/// Such entries can be written with the tools of the operating system:
///
/// - the Secret Service: `secret-tool store --label=… service SERVICE username ACCOUNT`;
/// - macOS: `security add-generic-password -s SERVICE -a ACCOUNT -w`;
/// - Windows: `cmdkey /generic:ACCOUNT.SERVICE /user:ACCOUNT /pass`.
///
/// This function blocks for up to two minutes, because the keyring may prompt the user for its password.
///
/// # Errors
/// If the keyring is unavailable, does not respond in time, or has several such entries. Errors never contain its
/// content.
pub fn keyring_password(service: &str, account: &str) -> io::Result<Option<Secret>> {
    let (service, account) = (service.to_owned(), account.to_owned());
    let (answer, answered) = std::sync::mpsc::channel();
    // As above: a keyring that waits for a password cannot be cancelled.
    std::thread::Builder::new().name("keyring".to_owned()).spawn(move || {
        let _ = answer.send(open().and_then(|keyring| password(&*keyring, &service, &account)));
    })?;
    let error = match answered.recv_timeout(WAIT) {
        Ok(Ok(found)) => return Ok(found),
        Ok(Err(Trouble::Keyring(Error::Ambiguous(_)))) => "the keyring has several such entries".to_owned(),
        Ok(Err(Trouble::Keyring(Error::BadEncoding(_)))) => "the keyring entry is not text".to_owned(),
        Ok(Err(Trouble::Keyring(Error::NoStorageAccess(why)))) => format!("the keyring is locked ({why})"),
        Ok(Err(Trouble::Keyring(why))) => format!("the keyring cannot be used; is one running? ({why})"),
        Ok(Err(Trouble::Io(why))) => return Err(why),
        Ok(Err(Trouble::Damaged(name))) => format!("the keyring's entry {name:?} is damaged"),
        Err(RecvTimeoutError::Timeout) => return Err(io::Error::new(io::ErrorKind::TimedOut, LATE)),
        Err(RecvTimeoutError::Disconnected) => "the keyring's library panicked".to_owned(),
    };
    Err(io::Error::other(error))
}

fn password(keyring: &CredentialStore, service: &str, account: &str) -> Result<Option<Secret>, Trouble> {
    match keyring.build(service, account, None)?.get_password() {
        Ok(text) => Ok(Some(Secret::new(text))),
        Err(Error::NoEntry) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// The name of a key's entry: readable, because people look into their keyrings.
fn name_of(key: &StoreKey) -> String {
    let (resource, issuer) = (&key.resource, &key.issuer);
    let unambiguous = !resource.contains(char::is_whitespace) && !issuer.contains(char::is_whitespace);
    if unambiguous && resource.len() + issuer.len() < NAME_BYTES_MAX {
        return format!("{resource} {issuer}");
    }
    let both = format!("{}:{resource}{issuer}", resource.len());
    format!("sha256 {}", URL_SAFE_NO_PAD.encode(digest(&SHA256, both.as_bytes())))
}

/// The parts of a [`KeyringStore`].
struct Room {
    service: String,
    lock: Option<PathBuf>,
    part_bytes_max: usize,
    keyring: Arc<Mutex<Option<Arc<CredentialStore>>>>,
}

impl Room {
    /// The keyring, opened if it was not.
    fn open<'a>(
        &self,
        slot: &'a mut OwnedMutexGuard<Option<Arc<CredentialStore>>>,
    ) -> Result<&'a CredentialStore, Trouble> {
        if slot.is_none() {
            **slot = Some(open()?);
        }
        slot.as_deref().ok_or(Trouble::Keyring(Error::NoDefaultStore))
    }
}

#[cfg(all(unix, not(target_os = "macos")))]
fn open() -> Result<Arc<CredentialStore>, Trouble> {
    Ok(dbus_secret_service_keyring_store::Store::new()?)
}

#[cfg(target_os = "macos")]
fn open() -> Result<Arc<CredentialStore>, Trouble> {
    Ok(apple_native_keyring_store::keychain::Store::new()?)
}

#[cfg(windows)]
fn open() -> Result<Arc<CredentialStore>, Trouble> {
    Ok(windows_native_keyring_store::Store::new()?)
}

/// An open keyring, seen as names with values.
struct Ring<'a> {
    room: &'a Room,
    keyring: &'a CredentialStore,
}

/// The main entry of a value that is split into several.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Parts {
    /// Renames the entries with each change, so that readers never mix parts of an old and a new value.
    generation: String,
    parts: usize,
}

impl Parts {
    fn names(&self, name: &str) -> impl Iterator<Item = String> {
        // Limits the damage of a corrupt entry.
        let count = self.parts.min(VALUE_BYTES_MAX);
        (0..count).map(move |part| format!("{name} {} {part}", self.generation))
    }
}

impl Ring<'_> {
    /// Keeps other processes from changing the keyring.
    fn lock(&self) -> Result<Option<Lock>, Trouble> {
        let Some(path) = &self.room.lock else {
            return Ok(None);
        };
        private::make_dir(path)?;
        Ok(Some(Lock::take(path)?))
    }

    fn index(&self) -> Result<BTreeSet<StoreKey>, Trouble> {
        Ok(self.read(INDEX)?.unwrap_or_default())
    }

    fn read<T: serde::de::DeserializeOwned>(&self, name: &str) -> Result<Option<T>, Trouble> {
        for _ in 0..READS_MAX {
            let Some(head) = self.get(name)? else {
                return Ok(None);
            };
            let Ok(parts) = serde_json::from_slice::<Parts>(&head) else {
                return serde_json::from_slice(&head).map(Some).map_err(|_| Trouble::Damaged(name.to_owned()));
            };
            if let Some(whole) = self.collect(&parts, name)? {
                return serde_json::from_slice(&whole).map(Some).map_err(|_| Trouble::Damaged(name.to_owned()));
            }
        }
        Err(Trouble::Damaged(name.to_owned()))
    }

    /// Joins a split value; `None` if a part is missing.
    fn collect(&self, parts: &Parts, name: &str) -> Result<Option<Zeroizing<Vec<u8>>>, Trouble> {
        let mut whole = Zeroizing::new(Vec::new());
        for part in parts.names(name) {
            let Some(bytes) = self.get(&part)?.filter(|bytes| whole.len() + bytes.len() <= VALUE_BYTES_MAX) else {
                return Ok(None);
            };
            whole.extend_from_slice(&bytes);
        }
        Ok(Some(whole))
    }

    fn write(&self, name: &str, value: &impl Serialize) -> Result<(), Trouble> {
        let bytes = Zeroizing::new(serde_json::to_vec(value).map_err(io::Error::from)?);
        if bytes.len() > VALUE_BYTES_MAX {
            let why = "a login of more than 1 MiB cannot be stored in the keyring";
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, why).into());
        }
        let old = self.parts(name)?;
        if bytes.len() <= self.room.part_bytes_max {
            self.set(name, &bytes)?;
        } else {
            let chunks = bytes.chunks(self.room.part_bytes_max);
            let parts = Parts { generation: random_id(), parts: chunks.len() };
            for (part, bytes) in parts.names(name).zip(chunks) {
                self.set(&part, bytes)?;
            }
            // With this the new value is in force.
            self.set(name, &serde_json::to_vec(&parts).map_err(io::Error::from)?)?;
        }
        self.remove_parts(old, name)
    }

    fn remove(&self, name: &str) -> Result<(), Trouble> {
        let parts = self.parts(name)?;
        self.delete(name)?;
        self.remove_parts(parts, name)
    }

    /// The current parts of a value, if it is split.
    fn parts(&self, name: &str) -> Result<Option<Parts>, Trouble> {
        Ok(self.get(name)?.and_then(|head| serde_json::from_slice(&head).ok()))
    }

    fn remove_parts(&self, parts: Option<Parts>, name: &str) -> Result<(), Trouble> {
        let names = parts.iter().flat_map(|parts| parts.names(name));
        for part in names {
            if !self.delete(&part)? {
                break;
            }
        }
        Ok(())
    }

    fn entry(&self, name: &str) -> Result<Entry, Trouble> {
        Ok(self.keyring.build(&self.room.service, name, None)?)
    }

    fn get(&self, name: &str) -> Result<Option<Zeroizing<Vec<u8>>>, Trouble> {
        match self.entry(name)?.get_secret() {
            Ok(bytes) => Ok(Some(Zeroizing::new(bytes))),
            Err(Error::NoEntry) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn set(&self, name: &str, bytes: &[u8]) -> Result<(), Trouble> {
        Ok(self.entry(name)?.set_secret(bytes)?)
    }

    /// Whether there was such an entry.
    fn delete(&self, name: &str) -> Result<bool, Trouble> {
        match self.entry(name)?.delete_credential() {
            Ok(()) => Ok(true),
            Err(Error::NoEntry) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

/// Keyring errors.
enum Trouble {
    Keyring(Error),
    Io(io::Error),
    /// The entry does not contain what was written.
    Damaged(String),
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Trouble {
        Trouble::Keyring(error)
    }
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Trouble {
        Trouble::Io(error)
    }
}

impl From<Trouble> for io::Error {
    fn from(trouble: Trouble) -> io::Error {
        match trouble {
            Trouble::Io(error) => error,
            Trouble::Damaged(name) => {
                let why = format!("the keyring's entry {name:?} is damaged; remove it and log in again");
                io::Error::new(io::ErrorKind::InvalidData, why)
            }
            Trouble::Keyring(error @ Error::NoStorageAccess(_)) => {
                let why = format!("the keyring is locked; unlock it, or keep tokens in a file ({error})");
                io::Error::new(io::ErrorKind::PermissionDenied, why)
            }
            // Only the message: the error itself may contain the value, and shows it in its `Debug`.
            Trouble::Keyring(error) => {
                let why = format!(
                    "the keyring is not available; is one running? Tokens can also be stored in a file ({error})"
                );
                io::Error::other(why)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use keyring_core::api::CredentialStoreApi;
    use keyring_core::mock;

    /// A store over a keyring that is only in memory, with entries of at most so many bytes.
    fn over(part_bytes_max: usize) -> (KeyringStore, Arc<mock::Store>) {
        let keyring = mock::Store::new().unwrap();
        let opened: Arc<CredentialStore> = keyring.clone();
        let room = Room {
            service: "test".to_owned(),
            lock: None,
            part_bytes_max,
            keyring: Arc::new(Mutex::new(Some(opened))),
        };
        (KeyringStore { room: Arc::new(room) }, keyring)
    }

    fn key(name: &str) -> StoreKey {
        StoreKey::new("https://as.example", name)
    }

    #[tokio::test]
    async fn of_programs_that_get_tokens_for_one_key_the_second_waits_for_the_first() {
        let home = tempfile::tempdir().unwrap();
        let programs = [0; 2].map(|_| {
            let keyring = Arc::new(Mutex::new(None));
            let lock = Some(home.path().join("state/keyring.lock"));
            let room = Room { service: "test".to_owned(), lock, part_bytes_max: PART_BYTES_MAX, keyring };
            KeyringStore { room: Arc::new(room) }
        });
        let first = programs[0].turn(&key("a")).await.unwrap();
        let _other = programs[1].turn(&key("b")).await.unwrap();
        let waiting = tokio::spawn(async move { programs[1].turn(&key("a")).await.map(drop) });
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert!(!waiting.is_finished());
        drop(first);
        waiting.await.unwrap().unwrap();
    }

    fn value(length: usize) -> Stored {
        Stored { dpop_key: Some(Secret::new("ü".repeat(length))), ..Stored::default() }
    }

    /// The names of the entries with something in them, and how much.
    fn entries(keyring: &mock::Store) -> Vec<(String, usize)> {
        let mut inner = keyring.inner.lock().unwrap();
        let all = inner.get_mut().iter().map(|cred| {
            let entry = Entry::new_with_credential(cred.clone());
            (entry.get_specifiers().unwrap().1, entry.get_secret().map_or(0, |bytes| bytes.len()))
        });
        all.filter(|(_, length)| *length > 0).collect()
    }

    #[tokio::test]
    async fn a_value_of_any_size_is_kept_replaced_and_removed_whole() {
        for part_bytes_max in [100, 1 << 20] {
            let (store, keyring) = over(part_bytes_max);
            for length in [0, 1, 40, 50, 500, 5000, 10] {
                store.save(&key("a"), &value(length)).await.unwrap();
                assert_eq!(store.load(&key("a")).await.unwrap(), Some(value(length)), "{length}");
                let entries = entries(&keyring);
                assert!(entries.iter().all(|(_, length)| *length <= part_bytes_max), "{entries:?}");
                let least = 2 + if part_bytes_max == 100 { length * 2 / 100 } else { 0 };
                assert!((least..=least + 2).contains(&entries.len()), "nothing old is left: {length} {entries:?}");
            }
            store.forget(&key("a")).await.unwrap();
            assert_eq!(store.list().await.unwrap(), []);
            assert_eq!(entries(&keyring).len(), 1, "only the empty index is left");
        }
    }

    #[tokio::test]
    async fn a_missing_part_or_nonsense_is_reported() {
        let (store, keyring) = over(100);
        store.save(&key("a"), &value(500)).await.unwrap();
        let (part, _) = entries(&keyring).into_iter().find(|(name, _)| name.ends_with(" 3")).unwrap();
        keyring.build("test", &part, None).unwrap().delete_credential().unwrap();
        let error = store.load(&key("a")).await.unwrap_err();
        assert!(error.to_string().contains("log in again"), "{error}");
        keyring.build("test", &name_of(&key("b")), None).unwrap().set_secret(b"hunter2").unwrap();
        let error = store.load(&key("b")).await.unwrap_err();
        assert!(!format!("{error} {error:?}").contains("hunter2"), "{error}");
        for damaged in ["a", "b"] {
            store.forget(&key(damaged)).await.unwrap();
            assert_eq!(store.load(&key(damaged)).await.unwrap(), None, "it can be forgotten");
        }
    }

    #[tokio::test]
    async fn an_error_of_the_keyring_shows_no_secret() {
        let (store, keyring) = over(100);
        store.save(&key("a"), &value(1)).await.unwrap();
        let entry = keyring.build("test", &name_of(&key("a")), None).unwrap();
        let cred: &mock::Cred = entry.as_any().downcast_ref().unwrap();
        cred.set_error(Error::BadEncoding(b"hunter2".to_vec()));
        let error = store.load(&key("a")).await.unwrap_err();
        assert!(!format!("{error:?}").contains("104, 117"), "{error:?}");
        cred.set_error(Error::NoStorageAccess("closed".into()));
        assert_eq!(store.load(&key("a")).await.unwrap_err().kind(), io::ErrorKind::PermissionDenied);
    }

    #[test]
    fn a_password_of_somebody_else_is_read_and_never_shown() {
        let keyring = mock::Store::new().unwrap();
        let opened: Arc<CredentialStore> = keyring.clone();
        let read = || password(&*opened, "shop", "reader");
        assert!(matches!(read(), Ok(None)));
        let entry = keyring.build("shop", "reader", None).unwrap();
        entry.set_password("geheim ü").unwrap();
        assert!(matches!(read(), Ok(Some(secret)) if secret.expose() == "geheim ü"));
        assert!(matches!(password(&*opened, "shop", "other"), Ok(None)));
        entry.set_secret(b"hunter2 \xff").unwrap();
        assert!(matches!(read(), Err(Trouble::Keyring(Error::BadEncoding(_)))));
    }

    #[test]
    fn names_of_entries_are_short_and_never_the_same() {
        let long = format!("https://{}", "x".repeat(300));
        let keys = [
            StoreKey::new("https://as.example", "https://rs.example/mcp"),
            StoreKey::new("https://rs.example/mcp", "https://as.example"),
            StoreKey::new("c", "a b"),
            StoreKey::new("b c", "a"),
            StoreKey::new("", "index"),
            StoreKey::new("index", ""),
            StoreKey::new(long.clone(), "a"),
            StoreKey::new("a", long.clone()),
            StoreKey::new(long.clone() + "a", ""),
        ];
        let names: BTreeSet<String> = keys.iter().map(name_of).collect();
        assert_eq!(names.len(), keys.len());
        assert!(names.iter().all(|name| name.len() <= NAME_BYTES_MAX && name != INDEX));
        assert_eq!(name_of(&keys[0]), "https://rs.example/mcp https://as.example");
    }
}
