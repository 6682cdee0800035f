//! Rules about one source file.

use super::source::{self, Source};
use super::{Finding, Tree};

/// The longest a file may be, in lines that are not tests.
const FILE_LINES_MAX: usize = 800;
/// The longest a function may be, in lines.
const FUNCTION_LINES_MAX: usize = 100;

/// Where an era may be named: the file that decides, the two codecs, and the list of revisions.
const ERA_ROOMS: &[&str] = &[
    "crates/core/src/features.rs",
    "crates/proto/src/era.rs",
    "crates/proto/src/legacy/",
    "crates/proto/src/modern/",
    "crates/types/src/version.rs",
];

/// Where code may ask whether requests are stateless, and what it means by that.
const STATELESS_ROOMS: &[(&str, &str)] = &[
    ("crates/proto/src/", "decides of which era a message is"),
    ("crates/testing/src/client.rs", "writes the `_meta` that makes a request stateless"),
];

/// The crates that have messages as text.
const MESSAGE_ROOMS: &[&str] = &[
    "crates/client/src/",
    "crates/core/src/",
    "crates/gateway/src/",
    "crates/proto/src/",
    "crates/server/src/",
    "crates/transport/src/",
];

/// The files that may search the text of a message, and what for.
const SEARCHES: &[(&str, &str)] = &[
    (
        "crates/proto/src/translate/result.rs",
        "whether a result needs a change; one that spells the name otherwise passes as it came",
    ),
    ("crates/gateway/src/mirrored.rs", "whether a list of tools is worth reading; the same"),
    ("crates/transport/src/partial_parse.rs", "the id at the end of a line that is too long to be read"),
];

/// What a crate's code must not mention: the folder, the paths or words, and why.
const FORBIDDEN: &[(&str, &[&str], &str)] = &[
    (
        "crates/types/src/",
        &["tokio", "std::fs", "std::net", "std::thread", "Instant", "SystemTime", "async"],
        "the words have no behaviour: no I/O, no clock, no tasks",
    ),
    (
        "crates/core/src/",
        &["tokio", "std::fs", "std::net", "std::thread", "Instant::now", "SystemTime::now", "async"],
        "the seam has no I/O, no tasks and no clock of its own",
    ),
    (
        "crates/proto/src/",
        &["tokio", "std::fs", "std::net", "std::thread", "Instant::now", "SystemTime", "async"],
        "the grammar is deterministic: no sockets, no tasks, no clock of its own",
    ),
    (
        "crates/client/src/",
        &["hyper", "reqwest", "StatusCode", "std::net", "tokio::net", "tokio::process", "std::process"],
        "the client API knows neither sockets nor processes nor HTTP",
    ),
    (
        "crates/gateway/src/",
        &["hyper", "StatusCode", "std::net", "tokio::net", "tokio::process", "std::process", "clap"],
        "a bridge knows neither sockets nor HTTP nor command lines",
    ),
    ("crates/server/src/", &["hyper", "StatusCode", "std::net"], "the server API knows nothing of HTTP"),
    (
        "apps/cli/src/",
        &["print!", "println!", "eprint!", "eprintln!", "io::stdout", "io::stderr", "stdout()", "stderr()"],
        "only `show/out.rs` writes to the standard streams: it cleans what servers said",
    ),
];

/// The files of a room that may do what it forbids to all others.
const EXEMPT: &[&str] = &["apps/cli/src/show/out.rs"];

/// Applies a rule about one file to all of them.
pub(super) fn each(tree: &Tree<'_>, rule: fn(&Source) -> Vec<Finding>) -> Vec<Finding> {
    tree.sources.iter().flat_map(rule).collect()
}

/// Files with more production lines than [`FILE_LINES_MAX`].
pub(super) fn long_files(source: &Source) -> Vec<Finding> {
    let lines = source.lines;
    if lines <= FILE_LINES_MAX {
        return Vec::new();
    }
    let what = format!("{lines} lines, {FILE_LINES_MAX} are allowed; split it by its nouns");
    vec![Finding::new(&source.path, what)]
}

/// Functions with more lines than [`FUNCTION_LINES_MAX`].
pub(super) fn long_functions(source: &Source) -> Vec<Finding> {
    source::functions(&source.code)
        .into_iter()
        .filter(|(_, first, last)| last - first + 1 > FUNCTION_LINES_MAX)
        .map(|(name, first, last)| {
            let lines = last - first + 1;
            let what = format!("`{name}` has {lines} lines, {FUNCTION_LINES_MAX} are allowed");
            Finding::new(format!("{}:{first}", source.path), what)
        })
        .collect()
}

