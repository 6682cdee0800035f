//! `git_blame`.

use crate::exec::output::{Keep, lossy, whole_records};
use crate::exec::program::args;
use crate::guard::Mode;

use crate::page::{PART_BYTES_MAX, brief};
use crate::repo::{Git, no_dash};
use jiff::Timestamp;
use jiff::tz::Offset;
use linchpin::{Cx, Error};
use linchpin_kit::{Budget, ToolError, ToolOutput, ToolSpec, json_len};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

pub(crate) const BLAME: ToolSpec =
    ToolSpec::reads("git_blame", "Blame", "read", "Shows the last commit, author and date of each line of a file.")
        .extra();

#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct BlameArgs {
    /// The repository
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
        (Some(0), _) | (_, Some(0)) => return Err(ToolError::invalid("Line numbers start at 1").into()),
        (start, end) => {
            let start = start.unwrap_or(1);
            if end.is_some_and(|end| end < start) {
                return Err(ToolError::invalid("end_line is before start_line").into());
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
    // Of a long line only the part that can be shown is read. Porcelain headers are longer than short lines.
    let keep = Keep::Parts(repo.max + 1, repo.max.saturating_mul(10) + 16 * PART_BYTES_MAX);
    let done = repo.run(args(&command), keep, Vec::new()).await?;
    if !done.good() {
        return Err(repo.failed(&done).into());
    }
    let (mut blame, text, long) = parse_blame(path, &done.out, repo.budget(), done.cut);
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

/// The blame, its text, and the number of a line that was cut because it did not fit alone.
fn parse_blame(path: String, out: &[u8], budget: Budget, cut: bool) -> (Blame, String, Option<u64>) {
    let mut origins: BTreeMap<String, Origin> = BTreeMap::new();
    let mut budget = budget.beside(0, json_len(&path));
    let mut blame = Blame { path, hunks: Vec::new(), truncated: false, next_line: None };
    let (mut text, mut hash, mut line, mut long) = (String::new(), String::new(), 0_u64, None);
    for record in whole_records(out, cut, b'\n').split_inclusive(|byte| *byte == b'\n') {
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
                // At least one line is shown, as much of it as fits.
                let left = budget.beside(head.len() + 1, around);
                let (part, taken) = left.text(content.as_bytes(), 0, false);
                long = (taken < content.len()).then_some(line);
                part
            } else {
                content.to_owned()
            };
            if !budget.takes(head.len() + content.len() + 1, around + json_len(&content)) {
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

/// The date of a Unix time in a zone such as `+0130`.
pub(crate) fn day(seconds: i64, zone: &str) -> String {
    let number: i32 = zone.parse().unwrap_or(0);
    let offset = Offset::from_seconds((number / 100) * 3_600 + (number % 100) * 60).unwrap_or(Offset::UTC);
    // Dates outside the calendar are clamped.
    let time = Timestamp::from_second(seconds).unwrap_or(if seconds < 0 { Timestamp::MIN } else { Timestamp::MAX });
    offset.to_datetime(time).date().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

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
