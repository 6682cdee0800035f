//! One request, and everything that may answer it.

use crate::remote::script::*;
use linchpin_core::limits::ClientLimits;
use std::time::Duration;

/// What comes of one request answered like this, with the port replaced, and what was heard on the way.
async fn check(features: &'static linchpin_core::Features, steps: Vec<Do>) -> (String, String) {
    let server = Server::new(move |_, _| steps.clone()).await;
    let open = open(server.remote()).await;
    let outcome = open.tell_of(request(7, Some(features))).await;
    (outcome.replace(&server.port.to_string(), "PORT"), open.notes.heard())
}

const OK: &str = r#"{"n":7}"#;

#[tokio::test]
async fn whatever_answers_a_request_is_understood_or_refused_in_clear_words() {
    let error = r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32602,"message":"no"}}"#;
    let nobodys = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"no"}}"#;
    let server_error = r#"{"jsonrpc":"2.0","id":"server-error","error":{"code":-32600,"message":"no"}}"#;
    let said = r#"{"code":-32600,"message":"no"}"#;
    let form = |form: &str, body: &str| answer(200, &format!("content-type: {form}\r\n"), body);
    let (seven, eight) = (result(7), result(8));
    let wrong = seven.replace("\"n\":7", "\"n\":0");
    let batch = format!("[{},{},{},{seven}]", note("a"), result(9), note("b"));
    let long = "x".repeat(3_000);
    // The answer, what comes of it, what is heard.
    let rows: Vec<(Vec<u8>, &str, &str)> = vec![
        (json(&seven), OK, ""),
        (form("application/json; charset=utf-8", &seven), OK, ""),
        (form("Application/JSON ;x=y", &seven), OK, ""),
        (form("text/plain", &format!("\n {seven}")), OK, ""),
        (answer(200, "", &seven), OK, ""),
        (json(&format!("\r\n\t{seven}\n")), OK, ""),
        (json(&seven.replace(":7,", ":\"7\",")), OK, ""),
        (json(&seven.replace(":7,", ":7.0,")), OK, ""),
        (json(&batch), OK, "a b"),
        (json(error), r#"{"code":-32602,"message":"no"}"#, ""),
        (json(nobodys), said, ""),
        (json(&eight), "unreadable: http://127.0.0.1:PORT/mcp returned a response to another request", ""),
        (json(&note("a")), "unreadable: http://127.0.0.1:PORT/mcp returned a response to another request", "a"),
        (json("{\"jsonrpc\""), "unreadable: the response of http://127.0.0.1:PORT/mcp is invalid JSON at byte 10: expected a colon", ""),
        (json(""), "unreadable: http://127.0.0.1:PORT/mcp returned an empty response", ""),
        (answer(202, "", ""), "unreadable: http://127.0.0.1:PORT/mcp returned status 202 with an empty body", ""),
        (
            b"HTTP/1.1 204 No Content\r\n\r\n".to_vec(),
            "unreadable: http://127.0.0.1:PORT/mcp returned status 204 with an empty body",
            "",
        ),
        (
            form("text/html", "<html>"),
            "unreadable: http://127.0.0.1:PORT/mcp returned text/html, which is neither JSON nor an event stream",
            "",
        ),
        // Event streams.
        (whole_events(&event(&seven)), OK, ""),
        (form("text/event-stream;charset=utf-8", &event(&seven)), OK, ""),
        (form("text/plain", &event(&seven)), OK, ""),
        (answer(200, "", &format!(": hello\n\n{}", event(&seven))), OK, ""),
        (whole_events(&format!("{}{}{}", event(&note("a")), event(&note("b")), event(&seven))), OK, "a b"),
        (whole_events(&format!("{}{}", event(r#"{"jsonrpc":"2.0","id":1,"method":"ask"}"#), event(&seven))), OK, "ask#1"),
        (whole_events(&format!("data: garbage\n\n{}{}", event(&eight), event(&seven))), OK, ""),
        (whole_events(&format!("id: 1\ndata:\n\nevent: other\ndata: {wrong}\n\nevent: message\n{}", event(&seven))), OK, ""),
        (whole_events(&event(&batch)), OK, "a b"),
        (whole_events(&event(&note("a"))), "cut off: the stream ended before the response", "a"),
        (whole_events(""), "cut off: the stream ended before the response", ""),
        // Errors.
        (answer(400, "content-type: application/json\r\n", error), r#"400 {"code":-32602,"message":"no"}"#, ""),
        (answer(404, "", error), r#"404 {"code":-32602,"message":"no"}"#, ""),
        (answer(400, "", nobodys), &format!("400 {said}"), ""),
        (answer(400, "", &nobodys.replace("\"id\":null,", "")), &format!("400 {said}"), ""),
        (answer(400, "", server_error), &format!("400 {said}"), ""),
        (answer(400, "", &error.replace(":7,", ":8,")), &format!("status 400: {}", error.replace(":7,", ":8,")), ""),
        (answer(404, "", "not here\n"), "status 404: not here", ""),
        (answer(500, "", ""), "status 500: ", ""),
        (answer(503, "", &long), &format!("status 503: {}", &long[..2_048]), ""),
        (answer(403, "", "host not allowed"), "status 403: host not allowed", ""),
        (
            answer(401, "www-authenticate: Bearer\r\n", error),
            "unauthorized: http://127.0.0.1:PORT/mcp requires credentials (status 401); pass a token or configure a login",
            "",
        ),
    ]
    .into_iter()
    .map(|(bytes, want, heard)| (bytes, &*want.to_owned().leak(), heard))
    .collect();
    for (bytes, want, heard) in rows {
        let text = String::from_utf8_lossy(&bytes[..bytes.len().min(300)]).into_owned();
        assert_eq!(check(modern(), vec![Do::Write(bytes)]).await, (want.to_owned(), heard.to_owned()), "{text}");
    }
}

#[tokio::test]
async fn credentials_that_are_refused_are_told_with_the_reason_of_the_server() {
    let no = "unauthorized: http://127.0.0.1:PORT/mcp does not accept the credentials it was given (status 401)";
    let said = |text: &str| format!(r#"{{"jsonrpc":"2.0","id":null,"error":{{"code":-32001,"message":{text}}}}}"#);
    let challenge = "www-authenticate: Bearer error=\"invalid_token\", error_description=\"The token expired\"\r\n";
    let rows = [
        ("", String::new(), no.to_owned()),
        ("", "<html>no</html>".to_owned(), no.to_owned()),
        ("www-authenticate: Bearer\r\n", said("\" \""), no.to_owned()),
        ("", said(r#""unknown key""#), format!("{no}: unknown key")),
        (challenge, said(r#""unknown key""#), format!("{no}: unknown key")),
        (challenge, "<html>no</html>".to_owned(), format!("{no}: The token expired")),
        ("", said(r#""a\u001b[31m\r\nb""#), format!("{no}: a [31m b")),
        ("", said(&format!("{:?}", "x".repeat(1_000))), format!("{no}: {}…", "x".repeat(300))),
    ];
    for (headers, body, want) in rows {
        let bytes = answer(401, headers, &body);
        let server = Server::new(move |_, _| vec![Do::Write(bytes.clone())]).await;
        for place in [server.remote().bearer("secret"), server.remote().header("x-api-key", "secret")] {
            let got = open(place).await.tell_of(request(7, Some(modern()))).await;
            assert_eq!(got.replace(&server.port.to_string(), "PORT"), want);
        }
        // Other headers are no credentials.
        let got = open(server.remote().header("x-colour", "red")).await.tell_of(request(7, Some(modern()))).await;
        assert!(got.ends_with("requires credentials (status 401); pass a token or configure a login"), "{got}");
    }
}

#[tokio::test]
async fn answers_may_be_cut_anywhere_on_their_way() {
    let stream = format!("id: 1\r\ndata: {}\r\n\r\n: \u{fc}\n\ndata: {}\n\n", note("a"), result(7));
    for bytes in [json(&format!(" {}", result(7))), whole_events(&stream), events(&stream)] {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let heard = if text.contains("data") { "a" } else { "" };
        // Every cut into two, and every byte by itself.
        assert_eq!(check(modern(), vec![Do::Drip(bytes.clone())]).await, (OK.to_owned(), heard.to_owned()), "{text}");
        for at in (1..bytes.len()).step_by(3) {
            let steps = vec![Do::Write(bytes[..at].to_vec()), Do::Wait(1), Do::Write(bytes[at..].to_vec())];
            assert_eq!(check(modern(), steps).await, (OK.to_owned(), heard.to_owned()), "{at}");
        }
    }
    // Chunks of the transfer encoding.
    let body = event(&result(7));
    let mut chunked =
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n".to_vec();
    for byte in body.bytes() {
        chunked.extend([b"1\r\n".as_slice(), &[byte], b"\r\n"].concat());
    }
    chunked.extend(b"0\r\n\r\n");
    assert_eq!(check(modern(), vec![Do::Write(chunked)]).await.0, OK);
}

#[tokio::test]
async fn heads_and_chunks_with_much_beside_the_answer_are_read_or_refused() {
    let hints = "HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n".repeat(5_000).into_bytes();
    let (seven, length) = (result(7), result(7).len());
    let chunked = |extension: &str| {
        let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n";
        format!("{head}{length:x};{extension}\r\n{seven}\r\n0;{extension}\r\n\r\n").into_bytes()
    };
    let fields = |n: usize| answer(200, &"x: y\r\n".repeat(n), &seven);
    let rows = [
        ("hints", [hints, json(&seven)].concat(), Some(OK)),
        ("a chunk's extension", chunked("a=\"b\""), Some(OK)),
        ("a long extension", chunked(&"a".repeat(100_000)), None),
        ("many fields", fields(200_000), None),
        ("a long field", answer(200, &format!("x: {}\r\n", "a".repeat(100_000)), &seven), None),
    ];
    for (what, bytes, want) in rows {
        let outcome = check(modern(), vec![Do::Write(bytes)]).await.0;
        match want {
            Some(want) => assert_eq!(outcome, want, "{what}"),
            None => assert!(!outcome.contains("{\"n\"") && outcome.len() < 300, "{what}: {outcome:.300}"),
        }
    }
}

#[tokio::test]
async fn a_connection_that_breaks_is_told_as_such() {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{";
    let rows: [(Vec<Do>, &str); 5] = [
        (vec![Do::Close], "cut off: the request to 127.0.0.1:PORT failed: "),
        (vec![Do::Write(b"HTTP/1.1 2".to_vec()), Do::Close], "cut off: the request to 127.0.0.1:PORT failed: "),
        (
            vec![Do::Write(b"SSH-2.0-OpenSSH_9\r\n\r\n".to_vec()), Do::Close],
            "cut off: the request to 127.0.0.1:PORT failed: ",
        ),
        (vec![Do::Write(head.into()), Do::Close], "cut off: the response of 127.0.0.1:PORT was cut off: "),
        (vec![Do::Write(events("data: {\"jso")), Do::Close], "cut off: the stream ended before the response"),
    ];
    for (steps, want) in rows {
        let (outcome, _) = check(modern(), steps).await;
        assert!(outcome.starts_with(want), "{outcome} is not {want}");
    }
}

#[tokio::test]
async fn nobody_there_is_unreachable_at_first_and_a_failed_request_later() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let place = linchpin_transport::remote::remote(&format!("http://127.0.0.1:{port}/mcp")).unwrap().web(web());
    let outcome = open(place).await.tell_of(request(1, None)).await;
    assert_eq!(outcome, format!("unreachable: 127.0.0.1:{port} refused the connection"));

    let server = Server::new(|_, seen| vec![Do::Write(json(&result(seen.id()))), Do::Close]).await;
    let (open, port) = (open(server.remote()).await, server.port);
    assert_eq!(open.tell_of(request(7, Some(modern()))).await, OK);
    drop(server);
    let mut outcome = String::new();
    for _ in 0..100 {
        outcome = open.tell_of(request(8, Some(modern()))).await;
        if outcome.contains("refuses") {
            break;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(outcome, format!("cut off: 127.0.0.1:{port} refused the connection"));
}

#[tokio::test]
async fn what_never_ends_is_refused_at_the_limit_and_its_connection_closed() {
    let limits = ClientLimits::default().with(|limits| limits.messages.frame_bytes_max = 100_000);
    let head =
        |form: &str| format!("HTTP/1.1 200 OK\r\ncontent-type: {form}\r\nconnection: close\r\n\r\n").into_bytes();
    let piece = vec![b'x'; 4_000];
    let rows = [
        (head("application/json"), piece.clone(), "exceeds the limit of 100000 bytes"),
        (events("data: "), piece.clone(), "an event of the stream is longer than the limit of 100000 bytes"),
        (
            events(""),
            b"data: xxxxxxxxxx\n".repeat(100),
            "an event of the stream is longer than the limit of 100000 bytes",
        ),
        (b"HTTP/1.1 200 OK\r\n".to_vec(), b"x-filler: aaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n".to_vec(), "failed"),
        (b"HTTP/1.1 200 OK\r\nx: ".to_vec(), piece.clone(), "failed"),
        (b"HTTP/1.1 500 Oh\r\nconnection: close\r\n\r\n".to_vec(), piece, "status 500: xxx"),
    ];
    for (first, forever, want) in rows {
        let mut server = Server::new(move |_, _| vec![Do::Write(first.clone()), Do::Forever(forever.clone())]).await;
        let open = open_with(server.remote(), limits.clone()).await;
        let outcome = open.tell_of(request(7, Some(legacy()))).await;
        assert!(outcome.contains(want), "{outcome:.200} is not {want}");
        server.left_at_least(1).await;
    }
    // A length that is announced is refused before anything is read.
    let server = Server::new(|_, _| {
        let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 99999999999\r\n\r\n";
        vec![Do::Write(head.into()), Do::Hold]
    });
    let outcome = open_with(server.await.remote(), limits).await.tell_of(request(7, Some(modern()))).await;
    assert!(outcome.contains("exceeds the limit of 100000 bytes"), "{outcome}");
}

#[tokio::test]
async fn a_flood_of_notifications_passes_without_being_kept() {
    let server = Server::new(|_, seen| {
        let mut body = event(&note("tick")).repeat(20_000);
        body.push_str(&event(&result(seen.id())));
        vec![Do::Write(whole_events(&body))]
    })
    .await;
    let open = open(server.remote()).await;
    assert_eq!(open.tell_of(request(7, Some(modern()))).await, OK);
    assert_eq!(open.notes.heard.lock().unwrap().len(), 20_000);
}

#[tokio::test]
async fn an_exchange_that_is_dropped_closes_its_stream_and_connection() {
    let held: [Vec<u8>; 4] = [
        Vec::new(),
        b"HTTP/1.1 200".to_vec(),
        events(": hello\n\n"),
        b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{".to_vec(),
    ];
    for bytes in held {
        let mut server = Server::new(move |_, _| vec![Do::Write(bytes.clone()), Do::Hold]).await;
        let open = open(server.remote()).await;
        let asking = tokio::time::timeout(Duration::from_millis(200), open.link.exchange(request(7, Some(modern()))));
        assert!(asking.await.is_err());
        assert!(open.link.cancels_by_dropping());
        server.left_at_least(1).await;
    }
}

#[tokio::test]
async fn connections_are_used_again_and_a_stale_one_costs_nothing() {
    // Whole answers of both kinds keep the connection; the third request finds it closed by the server.
    let server = Server::new(|n, seen| match n {
        0 => vec![Do::Write(json(&result(seen.id())))],
        1 => vec![Do::Write(whole_events(&event(&result(seen.id()))))],
        2 => vec![Do::Write(json(&result(seen.id()))), Do::Close],
        _ => vec![Do::Write(json(&result(seen.id())))],
    })
    .await;
    let open = open(server.remote()).await;
    for id in 1..=5 {
        assert_eq!(open.tell_of(request(id, Some(modern()))).await, format!(r#"{{"n":{id}}}"#));
        while id == 3 && server.closed_at.lock().unwrap().is_none() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
    let connections: Vec<usize> = server.requests().iter().map(|seen| seen.connection).collect();
    assert_eq!(connections, [0, 0, 0, 1, 1]);
}

#[tokio::test]
async fn closing_ends_what_is_running() {
    let mut server = Server::new(|_, _| vec![Do::Hold]).await;
    let open = open(server.remote()).await;
    let (asked, ()) = tokio::join!(open.ask(request(7, Some(modern()))), async {
        server.requests_at_least(1).await;
        open.link.close().await;
    });
    assert_eq!(outcome(asked), "closed: the connection was closed");
    assert_eq!(open.tell_of(request(8, Some(modern()))).await, "closed: the connection was closed");
    server.left_at_least(1).await;
    open.link.close().await;
}
