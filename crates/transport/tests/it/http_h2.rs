//! HTTP/2 with prior knowledge, on the same port.
#![cfg(feature = "http")]

use crate::common;

use bytes::Bytes;
use common::Fake;
use common::wire::*;
use http::Request;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http2::SendRequest;
use hyper_util::rt::{TokioExecutor, TokioIo};
use linchpin_core::Service;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::TcpStream;

/// A request of HTTP/1.1 as one of HTTP/2.
fn converted(http1: &str, host: &str) -> Request<Full<Bytes>> {
    let (head, body) = http1.split_once("\r\n\r\n").unwrap();
    let mut request = Request::post(format!("http://{host}/mcp"));
    for (name, value) in head.lines().skip(1).filter_map(|l| l.split_once(": ")).filter(|(n, _)| *n != "host") {
        request = request.header(name, value);
    }
    request.body(Full::new(Bytes::from(body.to_owned()))).unwrap()
}

/// A reader that grants `window` bytes for each answer until it reads.
async fn reader(addr: SocketAddr, window: u32) -> SendRequest<Full<Bytes>> {
    let tcp = TcpStream::connect(addr).await.unwrap();
    let (sender, connection) = hyper::client::conn::http2::Builder::new(TokioExecutor::new())
        .initial_stream_window_size(window)
        .handshake(TokioIo::new(tcp))
        .await
        .unwrap();
    tokio::spawn(connection);
    sender
}

#[tokio::test]
async fn a_stream_whose_reader_takes_nothing_is_reset_and_the_others_go_on() {
    // What is kept for replay has a deadline of its own.
    let fake = Fake::with(|l| l.sessions.replay_ms_max = 20);
    let server = Server::start_with(fake, Server::options(|o| o.write_ms_max = 200)).await;
    let session = server.session("2025-06-18").await;
    let session = [("mcp-session-id", session.as_str())];
    let long = "x".repeat(100_000);
    for window in [0, 1, 1_000, 70_000] {
        let mut sender = reader(server.addr, window).await;
        for (what, request) in [
            ("one document", post(&session, &call("1", &long, ""))),
            ("a stream", alone("1", "echo", "note:100000 gate:never")),
            ("a stream's end", post(&session, &call("2", &long, "note"))),
        ] {
            let stuck = sender.send_request(converted(&request, "localhost")).await.unwrap();
            assert_eq!(stuck.status(), 200, "{what}, {window}");
            while server.fake.budget().used() >= 100_000 {
                if window >= 1_000 {
                    let fine = sender.send_request(converted(&alone("9", "echo", ""), "localhost")).await.unwrap();
                    assert!(fine.into_body().collect().await.is_ok(), "{what}, {window}");
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            let all = tokio::time::timeout(Duration::from_secs(20), stuck.into_body().collect()).await.unwrap();
            assert!(all.is_err(), "{what}, {window}: it is not mistaken for a whole answer");
        }
    }
}

/// A body that begins and never ends.
struct Endless(Option<Bytes>);

impl http_body::Body for Endless {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<http_body::Frame<Bytes>, Self::Error>>> {
        self.0
            .take()
            .map_or(std::task::Poll::Pending, |data| std::task::Poll::Ready(Some(Ok(http_body::Frame::data(data)))))
    }
}

#[tokio::test]
async fn over_http_2_what_is_small_counts_too() {
    let server = Server::start(Fake::new()).await;
    let used = async |what: &str, least: usize| {
        for _ in 0..5_000 {
            if server.fake.budget().used() >= least {
                return;
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        panic!("{what}: {}", server.fake.budget().used());
    };
    let mut sender = reader(server.addr, 0).await;
    let mut unread = Vec::new();
    for _ in 0..10 {
        unread.push(sender.send_request(converted(&alone("1", "echo", "answer:5000"), "localhost")).await.unwrap());
    }
    used("answers that nobody reads", 60_000).await;
    drop((sender, unread));
    let tcp = TcpStream::connect(server.addr).await.unwrap();
    let (mut sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(tcp)).await.unwrap();
    tokio::spawn(connection);
    let pad = "x".repeat(8_000);
    let mut waiting = Vec::new();
    for _ in 0..10 {
        let (parts, _) = converted(&alone_with("1", "echo", "", &[("x-pad", &pad)]), "localhost").into_parts();
        let request = Request::from_parts(parts, Endless(Some(Bytes::from_static(b"{\"jsonrpc\""))));
        waiting.push(tokio::spawn(sender.send_request(request)));
    }
    used("heads of requests that never end", 90_000).await;
    waiting.iter().for_each(|request| request.abort());
}

#[tokio::test]
async fn a_slow_reader_of_http_2_gets_everything() {
    let server = Server::start_with(Fake::new(), Server::options(|o| o.write_ms_max = 1_500)).await;
    let session = server.session("2025-06-18").await;
    let long = "x".repeat(200_000);
    let request = post(&[("mcp-session-id", session.as_str())], &call("1", &long, ""));
    let mut sender = reader(server.addr, 20_000).await;
    let answer = sender.send_request(converted(&request, "localhost")).await.unwrap();
    let (announced, mut body, mut got) = (answer.headers()["content-length"].clone(), answer.into_body(), 0);
    // Longer than the deadline in all, and never as long without a byte.
    while let Some(frame) = body.frame().await {
        got += frame.unwrap().into_data().unwrap().len();
        tokio::time::sleep(Duration::from_millis(60)).await;
    }
    assert_eq!(got.to_string(), announced.to_str().unwrap());
    assert!(got > 200_000);
}

#[tokio::test]
async fn http_2_is_spoken_to_whoever_begins_with_it() {
    let server = Server::start(Fake::new()).await;
    let tcp = TcpStream::connect(server.addr).await.unwrap();
    let (mut sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(tcp)).await.unwrap();
    tokio::spawn(connection);
    let request = |host: &str, words: &str| converted(&alone("1", "echo", words), host);
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
