//! A small cache of pages, so that the slices of one are consistent.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A cache of fetched and converted pages. Limited in entries and
/// bytes; evicts the least recently used. Rejected: a cache crate, which adds background threads or async locks.
pub(crate) struct Cache<T> {
    inner: Mutex<Inner<T>>,
    entries_max: usize,
    bytes_max: usize,
    ttl: Duration,
}

struct Inner<T> {
    entries: HashMap<String, Entry<T>>,
    bytes: usize,
    clock: u64,
}

struct Entry<T> {
    value: Arc<T>,
    bytes: usize,
    since: Instant,
    used: u64,
}

impl<T> Cache<T> {
    /// Keeps at most this many entries and bytes, each for at most `ttl`; a `ttl` of zero disables the cache.
    pub(crate) fn new(entries_max: usize, bytes_max: usize, ttl: Duration) -> Self {
        let inner = Inner { entries: HashMap::new(), bytes: 0, clock: 0 };
        Self { inner: Mutex::new(inner), entries_max, bytes_max, ttl }
    }

    pub(crate) fn get(&self, key: &str, now: Instant) -> Option<Arc<T>> {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        inner.clock += 1;
        let clock = inner.clock;
        let entry = inner.entries.get_mut(key)?;
        if now.saturating_duration_since(entry.since) >= self.ttl {
            inner.forget(key);
            return None;
        }
        entry.used = clock;
        Some(entry.value.clone())
    }

    pub(crate) fn put(&self, key: String, value: Arc<T>, bytes: usize, now: Instant) {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        inner.forget(&key);
        if self.ttl.is_zero() || bytes > self.bytes_max {
            return;
        }
        while inner.entries.len() >= self.entries_max || inner.bytes + bytes > self.bytes_max {
            let oldest = inner.entries.iter().min_by_key(|(_, entry)| entry.used).map(|(key, _)| key.clone());
            let Some(oldest) = oldest else { break };
            inner.forget(&oldest);
        }
        inner.clock += 1;
        let used = inner.clock;
        inner.bytes += bytes;
        inner.entries.insert(key, Entry { value, bytes, since: now, used });
    }
}

impl<T> Inner<T> {
    fn forget(&mut self, key: &str) {
        if let Some(entry) = self.entries.remove(key) {
            self.bytes -= entry.bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_keeps_what_was_used_last_within_its_bounds_and_for_its_time() {
        let start = Instant::now();
        let later = |ms| start + Duration::from_millis(ms);
        let cache = Cache::new(3, 100, Duration::from_millis(50));
        let put = |key: &str, bytes| cache.put(key.to_owned(), Arc::new(bytes), bytes, start);
        let has = |keys: &str, ms: u64| keys.split(' ').filter(|key| cache.get(key, later(ms)).is_some()).count();
        put("a", 10);
        put("b", 10);
        put("c", 10);
        assert_eq!(has("a", 0), 1);
        put("d", 10);
        assert_eq!((has("b", 0), has("a c d", 0)), (0, 3), "the least recently used goes");
        put("e", 95);
        assert_eq!((has("a c d", 0), has("e", 0)), (0, 1), "bytes count");
        put("f", 101);
        assert_eq!((has("f", 0), has("e", 0)), (0, 1), "what is too large displaces nothing");
        put("e", 20);
        put("g", 70);
        assert_eq!(has("e g", 49), 2, "what is replaced is not counted twice");
        assert_eq!(has("e g", 50), 0, "time ends");
        assert_eq!(cache.inner.lock().unwrap().bytes, 0);
        let none = Cache::new(3, 100, Duration::ZERO);
        none.put("a".to_owned(), Arc::new(1), 1, start);
        assert!(none.get("a", start).is_none());
    }
}
