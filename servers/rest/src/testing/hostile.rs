//! Arguments that are meant to lead a request elsewhere.

use super::{Suite, call, check_key, with, without_key};
use crate::arg::{Arg, Kind};
use crate::path;
use linchpin::testing::site::Seen;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use url::form_urlencoded::parse;

/// What somebody who writes arguments may try.
const HOSTILE: &[&str] = &[
    "..",
    ".",
    "../..",
    "../../../../user",
    "%2e%2e",
    "%2e%2e/%2e%2e/user?",
    "%252e%252e%252fuser",
    "..%2f..%2fuser",
    "..;/user",
    "..\\..\\user",
    "a/../../user",
    "a%00b",
    "a\r\nx-evil: 1",
    "a\nb",
    "//evil.example/x",
    "https://evil.example/x",
    "@evil.example/x",
    ":80@evil.example/",
    "x&y=1#z",
    "x?y=1",
    "x#y",
    "%23%3f",
    "{owner}",
    " ",
    "",
];

/// The number of segments, the names of parameters.
fn outline(seen: &Seen) -> (String, usize, BTreeSet<String>) {
    let names = parse(seen.query().as_bytes()).map(|(name, _)| name.into_owned());
    (seen.method.clone(), seen.path().split('/').count(), names.collect())
}

/// Where texts can be put into arguments: those of an argument as a whole, and those inside of an object or an array.
fn places(arg: &Arg, given: &Value) -> Vec<String> {
    let place = format!("/{}", arg.name);
    match arg.kind {
        Kind::Text { .. } | Kind::Segment(_) | Kind::Choice(_) | Kind::List { .. } => vec![place],
        Kind::Json(_) => given.get(arg.name).map(|value| texts_in(value, &place)).unwrap_or_default(),
        _ => Vec::new(),
    }
}

/// The pointers to all texts inside of a value that is at this place.
fn texts_in(value: &Value, place: &str) -> Vec<String> {
    match value {
        Value::String(_) => vec![place.to_owned()],
        Value::Array(items) => {
            items.iter().enumerate().flat_map(|(at, item)| texts_in(item, &format!("{place}/{at}"))).collect()
        }
        Value::Object(members) => {
            let at = |name: &str| format!("{place}/{}", name.replace('~', "~0").replace('/', "~1"));
            members.iter().flat_map(|(name, member)| texts_in(member, &at(name))).collect()
        }
        _ => Vec::new(),
    }
}

/// The arguments with another text at a place.
fn changed(arguments: &Value, place: &str, text: &str) -> Value {
    match arguments.pointer(place) {
        // Optional arguments that the description does not use.
        None => with(arguments, &place[1..], text),
        Some(_) => {
            let mut all = arguments.clone();
            if let Some(value) = all.pointer_mut(place) {
                *value = json!(text);
            }
            all
        }
    }
}

impl Suite {
    /// No text in any argument, or inside of one that is an object or a list, changes which endpoint a request is for, adds
    /// parameters or headers, or leads to another host. In a path what has more than one meaning is refused, and nothing is sent.
    ///
    /// # Panics
    /// If that is not so.
    pub async fn hostile_arguments(&self) {
        for trial in self.trials() {
            // A site and a server for each: what was sent is read again and again.
            let site = self.site().await;
            let connection = self.connect(self.config_of(&trial, &site)).await;
            let (row, name, most) = (trial.row, trial.what(), self.arguments(&trial, "most"));
            let before = site.requests().len();
            call(&connection, trial.name(), most.clone()).await;
            let usual: Vec<_> = site.requests()[before..].iter().map(outline).collect();
            let places = row.args.iter().flat_map(|arg| places(arg, &most).into_iter().map(move |place| (arg, place)));
            for (arg, place) in places {
                let in_path = path::names(row.path).any(|name| name == arg.wire_name());
                for hostile in HOSTILE {
                    let what = format!("{name} {}={hostile:?}", &place[1..]);
                    let before = site.requests().len();
                    let told = call(&connection, trial.name(), changed(&most, &place, hostile)).await;
                    without_key(self.api, &told, &what);
                    let seen = site.requests()[before..].to_vec();
                    check_key(self.api, &seen, &what);
                    let escapes = hostile.contains("..") || hostile.contains("%2e") || hostile.contains("%00");
                    if in_path && (escapes || hostile.trim().is_empty() || hostile.contains(['\n', '\\'])) {
                        assert!(told.failed && seen.is_empty(), "{what} was sent: {seen:?}");
                        assert_eq!(told.kind, "invalid", "{what}: {}", told.result);
                    }
                    for request in &seen {
                        assert_eq!(request.header("x-evil"), None, "{what}");
                        let decoded = request.path().split('/').any(|part| matches!(part, "." | ".."));
                        assert!(!decoded, "{what}: {}", request.target);
                        let (method, segments, names) = outline(request);
                        let known = usual.iter().any(|(m, s, n)| {
                            // The path of a file may have more segments.
                            let same =
                                *s == segments || matches!(arg.kind, Kind::Segment(crate::arg::Slashes::Separate));
                            *m == method && same && names.is_subset(n)
                        });
                        let has_code = row.run.is_some() || row.before.is_some();
                        assert!(known || has_code, "{what}: another request: {} {}", method, request.target);
                        let problems = self.contract.problems(request);
                        let foreign = problems.iter().any(|problem| problem.contains("not described"));
                        assert!(!foreign, "{what}: {problems:?}");
                    }
                }
            }
            connection.close().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{int, object, text};

    #[test]
    fn texts_inside_of_objects_and_lists_are_found_and_changed() {
        let given = json!({ "files": [{ "path": "a", "n": 1 }, { "a/b": { "~": ["c"] } }], "title": "t", "n": 1 });
        let of = |arg: Arg| places(&arg, &given);
        assert_eq!(of(object("files", "{}")), ["/files/0/path", "/files/1/a~1b/~0/0"]);
        assert_eq!(
            (of(text("title")), of(int("n")), of(object("none", "{}"))),
            (vec!["/title".into()], vec![], vec![])
        );
        let evil = changed(&given, "/files/1/a~1b/~0/0", "..");
        assert_eq!(evil.pointer("/files/1/a~1b/~0/0"), Some(&json!("..")));
        assert_eq!((&evil["files"][0], &evil["title"]), (&given["files"][0], &given["title"]));
        assert_eq!(changed(&given, "/new", "..")["new"], "..");
    }
}
