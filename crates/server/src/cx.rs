//! What a call may want of its caller: progress, logs, questions, and who is asking.

use crate::core::Core;
use crate::error::{Error, Result};
use crate::handle::Handle;
use crate::rounds::Rounds;
use linchpin_proto::frame::Request;
use linchpin_proto::service::{Cancel, Door};
use linchpin_proto::{Ask, Caller, Change, Method, Session, render};
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

/// The context of one call. Cheap to clone; a clone may outlive the call, but then sends nothing.
///
/// Dropping the call's future (cancellation, deadline, a closed stream) is how work stops; [`Cx::cancelled`] is for work
/// the handler moved elsewhere.
#[derive(Clone)]
pub struct Cx(pub(crate) Arc<CallState>);

pub(crate) struct CallState {
    pub(crate) request: Request,
    pub(crate) door: Door,
    pub(crate) core: Arc<Core>,
    pub(crate) rounds: Mutex<Rounds>,
    queue: Mutex<Queue>,
    cancelled: AtomicBool,
    over: Notify,
    /// What is called, where JSON has escapes in it.
    name: OnceLock<Box<str>>,
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
    Ask(Ask),
    Pause(u64),
}

impl Cx {
    pub(crate) fn new(request: Request, door: Door, core: Arc<Core>, rounds: Rounds) -> Cx {
        let (queue, cancelled, over) = (Mutex::default(), AtomicBool::new(false), Notify::new());
        let (rounds, name) = (Mutex::new(rounds), OnceLock::new());
        Cx(Arc::new(CallState { request, door, core, rounds, queue, cancelled, over, name }))
    }

    /// Reports progress: how much is done, and of how much if that is known, in any unit.
    ///
    /// Does nothing when the client did not ask for progress. `done` must grow from call to call; a report that does not
    /// is left out, as the specification wants. Reports to a slow reader are dropped oldest first.
    pub fn progress(&self, done: f64, total: Option<f64>) {
        self.report(done, total, None);
    }

    /// [`Cx::progress`] with a sentence for a person (left out for clients of 2024-11-05, which have no place for it).
    pub fn progress_with(&self, done: f64, total: Option<f64>, message: &str) {
        self.report(done, total, Some(message));
    }

    fn report(&self, done: f64, total: Option<f64>, message: Option<&str>) {
        let request = &self.0.request;
        let Some(token) = request.progress_token else { return };
        let mut queue = self.0.queue();
        if !done.is_finite() || queue.progress.is_some_and(|last| done <= last) {
            return;
        }
        queue.progress = Some(done);
        let frame = render::progress(request.caller.wire(), request.text(token), done, total, message);
        self.0.push_droppable(queue, frame);
    }

    /// Sends a log message to the client, if it wants messages of this level now. `data` is any JSON value.
    ///
    /// Never put secrets or personal data here. Clients of the current revision ask for logs per request; others set a
    /// level per session (default `info`).
    pub fn log(&self, level: LoggingLevel, data: impl Serialize) {
        self.log_as(level, None, data);
    }

    /// [`Cx::log`] under the name of a logger.
    pub fn log_as(&self, level: LoggingLevel, logger: Option<&str>, data: impl Serialize) {
        if self.0.request.caller.log_level().is_none_or(|least| level < least) {
            return;
        }
        if let Ok(data) = serde_json::to_string(&data) {
            self.0.push_droppable(self.0.queue(), render::log(level, logger, &data));
        }
    }

    /// Resolves when the call is cancelled or over. Only needed for work moved out of the handler's own future, which is
    /// dropped on cancellation anyway. Cancel-safe.
    pub async fn cancelled(&self) {
        loop {
            let over = self.0.over.notified();
            if self.is_cancelled() {
                return;
            }
            over.await;
        }
    }

    /// Whether the call is cancelled or over.
    pub fn is_cancelled(&self) -> bool {
        self.0.cancelled.load(Ordering::Acquire)
    }

    /// The client's name and version, if it gave them. For display only; nobody verified it.
    pub fn client(&self) -> Option<Implementation> {
        self.0.request.caller.client_info()
    }

    /// What the client declared that it can do, as JSON text of a `ClientCapabilities` object.
    pub fn client_capabilities(&self) -> &str {
        self.0.request.caller.capabilities_json()
    }

    /// Whether the client can be asked with a form, asked to open a URL, to sample, or to list roots.
    pub fn caps(&self) -> linchpin_proto::ClientCaps {
        self.0.request.caller.caps()
    }

    /// The protocol revision the call came in.
    pub fn revision(&self) -> linchpin_types::version::Revision {
        self.0.request.caller.wire().revision
    }

    /// Who asks, as the transport's authentication verified it. `None` without authentication.
    pub fn principal(&self) -> Option<&str> {
        self.0.door.principal.as_deref()
    }

    /// HTTP request headers; empty on other wires. They are the client's word.
    pub fn headers(&self) -> &http::HeaderMap {
        &self.0.door.headers
    }

    /// The request's `_meta` as JSON text.
    pub fn meta(&self) -> &str {
        self.0.request.params.meta.map_or("{}", |span| self.0.request.text(span))
    }

    /// W3C trace context from `_meta`, for spans of one's own. Empty when the client sent none.
    pub fn trace(&self) -> TraceContext {
        serde_json::from_str(self.meta()).unwrap_or_default()
    }

