//! `git_log`.

use crate::compare::sides;
use crate::exec::output::{Keep, fields};
use crate::exec::program::args;
use crate::guard::Mode;
use crate::parse::log::{COMMIT_FORMAT, Commit, commits, iso_date, python_date};
use crate::repo::Answered;
use crate::repo::{Git, Repo, no_dash, unresolved};

use linchpin::Cx;
use linchpin_kit::{PAGE_ITEMS_MAX, Paging, ToolError, ToolOutput, ToolSpec, json_len};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(crate) const LOG: ToolSpec = ToolSpec::reads(
    "git_log",
    "Log",
    "read",
    "Lists commits, newest first, limited by date, revision or changed paths.",
);

fn ten() -> i64 {
    10
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct LogArgs {
    /// The repository
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

pub(crate) async fn log(git: &Git, cx: &Cx, q: LogArgs) -> Answered<Log> {
    let mut command =
        args(&["log", "-z", COMMIT_FORMAT, "--no-show-signature", "--no-notes", "--no-decorate", "--no-patch"]);
    for (name, flag, value) in
        [("start_timestamp", "--since", &q.start_timestamp), ("end_timestamp", "--until", &q.end_timestamp)]
    {
        if let Some(value) = value.as_deref().filter(|value| !value.is_empty()) {
            no_dash(name, value)?;
            if value.len() > TIME_MAX {
                return Err(ToolError::invalid(format!("Invalid {name}: longer than {TIME_MAX} bytes")).into());
            }
            command.push(format!("{flag}={value}").into());
        }
    }
    let revision = q.revision.as_deref().filter(|revision| !revision.is_empty()).unwrap_or("HEAD");
    no_dash("revision", revision)?;
    let skip = Paging::start(q.cursor.as_deref(), usize::MAX)?;
    let repo = git.repo(cx, &q.repo_path, Mode::Read).await?;
    // HEAD is the only name that cannot mean anything else.
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

/// `cut` if `out` is incomplete: its last commit is then partial.
fn log_answer(repo: &Repo, out: &[u8], cut: bool, skip: usize, asked: usize) -> ToolOutput<Log> {
    let room_for = asked.saturating_sub(skip);
    let mut found = commits(out);
    if cut {
        // The last commit may be incomplete. If it is the only one, the part that is there is shown.
        found.truncate(((fields(out).len().max(1) - 1) / 6).max(1));
    }
    found.truncate(room_for);
    let mut budget = repo.budget().beside(LOG_HEADING.len(), 0);
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
            // At least one commit is shown, with as much of its message as fits.
            let message = std::mem::take(&mut commit.message);
            let left = budget.beside(head.len() + 2, json_len(&commit) + 2);
            let (text, taken) = left.text(message.as_bytes(), 0, false);
            long = (taken < message.len()).then(|| commit.hash.clone());
            commit.message = text;
        }
        if !budget.takes(head.len() + commit.message.len() + 2, json_len(&commit) + 1) {
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

/// Maximum bytes read of a log, in addition to the text of a result.
const LOG_BYTES: usize = 64 * 1024;

pub(crate) const TIME_MAX: usize = 200;
