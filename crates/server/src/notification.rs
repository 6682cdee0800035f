//! Notifications of clients and subscriptions to resources: their handlers, and how they run.
//!
//! A handler is polled once in place: one that is ready at once is over before the next message is read. Others go on in
//! tasks, which are limited like calls.

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
use linchpin_core::{Caller, Id, Method, Reply, ReplyKind, Session, Span};
use linchpin_types::error::code::{INTERNAL_ERROR, INVALID_PARAMS};
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::runtime::Handle;

/// Runs the handlers of a notification.
pub(crate) fn notified(core: &Arc<RunningServer>, told: Notification, context: Arc<RequestContext>) {
    if !core.hooks.notifications.contains_key(told.method.as_str()) {
        return tracing::debug!(name = %clip(told.method.as_str()), "notification without a handler");
    }
    let Notification { method, caller, params, frame } = told;
    let request = Arc::new(Request { id: Id::unknown(), method, caller, params, progress_token: None, frame });
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

/// Polls `work` once, and moves it to a task if it is not ready.
fn launch(core: &RunningServer, work: impl Future<Output = ()> + Send + 'static) {
    let Ok(runtime) = Handle::try_current() else {
        return tracing::debug!("a handler of notifications needs a runtime");
    };
    let mut tasks = core.background.lock().unwrap_or_else(PoisonError::into_inner);
    while tasks.try_join_next().is_some() {}
    if tasks.len() >= core.limits.calls.concurrent_max {
        return tracing::warn!("too many handlers of notifications run at once; a notification is dropped");
    }
    drop(tasks);
    let mut work: BoxFuture<'static, ()> = Box::pin(work);
    if work.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending() {
        core.background.lock().unwrap_or_else(PoisonError::into_inner).spawn_on(work, &runtime);
    }
}

/// The subscriptions of a session or a stream, so that each ends once: its hooks run for what is left when it is dropped.
pub(crate) struct Watch {
    core: Weak<RunningServer>,
    /// Never holds the session that holds this.
    caller: Caller,
    context: Arc<RequestContext>,
    uris: Mutex<BTreeMap<Box<str>, Arc<Turn>>>,
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
            if let (Err(refused), Some(feed)) =
                (watch.subscribe(&running, &Id::unknown(), &caller, &uri).await, session.feed())
            {
                tracing::debug!(error = refused.body(), "a subscription of a resumed session was refused");
                feed.feed().unsubscribe(&uri);
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
        let (principal, connection) = (context.principal.clone(), context.connection.clone());
        let context = Arc::new(RequestContext { principal, connection, ..RequestContext::default() });
        Watch { core, caller, context, uris: Mutex::default() }
    }

    fn turn(&self, uri: &str) -> Arc<Turn> {
        let mut uris = self.uris.lock().unwrap_or_else(PoisonError::into_inner);
        match uris.get(uri) {
            Some(turn) => turn.clone(),
            None => uris.entry(uri.into()).or_default().clone(),
        }
    }

    /// Forgets a URI that nobody is subscribed to and that nobody waits for.
    fn forget(&self, uri: &str) {
        let mut uris = self.uris.lock().unwrap_or_else(PoisonError::into_inner);
        let unused = |turn: &Arc<Turn>| Arc::strong_count(turn) == 1 && turn.try_lock().is_ok_and(|open| !*open);
        if uris.get(uri).is_some_and(unused) {
            uris.remove(uri);
        }
    }

    /// Whether the hooks of a subscription have run.
    pub(crate) fn is_open(&self, uri: &str) -> bool {
        let uris = self.uris.lock().unwrap_or_else(PoisonError::into_inner);
        uris.get(uri).is_some_and(|turn| turn.try_lock().is_ok_and(|open| *open))
    }

    /// Runs the hooks of a new subscription. If one of them refuses, or this is dropped meanwhile, those that have run hear that it
    /// has ended.
    ///
    /// # Errors
    /// The response that refuses it.
    pub(crate) async fn subscribe(
        &self,
        core: &Arc<RunningServer>,
        id: &Id,
        caller: &Caller,
        uri: &str,
    ) -> Result<(), Reply> {
        let turn = self.turn(uri);
        let outcome = {
            let mut open = turn.lock().await;
            let mut begun = Begun { watch: self, core, caller, uri, hooks: 0 };
            match *open {
                true => Ok(()),
                false => {
                    let outcome = begun.run(id).await;
                    *open = outcome.is_ok();
                    outcome
                }
            }
        };
        drop(turn);
        self.forget(uri);
        outcome
    }

    /// Runs the hooks of a subscription that ended, after those of its begin.
    pub(crate) fn unsubscribe(self: &Arc<Self>, caller: Caller, uri: &str) {
        let known = self.uris.lock().unwrap_or_else(PoisonError::into_inner).get(uri).cloned();
        let (Some(turn), Some(core)) = (known, self.core.upgrade()) else { return };
        let (watch, running, uri) = (self.clone(), core.clone(), Box::<str>::from(uri));
        launch(&core, async move {
            let was_open = std::mem::replace(&mut *turn.lock().await, false);
            if was_open {
                unsubscribed(&running, caller, watch.context.clone(), &uri);
            }
            drop(turn);
            watch.forget(&uri);
        });
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
        for (uri, turn) in std::mem::take(self.uris.get_mut().unwrap_or_else(PoisonError::into_inner)) {
            if turn.try_lock().is_ok_and(|open| *open) {
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
    launch(core, async move {
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
    let params = Params { all, uri: Some(Span::new(start, end)), ..Params::default() };
    let frame = String::from_utf8(frame).unwrap_or_default().into();
    Arc::new(Request { id, method: MethodName::Known(method), caller, params, progress_token: None, frame })
}
