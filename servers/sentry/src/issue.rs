//! An issue with its latest event, under names of our own.

use crate::name::{self, Issue, Name};
use crate::{HOST, Own, private};
use linchpin_kit::{ToolError, json_len};
use linchpin_rest::{Answer, Args, Ask, Rest};
use serde_json::{Map, Value, json};

/// Exceptions, half of them the first ones; breadcrumbs, the last ones; tags.
const EXCEPTIONS_MAX: usize = 20;
const CRUMBS_MAX: usize = 30;
const TAGS_MAX: usize = 100;

/// Bytes of all exceptions together as JSON, and of all breadcrumbs.
const EXCEPTIONS_BYTES: usize = 45_000;
const CRUMBS_BYTES: usize = 25_000;

/// Frames of all exceptions together, the innermost ones of each; whether those of the program have their lines of code; and how many
/// innermost ones have them anyway. The first that is short enough is taken.
const FRAMES: [(usize, bool, usize); 6] =
    [(100, true, usize::MAX), (100, true, 5), (100, false, 5), (50, false, 3), (20, false, 1), (20, false, 0)];

/// Reads the issue that a text names.
pub(crate) async fn read(rest: &Rest, text: &str) -> Result<Value, ToolError> {
    let default = Own::default();
    let own = rest.state::<Own>().unwrap_or(&default);
    let host = if own.host.is_empty() { HOST } else { &own.host };
    let name = name::read(text, host)?;
    let org = name.org.or_else(|| own.org.clone());
    let id = match name.issue {
        Issue::Id(id) => id,
        Issue::Shared(id) => return shared(rest, own, org, id).await,
        Issue::Short(short) => {
            let org = org.as_ref().ok_or_else(|| {
                ToolError::invalid("A short id needs an organization")
                    .hint("Give the URL of the issue. The operator can set SENTRY_ORG.")
            })?;
            let ask = Ask::get("/organizations/{org}/shortids/{short}/").segment("org", org).segment("short", &short);
            let found = rest.send(ask).await?.json()?;
            text_of(&found, "groupId")
                .ok_or_else(|| ToolError::not_found(format!("No issue has the short id {short}")))?
        }
    };
    let (issue, event) = match &org {
        Some(org) => ("/organizations/{org}/issues/{id}/", Some(org)),
        None => ("/issues/{id}/", None),
    };
    let asked = |path| {
        let ask = Ask::get(path).segment("id", &id);
        if let Some(org) = event { ask.segment("org", org) } else { ask }
    };
    let issue = rest.send(asked(issue)).await?.json()?;
    let latest =
        if org.is_some() { "/organizations/{org}/issues/{id}/events/latest/" } else { "/issues/{id}/events/latest/" };
    let event = match rest.send(asked(latest)).await {
        Ok(reply) => reply.json()?,
        // An issue may outlive its events.
        Err(error) if error.is_not_found() => Value::Null,
        Err(error) => return Err(error),
    };
    Ok(told(&issue, event, own))
}

/// The issue of a row's `issue_id` in the form of paths, and the organization that its URL says.
pub(crate) fn named(rest: &Rest, args: &mut Args) -> Result<Option<Answer>, ToolError> {
    let host = rest.state::<Own>().map_or(HOST, |own| &own.host);
    let Name { issue, org } = name::read(args.text("issue_id"), host)?;
    match issue {
        Issue::Id(id) | Issue::Short(id) => args.set("issue_id", id),
        Issue::Shared(_) => return Err(ToolError::invalid("Invalid argument issue_id: a shared link is not enough")),
    }
    if let Some(org) = org {
        args.set("organization", org);
    }
    Ok(None)
}

/// The same, if there is something to change.
pub(crate) fn changed(rest: &Rest, args: &mut Args) -> Result<Option<Answer>, ToolError> {
    match args.get("status").or(args.get("assigned_to")) {
        Some(_) => named(rest, args),
        None => Err(ToolError::invalid("Nothing to change: give status or assigned_to")),
    }
}

async fn shared(rest: &Rest, own: &Own, org: Option<String>, id: String) -> Result<Value, ToolError> {
    let ask = match org {
        Some(org) => Ask::get("/organizations/{org}/shared/issues/{id}/").segment("org", org),
        None => Ask::get("/shared/issues/{id}/"),
    };
    let issue = rest.send(ask.segment("id", id)).await?.json()?;
    let event = issue["latestEvent"].clone();
    Ok(told(&issue, event, own))
}

