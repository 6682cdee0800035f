//! Tokens that were seen: who they belong to, or that they are worth nothing.

use linchpin_core::Principal;
use linchpin_oauth::Thumbprint;
use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};

/// How far clocks may differ, in seconds.
pub(crate) const LEEWAY_S: u64 = 60;

/// The SHA-256 hash of a token.
pub(crate) type TokenHash = [u8; 32];

/// What is known of a valid token.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    pub(crate) principal: Principal,
    /// The key that it is bound to.
    pub(crate) bound: Option<Thumbprint>,
    /// What it is revoked with, and by which issuer.
    pub(crate) family: Option<(usize, Box<str>)>,
    /// For how many seconds after its end it is accepted, because clocks differ.
    pub(crate) leeway_s: u64,
}

/// What was learned of a token.
#[derive(Clone, Debug)]
pub(crate) enum Verdict {
    Good(Known),
    /// Its issuer says that it is not valid.
    Inactive,
}

/// The tokens, the oldest first to go. They are not kept themselves.
#[derive(Default)]
pub(crate) struct Remembered(Mutex<Tokens>);

#[derive(Default)]
struct Tokens {
    known: HashMap<TokenHash, (Verdict, u64)>,
    /// In the order in which they were learned, with what they take.
    order: VecDeque<(TokenHash, usize)>,
    bytes: usize,
}

/// How many tokens are remembered, and how much of them.
const TOKENS_MAX: usize = 10_000;
const BYTES_MAX: usize = 12 << 20;
/// What a token takes beside its claims.
const ENTRY_BYTES: usize = 512;

impl Remembered {
    /// What is known of a token.
    pub(crate) fn get(&self, hash: &TokenHash, now: u64) -> Option<Verdict> {
        let tokens = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (verdict, until) = tokens.known.get(hash)?;
        (now < *until).then(|| verdict.clone())
    }

    /// Remembers a token of this length until a time.
    pub(crate) fn put(&self, hash: TokenHash, length: usize, verdict: Verdict, until: u64) {
        let mut tokens = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if tokens.known.insert(hash, (verdict, until)).is_none() {
            let bytes = ENTRY_BYTES + length;
            tokens.order.push_back((hash, bytes));
            tokens.bytes += bytes;
        }
        while tokens.order.len() > TOKENS_MAX || tokens.bytes > BYTES_MAX {
            let Some((oldest, bytes)) = tokens.order.pop_front() else { break };
            tokens.known.remove(&oldest);
            tokens.bytes -= bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_forgotten_when_they_are_old_or_many() {
        let remembered = Remembered::default();
        let hash = |n: usize| {
            let mut hash = [0; 32];
            hash[..8].copy_from_slice(&n.to_be_bytes());
            hash
        };
        remembered.put(hash(0), 100, Verdict::Inactive, 10);
        assert!(remembered.get(&hash(0), 9).is_some() && remembered.get(&hash(0), 10).is_none());
        for n in 0..=TOKENS_MAX {
            remembered.put(hash(n), 100, Verdict::Inactive, 20);
        }
        assert!(remembered.get(&hash(0), 11).is_none() && remembered.get(&hash(1), 11).is_some());
        let tokens = remembered.0.lock().unwrap();
        assert_eq!((tokens.known.len(), tokens.order.len()), (TOKENS_MAX, TOKENS_MAX));
        drop(tokens);
        for n in 0..5000 {
            remembered.put(hash(TOKENS_MAX + 1 + n), 8 << 10, Verdict::Inactive, 20);
        }
        let tokens = remembered.0.lock().unwrap();
        assert!(tokens.known.len() < 2000 && tokens.bytes <= BYTES_MAX, "{}", tokens.known.len());
    }
}
