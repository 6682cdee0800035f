//! Tools that combine histories, and work trees: merge, rebase, cherry_pick, worktree.
//!
//! A merge that stops at conflicts has made changes, so it is a result, not an error.

use crate::guard::{Mode, STRATEGIES};
use crate::page::{LIST_BYTES_MAX, few};
use crate::place::PATH_MAX;
use crate::run::{Keep, args, args_and};
use crate::write::{COMMAND_BYTES, check_name};
use crate::{Git, Repo, fields, no_dash};
use linchpin::{Cx, Error};
use linchpin_kit::{PAGE_ITEMS_MAX, Page, Paging, ToolError, ToolOutput, json_len, page, resolve_symlinks};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

type Answered<T> = Result<ToolOutput<T>, Error>;

/// The status of the operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Progress {
    /// Done.
    Done,
    /// Nothing to do.
    UpToDate,
    /// Stopped at conflicts to be resolved.
    Conflicts,
    /// Aborted; everything is as before.
    Aborted,
}

/// The result of a merge, rebase or cherry-pick.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Joined {
    status: Progress,
    /// The current commit.
    #[serde(skip_serializing_if = "Option::is_none")]
    head: Option<String>,
    /// Paths with conflicts, truncated if there are too many.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    conflicts: Vec<String>,
    /// A summary.
    message: String,
}

/// The result of a command that may stop at conflicts.
pub(crate) async fn joined(
    repo: &Repo,
    command: Vec<std::ffi::OsString>,
    done_words: &str,
    resume: &str,
) -> Result<ToolOutput<Joined>, ToolError> {
    let before = repo.resolve("HEAD", "commit").await?;
    let done = repo.run(command, Keep::Head(COMMAND_BYTES), Vec::new()).await?;
    // From here on, a failed query does not make the operation a failure.
    let conflicts = repo.conflicts().await;
    let conflicts = if done.good() { conflicts.unwrap_or_default() } else { conflicts? };
    let complaint = done.complaint();
    // Refused because of earlier conflicts; nothing was done.
    let refused = IN_THE_WAY.iter().any(|words| complaint.contains(words));
    if !done.good() && (conflicts.is_empty() || refused) {
        return Err(repo.failed(&done));
    }
    let head = repo.resolve("HEAD", "commit").await.unwrap_or_default();
    let (conflicts, told) = few(conflicts, repo.room().part(3));
    let stopped = !conflicts.is_empty() && !done.good();
    let (status, message) = if stopped {
        (Progress::Conflicts, format!("Stopped at conflicts in: {told}."))
    } else if head.is_some() && head == before && done_words.starts_with("Merged") {
        (Progress::UpToDate, "Already up to date".to_owned())
    } else {
        let now = head.as_deref().unwrap_or("the commit that git_log lists first");
        (Progress::Done, format!("{done_words}; HEAD is now {now}"))
    };
    let advice = stopped.then(|| format!("{resume} git_status lists all conflicts."));
    Ok(ToolOutput::ours(message.clone(), Joined { status, head, conflicts, message }).notice(advice))
}

