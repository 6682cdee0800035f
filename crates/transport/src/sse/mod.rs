//! The HTTP+SSE transport of revision 2024-11-05, for clients that support no other: a stream that is opened by GET, and
//! an address for messages that the stream names in its first event.
//!
//! | request | response |
//! |---|---|
//! | GET `/sse` | a stream: `endpoint` with the address for messages, then every message of the server |
//! | POST to that address | 202; responses come on the stream |
//!
//! A session lives as long as its stream; closing the stream ends its calls. It is switched on by
//! [`HttpOptions::sse_2024`](crate::http::HttpOptions::sse_2024) and shares with Streamable HTTP the checks of `Host`,
//! `Origin`, bodies and principals, and the cap on sessions.

mod peer;

pub(crate) use peer::Peer;

use crate::http::{HttpBody, SessionSlot, Shared, events, id_of, key_of, log_foreign_session, refuse};
use http::{Response, StatusCode};
use linchpin_core::Principal;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The open streams of one service.
pub(crate) struct Endpoints {
    peers: Arc<Peers>,
    /// The paths of streams and of messages.
    pub(crate) stream: Box<str>,
    pub(crate) message: Box<str>,
}

#[derive(Default)]
struct Peers(Mutex<HashMap<u128, Peer>>);

impl Peers {
    fn lock(&self) -> MutexGuard<'_, HashMap<u128, Peer>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Endpoints {
    /// Endpoints at these paths.
    pub(crate) fn new((stream, message): &(String, String)) -> Endpoints {
        Endpoints { peers: Arc::default(), stream: stream.as_str().into(), message: message.as_str().into() }
    }

    /// Opens a stream. `path` is that of the request.
    pub(crate) fn open(&self, shared: &Shared, path: &str, principal: Option<&Principal>) -> Response<HttpBody> {
        // What it will declare comes later.
        let place = shared.service.budget().reserve(0).and_then(|nothing| shared.sessions.place(nothing));
        let Some(place) = place else {
            let why = "this server has too many sessions; close one or try again later";
            return refuse(StatusCode::SERVICE_UNAVAILABLE, None, why);
        };
        let mut key = [0; 16];
        if getrandom::fill(&mut key).is_err() {
            return refuse(StatusCode::INTERNAL_SERVER_ERROR, None, "cannot open a session");
        }
        let key = u128::from_ne_bytes(key);
        // Beside the stream's own path, so that it holds under a router's prefix too.
        let base = path.strip_suffix(&*self.stream).or_else(|| path.strip_suffix("/sse")).unwrap_or_default();
        let address = format!("{base}{}?sessionId={}", self.message, id_of(key));
        let peer = Peer::new(&*shared.service, principal, &address);
        self.peers.lock().insert(key, peer.clone());
        let stream = Stream { peer, peers: self.peers.clone(), key, _place: place };
        events(HttpBody::stream(stream, &*shared.service).until_expiry(principal))
    }

    /// The sender of a message, by the query of its URL.
    pub(crate) fn find(&self, query: Option<&str>, principal: Option<&Principal>) -> Option<Peer> {
        let id = query?.split('&').find_map(|pair| pair.strip_prefix("sessionId="))?;
        let peer = self.peers.lock().get(&key_of(id.as_bytes())?)?.clone();
        // The session of another principal looks as if it did not exist.
        let own = peer.belongs_to(principal);
        if !own {
            log_foreign_session(principal, None);
        }
        own.then_some(peer)
    }

    /// Ends streams as soon as they have no running call.
    pub(crate) fn drain(&self) {
        self.peers.lock().values().for_each(Peer::drain);
    }

    /// Ends all streams and their calls.
    pub(crate) fn close(&self) {
        let all = std::mem::take(&mut *self.peers.lock());
        all.values().for_each(Peer::close);
    }
}

/// The body of the GET. Dropping it ends the session.
struct Stream {
    peer: Peer,
    peers: Arc<Peers>,
    key: u128,
    _place: SessionSlot,
}

impl crate::http::Source for Stream {
    fn poll_bytes(&mut self, cx: &mut std::task::Context<'_>) -> std::task::Poll<Option<bytes::Bytes>> {
        self.peer.poll_bytes(cx)
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.peers.lock().remove(&self.key);
        self.peer.close();
    }
}
