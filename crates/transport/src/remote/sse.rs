//! The HTTP+SSE transport of 2024-11-05: one stream for incoming messages, and a URL for outgoing ones.
//!
//! Specification: 2024-11-05 "HTTP with SSE", and "Backwards Compatibility" of Streamable HTTP.

use super::answer::{Form, Stream};
use super::endpoint::{Endpoint, closed};
use bytes::Bytes;
use http::Method;
use linchpin_core::Features;
use linchpin_core::connector::{Answer, ClientTransport, Outgoing, Traffic, TransportError};
use linchpin_core::message::{Kind, Message};
use linchpin_core::service::{BoxFuture, boxed};
use linchpin_web::{WebBody, WebResponse};
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::oneshot;
use url::Url;

/// A connection to a server with the HTTP+SSE transport.
pub(super) struct Sse {
    shared: Arc<Shared>,
    reading: tokio::task::AbortHandle,
    telling: Arc<AtomicUsize>,
}

struct Shared {
    place: Arc<Endpoint>,
    /// Where messages are sent.
    endpoint: Url,
    waiting: Mutex<Waiting>,
}

/// Pending requests, or the error after the stream has ended.
#[derive(Default)]
struct Waiting {
    answers: HashMap<u64, oneshot::Sender<Message>>,
    ended: Option<TransportError>,
}

/// Opens the stream and waits for the address that the server names on it.
///
/// # Errors
/// When there is no such stream, or it sends no endpoint of the same origin in time.
pub(super) async fn open(place: Arc<Endpoint>) -> Result<Arc<Sse>, TransportError> {
    let head = || place.heads.stream(None, None, "");
    let mut answer = place.send(Method::GET, Bytes::new(), &head).await?;
    if !answer.parts.status.is_success() {
        return Err(place.refused(answer, None).await.err().unwrap_or_else(closed));
    }
    if Form::of(&answer) != Form::Stream {
        return Err(TransportError::Unreadable(
            format!("{} did not return an event stream for GET", place.name).into(),
        ));
    }
    let limits = &place.options.limits;
    let mut stream = Stream::new(limits.messages.frame_bytes_max);
    let deadline = Duration::from_millis(limits.connections.connect_ms_max);
    let endpoint = match tokio::time::timeout(deadline, endpoint(&place, &mut answer, &mut stream)).await {
        Ok(endpoint) => endpoint?,
        Err(_) => {
            let why = format!("{} did not send an endpoint event in time", place.name);
            return Err(TransportError::Unreachable(why.into()));
        }
    };
    let shared = Arc::new(Shared { place, endpoint, waiting: Mutex::default() });
    let reading = shared.place.runtime.spawn(boxed(read(shared.clone(), answer.body, stream))).abort_handle();
    Ok(Arc::new(Sse { shared, reading, telling: Arc::default() }))
}

async fn endpoint(place: &Endpoint, answer: &mut WebResponse, stream: &mut Stream) -> Result<Url, TransportError> {
    loop {
        let piece = answer.body.chunk().await.map_err(|e| super::answer::broken(&e))?;
        let Some(piece) = piece else {
            return Err(TransportError::Unreachable(format!("{} closed its stream at once", place.name).into()));
        };
        let fed = stream.feed(&piece);
        while let Some(event) = stream.next() {
            if event.name != "endpoint" {
                place.hear_event(event, None, &mut |_| {});
                continue;
            }
            let found = place.url.join(event.data.trim()).ok().filter(|url| url.origin() == place.url.origin());
            return found.ok_or_else(|| {
                let why = format!("{} sent an endpoint of another origin, which is not trusted", place.name);
                TransportError::Unreachable(why.into())
            });
        }
        fed?;
    }
}

/// Dispatches messages until the stream ends, which ends the link.
async fn read(shared: Arc<Shared>, mut body: WebBody, mut stream: Stream) {
    let mut piece = Bytes::new();
    let why = loop {
        let fed = stream.feed(&piece);
        while let Some(event) = stream.next() {
            shared.place.hear_event(event, None, &mut |message| shared.answered(message));
        }
        if let Err(e) = fed {
            break e.to_string();
        }
        match body.chunk().await {
            Ok(Some(next)) => piece = next,
            Ok(None) => break format!("{} closed the stream", shared.place.name),
            Err(e) => break e.to_string(),
        }
    };
    let why = TransportError::Closed(why.into());
    if shared.end(why.clone()) {
        shared.place.options.inbox.closed(why);
    }
}

