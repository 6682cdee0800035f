//! Sealed state: what was sealed opens, anything else does not, and the binding does not depend on how JSON is written.
#![no_main]

use libfuzzer_sys::fuzz_target;
use linchpin_server::fuzzing::{Keyring, SealKey, binding};
use serde_json::Value;

fuzz_target!(|data: &[u8]| {
    let ring = Keyring::new(SealKey::from_bytes([3; 32]));
    let text = String::from_utf8_lossy(data);
    assert!(ring.open(&text, &[0; 32], 4096).is_none(), "nobody guesses a seal");

    let bound = binding(None, "tools/call", &text);
    let sealed = ring.current.seal(data, &bound, [1; 12]);
    assert_eq!(ring.current.open(&sealed, &bound, sealed.len()).as_deref(), Some(data));
    assert!(ring.current.open(&sealed, &[0; 32], sealed.len()).is_none());
    if let Some(first) = data.first() {
        let at = usize::from(*first) % sealed.len();
        let other = if &sealed[at..=at] == "A" { "B" } else { "A" };
        let changed = [&sealed[..at], other, &sealed[at + 1..]].concat();
        assert!(ring.current.open(&changed, &bound, sealed.len()).is_none());
    }

    if let Ok(value) = serde_json::from_slice::<Value>(data) {
        let compact = binding(Some("p"), "m", &value.to_string());
        assert_eq!(compact, binding(Some("p"), "m", &format!(" {value:#} ")));
        assert_ne!(compact, binding(Some("p"), "m", &format!("[{value}]")));
    }
});
