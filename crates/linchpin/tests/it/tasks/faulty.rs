//! A store that fails, or whose process dies, at an operation that the test chooses.

use bytes::Bytes;
use linchpin::store::{Error, Store};
use linchpin_store::{
    Append, BoxFuture, Bucket, Claim, Delete, Expect, Fence, Kv, Lease, Log, Put, Rate, Read, Record, Secrets, Take,
    Topic, Watch,
};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What becomes of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Goes,
    /// It fails, and nothing happens.
    Fails,
    /// The process dies before it: nothing happens any more, and nobody is told.
    Dies,
    /// The process dies after it.
    DiesAfter,
}

type Rule = Box<dyn FnMut(&str, &str) -> Fate + Send>;

/// What is around a store.
pub(super) struct Faulty {
    inner: Store,
    rule: Mutex<Rule>,
    is_dead: std::sync::atomic::AtomicBool,
}

impl Faulty {
    /// Wraps a store, whose secrets these are.
    pub(super) fn around(inner: Store, secrets: Secrets) -> (Arc<Faulty>, Store) {
        let rule: Rule = Box::new(|_, _| Fate::Goes);
        let faulty = Arc::new(Faulty { inner, rule: Mutex::new(rule), is_dead: false.into() });
        (faulty.clone(), Store::builder().secrets(secrets).custom("faulty", faulty))
    }

    /// Decides by the name of an operation and its key.
    pub(super) fn rule(&self, rule: impl FnMut(&str, &str) -> Fate + Send + 'static) {
        *self.rule.lock().expect("no panic") = Box::new(rule);
    }

    pub(super) fn is_dead(&self) -> bool {
        self.is_dead.load(std::sync::atomic::Ordering::SeqCst)
    }

    fn go<'a, T: Send + 'a>(
        &'a self,
        operation: &'static str,
        key: &'a str,
        happens: impl FnOnce() -> BoxFuture<'a, Result<T, Error>> + Send + 'a,
    ) -> BoxFuture<'a, Result<T, Error>> {
        Box::pin(async move {
            if self.is_dead() {
                std::future::pending::<()>().await;
            }
            let fate = (self.rule.lock().expect("no panic"))(operation, key);
            if fate == Fate::Fails {
                return Err(Error::unavailable("away"));
            }
            if fate != Fate::Goes {
                self.is_dead.store(true, std::sync::atomic::Ordering::SeqCst);
            }
            if fate == Fate::Dies {
                std::future::pending::<()>().await;
            }
            let done = happens().await;
            if fate == Fate::DiesAfter {
                std::future::pending::<()>().await;
            }
            done
        })
    }
}

impl Kv for Faulty {
    fn get<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Option<Record>, Error>> {
        self.go("get", key, move || self.inner.kv().get(key))
    }

    fn put<'a>(
        &'a self,
        key: &'a str,
        value: Bytes,
        expect: Expect,
        ttl: Duration,
    ) -> BoxFuture<'a, Result<Put, Error>> {
        self.go("put", key, move || self.inner.kv().put(key, value, expect, ttl))
    }

    fn delete<'a>(&'a self, key: &'a str, expect: Expect) -> BoxFuture<'a, Result<Delete, Error>> {
        self.go("delete", key, move || self.inner.kv().delete(key, expect))
    }

    fn touch<'a>(&'a self, keys: &'a [&'a str], ttl: Duration) -> BoxFuture<'a, Result<(), Error>> {
        self.go("touch", "", move || self.inner.kv().touch(keys, ttl))
    }

    fn scan<'a>(
        &'a self,
        prefix: &'a str,
        after: Option<&'a str>,
        n: usize,
    ) -> BoxFuture<'a, Result<Vec<(String, Record)>, Error>> {
        self.go("scan", prefix, move || self.inner.kv().scan(prefix, after, n))
    }
}

impl Log for Faulty {
    fn append<'a>(
        &'a self,
        key: &'a str,
        first_seq: u64,
        entries: Vec<Bytes>,
        fence: Fence,
        ttl: Duration,
    ) -> BoxFuture<'a, Result<Append, Error>> {
        self.go("append", key, move || self.inner.log().append(key, first_seq, entries, fence, ttl))
    }

    fn read<'a>(&'a self, key: &'a str, after: u64, bytes_max: usize) -> BoxFuture<'a, Result<Read, Error>> {
        self.go("read", key, move || self.inner.log().read(key, after, bytes_max))
    }

    fn trim<'a>(&'a self, key: &'a str, through: u64) -> BoxFuture<'a, Result<(), Error>> {
        self.go("trim", key, move || self.inner.log().trim(key, through))
    }

    fn delete<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<(), Error>> {
        self.go("delete", key, move || self.inner.log().delete(key))
    }
}

impl Lease for Faulty {
    fn claim<'a>(&'a self, name: &'a str, owner: &'a str, ttl: Duration) -> BoxFuture<'a, Result<Claim, Error>> {
        self.go("claim", name, move || self.inner.lease().claim(name, owner, ttl))
    }

    fn renew<'a>(&'a self, name: &'a str, fence: Fence, ttl: Duration) -> BoxFuture<'a, Result<bool, Error>> {
        self.go("renew", name, move || self.inner.lease().renew(name, fence, ttl))
    }

    fn release<'a>(&'a self, name: &'a str, fence: Fence) -> BoxFuture<'a, Result<bool, Error>> {
        self.go("release", name, move || self.inner.lease().release(name, fence))
    }

    fn holder<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Option<(String, Fence)>, Error>> {
        self.go("holder", name, move || self.inner.lease().holder(name))
    }
}

impl Bucket for Faulty {
    fn take<'a>(&'a self, key: &'a str, cost: u32, rate: Rate) -> BoxFuture<'a, Result<Take, Error>> {
        self.go("take", key, move || self.inner.bucket().take(key, cost, rate))
    }
}

impl Topic for Faulty {
    fn publish<'a>(&'a self, topic: &'a str) -> BoxFuture<'a, Result<(), Error>> {
        self.go("publish", topic, move || self.inner.topic().publish(topic))
    }

    fn watch<'a>(&'a self, topics: &'a [&'a str]) -> BoxFuture<'a, Result<Watch, Error>> {
        self.go("watch", "", move || self.inner.topic().watch(topics))
    }
}
