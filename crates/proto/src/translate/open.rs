//! The first messages of both eras, made from those of the upstream.

use super::downgrade;
use super::result::object;
use crate::splice::Splice;
use linchpin_core::json::{Scanner, Span};
use linchpin_core::{Agreed, Features};
use linchpin_types::meta::key;
use serde_json::{Map, Value, json};

/// The result of `initialize` for a client of `features`, from what the upstream said when it was opened.
///
/// Of an upstream with sessions it is the upstream's own, with the revision that the client has. Otherwise it is made from
/// the result of `server/discover`.
pub fn initialized(features: &Features, upstream: &Agreed) -> String {
    let version = features.revision.as_str();
    if upstream.features.has_sessions {
        return with_version(&upstream.result, version);
    }
    let found = object(&upstream.result);
    let offered = found.get("capabilities").and_then(Value::as_object);
    let mut who = server(&found);
    who.as_object_mut().into_iter().for_each(|who| downgrade::implementation(who, features));
    let mut made = json!({
        "protocolVersion": version,
        "capabilities": for_session(features, offered),
        "serverInfo": who,
    });
    if let Some(instructions) = found.get("instructions") {
        made["instructions"] = instructions.clone();
    }
    made.to_string()
}

/// The `serverInfo` of a result of `server/discover`, which is in its `_meta`.
fn server(found: &Map<String, Value>) -> Value {
    let said = found.get("_meta").and_then(|meta| meta.get(key::SERVER_INFO));
    said.filter(|info| info.is_object()).cloned().unwrap_or_else(|| json!({ "name": "unknown", "version": "0" }))
}

/// What a stateless upstream offers, as a session sees it: its changes come on a stream that the bridge holds.
fn for_session(features: &Features, offered: Option<&Map<String, Value>>) -> Value {
    let mut made = Map::new();
    for (name, value) in offered.into_iter().flatten() {
        match name.as_str() {
            "completions" if !features.completions_capability => {}
            // What the client's era has otherwise, or not at all.
            "extensions" | "tasks" => {}
            _ => drop(made.insert(name.clone(), value.clone())),
        }
    }
    // Levels are set for a session, and sent upstream with each request.
    made.entry("logging").or_insert_with(|| json!({}));
    Value::Object(made)
}

/// The result of `server/discover` for a client whose requests are stateless, from the upstream's result of `initialize`.
/// `served` are the revisions that clients may use.
pub fn discovered(upstream: &Agreed, served: &[&Features]) -> String {
    let found = object(&upstream.result);
    let offered = found.get("capabilities").and_then(Value::as_object);
    let capabilities: Map<String, Value> = offered
        .into_iter()
        .flatten()
        .filter(|(name, _)| !matches!(name.as_str(), "tasks"))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    let mut made = json!({
        "supportedVersions": served.iter().map(|features| features.revision.as_str()).collect::<Vec<_>>(),
        "capabilities": capabilities,
        "ttlMs": 0,
        "cacheScope": "private",
        "resultType": "complete",
    });
    if let Some(instructions) = found.get("instructions") {
        made["instructions"] = instructions.clone();
    }
    if let Some(info) = found.get("serverInfo") {
        made["_meta"] = json!({ key::SERVER_INFO: info });
    }
    made.to_string()
}

/// The `serverInfo` of an upstream's result of `initialize`, as JSON text.
pub fn server_info(upstream: &Agreed) -> Option<String> {
    object(&upstream.result).get("serverInfo").map(Value::to_string)
}

/// A result of `initialize` with another revision.
fn with_version(result: &str, version: &str) -> String {
    let mut said = None;
    let read = Scanner::new(result, 127).object(&mut |s, key| {
        let value = s.value()?;
        if key.name() == "protocolVersion" {
            said = Some(value);
        }
        Ok(())
    });
    let mut splice = Splice::new(result, Span::new(0, result.len()));
    if let (Ok(_), Some(span)) = (read, said) {
        splice.replace(span, format!("\"{version}\"").into_bytes());
    }
    let mut out = Vec::with_capacity(result.len() + 16);
    splice.write(&mut out);
    String::from_utf8(out).unwrap_or_default()
}
