//! What pages write to their consoles, and what they request: the last of each, per client.

use serde_json::Value;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Most lines and bytes of a console.
const LINES_MAX: usize = 1_000;
const BYTES_MAX: usize = 1 << 20;
/// Longest line; the rest is dropped.
const LINE_CHARS_MAX: usize = 4_000;
/// Most requests that are remembered.
const REQUESTS_MAX: usize = 1_000;
/// Longest remembered URL.
const URL_CHARS_MAX: usize = 2_000;

/// A message of a console.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Line {
    /// Its number, counted from 0.
    pub(crate) number: u64,
    /// `log`, `warn`, `error`, …
    pub(crate) kind: String,
    /// Its text, in the words of the page.
    pub(crate) text: String,
}

/// A request of a page.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    /// The id that the browser gave it.
    pub(crate) id: String,
    /// `GET`, …
    pub(crate) method: String,
    /// Where to.
    pub(crate) url: String,
    /// `Document`, `Script`, …
    pub(crate) kind: String,
    /// The status of the response, once there is one.
    pub(crate) status: Option<u16>,
    /// Why there is none.
    pub(crate) failed: Option<String>,
}

/// What one client's pages said and asked for.
#[derive(Debug, Default)]
pub(crate) struct Log(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    lines: VecDeque<Line>,
    bytes: usize,
    count: u64,
    requests: VecDeque<Asked>,
}

impl Log {
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a message; the oldest make room.
    pub(crate) fn say(&self, kind: &str, text: &str) {
        let text: String = text.chars().take(LINE_CHARS_MAX).collect();
        let mut kept = self.kept();
        kept.bytes += text.len();
        let number = kept.count;
        kept.count += 1;
        kept.lines.push_back(Line { number, kind: kind.to_owned(), text });
        while kept.lines.len() > LINES_MAX || kept.bytes > BYTES_MAX {
            let Some(line) = kept.lines.pop_front() else { break };
            kept.bytes -= line.text.len();
        }
    }

    /// How many messages there have been.
    pub(crate) fn count(&self) -> u64 {
        self.kept().count
    }

    /// The messages since this number, as far as they are kept.
    pub(crate) fn since(&self, number: u64) -> Vec<Line> {
        self.kept().lines.iter().filter(|line| line.number >= number).cloned().collect()
    }

    /// The requests, the oldest first.
    pub(crate) fn requests(&self) -> Vec<Asked> {
        self.kept().requests.iter().cloned().collect()
    }

    /// Takes note of an event of the domain `Network`.
    pub(crate) fn network(&self, method: &str, params: &Value) {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let id = text(&params["requestId"]);
        let mut kept = self.kept();
        if method == "Network.requestWillBeSent" {
            // A redirect goes on under the same id.
            let redirected = params["redirectResponse"]["status"].as_u64();
            if let Some(earlier) = kept.requests.iter_mut().rev().find(|asked| asked.id == id) {
                earlier.status = redirected.and_then(|status| status.try_into().ok());
            }
            if kept.requests.len() == REQUESTS_MAX {
                kept.requests.pop_front();
            }
            let request = &params["request"];
            kept.requests.push_back(Asked {
                id,
                method: text(&request["method"]),
                url: text(&request["url"]).chars().take(URL_CHARS_MAX).collect(),
                kind: text(&params["type"]),
                status: None,
                failed: None,
            });
            return;
        }
        let Some(asked) = kept.requests.iter_mut().rev().find(|asked| asked.id == id) else { return };
        match method {
            "Network.responseReceived" => {
                asked.status = params["response"]["status"].as_u64().and_then(|status| status.try_into().ok());
            }
            "Network.loadingFailed" => asked.failed = Some(text(&params["errorText"])),
            _ => {}
        }
    }
}

/// The text of a message: its values as the console of a browser shows them.
pub(crate) fn text_of(values: &Value) -> String {
    let values = values.as_array().map(Vec::as_slice).unwrap_or_default();
    values.iter().map(value_text).collect::<Vec<_>>().join(" ")
}

/// A `Runtime.RemoteObject` as text.
pub(crate) fn value_text(object: &Value) -> String {
    if let Some(text) = object["value"].as_str() {
        return text.to_owned();
    }
    if let Some(text) = object["unserializableValue"].as_str() {
        return text.to_owned();
    }
    match object["type"].as_str() {
        Some("undefined") => "undefined".to_owned(),
        Some("object") if object["subtype"] == "null" => "null".to_owned(),
        Some("object") if object["subtype"] == "error" => object["description"].as_str().unwrap_or("Error").to_owned(),
        Some("object") if object["preview"].is_object() => preview(&object["preview"]),
        _ => match (&object["value"], object["description"].as_str()) {
            (Value::Null, Some(description)) => description.to_owned(),
            (value, _) => value.to_string(),
        },
    }
}

/// An object as the browser previews it: `{a: 1}`, `[1, 2]`.
fn preview(preview: &Value) -> String {
    let is_list = preview["subtype"] == "array";
    let properties = preview["properties"].as_array().map(Vec::as_slice).unwrap_or_default();
    let more = preview["overflow"] == true;
    let shown = properties.iter().map(|property| {
        let value = property["value"].as_str().unwrap_or("…");
        let value = if property["type"] == "string" { format!("\"{value}\"") } else { value.to_owned() };
        match is_list {
            true => value,
            false => format!("{}: {value}", property["name"].as_str().unwrap_or("?")),
        }
    });
    let shown = shown.chain(more.then(|| "…".to_owned())).collect::<Vec<_>>().join(", ");
    if is_list { format!("[{shown}]") } else { format!("{{{shown}}}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_look_as_in_a_console() {
        let preview = json!({"properties": [{"name": "x", "type": "number", "value": "1"}, {"name": "y", "type": "string", "value": "z"}]});
        for (object, wanted) in [
            (json!({"type": "string", "value": "a"}), "a"),
            (json!({"type": "number", "value": 1.5}), "1.5"),
            (json!({"type": "number", "unserializableValue": "-Infinity", "description": "-Infinity"}), "-Infinity"),
            (json!({"type": "undefined"}), "undefined"),
            (json!({"type": "object", "subtype": "null", "value": null}), "null"),
            (json!({"type": "object", "description": "Object", "preview": preview}), "{x: 1, y: \"z\"}"),
            (json!({"type": "function", "description": "() => 1"}), "() => 1"),
            (json!({"type": "boolean", "value": true}), "true"),
        ] {
            assert_eq!(value_text(&object), wanted);
        }
    }

    #[test]
    fn a_talkative_page_fills_its_own_console_only_to_its_limit() {
        let log = Log::default();
        let long = "x".repeat(10_000);
        for _ in 0..3_000 {
            log.say("log", &long);
        }
        assert_eq!(log.count(), 3_000);
        assert!(log.since(0).len() <= BYTES_MAX / LINE_CHARS_MAX);
        assert_eq!(log.since(2_999).len(), 1);
        for id in 0..REQUESTS_MAX + 5 {
            log.network("Network.requestWillBeSent", &json!({"requestId": id.to_string(), "request": {"url": long}}));
        }
        log.network("Network.responseReceived", &json!({"requestId": "1004", "response": {"status": 204}}));
        let requests = log.requests();
        assert_eq!((requests.len(), requests.last().unwrap().status), (REQUESTS_MAX, Some(204)));
    }
}
