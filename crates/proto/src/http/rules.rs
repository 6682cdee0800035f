//! Which POST of Streamable HTTP is answered how, decided from the message and its headers alone.
//!
//! One endpoint serves both eras. A POST is stateless when anything about it says so: its body claims a version in
//! `_meta`; its method is not `initialize` and its `MCP-Protocol-Version` names a revision without sessions; or,
//! while there is no session, that header names an unknown revision or only revisions without sessions have the
//! method. Everything else belongs to a session, and its headers are not compared with its body.
//!
//! Checks of a stateless request, in this order, so that each mistake gets its own code:
//!
//! | what is wrong | code | status |
//! |---|---|---|
//! | `_meta` missing, incomplete or malformed | -32602 | 400 |
//! | `MCP-Protocol-Version` missing, repeated or different from `_meta` | -32020 | 400 |
//! | version not served | -32022 | 400 |
//! | method unknown, or not in this revision | -32601 | 404 |
//! | `Mcp-Method`, `Mcp-Name` or an `Mcp-Param-*` missing, repeated, different or malformed | -32020 | 400 |

use super::headers;
use crate::engine::{claimed_version, not_found, notification, open};
use crate::era::{self, HeaderVersion};
use crate::task;
use http::{HeaderMap, HeaderName, HeaderValue};
use linchpin_core::id::Id;
use linchpin_core::message::{Kind, Message, MethodName, Notification, Request};
use linchpin_core::method::Method;
use linchpin_core::reply::{Reply, ReplyKind};
use linchpin_core::service::HeaderParam;
use linchpin_core::{Caller, Features};
use linchpin_types::error::code;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The protocol version of a client.
pub static PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
/// The session a message belongs to.
pub static SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
/// Repeats the method of a stateless request.
pub static METHOD: HeaderName = HeaderName::from_static("mcp-method");
/// Repeats the name or URI a stateless request is about.
pub static NAME: HeaderName = HeaderName::from_static("mcp-name");

/// The headers that say where a message belongs, as far as they are there: the first of each.
#[derive(Debug, Clone, Copy, Default)]
pub struct SessionHeaders<'a> {
    /// [`SESSION_ID`].
    pub id: Option<&'a HeaderValue>,
    /// [`PROTOCOL_VERSION`].
    pub version: Option<&'a HeaderValue>,
}

impl<'a> SessionHeaders<'a> {
    /// Finds them in one pass: a map hashes a name for each look-up, which costs more.
    pub fn of(headers: &'a HeaderMap) -> Self {
        let mut found = Self::default();
        for (name, value) in headers {
            match name.as_str() {
                "mcp-session-id" => found.id = found.id.or(Some(value)),
                "mcp-protocol-version" => found.version = found.version.or(Some(value)),
                _ => {}
            }
        }
        found
    }
}

/// The classification of a POSTed message.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "it is taken apart at once; a box would cost every request an allocation")]
pub enum PostKind {
    /// A stateless request whose headers agree with it: run it.
    Request(Arc<Request>),
    /// It opens a session.
    Initialize,
    /// It belongs to a session, which its `Mcp-Session-Id` must name.
    Session,
    /// A notification without a session: it is accepted (202). `None` if its claims are missing or malformed, or if a
    /// header differs from them: then it means nothing.
    Notification(Option<Notification>),
}

/// Gives the arguments of a tool that the caller must mirror in headers.
pub type Lookup<'a> = dyn Fn(&str, &Caller) -> Option<Arc<[HeaderParam]>> + 'a;

/// What the rules ask the service.
#[derive(Clone, Copy)]
pub struct Ask<'a> {
    /// Gives the arguments of a tool that the caller must mirror in headers.
    pub header_params: &'a Lookup<'a>,
    /// Whether the service has a method that the specification does not have.
    pub defines: &'a dyn Fn(&str) -> bool,
    /// The member of such a method's parameters that `Mcp-Name` repeats.
    pub named_by: &'a dyn Fn(&str) -> Option<Arc<str>>,
}

