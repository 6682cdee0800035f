//! Content for users and models: text, images, audio, resource links and embedded resources.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::de::{Deserializer, Error, IgnoredAny};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::meta::{IntoMeta, Meta};
use crate::read::{by_raw, from_raw, null_is_default};
use crate::setters::setters;

/// The author of a message, or the audience of a piece of content.
///
/// # Example
///
/// ```
/// use linchpin_types::prompt::PromptMessage;
/// use linchpin_types::content::Role;
///
/// assert_eq!(PromptMessage::user("Hello").role, Role::User);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Role {
    /// The user.
    User,
    /// The model.
    Assistant,
}

/// Hints about content: its audience, its importance and when it last changed.
///
/// # Example
///
/// ```
/// use linchpin_types::content::{Annotations, ContentBlock, Role};
///
/// let hints = Annotations::new()
///     .with_audience([Role::User])
///     .with_priority(0.9)
///     .with_last_modified("2026-07-28T12:00:00Z");
/// let block = ContentBlock::text("Build failed.").with_annotations(hints);
/// assert_eq!(
///     serde_json::to_string(&block).unwrap(),
///     r#"{"type":"text","text":"Build failed.","annotations":{"audience":["user"],"priority":0.9,"#.to_owned()
///         + r#""lastModified":"2026-07-28T12:00:00Z"}}"#,
/// );
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Annotations {
    /// The intended audience; empty if it is not specified.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    pub audience: Vec<Role>,
    /// The importance, from 0 (entirely optional) to 1 (effectively required).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<f64>,
    /// When the content last changed, in ISO 8601 (2025-06-18 and later).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_modified: Option<String>,
}

impl Annotations {
    /// Creates annotations without any hints.
    pub fn new() -> Self {
        Self::default()
    }
}

setters!(Annotations {
    /// Sets the intended audience.
    with_audience = list audience: Role;
    /// Sets the priority, from 0 to 1.
    with_priority = some priority: f64;
    /// Sets when it was last modified, in ISO 8601 (2025-06-18 and later).
    with_last_modified = some last_modified: String;
});

/// An icon of a server, tool, resource or prompt (2025-11-25 and later).
///
/// # Example
///
/// ```
/// use linchpin_types::content::{Icon, IconTheme};
///
/// let icon = Icon::new("https://example.com/dark.svg")
///     .with_mime_type("image/svg+xml")
///     .with_sizes(["any"])
///     .with_theme(IconTheme::Dark);
/// assert_eq!(
///     serde_json::to_string(&icon).unwrap(),
///     r#"{"src":"https://example.com/dark.svg","mimeType":"image/svg+xml","sizes":["any"],"theme":"dark"}"#,
/// );
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Icon {
    /// The location of the image: an `https:` or `data:` URI.
    pub src: String,
    /// The media type, if `src` does not reveal it or reveals a wrong one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// The available sizes, each as `48x48` or `any`.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    pub sizes: Vec<String>,
    /// The background that the icon is designed for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub theme: Option<IconTheme>,
}

impl Icon {
    /// Creates an icon whose image is at this `https:` or `data:` URI.
    pub fn new(src: impl Into<String>) -> Self {
        Icon { src: src.into(), ..Icon::default() }
    }
}

setters!(Icon {
    /// Sets the media type.
    with_mime_type = some mime_type: String;
    /// Sets the sizes, each as `48x48` or `any`.
    with_sizes = list sizes: String;
    /// Sets the background that the icon is designed for.
    with_theme = some theme: IconTheme;
});

/// The background that an icon is designed for (2025-11-25 and later).
///
/// # Example
///
/// ```
/// use linchpin_types::content::{Icon, IconTheme};
///
/// let icon = Icon::new("https://example.com/moon.png").with_theme(IconTheme::Dark);
/// assert_eq!(icon.theme, Some(IconTheme::Dark));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum IconTheme {
    /// Light backgrounds.
    Light,
    /// Dark backgrounds.
    Dark,
}

