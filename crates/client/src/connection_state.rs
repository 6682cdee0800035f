//! The state of a connection: its current transport, and everything that outlives a transport.

use crate::cache::Cache;
use crate::client::{ClientConfig, NotificationHandler};
use crate::error::{Error, ErrorKind};
use crate::listen::Listeners;
use crate::mrtr::Round;
use crate::queue::Queue;
use crate::request::Progress;
use crate::tool_index::ToolIndex;
use crate::{Change, Result, negotiate, supervise};
use arc_swap::ArcSwapOption;
use bytestring::ByteString;
use linchpin_core::json::{Span, read_str};
use linchpin_core::message::{Kind, Message, ResultMembers};
use linchpin_core::{Answer, ClientTransport, Connector, Features, TraceContext, TransportError};
use linchpin_proto::message_writer::{Extras, Members, Writer};
use linchpin_proto::negotiation::Agreed;
use linchpin_types::logging::{LoggingLevel, LoggingMessageNotificationParams};
use linchpin_types::meta::{Meta, key};
use linchpin_types::page::ResultType;
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, Semaphore};
use tokio::task::AbortHandle;
use tokio::time::Instant;

pub(crate) struct ConnectionState {
    pub(crate) recipe: Arc<ClientConfig>,
    pub(crate) connector: Arc<dyn Connector>,
    pub(crate) live: ArcSwapOption<ActiveTransport>,
    /// Held while a transport is being opened, so that it is opened once.
    pub(crate) opening: tokio::sync::Mutex<()>,
    pub(crate) generations: AtomicU64,
    ids: AtomicU64,
    closed: AtomicBool,
    restarts: AtomicU32,
    given_up: Mutex<Option<TransportError>>,
    /// Calls with progress, by their ids, which are the progress tokens.
    progress: Mutex<HashMap<u64, Arc<Watched>>>,
    /// Events for the host's callbacks.
    pub(crate) events: Arc<Queue<Event>>,
    pub(crate) listeners: Mutex<Listeners>,
    pub(crate) tools: ToolIndex,
    pub(crate) cache: Cache,
    /// Limits concurrent server requests.
    pub(crate) asks: Arc<Semaphore>,
    /// Running server requests, by the JSON text of their ids, so that the server can cancel them.
    pub(crate) asking: Mutex<HashMap<Box<str>, AbortHandle>>,
    pub(crate) visited: Visited,
    pub(crate) log_level: Mutex<Option<LoggingLevel>>,
}

/// URLs whose elicitation the server completed.
#[derive(Default)]
pub(crate) struct Visited {
    pub(crate) ids: Mutex<HashSet<String>>,
    pub(crate) changed: Notify,
}

/// An open transport and the negotiated properties.
pub(crate) struct ActiveTransport {
    pub(crate) link: Arc<dyn ClientTransport>,
    pub(crate) agreed: Agreed,
    pub(crate) writer: Writer,
    pub(crate) generation: u64,
    pub(crate) since: Instant,
    pub(crate) lost: OnceLock<TransportError>,
}

/// An event for the host's callbacks.
pub(crate) enum Event {
    Log(LoggingMessageNotificationParams),
    Change(Change),
    /// A notification for its handler: the parameters as JSON text.
    Notification(NotificationHandler, String),
}

/// A call with progress.
pub(crate) struct Watched {
    pub(crate) queue: Queue<Progress>,
    /// Progress arrived: the deadline restarts.
    pub(crate) touched: Notify,
}

/// A request before it has an id.
pub(crate) struct RequestParts {
    pub(crate) method: Cow<'static, str>,
    pub(crate) members: Members,
    pub(crate) about: Option<Box<str>>,
    /// The range of a tool's arguments in `members`.
    pub(crate) arguments: Option<Range<usize>>,
    pub(crate) meta: Option<Meta>,
}

/// The options of a request.
#[derive(Clone, Default)]
pub(crate) struct Options {
    /// `None` means no timeout.
    pub(crate) timeout: Option<Duration>,
    pub(crate) watched: Option<Arc<Watched>>,
    pub(crate) log: Option<LoggingLevel>,
}

