//! Accounts of this server: a file of names and password hashes, or a code that is shown in the terminal.
//!
//! They are meant for a single machine and for development. Password guesses are rate limited by name and address, and
//! an unknown name takes as long as a wrong password and gets the same response.

use crate::limits::PASSWORDS_AT_ONCE;
use crate::person::{Person, SetupError};
use argon2::password_hash::{PasswordHasher as _, PasswordVerifier as _};
use argon2::{Argon2, PasswordHash};
use linchpin_oauth::Secret;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::SystemTime;
use tokio::sync::Semaphore;

/// The users who may log in with an account of this server.
///
/// ```
/// use linchpin_issuer::{Issuer, Users};
///
/// let issuer = Issuer::new("http://127.0.0.1:8931").users(Users::once());
/// # let _ = issuer;
/// ```
pub struct Users(pub(crate) Source);

pub(crate) enum Source {
    File(File),
    Once(Box<dyn Fn(&str) + Send + Sync>),
}

impl Users {
    /// Reads users from a TOML file with a table for each name. The file is reloaded when it changes.
    ///
    /// ```toml
    /// [ada]
    /// password = "$argon2id$v=19$m=19456,t=2,p=1$…"   # `linchpin user passwd` writes it
    /// name = "Ada Lovelace"
    /// email = "ada@example.com"
    /// groups = ["staff"]
    /// scopes = ["files:read"]                         # without this line: all
    /// disabled = false
    /// ```
    ///
    /// # Errors
    /// If the file cannot be read, or is not a valid users file.
    pub fn file(path: impl Into<PathBuf>) -> Result<Users, SetupError> {
        let file = File { path: path.into(), read: Mutex::default() };
        file.load()?;
        Ok(Users(Source::File(file)))
    }

    /// Admits the user who can read the terminal: each login has a code, which is written to standard error and must
    /// be entered on the login page.
    pub fn once() -> Users {
        Users::once_with(|line| eprintln!("{line}"))
    }

    /// Like [`Users::once`], but passes the code to a function.
    pub fn once_with(announce: impl Fn(&str) + Send + Sync + 'static) -> Users {
        Users(Source::Once(Box::new(announce)))
    }
}

impl fmt::Debug for Users {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Source::File(file) => f.debug_tuple("Users").field(&file.path).finish(),
            Source::Once(_) => f.write_str("Users(once)"),
        }
    }
}

/// A file of users.
pub(crate) struct File {
    path: PathBuf,
    read: Mutex<Option<(Stamp, Arc<UserTable>)>>,
}

/// By which a changed file is recognized.
type Stamp = (Option<SystemTime>, u64);

impl File {
    /// Returns the users. When the file cannot be read, those that were read last.
    pub(crate) fn users(&self) -> Arc<UserTable> {
        self.load().unwrap_or_else(|error| {
            tracing::error!(%error, "the user file cannot be read; keeping the previous users");
            let read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
            read.as_ref().map(|(_, users)| users.clone()).unwrap_or_default()
        })
    }

    fn load(&self) -> Result<Arc<UserTable>, SetupError> {
        let failed = |error: std::io::Error| SetupError::new(format!("{}: {error}", self.path.display()));
        let metadata = std::fs::metadata(&self.path).map_err(failed)?;
        let stamp = (metadata.modified().ok(), metadata.len());
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, users)) = read.as_ref().filter(|(known, _)| *known == stamp) {
            return Ok(users.clone());
        }
        let users = Arc::new(UserTable::read(&self.path)?);
        *read = Some((stamp, users.clone()));
        Ok(users)
    }
}

/// The content of a users file.
///
/// ```
/// use linchpin_issuer::UserTable;
///
/// # fn main() -> Result<(), linchpin_issuer::SetupError> {
/// let mut table = UserTable::default();
/// let ada = table.set_password("ada", &"correct horse battery".into())?;
/// ada.groups = vec!["admins".to_owned()];
/// assert_eq!(table.iter().count(), 1);
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct UserTable {
    users: BTreeMap<String, User>,
}

/// One user of a [`UserTable`].
///
/// ```
/// use linchpin_issuer::UserTable;
///
/// # fn main() -> Result<(), linchpin_issuer::SetupError> {
/// let mut table = UserTable::default();
/// let ada = table.set_password("ada", &"correct horse battery".into())?;
/// ada.email = Some("ada@example.com".to_owned());
/// ada.scopes = Some(vec!["read".to_owned()]);
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct User {
    /// The Argon2id hash of the password, see [`UserTable::set_password`].
    pub password: String,
    /// The display name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The email address. It is treated as verified.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub email: Option<String>,
    /// The groups of the user.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<String>,
    /// The scopes that the user may be granted; `None` for all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scopes: Option<Vec<String>>,
    /// Whether the user may no longer log in.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub disabled: bool,
}

