//! Notifications of clients and subscriptions to resources: their handlers, and how they run.
//!
//! A handler is polled once in place: one that is ready at once is over before the next message is read. Others go on in
//! tasks, which are limited like calls. What is over the limit is dropped, except for the handlers that hear the end of a
//! subscription: they always run, and new subscriptions are refused while too many of them do.

use crate::custom_method::parameters;
use crate::cx::Cx;
use crate::invocation::Invocation;
use crate::running_server::RunningServer;
use crate::shared::clip;
use crate::state::Owner;
use crate::target::Target;
use linchpin_core::json::write_str;
use linchpin_core::message::{MethodName, Notification, Params, Request};
use linchpin_core::service::{BoxFuture, RequestContext};
use linchpin_core::{Caller, Id, Method, Reply, ReplyKind, Session, Span, Subscription};
use linchpin_types::error::code::{INTERNAL_ERROR, INVALID_PARAMS};
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::task::JoinSet;

/// Runs the handlers of a notification.
pub(crate) fn notified(core: &Arc<RunningServer>, told: Notification, context: Arc<RequestContext>) {
    if !core.hooks.notifications.contains_key(told.method.as_str()) {
        return tracing::debug!(name = %clip(told.method.as_str()), "notification without a handler");
    }
    let Notification { method, caller, params, frame, .. } = told;
    let request = Arc::new(Request::new(Id::unknown(), method, caller, params, frame));
    let running = core.clone();
    launch(core, async move {
        let targets = running.hooks.notifications.get(request.method.as_str()).map_or(&[][..], Vec::as_slice);
        for target in targets {
            if let Err(reply) = run(&running, target, &request, &context).await {
                failed(target, &reply);
            }
        }
    });
}

/// Runs one handler.
async fn run(
    core: &Arc<RunningServer>,
    target: &Target,
    request: &Arc<Request>,
    context: &Arc<RequestContext>,
) -> Result<(), Reply> {
    let Some(args) = parameters(request) else { return Ok(()) };
    let cx = target.wants_cx.then(|| Cx::outside(request.clone(), context.clone(), core.shared.clone()));
    let owner = target.per_session.then(|| Owner::of(&request.caller, context)).flatten();
    let invocation = Invocation { args, cx: cx.clone(), out: core.writer(request), explain: None, owner };
    let mut future = (target.run)(invocation);
    let guarded = poll_fn(|task| {
        catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(task))).unwrap_or_else(|_| {
            tracing::error!(name = &*target.name, "a handler panicked");
            Poll::Ready(core.writer(request).error(INTERNAL_ERROR, "it stopped unexpectedly", None))
        })
    });
    let limit = core.limits.calls.run_ms_max;
    let done = tokio::time::timeout(Duration::from_millis(limit), guarded).await;
    if let Some(cx) = cx {
        cx.0.close();
    }
    match done {
        Ok(reply) if reply.is_error() => Err(reply),
        Ok(_) => Ok(()),
        Err(_) => {
            let why = format!("it took longer than the server's limit of {limit} ms");
            Err(core.writer(request).error(INTERNAL_ERROR, &why, None))
        }
    }
}

/// Logs the error of a handler, but never what the client sent.
fn failed(target: &Target, reply: &Reply) {
    let name = &*target.name;
    match reply.kind() {
        ReplyKind::Error(INVALID_PARAMS) => tracing::warn!(name, "the parameters of a notification are invalid"),
        _ => tracing::warn!(name, error = reply.body(), "a handler of notifications failed"),
    }
}

/// Starts `work`, unless too many handlers of notifications run.
fn launch(core: &RunningServer, work: impl Future<Output = ()> + Send + 'static) {
    if running(&core.background).len() >= core.limits.calls.concurrent_max {
        return tracing::warn!("too many handlers of notifications run at once; a notification is dropped");
    }
    start(&core.background, work);
}

/// Polls `work` once, and moves it to a task if it is not ready.
fn start(tasks: &Mutex<JoinSet<()>>, work: impl Future<Output = ()> + Send + 'static) {
    let Ok(runtime) = Handle::try_current() else {
        return tracing::debug!("notification handlers need a Tokio runtime");
    };
    let mut work: BoxFuture<'static, ()> = Box::pin(work);
    if work.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending() {
        running(tasks).spawn_on(work, &runtime);
    }
}

/// The tasks that are not over.
fn running(tasks: &Mutex<JoinSet<()>>) -> MutexGuard<'_, JoinSet<()>> {
    let mut tasks = tasks.lock().unwrap_or_else(PoisonError::into_inner);
    while tasks.try_join_next().is_some() {}
    tasks
}

