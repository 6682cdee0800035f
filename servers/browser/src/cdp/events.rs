//! Events, and who wants which.

use serde_json::Value;
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
}

/// Everybody who wants events.
#[derive(Default)]
pub(crate) struct Subscribers(Mutex<Vec<Subscriber>>);

struct Subscriber {
    session: Option<Arc<str>>,
    methods: &'static [&'static str],
    queue: mpsc::Sender<Arc<Event>>,
}

impl Subscribers {
    pub(crate) fn add(&self, session: Option<Arc<str>>, methods: &'static [&'static str], open: bool) -> Events {
        let (sender, queue) = mpsc::channel(QUEUED_MAX);
        if open {
            self.all().push(Subscriber { session, methods, queue: sender });
        }
        Events { queue }
    }

    /// Hands an event on, and forgets who has left.
    pub(crate) fn publish(&self, event: Event) {
        let event = Arc::new(event);
        self.all().retain(|subscriber| {
            if subscriber.session == event.session && subscriber.methods.contains(&&*event.method) {
                // One that does not read loses what comes, and holds nobody up.
                let _ = subscriber.queue.try_send(event.clone());
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
