//! One SSE stream of a session: its events, stored as long as they can be replayed, and the calls that feed it.
//!
//! A stream has at most one reader. The reader also polls the calls, in place: there is no task and no channel while a
//! client is connected. When the reader disconnects, a task takes over and keeps the events; a client that reconnects
//! with `Last-Event-ID` takes over from the task. A slow reader delays only its own stream.
//!
//! ```text
//!   POST's body ──drop──▶ task ──GET with Last-Event-ID──▶ GET's body ──drop──▶ task …
//! ```

use super::body::Source;
use super::session::{HttpSession, is_standalone};
use super::work::Work;
use bytes::Bytes;
use linchpin_core::budget::EXHAUSTED;
use linchpin_core::{Cancel, ServerChange, StoredEvent, Subscription};
use linchpin_proto::driver::Out;
use linchpin_proto::http::sse;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// See the module's documentation.
pub(crate) struct EventStream {
    /// The stream's number in its session.
    number: u64,
    /// Cancels the calls that feed it.
    cancellers: Box<[Arc<dyn Cancel>]>,
    inner: Mutex<Inner>,
}

/// How many events are forgotten before the store is told.
const TRIM_EVERY: u32 = 64;

#[derive(Default)]
struct Inner {
    /// Events in order; their numbers are not contiguous once some were dropped.
    events: VecDeque<Event>,
    last: u32,
    /// The newest dropped event that may still be requested.
    lost: u32,
    /// The last event that may be sent: all are, unless they must be stored first.
    stored: u32,
    /// The last event that could not be stored, until the store was told to forget those up to it; 0 for none.
    unstored: u32,
    /// The last event that the store was told to forget.
    trimmed: u32,
    /// Whether a task stores events.
    storing: bool,
    /// The last event the current reader took.
    sent: u32,
    /// Grows with every takeover; a holder of an older number has lost the stream.
    holder: u32,
    attached: bool,
    /// The reader must end after the events that wait, and come back later.
    close_after_flush: bool,
    waker: Option<Waker>,
    /// Absent while it is polled, and after its end.
    work: Option<Work>,
    /// When the stream ended, on the session's clock.
    ended: Option<u64>,
}

struct Event {
    seq: u32,
    /// Whether it may be dropped before it was sent.
    notice: bool,
    bytes: Bytes,
}

