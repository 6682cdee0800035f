//! Requests without TLS and without a proxy: by hyper's client alone, which does a fraction of reqwest's work for each.

use super::resolve::Vetted;
use super::{Address, WebError};
use bytes::Bytes;
use http::header::{ACCEPT, HeaderValue};
use http::{HeaderMap, Method, Request, Response, Uri};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use std::error::Error as StdError;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::net::TcpStream;
use tower_service::Service;

/// The client. Clones share the connection pool.
pub(super) struct Direct {
    client: legacy::Client<Connector, Full<Bytes>>,
}

impl Direct {
    pub(super) fn new(resolver: Vetted, connect: Duration) -> Direct {
        let mut http = HttpConnector::new_with_resolver(resolver);
        http.set_nodelay(true);
        let client = legacy::Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .build(Connector { http, limit: connect });
        Direct { client }
    }

    /// Sends a request. The caller has checked the address.
    pub(super) async fn send(
        &self,
        method: Method,
        address: &Address,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<Response<Incoming>, WebError> {
        let uri = address.uri().clone();
        let mut request = Request::new(Full::new(body));
        (*request.method_mut(), *request.uri_mut(), *request.headers_mut()) = (method, uri, headers);
        request.headers_mut().entry(ACCEPT).or_insert(HeaderValue::from_static("*/*"));
        self.client.request(request).await.map_err(|e| WebError::of_direct(&e, address.host()))
    }
}

/// Connects within a time, name lookup included.
#[derive(Clone)]
struct Connector {
    http: HttpConnector<Vetted>,
    limit: Duration,
}

type Connecting = Pin<Box<dyn Future<Output = Result<TokioIo<TcpStream>, Box<dyn StdError + Send + Sync>>> + Send>>;

impl Service<Uri> for Connector {
    type Response = TokioIo<TcpStream>;
    type Error = Box<dyn StdError + Send + Sync>;
    type Future = Connecting;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.http.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, uri: Uri) -> Connecting {
        let connecting = tokio::time::timeout(self.limit, self.http.call(uri));
        Box::pin(async move {
            match connecting.await {
                Ok(connected) => Ok(connected?),
                Err(_) => Err(io::Error::from(io::ErrorKind::TimedOut).into()),
            }
        })
    }
}
