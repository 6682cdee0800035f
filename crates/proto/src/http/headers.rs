//! Header values: blanks, the base64 sentinel, and the arguments of a tool that are mirrored in `Mcp-Param-*` headers.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::HeaderMap;
use http::header::AsHeaderName;
use linchpin_core::json::{ScanError, Scanner, Span, read_str};
use linchpin_core::service::{HeaderParam, HeaderParamKind};
use serde_json::Value;
use std::borrow::Cow;
use std::fmt::Display;

/// Cuts blanks and tabs off both ends of a header value.
pub fn trim(value: &[u8]) -> &[u8] {
    let blank = |b: &u8| matches!(b, b' ' | b'\t');
    let start = value.iter().position(|b| !blank(b)).unwrap_or(value.len());
    let end = value.iter().rposition(|b| !blank(b)).map_or(start, |at| at + 1);
    &value[start..end]
}

/// Decodes a header value: surrounding whitespace is trimmed, `=?base64?…?=` is decoded, all else is literal.
///
/// # Errors
/// A phrase saying what is wrong: characters that a header must not hold, or a sentinel around something that is not
/// padded standard base64 of UTF-8 text.
pub fn decode(value: &[u8]) -> Result<Cow<'_, str>, &'static str> {
    let value = trim(value);
    if let Some(inner) = sentinel(value) {
        let bytes = STANDARD.decode(inner).map_err(|_| "is not valid base64 inside its =?base64?…?= markers")?;
        return String::from_utf8(bytes)
            .map(Cow::Owned)
            .map_err(|_| "is not UTF-8 text inside its =?base64?…?= markers");
    }
    match std::str::from_utf8(value) {
        Ok(text) if is_plain(value) => Ok(Cow::Borrowed(text)),
        _ => Err("contains characters that are invalid in a header; encode the value as =?base64?…?="),
    }
}

/// Encodes a text for a header: literally if that is safe and unambiguous, else as `=?base64?…?=`.
pub fn encode(text: &str) -> Cow<'_, str> {
    let bytes = text.as_bytes();
    if is_plain(bytes) && trim(bytes).len() == bytes.len() && sentinel(bytes).is_none() {
        return Cow::Borrowed(text);
    }
    Cow::Owned(format!("=?base64?{}?=", STANDARD.encode(bytes)))
}

/// Checks that the single header of this name equals `text` after decoding. Absent and repeated headers are errors.
///
/// # Errors
/// A sentence about the header for the peer, which starts with its name.
pub(crate) fn says<N: AsHeaderName + Display + Copy>(headers: &HeaderMap, header: N, text: &str) -> Result<(), String> {
    let value = single(headers, header)?.ok_or_else(|| format!("{header} is missing"))?;
    // Fast path: compare without decoding.
    if trim(value) == text.as_bytes() && is_plain(text.as_bytes()) && !text.starts_with("=?") {
        return Ok(());
    }
    match decode(value) {
        Ok(said) if said == text => Ok(()),
        Ok(_) => Err(format!("{header} differs from the body")),
        Err(why) => Err(format!("{header} {why}")),
    }
}

/// The only value of a header; `None` when there is none.
///
/// # Errors
/// A sentence for the peer if the header is repeated.
// A `HeaderName` is found three times as fast as a text, which is parsed first.
pub fn single<N: AsHeaderName + Display + Copy>(headers: &HeaderMap, header: N) -> Result<Option<&[u8]>, String> {
    if headers.keys_len() == headers.len() {
        return Ok(headers.get(header).map(|value| value.as_bytes()));
    }
    let mut values = headers.get_all(header).iter();
    match (values.next(), values.next()) {
        (value, None) => Ok(value.map(|v| v.as_bytes())),
        _ => Err(format!("{header} is repeated")),
    }
}

/// The base64 text of a value that has exactly the markers of a sentinel.
fn sentinel(value: &[u8]) -> Option<&[u8]> {
    value.strip_prefix(b"=?base64?")?.strip_suffix(b"?=")
}

