//! Tools that talk to remotes: fetch, pull, push. They are not there without `--allow-remote`.
//!
//! A remote is named by its name in the repository's configuration, never by a URL. Where its URL leads is looked at first:
//! only https, http, ssh, git, and directories of this machine that are inside what may be used. A directory serves as a
//! remote with its hooks off.

use crate::guard::Mode;
use crate::history::{Joined, joined, merge_command};
use crate::place::{Place, settle};
use crate::run::{Done, Keep, args, lossy, redacted};
use crate::write::{COMMAND_BYTES, check_name};
use crate::{Git, Repo, no_dash};
use linchpin::{Cx, Error};
use linchpin_kit::{Fault, PAGE_ITEMS_MAX, Shown};
use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::PathBuf;

type Answered<T> = Result<Shown<T>, Error>;

/// What every tool here is told.
#[derive(Debug, Deserialize, JsonSchema)]
struct There {
    /// The repository, or a directory in it.
    repo_path: String,
    #[serde(default)]
    remote: Option<String>,
    #[serde(default)]
    branch: Option<String>,
}

impl There {
    fn check(&self) -> Result<(), Fault> {
        for (what, value) in [("remote", &self.remote), ("branch", &self.branch)] {
            no_dash(what, value.as_deref().unwrap_or_default())?;
        }
        Ok(())
    }
}

/// Says what leaving out `remote` and `branch` means, which is for each tool another thing.
fn told(remote: &str, branch: &str) -> impl FnMut(&mut Schema) {
    move |schema: &mut Schema| {
        for (name, text) in [("remote", remote), ("branch", branch)] {
            let property =
                schema.pointer_mut(&format!("/properties/{name}")).and_then(|property| property.as_object_mut());
            if let Some(property) = property {
                property.insert("description".to_owned(), text.into());
            }
        }
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(transform = told(
    "The remote's name; origin when left out.",
    "Only this branch; all that the remote is configured for when left out.",
))]
pub(crate) struct FetchArgs {
    #[serde(flatten)]
    there: There,
    /// Forget remote branches that are gone there.
    #[serde(default)]
    prune: bool,
    /// Get all tags too.
    #[serde(default)]
    tags: bool,
}

/// What was fetched.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Fetched {
    remote: String,
    /// Branches and tags that are new, moved or gone.
    updated: Vec<Update>,
    /// Whether more were updated than are named.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    truncated: bool,
}

/// One ref that changed.
#[derive(Debug, Serialize, JsonSchema)]
struct Update {
    name: String,
    /// The commit before; absent when it is new.
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<String>,
    /// The commit now; absent when it is gone.
    #[serde(skip_serializing_if = "Option::is_none")]
    to: Option<String>,
}

pub(crate) async fn fetch(git: &Git, cx: &Cx, q: FetchArgs) -> Answered<Fetched> {
    q.there.check()?;
    let repo = git.repo(cx, &q.there.repo_path, Mode::Remote).await?;
    let way = Way::to(&repo, q.there.remote.as_deref(), false).await?;
    let before = refs(&repo, &way.remote).await?;
    let mut more = Vec::new();
    if q.prune {
        more.push("--prune".to_owned());
    }
    if q.tags {
        more.push("--tags".to_owned());
    }
    if let Some(branch) = q.there.branch.as_deref().filter(|branch| !branch.is_empty()) {
        check_name(&repo, "branch", "refs/heads", branch).await?;
        more.extend(["--".to_owned(), way.remote.clone(), format!("refs/heads/{branch}")]);
    } else {
        more.extend(["--".to_owned(), way.remote.clone()]);
    }
    fetch_now(&repo, &way, &more).await?;
    let after = refs(&repo, &way.remote).await?;
    let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let mut updated: Vec<Update> = names
        .into_iter()
        .filter(|name| before.get(*name) != after.get(*name))
        .map(|name| Update { name: name.clone(), from: before.get(name).cloned(), to: after.get(name).cloned() })
        .collect();
    let truncated = updated.len() > PAGE_ITEMS_MAX;
    updated.truncate(PAGE_ITEMS_MAX);
    let short = |hash: &Option<String>| hash.as_ref().map_or("none", |hash| &hash[..hash.len().min(8)]).to_owned();
    let lines = updated.iter().map(|u| format!("{} {} -> {}", u.name, short(&u.from), short(&u.to)));
    let mut text = format!("Fetched from {}", way.remote);
    if updated.is_empty() {
        text.push_str(": nothing new");
    }
    for line in lines {
        text.push('\n');
        text.push_str(&line);
    }
    Ok(Shown::outside(text, Fetched { remote: way.remote, updated, truncated }))
}

