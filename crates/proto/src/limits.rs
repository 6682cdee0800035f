//! Every limit that the protocol engine and the transports enforce, with its default.
//!
//! `docs/LIMITS.md` lists them for users. Sizes are bytes, durations milliseconds; the unit is in the name.

/// The limits of one server. [`Limits::default`] applies without configuration.
///
/// Set a field before the server starts; changing it later has no effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Longest message read: one line on a pipe, one body over HTTP. Default 16 MiB. A longer one is rejected unread.
    pub frame_bytes_max: usize,
    /// Longest response, measured while it is written. Default 64 MiB. A longer one becomes an error that names the limit.
    pub result_bytes_max: usize,
    /// Deepest nesting of objects and arrays in a message, at most 127. Default 100.
    pub depth_max: usize,
    /// Longest request id, in bytes of its JSON text. Default 256.
    pub id_bytes_max: usize,
    /// Messages in one JSON-RPC batch (revision 2025-03-26 only). Default 64.
    pub batch_messages_max: usize,
    /// Concurrent calls of one peer: a pipe or a session. Default 128. The next is rejected immediately.
    pub calls_per_peer_max: usize,
    /// Concurrent `subscriptions/listen` streams of one pipe. Default 128. The next is rejected immediately. They do not count
    /// as calls.
    pub listeners_per_peer_max: usize,
    /// Concurrent calls of the whole server. Default 2,048. The next is rejected immediately.
    pub calls_max: usize,
    /// How long one call may run. Default 600,000 (ten minutes). Then it is dropped, and the response is an error.
    pub call_ms_max: u64,
    /// Timeout of a server request (legacy revisions). Default 300,000.
    pub server_request_ms_max: u64,
    /// Messages (progress, log) queued in one call for a slow reader. Default 256. Beyond that, progress and log
    /// messages are dropped, oldest first; server requests and responses never are.
    pub queue_messages_max: usize,
    /// Concurrent sessions over HTTP. Default 16,384. Beyond that, a new session replaces the oldest one that was never used, or
    /// else the one idle longest, for at least a minute; if there is none, `initialize` gets status 503.
    pub sessions_max: usize,
    /// How long a session may be idle before it ends. Default 1,800,000 (thirty minutes).
    pub session_idle_ms_max: u64,
    /// SSE streams kept per session, finished ones that can still be replayed included. Default 64.
    pub streams_per_session_max: usize,
    /// Bytes of events kept for replay per session. Default 1 MiB; the oldest are discarded first. A single larger response is
    /// kept on its own.
    pub replay_bytes_max: usize,
    /// How long a finished stream can be replayed. Default 60,000.
    pub replay_ms_max: u64,
    /// Concurrent `subscriptions/listen` streams of the whole server. Default 8,192.
    pub listeners_max: usize,
    /// Resources one session or listen stream may subscribe to. Default 1,024.
    pub subscriptions_max: usize,
    /// Memory used for all HTTP clients together: requests while they are read and run, responses and events that are queued
    /// or kept for replay, capabilities and subscriptions of sessions. On HTTP/1.1, where a connection has one request at a
    /// time, bodies and responses up to 16 KiB are not counted. Default 256 MiB. Beyond that, requests get status 503, and a
    /// stream ends if there is no room for its next message.
    pub memory_bytes_max: usize,
    /// Concurrent HTTP connections. Default 16,384; beyond that, new ones wait in the kernel's queue.
    pub connections_max: usize,
    /// Time to read a request's headers. Default 15,000.
    pub header_read_ms_max: u64,
    /// Time to read a request's body. Default 30,000.
    pub body_read_ms_max: u64,
    /// Most bytes of a request's headers. Default 32 KiB; at least 8 KiB.
    pub header_bytes_max: usize,
    /// Longest sealed `requestState` accepted or written. Default 64 KiB.
    pub state_bytes_max: usize,
    /// How long a sealed `requestState` stays valid. Default 900,000 (fifteen minutes).
    pub state_ms_max: u64,
    /// `input_required` results of one multi-round-trip request. Default 16.
    pub round_trips_max: u32,
    /// How long running calls may take to finish on shutdown. Default 3,000.
    pub drain_ms_max: u64,
    /// Interval between two `list_changed` notifications of the same kind; changes in between are combined. Default 50.
    pub list_changed_ms_min: u64,
    /// Interval of the SSE comments that keep an idle stream alive. Default 15,000.
    pub keep_alive_ms: u64,
    /// Items on one page of a list; 0 puts the whole list on one page. Default 0.
    pub page_items_max: usize,
    /// Problems listed in one error about invalid arguments. Default 8.
    pub problems_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            frame_bytes_max: 16 << 20,
            result_bytes_max: 64 << 20,
            depth_max: 100,
            id_bytes_max: 256,
            batch_messages_max: 64,
            calls_per_peer_max: 128,
            listeners_per_peer_max: 128,
            calls_max: 2_048,
            call_ms_max: 600_000,
            server_request_ms_max: 300_000,
            queue_messages_max: 256,
            sessions_max: 16_384,
            session_idle_ms_max: 1_800_000,
            streams_per_session_max: 64,
            replay_bytes_max: 1 << 20,
            replay_ms_max: 60_000,
            listeners_max: 8_192,
            subscriptions_max: 1_024,
            memory_bytes_max: 256 << 20,
            connections_max: 16_384,
            header_read_ms_max: 15_000,
            body_read_ms_max: 30_000,
            header_bytes_max: 32 << 10,
            state_bytes_max: 64 << 10,
            state_ms_max: 900_000,
            round_trips_max: 16,
            drain_ms_max: 3_000,
            list_changed_ms_min: 50,
            keep_alive_ms: 15_000,
            page_items_max: 0,
            problems_max: 8,
        }
    }
}

