//! The stores of a service: sessions and events that other processes can continue.

use super::answer;
use super::body::HttpBody;
use super::options::HttpOptions;
use super::session_id::id_of;
use http::{Response, StatusCode};
use linchpin_core::service::BoxFuture;
use linchpin_core::store::{EventStore, SessionSeal, SessionStore, StoreError, StoredEvent};
use linchpin_core::{Id, SessionRecord};
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

/// See the module's documentation.
pub(crate) struct Stores {
    pub(crate) sessions: Option<Arc<dyn SessionStore>>,
    pub(crate) events: Option<Arc<dyn EventStore>>,
    pub(crate) seal: Option<Arc<dyn SessionSeal>>,
}

impl Stores {
    /// The stores of these options. `None` without any.
    pub(crate) fn of(options: &HttpOptions) -> Option<Arc<Stores>> {
        let sessions = options.sessions.clone().map(|store| Arc::new(Bounded(store)) as _);
        let events = options.events.clone().map(|store| Arc::new(Bounded(store)) as _);
        let seal = options.session_seal.clone();
        (sessions.is_some() || events.is_some() || seal.is_some()).then(|| Arc::new(Stores { sessions, events, seal }))
    }

    /// Deletes a session, then responds.
    pub(crate) fn delete(self: &Arc<Self>, key: u128) -> BoxFuture<'static, Response<HttpBody>> {
        let stores = self.clone();
        Box::pin(async move {
            let id = id_of(key);
            // The session first: without it, its events cannot be asked for.
            let deleted = match &stores.sessions {
                Some(sessions) => sessions.delete(&id).await.map(drop),
                None => Ok(()),
            };
            if let Some(events) = &stores.events
                && let Err(error) = events.delete(&id).await
            {
                tracing::warn!(%error, "the events of a session cannot be deleted");
            }
            match deleted {
                Ok(()) => answer::empty(StatusCode::NO_CONTENT),
                Err(error) => unavailable(None, &error),
            }
        })
    }

    /// Keeps sessions for another while.
    pub(crate) async fn touch(&self, keys: Vec<u128>, ttl: Duration) {
        if let Some(sessions) = &self.sessions
            && !keys.is_empty()
            && let Err(error) = sessions.touch(keys.into_iter().map(id_of).collect(), ttl).await
        {
            tracing::warn!(%error, "sessions cannot be kept in their store");
        }
    }
}

/// A store whose calls take limited time and do not panic.
struct Bounded<S: ?Sized>(Arc<S>);

/// How long a call of a store may take.
const CALL_TIME: Duration = Duration::from_secs(5);

/// Waits for a call of a store. One that takes too long, or panics, has failed.
fn bounded<'a, T: Send>(
    call: impl Future<Output = Result<T, StoreError>> + Send + 'a,
) -> BoxFuture<'a, Result<T, StoreError>> {
    let mut call = Box::pin(call);
    let caught = poll_fn(move |cx| {
        let polled = catch_unwind(AssertUnwindSafe(|| call.as_mut().poll(cx)));
        polled.unwrap_or_else(|_| Poll::Ready(Err(StoreError::new("the store panicked"))))
    });
    Box::pin(async move {
        match tokio::time::timeout(CALL_TIME, caught).await {
            Ok(result) => result,
            Err(_) => Err(StoreError::new("the store did not answer within 5 s")),
        }
    })
}

impl SessionStore for Bounded<dyn SessionStore> {
    fn save(&self, id: &str, record: SessionRecord, ttl: Duration) -> BoxFuture<'_, Result<(), StoreError>> {
        let (id, store) = (id.to_owned(), self.0.clone());
        bounded(async move { store.save(&id, record, ttl).await })
    }

    fn load(&self, id: &str) -> BoxFuture<'_, Result<Option<SessionRecord>, StoreError>> {
        let (id, store) = (id.to_owned(), self.0.clone());
        bounded(async move { store.load(&id).await })
    }

    fn touch(&self, ids: Vec<String>, ttl: Duration) -> BoxFuture<'_, Result<(), StoreError>> {
        let store = self.0.clone();
        bounded(async move { store.touch(ids, ttl).await })
    }

    fn delete(&self, id: &str) -> BoxFuture<'_, Result<bool, StoreError>> {
        let (id, store) = (id.to_owned(), self.0.clone());
        bounded(async move { store.delete(&id).await })
    }
}

impl EventStore for Bounded<dyn EventStore> {
    fn append(
        &self,
        session: &str,
        stream: u64,
        events: Vec<StoredEvent>,
        ttl: Duration,
    ) -> BoxFuture<'_, Result<(), StoreError>> {
        let (id, store) = (session.to_owned(), self.0.clone());
        bounded(async move { store.append(&id, stream, events, ttl).await })
    }

    fn after(
        &self,
        session: &str,
        stream: u64,
        after: u32,
    ) -> BoxFuture<'_, Result<Option<Vec<StoredEvent>>, StoreError>> {
        let (id, store) = (session.to_owned(), self.0.clone());
        bounded(async move { store.after(&id, stream, after).await })
    }

    fn trim(&self, session: &str, stream: u64, through: u32) -> BoxFuture<'_, Result<(), StoreError>> {
        let (id, store) = (session.to_owned(), self.0.clone());
        bounded(async move { store.trim(&id, stream, through).await })
    }

    fn delete(&self, session: &str) -> BoxFuture<'_, Result<(), StoreError>> {
        let (id, store) = (session.to_owned(), self.0.clone());
        bounded(async move { store.delete(&id).await })
    }
}

/// The response when a store fails.
pub(crate) fn unavailable(id: Option<&Id>, error: &StoreError) -> Response<HttpBody> {
    tracing::warn!(%error, "the session store failed");
    answer::refuse(StatusCode::SERVICE_UNAVAILABLE, id, "sessions cannot be looked up at the moment; try again later")
}
