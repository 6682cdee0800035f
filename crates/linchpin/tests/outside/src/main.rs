//! Extends Linchpin from outside of its workspace, with public names only: a method, a notification, a store, an observer and
//! a gate of its own, used by a client. Exits with an error if one of them is not reached, or if a second server does not go on
//! with the sessions of the first.

use http::header::AUTHORIZATION;
use http::request;
use linchpin::prelude::*;
use linchpin::store::{SessionRecord, SessionStore, StoreError};
use linchpin::transport::{Admit, Gate, Refusal, remote};
use linchpin::types::version::Revision;
use linchpin::{BoxFuture, CallEnd, CallInfo, Observer, Principal};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

type Failed = Box<dyn std::error::Error + Send + Sync>;

/// Lets in who has the token.
struct Token;

impl Gate for Token {
    fn admit(&self, head: &request::Parts, _: Option<SocketAddr>) -> Admit {
        match head.headers.get(AUTHORIZATION) {
            Some(value) if value == "Bearer swordfish" => Admit::Yes(Principal::new("ada")),
            _ => Admit::No(Refusal::unauthorized("send the token")),
        }
    }
}

/// Keeps sessions in a map.
#[derive(Clone, Default)]
struct Sessions(Arc<Mutex<HashMap<String, SessionRecord>>>);

fn done<T: Send + 'static>(value: T) -> BoxFuture<'static, Result<T, StoreError>> {
    Box::pin(std::future::ready(Ok(value)))
}

impl SessionStore for Sessions {
    fn save(&self, id: &str, record: SessionRecord, _: Duration) -> BoxFuture<'_, Result<(), StoreError>> {
        self.0.lock().unwrap().insert(id.to_owned(), record);
        done(())
    }

    fn load(&self, id: &str) -> BoxFuture<'_, Result<Option<SessionRecord>, StoreError>> {
        done(self.0.lock().unwrap().get(id).cloned())
    }

    fn touch(&self, _: Vec<String>, _: Duration) -> BoxFuture<'_, Result<(), StoreError>> {
        done(())
    }

    fn delete(&self, id: &str) -> BoxFuture<'_, Result<bool, StoreError>> {
        done(self.0.lock().unwrap().remove(id).is_some())
    }
}

/// Remembers what was called.
#[derive(Clone, Default)]
struct Calls(Arc<Mutex<Vec<String>>>);

impl Observer for Calls {
    fn call_ended(&self, call: &CallInfo, end: &CallEnd) {
        self.0.lock().unwrap().push(format!("{} {}", call.method, end.outcome.as_str()));
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failed> {
    let (sessions, calls) = (Sessions::default(), Calls::default());
    let heard = Arc::new(Mutex::new(Vec::new()));
    let saved = heard.clone();
    let node = |address: SocketAddr| {
        let saved = heard.clone();
        let server = Server::new("outside", "1.0")
            .observe(calls.clone())
            .method("example.com/whoami", |cx: &Cx| {
                Json(serde_json::json!({ "subject": cx.principal().map(|principal| principal.subject().to_owned()) }))
            })
            .on_notification("notifications/example.com/saved", move |cx: &Cx| {
                saved.lock().unwrap().push(cx.principal().map(|principal| principal.subject().to_owned()));
            });
        let kept: Arc<dyn SessionStore> = Arc::new(sessions.clone());
        let place = http(address).guard(Token).options(|options| options.sessions = Some(kept));
        let (ready, address) = tokio::sync::oneshot::channel();
        let serving = tokio::spawn(server.serve(place.on_ready(move |address| drop(ready.send(address)))));
        (serving, address)
    };
    let (mut serving, address) = node("127.0.0.1:0".parse()?);
    let address = address.await?;
    let url = format!("http://{address}/mcp");

    let stranger = Client::new("stranger", "1.0").connect(remote(&url)?).await;
    if stranger.is_ok() {
        return Err("the gate let a stranger in".into());
    }
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let client = Client::new("ada", "1.0").revisions(&[revision]);
        let connection = client.connect(remote(&url)?.bearer("swordfish")).await?;
        for is_restarted in [false, true] {
            if is_restarted {
                // Another server, which knows the session from the store only.
                serving.abort();
                let _ = serving.await;
                let ready;
                (serving, ready) = node(address);
                ready.await?;
            }
            let answer = connection.request("example.com/whoami", serde_json::json!({})).await?;
            let answer: serde_json::Value = serde_json::from_str(answer.get())?;
            if answer["subject"] != "ada" {
                return Err(format!("{revision:?}, restarted: {is_restarted}: {answer}").into());
            }
            let stored = sessions.0.lock().unwrap().len();
            if stored != usize::from(revision == Revision::V2025_11_25) {
                return Err(format!("{revision:?}: {stored} sessions are stored").into());
            }
        }
        connection.notify("notifications/example.com/saved", serde_json::json!({})).await?;
        // Closing deletes the session, here and in the store.
        connection.close().await;
        for attempt in 0.. {
            if sessions.0.lock().unwrap().is_empty() {
                break;
            }
            if attempt == 500 {
                return Err(format!("{revision:?}: the session stays in the store").into());
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
    for attempt in 0.. {
        let heard = heard.lock().unwrap().clone();
        if heard == [Some("ada".to_owned()), Some("ada".to_owned())] {
            break;
        }
        if attempt == 500 {
            return Err(format!("heard: {heard:?}").into());
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let calls = calls.0.lock().unwrap().join(", ");
    if calls.matches("example.com/whoami ok").count() != 4 {
        return Err(format!("observed: {calls}").into());
    }
    serving.abort();
    Ok(())
}
