//! Decodes string variables (of a URI template or a prompt) into the handler's type: numbers and booleans are parsed.

use serde::de::value::{MapDeserializer, StrDeserializer};
use serde::de::{DeserializeOwned, Deserializer, Error as _, IntoDeserializer, Visitor};
use serde::forward_to_deserialize_any;
use serde_json::Value;

type E = serde::de::value::Error;

/// Reads `T` from named strings. The error names the invalid one, in one line.
pub(crate) fn decode<T: DeserializeOwned>(vars: &[(String, String)]) -> Result<T, String> {
    let entries = vars.iter().map(|(name, value)| (name.as_str(), Var { name, value }));
    T::deserialize(MapDeserializer::new(entries)).map_err(|e: E| e.to_string())
}

/// The members of a JSON object as named strings. `None` if it is no object, or a member is neither a string, a number nor a
/// boolean; members that are `null` are left out.
pub(crate) fn from_json(json: &str) -> Option<Vec<(String, String)>> {
    let members: serde_json::Map<String, Value> = serde_json::from_str(json).ok()?;
    let members = members.into_iter().filter(|(_, value)| !value.is_null());
    members
        .map(|(name, value)| match value {
            Value::String(text) => Some((name, text)),
            Value::Number(_) | Value::Bool(_) => Some((name, value.to_string())),
            _ => None,
        })
        .collect()
}

/// Checks at registration that strings can become the members of a handler's argument type. `schema` is that of the type;
/// `arrives` says which members can be given, the others may be anything.
///
/// # Errors
/// Which member is an array or an object, and what to do about it.
pub(crate) fn check(schema: &Value, arrives: impl Fn(&str) -> bool) -> Result<(), String> {
    let members = schema["properties"].as_object();
    for (name, member) in members.into_iter().flatten().filter(|(name, _)| arrives(name)) {
        let kinds = match &member["type"] {
            Value::Array(kinds) => kinds.as_slice(),
            kind => std::slice::from_ref(kind),
        };
        let mut kinds = kinds.iter().filter_map(Value::as_str).filter(|kind| *kind != "null");
        if let Some(kind @ ("array" | "object")) = kinds.next()
            && kinds.next().is_none()
        {
            return Err(format!(
                "`{name}` is an {kind}, but it arrives as a string: take a `String`, or add `#[schemars(with = \"String\")]` \
                 if its `Deserialize` takes one"
            ));
        }
    }
    Ok(())
}

#[derive(Clone, Copy)]
struct Var<'a> {
    name: &'a str,
    value: &'a str,
}

impl<'a> IntoDeserializer<'a, E> for Var<'a> {
    type Deserializer = Self;
    fn into_deserializer(self) -> Self {
        self
    }
}

impl Var<'_> {
    /// An error says which variable it is about.
    fn named<T>(self, read: Result<T, E>) -> Result<T, E> {
        read.map_err(|e| E::custom(format_args!("`{}`: {e}", self.name)))
    }
}

macro_rules! parsed {
    ($($method:ident $visit:ident $kind:literal),*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, E> {
            match self.value.parse() {
                Ok(value) => visitor.$visit(value),
                Err(_) => Err(E::custom(format_args!("`{}` must be {}", self.name, $kind))),
            }
        }
    )*};
}

impl<'de> Deserializer<'de> for Var<'_> {
    type Error = E;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, E> {
        self.named(visitor.visit_str(self.value))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, E> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, E> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, E> {
        self.named(StrDeserializer::<E>::new(self.value).deserialize_enum(name, variants, visitor))
    }

    parsed! {
        deserialize_bool visit_bool "true or false",
        deserialize_u8 visit_u8 "a whole number from 0 to 255", deserialize_u16 visit_u16 "a whole number from 0 to 65535",
        deserialize_u32 visit_u32 "a whole number from 0 to 4294967295", deserialize_u64 visit_u64 "a whole number from 0 to 18446744073709551615",
        deserialize_i8 visit_i8 "a whole number from -128 to 127", deserialize_i16 visit_i16 "a whole number from -32768 to 32767",
        deserialize_i32 visit_i32 "a whole number from -2147483648 to 2147483647",
        deserialize_i64 visit_i64 "a whole number from -9223372036854775808 to 9223372036854775807",
        deserialize_f32 visit_f32 "a number", deserialize_f64 visit_f64 "a number"
    }

    forward_to_deserialize_any! {
        i128 u128 char str string bytes byte_buf unit unit_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    #[derive(Deserialize, Debug, PartialEq)]
    struct Args {
        name: String,
        day: u16,
        on: Option<bool>,
        kind: Option<Kind>,
    }
    #[derive(Deserialize, Debug, PartialEq)]
    enum Kind {
        Text,
    }

    #[test]
    fn strings_become_what_the_type_says() {
        let v = |pairs: &[(&str, &str)]| {
            super::decode::<Args>(&pairs.iter().map(|(a, b)| (a.to_string(), b.to_string())).collect::<Vec<_>>())
        };
        let want = Args { name: "7".into(), day: 3, on: Some(true), kind: Some(Kind::Text) };
        assert_eq!(v(&[("name", "7"), ("day", "3"), ("on", "true"), ("kind", "Text")]), Ok(want));
        assert_eq!(v(&[("name", "x"), ("day", "three")]), Err("`day` must be a whole number from 0 to 65535".into()));
        assert!(
            v(&[("name", "x"), ("day", "3"), ("kind", "Txt")])
                .is_err_and(|e| e.starts_with("`kind`: unknown variant `Txt`"))
        );
        assert_eq!(v(&[("day", "3")]), Err("missing field `name`".into()));
    }
}
