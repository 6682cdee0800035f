//! Requests and notifications of a client, for the upstream.

use crate::message_writer::about;
use crate::splice::{Splice, one_line};
use linchpin_core::connector::Outgoing;
use linchpin_core::json::{Span, read_str, write_str};
use linchpin_core::message::{Notification, Params, Request};
use linchpin_core::{Features, MethodName};
use linchpin_types::logging::LoggingLevel;
use linchpin_types::meta::key;
use serde::Deserialize;
use std::borrow::Cow;

/// What becomes of the members of `_meta` by which a stateless request says who sends it.
#[derive(Clone, Copy, Debug)]
pub enum Claims<'a> {
    /// They stay as they are.
    Keep,
    /// They are these, from [`claims`].
    Say(&'a [u8]),
    /// They are removed: the upstream knows its client from the session.
    Drop,
}

/// The members of `_meta` of a stateless request. `capabilities` and `info` are JSON text.
pub fn claims(features: &Features, capabilities: &str, info: Option<&str>, log: Option<LoggingLevel>) -> Vec<u8> {
    let mut out = Vec::with_capacity(192 + capabilities.len());
    let mut member = |name: &str, json: &str| {
        if !out.is_empty() {
            out.push(b',');
        }
        write_str(&mut out, name);
        out.push(b':');
        out.extend_from_slice(json.as_bytes());
    };
    member(key::PROTOCOL_VERSION, &format!("\"{}\"", features.revision.as_str()));
    if let Some(info) = info {
        member(key::CLIENT_INFO, info);
    }
    member(key::CLIENT_CAPABILITIES, capabilities);
    if let Some(log) = log {
        member(key::LOG_LEVEL, &format!("\"{}\"", log.as_str()));
    }
    out
}

/// A request for an upstream of these features, under the id `id`, which is its progress token too if it has one. `more` are
/// members for `params`: names that need no escapes, and JSON text.
pub fn request(
    request: &Request,
    id: u64,
    features: &'static Features,
    claims: Claims<'_>,
    more: &[(&str, &str)],
) -> Outgoing {
    let method: Cow<'static, str> = match &request.method {
        MethodName::Known(method) => Cow::Borrowed(method.as_str()),
        MethodName::Other(name) => Cow::Owned(name.to_string()),
    };
    let mut out = Vec::with_capacity(128 + request.frame.len());
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
    out.extend_from_slice(id.to_string().as_bytes());
    out.extend_from_slice(b",\"method\":");
    write_str(&mut out, &method);
    params(&mut out, request.params, &request.frame, request.progress_token.map(|span| (span, id)), claims, more);
    out.push(b'}');
    let about = if features.method_headers { subject(request, &method) } else { None };
    finished(out, Some(id), method, about, features)
}

/// A notification for an upstream of these features.
pub fn notification(notification: &Notification, features: &'static Features, claims: Claims<'_>) -> Outgoing {
    let method = notification.method.as_str().to_owned();
    let mut out = Vec::with_capacity(64 + notification.frame.len());
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"method\":");
    write_str(&mut out, &method);
    params(&mut out, notification.params, &notification.frame, None, claims, &[]);
    out.push(b'}');
    finished(out, None, method.into(), None, features)
}

fn finished(
    mut frame: Vec<u8>,
    id: Option<u64>,
    method: Cow<'static, str>,
    about: Option<Box<str>>,
    features: &'static Features,
) -> Outgoing {
    one_line(&mut frame);
    let mut out = Outgoing::new(method, Some(features), frame);
    (out.id, out.about) = (id, about);
    out
}

/// What the request is about, where a header repeats it.
fn subject(request: &Request, method: &str) -> Option<Box<str>> {
    #[derive(Deserialize)]
    struct Task {
        #[serde(rename = "taskId")]
        id: Box<str>,
    }
    match about(method)? {
        "name" => read_str(request.text(request.params.name?)).map(Into::into),
        "uri" => read_str(request.text(request.params.uri?)).map(Into::into),
        _ => request.decode::<Task>().ok().map(|task| task.id),
    }
}

fn params(
    out: &mut Vec<u8>,
    params: Params,
    frame: &str,
    token: Option<(Span, u64)>,
    claims: Claims<'_>,
    more: &[(&str, &str)],
) {
    let mut members = Vec::new();
    for (name, json) in more {
        write_str(&mut members, name);
        members.push(b':');
        members.extend_from_slice(json.as_bytes());
        members.push(b',');
    }
    if let (Claims::Say(said), None) = (claims, params.meta) {
        members.extend_from_slice(b"\"_meta\":{");
        members.extend_from_slice(said);
        members.extend_from_slice(b"},");
    }
    members.pop();
    let Some(all) = params.all else {
        if !members.is_empty() {
            out.extend_from_slice(b",\"params\":{");
            out.extend_from_slice(&members);
            out.push(b'}');
        }
        return;
    };
    let mut splice = Splice::new(frame, all);
    splice.add(all, members);
    if let (Claims::Say(_) | Claims::Drop, Some(meta)) = (claims, params.meta) {
        let theirs = &params.claims;
        let theirs = [theirs.version, theirs.capabilities, theirs.info, theirs.log];
        theirs.into_iter().flatten().for_each(|value| splice.remove(value));
        if let Claims::Say(said) = claims {
            splice.add(meta, said);
        }
    }
    if let Claims::Drop = claims {
        // Sessions have no rounds.
        [params.input_responses, params.request_state].into_iter().flatten().for_each(|value| splice.remove(value));
    }
    if let Some((span, id)) = token {
        splice.replace(span, id.to_string().into_bytes());
    }
    out.extend_from_slice(b",\"params\":");
    splice.write(out);
}
