//! Sampling: a server asks the client's model.

use serde::de::{Deserializer, Error};
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::content::{AudioContent, ContentBlock, ImageContent, Kind, Role, TextContent};
use crate::meta::Meta;
use crate::read::{eq_by_json, from_raw, null_is_default, null_is_some};
use crate::setters::setters;
use crate::tool::Tool;

/// The parameters of `sampling/createMessage`.
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
    /// Which model to prefer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_preferences: Option<ModelPreferences>,
    /// The system prompt that the server would like.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
    /// Which servers' context to add. Absent means none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub include_context: Option<IncludeContext>,
    /// How freely to sample.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// How many tokens to write at most.
    pub max_tokens: u64,
    /// Where to stop.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    pub stop_sequences: Vec<String>,
    /// Settings of the model's provider, an object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Box<RawValue>>,
    /// The tools that the model may use (2025-11-25 and later).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<Tool>>,
    /// How the model is to use them (2025-11-25 and later).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_choice: Option<ToolChoice>,
    /// Run it as a task (2025-11-25 only).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<Box<RawValue>>,
    /// The `_meta` object (2024-11-05 to 2025-11-25).
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl CreateMessageRequestParams {
    /// Asks for at most `max_tokens` tokens that continue this conversation.
    pub fn new(messages: impl IntoIterator<Item = SamplingMessage>, max_tokens: u64) -> Self {
        CreateMessageRequestParams { messages: messages.into_iter().collect(), max_tokens, ..Default::default() }
    }
}

setters!(CreateMessageRequestParams {
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

/// One message of a conversation.
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
    /// Who says it.
    pub role: Role,
    /// What they say. One block is written alone, as every revision has it; several as an array, which only
    /// 2025-11-25 and later can read.
    #[serde(serialize_with = "write_blocks", deserialize_with = "read_blocks")]
    pub content: Vec<SamplingMessageContentBlock>,
    /// The `_meta` object (2025-11-25 and later).
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl SamplingMessage {
    /// Several blocks that somebody says at once. More than one need 2025-11-25 or later.
    pub fn new(role: Role, content: impl IntoIterator<Item = impl Into<SamplingMessageContentBlock>>) -> Self {
        SamplingMessage { role, content: content.into_iter().map(Into::into).collect(), meta: None }
    }

    /// The user says this.
    pub fn user(content: impl Into<SamplingMessageContentBlock>) -> Self {
        SamplingMessage { role: Role::User, content: vec![content.into()], meta: None }
    }

    /// The model says this.
    pub fn assistant(content: impl Into<SamplingMessageContentBlock>) -> Self {
        SamplingMessage { role: Role::Assistant, content: vec![content.into()], meta: None }
    }
}

setters!(SamplingMessage {
    /// Sets `_meta` (2025-11-25 and later).
    with_meta = meta meta;
});

/// What the model answered.
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
    /// Who says it; the model.
    pub role: Role,
    /// What it says. One block is written alone, several as an array (2025-11-25 and later).
    #[serde(serialize_with = "write_blocks", deserialize_with = "read_blocks")]
    pub content: Vec<SamplingMessageContentBlock>,
    /// Which model answered.
    pub model: String,
    /// Why it stopped: `endTurn`, `stopSequence`, `maxTokens`, `toolUse` (2025-11-25 and later), or the provider's
    /// own word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<String>,
    /// The `_meta` object.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl CreateMessageResult {
    /// These blocks by this model. More than one need 2025-11-25 or later.
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

    /// One text by this model.
    pub fn text(model: impl Into<String>, text: impl Into<String>) -> Self {
        CreateMessageResult::new(model, [SamplingMessageContentBlock::text(text)])
    }
}

setters!(CreateMessageResult {
    /// Sets the stop reason: `endTurn`, `maxTokens` and so on.
    with_stop_reason = some stop_reason: String;
    /// Sets `_meta`.
    with_meta = meta meta;
});

/// One piece of what is said to or by a model, told apart by `type`.
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
    /// Text.
    pub fn text(text: impl Into<String>) -> Self {
        TextContent::new(text).into()
    }

    /// An image: its bytes, which are written in base64.
    ///
    /// ```
    /// use linchpin_types::sample::SamplingMessageContentBlock as Block;
    ///
    /// let block = Block::image(b"\x89PNG", "image/png");
    /// assert_eq!(serde_json::to_string(&block).unwrap(), r#"{"type":"image","data":"iVBORw==","mimeType":"image/png"}"#);
    /// ```
    pub fn image(bytes: &[u8], mime_type: impl Into<String>) -> Self {
        ImageContent::new(bytes, mime_type).into()
    }

    /// Sound: its bytes, which are written in base64. Not in 2024-11-05.
    pub fn audio(bytes: &[u8], mime_type: impl Into<String>) -> Self {
        AudioContent::new(bytes, mime_type).into()
    }

    /// The text, when this is text.
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
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        let kind: Kind = from_raw(&raw)?;
        Ok(match kind.name.as_str() {
            "text" => SamplingMessageContentBlock::Text(from_raw(&raw)?),
            "image" => SamplingMessageContentBlock::Image(from_raw(&raw)?),
            "audio" => SamplingMessageContentBlock::Audio(from_raw(&raw)?),
            "tool_use" => SamplingMessageContentBlock::ToolUse(from_raw(&raw)?),
            "tool_result" => SamplingMessageContentBlock::ToolResult(from_raw(&raw)?),
            _ => return Err(kind.unknown()),
        })
    }
}