/// The limits of one client. [`ClientLimits::default`] applies without configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientLimits {
    /// Longest message read: one line on a pipe, one body or event over HTTP. Default 64 MiB. A longer one is skipped,
    /// and the request that it belongs to fails.
    pub frame_bytes_max: usize,
    /// Deepest nesting of objects and arrays in a message, at most 127. Default 100.
    pub depth_max: usize,
    /// Messages in one JSON-RPC batch (revision 2025-03-26 only). Default 64.
    pub batch_messages_max: usize,
    /// How long a call may run. Default 60,000; 0 means no timeout.
    pub call_ms_max: u64,
    /// How long a call may run if progress, which restarts `call_ms_max`, keeps arriving. Default 3,600,000 (an hour).
    pub call_with_progress_ms_max: u64,
    /// Timeout for opening a connection: starting the program, connecting, and negotiating the
    /// revision. Default 60,000, because `npx` may have to download first.
    pub open_ms_max: u64,
    /// How long a program may take to respond to `server/discover` before `initialize` is tried. Default
    /// 1,500; a slow program is not mistaken for an old one, because a late response still counts.
    pub probe_ms_max: u64,
    /// `input_required` results of one multi-round-trip request. Default 8.
    pub round_trips_max: u32,
    /// Server requests handled concurrently. Default 16. The next is rejected.
    pub server_requests_max: usize,
    /// How long the host may take to answer one server request. Default 300,000.
    pub server_request_ms_max: u64,
    /// Notifications queued for a slow handler or stream. Default 1,024; beyond that, the oldest are dropped and counted.
    pub queue_messages_max: usize,
    /// Pages fetched for a whole list. Default 1,000.
    pub pages_max: usize,
    /// Items collected for a whole list. Default 100,000.
    pub items_max: usize,
    /// Bytes of results kept in the response cache. Default 16 MiB.
    pub cache_bytes_max: usize,
    /// Bytes of a child's standard error kept for error messages. Default 16 KiB, the last ones.
    pub stderr_bytes_max: usize,
    /// How long a child may take to exit after its input is closed, before it is sent SIGTERM. Default 2,000.
    pub exit_ms_max: u64,
    /// How long it may take after SIGTERM, before it is killed with its descendants. Default 2,000.
    pub term_ms_max: u64,
    /// How long connecting may take, name lookup and TLS included. Default 10,000.
    pub connect_ms_max: u64,
    /// Attempts to resume one broken stream without a message arriving. Default 5.
    pub resumes_max: u32,
    /// Longest delay before a stream is resumed, whatever the server requests. Default 30,000. The shortest is 100.
    pub resume_ms_max: u64,
    /// Most bytes of a response's headers. Default 64 KiB.
    pub header_bytes_max: usize,
}

impl Default for ClientLimits {
    fn default() -> Self {
        ClientLimits {
            frame_bytes_max: 64 << 20,
            depth_max: 100,
            batch_messages_max: 64,
            call_ms_max: 60_000,
            call_with_progress_ms_max: 3_600_000,
            open_ms_max: 60_000,
            probe_ms_max: 1_500,
            round_trips_max: 8,
            server_requests_max: 16,
            server_request_ms_max: 300_000,
            queue_messages_max: 1_024,
            pages_max: 1_000,
            items_max: 100_000,
            cache_bytes_max: 16 << 20,
            stderr_bytes_max: 16 << 10,
            exit_ms_max: 2_000,
            term_ms_max: 2_000,
            connect_ms_max: 10_000,
            resumes_max: 5,
            resume_ms_max: 30_000,
            header_bytes_max: 64 << 10,
        }
    }
}
