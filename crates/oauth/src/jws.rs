//! Signed tokens: compact JWS (RFC 7515) over JSON claims (RFC 7519).

use crate::alg::Alg;
use crate::jwk::Jwk;
use crate::strict::parse_object;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Map, Value};
use std::fmt;

/// A token that has been parsed, but not verified.
///
/// Its claims are only accessible through [`Jws::verify`], except for the issuer and the subject, which are needed to
/// find the key.
///
/// # Example
///
/// ```
/// use linchpin_oauth::{Alg, Jws, Signer};
/// use serde_json::json;
///
/// let signer = Signer::generate(Alg::Es256).0;
/// let token = signer.sign("JWT", &json!({ "iss": "https://login.example", "sub": "ada" }));
///
/// let jws = Jws::read(&token)?;
/// assert_eq!(jws.unverified_issuer(), Some("https://login.example"));
/// let claims = jws.verify(&signer.jwk())?;
/// assert_eq!(claims.text("sub"), Some("ada"));
/// # Ok::<(), linchpin_oauth::Malformed>(())
/// ```
#[derive(Clone, Debug)]
pub struct Jws<'a> {
    /// Header and claims as they were signed.
    message: &'a str,
    signature: Vec<u8>,
    header: Header,
    claims: Claims,
}

#[derive(Clone, Debug)]
struct Header {
    alg: Alg,
    kid: Option<String>,
    typ: Option<String>,
    jwk: Option<Value>,
}

/// The error for a text that is not a signed token, for a token with unsupported features, and for an invalid
/// signature.
///
/// # Example
///
/// ```
/// use linchpin_oauth::{Jws, Malformed};
///
/// assert_eq!(Jws::read("an-opaque-token").unwrap_err(), Malformed);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not a signed token of an accepted form")
    }
}

impl std::error::Error for Malformed {}

impl<'a> Jws<'a> {
    /// The maximum length of a token, in bytes.
    pub const BYTES_MAX: usize = 8 * 1024;

    /// Parses a token: three parts, an asymmetric algorithm, and JSON objects without repeated members.
    ///
    /// # Errors
    /// For everything else, including encrypted tokens, critical header members (`crit`), unencoded payloads (`b64`),
    /// and texts longer than [`Jws::BYTES_MAX`].
    pub fn read(text: &'a str) -> Result<Jws<'a>, Malformed> {
        if text.len() > Jws::BYTES_MAX {
            return Err(Malformed);
        }
        let (message, signature) = text.rsplit_once('.').ok_or(Malformed)?;
        let (header, claims) = message.split_once('.').ok_or(Malformed)?;
        // A fourth dot, as encrypted tokens have it, is not base64url.
        let decode = |part: &str| URL_SAFE_NO_PAD.decode(part).map_err(|_| Malformed);
        let object = |part: &str| parse_object(&decode(part)?).ok_or(Malformed);
        Ok(Jws {
            header: Header::read(object(header)?)?,
            claims: Claims(object(claims)?),
            signature: decode(signature)?,
            message,
        })
    }

    /// Returns the algorithm.
    pub fn alg(&self) -> Alg {
        self.header.alg
    }

    /// Returns the ID of the signing key from the header.
    pub fn kid(&self) -> Option<&str> {
        self.header.kid.as_deref()
    }

    /// Returns the media type from the header.
    pub fn typ(&self) -> Option<&str> {
        self.header.typ.as_deref()
    }

    /// Returns the key in the header. Whoever signed a token can put any key there: it proves nothing but that the
    /// sender has it.
    pub(crate) fn jwk(&self) -> Option<&Value> {
        self.header.jwk.as_ref()
    }

    pub(crate) fn unverified(&self, name: &str) -> Option<&str> {
        self.claims.text(name)
    }

    /// Returns the issuer that the token names, to find its keys. Not verified.
    pub fn unverified_issuer(&self) -> Option<&str> {
        self.claims.text("iss")
    }

    /// Returns the subject that the token names, to find its keys. Not verified.
    pub fn unverified_subject(&self) -> Option<&str> {
        self.claims.text("sub")
    }

    /// Verifies the signature and returns the claims.
    ///
    /// # Errors
    /// If the token was not signed with this key, or if the key does not [fit](Jwk::fits) the algorithm of the token.
    pub fn verify(&self, key: &Jwk) -> Result<&Claims, Malformed> {
        match key.verify(self.header.alg, self.message.as_bytes(), &self.signature) {
            true => Ok(&self.claims),
            false => Err(Malformed),
        }
    }
}

impl Header {
    fn read(mut header: Map<String, Value>) -> Result<Header, Malformed> {
        let plain = header.get("b64").is_none_or(|b64| *b64 == Value::Bool(true));
        if header.contains_key("crit") || header.contains_key("enc") || header.contains_key("zip") || !plain {
            return Err(Malformed);
        }
        let mut text = |name: &str| match header.remove(name) {
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(Malformed),
            None => Ok(None),
        };
        let alg = text("alg")?.as_deref().and_then(Alg::named).ok_or(Malformed)?;
        Ok(Header { alg, kid: text("kid")?, typ: text("typ")?, jwk: header.remove("jwk") })
    }
}

/// The claims of a token.
///
/// # Example
///
/// ```
/// use linchpin_oauth::Claims;
/// use serde_json::{Map, json};
///
/// let claims = Map::from_iter([
///     ("sub".to_owned(), json!("ada")),
///     ("aud".to_owned(), json!(["https://mcp.example/mcp"])),
///     ("exp".to_owned(), json!(1_700_000_600)),
/// ]);
/// let claims = Claims::from(claims);
/// assert_eq!(claims.texts("aud"), Some(vec!["https://mcp.example/mcp"]));
/// assert_eq!(claims.check_times(1_700_000_000, 0), Ok(()));
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Claims(Map<String, Value>);

/// Why a token is not valid at a given time.
///
/// # Example
///
/// ```
/// use linchpin_oauth::{Claims, Untimely};
/// use serde_json::{Map, json};
///
/// let claims = Claims::from(Map::from_iter([("exp".to_owned(), json!(1_700_000_600))]));
/// assert_eq!(claims.check_times(1_700_000_600, 0), Err(Untimely::Expired));
/// assert_eq!(claims.check_times(1_700_000_600, 30), Ok(())); // with 30 seconds of leeway
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Untimely {
    /// The expiry is missing, or a time is not a number.
    Malformed,
    /// The token has expired.
    Expired,
    /// The token is not valid yet.
    Early,
}

impl Claims {
    /// Returns a claim.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name)
    }

