//! Records that are encrypted before they reach the store.

use crate::BoxFuture;
use crate::error::Error;
use crate::key;
use crate::kv::{Delete, Expect, Kv, Put, Record};
use crate::seal::Seal;
use bytes::Bytes;
use std::sync::Arc;
use std::time::Duration;

/// A [`Kv`] that encrypts each value with a key derived for its space, and binds it to its record.
///
/// The keys of records are stored in plain text: the caller must hash secrets in them.
/// [`Store::sealed`](crate::Store::sealed) returns one for a whole store.
///
/// # Example
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), linchpin_store::Error> {
/// use linchpin_store::{Expect, Kv as _, Seal, Sealed, Secrets, Store};
/// use std::time::Duration;
///
/// let store = Store::memory();
/// let sealed = Sealed::new(store.kv().clone(), Seal::new(&Secrets::random()));
/// let _ = sealed.put("token/ada", "t0k3n".into(), Expect::Any, Duration::from_secs(60)).await?;
/// assert_eq!(sealed.get("token/ada").await?.unwrap().value, "t0k3n");
/// assert_ne!(store.kv().get("token/ada").await?.unwrap().value, "t0k3n");
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Sealed {
    kv: Arc<dyn Kv>,
    seal: Seal,
}

impl Sealed {
    /// Creates a key-value store that seals the values it stores in `kv`.
    pub fn new(kv: Arc<dyn Kv>, seal: Seal) -> Sealed {
        Sealed { kv, seal }
    }

    fn open(&self, key: &str, record: Record) -> Result<Record, Error> {
        let value = self.seal.open(key::space(key)?, key.as_bytes(), &record.value)?;
        Ok(Record { value, ..record })
    }
}

impl Kv for Sealed {
    fn get<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Option<Record>, Error>> {
        Box::pin(async move { self.kv.get(key).await?.map(|record| self.open(key, record)).transpose() })
    }

    fn put<'a>(
        &'a self,
        key: &'a str,
        value: Bytes,
        expect: Expect,
        ttl: Duration,
    ) -> BoxFuture<'a, Result<Put, Error>> {
        Box::pin(async move {
            let value = self.seal.seal(key::space(key)?, key.as_bytes(), &value);
            Ok(match self.kv.put(key, value, expect, ttl).await? {
                Put::Conflict(Some(found)) => Put::Conflict(Some(self.open(key, found)?)),
                other => other,
            })
        })
    }

    fn delete<'a>(&'a self, key: &'a str, expect: Expect) -> BoxFuture<'a, Result<Delete, Error>> {
        Box::pin(async move {
            Ok(match self.kv.delete(key, expect).await? {
                Delete::Conflict(found) => Delete::Conflict(self.open(key, found)?),
                other => other,
            })
        })
    }

    fn touch<'a>(&'a self, keys: &'a [&'a str], ttl: Duration) -> BoxFuture<'a, Result<(), Error>> {
        self.kv.touch(keys, ttl)
    }

    fn scan<'a>(
        &'a self,
        prefix: &'a str,
        after: Option<&'a str>,
        n: usize,
    ) -> BoxFuture<'a, Result<Vec<(String, Record)>, Error>> {
        Box::pin(async move {
            let found = self.kv.scan(prefix, after, n).await?;
            let opened = found.into_iter().map(|(key, record)| Ok((key.clone(), self.open(&key, record)?)));
            opened.collect()
        })
    }
}
