//! Everything in the memory of this process.

use crate::BoxFuture;
use crate::bucket::{Bucket, Rate, Take, gcra};
use crate::clock::Clock;
use crate::error::Error;
use crate::hub::Hub;
use crate::key;
use crate::kv::{Delete, Expect, Kv, Put, Record, Rev};
use crate::lease::{Claim, Fence, Lease};
use crate::log::{Append, Log, Read};
use crate::topic::{Topic, Watch};
use bytes::Bytes;
use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// All five primitives in memory.
pub(crate) struct Memory {
    clock: Arc<dyn Clock>,
    records: Mutex<Expiring<Record>>,
    logs: Mutex<Expiring<Entries>>,
    leases: Mutex<Expiring<Held>>,
    buckets: Mutex<Expiring<f64>>,
    last: Mutex<Last>,
    hub: Arc<Hub>,
}

/// Numbers that only grow.
#[derive(Default)]
struct Last {
    rev: u64,
    fence: u64,
}

struct Entries {
    fence: Fence,
    /// The number of the first entry that is kept.
    first: u64,
    entries: VecDeque<Bytes>,
}

impl Entries {
    fn next(&self) -> u64 {
        self.first + self.entries.len() as u64
    }
}

struct Held {
    owner: String,
    fence: Fence,
}

impl Memory {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Memory {
        Memory {
            clock,
            records: Mutex::default(),
            logs: Mutex::default(),
            leases: Mutex::default(),
            buckets: Mutex::default(),
            last: Mutex::default(),
            hub: Arc::default(),
        }
    }

    /// One of the maps without what has expired, and the time.
    fn live<'a, T>(&self, map: &'a Mutex<Expiring<T>>) -> (MutexGuard<'a, Expiring<T>>, Duration) {
        let now = self.clock.now();
        let mut map = map.lock().unwrap_or_else(PoisonError::into_inner);
        map.expire(now);
        (map, now)
    }

    fn last(&self) -> MutexGuard<'_, Last> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn do_put(&self, key: &str, value: Bytes, expect: Expect, ttl: Duration) -> Result<Put, Error> {
        key::space(key)?;
        key::value(&value)?;
        key::ttl(ttl)?;
        let (mut records, now) = self.live(&self.records);
        let mut rev = Rev(0);
        let stored = records.insert_if(key, now.saturating_add(ttl), |found| {
            if !expect.meets(found.map(|record| record.rev)) {
                return Err(Put::Conflict(found.cloned()));
            }
            let mut last = self.last();
            last.rev += 1;
            rev = Rev(last.rev);
            Ok(Record { value, rev })
        });
        Ok(stored.map_or_else(|conflict| conflict, |()| Put::Stored(rev)))
    }

    fn do_delete(&self, key: &str, expect: Expect) -> Result<Delete, Error> {
        key::space(key)?;
        key::deletable(expect)?;
        let (mut records, _) = self.live(&self.records);
        if expect != Expect::Any
            && let Some(found) = records.get(key).filter(|found| !expect.meets(Some(found.rev)))
        {
            return Ok(Delete::Conflict(found.clone()));
        }
        Ok(records.remove(key).map_or(Delete::Absent, |_| Delete::Deleted))
    }

    fn do_touch(&self, keys: &[&str], ttl: Duration) -> Result<(), Error> {
        keys.iter().try_for_each(|key| key::space(key).map(drop))?;
        key::ttl(ttl)?;
        let (mut records, now) = self.live(&self.records);
        keys.iter().for_each(|key| records.keep(key, now.saturating_add(ttl)));
        Ok(())
    }

    fn do_scan(&self, prefix: &str, after: Option<&str>, n: usize) -> Result<Vec<(String, Record)>, Error> {
        key::space_of_prefix(prefix)?;
        let (records, _) = self.live(&self.records);
        let from = std::ops::Bound::Included(prefix);
        let from = after.filter(|after| *after >= prefix).map_or(from, std::ops::Bound::Excluded);
        let found = records.entries.range::<str, _>((from, std::ops::Bound::Unbounded));
        let found = found.take_while(|(key, _)| key.starts_with(prefix)).take(n);
        Ok(found.map(|(key, entry)| (key.to_string(), entry.value.clone())).collect())
    }

    fn do_append(
        &self,
        key: &str,
        first: u64,
        entries: Vec<Bytes>,
        fence: Fence,
        ttl: Duration,
    ) -> Result<Append, Error> {
        key::space(key)?;
        key::sequence(first, &entries)?;
        key::ttl(ttl)?;
        let (mut logs, now) = self.live(&self.logs);
        match logs.get_mut(key) {
            Some(log) if fence < log.fence => return Ok(Append::Stale(log.fence)),
            Some(log) if first > log.next() => return Ok(Append::Gap { next: log.next() }),
            Some(log) => {
                let known = usize::try_from(log.next() - first).unwrap_or(usize::MAX);
                log.entries.extend(entries.into_iter().skip(known));
                log.fence = fence;
                logs.keep(key, now.saturating_add(ttl));
            }
            None => logs.insert(key, Entries { fence, first, entries: entries.into() }, now.saturating_add(ttl)),
        }
        Ok(Append::Stored)
    }

    fn do_read(&self, key: &str, after: u64, bytes_max: usize) -> Result<Read, Error> {
        key::space(key)?;
        let (logs, _) = self.live(&self.logs);
        let Some(log) = logs.get(key) else { return Ok(Read::Unknown) };
        if after.saturating_add(1) < log.first {
            return Ok(Read::Trimmed { through: log.first - 1 });
        }
        let skipped = usize::try_from(after.saturating_add(1) - log.first).unwrap_or(usize::MAX);
        let mut bytes = 0;
        let fitting = log.entries.iter().enumerate().skip(skipped).take_while(|(at, entry)| {
            bytes += entry.len();
            *at == skipped || bytes <= bytes_max
        });
        let entries = fitting.map(|(at, entry)| (log.first + at as u64, entry.clone())).collect();
        Ok(Read::Entries { entries, next: log.next() })
    }

    fn do_trim(&self, key: &str, through: u64) -> Result<(), Error> {
        key::space(key)?;
        let (mut logs, _) = self.live(&self.logs);
        if let Some(log) = logs.get_mut(key) {
            let gone = through.saturating_add(1).clamp(log.first, log.next()) - log.first;
            log.entries.drain(..gone as usize);
            log.first += gone;
        }
        Ok(())
    }

    fn do_claim(&self, name: &str, owner: &str, ttl: Duration) -> Result<Claim, Error> {
        key::owned(name, owner)?;
        key::ttl(ttl)?;
        let (mut leases, now) = self.live(&self.leases);
        if let Some(Entry { value: held, until }) = leases.entries.get(name) {
            if held.owner != owner {
                return Ok(Claim::Busy { owner: held.owner.clone(), left: until.0.saturating_sub(now) });
            }
            let fence = held.fence;
            leases.keep(name, now.saturating_add(ttl));
            return Ok(Claim::Held(fence));
        }
        let fence = {
            let mut last = self.last();
            last.fence = millis(now).max(last.fence + 1);
            Fence(last.fence)
        };
        leases.insert(name, Held { owner: owner.to_owned(), fence }, now.saturating_add(ttl));
        Ok(Claim::Held(fence))
    }

    fn do_renew(&self, name: &str, fence: Fence, ttl: Option<Duration>) -> Result<bool, Error> {
        key::space(name)?;
        ttl.map_or(Ok(()), key::ttl)?;
        let (mut leases, now) = self.live(&self.leases);
        let is_held = leases.get(name).is_some_and(|held| held.fence == fence);
        match ttl {
            _ if !is_held => {}
            Some(ttl) => leases.keep(name, now.saturating_add(ttl)),
            None => drop(leases.remove(name)),
        }
        Ok(is_held)
    }

    fn do_take(&self, key: &str, cost: u32, rate: Rate) -> Result<Take, Error> {
        key::space(key)?;
        let (mut buckets, now) = self.live(&self.buckets);
        Ok(match gcra(buckets.get(key).copied(), now, cost, rate)? {
            Ok(full_at_us) => {
                buckets.insert(key, full_at_us, Duration::from_micros(full_at_us.ceil() as u64));
                Take::Ok
            }
            Err(wait) => Take::RetryAfter(wait),
        })
    }
}

