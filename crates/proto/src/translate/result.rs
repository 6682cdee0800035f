//! Results of an upstream, for the client.

use super::downgrade::downgraded;
use super::error::{missing_capabilities, part};
use crate::splice::Splice;
use linchpin_core::json::{Scanner, Span};
use linchpin_core::message::{Message, Request, ResultMembers};
use linchpin_core::server_request::REQUIRED_META;
use linchpin_core::{Id, Method, Reply, ReplyKind};
use linchpin_types::error::code;
use linchpin_types::meta::key;
use serde::de::IgnoredAny;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// The result as it came, byte for byte.
pub fn same(id: &Id, message: &Message, result: Span) -> Reply {
    Reply::with_result(id, part(message, result)).with_kind(kind(message))
}

/// The kind of a result.
pub fn kind(message: &Message) -> ReplyKind {
    let members = message.result();
    let is = |span: Option<Span>, text: &str| span.is_some_and(|span| message.text(span) == text);
    if is(members.result_type, "\"input_required\"") {
        return ReplyKind::InputRequired;
    }
    if is(members.is_error, "true") { ReplyKind::ToolError } else { ReplyKind::Complete }
}

/// The last message of a `subscriptions/listen` stream, with the id of the client's request.
pub fn listened(id: &Id, message: &Message, result: Span) -> Reply {
    let named = message.result().meta.and_then(|meta| member(message.frame(), meta, key::SUBSCRIPTION_ID));
    let Some(named) = named else { return same(id, message, result) };
    let mut splice = Splice::new(message.frame(), result);
    splice.replace(named, id.as_bytes().to_vec());
    spliced(id, splice, kind(message))
}

/// The result of a stateless upstream for the client of a session: without the members that its era does not have, and with
/// content that its revision has.
pub fn to_session(request: &Request, message: &Message, result: Span) -> Reply {
    if let Some(refused) = no_object(request, message, result) {
        return refused;
    }
    let (features, members) = (request.caller.features(), message.result());
    let mut splice = Splice::new(message.frame(), result);
    for cut in [members.result_type, members.ttl_ms, members.cache_scope].into_iter().flatten() {
        splice.remove(cut);
    }
    let structured = members
        .structured_content
        .filter(|span| !features.structured || (!features.structured_any && !message.text(*span).starts_with('{')));
    if let Some(span) = structured {
        splice.remove(span);
        // Its text, unless the server has given one.
        let empty = members.content.is_none_or(|content| is_empty(message.text(content)));
        if empty && message.text(span) != "null" {
            members.content.into_iter().for_each(|content| splice.remove(content));
            let text = json!([{ "type": "text", "text": message.text(span) }]);
            splice.add(result, format!("\"content\":{text}").into_bytes());
        }
    }
    let reply = spliced(&request.id, splice, kind(message));
    downgraded(request, reply)
}

/// The error for a result that is no object, which no revision has: nothing can be added to it or removed.
fn no_object(request: &Request, message: &Message, result: Span) -> Option<Reply> {
    let why = "the upstream's result is not an object";
    let is_object = message.text(result).starts_with('{');
    (!is_object).then(|| Reply::error(Some(&request.id), code::INTERNAL_ERROR, why, None))
}

fn is_empty(array: &str) -> bool {
    array.bytes().all(|byte| matches!(byte, b'[' | b']' | b' ' | b'\t' | b'\n' | b'\r'))
}

/// The result of an upstream with sessions for a client whose requests are stateless. `server` is the upstream's `serverInfo`
/// as JSON text.
pub fn to_stateless(request: &Request, message: &Message, result: Span, server: Option<&str>) -> Reply {
    if let Some(refused) = no_object(request, message, result).or_else(|| lacking(request, message)) {
        return refused;
    }
    let (features, members) = (request.caller.features(), message.result());
    let mut added = String::new();
    if features.result_types && members.result_type.is_none() {
        added.push_str("\"resultType\":\"complete\",");
    }
    if features.cache_hints && is_cacheable(request.known()) {
        if members.ttl_ms.is_none() {
            added.push_str("\"ttlMs\":0,");
        }
        if members.cache_scope.is_none() {
            added.push_str("\"cacheScope\":\"private\",");
        }
    }
    let mut splice = Splice::new(message.frame(), result);
    if let Some(server) = server.filter(|_| features.server_info_in_results) {
        let stamp = format!("\"{}\":{server}", key::SERVER_INFO);
        match members.meta.filter(|meta| message.text(*meta).starts_with('{')) {
            None => added.push_str(&format!("\"_meta\":{{{stamp}}},")),
            Some(meta) if member(message.frame(), meta, key::SERVER_INFO).is_none() => {
                splice.add(meta, stamp.into_bytes());
            }
            Some(_) => {}
        }
    }
    added.pop();
    splice.add(result, added.into_bytes());
    if !features.tool_execution && request.known() == Some(Method::ToolsList) {
        remove_execution(&mut splice, message.frame(), result);
    }
    spliced(&request.id, splice, kind(message))
}

