//! The limits of a client.

/// The limits of one client, in groups by what they bound. [`ClientLimits::default`] applies without configuration.
///
/// A group or field that servers also have has the same name in [`Limits`](super::Limits), with its own default.
///
/// ```
/// use linchpin_core::ClientLimits;
///
/// let limits = ClientLimits::default().with(|limits| {
///     limits.calls.run_ms_max = 5_000;
///     limits.connections.open_ms_max = 10_000;
/// });
/// assert_eq!(limits.messages.frame_bytes_max, 64 << 20);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClientLimits {
    /// Size and shape of messages, and how many are queued.
    pub messages: ClientMessageLimits,
    /// Calls: how long they may run, and how much of their results is cached.
    pub calls: ClientCallLimits,
    /// Requests that servers send to this client.
    pub server_requests: ClientServerRequestLimits,
    /// Multi-round-trip requests.
    pub round_trips: ClientRoundTripLimits,
    /// Whole lists, fetched page by page.
    pub lists: ClientListLimits,
    /// Connections: how long they may take to open and to close, and how they are resumed.
    pub connections: ClientConnectionLimits,
    /// Programs started by this client.
    pub child: ClientChildLimits,
}

impl ClientLimits {
    /// Changes some of these limits.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }
}

/// The [`messages`](ClientLimits::messages) of a client: their size and shape, and how many are queued.
///
/// ```
/// # use linchpin_core::limits::ClientLimits;
/// let limits = ClientLimits::default().with(|limits| limits.messages.frame_bytes_max = 8 << 20);
/// assert_eq!(limits.messages.depth_max, 100);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClientMessageLimits {
    /// Longest message read: one line on a pipe, one body or event over HTTP. Default 64 MiB. A longer one is skipped,
    /// and the request that it belongs to fails.
    pub frame_bytes_max: usize,
    /// Deepest nesting of objects and arrays in a message, at most 127. Default 100.
    pub depth_max: usize,
    /// Messages in one JSON-RPC batch, which is accepted in every revision. Default 64.
    pub per_batch_max: usize,
    /// Notifications queued for a slow handler or stream. Default 1,024; beyond that, the oldest are dropped and
    /// counted.
    pub queued_max: usize,
}

impl Default for ClientMessageLimits {
    fn default() -> Self {
        ClientMessageLimits { frame_bytes_max: 64 << 20, depth_max: 100, per_batch_max: 64, queued_max: 1_024 }
    }
}

/// The [`calls`](ClientLimits::calls) of a client: how long they may run, and how much of their results is cached.
///
/// ```
/// # use linchpin_core::limits::ClientLimits;
/// let limits = ClientLimits::default().with(|limits| limits.calls.run_ms_max = 5_000);
/// assert_eq!(limits.calls.cache_bytes_max, 16 << 20);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClientCallLimits {
    /// How long a call may run. Default 60,000; 0 means no timeout. It is paused while the host answers a request of the
    /// server, such as elicitation, and begins again with the answer.
    pub run_ms_max: u64,
    /// How long a call may run if progress or answers of the host, which restart `run_ms_max`, keep arriving. Default
    /// 3,600,000 (an hour).
    pub run_with_progress_ms_max: u64,
    /// How long a host waits for the end of a task. Default 3,600,000 (an hour); 0 means no timeout. After the timeout the task
    /// continues to run.
    pub task_ms_max: u64,
    /// Bytes of results kept in the response cache of a connection. Default 16 MiB. The cache is emptied for a result that no
    /// longer fits.
    pub cache_bytes_max: usize,
}

impl Default for ClientCallLimits {
    fn default() -> Self {
        ClientCallLimits {
            run_ms_max: 60_000,
            run_with_progress_ms_max: 3_600_000,
            task_ms_max: 3_600_000,
            cache_bytes_max: 16 << 20,
        }
    }
}

/// The [`server_requests`](ClientLimits::server_requests) that a client handles.
///
/// ```
/// # use linchpin_core::limits::ClientLimits;
/// let limits = ClientLimits::default().with(|limits| limits.server_requests.concurrent_max = 4);
/// assert_eq!(limits.server_requests.response_ms_max, 300_000);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClientServerRequestLimits {
    /// Server requests handled concurrently. Default 16. The next is rejected.
    pub concurrent_max: usize,
    /// How long the host may take to respond to one server request. Default 300,000.
    pub response_ms_max: u64,
}

impl Default for ClientServerRequestLimits {
    fn default() -> Self {
        ClientServerRequestLimits { concurrent_max: 16, response_ms_max: 300_000 }
    }
}

