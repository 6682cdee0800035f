//! Everything in a Redis or Valkey server, which nodes share.
//!
//! All keys have one hash tag, so that a script may use several of them and one node of a cluster has them all, and all
//! have a time to live. The time is the server's.

mod failure;
mod link;
mod place;
mod scripts;
mod start;

use crate::BoxFuture;
use crate::bucket::{Bucket, Rate, Take};
use crate::clock::micros;
use crate::error::{Error, ErrorKind};
use crate::hub::Hub;
use crate::key;
use crate::kv::{Delete, Expect, Kv, Put, Record, Rev};
use crate::lease::{Claim, Fence, Lease};
use crate::log::{Append, Log, Read};
use crate::rev::Revs;
use crate::topic::{Topic, Watch};
use ::redis::{FromRedisValue, ScriptInvocation, Value, cmd};
use bytes::Bytes;
use link::{Ask, Link};
use scripts::Scripts;
pub use start::RedisOptions;
use std::sync::Arc;
use std::time::Duration;

/// How long a topic's version is kept after its last publication: 30 days.
const TOPIC_MS: u64 = 30 * 24 * 60 * 60 * 1000;

/// The most records of one command.
const TOUCHED: usize = 500;

/// All five primitives in a server.
pub(crate) struct Redis {
    link: Arc<Link>,
    hub: Arc<Hub>,
    shared: Arc<Shared>,
}

struct Shared {
    scripts: Scripts,
    revs: Revs,
}

impl Redis {
    /// For usual writes and for durable ones. It connects when it is used.
    pub(crate) fn open(options: &RedisOptions) -> Result<[Arc<Redis>; 2], Error> {
        let shared = Arc::new(Shared { scripts: Scripts::new(), revs: Revs::new() });
        let one = |options: RedisOptions| -> Result<Arc<Redis>, Error> {
            let hub: Arc<Hub> = Arc::default();
            Ok(Arc::new(Redis { link: Arc::new(Link::new(options, hub.clone())?), hub, shared: shared.clone() }))
        };
        let usual = one(options.clone().with(|options| options.wait_replicas = 0))?;
        // A connection that waits for replicas lets everything behind it wait.
        let durable = if options.wait_replicas == 0 { usual.clone() } else { one(options.clone())? };
        Ok([usual, durable])
    }

    fn record(&self, key: &str) -> String {
        self.link.key("kv", key)
    }

    fn index(&self, space: &str) -> String {
        self.link.key("index", space)
    }

    /// A log and its entries.
    fn log<'s>(&'s self, script: &'s ::redis::Script, key: &str) -> ScriptInvocation<'s> {
        let mut script = script.key(self.link.key("log", key));
        script.key(self.link.key("entries", key));
        script
    }

    fn scripts(&self) -> &Scripts {
        &self.shared.scripts
    }

    async fn ask(&self, script: ScriptInvocation<'_>) -> Result<Value, Error> {
        self.link.run(&Ask::Script(script)).await
    }

    async fn write(&self, script: ScriptInvocation<'_>) -> Result<Value, Error> {
        self.link.run_replicated(&Ask::Script(script)).await
    }

    /// What a script says that returns 1, 0, or the record that is there instead.
    async fn write_kv(&self, script: ScriptInvocation<'_>) -> Result<Result<bool, Option<Record>>, Error> {
        match self.write(script).await? {
            Value::Int(done) => Ok(Ok(done == 1)),
            Value::Nil => Ok(Err(None)),
            found => Ok(Err(Some(record(found)?))),
        }
    }

    /// One page of a scan: whether there may be more, after which key, and what was found.
    async fn page(
        &self,
        space: &str,
        from: &[u8],
        to: &[u8],
        n: usize,
    ) -> Result<(String, Vec<(String, Record)>), Error> {
        let mut script = self.scripts().scan.key(self.index(space));
        script.arg(self.link.key("kv", "")).arg(from).arg(to).arg(n);
        let (last, found): (String, Vec<Value>) = read(self.ask(script).await?)?;
        let mut found = found.into_iter();
        let mut records = Vec::with_capacity(found.len() / 2);
        while let (Some(key), Some(value)) = (found.next(), found.next()) {
            records.push((read(key)?, record(value)?));
        }
        Ok((last, records))
    }
}

/// Reads an answer. One of another form is not ours.
fn read<T: FromRedisValue>(value: Value) -> Result<T, Error> {
    T::from_redis_value(value).map_err(|_| foreign())
}

/// Reads a record: its revision and its value.
fn record(value: Value) -> Result<Record, Error> {
    let Value::BulkString(bytes) = value else { return Err(foreign()) };
    let bytes = Bytes::from(bytes);
    let (rev, _) = bytes.split_first_chunk().ok_or_else(foreign)?;
    Ok(Record { rev: Rev(u64::from_be_bytes(*rev)), value: bytes.slice(8..) })
}

