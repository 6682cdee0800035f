//! What programs set up and hand to a client.

use crate::address;
use crate::client::Credential;
use crate::client::Form;
use crate::config::{Config, PreRegistered};
use crate::error::Error;
use crate::fetch::{Fetch, WebFetch};
use crate::grants::{Enterprise, Machine, Workload};
use crate::jwt::Signer;
use crate::keeper::{Keeper, Shared};
use crate::login::Login;
use crate::metadata;
use crate::register;
use crate::scope::Scopes;
use crate::store::{MemoryStore, StoreKey, Stored, TokenStore};
use crate::token::Endpoint;
use http::request::Parts;
use http::{HeaderMap, StatusCode};
use linchpin_proto::link::{Authorizer, BelongsTo};
use linchpin_proto::service::BoxFuture;
use linchpin_transport::web::{Reach, WebOptions};
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Authorization for requests to MCP servers.
///
/// Does nothing until a server answers that it wants authorization. Then it finds out which authorization server decides,
/// gets a token there in the way that is set up, puts it on every request to that server and renews it. One value may
/// serve many servers: each has tokens of its own, and no credential goes to an origin it is not for. Clones share
/// everything.
///
/// ```
/// use linchpin_auth::{OAuth, login::Paste};
///
/// let login = Paste::new(
///     |url| eprintln!("open {url} and paste the address you are sent to"),
///     || async { tokio::task::spawn_blocking(|| std::io::stdin().lines().next().unwrap_or(Ok(String::new()))).await? },
/// );
/// let oauth = OAuth::new().client_name("my-host").login(login);
/// # let _ = oauth;
/// ```
///
/// **Which client it is** is settled as the specification says: one registered beforehand ([`OAuth::pre_registered`]),
/// else the one of the metadata document ([`OAuth::client_metadata_url`]) where the authorization server takes that, else
/// one that is registered at once.
///
/// **Where it asks.** Addresses must be `https`, or `http` on this machine. What a server names (metadata, authorization
/// servers, their endpoints) must be at public addresses when the server is on the internet, public or on this machine
/// when the server is on this machine, and public or private, but not on this machine and not link-local, when the server is
/// at a private address; the server's own origin may always be asked. [`OAuth::reach`] overrules that. An answer may have
/// 256 KiB and take 30 s; redirects are followed for metadata only, at most three, each held against the same rules.
#[derive(Clone)]
pub struct OAuth {
    shared: Arc<Shared>,
    keepers: Arc<Mutex<HashMap<String, Arc<Keeper>>>>,
    web: WebOptions,
}

impl Default for OAuth {
    fn default() -> OAuth {
        OAuth::new()
    }
}

