//! Answers: JSON, redirects, pages, and their headers.

use crate::person::SetupError;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::header::{
    ACCESS_CONTROL_ALLOW_ORIGIN, ALLOW, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, LOCATION, PRAGMA,
    REFERRER_POLICY, RETRY_AFTER, SET_COOKIE, WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use linchpin_oauth::sha256;
use serde_json::{Value, json};
use std::sync::LazyLock;
use std::time::Duration;

/// An answer to any request.
pub(crate) type Answer = Response<Bytes>;

/// An error of RFC 6749, for a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refused {
    pub(crate) error: &'static str,
    pub(crate) description: &'static str,
    /// When to try again.
    pub(crate) after: Option<Duration>,
}

impl Refused {
    pub(crate) const fn new(error: &'static str, description: &'static str) -> Refused {
        Refused { error, description, after: None }
    }

    /// The store or the provider does not answer.
    pub(crate) const fn away() -> Refused {
        Refused {
            error: "temporarily_unavailable",
            description: "this server cannot answer now; try again",
            after: Some(Duration::from_secs(2)),
        }
    }

    pub(crate) const fn too_many(after: Duration) -> Refused {
        Refused { error: "slow_down", description: "too many requests; try again later", after: Some(after) }
    }

    /// As JSON. `basic`: whether the client used the scheme Basic, which then is in the challenge.
    pub(crate) fn answer(&self, basic: bool) -> Answer {
        let status = match self.error {
            "invalid_client" => StatusCode::UNAUTHORIZED,
            "temporarily_unavailable" => StatusCode::SERVICE_UNAVAILABLE,
            // Without a time it is the answer to a device (RFC 8628, section 3.5).
            "slow_down" if self.after.is_some() => StatusCode::TOO_MANY_REQUESTS,
            _ => StatusCode::BAD_REQUEST,
        };
        let body = json!({ "error": self.error, "error_description": self.description });
        let mut answer = json_answer(status, &body);
        if basic && status == StatusCode::UNAUTHORIZED {
            answer.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static(r#"Basic realm="clients""#));
        }
        if let Some(after) = self.after {
            answer.headers_mut().insert(RETRY_AFTER, HeaderValue::from(after.as_secs().max(1)));
        }
        answer
    }
}

/// JSON that nobody keeps.
pub(crate) fn json_answer(status: StatusCode, body: &Value) -> Answer {
    let mut answer = Response::new(Bytes::from(body.to_string()));
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(PRAGMA, HeaderValue::from_static("no-cache"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    // Clients may be pages. What they send is not a cookie, so this gives nobody's rights away.
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    answer
}

/// An answer without a body.
pub(crate) fn empty(status: StatusCode) -> Answer {
    let mut answer = Response::new(Bytes::new());
    *answer.status_mut() = status;
    answer.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    answer
}

pub(crate) fn method_not_allowed(methods: &'static str) -> Answer {
    let mut answer = empty(StatusCode::METHOD_NOT_ALLOWED);
    answer.headers_mut().insert(ALLOW, HeaderValue::from_static(methods));
    answer
}

/// The answer to a page's preflight.
pub(crate) fn preflight() -> Answer {
    let mut answer = empty(StatusCode::NO_CONTENT);
    let headers = answer.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    headers.insert("access-control-allow-methods", HeaderValue::from_static("GET, POST"));
    headers.insert(
        "access-control-allow-headers",
        HeaderValue::from_static("Authorization, Content-Type, DPoP, MCP-Protocol-Version"),
    );
    headers.insert("access-control-max-age", HeaderValue::from_static("7200"));
    answer
}

/// Sends the browser on, after a GET only: browsers hold redirects of forms against `form-action`.
pub(crate) fn redirect(to: &str) -> Answer {
    let mut answer = empty(StatusCode::FOUND);
    match HeaderValue::try_from(to) {
        Ok(to) => drop(answer.headers_mut().insert(LOCATION, to)),
        Err(_) => *answer.status_mut() = StatusCode::INTERNAL_SERVER_ERROR,
    }
    answer.headers_mut().insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    answer
}

/// A page for a user.
pub(crate) fn html(status: StatusCode, page: String) -> Answer {
    let mut answer = Response::new(Bytes::from(page));
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(CONTENT_SECURITY_POLICY, POLICY.clone());
    // `no-referrer` would make browsers send `Origin: null` with our own forms.
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("same-origin"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(HeaderName::from_static("x-frame-options"), HeaderValue::from_static("DENY"));
    headers.insert(HeaderName::from_static("cross-origin-opener-policy"), HeaderValue::from_static("same-origin"));
    answer
}

static POLICY: LazyLock<HeaderValue> = LazyLock::new(|| {
    let style = STANDARD.encode(sha256(STYLE.as_bytes()));
    let policy = format!(
        "default-src 'none'; style-src 'sha256-{style}'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'"
    );
    HeaderValue::try_from(policy).expect("base64 fits into a header")
});

/// The style of all pages.
pub(crate) const STYLE: &str = "\
:root{color-scheme:light dark}\
body{font:16px/1.5 system-ui,sans-serif;max-width:34rem;margin:0 auto;padding:1.5rem;overflow-wrap:anywhere}\
h1{font-size:1.35rem;line-height:1.3}\
dl{margin:1rem 0;padding:.75rem 1rem;border:1px solid #8886;border-radius:.5rem}\
dt{font-size:.85rem;opacity:.75}dd{margin:0 0 .6rem}ul{margin:.2rem 0;padding-left:1.2rem}\
label{display:block;margin:.8rem 0 .2rem}\
input{font:inherit;width:100%;box-sizing:border-box;padding:.5rem;border:1px solid #888;border-radius:.4rem}\
button{font:inherit;padding:.6rem 1.2rem;margin:1rem .5rem 0 0;border:1px solid #888;border-radius:.4rem;cursor:pointer}\
button.yes{background:#1f5fbf;color:#fff;border-color:#1f5fbf}\
.bad{padding:.6rem .8rem;border-left:4px solid #c33;background:#c331}\
small{opacity:.75}";

/// The cookies of a server: bound to its host where that is possible.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cookies {
    secure: bool,
}

impl Cookies {
    pub(crate) fn new(issuer: &str) -> Result<Cookies, SetupError> {
        Ok(Cookies { secure: issuer.starts_with("https://") })
    }

    fn name(self, name: &str) -> String {
        if self.secure { format!("__Host-lp_{name}") } else { format!("lp_{name}") }
    }

    /// Returns a cookie of a request. When it is there twice, one is not ours, and none counts.
    pub(crate) fn get<'a>(self, headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
        let name = self.name(name);
        let lines = headers.get_all(http::header::COOKIE).iter().filter_map(|line| line.to_str().ok());
        let pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
        let mut found = pairs.filter(|(known, _)| *known == name).map(|(_, value)| value);
        match (found.next(), found.next()) {
            (Some(value), None) if !value.is_empty() && value.len() <= 128 => Some(value),
            _ => None,
        }
    }

    /// Sets a cookie, for the browser's session or for a time.
    pub(crate) fn set(self, answer: &mut Answer, name: &str, value: &str, life: Option<Duration>) {
        let secure = if self.secure { "; Secure" } else { "" };
        let life = life.map(|life| format!("; Max-Age={}", life.as_secs())).unwrap_or_default();
        let cookie = format!("{}={value}; Path=/; HttpOnly; SameSite=Lax{secure}{life}", self.name(name));
        if let Ok(cookie) = HeaderValue::try_from(cookie) {
            answer.headers_mut().append(SET_COOKIE, cookie);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_that_is_there_twice_counts_for_nothing() {
        let cookies = Cookies::new("https://mcp.example").unwrap();
        let headers = |line: &str| HeaderMap::from_iter([(http::header::COOKIE, line.parse().unwrap())]);
        assert_eq!(cookies.get(&headers("a=1; __Host-lp_b=x; c=2"), "b"), Some("x"));
        for line in ["__Host-lp_b=x; __Host-lp_b=y", "lp_b=x", "__Host-lp_b=", ""] {
            assert_eq!(cookies.get(&headers(line), "b"), None, "{line}");
        }
    }

    #[test]
    fn pages_are_framed_by_nobody_and_run_nothing() {
        let page = html(StatusCode::OK, String::new());
        let policy = page.headers()[CONTENT_SECURITY_POLICY].to_str().unwrap();
        for part in ["default-src 'none'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'self'"] {
            assert!(policy.contains(part), "{policy}");
        }
        assert!(!policy.contains("unsafe") && !policy.contains("script-src"));
    }
}
