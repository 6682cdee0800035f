//! `_meta`: what travels beside the protocol's own fields, and the keys that the protocol reserves in it.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::read::{eq_by_json, from_raw};

/// The reserved keys of `_meta`.
pub mod key {
    /// The revision of this request (2026-07-28, required in requests).
    pub const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
    /// Who sends this request (2026-07-28).
    pub const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
    /// What the client can do for this request (2026-07-28, required in requests).
    pub const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
    /// From which level on the client wants log messages for this request (2026-07-28).
    pub const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
    /// Which `subscriptions/listen` request a notification belongs to (2026-07-28).
    pub const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
    /// Who answered (2026-07-28).
    pub const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
    /// Which task a message belongs to (2025-11-25).
    pub const RELATED_TASK: &str = "io.modelcontextprotocol/related-task";
    /// What a host may tell its model while a task runs (2025-11-25, in the answer that makes the task).
    pub const MODEL_IMMEDIATE_RESPONSE: &str = "io.modelcontextprotocol/model-immediate-response";
    /// The token under which the requester wants progress notifications (all revisions).
    pub const PROGRESS_TOKEN: &str = "progressToken";
    /// W3C trace context: the position in the trace.
    pub const TRACEPARENT: &str = "traceparent";
    /// W3C trace context: vendor data.
    pub const TRACESTATE: &str = "tracestate";
    /// W3C baggage.
    pub const BAGGAGE: &str = "baggage";
}

/// A `_meta` object: keys, in order of their bytes, to JSON of any kind. The schema's `MetaObject`.
///
/// Wherever one is set, JSON is taken as well:
///
/// ```
/// use linchpin_types::tool::CallToolResult;
/// use serde_json::json;
///
/// let result = CallToolResult::text("42 rows").with_meta(json!({ "example.com/took-ms": 17 }));
/// assert_eq!(result.meta.unwrap().get_as::<u32>("example.com/took-ms").unwrap(), Some(17));
/// ```
///
/// JSON that comes from elsewhere may be something else than an object, which is an error and no `Meta`:
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
    /// An empty one.
    pub fn new() -> Self {
        Self::default()
    }

    /// The value under `key`.
    pub fn get(&self, key: &str) -> Option<&RawValue> {
        self.0.get(key).map(|value| &**value)
    }

    /// The value under `key`, read as a `T`; `Ok(None)` when there is none.
    ///
    /// # Errors
    /// When there is a value and it is not a `T`.
    pub fn get_as<T: DeserializeOwned>(&self, key: &str) -> serde_json::Result<Option<T>> {
        self.get(key).map(from_raw).transpose()
    }

    /// Puts `value` under `key` and returns what was there before.
    pub fn insert(&mut self, key: impl Into<String>, value: Box<RawValue>) -> Option<Box<RawValue>> {
        self.0.insert(key.into(), value)
    }

    /// Writes `value` as JSON and puts it under `key`.
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
    /// When `value` cannot be written as JSON; nothing changes then.
    pub fn insert_as<T>(&mut self, key: impl Into<String>, value: &T) -> serde_json::Result<()>
    where
        T: Serialize + ?Sized,
    {
        self.insert(key, serde_json::value::to_raw_value(value)?);
        Ok(())
    }

    /// Takes out the value under `key`.
    pub fn remove(&mut self, key: &str) -> Option<Box<RawValue>> {
        self.0.remove(key)
    }

    /// Whether there are no keys.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many keys there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// All keys and values, in order of the keys.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &RawValue)> {
        self.0.iter().map(|(key, value)| (key.as_str(), &**value))
    }
}

impl From<Map<String, Value>> for Meta {
    fn from(members: Map<String, Value>) -> Self {
        Meta(members.into_iter().map(|(key, value)| (key, raw(&value))).collect())
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

/// The JSON is not an object, and so it cannot be a [`Meta`].
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

/// What `_meta` may be set to: a [`Meta`], a [`Map`] of JSON, or a [`Value`] such as `json!({ … })` makes.
///
/// ```
/// use linchpin_types::content::TextContent;
///
/// let text = TextContent::new("done").with_meta(serde_json::json!({ "com.example/id": 7 }));
/// assert_eq!(text.meta.unwrap().get_as::<u32>("com.example/id").unwrap(), Some(7));
/// ```
pub trait IntoMeta {
    /// The `_meta`.
    ///
    /// # Panics
    /// If it is valid JSON but not an object. Use [`Meta::try_from`] for JSON that comes from elsewhere.
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
