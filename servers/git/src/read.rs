//! The published tools that list and compare: status, the three diffs and log.

use crate::guard::Mode;
use crate::look::patch_stats;
use crate::page::{Both, LIST_BYTES_MAX, both, brief, is_start, mark, still};
use crate::run::{Done, Keep, Limit, args};
use crate::{Git, Repo, fields, no_dash, unresolved};
use linchpin::{Cx, Error};
use linchpin_kit::{Budget, PAGE_ITEMS_MAX, Paging, ToolError, ToolOutput, clip, json_len};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

type Answered<T> = Result<ToolOutput<T>, Error>;

#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct StatusArgs {
    /// Path of the repository
    repo_path: String,
    /// From next_cursor
    #[serde(default)]
    cursor: Option<String>,
}

/// The state of the work tree.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Status {
    /// The current branch; absent if HEAD is detached.
    #[serde(skip_serializing_if = "Option::is_none")]
    branch: Option<String>,
    /// The current commit; absent before the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    head: Option<String>,
    /// The upstream branch.
    #[serde(skip_serializing_if = "Option::is_none")]
    upstream: Option<String>,
    /// Local commits that the upstream lacks.
    #[serde(skip_serializing_if = "Option::is_none")]
    ahead: Option<u64>,
    /// Upstream commits that the branch lacks.
    #[serde(skip_serializing_if = "Option::is_none")]
    behind: Option<u64>,
    /// Whether nothing is staged, changed or untracked.
    clean: bool,
    /// Changed and untracked paths.
    entries: Vec<StatusEntry>,
    #[serde(flatten)]
    paging: Paging,
}

/// A changed or untracked path.
#[derive(Debug, Clone, Serialize, JsonSchema)]
struct StatusEntry {
    path: String,
    /// The staged change: `.` none, `A` added, `M` modified, `D` deleted, `R` renamed, `C` copied, `T` type changed, `U`
    /// conflict, `?` untracked.
    staged: char,
    /// The unstaged change, in the same letters.
    unstaged: char,
    /// The path it was renamed or copied from.
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<String>,
}

pub(crate) async fn status(git: &Git, cx: &Cx, q: StatusArgs) -> Answered<Status> {
    let mark = mark(q.cursor.as_deref())?;
    let repo = git.repo(cx, &q.repo_path, Mode::Read).await?;
    // Nothing here depends on the alphabet, and the plain locale is loaded faster.
    let plain = || vec![("LC_ALL", "C".into())];
    let limit = Limit::of(repo.config(), false);
    let words = args(&["status", "--ignore-submodules=dirty"]);
    let words = repo.run_with(words, Keep::From(mark.at[0], repo.max), Vec::new(), plain(), limit);
    let parts = args(&["status", "--porcelain=v2", "--branch", "-z", "--ignore-submodules=dirty"]);
    let parts = repo.run_with(parts, Keep::Upto(LIST_BYTES_MAX), Vec::new(), plain(), limit);
    let (words, parts) = tokio::join!(words, parts);
    let (words, parts) = (words?, parts?);
    if !words.good() {
        return Err(repo.failed(&words).into());
    }
    if !parts.good() {
        return Err(repo.failed(&parts).into());
    }
    let mut status = parse_status(&parts.out);
    let entries = std::mem::take(&mut status.entries);
    let mark = still(mark, &parts.out, &words.out, &entries)?;
    let room = repo.room().beside(STATUS_HEADING.len(), json_len(&status));
    let Both { text, items, next } = both(mark, &words.out, words.cut, entries, room);
    status.entries = items;
    status.paging = next.map_or(Paging::whole(), |next| Paging::more(next.to_string()));
    let mut notice = status.paging.next_cursor.as_ref().map(|next| {
        format!(
            "[Truncated: many files are changed or untracked. Continue with the same arguments and cursor={next:?}; what is \
             generated belongs in .gitignore.]"
        )
    });
    if parts.cut && notice.is_none() {
        status.paging.truncated = true;
        notice = Some("[Truncated: too many files are changed or untracked to list them all.]".to_owned());
    }
    Ok(ToolOutput::outside(format!("{STATUS_HEADING}{text}"), status).notice(notice))
}

