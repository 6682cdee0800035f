//! Tools of our own that only read: blame and grep.

use crate::guard::Mode;
use crate::run::{Keep, args, args_and, lossy};
use crate::{Git, no_dash, unresolved};
use linchpin::{Cx, Error};
use linchpin_kit::{Fault, Paging, Shown, clip};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct BlameArgs {
    /// The repository, or a directory in it.
    repo_path: String,
    /// The file, relative to the top level.
    path: String,
    /// As of this revision; as it is now when left out.
    #[serde(default)]
    revision: Option<String>,
    /// The first line to show.
    #[serde(default)]
    start_line: Option<u64>,
    /// The last line to show.
    #[serde(default)]
    end_line: Option<u64>,
}

/// Who last changed each line.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Blame {
    path: String,
    /// Runs of lines with the same commit.
    hunks: Vec<Hunk>,
    /// Where to continue with `start_line` when the answer was cut.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_line: Option<u64>,
}

/// Lines that one commit changed last.
#[derive(Debug, Serialize, JsonSchema)]
struct Hunk {
    start_line: u64,
    /// All zeros for lines that are not committed yet.
    hash: String,
    author: String,
    /// When, as YYYY-MM-DD.
    date: String,
    /// The first line of the commit's message.
    summary: String,
    lines: Vec<String>,
}

