//! Request headers of a client.

use crate::http::headers::encode;
use http::{HeaderMap, HeaderName, HeaderValue};
use linchpin_core::connector::Outgoing;
use linchpin_core::json::{Scanner, Span, read_str};
use linchpin_core::service::{HeaderParam, HeaderParamKind};

/// Inserts the headers that repeat what a message says: its version, and in revisions whose requests are stateless the
/// method, what it is about and the arguments that its tool wants mirrored. Nothing about content types, sessions or
/// credentials.
pub fn insert(headers: &mut HeaderMap, out: &Outgoing) {
    let Some(features) = out.features else { return };
    if features.version_header {
        headers.insert(VERSION, HeaderValue::from_static(features.revision.as_str()));
    }
    let mut insert = |name: HeaderName, text: &str| {
        // Encoded text is visible ASCII, which every header may hold.
        if let Ok(value) = HeaderValue::from_str(text) {
            headers.insert(name, value);
        }
    };
    for (name, value) in &out.mirrored {
        if let Ok(name) = HeaderName::from_bytes(name.as_bytes()) {
            insert(name, value);
        }
    }
    if features.method_headers && !out.method.is_empty() {
        insert(METHOD, &encode(&out.method));
        if let Some(about) = &out.about {
            insert(NAME, &encode(about));
        }
    }
}

const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");

/// The headers for the arguments of a call (a JSON object as text) that its tool wants mirrored: names in lower case and
/// finished values. Arguments that are absent, `null`, or not of the annotated type have none.
pub fn mirror(params: &[HeaderParam], arguments: &str) -> Vec<(Box<str>, String)> {
    params
        .iter()
        .filter_map(|param| {
            let value = find(arguments, &param.path)?.of(arguments);
            let value = match (param.kind, value.as_bytes().first()?) {
                (HeaderParamKind::String, b'"') => encode(&read_str(value)?).into_owned(),
                (HeaderParamKind::Integer, b'-' | b'0'..=b'9') => whole(value)?,
                (HeaderParamKind::Boolean, b't' | b'f') => value.to_owned(),
                _ => return None,
            };
            Some((param.header.clone(), value))
        })
        .collect()
}

/// Where the value at a path of member names is. Of a member that is there twice, the last.
fn find(object: &str, path: &[Box<str>]) -> Option<Span> {
    let (name, rest) = path.split_first()?;
    let mut s = Scanner::new(object, 127);
    let mut found = None;
    if s.peek() != Some(b'{') {
        return None;
    }
    s.object(&mut |s, key| {
        let here = *key.name() == **name;
        let value = s.value()?;
        if here {
            found = Some(value);
        }
        Ok(())
    })
    .ok()?;
    let found = found?;
    if rest.is_empty() {
        return Some(found);
    }
    let inner = find(found.of(object), rest)?;
    Some(Span::new(found.start() + inner.start(), found.start() + inner.end()))
}

/// An integer in decimal digits, `42` for `42.0`.
fn whole(number: &str) -> Option<String> {
    if number.parse::<i64>().is_ok() {
        return Some(number.to_owned());
    }
    let float: f64 = number.parse().ok()?;
    (float.fract() == 0.0 && float.abs() < 9.1e15).then(|| (float as i64).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::headers::header_params;

    #[test]
    fn arguments_are_mirrored_as_their_annotations_say() {
        let schema = r#"{"type":"object","properties":{
            "s":{"type":"string","x-mcp-header":"S"},"n":{"type":"integer","x-mcp-header":"N"},
            "b":{"type":"boolean","x-mcp-header":"B"},
            "o":{"type":"object","properties":{"deep":{"type":"string","x-mcp-header":"Deep"}}},"plain":{"type":"string"}}}"#;
        let params = header_params(schema).unwrap();
        let rows = [
            (r#"{"s":"a b"}"#, "mcp-param-s=a b"),
            (r#"{"s":""}"#, "mcp-param-s="),
            (r#"{"s":" a"}"#, "mcp-param-s==?base64?IGE=?="),
            (r#"{"s":"\u00e9"}"#, "mcp-param-s==?base64?w6k=?="),
            (r#"{"s":"a\nb"}"#, "mcp-param-s==?base64?YQpi?="),
            (r#"{"s":null}"#, ""),
            (r#"{"s":7,"plain":"x"}"#, ""),
            (r#"{"n":42}"#, "mcp-param-n=42"),
            (r#"{"n":42.0}"#, "mcp-param-n=42"),
            (r#"{"n":-3}"#, "mcp-param-n=-3"),
            (r#"{"n":1.5}"#, ""),
            (r#"{"b":false}"#, "mcp-param-b=false"),
            (r#"{ "o" : { "deep" : "x" } }"#, "mcp-param-deep=x"),
            (r#"{"o":[]}"#, ""),
            (r#"[]"#, ""),
        ];
        for (arguments, want) in rows {
            let got: Vec<String> = mirror(&params, arguments).iter().map(|(n, v)| format!("{n}={v}")).collect();
            assert_eq!(got.join(" "), want, "{arguments}");
        }
    }
}