/// Decides where a message belongs and, for a stateless request, whether it may run. `named` is found in `headers`.
///
/// # Errors
/// The error response; its status is `status(reply.kind(), None)`.
pub fn classify(
    message: &Message,
    headers: &HeaderMap,
    named: &SessionHeaders<'_>,
    ask: Ask<'_>,
) -> Result<PostKind, Reply> {
    let version = named.version.map(|v| headers::trim(v.as_bytes()));
    let alone = is_stateless(message, version, named.id.is_some());
    match &message.kind {
        Kind::Request { id, method } if alone => check_stateless(message, id, method, version, headers, ask),
        Kind::Request { method: MethodName::Known(Method::Initialize), .. } => Ok(PostKind::Initialize),
        Kind::Notification { .. } if alone => {
            let told = notification(message, None)
                .filter(|told| plainly(headers, &PROTOCOL_VERSION, told.caller.features().revision.as_str()).is_ok());
            Ok(PostKind::Notification(told))
        }
        Kind::Response { .. } if alone => {
            Err(Reply::error(None, code::INVALID_REQUEST, "the response does not match a request", None))
        }
        _ => Ok(PostKind::Session),
    }
}

fn is_stateless(message: &Message, version: Option<&[u8]>, has_session: bool) -> bool {
    let said = version.map(|v| era::header_version(std::str::from_utf8(v).unwrap_or_default()));
    let (request, initialize) = match &message.kind {
        Kind::Request { method, .. } => (Some(method), *method == MethodName::Known(Method::Initialize)),
        _ => (None, false),
    };
    // `initialize` without a claim opens a session whatever the headers say: sessions know no such header yet.
    if said == Some(HeaderVersion::PerRequest) && !initialize || claimed_version(message).is_some() {
        return true;
    }
    let odd = said == Some(HeaderVersion::Unknown)
        || matches!(request, Some(MethodName::Known(method)) if era::only_stateless(*method));
    odd && !initialize && !has_session
}

fn check_stateless(
    message: &Message,
    id: &Id,
    method: &MethodName,
    version: Option<&[u8]>,
    headers: &HeaderMap,
    ask: Ask<'_>,
) -> Result<PostKind, Reply> {
    let mismatch =
        |why: String| Reply::error(Some(id), code::HEADER_MISMATCH, &format!("header mismatch: {why}"), None);
    let request = match open(message, None) {
        // Without a claim there is no caller, although some methods of sessions need none.
        Ok(request) if request.caller.session().is_some() => {
            return Err(Reply::error(Some(id), code::INVALID_PARAMS, MISSING_META, None));
        }
        Ok(request) => request,
        Err(reply) => {
            let judged =
                matches!(reply.kind(), ReplyKind::Error(code::UNSUPPORTED_PROTOCOL_VERSION | code::METHOD_NOT_FOUND));
            let claimed = claimed_version(message).filter(|_| judged);
            return Err(claimed
                .and_then(|v| headers::says(headers, &PROTOCOL_VERSION, &v).err())
                .map_or(reply, mismatch));
        }
    };
    let claimed = request.caller.features().revision.as_str();
    if version != Some(claimed.as_bytes()) || headers.keys_len() != headers.len() {
        plainly(headers, &PROTOCOL_VERSION, claimed).map_err(mismatch)?;
    }
    if let MethodName::Other(name) = method
        && !(ask.defines)(name)
    {
        return Err(Reply::error(Some(id), code::METHOD_NOT_FOUND, &not_found(name), None));
    }
    plainly(headers, &METHOD, method.as_str()).map_err(mismatch)?;
    let about = match request.known() {
        Some(Method::ToolsCall | Method::PromptsGet) => request.string(request.params.name),
        Some(Method::ResourcesRead) => request.string(request.params.uri),
        None => match (ask.named_by)(method.as_str()) {
            Some(member) => text_member(request.params_text(), &member),
            None => return Ok(PostKind::Request(request)),
        },
        Some(Method::TasksGet | Method::TasksUpdate | Method::TasksCancel) => task::id_of(&request).map(Cow::Owned),
        _ => return Ok(PostKind::Request(request)),
    };
    let Some(about) = about else {
        // The body does not say what it is about, which the service will answer; then no header may say it either.
        return match headers.contains_key(&NAME) {
            false => Ok(PostKind::Request(request)),
            true => Err(mismatch(format!("unexpected {}: the body has no matching value", NAME))),
        };
    };
    headers::says(headers, &NAME, &about).map_err(mismatch)?;
    if request.known() == Some(Method::ToolsCall)
        && let Some(params) = (ask.header_params)(&about, &request.caller)
    {
        let arguments = request.params.arguments.map(|span| request.text(span));
        headers::check_params(&params, arguments, headers).map_err(mismatch)?;
    }
    drop(about);
    Ok(PostKind::Request(request))
}

