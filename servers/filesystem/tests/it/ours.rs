//! Our own tools, and where the published ones do more than they did: encodings, line endings, appending, copying,
//! deleting, ranges, searching inside files.
#![cfg(unix)]

use crate::common;

use common::{World, at};
use linchpin_filesystem::ResourceBody;
use linchpin_kit::ToolError;
use serde_json::{Value, json};

#[tokio::test]
async fn encodings_are_recognised_on_reading_and_kept_on_editing() {
    let sjis = b"\x93\xfa\x96{\x8c\xea\x82\xcc\x83e\x83L\x83X\x83g\n";
    let utf16 = |text: &str, little: bool, mark: bool| -> Vec<u8> {
        let mark = mark.then_some('\u{feff}');
        let units = mark.into_iter().chain(text.chars()).collect::<String>();
        units.encode_utf16().flat_map(|unit| if little { unit.to_le_bytes() } else { unit.to_be_bytes() }).collect()
    };
    let text = "first line\nsecond line\n";
    for (bytes, decoded, encoding) in [
        (text.as_bytes().to_vec(), text, None),
        ("日本\n".as_bytes().to_vec(), "日本\n", None),
        (b"caf\xe9\n".to_vec(), "caf\u{e9}\n", Some("windows-1252")),
        (sjis.to_vec(), "日本語のテキスト\n", Some("Shift_JIS")),
        (utf16(text, true, true), text, Some("UTF-16LE")),
        (utf16(text, false, true), text, Some("UTF-16BE")),
        (utf16(text, true, false), text, Some("UTF-16LE")),
        (utf16(text, false, false), text, Some("UTF-16BE")),
        (b"\xef\xbb\xbffirst\n".to_vec(), "first\n", Some("UTF-8-BOM")),
    ] {
        let w = World::new();
        w.put("f", &bytes);
        let answer = w.call("read_text_file", at(w.path("f"))).await.expect("text");
        assert_eq!(answer["content"], decoded);
        assert_eq!(answer.get("encoding").and_then(Value::as_str), encoding, "{decoded:?}");
        let edit = json!({"path": "f", "edits": [{"oldText": decoded, "newText": format!("{decoded}x\n")}]});
        w.text("edit_file", edit).await;
        let again = w.call("read_text_file", at(w.path("f"))).await.expect("text");
        assert_eq!(again["content"], format!("{decoded}x\n"));
        assert_eq!(again.get("encoding").and_then(Value::as_str), encoding, "the encoding is kept");
        assert!(w.bytes("f").starts_with(&bytes), "bytes that were not edited are kept: {encoding:?}");
    }
}

#[tokio::test]
async fn windows_of_utf16_and_legacy_files_are_whole_lines() {
    let w = World::new();
    let text: String = (0..20_000).map(|i| format!("line {i} Ċ\n")).collect();
    // U+010A has the byte of a line feed in it.
    w.put("f", text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>());
    for (args, expected) in [
        (json!({"path": "f", "head": 2}), "line 0 Ċ\nline 1 Ċ"),
        (json!({"path": "f", "tail": 2}), "line 19999 Ċ\n"),
        (json!({"path": "f", "tail": 19_001}), ""),
    ] {
        let read = w.text("read_text_file", args.clone()).await;
        if expected.is_empty() {
            assert!(read.starts_with("line 1000 Ċ\n") && read.ends_with("line 19999 Ċ\n"), "{args}");
        } else {
            assert_eq!(read, expected, "{args}");
        }
    }
    let range = w.text("fs_read_range", json!({"path": "f", "offset": 1000, "limit": 1})).await;
    assert_eq!(range, "line 999 Ċ\n");
    let found = w.text("fs_search_content", json!({"path": "f", "pattern": "line 777 "})).await;
    assert_eq!(found, format!("{}:778:1: line 777 Ċ", w.at("f")));
}

#[tokio::test]
async fn an_edit_that_cannot_be_stored_is_refused_and_writes_nothing() {
    let w = World::new();
    for (bytes, new, words) in [
        (b"caf\xe9\n".to_vec(), "日本", "windows-1252"),
        (b"\x00\x01\x02text\xff\xfe".to_vec(), "x", "Not a text file"),
    ] {
        w.put("f", &bytes);
        let old = if words.starts_with("Not") { "text" } else { "caf" };
        let error = w.error("edit_file", json!({"path": "f", "edits": [{"oldText": old, "newText": new}]})).await;
        assert!(error.contains(words) && error.contains("write_file"), "{error}");
        assert_eq!(w.bytes("f"), bytes);
    }
}

