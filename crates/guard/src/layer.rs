//! A tower layer for gates.

use crate::refuse::as_response;
use bytes::Bytes;
use http::{Request, Response};
use linchpin_core::gate::{Admit, Gate};
use linchpin_core::service::BoxFuture;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Context, Poll};
use tower_layer::Layer;
use tower_service::Service;

/// A tower layer that puts a gate in front of an HTTP service. Created by [`Guard::layer`](crate::Guard::layer).
///
/// ```
/// use linchpin_guard::{Guard, GuardLayer, Keys, Scopes};
/// use std::sync::Arc;
///
/// let (keys, _token) = Keys::once("laptop", Scopes::new());
/// let layer = GuardLayer::new(Arc::new(Guard::for_keys().keys(keys)));
/// ```
#[derive(Clone)]
pub struct GuardLayer {
    gate: Arc<dyn Gate>,
}

impl GuardLayer {
    /// Creates a layer from a gate that needs no request bodies: the layer passes none to its pages, and does not call
    /// [`Gate::body`]. The forms of an authorization server would always arrive empty, and the digests of
    /// [`Dpop::Profile`](crate::Dpop::Profile) would not be checked: [`Guard::layer`](crate::Guard::layer) refuses that.
    pub fn new(gate: Arc<dyn Gate>) -> GuardLayer {
        GuardLayer { gate }
    }
}

impl fmt::Debug for GuardLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GuardLayer").finish_non_exhaustive()
    }
}

impl<S> Layer<S> for GuardLayer {
    type Service = Guarded<S>;

    fn layer(&self, inner: S) -> Guarded<S> {
        Guarded { gate: self.gate.clone(), inner }
    }
}

/// A service behind a gate. Created by [`GuardLayer`].
///
/// # Example
///
/// ```
/// use http::{Request, StatusCode};
/// use linchpin_guard::{Guard, Guarded, Keys, Scopes};
/// use tower_layer::Layer as _;
/// use tower_service::Service as _;
/// # use bytes::Bytes;
/// # use http::Response;
/// # use std::convert::Infallible;
/// # use std::future::{Ready, ready};
/// # use std::task::{Context, Poll};
/// # #[derive(Clone)]
/// # struct Files;
/// # impl tower_service::Service<Request<()>> for Files {
/// #     type Response = Response<Bytes>;
/// #     type Error = Infallible;
/// #     type Future = Ready<Result<Response<Bytes>, Infallible>>;
/// #     fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
/// #         Poll::Ready(Ok(()))
/// #     }
/// #     fn call(&mut self, _: Request<()>) -> Self::Future {
/// #         ready(Ok(Response::new(Bytes::new())))
/// #     }
/// # }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let (keys, token) = Keys::once("laptop", Scopes::new());
/// let mut service: Guarded<Files> = Guard::for_keys().keys(keys).layer()?.layer(Files);
///
/// let response = service.call(Request::get("/files").body(())?).await?;
/// assert_eq!(response.status(), StatusCode::UNAUTHORIZED);
///
/// let bearer = format!("Bearer {}", token.expose());
/// let request = Request::get("/files").header("authorization", bearer).body(())?;
/// assert_eq!(service.call(request).await?.status(), StatusCode::OK);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Guarded<S> {
    gate: Arc<dyn Gate>,
    inner: S,
}

impl<S: fmt::Debug> fmt::Debug for Guarded<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guarded").field("inner", &self.inner).finish_non_exhaustive()
    }
}

impl<S, B, R> Service<Request<B>> for Guarded<S>
where
    S: Service<Request<B>, Response = Response<R>> + Clone + Send + 'static,
    S::Future: Send,
    B: Send + 'static,
    R: From<Bytes>,
{
    type Response = Response<R>;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<Response<R>, S::Error>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        // The clone has not been polled, the service itself was.
        let clone = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, clone);
        let gate = self.gate.clone();
        Box::pin(async move {
            let (mut parts, body) = request.into_parts();
            if let Some(page) = gate.page(parts.uri.path()) {
                // The documents of a guard have no use for a body.
                return Ok(page.respond(Request::from_parts(parts, Bytes::new())).await.map(R::from));
            }
            let peer = parts.extensions.get::<SocketAddr>().copied();
            let decision = match gate.admit(&parts, peer) {
                Admit::Yes(principal) => Ok(Some(principal)),
                Admit::Open => Ok(None),
                Admit::No(refusal) => Err(refusal),
                Admit::Later(decision) => decision.await.map(Some),
            };
            match decision {
                Ok(principal) => {
                    if let Some(principal) = principal {
                        parts.extensions.insert(principal);
                    }
                    inner.call(Request::from_parts(parts, body)).await
                }
                Err(refusal) => Ok(as_response(&refusal).map(R::from)),
            }
        })
    }
}
