//! Elicitation (2025-06-18 and later): a server asks the user for input, with a form or a URL.

use std::collections::BTreeMap;

use serde::de::{Deserializer, Error};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::meta::Meta;
use crate::read::{by_raw, eq_by_json, from_raw};
use crate::setters::setters;

mod form;

pub use form::{
    BooleanSchema, LegacyTitledEnumSchema, NumberKind, NumberSchema, PrimitiveSchemaDefinition, Properties,
    RequestedSchema, StringFormat, StringSchema, TitledItems, TitledMultiSelectEnumSchema,
    TitledSingleSelectEnumSchema, TitledValue, UntitledItems, UntitledMultiSelectEnumSchema,
    UntitledSingleSelectEnumSchema,
};

/// The parameters of `elicitation/create`. The `mode` member identifies the variant; if it is absent, this is a form.
///
/// # Example
///
/// ```
/// use linchpin_types::elicit::ElicitRequestParams;
///
/// let json = r#"{"mode":"url","message":"Please sign in.","url":"https://example.com/sign-in"}"#;
/// match serde_json::from_str(json)? {
///     ElicitRequestParams::Url(params) => assert_eq!(params.url, "https://example.com/sign-in"),
///     other => panic!("not a URL: {other:?}"),
/// }
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
#[non_exhaustive]
pub enum ElicitRequestParams {
    /// A form (2025-06-18 and later).
    Form(ElicitRequestFormParams),
    /// A URL (2025-11-25 and later).
    Url(ElicitRequestURLParams),
}

impl From<ElicitRequestFormParams> for ElicitRequestParams {
    fn from(params: ElicitRequestFormParams) -> Self {
        ElicitRequestParams::Form(params)
    }
}

impl From<ElicitRequestURLParams> for ElicitRequestParams {
    fn from(params: ElicitRequestURLParams) -> Self {
        ElicitRequestParams::Url(params)
    }
}

impl<'de> Deserialize<'de> for ElicitRequestParams {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        by_raw(deserializer, ElicitRequestParams::of)
    }
}

impl ElicitRequestParams {
    fn of(raw: &RawValue) -> serde_json::Result<Self> {
        #[derive(Deserialize)]
        struct Probe {
            #[serde(default)]
            mode: Option<String>,
        }
        let probe: Probe = from_raw(raw)?;
        match probe.mode.as_deref() {
            None | Some("form") => from_raw(raw).map(ElicitRequestParams::Form),
            Some("url") => from_raw(raw).map(ElicitRequestParams::Url),
            Some(_) => Err(serde_json::Error::custom("mode is neither form nor url")),
        }
    }
}

