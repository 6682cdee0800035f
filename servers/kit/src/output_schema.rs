//! Output schemas as models need them: structure, without sentences.

use serde_json::{Map, Value, json};

/// Reduces a derived output schema to its structure.
///
/// Names, types, and which members every result has stay. Descriptions, bounds of numbers and `null` as the type of members
/// that may be left out go: the servers leave these members out.
pub(crate) fn reduce(mut schema: Value) -> Value {
    strip(&mut schema);
    if let Some(members) = schema.as_object_mut() {
        subschemas(members, &mut |inner| without_required(inner));
    }
    schema
}

/// Keywords that say nothing about structure.
const WORDS: [&str; 15] = [
    "$schema",
    "description",
    "title",
    "default",
    "examples",
    "format",
    "pattern",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
];

fn strip(schema: &mut Value) {
    let Some(members) = schema.as_object_mut() else { return };
    members.retain(|name, _| !WORDS.contains(&name.as_str()));
    if members.get("additionalProperties") == Some(&Value::Bool(false)) {
        members.remove("additionalProperties");
    }
    let required = members.get("required").cloned().unwrap_or_default();
    let is_required = |name: &str| required.as_array().is_some_and(|names| names.iter().any(|known| known == name));
    if let Some(Value::Object(properties)) = members.get_mut("properties") {
        for (_, property) in properties.iter_mut().filter(|(name, _)| !is_required(name)) {
            without_null(property);
        }
    }
    subschemas(members, &mut |inner| strip(inner));
    join_constants(members);
    // Without sentences and bounds, several choices may describe one value.
    if let Some(choices) = members.remove("oneOf") {
        members.insert("anyOf".to_owned(), choices);
    }
    if members.contains_key("enum") || members.contains_key("const") {
        members.remove("type");
    }
}

/// Takes out which members parts must have: only the result itself says so.
fn without_required(schema: &mut Value) {
    let Some(members) = schema.as_object_mut() else { return };
    members.remove("required");
    subschemas(members, &mut |inner| without_required(inner));
}

/// Takes `null` out of the types of a member that is left out instead.
fn without_null(schema: &mut Value) {
    let Some(members) = schema.as_object_mut() else { return };
    if let Some(Value::Array(types)) = members.get_mut("type") {
        types.retain(|name| name != "null");
        if let [only] = &types[..] {
            members["type"] = only.clone();
        }
    }
    if let Some(Value::Array(values)) = members.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
    if let Some(Value::Array(choices)) = members.get_mut("anyOf") {
        choices.retain(|choice| choice.get("type") != Some(&json!("null")));
        if let [Value::Object(only)] = &choices[..] {
            let only = only.clone();
            members.remove("anyOf");
            members.extend(only);
        }
    }
}

/// Turns a choice between constants into an `enum`.
fn join_constants(members: &mut Map<String, Value>) {
    let constants = |choice: &Value| -> Option<Vec<Value>> {
        let choice = choice.as_object()?;
        match (choice.len(), choice.get("const"), choice.get("enum")) {
            (1, Some(value), _) => Some(vec![value.clone()]),
            (1, _, Some(Value::Array(values))) => Some(values.clone()),
            _ => None,
        }
    };
    for keyword in ["oneOf", "anyOf"] {
        let joined = match members.get(keyword) {
            Some(Value::Array(choices)) => choices.iter().map(constants).collect::<Option<Vec<_>>>(),
            _ => None,
        };
        if let Some(values) = joined {
            members.remove(keyword);
            members.insert("enum".to_owned(), Value::Array(values.concat()));
        }
    }
}

/// Calls `each` for the schemas directly inside.
fn subschemas(members: &mut Map<String, Value>, each: &mut dyn FnMut(&mut Value)) {
    for (keyword, inner) in members.iter_mut() {
        match (keyword.as_str(), inner) {
            ("properties" | "$defs", Value::Object(schemas)) => {
                schemas.values_mut().for_each(&mut *each);
            }
            ("oneOf" | "anyOf" | "allOf" | "prefixItems", Value::Array(schemas)) => {
                schemas.iter_mut().for_each(&mut *each);
            }
            ("items" | "additionalProperties", schema) => each(schema),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::reduce;
    use serde_json::json;

    #[test]
    fn structure_stays_and_sentences_go() {
        let derived = json!({
            "$schema": "x", "title": "T", "description": "d", "type": "object",
            "properties": {
                "description": { "type": "string", "description": "d" },
                "n": { "type": "integer", "format": "uint64", "minimum": 0 },
                "maybe": { "type": ["string", "null"] },
                "either": { "anyOf": [{ "type": "object", "properties": {} }, { "type": "null" }] },
                "null": { "type": ["string", "null"] },
                "word": { "oneOf": [
                    { "type": "string", "const": "a", "description": "d" }, { "type": "string", "enum": ["b", "c"] }] },
            },
            "required": ["n", "null"], "additionalProperties": false,
        });
        assert_eq!(
            reduce(derived),
            json!({
                "type": "object",
                "properties": {
                    "description": { "type": "string" },
                    "n": { "type": "integer" },
                    "maybe": { "type": "string" },
                    "either": { "type": "object", "properties": {} },
                    "null": { "type": ["string", "null"] },
                    "word": { "enum": ["a", "b", "c"] },
                },
                "required": ["n", "null"],
            })
        );
    }
}
