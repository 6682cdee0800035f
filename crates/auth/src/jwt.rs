//! Signing of JWTs: compact JWS (RFC 7515) over JSON claims (RFC 7519).
//!
//! Only signing: nothing here reads a token, because a client has no business believing one. `ring` is in the tree for
//! TLS already and has the four algorithms, and a compact JWS is three base64url strings with dots between them.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::{SecureRandom as _, SystemRandom};
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, RsaKeyPair};
use ring::signature::{RSA_PKCS1_SHA256, RSA_PSS_SHA256, RsaEncoding};
use rustls_pki_types::PrivateKeyDer;
use rustls_pki_types::pem::PemObject as _;
use serde_json::{Map, Value, json};
use std::fmt;
use std::sync::Arc;

/// Lifetime of a client assertion in seconds. It is used at once; the rest allows for clock skew.
const ASSERTION_S: u64 = 300;

/// Maximum size of a PEM text in bytes. An RSA key of 8192 bits takes some 6500.
const PEM_BYTES_MAX: usize = 64 * 1024;

/// A signature algorithm (RFC 7518, section 3.1; RFC 8037 for `EdDSA`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Alg {
    /// ECDSA on P-256 with SHA-256.
    Es256,
    /// RSASSA-PKCS1-v1_5 with SHA-256; keys of 2048 bits and more.
    Rs256,
    /// RSASSA-PSS with SHA-256; keys of 2048 bits and more.
    Ps256,
    /// Ed25519.
    EdDsa,
}

impl Alg {
    /// The name in a header's `alg` and in `token_endpoint_auth_signing_alg_values_supported`.
    pub fn name(self) -> &'static str {
        match self {
            Alg::Es256 => "ES256",
            Alg::Rs256 => "RS256",
            Alg::Ps256 => "PS256",
            Alg::EdDsa => "EdDSA",
        }
    }
}

impl fmt::Display for Alg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl std::str::FromStr for Alg {
    type Err = KeyError;

    /// Reads a name as [`Alg::name`] writes it.
    fn from_str(name: &str) -> Result<Alg, KeyError> {
        let known = [Alg::Es256, Alg::Rs256, Alg::Ps256, Alg::EdDsa];
        known.into_iter().find(|alg| alg.name() == name).ok_or(KeyError::UnknownAlg)
    }
}

/// Why a private key is invalid. Contains nothing of the key itself.
#[derive(Debug)]
#[non_exhaustive]
pub enum KeyError {
    /// The name of the algorithm is none of `ES256`, `RS256`, `PS256`, `EdDSA`.
    UnknownAlg,
    /// There is no unencrypted private key in the text.
    NotPem,
    /// The kind of key does not go with the algorithm.
    Mismatch(Alg),
    /// The key is not one for the algorithm, or is damaged or too weak, as the text says.
    Rejected(Alg, String),
    /// The stored form of a DPoP key cannot be read.
    NotStored,
}

impl fmt::Display for KeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KeyError::UnknownAlg => {
                f.write_str("the signature algorithm is not supported: use ES256, RS256, PS256 or EdDSA")
            }
            KeyError::NotPem => f.write_str(
                "no private key found: use an unencrypted PEM key (BEGIN PRIVATE KEY, BEGIN EC PRIVATE KEY or BEGIN RSA PRIVATE KEY)",
            ),
            KeyError::Mismatch(alg) => write!(f, "this kind of private key does not sign with {alg}"),
            KeyError::Rejected(alg, why) => write!(f, "the private key cannot be used for {alg}: {why}"),
            KeyError::NotStored => f.write_str("the stored DPoP key is damaged"),
        }
    }
}

impl std::error::Error for KeyError {}

