//! Files form layers: they import downwards, and few import one another.

use super::source::Source;
use super::{Finding, Tree};
use std::collections::{BTreeMap, BTreeSet};

/// The most files of a crate that may import one another, and of a server.
const KNOT_MAX: usize = 3;
const SERVER_KNOT_MAX: usize = 2;

/// The line in a `lib.rs` or `main.rs` after which its layers are shown, one a line, the highest first.
const HEADING: &str = "Files import downwards, in this order:";

/// Knots of more than [`KNOT_MAX`] files, imports against the order that a `lib.rs` shows, and roots that show none.
pub(super) fn check(tree: &Tree<'_>) -> Vec<Finding> {
    let mut crates: BTreeMap<&str, Vec<&Source>> = BTreeMap::new();
    for source in &tree.sources {
        let own = |name: &str| ["crates/", "servers/", "apps/"].iter().any(|folder| name.starts_with(folder));
        if let Some((name, _)) = source.path.split_once("/src/").filter(|(name, _)| own(name)) {
            crates.entry(name).or_default().push(source);
        }
    }
    let mut findings = Vec::new();
    for (name, sources) in crates {
        let root = |file: &str| tree.read(&format!("{name}/src/{file}.rs"));
        let shown = root("lib").or_else(|| root("main")).unwrap_or_default();
        let imports = imports(name, &sources);
        let max = if name.starts_with("servers/") { SERVER_KNOT_MAX } else { KNOT_MAX };
        findings.extend(knots(&imports).into_iter().filter(|knot| knot.len() > max).map(|knot| {
            let what =
                format!("{} files import one another: {}; move what they share down", knot.len(), knot.join(", "));
            Finding::new(name, what)
        }));
        let layers = layers(&shown);
        if layers.is_empty() && imports.values().any(|targets| !targets.is_empty()) {
            findings.push(Finding::new(name, format!("its root does not show the layers of its files: {HEADING}")));
        }
        findings.extend(against(&imports, &layers).into_iter().map(|what| Finding::new(name, what)));
    }
    findings
}

type Imports = BTreeMap<String, BTreeSet<String>>;

/// The files of a crate as module paths (`http/post`), and those that each imports. The crate's root is left out.
fn imports(name: &str, sources: &[&Source]) -> Imports {
    let modules: BTreeMap<String, &Source> = sources
        .iter()
        .filter_map(|source| {
            let path = source.path.strip_prefix(name)?.strip_prefix("/src/")?.strip_suffix(".rs")?;
            let module = path.strip_suffix("/mod").unwrap_or(path);
            (!matches!(module, "lib" | "main")).then(|| (module.to_owned(), *source))
        })
        .collect();
    modules
        .iter()
        .map(|(module, source)| {
            let targets = paths(&source.code).into_iter().filter_map(|(root, path)| {
                let base = match root {
                    "super" => module.rsplit_once('/').map_or("", |(parent, _)| parent),
                    _ => "",
                };
                let mut parts: Vec<&str> = base.split('/').filter(|part| !part.is_empty()).collect();
                parts.extend(path.iter().map(String::as_str));
                (1..=parts.len()).rev().map(|n| parts[..n].join("/")).find(|at| modules.contains_key(at))
            });
            (module.clone(), targets.filter(|target| target != module).collect())
        })
        .collect()
}

/// The paths that begin with `crate::` or `super::`, groups expanded: the first word, and the rest.
fn paths(code: &str) -> Vec<(&'static str, Vec<String>)> {
    let mut found = Vec::new();
    for root in ["crate", "super"] {
        for (at, _) in code.match_indices(&format!("{root}::")) {
            let before = code[..at].chars().next_back();
            if before.is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | '$' | ':')) {
                continue;
            }
            let rest = &code[at + root.len() + 2..];
            let group = rest.strip_prefix('{').and_then(|rest| rest.split(';').next());
            match group {
                Some(group) => {
                    let items = group.split([',', '{']).map(str::trim).filter(|item| !item.is_empty());
                    found.extend(items.map(|item| (root, segments(item))));
                }
                None => found.push((root, segments(rest))),
            }
        }
    }
    found
}

fn segments(path: &str) -> Vec<String> {
    let end = path.find(|c: char| !c.is_alphanumeric() && !matches!(c, '_' | ':')).unwrap_or(path.len());
    path[..end].split("::").filter(|part| !part.is_empty()).map(str::to_owned).collect()
}

