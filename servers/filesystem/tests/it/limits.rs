//! Size limits, cursors, configuration and the choice of tools.
#![cfg(unix)]

use crate::common;

use common::{World, at, call, text};
use linchpin_filesystem::{Config, Filesystem, FollowSymlinks, RootsPolicy, SERVICE};
use linchpin_kit::{ToolChoice, ToolPrefix, Vars};
use serde_json::{Value, json};

/// So large that whoever read it whole would never come back: nothing here needs a clock.
#[tokio::test]
async fn a_huge_file_is_refused_whole_and_read_in_parts() {
    let w = World::new();
    w.put("big", "first\nsecond\n");
    let file = std::fs::File::options().write(true).open(w.path("big")).expect("a file");
    // 8 TiB, or what the file system can do.
    let mut size: u64 = 8 << 40;
    while file.set_len(size).is_err() {
        size /= 2;
        assert!(size >= 3 << 30, "a sparse file");
    }
    std::os::unix::fs::FileExt::write_at(&file, b"\nlast", size - 5).expect("an end");
    w.put("small", "x");
    let refused = format!("{size} bytes");
    for (tool, args) in [
        ("read_text_file", at(w.path("big"))),
        ("read_media_file", at(w.path("big"))),
        ("edit_file", json!({"path": "big", "edits": [{"oldText": "first", "newText": "x"}]})),
    ] {
        let error = w.error(tool, args).await;
        assert!(error.contains(&refused) && error.contains("Hint: "), "{tool}: {error}");
    }
    let error = w.error("read_text_file", at(w.path("big"))).await;
    assert!(error.contains("head, tail or fs_read_range"), "{error}");
    let several = w.text("read_multiple_files", json!({"paths": ["big", "small"]})).await;
    assert!(several.starts_with("big: Error - File too large") && several.contains(&refused), "{several}");
    assert!(several.ends_with("\n---\nsmall:\nx\n") && several.len() < 1_000, "{several}");
    assert_eq!(w.text("read_text_file", json!({"path": "big", "head": 2})).await, "first\nsecond");
    assert_eq!(w.text("read_text_file", json!({"path": "big", "tail": 1})).await, "last");
    assert_eq!(w.text("fs_read_range", json!({"path": "big", "offset": 2, "limit": 1})).await, "second\n");
    let cut = w.call("read_text_file", json!({"path": "big", "tail": 2})).await.expect("a window");
    assert_eq!(cut["truncated"], true, "a window of one endless line is cut at the limit");
    let found = w.call("fs_search_content", json!({"path": w.at(""), "pattern": "x"})).await.expect("a search");
    assert_eq!(found["content"], format!("{}:1:1: x", w.at("small")));
    assert_eq!(found["skipped"], 1, "what is too large to search is counted");
}

#[tokio::test]
async fn the_read_limit_is_configurable_and_shared_by_multiple_reads() {
    let w = World::with(|config| config.max_read_bytes = 10);
    for name in ["a", "b", "c"] {
        w.put(name, "123456");
    }
    w.put("exact", "1234567890");
    w.put("over", "12345678901");
    assert_eq!(w.text("read_text_file", at(w.path("exact"))).await, "1234567890");
    assert!(w.error("read_text_file", at(w.path("over"))).await.contains("the limit is 10"));
    let several = w.text("read_multiple_files", json!({"paths": ["a", "b", "c"]})).await;
    assert_eq!(several.matches("123456").count(), 1, "{several}");
    assert_eq!(several.matches("Error - File too large").count(), 2, "{several}");
}

/// Calls a tool page after page; answers the pages' texts.
async fn pages(w: &World, tool: &str, mut args: Value) -> Vec<String> {
    let mut pages = Vec::new();
    loop {
        let answer = w.call(tool, args.clone()).await.unwrap_or_else(|error| panic!("{tool} {args}: {error}"));
        pages.push(answer["content"].as_str().expect("text").to_owned());
        assert_eq!(answer["truncated"] == true, answer["next_cursor"].is_string());
        match answer.get("next_cursor") {
            Some(cursor) => args["cursor"] = cursor.clone(),
            None => return pages,
        }
        assert!(pages.len() < 5_000, "the cursor gets somewhere");
    }
}