/// The [`round_trips`](ClientLimits::round_trips) of a client's multi-round-trip requests.
///
/// ```
/// # use linchpin_core::limits::ClientLimits;
/// let limits = ClientLimits::default().with(|limits| limits.round_trips.per_request_max = 4);
/// # let _ = limits;
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClientRoundTripLimits {
    /// `input_required` results of one multi-round-trip request. Default 8.
    pub per_request_max: u32,
}

impl Default for ClientRoundTripLimits {
    fn default() -> Self {
        ClientRoundTripLimits { per_request_max: 8 }
    }
}

/// The [`lists`](ClientLimits::lists) that a client fetches page by page.
///
/// ```
/// # use linchpin_core::limits::ClientLimits;
/// let limits = ClientLimits::default().with(|limits| limits.lists.items_max = 10_000);
/// assert_eq!(limits.lists.pages_max, 1_000);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClientListLimits {
    /// Pages fetched for a whole list. Default 1,000. A longer list is an error; a list of tasks is truncated.
    pub pages_max: usize,
    /// Items collected for a whole list. Default 100,000. A longer list is an error; a list of tasks is truncated.
    pub items_max: usize,
}

impl Default for ClientListLimits {
    fn default() -> Self {
        ClientListLimits { pages_max: 1_000, items_max: 100_000 }
    }
}

/// The [`connections`](ClientLimits::connections) of a client: how long they may take to open and to close, and how
/// broken streams are resumed.
///
/// ```
/// # use linchpin_core::limits::ClientLimits;
/// let limits = ClientLimits::default().with(|limits| {
///     limits.connections.open_ms_max = 10_000;
///     limits.connections.resumes_max = 2;
/// });
/// assert_eq!(limits.connections.connect_ms_max, 10_000);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClientConnectionLimits {
    /// Timeout for opening a connection: starting the program, connecting, and negotiating the revision. Default
    /// 60,000, because `npx` may have to download first. For a child that writes to standard error, the timeout begins
    /// again, up to [`ClientChildLimits::open_ms_max`].
    pub open_ms_max: u64,
    /// How long connecting may take, name lookup and TLS included. Default 10,000.
    pub connect_ms_max: u64,
    /// How long a program may take to respond to `server/discover` before `initialize` is sent too. Default 1,500. If a slow
    /// program then opens a session, that is used; otherwise its late response to `server/discover` counts.
    pub probe_ms_max: u64,
    /// Largest size of a response's headers, in bytes. Default 64 KiB.
    pub header_bytes_max: usize,
    /// Attempts to resume one broken stream without a message arriving. Default 5.
    pub resumes_max: u32,
    /// Longest delay before a stream is resumed, whatever the server requests. Default 30,000. The shortest is 100.
    pub resume_ms_max: u64,
    /// How long closing may take: until messages already queued are written, until an HTTP session is ended at the
    /// server, and until a child exits after its input is closed. Default 2,000 for each. A child is then sent SIGTERM.
    pub close_ms_max: u64,
}

impl Default for ClientConnectionLimits {
    fn default() -> Self {
        ClientConnectionLimits {
            open_ms_max: 60_000,
            connect_ms_max: 10_000,
            probe_ms_max: 1_500,
            header_bytes_max: 64 << 10,
            resumes_max: 5,
            resume_ms_max: 30_000,
            close_ms_max: 2_000,
        }
    }
}

/// The [`child`](ClientLimits::child) processes of a client.
///
/// ```
/// # use linchpin_core::limits::ClientLimits;
/// let limits = ClientLimits::default().with(|limits| limits.child.term_ms_max = 500);
/// assert_eq!(limits.child.stderr_bytes_max, 16 << 10);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClientChildLimits {
    /// Timeout for opening a connection to a child that writes to standard error at least once in every
    /// [`ClientConnectionLimits::open_ms_max`], as those do that install or load something first. Default 300,000; less than
    /// `open_ms_max` means that it gets no more time than others.
    pub open_ms_max: u64,
    /// How long a child may take to exit after SIGTERM, before it is killed with its descendants. Default 2,000.
    pub term_ms_max: u64,
    /// Bytes of a child's standard error kept for error messages. Default 16 KiB, the last ones.
    pub stderr_bytes_max: usize,
}

impl Default for ClientChildLimits {
    fn default() -> Self {
        ClientChildLimits { open_ms_max: 300_000, term_ms_max: 2_000, stderr_bytes_max: 16 << 10 }
    }
}
