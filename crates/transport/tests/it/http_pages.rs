//! What probes and monitors see.
#![cfg(feature = "http")]

use crate::common::Fake;
use crate::common::wire::*;
use linchpin_core::Service;
use linchpin_transport::http::{HttpOptions, HttpService};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tower_service::Service as _;

#[tokio::test]
async fn probes_are_answered_whatever_their_host_and_monitors_only_for_allowed_ones() {
    let shown = Arc::new(AtomicU32::new(0));
    let counted = shown.clone();
    let metrics = move || format!("shown {}\n", counted.fetch_add(1, Ordering::Relaxed) + 1);
    let server = Server::start_with(Fake::new(), |http| http.health().metrics(metrics)).await;
    let foreign = [("host", "10.0.0.7:8931")];
    for (method, path, headers, status, body) in [
        ("GET", "/healthz", &foreign[..], 200, "ok\n"),
        ("GET", "/readyz", &foreign, 200, "ok\n"),
        ("POST", "/readyz", &foreign, 405, "GET, HEAD"),
        ("GET", "/healthz/", &[], 404, "no endpoint"),
        ("GET", "/metrics", &[], 200, "shown 1\n"),
        ("GET", "/metrics", &[], 200, "shown 2\n"),
        ("GET", "/metrics", &foreign, 403, "Host"),
        ("GET", "/metrics", &[("origin", "https://evil.example")], 403, "Origin"),
        ("POST", "/metrics", &[], 405, "GET, HEAD"),
    ] {
        let answered = server.ask(&bare(method, path, headers)).await;
        assert!(answered.status == status && answered.body.contains(body), "{method} {path}: {answered:?}");
    }
    // Only where they were asked for.
    let server = Server::start(Fake::new()).await;
    for path in ["/healthz", "/readyz", "/metrics"] {
        assert_eq!(server.ask(&bare("GET", path, &[])).await.status, 404);
    }
}

#[tokio::test]
async fn once_the_shutdown_has_begun_the_server_is_not_ready_but_answers_until_its_delay_is_over() {
    let setup = Server::options(|o| {
        o.health = true;
        o.shutdown_delay_ms = 1_500;
    });
    let mut server = Server::start_with(Fake::new(), setup).await;
    server.begin_stop();
    while server.ask(&bare("GET", "/readyz", &[])).await.status != 503 {}
    assert_eq!(server.ask(&bare("GET", "/healthz", &[])).await.status, 200);
    assert_eq!(server.ask(&alone("1", "echo", "")).await.status, 200);
    server.stop().await;
}

#[tokio::test]
async fn a_mounted_service_is_not_ready_once_it_is_shut_down() {
    let fake = Fake::new();
    let options = HttpOptions::default().with(|o| o.health = true);
    let mut service = HttpService::new(fake as Arc<dyn Service>, options);
    let mut status = async |path: &str| {
        let request = http::Request::get(path).body(http_body_util::Empty::new()).unwrap();
        service.call(request).await.unwrap().status().as_u16()
    };
    assert_eq!((status("/healthz").await, status("/readyz").await), (200, 200));
    let ending = service.clone();
    tokio::time::timeout(Duration::from_secs(20), ending.shutdown()).await.unwrap();
    let mut status = async |path: &str| {
        let request = http::Request::get(path).body(http_body_util::Empty::new()).unwrap();
        service.call(request).await.unwrap().status().as_u16()
    };
    assert_eq!((status("/healthz").await, status("/readyz").await), (200, 503));
}
