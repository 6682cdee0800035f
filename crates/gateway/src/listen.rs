//! Subscriptions and log levels, where the two sides have them in different ways or many share them.

use crate::call::Outlet;
use crate::exchange::{Failure, begin, exchange};
use crate::instance::Instance;
use crate::lock;
use crate::place::Core;
use crate::subscribed::Subscribed;
use linchpin_core::message::{Kind, Request};
use linchpin_core::service::{BoxFuture, RequestContext, boxed};
use linchpin_core::subscription::{Filter, Subscription};
use linchpin_core::{
    Answer, ClientTransport, Features, Id, Method, Reply, Session, SubscriptionHandle, TransportError, render,
};
use linchpin_proto::message_writer::{Extras, Writer};
use linchpin_proto::translate;
use linchpin_types::error::code;
use linchpin_types::logging::LoggingLevel;
use linchpin_types::subscribe::SubscriptionFilter;
use serde::Deserialize;
use serde_json::json;
use std::future::poll_fn;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// How long a subscription waits for the upstream's acknowledgement.
const ACKNOWLEDGED: Duration = Duration::from_secs(2);
/// The pause before a stream of changes is opened again, after a change of what is wanted and after a failure, and the
/// longest after failures.
const PAUSE: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(30));

/// The level that `logging/setLevel` asks for.
fn level(request: &Request) -> Option<LoggingLevel> {
    #[derive(Deserialize)]
    struct Params {
        level: LoggingLevel,
    }
    request.decode::<Params>().ok().map(|params| params.level)
}

fn uri(request: &Request) -> Option<String> {
    request.string(request.params.uri).map(|uri| uri.into_owned())
}

fn empty(request: &Request) -> Reply {
    Reply::with_result(&request.id, "{}".into())
}

fn invalid(request: &Request, why: &str) -> Reply {
    Reply::error(Some(&request.id), code::INVALID_PARAMS, why, None)
}

/// The upstream's refusal, as it is.
fn refusal(request: &Request, error: Refused) -> Reply {
    let code = translate::error::Seen::read(&error).code;
    Reply::with_error(&request.id, code, error.into())
}

/// Answers what only sessions have, for an upstream without sessions. `None` for other methods.
pub(crate) async fn for_session(core: &Arc<Core>, request: &Request, instance: &Arc<Instance>) -> Option<Reply> {
    let session = request.caller.session()?;
    match request.known()? {
        Method::Ping => Some(empty(request)),
        Method::LoggingSetLevel => Some(match level(request) {
            // It is said with each request from now on.
            Some(level) => {
                session.set_log_level(level);
                empty(request)
            }
            None => invalid(request, "`level` must be a log level, for example \"warning\""),
        }),
        Method::ResourcesSubscribe => Some(Box::pin(subscribe(core, request, session, instance)).await),
        Method::ResourcesUnsubscribe => {
            let (Some(uri), Some(feed)) = (uri(request), session.feed()) else {
                return Some(invalid(request, "`uri` must be the URI of a resource"));
            };
            if feed.feed().subscriptions().iter().any(|known| **known == *uri) {
                feed.feed().unsubscribe(&uri);
                if let Some(own) = subscribed(core, session) {
                    own.remove(&uri);
                }
                wants_less(session, instance, &uri);
                instance.held.wanted.notify_one();
            }
            Some(empty(request))
        }
        _ => None,
    }
}

/// Adds a resource to the stream of changes that is held for the session.
async fn subscribe(core: &Arc<Core>, request: &Request, session: &Session, instance: &Arc<Instance>) -> Reply {
    let (Some(uri), Some(feed)) = (uri(request), session.feed()) else {
        return invalid(request, "`uri` must be the URI of a resource");
    };
    let limits = &core.pool.options.limits;
    if feed.feed().subscriptions().iter().any(|known| **known == *uri) {
        return empty(request);
    }
    if let Err(why) = feed.feed().subscribe(&uri, limits.subscriptions.resources_max, &core.budget) {
        return invalid(request, &why.to_string());
    }
    if instance.has_many() {
        *lock(&instance.watched).entry(uri.as_str().into()).or_insert(0) += 1;
        if let Some(own) = subscribed(core, session) {
            own.add(instance, &uri);
        }
    }
    keep_count(session, instance);
    instance.held.acknowledged.send_replace(false);
    instance.held.wanted.notify_one();
    let mut acknowledged = instance.held.acknowledged.subscribe();
    match tokio::time::timeout(ACKNOWLEDGED, acknowledged.wait_for(|done| *done)).await {
        Ok(Ok(_)) => empty(request),
        _ => {
            feed.feed().unsubscribe(&uri);
            if let Some(own) = subscribed(core, session) {
                own.remove(&uri);
            }
            wants_less(session, instance, &uri);
            invalid(request, "the upstream does not acknowledge the subscription")
        }
    }
}

