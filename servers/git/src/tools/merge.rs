//! `git_merge`.

use crate::exec::program::args;
use crate::guard::Mode;
use crate::joined::{Joined, aborted, joined, merge_command};
use crate::repo::Answered;
use crate::repo::{Git, Repo, no_dash};

use linchpin::Cx;
use linchpin_kit::{ToolError, ToolSpec};
use schemars::JsonSchema;
use serde::Deserialize;

pub(crate) const MERGE: ToolSpec = ToolSpec::writes(
    "git_merge",
    "Merge",
    "history",
    "Merges a branch or commit into the current branch. If it stops at conflicts, the result lists their paths: resolve \
     them, git_add, git_commit; or call again with abort.",
).extra().on_request()
.destructive();

#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct MergeArgs {
    /// The repository
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
        return Err(ToolError::invalid("Invalid message: it contains a NUL character").into());
    }
    if u8::from(q.no_ff) + u8::from(q.ff_only) + u8::from(q.squash) > 1 {
        return Err(ToolError::invalid("no_ff, ff_only and squash are mutually exclusive").into());
    }
    let repo = git.repo(cx, &q.repo_path, Mode::Write).await?;
    repo.needs_worktree()?;
    if q.abort {
        return aborted(&repo, "merge").await;
    }
    if branch.is_empty() {
        return Err(ToolError::invalid("branch is missing").hint("Pass the branch to merge, or abort.").into());
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
