//! The revisions and their features.
//!
//! Only this file, `legacy/` and `modern/` name an era or compare versions. All other code uses
//! [`Features`], whose fields say what may be sent.

use crate::{legacy, modern};
use linchpin_core::Features;
use linchpin_core::method::Method;
use linchpin_types::version::Revision;

/// Returns the revision for an `initialize` that requests this version: the newest with sessions if it is unknown or
/// has no sessions.
pub fn negotiated(asked: &str) -> &'static Features {
    Features::of(legacy::negotiate(asked))
}

/// Returns the features for a stateless request with `version` in its `_meta`, if that version is served this way.
pub fn claimed(version: &str) -> Option<&'static Features> {
    modern::claimed(version).map(Features::of)
}

/// Whether a revision has the method.
pub fn defines(features: &Features, method: Method) -> bool {
    if features.stateless { modern::defines(method) } else { legacy::defines(features, method) }
}

/// Whether a revision has the notification of a client. Those that the specification does not have are in all of them.
pub fn defines_notification(features: &Features, name: &str) -> bool {
    !features.stateless || modern::defines_notification(name)
}

/// Returns the versions that a request may have in its `_meta`, for the "unsupported protocol version" error.
pub fn claimable() -> &'static [&'static str] {
    modern::SERVED
}

/// Returns every supported version, newest first, for `server/discover`.
pub fn served() -> impl Iterator<Item = &'static str> {
    Revision::ALL.iter().rev().map(|r| r.as_str())
}

/// Classifies the version in a header: a revision with sessions, a stateless one, or unknown.
pub fn header_version(value: &str) -> HeaderVersion {
    match Revision::parse(value) {
        None => HeaderVersion::Unknown,
        Some(r) if Features::of(r).stateless => HeaderVersion::PerRequest,
        Some(_) => HeaderVersion::Session,
    }
}

/// The kind of version in a header, returned by [`header_version`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HeaderVersion {
    /// Not a version this implementation serves.
    Unknown,
    /// A revision whose requests belong to a session.
    Session,
    /// A revision whose requests are stateless.
    PerRequest,
}

/// Whether a method exists only in stateless revisions, so that its sender must use one.
pub(crate) fn only_stateless(method: Method) -> bool {
    modern::defines(method) && !legacy::knows(method)
}

/// Returns the features of a version by its name, if it is supported.
pub fn named(version: &str) -> Option<&'static Features> {
    Revision::parse(version).map(Features::of)
}

/// Whether only servers of stateless revisions use this error code, which identifies them.
pub(crate) fn modern_error(code: i32) -> bool {
    modern::ERRORS.contains(&code)
}
