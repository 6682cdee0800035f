//! Which connection to the upstream a request goes to.

use crate::instance::{Home, Instance, Reservation, next_call};
use crate::lease::Lease;
use crate::lock;
use crate::mirrored::Mirrored;
use crate::options::Isolation;
use crate::owner::{Owner, open_for_calls};
use crate::parked::Parking;
use crate::pool::{Pool, Who};
use crate::refusal::Refusal;
use crate::tool_filter::ToolFilter;
use linchpin_core::message::Request;
use linchpin_core::service::{RequestContext, boxed};
use linchpin_core::{Budget, Caller, ChangeBus, ClientCaps, Features, Method};
use std::collections::{HashMap, VecDeque};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use tokio::sync::oneshot;

/// What all calls of a bridge share.
pub(crate) struct Core {
    pub(crate) pool: Arc<Pool>,
    /// The memory of all clients.
    pub(crate) budget: Arc<Budget>,
    /// The key of the owners among the values of sessions and connections; the next one is that of subscriptions.
    pub(crate) key: u64,
    /// What clients share, by their principal. Without one, and where it was said that all share, the name is empty.
    pub(crate) users: Mutex<Users>,
    /// Held by the first of those who would share a connection, until it is known whether the upstream has sessions.
    pub(crate) first: tokio::sync::Mutex<()>,
    /// Which tools clients see.
    pub(crate) tool_filter: ToolFilter,
    /// Connections that are lent for a call, by who may have them.
    pub(crate) lent: Mutex<HashMap<Box<str>, Spare>>,
    /// Calls that wait for their clients.
    pub(crate) parking: Arc<Parking>,
    /// Arguments that tools want repeated in headers, as far as it was asked.
    pub(crate) mirrored: Mirrored,
}

/// What the clients of each principal share.
#[derive(Default)]
pub(crate) struct Users {
    by_name: HashMap<Box<str>, User>,
    /// The bridge is closing.
    is_closed: bool,
}

/// What the clients of a principal share.
#[derive(Default)]
struct User {
    /// Of the connection of all of them, whatever their revision.
    owner: Arc<Owner>,
    /// Of the connections that clients of a revision share, by its index.
    shared: HashMap<usize, Arc<Owner>>,
    /// Of its sessions' changes.
    bus: Arc<ChangeBus>,
}

impl User {
    /// Whether there is nothing to remember.
    fn is_unused(&self) -> bool {
        // Nobody opens a connection for it now, and it has none.
        let is_unused = |owner: &Arc<Owner>| Arc::strong_count(owner) == 1 && owner.current().is_none();
        self.bus.open_feeds() == 0 && self.shared.values().chain([&self.owner]).all(is_unused)
    }
}

/// Connections that are lent to clients of one kind.
#[derive(Default)]
pub(crate) struct Spare {
    /// Those that can be lent now.
    ready: Vec<Arc<Instance>>,
    /// More of them are being opened in advance.
    filling: bool,
    /// Calls that wait for one, while there is none.
    calls: VecDeque<oneshot::Sender<Lent>>,
}

impl Spare {
    /// Whether there is nothing to remember.
    fn is_unused(&mut self) -> bool {
        self.ready.retain(|one| one.lost().is_none());
        self.calls.retain(|call| !call.is_closed());
        self.ready.is_empty() && self.calls.is_empty() && !self.filling
    }
}

/// Forgets connections that were lost, and kinds of clients for which there are none.
fn prune(lent: &mut HashMap<Box<str>, Spare>) {
    lent.retain(|_, spare| !spare.is_unused());
}

/// Connections of one kind that stay open without a call.
const LENT_MAX: usize = 4;
/// Principals whose owners are remembered although they have no connection.
const USERS_MAX: usize = 10_000;

impl Core {
    /// The key of sessions' subscriptions at connections that they share.
    pub(crate) fn subscribed_key(&self) -> u64 {
        self.key + 1
    }

    /// How long a call may take without anything from the upstream.
    pub(crate) fn limit_ms(&self) -> u64 {
        self.pool.options.call_ms_max
    }

