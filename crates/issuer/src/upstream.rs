//! The identity provider that users log in at, and this server's client there.
//!
//! Its tokens stay here, sealed with the family; a client never sees them. What the presets say of hosted providers is
//! from their documentation: none of them was tried from here.

mod github;
mod oidc;

pub(crate) use oidc::Openness;

use crate::params::with_query;
use crate::person::Person;
use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, USER_AGENT};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use linchpin_oauth::Secret;
use linchpin_web::{Web, WebOptions};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use crate::limits::UPSTREAM_BYTES_MAX;

/// An identity provider at which users log in, and this server's client there.
///
/// The redirect URI `<issuer>/callback` must be registered with the provider.
///
/// ```
/// use linchpin_issuer::{Issuer, Upstream};
///
/// let issuer = Issuer::new("https://mcp.example.com")
///     .upstream(Upstream::github("Iv1.8a61f9b3a7aba766", "secret"))
///     .allow("org:acme");
/// # let _ = issuer;
/// ```
pub struct Upstream {
    pub(crate) kind: Kind,
    pub(crate) client: UpstreamClient,
}

pub(crate) enum Kind {
    GitHub(github::GitHub),
    Oidc(Box<oidc::Oidc>),
    Endpoints(Box<Endpoints>),
}

/// The client that this server is at its provider.
pub(crate) struct UpstreamClient {
    pub(crate) id: String,
    pub(crate) secret: Secret,
    pub(crate) scopes: Vec<String>,
    web: Web,
}

/// A provider that is configured by its endpoints, like the TypeScript SDK's `ProxyOAuthServerProvider`.
///
/// ```
/// use linchpin_issuer::{Endpoints, Person, Upstream};
///
/// let endpoints = Endpoints::new(
///     "https://auth.example.com/authorize",
///     "https://auth.example.com/token",
///     |token| async move { Ok(Person::new("https://auth.example.com", user_of(token.expose()).await?)) },
/// );
/// let upstream = Upstream::endpoints(endpoints, "client id", "client secret");
/// # async fn user_of(token: &str) -> Result<String, linchpin_issuer::UpstreamError> { Ok(token.to_owned()) }
/// # let _ = upstream;
/// ```
pub struct Endpoints {
    authorize: String,
    token: String,
    revoke: Option<String>,
    who: Box<dyn Fn(Secret) -> Who + Send + Sync>,
}

type Who = Pin<Box<dyn Future<Output = Result<Person, UpstreamError>> + Send>>;

impl Endpoints {
    /// Creates a provider from its authorization and token endpoints, and a function that returns the user of an access
    /// token.
    pub fn new<F>(
        authorize: impl Into<String>,
        token: impl Into<String>,
        who: impl Fn(Secret) -> F + Send + Sync + 'static,
    ) -> Endpoints
    where
        F: Future<Output = Result<Person, UpstreamError>> + Send + 'static,
    {
        let who = Box::new(move |token| Box::pin(who(token)) as Who);
        Endpoints { authorize: authorize.into(), token: token.into(), revoke: None, who }
    }

    /// Sets the revocation endpoint.
    #[must_use]
    pub fn revoke(mut self, url: impl Into<String>) -> Endpoints {
        self.revoke = Some(url.into());
        self
    }
}

/// The error of a request to an identity provider.
///
/// # Example
///
/// ```
/// use linchpin_issuer::{Endpoints, Person, Secret, UpstreamError};
///
/// async fn who(token: Secret) -> Result<Person, UpstreamError> {
///     let user = fetch_user(&token).await.map_err(|_| UpstreamError::Away)?;
///     match user {
///         Some(id) => Ok(Person::new("https://auth.example.com", id)),
///         None => Err(UpstreamError::Refused("the account is disabled")),
///     }
/// }
/// # async fn fetch_user(_: &Secret) -> std::io::Result<Option<String>> {
/// #     Ok(None)
/// # }
///
/// let url = "https://auth.example.com";
/// let endpoints = Endpoints::new(format!("{url}/authorize"), format!("{url}/token"), who);
/// # let _ = endpoints;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn check() {
/// #     let refused = Err(UpstreamError::Refused("the account is disabled"));
/// #     assert_eq!(who(Secret::new("t0k3n")).await, refused);
/// # }
/// # check();
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum UpstreamError {
    /// The provider is unavailable, or its response is invalid. A later retry may succeed.
    Away,
    /// The provider refused the request, or its response cannot be trusted. The text is for the log.
    Refused(&'static str),
}

impl fmt::Display for UpstreamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            UpstreamError::Away => f.write_str("the provider does not answer"),
            UpstreamError::Refused(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for UpstreamError {}

/// What a provider gave us for a user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct UpstreamTokens {
    pub(crate) access: Secret,
    pub(crate) refresh: Option<Secret>,
    /// When the access token expires, in seconds since 1970.
    #[serde(default)]
    pub(crate) until: Option<u64>,
}

impl UpstreamTokens {
    /// Whether the access token lasts a minute longer, as far as is known.
    pub(crate) fn are_fresh(&self) -> bool {
        self.until.is_none_or(|until| unix_now() + 60 < until)
    }
}

fn unix_now() -> u64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// What a login at the provider is bound to.
pub(crate) struct Leg<'a> {
    pub(crate) state: &'a str,
    pub(crate) challenge: &'a str,
    pub(crate) nonce: &'a str,
    pub(crate) redirect_uri: &'a str,
    /// Whether a rule asks for organizations or groups.
    pub(crate) orgs: bool,
}

