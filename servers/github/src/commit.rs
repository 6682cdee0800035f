//! Calls of several steps that write: files, commits, branches.

use crate::PROBLEMS;
use crate::read::{CONTENTS, in_repository};
use base64::prelude::{BASE64_STANDARD, Engine as _};
use linchpin_kit::ErrorKind::{self, Conflict, Denied, Invalid, NotFound};
use linchpin_kit::ToolError;
use linchpin_rest::{Answer, Args, Ask, Call, Rest, post};
use serde_json::{Value, json};
use std::collections::HashMap;

const REF: &str = "/repos/{owner}/{repo}/git/ref/{ref}";
const REFS: &str = "/repos/{owner}/{repo}/git/refs/{ref}";
const FILE: &str = "100644";
const SYMLINK: &str = "120000";

/// Writes a file. What is replaced is the file that was there a moment ago: if that cannot be told, nothing is written.
pub(crate) async fn write_file(rest: &Rest, args: Args) -> Result<Answer, ToolError> {
    let (path, branch) = (in_repository(args.text("path")), args.text("branch"));
    let mut body = json!({
        "message": args.text("message"), "content": BASE64_STANDARD.encode(args.text("content")), "branch": branch,
    });
    let current = match args.text("sha") {
        "" => blob(rest, &args, path).await?,
        sha => Some(sha.to_owned()),
    };
    if let Some(sha) = current {
        body["sha"] = json!(sha);
    }
    let ask = Ask::put(CONTENTS).fill(&args).segments("path", path).json(body);
    Ok(rest.send(ask).await?.json()?.into())
}

/// Deletes the file that is there.
pub(crate) async fn delete_file(rest: &Rest, args: Args) -> Result<Answer, ToolError> {
    let path = in_repository(args.text("path"));
    let missing = || ToolError::not_found(format!("Not Found: {path} is not there"));
    let sha = blob(rest, &args, path).await?.ok_or_else(missing)?;
    let body = json!({ "message": args.text("message"), "sha": sha, "branch": args.text("branch") });
    let ask = Ask::delete(CONTENTS).fill(&args).segments("path", path).json(body);
    Ok(rest.send(ask).await?.json()?.into())
}

