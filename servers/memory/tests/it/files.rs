//! The file: its format byte for byte, what lies beside it, its limits, and several writers.

use crate::common;

use common::{World, at, connect, e_line, entity, r_line, refused, relation};
use linchpin_memory::{Config, Memory};
use serde_json::{Value, json};
use std::fs;
use std::time::{Duration, SystemTime};

#[tokio::test]
async fn the_file_is_written_byte_for_byte_as_published() {
    let w = World::new().await;
    w.create(&["a"]).await;
    assert_eq!(w.file(), r#"{"type":"entity","name":"a","entityType":"t","observations":[]}"#);
    w.call("create_relations", json!({ "relations": [relation("a", "b")] })).await;
    w.call("create_entities", json!({ "entities": [entity("b", &["é \" \\ \u{8}\u{1f}\u{7f}\u{2028} 😀", "\n"])] }))
        .await;
    assert_eq!(
        w.file(),
        "{\"type\":\"entity\",\"name\":\"a\",\"entityType\":\"t\",\"observations\":[]}\n\
         {\"type\":\"entity\",\"name\":\"b\",\"entityType\":\"t\",\"observations\":[\"é \\\" \\\\ \\b\\u001f\u{7f}\u{2028} 😀\",\"\\n\"]}\n\
         {\"type\":\"relation\",\"from\":\"a\",\"to\":\"b\",\"relationType\":\"r\"}"
    );
    w.call("delete_entities", json!({ "entityNames": ["a", "b"] })).await;
    assert_eq!(w.file(), "");
}

#[tokio::test]
async fn unknown_keys_types_and_lines_survive_every_tool_in_place() {
    let odd = |observations: &str| {
        format!(
            r#"{{"id":7.0,"type":"entity","name":"a","entityType":"t","observations":{observations},"tags":{{"x": [1e3]}}}}"#
        )
    };
    let note = r#"{"type":"note", "text":"kept  as it is"}"#;
    let torn = r#"{"type":"entity","name":"to"#;
    let tagged = r#"{"type":"relation","from":"a","to":"b","relationType":"r","weight":0.10}"#;
    let file = |a: &str, more: &[String]| {
        let mut lines = vec!["// head".to_owned(), odd(a), note.into(), e_line("b", &[])];
        lines.extend_from_slice(more);
        lines.extend([tagged.to_owned(), torn.to_owned()]);
        lines.join("\n")
    };
    let w = World::with(file("[ ]", &[]), |_| {}).await;
    let graph = w.value("read_graph", json!({})).await;
    assert_eq!(graph["entities"], json!([entity("a", &[]), entity("b", &[])]));
    assert_eq!(
        graph["warnings"],
        json!([
            "Line 1 of the memory file is not valid JSON. It is kept in the file and ignored.",
            "Line 6 of the memory file is not valid JSON. It is kept in the file and ignored."
        ])
    );
    w.create(&["c"]).await;
    assert_eq!(w.file(), file("[ ]", &[e_line("c", &[])]));
    w.call("add_observations", json!({ "observations": [{ "entityName": "a", "contents": ["o"] }] })).await;
    assert_eq!(w.file(), file("[\"o\"]", &[e_line("c", &[])]));
    w.call("delete_observations", json!({ "deletions": [{ "entityName": "a", "observations": ["o"] }] })).await;
    w.call("delete_entities", json!({ "entityNames": ["c"] })).await;
    assert_eq!(w.file(), file("[]", &[]));
    // Deleting the records around them leaves the foreign lines, and the file can still be opened.
    let gone = w.value("delete_entities", json!({ "entityNames": ["a", "b"] })).await;
    assert_eq!(w.file(), ["// head", note, torn].join("\n"));
    assert_eq!(gone["warnings"].as_array().unwrap().len(), 2);
    assert!(Memory::open(at(w.path())).is_ok());
}

#[tokio::test]
async fn every_tool_works_beside_a_line_that_does_not_parse_and_warns() {
    let w = World::with([e_line("a", &["x"]), "{torn".into(), e_line("b", &[])].join("\n"), |_| {}).await;
    for (tool, args) in [
        ("create_entities", json!({ "entities": [] })),
        ("create_relations", json!({ "relations": [] })),
        ("add_observations", json!({ "observations": [{ "entityName": "a", "contents": ["y"] }] })),
        ("delete_observations", json!({ "deletions": [] })),
        ("delete_relations", json!({ "relations": [] })),
        ("delete_entities", json!({ "entityNames": [] })),
        ("read_graph", json!({})),
        ("search_nodes", json!({ "query": "a" })),
        ("open_nodes", json!({ "names": ["a"] })),
        ("memory_read_page", json!({})),
        ("memory_undo", json!({})),
        ("memory_merge_entities", json!({ "names": ["b"], "into": "a" })),
    ] {
        let value = w.value(tool, args).await;
        assert_eq!(value["warnings"].as_array().map(Vec::len), Some(1), "{tool}: {value}");
    }
    assert_eq!(w.file(), [e_line("a", &["x"]), "{torn".into()].join("\n"));
}

#[tokio::test]
async fn a_byte_order_mark_and_carriage_returns_are_tolerated() {
    let w = World::with(format!("\u{feff}{}\r\n\r\n{}\r\n", e_line("a", &[]), r_line("a", "a")), |_| {}).await;
    let graph = w.value("read_graph", json!({})).await;
    assert_eq!(graph, json!({ "entities": [entity("a", &[])], "relations": [relation("a", "a")] }));
    w.create(&["b"]).await;
    assert_eq!(w.file(), [e_line("a", &[]), e_line("b", &[]), r_line("a", "a")].join("\n"));
}

#[tokio::test]
async fn bytes_that_are_not_utf_8_are_kept() {
    let mut file = e_line("a", &[]).into_bytes();
    file.extend_from_slice(b"\n{\"type\":\"entity\",\"name\":\"\xff\"}");
    let w = World::with(&file, |_| {}).await;
    w.create(&["b"]).await;
    let kept = fs::read(w.path()).unwrap();
    assert!(kept.windows(3).any(|bytes| bytes == b"\"\xff\""));
}

#[tokio::test]
async fn a_change_that_changes_nothing_writes_nothing() {
    let w = World::with(e_line("a", &[]), |_| {}).await;
    let before = fs::metadata(w.path()).unwrap().modified().unwrap();
    w.create(&["a"]).await;
    w.call("delete_entities", json!({ "entityNames": ["nobody"] })).await;
    assert_eq!(fs::metadata(w.path()).unwrap().modified().unwrap(), before);
    assert!(!w.beside("history").exists() && !w.beside("bak.1").exists());
}

#[tokio::test]
async fn what_others_write_is_seen_by_the_next_call() {
    let w = World::with(e_line("a", &[]), |_| {}).await;
    assert_eq!(w.names().await, ["a"]);
    // Of the same length, in place, at once.
    w.put(e_line("b", &[]));
    assert_eq!(w.names().await, ["b"]);
    // Replaced, with the same length and date.
    let date = fs::metadata(w.path()).unwrap().modified().unwrap();
    let other = w.dir.path().join("other");
    fs::write(&other, e_line("c", &[])).unwrap();
    fs::File::options().write(true).open(&other).unwrap().set_modified(date).unwrap();
    fs::rename(&other, w.path()).unwrap();
    w.create(&["d"]).await;
    assert_eq!(w.names().await, ["c", "d"]);
    // Removed: the memory is empty, as published.
    fs::remove_file(w.path()).unwrap();
    assert_eq!(w.names().await, Vec::<String>::new());
    w.create(&["e"]).await;
    assert_eq!(w.file(), e_line("e", &[]));
}

#[tokio::test]
async fn twenty_creates_at_once_all_survive() {
    let w = World::new().await;
    let other = connect(at(w.path()), None).await;
    let calls: Vec<_> = (0..40)
        .map(|n| {
            let client = if n % 2 == 0 { &w.client } else { &other };
            tokio::spawn(
                client.call("create_entities", json!({ "entities": [entity(&format!("n{n}"), &[])] })).into_future(),
            )
        })
        .collect();
    for call in calls {
        assert!(!call.await.unwrap().unwrap().is_error());
    }
    let mut names = w.names().await;
    names.sort();
    let mut expected: Vec<String> = (0..40).map(|n| format!("n{n}")).collect();
    expected.sort();
    assert_eq!(names, expected);
    let history = w.value("memory_history", json!({ "limit": 100 })).await;
    let mut ids: Vec<u64> = history["changes"].as_array().unwrap().iter().map(|c| c["id"].as_u64().unwrap()).collect();
    ids.reverse();
    assert_eq!(ids, (1..=40).collect::<Vec<u64>>(), "both servers number their changes in one row");
}

#[tokio::test]
async fn a_lock_that_is_never_released_ends_in_a_clear_error_and_reads_go_on() {
    let w = World::with(e_line("a", &[]), |config| config.lock_wait = Duration::from_millis(120)).await;
    let lock = fs::File::options().create(true).truncate(false).write(true).open(w.beside("lock")).unwrap();
    fs4::FileExt::lock(&lock).unwrap();
    let error = w.error("create_entities", json!({ "entities": [entity("b", &[])] })).await;
    assert_eq!(
        error,
        "Timed out waiting for another program to finish changing the memory file\nHint: Nothing was changed. Try again in a moment."
    );
    assert_eq!(w.names().await, ["a"]);
    drop(lock);
    w.create(&["b"]).await;
    assert_eq!(w.names().await, ["a", "b"]);
}

#[tokio::test]
async fn a_change_that_is_cancelled_while_it_waits_for_the_lock_is_not_made() {
    let w = World::with(e_line("a", &[]), |_| {}).await;
    let lock = fs::File::options().create(true).truncate(false).write(true).open(w.beside("lock")).unwrap();
    fs4::FileExt::lock(&lock).unwrap();
    // Dropping a call is how a client cancels it.
    let call = w.client.call("delete_entities", json!({ "entityNames": ["a"] }));
    assert!(tokio::time::timeout(Duration::from_millis(200), call).await.is_err(), "it waits");
    // Answered behind the cancellation, which was sent before.
    assert_eq!(w.names().await, ["a"]);
    drop(lock);
    // Waits its turn behind whatever is left of the other change.
    w.create(&["b"]).await;
    assert_eq!(w.names().await, ["a", "b"]);
    let history = w.value("memory_history", json!({})).await;
    assert_eq!(history["changes"].as_array().unwrap().len(), 1, "{history}");
}

#[cfg(unix)]
#[tokio::test]
async fn files_are_for_this_user_only_and_keep_the_mode_they_have() {
    use std::os::unix::fs::PermissionsExt;
    let w = World::new().await;
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    w.create(&["a"]).await;
    for path in [w.path(), w.beside("lock"), w.beside("history")] {
        assert_eq!(mode(&path), 0o600, "{}", path.display());
    }
    fs::set_permissions(w.path(), fs::Permissions::from_mode(0o664)).unwrap();
    w.create(&["b"]).await;
    assert_eq!(mode(&w.path()), 0o664);
    for (before, after) in [(0o6755, 0o755), (0o4644, 0o644), (0o2644, 0o644)] {
        fs::set_permissions(w.path(), fs::Permissions::from_mode(before)).unwrap();
        w.create(&[&format!("{before:o}")]).await;
        assert_eq!(fs::metadata(w.path()).unwrap().permissions().mode() & 0o7777, after, "{before:o}");
    }
    let fresh = w.dir.path().join("deep/er/m.jsonl");
    let client = connect(at(&fresh), None).await;
    common::call(&client, "create_entities", json!({ "entities": [entity("a", &[])] })).await;
    assert_eq!(mode(fresh.parent().unwrap()), 0o700);
}

#[tokio::test]
async fn a_backup_is_made_before_the_first_change_and_then_once_a_day() {
    let w = World::with(e_line("old", &[]), |config| config.backup = 2).await;
    let backup = |n: u8| fs::read_to_string(w.beside(&format!("bak.{n}"))).ok();
    w.create(&["a"]).await;
    assert_eq!((backup(1), backup(2)), (Some(e_line("old", &[])), None));
    w.create(&["b"]).await;
    assert_eq!((backup(1), backup(2)), (Some(e_line("old", &[])), None), "not again on the same day");
    let age = |days: u32| {
        let yesterday = SystemTime::now() - Duration::from_secs(86_400 + 60) * days;
        fs::File::options().write(true).open(w.beside("bak.1")).unwrap().set_modified(yesterday).unwrap();
    };
    age(1);
    w.create(&["c"]).await;
    assert_eq!(backup(1).unwrap(), ["old", "a", "b"].map(|n| e_line(n, &[])).join("\n"));
    assert_eq!(backup(2), Some(e_line("old", &[])));
    age(2);
    w.create(&["d"]).await;
    assert_eq!(backup(2).unwrap(), ["old", "a", "b"].map(|n| e_line(n, &[])).join("\n"));
    assert_eq!(backup(3), None);

    let none = World::with(e_line("old", &[]), |config| config.backup = 0).await;
    none.create(&["a"]).await;
    assert!(!none.beside("bak.1").exists());
}

#[tokio::test]
async fn quotas_are_errors_and_nothing_is_saved() {
    let w = World::with("", |config| config.max_entities = 3).await;
    w.create(&["a", "b"]).await;
    let many: Vec<Value> =
        (0..100_000).map(|n| json!({ "name": n.to_string(), "entityType": "", "observations": [] })).collect();
    let error = w.error("create_entities", json!({ "entities": many })).await;
    assert!(
        error.starts_with("Too many entities: there are 2, this would make 100002, the limit is 3\nHint: "),
        "{error}"
    );
    w.create(&["c"]).await;
    assert!(w.error("create_entities", json!({ "entities": [entity("d", &[])] })).await.contains("Too many"));
    assert_eq!(w.names().await, ["a", "b", "c"]);

    let w = World::with("", |config| config.max_file_bytes = 1 << 20).await;
    w.create(&["a"]).await;
    let large = "x".repeat(2 << 20);
    let error =
        w.error("add_observations", json!({ "observations": [{ "entityName": "a", "contents": [large] }] })).await;
    assert!(error.starts_with("The memory file would be too large: ") && error.len() < 400, "{error}");
    assert_eq!(w.file(), e_line("a", &[]));
    assert_eq!(fs::read_dir(w.dir.path()).unwrap().count(), 3, "no temporary file is left");

    // A file that others made larger is refused while it is, at start and later; what makes it smaller is not.
    w.put(e_line("a", &[&"x".repeat(1 << 20)]));
    assert!(w.error("read_graph", json!({})).await.contains("larger than 1048576 bytes"));
    assert!(refused(at(w.path()).with(|config| config.max_file_bytes = 1 << 20)).contains("--max-file-bytes"));
    let w = World::with([e_line("a", &["xx"]), e_line("b", &[])].join("\n"), |config| {
        config.max_entities = 1;
        config.max_file_bytes = 150;
    })
    .await;
    assert!(w.error("create_entities", json!({ "entities": [entity("c", &[])] })).await.contains("Too many"));
    w.call("delete_entities", json!({ "entityNames": ["b"] })).await;
    assert_eq!(w.names().await, ["a"]);
}

#[tokio::test]
async fn another_memory_is_imported_once() {
    let dir = tempfile::tempdir().unwrap();
    let source = dir.path().join("old memory.json");
    let odd = r#"{"type":"entity","name":"odd","entityType":"t","observations":[],"x":1}"#;
    fs::write(&source, [e_line("a", &["1", "2"]), odd.into(), r_line("a", "odd"), "{torn".into()].join("\n")).unwrap();
    let w = World::with(e_line("a", &["2", "3"]), |config| config.import = Some(source.clone())).await;
    let expected = [e_line("a", &["2", "3", "1"]), odd.into(), r_line("a", "odd")].join("\n");
    assert_eq!(w.file(), expected);
    let again = at(w.path()).with(|config| config.import = Some(source.clone()));
    let (_, warnings) = Memory::open(again.clone()).unwrap();
    assert_eq!((warnings, w.file()), (vec![], expected.clone()));
    assert!(fs::read_to_string(&source).unwrap().ends_with("{torn"), "the source is only read");
    w.call("memory_undo", json!({})).await;
    assert_eq!(w.file(), e_line("a", &["2", "3"]));
    // What is no memory, not there, or too much is refused, and nothing changes.
    let foreign = dir.path().join("settings.json");
    fs::write(&foreign, "{\n  \"a\": 1\n}").unwrap();
    for (import, change) in [(&foreign, None), (&dir.path().join("none"), None), (&source, Some(1))] {
        let config = at(w.path()).with(|config| {
            config.import = Some(import.clone());
            config.max_entities = change.unwrap_or(10);
        });
        refused(config);
    }
    let mut read_only = again;
    read_only.tools.read_only = true;
    assert!(refused(read_only).contains("read-only"));
    assert_eq!(w.file(), e_line("a", &["2", "3"]));
}

#[tokio::test]
async fn scopes_are_files_of_their_own_in_the_default_place() {
    let home = tempfile::tempdir().unwrap();
    let config = |scope: Option<&str>| {
        Config::default().with(|config| {
            config.data_home = Some(home.path().to_owned());
            config.scope = scope.map(str::to_owned);
        })
    };
    for (scope, file) in [(None, "memory.jsonl"), (Some("work"), "scopes/work.jsonl")] {
        let client = connect(config(scope), None).await;
        let path = home.path().join("mcp-memory").join(file);
        assert!(!path.parent().unwrap().join("memory.jsonl.lock").exists(), "nothing is made before the first change");
        let name = scope.unwrap_or("default");
        common::call(&client, "create_entities", json!({ "entities": [entity(name, &[])] })).await;
        assert_eq!(fs::read_to_string(path).unwrap(), e_line(name, &[]));
    }
    assert!(refused(config(Some("../x"))).contains("Invalid scope"));
}

#[tokio::test]
async fn a_relative_published_path_is_explained_at_start() {
    let config = |published| {
        Config::default().with(|config| {
            config.file = Some("target-that-is-not-there/m.jsonl".into());
            config.file_of_published = published;
        })
    };
    let (memory, warnings) = Memory::open(config(true)).unwrap();
    assert_eq!(memory.path(), std::env::current_dir().unwrap().join("target-that-is-not-there/m.jsonl"));
    assert!(warnings.len() == 1 && warnings[0].contains("package"), "{warnings:?}");
    assert_eq!(Memory::open(config(false)).unwrap().1, Vec::<String>::new());
}

/// Not a test of its own: opens a file in a home directory, for the one below.
#[test]
#[ignore = "run by the test below, in an environment of its own"]
fn child_opens_a_file_in_the_home_directory() {
    let named = |name: &str| std::env::var_os(name).map(std::path::PathBuf::from);
    let config = Config::default().with(|config| {
        config.file = named("TEST_FILE");
        config.import = named("TEST_IMPORT");
    });
    match Memory::open(config) {
        Ok((memory, _)) => eprintln!("OPENED {}", memory.path().display()),
        Err(fault) => eprintln!("REFUSED {fault}"),
    }
}

#[cfg(unix)]
#[test]
fn a_home_directory_that_is_not_there_is_said_and_no_directory_of_that_name_is_made() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("old.jsonl"), e_line("a", &[])).unwrap();
    let home = dir.path().display().to_string();
    let file = dir.path().join("m.jsonl").display().to_string();
    for (home, file, import, said) in [
        (None, "~/x.jsonl", None, "REFUSED Cannot determine the home directory for ~/x.jsonl".to_owned()),
        (Some("relative"), "~/x.jsonl", None, "REFUSED Cannot determine the home directory for ~/x.jsonl".to_owned()),
        (
            None,
            file.as_str(),
            Some("~/old.jsonl"),
            "REFUSED Cannot determine the home directory for ~/old.jsonl".to_owned(),
        ),
        (Some(&*home), "~nobody/x.jsonl", None, "REFUSED ~nobody/x.jsonl is in another user's home".to_owned()),
        (Some(&*home), "~/x.jsonl", None, format!("OPENED {home}/x.jsonl")),
        (Some(&*home), file.as_str(), Some("~/old.jsonl"), format!("OPENED {file}")),
    ] {
        let mut child = std::process::Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", "files::child_opens_a_file_in_the_home_directory", "--ignored", "--nocapture"]);
        child.current_dir(dir.path()).env_remove("HOME").env_remove("TEST_IMPORT").env("TEST_FILE", file);
        child.envs(home.map(|home| ("HOME", home))).envs(import.map(|import| ("TEST_IMPORT", import)));
        let output = child.output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(told.contains(&said), "{home:?} {file} {import:?}: {told}");
        assert!(!dir.path().join("~").exists() && !dir.path().join("~nobody").exists());
    }
    assert_eq!(std::fs::read_to_string(file).unwrap(), e_line("a", &[]));
}

/// What is left of a memory whose last record was deleted looks like no memory: the lock file says that it is one, by a
/// hash that is the same in every build. Earlier builds noted one that may not be.
#[test]
fn a_file_with_nothing_left_but_foreign_lines_is_known_by_a_lasting_note() {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("m.jsonl");
    let foreign: &[u8] = br#"{"type":"theirs"}"#;
    std::fs::write(&path, foreign).unwrap();
    let mut hasher = DefaultHasher::new();
    foreign.hash(&mut hasher);
    for (note, ok) in [
        ("left 17 fnv1a 7736efe763bda176".to_owned(), true),
        (format!("left 17 {:016x}", hasher.finish()), true),
        ("left 17 fnv1a 7736efe763bda177".to_owned(), false),
        (String::new(), false),
    ] {
        std::fs::write(dir.path().join("m.jsonl.lock"), &note).unwrap();
        assert_eq!(Memory::open(at(&path)).is_ok(), ok, "{note}");
    }
}