/// What came back from the provider.
pub(crate) struct Return<'a> {
    pub(crate) code: &'a str,
    pub(crate) iss: Option<&'a str>,
    pub(crate) verifier: &'a str,
    pub(crate) nonce: &'a str,
    pub(crate) redirect_uri: &'a str,
    pub(crate) orgs: bool,
    pub(crate) now: u64,
}

impl Upstream {
    /// Uses GitHub. With a rule `org:` or `group:`, or a function as a rule, the scope `read:org` is requested; without
    /// one, the organizations of users are not known.
    pub fn github(id: impl Into<String>, secret: impl Into<Secret>) -> Upstream {
        Upstream::new(Kind::GitHub(github::GitHub::new("https://github.com", "https://api.github.com")), id, secret)
    }

    /// Uses the GitHub Enterprise Server at this URL.
    pub fn github_enterprise(url: &str, id: impl Into<String>, secret: impl Into<Secret>) -> Upstream {
        let url = url.trim_end_matches('/');
        Upstream::new(Kind::GitHub(github::GitHub::new(url, &format!("{url}/api/v3"))), id, secret)
    }

    /// Uses Google. A rule `@domain` checks the domain of the account, never the email address.
    pub fn google(id: impl Into<String>, secret: impl Into<Secret>) -> Upstream {
        Upstream::of_oidc(oidc::Oidc::google(), id, secret)
    }

    /// Uses Entra with a tenant: its ID, or `common`, which requires a rule `tenant:`. With `common`, other rules apply
    /// only to users of these tenants.
    pub fn entra(tenant: &str, id: impl Into<String>, secret: impl Into<Secret>) -> Upstream {
        Upstream::of_oidc(oidc::Oidc::entra(tenant), id, secret)
    }

    /// Uses Auth0 with a domain such as `acme.eu.auth0.com`.
    pub fn auth0(domain: &str, id: impl Into<String>, secret: impl Into<Secret>) -> Upstream {
        Upstream::of_oidc(oidc::Oidc::at(format!("https://{domain}/")), id, secret)
    }

    /// Uses Okta with a domain such as `acme.okta.com`, or with one of its authorization servers:
    /// `acme.okta.com/default`.
    pub fn okta(domain: &str, id: impl Into<String>, secret: impl Into<Secret>) -> Upstream {
        let issuer = match domain.split_once('/') {
            Some((domain, server)) => format!("https://{domain}/oauth2/{server}"),
            None => format!("https://{domain}"),
        };
        Upstream::of_oidc(oidc::Oidc::at(issuer).closed().asking("groups"), id, secret)
    }

    /// Uses Keycloak with the URL of a realm: `https://login.example.com/realms/main`.
    pub fn keycloak(realm: &str, id: impl Into<String>, secret: impl Into<Secret>) -> Upstream {
        // A session of Keycloak has a refresh token without it, and an offline one never ends.
        Upstream::of_oidc(oidc::Oidc::at(realm.trim_end_matches('/').to_owned()).online(), id, secret)
    }

    /// Uses WorkOS with an AuthKit domain.
    pub fn workos(domain: &str, id: impl Into<String>, secret: impl Into<Secret>) -> Upstream {
        Upstream::of_oidc(oidc::Oidc::at(format!("https://{domain}")), id, secret)
    }

