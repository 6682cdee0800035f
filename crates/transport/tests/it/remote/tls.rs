//! Secure connections, with certificates made up for each test.

use crate::common::certificate::certificate;
use crate::remote::script::*;
use bytes::Bytes;
use http::{Request, Response, Version};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use linchpin_transport::remote::remote;
use linchpin_web::{Web, WebErrorKind, WebOptions};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::watch;

struct Secure {
    port: u16,
    certificate: Vec<u8>,
    versions: Arc<Mutex<Vec<Version>>>,
    connections: Arc<Mutex<usize>>,
    /// Requests that were given up by the peer.
    dropped: watch::Receiver<usize>,
}

/// Answers every request but those with id 99, which it leaves open.
async fn secure(alpn: &[&str]) -> Secure {
    let (certificate, key) = certificate("server");
    let mut config = rustls::ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![CertificateDer::from(certificate.clone())], PrivateKeyDer::try_from(key).unwrap())
        .unwrap();
    config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let (versions, connections) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Mutex::new(0)));
    let (gone, dropped) = watch::channel(0);
    let gone = Arc::new(gone);
    let (seen, count) = (versions.clone(), connections.clone());
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let (acceptor, seen, gone, count) = (acceptor.clone(), seen.clone(), gone.clone(), count.clone());
            tokio::spawn(async move {
                let Ok(stream) = acceptor.accept(stream).await else { return };
                *count.lock().unwrap() += 1;
                let two = stream.get_ref().1.alpn_protocol() == Some(b"h2");
                let serve = service_fn(move |request: Request<Incoming>| {
                    seen.lock().unwrap().push(request.version());
                    answer_one(request, gone.clone())
                });
                let io = TokioIo::new(stream);
                let _ = match two {
                    true => {
                        hyper::server::conn::http2::Builder::new(TokioExecutor::new()).serve_connection(io, serve).await
                    }
                    false => hyper::server::conn::http1::Builder::new().serve_connection(io, serve).await,
                };
            });
        }
    });
    Secure { port, certificate, versions, connections, dropped }
}

async fn answer_one(
    request: Request<Incoming>,
    gone: Arc<watch::Sender<usize>>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let body = request.into_body().collect().await.map(|body| body.to_bytes()).unwrap_or_default();
    let id = serde_json::from_slice::<serde_json::Value>(&body).unwrap_or_default()["id"].as_u64().unwrap_or(0);
    if id == 99 {
        struct Gone(Arc<watch::Sender<usize>>);
        impl Drop for Gone {
            fn drop(&mut self) {
                self.0.send_modify(|n| *n += 1);
            }
        }
        let _gone = Gone(gone);
        std::future::pending::<()>().await;
    }
    let answer = Response::builder().header("content-type", "application/json");
    Ok(answer.body(Full::from(result(id))).unwrap())
}

pub(crate) fn trusting(certificate: Vec<u8>) -> Web {
    Web::new(WebOptions::default().with(|options| {
        options.extra_roots = vec![certificate];
        options.proxies = false;
    }))
}

#[tokio::test]
async fn a_certificate_must_be_trusted_and_for_the_right_name() {
    let server = secure(&["h2", "http/1.1"]).await;
    let port = server.port;
    let rows = [
        (certificate("stranger").0, "localhost", "is not trusted: its issuer is not trusted by this machine"),
        (server.certificate.clone(), "127.0.0.1", "is not trusted: it is for another name"),
    ];
    for (root, host, want) in rows {
        let request = Request::get(format!("https://{host}:{port}/?key=hidden")).body(Bytes::new()).unwrap();
        let error = trusting(root.clone()).send(request).await.unwrap_err();
        assert_eq!(error.kind(), WebErrorKind::Tls);
        assert_eq!(error.to_string(), format!("the TLS certificate of {host}:{port} {want}"));
        let place = remote(&format!("https://{host}:{port}/mcp")).unwrap().web(trusting(root));
        let outcome = open(place).await.tell_of(request_of(7)).await;
        assert_eq!(outcome, format!("unreachable: the TLS certificate of {host}:{port} {want}"));
    }
    assert!(server.versions.lock().unwrap().is_empty());
}

fn request_of(id: u64) -> linchpin_core::connector::Outgoing {
    request(id, Some(modern()))
}

#[tokio::test]
async fn both_versions_of_http_are_spoken_as_the_server_wishes() {
    for (alpn, version) in
        [(&["h2", "http/1.1"][..], Version::HTTP_2), (&["http/1.1"], Version::HTTP_11), (&[], Version::HTTP_11)]
    {
        let mut server = secure(alpn).await;
        let place =
            remote(&format!("https://localhost:{}/mcp", server.port)).unwrap().web(trusting(server.certificate));
        let open = open(place.bearer("token")).await;
        assert_eq!(open.tell_of(request_of(7)).await, r#"{"n":7}"#);
        let (a, b, c) = tokio::join!(open.ask(request_of(1)), open.ask(request_of(2)), open.ask(request_of(3)));
        assert_eq!([outcome(a), outcome(b), outcome(c)], [r#"{"n":1}"#, r#"{"n":2}"#, r#"{"n":3}"#]);
        assert!(server.versions.lock().unwrap().iter().all(|seen| *seen == version));
        // A dropped exchange is noticed by the server, and over HTTP/2 costs the others nothing.
        let asking = tokio::time::timeout(Duration::from_millis(100), open.link.exchange(request_of(99)));
        assert!(asking.await.is_err());
        tokio::time::timeout(Duration::from_secs(10), server.dropped.wait_for(|n| *n == 1)).await.unwrap().unwrap();
        assert_eq!(open.tell_of(request_of(8)).await, r#"{"n":8}"#);
        if version == Version::HTTP_2 {
            assert_eq!(*server.connections.lock().unwrap(), 1);
        }
    }
}
