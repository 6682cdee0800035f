//! The configuration of OAuth, which programs pass to a client.

use crate::address;
use crate::client::Credential;
use crate::client::Form;
use crate::config::{Config, PreRegistered};
use crate::error::Error;
use crate::fetch::{Fetch, WebFetch};
use crate::grants::{Enterprise, NonInteractive, Workload};
use crate::login::Login;
use crate::metadata;
use crate::register;
use crate::store::{MemoryStore, StoreKey, Stored, TokenStore};
use crate::token::Endpoint;
use crate::token_source::{Shared, TokenSource};
use http::request::Parts;
use http::{HeaderMap, StatusCode, Uri};
use linchpin_core::connector::{Authorizer, BelongsTo};
use linchpin_core::service::BoxFuture;
use linchpin_oauth::{Scopes, Signer};
use linchpin_web::{Reach, WebOptions};
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// OAuth authorization for requests to MCP servers.
///
/// It does nothing until a server requires authorization. Then it discovers the authorization server, gets a token from
/// it in the configured way, adds the token to every request to that MCP server, and refreshes it. One value can be
/// used for many servers: each has its own tokens, and a credential is never sent to an origin that it was not issued
/// for. Clones share all state.
///
/// ```
/// use linchpin_auth::{OAuth, login::ManualLogin};
///
/// let login = ManualLogin::new(
///     |url| eprintln!("open {url} and paste the URL that you are redirected to"),
///     || async { tokio::task::spawn_blocking(|| std::io::stdin().lines().next().unwrap_or(Ok(String::new()))).await? },
/// );
/// let oauth = OAuth::new().client_name("my-host").login(login);
/// # let _ = oauth;
/// ```
///
/// **The client** is chosen in the order of the specification: a pre-registered one ([`OAuth::pre_registered`]), else
/// the client metadata document ([`OAuth::client_metadata_url`]) if the authorization server supports it, else dynamic
/// registration.
///
/// **Reach.** URLs must be `https`, or `http` on the loopback interface. URLs named by a server (metadata,
/// authorization servers, their endpoints) must be at public addresses if the server is at a public one; public or
/// loopback if the server is at a loopback address; public or private, but not loopback and not link-local, if the
/// server is at a private address. The server's own origin is always allowed. [`OAuth::reach`] overrides this. A
/// response may be up to 256 KiB long and take up to 30 s; redirects are followed for metadata only, at most three, and
/// each is checked by the same rules.
#[derive(Clone)]
pub struct OAuth {
    shared: Arc<Shared>,
    sources: Arc<Mutex<HashMap<String, Arc<TokenSource>>>>,
    /// The source of the server that was asked about last, which is asked about with each request.
    last: Arc<Mutex<Last>>,
    web: WebOptions,
}

/// A server and its source.
type Last = Option<(Uri, Arc<TokenSource>)>;

impl Default for OAuth {
    fn default() -> OAuth {
        OAuth::new()
    }
}

