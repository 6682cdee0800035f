//! An HTTP client with rules about where it may connect. All crates of Linchpin use it.
//!
//! A [`Web`] sends requests with small, complete bodies, and reads response bodies in chunks. It does not follow
//! redirects by itself, keeps no cookies, and connects to no address that its [`Reach`] forbids: the rule applies to
//! addresses in a URL and to every address that a name resolves to, and the client connects to the address that was
//! checked, so that a name cannot resolve differently in between.
//!
//! `HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY` and `NO_PROXY` are respected. **Behind a proxy, the proxy resolves
//! names and connects**, so the proxy must check addresses; addresses in a URL are still checked here. With
//! [`WebOptions::proxy_trusts_dns`] off, names are also resolved and checked here before they are passed to the proxy.
//! Loopback hosts (`localhost`, loopback addresses) are never requested through a proxy.

// Files import downwards, in this order:
//
// ```text
// follow
// body  direct  proxy
// address  forward  retry  tls
// error
// reach  resolve  rules
// ```

mod address;
mod body;
mod direct;
mod error;
mod follow;
#[cfg(feature = "forward-proxy")]
mod forward;
mod proxy;
mod reach;
mod resolve;
mod retry;
mod rules;
mod tls;

pub use address::Address;
pub use body::WebBody;
pub use error::{WebError, WebErrorKind};
#[cfg(feature = "forward-proxy")]
pub use forward::ForwardProxy;
pub use proxy::{NoProxy, Proxy};
pub use reach::Reach;
pub use resolve::Lookup;
pub use retry::{RETRIES_MAX, retry_after};
pub use rules::{HostRule, NoHost};
pub use tls::roots_from_pem;

use bytes::Bytes;
use http::{HeaderMap, Method};
use std::fmt;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use url::{Host, Url};

/// Options of a [`Web`].
///
/// ```
/// use linchpin_web::{Reach, WebOptions};
///
/// let options = WebOptions::default().with(|options| options.reach = Reach::Public);
/// assert!(options.proxies);
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct WebOptions {
    /// Where it may connect. Default [`Reach::Any`].
    pub reach: Reach,
    /// How long connecting may take, name lookup and TLS included, in milliseconds. Default 10,000.
    pub connect_ms_max: u64,
    /// How long a request may take, including its response's body, in milliseconds. Default: no timeout.
    pub request_ms_max: Option<u64>,
    /// The maximum length of a response body in bytes. Default: no limit, for streams; callers set their own limits
    /// when reading.
    pub body_bytes_max: Option<usize>,
    /// The maximum size of a response's headers in bytes. Default 64 KiB. Over HTTP/1.1, up to about 400 KiB are read
    /// before the limit applies.
    pub header_bytes_max: usize,
    /// Whether to use the proxies named by the environment and, on macOS and Windows, by the system's settings. Default
    /// `true`.
    pub proxies: bool,
    /// A proxy instead of those of the environment. Default: `None`.
    pub proxy: Option<Proxy>,
    /// Whether names that could not be checked here may be passed to a proxy, because only it can resolve them.
    /// Otherwise a name that resolves to a forbidden address, or not at all, is rejected. Default `true`.
    pub proxy_trusts_dns: bool,
    /// Whether only `https` is allowed. Default `false`.
    pub https_only: bool,
    /// Whether ports of other protocols are rejected, as browsers do (22, 25, 6667, …). Default `false`.
    pub web_ports_only: bool,
    /// The only allowed hosts; empty allows every host. Default empty.
    pub only_hosts: Vec<HostRule>,
    /// Hosts that are never allowed; takes precedence over `only_hosts`. Default empty.
    pub deny_hosts: Vec<HostRule>,
    /// Hosts to which `reach` does not apply, because the operator named them. Default empty.
    pub trusted_hosts: Vec<HostRule>,
    /// Whether to accept and decompress compressed responses (feature `decompress`). Length limits then apply to the
    /// decompressed body. Default `false`.
    pub decompress: bool,
    /// How often [`Web::get`] retries when a server is busy, at most [`RETRIES_MAX`] times. Default 0.
    pub retries_max: u32,
    /// Trusted root certificates (DER) in addition to those of the platform. Default: none.
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
            proxy: None,
            proxy_trusts_dns: true,
            https_only: false,
            web_ports_only: false,
            only_hosts: Vec::new(),
            deny_hosts: Vec::new(),
            trusted_hosts: Vec::new(),
            decompress: false,
            retries_max: 0,
            extra_roots: Vec::new(),
        }
    }
}

