//! Authorization over HTTP: the decision between the head of a request and its body.

use crate::principal::Principal;
use crate::service::{BoxFuture, RequestContext};
use bytes::Bytes;
use core::net::SocketAddr;
use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_MAX_AGE,
    ALLOW, CACHE_CONTROL, CONTENT_TYPE, WWW_AUTHENTICATE,
};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, request};
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

/// Authorizes requests over HTTP, in every revision.
///
/// The checks of a request run in this order: `Host`, [`Gate::page`], `Origin`, CORS preflight, [`Gate::admit`], the
/// body, [`Gate::body`], the rules of the protocol, the server, [`Gate::missing`]. The body of a refused request is not read.
///
/// The types of requests come from the crate `http` (`cargo add http`).
///
/// ```
/// use http::{StatusCode, header::AUTHORIZATION, request};
/// use linchpin_core::Principal;
/// use linchpin_core::gate::{Admit, Gate, Refusal};
/// use std::net::SocketAddr;
///
/// /// Admits requests with the right password.
/// struct Password;
///
/// impl Gate for Password {
///     fn admit(&self, head: &request::Parts, _: Option<SocketAddr>) -> Admit {
///         match head.headers.get(AUTHORIZATION) {
///             Some(value) if value == "Bearer swordfish" => Admit::Yes(Principal::new("somebody")),
///             _ => Admit::No(Refusal::unauthorized("send the password as a bearer token")),
///         }
///     }
/// }
///
/// let stranger = http::Request::new(()).into_parts().0;
/// assert!(matches!(Password.admit(&stranger, None), Admit::No(refusal) if refusal.status() == StatusCode::UNAUTHORIZED));
/// ```
pub trait Gate: Send + Sync + 'static {
    /// Decides about a request from its head and, if the transport knows it, the address of the client.
    ///
    /// This runs on the task of the connection, so it must not block. Return [`Admit::Later`] to decide asynchronously.
    fn admit(&self, head: &request::Parts, peer: Option<SocketAddr>) -> Admit;

    /// Checks the gate's configuration. A transport calls this before it listens, and does not start if it fails.
    ///
    /// # Errors
    /// One line that says what is missing and what to do about it.
    fn check(&self) -> Result<(), String> {
        Ok(())
    }

    /// Checks the body of an admitted request, for example against a digest in its headers, before it is parsed.
    ///
    /// # Errors
    /// The refusal to respond with.
    fn body(&self, context: &RequestContext, body: &Bytes) -> Result<(), Refusal> {
        let _ = (context, body);
        Ok(())
    }

    /// Returns the response to a request whose principal lacks scopes that it needs. `scopes` are all scopes that the
    /// request needs; `path` is the path of the endpoint, empty if it is mounted and serves every path.
    ///
    /// By default, the status is 403 with the challenge that makes a client ask for these scopes, or 401 without a
    /// principal.
    fn missing(&self, path: &str, principal: Option<&Principal>, scopes: &[Arc<str>]) -> Refusal {
        let _ = path;
        Refusal::missing(principal, scopes)
    }

    /// Returns the page at a path other than the endpoint's, which is served without authentication: for example a
    /// well-known document or a login page.
    fn page(&self, path: &str) -> Option<Arc<dyn Page>> {
        let _ = path;
        None
    }
}

impl<G: Gate + ?Sized> Gate for Arc<G> {
    fn admit(&self, head: &request::Parts, peer: Option<SocketAddr>) -> Admit {
        (**self).admit(head, peer)
    }

    fn check(&self) -> Result<(), String> {
        (**self).check()
    }

    fn body(&self, context: &RequestContext, body: &Bytes) -> Result<(), Refusal> {
        (**self).body(context, body)
    }

    fn missing(&self, path: &str, principal: Option<&Principal>, scopes: &[Arc<str>]) -> Refusal {
        (**self).missing(path, principal, scopes)
    }

