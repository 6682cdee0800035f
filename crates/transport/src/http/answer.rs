//! Complete responses. Every rejection has a JSON-RPC error that says what to do instead.

use super::body::{HttpBody, event};
use bytes::Bytes;
use http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderName, HeaderValue, Response, StatusCode};
use linchpin_core::{Id, Principal, Reply};
use linchpin_types::error::code;

/// The header that names a session.
pub(crate) const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
/// The header that names the protocol version.
pub(crate) const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
/// The header that names the last event a client has seen.
pub(crate) const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
const X_ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// A response of one JSON document.
pub(crate) fn json(status: StatusCode, body: impl Into<Bytes>) -> Response<HttpBody> {
    document(status, HttpBody::full(body))
}

fn document(status: StatusCode, body: HttpBody) -> Response<HttpBody> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// A finished response with its status.
pub(crate) fn reply(status: u16, reply: Reply) -> Response<HttpBody> {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    document(status, HttpBody::reply(reply))
}

/// A rejection by the transport. `why` says what to send instead.
pub(crate) fn refuse(status: StatusCode, id: Option<&Id>, why: &str) -> Response<HttpBody> {
    let code = match status {
        StatusCode::SERVICE_UNAVAILABLE | StatusCode::INTERNAL_SERVER_ERROR => code::INTERNAL_ERROR,
        _ => code::INVALID_REQUEST,
    };
    json(status, Reply::error(id, code, why, None).into_frame())
}

/// Logs that a client named a session of another principal; it is told that there is no such session. `public_id` is the
/// session's, if it has one already.
pub(crate) fn log_foreign_session(principal: Option<&Principal>, public_id: Option<u64>) {
    tracing::info!(
        status = StatusCode::NOT_FOUND.as_u16(),
        why = "the session belongs to another principal",
        session = public_id.map(|id| format!("{id:016x}")),
        principal = principal.map(|principal| format!("{:.256}", principal.identity())),
        "refused a request"
    );
}

/// The method is not one of this endpoint's.
pub(crate) fn method_not_allowed(allow: &'static str) -> Response<HttpBody> {
    let mut response = refuse(StatusCode::METHOD_NOT_ALLOWED, None, &format!("this endpoint accepts {allow}"));
    response.headers_mut().insert(ALLOW, HeaderValue::from_static(allow));
    response
}

/// The same rejection, for whoever opened the endpoint in a browser.
pub(crate) fn for_browser(response: Response<HttpBody>) -> Response<HttpBody> {
    if !response.status().is_client_error() {
        return response;
    }
    let (mut parts, _) = response.into_parts();
    parts.headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    Response::from_parts(parts, HttpBody::full(FOR_BROWSERS))
}

const FOR_BROWSERS: &str = "\
This is an MCP endpoint: AI applications connect to it, and a browser has nothing to show.
Add this URL to an MCP client, such as Claude Code, VS Code or Cursor, or look at it with
`linchpin inspect URL`.
";

/// 202 Accepted, for a message without a response.
pub(crate) fn accepted() -> Response<HttpBody> {
    empty(StatusCode::ACCEPTED)
}

/// A status without a body.
pub(crate) fn empty(status: StatusCode) -> Response<HttpBody> {
    let mut response = Response::new(HttpBody::empty());
    *response.status_mut() = status;
    response
}

/// Converts a complete response to a stream of one event. Others are unchanged.
pub(crate) fn as_stream(response: Response<HttpBody>) -> Response<HttpBody> {
    if response.status() != StatusCode::OK
        || response.headers().get(CONTENT_TYPE).is_none_or(|t| t != "application/json")
    {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    let stream = events(HttpBody::full(event(&body.collected())));
    for (name, value) in stream.headers() {
        // Replaced, not added: a second `Content-Type` would make the answer malformed.
        parts.headers.insert(name, value.clone());
    }
    Response::from_parts(parts, stream.into_body())
}

/// A stream of events.
pub(crate) fn events(body: HttpBody) -> Response<HttpBody> {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.reserve(3);
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(X_ACCEL_BUFFERING, HeaderValue::from_static("no"));
    response
}
