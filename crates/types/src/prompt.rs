//! Prompts: texts with blanks that a user may choose.

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
    /// The name, for programs.
    pub name: String,
    /// The display name (2025-06-18 and later).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The blanks to fill in.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    pub arguments: Vec<PromptArgument>,
    /// Its icons (2025-11-25 and later).
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    pub icons: Vec<Icon>,
    /// The `_meta` object (2025-06-18 and later).
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl Prompt {
    /// A prompt of this name.
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

/// One blank of a prompt.
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
    /// The name, for programs.
    pub name: String,
    /// The display name (2025-06-18 and later).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What belongs there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Whether it must be filled in. Absent means no.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub required: Option<bool>,
}

impl PromptArgument {
    /// A blank of this name.
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

/// One page of a server's prompts.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ListPromptsResult {
    /// The prompts.
    pub prompts: Vec<Prompt>,
    /// Where the next page starts; absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<Cursor>,
    /// How long the result may be kept, in milliseconds from when it is received (2026-07-28, required there).
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "lenient_ms")]
    pub ttl_ms: Option<u64>,
    /// Who may share the kept result (2026-07-28, required there).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_scope: Option<CacheScope>,
    /// Whether the request is complete (2026-07-28, required there).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_type: Option<ResultType>,
    /// The `_meta` object.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl ListPromptsResult {
    /// These prompts, the last of the list.
    pub fn new(prompts: impl IntoIterator<Item = Prompt>) -> Self {
        ListPromptsResult { prompts: prompts.into_iter().collect(), ..Default::default() }
    }
}

setters!(ListPromptsResult {
    /// Sets the cursor of the next page.
    with_next_cursor = some next_cursor: Cursor;
    /// Sets how long it may be cached, in milliseconds (2026-07-28).
    with_ttl_ms = some ttl_ms: u64;
    /// Sets the cache scope (2026-07-28).
    with_cache_scope = some cache_scope: CacheScope;
    /// Sets `_meta`.
    with_meta = meta meta;
});

/// The parameters of `prompts/get`.
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
    /// Which prompt.
    pub name: String,
    /// What goes into the blanks.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty", deserialize_with = "null_is_default")]
    pub arguments: BTreeMap<String, String>,
    /// Answers to the input requests of the previous round (2026-07-28).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_responses: Option<InputResponses>,
    /// What the server said at the previous round, unchanged (2026-07-28).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_state: Option<String>,
    /// The `_meta` object (required in 2026-07-28).
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl GetPromptRequestParams {
    /// The prompt of this name.
    pub fn new(name: impl Into<String>) -> Self {
        GetPromptRequestParams { name: name.into(), ..Default::default() }
    }

    /// Sets the prompt's arguments.
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
    /// Sets `_meta`.
    with_meta = meta meta;
});

/// A prompt with its blanks filled in.
///
/// ```
/// use linchpin_types::prompt::{GetPromptResult, PromptMessage};
///
/// let result = GetPromptResult::new([PromptMessage::user("Say hello to Ann.")]).with_description("A greeting");
/// assert_eq!(
///     serde_json::to_string(&result).unwrap(),
///     r#"{"description":"A greeting","messages":[{"role":"user","content":{"type":"text","text":"Say hello to Ann."}}]}"#,
/// );
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct GetPromptResult {
    /// What it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The messages to start a conversation with.
    pub messages: Vec<PromptMessage>,
    /// Whether the request is complete (2026-07-28, required there).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_type: Option<ResultType>,
    /// The `_meta` object.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl GetPromptResult {
    /// These messages.
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

/// One message of a prompt.
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
    /// Who says it.
    pub role: Role,
    /// What they say.
    pub content: ContentBlock,
}

impl PromptMessage {
    /// Somebody says this.
    pub fn new(role: Role, content: impl Into<ContentBlock>) -> Self {
        PromptMessage { role, content: content.into() }
    }

    /// The user says this.
    pub fn user(content: impl Into<ContentBlock>) -> Self {
        PromptMessage { role: Role::User, content: content.into() }
    }

    /// The model says this.
    pub fn assistant(content: impl Into<ContentBlock>) -> Self {
        PromptMessage { role: Role::Assistant, content: content.into() }
    }
}

eq_by_json!(GetPromptRequestParams);
