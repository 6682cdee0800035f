//! Streams that break: what is kept, what is replayed, who is held up by whom.
#![cfg(feature = "http")]

use crate::common;

use common::Fake;
use common::wire::*;

fn resume(session: &str, event: &str) -> String {
    bare("GET", "/mcp", &[("mcp-session-id", session), ("accept", "text/event-stream"), ("last-event-id", event)])
}

#[tokio::test]
async fn a_paused_call_is_delivered_to_whoever_comes_back() {
    let server = Server::start(Fake::new()).await;
    let id = server.session("2025-11-25").await;
    // Whether or not it said something before.
    for (n, words, before) in [("1", "pause:20 gate:a", 0), ("2", "note pause:20 gate:a", 2)] {
        let mut conn = server.connect().await;
        conn.send(&post(&[("mcp-session-id", &id)], &call(n, "t", words))).await;
        assert_eq!(conn.head().await.header("content-type"), Some("text/event-stream"));
        for _ in 0..before {
            conn.event().await.unwrap();
        }
        let last = format!("{n}-{}", before + 1);
        assert_eq!(conn.event().await.unwrap(), format!("id: {last}\nretry: 20\ndata: "));
        assert_eq!(conn.event().await, None, "the server hangs up");
        let mut back = server.connect().await;
        back.send(&resume(&id, &last)).await;
        assert_eq!(back.head().await.status, 200);
        server.fake.open_gate("a");
        let answer = back.event().await.unwrap();
        assert!(answer.starts_with(&format!("id: {n}-{}\n", before + 2)) && answer.contains(r#""v":"t""#), "{answer}");
        assert_eq!(back.event().await, None, "the answer ends the stream");
    }
    // A revision without priming has no way to come back in time, and is not sent away.
    let id = server.session("2025-06-18").await;
    let r = server.ask(&post(&[("mcp-session-id", &id)], &call("1", "t", "pause:20 gate:a"))).await;
    assert_eq!(r.header("content-type"), Some("application/json"));
}

#[tokio::test]
async fn a_broken_stream_goes_on_and_is_replayed_from_any_event() {
    let server = Server::start(Fake::new()).await;
    for revision in ["2025-11-25", "2025-06-18"] {
        let id = server.session(revision).await;
        let tool = format!("t{revision}");
        let mut conn = server.connect().await;
        conn.send(&post(&[("mcp-session-id", &id)], &call("1", &tool, &format!("note gate:{tool} note note")))).await;
        conn.head().await;
        let mut seen = vec![conn.event().await.unwrap()];
        if revision == "2025-11-25" {
            seen.push(conn.event().await.unwrap());
        }
        drop(conn);
        server.fake.open_gate(&tool);
        server.fake.until(&format!("finished {tool}")).await;
        // Completed meanwhile, and still there: from the last event, and again from the first.
        let first = seen[0].lines().next().unwrap().strip_prefix("id: ").unwrap().to_owned();
        let mut events = Vec::new();
        for after in [&first, &first] {
            let mut back = server.connect().await;
            back.send(&resume(&id, after)).await;
            assert_eq!(back.head().await.status, 200);
            events.clear();
            while let Some(event) = back.event().await {
                events.push(event);
            }
            assert_eq!(events.len(), seen.len() + 2, "{events:?}");
            assert_eq!(events[..seen.len() - 1], seen[1..], "the same events again");
            assert!(events.last().unwrap().contains(r#""id":1,"result""#));
        }
        let ids: std::collections::HashSet<_> = events.iter().map(|e| e.lines().next().unwrap()).collect();
        assert_eq!(ids.len(), events.len());
        let last = events.last().unwrap().lines().next().unwrap().strip_prefix("id: ").unwrap();
        let mut back = server.connect().await;
        back.send(&resume(&id, last)).await;
        back.head().await;
        assert_eq!(back.event().await, None, "nothing is left after the answer");
    }
}

#[tokio::test]
async fn a_client_that_hangs_up_in_a_session_cancels_nothing() {
    let server = Server::start(Fake::new()).await;
    let id = server.session("2025-11-25").await;
    for (tool, words) in [("silent", "gate:a note ask done"), ("noisy", "note gate:a")] {
        let mut conn = server.connect().await;
        conn.send(&post(&[("mcp-session-id", &id)], &call("1", tool, words))).await;
        server.fake.until(&format!("started {tool}")).await;
        if words.starts_with("note") {
            conn.head().await;
            conn.event().await.unwrap();
        }
        drop(conn);
        // The server has noticed once the connection's task is gone.
        for _ in 0..50 {
            tokio::task::yield_now().await;
        }
        assert!(!server.fake.happened(&format!("dropped {tool}")));
        server.fake.open_gate("a");
        server.fake.until(&format!("finished {tool}")).await;
        // Its id is free again.
        let r = server.ask(&post(&[("mcp-session-id", &id)], &call("1", "echo", ""))).await;
        assert!(r.body.contains(r#""v":"echo""#), "{r:?}");
    }
}

#[tokio::test]
async fn one_streams_events_never_come_on_another() {
    let server = Server::start(Fake::new()).await;
    let (a, b) = (server.session("2025-11-25").await, server.session("2025-11-25").await);
    for (tool, gate) in [("one", "x"), ("two", "y")] {
        let mut conn = server.connect().await;
        conn.send(&post(
            &[("mcp-session-id", &a)],
            &call(if tool == "one" { "1" } else { "2" }, tool, &format!("pause:5 gate:{gate} note")),
        ))
        .await;
        conn.response().await;
    }
    server.fake.open_gate("x");
    server.fake.open_gate("y");
    server.fake.until("finished one").await;
    server.fake.until("finished two").await;
    for (event, tool, other) in [("1-1", "one", "two"), ("2-1", "two", "one")] {
        let r = server.ask(&resume(&a, event)).await;
        assert!(r.body.contains(tool) && !r.body.contains(other), "{r:?}");
    }
    // Events of streams or sessions that never were, or are another's, are refused with a reason.
    for (session, event) in [(&a, "3-1"), (&a, "1-99"), (&a, "x"), (&a, "1"), (&a, "99999999999-1"), (&b, "1-1")] {
        let r = server.ask(&resume(session, event)).await;
        assert_eq!((r.status, r.body.contains("Last-Event-ID")), (400, true), "{event}: {r:?}");
    }
}

#[tokio::test]
async fn whoever_comes_back_first_takes_the_stream_over_from_a_reader_that_is_still_there() {
    let server = Server::start(Fake::new()).await;
    let id = server.session("2025-11-25").await;
    let mut conn = server.connect().await;
    conn.send(&post(&[("mcp-session-id", &id)], &call("1", "t", "note gate:a note ask"))).await;
    conn.head().await;
    conn.event().await.unwrap();
    conn.event().await.unwrap();
    let mut back = server.connect().await;
    back.send(&resume(&id, "1-1")).await;
    back.head().await;
    assert!(back.event().await.unwrap().starts_with("id: 1-2\n"));
    assert_eq!(conn.event().await, None, "one message, one stream");
    server.fake.open_gate("a");
    assert!(back.event().await.unwrap().starts_with("id: 1-3\n"), "the call is polled by the new reader");
    assert!(back.event().await.unwrap().contains("elicitation/create"));
    let answer = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"no"}}"#;
    assert_eq!(server.ask(&post(&[("mcp-session-id", &id)], answer)).await.status, 202);
    assert!(back.event().await.unwrap().contains("Rpc(-1"));
    assert_eq!(back.event().await, None);
}

#[tokio::test]
async fn unread_notices_are_dropped_oldest_first_and_answers_and_questions_never() {
    let server = Server::start(Fake::with(|l| l.messages.queued_max = 4)).await;
    let id = server.session("2025-11-25").await;
    let mut conn = server.connect().await;
    let words = format!("pause:5 gate:a {} ask", "note ".repeat(20));
    conn.send(&post(&[("mcp-session-id", &id)], &call("1", "t", &words))).await;
    conn.response().await;
    server.fake.open_gate("a");
    // The question is on the stream when its answer is taken.
    loop {
        let r = server.ask(&post(&[("mcp-session-id", &id)], r#"{"jsonrpc":"2.0","id":1,"result":{}}"#)).await;
        assert_eq!(r.status, 202);
        if server.fake.happened("finished t") {
            break;
        }
    }
    let r = server.ask(&resume(&id, "1-1")).await;
    let notes: Vec<&str> = r.body.split("\n\n").filter(|e| e.contains(r#""method":"note""#)).collect();
    assert_eq!(notes.len(), 4, "{notes:?}");
    assert!(notes[0].contains(r#""n":17"#) && notes[3].contains(r#""n":20"#), "{notes:?}");
    assert!(r.body.contains("elicitation/create") && r.body.contains(r#""id":1,"result""#));
}

#[tokio::test]
async fn what_is_kept_is_bounded_in_bytes_streams_and_time() {
    let server = Server::start(Fake::with(|l| {
        l.sessions.replay_bytes_max = 10_000;
        l.sessions.streams_max = 3;
    }))
    .await;
    let id = server.session("2025-11-25").await;
    let stream = async |n: u32, words: &str| {
        let r = server.ask(&post(&[("mcp-session-id", &id)], &call(&n.to_string(), "t", words))).await;
        assert!(r.body.contains(r#""v":"t""#));
    };
    let kept = async |event: &str| server.ask(&resume(&id, event)).await;
    for n in 1..=4 {
        stream(n, "note").await;
    }
    assert_eq!(kept("1-1").await.status, 400, "three streams are kept");
    assert!(kept("2-1").await.body.contains("note"));
    stream(5, "note:4000 note:4000 note:4000").await;
    let r = kept("5-1").await;
    assert!(r.body.len() < 10_000 && r.body.contains(r#""v":"t""#), "the oldest events went: {}", r.body.len());
    assert!(!kept("4-1").await.body.contains("note"), "those of older streams first");
}

#[tokio::test]
async fn a_finished_stream_is_forgotten_in_time() {
    let server = Server::start(Fake::with(|l| l.sessions.replay_ms_max = 20)).await;
    let id = server.session("2025-11-25").await;
    let r = server.ask(&post(&[("mcp-session-id", &id)], &call("1", "t", "note"))).await;
    assert_eq!(r.status, 200);
    while server.ask(&resume(&id, "1-1")).await.status != 400 {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn a_reader_that_takes_nothing_holds_up_nobody_else() {
    let server = Server::start(Fake::new()).await;
    let id = server.session("2025-11-25").await;
    // Far more than the socket's buffers hold, on a stream that is not read.
    let mut slow = server.connect().await;
    slow.send(&post(&[("mcp-session-id", &id)], &call("1", "slow", &"note:1000000 ".repeat(40)))).await;
    slow.head().await;
    for n in 2..20 {
        let r = server.ask(&post(&[("mcp-session-id", &id)], &call(&n.to_string(), "quick", "note"))).await;
        assert!(r.body.contains(r#""v":"quick""#));
    }
    assert!(!server.fake.happened("finished slow"), "its own call waits for it");
    let mut notes = 0;
    while let Some(event) = slow.event().await {
        notes += usize::from(event.contains(r#""method":"note""#));
    }
    assert_eq!(notes, 40);
}