async fn fetch_now(repo: &Repo, way: &Way, more: &[String]) -> Result<(), Fault> {
    let mut command =
        args(&["fetch", "--quiet", "--no-recurse-submodules", "--no-auto-maintenance", "--no-write-commit-graph"]);
    command.push(format!("--upload-pack={}", way.program("upload-pack")).into());
    command.extend(more.iter().map(OsString::from));
    let done = way.run(repo, command).await?;
    if done.good() { Ok(()) } else { Err(repo.failed(&done)) }
}

/// The refs that a fetch may change.
async fn refs(repo: &Repo, remote: &str) -> Result<BTreeMap<String, String>, Fault> {
    let done = repo
        .must(&["for-each-ref", "--format=%(objectname) %(refname)", &format!("refs/remotes/{remote}/"), "refs/tags/"])
        .await?;
    let text = done.text();
    Ok(text
        .lines()
        .filter_map(|line| line.split_once(' '))
        .map(|(id, name)| (name.to_owned(), id.to_owned()))
        .collect())
}

#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(transform = told(
    "The remote's name; the one the current branch follows, or origin, when left out.",
    "The branch there; the one the current branch follows, or of the same name, when left out.",
))]
pub(crate) struct PullArgs {
    #[serde(flatten)]
    there: There,
    /// Only move the branch forward; refuse when both sides have new commits.
    #[serde(default)]
    ff_only: bool,
}

pub(crate) async fn pull(git: &Git, cx: &Cx, q: PullArgs) -> Answered<Joined> {
    q.there.check()?;
    let repo = git.repo(cx, &q.there.repo_path, Mode::Remote).await?;
    repo.needs_worktree()?;
    let current = repo.current().await?.ok_or_else(|| {
        Fault::new("HEAD is detached, so there is no branch to pull into").hint("git_checkout a branch first.")
    })?;
    let full = format!("refs/heads/{current}");
    let followed =
        repo.must(&["for-each-ref", "--format=%(upstream:remotename)%00%(upstream:remoteref)", &full]).await?.text();
    let (followed_remote, followed_ref) = followed.split_once('\0').unwrap_or_default();
    let asked = |given: &Option<String>, followed: &str, other: &str| {
        let given = given.clone().filter(|given| !given.is_empty());
        given.unwrap_or_else(|| if followed.is_empty() { other.to_owned() } else { followed.to_owned() })
    };
    let remote = asked(&q.there.remote, followed_remote, "origin");
    let branch = asked(&q.there.branch, followed_ref.trim_start_matches("refs/heads/"), &current);
    check_name(&repo, "branch", "refs/heads", &branch).await?;
    let way = Way::to(&repo, Some(&remote), false).await?;
    fetch_now(&repo, &way, &["--".to_owned(), way.remote.clone(), format!("refs/heads/{branch}")]).await?;
    let hash = repo.commit("FETCH_HEAD").await?;
    let mut command = merge_command(&repo, if q.ff_only { "--ff-only" } else { "--ff" });
    if !q.ff_only {
        let message = format!("Merge branch '{branch}' of remote '{}' into {current}", way.remote);
        command.extend(args(&["-m", &message]));
    }
    command.push(hash.into());
    let resume = "Resolve them, git_add the files and git_commit; or git_merge with abort.";
    Ok(joined(&repo, command, "Merged", resume).await?)
}

#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(transform = told(
    "The remote's name; origin when left out.",
    "The branch to send, to a branch of the same name; the current one when left out.",
))]
pub(crate) struct PushArgs {
    #[serde(flatten)]
    there: There,
    /// A tag to send too.
    #[serde(default)]
    tag: Option<String>,
    /// Let the branch follow the remote's from now on.
    #[serde(default)]
    set_upstream: bool,
    /// Replace commits there, unless others have pushed since the last fetch. Needs the server's permission.
    #[serde(default)]
    force: bool,
}

/// What was sent.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Pushed {
    remote: String,
    /// What became of each ref.
    refs: Vec<PushedRef>,
}

