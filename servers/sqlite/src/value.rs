//! Values: of rows, and of placeholders.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use rusqlite::types::{ToSql, ToSqlOutput, ValueRef};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::ser::{Serialize, SerializeMap as _, Serializer};
use serde_json::Value as Json;
use std::borrow::Cow;

/// A SQLite value. In JSON, binary data and text that is not UTF-8 are `{"base64": "…"}`; infinities are the strings
/// `"Infinity"` and `"-Infinity"`; integers keep all 64 bits.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    /// NULL.
    Null,
    /// INTEGER.
    Integer(i64),
    /// REAL.
    Real(f64),
    /// TEXT.
    Text(String),
    /// BLOB.
    Blob(Vec<u8>),
}

impl Cell {
    pub(crate) fn of(value: ValueRef<'_>) -> Cell {
        match value {
            ValueRef::Null => Cell::Null,
            ValueRef::Integer(integer) => Cell::Integer(integer),
            ValueRef::Real(real) => Cell::Real(real),
            ValueRef::Text(bytes) => match std::str::from_utf8(bytes) {
                Ok(text) => Cell::Text(text.to_owned()),
                Err(_) => Cell::Blob(bytes.to_vec()),
            },
            ValueRef::Blob(bytes) => Cell::Blob(bytes.to_vec()),
        }
    }

    /// The text, if it is text.
    pub(crate) fn text(&self) -> Option<&str> {
        match self {
            Cell::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The number, if it is an integer.
    pub(crate) fn integer(&self) -> Option<i64> {
        match self {
            Cell::Integer(integer) => Some(*integer),
            _ => None,
        }
    }
}

impl ToSql for Cell {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Cell::Null => ValueRef::Null,
            Cell::Integer(integer) => ValueRef::Integer(*integer),
            Cell::Real(real) => ValueRef::Real(*real),
            Cell::Text(text) => ValueRef::Text(text.as_bytes()),
            Cell::Blob(bytes) => ValueRef::Blob(bytes),
        }))
    }
}

impl Serialize for Cell {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Cell::Null => to.serialize_unit(),
            Cell::Integer(integer) => to.serialize_i64(*integer),
            Cell::Real(real) if real.is_finite() => to.serialize_f64(*real),
            Cell::Real(real) => to.serialize_str(if *real > 0.0 { "Infinity" } else { "-Infinity" }),
            Cell::Text(text) => to.serialize_str(text),
            Cell::Blob(bytes) => {
                let mut map = to.serialize_map(Some(1))?;
                map.serialize_entry("base64", &BASE64.encode(bytes))?;
                map.end()
            }
        }
    }
}

impl JsonSchema for Cell {
    fn schema_name() -> Cow<'static, str> {
        "Value".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "null, number, string, or {\"base64\": …} for binary data. Infinite numbers are \"Infinity\" and \
                            \"-Infinity\"."
        })
    }
}

/// Values for the placeholders of a statement.
#[derive(Debug, Clone, PartialEq)]
pub enum Params {
    /// One for each `?`, in order.
    Positional(Vec<Cell>),
    /// By name, with or without its prefix (`:`, `@`, `$`).
    Named(Vec<(String, Cell)>),
    /// Invalid params, with the message for the caller. Nothing is run.
    Wrong(String),
}

impl<'de> serde::Deserialize<'de> for Params {
    /// Fails only for invalid JSON: serde would append line and column to any other message.
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let params = match Json::deserialize(from)? {
            Json::Array(items) => {
                let items = (1..)
                    .zip(items)
                    .map(|(number, item)| value(item).map_err(|why| format!("Error: item {number} of params {why}")));
                items.collect::<Result<_, _>>().map(Params::Positional)
            }
            Json::Object(items) => {
                let items = items.into_iter().map(|(name, item)| match value(item) {
                    Ok(cell) => Ok((name, cell)),
                    Err(why) => Err(format!("Error: {name:?} in params {why}")),
                });
                items.collect::<Result<_, _>>().map(Params::Named)
            }
            _ => Err("Error: params must be an array, or an object with a value for each name".into()),
        };
        Ok(params.unwrap_or_else(Params::Wrong))
    }
}

impl JsonSchema for Params {
    fn schema_name() -> Cow<'static, str> {
        "Params".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [{ "type": "array", "items": {} }, { "type": "object" }] })
    }
}

fn value(json: Json) -> Result<Cell, String> {
    match json {
        Json::Null => Ok(Cell::Null),
        Json::Bool(on) => Ok(Cell::Integer(on.into())),
        Json::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(integer), _) => Ok(Cell::Integer(integer)),
            (None, Some(real)) if !number.is_u64() => Ok(Cell::Real(real)),
            _ => Err(format!("is a number that exceeds 64 bits ({number}); pass it as a string")),
        },
        Json::String(text) => Ok(Cell::Text(text)),
        Json::Object(map) => match (map.len(), map.get("base64").and_then(Json::as_str)) {
            (1, Some(text)) => BASE64.decode(text).map(Cell::Blob).map_err(|_| {
                "is not valid base64: only A-Z a-z 0-9 + / are used, and = at the end to make its length a multiple of 4".into()
            }),
            _ => Err("is an object other than {\"base64\": …}; pass JSON as a string".into()),
        },
        Json::Array(_) => Err("is an array; pass JSON as a string".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_loses_nothing() {
        let json = |cell: Cell| serde_json::to_string(&cell).unwrap();
        assert_eq!(json(Cell::Integer(i64::MAX)), "9223372036854775807");
        assert_eq!(json(Cell::Real(f64::NEG_INFINITY)), "\"-Infinity\"");
        assert_eq!(json(Cell::Real(2.0)), "2.0");
        assert_eq!(json(Cell::Blob(vec![1, 2])), "{\"base64\":\"AQI=\"}");
        assert_eq!(json(Cell::of(ValueRef::Text(b"\xff"))), "{\"base64\":\"/w==\"}");
    }

    #[test]
    fn params_are_what_json_can_say() {
        let read = |text: &str| serde_json::from_str::<Params>(text).map_err(|error| error.to_string());
        assert_eq!(
            read(r#"[1,2.5,"x",null,true,{"base64":"AQI="}]"#),
            Ok(Params::Positional(vec![
                Cell::Integer(1),
                Cell::Real(2.5),
                Cell::Text("x".into()),
                Cell::Null,
                Cell::Integer(1),
                Cell::Blob(vec![1, 2]),
            ]))
        );
        assert_eq!(read(r#"{"a":1}"#), Ok(Params::Named(vec![("a".into(), Cell::Integer(1))])));
        for wrong in ["7", "[[1]]", r#"[{"x":1}]"#, "[18446744073709551615]", r#"[{"base64":"?"}]"#] {
            assert!(matches!(read(wrong), Ok(Params::Wrong(_))), "{wrong}");
        }
    }
}
