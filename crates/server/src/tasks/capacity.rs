//! How many tasks there are: those that run here, and those that are kept.

use crate::tasks::owner::Owner;
use linchpin_core::limits::TaskLimits;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How often tasks that the store has forgotten are looked for.
const EXPIRE_MS: u64 = 1_000;

/// See the module's documentation. Other processes that share the store count for themselves.
#[derive(Default)]
pub(crate) struct Capacity(Mutex<Counts>);

#[derive(Default)]
struct Counts {
    running: HashMap<Owner, usize>,
    running_all: usize,
    kept: HashMap<Owner, BTreeMap<u64, Entry>>,
    kept_all: usize,
    /// Numbers entries in the order in which they were made.
    made: u64,
    expired_ms: u64,
}

struct Entry {
    id: Arc<str>,
    deleted_ms: u64,
    has_ended: bool,
    /// Whether the store is known to have its record only: no call, no steps, and no end of its own.
    has_only_record: bool,
}

/// A task that runs. Dropping it makes room for another one.
pub(crate) struct Slot {
    capacity: Arc<Capacity>,
    owner: Owner,
}

/// Where a kept task is counted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place(u64);

/// A task that goes for a new one.
pub(crate) struct Victim {
    pub(crate) owner: Owner,
    pub(crate) id: Arc<str>,
    /// Whether the store has its record only.
    pub(crate) has_only_record: bool,
}

impl Capacity {
    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Room for one more task that runs. The error says which limit is reached.
    pub(crate) fn run(self: &Arc<Self>, owner: &Owner, limits: &TaskLimits) -> Result<Slot, String> {
        let mut counts = self.counts();
        let own = counts.running.get(owner).copied().unwrap_or_default();
        if own >= limits.running_per_owner_max {
            return Err(busy(limits.running_per_owner_max, "tasks at once for you"));
        }
        if counts.running_all >= limits.running_max {
            return Err(busy(limits.running_max, "tasks at once"));
        }
        *counts.running.entry(owner.clone()).or_default() += 1;
        counts.running_all += 1;
        Ok(Slot { capacity: self.clone(), owner: owner.clone() })
    }

    /// Counts a new task. Returns the id of the one that goes for it, if one must.
    pub(crate) fn keep(
        &self,
        owner: &Owner,
        id: &Arc<str>,
        deleted_ms: u64,
        now: u64,
        limits: &TaskLimits,
    ) -> Result<(Place, Option<Victim>), String> {
        let mut counts = self.counts();
        let counts = &mut *counts;
        let full = |counts: &Counts| {
            let own = counts.kept.get(owner).map_or(0, BTreeMap::len);
            (own >= limits.kept_per_owner_max, counts.kept_all >= limits.kept_max)
        };
        if full(counts) != (false, false) && now.saturating_sub(counts.expired_ms) >= EXPIRE_MS {
            counts.expired_ms = now;
            counts.expire(now);
        }
        let victim = match full(counts) {
            (false, false) => None,
            (true, _) => Some(counts.evict(Some(owner)).ok_or_else(|| busy(limits.kept_per_owner_max, "tasks kept"))?),
            (false, true) => Some(counts.evict(None).ok_or_else(|| busy(limits.kept_max, "tasks kept"))?),
        };
        Ok((counts.add(owner, id.clone(), deleted_ms, false), victim))
    }

    /// Counts a task that another process has made.
    pub(crate) fn found(&self, owner: &Owner, id: &str, deleted_ms: u64, has_ended: bool) -> Place {
        let mut counts = self.counts();
        let known = counts.kept.get_mut(owner).and_then(|own| own.iter_mut().find(|(_, entry)| *entry.id == *id));
        if let Some((place, entry)) = known {
            (entry.deleted_ms, entry.has_ended, entry.has_only_record) = (deleted_ms, has_ended, false);
            return Place(*place);
        }
        counts.add(owner, id.into(), deleted_ms, has_ended)
    }

    /// A kept task has ended. `has_only_record` says whether the store has its record only.
    pub(crate) fn ended(&self, owner: &Owner, place: Place, deleted_ms: u64, has_only_record: bool) {
        let mut counts = self.counts();
        if let Some(entry) = counts.kept.get_mut(owner).and_then(|own| own.get_mut(&place.0)) {
            (entry.has_ended, entry.deleted_ms, entry.has_only_record) = (true, deleted_ms, has_only_record);
        }
    }

    /// A task that was counted could not be made.
    pub(crate) fn forget(&self, owner: &Owner, place: Place) {
        self.counts().remove(owner, place.0);
    }
}

fn busy(max: usize, what: &str) -> String {
    format!("the server is busy (limit of {max} {what}); try again")
}

impl Counts {
    fn add(&mut self, owner: &Owner, id: Arc<str>, deleted_ms: u64, has_ended: bool) -> Place {
        self.made += 1;
        let entry = Entry { id, deleted_ms, has_ended, has_only_record: false };
        self.kept.entry(owner.clone()).or_default().insert(self.made, entry);
        self.kept_all += 1;
        Place(self.made)
    }

    fn remove(&mut self, owner: &Owner, place: u64) -> Option<Entry> {
        let own = self.kept.get_mut(owner)?;
        let entry = own.remove(&place)?;
        self.kept_all -= 1;
        if own.is_empty() {
            self.kept.remove(owner);
        }
        Some(entry)
    }

    fn expire(&mut self, now: u64) {
        self.kept.retain(|_, own| {
            own.retain(|_, entry| entry.deleted_ms > now);
            !own.is_empty()
        });
        self.kept_all = self.kept.values().map(BTreeMap::len).sum();
    }

    /// Takes the oldest task that has ended, of one owner or of all.
    fn evict(&mut self, owner: Option<&Owner>) -> Option<Victim> {
        let of = |own: &BTreeMap<u64, Entry>| own.iter().find(|(_, entry)| entry.has_ended).map(|(place, _)| *place);
        let (owner, place) = match owner {
            Some(owner) => (owner.clone(), of(self.kept.get(owner)?)?),
            None => {
                let oldest = self.kept.iter().filter_map(|(owner, own)| Some((of(own)?, owner.clone())));
                oldest.min_by_key(|(place, _)| *place).map(|(place, owner)| (owner, place))?
            }
        };
        let entry = self.remove(&owner, place)?;
        Some(Victim { owner, id: entry.id, has_only_record: entry.has_only_record })
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut counts = self.capacity.counts();
        counts.running_all -= 1;
        if let Some(own) = counts.running.get_mut(&self.owner) {
            *own -= 1;
            if *own == 0 {
                counts.running.remove(&self.owner);
            }
        }
    }
}
