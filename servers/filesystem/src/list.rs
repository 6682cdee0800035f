//! Listings, trees and searches.
//!
//! All walks use handles, go in byte order of the names, do not follow symlinks, and can stop anywhere: the cursor is
//! the path of the last entry, byte for byte, so a continued walk needs no server state and survives changes in
//! between.

use std::cmp::Ordering;
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use rustix::io::Errno;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use unicode_normalization::UnicodeNormalization;

use crate::dir::{self, Flow, Kind, NAMES_MAX, Patterns, Scan};
use crate::resolve::{Last, Place, percent_encoded};
use crate::{Answer, Inner, io_fault, text};
use linchpin_kit::{Paging, ToolError, percent_decoded, unknown_cursor};

/// Maximum characters of a matching line in the result.
const LINE_MAX: usize = 500;

/// Arguments of `list_directory`.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
pub struct ListDirectory {
    /// The directory to list.
    pub path: String,
    /// From next_cursor
    #[serde(default)]
    pub cursor: Option<String>,
}

/// Arguments of `list_directory_with_sizes`.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ListDirectoryWithSizes {
    /// The directory to list.
    pub path: String,
    /// Default name
    #[serde(default)]
    pub sort_by: SortBy,
    /// From next_cursor
    #[serde(default)]
    pub cursor: Option<String>,
}

/// The sort order of a listing with sizes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum SortBy {
    /// By name, in collation order.
    #[default]
    #[schemars(description = "")]
    Name,
    /// Largest first.
    #[schemars(description = "")]
    Size,
}

/// Arguments of `directory_tree`.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DirectoryTree {
    /// The directory to show.
    pub path: String,
    /// Globs to exclude; one without `*` matches at any depth
    #[serde(default)]
    pub exclude_patterns: Vec<String>,
    /// Exclude what .gitignore does
    #[serde(default)]
    pub respect_gitignore: bool,
    /// From next_cursor
    #[serde(default)]
    pub cursor: Option<String>,
}

/// Arguments of `search_files`.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SearchFiles {
    /// The directory to search.
    pub path: String,
    /// `*.txt` matches only in the directory itself, `**/*.txt` at any depth.
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

/// Arguments of `fs_glob`.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
pub struct FsGlob {
    /// The directory to search.
    pub path: String,
    /// `*.txt` matches only in the directory itself, `**/*.txt` at any depth.
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

