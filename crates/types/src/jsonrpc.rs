//! JSON-RPC 2.0 as the protocol uses it: identifiers, the messages, and the names of the methods.
//!
//! The messages here own their parts. A server's hot path borrows instead; that reader lives in `linchpin-proto`.

use std::fmt;

use serde::de::{Deserializer, Error, Visitor};
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::error::ErrorObject;
use crate::read::{eq_by_json, from_raw};
use crate::setters::setters;

/// Names of methods and notifications.
pub mod method {
    /// Opens a session (2024-11-05 to 2025-11-25).
    pub const INITIALIZE: &str = "initialize";
    /// The client is ready (2024-11-05 to 2025-11-25).
    pub const NOTIFICATIONS_INITIALIZED: &str = "notifications/initialized";
    /// Checks whether the peer is alive (2024-11-05 to 2025-11-25).
    pub const PING: &str = "ping";
    /// Discovers the server's identity and capabilities (2026-07-28).
    pub const SERVER_DISCOVER: &str = "server/discover";
    /// Opens a stream of change notifications (2026-07-28).
    pub const SUBSCRIPTIONS_LISTEN: &str = "subscriptions/listen";
    /// Acknowledges which changes a stream will carry (2026-07-28).
    pub const NOTIFICATIONS_SUBSCRIPTIONS_ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";
    /// Lists tools.
    pub const TOOLS_LIST: &str = "tools/list";
    /// Calls a tool.
    pub const TOOLS_CALL: &str = "tools/call";
    /// The list of tools changed.
    pub const NOTIFICATIONS_TOOLS_LIST_CHANGED: &str = "notifications/tools/list_changed";
    /// Lists resources.
    pub const RESOURCES_LIST: &str = "resources/list";
    /// Lists resource templates.
    pub const RESOURCES_TEMPLATES_LIST: &str = "resources/templates/list";
    /// Reads a resource.
    pub const RESOURCES_READ: &str = "resources/read";
    /// Subscribes to one resource (2024-11-05 to 2025-11-25).
    pub const RESOURCES_SUBSCRIBE: &str = "resources/subscribe";
    /// Ends a subscription to one resource (2024-11-05 to 2025-11-25).
    pub const RESOURCES_UNSUBSCRIBE: &str = "resources/unsubscribe";
    /// A resource changed.
    pub const NOTIFICATIONS_RESOURCES_UPDATED: &str = "notifications/resources/updated";
    /// The list of resources changed.
    pub const NOTIFICATIONS_RESOURCES_LIST_CHANGED: &str = "notifications/resources/list_changed";
    /// Lists prompts.
    pub const PROMPTS_LIST: &str = "prompts/list";
    /// Renders a prompt.
    pub const PROMPTS_GET: &str = "prompts/get";
    /// The list of prompts changed.
    pub const NOTIFICATIONS_PROMPTS_LIST_CHANGED: &str = "notifications/prompts/list_changed";
    /// Suggests values for an argument.
    pub const COMPLETION_COMPLETE: &str = "completion/complete";
    /// Sets the level of log messages for the session (2024-11-05 to 2025-11-25).
    pub const LOGGING_SET_LEVEL: &str = "logging/setLevel";
    /// A log message.
    pub const NOTIFICATIONS_MESSAGE: &str = "notifications/message";
    /// Progress of a running request.
    pub const NOTIFICATIONS_PROGRESS: &str = "notifications/progress";
    /// Cancels a request.
    pub const NOTIFICATIONS_CANCELLED: &str = "notifications/cancelled";
    /// Requests sampling by the client's model (a request up to 2025-11-25, an input request in 2026-07-28).
    pub const SAMPLING_CREATE_MESSAGE: &str = "sampling/createMessage";
    /// Requests the client's roots (a request up to 2025-11-25, an input request in 2026-07-28).
    pub const ROOTS_LIST: &str = "roots/list";
    /// The client's roots changed (2024-11-05 to 2025-11-25).
    pub const NOTIFICATIONS_ROOTS_LIST_CHANGED: &str = "notifications/roots/list_changed";
    /// Elicits input from the user (a request in 2025-06-18 and 2025-11-25, an input request in 2026-07-28).
    pub const ELICITATION_CREATE: &str = "elicitation/create";
    /// A URL elicitation has ended (2025-11-25 only).
    pub const NOTIFICATIONS_ELICITATION_COMPLETE: &str = "notifications/elicitation/complete";
    /// Gets the state of a task (2025-11-25, and the tasks extension of 2026-07-28).
    pub const TASKS_GET: &str = "tasks/get";
    /// Gets the result of a task (2025-11-25 only).
    pub const TASKS_RESULT: &str = "tasks/result";
    /// Lists tasks (2025-11-25 only).
    pub const TASKS_LIST: &str = "tasks/list";
    /// Answers questions of a task (the tasks extension of 2026-07-28).
    pub const TASKS_UPDATE: &str = "tasks/update";
    /// Cancels a task (2025-11-25, and the tasks extension of 2026-07-28).
    pub const TASKS_CANCEL: &str = "tasks/cancel";
    /// The state of a task changed (2025-11-25 only).
    pub const NOTIFICATIONS_TASKS_STATUS: &str = "notifications/tasks/status";
    /// The state of a task changed (the tasks extension of 2026-07-28).
    pub const NOTIFICATIONS_TASKS: &str = "notifications/tasks";
}

