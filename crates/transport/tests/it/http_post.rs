//! POSTs: bytes in, status and body out.
#![cfg(all(feature = "http", feature = "sse"))]

use crate::common;

use common::Fake;
use common::wire::*;

#[tokio::test]
async fn a_ready_call_is_answered_as_json_on_a_connection_that_stays() {
    let server = Server::start(Fake::new()).await;
    let mut conn = server.connect().await;
    for id in ["1", "\"a\""] {
        conn.send(&alone(id, "echo", "")).await;
        let r = conn.response().await;
        assert_eq!((r.status, r.header("content-type")), (200, Some("application/json")));
        assert_eq!(r.body, format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"v":"echo","resultType":"complete"}}}}"#));
    }
}

#[tokio::test]
async fn a_client_that_names_the_stream_first_gets_a_finished_answer_as_one_event() {
    let server = Server::start(Fake::new()).await;
    let streams = ("accept", "text/event-stream, application/json");
    let r = server.ask(&alone_with("7", "echo", "", &[streams])).await;
    assert_eq!((r.status, r.header("content-type")), (200, Some("text/event-stream")));
    assert_eq!(
        r.body,
        "data: {\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{\"v\":\"echo\",\"resultType\":\"complete\"}}\n\n"
    );
    assert_eq!(r.headers.iter().filter(|(name, _)| name == "content-type").count(), 1);
    // A refusal stays a document: its status is what matters.
    let r = server.ask(&alone_with("7", "echo", "", &[streams, ("mcp-method", "tools/list")])).await;
    assert_eq!((r.status, r.header("content-type")), (400, Some("application/json")));
}

