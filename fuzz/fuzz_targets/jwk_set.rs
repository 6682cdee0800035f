//! A key set. It is refused, or has a bounded number of keys, which are the same when they are written and read again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use linchpin_oauth::{Alg, JwkSet};

fuzz_target!(|text: &[u8]| {
    let Some(set) = JwkSet::parse(text) else { return };
    assert!(set.iter().count() + set.skipped().len() <= JwkSet::KEYS_MAX);
    let again = JwkSet::parse(set.to_value().to_string().as_bytes()).expect("what was written is read");
    assert!(again.skipped().is_empty());
    assert!(set.iter().zip(again.iter()).all(|(one, other)| one.thumbprint() == other.thumbprint() && one.kid() == other.kid()));
    for key in set.iter() {
        for alg in Alg::ALL {
            assert!(!key.verify(*alg, b"message", &[0; 64]));
        }
    }
});
