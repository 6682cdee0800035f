//! Rebases and cherry-picks in progress, which may have come with the repository.

use crate::guard::overrides::STRATEGIES;
use linchpin_kit::ToolError;
use schemars::JsonSchema;
use serde::Deserialize;

use std::path::{Path, PathBuf};

/// How to proceed with a stopped operation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Step {
    #[default]
    Start,
    Continue,
    Skip,
    Abort,
}

pub(crate) fn foreign_strategy() -> ToolError {
    ToolError::denied("The repository's own configuration names a merge strategy that is a program: pull.twohead")
        .hint("Nothing was run. Use git_merge, or the operator can allow it with --trust-repo-config.")
}

/// Refuses to continue a rebase or cherry-pick whose state files, which may have come with the repository, run programs
/// or change how commits are signed.
pub(crate) fn harmless_plan(git_dir: &Path, sign: bool) -> Result<(), ToolError> {
    let trap = |what: &str| {
        ToolError::denied(format!("The operation in progress is set up to run programs ({what})"))
            .hint("Abort it with action abort, or finish it manually.")
    };
    let read = |path: PathBuf| -> Result<Option<String>, ToolError> {
        if path.symlink_metadata().is_err() {
            return Ok(None);
        }
        let fine = std::fs::metadata(&path).is_ok_and(|meta| meta.is_file() && meta.len() <= PLAN_MAX);
        let text = if fine { std::fs::read_to_string(&path).ok() } else { None };
        text.map(Some).ok_or_else(|| trap(&path.file_name().unwrap_or_default().to_string_lossy()))
    };
    if git_dir.join("rebase-apply").exists() {
        return Err(trap("rebase-apply"));
    }
    for file in ["rebase-merge/git-rebase-todo", "sequencer/todo"] {
        let Some(plan) = read(git_dir.join(file))? else { continue };
        for line in plan.lines().map(str::trim_start) {
            let word = line.split_whitespace().next().unwrap_or_default();
            if !word.is_empty() && !word.starts_with('#') && !STEPS.contains(&word) {
                return Err(trap(file));
            }
        }
    }
    if let Some(strategy) = read(git_dir.join("rebase-merge/strategy"))?
        && !STRATEGIES.contains(&strategy.trim())
    {
        return Err(trap("rebase-merge/strategy"));
    }
    let signed = read(git_dir.join("rebase-merge/gpg_sign_opt"))?.map(|option| option.trim() != "-S" || !sign);
    let picked = read(git_dir.join("sequencer/opts"))?.unwrap_or_default().to_lowercase();
    let key = picked.lines().find_map(|line| line.trim_start().strip_prefix("gpg-sign"));
    if signed == Some(true) || key.is_some_and(|key| !sign || !["", "="].contains(&key.trim())) {
        return Err(ToolError::denied("The operation in progress has its own settings for signing commits")
            .hint("Abort it with action abort, or finish it manually."));
    }
    if let Some(options) = read(git_dir.join("sequencer/opts"))?
        && (options.to_lowercase().contains("strategy") || options.to_lowercase().contains("include"))
    {
        return Err(trap("sequencer/opts"));
    }
    Ok(())
}

/// The commands that a rebase plan may contain: all but `exec`.
const STEPS: &[&str] = &[
    "pick",
    "p",
    "reword",
    "r",
    "edit",
    "e",
    "squash",
    "s",
    "fixup",
    "f",
    "drop",
    "d",
    "label",
    "l",
    "reset",
    "t",
    "merge",
    "m",
    "break",
    "b",
    "noop",
    "update-ref",
    "u",
    "revert",
];

const PLAN_MAX: u64 = 4 * 1024 * 1024;
