//! `fs_search_content`: lines that match a pattern.

use linchpin_kit::{ToolError, ToolSpec, unknown_cursor};
use schemars::JsonSchema;
use serde::Deserialize;
use std::ffi::OsStr;
use std::os::fd::BorrowedFd;
use std::path::PathBuf;

use crate::answer::Answer;
use crate::glob::Patterns;
use crate::inner::Inner;
use crate::os::{self, Kind};
use crate::page::{ListMore, Page, after, cursor_after};
use crate::resolve::Last;
use crate::scan::{Flow, Scan};
use crate::text;

pub(crate) const SEARCH_CONTENT: ToolSpec = ToolSpec::reads(
    "fs_search_content",
    "Search Inside Files",
    "search",
    "Finds lines that match a regular expression or plain text, in a file or in all text files below a directory.",
)
.extra();

/// Maximum characters of a matching line in the result.
const LINE_MAX: usize = 500;

/// Arguments of `fs_search_content`.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
pub struct FsSearchContent {
    /// The file or directory to search.
    pub path: String,
    /// A regular expression, matched line by line.
    pub pattern: String,
    /// The pattern is plain text
    #[serde(default)]
    pub literal: bool,
    /// Ignore case
    #[serde(default)]
    pub ignore_case: bool,
    /// Only files that match this glob
    #[serde(default)]
    pub glob: Option<String>,
    /// Globs to exclude
    #[serde(default)]
    pub exclude: Vec<String>,
    /// Exclude what .gitignore does
    #[serde(default)]
    pub respect_gitignore: bool,
    /// Lines around each match, at most 20
    #[serde(default)]
    pub context: Option<u64>,
    /// Default 200
    #[serde(default)]
    pub max_results: Option<u64>,
    /// From next_cursor
    #[serde(default)]
    pub cursor: Option<String>,
}

impl Inner {
    pub(crate) fn search_content(&self, args: &FsSearchContent) -> Result<Answer<ListMore>, ToolError> {
        let place = self.resolve(&args.path, Last::Follow)?;
        let kind = place.existing("open")?.kind;
        let pattern = if args.literal { regex::escape(&args.pattern) } else { args.pattern.clone() };
        let regex =
            regex::RegexBuilder::new(&pattern).case_insensitive(args.ignore_case).size_limit(4 << 20).build().map_err(
                |error| {
                    ToolError::new(format!("Invalid pattern: {error}"))
                        .hint("Use Rust regex syntax (no look-around, no back-references), or literal=true.")
                },
            )?;
        let context = usize::try_from(args.context.unwrap_or(0).min(20)).unwrap_or(0);
        let limit = usize::try_from(args.max_results.unwrap_or(200).max(1)).unwrap_or(usize::MAX);
        let page = Page { entries_left: limit.min(self.entries_max()), ..Page::new(self) };
        let mut grep = Grep { regex, context, page, stopped_at: 0, skipped: 0 };
        let (resume_line, after) = after_line(args.cursor.as_deref(), kind)?;
        if kind != Kind::Dir {
            let more = match self.grep_file(&mut grep, place.dir(), place.name(), &place.shown(), resume_line) {
                Grepped::Stopped => ListMore::cut(Some(format!("{}|", grep.stopped_at)), 0),
                _ => ListMore { skipped: grep.skipped, ..ListMore::default() },
            };
            return Ok(more.answer(grep.text()));
        }
        let only = args.glob.as_deref().map(|glob| Patterns::of([glob])).transpose()?;
        let excludes = Patterns::of(args.exclude.iter().map(String::as_str))?;
        let base = place.path();
        let mut stopped = None;
        let mut scan = Scan::new(self, &place, after, args.respect_gitignore);
        scan.run(&place, &mut |entry| {
            if excludes.matches(entry.rest) {
                return Flow::Over;
            }
            let line = if entry.seen { resume_line } else { 0 };
            let wanted = entry.kind == Kind::File
                && (!entry.seen || line > 0)
                && only.as_ref().is_none_or(|only| only.matches(entry.rest));
            if wanted {
                let shown = base.join(entry.rest).to_string_lossy().into_owned();
                if let Grepped::Stopped = self.grep_file(&mut grep, entry.at, entry.name, &shown, line) {
                    // Nothing of this file was shown yet: continue after the previous entry.
                    stopped =
                        (grep.stopped_at > 0).then(|| format!("{}|{}", grep.stopped_at, cursor_after(entry.rest)));
                    return Flow::Stop;
                }
            }
            Flow::Into
        })?;
        let more = scan.more();
        // Continue in the middle of a file if the search stopped there, otherwise after the last entry.
        let next = stopped.or_else(|| more.paging.next_cursor.map(|path| format!("0|{path}")));
        let more = ListMore::cut(next, more.skipped + grep.skipped);
        Ok(more.answer(grep.text()))
    }

