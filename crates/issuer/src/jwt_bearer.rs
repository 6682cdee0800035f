//! Signed statements of others as grants (RFC 7523, section 2.1): ID-JAG of an enterprise's provider, and tokens of workloads.
//!
//! Both give an access token for a quarter of an hour and no refresh token: the statement's issuer is asked again by then.

use crate::answer::Refused;
use crate::audit::Entry;
use crate::authenticate::{authenticate, once};
use crate::client::ClientAuth;
use crate::limits::{ASSERTION_LIFE, TOKENS_PER_CLIENT, WORKLOAD_LIFE};
use crate::params::Params;
use crate::person::Person;
use crate::request::Incoming;
use crate::shared::Shared;
use crate::tokens::{self, Subject};
use linchpin_oauth::{Claims, Jws, Scopes};
use serde_json::Value;

/// The name of the grant.
pub(crate) const GRANT: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";
/// The name of the profile of it that enterprises use.
pub(crate) const ID_JAG_PROFILE: &str = "urn:ietf:params:oauth:grant-profile:id-jag";
/// What an ID-JAG says that it is.
const ID_JAG: &str = "oauth-id-jag+jwt";

const LEEWAY_S: u64 = 60;
const NO: Refused = Refused::new("invalid_grant", "the assertion is not valid here");

/// Answers the grant. What is issued is bound to this key.
pub(crate) async fn grant(
    shared: &Shared,
    incoming: &Incoming,
    form: &Params,
    key: Option<&str>,
) -> Result<Value, Refused> {
    let config = &shared.config;
    if config.enterprises.is_empty() && config.workloads.is_empty() {
        return Err(Refused::new("unsupported_grant_type", "this grant_type is not supported"));
    }
    let assertion = form.get("assertion").ok_or(Refused::new("invalid_request", "assertion is missing"))?;
    let jws = Jws::read(assertion).map_err(|_| NO)?;
    match jws.typ() {
        Some(ID_JAG) => enterprise(shared, incoming, form, &jws, key).await,
        None | Some("JWT") => workload(shared, incoming, form, &jws, key).await,
        Some(_) => Err(NO),
    }
}

/// A user of an enterprise's provider, for a client that shows who it is.
async fn enterprise(
    shared: &Shared,
    incoming: &Incoming,
    form: &Params,
    jws: &Jws<'_>,
    key: Option<&str>,
) -> Result<Value, Refused> {
    let client = authenticate(shared, incoming, form).await?;
    if client.auth == ClientAuth::None {
        return Err(Refused::new("unauthorized_client", "a public client may not bring assertions"));
    }
    count(shared, &client.id).await?;
    let provider = shared.config.enterprises.iter().find(|one| jws.unverified_issuer() == Some(one.keys.issuer()));
    let keys = &provider.ok_or(NO)?.keys;
    let now = shared.now();
    let claims = keys.verify(jws, now).await?.ok_or(NO)?;
    let audiences = claims.texts("aud").unwrap_or_default();
    let fits = audiences == [shared.config.issuer.as_str()]
        && claims.text("client_id") == Some(&client.id)
        && is_short(&claims, now, ASSERTION_LIFE.as_secs());
    let (Some(jti), Some(subject), true) = (claims.text("jti"), claims.text("sub"), fits) else { return Err(NO) };
    let named = claims.texts("resource").unwrap_or_default();
    // What it does not name it is for only if there is nothing else.
    let resource = match claims.get("resource") {
        Some(_) if named.is_empty() => None,
        _ => shared.resource(named.into_iter()),
    };
    let resource = resource.ok_or(NO)?;
    let asked: Vec<&str> = form.all("resource").collect();
    if !asked.is_empty() && shared.resource(asked.into_iter()) != Some(resource) {
        return Err(Refused::new("invalid_target", "the assertion is for another resource"));
    }
    let person = Person::new(keys.issuer(), subject).with(|person| {
        person.email = claims.text("email").map(str::to_owned);
        // The operator trusts the provider with its users.
        person.email_verified = true;
        person.groups = claims.texts("groups").unwrap_or_default().into_iter().map(str::to_owned).collect();
    });
    if !shared.admits(&person) {
        return Err(NO);
    }
    let asserted = match claims.text("scope") {
        Some(text) => {
            shared.scopes(Some(text)).ok_or(Refused::new("invalid_scope", "none of the scopes exists here"))?
        }
        None => Scopes::new(),
    };
    let scopes = match form.get("scope").map(Scopes::parse) {
        Some(asked) => asked.iter().filter(|scope| asserted.has(scope)).collect(),
        None => asserted,
    };
    let scopes = shared.limit(&scopes, &person);
    if !once(shared, &format!("id-jag {} {jti}", keys.issuer()), &claims, now).await? {
        return Err(NO);
    }
    let principal = person.principal();
    let mark = tokens::mark_of_one(Some(&client));
    let subject = Subject { principal: &principal, client: &client.id, resource, scopes: &scopes, mark, key };
    issue(shared, incoming, &subject).await
}

