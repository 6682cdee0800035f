//! Resources: data that a client can read.

use serde::{Deserialize, Serialize};

use crate::content::{Annotations, Icon, ResourceContents};
use crate::meta::Meta;
use crate::mrtr::InputResponses;
use crate::page::{CacheScope, Cursor, ResultType};
use crate::read::{eq_by_json, lenient_ms, null_is_default};
use crate::setters::setters;

/// A resource, as a server lists it.
///
/// # Example
///
/// ```
/// use linchpin_types::resource::Resource;
///
/// let resource = Resource::new("file:///a.md", "a")
///     .with_title("All about A")
///     .with_mime_type("text/markdown")
///     .with_size(3u64);
/// assert_eq!(
///     serde_json::to_string(&resource).unwrap(),
///     r#"{"uri":"file:///a.md","name":"a","title":"All about A","mimeType":"text/markdown","size":3}"#,
/// );
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Resource {
    /// The URI.
    pub uri: String,
    /// The name, intended for programmatic use.
    pub name: String,
    /// The display name (2025-06-18 and later).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The description for models.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The media type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// The size in bytes, before any encoding.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// The icons (2025-11-25 and later).
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    pub icons: Vec<Icon>,
    /// Annotations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// The `_meta` object (2025-06-18 and later).
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl Resource {
    /// Creates a resource with this URI and name.
    pub fn new(uri: impl Into<String>, name: impl Into<String>) -> Self {
        Resource { uri: uri.into(), name: name.into(), ..Default::default() }
    }
}

setters!(Resource {
    /// Sets the display name (2025-06-18 and later).
    with_title = some title: String;
    /// Sets the description.
    with_description = some description: String;
    /// Sets the media type.
    with_mime_type = some mime_type: String;
    /// Sets the size in bytes, before any encoding.
    with_size = some size: u64;
    /// Sets the icons (2025-11-25 and later).
    with_icons = list icons: Icon;
    /// Sets the annotations.
    with_annotations = some annotations: Annotations;
    /// Sets `_meta`.
    with_meta = meta meta;
});

/// A template for resources, as a server lists it.
///
/// # Example
///
/// ```
/// use linchpin_types::resource::ResourceTemplate;
///
/// let template = ResourceTemplate::new("file:///{+path}", "file").with_description("Any file.");
/// assert_eq!(
///     serde_json::to_string(&template).unwrap(),
///     r#"{"uriTemplate":"file:///{+path}","name":"file","description":"Any file."}"#,
/// );
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ResourceTemplate {
    /// The URI template (RFC 6570).
    pub uri_template: String,
    /// The name, intended for programmatic use.
    pub name: String,
    /// The display name (2025-06-18 and later).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The description for models.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The media type, if it is the same for all resources.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// The icons (2025-11-25 and later).
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    pub icons: Vec<Icon>,
    /// Annotations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// The `_meta` object (2025-06-18 and later).
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl ResourceTemplate {
    /// Creates a template with this URI template and name.
    pub fn new(uri_template: impl Into<String>, name: impl Into<String>) -> Self {
        ResourceTemplate { uri_template: uri_template.into(), name: name.into(), ..Default::default() }
    }
}

setters!(ResourceTemplate {
    /// Sets the display name (2025-06-18 and later).
    with_title = some title: String;
    /// Sets the description.
    with_description = some description: String;
    /// Sets the media type.
    with_mime_type = some mime_type: String;
    /// Sets the icons (2025-11-25 and later).
    with_icons = list icons: Icon;
    /// Sets the annotations.
    with_annotations = some annotations: Annotations;
    /// Sets `_meta`.
    with_meta = meta meta;
});

/// The result of `resources/list`: one page of a server's resources.
///
/// # Example
///
/// ```
/// use linchpin_types::resource::{ListResourcesResult, Resource};
///
/// let resource = Resource::new("file:///a.md", "a");
/// let page = ListResourcesResult::new([resource]).with_next_cursor("page-2");
/// assert_eq!(
///     serde_json::to_string(&page).unwrap(),
///     r#"{"resources":[{"uri":"file:///a.md","name":"a"}],"nextCursor":"page-2"}"#,
/// );
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ListResourcesResult {
    /// The resources.
    pub resources: Vec<Resource>,
    /// The cursor of the next page; absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<Cursor>,
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

impl ListResourcesResult {
    /// Creates the last page of a list, with these resources.
    pub fn new(resources: impl IntoIterator<Item = Resource>) -> Self {
        ListResourcesResult { resources: resources.into_iter().collect(), ..Default::default() }
    }
}

setters!(ListResourcesResult {
    /// Sets the cursor of the next page.
    with_next_cursor = some next_cursor: Cursor;
    /// Sets how long the result may be cached, in milliseconds (2026-07-28).
    with_ttl_ms = some ttl_ms: u64;
    /// Sets the cache scope (2026-07-28).
    with_cache_scope = some cache_scope: CacheScope;
    /// Sets `_meta`.
    with_meta = meta meta;
});

/// The result of `resources/templates/list`: one page of a server's resource templates.
///
/// # Example
///
/// ```
/// use linchpin_types::resource::{ListResourceTemplatesResult, ResourceTemplate};
///
/// let page = ListResourceTemplatesResult::new([ResourceTemplate::new("file:///{+path}", "file")]);
/// assert_eq!(
///     serde_json::to_string(&page).unwrap(),
///     r#"{"resourceTemplates":[{"uriTemplate":"file:///{+path}","name":"file"}]}"#,
/// );
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ListResourceTemplatesResult {
    /// The templates.
    pub resource_templates: Vec<ResourceTemplate>,
    /// The cursor of the next page; absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<Cursor>,
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

impl ListResourceTemplatesResult {
    /// Creates the last page of a list, with these templates.
    pub fn new(resource_templates: impl IntoIterator<Item = ResourceTemplate>) -> Self {
        ListResourceTemplatesResult {
            resource_templates: resource_templates.into_iter().collect(),
            ..Default::default()
        }
    }
}

setters!(ListResourceTemplatesResult {
    /// Sets the cursor of the next page.
    with_next_cursor = some next_cursor: Cursor;
    /// Sets how long the result may be cached, in milliseconds (2026-07-28).
    with_ttl_ms = some ttl_ms: u64;
    /// Sets the cache scope (2026-07-28).
    with_cache_scope = some cache_scope: CacheScope;
    /// Sets `_meta`.
    with_meta = meta meta;
});

/// The parameters of `resources/read`.
///
/// # Example
///
/// ```
/// use linchpin_types::resource::ReadResourceRequestParams;
///
/// let params = ReadResourceRequestParams::new("file:///a.md");
/// assert_eq!(serde_json::to_string(&params).unwrap(), r#"{"uri":"file:///a.md"}"#);
/// ```
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ReadResourceRequestParams {
    /// The URI of the resource.
    pub uri: String,
    /// The responses to the input requests of the previous result (2026-07-28).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_responses: Option<InputResponses>,
    /// The `requestState` of the previous result, unchanged (2026-07-28).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_state: Option<String>,
    /// The `_meta` object (required in 2026-07-28).
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl ReadResourceRequestParams {
    /// Creates the parameters for the resource with this URI.
    pub fn new(uri: impl Into<String>) -> Self {
        ReadResourceRequestParams { uri: uri.into(), ..Default::default() }
    }
}

setters!(ReadResourceRequestParams {
    /// Sets the answers of the user or client to the requests of an `input_required` result (2026-07-28).
    with_input_responses = some input_responses: InputResponses;
    /// Sets the `requestState` of that result, unchanged (2026-07-28).
    with_request_state = some request_state: String;
    /// Sets `_meta`.
    with_meta = meta meta;
});

/// The result of `resources/read`: the contents of a resource.
///
/// # Example
///
/// ```
/// use linchpin_types::content::ResourceContents;
/// use linchpin_types::page::CacheScope;
/// use linchpin_types::resource::ReadResourceResult;
///
/// let result = ReadResourceResult::new([ResourceContents::text("file:///a.md", "# A")])
///     .with_ttl_ms(60_000u64)
///     .with_cache_scope(CacheScope::Private);
/// assert_eq!(
///     serde_json::to_string(&result).unwrap(),
///     r##"{"contents":[{"uri":"file:///a.md","text":"# A"}],"ttlMs":60000,"cacheScope":"private"}"##,
/// );
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ReadResourceResult {
    /// The contents: a single item, or several items if the resource (such as a folder) has parts with their own URIs.
    pub contents: Vec<ResourceContents>,
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

impl ReadResourceResult {
    /// Creates a result with these contents.
    pub fn new(contents: impl IntoIterator<Item = ResourceContents>) -> Self {
        ReadResourceResult { contents: contents.into_iter().collect(), ..Default::default() }
    }
}

setters!(ReadResourceResult {
    /// Sets how long the result may be cached, in milliseconds (2026-07-28).
    with_ttl_ms = some ttl_ms: u64;
    /// Sets the cache scope (2026-07-28).
    with_cache_scope = some cache_scope: CacheScope;
    /// Sets `_meta`.
    with_meta = meta meta;
});

/// The parameters of `resources/subscribe` (2024-11-05 to 2025-11-25).
///
/// # Example
///
/// ```
/// use linchpin_types::resource::SubscribeRequestParams;
///
/// let params = SubscribeRequestParams::new("file:///a.md");
/// assert_eq!(serde_json::to_string(&params).unwrap(), r#"{"uri":"file:///a.md"}"#);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SubscribeRequestParams {
    /// The URI of the resource.
    pub uri: String,
    /// The `_meta` object.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl SubscribeRequestParams {
    /// Creates the parameters for the resource with this URI.
    pub fn new(uri: impl Into<String>) -> Self {
        SubscribeRequestParams { uri: uri.into(), ..Default::default() }
    }
}

setters!(SubscribeRequestParams {
    /// Sets `_meta`.
    with_meta = meta meta;
});

/// The parameters of `resources/unsubscribe` (2024-11-05 to 2025-11-25).
///
/// # Example
///
/// ```
/// use linchpin_types::resource::UnsubscribeRequestParams;
///
/// let params = UnsubscribeRequestParams::new("file:///a.md");
/// assert_eq!(serde_json::to_string(&params).unwrap(), r#"{"uri":"file:///a.md"}"#);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct UnsubscribeRequestParams {
    /// The URI of the resource.
    pub uri: String,
    /// The `_meta` object.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl UnsubscribeRequestParams {
    /// Creates the parameters for the resource with this URI.
    pub fn new(uri: impl Into<String>) -> Self {
        UnsubscribeRequestParams { uri: uri.into(), ..Default::default() }
    }
}

setters!(UnsubscribeRequestParams {
    /// Sets `_meta`.
    with_meta = meta meta;
});

/// The parameters of `notifications/resources/updated`.
///
/// # Example
///
/// ```
/// use linchpin_types::resource::ResourceUpdatedNotificationParams;
///
/// let json = r#"{"uri":"file:///a.md"}"#;
/// let params: ResourceUpdatedNotificationParams = serde_json::from_str(json).unwrap();
/// assert_eq!(params, ResourceUpdatedNotificationParams::new("file:///a.md"));
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ResourceUpdatedNotificationParams {
    /// The URI of the resource that changed, which may be a sub-resource of the one that the client subscribed to.
    pub uri: String,
    /// The `_meta` object.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl ResourceUpdatedNotificationParams {
    /// Creates the parameters for the resource with this URI.
    pub fn new(uri: impl Into<String>) -> Self {
        ResourceUpdatedNotificationParams { uri: uri.into(), ..Default::default() }
    }
}

setters!(ResourceUpdatedNotificationParams {
    /// Sets `_meta`.
    with_meta = meta meta;
});

eq_by_json!(ReadResourceRequestParams);
