//! When entities were created and changed: kept in the history beside the memory file, shown where ours is, never a time that is not so.

use crate::common;

use common::{World, at, call, connect, e_line, entity, relation};
use linchpin_memory::Memory;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A line of the times as this server writes it.
fn t_line(name: &str, created: Option<&str>, updated: &str, line: &str) -> String {
    let created = created.map(|at| format!(",\"created\":\"{at}\"")).unwrap_or_default();
    format!("{{\"name\":{}{created},\"updated\":\"{updated}\",\"line\":\"{:016x}\"}}\n", json!(name), fingerprint(line))
}

/// FNV-1a, 64 bits, written again here: what is in files must not change with the code.
fn fingerprint(line: &str) -> u64 {
    line.bytes()
        .fold(14_695_981_039_346_656_037, |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(1_099_511_628_211))
}

const OLD: &str = "2020-02-03T04:05:06Z";
const LESS_OLD: &str = "2021-02-03T04:05:06Z";

/// What is known of when each entity came and changed.
async fn when(w: &World) -> BTreeMap<String, Value> {
    let page = w.value("memory_read_page", json!({ "limit": 1000 })).await;
    let entities = page["entities"].as_array().unwrap().iter();
    entities
        .map(|entity| {
            let mut times = entity.as_object().unwrap().clone();
            times.retain(|key, _| ["created", "updated", "changedAfter"].contains(&key.as_str()));
            (entity["name"].as_str().unwrap().to_owned(), Value::Object(times))
        })
        .collect()
}

/// A time that is now, give or take the seconds that a test takes.
fn is_now(value: &Value) -> bool {
    let shown = value.as_str().unwrap();
    assert!(shown.len() == 20 && shown.ends_with('Z'), "{shown}");
    let (date, time) = (&shown[..10], &shown[11..19]);
    let days = |text: &str| -> u64 {
        let parts: Vec<u64> = text.split('-').map(|part| part.parse().unwrap()).collect();
        let leap = |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
        let months = [31, if leap(parts[0]) { 29 } else { 28 }, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
        let years: u64 = (1970..parts[0]).map(|year| 365 + u64::from(leap(year))).sum();
        years + months[..parts[1] as usize - 1].iter().sum::<u64>() + parts[2] - 1
    };
    let clock: Vec<u64> = time.split(':').map(|part| part.parse().unwrap()).collect();
    let at = days(date) * 86_400 + clock[0] * 3_600 + clock[1] * 60 + clock[2];
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs().abs_diff(at) < 600
}

/// Whether an entity was created and changed just now.
fn is_new(times: &Value) -> bool {
    is_now(&times["created"]) && is_now(&times["updated"]) && times["changedAfter"].is_null()
}

/// A memory of these lines, with these times.
async fn dated(lines: &[String], times: &[String]) -> World {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("memory.jsonl"), lines.join("\n")).unwrap();
    fs::write(dir.path().join("memory.jsonl.history"), times.concat()).unwrap();
    let client = connect(at(dir.path().join("memory.jsonl")), None).await;
    World { dir, client }
}

#[tokio::test]
async fn times_are_shown_by_our_tools_and_never_by_the_published_ones_nor_in_the_file() {
    let w = World::with(e_line("before", &["x"]), |_| {}).await;
    w.call("create_entities", json!({ "entities": [entity("a", &["x y"])] })).await;
    let times = when(&w).await;
    assert!(is_new(&times["a"]), "{times:?}");
    assert_eq!(times["before"], json!({}), "of what others wrote no time is made up");
    let found = w.value("memory_search", json!({ "query": "x" })).await;
    let hit = |name: &str| found["results"].as_array().unwrap().iter().find(|hit| hit["name"] == name).unwrap().clone();
    assert!(is_new(&hit("a")) && hit("before").get("updated").is_none(), "{found}");
    assert_eq!(w.file(), [e_line("before", &["x"]), e_line("a", &["x y"])].join("\n"));
    for (tool, args, text) in [
        ("create_entities", json!({ "entities": [entity("b", &[])] }), "b"),
        ("create_relations", json!({ "relations": [relation("a", "b")] }), "r"),
        ("add_observations", json!({ "observations": [{ "entityName": "a", "contents": ["z"] }] }), "z"),
        ("read_graph", json!({}), "before"),
        ("search_nodes", json!({ "query": "a" }), "a"),
        ("open_nodes", json!({ "names": ["a"] }), "a"),
        ("delete_observations", json!({ "deletions": [{ "entityName": "a", "observations": ["z"] }] }), "deleted"),
        ("delete_relations", json!({ "relations": [relation("a", "b")] }), "deleted"),
        ("delete_entities", json!({ "entityNames": ["b"] }), "deleted"),
    ] {
        let (shown, value) = w.call(tool, args).await;
        let all = format!("{shown}{value}");
        assert!(all.contains(text), "{tool}: {all}");
        for word in ["created\"", "updated", "changedAfter", "Z\""] {
            assert!(!all.contains(word), "{tool}: {all}");
        }
    }
    let resource = w.client.read("memory://knowledge-graph").await.unwrap().text();
    assert!(!resource.contains("updated"), "{resource}");
}

