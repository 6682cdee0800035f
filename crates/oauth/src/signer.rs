//! Private keys, and signing with them: compact JWS (RFC 7515) over JSON claims (RFC 7519).

use crate::alg::{Alg, KeyError};
use crate::jwk::{Jwk, PublicParts};
use crate::random::random_id;
use crate::secret::Secret;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::error::KeyRejected;
use ring::rand::SystemRandom;
use ring::signature::{
    self, EcdsaKeyPair, EcdsaSigningAlgorithm, Ed25519KeyPair, KeyPair as _, RsaEncoding, RsaKeyPair,
};
use rustls_pki_types::PrivateKeyDer;
use rustls_pki_types::pem::PemObject as _;
use serde_json::{Map, Value, json};
use std::fmt;
use std::sync::Arc;

/// Lifetime of a client assertion in seconds. It is used at once; the rest allows for clock skew.
const ASSERTION_S: u64 = 300;

/// Maximum size of a PEM text in bytes. An RSA key of 8192 bits takes some 6500.
const PEM_BYTES_MAX: usize = 64 * 1024;

/// A private key that signs tokens: for a client, or for an issuer. Cheap to clone.
///
/// # Example
///
/// ```
/// use linchpin_oauth::{Alg, Jws, Signer};
/// use serde_json::json;
///
/// let (signer, stored) = Signer::generate(Alg::EdDsa);
/// let token = signer.kid("key-1").sign("at+jwt", &json!({ "sub": "ada" }));
/// assert_eq!(Jws::read(&token).unwrap().kid(), Some("key-1"));
///
/// let restored = Signer::from_secret(&stored, Alg::EdDsa)?;
/// assert!(Jws::read(&token).unwrap().verify(&restored.jwk()).is_ok());
/// # Ok::<(), linchpin_oauth::KeyError>(())
/// ```
#[derive(Clone)]
pub struct Signer {
    key: Key,
    alg: Alg,
    kid: Option<String>,
}

/// The private key by type; the algorithm of an RSA key is configured.
#[derive(Clone)]
enum Key {
    Ecdsa(Arc<EcdsaKeyPair>),
    Rsa(Arc<RsaKeyPair>, &'static dyn RsaEncoding),
    Ed25519(Arc<Ed25519KeyPair>),
}

impl Signer {
    /// Reads a private key from PEM: PKCS#8 for every algorithm, SEC1 (`EC PRIVATE KEY`) for `ES256`, or PKCS#1
    /// (`RSA PRIVATE KEY`) for RSA. The first private key in the text is used.
    ///
    /// # Errors
    /// If the text contains no unencrypted key, if the key is not one for `alg`, if an elliptic-curve key lacks its
    /// public half, or if an RSA key has fewer than 2048 bits.
    pub fn from_pem(pem: &str, alg: Alg) -> Result<Signer, KeyError> {
        if pem.len() > PEM_BYTES_MAX {
            return Err(KeyError::NotPem);
        }
        let der = PrivateKeyDer::from_pem_slice(pem.as_bytes()).map_err(|_| KeyError::NotPem)?;
        match (&der, alg) {
            (PrivateKeyDer::Pkcs8(der), _) => Signer::from_pkcs8(der.secret_pkcs8_der(), alg),
            (PrivateKeyDer::Sec1(der), Alg::Es256) => Signer::from_pkcs8(&sec1_as_pkcs8(der.secret_sec1_der()), alg),
            (PrivateKeyDer::Pkcs1(der), _) => {
                let padding = padding(alg).ok_or(KeyError::Mismatch(alg))?;
                let pair = RsaKeyPair::from_der(der.secret_pkcs1_der()).map_err(rejected(alg))?;
                Ok(Signer { key: Key::Rsa(Arc::new(pair), padding), alg, kid: None })
            }
            _ => Err(KeyError::Mismatch(alg)),
        }
    }