impl UserTable {
    /// Reads a users file.
    ///
    /// # Errors
    /// If the file cannot be read, or is not a valid users file.
    pub fn read(path: &Path) -> Result<UserTable, SetupError> {
        let failed = |why: String| SetupError::new(format!("{}: {why}", path.display()));
        let text = std::fs::read_to_string(path).map_err(|error| failed(error.to_string()))?;
        toml::from_str(&text).map_err(|error| failed(error.message().to_owned()))
    }

    /// Writes the file, readable by its owner only.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(&self, path: &Path) -> Result<(), SetupError> {
        use std::io::Write as _;
        let failed = |error: std::io::Error| SetupError::new(format!("{}: {error}", path.display()));
        let text = toml::to_string(self).map_err(|error| SetupError::new(error.to_string()))?;
        // Written aside and renamed: a server that reads it meanwhile sees the old or the new one.
        let mut aside = path.as_os_str().to_owned();
        aside.push(".new");
        let mut options = std::fs::OpenOptions::new();
        options.write(true).create(true).truncate(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(&aside).map_err(failed)?;
        file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(failed)?;
        std::fs::rename(&aside, path).map_err(failed)
    }

    /// Iterates over names and users.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &User)> {
        self.users.iter().map(|(name, user)| (name.as_str(), user))
    }

    /// Returns a mutable reference to a user.
    pub fn get_mut(&mut self, name: &str) -> Option<&mut User> {
        self.users.get_mut(name)
    }

    /// Removes a user. Returns `false` if there is no such user.
    pub fn remove(&mut self, name: &str) -> bool {
        self.users.remove(name).is_some()
    }

    /// Sets the password of a user. The user is added if they do not exist.
    ///
    /// # Errors
    /// If the name or the password is empty, or the name is longer than 128 bytes.
    pub fn set_password(&mut self, name: &str, password: &Secret) -> Result<&mut User, SetupError> {
        if name.is_empty() || name.len() > NAME_BYTES_MAX || password.is_empty() {
            return Err(SetupError::new("a user needs a name and a password"));
        }
        let user = self.users.entry(name.to_owned()).or_default();
        user.password = hashed(password);
        Ok(user)
    }

    /// The user of this name, if they may log in.
    pub(crate) fn person(&self, name: &str, issuer: &str) -> Option<Person> {
        let user = self.users.get(name).filter(|user| !user.disabled)?;
        Some(Person::new(issuer, name).with(|person| {
            person.login = Some(name.to_owned());
            person.name.clone_from(&user.name);
            person.email.clone_from(&user.email);
            person.email_verified = true;
            person.groups.clone_from(&user.groups);
            person.scopes.clone_from(&user.scopes);
        }))
    }

    /// Whether there is a user of this name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.users.contains_key(name)
    }

    /// Whether a password is that of a user. It takes as long for a name that nobody has.
    pub(crate) async fn knows(self: Arc<Self>, name: String, password: Secret) -> bool {
        let Ok(_turn) = TURNS.acquire().await else { return false };
        let check = move || {
            let user = self.users.get(&name).filter(|user| !user.disabled);
            let hash = user.map_or(NOBODY.as_str(), |user| user.password.as_str());
            let fits = PasswordHash::new(hash)
                .is_ok_and(|hash| Argon2::default().verify_password(password.expose().as_bytes(), &hash).is_ok());
            fits && user.is_some()
        };
        tokio::task::spawn_blocking(check).await.unwrap_or(false)
    }
}

/// Each comparison takes 19 MiB.
static TURNS: Semaphore = Semaphore::const_new(PASSWORDS_AT_ONCE);

/// The hash of a password that nobody has.
static NOBODY: LazyLock<String> = LazyLock::new(|| hashed(&Secret::new(linchpin_oauth::random_text())));

const NAME_BYTES_MAX: usize = 128;

fn hashed(password: &Secret) -> String {
    let hash = Argon2::default().hash_password(password.expose().as_bytes());
    hash.expect("the default parameters are valid, and the system gives random bytes").to_string()
}

/// A code of eight letters that are not mistaken for each other.
pub(crate) fn terminal_code() -> String {
    use ring::rand::SecureRandom as _;
    const LETTERS: &[u8; 32] = b"ABCDEFGHJKLMNPQRSTUVWXYZ23456789";
    let mut bytes = [0; 8];
    ring::rand::SystemRandom::new().fill(&mut bytes).expect("the system gives random bytes");
    bytes.iter().map(|byte| char::from(LETTERS[usize::from(byte % 32)])).collect()
}

/// A code as users write it: in two halves, in small letters.
pub(crate) fn normal_code(text: &str) -> String {
    text.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_uppercase()).collect()
}
