//! Keys: long random tokens of which only the hash is stored, for setups without an authorization server.

use crate::remembered::{Known, LEEWAY_S};
use linchpin_core::Principal;
use linchpin_oauth::{Scopes, Secret, random_text, sha256};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt;
use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The keys that a [`Guard`](crate::Guard) accepts.
///
/// A key is a string `lp_<name>_<43 characters>`, which its holder sends as a bearer token. A key file has a table for
/// each key:
///
/// ```toml
/// [laptop]
/// sha256 = "5e884898da28047151d0e56f8dc6292773603d0d6aabbdd62a11ef721d1542d8"
/// scopes = ["files:read"]
/// expires = 2027-01-31T00:00:00Z
/// note = "Ada's laptop"
/// ```
///
/// `linchpin auth key new` writes such tables. The file is reloaded when it changes.
///
/// # Example
///
/// ```
/// use linchpin_guard::{Guard, Keys};
///
/// # fn main() -> Result<(), linchpin_guard::KeysError> {
/// let keys = Keys::parse(
///     r#"
///     [laptop]
///     sha256 = "5e884898da28047151d0e56f8dc6292773603d0d6aabbdd62a11ef721d1542d8"
///     scopes = ["files:read"]
///     "#,
/// )?;
/// let guard = Guard::for_keys().keys(keys);
/// # let _ = guard;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Keys(Arc<Inner>);

struct Inner {
    known: RwLock<Arc<BTreeMap<String, Key>>>,
    file: Option<Watched>,
}

struct Watched {
    path: PathBuf,
    /// When the file was looked at, and what it was then.
    seen: Mutex<(u64, Option<Stamp>)>,
}

type Stamp = (u64, Option<SystemTime>);

/// A key of [`Keys`], without its secret.
///
/// # Example
///
/// ```
/// use linchpin_guard::{Keys, Scopes};
///
/// let (keys, _token) = Keys::once("laptop", Scopes::from_iter(["files:read"]));
/// for (name, key) in keys.list() {
///     assert_eq!(name, "laptop");
///     assert!(key.scopes.has("files:read") && key.expires.is_none());
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Key {
    hash: [u8; 32],
    /// The scopes that the key grants.
    pub scopes: Scopes,
    /// When the key expires, in seconds since 1970.
    pub expires: Option<u64>,
}

/// A new key, created by [`Keys::create`]. Its token cannot be recovered later.
///
/// ```
/// use linchpin_guard::{Keys, Scopes};
///
/// let new = Keys::create("laptop", &Scopes::new(), None, "Ada's laptop").unwrap();
/// assert!(new.token.expose().starts_with("lp_laptop_") && new.entry.starts_with("[laptop]"));
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct NewKey {
    /// The name of the key.
    pub name: String,
    /// The bearer token that the holder sends.
    pub token: Secret,
    /// The lines to append to a key file.
    pub entry: String,
}

/// The error for invalid keys and key files.
///
/// # Example
///
/// ```
/// use linchpin_guard::{Keys, Scopes};
///
/// let error = Keys::create("Ada's laptop", &Scopes::new(), None, "").unwrap_err();
/// assert!(error.to_string().contains("use lowercase letters, digits and hyphens"));
/// ```
#[derive(Debug)]
pub struct KeysError(String);

impl fmt::Display for KeysError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for KeysError {}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    sha256: String,
    #[serde(default)]
    scopes: Vec<String>,
    expires: Option<toml::value::Datetime>,
    #[serde(default, rename = "note")]
    _note: Option<String>,
}

impl Keys {
    /// Reads a key file.
    ///
    /// # Errors
    /// If the file cannot be read, is invalid, or contains no key.
    pub fn file(path: impl Into<PathBuf>) -> Result<Keys, KeysError> {
        let path = path.into();
        let (keys, stamp) = read(&path)?;
        if keys.is_empty() {
            return Err(KeysError(format!("keys cannot be read from {}: {NO_KEY}", path.display())));
        }
        let file = Watched { path, seen: Mutex::new((0, stamp)) };
        Ok(Keys(Arc::new(Inner { known: RwLock::new(Arc::new(keys)), file: Some(file) })))
    }

