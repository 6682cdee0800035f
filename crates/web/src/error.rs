//! Errors of requests. Their messages name the host and contain no credentials.

use std::error::Error as StdError;
use std::fmt;
use std::io;
use std::sync::Arc;
use url::Url;

/// The error of a request, or of reading a response's body.
///
/// ```
/// use linchpin_web::{Reach, Web, WebError, WebErrorKind, WebOptions};
///
/// let web = Web::new(WebOptions::default().with(|options| options.reach = Reach::Public));
/// let error: WebError = web.allows("http://127.0.0.1:8080/").unwrap_err();
/// assert_eq!(error.kind(), WebErrorKind::Refused);
/// assert!(error.to_string().starts_with("127.0.0.1:8080 "));
/// ```
#[derive(Clone, Debug)]
pub struct WebError {
    kind: WebErrorKind,
    text: Arc<str>,
}

/// The kind of a [`WebError`].
///
/// ```
/// # use linchpin_web::{Web, WebErrorKind};
/// async fn is_private(web: &Web, url: &str) -> bool {
///     match web.get(url, http::HeaderMap::new()).await {
///         Err(error) => error.kind() == WebErrorKind::Refused,
///         Ok(_) => false,
///     }
/// }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum WebErrorKind {
    /// The rules forbid the address; nothing was sent.
    Refused,
    /// The host cannot be reached: unknown name, connection refused, or no network.
    Unreachable,
    /// The TLS handshake failed.
    Tls,
    /// A timeout expired.
    Timeout,
    /// The headers or the body exceed a limit.
    TooLong,
    /// The connection broke, or the response was not valid HTTP.
    Broken,
    /// The request itself cannot be sent.
    Invalid,
}

impl WebError {
    /// Returns the kind of the error.
    pub fn kind(&self) -> WebErrorKind {
        self.kind
    }

    /// Returns the message.
    pub fn text(&self) -> Arc<str> {
        self.text.clone()
    }

    pub(crate) fn invalid(text: String) -> WebError {
        WebError { kind: WebErrorKind::Invalid, text: text.into() }
    }

    pub(crate) fn too_long(text: String) -> WebError {
        WebError { kind: WebErrorKind::TooLong, text: text.into() }
    }

    pub(crate) fn refused(host: &str, why: &str) -> WebError {
        WebError {
            kind: WebErrorKind::Refused,
            text: format!("{host} {why}, where this client does not connect").into(),
        }
    }

    pub(crate) fn timeout(host: &str) -> WebError {
        WebError { kind: WebErrorKind::Timeout, text: format!("{host} did not respond in time").into() }
    }

