//! `read_media_file`: a file as base64.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use linchpin::types::content::{ContentBlock, ResourceContents};
use linchpin_kit::{Provenance, ToolError, ToolOutput, ToolSpec, from_outside};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::Path;

use crate::answer::Answered;
use crate::inner::Inner;
use crate::open::read_whole;
use crate::paths::path_uri;
use crate::resolve::Last;

pub(crate) const READ_MEDIA_FILE: ToolSpec = ToolSpec::reads(
    "read_media_file",
    "Read Media File",
    "read",
    "Reads a file as base64: an image, audio, or an embedded resource.",
);

/// Arguments of `read_media_file`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub struct ReadMediaFile {
    /// The file to read.
    pub path: String,
}

/// The result of `read_media_file`: one block.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct MediaAnswer {
    /// The block, as in the result's content.
    pub content: Vec<MediaBlock>,
}

/// A content block with binary data.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum MediaBlock {
    /// An image.
    Image {
        /// Base64.
        data: String,
        /// The media type, by file extension.
        #[serde(rename = "mimeType")]
        mime_type: String,
    },
    /// Audio.
    Audio {
        /// Base64.
        data: String,
        /// The media type, by file extension.
        #[serde(rename = "mimeType")]
        mime_type: String,
    },
    /// Anything else.
    Resource {
        /// The embedded file.
        resource: MediaResource,
    },
}

/// An embedded file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct MediaResource {
    /// The `file://` URI.
    pub uri: String,
    /// The media type, by file extension.
    #[serde(rename = "mimeType")]
    pub mime_type: String,
    /// Base64.
    pub blob: String,
}

impl Answered for MediaAnswer {
    fn shown(self, _: Provenance) -> ToolOutput<Self> {
        let block = |block: &MediaBlock| match block.clone() {
            MediaBlock::Image { data, mime_type } => ContentBlock::image_base64(data, mime_type),
            MediaBlock::Audio { data, mime_type } => ContentBlock::audio_base64(data, mime_type),
            MediaBlock::Resource { resource } => {
                let contents = ResourceContents::blob_base64(resource.uri, resource.blob);
                ContentBlock::resource(contents.with_mime_type(resource.mime_type))
            }
        };
        let blocks = self.content.iter().map(|b| from_outside(block(b))).collect();
        ToolOutput::blocks(blocks, self)
    }
}

impl Inner {
    pub(crate) fn read_media(&self, args: &ReadMediaFile) -> Result<MediaAnswer, ToolError> {
        let place = self.resolve(&args.path, Last::Follow)?;
        let (_, _, bytes) = read_whole(&place, self.config.max_read_bytes, "raise --max-read-bytes to read it whole")?;
        let data = STANDARD.encode(bytes);
        let mime_type = media_type(&place.path()).unwrap_or("application/octet-stream").to_owned();
        let block = match mime_type.split('/').next() {
            Some("image") => MediaBlock::Image { data, mime_type },
            Some("audio") => MediaBlock::Audio { data, mime_type },
            _ => {
                let uri = path_uri(&place.path());
                MediaBlock::Resource { resource: MediaResource { uri, mime_type, blob: data } }
            }
        };
        Ok(MediaAnswer { content: vec![block] })
    }
}

/// The media type of extensions returned as image or audio.
pub(super) fn media_type(path: &Path) -> Option<&'static str> {
    let extension = path.extension()?.to_str()?.to_ascii_lowercase();
    Some(match extension.as_str() {
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "gif" => "image/gif",
        "webp" => "image/webp",
        "bmp" => "image/bmp",
        "svg" => "image/svg+xml",
        "mp3" => "audio/mpeg",
        "wav" => "audio/wav",
        "ogg" => "audio/ogg",
        "flac" => "audio/flac",
        _ => return None,
    })
}
