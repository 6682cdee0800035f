//! Per-session state: simulated logs, simulated updates, stored results.

use crate::{Everything, Options, SERVICE, offers};
use linchpin::prelude::*;
use linchpin::{Handle, Peer};
use linchpin_kit::{ToolPrefix, ToolSet, ToolSpec};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::task::AbortHandle;

/// Maximum stored results per session.
const KEPT_MAX: usize = 8;
/// Maximum stored bytes of all sessions together.
const KEPT_BYTES_MAX: usize = 32 << 20;
/// Maximum URLs of a session from URLElicitationRequired errors.
const SENT_MAX: usize = 64;

/// State by [`Peer::key`]. Ended sessions are removed at the next access.
#[derive(Debug, Default)]
pub(crate) struct Sessions(Mutex<HashMap<usize, Session>>);

#[derive(Debug)]
struct Session {
    /// Held so that the key is not reused while the entry exists.
    peer: Peer,
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

impl Sessions {
    fn lock(&self) -> MutexGuard<'_, HashMap<usize, Session>> {
        let mut sessions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.retain(|_, session| session.peer.is_open());
        sessions
    }

    fn with<R>(&self, peer: &Peer, f: impl FnOnce(&mut Session) -> R) -> R {
        let empty = || Session {
            peer: peer.clone(),
            logging: None,
            updates: None,
            kept: BTreeMap::new(),
            sent_to: BTreeSet::new(),
        };
        f(self.lock().entry(peer.key()).or_insert_with(empty))
    }

    /// Stores a result.
    pub(crate) fn keep(&self, peer: &Peer, name: &str, bytes: Vec<u8>) -> Result<()> {
        let all: usize = self.lock().values().flat_map(|session| session.kept.values()).map(|bytes| bytes.len()).sum();
        if all + bytes.len() > KEPT_BYTES_MAX {
            return Err(Error::tool("the storage of all sessions together is full; use outputType `resource` instead"));
        }
        self.with(peer, |session| {
            if session.kept.len() >= KEPT_MAX && !session.kept.contains_key(name) {
                return Err(Error::tool(format!("a session can store {KEPT_MAX} results; reuse one of the names")));
            }
            session.kept.insert(name.to_owned(), bytes.into());
            Ok(())
        })
    }

    /// A stored result of this session.
    pub(crate) fn kept(&self, peer: &Peer, name: &str) -> Option<Arc<[u8]>> {
        self.lock().get(&peer.key())?.kept.get(name).cloned()
    }

    /// Whether this is the session's first error for `url`.
    pub(crate) fn first_time(&self, peer: &Peer, url: &str) -> bool {
        self.with(peer, |session| session.sent_to.len() < SENT_MAX && session.sent_to.insert(url.to_owned()))
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

/// Adds the tools. `server` leads to the one they are put on, where other servers may have put theirs; the extra tool
/// is named as `prefix` names all of ours.
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
        // Where requests are stateless, logs belong to the request and only come if it asks for them.
        for level in LoggingLevel::ALL {
            log(cx, level);
        }
        return "This request is stateless: one message of each level was logged on it, if it asked for logs.".into();
    };
    s.sessions.with(&peer, |session| match session.logging.take() {
        Some(_) => "Simulated logging stopped.".into(),
        None => {
            session.logging =
                Some(Running(tokio::spawn(simulate_logs(peer.clone(), s.options.clone())).abort_handle()));
            format!(
                "Simulated logging started: a message every {} ms, at the levels that the session lets through.",
                s.options.log_ms
            )
        }
    })
}

fn log(cx: &Cx, level: LoggingLevel) {
    cx.log_as(level, Some("everything"), format!("A simulated message of level {level}"));
}

async fn simulate_logs(peer: Peer, options: Options) {
    // Every level comes once in eight messages, in an order that looks arbitrary.
    for at in (0..LoggingLevel::ALL.len()).cycle() {
        let level = LoggingLevel::ALL[at * 5 % LoggingLevel::ALL.len()];
        if !peer.log(level, Some("everything"), format!("A simulated message of level {level}")) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(options.log_ms.max(10))).await;
    }
}

fn toggle_updates(s: &Everything, cx: &Cx, handle: &Handle) -> String {
    let Some(peer) = cx.peer() else {
        for uri in offers::static_uris(&s.options.tools) {
            handle.resource_updated(&uri);
        }
        return "This request is stateless: one update of each static resource was announced to all subscribers."
            .into();
    };
    s.sessions.with(&peer, |session| match session.updates.take() {
        Some(_) => "Simulated updates stopped.".into(),
        None => {
            session.updates =
                Some(Running(tokio::spawn(simulate_updates(peer.clone(), s.options.clone())).abort_handle()));
            format!(
                "Simulated updates started: every {} ms for each resource the session subscribed to.",
                s.options.update_ms
            )
        }
    })
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
