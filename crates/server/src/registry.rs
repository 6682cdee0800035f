//! One registry for tools, resources and prompts: readers take a snapshot, changes are published lazily.
//!
//! An insert is cheap (the working copy is changed in place); the first reader after a burst of changes publishes one new
//! snapshot. A snapshot never changes, so rendered lists are cached in it.

use arc_swap::{ArcSwap, Guard};
use bytes::Bytes;
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// Something that can be registered under a name.
pub(crate) trait Item: Send + Sync + 'static {
    /// Its name; unique in the registry.
    fn key(&self) -> &str;
    /// Names it also answers to, unlisted, while no item has that name and no other item answers to it.
    fn hidden(&self) -> &[Box<str>] {
        &[]
    }
    /// Where it was defined, for error messages.
    fn place(&self) -> String;
}

pub(crate) struct Entry<T> {
    pub(crate) item: T,
    /// Place in the list; grows with each insert and is never reused, so that cursors survive changes.
    pub(crate) seq: u64,
}

/// What is offered at one moment.
pub(crate) struct Snapshot<T> {
    /// In list order.
    pub(crate) entries: Vec<Arc<Entry<T>>>,
    by_name: HashMap<Box<str>, Arc<Entry<T>>>,
    /// Unlisted names that several items would answer to, so that none does.
    contested: HashMap<Box<str>, Vec<Arc<Entry<T>>>>,
    /// Rendered lists, one slot for each revision and each of up to two lists of the kind.
    pub(crate) rendered: [[OnceLock<Arc<[Page]>>; 5]; 2],
}

/// One rendered page of a list.
pub(crate) struct Page {
    /// The sequence number after which the page begins.
    pub(crate) after: u64,
    /// The whole result object, stamps included.
    pub(crate) result: Bytes,
}

impl<T> Snapshot<T> {
    pub(crate) fn get(&self, name: &str) -> Option<&Arc<Entry<T>>> {
        self.by_name.get(name)
    }

    /// The names to use in place of one that several items would answer to.
    pub(crate) fn contested(&self, name: &str) -> Option<String>
    where
        T: Item,
    {
        let owners = self.contested.get(name)?;
        Some(owners.iter().map(|e| format!("`{}`", e.item.key())).collect::<Vec<_>>().join(" or "))
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.by_name.keys().map(|k| &**k)
    }
}

struct Working<T> {
    entries: BTreeMap<u64, (Arc<Entry<T>>, bool)>,
    by_name: HashMap<Box<str>, u64>,
    next: u64,
}

/// The registry of one kind.
pub(crate) struct Registry<T> {
    working: Mutex<Working<T>>,
    published: ArcSwap<Snapshot<T>>,
    dirty: AtomicBool,
}

impl<T: Item> Default for Registry<T> {
    fn default() -> Self {
        let empty = Snapshot {
            entries: Vec::new(),
            by_name: HashMap::new(),
            contested: HashMap::new(),
            rendered: Default::default(),
        };
        let working = Working { entries: BTreeMap::new(), by_name: HashMap::new(), next: 1 };
        Registry {
            working: Mutex::new(working),
            published: ArcSwap::from_pointee(empty),
            dirty: AtomicBool::new(false),
        }
    }
}

impl<T: Item> Registry<T> {
    fn lock(&self) -> MutexGuard<'_, Working<T>> {
        self.working.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is offered now.
    #[inline]
    pub(crate) fn snapshot(&self) -> Guard<Arc<Snapshot<T>>> {
        if self.dirty.load(Ordering::Acquire) {
            self.publish();
        }
        self.published.load()
    }

