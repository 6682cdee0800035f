//! A registered handler, and one that was started.

use crate::cx::Cx;
use crate::invocation::Run;
use crate::layer::Layer;
use crate::validate::Checker;
use linchpin_core::Reply;
use linchpin_core::service::BoxFuture;
use std::sync::Arc;

/// A handler with its registration data.
#[derive(Clone)]
pub(crate) struct Target {
    /// The registered name of the tool or prompt, or the URI or template of the resource.
    pub(crate) name: Arc<str>,
    pub(crate) run: Run,
    pub(crate) layers: Arc<[Layer]>,
    pub(crate) wants_cx: bool,
    /// Whether its state is per session.
    pub(crate) per_session: bool,
    pub(crate) explain: Option<Arc<Checker>>,
}

/// A started handler.
pub(crate) struct CallStart {
    pub(crate) future: BoxFuture<'static, Reply>,
    pub(crate) cx: Option<Cx>,
}
