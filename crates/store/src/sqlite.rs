//! Everything in a file of SQLite, which several processes of one machine may share.

mod file;
mod statements;
mod writer;

use crate::BoxFuture;
use crate::bucket::{Bucket, Rate, Take};
use crate::clock::{Clock, micros};
use crate::error::{Error, ErrorKind};
use crate::hub::Hub;
use crate::key;
use crate::kv::{Delete, Expect, Kv, Put, Record};
use crate::lease::{Claim, Fence, Lease};
use crate::log::{Append, Log, Read};
use crate::rev::Revs;
use crate::secret::Secrets;
use crate::topic::{Topic, Watch};
use bytes::Bytes;
use file::Failure;
use rusqlite::Connection;
use statements::Appended;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;
use tokio::sync::Semaphore;
use writer::{Time, Writer};

/// The most reads at the same time.
const READERS_MAX: usize = 8;

/// The most connections that are kept open for reads.
const READERS_KEPT: usize = 4;

/// How often the file is asked whether another process has written, while topics are watched.
const POLL: Duration = Duration::from_millis(50);

/// All five primitives in a file.
pub(crate) struct Sqlite {
    shared: Arc<Shared>,
    /// Whether a write is on the disk when it is done.
    is_durable: bool,
}

struct Shared {
    path: PathBuf,
    time: Arc<Time>,
    writer: Writer,
    readers: Readers,
    revs: Revs,
    hub: Arc<Hub>,
    is_polled: AtomicBool,
}

struct Readers {
    free: Mutex<Vec<Connection>>,
    permits: Semaphore,
}

impl Sqlite {
    /// Opens a file, twice: for usual writes and for durable ones.
    pub(crate) fn open(path: &Path, clock: Arc<dyn Clock>) -> Result<[Sqlite; 2], Error> {
        let time = Arc::new(Time::new(clock));
        let writer = Writer::start(file::open(path)?, time.clone())?;
        let readers = Readers { free: Mutex::default(), permits: Semaphore::new(READERS_MAX) };
        let shared = Arc::new(Shared {
            path: path.to_owned(),
            time,
            writer,
            readers,
            revs: Revs::new(),
            hub: Arc::default(),
            is_polled: AtomicBool::new(false),
        });
        Ok([false, true].map(|is_durable| Sqlite { shared: shared.clone(), is_durable }))
    }

    /// The secrets beside the file, made with a new file.
    pub(crate) fn own_secrets(&self) -> Result<Secrets, Error> {
        let mut key = self.shared.path.clone().into_os_string();
        key.push(".key");
        let key = PathBuf::from(key);
        let is_keyed = self.shared.with_reader(|c| statements::meta(c, "keyed")).map_err(Failure::from)?.is_some();
        let secrets = if is_keyed { Secrets::from_file(&key) } else { Secrets::from_file_or_new(&key) }?;
        if !is_keyed {
            self.shared.with_reader(|c| statements::set_meta(c, "keyed", 1)).map_err(Failure::from)?;
        }
        Ok(secrets)
    }

    async fn write<T: Send + 'static>(
        &self,
        run: impl FnMut(&Connection, i64) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, Error> {
        self.shared.writer.run(self.is_durable, run).await
    }

    async fn read<T: Send + 'static>(
        &self,
        run: impl FnOnce(&Connection, i64) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, Error> {
        let shared = self.shared.clone();
        let permit = shared.readers.permits.acquire().await;
        let permit = permit.map_err(|_| Error::new(ErrorKind::Unavailable, "the store is closed"))?;
        let reading = self.shared.clone();
        let read = tokio::task::spawn_blocking(move || reading.with_reader(|c| run(c, reading.time.now_us()))).await;
        drop(permit);
        match read {
            Ok(read) => Ok(read.map_err(Failure::from)?),
            Err(error) => Err(Error::new(ErrorKind::Unavailable, "a read was stopped").caused_by(error)),
        }
    }
}

