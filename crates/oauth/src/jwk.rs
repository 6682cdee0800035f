//! Public keys (RFC 7517, RFC 7518 section 6, RFC 8037).

use crate::alg::Alg;
use crate::random::sha256;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{self, RsaParameters, RsaPublicKeyComponents, UnparsedPublicKey, VerificationAlgorithm};
use serde_json::{Value, json};
use std::fmt;

/// A public key. The key decides which algorithms it verifies.
///
/// # Example
///
/// ```
/// use linchpin_oauth::{Alg, Jwk, Signer};
///
/// let signer = Signer::generate(Alg::Es256).0.kid("key-1");
/// let json = signer.jwk().to_value();
/// let key = Jwk::read(&json)?;
/// assert_eq!(key.kid(), Some("key-1"));
/// assert!(key.fits(Alg::Es256) && !key.fits(Alg::Rs256));
/// # Ok::<(), linchpin_oauth::JwkError>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Jwk {
    key: Public,
    kid: Option<Box<str>>,
    /// The only algorithm that the key's owner allows.
    alg: Option<Alg>,
}

#[derive(Clone, PartialEq, Eq)]
enum Public {
    Rsa {
        n: Box<[u8]>,
        e: Box<[u8]>,
    },
    /// Uncompressed points: a 4 and the two coordinates.
    P256(Box<[u8]>),
    P384(Box<[u8]>),
    Ed25519(Box<[u8]>),
}

/// Why a key cannot be used.
///
/// # Example
///
/// ```
/// use linchpin_oauth::{Jwk, JwkError};
/// use serde_json::json;
///
/// let symmetric = json!({ "kty": "oct", "k": "c2VjcmV0" });
/// assert_eq!(Jwk::read(&symmetric), Err(JwkError::Private));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum JwkError {
    /// The key is a private or symmetric key, which must not be published.
    Private,
    /// The key is for encryption.
    NotForSignatures,
    /// The type, curve or algorithm is not supported, or they do not match.
    Unsupported,
    /// The key has fewer bits than are safe, or more than are sensible.
    Weak,
    /// A member is missing or has the wrong form.
    Malformed,
}

impl fmt::Display for JwkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            JwkError::Private => "the key is a private one",
            JwkError::NotForSignatures => "the key is for encryption",
            JwkError::Unsupported => "the type or algorithm of the key is not supported",
            JwkError::Weak => "the key is too short or too long",
            JwkError::Malformed => "the key is malformed",
        })
    }
}

impl std::error::Error for JwkError {}

impl Jwk {
    /// Reads a public key.
    ///
    /// # Errors
    /// If the key is private, symmetric, for encryption, weak, malformed, or of an unknown type.
    pub fn read(value: &Value) -> Result<Jwk, JwkError> {
        const PRIVATE: [&str; 8] = ["d", "p", "q", "dp", "dq", "qi", "oth", "k"];
        if PRIVATE.iter().any(|name| value.get(name).is_some()) {
            return Err(JwkError::Private);
        }
        let text = |name: &str| value.get(name).and_then(Value::as_str);
        let verifies = |ops: &Vec<Value>| ops.iter().any(|op| op.as_str() == Some("verify"));
        if text("use").is_some_and(|usage| usage != "sig")
            || value.get("key_ops").and_then(Value::as_array).is_some_and(|ops| !verifies(ops))
        {
            return Err(JwkError::NotForSignatures);
        }
        let bytes = |name: &str| {
            let text = text(name).filter(|text| text.len() <= MEMBER_CHARS_MAX).ok_or(JwkError::Malformed)?;
            URL_SAFE_NO_PAD.decode(text).map_err(|_| JwkError::Malformed)
        };
        let coordinate = |name: &str, len: usize| bytes(name).and_then(|bytes| sized(bytes, len));
        let point = |len: usize| Ok([vec![4], coordinate("x", len)?, coordinate("y", len)?].concat().into());
        let key = match (text("kty"), text("crv")) {
            (Some("RSA"), _) => rsa(&bytes("n")?, &bytes("e")?)?,
            (Some("EC"), Some("P-256")) => Public::P256(point(32)?),
            (Some("EC"), Some("P-384")) => Public::P384(point(48)?),
            (Some("OKP"), Some("Ed25519")) => Public::Ed25519(coordinate("x", 32)?.into()),
            (Some(_), _) => return Err(JwkError::Unsupported),
            (None, _) => return Err(JwkError::Malformed),
        };
        let alg = match value.get("alg").filter(|alg| !alg.is_null()) {
            Some(alg) => Some(alg.as_str().and_then(Alg::named).ok_or(JwkError::Unsupported)?),
            None => None,
        };
        if alg.is_some_and(|alg| how(&key, alg).is_none()) {
            return Err(JwkError::Unsupported);
        }
        let kid = text("kid").filter(|kid| kid.len() <= MEMBER_CHARS_MAX).map(Into::into);
        Ok(Jwk { key, kid, alg })
    }

