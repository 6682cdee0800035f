//! Sampling: a server asks the client's model to generate a message.

use serde::de::{Deserializer, Error};
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::content::{AudioContent, ContentBlock, ImageContent, Kind, Role, TextContent};
use crate::meta::Meta;
use crate::read::{by_raw, eq_by_json, from_raw, null_is_default, null_is_some};
use crate::setters::setters;
use crate::tool::Tool;

/// The parameters of `sampling/createMessage`.
///
/// # Example
///
/// ```
/// use linchpin_types::sample::{CreateMessageRequestParams, ModelPreferences, SamplingMessage};
///
/// let params = CreateMessageRequestParams::new([SamplingMessage::user("Capital of France?")], 100)
///     .with_system_prompt("Answer in one word.")
///     .with_model_preferences(ModelPreferences::default().with_hints(["claude"]).with_speed_priority(0.8))
///     .with_temperature(0.2);
/// assert_eq!(params.max_tokens, 100);
/// ```
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CreateMessageRequestParams {
    /// The conversation so far.
    pub messages: Vec<SamplingMessage>,
    /// The server's preferences for a model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_preferences: Option<ModelPreferences>,
    /// The system prompt that the server requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
    /// The servers whose context should be included. Absent means none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub include_context: Option<IncludeContext>,
    /// The sampling temperature.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// The maximum number of tokens to generate.
    pub max_tokens: u64,
    /// Texts at which the model stops.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    pub stop_sequences: Vec<String>,
    /// Provider-specific metadata, an object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Box<RawValue>>,
    /// The tools that the model may use (2025-11-25 and later).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<Tool>>,
    /// How the model may use the tools (2025-11-25 and later).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_choice: Option<ToolChoice>,
    /// Asks the client to run the request as a task (2025-11-25 only): a
    /// [`TaskMetadata`](crate::task::experimental::TaskMetadata).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<Box<RawValue>>,
    /// The `_meta` object (2024-11-05 to 2025-11-25).
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl CreateMessageRequestParams {
    /// Creates the parameters that ask for at most `max_tokens` tokens in continuation of this conversation.
    pub fn new(messages: impl IntoIterator<Item = SamplingMessage>, max_tokens: u64) -> Self {
        CreateMessageRequestParams { messages: messages.into_iter().collect(), max_tokens, ..Default::default() }
    }
}

setters!(CreateMessageRequestParams {
    /// Asks for the call to run as a task (2025-11-25 only): an object, with `ttl` if wanted.
    with_task = some task: Box<RawValue>;
    /// Sets the model preferences.
    with_model_preferences = some model_preferences: ModelPreferences;
    /// Sets the system prompt.
    with_system_prompt = some system_prompt: String;
    /// Sets which servers' context to include.
    with_include_context = some include_context: IncludeContext;
    /// Sets the temperature.
    with_temperature = some temperature: f64;
    /// Sets the stop sequences.
    with_stop_sequences = list stop_sequences: String;
    /// Sets provider-specific metadata, an object.
    with_metadata = some metadata: Box<RawValue>;
    /// Sets the tools that the model may use (2025-11-25 and later).
    with_tools = some_list tools: Tool;
    /// Sets the tool choice (2025-11-25 and later).
    with_tool_choice = some tool_choice: ToolChoice;
    /// Sets `_meta` (2024-11-05 to 2025-11-25).
    with_meta = meta meta;
});

/// A message of a conversation.
///
/// # Example
///
/// ```
/// use linchpin_types::content::Role;
/// use linchpin_types::sample::{SamplingMessage, SamplingMessageContentBlock as Block};
///
/// let question = SamplingMessage::user("What is this?");
/// let answer = SamplingMessage::assistant("A cat.");
/// let picture = SamplingMessage::new(Role::User, [Block::text("And this?"), Block::image(b"\x89PNG", "image/png")]);
/// assert_eq!(
///     serde_json::to_string(&question).unwrap(),
///     r#"{"role":"user","content":{"type":"text","text":"What is this?"}}"#,
/// );
/// # assert_eq!((answer.role, picture.content.len()), (Role::Assistant, 2));
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SamplingMessage {
    /// The author of the message.
    pub role: Role,
    /// The content of the message. A single block is serialized by itself, as in all revisions. Several blocks are
    /// serialized as an array, which is valid in 2025-11-25 and later.
    #[serde(serialize_with = "write_blocks", deserialize_with = "read_blocks")]
    pub content: Vec<SamplingMessageContentBlock>,
    /// The `_meta` object (2025-11-25 and later).
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl SamplingMessage {
    /// Creates a message with this author and these blocks. More than one block requires 2025-11-25 or later.
    pub fn new(role: Role, content: impl IntoIterator<Item = impl Into<SamplingMessageContentBlock>>) -> Self {
        SamplingMessage { role, content: content.into_iter().map(Into::into).collect(), meta: None }
    }

    /// Creates a message from the user.
    pub fn user(content: impl Into<SamplingMessageContentBlock>) -> Self {
        SamplingMessage { role: Role::User, content: vec![content.into()], meta: None }
    }

    /// Creates a message from the model.
    pub fn assistant(content: impl Into<SamplingMessageContentBlock>) -> Self {
        SamplingMessage { role: Role::Assistant, content: vec![content.into()], meta: None }
    }
}

setters!(SamplingMessage {
    /// Sets `_meta` (2025-11-25 and later).
    with_meta = meta meta;
});

/// The result of `sampling/createMessage`: the message that the model generated.
///
/// # Example
///
/// ```
/// use linchpin_types::sample::CreateMessageResult;
///
/// let result = CreateMessageResult::text("claude-3", "Paris").with_stop_reason("endTurn");
/// assert_eq!(
///     serde_json::to_string(&result).unwrap(),
///     r#"{"role":"assistant","content":{"type":"text","text":"Paris"},"model":"claude-3","stopReason":"endTurn"}"#,
/// );
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CreateMessageResult {
    /// The author of the message, which is the model.
    pub role: Role,
    /// The content of the message. A single block is serialized by itself, several blocks as an array (2025-11-25 and
    /// later).
    #[serde(serialize_with = "write_blocks", deserialize_with = "read_blocks")]
    pub content: Vec<SamplingMessageContentBlock>,
    /// The name of the model.
    pub model: String,
    /// The reason why the model stopped: `endTurn`, `stopSequence`, `maxTokens`, `toolUse` (2025-11-25 and later), or a
    /// provider-specific value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<String>,
    /// The `_meta` object.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl CreateMessageResult {
    /// Creates a result with the name of the model and these blocks. More than one block requires 2025-11-25 or later.
    ///
    /// ```
    /// use linchpin_types::sample::{CreateMessageResult, ToolUseContent};
    /// use serde_json::json;
    ///
    /// let input = serde_json::value::to_raw_value(&json!({ "city": "Oslo" }))?;
    /// let result = CreateMessageResult::new("claude-3", [ToolUseContent::new("1", "weather", input)])
    ///     .with_stop_reason("toolUse");
    /// # assert_eq!(result.content.len(), 1);
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    pub fn new(
        model: impl Into<String>,
        content: impl IntoIterator<Item = impl Into<SamplingMessageContentBlock>>,
    ) -> Self {
        let content = content.into_iter().map(Into::into).collect();
        CreateMessageResult { role: Role::Assistant, content, model: model.into(), stop_reason: None, meta: None }
    }

    /// Creates a result with the name of the model and this text.
    pub fn text(model: impl Into<String>, text: impl Into<String>) -> Self {
        CreateMessageResult::new(model, [SamplingMessageContentBlock::text(text)])
    }
}

setters!(CreateMessageResult {
    /// Sets the reason why the model stopped, such as `endTurn` or `maxTokens`.
    with_stop_reason = some stop_reason: String;
    /// Sets `_meta`.
    with_meta = meta meta;
});

/// A piece of content of a message to or from a model. The `type` member identifies the variant.
///
/// # Example
///
/// ```
/// use linchpin_types::sample::SamplingMessageContentBlock;
///
/// let block = SamplingMessageContentBlock::text("What is the capital of Norway?");
/// assert_eq!(block.as_text(), Some("What is the capital of Norway?"));
/// ```
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum SamplingMessageContentBlock {
    /// `text`.
    Text(TextContent),
    /// `image`.
    Image(ImageContent),
    /// `audio` (2025-03-26 and later).
    Audio(AudioContent),
    /// `tool_use` (2025-11-25 and later).
    ToolUse(ToolUseContent),
    /// `tool_result` (2025-11-25 and later).
    ToolResult(ToolResultContent),
}

impl SamplingMessageContentBlock {
    /// Creates a block of text.
    pub fn text(text: impl Into<String>) -> Self {
        TextContent::new(text).into()
    }

    /// Creates an image from its bytes, which are encoded in base64.
    ///
    /// ```
    /// use linchpin_types::sample::SamplingMessageContentBlock as Block;
    ///
    /// let block = Block::image(b"\x89PNG", "image/png");
    /// assert_eq!(
    ///     serde_json::to_string(&block).unwrap(),
    ///     r#"{"type":"image","data":"iVBORw==","mimeType":"image/png"}"#,
    /// );
    /// ```
    pub fn image(bytes: &[u8], mime_type: impl Into<String>) -> Self {
        ImageContent::new(bytes, mime_type).into()
    }

    /// Creates a block of audio from its bytes, which are encoded in base64 (2025-03-26 and later).
    pub fn audio(bytes: &[u8], mime_type: impl Into<String>) -> Self {
        AudioContent::new(bytes, mime_type).into()
    }

    /// Returns the text if this is a block of text.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            SamplingMessageContentBlock::Text(block) => Some(&block.text),
            _ => None,
        }
    }
}