/// Calls that must not be in production code.
pub(super) fn banned_calls(source: &Source) -> Vec<Finding> {
    const BANNED: &[(&str, &str)] = &[
        ("todo!", "do it, or say in the documentation that it is not there"),
        ("unimplemented!", "do it, or return an error"),
        ("dbg!", "use tracing"),
        (".unwrap()", "return an error, or `expect` with why it cannot fail"),
    ];
    let mut found = Vec::new();
    for (line, text) in source.code.lines().enumerate() {
        for (call, instead) in BANNED {
            if contains_word(text, call) {
                let place = format!("{}:{}", source.path, line + 1);
                found.push(Finding::new(place, format!("{call}: {instead}")));
            }
        }
    }
    found
}

/// Identifiers that name an era or a revision outside the rooms that may.
pub(super) fn era_words(source: &Source) -> Vec<Finding> {
    let free = ERA_ROOMS.iter().any(|room| source.path.starts_with(room));
    if free || !source.path.starts_with("crates/") {
        return Vec::new();
    }
    source
        .words()
        .filter(|(_, word)| names_an_era(word))
        .map(|(line, word)| {
            let what = format!("`{word}`: ask a method of `Era` or `Revision` instead of naming one");
            Finding::new(format!("{}:{line}", source.path), what)
        })
        .collect()
}

/// Questions whether a revision is stateless, outside the rooms that mean just that: what else differs has a name.
pub(super) fn stateless(source: &Source) -> Vec<Finding> {
    if STATELESS_ROOMS.iter().any(|(room, _)| source.path.starts_with(room)) {
        return Vec::new();
    }
    let lines = source.code.lines().enumerate().filter(|(_, text)| contains_word(text, ".stateless"));
    lines
        .map(|(line, _)| {
            let what = "`.stateless`: ask for what is meant: `has_sessions`, `server_requests`, `multi_round_trip`, …";
            Finding::new(format!("{}:{}", source.path, line + 1), what)
        })
        .collect()
}

/// Searches of a message's text for the name of a member: the name may be in a value, or have an escape.
pub(super) fn text_searches(source: &Source) -> Vec<Finding> {
    // Calls whose first argument is what they search for, and those that search their first argument.
    const SEARCHING: [&str; 4] = [".contains(", ".find(", ".rfind(", "Finder::new("];
    const SEARCHED: [&str; 3] = ["memmem::find(", "memmem::rfind(", "memmem::find_iter("];
    let free = SEARCHES.iter().any(|(file, _)| source.path == *file);
    if free || !MESSAGE_ROOMS.iter().any(|room| source.path.starts_with(room)) {
        return Vec::new();
    }
    let (mut found, mut line, mut counted) = (Vec::new(), 1, 0);
    let mut strings = source.strings.iter().peekable();
    // Only the quotes around strings are left in the code.
    for (at, _) in source.code.match_indices('"').step_by(2) {
        line += source.code[counted..at].matches('\n').count();
        counted = at;
        while strings.next_if(|(begun, _)| *begun < line).is_some() {}
        let Some((_, string)) = strings.next_if(|(begun, _)| *begun == line) else { continue };
        if !is_member(string) {
            continue;
        }
        // Raw strings begin with these.
        let before = source.code[..at].trim_end_matches('#').trim_end_matches('r').trim_end_matches('b').trim_end();
        let is_open = |call: &&str| {
            let Some((_, arguments)) = before.rsplit_once(*call) else { return false };
            let mut depth = 1;
            arguments.chars().all(|c| {
                depth += i32::from(c == '(') - i32::from(c == ')');
                depth > 0
            })
        };
        if SEARCHING.iter().any(|search| before.ends_with(search)) || SEARCHED.iter().any(is_open) {
            let what = format!("searches for `{string}`: read the message, or use what `frame::read` found in it");
            found.push(Finding::new(format!("{}:{line}", source.path), what));
        }
    }
    found
}

/// Whether a literal is the name of a member, with its quotes or without.
fn is_member(literal: &str) -> bool {
    let within = |quote: &str| literal.strip_prefix(quote)?.strip_suffix(quote);
    let quoted = within("\\\"").or_else(|| within("\""));
    let name = |c: char| c.is_ascii_alphanumeric() || "_-./".contains(c);
    match quoted {
        Some(quoted) => !quoted.is_empty() && quoted.chars().all(name),
        None => literal.len() > 1 && literal.chars().all(|c| c.is_ascii_alphabetic() || c == '_'),
    }
}

/// `Legacy`, `Modern` and the names of revisions.
pub(super) fn names_an_era(word: &str) -> bool {
    matches!(word, "Legacy" | "Modern") || is_revision(word)
}

