//! The fourteen published tools answer the published texts: measured once, written as tables; `published.rs` asks again.
//! `BASE/ws` is the allowed directory, `BASE/ws-evil` its forbidden neighbour.
#![cfg(unix)]

use crate::common;

use common::World;
use serde_json::{Value, json};

fn world() -> World {
    let w = World::new();
    w.put("n.txt", "1\n2\n3\n4\n5\n");
    w.put("nonl.txt", "1\n2\n3");
    w.put("crlf.txt", "a\r\n  b\r\nc\r\n");
    w.put("empty.txt", "");
    w.put("nl.txt", "\n\n\n");
    w.put("x.png", b"\x89PNG");
    w.put("x.bin", b"\0\x01");
    w.put("code.rs", "fn main() {\n    let x = 1;\n    if x {\n        foo();\n    }\n}\n");
    w.put("d/e/deep.rs", "fn\n");
    w.put(".hid", "h");
    w.link("lnk", "/etc/passwd");
    w.link("inlnk", "n.txt");
    w.link("dangling", "nowhere");
    w.link("d/loop", "..");
    w
}

const DIFF: &str = "===================================================================";

fn diff(path: &str, hunks: &str) -> String {
    format!("```diff\nIndex: {path}\n{DIFF}\n--- {path}\toriginal\n+++ {path}\tmodified\n{hunks}```\n\n")
}

/// Tool, arguments, text. A text that begins with `!` is an error's first lines.
async fn check(cases: &[(&str, &str, &str)]) {
    for (tool, args, expected) in cases {
        let w = world();
        let answer = w.call(tool, w.real(args)).await;
        let context = format!("{tool} {args}");
        match (answer, expected.strip_prefix('!')) {
            (Ok(answer), None) => {
                assert_eq!(w.shown(answer["content"].as_str().expect("text")), *expected, "{context}");
                let fields: Vec<&String> = answer.as_object().expect("an object").keys().collect();
                assert_eq!(fields, ["content"], "nothing but the published field: {context}");
            }
            (Err(error), Some(expected)) => {
                let error = w.shown(&error);
                assert!(error == *expected || error.starts_with(&format!("{expected}\nHint: ")), "{context}: {error}");
            }
            (answer, _) => panic!("{context}: {answer:?} instead of {expected:?}"),
        }
    }
}

