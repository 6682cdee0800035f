//! The limits of a server.

/// The limits of one server, in groups by what they bound. [`Limits::default`] applies without configuration.
///
/// Set a field before the server starts; changing it later has no effect.
///
/// ```
/// use linchpin_core::Limits;
///
/// let limits = Limits::default().with(|limits| {
///     limits.calls.per_peer_max = 8;
///     limits.messages.frame_bytes_max = 1 << 20;
/// });
/// assert_eq!(limits.calls.concurrent_max, 2_048);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Size and shape of messages, and how many are queued.
    pub messages: MessageLimits,
    /// Calls: how many run at once, and for how long.
    pub calls: CallLimits,
    /// Requests that handlers send to clients (legacy revisions).
    pub server_requests: ServerRequestLimits,
    /// Multi-round-trip requests and their sealed state.
    pub round_trips: RoundTripLimits,
    /// Lists and their changes.
    pub lists: ListLimits,
    /// Subscriptions and `subscriptions/listen` streams.
    pub subscriptions: SubscriptionLimits,
    /// Sessions over HTTP, and the events kept for replay.
    pub sessions: SessionLimits,
    /// Tasks: how many, how long, and what each keeps.
    pub tasks: TaskLimits,
    /// Connections: how many, how slow, and what all of them hold in memory.
    pub connections: ConnectionLimits,
}

impl Limits {
    /// Changes some of these limits.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }
}

/// The [`messages`](Limits::messages) of a server: their size and shape, and how many are queued.
///
/// ```
/// # use linchpin_core::limits::Limits;
/// let limits = Limits::default().with(|limits| limits.messages.frame_bytes_max = 1 << 20);
/// assert_eq!(limits.messages.depth_max, 100);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MessageLimits {
    /// Longest message read: one line on a pipe, one body over HTTP. Default 16 MiB. A longer one is rejected unread.
    pub frame_bytes_max: usize,
    /// Longest response, measured while it is written. Default 64 MiB. A longer one becomes an error that names the
    /// limit.
    pub result_bytes_max: usize,
    /// Deepest nesting of objects and arrays in a message, at most 127. Default 100.
    pub depth_max: usize,
    /// Longest request id, in bytes of its JSON text. Default 256.
    pub id_bytes_max: usize,
    /// Messages in one JSON-RPC batch (revision 2025-03-26 only). Default 64.
    pub per_batch_max: usize,
    /// Messages (progress, log) queued in one call for a slow reader. Default 256. Beyond that, progress and log
    /// messages are dropped, oldest first; server requests and responses never are.
    pub queued_max: usize,
}

impl Default for MessageLimits {
    fn default() -> Self {
        MessageLimits {
            frame_bytes_max: 16 << 20,
            result_bytes_max: 64 << 20,
            depth_max: 100,
            id_bytes_max: 256,
            per_batch_max: 64,
            queued_max: 256,
        }
    }
}

/// The [`calls`](Limits::calls) of a server: how many run at once, and for how long.
///
/// ```
/// # use linchpin_core::limits::Limits;
/// let limits = Limits::default().with(|limits| {
///     limits.calls.per_peer_max = 8;
///     limits.calls.run_ms_max = 30_000;
/// });
/// assert_eq!(limits.calls.concurrent_max, 2_048);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CallLimits {
    /// Concurrent calls of the whole server. Default 2,048. The next is rejected immediately.
    pub concurrent_max: usize,
    /// Concurrent calls of one peer: a pipe or a session. Default 128. The next is rejected immediately.
    pub per_peer_max: usize,
    /// How long one call may run. Default 600,000 (ten minutes). After that, it is dropped, and the response is an
    /// error.
    pub run_ms_max: u64,
    /// How long running calls may take to finish on shutdown. Default 3,000.
    pub drain_ms_max: u64,
    /// Problems listed in one error about invalid arguments. Default 8.
    pub problems_max: usize,
}

impl Default for CallLimits {
    fn default() -> Self {
        CallLimits {
            concurrent_max: 2_048,
            per_peer_max: 128,
            run_ms_max: 600_000,
            drain_ms_max: 3_000,
            problems_max: 8,
        }
    }
}

/// The [`server_requests`](Limits::server_requests) of a server, which its handlers send to clients (legacy revisions).
///
/// ```
/// # use linchpin_core::limits::Limits;
/// let limits = Limits::default().with(|limits| limits.server_requests.response_ms_max = 60_000);
/// # let _ = limits;
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerRequestLimits {
    /// How long the client may take to respond to one server request. Default 300,000.
    pub response_ms_max: u64,
}

impl Default for ServerRequestLimits {
    fn default() -> Self {
        ServerRequestLimits { response_ms_max: 300_000 }
    }
}