impl OAuth {
    /// Creates a configuration that keeps tokens in memory and has no login.
    ///
    /// Set at least [`OAuth::login`], or one of [`OAuth::client_credentials`], [`OAuth::enterprise`] and
    /// [`OAuth::workload`].
    pub fn new() -> OAuth {
        let config = Config {
            login: None,
            login_deadline: Duration::from_secs(600),
            store: Arc::new(MemoryStore::new()),
            fetch: None,
            client_name: "linchpin".to_owned(),
            client_metadata_url: None,
            client_key: None,
            pre_registered: Vec::new(),
            non_interactive: None,
            dpop: false,
            scopes: None,
            reach: None,
            clock: Arc::new(|| SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())),
        };
        OAuth::of(config, WebOptions::default())
    }

    fn of(config: Config, web: WebOptions) -> OAuth {
        let fetch = config.fetch.clone().unwrap_or_else(|| Arc::new(WebFetch::new(&web)));
        OAuth { shared: Arc::new(Shared::new(config, fetch)), sources: Arc::default(), last: Arc::default(), web }
    }

    /// A change of the configuration resets all state: it comes before the first request.
    fn with(self, set: impl FnOnce(&mut Config)) -> OAuth {
        let mut config = self.shared.config.clone();
        set(&mut config);
        OAuth::of(config, self.web)
    }

    /// Sets how users log in. By default there is no login, and a server that requires one causes an error.
    #[must_use]
    pub fn login(self, login: impl Login) -> OAuth {
        self.with(|config| config.login = Some(Arc::new(login)))
    }

    /// Sets how long a login may take. Default ten minutes; a [`Login`] may have a shorter timeout of its own.
    #[must_use]
    pub fn login_deadline(self, deadline: Duration) -> OAuth {
        self.with(|config| config.login_deadline = deadline)
    }

    /// Sets where tokens are stored. Default: in memory.
    #[must_use]
    pub fn store(self, store: impl TokenStore) -> OAuth {
        self.with(|config| config.store = Arc::new(store))
    }

    /// Sets the name that users see when this client is registered. Default `linchpin`.
    #[must_use]
    pub fn client_name(self, name: impl Into<String>) -> OAuth {
        self.with(|config| config.client_name = name.into())
    }

    /// Sets the URL of the client metadata document, which is the client id for authorization servers that support it.
    ///
    /// It must be `https`, with a path. The document's `redirect_uris` must contain the login's redirect URI.
    #[must_use]
    pub fn client_metadata_url(self, address: impl Into<String>) -> OAuth {
        self.with(|config| config.client_metadata_url = Some(address.into()))
    }

    /// Sets the private key for `private_key_jwt`; its public key is in the client metadata document. Default: a public
    /// client.
    #[must_use]
    pub fn client_metadata_key(self, key: Signer) -> OAuth {
        self.with(|config| config.client_key = Some(key))
    }

    /// Adds a pre-registered client.
    ///
    /// `issuer` identifies the authorization server that the client is registered with, the only one that its
    /// credentials are sent to. Without an issuer, the client is used with the first authorization server, and with no
    /// other after that. `credential` is a secret, a key, or `Credential::None`. Several clients can be added, each
    /// with its issuer.
    #[must_use]
    pub fn pre_registered(
        self,
        issuer: Option<&str>,
        id: impl Into<String>,
        credential: impl Into<Credential>,
    ) -> OAuth {
        let client = PreRegistered { issuer: issuer.map(str::to_owned), id: id.into(), credential: credential.into() };
        self.with(|config| config.pre_registered.push(client))
    }

    /// Uses the grant `client_credentials`: the program acts on its own behalf, with a secret or a key.
    ///
    /// Tokens are kept in memory.
    ///
    /// ```
    /// let oauth = linchpin_auth::OAuth::new().client_credentials("my-service", "the-secret");
    /// # let _ = oauth;
    /// ```
    #[must_use]
    pub fn client_credentials(self, id: impl Into<String>, credential: impl Into<Credential>) -> OAuth {
        let non_interactive = NonInteractive::ClientCredentials { id: id.into(), credential: credential.into() };
        self.with(|config| config.non_interactive = Some(non_interactive))
    }

    /// Uses enterprise-managed authorization: the company's identity provider authenticates the user. Tokens are kept
    /// in memory.
    #[must_use]
    pub fn enterprise(self, enterprise: Enterprise) -> OAuth {
        self.with(|config| config.non_interactive = Some(NonInteractive::Enterprise(enterprise)))
    }

    /// Uses workload identity: the platform authenticates the program. Tokens are kept in memory.
    ///
    /// A rejected assertion is not retried.
    #[must_use]
    pub fn workload(self, workload: Workload) -> OAuth {
        self.with(|config| config.non_interactive = Some(NonInteractive::Workload(workload)))
    }

    /// Requires tokens that are bound to a key (DPoP, RFC 9449). Default: only if a server requires them.
    #[must_use]
    pub fn dpop(self, insist: bool) -> OAuth {
        self.with(|config| config.dpop = insist)
    }

    /// Sets the scopes to request instead of those that the server supports. Scopes of the challenge are always
    /// requested.
    #[must_use]
    pub fn scopes<S: AsRef<str>>(self, scopes: impl IntoIterator<Item = S>) -> OAuth {
        let scopes: Scopes = scopes.into_iter().collect();
        self.with(|config| config.scopes = Some(scopes))
    }

    /// Sets which addresses servers may name, for example [`Reach::PublicOrPrivate`] for known servers in a company's
    /// network.
    ///
    /// Default: derived from the server's address, see [`OAuth`].
    #[must_use]
    pub fn reach(self, reach: Reach) -> OAuth {
        self.with(|config| config.reach = Some(reach))
    }

    /// Sets options of the HTTP client, for example additional root certificates. This crate sets `reach` and
    /// `request_ms_max`.
    #[must_use]
    pub fn web(mut self, options: WebOptions) -> OAuth {
        self.web = options;
        self.with(|_| {})
    }

    /// Replaces the built-in HTTP client.
    #[must_use]
    pub fn fetch(self, fetch: impl Fetch) -> OAuth {
        self.with(|config| config.fetch = Some(Arc::new(fetch)))
    }

    /// Replaces the clock, in seconds since 1970, for tests.
    #[must_use]
    pub fn clock(self, clock: impl Fn() -> u64 + Send + Sync + 'static) -> OAuth {
        self.with(|config| config.clock = Arc::new(clock))
    }

    /// Logs in to a server now, regardless of stored tokens. Requests the server's challenge first.
    ///
    /// # Errors
    /// If no token was obtained. The message says why, and what to do.
    pub async fn login_to(&self, address: &str) -> Result<(), Error> {
        self.source(address)?.log_in_now().await
    }

    /// Removes every token and registration for a server, and returns how many there were.
    ///
    /// If the authorization server supports it, the refresh token (without one, the access token) is revoked; a failure
    /// to revoke it is ignored.
    ///
    /// # Errors
    /// If the URL is invalid or the store cannot be read or written.
    pub async fn logout(&self, address: &str) -> Result<usize, Error> {
        let source = self.source(address)?;
        let keys = source.keys().await?;
        for key in &keys {
            let stored = self.shared.config.store.load(key).await.unwrap_or_default();
            self.shared.config.store.forget(key).await.map_err(|e| {
                Error::new(crate::error::Kind::Store, format!("the stored tokens cannot be removed: {e}"))
            })?;
            if let Some(stored) = stored
                && let Err(error) = self.revoke(&source, key, &stored).await
            {
                tracing::info!(%error, issuer = key.issuer, "the tokens could not be revoked");
            }
        }
        source.drop_permit();
        Ok(keys.len())
    }

    /// Lists all stored entries, without their secrets.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub async fn status(&self) -> Result<Vec<Status>, Error> {
        let store = &self.shared.config.store;
        let failed = |e| Error::new(crate::error::Kind::Store, format!("the stored tokens cannot be read: {e}"));
        let mut all = Vec::new();
        for key in store.list().await.map_err(failed)? {
            let Some(stored) = store.load(&key).await.map_err(failed)? else { continue };
            let tokens = stored.tokens.as_ref();
            all.push(Status {
                client_id: stored.client.map(|client| client.client_id),
                logged_in: tokens.is_some(),
                expires_at: tokens.and_then(|tokens| tokens.expires_at),
                refreshable: tokens.is_some_and(|tokens| tokens.refresh_token.is_some()),
                scope: tokens.and_then(|tokens| tokens.scope.clone()),
                dpop: stored.dpop_key.is_some(),
                issuer: key.issuer,
                resource: key.resource,
            });
        }
        Ok(all)
    }

    /// Revokes a token (RFC 7009), best effort.
    async fn revoke(&self, source: &TokenSource, key: &StoreKey, stored: &Stored) -> Result<(), Error> {
        let Some(tokens) = &stored.tokens else { return Ok(()) };
        let (token, hint) = match &tokens.refresh_token {
            Some(token) => (token, "refresh_token"),
            None => (&tokens.access_token, "access_token"),
        };
        let asker = source.asker();
        let server = metadata::server(&asker, &key.issuer).await?;
        let Some(address) = &server.revocation_endpoint else { return Ok(()) };
        let config = &self.shared.config;
        let client = register::known(config, &server, stored.client.as_ref())?;
        let mut form = Form::empty();
        form.add("token", token.expose());
        form.add("token_type_hint", hint);
        let endpoint = Endpoint {
            now: config.now(),
            asker: &asker,
            nonces: &self.shared.nonces,
            issuer: &server.issuer,
            address,
            client: client.as_ref(),
            dpop: None,
        };
        // The response has no body, so that "not JSON" means success.
        match endpoint.ask(&form).await {
            Err(error) if error.is_refused() => Err(error),
            _ => Ok(()),
        }
    }

    fn source(&self, address: &str) -> Result<Arc<TokenSource>, Error> {
        let server = address::server(address)?;
        let name = server.as_str().trim_end_matches('/').to_owned();
        let mut sources = self.sources.lock().unwrap_or_else(PoisonError::into_inner);
        if sources.len() >= SOURCES_MAX && !sources.contains_key(&name) {
            // They start again from the store.
            sources.clear();
            *self.last.lock().unwrap_or_else(PoisonError::into_inner) = None;
        }
        let new = || Arc::new(TokenSource::new(server, self.shared.clone()));
        Ok(sources.entry(name).or_insert_with(new).clone())
    }

    fn source_of(&self, head: &Parts) -> Result<Arc<TokenSource>, Error> {
        let server = head.extensions.get::<BelongsTo>().map_or(&head.uri, |server| &server.0);
        if let Some((last, source)) = &*self.last.lock().unwrap_or_else(PoisonError::into_inner)
            && last == server
        {
            return Ok(source.clone());
        }
        let source = self.source(&server.to_string())?;
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some((server.clone(), source.clone()));
        Ok(source)
    }
}

