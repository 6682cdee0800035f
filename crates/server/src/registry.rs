//! One registry for tools, resources and prompts: readers take a snapshot, changes are published lazily.
//!
//! An insert is cheap (the working copy is changed in place); the first reader after a burst of changes publishes one new
//! snapshot. A snapshot never changes, so rendered lists are cached in it.

use crate::access::Access;
use crate::overrides::{Hold, Overrides};
use crate::ui::Shown;
use crate::validate::near_miss;
use crate::viewer::{Audience, Predicate, Viewer};
use arc_swap::{ArcSwap, Guard};
use bytes::Bytes;
use foldhash::fast::RandomState;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// An item that can be registered under a name.
pub(crate) trait Item: Send + Sync + 'static {
    /// The kind of item, for error messages.
    const KIND: &'static str;
    /// Its name; unique in the registry.
    fn key(&self) -> &str;
    /// Unlisted aliases, ignored while another item has the name or alias.
    fn hidden(&self) -> &[Box<str>] {
        &[]
    }
    /// The source location of its definition, for error messages.
    fn place(&self) -> String;
    /// Who may use it.
    fn access(&self) -> &Access;
    /// Whether clients that show pages of MCP Apps see something else.
    fn shown(&self) -> Shown {
        Shown::Alike
    }
}

pub(crate) struct Entry<T> {
    pub(crate) item: T,
    /// Position in the list; increases with each insert and is never reused, so that cursors survive changes.
    pub(crate) seq: u64,
    /// Shared with the definitions before and after it.
    hold: Arc<Hold>,
}

impl<T> Entry<T> {
    /// Another definition of the same item.
    fn changed(&self, item: T) -> Arc<Entry<T>> {
        Arc::new(Entry { item, seq: self.seq, hold: self.hold.clone() })
    }
}

/// The registered items at one moment.
pub(crate) struct Snapshot<T> {
    /// In list order.
    pub(crate) entries: Vec<Arc<Entry<T>>>,
    // The server chose the names, so that no client can make them collide.
    by_name: HashMap<Box<str>, Arc<Entry<T>>, RandomState>,
    /// Aliases that several items share, so that none of them is used.
    contested: HashMap<Box<str>, Vec<Arc<Entry<T>>>>,
    /// Disabled items that may be enabled for somebody.
    disabled: HashMap<Box<str>, Arc<Entry<T>>>,
    overrides: Arc<Overrides>,
    /// Whether viewers may see different items.
    per_viewer: bool,
    /// Whether clients that show pages of MCP Apps see other lists.
    pub(crate) with_pages: bool,
    /// Rendered lists, one slot for each revision and each of up to two lists of the kind; then those for clients that show
    /// pages.
    pub(crate) rendered: [[OnceLock<Arc<[Page]>>; 5]; 4],
}

/// One rendered page of a list.
pub(crate) struct Page {
    /// The sequence number after which the page begins.
    pub(crate) after: u64,
    /// The whole result object, stamps included.
    pub(crate) result: Bytes,
}

impl<T: Item> Snapshot<T> {
    /// The enabled item of this name, whoever may see it.
    pub(crate) fn get(&self, name: &str) -> Option<&Arc<Entry<T>>> {
        self.by_name.get(name)
    }

    /// Whether viewers may see different items, so that nothing rendered is shared.
    pub(crate) fn per_viewer(&self) -> bool {
        self.per_viewer
    }

    /// The item of this name, if it exists for the viewer.
    #[inline]
    pub(crate) fn find(&self, name: &str, viewer: impl FnOnce() -> Viewer) -> Option<&Arc<Entry<T>>> {
        if self.per_viewer { self.find_for(name, &viewer()) } else { self.by_name.get(name) }
    }

    pub(crate) fn find_for(&self, name: &str, viewer: &Viewer) -> Option<&Arc<Entry<T>>> {
        let (entry, enabled) = match self.by_name.get(name) {
            Some(entry) => (entry, true),
            None => (self.disabled.get(name)?, false),
        };
        self.sees(entry, enabled, viewer).then_some(entry)
    }

