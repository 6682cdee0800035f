//! HTTP requests of the flow.
//!
//! All requests go through the trait [`Fetch`], one at a time and without following redirects, so that a program can
//! use its own HTTP client and tests need no sockets. This module decides which addresses are allowed, the timeout and
//! the maximum size of a response.

use crate::address;
use crate::error::{Error, Kind};
use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, LOCATION};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use linchpin_core::service::BoxFuture;
use linchpin_oauth::Challenge;
use linchpin_web::{Reach, Web, WebOptions};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use url::Url;

/// An HTTP client that sends the requests of the flow.
///
/// ```
/// use bytes::Bytes;
/// use http::{Request, Response};
/// use linchpin_auth::Fetch;
/// use linchpin_core::service::BoxFuture;
/// use linchpin_web::Reach;
///
/// /// For tests: every document is missing.
/// struct Nothing;
///
/// impl Fetch for Nothing {
///     fn fetch(&self, _: Request<Bytes>, _: Reach, _: usize) -> BoxFuture<'_, Result<Response<Bytes>, String>> {
///         Box::pin(async {
///             Response::builder().status(404).body(Bytes::new()).map_err(|error| error.to_string())
///         })
///     }
/// }
/// ```
pub trait Fetch: Send + Sync + 'static {
    /// Sends a request and reads the whole response.
    ///
    /// An implementation must not follow redirects or add credentials. It must connect only to addresses within
    /// `reach`, and reject bodies of more than `max` bytes.
    ///
    /// # Errors
    /// The reason why the request failed, without its headers or body.
    fn fetch(
        &self,
        request: Request<Bytes>,
        reach: Reach,
        max: usize,
    ) -> BoxFuture<'_, Result<Response<Bytes>, String>>;
}

/// Sends requests on behalf of one MCP server.
#[derive(Clone)]
pub(crate) struct Asker {
    pub(crate) fetch: Arc<dyn Fetch>,
    pub(crate) reach: Option<Reach>,
    pub(crate) server: Url,
}

/// The result of fetching a document.
pub(crate) enum Found {
    /// A JSON object.
    Document(serde_json::Value),
    /// No document: a 4xx status, or content that is not JSON.
    Nothing(String),
    /// Unknown: no response, a 5xx status, or too many redirects.
    Unknown(Error),
}

impl Asker {
    /// Fetches a metadata document. Follows a few redirects, each checked by the same rules.
    pub(crate) async fn document(&self, what: &str, address: &str) -> Found {
        let mut url = match address::parse(what, address) {
            Ok(url) => url,
            Err(error) => return Found::Unknown(error),
        };
        for _ in 0..=REDIRECTS_MAX {
            let mut request = Request::new(Bytes::new());
            *request.method_mut() = Method::GET;
            request.headers_mut().insert(ACCEPT, HeaderValue::from_static("application/json"));
            let answer = match self.send(&format!("fetch {what}"), &url, request).await {
                Ok(answer) => answer,
                Err(error) => return Found::Unknown(error),
            };
            let status = answer.status();
            if status.is_redirection() {
                let next = answer.headers().get(LOCATION).and_then(|to| to.to_str().ok()).unwrap_or_default();
                let next = url.join(next).map(|url| url.to_string()).unwrap_or_default();
                let next = match address::parse(&format!("the redirect target of {what} at {url}"), &next) {
                    Ok(next) => next,
                    Err(error) => return Found::Unknown(error),
                };
                if url.scheme() == "https" && next.scheme() != "https" {
                    let why = format!("{what} at {url} redirects to a URL without TLS, which is not followed");
                    return Found::Unknown(Error::discovery(why));
                }
                url = next;
                continue;
            }
            if status.is_success() {
                return match serde_json::from_slice::<serde_json::Value>(answer.body()) {
                    Ok(document) if document.is_object() => Found::Document(document),
                    _ => Found::Nothing(format!("{url} is not a valid JSON object")),
                };
            }
            let why = format!("{url} returned status {}", status.as_u16());
            return if status.is_client_error() {
                Found::Nothing(why)
            } else {
                Found::Unknown(Error::new(Kind::Unreachable, format!("cannot fetch {what}: {why}")))
            };
        }
        Found::Unknown(Error::discovery(format!("{what} at {address} redirects too often")))
    }