    /// A P-256, P-384 or Ed25519 key out of the bytes that `ring` has for it, or an RSA key out of its numbers.
    pub(crate) fn of_parts(parts: PublicParts<'_>, alg: Alg, kid: Option<&str>) -> Jwk {
        let key = match parts {
            PublicParts::Bytes(bytes) => match alg {
                Alg::Es384 => Public::P384(bytes.into()),
                Alg::EdDsa => Public::Ed25519(bytes.into()),
                _ => Public::P256(bytes.into()),
            },
            PublicParts::Rsa { n, e } => Public::Rsa { n: n.into(), e: e.into() },
        };
        Jwk { key, kid: kid.map(Into::into), alg: Some(alg) }
    }

    /// Returns the key ID, the name of the key in its set.
    pub fn kid(&self) -> Option<&str> {
        self.kid.as_deref()
    }

    /// Whether the key can verify signatures of this algorithm.
    pub fn fits(&self, alg: Alg) -> bool {
        self.alg.is_none_or(|only| only == alg) && how(&self.key, alg).is_some()
    }

    /// Whether a signature over a message is valid. Returns `false` for an algorithm that the key does not
    /// [fit](Jwk::fits).
    pub fn verify(&self, alg: Alg, message: &[u8], signature: &[u8]) -> bool {
        let Some(how) = how(&self.key, alg).filter(|_| self.fits(alg)) else { return false };
        match (&self.key, how) {
            (Public::Rsa { n, e }, How::Rsa(how)) => {
                RsaPublicKeyComponents { n, e }.verify(how, message, signature).is_ok()
            }
            (Public::P256(key) | Public::P384(key) | Public::Ed25519(key), How::Curve(how)) => {
                UnparsedPublicKey::new(how, key).verify(message, signature).is_ok()
            }
            _ => false,
        }
    }

    /// Returns the thumbprint (RFC 7638).
    pub fn thumbprint(&self) -> Thumbprint {
        let b64 = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        // The required members in the order of their names, without a space: the hash depends on it.
        let text = match &self.key {
            Public::Rsa { n, e } => format!(r#"{{"e":"{}","kty":"RSA","n":"{}"}}"#, b64(e), b64(n)),
            Public::P256(point) | Public::P384(point) => {
                let (x, y) = coordinates(point);
                format!(r#"{{"crv":"{}","kty":"EC","x":"{}","y":"{}"}}"#, self.curve(), b64(x), b64(y))
            }
            Public::Ed25519(x) => format!(r#"{{"crv":"Ed25519","kty":"OKP","x":"{}"}}"#, b64(x)),
        };
        Thumbprint(sha256(text.as_bytes()))
    }

    /// Returns the key as JSON: its type and parameters, and `kid` and `alg` if they are known.
    pub fn to_value(&self) -> Value {
        let mut value = self.bare();
        if let Some(kid) = &self.kid {
            value["kid"] = json!(kid);
        }
        if let Some(alg) = self.alg {
            value["alg"] = json!(alg.name());
            value["use"] = json!("sig");
        }
        value
    }

    /// The key as JSON, with its required members only.
    pub(crate) fn bare(&self) -> Value {
        let b64 = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        match &self.key {
            Public::Rsa { n, e } => json!({ "kty": "RSA", "n": b64(n), "e": b64(e) }),
            Public::P256(point) | Public::P384(point) => {
                let (x, y) = coordinates(point);
                json!({ "kty": "EC", "crv": self.curve(), "x": b64(x), "y": b64(y) })
            }
            Public::Ed25519(x) => json!({ "kty": "OKP", "crv": "Ed25519", "x": b64(x) }),
        }
    }

    fn curve(&self) -> &'static str {
        if matches!(self.key, Public::P384(_)) { "P-384" } else { "P-256" }
    }
}

impl fmt::Debug for Jwk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Jwk").field("kid", &self.kid).field("thumbprint", &self.thumbprint().to_string()).finish()
    }
}

