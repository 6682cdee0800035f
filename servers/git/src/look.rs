//! Tools for one commit or file: show, blame and grep.

use crate::guard::Mode;
use crate::page::{LIST_BYTES_MAX, PART_BYTES_MAX, brief};
use crate::place::Place;
use crate::read::{COMMIT_FORMAT, Commit, FileStat, commits, cut_about, file_stats, iso_date};
use crate::run::{Keep, args, args_and, lossy};
use crate::{Git, Repo, fields, no_dash, unresolved};
use jiff::Timestamp;
use jiff::tz::Offset;
use linchpin::{Cx, Error};
use linchpin_kit::{Budget, Page, Paging, ToolError, ToolOutput, json_len, page, unknown_cursor};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct ShowArgs {
    /// Path of the repository
    repo_path: String,
    /// A commit, branch or tag, or <revision>:<path>
    revision: String,
    /// From next_cursor
    #[serde(default)]
    cursor: Option<String>,
}

/// The content of a revision.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Object {
    /// `commit`, `file` or `directory`.
    kind: &'static str,
    hash: String,
    /// The commit; a long message starts at the cursor.
    #[serde(skip_serializing_if = "Option::is_none")]
    commit: Option<Commit>,
    /// The changes of a commit, truncated if too long; or the content of a file from the cursor on.
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<String>,
    /// The names in a directory; directories end with a slash.
    #[serde(skip_serializing_if = "Option::is_none")]
    names: Option<Vec<String>>,
    /// Size of a file in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
    #[serde(flatten)]
    paging: Paging,
}

pub(crate) async fn show(git: &Git, cx: &Cx, q: ShowArgs) -> Result<ToolOutput<Object>, Error> {
    no_dash("revision", &q.revision)?;
    let repo = git.repo(cx, &q.repo_path, Mode::Read).await?;
    // After a colon comes a path or a text; anything else is mostly a commit.
    if !q.revision.contains(':')
        && let Some(hash) = repo.resolve(&q.revision, "commit").await?
    {
        return Ok(show_commit(&repo, hash, q.cursor.as_deref()).await?);
    }
    let Some(hash) = repo.resolve(&q.revision, "object").await? else {
        return Err(match q.revision.split_once(':') {
            Some((before, path)) if !before.is_empty() && repo.resolve(before, "object").await?.is_some() => {
                ToolError::new(format!("Blob or Tree named '{path}' not found"))
                    .hint(format!("git_show {before}: lists the top-level names."))
                    .into()
            }
            _ => unresolved(&q.revision).into(),
        });
    };
    let kind = repo.must(&["cat-file", "-t", &hash]).await?.text();
    match kind.as_str() {
        "blob" => Ok(show_file(&repo, hash, q.cursor.as_deref()).await?),
        "tree" => Ok(show_directory(&repo, hash, q.cursor.as_deref()).await?),
        _ => {
            let hash = repo.commit(&q.revision).await?;
            Ok(show_commit(&repo, hash, q.cursor.as_deref()).await?)
        }
    }
}

/// A file from the byte on that the cursor holds.
async fn show_file(repo: &Repo, hash: String, cursor: Option<&str>) -> Result<ToolOutput<Object>, ToolError> {
    let size: u64 = repo.must(&["cat-file", "-s", &hash]).await?.text().parse().unwrap_or(u64::MAX);
    let start = Paging::start(cursor, usize::try_from(size).unwrap_or(usize::MAX))? as u64;
    let done = repo.run(args(&["cat-file", "blob", &hash]), Keep::From(start, repo.max), Vec::new()).await?;
    if !done.good() {
        return Err(repo.failed(&done));
    }
    let (text, taken) = repo.room().text(&done.out, 0, done.cut);
    let more = done.cut || taken < done.out.len();
    let next = (start + taken as u64).to_string();
    let notice = more.then(|| {
        format!(
            "[Truncated: the file has {size} bytes. Continue with the same arguments and cursor={next:?}; git_grep finds lines in it.]"
        )
    });
    let paging = if more { Paging::more(next) } else { Paging::whole() };
    let value =
        Object { kind: "file", hash, commit: None, content: Some(text.clone()), names: None, size: Some(size), paging };
    Ok(ToolOutput::outside(text, value).notice(notice))
}

