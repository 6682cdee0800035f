//! Streams of change notifications (2026-07-28): `subscriptions/listen` and its acknowledgement.

use serde::{Deserialize, Serialize};

use crate::meta::Meta;
use crate::page::ResultType;
use crate::read::null_is_default;
use crate::setters::setters;

/// Which changes a client wants to hear of, or a server agreed to tell (2026-07-28). What is not named is not sent.
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
    /// The list of tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools_list_changed: Option<bool>,
    /// The list of prompts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompts_list_changed: Option<bool>,
    /// The list of resources.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources_list_changed: Option<bool>,
    /// These resources, by URI.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    pub resource_subscriptions: Vec<String>,
    /// These tasks, by their identifiers (the tasks extension).
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    pub task_ids: Vec<String>,
}

impl SubscriptionFilter {
    /// No changes yet.
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
    /// Sets the resources, by URI.
    with_resource_subscriptions = list resource_subscriptions: String;
    /// Sets the tasks, by their identifiers (the tasks extension).
    with_task_ids = list task_ids: String;
});

/// The parameters of `subscriptions/listen` (2026-07-28).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SubscriptionsListenRequestParams {
    /// Which changes the client wants to hear of.
    pub notifications: SubscriptionFilter,
    /// The `_meta` object (required in 2026-07-28).
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl SubscriptionsListenRequestParams {
    /// These changes.
    pub fn new(notifications: SubscriptionFilter) -> Self {
        SubscriptionsListenRequestParams { notifications, meta: None }
    }
}

setters!(SubscriptionsListenRequestParams {
    /// Sets `_meta`.
    with_meta = meta meta;
});

/// The parameters of `notifications/subscriptions/acknowledged` (2026-07-28), the first message of a stream.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SubscriptionsAcknowledgedNotificationParams {
    /// Which changes the server will tell.
    pub notifications: SubscriptionFilter,
    /// Holds the subscription's id.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl SubscriptionsAcknowledgedNotificationParams {
    /// These changes.
    pub fn new(notifications: SubscriptionFilter) -> Self {
        SubscriptionsAcknowledgedNotificationParams { notifications, meta: None }
    }
}

setters!(SubscriptionsAcknowledgedNotificationParams {
    /// Sets `_meta`.
    with_meta = meta meta;
});

/// The answer to `subscriptions/listen`, sent when the server ends the stream (2026-07-28).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SubscriptionsListenResult {
    /// Whether the request is complete (2026-07-28, required there).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_type: Option<ResultType>,
    /// Holds the subscription's id.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}
