//! Requests with several rounds (2026-07-28): a result asks for input, and the client sends the same request again with
//! its responses.

use std::collections::BTreeMap;

use serde::de::{Deserializer, Error};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::elicit::{ElicitRequestParams, ElicitResult};
use crate::jsonrpc::method;
use crate::meta::Meta;
use crate::page::ResultType;
use crate::read::{by_raw, from_raw};
use crate::root::{ListRootsRequestParams, ListRootsResult};
use crate::sample::{CreateMessageRequestParams, CreateMessageResult};
use crate::setters::setters;

/// A request for input from the client: `{"method": …, "params": …}`. The `method` member identifies the variant.
///
/// # Example
///
/// ```
/// use linchpin_types::mrtr::InputRequest;
///
/// let request: InputRequest = serde_json::from_str(r#"{"method":"roots/list"}"#).unwrap();
/// assert_eq!(request.method(), "roots/list");
/// ```
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "method", content = "params")]
#[non_exhaustive]
pub enum InputRequest {
    /// Asks the user for input.
    #[serde(rename = "elicitation/create")]
    Elicit(ElicitRequestParams),
    /// Asks the client's model to generate a message.
    #[serde(rename = "sampling/createMessage")]
    CreateMessage(Box<CreateMessageRequestParams>),
    /// Asks for the client's roots.
    #[serde(rename = "roots/list")]
    ListRoots(ListRootsRequestParams),
}

impl InputRequest {
    /// Returns the name of the method. Before 2026-07-28, the same question is a JSON-RPC request with this method.
    pub fn method(&self) -> &'static str {
        match self {
            InputRequest::Elicit(_) => method::ELICITATION_CREATE,
            InputRequest::CreateMessage(_) => method::SAMPLING_CREATE_MESSAGE,
            InputRequest::ListRoots(_) => method::ROOTS_LIST,
        }
    }

    /// Reads a request from its method and its `params`, as JSON text: what a JSON-RPC request has apart.
    ///
    /// # Errors
    /// If there is no such request, or its parameters are missing or malformed.
    ///
    /// # Example
    ///
    /// ```
    /// use linchpin_types::mrtr::InputRequest;
    ///
    /// let request = InputRequest::read("elicitation/create", Some(r#"{"message":"Sure?","requestedSchema":{"type":"object","properties":{}}}"#));
    /// assert!(matches!(request, Ok(InputRequest::Elicit(_))));
    /// assert!(InputRequest::read("tools/call", Some("{}")).is_err());
    /// ```
    pub fn read(method: &str, params: Option<&str>) -> Result<InputRequest, serde_json::Error> {
        let required = || params.ok_or_else(|| serde_json::Error::missing_field("params"));
        match method {
            method::ELICITATION_CREATE => serde_json::from_str(required()?).map(InputRequest::Elicit),
            method::SAMPLING_CREATE_MESSAGE => serde_json::from_str(required()?).map(InputRequest::CreateMessage),
            method::ROOTS_LIST => {
                params.map_or(Ok(ListRootsRequestParams::default()), serde_json::from_str).map(InputRequest::ListRoots)
            }
            _ => {
                let shown: String = method.chars().take(40).collect();
                Err(serde_json::Error::custom(format_args!("unknown method {shown:?} of an input request")))
            }
        }
    }
}

impl<'de> Deserialize<'de> for InputRequest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Call {
            method: String,
            #[serde(default)]
            params: Option<Box<RawValue>>,
        }
        let Call { method: name, params } = Call::deserialize(deserializer)?;
        InputRequest::read(&name, params.as_deref().map(RawValue::get)).map_err(D::Error::custom)
    }
}

/// The input requests of a result, by keys that the server chooses.
pub type InputRequests = BTreeMap<String, InputRequest>;

/// The client's responses, by the keys of the input requests. They are raw JSON, because only the input request
/// determines the type of its response, and an invalid response should not invalidate the others. Read them as
/// [`InputResponse`] or as the type that belongs to the input request.
pub type InputResponses = BTreeMap<String, Box<RawValue>>;

/// The client's response to one [`InputRequest`]. When it is deserialized, the presence of `action`, `roots` or neither
/// identifies the variant.
///
/// # Example
///
/// ```
/// use linchpin_types::elicit::ElicitAction;
/// use linchpin_types::mrtr::{InputResponse, InputResponses};
///
/// let json = r#"{"name":{"action":"accept","content":{"name":"Ann"}}}"#;
/// let responses: InputResponses = serde_json::from_str(json)?;
/// match serde_json::from_str(responses["name"].get())? {
///     InputResponse::Elicit(result) => assert_eq!(result.action, ElicitAction::Accept),
///     other => panic!("not a user's response: {other:?}"),
/// }
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
#[non_exhaustive]
pub enum InputResponse {
    /// The user's response.
    Elicit(ElicitResult),
    /// The message that the model generated.
    CreateMessage(CreateMessageResult),
    /// The client's roots.
    ListRoots(ListRootsResult),
}

impl<'de> Deserialize<'de> for InputResponse {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        by_raw(deserializer, InputResponse::of)
    }
}

impl InputResponse {
    fn of(raw: &RawValue) -> serde_json::Result<Self> {
        #[derive(Deserialize)]
        struct Probe {
            #[serde(default)]
            action: Option<serde::de::IgnoredAny>,
            #[serde(default)]
            roots: Option<serde::de::IgnoredAny>,
        }
        match from_raw(raw)? {
            Probe { action: Some(_), .. } => from_raw(raw).map(InputResponse::Elicit),
            Probe { roots: Some(_), .. } => from_raw(raw).map(InputResponse::ListRoots),
            Probe { .. } => from_raw(raw).map(InputResponse::CreateMessage),
        }
    }
}

/// A result that asks for input: the client sends the request again, with its responses and the state (2026-07-28). At
/// least one of `input_requests` and `request_state` is present.
///
/// # Example
///
/// ```
/// use linchpin_types::elicit::{ElicitRequestFormParams, RequestedSchema};
/// use linchpin_types::mrtr::{InputRequest, InputRequiredResult};
///
/// let question = ElicitRequestFormParams::new("Sure?", RequestedSchema::new());
/// let result = InputRequiredResult::new([("sure", InputRequest::Elicit(question.into()))])
///     .with_request_state("sealed");
/// assert_eq!(result.input_requests.unwrap()["sure"].method(), "elicitation/create");
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct InputRequiredResult {
    /// Always [`ResultType::InputRequired`].
    pub result_type: ResultType,
    /// The requests for input. If absent, the client only sends its request again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_requests: Option<InputRequests>,
    /// An opaque state that the client sends back unchanged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_state: Option<String>,
    /// The `_meta` object.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl InputRequiredResult {
    /// Creates a result with these requests for input, each with a unique key.
    pub fn new(requests: impl IntoIterator<Item = (impl Into<String>, InputRequest)>) -> Self {
        let requests = requests.into_iter().map(|(key, request)| (key.into(), request)).collect();
        InputRequiredResult { input_requests: Some(requests), ..Default::default() }
    }
}

setters!(InputRequiredResult {
    /// Sets the state that the client sends back unchanged.
    with_request_state = some request_state: String;
    /// Sets `_meta`.
    with_meta = meta meta;
});

impl Default for InputRequiredResult {
    /// Creates a result without any requests. The caller must set `input_requests` or `request_state`.
    fn default() -> Self {
        InputRequiredResult {
            result_type: ResultType::InputRequired,
            input_requests: None,
            request_state: None,
            meta: None,
        }
    }
}
