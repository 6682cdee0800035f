//! Outgoing messages, written by the task that sends them.
//!
//! A sender appends its message; if nobody is writing, it writes at once, without a channel or another task. What
//! others append meanwhile goes out with the next write. When the server takes nothing more, the rest is left to the
//! link's writing task, and senders wait once [`OUT_BYTES`] are pending. When several answers have come at once, their
//! receivers are likely to send again at once: then what they send is left to the writing task, too, which writes it in
//! one piece.

use std::io;
use std::pin::Pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::Notify;

/// Maximum pending bytes before senders must wait.
const OUT_BYTES: usize = 256 << 10;
/// The same for messages whose senders cannot wait.
const OUT_BYTES_HARD: usize = 2 * OUT_BYTES;
/// Maximum capacity of an empty buffer.
const IDLE_BYTES: usize = 64 << 10;
/// Maximum writes of a sender for others before the writing task takes over.
const TURNS: usize = 8;

pub(super) struct Outbox {
    out: Mutex<Out>,
    /// There is room again, or the outbox has ended.
    room: Notify,
    /// The writing task has something to do.
    work: Notify,
}

#[derive(Default)]
struct Out {
    /// Bytes not yet being written.
    pending: Vec<u8>,
    /// The writer, while nobody writes.
    idle: Option<WriterState>,
    /// The pen, when its last owner could not write on.
    stalled: Option<WriterState>,
    /// A sender waits for `room`.
    wanted: bool,
    end: Option<End>,
    /// More is expected right away: senders leave writing to the writing task.
    gathering: bool,
    /// The stream is closed, or will be by the current writer.
    gone: bool,
}

/// Why the outbox is closed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum End {
    /// This side has ended it.
    Finished,
    /// Writing has failed.
    Broken,
}

/// The right to write.
struct WriterState {
    writer: Box<dyn AsyncWrite + Send + Unpin>,
    bytes: Vec<u8>,
    written: usize,
}

impl Outbox {
    pub(super) fn new(writer: Box<dyn AsyncWrite + Send + Unpin>) -> Outbox {
        let idle = Some(WriterState { writer, bytes: Vec::new(), written: 0 });
        Outbox { out: Mutex::new(Out { idle, ..Out::default() }), room: Notify::new(), work: Notify::new() }
    }

    fn lock(&self) -> MutexGuard<'_, Out> {
        self.out.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands over one message; waits while too much is pending. `sent` is called at the place in the order the message
    /// has. Cancel-safe: it is handed over whole or not at all.
    pub(super) async fn send(&self, frame: &[u8], sent: &(dyn Fn() + Sync)) -> Result<(), End> {
        if self.hand_over(frame, OUT_BYTES, sent)? {
            return Ok(());
        }
        loop {
            let room = self.room.notified();
            if self.hand_over(frame, OUT_BYTES, sent)? {
                return Ok(());
            }
            room.await;
        }
    }

    /// The same without waiting; the message is lost if the server does not read.
    pub(super) fn send_now(&self, frame: &[u8], sent: &(dyn Fn() + Sync)) {
        let _ = self.hand_over(frame, OUT_BYTES_HARD, sent);
    }

    /// `false` if the limit is reached.
    fn hand_over(&self, frame: &[u8], room: usize, sent: &(dyn Fn() + Sync)) -> Result<bool, End> {
        let mut out = self.lock();
        if let Some(end) = out.end {
            return Err(end);
        }
        if out.pending.len() >= room {
            out.wanted = true;
            return Ok(false);
        }
        sent();
        append(&mut out.pending, frame);
        if out.gathering {
            return Ok(true);
        }
        let Some(mut pen) = out.idle.take() else { return Ok(true) };
        for _ in 0..TURNS {
            pen.load(&mut out);
            drop(out);
            // Whoever polls last is woken: the writing task, if this does not go through.
            let written = pen.poll(&mut Context::from_waker(Waker::noop()));
            out = self.lock();
            match written {
                Poll::Ready(Ok(())) if out.pending.is_empty() => {
                    self.rest(out, pen);
                    return Ok(true);
                }
                Poll::Ready(Ok(())) => {}
                Poll::Pending => break,
                Poll::Ready(Err(e)) => {
                    self.broken(out, &e);
                    return Ok(true);
                }
            }
        }
        if !out.gone {
            out.stalled = Some(pen);
            drop(out);
            self.work.notify_one();
        }
        Ok(true)
    }

    /// Several senders are about to send. [`Outbox::gathered`] must follow soon.
    pub(super) fn gather(&self) {
        self.lock().gathering = true;
    }

    /// Those senders have been woken: what they send is written once they have run.
    pub(super) fn gathered(&self) {
        self.work.notify_one();
    }

    /// Everything is written: the pen is free.
    fn rest(&self, mut out: MutexGuard<'_, Out>, mut pen: WriterState) {
        pen.bytes.shrink_to(IDLE_BYTES);
        out.pending.shrink_to(IDLE_BYTES);
        out.idle = Some(pen).filter(|_| !out.gone);
        self.told(out);
    }

