//! Access tokens (RFC 9068), and families of refresh tokens.
//!
//! A refresh token is `<family>.<256 random bits>`: it names the record that one compare-and-swap rotates.

use crate::answer::Refused;
use crate::client::{Client, hash};
use crate::limits::{FAMILIES_MAX, FAMILY_IDLE, FAMILY_LIFE, REFRESH_GRACE};
use crate::person::Person;
use crate::records::{Away, Records, Space};
use crate::shared::Shared;
use crate::upstream::UpstreamTokens;
use linchpin_oauth::{Scopes, random_id, random_text};
use linchpin_store::Rev;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::time::Duration;

/// What a user gave a client: everything that its tokens are made from.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Grant {
    pub(crate) client: String,
    pub(crate) person: Person,
    pub(crate) resource: String,
    pub(crate) scopes: String,
    pub(crate) refresh: bool,
    pub(crate) upstream: Option<UpstreamTokens>,
    /// The thumbprint of the key that its tokens are bound to.
    #[serde(default)]
    pub(crate) key: Option<String>,
    /// Where the user logged in: see [`Login::source`](crate::shared::Login::source).
    #[serde(default)]
    pub(crate) source: String,
}

/// The refresh tokens of one grant.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Family {
    pub(crate) grant: Grant,
    /// The hash of the token that is good.
    current: String,
    /// The token that was used last, and what was answered.
    previous: Option<Previous>,
    pub(crate) since: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Previous {
    hash: String,
    at: u64,
    answer: Value,
}

impl Family {
    /// How long it is kept from now, unless it is used.
    fn life(&self, now: u64) -> Duration {
        let left = Duration::from_secs((self.since + FAMILY_LIFE.as_secs()).saturating_sub(now));
        FAMILY_IDLE.min(left).max(Duration::from_secs(1))
    }
}

/// What a refresh token turned out to be.
pub(crate) enum Found {
    /// The good one: the family, and what it takes to rotate it.
    Current(Box<Family>, Rev),
    /// The one before, within its grace: the same answer again.
    Again(Value, Box<Grant>),
    /// One that was used before: somebody else has it.
    Reused,
    /// None.
    Unknown,
}

impl Grant {
    /// Whether its refresh tokens may be used with this key.
    pub(crate) fn is_open_to(&self, key: Option<&str>) -> bool {
        self.key.is_none() || self.key.as_deref() == key
    }
}

/// Who an access token is for.
pub(crate) struct Subject<'a> {
    pub(crate) principal: &'a str,
    pub(crate) client: &'a str,
    pub(crate) resource: &'a str,
    pub(crate) scopes: &'a Scopes,
    /// By which it is revoked: that of its family, or one of its own.
    pub(crate) mark: String,
    /// The thumbprint of the key that it is bound to.
    pub(crate) key: Option<&'a str>,
}

/// For how many seconds a token is good after clients believe that it is. They count from when they read the answer, and some log
/// in anew when they are refused before they expected it.
const BEYOND_S: u64 = 2;

/// Signs an access token, and makes the answer of the token endpoint.
pub(crate) async fn answer(shared: &Shared, subject: &Subject<'_>, refresh: Option<&str>) -> Result<Value, Refused> {
    let now = shared.now();
    let ring = shared.keys.ring(&shared.records, now).await?;
    let signer = ring.signer(now).ok_or(Away)?;
    let life = shared.config.access_life.as_secs();
    let mut claims = json!({
        "iss": shared.config.issuer,
        "sub": subject.principal,
        "aud": subject.resource,
        "client_id": subject.client,
        "iat": now,
        "exp": now + life + BEYOND_S,
        "jti": random_id(),
        "scope": subject.scopes.to_string(),
        "family": subject.mark,
    });
    if let Some(key) = subject.key {
        claims["cnf"] = json!({ "jkt": key });
    }
    let mut answer = json!({
        "access_token": signer.sign("at+jwt", &claims),
        "token_type": if subject.key.is_some() { "DPoP" } else { "Bearer" },
        "expires_in": life,
        "scope": subject.scopes.to_string(),
    });
    if let Some(refresh) = refresh {
        answer["refresh_token"] = json!(refresh);
    }
    Ok(answer)
}

/// The name of a new family: those of one person and client stand together.
pub(crate) fn new_family(person: &Person, client: &str) -> String {
    format!("{}-{}", &owner(person, client), random_id())
}

fn owner(person: &Person, client: &str) -> String {
    hash(&format!("{} {client}", person.principal()))[..22].to_owned()
}

/// What a family is called in access tokens: who reads one does not learn the name.
pub(crate) fn mark(family: &str) -> String {
    hash(family)[..22].to_owned()
}

/// The mark of a token without a family: its own and, after a dot, that of its client.
pub(crate) fn mark_of_one(client: Option<&Client>) -> String {
    client.map_or_else(random_id, |client| format!("{}.{}", random_id(), client.mark()))
}

/// Creates a family and its first tokens.
pub(crate) async fn start(shared: &Shared, name: &str, grant: Grant) -> Result<Value, Refused> {
    let now = shared.now();
    let token = grant.refresh.then(|| format!("{name}.{}", random_text()));
    let scopes = Scopes::parse(&grant.scopes);
    let principal = grant.person.principal();
    let subject = Subject {
        principal: &principal,
        client: &grant.client,
        resource: &grant.resource,
        scopes: &scopes,
        mark: mark(name),
        key: grant.key.as_deref(),
    };
    let answer = answer(shared, &subject, token.as_deref()).await?;
    let family = Family { current: hash(token.as_deref().unwrap_or_default()), previous: None, since: now, grant };
    // Without refresh tokens a family is kept as long as its only access token, so that it can be revoked.
    let life = if family.grant.refresh { FAMILY_IDLE } else { shared.config.access_life };
    make_room(shared, &family.grant).await?;
    shared.records.create(Space::Family, name, &family, life).await?;
    Ok(answer)
}

