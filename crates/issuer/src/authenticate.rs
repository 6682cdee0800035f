//! Which client a request to the token endpoint is from, and the proof of it.

use crate::answer::Refused;
use crate::attempts::{attempt, forget};
use crate::client::{Client, ClientAuth, hash};
use crate::limits::{ASSERTION_LIFE, SECRET_FAILURES};
use crate::params::Params;
use crate::records::Space;
use crate::request::Incoming;
use crate::shared::{NoClient, Shared};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::AUTHORIZATION;
use linchpin_oauth::{Claims, JwkSet, Jws, parse_object};
use std::time::Duration;

const UNKNOWN: Refused =
    Refused::new("invalid_client", "client authentication failed: unknown client or wrong credentials");
const BEARER: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
const LEEWAY_S: u64 = 60;

/// What a request says of its client.
enum Proof {
    Nothing(String),
    Secret(String, String),
    Assertion(String),
}

/// Whether the request uses the scheme Basic.
pub(crate) fn is_basic(incoming: &Incoming) -> bool {
    incoming.headers.contains_key(AUTHORIZATION)
}

/// Finds the client of a request, and checks that it is the one.
pub(crate) async fn authenticate(shared: &Shared, incoming: &Incoming, form: &Params) -> Result<Client, Refused> {
    let proof = proof(incoming, form)?;
    let id = match &proof {
        Proof::Nothing(id) | Proof::Secret(id, _) => id.clone(),
        Proof::Assertion(jwt) => {
            let jws = Jws::read(jwt).map_err(|_| UNKNOWN)?;
            jws.unverified_subject().ok_or(UNKNOWN)?.to_owned()
        }
    };
    if form.get("client_id").is_some_and(|named| named != id) {
        return Err(UNKNOWN);
    }
    let client = match shared.client(&id).await {
        Ok(client) => client,
        Err(NoClient::Away) => return Err(Refused::away()),
        Err(NoClient::Unknown(_)) => return Err(UNKNOWN),
    };
    let fits = match (&client.auth, &proof) {
        (ClientAuth::None, Proof::Nothing(_)) => true,
        (ClientAuth::Secret { .. }, Proof::Secret(_, secret)) => has_secret(shared, incoming, &client, secret).await?,
        (ClientAuth::Keys { jwks }, Proof::Assertion(jwt)) => {
            let keys = JwkSet::parse(jwks.to_string().as_bytes()).unwrap_or_default();
            check_assertion(shared, &client, jwt, &keys).await?
        }
        (ClientAuth::KeysAt { url }, Proof::Assertion(jwt)) => {
            let keys = shared.documents.keys(url, &shared.records, shared.now()).await?.ok_or(UNKNOWN)?;
            check_assertion(shared, &client, jwt, &keys).await?
        }
        _ => false,
    };
    if fits { Ok(client) } else { Err(UNKNOWN) }
}

/// Checks a secret. It is counted before it is compared: past the limit nobody learns whether a guess was right. Counted for the
/// client and the address together, so that a success elsewhere forgets nothing, and strangers do not lock a client out.
async fn has_secret(shared: &Shared, incoming: &Incoming, client: &Client, secret: &str) -> Result<bool, Refused> {
    let who = format!("secret {} {}", incoming.address(), client.id);
    if !attempt(shared, &who, SECRET_FAILURES).await? {
        return Err(Refused::too_many(Duration::from_secs(2)));
    }
    let fits = client.has_secret(secret);
    if fits {
        forget(shared, &who).await?;
    }
    Ok(fits)
}

