//! The error object of JSON-RPC and the codes that the revisions give meaning to.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::read::eq_by_json;

/// The error codes of JSON-RPC and of the protocol.
pub mod code {
    /// The text is not JSON.
    pub const PARSE_ERROR: i32 = -32700;
    /// The JSON is not a request.
    pub const INVALID_REQUEST: i32 = -32600;
    /// The receiver does not have this method, or not in this revision.
    pub const METHOD_NOT_FOUND: i32 = -32601;
    /// The parameters do not fit the method.
    pub const INVALID_PARAMS: i32 = -32602;
    /// The receiver failed.
    pub const INTERNAL_ERROR: i32 = -32603;
    /// No resource has this URI (2024-11-05 to 2025-11-25; 2026-07-28 says [`INVALID_PARAMS`] instead).
    pub const RESOURCE_NOT_FOUND: i32 = -32002;
    /// The person must first visit the URLs in `data` (2025-11-25 only).
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
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ErrorObject {
    /// What kind of error it is; see [`code`].
    pub code: ErrorCode,
    /// One sentence for a person.
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

    /// The same error with details, replacing earlier ones.
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
pub struct UnsupportedProtocolVersionData {
    /// The versions that the server speaks.
    #[serde(default)]
    pub supported: Vec<String>,
    /// The version that the request asked for.
    #[serde(default)]
    pub requested: String,
}

/// The `data` of [`code::MISSING_REQUIRED_CLIENT_CAPABILITY`] (2026-07-28).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MissingRequiredClientCapabilityData {
    /// The capabilities without which the request cannot be served.
    pub required_capabilities: crate::capability::ClientCapabilities,
}

/// The `data` of [`code::URL_ELICITATION_REQUIRED`] (2025-11-25 only).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct UrlElicitationRequiredData {
    /// What the person has to visit before the request can be tried again.
    pub elicitations: Vec<crate::elicit::ElicitRequestURLParams>,
}
