//! Access tokens that are JWTs (RFC 9068, and what issuers wrote before it), and what claims say of their subject.

use crate::issuer::TrustedIssuer;
use crate::refuse::{EXPIRED, INVALID, OTHER_AUDIENCE};
use crate::remembered::{Known, LEEWAY_S};
use linchpin_core::Principal;
use linchpin_oauth::{Claims, JwkSet, Jws, Scopes, Thumbprint, Untimely};
use serde_json::Value;
use std::time::{Duration, UNIX_EPOCH};

/// Why a token is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    /// As the text says.
    Bad(&'static str),
    /// None of the known keys signed it.
    UnknownKey,
}

/// What tokens must be for.
#[derive(Debug)]
pub(crate) struct Audiences {
    /// The URLs of the server.
    pub(crate) resources: Vec<String>,
}

impl Audiences {
    /// Whether one of these audiences is this server, for an issuer.
    fn include(&self, audiences: &[&str], issuer: &TrustedIssuer) -> bool {
        audiences.iter().any(|audience| {
            issuer.audiences.iter().any(|own| own == audience)
                || self.resources.iter().any(|resource| is_same(resource, audience))
        })
    }
}

/// Whether an audience is this URL: to the letter, but for the case of its host, and a final slash where there is no path.
fn is_same(resource: &str, audience: &str) -> bool {
    let rooted = |url: &str| url.split_once("://").is_some_and(|(_, rest)| !rest.trim_end_matches('/').contains('/'));
    let audience = if rooted(resource) { audience.strip_suffix('/').unwrap_or(audience) } else { audience };
    let resource = if rooted(resource) { resource.strip_suffix('/').unwrap_or(resource) } else { resource };
    let path =
        |url: &str| url.find("://").and_then(|at| url[at + 3..].find('/').map(|end| at + 3 + end)).unwrap_or(url.len());
    let ((host, rest), (own_host, own_rest)) = (audience.split_at(path(audience)), resource.split_at(path(resource)));
    host.eq_ignore_ascii_case(own_host) && rest == own_rest
}

/// Verifies a token of an issuer with its keys.
pub(crate) fn verify(
    jws: &Jws<'_>,
    keys: &JwkSet,
    issuer: &TrustedIssuer,
    at: usize,
    audiences: &Audiences,
    now: u64,
) -> Result<Known, Why> {
    let is_access_token = match jws.typ().map(str::to_ascii_lowercase).as_deref() {
        Some("at+jwt" | "application/at+jwt") => true,
        Some("jwt") | None => !issuer.strict_typ,
        Some(_) => false,
    };
    if !is_access_token {
        return Err(Why::Bad(INVALID));
    }
    let verified = keys.fitting(jws).find_map(|key| jws.verify(key).ok());
    let known_kid = jws.kid().is_some_and(|kid| keys.has(kid));
    let Some(claims) = verified else { return Err(if known_kid { Why::Bad(INVALID) } else { Why::UnknownKey }) };
    claims.check_times(now, LEEWAY_S).map_err(|why| match why {
        Untimely::Expired => Why::Bad(EXPIRED),
        _ => Why::Bad(INVALID),
    })?;
    if issuer.strict_expiry && claims.time("exp").is_none_or(|end| end <= now) {
        return Err(Why::Bad(EXPIRED));
    }
    let name = issuer.audience_claim.as_deref().unwrap_or("aud");
    let named = claims.texts(name).ok_or(Why::Bad(INVALID))?;
    if !audiences.include(&named, issuer) {
        return Err(Why::Bad(OTHER_AUDIENCE));
    }
    if looks_like_an_id_token(claims) {
        return Err(Why::Bad(INVALID));
    }
    known(claims, issuer, at).ok_or(Why::Bad(INVALID))
}

/// ID tokens have a nonce, or hashes of what was issued with them; access tokens have neither.
fn looks_like_an_id_token(claims: &Claims) -> bool {
    ["nonce", "at_hash", "c_hash"].iter().any(|name| claims.get(name).is_some())
}

/// Whether an answer to an introspection is for this server.
pub(crate) fn is_for(claims: &Claims, issuer: &TrustedIssuer, audiences: &Audiences) -> Result<(), &'static str> {
    let lenient = issuer.introspection.as_ref().is_some_and(|introspection| introspection.is_audience);
    let name = issuer.audience_claim.as_deref().unwrap_or("aud");
    match claims.texts(name) {
        None if lenient && claims.get(name).is_none() => Ok(()),
        Some(named) if audiences.include(&named, issuer) => Ok(()),
        _ => Err(OTHER_AUDIENCE),
    }
}

