//! The way of a call to the upstream and back.

use crate::call::Outlet;
use crate::instance::{Home, Instance, Opened, Pending};
use crate::listen;
use crate::lock;
use crate::options::Isolation;
use crate::owner::Owner;
use crate::pool::{Pool, Who};
use crate::refusal::{Refusal, TIMEOUT};
use crate::rounds;
use linchpin_core::message::{Kind, Request};
use linchpin_core::service::RequestContext;
use linchpin_core::{Answer, Budget, Caller, ChangeBus, ClientCaps, Features, Method, Outgoing, Reply, TransportError};
use linchpin_proto::translate::{self, Claims, error, open, result};
use linchpin_types::error::code;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What all calls of a bridge share.
pub(crate) struct Core {
    pub(crate) pool: Arc<Pool>,
    /// Of sessions' changes.
    pub(crate) bus: Arc<ChangeBus>,
    /// The memory of all clients.
    pub(crate) budget: Arc<Budget>,
    /// The key of the owners among the values of sessions and connections.
    pub(crate) key: u64,
    /// The owners that all clients of a revision share, by its index.
    pub(crate) shared: Mutex<HashMap<usize, Arc<Owner>>>,
    /// Connections that are lent for a call, by who may have them.
    pub(crate) lent: Mutex<HashMap<Box<str>, Vec<Arc<Instance>>>>,
    /// Arguments that tools want repeated in headers, as far as it was asked.
    pub(crate) mirrored: rounds::Mirrored,
}

/// Connections of one kind that wait to be lent again.
const LENT_MAX: usize = 4;

impl Core {
    /// The owner of a session's connection, or of the connection of a client on a pipe.
    pub(crate) fn own(&self, caller: &Caller, context: &RequestContext) -> Option<Arc<Owner>> {
        let made = |owner: Owner| Arc::new(owner) as Arc<dyn std::any::Any + Send + Sync>;
        let value = match (caller.session(), &context.connection) {
            (Some(session), _) => session.locals().get_or_insert(self.key, || made(Owner::of_session(session))),
            (None, Some(connection)) => connection.get_or_insert(self.key, || made(Owner::of_many())),
            (None, None) => return None,
        };
        value.downcast().ok()
    }

    /// The owner that all clients of this revision share.
    fn everybody(&self, features: &Features) -> Arc<Owner> {
        lock(&self.shared).entry(features.index).or_insert_with(|| Arc::new(Owner::of_many())).clone()
    }

    async fn shared(&self, caller: &Caller) -> Result<Arc<Instance>, Refusal> {
        // Nobody's capabilities: the upstream cannot ask.
        let who = Who { features: caller.features(), capabilities: "{}".into(), info: None };
        self.everybody(caller.features()).instance(&self.pool, &who, || Home::Everybody).await
    }

    /// The connection for a request.
    async fn place(self: &Arc<Self>, request: &Request, context: &RequestContext) -> Result<Place, Refusal> {
        let caller = &request.caller;
        let isolation = self.pool.options.isolation;
        if isolation == Isolation::Shared {
            return self.shared(caller).await.map(Place::Kept);
        }
        if let Some(owner) = self.own(caller, context) {
            let home = || match caller.session() {
                Some(session) => Home::Session(Arc::downgrade(session)),
                None => Home::Client,
            };
            return owner.instance(&self.pool, &who(caller), home).await.map(Place::Kept);
        }
        // Streams of changes last: they belong to the connection that all share.
        let lasts = matches!(request.known(), Some(Method::SubscriptionsListen | Method::ServerDiscover));
        let asks = self.pool.stateless() == Some(false) && can_be_asked(caller);
        if lasts || (isolation == Isolation::Auto && !asks) {
            let instance = self.shared(caller).await?;
            if lasts || !lends(caller, &instance) {
                return Ok(Place::Kept(instance));
            }
        }
        self.lend(request, context).await.map(|(instance, key)| Place::Lent(Lent { core: self.clone(), instance, key }))
    }

    /// Lends a connection for a call: one that was lent to the same before, or a new one.
    async fn lend(&self, request: &Request, context: &RequestContext) -> Result<(Arc<Instance>, Box<str>), Refusal> {
        let caller = &request.caller;
        let identity = context.principal.as_ref().map_or("", |principal| &**principal.identity());
        let key: Box<str> = [identity, "\n", caller.capabilities_json()].concat().into();
        loop {
            let found = lock(&self.lent).get_mut(&key).and_then(Vec::pop);
            match found {
                Some(instance) if instance.lost().is_some() => {}
                Some(instance) => return Ok((instance, key)),
                None => break,
            }
        }
        let owner = Owner::of_many();
        let instance = owner.instance(&self.pool, &who(caller), || Home::Client).await?;
        owner.give_up();
        Ok((instance, key))
    }
}