/// The [`round_trips`](Limits::round_trips) of a server's multi-round-trip requests, and their sealed state.
///
/// ```
/// # use linchpin_core::limits::Limits;
/// let limits = Limits::default().with(|limits| limits.round_trips.per_request_max = 4);
/// assert_eq!(limits.round_trips.state_bytes_max, 64 << 10);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RoundTripLimits {
    /// `input_required` results of one multi-round-trip request. Default 16.
    pub per_request_max: u32,
    /// Longest sealed `requestState` accepted or written. Default 64 KiB.
    pub state_bytes_max: usize,
    /// How long a sealed `requestState` stays valid. Default 900,000 (fifteen minutes).
    pub state_ms_max: u64,
}

impl Default for RoundTripLimits {
    fn default() -> Self {
        RoundTripLimits { per_request_max: 16, state_bytes_max: 64 << 10, state_ms_max: 900_000 }
    }
}

/// The [`lists`](Limits::lists) of a server and their changes.
///
/// ```
/// # use linchpin_core::limits::Limits;
/// let limits = Limits::default().with(|limits| limits.lists.page_items_max = 50);
/// assert_eq!(limits.lists.changed_ms_min, 50);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ListLimits {
    /// Items on one page of a list; 0 puts the whole list on one page. Default 0.
    pub page_items_max: usize,
    /// Interval between two `list_changed` notifications of the same kind; changes in between are combined. Default 50.
    pub changed_ms_min: u64,
}

impl Default for ListLimits {
    fn default() -> Self {
        ListLimits { page_items_max: 0, changed_ms_min: 50 }
    }
}

/// The [`subscriptions`](Limits::subscriptions) of a server and their `subscriptions/listen` streams.
///
/// ```
/// # use linchpin_core::limits::Limits;
/// let limits = Limits::default().with(|limits| limits.subscriptions.streams_per_peer_max = 4);
/// assert_eq!(limits.subscriptions.resources_max, 1_024);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SubscriptionLimits {
    /// Default 8,192. The sum of this and [`SessionLimits::concurrent_max`] is the limit of `subscriptions/listen` streams and
    /// sessions of the whole server together. The next stream is rejected.
    pub streams_max: usize,
    /// Concurrent `subscriptions/listen` streams of one pipe. Default 128. The next is rejected immediately. They do
    /// not count as calls.
    pub streams_per_peer_max: usize,
    /// Resources one session or listen stream may subscribe to. Default 1,024.
    pub resources_max: usize,
}

impl Default for SubscriptionLimits {
    fn default() -> Self {
        SubscriptionLimits { streams_max: 8_192, streams_per_peer_max: 128, resources_max: 1_024 }
    }
}

/// The [`sessions`](Limits::sessions) of a server over HTTP, and the events kept for replay.
///
/// ```
/// # use linchpin_core::limits::Limits;
/// let limits = Limits::default().with(|limits| {
///     limits.sessions.concurrent_max = 1_000;
///     limits.sessions.idle_ms_max = 600_000;
/// });
/// assert_eq!(limits.sessions.replay_bytes_max, 1 << 20);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionLimits {
    /// Concurrent sessions. Default 16,384. Beyond that, a new session replaces the oldest one that was never used, or
    /// else the one idle longest, for at least a minute; if there is none, `initialize` gets status 503.
    pub concurrent_max: usize,
    /// How long a session may be idle before it ends. Default 1,800,000 (thirty minutes).
    pub idle_ms_max: u64,
    /// SSE streams kept per session, finished ones that can still be replayed included. Default 64.
    pub streams_max: usize,
    /// Bytes of events kept for replay per session. Default 1 MiB; the oldest are discarded first. A single larger
    /// response is kept on its own.
    pub replay_bytes_max: usize,
    /// How long a finished stream can be replayed. Default 60,000.
    pub replay_ms_max: u64,
}

impl Default for SessionLimits {
    fn default() -> Self {
        SessionLimits {
            concurrent_max: 16_384,
            idle_ms_max: 1_800_000,
            streams_max: 64,
            replay_bytes_max: 1 << 20,
            replay_ms_max: 60_000,
        }
    }
}

