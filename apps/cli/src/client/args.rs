//! Converts `key=value` words to the arguments of a tool, typed by its input schema.

use crate::fail::Failure;
use crate::show::out::{near, note};
use crate::show::schema::{kinds, resolved};
use linchpin_core::exact;
use serde_json::{Map, Number, Value};
use std::io::Read;

/// Maximum size of a file or input read as an argument, in bytes.
const INPUT_BYTES_MAX: u64 = 64 << 20;

/// Parses the words after a tool's name.
pub(crate) fn arguments(words: &[String], schema: Option<&Value>) -> Result<Map<String, Value>, Failure> {
    let mut all = Map::new();
    for word in words {
        if word == "-" {
            all.extend(object(&input("-")?, "standard input")?);
        } else if word.starts_with('{') {
            all.extend(object(word, "the argument that begins with `{`")?);
        } else if let Some(file) = word.strip_prefix('@') {
            all.extend(object(&input(file)?, file)?);
        } else {
            one(&mut all, word, schema)?;
        }
    }
    Ok(all)
}

/// Parses text as a JSON object.
pub(crate) fn object(text: &str, place: &str) -> Result<Map<String, Value>, Failure> {
    match exact::read(text) {
        Ok(Value::Object(members)) => Ok(members),
        Ok(_) => Err(Failure::usage(format!("{place} must be a JSON object"))),
        Err(e) => Err(Failure::usage(format!("invalid JSON in {place}: {e}"))),
    }
}

/// Reads a file's text; `-` is standard input.
pub(crate) fn input(file: &str) -> Result<String, Failure> {
    let wrong = |e: std::io::Error| Failure::usage(format!("{file}: {e}"));
    let mut text = String::new();
    let read = match file {
        "-" => std::io::stdin().take(INPUT_BYTES_MAX + 1).read_to_string(&mut text),
        _ => std::fs::File::open(file).map_err(wrong)?.take(INPUT_BYTES_MAX + 1).read_to_string(&mut text),
    };
    if read.map_err(wrong)? as u64 > INPUT_BYTES_MAX {
        return Err(Failure::usage(format!("{file} is larger than {INPUT_BYTES_MAX} bytes")));
    }
    Ok(text)
}

/// Splits a word into its key, whether the value is JSON, and the value.
fn split(word: &str) -> Option<(&str, bool, &str)> {
    let equals = word.find('=')?;
    match word[..equals].strip_suffix(':') {
        Some(key) => Some((key, true, &word[equals + 1..])),
        None => Some((&word[..equals], false, &word[equals + 1..])),
    }
}

fn one(all: &mut Map<String, Value>, word: &str, schema: Option<&Value>) -> Result<(), Failure> {
    let (key, json, text) = split(word).filter(|(key, ..)| !key.is_empty()).ok_or_else(|| {
        Failure::usage(format!("invalid argument `{word}`: expected key=value"))
            .hint("other forms: key:=JSON, key=@FILE, and an object as '{…}', @FILE or - (standard input)")
    })?;
    let text = match text.strip_prefix('@') {
        Some(literal) if literal.starts_with('@') => literal.to_owned(),
        Some(file) if !file.is_empty() => input(file)?,
        _ => text.to_owned(),
    };
    let root = schema.unwrap_or(&Value::Null);
    let path = path_of(key, root);
    let here = path.iter().try_fold(root, |at, step| property(root, at, step));
    if path.len() == 1 && here.is_none() {
        unknown(key, root)?;
    }
    let value = match json {
        true => exact::read(&text).map_err(|e| Failure::usage(format!("invalid JSON for `{key}`: {e}")))?,
        false => typed(&text, here, root).map_err(|why| Failure::usage(format!("`{key}` {why}")))?,
    };
    put(all, &path, value, json, here.is_some_and(|s| kinds(s, root).contains(&"array")))
        .map_err(|why| Failure::usage(format!("`{key}` {why}")))
}

