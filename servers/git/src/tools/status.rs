//! `git_status`.

use crate::exec::output::{Keep, whole_records};
use crate::exec::program::args;
use crate::guard::Mode;
use crate::page::{Both, LIST_BYTES_MAX, both, mark, still};
use crate::parse::porcelain::{Status, parse_status};
use crate::repo::Answered;
use crate::repo::Git;
use linchpin::Cx;
use linchpin_kit::{Paging, ToolOutput, ToolSpec, json_len};
use schemars::JsonSchema;
use serde::Deserialize;

pub(crate) const STATUS: ToolSpec = ToolSpec::reads(
    "git_status",
    "Status",
    "read",
    "Shows the current branch and the staged, unstaged and untracked changes.",
);

#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct StatusArgs {
    /// The repository
    repo_path: String,
    /// From next_cursor
    #[serde(default)]
    cursor: Option<String>,
}

pub(crate) async fn status(git: &Git, cx: &Cx, q: StatusArgs) -> Answered<Status> {
    let mark = mark(q.cursor.as_deref())?;
    let repo = git.repo(cx, &q.repo_path, Mode::Read).await?;
    // Nothing here depends on the locale, and the C locale loads faster.
    let plain = || vec![("LC_ALL", "C".into())];
    let limit = repo.config().limit(false);
    let long = args(&["status", "--ignore-submodules=dirty"]);
    let long = repo.run_with(long, Keep::From(mark.at[0], repo.max), Vec::new(), plain(), limit);
    let parts = args(&["status", "--porcelain=v2", "--branch", "-z", "--ignore-submodules=dirty"]);
    let parts = repo.run_with(parts, Keep::Upto(LIST_BYTES_MAX), Vec::new(), plain(), limit);
    let (long, parts) = tokio::join!(long, parts);
    let (long, parts) = (long?, parts?);
    if !long.good() {
        return Err(repo.failed(&long).into());
    }
    if !parts.good() {
        return Err(repo.failed(&parts).into());
    }
    let mut status = parse_status(whole_records(&parts.out, parts.cut, 0));
    let entries = std::mem::take(&mut status.entries);
    let mark = still(mark, &parts.out, &long.out, &entries)?;
    let budget = repo.budget().beside(STATUS_HEADING.len(), json_len(&status));
    let Both { text, items, next } = both(mark, &long.out, long.cut, entries, budget);
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