    /// Reads a private key in PKCS#8 (DER, not PEM).
    ///
    /// # Errors
    /// If the key is not one for `alg`, or is an RSA key of fewer than 2048 bits.
    pub fn from_pkcs8(pkcs8: &[u8], alg: Alg) -> Result<Signer, KeyError> {
        let key = match (alg, padding(alg)) {
            (_, Some(padding)) => Key::Rsa(Arc::new(RsaKeyPair::from_pkcs8(pkcs8).map_err(rejected(alg))?), padding),
            (Alg::EdDsa, None) => {
                // OpenSSL writes version 1 without the public key, others version 2 with it; both are valid.
                let pair = Ed25519KeyPair::from_pkcs8_maybe_unchecked(pkcs8);
                Key::Ed25519(Arc::new(pair.map_err(rejected(alg))?))
            }
            (_, None) => {
                let pair = EcdsaKeyPair::from_pkcs8(curve(alg), pkcs8, &SystemRandom::new());
                Key::Ecdsa(Arc::new(pair.map_err(rejected(alg))?))
            }
        };
        Ok(Signer { key, alg, kid: None })
    }

    /// Creates a new key, and returns it with its PKCS#8 form in base64url, which [`Signer::from_secret`] reads.
    ///
    /// # Panics
    /// If `alg` is an RSA algorithm, for which `ring` cannot create keys, or if the operating system provides no random
    /// bytes.
    pub fn generate(alg: Alg) -> (Signer, Secret) {
        assert!(padding(alg).is_none(), "RSA keys are not created here");
        let random = SystemRandom::new();
        let pkcs8 = match alg {
            Alg::EdDsa => Ed25519KeyPair::generate_pkcs8(&random),
            _ => EcdsaKeyPair::generate_pkcs8(curve(alg), &random),
        };
        let pkcs8 = pkcs8.expect("the system gives random bytes");
        let signer = Signer::from_pkcs8(pkcs8.as_ref(), alg).expect("a key that was just generated can be read");
        (signer, Secret::new(URL_SAFE_NO_PAD.encode(pkcs8.as_ref())))
    }

    /// Restores a key from the form that [`Signer::generate`] returned.
    ///
    /// # Errors
    /// If it is damaged, or for another algorithm.
    pub fn from_secret(stored: &Secret, alg: Alg) -> Result<Signer, KeyError> {
        let pkcs8 = URL_SAFE_NO_PAD.decode(stored.expose()).map_err(|_| KeyError::NotStored)?;
        Signer::from_pkcs8(&zeroize::Zeroizing::new(pkcs8), alg).map_err(|_| KeyError::NotStored)
    }

    /// Sets the `kid` of the header, so that a verifier with several keys can select the right one.
    #[must_use]
    pub fn kid(mut self, kid: impl Into<String>) -> Signer {
        self.kid = Some(kid.into());
        self
    }

    /// Returns the algorithm.
    pub fn alg(&self) -> Alg {
        self.alg
    }

    /// Returns the public half of the key.
    pub fn jwk(&self) -> Jwk {
        let kid = self.kid.as_deref();
        match &self.key {
            Key::Ecdsa(pair) => Jwk::of_parts(PublicParts::Bytes(pair.public_key().as_ref()), self.alg, kid),
            Key::Ed25519(pair) => Jwk::of_parts(PublicParts::Bytes(pair.public_key().as_ref()), self.alg, kid),
            Key::Rsa(pair, _) => {
                let numbers = ring::rsa::PublicKeyComponents::<Vec<u8>>::from(pair.public());
                Jwk::of_parts(PublicParts::Rsa { n: &numbers.n, e: &numbers.e }, self.alg, kid)
            }
        }
    }

    /// Returns a compact JWS over `claims`. The header contains `alg`, `typ`, and `kid` if one is set.
    ///
    /// # Panics
    /// If the operating system provides no random bytes.
    pub fn sign(&self, typ: &str, claims: &Value) -> String {
        self.sign_with(typ, &Map::new(), claims)
    }

    /// The same with more members in the header.
    pub(crate) fn sign_with(&self, typ: &str, extra: &Map<String, Value>, claims: &Value) -> String {
        let mut header = extra.clone();
        header.insert("typ".to_owned(), json!(typ));
        if let Some(kid) = &self.kid {
            header.insert("kid".to_owned(), json!(kid));
        }
        header.insert("alg".to_owned(), json!(self.alg.name()));
        compact(&header, claims, |message| self.key.sign(message))
    }

