//! The state of a connection: its current transport, and everything that outlives a transport.

use crate::Change;
use crate::active_transport::ActiveTransport;
use crate::cache::Cache;
use crate::config::{ClientConfig, NotificationHandler};
use crate::listeners::Listeners;
use crate::lock::lock;
use crate::questions::Questions;
use crate::queue::Queue;
use crate::request_parts::{RequestParts, Watched};
use crate::task_feed::TaskFeed;
use crate::tool_index::ToolIndex;
use arc_swap::ArcSwapOption;
use linchpin_core::method::Method;
use linchpin_core::{Connector, TransportError};
use linchpin_types::logging::{LoggingLevel, LoggingMessageNotificationParams};
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use tokio::sync::{Notify, Semaphore};
use tokio::task::AbortHandle;
use tracing::field::Empty;

pub(crate) struct ConnectionState {
    pub(crate) config: Arc<ClientConfig>,
    pub(crate) connector: Arc<dyn Connector>,
    pub(crate) live: ArcSwapOption<ActiveTransport>,
    /// Held while a transport is being opened, so that it is opened once.
    pub(crate) opening: tokio::sync::Mutex<()>,
    pub(crate) generations: AtomicU64,
    pub(crate) ids: AtomicU64,
    closed: AtomicBool,
    pub(crate) restarts: AtomicU32,
    pub(crate) given_up: Mutex<Option<TransportError>>,
    /// Calls with progress, by their ids, which are the progress tokens.
    pub(crate) progress: Mutex<HashMap<u64, Arc<Watched>>>,
    /// Events for the host's callbacks.
    pub(crate) events: Arc<Queue<Event>>,
    pub(crate) listeners: Mutex<Listeners>,
    pub(crate) feed: TaskFeed,
    pub(crate) tools: ToolIndex,
    pub(crate) cache: Cache,
    /// Limits concurrent server requests.
    pub(crate) asks: Arc<Semaphore>,
    /// Running server requests, by the JSON text of their ids, so that the server can cancel them.
    pub(crate) asking: Mutex<HashMap<Box<str>, AbortHandle>>,
    /// Those that the host is answering.
    pub(crate) questions: Arc<Questions>,
    pub(crate) visited: Visited,
    pub(crate) log_level: Mutex<Option<LoggingLevel>>,
}

/// URLs whose elicitation the server completed.
#[derive(Default)]
pub(crate) struct Visited {
    pub(crate) ids: Mutex<HashSet<String>>,
    pub(crate) changed: Notify,
}

/// An event for the host's callbacks.
pub(crate) enum Event {
    Log(LoggingMessageNotificationParams),
    Change(Change),
    /// A notification for its handler: the parameters as JSON text.
    Notification(NotificationHandler, String),
}

impl ConnectionState {
    pub(crate) fn new(config: Arc<ClientConfig>, connector: Arc<dyn Connector>) -> ConnectionState {
        let limits = config.limits.clone();
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
            feed: TaskFeed::default(),
            tools: ToolIndex::default(),
            cache: Cache::new(if config.cache { limits.calls.cache_bytes_max } else { 0 }),
            asks: Arc::new(Semaphore::new(limits.server_requests.concurrent_max)),
            asking: Mutex::default(),
            questions: Arc::default(),
            visited: Visited::default(),
            log_level: Mutex::new(config.log_level),
            config,
        }
    }

    /// The span of a request, whose trace the request asks the server to continue. Its revision is that of the latest
    /// transport.
    pub(crate) fn span(&self, request: &mut RequestParts) -> tracing::Span {
        // As on the server's side: a URI may hold what must not be logged, and an id of a task opens it.
        let is_named = matches!(Method::parse(&request.method), Some(Method::ToolsCall | Method::PromptsGet));
        let live = self.latest();
        let span = tracing::info_span!(
            target: "linchpin::client",
            "request",
            method = &*request.method,
            name = request.about.as_deref().filter(|_| is_named),
            revision = live.as_ref().map(|live| live.agreed.features.revision.as_str()),
            outcome = Empty,
            duration = Empty,
        );
        if let Some(current) = &self.config.trace_context
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

    /// What the server is called in the book of open tasks.
    pub(crate) fn target(&self) -> String {
        self.connector.key().unwrap_or_else(|| self.connector.name())
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

    /// Whether the host waits for what the server says unasked: it has subscriptions, or callbacks for notifications.
    pub(crate) fn hears(&self) -> bool {
        let config = &self.config;
        let calls_back = config.on_change.is_some() || config.on_log.is_some() || !config.notifications.is_empty();
        calls_back || !lock(&self.listeners).all.is_empty()
    }

    /// Returns the latest transport, even if it is lost.
    pub(crate) fn latest(&self) -> Option<Arc<ActiveTransport>> {
        self.live.load_full()
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

    /// Returns the call with this progress token.
    pub(crate) fn watched(&self, token: u64) -> Option<Arc<Watched>> {
        lock(&self.progress).get(&token).cloned()
    }
}
