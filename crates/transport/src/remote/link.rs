//! The link of Streamable HTTP.

use super::answer::{Form, Stream};
use super::endpoint::{Endpoint, closed};
use super::head::SESSION;
use super::listen::listen;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use linchpin_core::Features;
use linchpin_core::connector::{Answer, ClientTransport, Outgoing, Traffic, TransportError};
use linchpin_core::message::Message;
use linchpin_core::service::{BoxFuture, boxed};
use linchpin_web::WebResponse;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

/// A connection to a Streamable HTTP server.
pub(super) struct Streamable {
    shared: Arc<Shared>,
    listening: Mutex<Option<tokio::task::AbortHandle>>,
    telling: Arc<AtomicUsize>,
}

/// The state shared by the link and its tasks.
pub(super) struct Shared {
    pub(super) place: Arc<Endpoint>,
    /// The session id, once the server has assigned one.
    session: Mutex<Option<HeaderValue>>,
    /// The negotiated revision.
    features: Mutex<Option<&'static Features>>,
    /// Whether the last request was stateless: decides what dropping one means before the handshake is complete.
    alone: AtomicBool,
    /// The standalone stream is open, or not supported, or the wait for it timed out.
    listening: watch::Sender<bool>,
    closed: AtomicBool,
    closing: Notify,
}

impl Streamable {
    pub(super) fn new(place: Arc<Endpoint>) -> Streamable {
        let shared = Shared {
            place,
            session: Mutex::new(None),
            features: Mutex::new(None),
            alone: AtomicBool::new(false),
            listening: watch::Sender::new(true),
            closed: AtomicBool::new(false),
            closing: Notify::new(),
        };
        Streamable { shared: Arc::new(shared), listening: Mutex::new(None), telling: Arc::default() }
    }

    fn listening(&self) -> MutexGuard<'_, Option<tokio::task::AbortHandle>> {
        self.listening.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ClientTransport for Streamable {
    fn exchange(&self, out: Outgoing) -> BoxFuture<'_, Result<Answer, TransportError>> {
        Box::pin(async move {
            tokio::select! {
                biased;
                () = self.shared.closing() => Err(closed()),
                answer = self.shared.exchange(&out) => answer,
            }
        })
    }

    fn notify(&self, out: Outgoing) -> BoxFuture<'_, Result<(), TransportError>> {
        Box::pin(async move {
            tokio::select! {
                biased;
                () = self.shared.closing() => Err(closed()),
                told = self.shared.notify(&out) => told,
            }
        })
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

    fn attributes(&self) -> bool {
        true
    }

    fn waits_for_user(&self) -> bool {
        self.shared.place.asks()
    }

    fn cancels_by_dropping(&self) -> bool {
        match self.shared.features() {
            Some(features) => features.cancels_by_close,
            None => self.shared.alone.load(Ordering::Relaxed),
        }
    }

    fn negotiated(&self, features: &'static Features) {
        *self.shared.features.lock().unwrap_or_else(PoisonError::into_inner) = Some(features);
        // A new session has another stream.
        let listens = features.has_sessions && !self.shared.is_closed();
        self.shared.listening.send_replace(!listens);
        let task = listens.then(|| self.shared.place.runtime.spawn(boxed(listen(self.shared.clone()))).abort_handle());
        let before = std::mem::replace(&mut *self.listening(), task);
        if let Some(before) = before {
            before.abort();
        }
    }

    fn fallback(&self) -> BoxFuture<'_, Option<Result<Arc<dyn ClientTransport>, TransportError>>> {
        let place = self.shared.place.clone();
        Box::pin(async move { Some(super::sse::open(place).await.map(|link| link as Arc<dyn ClientTransport>)) })
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            self.shared.closed.store(true, Ordering::SeqCst);
            self.shared.closing.notify_waiters();
            if let Some(task) = self.listening().take() {
                task.abort();
            }
            let Some(session) = self.shared.session().take() else { return };
            let place = &self.shared.place;
            let head = || place.heads.delete(self.shared.features(), session.clone());
            let deadline = Duration::from_millis(place.options.limits.connections.close_ms_max);
            // A server that does not let its sessions be ended (405) ends them by itself.
            let _ = tokio::time::timeout(deadline, place.send(Method::DELETE, Bytes::new(), &head)).await;
        })
    }
}

