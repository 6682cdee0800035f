//! All sessions of one service: a sharded map, a cap, and a sweeper that ends idle ones.

use super::answer;
use super::body::HttpBody;
use super::session::{Common, HttpSession};
use super::session_id::{id_of, parts_of};
use super::stores::{self, Stores};
use crate::driver;
use http::{Response, StatusCode};
use linchpin_core::budget::EXHAUSTED;
use linchpin_core::service::BoxFuture;
use linchpin_core::{Caller, Features, Limits, Principal, RequestContext, Reservation, Service, SessionRecord};
use linchpin_proto::Engine;
use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use tokio::time::Instant;

const SHARDS: usize = 16;
/// After how long a session that was never used may give way without a look at all the others, and how long it is not
/// looked again when all are in use.
const SETTLED_MS: u64 = 1_000;
/// How long a session that was used must be idle to give way.
const IDLE_MS_MIN: u64 = 60_000;

/// See the module's documentation.
pub(crate) struct Sessions {
    shards: [Mutex<Shard>; SHARDS],
    /// Open sessions, and those about to open.
    count: Arc<AtomicUsize>,
    sweeping: AtomicBool,
    /// The shard that gives way next.
    turn: AtomicUsize,
    /// Until when it is known that none can give way, on the clock of [`Common`].
    all_in_use: AtomicU64,
    common: Arc<Common>,
    /// Held while a session is brought back, so that it is once.
    reviving: Mutex<Ended>,
}

/// The sessions that were deleted last: one that was just being looked up does not come back.
type Ended = VecDeque<u128>;

/// How many of those are remembered.
const ENDED_MAX: usize = 1_024;

type Shard = HashMap<u128, Entry, BuildHasherDefault<KeyHasher>>;

/// Keys are random already, and never chosen by a client: they are hashed to themselves.
#[derive(Default)]
struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.0 = self.0.rotate_left(8) ^ u64::from(*byte));
    }

    fn write_u128(&mut self, key: u128) {
        // The lowest bits name the shard.
        self.0 = (key >> 64) as u64;
    }
}

struct Entry {
    session: Arc<HttpSession>,
    _place: SessionSlot,
}

/// The request that waits for a session of another process, or a refusal.
pub(crate) type Revival = BoxFuture<'static, Result<Arc<RequestContext>, Box<Response<HttpBody>>>>;

/// The right to open one session; dropping it frees the slot.
pub(crate) struct SessionSlot {
    count: Arc<AtomicUsize>,
    /// For what the client declared.
    _declared: Reservation,
}

impl Drop for SessionSlot {
    fn drop(&mut self) {
        self.count.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Sessions {
    pub(crate) fn new(service: Arc<dyn Service>, stores: Option<Arc<Stores>>) -> Sessions {
        Sessions {
            shards: Default::default(),
            count: Arc::default(),
            sweeping: AtomicBool::new(false),
            turn: AtomicUsize::new(0),
            all_in_use: AtomicU64::new(0),
            reviving: Mutex::default(),
            common: Arc::new(Common { service, stores, epoch: Instant::now() }),
        }
    }

    fn limits(&self) -> &Limits {
        self.common.service.limits()
    }

    fn shard(&self, key: u128) -> MutexGuard<'_, Shard> {
        self.shards[key as usize % SHARDS].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reserves a slot for a new session of this size. When there are too many, another one is evicted: the oldest whose
    /// client never came back, or else the one idle for longest, for at least a minute. `None` if there is none
    /// of those.
    pub(crate) fn place(&self, declared: Reservation) -> Option<SessionSlot> {
        let place = SessionSlot { count: self.count.clone(), _declared: declared };
        let before = self.count.fetch_add(1, Ordering::Relaxed);
        (before < self.limits().sessions.concurrent_max || self.end_one()).then_some(place)
    }

    /// Ends the session that is missed least. Of a shard's, if that one was never used and is not new: shards take
    /// turns, which keeps the search short and comes close to the oldest of all.
    fn end_one(&self) -> bool {
        let now = self.common.epoch.elapsed().as_millis() as u64;
        if now < self.all_in_use.load(Ordering::Relaxed) {
            return false;
        }
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        let mut least: Option<((bool, u64), u128)> = None;
        for n in 0..SHARDS {
            let shard = self.shard((turn + n) as u128);
            let idle = shard.iter().filter_map(|(key, e)| Some((e.session.idle_since(now, IDLE_MS_MIN)?, *key)));
            least = least.into_iter().chain(idle).min();
            if least.is_some_and(|((used, opened), _)| !used && opened + SETTLED_MS < now) {
                break;
            }
        }
        match least {
            Some((_, key)) => {
                tracing::debug!("closed an idle session to make room for a new one");
                self.end(key)
            }
            None => {
                self.all_in_use.store(now + SETTLED_MS, Ordering::Relaxed);
                false
            }
        }
    }

    /// Opens a session. `None` if the random number generator fails, or the engine has no session.
    pub(crate) fn open(
        self: &Arc<Self>,
        place: SessionSlot,
        principal: Option<&Principal>,
        engine: Engine,
    ) -> Option<Arc<HttpSession>> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).ok()?;
        let key = u128::from_ne_bytes(bytes);
        let owner = principal.map(|principal| principal.identity().clone());
        let session = Arc::new(HttpSession::new(key, owner, engine, self.common.clone())?);
        self.shard(key).insert(key, Entry { session: session.clone(), _place: place });
        self.keep_swept();
        Some(session)
    }

