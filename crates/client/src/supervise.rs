//! Reopening a lost connection, and restoring its state at the server.

use crate::active_transport::ActiveTransport;
use crate::config::{ReconnectPolicy, jittered};
use crate::connection_state::ConnectionState;
use crate::error::ErrorKind;
use crate::incoming::report;
use crate::lock::lock;
use crate::request_parts::RequestParts;
use crate::{Change, listen, negotiate};
use linchpin_core::TransportError;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// A connection that lasted this long resets the count of attempts.
pub(crate) const HELD: Duration = Duration::from_secs(60);

/// Reopens the transport in the background, with exponential backoff.
pub(crate) fn watch(core: &Arc<ConnectionState>, generation: u64) {
    let Some(restart) = core.config.restart.clone() else { return };
    let core = Arc::downgrade(core);
    tokio::spawn(async move { again(core, generation, restart).await });
}

async fn again(core: Weak<ConnectionState>, generation: u64, restart: ReconnectPolicy) {
    let mut pause = restart.first_ms;
    let mut first = true;
    for attempt in 1..=restart.attempts_max {
        {
            let Some(core) = core.upgrade() else { return };
            let held = core.latest().is_some_and(|live| live.since.elapsed() > HELD);
            if first && !held {
                // It crashed soon after its start: the core counts such starts.
                pause = pause.saturating_mul(1 << core.restarts_in_a_row().min(16)).min(restart.longest_ms);
            }
            first = false;
        }
        tokio::time::sleep(Duration::from_millis(jittered(pause))).await;
        let Some(core) = core.upgrade() else { return };
        if core.restarts_in_a_row() >= restart.attempts_max {
            break;
        }
        match core.reopen(generation).await {
            Ok(_) => return,
            Err(why) if why.kind() == ErrorKind::Closed => return,
            Err(why) => tracing::warn!(%why, attempt, "the server could not be started again"),
        }
        pause = pause.saturating_mul(2).min(restart.longest_ms);
    }
    if let Some(core) = core.upgrade() {
        core.give_up(TransportError::Closed("the server keeps failing and is not started again".into()));
    }
}

/// Reopens a session that the server has forgotten while nothing was called, with exponential backoff, as long as the
/// host hears what the server says. The policy's number of attempts is for connections that are lost; this one is not: a
/// call can open it at any time.
pub(crate) fn renew(core: &Arc<ConnectionState>, generation: u64) {
    let policy = core.config.restart.clone().unwrap_or_default();
    let held = core.latest().is_some_and(|live| live.since.elapsed() > HELD);
    let sooner = core.restarts_in_a_row().min(16);
    // A server that forgets at once is not asked at once, each time.
    let mut pause = match held || sooner == 0 {
        true => 0,
        false => policy.first_ms.saturating_mul(1 << sooner).min(policy.longest_ms),
    };
    let core = Arc::downgrade(core);
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(Duration::from_millis(jittered(pause))).await;
            let Some(core) = core.upgrade().filter(|core| core.hears()) else { return };
            match core.reopen(generation).await {
                Ok(_) => return,
                Err(why) if why.kind() == ErrorKind::Closed => return,
                // It will not change without the host.
                Err(why) if why.kind() == ErrorKind::Unauthorized => {
                    tracing::warn!(%why, "a session that the server forgot could not be opened again");
                    return lock(&core.listeners).lost(true);
                }
                Err(why) => tracing::warn!(%why, "a session that the server forgot could not be opened again yet"),
            }
            pause = pause.saturating_mul(2).max(policy.first_ms).min(policy.longest_ms);
        }
    });
}

/// Restores subscriptions and the log level at a reopened server, and reports everything as changed to the host.
pub(crate) async fn restore(core: &Arc<ConnectionState>, live: &Arc<ActiveTransport>) {
    negotiate::set_log_level(core, live).await;
    for change in [Change::Tools, Change::Prompts, Change::Resources] {
        lock(&core.listeners).changed(&change, None);
        report(core, change);
    }
    core.cache.clear();
    if live.agreed.features.listens {
        return;
    }
    let uris = lock(&core.listeners).subscribed();
    let mut refused = Vec::new();
    for uri in uris {
        lock(&core.listeners).changed(&Change::Updated(uri.clone()), None);
        let mut request = RequestParts::new("resources/subscribe");
        request.members.text("uri", &uri);
        if let Err(why) = listen::once(core, live, &request).await {
            tracing::warn!(%why, "a subscription could not be renewed");
            // What fails with the connection is renewed with it.
            if why.transport().is_none() {
                refused.push(uri);
            }
        }
    }
    lock(&core.listeners).refused(&refused);
}
