//! Diffs between trees, the index and the work tree, as text and as statistics.

use crate::exec::output::{Done, Keep};
use crate::exec::program::args;
use crate::page::{Both, LIST_BYTES_MAX, both, is_start, mark, still};
use crate::parse::patch::{FileStat, file_stats, patch_stats};
use crate::repo::{Repo, no_dash, unresolved};

use linchpin_kit::{Budget, PAGE_ITEMS_MAX, Paging, ToolError, ToolOutput, json_len};
use schemars::JsonSchema;
use serde::Serialize;

/// Differences.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Diff {
    /// The diff in git's format, or its table of changed files with `stat_only`; truncated if too long.
    pub(crate) diff: String,
    /// The files that differ.
    pub(crate) files: Vec<FileStat>,
    #[serde(flatten)]
    pub(crate) paging: Paging,
}

/// The object ids that a target names: one, or the two ends of a range.
pub(crate) async fn sides(repo: &Repo, target: &str) -> Result<Vec<String>, ToolError> {
    // The whole target is tried first: a name such as `:/fix a..b` contains dots but is a single object.
    if let Some(id) = repo.resolve(target, "object").await? {
        return Ok(vec![id]);
    }
    let (a, b, parted) = match (target.split_once("..."), target.split_once("..")) {
        (Some((a, b)), _) => (a, b, true),
        (None, Some((a, b))) => (a, b, false),
        (None, None) => return Err(unresolved(target)),
    };
    let mut ends = Vec::with_capacity(2);
    for side in [a, b] {
        no_dash("target", side)?;
        let side = if side.is_empty() { "HEAD" } else { side };
        ends.push(repo.commit(side).await.map_err(|_| unresolved(target))?);
    }
    if parted {
        let base = repo.ask(&["merge-base", &ends[0], &ends[1]]).await?;
        if !base.good() {
            return Err(ToolError::conflict(format!("{a} and {b} have no common ancestor"))
                .hint("Use a..b to compare them directly."));
        }
        ends[0] = base.text();
    }
    Ok(ends)
}

/// What a diff compares, and its options.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DiffShape<'a> {
    pub(crate) context_lines: i64,
    pub(crate) paths: &'a [String],
    pub(crate) stat_only: bool,
    pub(crate) cursor: Option<&'a str>,
    /// The size limits of the result.
    pub(crate) budget: Budget,
}

/// A diff and its statistics.
pub(crate) async fn differences(
    repo: &Repo,
    heading: &str,
    sides: &[String],
    wanted: DiffShape<'_>,
) -> Result<ToolOutput<Diff>, ToolError> {
    let (context_lines, stat_only) = (wanted.context_lines, wanted.stat_only);
    if !(0..=CONTEXT_MAX).contains(&context_lines) {
        return Err(ToolError::invalid(format!("Invalid context_lines: {context_lines}"))
            .hint("Use a number from 0 to 100000."));
    }
    let mark = mark(wanted.cursor)?;
    let paths = repo.paths(wanted.paths)?;
    let unified = format!("--unified={context_lines}");
    let command = |shape: &[&str]| {
        let mut all = args(&["diff"]);
        all.extend(args(shape));
        all.extend(args(repo.plain_diff()));
        all.extend(sides.iter().map(Into::into));
        all.push("--".into());
        all.extend(paths.iter().map(Into::into));
        all
    };
    let shape = if stat_only { "--stat=120" } else { unified.as_str() };
    let budget = wanted.budget.beside(heading.len(), 0);
    let patch = repo.run(command(&[shape]), Keep::From(mark.at[0], budget.text), Vec::new());
    let numbers = repo.run(command(&["--numstat", "-z"]), Keep::Upto(LIST_BYTES_MAX), Vec::new());
    // Git counts the files themselves, not what a textconv program shows of them.
    let (patch, numbers) = if stat_only || !is_start(mark) || repo.config().trust_repo_config {
        let (patch, numbers) = tokio::join!(patch, numbers);
        (patch?, numbers)
    } else {
        let patch = patch.await?;
        if !patch.good() {
            return Err(repo.failed(&patch));
        }
        if let Some(files) = if patch.cut { None } else { patch_stats(&patch.out) } {
            let diff = patch.text();
            if json_len(&diff) + json_len(&files) <= budget.json && files.len() <= PAGE_ITEMS_MAX {
                let text = format!("{heading}{diff}");
                return Ok(ToolOutput::outside(text, Diff { diff, files, paging: Paging::whole() }));
            }
        }
        (patch, numbers.await)
    };
    if !patch.good() {
        return Err(repo.failed(&patch));
    }
    // The statistics are missing if only they took too long.
    let numbers = numbers.ok().filter(Done::good);
    let about = numbers.as_ref().map(|numbers| numbers.out.clone()).unwrap_or_default();
    let unlisted = numbers.as_ref().is_some_and(|numbers| numbers.cut);
    let files = numbers.map(|numbers| file_stats(&numbers.out)).unwrap_or_default();
    let mark = still(mark, &about, &patch.out, &files)?;
    let whole = cut_about(&files, is_start(mark), budget.text / 8);
    let Both { text, items, next } = both(mark, &patch.out, patch.cut, files, budget);
    let mut paging = next.map_or(Paging::whole(), |next| Paging::more(next.to_string()));
    let notice = paging
        .next_cursor
        .as_ref()
        .map(|next| format!("{whole}Continue with the same arguments and cursor={next:?}. {CUT_ADVICE}]"));
    paging.truncated |= unlisted;
    Ok(ToolOutput::outside(format!("{heading}{text}"), Diff { diff: text, files: items, paging }).notice(notice))
}

/// A summary of a truncated diff, with at most this many bytes of file names; `first` if it was not given before.
pub(crate) fn cut_about(files: &[FileStat], first: bool, bytes: usize) -> String {
    if !first {
        return "[Truncated. ".to_owned();
    }
    if files.is_empty() {
        return "[Truncated: the diff is too long, and counting its changes took too long as well.\n".to_owned();
    }
    let sum = |of: fn(&FileStat) -> Option<u64>| files.iter().filter_map(of).sum::<u64>();
    let mut text = format!(
        "[Truncated: the diff is too long. {} files changed, {} lines added, {} removed:",
        files.len(),
        sum(|file| file.added),
        sum(|file| file.removed)
    );
    let (start, mut named) = (text.len(), 0);
    for file in files.iter().take(NOTICE_FILES_MAX) {
        let numbers = match (file.added, file.removed) {
            (Some(added), Some(removed)) => format!("+{added} -{removed}"),
            _ => "binary".to_owned(),
        };
        let line = format!("\n {} {numbers}", file.path);
        if text.len() - start + line.len() > bytes {
            break;
        }
        text.push_str(&line);
        named += 1;
    }
    if files.len() > named {
        text.push_str(&format!("\n and {} more", files.len() - named));
    }
    text.push('\n');
    text
}

const CUT_ADVICE: &str = "To see less, pass files or directories in paths, stat_only, or a smaller context_lines.";

const CONTEXT_MAX: i64 = 100_000;

const NOTICE_FILES_MAX: usize = 50;
