//! The Chrome DevTools Protocol over a pair of pipes: JSON messages that end with a NUL byte, sessions in flat mode.
//!
//! A [`Cdp`] is a connection to a browser, a [`CdpSession`] is one of its sessions: the browser itself, or a target that
//! was attached to. One task reads, one writes. Every event goes first to the hook that the connection was opened with,
//! in order and at once, then to the [`Events`] that want it, whose queues are bounded.

mod error;
mod events;
mod wire;

pub(crate) use error::CdpError;
pub(crate) use events::{Event, Events};

use events::Subscribers;
use serde::Serialize;
use serde_json::Value;
use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::sync::{mpsc, oneshot, watch};
use wire::{Frames, Incoming, Outgoing};

/// Longest message that is read. A longer one is skipped; if it is a response, its command fails.
pub(crate) const MESSAGE_BYTES_MAX: usize = 96 << 20;
/// Bytes of commands that may wait to be written. A browser that reads nothing is beyond help.
const QUEUED_BYTES_MAX: usize = 128 << 20;
/// How long a command may take unless said otherwise.
pub(crate) const COMMAND_TIME: Duration = Duration::from_secs(30);

/// A connection to a browser. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Cdp {
    inner: Arc<Inner>,
}

struct Inner {
    next: AtomicU64,
    out: mpsc::UnboundedSender<Vec<u8>>,
    queued: Arc<AtomicUsize>,
    pending: Mutex<HashMap<u64, Pending>>,
    subscribers: Subscribers,
    closed: watch::Sender<bool>,
    /// How many messages were read.
    heard: AtomicU64,
}

struct Pending {
    session: Option<Arc<str>>,
    answer: oneshot::Sender<Result<Value, CdpError>>,
}

/// Is shown every event first, by the reading task, and may add to it: it must not block.
pub(crate) type Hook = Box<dyn Fn(&Cdp, &mut Event) + Send + Sync>;

impl Cdp {
    /// Opens a connection over these streams: `input` is what the browser writes. Must be called in a tokio runtime.
    pub(crate) fn open(
        input: impl AsyncRead + Unpin + Send + 'static,
        output: impl AsyncWrite + Unpin + Send + 'static,
        hook: Hook,
    ) -> Cdp {
        let (out, waiting) = mpsc::unbounded_channel();
        let inner = Inner {
            next: AtomicU64::new(1),
            out,
            queued: Arc::default(),
            pending: Mutex::default(),
            subscribers: Subscribers::default(),
            closed: watch::Sender::new(false),
            heard: AtomicU64::new(0),
        };
        let cdp = Cdp { inner: Arc::new(inner) };
        tokio::spawn(write(output, waiting, cdp.inner.queued.clone(), cdp.inner.closed.subscribe()));
        tokio::spawn(cdp.clone().read(Frames::new(input, MESSAGE_BYTES_MAX), hook));
        cdp
    }

    /// The session of the browser itself.
    pub(crate) fn browser(&self) -> CdpSession {
        CdpSession { cdp: self.clone(), id: None }
    }

    /// The session with this id.
    pub(crate) fn session(&self, id: impl Into<Arc<str>>) -> CdpSession {
        CdpSession { cdp: self.clone(), id: Some(id.into()) }
    }

    /// Whether the browser still listens.
    pub(crate) fn is_open(&self) -> bool {
        !*self.inner.closed.borrow()
    }

    /// How many messages were read so far.
    pub(crate) fn heard(&self) -> u64 {
        self.inner.heard.load(Ordering::Relaxed)
    }

    /// Ends the connection: all commands fail, all events end.
    pub(crate) fn close(&self) {
        self.inner.closed.send_replace(true);
        self.inner.subscribers.clear();
        let failed = std::mem::take(&mut *self.pending());
        failed.into_values().for_each(|pending| drop(pending.answer.send(Err(CdpError::Closed))));
    }

    fn pending(&self) -> MutexGuard<'_, HashMap<u64, Pending>> {
        self.inner.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues a command.
    fn send(&self, id: u64, session: Option<&str>, method: &str, params: impl Serialize) -> Result<(), CdpError> {
        let message = Outgoing { id, method, params, session };
        let mut text = serde_json::to_vec(&message).map_err(|e| CdpError::Invalid(e.to_string()))?;
        text.push(0);
        let bytes = text.len();
        if self.inner.queued.fetch_add(bytes, Ordering::Relaxed) + bytes > QUEUED_BYTES_MAX {
            self.close();
        }
        if !self.is_open() || self.inner.out.send(text).is_err() {
            return Err(CdpError::Closed);
        }
        Ok(())
    }

