//! Validation of arguments: walks schema and value together, with messages that a model can act on.

use crate::coerce_integers;
use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use std::fmt;
use std::sync::Arc;
#[cfg(feature = "validate")]
use std::sync::OnceLock;

/// Creates a checker for the arguments of tool `name`. An explicit schema (`given`) is compiled at once, to report
/// errors in it.
pub(crate) fn checker(name: &str, schema: Value, given: bool, problems_max: usize) -> Result<Arc<Checker>, String> {
    let checker = Checker {
        name: name.into(),
        problems_max,
        #[cfg(feature = "validate")]
        full: (!walked_whole(&schema)).then(OnceLock::new),
        schema,
    };
    if given {
        checker.build()?;
    }
    Ok(Arc::new(checker))
}

/// Explains invalid arguments, using a tool's schema.
pub(crate) struct Checker {
    name: Box<str>,
    schema: Value,
    problems_max: usize,
    /// For schemas with keywords that the walk does not support. Built on first use, because it takes memory and time
    /// that most tools never need.
    #[cfg(feature = "validate")]
    full: Option<OnceLock<Result<jsonschema::Validator, String>>>,
}

impl Checker {
    #[cfg(feature = "validate")]
    fn build(&self) -> Result<Option<&jsonschema::Validator>, String> {
        let Some(full) = &self.full else { return Ok(None) };
        // References are never fetched: the validator is built without a resolver.
        let built = full.get_or_init(|| jsonschema::validator_for(&self.schema).map_err(|e| e.to_string()));
        built.as_ref().map(Some).map_err(|e| format!("not a JSON Schema this server can check: {e}"))
    }

    #[cfg(not(feature = "validate"))]
    fn build(&self) -> Result<(), String> {
        Ok(())
    }
}

impl Checker {
    /// Returns the problems of `json`, one per entry. Empty if the schema finds none.
    pub(crate) fn problems(&self, json: &str, max: usize) -> Vec<String> {
        let value = match serde_json::from_str::<Strict>(json) {
            Ok(Strict(Value::Null)) => Value::Object(Map::new()),
            Ok(Strict(value)) => value,
            Err(e) => return vec![serde_message(&e)],
        };
        let mut walk = Walk { root: &self.schema, found: Vec::new(), max: max.max(1), steps: 10_000, depth: 0 };
        walk.check(&self.schema, &value, &mut String::new());
        let mut found = walk.found;
        #[cfg(feature = "validate")]
        if found.is_empty()
            && let Ok(Some(full)) = self.build()
        {
            found.extend(full.iter_errors(&value).take(max).map(|e| {
                let path = e.instance_path().to_string();
                format!("{}: {}", at(&path), clip(&e.to_string(), 200))
            }));
        }
        found.truncate(max);
        found
    }

    /// Returns the arguments with `1` instead of `1.0` where the schema requires an integer; `None` if nothing changes.
    pub(crate) fn with_whole_numbers(&self, json: &str) -> Option<String> {
        let Strict(mut value) = serde_json::from_str(json).ok()?;
        coerce_integers::settle(&self.schema, &mut value).then(|| value.to_string())
    }

    /// Returns the tool's name.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Returns the maximum number of listed problems.
    pub(crate) fn problems_max(&self) -> usize {
        self.problems_max
    }
}

/// A decoder's message without the position, because the peer does not see the same text.
pub(crate) fn serde_message(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.rfind(" at line ") {
        Some(at) if error.line() > 0 => text[..at].to_owned(),
        _ => text,
    }
}

