//! What the operator says about the network reaches the client that sends the requests: root certificates and the proxy.

#[path = "../../../../crates/transport/tests/it/common/certificate.rs"]
mod certificate;

use crate::github::suite;
use linchpin::testing::site::{Do, Site, answer, json};
use linchpin_kit::Secret;
use linchpin_rest::Config;
use linchpin_rest::testing::{KEY, Told, call};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::json;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

/// An HTTPS server on `localhost` that tells every request the same. Returns its port, and its certificate in PEM.
async fn secure() -> (u16, String) {
    let (certificate, key) = certificate::certificate("server");
    let pem = certificate::pem("CERTIFICATE", &certificate);
    let config = rustls::ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![CertificateDer::from(certificate)], PrivateKeyDer::try_from(key).unwrap())
        .unwrap();
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let Ok(mut stream) = acceptor.accept(stream).await else { return };
                let mut request = Vec::new();
                while !request.ends_with(b"\r\n\r\n") {
                    match stream.read_u8().await {
                        Ok(byte) => request.push(byte),
                        Err(_) => return,
                    }
                }
                let _ = stream.write_all(&json(200, "connection: close\r\n", &json!({ "number": 7 }))).await;
                let _ = stream.shutdown().await;
            });
        }
    });
    (port, pem)
}

fn config(url: &str) -> Config {
    Config::default().with(|config| {
        config.api_url = Some(url.to_owned());
        config.key = Some(Secret::new(KEY));
        config.env_proxies = false;
        config.pace_ms = Some(0);
        config.retries_max = 0;
        config.tools.toolsets = vec!["all".to_owned()];
    })
}

async fn issue(config: Config) -> Told {
    let connection = suite().connect(config).await;
    call(&connection, "get_issue", json!({ "owner": "o", "repo": "r", "issue_number": 7 })).await
}

#[tokio::test]
async fn an_authority_of_ones_own_is_trusted_where_its_file_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let (port, pem) = secure().await;
    let written = |name: &str, pem: &str| -> PathBuf {
        let path = folder.path().join(name);
        std::fs::write(&path, pem).unwrap();
        path
    };
    let stranger = certificate::pem("CERTIFICATE", &certificate::certificate("stranger").0);
    for (file, trusted) in [
        (None, false),
        (Some(written("stranger.pem", &stranger)), false),
        (Some(written("own.pem", &pem)), true),
        (Some(written("both.pem", &format!("{stranger}{pem}"))), true),
    ] {
        let told =
            issue(config(&format!("https://localhost:{port}")).with(|config| config.ca_file = file.clone())).await;
        assert_eq!(!told.failed, trusted, "{file:?}: {}", told.result);
        if trusted {
            assert_eq!(told.structured["number"], 7, "{file:?}: {}", told.result);
        } else {
            assert!(told.text.contains("certificate of localhost"), "{}", told.text);
        }
    }
}

#[tokio::test]
async fn requests_go_through_the_proxy_that_is_named_and_its_password_is_in_no_error() {
    let proxy = Site::new(|_, seen| {
        vec![match seen.method.as_str() {
            "CONNECT" => Do::Write(answer(502, "", "")),
            _ => Do::Write(json(200, "", &json!({ "number": 7 }))),
        }]
    })
    .await;
    let through = |url: &str| {
        config(url).with(|config| {
            config.allow_http = true;
            config.proxy_url = Some(format!("http://me:swordfish@127.0.0.1:{}", proxy.port()).parse().unwrap());
        })
    };
    let told = issue(through("http://api.example")).await;
    assert_eq!((told.failed, &told.structured["number"]), (false, &json!(7)), "{}", told.result);
    let seen = &proxy.requests()[0];
    assert_eq!((seen.method.as_str(), seen.target.as_str()), ("GET", "http://api.example/repos/o/r/issues/7"));
    assert_eq!(seen.header("proxy-authorization"), Some("Basic bWU6c3dvcmRmaXNo"));
    assert_eq!(seen.header("authorization"), Some(format!("Bearer {KEY}").as_str()));

    // A tunnel: the proxy sees neither the path nor the key.
    let told = issue(through("https://api.github.com")).await;
    assert!(told.failed && !told.result.to_string().contains("swordfish"), "{}", told.result);
    let seen = &proxy.requests()[1];
    assert_eq!((seen.method.as_str(), seen.target.as_str()), ("CONNECT", "api.github.com:443"));
    assert!(!seen.everything().contains(KEY) && !seen.everything().contains("issues"), "{}", seen.everything());
}
