//! `_meta`: what travels beside the protocol's own fields, and the keys that the protocol reserves in it.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::capability::ClientCapabilities;
use crate::jsonrpc::ProgressToken;
use crate::lifecycle::Implementation;
use crate::logging::LoggingLevel;
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

/// The `_meta` of a request, reserved keys only. Everything but `progressToken` is new in 2026-07-28, where
/// `protocolVersion` and `clientCapabilities` are required; they are optional here so that their absence can be
/// answered with a proper error.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct RequestMetaObject {
    /// The revision of this request.
    #[serde(rename = "io.modelcontextprotocol/protocolVersion", default, skip_serializing_if = "Option::is_none")]
    pub protocol_version: Option<String>,
    /// Who sends it; self-reported, for display and logs only.
    #[serde(rename = "io.modelcontextprotocol/clientInfo", default, skip_serializing_if = "Option::is_none")]
    pub client_info: Option<Implementation>,
    /// What the client can do for this request.
    #[serde(rename = "io.modelcontextprotocol/clientCapabilities", default, skip_serializing_if = "Option::is_none")]
    pub client_capabilities: Option<ClientCapabilities>,
    /// From which level on log messages are wanted; absent means none.
    #[serde(rename = "io.modelcontextprotocol/logLevel", default, skip_serializing_if = "Option::is_none")]
    pub log_level: Option<LoggingLevel>,
    /// The token for progress notifications; absent means none are wanted.
    #[serde(rename = "progressToken", default, skip_serializing_if = "Option::is_none")]
    pub progress_token: Option<ProgressToken>,
}

eq_by_json!(Meta, RequestMetaObject);
