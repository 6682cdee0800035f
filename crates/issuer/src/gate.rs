//! The issuer in front of a server: its pages, and who comes in with its tokens.

use crate::answer::{Answer, method_not_allowed, preflight};
use crate::authorize::authorize;
use crate::callback::callback;
use crate::consent::consent;
use crate::endpoints::{introspect, jwks, metadata, register, revoke};
use crate::limits::{FORM_BYTES_MAX, REGISTRATION_BYTES_MAX};
use crate::login::login;
use crate::request::Incoming;
use crate::shared::Shared;
use crate::token::token;
use bytes::Bytes;
use http::header::{AUTHORIZATION, RETRY_AFTER};
use http::{HeaderValue, Method, Request, StatusCode, request};
use linchpin_core::Principal;
use linchpin_core::gate::{Admit, Document, Page, Refusal};
use linchpin_core::service::BoxFuture;
use linchpin_oauth::{Claims, Jws, ResourceMetadata, Scopes};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};
use url::Url;

/// An endpoint of the issuer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Endpoint {
    Metadata,
    Jwks,
    Authorize,
    Login,
    Consent,
    Callback,
    Token,
    Register,
    Revoke,
    Introspect,
}

/// An endpoint as a page of the gate.
struct Served {
    shared: Arc<Shared>,
    endpoint: Endpoint,
}

/// The gate of an issuer that was started.
pub(crate) struct Started {
    pub(crate) shared: Arc<Shared>,
    pages: HashMap<String, Arc<dyn Page>>,
}

impl Started {
    pub(crate) fn new(shared: Arc<Shared>) -> Started {
        let config = &shared.config;
        let served = |endpoint| Arc::new(Served { shared: shared.clone(), endpoint }) as Arc<dyn Page>;
        let mut pages: HashMap<String, Arc<dyn Page>> = HashMap::new();
        let path = &config.path;
        pages.insert(format!("/.well-known/oauth-authorization-server{path}"), served(Endpoint::Metadata));
        let below = [
            ("jwks.json", Endpoint::Jwks),
            ("authorize", Endpoint::Authorize),
            ("login", Endpoint::Login),
            ("consent", Endpoint::Consent),
            ("callback", Endpoint::Callback),
            ("token", Endpoint::Token),
            ("revoke", Endpoint::Revoke),
            ("introspect", Endpoint::Introspect),
        ];
        pages.extend(below.into_iter().map(|(name, endpoint)| (format!("{path}/{name}"), served(endpoint))));
        if config.registration {
            pages.insert(format!("{path}/register"), served(Endpoint::Register));
        }
        for resource in &config.resources {
            let document = resource_metadata(&shared, resource);
            let at = Url::parse(resource).ok();
            if at.as_ref().is_some_and(|url| url.origin().ascii_serialization() == config.origin) {
                let path = at.map(|url| url.path().trim_end_matches('/').to_owned()).unwrap_or_default();
                pages.insert(format!("{RESOURCE}{path}"), document.clone());
                if config.resources.len() == 1 {
                    pages.insert(RESOURCE.to_owned(), document);
                }
            }
        }
        Started { shared, pages }
    }

    /// The resource that a request is for: that of its path, or the first.
    fn resource(&self, path: &str) -> &str {
        let resources = &self.shared.config.resources;
        let has_path = |resource: &&String| Url::parse(resource).is_ok_and(|url| url.path() == path);
        resources.iter().find(has_path).or(resources.first()).map_or("", String::as_str)
    }

    fn refuse(&self, path: &str, error: Option<&'static str>) -> Refusal {
        let message = error.unwrap_or("this server wants an access token: sign in");
        let mut challenge = format!("Bearer resource_metadata=\"{}\"", self.metadata_url(self.resource(path)));
        let scopes: Scopes = self.shared.config.scopes.iter().map(|(scope, _)| scope.as_str()).collect();
        if !scopes.is_empty() {
            challenge.push_str(&format!(", scope=\"{scopes}\""));
        }
        if let Some(description) = error {
            challenge.push_str(&format!(", error=\"invalid_token\", error_description=\"{description}\""));
        }
        let refusal = Refusal::unauthorized(message);
        match HeaderValue::try_from(challenge) {
            Ok(challenge) => refusal.with_challenge(challenge),
            Err(_) => refusal,
        }
    }