fn many(w: &World) -> usize {
    let mut count = 0;
    for d in 0..12 {
        for f in 0..40 {
            w.put(&format!("d{d:02}/s{}/f{f:03}.txt", f % 3), format!("line {f}\nneedle {d}\n"));
            count += 1;
        }
    }
    count
}

#[tokio::test]
async fn long_answers_are_cut_and_continued_without_loss_or_repetition() {
    let plain = World::new();
    let files = many(&plain);
    type Limit = fn(&mut Config);
    let limits: [(&str, Limit); 3] = [
        ("bytes", |config| config.max_result_bytes = 2_000),
        ("entries", |config| config.max_entries = 7),
        ("scan", |config| config.max_scan = 11),
    ];
    for (name, limit) in limits {
        let w = World::with(limit);
        many(&w);
        for (tool, args) in [
            ("search_files", json!({"path": w.at(""), "pattern": "**/*.txt"})),
            ("search_files", json!({"path": w.at(""), "pattern": "**/f00*", "excludePatterns": ["d03"]})),
            ("fs_glob", json!({"path": w.at(""), "pattern": "**/*.txt"})),
            ("fs_search_content", json!({"path": w.at(""), "pattern": "needle|line"})),
            ("list_directory", json!({"path": w.at("d05/s1")})),
        ] {
            let whole_args = w.shown(&args.to_string());
            let whole = pages(&plain, tool, plain.real(&whole_args)).await;
            let parts = pages(&w, tool, args.clone()).await;
            let lines = |pages: &[String], of: &World| -> Vec<String> {
                let lines = pages.iter().flat_map(|page| page.lines()).filter(|line| *line != "No matches found");
                lines.map(|line| of.shown(line)).collect()
            };
            assert!(parts.len() > 1 || tool == "list_directory", "{tool} is cut by {name}");
            let (parts, whole) = (lines(&parts, &w), lines(&whole, &plain));
            let differs = parts.iter().zip(&whole).position(|(part, whole)| part != whole);
            assert_eq!((parts.len(), differs), (whole.len(), None), "{tool} cut by {name}");
        }
        // The tree of each page is JSON of its own; together they hold every file once.
        let parts = pages(&w, "directory_tree", at(w.path(""))).await;
        assert!(parts.len() > 1);
        let mut names = Vec::new();
        for part in &parts {
            collect(&serde_json::from_str(part).expect("JSON"), String::new(), &mut names);
        }
        assert_eq!(names.len(), files, "every file once");
        names.dedup();
        assert_eq!(names.len(), files, "in order, none twice");
    }
    let sized = World::with(|config| config.max_entries = 5);
    many(&sized);
    let parts = pages(&sized, "list_directory_with_sizes", json!({"path": sized.at("d00/s0"), "sortBy": "size"})).await;
    assert_eq!(parts.iter().map(|part| part.matches("[FILE]").count()).collect::<Vec<_>>(), [5, 5, 4]);
    assert!(parts.iter().all(|part| part.contains("Total: 14 files, 0 directories")), "totals are of the whole");
}

