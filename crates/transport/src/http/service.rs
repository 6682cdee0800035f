//! The endpoint as a `tower_service::Service`: routes a request, reads its body, and waits for its response.
//!
//! The future is written by hand, so that a simple call needs no allocation for it and every state is small.

use super::admission::{self, Admission, PageRequest};
use super::answer;
use super::body::{HttpBody, Source};
use super::cors;
use super::guard::Guard;
use super::intake::{self, Intake};
use super::options::HttpOptions;
use super::pages::Pages;
use super::post::{self, Next, Running};
use super::session::{HttpSession, is_standalone};
use super::sessions::{Revival, Sessions};
use super::shared::Shared;
use super::stores::{self, Stores};
use super::stream::Reader;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, request};
use http_body::Body;
use linchpin_core::budget::EXHAUSTED;
use linchpin_core::gate::{Admit, Gate, Page};
use linchpin_core::service::{BoxFuture, ConfigError, IntoService};
use linchpin_core::{Principal, RequestContext, Service};
use linchpin_proto::engine::header_means_stateless;
use linchpin_proto::http::rules::SessionHeaders;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::fmt;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::OnceCell;

/// Turns a server into a [`tower_service::Service`] that can be mounted in a router.
///
/// ```
/// # use linchpin_core::service::{ConfigError, IntoService};
/// use linchpin_transport::http::{HttpExt, HttpOptions, HttpService};
///
/// fn mount(server: impl IntoService) -> Result<HttpService, ConfigError> {
///     let hosts = Some(vec!["mcp.example".to_owned()]);
///     server.into_service_with(HttpOptions::default().with(|options| {
///         options.path = None;
///         options.allowed_hosts = hosts;
///     }))
/// }
/// ```
pub trait HttpExt: IntoService + Sized {
    /// Returns a service that accepts every path, with default options otherwise.
    ///
    /// # Errors
    /// If the server's configuration is invalid.
    fn into_service(self) -> Result<HttpService, ConfigError> {
        self.into_service_with(HttpOptions::default().with(|options| options.path = None))
    }

    /// Returns a service with these options.
    ///
    /// # Errors
    /// If the server's configuration is invalid.
    fn into_service_with(self, options: HttpOptions) -> Result<HttpService, ConfigError> {
        Ok(HttpService::new(self.into_shared()?, options))
    }
}

impl<T: IntoService> HttpExt for T {}

/// A server as an HTTP service, for mounting beside other routes. Clones share sessions.
///
/// [`HttpExt::into_service`] creates one. `Error` is [`Infallible`]: failures become
/// responses.
///
/// ```
/// # use linchpin_core::service::IntoService;
/// use linchpin_transport::http::HttpExt;
///
/// # fn example(server: impl IntoService) -> Result<(), Box<dyn std::error::Error>> {
/// let mcp = server.into_service()?;
/// // axum::Router::new().nest_service("/mcp", mcp)
/// # Ok(()) }
/// ```
///
/// A layer in front that authenticates clients inserts a [`Principal`] into the extensions of the request: handlers
/// read it with `cx.principal()`, and sessions belong to it. It is ignored if the options have a gate. A layer that
/// knows the client's address inserts it as a [`SocketAddr`].
///
/// ```
/// use linchpin_core::Principal;
///
/// fn authenticated(mut request: http::Request<()>, user: &str) -> http::Request<()> {
///     request.extensions_mut().insert(Principal::new(user));
///     request
/// }
/// # assert!(authenticated(http::Request::new(()), "ada").extensions().get::<Principal>().is_some());
/// ```
#[derive(Clone)]
#[doc(alias = "StreamableHttpService")]
#[doc(alias = "axum")]
pub struct HttpService {
    endpoint: Arc<Endpoint>,
}

struct Endpoint {
    shared: Shared,
    /// Set on shutdown: new requests are rejected.
    closing: AtomicBool,
    closed: OnceCell<()>,
    guard: Guard,
    pages: Pages,
    path: Option<Box<str>>,
    #[cfg(feature = "sse")]
    sse: Option<crate::sse::Endpoints>,
}