/// The names in a directory from the number on that the cursor holds.
async fn show_directory(repo: &Repo, hash: String, cursor: Option<&str>) -> Result<ToolOutput<Object>, ToolError> {
    let done = repo.run(args(&["ls-tree", "-z", &hash]), Keep::Upto(LIST_BYTES_MAX), Vec::new()).await?;
    if !done.good() {
        return Err(repo.failed(&done));
    }
    let name = |record: String| {
        let (meta, name) = record.split_once('\t')?;
        Some(if meta.contains(" tree ") { format!("{name}/") } else { name.to_owned() })
    };
    let all: Vec<String> = fields(&done.out).into_iter().filter_map(name).collect();
    let Page { items, text, mut paging } =
        page(&all, cursor, NAMES_MAX, repo.room(), |name| (name.into(), json_len(name)))?;
    let names = items.to_vec();
    let mut notice = paging.notice();
    if done.cut && notice.is_none() {
        paging.truncated = true;
        notice = Some("[Truncated: the directory has too many names to list them all.]".to_owned());
    }
    let value = Object { kind: "directory", hash, commit: None, content: None, names: Some(names), size: None, paging };
    Ok(ToolOutput::outside(text, value).notice(notice))
}

/// A commit; the cursor holds where a long message goes on, whose changes come after its end.
async fn show_commit(repo: &Repo, hash: String, cursor: Option<&str>) -> Result<ToolOutput<Object>, ToolError> {
    let start: usize = match cursor {
        None => 0,
        Some(text) => text.strip_prefix('m').and_then(|start| start.parse().ok()).ok_or_else(|| {
            unknown_cursor(text)
                .hint("Cursors are for files, directories and long messages. git_diff shows parts of a commit.")
        })?,
    };
    let head = [
        "log",
        "-1",
        "-z",
        COMMIT_FORMAT,
        "--no-show-signature",
        "--no-notes",
        "--no-decorate",
        "--no-patch",
        &hash,
        "--",
    ];
    let head = repo.run(args(&head), Keep::Head(LIST_BYTES_MAX), Vec::new()).await?;
    if !head.good() {
        return Err(repo.failed(&head));
    }
    let Some(mut commit) = commits(&head.out).into_iter().next() else {
        return Err(ToolError::new("The commit's header is too large to show"));
    };
    let message = std::mem::take(&mut commit.message);
    let message = message
        .get(start..)
        .filter(|rest| start == 0 || !rest.is_empty())
        .ok_or_else(|| unknown_cursor(cursor.unwrap_or_default()))?;
    let mut text =
        format!("commit {}\nAuthor: {} <{}>\nDate:   {}\n\n", commit.hash, commit.author, commit.email, commit.date);
    commit.date = iso_date(&commit.date);
    let room = repo.room().beside(text.len() + 8, json_len(&commit));
    let (part, taken) = room.lines(message.as_bytes(), 4, false);
    for line in part.trim_end_matches('\n').split('\n') {
        text.push_str("    ");
        text.push_str(line);
        text.push('\n');
    }
    commit.message = part;
    let mut value = Object {
        kind: "commit",
        hash,
        content: Some(String::new()),
        names: None,
        size: None,
        paging: Paging::whole(),
        commit: Some(commit),
    };
    if taken < message.len() {
        let next = format!("m{}", start + taken);
        let notice = format!(
            "[Truncated: the message is long. Continue with the same arguments and cursor={next:?}; the changes follow it.]"
        );
        value.paging = Paging::more(next);
        return Ok(ToolOutput::outside(text, value).notice(Some(notice)));
    }
    let (patch, notice) = changes(repo, &value, repo.room().beside(text.len(), json_len(&value))).await?;
    text.push_str(&patch);
    value.content = Some(patch);
    value.paging.truncated = notice.is_some();
    Ok(ToolOutput::outside(text, value).notice(notice))
}

