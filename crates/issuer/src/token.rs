//! The token endpoint: codes, refresh tokens, devices, and clients that act for themselves.

use crate::answer::{Answer, Refused, json_answer};
use crate::audit::Entry;
use crate::authenticate::{authenticate, is_basic};
use crate::client::{Client, ClientAuth, both};
use crate::code::{self, Redemption};
use crate::device_grant;
use crate::dpop;
use crate::jwt_bearer;
use crate::limits::{FAILURES_PER_ADDRESS, TOKENS_PER_ADDRESS, TOKENS_PER_CLIENT};
use crate::params::Params;
use crate::person::Person;
use crate::records::{Away, Space};
use crate::request::Incoming;
use crate::shared::{Login, Shared};
use crate::tokens::{self, Family, Found, Subject};
use crate::upstream::{Upstream, UpstreamError};
use http::StatusCode;
use linchpin_core::Principal;
use linchpin_oauth::{Scopes, Secret};
use linchpin_store::{Claim, Rev};
use serde::Deserialize;
use serde_json::Value;
use std::time::Duration;

/// Answers a token request.
pub(crate) async fn token(shared: &Shared, incoming: &Incoming) -> Answer {
    let address = incoming.address();
    if let Err(after) = shared.records.take(TOKENS_PER_ADDRESS, &address).await {
        return Refused::too_many(after).answer(false);
    }
    match grant(shared, incoming).await {
        Ok(answer) => json_answer(StatusCode::OK, &answer),
        Err(refused) => {
            // A device asks until somebody has answered.
            if refused.error == "authorization_pending" {
                return refused.answer(false);
            }
            let failed = !matches!(refused.error, "temporarily_unavailable" | "slow_down");
            if failed && let Err(after) = shared.records.take(FAILURES_PER_ADDRESS, &address).await {
                return Refused::too_many(after).answer(false);
            }
            Entry { item: refused.error, ..Entry::new("token", "refused", incoming.from) }.write();
            refused.answer(is_basic(incoming))
        }
    }
}

async fn grant(shared: &Shared, incoming: &Incoming) -> Result<Value, Refused> {
    let form = incoming.form().map_err(|why| Refused::new("invalid_request", why.0))?;
    // Workloads have no client.
    if form.get("grant_type") == Some(jwt_bearer::GRANT) {
        let key = dpop::key(shared, incoming).await?;
        return jwt_bearer::grant(shared, incoming, &form, key.as_deref()).await;
    }
    let client = authenticate(shared, incoming, &form).await?;
    // A public client is whoever says its name, and all who use it: only their addresses are counted.
    if client.auth != ClientAuth::None
        && let Err(after) = shared.records.take(TOKENS_PER_CLIENT, &client.id).await
    {
        return Err(Refused::too_many(after));
    }
    let key = dpop::key(shared, incoming).await?;
    match form.get("grant_type") {
        Some("authorization_code") => {
            let asked = Redemption {
                code: form.get("code").ok_or(Refused::new("invalid_request", "code is missing"))?,
                verifier: form.get("code_verifier"),
                redirect_uri: form.get("redirect_uri"),
                resource: form.all("resource").collect(),
                key,
            };
            code::redeem(shared, &client, &asked, incoming.from).await
        }
        Some("refresh_token") => refresh(shared, incoming, &client, &form, key.as_deref()).await,
        Some("client_credentials") => for_itself(shared, incoming, &client, &form, key.as_deref()).await,
        Some(device_grant::GRANT) if shared.config.device => {
            let code = form.get("device_code").ok_or(Refused::new("invalid_request", "device_code is missing"))?;
            device_grant::poll(shared, &client, code, key, incoming.from).await
        }
        Some(_) => Err(Refused::new("unsupported_grant_type", "this grant_type is not supported")),
        None => Err(Refused::new("invalid_request", "grant_type is missing")),
    }
}

