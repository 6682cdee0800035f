//! Parameters and results as JSON objects, without what belongs to the protocol.

use linchpin_core::message::Request;
use linchpin_core::{Reply, ReplyKind, ResultWriter};
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// Writes a result of these members.
pub(crate) fn write(members: &serde_json::Map<String, Value>, mut out: ResultWriter) -> Reply {
    for (name, value) in members {
        match (name.as_str(), value) {
            // Written by `finish`, in the revisions that have it.
            ("resultType", _) => {}
            ("_meta", Value::Object(meta)) => {
                let json = Value::Object(meta.clone()).to_string();
                out.meta(&json.as_bytes()[1..json.len() - 1]);
            }
            _ => {
                out.any_key(name);
                let _ = out.serialize(value);
            }
        }
    }
    out.finish(ReplyKind::Complete)
}

/// The parameters without `_meta`, `inputResponses` and `requestState`, as JSON text.
pub(crate) fn own(request: &Request) -> Option<String> {
    let mut members: BTreeMap<String, &RawValue> = serde_json::from_str(request.params_text()).ok()?;
    for name in ["_meta", "inputResponses", "requestState"] {
        members.remove(name);
    }
    serde_json::to_string(&members).ok()
}