    /// Uses any OpenID Connect provider, given by its issuer identifier. The scope `offline_access` is requested if the
    /// provider's metadata contains it, so that users are checked again at each refresh.
    pub fn oidc(issuer: impl Into<String>, id: impl Into<String>, secret: impl Into<Secret>) -> Upstream {
        Upstream::of_oidc(oidc::Oidc::at(issuer.into()), id, secret)
    }

    /// Uses a provider that is configured by its endpoints.
    pub fn endpoints(endpoints: Endpoints, id: impl Into<String>, secret: impl Into<Secret>) -> Upstream {
        Upstream::new(Kind::Endpoints(Box::new(endpoints)), id, secret)
    }

    /// Requests these additional scopes from the provider.
    #[must_use]
    pub fn scopes<S: Into<String>>(mut self, scopes: impl IntoIterator<Item = S>) -> Upstream {
        self.client.scopes.extend(scopes.into_iter().map(Into::into));
        self
    }

    fn of_oidc(oidc: oidc::Oidc, id: impl Into<String>, secret: impl Into<Secret>) -> Upstream {
        Upstream::new(Kind::Oidc(Box::new(oidc)), id, secret)
    }

    fn new(kind: Kind, id: impl Into<String>, secret: impl Into<Secret>) -> Upstream {
        let web = Web::new(WebOptions::default().with(|options| {
            options.request_ms_max = Some(REQUEST_MS_MAX);
            options.body_bytes_max = Some(UPSTREAM_BYTES_MAX);
        }));
        let client = UpstreamClient { id: id.into(), secret: secret.into(), scopes: Vec::new(), web };
        Upstream { kind, client }
    }

    /// Where users log in, for them.
    pub(crate) fn place(&self) -> String {
        url::Url::parse(self.url()).ok().and_then(|url| url.host_str().map(str::to_owned)).unwrap_or_default()
    }

    /// The URL that the provider is known by.
    pub(crate) fn url(&self) -> &str {
        match &self.kind {
            Kind::GitHub(github) => github.url(),
            Kind::Oidc(oidc) => oidc.issuer(),
            Kind::Endpoints(endpoints) => &endpoints.authorize,
        }
    }

    /// Whether anybody can have an account there.
    pub(crate) fn openness(&self) -> Openness {
        match &self.kind {
            Kind::Oidc(oidc) => oidc.openness(),
            _ => Openness::Open,
        }
    }

    /// The address to send a user's browser to.
    pub(crate) async fn begin(&self, leg: &Leg<'_>) -> Result<String, UpstreamError> {
        match &self.kind {
            Kind::GitHub(github) => Ok(github.begin(&self.client, leg)),
            Kind::Oidc(oidc) => oidc.begin(&self.client, leg).await,
            Kind::Endpoints(endpoints) => {
                let scopes = self.client.scopes.join(" ");
                Ok(self.client.authorize(&endpoints.authorize, leg, &[("scope", &scopes)]))
            }
        }
    }

    /// Redeems a code, and finds out whose it is.
    pub(crate) async fn finish(&self, back: &Return<'_>) -> Result<(Person, UpstreamTokens), UpstreamError> {
        match &self.kind {
            Kind::GitHub(github) => github.finish(&self.client, back).await,
            Kind::Oidc(oidc) => oidc.finish(&self.client, back).await,
            Kind::Endpoints(endpoints) => {
                let (tokens, _) = self.client.redeem(&endpoints.token, back, Auth::Post).await?;
                Ok(((endpoints.who)(tokens.access.clone()).await?, tokens))
            }
        }
    }

    /// Refreshes at the provider or, where nothing expires there, asks who the user is. `Refused`: the user is gone.
    pub(crate) async fn still(
        &self,
        person: &Person,
        tokens: &UpstreamTokens,
        orgs: bool,
    ) -> Result<(Person, UpstreamTokens), UpstreamError> {
        match &self.kind {
            Kind::GitHub(github) => {
                let found = github.who(&self.client, &tokens.access, orgs).await?;
                Ok((found, tokens.clone()))
            }
            Kind::Oidc(oidc) => oidc.still(&self.client, person, tokens).await,
            Kind::Endpoints(endpoints) => {
                let tokens = match &tokens.refresh {
                    Some(refresh) => self.client.refresh(&endpoints.token, refresh, Auth::Post).await?.0,
                    None => tokens.clone(),
                };
                Ok(((endpoints.who)(tokens.access.clone()).await?, tokens))
            }
        }
    }