    /// Parses the text of a key file.
    ///
    /// # Errors
    /// If the text is invalid, or contains no key.
    pub fn parse(text: &str) -> Result<Keys, KeysError> {
        let known = RwLock::new(Arc::new(parse(text)?));
        Ok(Keys(Arc::new(Inner { known, file: None })))
    }

    /// Creates a key that is not stored, and is valid until the process ends.
    ///
    /// # Panics
    /// If the operating system provides no random bytes.
    pub fn once(name: &str, scopes: Scopes) -> (Keys, Secret) {
        let secret = random_text();
        let key = Key { hash: sha256(secret.as_bytes()), scopes, expires: None };
        let known = RwLock::new(Arc::new(BTreeMap::from([(name.to_owned(), key)])));
        (Keys(Arc::new(Inner { known, file: None })), written(name, &secret))
    }

    /// Creates a key for a key file.
    ///
    /// # Errors
    /// If the name does not consist of 1 to 64 lowercase letters, digits and hyphens.
    ///
    /// # Panics
    /// If the operating system provides no random bytes.
    pub fn create(name: &str, scopes: &Scopes, expires: Option<SystemTime>, note: &str) -> Result<NewKey, KeysError> {
        if !is_name(name) {
            return Err(KeysError(format!(
                "{name:?} is not a name for a key: use lowercase letters, digits and hyphens"
            )));
        }
        let secret = random_text();
        let list: Vec<String> = scopes.iter().map(quoted).collect();
        let mut entry =
            format!("[{name}]\nsha256 = \"{}\"\nscopes = [{}]\n", hex(&sha256(secret.as_bytes())), list.join(", "));
        if let Some(expires) = expires {
            let seconds = expires.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
            entry.push_str(&format!("expires = {}\n", datetime(seconds)));
        }
        if !note.is_empty() {
            entry.push_str(&format!("note = {}\n", quoted(note)));
        }
        Ok(NewKey { name: name.to_owned(), token: written(name, &secret), entry })
    }

    /// Returns all names and keys.
    pub fn list(&self) -> Vec<(String, Key)> {
        let known = self.0.known.read().unwrap_or_else(PoisonError::into_inner);
        known.iter().map(|(name, key)| (name.clone(), key.clone())).collect()
    }

    /// Whether a token has the form of a key. The name may be one that is not known.
    pub(crate) fn claims(token: &str) -> bool {
        token.starts_with("lp_")
    }

    /// Whose key a token is.
    pub(crate) fn find(&self, token: &str, now: u64) -> Result<Known, &'static str> {
        self.reread(now);
        let known = self.0.known.read().unwrap_or_else(PoisonError::into_inner).clone();
        let parts = token.strip_prefix("lp_").and_then(|rest| rest.split_once('_'));
        let (name, secret) = parts.unwrap_or(("", ""));
        let hash = sha256(secret.as_bytes());
        let key = known.get(name);
        // An unknown name costs the same.
        let expected = key.map_or([0; 32], |key| key.hash);
        let differing = hash.iter().zip(expected).fold(0, |differing, (a, b)| differing | (a ^ b));
        let Some(key) = key.filter(|_| std::hint::black_box(differing) == 0) else {
            return Err(super::refuse::INVALID);
        };
        if key.expires.is_some_and(|end| end <= now) {
            return Err(super::refuse::EXPIRED);
        }
        let mut principal = Principal::new(format!("key:{name}")).with_scopes(key.scopes.iter());
        if let Some(end) = key.expires {
            principal = principal.with_expiry(UNIX_EPOCH + Duration::from_secs(end));
        }
        if self.0.file.is_some() {
            let (keys, name) = (self.clone(), Box::<str>::from(name));
            principal = principal.with_revocation(move || keys.is_gone(&name, &hash));
        }
        Ok(Known { principal, bound: None, family: None, leeway_s: LEEWAY_S })
    }

    /// Whether a key is no longer in the file.
    fn is_gone(&self, name: &str, hash: &[u8; 32]) -> bool {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        self.reread(now);
        let known = self.0.known.read().unwrap_or_else(PoisonError::into_inner);
        known.get(name).is_none_or(|key| key.hash != *hash)
    }

    /// Reads the file again if it changed. It is looked at once a second. A file that cannot be used changes nothing.
    fn reread(&self, now: u64) {
        let Some(file) = &self.0.file else { return };
        let mut seen = file.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.0 == now {
            return;
        }
        seen.0 = now;
        if std::fs::metadata(&file.path).ok().map(|m| stamp(&m)) == seen.1 {
            return;
        }
        match read(&file.path) {
            Ok((keys, stamp)) => {
                seen.1 = stamp;
                tracing::info!(keys = keys.len(), "read the file of keys again");
                *self.0.known.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(keys);
            }
            Err(error) => {
                tracing::warn!(%error, "the key file changed but cannot be used; keeping the previous keys")
            }
        }
    }
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keys").field("known", &self.list().len()).finish_non_exhaustive()
    }
}

