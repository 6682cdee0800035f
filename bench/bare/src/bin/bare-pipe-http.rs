//! Floor for a pipe in front of HTTP: each line becomes a request, each response a line. `bare-pipe-http UPSTREAM`
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::header::{ACCEPT, CONTENT_TYPE};
use hyper::{Request, Uri};
use hyper_util::client::legacy::{Client, connect::HttpConnector};
use hyper_util::rt::TokioExecutor;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::sync::mpsc;

#[derive(Deserialize)]
struct Head<'a> {
    #[serde(borrow)]
    method: Cow<'a, str>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
}

/// What a stateless request repeats in headers.
#[derive(Deserialize)]
struct Params<'a> {
    #[serde(borrow, default)]
    name: Option<Cow<'a, str>>,
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let upstream: Uri = std::env::args().nth(1).expect("an address").parse().expect("an address");
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    let pool: Client<HttpConnector, Full<Bytes>> = Client::builder(TokioExecutor::new()).build(connector);
    let (replies, mut queued) = mpsc::unbounded_channel::<Bytes>();
    tokio::spawn(async move {
        let mut stdout = tokio::io::stdout();
        while let Some(reply) = queued.recv().await {
            let mut out = reply.to_vec();
            out.push(b'\n');
            while let Ok(more) = queued.try_recv() {
                out.extend_from_slice(&more);
                out.push(b'\n');
            }
            if stdout.write_all(&out).await.is_err() || stdout.flush().await.is_err() {
                return;
            }
        }
    });
    let mut lines = BufReader::with_capacity(64 << 10, tokio::io::stdin()).lines();
    let mut tasks = tokio::task::JoinSet::new();
    while let Ok(Some(line)) = lines.next_line().await {
        let stateless = line.contains("io.modelcontextprotocol/protocolVersion");
        let mut request = Request::post(upstream.clone())
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "application/json, text/event-stream");
        if stateless && let Ok(head) = serde_json::from_str::<Head<'_>>(&line) {
            request = request.header("mcp-protocol-version", "2026-07-28").header("mcp-method", &*head.method);
            let params = head.params.and_then(|params| serde_json::from_str::<Params<'_>>(params.get()).ok());
            if let Some(name) = params.and_then(|params| params.name) {
                request = request.header("mcp-name", &*name);
            }
        }
        let request = request.body(Full::new(Bytes::from(line))).expect("a request");
        let (pool, replies) = (pool.clone(), replies.clone());
        tasks.spawn(async move {
            let Ok(response) = pool.request(request).await else { return };
            if let Ok(body) = response.into_body().collect().await {
                let body = body.to_bytes();
                if !body.is_empty() {
                    let _ = replies.send(body);
                }
            }
        });
        while tasks.try_join_next().is_some() {}
    }
    while tasks.join_next().await.is_some() {}
}