/// Names need not be text. Cursors hold them byte for byte, so that no page comes twice and nothing is left out.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn names_that_are_no_text_are_paged_like_any_other() {
    use std::os::unix::ffi::OsStrExt;
    let names: [&[u8]; 9] =
        [b"a", b"a b", b"a%20b", b"b|c", b"\xe9t\xe9", "é".as_bytes(), "😀z".as_bytes(), b"\xff1", b"\xff2"];
    let w = World::with(|config| config.max_entries = 1);
    let within = std::path::Path::new(std::ffi::OsStr::from_bytes(b"d\xfe"));
    std::fs::create_dir(w.path("").join(within)).expect("a directory");
    for name in names {
        let name = std::ffi::OsStr::from_bytes(name);
        std::fs::write(w.path("").join(name), "x\nx\n").expect("a file");
        std::fs::write(w.path("").join(within).join(name), "x\nx\n").expect("a file");
    }
    let mut sorted: Vec<&[u8]> = names.into_iter().chain([within.as_os_str().as_bytes()]).collect();
    sorted.sort_unstable();
    let shown = |name: &[u8]| String::from_utf8_lossy(name).into_owned();
    let listed: Vec<String> = pages(&w, "list_directory", at(w.path(""))).await;
    let expected = sorted.iter().map(|name| match *name == within.as_os_str().as_bytes() {
        true => format!("[DIR] {}", shown(name)),
        false => format!("[FILE] {}", shown(name)),
    });
    assert_eq!(listed, expected.collect::<Vec<_>>());
    // Below and beside: every entry once, in the order of bytes.
    let mut all = Vec::new();
    for name in &sorted {
        all.push(w.at(&shown(name)));
        if *name == within.as_os_str().as_bytes() {
            let mut inside = names.to_vec();
            inside.sort_unstable();
            all.extend(inside.into_iter().map(|inner| format!("{}/{}", w.at(&shown(name)), shown(inner))));
        }
    }
    let everything = |tool: &str| (tool.to_owned(), json!({"path": w.at(""), "pattern": "**"}));
    for (tool, args) in ["fs_glob", "search_files"].map(everything) {
        assert_eq!(pages(&w, &tool, args).await, all, "{tool}");
    }
    let trees = pages(&w, "directory_tree", at(w.path(""))).await;
    assert_eq!(trees.len(), all.len());
    // Each file is cut in the middle once.
    let found = pages(&w, "fs_search_content", json!({"path": w.at(""), "pattern": "x"})).await;
    let files = all.iter().filter(|path| **path != w.at(&shown(within.as_os_str().as_bytes())));
    let lines = files.flat_map(|path| [1, 2].map(|line| format!("{path}:{line}:1: x")));
    let found: Vec<String> = found.into_iter().filter(|page| page != "No matches found").collect();
    assert_eq!(found, lines.collect::<Vec<_>>());
}

#[tokio::test]
async fn cursors_that_no_answer_gave_are_refused_and_nothing_begins_anew() {
    let w = World::with(|config| config.max_entries = 1);
    for name in ["a b", "c"] {
        w.put(name, "x");
    }
    let cases: &[(&str, Value, &[&str])] = &[
        ("list_directory", json!({}), &["bogus!!", "a b", "/a", "../c", "a/b", "a//b", "%zz", "%00", "é", "a%2"]),
        ("list_directory_with_sizes", json!({}), &["x", "-1", "3", "bogus!!"]),
        ("directory_tree", json!({}), &["bogus!!", "./c", "a b"]),
        ("search_files", json!({"pattern": "**"}), &["bogus!!", "c/", "c//d", "%61"]),
        ("fs_glob", json!({"pattern": "**"}), &["bogus!!", "c/.", "%ff"]),
        (
            "fs_search_content",
            json!({"pattern": "x"}),
            &["nonsense", "c", "x|c", "1|", "-1|c", "1|bogus!!", "|c", "1|/c"],
        ),
    ];
    for (tool, args, cursors) in cases {
        for cursor in *cursors {
            let mut args = args.clone();
            args["path"] = w.at("").into();
            args["cursor"] = (*cursor).into();
            let error = w.error(tool, args).await;
            assert!(error.starts_with("Unknown cursor: ") && error.contains("Hint: "), "{tool} {cursor}: {error}");
        }
    }
    let error = w.error("fs_search_content", json!({"path": w.at("c"), "pattern": "x", "cursor": "1|c"})).await;
    assert!(error.starts_with("Unknown cursor: "), "the place of a directory in a file: {error}");
    // The start, and an entry that is gone by now, are places like any other.
    for (cursor, listed) in [("", "[FILE] a b"), ("a%20b", "[FILE] c"), ("b", "[FILE] c"), ("c", "")] {
        assert_eq!(w.text("list_directory", json!({"path": w.at(""), "cursor": cursor})).await, listed, "{cursor}");
    }
}