const STATUS_HEADING: &str = "Repository status:\n";

impl Status {
    fn empty() -> Self {
        Self {
            branch: None,
            head: None,
            upstream: None,
            ahead: None,
            behind: None,
            clean: true,
            entries: Vec::new(),
            paging: Paging::whole(),
        }
    }
}

fn parse_status(out: &[u8]) -> Status {
    let mut status = Status::empty();
    let mut records = fields(out).into_iter();
    while let Some(record) = records.next() {
        let (kind, rest) = record.split_once(' ').unwrap_or((&record, ""));
        let entry = |skip: usize, from: Option<String>| {
            let mut letters = rest.chars();
            let (staged, unstaged) = (letters.next().unwrap_or('.'), letters.next().unwrap_or('.'));
            let path = rest.splitn(skip + 1, ' ').nth(skip).unwrap_or_default().to_owned();
            StatusEntry { path, staged, unstaged, from }
        };
        match kind {
            "#" => {
                let (key, value) = rest.split_once(' ').unwrap_or((rest, ""));
                match key {
                    "branch.oid" if value != "(initial)" => status.head = Some(value.to_owned()),
                    "branch.head" if value != "(detached)" => status.branch = Some(value.to_owned()),
                    "branch.upstream" => status.upstream = Some(value.to_owned()),
                    "branch.ab" => {
                        let mut numbers = value.split(' ').map(|n| n.trim_start_matches(['+', '-']).parse().ok());
                        (status.ahead, status.behind) = (numbers.next().flatten(), numbers.next().flatten());
                    }
                    _ => {}
                }
            }
            "1" => status.entries.push(entry(7, None)),
            "2" => {
                let from = records.next();
                status.entries.push(entry(8, from));
            }
            "u" => status.entries.push(entry(9, None)),
            "?" => status.entries.push(StatusEntry { path: rest.to_owned(), staged: '?', unstaged: '?', from: None }),
            _ => {}
        }
    }
    status.clean = status.entries.is_empty();
    status
}

fn three() -> i64 {
    3
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct DiffWorkArgs {
    /// Path of the repository
    repo_path: String,
    /// Lines around each change
    #[serde(default = "three")]
    context_lines: i64,
    /// Only these paths
    #[serde(default)]
    paths: Vec<String>,
    /// Only names and line counts
    #[serde(default)]
    stat_only: bool,
    /// From next_cursor
    #[serde(default)]
    cursor: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct DiffArgs {
    /// Path of the repository
    repo_path: String,
    /// A branch, tag or commit; or a..b, a...b
    target: String,
    /// Lines around each change
    #[serde(default = "three")]
    context_lines: i64,
    /// Only these paths
    #[serde(default)]
    paths: Vec<String>,
    /// Only names and line counts
    #[serde(default)]
    stat_only: bool,
    /// From next_cursor
    #[serde(default)]
    cursor: Option<String>,
}

/// Differences.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Diff {
    /// The diff in git's format, or its table of changed files with `stat_only`; truncated if too long.
    diff: String,
    /// The files that differ.
    pub(crate) files: Vec<FileStat>,
    #[serde(flatten)]
    pub(crate) paging: Paging,
}

/// The changes of a file in numbers.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct FileStat {
    pub(crate) path: String,
    /// The old path of a renamed file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) from: Option<String>,
    /// Lines added; absent for binary files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) added: Option<u64>,
    /// Lines removed; absent for binary files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) removed: Option<u64>,
}

pub(crate) async fn diff_unstaged(git: &Git, cx: &Cx, q: DiffWorkArgs) -> Answered<Diff> {
    let repo = git.repo(cx, &q.repo_path, Mode::Read).await?;
    repo.needs_worktree()?;
    let heading = "Unstaged changes:\n";
    Ok(differences(&repo, heading, &[], q.shape(repo.room())).await?)
}

