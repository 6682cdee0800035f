//! A token. It is refused, or read with bounded claims; no key that did not sign it verifies it, and times never panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use linchpin_oauth::dpop::{self, Expected};
use linchpin_oauth::{Alg, Jwk, Jws, Signer};
use std::sync::LazyLock;

static KEYS: LazyLock<Vec<Jwk>> =
    LazyLock::new(|| [Alg::Es256, Alg::Es384, Alg::EdDsa].map(|alg| Signer::generate(alg).0.jwk()).to_vec());

fuzz_target!(|text: &str| {
    let expected =
        Expected::new("GET", "https://rs.example", 1 << 30).with(|expected| expected.access_token = Some(text));
    assert!(dpop::check(text, &expected).is_err());
    let Ok(jws) = Jws::read(text) else { return };
    assert!(text.len() <= Jws::BYTES_MAX && text.split('.').count() == 3);
    for key in KEYS.iter() {
        assert!(jws.verify(key).is_err());
        assert!(!key.fits(Alg::Rs256));
    }
    jws.unverified_issuer();
});