/// The id of a request: a string or an integer.
///
/// ```
/// use linchpin_types::jsonrpc::RequestId;
///
/// assert_eq!(serde_json::from_str::<RequestId>("7").unwrap(), RequestId::from(7));
/// assert_eq!(RequestId::from("a").to_string(), "a");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RequestId {
    /// An integer.
    Number(i64),
    /// A string.
    String(String),
}

/// The token of a request's progress notifications: a string or an integer, chosen by the requester.
pub type ProgressToken = RequestId;

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RequestId::Number(number) => fmt::Display::fmt(number, f),
            RequestId::String(text) => f.pad(text),
        }
    }
}

impl From<i64> for RequestId {
    fn from(number: i64) -> Self {
        RequestId::Number(number)
    }
}

impl From<String> for RequestId {
    fn from(text: String) -> Self {
        RequestId::String(text)
    }
}

impl From<&str> for RequestId {
    fn from(text: &str) -> Self {
        RequestId::String(text.to_owned())
    }
}

impl Serialize for RequestId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            RequestId::Number(number) => serializer.serialize_i64(*number),
            RequestId::String(text) => serializer.serialize_str(text),
        }
    }
}

impl<'de> Deserialize<'de> for RequestId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(RequestIdVisitor)
    }
}

struct RequestIdVisitor;

impl Visitor<'_> for RequestIdVisitor {
    type Value = RequestId;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string or a whole number")
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<RequestId, E> {
        Ok(RequestId::Number(number))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<RequestId, E> {
        i64::try_from(number).map(RequestId::Number).map_err(|_| E::custom("id is larger than 2^63 - 1"))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<RequestId, E> {
        // JSON does not tell 7.0 from 7; beyond 2^53 a float no longer names one whole number.
        const EXACT_MAX: f64 = 9_007_199_254_740_992.0;
        if number.fract() == 0.0 && number.abs() <= EXACT_MAX {
            Ok(RequestId::Number(number as i64))
        } else {
            Err(E::custom("id is not a whole number"))
        }
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<RequestId, E> {
        Ok(RequestId::String(text.to_owned()))
    }

    fn visit_string<E: Error>(self, text: String) -> Result<RequestId, E> {
        Ok(RequestId::String(text))
    }
}

/// The member `"jsonrpc": "2.0"`. Reading anything else is an error.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct TwoPointZero;

impl Serialize for TwoPointZero {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str("2.0")
    }
}

impl<'de> Deserialize<'de> for TwoPointZero {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        if text == "2.0" { Ok(TwoPointZero) } else { Err(D::Error::custom("jsonrpc is not \"2.0\"")) }
    }
}

/// A request, which expects a response.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct JSONRPCRequest {
    /// Always `"2.0"`.
    pub jsonrpc: TwoPointZero,
    /// The id of the response.
    pub id: RequestId,
    /// The method; see [`method`].
    pub method: String,
    /// The parameters, an object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub params: Option<Box<RawValue>>,
}

/// A notification, which has no response.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct JSONRPCNotification {
    /// Always `"2.0"`.
    pub jsonrpc: TwoPointZero,
    /// The method; see [`method`].
    pub method: String,
    /// The parameters, an object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub params: Option<Box<RawValue>>,
}

