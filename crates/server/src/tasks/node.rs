//! This process among those that share the store: its lease, its place on the list, and the time they agree on.

use crate::mrtr::now_ms;
use crate::tasks::storage::{Storage, TaskError};
use bytes::Bytes;
use linchpin_store::{Claim, Expect, Fence};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How long a process that has died is remembered, if nobody looks.
const LISTED: Duration = Duration::from_secs(30 * 24 * 3600);
/// A difference of clocks that does not matter.
const CLOCK_MS_MIN: u64 = 100;

impl Storage {
    /// The time: the store's, where several processes share it.
    pub(crate) fn now_ms(&self) -> u64 {
        now_ms().saturating_add_signed(self.clock_ms.load(Ordering::Relaxed))
    }

    /// Learns the store's time, if that was not done yet.
    pub(crate) async fn know_clock(&self) -> Result<(), TaskError> {
        match self.outlives() {
            true => self.has_clock.get_or_try_init(|| self.set_clock()).await.copied(),
            false => Ok(()),
        }
    }

    /// Learns the store's time: the clocks of processes that share it may differ.
    pub(crate) async fn set_clock(&self) -> Result<(), TaskError> {
        let name = format!("{}{}", self.prefix("task-clock"), self.node);
        let before = now_ms();
        // The fence of a new holder is the time at which it claimed the lease.
        let claim = self.store.lease().claim(&name, "clock", Duration::from_millis(1)).await?;
        let after = now_ms();
        if let Claim::Held(fence) = claim {
            let differs = fence.number().cast_signed() - before.midpoint(after).cast_signed();
            let known = self.clock_ms.load(Ordering::Relaxed);
            if known.abs_diff(differs) > after.saturating_sub(before) / 2 + CLOCK_MS_MIN {
                self.clock_ms.store(differs, Ordering::Relaxed);
            }
        }
        Ok(())
    }

    /// The name of a process's lease.
    pub(crate) fn lease(&self, node: &str) -> String {
        format!("{}{node}", self.prefix("task-lease"))
    }

    /// How long a lease lasts.
    pub(crate) fn lasts(&self) -> Duration {
        Duration::from_millis(self.limits.tasks.lease_ms.max(30))
    }

    /// Claims the lease of this process, or renews it. `None` if another one has it.
    pub(crate) async fn claim_lease(&self) -> Result<Option<Fence>, TaskError> {
        // Repeating the claim renews it. A lease that was lost meanwhile is claimed anew; what others took over is theirs.
        let claim = self.store.lease().claim(&self.lease(&self.node), &self.node, self.lasts()).await?;
        Ok(match claim {
            Claim::Held(fence) => Some(fence),
            Claim::Busy { .. } => None,
        })
    }

    /// Puts this process on the list of those whose tasks are taken over when they have died.
    pub(crate) async fn enlist(&self) -> Result<(), TaskError> {
        let key = format!("{}{}", self.prefix("task-node"), self.node);
        let _ = self.store.kv().put(&key, Bytes::from_static(b"{}"), Expect::Any, LISTED).await?;
        Ok(())
    }

    /// Puts it there before its first task: nobody would find that otherwise.
    pub(crate) async fn be_listed(&self) -> Result<(), TaskError> {
        let begin = async || {
            self.claim_lease().await?;
            self.enlist().await
        };
        match self.outlives() {
            true => self.is_listed.get_or_try_init(begin).await.copied(),
            false => Ok(()),
        }
    }
}
