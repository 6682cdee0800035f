//! An issuer that is a function, and requests as the transport shows them to a gate.

use bytes::Bytes;
use http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use http::{Request, Response, StatusCode, request};
use linchpin_core::Principal;
use linchpin_core::gate::{Admit, Gate, Refusal};
use linchpin_core::service::BoxFuture;
use linchpin_guard::{Clock, Fetch, Guard, Signer};
use linchpin_oauth::Alg;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

pub(crate) const SERVER: &str = "https://mcp.example.com/mcp";
pub(crate) const ISSUER: &str = "https://login.example.com/realms/main";
pub(crate) const NOW: u64 = 1_800_000_000;

/// The world outside of a guard: time, and issuers.
#[derive(Clone)]
pub(crate) struct World(Arc<Inner>);

struct Inner {
    now: AtomicU64,
    fetches: AtomicUsize,
    away: Mutex<bool>,
    /// What is served by URL, beside the metadata of [`ISSUER`].
    served: Mutex<Vec<(String, Vec<u8>)>>,
    asked: Mutex<Vec<String>>,
}

impl World {
    pub(crate) fn new() -> World {
        World(Arc::new(Inner {
            now: AtomicU64::new(NOW),
            fetches: AtomicUsize::new(0),
            away: Mutex::new(false),
            served: Mutex::default(),
            asked: Mutex::default(),
        }))
    }

    /// An issuer that publishes these keys.
    pub(crate) fn with_keys(keys: &[&Signer]) -> World {
        let world = World::new();
        world.publish(ISSUER, keys);
        world
    }

    pub(crate) fn publish(&self, issuer: &str, keys: &[&Signer]) {
        let keys: Vec<Value> = keys.iter().map(|key| key.jwk().to_value()).collect();
        self.publish_text(issuer, &json!({ "keys": keys }).to_string());
    }

    pub(crate) fn publish_text(&self, issuer: &str, keys: &str) {
        let (origin, path) = issuer.split_at(issuer[8..].find('/').map_or(issuer.len(), |at| at + 8));
        let place = format!("{origin}/.well-known/oauth-authorization-server{}", path.trim_end_matches('/'));
        let endpoint = format!("{issuer}/introspect");
        let metadata =
            json!({ "issuer": issuer, "jwks_uri": format!("{issuer}/keys"), "introspection_endpoint": endpoint });
        self.serve(&place, metadata.to_string().as_bytes());
        self.serve(&format!("{issuer}/keys"), keys.as_bytes());
    }

    pub(crate) fn serve(&self, url: &str, body: &[u8]) {
        let mut served = self.0.served.lock().unwrap();
        served.retain(|(known, _)| known != url);
        served.push((url.to_owned(), body.to_vec()));
    }

    pub(crate) fn set_away(&self, away: bool) {
        *self.0.away.lock().unwrap() = away;
    }

    pub(crate) fn pass(&self, seconds: u64) {
        self.0.now.fetch_add(seconds, Ordering::Relaxed);
    }

    pub(crate) fn now(&self) -> u64 {
        self.0.now.load(Ordering::Relaxed)
    }

    /// How many requests there were since the last question.
    pub(crate) fn fetches(&self) -> usize {
        self.0.fetches.swap(0, Ordering::Relaxed)
    }

    /// The forms that were posted.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.0.asked.lock().unwrap().clone()
    }

    pub(crate) fn clock(&self) -> Clock {
        let world = self.clone();
        Clock::new(move || world.now())
    }

    /// A guard of [`SERVER`] in this world.
    pub(crate) fn guard(&self) -> Guard {
        Guard::new(SERVER).fetch(self.clone()).clock(self.clock())
    }
}

impl Fetch for World {
    fn fetch(&self, request: Request<Bytes>, _: usize) -> BoxFuture<'static, Result<Response<Bytes>, String>> {
        self.0.fetches.fetch_add(1, Ordering::Relaxed);
        let world = self.clone();
        Box::pin(async move {
            tokio::task::yield_now().await;
            if *world.0.away.lock().unwrap() {
                return Err("no route to it".to_owned());
            }
            if !request.body().is_empty() {
                let form = String::from_utf8(request.body().to_vec()).unwrap();
                let line = request.headers().get(AUTHORIZATION).map_or("", |value| value.to_str().unwrap());
                world.0.asked.lock().unwrap().push(format!("{line} {form}"));
            }
            let served = world.0.served.lock().unwrap();
            let found = served.iter().find(|(url, _)| *url == request.uri().to_string());
            let mut response = Response::new(found.map(|(_, body)| Bytes::from(body.clone())).unwrap_or_default());
            if found.is_none() {
                *response.status_mut() = StatusCode::NOT_FOUND;
            }
            Ok(response)
        })
    }
}

/// A new key of this name.
pub(crate) fn key(alg: Alg, kid: &str) -> Signer {
    Signer::generate(alg).0.kid(kid)
}

/// The claims of a token that is accepted, and some of them changed; `null` removes one.
pub(crate) fn claims(changes: Value) -> Value {
    let mut claims = json!({
        "iss": ISSUER, "sub": "ada", "client_id": "desktop", "aud": SERVER, "scope": "mcp files:read",
        "iat": NOW - 10, "exp": NOW + 900, "jti": "1",
    });
    for (name, value) in changes.as_object().unwrap() {
        claims[name] = value.clone();
    }
    let claims: serde_json::Map<_, _> =
        claims.as_object().unwrap().clone().into_iter().filter(|(_, v)| !v.is_null()).collect();
    claims.into()
}

pub(crate) fn head(path: &str, headers: &[(&str, &str)]) -> request::Parts {
    let mut request = Request::post(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(()).unwrap().into_parts().0
}

/// What a gate decides about a request, sooner or later.
pub(crate) async fn admitted(gate: &impl Gate, head: &request::Parts) -> Result<Option<Principal>, Refusal> {
    let peer: SocketAddr = "192.0.2.1:1000".parse().unwrap();
    match gate.admit(head, Some(peer)) {
        Admit::Yes(principal) => Ok(Some(principal)),
        Admit::Open => Ok(None),
        Admit::No(refusal) => Err(refusal),
        Admit::Later(decision) => decision.await.map(Some),
    }
}

/// The same for a bearer token.
pub(crate) async fn bearer(guard: &Guard, token: &str) -> Result<Principal, Refusal> {
    let line = format!("Bearer {token}");
    admitted(guard, &head("/mcp", &[("authorization", &line)]))
        .await
        .map(|found| found.expect("a token is no stranger"))
}

/// Status, and challenges.
pub(crate) fn shown(refusal: &Refusal) -> (u16, Vec<String>) {
    let lines = refusal.headers().get_all(WWW_AUTHENTICATE).iter();
    (refusal.status().as_u16(), lines.map(|line| line.to_str().unwrap().to_owned()).collect())
}

/// Status, and the description in the first challenge.
pub(crate) fn why(outcome: &Result<Principal, Refusal>) -> (u16, &str) {
    match outcome {
        Ok(_) => (200, ""),
        Err(refusal) => (refusal.status().as_u16(), refusal.message()),
    }
}
