//! The state of a call.

use std::sync::Arc;

use crate::config::{Config, Deny};
use crate::roots::Roots;
use crate::turns::Turns;

/// The state of a call, for the blocking part of the tools.
#[derive(Clone, Debug)]
pub(crate) struct Inner {
    pub(crate) config: Arc<Config>,
    pub(crate) deny: Arc<Deny>,
    /// The configured directories; never changes.
    pub(crate) ceiling: Arc<Roots>,
    /// The allowed directories; differs from `ceiling` only if a client's roots apply.
    pub(crate) roots: Arc<Roots>,
    pub(crate) turns: Arc<Turns>,
}
