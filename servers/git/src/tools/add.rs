//! `git_add`.

use crate::exec::output::Keep;
use crate::exec::program::args_and;
use crate::guard::Mode;
use crate::repo::Answered;
use crate::repo::Git;
use linchpin::Cx;
use linchpin_kit::{ToolError, ToolOutput, ToolSpec};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(crate) const ADD: ToolSpec = ToolSpec::writes(
    "git_add",
    "Stage",
    "write",
    "Stages files for the next commit. [\".\"] stages everything; globs are not expanded.",
)
.idempotent();

#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct AddArgs {
    /// The repository
    repo_path: String,
    /// Paths relative to the top level
    #[schemars(length(min = 1))]
    files: Vec<String>,
}

/// Whether anything was staged.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Staged {
    /// Whether the index changed.
    changed: bool,
    message: String,
}

pub(crate) async fn add(git: &Git, cx: &Cx, q: AddArgs) -> Answered<Staged> {
    if q.files.is_empty() {
        let fault =
            ToolError::invalid("No files provided to stage. Pass one or more paths, or ['.'] to stage everything.");
        return Err(fault.into());
    }
    let repo = git.repo(cx, &q.repo_path, Mode::Write).await?;
    repo.needs_worktree()?;
    let files = repo.paths(&q.files)?;
    // Lists the changes of the index, but not files without changes.
    let done = repo.run(args_and(&["add", "--verbose", "--"], &files), Keep::Head(1), Vec::new()).await?;
    if !done.good() {
        return Err(repo.failed(&done).into());
    }
    let changed = !done.out.is_empty();
    let message = if changed {
        "Files staged successfully"
    } else {
        "No changes were staged: the given paths had nothing new to stage. git_status shows what is modified or untracked."
    };
    Ok(ToolOutput::ours(message, Staged { changed, message: message.to_owned() }))
}
