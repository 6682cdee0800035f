//! The client's side of one message per line: the link behind child processes, pipes, unix sockets and memory.
//!
//! A request is written by the task that makes it ([`outbox`]); one task reads, and passes responses to the tasks that
//! wait for them ([`in_flight`]) and everything else to the inbox, in the order received. Lines that are not messages
//! are skipped, counted and mentioned in errors; if one is recognizably a broken response, its request fails at once
//! ([`partial_parse`]).

mod in_flight;
mod outbox;

use crate::lines::{BOM, Line, Lines};
use crate::partial_parse;
use bytes::Bytes;
use in_flight::InFlight;
use linchpin_core::Features;
use linchpin_core::message::{Kind, Message};
use linchpin_core::service::{BoxFuture, boxed};
use linchpin_core::{Answer, ClientTransport, ConnectOptions, Outgoing, Traffic, TransportError};
use linchpin_proto::frame;
use outbox::{End, Outbox};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::AbortHandle;

/// The process behind a pair of streams, which knows why they ended.
pub(crate) trait Peer: Send + Sync + 'static {
    /// Why the stream ended, as a sentence. `error` is the read or write error, if any; `asked` says whether a request
    /// is pending.
    fn ended(&self, error: Option<io::Error>, asked: bool) -> BoxFuture<'_, String>;

    /// Shuts it down gracefully. The stream to it has been closed.
    fn close(&self) -> BoxFuture<'_, ()>;

    /// Kills it without waiting.
    fn abandon(&self);

    /// Its resident memory in bytes, where that can be known.
    fn memory(&self) -> Option<u64> {
        None
    }

    /// Bytes that it has written to standard error so far.
    fn stderr_bytes(&self) -> u64 {
        0
    }

    /// Masks secrets in its output.
    fn hide(&self, text: String) -> String {
        text
    }
}

/// A link over a pair of streams. Dropping it closes them.
pub(crate) struct PipeTransport {
    shared: Arc<Shared>,
    reader: AbortHandle,
    writer: AbortHandle,
}

struct Shared {
    options: ConnectOptions,
    in_flight: InFlight,
    outbox: Outbox,
    peer: Arc<dyn Peer>,
    noise: Mutex<UnparsedLines>,
    /// The end is being dealt with: [`ClientTransport::close`] was called, or a stream has ended.
    ending: AtomicBool,
}

/// Lines that are not messages.
#[derive(Default)]
struct UnparsedLines {
    lines: u64,
    /// The start of the last one.
    last: String,
}

impl PipeTransport {
    /// A link over these streams. Must be called within a tokio runtime.
    pub(crate) fn open(
        options: ConnectOptions,
        input: impl AsyncRead + Send + Unpin + 'static,
        output: impl AsyncWrite + Send + Unpin + 'static,
        peer: Arc<dyn Peer>,
    ) -> PipeTransport {
        let lines = Lines::new(input, options.limits.messages.frame_bytes_max, ROOM_BYTES);
        let shared = Arc::new(Shared {
            options,
            in_flight: InFlight::default(),
            outbox: Outbox::new(Box::new(output)),
            peer,
            noise: Mutex::default(),
            ending: AtomicBool::new(false),
        });
        let reader = tokio::spawn(boxed(read(shared.clone(), lines))).abort_handle();
        let writer = tokio::spawn(boxed(write(shared.clone()))).abort_handle();
        PipeTransport { shared, reader, writer }
    }
}

impl ClientTransport for PipeTransport {
    fn exchange(&self, out: Outgoing) -> BoxFuture<'_, Result<Answer, TransportError>> {
        Box::pin(async move {
            let Some(id) = out.id else {
                return Err(TransportError::CutOff("a message without an id has no response".into()));
            };
            // Before the message is sent, so that the response cannot come too early.
            let answer = self.shared.in_flight.open(id)?;
            match self.shared.send(&out.frame).await {
                // After a write error the reason is better known once the other stream has ended, too.
                Ok(()) | Err(End::Broken) => Ok(Answer::new(answer.await?, None)),
                Err(End::Finished) => Err(self.shared.gone()),
            }
        })
    }

    fn notify(&self, out: Outgoing) -> BoxFuture<'_, Result<(), TransportError>> {
        Box::pin(async move { self.shared.send(&out.frame).await.map_err(|_| self.shared.gone()) })
    }

    fn notify_detached(&self, out: Outgoing) {
        self.shared.outbox.send_now(&out.frame, &|| self.shared.sent(&out.frame));
    }

    fn cancels_by_dropping(&self) -> bool {
        false
    }

    fn negotiated(&self, _: &'static Features) {}

    fn memory(&self) -> Option<u64> {
        self.shared.peer.memory()
    }

    fn stderr_bytes(&self) -> u64 {
        self.shared.peer.stderr_bytes()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            self.shared.ending.store(true, Ordering::SeqCst);
            self.shared.in_flight.end("the connection was closed by this client".into());
            self.shared.outbox.finish(Duration::from_millis(self.shared.options.limits.connections.close_ms_max)).await;
            self.writer.abort();
            self.shared.outbox.end(End::Finished);
            // Continue reading: a program whose output is not read might never exit.
            self.shared.peer.close().await;
            self.reader.abort();
        })
    }
}

