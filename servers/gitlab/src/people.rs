//! Whose words are left out with `--lockdown`: people who are not developers of the project. It is a filter, not a boundary:
//! what developers quote is theirs.

use linchpin_kit::ToolError;
use linchpin_rest::{Answer, Args, Ask, LEFT_OUT, Rest};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The access level of a developer.
const DEVELOPER: i64 = 30;

/// The mark of what a developer wrote. GitLab has no member of this name.
const MARK: &str = "linchpin_trusted";

/// Whether what has an author was marked.
pub(crate) fn is_trusted(item: &Value) -> bool {
    item[MARK] == true
}

/// Whether a discussion has comments that are shown.
pub(crate) fn has_notes(discussion: &Value) -> bool {
    discussion["notes"].as_array().is_some_and(|notes| !notes.is_empty())
}

/// Marks an answer, or each of its items, if its author is a developer.
pub(crate) async fn mark(rest: &Rest, args: &Args, found: &mut Value) -> Result<(), ToolError> {
    if !rest.config().lockdown {
        return Ok(());
    }
    let items: Vec<&mut Value> = match found {
        Value::Array(items) => items.iter_mut().collect(),
        one => vec![one],
    };
    let authors: BTreeSet<i64> = items.iter().filter_map(|item| author(item)).collect();
    let developers = developers(rest, args, &authors).await?;
    for item in items {
        let trusted = author(item).is_some_and(|id| developers.contains(&id));
        if let Value::Object(members) = item {
            members.insert(MARK.to_owned(), json!(trusted));
        }
    }
    Ok(())
}

/// The same for what was found: code, commits, milestones and wikis are written by those who may.
pub(crate) async fn mark_found(rest: &Rest, args: &Args, found: &mut Value) -> Result<(), ToolError> {
    if matches!(args.text("scope"), "issues" | "merge_requests" | "notes") {
        return mark(rest, args, found).await;
    }
    for item in found.as_array_mut().into_iter().flatten().filter_map(Value::as_object_mut) {
        item.insert(MARK.to_owned(), json!(true));
    }
    Ok(())
}

/// Leaves out comments of others in discussions.
pub(crate) async fn mark_notes(rest: &Rest, args: &Args, found: &mut Value) -> Result<(), ToolError> {
    if !rest.config().lockdown {
        return Ok(());
    }
    let discussions = found.as_array_mut().map(Vec::as_mut_slice).unwrap_or_default();
    let notes = discussions.iter().filter_map(|discussion| discussion["notes"].as_array()).flatten();
    let authors: BTreeSet<i64> = notes.filter_map(author).collect();
    let developers = developers(rest, args, &authors).await?;
    for discussion in discussions.iter_mut().filter_map(Value::as_object_mut) {
        let Some(notes) = discussion.get_mut("notes").and_then(Value::as_array_mut) else { continue };
        let before = notes.len();
        notes.retain(|note| author(note).is_some_and(|id| developers.contains(&id)));
        let left_out = before - notes.len();
        discussion.insert(LEFT_OUT.to_owned(), json!(left_out));
    }
    Ok(())
}

/// What is told of an issue or a merge request that was changed: nothing that its author wrote. Nothing is asked, for it is done.
pub(crate) async fn changed(rest: &Rest, found: &mut Value) -> Result<(), ToolError> {
    if let (true, Value::Object(members)) = (rest.config().lockdown, found) {
        let told = ["id", "iid", "project_id", "state", "labels", "merged_at", "merge_commit_sha", "web_url"];
        members.retain(|name, _| told.contains(&name.as_str()));
    }
    Ok(())
}

/// Refuses what belongs to a merge request of somebody else.
pub(crate) async fn of_trusted(rest: &Rest, args: &mut Args) -> Result<Option<Answer>, ToolError> {
    if !rest.config().lockdown {
        return Ok(None);
    }
    let ask = Ask::get("/projects/{project_id}/merge_requests/{merge_request_iid}").fill(args);
    let found = rest.send(ask.slashed("project_id", args.text("project_id"))).await?.json()?;
    let authors: BTreeSet<i64> = author(&found).into_iter().collect();
    match developers(rest, args, &authors).await?.is_empty() {
        false => Ok(None),
        true => Err(ToolError::denied("The operator restricted this server to what developers of the project wrote")),
    }
}

fn author(item: &Value) -> Option<i64> {
    item.pointer("/author/id")?.as_i64()
}

/// Those of these people who are developers of the project, also by their groups.
async fn developers(rest: &Rest, args: &Args, people: &BTreeSet<i64>) -> Result<BTreeSet<i64>, ToolError> {
    if people.is_empty() {
        return Ok(BTreeSet::new());
    }
    let ask = Ask::get("/projects/{project_id}/members/all").slashed("project_id", args.text("project_id"));
    let ask = people.iter().fold(ask.query("per_page", "100"), |ask, id| ask.query("user_ids[]", id.to_string()));
    let members = rest.send(ask).await?.json()?;
    let is_developer = |member: &&Value| member["access_level"].as_i64().is_some_and(|level| level >= DEVELOPER);
    let members = members.as_array().into_iter().flatten().filter(is_developer);
    Ok(members.filter_map(|member| member["id"].as_i64()).filter(|id| people.contains(id)).collect())
}