/// `V2025_11_25` and its like.
fn is_revision(word: &str) -> bool {
    let pattern = "V0000_00_00";
    word.len() == pattern.len()
        && word.chars().zip(pattern.chars()).all(|(c, kind)| if kind == '0' { c.is_ascii_digit() } else { c == kind })
}

/// Paths and words that the crate's room forbids.
pub(super) fn forbidden_words(source: &Source) -> Vec<Finding> {
    let mut found = Vec::new();
    for (room, words, why) in FORBIDDEN {
        if !source.path.starts_with(room) || EXEMPT.contains(&source.path.as_str()) {
            continue;
        }
        for (line, text) in source.code.lines().enumerate() {
            for word in words.iter().filter(|word| contains_word(text, word)) {
                let place = format!("{}:{}", source.path, line + 1);
                found.push(Finding::new(place, format!("`{word}`: {why}")));
            }
        }
    }
    if source.path.starts_with("crates/transport/src/") {
        for (line, string) in source.strings.iter().filter(|(_, string)| is_method(string)) {
            let place = format!("{}:{line}", source.path);
            let what = format!("\"{string}\": a transport moves bytes and knows no method");
            found.push(Finding::new(place, what));
        }
    }
    found
}

/// Whether a string is the name of an MCP method.
fn is_method(string: &str) -> bool {
    const GROUPS: &[&str] = &[
        "tools",
        "resources",
        "prompts",
        "completion",
        "logging",
        "sampling",
        "elicitation",
        "roots",
        "server",
        "subscriptions",
        "notifications",
    ];
    match string.split_once('/') {
        Some((group, name)) => {
            let letters = name.chars().all(|c| c.is_ascii_alphabetic() || "_/".contains(c));
            GROUPS.contains(&group) && !name.is_empty() && letters
        }
        None => matches!(string, "initialize" | "ping"),
    }
}

/// Items in the facade that are more than a re-export.
pub(super) fn facade(source: &Source) -> Vec<Finding> {
    const CODE: &[&str] = &["fn", "struct", "enum", "trait", "impl", "const", "static", "macro_rules"];
    if !source.path.starts_with("crates/linchpin/src/") {
        return Vec::new();
    }
    source
        .words()
        .filter(|(_, word)| CODE.contains(word))
        .map(|(line, word)| {
            let what = format!("`{word}`: the facade re-exports and documents, nothing else");
            Finding::new(format!("{}:{line}", source.path), what)
        })
        .collect()
}