impl WebOptions {
    /// Changes some of these options.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }
}

/// A boxed future, as returned by a [`Lookup`].
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The HTTP client. Cheap to clone; clones share the connection pool.
///
/// Connections live on the tokio runtime of the request that opened them: use a `Web` in one runtime only.
///
/// ```
/// use linchpin_web::{Reach, Web, WebOptions};
///
/// # async fn example() -> Result<(), linchpin_web::WebError> {
/// let web = Web::new(WebOptions::default().with(|options| {
///     options.reach = Reach::Public;
///     options.request_ms_max = Some(30_000);
/// }));
/// let mut response = web.get("https://example.com/", http::HeaderMap::new()).await?;
/// let body = response.body.read_all(1 << 20).await?;
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Web {
    inner: Arc<Inner>,
}

struct Inner {
    options: WebOptions,
    lookup: Option<Arc<dyn Lookup>>,
    proxy_hosts: Vec<String>,
    /// Built on the first request: an unused client costs nothing. The first is the usual one; the second,
    /// if there are proxies, is for loopback hosts, which are never proxied; then the same two for trusted hosts.
    clients: [OnceLock<Result<reqwest::Client, WebError>>; 4],
    /// The same without TLS and without a proxy: the usual one, and that for trusted hosts.
    direct: [OnceLock<direct::Direct>; 2],
}

/// A response whose body is not yet read. `Debug` shows the status only: headers may contain credentials.
///
/// ```
/// # use linchpin_web::{Web, WebError};
/// async fn title(web: &Web, url: &str) -> Result<String, WebError> {
///     let mut response = web.get(url, http::HeaderMap::new()).await?;
///     println!("{} {}", response.parts.status, response.url());
///     Ok(String::from_utf8_lossy(&response.body.read_all(1 << 20).await?).into_owned())
/// }
/// ```
pub struct WebResponse {
    /// Status and headers.
    pub parts: http::response::Parts,
    /// The body, not yet read.
    pub body: WebBody,
    address: Address,
}

impl WebResponse {
    /// Returns the URL of the request.
    pub fn url(&self) -> &str {
        self.address.url().as_str()
    }

    /// Returns the absolute URL that the response redirects to, if any.
    ///
    /// # Errors
    /// If that is not an http:// or https:// URL.
    pub fn next(&self) -> Result<Option<String>, WebError> {
        if !follow::redirects(self.parts.status) {
            return Ok(None);
        }
        Ok(follow::target(self.address.url(), &self.parts.headers)?.map(String::from))
    }
}

type Sending<'a> = Pin<Box<dyn Future<Output = Result<WebResponse, WebError>> + Send + 'a>>;

impl Web {
    /// Creates a client with these options, without connecting.
    pub fn new(options: WebOptions) -> Web {
        Web::build(options, None)
    }

    /// Creates a client with a custom name lookup. Its results are checked like all others.
    pub fn with_lookup(options: WebOptions, lookup: impl Lookup) -> Web {
        Web::build(options, Some(Arc::new(lookup)))
    }

    fn build(options: WebOptions, lookup: Option<Arc<dyn Lookup>>) -> Web {
        let proxy_hosts = proxy::hosts(options.proxy.as_ref(), options.proxies);
        let (clients, direct) = ([const { OnceLock::new() }; 4], [const { OnceLock::new() }; 2]);
        Web { inner: Arc::new(Inner { options, lookup, proxy_hosts, clients, direct }) }
    }

    /// Returns the options.
    pub fn options(&self) -> &WebOptions {
        &self.inner.options
    }

    /// Sends a request and waits for the headers of its response, with any status; redirects are not followed.
    ///
    /// Cancel-safe: dropping the future drops the request. If a pooled connection was closed before
    /// anything was written, the request is sent again on a new one.
    ///
    /// # Errors
    /// If the address is not allowed, cannot be reached, or the response is not HTTP. Errors name the host
    /// and never contain a credential.
    pub async fn send(&self, request: http::Request<Bytes>) -> Result<WebResponse, WebError> {
        let (parts, body) = request.into_parts();
        self.request(parts.method, &parts.uri.to_string(), parts.headers, body).await
    }