/// Whether the client declares anything that the upstream might use.
fn can_be_asked(caller: &Caller) -> bool {
    caller.caps() != ClientCaps::default()
}

/// Whether a stateless request needs a connection of its own, because what belongs to it cannot be told from what belongs to
/// others.
fn lends(caller: &Caller, shared: &Instance) -> bool {
    let asks = shared.features().has_sessions && can_be_asked(caller);
    let logs = caller.log_level().is_some() && !shared.raw().transport.attributes();
    asks || logs
}

/// As whom a connection for this caller is opened.
pub(crate) fn who(caller: &Caller) -> Who {
    Who {
        features: caller.features(),
        capabilities: caller.capabilities_json().into(),
        info: caller.client_info_json().map(Into::into),
    }
}

/// The connection of a call.
enum Place {
    Kept(Arc<Instance>),
    Lent(Lent),
}

impl Place {
    fn instance(&self) -> &Arc<Instance> {
        match self {
            Place::Kept(instance) => instance,
            Place::Lent(lent) => &lent.instance,
        }
    }
}

/// A connection that is given back after the call.
struct Lent {
    core: Arc<Core>,
    instance: Arc<Instance>,
    key: Box<str>,
}

impl Drop for Lent {
    fn drop(&mut self) {
        if self.instance.lost().is_some() {
            return;
        }
        let mut lent = lock(&self.core.lent);
        let waiting = lent.entry(std::mem::take(&mut self.key)).or_default();
        waiting.retain(|one| one.lost().is_none());
        if waiting.len() < LENT_MAX {
            waiting.push(self.instance.clone());
        } else {
            self.instance.clone().close_later("it is not needed any more");
        }
    }
}

/// Runs a call and returns its response.
pub(crate) async fn run(
    core: Arc<Core>,
    request: Arc<Request>,
    context: Arc<RequestContext>,
    outlet: Arc<Outlet>,
) -> Reply {
    let done = run_once(&core, &request, &context, &outlet).await;
    let done = match done {
        // The upstream had forgotten the session, so that it did not run the call.
        Err(Failure::Forgotten) => run_once(&core, &request, &context, &outlet).await,
        done => done,
    };
    match done {
        Ok(reply) => reply,
        Err(Failure::Refused(refusal)) => refusal.reply(&request.id, &core.pool.name),
        Err(Failure::Forgotten) => {
            Refusal::unavailable("the upstream forgets its sessions at once").reply(&request.id, &core.pool.name)
        }
    }
}

/// Why there is no answer.
pub(crate) enum Failure {
    Refused(Refusal),
    /// The upstream does not know the session any more: the request may be repeated on a new one.
    Forgotten,
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Failure {
        Failure::Refused(refusal)
    }
}

async fn run_once(
    core: &Arc<Core>,
    request: &Arc<Request>,
    context: &Arc<RequestContext>,
    outlet: &Arc<Outlet>,
) -> Result<Reply, Failure> {
    let place = core.place(request, context).await?;
    let instance = place.instance();
    if let Some(session) = request.caller.session().filter(|_| !instance.features().has_sessions) {
        listen::hold(instance, session);
    }
    if request.known() == Some(Method::Initialize) {
        let opened = open::initialized(request.caller.features(), &instance.raw().agreed);
        return Ok(Reply::with_result(&request.id, opened.into()));
    }
    let done = translated(core, request, context, outlet, instance).await;
    if matches!(done, Err(Failure::Forgotten)) {
        let owner = match core.pool.options.isolation {
            Isolation::Shared => None,
            _ => core.own(&request.caller, context),
        };
        let owner = owner.unwrap_or_else(|| core.everybody(request.caller.features()));
        owner.forget(instance, "the upstream forgot the session");
    }
    done
}

/// Sends a request in the way that the eras of both sides have, and translates the answer.
async fn translated(
    core: &Arc<Core>,
    request: &Arc<Request>,
    context: &RequestContext,
    outlet: &Arc<Outlet>,
    instance: &Arc<Instance>,
) -> Result<Reply, Failure> {
    let (client, upstream) = (request.caller.features(), instance.features());
    match (client.has_sessions, upstream.has_sessions) {
        (true, false) => match listen::for_session(core, request, instance).await {
            Some(reply) => Ok(reply),
            None => rounds::run(core, request, outlet, instance).await,
        },
        (false, true) if request.known() == Some(Method::ServerDiscover) => {
            Ok(Reply::with_result(&request.id, open::discovered(&instance.raw().agreed).into()))
        }
        (false, true) if request.known() == Some(Method::SubscriptionsListen) => {
            listen::stateless(core, request, outlet, instance).await
        }
        (false, true) => {
            let answer = sent(core, request, context, outlet, instance, Claims::Drop).await?;
            Ok(answered(request, &answer, |span| {
                result::to_stateless(request, &answer.message, span, instance.server_info())
            }))
        }
        (true, true) if listen::joins(request, instance) => listen::shared_session(core, request, instance).await,
        _ => {
            let answer = sent(core, request, context, outlet, instance, Claims::Keep).await?;
            let reply = same(request, &answer);
            if client.has_sessions {
                listen::noted(core, request, context, instance, &reply);
            }
            Ok(reply)
        }
    }
}

