//! Every limit, reached.
#![cfg(all(feature = "http", feature = "sse"))]

use crate::common;

use bytes::Bytes;
use common::Fake;
use common::wire::*;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use linchpin_core::{Principal, Service};
use linchpin_transport::http::{HttpBody, HttpExt, HttpOptions, HttpService};
use std::sync::Arc;
use std::time::Duration;

#[tokio::test]
async fn bodies_are_bounded_while_they_arrive() {
    let server = Server::start(Fake::with(|l| l.messages.frame_bytes_max = 300)).await;
    let fits = alone("1", "echo", "");
    assert_eq!(server.ask(&fits).await.status, 200);
    // In chunks nobody announces the length; the server stops reading at the limit.
    let mut conn = server.connect().await;
    let head: String = fits
        .split("\r\n\r\n")
        .next()
        .unwrap()
        .lines()
        .filter(|l| !l.starts_with("content-length"))
        .map(|l| format!("{l}\r\n"))
        .collect();
    conn.send(&format!("{head}transfer-encoding: chunked\r\n\r\n")).await;
    for _ in 0..4 {
        conn.send(&format!("64\r\n{}\r\n", "x".repeat(100))).await;
    }
    assert_eq!(conn.response().await.status, 413);
    // An announced one is refused before it comes.
    let mut conn = server.connect().await;
    conn.send(&post(&[("content-length", "301")], "")).await;
    assert_eq!(conn.response().await.status, 413);
}

#[tokio::test]
async fn heads_are_bounded_in_bytes() {
    let server = Server::start(Fake::with(|l| l.connections.header_bytes_max = 8192)).await;
    let big = "x".repeat(9000);
    assert_eq!(server.ask(&alone_with("1", "echo", "", &[("x-big", &big)])).await.status, 431);
    assert_eq!(server.ask(&alone_with("1", "echo", "", &[("x-big", &big[..7000])])).await.status, 200);
}

