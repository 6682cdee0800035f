//! `git_worktree`.

use crate::exec::output::{Keep, fields};
use crate::exec::program::args;
use crate::guard::Mode;
use crate::page::LIST_BYTES_MAX;
use crate::place::PATH_MAX;
use crate::repo::Answered;
use crate::repo::{COMMAND_BYTES, Git, Repo, check_name, no_dash};

use linchpin::Cx;
use linchpin_kit::{PAGE_ITEMS_MAX, Page, Paging, ToolError, ToolOutput, ToolSpec, json_len, page, resolve_symlinks};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use std::path::{Path, PathBuf};

pub(crate) const WORKTREE: ToolSpec = ToolSpec::writes(
    "git_worktree",
    "Work Trees",
    "history",
    "Lists the repository's work trees, adds one (a second directory with another branch checked out), removes one, or \
     prunes those whose directory no longer exists.",
)
.extra()
.on_request()
.destructive();

/// Actions of `git_worktree`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum WorktreeAction {
    #[default]
    List,
    Add,
    Remove,
    Prune,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct WorktreeArgs {
    /// The repository
    repo_path: String,
    /// list (default), add, remove or prune
    #[serde(default)]
    action: WorktreeAction,
    /// Directory of the work tree; relative paths are relative to the top level
    #[serde(default)]
    path: Option<String>,
    /// For add: the branch, tag or commit to check out (default HEAD)
    #[serde(default)]
    revision: Option<String>,
    /// For add: create this branch and check it out
    #[serde(default)]
    new_branch: Option<String>,
    /// For remove: also if it has changes, which are lost
    #[serde(default)]
    force: bool,
    /// From next_cursor
    #[serde(default)]
    cursor: Option<String>,
}

/// Work trees.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Worktrees {
    /// A summary.
    message: String,
    /// After actions other than list truncated if there are too many.
    worktrees: Vec<Worktree>,
    #[serde(flatten)]
    paging: Paging,
}

/// One work tree.
#[derive(Debug, Clone, Serialize, JsonSchema)]
struct Worktree {
    path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    head: Option<String>,
    /// The checked-out branch; absent if HEAD is detached.
    #[serde(skip_serializing_if = "Option::is_none")]
    branch: Option<String>,
    /// Whether it is locked against removal.
    locked: bool,
    /// Whether its directory no longer exists.
    prunable: bool,
}

pub(crate) async fn worktree(git: &Git, cx: &Cx, q: WorktreeArgs) -> Answered<Worktrees> {
    for (name, value) in [("path", &q.path), ("revision", &q.revision), ("branch name", &q.new_branch)] {
        no_dash(name, value.as_deref().unwrap_or_default())?;
    }
    let mode = if q.action == WorktreeAction::List { Mode::Read } else { Mode::Write };
    let repo = git.repo(cx, &q.repo_path, mode).await?;
    let message = match q.action {
        WorktreeAction::List => {
            let all = worktrees(&repo).await?;
            let line = |tree: &Worktree| {
                let what = tree.branch.clone().or_else(|| tree.head.clone()).unwrap_or_default();
                format!("{} {what}", tree.path)
            };
            let Page { items, text, paging } =
                page(&all, q.cursor.as_deref(), PAGE_ITEMS_MAX, repo.budget(), |tree| {
                    (line(tree).into(), json_len(tree))
                })?;
            let (message, notice) = (format!("Work trees: {}", all.len()), paging.notice());
            return Ok(
                ToolOutput::outside(text, Worktrees { message, worktrees: items.to_vec(), paging }).notice(notice)
            );
        }
        WorktreeAction::Prune => {
            repo.must(&["worktree", "prune"]).await?;
            "Pruned the work trees whose directories no longer exist".to_owned()
        }
        WorktreeAction::Add => add_worktree(&repo, &q).await?,
        WorktreeAction::Remove => {
            let path = worktree_path(&repo, q.path.as_deref())?;
            let known = worktrees(&repo).await?.iter().any(|tree| resolve_symlinks(Path::new(&tree.path)) == path);
            if !known || path == repo.place.top {
                let fault =
                    ToolError::not_found(format!("'{}' is not a linked work tree of this repository", path.display()));
                return Err(fault.hint("git_worktree lists them.").into());
            }
            let mut command = args(&["worktree", "remove"]);
            if q.force {
                command.push("--force".into());
            }
            command.push("--".into());
            command.push(path.clone().into());
            let done = repo.run(command, Keep::Head(COMMAND_BYTES), Vec::new()).await?;
            if !done.good() {
                return Err(repo.failed(&done).into());
            }
            format!("Removed the work tree {}", path.display())
        }
    };
    // A failure to list the result does not make the action a failure.
    let mut worktrees = worktrees(&repo).await.unwrap_or_default();
    worktrees.truncate(repo.budget().part(2).count(&worktrees));
    Ok(ToolOutput::ours(message.clone(), Worktrees { message, worktrees, paging: Paging::whole() }))
}

