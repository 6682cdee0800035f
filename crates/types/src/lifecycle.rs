//! How two sides meet: `initialize` up to 2025-11-25, `server/discover` in 2026-07-28.

use serde::{Deserialize, Serialize};

use crate::capability::{ClientCapabilities, ServerCapabilities};
use crate::content::Icon;
use crate::meta::Meta;
use crate::page::{CacheScope, ResultType};
use crate::read::{lenient_ms, null_is_default};
use crate::setters::setters;

/// A program that speaks the protocol, by its own account.
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
    /// The name, for programs.
    pub name: String,
    /// The display name (2025-06-18 and later).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Its version.
    pub version: String,
    /// What it is (2025-11-25 and later).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Its home page (2025-11-25 and later).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub website_url: Option<String>,
    /// Its icons (2025-11-25 and later).
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    pub icons: Vec<Icon>,
}

impl Implementation {
    /// A program of this name and version.
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        Implementation { name: name.into(), version: version.into(), ..Default::default() }
    }
}

setters!(Implementation {
    /// Sets the display name (2025-06-18 and later).
    with_title = some title: String;
    /// Sets the description (2025-11-25 and later).
    with_description = some description: String;
    /// Sets the website URL (2025-11-25 and later).
    with_website_url = some website_url: String;
    /// Sets the icons (2025-11-25 and later).
    with_icons = list icons: Icon;
});

/// The parameters of `initialize` (2024-11-05 to 2025-11-25).
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
    /// The version that the client would like; not always one that [`Revision`](crate::version::Revision) knows.
    pub protocol_version: String,
    /// The client's capabilities.
    pub capabilities: ClientCapabilities,
    /// What the client is.
    pub client_info: Implementation,
    /// The `_meta` object.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl InitializeRequestParams {
    /// A client that would like this version.
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

/// The answer to `initialize` (2024-11-05 to 2025-11-25).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct InitializeResult {
    /// The version that the session will speak; not always one that [`Revision`](crate::version::Revision) knows.
    pub protocol_version: String,
    /// The server's capabilities.
    pub capabilities: ServerCapabilities,
    /// What the server is.
    pub server_info: Implementation,
    /// How to use it, for models.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// The `_meta` object.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl InitializeResult {
    /// A server that will speak this version.
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

/// The answer to `server/discover` (2026-07-28). Who answers stands in `_meta`, as in every result of that revision.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct DiscoverResult {
    /// The versions that the server speaks; not always ones that [`Revision`](crate::version::Revision) knows.
    pub supported_versions: Vec<String>,
    /// The server's capabilities.
    pub capabilities: ServerCapabilities,
    /// How to use it, for models.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// How long the result may be kept, in milliseconds from when it is received (2026-07-28, required there).
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "lenient_ms")]
    pub ttl_ms: Option<u64>,
    /// Who may share the kept result (2026-07-28, required there).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_scope: Option<CacheScope>,
    /// Whether the request is complete (2026-07-28, required there).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_type: Option<ResultType>,
    /// The `_meta` object.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl DiscoverResult {
    /// A server that speaks these versions.
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
    /// Sets how long it may be cached, in milliseconds.
    with_ttl_ms = some ttl_ms: u64;
    /// Sets the cache scope.
    with_cache_scope = some cache_scope: CacheScope;
    /// Sets `_meta`.
    with_meta = meta meta;
});