impl OAuth {
    /// Authorization that keeps tokens in memory and has no login: set up at least [`OAuth::login`], or one of
    /// [`OAuth::client_credentials`], [`OAuth::enterprise`] and [`OAuth::workload`].
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
            machine: None,
            dpop: false,
            scopes: None,
            reach: None,
            clock: Arc::new(|| SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())),
        };
        OAuth::of(config, WebOptions::default())
    }

    fn of(config: Config, web: WebOptions) -> OAuth {
        let fetch = config.fetch.clone().unwrap_or_else(|| Arc::new(WebFetch::new(&web)));
        OAuth { shared: Arc::new(Shared::new(config, fetch)), keepers: Arc::default(), web }
    }

    /// Setting something up begins anew: it comes before the first request.
    fn with(self, set: impl FnOnce(&mut Config)) -> OAuth {
        let mut config = self.shared.config.clone();
        set(&mut config);
        OAuth::of(config, self.web)
    }

    /// How people log in. Default: they cannot, and a server that wants that is an error which says so.
    #[must_use]
    pub fn login(self, login: impl Login) -> OAuth {
        self.with(|config| config.login = Some(Arc::new(login)))
    }

    /// How long a person may take for a login. Default ten minutes; a login may have a shorter limit of its own.
    #[must_use]
    pub fn login_deadline(self, deadline: Duration) -> OAuth {
        self.with(|config| config.login_deadline = deadline)
    }

    /// Where tokens are kept between runs. Default: in memory.
    #[must_use]
    pub fn store(self, store: impl TokenStore) -> OAuth {
        self.with(|config| config.store = Arc::new(store))
    }

    /// The name people are shown when this program is registered. Default `linchpin`.
    #[must_use]
    pub fn client_name(self, name: impl Into<String>) -> OAuth {
        self.with(|config| config.client_name = name.into())
    }

    /// The address of this program's client metadata document, which is its client id wherever the authorization server
    /// takes such: `https`, with a path. Its `redirect_uris` must hold the login's redirect URI.
    #[must_use]
    pub fn client_metadata_url(self, address: impl Into<String>) -> OAuth {
        self.with(|config| config.client_metadata_url = Some(address.into()))
    }

    /// The private key whose public half the client metadata document has, for `private_key_jwt`. Default: a public
    /// client.
    #[must_use]
    pub fn client_metadata_key(self, key: Signer) -> OAuth {
        self.with(|config| config.client_key = Some(key))
    }

    /// A client registered beforehand. `issuer` is the identifier of the authorization server it is registered with, and
    /// nobody else gets its credentials; without one it is used with the first authorization server there is, and then
    /// with no other. `credential` is a secret, a key, or `Credential::None`. Several may be added, with an issuer each.
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

    /// The program acts for itself (grant `client_credentials`), with a secret or a key. Its tokens stay in memory.
    #[must_use]
    pub fn client_credentials(self, id: impl Into<String>, credential: impl Into<Credential>) -> OAuth {
        let machine = Machine::ClientCredentials { id: id.into(), credential: credential.into() };
        self.with(|config| config.machine = Some(machine))
    }

    /// The company's identity provider vouches for the person. Tokens stay in memory.
    #[must_use]
    pub fn enterprise(self, enterprise: Enterprise) -> OAuth {
        self.with(|config| config.machine = Some(Machine::Enterprise(enterprise)))
    }

    /// The platform states which program this is. Tokens stay in memory. A refused assertion is not tried again.
    #[must_use]
    pub fn workload(self, workload: Workload) -> OAuth {
        self.with(|config| config.machine = Some(Machine::Workload(workload)))
    }

    /// Insists on tokens that are bound to a key (DPoP, RFC 9449). Default: where a server wants them.
    #[must_use]
    pub fn dpop(self, insist: bool) -> OAuth {
        self.with(|config| config.dpop = insist)
    }

    /// Scopes to ask for in place of those the server says it supports. What the server's challenge names is asked for
    /// in any case.
    #[must_use]
    pub fn scopes<S: AsRef<str>>(self, scopes: impl IntoIterator<Item = S>) -> OAuth {
        let scopes: Scopes = scopes.into_iter().collect();
        self.with(|config| config.scopes = Some(scopes))
    }

    /// Where servers may send us, whatever their own address is: [`Reach::PublicOrPrivate`] for servers inside a company's
    /// network that are known by name. Default: what follows from the server's address, see above.
    #[must_use]
    pub fn reach(self, reach: Reach) -> OAuth {
        self.with(|config| config.reach = Some(reach))
    }

    /// Options of the HTTP client, for example further root certificates. `reach` and `request_ms_max` are set by this
    /// crate.
    #[must_use]
    pub fn web(mut self, options: WebOptions) -> OAuth {
        self.web = options;
        self.with(|_| {})
    }

    /// Another HTTP client in place of the built-in one.
    #[must_use]
    pub fn fetch(self, fetch: impl Fetch) -> OAuth {
        self.with(|config| config.fetch = Some(Arc::new(fetch)))
    }

    /// Another clock, in seconds since 1970, for tests.
    #[must_use]
    pub fn clock(self, clock: impl Fn() -> u64 + Send + Sync + 'static) -> OAuth {
        self.with(|config| config.clock = Arc::new(clock))
    }

    /// Logs in to a server now, whatever is stored. The server is asked first what it wants.
    ///
    /// # Errors
    /// When there is no token in the end: why, and what to do.
    pub async fn login_to(&self, address: &str) -> Result<(), Error> {
        self.keeper(address)?.log_in_now().await
    }

    /// Forgets every token and registration for a server; where the authorization server can, it is told to revoke the
    /// refresh token, but that is not waited for to succeed. Returns how many there were.
    ///
    /// # Errors
    /// When the address cannot be used or the store cannot be read or written.
    pub async fn logout(&self, address: &str) -> Result<usize, Error> {
        let keeper = self.keeper(address)?;
        let keys = keeper.keys().await?;
        for key in &keys {
            let stored = self.shared.config.store.load(key).await.unwrap_or_default();
            self.shared.config.store.forget(key).await.map_err(|e| {
                Error::new(crate::error::Kind::Store, format!("the stored tokens cannot be removed: {e}"))
            })?;
            if let Some(stored) = stored
                && let Err(error) = self.revoke(&keeper, key, &stored).await
            {
                tracing::info!(%error, issuer = key.issuer, "the tokens could not be revoked");
            }
        }
        keeper.drop_permit();
        Ok(keys.len())
    }

    /// Everything that is stored, without the secrets.
    ///
    /// # Errors
    /// When the store cannot be read.
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

    /// RFC 7009, as far as it goes.
    async fn revoke(&self, keeper: &Keeper, key: &StoreKey, stored: &Stored) -> Result<(), Error> {
        let Some(tokens) = &stored.tokens else { return Ok(()) };
        let (token, hint) = match &tokens.refresh_token {
            Some(token) => (token, "refresh_token"),
            None => (&tokens.access_token, "access_token"),
        };
        let asker = keeper.asker();
        let server = metadata::server(&asker, &key.issuer).await?;
        let Some(address) = &server.revocation_endpoint else { return Ok(()) };
        let config = &self.shared.config;
        let client = register::known(config, &server, stored.client.as_ref())?;
        let mut form = Form::empty();
        form.add("token", token.expose());
        form.add("token_type_hint", hint);
        let endpoint = Endpoint {
            config,
            asker: &asker,
            nonces: &self.shared.nonces,
            issuer: &server.issuer,
            address,
            client: client.as_ref(),
            dpop: None,
        };
        // The answer's body says nothing, so that "no JSON" is what success looks like.
        match endpoint.ask(&form).await {
            Err(error) if error.is_refused() => Err(error),
            _ => Ok(()),
        }
    }

    fn keeper(&self, address: &str) -> Result<Arc<Keeper>, Error> {
        let server = address::server(address)?;
        let name = server.as_str().trim_end_matches('/').to_owned();
        let mut keepers = self.keepers.lock().unwrap_or_else(PoisonError::into_inner);
        if keepers.len() >= KEEPERS_MAX && !keepers.contains_key(&name) {
            // They take up again what the store has.
            keepers.clear();
        }
        let new = || Arc::new(Keeper::new(server, self.shared.clone()));
        Ok(keepers.entry(name).or_insert_with(new).clone())
    }

    fn keeper_of(&self, head: &Parts) -> Result<Arc<Keeper>, Error> {
        let named = head.extensions.get::<BelongsTo>().map(|server| &server.0);
        self.keeper(&named.unwrap_or(&head.uri).to_string())
    }
}

