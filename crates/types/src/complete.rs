//! Completion: suggestions for an argument while it is being typed.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::meta::Meta;
use crate::page::ResultType;
use crate::read::null_is_default;
use crate::setters::setters;

/// The parameters of `completion/complete`.
///
/// # Example
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
    /// The prompt or the resource template that has the argument.
    #[serde(rename = "ref")]
    pub reference: CompleteReference,
    /// The argument being typed.
    pub argument: CompleteArgument,
    /// The arguments that already have values (2025-06-18 and later).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<CompleteContext>,
    /// The `_meta` object (required in 2026-07-28).
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl CompleteRequestParams {
    /// Creates the parameters that ask for values of this argument of the prompt or resource template.
    pub fn new(reference: CompleteReference, argument: CompleteArgument) -> Self {
        CompleteRequestParams { reference, argument, context: None, meta: None }
    }

    /// Sets the arguments that already have values (2025-06-18 and later).
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

/// A reference to the prompt or the resource template whose argument is being typed. The `type` member identifies the
/// variant.
///
/// # Example
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
    /// A prompt.
    #[serde(rename = "ref/prompt")]
    Prompt(PromptReference),
    /// A resource template. The schemas up to 2025-03-26 call it `ResourceReference`.
    #[serde(rename = "ref/resource")]
    Resource(ResourceTemplateReference),
}

impl CompleteReference {
    /// Refers to the prompt with this name.
    pub fn prompt(name: impl Into<String>) -> Self {
        CompleteReference::Prompt(PromptReference { name: name.into(), title: None })
    }

    /// Refers to the resource template with this URI template.
    pub fn resource(uri: impl Into<String>) -> Self {
        CompleteReference::Resource(ResourceTemplateReference { uri: uri.into() })
    }
}

/// A reference to a prompt by its name.
///
/// # Example
///
/// ```
/// use linchpin_types::complete::CompleteReference;
///
/// let json = r#"{"type":"ref/prompt","name":"greet","title":"Greet somebody"}"#;
/// match serde_json::from_str(json)? {
///     CompleteReference::Prompt(prompt) => assert_eq!(prompt.name, "greet"),
///     other => panic!("not a prompt: {other:?}"),
/// }
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PromptReference {
    /// The name, intended for programmatic use.
    pub name: String,
    /// The display name (2025-06-18 and later).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
}

/// A reference to a resource or a resource template by its URI.
///
/// # Example
///
/// ```
/// use linchpin_types::complete::CompleteReference;
///
/// let json = r#"{"type":"ref/resource","uri":"weather://{city}"}"#;
/// match serde_json::from_str(json)? {
///     CompleteReference::Resource(template) => assert_eq!(template.uri, "weather://{city}"),
///     other => panic!("not a resource template: {other:?}"),
/// }
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ResourceTemplateReference {
    /// The URI or the URI template.
    pub uri: String,
}

/// The argument that is being typed.
///
/// # Example
///
/// ```
/// use linchpin_types::complete::CompleteArgument;
///
/// let argument = CompleteArgument::new("city", "Os");
/// assert_eq!(serde_json::to_string(&argument).unwrap(), r#"{"name":"city","value":"Os"}"#);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CompleteArgument {
    /// The name of the argument.
    pub name: String,
    /// The text that has been typed so far.
    pub value: String,
}

impl CompleteArgument {
    /// Creates an argument with this name and the text that has been typed so far.
    pub fn new(name: impl Into<String>, value: impl Into<String>) -> Self {
        CompleteArgument { name: name.into(), value: value.into() }
    }
}

/// The arguments that already have values (2025-06-18 and later).
///
/// # Example
///
/// ```
/// use linchpin_types::complete::CompleteContext;
///
/// let context = CompleteContext::new([("country", "Norway")]);
/// assert_eq!(context.arguments["country"], "Norway");
/// assert_eq!(serde_json::to_string(&context).unwrap(), r#"{"arguments":{"country":"Norway"}}"#);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CompleteContext {
    /// The values of the other arguments by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty", deserialize_with = "null_is_default")]
    pub arguments: BTreeMap<String, String>,
}

impl CompleteContext {
    /// Creates a context with the names and values of these arguments.
    pub fn new(arguments: impl IntoIterator<Item = (impl Into<String>, impl Into<String>)>) -> Self {
        let mut known = BTreeMap::new();
        known.extend(arguments.into_iter().map(|(name, value)| (name.into(), value.into())));
        CompleteContext { arguments: known }
    }
}

/// The result of `completion/complete`.
///
/// # Example
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
    /// The type of this result (2026-07-28, required there).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_type: Option<ResultType>,
    /// The `_meta` object.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl CompleteResult {
    /// Creates a result with these suggestions.
    pub fn new(completion: Completion) -> Self {
        CompleteResult { completion, ..Default::default() }
    }
}

setters!(CompleteResult {
    /// Sets `_meta`.
    with_meta = meta meta;
});

/// The suggested values for an argument.
///
/// # Example
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
    /// The total number of values, which may exceed the number of values sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
    /// Whether there are more values than were sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub has_more: Option<bool>,
}

impl Completion {
    /// Creates suggestions from these values, best first; at most 100.
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