/// Whether the walk supports every keyword of the schema, so that its result is final.
#[cfg(feature = "validate")]
fn walked_whole(schema: &Value) -> bool {
    const TYPES: [&str; 7] = ["string", "integer", "number", "boolean", "array", "object", "null"];
    let known = |kind: &Value| kind.as_str().is_some_and(|k| TYPES.contains(&k));
    let word = |choice: &Value| choice["const"].is_string() || choice["enum"].is_array() && choice["type"] == "string";
    let tagged =
        |choice: &Value| choice["properties"].as_object().is_some_and(|p| p.values().any(|v| v["const"].is_string()));
    let Some(members) = schema.as_object() else { return schema.is_boolean() };
    members.iter().all(|(key, value)| match key.as_str() {
        "type" => known(value) || value.as_array().is_some_and(|kinds| kinds.iter().all(known)),
        "properties" | "$defs" => value.as_object().is_some_and(|m| m.values().all(walked_whole)),
        // Distinct constants, and objects with distinct tags, exclude each other: `oneOf` is the same as `anyOf`.
        "oneOf" => {
            value.as_array().is_some_and(|c| c.iter().all(word) || c.iter().all(|c| tagged(c) && walked_whole(c)))
        }
        "anyOf" => value.as_array().is_some_and(|choices| choices.iter().all(walked_whole)),
        "items" => value.is_object() && walked_whole(value),
        "$ref" => {
            let beside = |k: &String| ["$ref", "title", "description", "default", "examples"].contains(&k.as_str());
            value.as_str().is_some_and(|r| r.starts_with("#/$defs/")) && members.keys().all(beside)
        }
        "additionalProperties" => value.is_boolean(),
        "required" | "enum" => value.is_array(),
        "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties" | "maxProperties" => value.is_u64(),
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" => value.is_number(),
        "$schema" => value.as_str().is_some_and(|s| s.contains("2020-12")),
        // A format is an annotation in the default dialect.
        "format" | "const" | "title" | "description" | "default" | "examples" | "deprecated" | "readOnly"
        | "writeOnly" | "$comment" => true,
        other => other.starts_with("x-"),
    })
}

struct Walk<'a> {
    root: &'a Value,
    found: Vec<String>,
    max: usize,
    /// The number of schema nodes that may still be visited, so that recursive schemas terminate.
    steps: usize,
    /// The current nesting of schema nodes, for the stack.
    depth: usize,
}

/// The maximum nesting of values, plus references.
const DEPTH_MAX: usize = 256;