/// Only visible ASCII, blanks and tabs.
fn is_plain(value: &[u8]) -> bool {
    value.iter().all(|b| matches!(b, b' '..=b'~' | b'\t'))
}

/// Finds the `x-mcp-header` annotations in a tool's input schema (JSON text).
///
/// # Errors
/// A sentence naming the first annotation that breaks the rules: not a header token, the same name twice (without regard
/// to case), on a value that is not a string, an integer or a boolean (`null` beside it is allowed), or at a place that
/// is not reached from the root through `properties` alone.
pub fn header_params(schema_json: &str) -> Result<Vec<HeaderParam>, String> {
    if !schema_json.contains(ANNOTATION) && !schema_json.contains('\\') {
        return Ok(Vec::new());
    }
    let schema: Value = serde_json::from_str(schema_json).map_err(|e| format!("the input schema is not JSON: {e}"))?;
    let mut found = Vec::new();
    annotations(&schema, &mut Vec::new(), true, &mut found)?;
    Ok(found)
}

fn annotations<'s>(
    schema: &'s Value,
    path: &mut Vec<&'s str>,
    reachable: bool,
    found: &mut Vec<HeaderParam>,
) -> Result<(), String> {
    let members = match schema {
        Value::Object(members) => members,
        Value::Array(schemas) => return schemas.iter().try_for_each(|schema| annotations(schema, path, false, found)),
        _ => return Ok(()),
    };
    if let Some(annotation) = members.get(ANNOTATION) {
        let param = annotation_at(annotation, members.get("type"), path, reachable)?;
        if found.iter().any(|other| other.header == param.header) {
            return Err(format!("two arguments are mirrored in the header {}", param.header));
        }
        found.push(param);
    }
    for (keyword, value) in members {
        match (keyword.as_str(), value) {
            // Values, not schemas: they contain no annotations.
            (ANNOTATION | "const" | "default" | "enum" | "examples", _) => {}
            ("properties", Value::Object(properties)) => {
                for (name, property) in properties {
                    path.push(name);
                    annotations(property, path, reachable, found)?;
                    path.pop();
                }
            }
            // Maps from names to schemas: the names are not keywords.
            ("patternProperties" | "$defs" | "definitions" | "dependentSchemas", Value::Object(schemas)) => {
                schemas.values().try_for_each(|schema| annotations(schema, path, false, found))?;
            }
            _ => annotations(value, path, false, found)?,
        }
    }
    Ok(())
}

fn annotation_at(
    annotation: &Value,
    kind: Option<&Value>,
    path: &[&str],
    reachable: bool,
) -> Result<HeaderParam, String> {
    let at = if path.is_empty() { "the root".to_owned() } else { format!("`{}`", path.join(".")) };
    if !reachable || path.is_empty() {
        return Err(format!("x-mcp-header at or below {at} is not on an argument reached through `properties` alone"));
    }
    let token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    let name = match annotation {
        Value::String(name) if !name.is_empty() && name.bytes().all(token) => name,
        _ => return Err(format!("x-mcp-header on {at} must be a header name: letters, digits and !#$%&'*+-.^_`|~")),
    };
    let kind =
        kind_of(kind).ok_or_else(|| format!("x-mcp-header on {at} needs the type string, integer or boolean"))?;
    let header = format!("mcp-param-{}", name.to_ascii_lowercase()).into();
    Ok(HeaderParam { header, path: path.iter().map(|name| (*name).into()).collect(), kind })
}

fn kind_of(schema_type: Option<&Value>) -> Option<HeaderParamKind> {
    let of_name = |name: &Value| match name.as_str()? {
        "string" => Some(HeaderParamKind::String),
        "integer" => Some(HeaderParamKind::Integer),
        "boolean" => Some(HeaderParamKind::Boolean),
        _ => None,
    };
    match schema_type? {
        Value::Array(names) => {
            let mut kinds = names.iter().filter(|name| *name != "null");
            let kind = of_name(kinds.next()?);
            if kinds.next().is_some() { None } else { kind }
        }
        name => of_name(name),
    }
}

