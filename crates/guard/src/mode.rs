//! DPoP modes.

/// Whether access tokens may or must be bound to keys (DPoP, RFC 9449).
///
/// ```
/// use linchpin_guard::{Dpop, Guard};
///
/// let guard = Guard::new("https://mcp.example.com/mcp").issuer("https://login.example.com").dpop(Dpop::Required);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Dpop {
    /// Tokens that are bound to a key are rejected; all others are bearer tokens.
    #[default]
    Off,
    /// Tokens that are bound to a key require a proof; all others are bearer tokens.
    Accepted,
    /// All tokens must be bound to a key and require a proof.
    Required,
    /// Like [`Dpop::Required`], and each proof must also cover the body (`content_digest`), as in the draft of the
    /// protocol's extension.
    Profile,
}

impl Dpop {
    pub(crate) fn is_on(self) -> bool {
        self != Dpop::Off
    }

    pub(crate) fn is_required(self) -> bool {
        matches!(self, Dpop::Required | Dpop::Profile)
    }
}
