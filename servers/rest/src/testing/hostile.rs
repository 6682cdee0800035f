//! Arguments that are meant to lead a request elsewhere.

use super::{Suite, call, check_key, with, without_key};
use crate::arg::Kind;
use crate::path;
use linchpin::testing::site::Seen;
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

impl Suite {
    /// No text in any argument changes which endpoint a request is for, adds parameters or headers, or leads to another
    /// host. In a path what has more than one meaning is refused, and nothing is sent.
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
            let texts = row.args.iter().filter(|arg| {
                matches!(arg.kind, Kind::Text { .. } | Kind::Segment(_) | Kind::Choice(_) | Kind::List { .. })
            });
            for arg in texts {
                let in_path = path::names(row.path).any(|name| name == arg.wire_name());
                for hostile in HOSTILE {
                    let what = format!("{name} {}={hostile:?}", arg.name);
                    let before = site.requests().len();
                    let told = call(&connection, trial.name(), with(&most, arg.name, *hostile)).await;
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
