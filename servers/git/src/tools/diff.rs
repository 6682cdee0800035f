//! `git_diff_unstaged`, `git_diff_staged` and `git_diff`.

use crate::compare::{Diff, DiffShape, differences, sides};
use crate::guard::Mode;
use crate::repo::Answered;
use crate::repo::{Git, no_dash};
use linchpin::Cx;
use linchpin_kit::{Budget, ToolError, ToolSpec, clip};
use schemars::JsonSchema;
use serde::Deserialize;

pub(crate) const DIFF: ToolSpec = ToolSpec::reads(
    "git_diff",
    "Diff",
    "read",
    "Compares the work tree with a branch or commit, or two commits: a..b, or a...b for the changes of b since the merge base. For large diffs use stat_only first, then paths.",
);

pub(crate) const DIFF_STAGED: ToolSpec =
    ToolSpec::reads("git_diff_staged", "Staged Changes", "read", "Shows the changes staged for the next commit.");

pub(crate) const DIFF_UNSTAGED: ToolSpec = ToolSpec::reads(
    "git_diff_unstaged",
    "Unstaged Changes",
    "read",
    "Shows changes in the work tree that are not staged.",
);

fn three() -> i64 {
    3
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct DiffWorkArgs {
    /// The repository
    repo_path: String,
    /// Lines around each change
    #[serde(default = "three")]
    context_lines: i64,
    /// Only these paths
    #[serde(default)]
    paths: Vec<String>,
    /// Only names and line counts
    #[serde(default)]
    stat_only: bool,
    /// From next_cursor
    #[serde(default)]
    cursor: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct DiffArgs {
    /// The repository
    repo_path: String,
    /// A branch, tag or commit; or a..b, a...b
    target: String,
    /// Lines around each change
    #[serde(default = "three")]
    context_lines: i64,
    /// Only these paths
    #[serde(default)]
    paths: Vec<String>,
    /// Only names and line counts
    #[serde(default)]
    stat_only: bool,
    /// From next_cursor
    #[serde(default)]
    cursor: Option<String>,
}

pub(crate) async fn diff_unstaged(git: &Git, cx: &Cx, q: DiffWorkArgs) -> Answered<Diff> {
    let repo = git.repo(cx, &q.repo_path, Mode::Read).await?;
    repo.needs_worktree()?;
    let heading = "Unstaged changes:\n";
    Ok(differences(&repo, heading, &[], q.shape(repo.budget())).await?)
}

pub(crate) async fn diff_staged(git: &Git, cx: &Cx, q: DiffWorkArgs) -> Answered<Diff> {
    let repo = git.repo(cx, &q.repo_path, Mode::Read).await?;
    repo.needs_worktree()?;
    let heading = "Staged changes:\n";
    Ok(differences(&repo, heading, &["--cached".to_owned()], q.shape(repo.budget())).await?)
}

pub(crate) async fn diff(git: &Git, cx: &Cx, q: DiffArgs) -> Answered<Diff> {
    no_dash("target", &q.target)?;
    let repo = git.repo(cx, &q.repo_path, Mode::Read).await?;
    let sides = sides(&repo, &q.target).await?;
    if sides.len() == 1 {
        repo.needs_worktree()?;
    }
    let heading = format!("Diff with {}:\n", q.target);
    let (cursor, budget) = (q.cursor.as_deref(), repo.budget());
    let shape = DiffShape { context_lines: q.context_lines, paths: &q.paths, stat_only: q.stat_only, cursor, budget };
    match differences(&repo, &heading, &sides, shape).await {
        Ok(shown) => Ok(shown),
        Err(fault) if repo.resolve(&sides[0], "tree").await?.is_some() => Err(fault.into()),
        Err(_) => {
            let what = format!("'{}' is not a commit and cannot be compared", clip(&q.target, 200).text);
            let hint =
                "Pass a commit, branch or tag as target and the file in paths; git_show shows a file of a commit.";
            Err(ToolError::invalid(what).hint(hint).into())
        }
    }
}

impl DiffWorkArgs {
    fn shape(&self, budget: Budget) -> DiffShape<'_> {
        let cursor = self.cursor.as_deref();
        DiffShape { context_lines: self.context_lines, paths: &self.paths, stat_only: self.stat_only, cursor, budget }
    }
}