    /// The owner of a session's connection, or of the connection of a client on a pipe.
    pub(crate) fn own(&self, caller: &Caller, context: &RequestContext) -> Option<Arc<Owner>> {
        if self.pool.options.isolation == Isolation::User {
            return Some(self.user(identity(context), |user| user.owner.clone()));
        }
        let made = |owner: Owner| Arc::new(owner) as Arc<dyn std::any::Any + Send + Sync>;
        let value = match (caller.session(), &context.connection) {
            (Some(session), _) => session.locals().get_or_insert(self.key, || made(Owner::of_session(session))),
            (None, Some(connection)) => connection.get_or_insert(self.key, || made(Owner::of_many())),
            (None, None) => return None,
        };
        value.downcast().ok()
    }

    /// The owner of the connection that clients of this revision share: all of them, or those of the request's principal.
    pub(crate) fn everybody(&self, features: &Features, context: &RequestContext) -> Arc<Owner> {
        match self.pool.features() {
            Some(known) if !known.has_sessions && self.may_share_with_all() => self.sharer("", features),
            _ => self.sharer(self.sharing(context), features),
        }
    }

    /// Whether an upstream that remembers nothing of what it is told has one connection for all principals.
    fn may_share_with_all(&self) -> bool {
        self.pool.options.isolation == Isolation::Auto
    }

