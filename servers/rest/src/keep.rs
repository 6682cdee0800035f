//! What is kept of an answer: paths of members, and how much of long texts.

use linchpin_kit::{ToolError, chars_from, json_len};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Characters of a text that no path caps.
pub(crate) const TEXT_CHARS: usize = 20_000;

/// Most paths of a projection, and most names in one.
const PATHS_MAX: usize = 200;
const NAMES_MAX: usize = 10;

/// A projection. It removes members and never changes the shape of what stays, so that callers find members where the API's
/// documentation says they are. Members that are `null` are left out.
///
/// Written as paths separated by blanks: `number user.login labels.name body:4000`. Lists are looked into, whatever they are
/// (`labels[].name` is the same as `labels.name`); `:N` caps a text at so many characters.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Keep {
    members: BTreeMap<String, Keep>,
    chars: Option<usize>,
}

/// Characters of a text that are kept where an answer is too long for a result.
const CHARS: [usize; 5] = [TEXT_CHARS, 4_000, 1_000, 250, 60];

/// Which part of long texts is shown. In later windows only long texts are left.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Window {
    /// Counted from 0.
    pub(crate) number: usize,
    /// Most characters in it, of each text.
    pub(crate) chars: usize,
}

impl Window {
    /// The first one.
    pub(crate) fn first(chars: usize) -> Window {
        Window { number: 0, chars }
    }
}

/// Texts at a path of which only a part is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cut {
    pub(crate) path: String,
    pub(crate) end: usize,
    /// Characters of the longest.
    pub(crate) total: usize,
    pub(crate) texts: usize,
}

