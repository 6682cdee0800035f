//! Pagination, and what results have in common: their type and how long they may be cached.

use serde::de::Deserializer;
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};

use crate::meta::Meta;
use crate::read::lenient_ms;
use crate::setters::setters;

/// A position in a list, which is opaque to the client: only the server that created it can interpret it.
pub type Cursor = String;

/// The parameters of a request for one page of a list.
///
/// # Example
///
/// ```
/// use linchpin_types::page::PaginatedRequestParams;
///
/// let first = PaginatedRequestParams::new();
/// assert_eq!(serde_json::to_string(&first).unwrap(), "{}");
///
/// let next = PaginatedRequestParams::new().with_cursor("page-2");
/// assert_eq!(serde_json::to_string(&next).unwrap(), r#"{"cursor":"page-2"}"#);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PaginatedRequestParams {
    /// The cursor of the page; absent for the first page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<Cursor>,
    /// The `_meta` object (required in 2026-07-28).
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl PaginatedRequestParams {
    /// Creates the parameters for the first page.
    pub fn new() -> Self {
        Self::default()
    }
}

setters!(PaginatedRequestParams {
    /// Sets the cursor, which is the `nextCursor` of the previous page.
    with_cursor = some cursor: Cursor;
    /// Sets `_meta`.
    with_meta = meta meta;
});

/// The members that all paginated results have in common. Any such result can be read as this type, without its items.
///
/// # Example
///
/// ```
/// use linchpin_types::page::PaginatedResult;
///
/// let json = r#"{"prompts":[{"name":"greet"}],"nextCursor":"page-2"}"#;
/// let page: PaginatedResult = serde_json::from_str(json).unwrap();
/// assert_eq!(page.next_cursor.as_deref(), Some("page-2"));
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct PaginatedResult {
    /// The cursor of the next page; absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<Cursor>,
    /// The type of this result (2026-07-28, required there).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_type: Option<ResultType>,
    /// The `_meta` object.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

/// The members that all cacheable results have in common (2026-07-28). Any such result can be read as this type,
/// without its contents.
///
/// # Example
///
/// ```
/// use linchpin_types::page::{CacheScope, CacheableResult};
///
/// let json = r#"{"resultType":"complete","tools":[],"ttlMs":60000,"cacheScope":"public"}"#;
/// let result: CacheableResult = serde_json::from_str(json).unwrap();
/// assert_eq!((result.ttl_ms, result.cache_scope), (Some(60_000), Some(CacheScope::Public)));
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CacheableResult {
    /// How long the result may be cached, in milliseconds from its receipt; 0 means that it must not be cached.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "lenient_ms")]
    pub ttl_ms: Option<u64>,
    /// Who may share the cached result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_scope: Option<CacheScope>,
    /// The type of this result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_type: Option<ResultType>,
    /// The `_meta` object.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

/// Who may share a cached result (2026-07-28).
///
/// # Example
///
/// ```
/// use linchpin_types::page::CacheScope;
///
/// assert_eq!(serde_json::to_string(&CacheScope::Public).unwrap(), r#""public""#);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum CacheScope {
    /// Everyone: the result does not depend on who sent the request.
    Public,
    /// Only the client that sent the request, under the same authorization.
    Private,
}

/// The type of a result: whether it is the final one of its request (2026-07-28). Absent means
/// [`Complete`](ResultType::Complete).
///
/// # Example
///
/// ```
/// use linchpin_types::page::ResultType;
///
/// let known: ResultType = serde_json::from_str(r#""input_required""#).unwrap();
/// assert_eq!(known, ResultType::InputRequired);
///
/// let other: ResultType = serde_json::from_str(r#""com.example/redirect""#).unwrap();
/// assert_eq!(other.as_str(), "com.example/redirect");
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ResultType {
    /// `complete`: the final result.
    #[default]
    Complete,
    /// `input_required`: an [`InputRequiredResult`](crate::mrtr::InputRequiredResult).
    InputRequired,
    /// `task`: a [`CreateTaskResult`](crate::task::CreateTaskResult) of the tasks extension.
    Task,
    /// A type that another extension defines.
    Other(String),
}

impl ResultType {
    /// The name of the type, as it is serialized.
    pub fn as_str(&self) -> &str {
        match self {
            ResultType::Complete => "complete",
            ResultType::InputRequired => "input_required",
            ResultType::Task => "task",
            ResultType::Other(name) => name,
        }
    }
}

impl From<String> for ResultType {
    fn from(name: String) -> Self {
        match name.as_str() {
            "complete" => ResultType::Complete,
            "input_required" => ResultType::InputRequired,
            "task" => ResultType::Task,
            _ => ResultType::Other(name),
        }
    }
}

impl Serialize for ResultType {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for ResultType {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(ResultType::from)
    }
}