/// `a.b` is the member `b` of `a`, unless an argument has exactly this name.
fn path_of<'a>(key: &'a str, root: &Value) -> Vec<&'a str> {
    match property(root, root, key) {
        Some(_) => vec![key],
        None => key.split('.').collect(),
    }
}

/// Rejects an unknown argument where the schema forbids it; otherwise prints a warning.
fn unknown(key: &str, root: &Value) -> Result<(), Failure> {
    let Some(known) = root.get("properties").and_then(Value::as_object).filter(|p| !p.is_empty()) else {
        return Ok(());
    };
    let names = known.keys().map(String::as_str);
    let meant = near(key, names.clone()).map(|n| format!("did you mean `{n}`?"));
    let hint = meant.unwrap_or_else(|| format!("its arguments: {}", names.collect::<Vec<_>>().join(", ")));
    let message = format!("the tool has no argument `{key}`");
    if root.get("additionalProperties") == Some(&Value::Bool(false)) {
        return Err(Failure::usage(message).hint(hint));
    }
    note(format!("warning: {message}; {hint}"));
    Ok(())
}

fn put(all: &mut Map<String, Value>, path: &[&str], value: Value, whole: bool, array: bool) -> Result<(), String> {
    let (last, outer) = path.split_last().ok_or("is empty")?;
    let mut at = all;
    for step in outer {
        let inner = at.entry((*step).to_owned()).or_insert_with(|| Value::Object(Map::new()));
        at = inner.as_object_mut().ok_or_else(|| format!("cannot be set: `{step}` is not an object"))?;
    }
    match at.get_mut(*last) {
        Some(Value::Array(items)) if array && !whole => match value {
            Value::Array(more) => items.extend(more),
            one => items.push(one),
        },
        Some(_) if !array => return Err("is given twice".to_owned()),
        _ => {
            at.insert((*last).to_owned(), value);
        }
    }
    Ok(())
}

fn property<'a>(root: &'a Value, schema: &'a Value, name: &str) -> Option<&'a Value> {
    let schema = resolved(root, schema);
    if let Some(found) = schema.get("properties").and_then(|p| p.get(name)) {
        return Some(found);
    }
    ["allOf", "anyOf", "oneOf"]
        .iter()
        .filter_map(|member| schema.get(member)?.as_array())
        .flatten()
        .find_map(|part| resolved(root, part).get("properties")?.get(name))
}

/// Converts text to a value of the schema's type.
pub(crate) fn typed(text: &str, schema: Option<&Value>, root: &Value) -> Result<Value, String> {
    let kinds = schema.map(|schema| kinds(schema, root)).unwrap_or_default();
    if kinds.is_empty() {
        // Without a type, text that parses as JSON is JSON, except for quoted strings.
        return Ok(match exact::read(text) {
            Ok(value) if !value.is_string() || exact::number(&value).is_some() => value,
            _ => Value::String(text.to_owned()),
        });
    }
    let mut first = None;
    for kind in ["null", "integer", "number", "boolean", "array", "object"] {
        if !kinds.contains(&kind) {
            continue;
        }
        match as_kind(text, kind, schema.unwrap_or(&Value::Null), root) {
            // Where the schema allows strings too, only unambiguous values are converted.
            Ok(value) if !kinds.contains(&"string") => return Ok(value),
            Ok(value)
                if !matches!(kind, "null" | "array") && (kind != "boolean" || matches!(text, "true" | "false")) =>
            {
                return Ok(value);
            }
            Ok(_) => {}
            Err(why) => first = first.or(Some(why)),
        }
    }
    if kinds.contains(&"string") {
        return Ok(Value::String(text.to_owned()));
    }
    Err(first.unwrap_or_else(|| format!("has the unsupported type {}", kinds.join(" or "))))
}