/// The [`tasks`](Limits::tasks) of a server: how many, how long, and what each keeps. An owner is a principal; without
/// authentication, all pipes together are one owner, and all HTTP clients together another.
///
/// ```
/// # use linchpin_core::limits::Limits;
/// let limits = Limits::default().with(|limits| limits.tasks.ttl_ms = 6 * 3_600_000);
/// assert_eq!(limits.tasks.grace_ms, 250);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TaskLimits {
    /// How long a call may run before it becomes a task, if its tool allows that. Default 250. A call that finishes earlier
    /// returns its result directly.
    pub grace_ms: u64,
    /// How long a task lives, from its creation, if neither the tool nor the client sets another time. Default 3,600,000 (one
    /// hour). A task that still runs then fails; one that has ended is kept for at least ten minutes.
    pub ttl_ms: u64,
    /// The longest time to live that a client may request (2025-11-25 only). Default 86,400,000 (a day). A longer one is
    /// reduced to it.
    pub ttl_ms_max: u64,
    /// Running tasks of one owner in this process, and calls that may still become tasks. Default 32. Beyond that, a call that
    /// must become a task is rejected, and a call that may become a task returns its result directly.
    pub running_per_owner_max: usize,
    /// The same for all owners together. Default 1,024.
    pub running_max: usize,
    /// Tasks of one owner that are kept, ended ones included. Default 1,000. Beyond that, the oldest ended task is
    /// deleted; if none has ended, no task is made, as with `running_per_owner_max`.
    pub kept_per_owner_max: usize,
    /// The same for all owners together, as far as this process has made or found the tasks. Default 10,000.
    pub kept_max: usize,
    /// Open input requests of one task. Default 16. The next is an error in the handler.
    pub input_requests_open_max: usize,
    /// Input responses in one `tasks/update`. Default 16.
    pub input_responses_per_update_max: usize,
    /// Bytes of all input responses of one task. Default 4 MiB.
    pub input_response_bytes_max: usize,
    /// Steps of one task that are stored by `Cx::memoize`, and its input requests, each. Default 4,096. The task fails at the
    /// next step; the next input request is an error in the handler.
    pub steps_max: usize,
    /// Bytes of the results of those steps. Default 4 MiB.
    pub step_bytes_max: usize,
    /// Longest arguments of a call that becomes a task. Default 1 MiB.
    pub argument_bytes_max: usize,
    /// Longest result of a task. Default 4 MiB. A task with a longer one fails.
    pub result_bytes_max: usize,
    /// How long a task waits for an answer before it is suspended. Default 60,000; 0 means never. A suspended task takes no
    /// memory: its handler is dropped, and started again once there is an answer. Only `resumable` tasks in a store that
    /// outlives the process are suspended, between two steps, and not by the process that made them in a session. With
    /// `Tasks::cancel_on_revoke`, none is.
    pub suspend_ms: u64,
    /// Longest `statusMessage`. Default 1 KiB. A longer one is truncated.
    pub status_bytes_max: usize,
    /// Interval between two changes of a task's `statusMessage`. Default 1,000. Of several changes in between, the last one is
    /// written.
    pub status_ms_min: u64,
    /// Polls of one task per second. Default 20. The next is rejected.
    pub polls_per_second_max: u32,
    /// Tasks of one `subscriptions/listen` stream. Default 100. Others are left out of the acknowledgement.
    pub per_stream_max: usize,
    /// The duration of a process's lease on its tasks. Default 6,000. After the process has died, other processes take its tasks
    /// over once the lease has expired and another third of it has passed.
    pub lease_ms: u64,
    /// Tasks on one page of `tasks/list`. Default 100.
    pub page_items_max: usize,
}

impl Default for TaskLimits {
    fn default() -> Self {
        TaskLimits {
            grace_ms: 250,
            ttl_ms: 3_600_000,
            ttl_ms_max: 86_400_000,
            running_per_owner_max: 32,
            running_max: 1_024,
            kept_per_owner_max: 1_000,
            kept_max: 10_000,
            input_requests_open_max: 16,
            input_responses_per_update_max: 16,
            input_response_bytes_max: 4 << 20,
            steps_max: 4_096,
            step_bytes_max: 4 << 20,
            argument_bytes_max: 1 << 20,
            result_bytes_max: 4 << 20,
            suspend_ms: 60_000,
            status_bytes_max: 1 << 10,
            status_ms_min: 1_000,
            polls_per_second_max: 20,
            per_stream_max: 100,
            lease_ms: 6_000,
            page_items_max: 100,
        }
    }
}

/// The [`connections`](Limits::connections) of a server: how many, how slow, and what all of them hold in memory.
///
/// ```
/// # use linchpin_core::limits::Limits;
/// let limits = Limits::default().with(|limits| limits.connections.memory_bytes_max = 64 << 20);
/// assert_eq!(limits.connections.header_bytes_max, 32 << 10);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConnectionLimits {
    /// Concurrent connections over HTTP or a Unix socket. Default 16,384; beyond that, new ones wait in the kernel's
    /// queue.
    pub concurrent_max: usize,
    /// Memory used for all HTTP clients together: requests while they are read and run, responses and events that are
    /// queued or kept for replay, capabilities and subscriptions of sessions. On HTTP/1.1, where a connection has one
    /// request at a time, bodies and responses up to 16 KiB are not counted. Default 256 MiB. Beyond that, requests get
    /// status 503, and a stream ends if there is no room for its next message.
    pub memory_bytes_max: usize,
    /// Largest size of a request's headers, in bytes. Default 32 KiB.
    pub header_bytes_max: usize,
    /// Time to read a request's headers. Default 15,000.
    pub header_read_ms_max: u64,
    /// Time to read a request's body. Default 30,000.
    pub body_read_ms_max: u64,
    /// Interval of the SSE comments that keep an idle stream alive. Default 15,000.
    pub keep_alive_ms: u64,
}

impl Default for ConnectionLimits {
    fn default() -> Self {
        ConnectionLimits {
            concurrent_max: 16_384,
            memory_bytes_max: 256 << 20,
            header_bytes_max: 32 << 10,
            header_read_ms_max: 15_000,
            body_read_ms_max: 30_000,
            keep_alive_ms: 15_000,
        }
    }
}