/// Compares the `Mcp-Param-*` headers of a call with its arguments (valid JSON text).
///
/// Values are compared after decoding, whole numbers by their value (`42.0` is `42`). An argument that is absent or
/// `null` must have no header, any other must have exactly one. Headers that no annotation names are not looked at.
///
/// # Errors
/// A sentence for the peer that names the first header that is wrong.
pub fn check_params(params: &[HeaderParam], arguments: Option<&str>, headers: &HeaderMap) -> Result<(), String> {
    if params.is_empty() {
        return Ok(());
    }
    let text = arguments.unwrap_or("{}");
    let mut found = vec![None; params.len()];
    let mut scanner = Scanner::new(text, 127);
    if scanner.peek() == Some(b'{') {
        let all: Vec<usize> = (0..params.len()).collect();
        mirrored(&mut scanner, params, &all, 0, &mut found)
            .map_err(|e| format!("`arguments` cannot be compared with the headers: {}", e.what()))?;
    }
    params
        .iter()
        .zip(found)
        .try_for_each(|(param, span)| check_param(param, span.map_or("null", |s| s.of(text)), headers))
}

/// Walks the members of one object and notes where the values of `params` are. Only the parameters listed in `below`
/// have paths that lead here; they have `depth` steps behind them.
fn mirrored(
    s: &mut Scanner<'_>,
    params: &[HeaderParam],
    below: &[usize],
    depth: usize,
    found: &mut [Option<Span>],
) -> Result<(), ScanError> {
    let mut seen = Vec::new();
    s.object(&mut |s, key| {
        let name = key.name();
        let leads = |p: &usize| params[*p].path.get(depth).is_some_and(|step| **step == *name);
        let here: Vec<usize> = below.iter().copied().filter(leads).collect();
        let Some(first) = here.first() else { return s.value().map(drop) };
        // Parsers differ in which of two duplicate members counts, so duplicates are refused.
        if seen.contains(first) {
            return s.value().and_then(|span| Err(ScanError::new(span.start(), "duplicate key")));
        }
        seen.push(*first);
        match here.iter().find(|&&p| params[p].path.len() == depth + 1) {
            Some(&leaf) => found[leaf] = Some(s.value()?),
            None if s.peek() == Some(b'{') => mirrored(s, params, &here, depth + 1, found)?,
            None => drop(s.value()?),
        }
        Ok(())
    })
    .map(drop)
}

fn check_param(param: &HeaderParam, value: &str, headers: &HeaderMap) -> Result<(), String> {
    let header = &*param.header;
    let said = match (value, single(headers, header)?) {
        ("null", None) => return Ok(()),
        ("null", Some(_)) => {
            return Err(format!("unexpected header {header}: the argument `{}` is missing", param.path.join(".")));
        }
        (_, None) => {
            return Err(format!("{header} is missing; it must repeat the argument `{}`", param.path.join(".")));
        }
        (_, Some(said)) => decode(said).map_err(|why| format!("{header} {why}"))?,
    };
    let same = match value.as_bytes()[0] {
        b'"' => read_str(value).is_some_and(|text| text == said),
        b't' | b'f' => value == said,
        b'{' | b'[' => false,
        // A number. One that is not whole does not fit the schema; its text must agree all the same.
        _ => match whole_number(value) {
            Some(n) if n.unsigned_abs() > SAFE_INTEGER => {
                return Err(format!("{header} mirrors a number beyond 2^53-1, which headers cannot carry"));
            }
            Some(n) => whole_number(&said) == Some(n),
            None => value == said,
        },
    };
    if same { Ok(()) } else { Err(format!("{header} differs from the argument `{}`", param.path.join("."))) }
}

