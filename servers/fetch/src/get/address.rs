//! URLs: parsing the requested one, and showing URLs in errors.

use linchpin::transport::web::{WebError, WebErrorKind};
use linchpin_kit::{ErrorKind, ToolError};
use std::borrow::Cow;
use url::{Host, Url};

const URL_BYTES_MAX: usize = 16 << 10;

/// The target of a redirect. It is third-party content and not repeated in errors.
pub(crate) fn redirected(asked: &Url, next: &str) -> Result<Url, ToolError> {
    let no_page = |_| ToolError::new(format!("Failed to fetch {}: it redirects to an invalid URL", shown(asked)));
    parse(next).map_err(no_page)
}

/// Parses a requested URL.
///
/// # Errors
/// When it is invalid or has an unsupported scheme.
pub(crate) fn parse(text: &str) -> Result<Url, ToolError> {
    if text.len() > URL_BYTES_MAX {
        return Err(ToolError::invalid(format!("The URL is longer than {URL_BYTES_MAX} bytes")));
    }
    let url = Url::parse(text.trim()).map_err(|e| {
        ToolError::invalid(format!("Invalid URL: {}: {e}", without_user(text.trim())))
            .hint("Pass an absolute URL, for example https://example.com/page.")
    })?;
    match url.scheme() {
        "http" | "https" if url.has_host() => Ok(url),
        // Without `//`, the apparent scheme may be a user name before a password.
        _ if url.cannot_be_a_base() && text.contains('@') => {
            Err(ToolError::invalid(format!("Failed to fetch {}: unsupported URL scheme", without_user(text.trim())))
                .hint("Only http and https URLs are supported."))
        }
        other => Err(ToolError::invalid(format!("Failed to fetch {}: unsupported URL scheme {other}", shown(&url)))
            .hint("Only http and https URLs are supported.")),
    }
}

/// A URL for display: without user name and password, either of which may be a token.
pub(crate) fn shown(url: &Url) -> String {
    let mut url = url.clone();
    if !url.username().is_empty() {
        let _ = url.set_username("***");
    }
    if url.password().is_some() {
        let _ = url.set_password(Some("***"));
    }
    url.to_string()
}

/// The same for an invalid URL.
fn without_user(text: &str) -> Cow<'_, str> {
    let Some(host) = text.rfind('@') else { return text.into() };
    let user = text.find("//").map_or(0, |slashes| slashes + 2);
    if user < host { format!("{}***{}", &text[..user], &text[host..]).into() } else { text.into() }
}

/// Whether a URL is on this machine, so that the request does not cross a network.
pub(crate) fn is_here(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(ip)) => ip.is_loopback(),
        Some(Host::Ipv6(ip)) => ip.is_loopback(),
        Some(Host::Domain(name)) => name == "localhost",
        None => false,
    }
}

/// The error of a failed request to `here`, to which `asked` led: a host name from a redirect is not repeated.
pub(crate) fn why(asked: &Url, here: &Url, error: &WebError) -> String {
    let text = error.to_string();
    match here.host_str() {
        Some(host) if asked.host_str() != Some(host) => {
            let named = here.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
            let text = text.replacen(&named, ELSEWHERE, 1);
            if text.contains(host) { format!("{ELSEWHERE} did not answer") } else { text }
        }
        _ => text,
    }
}

const ELSEWHERE: &str = "the site it redirects to";

/// A robots.txt for display: by its URL if its host was requested.
pub(crate) fn place_shown(asked: &Url, place: &Url) -> String {
    if asked.host_str() == place.host_str() {
        shown(place)
    } else {
        format!("of the site that {} redirects to", shown(asked))
    }
}

/// The error of a failed request to `here`, to which `asked` led.
pub(crate) fn failed(asked: &Url, here: &Url, error: &WebError) -> ToolError {
    let (url, kind, error) = (shown(asked), error.kind(), why(asked, here, error));
    match kind {
        WebErrorKind::Refused => ToolError::denied(format!("Refused to fetch {url}: {error}")).hint(
            "Do not try other ways to access it: the operator decides what this server may access \
             (--allow-private-ips, --allow-private-host, --allow-host, --deny-host, --proxy-trusts-dns).",
        ),
        WebErrorKind::TooLong => ToolError::new(format!("Failed to fetch {url}: {error}"))
            .kind(kind_of(kind))
            .hint("The operator can raise the limit with --max-bytes."),
        _ => ToolError::new(format!("Failed to fetch {url}: {error}")).kind(kind_of(kind)),
    }
}

/// The error kind of a failed request.
pub(crate) fn kind_of(kind: WebErrorKind) -> ErrorKind {
    match kind {
        WebErrorKind::Refused => ErrorKind::Denied,
        WebErrorKind::TooLong => ErrorKind::Limited { retry_after: None },
        WebErrorKind::Timeout => ErrorKind::Timeout,
        WebErrorKind::Invalid => ErrorKind::Invalid,
        _ => ErrorKind::Upstream { status: None },
    }
}
