//! The `Host` and `Origin` checks, which prevent DNS rebinding.
//!
//! A web page can reach a loopback address under the attacker's host name (DNS rebinding). It cannot choose the `Host`
//! and `Origin` that its browser sends, so both are compared with an allowlist before anything else is read.

use super::answer::{LAST_EVENT_ID, PROTOCOL_VERSION, SESSION_ID};
use super::intake::Refusal;
use http::header::{HOST, ORIGIN};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri, Version, request};
use linchpin_core::gate::Page;

/// Names under which a program on the same machine reaches a server.
const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

/// The parsed lists.
#[derive(Debug)]
pub(crate) struct Guard {
    /// Allowed hosts, lower case; an entry with a port allows that port only. `None` allows any.
    hosts: Option<Box<[Box<str>]>>,
    /// Origins allowed in addition to the default rule, lower case.
    origins: Box<[Box<str>]>,
    /// Whether pages of this machine, and those this server itself serves, are allowed.
    same_host: bool,
    /// Pages of every origin are allowed.
    any_origin: bool,
}

impl Guard {
    /// `hosts`: `None` for the loopback names; `bound` are allowed too. `origins`: `None` for pages from the same machine.
    pub(crate) fn new(any_host: bool, hosts: Option<&[String]>, bound: &[String], origins: Option<&[String]>) -> Guard {
        let lower = |s: &String| s.trim().trim_end_matches('/').to_ascii_lowercase().into_boxed_str();
        let named = || match hosts {
            Some(list) => list.iter().map(lower).collect(),
            None => LOOPBACK.iter().map(|s| Box::from(*s)).collect::<Vec<_>>(),
        };
        let hosts = (!any_host).then(|| named().into_iter().chain(bound.iter().map(lower)).collect());
        Guard {
            hosts,
            origins: origins.unwrap_or_default().iter().map(lower).collect(),
            same_host: origins.is_none(),
            any_origin: false,
        }
    }

    /// Allows pages of every origin.
    pub(crate) fn with_any_origin(mut self, any: bool) -> Guard {
        self.any_origin = any;
        self
    }

    /// Checks the request, and returns its origin; the error is for its sender. `page` is that of a gate at its path.
    pub(crate) fn check<'r>(
        &self,
        request: &'r request::Parts,
        page: Option<&dyn Page>,
    ) -> Result<Option<&'r HeaderValue>, Refusal> {
        if request.headers.keys_len() != request.headers.len() {
            check_single(&request.headers)?;
        }
        let host = request.headers.get(HOST).map(|host| host.as_bytes());
        if request.version == Version::HTTP_11 && host.is_none() {
            return Err((StatusCode::BAD_REQUEST, "the Host header is missing"));
        }
        self.check_sender(&request.uri, host, &request.headers, page).map_err(|why| (StatusCode::FORBIDDEN, why))
    }

    fn check_sender<'r>(
        &self,
        uri: &Uri,
        host: Option<&[u8]>,
        headers: &'r HeaderMap,
        page: Option<&dyn Page>,
    ) -> Result<Option<&'r HeaderValue>, &'static str> {
        let host = match &self.hosts {
            None => None,
            Some(hosts) => Some(host_of(uri, host, hosts)?),
        };
        let mut origins = headers.get_all(ORIGIN).iter();
        match (origins.next(), origins.next()) {
            (None, _) => Ok(None),
            (Some(origin), None) if self.origin_allowed(origin.as_bytes(), host, page) => Ok(Some(origin)),
            _ => Err("this Origin is not allowed; if you trust that site, allow it with .allow_origin(..), \
                    HttpOptions::allowed_origins, or the flag --allow-origin"),
        }
    }

    /// Whether this origin was configured explicitly: then the response gets CORS headers.
    pub(crate) fn is_named(&self, origin: &[u8]) -> bool {
        self.any_origin || self.origins.iter().any(|o| o.as_bytes().eq_ignore_ascii_case(origin))
    }

    /// What the response says to an origin that [`Guard::is_named`].
    pub(crate) fn told(&self, origin: &HeaderValue) -> HeaderValue {
        if self.any_origin { HeaderValue::from_static("*") } else { origin.clone() }
    }

    fn origin_allowed(&self, origin: &[u8], host: Option<&[u8]>, page: Option<&dyn Page>) -> bool {
        if self.is_named(origin) || page.is_some_and(Page::any_origin) {
            return true;
        }
        let rest =
            strip_prefix_ignore_case(origin, b"http://").or_else(|| strip_prefix_ignore_case(origin, b"https://"));
        // The forms of a gate's pages come from these pages, whatever other origins are allowed.
        let (Some(authority), Some(host), true) = (rest, host, self.same_host || page.is_some()) else { return false };
        // Either the page is from this host, whose name is on the list, or both are this machine.
        authority.eq_ignore_ascii_case(host) || (self.same_host && is_loopback(host) && is_loopback(authority))
    }
}

