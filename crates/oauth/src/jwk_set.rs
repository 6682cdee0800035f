//! Sets of public keys (RFC 7517, section 5).

use crate::jwk::{Jwk, JwkError};
use crate::jws::Jws;
use crate::strict::parse_object;
use serde_json::{Value, json};

/// The public keys of an issuer (RFC 7517, section 5).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JwkSet {
    keys: Vec<Jwk>,
    skipped: Vec<JwkError>,
}

impl JwkSet {
    /// The longest text that is parsed, in bytes.
    pub const BYTES_MAX: usize = 256 * 1024;
    /// The most keys that are read.
    pub const KEYS_MAX: usize = 100;

    /// Parses a key set. Keys that cannot be used are skipped, as RFC 7517 wants it, and so are those past
    /// [`JwkSet::KEYS_MAX`]. `None` when the text is too long or no key set.
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

    /// Returns why keys were skipped, one item for each.
    pub fn skipped(&self) -> &[JwkError] {
        &self.skipped
    }

    /// Whether there is a key of this name.
    pub fn has(&self, kid: &str) -> bool {
        self.keys.iter().any(|key| key.kid() == Some(kid))
    }

    /// Returns the keys that may have signed a token: those of its `kid` and algorithm; without a `kid` all of its
    /// algorithm, four at most.
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
