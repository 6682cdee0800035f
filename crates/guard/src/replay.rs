//! DPoP proofs that were used, and nonces for when there are too many of them.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use linchpin_oauth::{Secret, dpop, sha256};
use linchpin_store::{Expect, Seal, Store};
use ring::hmac;
use ring::rand::SystemRandom;
use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// How many proofs are remembered.
const PROOFS_MAX: usize = 262_144;
/// How long a proof can be used: it may have been made in the future as well as in the past.
const LIFE_S: u64 = 2 * dpop::AGE_S_MAX;
/// How long a nonce is good for.
const NONCE_S: u64 = 60;

/// What becomes of a proof.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Use {
    First,
    Again,
    /// It needs this nonce.
    Nonce(String),
    /// The store says, which has it under this key: [`Replay::is_first`].
    Shared(String),
}

/// The proofs of the last minutes, and the key of the nonces.
pub(crate) struct Replay {
    used: Mutex<Generations>,
    /// Where they are instead, for all nodes.
    store: Option<Store>,
    nonces: Nonces,
    /// Whether each proof needs a nonce.
    always: bool,
    max: usize,
}

/// What nonces are made with.
enum Nonces {
    /// A key of this process.
    Own(hmac::Key),
    /// The secret that all nodes have.
    Shared(Seal),
}

/// Proofs go from one generation to the other, and are forgotten with it.
#[derive(Default)]
struct Generations {
    number: u64,
    current: HashSet<[u8; 16]>,
    previous: HashSet<[u8; 16]>,
}

impl Replay {
    pub(crate) fn new(always: bool, store: Option<Store>) -> Replay {
        let nonces = match &store {
            Some(store) => Nonces::Shared(store.seal().clone()),
            None => Nonces::Own(
                hmac::Key::generate(hmac::HMAC_SHA256, &SystemRandom::new()).expect("the system gives random bytes"),
            ),
        };
        Replay { used: Mutex::default(), store, nonces, always, max: PROOFS_MAX }
    }

    /// Records the use of a proof.
    pub(crate) fn used(&self, proof: &dpop::Proof, now: u64) -> Use {
        let fresh = proof.nonce.as_deref().is_some_and(|nonce| self.is_fresh(nonce, now));
        let hash = sha256(format!("{} {}", proof.thumbprint, proof.id).as_bytes());
        if self.store.is_some() {
            return match self.always && !fresh {
                true => Use::Nonce(self.nonce(now)),
                false => Use::Shared(format!("proof/{}", URL_SAFE_NO_PAD.encode(hash))),
            };
        }
        let hash: [u8; 16] = hash[..16].try_into().expect("a hash is longer");
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        used.turn(now / LIFE_S);
        if used.current.contains(&hash) || used.previous.contains(&hash) {
            return Use::Again;
        }
        let full = used.current.len() + used.previous.len() >= self.max;
        if (full || self.always) && !fresh {
            return Use::Nonce(self.nonce(now));
        }
        // With a nonce it can be used again within its minute, which is the price of a table that does not grow.
        if !full {
            used.current.insert(hash);
        }
        Use::First
    }

    /// Whether a proof that all nodes remember was not used before. It is now.
    pub(crate) async fn is_first(&self, key: &str) -> Result<bool, linchpin_store::Error> {
        let Some(store) = &self.store else { return Ok(true) };
        let life = Duration::from_secs(LIFE_S);
        Ok(store.kv().put(key, bytes::Bytes::new(), Expect::Absent, life).await?.is_stored())
    }

    /// The time, in a form that only those with the key can make.
    fn nonce(&self, now: u64) -> String {
        let time = now.to_be_bytes();
        URL_SAFE_NO_PAD.encode(match &self.nonces {
            Nonces::Own(key) => [&time, &hmac::sign(key, &time).as_ref()[..16]].concat(),
            Nonces::Shared(seal) => seal.seal(NONCE, b"", &time).to_vec(),
        })
    }

    fn is_fresh(&self, nonce: &str, now: u64) -> bool {
        let Ok(bytes) = URL_SAFE_NO_PAD.decode(nonce) else { return false };
        let time = match &self.nonces {
            Nonces::Own(_) => bytes
                .split_first_chunk()
                .map(|(time, _)| *time)
                .filter(|time| Secret::new(self.nonce(u64::from_be_bytes(*time))) == Secret::new(nonce)),
            Nonces::Shared(seal) => seal.open(NONCE, b"", &bytes).ok().and_then(|time| time[..].try_into().ok()),
        };
        time.map(u64::from_be_bytes).is_some_and(|made| made <= now && now - made < NONCE_S)
    }
}

/// What nonces are sealed for.
const NONCE: &str = "dpop-nonce";

impl Generations {
    fn turn(&mut self, number: u64) {
        // A clock that goes back forgets nothing.
        if number <= self.number {
            return;
        }
        let current = std::mem::take(&mut self.current);
        self.previous = if number == self.number + 1 { current } else { HashSet::new() };
        self.number = number;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linchpin_oauth::dpop::{DpopKey, Expected, check};

    fn proof(key: &DpopKey, nonce: Option<&str>, now: u64) -> dpop::Proof {
        let text = key.proof("GET", "https://a/", nonce, None, now);
        check(&text, &Expected::new("GET", "https://a", now)).unwrap()
    }

    #[test]
    fn a_proof_is_used_once_as_long_as_it_could_be_used() {
        let (replay, key) = (Replay::new(false, None), DpopKey::generate());
        let first = proof(&key, None, 1000);
        assert_eq!(replay.used(&first, 1000), Use::First);
        for later in [1000, 1199, 1200, 1600] {
            assert_eq!(replay.used(&first, later), Use::Again, "{later}");
        }
        assert_eq!(replay.used(&proof(&key, None, 1000), 1600), Use::First);
    }

    #[test]
    fn a_full_table_demands_nonces_and_does_not_grow() {
        let (replay, key) = (Replay { max: 3, ..Replay::new(false, None) }, DpopKey::generate());
        for _ in 0..3 {
            assert_eq!(replay.used(&proof(&key, None, 1000), 1000), Use::First);
        }
        let Use::Nonce(nonce) = replay.used(&proof(&key, None, 1000), 1000) else { panic!("it is full") };
        assert_eq!(replay.used(&proof(&key, Some(&nonce), 1059), 1059), Use::First);
        assert!(matches!(replay.used(&proof(&key, Some(&nonce), 1060), 1060), Use::Nonce(_)), "it is old");
        assert!(matches!(replay.used(&proof(&key, Some("AAAA"), 1060), 1060), Use::Nonce(_)));
        assert_eq!(replay.used.lock().unwrap().current.len(), 3);
        assert_eq!(replay.used(&proof(&key, None, 2400), 2400), Use::First, "it drains");
    }
}
