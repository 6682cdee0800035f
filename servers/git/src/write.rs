//! Tools for the index, branches and tags: add, commit, reset, branch, create_branch, checkout, tag, stash.

use crate::guard::Mode;
use crate::page::{LIST_BYTES_MAX, PART_BYTES_MAX, brief, few};
use crate::place::BranchHead;
use crate::read::{Diff, DiffShape, cut_about, differences};
use crate::run::{Keep, args, args_and, lossy};
use crate::{Git, Repo, fields, no_dash};
use linchpin::{Cx, Error};
use linchpin_kit::{PAGE_ITEMS_MAX, Page, Paging, ToolError, ToolOutput, clip, json_len, page};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

type Answered<T> = Result<ToolOutput<T>, Error>;

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
pub(crate) struct CommitArgs {
    /// Path of the repository
    repo_path: String,
    /// The commit message
    message: String,
}

/// A new commit.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Committed {
    /// Absent if it could not be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    hash: Option<String>,
    /// The branch; absent if HEAD is detached.
    #[serde(skip_serializing_if = "Option::is_none")]
    branch: Option<String>,
    /// An additional notice.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

pub(crate) async fn commit(git: &Git, cx: &Cx, q: CommitArgs) -> Answered<Committed> {
    if q.message.contains('\0') {
        return Err(ToolError::new("Invalid message: it contains a NUL character").into());
    }
    let repo = git.repo(cx, &q.repo_path, Mode::Write).await?;
    repo.needs_worktree()?;
    let merging = repo.place.git_dir.join("MERGE_HEAD").exists();
    if !merging && !staged(&repo).await? {
        return Err(ToolError::new(
            "No changes staged for commit. Use git_add to stage changes first; git_status shows what is currently staged.",
        )
        .into());
    }
    // Verbatim from a pipe; without anything to read there would be no pipe.
    let message = if q.message.is_empty() { "--message=" } else { "--file=-" };
    let flags = ["--quiet", "--cleanup=verbatim", "--allow-empty-message", "--no-status", repo.sign(), message];
    let mut command = args_and(&["commit"], &flags);
    if !repo.config().trust_repo_config {
        command.push("--no-verify".into());
    }
    let done = repo.run(command, Keep::Head(COMMAND_BYTES), q.message.into_bytes()).await?;
    // Git says so when only the index could not be written.
    if !done.good() && !lossy(&done.err).contains("repository has been updated") {
        return Err(repo.failed(&done).into());
    }
    // The commit is made: a question that fails from here on does not make it a failure.
    let place = repo.place.clone();
    let head = tokio::task::spawn_blocking(move || place.branch_head()).await.ok().flatten();
    let (branch, hash) = match head {
        Some(BranchHead { branch, commit: Some(hash) }) => (Some(branch), Some(hash)),
        _ => (repo.current().await.unwrap_or_default(), repo.resolve("HEAD", "commit").await.unwrap_or_default()),
    };
    let complaint = lossy(&done.err);
    let note = if complaint.contains("Applied autostash") {
        Some("Applied autostash.".to_owned())
    } else if complaint.contains("resulted in conflicts") {
        Some(
            "Applying autostash resulted in conflicts. Your changes are safe in the stash; run \"git stash pop\" or \"git \
             stash drop\" at any time."
                .to_owned(),
        )
    } else {
        None
    };
    let more = note.as_ref().map(|note| format!("\n{note}")).unwrap_or_default();
    let (text, advice) = match &hash {
        Some(hash) => (format!("Changes committed successfully with hash {hash}{more}"), None),
        None => (format!("Changes committed successfully{more}"), Some("git_log lists the hash.".to_owned())),
    };
    Ok(ToolOutput::ours(text, Committed { hash, branch, note }).notice(advice))
}

