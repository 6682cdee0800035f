//! The `_meta` object of a request, with typed values for the keys that the protocol reserves.

use serde::{Deserialize, Serialize};

use crate::capability::ClientCapabilities;
use crate::jsonrpc::ProgressToken;
use crate::lifecycle::Implementation;
use crate::logging::LoggingLevel;
use crate::read::eq_by_json;
use crate::setters::setters;

/// The reserved keys in the `_meta` object of a request. All keys except `progressToken` are new in 2026-07-28, where
/// `protocolVersion` and `clientCapabilities` are required. They are optional here, so that a server can respond to a
/// request without them with a proper error.
///
/// # Example
///
/// ```
/// use linchpin_types::request_meta::RequestMetaObject;
///
/// let json = r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","progressToken":7}"#;
/// let meta: RequestMetaObject = serde_json::from_str(json).unwrap();
/// assert_eq!(meta.protocol_version.as_deref(), Some("2026-07-28"));
/// assert_eq!(meta.progress_token, Some(7.into()));
/// ```
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RequestMetaObject {
    /// The protocol version of the request.
    #[serde(rename = "io.modelcontextprotocol/protocolVersion", default, skip_serializing_if = "Option::is_none")]
    pub protocol_version: Option<String>,
    /// The implementation of the client, as it reports it itself. It is intended for display and logs only.
    #[serde(rename = "io.modelcontextprotocol/clientInfo", default, skip_serializing_if = "Option::is_none")]
    pub client_info: Option<Implementation>,
    /// The client's capabilities for the request.
    #[serde(rename = "io.modelcontextprotocol/clientCapabilities", default, skip_serializing_if = "Option::is_none")]
    pub client_capabilities: Option<ClientCapabilities>,
    /// The least severe level of the log messages that the client wants to receive. Absent means none.
    #[serde(rename = "io.modelcontextprotocol/logLevel", default, skip_serializing_if = "Option::is_none")]
    pub log_level: Option<LoggingLevel>,
    /// The token of the progress notifications. Absent means that the client does not want any.
    #[serde(rename = "progressToken", default, skip_serializing_if = "Option::is_none")]
    pub progress_token: Option<ProgressToken>,
}

eq_by_json!(RequestMetaObject);

impl RequestMetaObject {
    /// Creates one without members.
    pub fn new() -> Self {
        Self::default()
    }
}

setters!(RequestMetaObject {
    /// Sets the protocol version of the request.
    with_protocol_version = some protocol_version: String;
    /// Sets the implementation of the client.
    with_client_info = some client_info: Implementation;
    /// Sets the client's capabilities for the request.
    with_client_capabilities = some client_capabilities: ClientCapabilities;
    /// Sets the least severe level of the log messages that the client wants to receive.
    with_log_level = some log_level: LoggingLevel;
    /// Sets the token of the progress notifications.
    with_progress_token = some progress_token: ProgressToken;
});
