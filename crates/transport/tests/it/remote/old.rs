//! The transport of 2024-11-05.

use crate::remote::script::*;
use linchpin_core::limits::ClientLimits;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// A server of the old transport: what its stream begins with, how POSTs are answered, and whether answers to requests
/// are said on the stream.
fn old(first: &str, posted: Vec<u8>, say: bool) -> impl Fn(usize, &Seen) -> Vec<Do> + Send + Sync + use<> {
    let first = events(first);
    let sender = Arc::new(watch::Sender::new(String::new()));
    move |_, seen| {
        if seen.method == "POST" {
            if say {
                sender.send_modify(|said| said.push_str(&event(&result(seen.id()))));
            }
            return vec![Do::Write(posted.clone())];
        }
        vec![Do::Write(first.clone()), Do::Follow(sender.subscribe())]
    }
}

const ENDPOINT: &str = "event: endpoint\ndata: /messages?session=1\n\n";

#[tokio::test]
async fn requests_are_posted_and_their_answers_come_on_the_stream() {
    let first = format!("{ENDPOINT}data: garbage\n\n{}", event(&note("a")));
    for posted in
        [answer(202, "", "Accepted"), answer(200, "", ""), answer(200, "content-type: application/json\r\n", "\"ok\"")]
    {
        let server = Server::new(old(&first, posted, true)).await;
        for only in [true, false] {
            let place = if only { server.remote().sse() } else { server.remote() };
            let mut open = open(place).await;
            if !only {
                open.link = open.link.fallback().await.unwrap().unwrap();
            }
            let (a, b) = tokio::join!(open.ask(request(7, None)), open.ask(request(8, None)));
            assert_eq!((outcome(a), outcome(b)), (r#"{"n":7}"#.to_owned(), r#"{"n":8}"#.to_owned()));
            open.link.notify(notification(None)).await.unwrap();
            assert_eq!(open.notes.heard_at_least(1).await, "a");
            assert!(!open.link.cancels_by_dropping());
            open.link.close().await;
            assert_eq!(open.tell_of(request(9, None)).await, "closed: the connection was closed");
            assert!(open.notes.closed.lock().unwrap().is_empty());
        }
        for seen in server.requests() {
            assert_eq!(seen.path, if seen.method == "POST" { "/messages?session=1" } else { "/mcp" });
            assert_eq!(seen.header("mcp-session-id"), None);
        }
    }
}

#[tokio::test]
async fn an_answer_in_the_body_counts_too() {
    let server = Server::new(old(ENDPOINT, json(&result(7)), false)).await;
    let open = open(server.remote().sse()).await;
    assert_eq!(open.tell_of(request(7, None)).await, r#"{"n":7}"#);
}

#[tokio::test]
async fn a_refused_post_fails_that_request_only() {
    let server = Server::new(old(ENDPOINT, answer(400, "", "no"), false)).await;
    let open = open(server.remote().sse()).await;
    assert_eq!(open.tell_of(request(7, None)).await, "status 400: no");
    assert_eq!(open.tell_of(request(8, None)).await, "status 400: no");
}

#[tokio::test]
async fn what_is_no_such_server_does_not_open() {
    let name = "http://127.0.0.1:PORT/mcp";
    let rows = [
        (vec![Do::Write(answer(404, "", "gone"))], "the server returned status 404: gone".to_owned()),
        (vec![Do::Write(answer(405, "", ""))], "the server returned status 405".to_owned()),
        (vec![Do::Write(json("{}"))], format!("{name} did not return an event stream for GET")),
        (vec![Do::Write(events("")), Do::Close], format!("{name} closed its stream at once")),
        (vec![Do::Write(events(": hello\n\n")), Do::Hold], format!("{name} did not send an endpoint event in time")),
        (
            vec![Do::Write(events("event: endpoint\ndata: ")), Do::Forever(vec![b'x'; 1_000])],
            "an event of the stream is longer than the limit of 100000 bytes".to_owned(),
        ),
    ];
    let elsewhere = [
        "http://127.0.0.1:1/x",
        "https://127.0.0.1/x",
        "http://localhost/x",
        "http://user@evil.example/x",
        "http://127.0.0.1@evil.example/x",
        "//evil.example/x",
        "\\\\evil.example/x",
        "/\\evil.example/x",
        "file:///etc/passwd",
        "javascript:alert(1)",
        "data:text/plain,x",
    ];
    let elsewhere = elsewhere.map(|endpoint| {
        let steps = vec![Do::Write(events(&format!("event: endpoint\ndata: {endpoint}\n\n"))), Do::Hold];
        (steps, format!("{name} sent an endpoint of another origin, which is not trusted"))
    });
    for (steps, want) in rows.into_iter().chain(elsewhere) {
        let server = Server::new(move |_, _| steps.clone()).await;
        let limits = ClientLimits::default().with(|limits| {
            limits.connections.connect_ms_max = 300;
            limits.messages.frame_bytes_max = 100_000;
        });
        let error = open_fails(server.remote().sse(), limits).await;
        assert_eq!(error.to_string().replace(&server.port.to_string(), "PORT"), want);
    }
}

#[tokio::test]
async fn the_end_of_the_stream_is_the_end_of_the_link() {
    let server = Server::new(|_, seen| match seen.method.as_str() {
        "GET" => vec![Do::Write(events(ENDPOINT)), Do::Wait(300), Do::Close],
        _ => vec![Do::Write(answer(202, "", ""))],
    })
    .await;
    let open = open(server.remote().sse()).await;
    let ended = format!("closed: {} closed the stream", server.url());
    assert_eq!(open.tell_of(request(7, None)).await, ended);
    assert_eq!(open.tell_of(request(8, None)).await, ended);
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert_eq!(*open.notes.closed.lock().unwrap(), [format!("{} closed the stream", server.url())]);
}

#[tokio::test]
async fn dropping_the_link_closes_the_stream() {
    let mut server = Server::new(old(ENDPOINT, answer(202, "", ""), false)).await;
    let open = open(server.remote().sse()).await;
    let asking = tokio::time::timeout(Duration::from_millis(50), open.link.exchange(request(7, None)));
    assert!(asking.await.is_err());
    drop(open);
    server.left_at_least(1).await;
}
