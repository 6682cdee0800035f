//! What people and models read: text, images, audio, links to resources and resources themselves.

use serde::de::{Deserializer, Error, IgnoredAny};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::meta::Meta;
use crate::read::{from_raw, null_is_default};

/// Who speaks, or who something is meant for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The person.
    User,
    /// The model.
    Assistant,
}

/// Hints about content: for whom, how important, how fresh.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Annotations {
    /// Whom it is meant for; empty says nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    pub audience: Vec<Role>,
    /// How important it is, from 0 (leave it out if you like) to 1 (needed).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<f64>,
    /// When it last changed, ISO 8601 (2025-06-18 and later).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_modified: Option<String>,
}

/// A picture that stands for a server, tool, resource or prompt (2025-11-25 and later).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Icon {
    /// Where it is: an `https:` or `data:` URI.
    pub src: String,
    /// Its media type, when `src` does not tell or tells wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// Its sizes, each as `48x48` or `any`.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    pub sizes: Vec<String>,
    /// The background it is made for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub theme: Option<IconTheme>,
}

/// The background that an icon is made for (2025-11-25 and later).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum IconTheme {
    /// Light backgrounds.
    Light,
    /// Dark backgrounds.
    Dark,
}

/// One piece of content, told apart by `type`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ContentBlock {
    /// `text`.
    Text(TextContent),
    /// `image`.
    Image(ImageContent),
    /// `audio` (2025-03-26 and later).
    Audio(AudioContent),
    /// `resource_link` (2025-06-18 and later).
    ResourceLink(ResourceLink),
    /// `resource`.
    Resource(EmbeddedResource),
}

impl ContentBlock {
    /// Text.
    pub fn text(text: impl Into<String>) -> Self {
        ContentBlock::Text(TextContent { text: text.into(), ..Default::default() })
    }

    /// An image, its bytes already in base64 (standard alphabet, padded).
    pub fn image(base64_data: impl Into<String>, mime_type: impl Into<String>) -> Self {
        ContentBlock::Image(ImageContent {
            data: base64_data.into(),
            mime_type: mime_type.into(),
            ..Default::default()
        })
    }

    /// Sound, its bytes already in base64 (standard alphabet, padded). Not in 2024-11-05.
    pub fn audio(base64_data: impl Into<String>, mime_type: impl Into<String>) -> Self {
        ContentBlock::Audio(AudioContent {
            data: base64_data.into(),
            mime_type: mime_type.into(),
            ..Default::default()
        })
    }

    /// A resource, whole.
    pub fn resource(resource: ResourceContents) -> Self {
        ContentBlock::Resource(EmbeddedResource { resource, annotations: None, meta: None })
    }

    /// A link to a resource. Not in 2024-11-05 and 2025-03-26.
    pub fn link(uri: impl Into<String>, name: impl Into<String>) -> Self {
        ContentBlock::ResourceLink(ResourceLink { uri: uri.into(), name: name.into(), ..Default::default() })
    }

    /// The same content with these annotations, replacing earlier ones.
    pub fn with_annotations(mut self, annotations: Annotations) -> Self {
        *match &mut self {
            ContentBlock::Text(block) => &mut block.annotations,
            ContentBlock::Image(block) => &mut block.annotations,
            ContentBlock::Audio(block) => &mut block.annotations,
            ContentBlock::ResourceLink(block) => &mut block.annotations,
            ContentBlock::Resource(block) => &mut block.annotations,
        } = Some(annotations);
        self
    }

    /// The same content with this `_meta`, replacing an earlier one. Not in 2024-11-05 and 2025-03-26.
    pub fn with_meta(mut self, meta: Meta) -> Self {
        *match &mut self {
            ContentBlock::Text(block) => &mut block.meta,
            ContentBlock::Image(block) => &mut block.meta,
            ContentBlock::Audio(block) => &mut block.meta,
            ContentBlock::ResourceLink(block) => &mut block.meta,
            ContentBlock::Resource(block) => &mut block.meta,
        } = Some(meta);
        self
    }

    /// The text, when this is text.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            ContentBlock::Text(block) => Some(&block.text),
            _ => None,
        }
    }
}

impl From<String> for ContentBlock {
    fn from(text: String) -> Self {
        ContentBlock::text(text)
    }
}

impl From<&str> for ContentBlock {
    fn from(text: &str) -> Self {
        ContentBlock::text(text)
    }
}

impl<'de> Deserialize<'de> for ContentBlock {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        let kind: Kind = from_raw(&raw)?;
        ContentBlock::of_kind(&kind, &raw)?.ok_or_else(|| kind.unknown())
    }
}

