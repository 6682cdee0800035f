//! The guard: its configuration, and the gate that it is.

use crate::checker::Checker;
use crate::clock::Clock;
use crate::config::Config;
use crate::fetch::Fetch;
use crate::issuer::TrustedIssuer;
use crate::keys::Keys;
use crate::layer::GuardLayer;
use crate::mirror::{self, Mirror};
use crate::mode::Dpop;
use crate::refuse::PROOF_ALGS;
use bytes::Bytes;
use http::{StatusCode, request};
use linchpin_core::gate::{Admit, Document, Gate, Page, Refusal};
use linchpin_core::{Principal, RequestContext};
use linchpin_oauth::ResourceMetadata;
use linchpin_store::Store;
use std::borrow::Cow;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, OnceLock};

/// Lets in who has an access token of an issuer that it trusts, or a key.
///
/// ```no_run
/// use linchpin_guard::{Guard, Keys};
///
/// # fn example() -> Result<(), linchpin_guard::KeysError> {
/// let guard = Guard::new("https://mcp.example.com/mcp")
///     .issuer("https://login.example.com/realms/main")
///     .keys(Keys::file("keys.toml")?)
///     .require(["mcp"]);
/// # Ok(()) }
/// ```
///
/// It is a [`Gate`]: `http(address).guard(guard)` puts it in front of a server, `HttpOptions::gate` in front of a mounted one,
/// [`Guard::layer`] in front of any other service. Clones share what they know.
#[derive(Clone)]
pub struct Guard {
    config: Config,
    /// Made at first use.
    ready: OnceLock<Result<Ready, String>>,
}

#[derive(Clone)]
struct Ready {
    checker: Arc<Checker>,
    pages: Arc<[(String, Arc<dyn Page>)]>,
}

impl Guard {
    /// Creates the guard of a server with this public URL: the one that clients connect to, and that tokens must be for.
    pub fn new(url: impl Into<String>) -> Guard {
        Guard::of(Config { resources: vec![url.into()], ..Config::default() })
    }

    /// Creates a guard for keys alone, which needs no URL.
    ///
    /// ```
    /// use linchpin_guard::{Guard, Keys, Scopes};
    ///
    /// let (keys, token) = Keys::once("laptop", Scopes::new());
    /// let guard = Guard::for_keys().keys(keys);
    /// eprintln!("token: {}", token.expose());
    /// ```
    pub fn for_keys() -> Guard {
        Guard::of(Config::default())
    }

    fn of(config: Config) -> Guard {
        Guard { config, ready: OnceLock::new() }
    }

    fn with(mut self, change: impl FnOnce(&mut Config)) -> Guard {
        change(&mut self.config);
        self.ready = OnceLock::new();
        self
    }

    /// Trusts an issuer: its URL, or a [`TrustedIssuer`] with more about it. Several may be trusted.
    ///
    /// Its keys are fetched when a token comes that needs them, and renewed in the background.
    #[must_use]
    pub fn issuer(self, issuer: impl Into<TrustedIssuer>) -> Guard {
        self.with(|config| config.issuers.push(issuer.into()))
    }

    /// Accepts keys too.
    #[must_use]
    pub fn keys(self, keys: Keys) -> Guard {
        self.with(|config| config.keys.push(keys))
    }

    /// Requires these scopes for every request. Scopes of one tool are set with `Tool::scopes`.
    #[must_use]
    pub fn require<I>(self, scopes: I) -> Guard
    where
        I: IntoIterator,
        I::Item: Into<String>,
    {
        self.with(|config| config.require.extend(scopes.into_iter().map(Into::into)))
    }

    /// Names these scopes too when strangers are told to log in, so that clients ask for them at once. They are not required.
    #[must_use]
    pub fn ask_for<I>(self, scopes: I) -> Guard
    where
        I: IntoIterator,
        I::Item: Into<String>,
    {
        self.with(|config| config.ask_for.extend(scopes.into_iter().map(Into::into)))
    }

    /// Who has this scope has these too. Challenges go on naming the narrow ones.
    ///
    /// ```
    /// # use linchpin_guard::Guard;
    /// let guard = Guard::new("https://mcp.example.com/mcp").implies("files", ["files:read", "files:write"]);
    /// ```
    #[must_use]
    pub fn implies<I>(self, scope: impl Into<String>, implied: I) -> Guard
    where
        I: IntoIterator,
        I::Item: Into<String>,
    {
        self.with(|config| config.implies.push((scope.into(), implied.into_iter().map(Into::into).collect())))
    }

    /// Lets strangers in too, without a principal: items that demand scopes answer them with a challenge.
    #[must_use]
    pub fn optional(self) -> Guard {
        self.with(|config| config.optional = true)
    }

