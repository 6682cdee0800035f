//! Per-session state: simulated logs, simulated updates, stored results.

use crate::{Everything, Options, SERVICE, offers};
use linchpin::prelude::*;
use linchpin::{Handle, Peer};
use linchpin_kit::{ToolPrefix, ToolSet, ToolSpec};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::task::AbortHandle;

/// Maximum stored results per session.
const KEPT_MAX: usize = 8;
/// Maximum stored bytes of all sessions together.
const KEPT_BYTES_MAX: usize = 32 << 20;
/// Maximum URLs of a session from URLElicitationRequired errors.
const SENT_MAX: usize = 64;

/// The state of a session, made by [`Server::session_state`](linchpin::Server::session_state) and dropped with it.
#[derive(Debug)]
pub(crate) struct Session {
    state: Mutex<State>,
    /// The stored bytes of all sessions.
    all_bytes: Arc<AtomicUsize>,
}

#[derive(Debug, Default)]
struct State {
    logging: Option<Running>,
    updates: Option<Running>,
    kept: BTreeMap<String, Arc<[u8]>>,
    sent_to: BTreeSet<String>,
}

/// A task that ends when this is dropped.
#[derive(Debug)]
struct Running(AbortHandle);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let kept: usize = self.lock().kept.values().map(|bytes| bytes.len()).sum();
        self.all_bytes.fetch_sub(kept, Ordering::Relaxed);
    }
}

impl Session {
    pub(crate) fn new(all_bytes: Arc<AtomicUsize>) -> Self {
        Self { state: Mutex::default(), all_bytes }
    }

    /// The empty state of another session.
    pub(crate) fn another(&self) -> Self {
        Self::new(self.all_bytes.clone())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stores a result.
    pub(crate) fn keep(&self, name: &str, bytes: Vec<u8>) -> Result<()> {
        let mut state = self.lock();
        if state.kept.len() >= KEPT_MAX && !state.kept.contains_key(name) {
            return Err(Error::tool(format!("a session can store {KEPT_MAX} results; reuse one of the names")));
        }
        let (more, less) = (bytes.len(), state.kept.get(name).map_or(0, |bytes| bytes.len()));
        let within = |all: usize| (all + more - less <= KEPT_BYTES_MAX).then_some(all + more - less);
        if self.all_bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, within).is_err() {
            return Err(Error::tool("the storage of all sessions together is full; use outputType `resource` instead"));
        }
        state.kept.insert(name.to_owned(), bytes.into());
        Ok(())
    }

    /// A stored result.
    pub(crate) fn kept(&self, name: &str) -> Option<Arc<[u8]>> {
        self.lock().kept.get(name).cloned()
    }

    /// Whether this is the first error for `url`.
    pub(crate) fn first_time(&self, url: &str) -> bool {
        let mut state = self.lock();
        state.sent_to.len() < SENT_MAX && state.sent_to.insert(url.to_owned())
    }
}

const fn toggles(name: &'static str, title: &'static str, description: &'static str) -> ToolSpec {
    ToolSpec::writes(name, title, "session", description)
}

pub(crate) const LOGGING: ToolSpec = toggles(
    "toggle-simulated-logging",
    "Simulated logging",
    "Starts sending log messages of all levels to this session, or stops it.",
);
pub(crate) const UPDATES: ToolSpec = toggles(
    "toggle-subscriber-updates",
    "Simulated updates",
    "Starts announcing updates of the resources this session subscribed to, or stops it.",
);
pub(crate) const TOGGLE_EXTRA: ToolSpec = toggles(
    "everything_toggle_extra",
    "Extra tool",
    "Adds the tool `everything_extra` for all clients, or removes it.",
);
/// Added and removed by a call; cannot be enabled by options.
const EXTRA: ToolSpec = ToolSpec::reads("everything_extra", "Extra", "session", "Exists only temporarily.");

/// Adds the tools. `server` is a handle to the server, which may have tools of others too; the extra tool gets the same
/// `prefix` as all others here.
pub(crate) fn add(tools: ToolSet<Everything>, server: Handle, prefix: &ToolPrefix) -> ToolSet<Everything> {
    let other = server.clone();
    let extra: Arc<str> = prefix.apply(SERVICE.name, EXTRA.name).into();
    tools
        .tool(&LOGGING, toggle_logging)
        .tool(&UPDATES, move |s: &Everything, cx: &Cx, _: NoArgs| {
            let answer = toggle_updates(s, cx, &server);
            async move { answer }
        })
        .tool(&TOGGLE_EXTRA, move |_: NoArgs| {
            let answer = toggle_extra(&other, &extra);
            async move { answer }
        })
}

async fn toggle_logging(s: &Everything, cx: &Cx, _: NoArgs) -> String {
    let Some(peer) = cx.peer() else {
        // In stateless mode, logs belong to a request and are sent only if it asks for them.
        for level in LoggingLevel::ALL {
            log(cx, level);
        }
        return "This request is stateless: one message of each level was logged on it, if it asked for logs.".into();
    };
    let mut state = s.session.lock();
    match state.logging.take() {
        Some(_) => "Simulated logging stopped.".into(),
        None => {
            // The first belongs to the call: a bridge can give it to a client that has no session.
            log(cx, LoggingLevel::ALL[0]);
            state.logging =
                Some(Running(tokio::spawn(simulate_logs(peer.clone(), s.shared.options.clone())).abort_handle()));
            format!(
                "Simulated logging started: a message every {} ms, at the levels that the session enabled.",
                s.shared.options.log_ms
            )
        }
    }
}

fn log(cx: &Cx, level: LoggingLevel) {
    cx.log_as(level, Some("everything"), format!("A simulated message of level {level}"));
}

async fn simulate_logs(peer: Peer, options: Options) {
    // Every level comes once in eight messages, in an order that looks arbitrary.
    for at in (0..LoggingLevel::ALL.len()).cycle().skip(1) {
        tokio::time::sleep(Duration::from_millis(options.log_ms.max(10))).await;
        let level = LoggingLevel::ALL[at * 5 % LoggingLevel::ALL.len()];
        if !peer.log(level, Some("everything"), format!("A simulated message of level {level}")) {
            return;
        }
    }
}

fn toggle_updates(s: &Everything, cx: &Cx, handle: &Handle) -> String {
    let Some(peer) = cx.peer() else {
        for uri in offers::static_uris(&s.shared.options.tools) {
            handle.resource_updated(&uri);
        }
        return "This request is stateless: one update of each static resource was announced to all subscribers."
            .into();
    };
    let mut state = s.session.lock();
    match state.updates.take() {
        Some(_) => "Simulated updates stopped.".into(),
        None => {
            state.updates =
                Some(Running(tokio::spawn(simulate_updates(peer.clone(), s.shared.options.clone())).abort_handle()));
            format!(
                "Simulated updates started: every {} ms for each resource the session subscribed to.",
                s.shared.options.update_ms
            )
        }
    }
}

async fn simulate_updates(peer: Peer, options: Options) {
    while peer.is_open() {
        for uri in peer.subscriptions() {
            peer.resource_updated(&uri);
        }
        tokio::time::sleep(Duration::from_millis(options.update_ms.max(10))).await;
    }
}

fn toggle_extra(handle: &Handle, name: &str) -> Result<&'static str> {
    let tools = handle.tools();
    if tools.remove(name).is_ok() {
        return Ok("Removed.");
    }
    tools.insert(EXTRA.listed(name), |_: NoArgs| async { "Temporarily available." })?;
    Ok("Added.")
}
