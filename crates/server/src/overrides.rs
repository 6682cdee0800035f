//! Items that are enabled or disabled for one session or principal only.
//!
//! What is set for a session is kept with the session, and gone with it.

use crate::viewer::{Audience, Viewer};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

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
    principals: Mutex<HashMap<Arc<str>, HashMap<Id, bool>>>,
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
                Some(enabled) => drop(principals.entry(identity.clone()).or_default().insert(item, enabled)),
                None => {
                    let left = principals.get_mut(identity).map(|own| {
                        own.remove(&item);
                        own.len()
                    });
                    if left == Some(0) {
                        principals.remove(identity);
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
        principals.get(viewer.principal()?.identity())?.get(&item).copied()
    }
}
