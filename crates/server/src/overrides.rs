//! Items that are enabled or disabled for one session or principal only.
//!
//! What is set for a session is kept with the session, and gone with it.

use crate::viewer::{Audience, Viewer};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// The key of a session's overrides among its values; those of states count up from 0.
const KEY: u64 = u64::MAX - 1;

/// An item: its kind, and its number in the registry of that kind.
type Id = (&'static str, u64);

/// The overrides of one session or principal.
#[derive(Default)]
struct Own(Mutex<HashMap<Id, bool>>);

impl Own {
    fn lock(&self) -> MutexGuard<'_, HashMap<Id, bool>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The overrides of one registry.
#[derive(Default)]
pub(crate) struct Overrides {
    /// Whether there has ever been one.
    any: AtomicBool,
    /// Those of principals, by item and identity.
    principals: Mutex<HashMap<Id, HashMap<Arc<str>, bool>>>,
}

impl Overrides {
    pub(crate) fn any(&self) -> bool {
        self.any.load(Ordering::Acquire)
    }

    /// Sets an override, or removes it.
    pub(crate) fn set(&self, item: Id, audience: &Audience, enabled: Option<bool>) {
        self.any.store(true, Ordering::Release);
        if let Some(identity) = audience.identity() {
            let mut principals = self.principals.lock().unwrap_or_else(PoisonError::into_inner);
            match enabled {
                Some(enabled) => drop(principals.entry(item).or_default().insert(identity.clone(), enabled)),
                None => {
                    let left = principals.get_mut(&item).map(|own| {
                        own.remove(identity);
                        own.len()
                    });
                    if left == Some(0) {
                        principals.remove(&item);
                    }
                }
            }
        }
        audience.with_locals(|locals| {
            let own = locals.get_or_insert(KEY, || Arc::new(Own::default()));
            if let Ok(own) = own.downcast::<Own>() {
                match enabled {
                    Some(enabled) => drop(own.lock().insert(item, enabled)),
                    None => drop(own.lock().remove(&item)),
                }
            }
        });
    }

    /// What is set for a viewer: for the session first, then for the principal.
    pub(crate) fn get(&self, item: Id, viewer: &Viewer) -> Option<bool> {
        if !self.any() {
            return None;
        }
        let own = viewer.locals().and_then(|locals| locals.get(KEY)).and_then(|own| own.downcast::<Own>().ok());
        if let Some(enabled) = own.and_then(|own| own.lock().get(&item).copied()) {
            return Some(enabled);
        }
        let principals = self.principals.lock().unwrap_or_else(PoisonError::into_inner);
        principals.get(&item)?.get(viewer.principal()?.identity()).copied()
    }

    /// How many items have overrides of principals.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.principals.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}

/// Held by an item wherever it can be found, also by who reads a list from before its removal. The overrides of principals
/// go with the last one.
pub(crate) struct Hold {
    item: Id,
    overrides: Weak<Overrides>,
}

impl Hold {
    pub(crate) fn new(item: Id, overrides: &Arc<Overrides>) -> Arc<Hold> {
        Arc::new(Hold { item, overrides: Arc::downgrade(overrides) })
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        if let Some(overrides) = self.overrides.upgrade().filter(|overrides| overrides.any()) {
            overrides.principals.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.item);
        }
    }
}
