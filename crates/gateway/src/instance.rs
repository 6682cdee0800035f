//! One open connection to the upstream: what is sent on it, and where what it sends goes.

use crate::call::Outlet;
use crate::lock;
use bytes::Bytes;
use linchpin_client::raw::RawConnection;
use linchpin_core::message::{Kind, Message, MethodName};
use linchpin_core::service::{ServerRequest, ServerRequestError, boxed};
use linchpin_core::subscription::ServerChange;
use linchpin_core::{
    Answer, ChangeBus, ClientTransport, Features, Id, Inbox, Method, Outgoing, Session, TransportError,
};
use linchpin_proto::message_writer::{Extras, Writer};
use linchpin_proto::translate::{self, notice, open};
use linchpin_types::error::code;
use linchpin_types::logging::LoggingLevel;
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::{Notify, OwnedSemaphorePermit, oneshot, watch};
use tokio::time::Instant;

/// Whose connection it is: where messages go that belong to no call.
pub(crate) enum Home {
    /// A session's.
    Session(Weak<Session>),
    /// That of one client, whose requests are stateless: they belong to its latest call.
    Client,
    /// That of all clients of a user: the same, and changes go to the user's sessions.
    User(Arc<ChangeBus>),
    /// That of all: nobody is given what might be another's. Changes go to all sessions.
    Everybody(Arc<ChangeBus>),
}

/// How far the opening of a session has come at the upstream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Opened {
    /// The client has not said that it is ready.
    Waiting,
    /// It has, and the upstream is being told.
    Telling,
    /// The upstream knows.
    Told,
}

/// The stream of changes that is held for a session.
#[derive(Default)]
pub(crate) struct Held {
    /// It was begun.
    pub(crate) begun: AtomicBool,
    /// The id of its request; 0 while there is none.
    pub(crate) id: AtomicU64,
    /// That of the stream before, as long as the new one is not acknowledged.
    pub(crate) older: AtomicU64,
    /// The session wants something else.
    pub(crate) wanted: Notify,
    /// The upstream has acknowledged what the session wants.
    pub(crate) acknowledged: watch::Sender<bool>,
}

pub(crate) struct Instance {
    raw: OnceLock<RawConnection>,
    server_info: OnceLock<Option<Box<str>>>,
    ids: Arc<AtomicU64>,
    home: Home,
    /// Changes of the upstream, for streams of stateless clients.
    pub(crate) changes: Arc<ChangeBus>,
    /// The connection that has the streams of the clients to whom this one is lent: they hear of its changes there.
    pub(crate) streams_of: Mutex<Weak<Instance>>,
    /// The client's capabilities, as the upstream knows them.
    capabilities: Box<str>,
    /// Which call may be asked something, where nothing says to which call a question belongs.
    reserved: Mutex<Reserved>,
    calls: Mutex<BTreeMap<u64, Arc<Outlet>>>,
    /// Requests that have found it, changed under the lock of `calls`: until they are done, it is not closed for another client.
    holds: AtomicUsize,
    /// The stream of changes that is held for a session of an upstream without sessions.
    pub(crate) held: Held,
    /// Resources that the upstream was asked to tell of, and for how many.
    pub(crate) watched: Mutex<HashMap<Box<str>, usize>>,
    /// The lowest level of log messages that a shared upstream was asked for.
    pub(crate) lowest: Mutex<Option<LoggingLevel>>,
    /// Questions to a session that belong to no call: the upstream's id, and that of the request to the client.
    questions: Mutex<HashMap<Box<str>, u64>>,
    /// Those that may be asked once more, by the upstream's id.
    guessed: Mutex<HashSet<Box<str>>>,
    pub(crate) opened: watch::Sender<Opened>,
    /// Subscriptions to resources: while there are any, the connection is not idle.
    pub(crate) subscriptions: AtomicUsize,
    used: Mutex<Instant>,
    /// When the upstream answered last.
    heard: Mutex<Instant>,
    lost: OnceLock<Arc<str>>,
    /// A call was given up that may still run there: what the upstream asks may belong to it.
    spoiled: AtomicBool,
    permit: Mutex<Option<OwnedSemaphorePermit>>,
    runtime: Handle,
}

/// Whether a call has the [`Reservation`].
#[derive(Default)]
struct Reserved {
    taken: bool,
    /// Those that want it next.
    calls: VecDeque<oneshot::Sender<Reservation>>,
}

