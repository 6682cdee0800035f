//! Attempts that were wrong, and how long the next one waits.

use crate::client::hash;
use crate::records::{Away, Space};
use crate::shared::Shared;
use serde::{Deserialize, Serialize};
use std::time::Duration;

const DELAY_S_MAX: u64 = 900;

/// How often somebody was wrong, and since when it may try again.
#[derive(Default, Serialize, Deserialize)]
struct Failures {
    count: u32,
    not_before: u64,
}

/// Counts an attempt; `false`: it comes too early.
pub(crate) async fn attempt(shared: &Shared, what: &str, free: u32) -> Result<bool, Away> {
    let name = failures(what);
    let now = shared.now();
    loop {
        let found = shared.records.get::<Failures>(Space::Replay, &name).await?;
        let (mut failed, rev) = match found {
            Some((failed, rev)) => (failed, Some(rev)),
            None => (Failures::default(), None),
        };
        if now < failed.not_before {
            return Ok(false);
        }
        failed.count = failed.count.saturating_add(1);
        if failed.count >= free {
            let delay = 1_u64.checked_shl(failed.count - free).unwrap_or(DELAY_S_MAX).min(DELAY_S_MAX);
            failed.not_before = now + delay;
        }
        let life = Duration::from_secs(DELAY_S_MAX);
        let stored = match rev {
            Some(rev) => shared.records.replace(Space::Replay, &name, &failed, rev, life).await?.is_some(),
            None => shared.records.create(Space::Replay, &name, &failed, life).await?,
        };
        if stored {
            return Ok(true);
        }
    }
}

/// Forgets the attempts that were counted: one was right.
pub(crate) async fn forget(shared: &Shared, what: &str) -> Result<(), Away> {
    shared.records.delete(Space::Replay, &failures(what)).await.map(drop)
}

fn failures(what: &str) -> String {
    format!("failures-{}", hash(what))
}