/// What a commit changed against its first parent; and when not all of it fits, what it is about and how to see the
/// rest.
async fn changes(repo: &Repo, of: &Object, room: Budget) -> Result<(String, Option<String>), ToolError> {
    let empty = if of.hash.len() == 40 { EMPTY_SHA1 } else { EMPTY_SHA256 };
    let first = of.commit.as_ref().and_then(|commit| commit.parents.first());
    let parent = first.map_or(empty, String::as_str);
    let mut command = args(&["diff", "--full-index", "-M", "-p", "--unified=3", "--src-prefix=a/", "--dst-prefix=b/"]);
    command.extend(args(repo.plain_diff()));
    command.extend(args(&[parent, &of.hash, "--"]));
    let done = repo.run(command, Keep::Upto(repo.max), Vec::new()).await?;
    if !done.good() {
        return Err(repo.failed(&done));
    }
    let patch = patches(&done.out);
    let (text, taken) = room.lines(&patch, 0, done.cut);
    if !done.cut && taken == patch.len() {
        return Ok((text, None));
    }
    let numbers = args(&["diff", "--numstat", "-z", "--no-ext-diff", "--no-textconv", parent, &of.hash, "--"]);
    let numbers = repo.run(numbers, Keep::Upto(LIST_BYTES_MAX), Vec::new()).await;
    let files = numbers.map(|numbers| file_stats(&numbers.out)).unwrap_or_default();
    let about = cut_about(&files, true, repo.max / 8);
    let target = format!("{}..{}", &parent[..12], &of.hash[..12]);
    Ok((
        text,
        Some(format!(
            "{about}To see the rest, call git_diff with target {target}; cursor, paths, stat_only and context_lines select what it \
         shows.]"
        )),
    ))
}

/// Git's patches with the headers that the published server writes: for each file a blank line, `--- a/…`, `+++ b/…`,
/// and then the hunks as they are.
fn patches(out: &[u8]) -> Vec<u8> {
    let mut shown = Vec::with_capacity(out.len());
    let mut header: Option<Header> = None;
    for line in out.split_inclusive(|byte| *byte == b'\n') {
        if let Some(rest) = line.strip_prefix(b"diff --git ") {
            if let Some(done) = header.take() {
                done.write(&mut shown);
            }
            header = Some(Header::of(rest));
            continue;
        }
        if header.as_mut().is_some_and(|open| open.take(line)) {
            continue;
        }
        if let Some(done) = header.take() {
            done.write(&mut shown);
        }
        shown.extend_from_slice(line);
    }
    if let Some(done) = header {
        done.write(&mut shown);
    }
    shown
}

/// What git says about a file before its hunks.
#[derive(Default)]
struct Header {
    old: Vec<u8>,
    new: Vec<u8>,
    added: bool,
    deleted: bool,
    binary: bool,
}

impl Header {
    /// From `a/path b/path` where the two are surely equal.
    fn symmetric(names: &[u8]) -> Option<Self> {
        let names = names.strip_suffix(b"\n").unwrap_or(names);
        let (old, new) = names.split_at(names.len() / 2);
        let (old, new) = (unquoted(old), unquoted(new.strip_prefix(b" ")?));
        let path = old.strip_prefix(b"a/").filter(|path| new.strip_prefix(b"b/") == Some(path))?.to_vec();
        Some(Self { old: path.clone(), new: path, ..Self::default() })
    }

    /// From `a/path b/path`; where the two are equal, which is the only case that needs them, the middle is known.
    fn of(names: &[u8]) -> Self {
        let names = names.strip_suffix(b"\n").unwrap_or(names);
        let path = if names.first() == Some(&b'"') {
            let end =
                (1..names.len()).find(|at| names[*at] == b'"' && names[*at - 1] != b'\\').unwrap_or(names.len() - 1);
            unquoted(&names[..=end])
        } else {
            names[..names.len() / 2].to_vec()
        };
        let path = path.get(2..).unwrap_or_default().to_vec();
        Self { old: path.clone(), new: path, ..Self::default() }
    }

