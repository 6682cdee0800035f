//! Files as resources.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use linchpin::Error;
use linchpin::types::content::ResourceContents;
use linchpin_kit::{ErrorKind, ToolError, root_path};
use schemars::JsonSchema;
use serde::Deserialize;

use super::read_media_file::media_type;
use crate::inner::Inner;
use crate::open::read_whole;
use crate::paths::path_uri;
use crate::resolve::Last;
use crate::server::Filesystem;
use crate::text;

/// A file read as a resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceBody {
    /// The requested URI.
    pub uri: String,
    /// The media type, by extension or content.
    pub mime_type: String,
    /// The content.
    pub data: ResourceData,
}

/// The content of a resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResourceData {
    /// Text.
    Text(String),
    /// Base64 of anything else.
    Blob(String),
}

impl Inner {
    pub(crate) fn read_resource(&self, uri: &str) -> Result<ResourceBody, ToolError> {
        let not_found = || ToolError::not_found(format!("Resource not found: {uri}"));
        let path = uri.starts_with("file://").then(|| root_path(uri)).flatten();
        let path = path
            .and_then(|path| path.into_os_string().into_string().ok())
            .ok_or_else(|| not_found().hint("Use file:// and an absolute path, percent-encoded where needed."))?;
        let place = self.resolve(&path, Last::Follow).map_err(|fault| fault.kind(ErrorKind::NotFound))?;
        let (_, _, bytes) = read_whole(&place, self.config.max_read_bytes, "read a part of it with fs_read_range")?;
        let media = media_type(&place.path());
        let text = (media.is_none() && !bytes.contains(&0)).then(|| text::decode_all(bytes.clone(), false).text);
        let (data, fallback) = match text {
            Some(text) => (ResourceData::Text(text), "text/plain"),
            None => (ResourceData::Blob(STANDARD.encode(bytes)), "application/octet-stream"),
        };
        Ok(ResourceBody { uri: uri.to_owned(), mime_type: media.unwrap_or(fallback).to_owned(), data })
    }
}

/// The variable of the resource template.
#[derive(Deserialize, JsonSchema)]
pub(super) struct FilePath {
    /// The absolute path without the leading slash.
    path: String,
}

/// The contents of a file.
pub(super) async fn contents(fs: Filesystem, at: FilePath) -> Result<ResourceContents, Error> {
    let uri = path_uri(std::path::Path::new(&format!("/{}", at.path)));
    let body = fs.read_resource(uri).await.map_err(ToolError::for_resource)?;
    let contents = match body.data {
        ResourceData::Text(text) => ResourceContents::text(body.uri, text),
        ResourceData::Blob(blob) => ResourceContents::blob_base64(body.uri, blob),
    };
    Ok(contents.with_mime_type(body.mime_type))
}
