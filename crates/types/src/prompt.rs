//! Prompts: templates of messages that a user can choose and fill in.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::content::{ContentBlock, Icon, Role};
use crate::meta::Meta;
use crate::mrtr::InputResponses;
use crate::page::{CacheScope, Cursor, ResultType};
use crate::read::{eq_by_json, lenient_ms, null_is_default};
use crate::setters::setters;

/// A prompt, as a server lists it.
///
/// # Example
///
/// ```
/// use linchpin_types::prompt::{Prompt, PromptArgument};
///
/// let prompt = Prompt::new("review")
///     .with_description("Reviews a pull request.")
///     .with_arguments([PromptArgument::new("number").with_required(true), PromptArgument::new("tone")]);
/// assert_eq!(
///     serde_json::to_string(&prompt).unwrap(),
///     r#"{"name":"review","description":"Reviews a pull request.","#.to_owned()
///         + r#""arguments":[{"name":"number","required":true},{"name":"tone"}]}"#,
/// );
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Prompt {
    /// The name, intended for programmatic use.
    pub name: String,
    /// The display name (2025-06-18 and later).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The description.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The arguments that can be filled in.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    pub arguments: Vec<PromptArgument>,
    /// The icons (2025-11-25 and later).
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    pub icons: Vec<Icon>,
    /// The `_meta` object (2025-06-18 and later).
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl Prompt {
    /// Creates a prompt with this name.
    pub fn new(name: impl Into<String>) -> Self {
        Prompt { name: name.into(), ..Default::default() }
    }
}

setters!(Prompt {
    /// Sets the display name (2025-06-18 and later).
    with_title = some title: String;
    /// Sets the description.
    with_description = some description: String;
    /// Sets the arguments.
    with_arguments = list arguments: PromptArgument;
    /// Sets the icons (2025-11-25 and later).
    with_icons = list icons: Icon;
    /// Sets `_meta`.
    with_meta = meta meta;
});

/// An argument of a prompt.
///
/// # Example
///
/// ```
/// use linchpin_types::prompt::PromptArgument;
///
/// let argument = PromptArgument::new("city").with_description("Where to look.").with_required(true);
/// assert_eq!(
///     serde_json::to_string(&argument).unwrap(),
///     r#"{"name":"city","description":"Where to look.","required":true}"#,
/// );
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PromptArgument {
    /// The name, intended for programmatic use.
    pub name: String,
    /// The display name (2025-06-18 and later).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The description.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Whether the argument must be filled in. Absent means false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub required: Option<bool>,
}

impl PromptArgument {
    /// Creates an optional argument with this name.
    pub fn new(name: impl Into<String>) -> Self {
        PromptArgument { name: name.into(), ..Default::default() }
    }
}

setters!(PromptArgument {
    /// Sets the display name (2025-06-18 and later).
    with_title = some title: String;
    /// Sets the description.
    with_description = some description: String;
    /// Sets whether the argument is required.
    with_required = some required: bool;
});

/// The result of `prompts/list`: one page of a server's prompts.
///
/// # Example
///
/// ```
/// use linchpin_types::prompt::{ListPromptsResult, Prompt};
///
/// let page = ListPromptsResult::new([Prompt::new("greet")]).with_next_cursor("page-2");
/// assert_eq!(
///     serde_json::to_string(&page).unwrap(),
///     r#"{"prompts":[{"name":"greet"}],"nextCursor":"page-2"}"#,
/// );
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ListPromptsResult {
    /// The prompts.
    pub prompts: Vec<Prompt>,
    /// The cursor of the next page; absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<Cursor>,
    /// How long the result may be cached, in milliseconds from its receipt (2026-07-28, required there).
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "lenient_ms")]
    pub ttl_ms: Option<u64>,
    /// Who may share the cached result (2026-07-28, required there).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_scope: Option<CacheScope>,
    /// The type of this result (2026-07-28, required there).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_type: Option<ResultType>,
    /// The `_meta` object.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl ListPromptsResult {
    /// Creates the last page of a list, with these prompts.
    pub fn new(prompts: impl IntoIterator<Item = Prompt>) -> Self {
        ListPromptsResult { prompts: prompts.into_iter().collect(), ..Default::default() }
    }
}