    /// Takes a line of the header; `false` when the line is not one.
    fn take(&mut self, line: &[u8]) -> bool {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let name =
            |prefix: &[u8]| line.strip_prefix(prefix).map(|name| unquoted(name.strip_suffix(b"\t").unwrap_or(name)));
        if line.starts_with(b"new file mode ") {
            self.added = true;
        } else if line.starts_with(b"deleted file mode ") {
            self.deleted = true;
        } else if let Some(path) = name(b"rename from ") {
            self.old = path;
        } else if let Some(path) = name(b"rename to ") {
            self.new = path;
        } else if let Some(path) = name(b"--- ") {
            if path != b"/dev/null" {
                self.old = path.get(2..).unwrap_or_default().to_vec();
            }
        } else if let Some(path) = name(b"+++ ") {
            if path != b"/dev/null" {
                self.new = path.get(2..).unwrap_or_default().to_vec();
            }
        } else {
            let known: [&[u8]; 5] =
                [b"old mode ", b"new mode ", b"similarity index ", b"dissimilarity index ", b"index "];
            return known.iter().any(|known| line.starts_with(known));
        }
        true
    }

    fn write(&self, shown: &mut Vec<u8>) {
        let mut side = |mark: &[u8], absent: bool, prefix: &[u8], path: &[u8]| {
            shown.extend_from_slice(mark);
            if absent {
                shown.extend_from_slice(b"/dev/null");
            } else {
                shown.extend_from_slice(prefix);
                shown.extend_from_slice(path);
            }
        };
        side(b"\n--- ", self.added, b"a/", &self.old);
        side(b"\n+++ ", self.deleted, b"b/", &self.new);
        shown.push(b'\n');
    }
}

/// How much each file of git's patches differs, as `--numstat` says it; `None` where the patches do not say, or hold
/// anything that is not known here.
pub(crate) fn patch_stats(out: &[u8]) -> Option<Vec<FileStat>> {
    let mut stats: Vec<FileStat> = Vec::new();
    let mut lines = out.split_inclusive(|byte| *byte == b'\n').peekable();
    while let Some(line) = lines.next() {
        let mut header = Header::symmetric(line.strip_prefix(b"diff --git ")?);
        let mut renamed = 0;
        while let Some(line) = lines.next_if(|line| !line.starts_with(b"@@ ") && !line.starts_with(b"diff --git ")) {
            let text = line.strip_suffix(b"\n").unwrap_or(line);
            if text.starts_with(b"Binary files ") && text.ends_with(b" differ") {
                header.as_mut()?.binary = true;
                continue;
            }
            let names = [&b"rename from "[..], b"copy from ", b"rename to ", b"copy to "];
            if let Some(at) = names.iter().position(|name| text.starts_with(name)) {
                let name = unquoted(&text[names[at].len()..]);
                let header = header.get_or_insert_default();
                renamed += 1;
                if at < 2 { header.old = name } else { header.new = name }
            } else if !Header::default().take(line) {
                return None;
            }
        }
        let header = header?;
        let mut stat = FileStat {
            path: lossy(&header.new),
            from: (renamed == 2).then(|| lossy(&header.old)),
            added: (!header.binary).then_some(0),
            removed: (!header.binary).then_some(0),
        };
        while let Some(line) = lines.next_if(|line| line.starts_with(b"@@ ")) {
            let (mut old, mut new) = hunk_size(line)?;
            while old > 0 || new > 0 {
                match lines.next()?.first()? {
                    b'-' => (old, stat.removed) = (old.checked_sub(1)?, Some(stat.removed? + 1)),
                    b'+' => (new, stat.added) = (new.checked_sub(1)?, Some(stat.added? + 1)),
                    b' ' | b'\n' => (old, new) = (old.checked_sub(1)?, new.checked_sub(1)?),
                    b'\\' => {}
                    _ => return None,
                }
            }
            lines.next_if(|line| line.starts_with(b"\\"));
        }
        // Without a hunk (renamed, emptied, another mode) only the numbers say whether git takes the file for binary.
        // And a file that became a link, or the other way, has two patches, but its numbers once.
        let counted = stat.added != Some(0) || stat.removed != Some(0);
        if !counted || stats.last().is_some_and(|last| last.path == stat.path) {
            return None;
        }
        stats.push(stat);
    }
    Some(stats)
}