    /// The URI that is read, as the client sent it. `None` outside of resources.
    pub fn uri(&self) -> Option<&str> {
        self.0.request.params.uri.map(|_| self.name())
    }

    /// What is called: the name of a tool or prompt, or the URI of a resource.
    pub(crate) fn name(&self) -> &str {
        let request = &self.0.request;
        match request.string(request.params.name.or(request.params.uri)) {
            Some(Cow::Borrowed(name)) => name,
            Some(Cow::Owned(name)) => self.0.name.get_or_init(|| name.into()),
            None => "",
        }
    }

    /// What a `tower` layer at the HTTP edge left in the request's extensions.
    pub fn get<X: Clone + Send + Sync + 'static>(&self) -> Option<X> {
        self.0.door.extensions.get::<X>().cloned()
    }

    /// The running server: add, remove and change what it offers.
    pub fn server(&self) -> Handle {
        Handle::new(self.0.core.offers.clone())
    }

    /// The session the call belongs to, for log messages after the call is over. `None` where requests stand alone.
    pub fn peer(&self) -> Option<Peer> {
        self.0.request.caller.session().map(|s| Peer(Arc::downgrade(s)))
    }

    /// Closes the call's stream and lets the client come back for the answer after `retry_ms` milliseconds. For long calls
    /// over HTTP with sessions of 2025-11-25; elsewhere it does nothing. The call itself goes on.
    pub fn release_stream(&self, retry_ms: u64) {
        self.0.push(Out::Pause(retry_ms));
    }

    pub(crate) fn caller(&self) -> &Caller {
        &self.0.request.caller
    }

    pub(crate) fn method(&self) -> Method {
        self.0.request.method
    }

    pub(crate) fn rounds(&self) -> MutexGuard<'_, Rounds> {
        self.0.rounds.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn push_ask(&self, ask: Ask) -> Result<()> {
        if self.is_cancelled() {
            return Err(Error::tool("the call is over"));
        }
        self.0.push(Out::Ask(ask));
        Ok(())
    }
}

impl CallState {
    pub(crate) fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, out: Out) {
        let mut queue = self.queue();
        if !queue.closed {
            queue.out.push_back(out);
            wake(&mut queue);
        } else if let Out::Ask(ask) = out {
            drop(queue);
            (ask.answer)(Err(linchpin_proto::AskError::Gone));
        }
    }

    fn push_droppable(&self, mut queue: MutexGuard<'_, Queue>, frame: bytes::Bytes) {
        if queue.closed {
            return;
        }
        if queue.out.len() >= self.core.limits.queue_messages_max
            && let Some(oldest) = queue.out.iter().position(|o| matches!(o, Out::Notify(_)))
        {
            queue.out.remove(oldest);
        }
        queue.out.push_back(Out::Notify(frame));
        wake(&mut queue);
    }

    /// No message leaves any more; whoever waits for the call's end is woken.
    pub(crate) fn close(&self) {
        let mut queue = self.queue();
        queue.closed = true;
        queue.waker = None;
        let left = std::mem::take(&mut queue.out);
        drop(queue);
        for out in left {
            if let Out::Ask(ask) = out {
                (ask.answer)(Err(linchpin_proto::AskError::Gone));
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

impl fmt::Debug for Cx {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cx").field("method", &self.method()).finish_non_exhaustive()
    }
}

/// A client's session, held weakly: it does not keep the session alive.
#[derive(Clone)]
pub struct Peer(Weak<Session>);

impl Peer {
    /// Sends a log message on the session's own stream, if the session's level lets it through. `false` once the session is
    /// over. At most 128 wait for a client that does not read; the oldest are dropped.
    pub fn log(&self, level: LoggingLevel, logger: Option<&str>, data: impl Serialize) -> bool {
        let Some(session) = self.0.upgrade() else { return false };
        if level >= session.log_level()
            && let (Some(feed), Ok(data)) = (session.feed(), serde_json::to_string(&data))
        {
            feed.feed().push(&Change::Log(render::log(level, logger, &data)));
        }
        true
    }

    /// The resources the session subscribed to.
    pub fn subscriptions(&self) -> Vec<Box<str>> {
        self.0.upgrade().and_then(|s| s.feed().map(|f| f.feed().subscriptions())).unwrap_or_default()
    }

    /// Tells this session, if it subscribed, that a resource changed. `false` once the session is over.
    pub fn resource_updated(&self, uri: &str) -> bool {
        let Some(session) = self.0.upgrade() else { return false };
        if let Some(feed) = session.feed() {
            feed.feed().push(&Change::Updated(uri.into()));
        }
        true
    }

    /// Whether the session still exists.
    pub fn is_open(&self) -> bool {
        self.0.strong_count() > 0
    }

    /// A value that is the same for calls of one session and differs between sessions that exist at the same time.
    pub fn key(&self) -> usize {
        self.0.as_ptr() as usize
    }
}

impl fmt::Debug for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Peer").field("open", &self.is_open()).finish()
    }
}

/// W3C trace context of a request, as sent.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Deserialize)]
pub struct TraceContext {
    /// `traceparent`
    pub traceparent: Option<String>,
    /// `tracestate`
    pub tracestate: Option<String>,
    /// `baggage`
    pub baggage: Option<String>,
}
