//! Any text as a cursor: refused, or exactly what would be written.
#![no_main]

use libfuzzer_sys::fuzz_target;
use linchpin_server::fuzzing::{decode, encode};

fuzz_target!(|data: (char, u64, &str)| {
    let (kind, seq, text) = data;
    assert_eq!(decode(kind, &encode(kind, seq)), Some(seq));
    if let Some(seq) = decode(kind, text) {
        assert_eq!(encode(kind, seq), text);
    }
});