/// The right of one call to be asked something on a connection, which is not idle meanwhile.
pub(crate) struct Reservation(Arc<Instance>);

impl Reservation {
    pub(crate) fn instance(&self) -> &Arc<Instance> {
        &self.0
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let next = {
            let mut reserved = lock(&self.0.reserved);
            if self.0.is_spoiled() {
                // Those that wait take another connection.
                reserved.calls.clear();
            }
            let next = next_call(&mut reserved.calls);
            reserved.taken = next.is_some();
            next
        };
        if let Some(next) = next {
            // If that call has left meanwhile, this runs again.
            let _ = next.send(Reservation(self.0.clone()));
        }
    }
}

/// The first of these calls that still waits.
pub(crate) fn next_call<T>(calls: &mut VecDeque<oneshot::Sender<T>>) -> Option<oneshot::Sender<T>> {
    std::iter::from_fn(|| calls.pop_front()).find(|call| !call.is_closed())
}

impl Instance {
    /// An instance that is not open yet, held by who opens it. Must be called within a tokio runtime.
    pub(crate) fn new(home: Home, capabilities: &str, permit: OwnedSemaphorePermit) -> Instance {
        Instance {
            raw: OnceLock::new(),
            server_info: OnceLock::new(),
            ids: Arc::new(AtomicU64::new(1)),
            home,
            changes: Arc::default(),
            streams_of: Mutex::default(),
            capabilities: capabilities.into(),
            reserved: Mutex::default(),
            calls: Mutex::default(),
            holds: AtomicUsize::new(1),
            held: Held::default(),
            watched: Mutex::default(),
            lowest: Mutex::default(),
            questions: Mutex::default(),
            guessed: Mutex::default(),
            opened: watch::Sender::new(Opened::Waiting),
            subscriptions: AtomicUsize::new(0),
            used: Mutex::new(Instant::now()),
            heard: Mutex::new(Instant::now()),
            lost: OnceLock::new(),
            spoiled: AtomicBool::new(false),
            permit: Mutex::new(Some(permit)),
            runtime: Handle::current(),
        }
    }

    /// The counter of its request ids.
    pub(crate) fn ids(&self) -> &Arc<AtomicU64> {
        &self.ids
    }

    /// The runtime that it was opened in, for destructors.
    pub(crate) fn runtime(&self) -> &Handle {
        &self.runtime
    }

    pub(crate) fn next_id(&self) -> u64 {
        self.ids.fetch_add(1, Ordering::Relaxed)
    }

    /// The connection is open.
    pub(crate) fn open(&self, raw: RawConnection) {
        *lock(&self.heard) = Instant::now();
        let _ = self.raw.set(raw);
    }

    /// The open connection. Nobody has an instance before that.
    pub(crate) fn raw(&self) -> &RawConnection {
        self.raw.get().expect("an instance is given away once it is open")
    }

