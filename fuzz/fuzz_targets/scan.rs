//! The scanner against serde_json: the same texts are accepted, and a value's span is the value.
#![no_main]

use libfuzzer_sys::fuzz_target;
use linchpin_core::json::{Scanner, TOO_DEEP};

fuzz_target!(|text: &str| {
    let mut scanner = Scanner::new(text, 127);
    let ours = scanner.value().and_then(|span| scanner.end().map(|()| span));
    let serde = serde_json::from_str::<serde::de::IgnoredAny>(text);
    match ours {
        Ok(span) => {
            assert!(serde.is_ok(), "serde_json refuses: {}", serde.unwrap_err());
            assert_eq!(span.of(text), text.trim_matches([' ', '\t', '\r', '\n']));
        }
        // serde_json does not count the depth of what it skips.
        Err(e) if e.what() == TOO_DEEP => {}
        Err(e) => assert!(serde.is_err(), "refused at {}: {}", e.at(), e.what()),
    }
});
