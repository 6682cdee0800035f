//! The families that ended, until their last access token expires: a list that each node holds.

use crate::records::{Away, Records, Space};
use crate::shared::Shared;
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock, Weak};
use std::time::Duration;

/// Published when a family ends.
pub(crate) const TOPIC: &str = "revoked/all";

/// The most marks that are read.
const MOST: usize = 100_000;

/// Marks of ended families.
#[derive(Debug, Default)]
pub(crate) struct Revoked {
    marks: RwLock<HashSet<String>>,
    /// Whether the list was read: before that nobody can be let in.
    is_read: AtomicBool,
    /// Held while it is read, by one at a time.
    reading: tokio::sync::Mutex<()>,
}

impl Revoked {
    pub(crate) fn has(&self, mark: &str) -> bool {
        self.marks.read().unwrap_or_else(PoisonError::into_inner).contains(mark)
    }

    pub(crate) fn add(&self, mark: String) {
        self.marks.write().unwrap_or_else(PoisonError::into_inner).insert(mark);
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.is_read.load(Ordering::Acquire)
    }

    /// Reads the list if it was not read yet.
    pub(crate) async fn ready(&self, records: &Records) -> Result<(), Away> {
        if self.is_ready() {
            return Ok(());
        }
        let _turn = self.reading.lock().await;
        if self.is_ready() {
            return Ok(());
        }
        self.read(records).await
    }

    /// Reads the list again. After an error it stays as it is.
    async fn reload(&self, records: &Records) -> Result<(), Away> {
        let _turn = self.reading.lock().await;
        self.read(records).await
    }

    async fn read(&self, records: &Records) -> Result<(), Away> {
        let before = self.marks.read().unwrap_or_else(PoisonError::into_inner).clone();
        let mut all: HashSet<String> = records.names(Space::Revoked, MOST).await?.into_iter().collect();
        let mut marks = self.marks.write().unwrap_or_else(PoisonError::into_inner);
        // What was added meanwhile the store may have had too late.
        all.extend(marks.difference(&before).cloned());
        *marks = all;
        drop(marks);
        self.is_read.store(true, Ordering::Release);
        Ok(())
    }
}

/// Follows the list until the issuer is gone, and reads the keys again every minute: one that ended must not be known for longer.
pub(crate) async fn follow(shared: Weak<Shared>, records: Records) {
    const AGAIN: Duration = Duration::from_secs(1);
    let mut watch = loop {
        match records.store().topic().watch(&[TOPIC]).await {
            Ok(watch) => break watch,
            Err(error) => tracing::warn!(%error, "revocations of other nodes are not followed yet"),
        }
        tokio::time::sleep(2 * AGAIN).await;
        if shared.strong_count() == 0 {
            return;
        }
    };
    loop {
        let Some(issuer) = shared.upgrade() else { return };
        let is_read = issuer.revoked.reload(&records).await.is_ok();
        if issuer.keys.known().is_some() {
            // When the store is away, those that are known go on.
            let _ = issuer.keys.ring(&records, issuer.now()).await;
        }
        drop::<Arc<Shared>>(issuer);
        if !is_read {
            tokio::time::sleep(AGAIN).await;
            continue;
        }
        // The end of the issuer is noticed within a minute; expired marks leave the list then, too.
        let _ = tokio::time::timeout(Duration::from_secs(60), watch.next()).await;
    }
}