    /// The items that exist for a viewer, in list order.
    pub(crate) fn visible(&self, viewer: &Viewer) -> Vec<&Arc<Entry<T>>> {
        let mut visible: Vec<_> = self.entries.iter().filter(|entry| self.sees(entry, true, viewer)).collect();
        visible.extend(self.disabled.values().filter(|entry| self.sees(entry, false, viewer)));
        visible.sort_unstable_by_key(|entry| entry.seq);
        visible
    }

    /// All items, the disabled ones that may be enabled for somebody included.
    pub(crate) fn everything(&self) -> impl Iterator<Item = &Arc<Entry<T>>> {
        self.entries.iter().chain(self.disabled.values())
    }

    fn sees(&self, entry: &Entry<T>, enabled: bool, viewer: &Viewer) -> bool {
        let own = self.overrides.get((T::KIND, entry.seq), viewer);
        own.unwrap_or_else(|| enabled && entry.item.access().is_visible_to(viewer))
    }

    /// The names to use instead of an alias that several items share.
    pub(crate) fn contested(&self, name: &str, viewer: impl FnOnce() -> Viewer) -> Option<String> {
        let owners = self.contested.get(name)?;
        if self.per_viewer {
            let viewer = viewer();
            if !owners.iter().all(|owner| self.sees(owner, true, &viewer)) {
                return None;
            }
        }
        Some(owners.iter().map(|e| format!("`{}`", e.item.key())).collect::<Vec<_>>().join(" or "))
    }

    /// The name most similar to an unknown one.
    pub(crate) fn near(&self, name: &str, viewer: impl FnOnce() -> Viewer) -> Option<&str> {
        if !self.per_viewer {
            return near_miss(name, self.by_name.keys().map(|known| &**known));
        }
        let viewer = viewer();
        near_miss(name, self.visible(&viewer).into_iter().map(|entry| entry.item.key()))
    }
}

struct Working<T> {
    entries: BTreeMap<u64, (Arc<Entry<T>>, bool)>,
    by_name: HashMap<Box<str>, u64>,
    next: u64,
}

impl<T: Item> Working<T> {
    fn find(&self, name: &str) -> Result<u64, ChangeError> {
        self.by_name.get(name).copied().ok_or_else(|| self.unknown(name))
    }

    fn unknown(&self, name: &str) -> ChangeError {
        let near = near_miss(name, self.by_name.keys().map(|known| &**known)).map(str::to_owned);
        ChangeError::Unknown { kind: T::KIND, name: name.to_owned(), near }
    }
}

/// The error of a failed change to the tools, resources or prompts of a server. Nothing was changed.
///
/// ```
/// # use linchpin_server::{ChangeError, Server};
/// let server = Server::new("s", "1").tool("deploy", || "deployed");
/// let error = server.tools().disable("deplyo").unwrap_err();
/// assert!(matches!(&error, ChangeError::Unknown { near: Some(near), .. } if near == "deploy"));
/// ```
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ChangeError {
    /// No item has this name, enabled or not.
    Unknown {
        /// `tool`, `resource` or `prompt`.
        kind: &'static str,
        /// The unknown name.
        name: String,
        /// The most similar name.
        near: Option<String>,
    },
    /// Another item already has the new name.
    Taken {
        /// `tool`, `resource` or `prompt`.
        kind: &'static str,
        /// The new name.
        name: String,
    },
    /// The new definition is invalid; the text says why.
    Invalid(String),
}

