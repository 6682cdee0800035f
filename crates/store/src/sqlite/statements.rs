//! The operations as statements. `now` and `until` are microseconds since 1970.

use crate::bucket::{Rate, Take, gcra};
use crate::error::Error;
use crate::kv::{Delete, Expect, Put, Record, Rev};
use crate::lease::{Claim, Fence};
use crate::log::{Append, Read};
use bytes::Bytes;
use rusqlite::{Connection, OptionalExtension as _, Row};
use std::time::Duration;

type Sql<T> = rusqlite::Result<T>;

/// How many expired rows of a table are deleted at a time.
const SWEPT_MAX: i64 = 512;

/// How long a topic's version is kept after its last publication: 30 days.
const TOPIC_US: i64 = 30 * 24 * 60 * 60 * 1_000_000;

pub(super) fn meta(c: &Connection, name: &str) -> Sql<Option<i64>> {
    c.prepare_cached("SELECT value FROM meta WHERE name = ?1")?.query_row((name,), |row| row.get(0)).optional()
}

pub(super) fn set_meta(c: &Connection, name: &str, value: i64) -> Sql<()> {
    c.prepare_cached("REPLACE INTO meta (name, value) VALUES (?1, ?2)")?.execute((name, value)).map(drop)
}

/// Deletes what has expired: some of it, if it is much.
pub(super) fn sweep(c: &Connection, now: i64) -> Sql<()> {
    for table in ["kv", "log"] {
        let sql = format!(
            "DELETE FROM {table} WHERE rowid IN (SELECT rowid FROM {table} WHERE until <= ?1 ORDER BY until LIMIT ?2)"
        );
        c.prepare_cached(&sql)?.execute((now, SWEPT_MAX))?;
    }
    for (table, key) in [("bucket", "key"), ("lease", "name"), ("topic", "name")] {
        let sql = format!("DELETE FROM {table} WHERE {key} IN (SELECT {key} FROM {table} WHERE until <= ?1 LIMIT ?2)");
        c.prepare_cached(&sql)?.execute((now, SWEPT_MAX))?;
    }
    Ok(())
}

fn record(row: &Row<'_>) -> Sql<Record> {
    Ok(Record { value: row.get::<_, Vec<u8>>(0)?.into(), rev: Rev(row.get::<_, i64>(1)?.cast_unsigned()) })
}

pub(super) fn get(c: &Connection, now: i64, key: &str) -> Sql<Option<Record>> {
    let mut found = c.prepare_cached("SELECT value, rev FROM kv WHERE key = ?1 AND until > ?2")?;
    found.query_row((key, now), record).optional()
}

fn rev(c: &Connection, now: i64, key: &str) -> Sql<Option<Rev>> {
    let mut found = c.prepare_cached("SELECT rev FROM kv WHERE key = ?1 AND until > ?2")?;
    found.query_row((key, now), |row| Ok(Rev(row.get::<_, i64>(0)?.cast_unsigned()))).optional()
}

pub(super) fn put(c: &Connection, now: i64, key: &str, new: &Record, expect: Expect, ttl: i64) -> Sql<Put> {
    if expect != Expect::Any && !expect.meets(rev(c, now, key)?) {
        return Ok(Put::Conflict(get(c, now, key)?));
    }
    let sql = "INSERT INTO kv (key, rev, until, value) VALUES (?1, ?2, ?3, ?4)
        ON CONFLICT (key) DO UPDATE SET rev = excluded.rev, until = excluded.until, value = excluded.value";
    c.prepare_cached(sql)?.execute((key, new.rev.0.cast_signed(), now + ttl, &*new.value))?;
    Ok(Put::Stored(new.rev))
}

pub(super) fn delete(c: &Connection, now: i64, key: &str, expect: Expect) -> Sql<Delete> {
    let Some(found) = rev(c, now, key)? else { return Ok(Delete::Absent) };
    if !expect.meets(Some(found)) {
        return Ok(get(c, now, key)?.map_or(Delete::Absent, Delete::Conflict));
    }
    c.prepare_cached("DELETE FROM kv WHERE key = ?1")?.execute((key,))?;
    Ok(Delete::Deleted)
}

pub(super) fn touch(c: &Connection, now: i64, keys: &[String], ttl: i64) -> Sql<()> {
    let mut touch = c.prepare_cached("UPDATE kv SET until = ?3 WHERE key = ?1 AND until > ?2")?;
    keys.iter().try_for_each(|key| touch.execute((key, now, now + ttl)).map(drop))
}

