//! HTTP/2 with prior knowledge, on the same port.
#![cfg(feature = "http")]

mod common;

use bytes::Bytes;
use common::Fake;
use common::wire::*;
use http::Request;
use http_body_util::{BodyExt, Full};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;

#[tokio::test]
async fn http_2_is_spoken_to_whoever_begins_with_it() {
    let server = Server::start(Fake::new()).await;
    let tcp = TcpStream::connect(server.addr).await.unwrap();
    let (mut sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(tcp)).await.unwrap();
    tokio::spawn(connection);
    let request = |host: &str, words: &str| {
        let http1 = alone("1", "echo", words);
        let (head, body) = http1.split_once("\r\n\r\n").unwrap();
        let mut request = Request::post(format!("http://{host}/mcp"));
        for (name, value) in head.lines().skip(1).filter_map(|l| l.split_once(": ")).filter(|(n, _)| *n != "host") {
            request = request.header(name, value);
        }
        request.body(Full::new(Bytes::from(body.to_owned()))).unwrap()
    };
    let r = sender.send_request(request("localhost", "")).await.unwrap();
    assert_eq!((r.status(), r.version()), (http::StatusCode::OK, http::Version::HTTP_2));
    // Several at once on one connection.
    let streaming = sender.send_request(request("127.0.0.1:1", "note gate:a")).await.unwrap();
    assert_eq!(streaming.headers()["content-type"], "text/event-stream");
    assert_eq!(sender.send_request(request("localhost", "")).await.unwrap().status(), 200);
    server.fake.open_gate("a");
    let all = streaming.into_body().collect().await.unwrap().to_bytes();
    assert!(std::str::from_utf8(&all).unwrap().contains(r#""v":"echo""#));
    assert_eq!(sender.send_request(request("evil.example", "")).await.unwrap().status(), 403);
    // Hanging up one stream cancels its request alone.
    let streaming = sender.send_request(request("localhost", "note gate:never")).await.unwrap();
    drop(streaming);
    server.fake.until("dropped echo").await;
    assert_eq!(sender.send_request(request("localhost", "")).await.unwrap().status(), 200);
}
