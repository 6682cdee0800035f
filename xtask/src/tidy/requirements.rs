//! `docs/REQUIREMENTS.md`: each requirement of the specification and the proof that it is met.
//!
//! A line is `| id | strength | what | proof |`; a proof is one or more of these, with `;` between:
//! `test: <path>::<function>`, `conformance: <scenario>/<check id>`, `interop: <check>`,
//! `n/a: <reason>`.

use std::collections::BTreeSet;
use std::path::PathBuf;

use super::{Finding, Tree};

const DOCUMENT: &str = "docs/REQUIREMENTS.md";

/// Attacks and mistakes by number, with their proofs in the same form: the documents, and how many each has.
const ATTACKS: &[(&str, usize)] = &[("docs/ATTACKS.md", 109), ("docs/TRANSLATION.md", 52)];

/// The names of the interop checks, one object per check.
const INTEROP_CHECKS: &str = "conformance/interop/checks.json";

/// The checklist the document answers, kept beside the repository and not in it.
pub(super) fn checklist(tree: &Tree<'_>) -> PathBuf {
    tree.root.join("../shared/spec/REQUIREMENTS.md")
}

/// Checks every proof, and the set of ids where the checklist is at hand.
pub(super) fn check(tree: &Tree<'_>) -> Vec<Finding> {
    let Some(document) = tree.read(DOCUMENT) else {
        return vec![Finding::new(DOCUMENT, "is missing")];
    };
    let interop = interop_checks(&tree.read(INTEROP_CHECKS).unwrap_or_default());
    let mut found = Vec::new();
    let mut ids = BTreeSet::new();
    for row in rows(&document) {
        let place = format!("{DOCUMENT}:{}", row.line);
        if !ids.insert(row.id.clone()) {
            found.push(Finding::new(&place, format!("{} is there twice", row.id)));
        }
        for what in row.problems(&|path| tree.read(path), &interop) {
            found.push(Finding::new(&place, format!("{}: {what}", row.id)));
        }
    }
    if let Ok(checklist) = std::fs::read_to_string(checklist(tree)) {
        for id in ids_to_answer(&checklist).difference(&ids) {
            found.push(Finding::new(DOCUMENT, format!("{id} is missing")));
        }
    }
    found
}

/// Checks that every attack and mistake is there once, and every proof of one.
pub(super) fn attacks(tree: &Tree<'_>) -> Vec<Finding> {
    ATTACKS.iter().flat_map(|(document, count)| numbered(tree, document, *count)).collect()
}

fn numbered(tree: &Tree<'_>, document: &str, count: usize) -> Vec<Finding> {
    let text = tree.read(document).unwrap_or_default();
    let (mut found, mut numbers) = (Vec::new(), Vec::new());
    for (line, text) in (1..).zip(text.lines()) {
        let cells: Vec<&str> = text.trim().trim_matches('|').split(" | ").map(str::trim).collect();
        let [number, .., proof] = cells.as_slice() else { continue };
        let Ok(number) = number.parse::<usize>() else { continue };
        numbers.push(number);
        let row = Row { line, id: number.to_string(), proof: proof.to_string() };
        let problems = row.problems(&|path| tree.read(path), &BTreeSet::new());
        found.extend(
            problems.iter().map(|what| Finding::new(format!("{document}:{line}"), format!("{number}: {what}"))),
        );
    }
    if !numbers.iter().copied().eq(1..=count) {
        found.push(Finding::new(document, format!("does not have the numbers 1 to {count}, each once")));
    }
    found
}

struct Row {
    line: usize,
    id: String,
    proof: String,
}

impl Row {
    fn problems(&self, read: &dyn Fn(&str) -> Option<String>, interop: &BTreeSet<String>) -> Vec<String> {
        let proofs: Vec<&str> = self.proof.split(';').map(str::trim).collect();
        let mut kind = "";
        let mut problems = Vec::new();
        for proof in proofs {
            // `test: a::b; c::d` repeats the kind of its first part.
            let (said, rest) = match proof.split_once(": ") {
                Some((said @ ("test" | "conformance" | "interop" | "n/a"), rest)) => (said, rest),
                _ => (kind, proof),
            };
            kind = said;
            let problem = match kind {
                "test" => missing_test(rest, read),
                "conformance" => rest
                    .split_once('/')
                    .is_none_or(|(scenario, check)| scenario.is_empty() || check.is_empty())
                    .then(|| format!("`{rest}` is not <scenario>/<check id>")),
                "interop" => {
                    (!interop.contains(rest.trim_matches('`'))).then(|| format!("there is no interop check `{rest}`"))
                }
                "n/a" => None,
                _ => Some(format!("`{proof}` is not a proof (test, conformance, interop, n/a)")),
            };
            problems.extend(problem);
            if kind == "n/a" {
                // A reason is prose and may contain semicolons.
                if rest.trim().is_empty() {
                    problems.push("n/a needs a reason".to_string());
                }
                break;
            }
        }
        problems
    }
}