    /// The error of a name lookup.
    pub(super) fn unresolved(host: &str, error: &(dyn StdError + 'static)) -> WebError {
        if let Some(vetoed) = error.downcast_ref::<super::resolve::Vetoed>() {
            return WebError::refused(host, vetoed.why);
        }
        WebError { kind: WebErrorKind::Unreachable, text: format!("the name of {host} is unknown").into() }
    }

    /// The error of a failed request.
    pub(super) fn of(error: reqwest::Error, host: &str) -> WebError {
        let error = error.without_url();
        if let Some(vetoed) = find::<super::resolve::Vetoed>(&error) {
            return WebError::refused(host, vetoed.why);
        }
        let (kind, text) = if let Some(tls) = find::<rustls::Error>(&error) {
            (WebErrorKind::Tls, tls_text(host, tls))
        } else if error.is_connect() && error.is_timeout() {
            (WebErrorKind::Timeout, format!("connecting to {host} took too long"))
        } else if error.is_timeout() {
            (WebErrorKind::Timeout, format!("{host} did not respond in time"))
        } else if error.is_connect() {
            (WebErrorKind::Unreachable, connect_text(host, &error))
        } else if error.is_builder() {
            (WebErrorKind::Invalid, format!("the request to {host} cannot be sent: {}", deepest(&error)))
        } else {
            (WebErrorKind::Broken, format!("the request to {host} failed: {}", deepest(&error)))
        };
        WebError { kind, text: text.into() }
    }

    /// The same for a request without TLS and without a proxy.
    pub(super) fn of_direct(error: &hyper_util::client::legacy::Error, host: &str) -> WebError {
        if let Some(vetoed) = find::<super::resolve::Vetoed>(error) {
            return WebError::refused(host, vetoed.why);
        }
        let timed_out = find::<io::Error>(error).is_some_and(|e| e.kind() == io::ErrorKind::TimedOut);
        let (kind, text) = if error.is_connect() && timed_out {
            (WebErrorKind::Timeout, format!("connecting to {host} took too long"))
        } else if error.is_connect() {
            (WebErrorKind::Unreachable, connect_text(host, error))
        } else {
            (WebErrorKind::Broken, format!("the request to {host} failed: {}", deepest(error)))
        };
        WebError { kind, text: text.into() }
    }

    /// The error of a body that ends early.
    pub(super) fn broken(error: &(dyn StdError + 'static), host: &str) -> WebError {
        let text = format!("the response of {host} was cut off: {}", deepest(error));
        WebError { kind: WebErrorKind::Broken, text: text.into() }
    }
}

impl fmt::Display for WebError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl StdError for WebError {}

impl From<WebError> for io::Error {
    fn from(e: WebError) -> io::Error {
        let kind = match e.kind {
            WebErrorKind::Refused => io::ErrorKind::PermissionDenied,
            WebErrorKind::Timeout => io::ErrorKind::TimedOut,
            WebErrorKind::Invalid => io::ErrorKind::InvalidInput,
            WebErrorKind::TooLong => io::ErrorKind::InvalidData,
            _ => io::ErrorKind::Other,
        };
        io::Error::new(kind, e)
    }
}

/// The URL that a text is.
pub(super) fn parsed(url: &str) -> Result<Url, WebError> {
    Url::parse(url).map_err(|e| WebError::invalid(format!("not a usable URL: {e}")))
}

/// Host and, where it is not the usual one, port.
pub(super) fn host(url: &Url) -> String {
    let host = url.host_str().unwrap_or("?");
    url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

fn tls_text(host: &str, error: &rustls::Error) -> String {
    match error {
        rustls::Error::InvalidCertificate(why) => {
            format!("the TLS certificate of {host} is not trusted: {}", certificate_text(why))
        }
        rustls::Error::InvalidMessage(_) => {
            format!("{host} does not use TLS; should the URL start with http:// instead of https://?")
        }
        other => format!("no secure connection to {host}: {other}"),
    }
}

/// Why a certificate is not accepted. What `rustls` shows of most of its errors is for programmers.
fn certificate_text(error: &rustls::CertificateError) -> &'static str {
    use rustls::CertificateError as E;
    match error {
        E::UnknownIssuer => "its issuer is not trusted by this machine",
        E::Expired | E::ExpiredContext { .. } => "it has expired",
        E::NotValidYet | E::NotValidYetContext { .. } => "it is not valid yet",
        E::NotValidForName | E::NotValidForNameContext { .. } => "it is for another name",
        E::BadSignature => "its signature is wrong",
        E::BadEncoding => "it is malformed",
        E::Revoked => "it was revoked",
        E::InvalidPurpose | E::InvalidPurposeContext { .. } => "it is not for servers",
        // The name of this error is only in a text.
        E::Other(other) if format!("{other:?}").contains("CaUsedAsEndEntity") => {
            "it is the certificate of an authority, not of a server"
        }
        _ => "it breaks the rules for certificates",
    }
}

fn connect_text(host: &str, error: &(dyn StdError + 'static)) -> String {
    if find::<super::resolve::Unknown>(error).is_some() {
        return format!("the name of {host} cannot be found: {}", deepest(error));
    }
    match find::<io::Error>(error).map(io::Error::kind) {
        Some(io::ErrorKind::ConnectionRefused) => format!("{host} refused the connection"),
        Some(io::ErrorKind::TimedOut) => format!("connecting to {host} took too long"),
        _ => format!("cannot connect to {host}: {}", deepest(error)),
    }
}

/// The first error of a type among the causes. I/O errors wrap others without naming them as their source.
fn find<'a, T: StdError + 'static>(error: &'a (dyn StdError + 'static)) -> Option<&'a T> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref::<T>() {
            return Some(found);
        }
        next = match error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
            Some(inner) => Some(inner),
            None => error.source(),
        };
    }
    None
}

fn deepest(error: &(dyn StdError + 'static)) -> String {
    let mut last = error;
    while let Some(source) = last.source() {
        last = source;
    }
    without_farewell(last.to_string())
}

/// What a server of HTTP/2 says when it closes a connection is its own words, and belongs in no sentence of ours: `h2`
/// shows it as bytes in quotes, behind the reason.
fn without_farewell(mut text: String) -> String {
    if let Some(at) = text.find(" (b\"") {
        text.truncate(at);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn why_a_certificate_is_refused_is_said_in_words() {
        use rustls::{CertificateError as E, OtherError};
        let other = |text: &'static str| E::Other(OtherError(std::sync::Arc::new(io::Error::other(text))));
        for (error, says) in [
            (E::UnknownIssuer, "its issuer is not trusted by this machine"),
            (E::NotValidYet, "it is not valid yet"),
            (other("CaUsedAsEndEntity"), "it is the certificate of an authority, not of a server"),
            (other("PathLenConstraintViolated"), "it breaks the rules for certificates"),
        ] {
            let text = tls_text("a.example", &rustls::Error::InvalidCertificate(error));
            assert_eq!(text, format!("the TLS certificate of a.example is not trusted: {says}"));
        }
    }

    #[test]
    fn what_a_server_says_as_it_closes_is_not_repeated() {
        for (text, want) in [
            (
                r#"connection error received: not a result of an error (b"ignore (b\"x\") this")"#,
                "connection error received: not a result of an error",
            ),
            ("connection closed before message completed", "connection closed before message completed"),
            ("invalid (code 1)", "invalid (code 1)"),
        ] {
            assert_eq!(without_farewell(text.to_owned()), want);
        }
    }
}
