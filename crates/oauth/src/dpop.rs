//! DPoP (RFC 9449): every request proves possession of the key that the token is bound to.

use crate::alg::{Alg, KeyError};
use crate::jwk::{Jwk, Thumbprint};
use crate::jws::Jws;
use crate::random::{random_id, sha256};
use crate::secret::Secret;
use crate::signer::Signer;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::Uri;
use serde_json::{Map, json};
use std::fmt;

/// A P-256 key that tokens are bound to. Cheap to clone.
#[derive(Clone)]
pub struct DpopKey {
    signer: Signer,
    jwk: Jwk,
    /// The key as PKCS#8 in base64url, for the store.
    stored: Secret,
}

impl DpopKey {
    /// Creates a new key.
    ///
    /// # Panics
    /// When the operating system gives no random bytes.
    pub fn generate() -> DpopKey {
        let (signer, stored) = Signer::generate(Alg::Es256);
        DpopKey { jwk: signer.jwk(), signer, stored }
    }

    /// Reads the key that [`DpopKey::to_secret`] wrote.
    ///
    /// # Errors
    /// When it did not write this.
    pub fn from_secret(stored: &Secret) -> Result<DpopKey, KeyError> {
        let signer = Signer::from_secret(stored, Alg::Es256)?;
        Ok(DpopKey { jwk: signer.jwk(), signer, stored: stored.clone() })
    }

    /// Returns the private key in the form for a store.
    pub fn to_secret(&self) -> Secret {
        self.stored.clone()
    }

    /// Returns the thumbprint of the public key, for `dpop_jkt` and for comparing with `cnf.jkt`.
    pub fn thumbprint(&self) -> Thumbprint {
        self.jwk.thumbprint()
    }

    /// Returns a proof for one request (RFC 9449, section 4.2), for the `DPoP` header; valid for one use.
    ///
    /// `htu` is the URL of the request, whose query and fragment are left out. `nonce` is the one requested by the server
    /// in `DPoP-Nonce`. `access_token` is given when the request carries one. `now` is in seconds since 1970.
    ///
    /// # Panics
    /// When the operating system gives no random bytes.
    pub fn proof(&self, method: &str, htu: &str, nonce: Option<&str>, access_token: Option<&str>, now: u64) -> String {
        let end = htu.find(['?', '#']).unwrap_or(htu.len());
        let mut claims = json!({ "jti": random_id(), "htm": method, "htu": &htu[..end], "iat": now });
        if let Some(token) = access_token {
            claims["ath"] = json!(token_hash(token));
        }
        if let Some(nonce) = nonce {
            claims["nonce"] = json!(nonce);
        }
        let mut header = Map::new();
        header.insert("jwk".to_owned(), self.jwk.bare());
        self.signer.sign_with("dpop+jwt", &header, &claims)
    }
}

impl fmt::Debug for DpopKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DpopKey").field("thumbprint", &self.thumbprint().to_string()).finish_non_exhaustive()
    }
}

/// What a proof must be about.
#[derive(Clone, Copy, Debug)]
pub struct Expected<'a> {
    /// The method of the request.
    pub method: &'a str,
    /// The URL of the request as clients know it, as [`target`] writes it.
    pub target: &'a str,
    /// The access token that the request carries. At a token endpoint there is none.
    pub access_token: Option<&'a str>,
    /// The time, in seconds since 1970.
    pub now: u64,
}

/// A proof that holds.
///
/// What is left to the caller: whether [`Proof::thumbprint`] is that of the token, whether [`Proof::id`] was used
/// before, and whether [`Proof::nonce`] is one that it gave out.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Proof {
    /// The thumbprint of the key.
    pub thumbprint: Thumbprint,
    /// What makes the proof unique among those of its key (`jti`).
    pub id: String,
    /// When it was made, in seconds since 1970.
    pub issued: u64,
    /// The nonce that the server gave.
    pub nonce: Option<String>,
    /// The digest of the body (`content_digest`, a draft): `sha-256=:…:`.
    pub content_digest: Option<String>,
}