#[tokio::test]
async fn a_slow_head_a_silent_connection_and_an_idle_one_are_closed() {
    let server = Server::start(Fake::with(|l| l.connections.header_read_ms_max = 40)).await;
    let (mut silent, mut slow, mut preface) = (server.connect().await, server.connect().await, server.connect().await);
    slow.send("POST /mcp HTTP/1.1\r\nhost: ").await;
    preface.send("PR").await;
    assert!(silent.is_closed().await && slow.is_closed().await && preface.is_closed().await);
    // A connection that was of use is closed too, by a knob of its own.
    let server = Server::start_with(Fake::new(), Server::options(|o| o.idle_ms_max = 40)).await;
    let mut idle = server.connect().await;
    idle.send(&alone("1", "t", "")).await;
    assert_eq!(idle.response().await.status, 200);
    assert!(idle.is_closed().await);
    // A running call and an open stream are not idle, however quiet.
    let (mut quiet, mut streaming) = (server.connect().await, server.connect().await);
    quiet.send(&alone("1", "quiet", "gate:a")).await;
    streaming.send(&alone("1", "streaming", "note gate:a")).await;
    server.fake.until("started quiet").await;
    streaming.head().await;
    streaming.event().await.unwrap();
    tokio::time::sleep(Duration::from_millis(300)).await;
    server.fake.open_gate("a");
    assert_eq!(quiet.response().await.status, 200);
    assert!(streaming.event().await.unwrap().contains(r#""v":"streaming""#));
}

#[tokio::test]
async fn connections_that_have_asked_nothing_do_not_delay_the_shutdown() {
    let fake = Fake::with(|l| (l.calls.drain_ms_max, l.connections.header_read_ms_max) = (600_000, 600_000));
    let server = Server::start(fake).await;
    let (mut silent, mut used) = (server.connect().await, server.connect().await);
    used.send(&alone("1", "t", "")).await;
    assert_eq!(used.response().await.status, 200);
    server.stop().await;
    assert!(silent.is_closed().await && used.is_closed().await);
}

#[tokio::test]
async fn a_slow_body_is_refused_and_its_connection_closed() {
    let server = Server::start(Fake::with(|l| l.connections.body_read_ms_max = 30)).await;
    let mut conn = server.connect().await;
    conn.send(&post(&[("content-length", "100")], "{\"slow")).await;
    assert_eq!(conn.response().await.status, 408);
    assert!(conn.is_closed().await);
}

#[tokio::test]
async fn a_reader_that_takes_nothing_loses_its_connection_but_not_its_call() {
    let server = Server::start_with(Fake::new(), Server::options(|o| o.write_ms_max = 60)).await;
    let id = server.session("2025-11-25").await;
    let words = "note:1000000 ".repeat(40);
    let (mut alone_conn, mut in_session) = (server.connect().await, server.connect().await);
    alone_conn.send(&alone("1", "alone", &words)).await;
    in_session.send(&post(&[("mcp-session-id", &id)], &call("1", "kept", &words))).await;
    server.fake.until("dropped alone").await;
    server.fake.until("finished kept").await;
}

#[tokio::test]
async fn connections_past_the_limit_wait() {
    let server = Server::start(Fake::with(|l| l.connections.concurrent_max = 1)).await;
    let mut first = server.connect().await;
    first.send(&alone("1", "first", "note gate:a")).await;
    first.head().await;
    let mut second = server.connect().await;
    second.send(&alone("1", "second", "")).await;
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
    assert!(!server.fake.happened("started second"));
    drop(first);
    assert_eq!(second.response().await.status, 200);
}

#[tokio::test]
async fn shutdown_waits_for_running_calls_but_not_for_ever() {
    let mut server = Server::start(Fake::new()).await;
    let mut conn = server.connect().await;
    conn.send(&alone("1", "t", "gate:a")).await;
    server.fake.until("started t").await;
    server.begin_stop();
    server.fake.until("closed").await;
    server.fake.open_gate("a");
    let r = conn.response().await;
    assert_eq!((r.status, r.header("connection")), (200, Some("close")));
    server.stop().await;

    let mut server = Server::start_with(Fake::with(|l| l.calls.drain_ms_max = 30), |http| http.with_sse()).await;
    let id = server.session("2025-11-25").await;
    let (mut alone_conn, mut in_session, mut listening, mut older) =
        (server.connect().await, server.connect().await, server.connect().await, server.connect().await);
    alone_conn.send(&alone("1", "alone", "gate:never")).await;
    in_session.send(&post(&[("mcp-session-id", &id)], &call("1", "kept", "gate:never"))).await;
    listening.send(&bare("GET", "/mcp", &[("mcp-session-id", &id)])).await;
    listening.head().await;
    older.send(&bare("GET", "/sse", &[])).await;
    older.head().await;
    server.fake.until("started alone").await;
    server.fake.until("started kept").await;
    let fake = server.fake.clone();
    server.begin_stop();
    server.stop().await;
    fake.until("dropped alone").await;
    while older.event().await.is_some() {}
    while listening.event().await.is_some() {}
}

#[tokio::test]
async fn giving_up_serving_ends_its_connections() {
    let server = Server::start(Fake::new()).await;
    let mut conn = server.connect().await;
    conn.send(&alone("1", "t", "note gate:never")).await;
    conn.head().await;
    let fake = server.fake.clone();
    server.abort();
    fake.until("dropped t").await;
}

/// Waits until what clients hold is as `fits` says.
async fn held(server: &Server, what: &str, fits: impl Fn(usize) -> bool) {
    for _ in 0..5_000 {
        if fits(server.fake.budget().used()) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    panic!("{what}: {}", server.fake.budget().used());
}

/// A POST of 250,000 bytes of which `sent` have arrived.
async fn arriving(server: &Server, sent: usize) -> Conn {
    let before = server.fake.budget().used();
    let mut conn = server.connect().await;
    conn.send(&post(&[("content-length", "250000")], &"x".repeat(sent))).await;
    held(server, "the body arrives", |used| used == before + sent).await;
    conn
}

#[tokio::test]
async fn what_clients_make_the_server_hold_is_one_budget() {
    let fake = Fake::with(|l| (l.connections.memory_bytes_max, l.sessions.replay_ms_max) = (300_000, 20));
    let server = Server::start_with(fake, |http| http.with_sse()).await;
    let session = server.session("2025-06-18").await;
    let named = [("mcp-session-id", session.as_str())];
    let declared = server.fake.budget().used();
    assert!((1..100).contains(&declared), "what the session declared: {declared}");
    // The fake answers with the tool's name.
    let echo = |bytes: usize, words: &str| call("1", &"x".repeat(bytes), words);

    // A body on its way takes room from all others.
    let slow = arriving(&server, 200_000).await;
    let refused = server.ask(&post(&named, &echo(110_000, ""))).await;
    assert_eq!(refused.status, 503);
    assert!(refused.body.contains("try again later"), "{}", refused.body);
    assert_eq!(server.ask(&alone("2", "small", "")).await.status, 200, "what is small is served all the same");
    drop(slow);
    held(&server, "all is given back", |used| used == declared).await;

    // So does a request while it runs.
    let mut conn = server.connect().await;
    conn.send(&post(&named, &echo(160_000, "gate:r"))).await;
    server.fake.until(&format!("started {}", "x".repeat(160_000))).await;
    assert_eq!(server.ask(&post(&named, &echo(150_000, ""))).await.status, 503);
    server.fake.open_gate("r");
    assert_eq!(conn.response().await.status, 200);
    held(&server, "all is given back", |used| used == declared).await;
    assert_eq!(server.ask(&post(&named, &echo(150_000, ""))).await.status, 200);

    // And an answer.
    let slow = arriving(&server, 150_000).await;
    assert_eq!(server.ask(&alone("3", "echo", "answer:200000")).await.status, 503);
    drop(slow);
    held(&server, "all is given back", |used| used == declared).await;
    assert_eq!(server.ask(&alone("3", "echo", "answer:200000")).await.status, 200);

    // A stream whose next message finds no room ends without it.
    let mut conn = server.connect().await;
    conn.send(&alone("3", "echo", "note:400000 gate:never")).await;
    assert_eq!(conn.head().await.status, 200);
    assert_eq!(conn.event().await, None);
    server.fake.until("dropped echo").await;
    held(&server, "all is given back", |used| used == declared).await;

    let mut conn = server.connect().await;
    conn.send(&post(&named, &call("4", "echo", "note gate:a answer:200000"))).await;
    assert_eq!(conn.head().await.status, 200);
    assert!(conn.event().await.unwrap().contains("note"));
    let slow = arriving(&server, 130_000).await;
    server.fake.open_gate("a");
    assert_eq!(conn.event().await, None, "the answer is lost, and the client knows");
    drop(slow);
    held(&server, "all is given back", |used| used == declared).await;

    let mut conn = server.connect().await;
    conn.send(&bare("GET", "/sse", &[])).await;
    conn.head().await;
    let address = conn.event().await.unwrap();
    let address = address.rsplit_once("data: ").unwrap().1;
    for (message, status) in [(initialize("2024-11-05"), 202), (call("1", "echo", "answer:400000"), 202)] {
        assert_eq!(server.ask(&post_to(address, &[], &message)).await.status, status);
    }
    assert!(conn.event().await.unwrap().contains("2024-11-05"));
    assert_eq!(conn.event().await, None);
    held(&server, "all is given back", |used| used == declared).await;

    // What is declared for sessions counts, too.
    let mut all = Vec::new();
    while let Some(more @ 1..) = 300_000_usize.checked_sub(server.fake.budget().used()) {
        all.push(server.fake.budget().reserve(more.min(16_000)).unwrap());
    }
    assert_eq!(server.ask(&post(&[], &initialize("2025-06-18"))).await.status, 503);
    // A stream that begins while there is no room hears of what comes later.
    let mut conn = server.connect().await;
    let named = [named[0], ("accept", "text/event-stream")];
    conn.send(&bare("GET", "/mcp", &named)).await;
    assert_eq!(conn.head().await.status, 200);
    drop(all);
    assert_eq!(server.ask(&post(&[], &initialize("2025-06-18"))).await.status, 200);
    server.fake.changes().publish(&linchpin_core::ServerChange::Tools);
    assert!(conn.event().await.unwrap().contains("list_changed"));
}

// --- by the paused clock, without sockets --------------------------------------------------------------------------

fn service(fake: &Arc<Fake>, change: impl FnOnce(&mut HttpOptions)) -> HttpService {
    (fake.clone() as Arc<dyn Service>).into_service_with(HttpOptions::default().with(change)).unwrap()
}

async fn ask(
    service: &HttpService,
    method: Method,
    session: Option<&str>,
    principal: Option<&str>,
    body: &str,
) -> Response<HttpBody> {
    let mut request = Request::builder().method(method).uri("/mcp").header("host", "localhost");
    if !body.is_empty() {
        request = request.header("content-type", "application/json");
    }
    if let Some(session) = session {
        request = request.header("mcp-session-id", session);
    }
    if let Some(principal) = principal {
        request = request.extension(Principal::new(principal));
    }
    let body = Full::new(Bytes::copy_from_slice(body.as_bytes()));
    service.handle(request.body(body).unwrap()).await.unwrap()
}

async fn open(service: &HttpService, principal: Option<&str>) -> Result<String, StatusCode> {
    let r = ask(service, Method::POST, None, principal, &initialize("2025-11-25")).await;
    r.headers().get("mcp-session-id").map(|v| v.to_str().unwrap().to_owned()).ok_or(r.status())
}

#[tokio::test(start_paused = true)]
async fn an_idle_session_ends_and_one_in_use_does_not() {
    let fake = Fake::with(|l| {
        l.sessions.idle_ms_max = 10_000;
        l.sessions.replay_ms_max = 2_000;
    });
    let service = service(&fake, |_| {});
    let (idle, listening, calling, asking) = (
        open(&service, None).await.unwrap(),
        open(&service, None).await.unwrap(),
        open(&service, None).await.unwrap(),
        open(&service, None).await.unwrap(),
    );
    let stream = ask(&service, Method::GET, Some(&listening), None, "").await;
    assert_eq!(stream.status(), 200);
    let (caller, session) = (service.clone(), calling.clone());
    let running =
        tokio::spawn(
            async move { ask(&caller, Method::POST, Some(&session), None, &call("1", "long", "gate:a")).await },
        );
    fake.until("started long").await;
    for _ in 0..5 {
        tokio::time::sleep(Duration::from_millis(4_000)).await;
        assert_eq!(ask(&service, Method::POST, Some(&asking), None, &call("1", "echo", "")).await.status(), 200);
    }
    let status =
        async |session: &str| ask(&service, Method::POST, Some(session), None, &call("9", "echo", "")).await.status();
    assert_eq!(status(&idle).await, 404);
    assert_eq!(status(&listening).await, 200, "its stream is open");
    assert_eq!(status(&calling).await, 200, "its call runs");
    fake.open_gate("a");
    assert_eq!(running.await.unwrap().status(), 200);
    drop(stream);
    tokio::time::sleep(Duration::from_millis(13_000)).await;
    for session in [&listening, &calling, &asking] {
        assert_eq!(status(session).await, 404);
    }
    assert_eq!(fake.changes().open_feeds(), 0, "nothing is kept");
    // The sweeper, which ended with the last session, comes back with the next.
    let again = open(&service, None).await.unwrap();
    tokio::time::sleep(Duration::from_millis(13_000)).await;
    assert_eq!(status(&again).await, 404);
}

#[tokio::test(start_paused = true)]
async fn a_quiet_stream_is_kept_alive_by_comments() {
    let fake = Fake::with(|l| l.connections.keep_alive_ms = 1_000);
    let service = service(&fake, |_| {});
    let session = open(&service, None).await.unwrap();
    let mut body = ask(&service, Method::GET, Some(&session), None, "").await.into_body();
    let mut next =
        async || String::from_utf8(body.frame().await.unwrap().unwrap().into_data().unwrap().to_vec()).unwrap();
    assert!(next().await.starts_with("id: 0-1"));
    let start = tokio::time::Instant::now();
    let passed = || start.elapsed().as_millis();
    assert_eq!(next().await, ": keep-alive\n\n");
    assert!((1_000..1_010).contains(&passed()), "{}", passed());
    // An event counts as life: the next comment comes a whole pause after it.
    let hub = fake.changes().clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(600)).await;
        hub.publish(&linchpin_core::ServerChange::Tools);
    });
    assert!(next().await.contains("list_changed"));
    assert!((1_600..1_610).contains(&passed()), "{}", passed());
    assert_eq!(next().await, ": keep-alive\n\n");
    assert!((2_600..2_620).contains(&passed()), "{}", passed());
}