/// Asks the user to fill in a form (2025-06-18 and later).
///
/// # Example
///
/// ```
/// use linchpin_types::elicit::{BooleanSchema, ElicitRequestFormParams, RequestedSchema, StringSchema};
///
/// let form = RequestedSchema::new()
///     .with_field("email", StringSchema::new().with_title("Your address"))
///     .with_field("news", BooleanSchema::new().with_default(false))
///     .with_required(["email"]);
/// let params = ElicitRequestFormParams::new("Who are you?", form);
/// assert_eq!(
///     serde_json::to_string(&params).unwrap(),
///     r#"{"message":"Who are you?","requestedSchema":{"type":"object","properties":{"#.to_owned()
///         + r#""email":{"type":"string","title":"Your address"},"news":{"type":"boolean","default":false}},"#
///         + r#""required":["email"]}}"#,
/// );
/// ```
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ElicitRequestFormParams {
    /// The mode (2025-11-25 and later); absent means [`FormMode::Form`] too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<FormMode>,
    /// The message for the user.
    pub message: String,
    /// The fields of the form.
    pub requested_schema: RequestedSchema,
    /// Asks the receiver to run the request as a task (2025-11-25 only): a
    /// [`TaskMetadata`](crate::task::experimental::TaskMetadata).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<Box<RawValue>>,
    /// The `_meta` object (2025-06-18 and 2025-11-25).
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl ElicitRequestFormParams {
    /// Creates the parameters for a form with this message and these fields.
    pub fn new(message: impl Into<String>, requested_schema: RequestedSchema) -> Self {
        ElicitRequestFormParams { message: message.into(), requested_schema, ..Default::default() }
    }
}

setters!(ElicitRequestFormParams {
    /// Sets `_meta`.
    with_meta = meta meta;
});

/// The `mode` of a form (2025-11-25 and later).
///
/// # Example
///
/// ```
/// use linchpin_types::elicit::{ElicitRequestFormParams, FormMode, RequestedSchema};
///
/// let mut params = ElicitRequestFormParams::new("Who are you?", RequestedSchema::new());
/// params.mode = Some(FormMode::Form);
/// assert!(serde_json::to_string(&params).unwrap().starts_with(r#"{"mode":"form","#));
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum FormMode {
    /// `form`.
    #[default]
    Form,
}

/// Asks the user to visit a URL (2025-11-25 and later). It is serialized with `"mode": "url"`.
///
/// # Example
///
/// ```
/// use linchpin_types::elicit::ElicitRequestURLParams;
///
/// let params = ElicitRequestURLParams::new("Please sign in.", "https://example.com/sign-in")
///     .with_elicitation_id("e1");
/// assert_eq!(
///     serde_json::to_string(&params).unwrap(),
///     r#"{"mode":"url","message":"Please sign in.","url":"https://example.com/sign-in","elicitationId":"e1"}"#,
/// );
/// ```
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "mode", rename = "url")]
#[non_exhaustive]
pub struct ElicitRequestURLParams {
    /// The message for the user.
    pub message: String,
    /// The URL to visit.
    pub url: String,
    /// The id of the elicitation (2025-11-25 only, required there).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elicitation_id: Option<String>,
    /// Asks the receiver to run the request as a task (2025-11-25 only): a
    /// [`TaskMetadata`](crate::task::experimental::TaskMetadata).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<Box<RawValue>>,
    /// The `_meta` object (2025-11-25 only).
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl ElicitRequestURLParams {
    /// Creates the parameters that show this message and, with the user's consent, open this URL.
    pub fn new(message: impl Into<String>, url: impl Into<String>) -> Self {
        ElicitRequestURLParams { message: message.into(), url: url.into(), ..Default::default() }
    }
}

setters!(ElicitRequestURLParams {
    /// Sets the id of the elicitation (2025-11-25 only).
    with_elicitation_id = some elicitation_id: String;
    /// Sets `_meta`.
    with_meta = meta meta;
});

eq_by_json!(ElicitRequestFormParams, ElicitRequestURLParams);

/// The parameters of `notifications/elicitation/complete` (2025-11-25 only).
///
/// # Example
///
/// ```
/// use linchpin_types::elicit::ElicitationCompleteNotificationParams;
///
/// let params = ElicitationCompleteNotificationParams::new("e1");
/// assert_eq!(serde_json::to_string(&params).unwrap(), r#"{"elicitationId":"e1"}"#);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ElicitationCompleteNotificationParams {
    /// The id of the elicitation that has ended.
    pub elicitation_id: String,
    /// The `_meta` object.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl ElicitationCompleteNotificationParams {
    /// Creates the parameters for the elicitation with this id.
    pub fn new(elicitation_id: impl Into<String>) -> Self {
        ElicitationCompleteNotificationParams { elicitation_id: elicitation_id.into(), ..Default::default() }
    }
}

setters!(ElicitationCompleteNotificationParams {
    /// Sets `_meta`.
    with_meta = meta meta;
});