impl Drop for PipeTransport {
    fn drop(&mut self) {
        self.reader.abort();
        self.writer.abort();
        self.shared.outbox.end(End::Finished);
        self.shared.peer.abandon();
    }
}

impl Shared {
    async fn send(&self, frame: &Bytes) -> Result<(), End> {
        self.outbox.send(frame, &|| self.sent(frame)).await
    }

    fn sent(&self, frame: &Bytes) {
        self.options.show(|| Traffic::Sent(std::str::from_utf8(frame).unwrap_or_default()));
    }

    /// Why the link is closed.
    fn gone(&self) -> TransportError {
        let why = self.in_flight.over();
        TransportError::Closed(why.unwrap_or_else(|| "the server no longer accepts messages".into()))
    }

    /// Takes a line; when it is not `whole`, the stream has ended within it. Returns how many requests it has answered.
    fn take(&self, line: Bytes, whole: bool, messages: &mut Vec<Message>) -> usize {
        if self.ending.load(Ordering::Relaxed) {
            return 0;
        }
        let text = line.slice(if line.starts_with(BOM) { BOM.len() } else { 0 }..);
        let heard = frame::hear(text, &self.options.limits, &mut |message| messages.push(message));
        match heard {
            Ok(()) => self.options.show(|| Traffic::Heard(std::str::from_utf8(&line).unwrap_or_default())),
            Err(why) => {
                self.garbage(&line);
                if whole {
                    self.fail_broken(&line, &why);
                }
            }
        }
        let mut answered = 0;
        for message in messages.drain(..) {
            let Kind::Response { id, outcome } = &message.kind else {
                self.options.inbox.received(message, None);
                continue;
            };
            let id = match outcome {
                // An error without an id can only be for the one pending request.
                Err(_) if id.as_json() == "null" => self.in_flight.only(),
                _ => id.as_number(),
            };
            match id.is_some_and(|id| self.in_flight.settle(id, Ok(message))) {
                true => answered += 1,
                false => tracing::debug!("a response to an unknown request was ignored"),
            }
        }
        answered
    }

    /// Handles a line that is not a message.
    fn garbage(&self, line: &[u8]) {
        if self.options.tap.is_some() {
            let text = self.peer.hide(String::from_utf8_lossy(line).into_owned());
            self.options.show(|| Traffic::Garbage(&text));
        }
        let lines = self.noise(line);
        if lines.is_power_of_two() {
            tracing::warn!(lines, bytes = line.len(), "the server wrote something that is not a message");
        }
    }

    /// Fails the request of a broken response, if it can be identified.
    fn fail_broken(&self, line: &[u8], why: &str) {
        let head = partial_parse::by_head(line);
        if head.request || !(head.result || head.message) {
            return;
        }
        if let Some(id) = head.id.or_else(|| partial_parse::by_tail(line)).and_then(|id| id.as_number()) {
            let what = format!("invalid response: {why}");
            self.in_flight.settle(id, Err(TransportError::Unreadable(what.into())));
        }
    }

    /// Records a line that is not a message; returns their number.
    fn noise(&self, line: &[u8]) -> u64 {
        let mut noise = self.noise.lock().unwrap_or_else(PoisonError::into_inner);
        noise.lines += 1;
        let begin = String::from_utf8_lossy(&line[..line.len().min(NOISE_BYTES)]);
        let begin = self.peer.hide(begin.into_owned());
        noise.last = begin.chars().take(NOISE_CHARS).map(|c| if c.is_control() { ' ' } else { c }).collect();
        noise.lines
    }