    /// Tells the provider that its tokens are not needed any more. It may fail: they are forgotten here anyway.
    pub(crate) async fn revoke(&self, tokens: &UpstreamTokens) {
        let done = match &self.kind {
            Kind::GitHub(github) => github.revoke(&self.client, tokens).await,
            Kind::Oidc(oidc) => oidc.revoke(&self.client, tokens).await,
            Kind::Endpoints(endpoints) => match &endpoints.revoke {
                Some(url) => self.client.revoke(url, tokens, Auth::Post).await,
                None => Ok(()),
            },
        };
        if let Err(error) = done {
            tracing::warn!(%error, "the provider was not told of a revocation");
        }
    }
}

impl fmt::Debug for Upstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Upstream").field("place", &self.place()).finish_non_exhaustive()
    }
}

/// How a client shows at a token endpoint who it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Auth {
    Basic,
    Post,
}

const REQUEST_MS_MAX: u64 = 10_000;

impl UpstreamClient {
    /// The address of an authorization request.
    fn authorize(&self, endpoint: &str, leg: &Leg<'_>, more: &[(&str, &str)]) -> String {
        let mut params = vec![
            ("response_type", "code"),
            ("client_id", self.id.as_str()),
            ("redirect_uri", leg.redirect_uri),
            ("state", leg.state),
            ("code_challenge", leg.challenge),
            ("code_challenge_method", "S256"),
        ];
        params.extend(more.iter().filter(|(_, value)| !value.is_empty()));
        with_query(endpoint, &params)
    }

    /// Redeems a code: the tokens, and all of the answer.
    async fn redeem(
        &self,
        endpoint: &str,
        back: &Return<'_>,
        auth: Auth,
    ) -> Result<(UpstreamTokens, Map<String, Value>), UpstreamError> {
        let form = [
            ("grant_type", "authorization_code"),
            ("code", back.code),
            ("redirect_uri", back.redirect_uri),
            ("code_verifier", back.verifier),
        ];
        self.token(endpoint, &form, auth, None).await
    }

    async fn refresh(
        &self,
        endpoint: &str,
        refresh: &Secret,
        auth: Auth,
    ) -> Result<(UpstreamTokens, Map<String, Value>), UpstreamError> {
        let form = [("grant_type", "refresh_token"), ("refresh_token", refresh.expose())];
        self.token(endpoint, &form, auth, Some(refresh)).await
    }

    async fn token(
        &self,
        endpoint: &str,
        form: &[(&str, &str)],
        auth: Auth,
        refresh: Option<&Secret>,
    ) -> Result<(UpstreamTokens, Map<String, Value>), UpstreamError> {
        let answer = self.post(endpoint, form, auth).await?;
        // GitHub's errors have status 200.
        if answer.contains_key("error") {
            return Err(token_error(&answer));
        }
        let secret = |name: &str| answer.get(name).and_then(Value::as_str).map(Secret::from);
        let access = secret("access_token").ok_or(UpstreamError::Away)?;
        let lasts = answer.get("expires_in").and_then(|seconds| match seconds {
            Value::String(seconds) => seconds.parse().ok(),
            seconds => seconds.as_u64(),
        });
        let tokens = UpstreamTokens {
            access,
            refresh: secret("refresh_token").or_else(|| refresh.cloned()),
            until: lasts.map(|lasts: u64| unix_now().saturating_add(lasts)),
        };
        Ok((tokens, answer))
    }

    async fn revoke(&self, endpoint: &str, tokens: &UpstreamTokens, auth: Auth) -> Result<(), UpstreamError> {
        let token = tokens.refresh.as_ref().unwrap_or(&tokens.access);
        self.post(endpoint, &[("token", token.expose())], auth).await.map(drop)
    }