impl ContentBlock {
    /// Reads a block whose `type` is known; `None` when no content has that type.
    pub(crate) fn of_kind<E: Error>(kind: &Kind, raw: &RawValue) -> Result<Option<Self>, E> {
        Ok(Some(match kind.name.as_str() {
            "text" => ContentBlock::Text(from_raw(raw)?),
            "image" => ContentBlock::Image(from_raw(raw)?),
            "audio" => ContentBlock::Audio(from_raw(raw)?),
            "resource_link" => ContentBlock::ResourceLink(from_raw(raw)?),
            "resource" => ContentBlock::Resource(from_raw(raw)?),
            _ => return Ok(None),
        }))
    }
}

/// The `type` of a block, read before the rest of it.
#[derive(Deserialize)]
pub(crate) struct Kind {
    #[serde(rename = "type")]
    pub(crate) name: String,
}

impl Kind {
    /// The error for a `type` that no revision has; the peer's text is cut so that a message stays a message.
    pub(crate) fn unknown<E: Error>(&self) -> E {
        const SHOWN_CHARS_MAX: usize = 40;
        let shown: String = self.name.chars().take(SHOWN_CHARS_MAX).collect();
        E::custom(format_args!("unknown content type {shown:?}"))
    }
}

/// Text.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TextContent {
    /// The text.
    pub text: String,
    /// Hints about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// Anything else (2025-06-18 and later).
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

/// An image.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ImageContent {
    /// Its bytes in base64.
    pub data: String,
    /// Its media type.
    pub mime_type: String,
    /// Hints about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// Anything else (2025-06-18 and later).
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

/// Sound (2025-03-26 and later).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AudioContent {
    /// Its bytes in base64.
    pub data: String,
    /// Its media type.
    pub mime_type: String,
    /// Hints about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// Anything else (2025-06-18 and later).
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

/// A resource, whole.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EmbeddedResource {
    /// The resource.
    pub resource: ResourceContents,
    /// Hints about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// Anything else (2025-06-18 and later).
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

/// A link to a resource, which need not be in the server's list (2025-06-18 and later).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceLink {
    /// Where it is.
    pub uri: String,
    /// Its name, for programs.
    pub name: String,
    /// Its name, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What it is, for models.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Its media type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// Its size in bytes, before any encoding.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// Pictures for it (2025-11-25 and later).
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    pub icons: Vec<Icon>,
    /// Hints about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// Anything else.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

/// What is in a resource: text or bytes, told apart by which of `text` and `blob` is there.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum ResourceContents {
    /// Text.
    Text(TextResourceContents),
    /// Bytes.
    Blob(BlobResourceContents),
}

impl ResourceContents {
    /// Text, without a media type.
    pub fn text(uri: impl Into<String>, text: impl Into<String>) -> Self {
        ResourceContents::Text(TextResourceContents { uri: uri.into(), text: text.into(), ..Default::default() })
    }

    /// Bytes, already in base64 (standard alphabet, padded), without a media type.
    pub fn blob(uri: impl Into<String>, base64_data: impl Into<String>) -> Self {
        ResourceContents::Blob(BlobResourceContents { uri: uri.into(), blob: base64_data.into(), ..Default::default() })
    }

    /// The same contents with this media type, replacing an earlier one.
    pub fn with_mime_type(mut self, mime_type: impl Into<String>) -> Self {
        *match &mut self {
            ResourceContents::Text(contents) => &mut contents.mime_type,
            ResourceContents::Blob(contents) => &mut contents.mime_type,
        } = Some(mime_type.into());
        self
    }

    /// Where they are.
    pub fn uri(&self) -> &str {
        match self {
            ResourceContents::Text(contents) => &contents.uri,
            ResourceContents::Blob(contents) => &contents.uri,
        }
    }

    /// Their media type.
    pub fn mime_type(&self) -> Option<&str> {
        match self {
            ResourceContents::Text(contents) => contents.mime_type.as_deref(),
            ResourceContents::Blob(contents) => contents.mime_type.as_deref(),
        }
    }
}

impl<'de> Deserialize<'de> for ResourceContents {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Probe {
            #[serde(default)]
            text: Option<IgnoredAny>,
            #[serde(default)]
            blob: Option<IgnoredAny>,
        }
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        match from_raw(&raw)? {
            Probe { text: Some(_), .. } => from_raw(&raw).map(ResourceContents::Text),
            Probe { blob: Some(_), .. } => from_raw(&raw).map(ResourceContents::Blob),
            Probe { .. } => Err(D::Error::custom("resource contents have neither text nor blob")),
        }
    }
}

/// Text in a resource.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TextResourceContents {
    /// Where it is.
    pub uri: String,
    /// Its media type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// The text.
    pub text: String,
    /// Anything else (2025-06-18 and later).
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

/// Bytes in a resource.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BlobResourceContents {
    /// Where they are.
    pub uri: String,
    /// Their media type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// The bytes in base64.
    pub blob: String,
    /// Anything else (2025-06-18 and later).
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}
