//! One message per line over any pair of byte streams: the loop behind stdio, unix sockets and memory.
//!
//! One task reads, starts calls and writes. A call that completes on its first poll needs no task; responses
//! are written when no more input is buffered, so a burst of requests costs one write. Other calls run in their own
//! tasks and send their messages through a bounded channel: a client that does not read slows only itself.

use crate::driver::{self, in_task};
use crate::lines::{Line, Lines};
use crate::partial_parse::{self, Head};
use crate::wake_flag::WakeFlag;
use bytes::Bytes;
use linchpin_core::message::Message;
use linchpin_core::service::{RequestContext, Service};
use linchpin_core::{CallEvent, Id, Principal, Reply, RunningCall, ServerChange, Session};
use linchpin_proto::Engine;
use linchpin_proto::driver::{Out, Received, Started, receive};
use linchpin_proto::frame::{self, Frame, Unreadable};
use std::future::poll_fn;
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::timeout;

/// Bytes of responses collected before a write, although more input is buffered.
const OUT_BYTES: usize = 128 << 10;
/// Largest capacity that the empty write buffer keeps. A list of a thousand tools is 282 KiB: releasing that memory
/// after each response would fault its pages in again for the next.
const OUT_KEPT_BYTES: usize = 1 << 20;
/// Least free space before a read.
const READ_BYTES: usize = 16 << 10;
/// Messages of running calls queued for the writer.
const WAITING: usize = 256;

/// Serves one peer until its input ends, it stops reading, or `stop` completes; then running calls are drained.
///
/// Each line is one message. A line longer than `messages.frame_bytes_max` is skipped, and the response is an error,
/// with the request's id if that is near the beginning or at the very end of the line. Blank lines are ignored; a last
/// line without a line break is read. The service is not closed, and its other peers are not affected. Errors are those
/// of reading or writing. Dropping the future cancels running calls. `principal` is who the peer is, if that is known.
pub(crate) async fn serve<R, W>(
    service: Arc<dyn Service>,
    principal: Option<Principal>,
    input: R,
    output: W,
    stop: impl Future<Output = ()> + Send,
) -> io::Result<()>
where
    R: AsyncRead + Unpin + Send,
    W: AsyncWrite + Unpin + Send,
{
    let (sender, mut waiting) = mpsc::channel(WAITING);
    let engine = driver::engine(&*service);
    let limit = service.limits().messages.frame_bytes_max;
    let context = Arc::new(RequestContext::default().with(|context| {
        context.principal = principal;
        context.connection = Some(Arc::default());
    }));
    let mut peer =
        Peer { service, engine, sender, out: Vec::with_capacity(8 << 10), withdrawn: Vec::new(), long: None, context };
    let mut lines = Lines::new(input, limit, READ_BYTES);
    let mut output = output;
    let mut stop = std::pin::pin!(stop);
    let mut side = SideEvents { flag: WakeFlag::new(), has_session: false, is_stopped: false };
    let ended = loop {
        let idle = peer.engine.running() == 0 && waiting.is_empty();
        let session = peer.engine.session();
        match next(&mut lines, (!idle).then_some(&mut waiting), session, stop.as_mut(), &mut side).await {
            Input::Line(Ok(Line::Frame(frame) | Line::Last(frame))) => in_task(|cx| peer.receive(frame, cx)).await,
            Input::Line(Ok(Line::TooLong(head))) => in_task(|cx| peer.too_long(&head, cx)).await,
            Input::Line(Ok(Line::LongEnd(tail))) => in_task(|cx| peer.long_end(&tail, cx)).await,
            Input::Line(Ok(Line::End)) | Input::Stop => {
                in_task(|cx| peer.long_end(&[], cx)).await;
                break Ok(());
            }
            Input::Line(Err(e)) => break Err(e),
            Input::Waiting(waiting) => peer.waited(waiting),
            Input::ServerChange(change) => peer.line(&change.frame(None)),
        }
        let more = lines.has_line() || !waiting.is_empty();
        if !peer.out.is_empty() && (!more || peer.out.len() >= OUT_BYTES) {
            match write(&mut peer.out, &mut output, stop.as_mut(), &mut side).await {
                Ok(true) if peer.out.capacity() > OUT_KEPT_BYTES => peer.out.shrink_to(OUT_BYTES),
                Ok(true) => {}
                Ok(false) => break Ok(()),
                // The peer has stopped reading, which is how it disconnects: no call has a recipient any more.
                Err(e) if e.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
                Err(e) => return Err(e),
            }
        }
    };
    peer.drain(&mut waiting, &mut output).await?;
    ended
}

