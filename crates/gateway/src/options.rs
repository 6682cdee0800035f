//! The settings of a bridge.

use linchpin_core::{ClientLimits, Features, Limits, Tap};
use std::fmt;
use std::sync::Arc;

/// Who shares a connection to the upstream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Isolation {
    /// A session has its own, and so has a client on a pipe. Stateless requests over HTTP share one, if the upstream keeps
    /// no state; otherwise those whose client can be asked have one for the call.
    #[default]
    Auto,
    /// All clients share one for each revision. The upstream cannot ask anybody.
    Shared,
    /// Like [`Isolation::Auto`], but each stateless request over HTTP has its own.
    Session,
}

/// The settings of a [`Bridge`](crate::Bridge).
///
/// ```
/// use linchpin_gateway::{BridgeOptions, Isolation};
///
/// let options = BridgeOptions::default().with(|options| {
///     options.isolation = Isolation::Shared;
///     options.instances_max = 4;
/// });
/// assert_eq!(options.idle_stop_ms, 600_000);
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub struct BridgeOptions {
    /// Who shares a connection to the upstream.
    pub isolation: Isolation,
    /// Connections to the upstream at once. Default 32. Over that, idle ones are closed, or requests wait.
    pub instances_max: usize,
    /// How long a connection without a call and without a subscription stays open, in milliseconds. Default 600,000; 0 keeps
    /// it open.
    pub idle_stop_ms: u64,
    /// How long a call may take without progress and questions, in milliseconds. Default 600,000; 0 is without limit.
    pub call_ms_max: u64,
    /// How long a request waits for a free connection, in milliseconds. Default 60,000.
    pub queue_ms_max: u64,
    /// The revisions to speak with the upstream. Default all.
    pub upstream: Vec<&'static Features>,
    /// Headers of clients that are sent on to an upstream over HTTP, by their names in lower case. Default none.
    pub forward_headers: Vec<Box<str>>,
    /// The limits for clients.
    pub limits: Arc<Limits>,
    /// The limits for upstreams.
    pub client_limits: Arc<ClientLimits>,
    /// Sees all traffic with the upstream. Default none.
    pub tap: Option<Arc<dyn Tap>>,
}

impl Default for BridgeOptions {
    fn default() -> Self {
        BridgeOptions {
            isolation: Isolation::Auto,
            instances_max: 32,
            idle_stop_ms: 600_000,
            call_ms_max: 600_000,
            queue_ms_max: 60_000,
            upstream: Features::all().collect(),
            forward_headers: Vec::new(),
            limits: Arc::default(),
            client_limits: Arc::default(),
            tap: None,
        }
    }
}

impl BridgeOptions {
    /// Changes some of these options.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }
}

impl fmt::Debug for BridgeOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BridgeOptions")
            .field("isolation", &self.isolation)
            .field("instances_max", &self.instances_max)
            .field("idle_stop_ms", &self.idle_stop_ms)
            .field("call_ms_max", &self.call_ms_max)
            .field("queue_ms_max", &self.queue_ms_max)
            .field("tap", &self.tap.is_some())
            .finish_non_exhaustive()
    }
}
