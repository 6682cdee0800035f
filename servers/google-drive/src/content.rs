//! Reading files, as tool results, as resources and into the download directory.

use crate::Own;
use crate::files::{File, is_id};
use http::StatusCode;
use linchpin::types::content::ResourceContents;
use linchpin::{Cx, Error};
use linchpin_kit::{ToolError, io_text, new_file};
use linchpin_rest::{Answer, Args, Reply, Rest, file_text};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// Bytes that are asked for at once while a file is downloaded.
const CHUNK: u64 = 8 << 20;

/// Longest download, in bytes.
const DOWNLOAD_MAX: u64 = 1 << 30;

/// A part of a file as text.
pub(crate) async fn read(rest: &Rest, args: Args) -> Result<Answer, ToolError> {
    let file = File::find(rest, args.text("file_id"), args.get("format").and_then(Value::as_str)).await?;
    if !file.is_text() {
        let error = ToolError::invalid("It is not text").detail(format!("{}: {}", file.name, file.media_type));
        return Err(error.hint("Read the resource gdrive:///ID, use gdrive_download, or another format."));
    }
    let number = |name: &str| u64::try_from(args.int(name).unwrap_or_default()).unwrap_or_default();
    let (offset, max) = (number("offset"), number("max").max(4));
    // What is exported comes whole, and so does what is short.
    let part = if file.export.is_none() { Some((offset, offset.saturating_add(max + 3))) } else { None };
    let (reply, begins) = bytes(rest, &file, part).await?;
    let total = if file.export.is_some() || begins == 0 && reply.status == StatusCode::OK {
        reply.body.len() as u64
    } else {
        file.size.unwrap_or(begins + reply.body.len() as u64)
    };
    if offset > 0 && offset >= total {
        return Err(ToolError::invalid(format!("Invalid argument offset: the file has {total} bytes")));
    }
    let (part, end) = window(&reply.body, begins, offset, max);
    let (text, left_out) = text_of(rest, part);
    let mut told = json!({ "id": file.id, "name": file.name, "mimeType": file.media_type, "text": text });
    if left_out > 0 {
        told["left_out"] = json!(format!("{left_out} control or invisible characters"));
    }
    if end < total {
        told["next_offset"] = json!(end);
        told["total"] = json!(total);
    }
    Ok(told.into())
}

/// The content, or these bytes of it; with where it begins.
async fn bytes(rest: &Rest, file: &File, part: Option<(u64, u64)>) -> Result<(Reply, u64), ToolError> {
    let ask = match part.filter(|_| file.size != Some(0)) {
        Some((from, to)) => file.ask().header("range", format!("bytes={from}-{}", to - 1)),
        None => file.ask(),
    };
    if part.is_none() {
        file.check_size(rest)?;
    }
    let reply = rest.send(ask).await?;
    let begins = if reply.status == StatusCode::PARTIAL_CONTENT { part.map_or(0, |(from, _)| from) } else { 0 };
    Ok((reply, begins))
}

/// The text, and how many characters that cannot be seen were left out. What is not text is shown as far as it is one.
fn text_of(rest: &Rest, bytes: &[u8]) -> (String, usize) {
    let lossy = |bytes: Vec<u8>| file_text(String::from_utf8_lossy(&bytes).replace('\0', "").into_bytes(), None);
    let key = rest.config().key.as_ref();
    file_text(bytes.to_vec(), key).or_else(lossy).unwrap_or_default()
}

/// At most `max` bytes from `offset` on, whole characters and line breaks, and where they end. `body` begins at `begins`.
fn window(body: &[u8], begins: u64, offset: u64, max: u64) -> (&[u8], u64) {
    let index = |at: u64| usize::try_from(at.saturating_sub(begins)).unwrap_or(usize::MAX).min(body.len());
    let inside = |at: usize| body.get(at).is_some_and(|byte| byte & 0xc0 == 0x80);
    let (first, last) = (index(offset), index(offset.saturating_add(max)));
    let (mut from, mut to) = (first, last);
    // A character has at most four bytes; where there are more like them, it is not text.
    for _ in 0..3 {
        from += usize::from(from < to && inside(from));
        to -= usize::from(from < to && inside(to));
    }
    to -= usize::from(to > from + 1 && body[to - 1] == b'\r');
    if from >= to {
        (from, to) = (first, last.max(first));
    }
    (&body[from..to], begins + to as u64)
}

/// What a URI of a resource holds.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct At {
    id: String,
}

/// A file as a resource.
pub(crate) async fn resource(rest: &Rest, cx: &Cx, at: At) -> Result<ResourceContents, Error> {
    if !is_id(&at.id) {
        return Err(Error::not_found());
    }
    contents(rest, &at.id, cx.uri().unwrap_or_default()).await.map_err(ToolError::for_resource)
}

