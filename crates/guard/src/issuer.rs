//! Issuers that are trusted, and their keys.

use crate::clock::Clock;
use crate::fetch::Fetch;
use bytes::Bytes;
use http::header::{ACCEPT, CACHE_CONTROL};
use http::{HeaderMap, Request, Response, StatusCode};
use linchpin_oauth::{AuthorizationServerMetadata, Claims, JwkSet, Secret, Signer};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::watch;

/// An authorization server whose tokens a [`Guard`](crate::Guard) accepts.
///
/// ```
/// use linchpin_guard::{Guard, TrustedIssuer};
///
/// let entra = TrustedIssuer::new("https://login.microsoftonline.com/11111111-2222-3333-4444-555555555555/v2.0")
///     .audience("api://files")
///     .scopes_from(|claims| claims.texts("roles").unwrap_or_default().into_iter().map(str::to_owned).collect());
/// let guard = Guard::new("https://mcp.example.com/mcp").issuer(entra);
/// ```
#[derive(Clone)]
pub struct TrustedIssuer {
    pub(crate) url: String,
    pub(crate) audiences: Vec<String>,
    pub(crate) audience_claim: Option<String>,
    pub(crate) scopes_from: Option<ScopesFrom>,
    pub(crate) strict_typ: bool,
    pub(crate) principal_in_subject: bool,
    pub(crate) strict_expiry: bool,
    pub(crate) introspection: Option<Introspection>,
    pub(crate) revocation: Option<Revocation>,
    keys: Source,
}

/// Makes scopes of claims.
type ScopesFrom = Arc<dyn Fn(&Claims) -> Vec<String> + Send + Sync>;

#[derive(Clone)]
enum Source {
    /// What the issuer's metadata names.
    Discovered,
    Given(Arc<dyn Fn() -> Arc<JwkSet> + Send + Sync>),
}

/// The claim by which tokens are revoked, and whether those with this value are.
#[derive(Clone)]
pub(crate) struct Revocation {
    pub(crate) claim: String,
    pub(crate) is_revoked: Arc<dyn Fn(&str) -> bool + Send + Sync>,
}

impl TrustedIssuer {
    /// Trusts the issuer with this identifier, which must match its tokens (`iss`) and metadata exactly.
    pub fn new(url: impl Into<String>) -> TrustedIssuer {
        TrustedIssuer {
            url: url.into(),
            audiences: Vec::new(),
            audience_claim: None,
            scopes_from: None,
            strict_typ: false,
            principal_in_subject: false,
            strict_expiry: false,
            introspection: None,
            revocation: None,
            keys: Source::Discovered,
        }
    }

    /// Also accepts tokens for this audience, in addition to those for the server's URL. Use it for issuers that
    /// identify servers in another way, such as Entra (the app ID) or Auth0 (the API identifier).
    #[must_use]
    pub fn audience(mut self, audience: impl Into<String>) -> TrustedIssuer {
        self.audiences.push(audience.into());
        self
    }

    /// Reads the audience from this claim instead of `aud`, for issuers without one, such as Cognito (`client_id`).
    #[must_use]
    pub fn audience_claim(mut self, claim: impl Into<String>) -> TrustedIssuer {
        self.audience_claim = Some(claim.into());
        self
    }

    /// Adds the scopes that this function derives from the claims, for example from roles or groups.
    #[must_use]
    pub fn scopes_from(mut self, scopes: impl Fn(&Claims) -> Vec<String> + Send + Sync + 'static) -> TrustedIssuer {
        self.scopes_from = Some(Arc::new(scopes));
        self
    }

    /// Accepts only tokens that are marked as access tokens (`typ` is `at+jwt`, RFC 9068). By default, tokens with the
    /// type `JWT` or without a type are accepted too, because many issuers create those.
    #[must_use]
    pub fn strict_typ(mut self) -> TrustedIssuer {
        self.strict_typ = true;
        self
    }

    /// Rejects tokens as soon as they expire, for an issuer with the same clock as the guard. By default they are
    /// accepted for another minute, to allow for clock skew.
    #[must_use]
    pub fn strict_expiry(mut self) -> TrustedIssuer {
        self.strict_expiry = true;
        self
    }

    /// Reads `sub` as `<issuer>#<subject>`: the identity provider of a user, and the user's identifier there.
    ///
    /// Use it for an issuer whose users log in at another identity provider, so that they are the same principals as
    /// with tokens of that provider.
    #[must_use]
    pub fn principal_in_subject(mut self) -> TrustedIssuer {
        self.principal_in_subject = true;
        self
    }