impl fmt::Debug for ChangeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for ChangeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ChangeError::Unknown { kind, name, near: Some(near) } => {
                write!(f, "unknown {kind} `{name}`; did you mean `{near}`?")
            }
            ChangeError::Unknown { kind, name, near: None } => write!(f, "unknown {kind} `{name}`"),
            ChangeError::Taken { kind, name } => write!(f, "there is another {kind} `{name}` already"),
            ChangeError::Invalid(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for ChangeError {}

/// Whom a change concerns.
#[derive(Clone)]
pub(crate) enum Reach {
    Everyone,
    Some(Predicate),
}

/// The registry of one kind.
pub(crate) struct Registry<T> {
    working: Mutex<Working<T>>,
    published: ArcSwap<Snapshot<T>>,
    dirty: AtomicBool,
    overrides: Arc<Overrides>,
    /// The items of changes that nobody was told of yet, as they were before and after.
    touched: Mutex<Vec<Arc<Entry<T>>>>,
}

impl<T: Item> Default for Registry<T> {
    fn default() -> Self {
        let empty = Snapshot {
            entries: Vec::new(),
            by_name: HashMap::default(),
            contested: HashMap::new(),
            disabled: HashMap::new(),
            overrides: Arc::default(),
            per_viewer: false,
            with_pages: false,
            rendered: Default::default(),
        };
        let working = Working { entries: BTreeMap::new(), by_name: HashMap::new(), next: 1 };
        Registry {
            working: Mutex::new(working),
            published: ArcSwap::from_pointee(empty),
            dirty: AtomicBool::new(false),
            overrides: Arc::default(),
            touched: Mutex::default(),
        }
    }
}

impl<T: Item> Registry<T> {
    fn lock(&self) -> MutexGuard<'_, Working<T>> {
        self.working.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The current items.
    #[inline]
    pub(crate) fn snapshot(&self) -> Guard<Arc<Snapshot<T>>> {
        if self.dirty.load(Ordering::Acquire) {
            self.publish();
        }
        self.published.load()
    }

    /// All items, the disabled ones included.
    pub(crate) fn all(&self) -> Vec<Arc<Entry<T>>> {
        self.lock().entries.values().map(|(entry, _)| entry.clone()).collect()
    }

    fn publish(&self) {
        let working = self.lock();
        if !self.dirty.load(Ordering::Acquire) {
            return;
        }
        let entries: Vec<_> =
            working.entries.values().filter(|(_, enabled)| *enabled).map(|(entry, _)| entry.clone()).collect();
        let mut by_name = HashMap::with_capacity_and_hasher(entries.len(), RandomState::default());
        let mut hidden: HashMap<Box<str>, Vec<Arc<Entry<T>>>> = HashMap::new();
        for entry in &entries {
            by_name.insert(Box::from(entry.item.key()), entry.clone());
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
        let overrides = self.overrides.clone();
        let disabled = working.entries.values().filter(|(_, enabled)| !enabled && overrides.any());
        let disabled = disabled.map(|(entry, _)| (entry.item.key().into(), entry.clone())).collect();
        let per_viewer = overrides.any() || entries.iter().any(|entry| entry.item.access().is_restricted());
        let with_pages = entries.iter().any(|entry| entry.item.shown() != Shown::Alike);
        let rendered = Default::default();
        let snapshot = Snapshot { entries, by_name, contested, disabled, overrides, per_viewer, with_pages, rendered };
        self.published.store(Arc::new(snapshot));
        // Not earlier: a reader that finds the flag cleared uses the published snapshot.
        self.dirty.store(false, Ordering::Release);
    }

    fn changed(&self, working: MutexGuard<'_, Working<T>>, touched: impl IntoIterator<Item = Arc<Entry<T>>>) {
        self.touched.lock().unwrap_or_else(PoisonError::into_inner).extend(touched);
        self.dirty.store(true, Ordering::Release);
        drop(working);
    }

    /// Adds an item. If the name is taken, the existing item stays and the error names both places.
    pub(crate) fn insert(&self, item: T) -> Result<(), String> {
        let mut working = self.lock();
        if let Some(seq) = working.by_name.get(item.key()) {
            let other = working.entries.get(seq).map(|(e, _)| e.item.place()).unwrap_or_default();
            return Err(format!("`{}` is defined twice: at {other} and at {}", item.key(), item.place()));
        }
        let seq = working.next;
        working.next += 1;
        working.by_name.insert(item.key().into(), seq);
        let entry = Arc::new(Entry { item, seq, hold: Hold::new((T::KIND, seq), &self.overrides) });
        working.entries.insert(seq, (entry.clone(), true));
        self.changed(working, [entry]);
        Ok(())
    }

    /// Replaces the item of the same name atomically.
    pub(crate) fn replace(&self, item: T) -> Result<(), ChangeError> {
        let mut working = self.lock();
        let seq = working.find(item.key())?;
        let Some((entry, _)) = working.entries.get_mut(&seq) else { return Err(working.unknown(item.key())) };
        let new = entry.changed(item);
        let old = std::mem::replace(entry, new.clone());
        self.changed(working, [new, old]);
        Ok(())
    }

    /// Removes an item.
    pub(crate) fn remove(&self, name: &str) -> Result<(), ChangeError> {
        let mut working = self.lock();
        let seq = working.find(name)?;
        working.by_name.remove(name);
        let old = working.entries.remove(&seq).map(|(entry, _)| entry);
        self.changed(working, old);
        Ok(())
    }

    /// Enables or disables an item. Returns `false` if nothing changed.
    pub(crate) fn enable(&self, name: &str, enabled: bool) -> Result<bool, ChangeError> {
        let mut working = self.lock();
        let seq = working.find(name)?;
        let Some((entry, now)) = working.entries.get_mut(&seq).filter(|(_, now)| *now != enabled) else {
            return Ok(false);
        };
        *now = enabled;
        let entry = entry.clone();
        self.changed(working, [entry]);
        Ok(true)
    }

    /// Changes an item in place; its name stays.
    pub(crate) fn update(&self, name: &str, change: impl FnOnce(&T) -> Result<T, String>) -> Result<(), ChangeError> {
        let mut working = self.lock();
        let seq = working.find(name)?;
        let Some((entry, _)) = working.entries.get_mut(&seq) else { return Err(working.unknown(name)) };
        let new = entry.changed(change(&entry.item).map_err(ChangeError::Invalid)?);
        let old = std::mem::replace(entry, new.clone());
        self.changed(working, [new, old]);
        Ok(())
    }

    /// Renames an item; its position in the list stays.
    pub(crate) fn rename(&self, name: &str, change: impl FnOnce(&T) -> T) -> Result<(), ChangeError> {
        let mut working = self.lock();
        let seq = working.find(name)?;
        let Some((entry, _)) = working.entries.get(&seq) else { return Err(working.unknown(name)) };
        let entry = entry.changed(change(&entry.item));
        let new = entry.item.key();
        if working.by_name.contains_key(new) {
            return Err(ChangeError::Taken { kind: T::KIND, name: new.to_owned() });
        }
        let new = Box::from(new);
        working.by_name.remove(name);
        working.by_name.insert(new, seq);
        let old = working.entries.get_mut(&seq).map(|(old, _)| std::mem::replace(old, entry.clone()));
        self.changed(working, [entry].into_iter().chain(old));
        Ok(())
    }

    /// Enables or disables an item for somebody; `None` removes what was set.
    pub(crate) fn enable_for(&self, name: &str, to: &Audience, enabled: Option<bool>) -> Result<(), ChangeError> {
        let working = self.lock();
        let seq = working.find(name)?;
        // The snapshot has disabled items only since the first override.
        let first = !self.overrides.any();
        self.overrides.set((T::KIND, seq), to, enabled);
        if first {
            self.changed(working, []);
        }
        Ok(())
    }

    /// Whom the changes concern that nobody was told of yet. `None` if there are none.
    pub(crate) fn take_touched(&self) -> Option<Reach> {
        let touched = std::mem::take(&mut *self.touched.lock().unwrap_or_else(PoisonError::into_inner));
        if touched.is_empty() {
            return None;
        }
        if !self.overrides.any() && touched.iter().any(|entry| !entry.item.access().is_restricted()) {
            return Some(Reach::Everyone);
        }
        let overrides = self.overrides.clone();
        Some(Reach::Some(Arc::new(move |viewer| {
            touched.iter().any(|entry| {
                let own = overrides.get((T::KIND, entry.seq), viewer);
                own.unwrap_or_else(|| entry.item.access().is_visible_to(viewer))
            })
        })))
    }

    /// Whether nothing was ever registered, enabled or not.
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
        const KIND: &'static str = "thing";
        fn key(&self) -> &str {
            self.0
        }
        fn hidden(&self) -> &[Box<str>] {
            &self.2
        }
        fn place(&self) -> String {
            format!("line {}", self.1)
        }
        fn access(&self) -> &Access {
            const { &Access::NONE }
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
        assert_eq!((r.enable("b", false), r.enable("b", false), r.remove("c")), (Ok(true), Ok(false), Ok(())));
        assert_eq!(r.remove("c").unwrap_err().to_string(), "unknown thing `c`");
        assert_eq!(r.update("a", |t| Ok(Thing(t.0, 7, vec![]))), Ok(()));
        assert_eq!(r.update("a", |_| Err("no".into())), Err(ChangeError::Invalid("no".into())));
        assert_eq!(before.entries.len(), 3);
        assert_eq!(names(&r), ["a"]);
        assert_eq!(r.snapshot().get("a").unwrap().item.1, 7);
        assert!(r.snapshot().get("other").is_none() && before.get("other").is_some());
        assert_eq!(r.enable("b", true), Ok(true));
        assert_eq!(names(&r), ["b", "a"], "order is that of the inserts");
    }

    #[test]
    fn who_comes_while_a_change_is_being_published_sees_it_too() {
        use std::sync::mpsc::{Receiver, Sender, channel};
        use std::time::Duration;

        /// Publishing calls its `hidden`, which blocks until released.
        struct Slow(Sender<()>, Mutex<Receiver<()>>);
        impl Item for Slow {
            const KIND: &'static str = "slow thing";
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
            fn access(&self) -> &Access {
                const { &Access::NONE }
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
            // The second must not return the snapshot from before, although it has time to.
            let early = sees.recv_timeout(Duration::from_millis(200));
            go.send(()).unwrap();
            assert_eq!(early.or_else(|_| sees.recv()), Ok(1));
        });
    }

    #[test]
    fn what_was_set_for_principals_goes_with_the_item_and_its_last_reader() {
        let r = Registry::default();
        r.insert(Thing("a", 1, vec![])).unwrap();
        let ada = Audience::principal(&linchpin_core::Principal::new("ada"));
        r.enable_for("a", &ada, Some(false)).unwrap();
        r.replace(Thing("a", 2, vec![])).unwrap();
        drop(r.take_touched());
        assert_eq!((names(&r).len(), r.overrides.len()), (1, 1), "a new definition changes nothing");
        let read = r.snapshot().clone();
        r.remove("a").unwrap();
        drop(r.take_touched());
        assert_eq!((names(&r).len(), r.overrides.len()), (0, 1), "who reads still must not see it");
        drop(read);
        assert_eq!(r.overrides.len(), 0);
    }

    #[test]
    fn a_new_name_keeps_the_place_and_takes_none_that_is_used() {
        let r = Registry::default();
        for (name, at) in [("a", 1), ("b", 2)] {
            r.insert(Thing(name, at, vec![])).unwrap();
        }
        assert_eq!(r.enable("a", false), Ok(true));
        assert_eq!(r.rename("a", |t| Thing("x_a", t.1, vec!["a".into()])), Ok(()));
        assert!(matches!(r.rename("a", |t| t.clone()), Err(ChangeError::Unknown { .. })));
        let taken = r.rename("b", |t| Thing("x_a", t.1, vec![])).unwrap_err();
        assert_eq!(taken.to_string(), "there is another thing `x_a` already");
        assert_eq!(names(&r), ["b"], "what was disabled stays so");
        assert_eq!(r.enable("x_a", true), Ok(true));
        assert!(matches!(r.enable("a", true), Err(ChangeError::Unknown { .. })));
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
        assert_eq!(r.snapshot().contested("query", || unreachable!()).unwrap(), "`fs_query` or `pg_query`");
        r.enable("fs_query", false).unwrap();
        assert_eq!(r.snapshot().get("query").unwrap().item.0, "pg_query");
        r.enable("fs_query", true).unwrap();
        r.insert(Thing("query", 3, vec![])).unwrap();
        assert_eq!(r.snapshot().get("query").unwrap().item.0, "query");
        assert!(r.snapshot().contested("query", || unreachable!()).is_none());
    }
}
