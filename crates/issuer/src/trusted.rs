//! Trusted third parties: identity providers of enterprises, and issuers of workload tokens.

use crate::key_source::KeySource;
use crate::person::SetupError;
use linchpin_oauth::{Claims, JwkSet};
use serde_json::Value;

/// An enterprise's identity provider, which decides which clients may act on behalf of which users (enterprise-managed
/// authorization).
///
/// Clients present its assertions (ID-JAG), and users are not asked for consent.
///
/// ```
/// use linchpin_issuer::{Client, IdentityProvider, Issuer};
///
/// let issuer = Issuer::new("https://mcp.example.com")
///     .only_machines()
///     .enterprise(IdentityProvider::new("https://idp.example.com"))
///     .client(Client::new("editor").secret("…"))
///     .scope("files:read", "read your files");
/// assert!(issuer.check().is_ok());
/// ```
#[derive(Clone, Debug)]
pub struct IdentityProvider {
    pub(crate) keys: KeySource,
}

impl IdentityProvider {
    /// Trusts the provider with this issuer identifier. Its keys are found through its metadata.
    pub fn new(issuer: impl Into<String>) -> IdentityProvider {
        IdentityProvider { keys: KeySource::of(issuer.into()) }
    }

    /// Uses these keys instead of fetching them.
    #[must_use]
    pub fn keys(mut self, keys: JwkSet) -> IdentityProvider {
        self.keys.given(keys);
        self
    }

    /// Fetches the keys from this URL.
    #[must_use]
    pub fn keys_at(mut self, url: impl Into<String>) -> IdentityProvider {
        self.keys.at(url.into());
        self
    }
}

impl From<&str> for IdentityProvider {
    fn from(issuer: &str) -> IdentityProvider {
        IdentityProvider::new(issuer)
    }
}

/// Programs that authenticate with a token of the platform that they run on (workload identity), such as a Kubernetes
/// service account or a GitHub Actions job, and have no user, client or secret.
///
/// ```
/// use linchpin_issuer::{Issuer, Workload};
///
/// let nightly = Workload::new("https://token.actions.githubusercontent.com")
///     .subject("repo:acme/files:ref:refs/heads/main")
///     .claim("repository_owner_id", "4711")
///     .scopes(["files:read"]);
/// let issuer = Issuer::new("https://mcp.example.com").only_machines().workload(nightly);
/// assert!(issuer.check().is_ok());
/// ```
#[derive(Clone, Debug)]
pub struct Workload {
    pub(crate) keys: KeySource,
    subjects: Vec<String>,
    claims: Vec<(String, String)>,
    pub(crate) scopes: Vec<String>,
}

impl Workload {
    /// Trusts tokens of this issuer. Select the programs with [`Workload::subject`].
    pub fn new(issuer: impl Into<String>) -> Workload {
        let keys = KeySource::of(issuer.into());
        Workload { keys, subjects: Vec::new(), claims: Vec::new(), scopes: Vec::new() }
    }

    /// Admits tokens with exactly this `sub`. At least one subject is required; if several are set, each of them is
    /// admitted.
    #[must_use]
    pub fn subject(mut self, subject: impl Into<String>) -> Workload {
        self.subjects.push(subject.into());
        self
    }

    /// Also requires this claim with this string value.
    #[must_use]
    pub fn claim(mut self, name: impl Into<String>, value: impl Into<String>) -> Workload {
        self.claims.push((name.into(), value.into()));
        self
    }

    /// Grants these scopes.
    #[must_use]
    pub fn scopes<S: Into<String>>(mut self, scopes: impl IntoIterator<Item = S>) -> Workload {
        self.scopes = scopes.into_iter().map(Into::into).collect();
        self
    }

    /// Uses these keys instead of fetching them.
    #[must_use]
    pub fn keys(mut self, keys: JwkSet) -> Workload {
        self.keys.given(keys);
        self
    }

    /// Fetches the keys from this URL.
    #[must_use]
    pub fn keys_at(mut self, url: impl Into<String>) -> Workload {
        self.keys.at(url.into());
        self
    }

    /// Whether verified claims are those of such a program.
    pub(crate) fn fits(&self, claims: &Claims) -> bool {
        let has = |(name, value): &(String, String)| claims.get(name).and_then(Value::as_str) == Some(value.as_str());
        claims.text("sub").is_some_and(|sub| self.subjects.iter().any(|one| one == sub)) && self.claims.iter().all(has)
    }

    pub(crate) fn check(&self) -> Result<(), SetupError> {
        let issuer = self.keys.issuer();
        if self.subjects.is_empty() {
            let why = format!("a workload of {issuer} needs a subject, or every program there could come in");
            return Err(SetupError::new(why));
        }
        check(&self.keys)
    }
}

/// Checks where keys come from.
pub(crate) fn check(keys: &KeySource) -> Result<(), SetupError> {
    match keys.is_safe() {
        true => Ok(()),
        false => Err(SetupError::new(format!("the keys of {} must be at an https address", keys.issuer()))),
    }
}