async fn aborted(repo: &Repo, what: &str) -> Answered<Joined> {
    repo.must(&[what, "--abort"]).await?;
    let head = repo.resolve("HEAD", "commit").await.unwrap_or_default();
    let message = format!("The {what} was aborted");
    Ok(ToolOutput::ours(message.clone(), Joined { status: Progress::Aborted, head, conflicts: Vec::new(), message }))
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct MergeArgs {
    /// Path of the repository
    repo_path: String,
    /// The branch, tag or commit to merge into the current branch; not needed with abort
    #[serde(default)]
    branch: Option<String>,
    /// Message of the merge commit
    #[serde(default)]
    message: Option<String>,
    /// Create a merge commit even if a fast-forward is possible
    #[serde(default)]
    no_ff: bool,
    /// Fast-forward only; fail otherwise
    #[serde(default)]
    ff_only: bool,
    /// Only stage the changes, without a merge commit
    #[serde(default)]
    squash: bool,
    /// Abort a merge that stopped at conflicts
    #[serde(default)]
    abort: bool,
}

pub(crate) async fn merge(git: &Git, cx: &Cx, q: MergeArgs) -> Answered<Joined> {
    let branch = q.branch.as_deref().unwrap_or_default();
    no_dash("branch", branch)?;
    if q.message.as_ref().is_some_and(|message| message.contains('\0')) {
        return Err(ToolError::new("Invalid message: it contains a NUL character").into());
    }
    if u8::from(q.no_ff) + u8::from(q.ff_only) + u8::from(q.squash) > 1 {
        return Err(ToolError::new("no_ff, ff_only and squash are mutually exclusive").into());
    }
    let repo = git.repo(cx, &q.repo_path, Mode::Write).await?;
    repo.needs_worktree()?;
    if q.abort {
        return aborted(&repo, "merge").await;
    }
    if branch.is_empty() {
        return Err(ToolError::new("branch is missing").hint("Pass the branch to merge, or abort.").into());
    }
    let hash = repo.commit(branch).await?;
    let message = match q.message {
        Some(message) if !message.is_empty() => message,
        _ => merge_message(&repo, branch).await?,
    };
    let flag = match (q.no_ff, q.ff_only, q.squash) {
        (true, ..) => "--no-ff",
        (_, true, _) => "--ff-only",
        (.., true) => "--squash",
        _ => "--ff",
    };
    let mut command = merge_command(&repo, flag);
    if !q.squash && !q.ff_only {
        command.extend(args(&["-m", &message]));
    }
    command.push(hash.into());
    let words = if q.squash { "Staged, not committed" } else { "Merged" };
    let resume = "Resolve them, git_add the files and git_commit; or git_merge with abort.";
    Ok(joined(&repo, command, words, resume).await?)
}

/// `git merge` with all optional behaviour disabled.
pub(crate) fn merge_command(repo: &Repo, flag: &str) -> Vec<std::ffi::OsString> {
    let mut command = args(&[
        "merge",
        "--quiet",
        "--no-edit",
        "--no-stat",
        "--no-autostash",
        "--no-verify-signatures",
        repo.sign(),
        flag,
    ]);
    if !repo.config().trust_repo_config {
        command.push("--no-verify".into());
    }
    command
}

/// The default message that git writes for a name instead of an object id.
async fn merge_message(repo: &Repo, branch: &str) -> Result<String, ToolError> {
    let mut kind = "commit";
    for (space, name) in [("heads", "branch"), ("remotes", "remote-tracking branch"), ("tags", "tag")] {
        if repo.ask(&["show-ref", "--verify", "--quiet", &format!("refs/{space}/{branch}")]).await?.good() {
            kind = name;
            break;
        }
    }
    let into = match repo.current().await? {
        Some(current) if current != "main" && current != "master" => format!(" into {current}"),
        None => " into HEAD".to_owned(),
        Some(_) => String::new(),
    };
    Ok(format!("Merge {kind} '{branch}'{into}"))
}

/// How to proceed with a stopped operation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Step {
    #[default]
    Start,
    Continue,
    Skip,
    Abort,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct RebaseArgs {
    /// Path of the repository
    repo_path: String,
    /// start (default), or continue, skip or abort a stopped one
    #[serde(default)]
    action: Step,
    /// For start: the branch or commit to rebase onto; commits of the current branch that it lacks are replayed
    #[serde(default)]
    upstream: Option<String>,
    /// For start: the new base, if other than upstream
    #[serde(default)]
    onto: Option<String>,
    /// For start: must be true, because commits are replaced by new ones
    #[serde(default)]
    confirm: bool,
}

pub(crate) async fn rebase(git: &Git, cx: &Cx, q: RebaseArgs) -> Answered<Joined> {
    for (name, value) in [("upstream", &q.upstream), ("onto", &q.onto)] {
        no_dash(name, value.as_deref().unwrap_or_default())?;
    }
    let repo = git.repo(cx, &q.repo_path, Mode::Write).await?;
    repo.needs_worktree()?;
    let resume = "Resolve them and git_add the files, then git_rebase with action continue, skip or abort.";
    match q.action {
        Step::Abort => return aborted(&repo, "rebase").await,
        _ if repo.guard.strategy => return Err(foreign_strategy().into()),
        Step::Continue | Step::Skip => {
            if !repo.config().trust_repo_config {
                let (dir, sign) = (repo.place.git_dir.clone(), repo.config().sign);
                tokio::task::spawn_blocking(move || harmless_plan(&dir, sign))
                    .await
                    .map_err(|_| ToolError::new("Checking the rebase failed unexpectedly"))??;
            }
            let step = if q.action == Step::Skip { "--skip" } else { "--continue" };
            return Ok(joined(&repo, args(&["rebase", step]), "Rebased", resume).await?);
        }
        Step::Start => {}
    }
    let Some(upstream) = q.upstream.as_deref().filter(|upstream| !upstream.is_empty()) else {
        return Err(ToolError::new("upstream is missing").hint("Pass the branch to rebase onto.").into());
    };
    let upstream_id = repo.commit(upstream).await?;
    let onto_id = match q.onto.as_deref().filter(|onto| !onto.is_empty()) {
        Some(onto) => repo.commit(onto).await?,
        None => upstream_id.clone(),
    };
    if !q.confirm {
        let count = repo.must(&["rev-list", "--count", &format!("{upstream_id}..HEAD")]).await?.text();
        let branch = repo.current().await?.unwrap_or_else(|| "HEAD".to_owned());
        let fault = ToolError::new(format!(
            "Not confirmed: {count} commits of {branch} would be replaced by new ones on {upstream}"
        ));
        return Err(fault
            .hint("Pass confirm: true to proceed. Do not rebase commits that others already have.")
            .into());
    }
    let mut command = args(&[
        "rebase",
        "--quiet",
        "--merge",
        "--no-stat",
        "--no-autostash",
        "--no-autosquash",
        "--no-fork-point",
        "--no-reschedule-failed-exec",
        repo.sign(),
    ]);
    if !repo.config().trust_repo_config {
        command.push("--no-verify".into());
    }
    command.push(format!("--onto={onto_id}").into());
    command.push(upstream_id.into());
    Ok(joined(&repo, command, "Rebased", resume).await?)
}

fn foreign_strategy() -> ToolError {
    ToolError::new("The repository's own configuration names a merge strategy that is a program: pull.twohead")
        .hint("Nothing was run. Use git_merge, or the operator can allow it with --trust-repo-config.")
}

/// Refuses to continue a rebase or cherry-pick whose state files, which may have come with the repository, run programs
/// or change how commits are signed.
fn harmless_plan(git_dir: &Path, sign: bool) -> Result<(), ToolError> {
    let trap = |what: &str| {
        ToolError::new(format!("The operation in progress is set up to run programs ({what})"))
            .hint("Abort it with action abort, or finish it manually.")
    };
    let read = |path: PathBuf| -> Result<Option<String>, ToolError> {
        if path.symlink_metadata().is_err() {
            return Ok(None);
        }
        let fine = std::fs::metadata(&path).is_ok_and(|meta| meta.is_file() && meta.len() <= PLAN_MAX);
        let text = if fine { std::fs::read_to_string(&path).ok() } else { None };
        text.map(Some).ok_or_else(|| trap(&path.file_name().unwrap_or_default().to_string_lossy()))
    };
    if git_dir.join("rebase-apply").exists() {
        return Err(trap("rebase-apply"));
    }
    for file in ["rebase-merge/git-rebase-todo", "sequencer/todo"] {
        let Some(plan) = read(git_dir.join(file))? else { continue };
        for line in plan.lines().map(str::trim_start) {
            let word = line.split_whitespace().next().unwrap_or_default();
            if !word.is_empty() && !word.starts_with('#') && !STEPS.contains(&word) {
                return Err(trap(file));
            }
        }
    }
    if let Some(strategy) = read(git_dir.join("rebase-merge/strategy"))?
        && !STRATEGIES.contains(&strategy.trim())
    {
        return Err(trap("rebase-merge/strategy"));
    }
    let signed = read(git_dir.join("rebase-merge/gpg_sign_opt"))?.map(|option| option.trim() != "-S" || !sign);
    let picked = read(git_dir.join("sequencer/opts"))?.unwrap_or_default().to_lowercase();
    let key = picked.lines().find_map(|line| line.trim_start().strip_prefix("gpg-sign"));
    if signed == Some(true) || key.is_some_and(|key| !sign || !["", "="].contains(&key.trim())) {
        return Err(ToolError::new("The operation in progress has its own settings for signing commits")
            .hint("Abort it with action abort, or finish it manually."));
    }
    if let Some(options) = read(git_dir.join("sequencer/opts"))?
        && (options.to_lowercase().contains("strategy") || options.to_lowercase().contains("include"))
    {
        return Err(trap("sequencer/opts"));
    }
    Ok(())
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct CherryPickArgs {
    /// Path of the repository
    repo_path: String,
    /// start (default), or continue, skip or abort a stopped one
    #[serde(default)]
    action: Step,
    /// For start: the commits to apply, in this order; ranges as a..b
    #[serde(default)]
    revisions: Vec<String>,
    /// Only stage the changes
    #[serde(default)]
    no_commit: bool,
    /// Add the original commit to the message
    #[serde(default)]
    record_origin: bool,
    /// For merge commits: the number of the mainline parent, from 1
    #[serde(default)]
    mainline: Option<u8>,
}

pub(crate) async fn cherry_pick(git: &Git, cx: &Cx, q: CherryPickArgs) -> Answered<Joined> {
    for revision in &q.revisions {
        no_dash("revision", revision)?;
    }
    let repo = git.repo(cx, &q.repo_path, Mode::Write).await?;
    repo.needs_worktree()?;
    let resume = "Resolve them and git_add the files, then git_cherry_pick with action continue, skip or abort.";
    match q.action {
        Step::Abort => return aborted(&repo, "cherry-pick").await,
        _ if repo.guard.strategy => return Err(foreign_strategy().into()),
        Step::Continue | Step::Skip => {
            if !repo.config().trust_repo_config {
                let (dir, sign) = (repo.place.git_dir.clone(), repo.config().sign);
                tokio::task::spawn_blocking(move || harmless_plan(&dir, sign))
                    .await
                    .map_err(|_| ToolError::new("Checking the cherry-pick failed unexpectedly"))??;
            }
            let step = if q.action == Step::Skip { "--skip" } else { "--continue" };
            return Ok(joined(&repo, args(&["cherry-pick", step]), "Picked", resume).await?);
        }
        Step::Start => {}
    }
    let mut hashes = Vec::new();
    for revision in &q.revisions {
        match revision.split_once("..") {
            Some((from, to)) if !to.starts_with('.') => {
                no_dash("revision", to)?;
                let (from, to) = (repo.commit(from).await?, repo.commit(to).await?);
                let list =
                    repo.must(&["rev-list", "--reverse", "--max-count=101", &format!("{from}..{to}")]).await?.text();
                hashes.extend(list.lines().map(str::to_owned));
            }
            _ => hashes.push(repo.commit(revision).await?),
        }
        if hashes.len() > PICKS_MAX {
            return Err(ToolError::new("More than 100 commits at once").hint("Pick fewer commits at a time.").into());
        }
    }
    if hashes.is_empty() {
        return Err(ToolError::new("revisions resolves to no commit").hint("Pass at least one commit.").into());
    }
    let mut command = vec!["cherry-pick", repo.sign()];
    if q.no_commit {
        command.push("--no-commit");
    }
    if q.record_origin {
        command.push("-x");
    }
    let mainline = q.mainline.map(|parent| format!("--mainline={parent}"));
    command.extend(mainline.as_deref());
    let words = if q.no_commit { "Staged, not committed" } else { "Picked" };
    Ok(joined(&repo, args_and(&command, &hashes), words, resume).await?)
}

/// What `git_worktree` does.
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
    /// Path of the repository
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
            let Page { items, text, paging } = page(&all, q.cursor.as_deref(), PAGE_ITEMS_MAX, repo.room(), |tree| {
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
    worktrees.truncate(repo.room().part(2).count(&worktrees));
    Ok(ToolOutput::ours(message.clone(), Worktrees { message, worktrees, paging: Paging::whole() }))
}

async fn add_worktree(repo: &Repo, q: &WorktreeArgs) -> Result<String, ToolError> {
    let path = worktree_path(repo, q.path.as_deref())?;
    if path.symlink_metadata().is_ok() {
        return Err(ToolError::new(format!("'{}' already exists", path.display())).hint("Use a new directory."));
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
/// repository or beside it under a name that is not hidden. Never in a git directory.
fn worktree_path(repo: &Repo, given: Option<&str>) -> Result<PathBuf, ToolError> {
    let given = given.filter(|path| !path.is_empty()).ok_or_else(|| ToolError::new("path is missing"))?;
    if given.contains('\0') || given.len() > PATH_MAX {
        return Err(ToolError::new("Invalid path: it contains a NUL character or is too long"));
    }
    let path = resolve_symlinks(&repo.place.top.join(given));
    let top = &repo.place.top;
    let beside = path.parent() == top.parent()
        && path.file_name().is_some_and(|name| !name.as_encoded_bytes().starts_with(b"."));
    let allowed = if repo.bounds.any { path.starts_with(top) || beside } else { repo.bounds.hold(&path) };
    let in_git = path.components().any(|part| part.as_os_str() == ".git") || path.starts_with(&repo.place.common);
    if !allowed || in_git && !repo.place.bare {
        return Err(ToolError::new(format!("A work tree is not allowed at '{given}'"))
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

/// The commands that a rebase plan may contain: all but `exec`.
const STEPS: &[&str] = &[
    "pick",
    "p",
    "reword",
    "r",
    "edit",
    "e",
    "squash",
    "s",
    "fixup",
    "f",
    "drop",
    "d",
    "label",
    "l",
    "reset",
    "t",
    "merge",
    "m",
    "break",
    "b",
    "noop",
    "update-ref",
    "u",
    "revert",
];

/// Git's messages about another operation in progress.
const IN_THE_WAY: &[&str] = &[
    "unmerged files",
    "not concluded",
    "needs merge",
    "must edit all merge conflicts",
    "already in progress",
    "already a rebase",
];

const PLAN_MAX: u64 = 4 * 1024 * 1024;
const PICKS_MAX: usize = 100;
