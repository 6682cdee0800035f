//! `git_branch`.

use crate::exec::output::{Keep, lossy, whole_records};
use crate::exec::program::args_and;
use crate::guard::Mode;
use crate::page::{LIST_BYTES_MAX, PART_BYTES_MAX, brief};
use crate::repo::Answered;
use crate::repo::{Git, no_dash};
use linchpin::Cx;
use linchpin_kit::{PAGE_ITEMS_MAX, Page, Paging, ToolError, ToolOutput, ToolSpec, clip, json_len, page};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(crate) const BRANCH: ToolSpec = ToolSpec::reads("git_branch", "List Branches", "read", "Lists branches.");

#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct BranchArgs {
    /// The repository
    repo_path: String,
    /// local, remote or all
    branch_type: String,
    /// Only those that contain this commit
    #[serde(default)]
    contains: Option<String>,
    /// Only those without this commit
    #[serde(default)]
    not_contains: Option<String>,
    /// From next_cursor
    #[serde(default)]
    cursor: Option<String>,
}

/// Branches.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Branches {
    branches: Vec<Branch>,
    #[serde(flatten)]
    paging: Paging,
}

/// One branch.
#[derive(Debug, Clone, Serialize, JsonSchema)]
struct Branch {
    /// The name as other tools accept it: main, origin/main.
    name: String,
    hash: String,
    /// Whether it is the current branch.
    current: bool,
    /// Whether it is a remote-tracking branch.
    remote: bool,
    /// The upstream branch.
    #[serde(skip_serializing_if = "Option::is_none")]
    upstream: Option<String>,
    /// The first line of its last commit.
    subject: String,
}

pub(crate) async fn branch(git: &Git, cx: &Cx, q: BranchArgs) -> Answered<Branches> {
    let flag = match q.branch_type.as_str() {
        "local" => None,
        "remote" => Some("-r"),
        "all" => Some("-a"),
        other => {
            let fault = ToolError::invalid(format!("Invalid branch type: {}", clip(other, 200).text));
            return Err(fault.hint("Use local, remote or all.").into());
        }
    };
    let mut filters = Vec::new();
    for (name, flag, value) in
        [("contains value", "--contains", &q.contains), ("not_contains value", "--no-contains", &q.not_contains)]
    {
        if let Some(value) = value.as_deref().filter(|value| !value.is_empty()) {
            no_dash(name, value)?;
            filters.push((flag, value));
        }
    }
    let repo = git.repo(cx, &q.repo_path, Mode::Read).await?;
    let mut more: Vec<String> = flag.map(str::to_owned).into_iter().collect();
    for (flag, value) in filters {
        more.push(format!("{flag}={}", repo.commit(value).await?));
    }
    let command = args_and(&["branch", "--no-color", "--no-column", BRANCH_FORMAT], &more);
    let done = repo.run(command, Keep::Parts(PART_BYTES_MAX, LIST_BYTES_MAX), Vec::new()).await?;
    if !done.good() {
        return Err(repo.failed(&done).into());
    }
    let records = lossy(whole_records(&done.out, done.cut, 0));
    let parts: Vec<&str> = records.split_terminator('\0').map(|part| part.trim_start_matches('\n')).collect();
    let mut listed = parts.as_chunks().0.iter().map(|record| Listed::of(record, flag == Some("-a"))).peekable();
    // A detached HEAD is not a branch. It gets a line of its own, before all branches.
    let detached = listed.next_if(|first| !first.is_ref).map(|first| first.line);
    let all: Vec<Listed> = listed.collect();
    let start = q.cursor.is_none();
    let detached = detached.filter(|_| start).map(|line| line + "\n").unwrap_or_default();
    let budget = repo.budget().beside(detached.len(), 0);
    let Page { items, text, mut paging } = page(&all, q.cursor.as_deref(), PAGE_ITEMS_MAX, budget, |one| {
        (one.line.as_str().into(), json_len(&one.branch))
    })?;
    let text = format!("{detached}{text}").trim_end_matches('\n').to_owned();
    let branches = items.iter().map(|one| one.branch.clone()).collect();
    let mut notice = paging.notice();
    if done.cut && notice.is_none() {
        paging.truncated = true;
        notice = Some("[Truncated: too many branches. Narrow the list with contains or branch_type.]".to_owned());
    }
    Ok(ToolOutput::outside(text, Branches { branches, paging }).notice(notice))
}

/// The fields of each branch: a single run gives the text and the structured content, in the same order.
const BRANCH_FORMAT: &str = "--format=%(HEAD)%00%(worktreepath)%00%(refname)%00%(refname:lstrip=2)%00%(symref:short)%00\
                             %(objectname)%00%(upstream:short)%00%(subject)%00";

/// A line of `git branch`, and its branch.
struct Listed {
    line: String,
    is_ref: bool,
    branch: Branch,
}

impl Listed {
    /// From the eight fields of [`BRANCH_FORMAT`]; `both` if the list has local and remote branches.
    fn of([head, elsewhere, full, short, points_to, hash, upstream, subject]: &[&str; 8], both: bool) -> Self {
        let remote = full.starts_with("refs/remotes/");
        let mark = match (*head, *elsewhere) {
            ("*", _) => "* ",
            (_, "") => "  ",
            _ => "+ ",
        };
        let place = if remote && both { "remotes/" } else { "" };
        let arrow = if points_to.is_empty() { "" } else { " -> " };
        Self {
            line: format!("{mark}{place}{short}{arrow}{points_to}"),
            is_ref: full.starts_with("refs/"),
            branch: Branch {
                name: (*short).to_owned(),
                hash: (*hash).to_owned(),
                current: *head == "*",
                remote,
                upstream: Some((*upstream).to_owned()).filter(|name| !name.is_empty()),
                subject: brief(subject),
            },
        }
    }
}