fn foreign() -> Error {
    Error::new(ErrorKind::Corrupt, "Redis has something else where the store's records are")
}

/// What a record must be for a write, as scripts are told.
fn expected(expect: Expect) -> Vec<u8> {
    match expect {
        Expect::Any => Vec::new(),
        Expect::Absent => b"-".to_vec(),
        Expect::Rev(rev) => rev.0.to_be_bytes().to_vec(),
    }
}

/// A duration in milliseconds, rounded up: nothing expires early.
fn ms(duration: Duration) -> u64 {
    micros(duration).div_ceil(1000)
}

fn number(text: &str) -> Result<u64, Error> {
    text.parse().map_err(|_| foreign())
}

impl Kv for Redis {
    fn get<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Option<Record>, Error>> {
        Box::pin(async move {
            key::space(key)?;
            let mut get = cmd("GET");
            get.arg(self.record(key));
            match self.link.run(&Ask::Cmd(get)).await? {
                Value::Nil => Ok(None),
                found => record(found).map(Some),
            }
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
            let space = key::space(key)?;
            key::value(&value)?;
            key::ttl(ttl)?;
            let rev = self.shared.revs.next();
            let new = [rev.0.to_be_bytes().as_slice(), &value].concat();
            let mut script = self.scripts().put.key(self.record(key));
            script.key(self.index(space)).arg(key).arg(self.link.key("kv", "")).arg(new);
            script.arg(expected(expect)).arg(ms(ttl));
            Ok(match self.write_kv(script).await? {
                Ok(_) => Put::Stored(rev),
                Err(found) => Put::Conflict(found),
            })
        })
    }

    fn delete<'a>(&'a self, key: &'a str, expect: Expect) -> BoxFuture<'a, Result<Delete, Error>> {
        Box::pin(async move {
            let space = key::space(key)?;
            key::deletable(expect)?;
            let mut script = self.scripts().delete.key(self.record(key));
            script.key(self.index(space)).arg(key).arg(expected(expect));
            Ok(match self.write_kv(script).await? {
                Ok(true) => Delete::Deleted,
                Err(Some(found)) => Delete::Conflict(found),
                Ok(false) | Err(None) => Delete::Absent,
            })
        })
    }

    fn touch<'a>(&'a self, keys: &'a [&'a str], ttl: Duration) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move {
            let spaces: Vec<&str> = keys.iter().map(|key| key::space(key)).collect::<Result<_, _>>()?;
            key::ttl(ttl)?;
            let both: Vec<(&&str, &str)> = keys.iter().zip(spaces).collect();
            for some in both.chunks(TOUCHED) {
                let mut script = self.scripts().touch.arg(ms(ttl));
                for (key, space) in some {
                    script.key(self.record(key)).key(self.index(space));
                }
                self.write(script).await?;
            }
            Ok(())
        })
    }

    fn scan<'a>(
        &'a self,
        prefix: &'a str,
        after: Option<&'a str>,
        n: usize,
    ) -> BoxFuture<'a, Result<Vec<(String, Record)>, Error>> {
        Box::pin(async move {
            let space = key::space_of_prefix(prefix)?;
            // No byte of UTF-8 is as large as the end's.
            let to = [b"(", prefix.as_bytes(), b"\xff"].concat();
            let mut from = match after.filter(|after| *after >= prefix) {
                Some(after) => [b"(", after.as_bytes()].concat(),
                None => [b"[", prefix.as_bytes()].concat(),
            };
            let mut all = Vec::new();
            while all.len() < n {
                let (last, found) = self.page(space, &from, &to, n - all.len()).await?;
                all.extend(found);
                if last.is_empty() {
                    break;
                }
                from = [b"(", last.as_bytes()].concat();
            }
            Ok(all)
        })
    }
}

impl Log for Redis {
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
            let mut script = self.log(&self.scripts().append, key);
            script.arg(first_seq).arg(fence.0).arg(ms(ttl));
            for entry in &entries {
                script.arg(&**entry);
            }
            let (became, at): (String, String) = read(self.write(script).await?)?;
            Ok(match became.as_str() {
                "stale" => Append::Stale(Fence(number(&at)?)),
                "gap" => Append::Gap { next: number(&at)? },
                _ => Append::Stored,
            })
        })
    }

    fn read<'a>(&'a self, key: &'a str, after: u64, bytes_max: usize) -> BoxFuture<'a, Result<Read, Error>> {
        Box::pin(async move {
            key::space(key)?;
            let mut script = self.log(&self.scripts().read, key);
            script.arg(after).arg(bytes_max);
            let answer = self.ask(script).await?;
            if answer == Value::Nil {
                return Ok(Read::Unknown);
            }
            let (what, at, entries): (String, String, Vec<Vec<u8>>) = read(answer)?;
            let at = number(&at)?;
            if what == "trimmed" {
                return Ok(Read::Trimmed { through: at });
            }
            let numbered = (after.saturating_add(1)..).zip(entries.into_iter().map(Bytes::from));
            Ok(Read::Entries { entries: numbered.collect(), next: at })
        })
    }

    fn trim<'a>(&'a self, key: &'a str, through: u64) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move {
            key::space(key)?;
            let mut script = self.log(&self.scripts().trim, key);
            script.arg(through);
            self.write(script).await.map(drop)
        })
    }

    fn delete<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move {
            key::space(key)?;
            let mut del = cmd("DEL");
            del.arg(self.link.key("log", key)).arg(self.link.key("entries", key));
            self.link.run_replicated(&Ask::Cmd(del)).await.map(drop)
        })
    }
}

