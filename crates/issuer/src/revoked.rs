//! The families that ended, until their last access token expires: a list that each node holds.

use crate::records::{Records, Space};
use std::collections::HashSet;
use std::sync::{Arc, PoisonError, RwLock};

/// Published when a family ends.
pub(crate) const TOPIC: &str = "revoked/all";

/// Marks of ended families.
#[derive(Debug, Default)]
pub(crate) struct Revoked(RwLock<HashSet<String>>);

impl Revoked {
    pub(crate) fn has(&self, mark: &str) -> bool {
        self.0.read().unwrap_or_else(PoisonError::into_inner).contains(mark)
    }

    pub(crate) fn add(&self, mark: String) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).insert(mark);
    }

    /// Reads the list again. What the store cannot say stays as it is.
    async fn reload(&self, records: &Records) {
        if let Ok(all) = records.all::<()>(Space::Revoked, "", 100_000).await {
            let all = all.into_iter().map(|(mark, ())| mark).collect();
            *self.0.write().unwrap_or_else(PoisonError::into_inner) = all;
        }
    }
}

/// Follows the list until the issuer is gone.
pub(crate) async fn follow(revoked: std::sync::Weak<Revoked>, records: Records) {
    let mut watch = loop {
        match records.store().topic().watch(&[TOPIC]).await {
            Ok(watch) => break watch,
            Err(error) => tracing::warn!(%error, "revocations of other nodes are not followed yet"),
        }
        tokio::time::sleep(std::time::Duration::from_secs(2)).await;
        if revoked.strong_count() == 0 {
            return;
        }
    };
    loop {
        let Some(list) = revoked.upgrade() else { return };
        list.reload(&records).await;
        drop::<Arc<Revoked>>(list);
        // The end of the issuer is noticed within a minute; expired marks leave the list then, too.
        let _ = tokio::time::timeout(std::time::Duration::from_secs(60), watch.next()).await;
    }
}