impl Walk<'_> {
    fn say(&mut self, path: &str, problem: String) {
        if self.found.len() < self.max {
            self.found.push(format!("{}: {problem}", at(path)));
        }
    }

    fn check(&mut self, schema: &Value, value: &Value, path: &mut String) {
        if self.found.len() >= self.max || self.steps == 0 || self.depth == DEPTH_MAX {
            return;
        }
        self.steps -= 1;
        self.depth += 1;
        self.check_node(schema, value, path);
        self.depth -= 1;
    }

    fn check_node(&mut self, schema: &Value, value: &Value, path: &mut String) {
        if let Some(target) =
            schema["$ref"].as_str().and_then(|r| r.strip_prefix('#')).and_then(|p| self.root.pointer(p))
        {
            let target = target.clone();
            return self.check(&target, value, path);
        }
        for key in ["anyOf", "oneOf"] {
            if let Some(choices) = schema[key].as_array()
                && !self.any(choices, value)
            {
                return self.choices(choices, value, path);
            }
        }
        if let Some(expected) = wrong_type(schema, value) {
            return self.say(path, format!("expected {expected}, got {}", describe(value)));
        }
        if let Some(allowed) = schema["enum"].as_array()
            && !allowed.contains(value)
        {
            return self.one_of(allowed, value, path);
        }
        if let Some(only) = schema.get("const")
            && only != value
        {
            return self.say(path, format!("must be {only}, got {}", describe(value)));
        }
        match value {
            Value::Object(members) => self.object(schema, members, path),
            Value::Array(items) => self.array(schema, items, path),
            Value::String(text) => {
                self.length(schema, "minLength", "maxLength", text.chars().count(), "characters", path)
            }
            Value::Number(n) => self.number(schema, n, path),
            _ => {}
        }
    }

    fn any(&self, choices: &[Value], value: &Value) -> bool {
        choices.iter().any(|choice| {
            let mut probe =
                Walk { root: self.root, found: Vec::new(), max: 1, steps: self.steps.min(1_000), depth: self.depth };
            probe.check(choice, value, &mut String::new());
            probe.found.is_empty()
        })
    }

    fn choices(&mut self, choices: &[Value], value: &Value, path: &mut String) {
        let words: Vec<Value> = choices
            .iter()
            .flat_map(|c| c.get("const").cloned().into_iter().chain(c["enum"].as_array().cloned().unwrap_or_default()))
            .collect();
        let rest: Vec<&Value> =
            choices.iter().filter(|c| c["type"] != "null" && c.get("const").is_none() && c["enum"].is_null()).collect();
        match rest[..] {
            _ if !words.is_empty() && rest.is_empty() => self.one_of(&words, value, path),
            // `Option<T>`: explained by `T`.
            [one] => {
                let one = one.clone();
                self.check(&one, value, path);
            }
            _ => self.say(path, format!("{} fits none of the {} allowed forms", describe(value), choices.len())),
        }
    }

    fn one_of(&mut self, allowed: &[Value], value: &Value, path: &str) {
        const SHOWN: usize = 12;
        // For an `Option`, null is not listed: it means the same as omitting the member.
        let allowed: Vec<&Value> = allowed.iter().filter(|choice| allowed.len() == 1 || !choice.is_null()).collect();
        let mut list = allowed.iter().take(SHOWN).map(ToString::to_string).collect::<Vec<_>>().join(", ");
        if allowed.len() > SHOWN {
            list.push_str(", …");
        }
        let near = value.as_str().and_then(|v| near_miss(v, allowed.iter().filter_map(|choice| choice.as_str())));
        let hint = near.map(|n| format!("; did you mean {n:?}?")).unwrap_or_default();
        self.say(path, format!("expected one of {list}, got {}{hint}", describe(value)));
    }

    fn object(&mut self, schema: &Value, members: &Map<String, Value>, path: &mut String) {
        let none = Map::new();
        let properties = schema["properties"].as_object().unwrap_or(&none);
        let closed = schema["additionalProperties"] == Value::Bool(false);
        let unknown: Vec<&String> = members.keys().filter(|k| !properties.contains_key(*k)).collect();
        let required = || schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
        for name in required().filter(|name| !members.contains_key(*name)) {
            let kind = properties
                .get(name)
                .map(kind_of)
                .filter(|k| !k.is_empty())
                .map(|k| format!(" ({k})"))
                .unwrap_or_default();
            self.say(path, format!("missing required member `{name}`{kind}"));
        }
        let lacking: Vec<&str> = properties.keys().map(String::as_str).filter(|p| !members.contains_key(*p)).collect();
        for name in unknown {
            let near = near_miss(name, lacking.iter().copied());
            // Unknown members are only invalid if the schema closes the object, or if one is probably a misspelling.
            if closed || near.is_some_and(|n| required().any(|r| r == n)) {
                let hint = near.map(|n| format!(", did you mean `{n}`?")).unwrap_or_default();
                self.say(path, format!("unknown member `{}`{hint}", clip(name, 60)));
            }
        }
        for (name, value) in members {
            if let Some(property) = properties.get(name) {
                let keep = path.len();
                path.push('/');
                path.push_str(&name.replace('~', "~0").replace('/', "~1"));
                self.check(property, value, path);
                path.truncate(keep);
            }
        }
        self.length(schema, "minProperties", "maxProperties", members.len(), "members", path);
    }

    fn array(&mut self, schema: &Value, items: &[Value], path: &mut String) {
        self.length(schema, "minItems", "maxItems", items.len(), "items", path);
        if schema["items"].is_object() {
            for (i, item) in items.iter().enumerate() {
                let keep = path.len();
                path.push_str(&format!("/{i}"));
                self.check(&schema["items"], item, path);
                path.truncate(keep);
            }
        }
    }

    fn length(&mut self, schema: &Value, min: &str, max: &str, len: usize, what: &str, path: &str) {
        if let Some(min) = schema[min].as_u64().filter(|min| (len as u64) < *min) {
            self.say(path, format!("expected at least {min} {what}, got {len}"));
        }
        if let Some(max) = schema[max].as_u64().filter(|max| (len as u64) > *max) {
            self.say(path, format!("expected at most {max} {what}, got {len}"));
        }
    }

    fn number(&mut self, schema: &Value, number: &Number, path: &str) {
        let Some(n) = number.as_f64() else { return };
        let before = self.found.len();
        let bound = |key: &str| schema[key].as_f64();
        for (key, bad, words) in [
            ("minimum", bound("minimum").is_some_and(|b| n < b), "at least"),
            ("maximum", bound("maximum").is_some_and(|b| n > b), "at most"),
            ("exclusiveMinimum", bound("exclusiveMinimum").is_some_and(|b| n <= b), "more than"),
            ("exclusiveMaximum", bound("exclusiveMaximum").is_some_and(|b| n >= b), "less than"),
        ] {
            if bad {
                self.say(path, format!("expected {words} {}, got {n}", schema[key]));
            }
        }
        // A larger float may stand for several integers, and decoders reject it.
        if self.found.len() == before
            && number.is_f64()
            && n.abs() > coerce_integers::EXACT_MAX
            && coerce_integers::wanted(schema)
        {
            let max = coerce_integers::EXACT_MAX;
            self.say(path, format!("expected a whole number from -{max} to {max}, got {number}"));
        }
    }
}

