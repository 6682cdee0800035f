//! The pages of listings and searches.

use std::path::{Component, Path, PathBuf};

use linchpin_kit::{Paging, ToolError, percent_decoded, unknown_cursor};
use schemars::JsonSchema;
use serde::Serialize;

use crate::answer::Answer;
use crate::inner::Inner;
use crate::paths::percent_encoded;

/// Additional structured content of a listing or search; empty if it is complete.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ListMore {
    /// Pagination.
    #[serde(flatten)]
    pub paging: Paging,
    /// Directories and files skipped: unreadable, too deep or too large.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub skipped: usize,
}

#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_zero(number: &usize) -> bool {
    *number == 0
}

impl ListMore {
    pub(crate) fn cut(next_cursor: Option<String>, skipped: usize) -> Self {
        Self { paging: next_cursor.map_or_else(Paging::whole, Paging::more), skipped }
    }

    pub(crate) fn answer(self, content: String) -> Answer<Self> {
        let notice = self.paging.notice();
        Answer { content, more: self, notice }
    }
}

/// The cursor to continue after this path.
pub(crate) fn cursor_after(path: &Path) -> String {
    percent_encoded(path, b"/-._~")
}

/// The path that a cursor continues after; `None` at the start. An invalid cursor is an error; the path of an entry
/// that no longer exists is valid.
pub(crate) fn after(cursor: Option<&str>) -> Result<Option<PathBuf>, ToolError> {
    let Some(cursor) = cursor.filter(|cursor| !cursor.is_empty()) else { return Ok(None) };
    let path: Option<PathBuf> = percent_decoded(cursor).map(|path| Path::new(&path).components().collect());
    let path = path.filter(|path| {
        path.components().all(|part| matches!(part, Component::Normal(_))) && cursor_after(path) == cursor
    });
    path.map(Some).ok_or_else(|| unknown_cursor(cursor))
}

/// The lines of a result, up to its limits.
pub(crate) struct Page {
    pub(crate) text: String,
    pub(crate) entries_left: usize,
    pub(crate) bytes_max: usize,
}

impl Page {
    pub(crate) fn new(inner: &Inner) -> Self {
        Self { text: String::new(), entries_left: inner.entries_max(), bytes_max: inner.config.max_result_bytes }
    }

    /// Adds a line; `false` if it does not fit. The first always does, so that every page makes progress.
    pub(crate) fn push(&mut self, line: &str) -> bool {
        let first = self.text.is_empty();
        if self.entries_left == 0 || (!first && self.text.len() + 1 + line.len() > self.bytes_max) {
            return false;
        }
        self.entries_left -= 1;
        if !first {
            self.text.push('\n');
        }
        self.text.push_str(line);
        true
    }
}

impl Inner {
    /// At least one, so that every page makes progress.
    pub(crate) fn entries_max(&self) -> usize {
        self.config.max_entries.max(1)
    }
}
