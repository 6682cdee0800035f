//! The HTTP+SSE transport of revision 2024-11-05.
#![cfg(feature = "sse")]

use crate::common;

use bytes::Bytes;
use common::Fake;
use common::wire::*;
use http::{Method, Request, Response};
use http_body_util::{BodyExt, Full};
use linchpin_core::{Principal, ServerChange, Service};
use linchpin_transport::http::{HttpBody, HttpExt, HttpOptions, HttpService};
use std::sync::Arc;

async fn server(fake: std::sync::Arc<Fake>) -> Server {
    Server::start_with(fake, |http| http.with_sse()).await
}

/// An open stream and the address for its messages.
async fn open(server: &Server) -> (Conn, String) {
    let mut conn = server.connect().await;
    conn.send(&bare("GET", "/sse", &[("accept", "text/event-stream")])).await;
    let head = conn.head().await;
    assert_eq!((head.status, head.header("content-type")), (200, Some("text/event-stream")));
    let first = conn.event().await.unwrap();
    let address = first.strip_prefix("event: endpoint\ndata: ").unwrap().to_owned();
    let id = address.strip_prefix("/message?sessionId=").unwrap();
    assert_eq!(id.len(), 32);
    (conn, address)
}

async fn say(server: &Server, address: &str, body: &str) {
    // Clients of that time send no Accept.
    let r = server.ask(&post_to(address, &[("accept", "")], body)).await;
    assert_eq!((r.status, r.body.as_str()), (202, ""), "{body}");
}

async fn hear(conn: &mut Conn) -> String {
    let event = conn.event().await.unwrap();
    event.strip_prefix("event: message\ndata: ").unwrap_or_else(|| panic!("{event}")).to_owned()
}

