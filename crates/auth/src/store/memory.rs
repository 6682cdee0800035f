//! Token storage for as long as the program runs.

use super::{StoreKey, Stored, TokenStore};
use linchpin_core::service::BoxFuture;
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

/// A store that keeps tokens in memory. Clones share the entries.
///
/// # Example
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> std::io::Result<()> {
/// use linchpin_auth::store::{MemoryStore, StoreKey, Stored, TokenStore as _};
///
/// let store = MemoryStore::new();
/// let key = StoreKey::new("https://login.example", "https://mcp.example/mcp");
/// store.save(&key, &Stored::default()).await?;
/// // A clone has the same entries.
/// assert_eq!(store.clone().list().await?, [key]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Default)]
pub struct MemoryStore {
    kept: Arc<Mutex<BTreeMap<StoreKey, Stored>>>,
}

impl MemoryStore {
    /// Creates an empty store.
    pub fn new() -> MemoryStore {
        MemoryStore::default()
    }

    fn with<T>(&self, act: impl FnOnce(&mut BTreeMap<StoreKey, Stored>) -> T) -> BoxFuture<'_, io::Result<T>>
    where
        T: Send + 'static,
    {
        // Map operations leave no partial changes, so a poisoned lock is harmless.
        let done = act(&mut self.kept.lock().unwrap_or_else(PoisonError::into_inner));
        Box::pin(std::future::ready(Ok(done)))
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStore").finish_non_exhaustive()
    }
}

impl TokenStore for MemoryStore {
    fn load(&self, key: &StoreKey) -> BoxFuture<'_, io::Result<Option<Stored>>> {
        self.with(|kept| kept.get(key).cloned())
    }

    fn save(&self, key: &StoreKey, value: &Stored) -> BoxFuture<'_, io::Result<()>> {
        self.with(|kept| drop(kept.insert(key.clone(), value.clone())))
    }

    fn forget(&self, key: &StoreKey) -> BoxFuture<'_, io::Result<()>> {
        self.with(|kept| drop(kept.remove(key)))
    }

    fn list(&self) -> BoxFuture<'_, io::Result<Vec<StoreKey>>> {
        self.with(|kept| kept.keys().cloned().collect())
    }
}