#[tokio::test]
async fn sessions_are_bounded_and_a_place_is_free_again_at_once() {
    let fake = Fake::with(|l| l.sessions.concurrent_max = 2);
    let service = service(&fake, |_| {});
    let first = open(&service, None).await.unwrap();
    let second = open(&service, None).await.unwrap();
    for id in [&first, &second] {
        let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
        assert_eq!(ask(&service, Method::POST, Some(id), None, ping).await.status(), 200);
    }
    let r = ask(&service, Method::POST, None, None, &initialize("2025-11-25")).await;
    assert_eq!(r.status(), 503);
    let body = r.into_body().collect().await.unwrap().to_bytes();
    assert!(std::str::from_utf8(&body).unwrap().contains(r#""id":0,"error":{"code":-32603"#), "{body:?}");
    assert_eq!(ask(&service, Method::DELETE, Some(&first), None, "").await.status(), 204);
    open(&service, None).await.unwrap();
    assert_eq!(fake.changes().open_feeds(), 2);
    service.close_sessions();
    assert_eq!(fake.changes().open_feeds(), 0);
    open(&service, None).await.unwrap();
    drop(service);
    tokio::task::yield_now().await;
    assert_eq!(fake.changes().open_feeds(), 0, "the sessions end with their service");
}

#[tokio::test]
async fn the_oldest_session_that_was_never_used_gives_way_to_a_new_one() {
    let fake = Fake::with(|l| l.sessions.concurrent_max = 40);
    let service = service(&fake, |_| {});
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let mut used = Vec::new();
    for n in 0..40 {
        let id = open(&service, None).await.unwrap();
        if n % 2 == 0 {
            assert_eq!(ask(&service, Method::POST, Some(&id), None, ping).await.status(), 200);
            used.push(id);
        }
    }
    // Whoever opens and never comes back has twenty places to give.
    for _ in 0..60 {
        open(&service, None).await.expect("a place");
    }
    let newest = open(&service, None).await.unwrap();
    used.push(newest);
    for id in &used {
        assert_eq!(ask(&service, Method::POST, Some(id), None, ping).await.status(), 200, "in use");
    }
    assert_eq!(fake.changes().open_feeds(), 40);
    // The newest is in use now; once all are, nobody is thrown out.
    while let Ok(id) = open(&service, None).await {
        assert_eq!(ask(&service, Method::POST, Some(&id), None, ping).await.status(), 200);
        used.push(id);
        assert!(used.len() <= 40, "a session in use gave way");
    }
    assert_eq!(used.len(), 40);
}

#[tokio::test(start_paused = true)]
async fn a_session_that_is_idle_for_a_minute_gives_way_when_all_were_used() {
    let fake = Fake::with(|l| l.sessions.concurrent_max = 3);
    let service = service(&fake, |_| {});
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let status = async |id: &str| ask(&service, Method::POST, Some(id), None, ping).await.status().as_u16();
    let mut ids = Vec::new();
    for _ in 0..3 {
        let id = open(&service, None).await.unwrap();
        assert_eq!(status(&id).await, 200);
        ids.push(id);
        tokio::time::sleep(Duration::from_millis(1_000)).await;
    }
    let stream = ask(&service, Method::GET, Some(&ids[0]), None, "").await;
    assert_eq!(stream.status(), 200);
    tokio::time::sleep(Duration::from_millis(50_000)).await;
    assert_eq!(open(&service, None).await.unwrap_err(), 503);
    tokio::time::sleep(Duration::from_millis(9_500)).await;
    ids.push(open(&service, None).await.unwrap());
    let mut now = Vec::new();
    for id in &ids {
        now.push(status(id).await);
    }
    assert_eq!(now, [200, 404, 200, 200], "the first has a reader, the third was used later");
}

#[tokio::test]
async fn an_initialize_that_fails_opens_nothing_and_ends_nothing() {
    let fake = Fake::with(|l| l.sessions.concurrent_max = 1);
    let service = service(&fake, |_| {});
    let r =
        ask(&service, Method::POST, None, None, r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}"#).await;
    assert_eq!((r.status(), r.headers().get("mcp-session-id")), (StatusCode::BAD_REQUEST, None));
    let id = open(&service, None).await.unwrap();
    ask(&service, Method::POST, None, None, r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}"#).await;
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    assert_eq!(ask(&service, Method::POST, Some(&id), None, ping).await.status(), 200);
}

#[tokio::test]
async fn a_session_is_its_principals_alone() {
    let fake = Fake::new();
    let service = service(&fake, |_| {});
    let session = open(&service, Some("ann")).await.unwrap();
    for (principal, status) in [(Some("bob"), 404), (None, 404), (Some("ann"), 200)] {
        let r = ask(&service, Method::POST, Some(&session), principal, &call("1", "echo", "")).await;
        assert_eq!(r.status(), status, "{principal:?}");
    }
    for method in [Method::GET, Method::DELETE] {
        assert_eq!(ask(&service, method, Some(&session), Some("bob"), "").await.status(), 404);
    }
    fake.until("principal ann").await;
    assert!(!fake.happened("principal bob"));
}

#[tokio::test]
async fn mounted_it_takes_every_path() {
    let service = (Fake::new() as Arc<dyn Service>).into_service().unwrap();
    for path in ["/", "/mcp", "/deep/down"] {
        let body = Full::new(Bytes::from(initialize("2025-11-25")));
        let request = Request::post(path)
            .header("host", "localhost")
            .header("content-type", "application/json")
            .body(body)
            .unwrap();
        let r = tower_service::Service::call(&mut service.clone(), request).await.unwrap();
        assert_eq!(r.status(), 200, "{path}");
        let size = http_body::Body::size_hint(r.body()).exact().expect("a length");
        assert_eq!(r.into_body().collect().await.unwrap().to_bytes().len() as u64, size);
    }
}

/// A stateless request, to a mounted service.
async fn ask_alone(service: &HttpService, method: &str, params: &str) -> Response<HttpBody> {
    let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{{params},{META}}}}}"#);
    let request = Request::builder()
        .method(Method::POST)
        .uri("/mcp")
        .header("host", "localhost")
        .header("content-type", "application/json")
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", method)
        .header("mcp-name", "t")
        .body(Full::new(Bytes::from(body)))
        .unwrap();
    service.handle(request).await.unwrap()
}

