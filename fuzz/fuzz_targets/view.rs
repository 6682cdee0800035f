//! A page of an MCP App that says anything, a message a line: only what is granted is done, and what it is sent is JSON.
#![no_main]

use libfuzzer_sys::fuzz_target;
use linchpin_apps::{Act, Grant, PageMeta, View};
use std::time::{Duration, Instant};

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let mut lines = text.lines();
    let meta: PageMeta = lines.next().and_then(|meta| serde_json::from_str(meta).ok()).unwrap_or_default();
    let mut view = View::new(&meta, Grant::new().links(true));
    let directives = view.csp().split("; ").count();
    assert_eq!(directives, 11, "{}", view.csp());
    view.tell_input(&serde_json::json!({}));
    let begun = Instant::now();
    for (n, line) in lines.enumerate() {
        for act in view.receive(begun + Duration::from_millis(20 * n as u64), line) {
            match act {
                Act::Send(text) => drop(serde_json::from_str::<serde_json::Value>(&text).expect("JSON")),
                Act::OpenLink { id, url } => {
                    assert!(url.starts_with("https://") || url.starts_with("http://"));
                    view.refuse(&id);
                }
                Act::CallTool { .. } | Act::ReadResource { .. } | Act::Say { .. } | Act::ModelContext(_) => {
                    panic!("it was not granted")
                }
                _ => {}
            }
        }
    }
});
