//! Shows content: text unchanged, everything else described or saved.

use crate::fail::Failure;
use crate::show::out::{Out, note};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use linchpin::types::content::{ContentBlock, ResourceContents};
use linchpin_core::exact;
use std::path::{Path, PathBuf};

/// Shows content, and saves non-text content.
pub(crate) struct ContentPrinter<'a> {
    folder: Option<&'a Path>,
    stem: String,
    saved: usize,
    /// Whether the whole result is printed as JSON: then data is only saved.
    by_json: bool,
}

impl<'a> ContentPrinter<'a> {
    /// Saves non-text content to `folder`, if given, under names that begin like `about`.
    pub(crate) fn new(folder: Option<&'a Path>, about: &str) -> Result<ContentPrinter<'a>, Failure> {
        if let Some(folder) = folder {
            std::fs::create_dir_all(folder).map_err(|e| Failure::usage(format!("--save {}: {e}", folder.display())))?;
        }
        // Names from the server must not escape the directory.
        let stem: String =
            about.chars().map(|c| if c.is_alphanumeric() || c == '-' || c == '_' { c } else { '_' }).collect();
        Ok(ContentPrinter {
            folder,
            stem: stem.trim_matches('_').chars().rev().take(60).collect::<Vec<_>>().into_iter().rev().collect(),
            saved: 0,
            by_json: false,
        })
    }

    /// Only saves data, for a result that is printed as JSON: what is said about it goes to standard error.
    pub(crate) fn beside_json(self, by_json: bool) -> ContentPrinter<'a> {
        ContentPrinter { by_json, ..self }
    }

    pub(crate) fn show(&mut self, out: &mut Out, block: &ContentBlock) -> Result<(), Failure> {
        match block {
            ContentBlock::Text(text) if !self.by_json => shown_text(out, &text.text)?,
            ContentBlock::Image(image) => self.binary(out, "image", &image.data, Some(&image.mime_type))?,
            ContentBlock::Audio(audio) => self.binary(out, "audio", &audio.data, Some(&audio.mime_type))?,
            ContentBlock::Resource(embedded) => self.contents(out, &embedded.resource)?,
            _ if self.by_json => {}
            ContentBlock::ResourceLink(link) => {
                let more = link.mime_type.as_deref().map_or(String::new(), |m| format!(", {m}"));
                out.line(format!("-> {}  ({}{more})", link.uri, link.name))?;
            }
            // An unknown kind is shown as JSON.
            other => out.text(&serde_json::to_string(other).unwrap_or_default())?,
        }
        Ok(())
    }

    /// Shows a resource's contents.
    pub(crate) fn contents(&mut self, out: &mut Out, contents: &ResourceContents) -> Result<(), Failure> {
        match contents {
            ResourceContents::Text(_) if self.by_json => {}
            ResourceContents::Text(text) => out.text(&text.text)?,
            ResourceContents::Blob(blob) => self.binary(out, "data", &blob.blob, blob.mime_type.as_deref())?,
        }
        Ok(())
    }

    fn binary(&mut self, out: &mut Out, what: &str, base64: &str, mime: Option<&str>) -> Result<(), Failure> {
        let kind = mime.map_or(String::new(), |mime| format!(" {mime}"));
        let Some(folder) = self.folder else {
            out.line(format!("[{what}{kind}, {} bytes; use --save DIR to save it]", length(base64)))?;
            return Ok(());
        };
        let bytes = STANDARD.decode(base64.trim()).map_err(|e| {
            Failure::new(format!("the server's {what}{kind} is not valid base64: {e}"))
                .exit(crate::exit::Exit::Protocol)
        })?;
        let path = self.free(folder, ending(mime.unwrap_or_default()));
        std::fs::write(&path, bytes).map_err(|e| Failure::new(format!("{}: {e}", path.display())))?;
        let said = format!("[{what}{kind}, saved as {}]", path.display());
        match self.by_json {
            true => note(said),
            false => out.line(said)?,
        }
        Ok(())
    }

    fn free(&mut self, folder: &Path, ending: &str) -> PathBuf {
        loop {
            self.saved += 1;
            let path = folder.join(format!("{}-{}.{ending}", self.stem, self.saved));
            if !path.exists() {
                return path;
            }
        }
    }
}

/// Shows text; on a terminal, a JSON object or array on one line is indented.
fn shown_text(out: &mut Out, text: &str) -> std::io::Result<()> {
    let one_line = text.trim();
    let json = out.is_terminal() && one_line.starts_with(['{', '[']) && !one_line.contains('\n');
    match json.then(|| exact::read(one_line)).and_then(Result::ok) {
        Some(value) => out.json(&value),
        None => out.text(text),
    }
}

/// Returns the file extension of a media type.
fn ending(mime: &str) -> &'static str {
    const KNOWN: [(&str, &str); 16] = [
        ("image/png", "png"),
        ("image/jpeg", "jpg"),
        ("image/gif", "gif"),
        ("image/webp", "webp"),
        ("image/svg+xml", "svg"),
        ("image/bmp", "bmp"),
        ("audio/wav", "wav"),
        ("audio/x-wav", "wav"),
        ("audio/mpeg", "mp3"),
        ("audio/ogg", "ogg"),
        ("audio/flac", "flac"),
        ("application/pdf", "pdf"),
        ("application/json", "json"),
        ("application/gzip", "gz"),
        ("application/zip", "zip"),
        ("text/plain", "txt"),
    ];
    let mime = mime.split(';').next().unwrap_or_default().trim();
    KNOWN.iter().find(|(name, _)| mime.eq_ignore_ascii_case(name)).map_or("bin", |(_, ending)| ending)
}

/// Decodes a blob.
pub(crate) fn bytes(base64: &str) -> Option<Vec<u8>> {
    STANDARD.decode(base64.trim()).ok()
}

/// Returns the decoded length without decoding; approximate for invalid base64.
fn length(base64: &str) -> usize {
    let padding = base64.bytes().rev().take_while(|b| *b == b'=').count().min(2);
    (base64.len() / 4 * 3).saturating_sub(padding)
}

#[cfg(test)]
mod tests {
    #[test]
    fn lengths_are_those_of_the_bytes_and_nonsense_has_one_too() {
        for (base64, wanted) in [("", 0), ("=", 0), ("==", 0), ("YQ==", 1), ("YWI=", 2), ("YWJj", 3), ("====", 1)] {
            assert_eq!(super::length(base64), wanted, "{base64}");
        }
    }
}
