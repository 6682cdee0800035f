//! Making a lost connection again, and putting back what the server knew.

use crate::client::Restart;
use crate::core::{Core, Live, Request, lock};
use crate::error::Error;
use crate::inbox::report;
use crate::{Change, listen, open};
use linchpin_proto::LinkError;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// A connection that held this long starts the count of attempts anew.
pub(crate) const HELD: Duration = Duration::from_secs(60);

/// Makes the link anew in the background, with growing pauses.
pub(crate) fn watch(core: &Arc<Core>, generation: u64) {
    let Some(restart) = core.recipe.restart.clone() else { return };
    let core = Arc::downgrade(core);
    tokio::spawn(async move { again(core, generation, restart).await });
}

async fn again(core: Weak<Core>, generation: u64, restart: Restart) {
    let mut pause = restart.first_ms;
    let mut first = true;
    for attempt in 1..=restart.attempts_max {
        {
            let Some(core) = core.upgrade() else { return };
            let held = core.latest().is_some_and(|live| live.since.elapsed() > HELD);
            if first && !held {
                // It crashed soon after it was started: how often in a row is in the core's count of links.
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
            Err(Error::Closed) => return,
            Err(why) => tracing::warn!(%why, attempt, "the server could not be started again"),
        }
        pause = pause.saturating_mul(2).min(restart.longest_ms);
    }
    if let Some(core) = core.upgrade() {
        core.give_up(LinkError::Closed("the server keeps failing and is not started again".into()));
    }
}

/// Between three quarters and the whole, so that many clients do not come back at once.
fn jittered(ms: u64) -> u64 {
    let noise = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |t| t.subsec_nanos());
    ms - (ms / 4) * u64::from(noise % 1_000) / 1_000
}

/// Tells a server that was opened anew what the old one knew, and the host that everything may have changed.
pub(crate) async fn restore(core: &Arc<Core>, live: &Arc<Live>) {
    open::set_log_level(core, live).await;
    for change in [Change::Tools, Change::Prompts, Change::Resources] {
        lock(&core.listeners).changed(&change, None);
        report(core, change);
    }
    core.cache.clear();
    if live.agreed.wire.listens {
        return;
    }
    let uris = lock(&core.listeners).subscribed();
    for uri in uris {
        lock(&core.listeners).changed(&Change::Updated(uri.clone()), None);
        let mut request = Request::new("resources/subscribe");
        request.members.text("uri", &uri);
        if let Err(why) = listen::once(core, live, &request).await {
            tracing::warn!(%why, "a subscription could not be renewed");
        }
    }
}