/// The SHA of the file that is there now.
async fn blob(rest: &Rest, args: &Args, path: &str) -> Result<Option<String>, ToolError> {
    let ask = Ask::get(CONTENTS).fill(args).segments("path", path).query("ref", args.text("branch"));
    match rest.send(ask).await {
        Ok(reply) => {
            let file = reply.json()?;
            let sha = file["sha"].as_str().filter(|_| file["type"] == "file").map(str::to_owned);
            sha.map(Some).ok_or_else(|| ToolError::conflict(format!("{path} exists and is not a file")))
        }
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}

/// Commits files on the tip of a branch and moves the branch to the commit, never by force: if it has moved meanwhile, nothing
/// is lost.
///
/// The commit is one that GitHub signs, if it can be: not one with executable files or symbolic links.
pub(crate) async fn push_files(rest: &Rest, args: Args) -> Result<Answer, ToolError> {
    let branch = format!("heads/{}", args.text("branch"));
    let files = files_of(&args)?;
    let reference = rest.send(Ask::get(REF).fill(&args).segments("ref", branch.as_str())).await?.json()?;
    let tip = sha_of(&reference["object"], "The branch has no commit")?;
    let commit = Ask::get("/repos/{owner}/{repo}/git/commits/{sha}").fill(&args).segment("sha", tip.as_str());
    let base = sha_of(&rest.send(commit).await?.json()?["tree"], "The newest commit has no tree")?;
    let mut old = Tree { rest, args: &args, root: base.clone(), folders: HashMap::new() };
    let mut modes = Vec::new();
    for (path, content) in &files {
        let mode = old.mode(path).await?;
        if mode == SYMLINK && content.contains('\n') {
            let what = format!("{path} is a symbolic link: its content is the path that it leads to, in one line");
            return Err(ToolError::conflict(what).hint("Push to that path instead."));
        }
        modes.push(mode);
    }
    let is_plain = modes.iter().all(|mode| mode == FILE);
    if is_plain && !crate::is_enterprise_server(rest.config()) {
        match commit_signed(rest, &args, &files, reference, &tip).await {
            // Nothing was committed, and why it was not the other way tells better.
            Err(error) if matches!(error.error_kind(), Some(Denied | Invalid | NotFound)) => {}
            done => return done,
        }
    }
    let entry = |((path, content), mode): (&(String, String), &String)| json!({ "path": path, "mode": mode, "type": "blob", "content": content });
    let entries: Vec<Value> = files.iter().zip(&modes).map(entry).collect();
    let tree = json!({ "base_tree": base, "tree": entries });
    let tree = rest.send(Ask::post("/repos/{owner}/{repo}/git/trees").fill(&args).json(tree)).await?.json()?;
    let tree = sha_of(&tree, "GitHub made no tree")?;
    let commit = json!({ "message": args.text("message"), "tree": tree, "parents": [tip] });
    let commit = rest.send(Ask::post("/repos/{owner}/{repo}/git/commits").fill(&args).json(commit)).await?.json()?;
    let commit = sha_of(&commit, "GitHub made no commit")?;
    let moved = Ask::patch(REFS).fill(&args).segments("ref", branch).json(json!({ "sha": commit }));
    match rest.send(moved).await {
        Ok(reply) => {
            let mut answer = reply.json()?;
            if let Some(members) = answer.as_object_mut() {
                members.insert("note".to_owned(), json!("GitHub has not signed this commit."));
            }
            Ok(answer.into())
        }
        Err(error) if matches!(error.error_kind(), Some(Invalid | Conflict)) => {
            let what = format!("Conflict: {} was not moved to the new commit {commit}", args.text("branch"));
            let told =
                ToolError::conflict(what).hint("Most likely others pushed meanwhile: read it again, and push again.");
            Err(told.detail(error.quoted().unwrap_or_default()))
        }
        Err(error) => Err(error),
    }
}

/// The one request that makes a commit with GitHub's signature; REST has none.
const GRAPHQL: Call = post("createCommitOnBranch", "", "", "", "/graphql").always().problems(PROBLEMS.failed(failed));
const QUERY: &str = "mutation($input:CreateCommitOnBranchInput!){createCommitOnBranch(input:$input){commit{oid}}}";

/// Commits plain files on the tip of a branch. The answer is the branch, as REST answers it.
async fn commit_signed(
    rest: &Rest,
    args: &Args,
    files: &[(String, String)],
    mut reference: Value,
    tip: &str,
) -> Result<Answer, ToolError> {
    let added =
        |(path, content): &(String, String)| json!({ "path": path, "contents": BASE64_STANDARD.encode(content) });
    let (headline, body) = args.text("message").split_once('\n').unwrap_or((args.text("message"), ""));
    let repository = format!("{}/{}", args.text("owner"), args.text("repo"));
    let input = json!({
        "branch": { "repositoryNameWithOwner": repository, "branchName": args.text("branch") },
        "expectedHeadOid": tip,
        "message": { "headline": headline, "body": body.trim_start_matches(['\r', '\n']) },
        "fileChanges": { "additions": files.iter().map(added).collect::<Vec<_>>() },
    });
    let ask = Ask::of(&GRAPHQL, args).json(json!({ "query": QUERY, "variables": { "input": input } }));
    let done = match rest.send(ask).await {
        Ok(reply) => reply.json()?,
        Err(error) if matches!(error.error_kind(), Some(Conflict)) => {
            let what = format!("Conflict: {} has moved, and nothing was committed", args.text("branch"));
            let told = ToolError::conflict(what).hint("Others pushed meanwhile: read it again, and push again.");
            return Err(told.detail(error.quoted().unwrap_or_default()));
        }
        Err(error) => return Err(error),
    };
    let Some(sha) = done["data"]["createCommitOnBranch"]["commit"]["oid"].as_str() else {
        let odd = ToolError::new("GitHub did not say what it committed").kind(ErrorKind::Upstream { status: None });
        return Err(odd.hint("Read the branch before trying again."));
    };
    let object = &mut reference["object"];
    if let Some(url) = object["url"].as_str().map(|url| url.replace(tip, sha)) {
        object["url"] = json!(url);
    }
    object["sha"] = json!(sha);
    Ok(reference.into())
}

/// What went wrong with a request of GraphQL, whose status is always one of success.
fn failed(answer: &Value) -> Option<ErrorKind> {
    let error = answer["errors"].as_array()?.first()?;
    Some(match error["type"].as_str() {
        Some("NOT_FOUND") => NotFound,
        Some("FORBIDDEN" | "INSUFFICIENT_SCOPES") => Denied,
        Some("STALE_DATA") => Conflict,
        Some("RATE_LIMITED") => ErrorKind::Limited { retry_after: None },
        _ => Invalid,
    })
}

/// Creates a branch at another one's tip; without one, at that of the default branch.
pub(crate) async fn create_branch(rest: &Rest, args: Args) -> Result<Answer, ToolError> {
    let from = match args.text("from_branch") {
        "" => {
            let repository = rest.send(Ask::get("/repos/{owner}/{repo}").fill(&args)).await?.json()?;
            let default = repository["default_branch"].as_str().map(str::to_owned);
            default.ok_or_else(|| ToolError::not_found("The repository has no default branch"))?
        }
        name => name.to_owned(),
    };
    let tip = rest.send(Ask::get(REF).fill(&args).segments("ref", format!("heads/{from}"))).await?.json()?;
    let sha = sha_of(&tip["object"], "The branch has no commit")?;
    let body = json!({ "ref": format!("refs/heads/{}", args.text("branch")), "sha": sha });
    Ok(rest.send(Ask::post("/repos/{owner}/{repo}/git/refs").fill(&args).json(body)).await?.json()?.into())
}

/// The files to push: safe paths, each once.
fn files_of(args: &Args) -> Result<Vec<(String, String)>, ToolError> {
    let mut files: Vec<(String, String)> = Vec::new();
    for file in args.get("files").and_then(Value::as_array).into_iter().flatten() {
        let path = in_repository(file["path"].as_str().unwrap_or_default());
        let bad = |why: &str| ToolError::invalid(format!("Invalid argument files: {path:?} {why}"));
        if path.split('/').any(|part| matches!(part.trim(), "" | "." | "..") || part.eq_ignore_ascii_case(".git")) {
            return Err(bad("is not the path of a file"));
        }
        if path.chars().any(char::is_control) {
            return Err(bad("has control characters"));
        }
        if files.iter().any(|(known, _)| known == path) {
            return Err(bad("is there twice"));
        }
        files.push((path.to_owned(), file["content"].as_str().unwrap_or_default().to_owned()));
    }
    if files.is_empty() {
        return Err(ToolError::invalid("Invalid argument files: it is empty"));
    }
    Ok(files)
}

fn sha_of(value: &Value, missing: &str) -> Result<String, ToolError> {
    let upstream = || ToolError::new(missing).kind(ErrorKind::Upstream { status: None });
    value["sha"].as_str().map(str::to_owned).ok_or_else(upstream)
}

/// The tree that a commit is made on, read folder by folder: a tree as a whole may be cut.
struct Tree<'a> {
    rest: &'a Rest,
    args: &'a Args,
    root: String,
    /// Entries by folder; a folder that is not there has none.
    folders: HashMap<String, HashMap<String, Entry>>,
}