impl Redis {
    async fn renewed(&self, name: &str, fence: Fence, ttl: &str) -> Result<bool, Error> {
        let mut script = self.scripts().renew.key(self.link.key("lease", name));
        script.arg(fence.0.to_string()).arg(ttl);
        Ok(self.write(script).await? == Value::Int(1))
    }
}

impl Lease for Redis {
    fn claim<'a>(&'a self, name: &'a str, owner: &'a str, ttl: Duration) -> BoxFuture<'a, Result<Claim, Error>> {
        Box::pin(async move {
            key::owned(name, owner)?;
            key::ttl(ttl)?;
            let mut script = self.scripts().claim.key(self.link.key("lease", name));
            script.key(self.link.key("fence", "last")).arg(owner).arg(ms(ttl));
            let mut answer: Vec<Value> = read(self.write(script).await?)?;
            match (answer.pop(), answer.pop()) {
                (Some(fence), None) => Ok(Claim::Held(Fence(number(&read::<String>(fence)?)?))),
                (Some(left), Some(owner)) => {
                    let left = u64::try_from(read::<i64>(left)?).unwrap_or_default();
                    Ok(Claim::Busy { owner: read(owner)?, left: Duration::from_millis(left) })
                }
                _ => Err(foreign()),
            }
        })
    }

    fn renew<'a>(&'a self, name: &'a str, fence: Fence, ttl: Duration) -> BoxFuture<'a, Result<bool, Error>> {
        Box::pin(async move {
            key::space(name)?;
            key::ttl(ttl)?;
            self.renewed(name, fence, &ms(ttl).to_string()).await
        })
    }

    fn release<'a>(&'a self, name: &'a str, fence: Fence) -> BoxFuture<'a, Result<bool, Error>> {
        Box::pin(async move {
            key::space(name)?;
            self.renewed(name, fence, "").await
        })
    }

    fn holder<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Option<(String, Fence)>, Error>> {
        Box::pin(async move {
            key::space(name)?;
            let mut get = cmd("GET");
            get.arg(self.link.key("lease", name));
            let found: Option<String> = read(self.link.run(&Ask::Cmd(get)).await?)?;
            let Some(found) = found else { return Ok(None) };
            let (fence, owner) = found.split_once(' ').ok_or_else(foreign)?;
            Ok(Some((owner.to_owned(), Fence(number(fence)?))))
        })
    }
}

impl Bucket for Redis {
    fn take<'a>(&'a self, key: &'a str, cost: u32, rate: Rate) -> BoxFuture<'a, Result<Take, Error>> {
        Box::pin(async move {
            key::space(key)?;
            let (cost_us, burst_us) = rate.times_us(cost)?;
            let mut script = self.scripts().take.key(self.link.key("bucket", key));
            script.arg(cost_us.to_string()).arg(burst_us.to_string());
            // Not replicated, as it is not worth waiting for.
            match read(self.ask(script).await?)? {
                0 => Ok(Take::Ok),
                wait_us => Ok(Take::RetryAfter(Duration::from_micros(wait_us))),
            }
        })
    }
}

impl Topic for Redis {
    fn publish<'a>(&'a self, topic: &'a str) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move {
            key::space(topic)?;
            let mut script = self.scripts().publish.key(self.link.key("topic", topic));
            script.arg(TOPIC_MS);
            let version: String = read(self.ask(script).await?)?;
            self.hub.advance(topic, number(&version)?);
            Ok(())
        })
    }

    fn watch<'a>(&'a self, topics: &'a [&'a str]) -> BoxFuture<'a, Result<Watch, Error>> {
        Box::pin(async move {
            topics.iter().try_for_each(|topic| key::space(topic).map(drop))?;
            // Joined first, so that no version is missed; dropped with the error.
            let mut watch = Watch::new(self.hub.clone(), topics);
            let names: Vec<String> = topics.iter().map(|topic| (*topic).to_owned()).collect();
            watch.start(self.link.watch(&names).await?);
            Ok(watch)
        })
    }
}