    async fn read<R: AsyncRead + Unpin>(self, mut frames: Frames<R>, hook: Hook) {
        let mut closed = self.inner.closed.subscribe();
        loop {
            let frame = tokio::select! {
                frame = frames.next() => frame,
                _ = closed.wait_for(|closed| *closed) => break,
            };
            self.inner.heard.fetch_add(1, Ordering::Relaxed);
            match frame {
                Ok(Some(Incoming::Answer { id, result })) => self.answer(id, result),
                Ok(Some(Incoming::Event(mut event))) => {
                    hook(&self, &mut event);
                    if &*event.method == "Target.detachedFromTarget" {
                        self.detached(event.params["sessionId"].as_str().unwrap_or_default());
                    }
                    self.inner.subscribers.publish(event);
                }
                Ok(Some(Incoming::Skipped)) => {}
                Ok(None) | Err(_) => break,
            }
        }
        self.close();
    }

    fn answer(&self, id: u64, result: Result<Value, CdpError>) {
        let pending = self.pending().remove(&id);
        if let Some(pending) = pending {
            let _ = pending.answer.send(result);
        }
    }

    /// Fails the commands of a session that is over, which has no answers.
    fn detached(&self, session: &str) {
        let over: Vec<_> =
            self.pending().extract_if(|_, pending| pending.session.as_deref() == Some(session)).collect();
        over.into_iter().for_each(|(_, pending)| drop(pending.answer.send(Err(CdpError::Detached))));
        self.inner.subscribers.detached(session);
    }
}

impl fmt::Debug for Cdp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cdp").field("open", &self.is_open()).finish_non_exhaustive()
    }
}

/// Writes what is queued until the connection is closed.
async fn write(
    mut output: impl AsyncWrite + Unpin,
    mut waiting: mpsc::UnboundedReceiver<Vec<u8>>,
    queued: Arc<AtomicUsize>,
    mut closed: watch::Receiver<bool>,
) {
    loop {
        let text = tokio::select! {
            text = waiting.recv() => text,
            _ = closed.wait_for(|closed| *closed) => None,
        };
        let Some(text) = text else { return };
        let written = tokio::select! {
            written = output.write_all(&text) => written,
            _ = closed.wait_for(|closed| *closed) => return,
        };
        queued.fetch_sub(text.len(), Ordering::Relaxed);
        if written.is_err() {
            return;
        }
    }
}

/// A session of a connection. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct CdpSession {
    cdp: Cdp,
    id: Option<Arc<str>>,
}

impl CdpSession {
    /// The connection.
    pub(crate) fn cdp(&self) -> &Cdp {
        &self.cdp
    }

    /// The id; `None` for the browser itself.
    pub(crate) fn id(&self) -> Option<&Arc<str>> {
        self.id.as_ref()
    }

    /// Sends a command and waits for its result, at most [`COMMAND_TIME`].
    ///
    /// # Errors
    /// When the browser refuses it, does not answer in time, or is gone.
    pub(crate) async fn call(&self, method: &'static str, params: impl Serialize) -> Result<Value, CdpError> {
        self.call_within(method, params, COMMAND_TIME).await
    }

    /// The same with another limit. Dropping the future forgets the command.
    ///
    /// # Errors
    /// As [`CdpSession::call`].
    pub(crate) async fn call_within(
        &self,
        method: &'static str,
        params: impl Serialize,
        limit: Duration,
    ) -> Result<Value, CdpError> {
        let id = self.cdp.inner.next.fetch_add(1, Ordering::Relaxed);
        let (answer, answered) = oneshot::channel();
        self.cdp.pending().insert(id, Pending { session: self.id.clone(), answer });
        // Forgotten in every case, a dropped future included.
        let _forget = Forget { cdp: &self.cdp, id };
        self.cdp.send(id, self.id.as_deref(), method, params)?;
        match tokio::time::timeout(limit, answered).await {
            Ok(Ok(result)) => result,
            Ok(Err(_)) => Err(CdpError::Closed),
            Err(_) => Err(CdpError::Timeout(method)),
        }
    }

    /// Sends a command whose result nobody wants. Never waits, so that hooks may use it.
    pub(crate) fn post(&self, method: &'static str, params: impl Serialize) {
        let id = self.cdp.inner.next.fetch_add(1, Ordering::Relaxed);
        if let Err(e) = self.cdp.send(id, self.id.as_deref(), method, params) {
            tracing::debug!(method, error = %e, "a command was not sent");
        }
    }

    /// The events of this session with these methods, from now on. A queue holds some hundred; what comes to a full one
    /// is dropped.
    pub(crate) fn events(&self, methods: &'static [&'static str]) -> Events {
        self.cdp.inner.subscribers.add(self.id.clone(), methods, self.cdp.is_open())
    }
}

struct Forget<'a> {
    cdp: &'a Cdp,
    id: u64,
}

impl Drop for Forget<'_> {
    fn drop(&mut self) {
        self.cdp.pending().remove(&self.id);
    }
}

#[cfg(test)]
mod tests;