/// Checks that there is room for a new subscription. The handlers of its end will run in any case, so this bounds their number.
///
/// # Errors
/// The response that refuses it.
pub(crate) fn admit(core: &RunningServer, id: &Id) -> Result<(), Reply> {
    let limit = core.limits.calls.concurrent_max;
    if running(&core.ends).len() < limit {
        return Ok(());
    }
    let why = format!("the server is busy (limit of {limit} subscriptions that end at once); try again");
    Err(Reply::error(Some(id), INTERNAL_ERROR, &why, None))
}

/// The subscriptions of a session or a stream, so that each ends once: its hooks run for what is left when it is dropped.
pub(crate) struct Watch {
    core: Weak<RunningServer>,
    /// Never holds the session that holds this.
    caller: Caller,
    context: Arc<RequestContext>,
    uris: Mutex<Uris>,
}

type Uris = BTreeMap<Box<str>, Watched>;

/// A URI that somebody has asked for.
#[derive(Default)]
struct Watched {
    turn: Arc<Turn>,
    /// How many requests since the client last unsubscribed were accepted or still wait.
    wanted: usize,
    /// How often the client has unsubscribed.
    ended: usize,
}

/// Whether the hooks of a URI have run. Who holds it runs them: what is subscribed to and unsubscribed from at once runs one after
/// the other, in the order of the requests.
type Turn = tokio::sync::Mutex<bool>;

/// The key of a session's [`Watch`] among its values; those of states count up from 0.
const KEY: u64 = u64::MAX;

/// Runs the hooks for the subscriptions of a session that another process opened.
pub(crate) fn resumed(core: &Arc<RunningServer>, session: &Arc<Session>, context: &RequestContext) {
    let uris = session.feed().map(|feed| feed.feed().subscriptions()).unwrap_or_default();
    if uris.is_empty() {
        return;
    }
    let (running, session, watch) = (core.clone(), session.clone(), Watch::of(session, core, context));
    launch(core, async move {
        let caller = Caller::of_session(session.clone());
        for uri in uris {
            let Some(feed) = session.feed() else { return };
            if let Err(refused) = watch.ask(&uri, feed.feed()).run(&running, &Id::unknown(), &caller).await {
                tracing::debug!(error = refused.body(), "a subscription of a resumed session was refused");
            }
        }
    });
}

impl Watch {
    /// The subscriptions of a session.
    pub(crate) fn of(session: &Arc<Session>, core: &RunningServer, context: &RequestContext) -> Arc<Watch> {
        let detached = Caller::of_session(Arc::new(session.detached()));
        let new = Arc::new(Watch::new(core.this.clone(), detached, context));
        session.locals().get_or_insert(KEY, || new.clone()).downcast().unwrap_or(new)
    }

    /// The subscriptions of a session, if the hooks know of any.
    pub(crate) fn existing(session: &Session) -> Option<Arc<Watch>> {
        session.locals().get(KEY)?.downcast().ok()
    }

    /// `caller` must not keep this alive.
    pub(crate) fn new(core: Weak<RunningServer>, caller: Caller, context: &RequestContext) -> Watch {
        let kept = RequestContext::default().with(|kept| {
            kept.principal = context.principal.clone();
            kept.connection = context.connection.clone();
        });
        Watch { core, caller, context: Arc::new(kept), uris: Mutex::default() }
    }

    fn uris(&self) -> MutexGuard<'_, Uris> {
        self.uris.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers a request to subscribe. Its URI is in `feed`, or is added next.
    pub(crate) fn ask(self: &Arc<Self>, uri: &str, feed: &Arc<Subscription>) -> Asked {
        let (watch, feed, uri) = (self.clone(), feed.clone(), Box::<str>::from(uri));
        let mut uris = self.uris();
        let watched = uris.entry(uri.clone()).or_default();
        watched.wanted += 1;
        Asked { watch, feed, uri, turn: watched.turn.clone(), ended: watched.ended, accepted: false }
    }

    /// Runs the hooks of a subscription that ended, after those of its begin.
    pub(crate) fn unsubscribe(self: &Arc<Self>, caller: Caller, uri: &str) {
        let Some(core) = self.core.upgrade() else { return };
        let mut uris = self.uris();
        let Some(watched) = uris.get_mut(uri).filter(|watched| watched.wanted > 0) else { return };
        watched.wanted = 0;
        watched.ended += 1;
        let turn = watched.turn.clone();
        drop(uris);
        let (watch, running, uri) = (self.clone(), core.clone(), Box::<str>::from(uri));
        start(&core.ends, async move {
            let was_open = std::mem::replace(&mut *turn.lock().await, false);
            if was_open {
                unsubscribed(&running, caller, watch.context.clone(), &uri);
            }
            forget(&mut watch.uris(), &uri, turn);
        });
    }
}

