//! The issuer in front of a server: its pages, and who comes in with its tokens.

use crate::answer::{Answer, method_not_allowed, preflight};
use crate::authorize::authorize;
use crate::callback::callback;
use crate::consent::consent;
use crate::device::{begin, device};
use crate::dpop::PROOF_ALGS;
use crate::endpoints::{introspect, jwks, metadata, register, revoke};
use crate::limits::{FORM_BYTES_MAX, REGISTRATION_BYTES_MAX};
use crate::login::login;
use crate::person::SetupError;
use crate::request::Incoming;
use crate::shared::Shared;
use crate::token::token;
use bytes::Bytes;
use http::header::{AUTHORIZATION, RETRY_AFTER};
use http::{HeaderValue, Method, Request, StatusCode, request};
use linchpin_core::gate::{Admit, Document, Gate as _, Page, Refusal};
use linchpin_core::service::BoxFuture;
use linchpin_core::{Principal, RequestContext};
use linchpin_guard::{Dpop, Guard, TrustedIssuer};
use linchpin_oauth::{Jws, ResourceMetadata, Scopes};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
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
    DeviceAuthorization,
    Device,
}

impl Endpoint {
    /// Whether programs use it, web pages among them, and not users with their cookies.
    fn is_for_programs(self) -> bool {
        !matches!(self, Self::Authorize | Self::Login | Self::Consent | Self::Callback | Self::Device)
    }
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
    /// One for each resource, and the paths of these.
    guards: Vec<Guard>,
    paths: Vec<String>,
}

impl Started {
    pub(crate) fn new(shared: Arc<Shared>) -> Result<Started, SetupError> {
        let config = &shared.config;
        let guards: Vec<Guard> = config.resources.iter().map(|resource| guard_of(&shared, resource)).collect();
        let issuers: Vec<String> = guards.first().into_iter().flat_map(Guard::issuers).map(str::to_owned).collect();
        for guard in &guards {
            guard.check().map_err(SetupError::new)?;
        }
        let path = |resource: &String| Url::parse(resource).map(|url| url.path().to_owned()).unwrap_or_default();
        let paths = config.resources.iter().map(path).collect();
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
        if config.device {
            pages.insert(format!("{path}/device_authorization"), served(Endpoint::DeviceAuthorization));
            pages.insert(format!("{path}/device"), served(Endpoint::Device));
        }
        for resource in config.resources.iter().chain(&config.also_at) {
            let document = resource_metadata(&shared, resource, &issuers);
            let at = Url::parse(resource).ok();
            if at.as_ref().is_some_and(|url| url.origin().ascii_serialization() == config.origin) {
                let path = at.map(|url| url.path().trim_end_matches('/').to_owned()).unwrap_or_default();
                pages.insert(format!("{RESOURCE}{path}"), document.clone());
                if config.resources.len() == 1 && resource == &config.resources[0] {
                    pages.insert(RESOURCE.to_owned(), document);
                }
            }
        }
        Ok(Started { shared, pages, guards, paths })
    }

    /// The guard of the resource that a request is for: that of its path, or the first.
    fn guard(&self, path: &str) -> &Guard {
        let at = self.paths.iter().position(|own| own == path).unwrap_or(0);
        &self.guards[at]
    }

    /// Whether a refused token names a key that is not known, and that may have been created a moment ago.
    fn may_be_of_a_new_key(&self, head: &request::Parts) -> bool {
        let line = head.headers.get(AUTHORIZATION).and_then(|line| line.to_str().ok()).unwrap_or_default();
        let token = line.split_once(' ').map_or("", |(_, token)| token.trim());
        let Ok(jws) = Jws::read(token) else { return false };
        if jws.unverified_issuer() != Some(&self.shared.config.issuer) {
            return false;
        }
        match self.shared.keys.known() {
            Some(ring) => jws.kid().is_some_and(|kid| !ring.set().has(kid)) && ring.may_be_old(self.shared.now()),
            None => true,
        }
    }
}

/// The guard of a resource: it accepts the tokens of this issuer, whose keys and revocations it sees as they are.
fn guard_of(shared: &Arc<Shared>, resource: &str) -> Guard {
    let (keys, revoked, time) = (shared.clone(), shared.revoked.clone(), shared.clone());
    let issuer = TrustedIssuer::new(&*shared.config.issuer)
        .strict_typ()
        .strict_expiry()
        .principal_in_subject()
        .keys_from(move || keys.keys.known().map(|ring| ring.set().clone()).unwrap_or_default())
        .revoked("family", move |family| revoked.has(family));
    let guard = Guard::new(resource).issuer(issuer).require(&shared.config.required);
    let is_first = shared.config.resources.first().is_some_and(|first| first == resource);
    let further = shared.config.also_at.iter().filter(|_| is_first);
    let guard = further.fold(guard, |guard, url| guard.also_at(url));
    let guard = shared.config.accepts.iter().fold(guard, |guard, accept| accept(guard));
    // Where nothing is required, clients ask for all at once; otherwise for more when they meet it.
    let all = shared.config.scopes.iter().map(|(scope, _)| scope.as_str());
    let guard = if shared.config.required.is_empty() { guard.ask_for(all) } else { guard };
    let guard = match shared.config.shared_replay {
        true => guard.shared_replay(shared.records.store()),
        false => guard,
    };
    let guard = guard.trusted_proxies(shared.config.proxies.clone());
    guard.dpop(Dpop::Accepted).clock(linchpin_guard::Clock::new(move || time.now()))
}

