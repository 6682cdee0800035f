//! Floor for a bridge between two HTTP connections: hyper's server in front of hyper's client, bodies passed on as they come.
//! `bare-proxy PORT UPSTREAM`
use hyper::body::Incoming;
use hyper::header::{HOST, HeaderValue};
use hyper::{Request, Response, Uri};
use hyper_util::client::legacy::{Client, Error, connect::HttpConnector};
use hyper_util::rt::{TokioExecutor, TokioIo};

type Pool = Client<HttpConnector, Incoming>;

async fn pass(pool: Pool, upstream: Uri, mut req: Request<Incoming>) -> Result<Response<Incoming>, Error> {
    *req.uri_mut() = upstream.clone();
    if let Some(authority) = upstream.authority().and_then(|a| HeaderValue::from_str(a.as_str()).ok()) {
        req.headers_mut().insert(HOST, authority);
    }
    pool.request(req).await
}

#[tokio::main]
async fn main() {
    let args: Vec<String> = std::env::args().collect();
    let port: u16 = args[1].parse().expect("a port");
    let upstream: Uri = args[2].parse().expect("an address");
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    let pool: Pool = Client::builder(TokioExecutor::new()).build(connector);
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await.expect("bind");
    loop {
        let Ok((tcp, _)) = listener.accept().await else { continue };
        let _ = tcp.set_nodelay(true);
        let (pool, upstream) = (pool.clone(), upstream.clone());
        tokio::spawn(async move {
            let service = hyper::service::service_fn(move |req| pass(pool.clone(), upstream.clone(), req));
            let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(tcp), service).await;
        });
    }
}
