//! Any text as a feed: another kind of text, or a list without its tags.
#![no_main]

use libfuzzer_sys::fuzz_target;
use linchpin_fetch::fuzzing::feed;

fuzz_target!(|text: &str| {
    let Some(list) = feed(text) else { return };
    assert!(list.starts_with("# "), "{list}");
    // Each link is completed with the address of the feed.
    assert!(list.len() <= 64 * text.len() + 64);
});