async fn contents(rest: &Rest, id: &str, uri: &str) -> Result<ResourceContents, ToolError> {
    let mut file = File::find(rest, id, None).await?;
    if file.export == Some("csv") && rest.state::<Own>().is_some_and(|own| own.all_sheets) {
        file = File::find(rest, id, Some("xlsx")).await?;
    }
    let (reply, _) = bytes(rest, &file, None).await?;
    let is_text = file.media_type.starts_with("text/") || file.media_type == "application/json";
    let contents = match is_text {
        true => ResourceContents::text(uri, text_of(rest, &reply.body).0),
        false => ResourceContents::blob(uri, &reply.body),
    };
    Ok(contents.with_mime_type(file.media_type))
}

/// Saves a file in the download directory.
pub(crate) async fn download(rest: &Rest, args: Args) -> Result<Answer, ToolError> {
    let own = rest.state::<Own>().and_then(|own| own.download_dir.as_deref());
    let directory = own.ok_or_else(|| ToolError::denied("Downloading needs --download-dir"))?;
    let file = File::find(rest, args.text("file_id"), args.get("format").and_then(Value::as_str)).await?;
    let given = args.get("name").and_then(Value::as_str).map(str::to_owned);
    let name = given.unwrap_or_else(|| match file.export {
        Some("markdown") => format!("{}.md", file.name),
        Some("text") => format!("{}.txt", file.name),
        Some(format) => format!("{}.{format}", file.name),
        None => file.name.clone(),
    });
    if file.size.is_some_and(|size| size > DOWNLOAD_MAX) {
        return Err(ToolError::invalid(format!("The file has more than {DOWNLOAD_MAX} bytes")));
    }
    let chunk = CHUNK.min(rest.config().body_bytes_max as u64);
    let long = file.export.is_none() && file.size.is_some_and(|size| size > chunk);
    let (mut part, _) = bytes(rest, &file, long.then_some((0, chunk))).await?;
    let (path, mut saved) = new_file(directory, &name).map_err(|error| cannot_write(directory, &error))?;
    let mut unfinished = Unfinished(Some(path.clone()));
    let mut written = 0;
    loop {
        saved.write_all(&part.body).map_err(|error| cannot_write(&path, &error))?;
        written += part.body.len() as u64;
        let is_last = part.status != StatusCode::PARTIAL_CONTENT || file.size.is_none_or(|size| written >= size);
        if is_last || part.body.is_empty() || written > DOWNLOAD_MAX {
            break;
        }
        let (next, begins) = bytes(rest, &file, Some((written, written + chunk))).await?;
        if begins != written {
            return Err(ToolError::new("Google Drive sent a different part than the one requested"));
        }
        part = next;
    }
    if let Some(size) = file.size.filter(|size| long && written < *size) {
        return Err(ToolError::new(format!("Google Drive sent {written} of {size} bytes; try again")));
    }
    unfinished.0 = None;
    Ok(json!({ "path": path.display().to_string(), "bytes": written, "mimeType": file.media_type }).into())
}

/// A file that is removed unless it is finished, also where the call is cancelled.
struct Unfinished(Option<PathBuf>);

impl Drop for Unfinished {
    fn drop(&mut self) {
        if let Some(path) = &self.0 {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// The download directory, as it is without symlinks.
pub(crate) fn directory(path: &Path) -> Result<PathBuf, ToolError> {
    let real = path.canonicalize().map_err(|e| cannot_write(path, &e))?;
    if real.is_dir() { Ok(real) } else { Err(ToolError::new(format!("{} is not a directory", path.display()))) }
}

fn cannot_write(path: &Path, error: &std::io::Error) -> ToolError {
    ToolError::new(format!("Cannot write to {}: {}", path.display(), io_text(error)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_read_to_its_end_in_parts_of_whole_characters() {
        let whole = "aä€😀\r\n".repeat(50);
        for max in 4..40 {
            let (mut text, mut at) = (String::new(), 0);
            while at < whole.len() as u64 {
                let begins = at;
                let body = &whole.as_bytes()[begins as usize..whole.len().min((at + max + 3) as usize)];
                let (part, end) = window(body, begins, at, max);
                assert!(end > at && part.len() as u64 <= max && !part.ends_with(b"\r"));
                (text, at) = (text + std::str::from_utf8(part).unwrap(), end);
            }
            assert_eq!(text, whole);
        }
        assert_eq!(window(&[0xbf; 9], 0, 2, 4), (&[0xbf; 4][..], 6), "what is not text has an end too");
        assert_eq!(window(b"abc", 0, 9, 4), (&[][..], 3));
    }
}