impl Keep {
    pub(crate) fn parse<'a>(paths: impl IntoIterator<Item = &'a str>) -> Result<Keep, ToolError> {
        let mut keep = Keep::default();
        for (n, path) in paths.into_iter().enumerate() {
            let bad = || {
                ToolError::invalid(format!("Invalid field: {path}"))
                    .hint("Write names separated by dots, such as user.login.")
            };
            let (names, chars) = match path.split_once(':') {
                None => (path, None),
                Some((names, chars)) => (names, Some(chars.parse().ok().filter(|n| *n > 0).ok_or_else(bad)?)),
            };
            let names: Vec<&str> = names.split('.').map(|name| name.strip_suffix("[]").unwrap_or(name)).collect();
            if n >= PATHS_MAX || names.len() > NAMES_MAX || names.iter().any(|name| name.is_empty()) {
                return Err(bad());
            }
            let leaf = names.iter().fold(&mut keep, |node, name| node.members.entry((*name).to_owned()).or_default());
            leaf.chars = chars;
        }
        Ok(keep)
    }

    /// What both keep.
    pub(crate) fn only(&self, chosen: &Keep) -> Result<Keep, ToolError> {
        self.common(chosen).ok_or_else(|| {
            let names: Vec<&str> = self.members.keys().map(String::as_str).collect();
            ToolError::invalid("None of these fields is there").hint(format!("Choose among {}.", names.join(", ")))
        })
    }

    fn common(&self, chosen: &Keep) -> Option<Keep> {
        let chars = self.chars.into_iter().chain(chosen.chars).min();
        if self.members.is_empty() || chosen.members.is_empty() {
            let more = if self.members.is_empty() { chosen } else { self };
            return Some(Keep { chars, ..more.clone() });
        }
        let mut members = BTreeMap::new();
        members.extend(chosen.members.iter().filter_map(|(name, one)| {
            let common = self.members.get(name)?.common(one)?;
            Some((name.clone(), common))
        }));
        (!members.is_empty()).then_some(Keep { members, chars })
    }

    /// The part of a value that is kept.
    pub(crate) fn of(&self, value: &Value, window: Window, cuts: &mut Vec<Cut>) -> Value {
        self.at("", value, window, cuts).unwrap_or(Value::Null)
    }

    /// How much of texts can be kept so that no window is longer than this, as JSON with or without line breaks.
    pub(crate) fn chars_for(&self, value: &Value, bytes: usize, pretty: bool) -> Option<usize> {
        CHARS.into_iter().find(|chars| self.longest(value, *chars, if pretty { 2 } else { 0 }) <= bytes)
    }

    /// Whether these fit for certain with all of their texts that are kept, as items of a list in an object.
    pub(crate) fn fits(&self, items: &[&Value], bytes: usize, pretty: bool) -> bool {
        let indent = if pretty { 6 } else { 0 };
        let mut left = bytes;
        items.iter().all(|item| {
            let longest = self.longest(item, TEXT_CHARS, indent) + 2 * indent + 3;
            left.checked_sub(longest).inspect(|rest| left = *rest).is_some()
        })
    }

    /// At least the bytes of the longest window.
    fn longest(&self, value: &Value, chars: usize, indent: usize) -> usize {
        // Of a line: its end, a comma, blanks, and those of the bracket that closes.
        let line = |bytes: usize| if indent == 0 { bytes + 1 } else { bytes + 2 * indent + 3 };
        let deeper = if indent == 0 { 0 } else { indent + 2 };
        match value {
            Value::Null => 0,
            Value::String(text) => {
                let size = self.size(chars);
                if text.len() <= size {
                    return json_len(text);
                }
                let (mut rest, mut longest) = (text.as_str(), 0);
                while !rest.is_empty() {
                    let (window, after) = rest.split_at(rest.char_indices().nth(size).map_or(rest.len(), |(at, _)| at));
                    longest = longest.max(json_len(window));
                    rest = after;
                }
                longest
            }
            Value::Array(items) => 4 + items.iter().map(|item| line(self.longest(item, chars, deeper))).sum::<usize>(),
            Value::Object(members) => {
                let whole = Keep { chars: self.chars, ..Keep::default() };
                let member = |(name, member): (&String, &Value)| {
                    let inner = self.inner(name, &whole)?;
                    Some(line(json_len(name) + 2 + inner.longest(member, chars, deeper)))
                };
                4 + members.iter().filter_map(member).sum::<usize>()
            }
            other => json_len(other),
        }
    }

    /// What is kept of a member, if it is kept.
    fn inner<'a>(&'a self, name: &str, whole: &'a Keep) -> Option<&'a Keep> {
        self.members.get(name).or_else(|| self.members.is_empty().then_some(whole))
    }

    fn size(&self, chars: usize) -> usize {
        self.chars.unwrap_or(TEXT_CHARS).min(chars)
    }

    fn at(&self, path: &str, value: &Value, now: Window, cuts: &mut Vec<Cut>) -> Option<Value> {
        let window = now.number;
        match value {
            Value::Null => None,
            Value::String(text) => {
                let size = self.size(now.chars);
                if window == 0 && text.len() <= size {
                    return Some(value.clone());
                }
                let (shown, total) = chars_from(text, window.checked_mul(size)?, size);
                let (shown, end) = (shown?, (window + 1) * size);
                if end < total {
                    match cuts.iter_mut().find(|cut| cut.path == path) {
                        Some(cut) => (cut.total, cut.texts) = (cut.total.max(total), cut.texts + 1),
                        None => cuts.push(Cut { path: path.to_owned(), end, total, texts: 1 }),
                    }
                }
                (window == 0 || total > size).then(|| Value::String(shown.to_owned()))
            }
            Value::Array(items) => {
                let kept: Vec<Value> = items.iter().filter_map(|item| self.at(path, item, now, cuts)).collect();
                (window == 0 || !kept.is_empty()).then_some(Value::Array(kept))
            }
            Value::Object(members) => {
                let mut kept = Map::new();
                let whole = Keep { chars: self.chars, ..Keep::default() };
                for (name, member) in members {
                    let Some(inner) = self.inner(name, &whole) else { continue };
                    let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                    if let Some(member) = inner.at(&path, member, now, cuts) {
                        kept.insert(name.clone(), member);
                    }
                }
                (window == 0 || !kept.is_empty()).then_some(Value::Object(kept))
            }
            other => (window == 0).then(|| other.clone()),
        }
    }
}