/// The numbers of lines before and after, from `@@ -1,2 +3 @@`.
fn hunk_size(line: &[u8]) -> Option<(u64, u64)> {
    let line = lossy(line);
    let mut parts = line.split(' ').skip(1);
    let mut size = |mark: char| {
        let range = parts.next()?.strip_prefix(mark)?;
        range.split_once(',').map_or(Some(1), |(_, count)| count.parse().ok())
    };
    Some((size('-')?, size('+')?))
}

/// A name as git quotes it, in quotes with escapes when it holds anything unusual.
pub(crate) fn unquoted(name: &[u8]) -> Vec<u8> {
    let Some(inner) = name.strip_prefix(b"\"").and_then(|rest| rest.strip_suffix(b"\"")) else { return name.to_vec() };
    let mut plain = Vec::with_capacity(inner.len());
    let mut bytes = inner.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        if byte != b'\\' {
            plain.push(byte);
            continue;
        }
        match bytes.next() {
            Some(digit @ b'0'..=b'7') => {
                let mut value = u32::from(digit - b'0');
                for _ in 0..2 {
                    if let Some(digit) = bytes.next_if(|byte| (b'0'..=b'7').contains(byte)) {
                        value = value * 8 + u32::from(digit - b'0');
                    }
                }
                plain.push(u8::try_from(value & 0xff).unwrap_or(b'?'));
            }
            Some(b'n') => plain.push(b'\n'),
            Some(b't') => plain.push(b'\t'),
            Some(b'r') => plain.push(b'\r'),
            Some(b'a') => plain.push(7),
            Some(b'b') => plain.push(8),
            Some(b'f') => plain.push(12),
            Some(b'v') => plain.push(11),
            Some(other) => plain.push(other),
            None => {}
        }
    }
    plain
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct BlameArgs {
    /// Path of the repository
    repo_path: String,
    /// The file
    path: String,
    /// Default: the work tree
    #[serde(default)]
    revision: Option<String>,
    /// First line
    #[serde(default)]
    start_line: Option<u64>,
    /// Last line
    #[serde(default)]
    end_line: Option<u64>,
}

/// The last change of each line.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Blame {
    path: String,
    /// Runs of lines with the same commit.
    hunks: Vec<Hunk>,
    /// Whether lines were omitted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    truncated: bool,
    /// The `start_line` to continue at, if the result was truncated.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_line: Option<u64>,
}

/// Lines last changed by the same commit.
#[derive(Debug, Serialize, JsonSchema)]
struct Hunk {
    start_line: u64,
    /// All zeros for uncommitted lines.
    hash: String,
    author: String,
    /// The date, as YYYY-MM-DD.
    date: String,
    /// The first line of the commit's message.
    summary: String,
    /// The text of the lines; a line too long for any result is truncated.
    lines: Vec<String>,
}

