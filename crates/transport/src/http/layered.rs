//! Tower layers around the service: the types that they see.

use super::answer;
use super::body::{BoxError, HttpBody, if_same};
use super::service::HttpService;
use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt as _;
use http_body_util::combinators::UnsyncBoxBody;
use hyper::body::Incoming;
use linchpin_core::service::BoxFuture;
use std::convert::Infallible;
use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};
use tower_service::Service;

/// The body of a request on its way through tower layers.
///
/// ```
/// use http_body_util::Full;
/// use linchpin_transport::http::RequestBody;
///
/// // The body of a request that a layer created itself.
/// let body = RequestBody::new(Full::from("{}"));
/// # let _ = body;
/// ```
pub struct RequestBody(Kind);

enum Kind {
    Incoming(Incoming),
    /// What a layer made of it.
    Other(UnsyncBoxBody<Bytes, BoxError>),
}

impl RequestBody {
    pub(super) fn incoming(body: Incoming) -> RequestBody {
        RequestBody(Kind::Incoming(body))
    }

    /// Wraps another body.
    pub fn new<B>(body: B) -> RequestBody
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        if_same(body).unwrap_or_else(|body| RequestBody(Kind::Other(body.map_err(Into::into).boxed_unsync())))
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match &mut self.0 {
            Kind::Incoming(body) => Pin::new(body).poll_frame(cx).map_err(BoxError::from),
            Kind::Other(body) => Pin::new(body).poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Kind::Incoming(body) => body.is_end_stream(),
            Kind::Other(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Kind::Incoming(body) => body.size_hint(),
            Kind::Other(body) => body.size_hint(),
        }
    }
}

impl fmt::Debug for RequestBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestBody").finish_non_exhaustive()
    }
}

/// The HTTP service within a tower layer: the server, and the layers that were added before.
///
/// It accepts requests with any body. Its error is [`Infallible`]: the error of a layer becomes a response with status 500.
///
/// ```
/// use http::Request;
/// use linchpin_transport::http::{LayeredService, RequestBody, http};
/// use std::task::{Context, Poll};
/// use tower_layer::layer_fn;
/// use tower_service::Service;
///
/// /// Logs the path of each request.
/// #[derive(Clone)]
/// struct Log(LayeredService);
///
/// impl Service<Request<RequestBody>> for Log {
///     type Response = <LayeredService as Service<Request<RequestBody>>>::Response;
///     type Error = <LayeredService as Service<Request<RequestBody>>>::Error;
///     type Future = <LayeredService as Service<Request<RequestBody>>>::Future;
///
///     fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
///         Poll::Ready(Ok(()))
///     }
///
///     fn call(&mut self, request: Request<RequestBody>) -> Self::Future {
///         eprintln!("{} {}", request.method(), request.uri().path());
///         self.0.call(request)
///     }
/// }
///
/// let transport = http("127.0.0.1:8931").layer(layer_fn(Log));
/// ```
#[derive(Clone)]
pub struct LayeredService {
    inner: Box<dyn Erased>,
}

/// A service without its type.
trait Erased: Send + Sync {
    fn clone_box(&self) -> Box<dyn Erased>;
    fn call(&self, request: Request<RequestBody>) -> BoxFuture<'static, Result<Response<HttpBody>, Infallible>>;
}

impl Clone for Box<dyn Erased> {
    fn clone(&self) -> Self {
        (**self).clone_box()
    }
}

impl LayeredService {
    pub(super) fn new(service: HttpService) -> LayeredService {
        LayeredService::erase(service)
    }

    /// Erases the type of a service with a layer around it.
    pub(super) fn erase<S, B>(service: S) -> LayeredService
    where
        S: Service<Request<RequestBody>, Response = Response<B>> + Clone + Send + Sync + 'static,
        S::Error: Into<BoxError>,
        S::Future: Send,
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        LayeredService { inner: Box::new(Layered(service)) }
    }
}

struct Layered<S>(S);

impl<S, B> Erased for Layered<S>
where
    S: Service<Request<RequestBody>, Response = Response<B>> + Clone + Send + Sync + 'static,
    S::Error: Into<BoxError>,
    S::Future: Send,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    fn clone_box(&self) -> Box<dyn Erased> {
        Box::new(Layered(self.0.clone()))
    }

    fn call(&self, request: Request<RequestBody>) -> BoxFuture<'static, Result<Response<HttpBody>, Infallible>> {
        let mut service = self.0.clone();
        Box::pin(async move {
            let response = match poll_fn(|cx| service.poll_ready(cx).map_err(Into::into)).await {
                Ok(()) => service.call(request).await.map_err(Into::into),
                Err(error) => Err(error),
            };
            Ok(response.map_or_else(failed, |response| response.map(HttpBody::from_layer)))
        })
    }
}

fn failed(error: BoxError) -> Response<HttpBody> {
    tracing::error!(%error, "a layer around the HTTP service failed");
    answer::refuse(StatusCode::INTERNAL_SERVER_ERROR, None, "internal error")
}

impl<B> Service<Request<B>> for LayeredService
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Response<HttpBody>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response<HttpBody>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        // Each call waits for a clone of its own to be ready.
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        self.inner.call(request.map(RequestBody::new))
    }
}

impl fmt::Debug for LayeredService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LayeredService").finish_non_exhaustive()
    }
}