#[derive(Clone)]
struct Entry {
    mode: String,
    sha: String,
}

impl Tree<'_> {
    /// The mode that a file keeps: that of the one it replaces.
    async fn mode(&mut self, path: &str) -> Result<String, ToolError> {
        let (mut folder, mut sha) = (String::new(), self.root.clone());
        let parts: Vec<&str> = path.split('/').collect();
        for (n, part) in parts.iter().enumerate() {
            let found = self.entries(&folder, &sha).await?.get(*part).cloned();
            let is_last = n + 1 == parts.len();
            let Some(entry) = found else { return Ok(FILE.to_owned()) };
            let is_folder = matches!(entry.mode.as_str(), "040000" | "40000");
            let other = |what: &str| {
                let at = parts[..=n].join("/");
                Err(ToolError::conflict(format!("{at} is {what}: {path} cannot be written")))
            };
            match (is_last, is_folder, entry.mode.as_str()) {
                (true, true, _) => return other("a directory"),
                (_, _, "160000") => return other("a submodule"),
                (true, ..) => return Ok(entry.mode),
                (false, false, _) => return other("not a directory"),
                (false, true, _) => {
                    folder = format!("{folder}{part}/");
                    sha = entry.sha;
                }
            }
        }
        Ok(FILE.to_owned())
    }

    async fn entries(&mut self, folder: &str, sha: &str) -> Result<&HashMap<String, Entry>, ToolError> {
        if !self.folders.contains_key(folder) {
            let ask = Ask::get("/repos/{owner}/{repo}/git/trees/{sha}").fill(self.args);
            let tree = self.rest.send(ask.segment("sha", sha)).await?.json()?;
            let text = |entry: &Value, name: &str| entry[name].as_str().map(str::to_owned);
            let Some(entries) = tree["tree"].as_array().filter(|_| tree["truncated"] != true) else {
                return Err(ToolError::new("GitHub did not list the whole directory")
                    .kind(ErrorKind::Upstream { status: None }));
            };
            let read = |entry: &Value| {
                let (path, mode, sha) = (text(entry, "path")?, text(entry, "mode")?, text(entry, "sha")?);
                Some((path, Entry { mode, sha }))
            };
            self.folders.insert(folder.to_owned(), entries.iter().filter_map(read).collect());
        }
        Ok(&self.folders[folder])
    }
}
