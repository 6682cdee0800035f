//! A handle to all primitives.

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

/// A store: the five primitives, and a [`Seal`] for confidential values. Clones are cheap and share everything.
///
/// # Example
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), linchpin_store::Error> {
/// use linchpin_store::{Expect, Store};
/// use std::time::Duration;
///
/// let store = Store::memory();
/// let _ = store.kv().put("consent/ada", "mail".into(), Expect::Any, Duration::from_secs(60)).await?;
/// store.topic().publish("consent/all").await?;
/// assert_eq!(store.kv().get("consent/ada").await?.unwrap().value, "mail");
/// assert_eq!(store.kind(), "memory");
/// # Ok(())
/// # }
/// ```
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
    /// Creates a store in the memory of this process.
    pub fn memory() -> Store {
        Store::builder().memory()
    }

    /// Opens a store in a file. The file, and the file with its secret, are created if they do not exist. See
    /// [`Builder::sqlite`].
    ///
    /// # Errors
    /// If the store cannot be opened.
    #[cfg(feature = "sqlite")]
    pub fn sqlite(path: impl AsRef<std::path::Path>) -> Result<Store, crate::Error> {
        Store::builder().sqlite(path)
    }

    /// Creates a store in a Redis or Valkey server, sealed with these secrets. See [`Builder::redis`].
    ///
    /// # Errors
    /// If the options are invalid.
    #[cfg(feature = "redis")]
    pub fn redis(options: impl Into<crate::RedisOptions>, secrets: Secrets) -> Result<Store, crate::Error> {
        Store::builder().secrets(secrets).redis(options)
    }

    /// Returns a builder for a store with options.
    pub fn builder() -> Builder {
        Builder { clock: None, secrets: None }
    }

    fn new(kind: &'static str, usual: Primitives, durable: Primitives, secrets: &Secrets) -> Store {
        let seal = Seal::new(secrets);
        let sealed = [&usual, &durable].map(|all| Arc::new(Sealed::new(all.kv.clone(), seal.clone())) as Arc<dyn Kv>);
        Store { inner: Arc::new(Inner { kind, usual, durable, seal, sealed }), is_durable: false }
    }

    /// Returns the same store with durable writes, for data that must not be lost, such as tokens, approvals and tasks.
    ///
    /// A write completes only when it is on the disk (SQLite: `FULL`), or has reached the configured number of replicas
    /// (Redis). This makes writes slower.
    #[must_use]
    pub fn durable(&self) -> Store {
        Store { inner: self.inner.clone(), is_durable: true }
    }

    /// Checks that the store can be used.
    ///
    /// # Errors
    /// If the store does not respond, or its configuration is not usable.
    pub async fn check(&self) -> Result<(), crate::Error> {
        self.kv().get("store/check").await.map(drop)
    }

    fn all(&self) -> &Primitives {
        if self.is_durable { &self.inner.durable } else { &self.inner.usual }
    }

    /// Returns the key-value store.
    pub fn kv(&self) -> &Arc<dyn Kv> {
        &self.all().kv
    }

    /// Returns the key-value store that seals values before they are stored.
    pub fn sealed(&self) -> &Arc<dyn Kv> {
        &self.inner.sealed[usize::from(self.is_durable)]
    }

    /// Returns the logs.
    pub fn log(&self) -> &Arc<dyn Log> {
        &self.all().log
    }

    /// Returns the leases.
    pub fn lease(&self) -> &Arc<dyn Lease> {
        &self.all().lease
    }

    /// Returns the token buckets.
    pub fn bucket(&self) -> &Arc<dyn Bucket> {
        &self.all().bucket
    }

    /// Returns the topics.
    pub fn topic(&self) -> &Arc<dyn Topic> {
        &self.all().topic
    }

    /// Returns the seal, for parts of records and for data that leaves the process in other ways.
    pub fn seal(&self) -> &Seal {
        &self.inner.seal
    }

    /// Returns the kind of the store: `memory`, `sqlite`, `redis`, or the one passed to [`Builder::custom`].
    pub fn kind(&self) -> &'static str {
        self.inner.kind
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").field("kind", &self.inner.kind).field("is_durable", &self.is_durable).finish()
    }
}

/// A builder for a [`Store`] with options.
///
/// # Example
///
/// ```
/// use linchpin_store::{ManualClock, Secrets, Store};
/// use std::sync::Arc;
///
/// let store = Store::builder()
///     .clock(Arc::new(ManualClock::default()))
///     .secrets(Secrets::random())
///     .memory();
/// assert_eq!(store.kind(), "memory");
/// ```
#[derive(Clone)]
#[must_use]
pub struct Builder {
    clock: Option<Arc<dyn Clock>>,
    secrets: Option<Secrets>,
}

impl Builder {
    /// Replaces the system's clock. Has no effect on Redis, which uses the time of its server.
    pub fn clock(self, clock: Arc<dyn Clock>) -> Builder {
        Builder { clock: Some(clock), ..self }
    }

    /// Sets the secrets with which values are sealed. By default, a store in memory creates a random one.
    pub fn secrets(self, secrets: Secrets) -> Builder {
        Builder { secrets: Some(secrets), ..self }
    }

    fn now(&self) -> Arc<dyn Clock> {
        self.clock.clone().unwrap_or_else(|| Arc::new(SystemClock::new()))
    }

    /// Creates a store in the memory of this process.
    pub fn memory(self) -> Store {
        let all = Primitives::of(&Arc::new(Memory::new(self.now())));
        Store::new("memory", all.clone(), all, &self.secrets.unwrap_or_else(Secrets::random))
    }

    /// Creates a store from an object that implements all primitives, for example a wrapper around another store.
    ///
    /// `kind` is the value that [`Store::kind`] returns. Without [`Builder::secrets`], a random secret is created,
    /// which is lost when the process ends.
    pub fn custom<T: Kv + Log + Lease + Bucket + Topic>(self, kind: &'static str, all: Arc<T>) -> Store {
        let all = Primitives::of(&all);
        Store::new(kind, all.clone(), all, &self.secrets.unwrap_or_else(Secrets::random))
    }

    /// Opens a store in a file, which is created if it does not exist. Several processes on one machine may share it.
    ///
    /// Without [`Builder::secrets`], the secret is kept in a file of the same name with `.key` appended. It is created
    /// together with the store, and must be kept with it: a store whose secret is missing is rejected.
    ///
    /// Reads must be called in a tokio runtime.
    ///
    /// # Errors
    /// If the file cannot be opened or written, is damaged, belongs to another program or a newer version, or if its
    /// secret is missing.
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

    /// Creates a store in a Redis or Valkey server. Nodes with the same server, tag and secrets share it.
    ///
    /// [`Builder::secrets`] is required: the secrets must not be kept in the server, and must be the same on all nodes.
    ///
    /// The store connects on first use, in the tokio runtime of that call, and reconnects when the connection is lost.
    /// Call [`Store::check`] at startup to find out whether the server is available and usable. An operation takes at
    /// most two seconds, in up to three attempts. A server that may evict keys is rejected.
    ///
    /// # Errors
    /// If the URL is invalid, or there are no secrets.
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
