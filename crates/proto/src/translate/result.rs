//! Results of an upstream, for the client.

use super::error::part;
use crate::splice::Splice;
use linchpin_core::json::{Scanner, Span};
use linchpin_core::message::{Message, Request, ResultMembers};
use linchpin_core::{Features, Id, Method, Reply, ReplyKind};
use linchpin_types::meta::key;
use serde_json::{Map, Value, json};

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
    fitted(request, reply)
}

fn is_empty(array: &str) -> bool {
    array.bytes().all(|byte| matches!(byte, b'[' | b']' | b' ' | b'\t' | b'\n' | b'\r'))
}

/// Content and definitions as the client's revision has them. Only what has something else is read.
fn fitted(request: &Request, mut reply: Reply) -> Reply {
    let features = request.caller.features();
    let has = |what: &str| reply.body().contains(what);
    match request.known() {
        Some(Method::ToolsCall | Method::PromptsGet)
            if (!features.audio && has("\"audio\"")) || (!features.resource_links && has("\"resource_link\"")) =>
        {
            reply.edit(|body| {
                for (_, value) in body.iter_mut().filter(|(key, _)| matches!(key.as_str(), "content" | "messages")) {
                    blocks(value, features);
                }
            });
        }
        Some(Method::ToolsList) if !features.structured_any && has("\"outputSchema\"") => {
            reply.edit(|body| {
                for tool in body.get_mut("tools").and_then(Value::as_array_mut).into_iter().flatten() {
                    let Some(tool) = tool.as_object_mut() else { continue };
                    let keeps = features.structured
                        && tool.get("outputSchema").is_some_and(|schema| schema["type"] == "object");
                    if !keeps {
                        tool.remove("outputSchema");
                    }
                }
            });
        }
        _ => {}
    }
    reply
}

/// Replaces blocks of kinds that the revision does not have, in `content` or in `messages`.
fn blocks(value: &mut Value, features: &Features) {
    for block in value.as_array_mut().into_iter().flatten() {
        if let Some(inner) = block.get_mut("content") {
            match inner {
                Value::Array(_) => blocks(inner, features),
                Value::Object(_) => fit(inner, features),
                _ => {}
            }
        } else {
            fit(block, features);
        }
    }
}

fn fit(block: &mut Value, features: &Features) {
    let text = match block["type"].as_str() {
        Some("audio") if !features.audio => {
            let bytes = block["data"].as_str().map_or(0, str::len);
            let kind = block["mimeType"].as_str().unwrap_or("of unknown type");
            format!("[audio, {kind}, {bytes} bytes in base64: this client's protocol revision has no audio]")
        }
        Some("resource_link") if !features.resource_links => {
            let (name, uri) = (block["name"].as_str().unwrap_or("resource"), block["uri"].as_str().unwrap_or_default());
            let about = block["description"].as_str().map(|text| format!(" ({text})")).unwrap_or_default();
            format!("{name}: {uri}{about}")
        }
        _ => return,
    };
    *block = json!({ "type": "text", "text": text });
}

/// The result of an upstream with sessions for a client whose requests are stateless. `server` is the upstream's `serverInfo`
/// as JSON text.
pub fn to_stateless(request: &Request, message: &Message, result: Span, server: Option<&str>) -> Reply {
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
    spliced(&request.id, splice, kind(message))
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
fn member(text: &str, object: Span, name: &str) -> Option<Span> {
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

/// An object that is read and written anew.
pub(crate) fn object(json: &str) -> Map<String, Value> {
    serde_json::from_str(json).unwrap_or_default()
}
