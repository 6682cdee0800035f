//! `git_create_branch`.

use crate::guard::Mode;
use crate::repo::Answered;
use crate::repo::{Git, check_name, no_dash};

use crate::tools::checkout::OnBranch;

use linchpin::Cx;
use linchpin_kit::{ToolError, ToolOutput, ToolSpec, clip};
use schemars::JsonSchema;
use serde::Deserialize;

pub(crate) const CREATE_BRANCH: ToolSpec = ToolSpec::writes(
    "git_create_branch",
    "Create Branch",
    "write",
    "Creates a branch without switching to it; git_checkout does.",
);

#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct CreateBranchArgs {
    /// The repository
    repo_path: String,
    /// Name of the new branch
    branch_name: String,
    /// Where it starts (default: the current branch)
    #[serde(default)]
    base_branch: Option<String>,
}

pub(crate) async fn create_branch(git: &Git, cx: &Cx, q: CreateBranchArgs) -> Answered<OnBranch> {
    no_dash("branch name", &q.branch_name)?;
    let base = q.base_branch.as_deref().filter(|base| !base.is_empty());
    if let Some(base) = base {
        no_dash("base branch", base)?;
    }
    let repo = git.repo(cx, &q.repo_path, Mode::Write).await?;
    check_name(&repo, "branch", "refs/heads", &q.branch_name).await?;
    let (from, hash) = match base {
        Some(base) => {
            let hash = repo.resolve(base, "commit").await?.ok_or_else(|| {
                ToolError::not_found(format!("No item found with id {}", clip(base, 200).text))
                    .hint("git_branch lists the branches.")
            })?;
            (base.to_owned(), hash)
        }
        None => {
            let current = repo.current().await?.ok_or_else(|| {
                ToolError::invalid("HEAD is detached, so there is no current branch to branch from; pass base_branch")
            })?;
            let hash = repo.head().await?.ok_or_else(|| {
                ToolError::not_found(format!("Reference at 'refs/heads/{current}' does not exist"))
                    .hint("There are no commits yet; git_commit creates the first.")
            })?;
            (current, hash)
        }
    };
    let full = format!("refs/heads/{}", q.branch_name);
    if repo.ask(&["show-ref", "--verify", "--quiet", &full]).await?.good() {
        let fault = ToolError::conflict(format!("Cannot create branch '{}': {full} already exists", q.branch_name));
        return Err(fault.hint("git_checkout switches to it.").into());
    }
    // The empty last argument requires that the ref does not exist, so a race cannot move a branch.
    let why = format!("branch: Created from {from}");
    repo.must(&["update-ref", "--create-reflog", "-m", &why, &full, &hash, ""]).await?;
    let text = format!("Created branch '{}' from '{from}'", q.branch_name);
    Ok(ToolOutput::ours(text, OnBranch { branch: Some(q.branch_name), hash }))
}
