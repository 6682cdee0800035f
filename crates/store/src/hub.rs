//! The topics that somebody in this process watches, with the newest versions that are known of them.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

#[derive(Default)]
pub(crate) struct Hub {
    topics: Mutex<HashMap<String, Watched>>,
    changed: Notify,
}

#[derive(Default)]
struct Watched {
    version: u64,
    watches: usize,
}

impl Hub {
    fn topics(&self) -> MutexGuard<'_, HashMap<String, Watched>> {
        self.topics.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the next change of any topic.
    pub(crate) fn changed(&self) -> Notified<'_> {
        self.changed.notified()
    }

    /// The version of a topic that is watched.
    pub(crate) fn version(&self, topic: &str) -> Option<u64> {
        self.topics().get(topic).map(|watched| watched.version)
    }

    /// Another watch of these topics begins. [`Hub::leave`] ends it.
    pub(crate) fn join(&self, topics: &[&str]) {
        let mut all = self.topics();
        topics.iter().for_each(|topic| all.entry((*topic).to_owned()).or_default().watches += 1);
    }

    /// A watch of these topics ends.
    pub(crate) fn leave<'a>(&self, topics: impl Iterator<Item = &'a str>) {
        let mut all = self.topics();
        for topic in topics {
            if let Some(watched) = all.get_mut(topic) {
                watched.watches -= 1;
                if watched.watches == 0 {
                    all.remove(topic);
                }
            }
        }
    }

    /// The topics that are watched.
    #[cfg(any(feature = "redis", feature = "sqlite"))]
    pub(crate) fn watched(&self) -> Vec<String> {
        self.topics().keys().cloned().collect()
    }

    /// A topic has at least this version. Older news, which come late, change nothing.
    pub(crate) fn advance(&self, topic: &str, version: u64) {
        self.set(topic, |known| known.max(version));
    }

    /// What a store has after a time without a connection. If that is older than what is known, the store was lost, and
    /// what the topic is about may have changed with it.
    #[cfg(feature = "redis")]
    pub(crate) fn renew(&self, topic: &str, version: u64) {
        self.set(topic, |known| if version < known { known + 1 } else { version });
    }

    /// A topic has a version after this one and not before this time.
    pub(crate) fn bump(&self, topic: &str, now_ms: u64) {
        self.set(topic, |known| now_ms.max(known + 1));
    }

    fn set(&self, topic: &str, new: impl FnOnce(u64) -> u64) {
        let is_new = self.topics().get_mut(topic).is_some_and(|watched| {
            let known = watched.version;
            watched.version = new(known);
            watched.version != known
        });
        if is_new {
            self.changed.notify_waiters();
        }
    }
}