fn as_kind(text: &str, kind: &str, schema: &Value, root: &Value) -> Result<Value, String> {
    let json = || exact::read(text);
    let must = |what: &str| format!("must be {what}, not `{}`", crate::show::out::shorten(text, 60));
    match kind {
        "null" if text == "null" => Ok(Value::Null),
        "null" => Err(must("null")),
        "integer" => match json() {
            Ok(Value::Number(n)) if n.is_i64() || n.is_u64() => Ok(Value::Number(n)),
            // More digits than a machine integer holds.
            Ok(value) if exact::number(&value).is_some_and(is_whole) => Ok(value),
            Ok(value) => {
                let number = value.as_f64().or_else(|| exact::number(&value)?.parse().ok());
                let whole = number.filter(|n| n.fract() == 0.0 && n.abs() < 9e15);
                whole.map(|n| Value::from(n as i64)).ok_or_else(|| must("an integer"))
            }
            Err(_) => Err(must("an integer")),
        },
        "number" => match json() {
            Ok(Value::Number(n)) => Ok(Value::Number(n)),
            Ok(value) if exact::number(&value).is_some() => Ok(value),
            _ => text.parse().ok().and_then(Number::from_f64).map(Value::Number).ok_or_else(|| must("a number")),
        },
        "boolean" => match text.to_ascii_lowercase().as_str() {
            "true" | "yes" | "y" | "on" | "1" => Ok(Value::Bool(true)),
            "false" | "no" | "n" | "off" | "0" => Ok(Value::Bool(false)),
            _ => Err(must("true or false")),
        },
        "array" => match json() {
            Ok(Value::Array(items)) => Ok(Value::Array(items)),
            _ => {
                let items = resolved(root, schema).get("items");
                typed(text, items, root).map(|item| Value::Array(vec![item])).map_err(|why| format!("item {why}"))
            }
        },
        _ => match json() {
            Ok(Value::Object(members)) => Ok(Value::Object(members)),
            _ => Err(must("a JSON object")),
        },
    }
}

