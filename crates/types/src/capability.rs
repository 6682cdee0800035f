//! What each side says it can do. Each capability is an object whose presence is the statement; unknown members of it
//! are ignored.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::read::{eq_by_json, null_is_default};

/// A capability that has no members: being there is all it says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EmptyCapability {}

/// What the client can do.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct ClientCapabilities {
    /// The client lists its roots.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub roots: Option<RootsCapability>,
    /// The client lets its model be asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sampling: Option<SamplingCapability>,
    /// The client lets the person be asked (2025-06-18 and later).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elicitation: Option<ElicitationCapability>,
    /// Which of the server's requests may become tasks (2025-11-25 only).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tasks: Option<Box<RawValue>>,
    /// Extensions by identifier, with their settings (2026-07-28).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty", deserialize_with = "null_is_default")]
    pub extensions: BTreeMap<String, Box<RawValue>>,
    /// Abilities that are in no revision.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty", deserialize_with = "null_is_default")]
    pub experimental: BTreeMap<String, Box<RawValue>>,
}

/// What the server can do.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct ServerCapabilities {
    /// The server has tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<ToolsCapability>,
    /// The server has resources.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<ResourcesCapability>,
    /// The server has prompts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompts: Option<PromptsCapability>,
    /// The server sends log messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logging: Option<EmptyCapability>,
    /// The server suggests values for arguments (2025-03-26 and later; before that, unannounced).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completions: Option<EmptyCapability>,
    /// Which of the client's requests may become tasks (2025-11-25 only).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tasks: Option<Box<RawValue>>,
    /// Extensions by identifier, with their settings (2026-07-28).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty", deserialize_with = "null_is_default")]
    pub extensions: BTreeMap<String, Box<RawValue>>,
    /// Abilities that are in no revision.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty", deserialize_with = "null_is_default")]
    pub experimental: BTreeMap<String, Box<RawValue>>,
}

eq_by_json!(ClientCapabilities, ServerCapabilities);

/// The client lists its roots.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RootsCapability {
    /// The client tells when they change (2024-11-05 to 2025-11-25).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub list_changed: Option<bool>,
}

/// The client lets its model be asked. The members are new in 2025-11-25.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SamplingCapability {
    /// `includeContext` may be other than `none` (2025-11-25 and later).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<EmptyCapability>,
    /// `tools` and `toolChoice` may be given (2025-11-25 and later).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<EmptyCapability>,
}

/// The client lets the person be asked (2025-06-18 and later). The members are new in 2025-11-25; an empty object
/// means forms only.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ElicitationCapability {
    /// By a form (2025-11-25 and later).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub form: Option<EmptyCapability>,
    /// By sending them to a URL (2025-11-25 and later).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<EmptyCapability>,
}

/// The server has tools.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolsCapability {
    /// The server tells when the list changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub list_changed: Option<bool>,
}

/// The server has resources.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourcesCapability {
    /// The server tells when a single resource changes, to those who subscribed to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subscribe: Option<bool>,
    /// The server tells when the list changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub list_changed: Option<bool>,
}

/// The server has prompts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PromptsCapability {
    /// The server tells when the list changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub list_changed: Option<bool>,
}
