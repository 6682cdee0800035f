//! Streams that end too early, and the stream on which a server speaks unasked.

use crate::remote::script::*;
use linchpin_core::limits::ClientLimits;
use std::sync::atomic::Ordering;
use std::time::Duration;

fn quick() -> ClientLimits {
    ClientLimits::default().with(|limits| limits.connections.resume_ms_max = 20)
}

/// What comes of one request of a session when the POST and each GET are answered like this; what was heard; which ids
/// were asked to be resumed after.
async fn resumed(answers: &[Vec<Do>]) -> (String, String, String) {
    let script = answers.to_vec();
    let server = Server::new(move |n, _| script[n.min(script.len() - 1)].clone()).await;
    let open = open_with(server.remote(), quick()).await;
    let outcome = open.tell_of(request(7, Some(legacy()))).await;
    assert!(
        open.notes.during.lock().unwrap().iter().all(|during| *during == Some(7)),
        "it came on the request's own stream"
    );
    let asked: Vec<String> = server
        .requests()
        .iter()
        .map(|seen| format!("{}:{}", seen.method, seen.header("last-event-id").unwrap_or_default()))
        .collect();
    (outcome.replace(&server.port.to_string(), "PORT"), open.notes.heard(), asked.join(" "))
}

#[tokio::test]
async fn a_stream_that_ends_before_the_answer_is_resumed_where_it_ended() {
    let cut = |body: &str| vec![Do::Write(events(body)), Do::Close];
    let whole = |status: u16| vec![Do::Write(answer(status, "", "")), Do::Close];
    let last = cut(&format!("id: 9\n{}", event(&result(7))));
    let prime = cut("id: 1\ndata:\n\n");
    let broken =
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 999\r\n\r\nid: 1\ndata:\n\n".to_vec();
    let ok = r#"{"n":7}"#;
    let ended = "cut off: the stream ended before the response";
    let none = "cut off: the stream ended before the response and is not resumed (status 405)";
    let rows: Vec<(Vec<Vec<Do>>, &str, &str, &str)> = vec![
        (vec![prime.clone(), last.clone()], ok, "", "POST: GET:1"),
        (vec![vec![Do::Write(broken), Do::Close], last.clone()], ok, "", "POST: GET:1"),
        // Cut in the middle of an event: that event comes again, whole.
        (
            vec![
                cut(&format!("id: 1\n{}id: 2\ndata: {{\"json", event(&note("a")))),
                cut(&format!("id: 2\n{}", event(&note("b")))),
                last.clone(),
            ],
            ok,
            "a b",
            "POST: GET:1 GET:2",
        ),
        // An id is kept until another comes.
        (vec![prime.clone(), cut(&event(&note("a"))), last.clone()], ok, "a", "POST: GET:1 GET:1"),
        (vec![prime.clone(), vec![Do::Write(json(&result(7)))]], ok, "", "POST: GET:1"),
        // Passing failures are tried again, lasting ones are not.
        (vec![prime.clone(), whole(503), vec![Do::Close], last.clone()], ok, "", "POST: GET:1 GET:1 GET:1"),
        (vec![prime.clone(), whole(405)], none, "", "POST: GET:1"),
        // Nothing new five times is the end of it, and progress starts that count anew.
        (vec![prime.clone(), cut("")], ended, "", "POST: GET:1 GET:1 GET:1 GET:1 GET:1"),
        (
            vec![
                prime.clone(),
                cut(""),
                cut(""),
                cut(""),
                cut(&format!("id: 2\n{}", event(&note("a")))),
                cut(""),
                cut(""),
                cut(""),
                last.clone(),
            ],
            ok,
            "a",
            "POST: GET:1 GET:1 GET:1 GET:1 GET:2 GET:2 GET:2 GET:2",
        ),
        // An id without a message is nothing new, though the next resume is after it.
        (
            (1..=9).map(|id| cut(&format!("id: {id}\nretry: 0\ndata:\n\n"))).chain([last.clone()]).collect(),
            ended,
            "",
            "POST: GET:1 GET:2 GET:3 GET:4 GET:5",
        ),
        // Without an id there is nothing to resume.
        (vec![cut(&event(&note("a"))), last.clone()], ended, "a", "POST:"),
        (vec![cut("retry: 1\n\n"), last.clone()], ended, "", "POST:"),
        (vec![cut("id: 1\ndata:\n\nid\ndata:\n\n"), last], ended, "", "POST:"),
    ];
    for (answers, want, heard, asked) in rows {
        let got = resumed(&answers).await;
        assert_eq!(got, (want.to_owned(), heard.to_owned(), asked.to_owned()));
    }
}

