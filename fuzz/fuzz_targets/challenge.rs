//! Lines of `WWW-Authenticate`. What is read from them can be written, and is read again as the same.
#![no_main]

use http::header::{HeaderMap, HeaderValue, WWW_AUTHENTICATE};
use libfuzzer_sys::fuzz_target;
use linchpin_oauth::Challenge;

fuzz_target!(|text: &[u8]| {
    let mut headers = HeaderMap::new();
    for line in text.split(|byte| *byte == b'\n') {
        if let Ok(value) = HeaderValue::from_bytes(line) {
            headers.append(WWW_AUTHENTICATE, value);
        }
    }
    let read = Challenge::of(&headers);
    let scope = read.scope.as_ref().map(ToString::to_string);
    let params = [
        ("error", read.error.as_deref()),
        ("error_description", read.error_description.as_deref()),
        ("resource_metadata", read.resource_metadata.as_deref()),
        ("scope", scope.as_deref()),
    ];
    let params = params.map(|(name, value)| (name, value.unwrap_or_default()));
    let written = Challenge::header("Bearer", &params);
    let again = Challenge::of(&HeaderMap::from_iter([(WWW_AUTHENTICATE, written.clone())]));
    // A line of more than 8 KiB is cut.
    if written.len() < 8 * 1024 {
        assert_eq!(again.error.is_some(), read.error.is_some());
        assert_eq!(again.scope, read.scope);
    }
    let printable = |text: &String| text.bytes().all(|byte| (b' '..=b'~').contains(&byte));
    if written.len() < 8 * 1024 && read.error_description.as_ref().is_some_and(printable) {
        assert_eq!(again.error_description, read.error_description);
    }
});
