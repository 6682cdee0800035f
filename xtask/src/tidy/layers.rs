//! Files form layers: they import downwards, and few import one another.

use super::source::Source;
use super::{Finding, Tree};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

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
    let modules = Modules::of(name, sources);
    let files = modules.files.iter().filter(|(module, _)| !module.is_empty());
    files
        .map(|(module, source)| {
            let mut named = paths(&source.code);
            named.extend(modules.of_children(module, source));
            let targets = named.into_iter().filter_map(|path| modules.defining(module, &path));
            (module.clone(), targets.filter(|target| target != module).collect())
        })
        .collect()
}

/// The files of a crate by module path, the root's being empty, and the names that each takes from others.
struct Modules<'a> {
    files: BTreeMap<String, &'a Source>,
    /// A module's `use` declarations, public or not: the name, `*` for all of a module, and the path it stands for.
    uses: BTreeMap<String, Vec<(String, Vec<String>)>>,
}

impl<'a> Modules<'a> {
    fn of(name: &str, sources: &[&'a Source]) -> Modules<'a> {
        let mut files = BTreeMap::new();
        for source in sources {
            let file = source.path.strip_prefix(name).and_then(|path| path.strip_prefix("/src/"));
            let Some(path) = file.and_then(|path| path.strip_suffix(".rs")) else { continue };
            let module = if matches!(path, "lib" | "main") { "" } else { path.strip_suffix("/mod").unwrap_or(path) };
            files.entry(module.to_owned()).or_insert(*source);
        }
        let uses = files.iter().map(|(module, source)| (module.clone(), declared(&source.code))).collect();
        Modules { files, uses }
    }

    /// The file with what `path` names in `module`. `None` for the root, and for what other crates have.
    fn defining(&self, module: &str, path: &[String]) -> Option<String> {
        let found = match path.first()?.as_str() {
            "crate" => self.walk("", &path[1..], 0),
            _ => self.walk(module, path, 0),
        };
        found.filter(|at| !at.is_empty() && self.files.contains_key(at))
    }

    /// Follows `path` from the module `at`: down into modules, and through `use` to where a name comes from.
    fn walk(&self, at: &str, path: &[String], depth: usize) -> Option<String> {
        const DEPTH_MAX: usize = 16;
        let Some((part, rest)) = path.split_first() else { return Some(at.to_owned()) };
        let parent = || at.rsplit_once('/').map_or("", |(parent, _)| parent);
        let inner = if at.is_empty() { part.clone() } else { format!("{at}/{part}") };
        match part.as_str() {
            _ if depth > DEPTH_MAX => return None,
            "self" => return self.walk(at, rest, depth),
            "super" => return self.walk(parent(), rest, depth),
            _ if self.is_module(&inner) => return self.walk(&inner, rest, depth),
            _ => {}
        }
        let uses = self.uses.get(at).map(Vec::as_slice).unwrap_or_default();
        // A macro is exported as `use name;`, which stands for itself.
        let from = |target: &[String]| match target.first().map(String::as_str) {
            Some("crate") => self.walk("", &target[1..], depth + 1),
            Some("self" | "super") => self.walk(at, target, depth + 1),
            Some(first) if self.is_child(at, first) => self.walk(at, target, depth + 1),
            _ => None,
        };
        let named = uses.iter().filter(|(name, _)| name == part).find_map(|(_, target)| from(target));
        let glob = || {
            let globs = uses.iter().filter(|(name, _)| name == "*").filter_map(|(_, target)| from(target));
            globs.filter(|module| module != at).find(|module| self.defines(module, part))
        };
        Some(named.or_else(glob).unwrap_or_else(|| at.to_owned()))
    }

    /// The paths in a module's code that begin with the bare name of a child or of what it re-exports from one.
    fn of_children(&self, module: &str, source: &Source) -> Vec<Vec<String>> {
        let inside = format!("{module}/");
        if !self.files.keys().any(|file| file.starts_with(&inside)) {
            return Vec::new();
        }
        let uses = use_declarations(&source.code);
        let mut found = Vec::new();
        for (range, _) in uses.iter().filter(|(_, is_exported)| !is_exported) {
            expand(&source.code[range.clone()], &[], &mut |path, _| found.push(path));
        }
        found.retain(|path| path.first().is_some_and(|first| self.is_child(module, first)));
        for (at, name) in bare_names(&source.code) {
            let rest = &source.code[at + name.len()..];
            let begins_path = rest.starts_with("::");
            // A variable or a field may have the name of a function.
            let is_item = begins_path || rest.starts_with(['(', '!']) || name.starts_with(char::is_uppercase);
            if uses.iter().any(|(range, _)| range.contains(&at)) {
                continue;
            }
            if self.is_child(module, name) && begins_path {
                expand(&source.code[at..], &[], &mut |path, _| found.push(path));
            } else if is_item {
                found.push(vec![name.to_owned()]);
            }
        }
        found.retain(|path| self.defining(module, path).is_some_and(|file| file.starts_with(&inside)));
        found
    }

    fn is_child(&self, at: &str, name: &str) -> bool {
        self.is_module(&if at.is_empty() { name.to_owned() } else { format!("{at}/{name}") })
    }

    /// Whether there is a file of this module, or files in its folder.
    fn is_module(&self, path: &str) -> bool {
        let inside = format!("{path}/");
        self.files.contains_key(path) || self.files.keys().any(|file| file.starts_with(&inside))
    }

    /// Whether a file has an item of this name.
    fn defines(&self, module: &str, name: &str) -> bool {
        const KINDS: &[&str] = &["struct", "enum", "trait", "type", "fn", "const", "static", "union", "macro_rules"];
        self.files.get(module).is_some_and(|source| {
            let words: Vec<&str> = source.words().map(|(_, word)| word).collect();
            words.windows(2).any(|pair| KINDS.contains(&pair[0]) && pair[1] == name)
        })
    }
}

/// The paths of a file's code that begin with `crate::`, `super::` or `self::`, groups expanded. A re-export from below
/// (`pub use self::post::Y`) is no import.
fn paths(code: &str) -> Vec<Vec<String>> {
    let uses = use_declarations(code);
    let mut found = Vec::new();
    for root in ["crate", "super", "self"] {
        for (at, _) in code.match_indices(&format!("{root}::")) {
            let before = code[..at].trim_end_matches("r#");
            let joined =
                before.chars().next_back().is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | '$' | ':'));
            let exported =
                root == "self" && uses.iter().any(|(range, is_exported)| *is_exported && range.contains(&at));
            if !joined && !exported {
                expand(&code[at..], &[], &mut |path, _| found.push(path));
            }
        }
    }
    found
}

