//! `git_commit`.

use crate::exec::output::{Keep, lossy};
use crate::exec::program::{args, args_and};
use crate::guard::Mode;
use crate::place::head::BranchHead;
use crate::repo::Answered;
use crate::repo::{COMMAND_BYTES, Git, Repo};

use linchpin::Cx;
use linchpin_kit::{ToolError, ToolOutput, ToolSpec};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(crate) const COMMIT: ToolSpec = ToolSpec::writes(
    "git_commit",
    "Commit",
    "write",
    "Commits the staged changes; concludes a merge in progress. Stage with git_add first.",
);

#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct CommitArgs {
    /// The repository
    repo_path: String,
    /// The commit message
    message: String,
}

/// A new commit.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Committed {
    /// Absent if it could not be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    hash: Option<String>,
    /// The branch; absent if HEAD is detached.
    #[serde(skip_serializing_if = "Option::is_none")]
    branch: Option<String>,
    /// An additional notice.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

pub(crate) async fn commit(git: &Git, cx: &Cx, q: CommitArgs) -> Answered<Committed> {
    if q.message.contains('\0') {
        return Err(ToolError::invalid("Invalid message: it contains a NUL character").into());
    }
    let repo = git.repo(cx, &q.repo_path, Mode::Write).await?;
    repo.needs_worktree()?;
    let merging = repo.place.git_dir.join("MERGE_HEAD").exists();
    if !merging && !staged(&repo).await? {
        return Err(ToolError::conflict(
            "No changes staged for commit. Use git_add to stage changes first; git_status shows what is currently staged.",
        )
        .into());
    }
    // Read verbatim from stdin; without input there would be no pipe.
    let message = if q.message.is_empty() { "--message=" } else { "--file=-" };
    let flags = ["--quiet", "--cleanup=verbatim", "--allow-empty-message", "--no-status", repo.sign(), message];
    let mut command = args_and(&["commit"], &flags);
    if !repo.config().trust_repo_config {
        command.push("--no-verify".into());
    }
    let done = repo.run(command, Keep::Head(COMMAND_BYTES), q.message.into_bytes()).await?;
    // Git's message if only the index could not be written.
    if !done.good() && !lossy(&done.err).contains("repository has been updated") {
        return Err(repo.failed(&done).into());
    }
    // The commit exists: a failed query from here on does not make it a failure.
    let place = repo.place.clone();
    let head = tokio::task::spawn_blocking(move || place.branch_head()).await.ok().flatten();
    let (branch, hash) = match head {
        Some(BranchHead { branch, commit: Some(hash) }) => (Some(branch), Some(hash)),
        _ => (repo.current().await.unwrap_or_default(), repo.resolve("HEAD", "commit").await.unwrap_or_default()),
    };
    let complaint = lossy(&done.err);
    let note = if complaint.contains("Applied autostash") {
        Some("Applied autostash.".to_owned())
    } else if complaint.contains("resulted in conflicts") {
        Some(
            "Applying autostash resulted in conflicts. Your changes are safe in the stash; run \"git stash pop\" or \"git \
             stash drop\" at any time."
                .to_owned(),
        )
    } else {
        None
    };
    let more = note.as_ref().map(|note| format!("\n{note}")).unwrap_or_default();
    let (text, advice) = match &hash {
        Some(hash) => (format!("Changes committed successfully with hash {hash}{more}"), None),
        None => (format!("Changes committed successfully{more}"), Some("git_log lists the hash.".to_owned())),
    };
    Ok(ToolOutput::ours(text, Committed { hash, branch, note }).notice(advice))
}

/// Whether the index contains anything to commit.
pub(crate) async fn staged(repo: &Repo) -> Result<bool, ToolError> {
    // Before the first commit it is compared with an empty tree; intent-to-add entries count as absent.
    let mut command = args(&["diff", "--cached", "--quiet"]);
    command.extend(args(repo.plain_diff()));
    let done = repo.run(command, Keep::Head(COMMAND_BYTES), Vec::new()).await?;
    match done.code {
        Some(0) => Ok(false),
        Some(1) if done.err.is_empty() => Ok(true),
        _ => Err(repo.failed(&done)),
    }
}