    fn answer(self, content: String) -> Answer<Self> {
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
fn after(cursor: Option<&str>) -> Result<Option<PathBuf>, ToolError> {
    let Some(cursor) = cursor.filter(|cursor| !cursor.is_empty()) else { return Ok(None) };
    let path: Option<PathBuf> = percent_decoded(cursor).map(|path| Path::new(&path).components().collect());
    let path = path.filter(|path| {
        path.components().all(|part| matches!(part, Component::Normal(_))) && cursor_after(path) == cursor
    });
    path.map(Some).ok_or_else(|| unknown_cursor(cursor))
}

impl Inner {
    /// At least one, so that every page makes progress.
    fn entries_max(&self) -> usize {
        self.config.max_entries.max(1)
    }

    /// The entries of a directory that are not denied.
    fn visible(&self, place: &Place) -> Result<(OwnedFd, Vec<(OsString, Kind)>), ToolError> {
        expect_dir(place)?;
        let listed = dir::entries(place.dir(), place.name(), NAMES_MAX);
        let (fd, mut entries, _) = listed.map_err(|error| io_fault(error, "scandir", &place.shown()))?;
        if !self.deny.is_empty() {
            let (base, belows) = (place.path(), self.belows(place));
            entries.retain(|(name, _)| !self.deny.covers(&base, &belows, Path::new(name)));
        }
        Ok((fd, entries))
    }

    pub(crate) fn list_directory(&self, args: &ListDirectory) -> Result<Answer<ListMore>, ToolError> {
        let place = self.resolve(&args.path, Last::Follow)?;
        let (_, entries) = self.visible(&place)?;
        let after = after(args.cursor.as_deref())?;
        if after.as_deref().is_some_and(|after| after.components().count() > 1) {
            return Err(unknown_cursor(args.cursor.as_deref().unwrap_or_default()));
        }
        let mut page = Page::new(self);
        let mut last = None;
        for (name, kind) in &entries {
            if after.as_deref().is_some_and(|after| name.as_bytes() <= after.as_os_str().as_bytes()) {
                continue;
            }
            let tag = if *kind == Kind::Dir { "[DIR]" } else { "[FILE]" };
            if !page.push(&format!("{tag} {}", name.to_string_lossy())) {
                return Ok(ListMore::cut(last.map(cursor_after), 0).answer(page.text));
            }
            last = Some(Path::new(name));
        }
        Ok(ListMore::default().answer(page.text))
    }

    pub(crate) fn list_with_sizes(&self, args: &ListDirectoryWithSizes) -> Result<Answer<ListMore>, ToolError> {
        let place = self.resolve(&args.path, Last::Follow)?;
        let (fd, entries) = self.visible(&place)?;
        let mut sized: Vec<(String, Kind, u64)> = entries
            .into_iter()
            .map(|(name, kind)| {
                let size = self.size_of(&place, fd.as_fd(), &name, kind);
                (name.to_string_lossy().into_owned(), kind, size)
            })
            .collect();
        match args.sort_by {
            SortBy::Name => sized.sort_by(|a, b| compare_names(&a.0, &b.0)),
            SortBy::Size => sized.sort_by_key(|entry| std::cmp::Reverse(entry.2)),
        }
        let start = Paging::start(args.cursor.as_deref().filter(|cursor| !cursor.is_empty()), sized.len())?;
        let mut page = Page::new(self);
        let mut cut = None;
        for (index, (name, kind, size)) in sized.iter().enumerate().skip(start) {
            let (tag, size) = match kind {
                Kind::Dir => ("[DIR]", String::new()),
                _ => ("[FILE]", format!("{:>10}", size_text(*size))),
            };
            // Width in UTF-16 units, as in the published server.
            let pad = " ".repeat(30_usize.saturating_sub(name.encode_utf16().count()));
            if !page.push(&format!("{tag} {name}{pad} {size}")) {
                cut = Some(index.to_string());
                break;
            }
        }
        let files = sized.iter().filter(|(_, kind, _)| *kind != Kind::Dir);
        let (count, total) = files.fold((0_usize, 0_u64), |(count, total), file| (count + 1, total + file.2));
        let mut text = page.text;
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&format!(
            "\nTotal: {count} files, {} directories\nCombined size: {}",
            sized.len() - count,
            size_text(total)
        ));
        Ok(ListMore::cut(cut, 0).answer(text))
    }

    /// The size to show: for a symlink the size of its target if that is inside, 0 if it is missing, and its own size
    /// if it leads elsewhere, because nothing about the target may be revealed.
    fn size_of(&self, place: &Place, at: BorrowedFd<'_>, name: &OsStr, kind: Kind) -> u64 {
        let own = || dir::meta(at, name).map_or(0, |meta| meta.size);
        if kind != Kind::Link {
            return own();
        }
        match place.path().join(name).to_str().map(|path| self.resolve(path, Last::Follow)) {
            Some(Ok(target)) => target.meta().map_or(0, |meta| meta.size),
            Some(Err(error)) if error.is_not_found() => 0,
            _ => own(),
        }
    }

    pub(crate) fn directory_tree(&self, args: &DirectoryTree) -> Result<Answer<ListMore>, ToolError> {
        let place = self.resolve(&args.path, Last::Follow)?;
        expect_dir(&place)?;
        let mut excludes = Patterns::default();
        for pattern in &args.exclude_patterns {
            excludes.add(pattern)?;
            if !pattern.contains('*') {
                excludes.add(&format!("**/{pattern}"))?;
                excludes.add(&format!("**/{pattern}/**"))?;
            }
        }
        let mut tree: Vec<Node> = Vec::new();
        let (mut bytes, mut count) = (0, 0);
        let (bytes_max, entries_max) = (self.config.max_result_bytes, self.entries_max());
        let mut scan = Scan::new(self, &place, after(args.cursor.as_deref())?, args.respect_gitignore);
        scan.run(&place, &mut |entry| {
            if excludes.matches(entry.rest) {
                return Flow::Over;
            }
            let is_dir = entry.kind == Kind::Dir;
            if entry.seen && !is_dir {
                return Flow::Over;
            }
            if !entry.seen {
                // The printed size of the node: four lines, indented by its depth.
                bytes += 42 + entry.name.len() + 4 * (2 + 4 * entry.depth);
                count += 1;
                if count > entries_max || (bytes > bytes_max && count > 1) {
                    return Flow::Stop;
                }
            }
            let mut siblings = &mut tree;
            for _ in 0..entry.depth {
                match siblings.last_mut() {
                    Some(Node { children: Some(children), .. }) => siblings = children,
                    _ => return Flow::Over,
                }
            }
            siblings.push(Node {
                name: entry.name.to_string_lossy().into_owned(),
                kind: if is_dir { "directory" } else { "file" },
                children: is_dir.then(Vec::new),
            });
            Flow::Into
        })?;
        let text = serde_json::to_string_pretty(&tree)
            .map_err(|error| ToolError::new(format!("Cannot serialize the tree: {error}")))?;
        Ok(scan.more().answer(text))
    }

    pub(crate) fn search_files(&self, args: &SearchFiles) -> Result<Answer<ListMore>, ToolError> {
        let cursor = args.cursor.as_deref();
        let gitignore = args.respect_gitignore;
        self.find(&args.path, &args.pattern, &args.exclude_patterns, gitignore, self.entries_max(), cursor)
    }

    pub(crate) fn glob(&self, args: &FsGlob) -> Result<Answer<ListMore>, ToolError> {
        let limit = usize::try_from(args.limit.unwrap_or(1_000).max(1)).unwrap_or(usize::MAX);
        let limit = limit.min(self.entries_max());
        self.find(&args.path, &args.pattern, &args.exclude, args.respect_gitignore, limit, args.cursor.as_deref())
    }

    fn find(
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
        let read = dir::open_file(at, name).ok().filter(|(_, meta)| meta.size <= cap);
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

fn expect_dir(place: &Place) -> Result<(), ToolError> {
    match place.existing("scandir")?.kind {
        Kind::Dir => Ok(()),
        _ => Err(io_fault(Errno::NOTDIR, "scandir", &place.shown())),
    }
}

/// An entry of a directory tree, as printed.
#[derive(Serialize)]
struct Node {
    name: String,
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    children: Option<Vec<Node>>,
}

/// The lines of a result, up to its limits.
struct Page {
    text: String,
    entries_left: usize,
    bytes_max: usize,
}

impl Page {
    fn new(inner: &Inner) -> Self {
        Self { text: String::new(), entries_left: inner.entries_max(), bytes_max: inner.config.max_result_bytes }
    }

    /// Adds a line; `false` if it does not fit. The first always does, so that every page makes progress.
    fn push(&mut self, line: &str) -> bool {
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

/// A size in the format of the published server: bytes unchanged, larger units with two decimals.
fn size_text(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KB", "MB", "GB", "TB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let power = (bytes.ilog2() / 10).min(4);
    #[allow(clippy::cast_precision_loss)]
    let value = bytes as f64 / f64::from(1024_u32).powi(power.cast_signed());
    format!("{value:.2} {}", UNITS[power as usize - 1])
}

/// The collation order of the published server: symbols, digits, letters; case and accents only break ties, lower case
/// first.
fn compare_names(a: &str, b: &str) -> Ordering {
    const SIGNS: &str = "_-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$";
    let weight = |c: char| match c {
        c if c.is_whitespace() => (0, 0),
        c if c.is_ascii_digit() => (2, c as usize),
        c => match SIGNS.find(c) {
            Some(at) => (1, at),
            None => (3, c as usize),
        },
    };
    let key = |text: &str| -> Vec<(i32, usize)> {
        let plain = text.nfd().filter(|c| !unicode_normalization::char::is_combining_mark(*c));
        plain.flat_map(char::to_lowercase).map(weight).collect()
    };
    let small_first = |text: &str| text.nfd().map(|c| c.is_uppercase()).collect::<Vec<_>>();
    key(a)
        .cmp(&key(b))
        .then_with(|| a.to_lowercase().cmp(&b.to_lowercase()))
        .then_with(|| small_first(a).cmp(&small_first(b)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_written_as_published() {
        for (bytes, text) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.00 KB"),
            (1219, "1.19 KB"),
            (1024 * 1024 * 3 / 2, "1.50 MB"),
            (3 << 30, "3.00 GB"),
            (5 << 40, "5.00 TB"),
            (5 << 50, "5120.00 TB"),
        ] {
            assert_eq!(size_text(bytes), text);
        }
    }

    #[test]
    fn names_sort_as_people_expect() {
        let mut names = vec!["b", "a", "B", "_x", ".hid", "10", "é", "f", "A", "e", "x y", "xa"];
        names.sort_by(|a, b| compare_names(a, b));
        assert_eq!(names, ["_x", ".hid", "10", "a", "A", "b", "B", "e", "é", "f", "x y", "xa"]);
    }
}
