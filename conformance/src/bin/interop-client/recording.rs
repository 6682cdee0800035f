//! Writes down every message, as `record.mjs` does: one JSON object a line.

use linchpin::client::{Tap, Traffic};
use serde_json::{Value, json};
use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

/// A file of messages, and how often a stream was taken up again where it broke off. Clones share both.
#[derive(Clone)]
pub(crate) struct Recording {
    file: Arc<Mutex<File>>,
    resumed: Arc<AtomicUsize>,
}

impl Recording {
    pub(crate) fn create(path: &Path) -> io::Result<Recording> {
        File::create(path).map(|file| Recording { file: Arc::new(Mutex::new(file)), resumed: Arc::default() })
    }

    /// How often a stream was taken up again.
    pub(crate) fn resumed(&self) -> usize {
        self.resumed.load(Ordering::SeqCst)
    }

    fn record(&self, mut entry: Value) {
        let at = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64);
        entry["at"] = json!(at);
        // One connection is one link: ids are unique in it.
        entry["link"] = json!("tap");
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        // A recording that cannot be written is missed by the judge.
        let _ = writeln!(file, "{entry}");
    }

    fn message(&self, from: &str, text: &str) {
        match serde_json::from_str::<Value>(text) {
            Ok(message) => self.record(json!({ "from": from, "message": message })),
            Err(_) => self.record(json!({ "from": from, "text": text })),
        }
    }
}

impl Tap for Recording {
    fn saw(&self, event: Traffic<'_>) {
        match event {
            Traffic::Sent(text) => self.message("client", text),
            Traffic::Heard(text) => self.message("server", text),
            Traffic::Garbage(text) => self.record(json!({ "from": "server", "text": text })),
            Traffic::Note(text) => self.record(json!({ "from": "link", "note": text })),
            Traffic::Stderr(text) => self.record(json!({ "from": "link", "stderr": text })),
            Traffic::Request { method, uri, headers } => {
                if headers.contains_key("last-event-id") {
                    self.resumed.fetch_add(1, Ordering::SeqCst);
                }
                self.record(json!({ "from": "link", "request": format!("{method} {uri}") }));
            }
            Traffic::Response { status, .. } => self.record(json!({ "from": "link", "status": status.as_u16() })),
            _ => {}
        }
    }
}