    /// The features of the revision spoken with the upstream.
    pub(crate) fn features(&self) -> &'static Features {
        self.raw().agreed.features
    }

    /// The upstream's name and version as JSON text, of an upstream with sessions.
    pub(crate) fn server_info(&self) -> Option<&str> {
        let made = || open::server_info(&self.raw().agreed).map(String::into_boxed_str);
        self.server_info.get_or_init(made).as_deref()
    }

    /// Whether it is everybody's, so that nobody can be asked.
    pub(crate) fn is_shared(&self) -> bool {
        matches!(self.home, Home::Everybody(_))
    }

    /// Whether several sessions may have it, whose subscriptions are counted.
    pub(crate) fn has_many(&self) -> bool {
        self.sessions().is_some()
    }

    /// Where the sessions that share it hear of changes.
    fn sessions(&self) -> Option<&Arc<ChangeBus>> {
        match &self.home {
            Home::User(bus) | Home::Everybody(bus) => Some(bus),
            Home::Session(_) | Home::Client => None,
        }
    }

    /// Why it is of no use any more.
    pub(crate) fn lost(&self) -> Option<&Arc<str>> {
        self.lost.get()
    }

    /// Whether another client must not have it: a question of a call that was given up could reach that client.
    pub(crate) fn is_spoiled(&self) -> bool {
        self.spoiled.load(Ordering::Acquire) && !self.raw().transport.attributes()
    }

    /// How long it has had nothing to do; `None` while it has.
    pub(crate) fn idle(&self) -> Option<Duration> {
        let free = self.is_free(&lock(&self.calls));
        free.then(|| lock(&self.used).elapsed())
    }

    fn is_free(&self, calls: &BTreeMap<u64, Arc<Outlet>>) -> bool {
        calls.is_empty()
            && [&self.holds, &self.subscriptions].iter().all(|count| count.load(Ordering::Relaxed) == 0)
            && !lock(&self.reserved).taken
    }

    /// Keeps it open until [`release`](Self::release), if it is.
    pub(crate) fn hold(&self) -> bool {
        let _calls = lock(&self.calls);
        let open = self.lost.get().is_none();
        self.holds.fetch_add(usize::from(open), Ordering::Relaxed);
        open
    }

    /// Takes it for a call that may be asked something by an upstream that does not say during which call it asks. If another
    /// such call has it, it comes later; never, if the upstream takes the client for one with other capabilities.
    pub(crate) fn reserve(
        self: &Arc<Self>,
        capabilities: &str,
    ) -> Result<Reservation, Option<oneshot::Receiver<Reservation>>> {
        if *self.capabilities != *capabilities {
            return Err(None);
        }
        let mut reserved = lock(&self.reserved);
        if !std::mem::replace(&mut reserved.taken, true) {
            return Ok(Reservation(self.clone()));
        }
        let (next, later) = oneshot::channel();
        reserved.calls.retain(|call| !call.is_closed());
        reserved.calls.push_back(next);
        Err(Some(later))
    }

    /// A request that has held it is done.
    pub(crate) fn release(&self) {
        *lock(&self.used) = Instant::now();
        self.holds.fetch_sub(1, Ordering::Relaxed);
    }

    /// How long ago the upstream said something last. Nothing while it works on a call, which has a deadline of its own: some
    /// servers answer nothing else meanwhile.
    pub(crate) fn quiet(&self) -> Duration {
        let works = lock(&self.calls).values().any(|outlet| !outlet.listens);
        if works { Duration::ZERO } else { lock(&self.heard).elapsed() }
    }

    /// Asks the upstream whether it is there. An error that it answers with is an answer.
    pub(crate) async fn probe(&self) -> Result<(), TransportError> {
        let raw = self.raw();
        let method = if self.features().has_sessions { "ping" } else { "server/discover" };
        let claims = translate::claims(self.features(), "{}", None, None);
        let mut out = Writer::opening().request(self.next_id(), method, Extras::default(), |members| {
            if !self.features().has_sessions {
                members.raw("_meta", &format!("{{{}}}", String::from_utf8_lossy(&claims)));
            }
        });
        out.features = Some(self.features());
        raw.transport.exchange(out).await?;
        *lock(&self.heard) = Instant::now();
        Ok(())
    }

    /// Closes the connection; who needs one opens another.
    pub(crate) async fn close(&self, why: &str) {
        let _ = self.lost.set(why.into());
        self.changes.close();
        if let Some(raw) = self.raw.get() {
            raw.transport.close().await;
        }
        lock(&self.permit).take();
    }

    /// The same in the background, for destructors.
    pub(crate) fn close_later(self: Arc<Self>, why: &'static str) {
        let runtime = self.runtime.clone();
        let _ = self.lost.set(why.into());
        runtime.spawn(boxed(async move { self.close(why).await }));
    }

    /// Begins a call. The id is its own until the result is dropped. `None` if the connection has been closed.
    pub(crate) fn begin(self: &Arc<Self>, outlet: Arc<Outlet>) -> Option<Pending> {
        let id = self.next_id();
        let mut calls = lock(&self.calls);
        if self.lost.get().is_some() {
            return None;
        }
        calls.insert(id, outlet);
        Some(Pending { instance: self.clone(), id, answered: false })
    }

    /// Closes the connection unless it has something to do. Returns whether it was closed.
    pub(crate) async fn close_idle(&self, why: &str) -> bool {
        {
            let calls = lock(&self.calls);
            if !self.is_free(&calls) || self.lost.set(why.into()).is_err() {
                return false;
            }
        }
        self.close(why).await;
        true
    }

    fn outlet(&self, id: Option<u64>) -> Option<Arc<Outlet>> {
        lock(&self.calls).get(&id?).cloned()
    }

    /// The call that a message without attribution belongs to: the latest, where all are one client's.
    fn latest(&self) -> Option<Arc<Outlet>> {
        self.latest_but(&[])
    }

    fn latest_but(&self, tried: &[Weak<Outlet>]) -> Option<Arc<Outlet>> {
        if self.is_shared() {
            return None;
        }
        let is_tried = |outlet: &Arc<Outlet>| tried.iter().any(|tried| tried.as_ptr() == Arc::as_ptr(outlet));
        lock(&self.calls).values().rev().find(|outlet| !outlet.listens && !is_tried(outlet)).cloned()
    }

    /// The session whose connection it is.
    fn session(&self) -> Option<Arc<Session>> {
        match &self.home {
            Home::Session(session) => session.upgrade(),
            _ => None,
        }
    }

    /// Sends a notification or an answer without waiting for it.
    pub(crate) fn send(&self, out: Outgoing) {
        let transport = self.raw().transport.clone();
        self.runtime.spawn(boxed(async move {
            if let Err(why) = transport.notify(out).await {
                tracing::debug!(%why, "a message did not reach the upstream");
            }
        }));
    }

    /// Answers a request of the upstream.
    fn answer(&self, id: &Id, outcome: Result<&str, (i32, &str)>) {
        let Some(raw) = self.raw.get() else { return };
        let mut out = Writer::opening().answer(id.as_json(), outcome);
        out.features = Some(raw.agreed.features);
        self.send(out);
    }

    /// A request of the upstream: for the client of the call during which it came, or of the session.
    fn asked(self: &Arc<Self>, id: &Id, method: &MethodName, message: &Message, during: Option<u64>) {
        if *method == MethodName::Known(Method::Ping) {
            return self.answer(id, Ok("{}"));
        }
        if !self.raw.get().is_some_and(|raw| raw.agreed.features.server_requests) {
            tracing::warn!("the upstream sent a request, which its revision does not have; it is ignored");
            return;
        }
        let question = Question {
            id: id.clone(),
            method: method.as_str().into(),
            params: message.params_text().into(),
            tried: Vec::new(),
        };
        self.ask(self.outlet(during), question);
    }

    /// Asks the client of a call, or of the session. On a pipe nothing says during which call a question came. It is asked during
    /// the latest one; if the upstream answers that one first, it was another one's, if there is one, and is asked once more.
    fn ask(self: &Arc<Self>, known: Option<Arc<Outlet>>, mut question: Question) {
        // A connection that is lent may be another client's by then.
        let is_guess = known.is_none() && matches!(self.home, Home::Session(_));
        let outlet = known.or_else(|| self.latest_but(&question.tried));
        // A question whose call has ended is not asked outside of calls: nobody may wait for it any more.
        let session = self.session().filter(|_| question.tried.is_empty());
        if outlet.is_none() && session.is_none() {
            tracing::info!(
                method = &*question.method,
                "refused a request of the upstream that does not belong to a call"
            );
            let why = match question.tried.is_empty() {
                true => "there is nobody to ask outside of a call",
                false => CANNOT_BE_ASKED,
            };
            return self.answer(&question.id, Err((code::METHOD_NOT_FOUND, why)));
        }
        let (this, method, params) = (Arc::downgrade(self), question.method.clone(), question.params.clone());
        let guess = outlet.as_ref().filter(|_| is_guess && question.tried.len() < GUESSES_MAX);
        let is_wrong = guess.map(|outlet| (outlet.answered.clone(), outlet.may_ask));
        if is_wrong.is_some() {
            lock(&self.guessed).insert(question.id.as_json().into());
        }
        question.tried.extend(outlet.as_ref().map(Arc::downgrade));
        let id = question.id.clone();
        let answer = move |outcome: Result<String, ServerRequestError>| {
            let Some(this) = this.upgrade() else { return };
            lock(&this.questions).remove(question.id.as_json());
            // Neither withdrawn by the upstream, nor refused because the client gave its call up.
            let again = lock(&this.guessed).remove(question.id.as_json())
                && is_wrong.is_some_and(|(answered, may_ask)| !may_ask || answered.load(Ordering::Acquire));
            match &outcome {
                Ok(result) => this.answer(&question.id, Ok(result)),
                Err(ServerRequestError::Rpc(code, why)) => this.answer(&question.id, Err((*code, why))),
                Err(_) if again && this.lost.get().is_none() => this.ask(None, question),
                Err(_) => this.answer(&question.id, Err((code::METHOD_NOT_FOUND, CANNOT_BE_ASKED))),
            }
        };
        let asked =
            ServerRequest { method: String::from(method).into(), params: params.into(), answer: Box::new(answer) };
        match (outlet, session) {
            (Some(outlet), _) => outlet.ask(asked),
            (None, Some(session)) => {
                if let Some(sent) = session.request(asked) {
                    lock(&self.questions).insert(id.as_json().into(), sent);
                }
            }
            (None, None) => {}
        }
    }

    /// A notification of the upstream.
    fn told(&self, method: &str, message: &Message, during: Option<u64>) {
        let params = message.params();
        let number = |span: Option<linchpin_core::Span>| message.text(span?).trim_matches('"').parse::<u64>().ok();
        match method {
            "notifications/progress" => {
                // Tokens are ours: a call without one hears nothing.
                if let Some(outlet) = self.outlet(number(params.progress_token))
                    && let Some(token) = outlet.token()
                {
                    outlet.notify(notice::progress(message, token, outlet.texts()));
                }
            }
            "notifications/cancelled" => {
                let id = params.request_id.map(|id| message.text(id)).unwrap_or_default();
                lock(&self.guessed).remove(id);
                let sent = lock(&self.questions).remove(id);
                if let (Some(sent), Some(session)) = (sent, self.session()) {
                    session.withdraw(sent);
                }
            }
            _ if params.claims.subscription.is_some() => {
                if let Some(id) = number(params.claims.subscription) {
                    self.listened(id, method, message);
                }
            }
            "notifications/tools/list_changed" => self.changed(&ServerChange::Tools),
            "notifications/prompts/list_changed" => self.changed(&ServerChange::Prompts),
            "notifications/resources/list_changed" => self.changed(&ServerChange::Resources),
            "notifications/resources/updated" => {
                let uri = params.uri.and_then(|uri| linchpin_core::json::read_str(message.text(uri)));
                match (self.session(), uri) {
                    // Its own subscriptions, and what lies below them.
                    (Some(session), _) => push(&session, notice::same(message)),
                    (None, Some(uri)) => self.changed(&ServerChange::Updated(uri.as_ref().into())),
                    (None, None) => {}
                }
            }
            "notifications/message" => self.logged(message, during),
            _ => self.passed(message, during),
        }
    }

    /// A log message: not for a client that wants none.
    fn logged(&self, message: &Message, during: Option<u64>) {
        #[derive(serde::Deserialize)]
        struct Params {
            level: Option<LoggingLevel>,
        }
        if let Some(outlet) = self.outlet(during).or_else(|| self.latest())
            && !outlet.wants(serde_json::from_str::<Params>(message.params_text()).ok().and_then(|params| params.level))
        {
            return;
        }
        self.passed(message, during);
    }

    /// A notification of a listen stream: a client's, or one that is held for a session.
    fn listened(&self, id: u64, method: &str, message: &Message) {
        if let Some(outlet) = self.outlet(Some(id)) {
            return outlet.notify(notice::subscribed(message, &outlet.id));
        }
        let newest = self.held.id.load(Ordering::Acquire) == id;
        if !newest && self.held.older.load(Ordering::Acquire) != id {
            return;
        }
        match method {
            "notifications/tools/list_changed" => self.changed(&ServerChange::Tools),
            "notifications/prompts/list_changed" => self.changed(&ServerChange::Prompts),
            "notifications/resources/list_changed" => self.changed(&ServerChange::Resources),
            "notifications/subscriptions/acknowledged" if newest => drop(self.held.acknowledged.send_replace(true)),
            "notifications/subscriptions/acknowledged" => {}
            _ => match (self.session(), message.params().uri) {
                (Some(session), _) => push(&session, notice::to_session(message)),
                (None, Some(uri)) if self.has_many() => {
                    if let Some(uri) = linchpin_core::json::read_str(message.text(uri)) {
                        self.changed(&ServerChange::Updated(uri.as_ref().into()));
                    }
                }
                (None, _) => {}
            },
        }
    }

    /// Tells those of a change whose connection it is.
    pub(crate) fn changed(&self, change: &ServerChange) {
        self.changes.publish(change);
        let streams_of = lock(&self.streams_of).upgrade();
        if let Some(other) = streams_of {
            other.changes.publish(change);
        }
        match (self.session(), self.sessions()) {
            (Some(session), _) => session.feed().into_iter().for_each(|feed| {
                let _ = feed.feed().push(change);
            }),
            (None, Some(bus)) => bus.publish(change),
            (None, None) => {}
        }
    }

    /// Any other notification: to the call during which it came, or to the one client that there is.
    fn passed(&self, message: &Message, during: Option<u64>) {
        let frame = notice::same(message);
        match self.outlet(during).or_else(|| self.latest()) {
            Some(outlet) => outlet.notify(frame),
            None => match self.session() {
                Some(session) => push(&session, frame),
                None => tracing::debug!("dropped a notification of the upstream that does not belong to a call"),
            },
        }
    }
}

