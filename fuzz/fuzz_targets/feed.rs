//! Any text as a feed: another kind of text, or a list without its tags.
#![no_main]

#[allow(dead_code, reason = "the whole file of the server")]
#[path = "../../servers/fetch/src/convert/feed.rs"]
mod feed;
#[allow(dead_code, reason = "the whole file of the server")]
#[path = "../../servers/fetch/src/convert/html.rs"]
mod html;
#[allow(dead_code, reason = "the whole file of the server")]
#[path = "../../servers/fetch/src/convert/markdown.rs"]
mod markdown;
#[allow(dead_code, reason = "the whole file of the server")]
#[path = "../../servers/fetch/src/convert/plain.rs"]
mod plain;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let base = url::Url::parse("http://a.test/feed").ok();
    let Some(feed::Feed { text: list, .. }) = feed::read(text, base.as_ref()) else { return };
    assert!(list.starts_with("# "), "{list}");
    // Each link is completed with the address of the feed.
    assert!(list.len() <= 64 * text.len() + 64);
});