impl Drop for Streamable {
    fn drop(&mut self) {
        if let Some(task) = self.listening().take() {
            task.abort();
        }
    }
}

impl Shared {
    fn session(&self) -> MutexGuard<'_, Option<HeaderValue>> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn features(&self) -> Option<&'static Features> {
        *self.features.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }

    /// Waits for the end of the link.
    async fn closing(&self) {
        let mut closing = std::pin::pin!(self.closing.notified());
        closing.as_mut().enable();
        if !self.is_closed() {
            closing.await;
        }
    }

    /// The request for the standalone stream was answered or failed.
    pub(super) fn listens(&self) {
        self.listening.send_if_modified(|listening| !std::mem::replace(listening, true));
    }

    /// Waits for that, briefly and only after the handshake: server requests on that stream during a call would be lost
    /// if the call came first.
    async fn until_listening(&self) {
        if *self.listening.borrow() {
            return;
        }
        let mut listening = self.listening.subscribe();
        let _ = tokio::time::timeout(LISTEN_WAIT, listening.wait_for(|listening| *listening)).await;
        self.listens();
    }

    async fn exchange(&self, out: &Outgoing) -> Result<Answer, TransportError> {
        let Some(id) = out.id else {
            return Err(TransportError::Unreadable("a message without an id has no response".into()));
        };
        self.alone.store(out.features.is_some_and(|features| features.cancels_by_close), Ordering::Relaxed);
        let resumes = out.features.is_none_or(|features| features.has_sessions);
        if resumes {
            self.until_listening().await;
        }
        let mut answer = self.post(out).await?;
        let status = answer.parts.status;
        if !status.is_success() {
            // The rare future is boxed, to keep the common one small.
            return Box::pin(self.place.refused(answer, Some(id))).await;
        }
        let (form, before) = self.place.look(&mut answer).await?;
        let message = if form == Form::Json {
            self.place.read_json(&mut answer.body, before, id).await?
        } else {
            let mut stream = Stream::new(self.place.options.limits.messages.frame_bytes_max);
            let read = self.place.read_stream(&mut answer.body, before, &mut stream, id).await;
            match read {
                Ok(Some(message)) => {
                    self.place.finish(answer.body);
                    message
                }
                Err(TransportError::Unreadable(why)) => return Err(TransportError::Unreadable(why)),
                Err(why) if !resumes || stream.last_id.is_empty() => return Err(why),
                Ok(None) if !resumes || stream.last_id.is_empty() => {
                    return Err(TransportError::CutOff("the stream ended before the response".into()));
                }
                Ok(None) | Err(_) => {
                    drop(answer);
                    Box::pin(self.resume(out, id, stream)).await?
                }
            }
        };
        Ok(Answer::new(message, Some(status.as_u16())))
    }

    /// Sends a message, and reads the session id from the response headers.
    async fn post(&self, out: &Outgoing) -> Result<WebResponse, TransportError> {
        let place = &self.place;
        if place.options.tap.is_some() {
            let text = String::from_utf8_lossy(&out.frame);
            place.options.show(|| Traffic::Sent(&text));
        }
        // The first request has no session yet, but what answers the server meanwhile has; those that are stateless
        // have none.
        let has_session = out.features.map_or(out.id.is_none(), |features| features.has_sessions);
        let session = if has_session { self.session().clone() } else { None };
        let head = || place.heads.post(out, session.clone());
        let answer = place.send(Method::POST, out.frame.clone(), &head).await?;
        let status = answer.parts.status;
        if status == StatusCode::NOT_FOUND && session.is_some() {
            self.place.finish(answer.body);
            return Err(TransportError::Forgotten);
        }
        if out.features.is_none() && out.id.is_some() && status.is_success() {
            *self.session() = session_of(&answer.parts.headers);
        }
        Ok(answer)
    }

