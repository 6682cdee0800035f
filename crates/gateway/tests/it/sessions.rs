//! Sessions over HTTP: in their ids, or none at all; and what pages and probes are told.

use crate::curious;
use http::{HeaderMap, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use linchpin::client::{Tap, Traffic};
use linchpin::transport::{Bind, HttpExt, HttpOptions, HttpService, IntoService, in_process, remote};
use linchpin_gateway::{Bridge, BridgeOptions, Isolation};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use std::time::Duration;

fn service(options: impl FnOnce(&mut BridgeOptions), http: impl FnOnce(&mut HttpOptions)) -> HttpService {
    let bridge = Bridge::new(in_process(curious())).options(options);
    bridge.into_service_with(HttpOptions::default().with(http)).unwrap()
}

async fn send(
    service: &HttpService,
    method: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> (StatusCode, HeaderMap, String) {
    let mut request = Request::builder().method(method).uri("/mcp").header("host", "localhost");
    for (name, value) in [("content-type", "application/json"), ("accept", "application/json, text/event-stream")] {
        request = request.header(name, value);
    }
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request.body(Full::new(bytes::Bytes::copy_from_slice(body.as_bytes()))).unwrap();
    let Ok(response) = service.handle(request).await;
    let (parts, body) = response.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    (parts.status, parts.headers, String::from_utf8_lossy(&body).into_owned())
}

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{"roots":{}},"clientInfo":{"name":"c","version":"1"}}}"#;
const LIST: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;

fn sealed(byte: u8) -> impl FnOnce(&mut HttpOptions) {
    let seal = linchpin_gateway::SealedSessions::new(&linchpin_store::Secrets::new([byte; 32]), "curious");
    move |options| options.session_seal = Some(Arc::new(seal))
}

#[tokio::test]
async fn a_session_goes_on_after_a_restart_and_ends_when_its_client_says_so() {
    let before = service(|_| {}, sealed(1));
    let (status, headers, _) = send(&before, "POST", &[], INITIALIZE).await;
    let id = headers["mcp-session-id"].to_str().unwrap().to_owned();
    assert!(status == 200 && id.contains('.'), "{id}");
    assert_eq!(send(&before, "POST", &[("mcp-session-id", &id)], LIST).await.0, 200);
    drop(before);
    let after = service(|_| {}, sealed(1));
    let changed = format!("{}A", &id[..id.len() - 1]);
    let other = format!("{}{}", if id.starts_with('0') { "1" } else { "0" }, &id[1..]);
    for strange in [id[..32].to_owned(), changed.clone(), other, id.replace('.', "-")] {
        let status = send(&after, "POST", &[("mcp-session-id", &strange)], LIST).await.0;
        assert_eq!(status == 404, strange != id, "{strange}: {status}");
    }
    let (status, _, listed) = send(&after, "POST", &[("mcp-session-id", &id)], LIST).await;
    assert_eq!(status, 200);
    assert!(listed.contains("\"sample\""), "{listed}");
    // Its lists may be others now.
    let stream = Request::get("/mcp").header("host", "localhost").header("accept", "text/event-stream");
    let stream = stream.header("mcp-session-id", &id).body(Full::new(bytes::Bytes::new())).unwrap();
    let Ok(stream) = after.handle(stream).await;
    let (mut body, mut told) = (stream.into_body(), String::new());
    while !["tools", "prompts", "resources"].iter().all(|list| told.contains(&format!("{list}/list_changed"))) {
        let frame = tokio::time::timeout(Duration::from_secs(30), body.frame()).await.expect("a change in time");
        let frame = frame.expect("the stream goes on").unwrap();
        told.push_str(&String::from_utf8_lossy(&frame.into_data().unwrap_or_default()));
    }
    drop(body);
    // It speaks its own revision still.
    let wrong = [("mcp-session-id", id.as_str()), ("mcp-protocol-version", "2025-11-25")];
    assert_eq!(send(&after, "POST", &wrong, LIST).await.0, 400);
    assert_eq!(send(&after, "DELETE", &[("mcp-session-id", &id)], "").await.0, 204);
    assert_eq!(send(&after, "POST", &[("mcp-session-id", &id)], LIST).await.0, 404);
    let strange = service(|_| {}, sealed(2));
    assert_eq!(send(&strange, "POST", &[("mcp-session-id", &id)], LIST).await.0, 404);
}

