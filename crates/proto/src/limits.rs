//! Every bound the protocol engine and the transports enforce, in one place, each with its default.
//!
//! `docs/LIMITS.md` lists them for users. Sizes are bytes, durations milliseconds; the unit is in the name.

/// The limits of one server. [`Limits::default`] is what runs when nobody configures anything.
///
/// Set a field before the server starts; changing it later has no effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Longest message read: one line on a pipe, one body over HTTP. Default 16 MiB. A longer one is refused unread.
    pub frame_bytes_max: usize,
    /// Longest answer written, measured while it is written. Default 64 MiB. A longer one becomes an error that says so.
    pub result_bytes_max: usize,
    /// Deepest nesting of objects and arrays in a message, at most 127. Default 100.
    pub depth_max: usize,
    /// Longest request id, in bytes of its JSON text. Default 256.
    pub id_bytes_max: usize,
    /// Messages in one JSON-RPC batch (revision 2025-03-26 only). Default 64.
    pub batch_messages_max: usize,
    /// Calls running at once for one peer: a pipe or a session. Default 128. The next is refused at once.
    pub calls_per_peer_max: usize,
    /// `subscriptions/listen` streams open at once for one pipe. Default 128. The next is refused at once. They are no calls
    /// and take no call's place.
    pub listeners_per_peer_max: usize,
    /// Calls running at once in the whole server. Default 2,048. The next is refused at once.
    pub calls_max: usize,
    /// How long one call may run. Default 600,000 (ten minutes). Then it is dropped and answered with an error.
    pub call_ms_max: u64,
    /// How long a question to a client (legacy revisions) may stay unanswered. Default 300,000.
    pub ask_ms_max: u64,
    /// Messages (progress, log) waiting in one call's queue for a slow reader. Default 256. Past it, progress and log
    /// messages are dropped oldest first; questions and answers never are.
    pub queue_messages_max: usize,
    /// Sessions open at once over HTTP. Default 16,384. Past it the oldest session that was never used gives way, or
    /// the one idle for longest, for a minute at least; when there is none, `initialize` is answered with status 503.
    pub sessions_max: usize,
    /// How long a session may be idle before it ends. Default 1,800,000 (thirty minutes).
    pub session_idle_ms_max: u64,
    /// SSE streams kept per session, finished ones that can still be replayed included. Default 64.
    pub streams_per_session_max: usize,
    /// Bytes of events kept for replay per session. Default 1 MiB; the oldest go first. A single larger answer is kept
    /// alone.
    pub replay_bytes_max: usize,
    /// How long a finished stream can be replayed. Default 60,000.
    pub replay_ms_max: u64,
    /// `subscriptions/listen` streams open at once in the whole server. Default 8,192.
    pub listeners_max: usize,
    /// Resources one session or listen stream may subscribe to. Default 1,024.
    pub subscriptions_max: usize,
    /// Memory that all clients together make the server hold over HTTP: requests on their way in and while they run,
    /// answers and events that wait to be taken or are kept for replay, what sessions declared and subscribed to. On
    /// HTTP/1.1, where a connection has one request at a time, bodies and answers up to 16 KiB are not counted. Default
    /// 256 MiB. Past it requests are answered with status 503, and a stream whose next message finds no room ends.
    pub memory_bytes_max: usize,
    /// HTTP connections open at once. Default 16,384; past it new ones wait in the kernel's queue.
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
    /// Rounds of `input_required` one request may take. Default 16.
    pub rounds_max: u32,
    /// How long running calls are waited for at shutdown. Default 3,000.
    pub drain_ms_max: u64,
    /// Pause between two `list_changed` of the same kind; changes in between become one. Default 50.
    pub list_changed_ms_min: u64,
    /// Pause between SSE comments that keep an idle stream alive. Default 15,000.
    pub keep_alive_ms: u64,
    /// Items on one page of a list; 0 puts the whole list on one page. Default 0.
    pub page_items_max: usize,
    /// Problems listed in one answer about bad arguments. Default 8.
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
            ask_ms_max: 300_000,
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
            rounds_max: 16,
            drain_ms_max: 3_000,
            list_changed_ms_min: 50,
            keep_alive_ms: 15_000,
            page_items_max: 0,
            problems_max: 8,
        }
    }
}

/// The limits of one client. [`ClientLimits::default`] is what runs when nobody configures anything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientLimits {
    /// Longest message read: one line on a pipe, one body or event over HTTP. Default 64 MiB. A longer one is skipped,
    /// and the request it would have answered fails.
    pub frame_bytes_max: usize,
    /// Deepest nesting of objects and arrays in a message, at most 127. Default 100.
    pub depth_max: usize,
    /// Messages in one JSON-RPC batch (revision 2025-03-26 only). Default 64.
    pub batch_messages_max: usize,
    /// How long a call may run. Default 60,000; 0 is without end.
    pub call_ms_max: u64,
    /// How long a call may run when progress keeps coming, which starts `call_ms_max` anew. Default 3,600,000 (an hour).
    pub call_with_progress_ms_max: u64,
    /// How long to wait for the whole opening of a connection: starting the program, connecting, finding out the
    /// revision. Default 60,000, because `npx` may have to download first.
    pub open_ms_max: u64,
    /// How long a program that was asked with `server/discover` may stay silent before `initialize` is tried. Default
    /// 1,500; a slow program is not mistaken for an old one, because a late answer still counts.
    pub probe_ms_max: u64,
    /// Rounds of `input_required` one call may take. Default 8.
    pub rounds_max: u32,
    /// Questions of the server that are being answered at once. Default 16. The next is refused.
    pub asks_max: usize,
    /// How long the answer to one question may take. Default 300,000.
    pub ask_ms_max: u64,
    /// Notifications that wait for a slow handler or stream. Default 1,024; past it the oldest are dropped and counted.
    pub queue_messages_max: usize,
    /// Pages followed when a whole list is asked for. Default 1,000.
    pub pages_max: usize,
    /// Items collected when a whole list is asked for. Default 100,000.
    pub items_max: usize,
    /// Bytes of answers kept in the response cache. Default 16 MiB.
    pub cache_bytes_max: usize,
    /// Bytes of a child's standard error kept for errors. Default 16 KiB, the last ones.
    pub stderr_bytes_max: usize,
    /// How long a child may take to exit after its input was closed, before it is sent SIGTERM. Default 2,000.
    pub exit_ms_max: u64,
    /// How long it may take after SIGTERM, before it is killed with its descendants. Default 2,000.
    pub term_ms_max: u64,
    /// How long connecting may take, name lookup and TLS included. Default 10,000.
    pub connect_ms_max: u64,
    /// Times one broken stream is resumed without a message coming. Default 5.
    pub resumes_max: u32,
    /// Longest wait before a stream is resumed, whatever the server asks for. Default 30,000. The shortest is 100.
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
            rounds_max: 8,
            asks_max: 16,
            ask_ms_max: 300_000,
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