enum Route {
    Mcp,
    Metrics,
    #[cfg(feature = "sse")]
    Sse,
    #[cfg(feature = "sse")]
    Message,
    Unknown,
}

impl HttpService {
    /// Creates an HTTP service from `service`.
    pub fn new(service: Arc<dyn Service>, options: HttpOptions) -> HttpService {
        HttpService::bound(service, &options, &[])
    }

    /// Creates a service that also accepts the `bound` hosts.
    pub(crate) fn bound(service: Arc<dyn Service>, options: &HttpOptions, bound: &[String]) -> HttpService {
        let limits = service.limits().clone();
        let sessions = Arc::new(Sessions::new(service.clone(), Stores::of(options)));
        let guard =
            Guard::new(options.any_host, options.allowed_hosts.as_deref(), bound, options.allowed_origins.as_deref())
                .with_any_origin(options.any_origin);
        let path = options.endpoint().map(Box::from);
        let retry_ms = options.retry_ms;
        #[cfg(feature = "sse")]
        let sse = options.sse_2024.then(|| crate::sse::Endpoints::new(&options.sse_paths));
        HttpService {
            endpoint: Arc::new(Endpoint {
                shared: Shared {
                    service,
                    limits,
                    sessions,
                    calls: Arc::default(),
                    retry_ms,
                    gate: options.gate.clone(),
                    path: path.clone().unwrap_or_default(),
                    no_sessions: options.no_sessions,
                },
                closing: AtomicBool::new(false),
                closed: OnceCell::new(),
                guard,
                pages: Pages::new(options),
                path,
                #[cfg(feature = "sse")]
                sse,
            }),
        }
    }

    /// Tells probes that the service will end.
    pub(crate) fn announce_shutdown(&self) {
        self.endpoint.pages.close();
    }

    /// Ends streams that do not end by themselves. Running calls continue.
    pub(crate) fn end_listening(&self) {
        self.endpoint.shared.sessions.end_listening();
        #[cfg(feature = "sse")]
        if let Some(sse) = &self.endpoint.sse {
            sse.drain();
        }
    }

    /// Shuts the service down gracefully, for a service mounted in another server.
    ///
    /// [`http()`](super::http()) does this by itself. New requests get status 503, subscriptions and session streams
    /// end, and running calls may finish within `calls.drain_ms_max`; then they are cancelled, every session ends, and
    /// the callbacks of `Server::on_shutdown` run. Once this returns, the service holds no response open, so the
    /// surrounding server can end too. Call it as part of the shutdown signal, not afterwards: a server that shuts down
    /// gracefully waits for open streams, which would otherwise never end.
    ///
    /// ```no_run
    /// # use linchpin_transport::{http::HttpService, shutdown_signal};
    /// # fn example(mcp: HttpService) {
    /// let signal = async move {
    ///     shutdown_signal().await;
    ///     mcp.shutdown().await;
    /// };
    /// // axum::serve(listener, app).with_graceful_shutdown(signal).await
    /// # }
    /// ```
    ///
    /// All clones are shut down. Further calls wait for the same shutdown. Cancel safe: the next call resumes it.
    pub async fn shutdown(&self) {
        self.endpoint.closed.get_or_init(|| self.close()).await;
    }

    async fn close(&self) {
        let endpoint = &*self.endpoint;
        let shared = &endpoint.shared;
        endpoint.closing.store(true, Ordering::Relaxed);
        endpoint.pages.close();
        shared.service.close();
        self.end_listening();
        let limit = Duration::from_millis(shared.limits.calls.drain_ms_max);
        if tokio::time::timeout(limit, shared.calls.idle()).await.is_err() {
            tracing::debug!("calls that are still running are cancelled");
        }
        // Includes calls that started after the drain.
        shared.calls.cancel();
        let _ = tokio::time::timeout(CANCEL_TIME, shared.calls.idle()).await;
        self.close_sessions();
        shared.service.ended().await;
    }

