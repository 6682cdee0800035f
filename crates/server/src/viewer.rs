//! Who looks at a list: what decides which items a caller sees.

use crate::state::Owner;
use linchpin_core::caller::Locals;
use linchpin_core::message::Request;
use linchpin_core::service::RequestContext;
use linchpin_core::{Caller, ClientCaps, Principal, Session};
use linchpin_types::lifecycle::Implementation;
use linchpin_types::version::Revision;
use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// The client for which [`Tool::visible_to`](crate::Tool::visible_to) decides whether an item exists: it requests a list,
/// calls the item, or is subscribed to changes.
///
/// ```
/// use linchpin_server::{Server, Tool};
///
/// let server = Server::new("reports", "1.0").tool(
///     Tool::new("delete_report", "Deletes a report").visible_to(|viewer| viewer.principal().is_some_and(|p| p.subject() == "admin")),
///     || "deleted",
/// );
/// ```
pub struct Viewer {
    caller: Caller,
    principal: Option<Principal>,
    owner: Option<Owner>,
}

impl Viewer {
    pub(crate) fn of(request: &Request, context: &RequestContext) -> Viewer {
        let feed = request.caller.session().and_then(|session| session.feed());
        if let Some(subscriber) = feed.and_then(|feed| feed.feed().subscriber()) {
            Subscriber::refresh(&**subscriber, context);
        }
        Viewer::new(&request.caller, context)
    }

    pub(crate) fn new(caller: &Caller, context: &RequestContext) -> Viewer {
        let owner = Owner::of(caller, context);
        Viewer { caller: caller.clone(), principal: context.principal.clone(), owner }
    }

    /// Returns the principal that the transport authenticated. `None` without authentication.
    pub fn principal(&self) -> Option<&Principal> {
        self.principal.as_ref()
    }

    /// Returns whether the principal has this scope. `false` without a principal.
    pub fn has_scope(&self, scope: &str) -> bool {
        self.principal.as_ref().is_some_and(|principal| principal.has_scope(scope))
    }

    /// Returns the client's name and version, if it sent them. They are not verified.
    pub fn client(&self) -> Option<Implementation> {
        self.caller.client_info()
    }

    /// Returns which kinds of elicitation and sampling the client supports, and whether it supports roots.
    pub fn caps(&self) -> ClientCaps {
        self.caller.caps()
    }

    /// Returns the client's protocol revision.
    pub fn revision(&self) -> Revision {
        self.caller.features().revision
    }

    /// The values of the viewer's connection or session.
    pub(crate) fn locals(&self) -> Option<&Locals> {
        match self.owner.as_ref()? {
            Owner::Connection(locals) => Some(locals),
            Owner::Session(session) => Some(session.locals()),
        }
    }
}

impl fmt::Debug for Viewer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Viewer").field("principal", &self.principal).finish_non_exhaustive()
    }
}

/// Decides whether an item exists for a viewer.
pub(crate) type Predicate = Arc<dyn Fn(&Viewer) -> bool + Send + Sync>;

/// What a predicate says. One that panics hides its item.
pub(crate) fn ask(predicate: &Predicate, viewer: &Viewer) -> bool {
    catch_unwind(AssertUnwindSafe(|| predicate(viewer))).unwrap_or_else(|_| {
        tracing::error!("a `visible_to` function panicked");
        false
    })
}

/// One session, or one principal in all its sessions, for which items are enabled or disabled.
///
/// ```
/// # use linchpin_server::{Audience, Cx, Result};
/// async fn unlock(cx: &Cx) -> Result<&'static str> {
///     match Audience::session(cx) {
///         Some(session) => cx.server().tools().enable_for("purge", &session)?,
///         None => return Ok("this client has no session"),
///     }
///     Ok("unlocked for you")
/// }
/// # linchpin_server::Server::new("s", "1").tool("unlock", unlock);
/// ```
#[derive(Clone)]
pub struct Audience(Kind);

#[derive(Clone)]
enum Kind {
    Session(Weak<Session>),
    Connection(Weak<Locals>),
    Principal(Arc<str>),
}

