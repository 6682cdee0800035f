//! Token storage.
//!
//! Entries are keyed by issuer and resource, so that a token can never be sent to a server that it was not issued for.
//! [`MemoryStore`] keeps them in memory; [`FileStore`] keeps them in a file that only its owner can read;
//! `KeyringStore` (feature `keyring`) uses the keyring of the operating system. `keyring_password` reads passwords that
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

/// A store for what authorization servers have issued.
///
/// The futures are cancel-safe in the sense that a dropped `save` takes effect either completely or not at all.
///
/// [`MemoryStore`] and [`FileStore`] implement this trait:
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
    /// If the store cannot be read, or cannot be read safely.
    fn load(&self, key: &StoreKey) -> BoxFuture<'_, io::Result<Option<Stored>>>;

    /// Stores a value under a key, replacing a previous one.
    ///
    /// # Errors
    /// If the store cannot be written, or cannot be written safely.
    fn save(&self, key: &StoreKey, value: &Stored) -> BoxFuture<'_, io::Result<()>>;

    /// Removes the value of a key. A missing key is not an error.
    ///
    /// # Errors
    /// If the store cannot be written, or cannot be written safely.
    fn forget(&self, key: &StoreKey) -> BoxFuture<'_, io::Result<()>>;

    /// Waits for an exclusive turn to get tokens for this key, across all programs that use the same store.
    ///
    /// If several programs need tokens at the same time, only one of them asks the user to log in, and the others then
    /// find its tokens in the store. The turn ends when the returned value is dropped. The default implementation
    /// returns immediately.
    ///
    /// # Errors
    /// If the turn cannot be acquired.
    fn turn(&self, key: &StoreKey) -> BoxFuture<'_, io::Result<Turn>> {
        let _ = key;
        Box::pin(async { Ok(Turn::default()) })
    }

    /// Returns all keys, sorted.
    ///
    /// # Errors
    /// If the store cannot be read, or cannot be read safely.
    fn list(&self) -> BoxFuture<'_, io::Result<Vec<StoreKey>>>;
}

/// An exclusive turn to get tokens, which ends when it is dropped. See [`TokenStore::turn`].
///
/// # Example
///
/// ```
/// use linchpin_auth::store::{MemoryStore, StoreKey, Stored, TokenStore, Turn};
/// use linchpin_core::service::BoxFuture;
/// use std::{io, sync::Arc};
/// use tokio::sync::Mutex;
///
/// /// Serializes the logins of a process.
/// struct OneAtATime(MemoryStore, Arc<Mutex<()>>);
///
/// impl TokenStore for OneAtATime {
///     fn turn(&self, _: &StoreKey) -> BoxFuture<'_, io::Result<Turn>> {
///         // The lock is released when the turn is dropped.
///         Box::pin(async { Ok(Turn::holding(self.1.clone().lock_owned().await)) })
///     }
///     # fn load(&self, key: &StoreKey) -> BoxFuture<'_, io::Result<Option<Stored>>> {
///     #     self.0.load(key)
///     # }
///     # fn save(&self, key: &StoreKey, value: &Stored) -> BoxFuture<'_, io::Result<()>> {
///     #     self.0.save(key, value)
///     # }
///     # fn forget(&self, key: &StoreKey) -> BoxFuture<'_, io::Result<()>> {
///     #     self.0.forget(key)
///     # }
///     # fn list(&self) -> BoxFuture<'_, io::Result<Vec<StoreKey>>> {
///     #     self.0.list()
///     # }
///     // ... the other methods ...
/// }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> io::Result<()> {
/// # let store = OneAtATime(MemoryStore::new(), Arc::default());
/// # let turn = store.turn(&StoreKey::new("https://login.example", "https://mcp.example/mcp")).await?;
/// # assert!(store.1.try_lock().is_err());
/// # drop(turn);
/// # assert!(store.1.try_lock().is_ok());
/// # Ok(())
/// # }
/// ```
#[derive(Default)]
pub struct Turn {
    _held: Option<Box<dyn std::any::Any + Send + Sync>>,
}

impl Turn {
    /// Creates a turn that keeps `held`, for example a lock guard, until it is dropped.
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
///
/// # Example
///
/// ```
/// use linchpin_auth::store::StoreKey;
///
/// let key = StoreKey::new("https://login.example", "https://mcp.example/mcp");
/// assert_eq!(key.issuer, "https://login.example");
/// assert_ne!(key, StoreKey::new("https://login.example", "https://other.example/mcp"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[non_exhaustive]
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
///
/// # Example
///
/// ```
/// use linchpin_auth::store::{Stored, Tokens};
///
/// let stored = Stored::default().with(|stored| stored.tokens = Some(Tokens::new("t0k3n", "Bearer")));
/// let json = serde_json::to_string(&stored)?;
/// assert_eq!(json, r#"{"tokens":{"access_token":"t0k3n","token_type":"Bearer"}}"#);
/// assert_eq!(serde_json::from_str::<Stored>(&json)?, stored);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Stored {
    /// The client as the authorization server registered it; `None` without dynamic registration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<Registered>,
    /// The tokens; `None` before the first login and after they were rejected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<Tokens>,
    /// The private key that the tokens are bound to, as returned by `DpopKey::to_secret`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dpop_key: Option<Secret>,
}

impl Stored {
    /// Returns the value with the changes that a closure makes.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }
}

/// A client as an authorization server registered it (RFC 7591, section 3.2.1).
///
/// # Example
///
/// ```
/// use linchpin_auth::store::Registered;
///
/// let client: Registered = serde_json::from_str(
///     r#"{ "client_id": "my-host-17", "token_endpoint_auth_method": "none" }"#,
/// )?;
/// assert_eq!(client.client_id, "my-host-17");
/// assert!(client.client_secret.is_none());
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
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
    /// The redirect URIs that the client was registered with.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub redirect_uris: Vec<String>,
}

impl Registered {
    /// Creates a public client with this id.
    ///
    /// ```
    /// use linchpin_auth::store::Registered;
    ///
    /// let client = Registered::new("my-host-17").with(|client| client.client_secret = Some("s3cret".into()));
    /// assert_eq!(client.client_id, "my-host-17");
    /// ```
    pub fn new(client_id: impl Into<String>) -> Registered {
        Registered { client_id: client_id.into(), ..Registered::default() }
    }

    /// Returns the client with the changes that a closure makes.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }
}

/// The tokens of one login (RFC 6749, section 5.1).
///
/// # Example
///
/// ```
/// use linchpin_auth::store::Tokens;
///
/// let tokens = Tokens::new("t0k3n", "Bearer").with(|tokens| tokens.expires_at = Some(1_790_000_000));
/// assert_eq!(tokens.access_token.expose(), "t0k3n");
/// assert!(!format!("{tokens:?}").contains("t0k3n"));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Tokens {
    /// The token that is sent with requests.
    pub access_token: Secret,
    /// The token that is used to request the next access token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refresh_token: Option<Secret>,
    /// The token type as returned by the server: `Bearer` or `DPoP`.
    pub token_type: String,
    /// When the access token expires, in seconds since 1970; `None` if the server did not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<u64>,
    /// The granted scope; `None` if the server did not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
}

impl Tokens {
    /// Creates an access token of this type (`Bearer` or `DPoP`), without a refresh token.
    pub fn new(access_token: impl Into<Secret>, token_type: impl Into<String>) -> Tokens {
        Tokens { access_token: access_token.into(), token_type: token_type.into(), ..Tokens::default() }
    }

    /// Returns the tokens with the changes that a closure makes.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }
}
