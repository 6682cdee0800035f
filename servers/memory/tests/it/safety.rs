//! What must not happen: lost changes, other files written, names that are more than names.

use crate::common;

use common::{World, at, connect, e_line, entity, refused, relation};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What a child of the kill test gets: `FILE|NAME|FIRST|END`.
const CHILD: &str = "LINCHPIN_MEMORY_TEST_CHILD";

/// Not a test of its own: the process that the next one starts, many times, and kills.
#[tokio::test]
async fn child_process_that_creates_entities() {
    let Ok(orders) = std::env::var(CHILD) else { return };
    let [file, name, first, end] = orders.split('|').collect::<Vec<_>>()[..] else { panic!("{orders}") };
    let client = connect(at(file), None).await;
    for n in first.parse::<u32>().unwrap()..end.parse().unwrap() {
        let args = json!({ "entities": [entity(&format!("{name}-{n}"), &["an observation"])] });
        let result = client.call("create_entities", args).await.unwrap();
        assert!(!result.is_error(), "{}", result.text());
        // In one write, so that being killed does not leave half a number.
        std::io::stderr().write_all(format!("ACK {n};\n").as_bytes()).unwrap();
    }
}

/// Runs children until one of them created everything; each is killed after a while. What was acknowledged is answered.
fn create_with_kills(file: &Path, name: &str, end: u32, mut seed: u64) -> (BTreeSet<u32>, u32) {
    let (mut acknowledged, mut kills) = (BTreeSet::new(), 0);
    loop {
        let next = acknowledged.last().map_or(0, |last| last + 1);
        if next == end {
            return (acknowledged, kills);
        }
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "safety::child_process_that_creates_entities", "--nocapture", "--test-threads=1"])
            .env(CHILD, format!("{}|{name}|{next}|{end}", file.display()))
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let heard = Arc::new(Mutex::new(Vec::new()));
        let reader = std::thread::spawn({
            let heard = heard.clone();
            move || {
                for line in lines.map_while(Result::ok) {
                    match line.strip_prefix("ACK ").and_then(|line| line.strip_suffix(';')) {
                        Some(n) => heard.lock().unwrap().push(n.parse::<u32>().unwrap()),
                        None => eprintln!("{line}"),
                    }
                }
            }
        });
        // A xorshift is random enough for when to kill, and a failure can be repeated.
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        let wanted = 5 + (seed % 60) as usize;
        let pause = Duration::from_micros(seed % 4_000);
        loop {
            if heard.lock().unwrap().len() >= wanted {
                std::thread::sleep(pause);
                kills += u32::from(child.kill().is_ok());
                break;
            }
            if child.try_wait().unwrap().is_some() {
                break;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        child.wait().unwrap();
        reader.join().unwrap();
        acknowledged.extend(heard.lock().unwrap().iter());
    }
}

#[tokio::test]
async fn two_processes_that_are_killed_again_and_again_lose_nothing_acknowledged() {
    const END: u32 = 500;
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("memory.jsonl");
    let over = Arc::new(AtomicBool::new(false));
    // All the while, a reader like the published server sees whole files only.
    let watcher = std::thread::spawn({
        let (file, over) = (file.clone(), over.clone());
        move || {
            let mut looks = 0;
            while !over.load(Ordering::Relaxed) {
                if let Ok(text) = fs::read_to_string(&file) {
                    for line in text.split('\n') {
                        serde_json::from_str::<Value>(line).unwrap_or_else(|e| panic!("{e}: {line}"));
                    }
                    looks += 1;
                }
                std::thread::sleep(Duration::from_millis(3));
            }
            looks
        }
    });
    let workers = ["a", "b"].map(|name| {
        let file = file.clone();
        std::thread::spawn(move || create_with_kills(&file, name, END, 0x9e37_79b9 + u64::from(name.as_bytes()[0])))
    });
    let done = workers.map(|worker| worker.join().unwrap());
    over.store(true, Ordering::Relaxed);
    assert!(watcher.join().unwrap() > 10);
    let kills: u32 = done.iter().map(|(_, kills)| kills).sum();
    assert!(kills >= 10, "{kills} kills");

    let names: BTreeSet<String> = fs::read_to_string(&file)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["name"].as_str().unwrap().to_owned())
        .collect();
    for (name, (acknowledged, _)) in ["a", "b"].iter().zip(&done) {
        let lost: Vec<&u32> = acknowledged.iter().filter(|n| !names.contains(&format!("{name}-{n}"))).collect();
        assert!(lost.is_empty(), "{name} lost {lost:?}");
    }
    assert_eq!(names.len(), 2 * END as usize);
    let (_, warnings) = linchpin_memory::Memory::open(at(&file)).unwrap();
    assert_eq!(warnings, Vec::<String>::new());
    // A kill costs the time of one entity at most, and nothing is said to have been changed by somebody else.
    let all = at(&file).with(|config| config.max_result_bytes = 0);
    let page = common::call(&connect(all, None).await, "memory_read_page", json!({ "limit": 1000 })).await.1;
    let entities = page["entities"].as_array().unwrap();
    let undated = entities.iter().filter(|entity| entity.get("updated").is_none()).count();
    assert!(entities.len() == names.len() && undated <= kills as usize, "{undated} of {}", entities.len());
    assert!(entities.iter().all(|entity| entity["created"] == entity["updated"] && entity["changedAfter"].is_null()));
    // What lies around besides is bounded: a temporary file for each kill at most.
    let others = fs::read_dir(dir.path()).unwrap().count();
    assert!(others <= 5 + kills as usize, "{others}");
}