impl From<String> for SamplingMessageContentBlock {
    fn from(text: String) -> Self {
        SamplingMessageContentBlock::text(text)
    }
}

impl From<&str> for SamplingMessageContentBlock {
    fn from(text: &str) -> Self {
        SamplingMessageContentBlock::text(text)
    }
}

macro_rules! blocks {
    ($($content:ident => $kind:ident;)+) => { $(
        impl From<$content> for SamplingMessageContentBlock {
            fn from(content: $content) -> Self {
                SamplingMessageContentBlock::$kind(content)
            }
        }
    )+ };
}

blocks! {
    TextContent => Text;
    ImageContent => Image;
    AudioContent => Audio;
    ToolUseContent => ToolUse;
    ToolResultContent => ToolResult;
}

impl<'de> Deserialize<'de> for SamplingMessageContentBlock {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        by_raw(deserializer, SamplingMessageContentBlock::of)
    }
}

impl SamplingMessageContentBlock {
    fn of(raw: &RawValue) -> serde_json::Result<Self> {
        let kind: Kind = from_raw(raw)?;
        Ok(match kind.name.as_str() {
            "text" => SamplingMessageContentBlock::Text(from_raw(raw)?),
            "image" => SamplingMessageContentBlock::Image(from_raw(raw)?),
            "audio" => SamplingMessageContentBlock::Audio(from_raw(raw)?),
            "tool_use" => SamplingMessageContentBlock::ToolUse(from_raw(raw)?),
            "tool_result" => SamplingMessageContentBlock::ToolResult(from_raw(raw)?),
            _ => return Err(kind.unknown()),
        })
    }
}