/// A limit of nothing would be a list that never gets anywhere.
#[tokio::test]
async fn a_limit_of_no_entries_is_one() {
    let w = World::with(|config| config.max_entries = 0);
    for name in ["a", "b"] {
        w.put(name, "x");
    }
    for (tool, args) in [
        ("list_directory", at(w.path(""))),
        ("list_directory_with_sizes", at(w.path(""))),
        ("directory_tree", at(w.path(""))),
        ("search_files", json!({"path": w.at(""), "pattern": "**"})),
        ("fs_glob", json!({"path": w.at(""), "pattern": "**", "limit": 0})),
        ("fs_search_content", json!({"path": w.at(""), "pattern": "x", "max_results": 0})),
    ] {
        assert_eq!(pages(&w, tool, args).await.len(), 2, "{tool}");
    }
}

fn collect(tree: &Value, above: String, names: &mut Vec<String>) {
    for node in tree.as_array().expect("an array") {
        let path = format!("{above}/{}", node["name"].as_str().expect("a name"));
        match node.get("children") {
            Some(children) => collect(children, path, names),
            None => names.push(path),
        }
    }
}

#[tokio::test]
async fn a_cut_answer_says_so_in_a_second_text() {
    let w = World::with(|config| config.max_entries = 2);
    for name in ["a", "b", "c"] {
        w.put(name, "");
    }
    let args = serde_json::from_value(at(w.path(""))).expect("arguments");
    let answer = w.fs.list_directory(args).await.expect("a listing");
    assert_eq!(answer.content, "[FILE] a\n[FILE] b", "the text itself stays clean");
    let notice = answer.notice.expect("a notice");
    assert!(notice.contains("cursor=\"b\""), "{notice}");
}

#[tokio::test]
async fn a_deep_tree_ends() {
    let w = World::new();
    let mut path = w.path("");
    for _ in 0..300 {
        path.push("d");
    }
    std::fs::create_dir_all(&path).expect("directories");
    let answer = w.call("search_files", json!({"path": w.at(""), "pattern": "**/nothing"})).await.expect("an answer");
    assert_eq!(answer, json!({"content": "No matches found", "skipped": 1}));
    let error = w.error("fs_copy", json!({"source": "d", "destination": "e", "recursive": true})).await;
    assert!(error.contains("Too many entries or levels"), "{error}");
}

/// The superuser may look into everything, so the threads that do the work are somebody else's then.
#[test]
fn what_cannot_be_looked_into_is_skipped_and_counted() {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    #[cfg(target_os = "linux")]
    if rustix::process::geteuid().is_root() {
        runtime.on_thread_start(|| {
            let nobody = rustix::process::Uid::from_raw(65_534);
            rustix::thread::set_thread_res_uid(nobody, nobody, nobody).expect("root can become anybody");
        });
    }
    runtime.build().expect("a runtime").block_on(looking_into_what_is_locked());
}

async fn looking_into_what_is_locked() {
    use std::os::unix::fs::PermissionsExt;
    let w = World::new();
    for name in ["a/f.txt", "locked/f.txt", "z/f.txt", "secret.txt"] {
        w.put(name, "needle");
    }
    let set = |name: &str, mode| {
        std::fs::set_permissions(w.path(name), std::fs::Permissions::from_mode(mode)).expect("a mode")
    };
    set("locked", 0o000);
    set("secret.txt", 0o000);
    for (tool, args, lines, skipped) in [
        ("search_files", json!({"path": w.at(""), "pattern": "**/*.txt"}), 3, 1),
        ("fs_search_content", json!({"path": w.at(""), "pattern": "needle"}), 2, 2),
    ] {
        let answer = w.call(tool, args).await.expect("an answer");
        assert_eq!(answer["content"].as_str().expect("text").lines().count(), lines, "{tool}: {answer}");
        assert_eq!(answer["skipped"], skipped, "{tool}: {answer}");
    }
    let tree = w.call("directory_tree", at(w.path(""))).await.expect("a tree");
    assert_eq!(tree["skipped"], 1);
    for (tool, args) in [
        ("read_text_file", at(w.path("secret.txt"))),
        ("list_directory", at(w.path("locked"))),
        ("write_file", json!({"path": w.at("locked/new"), "content": ""})),
    ] {
        assert!(w.error(tool, args).await.starts_with("EACCES: permission denied"), "{tool}");
    }
    // A directory that may be entered but not listed serves what is asked for by name.
    set("locked", 0o111);
    assert_eq!(w.text("read_text_file", at(w.path("locked/f.txt"))).await, "needle");
    set("locked", 0o700);
}

