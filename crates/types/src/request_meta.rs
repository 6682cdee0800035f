//! The `_meta` of a request: the keys that the protocol reserves, typed.

use serde::{Deserialize, Serialize};

use crate::capability::ClientCapabilities;
use crate::jsonrpc::ProgressToken;
use crate::lifecycle::Implementation;
use crate::logging::LoggingLevel;
use crate::read::eq_by_json;

/// The `_meta` of a request, reserved keys only. Everything but `progressToken` is new in 2026-07-28, where
/// `protocolVersion` and `clientCapabilities` are required; they are optional here so that their absence can be
/// answered with a proper error.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RequestMetaObject {
    /// The revision of this request.
    #[serde(rename = "io.modelcontextprotocol/protocolVersion", default, skip_serializing_if = "Option::is_none")]
    pub protocol_version: Option<String>,
    /// Who sends it; self-reported, for display and logs only.
    #[serde(rename = "io.modelcontextprotocol/clientInfo", default, skip_serializing_if = "Option::is_none")]
    pub client_info: Option<Implementation>,
    /// What the client can do for this request.
    #[serde(rename = "io.modelcontextprotocol/clientCapabilities", default, skip_serializing_if = "Option::is_none")]
    pub client_capabilities: Option<ClientCapabilities>,
    /// From which level on log messages are wanted; absent means none.
    #[serde(rename = "io.modelcontextprotocol/logLevel", default, skip_serializing_if = "Option::is_none")]
    pub log_level: Option<LoggingLevel>,
    /// The token for progress notifications; absent means none are wanted.
    #[serde(rename = "progressToken", default, skip_serializing_if = "Option::is_none")]
    pub progress_token: Option<ProgressToken>,
}

eq_by_json!(RequestMetaObject);
