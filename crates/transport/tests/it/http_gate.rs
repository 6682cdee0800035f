//! The gate in front of the HTTP endpoint.

use crate::common::Fake;
use crate::common::wire::{META, Server, call, initialize, post};
use bytes::Bytes;
use http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use http::{HeaderValue, Method, Request, Response, StatusCode, request};
use http_body::{Body, Frame};
use http_body_util::{BodyExt, Full};
use linchpin_core::gate::{Admit, Document, Gate, Page, Refusal};
use linchpin_core::service::BoxFuture;
use linchpin_core::{Principal, RequestContext, Service};
use linchpin_transport::http::{HttpBody, HttpExt, HttpOptions, HttpService};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::{Duration, SystemTime};

/// Tokens are names. `later-NAME` is decided on the second poll, `brief-NAME` expires in a minute, `open` is anybody, `bad` nobody.
#[derive(Default)]
struct Names {
    peers: Mutex<Vec<Option<SocketAddr>>>,
}

fn unknown() -> Refusal {
    Refusal::unauthorized("who are you?").with_challenge(HeaderValue::from_static(r#"Bearer realm="names""#))
}

impl Gate for Names {
    fn admit(&self, head: &request::Parts, peer: Option<SocketAddr>) -> Admit {
        self.peers.lock().unwrap().push(peer);
        let token = head.headers.get(AUTHORIZATION).map(|value| value.to_str().unwrap().replace("Bearer ", ""));
        match token.as_deref() {
            None | Some("bad") => Admit::No(unknown()),
            Some("open") => Admit::Open,
            Some(late) if late.starts_with("later-") => {
                let name = late["later-".len()..].to_owned();
                Admit::Later(Box::pin(async move {
                    tokio::task::yield_now().await;
                    if name == "bad" { Err(unknown()) } else { Ok(Principal::new(name)) }
                }))
            }
            Some("revoked-later") => {
                let begin = tokio::time::Instant::now();
                Admit::Yes(Principal::new("ann").with_revocation(move || begin.elapsed() > Duration::from_secs(30)))
            }
            Some(name) if name.starts_with("brief-") => {
                let expires = SystemTime::now() + Duration::from_secs(60);
                Admit::Yes(Principal::new(&name["brief-".len()..]).with_expiry(expires))
            }
            Some(name) => Admit::Yes(Principal::new(name)),
        }
    }

    fn body(&self, context: &RequestContext, body: &Bytes) -> Result<(), Refusal> {
        let named = context.principal.as_ref().is_some_and(|principal| principal.subject() == "digested");
        if named && !body.starts_with(b"digest") { Err(Refusal::forbidden("wrong digest")) } else { Ok(()) }
    }

    fn page(&self, path: &str) -> Option<Arc<dyn Page>> {
        match path {
            "/.well-known/oauth-protected-resource/mcp" => Some(Arc::new(Document::json(r#"{"resource":"x"}"#))),
            "/login" => Some(Arc::new(Echo { any_origin: false })),
            "/token" => Some(Arc::new(Echo { any_origin: true })),
            _ => None,
        }
    }
}

/// A page that answers with the body.
struct Echo {
    any_origin: bool,
}

impl Page for Echo {
    fn body_bytes_max(&self) -> usize {
        8
    }

    fn any_origin(&self) -> bool {
        self.any_origin
    }

    fn respond(&self, request: Request<Bytes>) -> BoxFuture<'static, Response<Bytes>> {
        Box::pin(async move {
            tokio::task::yield_now().await;
            Response::new(request.into_body())
        })
    }
}

/// A body that nobody may read.
struct Unread;

impl Body for Unread {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        panic!("the body was read");
    }
}

fn service(fake: &Arc<Fake>) -> HttpService {
    let options = HttpOptions::default().with(|options| {
        options.gate = Some(Arc::new(Names::default()));
        options.sse_2024 = true;
        options.allowed_origins = Some(vec!["https://app.example".to_owned()]);
    });
    (fake.clone() as Arc<dyn Service>).into_service_with(options).unwrap()
}

fn head(method: Method, path: &str, token: &str) -> request::Builder {
    let request = Request::builder().method(method).uri(path).header("host", "localhost");
    let request = request.header("content-type", "application/json");
    if token.is_empty() { request } else { request.header(AUTHORIZATION, format!("Bearer {token}")) }
}

async fn ask(service: &HttpService, request: request::Builder, body: &str) -> (Response<HttpBody>, StatusCode) {
    let body = Full::new(Bytes::copy_from_slice(body.as_bytes()));
    let response = service.handle(request.body(body).unwrap()).await.unwrap();
    let status = response.status();
    (response, status)
}

async fn text(response: Response<HttpBody>) -> String {
    String::from_utf8(response.into_body().collect().await.unwrap().to_bytes().to_vec()).unwrap()
}

#[tokio::test]
async fn a_stranger_is_refused_at_every_endpoint_and_no_body_is_read() {
    let fake = Fake::new();
    let service = service(&fake);
    for (method, path) in [
        (Method::POST, "/mcp"),
        (Method::GET, "/mcp"),
        (Method::DELETE, "/mcp"),
        (Method::GET, "/sse"),
        (Method::POST, "/message?sessionId=0123456789abcdef0123456789abcdef"),
    ] {
        for token in ["", "bad", "later-bad"] {
            let request = head(method.clone(), path, token).body(Unread).unwrap();
            let response = service.handle(request).await.unwrap();
            assert_eq!(response.status(), 401, "{method} {path} {token}");
            assert_eq!(response.headers()[WWW_AUTHENTICATE], r#"Bearer realm="names""#);
            assert_eq!(
                text(response).await,
                r#"{"jsonrpc":"2.0","error":{"code":-32600,"message":"who are you?"}}"#,
                "{method} {path} {token}"
            );
        }
    }
    assert!(!fake.happened("started initialize") && fake.changes().open_feeds() == 0);
}

#[tokio::test]
async fn who_is_admitted_is_the_principal_whether_decided_now_or_later() {
    let fake = Fake::new();
    let service = service(&fake);
    for (token, session_for) in [("ann", "later-ann"), ("later-bob", "bob")] {
        let (opened, status) = ask(&service, head(Method::POST, "/mcp", token), &initialize("2025-11-25")).await;
        assert_eq!(status, 200);
        let session = opened.headers()["mcp-session-id"].clone();
        let inside = |method, token| head(method, "/mcp", token).header("mcp-session-id", session.clone());
        for (other, want) in [("eve", 404), ("later-eve", 404), ("open", 404), (session_for, 200)] {
            let (_, status) = ask(&service, inside(Method::POST, other), &call("1", "echo", "")).await;
            assert_eq!(status, want, "{other} in the session of {token}");
        }
        for (other, want) in [("eve", 404), (session_for, 204)] {
            assert_eq!(ask(&service, inside(Method::DELETE, other), "").await.1, want, "{other} ends it");
        }
    }
    fake.until("principal ann").await;
    fake.until("principal bob").await;
    assert!(!fake.happened("principal eve"));
}

#[tokio::test(start_paused = true)]
async fn a_stream_ends_when_the_authentication_of_its_reader_is_revoked() {
    let service = service(&Fake::new());
    let opened = ask(&service, head(Method::POST, "/mcp", "ann"), &initialize("2025-11-25")).await.0;
    let session = opened.headers()["mcp-session-id"].clone();
    for path in ["/mcp", "/sse"] {
        let get = head(Method::GET, path, "revoked-later").header("accept", "text/event-stream");
        let (response, status) = ask(&service, get.header("mcp-session-id", session.clone()), "").await;
        let begin = tokio::time::Instant::now();
        assert_eq!(status, 200, "{path}");
        let _ = response.into_body().collect().await.unwrap();
        let lasted = begin.elapsed().as_secs();
        assert!((30..=35).contains(&lasted), "{path}: {lasted} s");
    }
}

/// Metadata and tokens are for clients that are web pages, too; logins are for pages of this host.
#[tokio::test]
async fn pages_for_programs_may_be_read_from_every_origin_and_those_for_users_only_here() {
    const METADATA: &str = "/.well-known/oauth-protected-resource/mcp";
    let service = service(&Fake::new());
    let from = async |method: Method, path: &str, host: &str, origin: &str| {
        let request = Request::builder().method(method).uri(path).header("host", host).header("origin", origin);
        let request = request.header("access-control-request-method", "GET");
        let (response, status) = ask(&service, request, "").await;
        let told =
            response.headers().get("access-control-allow-origin").map(|value| value.to_str().unwrap().to_owned());
        (status.as_u16(), told)
    };
    let (here, there, named) = ("http://localhost:8931", "https://there.example", "https://app.example");
    for origin in [here, there, named] {
        assert_eq!(from(Method::GET, METADATA, "localhost:8931", origin).await, (200, Some("*".to_owned())));
        assert_eq!(from(Method::OPTIONS, METADATA, "localhost:8931", origin).await, (204, Some("*".to_owned())));
        assert_eq!(from(Method::POST, "/token", "localhost:8931", origin).await.0, 200);
    }
    // The forms of a login come from its pages, also where other origins are allowed by name.
    assert_eq!(from(Method::POST, "/login", "localhost:8931", here).await, (200, None));
    assert_eq!(from(Method::POST, "/login", "localhost:8931", there).await.0, 403);
    assert_eq!(from(Method::POST, "/login", "localhost:8931", "http://localhost:1").await.0, 403);
    assert_eq!(from(Method::GET, METADATA, "evil.example", there).await.0, 403, "the host is checked all the same");
    assert_eq!(from(Method::POST, "/mcp", "localhost:8931", here).await.0, 403, "as it is at the endpoint");
}

#[tokio::test(start_paused = true)]
async fn a_stream_ends_with_the_authentication_of_its_reader() {
    let service = service(&Fake::new());
    let opened = ask(&service, head(Method::POST, "/mcp", "ann"), &initialize("2025-11-25")).await.0;
    let session = opened.headers()["mcp-session-id"].clone();
    for path in ["/mcp", "/sse"] {
        let get = |token| {
            let get = head(Method::GET, path, token).header("accept", "text/event-stream");
            get.header("mcp-session-id", session.clone())
        };
        let start = tokio::time::Instant::now();
        let (response, status) = ask(&service, get("brief-ann"), "").await;
        assert_eq!(status, 200);
        tokio::time::timeout(Duration::from_secs(9_000), text(response)).await.expect("it ends");
        let lasted = start.elapsed().as_secs();
        assert!((59..62).contains(&lasted), "{path}: {lasted} s");
        let (response, status) = ask(&service, get("ann"), "").await;
        assert_eq!(status, 200, "it is opened again");
        assert!(tokio::time::timeout(Duration::from_secs(9_000), text(response)).await.is_err(), "{path}: without end");
    }
}

#[tokio::test(start_paused = true)]
async fn the_stream_of_a_post_ends_with_the_authentication_of_its_sender_too() {
    let service = service(&Fake::new());
    let opened = ask(&service, head(Method::POST, "/mcp", "ann"), &initialize("2025-11-25")).await.0;
    let session = opened.headers()["mcp-session-id"].clone();
    let stateless = |method: &str, params: &str| {
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{{params},{META}}}}}"#)
    };
    let inside = [("mcp-session-id", session.to_str().unwrap())];
    let revision = ("mcp-protocol-version", "2026-07-28");
    let alone = [revision, ("mcp-method", "tools/call"), ("mcp-name", "echo")];
    let listening = [revision, ("mcp-method", "subscriptions/listen")];
    let words = r#""name":"echo","arguments":{"do":"note:x gate:never"}"#;
    let rows = [
        ("in a session", &inside[..], call("1", "echo", "note:x gate:never")),
        ("stateless", &alone[..], stateless("tools/call", words)),
        (
            "listening",
            &listening[..],
            stateless("subscriptions/listen", r#""notifications":{"toolsListChanged":true}"#),
        ),
    ];
    for (row, headers, body) in &rows {
        let post = |token| {
            let post = head(Method::POST, "/mcp", token).header("accept", "application/json, text/event-stream");
            headers.iter().fold(post, |post, (name, value)| post.header(*name, *value))
        };
        let start = tokio::time::Instant::now();
        let (response, status) = ask(&service, post("brief-ann"), body).await;
        assert_eq!(status, StatusCode::OK, "{row}");
        assert_eq!(response.headers()["content-type"], "text/event-stream", "{row}");
        let ended = tokio::time::timeout(Duration::from_secs(9_000), text(response)).await;
        assert!(ended.is_ok(), "{row}: it ends");
        let lasted = start.elapsed().as_secs();
        assert!((59..62).contains(&lasted), "{row}: {lasted} s");
        // In a session the first call still runs, under its id.
        let again = body.replace(r#""id":1"#, r#""id":2"#);
        let (response, _) = ask(&service, post("ann"), &again).await;
        assert!(tokio::time::timeout(Duration::from_secs(9_000), text(response)).await.is_err(), "{row}: without end");
    }
}

#[tokio::test]
async fn a_layers_principal_does_not_get_past_the_gate() {
    let fake = Fake::new();
    let service = service(&fake);
    let request = |token| head(Method::POST, "/mcp", token).extension(Principal::new("root"));
    assert_eq!(ask(&service, request(""), &initialize("2025-11-25")).await.1, 401);
    assert_eq!(ask(&service, request("open"), &initialize("2025-11-25")).await.1, 200);
    assert_eq!(ask(&service, request("ann"), &initialize("2025-11-25")).await.1, 200);
    fake.until("principal ann").await;
    assert!(!fake.happened("principal root"));
}

#[tokio::test]
async fn a_body_is_checked_before_it_is_parsed() {
    let service = service(&Fake::new());
    let (response, status) = ask(&service, head(Method::POST, "/mcp", "digested"), "not JSON").await;
    assert_eq!(status, 403);
    assert!(text(response).await.contains("wrong digest"));
    assert_eq!(ask(&service, head(Method::POST, "/mcp", "digested"), "digest").await.1, 400, "it is no message");
}

#[tokio::test]
async fn pages_are_for_everybody_who_may_reach_this_host() {
    let service = service(&Fake::new());
    let document = "/.well-known/oauth-protected-resource/mcp";
    let get = head(Method::GET, document, "").header("accept", "text/event-stream, application/json");
    let (response, status) = ask(&service, get, "").await;
    assert_eq!((status, &response.headers()["cache-control"]), (StatusCode::OK, &"max-age=3600".parse().unwrap()));
    assert_eq!(response.headers()["access-control-allow-origin"], "*");
    assert_eq!(text(response).await, r#"{"resource":"x"}"#, "not as an event");
    let (response, status) = ask(&service, head(Method::POST, document, ""), "").await;
    assert_eq!((status, response.headers()["allow"].to_str().unwrap()), (StatusCode::METHOD_NOT_ALLOWED, "GET, HEAD"));
    let (response, _) = ask(&service, head(Method::POST, "/login", ""), "name=ann").await;
    assert_eq!(text(response).await, "name=ann");
    assert_eq!(ask(&service, head(Method::POST, "/login", ""), "name=anna").await.1, 413);
    let foreign = Request::builder().uri(document).header("host", "evil.example");
    assert_eq!(ask(&service, foreign, "").await.1, 403);
    // What is not there is not there for anybody: clients look for documents without a token.
    assert_eq!(ask(&service, head(Method::GET, "/.well-known/openid-configuration", ""), "").await.1, 404);
}

#[tokio::test]
async fn a_preflight_needs_no_token() {
    let service = service(&Fake::new());
    let preflight = head(Method::OPTIONS, "/mcp", "")
        .header("origin", "https://app.example")
        .header("access-control-request-method", "POST");
    assert_eq!(ask(&service, preflight, "").await.1, 204);
    let page = head(Method::POST, "/mcp", "").header("origin", "https://app.example");
    let (response, status) = ask(&service, page, "").await;
    assert_eq!(status, 401);
    assert_eq!(response.headers()["access-control-allow-origin"], "https://app.example", "the page may read why");
}

#[tokio::test]
async fn the_gate_knows_the_clients_address() {
    let names = Arc::new(Names::default());
    let server = Server::start_with(Fake::new(), |http| http.guard(names.clone())).await;
    assert_eq!(server.ask(&post(&[], &initialize("2025-11-25"))).await.status, 401);
    let r = server.ask(&post(&[("authorization", "Bearer ann")], &initialize("2025-11-25"))).await;
    assert_eq!(r.status, 200);
    let peers: Vec<_> = names.peers.lock().unwrap().iter().map(|peer| peer.map(|peer| peer.ip())).collect();
    assert_eq!(peers, [Some(server.addr.ip()); 2]);
    server.stop().await;
}
