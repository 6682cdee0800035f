//! The paths that probes and monitors request, next to the endpoint: `/healthz`, `/readyz` and `/metrics`.

use super::answer;
use super::body::HttpBody;
use super::options::HttpOptions;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderValue, Method, Response, StatusCode, request};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The pages that a service has.
pub(super) struct Pages {
    health: bool,
    health_paths: Box<[String]>,
    ready_path: String,
    closing: AtomicBool,
    ready: Option<Arc<dyn Fn() -> Result<(), String> + Send + Sync>>,
    metrics: Option<Arc<dyn Fn() -> String + Send + Sync>>,
}

impl Pages {
    pub(super) fn new(options: &HttpOptions) -> Pages {
        let (ready, metrics) = (options.ready.clone(), options.metrics.clone());
        Pages {
            health: options.health,
            health_paths: options.health_paths.clone().into(),
            ready_path: options.ready_path.clone(),
            closing: AtomicBool::new(false),
            ready,
            metrics,
        }
    }

    /// The shutdown has begun.
    pub(super) fn close(&self) {
        self.closing.store(true, Ordering::Relaxed);
    }

    /// Answers probes. They name the host as they like and must learn nothing but the state.
    pub(super) fn probe(&self, request: &request::Parts) -> Option<Response<HttpBody>> {
        if !self.health {
            return None;
        }
        let path = request.uri.path();
        let state = match () {
            () if self.health_paths.iter().any(|own| own == path) => Ok(()),
            () if path != self.ready_path => return None,
            () if self.closing.load(Ordering::Relaxed) => Err("shutting down".to_owned()),
            () => self.ready.as_ref().map_or(Ok(()), |ready| ready()),
        };
        Some(match state {
            _ if !is_read(&request.method) => answer::method_not_allowed("GET, HEAD"),
            Err(why) => text(StatusCode::SERVICE_UNAVAILABLE, "text/plain", why + "\n"),
            Ok(()) => text(StatusCode::OK, "text/plain", "ok\n".to_owned()),
        })
    }

    /// Whether `/metrics` is a page.
    pub(super) fn has_metrics(&self, path: &str) -> bool {
        self.metrics.is_some() && path == "/metrics"
    }

    pub(super) fn metrics(&self, method: &Method) -> Response<HttpBody> {
        match &self.metrics {
            Some(render) if is_read(method) => {
                text(StatusCode::OK, "text/plain; version=0.0.4; charset=utf-8", render())
            }
            _ => answer::method_not_allowed("GET, HEAD"),
        }
    }
}

fn is_read(method: &Method) -> bool {
    [Method::GET, Method::HEAD].contains(method)
}

fn text(status: StatusCode, content_type: &'static str, text: String) -> Response<HttpBody> {
    let mut response = Response::new(HttpBody::full(text));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
