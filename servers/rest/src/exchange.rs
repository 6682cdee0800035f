//! How one request is sent and its response read: over the network, or by what a test puts in its place.

use bytes::Bytes;
use http::{Request, Response};
use linchpin::BoxFuture;
use linchpin::transport::web::{Web, WebError, WebErrorKind};
use linchpin_kit::{ErrorKind, ToolError};
use std::time::Instant;

/// Sends requests and reads whole responses. The network is one; a function of a test is another.
///
/// It is asked after everything else is decided: requests have their key, and a response may be a redirect, which it does not
/// follow.
pub trait Exchange: Send + Sync + 'static {
    /// Sends a request until this time.
    fn exchange(&self, request: Request<Bytes>, by: Instant) -> BoxFuture<'_, Result<Response<Bytes>, ToolError>>;
}

impl<F> Exchange for F
where
    F: Fn(Request<Bytes>) -> Response<Bytes> + Send + Sync + 'static,
{
    fn exchange(&self, request: Request<Bytes>, _: Instant) -> BoxFuture<'_, Result<Response<Bytes>, ToolError>> {
        Box::pin(async move { Ok(self(request)) })
    }
}

/// The network.
pub(crate) struct Network {
    pub(crate) web: Web,
    pub(crate) title: &'static str,
    pub(crate) body_bytes_max: usize,
}

impl Exchange for Network {
    fn exchange(&self, request: Request<Bytes>, by: Instant) -> BoxFuture<'_, Result<Response<Bytes>, ToolError>> {
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            let url = parts.uri.to_string();
            let sent = self.web.request_by(parts.method, &url, parts.headers, body, by).await;
            let mut response = sent.map_err(|e| self.error(&e))?;
            let body = response.body.read_all(self.body_bytes_max).await.map_err(|e| self.error(&e))?;
            Ok(Response::from_parts(response.parts, body))
        })
    }
}

impl Network {
    /// The client's errors name the host and contain no credential.
    fn error(&self, error: &WebError) -> ToolError {
        let kind = match error.kind() {
            WebErrorKind::Timeout => ErrorKind::Timeout,
            WebErrorKind::Refused => ErrorKind::Denied,
            _ => ErrorKind::Upstream { status: None },
        };
        ToolError::new(format!("{} cannot be used: {error}", self.title)).kind(kind)
    }
}