fn push(session: &Session, frame: Bytes) {
    if let Some(feed) = session.feed() {
        feed.feed().push(&ServerChange::Log(frame));
    }
}

const CANNOT_BE_ASKED: &str = "the client cannot be asked";

/// During how many calls a question is asked, if they end one after the other.
const GUESSES_MAX: usize = 16;

/// A request of the upstream for its client.
struct Question {
    id: Id,
    method: Box<str>,
    params: Box<str>,
    /// The calls during which it was asked.
    tried: Vec<Weak<Outlet>>,
}

/// Receives what the upstream sends, as long as the instance lives.
pub(crate) struct Post(pub(crate) Weak<Instance>);

impl Inbox for Post {
    fn received(&self, message: Message, during: Option<u64>) {
        let Some(instance) = self.0.upgrade() else { return };
        *lock(&instance.heard) = Instant::now();
        match &message.kind {
            Kind::Request { id, method } => instance.asked(id, method, &message, during),
            Kind::Notification { method } => instance.told(method.as_str(), &message, during),
            Kind::Response { .. } => {}
        }
    }

    fn closed(&self, why: TransportError) {
        let Some(instance) = self.0.upgrade() else { return };
        tracing::info!(%why, "the connection to the upstream ended");
        let _ = instance.lost.set(why.to_string().into());
        instance.changes.close();
        lock(&instance.permit).take();
    }

