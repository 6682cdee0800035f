//! Streams of change notifications (2026-07-28): `subscriptions/listen` and its acknowledgment.

use serde::{Deserialize, Serialize};

use crate::meta::Meta;
use crate::page::ResultType;
use crate::read::null_is_default;
use crate::setters::setters;

/// The changes that a client asks to be notified about, or that a server agrees to notify it about (2026-07-28). The
/// server does not send any other change notifications on the stream.
///
/// # Example
///
/// ```
/// use linchpin_types::subscribe::SubscriptionFilter;
///
/// let filter = SubscriptionFilter::new().with_tools_list_changed(true).with_resource_subscriptions(["file:///a.md"]);
/// assert_eq!(
///     serde_json::to_string(&filter).unwrap(),
///     r#"{"toolsListChanged":true,"resourceSubscriptions":["file:///a.md"]}"#,
/// );
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SubscriptionFilter {
    /// Whether changes of the tools list are included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools_list_changed: Option<bool>,
    /// Whether changes of the prompts list are included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompts_list_changed: Option<bool>,
    /// Whether changes of the resources list are included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources_list_changed: Option<bool>,
    /// The URIs of the resources whose changes are included.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    pub resource_subscriptions: Vec<String>,
    /// The identifiers of the tasks whose changes are included (the tasks extension).
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    pub task_ids: Vec<String>,
}

impl SubscriptionFilter {
    /// Creates a filter that does not include any changes.
    pub fn new() -> Self {
        Self::default()
    }
}

setters!(SubscriptionFilter {
    /// Sets whether changes of the tools list are included.
    with_tools_list_changed = some tools_list_changed: bool;
    /// Sets whether changes of the prompts list are included.
    with_prompts_list_changed = some prompts_list_changed: bool;
    /// Sets whether changes of the resources list are included.
    with_resources_list_changed = some resources_list_changed: bool;
    /// Sets the URIs of the resources whose changes are included.
    with_resource_subscriptions = list resource_subscriptions: String;
    /// Sets the identifiers of the tasks whose changes are included (the tasks extension).
    with_task_ids = list task_ids: String;
});

/// The parameters of `subscriptions/listen` (2026-07-28).
///
/// # Example
///
/// ```
/// use linchpin_types::subscribe::{SubscriptionFilter, SubscriptionsListenRequestParams};
///
/// let filter = SubscriptionFilter::new().with_prompts_list_changed(true);
/// let params = SubscriptionsListenRequestParams::new(filter);
/// assert_eq!(
///     serde_json::to_string(&params).unwrap(),
///     r#"{"notifications":{"promptsListChanged":true}}"#,
/// );
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SubscriptionsListenRequestParams {
    /// The changes that the client asks to be notified about.
    pub notifications: SubscriptionFilter,
    /// The `_meta` object (required in 2026-07-28).
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl SubscriptionsListenRequestParams {
    /// Creates the parameters with this filter.
    pub fn new(notifications: SubscriptionFilter) -> Self {
        SubscriptionsListenRequestParams { notifications, meta: None }
    }
}

setters!(SubscriptionsListenRequestParams {
    /// Sets `_meta`.
    with_meta = meta meta;
});

/// The parameters of `notifications/subscriptions/acknowledged` (2026-07-28), the first message of a stream.
///
/// # Example
///
/// ```
/// use linchpin_types::subscribe::SubscriptionsAcknowledgedNotificationParams;
///
/// let json = r#"{"notifications":{"toolsListChanged":true}}"#;
/// let params: SubscriptionsAcknowledgedNotificationParams = serde_json::from_str(json).unwrap();
/// assert_eq!(params.notifications.tools_list_changed, Some(true));
/// assert_eq!(params.notifications.prompts_list_changed, None);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SubscriptionsAcknowledgedNotificationParams {
    /// The changes that the server will notify the client about.
    pub notifications: SubscriptionFilter,
    /// The `_meta` object, which contains the id of the subscription.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl SubscriptionsAcknowledgedNotificationParams {
    /// Creates the parameters with this filter.
    pub fn new(notifications: SubscriptionFilter) -> Self {
        SubscriptionsAcknowledgedNotificationParams { notifications, meta: None }
    }
}

setters!(SubscriptionsAcknowledgedNotificationParams {
    /// Sets `_meta`.
    with_meta = meta meta;
});

/// The result of `subscriptions/listen`, which the server sends when it ends the stream (2026-07-28).
///
/// # Example
///
/// ```
/// use linchpin_types::meta::key;
/// use linchpin_types::subscribe::SubscriptionsListenResult;
///
/// let json = r#"{"resultType":"complete","_meta":{"io.modelcontextprotocol/subscriptionId":"s1"}}"#;
/// let result: SubscriptionsListenResult = serde_json::from_str(json)?;
/// let subscription: Option<String> = result.meta.unwrap_or_default().get_as(key::SUBSCRIPTION_ID)?;
/// assert_eq!(subscription.as_deref(), Some("s1"));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SubscriptionsListenResult {
    /// The type of this result (2026-07-28, required there).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_type: Option<ResultType>,
    /// The `_meta` object, which contains the id of the subscription.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}
