//! `git_grep`.

use crate::exec::output::{Keep, lossy};
use crate::exec::program::args_and;
use crate::guard::Mode;
use crate::page::{PART_BYTES_MAX, brief};
use crate::place::Place;
use crate::repo::{Git, no_dash, unresolved};
use linchpin::{Cx, Error};
use linchpin_kit::{Page, Paging, ToolError, ToolOutput, ToolSpec, json_len, page};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use std::path::PathBuf;

pub(crate) const GREP: ToolSpec = ToolSpec::reads(
    "git_grep",
    "Search",
    "read",
    "Finds lines that match a regular expression in tracked files of the work tree or a revision.",
)
.extra();

#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct GrepArgs {
    /// The repository
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
        let fault = ToolError::invalid("The pattern is empty, longer than 10000 bytes or contains a line feed");
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
    // After -e, the pattern may begin with anything.
    command.extend(["-e", &q.pattern]);
    command.extend(revision.as_deref());
    command.push("--");
    let paths = repo.paths(&q.paths)?;
    let done = repo.run(args_and(&command, &paths), Keep::Parts(PART_BYTES_MAX, GREP_BYTES_MAX), Vec::new()).await?;
    // Exit code 1: nothing was found.
    let nothing = done.code == Some(1) && done.err.is_empty();
    if !done.good() && !nothing {
        return Err(repo.failed(&done).into());
    }
    let (place, of, cut) = (repo.place.clone(), revision.clone(), done.cut);
    let found = tokio::task::spawn_blocking(move || parse_grep(&done.out, of.as_deref(), cut, &place)).await;
    let found = found.map_err(|_| ToolError::new("Checking the matches failed unexpectedly"))?;
    let most = q.max_count.map_or(GREP_DEFAULT, |most| usize::try_from(most).unwrap_or(usize::MAX)).clamp(1, GREP_MAX);
    let Page { items, mut text, mut paging } = page(&found, q.cursor.as_deref(), most, repo.budget(), |found| {
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

/// Parses records of `path NUL line NUL column NUL text LF`; with a revision, its id and `:` precede the path. In the
/// work tree git follows symlinks to files, so files that are elsewhere are dropped.
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

/// A path as git prints it.
fn native(bytes: &[u8]) -> PathBuf {
    #[cfg(unix)]
    return PathBuf::from(<std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(bytes));
    #[cfg(not(unix))]
    PathBuf::from(lossy(bytes))
}

const PATTERN_MAX: usize = 10_000;

const GREP_BYTES_MAX: usize = 8 * 1024 * 1024;

const GREP_DEFAULT: usize = 200;

const GREP_MAX: usize = 1_000;