/// Sends a request as it is but for its id, its token and its claims.
async fn sent(
    core: &Arc<Core>,
    request: &Arc<Request>,
    context: &RequestContext,
    outlet: &Arc<Outlet>,
    instance: &Arc<Instance>,
    claims: Claims<'_>,
) -> Result<Answer, Failure> {
    let own = own_headers(core, context);
    let mut repeated = Vec::new();
    for attempt in 0..2 {
        let mut pending = begin(instance, outlet)?;
        let mut out = translate::request(request, pending.id, instance.features(), claims, &[]);
        out.mirrored.extend(own.iter().chain(&repeated).cloned());
        let answer = exchange(core, instance, outlet, &mut pending, out).await?;
        // A client on a pipe repeats nothing in headers.
        if attempt == 0
            && context.headers.is_empty()
            && let Some(headers) = core.mirrored.wanted(core, request, instance, &answer, claims).await
        {
            repeated = headers;
            continue;
        }
        return Ok(answer);
    }
    Err(Refusal::internal("the upstream does not accept the headers that repeat its tool's arguments").into())
}

/// Begins a call, which is dropped with the result.
pub(crate) fn begin(instance: &Arc<Instance>, outlet: &Arc<Outlet>) -> Result<Pending, Failure> {
    // Closed at this very moment: like a session that was forgotten, the next one is opened.
    instance.begin(outlet.clone()).ok_or(Failure::Forgotten)
}

/// The client's headers that are sent on: arguments that are repeated, and those that the operator names.
pub(crate) fn own_headers(core: &Core, context: &RequestContext) -> Vec<(Box<str>, String)> {
    let named = &core.pool.options.forward_headers;
    let wanted = |name: &str| name.starts_with("mcp-param-") || named.iter().any(|known| **known == *name);
    let all = context.headers.iter().filter(|(name, _)| wanted(name.as_str()));
    all.filter_map(|(name, value)| Some((name.as_str().into(), value.to_str().ok()?.to_owned()))).collect()
}

/// Sends a request and waits for its answer, as long as something comes from the upstream.
pub(crate) async fn exchange(
    core: &Core,
    instance: &Arc<Instance>,
    outlet: &Outlet,
    pending: &mut Pending,
    out: Outgoing,
) -> Result<Answer, Failure> {
    if *instance.opened.borrow() == Opened::Telling {
        // Not before the upstream knows that its client is ready.
        let mut opened = instance.opened.subscribe();
        let _ = opened.wait_for(|opened| *opened == Opened::Told).await;
    }
    let limit = core.pool.options.call_ms_max;
    let answer = pending.exchange(out);
    let answer = if limit == 0 || outlet.listens {
        answer.await
    } else {
        let mut answer = std::pin::pin!(answer);
        loop {
            tokio::select! {
                biased;
                answer = answer.as_mut() => break answer,
                () = outlet.touched.notified() => {}
                () = tokio::time::sleep(Duration::from_millis(limit)) => {
                    return Err(Refusal::new(TIMEOUT, format!("nothing came within {limit} ms (call_ms_max)")).into());
                }
            }
        }
    };
    answer.map_err(|why| match why {
        TransportError::Forgotten => Failure::Forgotten,
        why => Refusal::lost(&why).into(),
    })
}

/// The answer of an upstream of the client's era.
fn same(request: &Request, answer: &Answer) -> Reply {
    let message = &answer.message;
    match &message.kind {
        Kind::Response { outcome: Ok(span), .. } if request.known() == Some(Method::SubscriptionsListen) => {
            result::listened(&request.id, message, *span)
        }
        Kind::Response { outcome: Ok(span), .. } => result::same(&request.id, message, *span),
        Kind::Response { outcome: Err(span), .. } => error::same(&request.id, message, *span),
        _ => unanswered(request),
    }
}

/// The answer of an upstream of another era; `made` makes the result.
pub(crate) fn answered(request: &Request, answer: &Answer, made: impl FnOnce(linchpin_core::Span) -> Reply) -> Reply {
    match &answer.message.kind {
        Kind::Response { outcome: Ok(span), .. } => made(*span),
        Kind::Response { outcome: Err(span), .. } => error::translated(request, &answer.message, *span),
        _ => unanswered(request),
    }
}

fn unanswered(request: &Request) -> Reply {
    Reply::error(Some(&request.id), code::INTERNAL_ERROR, "the upstream sent something that answers nothing", None)
}
