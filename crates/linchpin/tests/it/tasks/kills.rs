//! Tasks whose process is killed again and again: none that was told is lost, each ends once, and no step is repeated that was
//! kept.

use super::node::{LEASE_MS, Node, STEPS, answer, counts, get, make, until};
use crate::common;
use linchpin::client::ReconnectPolicy;
use linchpin::prelude::*;
use linchpin::store::Store;
use linchpin::transport::unix;
use linchpin_store::Expect;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// Makes tasks, and kills the process so many times while they run. Before each kill some are made, and all that ask something
/// are answered, the last one right before.
async fn survive(tasks: usize, kills: usize) {
    let folder = tempfile::tempdir().expect("a folder");
    let folder: &Path = folder.path();
    let mut node = Node::start(folder, "s", None);
    let mut client = node.client().await;
    let (mut ids, mut ends) = (Vec::new(), HashMap::<String, Value>::new());
    // How many kills each has lived through, and which were answered.
    let mut begun_at = HashMap::new();
    let mut answered = Vec::new();
    for kill in 0..kills {
        let share = tasks * (kill + 1) / kills - ids.len();
        for n in 0..share {
            let tool = if n % 4 == 3 { "once" } else { "steps" };
            let id = make(&mut client, tool, json!({})).await;
            begun_at.insert(id.clone(), kill);
            ids.push((id, tool));
        }
        tokio::time::sleep(Duration::from_millis(20 + 37 * (kill as u64 % 7))).await;
        for (id, _) in &ids {
            if !ends.contains_key(id) && !answered.contains(id) {
                let task = get(&mut client, id).await;
                match task["status"].as_str().expect("a status") {
                    "input_required" => {
                        answer(&mut client, id).await;
                        answered.push(id.clone());
                    }
                    "working" => {}
                    _ => drop(ends.insert(id.clone(), task)),
                }
            }
        }
        drop(node);
        node = Node::start(folder, "s", None);
        client = node.client().await;
        // Taken over, and a little on.
        tokio::time::sleep(Duration::from_millis(LEASE_MS + LEASE_MS / 2)).await;
    }
    let begun = Instant::now();
    while ends.len() < ids.len() {
        for (id, _) in &ids {
            if ends.contains_key(id) {
                continue;
            }
            let task = get(&mut client, id).await;
            match task["status"].as_str().expect("a status") {
                "input_required" => {
                    assert!(!answered.contains(id), "an answer that was acknowledged is lost: {task}");
                    let keys = task["inputRequests"].as_object().expect("questions").keys();
                    assert_eq!(keys.collect::<Vec<_>>(), ["sure"], "it is asked under one key, once");
                    answer(&mut client, id).await;
                    answered.push(id.clone());
                }
                "working" => {}
                _ => drop(ends.insert(id.clone(), task)),
            }
        }
        assert!(begun.elapsed() < Duration::from_secs(120), "{} of {} ended", ends.len(), ids.len());
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let (mut done, mut given_up, mut failed) = (0, 0, 0);
    for (id, tool) in &ids {
        let end = &ends[id];
        let text = end["result"]["content"][0]["text"].as_str();
        let why = end["error"]["message"].as_str().unwrap_or_default();
        match *tool {
            _ if text.is_some() => {
                assert_eq!(text, Some(if *tool == "steps" { "5 steps, true" } else { "once" }));
                done += 1;
            }
            "steps" => {
                // Killed more than twice, it is given up, and says so.
                assert!(kills - begun_at[id] > 2 && why.contains("and not once more"), "{end}");
                given_up += 1;
            }
            _ => {
                assert!(why.contains("it was not started again"), "{end}");
                failed += 1;
            }
        }
        assert_eq!(get(&mut client, id).await["status"], end["status"], "an end is an end");
    }
    eprintln!("{tasks} tasks, {kills} kills: {done} done, {given_up} given up, {failed} not started again");
    assert!(counts(folder, "once").values().all(|count| *count == 1), "what is not resumable ran once");
    // Three times, and once more after it was suspended.
    assert!(counts(folder, "starts").values().all(|count| *count <= 4), "nothing is started more often than promised");
    // A step is repeated only if the process died between its effect and its entry: at most once a kill.
    let effects = counts(folder, "effects");
    let repeated: usize = effects.values().map(|count| count - 1).sum();
    eprintln!("{} effects, {repeated} of them again", effects.len());
    assert!(effects.values().all(|count| *count <= 3), "{effects:?}");
    // Only one step of a task runs at a time.
    for (id, _) in &ids {
        let again = (0..STEPS).map(|n| effects.get(&format!("{id} {n}")).map_or(0, |count| count - 1)).sum::<usize>();
        assert!(again <= 2, "{id}: {again} effects again, and it was started three times at most");
    }
}

/// Rows 8 and 10 of the faults.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_task_is_lost_when_its_process_is_killed() {
    survive(12, 2).await;
}

