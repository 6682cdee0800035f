//! Sampling: a server asks the client's model.

use serde::de::{Deserializer, Error};
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::content::{AudioContent, ContentBlock, ImageContent, Kind, Role, TextContent};
use crate::meta::Meta;
use crate::read::{eq_by_json, from_raw, null_is_default, null_is_some};
use crate::tool::Tool;

/// The parameters of `sampling/createMessage`.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
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
    /// Anything else (2024-11-05 to 2025-11-25).
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

/// One message of a conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SamplingMessage {
    /// Who says it.
    pub role: Role,
    /// What they say. One block is written alone, as every revision has it; several as an array, which only
    /// 2025-11-25 and later can read.
    #[serde(serialize_with = "write_blocks", deserialize_with = "read_blocks")]
    pub content: Vec<SamplingMessageContentBlock>,
    /// Anything else (2025-11-25 and later).
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl SamplingMessage {
    /// The person says this.
    pub fn user(content: impl Into<SamplingMessageContentBlock>) -> Self {
        SamplingMessage { role: Role::User, content: vec![content.into()], meta: None }
    }

    /// The model says this.
    pub fn assistant(content: impl Into<SamplingMessageContentBlock>) -> Self {
        SamplingMessage { role: Role::Assistant, content: vec![content.into()], meta: None }
    }
}

/// What the model answered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
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
    /// Anything else.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

/// One piece of what is said to or by a model, told apart by `type`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
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
        SamplingMessageContentBlock::Text(TextContent { text: text.into(), ..Default::default() })
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
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ToolUseContent {
    /// What the result will be known by.
    pub id: String,
    /// Which tool.
    pub name: String,
    /// The arguments, an object.
    pub input: Box<RawValue>,
    /// Anything else.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

/// What a tool answered to the model (2025-11-25 and later).
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
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
    /// Anything else.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

/// Which servers' context to add to a conversation. Deprecated since 2025-11-25, except `none`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum IncludeContext {
    /// None.
    None,
    /// That of the server that asks.
    ThisServer,
    /// That of all servers.
    AllServers,
}

/// Which model to prefer. The client decides.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
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

/// A hint at a model.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelHint {
    /// A part of its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// How the model is to use tools (2025-11-25 and later).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolChoice {
    /// The rule. Absent means [`ToolChoiceMode::Auto`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<ToolChoiceMode>,
}

/// Whether the model uses tools (2025-11-25 and later).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
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
