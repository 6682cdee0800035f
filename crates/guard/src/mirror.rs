//! The metadata of an authorization server, at the origin of the server that it protects.

use crate::issuer::Issuer;
use bytes::Bytes;
use http::header::RETRY_AFTER;
use http::{HeaderValue, Method, Request, Response, StatusCode};
use linchpin_core::gate::{Document, Page};
use linchpin_core::service::BoxFuture;
use std::sync::Arc;

/// Where clients of 2025-03-26 look, who know of no other place.
pub(crate) const PLACE: &str = "/.well-known/oauth-authorization-server";

/// The page.
pub(crate) struct Mirror(pub(crate) Arc<Issuer>);

impl Page for Mirror {
    fn any_origin(&self) -> bool {
        true
    }

    fn respond(&self, request: Request<Bytes>) -> BoxFuture<'static, Response<Bytes>> {
        let issuer = self.0.clone();
        Box::pin(async move {
            if !matches!(*request.method(), Method::GET | Method::HEAD) {
                return Document::json(Bytes::new()).respond(request).await;
            }
            let known = match issuer.known() {
                Some(known) => Some(known),
                None => issuer.learn().await,
            };
            match known.map(|known| known.document.clone()).filter(|document| !document.is_empty()) {
                Some(document) => Document::json(document).respond(request).await,
                None => {
                    let mut response = Response::new(Bytes::new());
                    *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
                    response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("5"));
                    response
                }
            }
        })
    }
}