    /// Goes on with a session of another process, for the request of `context`, which is returned. `None` if the session
    /// is here, or there is no store; if the store does not have it either, nothing happens.
    pub(crate) fn revive(self: &Arc<Self>, context: &mut Option<Arc<RequestContext>>) -> Option<Revival> {
        let stores = self.common.stores.as_ref()?;
        let (key, sealed) = parts_of(context.as_ref()?.headers.get(answer::SESSION_ID)?.as_bytes())?;
        if self.shard(key).contains_key(&key) {
            return None;
        }
        let opened = stores.seal.as_ref().zip(sealed).and_then(|(seal, sealed)| seal.open(&id_of(key), sealed));
        if let Some(record) = opened {
            let resumed = self.resume(key, &record, context.as_ref()?);
            let context = context.take()?;
            let refused = |why| Box::new(answer::refuse(StatusCode::SERVICE_UNAVAILABLE, None, why));
            return Some(Box::pin(std::future::ready(resumed.map(|()| context).map_err(refused))));
        }
        let store = stores.sessions.clone()?;
        let (sessions, context) = (self.clone(), context.take()?);
        Some(Box::pin(async move {
            let found = store.load(&id_of(key)).await;
            match found {
                Ok(Some(record)) => match sessions.resume(key, &record, &context) {
                    Ok(()) => Ok(context),
                    Err(why) => Err(Box::new(answer::refuse(StatusCode::SERVICE_UNAVAILABLE, None, why))),
                },
                Ok(None) => Ok(context),
                Err(error) => Err(Box::new(stores::unavailable(None, &error))),
            }
        }))
    }

