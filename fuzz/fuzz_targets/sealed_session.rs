//! Ids of sessions: what was sealed opens, for its session only; what was not is refused.
#![no_main]

use libfuzzer_sys::fuzz_target;
use linchpin_core::{SessionRecord, SessionSeal};
use linchpin_store::Secrets;
use serde_json::value::RawValue;

#[allow(dead_code, reason = "the targets need a part of it")]
#[path = "../../crates/gateway/src/sealed_session.rs"]
mod sealed_session;

fuzz_target!(|data: &[u8]| {
    let seal = sealed_session::SealedSessions::new(&Secrets::new([7; 32]), "fuzz");
    let Ok(text) = std::str::from_utf8(data) else { return };
    assert!(seal.open("k", text).is_none());
    let declared = serde_json::from_str::<&RawValue>(text).ok().filter(|json| json.get().starts_with('{'));
    let mut record = match declared {
        Some(json) => SessionRecord::new("2025-06-18".parse().expect("a revision"), json.to_owned()),
        None => SessionRecord::bare("2025-06-18".parse().expect("a revision")),
    };
    record.owner = Some(text.into());
    let Some(sealed) = seal.seal("k", &record) else {
        assert!(text.len() > 200);
        return;
    };
    assert!(sealed.len() <= 4_096 && sealed.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b)));
    assert!(seal.open("l", &sealed).is_none());
    let opened = seal.open("k", &sealed).expect("it was sealed so");
    assert_eq!((opened.owner, opened.capabilities.get()), (record.owner, record.capabilities.get()));
});