const RESOURCE: &str = "/.well-known/oauth-protected-resource";

fn resource_metadata(shared: &Shared, resource: &str, issuers: &[String]) -> Arc<dyn Page> {
    let required: Scopes = shared.config.required.iter().collect();
    let all = || shared.config.scopes.iter().map(|(scope, _)| scope.as_str()).collect();
    let scopes = if required.is_empty() { all() } else { required };
    let metadata = ResourceMetadata::new(resource).with(|it| {
        it.authorization_servers = issuers.to_vec();
        it.scopes_supported = (!scopes.is_empty()).then_some(scopes);
        it.bearer_methods_supported = Some(vec!["header".to_owned()]);
        it.dpop_signing_alg_values_supported = Some(PROOF_ALGS.map(str::to_owned).to_vec());
        it.resource_name = Some(shared.config.site.name.clone());
    });
    Arc::new(Document::json(serde_json::to_vec(&metadata).unwrap_or_default()))
}

impl Started {
    pub(crate) fn page(&self, path: &str) -> Option<Arc<dyn Page>> {
        self.shared.follow();
        self.pages.get(path).cloned()
    }

    pub(crate) fn admit(self: &Arc<Self>, head: &request::Parts, peer: Option<SocketAddr>) -> Admit {
        self.shared.follow();
        // Until it is known what was revoked, no token is known to be good.
        if !self.shared.revoked.is_ready() && head.headers.contains_key(AUTHORIZATION) {
            let (own, head) = (self.clone(), head.clone());
            return Admit::Later(Box::pin(async move {
                own.shared.revoked.ready(&own.shared.records).await.map_err(|_| away())?;
                decided(own.admit(&head, peer)).await
            }));
        }
        match self.guard(head.uri.path()).admit(head, peer) {
            Admit::No(refusal) if refusal.status() == StatusCode::UNAUTHORIZED && self.may_be_of_a_new_key(head) => {
                let (own, head) = (self.clone(), head.clone());
                Admit::Later(Box::pin(async move {
                    let shared = &own.shared;
                    shared.keys.reload(&shared.records, shared.now()).await.map_err(|_| away())?;
                    decided(own.guard(head.uri.path()).admit(&head, peer)).await
                }))
            }
            decided => decided,
        }
    }

    pub(crate) fn body(&self, context: &RequestContext, body: &Bytes) -> Result<(), Refusal> {
        self.guard("").body(context, body)
    }

    pub(crate) fn missing(&self, path: &str, principal: Option<&Principal>, scopes: &[Arc<str>]) -> Refusal {
        self.guard(path).missing(path, principal, scopes)
    }
}

async fn decided(admit: Admit) -> Result<Principal, Refusal> {
    match admit {
        Admit::Yes(principal) => Ok(principal),
        Admit::No(refusal) => Err(refusal),
        Admit::Later(decision) => decision.await,
        // A guard is never open.
        Admit::Open => Err(away()),
    }
}

fn away() -> Refusal {
    Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "what this server knows of tokens cannot be read; try again")
        .with_header(RETRY_AFTER, HeaderValue::from_static("2"))
}

impl Page for Served {
    fn body_bytes_max(&self) -> usize {
        if self.endpoint == Endpoint::Register { REGISTRATION_BYTES_MAX } else { FORM_BYTES_MAX }
    }

    fn any_origin(&self) -> bool {
        self.endpoint.is_for_programs()
    }

    fn respond(&self, request: Request<Bytes>) -> BoxFuture<'static, http::Response<Bytes>> {
        let (shared, endpoint) = (self.shared.clone(), self.endpoint);
        Box::pin(async move { respond(&shared, endpoint, Incoming::new(request, &shared.config.proxies)).await })
    }
}

async fn respond(shared: &Shared, endpoint: Endpoint, incoming: Incoming) -> Answer {
    use Endpoint as E;
    let head = incoming.method == Method::HEAD;
    let get = head || incoming.method == Method::GET;
    let post = incoming.method == Method::POST;
    if incoming.method == Method::OPTIONS && endpoint.is_for_programs() {
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
        E::DeviceAuthorization if post => begin(shared, &incoming).await,
        E::Device if get || post => device(shared, &incoming).await,
        E::Metadata | E::Jwks | E::Callback => method_not_allowed("GET, HEAD"),
        E::Authorize | E::Login | E::Consent | E::Device => method_not_allowed("GET, HEAD, POST"),
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
