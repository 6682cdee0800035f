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
use linchpin_core::service::boxed;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// A connection that lasted this long resets the count of attempts.
pub(crate) const HELD: Duration = Duration::from_secs(60);

/// Reopens the transport in the background, with exponential backoff.
pub(crate) fn watch(core: &Arc<ConnectionState>, generation: u64) {
    let Some(restart) = core.config.restart.clone() else { return };
    let core = Arc::downgrade(core);
    tokio::spawn(boxed(async move { again(core, generation, restart).await }));
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
    tokio::spawn(boxed(async move {
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
    }));
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
        report(core, Change::Updated(uri.clone()));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Client;
    use crate::lock::lock;
    use linchpin_core::connector::{Answer, ClientTransport, ConnectOptions, Connector, Inbox, Outgoing};
    use linchpin_core::message::{Kind, Message};
    use linchpin_core::service::BoxFuture;
    use linchpin_core::{Features, Id, Span};
    use linchpin_types::version::Revision;
    use std::ops::Range;
    use std::sync::Mutex;
    use tokio::time::Instant;

    /// When connections were attempted, and the inbox of the last one that was opened.
    #[derive(Default)]
    struct Seen {
        attempts: Mutex<Vec<Instant>>,
        inbox: Mutex<Option<Arc<dyn Inbox>>>,
    }

    /// A server with sessions, which is away for the attempts of these numbers.
    struct Away(Arc<Seen>, Range<usize>);

    impl Connector for Away {
        fn name(&self) -> String {
            "away".to_owned()
        }

        fn key(&self) -> Option<String> {
            None
        }

        fn connect(&self, options: ConnectOptions) -> BoxFuture<'_, Result<Arc<dyn ClientTransport>, TransportError>> {
            let mut attempts = lock(&self.0.attempts);
            attempts.push(Instant::now());
            if self.1.contains(&attempts.len()) {
                return Box::pin(async { Err(TransportError::Unreachable("nobody is there".into())) });
            }
            *lock(&self.0.inbox) = Some(options.inbox);
            Box::pin(async { Ok(Arc::new(There) as Arc<dyn ClientTransport>) })
        }
    }

    struct There;

    impl ClientTransport for There {
        fn exchange(&self, out: Outgoing) -> BoxFuture<'_, Result<Answer, TransportError>> {
            const HELLO: &str =
                r#"{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"s","version":"1"}}"#;
            let id = out.id.unwrap_or_default();
            let before = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":"#);
            let outcome = Ok(Span::new(before.len(), before.len() + HELLO.len()));
            let kind = Kind::Response { id: Id::number(id), outcome };
            let message = Message::with_result(format!("{before}{HELLO}}}").into(), kind, Default::default());
            Box::pin(async { Ok(Answer::new(message, None)) })
        }

        fn notify(&self, _: Outgoing) -> BoxFuture<'_, Result<(), TransportError>> {
            Box::pin(async { Ok(()) })
        }

        fn notify_detached(&self, _: Outgoing) {}

        fn cancels_by_dropping(&self) -> bool {
            false
        }

        fn negotiated(&self, _: &'static Features) {}

        fn close(&self) -> BoxFuture<'_, ()> {
            Box::pin(async {})
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_session_that_was_forgotten_is_reopened_ever_later_while_that_fails() {
        let seen = Arc::<Seen>::default();
        let policy = ReconnectPolicy::default().with(|policy| (policy.first_ms, policy.longest_ms) = (200, 1_000));
        let client = Client::new("h", "1").revisions(&[Revision::V2025_06_18]).reconnect(policy).on_change(|_| {});
        let connection = client.connect(Away(seen.clone(), 2..7)).await.unwrap();
        // In milliseconds: at once at first, but not when it has just been opened again.
        for pauses in [&[0, 200, 400, 800, 1_000, 1_000][..], &[1_000]] {
            let before = lock(&seen.attempts).len();
            let mut last = Instant::now();
            let inbox = lock(&seen.inbox).clone().unwrap();
            inbox.forgotten();
            tokio::time::sleep(Duration::from_secs(20)).await;
            let attempts = lock(&seen.attempts)[before..].to_vec();
            assert_eq!(attempts.len(), pauses.len(), "{attempts:?}");
            for (at, pause) in attempts.into_iter().zip(pauses) {
                let took = at.duration_since(std::mem::replace(&mut last, at)).as_millis();
                assert!((pause * 3 / 4..=pause + 2).contains(&took), "{took} ms instead of {pause}");
            }
        }
        connection.close().await;
    }
}
