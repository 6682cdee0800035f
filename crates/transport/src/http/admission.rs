//! The gate in front of the endpoint: its answers and pages as responses.

use super::answer;
use super::body::HttpBody;
use super::intake::Intake;
use bytes::Bytes;
use http::{HeaderValue, Request, Response, StatusCode, header::CONTENT_TYPE, request};
use http_body::Body;
use linchpin_core::gate::{Page, Refusal};
use linchpin_core::service::BoxFuture;
use linchpin_core::{Principal, Reply, Service};
use linchpin_types::error::code;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

/// A request whose gate has not decided yet.
pub(crate) struct Admission {
    pub(crate) decision: BoxFuture<'static, Result<Principal, Refusal>>,
    pub(crate) parts: request::Parts,
    pub(crate) peer: Option<SocketAddr>,
}

/// A request for a page of the gate.
pub(crate) struct PageRequest {
    page: Arc<dyn Page>,
    parts: Option<request::Parts>,
    intake: Intake,
    response: Option<BoxFuture<'static, Response<Bytes>>>,
}

impl PageRequest {
    pub(crate) fn new(page: Arc<dyn Page>, mut parts: request::Parts, peer: Option<SocketAddr>) -> PageRequest {
        if let Some(peer) = peer {
            parts.extensions.insert(peer);
        }
        PageRequest { page, parts: Some(parts), intake: Intake::default(), response: None }
    }

    /// Reads the body, then waits for the response.
    pub(crate) fn poll<B: Body<Data = Bytes>>(
        &mut self,
        body: Pin<&mut B>,
        service: &dyn Service,
        cx: &mut Context<'_>,
    ) -> Poll<Response<HttpBody>> {
        if let Some(parts) = &self.parts {
            let max = self.page.body_bytes_max().min(service.limits().messages.frame_bytes_max);
            let body = match ready!(self.intake.poll(body, &parts.headers, service, max, cx)) {
                Ok(body) => body,
                Err((status, why)) => return Poll::Ready(answer::refuse(status, None, why)),
            };
            if let Some(parts) = self.parts.take() {
                self.response = Some(self.page.respond(Request::from_parts(parts, body)));
            }
        }
        match &mut self.response {
            Some(response) => response.as_mut().poll(cx).map(|response| response.map(HttpBody::full)),
            None => Poll::Ready(answer::empty(StatusCode::INTERNAL_SERVER_ERROR)),
        }
    }
}

/// The response of a refusal. Its body is a JSON-RPC error.
pub(crate) fn refused(refusal: &Refusal) -> Response<HttpBody> {
    tracing::info!(status = refusal.status().as_u16(), why = refusal.message(), "refused a request");
    let code = if refusal.status().is_server_error() { code::INTERNAL_ERROR } else { code::INVALID_REQUEST };
    respond(refusal, Reply::error(None, code, refusal.message(), None))
}

/// A response with the status and headers of a refusal.
pub(crate) fn respond(refusal: &Refusal, reply: Reply) -> Response<HttpBody> {
    let mut response = Response::new(HttpBody::reply(reply));
    *response.status_mut() = refusal.status();
    *response.headers_mut() = refusal.headers().clone();
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