/// One session less wants to know of a resource.
fn wants_less(session: &Session, instance: &Instance, uri: &str) {
    if instance.has_many() {
        one_less(instance, uri);
    }
    keep_count(session, instance);
}

fn one_less(instance: &Instance, uri: &str) {
    let mut watched = lock(&instance.watched);
    if watched.get_mut(uri).is_some_and(|count| {
        *count -= 1;
        *count == 0
    }) {
        watched.remove(uri);
    }
}

/// What the session has subscribed to at connections that it shares.
fn subscribed(core: &Arc<Core>, session: &Session) -> Option<Arc<Subscribed>> {
    Subscribed::of(session, core.subscribed_key(), || {
        let core = Arc::downgrade(core);
        Box::new(move |instance: Arc<Instance>, uri| {
            if let Some(core) = core.upgrade() {
                instance.runtime().clone().spawn(boxed(async move { given_back(&core, &instance, &uri).await }));
            }
        })
    })
}

/// A session that shared this connection has ended, and with it its subscription to a resource.
async fn given_back(core: &Core, instance: &Arc<Instance>, uri: &str) {
    if instance.features().has_sessions {
        let _ = unwatch(core, instance, uri).await;
        return;
    }
    one_less(instance, uri);
    instance.subscriptions.store(lock(&instance.watched).len(), Ordering::Relaxed);
    instance.held.wanted.notify_one();
}

/// An instance is not idle while its session has subscriptions.
fn keep_count(session: &Session, instance: &Instance) {
    let count = match instance.has_many() {
        true => lock(&instance.watched).len(),
        false => session.feed().map_or(0, |feed| feed.feed().subscriptions().len()),
    };
    instance.subscriptions.store(count, Ordering::Relaxed);
}

/// Holds a stream of changes for a session, or for all that share an upstream, once for each connection.
pub(crate) fn hold(instance: &Arc<Instance>, session: &Arc<Session>) {
    if instance.held.begun.swap(true, Ordering::AcqRel) {
        return;
    }
    tokio::spawn(boxed(keep_holding(Arc::downgrade(instance), Arc::downgrade(session))));
}

async fn keep_holding(instance: Weak<Instance>, session: Weak<Session>) {
    let Some(transport) = instance.upgrade().map(|open| open.raw().transport.clone()) else { return };
    let mut pause = PAUSE.0;
    // The stream before, until the new one is acknowledged: no change is missed between them.
    let mut older: Option<Stream<'_>> = None;
    loop {
        let Some(open) = instance.upgrade() else { return };
        let own = session.upgrade().filter(|_| !open.has_many());
        if own.is_none() && !open.has_many() {
            return;
        }
        let id = open.next_id();
        let out = wanted(&open, own.as_ref(), id);
        drop(own);
        open.held.older.store(older.as_ref().map_or(0, |stream| stream.id), Ordering::Release);
        open.held.id.store(id, Ordering::Release);
        open.held.acknowledged.send_replace(false);
        let mut acknowledged = open.held.acknowledged.subscribe();
        let began = Instant::now();
        let answer = transport.exchange(out);
        let mut stream = Stream { id, transport: &*transport, features: open.features(), answer, answered: false };
        let ended = loop {
            tokio::select! {
                biased;
                answer = &mut stream.answer => break Some(answer),
                () = open.held.wanted.notified() => break None,
                () = replaced(&mut older, &mut acknowledged), if older.is_some() => older = None,
            }
        };
        let lost = open.lost().is_some();
        drop(open);
        match ended {
            None if lost => return,
            None => {
                older = older.or(Some(stream));
                tokio::time::sleep(PAUSE.0).await;
            }
            Some(answer) => {
                stream.answered = true;
                older = None;
                let again = match &answer {
                    Ok(answer) => !matches!(answer.message.kind, Kind::Response { outcome: Err(_), .. }),
                    Err(why) => !why.is_closed(),
                };
                if !again || lost {
                    return;
                }
                pause = if began.elapsed() > PAUSE.1 { PAUSE.0 } else { pause };
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(PAUSE.1);
            }
        }
    }
}

