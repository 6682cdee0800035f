//! The authorization endpoint: from a client's request to a question for a user.
//!
//! Until the client and its redirect URI are known to be good, an error is a page; after that it goes to the client.

use crate::answer::{Answer, Refused, redirect};
use crate::audit::Entry;
use crate::client::{Client, hash};
use crate::dpop::is_thumbprint;
use crate::limits::{PAGES, Rate, TRANSACTION_LIFE, TRANSACTIONS_MAX};
use crate::params::Params;
use crate::records::Space;
use crate::request::Incoming;
use crate::shared::{Login, NoClient, Shared};
use crate::transaction::{BROWSER, Step, Transaction, away, error_url, page};
use crate::users::{Source, terminal_code};
use http::{Method, StatusCode};
use linchpin_oauth::{CodeChallenge, random_text};

/// Answers a request of a client.
pub(crate) async fn authorize(shared: &Shared, incoming: &Incoming) -> Answer {
    let bad = |text: &str| page(shared, StatusCode::BAD_REQUEST, "This sign-in cannot start", text);
    if let Err(answer) = count(shared, incoming).await {
        return answer;
    }
    let params = if incoming.method == Method::POST { incoming.form() } else { incoming.query() };
    let params = match params {
        Ok(params) => params,
        Err(why) => return bad(&format!("The program sent something that cannot be read: {}.", why.0)),
    };
    let Some(id) = params.get("client_id") else { return bad("The program did not say which one it is.") };
    let client = match shared.client(id).await {
        Ok(client) => client,
        Err(NoClient::Away) => return away(shared),
        Err(NoClient::Unknown(why)) => {
            Entry { client: id, ..Entry::new("authorize", "client unknown", incoming.from) }.write();
            return bad(&format!("The program cannot be verified: {why}."));
        }
    };
    let Some(to) = redirect_uri(&client, &params) else {
        Entry { client: id, ..Entry::new("authorize", "redirect URI refused", incoming.from) }.write();
        return bad("The program wants the answer at an address that it did not register.");
    };
    let state = params.get("state");
    match start(shared, incoming, client, &params, &to).await {
        Ok(answer) => answer,
        Err(refused) if refused.error == "temporarily_unavailable" => away(shared),
        Err(refused) => redirect(&error_url(shared, &to, state, refused.error, refused.description)),
    }
}

/// Where the answer goes: to a registered address. A client that has only one need not say it.
fn redirect_uri(client: &Client, params: &Params) -> Option<String> {
    match (params.get("redirect_uri"), client.redirect_uris.as_slice()) {
        (Some(uri), _) if client.redirects_to(uri) => Some(uri.to_owned()),
        (None, [only]) => Some(only.clone()),
        _ => None,
    }
}

/// Checks the request, and starts a transaction.
async fn start(
    shared: &Shared,
    incoming: &Incoming,
    client: Client,
    params: &Params,
    to: &str,
) -> Result<Answer, Refused> {
    let wrong = |description| Refused::new("invalid_request", description);
    if params.get("request").is_some() || params.get("request_uri").is_some() {
        return Err(Refused::new("request_not_supported", "request objects are not supported"));
    }
    if params.get("response_type") != Some("code") {
        return Err(Refused::new("unsupported_response_type", "response_type must be code"));
    }
    if params.get("response_mode").is_some_and(|mode| mode != "query") {
        return Err(wrong("response_mode must be query"));
    }
    if params.get("prompt") == Some("none") {
        return Err(Refused::new("interaction_required", "a user is always asked"));
    }
    // Without a method the challenge is the verifier itself (RFC 7636, section 4.3), which is refused.
    let challenge = params.get("code_challenge").ok_or(wrong("code_challenge is missing: PKCE is required"))?;
    if params.get("code_challenge_method") != Some("S256") || CodeChallenge::parse(challenge).is_none() {
        return Err(wrong("code_challenge_method must be S256"));
    }
    let resource = shared.resource(params.all("resource"));
    let resource = resource.ok_or(Refused::new("invalid_target", "resource must be one that this server is for"))?;
    let scopes = shared.scopes(params.get("scope"));
    let scopes = scopes.ok_or(Refused::new("invalid_scope", "none of the scopes exists here"))?;
    let key = params.get("dpop_jkt");
    if key.is_some_and(|key| !is_thumbprint(key)) {
        return Err(wrong("dpop_jkt must be the thumbprint of a key"));
    }
    let all = Rate { name: "transactions", count: TRANSACTIONS_MAX as u32, window: TRANSACTION_LIFE };
    if shared.records.take(all, "all").await.is_err() {
        return Err(Refused::away());
    }
    let cookies = shared.config.cookies;
    let known = cookies.get(&incoming.headers, BROWSER).map(str::to_owned);
    let browser = known.clone().unwrap_or_else(random_text);
    let mut transaction = Transaction {
        redirect_uri: to.to_owned(),
        state: params.get("state").map(str::to_owned),
        challenge: challenge.to_owned(),
        key: key.map(str::to_owned),
        resource: resource.to_owned(),
        scopes: scopes.to_string(),
        browser: hash(&browser),
        user: None,
        code: None,
        tries: 0,
        step: Step::Asked,
        approval: None,
        leg: None,
        device: None,
        client,
    };
    let next = prepare(shared, incoming, &mut transaction).await?;
    let name = random_text();
    shared.records.create(Space::Transaction, &name, &transaction, TRANSACTION_LIFE).await?;
    let mut answer = redirect(&format!("{}?t={name}", shared.url(next)));
    if known.is_none() {
        cookies.set(&mut answer, BROWSER, &browser, None);
    }
    Ok(answer)
}

/// Finds out what the user has to do first, and returns the page for it.
pub(crate) async fn prepare(
    shared: &Shared,
    incoming: &Incoming,
    transaction: &mut Transaction,
) -> Result<&'static str, Refused> {
    match &shared.config.login {
        Login::Nobody => Err(Refused::new("unauthorized_client", "no person can sign in here")),
        Login::Upstream(_) => Ok("consent"),
        Login::Users(users) => match &users.0 {
            Source::Once(announce) => {
                let code = terminal_code();
                let scopes = transaction.scopes().to_string();
                let wish = if scopes.is_empty() { "access".to_owned() } else { scopes };
                announce(&format!("{} asks for {wish}. Code: {}-{}", transaction.client.name, &code[..4], &code[4..]));
                transaction.code = Some(hash(&code));
                Ok("consent")
            }
            Source::File(_) => {
                transaction.user = crate::session::logged_in(shared, incoming).await?;
                Ok(if transaction.user.is_some() { "consent" } else { "login" })
            }
        },
    }
}

/// Counts a page for this address.
pub(crate) async fn count(shared: &Shared, incoming: &Incoming) -> Result<(), Answer> {
    let text = "Too many sign-ins come from your address. Wait a minute, then start again.";
    let counted = shared.records.take(PAGES, &incoming.address()).await;
    counted.map_err(|_| page(shared, StatusCode::TOO_MANY_REQUESTS, "Too many requests", text))
}