impl Shared {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn answered(&self, message: Message) {
        let Kind::Response { id, .. } = &message.kind else { return };
        let waiter = id.as_number().and_then(|id| self.waiting().answers.remove(&id));
        if let Some(waiter) = waiter {
            let _ = waiter.send(message);
        }
    }

    /// Fails all pending requests. `false` if they had already failed.
    fn end(&self, why: TransportError) -> bool {
        let mut waiting = self.waiting();
        let first = waiting.ended.is_none();
        waiting.ended.get_or_insert(why);
        waiting.answers.clear();
        first
    }

    fn why(&self) -> TransportError {
        self.waiting().ended.clone().unwrap_or_else(closed)
    }

    async fn post(&self, out: &Outgoing) -> Result<WebResponse, TransportError> {
        let place = &self.place;
        if place.options.tap.is_some() {
            let text = String::from_utf8_lossy(&out.frame);
            place.options.show(|| Traffic::Sent(&text));
        }
        let head = || place.heads.post(out, None);
        place.send_to(&self.endpoint, Method::POST, out.frame.clone(), &head).await
    }

    async fn exchange(&self, out: &Outgoing) -> Result<Answer, TransportError> {
        let Some(id) = out.id else {
            return Err(TransportError::Unreadable("a message without an id has no response".into()));
        };
        let (sender, mut receiver) = oneshot::channel();
        {
            let mut waiting = self.waiting();
            if let Some(why) = &waiting.ended {
                return Err(why.clone());
            }
            waiting.answers.insert(id, sender);
        }
        let _forget = Forget { shared: self, id };
        let answer = tokio::select! {
            biased;
            // The response may overtake the acknowledgement.
            message = &mut receiver => return self.take(message),
            answer = self.post(out) => answer?,
        };
        if !answer.parts.status.is_success() {
            return self.place.refused(answer, Some(id)).await;
        }
        if Form::of(&answer) == Form::Json {
            // Not compliant, but unambiguous: accept it.
            let mut body = answer.body;
            tokio::select! {
                biased;
                message = &mut receiver => return self.take(message),
                message = self.place.read_json(&mut body, Bytes::new(), id) => {
                    if let Ok(message) = message {
                        return Ok(Answer::new(message, None));
                    }
                }
            }
        } else {
            self.place.finish(answer.body);
        }
        let message = receiver.await;
        self.take(message)
    }

    fn take(&self, message: Result<Message, oneshot::error::RecvError>) -> Result<Answer, TransportError> {
        message.map(|message| Answer::new(message, None)).map_err(|_| self.why())
    }

    async fn notify(&self, out: &Outgoing) -> Result<(), TransportError> {
        let ended = self.waiting().ended.clone();
        if let Some(why) = ended {
            return Err(why);
        }
        let answer = self.post(out).await?;
        if !answer.parts.status.is_success() {
            return self.place.refused(answer, None).await.map(drop);
        }
        self.place.finish(answer.body);
        Ok(())
    }
}

/// Removes an abandoned request from the table.
struct Forget<'a> {
    shared: &'a Shared,
    id: u64,
}

impl Drop for Forget<'_> {
    fn drop(&mut self) {
        self.shared.waiting().answers.remove(&self.id);
    }
}

impl ClientTransport for Sse {
    fn exchange(&self, out: Outgoing) -> BoxFuture<'_, Result<Answer, TransportError>> {
        Box::pin(async move { self.shared.exchange(&out).await })
    }

    fn notify(&self, out: Outgoing) -> BoxFuture<'_, Result<(), TransportError>> {
        Box::pin(async move { self.shared.notify(&out).await })
    }

    fn notify_detached(&self, out: Outgoing) {
        let (shared, telling) = (self.shared.clone(), self.telling.clone());
        if telling.fetch_add(1, Ordering::Relaxed) >= TELLING_MAX {
            telling.fetch_sub(1, Ordering::Relaxed);
            return;
        }
        self.shared.place.runtime.spawn(boxed(async move {
            let _ = tokio::time::timeout(TELL_LATER, shared.notify(&out)).await;
            telling.fetch_sub(1, Ordering::Relaxed);
        }));
    }

    fn may_stay_silent(&self) -> bool {
        false
    }

    fn waits_for_user(&self) -> bool {
        self.shared.place.asks()
    }

    fn cancels_by_dropping(&self) -> bool {
        false
    }

    fn negotiated(&self, _: &'static Features) {}

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            self.reading.abort();
            self.shared.end(closed());
        })
    }
}

impl Drop for Sse {
    fn drop(&mut self) {
        self.reading.abort();
    }
}

const TELLING_MAX: usize = 64;
const TELL_LATER: Duration = Duration::from_secs(10);
