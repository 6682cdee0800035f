//! What happens before requests: names become ids, and what the operator does not allow is refused.

use crate::message;
use crate::table::SEARCH;
use crate::workspace::{Kind, Workspace};
use linchpin_kit::{ErrorKind, ToolError};
use linchpin_rest::{Answer, Args, Ask, Rest};
use serde_json::{Value, json};

type Before = Result<Option<Answer>, ToolError>;

/// A list of channels: those that the operator names, or those of the kinds that are allowed.
pub(crate) async fn channels(rest: &Rest, args: &mut Args) -> Before {
    let workspace = Workspace::of(rest)?;
    let allowed = workspace.types();
    let asked = args.list("types");
    if let Some(other) = asked.iter().find(|kind| !allowed.contains(kind)) {
        return Err(ToolError::denied(format!("The operator does not allow channels of type {other}"))
            .hint(format!("Allowed: {}.", allowed.join(", "))));
    }
    let types = if asked.is_empty() { json!(allowed) } else { json!(asked) };
    args.set("types", types);
    if rest.config().only.is_empty() {
        return in_team(rest, args).await;
    }
    let mut channels = Vec::new();
    for id in &rest.config().only {
        match rest.send(Ask::get("/conversations.info").query("channel", id.as_str())).await {
            Ok(reply) => {
                let channel = reply.json()?["channel"].clone();
                workspace.learn(&channel);
                if channel["is_archived"] != true && channel.is_object() {
                    channels.push(channel);
                }
            }
            // One that is gone hides no other.
            Err(error) if error.error_kind() == Some(ErrorKind::NotFound) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(Some(json!({ "ok": true, "channels": channels }).into()))
}

/// Tokens of an organization say which workspace is meant.
pub(crate) async fn in_team(rest: &Rest, args: &mut Args) -> Before {
    if let Some(team) = &Workspace::of(rest)?.team {
        args.set("team_id", team.as_str());
    }
    Ok(None)
}

/// A message in a channel, or a part of a channel.
pub(crate) async fn about_message(rest: &Rest, args: &mut Args) -> Before {
    let channel = Workspace::of(rest)?.channel(rest, args.text("channel_id")).await?;
    args.set("channel_id", channel);
    for name in ["thread_ts", "timestamp", "oldest", "latest"] {
        if let Some(time) = args.get(name).and_then(Value::as_str).map(with_period) {
            args.set(name, time);
        }
    }
    if let Some(name) = args.get("reaction").and_then(Value::as_str).map(|name| name.trim_matches(':').to_owned()) {
        args.set("reaction", name);
    }
    Ok(None)
}

/// What is posted. It is looked at before anything is asked.
pub(crate) async fn posting(rest: &Rest, args: &mut Args) -> Before {
    let workspace = Workspace::of(rest)?;
    let text = message::checked(args.text("text"), workspace.mentions, &workspace.link_hosts)?;
    args.set("text", text);
    about_message(rest, args).await
}

pub(crate) async fn about_person(rest: &Rest, args: &mut Args) -> Before {
    let id = Workspace::of(rest)?.person(rest, args.text("user_id")).await?;
    args.set("user_id", id);
    Ok(None)
}

/// Those who will read a direct message.
pub(crate) async fn people(rest: &Rest, args: &mut Args) -> Before {
    let given: Vec<String> = args.list("user_ids").into_iter().map(str::to_owned).collect();
    if given.is_empty() || given.len() > 8 {
        return Err(ToolError::invalid("Invalid argument user_ids: expected 1 to 8 people"));
    }
    let mut ids = Vec::new();
    for one in &given {
        ids.push(Workspace::of(rest)?.person(rest, one).await?);
    }
    args.set("user_ids", json!(ids));
    Ok(None)
}

/// A file that was shared where the caller may read.
pub(crate) async fn file(rest: &Rest, args: &mut Args) -> Before {
    let workspace = Workspace::of(rest)?;
    let found = rest.send(Ask::get("/files.info").query("file", args.text("file_id")).always()).await?.json()?;
    let places = |name: &str| {
        let ids = found.pointer(name).and_then(Value::as_array).into_iter().flatten();
        ids.filter_map(Value::as_str).collect::<Vec<_>>()
    };
    let all = [("/file/channels", Kind::Public), ("/file/groups", Kind::Private), ("/file/ims", Kind::Direct)];
    let allowed = all.into_iter().any(|(path, kind)| match rest.config().only.as_slice() {
        [] => workspace.allows(kind) && !places(path).is_empty(),
        only => places(path).iter().any(|id| only.iter().any(|one| one == id)),
    });
    if !allowed {
        return Err(ToolError::denied("That file was shared in no channel that this server may read"));
    }
    let author = found.pointer("/file/user").and_then(Value::as_str).unwrap_or_default();
    if rest.config().lockdown && !workspace.members(rest).await?.contains(author) {
        return Err(ToolError::denied("This file belongs to a user that the operator has excluded"));
    }
    Ok(Some(found.into()))
}

/// A search, with the token of a user. What that user can read and this server may not is left out without a word: numbers
/// would tell what is in it.
pub(crate) async fn search(rest: &Rest, args: Args) -> Result<Answer, ToolError> {
    let workspace = Workspace::of(rest)?;
    let user = workspace.user.as_ref().ok_or_else(|| ToolError::denied("Searching needs SLACK_USER_TOKEN"))?;
    let mut found = user.send(Ask::of(&SEARCH, &args)).await?.json()?;
    let only = &rest.config().only;
    let shown = |one: &Value| {
        let (channel, id) = (&one["channel"], one["channel"]["id"].as_str().unwrap_or_default());
        if !only.is_empty() {
            return only.iter().any(|one| one == id);
        }
        let is = |name: &str| channel[name] == true;
        let is_direct = is("is_im") || is("is_mpim") || !id.starts_with(['C', 'G']);
        let is_public = channel["is_private"] == false;
        workspace.allows(match (is_direct, is_public) {
            (true, _) => Kind::Direct,
            (_, true) => Kind::Public,
            _ => Kind::Private,
        })
    };
    let messages = found.get_mut("messages").map(Value::take).unwrap_or_default();
    let matches = messages["matches"].as_array().into_iter().flatten().filter(|one| shown(one));
    let mut told = json!({ "ok": found["ok"], "query": found["query"], "matches": matches.collect::<Vec<_>>() });
    if only.is_empty() && workspace.allows(Kind::Private) && workspace.allows(Kind::Direct) {
        told["total"] = messages["total"].clone();
        told["paging"] = messages["paging"].clone();
    }
    Ok(told.into())
}

/// The mark of what a member of the workspace wrote. Slack has no member of this name.
const MARK: &str = "linchpin_trusted";

/// Whether a message was marked.
pub(crate) fn is_trusted(message: &Value) -> bool {
    message[MARK] == true
}

/// With `--lockdown`, marks the messages of those who are neither guests nor bots.
pub(crate) async fn mark(rest: &Rest, found: &mut Value) -> Result<(), ToolError> {
    if !rest.config().lockdown {
        return Ok(());
    }
    let members = Workspace::of(rest)?.members(rest).await?;
    let list = if found.get("matches").is_some() { "matches" } else { "messages" };
    for message in found.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
        let is_by_bot = message.get("bot_id").is_some_and(|id| !id.is_null()) || message["subtype"] == "bot_message";
        let trusted = !is_by_bot && message["user"].as_str().is_some_and(|user| members.contains(user));
        if let Value::Object(message) = message {
            message.insert(MARK.to_owned(), json!(trusted));
        }
    }
    Ok(())
}

/// A timestamp as Slack takes it. In addresses of messages it is `p1234567890123456`.
fn with_period(text: &str) -> String {
    let digits = text.strip_prefix('p').unwrap_or(text);
    match (digits.contains('.'), digits.len()) {
        (false, 16..) => format!("{}.{}", &digits[..digits.len() - 6], &digits[digits.len() - 6..]),
        _ => digits.to_owned(),
    }
}