pub(crate) async fn diff_staged(git: &Git, cx: &Cx, q: DiffWorkArgs) -> Answered<Diff> {
    let repo = git.repo(cx, &q.repo_path, Mode::Read).await?;
    repo.needs_worktree()?;
    let heading = "Staged changes:\n";
    Ok(differences(&repo, heading, &["--cached".to_owned()], q.shape(repo.room())).await?)
}

pub(crate) async fn diff(git: &Git, cx: &Cx, q: DiffArgs) -> Answered<Diff> {
    no_dash("target", &q.target)?;
    let repo = git.repo(cx, &q.repo_path, Mode::Read).await?;
    let sides = sides(&repo, &q.target).await?;
    if sides.len() == 1 {
        repo.needs_worktree()?;
    }
    let heading = format!("Diff with {}:\n", q.target);
    let (cursor, room) = (q.cursor.as_deref(), repo.room());
    let shape = DiffShape { context_lines: q.context_lines, paths: &q.paths, stat_only: q.stat_only, cursor, room };
    match differences(&repo, &heading, &sides, shape).await {
        Ok(shown) => Ok(shown),
        Err(fault) if repo.resolve(&sides[0], "tree").await?.is_some() => Err(fault.into()),
        Err(_) => {
            let what = format!("'{}' is not a commit and cannot be compared", clip(&q.target, 200).text);
            let hint =
                "Pass a commit, branch or tag as target and the file in paths; git_show shows a file of a commit.";
            Err(ToolError::invalid(what).hint(hint).into())
        }
    }
}

/// The object ids that a target names: one, or the two ends of a range.
async fn sides(repo: &Repo, target: &str) -> Result<Vec<String>, ToolError> {
    // A whole target first: a name such as `:/fix a..b` holds dots and is one object.
    if let Some(id) = repo.resolve(target, "object").await? {
        return Ok(vec![id]);
    }
    let (a, b, parted) = match (target.split_once("..."), target.split_once("..")) {
        (Some((a, b)), _) => (a, b, true),
        (None, Some((a, b))) => (a, b, false),
        (None, None) => return Err(unresolved(target)),
    };
    let mut ends = Vec::with_capacity(2);
    for side in [a, b] {
        no_dash("target", side)?;
        let side = if side.is_empty() { "HEAD" } else { side };
        ends.push(repo.commit(side).await.map_err(|_| unresolved(target))?);
    }
    if parted {
        let base = repo.ask(&["merge-base", &ends[0], &ends[1]]).await?;
        if !base.good() {
            return Err(ToolError::new(format!("{a} and {b} have no common ancestor"))
                .hint("Use a..b to compare them directly."));
        }
        ends[0] = base.text();
    }
    Ok(ends)
}

/// Which part of a diff is wanted, and how.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DiffShape<'a> {
    pub(crate) context_lines: i64,
    pub(crate) paths: &'a [String],
    pub(crate) stat_only: bool,
    pub(crate) cursor: Option<&'a str>,
    /// What the answer may hold.
    pub(crate) room: Budget,
}

impl DiffWorkArgs {
    fn shape(&self, room: Budget) -> DiffShape<'_> {
        let cursor = self.cursor.as_deref();
        DiffShape { context_lines: self.context_lines, paths: &self.paths, stat_only: self.stat_only, cursor, room }
    }
}

