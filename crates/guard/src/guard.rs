//! The guard: its configuration, and its implementation of [`Gate`].

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

/// A gate that admits requests with an access token of a trusted issuer, or with a key.
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
/// It is a [`Gate`]: `http(address).guard(guard)` puts it in front of a server, `HttpOptions::gate` in front of a
/// mounted server, and [`Guard::layer`] in front of any other service. Clones share their state.
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
    /// Creates a guard for a server with this public URL, which clients connect to and which tokens must be issued for.
    pub fn new(url: impl Into<String>) -> Guard {
        Guard::of(Config { resources: vec![url.into()], ..Config::default() })
    }

    /// Creates a guard that accepts only keys. It needs no URL.
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

    /// Trusts an issuer, given by its URL or as a [`TrustedIssuer`] with options. Can be called several times.
    ///
    /// The issuer's keys are fetched when they are first needed for a token, and renewed in the background.
    #[must_use]
    pub fn issuer(self, issuer: impl Into<TrustedIssuer>) -> Guard {
        self.with(|config| config.issuers.push(issuer.into()))
    }

    /// Accepts these keys, in addition to the tokens of issuers.
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

    /// Adds these scopes to the challenge for unauthenticated requests, so that clients request them with the first
    /// login. They are not required.
    #[must_use]
    pub fn ask_for<I>(self, scopes: I) -> Guard
    where
        I: IntoIterator,
        I::Item: Into<String>,
    {
        self.with(|config| config.ask_for.extend(scopes.into_iter().map(Into::into)))
    }

    /// Makes a scope imply other scopes. Challenges still name the implied ones.
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

    /// Also admits requests without credentials; they have no principal. Items that require scopes respond to them with
    /// a challenge.
    #[must_use]
    pub fn optional(self) -> Guard {
        self.with(|config| config.optional = true)
    }

    /// Adds a second URL of the same server, for example that of the HTTP+SSE transport: `https://mcp.example.com/sse`.
    #[must_use]
    pub fn also_at(self, url: impl Into<String>) -> Guard {
        self.with(|config| config.resources.push(url.into()))
    }

    /// Also serves the metadata of the first issuer at this server's origin, where clients of revision 2025-03-26 look
    /// for it, because they do not support protected-resource metadata.
    ///
    /// The metadata is fetched together with the issuer's keys, so it requires an issuer without configured keys. The
    /// response has the status 503 while it cannot be fetched.
    ///
    /// ```
    /// # use linchpin_guard::Guard;
    /// let guard = Guard::new("https://mcp.example.com/mcp").issuer("https://login.example.com").mirror_metadata();
    /// ```
    #[must_use]
    pub fn mirror_metadata(self) -> Guard {
        self.with(|config| config.mirror = true)
    }

    /// Sets whether tokens must be bound to keys. Default: [`Dpop::Off`].
    #[must_use]
    pub fn dpop(self, dpop: Dpop) -> Guard {
        self.with(|config| config.dpop = dpop)
    }

    /// Requires each proof to contain a nonce of this server, which is valid for one minute. By default, nonces are
    /// only required while there are too many proofs to remember.
    #[must_use]
    pub fn dpop_nonces(self) -> Guard {
        self.with(|config| config.nonces = true)
    }

    /// Sets the human-readable name of the server in its metadata.
    #[must_use]
    pub fn resource_name(self, name: impl Into<String>) -> Guard {
        self.with(|config| config.name = Some(name.into()))
    }

    /// Sets the URL of the server's documentation in its metadata.
    #[must_use]
    pub fn resource_documentation(self, url: impl Into<String>) -> Guard {
        self.with(|config| config.documentation = Some(url.into()))
    }

    /// Trusts these proxies to report the client's address (`X-Forwarded-For` or, without it, `Forwarded`), by which
    /// invalid tokens are counted. The proxies must set this header themselves.
    #[must_use]
    pub fn trusted_proxies(self, proxies: impl IntoIterator<Item = IpAddr>) -> Guard {
        self.with(|config| config.proxies.extend(proxies))
    }

    /// Remembers DPoP proofs in a store instead of in this process, so that a proof that was sent to one node is
    /// rejected by all others with the same store. Nonces are then valid at all of these nodes.
    ///
    /// Requests with a proof wait for the store, and get the status 503 while it is unavailable. With
    /// [`Store::durable`], proofs are remembered even after a power failure.
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

    /// Replaces the HTTP client that sends requests to issuers.
    #[must_use]
    pub fn fetch(self, fetch: impl Fetch) -> Guard {
        self.with(|config| config.fetch = Some(Arc::new(fetch)))
    }

    /// Replaces the system's clock.
    #[must_use]
    pub fn clock(self, clock: Clock) -> Guard {
        self.with(|config| config.clock = clock)
    }

    /// Returns the URLs of the server: the one passed to [`Guard::new`] and those of [`Guard::also_at`].
    pub fn urls(&self) -> impl Iterator<Item = &str> {
        self.config.resources.iter().map(String::as_str)
    }

    /// Returns the URLs of the trusted issuers.
    pub fn issuers(&self) -> impl Iterator<Item = &str> {
        self.config.issuers.iter().map(|issuer| issuer.url.as_str())
    }

    /// Verifies an access token without a request, for other protocols. Tokens that are bound to a key are rejected.
    ///
    /// # Errors
    /// If the token is not accepted. The error is the refusal that a request would get.
    pub async fn verify(&self, token: &str) -> Result<Principal, Refusal> {
        match self.ready()?.checker.verify(token) {
            Admit::Yes(principal) => Ok(principal),
            Admit::Later(decision) => decision.await,
            Admit::No(refusal) => Err(refusal),
            _ => Err(Refusal::unauthorized("authentication required")),
        }
    }

    /// Returns a tower layer with this guard, for services outside Linchpin or mounted without options.
    ///
    /// It inserts the [`Principal`] into the extensions of requests, and serves the metadata. It does not read bodies, so
    /// it cannot be used with [`Dpop::Profile`]: use the guard as a gate for that.
    ///
    /// # Errors
    /// If the configuration is incomplete or invalid, or has [`Dpop::Profile`]. The message says what is wrong.
    pub fn layer(&self) -> Result<GuardLayer, String> {
        self.check()?;
        if self.config.dpop == Dpop::Profile {
            return Err(
                "a layer does not read bodies, whose digests Dpop::Profile checks: use the guard as a gate, or \
                        Dpop::Required"
                    .to_owned(),
            );
        }
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
        let metadata = ResourceMetadata::new(resource).with(|it| {
            it.authorization_servers = config.issuers.iter().map(|issuer| issuer.url.clone()).collect();
            it.scopes_supported = (!config.require.is_empty()).then(|| config.require.iter().collect());
            it.bearer_methods_supported = Some(vec!["header".to_owned()]);
            it.resource_name = config.name.clone();
            it.resource_documentation = config.documentation.clone();
            it.dpop_signing_alg_values_supported = config.dpop.is_on().then(algs);
            it.dpop_bound_access_tokens_required = config.dpop.is_required();
        });
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
