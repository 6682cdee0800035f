//! Any bytes as a PDF document: refused, or text without control characters. It takes bounded stack; memory and time are
//! limited by whoever runs it.
#![no_main]

#[allow(dead_code, reason = "the whole file of the server")]
#[path = "../../servers/fetch/src/convert/pdf/mod.rs"]
mod pdf;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|body: &[u8]| {
    let Ok(pdf::Document { text, .. }) = pdf::read(body) else { return };
    assert!(text.len() <= 32 << 20);
    assert!(!text.contains(|c: char| c.is_control() && !matches!(c, '\n' | '\t')));
});