    fn metadata_url(&self, resource: &str) -> String {
        let path = Url::parse(resource).map(|url| url.path().trim_end_matches('/').to_owned()).unwrap_or_default();
        format!("{}{RESOURCE}{path}", self.shared.config.origin)
    }

    /// Checks an access token with the keys that are known. `None`: its key is not among them.
    fn check(&self, token: &str, path: &str, now: u64) -> Option<Result<Principal, &'static str>> {
        const NOT_VALID: &str = "the token is not valid";
        let Ok(jws) = Jws::read(token) else { return Some(Err(NOT_VALID)) };
        if jws.unverified_issuer() != Some(&self.shared.config.issuer) || jws.typ() != Some("at+jwt") {
            return Some(Err(NOT_VALID));
        }
        let ring = self.shared.keys.known()?;
        if jws.kid().is_some_and(|kid| !ring.set().has(kid)) && ring.may_be_old(now) {
            return None;
        }
        let Some(claims) = ring.set().fitting(&jws).find_map(|key| jws.verify(key).ok()) else {
            return Some(Err(NOT_VALID));
        };
        if claims.check_times(now, 0).is_err() {
            return Some(Err("the token has expired"));
        }
        if claims.text("family").is_some_and(|family| self.shared.revoked.has(family)) {
            return Some(Err("the token was revoked"));
        }
        if claims.text("aud") != Some(self.resource(path)) {
            return Some(Err("the token is not for this server"));
        }
        Some(principal(claims).ok_or(NOT_VALID))
    }
}

/// Who a token is for: `sub` names who vouches for the user, and their subject there.
fn principal(claims: &Claims) -> Option<Principal> {
    let (issuer, subject) = claims.text("sub")?.split_once('#')?;
    let scopes = Scopes::parse(claims.text("scope").unwrap_or_default());
    let expires = UNIX_EPOCH + Duration::from_secs(claims.time("exp")?);
    Some(
        Principal::new(subject)
            .with_issuer(issuer)
            .with_client(claims.text("client_id")?)
            .with_scopes(scopes.iter())
            .with_expiry(expires)
            .with_claims(serde_json::Value::Object(claims.as_map().clone())),
    )
}

const RESOURCE: &str = "/.well-known/oauth-protected-resource";

fn resource_metadata(shared: &Shared, resource: &str) -> Arc<dyn Page> {
    let scopes: Scopes = shared.config.scopes.iter().map(|(scope, _)| scope.as_str()).collect();
    let metadata = ResourceMetadata {
        resource: resource.to_owned(),
        authorization_servers: vec![shared.config.issuer.clone()],
        scopes_supported: (!scopes.is_empty()).then_some(scopes),
        bearer_methods_supported: Some(vec!["header".to_owned()]),
        resource_name: Some(shared.config.site.name.clone()),
        ..ResourceMetadata::default()
    };
    Arc::new(Document::json(serde_json::to_vec(&metadata).unwrap_or_default()))
}

impl Started {
    pub(crate) fn page(&self, path: &str) -> Option<Arc<dyn Page>> {
        self.shared.follow();
        self.pages.get(path).cloned()
    }

    pub(crate) fn admit(self: &Arc<Self>, head: &request::Parts) -> Admit {
        self.shared.follow();
        let path = head.uri.path();
        let mut lines = head.headers.get_all(AUTHORIZATION).iter();
        let token = match (lines.next(), lines.next()) {
            (None, _) => return Admit::No(self.refuse(path, None)),
            (Some(line), None) => line.to_str().ok().and_then(bearer),
            _ => return Admit::No(twice()),
        };
        let Some(token) = token else { return Admit::No(self.refuse(path, None)) };
        let now = self.shared.now();
        match self.check(token, path, now) {
            Some(Ok(principal)) => Admit::Yes(principal),
            Some(Err(why)) => Admit::No(self.refuse(path, Some(why))),
            None => {
                let (own, token, path) = (self.clone(), token.to_owned(), path.to_owned());
                Admit::Later(Box::pin(async move {
                    if own.shared.keys.reload(&own.shared.records, now).await.is_err() {
                        return Err(away());
                    }
                    match own.check(&token, &path, now) {
                        Some(Ok(principal)) => Ok(principal),
                        Some(Err(why)) => Err(own.refuse(&path, Some(why))),
                        None => Err(own.refuse(&path, Some("the token is not valid"))),
                    }
                }))
            }
        }
    }
}

