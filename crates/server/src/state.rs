//! The state of handlers: shared, or per session.

use linchpin_core::caller::Locals;
use linchpin_core::service::RequestContext;
use linchpin_core::{Caller, Session};
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The source of a handler's state: one value for all sessions, or a function that creates one for each session.
pub struct StateOf<S>(Source<S>);

enum Source<S> {
    Shared(Arc<S>),
    Session(Arc<Factory<S>>),
}

struct Factory<S> {
    key: u64,
    make: Box<dyn Fn() -> S + Send + Sync>,
}

/// The owner of a per-session state, which is dropped with it.
pub(crate) enum Owner {
    Connection(Arc<Locals>),
    Session(Arc<Session>),
}

impl Owner {
    /// The owner of the state of a call. `None` for stateless requests over HTTP.
    pub(crate) fn of(caller: &Caller, context: &RequestContext) -> Option<Owner> {
        let connection = context.connection.clone().map(Owner::Connection);
        connection.or_else(|| caller.session().cloned().map(Owner::Session))
    }
}

impl<S> Clone for StateOf<S> {
    fn clone(&self) -> Self {
        StateOf(match &self.0 {
            Source::Shared(state) => Source::Shared(state.clone()),
            Source::Session(factory) => Source::Session(factory.clone()),
        })
    }
}

impl<S: Send + Sync + 'static> StateOf<S> {
    pub(crate) fn shared(state: Arc<S>) -> Self {
        StateOf(Source::Shared(state))
    }

    pub(crate) fn session(make: impl Fn() -> S + Send + Sync + 'static) -> Self {
        static KEYS: AtomicU64 = AtomicU64::new(0);
        let key = KEYS.fetch_add(1, Ordering::Relaxed);
        StateOf(Source::Session(Arc::new(Factory { key, make: Box::new(make) })))
    }

    /// Whether it is per session.
    pub(crate) fn per_session(&self) -> bool {
        matches!(self.0, Source::Session(_))
    }

    /// Returns the state for a call of this owner. Without an owner, a new state.
    pub(crate) fn of(&self, owner: Option<&Owner>) -> State<'_, S> {
        let factory = match &self.0 {
            Source::Shared(state) => return State::Shared(state),
            Source::Session(factory) => factory,
        };
        let locals = match owner {
            Some(Owner::Connection(locals)) => locals,
            Some(Owner::Session(session)) => session.locals(),
            None => return State::Session(Arc::new((factory.make)())),
        };
        let kept = locals.get_or_insert(factory.key, || Arc::new((factory.make)()));
        State::Session(kept.downcast().unwrap_or_else(|_| Arc::new((factory.make)())))
    }
}

/// The state of a call.
pub(crate) enum State<'a, S> {
    Shared(&'a Arc<S>),
    Session(Arc<S>),
}

impl<S> State<'_, S> {
    pub(crate) fn into_arc(self) -> Arc<S> {
        match self {
            State::Shared(state) => state.clone(),
            State::Session(state) => state,
        }
    }
}

impl<S> Deref for State<'_, S> {
    type Target = S;

    fn deref(&self) -> &S {
        match self {
            State::Shared(state) => state,
            State::Session(state) => state,
        }
    }
}