/// A successful response.
pub(crate) struct Response {
    pub(crate) message: Message,
    pub(crate) result: Span,
    /// Always [`ResultType::Complete`] in revisions without `resultType`.
    pub(crate) result_type: ResultType,
}

/// The JSON text of a result, and where its members are in it.
pub struct ResultText {
    pub(crate) text: ByteString,
    pub(crate) members: ResultMembers,
}

impl ResultText {
    /// A text whose members are not known.
    pub(crate) fn new(text: ByteString) -> ResultText {
        ResultText { text, members: ResultMembers::default() }
    }
}

impl Response {
    pub(crate) fn text(&self) -> &str {
        self.message.text(self.result)
    }

    /// Returns the JSON text of a member of the result.
    pub(crate) fn member(&self, member: impl FnOnce(&ResultMembers) -> Option<Span>) -> Option<&str> {
        member(self.message.result()).map(|span| self.message.text(span))
    }

    /// Returns how long the result may be cached, from its `ttlMs`.
    pub(crate) fn ttl_ms(&self) -> u64 {
        let ttl_ms = self.member(|members| members.ttl_ms).and_then(|ms| ms.parse::<f64>().ok());
        ttl_ms.filter(|ms| *ms > 0.0).map_or(0, |ms| ms as u64)
    }

    /// Returns the result, which shares the message's memory.
    pub(crate) fn into_text(self) -> ResultText {
        let bytes = self.message.frame().as_bytes().slice(self.result.range());
        // A part of UTF-8 text between two JSON tokens is valid UTF-8.
        let text = ByteString::try_from(bytes).unwrap_or_default();
        ResultText { text, members: self.message.result().within(self.result) }
    }
}

/// Locks and ignores poisoning: the guarded data is consistent between statements.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl RequestParts {
    /// Adds a trace to `_meta`. A `traceparent` that is there already stays.
    pub(crate) fn trace(&mut self, trace: &TraceContext) {
        let meta = self.meta.get_or_insert_with(Meta::new);
        if meta.get(key::TRACEPARENT).is_some() {
            return;
        }
        let rest = [("tracestate", &trace.tracestate), ("baggage", &trace.baggage)];
        let members = rest.into_iter().filter_map(|(name, value)| Some((name, value.as_deref()?)));
        for (name, value) in members.chain([(key::TRACEPARENT, &*trace.traceparent)]) {
            // Texts can always be JSON.
            let _ = meta.insert_as(name, value);
        }
    }

    pub(crate) fn new(method: impl Into<Cow<'static, str>>) -> RequestParts {
        RequestParts { method: method.into(), members: Members::loose(), about: None, arguments: None, meta: None }
    }
}

impl ConnectionState {
    pub(crate) fn new(recipe: Arc<ClientConfig>, connector: Arc<dyn Connector>) -> ConnectionState {
        let limits = recipe.limits.clone();
        ConnectionState {
            connector,
            live: ArcSwapOption::empty(),
            opening: tokio::sync::Mutex::new(()),
            generations: AtomicU64::new(0),
            ids: AtomicU64::new(1),
            closed: AtomicBool::new(false),
            restarts: AtomicU32::new(0),
            given_up: Mutex::default(),
            progress: Mutex::default(),
            events: Arc::new(Queue::new(limits.messages.queued_max)),
            listeners: Mutex::default(),
            tools: ToolIndex::default(),
            cache: Cache::new(if recipe.cache { limits.calls.cache_bytes_max } else { 0 }),
            asks: Arc::new(Semaphore::new(limits.server_requests.concurrent_max)),
            asking: Mutex::default(),
            visited: Visited::default(),
            log_level: Mutex::new(recipe.log_level),
            recipe,
        }
    }

    /// The span of a request, whose trace the request asks the server to continue.
    pub(crate) fn span(&self, request: &mut RequestParts) -> tracing::Span {
        let name = request.about.as_deref();
        let span = tracing::info_span!(
            target: "linchpin::client",
            "request",
            method = &*request.method,
            name,
            outcome = tracing::field::Empty,
        );
        if let Some(current) = &self.recipe.trace_context
            && let Some(trace) = span.in_scope(|| current())
        {
            request.trace(&trace);
        }
        span
    }

