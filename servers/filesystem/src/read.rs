//! Tools that read one file: text, ranges of lines, media, metadata.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::dir::{self, Kind, Meta, OpenError};
use crate::resolve::{self, Last, Place};
use crate::text::{self, Decoded};
use crate::{Answer, Inner, NoMore, io_fault};
use linchpin_kit::{ErrorKind, ToolError, root_path};

/// Default line limit of `fs_read_range`.
const RANGE_LINES: u64 = 2_000;

/// Arguments of `read_text_file` and `read_file`.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
pub struct ReadFile {
    /// The file to read.
    pub path: String,
    /// Only the last N lines
    #[serde(default)]
    pub tail: Option<u64>,
    /// Only the first N lines
    #[serde(default)]
    pub head: Option<u64>,
}

/// Arguments of `read_media_file`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub struct ReadMediaFile {
    /// The file to read.
    pub path: String,
}

/// Arguments of `read_multiple_files`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub struct ReadMultipleFiles {
    /// The files to read.
    #[schemars(length(min = 1))]
    pub paths: Vec<String>,
}

/// Arguments of `fs_read_range`.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
pub struct FsReadRange {
    /// The file to read.
    pub path: String,
    /// The first line, from 1
    #[serde(default)]
    pub offset: Option<u64>,
    /// Default 2000
    #[serde(default)]
    pub limit: Option<u64>,
    /// Prefix each line with its number and a tab
    #[serde(default)]
    pub line_numbers: bool,
}

/// Arguments of `get_file_info`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub struct GetFileInfo {
    /// The file or directory.
    pub path: String,
}

/// Arguments of `list_allowed_directories`: none.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
pub struct ListAllowedDirectories {}

/// Additional structured content of a text read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ReadMore {
    /// The encoding of the file, if it is not plain UTF-8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encoding: Option<String>,
    /// Whether the text was truncated at the read limit.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
}

