//! Output schemas as models need them: structure, without sentences.

use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Reduces a derived output schema to its structure.
///
/// Names, types, and which members every result has stay. Descriptions, bounds of numbers and `null` as the type of members
/// that may be left out go: the servers leave these members out. A part that occurs several times stands once, in
/// `$defs`, where that is shorter.
pub(crate) fn reduce(mut schema: Value) -> Value {
    strip(&mut schema);
    if let Some(members) = schema.as_object_mut() {
        subschemas(members, &mut |_, inner| without_required(inner));
    }
    while let Some((name, part)) = longest_repeat(&schema) {
        share(&mut schema, &name, &part);
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
    subschemas(members, &mut |_, inner| strip(inner));
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
    subschemas(members, &mut |_, inner| without_required(inner));
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

/// Calls `each` for the schemas directly inside, with the name of the property they are of, if it is one.
fn subschemas(members: &mut Map<String, Value>, each: &mut dyn FnMut(Option<&str>, &mut Value)) {
    for (keyword, inner) in members.iter_mut() {
        match (keyword.as_str(), inner) {
            ("properties" | "$defs", Value::Object(schemas)) => {
                schemas.iter_mut().for_each(|(name, schema)| each(Some(name), schema));
            }
            ("oneOf" | "anyOf" | "allOf" | "prefixItems", Value::Array(schemas)) => {
                schemas.iter_mut().for_each(|schema| each(None, schema));
            }
            ("items" | "additionalProperties", schema) => each(None, schema),
            _ => {}
        }
    }
}

/// The part that saves most when it stands once, with a name for it.
fn longest_repeat(schema: &Value) -> Option<(String, Value)> {
    let mut found: BTreeMap<String, (usize, String)> = BTreeMap::new();
    count(&mut schema.clone(), "item", &mut found);
    let saved = |part: &str, times: usize, name: &str| {
        let reference = "{\"$ref\":\"#/$defs/\"}".len() + name.len();
        let once = part.len() + "\"\":,".len() + name.len();
        (times * part.len()).checked_sub(times * reference + once).filter(|saved| *saved > "\"$defs\":{},".len())
    };
    let best = found.into_iter().filter(|(_, (times, _))| *times > 1).filter_map(|(part, (times, name))| {
        let saved = saved(&part, times, &name)?;
        Some((saved, part, name))
    });
    let (_, part, name) = best.max_by_key(|(saved, ..)| *saved)?;
    Some((free(schema, name), serde_json::from_str(&part).ok()?))
}

fn count(schema: &mut Value, name: &str, found: &mut BTreeMap<String, (usize, String)>) {
    let Some(members) = schema.as_object_mut() else { return };
    subschemas(members, &mut |property, inner| {
        let name = property.unwrap_or(name);
        if inner.get("$ref").is_none() {
            found.entry(inner.to_string()).or_insert_with(|| (0, name.to_owned())).0 += 1;
        }
        count(inner, name, found);
    });
}

/// A name that no definition has.
fn free(schema: &Value, mut name: String) -> String {
    while schema.get("$defs").and_then(|defs| defs.get(&name)).is_some() {
        name.push('_');
    }
    name
}

/// Moves a part to `$defs`.
fn share(schema: &mut Value, name: &str, part: &Value) {
    refer(schema, part, &json!({ "$ref": format!("#/$defs/{name}") }));
    if let Some(members) = schema.as_object_mut() {
        let defs = members.entry("$defs").or_insert_with(|| json!({}));
        defs[name] = part.clone();
    }
}

fn refer(schema: &mut Value, part: &Value, reference: &Value) {
    let Some(members) = schema.as_object_mut() else { return };
    subschemas(members, &mut |_, inner| {
        if inner == part {
            *inner = reference.clone();
        } else {
            refer(inner, part, reference);
        }
    });
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

    #[test]
    fn a_long_part_that_occurs_twice_stands_once() {
        let mut time = json!({ "type": "object", "properties": {
            "timezone": { "type": "string" }, "datetime": { "type": "string" }, "is_dst": { "type": "boolean" } },
            "required": ["timezone"] });
        let reduced = reduce(json!({ "type": "object", "properties": {
            "start": time, "ends": { "type": "array", "items": time }, "days": { "type": "integer" } } }));
        time.as_object_mut().unwrap().remove("required");
        let mention = json!({ "$ref": "#/$defs/start" });
        assert_eq!(
            reduced,
            json!({ "type": "object", "properties": {
                "start": mention, "ends": { "type": "array", "items": mention }, "days": { "type": "integer" } },
                "$defs": { "start": time } })
        );
        let short = json!({ "type": "object", "properties": { "a": { "type": "string" }, "b": { "type": "string" } } });
        assert_eq!(reduce(short.clone()), short);
    }
}
