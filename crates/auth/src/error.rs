//! Authorization errors.

use std::fmt;
use std::sync::Arc;

/// The error of a failed authorization. Its message says what to do about it.
///
/// Cheap to clone: all callers that wait for the same login get the same error. It never contains a credential.
///
/// # Example
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// use linchpin_auth::OAuth;
///
/// let error = OAuth::new().login_to("ftp://mcp.example").await.unwrap_err();
/// if error.is_unreachable() {
///     println!("try again later: {error}");
/// } else if error.is_setup() {
///     println!("check the configuration: {error}");
/// }
/// # assert!(error.is_setup());
/// # }
/// ```
#[derive(Clone)]
pub struct Error(Arc<Inner>);

struct Inner {
    kind: Kind,
    message: String,
}

/// The kinds of errors that the flow distinguishes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The configuration is incomplete or invalid.
    Setup,
    /// The client must be registered with the operator of the authorization server, and configured.
    Unregistered,
    /// The MCP server requires no login.
    Unprotected,
    /// A metadata document is missing, unreadable or does not fit.
    Discovery,
    /// The authorization server did not register the client.
    Registration,
    /// The login failed, or its callback cannot be trusted.
    Login,
    /// The authorization server refused, with this error code.
    Refused(String),
    /// The authorization server is unreachable, or its response is invalid.
    Unreachable,
    /// The MCP server rejects the token.
    NotAccepted,
    /// Tokens cannot be read from or written to their store.
    Store,
}

impl Error {
    pub(crate) fn new(kind: Kind, message: impl Into<String>) -> Error {
        Error(Arc::new(Inner { kind, message: message.into() }))
    }

    pub(crate) fn setup(message: impl Into<String>) -> Error {
        Error::new(Kind::Setup, message)
    }

    pub(crate) fn unregistered(message: impl Into<String>) -> Error {
        Error::new(Kind::Unregistered, message)
    }

    pub(crate) fn discovery(message: impl Into<String>) -> Error {
        Error::new(Kind::Discovery, message)
    }

    pub(crate) fn login(message: impl Into<String>) -> Error {
        Error::new(Kind::Login, message)
    }

    /// The same with something before its message.
    pub(crate) fn within(&self, what: &str) -> Error {
        Error::new(self.0.kind.clone(), format!("{what}: {}", self.0.message))
    }

    /// Returns whether the authorization server returned this error code (RFC 6749 section 5.2 and similar).
    pub fn is_refused_with(&self, code: &str) -> bool {
        matches!(&self.0.kind, Kind::Refused(refused) if refused == code)
    }

    /// Returns whether the authorization server returned an error code.
    pub fn is_refused(&self) -> bool {
        matches!(self.0.kind, Kind::Refused(_))
    }

    /// Returns whether the configuration is incomplete or the server's URL is invalid; the message says what to set.
    pub fn is_setup(&self) -> bool {
        matches!(self.0.kind, Kind::Setup | Kind::Unregistered)
    }

    /// Returns whether the authorization server neither knows the client nor registers it.
    ///
    /// Use a pre-registered client in this case, see [`OAuth::pre_registered`](crate::OAuth::pre_registered).
    pub fn is_registration(&self) -> bool {
        matches!(self.0.kind, Kind::Registration | Kind::Unregistered)
    }

    /// Returns whether no login is needed, because the server accepts requests without a token.
    pub fn is_unprotected(&self) -> bool {
        self.0.kind == Kind::Unprotected
    }

    /// Returns whether a login failed.
    pub fn is_login(&self) -> bool {
        self.0.kind == Kind::Login
    }

    /// Returns whether a server could not be reached, so that a later retry may succeed.
    pub fn is_unreachable(&self) -> bool {
        self.0.kind == Kind::Unreachable
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Error").field("kind", &self.0.kind).field("message", &self.0.message).finish()
    }
}

impl std::error::Error for Error {}

impl From<Error> for Arc<str> {
    fn from(error: Error) -> Arc<str> {
        error.0.message.as_str().into()
    }
}

/// Quotes a peer's text in an error message: one line, at most 300 characters, and without any of `secrets`, because a
/// server may echo what it was sent.
pub(crate) fn quote(text: &str, secrets: &[&str]) -> String {
    let mut text = text.to_owned();
    for secret in secrets.iter().filter(|secret| secret.len() > 3) {
        text = text.replace(secret, "•••");
    }
    let line = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    line.take(QUOTED_CHARS_MAX).collect::<String>().trim().to_owned()
}

const QUOTED_CHARS_MAX: usize = 300;

#[cfg(test)]
mod tests {
    use super::quote;

    #[test]
    fn what_peers_say_is_quoted_without_secrets_and_control_characters() {
        assert_eq!(quote("no \"abcdef\"\r\n\u{1b}[31mhere", &["abcdef"]), "no \"•••\"   [31mhere");
        assert_eq!(quote(&"x".repeat(1000), &[]).len(), 300);
        assert_eq!(quote("abc", &["", "abc"]), "abc", "short strings are not secrets worth hiding everything for");
    }
}
