//! Ids of files, and what they can be exported as.

use linchpin_kit::{ErrorKind, ToolError};
use linchpin_rest::{Ask, Rest};
use serde_json::Value;

/// What is known of a file before it is read.
const SHORT: &str = "id,name,mimeType,size,shortcutDetails(targetId)";

/// The same in full.
pub(crate) const DETAILS: &str = "id,name,mimeType,description,size,createdTime,modifiedTime,webViewLink,parents,\
     owners(displayName,emailAddress),shared,trashed,md5Checksum,shortcutDetails(targetId,targetMimeType)";

/// All formats of the table below.
pub(crate) const FORMATS: &[&str] =
    &["markdown", "text", "html", "csv", "tsv", "pdf", "docx", "xlsx", "pptx", "png", "svg"];

const PDF: (&str, &str) = ("pdf", "application/pdf");

/// What Google's own types can be exported as, the usual one first.
const EXPORTS: &[(&str, &[(&str, &str)])] = &[
    (
        "document",
        &[
            ("markdown", "text/markdown"),
            ("text", "text/plain"),
            ("html", "text/html"),
            PDF,
            ("docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"),
        ],
    ),
    (
        "spreadsheet",
        &[
            ("csv", "text/csv"),
            ("tsv", "text/tab-separated-values"),
            PDF,
            ("xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
        ],
    ),
    (
        "presentation",
        &[
            ("text", "text/plain"),
            PDF,
            ("pptx", "application/vnd.openxmlformats-officedocument.presentationml.presentation"),
        ],
    ),
    ("drawing", &[("png", "image/png"), ("svg", "image/svg+xml"), PDF]),
];

/// A file that can be read.
#[derive(Debug)]
pub(crate) struct File {
    pub(crate) id: String,
    pub(crate) name: String,
    /// The type of what is read.
    pub(crate) media_type: String,
    /// The format that it is exported in.
    pub(crate) export: Option<&'static str>,
    /// Bytes of what is not exported.
    pub(crate) size: Option<u64>,
}

impl File {
    /// Asks for a file, and for the one that a shortcut leads to.
    pub(crate) async fn find(rest: &Rest, id: &str, format: Option<&str>) -> Result<File, ToolError> {
        let (mut id, mut about) = (bare(id).to_owned(), Value::Null);
        for _ in 0..2 {
            let ask = Ask::get("/files/{fileId}").segment("fileId", id.as_str());
            let ask = ask.query("fields", SHORT).query("supportsAllDrives", "true");
            about = rest.send(ask).await?.json()?;
            match about.pointer("/shortcutDetails/targetId").and_then(Value::as_str).filter(|target| is_id(target)) {
                Some(target) => target.clone_into(&mut id),
                None => break,
            }
        }
        let text = |name: &str| about[name].as_str().unwrap_or_default();
        let name = if text("name").is_empty() { id.clone() } else { text("name").to_owned() };
        let size = about["size"].as_u64().or_else(|| text("size").parse().ok());
        let own = text("mimeType");
        let Some(kind) = own.strip_prefix("application/vnd.google-apps.") else {
            if let Some(format) = format {
                let why = format!("{name} has one format only, {own}, and not {format}");
                return Err(ToolError::invalid("The file is not available in that format")
                    .detail(why)
                    .hint("Leave out format."));
            }
            let media_type = if own.is_empty() { "application/octet-stream" } else { own }.to_owned();
            return Ok(File { id, name, media_type, export: None, size });
        };
        let Some((_, formats)) = EXPORTS.iter().find(|(known, _)| *known == kind) else {
            let error = ToolError::invalid("It has no content that could be read").detail(format!("{name}: {own}"));
            return Err(if kind == "folder" { error.hint("List it with gdrive_list_folder.") } else { error });
        };
        let Some((export, media_type)) = formats.iter().find(|(known, _)| format.is_none_or(|format| format == *known))
        else {
            let names: Vec<&str> = formats.iter().map(|(name, _)| *name).collect();
            let error = ToolError::invalid(format!("A {kind} is not available in that format"));
            return Err(error.hint(format!("Formats: {}.", names.join(", "))));
        };
        Ok(File { id, name, media_type: (*media_type).to_owned(), export: Some(export), size: None })
    }

    /// Whether a user could read it.
    pub(crate) fn is_text(&self) -> bool {
        let subtype = self.media_type.strip_prefix("application/").unwrap_or_default();
        self.media_type.starts_with("text/")
            || self.media_type.ends_with("+json")
            || self.media_type.ends_with("+xml")
            || matches!(
                subtype,
                "json" | "xml" | "javascript" | "sql" | "x-sh" | "yaml" | "x-yaml" | "toml" | "x-ndjson"
            )
    }

    /// The request for its content.
    pub(crate) fn ask(&self) -> Ask {
        let ask = match self.export {
            Some(_) => Ask::get("/files/{fileId}/export").query("mimeType", self.media_type.as_str()),
            None => Ask::get("/files/{fileId}").query("alt", "media").query("supportsAllDrives", "true"),
        };
        ask.segment("fileId", self.id.as_str()).header("accept", "*/*")
    }

    /// Refuses what is longer than a response may be.
    pub(crate) fn check_size(&self, rest: &Rest) -> Result<(), ToolError> {
        let most = rest.config().body_bytes_max as u64;
        match self.size.filter(|size| *size > most) {
            None => Ok(()),
            Some(size) => Err(ToolError::new(format!("The file has {size} bytes; at most {most} can be read at once"))
                .kind(ErrorKind::Limited { retry_after: None })
                .hint("Read text in parts with gdrive_read, or use gdrive_download.")),
        }
    }
}

/// Whether a text is the id of a file, or a resource's URI with one.
pub(crate) fn is_id(text: &str) -> bool {
    let id = bare(text);
    (1..=128).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
}

/// The id in a resource's URI.
pub(crate) fn bare(text: &str) -> &str {
    match text.strip_prefix("gdrive://") {
        Some(rest) => rest.split_once('/').map_or(rest, |(_, id)| id),
        None => text,
    }
}

/// A literal of Drive's query language.
pub(crate) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_is_one_literal() {
        for (text, want) in [
            ("plan", "'plan'"),
            ("it's", r"'it\'s'"),
            (r"a\", r"'a\\'"),
            (r"\'", r"'\\\''"),
            ("' or name contains '", r"'\' or name contains \''"),
        ] {
            assert_eq!(quoted(text), want);
        }
    }

    #[test]
    fn ids_are_nothing_else() {
        for good in ["1aB-_9", "root", "gdrive:///1aB", "gdrive://work/1aB"] {
            assert!(is_id(good), "{good}");
        }
        for bad in [
            "",
            "../about",
            "a/b?alt=media",
            "a b",
            "gdrive:///",
            "gdrive:///a?b",
            "gdrive:///../about",
            "https://x/1aB",
            &"a".repeat(129),
        ] {
            assert!(!is_id(bad), "{bad}");
        }
        assert_eq!(bare("gdrive:///1aB"), "1aB");
    }

    #[test]
    fn every_format_is_of_some_type() {
        let known = |format: &&str| EXPORTS.iter().any(|(_, formats)| formats.iter().any(|(name, _)| name == format));
        assert!(FORMATS.iter().all(known));
        assert!(EXPORTS.iter().flat_map(|(_, formats)| *formats).all(|(name, _)| FORMATS.contains(name)));
    }
}
