//! What a link over pipes makes of peers that misbehave: scripted ends of a stream in memory.
#![cfg(feature = "stdio")]
#![allow(missing_docs)]

use crate::client;

use client::*;
use linchpin_core::{ClientTransport, Connector};
use linchpin_transport::stdio::pipes;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, DuplexStream};

/// A link and its other end.
async fn open(side: &Side) -> (Arc<dyn ClientTransport>, DuplexStream) {
    let (ours, theirs) = tokio::io::duplex(64 << 10);
    let (read, write) = tokio::io::split(ours);
    (pipes(read, write).connect(side.options.clone()).await.unwrap(), theirs)
}

const OK: &str = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;

/// What a server says to request 1, whether it hangs up then, and what comes of the request.
const CASES: &[(&str, &str, bool, &str)] = &[
    ("a good answer", "OK\n", false, "ok OK"),
    ("an answer, then the end", "OK\n", true, "ok OK"),
    ("a last line without its end", "OK", true, "ok OK"),
    ("lines end with CR LF, some are blank", "\r\n \r\nOK\r\n", false, "ok OK"),
    ("a byte order mark", "\u{feff}OK\n", false, "ok OK"),
    ("the id as text", "{\"jsonrpc\":\"2.0\",\"id\":\"1\",\"result\":{}}\n", false, "ok {"),
    ("the id as a fraction", "{\"jsonrpc\":\"2.0\",\"id\":1.0,\"result\":{}}\n", false, "ok {"),
    ("no jsonrpc", "{\"id\":1,\"result\":{}}\n", false, "ok {"),
    ("garbage around it", "starting…\nOK\nbye\n", false, "ok OK"),
    ("garbage that is not text", "\u{0}\u{1}{{{\nOK\n", false, "ok OK"),
    ("JSON that is not a message", "{\"level\":\"error\",\"error\":\"x\",\"id\":1}\nOK\n", false, "ok OK"),
    ("a log of JSON", "{\"level\":\"error\",\"error\":{\"code\":1}}\nOK\n", false, "ok OK"),
    ("a reply to nothing", "{\"jsonrpc\":\"2.0\",\"id\":99,\"result\":{}}\nOK\n", false, "ok OK"),
    ("an answer twice", "OK\n{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":[]}\n", false, "ok OK"),
    ("an id of no number", "{\"jsonrpc\":\"2.0\",\"id\":\"one\",\"result\":{}}\n", false, "waiting"),
    ("a request with our id", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"roots/list\"}\n", false, "waiting"),
    ("an error without an id", "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":1}}\n", false, "ok {"),
    ("an error without even null", "{\"jsonrpc\":\"2.0\",\"error\":{\"code\":1}}\n", false, "ok {"),
    ("a batch", "[{\"jsonrpc\":\"2.0\",\"method\":\"n\"},OK]\n", false, "ok OK"),
    ("a batch that breaks", "[OK,7]\n", false, "ok OK"),
    (
        "no number",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":NaN}\n",
        false,
        "Unreadable(\"invalid response: invalid JSON",
    ),
    ("no result", "{\"jsonrpc\":\"2.0\",\"id\":1}\n", false, "Unreadable(\"invalid response: neither"),
    ("broken, its id last", "{\"result\":NaN,\"jsonrpc\":\"2.0\",\"id\":1}\n", false, "Unreadable("),
    ("half a line and silence", "{\"jsonrpc\":\"2.0\",\"id\":1,\"resu", false, "waiting"),
    (
        "half a line and the end",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"resu",
        true,
        "Closed(\"the server closed the connection before answering\\nthe server also wrote 1 line that is not a message; \
         it begins: {\\\"jsonrpc",
    ),
    (
        "garbage and the end",
        "one\ntwo\nthree\n",
        true,
        "Closed(\"the server closed the connection before answering\\nthe server also wrote 3 lines that are not \
         messages; the last begins: three\")",
    ),
    ("nothing and the end", "", true, "Closed(\"the server closed the connection before answering\")"),
    ("a long answer", "LONG\n", false, "Unreadable(\"the response exceeds the limit of 10000 bytes"),
    ("an endless answer", "LONG", false, "Unreadable(\"the response exceeds the limit of 10000 bytes"),
    ("something long without an id", "[[[LONG", false, "Unreadable(\"the response exceeds the limit"),
    ("a long notification", "{\"method\":\"LONG\"}\nOK\n", false, "ok OK"),
];