#[tokio::test]
async fn without_directories_every_tool_says_how_to_configure_one() {
    let (fs, warnings) = Filesystem::open(Config::default()).expect("no directory is allowed");
    assert!(warnings.is_empty() && !fs.has_directories());
    for (tool, args) in [
        ("read_text_file", json!({"path": "/etc/passwd"})),
        ("write_file", json!({"path": "x", "content": ""})),
        ("list_directory", json!({"path": "."})),
        ("move_file", json!({"source": "a", "destination": "b"})),
        ("search_files", json!({"path": "/", "pattern": "*"})),
        ("fs_glob", json!({"path": "/", "pattern": "*"})),
    ] {
        let error = call(&fs, tool, args).await.expect_err("nothing is allowed");
        assert!(
            error.contains("no allowed directories") && error.contains("mcp-server-filesystem DIR"),
            "{tool}: {error}"
        );
    }
}

#[test]
fn unusable_directories_are_skipped_with_a_warning_and_all_unusable_is_an_error() {
    let base = tempfile::tempdir().expect("a directory");
    std::fs::write(base.path().join("file"), "").expect("a file");
    let bad = [text(&base.path().join("missing")), text(&base.path().join("file"))];
    let config = |directories: Vec<String>| Config::default().with(|config| config.directories = directories);
    let mut some = bad.to_vec();
    some.push(text(base.path()));
    let (fs, warnings) = Filesystem::open(config(some)).expect("one is usable");
    assert_eq!(warnings.len(), 2);
    assert!(warnings.iter().zip(&bad).all(|(warning, bad)| warning.contains(bad.as_str())) && fs.has_directories());
    let error = Filesystem::open(config(bad.to_vec())).expect_err("none is usable").to_string();
    assert!(error.starts_with("Error: None of the specified directories are accessible"), "{error}");
    let [missing, file] = &bad;
    assert!(error.contains(&format!("directory. {missing}: ")) && error.contains(&format!("; {file}: ")), "{error}");
    let denied = Config::default().with(|config| config.deny = vec!["a{".to_owned()]);
    assert!(Filesystem::open(denied).expect_err("a pattern").to_string().contains("deny pattern a{"));
}

#[tokio::test]
async fn several_directories_resolve_relative_paths_where_the_file_is() {
    let w = World::with(|config| {
        let beside = config.directories[0].replace("/ws", "/ws-evil");
        config.directories.push(beside);
    });
    w.put("both.txt", "first");
    std::fs::write(w.outside("ws-evil/both.txt"), "second").expect("a file");
    w.link("across", w.outside("ws-evil/s.txt"));
    assert_eq!(w.text("read_text_file", json!({"path": "both.txt"})).await, "first");
    assert_eq!(w.text("read_text_file", json!({"path": "s.txt"})).await, "SECRET");
    assert_eq!(
        w.text("read_text_file", json!({"path": "across"})).await,
        "SECRET",
        "a link between allowed directories"
    );
    w.text("write_file", json!({"path": "new.txt", "content": "x"})).await;
    assert!(w.path("new.txt").exists(), "something new goes to the first");
    let both = w.text("list_allowed_directories", json!({})).await;
    assert_eq!(w.shown(&both), "Allowed directories:\nBASE/ws\nBASE/ws-evil");
}

#[tokio::test]
async fn a_directory_is_allowed_under_the_given_and_the_real_name() {
    let base = tempfile::tempdir().expect("a directory");
    let real = base.path().canonicalize().expect("a path");
    std::fs::create_dir(real.join("real")).expect("a directory");
    std::fs::write(real.join("real/x"), "inside").expect("a file");
    std::os::unix::fs::symlink(real.join("real"), real.join("given")).expect("a link");
    let config = Config::default().with(|config| config.directories = vec![text(&real.join("given"))]);
    let (fs, _) = Filesystem::open(config).expect("opened");
    for name in ["given/x", "real/x"] {
        let answer = call(&fs, "read_text_file", json!({"path": real.join(name)})).await;
        assert_eq!(answer.expect("readable")["content"], "inside", "{name}");
    }
}