fn millis(now: Duration) -> u64 {
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}

fn ready<'a, T: Send + 'a>(value: T) -> BoxFuture<'a, T> {
    Box::pin(std::future::ready(value))
}

impl Kv for Memory {
    fn get<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Option<Record>, Error>> {
        ready(key::space(key).map(|_| self.live(&self.records).0.get(key).cloned()))
    }

    fn put<'a>(
        &'a self,
        key: &'a str,
        value: Bytes,
        expect: Expect,
        ttl: Duration,
    ) -> BoxFuture<'a, Result<Put, Error>> {
        ready(self.do_put(key, value, expect, ttl))
    }

    fn delete<'a>(&'a self, key: &'a str, expect: Expect) -> BoxFuture<'a, Result<Delete, Error>> {
        ready(self.do_delete(key, expect))
    }

    fn touch<'a>(&'a self, keys: &'a [&'a str], ttl: Duration) -> BoxFuture<'a, Result<(), Error>> {
        ready(self.do_touch(keys, ttl))
    }

    fn scan<'a>(
        &'a self,
        prefix: &'a str,
        after: Option<&'a str>,
        n: usize,
    ) -> BoxFuture<'a, Result<Vec<(String, Record)>, Error>> {
        ready(self.do_scan(prefix, after, n))
    }
}

impl Log for Memory {
    fn append<'a>(
        &'a self,
        key: &'a str,
        first_seq: u64,
        entries: Vec<Bytes>,
        fence: Fence,
        ttl: Duration,
    ) -> BoxFuture<'a, Result<Append, Error>> {
        ready(self.do_append(key, first_seq, entries, fence, ttl))
    }

    fn read<'a>(&'a self, key: &'a str, after: u64, bytes_max: usize) -> BoxFuture<'a, Result<Read, Error>> {
        ready(self.do_read(key, after, bytes_max))
    }

    fn trim<'a>(&'a self, key: &'a str, through: u64) -> BoxFuture<'a, Result<(), Error>> {
        ready(self.do_trim(key, through))
    }

    fn delete<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<(), Error>> {
        ready(key::space(key).map(|_| drop(self.live(&self.logs).0.remove(key))))
    }
}

