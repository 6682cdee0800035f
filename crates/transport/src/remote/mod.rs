//! Servers on the web: Streamable HTTP in all its revisions, and the HTTP+SSE transport of 2024-11-05.
//!
//! Every message is a POST of its own, driven in the task of whoever waits for the answer: no channel stands between a
//! call and its connection. Only what a server sends unasked needs a task, and gets one when the opening is over.
//!
//! ```no_run
//! # fn main() -> std::io::Result<()> {
//! use linchpin_transport::remote::remote;
//!
//! let place = remote("https://example.com/mcp")?.bearer("the-token");
//! # Ok(()) }
//! ```
//!
//! Specification: "Streamable HTTP" of each revision, and "HTTP with SSE" of 2024-11-05.

mod answer;
mod head;
mod link;
mod listen;
mod place;
mod sse;

use crate::web::{Web, WebOptions, is_loopback};
use head::Heads;
use http::{HeaderName, HeaderValue};
use linchpin_proto::link::{Authorizer, Dial, Dialing, Link, LinkError};
use linchpin_proto::service::BoxFuture;
use place::Place;
use std::fmt;
use std::io;
use std::sync::{Arc, OnceLock};
use url::Url;

/// A server at an address. It can be dialled often; links share the connections that are kept open.
#[must_use = "nothing happens until it is dialled"]
pub struct Remote {
    url: Url,
    headers: Vec<(HeaderName, HeaderValue)>,
    authorizer: Option<Arc<dyn Authorizer>>,
    only_sse: bool,
    plain_http: bool,
    web: OnceLock<Web>,
    /// What was wrong with an option; told when it is dialled.
    mistake: Option<String>,
}

/// The server at an `http` or `https` address, for example `https://example.com/mcp`.
///
/// # Errors
/// When it is no such address, or holds a user name or password: those belong in a header.
pub fn remote(url: &str) -> io::Result<Remote> {
    let wrong = |why: String| io::Error::new(io::ErrorKind::InvalidInput, why);
    let mut url = Url::parse(url.trim()).map_err(|e| wrong(format!("not a usable address: {e}")))?;
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        return Err(wrong(format!("{}: is no web address; http:// and https:// are", url.scheme())));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(wrong("the address holds a user name or password; give them in a header instead".to_owned()));
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
    /// Sends a header with every request. Headers of the protocol cannot be replaced. When the name suggests a credential
    /// (`authorization`, `cookie`, or with `token`, `secret`, `key`, `auth` and the like in it) the value is shown nowhere.
    pub fn header(mut self, name: &str, value: &str) -> Remote {
        let parsed = (HeaderName::from_bytes(name.as_bytes()), HeaderValue::from_str(value));
        match parsed {
            (Ok(name), Ok(mut value)) => {
                value.set_sensitive(head::is_credential(&name));
                self.headers.push((name, value));
            }
            (Err(_), _) => self.mistake = Some("the name of a header is not usable".to_owned()),
            (Ok(name), Err(_)) => self.mistake = Some(format!("the value of the header {name} is not usable")),
        }
        self
    }

    /// Sends `Authorization: Bearer …` with every request.
    pub fn bearer(self, token: &str) -> Remote {
        self.header("authorization", &format!("Bearer {token}"))
    }

    /// Lets something get permission: it puts credentials on requests and reacts when they are refused.
    pub fn auth(mut self, authorizer: impl Authorizer) -> Remote {
        self.authorizer = Some(Arc::new(authorizer));
        self
    }

    /// Speaks only the HTTP+SSE transport of 2024-11-05. Without this it is tried last, where the specification's rules for
    /// old servers lead.
    pub fn sse(mut self) -> Remote {
        self.only_sse = true;
        self
    }

    /// Uses this HTTP client. Without it one is made that connects anywhere, with the limits of the first dialling.
    pub fn web(mut self, web: Web) -> Remote {
        self.web = OnceLock::from(web);
        self
    }

    /// Sends credentials without TLS to other machines. Without this such a server is not dialled, because anybody on the
    /// way could take them.
    pub fn allow_plain_http(mut self) -> Remote {
        self.plain_http = true;
        self
    }

    fn open(&self, dialing: Dialing) -> Result<Arc<Place>, LinkError> {
        if let Some(mistake) = &self.mistake {
            return Err(LinkError::Unreachable(mistake.as_str().into()));
        }
        let credentials = self.authorizer.is_some() || self.headers.iter().any(|(_, value)| value.is_sensitive());
        if credentials && !self.plain_http && self.url.scheme() == "http" && !is_loopback(&self.url) {
            let why = format!(
                "{} would be sent credentials without TLS; use https://, or allow_plain_http() where that is meant",
                self.name()
            );
            return Err(LinkError::Unreachable(why.into()));
        }
        let web = self.web.get_or_init(|| {
            Web::new(WebOptions {
                connect_ms_max: dialing.limits.connect_ms_max,
                header_bytes_max: dialing.limits.header_bytes_max,
                ..WebOptions::default()
            })
        });
        let (web, heads) = (web.clone(), Heads::new(&self.headers));
        Ok(Arc::new(Place::new(self.url.clone(), self.name().into(), web, heads, self.authorizer.clone(), dialing)))
    }
}

impl Dial for Remote {
    fn name(&self) -> String {
        place::without_secrets(&self.url)
    }

    fn key(&self) -> Option<String> {
        Some(self.name())
    }

    fn dial(&self, dialing: Dialing) -> BoxFuture<'_, Result<Arc<dyn Link>, LinkError>> {
        Box::pin(async move {
            let place = self.open(dialing)?;
            if self.only_sse {
                return sse::open(place).await.map(|link| link as Arc<dyn Link>);
            }
            Ok(Arc::new(link::Streamable::new(place)) as Arc<dyn Link>)
        })
    }
}

impl fmt::Debug for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Remote").field("url", &self.name()).finish_non_exhaustive()
    }
}