    /// Returns a claim if it is a string that is not empty.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name)?.as_str().filter(|text| !text.is_empty())
    }

    /// Returns a claim if it is a time (RFC 7519, section 2), in seconds since 1970.
    pub fn time(&self, name: &str) -> Option<u64> {
        seconds(self.0.get(name)?)
    }

    /// Returns the values of a claim that is a string or an array of strings, such as `aud`. Returns `None` if it is
    /// neither, or has more than 64 values.
    pub fn texts(&self, name: &str) -> Option<Vec<&str>> {
        match self.0.get(name)? {
            Value::String(one) => Some(vec![one]),
            Value::Array(all) if all.len() <= LIST_MAX => all.iter().map(Value::as_str).collect(),
            _ => None,
        }
    }

    /// Checks `exp`, which is required, and `nbf` and `iat`, which are optional, with `leeway` seconds for clock skew.
    ///
    /// # Errors
    /// If the token is not valid at `now`, in seconds since 1970.
    pub fn check_times(&self, now: u64, leeway: u64) -> Result<(), Untimely> {
        let time = |name: &str| self.0.get(name).map(|value| seconds(value).ok_or(Untimely::Malformed)).transpose();
        let expiry = time("exp")?.ok_or(Untimely::Malformed)?;
        if expiry.saturating_add(leeway) <= now {
            return Err(Untimely::Expired);
        }
        for name in ["nbf", "iat"] {
            if time(name)?.is_some_and(|from| from > now.saturating_add(leeway)) {
                return Err(Untimely::Early);
            }
        }
        Ok(())
    }

    /// Returns all claims.
    pub fn as_map(&self) -> &Map<String, Value> {
        &self.0
    }
}

impl From<Map<String, Value>> for Claims {
    fn from(claims: Map<String, Value>) -> Claims {
        Claims(claims)
    }
}

fn seconds(value: &Value) -> Option<u64> {
    // Times may have fractions; a negative one was before 1970, and saturates.
    value.as_u64().or_else(|| value.as_f64().map(|seconds| seconds as u64))
}

const LIST_MAX: usize = 64;

#[cfg(test)]
mod tests;