#[tokio::test]
async fn line_endings_are_kept_line_by_line() {
    let w = World::new();
    for (before, old, new, after) in [
        ("a\r\nb\r\nc\r\n", "b", "B\nB2", "a\r\nB\r\nB2\r\nc\r\n"),
        ("a\r\nb\r\nc\r\n", "b\r\nc", "X", "a\r\nX\r\n"),
        ("a\nb\r\nc\nd\n", "d", "D\nE", "a\nb\r\nc\nD\nE\n"),
        ("a\r\nb\nc\r\nd\r\n", "a", "A", "A\r\nb\nc\r\nd\r\n"),
        ("a\nb\n", "b", "B\r\nC", "a\nB\nC\n"),
        ("a\r\nb", "b", "B", "a\r\nB"),
    ] {
        w.put("f", before);
        w.text("edit_file", json!({"path": "f", "edits": [{"oldText": old, "newText": new}]})).await;
        assert_eq!(w.get("f"), after, "{before:?}");
    }
    // What changes nothing must not touch the file, not even its endings.
    w.put("f", "a\r\nb\n");
    w.text("edit_file", json!({"path": "f", "edits": []})).await;
    assert_eq!(w.get("f"), "a\r\nb\n");
}

#[tokio::test]
async fn edits_can_replace_all_and_insist_on_a_count() {
    let w = World::new();
    for (edit, expected) in [
        (
            json!({"oldText": "x", "newText": "y"}),
            Ok((
                "y x x\n",
                json!([{"index": 0, "occurrences": 3, "replaced": 1, "ambiguous": true, "ignored_blanks": false}]),
            )),
        ),
        (json!({"oldText": "x", "newText": "y", "replaceAll": true}), Ok(("y y y\n", Value::Null))),
        (json!({"oldText": "x", "newText": "y", "expectedOccurrences": 3}), Ok(("y x x\n", Value::Null))),
        (
            json!({"oldText": "x", "newText": "y", "replaceAll": true, "expectedOccurrences": 3}),
            Ok(("y y y\n", Value::Null)),
        ),
        (json!({"oldText": "x x x", "newText": "y"}), Ok(("y\n", Value::Null))),
        (json!({"oldText": "x", "newText": "y", "expectedOccurrences": 2}), Err("occurs 3 times")),
        (json!({"oldText": "", "newText": "y"}), Err("oldText of edit 0 is empty")),
    ] {
        w.put("f", "x x x\n");
        let answer = w.call("edit_file", json!({"path": "f", "edits": [edit.clone()]})).await;
        match (answer, expected) {
            (Ok(answer), Ok((after, reports))) => {
                assert_eq!(w.get("f"), after, "{edit}");
                assert_eq!(answer.get("edits").cloned().unwrap_or_default(), reports, "{edit}");
            }
            (Err(error), Err(words)) => {
                assert!(error.contains(words), "{edit}: {error}");
                assert_eq!(w.get("f"), "x x x\n");
            }
            (answer, _) => panic!("{edit}: {answer:?}"),
        }
    }
    w.put("f", "  a\n  b\n a\nb\n");
    let edit = json!({"oldText": "a \nb ", "newText": "c", "replaceAll": true});
    w.text("edit_file", json!({"path": "f", "edits": [edit]})).await;
    assert_eq!(w.get("f"), "  c\n c\n", "replaceAll also holds for matches that ignore blanks");
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_at_the_same_time_do_not_undo_each_other() {
    let w = World::new();
    w.put("f", (0..40).map(|i| format!("line {i};\n")).collect::<String>());
    let mut calls = Vec::new();
    for i in 0..40 {
        for (tool, args) in [
            (
                "edit_file",
                json!({"path": "f", "edits": [{"oldText": format!("line {i};"), "newText": format!("done {i};")}]}),
            ),
            ("fs_append", json!({"path": "f", "content": format!("more {i};\n")})),
        ] {
            let fs = w.fs.clone();
            calls.push(tokio::spawn(async move { common::call(&fs, tool, args).await }));
        }
    }
    for call in calls {
        let answer = call.await.expect("no panic");
        assert!(answer.is_ok(), "{answer:?}");
    }
    let text = w.get("f");
    for i in 0..40 {
        assert!(text.contains(&format!("done {i};")) && text.contains(&format!("more {i};")), "{i} in {text}");
    }
}

#[tokio::test]
async fn compat_restores_the_published_text_handling() {
    let w = World::with(|config| config.compat = true);
    w.put("latin", b"caf\xe9\n");
    w.put("crlf", "a\r\nb\r\n");
    w.put("mark", "\u{feff}x\n");
    assert_eq!(w.call("read_text_file", at(w.path("latin"))).await, Ok(json!({"content": "caf\u{fffd}\n"})));
    assert_eq!(w.text("read_text_file", at(w.path("mark"))).await, "\u{feff}x\n");
    assert_eq!(w.text("read_text_file", json!({"path": "crlf", "tail": 2})).await, "b\n");
    w.text("edit_file", json!({"path": "crlf", "edits": [{"oldText": "b", "newText": "B"}]})).await;
    assert_eq!(w.get("crlf"), "a\nB\n");
    w.text("edit_file", json!({"path": "crlf", "edits": [{"oldText": "", "newText": "TOP"}]})).await;
    assert_eq!(w.get("crlf"), "TOPa\nB\n");
}

#[tokio::test]
async fn ranges_of_lines_say_where_they_end_and_how_to_go_on() {
    let w = World::with(|config| config.max_result_bytes = 40);
    w.put("f", (1..=9).map(|i| format!("line {i}\r\n")).collect::<String>());
    w.put("long", format!("a\n{}\nb\n", "x".repeat(1000)));
    for (args, content, more) in [
        (json!({"path": "f", "offset": 2, "limit": 2}), "line 2\r\nline 3\r\n", json!([2, 3, null, 4])),
        (json!({"path": "f", "offset": 8}), "line 8\r\nline 9\r\n", json!([8, 9, 9, null])),
        (json!({"path": "f", "offset": 9, "limit": 1}), "line 9\r\n", json!([9, 9, 9, null])),
        (json!({"path": "f", "offset": 10}), "", json!([10, 9, 9, null])),
        (json!({"path": "f"}), "line 1\r\nline 2\r\nline 3\r\nline 4\r\nline 5\r\n", json!([1, 5, null, 6])),
        (json!({"path": "f", "offset": 9, "line_numbers": true}), "     9\tline 9\r\n", json!([9, 9, 9, null])),
        (json!({"path": "long", "offset": 3}), "b\n", json!([3, 3, 3, null])),
    ] {
        let answer = w.call("fs_read_range", args.clone()).await.expect("a range");
        assert_eq!(answer["content"], content, "{args}");
        let found = json!([answer["start_line"], answer["end_line"], answer["total_lines"], answer["next_offset"]]);
        assert_eq!(found, more, "{args}");
        assert_eq!(answer["truncated"], answer["next_offset"].is_number(), "{args}");
    }
    let long = w.text("fs_read_range", json!({"path": "long", "offset": 2, "limit": 1})).await;
    assert_eq!(long, format!("{}… [line truncated: 1001 bytes]\n", "x".repeat(40)));
}

#[tokio::test]
async fn appending_adds_at_the_end_and_creates() {
    let w = World::new();
    assert_eq!(w.text("fs_append", json!({"path": "log", "content": "a\n"})).await, "Successfully appended to log");
    w.text("fs_append", json!({"path": "log", "content": "b"})).await;
    assert_eq!(w.get("log"), "a\nb");
    let error = w.error("fs_append", json!({"path": "no/dir", "content": "b"})).await;
    assert!(error.starts_with("ENOENT"), "{error}");
    assert!(w.error("fs_append", json!({"path": w.at(""), "content": "b"})).await.starts_with("EISDIR"));
}

#[tokio::test]
async fn copies_are_whole_and_replace_only_when_told() {
    use std::os::unix::fs::PermissionsExt;
    let w = World::new();
    w.put("d/a.sh", "a");
    w.put("d/e/b", "b");
    w.put("d/e/f/c", "c");
    w.put("d/z", "z");
    w.link("d/link", "a.sh");
    std::fs::set_permissions(w.path("d/a.sh"), std::fs::Permissions::from_mode(0o4750)).expect("a mode");
    let answer = w.call("fs_copy", json!({"source": "d", "destination": "x", "recursive": true})).await;
    assert_eq!(answer, Ok(json!({"content": "Successfully copied d to x", "files": 4, "skipped": 1})));
    for (name, content) in [("x/a.sh", "a"), ("x/e/b", "b"), ("x/e/f/c", "c"), ("x/z", "z")] {
        assert_eq!(w.get(name), content);
    }
    let mode = std::fs::metadata(w.path("x/a.sh")).expect("metadata").permissions().mode();
    assert_eq!(mode & 0o7777, 0o750, "the mode without set-id bits");
    for (args, words) in [
        (json!({"source": "d", "destination": "y"}), "recursive"),
        (json!({"source": "d", "destination": "x", "recursive": true}), "Destination already exists: x"),
        (json!({"source": "d", "destination": "d/inside", "recursive": true}), "into itself"),
        (json!({"source": "d/z", "destination": "d/e/b"}), "Destination already exists: d/e/b"),
        (json!({"source": "d/z", "destination": "d/e", "overwrite": true}), "EISDIR"),
        (json!({"source": "nope", "destination": "y"}), "ENOENT"),
        (json!({"source": "d/z", "destination": "no/dir"}), "ENOENT"),
    ] {
        let error = w.error("fs_copy", args.clone()).await;
        assert!(error.contains(words), "{args}: {error}");
    }
    w.text("fs_copy", json!({"source": "d/z", "destination": "d/e/b", "overwrite": true})).await;
    assert_eq!(w.get("d/e/b"), "z");
    assert!(!w.path("d/inside").exists() && !w.path("y").exists());
}

#[tokio::test]
async fn deleting_needs_permission_and_takes_the_link_not_its_target() {
    let w = World::new();
    w.put("f", "x");
    assert!(w.error("fs_delete", at(w.path("f"))).await.contains("--allow-delete"));
    let w = World::with(|config| config.allow_delete = true);
    w.put("f", "x");
    w.put("d/e/g", "x");
    w.link("inner", "f");
    w.link("outer", w.outside("ws-evil"));
    w.link("dangling", "nowhere");
    w.link("d/e/outer", w.outside("ws-evil"));
    for name in ["inner", "outer", "dangling"] {
        assert_eq!(w.text("fs_delete", json!({"path": name})).await, format!("Successfully deleted {name}"));
        assert!(!w.path(name).is_symlink());
    }
    assert!(w.error("fs_delete", json!({"path": "d"})).await.starts_with("ENOTEMPTY"));
    assert!(w.error("fs_delete", json!({"path": "nope"})).await.starts_with("ENOENT"));
    assert!(
        w.error("fs_delete", json!({"path": w.at(""), "recursive": true})).await.contains("allowed directory itself")
    );
    w.text("fs_delete", json!({"path": "d", "recursive": true})).await;
    assert!(!w.path("d").exists());
    assert!(w.outside("ws-evil/s.txt").exists(), "nothing behind a link is deleted");
    assert_eq!(w.get("f"), "x");
}

#[tokio::test]
async fn an_allowed_directory_itself_is_never_moved_or_replaced() {
    let w = World::new();
    w.put("own", "x");
    let whole = w.at("");
    for (tool, args) in [
        ("move_file", json!({"source": whole, "destination": "x"})),
        ("move_file", json!({"source": "own", "destination": whole})),
        ("write_file", json!({"path": whole, "content": "x"})),
        ("fs_copy", json!({"source": "own", "destination": whole, "overwrite": true})),
        ("fs_append", json!({"path": whole, "content": "x"})),
        ("fs_copy", json!({"source": whole, "destination": "copy", "recursive": true})),
    ] {
        w.error(tool, args).await;
    }
    assert_eq!(
        w.text("create_directory", json!({"path": whole})).await,
        format!("Successfully created directory {whole}")
    );
}

fn project() -> World {
    let w = World::new();
    w.put("src/main.rs", "use a;\nfn main() {\n    needle();\n}\nfn needle() {}\n");
    w.put("src/other.txt", "Needle here\n");
    w.put("target/out.rs", "needle\n");
    w.put("bin", b"needle\0binary");
    w.put(".gitignore", "target/\n*.log\n!keep.log\n");
    w.put("src/.gitignore", "generated.rs\n");
    w.put("src/generated.rs", "needle\n");
    w.put("x.log", "needle\n");
    w.put("keep.log", "needle\n");
    w.put(".git/config", "needle\n");
    w
}

#[tokio::test]
async fn content_is_found_with_line_and_column() {
    let w = project();
    for (args, expected) in [
        (
            json!({"pattern": "needle\\(", "glob": "**/*.rs"}),
            "src/main.rs:3:5:     needle();\nsrc/main.rs:5:4: fn needle() {}",
        ),
        (
            json!({"pattern": "needle(", "literal": true}),
            "src/main.rs:3:5:     needle();\nsrc/main.rs:5:4: fn needle() {}",
        ),
        (
            json!({"pattern": "^NEEDLE", "ignore_case": true, "exclude": ["target", ".*", "**/*.{log,rs}"]}),
            "src/other.txt:1:1: Needle here",
        ),
        (
            json!({"pattern": "main", "context": 1, "glob": "src/*.rs"}),
            "src/main.rs-1- use a;\nsrc/main.rs:2:4: fn main() {\nsrc/main.rs-3-     needle();",
        ),
        (
            json!({"pattern": "needle", "respect_gitignore": true}),
            "keep.log:1:1: needle\nsrc/main.rs:3:5:     needle();\nsrc/main.rs:5:4: fn needle() {}",
        ),
        (json!({"pattern": "nothing like it"}), "No matches found"),
    ] {
        let mut whole = args.clone();
        whole["path"] = json!(w.at(""));
        let found = w.text("fs_search_content", whole).await;
        assert_eq!(found.replace(&format!("{}/", w.at("")), ""), expected, "{args}");
    }
    let one = w.text("fs_search_content", json!({"path": "src/main.rs", "pattern": "fn"})).await;
    assert_eq!(one.lines().count(), 2);
    let error = w.error("fs_search_content", json!({"path": ".", "pattern": "("})).await;
    assert!(error.contains("literal=true"), "{error}");
    let limited = w.call("fs_search_content", json!({"path": "src", "pattern": "needle", "max_results": 1})).await;
    let limited = limited.expect("a page");
    assert_eq!(limited["truncated"], true);
    let long = format!("{}needle{}", "a".repeat(5000), "b".repeat(5000));
    w.put("long", &long);
    let found = w.text("fs_search_content", json!({"path": "long", "pattern": "needle"})).await;
    assert!(found.len() < 700 && found.contains("needle") && found.contains(":5001:"), "{found}");
}

#[tokio::test]
async fn searches_can_respect_gitignore() {
    let w = project();
    for (tool, args) in [
        ("search_files", json!({"path": w.at(""), "pattern": "**/*.{rs,log}", "respectGitignore": true})),
        ("fs_glob", json!({"path": w.at(""), "pattern": "**/*.{rs,log}", "respect_gitignore": true})),
    ] {
        let found = w.text(tool, args).await.replace(&format!("{}/", w.at("")), "");
        assert_eq!(found, "keep.log\nsrc/main.rs", "{tool}");
    }
    let tree = w.text("directory_tree", json!({"path": w.at("src"), "respectGitignore": true})).await;
    assert!(tree.contains("main.rs") && !tree.contains("generated.rs"), "{tree}");
    let all = w.text("search_files", json!({"path": w.at(""), "pattern": "**/*.{rs,log}"})).await;
    assert_eq!(all.lines().count(), 5, "off by default");
    // Rules of directories above the start hold too.
    w.put("src/target/deep.rs", "");
    let below = w.text("fs_glob", json!({"path": w.at("src"), "pattern": "**/*.rs", "respect_gitignore": true})).await;
    assert_eq!(below, w.at("src/main.rs"));
}

#[tokio::test]
async fn pattern_groups_are_refused_with_the_alternative() {
    let w = World::new();
    for pattern in ["!(a)", "+(a|b)", "a?(b)"] {
        let error = w.error("search_files", json!({"path": ".", "pattern": pattern})).await;
        assert!(error.contains("{a,b}"), "{error}");
    }
    assert!(w.error("fs_glob", json!({"path": ".", "pattern": "[a"})).await.contains("[a"));
}

#[tokio::test]
async fn resources_are_files_by_uri() {
    let w = World::new();
    w.put("a b.txt", "text");
    w.put("x.png", b"\x89PNG");
    w.put("bin", b"\0\x01");
    let uri = |name: &str| format!("file://{}", w.at(name));
    let shape = |read: Result<ResourceBody, ToolError>| read.map(|body| format!("{} {:?}", body.mime_type, body.data));
    for (uri, expected) in [
        (uri("a%20b.txt"), "text/plain Text(\"text\")"),
        (uri("x.png"), "image/png Blob(\"iVBORw==\")"),
        (uri("bin"), "application/octet-stream Blob(\"AAE=\")"),
    ] {
        assert_eq!(shape(w.fs.read_resource(uri.clone()).await).as_deref(), Ok(expected), "{uri}");
    }
    for uri in [
        uri("nope"),
        uri("../ws-evil/s.txt"),
        uri("%2e%2e/ws-evil/s.txt"),
        "file://host/etc/passwd".into(),
        "http://x".into(),
        uri("%zz"),
    ] {
        let error = w.fs.read_resource(uri.clone()).await.expect_err("not readable");
        assert!(error.is_not_found(), "{uri}: {error}");
    }
}