#[tokio::test]
async fn a_change_moves_the_one_time_and_leaves_the_other() {
    let lines = [e_line("a", &["1"]), e_line("b", &[])];
    let times = [t_line("a", Some(OLD), LESS_OLD, &lines[0]), t_line("b", None, OLD, &lines[1])];
    let w = dated(&lines, &times).await;
    assert_eq!(
        when(&w).await,
        BTreeMap::from([
            ("a".into(), json!({ "created": OLD, "updated": LESS_OLD })),
            ("b".into(), json!({ "updated": OLD }))
        ])
    );
    let first = w.value("memory_read_page", json!({ "limit": 1 })).await;
    let page = w.value("memory_read_page", json!({ "limit": 1, "cursor": first["next_cursor"] })).await;
    assert_eq!(page["entities"][0]["name"], "b");
    assert!(page["entities"][0]["updated"] == OLD && page["entities"][0].get("created").is_none(), "{page}");
    for name in ["a", "b"] {
        w.call("add_observations", json!({ "observations": [{ "entityName": name, "contents": ["2"] }] })).await;
    }
    let times = when(&w).await;
    assert!(times["a"]["created"] == OLD && is_now(&times["a"]["updated"]), "{times:?}");
    assert!(times["b"].get("created").is_none() && is_now(&times["b"]["updated"]), "{times:?}");
    // Merging changes what is left, and only that.
    w.call("memory_merge_entities", json!({ "names": ["b"], "into": "a" })).await;
    let merged = when(&w).await;
    assert!(merged["a"]["created"] == OLD && merged.len() == 1, "{merged:?}");
    // A change that changes nothing is none.
    let before = fs::read(w.beside("history")).unwrap();
    w.create(&["a"]).await;
    assert_eq!(fs::read(w.beside("history")).unwrap(), before);
}

#[tokio::test]
async fn what_another_program_changed_has_no_time_of_ours() {
    let lines = [e_line("same", &[]), e_line("more", &["1"]), e_line("gone", &[]), e_line("anew", &["1"])];
    let times: Vec<String> =
        lines.iter().zip(["same", "more", "gone", "anew"]).map(|(l, n)| t_line(n, Some(OLD), LESS_OLD, l)).collect();
    let w = dated(&lines, &times).await;
    // As the published server leaves it.
    w.put(
        [lines[0].clone(), e_line("more", &["1", "2"]), e_line("anew", &["other"]), e_line("theirs", &[])].join("\n"),
    );
    let after = json!({ "changedAfter": LESS_OLD });
    let expected = [
        ("same", json!({ "created": OLD, "updated": LESS_OLD })),
        ("more", after.clone()),
        ("anew", after.clone()),
        ("theirs", json!({})),
    ];
    assert_eq!(when(&w).await, expected.into_iter().map(|(n, v)| (n.to_owned(), v)).collect());
    // When it was created is not known any more, also after a change of ours: it may have been made anew.
    w.call("add_observations", json!({ "observations": [{ "entityName": "more", "contents": ["3"] }] })).await;
    let times = when(&w).await;
    assert!(times["more"].get("created").is_none() && is_now(&times["more"]["updated"]), "{times:?}");
    // A name that comes back is another entity.
    w.create(&["gone"]).await;
    assert!(is_new(&when(&w).await["gone"]));
    w.call("delete_entities", json!({ "entityNames": ["gone"] })).await;
    w.put([w.file(), e_line("gone", &[])].join("\n"));
    assert_eq!(when(&w).await["gone"], json!({}));
}

