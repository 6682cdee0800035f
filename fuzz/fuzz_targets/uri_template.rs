//! A template, a line end, a URI. Whatever matches expands to a URI that matches again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use linchpin_server::fuzzing::UriTemplate;

/// Bytes of a URI that is matched.
const URI_BYTES_MAX: usize = 8192;

fuzz_target!(|text: &str| {
    let (template, uri) = text.split_once('\n').unwrap_or((text, ""));
    let Ok(parsed) = UriTemplate::parse(template) else { return };
    assert!(parsed.variables().len() <= 32);
    let Some(values) = parsed.matches(uri) else { return };
    let values: Vec<(&str, &str)> = values.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let again = parsed.expand(&values);
    // Under `{+x}` and `{#x}` a decoded value may hold what ends a value, so the way back is not promised. What is written
    // with escapes can be too long.
    if again.len() <= URI_BYTES_MAX && !template.contains("{+") && !template.contains("{#") {
        assert!(parsed.matches(&again).is_some(), "{again}");
    }
});
