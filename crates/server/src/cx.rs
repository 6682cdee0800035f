//! The context of a call: progress, logs, server requests, and the caller.

use crate::mrtr::RoundTrips;
use crate::request_error::{RequestError, RequestErrorKind};
use crate::shared::Shared;
#[cfg(feature = "tasks")]
use crate::tasks::link::{self, Link};
use crate::ui;
use crate::viewer::Audience;
use linchpin_core::message::{MethodName, Request};
use linchpin_core::service::{Cancel, RequestContext};
use linchpin_core::{
    Caller, Method, Principal, ServerChange, ServerRequest, Session, Subscription, TraceContext, render,
};
use linchpin_types::lifecycle::Implementation;
use linchpin_types::logging::LoggingLevel;
use serde::Serialize;
use std::borrow::Cow;
use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::task::Waker;
use tokio::sync::Notify;

/// The context of one call. Cheap to clone; a clone that outlives the call sends nothing.
///
/// Handlers of notifications and subscriptions take one too: their log messages, notifications and requests are sent on
/// the session's stream. They cannot send requests to a client without a session.
///
/// When a call is cancelled, exceeds its deadline or loses its client, its future is dropped; [`Cx::cancelled`] is for
/// work that the handler moved to other tasks. A call of an HTTP session continues if only its stream is lost.
///
/// Once a call has become a task, its progress, log messages and notifications are sent on the session's stream.
/// Without a session they are dropped; only the message of the progress is kept, as the status message of the task.
///
/// ```
/// # use linchpin_server::{Cx, Result};
/// # #[derive(serde::Deserialize, schemars::JsonSchema)] struct Import { files: Vec<String> }
/// async fn import(cx: &Cx, q: Import) -> Result<String> {
///     let total = q.files.len() as f64;
///     for (done, file) in (1..).zip(&q.files) {
///         // … import the file …
///         cx.progress_with(f64::from(done), Some(total), file);
///     }
///     Ok(format!("{total} files, for {}", cx.principal().map_or("anonymous", |who| who.subject())))
/// }
/// # linchpin_server::Server::new("s", "1").tool("import", import);
/// ```
#[derive(Clone)]
#[doc(alias = "RequestContext")]
#[doc(alias = "context")]
#[doc(alias = "extra")]
pub struct Cx(pub(crate) Arc<CallState>);

pub(crate) struct CallState {
    pub(crate) request: Arc<Request>,
    pub(crate) context: Arc<RequestContext>,
    pub(crate) shared: Arc<Shared>,
    pub(crate) round_trips: Mutex<RoundTrips>,
    queue: Mutex<Queue>,
    cancelled: AtomicBool,
    over: Notify,
    /// The name or URI without JSON escapes, if it had any.
    name: OnceLock<Box<str>>,
    /// Of a notification or a subscription: there is no stream and no response of its own.
    outside: bool,
    /// The task that the call is, or may become.
    #[cfg(feature = "tasks")]
    link: Option<Arc<Link>>,
}

#[derive(Default)]
pub(crate) struct Queue {
    pub(crate) out: VecDeque<Out>,
    pub(crate) waker: Option<Waker>,
    progress: Option<f64>,
    closed: bool,
}

pub(crate) enum Out {
    Notify(bytes::Bytes),
    ServerRequest(ServerRequest),
    Pause(u64),
}

impl Cx {
    pub(crate) fn new(
        request: Arc<Request>,
        context: Arc<RequestContext>,
        shared: Arc<Shared>,
        round_trips: RoundTrips,
    ) -> Cx {
        Cx(Arc::new(CallState::new(request, context, shared, Mutex::new(round_trips), Mutex::default())))
    }

    /// The context of a call that may become a task.
    #[cfg(feature = "tasks")]
    pub(crate) fn linked(
        request: Arc<Request>,
        context: Arc<RequestContext>,
        shared: Arc<Shared>,
        round_trips: RoundTrips,
        link: Arc<Link>,
    ) -> Cx {
        let mut state = CallState::new(request, context, shared, Mutex::new(round_trips), Mutex::default());
        state.link = Some(link);
        Cx(Arc::new(state))
    }