setters!(ListPromptsResult {
    /// Sets the cursor of the next page.
    with_next_cursor = some next_cursor: Cursor;
    /// Sets how long the result may be cached, in milliseconds (2026-07-28).
    with_ttl_ms = some ttl_ms: u64;
    /// Sets the cache scope (2026-07-28).
    with_cache_scope = some cache_scope: CacheScope;
    /// Sets `_meta`.
    with_meta = meta meta;
});

/// The parameters of `prompts/get`.
///
/// # Example
///
/// ```
/// use linchpin_types::prompt::GetPromptRequestParams;
///
/// let params = GetPromptRequestParams::new("greet").with_arguments([("name", "Ann")]);
/// assert_eq!(serde_json::to_string(&params).unwrap(), r#"{"name":"greet","arguments":{"name":"Ann"}}"#);
/// ```
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct GetPromptRequestParams {
    /// The name of the prompt.
    pub name: String,
    /// The values of the arguments, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty", deserialize_with = "null_is_default")]
    pub arguments: BTreeMap<String, String>,
    /// The responses to the input requests of the previous result (2026-07-28).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_responses: Option<InputResponses>,
    /// The `requestState` of the previous result, unchanged (2026-07-28).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_state: Option<String>,
    /// The `_meta` object (required in 2026-07-28).
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl GetPromptRequestParams {
    /// Creates the parameters for the prompt with this name, without arguments.
    pub fn new(name: impl Into<String>) -> Self {
        GetPromptRequestParams { name: name.into(), ..Default::default() }
    }

    /// Sets the values of the arguments, by name.
    #[must_use]
    pub fn with_arguments(
        mut self,
        arguments: impl IntoIterator<Item = (impl Into<String>, impl Into<String>)>,
    ) -> Self {
        self.arguments = arguments.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
        self
    }
}

setters!(GetPromptRequestParams {
    /// Sets the answers of the user or client to the requests of an `input_required` result (2026-07-28).
    with_input_responses = some input_responses: InputResponses;
    /// Sets the `requestState` of that result, unchanged (2026-07-28).
    with_request_state = some request_state: String;
    /// Sets `_meta`.
    with_meta = meta meta;
});

/// The result of `prompts/get`: the messages of a prompt, with its arguments filled in.
///
/// # Example
///
/// ```
/// use linchpin_types::prompt::{GetPromptResult, PromptMessage};
///
/// let result = GetPromptResult::new([PromptMessage::user("Say hello to Ann.")]).with_description("A greeting");
/// assert_eq!(
///     serde_json::to_string(&result).unwrap(),
///     r#"{"description":"A greeting","messages":[{"role":"user","#.to_owned()
///         + r#""content":{"type":"text","text":"Say hello to Ann."}}]}"#,
/// );
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct GetPromptResult {
    /// The description.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The messages that start the conversation.
    pub messages: Vec<PromptMessage>,
    /// The type of this result (2026-07-28, required there).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_type: Option<ResultType>,
    /// The `_meta` object.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl GetPromptResult {
    /// Creates a result with these messages.
    pub fn new(messages: impl IntoIterator<Item = PromptMessage>) -> Self {
        GetPromptResult { messages: messages.into_iter().collect(), ..Default::default() }
    }
}

setters!(GetPromptResult {
    /// Sets the description.
    with_description = some description: String;
    /// Sets `_meta`.
    with_meta = meta meta;
});

/// A message of a prompt.
///
/// # Example
///
/// ```
/// use linchpin_types::content::{ContentBlock, Role};
/// use linchpin_types::prompt::PromptMessage;
///
/// let asked = PromptMessage::user("What is in this picture?");
/// let shown = PromptMessage::user(ContentBlock::image(b"\x89PNG", "image/png"));
/// let answered = PromptMessage::assistant("A cat.");
/// assert_eq!((asked.role, shown.role, answered.role), (Role::User, Role::User, Role::Assistant));
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PromptMessage {
    /// The author of the message.
    pub role: Role,
    /// The content of the message.
    pub content: ContentBlock,
}

impl PromptMessage {
    /// Creates a message with this author and content.
    pub fn new(role: Role, content: impl Into<ContentBlock>) -> Self {
        PromptMessage { role, content: content.into() }
    }

    /// Creates a message from the user.
    pub fn user(content: impl Into<ContentBlock>) -> Self {
        PromptMessage { role: Role::User, content: content.into() }
    }

    /// Creates a message from the model.
    pub fn assistant(content: impl Into<ContentBlock>) -> Self {
        PromptMessage { role: Role::Assistant, content: content.into() }
    }
}

eq_by_json!(GetPromptRequestParams);