#[cfg(unix)]
#[test]
fn links_foreign_files_and_names_that_others_obey_are_refused_at_start() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    fs::create_dir_all(path(".vscode")).unwrap();
    fs::create_dir(path("folder.jsonl")).unwrap();
    let contents = [
        (".bashrc", "export PATH=/bin\n"),
        (".vscode/settings.json", "{\n  \"terminal.integrated.profiles.linux\": {}\n}\n"),
        ("one-line.json", "{\"name\":\"x\",\"type\":\"module\"}"),
        ("script.sh", "#!/bin/sh\necho hi\n"),
        ("log.jsonl", "{\"type\":\"user\",\"message\":\"hi\"}\n{\"type\":\"assistant\"}\n"),
        ("mostly.jsonl", &format!("rm -rf x\nrm -rf y\nrm -rf z\n{}", e_line("a", &[]))),
        ("binary.jsonl", "\u{0}\u{1}\u{2}"),
        ("real.jsonl", &e_line("a", &[])),
        ("empty.conf", ""),
    ];
    for (name, content) in contents {
        fs::write(path(name), content).unwrap();
    }
    std::os::unix::fs::symlink(path(".bashrc"), path("to-bashrc.jsonl")).unwrap();
    std::os::unix::fs::symlink(path("real.jsonl"), path("to-real.jsonl")).unwrap();
    std::os::unix::fs::symlink(path(".zshenv"), path("to-nothing.jsonl")).unwrap();
    std::os::unix::fs::symlink(path(".vscode"), path("innocent")).unwrap();
    rustix_fifo(&path("pipe.jsonl"));
    for (name, why) in [
        ("to-bashrc.jsonl", "is a symlink"),
        ("to-real.jsonl", "is a symlink"),
        ("to-nothing.jsonl", "is a symlink"),
        (".bashrc", "Not a memory file"),
        (".vscode/settings.json", "Not a memory file"),
        ("one-line.json", "Not a memory file"),
        ("script.sh", "Not a memory file"),
        ("log.jsonl", "Not a memory file"),
        ("mostly.jsonl", "Not a memory file"),
        ("binary.jsonl", "Not a memory file"),
        ("folder.jsonl", "is not a regular file"),
        ("pipe.jsonl", "is not a regular file"),
        // Not there, or empty.
        (".zshenv", "of this name"),
        (".vscode/tasks.json", "of this name"),
        ("innocent/tasks.json", "of this name"),
        ("run.sh", "of this name"),
        ("authorized_keys", "of this name"),
        ("empty.conf", "of this name"),
    ] {
        let error = refused(at(path(name)));
        assert!(
            error.contains(why) && error.contains("\nHint: ") | error.contains("not a regular file"),
            "{name}: {error}"
        );
        // In error texts nothing of what the file holds.
        assert!(!error.contains("rm -rf") && !error.contains("PATH="), "{error}");
    }
    for (name, content) in contents {
        assert_eq!(fs::read_to_string(path(name)).unwrap(), content, "{name}");
    }
    for name in [".zshenv", ".vscode/tasks.json", "run.sh", "authorized_keys", ".bashrc.lock", ".bashrc.history"] {
        assert!(!path(name).exists(), "{name}");
    }
}