    /// Returns an assertion that authenticates a client at a token endpoint (RFC 7523, section 3), valid for five
    /// minutes and for one use. `audience` is the issuer identifier of the authorization server; `now` is in seconds
    /// since 1970.
    ///
    /// # Panics
    /// If the operating system provides no random bytes.
    pub fn client_assertion(&self, client_id: &str, audience: &str, now: u64) -> String {
        let claims = json!({
            "iss": client_id,
            "sub": client_id,
            "aud": audience,
            "iat": now,
            "exp": now.saturating_add(ASSERTION_S),
            "jti": random_id(),
        });
        self.sign("JWT", &claims)
    }
}

impl fmt::Debug for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Signer").field("alg", &self.alg).field("kid", &self.kid).finish_non_exhaustive()
    }
}

impl Key {
    fn sign(&self, message: &[u8]) -> Vec<u8> {
        match self {
            Key::Ecdsa(pair) => {
                // `R || S`, as JWS wants it.
                let signature = pair.sign(&SystemRandom::new(), message).expect("the system gives random bytes");
                signature.as_ref().to_vec()
            }
            Key::Rsa(pair, padding) => {
                let mut signature = vec![0; pair.public().modulus_len()];
                pair.sign(*padding, &SystemRandom::new(), message, &mut signature)
                    .expect("the signature has the length of the modulus, and the system gives random bytes");
                signature
            }
            Key::Ed25519(pair) => pair.sign(message).as_ref().to_vec(),
        }
    }
}

fn rejected(alg: Alg) -> impl Fn(KeyRejected) -> KeyError {
    move |why| KeyError::Rejected(alg, why.to_string())
}

/// How an algorithm of RSA pads. `None`: it is not of RSA.
fn padding(alg: Alg) -> Option<&'static dyn RsaEncoding> {
    Some(match alg {
        Alg::Rs256 => &signature::RSA_PKCS1_SHA256,
        Alg::Rs384 => &signature::RSA_PKCS1_SHA384,
        Alg::Rs512 => &signature::RSA_PKCS1_SHA512,
        Alg::Ps256 => &signature::RSA_PSS_SHA256,
        Alg::Ps384 => &signature::RSA_PSS_SHA384,
        Alg::Ps512 => &signature::RSA_PSS_SHA512,
        Alg::Es256 | Alg::Es384 | Alg::EdDsa => return None,
    })
}

fn curve(alg: Alg) -> &'static EcdsaSigningAlgorithm {
    match alg {
        Alg::Es384 => &signature::ECDSA_P384_SHA384_FIXED_SIGNING,
        _ => &signature::ECDSA_P256_SHA256_FIXED_SIGNING,
    }
}

/// Header, claims and signature, in base64url with dots between them (RFC 7515, section 7.1).
fn compact(header: &Map<String, Value>, claims: &Value, sign: impl FnOnce(&[u8]) -> Vec<u8>) -> String {
    let header = serde_json::to_vec(header).expect("a JSON object can be written");
    let mut message = URL_SAFE_NO_PAD.encode(header);
    message.push('.');
    URL_SAFE_NO_PAD.encode_string(claims.to_string(), &mut message);
    let signature = sign(message.as_bytes());
    message.push('.');
    URL_SAFE_NO_PAD.encode_string(signature, &mut message);
    message
}

/// Wraps a SEC1 key (RFC 5915) of P-256 in the PKCS#8 envelope that `ring` parses. A key of another curve is refused
/// there: its length or its point does not fit.
fn sec1_as_pkcs8(sec1: &[u8]) -> zeroize::Zeroizing<Vec<u8>> {
    // INTEGER 0, then SEQUENCE { OID id-ecPublicKey, OID prime256v1 }.
    const VERSION_AND_CURVE: &[u8] = &[
        0x02, 0x01, 0x00, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86,
        0x48, 0xce, 0x3d, 0x03, 0x01, 0x07,
    ];
    let octets = der_header(0x04, sec1.len());
    let inner = VERSION_AND_CURVE.len() + octets.len() + sec1.len();
    let parts = [&der_header(0x30, inner), VERSION_AND_CURVE, &octets, sec1];
    zeroize::Zeroizing::new(parts.concat())
}

/// Tag and length of a DER value.
fn der_header(tag: u8, len: usize) -> Vec<u8> {
    let bytes = len.to_be_bytes();
    let significant = &bytes[bytes.iter().take_while(|byte| **byte == 0).count()..];
    match significant {
        [] => vec![tag, 0],
        [short @ 0..=0x7f] => vec![tag, *short],
        long => [&[tag, 0x80 | long.len() as u8], long].concat(),
    }
}

#[cfg(test)]
mod tests;
