//! HTTPS: what is spoken, certificates that change, and handshakes that never end.
#![cfg(all(feature = "tls", feature = "remote"))]

use crate::common::Fake;
use crate::common::certificate::{pem, pems};
use crate::common::wire::*;
use crate::remote::script::{modern, open, request};
use crate::remote::tls::trusting;
use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use hyper_util::rt::{TokioExecutor, TokioIo};
use linchpin_transport::http::{Http, Tls};
use linchpin_transport::remote::remote;
use rustls::pki_types::{CertificateDer, ServerName};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

fn with(tls: &Tls) -> impl FnOnce(Http) -> Http {
    let tls = tls.clone();
    move |http| http.tls(tls)
}

/// A secure connection to `localhost` that trusts this certificate only.
async fn connect(addr: SocketAddr, root: &[u8], alpn: &[&str]) -> std::io::Result<TlsStream<TcpStream>> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from(root.to_vec())).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let mut config = config.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
    let tcp = TcpStream::connect(addr).await?;
    tokio_rustls::TlsConnector::from(Arc::new(config)).connect(ServerName::try_from("localhost").unwrap(), tcp).await
}

/// The certificate that a server presents.
async fn presented(addr: SocketAddr, roots: &[&Vec<u8>]) -> Vec<u8> {
    for root in roots {
        if let Ok(stream) = connect(addr, root, &[]).await {
            return stream.get_ref().1.peer_certificates().unwrap()[0].to_vec();
        }
    }
    panic!("none of these certificates");
}