#[cfg(unix)]
fn rustix_fifo(path: &Path) {
    let status = Command::new("mkfifo").arg(path).status().unwrap();
    assert!(status.success());
}

#[cfg(unix)]
#[tokio::test]
async fn a_link_that_appears_later_is_not_followed() {
    let w = World::with(e_line("a", &[]), |_| {}).await;
    let victim = w.dir.path().join("victim");
    fs::write(&victim, "precious").unwrap();
    fs::remove_file(w.path()).unwrap();
    std::os::unix::fs::symlink(&victim, w.path()).unwrap();
    assert!(w.error("create_entities", json!({ "entities": [entity("b", &[])] })).await.contains("is a symlink"));
    assert!(w.error("read_graph", json!({})).await.contains("is a symlink"));
    // Nor is one to a real memory, nor one at the files beside it.
    fs::remove_file(w.path()).unwrap();
    fs::write(w.path(), e_line("a", &[])).unwrap();
    for suffix in ["history", "bak.1"] {
        let _ = fs::remove_file(w.beside(suffix));
        std::os::unix::fs::symlink(&victim, w.beside(suffix)).unwrap();
    }
    let made = w.value("create_entities", json!({ "entities": [entity("c", &[])] })).await;
    assert!(made["warnings"][0].as_str().unwrap().contains("not added to the history"), "{made}");
    let _ = fs::remove_file(w.beside("lock"));
    std::os::unix::fs::symlink(&victim, w.beside("lock")).unwrap();
    assert!(w.error("create_entities", json!({ "entities": [entity("d", &[])] })).await.contains("Cannot lock"));
    assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
    assert_eq!(w.names().await, ["a", "c"]);
}

#[tokio::test]
async fn a_file_that_others_replace_by_something_else_is_left_alone() {
    let w = World::with(e_line("a", &[]), |_| {}).await;
    w.create(&["x"]).await;
    let settings = "{\n  \"a\": 1\n}\n";
    w.put(settings);
    assert!(w.error("create_entities", json!({ "entities": [entity("b", &[])] })).await.contains("Not a memory file"));
    assert_eq!(w.file(), settings);
}

#[tokio::test]
async fn no_name_is_more_than_a_name() {
    let names = [
        "__proto__",
        "constructor",
        "hasOwnProperty",
        "toString",
        "a\n{\"type\":\"entity\",\"name\":\"injected\",\"entityType\":\"t\",\"observations\":[]}",
        "\r\n\u{0}\u{1b}[31m",
        "$(touch /tmp/pwned) `id`",
        "../../etc/passwd",
        "\u{2028}\u{2029}\u{202e}",
        "",
        " ",
        "e\u{301}",
        "é",
        "😀",
    ];
    let w = World::new().await;
    let entities: Vec<Value> =
        names.iter().map(|name| json!({ "name": name, "entityType": name, "observations": [name] })).collect();
    let relations: Vec<Value> = names.iter().map(|name| relation(name, "__proto__")).collect();
    w.call("create_entities", json!({ "entities": entities })).await;
    w.call("create_relations", json!({ "relations": relations })).await;
    assert_eq!(w.file().lines().count(), 2 * names.len(), "one line for each record");
    assert_eq!(
        w.file().chars().filter(|c| c.is_control()).count(),
        2 * names.len() - 1,
        "only the line feeds between them"
    );
    // Read back by a server that knows nothing but the file.
    let fresh = connect(at(w.path()), None).await;
    for (name, entity) in names.iter().zip(&entities) {
        let opened = common::call(&fresh, "open_nodes", json!({ "names": [name] })).await.1;
        assert_eq!(opened["entities"], json!([entity]), "{name:?}");
    }
    for name in names {
        w.call("delete_entities", json!({ "entityNames": [name] })).await;
    }
    assert_eq!(w.file(), "");
}
