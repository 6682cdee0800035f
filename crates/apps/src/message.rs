//! Messages between a page and its host: JSON-RPC, one at a time.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// Invalid request.
pub(crate) const INVALID_REQUEST: i32 = -32600;
/// Method not found.
pub(crate) const METHOD_NOT_FOUND: i32 = -32601;
/// Invalid parameters.
pub(crate) const INVALID_PARAMS: i32 = -32602;
/// The host or its user refused.
pub(crate) const REFUSED: i32 = -32000;

/// A message of a page.
pub(crate) enum Message {
    Request {
        id: Value,
        method: String,
        params: Box<RawValue>,
    },
    Notification {
        method: String,
        params: Box<RawValue>,
    },
    /// To a request of the host: its id. What it says does not matter.
    Response {
        id: Value,
    },
}

impl Message {
    /// Reads a message. `None` if it is none.
    pub(crate) fn read(text: &str) -> Option<Message> {
        #[derive(Deserialize)]
        struct Raw {
            jsonrpc: String,
            #[serde(default)]
            id: Option<Value>,
            #[serde(default)]
            method: Option<String>,
            #[serde(default)]
            params: Option<Box<RawValue>>,
            #[serde(default)]
            result: Option<Box<RawValue>>,
            #[serde(default)]
            error: Option<Box<RawValue>>,
        }
        let raw: Raw = serde_json::from_str(text).ok().filter(|raw: &Raw| raw.jsonrpc == "2.0")?;
        let params = raw.params.unwrap_or_else(empty);
        if !params.get().starts_with('{') {
            return None;
        }
        match (raw.method, raw.id) {
            (Some(method), Some(id)) if is_id(&id) => Some(Message::Request { id, method, params }),
            (Some(method), None) => Some(Message::Notification { method, params }),
            (None, Some(id)) if is_id(&id) && (raw.result.is_some() || raw.error.is_some()) => {
                Some(Message::Response { id })
            }
            _ => None,
        }
    }
}

/// A text of at most 256 bytes, or a whole number.
fn is_id(id: &Value) -> bool {
    id.as_str().map_or_else(|| id.is_i64() || id.is_u64(), |text| text.len() <= 256)
}

fn empty() -> Box<RawValue> {
    RawValue::from_string("{}".to_owned()).unwrap_or_default()
}

pub(crate) fn result(id: &Value, result: &Value) -> String {
    json!({ "jsonrpc": "2.0", "id": id, "result": result }).to_string()
}

/// A response whose result is JSON already.
pub(crate) fn raw_result(id: &Value, result: &RawValue) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{}}}"#, result.get())
}

pub(crate) fn error(id: &Value, code: i32, why: &str) -> String {
    json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": why } }).to_string()
}

pub(crate) fn notification(method: &str, params: &RawValue) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{}}}"#, params.get())
}

pub(crate) fn request(id: u64, method: &str, params: &Value) -> String {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string()
}
