//! What the native servers have in common: small crates over one kit, which know no wire, no era and no command line.
//!
//! The kit alone may know clap, as an optional dependency: there the options of all servers become arguments (feature `cli`).

use super::source::Source;
use super::{Finding, Tree, rules};

/// The shared crate.
const KIT: &str = "kit";

/// Shows every part of the protocol, eras among them, and has nothing to choose: these rules are not for it.
const SHOWCASE: &str = "everything";

/// Packages that a server must not depend on, and what to use instead.
const PACKAGES: &[(&str, &str)] = &[
    ("clap", "the command line is apps/cli's"),
    ("hyper", "linchpin::transport::web is the one HTTP client"),
    ("hyper-util", "linchpin::transport::web is the one HTTP client"),
    ("reqwest", "linchpin::transport::web is the one HTTP client"),
    ("ureq", "linchpin::transport::web is the one HTTP client"),
];

/// Names that only the kit defines.
const KIT_NAMES: &[&str] =
    &["ToolPrefix", "ToolChoice", "ToolSpec", "ToolSet", "ToolError", "ToolOutput", "Provenance", "Paging", "Vars"];

/// Words for what belongs to transports.
const WIRE_WORDS: &[&str] = &["TcpListener", "UnixListener", "HttpExt", "hyper", "reqwest"];

/// The server and the path inside its folder: `servers/git/src/lib.rs` is `git` and `src/lib.rs`.
fn place(path: &str) -> Option<(&str, &str)> {
    path.strip_prefix("servers/")?.split_once('/')
}

/// What the servers stand on: no server themselves.
const SHARED: &[&str] = &[KIT, "rest"];

/// A file, and what a server of this name has in it.
type Told = (&'static str, fn(&str) -> String);

/// Where a server is told of beside its own folder. All else follows from these.
const PLACES: &[Told] = &[
    ("Cargo.toml", |name| format!("servers/{name}\"")),
    ("apps/cli/Cargo.toml", |name| format!("{name} = [\"dep:linchpin-{name}\"")),
    ("apps/cli/src/serve/servers.rs", |name| format!("\"{name}\",\n            linchpin_")),
    ("apps/cli/tests/it/common/rows.rs", |name| format!("row(\"{name}\"")),
    ("apps/cli/README.md", |name| format!("(../../servers/{name}/README.md)")),
    ("xtask/src/deps.rs", |name| format!("package: \"linchpin-{name}\"")),
];

/// What of the places above does not have this server.
fn not_told_of(name: &str, read: impl Fn(&str) -> Option<String>) -> Vec<String> {
    let missing = |(file, entry): &Told| {
        let entry = entry(name);
        let is_there = read(file).is_some_and(|text| text.contains(&entry));
        (!is_there).then(|| format!("is not in {file}: `{}` is missing", entry.lines().next().unwrap_or_default()))
    };
    PLACES.iter().filter_map(missing).collect()
}

/// Every rule about the folders and manifests below `servers/`.
pub(super) fn check(tree: &Tree<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    for path in &tree.files {
        if let Some((server, "Cargo.toml")) = place(path)
            && let Some(text) = tree.read(path)
        {
            found.extend(manifest(server, &text).into_iter().map(|what| Finding::new(path, what)));
            if !SHARED.contains(&server) {
                found.extend(
                    not_told_of(server, |file| tree.read(file)).into_iter().map(|what| Finding::new(path, what)),
                );
            }
        }
    }
    found
}

/// What is wrong with the manifest of a server.
fn manifest(server: &str, text: &str) -> Vec<String> {
    let Ok(table) = text.parse::<toml::Table>() else {
        return vec!["is not valid TOML".to_string()];
    };
    let names = super::manifests::dependencies(text);
    let optional = |name: &str| {
        let entry = table.get("dependencies").and_then(|all| all.get(name)).and_then(|entry| entry.get("optional"));
        entry.and_then(toml::Value::as_bool) == Some(true)
    };
    let mut wrong: Vec<String> = PACKAGES
        .iter()
        .filter(|(name, _)| names.iter().any(|found| found == name))
        .filter(|(name, _)| !(server == KIT && *name == "clap" && optional(name)))
        .map(|(name, instead)| format!("{name}: {instead}"))
        .collect();
    if ![KIT, SHOWCASE].contains(&server) && !names.iter().any(|name| name == "linchpin-kit") {
        wrong.push("does not depend on linchpin-kit; flags, errors and answers are the same in every server".into());
    }
    let lean = table
        .get("dependencies")
        .and_then(|all| all.get("linchpin"))
        .is_none_or(|linchpin| linchpin.get("default-features").and_then(toml::Value::as_bool) == Some(false));
    if !lean {
        wrong.push("takes linchpin's default features; take `server` and what it uses".into());
    }
    wrong
}

/// Code of a server that is another crate's business.
pub(super) fn foreign_code(source: &Source) -> Vec<Finding> {
    let Some((server, _)) = place(&source.path).filter(|(server, _)| *server != SHOWCASE) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    let mut say = |line: usize, what: String| found.push(Finding::new(format!("{}:{line}", source.path), what));
    for (line, text) in (1..).zip(source.code.lines()) {
        for (at, word) in text.match_indices("transport::") {
            if !text[at + word.len()..].starts_with("web") {
                say(line, "a server does not know how it is reached; of transports only `web` is for it".into());
            }
        }
        for name in KIT_NAMES.iter().filter(|name| server != KIT && defines(text, name)) {
            say(line, format!("`{name}` is the kit's; every server uses that one"));
        }
    }
    for (line, word) in source.words() {
        if WIRE_WORDS.contains(&word) {
            say(line, format!("`{word}`: a server does not know how it is reached"));
        }
        if rules::names_an_era(word) {
            say(line, format!("`{word}`: a server is the same in every era"));
        }
    }
    for (line, text) in &source.strings {
        if is_date_of_a_revision(text) {
            say(*line, format!("\"{text}\": a server is the same in every era"));
        }
    }
    found
}

/// Whether a line of code defines a type of this name.
fn defines(text: &str, name: &str) -> bool {
    let mut words = text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty());
    let mut before = "";
    words.any(|word| {
        let here = word == name && matches!(before, "struct" | "enum" | "trait" | "type" | "union");
        before = word;
        here
    })
}