/// A host that waits for its calls hears nothing of the kills, and answers each question once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_waits_for_tasks_gets_their_results_although_the_server_is_killed() {
    const TASKS: usize = 20;
    let folder = tempfile::tempdir().expect("a folder");
    let folder: &Path = folder.path();
    let mut node = Node::start(folder, "s", None);
    drop(node.client().await);
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    let patient = ReconnectPolicy::default().with(|p| (p.first_ms, p.longest_ms, p.attempts_max) = (50, 300, 60));
    let client = Client::new("host", "1").reconnect(patient).on_elicitation(move |form| {
        count.fetch_add(1, Ordering::SeqCst);
        async move { form.accept(json!({ "yes": true })) }
    });
    let server = client.connect(unix(folder.join("s"))).await.expect("a connection");
    let mut waiting = JoinSet::new();
    for _ in 0..TASKS {
        let task = server.call("steps", json!({ "ms": 200 })).detached().await.expect("a task");
        waiting.spawn(async move { task.await });
    }
    for _ in 0..2 {
        tokio::time::sleep(Duration::from_millis(400)).await;
        drop(node);
        node = Node::start(folder, "s", None);
        drop(node.client().await);
        tokio::time::sleep(Duration::from_millis(LEASE_MS + LEASE_MS / 2)).await;
    }
    while let Some(ended) = waiting.join_next().await {
        assert_eq!(ended.expect("no panic").expect("a result").text(), "5 steps, true");
    }
    // Nobody is asked twice, except about an answer that the server did not acknowledge before it was killed.
    let asked = asked.load(Ordering::SeqCst);
    assert!((TASKS..=TASKS * 3).contains(&asked), "{asked} questions");
    assert!(
        counts(folder, "starts").values().any(|count| *count > 1),
        "no task was running when the server was killed"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "minutes: the long form, a thousand tasks and forty kills: `cargo xtask test --only task-kills`"]
async fn a_thousand_tasks_survive_forty_kills() {
    survive(1_000, 40).await;
}

/// Row 12 of the faults: a process that is paused, and goes on when another one has taken its tasks over.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_that_was_paused_writes_nothing_any_more() {
    for _ in 0..10 {
        let folder = tempfile::tempdir().expect("a folder");
        if pause_one(folder.path()).await {
            return;
        }
    }
    panic!("whenever it was paused, it was writing");
}

/// `false` if the process was paused while it held the file's lock: then nobody can write, which is another matter.
async fn pause_one(folder: &Path) -> bool {
    let paused = Node::start(folder, "a", None);
    let mut client = paused.client().await;
    let steps = make(&mut client, "steps", json!({ "ms": 300 })).await;
    let once = make(&mut client, "once", json!({ "ms": 900 })).await;
    let other = Node::start(folder, "b", None);
    let mut there = other.client().await;
    get(&mut there, &steps).await;
    // In the middle of a step.
    common::until("it has begun", || counts(folder, "effects").len() == 1).await;
    paused.signal("STOP");
    let Ok(store) = Store::sqlite(folder.join("tasks.db")) else {
        paused.signal("CONT");
        return false;
    };
    let write = async move { store.kv().put("probe/a", "1".into(), Expect::Any, Duration::from_secs(9)).await };
    if !matches!(tokio::time::timeout(Duration::from_millis(300), write).await, Ok(Ok(_))) {
        paused.signal("CONT");
        return false;
    }
    let task = until(&mut there, &once, "failed").await;
    assert!(task["error"]["message"].as_str().unwrap().contains("it was not started again"), "{task}");
    until(&mut there, &steps, "input_required").await;
    let before = counts(folder, "kept");
    paused.signal("CONT");
    // Its step ends, and what it says of it is refused. Its other task would have ended, too.
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    assert_eq!(counts(folder, "kept"), before, "it keeps no step any more");
    let again = counts(folder, "effects").values().filter(|count| **count > 1).count();
    assert!(again <= 1, "only the step that was interrupted is done again");
    for client in [&mut client, &mut there] {
        assert_eq!(get(client, &once).await["status"], "failed", "the first end stays");
    }
    answer(&mut client, &steps).await;
    for client in [&mut client, &mut there] {
        let task = until(client, &steps, "completed").await;
        assert_eq!(task["result"]["content"][0]["text"], "5 steps, true");
    }
    assert_eq!((counts(folder, "answered").len(), counts(folder, "once").len()), (1, 1));
    true
}
