//! Roots: the directories and files that a client works in.

use serde::{Deserialize, Serialize};

use crate::meta::Meta;
use crate::setters::setters;

/// A directory or file that the client works in.
///
/// # Example
///
/// ```
/// use linchpin_types::root::Root;
///
/// let root = Root::new("file:///work/project").with_name("project");
/// assert_eq!(serde_json::to_string(&root).unwrap(), r#"{"uri":"file:///work/project","name":"project"}"#);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Root {
    /// The location: a `file:` URI.
    pub uri: String,
    /// The display name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The `_meta` object (2025-06-18 and later).
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl Root {
    /// Creates a root with this `file:` URI.
    pub fn new(uri: impl Into<String>) -> Self {
        Root { uri: uri.into(), ..Root::default() }
    }
}

setters!(Root {
    /// Sets the display name.
    with_name = some name: String;
    /// Sets `_meta` (2025-06-18 and later).
    with_meta = meta meta;
});

impl From<&str> for Root {
    fn from(uri: &str) -> Self {
        Root::new(uri)
    }
}

/// The parameters of `roots/list`.
pub type ListRootsRequestParams = crate::jsonrpc::RequestParams;

/// The result of `roots/list`: the directories and files that the client works in.
///
/// # Example
///
/// ```
/// use linchpin_types::root::ListRootsResult;
///
/// let result = ListRootsResult::new(["file:///a", "file:///b"]);
/// assert_eq!(serde_json::to_string(&result).unwrap(), r#"{"roots":[{"uri":"file:///a"},{"uri":"file:///b"}]}"#);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ListRootsResult {
    /// The roots.
    pub roots: Vec<Root>,
    /// The `_meta` object (2024-11-05 to 2025-11-25).
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl ListRootsResult {
    /// Creates a result with these roots.
    pub fn new(roots: impl IntoIterator<Item = impl Into<Root>>) -> Self {
        ListRootsResult { roots: roots.into_iter().map(Into::into).collect(), meta: None }
    }
}

setters!(ListRootsResult {
    /// Sets `_meta` (2024-11-05 to 2025-11-25).
    with_meta = meta meta;
});