/// A member of an object that is a string.
fn text_member<'a>(object: &'a str, name: &str) -> Option<Cow<'a, str>> {
    let members: BTreeMap<String, &RawValue> = serde_json::from_str(object).ok()?;
    serde_json::from_str::<String>(members.get(name)?.get()).ok().map(Cow::Owned)
}

/// Like [`headers::says`], for headers that know no sentinel.
fn plainly(headers: &HeaderMap, header: &HeaderName, text: &str) -> Result<(), String> {
    match headers::single(headers, header)? {
        None => Err(format!("{header} is missing")),
        Some(value) if headers::trim(value) == text.as_bytes() => Ok(()),
        Some(_) => Err(format!("{header} differs from the body")),
    }
}

/// The HTTP status of a response.
///
/// `features` is that of the caller; `None` for an error raised before there was one, by reading the frame or by
/// [`classify`].
///
/// | response | no caller yet | stateless | session |
/// |---|---|---|---|
/// | result, of whatever kind | – | 200 | 200 |
/// | -32700 parse error | 400 | 400 | 400 |
/// | -32601 method not found | 404 | 404 | 200 |
/// | -32600, -32020, -32021, -32022 | 400 | 400 | 200 |
/// | -32602 invalid parameters | 400 | 200 | 200 |
/// | any other error | 400 | 200 | 200 |
///
/// Invalid parameters before there is a caller are a missing or malformed `_meta`, for which the specification demands 400; those
/// that a method finds are an ordinary answer.
pub fn status(kind: ReplyKind, features: Option<&Features>) -> u16 {
    let ReplyKind::Error(error) = kind else { return 200 };
    let malformed = matches!(
        error,
        code::INVALID_REQUEST
            | code::HEADER_MISMATCH
            | code::MISSING_REQUIRED_CLIENT_CAPABILITY
            | code::UNSUPPORTED_PROTOCOL_VERSION
    );
    match (error, features) {
        (code::PARSE_ERROR, _) => 400,
        (_, Some(features)) if !features.error_statuses => 200,
        (code::METHOD_NOT_FOUND, _) => 404,
        (_, None) => 400,
        _ if malformed => 400,
        _ => 200,
    }
}

