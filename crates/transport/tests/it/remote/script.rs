//! A client's side that writes down what it hears from a scripted server.

pub(crate) use crate::web_server::*;
use bytes::Bytes;
use linchpin_core::Features;
use linchpin_core::connector::{
    Answer, ClientTransport, ConnectOptions, Connector, Inbox, Outgoing, Tap, Traffic, TransportError,
};
use linchpin_core::limits::ClientLimits;
use linchpin_core::message::{Kind, Message};
use linchpin_proto::era;
use linchpin_transport::remote::{Remote, remote};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

impl Seen {
    /// The id of the request in the body.
    pub(crate) fn id(&self) -> u64 {
        let value: serde_json::Value = serde_json::from_str(&self.body).unwrap_or_default();
        value["id"].as_u64().unwrap_or(0)
    }
}

impl Server {
    pub(crate) fn remote(&self) -> Remote {
        remote(&self.url()).unwrap().web(web())
    }
}

pub(crate) fn result(id: u64) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"n":{id}}}}}"#)
}

pub(crate) fn event(data: &str) -> String {
    format!("data: {data}\n\n")
}

pub(crate) fn note(name: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"{name}"}}"#)
}

/// Writes down what comes.
#[derive(Default)]
pub(crate) struct Notes {
    pub(crate) heard: Mutex<Vec<String>>,
    /// For each of `heard`, the request on whose stream it came.
    pub(crate) during: Mutex<Vec<Option<u64>>>,
    pub(crate) closed: Mutex<Vec<String>>,
    /// How often the session was told as forgotten.
    pub(crate) forgotten: AtomicUsize,
    pub(crate) tapped: Mutex<Vec<String>>,
}

impl Inbox for Notes {
    fn received(&self, message: Message, during: Option<u64>) {
        self.during.lock().unwrap().push(during);
        self.heard.lock().unwrap().push(match &message.kind {
            Kind::Request { id, method } => format!("{}#{id}", method.as_str()),
            Kind::Notification { method } => method.as_str().to_owned(),
            Kind::Response { .. } => panic!("an answer in the inbox"),
        });
    }

    fn closed(&self, why: TransportError) {
        self.closed.lock().unwrap().push(why.to_string());
    }

    fn forgotten(&self) {
        self.forgotten.fetch_add(1, Ordering::SeqCst);
    }
}

impl Tap for Notes {
    fn saw(&self, event: Traffic<'_>) {
        self.tapped.lock().unwrap().push(format!("{event:?}"));
    }
}

impl Notes {
    pub(crate) fn heard(&self) -> String {
        self.heard.lock().unwrap().join(" ")
    }

    pub(crate) async fn heard_at_least(&self, n: usize) -> String {
        for _ in 0..2_000 {
            if self.heard.lock().unwrap().len() >= n {
                break;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        self.heard()
    }
}

/// An open link and what it hears.
pub(crate) struct Open {
    pub(crate) link: Arc<dyn ClientTransport>,
    pub(crate) notes: Arc<Notes>,
}

pub(crate) async fn open(place: Remote) -> Open {
    open_with(place, ClientLimits::default()).await
}

pub(crate) async fn open_with(place: Remote, limits: ClientLimits) -> Open {
    let notes = Arc::new(Notes::default());
    let tap: Arc<dyn Tap> = notes.clone();
    let options = ConnectOptions::new(notes.clone(), Arc::new(limits)).with(|options| options.tap = Some(tap));
    Open { link: place.connect(options).await.unwrap(), notes }
}

pub(crate) async fn open_fails(place: Remote, limits: ClientLimits) -> TransportError {
    let options = ConnectOptions::new(Arc::new(Notes::default()), Arc::new(limits));
    place.connect(options).await.err().expect("it should not open")
}

pub(crate) fn legacy() -> &'static Features {
    era::named("2025-11-25").unwrap()
}

pub(crate) fn modern() -> &'static Features {
    era::named("2026-07-28").unwrap()
}

/// A request of some method.
pub(crate) fn request(id: u64, features: Option<&'static Features>) -> Outgoing {
    let frame = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"x"}}}}"#);
    let mut out = Outgoing::new("tools/call", features, frame);
    (out.id, out.about) = (Some(id), Some("x".into()));
    out
}

/// A notification.
pub(crate) fn notification(features: Option<&'static Features>) -> Outgoing {
    let frame = Bytes::from_static(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    Outgoing::new("notifications/initialized", features, frame)
}

impl Open {
    pub(crate) async fn ask(&self, out: Outgoing) -> Result<Answer, TransportError> {
        tokio::time::timeout(Duration::from_secs(30), self.link.exchange(out)).await.expect("it hangs")
    }

    /// What comes of a request, in few words: the answer's text, or which error it is.
    pub(crate) async fn tell_of(&self, out: Outgoing) -> String {
        outcome(self.ask(out).await)
    }
}

pub(crate) fn outcome(outcome: Result<Answer, TransportError>) -> String {
    match outcome {
        Ok(Answer { message, status, .. }) => match &message.kind {
            Kind::Response { outcome, .. } => {
                let status = status.filter(|s| *s != 200).map(|s| format!("{s} ")).unwrap_or_default();
                format!("{status}{}", message.text(outcome.unwrap_or_else(|error| error)))
            }
            other => panic!("no answer: {other:?}"),
        },
        Err(TransportError::Status { status, body }) => format!("status {status}: {body}"),
        Err(TransportError::Forgotten) => "forgotten".to_owned(),
        Err(TransportError::CutOff(why)) => format!("cut off: {why}"),
        Err(TransportError::Unreadable(why)) => format!("unreadable: {why}"),
        Err(TransportError::Unreachable(why)) => format!("unreachable: {why}"),
        Err(TransportError::Unauthorized(why)) => format!("unauthorized: {why}"),
        Err(TransportError::Closed(why)) => format!("closed: {why}"),
        Err(why) => why.to_string(),
    }
}