fn bearer(line: &str) -> Option<&str> {
    let (scheme, token) = line.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim()).filter(|token| !token.is_empty())
}

fn twice() -> Refusal {
    Refusal::new(StatusCode::BAD_REQUEST, "more than one Authorization header; send one")
        .with_challenge(HeaderValue::from_static(r#"Bearer error="invalid_request""#))
}

fn away() -> Refusal {
    Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "the keys of this server cannot be read; try again")
        .with_header(RETRY_AFTER, HeaderValue::from_static("2"))
}

impl Page for Served {
    fn body_bytes_max(&self) -> usize {
        if self.endpoint == Endpoint::Register { REGISTRATION_BYTES_MAX } else { FORM_BYTES_MAX }
    }

    fn respond(&self, request: Request<Bytes>) -> BoxFuture<'static, http::Response<Bytes>> {
        let (shared, endpoint) = (self.shared.clone(), self.endpoint);
        Box::pin(async move { respond(&shared, endpoint, Incoming::new(request)).await })
    }
}

async fn respond(shared: &Shared, endpoint: Endpoint, incoming: Incoming) -> Answer {
    use Endpoint as E;
    let head = incoming.method == Method::HEAD;
    let get = head || incoming.method == Method::GET;
    let post = incoming.method == Method::POST;
    let for_programs = !matches!(endpoint, E::Authorize | E::Login | E::Consent | E::Callback);
    if incoming.method == Method::OPTIONS && for_programs {
        return preflight();
    }
    let mut answer = match endpoint {
        E::Metadata if get => metadata(shared),
        E::Jwks if get => jwks(shared).await,
        E::Authorize if get || post => authorize(shared, &incoming).await,
        E::Login if get || post => login(shared, &incoming).await,
        E::Consent if get || post => consent(shared, &incoming).await,
        E::Callback if get => callback(shared, &incoming).await,
        E::Token if post => token(shared, &incoming).await,
        E::Register if post => register(shared, &incoming).await,
        E::Revoke if post => revoke(shared, &incoming).await,
        E::Introspect if post => introspect(shared, &incoming).await,
        E::Metadata | E::Jwks | E::Callback => method_not_allowed("GET, HEAD"),
        E::Authorize | E::Login | E::Consent => method_not_allowed("GET, HEAD, POST"),
        _ => method_not_allowed("POST"),
    };
    if head {
        *answer.body_mut() = Bytes::new();
    }
    answer
}

/// The answer of an issuer that could not start, to everybody.
pub(crate) fn not_started() -> Refusal {
    Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "the sign-in of this server is not configured; see its log")
}

/// What [`Gate::missing`] answers: all scopes that are missing, and where to get them.
pub(crate) fn missing(started: &Started, principal: Option<&Principal>, scopes: &[Arc<str>]) -> Refusal {
    let resource = started.shared.config.resources.first().map_or("", String::as_str);
    let (refusal, error) = match principal {
        Some(_) => (Refusal::forbidden("insufficient scope"), r#"error="insufficient_scope", "#),
        None => (Refusal::unauthorized("authentication required"), ""),
    };
    let metadata = started.metadata_url(resource);
    let challenge = format!("Bearer {error}scope=\"{}\", resource_metadata=\"{metadata}\"", scopes.join(" "));
    match HeaderValue::try_from(challenge) {
        Ok(challenge) => refusal.with_challenge(challenge),
        Err(_) => refusal,
    }
}