#[tokio::test]
async fn of_two_entities_of_one_name_no_time_is_known() {
    let line = e_line("a", &[]);
    let w = dated(&[line.clone(), e_line("a", &["other"])], &[t_line("a", Some(OLD), OLD, &line)]).await;
    let page = w.value("memory_read_page", json!({})).await;
    assert_eq!(page["entities"], json!([entity("a", &[]), entity("a", &["other"])]));
}

#[tokio::test]
async fn what_is_undone_was_created_when_it_was_and_changed_now() {
    let lines = [e_line("a", &["1"]), e_line("b", &[])];
    let w = dated(&lines, &[t_line("a", Some(OLD), LESS_OLD, &lines[0])]).await;
    w.call("delete_entities", json!({ "entityNames": ["a", "b"] })).await;
    assert!(when(&w).await.is_empty());
    w.call("memory_undo", json!({})).await;
    let times = when(&w).await;
    assert!(times["a"]["created"] == OLD && is_now(&times["a"]["updated"]), "{times:?}");
    assert!(times["b"].get("created").is_none() && is_now(&times["b"]["updated"]), "{times:?}");
    // Undoing a creation and doing it again.
    w.create(&["c"]).await;
    w.call("memory_undo", json!({})).await;
    w.call("memory_undo", json!({ "id": 4 })).await;
    assert!(is_new(&when(&w).await["c"]));
}

#[tokio::test]
async fn imported_entities_come_when_they_are_imported() {
    let dir = tempfile::tempdir().unwrap();
    let source = dir.path().join("old.jsonl");
    fs::write(&source, [e_line("a", &["1"]), e_line("b", &[])].join("\n")).unwrap();
    let w = World::with(e_line("a", &[]), |config| config.import = Some(source)).await;
    let times = when(&w).await;
    assert!(is_new(&times["b"]) && times["a"].get("created").is_none() && is_now(&times["a"]["updated"]), "{times:?}");
}

#[tokio::test]
async fn search_finds_what_was_changed_since() {
    let names = ["old", "mid", "new", "theirs", "later"];
    let lines: Vec<String> = names.iter().map(|name| e_line(name, &["word", "2", "3", "4"])).collect();
    let w = dated(
        &lines,
        &[
            t_line("old", Some(OLD), OLD, &lines[0]),
            t_line("mid", Some(OLD), LESS_OLD, &lines[1]),
            t_line("new", None, "2022-01-01T00:00:00Z", &lines[2]),
            // Changed by another program after this.
            t_line("later", Some(OLD), LESS_OLD, "something else"),
        ],
    )
    .await;
    for (query, since, found, undated) in [
        ("word", "2020-01-01", vec!["old", "mid", "new", "later"], 1),
        ("word", "2020-02-03T04:05:06Z", vec!["old", "mid", "new", "later"], 1),
        ("word", "2020-02-03T04:05:07Z", vec!["mid", "new", "later"], 1),
        ("word", "2021-02-04", vec!["new"], 2),
        ("word", "2023-01-01", vec![], 2),
        // Without words the newest first.
        ("", "2020-01-01", vec!["new", "mid", "later", "old"], 1),
        ("?", "2021-02-03", vec!["new", "mid", "later"], 1),
    ] {
        let value = w.value("memory_search", json!({ "query": query, "changedSince": since })).await;
        let results = value["results"].as_array().unwrap();
        let got: Vec<&str> = results.iter().map(|hit| hit["name"].as_str().unwrap()).collect();
        let in_order = query == "word" || got == found;
        let (mut sorted, mut expected) = (got.clone(), found.clone());
        sorted.sort_unstable();
        expected.sort_unstable();
        assert!(sorted == expected && in_order, "{query} {since}: {got:?}");
        assert_eq!((&value["total"], &value["undated"]), (&json!(found.len()), &json!(undated)), "{query} {since}");
    }
    let value = w.value("memory_search", json!({ "query": "", "changedSince": "2022-01-01" })).await;
    assert_eq!(value["results"][0]["observations"], json!(["2", "3", "4"]), "the last ones");
    let mut cursor = Value::Null;
    let mut pages = Vec::new();
    loop {
        let args = json!({ "query": "", "changedSince": "2020-01-01", "limit": 3, "cursor": cursor });
        let page = w.value("memory_search", args).await;
        pages.extend(page["results"].as_array().unwrap().iter().map(|hit| hit["name"].as_str().unwrap().to_owned()));
        cursor = page["next_cursor"].clone();
        if cursor.is_null() {
            break;
        }
    }
    assert_eq!(pages, ["new", "mid", "later", "old"]);
    assert!(w.value("memory_search", json!({ "query": "word" })).await.get("undated").is_none());
    for wrong in ["yesterday", "2020-13-01", "2020-02-03T04:05:06", ""] {
        let error = w.error("memory_search", json!({ "query": "word", "changedSince": wrong })).await;
        assert!(error.starts_with("Invalid time: ") && error.contains("2026-11-21T09:14:06Z"), "{error}");
    }
    assert!(w.error("memory_search", json!({ "query": "" })).await.contains("changedSince"));
}

