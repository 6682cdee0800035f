//! The configuration of an authorization server.

use crate::answer::Cookies;
use crate::client::Client;
use crate::gate::{self, Started};
use crate::pages::Site;
use crate::person::{Allow, SetupError};
use crate::shared::{Accept, Config, Login, Shared};
use crate::trusted::{self, IdentityProvider, Workload};
use crate::upstream::{Upstream, UpstreamError};
use crate::users::Users;
use bytes::Bytes;
use http::request;
use linchpin_core::gate::{Admit, Gate, Page, Refusal};
use linchpin_core::{Principal, RequestContext};
use linchpin_guard::{Guard, TrustedProxies};
use linchpin_oauth::Secret;
use linchpin_store::{Clock, Store, SystemClock};
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use url::Url;

/// An authorization server: it issues the tokens for a server, and admits requests with these tokens.
///
/// Users log in at an identity provider ([`Issuer::upstream`]), or with accounts of this server ([`Issuer::users`]).
/// Clients are pre-registered ([`Issuer::client`]), have a client metadata document, or use dynamic registration. As a
/// [`Gate`](linchpin_core::gate::Gate), it protects a server and serves its own endpoints and pages alongside it.
///
/// ```
/// use linchpin_issuer::{Issuer, Upstream};
///
/// let issuer = Issuer::new("https://mcp.example.com")
///     .upstream(Upstream::github("Iv1.8a61f9b3a7aba766", "secret"))
///     .allow("org:acme")
///     .scope("files:read", "read your files");
/// assert!(issuer.check().is_ok());
///
/// // Anyone can create an account at GitHub, so a rule is required.
/// let open = Issuer::new("https://mcp.example.com").upstream(Upstream::github("id", "secret"));
/// assert!(open.check().unwrap_err().to_string().contains("org:NAME"));
/// ```
#[derive(Clone)]
pub struct Issuer {
    options: Options,
    /// Clones are one issuer, until one of them is changed.
    started: Arc<OnceLock<Result<Arc<Started>, SetupError>>>,
}

#[derive(Clone)]
struct Options {
    issuer: String,
    name: Option<String>,
    resources: Vec<String>,
    also_at: Vec<String>,
    accepts: Vec<Accept>,
    scopes: Vec<(String, String)>,
    required: Vec<String>,
    clients: Vec<Client>,
    login: Login,
    /// Whether it is meant that nobody logs in.
    machines: bool,
    allow: Vec<Allow>,
    grants: Vec<(Allow, Vec<String>)>,
    schemes: Vec<String>,
    access_life: Duration,
    registration: bool,
    device: bool,
    enterprises: Vec<IdentityProvider>,
    workloads: Vec<Workload>,
    proxies: TrustedProxies,
    shared_replay: bool,
    store: Option<Store>,
    clock: Option<Arc<dyn Clock>>,
    /// The first mistake, which the start reports.
    mistake: Option<SetupError>,
}

impl Issuer {
    /// Creates an authorization server with this URL, which is its issuer identifier.
    ///
    /// By default, it protects `/mcp` of the same origin (see [`Issuer::resource`]), and stores everything in memory
    /// (see [`Issuer::store`]).
    pub fn new(url: impl Into<String>) -> Issuer {
        let options = Options {
            issuer: url.into(),
            name: None,
            resources: Vec::new(),
            also_at: Vec::new(),
            accepts: Vec::new(),
            scopes: Vec::new(),
            required: Vec::new(),
            clients: Vec::new(),
            login: Login::Nobody,
            machines: false,
            allow: Vec::new(),
            grants: Vec::new(),
            schemes: Vec::new(),
            access_life: Duration::from_secs(900),
            registration: true,
            device: false,
            enterprises: Vec::new(),
            workloads: Vec::new(),
            proxies: TrustedProxies::default(),
            shared_replay: false,
            store: None,
            clock: None,
            mistake: None,
        };
        Issuer { options, started: Arc::default() }
    }

    fn with(mut self, change: impl FnOnce(&mut Options)) -> Issuer {
        change(&mut self.options);
        self.started = Arc::default();
        self
    }

    /// Lets users log in with accounts of this server.
    #[must_use]
    pub fn users(self, users: Users) -> Issuer {
        self.with(|options| options.login = Login::Users(Arc::new(users)))
    }

