//! Stores that a service was given: sessions and events that other processes can go on with.

use super::HttpOptions;
use super::answer;
use super::body::HttpBody;
use super::session_id::id_of;
use http::{Response, StatusCode};
use linchpin_core::Id;
use linchpin_core::service::BoxFuture;
use linchpin_core::store::{EventStore, SessionStore, StoreError};
use std::sync::Arc;
use std::time::Duration;

/// See the module's documentation.
pub(crate) struct Stores {
    pub(crate) sessions: Option<Arc<dyn SessionStore>>,
    pub(crate) events: Option<Arc<dyn EventStore>>,
    /// Sets the numbers of this process's streams apart from those of others.
    pub(crate) node: u32,
}

impl Stores {
    /// The stores of these options. `None` without any.
    pub(crate) fn of(options: &HttpOptions) -> Option<Arc<Stores>> {
        let (sessions, events) = (options.sessions.clone(), options.events.clone());
        if sessions.is_none() && events.is_none() {
            return None;
        }
        let mut node = [0; 4];
        let _ = getrandom::fill(&mut node);
        Some(Arc::new(Stores { sessions, events, node: u32::from_ne_bytes(node) }))
    }

    /// Deletes a session, then responds.
    pub(crate) fn delete(self: &Arc<Self>, key: u128) -> BoxFuture<'static, Response<HttpBody>> {
        let stores = self.clone();
        Box::pin(async move {
            let id = id_of(key);
            if let Some(events) = &stores.events
                && let Err(error) = events.delete(&id).await
            {
                tracing::warn!(%error, "the events of a session cannot be deleted");
            }
            match &stores.sessions {
                Some(sessions) => match sessions.delete(&id).await {
                    Ok(_) => answer::empty(StatusCode::NO_CONTENT),
                    Err(error) => unavailable(None, &error),
                },
                None => answer::empty(StatusCode::NO_CONTENT),
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

/// The response when a store fails.
pub(crate) fn unavailable(id: Option<&Id>, error: &StoreError) -> Response<HttpBody> {
    tracing::warn!(%error, "the session store failed");
    answer::refuse(StatusCode::SERVICE_UNAVAILABLE, id, "sessions cannot be looked up at the moment; try again later")
}
