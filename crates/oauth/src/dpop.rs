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
///
/// # Example
///
/// ```
/// use linchpin_oauth::dpop::DpopKey;
///
/// let key = DpopKey::generate();
/// // The value of the `DPoP` header of a request.
/// let proof = key.proof("POST", "https://mcp.example/mcp", None, Some("the-token"), 1_700_000_000);
/// # assert_eq!(proof.split('.').count(), 3);
///
/// let restored = DpopKey::from_secret(&key.to_secret())?;
/// assert_eq!(restored.thumbprint(), key.thumbprint());
/// # Ok::<(), linchpin_oauth::KeyError>(())
/// ```
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
    /// If the operating system provides no random bytes.
    pub fn generate() -> DpopKey {
        let (signer, stored) = Signer::generate(Alg::Es256);
        DpopKey { jwk: signer.jwk(), signer, stored }
    }

    /// Restores a key from the value returned by [`DpopKey::to_secret`].
    ///
    /// # Errors
    /// If the value is not one that `to_secret` returned.
    pub fn from_secret(stored: &Secret) -> Result<DpopKey, KeyError> {
        let signer = Signer::from_secret(stored, Alg::Es256)?;
        Ok(DpopKey { jwk: signer.jwk(), signer, stored: stored.clone() })
    }

    /// Returns the private key in a form that can be stored.
    pub fn to_secret(&self) -> Secret {
        self.stored.clone()
    }

    /// Returns the thumbprint of the public key, for `dpop_jkt` and for comparing with `cnf.jkt`.
    pub fn thumbprint(&self) -> Thumbprint {
        self.jwk.thumbprint()
    }

    /// Returns a proof for one request (RFC 9449, section 4.2), for the `DPoP` header; valid for one use.
    ///
    /// `htu` is the URL of the request, whose query and fragment are left out. `nonce` is the one requested by the
    /// server in `DPoP-Nonce`. `access_token` is given when the request carries one. `now` is in seconds since 1970.
    ///
    /// # Panics
    /// If the operating system provides no random bytes.
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

/// The request that a proof must have been made for.
///
/// # Example
///
/// ```
/// use linchpin_oauth::dpop::{DpopKey, Expected, check};
///
/// let (url, now) = ("https://mcp.example/mcp", 1_700_000_000);
/// let proof = DpopKey::generate().proof("POST", url, None, Some("the-token"), now);
/// let expected = Expected::new("POST", url, now).with(|it| it.access_token = Some("the-token"));
/// assert!(check(&proof, &expected).is_ok());
/// assert!(check(&proof, &expected.with(|it| it.method = "GET")).is_err());
/// ```
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Expected<'a> {
    /// The method of the request.
    pub method: &'a str,
    /// The URL of the request as clients know it, as [`target`] writes it.
    pub target: &'a str,
    /// The access token that the request carries; `None` at a token endpoint.
    pub access_token: Option<&'a str>,
    /// The time, in seconds since 1970.
    pub now: u64,
}

impl<'a> Expected<'a> {
    /// Creates what is expected of a request without an access token.
    pub fn new(method: &'a str, target: &'a str, now: u64) -> Expected<'a> {
        Expected { method, target, access_token: None, now }
    }

    /// Returns what is expected with the changes that a closure makes.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }
}

/// A valid proof, as returned by [`check`].
///
/// The caller must still check that [`Proof::thumbprint`] is the one that the token is bound to, that [`Proof::id`] has
/// not been used before, and that [`Proof::nonce`] is one that it issued.
///
/// # Example
///
/// ```
/// use linchpin_oauth::dpop::{DpopKey, Expected, check};
///
/// let (url, now) = ("https://login.example/token", 1_700_000_000);
/// let key = DpopKey::generate();
/// let text = key.proof("POST", url, Some("server-nonce"), None, now);
/// let proof = check(&text, &Expected::new("POST", url, now))?;
/// assert_eq!(proof.thumbprint, key.thumbprint());
/// assert_eq!(proof.nonce.as_deref(), Some("server-nonce"));
/// # Ok::<(), linchpin_oauth::dpop::ProofError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Proof {
    /// The thumbprint of the key.
    pub thumbprint: Thumbprint,
    /// The identifier that is unique among the proofs of this key (`jti`).
    pub id: String,
    /// When the proof was created, in seconds since 1970.
    pub issued: u64,
    /// The nonce that the server requested.
    pub nonce: Option<String>,
    /// The digest of the body (`content_digest`, a draft): `sha-256=:…:`.
    pub content_digest: Option<String>,
}

/// Why a proof is rejected.
///
/// # Example
///
/// ```
/// use linchpin_oauth::dpop::{DpopKey, Expected, ProofError, check};
///
/// let (url, now) = ("https://login.example/token", 1_700_000_000);
/// let proof = DpopKey::generate().proof("POST", url, None, None, now);
/// let an_hour_later = now + 3600;
/// let expected = Expected::new("POST", url, an_hour_later);
/// assert_eq!(check(&proof, &expected), Err(ProofError::Untimely));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProofError {
    /// The text is not a JWT of type `dpop+jwt` with a public key, or a claim is missing.
    Malformed,
    /// The signature does not match the key in the header.
    Signature,
    /// The proof is for another request: the method or the URL differs.
    OtherRequest,
    /// The proof is for another access token.
    OtherToken,
    /// The time of the proof is too far in the past or in the future.
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

/// Checks a proof (RFC 9449, section 4.3), except for the checks that [`Proof`] leaves to the caller.
///
/// # Errors
/// If the proof is not valid for the expected request; the error says why.
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

/// Returns a URL in the form in which proofs compare it: without query and fragment, with scheme and host in lowercase,
/// and without the scheme's default port and one final slash. Returns `None` if the text is not a URL.
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

/// Returns the digest of the request body in a proof (`content_digest`). Call [`check`] first: this verifies nothing.
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
