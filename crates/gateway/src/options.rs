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
    /// Clients of one principal share one; without authentication, all do. What the upstream asks goes to the latest call.
    User,
    /// Each call has one for itself, which other calls of clients with the same capabilities have after it. Lists of changes
    /// and opening requests share one.
    Call,
    /// Like [`Isolation::Call`], but a connection is never used twice: the next ones are opened ahead.
    Fresh,
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
    /// Connections that wait for calls, of each kind of client. Default 1. For [`Isolation::Fresh`] they are opened ahead.
    pub warm: usize,
    /// How long a connection without a call and without a subscription stays open, in milliseconds. Default 600,000; 0 keeps
    /// it open.
    pub idle_stop_ms: u64,
    /// How much memory a child process and what it has started may have while it has no call, in bytes. Above that it is stopped,
    /// and started again for the next call; one that has a call is told of in a warning. Looked at every two seconds, on Linux.
    /// Default 0: no limit.
    pub memory_bytes_max: u64,
    /// How long a call may take without progress and questions, in milliseconds. Default 600,000; 0 is without limit.
    pub call_ms_max: u64,
    /// How long a request waits for a free connection, in milliseconds. Default 60,000.
    pub queue_ms_max: u64,
    /// How long nothing may come from the upstream before it is asked whether it is there, in milliseconds. Default 30,000; 0
    /// never asks. After three questions without an answer the connection is given up.
    pub quiet_ms_max: u64,
    /// How long ago the upstream may have answered last for [`Bridge::ready`](crate::Bridge::ready), in milliseconds. Default
    /// 60,000; at least twice `quiet_ms_max` and 10 s for an answer; 0 here or there does not look.
    pub health_ms_max: u64,
    /// The revisions to speak with the upstream. Default all.
    pub upstream: Vec<&'static Features>,
    /// The revisions to speak with clients. Default all.
    pub clients: Vec<&'static Features>,
    /// Patterns of the tools that clients see and may call, with `*` and `?`. Default none, which is all.
    pub tools: Vec<Box<str>>,
    /// Patterns of the tools that they do not see and may not call. Default none.
    pub hidden_tools: Vec<Box<str>>,
    /// Headers of clients that are sent on to an upstream over HTTP, by their names in lower case. Default none.
    pub forward_headers: Vec<Box<str>>,
    /// The limits for clients.
    pub limits: Arc<Limits>,
    /// The limits for upstreams.
    pub client_limits: Arc<ClientLimits>,
    /// Sees all traffic with the upstream. Default none.
    pub tap: Option<Arc<dyn Tap>>,
    /// Sees all messages from and to clients. Default none.
    pub client_tap: Option<Arc<dyn Tap>>,
}

impl Default for BridgeOptions {
    fn default() -> Self {
        BridgeOptions {
            isolation: Isolation::Auto,
            instances_max: 32,
            warm: 1,
            idle_stop_ms: 600_000,
            memory_bytes_max: 0,
            call_ms_max: 600_000,
            queue_ms_max: 60_000,
            quiet_ms_max: 30_000,
            health_ms_max: 60_000,
            upstream: Features::all().collect(),
            clients: Features::all().collect(),
            tools: Vec::new(),
            hidden_tools: Vec::new(),
            forward_headers: Vec::new(),
            limits: Arc::default(),
            client_limits: Arc::default(),
            tap: None,
            client_tap: None,
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
            .field("memory_bytes_max", &self.memory_bytes_max)
            .field("call_ms_max", &self.call_ms_max)
            .field("queue_ms_max", &self.queue_ms_max)
            .field("tap", &self.tap.is_some())
            .finish_non_exhaustive()
    }
}