    /// Ends every session: their running calls are cancelled and their streams end. The service itself is not closed.
    pub fn close_sessions(&self) {
        self.endpoint.shared.sessions.close();
        #[cfg(feature = "sse")]
        if let Some(sse) = &self.endpoint.sse {
            sse.close();
        }
    }
}

impl fmt::Debug for HttpService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpService").field("path", &self.endpoint.path).finish_non_exhaustive()
    }
}

impl<B: Body<Data = Bytes>> tower_service::Service<Request<B>> for HttpService {
    type Response = Response<HttpBody>;
    type Error = Infallible;
    type Future = HttpFuture<B>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> HttpFuture<B> {
        self.handle(request)
    }
}

impl HttpService {
    /// Handles one request.
    pub fn handle<B: Body<Data = Bytes>>(&self, request: Request<B>) -> HttpFuture<B> {
        let peer = request.extensions().get::<SocketAddr>().copied();
        self.handle_from(request, peer)
    }

    /// Handles one request of the client at `peer`.
    pub(crate) fn handle_from<B: Body<Data = Bytes>>(
        &self,
        request: Request<B>,
        peer: Option<SocketAddr>,
    ) -> HttpFuture<B> {
        let (parts, body) = request.into_parts();
        if let Some(response) = self.endpoint.pages.probe(&parts) {
            let state = State::Answer(response);
            return HttpFuture { body, endpoint: self.endpoint.clone(), state, streams: false, origin: None };
        }
        let page = self.endpoint.shared.gate.as_ref().and_then(|gate| gate.page(parts.uri.path()));
        let (state, origin) = match self.endpoint.guard.check(&parts, page.as_deref()) {
            Ok(origin) => {
                let origin = origin.filter(|o| self.endpoint.guard.is_named(o.as_bytes()));
                let origin = origin.map(|o| Box::new(self.endpoint.guard.told(o)));
                match (page, origin) {
                    // It says itself who may read it.
                    (Some(page), _) if page.any_origin() => {
                        (State::Page(Box::new(PageRequest::new(page, parts, peer))), None)
                    }
                    (page, origin) => {
                        let preflight = origin.is_some().then(|| cors::preflight(&parts)).flatten();
                        (preflight.map_or_else(|| self.endpoint.begin(parts, peer, page), State::Answer), origin)
                    }
                }
            }
            Err((status, why)) => {
                tracing::info!(why, "refused a request");
                (State::Answer(answer::refuse(status, None, why)), None)
            }
        };
        HttpFuture { body, endpoint: self.endpoint.clone(), state, streams: false, origin }
    }
}

pin_project_lite::pin_project! {
    /// The future of a response, returned by [`HttpService::handle`].
    ///
    /// Dropping it before it is ready has the effect of a closed connection: a stateless request is cancelled, one in a
    /// session continues.
    ///
    /// ```
    /// use bytes::Bytes;
    /// use http::Request;
    /// use http_body_util::Full;
    /// use linchpin_transport::http::{HttpFuture, HttpService};
    ///
    /// fn forward(mcp: &HttpService, body: Bytes) -> HttpFuture<Full<Bytes>> {
    ///     let mut request = Request::post("/mcp").body(Full::new(body)).expect("a valid request");
    ///     let json = http::HeaderValue::from_static("application/json");
    ///     request.headers_mut().insert("content-type", json);
    ///     mcp.handle(request)
    /// }
    /// ```
    pub struct HttpFuture<B> {
        #[pin]
        body: B,
        endpoint: Arc<Endpoint>,
        state: State,
        // Whether a complete response is sent as a stream.
        streams: bool,
        // The allowed origin of the page that sent the request; it gets CORS headers.
        origin: Option<Box<HeaderValue>>,
    }
}