/// A successful response. Called `JSONRPCResponse` in the schemas up to 2025-06-18.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct JSONRPCResultResponse {
    /// Always `"2.0"`.
    pub jsonrpc: TwoPointZero,
    /// The id of the request.
    pub id: RequestId,
    /// The result, an object.
    pub result: Box<RawValue>,
}

/// An error response. Called `JSONRPCError` in the schemas up to 2025-06-18.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct JSONRPCErrorResponse {
    /// Always `"2.0"`.
    pub jsonrpc: TwoPointZero,
    /// The id of the request; absent or `null` when it could not be read (the schemas from 2025-11-25 on allow that).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<RequestId>,
    /// Why it failed.
    pub error: ErrorObject,
}

/// Any single message. Batches (2025-03-26 only) are arrays of these.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
pub enum JSONRPCMessage {
    /// Has `method` and `id`.
    Request(JSONRPCRequest),
    /// Has `method` and no `id`.
    Notification(JSONRPCNotification),
    /// Has `result`.
    Result(JSONRPCResultResponse),
    /// Has `error`.
    Error(JSONRPCErrorResponse),
}

impl<'de> Deserialize<'de> for JSONRPCMessage {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Probe {
            #[serde(default)]
            method: Option<serde::de::IgnoredAny>,
            #[serde(default, deserialize_with = "crate::read::null_is_some")]
            id: Option<Box<RawValue>>,
            #[serde(default, deserialize_with = "crate::read::null_is_some")]
            result: Option<Box<RawValue>>,
            #[serde(default)]
            error: Option<serde::de::IgnoredAny>,
        }
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        let probe: Probe = from_raw(&raw)?;
        match (probe.method, probe.id, probe.error, probe.result) {
            (Some(_), Some(_), _, _) => from_raw(&raw).map(JSONRPCMessage::Request),
            (Some(_), None, _, _) => from_raw(&raw).map(JSONRPCMessage::Notification),
            (None, _, Some(_), _) => from_raw(&raw).map(JSONRPCMessage::Error),
            (None, _, None, Some(_)) => from_raw(&raw).map(JSONRPCMessage::Result),
            (None, _, None, None) => Err(D::Error::custom("message has none of method, result and error")),
        }
    }
}

eq_by_json!(JSONRPCRequest, JSONRPCNotification, JSONRPCResultResponse, JSONRPCErrorResponse, JSONRPCMessage);

/// The parameters of `notifications/cancelled`.
///
/// ```
/// use linchpin_types::jsonrpc::CancelledNotificationParams;
///
/// let params = CancelledNotificationParams::new(7).with_reason("the user closed the window");
/// assert_eq!(
///     serde_json::to_string(&params).unwrap(),
///     r#"{"requestId":7,"reason":"the user closed the window"}"#,
/// );
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CancelledNotificationParams {
    /// The request that is no longer wanted. Required except in 2025-11-25, where a task may be meant instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<RequestId>,
    /// Why, for a user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The `_meta` object.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<crate::meta::Meta>,
}

impl CancelledNotificationParams {
    /// The request with this id is no longer wanted.
    pub fn new(request_id: impl Into<RequestId>) -> Self {
        CancelledNotificationParams { request_id: Some(request_id.into()), ..Default::default() }
    }
}

setters!(CancelledNotificationParams {
    /// Sets the reason, for users.
    with_reason = some reason: String;
    /// Sets `_meta`.
    with_meta = meta meta;
});

/// The parameters of a request that has none of its own (`ping`, `server/discover`, `roots/list`).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RequestParams {
    /// The `_meta` object; required in 2026-07-28.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<crate::meta::Meta>,
}

setters!(RequestParams {
    /// Sets `_meta`.
    with_meta = meta meta;
});

/// The parameters of a notification that has none of its own (the `list_changed` family).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct NotificationParams {
    /// The `_meta` object; in 2026-07-28 holds the subscription's id.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<crate::meta::Meta>,
}

setters!(NotificationParams {
    /// Sets `_meta`.
    with_meta = meta meta;
});

/// A result that says nothing but "done".
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct EmptyResult {
    /// Whether the request is complete (2026-07-28, required there).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_type: Option<crate::page::ResultType>,
    /// The `_meta` object.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<crate::meta::Meta>,
}

setters!(EmptyResult {
    /// Sets `_meta`.
    with_meta = meta meta;
});