/// A diff, and the same in numbers.
pub(crate) async fn differences(
    repo: &Repo,
    heading: &str,
    sides: &[String],
    wanted: DiffShape<'_>,
) -> Result<ToolOutput<Diff>, ToolError> {
    let (context_lines, stat_only) = (wanted.context_lines, wanted.stat_only);
    if !(0..=CONTEXT_MAX).contains(&context_lines) {
        return Err(
            ToolError::new(format!("Invalid context_lines: {context_lines}")).hint("Use a number from 0 to 100000.")
        );
    }
    let mark = mark(wanted.cursor)?;
    let paths = repo.paths(wanted.paths)?;
    let unified = format!("--unified={context_lines}");
    let command = |shape: &[&str]| {
        let mut all = args(&["diff"]);
        all.extend(args(shape));
        all.extend(args(repo.plain_diff()));
        all.extend(sides.iter().map(Into::into));
        all.push("--".into());
        all.extend(paths.iter().map(Into::into));
        all
    };
    let shape = if stat_only { "--stat=120" } else { unified.as_str() };
    let room = wanted.room.beside(heading.len(), 0);
    let words = repo.run(command(&[shape]), Keep::From(mark.at[0], room.text), Vec::new());
    let numbers = repo.run(command(&["--numstat", "-z"]), Keep::Upto(LIST_BYTES_MAX), Vec::new());
    // What is shown of a file through a program of the user's is not what git counts.
    let (words, numbers) = if stat_only || !is_start(mark) || repo.config().trust_repo_config {
        let (words, numbers) = tokio::join!(words, numbers);
        (words?, numbers)
    } else {
        let words = words.await?;
        if !words.good() {
            return Err(repo.failed(&words));
        }
        if let Some(files) = if words.cut { None } else { patch_stats(&words.out) } {
            let diff = words.text();
            if json_len(&diff) + json_len(&files) <= room.json && files.len() <= PAGE_ITEMS_MAX {
                let text = format!("{heading}{diff}");
                return Ok(ToolOutput::outside(text, Diff { diff, files, paging: Paging::whole() }));
            }
        }
        (words, numbers.await)
    };
    if !words.good() {
        return Err(repo.failed(&words));
    }
    // When only the numbers took too long, they are missing.
    let numbers = numbers.ok().filter(Done::good);
    let about = numbers.as_ref().map(|numbers| numbers.out.clone()).unwrap_or_default();
    let unlisted = numbers.as_ref().is_some_and(|numbers| numbers.cut);
    let files = numbers.map(|numbers| file_stats(&numbers.out)).unwrap_or_default();
    let mark = still(mark, &about, &words.out, &files)?;
    let whole = cut_about(&files, is_start(mark), room.text / 8);
    let Both { text, items, next } = both(mark, &words.out, words.cut, files, room);
    let mut paging = next.map_or(Paging::whole(), |next| Paging::more(next.to_string()));
    let notice = paging
        .next_cursor
        .as_ref()
        .map(|next| format!("{whole}Continue with the same arguments and cursor={next:?}. {CUT_ADVICE}]"));
    paging.truncated |= unlisted;
    Ok(ToolOutput::outside(format!("{heading}{text}"), Diff { diff: text, files: items, paging }).notice(notice))
}

/// What a diff that was cut is about, with so many bytes of names of files; `first` when that was not said before.
pub(crate) fn cut_about(files: &[FileStat], first: bool, bytes: usize) -> String {
    if !first {
        return "[Truncated. ".to_owned();
    }
    if files.is_empty() {
        return "[Truncated: the diff is too long, and counting its changes took too long as well.\n".to_owned();
    }
    let sum = |of: fn(&FileStat) -> Option<u64>| files.iter().filter_map(of).sum::<u64>();
    let mut text = format!(
        "[Truncated: the diff is too long. {} files changed, {} lines added, {} removed:",
        files.len(),
        sum(|file| file.added),
        sum(|file| file.removed)
    );
    let (start, mut named) = (text.len(), 0);
    for file in files.iter().take(NOTICE_FILES_MAX) {
        let numbers = match (file.added, file.removed) {
            (Some(added), Some(removed)) => format!("+{added} -{removed}"),
            _ => "binary".to_owned(),
        };
        let line = format!("\n {} {numbers}", file.path);
        if text.len() - start + line.len() > bytes {
            break;
        }
        text.push_str(&line);
        named += 1;
    }
    if files.len() > named {
        text.push_str(&format!("\n and {} more", files.len() - named));
    }
    text.push('\n');
    text
}

/// The records of `--numstat -z`.
pub(crate) fn file_stats(out: &[u8]) -> Vec<FileStat> {
    let mut stats: Vec<FileStat> = Vec::new();
    let mut records = fields(out).into_iter();
    while let Some(record) = records.next() {
        let mut parts = record.splitn(3, '\t');
        let (Some(added), Some(removed), Some(path)) = (parts.next(), parts.next(), parts.next()) else { continue };
        let (from, path) = match path {
            "" => (records.next(), records.next().unwrap_or_default()),
            path => (None, path.to_owned()),
        };
        stats.push(FileStat { path, from, added: added.parse().ok(), removed: removed.parse().ok() });
    }
    stats
}