    /// Serves the same under a second URL, for example that of the HTTP+SSE transport: `https://mcp.example.com/sse`.
    #[must_use]
    pub fn also_at(self, url: impl Into<String>) -> Guard {
        self.with(|config| config.resources.push(url.into()))
    }

    /// Also serves the metadata of the first issuer at this server's origin, where clients of 2025-03-26 look for it: they know no
    /// metadata of resources. It is fetched with the issuer's keys, so it needs an issuer whose keys are not given. Status 503 while it
    /// cannot be fetched.
    ///
    /// ```
    /// # use linchpin_guard::Guard;
    /// let guard = Guard::new("https://mcp.example.com/mcp").issuer("https://login.example.com").mirror_metadata();
    /// ```
    #[must_use]
    pub fn mirror_metadata(self) -> Guard {
        self.with(|config| config.mirror = true)
    }

    /// Sets whether tokens are bound to keys. Default [`Dpop::Off`].
    #[must_use]
    pub fn dpop(self, dpop: Dpop) -> Guard {
        self.with(|config| config.dpop = dpop)
    }

    /// Demands a nonce of this server in each proof, which is good for a minute. Without this, nonces are demanded only
    /// while there are too many proofs to remember.
    #[must_use]
    pub fn dpop_nonces(self) -> Guard {
        self.with(|config| config.nonces = true)
    }

    /// Names the server for people, in its metadata.
    #[must_use]
    pub fn resource_name(self, name: impl Into<String>) -> Guard {
        self.with(|config| config.name = Some(name.into()))
    }

    /// Names the server's documentation, in its metadata.
    #[must_use]
    pub fn resource_documentation(self, url: impl Into<String>) -> Guard {
        self.with(|config| config.documentation = Some(url.into()))
    }

    /// Believes these proxies when they name the client's address (`X-Forwarded-For`, or without that `Forwarded`), which bad tokens
    /// are counted by. They must write that header themselves.
    #[must_use]
    pub fn trusted_proxies(self, proxies: impl IntoIterator<Item = IpAddr>) -> Guard {
        self.with(|config| config.proxies.extend(proxies))
    }

    /// Remembers DPoP proofs in a store instead of this process, so that one that was sent to a node is good at no other with the
    /// same store; nonces are good at all of them, too. Requests with a proof then wait for the store, and are status 503
    /// while it is away. With [`Store::durable`] a proof is not forgotten when a machine loses its power either.
    ///
    /// ```
    /// use linchpin_guard::{Dpop, Guard};
    /// use linchpin_store::Store;
    ///
    /// # let redis = Store::memory();
    /// let guard = Guard::new("https://mcp.example.com/mcp")
    ///     .issuer("https://login.example.com")
    ///     .dpop(Dpop::Required)
    ///     .shared_replay(&redis);
    /// ```
    #[must_use]
    pub fn shared_replay(self, store: &Store) -> Guard {
        self.with(|config| config.replay = Some(store.clone()))
    }

    /// Sends requests to issuers in another way than with the project's own client.
    #[must_use]
    pub fn fetch(self, fetch: impl Fetch) -> Guard {
        self.with(|config| config.fetch = Some(Arc::new(fetch)))
    }

    /// Goes by another clock than the system's.
    #[must_use]
    pub fn clock(self, clock: Clock) -> Guard {
        self.with(|config| config.clock = clock)
    }

    /// Returns the URL of the server, and the further ones.
    pub fn urls(&self) -> impl Iterator<Item = &str> {
        self.config.resources.iter().map(String::as_str)
    }

    /// Returns the URLs of the issuers that it trusts.
    pub fn issuers(&self) -> impl Iterator<Item = &str> {
        self.config.issuers.iter().map(|issuer| issuer.url.as_str())
    }

    /// Verifies an access token without a request, for other protocols. Tokens that are bound to a key are refused.
    ///
    /// # Errors
    /// The refusal that a request would get.
    pub async fn verify(&self, token: &str) -> Result<Principal, Refusal> {
        match self.ready()?.checker.verify(token) {
            Admit::Yes(principal) => Ok(principal),
            Admit::Later(decision) => decision.await,
            Admit::No(refusal) => Err(refusal),
            _ => Err(Refusal::unauthorized("authentication required")),
        }
    }

    /// Returns a tower layer with this guard: for services that are none of Linchpin, or are mounted without options.
    ///
    /// It inserts the [`Principal`] into the extensions of requests, and serves the metadata. It does not read bodies, so
    /// [`Dpop::Profile`] needs the gate.
    ///
    /// # Errors
    /// What is missing in the configuration.
    pub fn layer(&self) -> Result<GuardLayer, String> {
        self.check()?;
        Ok(GuardLayer::new(Arc::new(self.clone())))
    }