pub(super) fn scan(c: &Connection, now: i64, prefix: &str, after: &str, n: usize) -> Sql<Vec<(String, Record)>> {
    // Keys are compared as bytes; no byte of UTF-8 is as large as the end's.
    let sql = "SELECT value, rev, key FROM kv WHERE key >= ?1 AND key > ?2 AND until > ?3 ORDER BY key LIMIT ?4";
    let mut rows = c.prepare_cached(sql)?;
    let n = i64::try_from(n).unwrap_or(i64::MAX);
    let mut found = Vec::new();
    let mut rows = rows.query((prefix, after, now, n))?;
    while let Some(row) = rows.next()? {
        let key: String = row.get(2)?;
        if !key.starts_with(prefix) {
            break;
        }
        found.push((key, record(row)?));
    }
    Ok(found)
}

struct LogRow {
    id: i64,
    fence: Fence,
    first: u64,
    next: u64,
}

fn log(c: &Connection, now: i64, key: &str) -> Sql<Option<LogRow>> {
    let sql = "SELECT id, fence, first, next FROM log WHERE key = ?1 AND until > ?2";
    let row = |row: &Row<'_>| {
        let number = |at| row.get::<_, i64>(at).map(i64::cast_unsigned);
        Ok(LogRow { id: row.get(0)?, fence: Fence(number(1)?), first: number(2)?, next: number(3)? })
    };
    c.prepare_cached(sql)?.query_row((key, now), row).optional()
}

/// What is appended to a log.
pub(super) struct Appended {
    pub(super) first: u64,
    pub(super) entries: Vec<Bytes>,
    pub(super) fence: Fence,
    pub(super) ttl: i64,
}

pub(super) fn append(c: &Connection, now: i64, key: &str, new: &Appended) -> Sql<Append> {
    let (fence, until) = (new.fence.0.cast_signed(), now + new.ttl);
    let end = new.first + new.entries.len() as u64;
    let (id, known) = match log(c, now, key)? {
        Some(log) if new.fence < log.fence => return Ok(Append::Stale(log.fence)),
        Some(log) if new.first > log.next => return Ok(Append::Gap { next: log.next }),
        Some(log) => {
            let mut update = c.prepare_cached("UPDATE log SET fence = ?2, next = ?3, until = ?4 WHERE id = ?1")?;
            update.execute((log.id, fence, end.max(log.next).cast_signed(), until))?;
            (log.id, usize::try_from(log.next - new.first).unwrap_or(usize::MAX))
        }
        None => {
            // With the entries of a log that has expired.
            delete_log(c, key)?;
            let sql = "INSERT INTO log (key, fence, first, next, until) VALUES (?1, ?2, ?3, ?4, ?5)";
            let mut insert = c.prepare_cached(sql)?;
            (insert.insert((key, fence, new.first.cast_signed(), end.cast_signed(), until))?, 0)
        }
    };
    let mut insert = c.prepare_cached("INSERT INTO log_entry (log, seq, value) VALUES (?1, ?2, ?3)")?;
    for (at, entry) in new.entries.iter().enumerate().skip(known) {
        insert.execute((id, (new.first + at as u64).cast_signed(), &**entry))?;
    }
    Ok(Append::Stored)
}

/// In a transaction, as it reads twice.
pub(super) fn read(c: &Connection, now: i64, key: &str, after: u64, bytes_max: usize) -> Sql<Read> {
    let Some(log) = log(c, now, key)? else { return Ok(Read::Unknown) };
    if after.saturating_add(1) < log.first {
        return Ok(Read::Trimmed { through: log.first - 1 });
    }
    let mut rows = c.prepare_cached("SELECT seq, value FROM log_entry WHERE log = ?1 AND seq > ?2 ORDER BY seq")?;
    let mut rows = rows.query((log.id, i64::try_from(after).unwrap_or(i64::MAX)))?;
    let (mut entries, mut bytes) = (Vec::new(), 0);
    while let Some(row) = rows.next()? {
        let value: Vec<u8> = row.get(1)?;
        bytes += value.len();
        if !entries.is_empty() && bytes > bytes_max {
            break;
        }
        entries.push((row.get::<_, i64>(0)?.cast_unsigned(), value.into()));
    }
    Ok(Read::Entries { entries, next: log.next })
}