#[tokio::test]
async fn what_does_not_count_any_more_goes_when_the_file_is_written_anew() {
    let lines = [e_line("a", &[]), e_line("b", &[])];
    let torn = "{\"name\":\"b\",\"upd\n";
    let w = dated(&lines, &[t_line("a", Some(OLD), OLD, &lines[0]), "{\"other\":1}\n".into(), torn.into()]).await;
    assert_eq!(when(&w).await["a"], json!({ "created": OLD, "updated": OLD }));
    assert!(Memory::open(at(w.path())).unwrap().1.is_empty());
    let many: Vec<Value> = (0..600).map(|n| entity(&format!("n{n}"), &[])).collect();
    let names: Vec<String> = (0..600).map(|n| format!("n{n}")).collect();
    w.call("create_entities", json!({ "entities": many })).await;
    w.call("delete_entities", json!({ "entityNames": names })).await;
    let text = fs::read_to_string(w.beside("history")).unwrap();
    assert_eq!(times_lines(&text), 1, "it was written anew");
    assert!(!text.contains("other") && !text.contains("\"upd\n"));
    assert_eq!(when(&w).await["a"], json!({ "created": OLD, "updated": OLD }));
    let history = w.value("memory_history", json!({})).await;
    assert_eq!(history["changes"].as_array().unwrap().len(), 2, "{history}");
}

/// The lines that are of times, not of changes.
fn times_lines(text: &str) -> usize {
    text.lines().filter(|line| line.starts_with("{\"name\":")).count()
}

#[tokio::test]
async fn nothing_that_may_be_wrong_with_the_times_hurts_the_memory() {
    let line = e_line("a", &["x"]);
    let good = t_line("a", Some(OLD), OLD, &line);
    for (what, times, told) in [
        ("foreign", b"#!/bin/sh\necho hi\n".to_vec(), true),
        ("json of others", b"{\"a\":1}\n{\"b\":2}\n".to_vec(), true),
        ("binary", vec![0, 159, 146, 150, b'\n', 255], true),
        ("huge", vec![b'x'; (64 << 20) + 1], true),
        ("empty", Vec::new(), false),
        ("blank", b"\n \n\r\n".to_vec(), false),
        ("torn", good.as_bytes()[..good.len() / 2].to_vec(), false),
        ("nonsense for values", good.replace(OLD, "yesterday").into_bytes(), false),
        ("wrong types", b"{\"name\":\"a\",\"created\":7,\"updated\":[],\"line\":{}}\n".to_vec(), false),
        ("no fingerprint", b"{\"name\":\"a\",\"updated\":\"2020-02-03T04:05:06Z\"}\n".to_vec(), false),
    ] {
        let w = World::with(&line, |_| {}).await;
        fs::write(w.beside("history"), &times).unwrap();
        let opened = Memory::open(at(w.path())).unwrap().1;
        assert_eq!(!opened.is_empty(), told, "{what}: {opened:?}");
        assert_eq!(when(&w).await["a"], json!({}), "{what}");
        let made = w.value("create_entities", json!({ "entities": [entity("b", &[])] })).await;
        assert_eq!(made["warnings"].is_array(), told, "{what}: {made}");
        assert_eq!(w.file(), [line.clone(), e_line("b", &[])].join("\n"), "{what}");
        let after = fs::read(w.beside("history")).unwrap();
        assert!(after.starts_with(&times) && (after.len() == times.len()) == told, "{what}: nothing of it is lost");
        assert_eq!(is_told(&when(&w).await["b"]), !told, "{what}");
        if !told {
            assert_eq!(w.value("memory_history", json!({})).await["changes"].as_array().unwrap().len(), 1, "{what}");
        }
    }
}