/// The dates that name revisions of the protocol.
fn is_date_of_a_revision(text: &str) -> bool {
    const DATES: &[&str] = &["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"];
    DATES.contains(&text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_server_is_told_where_it_is_missing() {
        let all = |name: &str| PLACES.iter().map(|(_, entry)| entry(name)).collect::<Vec<_>>().join("\n");
        let text = all("git");
        assert_eq!(not_told_of("git", |_| Some(text.clone())), [""; 0]);
        assert_eq!(not_told_of("hg", |_| Some(text.clone())).len(), PLACES.len());
        assert_eq!(not_told_of("git", |_| None).len(), PLACES.len());
    }

    #[test]
    fn a_server_stands_on_the_kit_and_brings_no_command_line_and_no_client_of_its_own() {
        let kit = "linchpin-kit.workspace = true\n";
        for (server, entries, expected) in [
            ("git", format!("{kit}serde = \"1\""), 0),
            ("git", "serde = \"1\"".into(), 1),
            ("git", format!("{kit}clap = \"4\""), 1),
            ("git", format!("{kit}http = {{ package = \"reqwest\", version = \"1\" }}"), 1),
            ("git", format!("{kit}linchpin = {{ path = \"x\", default-features = false }}"), 0),
            ("git", format!("{kit}linchpin.workspace = true"), 1),
            ("git", format!("{kit}clap = {{ version = \"4\", optional = true }}"), 1),
            ("kit", "serde = \"1\"".into(), 0),
            ("kit", "clap = { version = \"4\", optional = true }".into(), 0),
            ("kit", "clap = \"4\"".into(), 1),
            ("everything", "serde = \"1\"".into(), 0),
            ("everything", "clap = \"4\"".into(), 1),
        ] {
            let text = format!("[dependencies]\n{entries}\n[dev-dependencies]\nclap = \"4\"\n");
            assert_eq!(manifest(server, &text).len(), expected, "{server}: {entries}");
        }
        assert_eq!(manifest("git", "not toml").len(), 1);
    }

    #[test]
    fn a_server_knows_no_wire_no_era_and_defines_nothing_of_the_kit() {
        for (path, text, expected) in [
            ("servers/fetch/src/lib.rs", "use linchpin::transport::web::Web;", 0),
            ("servers/fetch/src/lib.rs", "use linchpin::transport::http::serve;", 1),
            ("servers/fetch/src/lib.rs", "let l = TcpListener::bind(a);", 1),
            ("servers/fetch/src/lib.rs", "// TcpListener, transport::stdio, Legacy", 0),
            ("servers/fetch/src/lib.rs", "#[cfg(test)]\nmod tests { use x::TcpListener; }", 0),
            ("servers/fetch/src/lib.rs", "if era == Era::Legacy {}", 1),
            ("servers/fetch/src/lib.rs", "if v == V2025_11_25 {}", 1),
            ("servers/fetch/src/lib.rs", "if v == \"2025-11-25\" {}", 1),
            ("servers/fetch/src/lib.rs", "let day = \"2025-11-26\";", 0),
            ("servers/fetch/src/lib.rs", "pub enum ToolPrefix { None }", 1),
            ("servers/fetch/src/lib.rs", "pub(crate) struct ToolError<'a>(&'a str);", 1),
            ("servers/fetch/src/lib.rs", "fn f(fault: ToolError) -> Faulty", 0),
            ("servers/kit/src/error.rs", "pub struct ToolError;", 0),
            ("servers/everything/src/lib.rs", "use linchpin::transport::http::serve;", 0),
            ("crates/server/src/lib.rs", "pub struct ToolError;", 0),
        ] {
            let found = foreign_code(&Source::new(path, text));
            assert_eq!(found.len(), expected, "{path}: {text}: {found:?}");
        }
    }
}