impl EventStream {
    pub(crate) fn new(number: u64, cancellers: Box<[Arc<dyn Cancel>]>) -> EventStream {
        EventStream { number, cancellers, inner: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Whether a plain GET opened it.
    pub(crate) fn is_standalone(&self) -> bool {
        is_standalone(self.number)
    }

    /// The number of the newest event; 0 before the first.
    pub(crate) fn last(&self) -> u32 {
        self.lock().last
    }

    /// Whether it has a reader.
    pub(crate) fn is_attached(&self) -> bool {
        self.lock().attached
    }

    /// Whether the stream ended and has no reader.
    pub(crate) fn is_over(&self) -> bool {
        let inner = self.lock();
        inner.ended.is_some() && !inner.attached
    }

    /// Whether the stream ended before `then` on the session's clock and has no reader.
    pub(crate) fn over_since(&self, then: u64) -> bool {
        let inner = self.lock();
        !inner.attached && inner.ended.is_some_and(|at| at <= then)
    }

    /// Whether `cancel` ends a call of this stream.
    pub(crate) fn is_fed_by(&self, cancel: &Arc<dyn Cancel>) -> bool {
        self.cancellers.iter().any(|c| std::ptr::addr_eq(Arc::as_ptr(c), Arc::as_ptr(cancel)))
    }

    /// Gives the stream the calls that feed it.
    pub(crate) fn feed_from(&self, work: Work) {
        self.lock().work = Some(work);
    }

    /// Adds the event that lets a client come back, and how long to wait before it does.
    pub(crate) fn prime(self: &Arc<Self>, session: &HttpSession, retry_ms: u64) {
        // The stream of a plain GET lives as long as its session, so it does without where there is no room.
        let notice = self.is_standalone();
        self.append(session, notice, |out, id| sse::priming(out, id, Some(retry_ms)));
    }

    /// Adds a message. A notice may be dropped when too many wait.
    pub(crate) fn push(self: &Arc<Self>, session: &HttpSession, frame: &[u8], notice: bool) {
        self.append(session, notice, |out, id| {
            out.reserve(frame.len() + 32);
            sse::event(out, Some(id), frame);
        });
    }

    fn append(self: &Arc<Self>, session: &HttpSession, notice: bool, write: impl FnOnce(&mut Vec<u8>, &str)) {
        let mut inner = self.lock();
        inner.last += 1;
        let seq = inner.last;
        let mut bytes = Vec::new();
        write(&mut bytes, &[self.number.to_string(), seq.to_string()].join("-"));
        let Some(bytes) = session.budget().own(bytes) else {
            drop(inner);
            if !notice {
                return self.lose(session, seq);
            }
            tracing::debug!(EXHAUSTED);
            return session.dropped();
        };
        let mut change = bytes.len() as isize;
        inner.events.push_back(Event { seq, notice, bytes });
        let (freed, dropped) = inner.trim(session.limits().messages.queued_max);
        change -= freed as isize;
        if session.event_store().is_some() {
            // Its reader is woken once it is stored.
            let storing = std::mem::replace(&mut inner.storing, true);
            drop(inner);
            if !storing {
                self.store(session);
            }
        } else {
            inner.stored = seq;
            let waker = inner.waker.take();
            drop(inner);
            if let Some(waker) = waker {
                waker.wake();
            }
        }
        session.account(change, self);
        if dropped {
            session.dropped();
        }
    }

    /// Stores the events that are not stored yet, in the background. Those that cannot be stored are sent all the same.
    fn store(self: &Arc<Self>, session: &HttpSession) {
        let (stream, id, ttl) =
            (self.clone(), session.id(), Duration::from_millis(session.limits().sessions.replay_ms_max));
        let store = session.event_store().cloned();
        let (Some(store), Ok(runtime)) = (store, tokio::runtime::Handle::try_current()) else {
            return self.stored();
        };
        runtime.spawn(async move {
            loop {
                let events: Vec<StoredEvent> = {
                    let mut inner = stream.lock();
                    let stored = inner.stored;
                    let new = inner.events.iter().filter(|event| event.seq > stored);
                    let events: Vec<_> = new.map(|event| StoredEvent::new(event.seq, event.bytes.clone())).collect();
                    inner.storing = !events.is_empty();
                    events
                };
                let Some(last) = events.last().map(|event| event.number) else { return };
                let appended = store.append(&id, stream.number, events, ttl).await;
                if let Err(error) = &appended {
                    tracing::warn!(%error, "events cannot be stored; they cannot be resumed elsewhere");
                }
                let (waker, old) = {
                    let mut inner = stream.lock();
                    inner.stored = last;
                    if appended.is_err() {
                        inner.unstored = last;
                    }
                    // What is not kept here cannot be resumed elsewhere either, and neither can what precedes an event that
                    // was not stored.
                    (inner.waker.take(), inner.old().max(Some(inner.unstored).filter(|lost| *lost > 0)))
                };
                waker.into_iter().for_each(Waker::wake);
                if let Some(old) = old {
                    match store.trim(&id, stream.number, old).await {
                        Ok(()) if appended.is_ok() => {
                            let mut inner = stream.lock();
                            inner.unstored = if inner.unstored <= old { 0 } else { inner.unstored };
                        }
                        Ok(()) => {}
                        Err(error) => {
                            tracing::debug!(%error, "events that are not kept stay in the store until they expire");
                        }
                    }
                }
            }
        });
    }

    /// Lets all events be sent although they are not stored.
    fn stored(&self) {
        let waker = {
            let mut inner = self.lock();
            (inner.stored, inner.storing) = (inner.last, false);
            inner.waker.take()
        };
        waker.into_iter().for_each(Waker::wake);
    }

    /// Ends the stream without its newest message, which exceeds the limit: the waiting client sees the end.
    fn lose(&self, session: &HttpSession, seq: u32) {
        tracing::debug!(EXHAUSTED);
        self.lock().lost = seq;
        self.end(session.now());
    }

    /// Drops the oldest event that may go; the bytes that were freed. The newest stays when `keep_newest`.
    pub(crate) fn evict_one(&self, keep_newest: bool) -> Option<usize> {
        let mut inner = self.lock();
        let over = inner.ended.is_some() && !inner.attached;
        if inner.events.len() <= usize::from(keep_newest) {
            return None;
        }
        let first = inner.events.front()?;
        let fine = over || first.notice || first.seq <= inner.sent;
        let event = if fine { inner.events.pop_front() } else { None }?;
        if !event.notice {
            inner.lost = event.seq;
        }
        Some(event.bytes.len())
    }

    /// The bytes of all events.
    pub(crate) fn bytes(&self) -> usize {
        self.lock().events.iter().map(|e| e.bytes.len()).sum()
    }

    /// Closes the stream: readers end after the pending events, and calls that still feed it are cancelled.
    pub(crate) fn end(&self, now: u64) {
        let (work, waker) = {
            let mut inner = self.lock();
            inner.ended.get_or_insert(now);
            (inner.work.take(), inner.waker.take())
        };
        drop(work);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Becomes the stream's reader, after the event `after`; whoever read before loses the stream. `None` when no such
    /// event was ever sent, or when nothing is left of what came after it.
    pub(crate) fn attach(
        self: &Arc<Self>,
        session: &Arc<HttpSession>,
        after: u32,
        feed: Option<Arc<Subscription>>,
    ) -> Option<Reader> {
        let mut inner = self.lock();
        let gone = inner.ended.is_some() && inner.events.is_empty() && after < inner.lost;
        if after > inner.last || gone {
            return None;
        }
        inner.holder += 1;
        inner.attached = true;
        inner.close_after_flush = false;
        inner.sent = after;
        let holder = inner.holder;
        let waker = inner.waker.take();
        drop(inner);
        if let Some(waker) = waker {
            waker.wake();
        }
        session.reader_came();
        Some(Reader { session: session.clone(), stream: self.clone(), feed, holder })
    }

    /// Polls the calls once and stores their output. Pending if `holder` has nothing to do;
    /// its task is woken when there is. A task that does not `read` is not interested in events that wait.
    fn step(
        self: &Arc<Self>,
        session: &HttpSession,
        mut work: Work,
        holder: u32,
        reads: bool,
        cx: &mut Context<'_>,
    ) -> Poll<()> {
        let out = work.poll_next(true, cx);
        let idle = out.is_pending();
        match out {
            Poll::Pending => {}
            Poll::Ready(Some(Out::Notice(frame))) => self.push(session, &frame, true),
            Poll::Ready(Some(Out::Request(frame))) => self.push(session, &frame, false),
            Poll::Ready(Some(Out::Reply(reply))) => self.push(session, &reply.frame(), false),
            Poll::Ready(Some(Out::Pause(ms))) => self.pause(session, ms),
            Poll::Ready(None) => self.end(session.now()),
        }
        let mut inner = self.lock();
        if inner.ended.is_some() {
            // Perhaps by the session's end: the calls go with it, but not under the lock.
            drop(inner);
            drop(work);
            return Poll::Ready(());
        }
        inner.work = Some(work);
        if inner.holder != holder {
            // The stream was taken over meanwhile, and the new holder waits for the calls.
            let waker = inner.waker.take();
            drop(inner);
            waker.into_iter().for_each(Waker::wake);
            return Poll::Ready(());
        }
        if idle && !(reads && inner.has_news()) {
            inner.wait(cx);
            return Poll::Pending;
        }
        Poll::Ready(())
    }

    /// Polls the changes of the session once. Pending as [`EventStream::step`] is.
    fn step_feed(
        self: &Arc<Self>,
        session: &HttpSession,
        feed: &Subscription,
        holder: u32,
        cx: &mut Context<'_>,
    ) -> Poll<()> {
        match feed.poll_next(cx) {
            Poll::Ready(Some(change)) => {
                self.push(session, &change.frame(None), !matches!(change, ServerChange::Request(_)))
            }
            Poll::Ready(None) => self.end(session.now()),
            Poll::Pending => {
                let mut inner = self.lock();
                if inner.holder == holder && inner.ended.is_none() && !inner.has_news() {
                    inner.wait(cx);
                    return Poll::Pending;
                }
            }
        }
        Poll::Ready(())
    }

    fn pause(self: &Arc<Self>, session: &HttpSession, ms: u64) {
        if session.features().priming && self.is_attached() {
            self.prime(session, ms);
            self.lock().close_after_flush = true;
        }
    }

    /// Sends the reader away after the events that wait.
    pub(crate) fn close_after_flush(&self) {
        self.lock().close_after_flush = true;
    }
}

impl Inner {
    /// Keeps at most `max` notices waiting and `max` events for replay; the bytes that were freed, and whether a notice was
    /// dropped.
    fn trim(&mut self, max: usize) -> (usize, bool) {
        let mut freed = 0;
        while self.events.len() > max && self.events.front().is_some_and(|e| e.seq <= self.sent) {
            freed += self.events.pop_front().map_or(0, |e| e.bytes.len());
        }
        if self.events.len() <= max {
            return (freed, false);
        }
        let waiting = |e: &Event| e.notice && e.seq > self.sent;
        if self.events.iter().filter(|e| waiting(e)).count() > max
            && let Some(at) = self.events.iter().position(waiting)
        {
            freed += self.events.remove(at).map_or(0, |e| e.bytes.len());
            return (freed, true);
        }
        (freed, false)
    }

    /// The newest event that is not kept any more, once there are so many that the store has to be told.
    fn old(&mut self) -> Option<u32> {
        let first = self.events.front().map_or(self.last + 1, |event| event.seq);
        let old = first.saturating_sub(1);
        if old < self.trimmed + TRIM_EVERY {
            return None;
        }
        self.trimmed = old;
        Some(old)
    }

    /// Whether a reader has something to do.
    fn has_news(&self) -> bool {
        self.close_after_flush || self.next().is_some()
    }

    /// Whether an event was not sent yet.
    fn has_unsent(&self) -> bool {
        self.events.back().is_some_and(|e| e.seq > self.sent)
    }

    /// The next event to send, once it is stored.
    fn next(&self) -> Option<&Event> {
        let at = self.events.partition_point(|e| e.seq <= self.sent);
        self.events.get(at).filter(|event| event.seq <= self.stored)
    }

    fn next_unsent(&mut self) -> Option<Bytes> {
        let event = self.next()?;
        let (seq, bytes) = (event.seq, event.bytes.clone());
        self.sent = seq;
        Some(bytes)
    }

    fn wait(&mut self, cx: &Context<'_>) {
        self.waker = Some(cx.waker().clone());
    }
}

/// The reader of a stream. Dropping it moves the calls to a task.
pub(crate) struct Reader {
    session: Arc<HttpSession>,
    stream: Arc<EventStream>,
    /// Where changes wait, on the stream of a plain GET.
    feed: Option<Arc<Subscription>>,
    holder: u32,
}

impl Source for Reader {
    fn poll_bytes(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        loop {
            let mut inner = self.stream.lock();
            if inner.holder != self.holder {
                return Poll::Ready(None);
            }
            // This task is awake: its own events need not wake it again.
            inner.waker = None;
            if let Some(bytes) = inner.next_unsent() {
                return Poll::Ready(Some(bytes));
            }
            if inner.ended.is_some() || inner.close_after_flush {
                if inner.has_unsent() {
                    // Until it is stored.
                    inner.wait(cx);
                    return Poll::Pending;
                }
                return Poll::Ready(None);
            }
            let progress = match (inner.work.take(), &self.feed) {
                (Some(work), _) => {
                    drop(inner);
                    self.stream.step(&self.session, work, self.holder, true, cx)
                }
                (None, Some(feed)) => {
                    drop(inner);
                    self.stream.step_feed(&self.session, feed, self.holder, cx)
                }
                (None, None) => {
                    inner.wait(cx);
                    Poll::Pending
                }
            };
            if progress.is_pending() {
                return Poll::Pending;
            }
        }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let mut inner = self.stream.lock();
        if inner.holder == self.holder {
            inner.attached = false;
            inner.waker = None;
            if std::thread::panicking() {
                // A call panicked while it was polled here, and is gone.
                inner.ended = Some(self.session.now());
            } else if inner.work.is_some() {
                inner.holder += 1;
                let holder = inner.holder;
                drop(inner);
                run_unread(self.session.clone(), self.stream.clone(), holder);
            }
        }
        self.session.reader_left();
    }
}

/// Polls the calls of a stream without a reader, until they end or a reader takes over.
fn run_unread(session: Arc<HttpSession>, stream: Arc<EventStream>, holder: u32) {
    let Ok(runtime) = tokio::runtime::Handle::try_current() else {
        // Without a runtime they cannot run, and end here.
        return stream.end(session.now());
    };
    tracing::debug!(stream = stream.number, "a stream lost its reader; its calls go on");
    runtime.spawn(std::future::poll_fn(move |cx| {
        loop {
            let mut inner = stream.lock();
            if inner.holder != holder || inner.ended.is_some() {
                return Poll::Ready(());
            }
            inner.waker = None;
            let Some(work) = inner.work.take() else {
                inner.wait(cx);
                return Poll::Pending;
            };
            drop(inner);
            if stream.step(&session, work, holder, false, cx).is_pending() {
                return Poll::Pending;
            }
        }
    }));
}