/// A piece of content. The `type` member identifies the variant.
///
/// # Example
///
/// ```
/// use linchpin_types::content::ContentBlock;
///
/// let blocks = [ContentBlock::text("A map of the city:"), ContentBlock::link("file:///map.png", "map.png")];
/// assert_eq!(blocks[0].as_text(), Some("A map of the city:"));
/// ```
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
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
    /// Creates a block of text.
    ///
    /// ```
    /// use linchpin_types::content::ContentBlock;
    ///
    /// let block = ContentBlock::text("hello");
    /// assert_eq!(serde_json::to_string(&block).unwrap(), r#"{"type":"text","text":"hello"}"#);
    /// assert_eq!(block, "hello".into());
    /// ```
    pub fn text(text: impl Into<String>) -> Self {
        TextContent::new(text).into()
    }

    /// Creates an image from its bytes, which are encoded in base64.
    ///
    /// ```
    /// use linchpin_types::content::ContentBlock;
    ///
    /// let block = ContentBlock::image(b"\x89PNG", "image/png");
    /// assert_eq!(
    ///     serde_json::to_string(&block).unwrap(),
    ///     r#"{"type":"image","data":"iVBORw==","mimeType":"image/png"}"#,
    /// );
    /// ```
    pub fn image(bytes: &[u8], mime_type: impl Into<String>) -> Self {
        ImageContent::new(bytes, mime_type).into()
    }

    /// Creates an image from bytes that are already encoded in base64 (standard alphabet, padded).
    ///
    /// ```
    /// use linchpin_types::content::ContentBlock;
    ///
    /// assert_eq!(ContentBlock::image_base64("iVBORw==", "image/png"), ContentBlock::image(b"\x89PNG", "image/png"));
    /// ```
    pub fn image_base64(data: impl Into<String>, mime_type: impl Into<String>) -> Self {
        ImageContent::from_base64(data, mime_type).into()
    }

    /// Creates a block of audio from its bytes, which are encoded in base64 (2025-03-26 and later).
    ///
    /// ```
    /// use linchpin_types::content::ContentBlock;
    ///
    /// let block = ContentBlock::audio(b"RIFF", "audio/wav");
    /// assert_eq!(
    ///     serde_json::to_string(&block).unwrap(),
    ///     r#"{"type":"audio","data":"UklGRg==","mimeType":"audio/wav"}"#,
    /// );
    /// ```
    pub fn audio(bytes: &[u8], mime_type: impl Into<String>) -> Self {
        AudioContent::new(bytes, mime_type).into()
    }

    /// Creates a block of audio from bytes that are already encoded in base64 (standard alphabet, padded; 2025-03-26
    /// and later).
    pub fn audio_base64(data: impl Into<String>, mime_type: impl Into<String>) -> Self {
        AudioContent::from_base64(data, mime_type).into()
    }

    /// Creates a block that embeds the contents of a resource.
    ///
    /// ```
    /// use linchpin_types::content::{ContentBlock, ResourceContents};
    ///
    /// let contents = ResourceContents::text("file:///a.md", "# A").with_mime_type("text/markdown");
    /// let block = ContentBlock::resource(contents);
    /// # assert!(block.as_text().is_none());
    /// ```
    pub fn resource(resource: ResourceContents) -> Self {
        EmbeddedResource::new(resource).into()
    }

    /// Creates a link to the resource with this URI and name (2025-06-18 and later).
    ///
    /// ```
    /// use linchpin_types::content::{ContentBlock, ResourceLink};
    ///
    /// let short = ContentBlock::link("file:///a.md", "a");
    /// let long = ContentBlock::from(ResourceLink::new("file:///a.md", "a").with_title("All about A").with_size(3u64));
    /// # assert_ne!(short, long);
    /// ```
    pub fn link(uri: impl Into<String>, name: impl Into<String>) -> Self {
        ResourceLink::new(uri, name).into()
    }

    /// Sets the annotations, replacing any previous ones.
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

    /// Sets `_meta`, replacing any previous one (2025-06-18 and later).
    ///
    /// # Panics
    /// Panics if `meta` is JSON other than an object.
    pub fn with_meta(mut self, meta: impl IntoMeta) -> Self {
        *match &mut self {
            ContentBlock::Text(block) => &mut block.meta,
            ContentBlock::Image(block) => &mut block.meta,
            ContentBlock::Audio(block) => &mut block.meta,
            ContentBlock::ResourceLink(block) => &mut block.meta,
            ContentBlock::Resource(block) => &mut block.meta,
        } = Some(meta.into_meta());
        self
    }

    /// Returns the text if this is a block of text.
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