/// Writes and removes collected output. Returns `false` if `stop` completes while the peer does not read.
async fn write<W: AsyncWrite + Unpin>(
    out: &mut Vec<u8>,
    output: &mut W,
    mut stop: std::pin::Pin<&mut (impl Future<Output = ()> + Send)>,
    side: &mut SideEvents,
) -> io::Result<bool> {
    let mut written = 0;
    let done = poll_fn(|cx| {
        while written < out.len() {
            match std::pin::Pin::new(&mut *output).poll_write(cx, &out[written..]) {
                Poll::Ready(Ok(0)) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Poll::Ready(Ok(n)) => written += n,
                Poll::Ready(Err(e)) => return Poll::Ready(Err(e)),
                Poll::Pending => return side.stopped(stop.as_mut(), cx).map(|()| Ok(false)),
            }
        }
        match std::pin::Pin::new(&mut *output).poll_flush(cx) {
            Poll::Ready(flushed) => Poll::Ready(flushed.map(|()| true)),
            Poll::Pending => side.stopped(stop.as_mut(), cx).map(|()| Ok(false)),
        }
    })
    .await;
    if written == out.len() {
        out.clear();
    } else {
        out.drain(..written);
    }
    done
}

/// The next event.
enum Input {
    Line(io::Result<Line>),
    Waiting(Waiting),
    ServerChange(ServerChange),
    Stop,
}

/// What a task of running calls sends.
enum Waiting {
    /// An event of this call.
    Call(Id, CallEvent),
    /// All calls of a batch have ended, by a response or cancelled; `said` holds the responses that were ready at once.
    Batch { said: Vec<u8>, ended: Vec<(Id, CallEvent)> },
}

/// When to poll what is seldom ready: the session's changes, and the signal to stop.
struct SideEvents {
    flag: WakeFlag,
    /// Whether there was a session when they were polled.
    has_session: bool,
    /// The signal has come.
    is_stopped: bool,
}

impl SideEvents {
    /// Polls the signal alone; the changes are polled the next time.
    fn stopped(&mut self, stop: std::pin::Pin<&mut impl Future<Output = ()>>, cx: &Context<'_>) -> Poll<()> {
        self.is_stopped = self.is_stopped || stop.poll(&mut self.flag.context(cx)).is_ready();
        self.flag.set();
        if self.is_stopped { Poll::Ready(()) } else { Poll::Pending }
    }
}

/// The next event; of `waiting`, if calls run.
async fn next<R: AsyncRead + Unpin>(
    lines: &mut Lines<R>,
    mut waiting: Option<&mut mpsc::Receiver<Waiting>>,
    session: Option<&Arc<Session>>,
    mut stop: std::pin::Pin<&mut (impl Future<Output = ()> + Send)>,
    side: &mut SideEvents,
) -> Input {
    if let Some(line) = lines.buffered() {
        return Input::Line(Ok(line));
    }
    if session.is_some() && !std::mem::replace(&mut side.has_session, session.is_some()) {
        side.flag.set();
    }
    let mut line = std::pin::pin!(lines.next());
    let mut is_woken = false;
    poll_fn(|cx| {
        // Most often it is a line that wakes. The first poll lets the others go first, so that a flood of lines holds up nothing.
        if std::mem::replace(&mut is_woken, true)
            && let Poll::Ready(line) = line.as_mut().poll(cx)
        {
            return Poll::Ready(Input::Line(line));
        }
        if let Some(waiting) = &mut waiting
            && let Poll::Ready(Some(out)) = waiting.poll_recv(cx)
        {
            return Poll::Ready(Input::Waiting(out));
        }
        if let Some(mut cx) = side.flag.take(cx) {
            let feed = session.and_then(|session| session.feed());
            let change = feed.map_or(Poll::Pending, |feed| feed.feed().poll_next(&mut cx));
            side.is_stopped = side.is_stopped || stop.as_mut().poll(&mut cx).is_ready();
            if let Poll::Ready(change) = change {
                // There may be more; and one that is closed wakes nobody for what is added to it all the same.
                side.flag.set();
                if let Some(change) = change {
                    return Poll::Ready(Input::ServerChange(change));
                }
            }
        }
        if let Poll::Ready(line) = line.as_mut().poll(cx) {
            return Poll::Ready(Input::Line(line));
        }
        if side.is_stopped { Poll::Ready(Input::Stop) } else { Poll::Pending }
    })
    .await
}

struct Peer {
    service: Arc<dyn Service>,
    engine: Engine,
    sender: mpsc::Sender<Waiting>,
    out: Vec<u8>,
    /// Withdrawals of questions, which are not part of the answer to a batch.
    withdrawn: Vec<u8>,
    /// The beginning of an oversized line that still needs a response: its id may be at its end.
    long: Option<Head>,
    /// That of every request: the service's state of this connection.
    context: Arc<RequestContext>,
}