async fn text(response: Response<HttpBody>) -> String {
    String::from_utf8(response.into_body().collect().await.unwrap().to_bytes().to_vec()).unwrap()
}

const LISTEN: &str = r#""notifications":{"toolsListChanged":true}"#;

#[tokio::test(start_paused = true)]
async fn a_mounted_service_shuts_down_with_listeners_sessions_and_calls_open() {
    let fake = Fake::new();
    let service = service(&fake, |o| o.sse_2024 = true);
    let session = open(&service, None).await.unwrap();
    let stream = ask(&service, Method::GET, Some(&session), None, "").await;
    let listening = ask_alone(&service, "subscriptions/listen", LISTEN).await;
    let older = service
        .handle(Request::builder().uri("/sse").header("host", "localhost").body(Full::new(Bytes::new())).unwrap());
    let older = older.await.unwrap();
    assert_eq!([stream.status(), listening.status(), older.status()], [200, 200, 200]);
    let (caller, id) = (service.clone(), session.clone());
    let inside =
        tokio::spawn(async move { ask(&caller, Method::POST, Some(&id), None, &call("7", "inside", "gate:a")).await });
    let caller = service.clone();
    let outside =
        tokio::spawn(
            async move { ask_alone(&caller, "tools/call", r#""name":"t","arguments":{"do":"gate:b"}"#).await },
        );
    fake.until("started inside").await;
    fake.until("started t").await;

    let (first, second) = (service.clone(), service.clone());
    let shutdown = tokio::spawn(async move { first.shutdown().await });
    let again = tokio::spawn(async move { second.shutdown().await });
    fake.until("closed").await;
    // Who listens hears of the end, before the calls are over.
    let heard = text(listening).await;
    assert!(heard.trim_end().ends_with(r#"}}"#) && heard.contains(r#""id":1,"result""#), "{heard}");
    text(stream).await;
    // Nothing new is begun.
    for refused in [
        ask(&service, Method::POST, None, None, &initialize("2025-11-25")).await,
        ask_alone(&service, "tools/call", r#""name":"t""#).await,
    ] {
        assert_eq!(refused.status(), 503);
        let why = text(refused).await;
        assert!(why.contains("shutting down"), "{why}");
    }
    assert!(!fake.happened("ended") && !shutdown.is_finished());
    fake.open_gate("a");
    assert_eq!(inside.await.unwrap().status(), 200);
    fake.open_gate("b");
    assert_eq!(outside.await.unwrap().status(), 200);
    shutdown.await.unwrap();
    again.await.unwrap();
    assert!(fake.happened("ended"));
    text(older).await;
    assert_eq!(fake.changes().open_feeds(), 0, "every session is over");
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_of_a_mounted_service_cancels_what_does_not_end() {
    let fake = Fake::with(|l| l.calls.drain_ms_max = 500);
    let service = service(&fake, |_| {});
    let session = open(&service, None).await.unwrap();
    let (caller, id) = (service.clone(), session.clone());
    let inside = tokio::spawn(async move {
        text(ask(&caller, Method::POST, Some(&id), None, &call("7", "inside", "note gate:never")).await).await
    });
    let caller = service.clone();
    let outside = tokio::spawn(async move {
        text(ask_alone(&caller, "tools/call", r#""name":"t","arguments":{"do":"gate:never"}"#).await).await
    });
    fake.until("started inside").await;
    fake.until("started t").await;
    let began = tokio::time::Instant::now();
    service.shutdown().await;
    assert!((500..600).contains(&began.elapsed().as_millis()), "{:?}", began.elapsed());
    for cancelled in ["cancelled inside", "cancelled t", "ended"] {
        assert!(fake.happened(cancelled), "{cancelled}");
    }
    assert!(!inside.await.unwrap().contains(r#""id":7"#) && outside.await.unwrap().is_empty());
}