/// Removes `execution` from the tools of a list: whether a call becomes a task is not the client's to decide in this era.
fn remove_execution(splice: &mut Splice<'_>, text: &str, result: Span) {
    let Some(tools) = member(text, result, "tools").filter(|tools| tools.of(text).contains("\"execution\"")) else {
        return;
    };
    let mut scanner = Scanner::new(tools.of(text), 127);
    // What cannot be read is passed on as it came.
    let _ = scanner.array(&mut |s| {
        let tool = s.value()?;
        let tool = Span::new(tools.start() + tool.start(), tools.start() + tool.end());
        if let Some(execution) = member(text, tool, "execution") {
            splice.remove(execution);
        }
        Ok(())
    });
}

/// The error of stateless revisions for what the client lacks, if the upstream's tool says that it failed for that.
///
/// The client's own declaration decides: a bridge declares less where many share a connection.
fn lacking(request: &Request, message: &Message) -> Option<Reply> {
    let meta = message.result().meta.filter(|_| kind(message) == ReplyKind::ToolError)?;
    let required = message.text(member(message.frame(), meta, REQUIRED_META)?);
    let needed: Map<String, Value> = serde_json::from_str(required).ok()?;
    let declared = object(request.caller.capabilities_json());
    let lacks = |(name, settings): (&String, &Value)| match declared.get(name) {
        None => true,
        Some(has) => settings.as_object().is_some_and(|all| all.keys().any(|key| has.get(key).is_none())),
    };
    if !needed.iter().any(lacks) {
        return None;
    }
    let why = missing_capabilities(needed.iter().map(|(name, settings)| (name.as_str(), settings)));
    let data = format!("{{\"requiredCapabilities\":{required}}}");
    Some(Reply::error(Some(&request.id), code::MISSING_REQUIRED_CLIENT_CAPABILITY, &why, Some(&data)))
}

/// Whether results of the method say how long they may be kept.
fn is_cacheable(method: Option<Method>) -> bool {
    matches!(
        method,
        Some(
            Method::ToolsList
                | Method::ResourcesList
                | Method::ResourcesTemplatesList
                | Method::ResourcesRead
                | Method::PromptsList
                | Method::ServerDiscover
        )
    )
}

/// Whether a result asks for input, and its members.
pub fn asks(message: &Message) -> Option<&ResultMembers> {
    (kind(message) == ReplyKind::InputRequired).then(|| message.result())
}

fn spliced(id: &Id, splice: Splice<'_>, kind: ReplyKind) -> Reply {
    let mut out = Vec::new();
    splice.write(&mut out);
    Reply::with_result(id, out.into()).with_kind(kind)
}

/// The value of this member of the object at `object`.
pub(super) fn member(text: &str, object: Span, name: &str) -> Option<Span> {
    let mut found = None;
    let inner = object.of(text);
    let mut scanner = Scanner::new(inner, 127);
    let read = scanner.object(&mut |s, key| {
        let value = s.value()?;
        if key.name() == name {
            found = Some(Span::new(object.start() + value.start(), object.start() + value.end()));
        }
        Ok(())
    });
    read.ok().and(found)
}

/// Removes `value`, a member of the object at `object`, and the object with it if it has no other.
pub(super) fn remove(splice: &mut Splice<'_>, text: &str, object: Span, value: Span) {
    let members = serde_json::from_str::<BTreeMap<String, IgnoredAny>>(object.of(text));
    splice.remove(if members.is_ok_and(|members| members.len() == 1) { object } else { value });
}

/// An object that is read and written anew.
pub(crate) fn object(json: &str) -> Map<String, Value> {
    serde_json::from_str(json).unwrap_or_default()
}