/// A request by the model to use a tool (2025-11-25 and later).
///
/// # Example
///
/// ```
/// use linchpin_types::RawValue;
/// use linchpin_types::sample::ToolUseContent;
///
/// let arguments = RawValue::from_string(r#"{"city":"Oslo"}"#.to_owned()).unwrap();
/// let call = ToolUseContent::new("call-1", "forecast", arguments);
/// assert_eq!(call.name, "forecast");
/// ```
#[derive(Debug, Clone, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolUseContent {
    /// The id of this use, which the result repeats.
    pub id: String,
    /// The name of the tool.
    pub name: String,
    /// The arguments, an object.
    pub input: Box<RawValue>,
    /// The `_meta` object.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl ToolUseContent {
    /// Creates a use of the tool `name` with these arguments, an object. The result repeats the `id`.
    pub fn new(id: impl Into<String>, name: impl Into<String>, input: Box<RawValue>) -> Self {
        ToolUseContent { id: id.into(), name: name.into(), input, meta: None }
    }
}

setters!(ToolUseContent {
    /// Sets `_meta`.
    with_meta = meta meta;
});

/// The result of a tool that the model used (2025-11-25 and later).
///
/// # Example
///
/// ```
/// use linchpin_types::sample::{SamplingMessage, ToolResultContent};
///
/// let said = SamplingMessage::user(ToolResultContent::new("1", ["12 degrees"]));
/// let failed = ToolResultContent::new("2", ["no such city"]).with_is_error(true);
/// # assert_eq!((said.content.len(), failed.is_error), (1, Some(true)));
/// ```
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ToolResultContent {
    /// The `id` of the [`ToolUseContent`].
    pub tool_use_id: String,
    /// The result for the model.
    #[serde(default, deserialize_with = "null_is_default")]
    pub content: Vec<ContentBlock>,
    /// The result for programs: an object in 2025-11-25, any JSON value since.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "null_is_some")]
    pub structured_content: Option<Box<RawValue>>,
    /// Whether the tool failed, in which case `content` gives the reason. Absent means false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_error: Option<bool>,
    /// The `_meta` object.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl ToolResultContent {
    /// Creates the result of the use with this `id`.
    pub fn new(tool_use_id: impl Into<String>, content: impl IntoIterator<Item = impl Into<ContentBlock>>) -> Self {
        let content = content.into_iter().map(Into::into).collect();
        ToolResultContent { tool_use_id: tool_use_id.into(), content, ..Default::default() }
    }
}

setters!(ToolResultContent {
    /// Sets the structured content.
    with_structured_content = some structured_content: Box<RawValue>;
    /// Sets whether the call failed.
    with_is_error = some is_error: bool;
    /// Sets `_meta`.
    with_meta = meta meta;
});

