//! Strict parsing of JSON objects from untrusted senders.

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use std::fmt;

/// Parses a JSON object. Returns `None` if any object in it has duplicate members, which different parsers would
/// interpret differently.
///
/// ```
/// assert!(linchpin_oauth::parse_object(br#"{"aud":"a","sub":"b"}"#).is_some());
/// assert!(linchpin_oauth::parse_object(br#"{"aud":"a","aud":"b"}"#).is_none());
/// assert!(linchpin_oauth::parse_object(b"[]").is_none());
/// ```
pub fn parse_object(text: &[u8]) -> Option<Map<String, Value>> {
    let mut reader = serde_json::Deserializer::from_slice(text);
    let value = Unique.deserialize(&mut reader).ok()?;
    reader.end().ok()?;
    match value {
        Value::Object(map) => Some(map),
        _ => None,
    }
}

struct Unique;

impl<'de> DeserializeSeed<'de> for Unique {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Value, D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Unique {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON without repeated members")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = from.next_element_seed(Unique)? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(name) = from.next_key::<String>()? {
            let value = from.next_value_seed(Unique)?;
            if map.insert(name, value).is_some() {
                return Err(A::Error::custom("a member stands twice"));
            }
        }
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests {
    use super::parse_object;
    use serde_json::Value;

    #[test]
    fn it_reads_what_serde_json_reads_but_for_repeated_members() {
        let rows = [
            r#"{}"#,
            r#"{"a":null,"b":[true,1,-2,1.5,"\u00fc",{"c":{}}],"d":1e300,"e":18446744073709551615}"#,
            r#"{"a":1} x"#,
            r#"{"a":1"#,
            r#""a""#,
        ];
        for text in rows {
            let expected = serde_json::from_str::<Value>(text).ok().and_then(|v| v.as_object().cloned());
            assert_eq!(parse_object(text.as_bytes()), expected, "{text}");
        }
        for twice in [r#"{"a":1,"a":1}"#, r#"{"x":[{"a":1,"b":2,"a":3}]}"#, r#"{"a":1,"\u0061":2}"#] {
            assert!(parse_object(twice.as_bytes()).is_none(), "{twice}");
        }
    }
}