const MISSING_META: &str =
    "`_meta` must contain `io.modelcontextprotocol/protocolVersion` and `io.modelcontextprotocol/clientCapabilities`";

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;
    use linchpin_core::limits::Limits;

    const MODERN: &str = "2026-07-28";

    fn meta(version: &str) -> String {
        let key = "io.modelcontextprotocol/";
        format!(r#""_meta":{{"{key}protocolVersion":"{version}","{key}clientCapabilities":{{}}}}"#)
    }

    const NOBODY: Ask<'static> = Ask { header_params: &|_, _| None, defines: &|_| false, named_by: &|_| None };

    /// Runs one POST. `headers` are `name: value`, divided by bars. The outcome is `run METHOD`, `initialize`,
    /// `session`, `notification`, or `STATUS CODE ID`.
    fn post(headers: &str, body: &str) -> String {
        let message = match crate::frame::message(body.to_owned().into(), &Limits::default()) {
            Ok(message) => message,
            Err(unreadable) => return format!("{} unread", status(unreadable.reply.kind(), None)),
        };
        let mut map = HeaderMap::new();
        for (name, value) in headers.split('|').filter_map(|line| line.trim_start().split_once(':')) {
            // Blanks around values are kept: the HTTP library may or may not have cut them.
            map.append(HeaderName::try_from(name).unwrap(), HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        let lookup = |tool: &str, _: &Caller| -> Option<Arc<[HeaderParam]>> {
            let schema = r#"{"properties":{"word":{"type":"string","x-mcp-header":"Word"}}}"#;
            (tool == "mirrored").then(|| headers::header_params(schema).unwrap().into())
        };
        let named_by = |method: &str| (method == "com.example/search/run").then(|| "query".into());
        let defines = |method: &str| method.starts_with("com.example/search/");
        match classify(
            &message,
            &map,
            &SessionHeaders::of(&map),
            Ask { header_params: &lookup, defines: &defines, named_by: &named_by },
        ) {
            Ok(PostKind::Request(request)) => {
                assert!(request.caller.features().stateless);
                format!("run {}", request.method)
            }
            Ok(PostKind::Initialize) => "initialize".into(),
            Ok(PostKind::Session) => "session".into(),
            Ok(PostKind::Notification(None)) => "notification".into(),
            Ok(PostKind::Notification(Some(told))) => format!("told {}", told.method),
            Err(reply) => {
                let frame: serde_json::Value = serde_json::from_slice(&reply.frame()).unwrap();
                format!("{} {} {}", status(reply.kind(), None), frame["error"]["code"], frame["id"])
            }
        }
    }

    fn request(method: &str, params: &str) -> String {
        format!(r#"{{"jsonrpc":"2.0","id":7,"method":"{method}","params":{{{params}}}}}"#)
    }

    /// A valid request of revision 2026-07-28, without its headers.
    fn modern(method: &str, params: &str) -> String {
        let comma = if params.is_empty() { "" } else { "," };
        request(method, &format!("{params}{comma}{}", meta(MODERN)))
    }

    #[test]
    fn claims_that_are_missing_wrong_or_not_served() {
        let with = |version: &str, method: &str| format!("MCP-Protocol-Version: {version}|Mcp-Method: {method}");
        let key = "io.modelcontextprotocol/";
        let discover = |params: &str| request("server/discover", params);
        let rows = [
            (with(MODERN, "server/discover"), discover(""), "400 -32602 7"),
            (
                with(MODERN, "server/discover"),
                r#"{"jsonrpc":"2.0","id":7,"method":"server/discover"}"#.to_owned(),
                "400 -32602 7",
            ),
            (with(MODERN, "tools/list"), request("tools/list", ""), "400 -32602 7"),
            (with(MODERN, "ping"), request("ping", ""), "400 -32602 7"),
            (with(MODERN, "unknown/method"), request("unknown/method", ""), "400 -32602 7"),
            (
                with(MODERN, "server/discover"),
                discover(&format!(r#""_meta":{{"{key}clientCapabilities":{{}}}}"#)),
                "400 -32602 7",
            ),
            (
                with(MODERN, "server/discover"),
                discover(&format!(r#""_meta":{{"{key}protocolVersion":"{MODERN}"}}"#)),
                "400 -32602 7",
            ),
            (
                with(MODERN, "server/discover"),
                discover(&format!(r#""_meta":{{"{key}protocolVersion":1}}"#)),
                "400 -32602 7",
            ),
            (with(MODERN, "server/discover"), discover(r#""_meta":[]"#), "400 -32602 7"),
            (with(MODERN, "server/discover"), discover(&meta(MODERN)), "run server/discover"),
            (with("v999.0.0", "server/discover"), discover(&meta("v999.0.0")), "400 -32022 7"),
            (with("2025-11-25", "server/discover"), discover(&meta("2025-11-25")), "400 -32022 7"),
            (with(MODERN, "server/discover"), discover(&meta("v999.0.0")), "400 -32020 7"),
            (with("v999.0.0", "server/discover"), discover(&meta(MODERN)), "400 -32020 7"),
            (with("2025-06-18", "server/discover"), discover(&meta(MODERN)), "400 -32020 7"),
            ("Mcp-Method: server/discover".into(), discover(&meta(MODERN)), "400 -32020 7"),
            (
                format!("{}|MCP-Protocol-Version: {MODERN}", with(MODERN, "server/discover")),
                discover(&meta(MODERN)),
                "400 -32020 7",
            ),
            (with("v999.0.0", "server/discover"), discover(""), "400 -32602 7"),
            (String::new(), discover(""), "400 -32602 7"),
            ("Mcp-Session-Id: s|MCP-Protocol-Version: 2025-11-25".into(), discover(""), "session"),
            ("Mcp-Session-Id: s".into(), discover(""), "session"),
        ];
        for (headers, body, want) in rows {
            assert_eq!(post(&headers, &body), want, "{headers} {body}");
        }
    }

    #[test]
    fn the_error_for_a_version_names_what_is_served_and_what_was_asked() {
        let body = request("tools/list", &meta("v999.0.0"));
        let message = crate::frame::message(body.into(), &Limits::default()).unwrap();
        let headers = HeaderMap::from_iter([(PROTOCOL_VERSION.clone(), HeaderValue::from_static("v999.0.0"))]);
        let reply = classify(&message, &headers, &SessionHeaders::of(&headers), NOBODY).unwrap_err();
        let frame: serde_json::Value = serde_json::from_slice(&reply.frame()).unwrap();
        assert_eq!(frame["error"]["data"], serde_json::json!({"supported": [MODERN], "requested": "v999.0.0"}));
    }

    #[test]
    fn methods_of_the_other_era_and_unknown_ones() {
        for method in
            ["initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe", "unknown/method"]
        {
            let headers = format!("MCP-Protocol-Version: {MODERN}|Mcp-Method: {method}");
            assert_eq!(post(&headers, &modern(method, "")), "404 -32601 7", "{method}");
            let wrong = format!("MCP-Protocol-Version: 2025-11-25|Mcp-Method: {method}");
            assert_eq!(post(&wrong, &modern(method, "")), "400 -32020 7", "{method}");
        }
    }

    #[test]
    fn method_and_name_headers_must_repeat_the_body() {
        let simple = modern("tools/call", r#""name":"test_simple_text","arguments":{}"#);
        let read = modern("resources/read", r#""uri":"test://a b""#);
        let prompt = modern("prompts/get", r#""name":"caf\u00e9""#);
        let own = modern("com.example/search/run", r#""query":"milk""#);
        let unnamed = modern("com.example/search/clear", r#""query":"milk""#);
        let rows = [
            (&simple, "Mcp-Method: tools/call|Mcp-Name: test_simple_text", "run tools/call"),
            (&simple, "mcp-method: tools/call|MCP-NAME: test_simple_text", "run tools/call"),
            (&simple, "Mcp-Method:  tools/call \t|Mcp-Name:  \ttest_simple_text  ", "run tools/call"),
            (&simple, "Mcp-Method: tools/call|Mcp-Name: =?base64?dGVzdF9zaW1wbGVfdGV4dA==?=", "run tools/call"),
            (&simple, "Mcp-Name: test_simple_text", "400 -32020 7"),
            (&simple, "Mcp-Method: TOOLS/CALL|Mcp-Name: test_simple_text", "400 -32020 7"),
            (&simple, "Mcp-Method: tools/list|Mcp-Name: test_simple_text", "400 -32020 7"),
            (&simple, "Mcp-Method: =?base64?dG9vbHMvY2FsbA==?=|Mcp-Name: test_simple_text", "400 -32020 7"),
            (&simple, "Mcp-Method: tools/call", "400 -32020 7"),
            (&simple, "Mcp-Method: tools/call|Mcp-Name: ", "400 -32020 7"),
            (&simple, "Mcp-Method: tools/call|Mcp-Name: Test_Simple_Text", "400 -32020 7"),
            (&simple, "Mcp-Method: tools/call|Mcp-Name: test_simple_text|Mcp-Name: other", "400 -32020 7"),
            (&simple, "Mcp-Method: tools/call|Mcp-Method: tools/call|Mcp-Name: test_simple_text", "400 -32020 7"),
            (&read, "Mcp-Method: resources/read|Mcp-Name: test://a b", "run resources/read"),
            (&read, "Mcp-Method: resources/read|Mcp-Name: =?base64?dGVzdDovL2EgYg==?=", "run resources/read"),
            (&read, "Mcp-Method: resources/read|Mcp-Name: test://a%20b", "400 -32020 7"),
            (&read, "Mcp-Method: resources/read", "400 -32020 7"),
            (&prompt, "Mcp-Method: prompts/get|Mcp-Name: =?base64?Y2Fmw6k=?=", "run prompts/get"),
            (&prompt, "Mcp-Method: prompts/get|Mcp-Name: café", "400 -32020 7"),
            (&prompt, "Mcp-Method: prompts/get|Mcp-Name: cafe", "400 -32020 7"),
            (&prompt, "Mcp-Method: prompts/get", "400 -32020 7"),
            (&own, "Mcp-Method: com.example/search/run|Mcp-Name: milk", "run com.example/search/run"),
            (&own, "Mcp-Method: com.example/search/run|Mcp-Name: bread", "400 -32020 7"),
            (&own, "Mcp-Method: com.example/search/run", "400 -32020 7"),
            (&unnamed, "Mcp-Method: com.example/search/clear", "run com.example/search/clear"),
            (&unnamed, "Mcp-Method: com.example/search/clear|Mcp-Name: milk", "run com.example/search/clear"),
        ];
        for (body, headers, want) in rows {
            assert_eq!(post(&format!("MCP-Protocol-Version: {MODERN}|{headers}"), body), want, "{headers} {body}");
        }
        let numbered = modern("com.example/search/run", r#""query":7"#);
        let headers = format!("MCP-Protocol-Version: {MODERN}|Mcp-Method: com.example/search/run");
        assert_eq!(post(&headers, &numbered), "run com.example/search/run", "the service refuses it");
        // Methods that are about nothing need no name; a body that lacks its name is for the service to refuse.
        let headers = |method: &str| format!("MCP-Protocol-Version: {MODERN}|Mcp-Method: {method}");
        assert_eq!(post(&headers("tools/list"), &modern("tools/list", "")), "run tools/list");
        assert_eq!(post(&headers("tools/call"), &modern("tools/call", "")), "run tools/call");
        assert_eq!(post(&headers("tools/call"), &modern("tools/call", r#""name":1"#)), "run tools/call");
        assert_eq!(post(&format!("{}|Mcp-Name: x", headers("tools/call")), &modern("tools/call", "")), "400 -32020 7");
    }

    #[test]
    fn mirrored_arguments_must_repeat_the_body() {
        let rows = [
            ("Hello", "|Mcp-Param-Word: Hello", "run tools/call"),
            ("Hello", "|mcp-param-word: Hello ", "run tools/call"),
            ("Hello", "|Mcp-Param-Word: =?base64?SGVsbG8=?=", "run tools/call"),
            ("SGVsbG8=", "|Mcp-Param-Word: SGVsbG8=", "run tools/call"),
            ("=?base64?SGVsbG8=", "|Mcp-Param-Word: =?base64?SGVsbG8=", "run tools/call"),
            ("Hello", "|Mcp-Param-Word: =?base64?SGVsbG8?=", "400 -32020 7"),
            ("Hello", "|Mcp-Param-Word: =?base64?SGVs!!!bG8=?=", "400 -32020 7"),
            ("Hello", "|Mcp-Param-Word: Bye", "400 -32020 7"),
            ("Hello", "", "400 -32020 7"),
        ];
        for (word, header, want) in rows {
            let headers = format!("MCP-Protocol-Version: {MODERN}|Mcp-Method: tools/call|Mcp-Name: mirrored{header}");
            let body = modern("tools/call", &format!(r#""name":"mirrored","arguments":{{"word":"{word}"}}"#));
            assert_eq!(post(&headers, &body), want, "{header} {word}");
        }
        let headers = format!("MCP-Protocol-Version: {MODERN}|Mcp-Method: tools/call|Mcp-Name: mirrored");
        assert_eq!(post(&headers, &modern("tools/call", r#""name":"mirrored""#)), "run tools/call");
        let other = format!("MCP-Protocol-Version: {MODERN}|Mcp-Method: tools/call|Mcp-Name: other|Mcp-Param-Word: x");
        assert_eq!(post(&other, &modern("tools/call", r#""name":"other""#)), "run tools/call");
    }

    #[test]
    fn what_belongs_to_sessions_is_left_to_them() {
        let told = |name: &str| format!(r#"{{"jsonrpc":"2.0","method":"{name}","params":{{{}}}}}"#, meta(MODERN));
        let initialize = request("initialize", r#""protocolVersion":"2025-11-25","capabilities":{}"#);
        let rows = [
            ("", initialize.as_str(), "initialize"),
            ("MCP-Protocol-Version: 2025-11-25", &initialize, "initialize"),
            ("MCP-Protocol-Version: v999.0.0", &initialize, "initialize"),
            ("MCP-Protocol-Version: 2026-07-28", &initialize, "initialize"),
            ("Mcp-Session-Id: s", &initialize, "initialize"),
            ("", &request("tools/list", ""), "session"),
            ("Mcp-Session-Id: s", &request("tools/list", ""), "session"),
            (
                "Mcp-Session-Id: s|MCP-Protocol-Version: 2025-06-18|Mcp-Method: nonsense",
                &request("tools/list", ""),
                "session",
            ),
            ("Mcp-Session-Id: s|MCP-Protocol-Version: v999.0.0", &request("tools/list", ""), "session"),
            ("MCP-Protocol-Version: v999.0.0", &request("tools/list", ""), "400 -32602 7"),
            ("Mcp-Session-Id: s", &request("server/discover", ""), "session"),
            ("Mcp-Session-Id: s", r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#, "session"),
            ("", r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#, "session"),
            ("Mcp-Session-Id: s", r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, "session"),
            // Without sessions there are neither notifications nor answers to come by POST.
            (
                "MCP-Protocol-Version: 2026-07-28",
                r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#,
                "notification",
            ),
            ("MCP-Protocol-Version: 2026-07-28", &told("acme/told"), "told acme/told"),
            ("", &told("acme/told"), "notification"),
            ("MCP-Protocol-Version: 2025-11-25", &told("acme/told"), "notification"),
            ("MCP-Protocol-Version: 2026-07-28", &told("notifications/initialized"), "notification"),
            ("MCP-Protocol-Version: 2026-07-28", r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, "400 -32600 null"),
            // A claim wins over a session id.
            (
                "Mcp-Session-Id: s|MCP-Protocol-Version: 2026-07-28|Mcp-Method: tools/list",
                &modern("tools/list", ""),
                "run tools/list",
            ),
            ("", "{", "400 unread"),
        ];
        for (headers, body, want) in rows {
            assert_eq!(post(headers, body), want, "{headers} {body}");
        }
    }

    #[test]
    fn the_status_follows_the_table() {
        use linchpin_types::version::Revision;
        let (session, alone) = (Features::of(Revision::V2025_11_25), Features::of(Revision::V2026_07_28));
        let rows = [
            (code::PARSE_ERROR, [400, 400, 400]),
            (code::METHOD_NOT_FOUND, [404, 404, 200]),
            (code::INVALID_REQUEST, [400, 400, 200]),
            (code::HEADER_MISMATCH, [400, 400, 200]),
            (code::MISSING_REQUIRED_CLIENT_CAPABILITY, [400, 400, 200]),
            (code::UNSUPPORTED_PROTOCOL_VERSION, [400, 400, 200]),
            (code::INVALID_PARAMS, [400, 200, 200]),
            (code::INTERNAL_ERROR, [400, 200, 200]),
            (code::RESOURCE_NOT_FOUND, [400, 200, 200]),
        ];
        for (code, want) in rows {
            let kind = ReplyKind::Error(code);
            assert_eq!([status(kind, None), status(kind, Some(alone)), status(kind, Some(session))], want, "{code}");
        }
        for kind in [ReplyKind::Complete, ReplyKind::ToolError, ReplyKind::InputRequired] {
            assert_eq!([status(kind, Some(alone)), status(kind, Some(session))], [200, 200]);
        }
    }
}