pub(crate) async fn blame(git: &Git, cx: &Cx, q: BlameArgs) -> Result<Shown<Blame>, Error> {
    no_dash("path", &q.path)?;
    let repo = git.repo(cx, &q.repo_path, Mode::Read).await?;
    let path = repo.place.inner(&q.path)?;
    let mut command = vec!["blame", "--porcelain", "--no-progress", "--ignore-revs-file="];
    if !repo.config().trust_repo_config {
        command.push("--no-textconv");
    }
    let range = match (q.start_line, q.end_line) {
        (None, None) => None,
        (Some(0), _) | (_, Some(0)) => return Err(Fault::new("Lines are counted from 1").into()),
        (start, end) => {
            let start = start.unwrap_or(1);
            if end.is_some_and(|end| end < start) {
                return Err(Fault::new("end_line is before start_line").into());
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
    // Porcelain repeats little, but its headers are longer than short lines.
    let done = repo.run(args(&command), Keep::Upto(repo.max.saturating_mul(4)), Vec::new()).await?;
    if !done.good() {
        return Err(repo.failed(&done).into());
    }
    let (blame, text) = parse_blame(path, &done.out, repo.max, done.cut);
    let notice = blame.next_line.map(|line| format!("[Cut: there is more. Continue with start_line={line}.]"));
    Ok(Shown::outside(text, blame).notice(notice))
}

#[derive(Default, Clone)]
struct Origin {
    author: String,
    time: i64,
    zone: String,
    summary: String,
}

fn parse_blame(path: String, out: &[u8], max: usize, cut: bool) -> (Blame, String) {
    let mut origins: BTreeMap<String, Origin> = BTreeMap::new();
    let mut blame = Blame { path, hunks: Vec::new(), next_line: None };
    let (mut text, mut hash, mut line) = (String::new(), String::new(), 0_u64);
    let whole = if cut { out.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1) } else { out.len() };
    for record in out[..whole].split_inclusive(|byte| *byte == b'\n') {
        let record = lossy(record.strip_suffix(b"\n").unwrap_or(record));
        if let Some(content) = record.strip_prefix('\t') {
            let origin = origins.get(&hash).cloned().unwrap_or_default();
            let date = day(origin.time, &origin.zone);
            let short = &hash[..hash.len().min(8)];
            let shown = format!("{short} ({} {date} {line}) {content}\n", origin.author);
            if !text.is_empty() && text.len() + shown.len() > max {
                blame.next_line = Some(line);
                return (blame, text);
            }
            text.push_str(&shown);
            let joins = blame.hunks.last().is_some_and(|hunk| {
                hunk.hash == hash && hunk.start_line + hunk.lines.len() as u64 == line
            });
            match blame.hunks.last_mut().filter(|_| joins) {
                Some(hunk) => hunk.lines.push(content.to_owned()),
                None => blame.hunks.push(Hunk {
                    start_line: line,
                    hash: hash.clone(),
                    author: origin.author,
                    date,
                    summary: origin.summary,
                    lines: vec![content.to_owned()],
                }),
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
                "author" => value.clone_into(&mut origin.author),
                "author-time" => origin.time = value.parse().unwrap_or(0),
                "author-tz" => value.clone_into(&mut origin.zone),
                "summary" => value.clone_into(&mut origin.summary),
                _ => {}
            }
        }
    }
    if cut {
        blame.next_line = Some(line.max(1));
    }
    (blame, text)
}

/// The day of a time in seconds since 1970, in a zone such as `+0130`.
fn day(seconds: i64, zone: &str) -> String {
    let number: i64 = zone.parse().unwrap_or(0);
    let offset = (number / 100) * 3_600 + (number % 100) * 60;
    let days = seconds.saturating_add(offset).div_euclid(86_400);
    // Days to a date of the Gregorian calendar, counted in eras of 400 years from 1 March of year 0.
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let of_era = shifted.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month_shifted + 2) / 5 + 1;
    let month = if month_shifted < 10 { month_shifted + 3 } else { month_shifted - 9 };
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct GrepArgs {
    /// The repository, or a directory in it.
    repo_path: String,
    /// An extended regular expression, or with fixed the text itself.
    pattern: String,
    /// Search as of this revision; the tracked files as they are now when left out.
    #[serde(default)]
    revision: Option<String>,
    /// Only these files and directories, relative to the top level.
    #[serde(default)]
    paths: Vec<String>,
    /// Take the pattern as text.
    #[serde(default)]
    fixed: bool,
    /// Take no notice of case.
    #[serde(default)]
    ignore_case: bool,
    /// Search new files too that git does not track yet (and does not ignore).
    #[serde(default)]
    untracked: bool,
    /// Matches to answer at most; 200 when left out.
    #[serde(default)]
    max_count: Option<u32>,
    /// next_cursor of the answer before, to go on.
    #[serde(default)]
    cursor: Option<String>,
}

/// Lines that match.
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
    /// The line; cut when it is longer than 500 bytes.
    text: String,
}

pub(crate) async fn grep(git: &Git, cx: &Cx, q: GrepArgs) -> Result<Shown<Matches>, Error> {
    if q.pattern.is_empty() || q.pattern.contains(['\0', '\n']) || q.pattern.len() > PATTERN_MAX {
        let fault = Fault::new("The pattern is empty, longer than 10000 bytes or holds a line feed");
        return Err(fault.hint("Search for one line's text.").into());
    }
    let repo = git.repo(cx, &q.repo_path, Mode::Read).await?;
    let mut command = vec!["grep", "-I", "-n", "--column", "-z", "--no-color", "--full-name", "--no-recurse-submodules"];
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
    let done = repo.run(args_and(&command, &paths), Keep::Upto(GREP_BYTES_MAX), Vec::new()).await?;
    // Exit code 1 says that nothing was found.
    if !done.good() && !(done.code == Some(1) && done.err.is_empty()) {
        return Err(repo.failed(&done).into());
    }
    let found = parse_grep(&done.out, revision.as_deref(), done.cut);
    let most = q.max_count.map_or(GREP_DEFAULT, |most| usize::try_from(most).unwrap_or(usize::MAX)).clamp(1, GREP_MAX);
    let (page, mut paging) = Paging::of(&found, q.cursor.as_deref(), most)?;
    let mut text = String::new();
    let mut kept = 0;
    for found in page {
        let line = format!("{}:{}:{}\n", found.path, found.line, found.text);
        if kept > 0 && text.len() + line.len() > repo.max {
            let start: usize = q.cursor.as_deref().and_then(|cursor| cursor.parse().ok()).unwrap_or(0);
            paging = Paging::more((start + kept).to_string());
            break;
        }
        text.push_str(&line);
        kept += 1;
    }
    let mut notice = paging.notice();
    if done.cut && notice.is_none() {
        paging.truncated = true;
        notice = Some("[Cut: too many lines match. Narrow the pattern or name paths.]".to_owned());
    }
    if text.is_empty() {
        text = "No matches".to_owned();
    }
    let value = Matches { matches: page[..kept].to_vec(), paging };
    Ok(Shown::outside(text.trim_end_matches('\n'), value).notice(notice))
}

/// Records of `path NUL line NUL column NUL text LF`; with a revision, its id and `:` come before the path.
fn parse_grep(out: &[u8], revision: Option<&str>, cut: bool) -> Vec<Match> {
    let mut found = Vec::new();
    let mut rest = out;
    while !rest.is_empty() {
        let mut parts = rest.splitn(4, |byte| *byte == 0);
        let (Some(path), Some(line), Some(column), Some(tail)) = (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            break;
        };
        let end = tail.iter().position(|byte| *byte == b'\n');
        if end.is_none() && cut {
            break;
        }
        let end = end.unwrap_or(tail.len());
        let number = |bytes: &[u8]| lossy(bytes).parse().unwrap_or(0);
        let path = lossy(path);
        let path = revision.and_then(|id| path.strip_prefix(id)?.strip_prefix(':')).unwrap_or(&path).to_owned();
        let text = lossy(&tail[..end]);
        let text = clip(&text, LINE_MAX).text.to_owned();
        found.push(Match { path, line: number(line), column: number(column), text });
        rest = tail.get(end + 1..).unwrap_or_default();
    }
    found
}

const PATTERN_MAX: usize = 10_000;
const GREP_BYTES_MAX: usize = 8 * 1024 * 1024;
const GREP_DEFAULT: usize = 200;
const GREP_MAX: usize = 1_000;
const LINE_MAX: usize = 500;

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
        ] {
            assert_eq!(day(seconds, zone), expected, "{seconds} {zone}");
        }
    }
}