/// What became of a ref.
#[derive(Debug, Serialize, JsonSchema)]
struct PushedRef {
    name: String,
    /// `new`, `updated`, `forced`, `up_to_date`, `deleted` or `rejected`.
    status: &'static str,
    /// Git's words for it.
    summary: String,
}

pub(crate) async fn push(git: &Git, cx: &Cx, q: PushArgs) -> Answered<Pushed> {
    q.there.check()?;
    no_dash("tag", q.tag.as_deref().unwrap_or_default())?;
    if q.force && !git.config().allow_force {
        let fault = Fault::new("Replacing commits of a remote is not allowed on this server");
        return Err(fault.hint("git_fetch and git_merge first, then push without force; or the person running the server adds --allow-force.").into());
    }
    let repo = git.repo(cx, &q.there.repo_path, Mode::Remote).await?;
    let way = Way::to(&repo, q.there.remote.as_deref(), true).await?;
    let branch = match q.there.branch.filter(|branch| !branch.is_empty()) {
        Some(branch) => branch,
        None => repo.current().await?.ok_or_else(|| Fault::new("HEAD is detached").hint("Name the branch to send."))?,
    };
    let mut sent = Vec::new();
    for (space, what, name) in [("heads", "branch", Some(&branch)), ("tags", "tag", q.tag.as_ref())] {
        let Some(name) = name.filter(|name| !name.is_empty()) else { continue };
        let full = format!("refs/{space}/{name}");
        check_name(&repo, what, &format!("refs/{space}"), name).await?;
        if !repo.ask(&["show-ref", "--verify", "--quiet", &full]).await?.good() {
            return Err(Fault::missing(format!("There is no {what} '{name}' here"))
                .hint("git_branch and git_tag list them.")
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
        let words: Vec<String> = rejected.iter().map(|r| format!("{} {}", r.name, r.summary)).collect();
        let arrived: Vec<&str> = refs.iter().filter(|r| r.status != "rejected").map(|r| r.name.as_str()).collect();
        let also = if arrived.is_empty() { String::new() } else { format!("; sent: {}", arrived.join(", ")) };
        let fault = Fault::new(format!("{} refused: {}{also}", way.remote, words.join("; ")));
        return Err(fault
            .hint("git_pull (or git_fetch and git_merge) first when the remote has newer commits.")
            .into());
    }
    if !done.good() {
        return Err(repo.failed(&done).into());
    }
    let lines: Vec<String> = refs.iter().map(|r| format!("{} {}", r.name, r.status)).collect();
    let text = format!("Pushed to {}\n{}", way.remote, lines.join("\n"));
    Ok(Shown::outside(text, Pushed { remote: way.remote, refs }))
}

/// The lines of `git push --porcelain`.
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
        Some(PushedRef { name, status, summary: redacted(summary) })
    };
    out.lines().filter_map(line).collect()
}

/// The way to a remote that was looked at.
struct Way {
    remote: String,
    /// The protocols that this run may use.
    protocols: BTreeSet<&'static str>,
    /// The absolute path of git in shell quotes, when the remote is a directory of this machine.
    local: Option<String>,
}

impl Way {
    async fn to(repo: &Repo, remote: Option<&str>, push: bool) -> Result<Self, Fault> {
        let remote = remote.filter(|remote| !remote.is_empty()).unwrap_or("origin").to_owned();
        let known = repo.must(&["remote"]).await?.text();
        if !known.lines().any(|name| name == remote) {
            let shown = redacted(linchpin_kit::clip(&remote, 200).text);
            let known = if known.is_empty() { "none".to_owned() } else { known.lines().collect::<Vec<_>>().join(", ") };
            return Err(Fault::missing(format!("There is no remote '{shown}'"))
                .hint(format!("Pass the name of a configured remote, not a URL. There are: {known}.")));
        }
        if !repo.guard.network.is_empty() {
            let names: Vec<&str> = repo.guard.network.iter().map(String::as_str).collect();
            if !repo.config().trust_repo_config {
                return Err(Fault::new(format!(
                    "The repository's own configuration decides where traffic goes: {}",
                    names.join(", ")
                ))
                .hint("Nothing was sent. The person running the server can allow it with --trust-repo-config."));
            }
        }
        let mut command = vec!["remote", "get-url", "--all"];
        if push {
            command.push("--push");
        }
        command.extend(["--", &remote]);
        let urls = repo.must(&command).await?.text();
        let mut way = Self { remote, protocols: BTreeSet::new(), local: None };
        for url in urls.lines() {
            way.admit(repo, url).await?;
        }
        Ok(way)
    }