    /// Verifies tokens with these keys instead of those that the issuer publishes.
    #[must_use]
    pub fn keys(self, keys: JwkSet) -> TrustedIssuer {
        let keys = Arc::new(keys);
        self.keys_from(move || keys.clone())
    }

    /// Verifies tokens with the keys that this function returns, for an issuer in the same process. The function must
    /// not block.
    #[must_use]
    pub fn keys_from(mut self, keys: impl Fn() -> Arc<JwkSet> + Send + Sync + 'static) -> TrustedIssuer {
        self.keys = Source::Given(Arc::new(keys));
        self
    }

    /// Validates tokens that are not JWTs with token introspection.
    #[must_use]
    pub fn introspection(mut self, introspection: Introspection) -> TrustedIssuer {
        self.introspection = Some(introspection);
        self
    }

    /// Rejects tokens, including cached ones, if the function returns `true` for the value of this claim. The function
    /// must not block.
    #[must_use]
    pub fn revoked(
        mut self,
        claim: impl Into<String>,
        is_revoked: impl Fn(&str) -> bool + Send + Sync + 'static,
    ) -> TrustedIssuer {
        self.revocation = Some(Revocation { claim: claim.into(), is_revoked: Arc::new(is_revoked) });
        self
    }

    /// Whether requests to it must be sent.
    pub(crate) fn is_remote(&self) -> bool {
        matches!(self.keys, Source::Discovered) || self.introspection.is_some()
    }
}

impl From<&str> for TrustedIssuer {
    fn from(url: &str) -> TrustedIssuer {
        TrustedIssuer::new(url)
    }
}

impl From<String> for TrustedIssuer {
    fn from(url: String) -> TrustedIssuer {
        TrustedIssuer::new(url)
    }
}

impl fmt::Debug for TrustedIssuer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TrustedIssuer")
            .field("url", &self.url)
            .field("audiences", &self.audiences)
            .finish_non_exhaustive()
    }
}

/// The client with which a guard validates tokens at an issuer's introspection endpoint (RFC 7662).
///
/// ```
/// use linchpin_guard::{Introspection, TrustedIssuer};
///
/// let issuer = TrustedIssuer::new("https://login.example.com").introspection(Introspection::secret("files", "the-secret"));
/// ```
#[derive(Clone, Debug)]
pub struct Introspection {
    pub(crate) client: String,
    pub(crate) credential: Credential,
    pub(crate) is_audience: bool,
    pub(crate) endpoint: Option<String>,
}

#[derive(Clone, Debug)]
pub(crate) enum Credential {
    Secret(Secret),
    Key(Box<Signer>),
}

impl Introspection {
    /// Authenticates as a client with a secret (`client_secret_basic`).
    pub fn secret(client_id: impl Into<String>, secret: impl Into<Secret>) -> Introspection {
        Introspection::new(client_id.into(), Credential::Secret(secret.into()))
    }

    /// Authenticates as a client with a private key (`private_key_jwt`).
    pub fn key(client_id: impl Into<String>, key: Signer) -> Introspection {
        Introspection::new(client_id.into(), Credential::Key(Box::new(key)))
    }

    fn new(client: String, credential: Credential) -> Introspection {
        Introspection { client, credential, is_audience: false, endpoint: None }
    }

    /// Uses this endpoint instead of the one in the issuer's metadata.
    #[must_use]
    pub fn endpoint(mut self, url: impl Into<String>) -> Introspection {
        self.endpoint = Some(url.into());
        self
    }

    /// Accepts responses without an audience, for issuers that answer this client only about tokens that are issued for
    /// it. By default such responses are rejected, because the token could be meant for another server.
    #[must_use]
    pub fn introspection_is_audience(mut self) -> Introspection {
        self.is_audience = true;
        self
    }
}

/// A trusted issuer at work: its keys, as far as they are known.
pub(crate) struct Issuer {
    pub(crate) trusted: TrustedIssuer,
    pub(crate) fetch: Option<Arc<dyn Fetch>>,
    pub(crate) clock: Clock,
    state: Mutex<State>,
    /// How many fetches have ended.
    ended: watch::Sender<u64>,
}

#[derive(Default)]
struct State {
    loaded: Option<Arc<Loaded>>,
    fetching: bool,
    last_attempt: Option<u64>,
}

/// What an issuer says of itself.
#[derive(Debug, Default)]
pub(crate) struct Loaded {
    pub(crate) keys: Arc<JwkSet>,
    pub(crate) introspection: Option<String>,
    /// Its metadata, as it was sent.
    pub(crate) document: Bytes,
    /// When it is fetched again, in the background.
    refresh: u64,
    /// When it is worth nothing any more.
    end: u64,
}