/// An open stream of changes. Dropping it ends it at the upstream.
struct Stream<'a> {
    id: u64,
    transport: &'a dyn ClientTransport,
    features: &'static Features,
    answer: BoxFuture<'a, Result<Answer, TransportError>>,
    answered: bool,
}

impl Drop for Stream<'_> {
    fn drop(&mut self) {
        if self.answered || self.transport.cancels_by_dropping() {
            return;
        }
        let id = self.id.to_string();
        let mut out = Writer::opening().notification("notifications/cancelled", |m| m.raw("requestId", &id));
        out.features = Some(self.features);
        self.transport.notify_detached(out);
    }
}

/// Waits until the stream before is not needed any more.
async fn replaced(older: &mut Option<Stream<'_>>, acknowledged: &mut watch::Receiver<bool>) {
    let Some(older) = older else { return };
    let new = async { drop(acknowledged.wait_for(|done| *done).await) };
    tokio::select! {
        biased;
        _ = &mut older.answer => older.answered = true,
        () = new => {}
        () = tokio::time::sleep(ACKNOWLEDGED) => {}
    }
}

/// The request for the changes that are wanted: all lists, and the resources that were subscribed to.
fn wanted(instance: &Instance, session: Option<&Arc<Session>>, id: u64) -> linchpin_core::Outgoing {
    let caller = session.map(|session| linchpin_core::Caller::of_session(session.clone()));
    let capabilities = caller.as_ref().map_or("{}", |caller| caller.capabilities_json());
    let info = caller.as_ref().and_then(|caller| caller.client_info_json());
    let claims = translate::claims(instance.features(), capabilities, info, None);
    let uris: Vec<Box<str>> = match session {
        Some(session) => session.feed().map(|feed| feed.feed().subscriptions()).unwrap_or_default(),
        None => lock(&instance.watched).keys().cloned().collect(),
    };
    let mut filter = json!({ "toolsListChanged": true, "promptsListChanged": true, "resourcesListChanged": true });
    if !uris.is_empty() {
        filter["resourceSubscriptions"] = uris.iter().map(|uri| &**uri).collect();
    }
    let mut out = Writer::opening().request(id, "subscriptions/listen", Extras::default(), |members| {
        members.raw("notifications", &filter.to_string());
        members.raw("_meta", &format!("{{{}}}", String::from_utf8_lossy(&claims)));
    });
    out.features = Some(instance.features());
    out
}

/// Whether a session's request concerns what all have in common at a shared upstream.
pub(crate) fn joins(request: &Request, instance: &Instance) -> bool {
    let common = [Method::ResourcesSubscribe, Method::ResourcesUnsubscribe, Method::LoggingSetLevel];
    instance.has_many() && request.known().is_some_and(|method| common.contains(&method))
}

/// Subscribes at a shared upstream for the first that wants it, and unsubscribes for the last.
pub(crate) async fn shared_session(
    core: &Arc<Core>,
    request: &Request,
    instance: &Arc<Instance>,
) -> Result<Reply, Failure> {
    let Some(session) = request.caller.session() else { return Ok(invalid(request, "there is no session")) };
    if request.known() == Some(Method::LoggingSetLevel) {
        let Some(level) = level(request) else {
            return Ok(invalid(request, "`level` must be a log level, for example \"warning\""));
        };
        session.set_log_level(level);
        if let Err(refused) = least(core, instance, level).await? {
            return Ok(refusal(request, refused));
        }
        return Ok(empty(request));
    }
    let (Some(uri), Some(feed)) = (uri(request), session.feed()) else {
        return Ok(invalid(request, "`uri` must be the URI of a resource"));
    };
    let had = feed.feed().subscriptions().iter().any(|known| **known == *uri);
    if request.known() == Some(Method::ResourcesUnsubscribe) {
        feed.feed().unsubscribe(&uri);
        if let Some(own) = subscribed(core, session) {
            own.remove(&uri);
        }
        if had {
            unwatch(core, instance, &uri).await?;
        }
        return Ok(empty(request));
    }
    let max = core.pool.options.limits.subscriptions.resources_max;
    if let Err(why) = feed.feed().subscribe(&uri, max, &core.budget) {
        return Ok(invalid(request, &why.to_string()));
    }
    if !had {
        if let Err(refused) = watch(core, instance, &uri).await? {
            feed.feed().unsubscribe(&uri);
            return Ok(refusal(request, refused));
        }
        if let Some(own) = subscribed(core, session) {
            own.add(instance, &uri);
        }
    }
    Ok(empty(request))
}

