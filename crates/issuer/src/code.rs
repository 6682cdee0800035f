//! Authorization codes: 256 bits, a minute, once.

use crate::answer::Refused;
use crate::audit::Entry;
use crate::client::{Client, hash};
use crate::device_grant;
use crate::limits::CODE_LIFE;
use crate::params::with_query;
use crate::person::Person;
use crate::records::{Away, Space};
use crate::shared::Shared;
use crate::tokens::{self, Grant};
use crate::transaction::Transaction;
use crate::upstream::UpstreamTokens;
use linchpin_oauth::{CodeChallenge, random_text};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::net::IpAddr;

/// What a code stands for. The record stays after its use until it expires, so that a second use is seen.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Code {
    grant: Grant,
    redirect_uri: String,
    challenge: String,
    /// The key that it is for.
    #[serde(default)]
    key: Option<String>,
    /// The name of the family that its first use creates.
    family: String,
    state: State,
    expires: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum State {
    Fresh,
    Used,
    /// Used again, or by somebody else.
    Spent,
}

/// Creates a code, and returns the address that takes it to the client. A device that waits gets none: it asks.
pub(crate) async fn issue(
    shared: &Shared,
    transaction: &Transaction,
    person: Person,
    upstream: Option<UpstreamTokens>,
    from: Option<IpAddr>,
) -> Result<String, Away> {
    if let Some(device) = &transaction.device {
        let in_time = device_grant::approve(shared, &device.name, person, upstream, from).await?;
        return Ok(format!("{}?done={}", shared.url("device"), if in_time { "yes" } else { "late" }));
    }
    let client = &transaction.client;
    let scopes = shared.limit(&transaction.scopes(), &person);
    let (principal, family) = (person.principal(), tokens::new_family(&person, &client.id));
    let grant = Grant {
        client: client.id.clone(),
        resource: transaction.resource.clone(),
        scopes: scopes.to_string(),
        refresh: client.refresh,
        person,
        upstream,
        key: None,
        source: shared.config.login.source(),
    };
    let code = Code {
        grant,
        redirect_uri: transaction.redirect_uri.clone(),
        challenge: transaction.challenge.clone(),
        key: transaction.key.clone(),
        family,
        state: State::Fresh,
        expires: shared.now() + CODE_LIFE.as_secs(),
    };
    let text = random_text();
    shared.records.create(Space::Code, &hash(&text), &code, CODE_LIFE).await?;
    let item = code.grant.scopes.as_str();
    let entry = Entry::new("consent", "granted", from);
    Entry { principal: &principal, client: &client.id, item, token: &text, ..entry }.write();
    let mut params = vec![("code", text.as_str())];
    params.extend(transaction.state.as_deref().map(|state| ("state", state)));
    params.push(("iss", &shared.config.issuer));
    Ok(with_query(&transaction.redirect_uri, &params))
}

/// What a client sends with a code.
pub(crate) struct Redemption<'a> {
    pub(crate) code: &'a str,
    pub(crate) verifier: Option<&'a str>,
    pub(crate) redirect_uri: Option<&'a str>,
    pub(crate) resource: Vec<&'a str>,
    /// The key that the request proves to have.
    pub(crate) key: Option<String>,
}

/// Redeems a code for the first tokens of a family.
pub(crate) async fn redeem(
    shared: &Shared,
    client: &Client,
    asked: &Redemption<'_>,
    from: Option<IpAddr>,
) -> Result<Value, Refused> {
    const NO: Refused = Refused::new("invalid_grant", "the code is not valid");
    let name = hash(asked.code);
    let Some((mut code, rev)) = shared.records.get::<Code>(Space::Code, &name).await? else { return Err(NO) };
    if code.expires <= shared.now() {
        return Err(NO);
    }
    let principal = code.grant.person.principal();
    let audit = |verdict| {
        Entry { principal: &principal, client: &client.id, token: asked.code, ..Entry::new("code", verdict, from) }
            .write();
    };
    let right = is_right(shared, client, &code, asked);
    if code.state != State::Fresh {
        // Somebody else has the code: what it gave ends.
        audit("used twice");
        spend(shared, &name, code).await?;
        return Err(NO);
    }
    code.state = if right { State::Used } else { State::Spent };
    let won = shared.records.replace(Space::Code, &name, &code, rev, CODE_LIFE).await?.is_some();
    match (won, right) {
        (true, true) => {}
        (true, false) => {
            audit("refused");
            return Err(Refused::new("invalid_grant", "the code is not valid for this request"));
        }
        (false, _) => {
            audit("used twice");
            spend(shared, &name, code).await?;
            return Err(NO);
        }
    }
    let grant = Grant { key: asked.key.clone(), ..code.grant.clone() };
    let answer = tokens::start(shared, &code.family, grant).await?;
    // A second use meanwhile found no family to end.
    let now = shared.records.get::<Code>(Space::Code, &name).await?;
    if now.is_none_or(|(code, _)| code.state != State::Used) {
        tokens::end(shared, &code.family).await?;
        return Err(NO);
    }
    audit("redeemed");
    Ok(answer)
}

/// Ends what a code gave, and marks it, so that a first use which is under way ends too.
async fn spend(shared: &Shared, name: &str, mut code: Code) -> Result<(), Away> {
    code.state = State::Spent;
    shared.records.put(Space::Code, name, &code, CODE_LIFE).await?;
    tokens::end(shared, &code.family).await.map(drop)
}

/// Whether a redemption is by the client, to the address, for the resource and with the verifier of the code.
fn is_right(shared: &Shared, client: &Client, code: &Code, asked: &Redemption<'_>) -> bool {
    let verified = || {
        let challenge = CodeChallenge::parse(&code.challenge);
        challenge.zip(asked.verifier).is_some_and(|(challenge, verifier)| challenge.is_of(verifier))
    };
    let same_resource = asked.resource.is_empty()
        || shared.resource(asked.resource.iter().copied()) == Some(code.grant.resource.as_str());
    code.grant.client == client.id
        && asked.redirect_uri.is_none_or(|uri| uri == code.redirect_uri)
        && same_resource
        && (code.key.is_none() || code.key == asked.key)
        && verified()
}