pub(crate) async fn blame(git: &Git, cx: &Cx, q: BlameArgs) -> Result<ToolOutput<Blame>, Error> {
    no_dash("path", &q.path)?;
    let repo = git.repo(cx, &q.repo_path, Mode::Read).await?;
    let path = repo.place.inner(&q.path)?;
    let mut command = vec!["blame", "--porcelain", "--no-progress", "--ignore-revs-file="];
    if !repo.config().trust_repo_config {
        command.push("--no-textconv");
    }
    let range = match (q.start_line, q.end_line) {
        (None, None) => None,
        (Some(0), _) | (_, Some(0)) => return Err(ToolError::new("Line numbers start at 1").into()),
        (start, end) => {
            let start = start.unwrap_or(1);
            if end.is_some_and(|end| end < start) {
                return Err(ToolError::new("end_line is before start_line").into());
            }
            Some(format!("-L{start},{}", end.map(|end| end.to_string()).unwrap_or_default()))
        }
    };
    command.extend(range.as_deref());
    let revision = match q.revision.as_deref().filter(|revision| !revision.is_empty()) {
        Some(revision) => {
            no_dash("revision", revision)?;
            Some(repo.commit(revision).await?)
        }
        None => {
            repo.needs_worktree()?;
            None
        }
    };
    command.extend(revision.as_deref());
    command.extend(["--", &path]);
    // Of long lines only what could be shown. Porcelain repeats little, but its headers are longer than short lines.
    let keep = Keep::Parts(repo.max + 1, repo.max.saturating_mul(10) + 16 * PART_BYTES_MAX);
    let done = repo.run(args(&command), keep, Vec::new()).await?;
    if !done.good() {
        return Err(repo.failed(&done).into());
    }
    let (mut blame, text, long) = parse_blame(path, &done.out, repo.room(), done.cut);
    blame.truncated = blame.next_line.is_some() || long.is_some();
    let long = long.map(|line| format!("line {line} is truncated; git_show reads the whole file"));
    let more = blame.next_line.map(|line| format!("more lines follow, continue with start_line={line}"));
    let notice = match (long, more) {
        (None, None) => None,
        (long, more) => Some(format!("[Truncated: {}.]", long.into_iter().chain(more).collect::<Vec<_>>().join("; "))),
    };
    Ok(ToolOutput::outside(text, blame).notice(notice))
}

#[derive(Default, Clone)]
struct Origin {
    author: String,
    time: i64,
    zone: String,
    summary: String,
}

/// The blame, its text, and the line that was cut because it did not fit alone.
fn parse_blame(path: String, out: &[u8], room: Budget, cut: bool) -> (Blame, String, Option<u64>) {
    let mut origins: BTreeMap<String, Origin> = BTreeMap::new();
    let mut room = room.beside(0, json_len(&path));
    let mut blame = Blame { path, hunks: Vec::new(), truncated: false, next_line: None };
    let (mut text, mut hash, mut line, mut long) = (String::new(), String::new(), 0_u64, None);
    let whole = if cut { out.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1) } else { out.len() };
    for record in out[..whole].split_inclusive(|byte| *byte == b'\n') {
        let record = lossy(record.strip_suffix(b"\n").unwrap_or(record));
        if let Some(content) = record.strip_prefix('\t') {
            let origin = origins.get(&hash).cloned().unwrap_or_default();
            let date = day(origin.time, &origin.zone);
            let head = format!("{} ({} {date} {line}) ", &hash[..hash.len().min(8)], origin.author);
            let ends = |hunk: &Hunk| hunk.hash == hash && hunk.start_line + hunk.lines.len() as u64 == line;
            let joins = blame.hunks.last().is_some_and(ends);
            let mut hunk = Hunk {
                start_line: line,
                hash: hash.clone(),
                author: origin.author,
                date,
                summary: origin.summary,
                lines: Vec::new(),
            };
            let around = if joins { 1 } else { json_len(&hunk) + 2 };
            let content = if text.is_empty() {
                // One line there is always, and as much of it as fits.
                let left = room.beside(head.len() + 1, around);
                let (part, taken) = left.text(content.as_bytes(), 0, false);
                long = (taken < content.len()).then_some(line);
                part
            } else {
                content.to_owned()
            };
            if !room.takes(head.len() + content.len() + 1, around + json_len(&content)) {
                blame.next_line = Some(line);
                return (blame, text, long);
            }
            text.push_str(&format!("{head}{content}\n"));
            match blame.hunks.last_mut().filter(|_| joins) {
                Some(hunk) => hunk.lines.push(content),
                None => {
                    hunk.lines.push(content);
                    blame.hunks.push(hunk);
                }
            }
            continue;
        }
        let (key, value) = record.split_once(' ').unwrap_or((&record, ""));
        if key.len() >= 40 && key.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            key.clone_into(&mut hash);
            line = value.split(' ').nth(1).and_then(|number| number.parse().ok()).unwrap_or(0);
            origins.entry(hash.clone()).or_default();
        } else if let Some(origin) = origins.get_mut(&hash) {
            match key {
                "author" => origin.author = brief(value),
                "author-time" => origin.time = value.parse().unwrap_or(0),
                "author-tz" => value.clone_into(&mut origin.zone),
                "summary" => origin.summary = brief(value),
                _ => {}
            }
        }
    }
    if cut {
        let shown = blame.hunks.last().map_or(0, |hunk| hunk.start_line + hunk.lines.len() as u64);
        blame.next_line = Some(shown.max(1));
    }
    (blame, text, long)
}

