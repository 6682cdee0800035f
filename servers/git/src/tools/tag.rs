//! `git_tag`.

use crate::exec::output::{Keep, lossy, whole_records};
use crate::exec::program::args;
use crate::guard::Mode;
use crate::page::{LIST_BYTES_MAX, PART_BYTES_MAX, brief};
use crate::repo::Answered;
use crate::repo::{COMMAND_BYTES, Git, Repo, check_name, no_dash};
use linchpin::Cx;
use linchpin_kit::{PAGE_ITEMS_MAX, Page, Paging, ToolError, ToolOutput, ToolSpec, json_len, page};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(crate) const TAG: ToolSpec = ToolSpec::writes(
    "git_tag",
    "Tags",
    "history",
    "Lists tags, creates one (annotated if a message is given), or deletes one.",
)
.extra()
.on_request()
.destructive();

/// Actions of `git_tag`.
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
    /// The repository
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
            return Err(ToolError::invalid("name is only for create and delete")
                .hint("git_show shows one tag.")
                .into());
        }
    }
    if let Some(revision) = &q.revision {
        no_dash("revision", revision)?;
    }
    let mode = if q.action == TagAction::List { Mode::Read } else { Mode::Write };
    let repo = git.repo(cx, &q.repo_path, mode).await?;
    if q.action == TagAction::List {
        let (all, cut) = tags(&repo, "refs/tags").await?;
        let Page { items, text, mut paging } = page(&all, q.cursor.as_deref(), PAGE_ITEMS_MAX, repo.budget(), |tag| {
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
        return Err(ToolError::conflict(format!("Tag '{name}' already exists"))
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

/// The tags that match a pattern, and whether there are more.
async fn tags(repo: &Repo, pattern: &str) -> Result<(Vec<Tag>, bool), ToolError> {
    let format = "--format=%(refname:lstrip=2)%00%(objectname)%00%(*objectname)%00%(objecttype)%00%(creatordate:iso-strict)%00%(subject)%00";
    let keep = Keep::Parts(PART_BYTES_MAX, LIST_BYTES_MAX);
    let done = repo.run(args(&["for-each-ref", format, pattern]), keep, Vec::new()).await?;
    if !done.good() {
        return Err(repo.failed(&done));
    }
    let text = lossy(whole_records(&done.out, done.cut, 0));
    let parts: Vec<&str> = text.split_terminator('\0').map(|part| part.trim_start_matches('\n')).collect();
    let tag = |record: &[&str]| Tag {
        name: record[0].to_owned(),
        hash: if record[2].is_empty() { record[1] } else { record[2] }.to_owned(),
        annotated: record[3] == "tag",
        date: Some(record[4].to_owned()).filter(|date| !date.is_empty()),
        subject: brief(record[5]),
    };
    Ok((parts.chunks_exact(6).map(tag).collect(), done.cut))
}
