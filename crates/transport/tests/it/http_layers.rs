//! Tower layers around the HTTP service.
#![cfg(feature = "http")]

use crate::common::Fake;
use crate::common::wire::*;
use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body::{Body, Frame};
use http_body_util::{BodyExt, Full};
use linchpin_core::Principal;
use linchpin_core::service::BoxFuture;
use linchpin_transport::http::{HttpBody, LayeredService, RequestBody};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Poll};
use tower_layer::{Layer, layer_fn};
use tower_service::Service;

type Outcome<B> = Result<Response<B>, Box<dyn std::error::Error + Send + Sync>>;

/// A layer that is one function of the request and of what is within.
fn layer<B, F>(call: F) -> impl Layer<LayeredService, Service = Function<F>> + Send + 'static
where
    F: Fn(Request<RequestBody>, LayeredService) -> BoxFuture<'static, Outcome<B>> + Clone + Send + 'static,
{
    layer_fn(move |inner| Function { call: call.clone(), inner, not_ready: 2 })
}

#[derive(Clone)]
struct Function<F> {
    call: F,
    inner: LayeredService,
    /// How many times it is not ready.
    not_ready: u32,
}

impl<B, F> Service<Request<RequestBody>> for Function<F>
where
    F: Fn(Request<RequestBody>, LayeredService) -> BoxFuture<'static, Outcome<B>>,
{
    type Response = Response<B>;
    type Error = Box<dyn std::error::Error + Send + Sync>;
    type Future = BoxFuture<'static, Outcome<B>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        match self.not_ready {
            0 => Poll::Ready(Ok(())),
            _ => {
                self.not_ready -= 1;
                cx.waker().wake_by_ref();
                Poll::Pending
            }
        }
    }

    fn call(&mut self, request: Request<RequestBody>) -> Self::Future {
        assert_eq!(self.not_ready, 0, "called before it was ready");
        (self.call)(request, self.inner.clone())
    }
}

fn asked<T>(error: std::convert::Infallible) -> T {
    match error {}
}

#[tokio::test]
async fn the_last_layer_added_runs_first_and_may_answer_itself() {
    let login = layer(|mut request, mut inner| {
        Box::pin(async move {
            let Some(user) = request.headers().get("authorization").and_then(|v| v.to_str().ok()) else {
                // Before Host and Origin, and with a body of its own type.
                let response = Response::builder().status(StatusCode::UNAUTHORIZED);
                return Ok(response.body(Full::new(Bytes::from("who are you?")).boxed_unsync())?);
            };
            // The address of the client, as the gate would see it.
            assert!(request.extensions().get::<SocketAddr>().is_some_and(|peer| peer.ip().is_loopback()));
            let principal = Principal::new(user);
            request.extensions_mut().insert(principal);
            request.headers_mut().insert("x-test", "first".parse()?);
            let response = inner.call(request).await.unwrap_or_else(asked);
            Ok(response.map(|body| body.map_err(|_| unreachable!("the service's bodies never fail")).boxed_unsync()))
        })
    });
    let tag = layer(|mut request, mut inner| {
        Box::pin(async move {
            let tagged = format!("{}, second", request.headers()["x-test"].to_str()?);
            request.headers_mut().insert("x-test", tagged.parse()?);
            let mut response = inner.call(request).await.unwrap_or_else(asked);
            response.headers_mut().insert("x-tagged", "yes".parse()?);
            Ok::<Response<HttpBody>, _>(response)
        })
    });
    let server = Server::start_with(Fake::new(), |http| http.layer(tag).layer(login)).await;
    for path in ["/mcp", "/elsewhere"] {
        let refused = server.ask(&post_to(path, &[("host", "evil.example")], "{}")).await;
        assert_eq!((refused.status, refused.body.as_str()), (401, "who are you?"));
        assert_eq!(refused.header("x-tagged"), None);
    }
    let answered = server.ask(&alone_with("1", "echo", "", &[("authorization", "ada")])).await;
    assert!(answered.status == 200 && answered.body.contains(r#""v":"echo""#), "{answered:?}");
    assert_eq!(answered.header("x-tagged"), Some("yes"));
    assert!(server.fake.happened("principal ada") && server.fake.happened("x-test first, second"));
    // The checks of the service itself are within.
    let refused = server.ask(&alone_with("1", "echo", "", &[("authorization", "ada"), ("host", "evil.example")])).await;
    assert_eq!(refused.status, 403);
}

/// Passes a body on, counts its frames, and fails after some of them.
struct Counted {
    body: HttpBody,
    frames: u32,
    fails_after: u32,
}

impl Body for Counted {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, std::io::Error>>> {
        self.frames += 1;
        if self.frames > self.fails_after {
            return Poll::Ready(Some(Err(std::io::Error::other("as asked"))));
        }
        Pin::new(&mut self.body).poll_frame(cx).map_err(std::io::Error::other)
    }
}

#[tokio::test]
async fn bodies_may_be_replaced_in_both_directions_and_a_broken_one_breaks_the_connection() {
    let fails_after = Arc::new(AtomicU32::new(u32::MAX));
    let limit = fails_after.clone();
    let bodies = layer(move |request, mut inner| {
        let fails_after = limit.load(Ordering::Relaxed);
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            let body = String::from_utf8(body.collect().await?.to_bytes().to_vec())?.replace("before", "after");
            let response = inner.call(Request::from_parts(parts, Full::from(body))).await.unwrap_or_else(asked);
            Ok(response.map(|body| Counted { body, frames: 0, fails_after }))
        })
    });
    let server = Server::start_with(Fake::new(), |http| http.layer(bodies).options(|o| o.idle_ms_max = 100)).await;
    let session = server.session("2025-06-18").await;
    let call = |words: &str| post(&[("mcp-session-id", &session)], &call("1", "before", words));
    let answered = server.ask(&call("")).await;
    assert!(answered.status == 200 && answered.body.contains(r#""v":"after""#), "{answered:?}");
    // A stream whose body is a layer's keeps its connection busy.
    let mut conn = server.connect().await;
    conn.send(&call("note gate:a")).await;
    assert_eq!(conn.head().await.status, 200);
    while !conn.event().await.unwrap().contains(r#""n":1"#) {}
    tokio::time::sleep(std::time::Duration::from_millis(400)).await;
    server.fake.open_gate("a");
    assert!(conn.event().await.unwrap().contains(r#""v":"after""#));
    // A body that fails is not taken for one that is complete.
    fails_after.store(1, Ordering::Relaxed);
    let mut conn = server.connect().await;
    conn.send(&call("note note note gate:b")).await;
    assert!(!conn.ends_well().await);
}

/// A layer of a library, which wraps the bodies of requests and of responses.
#[tokio::test]
async fn layers_of_tower_http_fit() {
    let limit = tower_http::limit::RequestBodyLimitLayer::new(1_000);
    let server = Server::start_with(Fake::new(), |http| http.layer(limit)).await;
    assert_eq!(server.ask(&alone("1", "echo", "")).await.status, 200);
    let refused = server.ask(&alone("1", &"x".repeat(1_000), "")).await;
    assert_eq!((refused.status, refused.body.as_str()), (413, "length limit exceeded"));
}

#[tokio::test]
async fn a_layer_that_fails_is_status_500_without_its_reason() {
    let fails = layer(|_, _| Box::pin(async { Outcome::<HttpBody>::Err("secret".into()) }));
    let server = Server::start_with(Fake::new(), |http| http.layer(fails)).await;
    let answered = server.ask(&alone("1", "echo", "")).await;
    assert!(answered.status == 500 && !answered.body.contains("secret"), "{answered:?}");
}
