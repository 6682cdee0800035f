//! One handle on all primitives.

use crate::bucket::Bucket;
use crate::clock::{Clock, SystemClock};
use crate::kv::Kv;
use crate::lease::Lease;
use crate::log::Log;
use crate::memory::Memory;
use crate::seal::Seal;
use crate::sealed::Sealed;
use crate::secret::Secrets;
use crate::topic::Topic;
use std::fmt;
use std::sync::Arc;

/// A store: the five primitives, and the [`Seal`] for what others must not read. Clones are cheap and share everything.
#[derive(Clone)]
pub struct Store {
    inner: Arc<Inner>,
    is_durable: bool,
}

struct Inner {
    kind: &'static str,
    usual: Primitives,
    durable: Primitives,
    seal: Seal,
    sealed: [Arc<dyn Kv>; 2],
}

/// The primitives of a store.
#[derive(Clone)]
pub(crate) struct Primitives {
    pub(crate) kv: Arc<dyn Kv>,
    pub(crate) log: Arc<dyn Log>,
    pub(crate) lease: Arc<dyn Lease>,
    pub(crate) bucket: Arc<dyn Bucket>,
    pub(crate) topic: Arc<dyn Topic>,
}

impl Primitives {
    /// One object that is all of them.
    pub(crate) fn of<T: Kv + Log + Lease + Bucket + Topic>(all: &Arc<T>) -> Primitives {
        Primitives { kv: all.clone(), log: all.clone(), lease: all.clone(), bucket: all.clone(), topic: all.clone() }
    }
}

impl Store {
    /// A store in the memory of this process, which ends with it.
    pub fn memory() -> Store {
        Store::builder().memory()
    }

    /// A store in a file, which is made if it does not exist, as is the secret beside it. See [`Builder::sqlite`].
    ///
    /// # Errors
    /// If it cannot be opened.
    #[cfg(feature = "sqlite")]
    pub fn sqlite(path: impl AsRef<std::path::Path>) -> Result<Store, crate::Error> {
        Store::builder().sqlite(path)
    }

    /// A store in a Redis or Valkey server, sealed with these secrets. See [`Builder::redis`].
    ///
    /// # Errors
    /// If it is not configured well.
    #[cfg(feature = "redis")]
    pub fn redis(options: impl Into<crate::RedisOptions>, secrets: Secrets) -> Result<Store, crate::Error> {
        Store::builder().secrets(secrets).redis(options)
    }

    /// A store with options.
    pub fn builder() -> Builder {
        Builder { clock: None, secrets: None }
    }

    fn new(kind: &'static str, usual: Primitives, durable: Primitives, secrets: &Secrets) -> Store {
        let seal = Seal::new(secrets);
        let sealed = [&usual, &durable].map(|all| Arc::new(Sealed::new(all.kv.clone(), seal.clone())) as Arc<dyn Kv>);
        Store { inner: Arc::new(Inner { kind, usual, durable, seal, sealed }), is_durable: false }
    }

    /// The same store for what must not be lost: a write is done only when it is on the disk (SQLite: `FULL`), or has reached
    /// as many replicas as [`Builder`] says (Redis). For tokens, approvals and tasks; it costs time.
    #[must_use]
    pub fn durable(&self) -> Store {
        Store { inner: self.inner.clone(), is_durable: true }
    }

    /// Looks whether the store can be used now.
    ///
    /// # Errors
    /// If it does not answer, or cannot be used as it is configured.
    pub async fn check(&self) -> Result<(), crate::Error> {
        self.kv().get("store/check").await.map(drop)
    }

    fn all(&self) -> &Primitives {
        if self.is_durable { &self.inner.durable } else { &self.inner.usual }
    }

    /// Records.
    pub fn kv(&self) -> &Arc<dyn Kv> {
        &self.all().kv
    }

    /// Records that are sealed before they reach the store.
    pub fn sealed(&self) -> &Arc<dyn Kv> {
        &self.inner.sealed[usize::from(self.is_durable)]
    }

    /// Logs.
    pub fn log(&self) -> &Arc<dyn Log> {
        &self.all().log
    }

    /// Leases.
    pub fn lease(&self) -> &Arc<dyn Lease> {
        &self.all().lease
    }

