//! Compares the features of two servers.

use crate::client::session::Session;
use crate::fail::Failure;
use crate::show::out::{Style, shorten};
use linchpin::client::{Error, Listed, Listing};
use linchpin::types::error::{ErrorObject, code};
use linchpin::types::prompt::Prompt;
use linchpin::types::resource::{Resource, ResourceTemplate};
use linchpin::types::tool::Tool;
use linchpin_core::exact;
use serde::Serialize;
use serde_json::{Map, Value, json};

/// The features of a server.
pub(crate) struct Picture {
    pub(crate) name: String,
    /// By kind, then by name.
    offers: Vec<(&'static str, Option<Map<String, Value>>)>,
    /// What could not be listed, and why.
    pub(crate) unknown: Vec<String>,
}

/// One difference. `path` is a JSON pointer into the definition.
#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct Difference {
    kind: &'static str,
    name: String,
    change: Change,
    #[serde(skip_serializing_if = "String::is_empty")]
    path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    a: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    b: Option<Value>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Change {
    Added,
    Removed,
    Changed,
}

impl Picture {
    pub(crate) async fn of(session: &Session) -> Result<Picture, Failure> {
        let connection = &session.connection;
        let mut picture = Picture { name: session.target.clone(), offers: Vec::new(), unknown: Vec::new() };
        let capabilities = serde_json::to_value(connection.capabilities()).unwrap_or_default();
        picture.offers.push(("capabilities", capabilities.as_object().cloned()));
        let instructions = connection.instructions().map(|text| json!({ "text": text }));
        let instructions = instructions.and_then(|value| value.as_object().cloned()).unwrap_or_default();
        picture.offers.push(("instructions", Some(instructions)));
        picture.take::<Tool>(session, "tools", "name", connection.tools().await)?;
        picture.take::<Resource>(session, "resources", "uri", connection.resources().await)?;
        let templates = connection.resource_templates().await;
        picture.take::<ResourceTemplate>(session, "resource templates", "uriTemplate", templates)?;
        picture.take::<Prompt>(session, "prompts", "name", connection.prompts().await)?;
        Ok(picture)
    }