    /// The principal whose clients share with this one.
    fn sharing<'a>(&self, context: &'a RequestContext) -> &'a str {
        match self.pool.options.isolation {
            Isolation::Shared => "",
            _ => identity(context),
        }
    }

    fn sharer(&self, name: &str, features: &Features) -> Arc<Owner> {
        let owner = || Arc::new(Owner::of_many());
        self.user(name, |user| user.shared.entry(features.index).or_insert_with(owner).clone())
    }

    /// What all clients of a principal share.
    fn user<T>(&self, name: &str, take: impl FnOnce(&mut User) -> T) -> T {
        let mut users = lock(&self.users);
        if let Some(user) = users.by_name.get_mut(name) {
            return take(user);
        }
        if users.by_name.len() >= USERS_MAX {
            users.by_name.retain(|_, user| !user.is_unused());
        }
        let user = User { owner: Arc::new(Owner::of_many()), ..User::default() };
        if users.is_closed {
            user.bus.close();
        }
        take(users.by_name.entry(name.into()).or_insert(user))
    }

    /// Where a new session of the request's principal hears of changes.
    pub(crate) fn sessions(&self, context: &RequestContext) -> Arc<ChangeBus> {
        self.user(self.sharing(context), |user| user.bus.clone())
    }

    /// Ends the streams of changes of all sessions.
    pub(crate) fn close(&self) {
        let mut users = lock(&self.users);
        users.is_closed = true;
        users.by_name.values().for_each(|user| user.bus.close());
    }

    /// A connection that is shared. An upstream with sessions may remember what a user has told it, which is nobody else's
    /// business; one without has a connection for all.
    async fn shared(&self, caller: &Caller, context: &RequestContext) -> Result<Lease, Refusal> {
        let (name, features) = (self.sharing(context), caller.features());
        if name.is_empty() || !self.may_share_with_all() {
            return self.lease_shared(name, caller).await;
        }
        let _first = match self.pool.features() {
            Some(_) => None,
            None => Some(self.first.lock().await),
        };
        if self.pool.features().is_some_and(|known| known.has_sessions) {
            return self.lease_shared(name, caller).await;
        }
        let lease = self.lease_shared("", caller).await?;
        if !lease.instance().features().has_sessions {
            return Ok(lease);
        }
        // It remembers. The first to find that out keeps the connection, which nobody has used.
        let opened = lease.instance();
        let is_of = |owner: &Arc<Owner>| owner.current().is_some_and(|current| Arc::ptr_eq(&current, opened));
        let everybodys = self.user("", |user| {
            let found = user.shared.get(&features.index).is_some_and(is_of);
            found.then(|| user.shared.remove(&features.index)).flatten()
        });
        if let Some(owner) = everybodys {
            let is_kept = self.user(name, |user| {
                let kept = user.shared.entry(features.index).or_insert_with(|| owner.clone());
                Arc::ptr_eq(kept, &owner)
            });
            if is_kept {
                return Ok(lease);
            }
            owner.forget(opened, "its user has another one");
        }
        drop(lease);
        self.lease_shared(name, caller).await
    }

    async fn lease_shared(&self, name: &str, caller: &Caller) -> Result<Lease, Refusal> {
        // Nobody's capabilities: the upstream cannot ask.
        let who = || Who { features: caller.features(), capabilities: "{}".into(), info: None };
        let owner = self.sharer(name, caller.features());
        owner.lease(&self.pool, who, || Home::Everybody(self.user(name, |user| user.bus.clone()))).await
    }

    /// Whether calls do not share a connection.
    fn is_per_call(&self) -> bool {
        matches!(self.pool.options.isolation, Isolation::Call | Isolation::Fresh)
    }

    /// The connection of this owner.
    async fn lease(&self, owner: &Owner, caller: &Caller, context: &RequestContext) -> Result<Lease, Refusal> {
        let home = || match caller.session() {
            _ if self.pool.options.isolation == Isolation::User => Home::User(self.sessions(context)),
            Some(session) => Home::Session(Arc::downgrade(session)),
            None => Home::Client,
        };
        owner.lease(&self.pool, || who(caller), home).await
    }

    /// What the upstream's revision has. Opens a connection if that is not known.
    pub(crate) async fn upstream(
        self: &Arc<Self>,
        request: &Request,
        context: &RequestContext,
    ) -> Result<&'static Features, Refusal> {
        if let Some(known) = self.pool.features() {
            return Ok(known);
        }
        let isolation = self.pool.options.isolation;
        let own = self.own(&request.caller, context).filter(|_| !self.is_per_call() && isolation != Isolation::Shared);
        match own {
            // Whoever else has it: only a look is needed.
            Some(owner) => self.lease(&owner, &request.caller, context).await.map(|lease| lease.instance().features()),
            None => self.place(request, context).await.map(|place| place.instance().features()),
        }
    }

    /// The connection for a request.
    pub(crate) async fn place(self: &Arc<Self>, request: &Request, context: &RequestContext) -> Result<Place, Refusal> {
        let caller = &request.caller;
        let isolation = self.pool.options.isolation;
        if isolation == Isolation::Shared {
            return self.shared(caller, context).await.map(Place::Kept);
        }
        if self.is_per_call() && !is_called(request) {
            return self.shared(caller, context).await.map(Place::Kept);
        }
        if let Some(owner) = self.own(caller, context).filter(|_| !self.is_per_call()) {
            let lease = self.lease(&owner, caller, context).await?;
            // Of several calls of a client on a pipe, each that may be asked something has a connection for itself.
            let guesses = isolation == Isolation::Auto && caller.session().is_none() && is_called(request);
            if !(guesses && may_ask_wrongly(caller, lease.instance())) {
                return Ok(Place::Kept(lease));
            }
            let own = lease.instance().clone();
            return match lease.for_questions(caller.capabilities_json()) {
                Ok(lease) => Ok(Place::Kept(lease)),
                Err(later) => Box::pin(self.lend(request, context, Some(&own), later)).await,
            };
        }
        // Streams of changes last: they belong to the connection that all share.
        let lasts = matches!(request.known(), Some(Method::SubscriptionsListen | Method::ServerDiscover));
        let asks = self.pool.features().is_some_and(|known| known.server_requests) && can_be_asked(caller);
        if lasts || (isolation == Isolation::Auto && !asks) {
            let lease = self.shared(caller, context).await?;
            if lasts || !lends(caller, lease.instance()) {
                return Ok(Place::Kept(lease));
            }
        }
        let streams_of = self.everybody(caller.features(), context).current();
        Box::pin(self.lend(request, context, streams_of.as_ref(), None)).await
    }

    /// Lends a connection for a call, whichever is free first: one that was lent to the same before, a new one, or the
    /// client's own, whose reservation comes `later`. `streams_of` has the client's streams of changes.
    async fn lend(
        self: &Arc<Self>,
        request: &Request,
        context: &RequestContext,
        streams_of: Option<&Arc<Instance>>,
        mut later: Option<oneshot::Receiver<Reservation>>,
    ) -> Result<Place, Refusal> {
        let caller = &request.caller;
        let features = caller.features().revision.as_str();
        let key: Box<str> = [identity(context), "\n", features, caller.capabilities_json()].concat().into();
        if self.pool.options.isolation == Isolation::Fresh {
            self.refill(key.clone(), who(caller));
        }
        let mut lent = match self.ready(key) {
            Ok(lent) => lent,
            Err(mut handed) => {
                let mut opening = self.open_lent(handed.key.clone(), who(caller));
                loop {
                    tokio::select! {
                        biased;
                        Ok(lent) = &mut handed.lent => break lent,
                        Ok(reservation) = reserved(&mut later), if later.is_some() => {
                            later = None;
                            if let Some(lease) = Lease::reserved(&self.pool, reservation) {
                                return Ok(Place::Kept(lease));
                            }
                        }
                        opened = &mut opening => {
                            break opened.map_err(|_| Refusal::unavailable("the bridge is shutting down"))??;
                        }
                    }
                }
            }
        };
        lent.is_used = true;
        *lock(&lent.lease.instance().streams_of) = streams_of.map(Arc::downgrade).unwrap_or_default();
        Ok(Place::Lent(lent))
    }

    /// A connection that can be lent now, or the first one that can be later.
    fn ready(self: &Arc<Self>, key: Box<str>) -> Result<Lent, Handed<'_>> {
        let mut all = lock(&self.lent);
        if let Some(spare) = all.get_mut(&key) {
            while let Some(instance) = spare.ready.pop() {
                if let Some(lease) = Lease::new(&self.pool, instance) {
                    return Ok(Lent { core: self.clone(), lease, key, is_used: false });
                }
            }
        }
        let (call, lent) = oneshot::channel();
        all.entry(key.clone()).or_default().calls.push_back(call);
        Err(Handed { core: self, key, lent })
    }

    /// Lends this connection to the first call that waits for one, or keeps it for the next.
    fn hand_on(self: &Arc<Self>, instance: &Arc<Instance>, key: Box<str>) {
        // First: a call that was chosen gets it.
        let Some(lease) = Lease::new(&self.pool, instance.clone()) else { return };
        let call = {
            let mut all = lock(&self.lent);
            prune(&mut all);
            let Some(call) = all.get_mut(&key).and_then(|spare| next_call(&mut spare.calls)) else {
                let spare = all.entry(key).or_default();
                match spare.ready.len() < LENT_MAX.max(self.pool.options.warm.saturating_add(1)) {
                    true => spare.ready.push(instance.clone()),
                    false => instance.clone().close_later("it is no longer needed"),
                }
                return;
            };
            call
        };
        // If that call has left meanwhile, the connection comes back here.
        let _ = call.send(Lent { core: self.clone(), lease, key, is_used: false });
    }

    /// Whether a call waits for a connection of this kind.
    fn is_wanted(&self, key: &str) -> bool {
        lock(&self.lent).get(key).is_some_and(|spare| spare.calls.iter().any(|call| !call.is_closed()))
    }

    /// Whether each connection is for one call.
    fn is_for_one_call(&self) -> bool {
        matches!(self.pool.options.isolation, Isolation::Session | Isolation::Fresh)
    }

    /// Opens a connection to lend. If its call has another one by then, it is lent to the next one.
    fn open_lent(self: &Arc<Self>, key: Box<str>, who: Who) -> oneshot::Receiver<Result<Lent, Refusal>> {
        let (mut done, opened) = oneshot::channel();
        let core = self.clone();
        tokio::spawn(boxed(async move {
            let has_begun = AtomicBool::new(false);
            let mut opening = pin!(open_for_calls(&core.pool, &who, &has_begun));
            let opened = tokio::select! {
                biased;
                () = done.closed() => {
                    let is_needed = !core.is_for_one_call() || core.is_wanted(&key);
                    match has_begun.load(Ordering::Relaxed) && is_needed {
                        true => opening.await,
                        false => return,
                    }
                }
                opened = opening.as_mut() => opened,
            };
            let _ = done.send(opened.map(|lease| Lent { core: core.clone(), lease, key, is_used: false }));
        }));
        opened
    }
}

