//! `git_rebase`.

use crate::exec::program::args;
use crate::guard::Mode;
use crate::joined::{Joined, aborted, joined, resumed};
use crate::repo::Answered;
use crate::repo::{Git, no_dash};
use crate::sequence::{Step, foreign_strategy};

use linchpin::Cx;
use linchpin_kit::{ToolError, ToolSpec};
use schemars::JsonSchema;
use serde::Deserialize;

pub(crate) const REBASE: ToolSpec = ToolSpec::writes(
    "git_rebase",
    "Rebase",
    "history",
    "Replays the commits of the current branch onto another base. This replaces commits, so it requires confirm: true; \
     without it the error says what would be replaced. After conflicts: resolve, git_add, then action continue, skip or abort.",
).extra().on_request()
.destructive();

#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct RebaseArgs {
    /// The repository
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
        Step::Continue | Step::Skip => return Ok(resumed(&repo, "rebase", q.action, "Rebased", resume).await?),
        Step::Start => {}
    }
    let Some(upstream) = q.upstream.as_deref().filter(|upstream| !upstream.is_empty()) else {
        return Err(ToolError::invalid("upstream is missing").hint("Pass the branch to rebase onto.").into());
    };
    let upstream_id = repo.commit(upstream).await?;
    let onto_id = match q.onto.as_deref().filter(|onto| !onto.is_empty()) {
        Some(onto) => repo.commit(onto).await?,
        None => upstream_id.clone(),
    };
    if !q.confirm {
        let count = repo.must(&["rev-list", "--count", &format!("{upstream_id}..HEAD")]).await?.text();
        let branch = repo.current().await?.unwrap_or_else(|| "HEAD".to_owned());
        let fault = ToolError::invalid(format!(
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