impl Authorizer for OAuth {
    fn authorize<'a>(&'a self, head: &'a mut Parts) -> BoxFuture<'a, Result<(), Arc<str>>> {
        Box::pin(async move {
            // No tokens for URLs that must not get any; if the server requires one, `answered` explains why.
            let Ok(source) = self.source_of(head) else { return Ok(()) };
            Ok(source.authorize(head).await?)
        })
    }

    fn answered<'a>(
        &'a self,
        request: &'a Parts,
        status: StatusCode,
        headers: &'a HeaderMap,
    ) -> BoxFuture<'a, Result<bool, Arc<str>>> {
        Box::pin(async move {
            match self.source_of(request) {
                Ok(source) => Ok(source.answered(request, status, headers).await?),
                Err(error) if status == StatusCode::UNAUTHORIZED => Err(error.into()),
                Err(_) => Ok(false),
            }
        })
    }
}

impl fmt::Debug for OAuth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OAuth").field("config", &self.shared.config).finish_non_exhaustive()
    }
}

/// The stored state for one authorization server and resource, without secrets.
///
/// ```
/// use linchpin_auth::{Error, OAuth};
///
/// async fn show(oauth: &OAuth) -> Result<(), Error> {
///     for status in oauth.status().await? {
///         println!("{}: {}", status.resource, if status.logged_in { "logged in" } else { "logged out" });
///     }
///     Ok(())
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Status {
    /// The issuer identifier of the authorization server.
    pub issuer: String,
    /// The resource identifier of the MCP server.
    pub resource: String,
    /// The client's id there, if it was registered dynamically.
    pub client_id: Option<String>,
    /// Whether there are tokens.
    pub logged_in: bool,
    /// When the access token expires, in seconds since 1970; `None` if unknown.
    pub expires_at: Option<u64>,
    /// Whether the token can be refreshed without a login.
    pub refreshable: bool,
    /// The granted scope.
    pub scope: Option<String>,
    /// Whether the tokens are bound to a key.
    pub dpop: bool,
}

/// Maximum servers in memory; beyond it the state is reloaded from the store.
const SOURCES_MAX: usize = 256;