    /// Token buckets.
    pub fn bucket(&self) -> &Arc<dyn Bucket> {
        &self.all().bucket
    }

    /// Topics.
    pub fn topic(&self) -> &Arc<dyn Topic> {
        &self.all().topic
    }

    /// Seals parts of records, and what leaves the process otherwise.
    pub fn seal(&self) -> &Seal {
        &self.inner.seal
    }

    /// `memory`, `sqlite` or `redis`.
    pub fn kind(&self) -> &'static str {
        self.inner.kind
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").field("kind", &self.inner.kind).field("is_durable", &self.is_durable).finish()
    }
}

/// Options of a [`Store`].
#[derive(Clone)]
#[must_use]
pub struct Builder {
    clock: Option<Arc<dyn Clock>>,
    secrets: Option<Secrets>,
}

impl Builder {
    /// The time, instead of the system's. Redis has its own.
    pub fn clock(self, clock: Arc<dyn Clock>) -> Builder {
        Builder { clock: Some(clock), ..self }
    }

    /// The secrets with which values are sealed. Without them, memory makes one of its own.
    pub fn secrets(self, secrets: Secrets) -> Builder {
        Builder { secrets: Some(secrets), ..self }
    }

    fn now(&self) -> Arc<dyn Clock> {
        self.clock.clone().unwrap_or_else(|| Arc::new(SystemClock::new()))
    }

    /// A store in the memory of this process.
    pub fn memory(self) -> Store {
        let all = Primitives::of(&Arc::new(Memory::new(self.now())));
        Store::new("memory", all.clone(), all, &self.secrets.unwrap_or_else(Secrets::random))
    }

    /// A store of one's own, or one around another: an object that is all primitives. `kind` is what [`Store::kind`] says.
    /// Without [`Builder::secrets`] one is made, which ends with the process.
    pub fn custom<T: Kv + Log + Lease + Bucket + Topic>(self, kind: &'static str, all: Arc<T>) -> Store {
        let all = Primitives::of(&all);
        Store::new(kind, all.clone(), all, &self.secrets.unwrap_or_else(Secrets::random))
    }

    /// A store in a file, which is made if it does not exist. Several processes of one machine may share it.
    ///
    /// Without [`Builder::secrets`], the secret is in the file of the same name with `.key` added. It is made with a new file, and
    /// must be kept with it: a file whose secret is gone is refused.
    ///
    /// Reads need a tokio runtime.
    ///
    /// # Errors
    /// If it cannot be opened or written, is damaged, belongs to another program or a newer version, or its secret is missing.
    #[cfg(feature = "sqlite")]
    pub fn sqlite(self, path: impl AsRef<std::path::Path>) -> Result<Store, crate::Error> {
        let path = path.as_ref();
        let all = crate::sqlite::Sqlite::open(path, self.now())?;
        let secrets = match self.secrets {
            Some(secrets) => secrets,
            None => all[0].own_secrets()?,
        };
        let [usual, durable] = all.map(|all| Primitives::of(&Arc::new(all)));
        Ok(Store::new("sqlite", usual, durable, &secrets))
    }

    /// A store in a Redis or Valkey server. Nodes that have the same server, tag and secrets share it.
    ///
    /// [`Builder::secrets`] are needed: a server is no place for them, and all nodes must have the same.
    ///
    /// It connects when it is used first, in the tokio runtime of that moment, and again when the connection broke:
    /// [`Store::check`] tells at start whether the server is there and may be used. An operation takes two seconds at most, in
    /// three attempts. A server that may evict keys is refused.
    ///
    /// # Errors
    /// If the URL is none, or there are no secrets.
    #[cfg(feature = "redis")]
    pub fn redis(self, options: impl Into<crate::RedisOptions>) -> Result<Store, crate::Error> {
        let Some(secrets) = self.secrets else {
            let text = "a store in Redis needs a secret that all its nodes have: make one with `openssl rand -hex 32`, \
                        and keep it in a file beside them";
            return Err(crate::Error::new(crate::ErrorKind::Config, text));
        };
        let [usual, durable] = crate::redis::Redis::open(&options.into())?.map(|all| Primitives::of(&all));
        Ok(Store::new("redis", usual, durable, &secrets))
    }
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder").field("secrets", &self.secrets).finish_non_exhaustive()
    }
}