fn ten() -> i64 {
    10
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct LogArgs {
    /// Path of the repository
    repo_path: String,
    /// -1 lists all, in pages
    #[serde(default = "ten")]
    max_count: i64,
    /// Only commits after this: 2024-01-15T14:30:25, 2024-01-15, "2 weeks ago"
    #[serde(default)]
    start_timestamp: Option<String>,
    /// Only commits before this
    #[serde(default)]
    end_timestamp: Option<String>,
    /// Where to start (default HEAD), or a range: main..topic
    #[serde(default)]
    revision: Option<String>,
    /// Only commits that touch these paths
    #[serde(default)]
    paths: Vec<String>,
    /// From next_cursor
    #[serde(default)]
    cursor: Option<String>,
}

/// Commits.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Log {
    commits: Vec<Commit>,
    #[serde(flatten)]
    paging: Paging,
}

/// One commit.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Commit {
    pub(crate) hash: String,
    pub(crate) author: String,
    pub(crate) email: String,
    /// The author date: ISO 8601 with the author's offset.
    pub(crate) date: String,
    pub(crate) parents: Vec<String>,
    pub(crate) message: String,
}

/// What [`commits`] reads: hash, author, email, date, parents, message.
pub(crate) const COMMIT_FORMAT: &str = "--format=%H%x00%an%x00%ae%x00%ai%x00%P%x00%B";

pub(crate) fn commits(out: &[u8]) -> Vec<Commit> {
    let fields = fields(out);
    let commit = |record: &[String]| Commit {
        hash: record[0].clone(),
        author: brief(&record[1]),
        email: brief(&record[2]),
        date: record[3].clone(),
        parents: record[4].split_whitespace().map(str::to_owned).collect(),
        message: record[5].clone(),
    };
    fields.chunks_exact(6).map(commit).collect()
}

/// `2024-01-15 14:30:25 +0100` as the published log writes it: `2024-01-15 14:30:25+01:00`.
fn python_date(date: &str) -> String {
    match date.rsplit_once(' ') {
        Some((time, zone)) if zone.len() == 5 && zone.is_ascii() => format!("{time}{}:{}", &zone[..3], &zone[3..]),
        _ => date.to_owned(),
    }
}

pub(crate) fn iso_date(date: &str) -> String {
    python_date(date).replacen(' ', "T", 1)
}

pub(crate) async fn log(git: &Git, cx: &Cx, q: LogArgs) -> Answered<Log> {
    let mut command =
        args(&["log", "-z", COMMIT_FORMAT, "--no-show-signature", "--no-notes", "--no-decorate", "--no-patch"]);
    for (name, flag, value) in
        [("start_timestamp", "--since", &q.start_timestamp), ("end_timestamp", "--until", &q.end_timestamp)]
    {
        if let Some(value) = value.as_deref().filter(|value| !value.is_empty()) {
            no_dash(name, value)?;
            if value.len() > TIME_MAX {
                return Err(ToolError::new(format!("Invalid {name}: longer than {TIME_MAX} bytes")).into());
            }
            command.push(format!("{flag}={value}").into());
        }
    }
    let revision = q.revision.as_deref().filter(|revision| !revision.is_empty()).unwrap_or("HEAD");
    no_dash("revision", revision)?;
    let skip = Paging::start(q.cursor.as_deref(), usize::MAX)?;
    let repo = git.repo(cx, &q.repo_path, Mode::Read).await?;
    // HEAD is the one name that can mean nothing else.
    let heads = if revision == "HEAD" {
        vec![revision.to_owned()]
    } else if let Some(id) = repo.resolve(revision, "commit").await? {
        vec![id]
    } else {
        let ends = sides(&repo, revision).await?;
        match ends.as_slice() {
            [from, to] => vec![format!("^{from}"), to.clone()],
            _ => return Err(unresolved(revision).into()),
        }
    };
    let asked = usize::try_from(q.max_count).unwrap_or(usize::MAX);
    let most = asked.min(PAGE_ITEMS_MAX);
    command.push(format!("--max-count={}", most.min(asked.saturating_sub(skip)).saturating_add(1)).into());
    command.push(format!("--skip={skip}").into());
    command.extend(heads.iter().map(Into::into));
    command.push("--".into());
    command.extend(repo.paths(&q.paths)?.iter().map(Into::into));
    let done = repo.run(command, Keep::Upto(repo.max.saturating_mul(2) + LOG_BYTES), Vec::new()).await?;
    if !done.good() {
        let new = revision == "HEAD" && repo.head().await?.is_none();
        let none = || ToolError::not_found("There are no commits yet").hint("git_commit creates the first.");
        return Err(if new { none() } else { repo.failed(&done) }.into());
    }
    Ok(log_answer(&repo, &done.out, done.cut, skip, asked))
}

