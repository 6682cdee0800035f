//! Text of others, made safe to pass on.

use linchpin_kit::{Secret, without_hidden};
use serde_json::Value;
use std::borrow::Cow;

/// Takes control, invisible and bidirectional characters out of all texts, and the key, should the API repeat it.
pub(crate) fn clean(value: &mut Value, key: Option<&str>) {
    match value {
        Value::String(text) => {
            if let Cow::Owned(clean) = without_hidden(text) {
                *text = clean;
            }
            if key.is_some_and(|key| text.contains(key)) {
                *text = without_key(text, key);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| clean(item, key)),
        Value::Object(members) => {
            let odd =
                |name: &str| matches!(without_hidden(name), Cow::Owned(_)) || key.is_some_and(|key| name.contains(key));
            if members.keys().any(|name| odd(name)) {
                let old = std::mem::take(members);
                members
                    .extend(old.into_iter().map(|(name, member)| (without_key(&without_hidden(&name), key), member)));
            }
            members.values_mut().for_each(|member| clean(member, key));
        }
        _ => {}
    }
}

pub(crate) fn without_key(text: &str, key: Option<&str>) -> String {
    match key.filter(|key| !key.is_empty()) {
        Some(key) => text.replace(key, "***"),
        None => text.to_owned(),
    }
}

/// The text of a file, and how many characters of it were left out: control and invisible ones. The key is taken out too. Line
/// breaks stay as they are, so that a file that is written back has those it had.
///
/// # Errors
/// The bytes, when they are not text.
pub fn file_text(bytes: Vec<u8>, key: Option<&Secret>) -> Result<(String, usize), Vec<u8>> {
    let text = String::from_utf8(bytes).map_err(std::string::FromUtf8Error::into_bytes)?;
    if text.contains('\0') {
        return Err(text.into_bytes());
    }
    let clean = text.split("\r\n").map(without_hidden).collect::<Vec<_>>().join("\r\n");
    let left_out = text.chars().count() - clean.chars().count();
    Ok((without_key(&clean, key.map(Secret::reveal)), left_out))
}

/// A value in one line of text, so that it cannot look like two.
#[must_use]
pub fn one_line(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.split_whitespace().collect::<Vec<_>>().join(" "),
        other => other.to_string(),
    }
}

/// Markup of inline text, which search results have: `<strong>`.
const TAGS: [&str; 20] = [
    "a", "b", "br", "code", "div", "em", "i", "li", "mark", "ol", "p", "pre", "small", "span", "strong", "sub", "sup",
    "u", "ul", "wbr",
];

/// The text of a snippet of HTML: without tags of inline text, and with common entities decoded. What only looks like a tag
/// stays.
///
/// ```
/// assert_eq!(linchpin_rest::without_markup("<strong>Rust</strong> &amp; <T> a&lt;b"), "Rust & <T> a<b");
/// ```
#[must_use]
pub fn without_markup(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let mut may_end = true;
    while let Some(at) = rest.find('<') {
        let (before, tag) = rest.split_at(at);
        out.push_str(before);
        let inner = tag[1..].strip_prefix('/').unwrap_or(&tag[1..]);
        let name = &inner[..inner.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(inner.len())];
        let is_tag = TAGS.contains(&name.to_ascii_lowercase().as_str());
        let end = if is_tag && may_end { tag.find('>') } else { None };
        // Once there is no end, there is none for what follows either, which is not searched again.
        may_end &= !is_tag || end.is_some();
        match end {
            Some(end) => {
                let breaks = matches!(name.to_ascii_lowercase().as_str(), "br" | "p" | "div" | "li");
                if breaks && !out.is_empty() && !out.ends_with(char::is_whitespace) {
                    out.push(' ');
                }
                rest = &tag[end + 1..];
            }
            None => {
                out.push('<');
                rest = &tag[1..];
            }
        }
    }
    out.push_str(rest);
    decoded(&out)
}

fn decoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        let (before, entity) = rest.split_at(at);
        out.push_str(before);
        let end = entity.bytes().take(10).position(|byte| byte == b';');
        let c = end.and_then(|end| match &entity[1..end] {
            "amp" => Some('&'),
            "lt" => Some('<'),
            "gt" => Some('>'),
            "quot" => Some('"'),
            "apos" => Some('\''),
            "nbsp" => Some(' '),
            other => {
                let digits = other.strip_prefix('#')?;
                let hex = digits.strip_prefix(['x', 'X']);
                hex.map_or_else(|| digits.parse().ok(), |hex| u32::from_str_radix(hex, 16).ok())
                    .and_then(char::from_u32)
            }
        });
        match (c, end) {
            (Some(c), Some(end)) => {
                out.push(c);
                rest = &entity[end + 1..];
            }
            _ => {
                out.push('&');
                rest = &entity[1..];
            }
        }
    }
    out.push_str(rest);
    // An entity may be one that is not seen.
    without_hidden(&out).into_owned()
}

/// Takes markup out of all texts of a value, see [`without_markup`]: for [`Call::tidy`](crate::Call::tidy).
pub fn tidy_markup(value: &mut Value) {
    match value {
        // An address is not markup, and `&lt=1` in it is not an entity.
        Value::String(text) if text.starts_with("http://") || text.starts_with("https://") => {}
        Value::String(text) if text.contains(['<', '&']) => *text = without_markup(text),
        Value::Array(items) => items.iter_mut().for_each(tidy_markup),
        Value::Object(members) => members.values_mut().for_each(tidy_markup),
        _ => {}
    }
}
