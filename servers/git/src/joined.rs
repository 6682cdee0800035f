//! Commands that combine histories and may stop at conflicts.
//!
//! A merge that stops at conflicts has made changes, so it is a result, not an error.

use crate::exec::output::Keep;
use crate::exec::program::args;
use crate::page::few;

use crate::repo::Answered;
use crate::repo::{COMMAND_BYTES, Repo};
use crate::sequence::{Step, harmless_plan};

use linchpin_kit::{ToolError, ToolOutput};
use schemars::JsonSchema;
use serde::Serialize;

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
    pub(crate) status: Progress,
    /// The current commit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) head: Option<String>,
    /// Paths with conflicts, truncated if there are too many.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) conflicts: Vec<String>,
    /// A summary.
    pub(crate) message: String,
}

/// The result of a command that may stop at conflicts.
pub(crate) async fn joined(
    repo: &Repo,
    command: Vec<std::ffi::OsString>,
    done_text: &str,
    resume: &str,
) -> Result<ToolOutput<Joined>, ToolError> {
    let before = repo.resolve("HEAD", "commit").await?;
    let done = repo.run(command, Keep::Head(COMMAND_BYTES), Vec::new()).await?;
    // From here on, a failed query does not make the operation a failure.
    let conflicts = repo.conflicts().await;
    let conflicts = if done.good() { conflicts.unwrap_or_default() } else { conflicts? };
    let complaint = done.complaint();
    // Refused because of earlier conflicts; nothing was changed.
    let refused = IN_THE_WAY.iter().any(|words| complaint.contains(words));
    if !done.good() && (conflicts.is_empty() || refused) {
        return Err(repo.failed(&done));
    }
    let head = repo.resolve("HEAD", "commit").await.unwrap_or_default();
    let (conflicts, listed) = few(conflicts, repo.budget().part(3));
    let stopped = !conflicts.is_empty() && !done.good();
    let (status, message) = if stopped {
        (Progress::Conflicts, format!("Stopped at conflicts in: {listed}."))
    } else if head.is_some() && head == before && done_text.starts_with("Merged") {
        (Progress::UpToDate, "Already up to date".to_owned())
    } else {
        let now = head.as_deref().unwrap_or("the commit that git_log lists first");
        (Progress::Done, format!("{done_text}; HEAD is now {now}"))
    };
    let advice = stopped.then(|| format!("{resume} git_status lists all conflicts."));
    Ok(ToolOutput::ours(message.clone(), Joined { status, head, conflicts, message }).notice(advice))
}

/// Continues a stopped rebase or cherry-pick, with or without its current commit.
pub(crate) async fn resumed(
    repo: &Repo,
    what: &str,
    action: Step,
    done: &str,
    resume: &str,
) -> Result<ToolOutput<Joined>, ToolError> {
    if !repo.config().trust_repo_config {
        let (dir, sign) = (repo.place.git_dir.clone(), repo.config().sign);
        tokio::task::spawn_blocking(move || harmless_plan(&dir, sign))
            .await
            .map_err(|_| ToolError::new(format!("Checking the {what} failed unexpectedly")))??;
    }
    let step = if action == Step::Skip { "--skip" } else { "--continue" };
    joined(repo, args(&[what, step]), done, resume).await
}

pub(crate) async fn aborted(repo: &Repo, what: &str) -> Answered<Joined> {
    repo.must(&[what, "--abort"]).await?;
    let head = repo.resolve("HEAD", "commit").await.unwrap_or_default();
    let message = format!("The {what} was aborted");
    Ok(ToolOutput::ours(message.clone(), Joined { status: Progress::Aborted, head, conflicts: Vec::new(), message }))
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

/// Git's messages about another operation in progress.
const IN_THE_WAY: &[&str] = &[
    "unmerged files",
    "not concluded",
    "needs merge",
    "must edit all merge conflicts",
    "already in progress",
    "already a rebase",
];
