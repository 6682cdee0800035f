//! `git_stash`.

use crate::compare::{Diff, DiffShape, cut_about, differences};
use crate::exec::output::{Keep, fields, whole_records};
use crate::exec::program::args_and;
use crate::guard::Mode;
use crate::page::{LIST_BYTES_MAX, PART_BYTES_MAX, brief, few};

use crate::repo::Answered;
use crate::repo::{Git, Repo};

use linchpin::Cx;
use linchpin_kit::{PAGE_ITEMS_MAX, Page, Paging, ToolError, ToolOutput, ToolSpec, json_len, page};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(crate) const STASH: ToolSpec = ToolSpec::writes(
    "git_stash",
    "Stash",
    "history",
    "Stashes uncommitted changes (push), lists stashes, shows one, restores it (pop removes it from the list, apply \
     keeps it) or drops it.",
)
.extra()
.on_request()
.destructive();

/// Actions of `git_stash`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum StashAction {
    Push,
    List,
    Show,
    Apply,
    Pop,
    Drop,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct StashArgs {
    /// The repository
    repo_path: String,
    /// push, list, show, apply, pop or drop
    action: StashAction,
    /// For push: a message
    #[serde(default)]
    message: Option<String>,
    /// For push: also stash untracked files
    #[serde(default)]
    include_untracked: bool,
    /// For show, apply, pop and drop: the stash, 0 is the newest
    #[serde(default)]
    index: u32,
    /// From next_cursor
    #[serde(default)]
    cursor: Option<String>,
}

/// The result of a stash action.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Stashes {
    /// A summary.
    message: String,
    /// The stashes, newest first; after actions other than list truncated if there are too many.
    stashes: Vec<Stash>,
    /// Paths with conflicts after apply or pop.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    conflicts: Vec<String>,
    /// For show: the diff.
    #[serde(skip_serializing_if = "Option::is_none")]
    changes: Option<Diff>,
    #[serde(flatten)]
    paging: Paging,
}

/// A stash.
#[derive(Debug, Clone, Serialize, JsonSchema)]
struct Stash {
    index: usize,
    hash: String,
    date: String,
    subject: String,
}