/// Why `path::function` is not a test in the tree, if it is not.
fn missing_test(name: &str, read: &dyn Fn(&str) -> Option<String>) -> Option<String> {
    let name = name.trim_matches('`');
    let Some((path, rest)) = name.split_once("::") else {
        return Some(format!("`{name}` is not <path>::<function>"));
    };
    let function = rest.rsplit("::").next().unwrap_or_default();
    let Some(text) = read(path) else {
        return Some(format!("there is no file {path}"));
    };
    let declared = text.match_indices("fn ").any(|(at, _)| {
        let rest = text[at + 3..].trim_start();
        rest.strip_prefix(function).is_some_and(|rest| rest.starts_with(['(', '<', ' ']))
    });
    (!declared || function.is_empty()).then(|| format!("{path} has no function `{function}`"))
}

/// The lines of the table that begin with an id.
fn rows(document: &str) -> Vec<Row> {
    let mut rows = Vec::new();
    for (line, text) in (1..).zip(document.lines()) {
        let cells: Vec<&str> = text.trim().trim_matches('|').split(" | ").map(str::trim).collect();
        let [id, _, .., proof] = cells.as_slice() else {
            continue;
        };
        if text.trim_start().starts_with('|') && is_id(id) {
            rows.push(Row { line, id: id.to_string(), proof: proof.to_string() });
        }
    }
    rows
}

/// `R26-BASE-001`: a set of one letter and a year, an area, a number.
fn is_id(word: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_digit());
    let mut parts = word.split('-');
    let set = parts.next().unwrap_or_default();
    let number = parts.next_back().unwrap_or_default();
    set.starts_with(|c: char| c.is_ascii_uppercase()) && digits(&set[1..]) && digits(number) && parts.next().is_some()
}

/// The ids of the checklist that a server or a client must answer: not those of gateways, authorization servers and hosts.
fn ids_to_answer(checklist: &str) -> BTreeSet<String> {
    let mut ids = BTreeSet::new();
    for line in checklist.lines() {
        // Who it is for comes first; others may be mentioned later in the line.
        let who = line.find('(').map(|at| &line[at..]).unwrap_or_default();
        let ours = ["(server)", "(client)", "(both)"].iter().any(|name| who.starts_with(name));
        if !line.starts_with("- [") || !ours {
            continue;
        }
        let words = line.split(|c: char| !c.is_alphanumeric() && c != '-');
        ids.extend(words.filter(|word| is_id(word)).take(1).map(String::from));
    }
    ids
}

fn interop_checks(json: &str) -> BTreeSet<String> {
    let checks: Vec<serde_json::Value> = serde_json::from_str(json).unwrap_or_default();
    checks.iter().filter_map(|check| check["name"].as_str()).map(String::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(proof: &str) -> Vec<String> {
        let document =
            format!("| id | strength | what | proof |\n|---|---|---|---|\n| R26-BASE-001 | MUST | x | {proof} |\n");
        let rows = rows(&document);
        assert_eq!(rows.len(), 1);
        let read = |path: &str| {
            (path == "a/b.rs").then(|| "mod m { #[test] fn proves_it() {} }\nfn proves_it_too() {}".to_string())
        };
        rows[0].problems(&read, &BTreeSet::from(["call-text".to_string()]))
    }

    #[test]
    fn proofs_that_exist_are_accepted() {
        for proof in [
            "test: a/b.rs::proves_it",
            "test: a/b.rs::m::proves_it; a/b.rs::proves_it_too",
            "test: a/b.rs::proves_it; conformance: caching/sep-2549-ttl; interop: call-text",
            "n/a: the server has no tasks; they come later",
        ] {
            assert!(problems(proof).is_empty(), "{proof}: {:?}", problems(proof));
        }
    }

    #[test]
    fn proofs_that_do_not_exist_are_refused() {
        for proof in [
            "test: a/b.rs::proves",
            "test: a/c.rs::proves_it",
            "test: proves_it",
            "conformance: caching",
            "interop: call-nothing",
            "n/a: ",
            "by inspection",
            "",
        ] {
            assert_eq!(problems(proof).len(), 1, "{proof}: {:?}", problems(proof));
        }
    }

    #[test]
    fn the_checklist_gives_the_ids_of_servers_clients_and_both() {
        let checklist = "- [ ] R26-BASE-001 MUST (server) a [x:1]\n- [ ] R26-BASE-002 MUST (client) b\n- [ ] R26-BASE-004 MUST (gateway) like a (server)\n- [ ] S26-HTTP-003 SHOULD (both) c, see R26-BASE-009\n(server) see R26-BASE-005";
        let ids: Vec<String> = ids_to_answer(checklist).into_iter().collect();
        assert_eq!(ids, ["R26-BASE-001", "R26-BASE-002", "S26-HTTP-003"]);
    }
}