    fn page(&self, path: &str) -> Option<Arc<dyn Page>> {
        (**self).page(path)
    }
}

/// The decision about a request.
///
/// ```
/// use linchpin_core::Principal;
/// use linchpin_core::gate::{Admit, Refusal};
///
/// // A token that must be looked up elsewhere is decided asynchronously.
/// fn decide(token: Option<&str>) -> Admit {
///     let Some(token) = token.map(str::to_owned) else {
///         return Admit::No(Refusal::unauthorized("send a bearer token"));
///     };
///     Admit::Later(Box::pin(async move {
///         let user = token.strip_prefix("user-").ok_or_else(|| Refusal::unauthorized("unknown token"))?;
///         Ok(Principal::new(user))
///     }))
/// }
/// assert!(matches!(decide(None), Admit::No(_)));
/// ```
pub enum Admit {
    /// The request is admitted; its sender is this principal.
    Yes(Principal),
    /// The request is admitted without authentication. It has no principal, so items that require scopes refuse it.
    Open,
    /// The request is refused.
    No(Refusal),
    /// The decision is the future's output. The body is not read until then. The gate itself limits how long this may
    /// take.
    Later(BoxFuture<'static, Result<Principal, Refusal>>),
}

impl fmt::Debug for Admit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Admit::Yes(principal) => f.debug_tuple("Yes").field(principal).finish(),
            Admit::Open => f.write_str("Open"),
            Admit::No(refusal) => f.debug_tuple("No").field(refusal).finish(),
            Admit::Later(_) => f.write_str("Later"),
        }
    }
}

/// The response to a refused request: a status, headers, and a text, which becomes the message of a JSON-RPC error.
///
/// ```
/// use http::HeaderValue;
/// use linchpin_core::gate::Refusal;
///
/// let refusal = Refusal::unauthorized("the token has expired")
///     .with_challenge(HeaderValue::from_static(r#"Bearer error="invalid_token""#));
/// assert_eq!(refusal.headers()["www-authenticate"], r#"Bearer error="invalid_token""#);
/// ```
#[derive(Clone, Debug)]
pub struct Refusal(Box<Parts>);

#[derive(Clone, Debug)]
struct Parts {
    status: StatusCode,
    message: Cow<'static, str>,
    headers: HeaderMap,
}

impl Refusal {
    /// Creates a refusal with this status. The message is for the sender: what is wrong, and what to do instead.
    pub fn new(status: StatusCode, message: impl Into<Cow<'static, str>>) -> Refusal {
        Refusal(Box::new(Parts { status, message: message.into(), headers: HeaderMap::new() }))
    }

    /// Creates a refusal with status 401: the sender is unknown.
    pub fn unauthorized(message: impl Into<Cow<'static, str>>) -> Refusal {
        Refusal::new(StatusCode::UNAUTHORIZED, message)
    }

    /// Creates a refusal with status 403: the sender is known, but not allowed to send the request.
    pub fn forbidden(message: impl Into<Cow<'static, str>>) -> Refusal {
        Refusal::new(StatusCode::FORBIDDEN, message)
    }