/// Why a proof does not hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProofError {
    /// It is no proof: not a token of this type with a public key, or a member is missing.
    Malformed,
    /// The key in it did not sign it.
    Signature,
    /// It is for another request: method or URL differ.
    OtherRequest,
    /// It is for another access token.
    OtherToken,
    /// It was made too long ago, or will be made.
    Untimely,
}

impl fmt::Display for ProofError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ProofError::Malformed => "the proof is malformed",
            ProofError::Signature => "the signature of the proof is not valid",
            ProofError::OtherRequest => "the proof is for another request",
            ProofError::OtherToken => "the proof is for another token",
            ProofError::Untimely => "the proof is too old, or the clock of the client is wrong",
        })
    }
}

impl std::error::Error for ProofError {}

/// Checks a proof (RFC 9449, section 4.3), but for what [`Proof`] leaves to the caller.
///
/// # Errors
/// Why it does not hold.
pub fn check(proof: &str, expected: &Expected<'_>) -> Result<Proof, ProofError> {
    let jws = Jws::read(proof).map_err(|_| ProofError::Malformed)?;
    if jws.typ() != Some("dpop+jwt") {
        return Err(ProofError::Malformed);
    }
    let key = jws.jwk().and_then(|key| Jwk::read(key).ok()).ok_or(ProofError::Malformed)?;
    let claims = jws.verify(&key).map_err(|_| ProofError::Signature)?;
    let text = |name: &str| claims.text(name).ok_or(ProofError::Malformed);
    if text("htm")? != expected.method || target(text("htu")?).as_deref() != Some(expected.target) {
        return Err(ProofError::OtherRequest);
    }
    let issued = claims.time("iat").ok_or(ProofError::Malformed)?;
    if issued.abs_diff(expected.now) > AGE_S_MAX {
        return Err(ProofError::Untimely);
    }
    if let Some(token) = expected.access_token
        && claims.text("ath") != Some(&token_hash(token))
    {
        return Err(ProofError::OtherToken);
    }
    let id = text("jti")?;
    let optional = |name: &str| claims.text(name).map(str::to_owned);
    if id.len() > ID_BYTES_MAX {
        return Err(ProofError::Malformed);
    }
    Ok(Proof {
        thumbprint: key.thumbprint(),
        id: id.to_owned(),
        issued,
        nonce: optional("nonce"),
        content_digest: optional("content_digest"),
    })
}

/// Returns a URL in the form in which proofs compare it: without query and fragment, scheme and host in small letters,
/// without the scheme's default port and one final slash. `None` if it is no URL.
pub fn target(url: &str) -> Option<String> {
    if url.len() > TARGET_BYTES_MAX {
        return None;
    }
    let url: Uri = url.split('#').next()?.parse().ok()?;
    let (scheme, authority) = (url.scheme_str()?.to_ascii_lowercase(), url.authority()?.as_str().to_ascii_lowercase());
    let default = if scheme == "https" { ":443" } else { ":80" };
    let host = authority.strip_suffix(default).unwrap_or(&authority);
    let path = url.path().strip_suffix('/').unwrap_or(url.path());
    Some(format!("{scheme}://{host}{path}"))
}

/// Returns the digest of the body that a proof names (`content_digest`), for a proof that was checked before.
pub fn content_digest(proof: &str) -> Option<String> {
    Jws::read(proof).ok()?.unverified("content_digest").map(str::to_owned)
}

/// Returns the hash of an access token for `ath`.
pub fn token_hash(token: &str) -> String {
    URL_SAFE_NO_PAD.encode(sha256(token.as_bytes()))
}

/// How far `iat` may be from now, in seconds.
pub const AGE_S_MAX: u64 = 300;

const ID_BYTES_MAX: usize = 512;
const TARGET_BYTES_MAX: usize = 8 * 1024;

#[cfg(test)]
mod tests;
