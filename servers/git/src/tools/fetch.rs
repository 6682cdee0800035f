//! `git_fetch`.

use crate::config::REMOTE;
use crate::exec::output::{Keep, lossy};
use crate::exec::program::args_and;
use crate::guard::Mode;
use crate::page::LIST_BYTES_MAX;
use crate::remote::{REFUSALS, Remote, RemoteArgs, describe_args, fetch_now, refusal};
use crate::repo::Answered;
use crate::repo::{Git, Repo, check_name};

use linchpin::Cx;
use linchpin_kit::{PAGE_ITEMS_MAX, ToolError, ToolOutput, ToolSpec, json_len};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

pub(crate) const FETCH: ToolSpec = ToolSpec::writes(
    "git_fetch",
    "Fetch",
    "remote",
    "Fetches commits from a configured remote without changing the current branch.",
)
.extra()
.idempotent()
.outside()
.needs(REMOTE);

#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(transform = describe_args("The name of the remote (default origin)", "Only this branch (default: all that are configured for the remote)"))]
pub(crate) struct FetchArgs {
    #[serde(flatten)]
    remote: RemoteArgs,
    /// Prune remote-tracking branches that no longer exist on the remote
    #[serde(default)]
    prune: bool,
    /// Also fetch all tags
    #[serde(default)]
    tags: bool,
}

/// The result of a fetch.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Fetched {
    remote: String,
    /// Its URLs; truncated if there are too many.
    urls: Vec<String>,
    /// Branches and tags that were created, moved or deleted.
    updated: Vec<Update>,
    /// Whether the list is truncated.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    truncated: bool,
    /// Whether some refs could not be updated.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    incomplete: bool,
}

/// One ref that changed.
#[derive(Debug, Serialize, JsonSchema)]
struct Update {
    name: String,
    /// The old commit; absent if the ref is new.
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<String>,
    /// The new commit; absent if the ref was deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    to: Option<String>,
}

pub(crate) async fn fetch(git: &Git, cx: &Cx, q: FetchArgs) -> Answered<Fetched> {
    q.remote.check()?;
    let repo = git.repo(cx, &q.remote.repo_path, Mode::Remote).await?;
    let way = Remote::to(&repo, q.remote.remote.as_deref(), false).await?;
    let before = refs(&repo, &way.remote).await?;
    let mut more = Vec::new();
    if q.prune {
        more.push("--prune".to_owned());
    }
    if q.tags {
        more.push("--tags".to_owned());
    }
    if let Some(branch) = q.remote.branch.as_deref().filter(|branch| !branch.is_empty()) {
        check_name(&repo, "branch", "refs/heads", branch).await?;
        more.extend(["--".to_owned(), way.remote.clone(), format!("refs/heads/{branch}")]);
    } else {
        more.extend(["--".to_owned(), way.remote.clone()]);
    }
    let done = fetch_now(&repo, &way, &more).await?;
    let after = refs(&repo, &way.remote).await;
    if !done.good() && after.as_ref().map_or(true, |after| *after == before) {
        let stuck = done.code == Some(1) && !REFUSALS.iter().any(|(what, ..)| lossy(&done.err).contains(what));
        return Err(if stuck {
            ToolError::conflict("Nothing was updated: a ref is not a fast-forward, because its history was rewritten")
                .hint("A + in remote.*.fetch allows branches to be replaced; tags are never replaced.")
        } else {
            refusal(&done)
        }
        .into());
    }
    // A fetch that succeeded is not a failure because its changes cannot be listed.
    let unknown = after.is_err();
    let after = after.unwrap_or_else(|_| before.clone());
    let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let mut updated: Vec<Update> = names
        .into_iter()
        .filter(|name| before.get(*name) != after.get(*name))
        .map(|name| Update { name: name.clone(), from: before.get(name).cloned(), to: after.get(name).cloned() })
        .collect();
    let all = updated.len();
    let mut text = format!("Fetched from {}", way.description());
    if unknown {
        text.push_str("; the updates could not be listed");
    } else if updated.is_empty() {
        text.push_str(": nothing new");
    }
    let short = |hash: &Option<String>| hash.as_ref().map_or("none", |hash| &hash[..hash.len().min(8)]).to_owned();
    let line = |u: &Update| format!("\n{} {} -> {}", u.name, short(&u.from), short(&u.to));
    let mut budget = repo.budget().beside(text.len(), json_len(&way.urls));
    let fit = updated.iter().take_while(|u| budget.takes(line(u).len(), json_len(*u) + 1)).count().min(PAGE_ITEMS_MAX);
    updated.truncate(fit);
    text.extend(updated.iter().map(line));
    let more = (fit < all).then(|| {
        format!("[Truncated: {} more were updated. git_branch with branch_type remote lists the branches.]", all - fit)
    });
    let stuck = (!done.good()).then(|| {
        "[Incomplete: some branches or tags were not updated, usually because they are not fast-forwards.]".to_owned()
    });
    let notice = more.into_iter().chain(stuck).reduce(|one, other| format!("{one}\n{other}"));
    let truncated = fit < all;
    let value = Fetched { remote: way.remote, urls: way.urls, updated, truncated, incomplete: !done.good() };
    Ok(ToolOutput::outside(text, value).notice(notice))
}

/// The refs that a fetch may change. Symbolic refs are excluded: since git 2.48 a fetch creates `origin/HEAD`, which
/// would list the main branch twice.
pub(crate) async fn refs(repo: &Repo, remote: &str) -> Result<BTreeMap<String, String>, ToolError> {
    let format = "--format=%(objectname) %(refname) %(symref)";
    let command = args_and(&["for-each-ref", format], &[format!("refs/remotes/{remote}/").as_str(), "refs/tags/"]);
    let done = repo.run(command, Keep::Upto(LIST_BYTES_MAX), Vec::new()).await?;
    if !done.good() || done.cut {
        return Err(if done.cut { ToolError::new("Too many refs to compare") } else { repo.failed(&done) });
    }
    let text = done.text();
    let all = text.lines().filter_map(|line| line.strip_suffix(' ')?.split_once(' '));
    let mut refs = BTreeMap::new();
    refs.extend(all.map(|(id, name)| (name.to_owned(), id.to_owned())));
    Ok(refs)
}
