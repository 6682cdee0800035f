//! The authenticated sender of a request.

use serde::de::DeserializeOwned;
use serde_json::Value;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// The authenticated sender of a request: a user, or a program that acts for itself. Cheap to clone.
///
/// A [`Gate`](crate::gate::Gate) returns it, or a layer in front of a mounted service inserts it into the request's
/// extensions. Handlers read it with `cx.principal()`; sessions and the state of multi-round-trip requests belong to its
/// [`identity`](Principal::identity).
///
/// ```
/// use linchpin_core::Principal;
///
/// let ada = Principal::new("ada")
///     .with_issuer("https://login.example.com")
///     .with_client("desktop")
///     .with_scopes(["files:read", "files:write"]);
/// assert_eq!(ada.subject(), "ada");
/// assert!(ada.has_scope("files:read") && !ada.has_scope("admin"));
/// assert_ne!(ada.identity(), Principal::new("ada").identity());
/// ```
#[derive(Clone)]
pub struct Principal(Arc<Inner>);

#[derive(Clone)]
struct Inner {
    subject: Box<str>,
    client: Option<Box<str>>,
    issuer: Option<Box<str>>,
    identity: Arc<str>,
    scopes: Box<[Box<str>]>,
    expires: Option<SystemTime>,
    /// A JSON object as text, which is smaller than its tree.
    claims: Option<Box<str>>,
    revoked: Option<Arc<dyn Fn() -> bool + Send + Sync>>,
}

impl Principal {
    /// Creates a principal with this subject: a user's stable identifier, or that of a program that acts for itself.
    pub fn new(subject: impl Into<Box<str>>) -> Principal {
        let subject = subject.into();
        let identity = escaped(&subject).into();
        Principal(Arc::new(Inner {
            subject,
            client: None,
            issuer: None,
            identity,
            scopes: Box::default(),
            expires: None,
            claims: None,
            revoked: None,
        }))
    }

    /// Sets the issuer, for example the URL of an authorization server. Subjects of different issuers
    /// are different principals.
    #[must_use]
    pub fn with_issuer(mut self, issuer: impl Into<Box<str>>) -> Principal {
        let inner = Arc::make_mut(&mut self.0);
        inner.issuer = Some(issuer.into());
        inner.identify();
        self
    }

    /// Sets the program through which the subject acts: the OAuth client id.
    #[must_use]
    pub fn with_client(mut self, client: impl Into<Box<str>>) -> Principal {
        let inner = Arc::make_mut(&mut self.0);
        inner.client = Some(client.into());
        inner.identify();
        self
    }

    /// Sets the granted scopes, implied ones included.
    #[must_use]
    pub fn with_scopes<I>(mut self, scopes: I) -> Principal
    where
        I: IntoIterator,
        I::Item: Into<Box<str>>,
    {
        Arc::make_mut(&mut self.0).scopes = scopes.into_iter().map(Into::into).collect();
        self
    }

    /// Sets when the authentication expires. Streams of changes end at that time, and clients open them again with a
    /// new authentication.
    #[must_use]
    pub fn with_expiry(mut self, expires: SystemTime) -> Principal {
        Arc::make_mut(&mut self.0).expires = Some(expires);
        self
    }

    /// Sets further statements of the issuer about the subject: a JSON object such as the claims of a token.
    #[must_use]
    pub fn with_claims(mut self, claims: impl Into<Value>) -> Principal {
        Arc::make_mut(&mut self.0).claims = Some(claims.into().to_string().into());
        self
    }

    /// Sets a function that returns whether the authentication has been revoked. Open streams call it every five
    /// seconds, and end when it returns `true`.
    ///
    /// It runs on the task of the stream, so it must not block.
    ///
    /// ```
    /// use linchpin_core::Principal;
    /// use std::sync::Arc;
    /// use std::sync::atomic::{AtomicBool, Ordering};
    ///
    /// let gone = Arc::new(AtomicBool::new(false));
    /// let seen = gone.clone();
    /// let ada = Principal::new("ada").with_revocation(move || seen.load(Ordering::Relaxed));
    /// assert!(!ada.is_revoked());
    /// gone.store(true, Ordering::Relaxed);
    /// assert!(ada.is_revoked());
    /// ```
    #[must_use]
    pub fn with_revocation(mut self, is_revoked: impl Fn() -> bool + Send + Sync + 'static) -> Principal {
        Arc::make_mut(&mut self.0).revoked = Some(Arc::new(is_revoked));
        self
    }