/// Whether `text` has `word` with no identifier character right before or after it.
fn contains_word(text: &str, word: &str) -> bool {
    let is_part = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    let starts_with_part = is_part(word.chars().next());
    let ends_with_part = is_part(word.chars().next_back());
    text.match_indices(word).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + word.len()..].chars().next();
        let continued = starts_with_part && is_part(before) || ends_with_part && is_part(after);
        !continued
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(rule: fn(&Source) -> Vec<Finding>, path: &str, text: &str) -> Vec<String> {
        let findings = rule(&Source::new(path, text));
        findings.into_iter().map(|finding| finding.place).collect()
    }

    #[test]
    fn a_banned_call_is_found_in_code_and_only_there() {
        let text = "// .unwrap()\nlet a = b.unwrap();\nlet c = \"dbg!\";\nlet d = e.unwrap_or(1);\ntodo!()\n#[cfg(test)]\nmod t { x.unwrap() }";
        assert_eq!(lines(banned_calls, "a.rs", text), ["a.rs:2", "a.rs:5"]);
    }

    #[test]
    fn an_era_is_named_only_where_it_may_be() {
        let text = "match era { Era::Legacy => a, _ => b }\nif v == V2025_11_25 {}\n// Modern\nlegacy_peer(Modernise)";
        let path = "crates/transport/src/http.rs";
        let expected = ["crates/transport/src/http.rs:1", "crates/transport/src/http.rs:2"];
        assert_eq!(lines(era_words, path, text), expected);
        for room in ERA_ROOMS {
            assert!(lines(era_words, room, text).is_empty(), "{room}");
        }
        assert!(lines(era_words, "servers/everything/src/lib.rs", text).is_empty());
    }

    #[test]
    fn a_revision_is_asked_for_what_it_has() {
        let text = "if features.stateless {}\na\n    .stateless()\nx.stateless_too, is.has_sessions // y.stateless\nlisten::stateless(a)";
        assert_eq!(
            lines(stateless, "crates/core/src/a.rs", text),
            ["crates/core/src/a.rs:1", "crates/core/src/a.rs:3"]
        );
        for (room, _) in STATELESS_ROOMS {
            assert!(lines(stateless, room, text).is_empty(), "{room}");
        }
    }

    #[test]
    fn a_message_is_read_and_not_searched() {
        let cases = [
            (r#"if params.contains("\"task\"") {}"#, 1),
            (r#"a("b", meta.contains("traceparent"), "c")"#, 1),
            (r#"json.contains("taskIds") || json.contains("\"x-mcp-header\"")"#, 2),
            (r##"json.contains(r#""task""#); json.find("_meta"); json.rfind("\"task\"")"##, 3),
            ("text.contains(\n    \"task\",\n) || text.find(\n    r#\"\"task\"\"#)", 2),
            (r#"memmem::find(text.as_bytes(), b"\"task\"") || memchr::memmem::rfind(tail, b"\"id\"")"#, 2),
            ("memmem::find(\n    text.as_bytes(),\n    b\"task\",\n)", 1),
            (r#"memmem::Finder::new("task")"#, 1),
            (r#"memmem::find(text, name).is_some() && of("task")"#, 0),
            ("let a = \"one\n two\"; text.contains(\"task\")", 1),
            (r#"why.contains("2020-12") && x == "task""#, 0),
            (r#"text.contains("task ids") || text.contains(" dlx ") || text.contains("x")"#, 0),
            (r#"METHODS.contains(&"task"); text.contains('"'); text.contains(name) // text.contains("task")"#, 0),
            ("#[cfg(test)]\nmod tests { fn f() { text.contains(\"task\") } }", 0),
        ];
        for (text, expected) in cases {
            assert_eq!(lines(text_searches, "crates/core/src/a.rs", text).len(), expected, "{text}");
            assert!(SEARCHES.iter().all(|(file, _)| lines(text_searches, file, text).is_empty()), "{text}");
            assert!(lines(text_searches, "servers/git/src/a.rs", text).is_empty(), "{text}");
        }
    }

    #[test]
    fn a_file_is_long_by_its_production_lines() {
        let long = "fn a() {}\n".repeat(FILE_LINES_MAX);
        assert!(lines(long_files, "a.rs", &long).is_empty());
        let tests = format!("{long}#[cfg(test)]\nmod tests {{\n{long}}}\n");
        assert!(lines(long_files, "a.rs", &tests).is_empty());
        assert_eq!(lines(long_files, "a.rs", &format!("{long}fn b() {{}}")), ["a.rs"]);
    }

    #[test]
    fn a_function_of_101_lines_is_too_long() {
        let function = |lines: usize| format!("\nfn f() {{\n{}}}\n", "x();\n".repeat(lines - 2));
        assert!(lines(long_functions, "a.rs", &function(100)).is_empty());
        assert_eq!(lines(long_functions, "a.rs", &function(101)), ["a.rs:2"]);
    }

    #[test]
    fn each_room_is_held_to_what_it_must_not_touch() {
        let cases = [
            ("crates/proto/src/a.rs", "let t = Instant::now();", 1),
            ("crates/proto/src/a.rs", "fn f(now: Instant) {}", 0),
            ("crates/types/src/a.rs", "async fn f() {}", 1),
            ("crates/types/src/a.rs", "let is_async = 1;", 0),
            ("crates/transport/src/a.rs", "if method == \"tools/call\" {}", 1),
            ("crates/transport/src/a.rs", "if path == \"/mcp\" {}", 0),
            ("crates/transport/src/a.rs", "// \"tools/call\"", 0),
            ("crates/server/src/a.rs", "method == \"tools/call\"", 0),
            ("crates/server/src/a.rs", "use hyper::Body;", 1),
            ("apps/cli/src/a.rs", "println!(\"{name}\")", 1),
            ("apps/cli/src/commands/a.rs", "eprint!(\"{name}\")", 1),
            ("apps/cli/src/a.rs", "std::io::stderr().lock()", 2),
            ("apps/cli/src/a.rs", "use std::io::{self, stdout};\nstdout().flush()", 1),
            ("apps/cli/src/a.rs", "Style::of_stderr(); let stderr = 1; // println!", 0),
            ("apps/cli/src/show/out.rs", "io::stdout().lock()", 0),
            ("apps/cli/tests/a.rs", "println!(\"x\")", 0),
        ];
        for (path, text, expected) in cases {
            assert_eq!(lines(forbidden_words, path, text).len(), expected, "{path}: {text}");
        }
    }

    #[test]
    fn the_facade_may_re_export_and_nothing_else() {
        let path = "crates/linchpin/src/lib.rs";
        let good = "//! fn main() {}\npub use linchpin_server::*;\npub mod prelude { pub use a::b; }";
        assert!(lines(facade, path, good).is_empty());
        assert_eq!(lines(facade, path, "pub fn serve() {}").len(), 1);
        assert!(lines(facade, "crates/server/src/lib.rs", "pub fn serve() {}").is_empty());
    }
}