    /// The task that the call is, or may become.
    #[cfg(feature = "tasks")]
    pub(crate) fn link(&self) -> Option<&Arc<Link>> {
        self.0.link.as_ref()
    }

    /// Returns the id of the task that this call has become. `None` if the call is not a task, or has not become one yet.
    ///
    /// The id stays the same when the task is restarted, so it can serve as an idempotency key for requests to other systems.
    #[cfg(feature = "tasks")]
    pub fn task_id(&self) -> Option<String> {
        Some(self.link()?.task()?.id().to_owned())
    }

    /// Turns the call into a task now, if possible. Returns whether the call is a task.
    ///
    /// The client receives the task as the result of its call, and the handler continues. This has no effect if the
    /// call is a task already, or if the tool or the client does not support tasks. It is meant for
    /// [`task_later`](crate::Tool::task_later) tools: requests sent to the client before this point are part of the
    /// call.
    ///
    /// ```
    /// # use linchpin_server::{Cx, Result, Server, Tool};
    /// # #[derive(serde::Deserialize, schemars::JsonSchema)] struct Year { year: u16 }
    /// async fn yearly(cx: &Cx) -> Result<String> {
    ///     let asked: Year = cx.elicit("year", "Which year?").await?;
    ///     cx.become_task().await;
    ///     Ok(format!("the long report of {}", asked.year))
    /// }
    ///
    /// let server = Server::new("reports", "1.0").tool(Tool::new("yearly", "Writes a report.").task_later(), yearly);
    /// ```
    #[cfg(feature = "tasks")]
    pub async fn become_task(&self) -> bool {
        match self.link() {
            Some(link) => link.make(|| wake(&mut self.0.queue())).await.is_some(),
            None => false,
        }
    }

    /// The context of a notification or a subscription.
    pub(crate) fn outside(request: Arc<Request>, context: Arc<RequestContext>, shared: Arc<Shared>) -> Cx {
        let queue = Mutex::new(Queue { closed: true, ..Queue::default() });
        let mut state = CallState::new(request, context, shared, Mutex::default(), queue);
        state.outside = true;
        Cx(Arc::new(state))
    }

    /// Whether this is the context of a notification or a subscription.
    pub(crate) fn is_outside(&self) -> bool {
        self.0.outside
    }

    /// Reports progress: the amount done and, if known, the total, in any unit.
    ///
    /// Does nothing if the client did not request progress. `done` must increase from call to call; other reports are
    /// dropped, as the specification requires. If the client reads slowly, the oldest reports are dropped.
    pub fn progress(&self, done: f64, total: Option<f64>) {
        self.report(done, total, None);
    }

    /// Like [`Cx::progress`], with a message for the user (omitted for 2024-11-05, which has no messages). The message
    /// is also the status message of a task, even if the client did not request progress.
    pub fn progress_with(&self, done: f64, total: Option<f64>, message: &str) {
        self.report(done, total, Some(message));
    }

    fn report(&self, done: f64, total: Option<f64>, message: Option<&str>) {
        let request = &self.0.request;
        #[cfg(feature = "tasks")]
        if let (Some(message), Some(task)) = (message, self.link().and_then(|link| link.task())) {
            task.say(message);
        }
        let Some(token) = request.progress_token else { return };
        let mut queue = self.0.queue();
        if !done.is_finite() || queue.progress.is_some_and(|last| done <= last) {
            return;
        }
        queue.progress = Some(done);
        let frame = render::progress(request.caller.features(), request.text(token), done, total, message);
        self.0.push_droppable(queue, frame);
    }