fn stamp(metadata: &Metadata) -> Stamp {
    (metadata.len(), metadata.modified().ok())
}

fn read(path: &Path) -> Result<(BTreeMap<String, Key>, Option<Stamp>), KeysError> {
    let failed = |error: &dyn fmt::Display| KeysError(format!("keys cannot be read from {}: {error}", path.display()));
    let metadata = std::fs::metadata(path).map_err(|e| failed(&e))?;
    let text = std::fs::read_to_string(path).map_err(|e| failed(&e))?;
    Ok((entries(&text).map_err(|e| failed(&e))?, Some(stamp(&metadata))))
}

const NO_KEY: &str = "there is no key in it; `linchpin auth key new NAME` makes one";

fn parse(text: &str) -> Result<BTreeMap<String, Key>, KeysError> {
    let keys = entries(text)?;
    if keys.is_empty() {
        return Err(KeysError(NO_KEY.to_owned()));
    }
    Ok(keys)
}

/// The keys in a file, which may have lost its last one.
fn entries(text: &str) -> Result<BTreeMap<String, Key>, KeysError> {
    let entries: BTreeMap<String, Entry> = toml::from_str(text).map_err(|e| KeysError(e.message().to_owned()))?;
    let mut keys = BTreeMap::new();
    for (name, entry) in entries {
        let key = key(&name, &entry)?;
        keys.insert(name, key);
    }
    Ok(keys)
}

fn key(name: &str, entry: &Entry) -> Result<Key, KeysError> {
    let wrong = |why: &str| KeysError(format!("key {name}: {why}"));
    if !is_name(name) {
        return Err(wrong("a name has lowercase letters, digits and hyphens"));
    }
    let hash = unhex(&entry.sha256).ok_or_else(|| wrong("sha256 is not a hash in hexadecimal"))?;
    let scopes: Scopes = entry.scopes.iter().collect();
    if scopes.len() != entry.scopes.len() {
        return Err(wrong("a scope is printable ASCII without spaces, quotes or backslashes, and named once"));
    }
    let expires =
        entry.expires.as_ref().map(|at| seconds(at).ok_or_else(|| wrong("expires needs a date and a time in UTC")));
    Ok(Key { hash, scopes, expires: expires.transpose()? })
}

fn is_name(name: &str) -> bool {
    (1..=64).contains(&name.len()) && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
}