#[tokio::test]
async fn read_only_refuses_every_tool_that_writes() {
    let w = World::with(|config| {
        config.tools.read_only = true;
        config.allow_delete = true;
    });
    w.put("x", "inside");
    for (tool, args) in [
        ("write_file", json!({"path": "y", "content": ""})),
        ("edit_file", json!({"path": "x", "edits": []})),
        ("create_directory", json!({"path": "d"})),
        ("move_file", json!({"source": "x", "destination": "y"})),
        ("fs_append", json!({"path": "x", "content": "y"})),
        ("fs_copy", json!({"source": "x", "destination": "y"})),
        ("fs_delete", json!({"path": "x"})),
    ] {
        assert!(SERVICE.tools.iter().any(|spec| spec.name == tool && spec.writes), "{tool} is known to write");
        assert!(w.error(tool, args).await.contains("--read-only"), "{tool}");
    }
    assert_eq!(SERVICE.tools.iter().filter(|spec| spec.writes).count(), 7, "no other tool writes");
    assert_eq!(w.get("x"), "inside");
}

#[tokio::test]
async fn client_roots_follow_the_policy() {
    let uri = |path: String| format!("file://{path}");
    for (policy, configured, expected) in [
        (None, true, "ws"),
        (None, false, ""),
        (Some(RootsPolicy::Ignore), false, ""),
        (Some(RootsPolicy::Use), true, "ws"),
        (Some(RootsPolicy::Use), false, "ws/sub"),
        (Some(RootsPolicy::Narrow), true, "ws/sub"),
        (Some(RootsPolicy::Narrow), false, ""),
        (Some(RootsPolicy::Replace), false, "ws/sub"),
        (Some(RootsPolicy::Replace), true, "ws/sub|ws-evil"),
    ] {
        let w = World::with(|config| {
            config.roots = policy;
            if !configured {
                config.directories.clear();
            }
        });
        std::fs::create_dir(w.path("sub")).expect("a directory");
        let mut offered = vec![uri(w.at("sub")), "file:///does/not/exist".to_owned(), "https://example.com".to_owned()];
        if configured {
            // Outside the configured directory: only `replace` may take it.
            offered.push(text(&w.outside("ws-evil")));
        }
        let before = w.text("list_allowed_directories", json!({})).await;
        let fs = w.fs.for_roots(offered).await.expect("its roots");
        let answer = call(&fs, "list_allowed_directories", json!({})).await.expect("a list");
        let allowed = w.shown(answer["content"].as_str().expect("text"));
        assert_eq!(w.text("list_allowed_directories", json!({})).await, before, "other clients see what they saw");
        let listed: Vec<String> = expected.split('|').filter(|n| !n.is_empty()).map(|n| format!("BASE/{n}")).collect();
        if listed.is_empty() {
            assert!(!fs.has_directories(), "{policy:?} {configured}: {allowed}");
        } else {
            assert_eq!(allowed, format!("Allowed directories:\n{}", listed.join("\n")), "{policy:?} {configured}");
        }
    }
    let w = World::with(|config| config.roots = Some(RootsPolicy::Replace));
    w.put("a b/x", "inside");
    let stay =
        w.fs.for_roots(vec!["file:///does/not/exist".to_owned(), "ws".to_owned(), String::new()])
            .await
            .expect("its roots");
    assert!(call(&stay, "read_text_file", json!({"path": "a b/x"})).await.is_ok(), "when none is valid the old stay");
    let taken = w.fs.for_roots(vec![format!("file://{}", w.at("a%20b"))]).await.expect("its roots");
    assert!(call(&taken, "read_text_file", json!({"path": "x"})).await.is_ok(), "URIs are decoded");
    assert!(call(&taken, "read_text_file", json!({"path": w.at("own")})).await.is_err(), "and nothing else is allowed");
}

fn choice(change: impl FnOnce(&mut ToolChoice)) -> ToolChoice {
    let mut choice = ToolChoice::default();
    change(&mut choice);
    choice
}

