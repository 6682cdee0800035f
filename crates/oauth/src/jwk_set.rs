//! Sets of public keys (RFC 7517, section 5).

use crate::jwk::{Jwk, JwkError};
use crate::jws::Jws;
use crate::strict::parse_object;
use serde_json::{Value, json};

/// The public keys of an issuer (RFC 7517, section 5).
///
/// # Example
///
/// ```
/// use linchpin_oauth::{Alg, JwkSet, Signer};
///
/// let signer = Signer::generate(Alg::EdDsa).0.kid("2026-01");
/// let keys = JwkSet::from_iter([signer.jwk()]);
///
/// let published = keys.to_value().to_string();
/// let fetched = JwkSet::parse(published.as_bytes()).expect("a key set");
/// assert!(fetched.has("2026-01") && fetched.skipped().is_empty());
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JwkSet {
    keys: Vec<Jwk>,
    skipped: Vec<JwkError>,
}

impl JwkSet {
    /// The maximum length of a text that is parsed, in bytes.
    pub const BYTES_MAX: usize = 256 * 1024;
    /// The maximum number of keys that are read.
    pub const KEYS_MAX: usize = 100;

    /// Parses a key set.
    ///
    /// Keys that cannot be used are skipped, as RFC 7517 requires, and so are those beyond [`JwkSet::KEYS_MAX`].
    /// Returns `None` if the text is too long or not a key set.
    pub fn parse(text: &[u8]) -> Option<JwkSet> {
        if text.len() > JwkSet::BYTES_MAX {
            return None;
        }
        let set = parse_object(text)?;
        let mut read = JwkSet::default();
        for key in set.get("keys")?.as_array()?.iter().take(JwkSet::KEYS_MAX) {
            match Jwk::read(key) {
                Ok(key) => read.keys.push(key),
                Err(why) => read.skipped.push(why),
            }
        }
        Some(read)
    }

    /// Iterates over the keys.
    pub fn iter(&self) -> impl Iterator<Item = &Jwk> {
        self.keys.iter()
    }

    /// Returns the reasons why keys were skipped, one per key; none for those beyond `KEYS_MAX`.
    pub fn skipped(&self) -> &[JwkError] {
        &self.skipped
    }

    /// Whether the set contains a key with this ID.
    pub fn has(&self, kid: &str) -> bool {
        self.keys.iter().any(|key| key.kid() == Some(kid))
    }

    /// Returns the keys that may have signed a token, at most four: those with its `kid` and algorithm, or, if the
    /// token has no `kid`, all of its algorithm.
    pub fn fitting<'a>(&'a self, jws: &'a Jws<'_>) -> impl Iterator<Item = &'a Jwk> {
        let named = move |key: &&Jwk| jws.kid().is_none_or(|kid| key.kid() == Some(kid));
        self.keys.iter().filter(named).filter(move |key| key.fits(jws.alg())).take(4)
    }

    /// Returns the set as JSON.
    pub fn to_value(&self) -> Value {
        json!({ "keys": self.keys.iter().map(Jwk::to_value).collect::<Vec<_>>() })
    }
}

impl FromIterator<Jwk> for JwkSet {
    fn from_iter<I: IntoIterator<Item = Jwk>>(keys: I) -> JwkSet {
        JwkSet { keys: keys.into_iter().collect(), skipped: Vec::new() }
    }
}
