//! `git_reset`.

use crate::guard::Mode;
use crate::repo::Answered;
use crate::repo::Git;
use linchpin::Cx;
use linchpin_kit::{ToolOutput, ToolSpec};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(crate) const RESET: ToolSpec = ToolSpec::writes(
    "git_reset",
    "Unstage",
    "write",
    "Unstages all staged changes. Files in the work tree are not changed.",
)
.destructive()
.idempotent();

/// A summary.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Outcome {
    /// A summary.
    message: String,
}

impl Outcome {
    pub(crate) fn shown(message: impl Into<String>) -> ToolOutput<Self> {
        let message = message.into();
        ToolOutput::ours(message.clone(), Self { message })
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct ResetArgs {
    /// The repository
    repo_path: String,
}

pub(crate) async fn reset(git: &Git, cx: &Cx, q: ResetArgs) -> Answered<Outcome> {
    let repo = git.repo(cx, &q.repo_path, Mode::Write).await?;
    repo.needs_worktree()?;
    repo.must(&["reset", "--quiet", "--mixed"]).await?;
    Ok(Outcome::shown("All staged changes reset"))
}
