//! CORS headers (Fetch standard), which browsers require before a page of another origin may send requests and read
//! responses. Only origins named in the options get them: other pages, for example of another server on this
//! machine, fail in the browser although their requests are not rejected.

use super::answer;
use super::body::HttpBody;
use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS,
    ACCESS_CONTROL_REQUEST_METHOD, VARY,
};
use http::{HeaderValue, Method, Response, StatusCode, request};

/// How long a browser may cache the response to a preflight, in seconds.
const MAX_AGE: HeaderValue = HeaderValue::from_static("7200");

/// The response to a CORS preflight. `None` for other requests.
pub(crate) fn preflight(request: &request::Parts) -> Option<Response<HttpBody>> {
    if request.method != Method::OPTIONS || !request.headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD) {
        return None;
    }
    let mut response = answer::empty(StatusCode::NO_CONTENT);
    let out = response.headers_mut();
    out.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("POST, GET, DELETE"));
    // Tools choose the names of `Mcp-Param-…` headers, so there is no list to compare with.
    if let Some(wanted) = request.headers.get(ACCESS_CONTROL_REQUEST_HEADERS) {
        out.insert(ACCESS_CONTROL_ALLOW_HEADERS, wanted.clone());
    }
    out.insert(ACCESS_CONTROL_MAX_AGE, MAX_AGE);
    Some(response)
}

/// Allows pages of `origin` to read a response.
pub(crate) fn allow(origin: HeaderValue, response: &mut Response<HttpBody>) {
    let headers = response.headers_mut();
    let every = origin == "*";
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    const EXPOSED: HeaderValue = HeaderValue::from_static("mcp-session-id, www-authenticate, dpop-nonce");
    headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
    if !every {
        headers.append(VARY, HeaderValue::from_static("origin"));
    }
}