impl Authorizer for OAuth {
    fn authorize<'a>(&'a self, head: &'a mut Parts) -> BoxFuture<'a, Result<(), Arc<str>>> {
        Box::pin(async move {
            // Where tokens may not go, there are none; if the server wants one, `answered` says why.
            let Ok(keeper) = self.keeper_of(head) else { return Ok(()) };
            Ok(keeper.authorize(head).await?)
        })
    }

    fn answered<'a>(
        &'a self,
        request: &'a Parts,
        status: StatusCode,
        headers: &'a HeaderMap,
    ) -> BoxFuture<'a, Result<bool, Arc<str>>> {
        Box::pin(async move {
            match self.keeper_of(request) {
                Ok(keeper) => Ok(keeper.answered(request, status, headers).await?),
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

/// What is stored for one authorization server and one resource, without its secrets.
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
    /// When the access token ends, in seconds since 1970; `None` when nobody said.
    pub expires_at: Option<u64>,
    /// Whether it can be renewed without a login.
    pub refreshable: bool,
    /// What was granted.
    pub scope: Option<String>,
    /// Whether the tokens are bound to a key.
    pub dpop: bool,
}

/// Servers that one value serves at a time; beyond that it begins anew with what the store has.
const KEEPERS_MAX: usize = 256;