/// The result of `elicitation/create`: the user's response.
///
/// # Example
///
/// ```
/// use linchpin_types::elicit::{ElicitAction, ElicitResult};
///
/// let result: ElicitResult = serde_json::from_str(r#"{"action":"accept","content":{"name":"Ann"}}"#).unwrap();
/// assert_eq!(result.action, ElicitAction::Accept);
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ElicitResult {
    /// The user's action.
    pub action: ElicitAction,
    /// The submitted fields, if the user accepted a form. Fields that are `null` are left out.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "read_content")]
    pub content: Option<BTreeMap<String, ElicitValue>>,
    /// The `_meta` object (2025-06-18 and 2025-11-25).
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl ElicitResult {
    /// Creates the result for a user who accepted a form and submitted these fields.
    ///
    /// ```
    /// use linchpin_types::elicit::{ElicitResult, ElicitValue};
    ///
    /// let result = ElicitResult::accept([("name", ElicitValue::from("Ann")), ("age", 42.into())]);
    /// assert_eq!(
    ///     serde_json::to_string(&result).unwrap(),
    ///     r#"{"action":"accept","content":{"age":42,"name":"Ann"}}"#,
    /// );
    /// ```
    pub fn accept(content: impl IntoIterator<Item = (impl Into<String>, impl Into<ElicitValue>)>) -> Self {
        let mut fields = BTreeMap::new();
        fields.extend(content.into_iter().map(|(name, value)| (name.into(), value.into())));
        ElicitResult { action: ElicitAction::Accept, content: Some(fields), meta: None }
    }

    /// Creates the result for a user who agreed to open the URL. It has no content.
    ///
    /// ```
    /// use linchpin_types::elicit::ElicitResult;
    ///
    /// assert_eq!(serde_json::to_string(&ElicitResult::accept_url()).unwrap(), r#"{"action":"accept"}"#);
    /// ```
    pub fn accept_url() -> Self {
        ElicitResult { action: ElicitAction::Accept, content: None, meta: None }
    }

    /// Creates the result for a user who declined.
    ///
    /// ```
    /// use linchpin_types::elicit::{ElicitAction, ElicitResult};
    ///
    /// assert_eq!(ElicitResult::decline().action, ElicitAction::Decline);
    /// assert_eq!(ElicitResult::cancel().action, ElicitAction::Cancel);
    /// ```
    pub fn decline() -> Self {
        ElicitResult { action: ElicitAction::Decline, content: None, meta: None }
    }

    /// Creates the result for a user who dismissed the request without a choice.
    pub fn cancel() -> Self {
        ElicitResult { action: ElicitAction::Cancel, content: None, meta: None }
    }
}

setters!(ElicitResult {
    /// Sets `_meta` (2025-06-18 and 2025-11-25).
    with_meta = meta meta;
});

/// The user's action in response to an elicitation.
///
/// # Example
///
/// ```
/// use linchpin_types::elicit::{ElicitAction, ElicitResult};
///
/// fn agreed(result: &ElicitResult) -> bool {
///     result.action == ElicitAction::Accept
/// }
/// assert!(!agreed(&ElicitResult::decline()));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ElicitAction {
    /// The user accepted.
    Accept,
    /// The user declined.
    Decline,
    /// The user dismissed the request without a choice.
    Cancel,
}

/// The value of a form field.
///
/// # Example
///
/// ```
/// use linchpin_types::elicit::ElicitValue;
///
/// assert_eq!(ElicitValue::from(42), ElicitValue::Integer(42));
/// assert_eq!(ElicitValue::from("Ann"), ElicitValue::String("Ann".to_owned()));
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
#[non_exhaustive]
pub enum ElicitValue {
    /// A boolean.
    Boolean(bool),
    /// An integer.
    Integer(i64),
    /// Any other number.
    Number(f64),
    /// Text, or a single choice.
    String(String),
    /// Multiple choices (2025-11-25 and later).
    Strings(Vec<String>),
}

macro_rules! values {
    ($($from:ty => $kind:ident;)+) => { $(
        impl From<$from> for ElicitValue {
            fn from(value: $from) -> Self {
                ElicitValue::$kind(value.into())
            }
        }
    )+ };
}

values! {
    bool => Boolean;
    i32 => Integer;
    i64 => Integer;
    u32 => Integer;
    f64 => Number;
    &str => String;
    String => String;
    Vec<String> => Strings;
}

fn read_content<'de, D>(deserializer: D) -> Result<Option<BTreeMap<String, ElicitValue>>, D::Error>
where
    D: Deserializer<'de>,
{
    // Some hosts send null for fields that were left empty.
    let fields = Option::<BTreeMap<String, Option<ElicitValue>>>::deserialize(deserializer)?;
    Ok(fields.map(|fields| {
        let mut content = BTreeMap::new();
        content.extend(fields.into_iter().filter_map(|(name, value)| Some((name, value?))));
        content
    }))
}
