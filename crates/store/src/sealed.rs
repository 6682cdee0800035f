//! Records that are sealed before they reach the store.

use crate::BoxFuture;
use crate::error::Error;
use crate::key;
use crate::kv::{Delete, Expect, Kv, Put, Record};
use crate::seal::Seal;
use bytes::Bytes;
use std::sync::Arc;
use std::time::Duration;

/// A [`Kv`] that seals each value with the key of its space and binds it to its key. Keys are stored as they are: what is
/// secret in one must be hashed by the caller.
#[derive(Clone)]
pub struct Sealed {
    kv: Arc<dyn Kv>,
    seal: Seal,
}

impl Sealed {
    /// Seals what is kept in `kv`.
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