/// Whether a number consists of digits only.
fn is_whole(number: &str) -> bool {
    number.strip_prefix('-').unwrap_or(number).bytes().all(|b| b.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn schema() -> Value {
        json!({ "type": "object", "$defs": { "level": { "enum": [1, 2] }, "deep": { "type": "object", "properties": { "n": { "type": "integer" } } } },
            "properties": {
                "text": { "type": "string" }, "n": { "type": "integer" }, "x": { "type": "number" }, "on": { "type": "boolean" },
                "tags": { "type": "array", "items": { "type": "string" } }, "ints": { "type": "array", "items": { "type": "integer" } },
                "any": {}, "maybe": { "type": ["integer", "null"] }, "either": { "anyOf": [{ "type": "string" }, { "type": "number" }] }, "said": { "type": ["string", "boolean"] },
                "level": { "$ref": "#/$defs/level" }, "deep": { "$ref": "#/$defs/deep" }, "a.b": { "type": "integer" },
                "map": { "type": "object" },
            } })
    }

    #[test]
    fn words_become_what_the_schema_wants() {
        let rows: &[(&[&str], Result<Value, &str>)] = &[
            (&["text=5"], Ok(json!({ "text": "5" }))),
            (&["text=a=b"], Ok(json!({ "text": "a=b" }))),
            (&["text="], Ok(json!({ "text": "" }))),
            (&["text=@@at"], Ok(json!({ "text": "@at" }))),
            (&["n=5"], Ok(json!({ "n": 5 }))),
            (&["n=-5"], Ok(json!({ "n": -5 }))),
            (&["n=5.0"], Ok(json!({ "n": 5 }))),
            (&["n=5.5"], Err("must be an integer")),
            (&["n=five"], Err("not `five`")),
            (&["x=.5"], Ok(json!({ "x": 0.5 }))),
            (&["x=NaN"], Err("must be a number")),
            (&["on=yes"], Ok(json!({ "on": true }))),
            (&["on=n"], Ok(json!({ "on": false }))),
            (&["on=maybe"], Err("true or false")),
            (&["tags=a"], Ok(json!({ "tags": ["a"] }))),
            (&["tags=a", "tags=b"], Ok(json!({ "tags": ["a", "b"] }))),
            (&[r#"tags=["a","b"]"#], Ok(json!({ "tags": ["a", "b"] }))),
            (&["tags=5"], Ok(json!({ "tags": ["5"] }))),
            (&["ints=1", "ints=2"], Ok(json!({ "ints": [1, 2] }))),
            (&["ints=x"], Err("item must be an integer")),
            (&["any=5"], Ok(json!({ "any": 5 }))),
            (&["any=word"], Ok(json!({ "any": "word" }))),
            (&["maybe=null"], Ok(json!({ "maybe": null }))),
            (&["maybe=7"], Ok(json!({ "maybe": 7 }))),
            (&["either=7"], Ok(json!({ "either": 7 }))),
            (&["either=seven"], Ok(json!({ "either": "seven" }))),
            (&["said=true"], Ok(json!({ "said": true }))),
            (&["said=no"], Ok(json!({ "said": "no" }))),
            (&["level=2"], Ok(json!({ "level": 2 }))),
            (&["deep.n=3"], Ok(json!({ "deep": { "n": 3 } }))),
            (&["deep.n=x"], Err("`deep.n` must be")),
            (&["a.b=3"], Ok(json!({ "a.b": 3 }))),
            (&["map.k=v", "map.l.m=1"], Ok(json!({ "map": { "k": "v", "l": { "m": 1 } } }))),
            (&[r#"map={"k":1}"#], Ok(json!({ "map": { "k": 1 } }))),
            (&["map=x"], Err("must be a JSON object")),
            (&["n:=\"text\""], Ok(json!({ "n": "text" }))),
            (&["n:={"], Err("invalid JSON for `n`")),
            (&[r#"{"n":1}"#, "text=t"], Ok(json!({ "n": 1, "text": "t" }))),
            (&["[1]"], Err("expected key=value")),
            (&["word"], Err("expected key=value")),
            (&["n=1", "n=2"], Err("given twice")),
            (&["n=1", "n.m=2"], Err("is not an object")),
        ];
        for (words, want) in rows {
            let words: Vec<String> = words.iter().map(ToString::to_string).collect();
            match (arguments(&words, Some(&schema())), want) {
                (Ok(got), Ok(want)) => assert_eq!(Value::Object(got), *want, "{words:?}"),
                (Err(got), Err(want)) => assert!(got.message().contains(want), "{words:?}: {got:?}"),
                (got, want) => panic!("{words:?}: {got:?} instead of {want:?}"),
            }
        }
    }

    #[test]
    fn numbers_keep_their_digits() {
        for (word, want) in [
            ("x=1e3", r#"{"x":1e3}"#),
            ("x=1.10", r#"{"x":1.10}"#),
            ("x:=1e400", r#"{"x":1e400}"#),
            ("n=12345678901234567890123", r#"{"n":12345678901234567890123}"#),
            ("n=5e0", r#"{"n":5}"#),
            ("any=-0.0010", r#"{"any":-0.0010}"#),
            ("either=7.50", r#"{"either":7.50}"#),
            ("text=1.10", r#"{"text":"1.10"}"#),
            (r#"{"deep":[1.10]}"#, r#"{"deep":[1.10]}"#),
        ] {
            let got = arguments(&[word.to_owned()], Some(&schema())).unwrap_or_else(|e| panic!("{word}: {e:?}"));
            assert_eq!(exact::text(&Value::Object(got)), want, "{word}");
        }
    }

    #[test]
    fn an_argument_the_tool_does_not_have_is_refused_where_the_schema_is_closed() {
        let closed = json!({ "type": "object", "properties": { "message": { "type": "string" } }, "additionalProperties": false });
        let failure = arguments(&["mesage=x".to_owned()], Some(&closed)).unwrap_err();
        assert!(failure.message().contains("no argument `mesage`"));
        let open = json!({ "type": "object", "properties": { "message": { "type": "string" } } });
        assert_eq!(
            arguments(&["more=1".to_owned()], Some(&open)).unwrap(),
            json!({ "more": 1 }).as_object().unwrap().clone()
        );
    }
}