#[test]
fn the_environment_sets_every_option() {
    let vars = [
        ("MCP_FS_DIRS", "/a:/b c"),
        ("MCP_FS_READ_ONLY", "true"),
        ("MCP_FS_DENY", "**/.env, *.pem"),
        ("MCP_FS_MAX_READ_BYTES", "5"),
        ("MCP_FS_MAX_RESULT_BYTES", "6"),
        ("MCP_FS_MAX_ENTRIES", "7"),
        ("MCP_FS_MAX_SCAN", "8"),
        ("MCP_FS_ALLOW_DELETE", "1"),
        ("MCP_FS_ALLOW_ODD_NAMES", "yes"),
        ("MCP_FS_WINDOWS_NAMES", "on"),
        ("MCP_FS_FOLLOW_SYMLINKS", "never"),
        ("MCP_FS_ROOTS", "narrow"),
        ("MCP_FS_RESOURCES", "1"),
        ("MCP_FS_COMPAT", "1"),
        ("MCP_FS_TOOL_PREFIX", "auto"),
        ("MCP_FS_ENABLE_TOOLS", "fs_glob"),
        ("MCP_FS_DISABLE_TOOLS", "write_file,edit_file"),
        ("MCP_FS_TOOLSETS", "read"),
    ];
    let lookup = |name: &str| vars.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
    let strings = |list: &[&str]| list.iter().map(|item| (*item).to_owned()).collect::<Vec<_>>();
    let expected = Config::default().with(|config| {
        config.directories = strings(&["/a", "/b c"]);
        config.deny = strings(&["**/.env", "*.pem"]);
        config.max_read_bytes = 5;
        config.max_result_bytes = 6;
        config.max_entries = 7;
        config.max_scan = 8;
        config.allow_delete = true;
        config.allow_odd_names = true;
        config.windows_names = true;
        config.follow_symlinks = FollowSymlinks::Never;
        config.roots = Some(RootsPolicy::Narrow);
        config.resources = true;
        config.compat = true;
        config.tools = choice(|tools| {
            tools.prefix = ToolPrefix::Auto;
            tools.enable = strings(&["fs_glob"]);
            tools.disable = strings(&["write_file", "edit_file"]);
            tools.toolsets = strings(&["read"]);
            tools.read_only = true;
        });
    });
    assert_eq!(Config::from_env(Vars::new(&lookup)), Ok(expected));
    assert_eq!(Config::from_env(Vars::new(&|_| None)), Ok(Config::default()));
    for (name, value) in
        [("MCP_FS_READ_ONLY", "maybe"), ("MCP_FS_MAX_SCAN", "-1"), ("MCP_FS_ROOTS", "x"), ("MCP_FS_TOOL_PREFIX", "a b")]
    {
        let one = |asked: &str| (asked == name).then(|| value.to_owned());
        let error = Config::from_env(Vars::new(&one)).expect_err("a bad value").to_string();
        assert!(error.contains(value) && error.contains(name), "{error}");
    }
}