/// The day of a time in seconds since 1970, in a zone such as `+0130`.
fn day(seconds: i64, zone: &str) -> String {
    let number: i32 = zone.parse().unwrap_or(0);
    let offset = Offset::from_seconds((number / 100) * 3_600 + (number % 100) * 60).unwrap_or(Offset::UTC);
    // Of what no calendar holds, the end of the calendar.
    let time = Timestamp::from_second(seconds).unwrap_or(if seconds < 0 { Timestamp::MIN } else { Timestamp::MAX });
    offset.to_datetime(time).date().to_string()
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct GrepArgs {
    /// Path of the repository
    repo_path: String,
    /// An extended regular expression
    pattern: String,
    /// Default: the work tree
    #[serde(default)]
    revision: Option<String>,
    /// Only these paths
    #[serde(default)]
    paths: Vec<String>,
    /// The pattern is plain text
    #[serde(default)]
    fixed: bool,
    /// Ignore case
    #[serde(default)]
    ignore_case: bool,
    /// Also search untracked files
    #[serde(default)]
    untracked: bool,
    /// Default 200
    #[serde(default)]
    max_count: Option<u32>,
    /// From next_cursor
    #[serde(default)]
    cursor: Option<String>,
}

/// Matching lines.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Matches {
    matches: Vec<Match>,
    #[serde(flatten)]
    paging: Paging,
}

/// One line.
#[derive(Debug, Clone, Serialize, JsonSchema)]
struct Match {
    path: String,
    line: u64,
    column: u64,
    /// The line, truncated at 500 bytes.
    text: String,
}

pub(crate) async fn grep(git: &Git, cx: &Cx, q: GrepArgs) -> Result<ToolOutput<Matches>, Error> {
    if q.pattern.is_empty() || q.pattern.contains(['\0', '\n']) || q.pattern.len() > PATTERN_MAX {
        let fault = ToolError::new("The pattern is empty, longer than 10000 bytes or contains a line feed");
        return Err(fault.hint("Search for text within one line.").into());
    }
    let repo = git.repo(cx, &q.repo_path, Mode::Read).await?;
    let mut command =
        vec!["grep", "-I", "-n", "--column", "-z", "--no-color", "--full-name", "--no-recurse-submodules"];
    command.push(if q.fixed { "-F" } else { "-E" });
    if !repo.config().trust_repo_config {
        command.push("--no-textconv");
    }
    if q.ignore_case {
        command.push("-i");
    }
    let revision = match q.revision.as_deref().filter(|revision| !revision.is_empty()) {
        Some(revision) => {
            no_dash("revision", revision)?;
            Some(repo.resolve(revision, "tree").await?.ok_or_else(|| unresolved(revision))?)
        }
        None => {
            repo.needs_worktree()?;
            None
        }
    };
    if q.untracked && revision.is_none() {
        command.push("--untracked");
    }
    // After -e, a pattern is a pattern, whatever it begins with.
    command.extend(["-e", &q.pattern]);
    command.extend(revision.as_deref());
    command.push("--");
    let paths = repo.paths(&q.paths)?;
    let done = repo.run(args_and(&command, &paths), Keep::Parts(PART_BYTES_MAX, GREP_BYTES_MAX), Vec::new()).await?;
    // Exit code 1 says that nothing was found.
    let nothing = done.code == Some(1) && done.err.is_empty();
    if !done.good() && !nothing {
        return Err(repo.failed(&done).into());
    }
    let (place, of, cut) = (repo.place.clone(), revision.clone(), done.cut);
    let found = tokio::task::spawn_blocking(move || parse_grep(&done.out, of.as_deref(), cut, &place)).await;
    let found = found.map_err(|_| ToolError::new("Checking the matches failed unexpectedly"))?;
    let most = q.max_count.map_or(GREP_DEFAULT, |most| usize::try_from(most).unwrap_or(usize::MAX)).clamp(1, GREP_MAX);
    let Page { items, mut text, mut paging } = page(&found, q.cursor.as_deref(), most, repo.room(), |found| {
        (format!("{}:{}:{}", found.path, found.line, found.text).into(), json_len(found))
    })?;
    let mut notice = paging.notice();
    if cut && notice.is_none() {
        paging.truncated = true;
        notice = Some("[Truncated: too many lines match. Narrow the pattern or pass paths.]".to_owned());
    }
    if items.is_empty() {
        text = "No matches".to_owned();
    }
    Ok(ToolOutput::outside(text, Matches { matches: items.to_vec(), paging }).notice(notice))
}