fn is_told(times: &Value) -> bool {
    times.get("updated").is_some()
}

#[cfg(unix)]
#[tokio::test]
async fn links_and_pipes_in_the_place_of_the_times_are_not_touched() {
    let w = World::with(e_line("a", &[]), |_| {}).await;
    let victim = w.dir.path().join("victim");
    fs::write(&victim, "precious").unwrap();
    std::os::unix::fs::symlink(&victim, w.beside("history")).unwrap();
    let warned = async || {
        let opened = Memory::open(at(w.path())).unwrap().1;
        assert!(opened.len() == 1 && opened[0].starts_with("History and timestamps are disabled: "), "{opened:?}");
        let name = fs::read_dir(w.dir.path()).unwrap().count().to_string() + &w.file().len().to_string();
        let made = w.value("create_entities", json!({ "entities": [entity(&name, &[])] })).await;
        assert!(made["warnings"][0].as_str().unwrap().contains("but not added to the history"), "{made}");
        assert!(w.names().await.contains(&name) && when(&w).await[&name] == json!({}));
    };
    warned().await;
    assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
    fs::remove_file(w.beside("history")).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(w.beside("history")).status().unwrap().success());
    warned().await;
    fs::remove_file(w.beside("history")).unwrap();
    fs::create_dir(w.beside("history")).unwrap();
    warned().await;
    fs::remove_dir(w.beside("history")).unwrap();
    w.create(&["last"]).await;
    assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(fs::metadata(w.beside("history")).unwrap().permissions().mode() & 0o777, 0o600);
    }
}

/// A process that is killed between the memory file and the times leaves the times of before, whole or with a torn line more:
/// every such state is looked at. What is shown must have been so.
#[tokio::test]
async fn wherever_a_process_is_killed_a_time_is_lost_and_none_is_wrong() {
    let lines = [e_line("kept", &[]), e_line("changed", &["1"]), e_line("deleted", &[])];
    let times: Vec<String> = lines
        .iter()
        .zip(["kept", "changed", "deleted"])
        .map(|(line, name)| t_line(name, Some(OLD), LESS_OLD, line))
        .collect();
    let w = dated(&lines, &times).await;
    let before = fs::read(w.beside("history")).unwrap();
    w.call("add_observations", json!({ "observations": [{ "entityName": "changed", "contents": ["2"] }] })).await;
    w.create(&["new"]).await;
    w.call("delete_entities", json!({ "entityNames": ["deleted"] })).await;
    let (file, after) = (fs::read(w.path()).unwrap(), fs::read(w.beside("history")).unwrap());
    assert!(after.starts_with(&before) && after.len() > before.len());
    // Every end of a line, and enough places in between.
    let ends = |at: usize| at == after.len() || after[at] == b'\n' || after[at - 1] == b'\n';
    for length in (before.len()..=after.len()).filter(|at| at % 11 == 0 || ends(*at)) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("memory.jsonl");
        fs::write(&path, &file).unwrap();
        fs::write(dir.path().join("memory.jsonl.history"), &after[..length]).unwrap();
        let (_, warnings) = Memory::open(at(&path)).unwrap();
        assert!(warnings.is_empty(), "{length}: {warnings:?}");
        let w = World { client: connect(at(&path), None).await, dir };
        let check = |times: BTreeMap<String, Value>| {
            assert_eq!(times["kept"], json!({ "created": OLD, "updated": LESS_OLD }), "{length}");
            let changed = &times["changed"];
            let lost = *changed == json!({ "changedAfter": LESS_OLD });
            assert!(lost || changed["created"] == OLD && is_now(&changed["updated"]), "{length}: {changed}");
            assert!(times["new"] == json!({}) || is_new(&times["new"]), "{length}: {}", times["new"]);
        };
        check(when(&w).await);
        // The next change goes on behind it, and is not lost in a torn line.
        w.create(&["next", "deleted"]).await;
        let times = when(&w).await;
        assert!(is_new(&times["next"]) && is_new(&times["deleted"]), "{length}: {times:?}");
        check(times);
        let w = World { client: connect(at(&path), None).await, dir: w.dir };
        let times = when(&w).await;
        assert!(is_new(&times["next"]) && is_new(&times["deleted"]) && times.len() == 5, "{length}: {times:?}");
        check(times);
    }
}