#[tokio::test]
async fn without_sessions_every_request_stands_alone() {
    for isolation in [Isolation::Auto, Isolation::Fresh, Isolation::Shared] {
        let service = service(|options| options.isolation = isolation, |options| options.no_sessions = true);
        let (status, headers, opened) = send(&service, "POST", &[], INITIALIZE).await;
        assert!(status == 200 && !headers.contains_key("mcp-session-id"), "{opened}");
        assert_eq!(
            send(&service, "POST", &[], r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await.0,
            202
        );
        for headers in [&[][..], &[("mcp-protocol-version", "2025-06-18")], &[("mcp-session-id", "whatever")]] {
            let (status, _, listed) = send(&service, "POST", headers, LIST).await;
            let listed: Value = serde_json::from_str(&listed).unwrap();
            assert!(status == 200 && listed["result"]["tools"][0].is_object(), "{isolation:?}: {listed}");
        }
        // Nobody can be asked.
        let call = r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"roots","arguments":{}}}"#;
        let (_, _, failed) = send(&service, "POST", &[], call).await;
        let failed: Value = serde_json::from_str(&failed).unwrap();
        assert!(failed["result"]["isError"] == json!(true) || failed["error"].is_object(), "{failed}");
        assert_eq!(send(&service, "GET", &[("accept", "text/event-stream")], "").await.0, 405);
        assert_eq!(send(&service, "DELETE", &[], "").await.0, 405);
        assert_eq!(send(&service, "POST", &[("mcp-protocol-version", "1999-01-01")], INITIALIZE).await.0, 200);
    }
}

#[tokio::test]
async fn every_page_may_call_if_it_was_said_and_probes_have_their_paths() {
    let service = service(
        |_| {},
        |options| {
            options.any_origin = true;
            options.health = true;
            options.health_paths = vec!["/live".into()];
        },
    );
    let page = [
        ("origin", "https://anything.example"),
        ("access-control-request-method", "POST"),
        ("access-control-request-headers", "mcp-param-x"),
    ];
    let (status, headers, _) = send(&service, "OPTIONS", &page, "").await;
    assert_eq!((status.as_u16(), headers["access-control-allow-origin"].to_str().unwrap()), (204, "*"));
    assert_eq!(headers["access-control-allow-headers"], "mcp-param-x");
    assert!(!headers.contains_key("access-control-allow-credentials"));
    // A rebound name is refused all the same.
    let (status, _, _) =
        send(&service, "POST", &[("origin", "https://a.example"), ("host", "evil.example")], INITIALIZE).await;
    assert_ne!(status, 200);
    for (path, want) in [("/live", 200), ("/readyz", 200), ("/healthz", 404)] {
        let request =
            Request::builder().uri(path).header("host", "localhost").body(Full::new(bytes::Bytes::new())).unwrap();
        let Ok(response) = service.handle(request).await;
        assert_eq!(response.status(), want, "{path}");
    }
}

/// The headers of requests to the upstream.
#[derive(Default)]
struct Heads(Mutex<Vec<HeaderMap>>);

impl Tap for Heads {
    fn saw(&self, event: Traffic<'_>) {
        if let Traffic::Request { headers, .. } = event {
            self.0.lock().unwrap().push(headers.clone());
        }
    }
}

#[tokio::test]
async fn headers_of_clients_pass_as_the_operator_and_the_specification_say() {
    let (ready, address) = tokio::sync::oneshot::channel();
    let place = linchpin::transport::http("127.0.0.1:0").on_ready(move |address| {
        let _ = ready.send(address);
    });
    tokio::spawn(place.serve(curious().into_shared().unwrap()));
    let upstream = remote(&format!("http://{}/mcp", address.await.unwrap())).unwrap();
    let heads = Arc::<Heads>::default();
    let bridge = Bridge::new(upstream).options(|options| {
        options.upstream = crate::revisions(true);
        options.tap = Some(heads.clone());
        options.forward_headers = vec!["x-tenant".into()];
    });
    let service = bridge.into_service_with(HttpOptions::default()).unwrap();
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"sample","arguments":{},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;
    let mut headers = vec![
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/call"),
        ("mcp-name", "sample"),
        ("mcp-param-odd", "passed on"),
        ("x-tenant", "acme"),
        ("x-other", "canary"),
        ("authorization", "Bearer canary"),
        ("cookie", "canary=1"),
    ];
    send(&service, "POST", &headers, call).await;
    let seen = heads.0.lock().unwrap().clone();
    let last = seen.last().unwrap();
    assert_eq!((last["mcp-param-odd"].to_str().unwrap(), last["x-tenant"].to_str().unwrap()), ("passed on", "acme"));
    assert!(!format!("{seen:?}").contains("canary"), "{seen:?}");
    // A header that names another tool than the body: nothing reaches the upstream.
    headers[2].1 = "form";
    let (status, _, refused) = send(&service, "POST", &headers, call).await;
    assert!(status == 400 && refused.contains("-32020"), "{refused}");
    assert_eq!(heads.0.lock().unwrap().len(), seen.len());
}