impl Shared {
    fn with_reader<T>(&self, run: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> rusqlite::Result<T> {
        let free = || self.readers.free.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = free().pop();
        let reader = kept.map_or_else(|| file::connect(&self.path), Ok)?;
        let result = run(&reader);
        let mut free = free();
        if free.len() < READERS_KEPT {
            free.push(reader);
        }
        result
    }

    /// Starts the thread that looks for what other processes publish, if it does not run.
    fn poll(self: &Arc<Shared>) {
        if !self.is_polled.swap(true, Ordering::AcqRel) {
            let shared = Arc::downgrade(self);
            let started = std::thread::Builder::new().name("store-topics".into()).spawn(move || poll(&shared));
            if let Err(error) = started {
                self.is_polled.store(false, Ordering::Release);
                tracing::warn!(target: "linchpin::store", %error, "cannot start the thread that watches topics; messages of other processes arrive late");
            }
        }
    }
}

/// Looks for versions that other processes have written, until nobody watches or the store is gone.
fn poll(shared: &Weak<Shared>) {
    let mut connection = None;
    let mut seen = None;
    loop {
        let Some(shared) = shared.upgrade() else { return };
        let topics = shared.hub.watched();
        if topics.is_empty() {
            shared.is_polled.store(false, Ordering::Release);
            // Somebody may have begun to watch before this was said.
            if shared.hub.watched().is_empty() || shared.is_polled.swap(true, Ordering::AcqRel) {
                return;
            }
        }
        let look = |connection: &mut Option<Connection>| -> rusqlite::Result<Option<i64>> {
            let c = match connection {
                Some(c) => c,
                None => connection.insert(file::connect(&shared.path)?),
            };
            let now = c.query_row("PRAGMA data_version", (), |row| row.get(0))?;
            if seen != Some(now) {
                let versions = statements::versions(c, &topics)?;
                topics.iter().zip(versions).for_each(|(topic, version)| shared.hub.advance(topic, version));
            }
            Ok(Some(now))
        };
        match look(&mut connection) {
            Ok(now) => seen = now,
            Err(error) => {
                tracing::debug!(target: "linchpin::store", %error, "topics cannot be read");
                (connection, seen) = (None, None);
            }
        }
        drop(shared);
        std::thread::sleep(POLL);
    }
}

fn us(duration: Duration) -> i64 {
    micros(duration).cast_signed()
}

impl Kv for Sqlite {
    fn get<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Option<Record>, Error>> {
        Box::pin(async move {
            key::space(key)?;
            let key = key.to_owned();
            self.read(move |c, now| statements::get(c, now, &key)).await
        })
    }

    fn put<'a>(
        &'a self,
        key: &'a str,
        value: Bytes,
        expect: Expect,
        ttl: Duration,
    ) -> BoxFuture<'a, Result<Put, Error>> {
        Box::pin(async move {
            key::space(key)?;
            key::value(&value)?;
            key::ttl(ttl)?;
            let (key, new) = (key.to_owned(), Record { value, rev: self.shared.revs.next() });
            self.write(move |c, now| statements::put(c, now, &key, &new, expect, us(ttl))).await
        })
    }

    fn delete<'a>(&'a self, key: &'a str, expect: Expect) -> BoxFuture<'a, Result<Delete, Error>> {
        Box::pin(async move {
            key::space(key)?;
            key::deletable(expect)?;
            let key = key.to_owned();
            self.write(move |c, now| statements::delete(c, now, &key, expect)).await
        })
    }

    fn touch<'a>(&'a self, keys: &'a [&'a str], ttl: Duration) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move {
            keys.iter().try_for_each(|key| key::space(key).map(drop))?;
            key::ttl(ttl)?;
            let keys: Vec<String> = keys.iter().map(|key| (*key).to_owned()).collect();
            self.write(move |c, now| statements::touch(c, now, &keys, us(ttl))).await
        })
    }

    fn scan<'a>(
        &'a self,
        prefix: &'a str,
        after: Option<&'a str>,
        n: usize,
    ) -> BoxFuture<'a, Result<Vec<(String, Record)>, Error>> {
        Box::pin(async move {
            key::space_of_prefix(prefix)?;
            let (prefix, after) = (prefix.to_owned(), after.unwrap_or_default().to_owned());
            self.read(move |c, now| statements::scan(c, now, &prefix, &after, n)).await
        })
    }
}