    /// Returns whether the authentication has been revoked. `false` if it cannot be revoked, or if that is unknown.
    pub fn is_revoked(&self) -> bool {
        self.0.revoked.as_ref().is_some_and(|revoked| revoked())
    }

    /// Returns whether [`Principal::is_revoked`] may become true.
    pub fn is_revocable(&self) -> bool {
        self.0.revoked.is_some()
    }

    /// Returns the subject: unique at its issuer.
    pub fn subject(&self) -> &str {
        &self.0.subject
    }

    /// Returns the program through which the subject acts.
    pub fn client(&self) -> Option<&str> {
        self.0.client.as_deref()
    }

    /// Returns the issuer, which authenticated the subject.
    pub fn issuer(&self) -> Option<&str> {
        self.0.issuer.as_deref()
    }

    /// Returns a text that is the same for all requests of one subject of one issuer through one client, and for no
    /// others: a key for data that belongs to the principal. It does not change with scopes, claims or tokens.
    pub fn identity(&self) -> &Arc<str> {
        &self.0.identity
    }

    /// Returns the granted scopes.
    pub fn scopes(&self) -> impl Iterator<Item = &str> {
        self.0.scopes.iter().map(|scope| &**scope)
    }

    /// Returns whether this scope was granted.
    pub fn has_scope(&self, scope: &str) -> bool {
        self.0.scopes.iter().any(|granted| **granted == *scope)
    }

    /// Returns when the authentication expires. `None` if it does not, or if that is unknown.
    pub fn expires(&self) -> Option<SystemTime> {
        self.0.expires
    }

    /// Returns how long the authentication still lasts. Zero if it has expired.
    pub fn lasts(&self, now: SystemTime) -> Option<Duration> {
        Some(self.0.expires?.duration_since(now).unwrap_or_default())
    }

    /// Returns the claims as a `T`. Without claims, `T` is read from an empty object.
    ///
    /// ```
    /// use linchpin_core::Principal;
    ///
    /// #[derive(serde::Deserialize)]
    /// struct Claims { groups: Vec<String> }
    ///
    /// let ada = Principal::new("ada").with_claims(serde_json::json!({ "groups": ["staff"] }));
    /// assert_eq!(ada.claims::<Claims>()?.groups, ["staff"]);
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the claims do not have the shape of `T`.
    pub fn claims<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_str(self.0.claims.as_deref().unwrap_or("{}"))
    }
}

impl Inner {
    fn identify(&mut self) {
        let mut identity = String::new();
        if let Some(issuer) = &self.issuer {
            identity.push_str(&escaped(issuer));
            identity.push('#');
        }
        identity.push_str(&escaped(&self.subject));
        if let Some(client) = &self.client {
            identity.push_str("?client=");
            identity.push_str(&escaped(client));
        }
        self.identity = identity.into();
    }
}

/// The text without the characters that divide an identity.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '%' => out.push_str("%25"),
            '#' => out.push_str("%23"),
            '?' => out.push_str("%3F"),
            c => out.push(c),
        }
    }
    out
}

impl fmt::Debug for Principal {
    // Claims may be personal data.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { subject, client, issuer, scopes, expires, .. } = &*self.0;
        f.debug_struct("Principal")
            .field("subject", subject)
            .field("client", client)
            .field("issuer", issuer)
            .field("scopes", scopes)
            .field("expires", expires)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn an_identity_is_that_of_subject_issuer_and_client_and_of_nothing_else() {
        let new = Principal::new;
        let different = [
            new("ada"),
            new("ada").with_issuer("i"),
            new("ada").with_issuer("j"),
            new("ada").with_client("c"),
            new("ada").with_issuer("i").with_client("c"),
            new("i#ada"),
            new("i#ada?client=c"),
            new("ada?client=c"),
            new("i%23ada"),
            new("ada").with_issuer("i#").with_client("c"),
            new("#ada").with_issuer("i").with_client("c"),
        ];
        let identities: HashSet<_> = different.iter().map(|principal| principal.identity().clone()).collect();
        assert_eq!(identities.len(), different.len(), "{identities:?}");
        assert_eq!(&**new("ada").identity(), "ada");
        let (one, other) = (new("ada").with_client("c").with_issuer("i"), new("ada").with_issuer("i").with_client("c"));
        let other = other.with_scopes(["a"]).with_expiry(SystemTime::now()).with_claims(serde_json::json!({}));
        assert_eq!(one.identity(), other.identity());
    }
}