#[tokio::test]
async fn reading_answers_the_published_texts() {
    check(&[
        ("read_text_file", r#"{"path":"BASE/ws/n.txt"}"#, "1\n2\n3\n4\n5\n"),
        ("read_file", r#"{"path":"BASE/ws/n.txt"}"#, "1\n2\n3\n4\n5\n"),
        ("read_text_file", r#"{"path":"n.txt"}"#, "1\n2\n3\n4\n5\n"),
        ("read_text_file", r#"{"path":"./d/../n.txt"}"#, "1\n2\n3\n4\n5\n"),
        ("read_text_file", r#"{"path":" \"BASE/ws/n.txt\" "}"#, "1\n2\n3\n4\n5\n"),
        ("read_text_file", r#"{"path":"BASE/ws/n.txt","tail":2}"#, "5\n"),
        ("read_text_file", r#"{"path":"BASE/ws/nonl.txt","tail":2}"#, "2\n3"),
        ("read_text_file", r#"{"path":"BASE/ws/nl.txt","tail":1}"#, ""),
        ("read_text_file", r#"{"path":"BASE/ws/nl.txt","tail":3}"#, "\n\n"),
        ("read_text_file", r#"{"path":"BASE/ws/n.txt","tail":99}"#, "1\n2\n3\n4\n5\n"),
        ("read_text_file", r#"{"path":"BASE/ws/n.txt","tail":0}"#, "1\n2\n3\n4\n5\n"),
        ("read_text_file", r#"{"path":"BASE/ws/n.txt","head":2}"#, "1\n2"),
        ("read_text_file", r#"{"path":"BASE/ws/n.txt","head":0}"#, "1\n2\n3\n4\n5\n"),
        ("read_text_file", r#"{"path":"BASE/ws/n.txt","head":0,"tail":1}"#, ""),
        ("read_text_file", r#"{"path":"BASE/ws/n.txt","head":99}"#, "1\n2\n3\n4\n5"),
        ("read_text_file", r#"{"path":"BASE/ws/n.txt","head":null}"#, "1\n2\n3\n4\n5\n"),
        ("read_text_file", r#"{"path":"BASE/ws/nl.txt","head":2}"#, "\n"),
        ("read_text_file", r#"{"path":"BASE/ws/empty.txt","head":2}"#, ""),
        ("read_text_file", r#"{"path":"BASE/ws/empty.txt","tail":2}"#, ""),
        ("read_text_file", r#"{"path":"BASE/ws/crlf.txt"}"#, "a\r\n  b\r\nc\r\n"),
        ("read_text_file", r#"{"path":"BASE/ws/crlf.txt","head":2}"#, "a\r\n  b\r"),
        // Ours: a read never changes line endings; published `tail` answered "c\n".
        ("read_text_file", r#"{"path":"BASE/ws/crlf.txt","tail":2}"#, "c\r\n"),
        ("read_text_file", r#"{"path":"BASE/ws/inlnk"}"#, "1\n2\n3\n4\n5\n"),
        ("read_text_file", r#"{"path":"BASE/ws/d/loop/n.txt"}"#, "1\n2\n3\n4\n5\n"),
        (
            "read_text_file",
            r#"{"path":"BASE/ws/n.txt","head":1,"tail":1}"#,
            "!Cannot specify both head and tail parameters simultaneously",
        ),
        ("read_text_file", r#"{"path":"BASE/ws"}"#, "!EISDIR: illegal operation on a directory, read"),
        (
            "read_text_file",
            r#"{"path":"BASE/ws/nope/none.txt"}"#,
            "!ENOENT: no such file or directory, open 'BASE/ws/nope/none.txt'",
        ),
        ("read_text_file", r#"{"path":"BASE/ws/dangling"}"#, "!symlink target missing: BASE/ws/dangling"),
        (
            "read_multiple_files",
            r#"{"paths":["BASE/ws/n.txt","BASE/ws/nope"]}"#,
            "BASE/ws/n.txt:\n1\n2\n3\n4\n5\n\n\n---\nBASE/ws/nope: Error - ENOENT: no such file or directory, open 'BASE/ws/nope'",
        ),
        ("read_multiple_files", r#"{"paths":[]}"#, "!paths is empty"),
        ("list_allowed_directories", "{}", "Allowed directories:\nBASE/ws"),
    ])
    .await;
}

#[tokio::test]
async fn media_is_one_block_by_extension() {
    let w = world();
    w.put("s.MP3", "m");
    w.put("a b#.bin", "z");
    for (name, expected) in [
        ("x.png", json!({"type": "image", "data": "iVBORw==", "mimeType": "image/png"})),
        ("s.MP3", json!({"type": "audio", "data": "bQ==", "mimeType": "audio/mpeg"})),
        (
            "a b#.bin",
            json!({"type": "resource", "resource": {
                "uri": format!("file://{}/a%20b%23.bin", w.at("")), "mimeType": "application/octet-stream", "blob": "eg=="
            }}),
        ),
    ] {
        let answer = w.call("read_media_file", common::at(w.path(name))).await;
        assert_eq!(answer, Ok(json!({ "content": [expected] })), "{name}");
    }
}

#[tokio::test]
async fn listings_answer_the_published_texts() {
    check(&[
        (
            "list_directory",
            r#"{"path":"BASE/ws"}"#,
            "[FILE] .hid\n[FILE] code.rs\n[FILE] crlf.txt\n[DIR] d\n[FILE] dangling\n[FILE] empty.txt\n[FILE] inlnk\n\
             [FILE] lnk\n[FILE] n.txt\n[FILE] nl.txt\n[FILE] nonl.txt\n[FILE] x.bin\n[FILE] x.png",
        ),
        (
            "list_directory",
            r#"{"path":"BASE/ws/n.txt"}"#,
            "!ENOTDIR: not a directory, scandir 'BASE/ws/n.txt'",
        ),
        (
            "list_directory_with_sizes",
            r#"{"path":"BASE/ws/d/e"}"#,
            "[FILE] deep.rs                               3 B\n\nTotal: 1 files, 0 directories\nCombined size: 3 B",
        ),
        (
            "directory_tree",
            r#"{"path":"BASE/ws/d"}"#,
            "[\n  {\n    \"name\": \"e\",\n    \"type\": \"directory\",\n    \"children\": [\n      {\n        \"name\": \"deep.rs\",\n        \"type\": \"file\"\n      }\n    ]\n  },\n  {\n    \"name\": \"loop\",\n    \"type\": \"file\"\n  }\n]",
        ),
        // Without `*` an exclusion holds at any depth, with one only where it says.
        (
            "directory_tree",
            r#"{"path":"BASE/ws/d","excludePatterns":["deep.rs"]}"#,
            "[\n  {\n    \"name\": \"e\",\n    \"type\": \"directory\",\n    \"children\": []\n  },\n  {\n    \"name\": \"loop\",\n    \"type\": \"file\"\n  }\n]",
        ),
        ("directory_tree", r#"{"path":"BASE/ws/d","excludePatterns":["*"]}"#, "[]"),
        ("search_files", r#"{"path":"BASE/ws","pattern":"**/*.rs"}"#, "BASE/ws/code.rs\nBASE/ws/d/e/deep.rs"),
        ("search_files", r#"{"path":"BASE/ws","pattern":"*.rs"}"#, "BASE/ws/code.rs"),
        (
            "search_files",
            r#"{"path":"BASE/ws","pattern":"*.txt","excludePatterns":["n*"]}"#,
            "BASE/ws/crlf.txt\nBASE/ws/empty.txt",
        ),
        ("search_files", r#"{"path":"BASE/ws","pattern":"**/*.rs","excludePatterns":["d"]}"#, "BASE/ws/code.rs"),
        ("search_files", r#"{"path":"BASE/ws","pattern":"deep"}"#, "No matches found"),
        ("search_files", r#"{"path":"BASE/ws","pattern":".h*"}"#, "BASE/ws/.hid"),
        // Links inside are named, links that lead outside or nowhere are not.
        ("search_files", r#"{"path":"BASE/ws","pattern":"{*lnk,dangling}"}"#, "BASE/ws/inlnk"),
    ])
    .await;
}

#[tokio::test]
async fn sizes_are_sorted_and_summed_as_published() {
    let w = World::new();
    w.put("a", "x".repeat(1219));
    w.put("B", "y");
    w.put("c", "zz");
    let listed = w.text("list_directory_with_sizes", json!({"path": w.at(""), "sortBy": "size"})).await;
    let pad = |name: &str, size: &str| format!("[FILE] {name:<30} {size:>10}");
    let expected = [
        &pad("a", "1.19 KB"),
        &pad("c", "2 B"),
        &pad("B", "1 B"),
        "",
        "Total: 3 files, 0 directories",
        "Combined size: 1.19 KB",
    ];
    assert_eq!(listed, expected.join("\n"));
    let listed = w.text("list_directory_with_sizes", common::at(w.path(""))).await;
    let names: Vec<&str> = listed.lines().take(3).map(|line| &line[7..8]).collect();
    assert_eq!(names, ["a", "B", "c"]);
    std::fs::create_dir(w.path("d")).expect("a directory");
    let listed = w.text("list_directory_with_sizes", common::at(w.path(""))).await;
    assert!(listed.contains(&format!("[DIR] {:<30} \n", "d")), "{listed:?}");
}

#[tokio::test]
async fn info_lists_the_published_lines() {
    use std::os::unix::fs::PermissionsExt;
    let w = world();
    std::fs::set_permissions(w.path("n.txt"), std::fs::Permissions::from_mode(0o640)).expect("a mode");
    let when = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_795_219_855);
    let times = std::fs::FileTimes::new().set_modified(when).set_accessed(when);
    std::fs::File::options().write(true).open(w.path("n.txt")).expect("a file").set_times(times).expect("times");
    for name in ["n.txt", "inlnk"] {
        let info = w.text("get_file_info", common::at(w.path(name))).await;
        let lines: Vec<&str> = info.lines().collect();
        let date = "Sat Nov 21 2026 00:10:55 GMT+0000 (Coordinated Universal Time)";
        assert_eq!(lines[0], "size: 10");
        assert!(lines[1].starts_with("created: ") && lines[1].ends_with(" GMT+0000 (Coordinated Universal Time)"));
        assert_eq!(lines[2], format!("modified: {date}"));
        assert_eq!(lines[3], format!("accessed: {date}"));
        assert_eq!(lines[4..], ["isDirectory: false", "isFile: true", "permissions: 640"]);
    }
}

#[tokio::test]
async fn writing_answers_the_published_texts() {
    check(&[
        ("write_file", r#"{"path":"BASE/ws/new","content":"x"}"#, "Successfully wrote to BASE/ws/new"),
        ("write_file", r#"{"path":"n.txt","content":"x"}"#, "Successfully wrote to n.txt"),
        ("write_file", r#"{"path":"BASE/ws/inlnk","content":"x"}"#, "Successfully wrote to BASE/ws/inlnk"),
        (
            "write_file",
            r#"{"path":"BASE/ws/new/deep/f.txt","content":"x"}"#,
            "!ENOENT: no such file or directory, open 'BASE/ws/new/deep/f.txt'",
        ),
        (
            "write_file",
            r#"{"path":"BASE/ws/d","content":"x"}"#,
            "!EISDIR: illegal operation on a directory, open 'BASE/ws/d'",
        ),
        ("write_file", r#"{"path":"BASE/ws/dangling","content":"x"}"#, "!symlink target missing: BASE/ws/dangling"),
        ("create_directory", r#"{"path":"BASE/ws/a/b/c"}"#, "Successfully created directory BASE/ws/a/b/c"),
        ("create_directory", r#"{"path":"BASE/ws/d"}"#, "Successfully created directory BASE/ws/d"),
        ("create_directory", r#"{"path":"BASE/ws/n.txt"}"#, "!EEXIST: file already exists, mkdir 'BASE/ws/n.txt'"),
        (
            "move_file",
            r#"{"source":"BASE/ws/nonl.txt","destination":"BASE/ws/moved.txt"}"#,
            "Successfully moved BASE/ws/nonl.txt to BASE/ws/moved.txt",
        ),
        (
            "move_file",
            r#"{"source":"BASE/ws/d","destination":"BASE/ws/d2"}"#,
            "Successfully moved BASE/ws/d to BASE/ws/d2",
        ),
        (
            "move_file",
            r#"{"source":"BASE/ws/nonl.txt","destination":"BASE/ws/n.txt"}"#,
            "!Destination already exists: BASE/ws/n.txt",
        ),
        (
            "move_file",
            r#"{"source":"BASE/ws/nope","destination":"BASE/ws/n2"}"#,
            "!ENOENT: no such file or directory, rename 'BASE/ws/nope' -> 'BASE/ws/n2'",
        ),
    ])
    .await;
}

#[tokio::test]
async fn a_write_through_an_inner_link_changes_the_target_and_keeps_the_link() {
    let w = world();
    w.text("write_file", json!({"path": w.at("inlnk"), "content": "new"})).await;
    assert_eq!(w.get("n.txt"), "new");
    assert!(w.path("inlnk").is_symlink());
}

#[tokio::test]
async fn a_write_keeps_the_mode_and_leaves_no_temporary_file() {
    use std::os::unix::fs::PermissionsExt;
    for tool in ["write_file", "edit_file"] {
        let w = world();
        std::fs::set_permissions(w.path("n.txt"), std::fs::Permissions::from_mode(0o751)).expect("a mode");
        let before = std::fs::read_dir(w.path("")).expect("a directory").count();
        let edits = json!([{"oldText": "1", "newText": "one"}]);
        w.text(tool, json!({"path": w.at("n.txt"), "content": "x", "edits": edits})).await;
        let mode = std::fs::metadata(w.path("n.txt")).expect("metadata").permissions().mode();
        assert_eq!(mode & 0o7777, 0o751, "{tool}");
        assert_eq!(std::fs::read_dir(w.path("")).expect("a directory").count(), before, "{tool}");
    }
}

/// Whoever wrote the new content was not given the rights of the old.
#[tokio::test]
async fn a_write_clears_the_set_id_bits() {
    use std::os::unix::fs::PermissionsExt;
    for (before, after) in [
        (0o6755, 0o755),
        (0o4755, 0o755),
        (0o2755, 0o755),
        (0o4644, 0o644),
        (0o6711, 0o711),
        // Without execution for the group it stands for mandatory locking.
        (0o2644, 0o2644),
        (0o2745, 0o2745),
        (0o6705, 0o2705),
        // The sticky bit grants nothing.
        (0o1755, 0o1755),
        (0o7777, 0o1777),
    ] {
        for (tool, more) in [
            ("write_file", json!({"content": "x"})),
            ("edit_file", json!({"edits": [{"oldText": "1", "newText": "one"}]})),
            ("edit_file", json!({"edits": [{"oldText": "1", "newText": "one"}], "dryRun": true})),
            ("fs_copy", json!({"source": "crlf.txt", "destination": "n.txt", "overwrite": true})),
        ] {
            let w = world();
            w.put("crlf.txt", "a\r\n");
            std::fs::set_permissions(w.path("n.txt"), std::fs::Permissions::from_mode(before)).expect("a mode");
            let mut args = more.clone();
            args["path"] = "n.txt".into();
            w.text(tool, args).await;
            let mode = std::fs::metadata(w.path("n.txt")).expect("metadata").permissions().mode() & 0o7777;
            let expected = match tool {
                "fs_copy" => 0o644,
                _ if more["dryRun"] == true => before,
                _ => after,
            };
            assert_eq!(mode, expected, "{tool} {before:o} {more}");
        }
    }
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_write_takes_the_capabilities_of_a_program() {
    // Version 2 of the attribute: effective, with CAP_NET_RAW. Only root may set it.
    let raw = [1, 0, 0, 2, 0, 0x20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    for tool in ["write_file", "edit_file"] {
        let w = world();
        let path = w.path("n.txt");
        if rustix::fs::setxattr(&path, "security.capability", &raw, rustix::fs::XattrFlags::empty()).is_err() {
            return;
        }
        let edits = json!([{"oldText": "1", "newText": "one"}]);
        w.text(tool, json!({"path": "n.txt", "content": "x", "edits": edits})).await;
        let left = rustix::fs::getxattr(&path, "security.capability", &mut [0_u8; 64][..]);
        assert_eq!(left, Err(rustix::io::Errno::NODATA), "{tool}");
    }
}

#[cfg(any(target_os = "linux", target_vendor = "apple"))]
#[tokio::test]
async fn a_write_keeps_owner_and_extended_attributes() {
    use std::os::unix::fs::MetadataExt;
    for tool in ["write_file", "edit_file"] {
        let w = world();
        let path = w.path("n.txt");
        let marked = rustix::fs::setxattr(&path, "user.mark", b"kept", rustix::fs::XattrFlags::empty()).is_ok();
        let owned = rustix::process::geteuid().is_root() && std::os::unix::fs::chown(&path, Some(12), Some(34)).is_ok();
        let edits = json!([{"oldText": "1", "newText": "one"}]);
        w.text(tool, json!({"path": "n.txt", "content": "x", "edits": edits})).await;
        // Not every file system has attributes, and only root may give files away.
        if marked {
            let mut value = [0_u8; 16];
            let length = rustix::fs::getxattr(&path, "user.mark", &mut value[..]).expect("the attribute");
            assert_eq!(&value[..length], b"kept", "{tool}");
        }
        if owned {
            let meta = std::fs::metadata(&path).expect("metadata");
            assert_eq!((meta.uid(), meta.gid()), (12, 34), "{tool}");
        }
    }
}

/// A file, its content, pairs of old and new text, the hunks.
type EditCase<'a> = (&'a str, &'a str, &'a [(&'a str, &'a str)], &'a str);

fn edits(path: &str, pairs: &[(&str, &str)]) -> String {
    let edits: Vec<Value> = pairs.iter().map(|(old, new)| json!({"oldText": old, "newText": new})).collect();
    json!({"path": format!("BASE/ws/{path}"), "edits": edits, "dryRun": true}).to_string()
}

#[tokio::test]
async fn edits_answer_the_published_diffs() {
    let long: String = (0..60).map(|i| format!("line {i}\n")).collect();
    let cases: &[EditCase<'_>] = &[
        ("crlf.txt", "a\r\n  b\r\nc\r\n", &[("b", "B")], "@@ -1,3 +1,3 @@\n a\n-  b\n+  B\n c\n"),
        ("crlf.txt", "a\r\n  b\r\nc\r\n", &[("b\nc", "X\n  y")], "@@ -1,3 +1,3 @@\n a\n-  b\n-c\n+  X\n+  y\n"),
        ("n.txt", "1\n2\n3\n4\n5\n", &[("1", "one")], "@@ -1,5 +1,5 @@\n-1\n+one\n 2\n 3\n 4\n 5\n"),
        ("n.txt", "1\n2\n3\n4\n5\n", &[], ""),
        ("n.txt", "1\n1\n", &[("1", "$& $1")], "@@ -1,2 +1,2 @@\n+$& $1\n 1\n-1\n"),
        (
            "x",
            "1\n2\n3",
            &[("3", "4")],
            "@@ -1,3 +1,3 @@\n 1\n 2\n-3\n\\ No newline at end of file\n+4\n\\ No newline at end of file\n",
        ),
        ("x", "1\n2\n3", &[("3", "3\n")], "@@ -1,3 +1,3 @@\n 1\n 2\n-3\n\\ No newline at end of file\n+3\n"),
        ("x", "1\n2\n3\n", &[("1\n2\n3\n", "")], "@@ -1,3 +0,0 @@\n-1\n-2\n-3\n"),
        ("x", "1\n2\n", &[("1\n", "1\n"), ("2", "two"), ("two", "zwei")], "@@ -1,2 +1,2 @@\n 1\n-2\n+zwei\n"),
        (
            "x",
            &long,
            &[("line 5\n", "line five\n"), ("line 14\n", ""), ("line 40\n", "x\n")],
            "@@ -2,18 +2,17 @@\n line 1\n line 2\n line 3\n line 4\n-line 5\n+line five\n line 6\n line 7\n line 8\n line 9\n line 10\n line 11\n line 12\n line 13\n-line 14\n line 15\n line 16\n line 17\n line 18\n@@ -37,9 +36,9 @@\n line 36\n line 37\n line 38\n line 39\n-line 40\n+x\n line 41\n line 42\n line 43\n line 44\n",
        ),
    ];
    for (name, content, pairs, hunks) in cases {
        let w = World::new();
        w.put(name, content);
        let text = w.text("edit_file", w.real(&edits(name, pairs))).await;
        assert_eq!(w.shown(&text), diff(&format!("BASE/ws/{name}"), hunks), "{pairs:?}");
        assert_eq!(w.get(name), *content, "a dry run writes nothing");
    }
}

#[tokio::test]
async fn a_diff_with_backticks_gets_a_longer_fence() {
    let w = world();
    for (new, fence) in [("```", "````"), ("a````b", "`````"), ("``", "```")] {
        let text = w.text("edit_file", w.real(&edits("n.txt", &[("3", new)]))).await;
        assert!(text.starts_with(&format!("{fence}diff\n")) && text.ends_with(&format!("\n{fence}\n\n")), "{text}");
    }
}

#[tokio::test]
async fn an_edit_that_only_matches_without_blanks_is_indented_like_the_file() {
    let w = world();
    for (old, new, expected) in [
        (
            "  if x {\n  foo();",
            "    if y {\n        bar();\n            baz();",
            "    if y {\n          bar();\n            baz();\n",
        ),
        ("let x = 1;\n if x {", "let z = 2;\n if z {\n   q", "    let z = 2;\n    if z {\n   q\n"),
        ("if x {\nfoo();\n}", "while x {\n  foo();\n}", "    while x {\n  foo();\n}\n"),
    ] {
        w.put("code.rs", "fn main() {\n    let x = 1;\n    if x {\n        foo();\n    }\n}\n");
        let args = json!({"path": w.at("code.rs"), "edits": [{"oldText": old, "newText": new}]});
        let answer = w.call("edit_file", args).await.expect("an answer");
        assert_eq!(answer["edits"][0]["ignored_blanks"], true);
        assert!(w.get("code.rs").contains(expected), "{:?}", w.get("code.rs"));
    }
}

#[tokio::test]
async fn when_one_edit_fails_nothing_is_written() {
    let w = world();
    let error =
        w.error("edit_file", w.real(&edits("n.txt", &[("1", "one"), ("zz", "B")]).replace("true", "false"))).await;
    assert!(error.starts_with("Could not find exact match for edit:\nzz\nHint: "), "{error}");
    assert_eq!(w.get("n.txt"), "1\n2\n3\n4\n5\n");
}