    /// Sends a request like [`Web::send`], for a URL as users write it.
    ///
    /// # Errors
    /// See [`Web::send`].
    pub async fn request(
        &self,
        method: Method,
        url: &str,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<WebResponse, WebError> {
        self.request_at(method, &url.parse()?, headers, body).await
    }

    /// Sends a request like [`Web::send`], to an address that was already parsed; [`Address`] has an example.
    /// Cancel-safe.
    ///
    /// # Errors
    /// See [`Web::send`].
    pub async fn request_at(
        &self,
        method: Method,
        address: &Address,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<WebResponse, WebError> {
        self.request_until(method, address, headers, body, self.deadline()).await
    }

    /// Sends a request like [`Web::request`], with a deadline in addition to the client's timeout; the earlier one
    /// applies.
    ///
    /// Use it for several requests with a common deadline, or for a deadline by tokio's clock. Cancel-safe.
    ///
    /// # Errors
    /// See [`Web::send`].
    pub async fn request_by(
        &self,
        method: Method,
        url: &str,
        headers: HeaderMap,
        body: Bytes,
        by: Instant,
    ) -> Result<WebResponse, WebError> {
        let by = self.deadline().map_or(by, |own| own.min(by));
        self.request_until(method, &url.parse()?, headers, body, Some(by)).await
    }

    /// Checks whether the rules allow this URL, as far as possible without a name lookup. Does not connect.
    ///
    /// # Errors
    /// If the URL is not allowed, or not valid.
    pub fn allows(&self, url: &str) -> Result<(), WebError> {
        let url = error::parsed(url)?;
        if !matches!(url.scheme(), "http" | "https" | "ws" | "wss") {
            return Err(WebError::invalid(format!("{}: URLs are not requested", url.scheme())));
        }
        self.check(&url)
    }

    /// Returns the addresses of the host of this URL, with its port; all of them are allowed. For programs that open
    /// connections themselves. Proxies are not considered.
    ///
    /// # Errors
    /// Those of [`Web::send`], if the host is not allowed or unknown.
    ///
    /// ```
    /// use linchpin_web::{Reach, Web, WebOptions};
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let web = Web::new(WebOptions::default().with(|options| options.reach = Reach::Public));
    /// assert!(web.addresses("http://127.0.0.1:8080/").await.is_err());
    /// assert_eq!(web.addresses("http://8.8.8.8/").await.unwrap(), ["8.8.8.8:80".parse().unwrap()]);
    /// # });
    /// ```
    pub async fn addresses(&self, url: &str) -> Result<Vec<SocketAddr>, WebError> {
        self.allows(url)?;
        let url = error::parsed(url)?;
        let inner = &*self.inner;
        let port = url.port_or_known_default().unwrap_or(0);
        let found = match url.host() {
            Some(Host::Ipv4(ip)) => vec![ip.into()],
            Some(Host::Ipv6(ip)) => vec![ip.into()],
            Some(Host::Domain(name)) => {
                let limit = Duration::from_millis(inner.options.connect_ms_max);
                let found = resolve::vetted(inner.reach(&url), inner.lookup.as_deref(), name);
                match tokio::time::timeout(limit, found).await {
                    Ok(Ok(found)) => found,
                    Ok(Err(e)) => return Err(WebError::unresolved(&error::host(&url), &*e)),
                    Err(_) => return Err(WebError::timeout(&error::host(&url))),
                }
            }
            None => return Err(WebError::invalid("the URL has no host".to_owned())),
        };
        Ok(found.into_iter().map(|ip| SocketAddr::new(ip, port)).collect())
    }

    /// Returns the deadline of a request that starts now.
    fn deadline(&self) -> Option<Instant> {
        let most = self.inner.options.request_ms_max?;
        Instant::now().checked_add(Duration::from_millis(most))
    }

    /// Boxed here: as an `async fn` its code, and the HTTP client's below it, would be in each crate that sends.
    #[inline(never)]
    fn request_until<'a>(
        &'a self,
        method: Method,
        address: &'a Address,
        headers: HeaderMap,
        body: Bytes,
        deadline: Option<Instant>,
    ) -> Sending<'a> {
        Box::pin(self.response(method, address, headers, body, deadline))
    }