#[tokio::test]
async fn both_versions_of_http_are_spoken_by_alpn() {
    let (certificate, key, der) = pems("server");
    let server = Server::start_with(Fake::new(), with(&Tls::from_pem(certificate, key).unwrap())).await;
    let call = alone("1", "echo", "");
    for alpn in [&[][..], &["http/1.1"], &["http/1.1", "h2"]] {
        let mut stream = connect(server.addr, &der, alpn).await.unwrap();
        let h2 = alpn.len() == 2;
        let chosen = if h2 { Some(&b"h2"[..]) } else { alpn.first().map(|name| name.as_bytes()) };
        assert_eq!(stream.get_ref().1.alpn_protocol(), chosen);
        if h2 {
            let (mut sender, connection) =
                hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
            tokio::spawn(connection);
            let (_, body) = call.split_once("\r\n\r\n").unwrap();
            let mut post = Request::post("https://localhost/mcp");
            for (name, value) in call.lines().skip(1).filter_map(|l| l.split_once(": ")).filter(|(n, _)| *n != "host") {
                post = post.header(name, value);
            }
            let response = sender.send_request(post.body(Full::new(Bytes::from(body.to_owned()))).unwrap()).await;
            let body = response.unwrap().into_body().collect().await.unwrap().to_bytes();
            assert!(body.windows(10).any(|part| part == br#""v":"echo""#), "{body:?}");
        } else {
            stream.write_all(call.replace("host:", "connection: close\r\nhost:").as_bytes()).await.unwrap();
            let mut response = String::new();
            stream.read_to_string(&mut response).await.unwrap();
            assert!(response.starts_with("HTTP/1.1 200 ") && response.contains(r#""v":"echo""#), "{response}");
        }
    }
    // Our own client, and a plain request, which gets no response that could be taken for one.
    let url = format!("https://localhost:{}/mcp", server.addr.port());
    let client = open(remote(&url).unwrap().web(trusting(der))).await;
    let frame = format!(r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"name":"x",{META}}}}}"#);
    let mut out = request(7, Some(modern()));
    out.frame = frame.into();
    let answered = client.tell_of(out).await;
    assert!(answered.contains(r#""v":"x""#), "{answered}");
    let mut plain = TcpStream::connect(server.addr).await.unwrap();
    plain.write_all(call.as_bytes()).await.unwrap();
    let mut response = Vec::new();
    let _ = plain.read_to_end(&mut response).await;
    assert!(!response.starts_with(b"HTTP"), "{response:?}");
}

#[tokio::test]
async fn a_handshake_has_a_deadline_and_holds_nobody_up() {
    let (certificate, key, der) = pems("server");
    let tls = Tls::from_pem(certificate, key).unwrap();
    let fake = Fake::with(|l| l.connections.header_read_ms_max = 300);
    let server = Server::start_with(fake, with(&tls)).await;
    let mut silent = server.connect().await;
    let mut slow = server.connect().await;
    // The beginning of a ClientHello.
    slow.send_bytes(&[22, 3, 1, 2, 0, 1, 0]).await;
    let mut used = connect(server.addr, &der, &[]).await.unwrap();
    // A connection on which no request was begun is idle, not late with its head.
    tokio::time::sleep(Duration::from_millis(600)).await;
    used.write_all(alone("1", "echo", "").as_bytes()).await.unwrap();
    assert_ne!(used.read(&mut [0; 1_024]).await.unwrap(), 0);
    assert!(silent.is_closed().await && slow.is_closed().await);
}

#[tokio::test]
async fn a_reader_that_stalls_is_closed_over_tls_too() {
    let (certificate, key, der) = pems("server");
    let tls = Tls::from_pem(certificate, key).unwrap();
    let server =
        Server::start_with(Fake::new(), |http| http.tls(tls).options(|options| options.write_ms_max = 200)).await;
    let mut stream = connect(server.addr, &der, &[]).await.unwrap();
    // More than all buffers on the way hold.
    stream.write_all(alone("1", "stalled", &"note:1000000 ".repeat(40)).as_bytes()).await.unwrap();
    server.fake.until("dropped stalled").await;
}

fn write(folder: &Path, certificate: &str, key: &str) {
    std::fs::write(folder.join("cert.pem"), certificate).unwrap();
    std::fs::write(folder.join("key.pem"), key).unwrap();
}

#[tokio::test]
async fn new_files_are_used_by_new_connections_and_broken_ones_change_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let [(cert_1, key_1, der_1), (cert_2, key_2, der_2), (cert_3, key_3, der_3)] = ["one", "two", "three"].map(pems);
    let (cert, key) = (folder.path().join("cert.pem"), folder.path().join("key.pem"));
    write(folder.path(), &cert_1, &key_1);
    let tls = Tls::from_files(&cert, &key).unwrap();
    let server = Server::start_with(Fake::new(), with(&tls)).await;
    let roots = [&der_1, &der_2, &der_3];
    let mut old = connect(server.addr, &der_1, &[]).await.unwrap();
    assert_eq!(tls.reload(), Ok(false));

    write(folder.path(), &cert_2, &key_1);
    let mismatch =
        format!("the private key in {} does not belong to the certificate in {}", key.display(), cert.display());
    assert_eq!(tls.reload().map_err(|e| e.to_string()), Err(mismatch));
    assert_eq!(presented(server.addr, &roots).await, der_1);
    std::fs::remove_file(&key).unwrap();
    assert!(tls.reload().is_err());
    assert_eq!(presented(server.addr, &roots).await, der_1);
    write(folder.path(), &cert_2, &key_2);
    assert_eq!(tls.reload(), Ok(true));
    assert_eq!(presented(server.addr, &roots).await, der_2);

    // The listener looks by itself.
    write(folder.path(), &cert_3, &key_3);
    while presented(server.addr, &roots).await != der_3 {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    // Connections are not touched by any of it.
    old.write_all(alone("1", "echo", "").as_bytes()).await.unwrap();
    assert_ne!(old.read(&mut [0; 1_024]).await.unwrap(), 0);
}

#[test]
fn each_mistake_is_told_with_its_file() {
    let folder = tempfile::tempdir().unwrap();
    let (certificate, key, der) = pems("server");
    let (_, other, _) = pems("other");
    let broken = pem("CERTIFICATE", &der[..50]);
    let encrypted = pem("ENCRYPTED PRIVATE KEY", b"secret");
    let (no_pem, no_base64) = ("hello", "-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n");
    let rows = [
        (certificate.as_str(), other.as_str(), "the private key in KEY does not belong to the certificate in CERT"),
        (&key, &key, "CERT contains no certificate in PEM (-----BEGIN CERTIFICATE-----)"),
        (no_pem, &key, "CERT contains no certificate in PEM (-----BEGIN CERTIFICATE-----)"),
        (no_base64, &key, "CERT is not valid PEM: "),
        (&broken, &key, "CERT contains no valid certificate: "),
        (&certificate, &certificate, "KEY contains no unencrypted private key in PEM (-----BEGIN PRIVATE KEY-----)"),
        (&certificate, &encrypted, "KEY contains no unencrypted private key in PEM (-----BEGIN PRIVATE KEY-----)"),
        (&certificate, "", "KEY contains no unencrypted private key in PEM (-----BEGIN PRIVATE KEY-----)"),
        (&certificate, &pem("PRIVATE KEY", b"nonsense"), "the private key in KEY cannot be used: "),
    ];
    let (cert_file, key_file) = (folder.path().join("cert.pem"), folder.path().join("key.pem"));
    let said = || {
        let text = Tls::from_files(&cert_file, &key_file).unwrap_err().to_string();
        text.replace(cert_file.to_str().unwrap(), "CERT").replace(key_file.to_str().unwrap(), "KEY")
    };
    for (certificate, key, want) in rows {
        write(folder.path(), certificate, key);
        assert!(said().starts_with(want), "{} instead of {want}", said());
    }
    std::fs::remove_file(&key_file).unwrap();
    assert!(said().starts_with("cannot read the private key KEY: No such file"), "{}", said());
    std::fs::write(&cert_file, vec![b'x'; (1 << 20) + 1]).unwrap();
    assert_eq!(said(), "cannot read the certificate CERT: the file is larger than 1 MiB");
    let text = Tls::from_pem(&certificate, &other).unwrap_err().to_string();
    assert_eq!(text, "the private key in the second argument does not belong to the certificate in the first argument");
}