impl Peer {
    fn line(&mut self, frame: &[u8]) {
        line(&mut self.out, frame);
    }

    fn reply(&mut self, reply: &Reply) {
        reply_line(&mut self.out, reply);
    }

    /// Responds to an oversized line, immediately if its id is near the beginning.
    fn too_long(&mut self, head: &[u8], cx: &mut Context<'_>) {
        let mut head = partial_parse::by_head(head);
        match head.id.take() {
            Some(id) => self.refuse_long(&head, Some(id), cx),
            None => self.long = Some(head),
        }
    }

    /// Responds at the end of an oversized line, which may contain its id.
    fn long_end(&mut self, tail: &[u8], cx: &mut Context<'_>) {
        if let Some(head) = self.long.take() {
            self.refuse_long(&head, partial_parse::by_tail(tail), cx);
        }
    }

    fn refuse_long(&mut self, head: &Head, id: Option<Id>, cx: &mut Context<'_>) {
        let limit = self.service.limits().messages.frame_bytes_max;
        // A response to a server request: the waiting handler gets the error; the advice to send less is not for it.
        let ours = id.is_some() && head.result && !head.request;
        let advice = if ours { "" } else { "; send less at once, in several messages" };
        let why = format!("the message is longer than the limit of {limit} bytes{advice}");
        let reply = Reply::error(id.as_ref(), linchpin_types::error::code::INVALID_REQUEST, &why, None);
        if !ours {
            return self.reply(&reply);
        }
        let mut frame = Vec::new();
        reply.write_to(&mut frame);
        self.receive(frame.into(), cx);
    }

    fn receive(&mut self, frame: Bytes, cx: &mut Context<'_>) {
        // A message is large, and therefore not moved.
        let read = frame::read(frame, self.service.limits());
        if let Ok(Frame::One(message)) = &read {
            let call = self.one(message, cx);
            self.out.append(&mut self.withdrawn);
            if let Some((id, call)) = call {
                let sender = self.sender.clone();
                tokio::spawn(async move {
                    let end = run(&id, call, &sender).await;
                    let _ = sender.send(Waiting::Call(id, end)).await;
                });
            }
            return;
        }
        match read {
            Ok(Frame::One(_)) | Err(Unreadable { is_response: true, .. }) => {}
            Err(Unreadable { reply, .. }) => self.reply(&reply),
            Ok(Frame::Batch(_)) if !self.engine.batches() => {
                let why = "batches are not part of this protocol revision; send each message on its own line";
                let reply = Reply::error(None, linchpin_types::error::code::INVALID_REQUEST, why, None);
                self.reply(&reply);
            }
            Ok(Frame::Batch(parts)) => self.batch(parts, cx),
        }
    }

    /// Handles one message. Returns a call that did not complete on its first poll.
    fn one(&mut self, message: &Message, cx: &mut Context<'_>) -> Option<(Id, Box<dyn RunningCall>)> {
        let event = receive(&mut self.engine, &*self.service, &self.context, message);
        let withdrawn = &mut self.withdrawn;
        let started = match event.deliver(&*self.service, &self.context, |_, frame| line(withdrawn, frame)) {
            Received::Call(request) => {
                let id = request.id.clone();
                self.engine.started(id, driver::start(&*self.service, request, self.context.clone(), cx))
            }
            Received::Reply(reply) => Started::Ended(Some(reply)),
            Received::Nothing => return None,
        };
        match started {
            Started::Ended(reply) => {
                reply.into_iter().for_each(|reply| self.reply(&reply));
                None
            }
            Started::Running(id, call, _) => Some((id, call)),
        }
    }

    fn waited(&mut self, waiting: Waiting) {
        match waiting {
            Waiting::Call(id, event) => self.pass(&id, event),
            Waiting::Batch { said, ended } => self.batch_done(said, ended),
        }
    }

    /// Writes what an event of a call has for the peer. Whether it may still be sent is decided here, where it is written.
    fn pass(&mut self, id: &Id, event: CallEvent) {
        let out = &mut self.out;
        self.engine.send(id, event, |message| match message {
            Out::Notice(frame) | Out::Request(frame) => line(out, &frame),
            Out::Reply(reply) => reply_line(out, &reply),
            // A pipe has no stream to close.
            Out::Pause(_) => {}
        });
    }