    /// The name of the server, or else of its address.
    pub(crate) fn server_name(&self) -> String {
        let server = self.latest().and_then(|live| live.agreed.server.clone());
        server.map_or_else(|| self.connector.name(), |server| server.name)
    }

    pub(crate) fn next_id(&self) -> u64 {
        self.ids.fetch_add(1, Ordering::Relaxed)
    }

    /// Returns the number of consecutive transports that did not last.
    pub(crate) fn restarts_in_a_row(&self) -> u32 {
        self.restarts.load(Ordering::Relaxed)
    }

    /// Stops reconnecting; calls fail with this error.
    pub(crate) fn give_up(&self, why: TransportError) {
        tracing::warn!(%why, "reconnect attempts exhausted");
        *lock(&self.given_up) = Some(why);
        lock(&self.listeners).close();
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Returns the latest transport, even if it is lost.
    pub(crate) fn latest(&self) -> Option<Arc<ActiveTransport>> {
        self.live.load_full()
    }

    /// Returns the transport to use. A lost one is reopened if the host enabled that.
    pub(crate) async fn live(self: &Arc<ConnectionState>) -> Result<Arc<ActiveTransport>> {
        if self.is_closed() {
            return Err(Error::closed());
        }
        if let Some(live) = self.live.load_full() {
            match live.lost.get() {
                None => return Ok(live),
                Some(why) if self.recipe.restart.is_none() => return Err(why.clone().into()),
                Some(_) => {}
            }
            if let Some(why) = lock(&self.given_up).clone() {
                return Err(why.into());
            }
            return self.reopen(live.generation).await;
        }
        self.reopen(0).await
    }

    /// Reopens the transport unless another task has done so since `generation`.
    pub(crate) async fn reopen(self: &Arc<ConnectionState>, generation: u64) -> Result<Arc<ActiveTransport>> {
        let _one = self.opening.lock().await;
        if self.is_closed() {
            return Err(Error::closed());
        }
        if let Some(live) = self.live.load_full().filter(|l| l.generation > generation && l.lost.get().is_none()) {
            return Ok(live);
        }
        let again = self.live.load_full();
        if let Some(old) = &again {
            let held = old.since.elapsed() > supervise::HELD;
            let n = if held { 0 } else { self.restarts.load(Ordering::Relaxed) + 1 };
            self.restarts.store(n, Ordering::Relaxed);
        }
        let live = negotiate::open(self).await?;
        if again.is_some() {
            supervise::restore(self, &live).await;
        }
        Ok(live)
    }

    /// Closes everything. Returns the transport to close, on the first call only.
    pub(crate) fn shut(&self) -> Option<Arc<ActiveTransport>> {
        if self.closed.swap(true, Ordering::AcqRel) {
            return None;
        }
        self.events.close();
        lock(&self.listeners).close();
        for (_, task) in lock(&self.asking).drain() {
            task.abort();
        }
        self.live.load_full()
    }

    /// Sends a request and waits for its result; retries once if the server no longer knows the session.
    pub(crate) async fn exchange(
        self: &Arc<ConnectionState>,
        request: &RequestParts,
        options: &Options,
        round: &Round,
    ) -> Result<Response> {
        let live = self.live().await?;
        match self.exchange_on(&live, request, options, round).await {
            Err(e) if matches!(e.transport(), Some(TransportError::Forgotten)) => {
                let live = self.reopen(live.generation).await?;
                self.exchange_on(&live, request, options, round).await
            }
            other => other,
        }
    }

    /// Sends a request on this transport.
    pub(crate) async fn exchange_on(
        &self,
        live: &Arc<ActiveTransport>,
        request: &RequestParts,
        options: &Options,
        round: &Round,
    ) -> Result<Response> {
        let id = self.next_id();
        let extras = Extras { progress: options.watched.is_some(), log: options.log, meta: request.meta.as_ref() };
        let mut out = live.writer.request(id, request.method.clone(), extras, |members| {
            members.append(&request.members);
            round.write(members);
        });
        out.about.clone_from(&request.about);
        if let Some(arguments) = &request.arguments {
            let text = std::str::from_utf8(&request.members.as_bytes()[arguments.clone()]).unwrap_or("{}");
            out.mirrored = self.tools.mirror(request.about.as_deref().unwrap_or(""), text);
        }
        let _watch = options.watched.as_ref().map(|watched| self.watch(id, watched));
        let mut cancel = Cancel { live, id, answered: false };
        let waited = self.wait(live, options, live.link.exchange(out)).await;
        // The transport reported a response or its loss: nothing is left to cancel.
        cancel.answered = waited.is_ok();
        let answer = waited??;
        self.response(answer, live.agreed.features)
    }

    /// Parses a response.
    pub(crate) fn response(&self, answer: Answer, features: &Features) -> Result<Response> {
        let result = match answer.message.kind {
            Kind::Response { outcome: Ok(result), .. } => result,
            Kind::Response { outcome: Err(error), .. } => {
                return Err(Error::refused(answer.message.text(error)));
            }
            _ => {
                let why = "the transport returned a message that is not a response";
                return Err(Error::new(ErrorKind::InvalidResponse, why));
            }
        };
        let stated = if features.result_types { result_type(&answer.message)? } else { ResultType::Complete };
        // Declared extensions may have result types of their own; the host checks them.
        if let ResultType::Other(name) = &stated
            && self.recipe.extensions.is_empty()
        {
            let name: String = name.chars().take(80).collect();
            return Err(unknown_type(&format!("{name:?}")));
        }
        Ok(Response { message: answer.message, result, result_type: stated })
    }

    /// Waits with the call's timeout, which progress and pending user input extend.
    async fn wait<F: Future>(&self, live: &ActiveTransport, options: &Options, work: F) -> Result<F::Output> {
        let Some(limit) = options.timeout else { return Ok(work.await) };
        let mut work = std::pin::pin!(work);
        let end = Instant::now() + Duration::from_millis(self.recipe.limits.calls.run_with_progress_ms_max).max(limit);
        loop {
            let touched = async {
                match &options.watched {
                    Some(watched) => watched.touched.notified().await,
                    None => std::future::pending().await,
                }
            };
            let limit_now = limit.min(end.saturating_duration_since(Instant::now()));
            tokio::select! {
                biased;
                done = &mut work => return Ok(done),
                () = touched => {}
                () = tokio::time::sleep(limit_now) => {
                    if !live.link.waits_for_person() {
                        return Err(Error::timeout(limit));
                    }
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            }
        }
    }

    fn watch<'a>(&'a self, id: u64, watched: &Arc<Watched>) -> impl Drop + 'a {
        lock(&self.progress).insert(id, watched.clone());
        Watch { core: self, id }
    }