    /// Sends a log message to the client if it requested this level. `data` is any JSON value.
    ///
    /// Never log secrets or personal data. Clients of the current revision request logs per request; others set a level
    /// per session (default `info`).
    ///
    /// ```
    /// # use linchpin_server::Cx; use linchpin_types::logging::LoggingLevel;
    /// fn index(cx: &Cx) -> &'static str {
    ///     cx.log(LoggingLevel::Warning, serde_json::json!({ "skipped": 3 }));
    ///     "indexed"
    /// }
    /// # linchpin_server::Server::new("s", "1").tool("index", index);
    /// ```
    pub fn log(&self, level: LoggingLevel, data: impl Serialize) {
        self.log_as(level, None, data);
    }

    /// Like [`Cx::log`], with the name of a logger.
    pub fn log_as(&self, level: LoggingLevel, logger: Option<&str>, data: impl Serialize) {
        if self.0.request.caller.log_level().is_none_or(|least| level < least) {
            return;
        }
        if let Ok(data) = serde_json::to_string(&data) {
            self.send(render::log(level, logger, &data));
        }
    }

    /// Resolves when the call is cancelled or over. Cancel-safe.
    ///
    /// This is only needed for work outside of the handler's own future, which is dropped on cancellation anyway.
    ///
    /// ```
    /// # use linchpin_server::Cx;
    /// async fn start(cx: &Cx) -> &'static str {
    ///     let cx = cx.clone();
    ///     let job = tokio::spawn(async move {
    ///         tokio::select! {
    ///             () = cx.cancelled() => "stopped",
    ///             () = tokio::time::sleep(std::time::Duration::from_secs(5)) => "finished",
    ///         }
    ///     });
    ///     job.await.unwrap_or("failed")
    /// }
    /// # linchpin_server::Server::new("s", "1").tool("start", start);
    /// ```
    pub async fn cancelled(&self) {
        loop {
            let over = self.0.over.notified();
            if self.is_cancelled() {
                return;
            }
            over.await;
        }
    }

    /// Returns whether the call is cancelled or over.
    pub fn is_cancelled(&self) -> bool {
        self.0.cancelled.load(Ordering::Acquire)
    }

    /// Returns the client's name and version, if it sent them. They are not verified, so use them only for display.
    pub fn client(&self) -> Option<Implementation> {
        self.0.request.caller.client_info()
    }

    /// Returns the client's declared capabilities: a `ClientCapabilities` object as JSON text.
    pub fn client_capabilities(&self) -> &str {
        self.0.request.caller.capabilities_json()
    }

    /// Returns which kinds of elicitation and sampling the client supports, and whether it supports roots.
    pub fn caps(&self) -> linchpin_core::ClientCaps {
        self.0.request.caller.caps()
    }

    /// Returns whether the client declares support for showing pages of MCP Apps.
    pub fn wants_ui(&self) -> bool {
        ui::is_wanted_by(&self.0.request.caller)
    }

    /// Returns the protocol revision of the request.
    pub fn revision(&self) -> linchpin_types::version::Revision {
        self.0.request.caller.features().revision
    }

    /// Returns the principal that the transport authenticated. `None` without authentication.
    pub fn principal(&self) -> Option<&Principal> {
        self.0.context.principal.as_ref()
    }