/// A program with a token of its platform.
async fn workload(
    shared: &Shared,
    incoming: &Incoming,
    form: &Params,
    jws: &Jws<'_>,
    key: Option<&str>,
) -> Result<Value, Refused> {
    let issuer = jws.unverified_issuer().ok_or(NO)?;
    let (now, token_endpoint) = (shared.now(), shared.url("token"));
    let mut found = None;
    for rule in shared.config.workloads.iter().filter(|rule| rule.keys.issuer() == issuer) {
        let Some(claims) = rule.keys.verify(jws, now).await? else { continue };
        if rule.fits(&claims) {
            found = Some((rule, claims));
            break;
        }
    }
    let (rule, claims) = found.ok_or(NO)?;
    let ours = |aud: &&str| *aud == shared.config.issuer || *aud == token_endpoint;
    let audiences = claims.texts("aud").unwrap_or_default();
    let fits = !audiences.is_empty() && audiences.iter().all(ours) && is_short(&claims, now, WORKLOAD_LIFE.as_secs());
    let (Some(jti), Some(sub), true) = (claims.text("jti"), claims.text("sub"), fits) else { return Err(NO) };
    let principal = format!("{issuer}#{sub}");
    count(shared, &principal).await?;
    let resource = shared.resource(form.all("resource"));
    let resource = resource.ok_or(Refused::new("invalid_target", "resource must be one that this server is for"))?;
    let allowed: Scopes = rule.scopes.iter().collect();
    let scopes = match form.get("scope").map(Scopes::parse) {
        Some(asked) if !allowed.covers(&asked) => {
            return Err(Refused::new("invalid_scope", "the workload may not have these scopes"));
        }
        Some(asked) => asked,
        None => allowed,
    };
    if !once(shared, &format!("workload {issuer} {jti}"), &claims, now).await? {
        return Err(NO);
    }
    // There is no client: the program is its own.
    let mark = tokens::mark_of_one(None);
    let subject = Subject { principal: &principal, client: sub, resource, scopes: &scopes, mark, key };
    issue(shared, incoming, &subject).await
}

async fn issue(shared: &Shared, incoming: &Incoming, subject: &Subject<'_>) -> Result<Value, Refused> {
    let answer = tokens::answer(shared, subject, None).await?;
    let (principal, client, item) = (subject.principal, subject.client, subject.resource);
    Entry { principal, client, item, ..Entry::new("assertion", "issued", incoming.from) }.write();
    Ok(answer)
}

async fn count(shared: &Shared, who: &str) -> Result<(), Refused> {
    shared.records.take(TOKENS_PER_CLIENT, who).await.map_err(Refused::too_many)
}

/// Whether a statement is valid now, and not for longer than this from when it was made.
fn is_short(claims: &Claims, now: u64, life: u64) -> bool {
    let (Some(from), Some(until)) = (claims.time("iat"), claims.time("exp")) else { return false };
    claims.check_times(now, LEEWAY_S).is_ok() && until.saturating_sub(from) <= life && until <= now + life + LEEWAY_S
}
