//! One session of a client: its engine, its streams, and the events kept for replay.

use super::session_id::id_of;
use super::stores::Stores;
use super::stream::{EventStream, Reader};
use crate::driver;
use linchpin_core::store::{EventStore, StoreError};
use linchpin_core::{Budget, Cancel, Features, Limits, Principal, Service};
use linchpin_proto::Engine;
use linchpin_proto::driver::HasEngine;
use std::sync::atomic::{AtomicBool, AtomicIsize, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// What the sessions of an endpoint have in common.
pub(crate) struct Common {
    pub(crate) service: Arc<dyn Service>,
    pub(crate) stores: Option<Arc<Stores>>,
    /// The beginning of the sessions' clock.
    pub(crate) epoch: Instant,
}

/// A session. An idle one allocates nothing beyond itself and the client's capabilities.
pub(crate) struct HttpSession {
    key: u128,
    /// The identity of the principal that opened it.
    owner: Option<Arc<str>>,
    features: &'static Features,
    common: Arc<Common>,
    engine: Mutex<Engine>,
    streams: Mutex<Streams>,
    /// Bytes stored in all streams.
    kept: AtomicIsize,
    /// Streams with a reader.
    readers: AtomicU32,
    /// When the session was last used, on its clock.
    seen: AtomicU64,
    /// Whether its client came back after `initialize`.
    used: AtomicBool,
    /// The version of the record that was stored last.
    saved: AtomicU32,
    saving: AtomicBool,
    /// The client has ended it: it is not stored again.
    deleted: AtomicBool,
    /// Sets the numbers of its streams apart from those that it had before it went on here. 0 without a store.
    node: u32,
}

#[derive(Default)]
struct Streams {
    /// Oldest first.
    all: Vec<Arc<EventStream>>,
    last: u32,
    closed: bool,
}

impl HttpSession {
    /// A session whose engine is open. `None` when it is not.
    pub(crate) fn new(key: u128, owner: Option<Arc<str>>, engine: Engine, common: Arc<Common>) -> Option<HttpSession> {
        let features = engine.session()?.features();
        let session = HttpSession {
            key,
            owner,
            features,
            saved: AtomicU32::new(engine.session()?.record_version()),
            saving: AtomicBool::new(false),
            deleted: AtomicBool::new(false),
            node: if common.stores.is_some() { driver::nonce() } else { 0 },
            common,
            engine: Mutex::new(engine),
            streams: Mutex::default(),
            kept: AtomicIsize::new(0),
            readers: AtomicU32::new(0),
            seen: AtomicU64::new(0),
            used: AtomicBool::new(false),
        };
        session.seen.store(session.now(), Ordering::Relaxed);
        Some(session)
    }

    /// The key of the session id.
    pub(crate) fn key(&self) -> u128 {
        self.key
    }

    /// The session's id.
    pub(crate) fn id(&self) -> String {
        id_of(self.key)
    }

    /// The id that its client is given: what it is too, encrypted, if the options say so.
    pub(crate) fn issued_id(&self) -> String {
        let id = self.id();
        let sealed = self.common.stores.as_ref().and_then(|stores| stores.seal.as_ref()).and_then(|seal| {
            let mut record = self.engine().session()?.record()?;
            record.owner = self.owner.as_deref().map(Box::from);
            seal.seal(&id, &record)
        });
        match sealed {
            Some(sealed) => id + "." + &sealed,
            None => id,
        }
    }

    /// Whether it belongs to this principal.
    pub(crate) fn belongs_to(&self, principal: Option<&Principal>) -> bool {
        self.owner.as_ref() == principal.map(Principal::identity)
    }

    /// Its id for logs.
    pub(crate) fn public_id(&self) -> Option<u64> {
        Some(self.engine().session()?.public_id())
    }

    /// The features of its revision.
    pub(crate) fn features(&self) -> &'static Features {
        self.features
    }

    pub(crate) fn service(&self) -> &dyn Service {
        &*self.common.service
    }

    pub(crate) fn limits(&self) -> &Limits {
        self.common.service.limits()
    }

    /// Tells the observer that a notification was dropped.
    pub(crate) fn dropped(&self) {
        if let Some(observer) = self.common.service.observer() {
            observer.notification_dropped();
        }
    }

    pub(crate) fn budget(&self) -> &Arc<Budget> {
        self.common.service.budget()
    }

    fn streams(&self) -> MutexGuard<'_, Streams> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Milliseconds on the session's clock.
    pub(crate) fn now(&self) -> u64 {
        self.common.epoch.elapsed().as_millis() as u64
    }

    /// Records activity of the client.
    pub(crate) fn touch(&self) {
        self.seen.store(self.now(), Ordering::Relaxed);
        self.used.store(true, Ordering::Relaxed);
    }

    /// Whether the session was used and since when it is idle, if it was never used or is idle for `ms_min`.
    pub(crate) fn idle_since(&self, now: u64, ms_min: u64) -> Option<(bool, u64)> {
        let (used, seen) = (self.used.load(Ordering::Relaxed), self.seen.load(Ordering::Relaxed));
        (!used || self.is_idle(now, ms_min)).then_some((used, seen))
    }

    pub(crate) fn reader_came(&self) {
        self.readers.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn reader_left(&self) {
        self.touch();
        self.readers.fetch_sub(1, Ordering::Relaxed);
    }

    /// Whether it is idle for too long: no request, no open stream and no running call.
    pub(crate) fn is_expired(&self, now: u64) -> bool {
        self.is_idle(now, self.limits().sessions.idle_ms_max)
    }

    fn is_idle(&self, now: u64, ms_min: u64) -> bool {
        let quiet = now.saturating_sub(self.seen.load(Ordering::Relaxed)) >= ms_min;
        quiet && self.readers.load(Ordering::Relaxed) == 0 && self.engine().running() == 0
    }

    /// Removes expired finished streams.
    pub(crate) fn sweep(&self, now: u64) {
        let mut streams = self.streams();
        if !streams.all.is_empty() {
            self.forget_old(&mut streams, now);
        }
    }

    fn forget_old(&self, streams: &mut Streams, now: u64) {
        if let Some(then) = now.checked_sub(self.limits().sessions.replay_ms_max) {
            streams.all.retain(|stream| {
                let old = !stream.is_standalone() && stream.over_since(then);
                if old {
                    self.kept.fetch_sub(stream.bytes() as isize, Ordering::Relaxed);
                }
                !old
            });
        }
        if streams.all.is_empty() {
            streams.all = Vec::new();
        }
    }

    /// A new stream for calls that `cancellers` end. When too many are kept, the oldest finished one is forgotten; when
    /// none is finished, the new one works but cannot be come back to.
    pub(crate) fn open_stream(&self, cancellers: Box<[Arc<dyn Cancel>]>) -> Arc<EventStream> {
        let now = self.now();
        let mut streams = self.streams();
        self.forget_old(&mut streams, now);
        streams.last += 1;
        let stream = Arc::new(EventStream::new(self.stream_number(streams.last), cancellers));
        if streams.all.len() >= self.limits().sessions.streams_max
            && let Some(at) = streams.all.iter().position(|s| !s.is_standalone() && s.is_over())
        {
            let old = streams.all.remove(at);
            self.kept.fetch_sub(old.bytes() as isize, Ordering::Relaxed);
        }
        match () {
            () if streams.closed => stream.end(now),
            () if streams.all.len() < self.limits().sessions.streams_max => streams.all.push(stream.clone()),
            () => tracing::debug!("too many streams in a session; one cannot be resumed"),
        }
        stream
    }

    /// The number of a stream: `n` of this process, other than those of other processes if there are any.
    fn stream_number(&self, n: u32) -> u64 {
        u64::from(self.node) << 32 | u64::from(n)
    }

    /// The store for events.
    pub(crate) fn event_store(&self) -> Option<&Arc<dyn EventStore>> {
        self.common.stores.as_ref()?.events.as_ref()
    }

    /// Stores the session in the background if it has changed.
    pub(crate) fn save(self: &Arc<Self>) {
        if self.common.stores.as_ref().is_none_or(|stores| stores.sessions.is_none()) || self.is_saved() {
            return;
        }
        // One task at a time, so that an older record never replaces a newer one.
        if let Ok(runtime) = tokio::runtime::Handle::try_current()
            && !self.saving.swap(true, Ordering::AcqRel)
        {
            let session = self.clone();
            runtime.spawn(async move {
                loop {
                    let stored = session.store().await;
                    session.saving.store(false, Ordering::Release);
                    if let Err(error) = stored {
                        // Tried again after the session's next call.
                        return tracing::warn!(%error, "a changed session cannot be stored");
                    }
                    // What changed since saw a task that was about to leave.
                    if session.is_saved() || session.saving.swap(true, Ordering::AcqRel) {
                        return;
                    }
                }
            });
        }
    }

    fn is_saved(&self) -> bool {
        let version = self.engine().session().map(|session| session.record_version());
        version.is_none_or(|version| version == self.saved.load(Ordering::Acquire))
    }

    /// Stores the session. Does nothing without a store.
    pub(crate) async fn store(&self) -> Result<(), StoreError> {
        let Some(store) = self.common.stores.as_ref().and_then(|stores| stores.sessions.clone()) else { return Ok(()) };
        let Some(session) = self.engine().session().cloned() else { return Ok(()) };
        let version = session.record_version();
        let Some(mut record) = session.record() else { return Ok(()) };
        record.owner = self.owner.as_deref().map(Box::from);
        let ttl = Duration::from_millis(self.limits().sessions.idle_ms_max);
        store.save(&self.id(), record, ttl).await?;
        self.saved.store(version, Ordering::Release);
        if self.deleted.load(Ordering::Acquire) {
            // It was deleted while it was being stored.
            store.delete(&self.id()).await?;
        }
        Ok(())
    }

    /// Keeps it from being stored again.
    pub(crate) fn set_deleted(&self) {
        self.deleted.store(true, Ordering::Release);
    }

    /// Whether it was used since `then`, on its clock, or is in use.
    pub(crate) fn used_since(&self, then: u64) -> bool {
        self.seen.load(Ordering::Relaxed) >= then
            || self.readers.load(Ordering::Relaxed) > 0
            || self.engine().running() > 0
    }

    /// The stream of a plain GET, if it was opened.
    pub(crate) fn standalone_stream(&self) -> Option<Arc<EventStream>> {
        self.streams().all.iter().find(|s| s.is_standalone()).cloned()
    }

    /// The stream of this number, if it is still kept.
    pub(crate) fn stream(&self, number: u64) -> Option<Arc<EventStream>> {
        self.streams().all.iter().find(|s| s.number() == number).cloned()
    }

    /// Opens the stream of a plain GET, or takes it over. `None` if it has a reader and this is not a resumption.
    pub(crate) fn standalone(self: &Arc<Self>, after: Option<u32>, retry_ms: u64) -> Option<Reader> {
        let stream = {
            let mut streams = self.streams();
            match streams.all.iter().find(|s| s.is_standalone()) {
                Some(stream) => stream.clone(),
                None => {
                    let stream = Arc::new(EventStream::new(self.stream_number(0), Box::default()));
                    match streams.closed {
                        true => stream.end(self.now()),
                        false => streams.all.push(stream.clone()),
                    }
                    stream
                }
            }
        };
        if after.is_none() && stream.is_attached() {
            return None;
        }
        let feed = self.engine().session().and_then(|s| s.feed().map(|handle| handle.feed().clone()));
        // An event that is no longer stored was on this stream, so its reader misses nothing.
        let after = after.unwrap_or_else(|| stream.last());
        let reader = stream.attach(self, after, feed.clone()).or_else(|| stream.attach(self, stream.last(), feed))?;
        if self.features.priming {
            stream.prime(self, retry_ms);
        }
        Some(reader)
    }

    /// Sends the cancellation of a server request on the stream of its call.
    pub(crate) fn withdraw(&self, cancel: &Arc<dyn Cancel>, frame: &[u8]) {
        let stream = self.streams().all.iter().find(|s| s.is_fed_by(cancel)).cloned();
        if let Some(stream) = stream {
            stream.push(self, frame, false);
        }
    }

    /// Counts a change of what is kept, and forgets the oldest past the limit. The newest event of `latest` stays.
    pub(crate) fn account(&self, change: isize, latest: &EventStream) {
        let max = isize::try_from(self.limits().sessions.replay_bytes_max).unwrap_or(isize::MAX);
        if self.kept.fetch_add(change, Ordering::Relaxed) + change <= max {
            return;
        }
        let streams = self.streams();
        for stream in &streams.all {
            while self.kept.load(Ordering::Relaxed) > max {
                let Some(freed) = stream.evict_one(std::ptr::eq(Arc::as_ptr(stream), latest)) else { break };
                self.kept.fetch_sub(freed as isize, Ordering::Relaxed);
            }
        }
    }

    /// Ends everything: calls are cancelled, streams end, events are dropped.
    pub(crate) fn close(&self) {
        let cancellers = self.engine().close();
        for cancel in cancellers {
            cancel.cancel();
        }
        let streams = {
            let mut streams = self.streams();
            streams.closed = true;
            std::mem::take(&mut streams.all)
        };
        let now = self.now();
        for stream in streams {
            stream.end(now);
        }
    }
}

impl HasEngine for HttpSession {
    fn engine(&self) -> MutexGuard<'_, Engine> {
        self.engine.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether this is the number of a stream that a plain GET opened, here or in another process.
pub(crate) fn is_standalone(stream: u64) -> bool {
    stream as u32 == 0
}
