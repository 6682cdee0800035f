//! Change notifications.

use crate::BoxFuture;
use crate::error::Error;
use crate::hub::Hub;
use std::sync::Arc;

/// Topics, whose watchers are notified that a topic was published, but not how often, and receive no message.
///
/// Publications that a watcher has not seen yet are merged into one. None is lost: after a lost connection, each topic
/// that was published in the meantime is reported once.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), linchpin_store::Error> {
/// use linchpin_store::Store;
///
/// let store = Store::memory();
/// // Watch first, and read the data that the topic is about afterwards, so that no change is missed.
/// let mut watch = store.topic().watch(&["revoked/all"]).await?;
/// store.topic().publish("revoked/all").await?;
/// store.topic().publish("revoked/all").await?;
/// let (topic, _version) = watch.next().await;
/// assert_eq!(topic, "revoked/all");
/// # Ok(())
/// # }
/// ```
pub trait Topic: Send + Sync + 'static {
    /// Notifies all watchers of a topic, in this and in other processes.
    fn publish<'a>(&'a self, topic: &'a str) -> BoxFuture<'a, Result<(), Error>>;

    /// Starts watching topics.
    fn watch<'a>(&'a self, topics: &'a [&'a str]) -> BoxFuture<'a, Result<Watch, Error>>;
}

/// A subscription to topics, which ends when it is dropped. Returned by [`Topic::watch`].
///
/// # Example
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), linchpin_store::Error> {
/// use linchpin_store::Store;
///
/// let store = Store::memory();
/// let mut watch = store.topic().watch(&["config/a", "config/b"]).await?;
/// store.topic().publish("config/b").await?;
/// let (topic, version) = watch.next().await;
/// assert_eq!(topic, "config/b");
/// # let _ = version;
/// # Ok(())
/// # }
/// ```
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

    /// Waits until one of the topics is published, and returns it with its version, which changes with each
    /// publication.
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
