//! Who a connection to the upstream is for, over time: it is opened when it is needed, and again when it was lost.

use crate::instance::{Home, Instance, Opened};
use crate::lease::Lease;
use crate::lock;
use crate::pool::{Pool, Who};
use crate::refusal::Refusal;
use linchpin_core::service::boxed;
use linchpin_core::subscription::ServerChange;
use linchpin_core::{Session, TransportError};
use linchpin_proto::message_writer::{Extras, Writer};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

/// How long the upstream may take for what is restored.
const RESTORE: Duration = Duration::from_secs(10);
/// The changes after which a client lists everything again.
pub(crate) const LISTS: [ServerChange; 3] = [ServerChange::Tools, ServerChange::Prompts, ServerChange::Resources];

#[derive(Default)]
pub(crate) struct Owner {
    slot: Mutex<Option<Arc<Instance>>>,
    /// Held while a connection is opened, so that it is opened once.
    opening: tokio::sync::Mutex<()>,
    /// The session whose connection it is.
    session: Mutex<Weak<Session>>,
    /// The client has said that it is ready, so that a new connection must be told at once.
    ready: AtomicBool,
    /// There was a connection before.
    opened: AtomicBool,
    /// The client has set a log level.
    pub(crate) has_level: AtomicBool,
}

impl Owner {
    /// The owner of a session's connections.
    pub(crate) fn of_session(session: &Arc<Session>) -> Owner {
        let owner = Owner::default();
        *lock(&owner.session) = Arc::downgrade(session);
        owner
    }

    /// An owner that says itself that it is ready.
    pub(crate) fn of_many() -> Owner {
        let owner = Owner::default();
        owner.ready.store(true, Ordering::Relaxed);
        owner
    }

    /// The connection, if there is one that can be used.
    pub(crate) fn current(&self) -> Option<Arc<Instance>> {
        lock(&self.slot).clone().filter(|instance| instance.lost().is_none())
    }

    /// Forgets this connection, which is of no use.
    pub(crate) fn forget(&self, lost: &Arc<Instance>, why: &'static str) {
        let mut slot = lock(&self.slot);
        if slot.as_ref().is_some_and(|current| Arc::ptr_eq(current, lost)) {
            *slot = None;
        }
        drop(slot);
        lost.clone().close_later(why);
    }

    /// The connection for a request; opens one if there is none.
    pub(crate) async fn lease(
        &self,
        pool: &Arc<Pool>,
        who: impl FnOnce() -> Who,
        home: impl FnOnce() -> Home,
    ) -> Result<Lease, Refusal> {
        match self.leased(pool) {
            Some(lease) => Ok(lease),
            // Boxed, to keep the future of those that find one small.
            None => Box::pin(self.open(pool, who(), home())).await,
        }
    }

    fn leased(&self, pool: &Arc<Pool>) -> Option<Lease> {
        Lease::new(pool, self.current()?)
    }

    async fn open(&self, pool: &Arc<Pool>, who: Who, home: Home) -> Result<Lease, Refusal> {
        let _once = self.opening.lock().await;
        if let Some(lease) = self.leased(pool) {
            return Ok(lease);
        }
        let lease = Lease::opened(pool, pool.open(home, &who).await?);
        let instance = lease.instance().clone();
        *lock(&self.slot) = Some(instance.clone());
        let tells = self.ready.load(Ordering::Acquire) && begins_to_tell(&instance);
        let again = self.opened.swap(true, Ordering::AcqRel);
        let session = lock(&self.session).upgrade().filter(|_| again);
        let has_level = self.has_level.load(Ordering::Relaxed);
        if tells || session.is_some() {
            let opened = instance.clone();
            // In a task of its own: others use the connection too, whether or not this caller stays.
            let prepared = tokio::spawn(boxed(async move {
                if tells {
                    tell(&opened).await;
                }
                if let Some(session) = session {
                    restore(&opened, &session, has_level).await;
                }
            }));
            // Who has waited for so long waits on within the time of the call.
            let _ = tokio::time::timeout(RESTORE, prepared).await;
        }
        Ok(lease)
    }

    /// The client is ready: tells the upstream, before any other request of the session.
    pub(crate) fn is_ready(&self) {
        if self.ready.swap(true, Ordering::AcqRel) {
            return;
        }
        let Some(instance) = self.current() else { return };
        if begins_to_tell(&instance) {
            tokio::spawn(boxed(async move { tell(&instance).await }));
        }
    }
}

/// Opens a connection that is for one call at a time, whose upstream is told that its client is ready.
/// `has_begun` tells when the upstream is being connected to.
pub(crate) async fn open_for_calls(pool: &Arc<Pool>, who: &Who, has_begun: &AtomicBool) -> Result<Lease, Refusal> {
    let lease = Lease::opened(pool, pool.open_for_call(who, has_begun).await?);
    let instance = lease.instance().clone();
    if begins_to_tell(&instance) {
        let _ = tokio::time::timeout(RESTORE, tokio::spawn(boxed(async move { tell(&instance).await }))).await;
    }
    Ok(lease)
}

/// Whether the caller is the one that must call [`tell`] now. Other requests wait for it.
fn begins_to_tell(instance: &Instance) -> bool {
    instance.opened.send_if_modified(|opened| {
        let first = *opened == Opened::Waiting;
        if first {
            *opened = Opened::Telling;
        }
        first
    })
}

/// Tells the upstream that its client is ready. Must run to its end.
async fn tell(instance: &Instance) {
    if instance.features().has_sessions {
        let mut out = Writer::opening().notification("notifications/initialized", |_| {});
        out.features = Some(instance.features());
        if let Err(why) = instance.raw().transport.notify(out).await {
            tracing::debug!(%why, "the upstream was not told that its client is ready");
        }
    }
    instance.opened.send_replace(Opened::Told);
}

/// Gives a connection that was opened again what the session had: its log level and its subscriptions. What it listed may
/// have changed.
async fn restore(instance: &Instance, session: &Session, has_level: bool) {
    LISTS.iter().for_each(|list| instance.changed(list));
    if !instance.features().has_sessions {
        return;
    }
    if has_level {
        restored(instance, "logging/setLevel", "level", session.log_level().as_str()).await;
    }
    for uri in session.feed().map(|feed| feed.feed().subscriptions()).unwrap_or_default() {
        instance.subscriptions.fetch_add(1, Ordering::Relaxed);
        restored(instance, "resources/subscribe", "uri", &uri).await;
    }
}

/// Sends a request with one text, for what was lost with the last connection.
async fn restored(instance: &Instance, method: &'static str, name: &str, text: &str) {
    let mut out = Writer::opening().request(instance.next_id(), method, Extras::default(), |members| {
        members.text(name, text);
    });
    out.features = Some(instance.features());
    let sent: Result<Result<_, TransportError>, _> =
        tokio::time::timeout(RESTORE, instance.raw().transport.exchange(out)).await;
    if !matches!(sent, Ok(Ok(_))) {
        tracing::debug!(method, "the upstream refused to restore the session's state");
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        if let Some(instance) = lock(&self.slot).take() {
            instance.close_later("its client has left");
        }
    }
}
