//! How many bad tokens an address may send.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Mutex, PoisonError};

/// The most bad tokens of one address in a minute.
pub(crate) const BAD_TOKENS_A_MINUTE: u32 = 300;
/// The most addresses that are counted.
const ADDRESSES_MAX: usize = 10_000;

/// Bad tokens by address, for the current minute.
#[derive(Default)]
pub(crate) struct BadTokens(Mutex<Minute>);

#[derive(Default)]
struct Minute {
    number: u64,
    counts: HashMap<IpAddr, u32>,
}

impl BadTokens {
    /// Whether an address has sent too many. Then it is the seconds until it may try again.
    pub(crate) fn exceeded(&self, from: IpAddr, now: u64) -> Option<u64> {
        let minute = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let spent =
            minute.number == now / 60 && minute.counts.get(&network(from)).is_some_and(|n| *n >= BAD_TOKENS_A_MINUTE);
        spent.then(|| 60 - now % 60)
    }

    pub(crate) fn count(&self, from: IpAddr, now: u64) {
        let mut minute = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if minute.number != now / 60 {
            *minute = Minute { number: now / 60, counts: HashMap::new() };
        }
        if minute.counts.len() < ADDRESSES_MAX || minute.counts.contains_key(&network(from)) {
            *minute.counts.entry(network(from)).or_default() += 1;
        }
    }

    /// Takes back one that was counted, and was not bad.
    pub(crate) fn forgive(&self, from: IpAddr) {
        let mut minute = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = minute.counts.get_mut(&network(from)) {
            *count = count.saturating_sub(1);
        }
    }
}

/// One subscriber has all addresses of a /64.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) => {
            let [a, b, c, d, ..] = v6.segments();
            Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
        }
        v4 => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_refused_after_its_share_until_the_minute_ends() {
        let bad = BadTokens::default();
        let (one, neighbour, other) =
            ("2001:db8::1".parse().unwrap(), "2001:db8::2".parse().unwrap(), "1.1.1.1".parse().unwrap());
        for _ in 0..BAD_TOKENS_A_MINUTE {
            assert_eq!(bad.exceeded(one, 90), None);
            bad.count(one, 90);
        }
        assert_eq!(bad.exceeded(one, 90), Some(30));
        assert_eq!(bad.exceeded(neighbour, 90), Some(30));
        assert_eq!(bad.exceeded(other, 90), None);
        assert_eq!(bad.exceeded(one, 120), None);
    }
}