/// Additional structured content of `fs_read_range`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RangeMore {
    /// The first line returned, from 1.
    pub start_line: u64,
    /// The last line returned; less than `start_line` if there is none.
    pub end_line: u64,
    /// The number of lines of the file, if its end was reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_lines: Option<u64>,
    /// Whether there are more lines.
    pub truncated: bool,
    /// The `offset` to continue at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_offset: Option<u64>,
    /// The encoding of the file, if it is not plain UTF-8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encoding: Option<String>,
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
    pub(crate) fn read_text(&self, args: &ReadFile) -> Result<Answer<ReadMore>, ToolError> {
        let (head, tail) = (args.head.filter(|n| *n > 0), args.tail.filter(|n| *n > 0));
        if head.is_some() && tail.is_some() {
            return Err(ToolError::new("Cannot specify both head and tail parameters simultaneously"));
        }
        let place = self.resolve(&args.path, Last::Follow)?;
        let (cap, lossy) = (self.config.max_read_bytes, self.config.compat);
        let window = |result: std::io::Result<Decoded>| result.map_err(|error| read_failed(&error, &place));
        let decoded = match (head, tail) {
            (Some(lines), _) => {
                let (file, _) = open(&place)?;
                window(text::head(&file, lines, cap, lossy))?
            }
            (_, Some(lines)) => {
                let (file, meta) = open(&place)?;
                let mut decoded = window(text::tail(&file, meta.size, lines, cap, lossy))?;
                if lossy {
                    decoded.text = text::to_lf(&decoded.text);
                }
                decoded
            }
            _ => {
                let advice = "read a part of it with head, tail or fs_read_range";
                text::decode_all(read_whole(&place, cap, advice)?.2, lossy)
            }
        };
        let more = ReadMore { encoding: decoded.encoding, truncated: decoded.truncated };
        let mut answer = Answer::new(decoded.text, more);
        if answer.more.truncated {
            answer.notice =
                Some(format!("[Truncated at {cap} bytes: the requested lines are longer. Request fewer lines.]"));
        }
        Ok(answer)
    }

    pub(crate) fn read_multiple(&self, args: &ReadMultipleFiles) -> Result<Answer<NoMore>, ToolError> {
        if args.paths.is_empty() {
            return Err(ToolError::new("paths is empty").hint("Pass at least one file."));
        }
        // The limit applies to all files together, because they are returned in one result.
        let mut left = self.config.max_read_bytes;
        let parts = args.paths.iter().map(|path| {
            let read = self.resolve(path, Last::Follow).and_then(|place| {
                let bytes = read_whole(&place, left, "read it alone, or a part of it with fs_read_range")?.2;
                left = left.saturating_sub(bytes.len() as u64);
                Ok(text::decode_all(bytes, self.config.compat).text)
            });
            match read {
                Ok(text) => format!("{path}:\n{text}\n"),
                Err(error) => format!("{path}: Error - {}", error.message()),
            }
        });
        Ok(Answer::new(parts.collect::<Vec<_>>().join("\n---\n"), NoMore {}))
    }

    pub(crate) fn read_media(&self, args: &ReadMediaFile) -> Result<MediaAnswer, ToolError> {
        let place = self.resolve(&args.path, Last::Follow)?;
        let (_, _, bytes) = read_whole(&place, self.config.max_read_bytes, "raise --max-read-bytes to read it whole")?;
        let data = STANDARD.encode(bytes);
        let mime_type = media_type(&place.path()).unwrap_or("application/octet-stream").to_owned();
        let block = match mime_type.split('/').next() {
            Some("image") => MediaBlock::Image { data, mime_type },
            Some("audio") => MediaBlock::Audio { data, mime_type },
            _ => {
                let uri = resolve::path_uri(&place.path());
                MediaBlock::Resource { resource: MediaResource { uri, mime_type, blob: data } }
            }
        };
        Ok(MediaAnswer { content: vec![block] })
    }

    pub(crate) fn read_range(&self, args: &FsReadRange) -> Result<Answer<RangeMore>, ToolError> {
        let place = self.resolve(&args.path, Last::Follow)?;
        let start_line = args.offset.unwrap_or(1).max(1);
        let limit = args.limit.unwrap_or(RANGE_LINES).max(1);
        let (file, _) = open(&place)?;
        let mut window = Window::new(start_line, limit, self.config.max_result_bytes, args.line_numbers);
        let mut sample = vec![0; 8192];
        let count = std::os::unix::fs::FileExt::read_at(&file, &mut sample, 0).map_err(|e| read_failed(&e, &place))?;
        let coding = text::Coding::of(&sample[..count]);
        let mut encoding = coding.name();
        if coding.name().is_some() && !self.config.compat {
            // Line feeds are not single bytes in every encoding, so such a file is decoded as a whole.
            let advice = "convert it to UTF-8 first, or read its start with head";
            let decoded = text::decode_all(read_whole(&place, self.config.max_read_bytes, advice)?.2, false);
            encoding = decoded.encoding;
            window.take(&mut decoded.text.as_bytes()).map_err(|error| read_failed(&error, &place))?;
        } else {
            window
                .take(&mut BufReader::with_capacity(256 * 1024, file))
                .map_err(|error| read_failed(&error, &place))?;
        }
        let mut answer = Answer::new(
            window.text,
            RangeMore {
                start_line,
                end_line: start_line - 1 + window.count,
                total_lines: window.ended.then_some(window.line),
                truncated: !window.ended,
                next_offset: (!window.ended).then_some(start_line + window.count),
                encoding,
            },
        );
        if let Some(next) = answer.more.next_offset {
            answer.notice = Some(format!("[More lines follow; continue with offset={next}.]"));
        }
        Ok(answer)
    }

    pub(crate) fn file_info(&self, args: &GetFileInfo) -> Result<Answer<NoMore>, ToolError> {
        let place = self.resolve(&args.path, Last::Follow)?;
        let meta = place.existing("stat")?;
        let created = dir::created(place.dir(), place.name()).unwrap_or(meta.changed);
        let text = format!(
            "size: {}\ncreated: {}\nmodified: {}\naccessed: {}\nisDirectory: {}\nisFile: {}\npermissions: {:03o}",
            meta.size,
            js_date(created),
            js_date(meta.modified),
            js_date(meta.accessed),
            meta.kind == Kind::Dir,
            meta.kind == Kind::File,
            meta.mode & 0o777,
        );
        Ok(Answer::new(text, NoMore {}))
    }

    pub(crate) fn allowed_directories(&self) -> Answer<NoMore> {
        let roots = &self.roots;
        if roots.is_empty() && !self.ceiling.is_empty() {
            let text = "Allowed directories:\n(none: no root of this client is in an allowed directory of the server)";
            return Answer::new(text, NoMore {});
        }
        if roots.is_empty() {
            let text = "Allowed directories:\n(none: the operator must name at least one, for example \
                        mcp-server-filesystem DIR)";
            return Answer::new(text, NoMore {});
        }
        Answer::new(format!("Allowed directories:\n{}", roots.spellings().join("\n")), NoMore {})
    }

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

/// Opens a file for reading, with the error messages of the published server.
pub(crate) fn open(place: &Place) -> Result<(File, Meta), ToolError> {
    place.existing("open")?;
    dir::open_file(place.dir(), place.name()).map_err(|error| open_failed(&error, place, "read"))
}

/// The error for a file that could not be opened for `call`.
pub(crate) fn open_failed(error: &OpenError, place: &Place, call: &str) -> ToolError {
    use rustix::io::Errno;
    let shown = place.shown();
    match error {
        OpenError::Special => ToolError::new(format!("Not a regular file: {shown}"))
            .hint("It is a FIFO, socket or device; only regular files and directories can be used."),
        OpenError::System(Errno::ISDIR) => ToolError::new(format!("EISDIR: illegal operation on a directory, {call}"))
            .hint("Use list_directory for directories."),
        OpenError::System(Errno::LOOP) => {
            ToolError::new(format!("The path changed while it was being opened: {shown}"))
                .hint("Another program is replacing it; try again later.")
        }
        OpenError::System(error) => io_fault(*error, "open", &shown),
    }
}