impl Lease for Memory {
    fn claim<'a>(&'a self, name: &'a str, owner: &'a str, ttl: Duration) -> BoxFuture<'a, Result<Claim, Error>> {
        ready(self.do_claim(name, owner, ttl))
    }

    fn renew<'a>(&'a self, name: &'a str, fence: Fence, ttl: Duration) -> BoxFuture<'a, Result<bool, Error>> {
        ready(self.do_renew(name, fence, Some(ttl)))
    }

    fn release<'a>(&'a self, name: &'a str, fence: Fence) -> BoxFuture<'a, Result<bool, Error>> {
        ready(self.do_renew(name, fence, None))
    }

    fn holder<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Option<(String, Fence)>, Error>> {
        let held = |held: &Held| (held.owner.clone(), held.fence);
        ready(key::space(name).map(|_| self.live(&self.leases).0.get(name).map(held)))
    }
}

impl Bucket for Memory {
    fn take<'a>(&'a self, key: &'a str, cost: u32, rate: Rate) -> BoxFuture<'a, Result<Take, Error>> {
        ready(self.do_take(key, cost, rate))
    }
}

impl Topic for Memory {
    fn publish<'a>(&'a self, topic: &'a str) -> BoxFuture<'a, Result<(), Error>> {
        ready(key::space(topic).map(|_| self.hub.bump(topic, millis(self.clock.now()))))
    }

    fn watch<'a>(&'a self, topics: &'a [&'a str]) -> BoxFuture<'a, Result<Watch, Error>> {
        ready(topics.iter().try_for_each(|topic| key::space(topic).map(drop)).map(|()| {
            let mut watch = Watch::new(self.hub.clone(), topics);
            watch.start(topics.iter().map(|topic| self.hub.version(topic).unwrap_or_default()));
            watch
        }))
    }
}

/// A map whose entries expire.
struct Expiring<T> {
    entries: BTreeMap<Arc<str>, Entry<T>>,
    /// The keys in the order in which they expire, those of the same time in the order in which they were given it.
    by_time: BTreeMap<(Duration, u64), Arc<str>>,
    /// How often an entry was given a time.
    timed: u64,
}

struct Entry<T> {
    value: T,
    /// Where it is in `by_time`.
    until: (Duration, u64),
}

impl<T> Default for Expiring<T> {
    fn default() -> Expiring<T> {
        Expiring { entries: BTreeMap::new(), by_time: BTreeMap::new(), timed: 0 }
    }
}

impl<T> Expiring<T> {
    fn get(&self, key: &str) -> Option<&T> {
        self.entries.get(key).map(|entry| &entry.value)
    }

    fn get_mut(&mut self, key: &str) -> Option<&mut T> {
        self.entries.get_mut(key).map(|entry| &mut entry.value)
    }

    /// A key that is new, or another value and time to live for one that is there.
    fn insert(&mut self, key: &str, value: T, until: Duration) {
        let Ok(()) = self.insert_if(key, until, |_| Ok::<T, Infallible>(value));
    }

    /// The same, if `new` makes a value of the one that is there, or of none.
    fn insert_if<E>(
        &mut self,
        key: &str,
        until: Duration,
        new: impl FnOnce(Option<&T>) -> Result<T, E>,
    ) -> Result<(), E> {
        if let Some(entry) = self.entries.get_mut(key) {
            entry.value = new(Some(&entry.value))?;
            retime(&mut self.by_time, &mut self.timed, entry, until);
            return Ok(());
        }
        let value = new(None)?;
        self.timed += 1;
        let (key, until): (Arc<str>, _) = (key.into(), (until, self.timed));
        self.by_time.insert(until, key.clone());
        self.entries.insert(key, Entry { value, until });
        Ok(())
    }

    fn remove(&mut self, key: &str) -> Option<T> {
        let entry = self.entries.remove(key)?;
        self.by_time.remove(&entry.until);
        Some(entry.value)
    }

    /// Another time to live for what is there.
    fn keep(&mut self, key: &str, until: Duration) {
        if let Some(entry) = self.entries.get_mut(key) {
            retime(&mut self.by_time, &mut self.timed, entry, until);
        }
    }

    fn expire(&mut self, now: Duration) {
        while let Some(first) = self.by_time.first_entry().filter(|first| first.key().0 <= now) {
            let key = first.remove();
            self.entries.remove(&key);
        }
    }
}

fn retime<T>(
    by_time: &mut BTreeMap<(Duration, u64), Arc<str>>,
    timed: &mut u64,
    entry: &mut Entry<T>,
    until: Duration,
) {
    if entry.until.0 == until {
        return;
    }
    if let Some(key) = by_time.remove(&entry.until) {
        *timed += 1;
        entry.until = (until, *timed);
        by_time.insert(entry.until, key);
    }
}
