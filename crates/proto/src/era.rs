//! Which revision is spoken, and what that revision has.
//!
//! This file, `legacy/` and `modern/` are the only places that name an era or compare versions. Everyone else asks a
//! [`Wire`], whose fields say what may be sent.

use crate::method::Method;
use crate::{legacy, modern};
use linchpin_types::error::code;
use linchpin_types::version::Revision;

/// What one revision has. A `false` means: never send it to a peer of this revision.
#[derive(Debug, PartialEq, Eq)]
pub struct Wire {
    /// The revision.
    pub revision: Revision,
    /// Its place in [`Revision::ALL`], for tables with one slot a revision.
    pub index: usize,
    /// Every request stands alone: it claims its revision and its client's capabilities in its `_meta`. What else comes with
    /// that has a name of its own below; ask for that.
    pub stateless: bool,
    /// `initialize` opens a session, to which requests, log levels and requests of the server belong.
    pub has_sessions: bool,
    /// The server asks for input with an `input_required` result, and the client sends the request again with the answers.
    /// Otherwise it sends a request of its own.
    pub elicits_in_rounds: bool,
    /// Changes are heard of on `subscriptions/listen` streams. Otherwise they come unasked, those of resources after
    /// `resources/subscribe`.
    pub listens: bool,
    /// Over HTTP, closing a response cancels its request. Otherwise that takes a notification.
    pub cancels_by_close: bool,
    /// `resultType` on every result.
    pub result_types: bool,
    /// `ttlMs` and `cacheScope`.
    pub cache_hints: bool,
    /// `extensions` among the capabilities.
    pub extensions: bool,
    /// Arguments that are mirrored in HTTP headers (`x-mcp-header`).
    pub header_params: bool,
    /// JSON-RPC batches are received.
    pub batches: bool,
    /// Audio content, tool annotations, the `completions` capability, `message` on progress.
    pub audio: bool,
    /// Tool annotations (`readOnlyHint` and so on).
    pub tool_annotations: bool,
    /// `message` in progress notifications.
    pub progress_message: bool,
    /// The `completions` capability (the method exists in all revisions).
    pub completions_capability: bool,
    /// `outputSchema` and `structuredContent`.
    pub structured: bool,
    /// Structured content that is no object, and schemas of such.
    pub structured_any: bool,
    /// `execution` of tools: whether they may run as tasks.
    pub tool_execution: bool,
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

const fn of(revision: Revision, index: usize) -> Wire {
    let (r1, r2, r3, r4) = (index >= 1, index >= 2, index >= 3, index >= 4);
    Wire {
        revision,
        index,
        stateless: r4,
        has_sessions: !r4,
        elicits_in_rounds: r4,
        listens: r4,
        cancels_by_close: r4,
        result_types: r4,
        cache_hints: r4,
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
        resource_links: r2,
        titles: r2,
        elicitation: r2,
        version_header: r2,
        icons: r3,
        priming: index == 3,
        resource_not_found: if r4 { code::INVALID_PARAMS } else { code::RESOURCE_NOT_FOUND },
    }
}

static WIRES: [Wire; 5] = [
    of(Revision::V2024_11_05, 0),
    of(Revision::V2025_03_26, 1),
    of(Revision::V2025_06_18, 2),
    of(Revision::V2025_11_25, 3),
    of(Revision::V2026_07_28, 4),
];

impl Wire {
    /// What `revision` has.
    pub fn of(revision: Revision) -> &'static Wire {
        match revision {
            Revision::V2024_11_05 => &WIRES[0],
            Revision::V2025_03_26 => &WIRES[1],
            Revision::V2025_06_18 => &WIRES[2],
            Revision::V2025_11_25 => &WIRES[3],
            Revision::V2026_07_28 => &WIRES[4],
        }
    }

    /// The newest revision with sessions, which answers an `initialize` that asks for an unknown version.
    pub fn negotiated(asked: &str) -> &'static Wire {
        Wire::of(legacy::negotiate(asked))
    }

    /// The wire of a request that claims `version` in its own `_meta`, if that version is served this way.
    pub fn claimed(version: &str) -> Option<&'static Wire> {
        modern::claimed(version).map(Wire::of)
    }

    /// Whether this revision has the method.
    pub fn defines(&self, method: Method) -> bool {
        if self.stateless { modern::defines(method) } else { legacy::defines(method) }
    }
}

/// Versions that a request may claim in its `_meta`, for the "unsupported protocol version" error.
pub fn claimable() -> &'static [&'static str] {
    modern::SERVED
}

/// Every version served, newest first, for `server/discover`.
pub fn served() -> impl Iterator<Item = &'static str> {
    Revision::ALL.iter().rev().map(|r| r.as_str())
}

/// Whether a version header names a revision of the sessions era, or one that requests claim themselves.
pub fn header_version(value: &str) -> HeaderVersion {
    match Revision::parse(value) {
        None => HeaderVersion::Unknown,
        Some(r) if Wire::of(r).stateless => HeaderVersion::PerRequest,
        Some(_) => HeaderVersion::Session,
    }
}

/// See [`header_version`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HeaderVersion {
    /// Not a version this implementation serves.
    Unknown,
    /// A revision whose requests belong to a session.
    Session,
    /// A revision whose requests stand alone.
    PerRequest,
}

/// Whether a method exists only where requests stand alone, so that its sender must have meant that.
pub fn only_stateless(method: Method) -> bool {
    modern::defines(method) && !legacy::defines(method)
}

/// Every revision, newest first, as a client offers them.
pub fn all() -> impl Iterator<Item = &'static Wire> {
    WIRES.iter().rev()
}

/// The wire of a version's name, if it is one of ours.
pub fn named(version: &str) -> Option<&'static Wire> {
    Revision::parse(version).map(Wire::of)
}

/// Whether an error code is one that only servers of requests that stand alone use, so that it tells them apart.
pub fn modern_error(code: i32) -> bool {
    modern::ERRORS.contains(&code)
}
