//! A store that goes away, or whose process is killed between two operations.

use bytes::Bytes;
use linchpin_store::{
    Append, BoxFuture, Bucket, Claim, Delete, Error, Expect, Fence, Kv, Lease, Log, Put, Rate, Read, Record, Store,
    Take, Topic, Watch,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

/// What is around a store.
pub(crate) struct Flaky {
    inner: Store,
    away: AtomicBool,
    /// How many operations happen before the process is killed.
    left: AtomicUsize,
}

impl Flaky {
    /// Wraps a store. The secrets are those of the inner one, so that what it has can be read.
    pub(crate) fn around(inner: &Store, secrets: &linchpin_store::Secrets) -> (Arc<Flaky>, Store) {
        let left = AtomicUsize::new(usize::MAX);
        let flaky = Arc::new(Flaky { inner: inner.clone(), away: AtomicBool::new(false), left });
        (flaky.clone(), Store::builder().secrets(secrets.clone()).custom("flaky", flaky))
    }

    pub(crate) fn set_away(&self, away: bool) {
        self.away.store(away, Ordering::Relaxed);
    }

    /// After `count` more operations nothing happens any more, and nobody is told.
    pub(crate) fn die_after(&self, count: usize) {
        self.left.store(count, Ordering::Relaxed);
    }

    fn step<'a, T: Send + 'a>(&'a self, operation: BoxFuture<'a, Result<T, Error>>) -> BoxFuture<'a, Result<T, Error>> {
        Box::pin(async move {
            if self.away.load(Ordering::Relaxed) {
                return Err(Error::unavailable("away"));
            }
            let spent = |left: usize| if left == usize::MAX { Some(left) } else { left.checked_sub(1) };
            if self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, spent).is_err() {
                std::future::pending::<()>().await;
            }
            operation.await
        })
    }
}

impl Kv for Flaky {
    fn get<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Option<Record>, Error>> {
        self.step(self.inner.kv().get(key))
    }

    fn put<'a>(
        &'a self,
        key: &'a str,
        value: Bytes,
        expect: Expect,
        ttl: Duration,
    ) -> BoxFuture<'a, Result<Put, Error>> {
        self.step(self.inner.kv().put(key, value, expect, ttl))
    }

    fn delete<'a>(&'a self, key: &'a str, expect: Expect) -> BoxFuture<'a, Result<Delete, Error>> {
        self.step(self.inner.kv().delete(key, expect))
    }

    fn touch<'a>(&'a self, keys: &'a [&'a str], ttl: Duration) -> BoxFuture<'a, Result<(), Error>> {
        self.step(self.inner.kv().touch(keys, ttl))
    }

    fn scan<'a>(
        &'a self,
        prefix: &'a str,
        after: Option<&'a str>,
        n: usize,
    ) -> BoxFuture<'a, Result<Vec<(String, Record)>, Error>> {
        self.step(self.inner.kv().scan(prefix, after, n))
    }
}

impl Log for Flaky {
    fn append<'a>(
        &'a self,
        key: &'a str,
        first_seq: u64,
        entries: Vec<Bytes>,
        fence: Fence,
        ttl: Duration,
    ) -> BoxFuture<'a, Result<Append, Error>> {
        self.step(self.inner.log().append(key, first_seq, entries, fence, ttl))
    }

    fn read<'a>(&'a self, key: &'a str, after: u64, bytes_max: usize) -> BoxFuture<'a, Result<Read, Error>> {
        self.step(self.inner.log().read(key, after, bytes_max))
    }

    fn trim<'a>(&'a self, key: &'a str, through: u64) -> BoxFuture<'a, Result<(), Error>> {
        self.step(self.inner.log().trim(key, through))
    }

    fn delete<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<(), Error>> {
        self.step(self.inner.log().delete(key))
    }
}

impl Lease for Flaky {
    fn claim<'a>(&'a self, name: &'a str, owner: &'a str, ttl: Duration) -> BoxFuture<'a, Result<Claim, Error>> {
        self.step(self.inner.lease().claim(name, owner, ttl))
    }

    fn renew<'a>(&'a self, name: &'a str, fence: Fence, ttl: Duration) -> BoxFuture<'a, Result<bool, Error>> {
        self.step(self.inner.lease().renew(name, fence, ttl))
    }

    fn release<'a>(&'a self, name: &'a str, fence: Fence) -> BoxFuture<'a, Result<bool, Error>> {
        self.step(self.inner.lease().release(name, fence))
    }

    fn holder<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Option<(String, Fence)>, Error>> {
        self.step(self.inner.lease().holder(name))
    }
}

impl Bucket for Flaky {
    fn take<'a>(&'a self, key: &'a str, cost: u32, rate: Rate) -> BoxFuture<'a, Result<Take, Error>> {
        self.step(self.inner.bucket().take(key, cost, rate))
    }
}

impl Topic for Flaky {
    fn publish<'a>(&'a self, topic: &'a str) -> BoxFuture<'a, Result<(), Error>> {
        self.step(self.inner.topic().publish(topic))
    }

    fn watch<'a>(&'a self, topics: &'a [&'a str]) -> BoxFuture<'a, Result<Watch, Error>> {
        self.step(self.inner.topic().watch(topics))
    }
}