/// A text, or a number as one.
fn text_of(value: &Value, name: &str) -> Option<String> {
    match &value[name] {
        Value::String(text) if !text.is_empty() => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

fn told(issue: &Value, mut event: Value, own: &Own) -> Value {
    if !own.include_pii {
        private::hide(&mut event);
    }
    let mut told = Map::new();
    for (name, member) in [
        ("title", "title"),
        ("id", "id"),
        ("short_id", "shortId"),
        ("status", "status"),
        ("level", "level"),
        ("first_seen", "firstSeen"),
        ("last_seen", "lastSeen"),
        ("count", "count"),
        ("user_count", "userCount"),
        ("culprit", "culprit"),
        ("permalink", "permalink"),
    ] {
        if let Some(mut text) = text_of(issue, member) {
            if !own.include_pii {
                text = private::without_credentials(&text);
            }
            told.insert(name.to_owned(), json!(text));
        }
    }
    let mut add = |name: &str, value: Option<Value>| {
        if let Some(value) = value.filter(|value| !value.is_null()) {
            told.insert(name.to_owned(), value);
        }
    };
    add("project", issue.pointer("/project/slug").cloned());
    add("event_id", event.get("eventID").cloned());
    add("message", event.get("message").filter(|message| *message != "").cloned());
    let release = event.pointer("/release/version").or(event.get("release").filter(|release| release.is_string()));
    add("release", release.cloned());
    add("tags", tags(&event));
    add("user", event.get("user").filter(|_| own.include_pii).cloned());
    let entry = |kind: &str| {
        let entries = event["entries"].as_array().into_iter().flatten();
        entries.filter(|entry| entry["type"] == kind).filter_map(|entry| entry["data"].as_object()).next()
    };
    let raised = event["entries"].as_array().into_iter().flatten().filter(|entry| entry["type"] == "exception");
    let values = raised.flat_map(|entry| entry.pointer("/data/values").and_then(Value::as_array).into_iter().flatten());
    let mut values: Vec<&Value> = values.filter(|value| value.is_object()).collect();
    if values.len() > EXCEPTIONS_MAX {
        let left_out = values.len() - EXCEPTIONS_MAX;
        values.drain(EXCEPTIONS_MAX / 2..EXCEPTIONS_MAX / 2 + left_out);
        add("exceptions_left_out", Some(json!(left_out)));
    }
    add("exceptions", Some(exceptions(&values)));
    add("breadcrumbs", entry("breadcrumbs").and_then(|data| crumbs(data.get("values")?)));
    add("request", entry("request").map(|data| request(data, own.include_pii)));
    Value::Object(told)
}

/// Tags as an object.
fn tags(event: &Value) -> Option<Value> {
    let tags = event["tags"].as_array()?.iter().take(TAGS_MAX);
    let pairs = tags.filter_map(|tag| Some((tag["key"].as_str()?.to_owned(), tag["value"].clone())));
    Some(Value::Object(pairs.collect()))
}

/// Exceptions with as many frames as fit.
fn exceptions(values: &[&Value]) -> Value {
    let with = |(frames_max, own, last)| {
        let mut left = frames_max;
        let each = values.iter().enumerate().map(|(n, value)| {
            let told = exception(value, (left / (values.len() - n), own, last));
            left -= told["frames"].as_array().map_or(0, Vec::len);
            told
        });
        each.collect::<Value>()
    };
    let mut told = json!([]);
    for level in FRAMES {
        told = with(level);
        if json_len(&told) <= EXCEPTIONS_BYTES {
            break;
        }
    }
    told
}

fn exception(new: &Value, (frames_max, own, last): (usize, bool, usize)) -> Value {
    let frames = new.pointer("/stacktrace/frames").and_then(Value::as_array);
    let mut told = json!({ "type": new["type"], "value": new["value"] });
    if let Some(frames) = frames {
        let outer = frames.len().saturating_sub(frames_max);
        let inner = frames[outer..].iter().enumerate().filter(|(_, frame)| frame.is_object());
        let code = |n: usize, new: &Value| frames.len() - outer - n <= last || own && new["inApp"] == true;
        told["frames"] = inner.map(|(n, new)| frame(new, code(n, new))).collect();
        if outer > 0 {
            told["frames_left_out"] = json!(outer);
        }
    }
    told
}

fn frame(new: &Value, code: bool) -> Value {
    let context =
        new["context"].as_array().filter(|_| code).into_iter().flatten().filter_map(|line| line.get(1)?.as_str());
    let mut told = Map::new();
    for (name, member) in
        [("filename", "filename"), ("lineno", "lineNo"), ("function", "function"), ("in_app", "inApp")]
    {
        if !new[member].is_null() {
            told.insert(name.to_owned(), new[member].clone());
        }
    }
    let context: Vec<&str> = context.collect();
    if !context.is_empty() {
        told.insert("context".to_owned(), json!(context));
    }
    Value::Object(told)
}

fn crumbs(values: &Value) -> Option<Value> {
    let all = values.as_array()?;
    let last = &all[all.len().saturating_sub(CRUMBS_MAX)..];
    let told = last.iter().filter(|crumb| crumb.is_object()).map(|crumb| {
        let names = ["timestamp", "level", "type", "category", "message", "data"];
        let members = names.iter().filter_map(|name| Some(((*name).to_owned(), crumb.get(*name)?.clone())));
        Value::Object(members.filter(|(_, value)| !value.is_null()).collect())
    });
    let mut told: Vec<Value> = told.collect();
    if json_len(&told) > CRUMBS_BYTES {
        for crumb in &mut told {
            let bytes = json_len(&crumb["data"]);
            if bytes > CRUMBS_BYTES / (2 * CRUMBS_MAX) {
                crumb["data"] = json!(format!("[left out: {bytes} bytes]"));
            }
        }
    }
    Some(json!(told))
}

/// Method and address; the rest is personal.
fn request(data: &Map<String, Value>, all: bool) -> Value {
    let wanted = |name: &str| all || matches!(name, "method" | "url");
    let members = data.iter().filter(|(name, value)| wanted(name) && !value.is_null());
    Value::Object(members.map(|(name, value)| (name.clone(), value.clone())).collect())
}
