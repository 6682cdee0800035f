//! What is said in which headers, and how a session begins, is lost and ends.

use crate::remote::script::*;
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use linchpin_core::connector::Authorizer;
use linchpin_core::limits::ClientLimits;
use linchpin_core::service::BoxFuture;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

fn with_session(body: &str) -> Vec<u8> {
    answer(200, "content-type: application/json\r\nmcp-session-id: abc-123\r\n", body)
}

/// Answers every POST, names a session each time, and has no stream of its own.
fn polite(_: usize, seen: &Seen) -> Vec<Do> {
    vec![Do::Write(match seen.method.as_str() {
        "POST" if seen.body.contains("\"id\"") => with_session(&result(seen.id())),
        "POST" => answer(202, "", ""),
        _ => answer(405, "", ""),
    })]
}

fn shown(seen: &Seen) -> String {
    let header = |name: &str| seen.header(name).unwrap_or("-").to_owned();
    format!("{} {} {} {}", seen.method, header("mcp-session-id"), header("mcp-protocol-version"), header("mcp-method"))
}

#[tokio::test]
async fn session_and_version_are_named_exactly_when_they_are_due() {
    let server = Server::new(polite).await;
    let open = open(server.remote()).await;
    let (legacy, modern) = (legacy(), modern());
    // A server that names a session in answer to a stateless request is not listened to.
    open.ask(request(1, Some(modern))).await.unwrap();
    open.ask(request(2, None)).await.unwrap();
    open.ask(request(3, Some(modern))).await.unwrap();
    open.ask(request(4, Some(legacy))).await.unwrap();
    open.link.notify(notification(Some(legacy))).await.unwrap();
    open.link.negotiated(legacy);
    server.requests_at_least(6).await;
    open.link.notify_detached(notification(Some(legacy)));
    server.requests_at_least(7).await;
    open.link.close().await;
    open.link.close().await;
    let got: Vec<String> = server.requests().iter().map(shown).collect();
    let want = [
        "POST - 2026-07-28 tools/call",
        "POST - - -",
        "POST - 2026-07-28 tools/call",
        "POST abc-123 2025-11-25 -",
        "POST abc-123 2025-11-25 -",
        "GET abc-123 2025-11-25 -",
        "POST abc-123 2025-11-25 -",
        "DELETE abc-123 2025-11-25 -",
    ];
    assert_eq!(got, want);
    for seen in server.requests() {
        let accept = match seen.method.as_str() {
            "POST" => "application/json, text/event-stream",
            "GET" => "text/event-stream",
            _ => "*/*",
        };
        assert_eq!(seen.header("accept"), Some(accept), "{}", seen.method);
        assert_eq!(seen.header("content-type"), (seen.method == "POST").then_some("application/json"));
        assert_eq!(seen.path, "/mcp");
    }
}

#[tokio::test]
async fn a_sessions_id_is_repeated_byte_for_byte_or_not_taken() {
    for id in ["a".repeat(60_000), "\u{fc}~ \u{20ac}".to_owned(), "a,b; c=\"d\"".to_owned()] {
        let given = id.clone();
        let server = Server::new(move |_, seen| {
            let head = format!("content-type: application/json\r\nmcp-session-id: {given}\r\n");
            vec![Do::Write(answer(200, &head, &result(seen.id())))]
        })
        .await;
        let open = open(server.remote()).await;
        open.ask(request(1, None)).await.unwrap();
        open.ask(request(2, Some(legacy()))).await.unwrap();
        assert_eq!(server.requests()[1].header("mcp-session-id"), Some(id.as_str()));
    }
}