/// The model wants to use a tool (2025-11-25 and later).
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
    /// What the result will be known by.
    pub id: String,
    /// Which tool.
    pub name: String,
    /// The arguments, an object.
    pub input: Box<RawValue>,
    /// The `_meta` object.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl ToolUseContent {
    /// The use of a tool with these arguments, an object; `id` is what the result will be known by.
    pub fn new(id: impl Into<String>, name: impl Into<String>, input: Box<RawValue>) -> Self {
        ToolUseContent { id: id.into(), name: name.into(), input, meta: None }
    }
}

setters!(ToolUseContent {
    /// Sets `_meta`.
    with_meta = meta meta;
});

/// What a tool answered to the model (2025-11-25 and later).
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
    /// The `id` of the use.
    pub tool_use_id: String,
    /// The answer, for the model.
    #[serde(default, deserialize_with = "null_is_default")]
    pub content: Vec<ContentBlock>,
    /// The answer, for programs: an object in 2025-11-25, any JSON since.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "null_is_some")]
    pub structured_content: Option<Box<RawValue>>,
    /// The tool failed and `content` says why. Absent means it did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_error: Option<bool>,
    /// The `_meta` object.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl ToolResultContent {
    /// What the use with this `id` answered.
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

/// Which servers' context to add to a conversation. Deprecated since 2025-11-25, except `none`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum IncludeContext {
    /// None.
    None,
    /// That of the server that asks.
    ThisServer,
    /// That of all servers.
    AllServers,
}

/// Which model to prefer. The client decides.
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
    /// Names or parts of names, the first that fits goes first.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    pub hints: Vec<ModelHint>,
    /// How much cheapness matters, from 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_priority: Option<f64>,
    /// How much speed matters, from 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speed_priority: Option<f64>,
    /// How much ability matters, from 0 to 1.
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

/// A hint at a model.
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
    /// A part of its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

impl ModelHint {
    /// A model with this in its name.
    pub fn new(name: impl Into<String>) -> Self {
        ModelHint { name: Some(name.into()) }
    }
}

impl From<&str> for ModelHint {
    fn from(name: &str) -> Self {
        ModelHint::new(name)
    }
}

/// How the model is to use tools (2025-11-25 and later).
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
    /// The rule. Absent means [`ToolChoiceMode::Auto`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<ToolChoiceMode>,
}

impl From<ToolChoiceMode> for ToolChoice {
    fn from(mode: ToolChoiceMode) -> Self {
        ToolChoice { mode: Some(mode) }
    }
}

/// Whether the model uses tools (2025-11-25 and later).
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
    /// As it likes.
    Auto,
    /// It must use one at least.
    Required,
    /// It must not.
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
    let raw = Box::<RawValue>::deserialize(deserializer)?;
    match raw.get().as_bytes().first() {
        Some(b'[') => from_raw(&raw),
        Some(b'{') => from_raw(&raw).map(|block| vec![block]),
        _ => Err(D::Error::custom("content is neither a block nor an array of blocks")),
    }
}