    /// Sends all responses of a batch as one array when the last is ready; notifications are sent immediately.
    fn batch(&mut self, parts: Vec<Bytes>, cx: &mut Context<'_>) {
        let mut answers = Vec::new();
        let mut running = Vec::new();
        for part in parts {
            let message = match frame::message(part, self.service.limits()) {
                Ok(message) => message,
                Err(Unreadable { is_response: true, .. }) => continue,
                Err(Unreadable { reply, .. }) => {
                    append(&mut answers, &reply.frame());
                    continue;
                }
            };
            let keep = std::mem::take(&mut self.out);
            let call = self.one(&message, cx);
            let said = std::mem::replace(&mut self.out, keep);
            self.out.append(&mut self.withdrawn);
            for frame in said.split(|b| *b == b'\n').filter(|f| !f.is_empty()) {
                append(&mut answers, frame);
            }
            running.extend(call);
        }
        if running.is_empty() {
            if !answers.is_empty() {
                answers.push(b']');
                self.line(&answers);
            }
            return;
        }
        let sender = self.sender.clone();
        tokio::spawn(async move {
            let mut calls = JoinSet::new();
            for (id, call) in running {
                let sender = sender.clone();
                calls.spawn(async move {
                    let end = run(&id, call, &sender).await;
                    (id, end)
                });
            }
            let mut ended = Vec::new();
            while let Some(call) = calls.join_next().await {
                ended.extend(call.ok());
            }
            let _ = sender.send(Waiting::Batch { said: answers, ended }).await;
        });
    }

    /// Ends the calls of a batch only now, so that a drain waits until their responses are written.
    fn batch_done(&mut self, mut answers: Vec<u8>, ended: Vec<(Id, CallEvent)>) {
        let out = &mut self.out;
        for (id, end) in ended {
            self.engine.send(&id, end, |message| match message {
                Out::Notice(frame) | Out::Request(frame) => line(out, &frame),
                Out::Reply(reply) => append(&mut answers, &reply.frame()),
                Out::Pause(_) => {}
            });
        }
        if !answers.is_empty() {
            answers.push(b']');
            self.line(&answers);
        }
    }

    /// Cancels running calls: the peer has disconnected.
    fn end(&mut self) {
        let cancellers = self.engine.close();
        cancellers.iter().for_each(|cancel| cancel.cancel());
    }

    /// At the end of input: running calls may finish within the limit, then they are dropped.
    async fn drain<W: AsyncWrite + Unpin>(
        mut self,
        waiting: &mut mpsc::Receiver<Waiting>,
        output: &mut W,
    ) -> io::Result<()> {
        let limit = Duration::from_millis(self.service.limits().calls.drain_ms_max);
        let deadline = tokio::time::Instant::now() + limit;
        let listeners = self.engine.listeners();
        listeners.iter().for_each(|listener| listener.finish());
        while self.engine.running() > 0 {
            match tokio::time::timeout_at(deadline, waiting.recv()).await {
                Ok(Some(waiting)) => self.waited(waiting),
                _ => break,
            }
        }
        self.end();
        if self.out.is_empty() {
            return Ok(());
        }
        // Writing to a disconnected peer fails, which is not an error at this point.
        match timeout(limit, async { output.write_all(&self.out).await.and(output.flush().await) }).await {
            Ok(Err(e)) if e.kind() != io::ErrorKind::BrokenPipe => Err(e),
            _ => Ok(()),
        }
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.end();
    }
}

fn append(answers: &mut Vec<u8>, frame: &[u8]) {
    answers.push(if answers.is_empty() { b'[' } else { b',' });
    answers.extend_from_slice(frame);
}

fn line(out: &mut Vec<u8>, frame: &[u8]) {
    let start = out.len();
    out.extend_from_slice(frame);
    end_line(out, start);
}

fn reply_line(out: &mut Vec<u8>, reply: &Reply) {
    let start = out.len();
    reply.write_to(out);
    end_line(out, start);
}

/// Ends the line that begins at `start`. JSON that a handler passes on may have line breaks between its tokens; they would
/// begin another message.
fn end_line(out: &mut Vec<u8>, start: usize) {
    let mut at = start;
    while let Some(found) = memchr::memchr2(b'\n', b'\r', &out[at..]) {
        at += found;
        out[at] = b' ';
    }
    out.push(b'\n');
}

/// Forwards the events of a call that did not complete on its first poll, but the last, which is returned.
async fn run(id: &Id, mut call: Box<dyn RunningCall>, sender: &mpsc::Sender<Waiting>) -> CallEvent {
    loop {
        let event = poll_fn(|cx| call.poll_event(cx)).await;
        if matches!(event, CallEvent::Done(_) | CallEvent::Cancelled) {
            return event;
        }
        if sender.send(Waiting::Call(id.clone(), event)).await.is_err() {
            return CallEvent::Cancelled;
        }
    }
}