/// The connection that a call is lent once one is free.
struct Handed<'a> {
    core: &'a Core,
    key: Box<str>,
    lent: oneshot::Receiver<Lent>,
}

impl Drop for Handed<'_> {
    fn drop(&mut self) {
        self.lent.close();
        let mut all = lock(&self.core.lent);
        if all.get_mut(&self.key).is_some_and(Spare::is_unused) {
            all.remove(&self.key);
        }
    }
}

async fn reserved(
    later: &mut Option<oneshot::Receiver<Reservation>>,
) -> Result<Reservation, oneshot::error::RecvError> {
    match later {
        Some(later) => later.await,
        None => std::future::pending().await,
    }
}

impl Core {
    /// Opens connections ahead for calls of this kind, in the background.
    fn refill(self: &Arc<Self>, key: Box<str>, who: Who) {
        if std::mem::replace(&mut lock(&self.lent).entry(key.clone()).or_default().filling, true) {
            return;
        }
        // One more for this call, which takes what is ready or opens its own.
        let most = self.pool.options.warm.saturating_add(1);
        let core = Arc::downgrade(self);
        tokio::spawn(boxed(async move {
            for _ in 0..most {
                let Some(core) = core.upgrade() else { return };
                let ready = {
                    let mut lent = lock(&core.lent);
                    let spare = lent.entry(key.clone()).or_default();
                    spare.ready.retain(|one| one.lost().is_none());
                    spare.ready.len()
                };
                if ready >= most || core.pool.is_full() {
                    break;
                }
                match open_for_calls(&core.pool, &who, &AtomicBool::new(false)).await {
                    Ok(lease) => core.hand_on(lease.instance(), key.clone()),
                    Err(_) => break,
                }
            }
            let Some(core) = core.upgrade() else { return };
            let mut lent = lock(&core.lent);
            lent.entry(key).or_default().filling = false;
            prune(&mut lent);
        }));
    }
}