/// The servers whose context should be included in a conversation. All values except `none` are deprecated since
/// 2025-11-25.
///
/// # Example
///
/// ```
/// use linchpin_types::sample::{CreateMessageRequestParams, IncludeContext, SamplingMessage};
///
/// let params = CreateMessageRequestParams::new([SamplingMessage::user("Which files changed?")], 100)
///     .with_include_context(IncludeContext::ThisServer);
/// assert_eq!(serde_json::to_string(&params.include_context).unwrap(), r#""thisServer""#);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum IncludeContext {
    /// No server.
    None,
    /// The server that sends the request.
    ThisServer,
    /// All servers.
    AllServers,
}

/// The server's preferences for a model. The client makes the choice.
///
/// # Example
///
/// ```
/// use linchpin_types::sample::ModelPreferences;
///
/// let preferences = ModelPreferences::default().with_hints(["sonnet", "gpt"]).with_intelligence_priority(0.9);
/// assert_eq!(
///     serde_json::to_string(&preferences).unwrap(),
///     r#"{"hints":[{"name":"sonnet"},{"name":"gpt"}],"intelligencePriority":0.9}"#,
/// );
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ModelPreferences {
    /// Names of models or parts of names, in order of preference.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    pub hints: Vec<ModelHint>,
    /// The importance of low cost, from 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_priority: Option<f64>,
    /// The importance of speed, from 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speed_priority: Option<f64>,
    /// The importance of intelligence, from 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intelligence_priority: Option<f64>,
}

setters!(ModelPreferences {
    /// Sets the model hints, in order of preference.
    with_hints = list hints: ModelHint;
    /// Sets the cost priority, from 0 to 1.
    with_cost_priority = some cost_priority: f64;
    /// Sets the speed priority, from 0 to 1.
    with_speed_priority = some speed_priority: f64;
    /// Sets the intelligence priority, from 0 to 1.
    with_intelligence_priority = some intelligence_priority: f64;
});

/// A hint for the choice of a model.
///
/// # Example
///
/// ```
/// use linchpin_types::sample::ModelHint;
///
/// let hint = ModelHint::from("claude");
/// assert_eq!(hint.name.as_deref(), Some("claude"));
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ModelHint {
    /// The name of the model, or a part of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

impl ModelHint {
    /// Creates a hint for models whose name contains this text.
    pub fn new(name: impl Into<String>) -> Self {
        ModelHint { name: Some(name.into()) }
    }
}

impl From<&str> for ModelHint {
    fn from(name: &str) -> Self {
        ModelHint::new(name)
    }
}

/// How the model may use tools (2025-11-25 and later).
///
/// # Example
///
/// ```
/// use linchpin_types::sample::{ToolChoice, ToolChoiceMode};
///
/// let choice = ToolChoice::from(ToolChoiceMode::Required);
/// assert_eq!(serde_json::to_string(&choice).unwrap(), r#"{"mode":"required"}"#);
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolChoice {
    /// The mode. Absent means [`ToolChoiceMode::Auto`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<ToolChoiceMode>,
}

impl From<ToolChoiceMode> for ToolChoice {
    fn from(mode: ToolChoiceMode) -> Self {
        ToolChoice { mode: Some(mode) }
    }
}

/// Whether the model may or must use tools (2025-11-25 and later).
///
/// # Example
///
/// ```
/// use linchpin_types::sample::{ToolChoice, ToolChoiceMode};
///
/// let choice = ToolChoice::from(ToolChoiceMode::Required);
/// assert_eq!(serde_json::to_string(&choice).unwrap(), r#"{"mode":"required"}"#);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum ToolChoiceMode {
    /// The model decides.
    Auto,
    /// The model must use at least one tool.
    Required,
    /// The model must not use any tool.
    None,
}

eq_by_json!(CreateMessageRequestParams, ToolUseContent, ToolResultContent);

fn write_blocks<S: Serializer>(blocks: &[SamplingMessageContentBlock], serializer: S) -> Result<S::Ok, S::Error> {
    match blocks {
        [block] => block.serialize(serializer),
        blocks => blocks.serialize(serializer),
    }
}

fn read_blocks<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<SamplingMessageContentBlock>, D::Error> {
    by_raw(deserializer, blocks_of)
}

fn blocks_of(raw: &RawValue) -> serde_json::Result<Vec<SamplingMessageContentBlock>> {
    match raw.get().as_bytes().first() {
        Some(b'[') => from_raw(raw),
        Some(b'{') => from_raw(raw).map(|block| vec![block]),
        _ => Err(serde_json::Error::custom("content is neither a block nor an array of blocks")),
    }
}
