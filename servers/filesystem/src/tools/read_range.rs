//! `fs_read_range`: a range of lines.

use linchpin_kit::{ToolError, ToolSpec};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::io::{BufRead, BufReader};

use crate::answer::Answer;
use crate::inner::Inner;
use crate::open::{open, read_failed, read_whole};
use crate::resolve::Last;
use crate::text;

pub(crate) const READ_RANGE: ToolSpec = ToolSpec::reads(
    "fs_read_range",
    "Read a Range of Lines",
    "read",
    "Reads a range of lines of a text file of any size, and returns where to continue.",
)
.extra();

/// Default line limit of `fs_read_range`.
const RANGE_LINES: u64 = 2_000;

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

impl Inner {
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
