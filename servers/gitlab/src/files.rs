//! What takes several requests: files that may be there already, directories, the number of projects found.

use crate::original::{GET_FILE_CONTENTS, SEARCH_REPOSITORIES};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use linchpin_kit::{ErrorKind, ToolError};
use linchpin_rest::{Answer, Args, Ask, Rest, file_text, is_path};
use serde_json::{Value, json};

/// Files of one commit.
const FILES_MAX: usize = 200;

/// Entries of a directory.
const ENTRIES: &str = "100";

const FILE: &str = "/projects/{project_id}/repository/files/{file_path}";
const COMMITS: &str = "/projects/{project_id}/repository/commits";
const TREE: &str = "/projects/{project_id}/repository/tree";

fn of_project(ask: Ask, args: &Args) -> Ask {
    ask.slashed("project_id", args.text("project_id"))
}

/// Whether a file is there.
async fn exists(rest: &Rest, args: &Args, path: &str, at: &str) -> Result<bool, ToolError> {
    match rest.send(of_project(Ask::get(FILE), args).slashed("file_path", path).query("ref", at)).await {
        Ok(_) => Ok(true),
        Err(error) if error.error_kind() == Some(ErrorKind::NotFound) => Ok(false),
        Err(error) => Err(error),
    }
}

/// One file: created or updated, or moved by a commit of its own.
pub(crate) async fn create_or_update(rest: &Rest, args: Args) -> Result<Answer, ToolError> {
    let text = |name: &str| args.text(name).to_owned();
    if !is_path(args.text("file_path")) {
        return Err(ToolError::invalid("Invalid argument file_path: expected the path of a file"));
    }
    let (path, branch, message) = (text("file_path"), text("branch"), text("commit_message"));
    if let Some(previous) = args.get("previous_path") {
        let action = json!({
            "action": "move", "file_path": path, "previous_path": previous, "content": text("content"),
        });
        let body = json!({ "branch": branch, "commit_message": message, "actions": [action] });
        let commit = rest.send(of_project(Ask::post(COMMITS), &args).json(body)).await?.json()?;
        return Ok(json!({ "file_path": path, "branch": branch, "commit_id": commit["id"] }).into());
    }
    let there = exists(rest, &args, &path, &branch).await?;
    let ask = if there { Ask::put(FILE) } else { Ask::post(FILE) };
    let body = json!({ "branch": branch, "content": text("content"), "commit_message": message });
    Ok(rest.send(of_project(ask, &args).slashed("file_path", path).json(body)).await?.json()?.into())
}

/// A commit of several files, each created or updated as it is needed.
pub(crate) async fn push(rest: &Rest, args: Args) -> Result<Answer, ToolError> {
    let files = args.get("files").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let bad = |why: String| ToolError::invalid(format!("Invalid argument files: {why}"));
    if files.is_empty() || files.len() > FILES_MAX {
        return Err(bad(format!("expected 1 to {FILES_MAX} files")));
    }
    let read = |file: &Value| match (file["file_path"].as_str(), file["content"].as_str()) {
        (Some(path), Some(content)) if is_path(path) => Ok((path.to_owned(), content.to_owned())),
        (path, _) => Err(bad(format!("{} is not a file with file_path and content", path.unwrap_or_default()))),
    };
    let files = files.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    let start = args.get("start_branch").and_then(Value::as_str);
    let at = start.unwrap_or(args.text("branch"));
    let mut actions = Vec::new();
    for (path, content) in files {
        let action = if exists(rest, &args, &path, at).await? { "update" } else { "create" };
        actions.push(json!({ "action": action, "file_path": path, "content": content }));
    }
    let mut body = json!({
        "branch": args.text("branch"), "commit_message": args.text("commit_message"), "actions": actions,
    });
    if let Some(start) = start {
        body["start_branch"] = json!(start);
    }
    Ok(rest.send(of_project(Ask::post(COMMITS), &args).json(body)).await?.json()?.into())
}

