//! What a session has subscribed to at connections that it shares: given back when the session ends.

use crate::instance::Instance;
use crate::lock;
use linchpin_core::Session;
use std::sync::{Arc, Mutex, Weak};

/// Gives a subscription back.
pub(crate) type GiveBack = dyn Fn(Arc<Instance>, Box<str>) + Send + Sync;

/// A value of the session.
pub(crate) struct Subscribed {
    all: Mutex<Vec<(Weak<Instance>, Box<str>)>>,
    give_back: Box<GiveBack>,
}

impl Subscribed {
    /// That of a session, under this key. `None` if something else is there.
    pub(crate) fn of(
        session: &Session,
        key: u64,
        give_back: impl FnOnce() -> Box<GiveBack>,
    ) -> Option<Arc<Subscribed>> {
        let made = || Arc::new(Subscribed { all: Mutex::default(), give_back: give_back() }) as _;
        session.locals().get_or_insert(key, made).downcast().ok()
    }

    pub(crate) fn add(&self, instance: &Arc<Instance>, uri: &str) {
        lock(&self.all).push((Arc::downgrade(instance), uri.into()));
    }

    pub(crate) fn remove(&self, uri: &str) {
        lock(&self.all).retain(|(_, known)| **known != *uri);
    }
}

impl Drop for Subscribed {
    fn drop(&mut self) {
        for (instance, uri) in std::mem::take(&mut *lock(&self.all)) {
            // With a connection that was lost, its subscriptions were.
            if let Some(instance) = instance.upgrade().filter(|one| one.lost().is_none()) {
                (self.give_back)(instance, uri);
            }
        }
    }
}
