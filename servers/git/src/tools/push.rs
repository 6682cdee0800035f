//! `git_push`.

use crate::config::REMOTE;
use crate::exec::output::{Done, lossy};
use crate::exec::program::args;
use crate::guard::Mode;
use crate::page::{brief, few};
use crate::remote::{Remote, RemoteArgs, describe_args, refusal};
use crate::repo::Answered;
use crate::repo::{Git, Repo, check_name, no_dash};

use linchpin::Cx;
use linchpin_kit::{ErrorKind, ToolError, ToolOutput, ToolSpec, json_len, redact_urls};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;

pub(crate) const PUSH: ToolSpec = ToolSpec::writes(
    "git_push",
    "Push",
    "remote",
    "Pushes a branch, and optionally a tag, to a configured remote. Does not replace remote commits unless force is set \
     and the server allows it.",
).extra()
.destructive()
.outside()
.needs(REMOTE);

#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(transform = describe_args("The name of the remote (default origin)", "The branch to push, to a branch of the same name (default: the current one)"))]
pub(crate) struct PushArgs {
    #[serde(flatten)]
    remote: RemoteArgs,
    /// A tag to push too
    #[serde(default)]
    tag: Option<String>,
    /// Set the remote branch as upstream of the branch
    #[serde(default)]
    set_upstream: bool,
    /// Replace remote commits, unless others have pushed since the last fetch; the server must allow it
    #[serde(default)]
    force: bool,
}

/// The result of a push.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Pushed {
    remote: String,
    /// Its URLs; truncated if there are too many.
    urls: Vec<String>,
    /// The status of each ref, for each URL.
    refs: Vec<PushedRef>,
    /// Whether the list is truncated.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    truncated: bool,
}

/// The status of a ref.
#[derive(Debug, Serialize, JsonSchema)]
struct PushedRef {
    name: String,
    /// `new`, `updated`, `forced`, `up_to_date`, `deleted` or `rejected`.
    status: &'static str,
    /// Git's summary.
    summary: String,
}

pub(crate) async fn push(git: &Git, cx: &Cx, q: PushArgs) -> Answered<Pushed> {
    q.remote.check()?;
    no_dash("tag", q.tag.as_deref().unwrap_or_default())?;
    if q.force && !git.config().allow_force {
        let fault = ToolError::denied("Replacing commits of a remote is not allowed on this server");
        return Err(fault
            .hint("git_fetch and git_merge first, then push without force; or the operator can allow it with --allow-force.")
            .into());
    }
    let repo = git.repo(cx, &q.remote.repo_path, Mode::Remote).await?;
    let way = Remote::to(&repo, q.remote.remote.as_deref(), true).await?;
    let branch = match q.remote.branch.filter(|branch| !branch.is_empty()) {
        Some(branch) => branch,
        None => repo
            .current()
            .await?
            .ok_or_else(|| ToolError::invalid("HEAD is detached").hint("Pass the branch to push."))?,
    };
    let mut sent = Vec::new();
    for (space, what, name) in [("heads", "branch", Some(&branch)), ("tags", "tag", q.tag.as_ref())] {
        let Some(name) = name.filter(|name| !name.is_empty()) else { continue };
        let full = format!("refs/{space}/{name}");
        check_name(&repo, what, &format!("refs/{space}"), name).await?;
        if !repo.ask(&["show-ref", "--verify", "--quiet", &full]).await?.good() {
            return Err(ToolError::not_found(format!("The {what} '{name}' does not exist"))
                .hint("git_branch lists branches.")
                .into());
        }
        sent.push(format!("{full}:{full}"));
    }
    let mut command =
        args(&["push", "--porcelain", "--no-progress", "--no-signed", "--no-follow-tags", "--recurse-submodules=no"]);
    if !repo.config().trust_repo_config {
        command.push("--no-verify".into());
    }
    if q.force {
        command.push("--force-with-lease".into());
    }
    if q.set_upstream {
        command.push("--set-upstream".into());
    }
    command.push(format!("--receive-pack={}", way.program("receive-pack")).into());
    command.push("--".into());
    command.push(way.remote.clone().into());
    command.extend(sent.iter().map(OsString::from));
    let done = way.run(&repo, command).await?;
    let refs = pushed(&lossy(&done.out));
    let rejected: Vec<&PushedRef> = refs.iter().filter(|r| r.status == "rejected").collect();
    if !rejected.is_empty() {
        let refused = rejected.iter().map(|r| format!("{} {}", r.name, why(&r.summary))).collect();
        let (_, refused) = few(refused, repo.budget().part(4));
        let hint = "If the remote has newer commits, git_pull (or git_fetch and git_merge) first.";
        if refs.iter().all(|r| ["rejected", "up_to_date"].contains(&r.status)) {
            let fault =
                ToolError::new(format!("{} refused: {refused}", way.shown())).kind(ErrorKind::Conflict).hint(hint);
            return Err(fault.detail(summaries(&rejected, &done)).into());
        }
        // A partial success is not a failure.
        let notice = format!("[Incomplete: {} refused {}. {hint}]", way.shown(), refused);
        return Ok(sent_to(&repo, way, refs, Some(notice)));
    }
    if !done.good() {
        return Err(refusal(&done).into());
    }
    Ok(sent_to(&repo, way, refs, None))
}