fn at(path: &str) -> &str {
    if path.is_empty() { "arguments" } else { path }
}

fn clip(text: &str, max: usize) -> String {
    match text.char_indices().nth(max) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

fn kind_of(schema: &Value) -> String {
    match &schema["type"] {
        Value::String(kind) => kind.clone(),
        Value::Array(kinds) => {
            kinds.iter().filter_map(Value::as_str).filter(|k| *k != "null").collect::<Vec<_>>().join(" or ")
        }
        _ => String::new(),
    }
}

/// The expected type, if the value's type is wrong.
fn wrong_type(schema: &Value, value: &Value) -> Option<String> {
    let fits = |kind: &str| match kind {
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|f| f.fract() == 0.0),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "null" => value.is_null(),
        _ => true,
    };
    let wrong = match &schema["type"] {
        Value::String(kind) => !fits(kind),
        Value::Array(kinds) => !kinds.iter().filter_map(Value::as_str).any(fits),
        _ => false,
    };
    wrong.then(|| match kind_of(schema) {
        k if k.starts_with(['a', 'e', 'i', 'o', 'u']) => format!("an {k}"),
        k => format!("a {k}"),
    })
}

/// A short description of a value, for users.
fn describe(value: &Value) -> String {
    match value {
        Value::Null => "null".into(),
        Value::Bool(b) => format!("the boolean {b}"),
        Value::Number(n) => format!("the number {n}"),
        Value::String(s) => format!("the string {:?}", clip(s, 40)),
        Value::Array(a) => format!("an array of {}", count(a.len(), "item")),
        Value::Object(o) => format!("an object of {}", count(o.len(), "member")),
    }
}

fn count(n: usize, one: &str) -> String {
    if n == 1 { format!("1 {one}") } else { format!("{n} {one}s") }
}

/// The most similar candidate: at most a third of its letters differ.
pub(crate) fn near_miss<'a>(typed: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    if typed.len() > 128 {
        return None;
    }
    let folded: Vec<char> = typed.chars().flat_map(char::to_lowercase).filter(|c| c.is_alphanumeric()).collect();
    candidates
        .take(20_000)
        .filter(|c| c.len() <= 128)
        .map(|c| {
            (
                distance(
                    &folded,
                    &c.chars().flat_map(char::to_lowercase).filter(|c| c.is_alphanumeric()).collect::<Vec<_>>(),
                ),
                c,
            )
        })
        .filter(|(d, c)| *d <= (c.chars().count().max(folded.len()) / 3).max(1) && *d < folded.len().max(1))
        .min_by_key(|(d, _)| *d)
        .map(|(_, c)| c)
}

fn distance(a: &[char], b: &[char]) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut corner = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let next = (corner + usize::from(x != y)).min(row[j] + 1).min(row[j + 1] + 1);
            corner = std::mem::replace(&mut row[j + 1], next);
        }
    }
    row[b.len()]
}

/// A JSON value without duplicate members: two parsers could disagree on such a text.
struct Strict(Value);

impl<'de> Deserialize<'de> for Strict {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(StrictVisitor).map(Strict)
    }
}

struct StrictVisitor;

