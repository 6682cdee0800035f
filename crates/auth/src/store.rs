//! Where tokens are kept between runs.
//!
//! What is kept is keyed by who issued it and for which resource, so that a token can never be sent to a server it was
//! not issued for. [`MemoryStore`] forgets when the program ends; [`FileStore`] is one file that only its owner can
//! read; `KeyringStore` (feature `keyring`) is the keyring of the operating system. `keyring_password` reads what others
//! keep there.

mod file;
#[cfg(feature = "keyring")]
mod keyring;
mod memory;
mod private;

pub use file::FileStore;
#[cfg(feature = "keyring")]
pub use keyring::{KeyringStore, keyring_password};
pub use memory::MemoryStore;

use crate::secret::Secret;
use linchpin_proto::service::BoxFuture;
use serde::{Deserialize, Serialize};
use std::io;

/// Keeps what authorization servers gave out.
///
/// The futures are cancel-safe in the sense that a dropped `save` either happened whole or not at all.
pub trait TokenStore: Send + Sync + 'static {
    /// What is kept under a key; `None` when nothing is.
    ///
    /// # Errors
    /// When the store cannot be read, or not safely.
    fn load(&self, key: &StoreKey) -> BoxFuture<'_, io::Result<Option<Stored>>>;

    /// Keeps a value under a key, in place of what was there.
    ///
    /// # Errors
    /// When the store cannot be written, or not safely.
    fn save(&self, key: &StoreKey, value: &Stored) -> BoxFuture<'_, io::Result<()>>;

    /// Removes what is kept under a key. It is no error when nothing is.
    ///
    /// # Errors
    /// When the store cannot be written, or not safely.
    fn forget(&self, key: &StoreKey) -> BoxFuture<'_, io::Result<()>>;

    /// The keys under which something is kept, sorted.
    ///
    /// # Errors
    /// When the store cannot be read, or not safely.
    fn list(&self) -> BoxFuture<'_, io::Result<Vec<StoreKey>>>;
}

/// Who issued something, and for what.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct StoreKey {
    /// The issuer identifier of the authorization server.
    pub issuer: String,
    /// The resource identifier of the MCP server, as in the resource indicator.
    pub resource: String,
}

impl StoreKey {
    /// A key.
    pub fn new(issuer: impl Into<String>, resource: impl Into<String>) -> StoreKey {
        StoreKey { issuer: issuer.into(), resource: resource.into() }
    }
}

/// What is kept under a key.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stored {
    /// The client as the authorization server registered it; `None` when it is known without.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<Registered>,
    /// The tokens; `None` before the first login and after a refusal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<Tokens>,
    /// The private key the tokens are bound to, as `DpopKey::to_secret` wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dpop_key: Option<Secret>,
}

/// A client as an authorization server registered it (RFC 7591, section 3.2.1).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Registered {
    /// The identifier the server gave.
    pub client_id: String,
    /// The secret the server gave; `None` for a public client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_secret: Option<Secret>,
    /// How the client shows who it is at the token endpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_endpoint_auth_method: Option<String>,
    /// When the secret ends, in seconds since 1970; `None` or 0 for never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_secret_expires_at: Option<u64>,
    /// The redirect URIs it was registered with.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub redirect_uris: Vec<String>,
}

/// The tokens of one login (RFC 6749, section 5.1).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tokens {
    /// What is sent with requests.
    pub access_token: Secret,
    /// What the next access token is asked for with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refresh_token: Option<Secret>,
    /// `Bearer` or `DPoP`, as the server wrote it.
    pub token_type: String,
    /// When the access token ends, in seconds since 1970; `None` when the server did not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<u64>,
    /// What was granted; `None` when the server did not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
}