#[tokio::test]
async fn two_servers_on_one_file_know_the_times_of_both() {
    let w = World::new().await;
    let other = connect(at(w.path()), None).await;
    for n in 0..10 {
        w.create(&[&format!("ours{n}")]).await;
        call(&other, "create_entities", json!({ "entities": [entity(&format!("theirs{n}"), &[])] })).await;
        call(
            &other,
            "add_observations",
            json!({ "observations": [{ "entityName": format!("ours{n}"), "contents": ["o"] }] }),
        )
        .await;
    }
    let times = when(&w).await;
    assert!(times.len() == 20 && times.values().all(is_new), "{times:?}");
    // Also when one of them writes the file anew.
    let many: Vec<Value> = (0..600).map(|n| entity(&format!("n{n}"), &[])).collect();
    call(&other, "create_entities", json!({ "entities": many })).await;
    let names: Vec<String> = (0..600).map(|n| format!("n{n}")).collect();
    call(&other, "delete_entities", json!({ "entityNames": names })).await;
    assert!(times_lines(&fs::read_to_string(w.beside("history")).unwrap()) <= 20);
    w.create(&["after"]).await;
    let times = when(&w).await;
    assert!(times.len() == 21 && times.values().all(is_new), "{times:?}");
}

/// What readers see while others write is never a time that is not so: nothing but this server writes here, so everything has
/// its times, and nothing is said to have been changed by another program.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn readers_in_the_middle_of_changes_see_times_that_fit() {
    let w = World::new().await;
    w.create(&["a", "b"]).await;
    let path = w.path();
    let changing = tokio::spawn(async move {
        let client = connect(at(&path), None).await;
        for n in 0..60 {
            let args = json!({ "observations": [{ "entityName": "a", "contents": [format!("o{n}")] }] });
            call(&client, "add_observations", args).await;
        }
    });
    let same = w.client.clone();
    let here = tokio::spawn(async move {
        for n in 0..60 {
            let args = json!({ "observations": [{ "entityName": "b", "contents": [format!("o{n}")] }] });
            call(&same, "add_observations", args).await;
        }
    });
    let mut looks = 0;
    while !(changing.is_finished() && here.is_finished()) {
        for (name, times) in when(&w).await {
            // A change of the other process between its two writes is one that is not known yet; its time before is true.
            let between = times.get("changedAfter").is_some_and(is_now) && name == "a";
            assert!(is_new_or_lost(&times) || between, "{name}: {times}");
        }
        looks += 1;
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    changing.await.unwrap();
    here.await.unwrap();
    assert!(looks > 5);
    let times = when(&w).await;
    assert!(times.values().all(|times| is_now(&times["updated"])), "{times:?}");
}

fn is_new_or_lost(times: &Value) -> bool {
    times.get("updated").is_some_and(is_now) && times.get("changedAfter").is_none()
}