/// The names that a file's `use` declarations bring into its module, and the paths they stand for.
fn declared(code: &str) -> Vec<(String, Vec<String>)> {
    let mut found = Vec::new();
    for (range, _) in use_declarations(code) {
        expand(&code[range], &[], &mut |path: Vec<String>, alias| {
            let last = path.iter().rev().find(|part| *part != "self").cloned();
            found.extend(alias.or(last).map(|name| (name, path)));
        });
    }
    found
}

/// Where the paths of `use` declarations are in a file's code, and whether each is exported.
fn use_declarations(code: &str) -> Vec<(Range<usize>, bool)> {
    let mut found = Vec::new();
    for (at, word) in code.match_indices("use ") {
        let before = &code[..at];
        if before.chars().next_back().is_none_or(char::is_whitespace) {
            let statement = before.rsplit([';', '{', '}', ']']).next().unwrap_or_default();
            let start = at + word.len();
            let length = code[start..].find(';').unwrap_or(code.len() - start);
            found.push((start..start + length, statement.trim_start().starts_with("pub")));
        }
    }
    found
}

/// The names in a file's code that begin a path or are one, with their places. Names of fields, methods, lifetimes and
/// macros' variables are none, nor are those that a function or type declares.
fn bare_names(code: &str) -> impl Iterator<Item = (usize, &str)> {
    const KEYWORDS: &[&str] = &["fn", "type"];
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let words = code.split(move |c: char| !is_part(c)).filter(|word| !word.is_empty());
    words.filter_map(move |word| {
        let at = word.as_ptr() as usize - code.as_ptr() as usize;
        let before = &code[..at];
        let is_joined = before.ends_with(['.', '\'', '$', '#']) && !before.ends_with("..") || before.ends_with("::");
        let declares = KEYWORDS.iter().any(|keyword| {
            let rest = before.trim_end().strip_suffix(keyword);
            before.ends_with(char::is_whitespace) && rest.is_some_and(|rest| !rest.ends_with(is_part))
        });
        (!is_joined && !declares).then_some((at, word))
    })
}