#[tokio::test]
async fn requests_that_stand_alone_are_never_resumed() {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 999\r\n\r\n";
    let event = "id: 1\nretry: 1\ndata:\n\n";
    for (bytes, want) in
        [(events(event), "the stream ended before the response"), (format!("{head}{event}").into(), "was cut off: ")]
    {
        let server = Server::new(move |_, _| vec![Do::Write(bytes.clone()), Do::Close]).await;
        let open = open_with(server.remote(), quick()).await;
        let outcome = open.tell_of(request(7, Some(modern()))).await;
        assert!(outcome.starts_with("cut off: ") && outcome.contains(want), "{outcome}");
        assert_eq!(server.requests().len(), 1);
    }
}

#[tokio::test]
async fn a_forgotten_session_is_not_resumed() {
    let server = Server::new(|n, seen| match n {
        0 => vec![Do::Write(answer(200, "mcp-session-id: s\r\n", &result(seen.id())))],
        1 => vec![Do::Write(events("id: 1\ndata:\n\n")), Do::Close],
        _ => vec![Do::Write(answer(404, "", ""))],
    })
    .await;
    let open = open_with(server.remote(), quick()).await;
    open.ask(request(1, None)).await.unwrap();
    assert_eq!(open.tell_of(request(2, Some(legacy()))).await, "forgotten");
}