impl Log for Sqlite {
    fn append<'a>(
        &'a self,
        key: &'a str,
        first_seq: u64,
        entries: Vec<Bytes>,
        fence: Fence,
        ttl: Duration,
    ) -> BoxFuture<'a, Result<Append, Error>> {
        Box::pin(async move {
            key::space(key)?;
            key::sequence(first_seq, &entries)?;
            key::ttl(ttl)?;
            let (key, new) = (key.to_owned(), Appended { first: first_seq, entries, fence, ttl: us(ttl) });
            self.write(move |c, now| statements::append(c, now, &key, &new)).await
        })
    }

    fn read<'a>(&'a self, key: &'a str, after: u64, bytes_max: usize) -> BoxFuture<'a, Result<Read, Error>> {
        Box::pin(async move {
            key::space(key)?;
            let key = key.to_owned();
            self.read(move |c, now| {
                let both = c.unchecked_transaction()?;
                statements::read(&both, now, &key, after, bytes_max)
            })
            .await
        })
    }

    fn trim<'a>(&'a self, key: &'a str, through: u64) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move {
            key::space(key)?;
            let key = key.to_owned();
            self.write(move |c, now| statements::trim(c, now, &key, through)).await
        })
    }

    fn delete<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move {
            key::space(key)?;
            let key = key.to_owned();
            self.write(move |c, _| statements::delete_log(c, &key)).await
        })
    }
}

impl Lease for Sqlite {
    fn claim<'a>(&'a self, name: &'a str, owner: &'a str, ttl: Duration) -> BoxFuture<'a, Result<Claim, Error>> {
        Box::pin(async move {
            key::owned(name, owner)?;
            key::ttl(ttl)?;
            let (name, owner) = (name.to_owned(), owner.to_owned());
            self.write(move |c, now| statements::claim(c, now, &name, &owner, us(ttl))).await
        })
    }

    fn renew<'a>(&'a self, name: &'a str, fence: Fence, ttl: Duration) -> BoxFuture<'a, Result<bool, Error>> {
        Box::pin(async move {
            key::space(name)?;
            key::ttl(ttl)?;
            let name = name.to_owned();
            self.write(move |c, now| statements::renew(c, now, &name, fence, us(ttl))).await
        })
    }

    fn release<'a>(&'a self, name: &'a str, fence: Fence) -> BoxFuture<'a, Result<bool, Error>> {
        Box::pin(async move {
            key::space(name)?;
            let name = name.to_owned();
            self.write(move |c, now| statements::release(c, now, &name, fence)).await
        })
    }

    fn holder<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Option<(String, Fence)>, Error>> {
        Box::pin(async move {
            key::space(name)?;
            let name = name.to_owned();
            let held = self.read(move |c, now| statements::holder(c, now, &name)).await?;
            Ok(held.map(|(owner, fence, _)| (owner, fence)))
        })
    }
}

impl Bucket for Sqlite {
    fn take<'a>(&'a self, key: &'a str, cost: u32, rate: Rate) -> BoxFuture<'a, Result<Take, Error>> {
        Box::pin(async move {
            key::space(key)?;
            let key = key.to_owned();
            self.write(move |c, now| statements::take(c, now, &key, cost, rate)).await?
        })
    }
}