    fn publish(&self) {
        let working = self.lock();
        if !self.dirty.load(Ordering::Acquire) {
            return;
        }
        let entries: Vec<_> =
            working.entries.values().filter(|(_, enabled)| *enabled).map(|(entry, _)| entry.clone()).collect();
        let mut by_name: HashMap<Box<str>, Arc<Entry<T>>> = HashMap::with_capacity(entries.len());
        let mut hidden: HashMap<Box<str>, Vec<Arc<Entry<T>>>> = HashMap::new();
        for entry in &entries {
            by_name.insert(entry.item.key().into(), entry.clone());
            for name in entry.item.hidden() {
                let owners = hidden.entry(name.clone()).or_default();
                if !owners.iter().any(|owner| Arc::ptr_eq(owner, entry)) {
                    owners.push(entry.clone());
                }
            }
        }
        hidden.retain(|name, _| !by_name.contains_key(name));
        let (unique, contested): (HashMap<_, _>, HashMap<_, _>) =
            hidden.into_iter().partition(|(_, owners)| owners.len() == 1);
        by_name
            .extend(unique.into_iter().flat_map(|(name, owners)| owners.into_iter().map(move |o| (name.clone(), o))));
        self.published.store(Arc::new(Snapshot { entries, by_name, contested, rendered: Default::default() }));
        // Not before: who finds nothing to publish reads what was published.
        self.dirty.store(false, Ordering::Release);
    }

    fn changed(&self, working: MutexGuard<'_, Working<T>>) {
        self.dirty.store(true, Ordering::Release);
        drop(working);
    }

    /// Adds an item. The one that has its name already stays, and the error names both places.
    pub(crate) fn insert(&self, item: T) -> Result<(), String> {
        let mut working = self.lock();
        if let Some(seq) = working.by_name.get(item.key()) {
            let other = working.entries.get(seq).map(|(e, _)| e.item.place()).unwrap_or_default();
            return Err(format!("`{}` is defined twice: at {other} and at {}", item.key(), item.place()));
        }
        let seq = working.next;
        working.next += 1;
        working.by_name.insert(item.key().into(), seq);
        working.entries.insert(seq, (Arc::new(Entry { item, seq }), true));
        self.changed(working);
        Ok(())
    }

    /// Takes an item away. `false` if there is none of that name.
    pub(crate) fn remove(&self, name: &str) -> bool {
        let mut working = self.lock();
        let Some(seq) = working.by_name.remove(name) else { return false };
        working.entries.remove(&seq);
        self.changed(working);
        true
    }

    /// Shows or hides an item. `false` if there is none of that name, or it is so already.
    pub(crate) fn enable(&self, name: &str, enabled: bool) -> bool {
        let mut working = self.lock();
        let Some(&seq) = working.by_name.get(name) else { return false };
        let Some((_, now)) = working.entries.get_mut(&seq) else { return false };
        if *now == enabled {
            return false;
        }
        *now = enabled;
        self.changed(working);
        true
    }

    /// Changes an item in place. `false` if there is none of that name; its name cannot change.
    pub(crate) fn update(&self, name: &str, change: impl FnOnce(&T) -> T) -> bool {
        let mut working = self.lock();
        let Some(&seq) = working.by_name.get(name) else { return false };
        let Some((entry, _)) = working.entries.get_mut(&seq) else { return false };
        let item = change(&entry.item);
        if item.key() != name {
            return false;
        }
        *entry = Arc::new(Entry { item, seq });
        self.changed(working);
        true
    }

    /// Gives an item the name that `change` gives it; its place in the list stays. `false` if there is none of that name, or
    /// the new one is taken.
    pub(crate) fn rename(&self, name: &str, change: impl FnOnce(&T) -> T) -> bool {
        let mut working = self.lock();
        let Some(&seq) = working.by_name.get(name) else { return false };
        let Some((entry, _)) = working.entries.get(&seq) else { return false };
        let entry = Arc::new(Entry { item: change(&entry.item), seq });
        if working.by_name.contains_key(entry.item.key()) {
            return false;
        }
        working.by_name.remove(name);
        working.by_name.insert(entry.item.key().into(), seq);
        if let Some((old, _)) = working.entries.get_mut(&seq) {
            *old = entry;
        }
        self.changed(working);
        true
    }

