//! The families that ended, and the clients that were removed, until their last access token expires: a list that each node holds.

use crate::records::{Away, Records, Space};
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{PoisonError, RwLock};

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
    /// Whether a token with this mark has ended, or all of its client have, whose mark is after a dot.
    pub(crate) fn has(&self, mark: &str) -> bool {
        let marks = self.marks.read().unwrap_or_else(PoisonError::into_inner);
        marks.contains(mark) || mark.split_once('.').is_some_and(|(_, client)| marks.contains(client))
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
    pub(crate) async fn reload(&self, records: &Records) -> Result<(), Away> {
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