/// Whether the index holds anything that a commit would record.
async fn staged(repo: &Repo) -> Result<bool, ToolError> {
    // Before the first commit it compares with nothing; what is only meant to be added counts as absent.
    let mut command = args(&["diff", "--cached", "--quiet"]);
    command.extend(args(repo.plain_diff()));
    let done = repo.run(command, Keep::Head(COMMAND_BYTES), Vec::new()).await?;
    match done.code {
        Some(0) => Ok(false),
        Some(1) if done.err.is_empty() => Ok(true),
        _ => Err(repo.failed(&done)),
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct AddArgs {
    /// Path of the repository
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
        let fault = ToolError::new("No files provided to stage. Pass one or more paths, or ['.'] to stage everything.");
        return Err(fault.into());
    }
    let repo = git.repo(cx, &q.repo_path, Mode::Write).await?;
    repo.needs_worktree()?;
    let files = repo.paths(&q.files)?;
    // It names what changed in the index, and is silent about files that were looked at in vain.
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

#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct ResetArgs {
    /// Path of the repository
    repo_path: String,
}

pub(crate) async fn reset(git: &Git, cx: &Cx, q: ResetArgs) -> Answered<Outcome> {
    let repo = git.repo(cx, &q.repo_path, Mode::Write).await?;
    repo.needs_worktree()?;
    repo.must(&["reset", "--quiet", "--mixed"]).await?;
    Ok(Outcome::shown("All staged changes reset"))
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct BranchArgs {
    /// Path of the repository
    repo_path: String,
    /// local, remote or all
    branch_type: String,
    /// Only those that contain this commit
    #[serde(default)]
    contains: Option<String>,
    /// Only those without this commit
    #[serde(default)]
    not_contains: Option<String>,
    /// From next_cursor
    #[serde(default)]
    cursor: Option<String>,
}

/// Branches.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Branches {
    branches: Vec<Branch>,
    #[serde(flatten)]
    paging: Paging,
}

/// One branch.
#[derive(Debug, Clone, Serialize, JsonSchema)]
struct Branch {
    /// The name as other tools accept it: main, origin/main.
    name: String,
    hash: String,
    /// Whether it is the current branch.
    current: bool,
    /// Whether it is a remote-tracking branch.
    remote: bool,
    /// The upstream branch.
    #[serde(skip_serializing_if = "Option::is_none")]
    upstream: Option<String>,
    /// The first line of its last commit.
    subject: String,
}

pub(crate) async fn branch(git: &Git, cx: &Cx, q: BranchArgs) -> Answered<Branches> {
    let flag = match q.branch_type.as_str() {
        "local" => None,
        "remote" => Some("-r"),
        "all" => Some("-a"),
        other => {
            let fault = ToolError::new(format!("Invalid branch type: {}", clip(other, 200).text));
            return Err(fault.hint("Use local, remote or all.").into());
        }
    };
    let mut filters = Vec::new();
    for (name, flag, value) in
        [("contains value", "--contains", &q.contains), ("not_contains value", "--no-contains", &q.not_contains)]
    {
        if let Some(value) = value.as_deref().filter(|value| !value.is_empty()) {
            no_dash(name, value)?;
            filters.push((flag, value));
        }
    }
    let repo = git.repo(cx, &q.repo_path, Mode::Read).await?;
    let mut more: Vec<String> = flag.map(str::to_owned).into_iter().collect();
    for (flag, value) in filters {
        more.push(format!("{flag}={}", repo.commit(value).await?));
    }
    let words = args_and(&["branch", "--no-color", "--no-column", BRANCH_FORMAT], &more);
    let done = repo.run(words, Keep::Parts(PART_BYTES_MAX, LIST_BYTES_MAX), Vec::new()).await?;
    if !done.good() {
        return Err(repo.failed(&done).into());
    }
    let records = lossy(&done.out);
    let parts: Vec<&str> = records.split('\0').map(|part| part.trim_start_matches('\n')).collect();
    let mut listed = parts.as_chunks().0.iter().map(|record| Listed::of(record, flag == Some("-a"))).peekable();
    // A detached HEAD is no branch. It has a line of its own, before all branches.
    let detached = listed.next_if(|first| !first.is_ref).map(|first| first.line);
    let all: Vec<Listed> = listed.collect();
    let start = q.cursor.is_none();
    let detached = detached.filter(|_| start).map(|line| line + "\n").unwrap_or_default();
    let room = repo.room().beside(detached.len(), 0);
    let Page { items, text, mut paging } =
        page(&all, q.cursor.as_deref(), PAGE_ITEMS_MAX, room, |one| (one.line.as_str().into(), json_len(&one.branch)))?;
    let text = format!("{detached}{text}").trim_end_matches('\n').to_owned();
    let branches = items.iter().map(|one| one.branch.clone()).collect();
    let mut notice = paging.notice();
    if done.cut && notice.is_none() {
        paging.truncated = true;
        notice = Some("[Truncated: too many branches. Narrow the list with contains or branch_type.]".to_owned());
    }
    Ok(ToolOutput::outside(text, Branches { branches, paging }).notice(notice))
}

/// What is asked of each branch: with it one run gives the list for people and for programs, in the same order.
const BRANCH_FORMAT: &str = "--format=%(HEAD)%00%(worktreepath)%00%(refname)%00%(refname:lstrip=2)%00%(symref:short)%00\
                             %(objectname)%00%(upstream:short)%00%(subject)%00";

/// A line of `git branch`, and what it is about.
struct Listed {
    line: String,
    is_ref: bool,
    branch: Branch,
}

impl Listed {
    /// From the eight parts of [`BRANCH_FORMAT`]; `both` when the list has local and remote branches.
    fn of([head, elsewhere, full, short, points_to, hash, upstream, subject]: &[&str; 8], both: bool) -> Self {
        let remote = full.starts_with("refs/remotes/");
        let mark = match (*head, *elsewhere) {
            ("*", _) => "* ",
            (_, "") => "  ",
            _ => "+ ",
        };
        let place = if remote && both { "remotes/" } else { "" };
        let arrow = if points_to.is_empty() { "" } else { " -> " };
        Self {
            line: format!("{mark}{place}{short}{arrow}{points_to}"),
            is_ref: full.starts_with("refs/"),
            branch: Branch {
                name: (*short).to_owned(),
                hash: (*hash).to_owned(),
                current: *head == "*",
                remote,
                upstream: Some((*upstream).to_owned()).filter(|name| !name.is_empty()),
                subject: brief(subject),
            },
        }
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct CreateBranchArgs {
    /// Path of the repository
    repo_path: String,
    /// Name of the new branch
    branch_name: String,
    /// Where it starts (default: the current branch)
    #[serde(default)]
    base_branch: Option<String>,
}

/// The created or current branch.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct OnBranch {
    /// Its name; absent if HEAD is detached.
    #[serde(skip_serializing_if = "Option::is_none")]
    branch: Option<String>,
    hash: String,
}

pub(crate) async fn create_branch(git: &Git, cx: &Cx, q: CreateBranchArgs) -> Answered<OnBranch> {
    no_dash("branch name", &q.branch_name)?;
    let base = q.base_branch.as_deref().filter(|base| !base.is_empty());
    if let Some(base) = base {
        no_dash("base branch", base)?;
    }
    let repo = git.repo(cx, &q.repo_path, Mode::Write).await?;
    check_name(&repo, "branch", "refs/heads", &q.branch_name).await?;
    let (from, hash) = match base {
        Some(base) => {
            let hash = repo.resolve(base, "commit").await?.ok_or_else(|| {
                ToolError::new(format!("No item found with id {}", clip(base, 200).text))
                    .hint("git_branch lists the branches.")
            })?;
            (base.to_owned(), hash)
        }
        None => {
            let current = repo.current().await?.ok_or_else(|| {
                ToolError::new("HEAD is detached, so there is no current branch to branch from; pass base_branch")
            })?;
            let hash = repo.head().await?.ok_or_else(|| {
                ToolError::not_found(format!("Reference at 'refs/heads/{current}' does not exist"))
                    .hint("There are no commits yet; git_commit creates the first.")
            })?;
            (current, hash)
        }
    };
    let full = format!("refs/heads/{}", q.branch_name);
    if repo.ask(&["show-ref", "--verify", "--quiet", &full]).await?.good() {
        let fault = ToolError::new(format!("Cannot create branch '{}': {full} already exists", q.branch_name));
        return Err(fault.hint("git_checkout switches to it.").into());
    }
    // The empty last argument says that the ref must not exist, so that a race cannot move a branch.
    let why = format!("branch: Created from {from}");
    repo.must(&["update-ref", "--create-reflog", "-m", &why, &full, &hash, ""]).await?;
    let text = format!("Created branch '{}' from '{from}'", q.branch_name);
    Ok(ToolOutput::ours(text, OnBranch { branch: Some(q.branch_name), hash }))
}

/// Refuses names that git would not take, and those it takes for something else.
pub(crate) async fn check_name(repo: &Repo, what: &str, space: &str, name: &str) -> Result<(), ToolError> {
    no_dash(&format!("{what} name"), name)?;
    let full = format!("{space}/{name}");
    let fine = name != "HEAD" && name.len() <= NAME_MAX && repo.ask(&["check-ref-format", &full]).await?.good();
    if fine {
        return Ok(());
    }
    Err(ToolError::new(format!("Invalid {what} name: '{}'", clip(name, 200).text))
        .hint("Names must not contain spaces, .., or any of ~^:?*[\\, and must not end with .lock or a dot."))
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct CheckoutArgs {
    /// Path of the repository
    repo_path: String,
    /// A branch, tag or commit
    branch_name: String,
}

pub(crate) async fn checkout(git: &Git, cx: &Cx, q: CheckoutArgs) -> Answered<OnBranch> {
    no_dash("branch name", &q.branch_name)?;
    let repo = git.repo(cx, &q.repo_path, Mode::Write).await?;
    repo.needs_worktree()?;
    let hash = repo.commit(&q.branch_name).await?;
    let direct = format!("refs/heads/{}", q.branch_name);
    let full = if repo.ask(&["show-ref", "--verify", "--quiet", &direct]).await?.good() {
        direct
    } else {
        // `HEAD` and `@{-1}` stand for branches too.
        repo.ask(&["rev-parse", "--symbolic-full-name", "--verify", "--quiet", "--end-of-options", &q.branch_name])
            .await?
            .text()
    };
    let mut command = vec!["checkout", "--quiet", "--no-guess", "--no-recurse-submodules"];
    match full.strip_prefix("refs/heads/") {
        Some(branch) => {
            // Another program may have made a branch of such a name.
            no_dash("branch name", branch)?;
            command.push(branch);
        }
        // By its name, which git then remembers as where HEAD is detached; a name does not begin with `-` here.
        None => command.extend(["--detach", &q.branch_name]),
    }
    command.push("--");
    repo.must(&command).await?;
    let branch = repo.current().await.unwrap_or_default().or(full.strip_prefix("refs/heads/").map(str::to_owned));
    let text = match &branch {
        Some(branch) => format!("Switched to branch '{branch}'"),
        None => format!("HEAD is now detached at {}", &hash[..7]),
    };
    Ok(ToolOutput::ours(text, OnBranch { branch, hash }))
}

/// What `git_tag` does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum TagAction {
    #[default]
    List,
    Create,
    Delete,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct TagArgs {
    /// Path of the repository
    repo_path: String,
    /// Default: list
    #[serde(default)]
    action: TagAction,
    /// The tag to create or delete
    #[serde(default)]
    name: Option<String>,
    /// For create (default HEAD)
    #[serde(default)]
    revision: Option<String>,
    /// For create: makes the tag annotated
    #[serde(default)]
    message: Option<String>,
    /// From next_cursor
    #[serde(default)]
    cursor: Option<String>,
}

/// Tags.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Tags {
    /// The tags listed, created or deleted.
    tags: Vec<Tag>,
    #[serde(flatten)]
    paging: Paging,
}

/// One tag.
#[derive(Debug, Clone, Serialize, JsonSchema)]
struct Tag {
    name: String,
    /// The object that it points to.
    hash: String,
    /// Whether it is annotated.
    annotated: bool,
    /// The date of the tag or, if it is not annotated, of its commit.
    #[serde(skip_serializing_if = "Option::is_none")]
    date: Option<String>,
    /// The first line of its message, or of its commit's.
    subject: String,
}

pub(crate) async fn tag(git: &Git, cx: &Cx, q: TagArgs) -> Answered<Tags> {
    let name = q.name.as_deref().unwrap_or_default();
    if q.action == TagAction::List {
        no_dash("tag name", name)?;
        if !name.is_empty() {
            return Err(ToolError::new("name is only for create and delete").hint("git_show shows one tag.").into());
        }
    }
    if let Some(revision) = &q.revision {
        no_dash("revision", revision)?;
    }
    let mode = if q.action == TagAction::List { Mode::Read } else { Mode::Write };
    let repo = git.repo(cx, &q.repo_path, mode).await?;
    if q.action == TagAction::List {
        let (all, cut) = tags(&repo, "refs/tags").await?;
        let Page { items, text, mut paging } = page(&all, q.cursor.as_deref(), PAGE_ITEMS_MAX, repo.room(), |tag| {
            (tag.name.as_str().into(), json_len(tag))
        })?;
        let mut notice = paging.notice();
        if cut && notice.is_none() {
            paging.truncated = true;
            notice = Some("[Truncated: there are too many tags to list them all.]".to_owned());
        }
        let text = if all.is_empty() { "No tags".to_owned() } else { text };
        return Ok(ToolOutput::outside(text, Tags { tags: items.to_vec(), paging }).notice(notice));
    }
    check_name(&repo, "tag", "refs/tags", name).await?;
    let full = format!("refs/tags/{name}");
    let known = tags(&repo, &full).await?.0.into_iter().find(|tag| tag.name == name);
    if q.action == TagAction::Delete {
        let Some(tag) = known else {
            return Err(ToolError::not_found(format!("Tag '{name}' does not exist"))
                .hint("git_tag lists the tags.")
                .into());
        };
        repo.must(&["tag", "--delete", "--", name]).await?;
        let text = format!("Deleted tag '{name}', which pointed to {}", tag.hash);
        return Ok(ToolOutput::ours(text, Tags { tags: vec![tag], paging: Paging::whole() }));
    }
    if known.is_some() {
        return Err(ToolError::new(format!("Tag '{name}' already exists"))
            .hint("Choose another name, or delete it first.")
            .into());
    }
    let hash = repo.commit(q.revision.as_deref().filter(|revision| !revision.is_empty()).unwrap_or("HEAD")).await?;
    let message = q.message.filter(|message| !message.is_empty());
    let sign = if repo.config().sign { "--sign" } else { "--no-sign" };
    let done = match message {
        Some(message) => {
            let kind = if repo.config().sign { "--sign" } else { "--annotate" };
            let command = args(&["tag", kind, sign, "--cleanup=whitespace", "--file=-", "--", name, &hash]);
            repo.run(command, Keep::Head(COMMAND_BYTES), message.into_bytes()).await?
        }
        None => repo.ask(&["tag", "--no-sign", "--", name, &hash]).await?,
    };
    if !done.good() {
        return Err(repo.failed(&done).into());
    }
    let made = tags(&repo, &full).await.unwrap_or_default().0;
    let text = format!("Created tag '{name}' at {hash}");
    Ok(ToolOutput::ours(text, Tags { tags: made, paging: Paging::whole() }))
}

/// The tags of a pattern, and whether there are more.
async fn tags(repo: &Repo, pattern: &str) -> Result<(Vec<Tag>, bool), ToolError> {
    let format = "--format=%(refname:lstrip=2)%00%(objectname)%00%(*objectname)%00%(objecttype)%00%(creatordate:iso-strict)%00%(subject)%00";
    let keep = Keep::Parts(PART_BYTES_MAX, LIST_BYTES_MAX);
    let done = repo.run(args(&["for-each-ref", format, pattern]), keep, Vec::new()).await?;
    if !done.good() {
        return Err(repo.failed(&done));
    }
    let text = lossy(&done.out);
    let parts: Vec<&str> = text.split('\0').map(|part| part.trim_start_matches('\n')).collect();
    let tag = |record: &[&str]| Tag {
        name: record[0].to_owned(),
        hash: if record[2].is_empty() { record[1] } else { record[2] }.to_owned(),
        annotated: record[3] == "tag",
        date: Some(record[4].to_owned()).filter(|date| !date.is_empty()),
        subject: brief(record[5]),
    };
    Ok((parts.chunks_exact(6).map(tag).collect(), done.cut))
}

/// What `git_stash` does.
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
    /// Path of the repository
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
        return Err(ToolError::new("Invalid message: it contains a NUL character or a line feed").into());
    }
    let reads = matches!(q.action, StashAction::List | StashAction::Show);
    let repo = git.repo(cx, &q.repo_path, if reads { Mode::Read } else { Mode::Write }).await?;
    repo.needs_worktree()?;
    let name = format!("stash@{{{}}}", q.index);
    let on_top = repo.resolve("refs/stash", "commit").await?;
    // Reads to the end of the list; git answers with an error behind it.
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
            let Page { items, text, mut paging } = page(&all, q.cursor.as_deref(), PAGE_ITEMS_MAX, repo.room(), |s| {
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
            let room = repo.room();
            let room = room.beside(0, room.json / 4);
            let shape = DiffShape { context_lines: 3, paths: &[], stat_only: false, cursor: None, room };
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
            let told;
            (conflicts, told) = few(conflicts, repo.room().part(4));
            if conflicts.is_empty() {
                format!("Restored {name}")
            } else {
                advice = Some(format!(
                    "Resolve them and git_add the files; git_status lists them all. {name} is kept until dropped."
                ));
                format!("Restored {name} with conflicts in: {told}")
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

/// The newest that are put aside, as many as fit.
async fn few_stashes(repo: &Repo) -> Vec<Stash> {
    let (mut all, _) = stashes(repo).await.unwrap_or_default();
    all.truncate(repo.room().part(5).count(&all));
    all
}

/// All that is put aside, and whether there is more.
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
    let fields = fields(&done.out);
    let stash = |(index, record): (usize, &[String])| Stash {
        index,
        hash: record[0].clone(),
        date: record[1].clone(),
        subject: brief(&record[2]),
    };
    Ok((fields.chunks_exact(3).enumerate().map(stash).collect(), done.cut))
}

pub(crate) const COMMAND_BYTES: usize = 64 * 1024;
const NAME_MAX: usize = 240;
