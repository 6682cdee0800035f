//! The published server and ours side by side: the same calls in the same order on two equal folders, then the same
//! texts, the same structured content and the same files. What differs on purpose is in the tables with its reason.
//!
//! `BASE/ws` is the allowed directory, `BASE/ws-evil` its forbidden neighbour.
#![cfg(unix)]

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use linchpin::client::{Client, Connection};
use linchpin::transport::Child;
use linchpin::transport::in_process;
use linchpin::{Server, types::version::Revision};
use linchpin_filesystem::{Config, Filesystem};
use serde_json::{Value, json};

/// How an answer of ours stands to the published one.
#[derive(Clone, Copy, Debug)]
enum Kind {
    /// The same text, structured content and files; an error has the same first lines, ours then a hint.
    Same,
    /// Not the same, on purpose: the published text and ours (a beginning), and why. `--compat` makes it the same.
    Compat(&'static str, &'static str, &'static str),
    /// Not the same, on purpose, with nothing that restores the old form.
    Ours(&'static str, &'static str, &'static str),
}
use Kind::{Compat, Ours, Same};

/// Tool, arguments, verdict.
type Case = (&'static str, &'static str, Kind);

const READING: &[Case] = &[
    ("read_text_file", r#"{"path":"BASE/ws/n.txt"}"#, Same),
    ("read_file", r#"{"path":"BASE/ws/n.txt","head":3}"#, Same),
    ("read_text_file", r#"{"path":"n.txt"}"#, Same),
    ("read_text_file", r#"{"path":"d/e/deep.rs"}"#, Same),
    ("read_text_file", r#"{"path":"./d/../n.txt"}"#, Same),
    (
        "read_text_file",
        r#"{"path":" \"BASE/ws/n.txt\" "}"#,
        Ours("!ENOENT: no such file", "1\n2\n", "blanks and quotes around a path are a slip"),
    ),
    ("read_text_file", r#"{"path":"BASE/ws/n.txt","tail":2}"#, Same),
    ("read_text_file", r#"{"path":"BASE/ws/nonl.txt","tail":2}"#, Same),
    ("read_text_file", r#"{"path":"BASE/ws/nl.txt","tail":3}"#, Same),
    ("read_text_file", r#"{"path":"BASE/ws/n.txt","tail":99}"#, Same),
    ("read_text_file", r#"{"path":"BASE/ws/n.txt","tail":0}"#, Same),
    ("read_text_file", r#"{"path":"BASE/ws/n.txt","head":2}"#, Same),
    ("read_text_file", r#"{"path":"BASE/ws/n.txt","head":0}"#, Same),
    ("read_text_file", r#"{"path":"BASE/ws/n.txt","head":99}"#, Same),
    ("read_text_file", r#"{"path":"BASE/ws/nl.txt","head":2}"#, Same),
    ("read_text_file", r#"{"path":"BASE/ws/empty.txt"}"#, Same),
    ("read_text_file", r#"{"path":"BASE/ws/empty.txt","head":2}"#, Same),
    ("read_text_file", r#"{"path":"BASE/ws/empty.txt","tail":2}"#, Same),
    ("read_text_file", r#"{"path":"BASE/ws/n.txt","head":1,"tail":1}"#, Same),
    ("read_text_file", r#"{"path":"BASE/ws/crlf.txt"}"#, Same),
    ("read_text_file", r#"{"path":"BASE/ws/crlf.txt","head":2}"#, Same),
    (
        "read_text_file",
        r#"{"path":"BASE/ws/crlf.txt","tail":2}"#,
        Compat("c\n", "c\r\n", "a read never changes line endings"),
    ),
    (
        "read_text_file",
        r#"{"path":"BASE/ws/latin.txt"}"#,
        Compat("caf\u{fffd}\n", "café\n", "the encoding is recognised and named"),
    ),
    (
        "read_text_file",
        r#"{"path":"BASE/ws/n.txt","head":-1}"#,
        Ours("", "!", "a number of lines is a whole number, 0 or more"),
    ),
    (
        "read_text_file",
        r#"{"path":"BASE/ws/n.txt","head":1.5}"#,
        Ours("1\n2", "!", "a number of lines is a whole number, 0 or more"),
    ),
    ("read_text_file", r#"{"path":"BASE/ws/utf8.txt"}"#, Same),
    ("read_text_file", r#"{"path":"BASE/ws"}"#, Same),
    ("read_text_file", r#"{"path":"BASE/ws-evil/s.txt"}"#, Same),
    ("read_text_file", r#"{"path":"BASE/ws/../ws-evil/s.txt"}"#, Same),
    ("read_text_file", r#"{"path":"/etc/hostname"}"#, Same),
    ("read_text_file", r#"{"path":"BASE/ws/lnk"}"#, Same),
    ("read_text_file", r#"{"path":"BASE/ws/inlnk"}"#, Same),
    ("read_text_file", r#"{"path":"BASE/ws/d/loop/n.txt"}"#, Same),
    ("read_text_file", r#"{"path":"BASE/ws/nope/none.txt"}"#, Same),
    ("read_text_file", r#"{"path":"BASE/ws/none.txt"}"#, Same),
    (
        "read_text_file",
        r#"{"path":"BASE/ws/dangling"}"#,
        Ours("!Parent directory does not exist: BASE/ws", "!symlink target missing: BASE/ws/dangling", "it does exist"),
    ),
    (
        "read_text_file",
        "{}",
        Ours("!MCP error -32602: Input validation error", "!", "no name of a library in what a model reads"),
    ),
    ("read_media_file", r#"{"path":"BASE/ws/x.png"}"#, Same),
    ("read_media_file", r#"{"path":"BASE/ws/s.MP3"}"#, Same),
    ("read_media_file", r#"{"path":"BASE/ws/x.bin"}"#, Same),
    ("read_media_file", r#"{"path":"BASE/ws/none.png"}"#, Same),
    ("read_media_file", r#"{"path":"BASE/ws-evil/s.txt"}"#, Same),
    ("read_multiple_files", r#"{"paths":["BASE/ws/n.txt","BASE/ws/nonl.txt"]}"#, Same),
    ("read_multiple_files", r#"{"paths":["BASE/ws/n.txt","BASE/ws/nope"]}"#, Same),
    ("read_multiple_files", r#"{"paths":["BASE/ws-evil/s.txt","n.txt"]}"#, Same),
    (
        "read_multiple_files",
        r#"{"paths":[]}"#,
        Ours("!MCP error -32602: Input validation error", "!", "no name of a library in what a model reads"),
    ),
    ("list_allowed_directories", "{}", Same),
];

const LISTING: &[Case] = &[
    ("list_directory", r#"{"path":"BASE/ws"}"#, Same),
    ("list_directory", r#"{"path":"BASE/ws/d"}"#, Same),
    ("list_directory", r#"{"path":"BASE/ws/d/none"}"#, Same),
    ("list_directory", r#"{"path":"BASE/ws/n.txt"}"#, Same),
    ("list_directory", r#"{"path":"BASE"}"#, Same),
    ("list_directory_with_sizes", r#"{"path":"BASE/ws/sizes"}"#, Same),
    ("list_directory_with_sizes", r#"{"path":"BASE/ws/sizes","sortBy":"size"}"#, Same),
    ("list_directory_with_sizes", r#"{"path":"BASE/ws/sizes","sortBy":"name"}"#, Same),
    ("directory_tree", r#"{"path":"BASE/ws"}"#, Same),
    ("directory_tree", r#"{"path":"BASE/ws/d"}"#, Same),
    ("directory_tree", r#"{"path":"BASE/ws","excludePatterns":["d"]}"#, Same),
    ("directory_tree", r#"{"path":"BASE/ws","excludePatterns":["deep.rs"]}"#, Same),
    ("directory_tree", r#"{"path":"BASE/ws","excludePatterns":["*"]}"#, Same),
    ("search_files", r#"{"path":"BASE/ws","pattern":"**/*.rs"}"#, Same),
    ("search_files", r#"{"path":"BASE/ws","pattern":"*.rs"}"#, Same),
    ("search_files", r#"{"path":"BASE/ws","pattern":"*.txt","excludePatterns":["n*"]}"#, Same),
    ("search_files", r#"{"path":"BASE/ws","pattern":"**/*.rs","excludePatterns":["d"]}"#, Same),
    ("search_files", r#"{"path":"BASE/ws","pattern":"deep"}"#, Same),
    ("search_files", r#"{"path":"BASE/ws","pattern":".h*"}"#, Same),
    ("search_files", r#"{"path":"BASE/ws","pattern":"{code,none}.rs"}"#, Same),
    ("search_files", r#"{"path":"BASE/ws","pattern":"d/**"}"#, Same),
    (
        "search_files",
        r#"{"path":"BASE/ws","pattern":"!(code).rs"}"#,
        Ours("BASE/ws/.hid\n", "!Pattern groups", "groups are refused with what to use instead"),
    ),
    ("get_file_info", r#"{"path":"BASE/ws/none"}"#, Same),
    (
        "nosuch",
        "{}",
        Ours("!MCP error -32602: Tool nosuch not found", "!-32602", "an unknown tool is an error of the protocol"),
    ),
];

const WRITING: &[Case] = &[
    ("write_file", r#"{"path":"BASE/ws/new","content":"x"}"#, Same),
    ("write_file", r#"{"path":"BASE/ws/new","content":"y\n"}"#, Same),
    ("write_file", r#"{"path":"code.rs","content":"fn f() {}\n"}"#, Same),
    ("write_file", r#"{"path":"BASE/ws/inlnk","content":"1\n2\n"}"#, Same),
    ("write_file", r#"{"path":"BASE/ws/lnk","content":"x"}"#, Same),
    ("write_file", r#"{"path":"BASE/ws-evil/new","content":"x"}"#, Same),
    ("write_file", r#"{"path":"BASE/ws/none/deep/f.txt","content":"x"}"#, Same),
    (
        "write_file",
        r#"{"path":"BASE/ws/d","content":"x"}"#,
        Ours(
            "!EISDIR: illegal operation on a directory, rename 'BASE/ws/d.",
            "!EISDIR: illegal operation on a directory, open 'BASE/ws/d'",
            "the name of a temporary file says nothing to a model",
        ),
    ),
    (
        "write_file",
        r#"{"path":"BASE/ws/dangling","content":"x"}"#,
        Ours("!Parent directory does not exist: BASE/ws", "!symlink target missing: BASE/ws/dangling", "it does exist"),
    ),
    ("create_directory", r#"{"path":"BASE/ws/a/b/c"}"#, Same),
    ("create_directory", r#"{"path":"BASE/ws/a/b"}"#, Same),
    ("create_directory", r#"{"path":"BASE/ws/nonl.txt"}"#, Same),
    ("create_directory", r#"{"path":"BASE/made"}"#, Same),
    ("move_file", r#"{"source":"BASE/ws/nonl.txt","destination":"BASE/ws/moved.txt"}"#, Same),
    ("move_file", r#"{"source":"BASE/ws/moved.txt","destination":"BASE/ws/n.txt"}"#, Same),
    ("move_file", r#"{"source":"BASE/ws/none","destination":"BASE/ws/n2"}"#, Same),
    ("move_file", r#"{"source":"BASE/ws/a","destination":"BASE/ws/a2"}"#, Same),
    ("move_file", r#"{"source":"BASE/ws/n.txt","destination":"BASE/out.txt"}"#, Same),
];

const EDITING: &[Case] = &[
    ("edit_file", r#"{"path":"BASE/ws/n.txt","edits":[{"oldText":"3","newText":"three"}],"dryRun":true}"#, Same),
    ("edit_file", r#"{"path":"BASE/ws/n.txt","edits":[],"dryRun":true}"#, Same),
    ("edit_file", r#"{"path":"BASE/ws/n.txt","edits":[{"oldText":"3","newText":"```"}],"dryRun":true}"#, Same),
    ("edit_file", r#"{"path":"BASE/ws/n.txt","edits":[{"oldText":"1","newText":"$& $1"}]}"#, Same),
    (
        "edit_file",
        r#"{"path":"BASE/ws/n.txt","edits":[{"oldText":"2\n3","newText":"2.5"},{"oldText":"4","newText":""}]}"#,
        Same,
    ),
    ("edit_file", r#"{"path":"BASE/ws/inlnk","edits":[{"oldText":"5","newText":"five"}]}"#, Same),
    ("edit_file", r#"{"path":"BASE/ws/n.txt","edits":[{"oldText":"zz","newText":"B"}]}"#, Same),
    (
        "edit_file",
        r#"{"path":"BASE/ws/n.txt","edits":[{"oldText":"five","newText":"5"},{"oldText":"zz","newText":"B"}]}"#,
        Same,
    ),
    ("edit_file", r#"{"path":"BASE/ws/nonl.txt","edits":[{"oldText":"3","newText":"4"}]}"#, Same),
    (
        "edit_file",
        r#"{"path":"BASE/ws/code.rs","edits":[{"oldText":"  if x {\n  foo();","newText":"    if y {\n        bar();\n            baz();"}]}"#,
        Same,
    ),
    (
        "edit_file",
        r#"{"path":"BASE/ws/code.rs","edits":[{"oldText":"let x = 1;\n","newText":"let x = 2;\nlet z = 3;\n"}]}"#,
        Same,
    ),
    ("edit_file", r#"{"path":"BASE/ws/none","edits":[{"oldText":"a","newText":"b"}]}"#, Same),
    ("edit_file", r#"{"path":"BASE/ws-evil/s.txt","edits":[{"oldText":"S","newText":"b"}]}"#, Same),
    ("edit_file", r#"{"path":"BASE/ws/crlf.txt","edits":[{"oldText":"b","newText":"B"}],"dryRun":true}"#, Same),
    ("edit_file", r#"{"path":"BASE/ws/crlf.txt","edits":[{"oldText":"b\nc","newText":"X\n  y"}],"dryRun":true}"#, Same),
    (
        "edit_file",
        r#"{"path":"BASE/ws/n.txt","edits":[{"oldText":"","newText":"TOP"}],"dryRun":true}"#,
        Compat("```diff\n", "!oldText of edit 0 is empty", "where the text would land is chance"),
    ),
];

/// Two equal folders with a server over each.
struct Pair {
    theirs: Side,
    ours: Side,
}

struct Side {
    base: tempfile::TempDir,
    server: Connection,
}

impl Side {
    /// A call's outcome with the base written as `BASE`: the result, or `-32602 …` for an error of the protocol.
    async fn call(&self, tool: &str, arguments: &str) -> Result<Value, String> {
        let base = self.base.path().to_str().expect("a path in UTF-8");
        let arguments: Value = serde_json::from_str(&arguments.replace("BASE", base)).expect("JSON");
        match self.server.call(tool, &arguments).await {
            Ok(result) => Ok(serde_json::from_str(&result.as_json().replace(base, "BASE")).expect("JSON")),
            Err(error) => match error.rpc() {
                Some(rpc) => Err(format!("{} {}", rpc.code, rpc.message)),
                None => panic!("{tool} {arguments}: {error}"),
            },
        }
    }

    /// Every file below the base: name, kind and mode, content.
    fn files(&self) -> Vec<String> {
        let mut found = Vec::new();
        let mut open = vec![self.base.path().to_path_buf()];
        while let Some(folder) = open.pop() {
            for entry in std::fs::read_dir(&folder).expect("a folder") {
                let path = entry.expect("an entry").path();
                let meta = std::fs::symlink_metadata(&path).expect("metadata");
                let content = match meta.file_type() {
                    kind if kind.is_symlink() => format!("-> {:?}", std::fs::read_link(&path).expect("a link")),
                    kind if kind.is_dir() => String::new(),
                    _ => format!("{:?}", String::from_utf8_lossy(&std::fs::read(&path).expect("a file"))),
                };
                let name = path.strip_prefix(self.base.path()).expect("below the base").display().to_string();
                found.push(format!("{name} {:o} {content}", meta.permissions().mode()));
                if meta.is_dir() {
                    open.push(path);
                }
            }
        }
        found.sort_unstable();
        found
    }
}

fn fixture() -> tempfile::TempDir {
    let base = tempfile::tempdir().expect("a temporary directory");
    let put = |name: &str, content: &[u8]| {
        let path = base.path().join(name);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("folders");
        std::fs::write(path, content).expect("a file");
    };
    put("ws-evil/s.txt", b"SECRET");
    put("ws/n.txt", b"1\n2\n3\n4\n5\n");
    put("ws/nonl.txt", b"1\n2\n3");
    put("ws/crlf.txt", b"a\r\n  b\r\nc\r\n");
    put("ws/latin.txt", b"caf\xe9\n");
    put("ws/utf8.txt", "zażółć 🦀\n".as_bytes());
    put("ws/empty.txt", b"");
    put("ws/nl.txt", b"\n\n\n");
    put("ws/x.png", b"\x89PNG");
    put("ws/s.MP3", b"m");
    put("ws/x.bin", b"\0\x01");
    put("ws/code.rs", b"fn main() {\n    let x = 1;\n    if x {\n        foo();\n    }\n}\n");
    put("ws/d/e/deep.rs", b"fn\n");
    put("ws/.hid", b"h");
    put("ws/sizes/a", &[b'x'; 1219]);
    put("ws/sizes/B", b"y");
    put("ws/sizes/c", b"zz");
    put("ws/sizes/million", &vec![b'z'; 1_500_000]);
    std::fs::create_dir(base.path().join("ws/sizes/folder")).expect("a folder");
    for (name, target) in [("lnk", "/etc/passwd"), ("inlnk", "n.txt"), ("dangling", "nowhere"), ("d/loop", "..")] {
        std::os::unix::fs::symlink(target, base.path().join("ws").join(name)).expect("a link");
    }
    std::fs::set_permissions(base.path().join("ws/n.txt"), std::fs::Permissions::from_mode(0o750)).expect("a mode");
    base
}

fn published(program: &str) -> PathBuf {
    let home = std::env::var_os("LINCHPIN_PUBLISHED").expect("LINCHPIN_PUBLISHED names where the packages are");
    Path::new(&home).join(program)
}

impl Pair {
    async fn start(compat: bool) -> Self {
        let client = Client::new("beside-the-published", "1").revisions(&[Revision::V2025_11_25]);
        let (theirs, ours) = (fixture(), fixture());
        let program = published("node_modules/.bin/mcp-server-filesystem");
        let child = Child::new(program).arg(theirs.path().join("ws"));
        let directories = vec![ours.path().join("ws").display().to_string()];
        let (fs, _) = Filesystem::open(Config::default().with(|config| {
            config.directories = directories;
            config.compat = compat;
        }))
        .expect("a directory");
        let server = fs.add_to(Server::new("ours", "1")).expect("a server");
        Self {
            theirs: Side { base: theirs, server: client.connect(child).await.expect("the published server starts") },
            ours: Side { base: ours, server: client.connect(in_process(server)).await.expect("ours starts") },
        }
    }

    /// Makes the same call on both sides; says what in the answers and the files is not as the verdict says.
    async fn differences(&self, (tool, arguments, kind): Case, compat: bool) -> Vec<String> {
        let theirs = self.theirs.call(tool, arguments).await;
        let ours = self.ours.call(tool, arguments).await;
        let mut found = Vec::new();
        match (kind, &theirs, &ours) {
            (Ours(published, here, why) | Compat(published, here, why), _, _)
                if !(compat && matches!(kind, Compat(..))) =>
            {
                if !begins(&theirs, published) {
                    found.push(format!("the published server changed: {theirs:?}"));
                }
                if !begins(&ours, here) {
                    found.push(format!("({why}) ours: {ours:?}"));
                }
            }
            (_, Ok(theirs), Ok(ours)) if first_lines(ours, theirs) == *theirs => {}
            _ => found.push(format!("\n  theirs {theirs:?}\n  ours   {ours:?}")),
        }
        let (here, there) = (self.ours.files(), self.theirs.files());
        found.extend(here.iter().filter(|file| !there.contains(file)).map(|file| format!("only ours left {file}")));
        found.extend(there.iter().filter(|file| !here.contains(file)).map(|file| format!("only theirs left {file}")));
        found.into_iter().map(|what| format!("{tool} {arguments} compat={compat}: {what}")).collect()
    }
}

/// Whether the outcome's text begins so; `!` in front is for errors.
fn begins(outcome: &Result<Value, String>, words: &str) -> bool {
    match (outcome, words.strip_prefix('!')) {
        (Err(error), Some(words)) => error.starts_with(words),
        (Ok(result), Some(words)) => result["isError"] == true && text(result).starts_with(words),
        (Ok(result), None) => result["isError"] != true && text(result).starts_with(words),
        (Err(_), None) => false,
    }
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_default()
}

/// Our result without what is ours alone: hints, annotations of blocks, fields of the structured content beyond theirs.
fn first_lines(ours: &Value, theirs: &Value) -> Value {
    let mut ours = ours.clone();
    if ours["isError"] == false {
        ours.as_object_mut().expect("an object").remove("isError");
    }
    if theirs["isError"] == true {
        // The kind of the error, for programs.
        ours.as_object_mut().expect("an object").remove("_meta");
    }
    for block in ours["content"].as_array_mut().expect("content") {
        block.as_object_mut().expect("a block").remove("annotations");
        if theirs["isError"] == true
            && let Some((first, _hint)) = block["text"].as_str().and_then(|text| text.split_once("\nHint: "))
        {
            block["text"] = json!(first);
        }
    }
    if let Some(fields) = ours.get_mut("structuredContent").and_then(Value::as_object_mut) {
        fields.retain(|name, _| theirs["structuredContent"].get(name).is_some());
    }
    ours
}

async fn run(cases: &[Case]) {
    for compat in [false, true] {
        let pair = Pair::start(compat).await;
        for case in cases {
            let found = pair.differences(*case, compat).await;
            assert!(found.is_empty(), "{}", found.join("\n"));
        }
    }
}

#[tokio::test]
#[ignore = "needs the published packages: cargo xtask test --only published"]
async fn reading_answers_what_the_published_server_answers() {
    run(READING).await;
}

#[tokio::test]
#[ignore = "needs the published packages: cargo xtask test --only published"]
async fn listing_answers_what_the_published_server_answers() {
    run(LISTING).await;
}

#[tokio::test]
#[ignore = "needs the published packages: cargo xtask test --only published"]
async fn writing_answers_and_leaves_what_the_published_server_does() {
    run(WRITING).await;
}

#[tokio::test]
#[ignore = "needs the published packages: cargo xtask test --only published"]
async fn editing_answers_and_leaves_what_the_published_server_does() {
    run(EDITING).await;
}

/// Edits of CRLF files: the published server turns every line ending into LF; ours keeps them unless `--compat` is given.
#[tokio::test]
#[ignore = "needs the published packages: cargo xtask test --only published"]
async fn line_endings_after_an_edit_differ_on_purpose_and_compat_restores_them() {
    let edit = r#"{"path":"BASE/ws/crlf.txt","edits":[{"oldText":"b\nc","newText":"X\n  y"}]}"#;
    for (compat, left) in [(false, "a\r\n  X\r\n  y\r\n"), (true, "a\n  X\n  y\n")] {
        let pair = Pair::start(compat).await;
        let theirs = pair.theirs.call("edit_file", edit).await.expect("a result");
        let ours = pair.ours.call("edit_file", edit).await.expect("a result");
        assert_eq!(first_lines(&ours, &theirs), theirs);
        let read = |side: &Side| std::fs::read_to_string(side.base.path().join("ws/crlf.txt")).expect("a file");
        assert_eq!((read(&pair.theirs).as_str(), read(&pair.ours).as_str()), ("a\n  X\n  y\n", left), "{compat}");
    }
}

/// The lines of `get_file_info` but for the times, which are each file's own.
#[tokio::test]
#[ignore = "needs the published packages: cargo xtask test --only published"]
async fn file_information_has_the_published_lines() {
    let pair = Pair::start(false).await;
    for name in ["n.txt", "inlnk", "d", "x.bin"] {
        let arguments = format!(r#"{{"path":"BASE/ws/{name}"}}"#);
        let shape = |result: Value| -> Vec<String> {
            let is_time = |name: &str| ["created", "modified", "accessed"].contains(&name);
            let lines = text(&result).lines().filter_map(|line| line.split_once(": "));
            lines.map(|(name, value)| format!("{name}: {}", if is_time(name) { "…" } else { value })).collect()
        };
        let theirs = shape(pair.theirs.call("get_file_info", &arguments).await.expect("a result"));
        let ours = shape(pair.ours.call("get_file_info", &arguments).await.expect("a result"));
        assert!(ours.len() == 7, "{ours:?}");
        // A folder's size is the file system's business and may differ between two of them.
        let from = usize::from(name == "d");
        assert_eq!(ours[from..], theirs[from..], "{name}");
    }
}

#[tokio::test]
#[ignore = "needs the published packages: cargo xtask test --only published"]
async fn the_published_tools_come_first_with_their_titles_and_arguments() {
    let pair = Pair::start(false).await;
    let listed = async |side: &Side| -> Vec<Value> {
        let all = side.server.request("tools/list", json!({})).await.expect("a list");
        let all: Value = serde_json::from_str(all.as_json()).expect("JSON");
        all["tools"].as_array().expect("tools").clone()
    };
    let (theirs, ours) = (listed(&pair.theirs).await, listed(&pair.ours).await);
    assert!(theirs.len() == 14 && ours.len() > theirs.len());
    for (theirs, ours) in theirs.iter().zip(&ours) {
        let name = &theirs["name"];
        assert_eq!(&ours["name"], name);
        assert_eq!(ours["title"], theirs["title"], "{name}");
        assert_eq!(ours["inputSchema"]["required"], theirs["inputSchema"]["required"], "{name}");
        let arguments = theirs["inputSchema"]["properties"].as_object().into_iter().flatten();
        for (argument, schema) in arguments {
            let here = &ours["inputSchema"]["properties"][argument];
            assert!(here.is_object(), "{name} has {argument}");
            // `number` became `integer` where only whole numbers mean anything.
            if schema["type"] != "number" && here["type"].is_string() {
                assert_eq!(here["type"], schema["type"], "{name} {argument}");
            }
        }
        for (hint, value) in theirs["annotations"].as_object().into_iter().flatten() {
            assert_eq!(&ours["annotations"][hint], value, "{name} {hint}");
        }
    }
}
