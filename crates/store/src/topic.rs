//! That something changed.

use crate::BoxFuture;
use crate::error::Error;
use crate::hub::Hub;
use std::sync::Arc;

/// Topics: who watches one learns that it was published, not how often and not what.
///
/// Publications that nobody has seen yet count as one. None is lost: after a connection was lost, each topic that was
/// published meanwhile is reported once.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), linchpin_store::Error> {
/// use linchpin_store::Store;
///
/// let store = Store::memory();
/// // First watch, then read what the topic is about: so no change falls between.
/// let mut watch = store.topic().watch(&["revoked/all"]).await?;
/// store.topic().publish("revoked/all").await?;
/// store.topic().publish("revoked/all").await?;
/// let (topic, _version) = watch.next().await;
/// assert_eq!(topic, "revoked/all");
/// # Ok(())
/// # }
/// ```
pub trait Topic: Send + Sync + 'static {
    /// Wakes everybody who watches a topic, here and in other processes.
    fn publish<'a>(&'a self, topic: &'a str) -> BoxFuture<'a, Result<(), Error>>;

    /// Watches topics from now on.
    fn watch<'a>(&'a self, topics: &'a [&'a str]) -> BoxFuture<'a, Result<Watch, Error>>;
}

/// Topics that are watched, until it is dropped.
pub struct Watch {
    hub: Arc<Hub>,
    /// The topics with the versions that were reported last.
    seen: Vec<(String, u64)>,
    /// Where to look first, so that a busy topic does not hide the others.
    first: usize,
}

impl Watch {
    /// Joins the topics to the hub. [`Watch::start`] says which versions are old.
    pub(crate) fn new(hub: Arc<Hub>, topics: &[&str]) -> Watch {
        hub.join(topics);
        Watch { hub, seen: topics.iter().map(|topic| ((*topic).to_owned(), 0)).collect(), first: 0 }
    }

    /// What the store has of the topics, in the same order: only other versions are news.
    pub(crate) fn start(&mut self, versions: impl IntoIterator<Item = u64>) {
        for ((topic, seen), version) in self.seen.iter_mut().zip(versions) {
            *seen = version;
            self.hub.advance(topic, version);
        }
    }

    /// Waits until one of the topics was published, and returns it with its version: another one after each publication.
    ///
    /// Cancel-safe.
    pub async fn next(&mut self) -> (String, u64) {
        loop {
            let hub = self.hub.clone();
            let changed = hub.changed();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if let Some(found) = self.look() {
                return found;
            }
            changed.await;
        }
    }

    fn look(&mut self) -> Option<(String, u64)> {
        let len = self.seen.len();
        for at in (0..len).map(|step| (self.first + step) % len) {
            let (topic, seen) = &mut self.seen[at];
            if let Some(version) = self.hub.version(topic).filter(|version| version != seen) {
                *seen = version;
                self.first = at + 1;
                return Some((topic.clone(), version));
            }
        }
        None
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.hub.leave(self.seen.iter().map(|(topic, _)| topic.as_str()));
    }
}
