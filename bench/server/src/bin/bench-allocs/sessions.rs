//! Sessions over HTTP in this process, without connections: what the endpoint keeps for each while it is idle.

use crate::wire::{INITIALIZE, INITIALIZED};
use bytes::Bytes;
use http::{HeaderValue, Request, StatusCode};
use http_body_util::Full;
use linchpin::transport::{HttpExt, HttpService};
use linchpin_bench::counting;
use std::io;

/// What each of this many sessions holds, in bytes, with its share of the table of all.
pub(crate) fn bytes_of_an_idle_one(sessions: u64) -> io::Result<u64> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let service = linchpin_bench::server(5).into_service()?;
    runtime.block_on(async {
        // What is made once, for the first.
        open(&service).await?;
        let before = counting::held();
        for _ in 0..sessions {
            open(&service).await?;
        }
        Ok(counting::held().saturating_sub(before) / sessions)
    })
}

/// Opens a session as a client does, which then says nothing more.
async fn open(service: &HttpService) -> io::Result<()> {
    let session = post(service, None, INITIALIZE, StatusCode::OK).await?;
    let session = session.ok_or_else(|| io::Error::other("`initialize` opened no session"))?;
    post(service, Some(session), INITIALIZED, StatusCode::ACCEPTED).await?;
    Ok(())
}

/// Sends a message. Returns the session that its response names.
async fn post(
    service: &HttpService,
    session: Option<HeaderValue>,
    message: &'static str,
    expected: StatusCode,
) -> io::Result<Option<HeaderValue>> {
    let mut request = Request::post("/mcp")
        .header("host", "localhost")
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream");
    if let Some(session) = session {
        request = request.header("mcp-session-id", session);
    }
    let request = request.body(Full::new(Bytes::from_static(message.as_bytes()))).map_err(io::Error::other)?;
    let Ok(response) = service.handle(request).await;
    match response.status() {
        status if status == expected => Ok(response.headers().get("mcp-session-id").cloned()),
        status => Err(io::Error::other(format!("{message} got {status}"))),
    }
}