fn read_failed(error: &std::io::Error, place: &Place) -> ToolError {
    io_fault(rustix::io::Errno::from_io_error(error).unwrap_or(rustix::io::Errno::IO), "read", &place.shown())
}

/// Reads a whole file of at most `cap` bytes; `advice` is the hint for a larger one.
pub(crate) fn read_whole(place: &Place, cap: u64, advice: &str) -> Result<(File, Meta, Vec<u8>), ToolError> {
    let (file, meta) = open(place)?;
    let too_large = |size: u64| {
        ToolError::new(format!("File too large: {} has {size} bytes, the limit is {cap}", place.shown()))
            .hint(format!("Instead, {advice}."))
    };
    if meta.size > cap {
        return Err(too_large(meta.size));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(meta.size).unwrap_or(0) + 1);
    // The file may grow while it is read, or report no size.
    (&file).take(cap.saturating_add(1)).read_to_end(&mut bytes).map_err(|error| read_failed(&error, place))?;
    if bytes.len() as u64 > cap {
        return Err(too_large(bytes.len() as u64));
    }
    Ok((file, meta, bytes))
}

/// A range of lines under construction.
struct Window {
    first: u64,
    limit: u64,
    bytes_max: usize,
    numbered: bool,
    text: String,
    /// Lines read, from the start of the file.
    line: u64,
    /// Lines taken.
    count: u64,
    ended: bool,
}

impl Window {
    fn new(first: u64, limit: u64, bytes_max: usize, numbered: bool) -> Self {
        Self { first, limit, bytes_max, numbered, text: String::new(), line: 0, count: 0, ended: false }
    }

    /// Fills the range from the start of a file; stops at its end.
    fn take(&mut self, from: &mut dyn BufRead) -> std::io::Result<()> {
        loop {
            let wanted = self.line + 1 >= self.first;
            if self.count >= self.limit {
                self.ended = from.fill_buf()?.is_empty();
                return Ok(());
            }
            let (kept, length) = read_line(from, if wanted { self.bytes_max } else { 0 })?;
            if length == 0 {
                self.ended = true;
                return Ok(());
            }
            if wanted {
                let mut line = text::decode_all(kept, false).text;
                if length > self.bytes_max {
                    line.push_str(&format!("… [line truncated: {length} bytes]\n"));
                }
                if self.numbered {
                    line.insert_str(0, &format!("{:>6}\t", self.line + 1));
                }
                if self.count > 0 && self.text.len() + line.len() > self.bytes_max {
                    return Ok(());
                }
                self.text.push_str(&line);
                self.count += 1;
            }
            self.line += 1;
        }
    }
}

/// Reads through the next line feed; returns at most `keep` bytes of the line and its total length.
fn read_line(from: &mut dyn BufRead, keep: usize) -> std::io::Result<(Vec<u8>, usize)> {
    let (mut kept, mut length) = (Vec::new(), 0);
    loop {
        let buffer = match from.fill_buf() {
            Ok(buffer) => buffer,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        if buffer.is_empty() {
            return Ok((kept, length));
        }
        let end = memchr::memchr(b'\n', buffer).map(|at| at + 1);
        let part = &buffer[..end.unwrap_or(buffer.len())];
        kept.extend_from_slice(&part[..part.len().min(keep - kept.len())]);
        let used = part.len();
        length += used;
        from.consume(used);
        if end.is_some() {
            return Ok((kept, length));
        }
    }
}

/// The media type of extensions returned as image or audio.
fn media_type(path: &Path) -> Option<&'static str> {
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

/// A time as JavaScript prints it in UTC, `Sat Nov 21 2026 00:10:55 GMT+0000 (Coordinated Universal Time)`.
fn js_date(seconds: i64) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    // Years start in March, so that the leap day is the last day.
    let shifted = days + 719_468;
    let (era, of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = (shifted_month + 2) % 12;
    let year = year_of_era + era * 400 + i64::from(month < 2);
    let index = |value: i64| usize::try_from(value).unwrap_or(0);
    format!(
        "{} {} {day:02} {year:04} {:02}:{:02}:{:02} GMT+0000 (Coordinated Universal Time)",
        DAYS[index(days.rem_euclid(7))],
        MONTHS[index(month)],
        second / 3_600,
        second / 60 % 60,
        second % 60,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_read_as_javascript_prints_them() {
        for (seconds, text) in [
            (0, "Thu Jan 01 1970 00:00:00"),
            (951_782_399, "Mon Feb 28 2000 23:59:59"),
            (951_782_400, "Tue Feb 29 2000 00:00:00"),
            (1_795_219_855, "Sat Nov 21 2026 00:10:55"),
            (-1, "Wed Dec 31 1969 23:59:59"),
            (4_107_542_400, "Mon Mar 01 2100 00:00:00"),
        ] {
            assert_eq!(js_date(seconds), format!("{text} GMT+0000 (Coordinated Universal Time)"));
        }
    }
}
