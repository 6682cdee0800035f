//! `git_pull`.

use crate::config::REMOTE;
use crate::exec::program::args;
use crate::guard::Mode;
use crate::joined::{Joined, joined, merge_command};
use crate::remote::{Remote, RemoteArgs, describe_args, fetch_now, is_plain, refusal};
use crate::repo::Answered;
use crate::repo::{Git, check_name};

use linchpin::Cx;
use linchpin_kit::{ToolError, ToolSpec};
use schemars::JsonSchema;
use serde::Deserialize;

pub(crate) const PULL: ToolSpec = ToolSpec::writes(
    "git_pull",
    "Pull",
    "remote",
    "Fetches a branch from a configured remote and merges it into the current branch.",
)
.extra()
.outside()
.needs(REMOTE);

#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(transform = describe_args("The name of the remote (default: that of the upstream branch, or origin)", "The branch on the remote (default: the upstream branch, or the one of the same name)"))]
pub(crate) struct PullArgs {
    #[serde(flatten)]
    remote: RemoteArgs,
    /// Fast-forward only; fail if both sides have new commits
    #[serde(default)]
    ff_only: bool,
}

pub(crate) async fn pull(git: &Git, cx: &Cx, q: PullArgs) -> Answered<Joined> {
    q.remote.check()?;
    let repo = git.repo(cx, &q.remote.repo_path, Mode::Remote).await?;
    repo.needs_worktree()?;
    let current = repo.current().await?.ok_or_else(|| {
        ToolError::invalid("HEAD is detached, so there is no branch to pull into").hint("git_checkout a branch first.")
    })?;
    let full = format!("refs/heads/{current}");
    let followed =
        repo.must(&["for-each-ref", "--format=%(upstream:remotename)%00%(upstream:remoteref)", &full]).await?.text();
    let (followed_remote, followed_ref) = followed.split_once('\0').unwrap_or_default();
    let asked = |given: &Option<String>, followed: &str, other: &str| {
        let given = given.clone().filter(|given| !given.is_empty());
        given.unwrap_or_else(|| if followed.is_empty() { other.to_owned() } else { followed.to_owned() })
    };
    let remote = asked(&q.remote.remote, followed_remote, "origin");
    let branch = asked(&q.remote.branch, followed_ref.trim_start_matches("refs/heads/"), &current);
    if q.remote.branch.as_deref().unwrap_or_default().is_empty() && !is_plain(&branch) {
        // The configured name is not repeated in the error.
        return Err(ToolError::denied("The name of the upstream branch contains unusual characters")
            .hint("Pass it as branch.")
            .into());
    }
    check_name(&repo, "branch", "refs/heads", &branch).await?;
    let way = Remote::to(&repo, Some(&remote), false).await?;
    let done = fetch_now(&repo, &way, &["--".to_owned(), way.remote.clone(), format!("refs/heads/{branch}")]).await?;
    if !done.good() {
        return Err(refusal(&done).into());
    }
    let hash = repo.commit("FETCH_HEAD").await?;
    let mut command = merge_command(&repo, if q.ff_only { "--ff-only" } else { "--ff" });
    if !q.ff_only {
        let message = format!("Merge branch '{branch}' of remote '{}' into {current}", way.remote);
        command.extend(args(&["-m", &message]));
    }
    command.push(hash.into());
    let resume = "Resolve them, git_add the files and git_commit; or git_merge with abort.";
    Ok(joined(&repo, command, "Merged", resume).await?)
}