/// The value of a JSON number that is whole, however it is written. `None` for everything else. Exact up to 10^17,
/// beyond which the result is only known to be too large.
fn whole_number(text: &str) -> Option<i64> {
    let (negative, rest) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
    let (mantissa, exponent) = match rest.split_once(['e', 'E']) {
        None => (rest, 0),
        Some((mantissa, exponent)) => {
            let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
            if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
                return None;
            }
            // An exponent too long for its type is as good as the largest.
            let size = digits.parse::<i64>().unwrap_or(i64::MAX / 4).min(i64::MAX / 4);
            (mantissa, if exponent.starts_with('-') { -size } else { size })
        }
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, "0"));
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    if !digits(whole) || !digits(fraction) {
        return None;
    }
    let digits = [whole, fraction].concat();
    let significant = digits.trim_end_matches('0');
    let exponent = exponent - fraction.len() as i64 + (digits.len() - significant.len()) as i64;
    let significant = significant.trim_start_matches('0');
    if significant.is_empty() {
        return Some(0);
    }
    if exponent < 0 {
        return None;
    }
    let size = if significant.len() as i64 + exponent > 17 {
        TOO_LARGE
    } else {
        significant.parse::<i64>().ok()? * 10_i64.pow(exponent as u32)
    };
    Some(if negative { -size } else { size })
}

const ANNOTATION: &str = "x-mcp-header";
const SAFE_INTEGER: u64 = (1 << 53) - 1;
const TOO_LARGE: i64 = i64::MAX;

#[cfg(test)]
mod tests {
    use super::*;
    use http::{HeaderName, HeaderValue};
    use proptest::prelude::*;

    type Headers<'a> = &'a [(&'a str, &'a str)];

    fn map(headers: Headers<'_>) -> HeaderMap {
        let pair = |(name, value): &(&str, &str)| {
            (HeaderName::try_from(*name).unwrap(), HeaderValue::from_bytes(value.as_bytes()).unwrap())
        };
        headers.iter().map(pair).fold(HeaderMap::new(), |mut map, (name, value)| {
            map.append(name, value);
            map
        })
    }

    #[test]
    fn values_are_decoded_exactly_as_the_sentinel_rules_say() {
        let cases: &[(&str, Result<&str, &str>)] = &[
            ("us-west1", Ok("us-west1")),
            ("  us\twest1\t ", Ok("us\twest1")),
            ("", Ok("")),
            ("=?base64?SGVsbG8=?=", Ok("Hello")),
            (" =?base64?SGVsbG8=?= ", Ok("Hello")),
            ("=?base64??=", Ok("")),
            ("=?base64?SGVsbG8sIOS4lueVjA==?=", Ok("Hello, 世界")),
            ("=?base64?IHBhZGRlZCA=?=", Ok(" padded ")),
            ("=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?=", Ok("=?base64?literal?=")),
            // Half a sentinel, or one in other letters, is literal.
            ("SGVsbG8=", Ok("SGVsbG8=")),
            ("=?base64?SGVsbG8=", Ok("=?base64?SGVsbG8=")),
            ("SGVsbG8=?=", Ok("SGVsbG8=?=")),
            ("=?base64?=", Ok("=?base64?=")),
            ("=?BASE64?SGVsbG8=?=", Ok("=?BASE64?SGVsbG8=?=")),
            // A whole sentinel around something else is an error.
            ("=?base64?SGVsbG8?=", Err("base64")),
            ("=?base64?SGVs!!!bG8=?=", Err("base64")),
            ("=?base64?SGVsbG9=?=", Err("base64")),
            ("=?base64?SGVs bG8=?=", Err("base64")),
            ("=?base64?_-8=?=", Err("base64")),
            ("=?base64?/w==?=", Err("UTF-8")),
            ("é", Err("characters")),
        ];
        for (value, want) in cases {
            match (decode(value.as_bytes()), want) {
                (Ok(got), Ok(want)) => assert_eq!(got, *want, "{value:?}"),
                (Err(got), Err(want)) => assert!(got.contains(want), "{value:?}: {got}"),
                (got, _) => panic!("{value:?}: {got:?}"),
            }
        }
    }