    /// Creates the refusal of [`Gate::missing`]: 403 with a `Bearer` challenge that names the scopes, or 401 without a
    /// principal.
    pub fn missing(principal: Option<&Principal>, scopes: &[Arc<str>]) -> Refusal {
        let scopes = scopes.join(" ");
        let (refusal, challenge) = match principal {
            Some(_) => (Refusal::forbidden("insufficient scope"), r#"Bearer error="insufficient_scope", scope=""#),
            None => (Refusal::unauthorized("authentication required"), r#"Bearer scope=""#),
        };
        match HeaderValue::try_from(format!("{challenge}{scopes}\"")) {
            Ok(challenge) => refusal.with_challenge(challenge),
            Err(_) => refusal,
        }
    }

    /// Adds a `WWW-Authenticate` header. There may be several.
    #[must_use]
    pub fn with_challenge(self, challenge: HeaderValue) -> Refusal {
        self.with_header(WWW_AUTHENTICATE, challenge)
    }

    /// Adds a header, for example `Retry-After`.
    #[must_use]
    pub fn with_header(mut self, name: HeaderName, value: HeaderValue) -> Refusal {
        self.0.headers.append(name, value);
        self
    }

    /// Returns the status.
    pub fn status(&self) -> StatusCode {
        self.0.status
    }

    /// Returns the message.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Returns the headers.
    pub fn headers(&self) -> &HeaderMap {
        &self.0.headers
    }
}

/// A page that a [`Gate`] serves at a path of its own, for every HTTP method.
///
/// ```
/// use http::{Request, Response};
/// use linchpin_core::gate::Page;
/// use linchpin_core::service::BoxFuture;
///
/// struct Robots;
///
/// impl Page for Robots {
///     fn respond(&self, _: Request<bytes::Bytes>) -> BoxFuture<'static, Response<bytes::Bytes>> {
///         Box::pin(async { Response::new("User-agent: *\nDisallow: /\n".into()) })
///     }
/// }
/// ```
pub trait Page: Send + Sync + 'static {
    /// Returns the maximum size of a request body, in bytes. Default: 0.
    fn body_bytes_max(&self) -> usize {
        0
    }

    /// Returns whether web pages of every origin may send requests to this page and read the responses. By default,
    /// only web pages of this host and of the allowed origins may.
    ///
    /// If so, the page must not rely on cookies, and must respond to CORS preflights (`OPTIONS`) itself.
    fn any_origin(&self) -> bool {
        false
    }

    /// Responds to a request. The client's address, if known, is in the extensions as a [`SocketAddr`].
    fn respond(&self, request: Request<Bytes>) -> BoxFuture<'static, Response<Bytes>>;
}

/// A JSON document that is served without authentication, such as the metadata of a protected resource (RFC 9728): for GET
/// and HEAD, to web pages of every origin, with a cache lifetime of one hour.
///
/// ```
/// use http::request;
/// use linchpin_core::gate::{Admit, Document, Gate, Page};
/// use std::net::SocketAddr;
/// use std::sync::Arc;
///
/// struct Open;
///
/// impl Gate for Open {
///     fn admit(&self, _: &request::Parts, _: Option<SocketAddr>) -> Admit {
///         Admit::Open
///     }
///
///     fn page(&self, path: &str) -> Option<Arc<dyn Page>> {
///         (path == "/about.json").then(|| Arc::new(Document::json(r#"{"about":"a demo"}"#)) as _)
///     }
/// }
/// assert!(Open.page("/about.json").is_some());
/// ```
#[derive(Clone, Debug)]
pub struct Document {
    json: Bytes,
}

impl Document {
    /// Creates a document from this JSON text.
    pub fn json(text: impl Into<Bytes>) -> Document {
        Document { json: text.into() }
    }
}

impl Page for Document {
    fn any_origin(&self) -> bool {
        true
    }

    fn respond(&self, request: Request<Bytes>) -> BoxFuture<'static, Response<Bytes>> {
        let readable = matches!(*request.method(), Method::GET | Method::HEAD);
        let mut response = Response::new(if readable { self.json.clone() } else { Bytes::new() });
        let headers = response.headers_mut();
        if readable {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
            headers.insert(CACHE_CONTROL, HeaderValue::from_static("max-age=3600"));
            headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
        } else if request.method() == Method::OPTIONS {
            // Clients that are pages send a header of their own with it.
            headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
            headers.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("GET"));
            headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static("MCP-Protocol-Version"));
            headers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("7200"));
            *response.status_mut() = StatusCode::NO_CONTENT;
        } else {
            headers.insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
            *response.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
        }
        Box::pin(std::future::ready(response))
    }
}
