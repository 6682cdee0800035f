//! Any bytes as a PDF document: refused, or text without control characters. It takes bounded stack; memory and time are
//! limited by whoever runs it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use linchpin_fetch::fuzzing::pdf;

fuzz_target!(|body: &[u8]| {
    let Ok(text) = pdf(body) else { return };
    assert!(text.len() <= 32 << 20);
    assert!(!text.contains(|c: char| c.is_control() && !matches!(c, '\n' | '\t')));
});