async fn ready(server: &Server) -> (Conn, String) {
    let (mut conn, address) = open(server).await;
    say(server, &address, &initialize("2024-11-05")).await;
    assert_eq!(hear(&mut conn).await, r#"{"jsonrpc":"2.0","id":0,"result":{"v":"2024-11-05"}}"#);
    say(server, &address, r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await;
    (conn, address)
}

#[tokio::test]
async fn messages_go_by_post_and_answers_come_on_the_stream() {
    let server = server(Fake::new()).await;
    let (mut conn, address) = ready(&server).await;
    server.fake.until("notified notifications/initialized").await;
    say(&server, &address, &call("1", "t", "note ask")).await;
    assert!(hear(&mut conn).await.contains(r#""method":"note""#));
    assert!(hear(&mut conn).await.contains(r#""id":1,"method":"elicitation/create""#));
    say(&server, &address, r#"{"jsonrpc":"2.0","id":1,"result":{"yes":1}}"#).await;
    assert!(hear(&mut conn).await.contains(r#"{\"yes\":1}"#));
    server.fake.changes().publish(&ServerChange::Resources);
    assert!(hear(&mut conn).await.contains("resources/list_changed"));
    // Of two calls the quicker answers first.
    say(&server, &address, &call("2", "slow", "gate:a")).await;
    say(&server, &address, &call("3", "quick", "")).await;
    assert!(hear(&mut conn).await.contains(r#""v":"quick""#));
    server.fake.open_gate("a");
    assert!(hear(&mut conn).await.contains(r#""v":"slow""#));
    // What is cancelled is never answered.
    say(&server, &address, &call("4", "cancelled", "gate:never")).await;
    server.fake.until("started cancelled").await;
    say(&server, &address, r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":4}}"#).await;
    server.fake.until("cancelled cancelled").await;
    say(&server, &address, &call("5", "after", "")).await;
    assert!(hear(&mut conn).await.contains(r#""v":"after""#));
    say(&server, &address, &call("6", "t", "").replace("tools/call", "no/such")).await;
    assert!(hear(&mut conn).await.contains("-32601"));
}

#[tokio::test]
async fn two_clients_with_equal_ids_hear_their_own_answers_only() {
    let server = server(Fake::new()).await;
    let ((mut a, at_a), (mut b, at_b)) = (ready(&server).await, ready(&server).await);
    assert_ne!(at_a, at_b);
    say(&server, &at_a, &call("1", "a", "")).await;
    say(&server, &at_b, &call("1", "b", "")).await;
    assert!(hear(&mut a).await.contains(r#""v":"a""#) && hear(&mut b).await.contains(r#""v":"b""#));
}

#[tokio::test]
async fn closing_the_stream_ends_the_session_and_its_calls() {
    let server = server(Fake::with(|l| l.sessions.concurrent_max = 1)).await;
    let (conn, address) = ready(&server).await;
    say(&server, &address, &call("1", "t", "gate:never")).await;
    server.fake.until("started t").await;
    assert_eq!(server.ask(&bare("GET", "/sse", &[])).await.status, 503, "sessions are bounded");
    drop(conn);
    server.fake.until("cancelled t").await;
    assert_eq!(server.ask(&post_to(&address, &[], &call("2", "echo", ""))).await.status, 404);
    ready(&server).await;
}

#[tokio::test]
async fn refusals_have_a_status_and_a_reason() {
    let server = server(Fake::new()).await;
    let (_conn, address) = open(&server).await;
    let call = call("1", "echo", "");
    for (what, request, status, part) in [
        ("an unknown session", post_to("/message?sessionId=0", &[], &call), 404, "session"),
        ("no session", post_to("/message", &[], &call), 404, "session"),
        ("another type", post_to(&address, &[("content-type", "text/plain")], &call), 415, "application/json"),
        ("no JSON", post_to(&address, &[], "{"), 400, "-32700"),
        ("a batch", post_to(&address, &[], &format!("[{call}]")), 400, "batches"),
        ("GET of the message address", bare("GET", &address, &[]), 405, "POST"),
        ("POST of the stream", post_to("/sse", &[], &call), 405, "GET"),
    ] {
        let r = server.ask(&request).await;
        assert_eq!((r.status, r.body.contains(part)), (status, true), "{what}: {r:?}");
    }
    let off = Server::start(Fake::new()).await;
    assert_eq!(off.ask(&bare("GET", "/sse", &[])).await.status, 404, "only when asked for");
}

#[tokio::test]
async fn shutdown_ends_quiet_streams_and_lets_calls_finish() {
    let mut server = server(Fake::new()).await;
    let (mut conn, address) = ready(&server).await;
    let (mut quiet, _) = ready(&server).await;
    say(&server, &address, &call("1", "t", "gate:a")).await;
    server.fake.until("started t").await;
    server.begin_stop();
    assert_eq!(quiet.event().await, None);
    server.fake.open_gate("a");
    assert!(hear(&mut conn).await.contains(r#""v":"t""#));
    assert_eq!(conn.event().await, None);
    server.stop().await;
}

/// The same without sockets, so that nothing is read unless the test reads it.
fn unread(fake: &Arc<Fake>) -> HttpService {
    let options = HttpOptions::default().with(|options| options.sse_2024 = true);
    (fake.clone() as Arc<dyn Service>).into_service_with(options).unwrap()
}

async fn ask(service: &HttpService, method: Method, path: &str, who: &str, body: &str) -> Response<HttpBody> {
    let request =
        Request::builder().method(method).uri(path).header("host", "localhost").extension(Principal::new(who));
    let request = request.header("content-type", "application/json").body(Full::new(Bytes::from(body.to_owned())));
    service.handle(request.unwrap()).await.unwrap()
}

async fn next(body: &mut HttpBody) -> String {
    String::from_utf8(body.frame().await.unwrap().unwrap().into_data().unwrap().to_vec()).unwrap()
}

#[tokio::test]
async fn what_waits_on_a_stream_that_nobody_reads_is_bounded() {
    let fake = Fake::with(|l| {
        l.messages.queued_max = 4;
        l.calls.per_peer_max = 2;
    });
    let service = unread(&fake);
    let mut stream = ask(&service, Method::GET, "/sse", "ann", "").await.into_body();
    let first = next(&mut stream).await;
    let address = first.trim_end().strip_prefix("event: endpoint\ndata: ").unwrap();
    let say = async |body: &str| ask(&service, Method::POST, address, "ann", body).await.status().as_u16();
    assert_eq!(say(&initialize("2024-11-05")).await, 202);
    fake.until("finished initialize").await;
    assert_eq!(say(&call("1", "t", &"note ".repeat(20))).await, 202);
    fake.until("finished t").await;
    // Two answers and four notices wait; one more message may come, then the client must read first.
    assert_eq!(say(&call("2", "u", "")).await, 202);
    fake.until("finished u").await;
    assert_eq!(say(&call("3", "v", "")).await, 503);
    assert!(!fake.happened("started v"));
    let mut notes = Vec::new();
    loop {
        let event = next(&mut stream).await;
        match event.contains(r#""method":"note""#) {
            true => notes.push(event),
            false if event.contains(r#""v":"u""#) => break,
            false => {}
        }
    }
    assert_eq!(notes.len(), 4, "{notes:?}");
    assert!(notes[0].contains(r#""n":17"#) && notes[3].contains(r#""n":20"#), "{notes:?}");
    assert_eq!(say(&call("3", "v", "")).await, 202);
    // It is nobody else's.
    assert_eq!(ask(&service, Method::POST, address, "bob", &call("4", "w", "")).await.status(), 404);
}