/// Asks an upstream with sessions for log messages from this level on, if those that were asked for are fewer.
pub(crate) async fn least(
    core: &Core,
    instance: &Arc<Instance>,
    level: LoggingLevel,
) -> Result<Result<(), Refused>, Failure> {
    if instance.raw().agreed.capabilities.logging.is_none() {
        return Ok(Ok(()));
    }
    {
        let mut lowest = lock(&instance.lowest);
        if lowest.is_some_and(|lowest| lowest <= level) {
            return Ok(Ok(()));
        }
        *lowest = Some(level);
    }
    ask(core, instance, "logging/setLevel", "level", level.as_str()).await
}

/// What the upstream refused with: an error object as JSON text.
pub(crate) type Refused = String;

/// Asks the upstream to tell of a resource, for the first that wants it.
async fn watch(core: &Core, instance: &Arc<Instance>, uri: &str) -> Result<Result<(), Refused>, Failure> {
    let first = {
        let mut watched = lock(&instance.watched);
        let count = watched.entry(uri.into()).or_insert(0);
        *count += 1;
        *count == 1
    };
    if !first {
        return Ok(Ok(()));
    }
    instance.subscriptions.fetch_add(1, Ordering::Relaxed);
    let asked = ask(core, instance, "resources/subscribe", "uri", uri).await;
    if !matches!(asked, Ok(Ok(()))) {
        lock(&instance.watched).remove(uri);
        instance.subscriptions.fetch_sub(1, Ordering::Relaxed);
    }
    asked
}

/// The other way round, for the last.
async fn unwatch(core: &Core, instance: &Arc<Instance>, uri: &str) -> Result<(), Failure> {
    let last = {
        let mut watched = lock(&instance.watched);
        let left = watched.get_mut(uri).map(|count| {
            *count -= 1;
            *count
        });
        if left == Some(0) {
            watched.remove(uri);
        }
        left == Some(0)
    };
    if last {
        instance.subscriptions.fetch_sub(1, Ordering::Relaxed);
        ask(core, instance, "resources/unsubscribe", "uri", uri).await.map(drop)?;
    }
    Ok(())
}

/// A request of the bridge itself, with one text.
async fn ask(
    core: &Core,
    instance: &Arc<Instance>,
    method: &'static str,
    name: &str,
    text: &str,
) -> Result<Result<(), Refused>, Failure> {
    let outlet = Outlet::new(Id::unknown(), None, false, false);
    let mut pending = begin(instance, &outlet)?;
    let mut out = Writer::opening().request(pending.id, method, Extras::default(), |m| m.text(name, text));
    out.features = Some(instance.features());
    let answer = exchange(core.limit_ms(), instance, &outlet, &mut pending, out).await?;
    Ok(match &answer.message.kind {
        Kind::Response { outcome: Err(error), .. } => Err(answer.message.text(*error).to_owned()),
        _ => Ok(()),
    })
}

/// Remembers what a session has asked of its upstream, to ask for it again when the connection has to be opened anew.
pub(crate) fn noted(core: &Core, request: &Request, context: &RequestContext, instance: &Instance, reply: &Reply) {
    let (Some(session), Some(method)) = (request.caller.session(), request.known()) else { return };
    if reply.is_error() {
        return;
    }
    match (method, session.feed(), uri(request)) {
        (Method::LoggingSetLevel, ..) => {
            if let (Some(level), Some(owner)) = (level(request), core.own(&request.caller, context)) {
                session.set_log_level(level);
                owner.has_level.store(true, Ordering::Relaxed);
            }
        }
        (Method::ResourcesSubscribe, Some(feed), Some(uri)) => {
            let max = core.pool.options.limits.subscriptions.resources_max;
            if feed.feed().subscribe(&uri, max, &core.budget).is_err() {
                tracing::debug!("a subscription is not remembered: there are too many");
            }
            keep_count(session, instance);
        }
        (Method::ResourcesUnsubscribe, Some(feed), Some(uri)) => {
            feed.feed().unsubscribe(&uri);
            keep_count(session, instance);
        }
        _ => {}
    }
}