/// A private key that signs in the name of a client. Cheap to clone.
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
    /// Reads a private key: PKCS#8 for every algorithm, SEC1 (`EC PRIVATE KEY`) for `ES256`, PKCS#1
    /// (`RSA PRIVATE KEY`) for `RS256` and `PS256`. The first private key of the text counts.
    ///
    /// # Errors
    /// When there is no unencrypted key in the text, when it is not one for `alg`, when an elliptic-curve key comes
    /// without its public half, or when an RSA key has fewer than 2048 bits.
    pub fn from_pem(pem: &str, alg: Alg) -> Result<Signer, KeyError> {
        if pem.len() > PEM_BYTES_MAX {
            return Err(KeyError::NotPem);
        }
        let der = PrivateKeyDer::from_pem_slice(pem.as_bytes()).map_err(|_| KeyError::NotPem)?;
        let rejected = |why: ring::error::KeyRejected| KeyError::Rejected(alg, why.to_string());
        let key = match alg {
            Alg::Es256 => Key::Ecdsa(Arc::new(match &der {
                PrivateKeyDer::Pkcs8(der) => p256(der.secret_pkcs8_der()).map_err(rejected)?,
                PrivateKeyDer::Sec1(der) => p256(&sec1_as_pkcs8(der.secret_sec1_der())).map_err(rejected)?,
                _ => return Err(KeyError::Mismatch(alg)),
            })),
            Alg::Rs256 | Alg::Ps256 => {
                let pair = match &der {
                    PrivateKeyDer::Pkcs8(der) => RsaKeyPair::from_pkcs8(der.secret_pkcs8_der()),
                    PrivateKeyDer::Pkcs1(der) => RsaKeyPair::from_der(der.secret_pkcs1_der()),
                    _ => return Err(KeyError::Mismatch(alg)),
                };
                let padding: &dyn RsaEncoding = if alg == Alg::Rs256 { &RSA_PKCS1_SHA256 } else { &RSA_PSS_SHA256 };
                Key::Rsa(Arc::new(pair.map_err(rejected)?), padding)
            }
            // OpenSSL writes version 1 without the public key, others version 2 with it; both are valid.
            Alg::EdDsa => match &der {
                PrivateKeyDer::Pkcs8(der) => Key::Ed25519(Arc::new(
                    Ed25519KeyPair::from_pkcs8_maybe_unchecked(der.secret_pkcs8_der()).map_err(rejected)?,
                )),
                _ => return Err(KeyError::Mismatch(alg)),
            },
        };
        Ok(Signer { key, alg, kid: None })
    }

    /// Sets `kid` in the header, for servers with several keys of a client.
    #[must_use]
    pub fn kid(mut self, kid: impl Into<String>) -> Signer {
        self.kid = Some(kid.into());
        self
    }

    /// A compact JWS over `claims`. The header has `alg`, `typ` `JWT`, `kid` if there is one, and over these the
    /// members of `header_extra`, except that nothing replaces `alg`.
    ///
    /// # Panics
    /// When the operating system gives no random bytes.
    pub(crate) fn sign(&self, header_extra: &Map<String, Value>, claims: &Value) -> String {
        let mut header = Map::new();
        header.insert("typ".to_owned(), json!("JWT"));
        if let Some(kid) = &self.kid {
            header.insert("kid".to_owned(), json!(kid));
        }
        header.extend(header_extra.iter().map(|(name, value)| (name.clone(), value.clone())));
        header.insert("alg".to_owned(), json!(self.alg.name()));
        compact(&header, claims, |message| self.key.sign(message))
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
            Key::Ecdsa(pair) => sign_p256(pair, message),
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

/// A statement that shows a token endpoint who the client is (RFC 7523, section 3), good for five minutes and for one
/// use. `audience` is the issuer identifier of the authorization server; `now` is in seconds since 1970.
///
/// # Panics
/// When the operating system gives no random bytes.
pub(crate) fn client_assertion(signer: &Signer, client_id: &str, audience: &str, now: u64) -> String {
    let claims = json!({
        "iss": client_id,
        "sub": client_id,
        "aud": audience,
        "iat": now,
        "exp": now.saturating_add(ASSERTION_S),
        "jti": fresh_id(),
    });
    signer.sign(&Map::new(), &claims)
}

/// Header, claims and signature, in base64url with dots between them (RFC 7515, section 7.1).
pub(crate) fn compact(header: &Map<String, Value>, claims: &Value, sign: impl FnOnce(&[u8]) -> Vec<u8>) -> String {
    let header = serde_json::to_vec(header).expect("a JSON object can be written");
    let mut message = URL_SAFE_NO_PAD.encode(header);
    message.push('.');
    URL_SAFE_NO_PAD.encode_string(claims.to_string(), &mut message);
    let signature = sign(message.as_bytes());
    message.push('.');
    URL_SAFE_NO_PAD.encode_string(signature, &mut message);
    message
}

/// A P-256 key pair out of PKCS#8.
pub(crate) fn p256(pkcs8: &[u8]) -> Result<EcdsaKeyPair, ring::error::KeyRejected> {
    EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, pkcs8, &SystemRandom::new())
}

/// `R || S`, as JWS wants it.
pub(crate) fn sign_p256(pair: &EcdsaKeyPair, message: &[u8]) -> Vec<u8> {
    let signature = pair.sign(&SystemRandom::new(), message).expect("the system gives random bytes");
    signature.as_ref().to_vec()
}

/// 128 random bits in base64url, for a `jti`.
pub(crate) fn fresh_id() -> String {
    let mut bytes = [0; 16];
    SystemRandom::new().fill(&mut bytes).expect("the system gives random bytes");
    URL_SAFE_NO_PAD.encode(bytes)
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
