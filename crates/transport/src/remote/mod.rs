//! Remote servers: Streamable HTTP in all its revisions, and the HTTP+SSE transport of 2024-11-05.
//!
//! Every message is a separate POST, driven in the task of the caller that waits for the response: there is no channel
//! between a call and its connection. Only unsolicited messages of a server need a task, which starts once the
//! connection is open.
//!
//! ```no_run
//! # fn main() -> std::io::Result<()> {
//! use linchpin_transport::remote::remote;
//!
//! let server = remote("https://example.com/mcp")?.bearer("the-token");
//! # Ok(()) }
//! ```
//!
//! Specification: "Streamable HTTP" of each revision, and "HTTP with SSE" of 2024-11-05.

mod answer;
mod endpoint;
mod error_body;
mod head;
mod link;
mod listen;
mod sse;

use endpoint::Endpoint;
use head::Heads;
use http::{HeaderName, HeaderValue};
use linchpin_core::connector::{Authorizer, ClientTransport, ConnectOptions, Connector, TransportError};
use linchpin_core::service::BoxFuture;
use linchpin_web::{Web, WebOptions, is_loopback};
use std::fmt;
use std::io;
use std::sync::{Arc, OnceLock};
use url::Url;

/// A server at a URL, created by [`remote`]. Several connections to it share a pool of HTTP connections.
///
/// ```
/// use linchpin_transport::remote::remote;
///
/// let server = remote("https://mcp.example/mcp")?.header("x-api-key", "the-key");
/// # std::io::Result::Ok(())
/// ```
#[must_use = "nothing happens until it is connected"]
pub struct Remote {
    url: Url,
    headers: Vec<(HeaderName, HeaderValue)>,
    authorizer: Option<Arc<dyn Authorizer>>,
    only_sse: bool,
    plain_http: bool,
    web: OnceLock<Web>,
    /// An invalid option; returned when connecting.
    mistake: Option<String>,
}

/// Returns a connector to the server at an `http` or `https` URL, for example `https://example.com/mcp`.
///
/// # Errors
/// If the URL is invalid, or contains a user name or password: those belong in a header.
///
/// ```
/// use linchpin_transport::remote::remote;
///
/// let server = remote("https://mcp.example/mcp")?.bearer("the-token");
/// assert!(remote("ftp://mcp.example").is_err());
/// # std::io::Result::Ok(())
/// ```
#[doc(alias = "StreamableHttpClientTransport")]
pub fn remote(url: &str) -> io::Result<Remote> {
    let wrong = |why: String| io::Error::new(io::ErrorKind::InvalidInput, why);
    let mut url = Url::parse(url.trim()).map_err(|e| wrong(format!("invalid URL: {e}")))?;
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        return Err(wrong(format!("expected an http:// or https:// URL, not {}:", url.scheme())));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(wrong("the URL contains a user name or password; pass them in a header instead".to_owned()));
    }
    url.set_fragment(None);
    Ok(Remote {
        url,
        headers: Vec::new(),
        authorizer: None,
        only_sse: false,
        plain_http: false,
        web: OnceLock::new(),
        mistake: None,
    })
}

impl Remote {
    /// Sends a header with every request, in place of an earlier one of the same name. Headers of the protocol cannot
    /// be replaced. If the name or the value is invalid, connecting returns an error.
    ///
    /// If the name suggests a credential (`authorization`, `cookie`, or a name that contains `token`, `secret`, `key`,
    /// `auth` or the like), the value is never shown.
    pub fn header(mut self, name: &str, value: &str) -> Remote {
        let parsed = (HeaderName::from_bytes(name.as_bytes()), HeaderValue::from_str(value));
        match parsed {
            (Ok(name), Ok(mut value)) => {
                value.set_sensitive(head::is_credential(&name));
                self.headers.push((name, value));
            }
            (Err(_), _) => self.mistake = Some("the name of a header is invalid".to_owned()),
            (Ok(name), Err(_)) => self.mistake = Some(format!("the value of the header {name} is invalid")),
        }
        self
    }

    /// Sends `Authorization: Bearer …` with every request.
    pub fn bearer(self, token: &str) -> Remote {
        self.header("authorization", &format!("Bearer {token}"))
    }

    /// Sets an authorizer, which adds credentials to requests and reacts when they are rejected.
    pub fn auth(mut self, authorizer: impl Authorizer) -> Remote {
        self.authorizer = Some(Arc::new(authorizer));
        self
    }

    /// Uses only the HTTP+SSE transport of 2024-11-05. By default it is the last fallback, as the specification
    /// requires.
    pub fn sse(mut self) -> Remote {
        self.only_sse = true;
        self
    }

    /// Uses this HTTP client. Default: a client that connects anywhere, with the limits of the first connection.
    pub fn web(mut self, web: Web) -> Remote {
        self.web = OnceLock::from(web);
        self
    }

    /// Allows sending credentials to other machines without TLS.
    ///
    /// Without this, connecting to such a server is an error, because the credentials could be intercepted.
    pub fn allow_plain_http(mut self) -> Remote {
        self.plain_http = true;
        self
    }

    fn open(&self, options: ConnectOptions) -> Result<Arc<Endpoint>, TransportError> {
        if let Some(mistake) = &self.mistake {
            return Err(TransportError::Unreachable(mistake.as_str().into()));
        }
        let credentials = self.authorizer.is_some() || self.headers.iter().any(|(_, value)| value.is_sensitive());
        if credentials && !self.plain_http && self.url.scheme() == "http" && !is_loopback(self.url.as_str()) {
            let why = format!(
                "refusing to send credentials to {} without TLS; use https://, or allow_plain_http() if intended",
                self.name()
            );
            return Err(TransportError::Unreachable(why.into()));
        }
        let web = self.web.get_or_init(|| {
            let limits = &options.limits.connections;
            Web::new(WebOptions::default().with(|web| {
                web.connect_ms_max = limits.connect_ms_max;
                web.header_bytes_max = limits.header_bytes_max;
            }))
        });
        let (web, heads) = (web.clone(), Heads::new(&self.headers));
        Ok(Arc::new(Endpoint::new(self.url.clone(), self.name().into(), web, heads, self.authorizer.clone(), options)))
    }
}

impl Connector for Remote {
    fn name(&self) -> String {
        endpoint::without_secrets(&self.url)
    }

    fn key(&self) -> Option<String> {
        Some(self.name())
    }

    fn connect(&self, options: ConnectOptions) -> BoxFuture<'_, Result<Arc<dyn ClientTransport>, TransportError>> {
        Box::pin(async move {
            let place = self.open(options)?;
            if self.only_sse {
                return sse::open(place).await.map(|link| link as Arc<dyn ClientTransport>);
            }
            Ok(Arc::new(link::Streamable::new(place)) as Arc<dyn ClientTransport>)
        })
    }
}

impl fmt::Debug for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Remote").field("url", &self.name()).finish_non_exhaustive()
    }
}
