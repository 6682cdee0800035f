//! Values of the server, which come as text, as JSON.

use crate::wire::Row;
use linchpin_kit::json::{compact, write_pretty};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt::Write;

/// Maximum nesting of arrays; PostgreSQL's own limit is 6.
const ARRAY_DEPTH_MAX: usize = 8;

/// How the text of a type becomes JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// A string; also int8 and numeric, which have more digits than JSON readers keep.
    Text,
    /// `t` and `f`.
    Bool,
    /// A number if JSON has it (so not NaN), else a string.
    Number,
    /// Unchanged.
    Json,
}

impl Shape {
    /// The form of a non-array type, by its OID, which is the same in every server's catalogue.
    pub(crate) fn of(oid: u32) -> Self {
        match oid {
            16 => Self::Bool,
            21 | 23 | 26 | 700 | 701 => Self::Number,
            114 | 3802 => Self::Json,
            _ => Self::Text,
        }
    }
}

/// A type as shown in results.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Type {
    /// As SQL writes it: `numeric(10,2)`, `text[]`.
    pub(crate) name: String,
    /// Of the type, or of an array's elements.
    pub(crate) shape: Shape,
    /// The element separator of an array type.
    pub(crate) array: Option<char>,
}

/// A column's value as JSON: the JSON type that fits, and a string for most.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Cell(pub(crate) Box<RawValue>);

impl JsonSchema for Cell {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Cell".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({})
    }
}

impl Cell {
    /// A cell with this JSON text, or with the text as a string if it is not valid JSON.
    pub(crate) fn from_json(text: &str) -> Self {
        let compact = compact(text);
        let raw = match serde_json::from_str::<Value>(&compact) {
            Ok(_) => RawValue::from_string(compact),
            Err(_) => return Self::from_text(text),
        };
        raw.map_or_else(|_| Self::from_text(text), Self)
    }

    fn from_text(text: &str) -> Self {
        Self(serde_json::value::to_raw_value(text).unwrap_or_else(|_| RawValue::NULL.to_owned()))
    }

    /// The deserialized value.
    pub(crate) fn new(text: Option<&str>, of: &Type) -> Self {
        let Some(text) = text else { return Self(RawValue::NULL.to_owned()) };
        let json = match of.array {
            Some(delimiter) => array(text, delimiter, of.shape),
            None => scalar(text, of.shape),
        };
        json.and_then(|json| RawValue::from_string(json).ok()).map_or_else(|| Self::from_text(text), Self)
    }

    /// Its JSON.
    pub(crate) fn get(&self) -> &str {
        self.0.get()
    }
}

/// The cells of a row.
pub(crate) fn cells(row: &Row, types: &[Type]) -> Vec<Cell> {
    types.iter().enumerate().map(|(at, of)| Cell::new(row.cell(at).as_deref(), of)).collect()
}

fn quoted(text: &str) -> String {
    serde_json::to_string(text).unwrap_or_default()
}

fn scalar(text: &str, shape: Shape) -> Option<String> {
    match shape {
        Shape::Text => Some(quoted(text)),
        Shape::Bool => Some(if text == "t" { "true" } else { "false" }.to_owned()),
        Shape::Number => serde_json::from_str::<serde_json::Number>(text).ok().map(|_| text.to_owned()),
        Shape::Json => {
            let compact = compact(text);
            serde_json::from_str::<Value>(&compact).is_ok().then_some(compact)
        }
    }
}

/// Converts `{1,NULL,"a b"}` and `[0:1]={…}` to a JSON array. `None` if it is not well-formed.
fn array(text: &str, delimiter: char, shape: Shape) -> Option<String> {
    let body = if text.starts_with('[') { text.split_once('=')?.1 } else { text };
    let mut out = String::with_capacity(text.len() + 16);
    let mut letters = body.chars().peekable();
    let mut depth = 0;
    loop {
        match letters.next()? {
            '{' if depth < ARRAY_DEPTH_MAX => {
                depth += 1;
                out.push('[');
            }
            '}' if depth > 0 => {
                depth -= 1;
                out.push(']');
                if depth == 0 {
                    return letters.next().is_none().then_some(out);
                }
            }
            letter if letter == delimiter && depth > 0 => out.push(','),
            _ if depth == 0 => return None,
            first => {
                let mut element = String::new();
                if first == '"' {
                    loop {
                        match letters.next()? {
                            '"' => break,
                            '\\' => element.push(letters.next()?),
                            letter => element.push(letter),
                        }
                    }
                } else {
                    element.push(first);
                    while let Some(letter) = letters.next_if(|l| *l != delimiter && *l != '}') {
                        element.push(letter);
                    }
                    if element.eq_ignore_ascii_case("null") {
                        out.push_str("null");
                        continue;
                    }
                }
                let json = scalar(&element, shape).unwrap_or_else(|| quoted(&element));
                out.push_str(&json);
            }
        }
    }
}

