//! The cache of results, kept as long as the server allows. Each connection has its own, so that nothing is shared
//! between authorizations.
//!
//! Specification: 2026-07-28 "Caching".

use crate::Change;
use crate::lock::lock;
use crate::response::ResultText;
use linchpin_core::message::ResultMembers;
use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;
use tokio::time::Instant;

pub(crate) struct Cache {
    state: Mutex<State>,
    bytes_max: usize,
}

#[derive(Default)]
struct State {
    kept: HashMap<Key, Kept>,
    bytes: usize,
    /// How often something was invalidated.
    changes: u64,
}

/// The key of a result: the method and a cursor or URI.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Key {
    pub(crate) method: &'static str,
    pub(crate) which: String,
}

struct Kept {
    result: ResultText,
    until: Instant,
}

/// What an entry takes besides its texts, about.
const ENTRY_BYTES: usize = 64 + size_of::<ResultMembers>();

/// The maximum lifetime, whatever a server says.
const LONGEST: Duration = Duration::from_secs(24 * 3_600);

impl Cache {
    pub(crate) fn new(bytes_max: usize) -> Cache {
        Cache { state: Mutex::default(), bytes_max }
    }

    pub(crate) fn get(&self, key: &Key) -> Option<ResultText> {
        let state = lock(&self.state);
        state.kept.get(key).filter(|kept| kept.until > Instant::now()).map(|kept| kept.result.clone())
    }

    /// To be called before a result is asked for: see [`put`](Self::put).
    pub(crate) fn changes(&self) -> u64 {
        lock(&self.state).changes
    }

    /// Stores a result for `ttl_ms`: its JSON text, and where its members are in that. Does nothing if it is too large, or if
    /// something was invalidated since there were so many changes: the result may be older.
    pub(crate) fn put(&self, key: Key, result: &str, members: ResultMembers, ttl_ms: u64, changes: u64) {
        let size = result.len() + key.which.len() + ENTRY_BYTES;
        if ttl_ms == 0 || size > self.bytes_max {
            return;
        }
        let now = Instant::now();
        let mut state = lock(&self.state);
        if state.changes != changes {
            return;
        }
        state.remove(&key);
        if state.bytes + size > self.bytes_max {
            state.retain(|_, kept| kept.until > now);
        }
        if state.bytes + size > self.bytes_max {
            state.retain(|_, _| false);
        }
        let until = now + Duration::from_millis(ttl_ms).min(LONGEST);
        state.bytes += size;
        // A copy, because a slice of the message would keep all of it alive.
        let result = ResultText { text: result.into(), members };
        state.kept.insert(key, Kept { result, until });
    }

    /// Invalidates the results that a change affects.
    pub(crate) fn changed(&self, change: &Change) {
        let mut state = lock(&self.state);
        state.changes += 1;
        if state.kept.is_empty() {
            return;
        }
        state.retain(|key, _| match change {
            Change::Tools => key.method != "tools/list",
            Change::Prompts => key.method != "prompts/list",
            Change::Resources => !matches!(key.method, "resources/list" | "resources/templates/list"),
            Change::Updated(uri) => key.method != "resources/read" || key.which != *uri,
        });
    }

    /// Invalidates all results of a method.
    pub(crate) fn forget(&self, method: &str) {
        let mut state = lock(&self.state);
        state.changes += 1;
        state.retain(|key, _| key.method != method);
    }

    pub(crate) fn clear(&self) {
        let mut state = lock(&self.state);
        state.changes += 1;
        state.retain(|_, _| false);
    }
}

impl State {
    fn retain(&mut self, keep: impl Fn(&Key, &Kept) -> bool) {
        self.kept.retain(|key, kept| keep(key, kept));
        self.bytes = self.kept.iter().map(|(key, kept)| kept.size(key)).sum();
    }

    fn remove(&mut self, key: &Key) {
        if let Some(old) = self.kept.remove(key) {
            self.bytes -= old.size(key);
        }
    }
}

impl Kept {
    fn size(&self, key: &Key) -> usize {
        self.result.text.len() + key.which.len() + ENTRY_BYTES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(method: &'static str, which: &str) -> Key {
        Key { method, which: which.to_owned() }
    }

    #[test]
    fn answers_are_kept_while_fresh_until_a_change_and_within_the_bytes() {
        let cache = Cache::new(1_000);
        let put =
            |key, result: &str, ttl_ms, changes| cache.put(key, result, ResultMembers::default(), ttl_ms, changes);
        put(key("tools/list", ""), "{1}", 60_000, cache.changes());
        put(key("tools/list", "c"), "{2}", 60_000, cache.changes());
        put(key("resources/read", "a:b"), "{3}", 60_000, cache.changes());
        put(key("prompts/list", ""), "{4}", 0, cache.changes());
        let has = |method, which: &str| cache.get(&key(method, which)).is_some();
        assert!(has("tools/list", "") && has("tools/list", "c") && has("resources/read", "a:b"));
        assert!(!has("prompts/list", ""), "a lifetime of nothing");
        cache.changed(&Change::Updated("a:c".into()));
        assert!(has("resources/read", "a:b"));
        cache.changed(&Change::Updated("a:b".into()));
        assert!(!has("resources/read", "a:b") && has("tools/list", ""));
        let before = cache.changes();
        cache.changed(&Change::Tools);
        put(key("tools/list", ""), "{1}", 60_000, before);
        assert!(!has("tools/list", "") && !has("tools/list", "c"));
        put(key("resources/read", "big"), &"x".repeat(2_000), 60_000, cache.changes());
        assert!(!has("resources/read", "big"));
        for n in 0..100 {
            put(key("resources/read", &n.to_string()), &"x".repeat(100), 60_000, cache.changes());
            assert!(lock(&cache.state).bytes <= 1_000);
        }
        assert!(has("resources/read", "99"));
    }
}