/// The sets of files that import one another, directly or not, of two or more.
fn knots(imports: &Imports) -> Vec<Vec<&str>> {
    let reached: BTreeMap<&str, BTreeSet<&str>> =
        imports.keys().map(|from| (from.as_str(), reach(imports, from))).collect();
    let mut knots: Vec<Vec<&str>> = Vec::new();
    for (from, to) in &reached {
        if !to.contains(from) || knots.iter().any(|knot| knot.contains(from)) {
            continue;
        }
        knots.push(
            to.iter().copied().filter(|other| reached.get(other).is_some_and(|back| back.contains(from))).collect(),
        );
    }
    knots
}

/// What a file imports, directly or not.
fn reach<'a>(imports: &'a Imports, from: &str) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut open: Vec<&str> = imports.get(from).into_iter().flatten().map(String::as_str).collect();
    while let Some(next) = open.pop() {
        if reached.insert(next) {
            open.extend(imports.get(next).into_iter().flatten().map(String::as_str));
        }
    }
    reached
}

/// The layers that a crate's root shows in a comment, the highest first. Empty if it shows none.
fn layers(root: &str) -> Vec<Vec<&str>> {
    let block = root.split_once(HEADING).and_then(|(_, rest)| rest.split("```").nth(1)).unwrap_or_default();
    let lines = block
        .lines()
        .skip(1)
        .map(|line| line.trim_start_matches("//!").trim_start_matches("//").split_whitespace().collect::<Vec<_>>());
    lines.filter(|layer| !layer.is_empty()).collect()
}

/// What does not follow the shown order: files that are not shown, and imports of a higher layer.
fn against(imports: &Imports, layers: &[Vec<&str>]) -> Vec<String> {
    if layers.is_empty() {
        return Vec::new();
    }
    // A folder is shown as a whole, by its name.
    let place = |module: &str| {
        let shown =
            |name: &&str| module == *name || module.strip_prefix(*name).is_some_and(|rest| rest.starts_with('/'));
        layers.iter().position(|layer| layer.iter().any(&shown))
    };
    let mut findings = Vec::new();
    for (from, to) in imports {
        let Some(high) = place(from) else {
            findings.push(format!("`{from}` is not in the layers that the crate's root shows; add it"));
            continue;
        };
        for target in to {
            if place(target).is_some_and(|low| low < high) {
                findings.push(format!("`{from}` imports `{target}`, which the crate's root shows above it"));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn imports_of(files: &[(&str, &str)]) -> Imports {
        let sources: Vec<Source> =
            files.iter().map(|(path, code)| Source::new(&format!("crates/x/src/{path}.rs"), code)).collect();
        imports("crates/x", &sources.iter().collect::<Vec<_>>())
    }

    #[test]
    fn imports_are_found_in_every_form() {
        let found = imports_of(&[
            ("a", "use crate::b::X; use crate::{c, http::post::Y}; fn f() { crate::d::g() }"),
            ("b", "// crate::a\nmacro_rules! m { () => { $crate::a::X } }"),
            ("c", "#[cfg(test)]\nmod tests { use crate::a; }"),
            ("d", ""),
            ("http/mod", "mod post;"),
            ("http/post", "use super::work::Z; use super::super::a;"),
            ("http/work", "use super::{post, body::B};"),
            ("http/body", ""),
        ]);
        let of = |name: &str| found[name].iter().map(String::as_str).collect::<Vec<_>>();
        assert_eq!(of("a"), ["b", "c", "d", "http/post"]);
        assert_eq!((of("b"), of("c")), (vec![], vec![]));
        assert_eq!(of("http/work"), ["http/body", "http/post"]);
        assert_eq!(knots(&found), [["http/post", "http/work"]]);
    }

    #[test]
    fn imports_upwards_and_files_that_are_not_shown_are_found() {
        let root = format!("//! {HEADING}\n//!\n//! ```text\n//! a  http\n//! b\n//! ```\n");
        let found = imports_of(&[("a", "use crate::b;"), ("b", "use crate::http::x;"), ("http/x", ""), ("c", "")]);
        let what = against(&found, &layers(&root));
        assert_eq!(what.len(), 2, "{what:?}");
        assert!(what[0].contains("`b` imports `http/x`") && what[1].contains("`c` is not in"), "{what:?}");
        assert!(against(&found, &layers("//! nothing")).is_empty());
    }
}