/// A fetch begins this many seconds after the one before.
const FETCH_PAUSE_S: u64 = 30;
/// The same while nothing is known.
const FIRST_FETCH_PAUSE_S: u64 = 5;
/// How long key sets are kept, whatever they say.
const MAX_AGE_S: std::ops::RangeInclusive<u64> = 300..=86_400;
/// How long old keys serve while the issuer is away.
const AWAY_S: u64 = 86_400;
const FETCH_TIME: Duration = Duration::from_secs(10);

impl Issuer {
    pub(crate) fn new(trusted: TrustedIssuer, fetch: Option<Arc<dyn Fetch>>, clock: Clock) -> Arc<Issuer> {
        Arc::new(Issuer { trusted, fetch, clock, state: Mutex::default(), ended: watch::Sender::new(0) })
    }

    /// What is known of the issuer. Old knowledge is renewed in the background.
    pub(crate) fn known(self: &Arc<Self>) -> Option<Arc<Loaded>> {
        if let Source::Given(keys) = &self.trusted.keys
            && self.trusted.introspection.as_ref().is_none_or(|i| i.endpoint.is_some())
        {
            let introspection = self.trusted.introspection.as_ref().and_then(|i| i.endpoint.clone());
            let (keys, document) = (keys(), Bytes::new());
            return Some(Arc::new(Loaded { keys, introspection, document, refresh: u64::MAX, end: u64::MAX }));
        }
        let now = self.clock.now();
        let loaded = self.lock().loaded.clone().filter(|loaded| now < loaded.end)?;
        if now >= loaded.refresh {
            self.begin(now);
        }
        Some(loaded)
    }

    /// Whether a fetch would begin now, or is under way: an unknown key may be a new one.
    pub(crate) fn may_learn(&self) -> bool {
        if !matches!(self.trusted.keys, Source::Discovered) {
            return false;
        }
        let state = self.lock();
        state.fetching || state.is_due(self.clock.now())
    }

    /// Fetches what the issuer says of itself, unless that was tried a moment ago, and returns what is known then.
    pub(crate) async fn learn(self: &Arc<Self>) -> Option<Arc<Loaded>> {
        let mut ended = self.ended.subscribe();
        self.begin(self.clock.now());
        if self.lock().fetching {
            let _ = tokio::time::timeout(FETCH_TIME, ended.changed()).await;
        }
        self.known()
    }

    /// Begins a fetch in the background, if one is due.
    fn begin(self: &Arc<Self>, now: u64) {
        let mut state = self.lock();
        if state.fetching || !state.is_due(now) {
            return;
        }
        state.fetching = true;
        state.last_attempt = Some(now);
        let issuer = self.clone();
        tokio::spawn(async move {
            let loaded = tokio::time::timeout(FETCH_TIME, issuer.load()).await;
            let loaded = loaded.unwrap_or_else(|_| Err("it takes too long".to_owned()));
            issuer.end(loaded);
        });
    }

    fn end(&self, loaded: Result<Loaded, String>) {
        let mut state = self.lock();
        state.fetching = false;
        match loaded {
            Ok(loaded) => {
                let (keys, skipped) = (loaded.keys.iter().count(), loaded.keys.skipped().len());
                tracing::debug!(issuer = self.trusted.url, keys, skipped, "fetched the keys of an issuer");
                state.loaded = Some(Arc::new(loaded));
            }
            Err(why) => tracing::warn!(issuer = self.trusted.url, why, "the keys of an issuer cannot be fetched"),
        }
        drop(state);
        self.ended.send_modify(|ended| *ended += 1);
    }

    async fn load(&self) -> Result<Loaded, String> {
        let (metadata, document) = self.metadata().await?;
        let introspection = match &self.trusted.introspection {
            Some(configured) => configured.endpoint.clone().or(metadata.introspection_endpoint),
            None => None,
        };
        let (keys, max_age) = match (&self.trusted.keys, metadata.jwks_uri) {
            (Source::Given(keys), _) => (keys(), *MAX_AGE_S.end()),
            (Source::Discovered, Some(url)) => self.key_set(&url).await?,
            (Source::Discovered, None) if introspection.is_some() => Default::default(),
            (Source::Discovered, None) => return Err("its metadata has no jwks_uri".to_owned()),
        };
        let now = self.clock.now();
        let max_age = max_age.clamp(*MAX_AGE_S.start(), *MAX_AGE_S.end());
        Ok(Loaded { keys, introspection, document, refresh: now + max_age / 5 * 4, end: now + max_age + AWAY_S })
    }

