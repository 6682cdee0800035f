//! OAuth with an authorization server whose endpoints are known, for APIs that are not MCP servers.

use crate::address;
use crate::client::{Client, Credential, Form, Method};
use crate::error::Error;
use crate::fetch::{Asker, Fetch, WebFetch};
use crate::flow::{Request, redirect_uri};
use crate::jwt::Signer;
use crate::login::Login;
use crate::metadata;
use crate::store::Tokens;
use crate::token::{Endpoint, Nonces};
use linchpin_oauth::{AuthorizationServerMetadata as Server, Scopes, Secret};
use linchpin_web::{Reach, WebOptions};
use serde_json::{Map, Value};
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How long the user may take to log in.
const LOGIN_S_MAX: Duration = Duration::from_secs(600);

/// An authorization server with known endpoints, and a client that is registered with it.
///
/// Use it for APIs that are not MCP servers and publish no metadata, such as Google's. For MCP servers use
/// [`OAuth`](crate::OAuth).
///
/// Logins use PKCE and a `state`, but neither discovery nor a resource indicator. A client with a secret sends it in
/// the body of token requests (`client_secret_post`). The endpoints must be `https`, or `http` on the loopback
/// interface; they may be at any address.
///
/// ```
/// use linchpin_auth::{KnownServer, Secret, login::Browser};
///
/// # async fn example() -> Result<(), linchpin_auth::Error> {
/// let (authorize, token) = ("https://accounts.example/authorize", "https://accounts.example/token");
/// let server = KnownServer::new("https://accounts.example", authorize, token).client("my-app", "the-secret");
/// let login = Browser::new().notice(|url| eprintln!("log in at {url}"));
/// let tokens = server.login(&login, ["files.read"]).await?;
/// if let Some(refresh_token) = &tokens.refresh_token {
///     let next = server.refresh(refresh_token).await?;
///     println!("valid until {:?}", next.expires_at);
/// }
/// # Ok(()) }
/// # let _ = example();
/// ```
#[derive(Clone)]
pub struct KnownServer {
    server: Server,
    client: Option<(String, Credential)>,
    parameters: Vec<(&'static str, String)>,
    fetch: Arc<dyn Fetch>,
}

impl KnownServer {
    /// Creates a server from its issuer identifier, which callbacks may contain, and its two endpoints.
    pub fn new(
        issuer: impl Into<String>,
        authorization_endpoint: impl Into<String>,
        token_endpoint: impl Into<String>,
    ) -> KnownServer {
        let methods = [Method::Post, Method::Jwt].map(|method| method.name().to_owned());
        let server = Server::new(issuer).with(|server| {
            server.authorization_endpoint = Some(authorization_endpoint.into());
            server.token_endpoint = Some(token_endpoint.into());
            server.token_endpoint_auth_methods_supported = Some(methods.to_vec());
        });
        let fetch = Arc::new(WebFetch::new(&WebOptions::default()));
        KnownServer { server, client: None, parameters: Vec::new(), fetch }
    }

    /// Sets the client that is registered there.
    #[must_use]
    pub fn client(self, id: impl Into<String>, credential: impl Into<Credential>) -> KnownServer {
        KnownServer { client: Some((id.into(), credential.into())), ..self }
    }

    /// Adds a parameter to authorization URLs, for example `access_type`.
    #[must_use]
    pub fn parameter(mut self, name: &'static str, value: impl Into<String>) -> KnownServer {
        self.parameters.push((name, value.into()));
        self
    }

    /// Sets options of the HTTP client, for example additional root certificates. This crate sets `reach` and
    /// `request_ms_max`.
    #[must_use]
    pub fn web(self, options: &WebOptions) -> KnownServer {
        KnownServer { fetch: Arc::new(WebFetch::new(options)), ..self }
    }

    /// Replaces the built-in HTTP client.
    #[must_use]
    pub fn fetch(self, fetch: impl Fetch) -> KnownServer {
        KnownServer { fetch: Arc::new(fetch), ..self }
    }

    /// Logs a user in, and returns the tokens. Nothing is stored.
    ///
    /// # Errors
    /// If no client is set, if the login fails, or if the callback belongs to another login or another server.
    pub async fn login<S: AsRef<str>>(
        &self,
        login: &dyn Login,
        scopes: impl IntoIterator<Item = S>,
    ) -> Result<Tokens, Error> {
        let scopes: Scopes = scopes.into_iter().collect();
        let redirect_uri = redirect_uri(login).await?;
        let client =
            self.registered()?.ok_or_else(|| Error::setup("a login needs a client: set KnownServer::client"))?;
        let request = Request::new(&self.server, &redirect_uri);
        let address = request.address(&self.server, &client, Some(&scopes), &self.parameters)?;
        let form = request.redeem(login, &address, LOGIN_S_MAX).await?;
        self.tokens(&form, Some(&client)).await
    }

    /// Requests new tokens. The result contains a new refresh token only if the server rotates them.
    ///
    /// # Errors
    /// If the server is unreachable or rejects the request, with the code `invalid_grant` once the token is revoked.
    /// Without a client, the request is sent nevertheless, and names none.
    pub async fn refresh(&self, refresh_token: &Secret) -> Result<Tokens, Error> {
        let client = self.registered()?;
        let mut form = Form::new("refresh_token");
        form.add("refresh_token", refresh_token.expose());
        self.tokens(&form, client.as_ref()).await
    }

    /// Requests tokens with an assertion that is signed with this key (RFC 7523, section 2.1), for service accounts.
    ///
    /// The required `claims` depend on the server; see its documentation. `iat` and `exp`, one hour later, are added.
    ///
    /// # Errors
    /// If the server is unreachable or rejects the request.
    pub async fn assertion(&self, signer: &Signer, claims: &Map<String, Value>) -> Result<Tokens, Error> {
        let now = now();
        let mut claims = claims.clone();
        claims.insert("iat".to_owned(), now.into());
        claims.insert("exp".to_owned(), now.saturating_add(ASSERTION_S).into());
        let mut form = Form::new("urn:ietf:params:oauth:grant-type:jwt-bearer");
        form.add("assertion", &signer.sign("JWT", &Value::Object(claims)));
        self.tokens(&form, None).await
    }

    fn registered(&self) -> Result<Option<Client>, Error> {
        self.client.as_ref().map(|(id, credential)| Client::new(id, credential, &self.server)).transpose()
    }

    async fn tokens(&self, form: &Form, client: Option<&Client>) -> Result<Tokens, Error> {
        let address = metadata::token_endpoint(&self.server)?;
        // Whoever configured it knows where it is.
        let (fetch, reach) = (self.fetch.clone(), Some(Reach::Any));
        let asker = Asker { fetch, reach, server: address::server(address)? };
        let (nonces, issuer) = (Nonces::default(), self.server.issuer.as_str());
        let endpoint = Endpoint { now: now(), asker: &asker, nonces: &nonces, issuer, address, client, dpop: None };
        endpoint.tokens(form, None).await
    }
}

impl fmt::Debug for KnownServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KnownServer")
            .field("server", &self.server)
            .field("client", &self.client)
            .finish_non_exhaustive()
    }
}

/// Lifetime of a signed statement: the longest that Google takes.
const ASSERTION_S: u64 = 3_600;

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
