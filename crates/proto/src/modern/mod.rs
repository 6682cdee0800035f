//! The modern era (2026-07-28): its method table and versions.

use linchpin_core::method::Method;
use linchpin_types::error::code;
use linchpin_types::version::Revision;

/// Whether the era has the method. Others get "method not found", even if a handler is registered.
pub(crate) fn defines(method: Method) -> bool {
    !matches!(
        method,
        Method::Initialize
            | Method::Ping
            | Method::LoggingSetLevel
            | Method::ResourcesSubscribe
            | Method::ResourcesUnsubscribe
            | Method::TasksResult
            | Method::TasksList
    )
}

/// Whether the era has the notification of a client: not those that belong to a session.
pub(crate) fn defines_notification(name: &str) -> bool {
    !matches!(name, "notifications/initialized" | "notifications/roots/list_changed")
}

/// The revision a request claims in its `_meta`, when it is one of this era.
pub(crate) fn claimed(version: &str) -> Option<Revision> {
    Revision::parse(version).filter(|revision| *revision >= Revision::V2026_07_28)
}

/// The versions named in an "unsupported protocol version" error.
pub(crate) const SERVED: &[&str] = &["2026-07-28"];

/// The error codes that the era introduced: a server that returns one of them is of this era.
pub(crate) const ERRORS: &[i32] =
    &[code::HEADER_MISMATCH, code::MISSING_REQUIRED_CLIENT_CAPABILITY, code::UNSUPPORTED_PROTOCOL_VERSION];