/// Reads the path or the tree of paths at the start of `code`: tells each with its alias, and returns what follows.
fn expand<'c>(code: &'c str, before: &[String], tell: &mut dyn FnMut(Vec<String>, Option<String>)) -> &'c str {
    let mut path = before.to_vec();
    let mut rest = code.trim_start();
    loop {
        if let Some(group) = rest.strip_prefix('{') {
            rest = group.trim_start();
            while !rest.is_empty() && !rest.starts_with('}') {
                let after = expand(rest, &path, tell);
                // Not a group of paths after all.
                if after.len() == rest.len() {
                    return rest;
                }
                rest = after.trim_start().trim_start_matches(',').trim_start();
            }
            return rest.strip_prefix('}').unwrap_or(rest);
        }
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        let (part, after) = if rest.starts_with('*') { rest.split_at(1) } else { rest.split_at(end) };
        if !part.is_empty() {
            path.push(part.to_owned());
        }
        rest = after;
        match rest.strip_prefix("::") {
            Some(next) if !part.is_empty() => rest = next,
            _ => break,
        }
    }
    let mut alias = None;
    if let Some(name) = rest.trim_start().strip_prefix("as ") {
        let end = name.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(name.len());
        (alias, rest) = (Some(name[..end].to_owned()), &name[end..]);
    }
    if path.len() > before.len() {
        tell(path, alias);
    }
    rest
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
    // A folder is shown as a whole, by its name; what is shown of it by another name is not meant by that.
    let place = |module: &str| {
        let shown =
            |name: &&&str| module == **name || module.strip_prefix(**name).is_some_and(|rest| rest.starts_with('/'));
        let names =
            layers.iter().enumerate().flat_map(|(at, layer)| layer.iter().filter(shown).map(move |name| (at, name)));
        names.max_by_key(|(_, name)| name.len()).map(|(at, _)| at)
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
            ("http/post", "use super::work::Z; use super::super::d;"),
            ("http/work", "use super::{post, body::B};"),
            ("http/body", ""),
        ]);
        let of = |name: &str| found[name].iter().map(String::as_str).collect::<Vec<_>>();
        assert_eq!(of("a"), ["b", "c", "d", "http/post"]);
        assert_eq!((of("b"), of("c")), (vec![], vec![]));
        assert_eq!((of("http/post"), of("http/work")), (vec!["d", "http/work"], vec!["http/body", "http/post"]));
        assert_eq!(knots(&found), [["http/post", "http/work"]]);
    }

    #[test]
    fn a_module_imports_the_children_that_its_own_code_names() {
        let found = imports_of(&[
            (
                "http/mod",
                "mod post; mod service; mod inner; mod work; mod near; mod far; pub use service::{Service, service as http};
                 pub(crate) use {post::Post, far::{self, Far}}; pub use inner::*; use near::Near;
                 pub fn a(post: u8, own: &'static Own) { work::b(post); Service::new(own.far(), far::Far) }",
            ),
            ("http/post", "use super::Own;"),
            ("http/service", "use super::Own; pub struct Service; pub fn service() {}"),
            ("http/inner", "pub struct Own;"),
            ("http/work", "pub fn b(_: u8) { super::a() }"),
            ("http/near", "use super::Service;"),
            ("http/far", "use super::super::d::D;"),
            ("sse/mod", "mod post; pub use post::Post; use super::{post::Near, d::{D, self}}; fn post() {} fn a(x: X) { x.post() }"),
            ("sse/post", "use super::super::http;"),
            ("d", "use self::part::P; pub use part::Q; type Q = u8;"),
            ("d/part", "use super::D;"),
        ]);
        let of = |name: &str| found[name].iter().map(String::as_str).collect::<Vec<_>>();
        assert_eq!(of("http"), ["http/far", "http/inner", "http/near", "http/service", "http/work"]);
        assert_eq!((of("sse"), of("d")), (vec!["d"], vec!["d/part"]));
        assert_eq!(knots(&found), [vec!["d", "d/part"], vec!["http", "http/work"]]);
    }

    #[test]
    fn what_is_re_exported_is_imported_from_the_file_that_has_it() {
        let found = imports_of(&[
            (
                "lib",
                "mod a; pub use a::A; pub(crate) use http::{Post, work::{self as hard, Work}}; pub use near::near; use std::fmt::X;",
            ),
            ("a", "use crate::{Post, near}; fn f() { crate::hard::g() } use crate::X; crate::Unknown;"),
            ("b", "use crate::http::{Renamed, Item, Absent, sealed};"),
            ("c", "use crate::{A, http::{inner::{Deep, Own}, Work as W}}; use self::missing::X; crate::Loop::x();"),
            ("near", "pub fn near() {} pub use crate::Loop;"),
            (
                "http/mod",
                "pub use post::{Post, Post as Renamed}; pub(crate) use self::work::*; pub use inner::*; macro_rules! sealed {} pub(crate) use sealed;",
            ),
            ("http/post", "use super::{Work, Deep, Renamed, sealed};"),
            ("http/work", "pub struct Work; pub enum Item {} use self::inner;"),
            ("http/inner", "pub use super::post::Post as Deep; pub struct Own; use super::super::A;"),
        ]);
        let of = |name: &str| found[name].iter().map(String::as_str).collect::<Vec<_>>();
        assert_eq!(of("a"), ["http/post", "http/work", "near"]);
        assert_eq!(of("b"), ["http", "http/post", "http/work"]);
        assert_eq!(of("c"), ["a", "http/inner", "http/post", "http/work"]);
        assert_eq!(of("http"), Vec::<&str>::new());
        assert_eq!(of("http/post"), ["http", "http/work"]);
        assert_eq!((of("http/work"), of("http/inner")), (vec![], vec!["a", "http/post"]));
        // Uses that lead to one another end.
        let found = imports_of(&[
            ("a", "pub use crate::b::X;"),
            ("b", "pub use crate::a::X; pub use crate::c::*;"),
            ("c", "use crate::a::X;"),
        ]);
        assert_eq!(found["a"].len(), 1, "{found:?}");
    }

    #[test]
    fn imports_upwards_and_files_that_are_not_shown_are_found() {
        let root = format!("//! {HEADING}\n//!\n//! ```text\n//! a  http\n//! b\n//! ```\n");
        let found = imports_of(&[("a", "use crate::b;"), ("b", "use crate::http::x;"), ("http/x", ""), ("c", "")]);
        let what = against(&found, &layers(&root));
        assert_eq!(what.len(), 2, "{what:?}");
        assert!(what[0].contains("`b` imports `http/x`") && what[1].contains("`c` is not in"), "{what:?}");
        assert!(against(&found, &layers("//! nothing")).is_empty());
        // A module may be shown above its children.
        let root = format!("//! {HEADING}\n//!\n//! ```text\n//! http\n//! http/x\n//! ```\n");
        let found = imports_of(&[("http/mod", "use self::x::X;"), ("http/x", "")]);
        assert!(against(&found, &layers(&root)).is_empty());
        let found = imports_of(&[("http/mod", ""), ("http/x", "use super::y::Y;"), ("http/y", "")]);
        assert_eq!(against(&found, &layers(&root)).len(), 1);
    }
}
