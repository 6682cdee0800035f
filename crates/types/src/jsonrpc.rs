//! JSON-RPC 2.0 as the protocol uses it: identifiers, the messages, and the names of the methods.
//!
//! The messages here own their data. `linchpin-proto` has a reader that borrows from the input instead.

use std::fmt;

use serde::de::{Deserializer, Error, Visitor};
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::error::ErrorObject;
use crate::read::{by_raw, eq_by_json, from_raw};
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
    /// Gets the status of a task (2025-11-25, and the tasks extension of 2026-07-28).
    pub const TASKS_GET: &str = "tasks/get";
    /// Gets the result of a task (2025-11-25 only).
    pub const TASKS_RESULT: &str = "tasks/result";
    /// Lists tasks (2025-11-25 only).
    pub const TASKS_LIST: &str = "tasks/list";
    /// Responds to the input requests of a task (the tasks extension of 2026-07-28).
    pub const TASKS_UPDATE: &str = "tasks/update";
    /// Cancels a task (2025-11-25, and the tasks extension of 2026-07-28).
    pub const TASKS_CANCEL: &str = "tasks/cancel";
    /// The status of a task changed (2025-11-25 only).
    pub const NOTIFICATIONS_TASKS_STATUS: &str = "notifications/tasks/status";
    /// The status of a task changed (the tasks extension of 2026-07-28).
    pub const NOTIFICATIONS_TASKS: &str = "notifications/tasks";
}

/// The id of a request: a string or an integer.
///
/// # Example
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

/// The token of a request's progress notifications: a string or an integer that the sender of the request chooses.
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

/// The value of the member `"jsonrpc": "2.0"`. Deserializing any other value is an error.
///
/// # Example
///
/// ```
/// use linchpin_types::jsonrpc::TwoPointZero;
///
/// assert_eq!(serde_json::to_string(&TwoPointZero).unwrap(), r#""2.0""#);
/// assert!(serde_json::from_str::<TwoPointZero>(r#""1.0""#).is_err());
/// ```
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
///
/// # Example
///
/// ```
/// use linchpin_types::jsonrpc::{JSONRPCRequest, TwoPointZero, method};
///
/// let method = method::TOOLS_LIST.to_owned();
/// let request = JSONRPCRequest { jsonrpc: TwoPointZero, id: 1.into(), method, params: None };
/// assert_eq!(
///     serde_json::to_string(&request).unwrap(),
///     r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#,
/// );
/// ```
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct JSONRPCRequest {
    /// Always `"2.0"`.
    pub jsonrpc: TwoPointZero,
    /// The id of the request, which the response repeats.
    pub id: RequestId,
    /// The name of the method; see [`method`].
    pub method: String,
    /// The parameters, an object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub params: Option<Box<RawValue>>,
}

/// A notification, which has no response.
///
/// # Example
///
/// ```
/// use linchpin_types::jsonrpc::{JSONRPCNotification, TwoPointZero, method};
///
/// let method = method::NOTIFICATIONS_INITIALIZED.to_owned();
/// let notification = JSONRPCNotification { jsonrpc: TwoPointZero, method, params: None };
/// assert_eq!(
///     serde_json::to_string(&notification).unwrap(),
///     r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
/// );
/// ```
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct JSONRPCNotification {
    /// Always `"2.0"`.
    pub jsonrpc: TwoPointZero,
    /// The name of the method; see [`method`].
    pub method: String,
    /// The parameters, an object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub params: Option<Box<RawValue>>,
}

/// A successful response. Called `JSONRPCResponse` in the schemas up to 2025-06-18.
///
/// # Example
///
/// ```
/// use linchpin_types::jsonrpc::JSONRPCResultResponse;
/// use linchpin_types::tool::CallToolResult;
///
/// let json = r#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"12 degrees"}]}}"#;
/// let response: JSONRPCResultResponse = serde_json::from_str(json)?;
/// let result: CallToolResult = serde_json::from_str(response.result.get())?;
/// assert_eq!(result, CallToolResult::text("12 degrees"));
/// # Ok::<(), serde_json::Error>(())
/// ```
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
///
/// # Example
///
/// ```
/// use linchpin_types::error::{ErrorObject, code};
/// use linchpin_types::jsonrpc::{JSONRPCErrorResponse, TwoPointZero};
///
/// let error = ErrorObject::new(code::METHOD_NOT_FOUND, "unknown method");
/// let response = JSONRPCErrorResponse { jsonrpc: TwoPointZero, id: Some(1.into()), error };
/// assert_eq!(
///     serde_json::to_string(&response).unwrap(),
///     r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"unknown method"}}"#,
/// );
/// ```
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct JSONRPCErrorResponse {
    /// Always `"2.0"`.
    pub jsonrpc: TwoPointZero,
    /// The id of the request; absent or `null` when it could not be read (the schemas from 2025-11-25 on allow that).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<RequestId>,
    /// The reason for the failure.
    pub error: ErrorObject,
}