/// The value at a path of names separated by dots; the value itself at an empty one.
pub(crate) fn at<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').filter(|name| !name.is_empty()).try_fold(value, |value, name| value.get(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn kept(paths: &str, value: &Value) -> Value {
        Keep::parse(paths.split_whitespace()).unwrap().of(value, Window::first(TEXT_CHARS), &mut Vec::new())
    }

    #[test]
    fn members_are_removed_and_shapes_stay() {
        let issue = json!({
            "number": 7, "user": { "login": "ann", "id": 1 }, "labels": [{ "name": "bug", "id": 2 }, { "name": "x" }],
            "body": null, "state": "open",
        });
        assert_eq!(
            kept("number user.login labels[].name body missing.deep", &issue),
            json!({ "number": 7, "user": { "login": "ann" }, "labels": [{ "name": "bug" }, { "name": "x" }] })
        );
        assert_eq!(kept("labels.name", &issue), kept("labels[].name", &issue));
        assert_eq!(kept("user", &issue), json!({ "user": { "login": "ann", "id": 1 } }));
        // Something of another type than expected is kept as it is, or is not there.
        assert_eq!(kept("a.b c", &json!({ "a": "text", "c": [null, 1] })), json!({ "a": "text", "c": [1] }));
        assert_eq!(kept("a", &json!("text")), json!("text"));
    }

    #[test]
    fn long_texts_are_read_to_their_end_window_by_window() {
        let whole = "äöü€".repeat(1_000);
        let value = json!({ "title": "short", "n": 1, "body": whole, "files": [{ "patch": "p".repeat(15) }] });
        let keep = Keep::parse(["title", "n", "body:1500", "files.patch:10"]).unwrap();
        let (mut body, mut patch, mut window) = (String::new(), String::new(), 0);
        loop {
            let mut cuts = Vec::new();
            let part = keep.of(&value, Window { number: window, chars: TEXT_CHARS }, &mut cuts);
            assert_eq!(part.get("n").is_some(), window == 0, "{part}");
            body += part["body"].as_str().unwrap_or_default();
            patch += part["files"][0]["patch"].as_str().unwrap_or_default();
            if cuts.is_empty() {
                break;
            }
            assert!(cuts.iter().any(|cut| cut.path == "body" && cut.total == 4_000), "{cuts:?}");
            window += 1;
        }
        assert_eq!((body, patch.len(), window), (whole, 15, 2));
    }

    #[test]
    fn of_what_is_kept_callers_choose_a_part_and_never_more() {
        let keep = Keep::parse("id user.login user.name body:4000 tags".split(' ')).unwrap();
        for (chosen, want) in [
            ("id", "id"),
            ("user", "user.login user.name"),
            ("user.login user.email secret", "user.login"),
            ("id.deep body:100", "id.deep body:100"),
            ("body:9000 tags.name", "body:4000 tags.name"),
        ] {
            let chosen = Keep::parse(chosen.split(' ')).unwrap();
            assert_eq!(keep.only(&chosen).unwrap(), Keep::parse(want.split(' ')).unwrap(), "{want}");
        }
        for none in ["secret", "user.email", "user.email secret"] {
            let error = keep.only(&Keep::parse(none.split(' ')).unwrap()).unwrap_err().to_string();
            assert!(error.contains("Choose among body, id, tags, user."), "{error}");
        }
        // A row that keeps everything.
        assert_eq!(Keep::default().only(&keep).unwrap(), keep);
    }

    #[test]
    fn fields_that_make_no_sense_are_refused() {
        for bad in ["", ".", "a..b", "a:", "a:x", "a:0", "a:-1", &"a.".repeat(20)] {
            assert!(Keep::parse([bad]).is_err(), "{bad}");
        }
        assert!(Keep::parse(["x"].repeat(201)).is_err());
    }
}