    #[test]
    fn values_are_encoded_only_when_they_must_be() {
        let cases = [
            ("us-west1", "us-west1"),
            ("", ""),
            ("a b", "a b"),
            ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
            (" padded ", "=?base64?IHBhZGRlZCA=?="),
            ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
            ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
            ("=?base64?=", "=?base64?="),
            ("\u{7f}", "=?base64?fw==?="),
        ];
        for (text, want) in cases {
            assert_eq!(encode(text), want, "{text:?}");
        }
    }

    #[test]
    fn a_header_says_a_text_only_alone_and_decoded() {
        let long = "=?base64?SGVsbG8=?=";
        let cases: &[(Headers<'_>, &str, &str)] = &[
            (&[("mcp-name", "Hello")], "Hello", ""),
            (&[("MCP-NAME", " Hello\t")], "Hello", ""),
            (&[("mcp-name", long)], "Hello", ""),
            (&[("mcp-name", long)], long, "differs"),
            (&[("mcp-name", "hello")], "Hello", "differs"),
            (&[("mcp-name", "é")], "é", "characters"),
            (&[("mcp-name", "Hello"), ("mcp-name", "Hello")], "Hello", "is repeated"),
            (&[], "Hello", "missing"),
        ];
        for (headers, text, want) in cases {
            let got = says(&map(headers), "mcp-name", text).err().unwrap_or_default();
            assert!(if want.is_empty() { got.is_empty() } else { got.contains(want) }, "{headers:?} {text}: {got}");
        }
    }

    fn schema(properties: &str) -> String {
        format!(r#"{{"type":"object","properties":{{{properties}}}}}"#)
    }

    #[test]
    fn annotations_are_found_on_arguments_and_below_them() {
        let text = schema(
            r#""region":{"type":"string","x-mcp-header":"Region"},
               "n":{"type":["integer","null"],"x-mcp-header":"N"},
               "deep":{"type":"object","properties":{"ok":{"type":"boolean","x-mcp-header":"Deep-Ok"},"x-mcp-header":{"type":"string"}}},
               "plain":{"type":"string","default":{"x-mcp-header":"no"},"examples":[{"x-mcp-header":1}]}"#,
        );
        let got: Vec<_> =
            header_params(&text).unwrap().into_iter().map(|p| (p.header, p.path.join("."), p.kind)).collect();
        let want = [
            ("mcp-param-deep-ok".into(), "deep.ok".into(), HeaderParamKind::Boolean),
            ("mcp-param-n".into(), "n".into(), HeaderParamKind::Integer),
            ("mcp-param-region".into(), "region".into(), HeaderParamKind::String),
        ];
        let mut sorted = got;
        sorted.sort_by(|a, b| a.0.cmp(&b.0));
        assert_eq!(sorted, want);
        assert_eq!(header_params(r#"{"type":"object"}"#), Ok(Vec::new()));
        assert_eq!(header_params(&schema(r#""a":{"type":"string","x-mcp-\u0068eader":"A"}"#)).unwrap().len(), 1);
    }

    #[test]
    fn annotations_that_break_a_rule_are_refused_with_the_reason() {
        let string = r#"{"type":"string","x-mcp-header":"A"}"#;
        let on = |annotation: &str| schema(&format!(r#""a":{{"type":"string","x-mcp-header":{annotation}}}"#));
        let of = |kind: &str| schema(&format!(r#""a":{{"type":{kind},"x-mcp-header":"A"}}"#));
        let below =
            |keyword: &str| format!(r#"{{"type":"object","{keyword}":{}}}"#, schema(&format!(r#""a":{string}"#)));
        let mut cases = vec![
            (schema(&format!(r#""a":{string},"b":{string}"#)), "two arguments"),
            (schema(&format!(r#""a":{string},"b":{{"type":"string","x-mcp-header":"a"}}"#)), "two arguments"),
            (schema(r#""a":{"x-mcp-header":"A"}"#), "needs the type"),
            (r#"{"type":"string","x-mcp-header":"A"}"#.to_owned(), "`properties` alone"),
            (schema(&format!(r#""a":{{"type":"array","items":{string}}}"#)), "`properties` alone"),
            (schema(&format!(r#""a":{{"anyOf":[{string},{{"type":"null"}}]}}"#)), "`properties` alone"),
            (
                format!(r##"{{"properties":{{"a":{{"$ref":"#/$defs/a"}}}},"$defs":{{"a":{string}}}}}"##),
                "`properties` alone",
            ),
            (format!(r#"{{"patternProperties":{{"^a":{string}}}}}"#), "`properties` alone"),
            (r#"{"x-mcp-header":"#.to_owned(), "not JSON"),
        ];
        cases.extend(
            ["\"\"", "\"a b\"", "\"a:b\"", "\"é\"", "\"a\\nb\"", "\"a\\u0000\"", "1", "null", "{}"]
                .map(|a| (on(a), "must be a header name")),
        );
        cases.extend(
            ["\"number\"", "\"object\"", "\"array\"", "\"null\"", "[\"string\",\"integer\"]", "[]", "1"]
                .map(|k| (of(k), "needs the type")),
        );
        cases.extend(
            ["not", "if", "then", "else", "additionalProperties", "contains", "items"]
                .map(|k| (below(k), "`properties` alone")),
        );
        for (text, want) in cases {
            let got = header_params(&text).unwrap_err();
            assert!(got.contains(want), "{text}: {got}");
        }
    }

    #[test]
    fn mirrored_arguments_are_held_against_their_headers() {
        let params = header_params(&schema(
            r#""s":{"type":"string","x-mcp-header":"S"},"i":{"type":"integer","x-mcp-header":"I"},"o":{"type":"object","properties":{"b":{"type":"boolean","x-mcp-header":"B"}}}"#,
        ))
        .unwrap();
        // Arguments; headers after `mcp-param-`; what the error says, or nothing.
        let cases: &[(&str, Headers<'_>, &str)] = &[
            (r#"{}"#, &[], ""),
            (r#"{"s":null,"o":null}"#, &[], ""),
            (r#"{"s":"Hello"}"#, &[("S", "Hello")], ""),
            (r#"{"s":"Hello"}"#, &[("s", "=?base64?SGVsbG8=?=")], ""),
            (r#"{"s":"He\u006clo"}"#, &[("s", "Hello")], ""),
            (r#"{"s":""}"#, &[("s", "")], ""),
            (r#"{"s":"SGVsbG8="}"#, &[("s", "SGVsbG8=")], ""),
            (r#"{"s":"=?base64?SGVsbG8="}"#, &[("s", "=?base64?SGVsbG8=")], ""),
            (r#"{"s":"Hello"}"#, &[("s", "=?base64?SGVsbG8?=")], "not valid base64"),
            (r#"{"s":"Hello"}"#, &[("s", "=?base64?SGVs!!!bG8=?=")], "not valid base64"),
            (r#"{"s":"Hello"}"#, &[("s", "hello")], "differs"),
            (r#"{"s":"Hello"}"#, &[], "mcp-param-s is missing"),
            (r#"{"s":"Hello"}"#, &[("s", "Hello"), ("s", "Hello")], "is repeated"),
            (r#"{"s":"é"}"#, &[("s", "é")], "characters"),
            (r#"{}"#, &[("s", "Hello")], "the argument `s` is missing"),
            (r#"{"s":null}"#, &[("s", "null")], "the argument `s` is missing"),
            (r#"{"s":"Hello","s":"Bye"}"#, &[("s", "Hello")], "duplicate key"),
            (r#"{"o":{"b":true},"o":{}}"#, &[("b", "true")], "duplicate key"),
            (r#"{"x":1,"x":2,"o":{"y":1,"y":2}}"#, &[], ""),
            (r#"{"s":"Hello"}"#, &[("s", "Hello"), ("other", "x")], ""),
            (r#"{"i":42}"#, &[("i", "42")], ""),
            (r#"{"i":42.0}"#, &[("i", "42")], ""),
            (r#"{"i":42}"#, &[("i", "42.0")], ""),
            (r#"{"i":4.2e1}"#, &[("i", " 42 ")], ""),
            (r#"{"i":-0}"#, &[("i", "0")], ""),
            (r#"{"i":9007199254740991}"#, &[("i", "9007199254740991")], ""),
            (r#"{"i":9007199254740992}"#, &[("i", "9007199254740992")], "beyond 2^53-1"),
            (r#"{"i":-1e400}"#, &[("i", "-1e400")], "beyond 2^53-1"),
            (r#"{"i":42}"#, &[("i", "42.5")], "differs"),
            (r#"{"i":42}"#, &[("i", "+42")], "differs"),
            (r#"{"i":42}"#, &[("i", "0x2a")], "differs"),
            (r#"{"i":1.5}"#, &[("i", "1.5")], ""),
            (r#"{"i":"42"}"#, &[("i", "42")], ""),
            (r#"{"i":[42]}"#, &[("i", "[42]")], "differs"),
            (r#"{"o":{"b":true}}"#, &[("b", "true")], ""),
            (r#"{"o":{"b":true}}"#, &[("b", "True")], "differs"),
            (r#"{"o":{"b":false}}"#, &[("b", "true")], "differs from the argument `o.b`"),
            (r#"{"o":{"b":false}}"#, &[], "mcp-param-b is missing"),
            (r#"{"o":[{"b":false}],"b":true}"#, &[], ""),
        ];
        for (arguments, headers, want) in cases {
            let headers: Vec<_> = headers.iter().map(|(name, value)| (format!("Mcp-Param-{name}"), *value)).collect();
            let headers: Vec<_> = headers.iter().map(|(name, value)| (name.as_str(), *value)).collect();
            let got = check_params(&params, Some(arguments), &map(&headers)).err().unwrap_or_default();
            assert!(
                if want.is_empty() { got.is_empty() } else { got.contains(want) },
                "{arguments} {headers:?}: {got}"
            );
        }
        assert_eq!(check_params(&params, None, &HeaderMap::new()), Ok(()));
        assert_eq!(check_params(&[], Some("{}"), &map(&[("Mcp-Param-S", "x")])), Ok(()));
    }

    proptest! {
        #[test]
        fn what_is_encoded_is_a_legal_header_that_decodes_to_the_same(text in prop_oneof![".*", "[ -~\t]*", "=\\?base64\\?[A-Za-z=?]*\\?="]) {
            let encoded = encode(&text);
            prop_assert!(HeaderValue::from_str(&encoded).is_ok());
            prop_assert_eq!(decode(encoded.as_bytes()).unwrap(), text.as_str());
            prop_assert_eq!(says(&map(&[("mcp-name", &encoded)]), "mcp-name", &text), Ok(()));
        }

        #[test]
        fn whole_numbers_keep_their_value(n in -SAFE_INTEGER_I..=SAFE_INTEGER_I, zeros in 0_usize..20) {
            let zeros = "0".repeat(zeros);
            for text in [n.to_string(), format!("{n}.0{zeros}"), format!("{n}{zeros}e-{}", zeros.len()), format!("{n}e0{zeros}")] {
                prop_assert_eq!(whole_number(&text), Some(n), "{}", text);
            }
            prop_assert_eq!(whole_number(&format!("{n}.{zeros}1")), None);
        }

        #[test]
        fn any_text_is_a_number_or_not_without_panic(text in "[-+0-9.eE]{0,40}") {
            whole_number(&text);
        }
    }

    const SAFE_INTEGER_I: i64 = SAFE_INTEGER as i64;
}
