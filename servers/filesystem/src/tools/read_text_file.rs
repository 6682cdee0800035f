//! `read_text_file`, and `read_file`, its deprecated name.

use linchpin_kit::{ToolError, ToolSpec};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::answer::Answer;
use crate::inner::Inner;
use crate::open::{open, read_failed, read_whole};
use crate::resolve::Last;
use crate::text::{self, Decoded};

pub(crate) const READ_TEXT_FILE: ToolSpec = ToolSpec::reads(
    "read_text_file",
    "Read Text File",
    "read",
    "Reads a text file, whole or only its first (head) or last (tail) lines. For other lines of a large file use fs_read_range.",
);

pub(crate) const READ_FILE: ToolSpec = ToolSpec::reads(
    "read_file",
    "Read File (Deprecated)",
    "read",
    "Reads a text file. Deprecated: use read_text_file.",
);

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
}
