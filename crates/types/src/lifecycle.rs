//! The start of a connection: `initialize` up to 2025-11-25, `server/discover` in 2026-07-28.

use serde::{Deserialize, Serialize};

use crate::capability::{ClientCapabilities, ServerCapabilities};
use crate::content::Icon;
use crate::meta::Meta;
use crate::page::{CacheScope, ResultType};
use crate::read::{lenient_ms, null_is_default};
use crate::setters::setters;

/// The name, version and other details of a client or server, as it reports them itself.
///
/// # Example
///
/// ```
/// use linchpin_types::lifecycle::Implementation;
///
/// let info = Implementation::new("weather", "1.2.0").with_title("Weather").with_website_url("https://example.com");
/// assert_eq!(
///     serde_json::to_string(&info).unwrap(),
///     r#"{"name":"weather","title":"Weather","version":"1.2.0","websiteUrl":"https://example.com"}"#,
/// );
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Implementation {
    /// The name, intended for programmatic use.
    pub name: String,
    /// The display name (2025-06-18 and later).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The version.
    pub version: String,
    /// The description (2025-11-25 and later).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The URL of the website (2025-11-25 and later).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub website_url: Option<String>,
    /// The icons (2025-11-25 and later).
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    pub icons: Vec<Icon>,
}

impl Implementation {
    /// Creates an implementation with this name and version.
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        Implementation { name: name.into(), version: version.into(), ..Default::default() }
    }
}

setters!(Implementation {
    /// Sets the display name (2025-06-18 and later).
    with_title = some title: String;
    /// Sets the description (2025-11-25 and later).
    with_description = some description: String;
    /// Sets the URL of the website (2025-11-25 and later).
    with_website_url = some website_url: String;
    /// Sets the icons (2025-11-25 and later).
    with_icons = list icons: Icon;
});

/// The parameters of `initialize` (2024-11-05 to 2025-11-25).
///
/// # Example
///
/// ```
/// use linchpin_types::capability::ClientCapabilities;
/// use linchpin_types::lifecycle::{Implementation, InitializeRequestParams};
///
/// let params =
///     InitializeRequestParams::new("2025-11-25", ClientCapabilities::default(), Implementation::new("host", "1.0"));
/// assert_eq!(
///     serde_json::to_string(&params).unwrap(),
///     r#"{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"host","version":"1.0"}}"#,
/// );
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct InitializeRequestParams {
    /// The version that the client requests, which is not necessarily a known [`Revision`](crate::version::Revision).
    pub protocol_version: String,
    /// The client's capabilities.
    pub capabilities: ClientCapabilities,
    /// The implementation of the client.
    pub client_info: Implementation,
    /// The `_meta` object.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl InitializeRequestParams {
    /// Creates the parameters of a client that requests this version.
    pub fn new(
        protocol_version: impl Into<String>,
        capabilities: ClientCapabilities,
        client_info: Implementation,
    ) -> Self {
        InitializeRequestParams { protocol_version: protocol_version.into(), capabilities, client_info, meta: None }
    }
}

setters!(InitializeRequestParams {
    /// Sets `_meta`.
    with_meta = meta meta;
});

/// The result of `initialize` (2024-11-05 to 2025-11-25).
///
/// # Example
///
/// ```
/// use linchpin_types::capability::{ServerCapabilities, ToolsCapability};
/// use linchpin_types::lifecycle::{Implementation, InitializeResult};
///
/// let can = ServerCapabilities::new().with_tools(ToolsCapability::new());
/// let result = InitializeResult::new("2025-11-25", can, Implementation::new("weather", "1.2.0"))
///     .with_instructions("Cities are in English.");
/// assert_eq!(
///     serde_json::to_string(&result).unwrap(),
///     r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"#.to_owned()
///         + r#""serverInfo":{"name":"weather","version":"1.2.0"},"#
///         + r#""instructions":"Cities are in English."}"#,
/// );
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct InitializeResult {
    /// The version of the session, which is not necessarily a known [`Revision`](crate::version::Revision).
    pub protocol_version: String,
    /// The server's capabilities.
    pub capabilities: ServerCapabilities,
    /// The implementation of the server.
    pub server_info: Implementation,
    /// Instructions for models on how to use the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// The `_meta` object.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl InitializeResult {
    /// Creates the result of a server that chooses this version for the session.
    pub fn new(
        protocol_version: impl Into<String>,
        capabilities: ServerCapabilities,
        server_info: Implementation,
    ) -> Self {
        let protocol_version = protocol_version.into();
        InitializeResult { protocol_version, capabilities, server_info, ..Default::default() }
    }
}

setters!(InitializeResult {
    /// Sets the instructions for models.
    with_instructions = some instructions: String;
    /// Sets `_meta`.
    with_meta = meta meta;
});

/// The result of `server/discover` (2026-07-28). The implementation of the server is in `_meta`, as in every result of
/// that revision.
///
/// # Example
///
/// ```
/// use linchpin_types::capability::ServerCapabilities;
/// use linchpin_types::lifecycle::{DiscoverResult, Implementation};
/// use linchpin_types::meta::key;
/// use serde_json::json;
///
/// let server = Implementation::new("weather", "1.2.0");
/// let result = DiscoverResult::new(["2026-07-28"], ServerCapabilities::new())
///     .with_meta(json!({ key::SERVER_INFO: server }));
/// assert_eq!(
///     serde_json::to_string(&result).unwrap(),
///     r#"{"supportedVersions":["2026-07-28"],"capabilities":{},"#.to_owned()
///         + r#""_meta":{"io.modelcontextprotocol/serverInfo":{"name":"weather","version":"1.2.0"}}}"#,
/// );
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct DiscoverResult {
    /// The versions that the server supports, which are not necessarily known [`Revision`](crate::version::Revision)s.
    pub supported_versions: Vec<String>,
    /// The server's capabilities.
    pub capabilities: ServerCapabilities,
    /// Instructions for models on how to use the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// How long the result may be cached, in milliseconds from its receipt (2026-07-28, required there).
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "lenient_ms")]
    pub ttl_ms: Option<u64>,
    /// Who may share the cached result (2026-07-28, required there).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_scope: Option<CacheScope>,
    /// The type of this result (2026-07-28, required there).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_type: Option<ResultType>,
    /// The `_meta` object.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl DiscoverResult {
    /// Creates the result of a server that supports these versions.
    pub fn new(
        supported_versions: impl IntoIterator<Item = impl Into<String>>,
        capabilities: ServerCapabilities,
    ) -> Self {
        let supported_versions = supported_versions.into_iter().map(Into::into).collect();
        DiscoverResult { supported_versions, capabilities, ..Default::default() }
    }
}

setters!(DiscoverResult {
    /// Sets the instructions for models.
    with_instructions = some instructions: String;
    /// Sets how long the result may be cached, in milliseconds.
    with_ttl_ms = some ttl_ms: u64;
    /// Sets the cache scope.
    with_cache_scope = some cache_scope: CacheScope;
    /// Sets `_meta`.
    with_meta = meta meta;
});
