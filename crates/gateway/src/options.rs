//! The settings of a bridge.

use linchpin_core::{ClientLimits, Features, Limits, Tap};
use std::fmt;
use std::sync::Arc;

/// Which clients share a connection to the upstream.
///
/// ```
/// use linchpin_gateway::{BridgeOptions, Isolation};
///
/// let options = BridgeOptions::default().with(|options| options.isolation = Isolation::Session);
/// assert_ne!(options.isolation, Isolation::default());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Isolation {
    /// Each session and each client on a pipe has its own connection. Stateless requests over HTTP share a connection
    /// if the upstream sends no requests to clients; otherwise, each call whose client accepts such requests has
    /// its own connection. If the upstream has sessions, principals do not share with each other.
    #[default]
    Auto,
    /// All clients of a revision share a connection. The upstream cannot send requests to clients.
    Shared,
    /// Like [`Isolation::Auto`], but each stateless request over HTTP has its own connection, except `server/discover` and
    /// streams of changes, which share one for each principal; a client on a pipe always has one connection.
    Session,
    /// Clients of one principal share a connection; without authentication, all clients do. Requests of the upstream are sent
    /// to the client of the latest call.
    User,
    /// Each call has its own connection, which is then reused for calls of the same principal with the same revision and
    /// capabilities. Requests that open a session, `server/discover`, streams of changes, subscriptions and log levels share
    /// one connection for each principal and revision of clients.
    Call,
    /// Like [`Isolation::Call`], but connections are never reused: the next ones are opened in advance.
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
    /// Which clients share a connection to the upstream.
    pub isolation: Isolation,
    /// The maximum number of connections to the upstream. Default 32. Beyond it, idle ones are closed, or requests wait.
    pub instances_max: usize,
    /// The maximum number of connections that are opened at the same time for calls that need one each. Calls that come
    /// meanwhile take whichever is free first: one that was opened, or one whose call has ended. Default 4. Without effect
    /// with [`Isolation::Session`] and [`Isolation::Fresh`], where no other call gets the connection.
    pub opening_max: usize,
    /// The number of spare connections that [`Isolation::Fresh`] opens in advance for each kind of client. Default 1. Where
    /// connections are reused, up to four of a kind, or `warm` + 1 if that is more, stay open between calls.
    pub warm: usize,
    /// How long a connection without a call and without a subscription stays open, in milliseconds. Default 600,000; 0 keeps
    /// it open.
    pub idle_stop_ms: u64,
    /// The maximum memory of a child process and its descendants, in bytes. A process above it is stopped as soon as it has
    /// no call, subscription or stream of changes, and started again for the next call; while it has a call, a warning is logged. Checked every two seconds, on Linux.
    /// Default 0: no limit.
    pub memory_bytes_max: u64,
    /// How long a call may take without progress or requests to the client, in milliseconds. Default 600,000; 0 means
    /// no limit.
    pub call_ms_max: u64,
    /// How long a request waits for a free connection, in milliseconds. Default 60,000.
    pub queue_ms_max: u64,
    /// How long the upstream may be silent before a ping is sent, in milliseconds. Default 30,000; 0 disables pings.
    /// After three pings without a response, the connection is closed.
    pub quiet_ms_max: u64,
    /// The maximum age of the upstream's last response for [`Bridge::ready`](crate::Bridge::ready) to succeed, in
    /// milliseconds. Default 60,000; at least twice `quiet_ms_max` plus 10 s. If this or `quiet_ms_max` is 0, the check
    /// is disabled.
    pub health_ms_max: u64,
    /// The revisions to use with the upstream. Default: all.
    pub upstream: Vec<&'static Features>,
    /// The revisions to use with clients. Default: all.
    pub clients: Vec<&'static Features>,
    /// Patterns of the tools that clients see and may call, with `*` and `?`. Default: empty, which allows all.
    pub tools: Vec<Box<str>>,
    /// Patterns of the tools that clients do not see and may not call. Default: empty.
    pub hidden_tools: Vec<Box<str>>,
    /// Headers of clients that are forwarded to an upstream over HTTP, by their names in lower case. Default: empty.
    pub forward_headers: Vec<Box<str>>,
    /// The limits for clients.
    pub limits: Arc<Limits>,
    /// The limits for upstreams.
    pub client_limits: Arc<ClientLimits>,
    /// Receives all traffic with the upstream. Default: `None`.
    pub tap: Option<Arc<dyn Tap>>,
    /// Receives all messages from and to clients. Default: `None`.
    pub client_tap: Option<Arc<dyn Tap>>,
}

impl Default for BridgeOptions {
    fn default() -> Self {
        BridgeOptions {
            isolation: Isolation::Auto,
            instances_max: 32,
            opening_max: 4,
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
            .field("opening_max", &self.opening_max)
            .field("idle_stop_ms", &self.idle_stop_ms)
            .field("memory_bytes_max", &self.memory_bytes_max)
            .field("call_ms_max", &self.call_ms_max)
            .field("queue_ms_max", &self.queue_ms_max)
            .field("tap", &self.tap.is_some())
            .finish_non_exhaustive()
    }
}
