//! Which connection to the upstream a request goes to.

use crate::instance::{Home, Instance};
use crate::lock;
use crate::mirrored::Mirrored;
use crate::options::Isolation;
use crate::owner::Owner;
use crate::parked::Parking;
use crate::pool::{Pool, Who};
use crate::refusal::Refusal;
use linchpin_core::message::Request;
use linchpin_core::service::RequestContext;
use linchpin_core::{Budget, Caller, ChangeBus, ClientCaps, Features, Method};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

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
    /// Calls that wait for their clients.
    pub(crate) parking: Arc<Parking>,
    /// Arguments that tools want repeated in headers, as far as it was asked.
    pub(crate) mirrored: Mirrored,
}

/// Connections of one kind that wait to be lent again.
const LENT_MAX: usize = 4;

impl Core {
    /// How long a call may take without anything from the upstream.
    pub(crate) fn limit_ms(&self) -> u64 {
        self.pool.options.call_ms_max
    }

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
    pub(crate) fn everybody(&self, features: &Features) -> Arc<Owner> {
        lock(&self.shared).entry(features.index).or_insert_with(|| Arc::new(Owner::of_many())).clone()
    }

    async fn shared(&self, caller: &Caller) -> Result<Arc<Instance>, Refusal> {
        // Nobody's capabilities: the upstream cannot ask.
        let who = Who { features: caller.features(), capabilities: "{}".into(), info: None };
        self.everybody(caller.features()).instance(&self.pool, &who, || Home::Everybody).await
    }

    /// The connection for a request.
    pub(crate) async fn place(self: &Arc<Self>, request: &Request, context: &RequestContext) -> Result<Place, Refusal> {
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
pub(crate) fn can_be_asked(caller: &Caller) -> bool {
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
fn who(caller: &Caller) -> Who {
    Who {
        features: caller.features(),
        capabilities: caller.capabilities_json().into(),
        info: caller.client_info_json().map(Into::into),
    }
}

/// The connection of a call.
pub(crate) enum Place {
    Kept(Arc<Instance>),
    Lent(Lent),
}

impl Place {
    pub(crate) fn instance(&self) -> &Arc<Instance> {
        match self {
            Place::Kept(instance) => instance,
            Place::Lent(lent) => &lent.instance,
        }
    }
}

/// A connection that is given back after the call.
pub(crate) struct Lent {
    core: Arc<Core>,
    instance: Arc<Instance>,
    key: Box<str>,
}

impl Drop for Lent {
    fn drop(&mut self) {
        if self.instance.lost().is_some() {
            return;
        }
        if self.core.pool.options.isolation == Isolation::Session {
            return self.instance.clone().close_later("it was for one call");
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