/// Who the claims are about. `None` if they name nobody, or bind the token in a way that cannot be checked.
pub(crate) fn known(claims: &Claims, issuer: &TrustedIssuer, at: usize) -> Option<Known> {
    let client = client(claims);
    let (vouches, subject) = match claims.text("sub") {
        // A user of another place cannot be taken for a program of this issuer.
        Some(sub) if issuer.principal_in_subject => {
            let (vouches, subject) = sub.split_once('#')?;
            let program = subject.strip_prefix("client:");
            if program.is_some_and(|program| vouches != issuer.url || Some(program) != client) {
                return None;
            }
            (vouches, subject.to_owned())
        }
        sub => (issuer.url.as_str(), subject(sub, client)?),
    };
    let bound = match claims.get("cnf") {
        None => None,
        Some(Value::Object(cnf)) => match (cnf.len(), cnf.get("jkt").and_then(Value::as_str)) {
            (1, Some(thumbprint)) => Some(Thumbprint::parse(thumbprint)?),
            _ => return None,
        },
        Some(_) => return None,
    };
    let mut principal = Principal::new(subject).with_issuer(vouches);
    if let Some(client) = client {
        principal = principal.with_client(client);
    }
    if let Some(expiry) = claims.time("exp") {
        principal = principal.with_expiry(UNIX_EPOCH.checked_add(Duration::from_secs(expiry))?);
    }
    let family = issuer.revocation.as_ref().and_then(|revocation| claims.text(&revocation.claim));
    if let (Some(family), Some(revocation)) = (family, &issuer.revocation) {
        let (family, is_revoked) = (Box::<str>::from(family), revocation.is_revoked.clone());
        principal = principal.with_revocation(move || is_revoked(&family));
    }
    Some(Known {
        principal: principal.with_scopes(scopes(claims, issuer).iter()).with_claims(claims.as_map().clone()),
        bound,
        family: family.map(|family| (at, family.into())),
        leeway_s: if issuer.strict_expiry { 0 } else { LEEWAY_S },
    })
}

/// The client that a token was given to.
pub(crate) fn client(claims: &Claims) -> Option<&str> {
    ["client_id", "azp", "appid", "cid"].iter().find_map(|name| claims.text(name))
}

/// The name of a user, or of a program that acts for itself.
fn subject(sub: Option<&str>, client: Option<&str>) -> Option<String> {
    match (sub, client) {
        // A user cannot be taken for a program.
        (Some(subject), _) if subject.starts_with("client:") => None,
        (Some(subject), client) if Some(subject) != client => Some(subject.to_owned()),
        (_, Some(client)) => Some(format!("client:{client}")),
        (Some(_), None) | (None, None) => None,
    }
}

/// The scopes that the claims grant, as RFC 8693 (`scope`) and others (`scp`) write them.
fn scopes(claims: &Claims, issuer: &TrustedIssuer) -> Scopes {
    let listed = ["scope", "scp"].into_iter().filter_map(|name| claims.texts(name)).flatten();
    let mut all: Vec<String> = listed.flat_map(|text| text.split(' ')).map(str::to_owned).collect();
    if let Some(more) = &issuer.scopes_from {
        all.extend(more(claims));
    }
    all.iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_audience_is_the_url_to_the_letter_but_for_its_host() {
        let rows = [
            ("https://a.example/mcp", "https://a.example/mcp", true),
            ("https://a.example/mcp", "https://A.Example/mcp", true),
            ("https://a.example/mcp", "https://a.example/MCP", false),
            ("https://a.example/mcp", "https://a.example/mcp/", false),
            ("https://a.example/mcp", "https://a.example/mcp/x", false),
            ("https://a.example/mcp", "https://a.example", false),
            ("https://a.example/mcp", "https://a.example/", false),
            ("https://a.example/mcp", "http://a.example/mcp", false),
            ("https://a.example/mcp", "https://a.example.evil/mcp", false),
            ("https://a.example", "https://a.example/", true),
            ("https://a.example/", "https://a.example", true),
            ("https://a.example", "https://a.example//", false),
            ("https://a.example", "", false),
        ];
        for (resource, audience, expected) in rows {
            assert_eq!(is_same(resource, audience), expected, "{resource} {audience}");
        }
    }
}