/// `cut` when there was more than `out`: its last commit is not whole then.
fn log_answer(repo: &Repo, out: &[u8], cut: bool, skip: usize, asked: usize) -> ToolOutput<Log> {
    let room_for = asked.saturating_sub(skip);
    let mut found = commits(out);
    if cut {
        // Whatever came last may be unfinished. If that is the first as well, it is shown as far as it is there.
        found.truncate(((fields(out).len().max(1) - 1) / 6).max(1));
    }
    found.truncate(room_for);
    let mut room = repo.room().beside(LOG_HEADING.len(), 0);
    let (mut blocks, mut kept, mut long) = (String::new(), Vec::new(), None);
    let read = found.len();
    for mut commit in found.into_iter().take(PAGE_ITEMS_MAX) {
        let date = iso_date(&commit.date);
        let head = format!(
            "Commit: {}\nAuthor: {}\nDate: {}\nMessage: ",
            commit.hash,
            commit.author,
            python_date(&std::mem::replace(&mut commit.date, date)),
        );
        if kept.is_empty() {
            // One commit there is always, and as much of its message as fits.
            let message = std::mem::take(&mut commit.message);
            let left = room.beside(head.len() + 2, json_len(&commit) + 2);
            let (text, taken) = left.text(message.as_bytes(), 0, false);
            long = (taken < message.len()).then(|| commit.hash.clone());
            commit.message = text;
        }
        if !room.takes(head.len() + commit.message.len() + 2, json_len(&commit) + 1) {
            break;
        }
        let between = if kept.is_empty() { "" } else { "\n" };
        blocks.push_str(&format!("{between}{head}{}\n", commit.message));
        kept.push(commit);
    }
    let more = kept.len() < read || cut && kept.len() < room_for;
    let mut paging = if more { Paging::more((skip + kept.len()).to_string()) } else { Paging::whole() };
    let notice = match long {
        Some(hash) => {
            paging.truncated = true;
            let more = paging.notice().unwrap_or_default();
            Some(format!(
                "[Truncated: the message of {hash} is long; git_show with this revision shows all of it.] {more}"
            ))
        }
        None => paging.notice(),
    };
    ToolOutput::outside(format!("{LOG_HEADING}{blocks}"), Log { commits: kept, paging }).notice(notice)
}

const LOG_HEADING: &str = "Commit history:\n";
/// What is read of a log besides the text of an answer.
const LOG_BYTES: usize = 64 * 1024;
const CUT_ADVICE: &str = "To see less, pass files or directories in paths, stat_only, or a smaller context_lines.";
const TIME_MAX: usize = 200;
const CONTEXT_MAX: i64 = 100_000;
const NOTICE_FILES_MAX: usize = 50;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_have_the_published_forms() {
        assert_eq!(python_date("2026-01-03 10:00:00 +0530"), "2026-01-03 10:00:00+05:30");
        assert_eq!(iso_date("2026-01-03 10:00:00 -0930"), "2026-01-03T10:00:00-09:30");
        assert_eq!(python_date("odd"), "odd");
    }
}