fn written(name: &str, secret: &str) -> Secret {
    Secret::new(format!("lp_{name}_{secret}"))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Option<[u8; 32]> {
    let digits = text.as_bytes();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    let plain = digits.len() == 64 && digits.iter().all(u8::is_ascii_hexdigit);
    digits.chunks(2).filter(|_| plain).map(byte).collect::<Option<Vec<u8>>>()?.try_into().ok()
}

/// A text as TOML writes it.
fn quoted(text: &str) -> String {
    // The escapes of JSON are a part of TOML's.
    serde_json::Value::String(text.chars().filter(|c| !c.is_control()).collect()).to_string()
}

/// Seconds since 1970 of a time in UTC, with or without an offset.
fn seconds(at: &toml::value::Datetime) -> Option<u64> {
    let (date, time) = (at.date.as_ref()?, at.time.as_ref());
    let offset = match at.offset {
        Some(toml::value::Offset::Custom { minutes }) => i64::from(minutes),
        _ => 0,
    };
    // Days of the civil calendar, counted from March, so that leap days come last.
    let (year, month) = (i64::from(date.year), i64::from(date.month));
    let (year, month) = if month <= 2 { (year - 1, month + 9) } else { (year, month - 3) };
    let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + i64::from(date.day) - 719_469;
    let of_day =
        time.map_or(0, |t| i64::from(t.hour) * 3600 + i64::from(t.minute) * 60 + i64::from(t.second.unwrap_or(0)));
    u64::try_from(days * 86_400 + of_day - offset * 60).ok()
}

/// The inverse of [`seconds`].
fn datetime(seconds: u64) -> String {
    let (days, of_day) = (seconds / 86_400 + 719_468, seconds % 86_400);
    let era = days / 146_097;
    let of_era = days % 146_097;
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let (month, carry) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    let year = year_of_era + era * 400 + carry;
    format!("{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z", of_day / 3600, of_day % 3600 / 60, of_day % 60)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_key_is_found_by_its_secret_only_and_until_it_expires() {
        let scopes = Scopes::parse("files:read");
        let end = UNIX_EPOCH + Duration::from_secs(1000);
        let new = Keys::create("laptop", &scopes, Some(end), "Ada's \"laptop\"\n").unwrap();
        assert!(!new.entry.contains(&new.token.expose()[10..]), "{}", new.entry);
        let keys = Keys::parse(&new.entry).unwrap();
        let found = keys.find(new.token.expose(), 999).unwrap();
        assert_eq!((found.principal.subject(), found.principal.has_scope("files:read")), ("key:laptop", true));
        assert_eq!(found.principal.expires(), Some(end));
        assert_eq!(keys.find(new.token.expose(), 1000).unwrap_err(), crate::refuse::EXPIRED);
        let secret = new.token.expose().strip_prefix("lp_laptop_").unwrap();
        for wrong in
            ["lp_laptop_", "lp_", "lp_other_x", &format!("lp_phone_{secret}"), &format!("{}x", new.token.expose())]
        {
            assert_eq!(keys.find(wrong, 0).unwrap_err(), crate::refuse::INVALID, "{wrong}");
        }
    }

    #[test]
    fn a_file_that_is_wrong_says_where_and_quotes_no_hash() {
        let hash = "5e884898da28047151d0e56f8dc6292773603d0d6aabbdd62a11ef721d1542d8";
        let rows = [
            (String::new(), "no key"),
            ("[a]\n".into(), "sha256"),
            ("[a]\nsha256 = \"00\"".into(), "key a: sha256"),
            (format!("[a]\nsha256 = \"{hash}\"\nsecret = \"x\""), "unknown field"),
            (format!("[a]\nsha256 = \"{hash}\"\nscopes = [\"two words\"]"), "key a: a scope"),
            (format!("[A_B]\nsha256 = \"{hash}\""), "lowercase letters"),
            (format!("[a]\nsha256 = \"{hash}\"\nexpires = 07:32:00"), "key a: expires"),
        ];
        for (text, expected) in rows {
            let said = Keys::parse(&text).unwrap_err().to_string();
            assert!(said.contains(expected) && !said.contains(&hash[..8]), "{text}: {said}");
        }
    }

    #[test]
    fn a_file_is_read_again_when_it_changes_and_kept_when_it_breaks() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys.toml");
        let [a, b] = ["a", "b"].map(|name| Keys::create(name, &Scopes::new(), None, "").unwrap());
        std::fs::write(&path, &a.entry).unwrap();
        let keys = Keys::file(&path).unwrap();
        assert!(keys.find(a.token.expose(), 1).is_ok() && keys.find(b.token.expose(), 1).is_err());
        std::fs::write(&path, format!("{}\n{}", a.entry, b.entry)).unwrap();
        assert!(keys.find(b.token.expose(), 1).is_err(), "it is looked at once a second");
        assert!(keys.find(b.token.expose(), 2).is_ok());
        std::fs::write(&path, "nonsense").unwrap();
        assert!(keys.find(b.token.expose(), 3).is_ok());
        std::fs::write(&path, format!("# only b\n{}", b.entry)).unwrap();
        assert!(keys.find(a.token.expose(), 4).is_err() && keys.find(b.token.expose(), 4).is_ok());
        std::fs::write(&path, "# nobody any more\n").unwrap();
        assert!(keys.find(b.token.expose(), 5).is_err());
    }

    proptest! {
        #[test]
        fn times_are_read_as_they_are_written(seconds in 0_u64..20_000_000_000) {
            let text = datetime(seconds);
            prop_assert_eq!(super::seconds(&text.parse().unwrap()), Some(seconds), "{}", text);
        }
    }
}
