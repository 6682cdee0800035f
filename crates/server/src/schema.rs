//! JSON Schemas of Rust types, and what can be read off them once at registration.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// The arguments of a tool, resource or prompt that takes none.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[schemars(transform = undescribed)]
pub struct NoArgs {}

/// What this crate says about the type is no news to clients.
fn undescribed(schema: &mut Schema) {
    schema.remove("description");
}

/// The schema of `T` in the default dialect (2020-12), without the members that say nothing.
pub(crate) fn of<T: JsonSchema>() -> Value {
    root::<T>(SchemaSettings::draft2020_12())
}

/// The same of what `T` is written as: members that are left out when they are empty are not required.
pub(crate) fn of_answer<T: JsonSchema>() -> Value {
    root::<T>(SchemaSettings::draft2020_12().for_serialize())
}

fn root<T: JsonSchema>(settings: SchemaSettings) -> Value {
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    schema.remove("$schema");
    schema.remove("title");
    // The type's own doc comment speaks to Rust programmers.
    schema.remove("description");
    Schema::to_value(schema)
}

/// Leaves out `format`s that name Rust types: no other language knows them, and some clients refuse unknown formats.
pub(crate) fn portable(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            if members.get("format").and_then(Value::as_str).is_some_and(|f| RUST_FORMATS.contains(&f)) {
                members.remove("format");
            }
            for (key, value) in members.iter_mut() {
                // These hold instances, not schemas.
                if !matches!(key.as_str(), "default" | "examples" | "const" | "enum") {
                    portable(value);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(portable),
        _ => {}
    }
}

const RUST_FORMATS: &[&str] = &[
    "int8", "int16", "int32", "int64", "int128", "int", "uint8", "uint16", "uint32", "uint64", "uint128", "uint",
    "float", "double", "char",
];

/// The schema of arguments: an object, whatever `T` says about itself.
pub(crate) fn arguments<T: JsonSchema>() -> Value {
    let mut schema = of::<T>();
    if let Some(object) = schema.as_object_mut() {
        if !object.contains_key("type") && !object.contains_key("$ref") {
            object.insert("type".into(), "object".into());
        }
        if object.get("type").is_some_and(|t| t == "object") && !object.contains_key("properties") {
            object.insert("properties".into(), Map::new().into());
        }
        // `type` first reads best.
        if let Some(kind) = object.remove("type") {
            let rest = std::mem::take(object);
            object.insert("type".into(), kind);
            object.extend(rest);
        }
    }
    schema
}

pub(crate) fn raw(value: &Value) -> Box<RawValue> {
    RawValue::from_string(value.to_string()).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

/// Whether the schema asks for something that deserialising into the Rust type does not check: bounds, patterns, sizes.
/// Bounds that a Rust integer type has anyway do not count.
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
                // These hold instances, not schemas.
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
    use super::*;

    #[derive(JsonSchema)]
    #[allow(dead_code)]
    struct Plain {
        a: u8,
        b: Option<i64>,
        c: Vec<String>,
        d: Choice,
    }
    #[derive(JsonSchema)]
    #[allow(dead_code)]
    enum Choice {
        /// First.
        One,
        Two,
    }
    #[derive(JsonSchema)]
    #[allow(dead_code)]
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
}