    async fn admit(&mut self, repo: &Repo, url: &str) -> Result<(), Fault> {
        let protocol = match kind_of(url) {
            Kind::Known(protocol) => protocol,
            Kind::Directory(path) => {
                let refused = |why: String| {
                    Fault::new(format!("The remote '{}' is {why}", self.remote))
                        .hint("The person running the server can allow its directory with --repository.")
                };
                let path = settle(&repo.place.top.join(path));
                if !repo.bounds.hold(&path) {
                    return Err(refused("a directory outside what may be used".to_owned()));
                }
                let shown = path.display().to_string();
                let bounds = repo.bounds.clone();
                let place = tokio::task::spawn_blocking(move || Place::find(&bounds, &shown))
                    .await
                    .map_err(|_| Fault::new("The remote could not be looked at"))??;
                // Otherwise git would look for it under other names, beside what was checked.
                if place.top != path && place.git_dir != path {
                    return Err(refused("not the top of a repository".to_owned()));
                }
                let hazards = repo.git.reader(&repo.bounds).hazards(&place).await?;
                if !repo.config().trust_repo_config && !hazards.is_empty() {
                    let names: Vec<&str> = hazards.iter().map(String::as_str).collect();
                    return Err(refused(format!(
                        "a directory whose configuration names programs: {}",
                        names.join(", ")
                    )));
                }
                let program = repo.git.inner.program.path().to_string_lossy().replace('\'', r"'\''");
                self.local = Some(format!("'{program}'"));
                "file"
            }
            Kind::Unknown => {
                return Err(Fault::new(format!(
                    "The remote '{}' has a URL of a kind that is not allowed",
                    self.remote
                ))
                .hint("https, http, ssh and git are."));
            }
        };
        self.protocols.insert(protocol);
        Ok(())
    }

    /// The program that serves the other side. On this machine it is our git with everything off; elsewhere git's own name
    /// for it, whatever the configuration says.
    fn program(&self, name: &str) -> String {
        match &self.local {
            Some(git) => format!(
                "{git} -c core.hooksPath=/dev/null -c core.fsmonitor=false -c gc.auto=0 -c receive.autogc=false -c \
                 maintenance.auto=false -c core.alternateRefsCommand=true {name}"
            ),
            None => format!("git-{name}"),
        }
    }

    async fn run(&self, repo: &Repo, command: Vec<OsString>) -> Result<Done, Fault> {
        let protocols: Vec<&str> = self.protocols.iter().copied().collect();
        let vars = vec![("GIT_ALLOW_PROTOCOL", OsString::from(protocols.join(":")))];
        repo.run_with(command, Keep::Head(COMMAND_BYTES), Vec::new(), vars, repo.config().remote_timeout).await
    }
}

/// Where a URL leads.
enum Kind {
    Known(&'static str),
    Directory(PathBuf),
    Unknown,
}

fn kind_of(url: &str) -> Kind {
    if let Some((scheme, rest)) = url.split_once("://") {
        // `ext::…://` and the like name a helper program.
        return match scheme.to_ascii_lowercase().as_str() {
            "https" => Kind::Known("https"),
            "http" => Kind::Known("http"),
            "ssh" | "git+ssh" | "ssh+git" => Kind::Known("ssh"),
            "git" => Kind::Known("git"),
            // Git decodes `%2e` and takes `file://x/y` for `/x/y`; neither is needed.
            "file" if rest.starts_with('/') && !rest.contains('%') => Kind::Directory(PathBuf::from(rest)),
            _ => Kind::Unknown,
        };
    }
    // `~` would be expanded on the other side, to a home.
    if url.contains("::") || url.starts_with('~') {
        return Kind::Unknown;
    }
    // host:path, unless a slash comes first.
    match (url.find(':'), url.find('/')) {
        (Some(colon), slash) if slash.is_none_or(|slash| colon < slash) => Kind::Known("ssh"),
        _ => Kind::Directory(PathBuf::from(url)),
    }
}
