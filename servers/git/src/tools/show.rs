//! `git_show`.

use crate::compare::cut_about;
use crate::exec::output::{Keep, fields, whole_records};
use crate::exec::program::args;
use crate::guard::Mode;

use crate::page::LIST_BYTES_MAX;
use crate::parse::log::{COMMIT_FORMAT, Commit, commits, iso_date};
use crate::parse::patch::{file_stats, patches};
use crate::repo::{Git, Repo, no_dash, unresolved};

use linchpin::{Cx, Error};
use linchpin_kit::{Budget, Page, Paging, ToolError, ToolOutput, ToolSpec, json_len, page, unknown_cursor};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(crate) const SHOW: ToolSpec = ToolSpec::reads(
    "git_show",
    "Show",
    "read",
    "Shows a commit with its changes, or a file or directory as of a revision (<revision>:<path>).",
);

#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct ShowArgs {
    /// The repository
    repo_path: String,
    /// A commit, branch or tag, or <revision>:<path>
    revision: String,
    /// From next_cursor
    #[serde(default)]
    cursor: Option<String>,
}

/// The content of a revision.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Object {
    /// `commit`, `file` or `directory`.
    kind: &'static str,
    hash: String,
    /// The commit; a long message starts at the cursor.
    #[serde(skip_serializing_if = "Option::is_none")]
    commit: Option<Commit>,
    /// The changes of a commit, truncated if too long; or the content of a file from the cursor on.
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<String>,
    /// The names in a directory; directories end with a slash.
    #[serde(skip_serializing_if = "Option::is_none")]
    names: Option<Vec<String>>,
    /// Size of a file in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
    #[serde(flatten)]
    paging: Paging,
}

pub(crate) async fn show(git: &Git, cx: &Cx, q: ShowArgs) -> Result<ToolOutput<Object>, Error> {
    no_dash("revision", &q.revision)?;
    let repo = git.repo(cx, &q.repo_path, Mode::Read).await?;
    // After a colon comes a path or text; anything else is usually a commit.
    if !q.revision.contains(':')
        && let Some(hash) = repo.resolve(&q.revision, "commit").await?
    {
        return Ok(show_commit(&repo, hash, q.cursor.as_deref()).await?);
    }
    let Some(hash) = repo.resolve(&q.revision, "object").await? else {
        return Err(match q.revision.split_once(':') {
            Some((before, path)) if !before.is_empty() && repo.resolve(before, "object").await?.is_some() => {
                ToolError::not_found(format!("Blob or Tree named '{path}' not found"))
                    .hint(format!("git_show {before}: lists the top-level names."))
                    .into()
            }
            _ => unresolved(&q.revision).into(),
        });
    };
    let kind = repo.must(&["cat-file", "-t", &hash]).await?.text();
    match kind.as_str() {
        "blob" => Ok(show_file(&repo, hash, q.cursor.as_deref()).await?),
        "tree" => Ok(show_directory(&repo, hash, q.cursor.as_deref()).await?),
        _ => {
            let hash = repo.commit(&q.revision).await?;
            Ok(show_commit(&repo, hash, q.cursor.as_deref()).await?)
        }
    }
}

/// A file from the byte offset of the cursor on.
async fn show_file(repo: &Repo, hash: String, cursor: Option<&str>) -> Result<ToolOutput<Object>, ToolError> {
    let size: u64 = repo.must(&["cat-file", "-s", &hash]).await?.text().parse().unwrap_or(u64::MAX);
    let start = Paging::start(cursor, usize::try_from(size).unwrap_or(usize::MAX))? as u64;
    let done = repo.run(args(&["cat-file", "blob", &hash]), Keep::From(start, repo.max), Vec::new()).await?;
    if !done.good() {
        return Err(repo.failed(&done));
    }
    let (text, taken) = repo.budget().text(&done.out, 0, done.cut);
    let more = done.cut || taken < done.out.len();
    let next = (start + taken as u64).to_string();
    let notice = more.then(|| {
        format!(
            "[Truncated: the file has {size} bytes. Continue with the same arguments and cursor={next:?}; git_grep finds lines in it.]"
        )
    });
    let paging = if more { Paging::more(next) } else { Paging::whole() };
    let value =
        Object { kind: "file", hash, commit: None, content: Some(text.clone()), names: None, size: Some(size), paging };
    Ok(ToolOutput::outside(text, value).notice(notice))
}

/// The names in a directory from the index of the cursor on.
async fn show_directory(repo: &Repo, hash: String, cursor: Option<&str>) -> Result<ToolOutput<Object>, ToolError> {
    let done = repo.run(args(&["ls-tree", "-z", &hash]), Keep::Upto(LIST_BYTES_MAX), Vec::new()).await?;
    if !done.good() {
        return Err(repo.failed(&done));
    }
    let name = |record: String| {
        let (meta, name) = record.split_once('\t')?;
        Some(if meta.contains(" tree ") { format!("{name}/") } else { name.to_owned() })
    };
    let all: Vec<String> = fields(whole_records(&done.out, done.cut, 0)).into_iter().filter_map(name).collect();
    let Page { items, text, mut paging } =
        page(&all, cursor, NAMES_MAX, repo.budget(), |name| (name.into(), json_len(name)))?;
    let names = items.to_vec();
    let mut notice = paging.notice();
    if done.cut && notice.is_none() {
        paging.truncated = true;
        notice = Some("[Truncated: the directory has too many names to list them all.]".to_owned());
    }
    let value = Object { kind: "directory", hash, commit: None, content: None, names: Some(names), size: None, paging };
    Ok(ToolOutput::outside(text, value).notice(notice))
}

