//! Rules about documents and other tracked text.

use super::source::Source;
use super::{Finding, Tree};

/// Beginnings of paths that exist on one machine only. Written in halves so that this file passes.
const MACHINE_PATHS: &[&str] = &[concat!("/ro", "ot/"), concat!("/ho", "me/")];

/// What may follow them: users of no machine, in examples.
const NOBODY: &[&str] = &["me/", "you/"];

/// The files that hold every limit's knob: a server's, and a client's.
const SERVER_LIMITS: &str = "crates/core/src/limits/server.rs";
const CLIENT_LIMITS: &str = "crates/core/src/limits/client.rs";

/// What stands between the two in `docs/LIMITS.md`.
const CLIENTS: &str = "\n## Clients\n";

/// Lines of tracked text that name a folder of one machine.
pub(super) fn machine_paths(tree: &Tree<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    for path in &tree.files {
        // A file that is not UTF-8 is no text.
        let Some(text) = tree.read(path) else {
            continue;
        };
        for line in lines_with_machine_paths(&text) {
            let what = "a path of one machine; use a relative one or an environment variable";
            found.push(Finding::new(format!("{path}:{line}"), what));
        }
    }
    found
}

fn lines_with_machine_paths(text: &str) -> Vec<usize> {
    let names = |line: &str| {
        MACHINE_PATHS.iter().any(|beginning| {
            line.match_indices(beginning).any(|(at, _)| {
                // `https://host/home/x` and `./root/x` are not absolute paths.
                let before = line[..at].chars().next_back();
                let user = &line[at + beginning.len()..];
                let somebody = !NOBODY.iter().any(|nobody| user.starts_with(nobody));
                somebody && !before.is_some_and(|c| c.is_alphanumeric() || "._-~}".contains(c))
            })
        })
    };
    (1..).zip(text.lines()).filter(|(_, line)| names(line)).map(|(number, _)| number).collect()
}

/// Knobs that `docs/LIMITS.md` does not name.
pub(super) fn limits(tree: &Tree<'_>) -> Vec<Finding> {
    let Some(document) = tree.read("docs/LIMITS.md") else {
        return vec![Finding::new("docs/LIMITS.md", "is missing")];
    };
    let Some((servers, clients)) = document.split_once(CLIENTS) else {
        return vec![Finding::new("docs/LIMITS.md", "has no section about clients")];
    };
    let mut found = Vec::new();
    for (path, document) in [(SERVER_LIMITS, servers), (CLIENT_LIMITS, clients)] {
        let Some(code) = tree.read(path) else {
            found.push(Finding::new(path, "is missing"));
            continue;
        };
        let unnamed = unnamed_knobs(&code, document);
        found.extend(unnamed.iter().map(|knob| Finding::new("docs/LIMITS.md", format!("does not name `{knob}`"))));
    }
    found
}

fn unnamed_knobs(code: &str, document: &str) -> Vec<String> {
    let name = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
    let named = |knob: &str| document.split(|c| !name(c)).any(|word| word.trim_end_matches('.') == knob);
    let mut knobs = knobs(code);
    knobs.retain(|knob| !named(knob));
    knobs
}

/// The fields of all structs of `code`, each as `group.field`: the group is the field that has the struct as its type.
fn knobs(code: &str) -> Vec<String> {
    let source = Source::new(SERVER_LIMITS, code);
    let mut fields: Vec<(&str, &str, &str)> = Vec::new();
    let mut owner = "";
    for line in source.code.lines().filter_map(|line| line.trim().strip_prefix("pub ")) {
        if let Some(name) = line.strip_prefix("struct ") {
            owner = name.trim_end_matches([' ', '{']);
        } else if let Some((field, kind)) = line.split_once(": ").filter(|_| !line.starts_with("fn ")) {
            fields.push((owner, field, kind.trim_end_matches(',')));
        }
    }
    let mut knobs = Vec::new();
    for (owner, field, _) in &fields {
        let group = fields.iter().find(|(_, _, kind)| kind == owner);
        knobs.extend(group.map(|(_, group, _)| format!("{group}.{field}")));
    }
    knobs
}

/// README code that no doc test compiles.
pub(super) fn readme(tree: &Tree<'_>) -> Vec<Finding> {
    let Some(readme) = tree.read("README.md") else {
        return vec![Finding::new("README.md", "is missing")];
    };
    let facade = tree.read("crates/linchpin/src/lib.rs").unwrap_or_default();
    if !has_rust(&readme) || includes_readme(&facade) {
        return Vec::new();
    }
    let what = "does not include README.md, so its ```rust blocks are never compiled";
    vec![Finding::new("crates/linchpin/src/lib.rs", what)]
}

fn has_rust(readme: &str) -> bool {
    readme.lines().any(|line| line.trim() == "```rust" || line.trim().starts_with("```rust,"))
}

fn includes_readme(facade: &str) -> bool {
    facade
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .any(|line| line.contains("include_str!") && line.contains("README.md"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_path_is_found_and_an_address_is_not() {
        let [first, second] = MACHINE_PATHS else {
            panic!("two beginnings");
        };
        let text = format!("ok\ncd {first}x\n\"{second}ann/y\"\nhttps://host{second}z\n./a{first}b\n{second}me/z");
        assert_eq!(lines_with_machine_paths(&text), [2, 3]);
    }

    #[test]
    fn a_knob_must_be_named_whole() {
        let code = "
pub struct Limits {
    // pub old: Old,
    pub calls: CallLimits,
}
impl Limits {
    pub fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
}
pub struct CallLimits {
    pub per_peer_max: usize,
    pub run_ms: u64,
}";
        assert_eq!(unnamed_knobs(code, "`calls.per_peer_max` and `run_ms`"), ["calls.run_ms"]);
        assert_eq!(unnamed_knobs(code, "`old.calls.per_peer_max`, `calls.run_ms_max`").len(), 2);
        assert!(unnamed_knobs(code, "calls.per_peer_max, calls.run_ms.").is_empty());
    }

    #[test]
    fn readme_code_counts_as_compiled_only_with_the_include() {
        assert!(has_rust("a\n```rust\nfn main() {}\n```"));
        assert!(!has_rust("```text\n```rusty"));
        assert!(includes_readme("#![doc = include_str!(\"../../../README.md\")]"));
        assert!(!includes_readme("// include_str!(\"README.md\")"));
    }
}