    /// Searches one file, starting after line `from`.
    fn grep_file(&self, grep: &mut Grep, at: BorrowedFd<'_>, name: &OsStr, shown: &str, from: usize) -> Grepped {
        use std::io::Read;
        let cap = self.config.max_read_bytes;
        let mut bytes = Vec::new();
        let read = os::open_file(at, name).ok().filter(|(_, meta)| meta.size <= cap);
        if read.is_none_or(|(file, _)| file.take(cap).read_to_end(&mut bytes).is_err()) {
            grep.skipped += 1;
            return Grepped::Done;
        }
        let text = text::decode_all(bytes, self.config.compat).text;
        // A file with a NUL is binary and is skipped.
        if text.contains('\0') { Grepped::Done } else { grep.search(shown, &text, from) }
    }
}

/// The position of a content search: a file and a line. Without a path if a single file is searched.
fn after_line(cursor: Option<&str>, kind: Kind) -> Result<(usize, Option<PathBuf>), ToolError> {
    let Some(cursor) = cursor.filter(|cursor| !cursor.is_empty()) else { return Ok((0, None)) };
    let unknown = || unknown_cursor(cursor);
    let (line, path) = cursor.split_once('|').ok_or_else(unknown)?;
    if path.is_empty() == (kind == Kind::Dir) {
        return Err(unknown());
    }
    Ok((line.parse().map_err(|_| unknown())?, after(Some(path)).map_err(|_| unknown())?))
}

/// A content search in progress.
struct Grep {
    regex: regex::Regex,
    context: usize,
    page: Page,
    /// The last processed line of the file in which the search stopped.
    stopped_at: usize,
    skipped: usize,
}

enum Grepped {
    Done,
    Stopped,
}

impl Grep {
    fn search(&mut self, shown: &str, text: &str, from: usize) -> Grepped {
        let lines: Vec<&str> = text.lines().collect();
        let mut printed = from;
        self.stopped_at = from;
        for (index, line) in lines.iter().enumerate().skip(from) {
            let Some(found) = self.regex.find(line) else {
                continue;
            };
            let column = line[..found.start()].chars().count() + 1;
            let mut block = String::new();
            if self.context > 0 && !self.page.text.is_empty() && index.saturating_sub(self.context) > printed {
                block.push_str("--\n");
            }
            let first = index.saturating_sub(self.context).max(printed);
            for (before, line) in lines.iter().enumerate().take(index).skip(first) {
                block.push_str(&format!("{shown}-{}- {}\n", before + 1, clip(line, 0)));
            }
            block.push_str(&format!("{shown}:{}:{column}: {}", index + 1, clip(line, found.start())));
            let mut next = index + 1;
            // The following lines are context of this match, until one matches itself.
            while next < lines.len() && next <= index + self.context && !self.regex.is_match(lines[next]) {
                block.push_str(&format!("\n{shown}-{}- {}", next + 1, clip(lines[next], 0)));
                next += 1;
            }
            if !self.page.push(&block) {
                return Grepped::Stopped;
            }
            printed = next;
            self.stopped_at = index + 1;
        }
        Grepped::Done
    }

    fn text(self) -> String {
        if self.page.text.is_empty() { "No matches found".to_owned() } else { self.page.text }
    }
}

/// The part of a long line around byte `at`.
fn clip(line: &str, at: usize) -> String {
    let count = line.chars().count();
    if count <= LINE_MAX {
        return line.to_owned();
    }
    let start = line[..at].chars().count().saturating_sub(LINE_MAX / 4).min(count - LINE_MAX);
    let part: String = line.chars().skip(start).take(LINE_MAX).collect();
    let (front, back) = (if start > 0 { "…" } else { "" }, if start + LINE_MAX < count { "…" } else { "" });
    format!("{front}{part}{back}")
}