/// Any single message. Batches (2025-03-26 only) are arrays of these.
///
/// # Example
///
/// ```
/// use linchpin_types::jsonrpc::JSONRPCMessage;
///
/// match serde_json::from_str(r#"{"jsonrpc":"2.0","id":"a","method":"ping"}"#)? {
///     JSONRPCMessage::Request(request) => assert_eq!(request.method, "ping"),
///     other => panic!("not a request: {other:?}"),
/// }
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
pub enum JSONRPCMessage {
    /// A request, which has `method` and `id`.
    Request(JSONRPCRequest),
    /// A notification, which has `method` and no `id`.
    Notification(JSONRPCNotification),
    /// A successful response, which has `result`.
    Result(JSONRPCResultResponse),
    /// An error response, which has `error`.
    Error(JSONRPCErrorResponse),
}

impl<'de> Deserialize<'de> for JSONRPCMessage {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        by_raw(deserializer, JSONRPCMessage::of)
    }
}

impl JSONRPCMessage {
    fn of(raw: &RawValue) -> serde_json::Result<Self> {
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
        let probe: Probe = from_raw(raw)?;
        match (probe.method, probe.id, probe.error, probe.result) {
            (Some(_), Some(_), _, _) => from_raw(raw).map(JSONRPCMessage::Request),
            (Some(_), None, _, _) => from_raw(raw).map(JSONRPCMessage::Notification),
            (None, _, Some(_), _) => from_raw(raw).map(JSONRPCMessage::Error),
            (None, _, None, Some(_)) => from_raw(raw).map(JSONRPCMessage::Result),
            (None, _, None, None) => Err(serde_json::Error::custom("message has none of method, result and error")),
        }
    }
}

eq_by_json!(JSONRPCRequest, JSONRPCNotification, JSONRPCResultResponse, JSONRPCErrorResponse, JSONRPCMessage);

/// The parameters of `notifications/cancelled`.
///
/// # Example
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
    /// The id of the request to cancel. Required except in 2025-11-25, where a task may be identified instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<RequestId>,
    /// The reason, which can be shown to the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The `_meta` object.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<crate::meta::Meta>,
}

impl CancelledNotificationParams {
    /// Creates the parameters that cancel the request with this id.
    pub fn new(request_id: impl Into<RequestId>) -> Self {
        CancelledNotificationParams { request_id: Some(request_id.into()), ..Default::default() }
    }
}

setters!(CancelledNotificationParams {
    /// Sets the reason, which can be shown to the user.
    with_reason = some reason: String;
    /// Sets `_meta`.
    with_meta = meta meta;
});

/// The parameters of a request without any specific ones: `ping`, `server/discover` and `roots/list`.
///
/// # Example
///
/// ```
/// use linchpin_types::jsonrpc::RequestParams;
/// use serde_json::json;
///
/// let params = RequestParams::default().with_meta(json!({ "progressToken": 7 }));
/// assert_eq!(serde_json::to_string(&params).unwrap(), r#"{"_meta":{"progressToken":7}}"#);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RequestParams {
    /// The `_meta` object (required in 2026-07-28).
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<crate::meta::Meta>,
}

setters!(RequestParams {
    /// Sets `_meta`.
    with_meta = meta meta;
});

/// The parameters of a notification without any specific ones, such as `notifications/tools/list_changed`.
///
/// # Example
///
/// ```
/// use linchpin_types::jsonrpc::NotificationParams;
/// use linchpin_types::meta::key;
///
/// let json = r#"{"_meta":{"io.modelcontextprotocol/subscriptionId":"s1"}}"#;
/// let params: NotificationParams = serde_json::from_str(json)?;
/// let subscription: Option<String> = params.meta.unwrap_or_default().get_as(key::SUBSCRIPTION_ID)?;
/// assert_eq!(subscription.as_deref(), Some("s1"));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct NotificationParams {
    /// The `_meta` object, which contains the id of the subscription in 2026-07-28.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<crate::meta::Meta>,
}

setters!(NotificationParams {
    /// Sets `_meta`.
    with_meta = meta meta;
});

/// A result without any data, which only acknowledges the request.
///
/// # Example
///
/// ```
/// use linchpin_types::jsonrpc::EmptyResult;
///
/// assert_eq!(serde_json::to_string(&EmptyResult::default()).unwrap(), "{}");
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct EmptyResult {
    /// The type of this result (2026-07-28, required there).
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