    /// Requires scopes that only some calls need, for example those with certain arguments. [`Tool::scopes`](crate::Tool::scopes)
    /// requires them for every call.
    ///
    /// Return the error with `?`. Over HTTP the gate decides how to respond: by default with status 403 (401 without
    /// authentication) and a challenge that names all of these scopes, so that the client can ask the user for them and
    /// call again; once progress or a log message has been sent, in a task, and on other transports, it is a JSON-RPC
    /// error. Scopes are not checked on transports that only local users can reach.
    ///
    /// ```
    /// # use linchpin_server::{Cx, Result, Server};
    /// # #[derive(serde::Deserialize, schemars::JsonSchema)] struct Put { path: String, force: bool }
    /// async fn put(cx: &Cx, q: Put) -> Result<String> {
    ///     if q.force {
    ///         cx.need_scopes(["files:overwrite"])?;
    ///     }
    ///     Ok(format!("wrote {}", q.path))
    /// }
    /// # Server::new("s", "1").tool("put", put);
    /// ```
    ///
    /// # Errors
    /// If the caller lacks one of the scopes, or is not authenticated.
    pub fn need_scopes<I>(&self, scopes: I) -> crate::Result<()>
    where
        I: IntoIterator,
        I::Item: Into<Arc<str>>,
    {
        let scopes: Arc<[Arc<str>]> = scopes.into_iter().map(Into::into).collect();
        let has = |scope: &Arc<str>| self.principal().is_some_and(|principal| principal.has_scope(scope));
        if !self.0.context.scoped || scopes.iter().all(has) {
            return Ok(());
        }
        let why = format!("missing one of the scopes: {}", scopes.join(", "));
        self.round_trips().scopes = Some(scopes);
        Err(crate::Error::protocol(linchpin_core::reply::MISSING_SCOPES, why))
    }

    /// Returns the HTTP request headers, which are not verified. Empty on other transports.
    pub fn headers(&self) -> &http::HeaderMap {
        #[cfg(feature = "tasks")]
        if let Some(link) = self.link() {
            return link.headers();
        }
        &self.0.context.headers
    }

    /// Returns the request's `_meta` as JSON text.
    pub fn meta(&self) -> &str {
        self.0.request.params.meta.map_or("{}", |span| self.0.request.text(span))
    }

    /// Returns the W3C trace context from `_meta`, or from the HTTP headers. `None` if the client sent no trace
    /// context, or if its `traceparent` is malformed.
    pub fn trace(&self) -> Option<TraceContext> {
        TraceContext::of_request(&self.0.request, self.headers())
    }

    /// Returns the requested resource URI, as the client sent it. `None` if the call is not about a resource.
    pub fn uri(&self) -> Option<&str> {
        let names_uri = matches!(
            self.0.request.known(),
            Some(Method::ResourcesRead | Method::ResourcesSubscribe | Method::ResourcesUnsubscribe)
        );
        (names_uri && self.0.request.params.uri.is_some()).then(|| self.name())
    }

    /// The parameters as JSON text.
    pub(crate) fn params(&self) -> &str {
        self.0.request.params_text()
    }

    /// The name of the tool or prompt, or the URI of the resource; empty for other methods. The method decides which: a
    /// client may send both members.
    pub(crate) fn name(&self) -> &str {
        let request = &self.0.request;
        let named = match request.known() {
            Some(Method::ToolsCall | Method::PromptsGet) => request.params.name,
            Some(Method::ResourcesRead | Method::ResourcesSubscribe | Method::ResourcesUnsubscribe) => {
                request.params.uri
            }
            _ => None,
        };
        match request.string(named) {
            Some(Cow::Borrowed(name)) => name,
            Some(Cow::Owned(name)) => self.0.name.get_or_init(|| name.into()),
            None => "",
        }
    }

