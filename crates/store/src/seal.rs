//! Authenticated encryption of values, bound to the place where they are stored.
//!
//! ```text
//! version 1 | nonce 12 | ChaCha20-Poly1305( value ) | tag 16
//! key: HKDF-SHA-256 of a secret, one per space      associated data: version | what the caller binds it to
//! ```

use crate::error::{Error, ErrorKind};
use crate::secret::{Secrets, fill};
use bytes::Bytes;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::hkdf;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

const VERSION: u8 = 1;
const HEAD: usize = 1 + NONCE_LEN;
const TAG: usize = 16;

/// A seal for values (authenticated encryption). It seals with a key per space, derived from the first of its
/// [`Secrets`], and opens values that were sealed with any of them. Cheap to clone.
///
/// ```
/// use linchpin_store::{Seal, Secrets};
///
/// let seal = Seal::new(&Secrets::new([7; 32]));
/// let sealed = seal.seal("family", b"family/7f", b"token");
/// assert_eq!(seal.open("family", b"family/7f", &sealed)?, "token");
/// assert!(seal.open("family", b"family/80", &sealed).is_err()); // moved to another record
/// # Ok::<(), linchpin_store::Error>(())
/// ```
#[derive(Clone)]
pub struct Seal(Arc<Inner>);

struct Inner {
    /// From which the keys of spaces are derived.
    roots: Vec<hkdf::Prk>,
    spaces: Mutex<HashMap<String, Arc<[LessSafeKey]>>>,
}

impl Seal {
    /// Creates a seal with these secrets.
    pub fn new(secrets: &Secrets) -> Seal {
        let salt = hkdf::Salt::new(hkdf::HKDF_SHA256, b"linchpin store 1");
        let roots = secrets.0.iter().map(|secret| salt.extract(secret)).collect();
        Seal(Arc::new(Inner { roots, spaces: Mutex::default() }))
    }

    /// Seals a value. It can only be opened with the same space and the same `bound`, for example the key of its
    /// record.
    pub fn seal(&self, space: &str, bound: &[u8], value: &[u8]) -> Bytes {
        let mut nonce = [0; NONCE_LEN];
        fill(&mut nonce);
        let mut out = Vec::with_capacity(HEAD + value.len() + TAG);
        out.push(VERSION);
        out.extend_from_slice(&nonce);
        out.extend_from_slice(value);
        let nonce = Nonce::assume_unique_for_key(nonce);
        let tag = self.keys(space)[0].seal_in_place_separate_tag(nonce, aad(bound), &mut out[HEAD..]);
        out.extend_from_slice(tag.expect("a value in memory is shorter than the algorithm's 256 GiB").as_ref());
        out.into()
    }

    /// Opens a sealed value.
    ///
    /// # Errors
    /// If the value was changed, sealed for another space or `bound`, or sealed with a secret that this seal does not
    /// have.
    pub fn open(&self, space: &str, bound: &[u8], sealed: &[u8]) -> Result<Bytes, Error> {
        let refused = || {
            let text =
                format!("a sealed value of `{space}` does not open: it was changed, or the secret is another one");
            Error::new(ErrorKind::Corrupt, text)
        };
        if sealed.len() < HEAD + TAG || sealed[0] != VERSION {
            return Err(refused());
        }
        let open = |key: &LessSafeKey| {
            let nonce = Nonce::try_assume_unique_for_key(&sealed[1..HEAD]).ok()?;
            let mut value = sealed[HEAD..].to_vec();
            let len = key.open_in_place(nonce, aad(bound), &mut value).ok()?.len();
            value.truncate(len);
            Some(value.into())
        };
        self.keys(space).iter().find_map(open).ok_or_else(refused)
    }

    fn keys(&self, space: &str) -> Arc<[LessSafeKey]> {
        let mut spaces = self.0.spaces.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(keys) = spaces.get(space) {
            return keys.clone();
        }
        let info = [b"space ", space.as_bytes()];
        let derive = |root: &hkdf::Prk| {
            let key = root.expand(&info, &CHACHA20_POLY1305).expect("a key is shorter than 255 hashes");
            LessSafeKey::new(UnboundKey::from(key))
        };
        let keys: Arc<[LessSafeKey]> = self.0.roots.iter().map(derive).collect();
        spaces.insert(space.to_owned(), keys.clone());
        keys
    }
}

fn aad(bound: &[u8]) -> Aad<Vec<u8>> {
    Aad::from([&[VERSION], bound].concat())
}

impl fmt::Debug for Seal {
    /// Never a key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Seal({} secrets)", self.0.roots.len())
    }
}
