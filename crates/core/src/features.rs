//! What each revision of the protocol has.

use linchpin_types::error::code;
use linchpin_types::version::Revision;

/// The features of one revision. A feature that is `false` is never sent to a peer of this revision.
///
/// ```
/// use linchpin_core::Features;
/// use linchpin_types::version::Revision;
///
/// assert!(Features::of(Revision::V2025_11_25).has_sessions);
/// assert!(Features::of(Revision::V2026_07_28).multi_round_trip);
/// ```
#[derive(Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Features {
    /// The revision.
    pub revision: Revision,
    /// Its index in [`Revision::ALL`], for tables with one slot per revision.
    pub index: usize,
    /// Every request is stateless: its `_meta` has its revision and its client's capabilities. Related features have
    /// their own fields below; use those.
    pub stateless: bool,
    /// `initialize` opens a session, to which requests, log levels and requests of the server belong.
    pub has_sessions: bool,
    /// The server sends requests to the client.
    pub server_requests: bool,
    /// The server asks for input with an `input_required` result, and the client repeats the request with the responses.
    /// Otherwise the server sends a request.
    pub multi_round_trip: bool,
    /// Changes are sent on `subscriptions/listen` streams. Otherwise they are unsolicited, those of resources after
    /// `resources/subscribe`.
    pub listens: bool,
    /// Over HTTP, closing a response cancels its request. Otherwise cancellation uses a notification.
    pub cancels_by_close: bool,
    /// `resultType` on every result.
    pub result_types: bool,
    /// `io.modelcontextprotocol/serverInfo` in the `_meta` of every result.
    pub server_info_in_results: bool,
    /// `io.modelcontextprotocol/logLevel` in the `_meta` of a request. Otherwise `logging/setLevel` sets it for a session.
    pub log_level_per_request: bool,
    /// Over HTTP, `Mcp-Method` and `Mcp-Name` mirror the request.
    pub method_headers: bool,
    /// Over HTTP, a JSON-RPC error has the status of its code. Otherwise 200.
    pub error_statuses: bool,
    /// `ttlMs` and `cacheScope`.
    pub cache_hints: bool,
    /// An empty `nextCursor` is a cursor like any other.
    pub empty_cursors: bool,
    /// `extensions` among the capabilities.
    pub extensions: bool,
    /// Arguments that are mirrored in HTTP headers (`x-mcp-header`).
    pub header_params: bool,
    /// JSON-RPC batches are received.
    pub batches: bool,
    /// Audio content.
    pub audio: bool,
    /// Tool annotations (`readOnlyHint` and so on).
    pub tool_annotations: bool,
    /// `message` in progress notifications.
    pub progress_message: bool,
    /// The `completions` capability (the method exists in all revisions).
    pub completions_capability: bool,
    /// `outputSchema` and `structuredContent`.
    pub structured: bool,
    /// Structured content that is not an object, and schemas for it.
    pub structured_any: bool,
    /// `execution` of tools: whether they may run as tasks.
    pub tool_execution: bool,
    /// Tasks are part of the revision: the requestor asks for them with `task`, and fetches results with `tasks/result`.
    pub core_tasks: bool,
    /// Tasks are an extension, which each request declares: the server decides, and `tasks/get` has the result.
    pub task_extension: bool,
    /// Content of type `resource_link`.
    pub resource_links: bool,
    /// `title` on tools, resources, prompts and implementations; `_meta` on definitions and content.
    pub titles: bool,
    /// `elicitation/create` in form mode, and completion `context`.
    pub elicitation: bool,
    /// Icons, `description`/`websiteUrl` of implementations, URL elicitation, tools in sampling, defaults and titled or
    /// multiple choices in elicitation schemas.
    pub icons: bool,
    /// The `MCP-Protocol-Version` header is part of the revision.
    pub version_header: bool,
    /// SSE streams begin with a priming event that has an id and no data.
    pub priming: bool,
    /// The error code for a resource that does not exist.
    pub resource_not_found: i32,
}

const fn of(revision: Revision, index: usize) -> Features {
    let (r1, r2, r3, r4) = (index >= 1, index >= 2, index >= 3, index >= 4);
    Features {
        revision,
        index,
        stateless: r4,
        has_sessions: !r4,
        server_requests: !r4,
        multi_round_trip: r4,
        listens: r4,
        cancels_by_close: r4,
        result_types: r4,
        server_info_in_results: r4,
        log_level_per_request: r4,
        method_headers: r4,
        error_statuses: r4,
        cache_hints: r4,
        empty_cursors: r4,
        extensions: r4,
        header_params: r4,
        batches: index == 1,
        audio: r1,
        tool_annotations: r1,
        progress_message: r1,
        completions_capability: r1,
        structured: r2,
        structured_any: r4,
        tool_execution: index == 3,
        core_tasks: index == 3,
        task_extension: r4,
        resource_links: r2,
        titles: r2,
        elicitation: r2,
        version_header: r2,
        icons: r3,
        priming: index == 3,
        resource_not_found: if r4 { code::INVALID_PARAMS } else { code::RESOURCE_NOT_FOUND },
    }
}

static FEATURES: [Features; 5] = [
    of(Revision::V2024_11_05, 0),
    of(Revision::V2025_03_26, 1),
    of(Revision::V2025_06_18, 2),
    of(Revision::V2025_11_25, 3),
    of(Revision::V2026_07_28, 4),
];

impl Features {
    /// Returns the features of `revision`.
    pub fn of(revision: Revision) -> &'static Features {
        // The variants are in the order of the table; a test checks all of them.
        &FEATURES[revision as usize]
    }

    /// Returns the features of every revision, newest first.
    pub fn all() -> impl Iterator<Item = &'static Features> {
        FEATURES.iter().rev()
    }
}
