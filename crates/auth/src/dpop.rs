//! DPoP (RFC 9449): every request proves possession of the key that the token is bound to.

use crate::jwt::{KeyError, compact, fresh_id, p256, sign_p256};
use crate::secret::Secret;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::digest::{SHA256, digest};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use serde_json::{Map, Value, json};
use std::fmt;
use std::sync::Arc;
use zeroize::Zeroizing;

/// A P-256 key that tokens are bound to. Cheap to clone.
#[derive(Clone)]
pub(crate) struct DpopKey {
    pair: Arc<EcdsaKeyPair>,
    /// The key as PKCS#8 in base64url, for the store.
    stored: Secret,
}

impl DpopKey {
    /// A new key.
    ///
    /// # Panics
    /// When the operating system gives no random bytes.
    pub(crate) fn generate() -> DpopKey {
        let pkcs8 = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new())
            .expect("the system gives random bytes");
        DpopKey::from_pkcs8(pkcs8.as_ref()).expect("a key that was just generated can be read")
    }

    /// The key that [`DpopKey::to_secret`] wrote.
    ///
    /// # Errors
    /// When it did not write this.
    pub(crate) fn from_secret(stored: &Secret) -> Result<DpopKey, KeyError> {
        let pkcs8 = URL_SAFE_NO_PAD.decode(stored.expose()).map_err(|_| KeyError::NotStored)?;
        DpopKey::from_pkcs8(&Zeroizing::new(pkcs8))
    }

    fn from_pkcs8(pkcs8: &[u8]) -> Result<DpopKey, KeyError> {
        let pair = p256(pkcs8).map_err(|_| KeyError::NotStored)?;
        Ok(DpopKey { pair: Arc::new(pair), stored: Secret::new(URL_SAFE_NO_PAD.encode(pkcs8)) })
    }

    /// The private key in the form for a store.
    pub(crate) fn to_secret(&self) -> Secret {
        self.stored.clone()
    }

    /// The public key as a JWK (RFC 7517): `kty`, `crv`, `x` and `y`, nothing else.
    pub(crate) fn public_jwk(&self) -> Value {
        let (x, y) = self.coordinates();
        json!({ "kty": "EC", "crv": "P-256", "x": x, "y": y })
    }

    /// The JWK SHA-256 thumbprint (RFC 7638), for `dpop_jkt` and for comparing with `cnf.jkt`.
    pub(crate) fn thumbprint(&self) -> String {
        let (x, y) = self.coordinates();
        thumbprint(&[("crv", "P-256"), ("kty", "EC"), ("x", &x), ("y", &y)])
    }

    /// A proof for one request (RFC 9449, section 4.2), for the `DPoP` header; valid for one use.
    ///
    /// `htu` is the URL of the request, without query and fragment. `nonce` is the one requested by the server
    /// in `DPoP-Nonce`. `access_token` is given when the request carries one. `now` is in seconds since 1970.
    ///
    /// # Panics
    /// When the operating system gives no random bytes.
    pub(crate) fn proof(
        &self,
        method: &str,
        htu: &str,
        nonce: Option<&str>,
        access_token: Option<&str>,
        now: u64,
    ) -> String {
        let mut header = Map::new();
        header.insert("typ".to_owned(), json!("dpop+jwt"));
        header.insert("alg".to_owned(), json!("ES256"));
        header.insert("jwk".to_owned(), self.public_jwk());
        let end = htu.find(['?', '#']).unwrap_or(htu.len());
        let mut claims = json!({ "jti": fresh_id(), "htm": method, "htu": &htu[..end], "iat": now });
        if let Some(token) = access_token {
            claims["ath"] = json!(hash(token.as_bytes()));
        }
        if let Some(nonce) = nonce {
            claims["nonce"] = json!(nonce);
        }
        compact(&header, &claims, |message| sign_p256(&self.pair, message))
    }

    /// `x` and `y` in base64url, 32 bytes each whatever their value.
    fn coordinates(&self) -> (String, String) {
        // An uncompressed point is a 4 and the two coordinates.
        let (x, y) = self.pair.public_key().as_ref()[1..].split_at(32);
        (URL_SAFE_NO_PAD.encode(x), URL_SAFE_NO_PAD.encode(y))
    }
}

impl fmt::Debug for DpopKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DpopKey").field("thumbprint", &self.thumbprint()).finish_non_exhaustive()
    }
}

/// The thumbprint of a JWK with these required members, which stand in the order of their names and need no escapes.
fn thumbprint(members: &[(&str, &str)]) -> String {
    let members: Vec<String> = members.iter().map(|(name, value)| format!(r#""{name}":"{value}""#)).collect();
    // Without a space: the hash depends on it.
    hash(format!("{{{}}}", members.join(",")).as_bytes())
}

/// SHA-256 in base64url.
fn hash(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(digest(&SHA256, bytes))
}

#[cfg(test)]
mod tests;