    /// Posts a form in the name of the client. An answer that is not valid JSON is empty.
    async fn post(
        &self,
        endpoint: &str,
        form: &[(&str, &str)],
        auth: Auth,
    ) -> Result<Map<String, Value>, UpstreamError> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-www-form-urlencoded"));
        let own = [("client_id", self.id.as_str()), ("client_secret", self.secret.expose())];
        if auth == Auth::Basic {
            headers.insert(AUTHORIZATION, self.basic()?);
        }
        let own = own.iter().filter(|_| auth == Auth::Post);
        let body = form_urlencoded::Serializer::new(String::new()).extend_pairs(form.iter().chain(own)).finish();
        self.ask(Method::POST, endpoint, headers, body.into()).await
    }

    /// The header of the scheme Basic.
    fn basic(&self) -> Result<HeaderValue, UpstreamError> {
        use base64::Engine as _;
        let encode = |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
        let pair = format!("{}:{}", encode(&self.id), encode(self.secret.expose()));
        let text = format!("Basic {}", base64::engine::general_purpose::STANDARD.encode(pair));
        sensitive(&text)
    }

    async fn get(&self, url: &str, token: Option<&Secret>) -> Result<Map<String, Value>, UpstreamError> {
        self.ask(Method::GET, url, self.bearer(token)?, Bytes::new()).await
    }

    fn bearer(&self, token: Option<&Secret>) -> Result<HeaderMap, UpstreamError> {
        let mut headers = HeaderMap::new();
        if let Some(token) = token {
            headers.insert(AUTHORIZATION, sensitive(&format!("Bearer {}", token.expose()))?);
        }
        Ok(headers)
    }

    async fn ask(
        &self,
        method: Method,
        url: &str,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<Map<String, Value>, UpstreamError> {
        match self.json(method, url, headers, body).await? {
            Value::Object(object) => Ok(object),
            _ => Ok(Map::new()),
        }
    }

    /// Sends a request and reads JSON. Only what is said of the user is a refusal: their token is not good, or
    /// `invalid_grant`. All else is "away".
    async fn json(&self, method: Method, url: &str, headers: HeaderMap, body: Bytes) -> Result<Value, UpstreamError> {
        let is_persons = headers.get(AUTHORIZATION).is_some_and(|value| value.as_bytes().starts_with(b"Bearer "));
        let (status, _, body) = self.send(method, url, headers, body).await?;
        let value: Value = serde_json::from_slice(&body).unwrap_or_default();
        match status.as_u16() {
            200..=299 => Ok(value),
            401 if is_persons => Err(UpstreamError::Refused("the provider does not take the user's token any more")),
            400 | 401 => Err(value.as_object().map_or(UpstreamError::Away, token_error)),
            other => {
                tracing::warn!(status = other, "the provider does not answer as it should");
                Err(UpstreamError::Away)
            }
        }
    }

    /// Sends a request.
    async fn send(
        &self,
        method: Method,
        url: &str,
        mut headers: HeaderMap,
        body: Bytes,
    ) -> Result<(StatusCode, HeaderMap, Bytes), UpstreamError> {
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        headers.insert(USER_AGENT, HeaderValue::from_static("linchpin"));
        let away = |error: linchpin_web::WebError| {
            tracing::warn!(%error, "the provider does not answer");
            UpstreamError::Away
        };
        let mut response = self.web.request(method, url, headers, body).await.map_err(away)?;
        let status = response.parts.status;
        let body = response.body.read_all(UPSTREAM_BYTES_MAX).await.map_err(away)?;
        Ok((status, response.parts.headers, body))
    }
}

/// What an error of a token endpoint means (RFC 6749, section 5.2). Of these only some are about the user; others are
/// about the client, whose operator has to put them right: the users' logins wait for that.
fn token_error(answer: &Map<String, Value>) -> UpstreamError {
    match answer.get("error").and_then(Value::as_str).unwrap_or_default() {
        // The last two are GitHub's.
        "invalid_grant" | "bad_verification_code" | "bad_refresh_token" => {
            UpstreamError::Refused("the provider refused the code or the refresh token")
        }
        // OpenID Connect: the user has to be there.
        "interaction_required" | "login_required" | "consent_required" => {
            UpstreamError::Refused("the provider wants the user to log in again")
        }
        error @ ("invalid_client" | "unauthorized_client" | "incorrect_client_credentials") => {
            tracing::error!(error, "the provider does not accept this server: check the client's id and secret there");
            UpstreamError::Away
        }
        error => {
            tracing::warn!(error, "the provider refused a request");
            UpstreamError::Away
        }
    }
}

fn sensitive(text: &str) -> Result<HeaderValue, UpstreamError> {
    let mut value =
        HeaderValue::try_from(text).map_err(|_| UpstreamError::Refused("a token is not a valid header value"))?;
    value.set_sensitive(true);
    Ok(value)
}

/// For how long what a provider publishes is remembered.
pub(crate) const DOCUMENT_LIFE: Duration = Duration::from_secs(3600);
