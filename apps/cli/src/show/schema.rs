//! Reading the schemas of servers.

use linchpin_core::exact;
use serde_json::Value;

/// Maximum number of references followed.
const REFERENCES_MAX: usize = 16;

/// Resolves a schema's local references.
pub(crate) fn resolved<'a>(root: &'a Value, mut schema: &'a Value) -> &'a Value {
    for _ in 0..REFERENCES_MAX {
        let Some(to) = schema.get("$ref").and_then(Value::as_str).and_then(|r| r.strip_prefix('#')) else { break };
        match root.pointer(to) {
            Some(found) => schema = found,
            None => break,
        }
    }
    schema
}

/// Returns the types that a schema allows; empty when it names none.
pub(crate) fn kinds<'a>(schema: &'a Value, root: &'a Value) -> Vec<&'a str> {
    let schema = resolved(root, schema);
    let mut kinds: Vec<&str> = match schema.get("type") {
        Some(Value::String(kind)) => vec![kind],
        Some(Value::Array(several)) => several.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    if kinds.is_empty() {
        for chosen in schema.get("enum").and_then(Value::as_array).into_iter().flatten().chain(schema.get("const")) {
            kinds.push(kind_of(chosen));
        }
        for part in ["anyOf", "oneOf", "allOf"].iter().filter_map(|m| schema.get(m)?.as_array()).flatten() {
            kinds.extend(self::kinds(part, root));
        }
        kinds.dedup();
    }
    kinds
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(n) if n.is_i64() || n.is_u64() => "integer",
        Value::Number(_) => "number",
        Value::String(_) if exact::number(value).is_some() => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
