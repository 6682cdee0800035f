//! `fs_glob`: paths that match a glob, page by page.

use linchpin_kit::{ToolError, ToolSpec};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::answer::Answer;
use crate::inner::Inner;
use crate::page::ListMore;

pub(crate) const GLOB: ToolSpec =
    ToolSpec::reads("fs_glob", "Find Files by Glob", "search", "Finds files and directories by a glob, page by page.")
        .extra();

/// Arguments of `fs_glob`.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
pub struct FsGlob {
    /// The directory to search.
    pub path: String,
    /// `*.txt`: in the directory itself; `**/*.txt`: at any depth.
    pub pattern: String,
    /// Globs to exclude
    #[serde(default)]
    pub exclude: Vec<String>,
    /// Exclude what .gitignore does
    #[serde(default)]
    pub respect_gitignore: bool,
    /// Default 1000
    #[serde(default)]
    pub limit: Option<u64>,
    /// From next_cursor
    #[serde(default)]
    pub cursor: Option<String>,
}

impl Inner {
    pub(crate) fn glob(&self, args: &FsGlob) -> Result<Answer<ListMore>, ToolError> {
        let limit = usize::try_from(args.limit.unwrap_or(1_000).max(1)).unwrap_or(usize::MAX);
        let limit = limit.min(self.entries_max());
        self.find(&args.path, &args.pattern, &args.exclude, args.respect_gitignore, limit, args.cursor.as_deref())
    }
}
