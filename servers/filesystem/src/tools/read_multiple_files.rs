//! `read_multiple_files`: several text files at once.

use linchpin_kit::{ToolError, ToolSpec};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::answer::{Answer, NoMore};
use crate::inner::Inner;
use crate::open::read_whole;
use crate::resolve::Last;
use crate::text;

pub(crate) const READ_MULTIPLE_FILES: ToolSpec = ToolSpec::reads(
    "read_multiple_files",
    "Read Multiple Files",
    "read",
    "Reads several text files at once, each under its path. A file that cannot be read does not affect the others.",
);

/// Arguments of `read_multiple_files`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub struct ReadMultipleFiles {
    /// The files to read.
    #[schemars(length(min = 1))]
    pub paths: Vec<String>,
}

impl Inner {
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
}
