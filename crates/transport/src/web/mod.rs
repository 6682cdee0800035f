//! The HTTP client of the project, and the only one: it follows rules about where it may connect.
//!
//! A [`Web`] sends requests whose bodies are small and known, and reads answers piece by piece. It follows no redirect by
//! itself, keeps no cookies, and takes no address that its [`Reach`] forbids: the rule holds for addresses written in a URL
//! and for every address a name resolves to, and the connection goes to the address that was checked, so that a name
//! cannot change its meaning in between. Rejected: checking the name first and letting the client resolve it again.
//!
//! `HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY` and `NO_PROXY` are honoured. **Behind a proxy it is the proxy that resolves
//! names and connects**, so that checking addresses is its task; addresses written in a URL are still checked here. This
//! machine itself (`localhost`, loopback addresses) is never asked for through a proxy.

mod body;
mod error;
mod follow;
mod reach;
mod resolve;
mod tls;

pub use body::WebBody;
pub use error::{WebError, WebErrorKind};
pub use reach::Reach;
pub use resolve::Lookup;

#[cfg(feature = "remote")]
pub(crate) use follow::{DPOP, SESSION, target};

use bytes::Bytes;
use http::{HeaderMap, Method};
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use url::{Host, Url};

/// What a [`Web`] may do.
#[derive(Clone, Debug)]
pub struct WebOptions {
    /// Where it may connect. Default [`Reach::Any`].
    pub reach: Reach,
    /// How long connecting may take, name lookup and TLS included, in milliseconds. Default 10,000.
    pub connect_ms_max: u64,
    /// How long a request may take until its answer's body has been read, in milliseconds. Default: without end.
    pub request_ms_max: Option<u64>,
    /// Longest body of an answer in bytes. Default: without end, for streams; readers give their own limits.
    pub body_bytes_max: Option<usize>,
    /// Most bytes of an answer's headers. Default 64 KiB. Over HTTP/1.1 up to about 400 KiB of them are read before it is
    /// noticed.
    pub header_bytes_max: usize,
    /// Whether the proxies that the environment names are used. Default `true`.
    pub proxies: bool,
    /// Root certificates (DER) that are trusted beside those of the platform. Default none.
    pub extra_roots: Vec<Vec<u8>>,
}

impl Default for WebOptions {
    fn default() -> Self {
        WebOptions {
            reach: Reach::Any,
            connect_ms_max: 10_000,
            request_ms_max: None,
            body_bytes_max: None,
            header_bytes_max: 64 << 10,
            proxies: true,
            extra_roots: Vec::new(),
        }
    }
}

/// The HTTP client. Cloning it is cheap; clones share the connections that are kept open.
///
/// Connections live on the tokio runtime of the request that opened them: use a `Web` in one runtime only.
#[derive(Clone)]
pub struct Web {
    inner: Arc<Inner>,
}

struct Inner {
    options: WebOptions,
    lookup: Option<Arc<dyn Lookup>>,
    proxy_hosts: Vec<String>,
    /// Built at the first request: a client that is never used costs nothing.
    client: OnceLock<Result<reqwest::Client, WebError>>,
    /// Where there are proxies, the one for this machine itself, which no proxy reaches.
    direct: OnceLock<Result<reqwest::Client, WebError>>,
}

/// The beginning of an answer, and its body. `Debug` shows the status only: headers may hold credentials.
pub struct WebResponse {
    /// Status and headers.
    pub parts: http::response::Parts,
    /// The body, not yet read.
    pub body: WebBody,
}

impl Web {
    /// A client with these options. Nothing happens yet.
    pub fn new(options: WebOptions) -> Web {
        Web::build(options, None)
    }

    /// The same with a name lookup of its own. What it finds is checked like everything else.
    pub fn with_lookup(options: WebOptions, lookup: impl Lookup) -> Web {
        Web::build(options, Some(Arc::new(lookup)))
    }

    fn build(options: WebOptions, lookup: Option<Arc<dyn Lookup>>) -> Web {
        let proxy_hosts = if options.proxies { resolve::proxy_hosts() } else { Vec::new() };
        let (client, direct) = (OnceLock::new(), OnceLock::new());
        Web { inner: Arc::new(Inner { options, lookup, proxy_hosts, client, direct }) }
    }

    /// What it may do.
    pub fn options(&self) -> &WebOptions {
        &self.inner.options
    }