    fn resume(
        self: &Arc<Self>,
        key: u128,
        record: &SessionRecord,
        context: &RequestContext,
    ) -> Result<(), &'static str> {
        let owner = context.principal.as_ref().map(|principal| principal.identity().clone());
        // The session of another principal looks as if it did not exist.
        if record.owner.as_deref() != owner.as_deref() {
            answer::log_foreign_session(context.principal.as_ref(), Some(record.public_id));
            return Ok(());
        }
        // Requests of a session may come at once: the first brings it back.
        let reviving = self.reviving.lock().unwrap_or_else(PoisonError::into_inner);
        if reviving.contains(&key) || self.shard(key).contains_key(&key) {
            return Ok(());
        }
        let Some(engine) = driver::engine(&*self.common.service).resume(record, driver::nonce()) else {
            tracing::warn!(revision = record.revision.as_str(), "a stored session cannot be read");
            return Ok(());
        };
        let Some(state) = engine.session().cloned() else { return Ok(()) };
        let declared = self.common.service.budget().reserve(state.declared_bytes()).ok_or(EXHAUSTED)?;
        let place = self.place(declared).ok_or("this server has too many sessions; try again later")?;
        let caller = Caller::of_session(state.clone());
        if let Some(feed) = self.common.service.open_feed(&caller, context) {
            let max = self.limits().subscriptions.resources_max;
            for uri in &record.subscriptions {
                if let Err(error) = feed.feed().subscribe(uri, max, self.common.service.budget()) {
                    tracing::warn!(%error, "a session goes on without one of its subscriptions");
                }
            }
            state.set_feed(feed);
        }
        let Some(session) = HttpSession::new(key, owner, engine, self.common.clone()) else {
            return Ok(());
        };
        session.touch();
        self.shard(key).insert(key, Entry { session: Arc::new(session), _place: place });
        drop(reviving);
        self.keep_swept();
        // Runs handlers.
        self.common.service.session_resumed(&caller, context);
        Ok(())
    }

    /// A session for one request, where there are no others: of the revision that its headers name, and of a client that
    /// declares nothing.
    pub(crate) fn passing(&self, context: &RequestContext) -> Result<Arc<HttpSession>, Box<Response<HttpBody>>> {
        let refuse = |status, why| Box::new(answer::refuse(status, None, why));
        let version = context.headers.get(answer::PROTOCOL_VERSION).and_then(|version| version.to_str().ok());
        let revision = match version {
            // As the specification has it for clients that do not say: the last revision without that header.
            None => Features::all().find(|features| features.has_sessions && !features.version_header),
            Some(version) => version.trim().parse().ok().map(Features::of),
        };
        let revision = revision.map(|features| features.revision);
        let revision =
            revision.ok_or_else(|| refuse(StatusCode::BAD_REQUEST, "unsupported MCP-Protocol-Version header"))?;
        let record = SessionRecord::bare(revision);
        let engine = driver::engine(&*self.common.service).resume(&record, driver::nonce());
        let owner = context.principal.as_ref().map(|principal| principal.identity().clone());
        let session = engine.and_then(|engine| {
            if let Some(state) = engine.session() {
                self.common.service.session_resumed(&Caller::of_session(state.clone()), context);
            }
            HttpSession::new(0, owner, engine, self.common.clone())
        });
        session.map(Arc::new).ok_or_else(|| refuse(StatusCode::BAD_REQUEST, "unsupported MCP-Protocol-Version header"))
    }

    /// The stores of the service.
    pub(crate) fn stores(&self) -> Option<&Arc<Stores>> {
        self.common.stores.as_ref()
    }

    /// The session of this key; marks it as used.
    pub(crate) fn find(&self, key: u128) -> Option<Arc<HttpSession>> {
        let session = self.shard(key).get(&key)?.session.clone();
        session.touch();
        Some(session)
    }

    /// Ends a session for good: it is not brought back.
    pub(crate) fn delete(&self, session: &HttpSession) {
        session.set_deleted();
        if self.common.stores.is_some() {
            let mut ended = self.reviving.lock().unwrap_or_else(PoisonError::into_inner);
            ended.truncate(ENDED_MAX - 1);
            ended.push_front(session.key());
        }
        self.end(session.key());
    }

    /// Ends a session; whether it was there.
    pub(crate) fn end(&self, key: u128) -> bool {
        let entry = {
            let mut shard = self.shard(key);
            let entry = shard.remove(&key);
            shrink(&mut shard);
            entry
        };
        if let Some(entry) = &entry {
            entry.session.close();
        }
        entry.is_some()
    }

    /// Ends streams that do not end by themselves.
    pub(crate) fn end_listening(&self) {
        for shard in &self.shards {
            let shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
            for session in shard.values().map(|e| &e.session) {
                if let Some(stream) = session.standalone_stream() {
                    stream.end(session.now());
                }
            }
        }
    }

    /// Ends all sessions.
    pub(crate) fn close(&self) {
        for shard in &self.shards {
            let all = std::mem::take(&mut *shard.lock().unwrap_or_else(PoisonError::into_inner));
            for entry in all.into_values() {
                entry.session.close();
            }
        }
    }

    /// Starts the sweeper unless it runs. It ends with the last session.
    fn keep_swept(self: &Arc<Self>) {
        if self.sweeping.swap(true, Ordering::AcqRel) {
            return;
        }
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            self.sweeping.store(false, Ordering::Release);
            return;
        };
        let tick = self.limits().sessions.idle_ms_max.min(self.limits().sessions.replay_ms_max) / 2;
        runtime.spawn(sweep(Arc::downgrade(self), Duration::from_millis(tick.clamp(10, 60_000))));
    }

    /// Ends idle sessions. Returns whether any session is left, and those that were used since `since`.
    fn sweep(&self, since: u64) -> (bool, Vec<u128>) {
        let now = self.common.epoch.elapsed().as_millis() as u64;
        let (mut left, mut used) = (false, Vec::new());
        for shard in &self.shards {
            let mut shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
            let ended: Vec<Entry> = shard.extract_if(|_, e| e.session.is_expired(now)).map(|(_, e)| e).collect();
            shrink(&mut shard);
            left |= !shard.is_empty();
            let kept: Vec<Arc<HttpSession>> = shard.values().map(|e| e.session.clone()).collect();
            drop(shard);
            for entry in ended {
                tracing::debug!("a session was idle for too long and ended");
                entry.session.close();
            }
            for session in kept {
                session.sweep(now);
                if self.common.stores.is_some() && session.used_since(since) {
                    used.push(session.key());
                }
            }
        }
        (left, used)
    }
}

impl Drop for Sessions {
    fn drop(&mut self) {
        self.close();
    }
}

async fn sweep(sessions: Weak<Sessions>, tick: Duration) {
    let mut since = 0;
    loop {
        tokio::time::sleep(tick).await;
        let Some(sessions) = sessions.upgrade() else { return };
        let (left, used) = sessions.sweep(since);
        since = sessions.common.epoch.elapsed().as_millis() as u64;
        if let Some(stores) = &sessions.common.stores {
            stores.touch(used, Duration::from_millis(sessions.limits().sessions.idle_ms_max)).await;
        }
        if !left {
            sessions.sweeping.store(false, Ordering::Release);
            // A session that opened since saw a sweeper that was about to leave.
            if sessions.count.load(Ordering::Relaxed) == 0 || sessions.sweeping.swap(true, Ordering::AcqRel) {
                return;
            }
        }
    }
}

/// Releases memory once most sessions of a shard have ended.
fn shrink(shard: &mut Shard) {
    if shard.capacity() > 64 && shard.len() < shard.capacity() / 4 {
        shard.shrink_to(shard.len() * 2);
    }
}