    /// Lets users log in at an identity provider.
    #[must_use]
    pub fn upstream(self, upstream: Upstream) -> Issuer {
        self.with(|options| options.login = Login::Upstream(Arc::new(upstream)))
    }

    /// Disables logins of users: only clients that act on their own behalf get tokens, including those that are added
    /// later with [`Admin::add_client`](crate::Admin::add_client).
    #[must_use]
    pub fn only_machines(self) -> Issuer {
        self.with(|options| (options.login, options.machines) = (Login::Nobody, true))
    }

    /// Admits users who match a rule. With several rules, a user must match one of them; with Entra's `common`, one of
    /// the rules `tenant:` and one of the others. See [`Allow`].
    #[must_use]
    pub fn allow(self, rule: &str) -> Issuer {
        self.with(|options| match rule.parse() {
            Ok(rule) => options.allow.push(rule),
            Err(error) => drop(options.mistake.get_or_insert(error)),
        })
    }

    /// Admits users for whom a function returns `true`.
    #[must_use]
    pub fn allow_if(self, admits: impl Fn(&crate::Person) -> bool + Send + Sync + 'static) -> Issuer {
        self.with(|options| options.allow.push(Allow::if_(admits)))
    }

    /// Admits all users who can log in.
    #[must_use]
    pub fn allow_anyone(self) -> Issuer {
        self.with(|options| options.allow.push(Allow::anyone()))
    }

    /// Adds a scope that clients can be granted. `sentence` tells users what the scope allows.
    #[must_use]
    pub fn scope(self, scope: impl Into<String>, sentence: impl Into<String>) -> Issuer {
        self.with(|options| options.scopes.push((scope.into(), sentence.into())))
    }

    /// Requires these scopes for every request. Clients request these first, and others as they need them. By default,
    /// clients are told to request all scopes.
    #[must_use]
    pub fn require<S: Into<String>>(self, scopes: impl IntoIterator<Item = S>) -> Issuer {
        self.with(|options| options.required.extend(scopes.into_iter().map(Into::into)))
    }

    /// Reserves scopes for users who match a rule: other users cannot grant them.
    #[must_use]
    pub fn grant<S: Into<String>>(self, rule: &str, scopes: impl IntoIterator<Item = S>) -> Issuer {
        self.with(|options| match rule.parse() {
            Ok(rule) => options.grants.push((rule, scopes.into_iter().map(Into::into).collect())),
            Err(error) => drop(options.mistake.get_or_insert(error)),
        })
    }

    /// Adds the URL of a server that tokens are issued for. The default is `/mcp` of the issuer's origin.
    #[must_use]
    pub fn resource(self, url: impl Into<String>) -> Issuer {
        self.with(|options| options.resources.push(url.into()))
    }

    /// Adds a second URL of the first resource, for example that of the HTTP+SSE transport:
    /// `https://mcp.example.com/sse`. Clients can request tokens for it, and tokens for either URL are accepted at
    /// both.
    #[must_use]
    pub fn also_at(self, url: impl Into<String>) -> Issuer {
        self.with(|options| options.also_at.push(url.into()))
    }

    /// Also admits requests with keys, or with tokens of other authorization servers.
    ///
    /// The function receives the guard of each resource. The metadata of the resources lists all issuers, this one
    /// first. The rules of [`Issuer::allow`] apply only to users who log in at this issuer.
    ///
    /// ```
    /// use linchpin_guard::{Keys, Scopes};
    /// use linchpin_issuer::{Issuer, Users};
    ///
    /// let (keys, token) = Keys::once("nightly-job", Scopes::new());
    /// let issuer = Issuer::new("http://127.0.0.1:8931").users(Users::once()).accept(move |guard| guard.keys(keys.clone()));
    /// assert!(issuer.check().is_ok());
    /// # drop(token);
    /// ```
    #[must_use]
    pub fn accept(self, change: impl Fn(Guard) -> Guard + Send + Sync + 'static) -> Issuer {
        self.with(|options| options.accepts.push(Arc::new(change)))
    }

    /// Sets the name that is displayed to users.
    #[must_use]
    pub fn name(self, name: impl Into<String>) -> Issuer {
        self.with(|options| options.name = Some(name.into()))
    }

    /// Adds a pre-registered client.
    #[must_use]
    pub fn client(self, client: Client) -> Issuer {
        self.with(|options| options.clients.push(client))
    }

