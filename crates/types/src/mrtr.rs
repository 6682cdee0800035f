//! Requests that take several rounds (2026-07-28): a result asks for input, and the client sends the same request
//! again with the answers.

use std::collections::BTreeMap;

use serde::de::{Deserializer, Error};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::elicit::{ElicitRequestParams, ElicitResult};
use crate::jsonrpc::method;
use crate::meta::Meta;
use crate::page::ResultType;
use crate::read::from_raw;
use crate::root::{ListRootsRequestParams, ListRootsResult};
use crate::sample::{CreateMessageRequestParams, CreateMessageResult};
use crate::setters::setters;

/// What the server wants from the client: `{"method": …, "params": …}`, told apart by `method`.
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
    /// The user's answer to a question.
    #[serde(rename = "elicitation/create")]
    Elicit(ElicitRequestParams),
    /// The model's answer to a question.
    #[serde(rename = "sampling/createMessage")]
    CreateMessage(Box<CreateMessageRequestParams>),
    /// The places the client works in.
    #[serde(rename = "roots/list")]
    ListRoots(ListRootsRequestParams),
}

impl InputRequest {
    /// The method's name on the wire; in revisions before 2026-07-28 the same question is a request of this name.
    pub fn method(&self) -> &'static str {
        match self {
            InputRequest::Elicit(_) => method::ELICITATION_CREATE,
            InputRequest::CreateMessage(_) => method::SAMPLING_CREATE_MESSAGE,
            InputRequest::ListRoots(_) => method::ROOTS_LIST,
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
        let required = || params.as_deref().ok_or_else(|| D::Error::missing_field("params"));
        match name.as_str() {
            method::ELICITATION_CREATE => from_raw(required()?).map(InputRequest::Elicit),
            method::SAMPLING_CREATE_MESSAGE => from_raw(required()?).map(InputRequest::CreateMessage),
            method::ROOTS_LIST => Ok(InputRequest::ListRoots(match &params {
                Some(params) => from_raw(params)?,
                None => ListRootsRequestParams::default(),
            })),
            _ => {
                let shown: String = name.chars().take(40).collect();
                Err(D::Error::custom(format_args!("unknown method {shown:?} of an input request")))
            }
        }
    }
}

/// What the server wants, by keys that it chose.
pub type InputRequests = BTreeMap<String, InputRequest>;

/// The client's answers, by the keys of the questions. Raw, because only the question tells what an answer must be,
/// and a bad one should not spoil the others; read them with [`InputResponse`] or as the kind that was asked for.
pub type InputResponses = BTreeMap<String, Box<RawValue>>;

/// One answer of a client. When read without knowing the question, it is told apart by `action`, `roots`, or neither.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
#[non_exhaustive]
pub enum InputResponse {
    /// The user's answer.
    Elicit(ElicitResult),
    /// The model's answer.
    CreateMessage(CreateMessageResult),
    /// The places the client works in.
    ListRoots(ListRootsResult),
}

impl<'de> Deserialize<'de> for InputResponse {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Probe {
            #[serde(default)]
            action: Option<serde::de::IgnoredAny>,
            #[serde(default)]
            roots: Option<serde::de::IgnoredAny>,
        }
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        match from_raw(&raw)? {
            Probe { action: Some(_), .. } => from_raw(&raw).map(InputResponse::Elicit),
            Probe { roots: Some(_), .. } => from_raw(&raw).map(InputResponse::ListRoots),
            Probe { .. } => from_raw(&raw).map(InputResponse::CreateMessage),
        }
    }
}

/// A result that is not the end: the client is to send the request again, with answers and the state (2026-07-28).
/// At least one of `input_requests` and `request_state` is there.
///
/// ```
/// use linchpin_types::elicit::{ElicitRequestFormParams, RequestedSchema};
/// use linchpin_types::mrtr::{InputRequest, InputRequiredResult};
///
/// let question = ElicitRequestFormParams::new("Sure?", RequestedSchema::new());
/// let result = InputRequiredResult::new([("sure", InputRequest::Elicit(question.into()))]).with_request_state("sealed");
/// assert_eq!(result.input_requests.unwrap()["sure"].method(), "elicitation/create");
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct InputRequiredResult {
    /// Always [`ResultType::InputRequired`].
    pub result_type: ResultType,
    /// What the server wants; absent means: only try again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_requests: Option<InputRequests>,
    /// What the client is to send back unchanged and unread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_state: Option<String>,
    /// The `_meta` object.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl InputRequiredResult {
    /// Asks for this input, each request under a key of its own.
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
    /// Asks for nothing yet: `input_requests` or `request_state` must be added.
    fn default() -> Self {
        InputRequiredResult {
            result_type: ResultType::InputRequired,
            input_requests: None,
            request_state: None,
            meta: None,
        }
    }
}
