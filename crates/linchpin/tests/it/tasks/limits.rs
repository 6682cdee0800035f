//! What a task may hold, how many there may be, and how long.

use super::faulty::{Fate, Faulty};
use super::{Desk, Name, ask_as, call, declared, id, server, shared, until};
use crate::common::{self, MODERN, Peer, code, service, text};
use linchpin::Tasks;
use linchpin::prelude::*;
use linchpin::store::{Secrets, Store};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Rows 20 and 21 of the faults.
#[tokio::test]
async fn limits_refuse_before_the_handler_runs_and_fail_what_grows() {
    let desk: Arc<Desk> = Arc::default();
    let limited = server(&desk).limits(|limits| {
        limits.tasks.running_per_owner_max = 2;
        limits.tasks.running_max = 3;
        limits.tasks.kept_per_owner_max = 4;
        limits.tasks.argument_bytes_max = 100;
    });
    let service = shared(limited);
    let call = |name: &str, ms: u64| json!({ "name": name, "arguments": { "ms": ms } });
    let mut running = Vec::new();
    for who in ["ada", "ada", "bob"] {
        running.push(id(&ask_as(&service, Some(who), MODERN, "tools/call", call("must", 60_000)).await));
    }
    let begun = desk.begun.load(Ordering::SeqCst);
    for (who, why) in [("ada", "limit of 2 tasks at once for you"), ("eve", "limit of 3 tasks at once")] {
        let refused = ask_as(&service, Some(who), MODERN, "tools/call", call("must", 0)).await;
        assert_eq!(code(&refused), -32603);
        assert!(refused["error"]["message"].as_str().unwrap().contains(why), "{refused}");
    }
    assert_eq!(desk.begun.load(Ordering::SeqCst), begun, "no handler ran");
    let in_place = ask_as(&service, Some("ada"), MODERN, "tools/call", call("work", 80)).await;
    assert_eq!(text(&in_place), "worked in false", "what need not be a task is none");
    let long = json!({ "name": "must", "arguments": { "ms": 1, "more": "x".repeat(100) } });
    assert_eq!(code(&ask_as(&service, Some("ada"), MODERN, "tools/call", long).await), -32602);

    // One ends: there is room again, and the oldest that has ended goes when too many are kept.
    let first = running.remove(0);
    ask_as(&service, Some("ada"), MODERN, "tasks/cancel", json!({ "taskId": first })).await;
    for _ in 0..3 {
        let begun = Instant::now();
        loop {
            let made = ask_as(&service, Some("ada"), MODERN, "tools/call", call("must", 0)).await;
            if made.get("result").is_some() {
                break;
            }
            assert!(begun.elapsed() < Duration::from_secs(5), "{made}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
    let gone = ask_as(&service, Some("ada"), MODERN, "tasks/get", json!({ "taskId": first })).await;
    assert_eq!(code(&gone), -32602, "{gone}");
    let kept = ask_as(&service, Some("ada"), MODERN, "tasks/get", json!({ "taskId": running[0] })).await;
    assert_eq!(kept["result"]["status"], "working");
    let mut polls = 0;
    while code_of(&ask_as(&service, Some("ada"), MODERN, "tasks/get", json!({ "taskId": running[0] })).await).is_none()
    {
        polls += 1;
        assert!(polls < 100, "polls are limited");
    }
}

fn code_of(answer: &Value) -> Option<i64> {
    answer["error"]["code"].as_i64()
}

/// Row 19 of the faults: a task that overruns its time to live.
#[tokio::test(start_paused = true)]
async fn a_task_that_takes_too_long_fails_and_is_forgotten_later() {
    let desk: Arc<Desk> = Arc::default();
    let service = shared(
        server(&desk).tool(Tool::new("short", "").task_required().task_ttl(Duration::from_secs(30)), Desk::work),
    );
    let call = json!({ "name": "short", "arguments": { "ms": 3_600_000 } });
    let made = ask_as(&service, Some("ada"), MODERN, "tools/call", call).await;
    assert_eq!(made["result"]["ttlMs"], 30_000);
    let get = json!({ "taskId": id(&made) });
    tokio::time::sleep(Duration::from_secs(31)).await;
    let failed = ask_as(&service, Some("ada"), MODERN, "tasks/get", get.clone()).await["result"].clone();
    assert_eq!((&failed["status"], &failed["error"]["code"]), (&json!("failed"), &json!(-32603)), "{failed}");
    assert!(failed["statusMessage"].as_str().unwrap().contains("time to live"));
    assert_eq!(desk.dropped.load(Ordering::SeqCst), 1);
    tokio::time::sleep(Duration::from_secs(601)).await;
    // The answer is that for a task which never was.
    let gone = ask_as(&service, Some("ada"), MODERN, "tasks/get", get.clone()).await;
    let why = format!("unknown task: {}", get["taskId"].as_str().unwrap());
    assert_eq!(gone["error"], json!({ "code": -32602, "message": why }));
}

#[tokio::test(start_paused = true)]
async fn messages_of_a_task_are_written_once_a_second_and_the_last_one_stays() {
    let noisy = async |cx: &Cx| {
        cx.become_task().await;
        for n in 1..=10_000 {
            cx.progress_with(f64::from(n), None, &format!("{n} {}", "é".repeat(1_000)));
        }
        tokio::time::sleep(Duration::from_secs(10)).await;
        "done"
    };
    let secrets = Secrets::new([7; 32]);
    let (faulty, store) = Faulty::around(Store::builder().secrets(secrets.clone()).memory(), secrets);
    let written = Arc::new(AtomicUsize::new(0));
    let counter = written.clone();
    faulty.rule(move |operation, key| {
        counter.fetch_add(usize::from(operation == "put" && key.starts_with("task/")), Ordering::SeqCst);
        Fate::Goes
    });
    let server = Server::new("noisy", "1").tool(Tool::new("noisy", "").task_required(), noisy);
    let service = service(server.tasks(Tasks::at(store)));
    let made = ask_as(&service, Some("ada"), MODERN, "tools/call", json!({ "name": "noisy" })).await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    let task = ask_as(&service, Some("ada"), MODERN, "tasks/get", json!({ "taskId": id(&made) })).await;
    let message = task["result"]["statusMessage"].as_str().unwrap();
    assert!(message.starts_with("10000 ") && (1_020..=1_024).contains(&message.len()), "{} bytes", message.len());
    // The task itself, and a message each second.
    assert!((2..=5).contains(&written.load(Ordering::SeqCst)), "{written:?}");
}

#[tokio::test]
async fn the_message_of_a_failed_task_is_cut_at_its_limit() {
    let fails = || Err::<String, _>(Error::protocol(-7, "é".repeat(5_000)));
    let server = Server::new("fails", "1").tool(Tool::new("fails", "").task_required(), fails);
    let mut peer = Peer::of(service(server), MODERN, declared()).await;
    let made = call(&mut peer, "fails", json!({})).await;
    let task = until(&mut peer, &id(&made), "failed").await;
    let message = task["statusMessage"].as_str().unwrap();
    assert!(message.starts_with('é') && (1_020..=1_024).contains(&message.len()), "{} bytes", message.len());
}

/// Row 20 of the faults, and what else a task may hold.
#[tokio::test]
async fn more_than_a_task_may_hold_is_an_error_in_its_handler_or_fails_it() {
    let questions = async |cx: &Cx| {
        let asked = (0..3).map(|n| {
            let cx = cx.clone();
            tokio::spawn(async move { cx.elicit::<Name>(&format!("q{n}"), "Who?").await.map(|who| who.name) })
        });
        let asked: Vec<_> = asked.collect();
        // The last one asked is the first one looked at: the others wait.
        for one in asked.into_iter().rev() {
            if let Ok(Err(refused)) = one.await {
                return refused.to_string();
            }
        }
        "asked all".to_owned()
    };
    let steps = async |cx: &Cx| -> Result<&'static str> {
        for n in 0..5 {
            cx.memoize(&format!("step {n}"), async { Ok("x".repeat(20)) }).await?;
        }
        Ok("did all")
    };
    let many = |steps_max, step_bytes_max, input_response_bytes_max| {
        let server = Server::new("holds", "1").limits(|limits| {
            limits.tasks.input_requests_open_max = 2;
            (limits.tasks.steps_max, limits.tasks.step_bytes_max) = (steps_max, step_bytes_max);
            limits.tasks.input_response_bytes_max = input_response_bytes_max;
        });
        let server = server.tool(Tool::new("questions", "").task_required(), questions);
        service(server.tool(Tool::new("steps", "").task_required(), steps))
    };
    for (steps_max, bytes_max, why) in [(3, 1_000, "more than 3 steps"), (9, 70, "exceed 70 bytes"), (9, 1_000, "")] {
        let mut peer = Peer::of(many(steps_max, bytes_max, 1_000), MODERN, declared()).await;
        let made = call(&mut peer, "steps", json!({})).await;
        let status = if why.is_empty() { "completed" } else { "failed" };
        let task = until(&mut peer, &id(&made), status).await;
        let message = task["error"]["message"].as_str().unwrap_or_default();
        assert!(message.contains(why), "{task}");
    }
    let mut peer = Peer::of(many(100, 1_000, 100), MODERN, declared()).await;
    let made = call(&mut peer, "questions", json!({})).await;
    let task = until(&mut peer, &id(&made), "completed").await;
    let told = task["result"]["content"][0]["text"].as_str().unwrap();
    assert!(told.contains("too many open input requests in this task (limit 2)"), "{told}");

    let desk = Arc::default();
    let small = server(&desk).limits(|limits| limits.tasks.input_response_bytes_max = 60);
    let mut peer = Peer::of(shared(small), MODERN, declared()).await;
    let made = call(&mut peer, "asks", json!({})).await;
    let id = id(&made);
    until(&mut peer, &id, "input_required").await;
    let long = json!({ "sure": { "action": "accept", "content": { "yes": true, "more": "x".repeat(60) } } });
    let refused = peer.ask("tasks/update", json!({ "taskId": id, "inputResponses": long })).await;
    assert!(refused["error"]["message"].as_str().unwrap().contains("60 bytes"), "{refused}");
}

#[tokio::test]
async fn calls_that_may_become_tasks_are_refused_while_too_many_calls_run() {
    let desk = Arc::default();
    let limited = server(&desk).limits(|limits| (limits.calls.concurrent_max, limits.tasks.grace_ms) = (1, 60_000));
    let service = shared(limited);
    let mut busy = Peer::of(service.clone(), MODERN, declared()).await;
    busy.request("tools/call", json!({ "name": "work", "arguments": { "ms": 60_000 } })).await;
    common::until("it runs", || desk.begun.load(Ordering::SeqCst) == 1).await;
    let mut peer = Peer::of(service, MODERN, declared()).await;
    for tool in ["work", "must"] {
        let refused = call(&mut peer, tool, json!({})).await;
        assert_eq!(code(&refused), -32603, "{refused}");
        assert!(refused["error"]["message"].as_str().unwrap().contains("limit of 1 calls at once"), "{refused}");
    }
    assert_eq!(desk.begun.load(Ordering::SeqCst), 1, "refused before they run");
}

#[tokio::test]
async fn answers_that_never_fit_fail_the_task_in_the_end() {
    let desk = Arc::default();
    let limited = server(&desk).limits(|limits| limits.tasks.steps_max = 3);
    let mut peer = Peer::of(shared(limited), MODERN, declared()).await;
    let made = call(&mut peer, "asks", json!({})).await;
    let id = id(&made);
    until(&mut peer, &id, "input_required").await;
    for key in ["sure", "sure#2", "sure#3"] {
        peer.ask("tasks/update", json!({ "taskId": id, "inputResponses": { key: 7 } })).await;
    }
    let task = until(&mut peer, &id, "failed").await;
    assert!(task["error"]["message"].as_str().unwrap().contains("limit 3"), "{task}");
}