    /// Disables dynamic client registration. Clients with a metadata document can still log in.
    #[must_use]
    pub fn without_registration(self) -> Issuer {
        self.with(|options| options.registration = false)
    }

    /// Lets devices without a browser log in (RFC 8628): they show a code, which the user enters on the page `/device`.
    /// Disabled by default, because attackers can persuade users to enter the attacker's code.
    #[must_use]
    pub fn device(self, on: bool) -> Issuer {
        self.with(|options| options.device = on)
    }

    /// Accepts assertions of an enterprise's identity provider (ID-JAG), which decides which users may use which
    /// clients.
    #[must_use]
    pub fn enterprise(self, provider: impl Into<IdentityProvider>) -> Issuer {
        self.with(|options| options.enterprises.push(provider.into()))
    }

    /// Issues tokens to programs that present a token of the platform that they run on.
    #[must_use]
    pub fn workload(self, workload: Workload) -> Issuer {
        self.with(|options| options.workloads.push(workload))
    }

    /// Accepts redirect URIs with this scheme, for applications whose scheme contains no dot.
    #[must_use]
    pub fn redirect_scheme(self, scheme: impl Into<String>) -> Issuer {
        self.with(|options| options.schemes.push(scheme.into()))
    }

    /// Sets the lifetime of access tokens: 15 minutes by default. More than a day is shortened to a day. Each refresh
    /// checks again whether the user is admitted.
    #[must_use]
    pub fn access_life(self, life: Duration) -> Issuer {
        self.with(|options| options.access_life = life.min(Duration::from_secs(86_400)))
    }

    /// Trusts these proxies to report the client's address (`X-Forwarded-For`), which is used for rate limits and
    /// displayed to users.
    #[must_use]
    pub fn trusted_proxies(self, proxies: impl IntoIterator<Item = IpAddr>) -> Issuer {
        self.with(|options| options.proxies.extend(proxies))
    }

    /// Remembers DPoP proofs in the store, so that a proof that was sent to one node is rejected by all others. See
    /// [`Guard::shared_replay`](linchpin_guard::Guard::shared_replay).
    #[must_use]
    pub fn shared_replay(self) -> Issuer {
        self.with(|options| options.shared_replay = true)
    }

    /// Sets the store for clients, logins and keys. Everything is encrypted before it is stored.
    #[must_use]
    pub fn store(self, store: Store) -> Issuer {
        self.with(|options| options.store = Some(store))
    }

    /// Replaces the clock, for tests.
    #[must_use]
    pub fn clock(self, clock: Arc<dyn Clock>) -> Issuer {
        self.with(|options| options.clock = Some(clock))
    }

    /// Returns the issuer identifier.
    pub fn url(&self) -> &str {
        &self.options.issuer
    }

    /// Returns the access token that the identity provider issued for the caller of a tool, for tools that call the
    /// provider's API on behalf of the user.
    ///
    /// A token that expires within a minute is refreshed first. Request the scopes that the tool needs with
    /// [`Upstream::scopes`]. Clones of an issuer share their state, so the state of a server can contain one.
    ///
    /// ```
    /// use linchpin_core::Principal;
    /// use linchpin_issuer::{Issuer, UpstreamError};
    ///
    /// /// Called with `cx.principal()`.
    /// async fn repositories(issuer: &Issuer, caller: &Principal) -> Result<Vec<String>, UpstreamError> {
    ///     let token = issuer.upstream_token(caller).await?;
    ///     let authorization = format!("Bearer {}", token.expose());
    ///     // … ask the provider's API …
    /// #   let _ = authorization;
    ///     Ok(vec![])
    /// }
    /// ```
    ///
    /// # Errors
    /// [`UpstreamError::Refused`] if the caller did not log in at the provider, or is no longer admitted, which ends
    /// their login. [`UpstreamError::Away`] if the provider or the store is unavailable.
    ///
    /// Cancel-safe: a refresh that has started is completed. Must be called in a tokio runtime.
    pub async fn upstream_token(&self, caller: &Principal) -> Result<Secret, UpstreamError> {
        let started = self.started().map_err(|_| UpstreamError::Refused("the authorization server does not start"))?;
        // In a task: a call that is cancelled while the provider answers must not lose the refresh token that it gave.
        let (shared, caller) = (started.shared.clone(), caller.clone());
        let asking = tokio::spawn(async move { crate::token::upstream_token(&shared, &caller).await });
        asking.await.unwrap_or(Err(UpstreamError::Away))
    }