    /// Posts a form or a JSON document. Redirects are not followed: the content is sent nowhere else.
    pub(crate) async fn post(
        &self,
        what: &str,
        address: &str,
        content_type: &'static str,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<Response<Bytes>, Error> {
        let url = address::parse(what, address)?;
        let mut request = Request::new(body);
        *request.method_mut() = Method::POST;
        *request.headers_mut() = headers;
        request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
        request.headers_mut().insert(ACCEPT, HeaderValue::from_static("application/json"));
        self.send(&format!("reach {what}"), &url, request).await
    }

    /// Sends a request to the server without a token; returns its challenge, and whether it rejected the request.
    pub(crate) async fn challenge(&self) -> Result<(Challenge, bool), Error> {
        let body = Bytes::from_static(br#"{"jsonrpc":"2.0","id":0,"method":"ping"}"#);
        let mut request = Request::new(body);
        *request.method_mut() = Method::POST;
        request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
        request.headers_mut().insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        let answer = self.send("connect", &self.server, request).await?;
        let refused = answer.status() == StatusCode::UNAUTHORIZED;
        Ok((if refused { Challenge::of(answer.headers()) } else { Challenge::default() }, refused))
    }

    async fn send(&self, what: &str, url: &Url, mut request: Request<Bytes>) -> Result<Response<Bytes>, Error> {
        let failed = |why: &str| Error::new(Kind::Unreachable, format!("cannot {what}: {}: {why}", bare(url)));
        *request.uri_mut() =
            url[..url::Position::AfterQuery].parse().map_err(|_| failed("the address cannot be used"))?;
        let reach = address::reach(self.reach, &self.server, url);
        let answer = tokio::time::timeout(DEADLINE, self.fetch.fetch(request, reach, BODY_BYTES_MAX)).await;
        let answer = answer.map_err(|_| failed(&format!("no response within {} s", DEADLINE.as_secs())))?;
        let answer = answer.map_err(|why| failed(&why))?;
        if answer.body().len() > BODY_BYTES_MAX {
            return Err(failed("the response is too long"));
        }
        Ok(answer)
    }
}

impl fmt::Debug for Asker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Asker").field("server", &self.server.as_str()).finish_non_exhaustive()
    }
}

pub(crate) const FORM: &str = "application/x-www-form-urlencoded";
pub(crate) const JSON: &str = "application/json";

/// Timeout of a request including its response.
const DEADLINE: Duration = Duration::from_secs(30);
/// Maximum size of a response.
const BODY_BYTES_MAX: usize = 256 * 1024;
const REDIRECTS_MAX: usize = 3;

/// An address for a message: without its query.
fn bare(url: &Url) -> &str {
    &url[..url::Position::AfterPath]
}

/// Whether a status means that the request was accepted.
pub(crate) fn is_good(status: StatusCode) -> bool {
    status == StatusCode::OK || status == StatusCode::CREATED
}

/// The project's own HTTP client, one for each reach.
pub(crate) struct WebFetch {
    any: Web,
    public: Web,
    public_or_loopback: Web,
    public_or_private: Web,
}

impl WebFetch {
    /// Clients with these options, except for where they may connect and how long they may take.
    pub(crate) fn new(options: &WebOptions) -> WebFetch {
        let web = |reach| {
            Web::new(options.clone().with(|web| {
                web.reach = reach;
                web.request_ms_max = Some(DEADLINE.as_millis() as u64);
            }))
        };
        WebFetch {
            any: web(Reach::Any),
            public: web(Reach::Public),
            public_or_loopback: web(Reach::PublicOrLoopback),
            public_or_private: web(Reach::PublicOrPrivate),
        }
    }
}

impl Fetch for WebFetch {
    fn fetch(
        &self,
        request: Request<Bytes>,
        reach: Reach,
        max: usize,
    ) -> BoxFuture<'_, Result<Response<Bytes>, String>> {
        let web = match reach {
            Reach::Any => &self.any,
            Reach::Public => &self.public,
            Reach::PublicOrLoopback => &self.public_or_loopback,
            Reach::PublicOrPrivate => &self.public_or_private,
        };
        Box::pin(async move {
            let mut answer = web.send(request).await.map_err(|e| e.to_string())?;
            let body = answer.body.read_all(max).await.map_err(|e| e.to_string())?;
            Ok(Response::from_parts(answer.parts, body))
        })
    }
}