/// A stream of changes of an upstream with sessions, for a client whose requests are stateless.
pub(crate) async fn stateless(
    core: &Arc<Core>,
    request: &Request,
    outlet: &Outlet,
    instance: &Arc<Instance>,
) -> Result<Reply, Failure> {
    #[derive(Deserialize)]
    struct Params {
        notifications: SubscriptionFilter,
    }
    let wanted = match request.decode::<Params>() {
        Ok(params) => params.notifications,
        Err(why) => return Ok(invalid(request, &why.message)),
    };
    let can = &instance.raw().agreed.capabilities;
    let filter = Filter {
        tools: wanted.tools_list_changed == Some(true)
            && can.tools.as_ref().is_some_and(|tools| tools.list_changed == Some(true)),
        prompts: wanted.prompts_list_changed == Some(true)
            && can.prompts.as_ref().is_some_and(|prompts| prompts.list_changed == Some(true)),
        resources: wanted.resources_list_changed == Some(true)
            && can.resources.as_ref().is_some_and(|resources| resources.list_changed == Some(true)),
    };
    let limits = &core.pool.options.limits.subscriptions;
    let Some(feed) = instance.changes.open(filter, limits.streams_max) else {
        return Ok(Reply::error(Some(&request.id), code::INTERNAL_ERROR, "too many open subscriptions", None));
    };
    let mut watching = Watching { core: core.clone(), instance: instance.clone(), feed, uris: Vec::new() };
    for uri in &wanted.resource_subscriptions {
        // What the upstream refuses is not granted.
        if watching.feed.feed().subscribe(uri, limits.resources_max, &core.budget).is_err() {
            return Ok(invalid(request, "too many resources in one subscription"));
        }
        match watch(core, instance, uri).await? {
            Ok(()) => watching.uris.push(uri.as_str().into()),
            Err(_) => watching.feed.feed().unsubscribe(uri),
        }
    }
    outlet.notify(render::acknowledged(&request.id, &granted(filter, &watching.uris)));
    let feed: Arc<Subscription> = watching.feed.feed().clone();
    while let Some(change) = poll_fn(|cx| feed.poll_next(cx)).await {
        outlet.notify(change.frame(Some(&request.id)));
    }
    let mut result = json!({ "resultType": "complete" }).to_string();
    result.pop();
    let mut meta = Vec::new();
    render::subscription_meta(&mut meta, &request.id);
    let result = [result.as_bytes(), b",", &meta, b"}"].concat();
    Ok(Reply::with_result(&request.id, result.into()))
}

/// The granted filter, as members of an object.
fn granted(filter: Filter, uris: &[Box<str>]) -> Vec<u8> {
    let mut made = serde_json::Map::new();
    for (name, on) in [
        ("toolsListChanged", filter.tools),
        ("promptsListChanged", filter.prompts),
        ("resourcesListChanged", filter.resources),
    ] {
        if on {
            made.insert(name.to_owned(), true.into());
        }
    }
    if !uris.is_empty() {
        made.insert("resourceSubscriptions".to_owned(), uris.iter().map(|uri| &**uri).collect());
    }
    let object = serde_json::Value::Object(made).to_string();
    object.trim_start_matches('{').trim_end_matches('}').as_bytes().to_vec()
}

/// The resources of one stream of changes. Dropping it unsubscribes.
struct Watching {
    core: Arc<Core>,
    instance: Arc<Instance>,
    feed: SubscriptionHandle,
    uris: Vec<Box<str>>,
}

impl Drop for Watching {
    fn drop(&mut self) {
        if self.uris.is_empty() || self.instance.lost().is_some() {
            return;
        }
        let (core, instance, uris) = (self.core.clone(), self.instance.clone(), std::mem::take(&mut self.uris));
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(boxed(async move {
                for uri in uris {
                    if unwatch(&core, &instance, &uri).await.is_err() {
                        return;
                    }
                }
            }));
        }
    }
}
