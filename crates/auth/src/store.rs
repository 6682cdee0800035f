//! Token storage.
//!
//! Entries are keyed by issuer and resource, so that a token can never be sent to a server that it was
//! not issued for. [`MemoryStore`] lasts as long as the program; [`FileStore`] is one file that only its owner can
//! read; `KeyringStore` (feature `keyring`) is the keyring of the operating system. `keyring_password` reads passwords that
//! other programs keep there.

mod file;
#[cfg(feature = "keyring")]
mod keyring;
mod memory;
mod private;

pub use file::FileStore;
#[cfg(feature = "keyring")]
pub use keyring::{KeyringStore, keyring_password};
pub use memory::MemoryStore;

use linchpin_core::service::BoxFuture;
use linchpin_oauth::Secret;
use serde::{Deserialize, Serialize};
use std::io;

/// Stores what authorization servers have issued.
///
/// The futures are cancel-safe in the sense that a dropped `save` takes effect either completely or not at all.
///
/// [`MemoryStore`] and [`FileStore`] are two of them:
///
/// ```
/// use linchpin_auth::store::{MemoryStore, StoreKey, Stored, TokenStore};
///
/// # async fn example() -> std::io::Result<()> {
/// let store = MemoryStore::default();
/// let key = StoreKey::new("https://login.example", "https://mcp.example/mcp");
/// store.save(&key, &Stored::default()).await?;
/// assert_eq!(store.list().await?, [key.clone()]);
/// store.forget(&key).await?;
/// assert!(store.load(&key).await?.is_none());
/// # Ok(()) }
/// ```
pub trait TokenStore: Send + Sync + 'static {
    /// Returns the value of a key, if any.
    ///
    /// # Errors
    /// If the store cannot be read, or not safely.
    fn load(&self, key: &StoreKey) -> BoxFuture<'_, io::Result<Option<Stored>>>;

    /// Stores a value under a key, replacing a previous one.
    ///
    /// # Errors
    /// If the store cannot be written, or not safely.
    fn save(&self, key: &StoreKey, value: &Stored) -> BoxFuture<'_, io::Result<()>>;

    /// Removes the value of a key. A missing key is not an error.
    ///
    /// # Errors
    /// If the store cannot be written, or not safely.
    fn forget(&self, key: &StoreKey) -> BoxFuture<'_, io::Result<()>>;

    /// Waits until nobody else gets tokens for this key with this store, other programs included: of those that start
    /// together one asks the user, and the others find what it got. The turn is over when the value is dropped. By default
    /// nobody waits.
    ///
    /// # Errors
    /// If it cannot be known whose turn it is.
    fn turn(&self, key: &StoreKey) -> BoxFuture<'_, io::Result<Turn>> {
        let _ = key;
        Box::pin(async { Ok(Turn::default()) })
    }

    /// Returns all keys, sorted.
    ///
    /// # Errors
    /// If the store cannot be read, or not safely.
    fn list(&self) -> BoxFuture<'_, io::Result<Vec<StoreKey>>>;
}

/// The turn to get tokens, until it is dropped. See [`TokenStore::turn`].
#[derive(Default)]
pub struct Turn {
    _held: Option<Box<dyn std::any::Any + Send + Sync>>,
}

impl Turn {
    /// A turn that lasts as long as this value does.
    pub fn holding(held: impl Send + Sync + 'static) -> Turn {
        Turn { _held: Some(Box::new(held)) }
    }
}

impl std::fmt::Debug for Turn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Turn")
    }
}

/// The key of a stored value: issuer and resource.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct StoreKey {
    /// The issuer identifier of the authorization server.
    pub issuer: String,
    /// The resource identifier of the MCP server, as in the resource indicator.
    pub resource: String,
}

impl StoreKey {
    /// Creates a key.
    pub fn new(issuer: impl Into<String>, resource: impl Into<String>) -> StoreKey {
        StoreKey { issuer: issuer.into(), resource: resource.into() }
    }
}

/// The value stored under a key.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stored {
    /// The client as the authorization server registered it; `None` without dynamic registration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<Registered>,
    /// The tokens; `None` before the first login and after they were rejected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<Tokens>,
    /// The private key the tokens are bound to, as `DpopKey::to_secret` wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dpop_key: Option<Secret>,
}

/// A client as an authorization server registered it (RFC 7591, section 3.2.1).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Registered {
    /// The client id issued by the server.
    pub client_id: String,
    /// The secret issued by the server; `None` for a public client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_secret: Option<Secret>,
    /// How the client authenticates at the token endpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_endpoint_auth_method: Option<String>,
    /// When the secret expires, in seconds since 1970; `None` or 0 for never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_secret_expires_at: Option<u64>,
    /// The redirect URIs it was registered with.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub redirect_uris: Vec<String>,
}

/// The tokens of one login (RFC 6749, section 5.1).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tokens {
    /// The token that is sent with requests.
    pub access_token: Secret,
    /// The token with which the next access token is requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refresh_token: Option<Secret>,
    /// `Bearer` or `DPoP`, as the server wrote it.
    pub token_type: String,
    /// When the access token expires, in seconds since 1970; `None` if the server did not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<u64>,
    /// The granted scope; `None` if the server did not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
}