/// Ends the oldest families of a user and client when there are too many.
async fn make_room(shared: &Shared, grant: &Grant) -> Result<(), Away> {
    let prefix = format!("{}-", owner(&grant.person, &grant.client));
    let mut all = shared.records.all::<Family>(Space::Family, &prefix, 10 * FAMILIES_MAX).await?;
    all.sort_by_key(|(_, family)| family.since);
    let over = (all.len() + 1).saturating_sub(FAMILIES_MAX);
    for (name, _) in all.drain(..over) {
        end(shared, &name).await?;
    }
    Ok(())
}

/// The family of a user and client that is called so in access tokens.
pub(crate) async fn with_mark(
    shared: &Shared,
    person: &Person,
    client: &str,
    mark_of_it: &str,
) -> Result<Option<(String, Family, Rev)>, Away> {
    let prefix = format!("{}-", owner(person, client));
    let all = shared.records.all::<Family>(Space::Family, &prefix, 10 * FAMILIES_MAX).await?;
    let Some((name, _)) = all.into_iter().find(|(name, _)| mark(name) == mark_of_it) else { return Ok(None) };
    let now = shared.records.get::<Family>(Space::Family, &name).await?;
    Ok(now.map(|(family, rev)| (name, family, rev)))
}

/// Looks a refresh token up.
pub(crate) async fn find(shared: &Shared, token: &str, client: &str) -> Result<Found, Away> {
    let Some(name) = family_of(token) else { return Ok(Found::Unknown) };
    let Some((family, rev)) = shared.records.get::<Family>(Space::Family, name).await? else {
        return Ok(Found::Unknown);
    };
    if family.grant.client != client || !family.grant.refresh {
        return Ok(Found::Unknown);
    }
    let (now, hash) = (shared.now(), hash(token));
    if hash == family.current {
        let alive = now < family.since + FAMILY_LIFE.as_secs();
        return Ok(if alive { Found::Current(Box::new(family), rev) } else { Found::Unknown });
    }
    match family.previous {
        // When the successor was used, it is the previous one itself.
        Some(previous) if previous.hash == hash && now <= previous.at + REFRESH_GRACE.as_secs() => {
            Ok(Found::Again(previous.answer, Box::new(family.grant)))
        }
        _ => Ok(Found::Reused),
    }
}

/// Keeps a family whose provider's tokens have changed; `None` when another request was faster.
pub(crate) async fn keep(shared: &Shared, name: &str, family: &Family, rev: Rev) -> Result<Option<Rev>, Away> {
    shared.records.replace(Space::Family, name, family, rev, family.life(shared.now())).await
}

/// Rotates a family: the answer, or `None` when another request was faster.
pub(crate) async fn rotate(
    shared: &Shared,
    token: &str,
    mut family: Family,
    rev: Rev,
    scopes: &Scopes,
    key: Option<&str>,
) -> Result<Option<Value>, Refused> {
    let Some(name) = family_of(token) else { return Ok(None) };
    let now = shared.now();
    let next = format!("{name}.{}", random_text());
    let principal = family.grant.person.principal();
    let subject = Subject {
        principal: &principal,
        client: &family.grant.client,
        resource: &family.grant.resource,
        scopes,
        mark: mark(name),
        key: family.grant.key.as_deref().or(key),
    };
    let answer = answer(shared, &subject, Some(&next)).await?;
    family.previous = Some(Previous { hash: hash(token), at: now, answer: answer.clone() });
    family.current = hash(&next);
    let won = shared.records.replace(Space::Family, name, &family, rev, family.life(now)).await?;
    Ok(won.map(|_| answer))
}

/// Ends a family: its refresh token now, its access tokens on all nodes within a second.
pub(crate) async fn end(shared: &Shared, name: &str) -> Result<Option<Family>, Away> {
    end_mark(shared, mark(name)).await?;
    let family = shared.records.get::<Family>(Space::Family, name).await?.map(|(family, _)| family);
    shared.records.delete(Space::Family, name).await?;
    Ok(family)
}

/// Ends the access tokens with a mark, on all nodes within a second.
pub(crate) async fn end_mark(shared: &Shared, mark: String) -> Result<(), Away> {
    let life = shared.config.access_life + Duration::from_secs(120);
    shared.records.put(Space::Revoked, &mark, &(), life).await?;
    shared.revoked.add(mark);
    shared.announce_revocation().await;
    Ok(())
}

/// Returns the name of a refresh token's family.
pub(crate) fn family_of(token: &str) -> Option<&str> {
    let (name, secret) = token.split_once('.')?;
    let fits = name.len() == 45 && secret.len() == 43;
    let plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_');
    (fits && plain).then_some(name)
}

/// Finds the family that an access token names by its mark: for revocation, which is rare.
pub(crate) async fn by_mark(
    records: &Records,
    person: &str,
    client: &str,
    wanted: &str,
) -> Result<Option<String>, Away> {
    let owner = hash(&format!("{person} {client}"))[..22].to_owned();
    let all = records.all::<Family>(Space::Family, &format!("{owner}-"), 10 * FAMILIES_MAX).await?;
    Ok(all.into_iter().map(|(name, _)| name).find(|name| mark(name) == wanted))
}
