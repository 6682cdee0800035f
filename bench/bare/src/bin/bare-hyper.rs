//! Ceiling for HTTP: hyper 1.x, HTTP/1.1, one task per connection.
use bare::{Answer, App, Headers};
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use http_body_util::{BodyExt, Full, Limited, StreamBody, combinators::BoxBody};
use hyper::body::{Frame, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use std::convert::Infallible;
use std::sync::Arc;
use tokio::sync::broadcast;

type Body = BoxBody<Bytes, Infallible>;

struct State {
    app: App,
    bus: broadcast::Sender<()>,
}

fn plain(status: StatusCode, body: Bytes, json: bool) -> Response<Body> {
    let mut r = Response::new(Full::new(body).boxed());
    *r.status_mut() = status;
    if json {
        r.headers_mut()
            .insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    }
    r
}

/// An SSE body: `first`, then `event` for each published change.
fn sse(state: &State, first: String, event: String) -> Response<Body> {
    let event = Bytes::from(event);
    let rx = tokio_stream::wrappers::BroadcastStream::new(state.bus.subscribe());
    let body = stream::once(async move { Bytes::from(first) })
        .chain(rx.map(move |_| event.clone()))
        .map(|b| Ok::<_, Infallible>(Frame::data(b)));
    let mut r = Response::new(BodyExt::boxed(StreamBody::new(body)));
    r.headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    r
}

async fn serve(state: Arc<State>, req: Request<Incoming>) -> Result<Response<Body>, Infallible> {
    if req.uri().path() != "/mcp" {
        return Ok(plain(StatusCode::NOT_FOUND, Bytes::new(), false));
    }
    if req.method() == Method::GET {
        let event =
            "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n\n";
        return Ok(sse(&state, ": open\n\n".into(), event.into()));
    }
    let (parts, body) = req.into_parts();
    if parts.method != Method::POST
        || !parts
            .headers
            .get(CONTENT_TYPE)
            .is_some_and(|v| v.as_bytes().starts_with(b"application/json"))
    {
        return Ok(plain(StatusCode::BAD_REQUEST, Bytes::new(), false));
    }
    let Ok(body) = Limited::new(body, bare::MAX_BODY).collect().await else {
        return Ok(plain(StatusCode::PAYLOAD_TOO_LARGE, Bytes::new(), false));
    };
    let body = body.to_bytes();
    let get = |n: &str| parts.headers.get(n).map(HeaderValue::as_bytes);
    let headers = Headers {
        version: get("mcp-protocol-version"),
        method: get("mcp-method"),
        name: get("mcp-name"),
    };
    Ok(match bare::handle(&state.app, &body, Some(headers)) {
        Answer::Json(v) => plain(StatusCode::OK, v.into(), true),
        Answer::Elicited => plain(StatusCode::ACCEPTED, Bytes::new(), false),
        Answer::Publish(v) => {
            let _ = state.bus.send(());
            plain(StatusCode::OK, v.into(), true)
        }
        Answer::Listen(id) => {
            let meta = format!("\"_meta\":{{\"io.modelcontextprotocol/subscriptionId\":{id}}}");
            sse(
                &state,
                format!(
                    "data: {{\"jsonrpc\":\"2.0\",\"method\":\"notifications/subscriptions/acknowledged\",\"params\":{{{meta},\"notifications\":{{\"toolsListChanged\":true}}}}}}\n\n"
                ),
                format!(
                    "data: {{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\",\"params\":{{{meta}}}}}\n\n"
                ),
            )
        }
    })
}

#[tokio::main]
async fn main() {
    let (port, _mode, tools) = bare::http_args();
    let state = Arc::new(State {
        app: App::new(tools),
        bus: broadcast::channel(16).0,
    });
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port))
        .await
        .expect("bind");
    loop {
        let Ok((tcp, _)) = listener.accept().await else {
            continue;
        };
        let _ = tcp.set_nodelay(true);
        let state = state.clone();
        tokio::spawn(async move {
            let service = hyper::service::service_fn(move |req| serve(state.clone(), req));
            let _ = hyper::server::conn::http1::Builder::new()
                .serve_connection(hyper_util::rt::TokioIo::new(tcp), service)
                .await;
        });
    }
}
