//! Any bytes as a `SKILL.md`: its front matter is read or refused, and what was read is JSON that says the same when it is read again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use linchpin_skills::FrontMatter;

fuzz_target!(|data: &[u8]| {
    match FrontMatter::read(data) {
        Ok(read) => {
            assert!(read.body_at <= data.len());
            let json = serde_json::to_string(&read.members).expect("JSON");
            let again = serde_json::from_str(&json).expect("JSON");
            assert_eq!(read.members, again);
        }
        Err(error) => assert!(error.line >= 1 && error.line <= data.len() + 2, "{error}"),
    }
});