pub(super) fn trim(c: &Connection, now: i64, key: &str, through: u64) -> Sql<()> {
    let Some(log) = log(c, now, key)? else { return Ok(()) };
    let first = through.saturating_add(1).clamp(log.first, log.next).cast_signed();
    c.prepare_cached("DELETE FROM log_entry WHERE log = ?1 AND seq < ?2")?.execute((log.id, first))?;
    c.prepare_cached("UPDATE log SET first = ?2 WHERE id = ?1")?.execute((log.id, first)).map(drop)
}

pub(super) fn delete_log(c: &Connection, key: &str) -> Sql<()> {
    c.prepare_cached("DELETE FROM log WHERE key = ?1")?.execute((key,)).map(drop)
}

pub(super) fn holder(c: &Connection, now: i64, name: &str) -> Sql<Option<(String, Fence, i64)>> {
    let mut held = c.prepare_cached("SELECT owner, fence, until FROM lease WHERE name = ?1 AND until > ?2")?;
    let row = |row: &Row<'_>| Ok((row.get(0)?, Fence(row.get::<_, i64>(1)?.cast_unsigned()), row.get(2)?));
    held.query_row((name, now), row).optional()
}

pub(super) fn claim(c: &Connection, now: i64, name: &str, owner: &str, ttl: i64) -> Sql<Claim> {
    let fence = match holder(c, now, name)? {
        Some((holder, fence, _)) if holder == owner => fence,
        Some((owner, _, until)) => {
            let left = Duration::from_micros((until - now).unsigned_abs());
            return Ok(Claim::Busy { owner, left });
        }
        None => {
            let last = meta(c, "fence")?.unwrap_or_default();
            let fence = (now / 1000).max(last + 1);
            set_meta(c, "fence", fence)?;
            Fence(fence.cast_unsigned())
        }
    };
    let sql = "REPLACE INTO lease (name, owner, fence, until) VALUES (?1, ?2, ?3, ?4)";
    c.prepare_cached(sql)?.execute((name, owner, fence.0.cast_signed(), now + ttl))?;
    Ok(Claim::Held(fence))
}

pub(super) fn renew(c: &Connection, now: i64, name: &str, fence: Fence, ttl: i64) -> Sql<bool> {
    let sql = "UPDATE lease SET until = ?4 WHERE name = ?1 AND fence = ?2 AND until > ?3";
    Ok(c.prepare_cached(sql)?.execute((name, fence.0.cast_signed(), now, now + ttl))? > 0)
}

pub(super) fn release(c: &Connection, now: i64, name: &str, fence: Fence) -> Sql<bool> {
    let sql = "DELETE FROM lease WHERE name = ?1 AND fence = ?2 AND until > ?3";
    Ok(c.prepare_cached(sql)?.execute((name, fence.0.cast_signed(), now))? > 0)
}

pub(super) fn take(c: &Connection, now: i64, key: &str, cost: u32, rate: Rate) -> Sql<Result<Take, Error>> {
    let mut full_at = c.prepare_cached("SELECT full_at FROM bucket WHERE key = ?1 AND until > ?2")?;
    let full_at = full_at.query_row((key, now), |row| row.get(0)).optional()?;
    let full_at: f64 = match gcra(full_at, Duration::from_micros(now.unsigned_abs()), cost, rate) {
        Ok(Ok(full_at)) => full_at,
        Ok(Err(wait)) => return Ok(Ok(Take::RetryAfter(wait))),
        Err(error) => return Ok(Err(error)),
    };
    let sql = "REPLACE INTO bucket (key, full_at, until) VALUES (?1, ?2, ?3)";
    c.prepare_cached(sql)?.execute((key, full_at, full_at.ceil() as i64))?;
    Ok(Ok(Take::Ok))
}

pub(super) fn publish(c: &Connection, now: i64, topic: &str) -> Sql<u64> {
    let sql = "INSERT INTO topic (name, version, until) VALUES (?1, ?2, ?3) ON CONFLICT (name)
        DO UPDATE SET version = max(excluded.version, version + 1), until = excluded.until RETURNING version";
    let mut published = c.prepare_cached(sql)?;
    published.query_row((topic, now / 1000, now + TOPIC_US), |row| Ok(row.get::<_, i64>(0)?.cast_unsigned()))
}

/// The versions of topics, 0 for those that were never published.
pub(super) fn versions(c: &Connection, topics: &[String]) -> Sql<Vec<u64>> {
    let mut version = c.prepare_cached("SELECT version FROM topic WHERE name = ?1")?;
    let version = |topic: &String| {
        let found = version.query_row((topic,), |row| Ok(row.get::<_, i64>(0)?.cast_unsigned())).optional()?;
        Ok(found.unwrap_or_default())
    };
    topics.iter().map(version).collect()
}
