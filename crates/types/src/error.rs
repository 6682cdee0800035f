//! The error object of JSON-RPC, and the error codes of the revisions.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::read::eq_by_json;

/// Error codes of JSON-RPC and of the protocol.
pub mod code {
    /// The text is not valid JSON.
    pub const PARSE_ERROR: i32 = -32700;
    /// The message is not a valid request.
    pub const INVALID_REQUEST: i32 = -32600;
    /// The method does not exist, or not in this revision.
    pub const METHOD_NOT_FOUND: i32 = -32601;
    /// The parameters are invalid.
    pub const INVALID_PARAMS: i32 = -32602;
    /// Internal error of the receiver.
    pub const INTERNAL_ERROR: i32 = -32603;
    /// No resource has this URI (2024-11-05 to 2025-11-25; 2026-07-28 says [`INVALID_PARAMS`] instead).
    pub const RESOURCE_NOT_FOUND: i32 = -32002;
    /// The user must first visit the URLs in `data` (2025-11-25 only).
    pub const URL_ELICITATION_REQUIRED: i32 = -32042;
    /// An HTTP header contradicts the body, or is missing (2026-07-28).
    pub const HEADER_MISMATCH: i32 = -32020;
    /// The request needs a capability that the client did not declare (2026-07-28).
    pub const MISSING_REQUIRED_CLIENT_CAPABILITY: i32 = -32021;
    /// The server does not speak the request's revision; `data` lists those it does (2026-07-28).
    pub const UNSUPPORTED_PROTOCOL_VERSION: i32 = -32022;
}

/// An error code, as in [`code`]. An alias: peers may send codes of their own.
pub type ErrorCode = i32;

/// Why a request failed; the schema's `Error`.
///
/// ```
/// use linchpin_types::error::{ErrorObject, code};
///
/// let error = ErrorObject::new(code::INVALID_PARAMS, "no such city: Olso");
/// assert_eq!(serde_json::to_string(&error).unwrap(), r#"{"code":-32602,"message":"no such city: Olso"}"#);
/// assert_eq!(error.to_string(), "no such city: Olso (-32602)");
/// ```
#[derive(Debug, Clone, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ErrorObject {
    /// What kind of error it is; see [`code`].
    pub code: ErrorCode,
    /// One sentence for a user.
    #[serde(default)]
    pub message: String,
    /// Details, in a form that the sender chose.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Box<RawValue>>,
}

impl ErrorObject {
    /// An error without details.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        ErrorObject { code, message: message.into(), data: None }
    }

    /// Sets the details, replacing earlier ones.
    pub fn with_data(mut self, data: Box<RawValue>) -> Self {
        self.data = Some(data);
        self
    }
}

impl fmt::Display for ErrorObject {
    /// The message and the code; never `data`, which may hold what logs must not.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.message, self.code)
    }
}

impl std::error::Error for ErrorObject {}

eq_by_json!(ErrorObject);

/// The `data` of [`code::UNSUPPORTED_PROTOCOL_VERSION`] (2026-07-28).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct UnsupportedProtocolVersionData {
    /// The versions that the server speaks.
    #[serde(default)]
    pub supported: Vec<String>,
    /// The version that the request asked for.
    #[serde(default)]
    pub requested: String,
}

impl UnsupportedProtocolVersionData {
    /// The versions that the server speaks, and the one that was asked for.
    pub fn new(supported: impl IntoIterator<Item = impl Into<String>>, requested: impl Into<String>) -> Self {
        UnsupportedProtocolVersionData {
            supported: supported.into_iter().map(Into::into).collect(),
            requested: requested.into(),
        }
    }
}

/// The `data` of [`code::MISSING_REQUIRED_CLIENT_CAPABILITY`] (2026-07-28).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct MissingRequiredClientCapabilityData {
    /// The capabilities without which the request cannot be served.
    pub required_capabilities: crate::capability::ClientCapabilities,
}

impl MissingRequiredClientCapabilityData {
    /// Without these the request cannot be served.
    pub fn new(required_capabilities: crate::capability::ClientCapabilities) -> Self {
        MissingRequiredClientCapabilityData { required_capabilities }
    }
}

/// The `data` of [`code::URL_ELICITATION_REQUIRED`] (2025-11-25 only).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct UrlElicitationRequiredData {
    /// What the user has to visit before the request can be tried again.
    pub elicitations: Vec<crate::elicit::ElicitRequestURLParams>,
}

impl UrlElicitationRequiredData {
    /// These have to be visited.
    pub fn new(elicitations: impl IntoIterator<Item = crate::elicit::ElicitRequestURLParams>) -> Self {
        UrlElicitationRequiredData { elicitations: elicitations.into_iter().collect() }
    }
}