    /// Wakes senders that wait for room.
    fn told(&self, mut out: MutexGuard<'_, Out>) {
        let wanted = std::mem::take(&mut out.wanted);
        drop(out);
        if wanted {
            self.room.notify_waiters();
        }
    }

    fn broken(&self, mut out: MutexGuard<'_, Out>, why: &io::Error) {
        tracing::debug!(error = %why, "writing failed");
        out.end = out.end.or(Some(End::Broken));
        out.pending = Vec::new();
        drop(out);
        self.room.notify_waiters();
        self.work.notify_one();
    }

    /// Writes what senders could not write. Returns when writing has failed; to be run in a task of its own.
    pub(super) async fn write(&self) {
        loop {
            self.work.notified().await;
            if self.lock().gathering {
                // Comes back after everybody who is ready to run.
                tokio::task::yield_now().await;
            }
            let mut stalled = match self.stalled() {
                Ok(stalled) => stalled,
                Err(_) => return,
            };
            while let Some(mut pen) = stalled {
                let written = std::future::poll_fn(|cx| pen.poll(cx)).await;
                stalled = self.written(pen, written);
            }
        }
    }

    /// The pen, if something was left to the writing task.
    fn stalled(&self) -> Result<Option<WriterState>, End> {
        let mut out = self.lock();
        if out.end == Some(End::Broken) {
            return Err(End::Broken);
        }
        let gathered = std::mem::take(&mut out.gathering) && !out.pending.is_empty();
        let mut pen = out.stalled.take();
        if gathered && pen.is_none() {
            pen = out.idle.take();
            if let Some(pen) = &mut pen {
                pen.load(&mut out);
                self.told(out);
            }
        }
        Ok(pen)
    }

    /// Decides what follows a write of the writing task; the pen, if there is more.
    fn written(&self, mut pen: WriterState, written: io::Result<()>) -> Option<WriterState> {
        let mut out = self.lock();
        match written {
            Err(e) => self.broken(out, &e),
            Ok(()) if out.pending.is_empty() => self.rest(out, pen),
            Ok(()) => {
                pen.load(&mut out);
                self.told(out);
                return Some(pen);
            }
        }
        None
    }

    /// Takes nothing more, writes what is pending if that goes within `limit`, and closes the stream. When it does not,
    /// the stream is closed once the task that runs [`Outbox::write`] is aborted.
    pub(super) async fn finish(&self, limit: Duration) {
        let drained = async {
            loop {
                let room = self.room.notified();
                {
                    let mut out = self.lock();
                    out.end = out.end.or(Some(End::Finished));
                    if out.end == Some(End::Broken) || out.gone {
                        return None;
                    }
                    out.gathering = false;
                    match out.idle.take() {
                        Some(pen) if out.pending.is_empty() => {
                            out.gone = true;
                            return Some(pen);
                        }
                        // Senders have left it to the writing task.
                        Some(pen) => {
                            out.stalled = Some(pen);
                            self.work.notify_one();
                        }
                        None => {}
                    }
                    out.wanted = true;
                }
                room.await;
            }
        };
        let deadline = tokio::time::Instant::now() + limit;
        if let Ok(Some(mut pen)) = tokio::time::timeout_at(deadline, drained).await {
            let _ = tokio::time::timeout_at(deadline, pen.writer.shutdown()).await;
        }
    }

    /// Closes the outbox and discards pending messages.
    pub(super) fn end(&self, end: End) {
        let mut out = self.lock();
        out.end = out.end.or(Some(end));
        out.gone = true;
        out.pending = Vec::new();
        let pens = (out.idle.take(), out.stalled.take());
        drop(out);
        drop(pens);
        self.room.notify_waiters();
    }
}

impl WriterState {
    /// Takes the pending bytes.
    fn load(&mut self, out: &mut Out) {
        self.bytes.clear();
        self.written = 0;
        std::mem::swap(&mut self.bytes, &mut out.pending);
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.written < self.bytes.len() {
            match Pin::new(&mut self.writer).poll_write(cx, &self.bytes[self.written..]) {
                Poll::Ready(Ok(0)) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Poll::Ready(Ok(n)) => self.written += n,
                Poll::Ready(Err(e)) => return Poll::Ready(Err(e)),
                Poll::Pending => return Poll::Pending,
            }
        }
        Pin::new(&mut self.writer).poll_flush(cx)
    }
}

/// Appends a message as one line. Line breaks between JSON tokens become spaces; strings contain none.
fn append(out: &mut Vec<u8>, frame: &[u8]) {
    let start = out.len();
    out.reserve(frame.len() + 1);
    out.extend_from_slice(frame);
    if memchr::memchr2(b'\n', b'\r', frame).is_some() {
        out[start..].iter_mut().filter(|byte| matches!(byte, b'\n' | b'\r')).for_each(|byte| *byte = b' ');
    }
    out.push(b'\n');
}