#[tokio::test]
async fn each_mistake_has_its_status_and_says_what_to_do() {
    let server = Server::start(Fake::with(|l| l.messages.frame_bytes_max = 4096)).await;
    let echo = |headers: &[(&str, &str)]| alone_with("7", "echo", "", headers);
    let session = |body: &str| post(&[], body);
    let long = format!("{{\"long\":\"{}\"", "x".repeat(5000));
    let table: &[(&str, String, u16, &str)] = &[
        ("no content type", echo(&[("content-type", "")]), 415, "application/json"),
        ("another content type", echo(&[("content-type", "text/plain")]), 415, "application/json"),
        ("a charset is fine", echo(&[("content-type", "application/json; charset=utf-8")]), 200, "echo"),
        ("identity is not a compression", echo(&[("content-encoding", "identity")]), 200, "echo"),
        ("compressed", echo(&[("content-encoding", "gzip")]), 415, "Content-Encoding"),
        ("only JSON wanted", echo(&[("accept", "application/json")]), 406, "text/event-stream"),
        ("only events wanted", echo(&[("accept", "text/event-stream")]), 406, "application/json"),
        ("anything wanted", echo(&[("accept", "*/*")]), 200, "echo"),
        ("nothing said about wants", echo(&[("accept", "")]), 200, "echo"),
        ("another path", post_to("/other", &[], "{}"), 404, "/other"),
        ("OPTIONS", bare("OPTIONS", "/mcp", &[]), 405, "POST, GET, DELETE"),
        ("PUT", bare("PUT", "/mcp", &[]), 405, "POST, GET, DELETE"),
        ("GET without a session", bare("GET", "/mcp", &[]), 400, "Mcp-Session-Id"),
        (
            "GET of a client without sessions",
            bare("GET", "/mcp", &[("mcp-protocol-version", "2026-07-28")]),
            405,
            "POST",
        ),
        ("DELETE without a session", bare("DELETE", "/mcp", &[]), 400, "Mcp-Session-Id"),
        (
            "DELETE of a client without sessions",
            bare("DELETE", "/mcp", &[("mcp-protocol-version", "2026-07-28")]),
            405,
            "POST",
        ),
        ("no Host", echo(&[("host", "")]), 400, "Host"),
        ("two Hosts", echo(&[("host", "localhost"), ("host", "localhost")]), 400, "Host"),
        (
            "two sessions",
            post(&[("mcp-session-id", "a"), ("mcp-session-id", "b")], &call("5", "echo", "")),
            400,
            "mcp-session-id",
        ),
        (
            "two versions",
            echo(&[("mcp-protocol-version", "2026-07-28"), ("mcp-protocol-version", "2025-11-25")]),
            400,
            "mcp-protocol-version",
        ),
        (
            "two last events",
            bare("GET", "/mcp", &[("last-event-id", "1-1"), ("last-event-id", "1-2")]),
            400,
            "last-event-id",
        ),
        ("two of another header", echo(&[("x-other", "a"), ("x-other", "b")]), 200, "echo"),
        ("too long by its own account", post(&[], &long), 413, "exceeds"),
        ("no JSON", session("{"), 400, "-32700"),
        ("no UTF-8 would be the same", session("nonsense"), 400, "-32700"),
        ("no message", session("5"), 400, "-32600"),
        ("empty", session(""), 400, "-32700"),
        ("an empty batch", session("[]"), 400, "-32600"),
        ("a batch without a session", session(r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#), 400, "batches"),
        ("wrong shape keeps its id", session(r#"{"jsonrpc":"1.0","id":5,"method":"ping"}"#), 400, r#""id":5"#),
        ("no session named", session(&call("5", "echo", "")), 400, r#""id":5"#),
        ("an unknown session", post(&[("mcp-session-id", &"0".repeat(32))], &call("5", "echo", "")), 404, r#""id":5"#),
        ("a malformed session", post(&[("mcp-session-id", "x")], &call("5", "echo", "")), 404, r#""id":5"#),
        ("a header that differs", echo(&[("mcp-method", "tools/list")]), 400, "-32020"),
        ("an unknown method", alone("7", "echo", "").replace("tools/call", "tools/fall"), 404, "-32601"),
        ("an error of the call", alone("7", "echo", "error:-32602"), 200, "-32602"),
        ("a missing capability", alone("7", "echo", "error:-32021"), 400, "-32021"),
        (
            "a notification that belongs nowhere",
            post(&[("mcp-protocol-version", "2026-07-28")], r#"{"jsonrpc":"2.0","method":"n"}"#),
            202,
            "",
        ),
        (
            "a response that belongs nowhere",
            post(&[("mcp-protocol-version", "2026-07-28")], r#"{"jsonrpc":"2.0","id":1,"result":{}}"#),
            400,
            "-32600",
        ),
        ("a mirrored argument that is missing", alone("7", "mirrored", "done"), 400, "mcp-param-do"),
        ("a mirrored argument", alone_with("7", "mirrored", "done", &[("mcp-param-do", "done")]), 200, "mirrored"),
    ];
    for (what, request, status, part) in table {
        let r = server.ask(request).await;
        assert_eq!(r.status, *status, "{what}: {r:?}");
        assert!(r.body.contains(part), "{what}: {r:?}");
        if r.status >= 400 {
            assert_eq!(r.header("content-type"), Some("application/json"), "{what}");
            assert!(r.body.starts_with(r#"{"jsonrpc":"2.0","#), "{what}: {}", r.body);
        }
        if r.status == 405 {
            assert!(r.header("allow").is_some_and(|a| a.contains(part)), "{what}");
        }
        if r.status == 202 {
            assert_eq!(r.header("content-type"), None, "{what}");
        }
    }
}

#[tokio::test]
async fn a_browser_that_opens_the_endpoint_gets_a_sentence_with_the_same_status() {
    let server = Server::start(Fake::new()).await;
    let html = ("accept", "text/html,application/xhtml+xml,*/*;q=0.8");
    for (headers, status) in [(&[html][..], 400), (&[html, ("mcp-protocol-version", "2026-07-28")], 405)] {
        let r = server.ask(&bare("GET", "/mcp", headers)).await;
        assert_eq!((r.status, r.header("content-type")), (status, Some("text/plain; charset=utf-8")), "{r:?}");
        assert!(r.body.starts_with("This is an MCP endpoint"), "{r:?}");
        assert_eq!(r.header("allow").is_some(), status == 405, "{r:?}");
    }
}

#[tokio::test]
async fn foreign_hosts_and_origins_are_refused_on_every_endpoint_before_the_body() {
    let server = Server::start_with(Fake::new(), |http| http.with_sse()).await;
    let addr = server.addr.to_string();
    for (method, path) in [
        ("POST", "/mcp"),
        ("GET", "/mcp"),
        ("DELETE", "/mcp"),
        ("OPTIONS", "/mcp"),
        ("GET", "/sse"),
        ("POST", "/message?sessionId=1"),
        ("GET", "/elsewhere"),
    ] {
        for (headers, refused) in [
            (&[("host", "evil.example")][..], true),
            (&[("host", "localhost"), ("origin", "http://evil.example")], true),
            (&[("host", "localhost"), ("origin", "null")], true),
            (&[("host", addr.as_str()), ("origin", "http://localhost:6274")], false),
        ] {
            // A body is announced and never sent.
            let length: &[(&str, &str)] = if method == "POST" { &[("content-length", "50")] } else { &[] };
            let headers = [headers, length, &[("content-type", "text/plain"), ("accept", "text/html")]].concat();
            let mut conn = server.connect().await;
            conn.send(&bare(method, path, &headers)).await;
            let r = conn.head().await;
            assert_eq!(r.status == 403, refused, "{method} {path} {headers:?} gave {}", r.status);
        }
    }
}

#[tokio::test]
async fn hosts_and_origins_can_be_allowed() {
    let server = Server::start_with(Fake::new(), |http| {
        http.allow_host("mcp.example").allow_origin("https://app.example").path("/here")
    })
    .await;
    let body = initialize("2025-11-25");
    for (host, origin, status) in [
        ("mcp.example:8443", "", 200),
        ("mcp.example", "https://app.example", 200),
        ("localhost", "", 200),
        ("mcp.example", "https://mcp.example", 403),
        ("other.example", "", 403),
    ] {
        let r = server.ask(&post_to("/here", &[("host", host), ("origin", origin)], &body)).await;
        assert_eq!(r.status, status, "Host {host}, Origin {origin}");
        if status == 403 {
            let hints = if host == "other.example" {
                [".allow_host(", "--accept-host"]
            } else {
                [".allow_origin(", "--allow-origin"]
            };
            assert!(hints.iter().all(|hint| r.body.contains(hint)), "{}", r.body);
        }
    }
    let any = Server::start_with(Fake::new(), |http| http.allow_any_host()).await;
    assert_eq!(any.ask(&post(&[("host", "evil.example")], &body)).await.status, 200);
    assert_eq!(any.ask(&post(&[("host", "evil.example"), ("origin", "http://evil.example")], &body)).await.status, 403);
}

#[tokio::test]
async fn pages_of_an_allowed_origin_may_call_and_read_the_answers() {
    let server = Server::start_with(Fake::new(), |http| http.allow_origin("https://app.example").with_sse()).await;
    let page = ("origin", "https://app.example");
    let preflight = [
        page,
        ("access-control-request-method", "POST"),
        ("access-control-request-headers", "content-type,mcp-session-id,mcp-param-city"),
    ];
    for path in ["/mcp", "/sse", "/message"] {
        let r = server.ask(&bare("OPTIONS", path, &preflight)).await;
        assert_eq!(r.status, 204, "{path}: {r:?}");
        assert_eq!(r.header("access-control-allow-origin"), Some(page.1), "{path}");
        assert_eq!(r.header("access-control-allow-methods"), Some("POST, GET, DELETE"), "{path}");
        assert_eq!(r.header("access-control-allow-headers"), Some(preflight[2].1), "{path}");
        assert_eq!(r.header("vary"), Some("origin"), "{path}");
        assert!(r.header("access-control-max-age").is_some(), "{path}");
    }
    // Refusals can be read, too, or a page could not tell why.
    let mut id = String::new();
    for (request, status) in [
        (post(&[page], &initialize("2025-11-25")), 200),
        (alone_with("1", "echo", "", &[page]), 200),
        (post(&[page, ("mcp-session-id", "none")], &call("5", "echo", "")), 404),
        (bare("PUT", "/mcp", &[page]), 405),
    ] {
        let r = server.ask(&request).await;
        assert_eq!(r.status, status, "{r:?}");
        assert_eq!(r.header("access-control-allow-origin"), Some(page.1), "{r:?}");
        assert_eq!(
            r.header("access-control-expose-headers"),
            Some("mcp-session-id, www-authenticate, dpop-nonce"),
            "{r:?}"
        );
        assert_eq!(r.header("vary"), Some("origin"), "{r:?}");
        id = r.header("mcp-session-id").map_or(id, str::to_owned);
    }
    let mut conn = server.connect().await;
    conn.send(&bare("GET", "/mcp", &[page, ("mcp-session-id", &id), ("accept", "text/event-stream")])).await;
    let r = conn.head().await;
    assert_eq!((r.status, r.header("access-control-allow-origin")), (200, Some(page.1)));
    // By default nobody is named: pages of this machine are let in, but their browser is not told that it may.
    let default = Server::start(Fake::new()).await;
    let local = ("origin", "http://localhost:6274");
    for (request, status) in [
        (bare("OPTIONS", "/mcp", &[local, ("access-control-request-method", "POST")]), 405),
        (alone_with("1", "echo", "", &[local]), 200),
    ] {
        let r = default.ask(&request).await;
        assert_eq!(r.status, status);
        assert!(!r.headers.iter().any(|(name, _)| name.starts_with("access-control")), "{r:?}");
    }
    // Others learn nothing, and programs, which send no Origin, need none of it.
    let foreign = [("origin", "https://evil.example"), ("access-control-request-method", "POST")];
    for (request, status) in [(bare("OPTIONS", "/mcp", &foreign), 403), (alone("1", "echo", ""), 200)] {
        let r = server.ask(&request).await;
        assert_eq!(r.status, status);
        assert!(!r.headers.iter().any(|(name, _)| name.starts_with("access-control")), "{r:?}");
    }
}

#[tokio::test]
async fn the_first_notification_turns_the_answer_into_a_stream() {
    let server = Server::start(Fake::new()).await;
    let mut conn = server.connect().await;
    conn.send(&alone("1", "t", "note gate:a note")).await;
    let head = conn.head().await;
    assert_eq!(head.status, 200);
    assert_eq!(head.header("content-type"), Some("text/event-stream"));
    assert_eq!(head.header("cache-control"), Some("no-store"));
    assert_eq!(head.header("x-accel-buffering"), Some("no"));
    let note = |n| format!(r#"data: {{"jsonrpc":"2.0","method":"note","params":{{"n":{n},"of":"t","pad":""}}}}"#);
    assert_eq!(conn.event().await.unwrap(), note(1), "without an id: such a stream cannot be resumed");
    server.fake.open_gate("a");
    assert_eq!(conn.event().await.unwrap(), note(2));
    assert!(conn.event().await.unwrap().starts_with(r#"data: {"jsonrpc":"2.0","id":1,"result""#));
    assert_eq!(conn.event().await, None, "the answer ends the stream");
    // The connection is as good as before.
    conn.send(&alone("2", "t", "gate:a")).await;
    assert!(conn.response().await.body.contains(r#""id":2"#), "nothing notified, nothing streamed");
}

#[tokio::test]
async fn a_client_that_stands_alone_is_never_asked_and_never_sent_away() {
    let server = Server::start(Fake::new()).await;
    let r = server.ask(&alone("1", "t", "pause:5 ask")).await;
    assert_eq!(r.header("content-type"), Some("application/json"));
    assert!(r.body.contains(r#""answer":"Disconnected""#), "{r:?}");
}

#[tokio::test]
async fn closing_the_connection_cancels_a_request_that_stands_alone() {
    let server = Server::start(Fake::new()).await;
    for (tool, words) in [("silent", "gate:never"), ("noisy", "note gate:never")] {
        let mut conn = server.connect().await;
        conn.send(&alone("1", tool, words)).await;
        server.fake.until(&format!("started {tool}")).await;
        if words.starts_with("note") {
            conn.head().await;
            conn.event().await.unwrap();
        }
        drop(conn);
        server.fake.until(&format!("dropped {tool}")).await;
    }
}

#[tokio::test]
async fn equal_ids_of_two_clients_get_their_own_answers() {
    let server = Server::start(Fake::new()).await;
    let (mut a, mut b) = (server.connect().await, server.connect().await);
    a.send(&alone("1", "a", "gate:a")).await;
    b.send(&alone("1", "b", "note")).await;
    b.head().await;
    assert!(b.event().await.unwrap().contains(r#""of":"b""#));
    assert!(b.event().await.unwrap().contains(r#""v":"b""#));
    server.fake.open_gate("a");
    assert!(a.response().await.body.contains(r#""v":"a""#));
}

#[tokio::test]
async fn headers_reach_the_handler_and_a_body_in_pieces_is_one_message() {
    let server = Server::start(Fake::new()).await;
    let request = alone_with("1", "echo", "", &[("x-test", "seen")]);
    let mut conn = server.connect().await;
    for piece in request.as_bytes().chunks(7) {
        conn.send_bytes(piece).await;
        tokio::task::yield_now().await;
    }
    assert_eq!(conn.response().await.status, 200);
    server.fake.until("x-test seen").await;
    // The same with a chunked body.
    let (head, body) = request.split_once("\r\n\r\n").unwrap();
    let head: String = head.lines().filter(|l| !l.starts_with("content-length")).map(|l| format!("{l}\r\n")).collect();
    let (a, b) = body.split_at(30);
    let chunked =
        format!("{head}transfer-encoding: chunked\r\n\r\n{:x}\r\n{a}\r\n{:x}\r\n{b}\r\n0\r\n\r\n", a.len(), b.len());
    assert_eq!(server.ask(&chunked).await.status, 200);
}

#[tokio::test]
async fn a_listen_request_hears_of_changes_until_the_server_ends() {
    let mut server = Server::start(Fake::new()).await;
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":"s","method":"subscriptions/listen","params":{{"notifications":{{"toolsListChanged":true}},{META}}}}}"#
    );
    let mut conn = server.connect().await;
    conn.send(&post(&[("mcp-protocol-version", "2026-07-28"), ("mcp-method", "subscriptions/listen")], &body)).await;
    assert_eq!(conn.head().await.status, 200);
    conn.event().await.unwrap();
    use linchpin_core::ServerChange;
    server.fake.changes().publish(&ServerChange::Tools);
    let event = conn.event().await.unwrap();
    assert!(event.contains("tools/list_changed") && event.contains(r#"subscriptionId":"s""#), "{event}");
    server.begin_stop();
    assert!(conn.event().await.unwrap().contains(r#""id":"s","result""#), "the final answer");
    assert_eq!(conn.event().await, None);
    server.stop().await;
}