fn identity(context: &RequestContext) -> &str {
    context.principal.as_ref().map_or("", |principal| &**principal.identity())
}

/// Whether a request is a call that ends, and not part of what is held for a client.
fn is_called(request: &Request) -> bool {
    !matches!(
        request.known(),
        Some(
            Method::Initialize
                | Method::ServerDiscover
                | Method::SubscriptionsListen
                | Method::ResourcesSubscribe
                | Method::ResourcesUnsubscribe
                | Method::LoggingSetLevel
        )
    )
}

/// Whether the client declares anything that the upstream might use.
pub(crate) fn can_be_asked(caller: &Caller) -> bool {
    caller.caps() != ClientCaps::default()
}

/// Whether a question of this upstream could reach another call than the one that it belongs to.
fn may_ask_wrongly(caller: &Caller, instance: &Instance) -> bool {
    instance.features().has_sessions && can_be_asked(caller) && !instance.raw().transport.attributes()
}

/// Whether a stateless request needs a connection of its own, because what belongs to it cannot be told from what belongs to
/// others.
fn lends(caller: &Caller, shared: &Instance) -> bool {
    let asks = shared.features().has_sessions && can_be_asked(caller);
    let logs = caller.log_level().is_some() && !shared.raw().transport.attributes();
    asks || logs
}

/// As whom a connection for this caller is opened.
fn who(caller: &Caller) -> Who {
    Who {
        features: caller.features(),
        capabilities: caller.capabilities_json().into(),
        info: caller.client_info_json().map(Into::into),
    }
}

/// The connection of a call.
pub(crate) enum Place {
    Kept(Lease),
    Lent(Lent),
}

impl Place {
    /// Whether it stays with its owner after the call.
    pub(crate) fn is_kept(&self) -> bool {
        matches!(self, Place::Kept(_))
    }

    pub(crate) fn instance(&self) -> &Arc<Instance> {
        match self {
            Place::Kept(lease) | Place::Lent(Lent { lease, .. }) => lease.instance(),
        }
    }
}

/// A connection that is given back after the call.
pub(crate) struct Lent {
    core: Arc<Core>,
    lease: Lease,
    key: Box<str>,
    /// A call has had it.
    is_used: bool,
}

impl Drop for Lent {
    fn drop(&mut self) {
        let instance = self.lease.instance();
        if instance.lost().is_some() {
            return;
        }
        if self.is_used && self.core.is_for_one_call() {
            return instance.clone().close_later("it was opened for a single call");
        }
        if instance.is_spoiled() {
            return instance.clone().close_later("an abandoned call may still be running there");
        }
        self.core.hand_on(instance, std::mem::take(&mut self.key));
    }
}
