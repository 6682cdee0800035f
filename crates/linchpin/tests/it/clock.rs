//! What happens after a time, on a clock that the tests move: nothing here waits. See also `mrtr::state_expires`.

use linchpin::client::{Tap, Traffic};
use linchpin::prelude::*;
use linchpin::testing::Clock;
use linchpin::types::page::CacheScope;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

const MINUTE: Duration = Duration::from_secs(60);

fn server() -> Server {
    Server::new("clock", "1")
        .cache_lists(60_000, CacheScope::Private)
        .tool("never", async || std::future::pending::<String>().await)
}

#[tokio::test]
async fn a_call_times_out() {
    let _clock = Clock::pause();
    let client = Client::new("test", "1").connect(in_process(server())).await.unwrap();
    let began = tokio::time::Instant::now();
    let error = client.call("never", ()).timeout(5 * MINUTE).await.unwrap_err();
    assert!(error.is_timeout(), "{error}");
    assert_eq!(began.elapsed().as_secs(), 300);
}

#[derive(Default)]
struct Listed(AtomicUsize);

impl Tap for Listed {
    fn saw(&self, event: Traffic<'_>) {
        if let Traffic::Sent(message) = event {
            self.0.fetch_add(usize::from(message.contains("\"tools/list\"")), Ordering::Relaxed);
        }
    }
}

#[tokio::test]
async fn a_cached_list_expires_after_its_ttl() {
    let clock = Clock::pause();
    let sent = Arc::new(Listed::default());
    let client = Client::new("test", "1").tap(sent.clone()).connect(in_process(server())).await.unwrap();
    let mut requests = Vec::new();
    for wait in [Duration::ZERO, MINUTE / 2, MINUTE] {
        clock.advance(wait).await;
        assert_eq!(client.tools().await.unwrap().len(), 1);
        requests.push(sent.0.load(Ordering::Relaxed));
    }
    assert_eq!(requests, [1, 1, 2]);
}

#[cfg(feature = "http")]
#[tokio::test]
async fn a_session_ends_after_its_idle_time() {
    use linchpin::transport::HttpService;

    /// The status of a POST and the id of its session.
    async fn post(service: &HttpService, session: Option<&str>, message: Value) -> (u16, Option<String>) {
        let mut request = http::Request::post("/")
            .header("host", "localhost")
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream");
        if let Some(session) = session {
            request = request.header("mcp-session-id", session);
        }
        let body = http_body_util::Full::new(bytes::Bytes::from(message.to_string()));
        let response = service.handle(request.body(body).unwrap()).await.unwrap();
        let session = response.headers().get("mcp-session-id").map(|id| id.to_str().unwrap().to_owned());
        (response.status().as_u16(), session)
    }

    let clock = Clock::pause();
    let service = server().limits(|limits| limits.sessions.idle_ms_max = 1_800_000).into_service().unwrap();
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "test", "version": "1" } } });
    let (status, session) = post(&service, None, hello).await;
    assert_eq!(status, 200);
    let ping = || json!({ "jsonrpc": "2.0", "id": 2, "method": "ping" });
    // Each request begins the idle time anew.
    for _ in 0..3 {
        clock.advance(20 * MINUTE).await;
        assert_eq!(post(&service, session.as_deref(), ping()).await.0, 200);
    }
    clock.advance(40 * MINUTE).await;
    assert_eq!(post(&service, session.as_deref(), ping()).await.0, 404);
}
