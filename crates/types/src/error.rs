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
    /// The method does not exist, or does not exist in this revision.
    pub const METHOD_NOT_FOUND: i32 = -32601;
    /// The parameters are invalid.
    pub const INVALID_PARAMS: i32 = -32602;
    /// An internal error of the receiver.
    pub const INTERNAL_ERROR: i32 = -32603;
    /// There is no resource with this URI (2024-11-05 to 2025-11-25; 2026-07-28 uses [`INVALID_PARAMS`] instead).
    pub const RESOURCE_NOT_FOUND: i32 = -32002;
    /// The user must first visit the URLs in `data` (2025-11-25 only).
    pub const URL_ELICITATION_REQUIRED: i32 = -32042;
    /// An HTTP header contradicts the body, or is missing (2026-07-28).
    pub const HEADER_MISMATCH: i32 = -32020;
    /// The request needs a capability that the client did not declare (2026-07-28).
    pub const MISSING_REQUIRED_CLIENT_CAPABILITY: i32 = -32021;
    /// The server does not support the revision of the request; `data` lists the revisions that it supports
    /// (2026-07-28).
    pub const UNSUPPORTED_PROTOCOL_VERSION: i32 = -32022;
}

/// An error code, such as those in [`code`]. This is an alias because peers may define their own codes.
pub type ErrorCode = i32;

/// The error of a failed request. The schema calls it `Error`.
///
/// # Example
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
    /// The error code; see [`code`].
    pub code: ErrorCode,
    /// A short description of the error.
    #[serde(default)]
    pub message: String,
    /// Details about the error, in any form that the sender chooses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Box<RawValue>>,
}

impl ErrorObject {
    /// Creates an error without details.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        ErrorObject { code, message: message.into(), data: None }
    }

    /// Sets the details, replacing any previous ones.
    pub fn with_data(mut self, data: Box<RawValue>) -> Self {
        self.data = Some(data);
        self
    }
}

impl fmt::Display for ErrorObject {
    /// Writes the message and the code, but never `data`, which may contain information that must not be logged.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.message, self.code)
    }
}

impl std::error::Error for ErrorObject {}

eq_by_json!(ErrorObject);

/// The `data` of [`code::UNSUPPORTED_PROTOCOL_VERSION`] (2026-07-28).
///
/// # Example
///
/// ```
/// use linchpin_types::error::{ErrorObject, UnsupportedProtocolVersionData, code};
/// use serde_json::value::to_raw_value;
///
/// let data = UnsupportedProtocolVersionData::new(["2025-11-25", "2026-07-28"], "2023-01-01");
/// let error = ErrorObject::new(code::UNSUPPORTED_PROTOCOL_VERSION, "unsupported protocol version")
///     .with_data(to_raw_value(&data)?);
/// assert_eq!(
///     error.data.unwrap().get(),
///     r#"{"supported":["2025-11-25","2026-07-28"],"requested":"2023-01-01"}"#,
/// );
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct UnsupportedProtocolVersionData {
    /// The protocol versions that the server supports.
    #[serde(default)]
    pub supported: Vec<String>,
    /// The protocol version of the request.
    #[serde(default)]
    pub requested: String,
}

impl UnsupportedProtocolVersionData {
    /// Creates the data from the versions that the server supports and the version of the request.
    pub fn new(supported: impl IntoIterator<Item = impl Into<String>>, requested: impl Into<String>) -> Self {
        UnsupportedProtocolVersionData {
            supported: supported.into_iter().map(Into::into).collect(),
            requested: requested.into(),
        }
    }
}

/// The `data` of [`code::MISSING_REQUIRED_CLIENT_CAPABILITY`] (2026-07-28).
///
/// # Example
///
/// ```
/// use linchpin_types::capability::{ClientCapabilities, ElicitationCapability};
/// use linchpin_types::error::MissingRequiredClientCapabilityData;
///
/// let required = ClientCapabilities::new().with_elicitation(ElicitationCapability::new());
/// let data = MissingRequiredClientCapabilityData::new(required);
/// assert_eq!(
///     serde_json::to_string(&data).unwrap(),
///     r#"{"requiredCapabilities":{"elicitation":{}}}"#,
/// );
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct MissingRequiredClientCapabilityData {
    /// The capabilities that the request requires.
    pub required_capabilities: crate::capability::ClientCapabilities,
}

impl MissingRequiredClientCapabilityData {
    /// Creates the data for a request that requires these capabilities.
    pub fn new(required_capabilities: crate::capability::ClientCapabilities) -> Self {
        MissingRequiredClientCapabilityData { required_capabilities }
    }
}

/// The `data` of [`code::URL_ELICITATION_REQUIRED`] (2025-11-25 only).
///
/// # Example
///
/// ```
/// use linchpin_types::elicit::ElicitRequestURLParams;
/// use linchpin_types::error::{ErrorObject, UrlElicitationRequiredData, code};
/// use serde_json::value::to_raw_value;
///
/// let url = "https://example.com/sign-in";
/// let sign_in = ElicitRequestURLParams::new("Please sign in.", url).with_elicitation_id("e1");
/// let error = ErrorObject::new(code::URL_ELICITATION_REQUIRED, "sign in first")
///     .with_data(to_raw_value(&UrlElicitationRequiredData::new([sign_in]))?);
///
/// let data: UrlElicitationRequiredData = serde_json::from_str(error.data.unwrap().get())?;
/// assert_eq!(data.elicitations[0].url, "https://example.com/sign-in");
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct UrlElicitationRequiredData {
    /// The URLs that the user has to visit before the client sends the request again.
    pub elicitations: Vec<crate::elicit::ElicitRequestURLParams>,
}

impl UrlElicitationRequiredData {
    /// Creates the data with the URLs that the user has to visit.
    pub fn new(elicitations: impl IntoIterator<Item = crate::elicit::ElicitRequestURLParams>) -> Self {
        UrlElicitationRequiredData { elicitations: elicitations.into_iter().collect() }
    }
}
