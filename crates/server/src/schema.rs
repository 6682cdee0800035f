//! JSON Schemas of Rust types, derived once at registration.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// The arguments of a tool, resource or prompt without arguments.
///
/// A handler without arguments does not need this type; a closure that takes neither state nor context may declare it.
///
/// ```
/// # use linchpin_server::{NoArgs, Server};
/// let server = Server::new("s", "1").tool("one", || "1").tool("two", async |_: NoArgs| "2");
/// ```
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[schemars(transform = undescribed)]
pub struct NoArgs {}

/// A type with a JSON Schema. Implemented for all types that implement `JsonSchema`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no JSON Schema: the trait bound `{Self}: JsonSchema` is not satisfied",
    label = "`JsonSchema` is not implemented for `{Self}`",
    note = "add `#[derive(JsonSchema)]` to `{Self}`"
)]
pub trait Described: JsonSchema {}
#[diagnostic::do_not_recommend]
impl<T: JsonSchema> Described for T {}

/// Has the compiler say what a loose argument without a schema needs; the derive of its hidden struct only says that it has none.
pub const fn described<T: Described>() {}

/// Removes the type's own description, which is not for clients.
fn undescribed(schema: &mut Schema) {
    schema.remove("description");
}

/// The schema of `T` in the default dialect (2020-12), without empty members.
pub(crate) fn of<T: JsonSchema>() -> Value {
    root::<T>(SchemaSettings::draft2020_12())
}

/// The schema of the serialised form of `T`: members that may be skipped are not required.
pub(crate) fn of_answer<T: JsonSchema>() -> Value {
    root::<T>(SchemaSettings::draft2020_12().for_serialize())
}

/// Types are inlined, because not every model and host follows references. Only recursive types use one.
fn root<T: JsonSchema>(settings: SchemaSettings) -> Value {
    let settings = settings.with(|settings| settings.inline_subschemas = true);
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    schema.remove("$schema");
    schema.remove("title");
    // The doc comment of the type is for Rust programmers.
    schema.remove("description");
    Schema::to_value(schema)
}