enum State {
    Page(Box<PageRequest>),
    Admission(Box<Admission>),
    Intake(Arc<RequestContext>, Intake, Purpose),
    /// Looks for the session elsewhere.
    Revival(Revival, Method),
    /// Waits for a store, or for what opens a session.
    Later(BoxFuture<'static, Response<HttpBody>>),
    Running(Running),
    Answer(Response<HttpBody>),
    Over,
}

/// The endpoint that a body was sent to.
enum Purpose {
    Mcp {
        /// `Accept` prefers SSE to JSON: a complete response is sent as a stream of one event.
        streams: bool,
    },
    #[cfg(feature = "sse")]
    Message(crate::sse::Peer),
}

impl<B: Body<Data = Bytes>> Future for HttpFuture<B> {
    type Output = Result<Response<HttpBody>, Infallible>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        if let State::Page(page) = this.state {
            let response = std::task::ready!(page.poll(this.body.as_mut(), &*this.endpoint.shared.service, cx));
            *this.state = State::Answer(response);
        }
        if let State::Admission(waiting) = this.state {
            let decision = std::task::ready!(waiting.decision.as_mut().poll(cx));
            let State::Admission(waiting) = std::mem::replace(this.state, State::Over) else {
                return Poll::Pending;
            };
            *this.state = match decision {
                Ok(principal) => this.endpoint.enter(waiting.parts, waiting.peer, Some(principal)),
                Err(refusal) => State::Answer(admission::refused(&refusal)),
            };
        }
        if let State::Revival(revival, method) = this.state {
            let found = std::task::ready!(revival.as_mut().poll(cx));
            let (method, uri) = (std::mem::take(method), http::Uri::default());
            *this.state = match found {
                Ok(head) => this.endpoint.dispatch(Route::Mcp, method, &uri, head),
                Err(refusal) => State::Answer(*refusal),
            };
        }
        if let State::Intake(head, intake, _) = this.state {
            let max = this.endpoint.shared.limits.messages.frame_bytes_max;
            let body =
                std::task::ready!(intake.poll(this.body, &head.headers, &*this.endpoint.shared.service, max, cx));
            let State::Intake(head, _, purpose) = std::mem::replace(this.state, State::Over) else {
                return Poll::Pending;
            };
            *this.streams = matches!(purpose, Purpose::Mcp { streams: true });
            *this.state = this.endpoint.received(head, purpose, body, cx);
        }
        if let State::Later(later) = this.state {
            *this.state = State::Answer(std::task::ready!(later.as_mut().poll(cx)));
        }
        let response = match std::mem::replace(this.state, State::Over) {
            State::Answer(response) => response,
            State::Running(mut running) => match running.poll(&this.endpoint.shared, cx) {
                Poll::Ready(response) => response,
                Poll::Pending => {
                    *this.state = State::Running(running);
                    return Poll::Pending;
                }
            },
            // Polled after it was ready.
            State::Page(_)
            | State::Admission(_)
            | State::Revival(..)
            | State::Intake(..)
            | State::Later(_)
            | State::Over => answer::empty(StatusCode::INTERNAL_SERVER_ERROR),
        };
        let mut response = if *this.streams { answer::as_stream(response) } else { response };
        if !response.body_mut().reserve(this.endpoint.shared.service.budget()) {
            response = answer::refuse(StatusCode::SERVICE_UNAVAILABLE, None, EXHAUSTED);
        }
        if let Some(origin) = this.origin.take() {
            cors::allow(*origin, &mut response);
        }
        Poll::Ready(Ok(response))
    }
}

impl<B> fmt::Debug for HttpFuture<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpFuture").finish_non_exhaustive()
    }
}