/// The request's host, if all places that name a host name an allowed one.
fn host_of<'a>(uri: &'a Uri, header: Option<&'a [u8]>, allowed: &[Box<str>]) -> Result<&'a [u8], &'static str> {
    const FOREIGN: &str = "this Host is not allowed; if clients are meant to use that name, allow it with .allow_host(..), \
                           HttpOptions::allowed_hosts, or the flag --accept-host";
    // HTTP/2 and proxies name the host in the request line; a Host header beside it must be allowed too.
    let authority = uri.authority().map(|a| a.as_str().as_bytes());
    let host = authority.or(header).ok_or("the Host header is missing")?;
    let fine = |h: &[u8]| is_among(h, allowed.iter().map(|a| a.as_bytes()));
    let both = fine(host) && (authority.is_none() || header.is_none_or(fine));
    if both { Ok(host) } else { Err(FOREIGN) }
}

/// Rejects duplicates of headers that identify host, session, revision or event: a proxy in front may read the other
/// one.
fn check_single(headers: &HeaderMap) -> Result<(), Refusal> {
    const SINGLE: [(HeaderName, &str); 4] = [
        (HOST, "more than one Host header; send one"),
        (SESSION_ID, "more than one mcp-session-id header; send one"),
        (PROTOCOL_VERSION, "more than one mcp-protocol-version header; send one"),
        (LAST_EVENT_ID, "more than one last-event-id header; send one"),
    ];
    match SINGLE.iter().find(|(name, _)| headers.get_all(name).iter().nth(1).is_some()) {
        Some((_, why)) => Err((StatusCode::BAD_REQUEST, why)),
        None => Ok(()),
    }
}

/// Whether a host, with or without its port, is one of these.
fn is_among<'a>(host: &[u8], mut allowed: impl Iterator<Item = &'a [u8]>) -> bool {
    let name = hostname(host).unwrap_or_default();
    // The length distinguishes most of them.
    let same = |a: &[u8], b: &[u8]| a.len() == b.len() && a.eq_ignore_ascii_case(b);
    allowed.any(|a| !a.is_empty() && (same(a, name) || same(a, host)))
}

fn is_loopback(authority: &[u8]) -> bool {
    is_among(authority, LOOPBACK.iter().map(|name| name.as_bytes()))
}

/// The host without its port; `None` if the port is invalid.
fn hostname(authority: &[u8]) -> Option<&[u8]> {
    let end = match authority.first() {
        Some(b'[') => authority.iter().position(|b| *b == b']')? + 1,
        // Ports are short, so the colon is looked for from the end; a second one is part of no name that is allowed.
        _ => authority.iter().rposition(|b| *b == b':').unwrap_or(authority.len()),
    };
    let (name, port) = authority.split_at(end);
    let fine = match port {
        [] => true,
        [b':', digits @ ..] => digits.len() <= 5 && digits.iter().all(u8::is_ascii_digit),
        _ => false,
    };
    fine.then_some(name)
}

