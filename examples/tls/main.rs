//! HTTPS without a proxy: rustls in front of the service, one task a connection.
//!
//! `cargo run -p linchpin-examples --example tls -- cert.pem key.pem mcp.example`
//!
//! The name is the one that clients use; without it every request would be rejected, because by default the service accepts
//! only loopback names.

use hyper_util::rt::{TokioExecutor, TokioIo};
use linchpin::BoxError;
use linchpin::prelude::*;
use linchpin::transport::HttpOptions;
use std::sync::Arc;
use std::time::Duration;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let mut args = std::env::args().skip(1);
    let (Some(cert), Some(key), Some(name)) = (args.next(), args.next(), args.next()) else {
        return Err("usage: tls CERT.pem KEY.pem NAME".into());
    };
    let certs = CertificateDer::pem_file_iter(cert)?.collect::<Result<Vec<_>, _>>()?;
    let mut config =
        ServerConfig::builder().with_no_client_auth().with_single_cert(certs, PrivateKeyDer::from_pem_file(key)?)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let acceptor = TlsAcceptor::from(Arc::new(config));

    let options = HttpOptions::default().with(|options| options.allowed_hosts = Some(vec![name.clone()]));
    let service =
        Server::new("tls", "1.0").tool(("hello", "Says hello."), || "Hello over TLS!").into_service_with(options)?;

    let listener = tokio::net::TcpListener::bind("127.0.0.1:8443").await?;
    eprintln!("https://{name}:8443/mcp");
    loop {
        let (tcp, _) = listener.accept().await?;
        let (acceptor, service) = (acceptor.clone(), service.clone());
        tokio::spawn(async move {
            // A client that never finishes its handshake must not occupy the task forever.
            let Ok(Ok(tls)) = tokio::time::timeout(Duration::from_secs(10), acceptor.accept(tcp)).await else { return };
            let answer = hyper::service::service_fn(move |request| service.handle(request));
            let connection = hyper_util::server::conn::auto::Builder::new(TokioExecutor::new());
            // A broken connection affects only its client.
            let _ = connection.serve_connection(TokioIo::new(tls), answer).await;
        });
    }
}