    fn ready(&self) -> Result<&Ready, Refusal> {
        let ready = self.ready.get_or_init(|| {
            self.config.problem().map_or(Ok(()), Err)?;
            let documents = documents(&self.config);
            let metadata = documents.iter().map(|document| document.url.clone()).collect();
            let checker = Arc::new(Checker::new(&self.config, metadata)?);
            let mirror = checker.issuer().filter(|_| self.config.mirror);
            let mirror =
                mirror.map(|issuer| (mirror::PLACE.to_owned(), Arc::new(Mirror(issuer.clone())) as Arc<dyn Page>));
            let pages = documents.into_iter().flat_map(Metadata::pages).chain(mirror).collect();
            Ok(Ready { checker, pages })
        });
        ready.as_ref().map_err(|problem| {
            tracing::error!(problem, "a guard cannot work");
            Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, "the server is not configured")
        })
    }
}

impl Gate for Guard {
    fn check(&self) -> Result<(), String> {
        let _ = self.ready();
        self.ready.get().map_or(Ok(()), |ready| ready.as_ref().map(|_| ()).map_err(Clone::clone))
    }

    fn admit(&self, head: &request::Parts, peer: Option<SocketAddr>) -> Admit {
        self.ready().map_or_else(Admit::No, |ready| ready.checker.admit(head, peer))
    }

    fn body(&self, context: &RequestContext, body: &Bytes) -> Result<(), Refusal> {
        self.ready()?.checker.is_body_of(&context.headers, body)
    }

    fn missing(&self, path: &str, principal: Option<&Principal>, scopes: &[Arc<str>]) -> Refusal {
        match self.ready() {
            Ok(ready) => ready.checker.refusals.missing(ready.checker.resource(path), principal, scopes),
            Err(refusal) => refusal,
        }
    }

    fn page(&self, path: &str) -> Option<Arc<dyn Page>> {
        if !path.starts_with(WELL_KNOWN) && path != mirror::PLACE {
            return None;
        }
        let ready = self.ready().ok()?;
        ready.pages.iter().find(|(own, _)| own == path).map(|(_, page)| page.clone())
    }
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard")
            .field("urls", &self.config.resources)
            .field("issuers", &self.config.issuers)
            .field("require", &self.config.require)
            .finish_non_exhaustive()
    }
}

const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";

/// The metadata of one resource.
struct Metadata {
    url: String,
    paths: Vec<String>,
    json: String,
}

impl Metadata {
    fn pages(self) -> Vec<(String, Arc<dyn Page>)> {
        let page: Arc<dyn Page> = Arc::new(Document::json(self.json));
        self.paths.into_iter().map(|path| (path, page.clone())).collect()
    }
}

/// The metadata of each resource (RFC 9728). Without issuers there is none.
fn documents(config: &Config) -> Vec<Metadata> {
    if config.issuers.is_empty() {
        return Vec::new();
    }
    let algs = || PROOF_ALGS.map(str::to_owned).to_vec();
    let document = |(at, resource): (usize, &String)| {
        let metadata = ResourceMetadata {
            resource: resource.clone(),
            authorization_servers: config.issuers.iter().map(|issuer| issuer.url.clone()).collect(),
            scopes_supported: (!config.require.is_empty()).then(|| config.require.iter().collect()),
            bearer_methods_supported: Some(vec!["header".to_owned()]),
            resource_name: config.name.clone(),
            resource_documentation: config.documentation.clone(),
            dpop_signing_alg_values_supported: config.dpop.is_on().then(algs),
            dpop_bound_access_tokens_required: config.dpop.is_required(),
        };
        let (origin, path) = split(resource);
        let own = format!("{WELL_KNOWN}{}", path.trim_end_matches('/'));
        let mut paths = vec![own.clone()];
        if at == 0 && own != WELL_KNOWN {
            paths.push(WELL_KNOWN.to_owned());
        }
        let json = serde_json::to_string(&metadata).expect("texts can be written as JSON");
        Metadata { url: format!("{origin}{own}"), paths, json }
    };
    config.resources.iter().enumerate().map(document).collect()
}

/// The origin and path of a URL, without its query.
fn split(url: &str) -> (Cow<'_, str>, &str) {
    let url = url.split('?').next().unwrap_or(url);
    let host = url.find("://").map_or(0, |at| at + 3);
    let end = url[host..].find('/').map_or(url.len(), |at| host + at);
    (Cow::Borrowed(&url[..end]), &url[end..])
}
