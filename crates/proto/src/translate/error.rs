//! Errors of an upstream, for the client.

use super::result::member;
use crate::era;
use crate::splice::Splice;
use bytes::Bytes;
use linchpin_core::json::Span;
use linchpin_core::message::{Message, Request};
use linchpin_core::{Features, Id, Method, Reply};
use linchpin_types::error::code;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;

/// The message of the error for capabilities that a request needs and its client did not declare, which names them:
/// `elicitation`, or `elicitation.url` if it is for one of its members.
///
/// ```
/// use linchpin_proto::translate::error::missing_capabilities;
///
/// let links = serde_json::json!({ "url": {} });
/// assert!(missing_capabilities([("elicitation", &links)]).ends_with("needs: elicitation.url"));
/// ```
pub fn missing_capabilities<'a>(needed: impl IntoIterator<Item = (&'a str, &'a Value)>) -> String {
    let mut names = Vec::new();
    for (name, settings) in needed {
        match settings.as_object().filter(|members| !members.is_empty()) {
            Some(members) => names.extend(members.keys().map(|member| format!("{name}.{member}"))),
            None => names.push(name.to_owned()),
        }
    }
    let names: String = names.join(", ").chars().filter(|c| !c.is_control()).take(200).collect();
    format!("the client did not declare a capability that this request needs: {names}")
}

/// An error object as far as a bridge looks at it.
#[derive(Debug, Deserialize)]
pub struct Seen<'a> {
    /// The code; that of an internal error if there is none.
    #[serde(default = "internal")]
    pub code: i32,
    /// The message.
    #[serde(borrow, default)]
    pub message: Cow<'a, str>,
    /// The details as JSON text.
    #[serde(borrow, default)]
    pub data: Option<&'a RawValue>,
}

fn internal() -> i32 {
    code::INTERNAL_ERROR
}

impl<'a> Seen<'a> {
    /// Reads an error object.
    pub fn read(json: &'a str) -> Seen<'a> {
        serde_json::from_str(json).unwrap_or(Seen {
            code: code::INTERNAL_ERROR,
            message: Cow::Borrowed("the server sent an error that cannot be read"),
            data: None,
        })
    }
}

/// The error as it came, byte for byte.
pub fn same(id: &Id, message: &Message, error: Span) -> Reply {
    let text = message.text(error);
    let code = Seen::read(text).code;
    Reply::with_error(id, code, part(message, error))
}

/// The error for a client of another era: its codes, where the two eras have different ones.
pub fn translated(request: &Request, message: &Message, error: Span) -> Reply {
    let seen = Seen::read(message.text(error));
    let to = request.caller.features();
    let Some(code) = translated_code(request, &seen, to) else { return same(&request.id, message, error) };
    let kept;
    let data = match seen.data.map(RawValue::get) {
        // The code that the client's revision does not have is in the details, for people who look.
        data if code == code::INTERNAL_ERROR => {
            kept = with_code(seen.code, data);
            Some(kept.as_str())
        }
        data => data,
    };
    Reply::error(Some(&request.id), code, &seen.message, data)
}

/// Details with a code: among their members, or beside what is no object or has a `code` of its own.
fn with_code(code: i32, data: Option<&str>) -> String {
    let Some(data) = data else { return format!("{{\"code\":{code}}}") };
    let all = Span::new(0, data.len());
    if !data.starts_with('{') || member(data, all, "code").is_some() {
        return format!("{{\"code\":{code},\"data\":{data}}}");
    }
    let mut splice = Splice::new(data, all);
    splice.add(all, format!("\"code\":{code}").into_bytes());
    let mut out = Vec::with_capacity(data.len() + 16);
    splice.write(&mut out);
    String::from_utf8(out).unwrap_or_default()
}

/// The code in the client's revision; `None` if it is the same.
fn translated_code(request: &Request, seen: &Seen<'_>, to: &Features) -> Option<i32> {
    if seen.code == code::RESOURCE_NOT_FOUND && to.resource_not_found != seen.code {
        return Some(to.resource_not_found);
    }
    if seen.code == code::INVALID_PARAMS
        && to.resource_not_found != seen.code
        && request.known() == Some(Method::ResourcesRead)
        && names(request, seen).is_some_and(|same| same)
    {
        return Some(to.resource_not_found);
    }
    let unknown = match to.has_sessions {
        true => era::modern_error(seen.code),
        // The range that the stateless era reserves for itself.
        false => (-32_099..=-32_020).contains(&seen.code) && !era::modern_error(seen.code),
    };
    unknown.then_some(code::INTERNAL_ERROR)
}

/// Whether `data.uri` is the URI that was asked for.
fn names(request: &Request, seen: &Seen<'_>) -> Option<bool> {
    #[derive(Deserialize)]
    struct Data<'a> {
        #[serde(borrow)]
        uri: Cow<'a, str>,
    }
    let data: Data<'_> = serde_json::from_str(seen.data?.get()).ok()?;
    Some(request.string(request.params.uri)? == data.uri)
}

/// A part of a message, without copying it.
pub(crate) fn part(message: &Message, span: Span) -> Bytes {
    message.frame().as_bytes().slice(span.range())
}