    /// Checks the configuration.
    ///
    /// # Errors
    /// If something is missing or invalid. The message says what to do.
    pub fn check(&self) -> Result<(), SetupError> {
        self.started().map(drop).map_err(Clone::clone)
    }

    pub(crate) fn started(&self) -> Result<&Arc<Started>, &SetupError> {
        let start = || {
            start(self.options.clone()).inspect_err(|error| {
                tracing::error!(%error, "the authorization server does not start");
            })
        };
        self.started.get_or_init(start).as_ref()
    }
}

impl Gate for Issuer {
    fn check(&self) -> Result<(), String> {
        self.started().map(drop).map_err(ToString::to_string)
    }

    fn admit(&self, head: &request::Parts, peer: Option<SocketAddr>) -> Admit {
        match self.started() {
            Ok(started) => started.admit(head, peer),
            Err(_) => Admit::No(gate::not_started()),
        }
    }

    fn body(&self, context: &RequestContext, body: &Bytes) -> Result<(), Refusal> {
        self.started().map_err(|_| gate::not_started())?.body(context, body)
    }

    fn missing(&self, path: &str, principal: Option<&Principal>, scopes: &[Arc<str>]) -> Refusal {
        match self.started() {
            Ok(started) => started.missing(path, principal, scopes),
            Err(_) => gate::not_started(),
        }
    }

    fn page(&self, path: &str) -> Option<Arc<dyn Page>> {
        self.started().ok()?.page(path)
    }
}

impl fmt::Debug for Issuer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Issuer").field("issuer", &self.options.issuer).finish_non_exhaustive()
    }
}

fn start(options: Options) -> Result<Arc<Started>, SetupError> {
    if let Some(mistake) = options.mistake {
        return Err(mistake);
    }
    let (origin, path) = Config::place(&options.issuer)?;
    let resources = if options.resources.is_empty() { vec![format!("{origin}/mcp")] } else { options.resources };
    for resource in resources.iter().chain(&options.also_at) {
        let fine = Url::parse(resource).is_ok_and(|url| url.has_host() && url.fragment().is_none());
        if !fine {
            return Err(SetupError::new(format!("the resource {resource:?} is not a URL of a server")));
        }
    }
    for scheme in &options.schemes {
        if ["javascript", "data", "file", "http", "blob", "about"].contains(&scheme.to_ascii_lowercase().as_str()) {
            return Err(SetupError::new(format!("{scheme}: is not a scheme that a program can register")));
        }
    }
    options.workloads.iter().try_for_each(Workload::check)?;
    options.enterprises.iter().try_for_each(|provider| trusted::check(&provider.keys))?;
    if matches!(options.login, Login::Nobody)
        && !options.machines
        && options.clients.iter().all(|client| client.own_scopes.is_none())
    {
        return Err(SetupError::new(
            "nobody can sign in: say how with users(Users::file(…)), users(Users::once()) or upstream(Upstream::…)",
        ));
    }
    let host = Url::parse(&origin).ok().and_then(|url| url.host_str().map(str::to_owned)).unwrap_or_default();
    let config = Config {
        site: Site { name: options.name.unwrap_or(host), url: options.issuer.clone() },
        cookies: Cookies::new(&options.issuer)?,
        issuer: options.issuer,
        path,
        origin,
        resources,
        also_at: options.also_at,
        accepts: options.accepts,
        scopes: options.scopes,
        required: options.required,
        clients: options.clients.into_iter().map(|client| (client.id.clone(), client)).collect(),
        login: options.login,
        allow: options.allow,
        grants: options.grants,
        schemes: options.schemes,
        access_life: options.access_life,
        registration: options.registration,
        device: options.device,
        enterprises: options.enterprises,
        workloads: options.workloads,
        proxies: options.proxies,
        shared_replay: options.shared_replay,
    };
    config.check_rules()?;
    let store = options.store.unwrap_or_else(Store::memory);
    let clock = options.clock.unwrap_or_else(|| Arc::new(SystemClock::new()));
    Started::new(Arc::new(Shared::new(config, &store, clock))).map(Arc::new)
}
