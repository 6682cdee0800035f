//! A path, a line end, a robots.txt. A refusal names a line of the file; a single rule covers what a simpler matcher says.
#![no_main]

#[allow(dead_code, reason = "the whole file of the server")]
#[path = "../../servers/fetch/src/get/robots.rs"]
mod robots;

use libfuzzer_sys::fuzz_target;
use robots::{Refusal, Robots};

fuzz_target!(|text: &str| {
    let (path, file) = text.split_once('\n').unwrap_or((text, ""));
    let token = ["linchpin".to_owned()];
    if let Some(Refusal::Line(line)) = Robots::parse(file, false).refuses(&token, path) {
        assert!((1..=file.split('\n').count()).contains(&line));
    }
    // The rest is about single rules of plain characters, which nothing escapes or cuts.
    let rule = file.lines().next().unwrap_or_default();
    let plain = |text: &str| text.bytes().all(|b| b.is_ascii_alphanumeric() || b"/*$.-_".contains(&b));
    if !plain(rule)
        || !plain(path)
        || path.contains(['*', '$'])
        || rule.is_empty()
        || rule.len() > 64
        || path == "/robots.txt"
    {
        return;
    }
    let refused = Robots::parse(&format!("User-agent: *\nDisallow: {rule}"), false).refuses(&token, path).is_some();
    let (pattern, end) = rule.strip_suffix('$').map_or((rule, false), |pattern| (pattern, true));
    assert_eq!(refused, covers(pattern.as_bytes(), path.as_bytes(), end), "{rule} {path}");
});

/// Whether a pattern covers the beginning of a path, or all of it.
fn covers(pattern: &[u8], path: &[u8], end: bool) -> bool {
    let mut reached = vec![false; path.len() + 1];
    reached[0] = true;
    for c in pattern {
        let mut next = vec![false; path.len() + 1];
        for at in 0..=path.len() {
            if *c == b'*' {
                next[at] = reached[..=at].contains(&true);
            } else if at > 0 {
                next[at] = reached[at - 1] && path[at - 1] == *c;
            }
        }
        reached = next;
    }
    if end { reached[path.len()] } else { reached.contains(&true) }
}
