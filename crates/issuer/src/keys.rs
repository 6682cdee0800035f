//! The keys that sign access tokens: in the store, sealed, each for 90 days, published a day before it signs.

use crate::limits::{KEY_AHEAD, KEY_LIFE};
use crate::records::{Away, Records, Space};
use linchpin_oauth::{Alg, JwkSet, Secret, Signer};
use serde::{Deserialize, Serialize};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

/// For how many seconds the keys that were read are used without asking the store again.
const FRESH_S: u64 = 60;

/// For how long keys are published after a rotation: a day is the longest life of an access token.
const AFTER_ROTATION: Duration = Duration::from_secs(86_400 + 120);

/// A key as it is kept. Its name in the store is its number, so that of several nodes one creates the next.
#[derive(Serialize, Deserialize)]
struct Stored {
    secret: Secret,
    signs_from: u64,
    /// When it ends because of a rotation; 0: after its usual life.
    #[serde(default)]
    until: u64,
}

impl Stored {
    /// When it ends: published until the last token that it signed has expired.
    fn until(&self) -> u64 {
        match self.until {
            0 => self.signs_from + (KEY_LIFE + KEY_AHEAD).as_secs(),
            until => until,
        }
    }
}

/// The keys, as they were last read.
#[derive(Debug, Default)]
pub(crate) struct Keys {
    ring: RwLock<Option<Arc<KeyRing>>>,
}

/// The keys of one moment.
#[derive(Debug)]
pub(crate) struct KeyRing {
    /// Oldest first.
    keys: Vec<(u64, Signer)>,
    set: Arc<JwkSet>,
    newest: u64,
    read_at: u64,
}

impl Keys {
    /// Returns the keys that were last read, however old.
    pub(crate) fn known(&self) -> Option<Arc<KeyRing>> {
        self.ring.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the keys, read again after a minute. When the store is away, those that are known go on.
    pub(crate) async fn ring(&self, records: &Records, now: u64) -> Result<Arc<KeyRing>, Away> {
        let known = self.known();
        if let Some(ring) = known.clone().filter(|ring| ring.read_at + FRESH_S > now) {
            return Ok(ring);
        }
        match self.reload(records, now).await {
            Ok(ring) => Ok(ring),
            Err(away) => known.filter(|ring| ring.signer(now).is_some()).ok_or(away),
        }
    }

    /// Reads the keys, and creates the next one if it is time.
    pub(crate) async fn reload(&self, records: &Records, now: u64) -> Result<Arc<KeyRing>, Away> {
        let mut ring = read(records, now).await?;
        let last = ring.keys.last().map(|(from, _)| *from);
        let due = last.is_none_or(|from| from + KEY_LIFE.as_secs() < now + KEY_AHEAD.as_secs());
        if due {
            let signs_from = last.map_or(now, |from| (from + KEY_LIFE.as_secs()).max(now));
            create(records, ring.newest + 1, signs_from, now).await?;
            ring = read(records, now).await?;
        }
        let ring = Arc::new(ring);
        *self.ring.write().unwrap_or_else(PoisonError::into_inner) = Some(ring.clone());
        Ok(ring)
    }

    /// Creates a key that signs at once. Those before it stay published until their last token has expired; one that would have
    /// signed later is deleted, since whoever knows the others may know it too.
    pub(crate) async fn rotate(&self, records: &Records, now: u64) -> Result<Arc<KeyRing>, Away> {
        let number = loop {
            let next = read(records, now).await?.newest + 1;
            // Another node may create one of this number meanwhile, ahead of its time.
            if create(records, next, now, now).await? {
                break format!("{next:08}");
            }
        };
        let until = now + AFTER_ROTATION.as_secs();
        for (name, mut stored) in records.all::<Stored>(Space::Key, "", 1000).await? {
            if stored.signs_from > now {
                records.delete(Space::Key, &name).await?;
            } else if name < number && stored.until() > until {
                stored.until = until;
                records.put(Space::Key, &name, &stored, AFTER_ROTATION).await?;
            }
        }
        self.reload(records, now).await
    }
}

impl KeyRing {
    /// Returns the key that signs now.
    pub(crate) fn signer(&self, now: u64) -> Option<&Signer> {
        self.keys.iter().rev().find(|(from, _)| *from <= now).map(|(_, signer)| signer)
    }

    /// Returns the public halves.
    pub(crate) fn set(&self) -> &Arc<JwkSet> {
        &self.set
    }

    /// Whether these keys are older than a second, so that reading them again may find a new one.
    pub(crate) fn may_be_old(&self, now: u64) -> bool {
        self.read_at < now
    }
}

async fn read(records: &Records, now: u64) -> Result<KeyRing, Away> {
    let mut ring = KeyRing { keys: Vec::new(), set: Arc::default(), newest: 0, read_at: now };
    for (name, stored) in records.all::<Stored>(Space::Key, "", 1000).await? {
        let signer = Signer::from_secret(&stored.secret, Alg::Es256).map_err(|_| Away)?;
        let kid = signer.jwk().thumbprint().to_string();
        ring.keys.push((stored.signs_from, signer.kid(kid)));
        ring.newest = ring.newest.max(name.parse().unwrap_or_default());
    }
    ring.keys.sort_by_key(|(from, _)| *from);
    ring.set = Arc::new(ring.keys.iter().map(|(_, signer)| signer.jwk()).collect());
    Ok(ring)
}

/// Creates the key of this number, unless another node was faster: then `false`.
async fn create(records: &Records, number: u64, signs_from: u64, now: u64) -> Result<bool, Away> {
    let (_, secret) = Signer::generate(Alg::Es256);
    let stored = Stored { secret, signs_from, until: 0 };
    let life = Duration::from_secs(stored.until().saturating_sub(now));
    records.create(Space::Key, &format!("{number:08}"), &stored, life).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use linchpin_store::{Clock as _, ManualClock, Store};

    #[tokio::test]
    async fn after_a_rotation_older_keys_go_within_a_day_and_none_waits() {
        let clock = Arc::new(ManualClock::default());
        let records = Records::new(&Store::builder().clock(clock.clone()).memory());
        let (keys, now) = (Keys::default(), || clock.now().as_secs());
        let kid = |ring: &KeyRing| ring.signer(now()).unwrap().jwk().thumbprint().to_string();
        keys.reload(&records, now()).await.unwrap();
        clock.advance(KEY_LIFE - KEY_AHEAD + Duration::from_secs(1));
        assert_eq!(keys.reload(&records, now()).await.unwrap().keys.len(), 2, "one is published ahead");
        clock.advance(Duration::from_secs(1));
        let first = kid(&keys.rotate(&records, now()).await.unwrap());
        clock.advance(Duration::from_secs(60));
        let ring = keys.rotate(&records, now()).await.unwrap();
        let last = kid(&ring);
        assert!(first != last && ring.set().has(&first), "tokens of the one before are good");
        assert_eq!(ring.keys.len(), 3, "the one ahead is gone");
        clock.advance(AFTER_ROTATION - Duration::from_secs(61));
        assert_eq!(keys.reload(&records, now()).await.unwrap().keys.len(), 3);
        clock.advance(Duration::from_secs(62));
        let ring = keys.reload(&records, now()).await.unwrap();
        assert_eq!((ring.keys.len(), kid(&ring)), (1, last));
    }
}