/// Forgets a URI without subscriptions, once no request waits for it. `turn` is that of the request that ends.
fn forget(uris: &mut Uris, uri: &str, turn: Arc<Turn>) {
    drop(turn);
    if uris.get(uri).is_some_and(|watched| watched.wanted == 0 && Arc::strong_count(&watched.turn) == 1) {
        uris.remove(uri);
    }
}

/// A request to subscribe. If it is refused or dropped, the URI is removed from the feed, unless another request still wants it.
pub(crate) struct Asked {
    watch: Arc<Watch>,
    feed: Arc<Subscription>,
    uri: Box<str>,
    turn: Arc<Turn>,
    /// [`Watched::ended`] at the time of the request. Once the client has unsubscribed, this request no longer counts.
    ended: usize,
    accepted: bool,
}

impl Asked {
    /// Runs the hooks of a new subscription. If one of them refuses, or this is dropped meanwhile, those that have run hear that it
    /// has ended.
    ///
    /// # Errors
    /// The response that refuses it.
    pub(crate) async fn run(mut self, core: &Arc<RunningServer>, id: &Id, caller: &Caller) -> Result<(), Reply> {
        let mut open = self.turn.lock().await;
        if !*open {
            Begun { watch: &self.watch, core, caller, uri: &self.uri, hooks: 0 }.run(id).await?;
            *open = true;
        }
        self.accepted = true;
        Ok(())
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        let mut uris = self.watch.uris();
        let own = uris.get_mut(&self.uri).filter(|watched| !self.accepted && watched.ended == self.ended);
        if let Some(watched) = own {
            watched.wanted -= 1;
            if watched.wanted == 0 {
                self.feed.unsubscribe(&self.uri);
            }
        }
        forget(&mut uris, &self.uri, std::mem::take(&mut self.turn));
    }
}

/// A subscription whose hooks run: if they do not all run to their end, those that did hear that it has ended.
struct Begun<'a> {
    watch: &'a Watch,
    core: &'a Arc<RunningServer>,
    caller: &'a Caller,
    uri: &'a str,
    /// How many have run.
    hooks: usize,
}

impl Begun<'_> {
    async fn run(&mut self, id: &Id) -> Result<(), Reply> {
        let request = about(id.clone(), Method::ResourcesSubscribe, self.caller.clone(), self.uri);
        for target in &self.core.hooks.subscribe {
            run(self.core, target, &request, &self.watch.context).await?;
            self.hooks += 1;
        }
        self.hooks = 0;
        Ok(())
    }
}

impl Drop for Begun<'_> {
    fn drop(&mut self) {
        if self.hooks > 0 {
            unsubscribed(self.core, self.caller.clone(), self.watch.context.clone(), self.uri);
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let Some(core) = self.core.upgrade() else { return };
        for (uri, watched) in std::mem::take(self.uris.get_mut().unwrap_or_else(PoisonError::into_inner)) {
            if watched.turn.try_lock().is_ok_and(|open| *open) {
                unsubscribed(&core, self.caller.clone(), self.context.clone(), &uri);
            }
        }
    }
}

fn unsubscribed(core: &Arc<RunningServer>, caller: Caller, context: Arc<RequestContext>, uri: &str) {
    if core.hooks.unsubscribe.is_empty() {
        return;
    }
    let (running, request) = (core.clone(), about(Id::unknown(), Method::ResourcesUnsubscribe, caller, uri));
    start(&core.ends, async move {
        for target in &running.hooks.unsubscribe {
            if let Err(reply) = run(&running, target, &request, &context).await {
                failed(target, &reply);
            }
        }
    });
}

/// What a hook of subscriptions is given: the URI as its only parameter.
fn about(id: Id, method: Method, caller: Caller, uri: &str) -> Arc<Request> {
    let mut frame = b"{\"uri\":".to_vec();
    let start = frame.len();
    write_str(&mut frame, uri);
    let end = frame.len();
    frame.push(b'}');
    let all = Some(Span::new(0, end + 1));
    let params = Params::default().with(|params| (params.all, params.uri) = (all, Some(Span::new(start, end))));
    let frame = String::from_utf8(frame).unwrap_or_default().into();
    Arc::new(Request::new(id, MethodName::Known(method), caller, params, frame))
}