    /// Returns an extension of the HTTP request, for example one inserted by a `tower` layer.
    pub fn get<X: Clone + Send + Sync + 'static>(&self) -> Option<X> {
        self.0.context.extensions.get::<X>().cloned()
    }

    /// Returns the client's address over HTTP, if the transport knows it. Behind a proxy, this is the address of the
    /// proxy, unless a layer sets the client's address.
    pub fn peer_addr(&self) -> Option<core::net::SocketAddr> {
        self.0.context.peer
    }

    /// Returns the public id of the call's session, a random number for logs. `None` for stateless requests, and where HTTP
    /// is served without sessions.
    pub fn session_id(&self) -> Option<u64> {
        self.0.request.caller.session().map(|session| session.public_id()).filter(|id| *id != 0)
    }

    /// Returns the session of the call, for sending messages after the call is over. `None` for stateless requests.
    pub fn peer(&self) -> Option<Peer> {
        self.0.request.caller.session().map(|s| Peer(Arc::downgrade(s), Arc::downgrade(&self.0.shared)))
    }

    /// Closes the call's SSE stream; the client reconnects for the result after `retry_ms` milliseconds.
    ///
    /// Meant for long calls over HTTP in sessions of 2025-11-25; it has no effect otherwise. The call continues.
    #[doc(alias = "polling")]
    #[doc(alias = "closeSSEStream")]
    pub fn close_sse_stream(&self, retry_ms: u64) {
        self.0.push(Out::Pause(retry_ms));
    }

    pub(crate) fn caller(&self) -> &Caller {
        &self.0.request.caller
    }

    pub(crate) fn method(&self) -> &MethodName {
        &self.0.request.method
    }

    pub(crate) fn round_trips(&self) -> MutexGuard<'_, RoundTrips> {
        self.0.round_trips.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a notification frame.
    pub(crate) fn send(&self, frame: bytes::Bytes) {
        self.0.push_droppable(self.0.queue(), frame);
    }

    /// Sends a request to the client: on the call's stream or, without a call, on the session's.
    pub(crate) fn push_ask(&self, ask: ServerRequest) -> Result<Option<Withdrawn>, RequestError> {
        if self.is_cancelled() {
            return Err(RequestError::new(RequestErrorKind::Closed, "the call is over"));
        }
        match self.caller().session().filter(|_| self.is_outside()) {
            Some(session) => Ok(session.request(ask).map(|id| Withdrawn { session: session.clone(), id })),
            None => {
                self.0.push(Out::ServerRequest(ask));
                Ok(None)
            }
        }
    }
}

/// A request of a session, which is withdrawn when nobody waits for its response any more.
pub(crate) struct Withdrawn {
    session: Arc<Session>,
    id: u64,
}

impl Drop for Withdrawn {
    fn drop(&mut self) {
        self.session.withdraw(self.id);
    }
}

impl CallState {
    fn new(
        request: Arc<Request>,
        context: Arc<RequestContext>,
        shared: Arc<Shared>,
        round_trips: Mutex<RoundTrips>,
        queue: Mutex<Queue>,
    ) -> CallState {
        CallState {
            request,
            context,
            shared,
            round_trips,
            queue,
            cancelled: AtomicBool::new(false),
            over: Notify::new(),
            name: OnceLock::new(),
            outside: false,
            #[cfg(feature = "tasks")]
            link: None,
        }
    }

    pub(crate) fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn push(&self, out: Out) {
        let mut queue = self.queue();
        if !queue.closed {
            queue.out.push_back(out);
            wake(&mut queue);
        } else if let Out::ServerRequest(ask) = out {
            drop(queue);
            (ask.answer)(Err(linchpin_core::ServerRequestError::Disconnected));
        }
    }

    fn push_droppable(&self, mut queue: MutexGuard<'_, Queue>, frame: bytes::Bytes) {
        #[cfg(feature = "tasks")]
        if let Some(task) = self.link.as_ref().and_then(|link| link.task()) {
            // The call's stream is over. A session's goes on; without one, a task says only its status.
            if let Some(feed) = self.request.caller.session().and_then(|session| session.feed()) {
                self.tell(feed.feed(), link::related(&frame, task.id()));
            }
            return;
        }
        if self.outside {
            if let Some(feed) = self.request.caller.session().and_then(|session| session.feed()) {
                self.tell(feed.feed(), frame);
            }
            return;
        }
        if queue.closed {
            return;
        }
        if queue.out.len() >= self.shared.limits.messages.queued_max
            && let Some(oldest) = queue.out.iter().position(|o| matches!(o, Out::Notify(_)))
        {
            queue.out.remove(oldest);
            self.shared.dropped();
        }
        queue.out.push_back(Out::Notify(frame));
        wake(&mut queue);
    }

    /// Sends a message on the stream of the session.
    fn tell(&self, feed: &Subscription, frame: bytes::Bytes) {
        if feed.push(&ServerChange::Log(frame)) {
            self.shared.dropped();
        }
    }

