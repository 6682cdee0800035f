//! `_meta`: additional data in messages, and the keys that the protocol reserves in it.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::read::{eq_by_json, from_raw};

/// The reserved keys of `_meta`.
pub mod key {
    /// The protocol version of a request (2026-07-28, required in requests).
    pub const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
    /// The implementation of the client that sends a request (2026-07-28).
    pub const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
    /// The client's capabilities for a request (2026-07-28, required in requests).
    pub const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
    /// The least severe level of the log messages that the client wants to receive for a request (2026-07-28).
    pub const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
    /// The id of the `subscriptions/listen` request that a notification belongs to (2026-07-28).
    pub const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
    /// The implementation of the server that sends a result (2026-07-28).
    pub const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
    /// The task that a message belongs to (2025-11-25).
    pub const RELATED_TASK: &str = "io.modelcontextprotocol/related-task";
    /// A text that a host may give to its model while a task runs (2025-11-25, in the result that creates the task).
    pub const MODEL_IMMEDIATE_RESPONSE: &str = "io.modelcontextprotocol/model-immediate-response";
    /// The token of the progress notifications that the sender of a request asks for (all revisions).
    pub const PROGRESS_TOKEN: &str = "progressToken";
    /// W3C trace context: the position in the trace.
    pub const TRACEPARENT: &str = "traceparent";
    /// W3C trace context: vendor data.
    pub const TRACESTATE: &str = "tracestate";
    /// W3C baggage.
    pub const BAGGAGE: &str = "baggage";
}

/// A `_meta` object: a map from keys to arbitrary JSON values, in order of the keys' bytes. The schema calls it
/// `MetaObject`.
///
/// # Examples
///
/// The methods that set `_meta` also accept JSON values:
///
/// ```
/// use linchpin_types::tool::CallToolResult;
/// use serde_json::json;
///
/// let result = CallToolResult::text("42 rows").with_meta(json!({ "example.com/took-ms": 17 }));
/// assert_eq!(result.meta.unwrap().get_as::<u32>("example.com/took-ms").unwrap(), Some(17));
/// ```
///
/// JSON from an external source may not be an object. The conversion returns an error in this case:
///
/// ```
/// use linchpin_types::meta::Meta;
/// use serde_json::json;
///
/// assert!(Meta::try_from(json!({ "a": 1 })).is_ok());
/// assert_eq!(Meta::try_from(json!([1])).unwrap_err().to_string(), "`_meta` must be a JSON object, but is an array");
/// ```
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Meta(pub BTreeMap<String, Box<RawValue>>);

impl Meta {
    /// Creates an empty `_meta` object.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the value of `key`.
    pub fn get(&self, key: &str) -> Option<&RawValue> {
        self.0.get(key).map(|value| &**value)
    }

    /// Returns the value of `key`, deserialized as a `T`, or `Ok(None)` if there is no such key.
    ///
    /// # Errors
    /// Returns an error if the value cannot be deserialized as a `T`.
    pub fn get_as<T: DeserializeOwned>(&self, key: &str) -> serde_json::Result<Option<T>> {
        self.get(key).map(from_raw).transpose()
    }

    /// Inserts `value` at `key` and returns the previous value, if any.
    pub fn insert(&mut self, key: impl Into<String>, value: Box<RawValue>) -> Option<Box<RawValue>> {
        self.0.insert(key.into(), value)
    }

    /// Serializes `value` as JSON and inserts it at `key`.
    ///
    /// ```
    /// use linchpin_types::meta::Meta;
    ///
    /// let mut meta = Meta::new();
    /// meta.insert_as("example.com/colours", &["red", "green"])?;
    /// assert_eq!(serde_json::to_string(&meta)?, r#"{"example.com/colours":["red","green"]}"#);
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error if `value` cannot be serialized as JSON. The object is unchanged in this case.
    pub fn insert_as<T>(&mut self, key: impl Into<String>, value: &T) -> serde_json::Result<()>
    where
        T: Serialize + ?Sized,
    {
        self.insert(key, serde_json::value::to_raw_value(value)?);
        Ok(())
    }

    /// Removes `key` and returns its value, if any.
    pub fn remove(&mut self, key: &str) -> Option<Box<RawValue>> {
        self.0.remove(key)
    }

    /// Returns whether there are no keys.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the number of keys.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns an iterator over the keys and values, in order of the keys.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &RawValue)> {
        self.0.iter().map(|(key, value)| (key.as_str(), &**value))
    }
}

impl From<Map<String, Value>> for Meta {
    fn from(members: Map<String, Value>) -> Self {
        let mut entries = BTreeMap::new();
        entries.extend(members.into_iter().map(|(key, value)| (key, raw(&value))));
        Meta(entries)
    }
}

impl TryFrom<Value> for Meta {
    type Error = MetaError;

    fn try_from(value: Value) -> Result<Self, MetaError> {
        let found = match value {
            Value::Object(members) => return Ok(members.into()),
            Value::Null => "null",
            Value::Bool(_) => "a boolean",
            Value::Number(_) => "a number",
            Value::String(_) => "a string",
            Value::Array(_) => "an array",
        };
        Err(MetaError { found })
    }
}

fn raw(value: &Value) -> Box<RawValue> {
    serde_json::value::to_raw_value(value).expect("a tree of JSON can be written")
}

/// The error when a JSON value that is not an object is converted to a [`Meta`].
///
/// # Example
///
/// ```
/// use linchpin_types::meta::{Meta, MetaError};
/// use serde_json::json;
///
/// let error: MetaError = Meta::try_from(json!("text")).unwrap_err();
/// assert_eq!(error.to_string(), "`_meta` must be a JSON object, but is a string");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MetaError {
    found: &'static str,
}

impl fmt::Display for MetaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`_meta` must be a JSON object, but is {}", self.found)
    }
}

impl std::error::Error for MetaError {}

/// A type that can be converted to a [`Meta`]: a [`Meta`] itself, a [`Map`] of JSON values, or a [`Value`] such as the
/// result of `json!({ … })`.
///
/// # Example
///
/// ```
/// use linchpin_types::content::TextContent;
///
/// let text = TextContent::new("done").with_meta(serde_json::json!({ "com.example/id": 7 }));
/// assert_eq!(text.meta.unwrap().get_as::<u32>("com.example/id").unwrap(), Some(7));
/// ```
pub trait IntoMeta {
    /// Converts this value to a [`Meta`].
    ///
    /// # Panics
    /// Panics if the value is JSON other than an object. Use [`Meta::try_from`] for JSON from an external source.
    fn into_meta(self) -> Meta;
}

impl<T> IntoMeta for T
where
    T: TryInto<Meta>,
    T::Error: fmt::Display,
{
    fn into_meta(self) -> Meta {
        self.try_into().unwrap_or_else(|why| panic!("{why}"))
    }
}

impl FromIterator<(String, Box<RawValue>)> for Meta {
    fn from_iter<I: IntoIterator<Item = (String, Box<RawValue>)>>(entries: I) -> Self {
        Meta(entries.into_iter().collect())
    }
}

impl Extend<(String, Box<RawValue>)> for Meta {
    fn extend<I: IntoIterator<Item = (String, Box<RawValue>)>>(&mut self, entries: I) {
        self.0.extend(entries);
    }
}

eq_by_json!(Meta);