/// Removes `format`s that name Rust types: other languages do not know them, and some clients reject unknown formats.
pub(crate) fn portable(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            if members.get("format").and_then(Value::as_str).is_some_and(|f| RUST_FORMATS.contains(&f)) {
                members.remove("format");
            }
            for (key, value) in members.iter_mut() {
                // These contain instances, not schemas.
                if !matches!(key.as_str(), "default" | "examples" | "const" | "enum") {
                    portable(value);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(portable),
        _ => {}
    }
}

/// Removes the bounds that every value of a Rust integer type has. To be called before [`portable`].
pub(crate) fn without_type_bounds(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            for bound in ["minimum", "maximum"] {
                if members.get(bound).is_some_and(|value| of_the_type(members, bound, value)) {
                    members.remove(bound);
                }
            }
            for (key, value) in members.iter_mut() {
                // These contain instances, not schemas.
                if !matches!(key.as_str(), "default" | "examples" | "const" | "enum") {
                    without_type_bounds(value);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(without_type_bounds),
        _ => {}
    }
}

/// Replaces descriptions: `words` receives each one and returns its replacement, if any.
pub(crate) fn reword(schema: &mut Value, words: &dyn Fn(&str) -> Option<String>) {
    match schema {
        Value::Object(members) => {
            for (key, value) in members.iter_mut() {
                match (key.as_str(), &mut *value) {
                    ("description", Value::String(text)) => {
                        if let Some(said) = words(text) {
                            *text = said;
                        }
                    }
                    // These contain instances, not schemas.
                    ("default" | "examples" | "const" | "enum", _) => {}
                    _ => reword(value, words),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| reword(item, words)),
        _ => {}
    }
}

/// Removes `null` from the listed schema of optional members: some models accept only one type, and omitting the member
/// means the same; and defaults that say nothing. Calls are checked against the original schema, so that `null` is still accepted wherever the Rust
/// type accepts it.
///
/// Required members keep their `null`, and so do items of lists and values of maps, where it has a meaning.
pub(crate) fn without_nulls(schema: &mut Value) {
    let Some(members) = schema.as_object_mut() else { return };
    let required: Vec<String> = members
        .get("required")
        .and_then(Value::as_array)
        .map(|names| names.iter().filter_map(Value::as_str).map(str::to_owned).collect())
        .unwrap_or_default();
    for (key, value) in members.iter_mut() {
        match (key.as_str(), value) {
            ("properties", Value::Object(properties)) => {
                for (name, property) in properties {
                    if !required.contains(name) {
                        drop_null(property);
                        drop_empty_default(property);
                    }
                    without_nulls(property);
                }
            }
            ("$defs" | "patternProperties", Value::Object(schemas)) => schemas.values_mut().for_each(without_nulls),
            ("anyOf" | "oneOf" | "allOf" | "prefixItems", Value::Array(schemas)) => {
                schemas.iter_mut().for_each(without_nulls);
            }
            ("items" | "additionalProperties", schema) => without_nulls(schema),
            _ => {}
        }
    }
}

/// Removes `null` from one schema if another type remains.
fn drop_null(schema: &mut Value) {
    let Some(members) = schema.as_object_mut() else { return };
    let mut dropped = false;
    if let Some(Value::Array(kinds)) = members.get_mut("type")
        && kinds.iter().any(|kind| kind != "null")
    {
        let before = kinds.len();
        kinds.retain(|kind| kind != "null");
        dropped = kinds.len() < before;
        if let [one] = &mut kinds[..] {
            let one = one.take();
            members.insert("type".into(), one);
        }
    }
    if dropped && let Some(Value::Array(words)) = members.get_mut("enum") {
        words.retain(|word| !word.is_null());
    }
    let is_null = |choice: &Value| choice.get("type").is_some_and(|kind| kind == "null");
    if let Some(Value::Array(choices)) = members.get_mut("anyOf")
        && choices.iter().any(is_null)
        && !choices.iter().all(is_null)
    {
        choices.retain(|choice| !is_null(choice));
        dropped = true;
        if let [Value::Object(only)] = &mut choices[..] {
            let only = std::mem::take(only);
            unfold(members, only);
        }
    }
    if dropped && members.get("default").is_some_and(Value::is_null) {
        members.retain(|key, _| key != "default");
    }
}

/// Removes a default of `false` or `[]`, which is what leaving the member out means to everybody.
fn drop_empty_default(schema: &mut Value) {
    let is_empty = |value: &Value| *value == Value::Bool(false) || value.as_array().is_some_and(Vec::is_empty);
    if let Some(members) = schema.as_object_mut().filter(|members| members.get("default").is_some_and(is_empty)) {
        members.retain(|key, _| key != "default");
    }
}

/// Replaces an `anyOf` of one choice by that choice. Members of the field take precedence over those of its type.
fn unfold(members: &mut Map<String, Value>, only: Map<String, Value>) {
    let own = std::mem::take(members);
    for (key, value) in own {
        if key == "anyOf" {
            for (key, value) in &only {
                members.entry(key).or_insert_with(|| value.clone());
            }
        } else {
            members.insert(key, value);
        }
    }
}

const RUST_FORMATS: &[&str] = &[
    "int8", "int16", "int32", "int64", "int128", "int", "uint8", "uint16", "uint32", "uint64", "uint128", "uint",
    "float", "double", "char",
];

/// The schema of arguments: an object, whatever the schema of `T` is.
pub(crate) fn arguments<T: JsonSchema>() -> Value {
    object(of::<T>())
}

fn object(mut schema: Value) -> Value {
    if let Some(object) = schema.as_object_mut() {
        if !object.contains_key("type") && !object.contains_key("$ref") {
            object.insert("type".into(), "object".into());
        }
        if object.get("type").is_some_and(|t| t == "object") && !object.contains_key("properties") {
            object.insert("properties".into(), Map::new().into());
        }
        // `type` first, for readability.
        if let Some(kind) = object.remove("type") {
            let rest = std::mem::take(object);
            object.insert("type".into(), kind);
            object.extend(rest);
        }
    }
    schema
}

pub(crate) fn raw(value: &Value) -> Box<RawValue> {
    serde_json::value::to_raw_value(value).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

/// Whether the schema has constraints that deserialising the Rust type does not check: bounds, patterns, sizes. Bounds
/// of Rust integer types do not count.
pub(crate) fn beyond_serde(schema: &Value) -> bool {
    match schema {
        Value::Object(members) => {
            let integer = members
                .get("format")
                .and_then(Value::as_str)
                .is_some_and(|f| f.starts_with("int") || f.starts_with("uint"));
            members.iter().any(|(key, value)| match key.as_str() {
                "minimum" | "maximum" => !(integer && of_the_type(members, key, value)),
                "exclusiveMinimum" | "exclusiveMaximum" | "multipleOf" | "minLength" | "maxLength" | "pattern"
                | "minItems" | "maxItems" | "uniqueItems" | "minProperties" | "maxProperties" | "propertyNames"
                | "contains" | "if" | "not" | "dependentRequired" => true,
                // These contain instances, not schemas.
                "default" | "examples" | "const" | "enum" | "description" | "required" => false,
                "properties" | "$defs" | "patternProperties" => {
                    value.as_object().is_some_and(|m| m.values().any(beyond_serde))
                }
                _ => beyond_serde(value),
            })
        }
        Value::Array(items) => items.iter().any(beyond_serde),
        _ => false,
    }
}

fn of_the_type(members: &Map<String, Value>, key: &str, value: &Value) -> bool {
    let bounds: &[(&str, i128, i128)] = &[
        ("uint8", 0, u8::MAX as i128),
        ("uint16", 0, u16::MAX as i128),
        ("uint32", 0, u32::MAX as i128),
        ("uint64", 0, u64::MAX as i128),
        ("uint", 0, u64::MAX as i128),
        ("int8", i8::MIN as i128, i8::MAX as i128),
        ("int16", i16::MIN as i128, i16::MAX as i128),
        ("int32", i32::MIN as i128, i32::MAX as i128),
        ("int64", i64::MIN as i128, i64::MAX as i128),
        ("int", i64::MIN as i128, i64::MAX as i128),
    ];
    let format = members.get("format").and_then(Value::as_str).unwrap_or_default();
    bounds.iter().any(|(name, min, max)| {
        let bound = if key == "minimum" { *min } else { *max };
        *name == format && value.as_f64() == Some(bound as f64)
    })
}

#[cfg(test)]
mod tests {
    #![allow(dead_code, reason = "of these types only the schema is looked at")]

    use super::*;
    use serde_json::json;

    #[derive(JsonSchema)]
    struct Plain {
        a: u8,
        b: Option<i64>,
        c: Vec<String>,
        d: Choice,
    }
    #[derive(JsonSchema)]
    enum Choice {
        /// First.
        One,
        Two,
    }
    #[derive(JsonSchema)]
    struct Bounded {
        #[schemars(range(min = 1, max = 10))]
        a: u8,
    }

    #[test]
    fn only_what_serde_cannot_see_asks_for_a_validator() {
        assert!(!beyond_serde(&of::<Plain>()), "{}", of::<Plain>());
        assert!(beyond_serde(&of::<Bounded>()));
        assert_eq!(arguments::<NoArgs>(), serde_json::json!({"type": "object", "properties": {}}));
        let mut plain = of::<Plain>();
        portable(&mut plain);
        assert!(!plain.to_string().contains("format"), "{plain}");
    }

    #[test]
    fn only_descriptions_get_other_words() {
        let mut schema = json!({
            "description": "old",
            "properties": {
                "description": { "type": "string", "description": "an old one", "default": { "description": "old" } },
                "other": { "anyOf": [{ "description": "old", "enum": [{ "description": "old" }] }, { "title": "old" }] },
            },
        });
        reword(&mut schema, &|text| (text != "an old one").then(|| text.replace("old", "new")));
        let wanted = json!({
            "description": "new",
            "properties": {
                "description": { "type": "string", "description": "an old one", "default": { "description": "old" } },
                "other": { "anyOf": [{ "description": "new", "enum": [{ "description": "old" }] }, { "title": "old" }] },
            },
        });
        assert_eq!(schema, wanted);
    }

    #[derive(JsonSchema)]
    #[serde(rename_all = "lowercase")]
    enum Word {
        A,
        B,
    }
    #[derive(JsonSchema)]
    #[schemars(inline)]
    enum Inlined {
        A,
        B,
    }
    #[derive(JsonSchema)]
    #[serde(tag = "kind")]
    enum Tagged {
        Sized { size: Option<u8> },
        Other,
    }
    #[derive(JsonSchema)]
    struct Inner {
        deep: Option<String>,
        list: Vec<Option<String>>,
    }
    #[derive(JsonSchema)]
    struct Many {
        text: Option<String>,
        #[serde(default)]
        defaulted: Option<bool>,
        #[schemars(range(min = 1, max = 9))]
        bounded: Option<u8>,
        #[schemars(length(min = 2))]
        long: Option<String>,
        /// The field's own words.
        word: Option<Word>,
        inlined: Option<Inlined>,
        described: Option<Choice>,
        inner: Option<Inner>,
        inners: Option<Vec<Inner>>,
        tagged: Option<Tagged>,
        map: Option<std::collections::BTreeMap<String, Option<i32>>>,
        any: Option<Value>,
        boxed: Option<Box<Many>>,
        #[schemars(required)]
        must: Option<String>,
        plain: String,
    }

    #[test]
    fn bounds_of_rust_integers_and_empty_defaults_are_not_listed() {
        let mut schema = json!({ "type": "object", "properties": {
            "small": { "type": "integer", "format": "uint8", "minimum": 0, "maximum": 255 },
            "some": { "type": "integer", "format": "uint8", "minimum": 1, "maximum": 255 },
            "off": { "type": "boolean", "default": false },
            "on": { "type": "boolean", "default": true },
            "names": { "type": "array", "items": {}, "default": [] },
        } });
        without_type_bounds(&mut schema);
        portable(&mut schema);
        without_nulls(&mut schema);
        assert_eq!(
            schema["properties"],
            json!({
                "small": { "type": "integer" },
                "some": { "type": "integer", "minimum": 1 },
                "off": { "type": "boolean" },
                "on": { "type": "boolean", "default": true },
                "names": { "type": "array", "items": {} },
            })
        );
    }

    #[test]
    fn options_are_listed_as_what_they_hold_and_not_required() {
        let mut schema = arguments::<Many>();
        portable(&mut schema);
        let checked = schema.clone();
        without_nulls(&mut schema);
        let inner = json!({"type": "object", "properties": {
            "deep": {"type": "string"},
            "list": {"type": "array", "items": {"type": ["string", "null"]}},
        }, "required": ["list"]});
        for (name, want) in [
            ("text", json!({"type": "string"})),
            ("defaulted", json!({"type": "boolean"})),
            ("bounded", json!({"type": "integer", "minimum": 1, "maximum": 9})),
            ("long", json!({"type": "string", "minLength": 2})),
            ("word", json!({"type": "string", "enum": ["a", "b"], "description": "The field's own words."})),
            ("inlined", json!({"type": "string", "enum": ["A", "B"]})),
            (
                "described",
                json!({"oneOf": [
                    {"type": "string", "enum": ["Two"]},
                    {"type": "string", "const": "One", "description": "First."},
                ]}),
            ),
            ("inner", inner.clone()),
            ("inners", json!({"type": "array", "items": inner})),
            // Items and values are not optional members.
            ("map", json!({"type": "object", "additionalProperties": {"type": ["integer", "null"]}})),
            ("any", json!(true)),
            ("boxed", json!({"$ref": "#"})),
            ("must", json!({"type": "string"})),
            ("plain", json!({"type": "string"})),
        ] {
            assert_eq!(schema["properties"][name], want, "{name}, from {}", checked["properties"][name]);
        }
        assert_eq!(schema["required"], json!(["must", "plain"]));
        assert_eq!(
            schema["properties"]["tagged"]["oneOf"][0]["properties"]["size"],
            json!({"type": "integer", "minimum": 0, "maximum": 255})
        );
        let once = schema.clone();
        without_nulls(&mut schema);
        assert_eq!(schema, once, "doing it twice is doing it once");
    }

    #[derive(JsonSchema)]
    struct Tree {
        name: Word,
        children: Vec<Tree>,
        forest: Option<Leaf>,
    }
    #[derive(JsonSchema)]
    struct Leaf {
        next: Option<Box<Leaf>>,
    }

    #[test]
    fn only_types_that_hold_themselves_are_referred_to() {
        for schema in [arguments::<Plain>(), of_answer::<Plain>(), of_answer::<Inner>()] {
            assert!(!schema.to_string().contains("$ref") && schema.get("$defs").is_none(), "{schema}");
        }
        let tree = arguments::<Tree>();
        assert_eq!(tree["properties"]["name"], json!({"type": "string", "enum": ["a", "b"]}), "{tree}");
        assert_eq!(tree["properties"]["children"]["items"], json!({"$ref": "#"}), "{tree}");
        let names: Vec<&String> = tree["$defs"].as_object().into_iter().flat_map(Map::keys).collect();
        assert_eq!(names, ["Leaf"], "{tree}");
    }

    #[test]
    fn only_null_beside_something_else_is_left_out() {
        for (property, want) in [
            (json!({"type": "null"}), json!({"type": "null"})),
            (json!({"type": ["null"]}), json!({"type": ["null"]})),
            (json!({"type": ["string", "integer", "null"]}), json!({"type": ["string", "integer"]})),
            (json!({"enum": ["a", null]}), json!({"enum": ["a", null]})),
            (json!({"anyOf": [{"type": "null"}]}), json!({"anyOf": [{"type": "null"}]})),
            (
                json!({"anyOf": [{"type": "string"}, {"type": "integer"}, {"type": "null"}], "default": null}),
                json!({"anyOf": [{"type": "string"}, {"type": "integer"}]}),
            ),
            (
                json!({"title": "T", "anyOf": [{"type": "string", "title": "inner", "maxLength": 3}, {"type": "null"}], "default": "x"}),
                json!({"title": "T", "type": "string", "maxLength": 3, "default": "x"}),
            ),
            (json!({"type": "string", "default": null}), json!({"type": "string", "default": null})),
        ] {
            let mut schema = json!({"type": "object", "properties": {"a": property.clone()}});
            without_nulls(&mut schema);
            assert_eq!(schema["properties"]["a"], want, "{property}");
            let mut required = json!({"type": "object", "properties": {"a": property.clone()}, "required": ["a"]});
            without_nulls(&mut required);
            assert_eq!(required["properties"]["a"], property, "what is required stays");
        }
    }
}