    /// Sends a request and waits for the head of its answer, whatever its status; redirects are answers like others.
    ///
    /// Cancel-safe: dropping the future drops the request. A request that found its kept connection closed before
    /// anything was written is sent again on a new one.
    ///
    /// # Errors
    /// When the address is not allowed, cannot be reached, or answers something that is not HTTP. Errors name the host
    /// and never hold a credential.
    pub async fn send(&self, request: http::Request<Bytes>) -> Result<WebResponse, WebError> {
        let (parts, body) = request.into_parts();
        let url =
            Url::parse(&parts.uri.to_string()).map_err(|e| WebError::invalid(format!("not a usable URL: {e}")))?;
        self.request(parts.method, &url, parts.headers, body).await
    }

    /// The same for a URL that has been read already.
    pub(crate) async fn request(
        &self,
        method: Method,
        url: &Url,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<WebResponse, WebError> {
        let options = &self.inner.options;
        self.check(url)?;
        let client = self.client(url)?;
        let mut request = reqwest::Request::new(method, url.clone());
        *request.headers_mut() = headers;
        if !body.is_empty() {
            *request.body_mut() = Some(body.into());
        }
        let deadline = options.request_ms_max.map(|ms| Instant::now() + Duration::from_millis(ms));
        let sending = client.execute(request);
        let answer = match deadline {
            None => sending.await,
            Some(at) => match tokio::time::timeout_at(at.into(), sending).await {
                Ok(answer) => answer,
                Err(_) => return Err(WebError::timeout(&error::host(url))),
            },
        };
        let answer = answer.map_err(|e| WebError::of(e, url))?;
        let (parts, body) = http::Response::from(answer).into_parts();
        let bytes: usize = parts.headers.iter().map(|(n, v)| n.as_str().len() + v.len() + 4).sum();
        if bytes > options.header_bytes_max {
            let most = options.header_bytes_max;
            return Err(WebError::too_long(format!(
                "{} answered with more than {most} bytes of headers",
                error::host(url)
            )));
        }
        Ok(WebResponse { parts, body: WebBody::new(body, error::host(url), options.body_bytes_max, deadline) })
    }

    fn check(&self, url: &Url) -> Result<(), WebError> {
        let inner = &*self.inner;
        match url.host() {
            Some(Host::Ipv4(ip)) => inner.options.reach.check(ip.into()),
            Some(Host::Ipv6(ip)) => inner.options.reach.check(ip.into()),
            // The proxy's own name passes the resolver unchecked, so it must not be asked for here.
            Some(Host::Domain(name)) if inner.options.reach != Reach::Any => {
                match inner.proxy_hosts.iter().any(|host| host.eq_ignore_ascii_case(name)) {
                    true => Err("is the proxy itself"),
                    false => Ok(()),
                }
            }
            Some(_) => Ok(()),
            None => return Err(WebError::invalid("the URL names no host".to_owned())),
        }
        .map_err(|why| WebError::refused(&error::host(url), why))
    }

    fn client(&self, url: &Url) -> Result<&reqwest::Client, WebError> {
        let inner = &*self.inner;
        let client = if !inner.proxy_hosts.is_empty() && is_loopback(url) {
            inner.direct.get_or_init(|| inner.build(false))
        } else {
            inner.client.get_or_init(|| inner.build(inner.options.proxies))
        };
        client.as_ref().map_err(Clone::clone)
    }
}

impl Inner {
    fn build(&self, proxies: bool) -> Result<reqwest::Client, WebError> {
        let options = &self.options;
        let resolver = resolve::Vetted::new(options.reach, self.lookup.clone(), self.proxy_hosts.clone());
        let mut builder = reqwest::Client::builder()
            .tls_backend_preconfigured(tls::config(&options.extra_roots)?)
            .dns_resolver(resolver)
            .redirect(reqwest::redirect::Policy::none())
            .referer(false)
            .tcp_nodelay(true)
            .http2_max_header_list_size(u32::try_from(options.header_bytes_max).unwrap_or(u32::MAX))
            .connect_timeout(Duration::from_millis(options.connect_ms_max));
        if !proxies {
            builder = builder.no_proxy();
        }
        builder.build().map_err(|e| WebError::invalid(format!("the HTTP client cannot be built: {e}")))
    }
}

impl fmt::Debug for WebResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebResponse").field("status", &self.parts.status).finish_non_exhaustive()
    }
}

impl fmt::Debug for Web {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Web").field("reach", &self.inner.options.reach).finish_non_exhaustive()
    }
}

/// Whether a URL is about this machine, as far as its text says.
pub(crate) fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(ip)) => ip.is_loopback(),
        Some(Host::Ipv6(ip)) => ip.is_loopback() || ip.to_ipv4_mapped().is_some_and(|ip| ip.is_loopback()),
        // RFC 6761: these never leave the machine.
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        None => false,
    }
}
