//! Roots: the places a client works in.

use serde::{Deserialize, Serialize};

use crate::meta::Meta;

/// A place the client works in.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Root {
    /// Where it is: a `file:` URI.
    pub uri: String,
    /// Its name, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Anything else (2025-06-18 and later).
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl Root {
    /// A root at a `file://` URI.
    pub fn new(uri: impl Into<String>) -> Self {
        Root { uri: uri.into(), ..Root::default() }
    }
}

/// The parameters of `roots/list`.
pub type ListRootsRequestParams = crate::jsonrpc::RequestParams;

/// The places the client works in.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ListRootsResult {
    /// The places.
    pub roots: Vec<Root>,
    /// Anything else (2024-11-05 to 2025-11-25).
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}