async fn add_worktree(repo: &Repo, q: &WorktreeArgs) -> Result<String, ToolError> {
    let path = worktree_path(repo, q.path.as_deref())?;
    if path.symlink_metadata().is_ok() {
        return Err(ToolError::conflict(format!("'{}' already exists", path.display())).hint("Use a new directory."));
    }
    let revision = q.revision.as_deref().filter(|revision| !revision.is_empty()).unwrap_or("HEAD");
    let hash = repo.commit(revision).await?;
    let mut command = args(&["worktree", "add", "--quiet", "--no-guess-remote"]);
    let branch = q.new_branch.as_deref().filter(|branch| !branch.is_empty());
    let full = format!("refs/heads/{revision}");
    let is_branch = revision != "HEAD" && repo.ask(&["show-ref", "--verify", "--quiet", &full]).await?.good();
    match branch {
        Some(branch) => {
            check_name(repo, "branch", "refs/heads", branch).await?;
            command.extend(args(&["--no-track", "-b", branch, "--"]));
            command.extend([path.clone().into(), hash.into()]);
        }
        None if is_branch => {
            command.push("--".into());
            command.extend([path.clone().into(), revision.into()]);
        }
        None => {
            command.extend(args(&["--detach", "--"]));
            command.extend([path.clone().into(), hash.into()]);
        }
    }
    let done = repo.run(command, Keep::Head(COMMAND_BYTES), Vec::new()).await?;
    if !done.good() {
        return Err(repo.failed(&done));
    }
    let what = branch.unwrap_or(revision);
    Ok(format!("Added the work tree {} with {what}", path.display()))
}

/// Checks the location of a new work tree: inside the allowed directories or, if everything is allowed, in the
/// repository or next to it under a name that is not hidden. Never in a git directory.
fn worktree_path(repo: &Repo, given: Option<&str>) -> Result<PathBuf, ToolError> {
    let given = given.filter(|path| !path.is_empty()).ok_or_else(|| ToolError::invalid("path is missing"))?;
    if given.contains('\0') || given.len() > PATH_MAX {
        return Err(ToolError::invalid("Invalid path: it contains a NUL character or is too long"));
    }
    let path = resolve_symlinks(&repo.place.top.join(given));
    let top = &repo.place.top;
    let beside = path.parent() == top.parent()
        && path.file_name().is_some_and(|name| !name.as_encoded_bytes().starts_with(b"."));
    let allowed = if repo.bounds.any { path.starts_with(top) || beside } else { repo.bounds.hold(&path) };
    let in_git = path.components().any(|part| part.as_os_str() == ".git") || path.starts_with(&repo.place.common);
    if !allowed || in_git && !repo.place.bare {
        return Err(ToolError::denied(format!("A work tree is not allowed at '{given}'"))
            .hint(format!("Use a path below {}.", top.display())));
    }
    Ok(path)
}

async fn worktrees(repo: &Repo) -> Result<Vec<Worktree>, ToolError> {
    let done =
        repo.run(args(&["worktree", "list", "--porcelain", "-z"]), Keep::Upto(LIST_BYTES_MAX), Vec::new()).await?;
    if !done.good() {
        return Err(repo.failed(&done));
    }
    let mut all: Vec<Worktree> = Vec::new();
    for line in fields(&done.out) {
        let (key, value) = line.split_once(' ').unwrap_or((&line, ""));
        if key == "worktree" {
            all.push(Worktree { path: value.to_owned(), head: None, branch: None, locked: false, prunable: false });
            continue;
        }
        let Some(last) = all.last_mut() else { continue };
        match key {
            "HEAD" => last.head = Some(value.to_owned()),
            "branch" => last.branch = Some(value.trim_start_matches("refs/heads/").to_owned()),
            "locked" => last.locked = true,
            "prunable" => last.prunable = true,
            _ => {}
        }
    }
    Ok(all)
}