/// Records of `path NUL line NUL column NUL text LF`; with a revision, its id and `:` come before the path.
/// Of files of the work tree git follows links on the way to them, so those that are elsewhere are dropped here.
fn parse_grep(out: &[u8], revision: Option<&str>, cut: bool, place: &Place) -> Vec<Match> {
    let mut found = Vec::new();
    let mut last = (&b""[..], false);
    let mut rest = out;
    while !rest.is_empty() {
        let mut parts = rest.splitn(4, |byte| *byte == 0);
        let (Some(path), Some(line), Some(column), Some(tail)) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            break;
        };
        let end = tail.iter().position(|byte| *byte == b'\n');
        if end.is_none() && cut {
            break;
        }
        let end = end.unwrap_or(tail.len());
        rest = tail.get(end + 1..).unwrap_or_default();
        if revision.is_none() && last.0 != path {
            last = (path, place.beyond_link(&native(path)));
        }
        if last.1 {
            continue;
        }
        let number = |bytes: &[u8]| lossy(bytes).parse().unwrap_or(0);
        let path = lossy(path);
        let path = revision.and_then(|id| path.strip_prefix(id)?.strip_prefix(':')).unwrap_or(&path).to_owned();
        let text = lossy(&tail[..end]);
        found.push(Match { path, line: number(line), column: number(column), text: brief(&text) });
    }
    found
}

/// A path as git writes it.
fn native(bytes: &[u8]) -> PathBuf {
    #[cfg(unix)]
    return PathBuf::from(<std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(bytes));
    #[cfg(not(unix))]
    PathBuf::from(lossy(bytes))
}

/// The tree without entries: always known to git, whether stored or not.
const EMPTY_SHA1: &str = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";
const EMPTY_SHA256: &str = "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321";
const NAMES_MAX: usize = 10_000;
const PATTERN_MAX: usize = 10_000;
const GREP_BYTES_MAX: usize = 8 * 1024 * 1024;
const GREP_DEFAULT: usize = 200;
const GREP_MAX: usize = 1_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_patches_are_unquoted() {
        for (quoted, plain) in [
            (&br#""a/caf\303\251""#[..], "a/café".as_bytes()),
            (br#""a\tb\"c\\""#, b"a\tb\"c\\"),
            (b"plain name", b"plain name"),
        ] {
            assert_eq!(unquoted(quoted), plain);
        }
    }

    #[test]
    fn days_are_those_of_the_calendar() {
        for (seconds, zone, expected) in [
            (0, "+0000", "1970-01-01"),
            (-1, "+0000", "1969-12-31"),
            (86_399, "+0001", "1970-01-02"),
            (951_782_400, "+0000", "2000-02-29"),
            (1_767_225_599, "-0800", "2025-12-31"),
            (1_767_225_599, "+0100", "2026-01-01"),
            (1_767_225_599, "+9999", "2025-12-31"),
            (i64::MAX, "+0000", "9999-12-30"),
        ] {
            assert_eq!(day(seconds, zone), expected, "{seconds} {zone}");
        }
    }
}