fn strip_prefix_ignore_case<'a>(text: &'a [u8], prefix: &[u8]) -> Option<&'a [u8]> {
    let (head, rest) = text.split_at_checked(prefix.len())?;
    head.eq_ignore_ascii_case(prefix).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(guard: &Guard, host: &str, origin: &str) -> bool {
        let mut headers = HeaderMap::new();
        if !host.is_empty() {
            headers.insert(HOST, host.parse().unwrap());
        }
        if !origin.is_empty() {
            headers.insert(ORIGIN, origin.parse().unwrap());
        }
        guard.check_sender(&Uri::from_static("/mcp"), headers.get(HOST).map(|h| h.as_bytes()), &headers, None).is_ok()
    }

    #[test]
    fn by_default_only_this_machine_may_ask() {
        let guard = Guard::new(false, None, &["192.168.0.9".into()], None);
        for (host, origin, fine) in [
            ("localhost", "", true),
            ("LOCALHOST:80", "", true),
            ("127.0.0.1:8931", "http://localhost:6274", true),
            ("[::1]:8931", "https://127.0.0.1", true),
            ("192.168.0.9:1", "", true),
            ("192.168.0.9:1", "http://192.168.0.9:1", true),
            ("192.168.0.9:1", "http://localhost", false),
            ("192.168.0.9:1", "http://192.168.0.9:2", false),
            ("", "", false),
            ("evil.example", "", false),
            ("localhost.evil.example", "", false),
            ("localhost:80@evil.example", "", false),
            ("localhost:", "", true),
            ("127.0.0.1:8931", "http://evil.example", false),
            ("127.0.0.1:8931", "http://localhost.evil.example", false),
            ("127.0.0.1:8931", "null", false),
            ("127.0.0.1:8931", "file://localhost", false),
            ("[::1", "", false),
        ] {
            assert_eq!(check(&guard, host, origin), fine, "Host {host:?}, Origin {origin:?}");
        }
        // Names that are allowed are allowed besides the bound address.
        let named = Guard::new(false, Some(&["mcp.example".into()]), &["192.168.0.9".into()], None);
        assert!(
            check(&named, "mcp.example", "") && check(&named, "192.168.0.9:1", "") && !check(&named, "localhost", "")
        );
    }

    #[test]
    fn lists_replace_the_defaults_and_any_host_never_trusts_a_matching_origin() {
        let listed = Guard::new(
            false,
            Some(&["mcp.example:443".into(), "b.example".into()]),
            &[],
            Some(&["https://app.example/".into()]),
        );
        assert!(check(&listed, "mcp.example:443", "https://app.example"));
        assert!(!check(&listed, "mcp.example:80", "") && check(&listed, "b.example:80", ""));
        assert!(!check(&listed, "localhost", "") && !check(&listed, "b.example", "https://b.example"));
        let any = Guard::new(true, None, &[], None);
        assert!(check(&any, "evil.example", "") && check(&any, "", ""));
        assert!(!check(&any, "evil.example", "http://evil.example"));
    }

    #[test]
    fn the_request_line_counts_as_a_host_and_both_must_be_allowed() {
        let guard = Guard::new(false, None, &[], None);
        let mut headers = HeaderMap::new();
        let allows = |uri: &'static str, headers: &HeaderMap| {
            let host = headers.get(HOST).map(|host| host.as_bytes());
            guard.check_sender(&Uri::from_static(uri), host, headers, None).is_ok()
        };
        assert!(allows("http://localhost:9/mcp", &headers));
        assert!(!allows("http://evil.example/mcp", &headers));
        headers.insert(HOST, "localhost".parse().unwrap());
        assert!(!allows("http://evil.example/mcp", &headers));
        assert!(allows("http://localhost/mcp", &headers));
    }
}