    async fn key_set(&self, url: &str) -> Result<(Arc<JwkSet>, u64), String> {
        let answer = self.get(url).await?;
        let keys = JwkSet::parse(answer.body()).ok_or_else(|| format!("{url} is not a key set, or too large"))?;
        for why in keys.skipped().iter().take(3) {
            tracing::info!(issuer = self.trusted.url, %why, "skipped a key of an issuer");
        }
        Ok((Arc::new(keys), max_age(answer.headers())))
    }

    /// The metadata, at the places of RFC 8414 and OpenID Connect Discovery.
    async fn metadata(&self) -> Result<(AuthorizationServerMetadata, Bytes), String> {
        let issuer = &self.trusted.url;
        let mut whys = Vec::new();
        for place in places(issuer) {
            let document = match self.get(&place).await {
                Ok(answer) => serde_json::from_slice(answer.body())
                    .map(|document| (document, answer.into_body()))
                    .map_err(|_| format!("{place} is not JSON")),
                Err(why) => Err(why),
            };
            match document {
                Ok((document, text)) => {
                    let metadata = AuthorizationServerMetadata::read(&document);
                    if metadata.issuer == *issuer {
                        return Ok((metadata, text));
                    }
                    let theirs: String = metadata.issuer.chars().filter(|c| !c.is_control()).take(200).collect();
                    return Err(format!(
                        "{place} says that its issuer is {theirs:?}, which must be {issuer:?} to the letter"
                    ));
                }
                Err(why) => whys.push(why),
            }
        }
        Err(format!("it has no metadata: {}", whys.join("; ")))
    }

    async fn get(&self, url: &str) -> Result<Response<Bytes>, String> {
        let fetch = self.fetch.as_ref().ok_or("there is no HTTP client")?;
        let request = Request::get(url).header(ACCEPT, "application/json").body(Bytes::new());
        let answer = fetch.fetch(request.map_err(|_| format!("{url:?} is not a URL"))?, JwkSet::BYTES_MAX).await?;
        match answer.status() {
            StatusCode::OK if answer.body().len() <= JwkSet::BYTES_MAX => Ok(answer),
            status => Err(format!("{url} answers with status {}", status.as_u16())),
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn is_due(&self, now: u64) -> bool {
        let pause = if self.loaded.is_some() { FETCH_PAUSE_S } else { FIRST_FETCH_PAUSE_S };
        self.last_attempt.is_none_or(|last| now >= last + pause)
    }
}

/// Where the metadata of an issuer may be.
pub(crate) fn places(issuer: &str) -> Vec<String> {
    let (scheme, rest) = issuer.split_once("://").unwrap_or(("https", issuer));
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let path = path.trim_end_matches('/');
    let inserted = |name: &str| format!("{scheme}://{host}/.well-known/{name}{path}");
    let mut places = vec![inserted("oauth-authorization-server"), inserted("openid-configuration")];
    if !path.is_empty() {
        places.push(format!("{scheme}://{host}{path}/.well-known/openid-configuration"));
    }
    places
}

/// How long a response may be kept, in seconds.
fn max_age(headers: &HeaderMap) -> u64 {
    let directives = headers.get_all(CACHE_CONTROL).iter().filter_map(|value| value.to_str().ok());
    let named = directives.flat_map(|value| value.split(',')).find_map(|directive| {
        let (name, value) = directive.trim().split_once('=')?;
        name.eq_ignore_ascii_case("max-age").then(|| value.trim_matches('"').parse().ok())?
    });
    named.unwrap_or(3600)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_is_looked_for_where_the_specifications_put_it() {
        assert_eq!(
            places("https://a.example/realms/main"),
            [
                "https://a.example/.well-known/oauth-authorization-server/realms/main",
                "https://a.example/.well-known/openid-configuration/realms/main",
                "https://a.example/realms/main/.well-known/openid-configuration",
            ]
        );
        for root in ["https://a.example", "https://a.example/"] {
            assert_eq!(
                places(root),
                [
                    "https://a.example/.well-known/oauth-authorization-server",
                    "https://a.example/.well-known/openid-configuration"
                ]
            );
        }
    }

    #[test]
    fn a_key_set_is_kept_as_long_as_it_says() {
        let rows = [("max-age=600", 600), ("public, Max-Age=\"60\", x", 60), ("no-store", 3600), ("max-age=x", 3600)];
        for (value, expected) in rows {
            assert_eq!(max_age(&HeaderMap::from_iter([(CACHE_CONTROL, value.parse().unwrap())])), expected, "{value}");
        }
    }
}
