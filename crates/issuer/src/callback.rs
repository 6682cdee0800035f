//! The way to the provider and back.

use crate::answer::{Answer, html, redirect};
use crate::audit::Entry;
use crate::authorize::count;
use crate::client::hash;
use crate::code;
use crate::pages::problem;
use crate::params::Params;
use crate::request::Incoming;
use crate::shared::{Login, Shared};
use crate::transaction::{Open, Step, StoredLeg, away, expired, foreign, not_allowed, page};
use crate::upstream::{Leg, Return, Upstream, UpstreamError};
use http::StatusCode;
use linchpin_oauth::{Pkce, Secret, random_text};

/// Starts a way to the provider, and returns where the browser goes. The error is a page.
pub(crate) async fn depart(shared: &Shared, upstream: &Upstream, open: &mut Open) -> Result<String, Answer> {
    let pkce = Pkce::generate();
    let leg = StoredLeg {
        // Taken once: another way has another one.
        state: format!("{}.{}", open.name, random_text()),
        verifier: pkce.verifier,
        nonce: random_text(),
    };
    let redirect_uri = shared.url("callback");
    let asked = Leg {
        state: &leg.state,
        challenge: &pkce.challenge,
        nonce: &leg.nonce,
        redirect_uri: &redirect_uri,
        orgs: shared.needs_orgs(),
    };
    let url = upstream.begin(&asked).await.map_err(|error| {
        tracing::warn!(%error, "a login at the provider cannot start");
        not_now(shared, upstream, None)
    })?;
    open.transaction.leg = Some(leg);
    open.save(shared).await?;
    Ok(url)
}

/// The cookie that approval sets for one transaction.
pub(crate) fn approval_cookie(transaction: &str) -> String {
    format!("ok-{}", transaction.get(..8).unwrap_or_default())
}

/// Takes the provider's answer.
pub(crate) async fn callback(shared: &Shared, incoming: &Incoming) -> Answer {
    if let Err(answer) = count(shared, incoming).await {
        return answer;
    }
    let Login::Upstream(upstream) = &shared.config.login else { return expired(shared) };
    let Ok(params) = incoming.query() else { return expired(shared) };
    let state = params.get("state").unwrap_or_default();
    let Some((name, _)) = state.split_once('.') else { return expired(shared) };
    let mut open = match Open::find(shared, incoming, name).await {
        Ok(open) => open,
        Err(answer) => return answer,
    };
    let approval = shared.config.cookies.get(&incoming.headers, &approval_cookie(name)).map(hash).map(Secret::new);
    if approval.is_none() || approval != open.transaction.approval.as_deref().map(Secret::from) {
        Entry { client: &open.transaction.client.id, ..Entry::new("callback", "other browser", incoming.from) }.write();
        return foreign(shared);
    }
    if open.transaction.step != Step::Approved {
        return expired(shared);
    }
    // Taken, whatever comes of it.
    let Some(leg) = open.transaction.leg.take_if(|leg| Secret::new(&*leg.state) == Secret::new(state)) else {
        return expired(shared);
    };
    if let Err(answer) = open.save(shared).await {
        return answer;
    }
    arrive(shared, incoming, upstream, open, &leg, &params).await
}

async fn arrive(
    shared: &Shared,
    incoming: &Incoming,
    upstream: &Upstream,
    mut open: Open,
    leg: &StoredLeg,
    params: &Params,
) -> Answer {
    let again = format!("{}?t={}", shared.url("login"), open.name);
    let Some(code) = params.get("code").filter(|_| params.get("error").is_none()) else {
        let denied = params.get("error") == Some("access_denied");
        if !denied {
            return not_now(shared, upstream, Some(&again));
        }
        open.transaction.step = Step::Answered;
        return match open.save(shared).await {
            Ok(()) => match open.transaction.denied(shared, incoming, "the user said no at the provider").await {
                Ok(to) => redirect(&to),
                Err(_) => away(shared),
            },
            Err(answer) => answer,
        };
    };
    let redirect_uri = shared.url("callback");
    let back = Return {
        code,
        iss: params.get("iss"),
        verifier: leg.verifier.expose(),
        nonce: &leg.nonce,
        redirect_uri: &redirect_uri,
        orgs: shared.needs_orgs(),
        now: shared.now(),
    };
    let (person, tokens) = match upstream.finish(&back).await {
        Ok(found) => found,
        Err(UpstreamError::Away) => return not_now(shared, upstream, Some(&again)),
        Err(error @ UpstreamError::Refused(_)) => {
            tracing::warn!(%error, "a login at the provider failed");
            Entry { client: &open.transaction.client.id, ..Entry::new("login", "refused", incoming.from) }.write();
            let text = "The sign-in at the provider failed, and nothing was kept. Start it again from your program.";
            return page(shared, StatusCode::FORBIDDEN, "You are not signed in", text);
        }
    };
    let principal = person.principal();
    if !shared.admits(&person) {
        Entry { principal: &principal, ..Entry::new("login", "not allowed", incoming.from) }.write();
        upstream.revoke(&tokens).await;
        return not_allowed(shared, person.shown());
    }
    Entry { principal: &principal, ..Entry::new("login", "accepted", incoming.from) }.write();
    open.transaction.step = Step::Answered;
    if let Err(answer) = open.save(shared).await {
        return answer;
    }
    match code::issue(shared, &open.transaction, person, Some(tokens), incoming.from).await {
        Ok(to) => redirect(&to),
        Err(_) => away(shared),
    }
}

fn not_now(shared: &Shared, upstream: &Upstream, again: Option<&str>) -> Answer {
    let text = format!("{} does not answer as it should. Try again in a moment.", upstream.place());
    html(StatusCode::SERVICE_UNAVAILABLE, problem(&shared.config.site, "The provider is away", &text, again))
}
