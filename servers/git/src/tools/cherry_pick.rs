//! `git_cherry_pick`.

use crate::exec::program::args_and;
use crate::guard::Mode;
use crate::joined::{Joined, aborted, joined, resumed};
use crate::repo::Answered;
use crate::repo::{Git, no_dash};
use crate::sequence::{Step, foreign_strategy};
use linchpin::Cx;
use linchpin_kit::{ToolError, ToolSpec};
use schemars::JsonSchema;
use serde::Deserialize;

pub(crate) const CHERRY_PICK: ToolSpec = ToolSpec::writes(
    "git_cherry_pick",
    "Cherry-pick",
    "history",
    "Applies the changes of other commits to the current branch. After conflicts: resolve, git_add, then action continue, \
     skip or abort.",
).extra().on_request()
.destructive();

#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct CherryPickArgs {
    /// The repository
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
        Step::Continue | Step::Skip => return Ok(resumed(&repo, "cherry-pick", q.action, "Picked", resume).await?),
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
            return Err(ToolError::invalid("More than 100 commits at once")
                .hint("Pick fewer commits at a time.")
                .into());
        }
    }
    if hashes.is_empty() {
        return Err(ToolError::invalid("revisions resolves to no commit").hint("Pass at least one commit.").into());
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

const PICKS_MAX: usize = 100;