pub(crate) async fn stash(git: &Git, cx: &Cx, q: StashArgs) -> Answered<Stashes> {
    if q.message.as_ref().is_some_and(|message| message.contains(['\0', '\n'])) {
        return Err(ToolError::invalid("Invalid message: it contains a NUL character or a line feed").into());
    }
    let reads = matches!(q.action, StashAction::List | StashAction::Show);
    let repo = git.repo(cx, &q.repo_path, if reads { Mode::Read } else { Mode::Write }).await?;
    repo.needs_worktree()?;
    let name = format!("stash@{{{}}}", q.index);
    let on_top = repo.resolve("refs/stash", "commit").await?;
    // Lists to the end; git fails past it.
    let chosen = match on_top {
        Some(_) => repo.resolve(&format!("refs/{name}"), "commit").await?,
        None => None,
    };
    if !matches!(q.action, StashAction::List | StashAction::Push) && chosen.is_none() {
        return Err(ToolError::not_found(format!("{name} does not exist"))
            .hint("git_stash with action list lists the stashes.")
            .into());
    }
    let (mut conflicts, mut advice) = (Vec::new(), None);
    let message = match q.action {
        StashAction::List => {
            let (all, cut) = stashes(&repo).await?;
            let Page { items, text, mut paging } =
                page(&all, q.cursor.as_deref(), PAGE_ITEMS_MAX, repo.budget(), |s| {
                    (format!("stash@{{{}}}: {}", s.index, s.subject).into(), json_len(s))
                })?;
            paging.truncated |= cut;
            let notice = paging.notice();
            let text = if all.is_empty() { "No stashes".to_owned() } else { text };
            let message = format!("Stashes: {}", all.len());
            let value = Stashes { message, stashes: items.to_vec(), conflicts, changes: None, paging };
            return Ok(ToolOutput::outside(text, value).notice(notice));
        }
        StashAction::Show => {
            let sides = [repo.commit(&format!("{name}^1")).await?, repo.commit(&name).await?];
            let budget = repo.budget();
            let budget = budget.beside(0, budget.json / 4);
            let shape = DiffShape { context_lines: 3, paths: &[], stat_only: false, cursor: None, budget };
            let mut shown = differences(&repo, &format!("{name}:\n"), &sides, shape).await?;
            if shown.value.paging.next_cursor.take().is_some() {
                let about = cut_about(&shown.value.files, true, repo.max / 8);
                shown.notice = Some(format!("{about}To see all changes, call git_diff with target {name}^1..{name}.]"));
            }
            let stashes = few_stashes(&repo).await;
            let message = format!("Shows {name}");
            let changes = Some(shown.value);
            let value = Stashes { message, stashes, conflicts, changes, paging: Paging::whole() };
            return Ok(ToolOutput::outside(shown.text.unwrap_or_default(), value).notice(shown.notice));
        }
        StashAction::Push => {
            let mut command = vec!["stash", "push", "--quiet"];
            if q.include_untracked {
                command.push("--include-untracked");
            }
            let note = q.message.as_ref().map(|message| format!("--message={message}"));
            command.extend(note.as_deref());
            repo.must(&command).await?;
            let after = repo.resolve("refs/stash", "commit").await;
            match after {
                Ok(after) if after == on_top => "No local changes to save".to_owned(),
                _ => {
                    advice = Some("git_stash with action pop restores them.".to_owned());
                    "Changes stashed".to_owned()
                }
            }
        }
        StashAction::Apply | StashAction::Pop => {
            let verb = if q.action == StashAction::Pop { "pop" } else { "apply" };
            let done = repo.ask(&["stash", verb, "--quiet", &name]).await?;
            let found = repo.conflicts().await;
            conflicts = if done.good() { found.unwrap_or_default() } else { found? };
            if !done.good() && conflicts.is_empty() {
                return Err(repo.failed(&done).into());
            }
            let listed;
            (conflicts, listed) = few(conflicts, repo.budget().part(4));
            if conflicts.is_empty() {
                format!("Restored {name}")
            } else {
                advice = Some(format!(
                    "Resolve them and git_add the files; git_status lists them all. {name} is kept until dropped."
                ));
                format!("Restored {name} with conflicts in: {listed}")
            }
        }
        StashAction::Drop => {
            repo.must(&["stash", "drop", "--quiet", &name]).await?;
            format!("Dropped {name} ({})", chosen.unwrap_or_default())
        }
    };
    // A failure to list the result does not make the action a failure.
    let stashes = few_stashes(&repo).await;
    let value = Stashes { message: message.clone(), stashes, conflicts, changes: None, paging: Paging::whole() };
    Ok(ToolOutput::ours(message, value).notice(advice))
}

/// The newest stashes, as many as fit.
async fn few_stashes(repo: &Repo) -> Vec<Stash> {
    let (mut all, _) = stashes(repo).await.unwrap_or_default();
    all.truncate(repo.budget().part(5).count(&all));
    all
}

/// All stashes, and whether there are more.
async fn stashes(repo: &Repo) -> Result<(Vec<Stash>, bool), ToolError> {
    if repo.resolve("refs/stash", "commit").await?.is_none() {
        return Ok((Vec::new(), false));
    }
    let format = "--format=%H%x00%aI%x00%gs";
    let flags = ["--no-show-signature", "--no-notes", "--no-decorate", "--no-patch", format, "refs/stash", "--"];
    let keep = Keep::Parts(PART_BYTES_MAX, LIST_BYTES_MAX);
    let done = repo.run(args_and(&["log", "-g", "-z"], &flags), keep, Vec::new()).await?;
    if !done.good() {
        return Err(repo.failed(&done));
    }
    let fields = fields(whole_records(&done.out, done.cut, 0));
    let stash = |(index, record): (usize, &[String])| Stash {
        index,
        hash: record[0].clone(),
        date: record[1].clone(),
        subject: brief(&record[2]),
    };
    Ok((fields.chunks_exact(3).enumerate().map(stash).collect(), done.cut))
}