/// A client without a user: confidential, and registered for it.
async fn for_itself(
    shared: &Shared,
    incoming: &Incoming,
    client: &Client,
    form: &Params,
    key: Option<&str>,
) -> Result<Value, Refused> {
    let no = Refused::new("unauthorized_client", "the client may not act for itself");
    let Some(allowed) = client.own_scopes.as_ref().filter(|_| client.auth != ClientAuth::None) else {
        return Err(no);
    };
    let resource = target(shared, form)?;
    let scopes = match form.get("scope").map(Scopes::parse) {
        None => allowed.iter().collect(),
        Some(asked) => match both(&asked, allowed) {
            granted if granted == asked => granted,
            _ => return Err(Refused::new("invalid_scope", "the client may not have these scopes")),
        },
    };
    let principal = format!("{}#client:{}", shared.config.issuer, client.id);
    let mark = tokens::mark_of_one(Some(client));
    let subject = Subject { principal: &principal, client: &client.id, resource, scopes: &scopes, mark, key };
    let answer = tokens::answer(shared, &subject, None).await?;
    Entry { principal: &principal, client: &client.id, ..Entry::new("token", "issued", incoming.from) }.write();
    Ok(answer)
}

fn target<'a>(shared: &'a Shared, form: &Params) -> Result<&'a str, Refused> {
    let resource = shared.resource(form.all("resource"));
    resource.ok_or(Refused::new("invalid_target", "resource must be one that this server is for"))
}

/// Rotates a refresh token.
async fn refresh(
    shared: &Shared,
    incoming: &Incoming,
    client: &Client,
    form: &Params,
    key: Option<&str>,
) -> Result<Value, Refused> {
    const NO: Refused = Refused::new("invalid_grant", "the refresh token is not valid");
    let token = form.get("refresh_token").ok_or(Refused::new("invalid_request", "refresh_token is missing"))?;
    let audit = |verdict, principal: &str| {
        Entry { principal, client: &client.id, token, ..Entry::new("refresh", verdict, incoming.from) }.write();
    };
    // Somebody else may rotate it meanwhile: then it is looked up again, and gets their answer.
    for _ in 0..RACES_MAX {
        let (family, rev) = match tokens::find(shared, token, &client.id).await? {
            Found::Current(family, _) if !family.grant.is_open_to(key) => return Err(NO),
            Found::Again(_, grant) if !grant.is_open_to(key) => return Err(NO),
            Found::Current(family, rev) => (*family, rev),
            Found::Again(answer, _) => {
                audit("repeated", "");
                return Ok(answer);
            }
            Found::Reused => {
                audit("reused", "");
                end(shared, tokens::family_of(token).unwrap_or_default()).await?;
                return Err(NO);
            }
            Found::Unknown => return Err(NO),
        };
        let principal = family.grant.person.principal();
        let named = form.all("resource").collect::<Vec<_>>();
        if !named.is_empty() && shared.resource(named.into_iter()) != Some(family.grant.resource.as_str()) {
            return Err(Refused::new("invalid_target", "the refresh token is for another resource"));
        }
        let granted = Scopes::parse(&family.grant.scopes);
        let scopes = match form.get("scope").map(Scopes::parse) {
            Some(asked) if !granted.covers(&asked) => {
                return Err(Refused::new("invalid_scope", "scopes may become fewer, not more"));
            }
            Some(asked) => asked,
            None => granted,
        };
        let (family, rev) = match still_there(shared, tokens::family_of(token).unwrap_or_default(), family, rev).await?
        {
            Still::Here(family, rev) => (*family, rev),
            Still::Gone => {
                audit("person gone", &principal);
                end(shared, tokens::family_of(token).unwrap_or_default()).await?;
                return Err(NO);
            }
            Still::Changed => continue,
        };
        let scopes = shared.limit(&scopes, &family.grant.person);
        if let Some(answer) = tokens::rotate(shared, token, family, rev, &scopes, key).await? {
            audit("rotated", &principal);
            return Ok(answer);
        }
    }
    Err(Refused::away())
}

const RACES_MAX: usize = 8;

enum Still {
    Here(Box<Family>, Rev),
    Gone,
    /// Somebody else asked meanwhile.
    Changed,
}