    fn take<T: Listed + Serialize>(
        &mut self,
        session: &Session,
        kind: &'static str,
        by: &str,
        listed: Result<Listing<T>, Error>,
    ) -> Result<(), Failure> {
        let listing = match listed {
            Ok(listing) => listing,
            Err(e) => {
                let refused = |rpc: &&ErrorObject| matches!(rpc.code, code::METHOD_NOT_FOUND | code::INVALID_PARAMS);
                let Some(rpc) = e.rpc().filter(refused) else { return Err(session.told(&e)) };
                self.unknown.push(format!("{kind} of {}: {}", self.name, rpc.message));
                self.offers.push((kind, None));
                return Ok(());
            }
        };
        let mut all = Map::new();
        for item in &listing.items {
            let Value::Object(mut item) = exact::of(item) else { continue };
            item.remove("_meta");
            let Some(Value::String(name)) = item.remove(by) else { continue };
            all.insert(name, Value::Object(item));
        }
        for refused in listing.refused {
            all.insert(refused.name, json!({ "refused": refused.why }));
        }
        self.offers.push((kind, Some(all)));
        Ok(())
    }
}

/// Returns all differences, ordered by kind and name.
pub(crate) fn compare(a: &Picture, b: &Picture) -> Vec<Difference> {
    let mut found = Vec::new();
    for ((kind, left), (_, right)) in a.offers.iter().zip(&b.offers) {
        let (Some(left), Some(right)) = (left, right) else { continue };
        let mut names: Vec<&String> =
            left.keys().chain(right.keys().filter(|name| !left.contains_key(*name))).collect();
        names.sort_unstable();
        for name in names {
            let (a, b) = (left.get(name), right.get(name));
            let mut one = |change, path: &str, a: Option<&Value>, b: Option<&Value>| {
                let (name, path) = (name.clone(), path.to_owned());
                found.push(Difference { kind, name, change, path, a: a.cloned(), b: b.cloned() });
            };
            match (a, b) {
                (Some(_), None) => one(Change::Removed, "", a, None),
                (None, Some(_)) => one(Change::Added, "", None, b),
                (Some(a), Some(b)) => walk(a, b, String::new(), &mut one),
                (None, None) => {}
            }
        }
    }
    found
}

/// Arrays whose order is irrelevant.
const SETS: [&str; 3] = ["required", "enum", "type"];

/// Receives a difference: the kind of change, the path, and both values.
type Take<'a> = dyn FnMut(Change, &str, Option<&Value>, Option<&Value>) + 'a;

fn walk(a: &Value, b: &Value, path: String, one: &mut Take<'_>) {
    let last = path.rsplit('/').next().unwrap_or_default();
    match (a, b) {
        (Value::Object(left), Value::Object(right)) => {
            for (name, a) in left {
                let path = format!("{path}/{}", name.replace('~', "~0").replace('/', "~1"));
                match right.get(name) {
                    Some(b) => walk(a, b, path, one),
                    None => one(Change::Removed, &path, Some(a), None),
                }
            }
            for (name, b) in right.iter().filter(|(name, _)| !left.contains_key(*name)) {
                one(Change::Added, &format!("{path}/{}", name.replace('~', "~0").replace('/', "~1")), None, Some(b));
            }
        }
        (Value::Array(left), Value::Array(right)) if SETS.contains(&last) => {
            if left.len() != right.len() || left.iter().any(|item| !right.contains(item)) {
                one(Change::Changed, &path, Some(a), Some(b));
            }
        }
        (Value::Array(left), Value::Array(right)) if left.len() == right.len() => {
            for (at, (a, b)) in left.iter().zip(right).enumerate() {
                walk(a, b, format!("{path}/{at}"), one);
            }
        }
        _ if a == b => {}
        // 1 and 1.0 are equal.
        (Value::Number(x), Value::Number(y)) if x.as_f64() == y.as_f64() => {}
        _ => one(Change::Changed, &path, Some(a), Some(b)),
    }
}

/// Formats differences for display.
pub(crate) fn lines(found: &[Difference], style: Style) -> Vec<String> {
    let mut out = Vec::new();
    let (mut kind, mut name) = ("", "");
    for one in found {
        if one.kind != kind {
            out.push(style.bold(one.kind));
            (kind, name) = (one.kind, "");
        }
        let shown = |value: &Option<Value>| value.as_ref().map_or(String::new(), |v| shorten(&exact::text(v), 100));
        if one.path.is_empty() && one.change != Change::Changed {
            let line = format!("{} {}", if one.change == Change::Added { "+" } else { "-" }, one.name);
            out.push(format!("  {}", if one.change == Change::Added { style.good(&line) } else { style.bad(&line) }));
            name = "";
            continue;
        }
        if one.name != name {
            out.push(format!("  {} {}", style.warn("~"), one.name));
            name = &one.name;
        }
        let path = if one.path.is_empty() { String::new() } else { format!("{}: ", one.path) };
        out.push(match one.change {
            Change::Added => style.good(&format!("      + {path}{}", shown(&one.b))),
            Change::Removed => style.bad(&format!("      - {path}{}", shown(&one.a))),
            Change::Changed => format!("      {path}{} → {}", style.bad(&shown(&one.a)), style.good(&shown(&one.b))),
        });
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture(tools: Value) -> Picture {
        Picture { name: "x".into(), offers: vec![("tools", tools.as_object().cloned())], unknown: Vec::new() }
    }

    #[test]
    fn differences_are_named_by_their_place_and_order_does_not_matter() {
        let a = picture(json!({ "gone": {}, "same": { "x": 1, "y": [1] },
            "t": { "inputSchema": { "properties": { "a/b": { "type": "string" } }, "required": ["p", "q"] }, "n": 1 } }));
        let b = picture(
            json!({ "t": { "n": 1.0, "inputSchema": { "required": ["q", "p"], "properties": { "a/b": { "type": "integer" }, "c": {} } } },
            "same": { "y": [1], "x": 1 }, "new": {} }),
        );
        let found: Vec<_> = compare(&a, &b).into_iter().map(|d| (d.name, d.change, d.path)).collect();
        let want = [
            ("gone", Change::Removed, ""),
            ("new", Change::Added, ""),
            ("t", Change::Changed, "/inputSchema/properties/a~1b/type"),
            ("t", Change::Added, "/inputSchema/properties/c"),
        ];
        assert_eq!(found, want.map(|(n, c, p)| (n.to_owned(), c, p.to_owned())));
        assert!(compare(&a, &a).is_empty());
    }
}