/// The refs that were pushed, as many as fit: with several URLs there is a line for each.
fn sent_to(repo: &Repo, way: Remote, mut refs: Vec<PushedRef>, rejected: Option<String>) -> ToolOutput<Pushed> {
    let (mut text, all) = (format!("Pushed to {}", way.description()), refs.len());
    let line = |r: &PushedRef| format!("\n{} {}", r.name, r.status);
    let mut budget = repo.budget().beside(text.len(), json_len(&way.urls));
    refs.truncate(refs.iter().take_while(|r| budget.takes(line(r).len(), json_len(*r) + 1)).count());
    text.extend(refs.iter().map(line));
    let more = (refs.len() < all).then(|| format!("[Truncated: {} more were pushed.]", all - refs.len()));
    let truncated = more.is_some();
    let notice = more.into_iter().chain(rejected).reduce(|one, other| format!("{one}\n{other}"));
    ToolOutput::outside(text, Pushed { remote: way.remote, urls: way.urls, refs, truncated }).notice(notice)
}

/// The messages of git and the remote about rejected refs.
fn summaries(rejected: &[&PushedRef], done: &Done) -> String {
    let lines = rejected.iter().map(|r| format!("{} {}", r.name, r.summary));
    lines.chain([done.message()]).collect::<Vec<_>>().join("\n")
}

/// Why a ref was rejected, if the reason is git's own: a remote may send any text.
pub(crate) fn why(summary: &str) -> String {
    if summary.starts_with("[remote rejected]") {
        return "[remote rejected] (by a rule of the remote)".to_owned();
    }
    let reason = REASONS.iter().find(|reason| summary == format!("[rejected] ({reason})"));
    reason.map_or("[rejected]".to_owned(), |reason| format!("[rejected] ({reason})"))
}

/// Parses the lines of `git push --porcelain`.
fn pushed(out: &str) -> Vec<PushedRef> {
    let line = |line: &str| {
        let mut parts = line.splitn(3, '\t');
        let (flag, names, summary) = (parts.next()?, parts.next()?, parts.next()?);
        let status = match flag {
            "*" => "new",
            "+" => "forced",
            "-" => "deleted",
            "=" => "up_to_date",
            "!" => "rejected",
            " " => "updated",
            _ => return None,
        };
        let name = names.rsplit_once(':').map_or(names, |(_, to)| to).to_owned();
        Some(PushedRef { name, status, summary: brief(&redact_urls(summary)) })
    };
    out.lines().filter_map(line).collect()
}

/// Git's own reasons for rejecting a ref.
const REASONS: &[&str] = &[
    "fetch first",
    "non-fast-forward",
    "stale info",
    "already exists",
    "needs force",
    "remote ref updated since checkout",
];