    async fn response(
        &self,
        method: Method,
        address: &Address,
        headers: HeaderMap,
        body: Bytes,
        deadline: Option<Instant>,
    ) -> Result<WebResponse, WebError> {
        let (options, url) = (&self.inner.options, address.url());
        self.check(url)?;
        let sending = async {
            if self.inner.is_direct(url) {
                let answer = self.inner.direct(url).send(method, address, headers, body).await?;
                return Ok(answer.map(body::Source::Direct));
            }
            let client = self.client(url)?;
            self.check_for_proxy(url, deadline).await?;
            let mut request = reqwest::Request::new(method, url.clone());
            *request.headers_mut() = headers;
            if !body.is_empty() {
                *request.body_mut() = Some(body.into());
            }
            let answer = client.execute(request).await.map_err(|e| WebError::of(e, address.host()))?;
            Ok(http::Response::from(answer).map(body::Source::Reqwest))
        };
        let answer = match deadline {
            None => sending.await?,
            Some(at) => match tokio::time::timeout_at(at.into(), sending).await {
                Ok(answer) => answer?,
                Err(_) => return Err(WebError::timeout(address.host())),
            },
        };
        let (parts, body) = answer.into_parts();
        let bytes: usize = parts.headers.iter().map(|(n, v)| n.as_str().len() + v.len() + 4).sum();
        if bytes > options.header_bytes_max {
            let most = options.header_bytes_max;
            let host = address.host();
            return Err(WebError::too_long(format!("the response headers of {host} exceed {most} bytes")));
        }
        let body = WebBody::new(body, address.clone(), options.body_bytes_max, deadline);
        Ok(WebResponse { parts, body, address: address.clone() })
    }

    /// Checks the URL alone, without name lookup.
    fn check(&self, url: &Url) -> Result<(), WebError> {
        let inner = &*self.inner;
        let options = &inner.options;
        let named = |rules: &[HostRule]| rules.iter().any(|rule| rule.covers(url));
        let refused = if options.https_only && url.scheme() != "https" {
            Some("is requested without TLS")
        } else if options.web_ports_only && rules::is_bad_port(url.port_or_known_default().unwrap_or(0)) {
            Some("is at a port of another protocol than HTTP")
        } else if named(&options.deny_hosts) {
            Some("is a host that the operator excluded")
        } else if !options.only_hosts.is_empty() && !named(&options.only_hosts) {
            Some("is not among the hosts that the operator allowed")
        } else {
            let reach = inner.reach(url);
            match url.host() {
                Some(Host::Ipv4(ip)) => reach.check(ip.into()).err(),
                Some(Host::Ipv6(ip)) => reach.check(ip.into()).err(),
                // The resolver does not check the proxy's own name, so it must not be requested here.
                Some(Host::Domain(name)) if reach != Reach::Any && inner.is_proxy(name) => Some("is the proxy itself"),
                Some(Host::Domain(_)) => None,
                None => return Err(WebError::invalid("the URL has no host".to_owned())),
            }
        };
        refused.map_or(Ok(()), |why| Err(WebError::refused(&error::host(url), why)))
    }

    /// Resolves and checks a name that a proxy would resolve, unless the proxy is trusted with that.
    async fn check_for_proxy(&self, url: &Url, deadline: Option<Instant>) -> Result<(), WebError> {
        let inner = &*self.inner;
        let reach = inner.reach(url);
        let Some(Host::Domain(name)) = url.host() else { return Ok(()) };
        if inner.proxy_hosts.is_empty() || inner.options.proxy_trusts_dns || reach == Reach::Any || is_local(url) {
            return Ok(());
        }
        let at = deadline.unwrap_or_else(|| Instant::now() + Duration::from_millis(inner.options.connect_ms_max));
        let found = resolve::vetted(reach, inner.lookup.as_deref(), name);
        let why = match tokio::time::timeout_at(at.into(), found).await {
            Err(_) => return Err(WebError::timeout(&error::host(url))),
            Ok(Ok(_)) => return Ok(()),
            Ok(Err(error)) => match error.downcast_ref::<resolve::Vetoed>() {
                Some(vetoed) => vetoed.why,
                None => "cannot be resolved and checked locally, and the proxy is not trusted to resolve it",
            },
        };
        Err(WebError::refused(&error::host(url), why))
    }

