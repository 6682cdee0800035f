//! The legacy era (2024-11-05 to 2025-11-25): its method table and version negotiation.

use linchpin_core::Features;
use linchpin_core::method::Method;
use linchpin_types::version::Revision;

/// Whether the era has the method. Others get "method not found", even if a handler is registered.
pub(crate) fn defines(features: &Features, method: Method) -> bool {
    match method {
        Method::ServerDiscover | Method::SubscriptionsListen | Method::TasksUpdate => false,
        Method::TasksGet | Method::TasksCancel | Method::TasksResult | Method::TasksList => features.core_tasks,
        _ => true,
    }
}

/// Whether a revision of the era has the method.
pub(crate) fn knows(method: Method) -> bool {
    let newest = Features::of(Revision::V2025_11_25);
    defines(newest, method)
}

/// The revision to answer `initialize` with: the asked one when it is of this era, else the newest of this era.
pub(crate) fn negotiate(asked: &str) -> Revision {
    match Revision::parse(asked) {
        Some(revision) if revision < Revision::V2026_07_28 => revision,
        _ => Revision::V2025_11_25,
    }
}
