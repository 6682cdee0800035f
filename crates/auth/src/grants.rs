//! Grants without a browser: for programs that act on their own behalf, or for a user who is authenticated elsewhere.
//!
//! The extensions of the specification: OAuth client credentials, enterprise-managed authorization (an identity
//! provider's ID-JAG), and workload identity (RFC 7523 with an assertion of the platform).

use crate::client::Credential;
use crate::error::Error;
use linchpin_core::service::BoxFuture;
use linchpin_oauth::Secret;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use tokio::io::AsyncReadExt as _;

/// How a program gets tokens without a user.
#[derive(Clone, Debug)]
pub(crate) enum NonInteractive {
    ClientCredentials { id: String, credential: Credential },
    Enterprise(Enterprise),
    Workload(Workload),
}

/// An assertion (a JWT or a SAML assertion) from a party that the authorization server trusts. It is exchanged for
/// tokens.
///
/// ```
/// use linchpin_auth::Assertion;
///
/// let file = Assertion::file("/var/run/secrets/tokens/mcp");
/// let requested = Assertion::from_fn(|purpose| async move {
///     // Request one from the platform, with this authorization server as its audience.
///     Ok(format!("an assertion for {}", purpose.issuer))
/// });
/// # let _ = (file, requested);
/// ```
#[derive(Clone)]
pub struct Assertion(Source);

/// The purpose of an [`Assertion`], passed to the function of [`Assertion::from_fn`].
///
/// # Example
///
/// ```
/// use linchpin_auth::{Assertion, AssertionFor, OAuth, Workload};
///
/// async fn request(purpose: AssertionFor) -> Result<String, String> {
///     // Request an assertion from the platform, with the authorization server as its audience.
///     Ok(format!("an assertion for {} at {}", purpose.resource, purpose.issuer))
/// }
///
/// let oauth = OAuth::new().workload(Workload::new(Assertion::from_fn(request)));
/// # let _ = oauth;
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AssertionFor {
    /// The issuer identifier of the authorization server that the assertion is sent to.
    pub issuer: String,
    /// The resource identifier of the MCP server.
    pub resource: String,
}

type Asked = dyn Fn(AssertionFor) -> BoxFuture<'static, Result<Secret, String>> + Send + Sync;

#[derive(Clone)]
enum Source {
    Text(Secret),
    File(PathBuf),
    Ask(Arc<Asked>),
}

impl Assertion {
    /// Reads the assertion from a file at each use, for platforms that rotate it.
    ///
    /// At most 64 KiB; surrounding whitespace is ignored.
    pub fn file(path: impl Into<PathBuf>) -> Assertion {
        Assertion(Source::File(path.into()))
    }

    /// Calls a function at each use. Its error is shown to users, so it must not contain a credential.
    pub fn from_fn<F>(ask: impl Fn(AssertionFor) -> F + Send + Sync + 'static) -> Assertion
    where
        F: Future<Output = Result<String, String>> + Send + 'static,
    {
        Assertion(Source::Ask(Arc::new(move |what| {
            let asked = ask(what);
            Box::pin(async move { asked.await.map(Secret::from) })
        })))
    }

    /// The assertion's text.
    pub(crate) async fn get(&self, purpose: AssertionFor) -> Result<Secret, Error> {
        match &self.0 {
            Source::Text(text) => Ok(text.clone()),
            Source::File(path) => {
                let failed = |e| Error::setup(format!("the assertion cannot be read from {}: {e}", path.display()));
                let file = tokio::fs::File::open(path).await.map_err(failed)?;
                let mut text = String::new();
                file.take(ASSERTION_BYTES_MAX).read_to_string(&mut text).await.map_err(failed)?;
                let trimmed = Secret::from(text.trim());
                zeroize::Zeroize::zeroize(&mut text);
                if trimmed.is_empty() {
                    return Err(Error::setup(format!("the assertion in {} is empty", path.display())));
                }
                Ok(trimmed)
            }
            Source::Ask(ask) => ask(purpose)
                .await
                .map_err(|why| Error::setup(format!("cannot get an assertion for the token request: {why}"))),
        }
    }
}

const ASSERTION_BYTES_MAX: u64 = 64 * 1024;

impl From<&str> for Assertion {
    fn from(text: &str) -> Assertion {
        Assertion(Source::Text(text.into()))
    }
}

impl From<String> for Assertion {
    fn from(text: String) -> Assertion {
        Assertion(Source::Text(text.into()))
    }
}

impl From<Secret> for Assertion {
    fn from(text: Secret) -> Assertion {
        Assertion(Source::Text(text))
    }
}

impl fmt::Debug for Assertion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Source::Text(_) => f.write_str("Assertion(•••)"),
            Source::File(path) => f.debug_tuple("Assertion").field(path).finish(),
            Source::Ask(_) => f.write_str("Assertion(callback)"),
        }
    }
}