/// A commit; the cursor is the offset in a long message, which the changes follow.
async fn show_commit(repo: &Repo, hash: String, cursor: Option<&str>) -> Result<ToolOutput<Object>, ToolError> {
    let start: usize = match cursor {
        None => 0,
        Some(text) => text.strip_prefix('m').and_then(|start| start.parse().ok()).ok_or_else(|| {
            unknown_cursor(text)
                .hint("Cursors are for files, directories and long messages. git_diff shows parts of a commit.")
        })?,
    };
    let head = [
        "log",
        "-1",
        "-z",
        COMMIT_FORMAT,
        "--no-show-signature",
        "--no-notes",
        "--no-decorate",
        "--no-patch",
        &hash,
        "--",
    ];
    let head = repo.run(args(&head), Keep::Head(LIST_BYTES_MAX), Vec::new()).await?;
    if !head.good() {
        return Err(repo.failed(&head));
    }
    let Some(mut commit) = commits(&head.out).into_iter().next() else {
        return Err(ToolError::new("The commit's header is too large to show"));
    };
    let message = std::mem::take(&mut commit.message);
    let message = message
        .get(start..)
        .filter(|rest| start == 0 || !rest.is_empty())
        .ok_or_else(|| unknown_cursor(cursor.unwrap_or_default()))?;
    let mut text =
        format!("commit {}\nAuthor: {} <{}>\nDate:   {}\n\n", commit.hash, commit.author, commit.email, commit.date);
    commit.date = iso_date(&commit.date);
    let budget = repo.budget().beside(text.len() + 8, json_len(&commit));
    let (part, taken) = budget.lines(message.as_bytes(), 4, false);
    for line in part.trim_end_matches('\n').split('\n') {
        text.push_str("    ");
        text.push_str(line);
        text.push('\n');
    }
    commit.message = part;
    let mut value = Object {
        kind: "commit",
        hash,
        content: Some(String::new()),
        names: None,
        size: None,
        paging: Paging::whole(),
        commit: Some(commit),
    };
    if taken < message.len() {
        let next = format!("m{}", start + taken);
        let notice = format!(
            "[Truncated: the message is long. Continue with the same arguments and cursor={next:?}; the changes follow it.]"
        );
        value.paging = Paging::more(next);
        return Ok(ToolOutput::outside(text, value).notice(Some(notice)));
    }
    let (patch, notice) = changes(repo, &value, repo.budget().beside(text.len(), json_len(&value))).await?;
    text.push_str(&patch);
    value.content = Some(patch);
    value.paging.truncated = notice.is_some();
    Ok(ToolOutput::outside(text, value).notice(notice))
}

/// The changes of a commit against its first parent; if they do not fit, a summary and how to see the rest.
pub(crate) async fn changes(repo: &Repo, of: &Object, budget: Budget) -> Result<(String, Option<String>), ToolError> {
    let empty = if of.hash.len() == 40 { EMPTY_SHA1 } else { EMPTY_SHA256 };
    let first = of.commit.as_ref().and_then(|commit| commit.parents.first());
    let parent = first.map_or(empty, String::as_str);
    let mut command = args(&["diff", "--full-index", "-M", "-p", "--unified=3", "--src-prefix=a/", "--dst-prefix=b/"]);
    command.extend(args(repo.plain_diff()));
    command.extend(args(&[parent, &of.hash, "--"]));
    let done = repo.run(command, Keep::Upto(repo.max), Vec::new()).await?;
    if !done.good() {
        return Err(repo.failed(&done));
    }
    let patch = patches(&done.out);
    let (text, taken) = budget.lines(&patch, 0, done.cut);
    if !done.cut && taken == patch.len() {
        return Ok((text, None));
    }
    let numbers = args(&["diff", "--numstat", "-z", "--no-ext-diff", "--no-textconv", parent, &of.hash, "--"]);
    let numbers = repo.run(numbers, Keep::Upto(LIST_BYTES_MAX), Vec::new()).await;
    let files = numbers.map(|numbers| file_stats(&numbers.out)).unwrap_or_default();
    let about = cut_about(&files, true, repo.max / 8);
    let target = format!("{}..{}", &parent[..12], &of.hash[..12]);
    Ok((
        text,
        Some(format!(
            "{about}To see the rest, call git_diff with target {target}; cursor, paths, stat_only and context_lines select what it \
         shows.]"
        )),
    ))
}

/// The empty tree: always known to git, whether stored or not.
const EMPTY_SHA1: &str = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";

const EMPTY_SHA256: &str = "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321";

const NAMES_MAX: usize = 10_000;