impl Topic for Sqlite {
    fn publish<'a>(&'a self, topic: &'a str) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move {
            key::space(topic)?;
            let name = topic.to_owned();
            let version = self.write(move |c, now| statements::publish(c, now, &name)).await?;
            self.shared.hub.advance(topic, version);
            Ok(())
        })
    }

    fn watch<'a>(&'a self, topics: &'a [&'a str]) -> BoxFuture<'a, Result<Watch, Error>> {
        Box::pin(async move {
            topics.iter().try_for_each(|topic| key::space(topic).map(drop))?;
            // Joined first, so that no version is missed; dropped with the error.
            let mut watch = Watch::new(self.shared.hub.clone(), topics);
            self.shared.poll();
            let names: Vec<String> = topics.iter().map(|topic| (*topic).to_owned()).collect();
            watch.start(self.read(move |c, _| statements::versions(c, &names)).await?);
            Ok(watch)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::SystemClock;

    const HOUR: Duration = Duration::from_secs(3600);

    fn open(folder: &tempfile::TempDir) -> Arc<Sqlite> {
        let [usual, _] = Sqlite::open(&folder.path().join("a.db"), Arc::new(SystemClock::new())).unwrap();
        Arc::new(usual)
    }

    /// SQLite's own limit stands for the disk's: what it says is the same.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_full_disk_fails_what_does_not_fit_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let store = open(&folder);
        store.write(|c, _| c.pragma_update_and_check(None, "max_page_count", 60, |_| Ok(()))).await.unwrap();
        // They wait together, so that they are one group.
        let blocked = store.write(|_, _| {
            std::thread::sleep(Duration::from_millis(20));
            Ok(())
        });
        let puts = (0..32).map(|at| {
            let store = store.clone();
            tokio::spawn(async move {
                let value = vec![b'x'; if at % 2 == 0 { 500_000 } else { 10 }].into();
                (at, store.put(&format!("full/{at}"), value, Expect::Any, HOUR).await)
            })
        });
        let puts: Vec<_> = puts.collect();
        blocked.await.unwrap();
        for put in puts {
            match put.await.unwrap() {
                (at, Ok(_)) => assert_eq!(at % 2, 1),
                (at, Err(error)) => {
                    assert_eq!((at % 2, error.kind()), (0, ErrorKind::Full), "{error}");
                    assert!(error.is_transient() && error.to_string().contains("the disk is full"), "{error}");
                }
            }
        }
        assert_eq!(store.scan("full/", None, 99).await.unwrap().len(), 16);
    }

    #[tokio::test]
    async fn a_file_that_became_read_only_fails_writes_and_says_so() {
        let folder = tempfile::tempdir().unwrap();
        let store = open(&folder);
        // From the middle of this very group on.
        let _ = store.write(|c, _| c.pragma_update(None, "query_only", true)).await;
        let error = store.put("a/a", "1".into(), Expect::Any, HOUR).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Full);
        assert!(error.to_string().contains("read-only"), "{error}");
        assert_eq!(store.get("a/a").await.unwrap(), None);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn writes_that_wait_are_committed_together() {
        let folder = tempfile::tempdir().unwrap();
        let store = open(&folder);
        let commits = |c: &Connection| c.query_row("PRAGMA data_version", (), |row| row.get::<_, i64>(0));
        let watcher = file::connect(&store.shared.path).unwrap();
        let before = commits(&watcher).unwrap();
        let blocked = store.write(|_, _| {
            std::thread::sleep(Duration::from_millis(20));
            Ok(())
        });
        let puts = (0..100).map(|at| {
            let store = store.clone();
            tokio::spawn(async move { store.put(&format!("a/{at}"), "1".into(), Expect::Any, HOUR).await.unwrap() })
        });
        let puts: Vec<_> = puts.collect();
        blocked.await.unwrap();
        for put in puts {
            assert!(put.await.unwrap().is_stored());
        }
        // The version counts looks that found a change, not commits; what is counted is the frames of the log.
        assert_ne!(commits(&watcher).unwrap(), before);
        let frames = std::fs::metadata(folder.path().join("a.db-wal")).unwrap().len() / 4096;
        assert!(frames < 100, "{frames} pages were written for 100 records");
    }
}
