//! Who may use a tool, resource or prompt: the scopes that it requires, and the callers for whom it exists.

use crate::viewer::{self, Predicate, Viewer};
use linchpin_core::reply::MissingScopes;
use linchpin_core::service::RequestContext;
use linchpin_core::{Id, Reply};
use std::sync::Arc;

/// The conditions of one item.
#[derive(Clone, Default)]
pub(crate) struct Access {
    scopes: Option<Arc<[Arc<str>]>>,
    visible: Option<Predicate>,
}

impl Access {
    #[cfg(test)]
    pub(crate) const NONE: Access = Access { scopes: None, visible: None };

    pub(crate) fn set_visible(&mut self, predicate: impl Fn(&Viewer) -> bool + Send + Sync + 'static) {
        self.visible = Some(Arc::new(predicate));
    }

    /// Whether it does not exist for everybody.
    pub(crate) fn is_restricted(&self) -> bool {
        self.visible.is_some()
    }

    /// Whether it exists for a viewer.
    pub(crate) fn is_visible_to(&self, viewer: &Viewer) -> bool {
        self.visible.as_ref().is_none_or(|visible| viewer::ask(visible, viewer))
    }

    pub(crate) fn set_scopes<I>(&mut self, scopes: I)
    where
        I: IntoIterator,
        I::Item: Into<Arc<str>>,
    {
        let scopes: Arc<[Arc<str>]> = scopes.into_iter().map(Into::into).collect();
        self.scopes = (!scopes.is_empty()).then_some(scopes);
    }

    /// Whether it demands scopes.
    pub(crate) fn has_scopes(&self) -> bool {
        self.scopes.is_some()
    }

    /// Checks that its scopes can be sent in a challenge (RFC 6749, section 3.3).
    pub(crate) fn check(&self) -> Result<(), String> {
        let ok = |c: char| c.is_ascii_graphic() && !"\"\\".contains(c);
        match self.scopes.iter().flat_map(|all| all.iter()).find(|scope| scope.is_empty() || !scope.chars().all(ok)) {
            Some(scope) => {
                Err(format!("scope {scope:?}: a scope is printable ASCII without spaces, quotes or backslashes"))
            }
            None => Ok(()),
        }
    }

    /// Whether the sender of a request has all scopes. The error is the response if not.
    ///
    /// Transports that no stranger can reach do not look at scopes.
    #[inline]
    pub(crate) fn admit(&self, id: &Id, context: &RequestContext) -> Result<(), Reply> {
        match &self.scopes {
            Some(scopes) if context.scoped => demand(scopes, id, context),
            _ => Ok(()),
        }
    }
}

fn demand(scopes: &Arc<[Arc<str>]>, id: &Id, context: &RequestContext) -> Result<(), Reply> {
    let principal = context.principal.as_ref();
    if scopes.iter().all(|scope| principal.is_some_and(|principal| principal.has_scope(scope))) {
        return Ok(());
    }
    Err(Reply::missing_scopes(id, MissingScopes { required: scopes.clone(), principal: principal.cloned() }))
}
