//! A session as it is kept between two requests.

use linchpin_types::logging::LoggingLevel;
use linchpin_types::version::Revision;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// Everything that is known about a session between two requests.
///
/// Its serialized form is stable: a newer version reads what an older one wrote.
///
/// ```
/// use linchpin_core::SessionRecord;
/// use linchpin_types::version::Revision;
///
/// let json = serde_json::to_string(&SessionRecord::bare(Revision::V2025_11_25)).unwrap();
/// let read: SessionRecord = serde_json::from_str(&json).unwrap();
/// assert_eq!(read.revision, Revision::V2025_11_25);
/// ```
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SessionRecord {
    /// The negotiated revision.
    pub revision: Revision,
    /// The client's `capabilities`.
    pub capabilities: Box<RawValue>,
    /// The client's `clientInfo`, if it sent one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_info: Option<Box<RawValue>>,
    /// The least severe log level to send.
    pub log_level: LoggingLevel,
    /// The URIs of subscribed resources.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub subscriptions: Vec<Box<str>>,
    /// The session's public id.
    pub public_id: u64,
    /// Who may use the session: the identity of the principal that opened it. `None` without authentication.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<Box<str>>,
}

impl SessionRecord {
    /// Creates a record of a session whose client declares nothing.
    pub fn bare(revision: Revision) -> SessionRecord {
        SessionRecord::new(revision, RawValue::from_string("{}".to_owned()).expect("it is JSON"))
    }

    /// Creates a record of a session without subscriptions and without an owner.
    pub fn new(revision: Revision, capabilities: Box<RawValue>) -> SessionRecord {
        SessionRecord {
            revision,
            capabilities,
            client_info: None,
            log_level: LoggingLevel::Info,
            subscriptions: Vec::new(),
            public_id: 0,
            owner: None,
        }
    }
}