/// Enterprise-managed authorization, where the user has already logged in at the company's identity provider.
///
/// The identity provider authenticates the user to the authorization server of the MCP server.
///
/// ```
/// use linchpin_auth::{Assertion, Enterprise, OAuth};
///
/// let id_token = Assertion::file("/run/user/1000/id-token");
/// let oauth = OAuth::new().enterprise(Enterprise::from_issuer("https://idp.example", "my-host", id_token));
/// # let _ = oauth;
/// ```
#[derive(Clone, Debug)]
pub struct Enterprise {
    pub(crate) provider: Provider,
    pub(crate) provider_client: (String, Credential),
    pub(crate) identity: Assertion,
    pub(crate) identity_type: &'static str,
    pub(crate) client: Option<(String, Credential)>,
}

#[derive(Clone, Debug)]
pub(crate) enum Provider {
    Endpoint(String),
    Issuer(String),
}

impl Enterprise {
    /// Uses the identity provider with this token endpoint.
    ///
    /// `client_id` is this program's id there, and `id_token` the ID token of the user's login.
    pub fn new(
        token_endpoint: impl Into<String>,
        client_id: impl Into<String>,
        id_token: impl Into<Assertion>,
    ) -> Enterprise {
        Enterprise {
            provider: Provider::Endpoint(token_endpoint.into()),
            provider_client: (client_id.into(), Credential::None),
            identity: id_token.into(),
            identity_type: "urn:ietf:params:oauth:token-type:id_token",
            client: None,
        }
    }

    /// Uses the identity provider with this issuer identifier; its metadata names the token endpoint.
    pub fn from_issuer(
        issuer: impl Into<String>,
        client_id: impl Into<String>,
        id_token: impl Into<Assertion>,
    ) -> Enterprise {
        Enterprise { provider: Provider::Issuer(issuer.into()), ..Enterprise::new("", client_id, id_token) }
    }

    /// Sets this program's credential at the identity provider. Default: none, a public client.
    #[must_use]
    pub fn provider_credential(mut self, credential: impl Into<Credential>) -> Enterprise {
        self.provider_client.1 = credential.into();
        self
    }

    /// Sets the client at the authorization server of the MCP server. Default: the one of `OAuth::pre_registered` or
    /// `OAuth::client_metadata_url`.
    #[must_use]
    pub fn client(mut self, id: impl Into<String>, credential: impl Into<Credential>) -> Enterprise {
        self.client = Some((id.into(), credential.into()));
        self
    }

    /// Treats the user's identity as a SAML 2.0 assertion instead of an ID token.
    #[must_use]
    pub fn saml(mut self) -> Enterprise {
        self.identity_type = "urn:ietf:params:oauth:token-type:saml2";
        self
    }
}

/// Workload identity: the platform that a program runs on authenticates it.
///
/// ```
/// use linchpin_auth::{Assertion, OAuth, Workload};
///
/// let token = Assertion::file("/var/run/secrets/tokens/mcp");
/// let oauth = OAuth::new().workload(Workload::new(token));
/// # let _ = oauth;
/// ```
#[derive(Clone, Debug)]
pub struct Workload {
    pub(crate) client_id: Option<String>,
    pub(crate) assertion: Assertion,
    /// The assertion that was rejected last: it would be rejected again.
    pub(crate) refused: Arc<Mutex<Option<Secret>>>,
}

impl Workload {
    /// Uses the platform's assertion. If the platform rotates it, use [`Assertion::file`].
    pub fn new(assertion: impl Into<Assertion>) -> Workload {
        Workload { client_id: None, assertion: assertion.into(), refused: Arc::default() }
    }

    /// Sets the client id, for authorization servers that do not derive it from the assertion.
    #[must_use]
    pub fn client_id(mut self, id: impl Into<String>) -> Workload {
        self.client_id = Some(id.into());
        self
    }
}
