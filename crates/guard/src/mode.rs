//! Whether tokens are bound to keys.

/// Whether access tokens are bound to keys (DPoP, RFC 9449).
///
/// ```
/// use linchpin_guard::{Dpop, Guard};
///
/// let guard = Guard::new("https://mcp.example.com/mcp").issuer("https://login.example.com").dpop(Dpop::Required);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Dpop {
    /// Tokens that are bound to a key are refused, all others are bearer tokens.
    #[default]
    Off,
    /// Tokens that are bound to a key need a proof, all others are bearer tokens.
    Accepted,
    /// All tokens are bound to a key and need a proof.
    Required,
    /// The same, and each proof is for its body too (`content_digest`): the draft of the protocol's extension.
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