/// Asks whether the user may still come in: the users file, or the provider, under a lease, because its refresh tokens may be
/// good once only.
async fn still_there(shared: &Shared, name: &str, mut family: Family, rev: Rev) -> Result<Still, Refused> {
    // Users log in elsewhere now: nobody can say whether this one still may, and a provider's tokens are for itself only.
    if family.grant.source != shared.config.login.source() {
        return Ok(Still::Gone);
    }
    if let Some(file) = shared.config.users_file() {
        let Some(now) = file.users().person(&family.grant.person.subject, &family.grant.person.issuer) else {
            return Ok(Still::Gone);
        };
        if !shared.admits(&now) {
            return Ok(Still::Gone);
        }
        family.grant.person = now;
        return Ok(Still::Here(Box::new(family), rev));
    }
    let (Login::Upstream(upstream), true) = (&shared.config.login, family.grant.upstream.is_some()) else {
        return Ok(Still::Here(Box::new(family), rev));
    };
    let lease = format!("upstream/{name}");
    let owner = linchpin_oauth::random_id();
    let claim = shared.records.store().lease().claim(&lease, &owner, LEASE).await;
    let Ok(claim) = claim else { return Err(Refused::away()) };
    let Claim::Held(fence) = claim else {
        // Whoever holds it answers for us too.
        tokio::time::sleep(Duration::from_millis(200)).await;
        return Ok(Still::Changed);
    };
    let still = ask_upstream(shared, upstream, name, family, rev).await;
    let _ = shared.records.store().lease().release(&lease, fence).await;
    still
}

const LEASE: Duration = Duration::from_secs(30);

/// Asks the provider, with its tokens as they are now: whoever had the lease before may have used those that were read.
async fn ask_upstream(
    shared: &Shared,
    upstream: &Upstream,
    name: &str,
    mut family: Family,
    rev: Rev,
) -> Result<Still, Refused> {
    let now = shared.records.get::<Family>(Space::Family, name).await?;
    if now.is_none_or(|(_, now)| now != rev) {
        return Ok(Still::Changed);
    }
    let Some(held) = family.grant.upstream.clone() else { return Ok(Still::Here(Box::new(family), rev)) };
    match upstream.still(&family.grant.person, &held, shared.needs_orgs()).await {
        Err(UpstreamError::Away) => Err(Refused::away()),
        Err(error @ UpstreamError::Refused(_)) => {
            tracing::info!(%error, "the provider refused a refresh");
            Ok(Still::Gone)
        }
        Ok((person, _)) if !shared.admits(&person) => Ok(Still::Gone),
        Ok((person, tokens)) => {
            family.grant.person = person;
            family.grant.upstream = Some(tokens);
            // Kept before anything else: a provider's refresh token that was used is gone.
            Ok(match tokens::keep(shared, name, &family, rev).await? {
                Some(rev) => Still::Here(Box::new(family), rev),
                None => Still::Changed,
            })
        }
    }
}

/// The provider's access token of whoever has this access token of ours. One that ends within a minute is refreshed first.
pub(crate) async fn upstream_token(shared: &Shared, principal: &Principal) -> Result<Secret, UpstreamError> {
    const NO_LOGIN: UpstreamError = UpstreamError::Refused("the caller did not log in at the provider of this server");
    const ENDED: UpstreamError = UpstreamError::Refused("the login at the provider has ended");
    #[derive(Deserialize)]
    struct OfToken {
        iss: String,
        family: String,
    }
    let claims: OfToken = principal.claims().map_err(|_| NO_LOGIN)?;
    let (Some(issuer), Some(client)) = (principal.issuer(), principal.client()) else { return Err(NO_LOGIN) };
    if claims.iss != shared.config.issuer {
        return Err(NO_LOGIN);
    }
    let person = Person::new(issuer, principal.subject());
    for _ in 0..RACES_MAX {
        let found =
            tokens::with_mark(shared, &person, client, &claims.family).await.map_err(|Away| UpstreamError::Away)?;
        let (name, family, rev) = found.ok_or(ENDED)?;
        let is_ours = family.grant.source == shared.config.login.source();
        let held = family.grant.upstream.as_ref().filter(|_| is_ours).ok_or(NO_LOGIN)?;
        if held.are_fresh() {
            return Ok(held.access.clone());
        }
        match still_there(shared, &name, family, rev).await.map_err(|_| UpstreamError::Away)? {
            Still::Here(family, _) => return family.grant.upstream.map(|held| held.access).ok_or(NO_LOGIN),
            Still::Gone => {
                end(shared, &name).await.map_err(|_| UpstreamError::Away)?;
                return Err(ENDED);
            }
            Still::Changed => {}
        }
    }
    Err(UpstreamError::Away)
}

/// Ends a family, at the provider too.
pub(crate) async fn end(shared: &Shared, name: &str) -> Result<(), Refused> {
    let family = tokens::end(shared, name).await?;
    let login = &shared.config.login;
    let held = family.filter(|family| family.grant.source == login.source()).and_then(|family| family.grant.upstream);
    if let (Login::Upstream(upstream), Some(held)) = (login, held) {
        upstream.revoke(&held).await;
    }
    Ok(())
}