/// Reads the one proof of a request; two are an error (RFC 6749, section 2.3).
fn proof(incoming: &Incoming, form: &Params) -> Result<Proof, Refused> {
    let twice = Refused::new("invalid_request", "a client shows who it is in one way only");
    let basic = match incoming.headers.get(AUTHORIZATION) {
        Some(value) => Some(value.to_str().ok().and_then(read_basic).ok_or(UNKNOWN)?),
        None => None,
    };
    let assertion = form.get("client_assertion").filter(|_| form.get("client_assertion_type") == Some(BEARER));
    if form.get("client_assertion").is_some() != assertion.is_some() {
        return Err(UNKNOWN);
    }
    match (basic, form.get("client_secret"), assertion) {
        (Some((id, secret)), None, None) if secret.is_empty() => Ok(Proof::Nothing(id)),
        (Some((id, secret)), None, None) => Ok(Proof::Secret(id, secret)),
        (None, Some(secret), None) => {
            let id = form.get("client_id").ok_or(UNKNOWN)?;
            Ok(Proof::Secret(id.to_owned(), secret.to_owned()))
        }
        (None, None, Some(jwt)) => Ok(Proof::Assertion(jwt.to_owned())),
        (None, None, None) => Ok(Proof::Nothing(form.get("client_id").ok_or(UNKNOWN)?.to_owned())),
        _ => Err(twice),
    }
}

/// Both halves were encoded as in a form before they were joined (RFC 6749, section 2.3.1).
fn read_basic(value: &str) -> Option<(String, String)> {
    let (scheme, encoded) = value.split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let pair = String::from_utf8(STANDARD.decode(encoded.trim()).ok()?).ok()?;
    let (id, secret) = pair.split_once(':')?;
    let decode = |text: &str| {
        let text = format!("x={text}").replace('&', "%26");
        form_urlencoded::parse(text.as_bytes()).next().map(|(_, value)| value.into_owned())
    };
    Some((decode(id)?, decode(secret)?))
}

/// Checks an assertion (RFC 7523, section 3): signed by the client, for this server, short, and used once.
async fn check_assertion(shared: &Shared, client: &Client, jwt: &str, keys: &JwkSet) -> Result<bool, Refused> {
    let Ok(jws) = Jws::read(jwt) else { return Ok(false) };
    let Some(claims) = keys.fitting(&jws).find_map(|key| jws.verify(key).ok()) else { return Ok(false) };
    let now = shared.now();
    let ours = |aud: &&str| *aud == shared.config.issuer || *aud == shared.url("token");
    let fits = claims.text("iss") == Some(&client.id)
        && claims.text("sub") == Some(&client.id)
        && claims.texts("aud").is_some_and(|all| all.len() == 1 && all.iter().all(ours))
        && claims.check_times(now, LEEWAY_S).is_ok()
        && claims.time("exp").is_some_and(|exp| exp <= now + ASSERTION_LIFE.as_secs() + LEEWAY_S);
    let Some(jti) = claims.text("jti").filter(|_| fits) else { return Ok(false) };
    once(shared, &format!("{} {jti}", client.id), claims, now).await
}

/// Notes an id until its token expires; `false`: it was used.
pub(crate) async fn once(shared: &Shared, id: &str, claims: &Claims, now: u64) -> Result<bool, Refused> {
    let life = claims.time("exp").unwrap_or_default().saturating_sub(now) + 2 * LEEWAY_S;
    let name = format!("jti-{}", hash(id));
    Ok(shared.records.create(Space::Replay, &name, &(), Duration::from_secs(life)).await?)
}

/// Reads a JSON body.
pub(crate) fn json_body(incoming: &Incoming) -> Option<serde_json::Map<String, serde_json::Value>> {
    parse_object(&incoming.body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_halves_of_basic_are_decoded() {
        let value = |pair: &str| format!("Basic {}", STANDARD.encode(pair));
        let rows = [
            (value("a%3Ab+c:p%25ss%2Fw%C3%B6rd"), Some(("a:b c", "p%ss/wörd"))),
            (value("id:a&b=c"), Some(("id", "a&b=c"))),
            (value("id:"), Some(("id", ""))),
            (value("id"), None),
            ("Bearer x".to_owned(), None),
            ("Basic !".to_owned(), None),
        ];
        for (value, expected) in rows {
            let read = read_basic(&value);
            assert_eq!(read.as_ref().map(|(id, secret)| (id.as_str(), secret.as_str())), expected, "{value}");
        }
    }
}