    /// Whether anything was ever registered, enabled or not.
    pub(crate) fn is_empty(&self) -> bool {
        self.lock().entries.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone)]
    struct Thing(&'static str, u8, Vec<Box<str>>);
    impl Item for Thing {
        fn key(&self) -> &str {
            self.0
        }
        fn hidden(&self) -> &[Box<str>] {
            &self.2
        }
        fn place(&self) -> String {
            format!("line {}", self.1)
        }
    }
    fn names(r: &Registry<Thing>) -> Vec<&'static str> {
        r.snapshot().entries.iter().map(|e| e.item.0).collect()
    }

    #[test]
    fn a_snapshot_never_changes_and_the_next_reader_sees_everything() {
        let r = Registry::default();
        for (name, at, alias) in [("b", 1, "alias"), ("a", 2, "other"), ("c", 3, "alias")] {
            r.insert(Thing(name, at, vec![alias.into()])).unwrap();
        }
        let before = r.snapshot();
        assert_eq!(r.insert(Thing("a", 9, vec![])).unwrap_err(), "`a` is defined twice: at line 2 and at line 9");
        assert!(r.enable("b", false) && !r.enable("b", false) && r.remove("c") && !r.remove("c"));
        assert!(r.update("a", |t| Thing(t.0, 7, vec![])));
        assert_eq!(before.entries.len(), 3);
        assert_eq!(names(&r), ["a"]);
        assert_eq!(r.snapshot().get("a").unwrap().item.1, 7);
        assert!(r.snapshot().get("other").is_none() && before.get("other").is_some());
        assert!(r.enable("b", true));
        assert_eq!(names(&r), ["b", "a"], "order is that of the inserts");
    }

    #[test]
    fn who_comes_while_a_change_is_being_published_sees_it_too() {
        use std::sync::mpsc::{Receiver, Sender, channel};
        use std::time::Duration;

        /// Publishing asks it for its names, which takes until it is let go.
        struct Slow(Sender<()>, Mutex<Receiver<()>>);
        impl Item for Slow {
            fn key(&self) -> &str {
                "slow"
            }
            fn hidden(&self) -> &[Box<str>] {
                let _ = self.0.send(());
                let _ = self.1.lock().unwrap().recv();
                &[]
            }
            fn place(&self) -> String {
                String::new()
            }
        }

        let r = Registry::default();
        let (begun, begins) = channel();
        let (go, gone) = channel();
        r.insert(Slow(begun, Mutex::new(gone))).unwrap();
        let (seen, sees) = channel();
        std::thread::scope(|scope| {
            scope.spawn(|| r.snapshot().entries.len());
            begins.recv().unwrap();
            scope.spawn(|| seen.send(r.snapshot().entries.len()));
            // The second has time to answer from what there was before; it must not.
            let early = sees.recv_timeout(Duration::from_millis(200));
            go.send(()).unwrap();
            assert_eq!(early.or_else(|_| sees.recv()), Ok(1));
        });
    }

    #[test]
    fn a_new_name_keeps_the_place_and_takes_none_that_is_used() {
        let r = Registry::default();
        for (name, at) in [("a", 1), ("b", 2)] {
            r.insert(Thing(name, at, vec![])).unwrap();
        }
        r.enable("a", false);
        assert!(r.rename("a", |t| Thing("x_a", t.1, vec!["a".into()])));
        assert!(!r.rename("a", |t| t.clone()) && !r.rename("b", |t| Thing("x_a", t.1, vec![])));
        assert_eq!(names(&r), ["b"], "what was disabled stays so");
        assert!(r.enable("x_a", true) && !r.enable("a", true));
        assert_eq!(names(&r), ["x_a", "b"]);
        assert_eq!(r.snapshot().get("a").unwrap().item.0, "x_a");
    }

    #[test]
    fn an_unlisted_name_answers_only_while_one_item_claims_it() {
        let r = Registry::default();
        r.insert(Thing("fs_query", 1, vec!["query".into(), "query".into()])).unwrap();
        assert_eq!(r.snapshot().get("query").unwrap().item.0, "fs_query");
        r.insert(Thing("pg_query", 2, vec!["query".into()])).unwrap();
        assert!(r.snapshot().get("query").is_none());
        assert_eq!(r.snapshot().contested("query").unwrap(), "`fs_query` or `pg_query`");
        r.enable("fs_query", false);
        assert_eq!(r.snapshot().get("query").unwrap().item.0, "pg_query");
        r.enable("fs_query", true);
        r.insert(Thing("query", 3, vec![])).unwrap();
        assert_eq!(r.snapshot().get("query").unwrap().item.0, "query");
        assert!(r.snapshot().contested("query").is_none());
    }
}