impl Endpoint {
    /// Asks the gate, and handles the request as far as possible by its headers alone.
    fn begin(&self, parts: request::Parts, peer: Option<SocketAddr>, page: Option<Arc<dyn Page>>) -> State {
        let Some(gate) = &self.shared.gate else {
            let principal = parts.extensions.get::<Principal>().cloned();
            return self.enter(parts, peer, principal);
        };
        if let Some(page) = page {
            return State::Page(Box::new(PageRequest::new(page, parts, peer)));
        }
        if matches!(self.route(parts.uri.path()), Route::Unknown) {
            return self.enter(parts, peer, None);
        }
        match gate.admit(&parts, peer) {
            Admit::Yes(principal) => self.enter(parts, peer, Some(principal)),
            Admit::Open => self.enter(parts, peer, None),
            Admit::No(refusal) => State::Answer(admission::refused(&refusal)),
            Admit::Later(decision) => State::Admission(Box::new(Admission { decision, parts, peer })),
        }
    }

    /// Handles an admitted request as far as possible by its headers.
    fn enter(&self, parts: request::Parts, peer: Option<SocketAddr>, principal: Option<Principal>) -> State {
        let route = self.route(parts.uri.path());
        let request::Parts { method, uri, headers, extensions, .. } = parts;
        let mut head = RequestContext::of_http(headers, extensions, principal);
        head.peer = peer;
        let mut head = Some(Arc::new(head));
        if matches!(route, Route::Mcp)
            && let Some(revival) = self.shared.sessions.revive(&mut head)
        {
            return State::Revival(revival, method);
        }
        match head {
            Some(head) => self.dispatch(route, method, &uri, head),
            None => State::Over,
        }
    }

    /// Handles a request whose session is here, if it is anywhere, as far as possible by its headers.
    fn dispatch(&self, route: Route, method: Method, uri: &http::Uri, head: Arc<RequestContext>) -> State {
        match (route, method) {
            (Route::Mcp, Method::POST) => match intake::check_post_headers(&head.headers) {
                Ok(streams) => State::Intake(head, Intake::default(), Purpose::Mcp { streams }),
                Err((status, why)) => State::Answer(answer::refuse(status, None, why)),
            },
            (Route::Mcp, Method::GET) => match self.listen(&head) {
                State::Answer(response) if intake::is_of_browser(&head.headers) => {
                    State::Answer(answer::for_browser(response))
                }
                other => other,
            },
            (Route::Mcp, Method::DELETE) => self.end(&head),
            (Route::Mcp, _) => State::Answer(answer::method_not_allowed("POST, GET, DELETE")),
            (Route::Metrics, method) => State::Answer(self.pages.metrics(&method)),
            #[cfg(feature = "sse")]
            (Route::Sse, Method::GET) => State::Answer(self.sse_open(uri, &head)),
            #[cfg(feature = "sse")]
            (Route::Sse, _) => State::Answer(answer::method_not_allowed("GET")),
            #[cfg(feature = "sse")]
            (Route::Message, Method::POST) => self.sse_message(uri, head),
            #[cfg(feature = "sse")]
            (Route::Message, _) => State::Answer(answer::method_not_allowed("POST")),
            (Route::Unknown, _) => {
                let why = format!("no endpoint at {}", uri.path().chars().take(80).collect::<String>());
                State::Answer(answer::refuse(StatusCode::NOT_FOUND, None, &why))
            }
        }
    }

    /// Whether to reject a request because of the shutdown. Clients of sessions may still answer server requests.
    fn refuses(&self, headers: &HeaderMap) -> bool {
        self.closing.load(Ordering::Relaxed) && !headers.contains_key(answer::SESSION_ID)
    }

    fn route(&self, path: &str) -> Route {
        #[cfg(feature = "sse")]
        if let Some(sse) = &self.sse {
            // Without a fixed path, the suffix identifies the HTTP+SSE endpoints.
            if path == &*sse.stream || self.path.is_none() && path.ends_with("/sse") {
                return Route::Sse;
            }
            if path == &*sse.message || self.path.is_none() && path.ends_with("/message") {
                return Route::Message;
            }
        }
        if self.pages.has_metrics(path) {
            return Route::Metrics;
        }
        if self.path.as_deref().is_none_or(|p| p == path) { Route::Mcp } else { Route::Unknown }
    }