    fn forgotten(&self) {
        // What has changed since is not known: streams of changes end, and the next request opens a session.
        self.closed(TransportError::Forgotten);
    }
}

/// A call that the upstream has not answered. Dropping it cancels the call there.
pub(crate) struct Pending {
    instance: Arc<Instance>,
    pub(crate) id: u64,
    answered: bool,
}

impl Pending {
    /// Sends the request and waits for the answer.
    pub(crate) async fn exchange(&mut self, out: Outgoing) -> Result<Answer, TransportError> {
        let transport: &Arc<dyn ClientTransport> = &self.instance.raw().transport;
        let answer = transport.exchange(out).await;
        self.answered = true;
        match &answer {
            Ok(_) => {
                *lock(&self.instance.heard) = Instant::now();
                if let Some(outlet) = self.instance.outlet(Some(self.id)) {
                    outlet.answered.store(true, Ordering::Release);
                }
            }
            Err(_) => self.instance.spoiled.store(true, Ordering::Release),
        }
        answer
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        let instance = &self.instance;
        lock(&instance.calls).remove(&self.id);
        *lock(&instance.used) = Instant::now();
        if !self.answered {
            instance.spoiled.store(true, Ordering::Release);
        }
        let transport = &instance.raw().transport;
        if self.answered || transport.cancels_by_dropping() || instance.lost.get().is_some() {
            return;
        }
        let id = self.id.to_string();
        let mut out = Writer::opening().notification("notifications/cancelled", |members| {
            members.raw("requestId", &id);
            members.text("reason", "the client is no longer waiting");
        });
        out.features = Some(instance.features());
        transport.notify_detached(out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::sync::Semaphore;

    #[tokio::test]
    async fn what_a_request_holds_is_not_closed_for_another_and_what_is_closed_cannot_be_held() {
        let permit = Arc::new(Semaphore::new(1)).acquire_owned().await.unwrap();
        let instance = Instance::new(Home::Client, "{}", permit);
        // Held by who opened it.
        assert!(instance.idle().is_none() && !instance.close_idle("another").await);
        assert!(instance.hold());
        instance.release();
        assert!(!instance.close_idle("another").await);
        instance.release();
        assert!(instance.idle().is_some() && instance.close_idle("another").await);
        assert!(!instance.hold());
    }
}