impl Audience {
    /// The session of a caller, or its connection on transports where each client has one of its own.
    pub(crate) fn session_of(caller: &Caller, context: &RequestContext) -> Option<Audience> {
        let connection = context.connection.as_ref().map(|locals| Kind::Connection(Arc::downgrade(locals)));
        let session = || caller.session().map(|session| Kind::Session(Arc::downgrade(session)));
        connection.or_else(session).map(Audience)
    }

    /// Returns the audience of all sessions and requests of a principal.
    pub fn principal(principal: &Principal) -> Audience {
        Audience(Kind::Principal(principal.identity().clone()))
    }

    /// Whether a viewer is meant.
    pub(crate) fn contains(&self, viewer: &Viewer) -> bool {
        match (&self.0, &viewer.owner) {
            (Kind::Session(session), Some(Owner::Session(own))) => std::ptr::eq(session.as_ptr(), Arc::as_ptr(own)),
            (Kind::Connection(locals), Some(Owner::Connection(own))) => std::ptr::eq(locals.as_ptr(), Arc::as_ptr(own)),
            (Kind::Principal(identity), _) => viewer.principal.as_ref().is_some_and(|p| p.identity() == identity),
            _ => false,
        }
    }

    /// The identity of the principal, if it is one.
    pub(crate) fn identity(&self) -> Option<&Arc<str>> {
        match &self.0 {
            Kind::Principal(identity) => Some(identity),
            _ => None,
        }
    }

    /// Does something with the values of the session, if there is one and it still exists.
    pub(crate) fn with_locals(&self, work: impl FnOnce(&Locals)) {
        match &self.0 {
            Kind::Session(session) => {
                if let Some(session) = session.upgrade() {
                    work(session.locals());
                }
            }
            Kind::Connection(locals) => {
                if let Some(locals) = locals.upgrade() {
                    work(&locals);
                }
            }
            Kind::Principal(_) => {}
        }
    }
}

/// Audiences are equal if they are the same session, connection or principal.
impl PartialEq for Audience {
    fn eq(&self, other: &Audience) -> bool {
        match (&self.0, &other.0) {
            (Kind::Session(one), Kind::Session(other)) => one.ptr_eq(other),
            (Kind::Connection(one), Kind::Connection(other)) => one.ptr_eq(other),
            (Kind::Principal(one), Kind::Principal(other)) => one == other,
            _ => false,
        }
    }
}

impl Eq for Audience {}

impl fmt::Debug for Audience {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Kind::Session(_) | Kind::Connection(_) => "Audience(session)",
            Kind::Principal(_) => "Audience(principal)",
        })
    }
}

/// The viewer behind a subscription. A session owns its subscription, so that it is kept weakly here.
pub(crate) struct Subscriber {
    /// As of the session's last request that depended on it: its scopes may change.
    principal: Mutex<Option<Principal>>,
    connection: Option<Arc<Locals>>,
    source: Source,
}

enum Source {
    Session(Weak<Session>),
    Request(Box<Caller>),
}

impl Subscriber {
    pub(crate) fn erased(caller: &Caller, context: &RequestContext) -> Arc<dyn Any + Send + Sync> {
        let source = match caller.session() {
            Some(session) => Source::Session(Arc::downgrade(session)),
            None => Source::Request(Box::new(caller.detached())),
        };
        Arc::new(Subscriber {
            principal: Mutex::new(context.principal.clone()),
            connection: context.connection.clone(),
            source,
        })
    }

    /// Takes the principal of a later request of the session.
    fn refresh(subscriber: &(dyn Any + Send + Sync), context: &RequestContext) {
        if let Some(Subscriber { principal, .. }) = subscriber.downcast_ref() {
            (*principal.lock().unwrap_or_else(PoisonError::into_inner)).clone_from(&context.principal);
        }
    }

    /// The viewer behind a subscription. `None` if its session has ended.
    pub(crate) fn viewer(subscriber: &(dyn Any + Send + Sync)) -> Option<Viewer> {
        let Subscriber { principal, connection, source } = subscriber.downcast_ref()?;
        let caller = match source {
            Source::Session(session) => Caller::of_session(session.upgrade()?),
            Source::Request(caller) => (**caller).clone(),
        };
        let connection = connection.clone().map(Owner::Connection);
        let owner = connection.or_else(|| caller.session().cloned().map(Owner::Session));
        let principal = principal.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Some(Viewer { caller, principal, owner })
    }
}