#[tokio::test]
async fn a_server_without_sessions_is_spoken_to_without_one() {
    let server = Server::new(|_, seen| match seen.method.as_str() {
        "POST" => vec![Do::Write(json(&result(seen.id())))],
        _ => vec![Do::Write(answer(404, "", ""))],
    })
    .await;
    let open = open(server.remote()).await;
    open.ask(request(1, None)).await.unwrap();
    open.ask(request(2, Some(legacy()))).await.unwrap();
    open.link.negotiated(legacy());
    server.requests_at_least(3).await;
    open.link.close().await;
    let requests = server.requests();
    assert_eq!(requests.iter().map(|seen| seen.method.as_str()).collect::<Vec<_>>(), ["POST", "POST", "GET"]);
    assert!(requests.iter().all(|seen| seen.header("mcp-session-id").is_none()));
    assert!(open.notes.closed.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_session_that_is_not_known_any_more_is_told_as_forgotten() {
    let gone = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found"}}"#;
    let server = Server::new(move |n, seen| match n {
        0 => vec![Do::Write(with_session(&result(seen.id())))],
        _ => vec![Do::Write(answer(404, "content-type: application/json\r\n", gone))],
    })
    .await;
    let open = open(server.remote()).await;
    assert_eq!(open.tell_of(request(1, None)).await, r#"{"n":1}"#);
    // Every request finds it out, and so does a notification; only a new opening begins without the session.
    assert_eq!(open.tell_of(request(2, Some(legacy()))).await, "forgotten");
    assert_eq!(open.tell_of(request(3, Some(legacy()))).await, "forgotten");
    assert_eq!(
        open.link.notify(notification(Some(legacy()))).await.unwrap_err().to_string(),
        "the server no longer knows this session"
    );
    assert_eq!(open.tell_of(request(4, None)).await, r#"404 {"code":-32001,"message":"Session not found"}"#);
    let sessions: Vec<bool> = server.requests().iter().map(|seen| seen.header("mcp-session-id").is_some()).collect();
    assert_eq!(sessions, [false, true, true, true, false]);
}

#[tokio::test]
async fn dropping_cancels_only_what_stands_alone() {
    let server = Server::new(polite).await;
    let open = open(server.remote()).await;
    assert!(!open.link.cancels_by_dropping());
    open.ask(request(1, Some(modern()))).await.unwrap();
    assert!(open.link.cancels_by_dropping());
    open.ask(request(2, None)).await.unwrap();
    assert!(!open.link.cancels_by_dropping());
    open.link.negotiated(modern());
    assert!(open.link.cancels_by_dropping());
    open.link.negotiated(legacy());
    assert!(!open.link.cancels_by_dropping());
}

#[tokio::test]
async fn closing_does_not_wait_for_a_server_that_does_not_answer() {
    let server = Server::new(|n, seen| match n {
        0 => vec![Do::Write(with_session(&result(seen.id())))],
        _ => vec![Do::Hold],
    })
    .await;
    let open =
        open_with(server.remote(), ClientLimits::default().with(|limits| limits.connections.close_ms_max = 50)).await;
    open.ask(request(1, None)).await.unwrap();
    tokio::time::timeout(std::time::Duration::from_secs(20), open.link.close()).await.unwrap();
    assert_eq!(server.requests()[1].method, "DELETE");
}

/// Hands out a new token each time it is told that the last was refused.
struct Tokens {
    given: AtomicUsize,
    tries: usize,
}

impl Authorizer for Tokens {
    fn authorize<'a>(&'a self, head: &'a mut http::request::Parts) -> BoxFuture<'a, Result<(), Arc<str>>> {
        assert_eq!((&head.method, head.uri.path()), (&Method::POST, "/mcp"));
        let token = format!("token-{}", self.given.fetch_add(1, Ordering::Relaxed));
        head.headers.insert("authorization", HeaderValue::from_str(&token).unwrap());
        Box::pin(async { Ok(()) })
    }

    fn answered<'a>(
        &'a self,
        request: &'a http::request::Parts,
        status: StatusCode,
        headers: &'a HeaderMap,
    ) -> BoxFuture<'a, Result<bool, Arc<str>>> {
        assert!(request.headers.contains_key("authorization"));
        let again = status == 401 && self.given.load(Ordering::Relaxed) <= self.tries;
        let denied = headers.contains_key("x-denied");
        Box::pin(async move { if denied { Err("nobody may".into()) } else { Ok(again) } })
    }
}

#[tokio::test]
async fn the_authorizer_puts_credentials_on_and_may_ask_for_a_few_more_tries() {
    let refused = |headers: &str| answer(401, headers, "");
    // Answers; tries the authorizer is willing to make; what comes of it; requests sent.
    let fine = json(&result(7));
    let name = "http://127.0.0.1:PORT/mcp";
    let no = format!("unauthorized: {name} does not accept the credentials it was given (status 401)");
    let rows: [(Vec<Vec<u8>>, usize, String, usize); 6] = [
        (vec![fine.clone()], 9, r#"{"n":7}"#.into(), 1),
        (vec![refused(""), fine.clone()], 9, r#"{"n":7}"#.into(), 2),
        (vec![refused(""), refused(""), fine.clone()], 9, r#"{"n":7}"#.into(), 3),
        (vec![refused(""), refused("")], 1, no.clone(), 2),
        (vec![refused("")], 99, no, 5),
        (vec![refused("x-denied: 1\r\n")], 9, "unauthorized: nobody may".into(), 1),
    ];
    for (answers, tries, want, sent) in rows {
        let server = Server::new(move |n, _| vec![Do::Write(answers[n.min(answers.len() - 1)].clone())]).await;
        let open = open(server.remote().auth(Tokens { given: AtomicUsize::new(0), tries })).await;
        let got = open.tell_of(request(7, Some(modern()))).await;
        assert_eq!(got.replace(&server.port.to_string(), "PORT"), want);
        let tokens: Vec<String> =
            server.requests().iter().map(|seen| seen.header("authorization").unwrap().to_owned()).collect();
        assert_eq!(tokens, (0..sent).map(|n| format!("token-{n}")).collect::<Vec<_>>(), "{want}");
        // Trying again uses the same connection.
        assert!(server.requests().iter().all(|seen| seen.connection == 0));
    }
}

#[tokio::test]
async fn what_answers_the_server_carries_the_session_before_the_revision_is_known_too() {
    let server = Server::new(polite).await;
    let open = open(server.remote()).await;
    open.ask(request(1, None)).await.unwrap();
    open.link.notify(notification(None)).await.unwrap();
    let got: Vec<String> = server.requests().iter().map(shown).collect();
    assert_eq!(got, ["POST - - -", "POST abc-123 - -"]);
}

#[tokio::test]
async fn the_first_request_after_the_opening_waits_for_the_stream_but_not_for_ever() {
    for answers in [true, false] {
        let server = Server::new(move |_, seen| match seen.method.as_str() {
            "POST" => vec![Do::Write(with_session(&result(seen.id())))],
            _ if answers => vec![Do::Wait(50), Do::Write(STREAM.into()), Do::Hold],
            _ => vec![Do::Hold],
        })
        .await;
        let open = open(server.remote()).await;
        open.ask(request(1, None)).await.unwrap();
        open.link.negotiated(legacy());
        open.ask(request(2, Some(legacy()))).await.unwrap();
        let order: Vec<&str> = open
            .notes
            .tapped
            .lock()
            .unwrap()
            .iter()
            .filter_map(|seen| ["Sent", "listening"].into_iter().find(|word| seen.contains(word)))
            .collect();
        let want: &[&str] = if answers { &["Sent", "listening", "Sent"] } else { &["Sent", "Sent"] };
        assert_eq!(order, want);
    }
}

#[tokio::test]
async fn names_and_arguments_are_repeated_in_headers_that_nothing_breaks_out_of() {
    let server = Server::new(polite).await;
    let open = open(server.remote()).await;
    let rows = [
        ("plain name", "plain name"),
        ("a\r\nx-evil: 1", "=?base64?YQ0KeC1ldmlsOiAx?="),
        ("\u{e9}", "=?base64?w6k=?="),
        (" edge ", "=?base64?IGVkZ2Ug?="),
        ("=?base64?YQ==?=", "=?base64?PT9iYXNlNjQ/WVE9PT89?="),
    ];
    for (n, (name, want)) in (1..).zip(rows) {
        let mut out = request(n, Some(modern()));
        out.about = Some(name.into());
        out.mirrored = vec![("mcp-param-a".into(), want.to_owned())];
        open.ask(out).await.unwrap();
        let seen = server.requests().pop().unwrap();
        assert_eq!((seen.header("mcp-name"), seen.header("mcp-param-a")), (Some(want), Some(want)), "{name:?}");
        assert!(seen.header("x-evil").is_none());
    }
}