    async fn notify(&self, out: &Outgoing) -> Result<(), TransportError> {
        let answer = self.post(out).await?;
        if !answer.parts.status.is_success() {
            return self.place.refused(answer, None).await.map(drop);
        }
        self.place.finish(answer.body);
        Ok(())
    }

    /// Resumes the stream of a request until its response arrives.
    async fn resume(&self, out: &Outgoing, id: u64, mut stream: Stream) -> Result<Message, TransportError> {
        let limits = &self.place.options.limits;
        let mut vain = 0;
        let mut ended = Instant::now();
        let mut why = TransportError::CutOff("the stream ended before the response".into());
        loop {
            if vain == limits.connections.resumes_max {
                return Err(why);
            }
            let wait = stream.wait(vain, limits.connections.resume_ms_max);
            tokio::time::sleep(wait.saturating_sub(ended.elapsed())).await;
            self.place.options.show(|| Traffic::Note("a stream that ended early is resumed"));
            vain += 1;
            stream.again();
            let features = out.features.or_else(|| self.features());
            let answer = self.stream(features, &stream.last_id).await;
            let mut answer = match answer {
                Ok(answer) => answer,
                Err(e @ (TransportError::Forgotten | TransportError::Unauthorized(_))) => return Err(e),
                Err(e) => {
                    (ended, why) = (Instant::now(), e);
                    continue;
                }
            };
            let status = answer.parts.status;
            if !status.is_success() {
                if !passing(status) {
                    let why =
                        format!("the stream ended before the response and is not resumed (status {})", status.as_u16());
                    return Err(TransportError::CutOff(why.into()));
                }
                (ended, why) = (Instant::now(), TransportError::Status { status: status.as_u16(), body: "".into() });
                continue;
            }
            let (form, before) = self.place.look(&mut answer).await?;
            if form == Form::Json {
                return self.place.read_json(&mut answer.body, before, id).await;
            }
            match self.place.read_stream(&mut answer.body, before, &mut stream, id).await {
                Ok(Some(message)) => {
                    self.place.finish(answer.body);
                    return Ok(message);
                }
                Ok(None) => {}
                Err(TransportError::Unreadable(why)) => return Err(TransportError::Unreadable(why)),
                Err(e) => why = e,
            }
            ended = Instant::now();
            if stream.moved {
                vain = 0;
            }
        }
    }

    /// Requests the standalone stream, after the event `last` if that is not empty.
    pub(super) async fn stream(
        &self,
        features: Option<&'static Features>,
        last: &str,
    ) -> Result<WebResponse, TransportError> {
        let session = self.session().clone();
        let head = || self.place.heads.stream(features, session.clone(), last);
        let answer = self.place.send(Method::GET, Bytes::new(), &head).await?;
        if answer.parts.status == StatusCode::NOT_FOUND && session.is_some() {
            self.place.finish(answer.body);
            return Err(TransportError::Forgotten);
        }
        Ok(answer)
    }
}

/// Statuses that may be different next time.
pub(super) fn passing(status: StatusCode) -> bool {
    status.is_server_error() || matches!(status.as_u16(), 408 | 425 | 429)
}

/// The session's id, if the server gave one that can be repeated.
fn session_of(headers: &HeaderMap) -> Option<HeaderValue> {
    let mut id = headers.get(SESSION)?.clone();
    if id.is_empty() {
        return None;
    }
    id.set_sensitive(true);
    Some(id)
}

/// A server this late has opened the stream without sending response headers, as some do until the first message.
const LISTEN_WAIT: Duration = Duration::from_millis(500);
const TELLING_MAX: usize = 64;
const TELL_LATER: Duration = Duration::from_secs(10);
