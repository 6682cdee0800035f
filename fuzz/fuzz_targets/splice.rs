//! Edits of a JSON object: what comes out is JSON, has what was added and what was kept, byte for byte, and not what was
//! removed.
#![no_main]

use libfuzzer_sys::fuzz_target;
use linchpin_core::Span;
use linchpin_core::json::Scanner;
use linchpin_proto::splice::Splice;
use serde_json::value::RawValue;
use std::collections::HashMap;

fuzz_target!(|data: &[u8]| {
    let Some((&choice, text)) = data.split_first() else { return };
    let Ok(text) = std::str::from_utf8(text) else { return };
    let mut members: Vec<(String, Span)> = Vec::new();
    let mut plain = true;
    let mut scanner = Scanner::new(text, 100);
    let object = scanner.object(&mut |s, key| {
        let value = s.value()?;
        // Members that are removed have plain names, as those of the protocol have.
        plain &= key.name().bytes().all(|byte| byte.is_ascii_alphanumeric());
        members.push((key.name().into_owned(), value));
        Ok(())
    });
    if object.is_err() || scanner.end().is_err() || !plain {
        return;
    }
    // A message whose members come twice is refused before it is edited.
    let names: std::collections::HashSet<&str> = members.iter().map(|(name, _)| name.as_str()).collect();
    if names.len() < members.len() {
        return;
    }
    let start = text.find('{').unwrap_or_default();
    let all = Span::new(start, text.trim_end().len());
    let removed = |n: usize| n < 6 && choice & (1 << n) != 0;
    let replaced = |n: usize| choice & 0x40 != 0 && n % 2 == 0 && !removed(n);
    let mut splice = Splice::new(text, all);
    for (n, (_, span)) in members.iter().enumerate() {
        if removed(n) {
            splice.remove(*span);
        } else if replaced(n) {
            splice.replace(*span, &b"\"in its place\""[..]);
        }
    }
    if choice & 0x80 != 0 {
        splice.add(all, &b"\"new member\":[1.0]"[..]);
    }
    let mut out = Vec::new();
    splice.write(&mut out);
    let out = std::str::from_utf8(&out).expect("it is text");
    let read: HashMap<String, &RawValue> = serde_json::from_str(out).unwrap_or_else(|e| panic!("{out}: {e}"));
    let added = usize::from(choice & 0x80 != 0);
    assert_eq!(read.get("new member").map(|value| value.get()), (added == 1).then_some("[1.0]"));
    let kept: Vec<_> = members.iter().enumerate().filter(|(n, _)| !removed(*n)).collect();
    assert_eq!(read.len(), kept.len() + added, "{out}");
    for (n, (name, span)) in kept {
        let want = if replaced(n) { "\"in its place\"" } else { span.of(text) };
        assert_eq!(read[name.as_str()].get(), want, "{out}");
    }
});