macro_rules! blocks {
    ($($content:ident => $kind:ident;)+) => { $(
        impl From<$content> for ContentBlock {
            fn from(content: $content) -> Self {
                ContentBlock::$kind(content)
            }
        }
    )+ };
}

blocks! {
    TextContent => Text;
    ImageContent => Image;
    AudioContent => Audio;
    ResourceLink => ResourceLink;
    EmbeddedResource => Resource;
}

impl<'de> Deserialize<'de> for ContentBlock {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        by_raw(deserializer, ContentBlock::of)
    }
}

impl ContentBlock {
    fn of(raw: &RawValue) -> serde_json::Result<Self> {
        let kind: Kind = from_raw(raw)?;
        ContentBlock::of_kind(&kind, raw)?.ok_or_else(|| kind.unknown())
    }
}

impl ContentBlock {
    /// Reads a block whose `type` is known; `None` when no content has that type.
    pub(crate) fn of_kind(kind: &Kind, raw: &RawValue) -> serde_json::Result<Option<Self>> {
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
    pub(crate) fn unknown(&self) -> serde_json::Error {
        const SHOWN_CHARS_MAX: usize = 40;
        let shown: String = self.name.chars().take(SHOWN_CHARS_MAX).collect();
        serde_json::Error::custom(format_args!("unknown content type {shown:?}"))
    }
}

/// Text content.
///
/// # Example
///
/// ```
/// use linchpin_types::content::{Annotations, ContentBlock, TextContent};
///
/// let text = TextContent::new("done").with_annotations(Annotations::new().with_priority(0.5));
/// assert_eq!(ContentBlock::Text(text).as_text(), Some("done"));
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TextContent {
    /// The text.
    pub text: String,
    /// Annotations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// The `_meta` object (2025-06-18 and later).
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl TextContent {
    /// Creates content with this text.
    pub fn new(text: impl Into<String>) -> Self {
        TextContent { text: text.into(), ..Default::default() }
    }
}

setters!(TextContent {
    /// Sets the annotations.
    with_annotations = some annotations: Annotations;
    /// Sets `_meta`.
    with_meta = meta meta;
});

/// Image content.
///
/// # Example
///
/// ```
/// use linchpin_types::content::ImageContent;
///
/// let image = ImageContent::new(b"\x89PNG", "image/png");
/// assert_eq!(image.data, "iVBORw==");
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ImageContent {
    /// The bytes, encoded in base64.
    pub data: String,
    /// The media type.
    pub mime_type: String,
    /// Annotations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// The `_meta` object (2025-06-18 and later).
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl ImageContent {
    /// Creates an image from its bytes, which are encoded in base64.
    pub fn new(bytes: &[u8], mime_type: impl Into<String>) -> Self {
        ImageContent::from_base64(STANDARD.encode(bytes), mime_type)
    }

    /// Creates an image from bytes that are already encoded in base64 (standard alphabet, padded).
    pub fn from_base64(data: impl Into<String>, mime_type: impl Into<String>) -> Self {
        ImageContent { data: data.into(), mime_type: mime_type.into(), ..Default::default() }
    }
}

setters!(ImageContent {
    /// Sets the annotations.
    with_annotations = some annotations: Annotations;
    /// Sets `_meta`.
    with_meta = meta meta;
});

/// Audio content (2025-03-26 and later).
///
/// # Example
///
/// ```
/// use linchpin_types::content::AudioContent;
///
/// let sound = AudioContent::new(b"RIFF", "audio/wav");
/// assert_eq!(sound.data, "UklGRg==");
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct AudioContent {
    /// The bytes, encoded in base64.
    pub data: String,
    /// The media type.
    pub mime_type: String,
    /// Annotations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// The `_meta` object (2025-06-18 and later).
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl AudioContent {
    /// Creates audio content from its bytes, which are encoded in base64.
    pub fn new(bytes: &[u8], mime_type: impl Into<String>) -> Self {
        AudioContent::from_base64(STANDARD.encode(bytes), mime_type)
    }

    /// Creates audio content from bytes that are already encoded in base64 (standard alphabet, padded).
    pub fn from_base64(data: impl Into<String>, mime_type: impl Into<String>) -> Self {
        AudioContent { data: data.into(), mime_type: mime_type.into(), ..Default::default() }
    }
}

setters!(AudioContent {
    /// Sets the annotations.
    with_annotations = some annotations: Annotations;
    /// Sets `_meta`.
    with_meta = meta meta;
});

/// The contents of a resource, embedded in a message or a result.
///
/// # Example
///
/// ```
/// use linchpin_types::content::{EmbeddedResource, ResourceContents};
///
/// let embedded = EmbeddedResource::new(ResourceContents::text("file:///a.txt", "hello"));
/// assert_eq!(embedded.resource.uri(), "file:///a.txt");
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct EmbeddedResource {
    /// The contents of the resource.
    pub resource: ResourceContents,
    /// Annotations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// The `_meta` object (2025-06-18 and later).
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl EmbeddedResource {
    /// Embeds these contents.
    pub fn new(resource: ResourceContents) -> Self {
        EmbeddedResource { resource, annotations: None, meta: None }
    }
}

setters!(EmbeddedResource {
    /// Sets the annotations.
    with_annotations = some annotations: Annotations;
    /// Sets `_meta`.
    with_meta = meta meta;
});

/// A link to a resource, which need not be in the server's list (2025-06-18 and later).
///
/// # Example
///
/// ```
/// use linchpin_types::content::ResourceLink;
///
/// let link = ResourceLink::new("file:///report.pdf", "report.pdf")
///     .with_mime_type("application/pdf")
///     .with_size(10_240_u64);
/// assert_eq!(link.size, Some(10_240));
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ResourceLink {
    /// The URI of the resource.
    pub uri: String,
    /// The name, intended for programmatic use.
    pub name: String,
    /// The display name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// A description for models.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The media type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// The size in bytes, before any encoding.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// The icons (2025-11-25 and later).
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    pub icons: Vec<Icon>,
    /// Annotations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// The `_meta` object.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl ResourceLink {
    /// Creates a link to the resource with this URI and name.
    pub fn new(uri: impl Into<String>, name: impl Into<String>) -> Self {
        ResourceLink { uri: uri.into(), name: name.into(), ..Default::default() }
    }
}

setters!(ResourceLink {
    /// Sets the display name (2025-06-18 and later).
    with_title = some title: String;
    /// Sets the description.
    with_description = some description: String;
    /// Sets the media type.
    with_mime_type = some mime_type: String;
    /// Sets the size in bytes, before any encoding.
    with_size = some size: u64;
    /// Sets the icons (2025-11-25 and later).
    with_icons = list icons: Icon;
    /// Sets the annotations.
    with_annotations = some annotations: Annotations;
    /// Sets `_meta`.
    with_meta = meta meta;
});

/// The contents of a resource: text or bytes. The presence of `text` or `blob` identifies the variant.
///
/// # Example
///
/// ```
/// use linchpin_types::content::ResourceContents;
///
/// let contents = ResourceContents::text("file:///a.md", "# Title").with_mime_type("text/markdown");
/// assert_eq!(contents.mime_type(), Some("text/markdown"));
/// ```
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum ResourceContents {
    /// Text.
    Text(TextResourceContents),
    /// Bytes.
    Blob(BlobResourceContents),
}

impl ResourceContents {
    /// Creates text contents without a media type.
    ///
    /// ```
    /// use linchpin_types::content::ResourceContents;
    ///
    /// let contents = ResourceContents::text("file:///a.md", "# A").with_mime_type("text/markdown");
    /// assert_eq!(
    ///     serde_json::to_string(&contents).unwrap(),
    ///     r##"{"uri":"file:///a.md","mimeType":"text/markdown","text":"# A"}"##,
    /// );
    /// ```
    pub fn text(uri: impl Into<String>, text: impl Into<String>) -> Self {
        ResourceContents::Text(TextResourceContents { uri: uri.into(), text: text.into(), ..Default::default() })
    }

    /// Creates binary contents without a media type. The bytes are encoded in base64.
    ///
    /// ```
    /// use linchpin_types::content::ResourceContents;
    ///
    /// let contents = ResourceContents::blob("file:///a.png", b"\x89PNG");
    /// assert_eq!(serde_json::to_string(&contents).unwrap(), r#"{"uri":"file:///a.png","blob":"iVBORw=="}"#);
    /// ```
    pub fn blob(uri: impl Into<String>, bytes: &[u8]) -> Self {
        ResourceContents::blob_base64(uri, STANDARD.encode(bytes))
    }

    /// Creates binary contents without a media type, from bytes that are already encoded in base64 (standard
    /// alphabet, padded).
    pub fn blob_base64(uri: impl Into<String>, data: impl Into<String>) -> Self {
        ResourceContents::Blob(BlobResourceContents { uri: uri.into(), blob: data.into(), ..Default::default() })
    }

    /// Sets the media type, replacing any previous one.
    pub fn with_mime_type(mut self, mime_type: impl Into<String>) -> Self {
        *match &mut self {
            ResourceContents::Text(contents) => &mut contents.mime_type,
            ResourceContents::Blob(contents) => &mut contents.mime_type,
        } = Some(mime_type.into());
        self
    }

    /// Sets `_meta`, replacing any previous one (2025-06-18 and later).
    ///
    /// # Panics
    /// Panics if `meta` is JSON other than an object.
    pub fn with_meta(mut self, meta: impl IntoMeta) -> Self {
        *match &mut self {
            ResourceContents::Text(contents) => &mut contents.meta,
            ResourceContents::Blob(contents) => &mut contents.meta,
        } = Some(meta.into_meta());
        self
    }

    /// Returns the URI of the resource.
    pub fn uri(&self) -> &str {
        match self {
            ResourceContents::Text(contents) => &contents.uri,
            ResourceContents::Blob(contents) => &contents.uri,
        }
    }

    /// Returns the media type.
    pub fn mime_type(&self) -> Option<&str> {
        match self {
            ResourceContents::Text(contents) => contents.mime_type.as_deref(),
            ResourceContents::Blob(contents) => contents.mime_type.as_deref(),
        }
    }
}

impl<'de> Deserialize<'de> for ResourceContents {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        by_raw(deserializer, ResourceContents::of)
    }
}

impl ResourceContents {
    fn of(raw: &RawValue) -> serde_json::Result<Self> {
        #[derive(Deserialize)]
        struct Probe {
            #[serde(default)]
            text: Option<IgnoredAny>,
            #[serde(default)]
            blob: Option<IgnoredAny>,
        }
        match from_raw(raw)? {
            Probe { text: Some(_), .. } => from_raw(raw).map(ResourceContents::Text),
            Probe { blob: Some(_), .. } => from_raw(raw).map(ResourceContents::Blob),
            Probe { .. } => Err(serde_json::Error::custom("resource contents have neither text nor blob")),
        }
    }
}

/// The contents of a text resource.
///
/// # Example
///
/// ```
/// use linchpin_types::content::ResourceContents;
///
/// let json = r#"{"uri":"file:///a.txt","mimeType":"text/plain","text":"hello"}"#;
/// match serde_json::from_str(json)? {
///     ResourceContents::Text(contents) => assert_eq!(contents.text, "hello"),
///     ResourceContents::Blob(_) => panic!("binary contents"),
/// }
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct TextResourceContents {
    /// The URI of the resource.
    pub uri: String,
    /// The media type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// The text.
    pub text: String,
    /// The `_meta` object (2025-06-18 and later).
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

/// The contents of a binary resource.
///
/// # Example
///
/// ```
/// use linchpin_types::content::ResourceContents;
///
/// let json = r#"{"uri":"file:///a.png","mimeType":"image/png","blob":"iVBORw=="}"#;
/// match serde_json::from_str(json)? {
///     ResourceContents::Blob(contents) => assert_eq!(contents.blob, "iVBORw=="),
///     ResourceContents::Text(_) => panic!("text contents"),
/// }
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct BlobResourceContents {
    /// The URI of the resource.
    pub uri: String,
    /// The media type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// The bytes, encoded in base64.
    pub blob: String,
    /// The `_meta` object (2025-06-18 and later).
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}
