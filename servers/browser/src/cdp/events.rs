//! Events, and who wants which.

use serde_json::Value;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::mpsc;

/// Events that may wait for a subscriber.
const QUEUED_MAX: usize = 512;

/// An event of a session.
#[derive(Debug)]
pub(crate) struct Event {
    /// The session; `None` for the browser itself.
    pub(crate) session: Option<Arc<str>>,
    /// The method: `Page.loadEventFired`.
    pub(crate) method: Box<str>,
    /// Its parameters.
    pub(crate) params: Value,
}

/// The events that were subscribed to, in order.
#[derive(Debug)]
pub(crate) struct Events {
    queue: mpsc::Receiver<Arc<Event>>,
    lost: Arc<AtomicU64>,
}

impl Events {
    /// The next event; `None` once the session is over.
    pub(crate) async fn next(&mut self) -> Option<Arc<Event>> {
        self.queue.recv().await
    }

    /// An event that waits already.
    pub(crate) fn try_next(&mut self) -> Option<Arc<Event>> {
        self.queue.try_recv().ok()
    }

    /// How many were dropped because the queue was full.
    pub(crate) fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }
}

/// Everybody who wants events.
#[derive(Default)]
pub(crate) struct Subscribers(Mutex<Vec<Subscriber>>);

struct Subscriber {
    session: Option<Arc<str>>,
    methods: &'static [&'static str],
    queue: mpsc::Sender<Arc<Event>>,
    lost: Arc<AtomicU64>,
}

impl Subscribers {
    pub(crate) fn add(&self, session: Option<Arc<str>>, methods: &'static [&'static str], open: bool) -> Events {
        let (sender, queue) = mpsc::channel(QUEUED_MAX);
        let lost = Arc::new(AtomicU64::new(0));
        if open {
            self.all().push(Subscriber { session, methods, queue: sender, lost: lost.clone() });
        }
        Events { queue, lost }
    }

    /// Hands an event on, and forgets who has left.
    pub(crate) fn publish(&self, event: Event) {
        let event = Arc::new(event);
        self.all().retain(|subscriber| {
            if subscriber.session == event.session && subscriber.methods.contains(&&*event.method) {
                match subscriber.queue.try_send(event.clone()) {
                    Ok(()) => {}
                    Err(mpsc::error::TrySendError::Full(_)) => {
                        subscriber.lost.fetch_add(1, Ordering::Relaxed);
                    }
                    Err(mpsc::error::TrySendError::Closed(_)) => return false,
                }
            }
            !subscriber.queue.is_closed()
        });
    }

    /// Ends the events of a session.
    pub(crate) fn detached(&self, session: &str) {
        self.all().retain(|subscriber| subscriber.session.as_deref() != Some(session));
    }

    /// Ends all events.
    pub(crate) fn clear(&self) {
        self.all().clear();
    }

    fn all(&self) -> std::sync::MutexGuard<'_, Vec<Subscriber>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