    fn received(
        &self,
        head: Arc<RequestContext>,
        purpose: Purpose,
        body: Result<Bytes, intake::Refusal>,
        cx: &mut Context<'_>,
    ) -> State {
        let body = match body {
            Ok(body) => body,
            Err((status, why)) => return State::Answer(answer::refuse(status, None, why)),
        };
        if let Some(gate) = &self.shared.gate
            && let Err(refusal) = gate.body(&head, &body)
        {
            return State::Answer(admission::refused(&refusal));
        }
        match purpose {
            Purpose::Mcp { .. } if self.refuses(&head.headers) => {
                State::Answer(answer::refuse(StatusCode::SERVICE_UNAVAILABLE, None, CLOSING))
            }
            Purpose::Mcp { .. } => match post::receive(&self.shared, head, body, cx) {
                Next::Answer(response) => State::Answer(response),
                Next::Wait(running) => State::Running(running),
                Next::Later(later) => State::Later(later),
            },
            #[cfg(feature = "sse")]
            Purpose::Message(peer) => State::Answer(peer.receive(&self.shared, head, body)),
        }
    }

    /// GET: opens a session's stream, or resumes one of its streams.
    fn listen(&self, head: &RequestContext) -> State {
        if self.shared.no_sessions || has_no_sessions(&head.headers) {
            return State::Answer(answer::method_not_allowed("POST"));
        }
        if let Err((status, why)) = intake::check_get_accept(&head.headers) {
            return State::Answer(answer::refuse(status, None, why));
        }
        let session = match self.shared.session_of(&SessionHeaders::of(&head.headers), head.principal.as_ref(), None) {
            Ok(session) => session,
            Err(response) => return State::Answer(*response),
        };
        let asked = head.headers.get(answer::LAST_EVENT_ID).map(|v| event_id(v.as_bytes()));
        let reader = match asked {
            None => session.standalone(None, self.shared.retry_ms).ok_or("this session's stream is already open"),
            Some(None) => Err(NO_SUCH_EVENT),
            Some(Some((number, seq))) => match session.stream(number) {
                Some(_) if is_standalone(number) => {
                    session.standalone(Some(seq), self.shared.retry_ms).ok_or(NO_SUCH_EVENT)
                }
                Some(stream) => stream.attach(&session, seq, None).ok_or(NO_SUCH_EVENT),
                None if session.event_store().is_some() => {
                    let (principal, retry_ms) = (head.principal.clone(), self.shared.retry_ms);
                    return State::Later(Box::pin(async move {
                        let response = stored(session, number, seq, retry_ms).await;
                        response.map(|body| body.until_expiry(principal.as_ref()))
                    }));
                }
                // The first stream of a plain GET may have been opened by a client that never read it.
                None if is_standalone(number) => {
                    session.standalone(Some(seq), self.shared.retry_ms).ok_or(NO_SUCH_EVENT)
                }
                None => Err(NO_SUCH_EVENT),
            },
        };
        State::Answer(match reader {
            Ok(reader) => {
                let body = HttpBody::stream(reader, &*self.shared.service);
                answer::events(body.until_expiry(head.principal.as_ref()))
            }
            Err(NO_SUCH_EVENT) => answer::refuse(StatusCode::BAD_REQUEST, None, NO_SUCH_EVENT),
            Err(why) => answer::refuse(StatusCode::CONFLICT, None, why),
        })
    }

    /// DELETE: ends a session.
    fn end(&self, head: &RequestContext) -> State {
        if self.shared.no_sessions || has_no_sessions(&head.headers) {
            return State::Answer(answer::method_not_allowed("POST"));
        }
        match self.shared.session_of(&SessionHeaders::of(&head.headers), head.principal.as_ref(), None) {
            Err(response) => State::Answer(*response),
            Ok(session) => {
                self.shared.sessions.delete(&session);
                match self.shared.sessions.stores() {
                    Some(stores) => State::Later(stores.delete(session.key())),
                    None => State::Answer(answer::empty(StatusCode::NO_CONTENT)),
                }
            }
        }
    }

