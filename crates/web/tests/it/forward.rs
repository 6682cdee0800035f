//! The forward proxy.

use crate::server::*;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use linchpin_web::{ForwardProxy, Reach, Web, WebOptions};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// What the proxy answers to these bytes.
async fn ask(proxy: &ForwardProxy, request: &str) -> String {
    let mut stream = TcpStream::connect(proxy.address().trim_start_matches("http://")).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    let _ = tokio::time::timeout(Duration::from_millis(300), stream.read_to_end(&mut answer)).await;
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test]
async fn a_proxy_serves_who_knows_its_credential_and_connects_to_what_is_allowed() {
    let head = "connection: x-hop\r\nx-hop: 1\r\nx-end: 2\r\n";
    let site = Server::new(move |_, seen| vec![Do::Write(answer(200, head, &seen.path))]).await;
    let other = Server::new(|_, _| vec![Do::Write(answer(200, "", "inside"))]).await;
    let host = format!("127.0.0.1:{}", site.port);
    let web = Web::new(WebOptions::default().with(|options| {
        options.reach = Reach::Public;
        options.web_ports_only = true;
        options.trusted_hosts = vec![host.parse().unwrap()];
    }));
    let told = Arc::new(Mutex::new(Vec::new()));
    let heard = told.clone();
    let refused = move |url: &str, why: &linchpin_web::WebError| heard.lock().unwrap().push(format!("{url} {why}"));
    let proxy = ForwardProxy::start(web, refused).await.unwrap();
    let (user, password) = proxy.credential();
    let credential = format!("Proxy-Authorization: Basic {}\r\n", STANDARD.encode(format!("{user}:{password}")));

    let got = ask(&proxy, &format!("GET http://{host}/a?b HTTP/1.1\r\nHost: x\r\n{credential}TE: x\r\n\r\n")).await;
    assert!(got.starts_with("HTTP/1.1 200") && got.ends_with("/a?b"), "{got}");
    assert!(got.contains("x-end: 2") && !got.contains("x-hop"), "{got}");
    let seen = site.seen.lock().unwrap()[0].clone();
    assert_eq!((seen.header("host"), seen.header("te")), (Some(&*host), None));
    assert_eq!(seen.header("proxy-authorization"), None);
    let tunnel = format!("CONNECT {host} HTTP/1.1\r\nHost: x\r\n{credential}\r\nGET /t HTTP/1.1\r\nHost: y\r\n\r\n");
    let got = ask(&proxy, &tunnel).await;
    assert!(got.starts_with("HTTP/1.1 200") && got.ends_with("/t"), "{got}");

    let inside = format!("127.0.0.1:{}", other.port);
    for (request, wanted) in [
        (format!("GET http://{host}/ HTTP/1.1\r\nHost: x\r\n\r\n"), "HTTP/1.1 407"),
        (format!("CONNECT {host} HTTP/1.1\r\nHost: x\r\nProxy-Authorization: Basic eDp5\r\n\r\n"), "HTTP/1.1 407"),
        (format!("GET http://{inside}/ HTTP/1.1\r\nHost: {host}\r\n{credential}\r\n"), ""),
        (format!("CONNECT {inside} HTTP/1.1\r\nHost: {host}\r\n{credential}\r\n"), ""),
        (format!("CONNECT 127.0.0.1:22 HTTP/1.1\r\nHost: x\r\n{credential}\r\n"), ""),
        (format!("GET ftp://{host}/ HTTP/1.1\r\nHost: x\r\n{credential}\r\n"), ""),
        (format!("GET / HTTP/1.1\r\nHost: {host}\r\n{credential}\r\n"), ""),
    ] {
        let got = ask(&proxy, &request).await;
        assert!(got.starts_with(wanted) && (!wanted.is_empty() || got.is_empty()), "{request} {got}");
    }
    assert!(other.seen.lock().unwrap().is_empty() && site.seen.lock().unwrap().len() == 2);
    let told = told.lock().unwrap().join("\n");
    assert!(told.contains(&format!("http://{inside}/ {inside} is this machine itself")), "{told}");
}