#[test]
fn tools_are_chosen_with_exclusion_and_read_only_winning() {
    let strings = |list: &str| list.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let all: Vec<&str> = SERVICE.tools.iter().map(|tool| tool.name).collect();
    let without = |gone: &str| -> String {
        let gone: Vec<&str> = gone.split_whitespace().collect();
        all.iter().filter(|name| !gone.contains(name)).copied().collect::<Vec<_>>().join(" ")
    };
    let writers = "write_file edit_file create_directory move_file fs_append fs_copy fs_delete";
    // enable, disable, tool sets, read-only, allow-delete: tools or the words of the refusal
    for (enable, disable, toolsets, read_only, allow_delete, expected) in [
        ("", "", "", false, false, Ok(without("fs_copy fs_delete"))),
        ("", "", "", false, true, Ok(without("fs_copy"))),
        ("", "", "", true, true, Ok(without(writers))),
        ("", "read_file write_file", "", false, false, Ok(without("fs_copy fs_delete read_file write_file"))),
        ("write_file", "write_file", "", false, false, Ok(String::new())),
        ("write_file fs_glob", "", "", false, false, Ok("write_file fs_glob".to_owned())),
        ("write_file fs_glob", "", "", true, false, Ok("fs_glob".to_owned())),
        ("write_file", "", "search", false, false, Ok("write_file search_files fs_search_content fs_glob".to_owned())),
        ("", "fs_glob", "search", false, false, Ok("search_files fs_search_content".to_owned())),
        ("", "", "all", false, false, Ok(without("fs_delete"))),
        ("fs_delete", "", "", false, true, Ok("fs_delete".to_owned())),
        ("fs_delete", "", "", false, false, Err("--allow-delete")),
        ("nosuch", "", "", false, false, Err("Unknown tool: nosuch")),
        ("", "nosuch", "", false, false, Err("Unknown tool: nosuch")),
        ("", "", "nosuch", false, false, Err("Unknown tool set: nosuch")),
    ] {
        let choice = choice(|tools| {
            (tools.enable, tools.disable) = (strings(enable), strings(disable));
            (tools.toolsets, tools.read_only) = (strings(toolsets), read_only);
            tools.grant("--allow-delete", allow_delete);
        });
        let chosen = choice.choose(&SERVICE);
        let context = format!("enable={enable} disable={disable} toolsets={toolsets} {read_only} {allow_delete}");
        match (chosen, expected) {
            (Ok(chosen), Ok(expected)) => {
                let names: Vec<String> = chosen.into_iter().map(|(_, name)| name).collect();
                assert_eq!(names.join(" "), expected, "{context}");
            }
            (Err(error), Err(words)) => assert!(error.to_string().contains(words), "{context}: {error}"),
            (chosen, expected) => panic!("{context}: {chosen:?} instead of {expected:?}"),
        }
    }
    for (prefix, first, last) in [
        (ToolPrefix::None, "read_file", "fs_append"),
        (ToolPrefix::Auto, "fs_read_file", "fs_append"),
        (ToolPrefix::Text("disk_".into()), "disk_read_file", "disk_fs_append"),
    ] {
        let choice = choice(|tools| {
            (tools.prefix, tools.disable) = (prefix, strings("fs_delete"));
            tools.grant("--allow-delete", true);
        });
        let chosen = choice.choose(&SERVICE).expect("a choice");
        let names: Vec<&str> = chosen.iter().map(|(_, name)| name.as_str()).collect();
        assert_eq!((names[0], names[names.len() - 1]), (first, last));
        assert!(names.iter().all(|name| name.len() <= 40));
    }
    let prefixed = choice(|tools| (tools.prefix, tools.disable) = (ToolPrefix::Auto, strings("fs_read_file")));
    assert!(!prefixed.choose(&SERVICE).expect("a choice").iter().any(|(tool, _)| tool.name == "read_file"));
}

/// Patterns that multiply in themselves: whatever is answered, it is answered.
#[tokio::test]
async fn patterns_that_multiply_end() {
    let w = World::new();
    for name in ["a".repeat(200), format!("{}x", "a/".repeat(50))] {
        w.put(&name, "x");
    }
    for pattern in [
        format!("{}b", "*a".repeat(100)),
        format!("{}b", "**/".repeat(200)),
        format!("{}c", "{a,*}".repeat(100)),
        format!("{}a{}", "{a,".repeat(100), "}".repeat(100)),
        format!("{}b", "[a-z]*".repeat(200)),
        "!".repeat(999),
    ] {
        for tool in ["search_files", "fs_glob"] {
            let answer = call(&w.fs, tool, json!({"path": w.at(""), "pattern": pattern})).await;
            assert!(answer.is_ok_and(|found| !found.is_null()), "{tool} {pattern}");
        }
        let args = json!({"path": w.at(""), "excludePatterns": [pattern]});
        assert!(call(&w.fs, "directory_tree", args).await.is_ok(), "{pattern}");
    }
}

#[tokio::test]
async fn thousands_of_edits_in_one_call_are_all_made() {
    let w = World::new();
    let lines = |word: &str| (0..2_000).map(|i| format!("{word} {i};\n")).collect::<String>();
    w.put("x", lines("old"));
    let edit = |i: usize| json!({"oldText": format!("old {i};"), "newText": format!("new {i};")});
    let edits: Vec<Value> = (0..2_000).map(edit).collect();
    w.text("edit_file", json!({"path": "x", "edits": edits})).await;
    assert_eq!(w.get("x"), lines("new"));
}
