//! Completion: suggestions for an argument while it is being typed.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::meta::Meta;
use crate::page::ResultType;
use crate::read::null_is_default;
use crate::setters::setters;

/// The parameters of `completion/complete`.
///
/// ```
/// use linchpin_types::complete::{CompleteArgument, CompleteReference, CompleteRequestParams};
///
/// let params = CompleteRequestParams::new(CompleteReference::prompt("greet"), CompleteArgument::new("name", "An"))
///     .with_context([("language", "en")]);
/// assert_eq!(
///     serde_json::to_string(&params).unwrap(),
///     r#"{"ref":{"type":"ref/prompt","name":"greet"},"argument":{"name":"name","value":"An"},"#.to_owned()
///         + r#""context":{"arguments":{"language":"en"}}}"#,
/// );
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CompleteRequestParams {
    /// Whose argument it is.
    #[serde(rename = "ref")]
    pub reference: CompleteReference,
    /// The argument being typed.
    pub argument: CompleteArgument,
    /// What has been filled in already (2025-06-18 and later).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<CompleteContext>,
    /// The `_meta` object (required in 2026-07-28).
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl CompleteRequestParams {
    /// Asks for values of this argument of what is referred to.
    pub fn new(reference: CompleteReference, argument: CompleteArgument) -> Self {
        CompleteRequestParams { reference, argument, context: None, meta: None }
    }

    /// Sets the arguments that are already filled in (2025-06-18 and later).
    #[must_use]
    pub fn with_context(mut self, arguments: impl IntoIterator<Item = (impl Into<String>, impl Into<String>)>) -> Self {
        self.context = Some(CompleteContext::new(arguments));
        self
    }
}

setters!(CompleteRequestParams {
    /// Sets `_meta`.
    with_meta = meta meta;
});

/// Whose argument is being typed: the `ref`, told apart by `type`.
///
/// ```
/// use linchpin_types::complete::{CompleteArgument, CompleteReference, CompleteRequestParams};
///
/// let params = CompleteRequestParams::new(CompleteReference::prompt("brief"), CompleteArgument::new("city", "Os"));
/// assert_eq!(params.argument.value, "Os");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type")]
#[non_exhaustive]
pub enum CompleteReference {
    /// A prompt's.
    #[serde(rename = "ref/prompt")]
    Prompt(PromptReference),
    /// A resource template's. The schemas up to 2025-03-26 call it `ResourceReference`.
    #[serde(rename = "ref/resource")]
    Resource(ResourceTemplateReference),
}

impl CompleteReference {
    /// The prompt of this name.
    pub fn prompt(name: impl Into<String>) -> Self {
        CompleteReference::Prompt(PromptReference { name: name.into(), title: None })
    }

    /// The resource template of this URI template.
    pub fn resource(uri: impl Into<String>) -> Self {
        CompleteReference::Resource(ResourceTemplateReference { uri: uri.into() })
    }
}

/// A prompt, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PromptReference {
    /// The name, for programs.
    pub name: String,
    /// The display name (2025-06-18 and later).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
}

/// A resource or a template, by URI.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ResourceTemplateReference {
    /// The URI or the URI template.
    pub uri: String,
}

/// The argument being typed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CompleteArgument {
    /// Its name.
    pub name: String,
    /// What has been typed so far.
    pub value: String,
}

impl CompleteArgument {
    /// The argument of this name, of which this has been typed.
    pub fn new(name: impl Into<String>, value: impl Into<String>) -> Self {
        CompleteArgument { name: name.into(), value: value.into() }
    }
}

/// What has been filled in already (2025-06-18 and later).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CompleteContext {
    /// The other arguments.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty", deserialize_with = "null_is_default")]
    pub arguments: BTreeMap<String, String>,
}

impl CompleteContext {
    /// These other arguments.
    pub fn new(arguments: impl IntoIterator<Item = (impl Into<String>, impl Into<String>)>) -> Self {
        let arguments = arguments.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
        CompleteContext { arguments }
    }
}

/// Suggestions.
///
/// ```
/// use linchpin_types::complete::{CompleteResult, Completion};
///
/// let result = CompleteResult::new(Completion::new(["Anna", "Anton"]).with_total(7u64).with_has_more(true));
/// assert_eq!(
///     serde_json::to_string(&result).unwrap(),
///     r#"{"completion":{"values":["Anna","Anton"],"total":7,"hasMore":true}}"#,
/// );
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CompleteResult {
    /// The suggestions.
    pub completion: Completion,
    /// Whether the request is complete (2026-07-28, required there).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_type: Option<ResultType>,
    /// The `_meta` object.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl CompleteResult {
    /// These suggestions.
    pub fn new(completion: Completion) -> Self {
        CompleteResult { completion, ..Default::default() }
    }
}

setters!(CompleteResult {
    /// Sets `_meta`.
    with_meta = meta meta;
});

/// The suggestions themselves.
///
/// ```
/// use linchpin_types::complete::Completion;
///
/// let completion = Completion::new(["Oslo", "Odense"]);
/// assert_eq!(completion.values.len(), 2);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Completion {
    /// The values, best first; at most 100.
    pub values: Vec<String>,
    /// How many there are in all, which may be more than were sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
    /// Whether there are more than were sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub has_more: Option<bool>,
}

impl Completion {
    /// These values, best first; at most 100.
    pub fn new(values: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Completion { values: values.into_iter().map(Into::into).collect(), ..Default::default() }
    }
}

setters!(Completion {
    /// Sets the total number.
    with_total = some total: u64;
    /// Sets whether there are more values.
    with_has_more = some has_more: bool;
});