/// Rows as an array of objects. Of columns with one name the last one's value stays, at the place of the first.
pub(crate) fn objects(names: &[&str], rows: &[Vec<Cell>]) -> String {
    let mut order: Vec<(String, usize)> = Vec::new();
    for (at, name) in names.iter().enumerate() {
        let key = quoted(name);
        match order.iter_mut().find(|(known, _)| *known == key) {
            Some(known) => known.1 = at,
            None => order.push((key, at)),
        }
    }
    if rows.is_empty() {
        return "[]".to_owned();
    }
    let mut out = String::from("[");
    for (n, row) in rows.iter().enumerate() {
        out.push_str(if n == 0 { "\n  {" } else { ",\n  {" });
        for (m, (key, at)) in order.iter().enumerate() {
            let comma = if m == 0 { "" } else { "," };
            let _ = write!(out, "{comma}\n    {key}: ");
            write_pretty(row[*at].get(), 2, usize::MAX, &mut out);
        }
        out.push_str(if order.is_empty() { "}" } else { "\n  }" });
    }
    out.push_str("\n]");
    out
}

/// The text of a parameter for the type that the server expects.
pub(crate) fn parameter(value: &Value, oid: u32) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text)
            if matches!(Shape::of(oid), Shape::Json) && serde_json::from_str::<Value>(text).is_err() =>
        {
            Some(quoted(text))
        }
        Value::String(text) => Some(text.clone()),
        Value::Array(items) if !matches!(Shape::of(oid), Shape::Json) => {
            let mut out = String::new();
            literal(items, &mut out);
            Some(out)
        }
        // Other languages' spellings of 1.
        Value::Number(number) if INTEGERS.contains(&oid) => {
            let whole = number.as_f64().filter(|float| float.fract() == 0.0 && float.abs() < WHOLE_MAX);
            Some(whole.filter(|_| number.is_f64()).map_or_else(|| number.to_string(), |float| format!("{float:.0}")))
        }
        other => Some(other.to_string()),
    }
}

/// The types int8, int2, int4 and oid.
const INTEGERS: [u32; 4] = [20, 21, 23, 26];

/// 2 to the power of 53: up to here a number with a fraction is exact.
const WHOLE_MAX: f64 = 9_007_199_254_740_992.0;

/// PostgreSQL's array syntax.
fn literal(items: &[Value], out: &mut String) {
    out.push('{');
    for (at, item) in items.iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        match item {
            Value::Null => out.push_str("NULL"),
            Value::Array(items) => literal(items, out),
            item => {
                let text = item.as_str().map_or_else(|| item.to_string(), str::to_owned);
                element(&text, out);
            }
        }
    }
    out.push('}');
}

fn element(text: &str, out: &mut String) {
    out.push('"');
    for letter in text.chars() {
        if matches!(letter, '"' | '\\') {
            out.push('\\');
        }
        out.push(letter);
    }
    out.push('"');
}