/// A public key as `ring` has it.
pub(crate) enum PublicParts<'a> {
    Bytes(&'a [u8]),
    Rsa { n: &'a [u8], e: &'a [u8] },
}

fn coordinates(point: &[u8]) -> (&[u8], &[u8]) {
    point[1..].split_at(point.len() / 2)
}

fn sized(bytes: Vec<u8>, len: usize) -> Result<Vec<u8>, JwkError> {
    if bytes.len() == len { Ok(bytes) } else { Err(JwkError::Malformed) }
}

fn rsa(n: &[u8], e: &[u8]) -> Result<Public, JwkError> {
    // Some issuers write the sign byte of DER.
    let trim = |bytes: &[u8]| Box::from(&bytes[bytes.iter().take_while(|byte| **byte == 0).count()..]);
    let (n, e): (Box<[u8]>, Box<[u8]>) = (trim(n), trim(e));
    let first = n.first().ok_or(JwkError::Malformed)?;
    let bits = n.len() * 8 - first.leading_zeros() as usize;
    let odd = |number: &[u8]| number.last().is_some_and(|byte| byte % 2 == 1);
    if !(RSA_BITS_MIN..=RSA_BITS_MAX).contains(&bits) {
        return Err(JwkError::Weak);
    }
    // ring takes exponents of two to 33 bits.
    if !odd(&n) || !odd(&e) || e.len() > 5 || *e == [1] {
        return Err(JwkError::Malformed);
    }
    Ok(Public::Rsa { n, e })
}

enum How {
    Rsa(&'static RsaParameters),
    Curve(&'static dyn VerificationAlgorithm),
}

/// How a key verifies signatures of an algorithm. `None`: it does not.
fn how(key: &Public, alg: Alg) -> Option<How> {
    Some(match (key, alg) {
        (Public::P256(_), Alg::Es256) => How::Curve(&signature::ECDSA_P256_SHA256_FIXED),
        (Public::P384(_), Alg::Es384) => How::Curve(&signature::ECDSA_P384_SHA384_FIXED),
        (Public::Ed25519(_), Alg::EdDsa) => How::Curve(&signature::ED25519),
        (Public::Rsa { .. }, Alg::Rs256) => How::Rsa(&signature::RSA_PKCS1_2048_8192_SHA256),
        (Public::Rsa { .. }, Alg::Rs384) => How::Rsa(&signature::RSA_PKCS1_2048_8192_SHA384),
        (Public::Rsa { .. }, Alg::Rs512) => How::Rsa(&signature::RSA_PKCS1_2048_8192_SHA512),
        (Public::Rsa { .. }, Alg::Ps256) => How::Rsa(&signature::RSA_PSS_2048_8192_SHA256),
        (Public::Rsa { .. }, Alg::Ps384) => How::Rsa(&signature::RSA_PSS_2048_8192_SHA384),
        (Public::Rsa { .. }, Alg::Ps512) => How::Rsa(&signature::RSA_PSS_2048_8192_SHA512),
        _ => return None,
    })
}

const RSA_BITS_MIN: usize = 2048;
const RSA_BITS_MAX: usize = 8192;
/// 8192 bits in base64url, and some.
const MEMBER_CHARS_MAX: usize = 1400;

/// The SHA-256 thumbprint of a key (RFC 7638). Displays as base64url.
///
/// # Example
///
/// ```
/// use linchpin_oauth::{Alg, Signer, Thumbprint};
///
/// let thumbprint = Signer::generate(Alg::Es256).0.jwk().thumbprint();
/// assert_eq!(Thumbprint::parse(&thumbprint.to_string()), Some(thumbprint));
/// assert_eq!(Thumbprint::parse("too short"), None);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Thumbprint([u8; 32]);

impl Thumbprint {
    /// Parses a thumbprint as it is written in `cnf.jkt` or `dpop_jkt`.
    pub fn parse(text: &str) -> Option<Thumbprint> {
        URL_SAFE_NO_PAD.decode(text).ok()?.try_into().ok().map(Thumbprint)
    }
}

impl fmt::Display for Thumbprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&URL_SAFE_NO_PAD.encode(self.0))
    }
}

impl fmt::Debug for Thumbprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Thumbprint({self})")
    }
}