#[tokio::test]
async fn the_wait_a_server_asks_for_is_kept_counted_from_the_end_of_the_stream() {
    let server = Server::new(|n, seen| match n {
        // The wish comes long before the end, and the time until the end does not count.
        0 => vec![Do::Write(events("id: 1\nretry: 300\ndata:\n\n")), Do::Wait(400), Do::Close],
        _ => vec![Do::Write(whole_events(&event(&result(7)))), Do::Wait(seen.id())],
    })
    .await;
    let open = open(server.remote()).await;
    assert_eq!(open.tell_of(request(7, Some(legacy()))).await, r#"{"n":7}"#);
    let closed = server.closed_at.lock().unwrap().unwrap();
    let waited = server.requests()[1].at.duration_since(closed);
    // Never earlier; how much later is the machine's affair.
    assert!(waited >= Duration::from_millis(290), "{waited:?}");
}

/// A server that answers POSTs and does this with the GETs, counted from 0.
async fn speaking(gets: Vec<Vec<Do>>) -> (Server, Open) {
    let server = Server::new(move |n, seen| match seen.method.as_str() {
        "GET" => gets[n.min(gets.len() - 1)].clone(),
        _ => vec![Do::Write(json(&result(seen.id())))],
    })
    .await;
    let open = open_with(server.remote(), quick()).await;
    open.link.negotiated(legacy());
    (server, open)
}

#[tokio::test]
async fn what_a_server_says_unasked_is_heard_and_its_stream_resumed() {
    let said = |id: u64, name: &str| vec![Do::Write(events(&format!("id: {id}\n{}", event(&note(name))))), Do::Close];
    let (server, open) = speaking(vec![
        said(1, "a"),
        vec![Do::Close],
        vec![Do::Write(answer(503, "", ""))],
        said(2, "b"),
        vec![Do::Write(events(&format!("data: garbage\n\n{}{}", event(&result(7)), event(&note("c"))))), Do::Hold],
    ])
    .await;
    assert_eq!(open.notes.heard_at_least(3).await, "a b c");
    assert_eq!(*open.notes.during.lock().unwrap(), [None; 3], "it belongs to no request");
    let asked: Vec<String> =
        server.requests().iter().map(|seen| seen.header("last-event-id").unwrap_or("-").to_owned()).collect();
    assert_eq!(asked, ["-", "1", "1", "1", "2"]);
    assert_eq!(open.notes.closed.lock().unwrap().len(), 0);
}

#[tokio::test]
async fn a_session_is_told_as_forgotten_by_a_stream_that_was_open_and_only_then() {
    let (hello, gone) = (vec![Do::Write(events(": hello\n\n")), Do::Close], vec![Do::Write(answer(404, "", ""))]);
    let (down, empty) = (vec![Do::Close], Vec::new());
    let rows = [
        ([hello.clone(), gone.clone(), empty.clone()], 1, 2),
        // In between, there is no server.
        ([hello, down, gone.clone()], 1, 3),
        // It never had a stream, or has no place for it.
        ([gone, empty.clone(), empty], 0, 1),
    ];
    for (gets, forgotten, asked) in rows {
        let server = Server::new(move |n, seen| match seen.method.as_str() {
            "GET" => gets[n - 1].clone(),
            _ => vec![Do::Write(answer(200, "mcp-session-id: s\r\n", &result(seen.id())))],
        })
        .await;
        let open = open_with(server.remote(), quick()).await;
        open.ask(request(1, None)).await.unwrap();
        open.link.negotiated(legacy());
        server.requests_at_least(1 + asked).await;
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert_eq!(open.notes.forgotten.load(Ordering::SeqCst), forgotten);
        assert_eq!(server.requests().len(), 1 + asked);
        assert_eq!(open.notes.closed.lock().unwrap().len(), 0);
    }
}

#[tokio::test]
async fn a_server_without_such_a_stream_is_asked_once() {
    let page = answer(200, "content-type: text/html\r\n", "<html>");
    for no in [
        answer(405, "", ""),
        answer(404, "", ""),
        answer(400, "", "bad"),
        answer(500, "", ""),
        answer(401, "", ""),
        page,
    ] {
        let (server, open) = speaking(vec![vec![Do::Write(no)]]).await;
        server.requests_at_least(1).await;
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert_eq!(server.requests().len(), 1);
        assert_eq!(open.tell_of(request(7, Some(legacy()))).await, r#"{"n":7}"#);
        assert_eq!(open.notes.closed.lock().unwrap().len(), 0);
    }
}

#[tokio::test]
async fn the_stream_ends_with_the_link() {
    for close in [true, false] {
        let (mut server, open) = speaking(vec![vec![Do::Write(events(": hello\n\n")), Do::Hold]]).await;
        server.requests_at_least(1).await;
        if close {
            open.link.close().await;
        }
        drop(open);
        server.left_at_least(1).await;
    }
}

#[tokio::test]
async fn an_endless_event_ends_the_stream_and_nothing_else() {
    let endless = vec![Do::Write(events("data: ")), Do::Forever(vec![b'x'; 4_000])];
    let mut server = Server::new(move |_, seen| match seen.method.as_str() {
        "GET" => endless.clone(),
        _ => vec![Do::Write(json(&result(seen.id())))],
    })
    .await;
    let open = open_with(server.remote(), quick().with(|limits| limits.messages.frame_bytes_max = 100_000)).await;
    open.link.negotiated(legacy());
    server.left_at_least(1).await;
    assert_eq!(open.tell_of(request(7, Some(legacy()))).await, r#"{"n":7}"#);
    let gets = server.requests().iter().filter(|seen| seen.method == "GET").count();
    assert_eq!(gets, 1);
}

#[tokio::test]
async fn a_tap_sees_what_is_said_and_heard_once_and_garbage_as_such() {
    let body = format!("data: garbage\n\n{}data: [7,\n\n{}", event(&note("a")), event(&result(7)));
    let server = Server::new(move |_, _| vec![Do::Write(whole_events(&body))]).await;
    let open = open_with(server.remote(), quick()).await;
    open.ask(request(7, Some(modern()))).await.unwrap();
    let tapped: Vec<String> =
        open.notes.tapped.lock().unwrap().iter().map(|seen| seen.chars().take(34).collect()).collect();
    let want = [
        r#"Sent("{\"jsonrpc\":\"2.0\",\"id\":7"#,
        "Request { method: POST, uri: http:",
        "Response { status: 200, headers: {",
        r#"Garbage("garbage")"#,
        r#"Heard("{\"jsonrpc\":\"2.0\",\"method"#,
        r#"Garbage("[7,")"#,
        r#"Heard("{\"jsonrpc\":\"2.0\",\"id\":"#,
    ];
    assert_eq!(tapped, want.map(|seen| seen.chars().take(34).collect::<String>()));
}