#[tokio::test(start_paused = true)]
async fn every_fault_ends_in_an_answer_or_a_clear_error() {
    for (name, says, hangs_up, expected) in CASES {
        let side = side(|limits| limits.messages.frame_bytes_max = 10_000);
        let (link, theirs) = open(&side).await;
        let long = format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"{}", "x".repeat(30_000));
        let says = says.replace("LONG", &long).replace("OK", OK);
        let hangs_up = *hangs_up;
        let server = tokio::spawn(async move {
            let mut theirs = BufReader::new(theirs);
            let mut line = String::new();
            theirs.read_line(&mut line).await.unwrap();
            theirs.write_all(says.as_bytes()).await.unwrap();
            if !hangs_up {
                // It is still there for the next request.
                while theirs.read_line(&mut line).await.unwrap_or(0) > 0 {
                    if line.contains("\"id\":2") {
                        let answer = "\n{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{}}\n";
                        theirs.write_all(answer.as_bytes()).await.unwrap();
                    }
                    line.clear();
                }
            }
        });
        let outcome = ask(&link, 1).await;
        let expected = expected.replace("OK", OK);
        assert!(outcome.starts_with(&expected), "{name}: {outcome}\nexpected {expected}");
        let next = ask(&link, 2).await;
        match hangs_up {
            true => assert!(next.starts_with("Closed("), "{name}: {next}"),
            false => assert!(next.starts_with("ok {\"jsonrpc\":\"2.0\",\"id\":2"), "{name}: the link goes on: {next}"),
        }
        let closed = side.inbox.all().into_iter().filter(|line| line.starts_with("closed")).count();
        assert_eq!(closed, hangs_up as usize, "{name}: the inbox is told once, and only of an end");
        link.close().await;
        server.await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_told_apart_fails_nobody() {
    let side = side(|limits| limits.messages.frame_bytes_max = 10_000);
    let (link, mut theirs) = open(&side).await;
    let long = "x".repeat(30_000);
    let says = format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{{\"code\":1}}}}\n{{\"result\":\"{long}\"}}\n\
         {{\"result\":\"{long}\",\"jsonrpc\":\"2.0\",\"id\":2}}\n"
    );
    theirs.write_all(says.as_bytes()).await.unwrap();
    let (one, two) = tokio::join!(ask(&link, 1), ask(&link, 2));
    assert_eq!(one, "waiting", "neither an error without an id nor a long line without one is for anybody");
    assert!(two.starts_with("Unreadable(\"the response exceeds"), "the id at the end of the long line is seen: {two}");
}

#[tokio::test]
async fn the_inbox_hears_everything_before_the_answer_and_the_tap_sees_it_in_order() {
    let side = side(|_| {});
    let (link, mut theirs) = open(&side).await;
    let says = "{\"jsonrpc\":\"2.0\",\"method\":\"a\"}\nlog\n[{\"jsonrpc\":\"2.0\",\"method\":\"b\"},\
                {\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"c\"}]\n";
    let server = async {
        let mut line = [0; 20];
        theirs.read_exact(&mut line).await.unwrap();
        theirs.write_all(format!("{says}{OK}\n").as_bytes()).await.unwrap();
    };
    let client = async {
        let answer = link.exchange(request(1)).await.unwrap();
        (answer, side.inbox.all())
    };
    let (_, (answer, heard)) = tokio::join!(server, client);
    assert_eq!(answer.message.frame().to_string(), OK);
    assert_eq!(heard.len(), 3, "a, b and c came first: {heard:#?}");
    let kinds: Vec<_> = side.tap.all().iter().map(|line| line.split(' ').next().unwrap().to_owned()).collect();
    assert_eq!(kinds, ["sent", "heard", "garbage", "heard", "heard"]);
}

#[tokio::test]
async fn sixty_four_answers_in_the_wrong_order_find_their_requests() {
    let side = quiet_side(|_| {});
    let (link, theirs) = open(&side).await;
    tokio::spawn(async move {
        let mut theirs = BufReader::new(theirs);
        loop {
            let mut all = Vec::new();
            for _ in 0..64 {
                let mut line = String::new();
                theirs.read_line(&mut line).await.unwrap();
                let line: serde_json::Value = serde_json::from_str(&line).unwrap();
                all.push(line["id"].as_u64().unwrap());
            }
            for id in all.into_iter().rev() {
                let answer = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"of\":{id}}}}}\n");
                theirs.write_all(answer.as_bytes()).await.unwrap();
            }
        }
    });
    for round in 0..20 {
        let calls: Vec<_> = (0..64)
            .map(|n| {
                let link = link.clone();
                tokio::spawn(async move { (round * 64 + n, ask(&link, round * 64 + n).await) })
            })
            .collect();
        for call in calls {
            let (id, outcome) = call.await.unwrap();
            assert!(outcome.contains(&format!("\"of\":{id}}}")), "{id}: {outcome}");
        }
    }
}

#[tokio::test]
async fn a_dropped_exchange_is_forgotten_and_its_late_answer_ignored() {
    let side = side(|_| {});
    let (link, theirs) = open(&side).await;
    let mut theirs = BufReader::new(theirs);
    let gave_up = tokio::time::timeout(Duration::from_millis(20), link.exchange(request(1))).await;
    assert!(gave_up.is_err());
    let mut line = String::new();
    theirs.read_line(&mut line).await.unwrap();
    let answers = format!("{OK}\n{{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{{}}}}\n");
    let second = link.exchange(request(2));
    theirs.write_all(answers.as_bytes()).await.unwrap();
    // Had the first still been waiting, the number could not be used again.
    tokio::pin!(second);
    assert!(outcome((&mut second).await).contains("\"id\":2"));
    theirs.write_all(format!("{OK}\n").as_bytes()).await.unwrap();
    let again = ask(&link, 1).await;
    assert_eq!(again, format!("ok {OK}"));
    assert!(side.inbox.all().is_empty());
}

#[tokio::test]
async fn a_number_in_use_is_refused() {
    let side = side(|_| {});
    let (link, _theirs) = open(&side).await;
    let first = link.exchange(request(1));
    tokio::pin!(first);
    assert!(tokio::time::timeout(Duration::from_millis(20), &mut first).await.is_err());
    assert!(ask(&link, 1).await.contains("in use"));
}

#[tokio::test]
async fn line_breaks_between_tokens_do_not_break_the_line() {
    let side = side(|_| {});
    let (link, theirs) = open(&side).await;
    link.notify(outgoing(None, "{\n  \"a\":\r\n \"b\\n\"\n}".into())).await.unwrap();
    let mut line = String::new();
    BufReader::new(theirs).read_line(&mut line).await.unwrap();
    assert_eq!(line, "{   \"a\":   \"b\\n\" }\n");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_read_slows_its_senders_and_nobody_else() {
    let side = quiet_side(|_| {});
    let (ours, theirs) = tokio::io::duplex(1_000);
    let (read, write) = tokio::io::split(ours);
    let link = pipes(read, write).connect(side.options.clone()).await.unwrap();
    let message = |n: usize| outgoing(None, format!("{{\"n\":{n},\"pad\":\"{}\"}}", "x".repeat(10_000)));
    let told = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let senders: Vec<_> = (0..500)
        .map(|n| {
            let (link, told, message) = (link.clone(), told.clone(), message(n));
            tokio::spawn(async move {
                link.notify(message).await.unwrap();
                told.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            })
        })
        .collect();
    // Time passes: the runtime is not blocked.
    tokio::time::sleep(Duration::from_secs(5)).await;
    let taken = told.load(std::sync::atomic::Ordering::SeqCst);
    assert!((20..=60).contains(&taken), "about half a megabyte is taken, and no more: {taken}");
    for _ in 0..1_000 {
        link.notify_detached(message(0));
    }
    // Now it reads: all that waited comes out, whole and in order.
    let reader = tokio::spawn(async move {
        let mut lines = BufReader::new(theirs).lines();
        let mut numbers = std::collections::BTreeSet::new();
        while let Some(line) = lines.next_line().await.unwrap() {
            let line: serde_json::Value = serde_json::from_str(&line).unwrap();
            numbers.insert(line["n"].as_u64().unwrap());
            if numbers.len() == 500 {
                break;
            }
        }
        numbers.len()
    });
    for sender in senders {
        sender.await.unwrap();
    }
    assert_eq!(reader.await.unwrap(), 500);
}

#[tokio::test(start_paused = true)]
async fn a_link_whose_server_does_not_read_can_be_closed() {
    let side = side(|_| {});
    let (ours, mut theirs) = tokio::io::duplex(1_000);
    let (read, write) = tokio::io::split(ours);
    let link = pipes(read, write).connect(side.options.clone()).await.unwrap();
    let waiting: Vec<_> = (0..100)
        .map(|n| {
            let link = link.clone();
            let big = outgoing(Some(n), format!("{{\"pad\":\"{}\"}}", "x".repeat(20_000)));
            tokio::spawn(async move { outcome(link.exchange(big).await) })
        })
        .collect();
    tokio::time::sleep(Duration::from_secs(1)).await;
    tokio::time::timeout(Duration::from_secs(10), link.close()).await.expect("closing has a deadline");
    for waiting in waiting {
        assert_eq!(waiting.await.unwrap(), "Closed(\"the connection was closed by this client\")");
    }
    tokio::time::timeout(Duration::from_secs(1), link.close()).await.expect("closing again is not a work");
    assert!(ask(&link, 7).await.starts_with("Closed("));
    assert!(side.inbox.all().is_empty(), "whoever closes is not told");
    let mut rest = Vec::new();
    theirs.read_to_end(&mut rest).await.unwrap();
}

#[tokio::test]
async fn what_was_said_last_arrives_before_the_end() {
    let side = side(|_| {});
    let (link, mut theirs) = open(&side).await;
    link.notify_detached(note("last-words"));
    link.close().await;
    let mut rest = String::new();
    theirs.read_to_string(&mut rest).await.unwrap();
    assert_eq!(rest, "{\"jsonrpc\":\"2.0\",\"method\":\"last-words\"}\n");
}

#[tokio::test]
async fn dropping_a_link_closes_its_streams() {
    let side = side(|_| {});
    let (link, mut theirs) = open(&side).await;
    drop(link);
    let mut rest = Vec::new();
    tokio::time::timeout(Duration::from_secs(20), theirs.read_to_end(&mut rest)).await.unwrap().unwrap();
    assert!(side.inbox.all().is_empty());
}

#[tokio::test]
async fn pipes_are_dialled_once() {
    let side = side(|_| {});
    let (read, write) = tokio::io::split(tokio::io::duplex(10).0);
    let pipes = pipes(read, write);
    let _link = pipes.connect(side.options.clone()).await.unwrap();
    let error = pipes.connect(side.options.clone()).await.err().unwrap();
    assert!(error.to_string().contains("only once"), "{error}");
    assert!(error.is_closed());
}

/// Reads memory of the whole process, so it is alone in its file's process only under nextest; the bound leaves room.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_flood_of_notifications_takes_no_memory_and_the_answer_still_comes() {
    let side = quiet_side(|_| {});
    let (link, mut theirs) = open(&side).await;
    let before = resident();
    let server = tokio::spawn(async move {
        let pad = "x".repeat(1_000);
        let note = format!("{{\"jsonrpc\":\"2.0\",\"method\":\"n\",\"params\":{{\"pad\":\"{pad}\"}}}}\n");
        for _ in 0..100_000 {
            theirs.write_all(note.as_bytes()).await.unwrap();
        }
        theirs.write_all(format!("{OK}\n").as_bytes()).await.unwrap();
        theirs
    });
    assert_eq!(ask(&link, 1).await, format!("ok {OK}"));
    assert_eq!(side.inbox.counted(), 100_000, "all of them before the answer");
    let grown = resident().saturating_sub(before);
    assert!(grown < 40 << 20, "100 MB have passed and {grown} bytes were kept");
    drop(server.await);
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn an_endless_line_takes_no_memory_and_the_link_goes_on() {
    let side = quiet_side(|limits| limits.messages.frame_bytes_max = 1 << 20);
    let (link, mut theirs) = open(&side).await;
    let before = resident();
    let (sender, endless) = tokio::sync::oneshot::channel::<()>();
    let server = tokio::spawn(async move {
        theirs.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"").await.unwrap();
        let chunk = vec![b'x'; 1 << 20];
        for _ in 0..1024 {
            theirs.write_all(&chunk).await.unwrap();
        }
        endless.await.unwrap();
        theirs.write_all(b"\"}\n{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{}}\n").await.unwrap();
        theirs
    });
    let first = ask(&link, 1).await;
    assert!(first.starts_with("Unreadable(\"the response exceeds the limit of 1048576 bytes"), "{first}");
    sender.send(()).unwrap();
    assert!(ask(&link, 2).await.starts_with("ok "), "the link goes on");
    let grown = resident().saturating_sub(before);
    assert!(grown < 40 << 20, "1 GiB have passed and {grown} bytes were kept");
    drop(server.await);
}

/// Answers that come in one piece wake many senders, whose next messages go out in one piece.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_senders_that_answer_in_step_never_stall() {
    let side = quiet_side(|_| {});
    let (link, mut theirs) = open(&side).await;
    tokio::spawn(async move {
        let (mut buffer, mut rest) = (vec![0; 1 << 16], Vec::new());
        while let Ok(n @ 1..) = theirs.read(&mut buffer).await {
            rest.extend_from_slice(&buffer[..n]);
            let whole = rest.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
            let mut answers = String::new();
            for line in String::from_utf8(rest.drain(..whole).collect()).unwrap().lines() {
                let line: serde_json::Value = serde_json::from_str(line).unwrap();
                answers.push_str(&format!("{{\"jsonrpc\":\"2.0\",\"id\":{},\"result\":{{}}}}\n", line["id"]));
            }
            theirs.write_all(answers.as_bytes()).await.unwrap();
        }
    });
    let tasks: Vec<_> = (0..64)
        .map(|task| {
            let link = link.clone();
            tokio::spawn(async move {
                for n in 0..100 {
                    assert!(ask(&link, task * 1_000 + n).await.starts_with("ok "), "{task} {n}");
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    link.notify_detached(note("last-words"));
    tokio::time::timeout(Duration::from_secs(1), link.close()).await.expect("nothing is left to write");
}