    /// Returns the call with this progress token.
    pub(crate) fn watched(&self, token: u64) -> Option<Arc<Watched>> {
        lock(&self.progress).get(&token).cloned()
    }
}

struct Watch<'a> {
    core: &'a ConnectionState,
    id: u64,
}

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        lock(&self.core.progress).remove(&self.id);
    }
}

/// Cancels the request at the server if dropped before the response.
pub(crate) struct Cancel<'a> {
    pub(crate) live: &'a ActiveTransport,
    pub(crate) id: u64,
    pub(crate) answered: bool,
}

impl Drop for Cancel<'_> {
    fn drop(&mut self) {
        if self.answered || self.live.link.cancels_by_dropping() || self.live.lost.get().is_some() {
            return;
        }
        let id = self.id.to_string();
        self.live.link.notify_detached(self.live.writer.notification("notifications/cancelled", |members| {
            members.raw("requestId", &id);
            members.text("reason", "the caller no longer waits");
        }));
    }
}

/// Returns the `resultType`. A missing one means complete.
fn result_type(message: &Message) -> Result<ResultType> {
    match message.result().result_type.map(|span| message.text(span)) {
        None | Some("null") => Ok(ResultType::Complete),
        Some(value) => read_str(value)
            .map(|name| ResultType::from(name.into_owned()))
            .ok_or_else(|| unknown_type(&value.chars().take(80).collect::<String>())),
    }
}

fn unknown_type(value: &str) -> Error {
    let why = format!(
        "the server answered with a result whose `resultType` is {value}, so it is not used: this client knows \"complete\" \
         and \"input_required\""
    );
    Error::new(ErrorKind::InvalidResponse, why)
}
