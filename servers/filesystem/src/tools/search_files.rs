//! `search_files`: paths that match a glob.

use linchpin_kit::{ToolError, ToolSpec};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::answer::Answer;
use crate::glob::Patterns;
use crate::inner::Inner;
use crate::open::expect_dir;
use crate::os::Kind;
use crate::page::{ListMore, Page, after};
use crate::resolve::Last;
use crate::scan::{Flow, Scan};

pub(crate) const SEARCH_FILES: ToolSpec = ToolSpec::reads(
    "search_files",
    "Search Files",
    "search",
    "Finds files and directories by a glob, and returns full paths. To search file contents use fs_search_content.",
);

/// Arguments of `search_files`.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SearchFiles {
    /// The directory to search.
    pub path: String,
    /// `*.txt`: in the directory itself; `**/*.txt`: at any depth.
    pub pattern: String,
    /// Globs to exclude
    #[serde(default)]
    pub exclude_patterns: Vec<String>,
    /// Exclude what .gitignore does
    #[serde(default)]
    pub respect_gitignore: bool,
    /// From next_cursor
    #[serde(default)]
    pub cursor: Option<String>,
}

impl Inner {
    pub(crate) fn search_files(&self, args: &SearchFiles) -> Result<Answer<ListMore>, ToolError> {
        let cursor = args.cursor.as_deref();
        let gitignore = args.respect_gitignore;
        self.find(&args.path, &args.pattern, &args.exclude_patterns, gitignore, self.entries_max(), cursor)
    }

    pub(super) fn find(
        &self,
        path: &str,
        pattern: &str,
        excludes: &[String],
        gitignore: bool,
        limit: usize,
        cursor: Option<&str>,
    ) -> Result<Answer<ListMore>, ToolError> {
        let place = self.resolve(path, Last::Follow)?;
        expect_dir(&place)?;
        let pattern = Patterns::of([pattern])?;
        let excludes = Patterns::of(excludes.iter().map(String::as_str))?;
        let base = place.path();
        let mut page = Page { entries_left: limit, ..Page::new(self) };
        let mut scan = Scan::new(self, &place, after(cursor)?, gitignore);
        scan.run(&place, &mut |entry| {
            if excludes.matches(entry.rest) {
                return Flow::Over;
            }
            if !entry.seen && pattern.matches(entry.rest) {
                let path = base.join(entry.rest);
                // Links are listed only if they can be followed.
                let usable = entry.kind != Kind::Link
                    || path.to_str().is_some_and(|path| self.resolve(path, Last::Follow).is_ok());
                if usable && !page.push(&path.to_string_lossy()) {
                    return Flow::Stop;
                }
            }
            Flow::Into
        })?;
        let more = scan.more();
        let text =
            if page.text.is_empty() && !more.paging.truncated { "No matches found".to_owned() } else { page.text };
        Ok(more.answer(text))
    }
}