    /// Drops all pending messages and wakes the tasks that wait for the end of the call.
    pub(crate) fn close(&self) {
        let mut queue = self.queue();
        queue.closed = true;
        queue.waker = None;
        let left = std::mem::take(&mut queue.out);
        drop(queue);
        for out in left {
            if let Out::ServerRequest(ask) = out {
                (ask.answer)(Err(linchpin_core::ServerRequestError::Disconnected));
            }
        }
        self.cancelled.store(true, Ordering::Release);
        self.over.notify_waiters();
    }
}

fn wake(queue: &mut Queue) {
    if let Some(waker) = queue.waker.take() {
        waker.wake();
    }
}

impl Cancel for CallState {
    fn cancel(&self) {
        self.cancelled.store(true, Ordering::Release);
        self.over.notify_waiters();
        wake(&mut self.queue());
    }
}

impl Audience {
    /// Returns the session of a call or, on transports where each client has its own connection, the connection. `None` for
    /// stateless requests over HTTP. The audience does not keep the session alive.
    pub fn session(cx: &Cx) -> Option<Audience> {
        Audience::session_of(cx.caller(), &cx.0.context)
    }
}

impl fmt::Debug for Cx {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cx").field("method", &self.method()).finish_non_exhaustive()
    }
}

/// A weak reference to a client's session. It does not keep the session alive.
///
/// ```
/// # use linchpin_server::Cx;
/// use linchpin_types::logging::LoggingLevel;
/// use std::time::Duration;
///
/// // A tool that continues to work after its response, and notifies the session when it is done.
/// async fn start(cx: &Cx) -> &'static str {
///     if let Some(peer) = cx.peer() {
///         tokio::spawn(async move {
///             tokio::time::sleep(Duration::from_secs(5)).await;
///             peer.log(LoggingLevel::Info, None, "done");
///         });
///     }
///     "started"
/// }
/// # linchpin_server::Server::new("s", "1").tool("start", start);
/// ```
#[derive(Clone)]
pub struct Peer(Weak<Session>, Weak<Shared>);

impl Peer {
    /// Sends a log message on the session's stream if its level is enabled.
    ///
    /// Returns `false` once the session is over.
    ///
    /// At most 128 messages are queued for a client that does not read; the oldest are dropped.
    pub fn log(&self, level: LoggingLevel, logger: Option<&str>, data: impl Serialize) -> bool {
        let Some(session) = self.0.upgrade() else { return false };
        if level >= session.log_level()
            && let (Some(feed), Ok(data)) = (session.feed(), serde_json::to_string(&data))
        {
            let gave_way = feed.feed().push(&ServerChange::Log(render::log(level, logger, &data)));
            if let Some(shared) = self.1.upgrade().filter(|_| gave_way) {
                shared.dropped();
            }
        }
        true
    }

    /// Returns the URIs that the session is subscribed to.
    pub fn subscriptions(&self) -> Vec<Box<str>> {
        self.0.upgrade().and_then(|s| s.feed().map(|f| f.feed().subscriptions())).unwrap_or_default()
    }

    /// Notifies this session that a resource has changed, if it is subscribed to the resource.
    ///
    /// Returns `false` once the session is over.
    pub fn resource_updated(&self, uri: &str) -> bool {
        let Some(session) = self.0.upgrade() else { return false };
        if let Some(feed) = session.feed() {
            feed.feed().push(&ServerChange::Updated(uri.into()));
        }
        true
    }

    /// Returns whether the session still exists.
    pub fn is_open(&self) -> bool {
        self.0.strong_count() > 0
    }

    /// Returns a key that is unique among the existing sessions and the same for all calls of one session.
    pub fn key(&self) -> usize {
        self.0.as_ptr() as usize
    }
}

impl fmt::Debug for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Peer").field("open", &self.is_open()).finish()
    }
}
