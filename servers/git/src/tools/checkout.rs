//! `git_checkout`.

use crate::guard::Mode;
use crate::repo::Answered;
use crate::repo::{Git, no_dash};

use linchpin::Cx;
use linchpin_kit::{ToolOutput, ToolSpec};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(crate) const CHECKOUT: ToolSpec = ToolSpec::writes(
    "git_checkout",
    "Switch",
    "write",
    "Switches to a branch, or detaches HEAD at a tag or commit. Fails if it would overwrite changes.",
);

/// The created or current branch.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct OnBranch {
    /// Its name; absent if HEAD is detached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) branch: Option<String>,
    pub(crate) hash: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct CheckoutArgs {
    /// The repository
    repo_path: String,
    /// A branch, tag or commit
    branch_name: String,
}

pub(crate) async fn checkout(git: &Git, cx: &Cx, q: CheckoutArgs) -> Answered<OnBranch> {
    no_dash("branch name", &q.branch_name)?;
    let repo = git.repo(cx, &q.repo_path, Mode::Write).await?;
    repo.needs_worktree()?;
    let hash = repo.commit(&q.branch_name).await?;
    let direct = format!("refs/heads/{}", q.branch_name);
    let full = if repo.ask(&["show-ref", "--verify", "--quiet", &direct]).await?.good() {
        direct
    } else {
        // `HEAD` and `@{-1}` can stand for branches too.
        repo.ask(&["rev-parse", "--symbolic-full-name", "--verify", "--quiet", "--end-of-options", &q.branch_name])
            .await?
            .text()
    };
    let mut command = vec!["checkout", "--quiet", "--no-guess", "--no-recurse-submodules"];
    match full.strip_prefix("refs/heads/") {
        Some(branch) => {
            // Another program may have created a branch with this name.
            no_dash("branch name", branch)?;
            command.push(branch);
        }
        // By name, which git then remembers for the detached HEAD; here a name cannot begin with `-`.
        None => command.extend(["--detach", &q.branch_name]),
    }
    command.push("--");
    repo.must(&command).await?;
    let branch = repo.current().await.unwrap_or_default().or(full.strip_prefix("refs/heads/").map(str::to_owned));
    let text = match &branch {
        Some(branch) => format!("Switched to branch '{branch}'"),
        None => format!("HEAD is now detached at {}", &hash[..7]),
    };
    Ok(ToolOutput::ours(text, OnBranch { branch, hash }))
}