    fn client(&self, url: &Url) -> Result<&reqwest::Client, WebError> {
        let inner = &*self.inner;
        let direct = !inner.proxy_hosts.is_empty() && is_local(url);
        let trusted = inner.is_trusted(url);
        let place = &inner.clients[usize::from(direct) + 2 * usize::from(trusted)];
        place.get_or_init(|| inner.build(!direct, trusted)).as_ref().map_err(Clone::clone)
    }
}

impl Inner {
    fn is_trusted(&self, url: &Url) -> bool {
        self.options.trusted_hosts.iter().any(|rule| rule.covers(url))
    }

    fn is_proxy(&self, name: &str) -> bool {
        self.proxy_hosts.iter().any(|host| host.eq_ignore_ascii_case(name))
    }

    /// Returns the reach for this URL.
    fn reach(&self, url: &Url) -> Reach {
        if self.is_trusted(url) { Reach::Any } else { self.options.reach }
    }

    /// Whether nothing is needed of reqwest: neither TLS nor a proxy, credentials of the URL or decompression.
    fn is_direct(&self, url: &Url) -> bool {
        let options = &self.options;
        let may_have_proxy =
            !self.proxy_hosts.is_empty() || (options.proxies && cfg!(any(windows, target_os = "macos")));
        let plain = url.scheme() == "http" && url.username().is_empty() && url.password().is_none();
        plain && !options.decompress && (!may_have_proxy || is_local(url))
    }

    fn direct(&self, url: &Url) -> &direct::Direct {
        let trusted = self.is_trusted(url);
        let connect = Duration::from_millis(self.options.connect_ms_max);
        self.direct[usize::from(trusted)].get_or_init(|| direct::Direct::new(self.resolver(trusted), connect))
    }

    fn resolver(&self, trusted: bool) -> resolve::Vetted {
        let reach = if trusted { Reach::Any } else { self.options.reach };
        resolve::Vetted::new(reach, self.lookup.clone(), self.proxy_hosts.clone())
    }

    fn build(&self, proxies: bool, trusted: bool) -> Result<reqwest::Client, WebError> {
        let options = &self.options;
        let resolver = self.resolver(trusted);
        let builder = reqwest::Client::builder()
            .tls_backend_preconfigured(tls::config(&options.extra_roots)?)
            .dns_resolver(resolver)
            .redirect(reqwest::redirect::Policy::none())
            .referer(false)
            .tcp_nodelay(true)
            .http2_max_header_list_size(u32::try_from(options.header_bytes_max).unwrap_or(u32::MAX))
            .connect_timeout(Duration::from_millis(options.connect_ms_max));
        #[cfg(feature = "decompress")]
        let builder = builder.gzip(options.decompress).deflate(options.decompress);
        let explicit = options.proxy.as_ref().filter(|_| proxies);
        proxy::apply(builder, explicit, proxies && options.proxies)
            .and_then(reqwest::ClientBuilder::build)
            .map_err(|e| WebError::invalid(format!("the HTTP client cannot be built: {e}")))
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

/// Returns whether the host of a URL is this machine, judged by its name or address alone, without a lookup.
///
/// ```
/// assert!(linchpin_web::is_loopback("http://localhost:8080/") && linchpin_web::is_loopback("http://[::1]/"));
/// assert!(!linchpin_web::is_loopback("http://localhost.example.com/"));
/// ```
pub fn is_loopback(url: &str) -> bool {
    Url::parse(url).is_ok_and(|url| is_local(&url))
}

fn is_local(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(ip)) => ip.is_loopback(),
        Some(Host::Ipv6(ip)) => ip.is_loopback() || ip.to_ipv4_mapped().is_some_and(|ip| ip.is_loopback()),
        // RFC 6761: these never leave the machine.
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        None => false,
    }
}