impl<'de> Visitor<'de> for StrictVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }
    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }
    fn visit_bool<E>(self, v: bool) -> Result<Value, E> {
        Ok(v.into())
    }
    fn visit_i64<E>(self, v: i64) -> Result<Value, E> {
        Ok(v.into())
    }
    fn visit_u64<E>(self, v: u64) -> Result<Value, E> {
        Ok(v.into())
    }
    fn visit_f64<E>(self, v: f64) -> Result<Value, E> {
        Ok(v.into())
    }
    fn visit_str<E>(self, v: &str) -> Result<Value, E> {
        Ok(v.into())
    }
    fn visit_string<E>(self, v: String) -> Result<Value, E> {
        Ok(v.into())
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(Strict(item)) = seq.next_element()? {
            items.push(item);
        }
        Ok(items.into())
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut members = Map::new();
        while let Some(name) = map.next_key::<String>()? {
            let Strict(value) = map.next_value()?;
            if members.contains_key(&name) {
                return Err(de::Error::custom(format_args!("duplicate member `{}`", clip(&name, 60))));
            }
            members.insert(name, value);
        }
        Ok(members.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn problems_name_path_expectation_and_near_misses() {
        let schema = json!({
            "type": "object", "required": ["city"], "additionalProperties": false,
            "properties": {
                "city": {"type": "string", "minLength": 2}, "days": {"type": ["integer", "null"], "minimum": 1, "maximum": 14},
                "unit": {"type": "string", "enum": ["celsius", "kelvin"]}, "at": {"type": "array", "items": {"$ref": "#/$defs/at"}, "maxItems": 2},
            },
            "$defs": {"at": {"type": "object", "required": ["lat"], "properties": {"lat": {"type": "number"}}}}
        });
        let c = checker("forecast", schema, true, 8).unwrap();
        let cases = [
            (r#"{"city":"Oslo","days":3}"#, vec![]),
            (
                r#"{"citty":"Oslo"}"#,
                vec![
                    "arguments: missing required member `city` (string)",
                    "arguments: unknown member `citty`, did you mean `city`?",
                ],
            ),
            (r#"{"city":"O"}"#, vec!["/city: expected at least 2 characters, got 1"]),
            (
                r#"{"city":7,"days":"3"}"#,
                vec!["/city: expected a string, got the number 7", "/days: expected an integer, got the string \"3\""],
            ),
            (r#"{"city":"Oslo","days":99}"#, vec!["/days: expected at most 14, got 99"]),
            (
                r#"{"city":"Oslo","unit":"celsios"}"#,
                vec![
                    "/unit: expected one of \"celsius\", \"kelvin\", got the string \"celsios\"; did you mean \"celsius\"?",
                ],
            ),
            (r#"{"city":"Oslo","at":[{"lat":1},{}]}"#, vec!["/at/1: missing required member `lat` (number)"]),
            (
                r#"{"city":"Oslo","at":[1,2,3]}"#,
                vec![
                    "/at: expected at most 2 items, got 3",
                    "/at/0: expected an object, got the number 1",
                    "/at/1: expected an object, got the number 2",
                    "/at/2: expected an object, got the number 3",
                ],
            ),
            (r#"[]"#, vec!["arguments: expected an object, got an array of 0 items"]),
            (r#"{"city":"Oslo","city":"Rome"}"#, vec!["duplicate member `city`"]),
        ];
        for (json, want) in cases {
            assert_eq!(c.problems(json, 8), want, "{json}");
        }
        assert_eq!(c.problems(r#"{"city":7,"days":"3"}"#, 1).len(), 1, "the list is bounded");
    }

    #[test]
    fn a_schema_that_refers_to_itself_ends_without_running_out_of_stack() {
        for around in [
            json!({"$ref": "#/$defs/a"}),
            json!({"anyOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/a"}]}),
            json!({"oneOf": [{"$ref": "#/$defs/a"}]}),
        ] {
            let schema = json!({"type": "object", "properties": {"x": {"$ref": "#/$defs/a"}}, "$defs": {"a": around}});
            let c = checker("loops", schema.clone(), false, 8).unwrap();
            for json in [r#"{"x":1.0}"#, r#"{"x":{"x":[1]}}"#] {
                assert!(c.problems(json, 8).len() < 9, "{schema}");
                assert_eq!(c.with_whole_numbers(json), None, "{schema}");
            }
        }
    }

    #[cfg(feature = "validate")]
    #[test]
    fn the_full_validator_finds_what_the_walk_does_not_know() {
        let c = checker("t", json!({"type": "object", "properties": {"a": {"type": "string", "pattern": "^x"}}, "dependentRequired": {"a": ["b"]}}), true, 8).unwrap();
        assert_eq!(c.problems(r#"{"a":"y"}"#, 8).len(), 2);
        assert!(
            checker("t", json!({"type": "object", "properties": {"a": {"$ref": "http://127.0.0.1:1/x"}}}), true, 8)
                .is_err(),
            "nothing is fetched"
        );
    }

    #[test]
    fn a_schema_that_refers_to_itself_ends() {
        let c = checker(
            "t",
            json!({"type": "object", "$defs": {"a": {"$ref": "#/$defs/a"}}, "properties": {"x": {"type": "string"}}}),
            true,
            8,
        )
        .unwrap();
        assert_eq!(c.problems(r#"{"x":1}"#, 8).len(), 1);
    }
}