#[tokio::test]
async fn the_file_of_times_stays_small() {
    let w = World::new().await;
    let many: Vec<Value> = (0..500).map(|n| entity(&format!("n{n}"), &[])).collect();
    w.call("create_entities", json!({ "entities": many })).await;
    for n in 0..5 {
        let more: Vec<Value> =
            (0..500).map(|at| json!({ "entityName": format!("n{at}"), "contents": [n.to_string()] })).collect();
        w.call("add_observations", json!({ "observations": more })).await;
        let lines = times_lines(&fs::read_to_string(w.beside("history")).unwrap());
        assert!(lines <= 500 * 2 + 1_000, "{lines}");
    }
    assert!(when(&w).await.values().all(is_new));
    // Very long names: what would be more than 32 MiB goes, the oldest first; the memory itself has them all.
    let long = |n: u32| format!("{n:02}{}", "x".repeat(800_000));
    let lines: Vec<String> = (0..45).map(|n| e_line(&long(n), &[])).collect();
    let at = |n: u32| format!("2020-01-01T00:00:{n:02}Z");
    let times: Vec<String> = (0..45).map(|n| t_line(&long(n), None, &at(n), &lines[n as usize])).collect();
    let w = dated(&lines, &times).await;
    assert!(fs::metadata(w.beside("history")).unwrap().len() > 32 << 20);
    w.create(&["new"]).await;
    let text = fs::read_to_string(w.beside("history")).unwrap();
    assert!(text.len() <= 8 << 20 && text.len() > 7 << 20, "{}", text.len());
    assert!(text.contains("\"new\"") && text.contains(&at(44)) && text.contains(&at(37)) && !text.contains(&at(30)));
    assert_eq!(w.file().lines().count(), 46);
}

#[tokio::test]
async fn times_can_be_off_and_a_read_only_memory_writes_none() {
    let line = e_line("a", &[]);
    let kept = t_line("a", Some(OLD), OLD, &line);
    let w = World::with(&line, |config| (config.timestamps, config.history) = (false, 5)).await;
    fs::write(w.beside("history"), &kept).unwrap();
    w.create(&["b"]).await;
    assert_eq!(when(&w).await, BTreeMap::from([("a".into(), json!({})), ("b".into(), json!({}))]));
    let found = w.value("memory_search", json!({ "query": "a", "changedSince": "2020-01-01" })).await;
    assert_eq!((&found["total"], &found["undated"]), (&json!(0), &json!(1)));
    let text = fs::read_to_string(w.beside("history")).unwrap();
    assert!(text.starts_with(&kept) && times_lines(&text) == 1, "{text}");
    // With neither there is no file; and what others keep stays when the file is written anew.
    let other = World::with(&line, |config| (config.timestamps, config.history) = (false, 0)).await;
    other.create(&["c"]).await;
    assert!(!other.beside("history").exists());
    for n in 0..20 {
        w.create(&[&format!("n{n}")]).await;
    }
    let text = fs::read_to_string(w.beside("history")).unwrap();
    assert!(text.starts_with(&kept) && times_lines(&text) == 1 && text.lines().count() <= 17, "{text}");

    fs::write(w.beside("history"), &kept).unwrap();
    let mut config = at(w.path());
    config.tools.read_only = true;
    let client = connect(config, None).await;
    let page = call(&client, "memory_read_page", json!({})).await.1;
    assert_eq!(page["entities"][0]["updated"], OLD);
    assert_eq!(fs::read_to_string(w.beside("history")).unwrap(), kept);
}

#[tokio::test]
async fn what_killed_processes_left_is_removed_by_the_next_start_or_change() {
    let w = World::with(e_line("a", &[]), |_| {}).await;
    let left = |what: &str| w.beside(&format!("{what}0123456789abcdef0123456789abcdef.tmp"));
    let all = ["", "history.", "bak.1."];
    let leave = || all.iter().for_each(|what| fs::write(left(what), "x").unwrap());
    let there = || all.iter().filter(|what| left(what).exists()).count();
    leave();
    // Whoever holds the lock may be writing one of them; the start does not wait for that.
    let lock = fs::File::options().write(true).create(true).truncate(false).open(w.beside("lock")).unwrap();
    fs4::FileExt::lock(&lock).unwrap();
    Memory::open(at(w.path())).unwrap();
    assert_eq!(there(), 3, "while somebody holds the lock");
    drop(lock);
    w.create(&["b"]).await;
    assert_eq!(there(), 0, "after a change");
    leave();
    let mut read_only = at(w.path());
    read_only.tools.read_only = true;
    Memory::open(read_only).unwrap();
    assert_eq!(there(), 3, "after a start that writes nothing");
    Memory::open(at(w.path())).unwrap();
    assert_eq!(there(), 0, "after a start");
}