    /// Handles a line that is too long; returns whether its request was found.
    fn too_long(&self, head: &Bytes) -> bool {
        let limit = self.options.limits.messages.frame_bytes_max;
        let note = format!("a message longer than {limit} bytes is skipped");
        self.options.show(|| Traffic::Note(&note));
        tracing::warn!(limit, "skipped a message of the server that is longer than the limit");
        let head = partial_parse::by_head(head);
        if head.request {
            return true;
        }
        let id = head.id.filter(|_| head.result || head.message).and_then(|id| id.as_number());
        id.or_else(|| self.in_flight.only()).is_some_and(|id| self.fail_too_long(id))
    }

    fn fail_too_long(&self, id: u64) -> bool {
        let limit = self.options.limits.messages.frame_bytes_max;
        let why = format!("the response exceeds the limit of {limit} bytes (messages.frame_bytes_max)");
        self.in_flight.settle(id, Err(TransportError::Unreadable(why.into())))
    }

    /// A stream has ended by itself.
    async fn end(&self, error: Option<io::Error>) {
        if self.ending.swap(true, Ordering::SeqCst) {
            return;
        }
        let mut why = self.peer.ended(error, self.in_flight.any()).await;
        let noise = std::mem::take(&mut *self.noise.lock().unwrap_or_else(PoisonError::into_inner));
        if noise.lines > 0 {
            let (are, last) = if noise.lines == 1 {
                ("line that is not a message", "it")
            } else {
                ("lines that are not messages", "the last")
            };
            why.push_str(&format!("\nthe server also wrote {} {are}; {last} begins: {}", noise.lines, noise.last));
        }
        let why: Arc<str> = why.into();
        self.options.show(|| Traffic::Note(&why));
        if self.in_flight.end(why.clone()) {
            self.options.inbox.closed(TransportError::Closed(why));
        }
        self.outbox.end(End::Finished);
        let peer = self.peer.clone();
        peer.close().await;
    }
}

async fn read(shared: Arc<Shared>, mut lines: Lines<impl AsyncRead + Unpin>) {
    let mut messages = Vec::new();
    let mut named = true;
    // Answers since the last time there was nothing to read.
    let mut answers = 0;
    let error = loop {
        let line = match lines.buffered() {
            Some(line) => Ok(line),
            None => {
                if answers >= GATHER {
                    shared.outbox.gathered();
                }
                answers = 0;
                lines.next().await
            }
        };
        match line {
            Ok(Line::Frame(line)) => {
                let before = answers;
                answers += shared.take(line, true, &mut messages);
                if before < GATHER && answers >= GATHER {
                    shared.outbox.gather();
                }
            }
            Ok(Line::Last(line)) => answers += shared.take(line, false, &mut messages),
            Ok(Line::TooLong(head)) => named = shared.too_long(&head),
            Ok(Line::LongEnd(tail)) => {
                if let Some(id) = partial_parse::by_tail(&tail).and_then(|id| id.as_number()).filter(|_| !named) {
                    shared.fail_too_long(id);
                }
            }
            Ok(Line::End) => break None,
            Err(e) => break Some(e),
        }
    };
    shared.end(error).await;
}

async fn write(shared: Arc<Shared>) {
    shared.outbox.write().await;
    // The other stream usually ends as well, and then more is known.
    tokio::time::sleep(BROKEN_WAIT).await;
    shared.end(Some(io::ErrorKind::BrokenPipe.into())).await;
}

/// Streams without a process.
pub(crate) struct Stream;

impl Peer for Stream {
    fn ended(&self, error: Option<io::Error>, asked: bool) -> BoxFuture<'_, String> {
        let when = if asked { " before answering" } else { "" };
        let why = match error {
            None => format!("the server closed the connection{when}"),
            Some(e) => format!("the connection broke{when}: {e}"),
        };
        Box::pin(async move { why })
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }

    fn abandon(&self) {}
}

/// Least free space before a read. Small, so that the messages of one buffer cost one allocation.
const ROOM_BYTES: usize = 4 << 10;
/// Answers that come at once before what their receivers send is gathered: with fewer, a task more costs more than a
/// write.
const GATHER: usize = 3;
/// Maximum bytes of a non-message line that are searched for secrets before its start is shown.
const NOISE_BYTES: usize = 4 << 10;
/// Characters shown of it.
const NOISE_CHARS: usize = 200;
/// How long after a failed write the end of the other stream is waited for.
const BROKEN_WAIT: Duration = Duration::from_secs(2);