/// PostgreSQL's array syntax for strings.
pub(crate) fn texts<T: AsRef<str>>(items: impl IntoIterator<Item = T>) -> String {
    let mut out = String::from("{");
    for item in items {
        if out.len() > 1 {
            out.push(',');
        }
        element(item.as_ref(), &mut out);
    }
    out.push('}');
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn of(shape: Shape, array: Option<char>) -> Type {
        Type { name: String::new(), shape, array }
    }

    #[test]
    fn values_keep_everything_they_hold() {
        let cases = [
            (Some("9007199254740993"), Shape::Text, None, "\"9007199254740993\""),
            (Some("t"), Shape::Bool, None, "true"),
            (Some("-7"), Shape::Number, None, "-7"),
            (Some("1e-07"), Shape::Number, None, "1e-07"),
            (Some("NaN"), Shape::Number, None, "\"NaN\""),
            (Some("-Infinity"), Shape::Number, None, "\"-Infinity\""),
            (None, Shape::Number, None, "null"),
            (Some("{\"b\": 1,\n \"a\": \" x \\\" \" }"), Shape::Json, None, "{\"b\":1,\"a\":\" x \\\" \"}"),
            (Some("12345678901234567890.123"), Shape::Json, None, "12345678901234567890.123"),
            (Some("{}"), Shape::Text, Some(','), "[]"),
            (Some("{1,NULL,2}"), Shape::Number, Some(','), "[1,null,2]"),
            (Some("{{t,f},{f,t}}"), Shape::Bool, Some(','), "[[true,false],[false,true]]"),
            (
                Some("{a,\"b \\\"c\\\\\",\"NULL\",null}"),
                Shape::Text,
                Some(','),
                "[\"a\",\"b \\\"c\\\\\",\"NULL\",null]",
            ),
            (Some("[0:1]={1,2}"), Shape::Number, Some(','), "[1,2]"),
            (Some("{(1,1),(0,0);(3,3),(2,2)}"), Shape::Text, Some(';'), "[\"(1,1),(0,0)\",\"(3,3),(2,2)\"]"),
            (Some("{\"{\\\"a\\\": 1}\"}"), Shape::Json, Some(','), "[{\"a\":1}]"),
            (Some("{1"), Shape::Number, Some(','), "\"{1\""),
        ];
        for (text, shape, array, expected) in cases {
            assert_eq!(Cell::new(text, &of(shape, array)).get(), expected, "{text:?}");
        }
    }

    #[test]
    fn rows_are_written_as_the_published_server_writes_them() {
        let cell = |json: &str| Cell::from_json(json);
        let rows =
            [vec![cell("1"), cell("{\"x\":[1,{}],\"y\":[]}"), cell("2")], vec![cell("null"), cell("\"a\""), cell("3")]];
        let expected = "[\n  {\n    \"a\": 2,\n    \"b\": {\n      \"x\": [\n        1,\n        {}\n      ],\n      \"y\": []\n    }\n  },\n  {\n    \"a\": 3,\n    \"b\": \"a\"\n  }\n]";
        assert_eq!(objects(&["a", "b", "a"], &rows), expected);
        assert_eq!(objects(&["a"], &[]), "[]");
        assert_eq!(objects(&[], &[vec![]]), "[\n  {}\n]");
    }

    #[test]
    fn parameters_take_the_form_of_their_type() {
        let cases = [
            (json!(null), 25, None),
            (json!("x"), 25, Some("x")),
            (json!(1.5), 1700, Some("1.5")),
            (json!(1.0), 23, Some("1")),
            (json!(-2e3), 20, Some("-2000")),
            (json!(1.5), 23, Some("1.5")),
            (json!(1e300), 20, Some("1e+300")),
            (json!(u64::MAX), 20, Some("18446744073709551615")),
            (json!(1.0), 701, Some("1.0")),
            (json!(true), 16, Some("true")),
            (json!([1, null, "a\"\\"]), 1009, Some("{\"1\",NULL,\"a\\\"\\\\\"}")),
            (json!([[1], [2]]), 1007, Some("{{\"1\"},{\"2\"}}")),
            (json!([1, "a"]), 3802, Some("[1,\"a\"]")),
            (json!({ "a": 1 }), 114, Some("{\"a\":1}")),
            (json!("plain"), 3802, Some("\"plain\"")),
            (json!("{\"a\": 1}"), 3802, Some("{\"a\": 1}")),
        ];
        for (value, oid, expected) in cases {
            assert_eq!(parameter(&value, oid).as_deref(), expected, "{value}");
        }
    }

    proptest! {
        /// A string survives the conversion to an array and back.
        #[test]
        fn arrays_of_texts_come_back(items in prop::collection::vec(".{0,6}", 0..5)) {
            let json = array(&texts(&items), ',', Shape::Text).unwrap();
            prop_assert_eq!(serde_json::from_str::<Vec<String>>(&json).unwrap(), items);
        }
    }
}