/// What a file contains, as text where it is text; or what a directory contains.
pub(crate) async fn contents(rest: &Rest, args: Args) -> Result<Answer, ToolError> {
    let path = args.text("file_path");
    if matches!(path, "/" | ".") {
        return directory(rest, &args, "").await;
    }
    let missing = match rest.send(Ask::of(&GET_FILE_CONTENTS, &args)).await {
        Ok(reply) => {
            let mut file = reply.json()?;
            let bytes = file["content"].as_str().and_then(|content| STANDARD.decode(content).ok());
            let text = bytes.and_then(|bytes| file_text(bytes, rest.config().key.as_ref()).ok());
            if let Some((text, hidden)) = text {
                if hidden > 0 {
                    file["left_out"] = json!(format!("{hidden} control or invisible characters"));
                }
                file["content"] = json!(text);
                file["encoding"] = json!("text");
            }
            return Ok(file.into());
        }
        Err(error) if error.error_kind() == Some(ErrorKind::NotFound) => error,
        Err(error) => return Err(error),
    };
    match directory(rest, &args, path).await {
        Ok(found) => Ok(found),
        // It is neither, and what was asked for is a file.
        Err(error) if error.error_kind() == Some(ErrorKind::NotFound) => Err(missing),
        Err(error) => Err(error),
    }
}

async fn directory(rest: &Rest, args: &Args, path: &str) -> Result<Answer, ToolError> {
    let ask = of_project(Ask::get(TREE), args).query("path", path).query("ref", args.text("ref"));
    let reply = rest.send(ask.query("per_page", ENTRIES)).await?;
    let entries = reply.json()?;
    // A path that is not there has no entries, in some versions.
    if !path.is_empty() && entries.as_array().is_none_or(Vec::is_empty) {
        return Err(ToolError::not_found("There is no such file or directory"));
    }
    let mut found = json!({ "type": "directory", "entries": entries });
    if reply.headers.get("x-next-page").is_some_and(|next| !next.is_empty()) {
        found["more"] = json!("There is more: use gitlab_repo_tree.");
    }
    Ok(found.into())
}

/// Projects, with the number of all that were found.
pub(crate) async fn search(rest: &Rest, args: Args) -> Result<Answer, ToolError> {
    if !rest.config().only.is_empty() {
        return search_named(rest, &args).await;
    }
    let reply = rest.send(Ask::of(&SEARCH_REPOSITORIES, &args)).await?;
    let items = reply.json()?;
    let number = |name: &str| reply.headers.get(name)?.to_str().ok()?.parse::<u64>().ok();
    let shown = items.as_array().map_or(0, Vec::len);
    // GitLab leaves the number out where there are more than 10,000.
    let mut found = json!({ "count": number("x-total").unwrap_or(shown as u64), "items": items });
    if let Some(next) = number("x-next-page") {
        found["next_page"] = json!(next);
    }
    Ok(found.into())
}

/// The projects that the operator names which have these words: a search of all would show pages without them.
async fn search_named(rest: &Rest, args: &Args) -> Result<Answer, ToolError> {
    let words = args.text("search").to_lowercase();
    let mut found = Vec::new();
    for named in &rest.config().only {
        let project = match rest.send(Ask::get("/projects/{project_id}").slashed("project_id", named.as_str())).await {
            Ok(reply) => reply.json()?,
            // One that is gone hides no other.
            Err(error) if error.error_kind() == Some(ErrorKind::NotFound) => continue,
            Err(error) => return Err(error),
        };
        let text = |name: &str| project[name].as_str().unwrap_or_default().to_lowercase();
        let about = [text("name"), text("path_with_namespace"), text("description")].join("\n");
        if words.split_whitespace().all(|word| about.contains(word)) {
            found.push(project);
        }
    }
    let (page, size) = (args.int("page").unwrap_or(1), args.int("per_page").unwrap_or(20));
    let number = |n: i64| usize::try_from(n).unwrap_or_default();
    let shown: Vec<Value> = found.into_iter().skip(number((page - 1) * size)).take(number(size)).collect();
    Ok(json!({ "items": shown }).into())
}