    #[cfg(feature = "sse")]
    fn sse_open(&self, uri: &http::Uri, head: &RequestContext) -> Response<HttpBody> {
        match &self.sse {
            _ if self.refuses(&head.headers) => answer::refuse(StatusCode::SERVICE_UNAVAILABLE, None, CLOSING),
            Some(sse) => sse.open(&self.shared, uri.path(), head.principal.as_ref()),
            None => answer::empty(StatusCode::NOT_FOUND),
        }
    }

    #[cfg(feature = "sse")]
    fn sse_message(&self, uri: &http::Uri, head: Arc<RequestContext>) -> State {
        let peer = self.sse.as_ref().and_then(|sse| sse.find(uri.query(), head.principal.as_ref()));
        let Some(peer) = peer else {
            let why = "unknown session, or its stream was closed; open a new one with GET";
            return State::Answer(answer::refuse(StatusCode::NOT_FOUND, None, why));
        };
        match intake::check_body_headers(&head.headers) {
            Ok(()) => State::Intake(head, Intake::default(), Purpose::Message(peer)),
            Err((status, why)) => State::Answer(answer::refuse(status, None, why)),
        }
    }
}

const CLOSING: &str = "the server is shutting down; try again later";
/// How long cancelled calls may take to end before the shutdown continues.
const CANCEL_TIME: Duration = Duration::from_millis(100);
const NO_SUCH_EVENT: &str = "the event of Last-Event-ID is no longer available; send the request again";

/// Whether a request names a revision without sessions and has no session id: it can only be a POST.
fn has_no_sessions(headers: &HeaderMap) -> bool {
    let version = headers.get(answer::PROTOCOL_VERSION).and_then(|v| v.to_str().ok());
    !headers.contains_key(answer::SESSION_ID) && header_means_stateless(version.map(str::trim))
}

/// Resumes a stream of another process: the events that are stored, and the stream's end, or what follows on the stream of
/// a plain GET.
async fn stored(session: Arc<HttpSession>, stream: u64, after: u32, retry_ms: u64) -> Response<HttpBody> {
    let Some(store) = session.event_store() else { return answer::empty(StatusCode::INTERNAL_SERVER_ERROR) };
    let events = match store.after(&session.id(), stream, after).await {
        // Nothing follows, and its process is gone: the response will not come any more.
        Ok(Some(events)) if events.is_empty() && !is_standalone(stream) => {
            return answer::refuse(StatusCode::BAD_REQUEST, None, NO_SUCH_EVENT);
        }
        Ok(Some(events)) => events,
        // A quiet stream of changes is forgotten like its events: it goes on with what comes.
        Ok(None) if is_standalone(stream) => Vec::new(),
        Ok(None) => return answer::refuse(StatusCode::BAD_REQUEST, None, NO_SUCH_EVENT),
        Err(error) => return stores::unavailable(None, &error),
    };
    let rest = match is_standalone(stream) {
        true => match session.standalone(None, retry_ms) {
            Some(reader) => Some(reader),
            None => return answer::refuse(StatusCode::CONFLICT, None, "this session's stream is already open"),
        },
        false => None,
    };
    let events = events.into_iter().map(|event| event.bytes).collect();
    answer::events(HttpBody::stream(Resumed { events, rest }, session.service()))
}

/// The events of another process, then those of this one.
struct Resumed {
    events: VecDeque<Bytes>,
    rest: Option<Reader>,
}

impl Source for Resumed {
    fn poll_bytes(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        match (self.events.pop_front(), &mut self.rest) {
            (Some(event), _) => Poll::Ready(Some(event)),
            (None, Some(rest)) => rest.poll_bytes(cx),
            (None, None) => Poll::Ready(None),
        }
    }
}

/// Reads `<stream>-<event>`.
fn event_id(value: &[u8]) -> Option<(u64, u32)> {
    let (stream, event) = std::str::from_utf8(value).ok()?.split_once('-')?;
    Some((stream.parse().ok()?, event.parse().ok()?))
}
