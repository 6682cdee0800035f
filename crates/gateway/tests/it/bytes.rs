//! Payloads are the bytes that came, and belong to whom they were sent for.

use linchpin::transport::{Bind, IntoService, memory, pipes};
use linchpin_gateway::{Bridge, BridgeOptions, Isolation};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines, ReadHalf, SimplexStream, WriteHalf, simplex};

/// The upstream's side of the pipes.
pub(crate) struct Upstream {
    read: Lines<BufReader<ReadHalf<SimplexStream>>>,
    write: WriteHalf<SimplexStream>,
}

impl Upstream {
    pub(crate) fn new(read: ReadHalf<SimplexStream>, write: WriteHalf<SimplexStream>) -> Upstream {
        Upstream { read: BufReader::new(read).lines(), write }
    }

    pub(crate) async fn next(&mut self) -> String {
        let line = tokio::time::timeout(Duration::from_secs(60), self.read.next_line()).await;
        line.expect("a message in time").expect("a readable stream").expect("a message")
    }

    /// Ends, as a process does.
    pub(crate) async fn end(mut self) {
        self.write.shutdown().await.unwrap();
    }

    pub(crate) async fn say(&mut self, text: &str) {
        self.write.write_all(format!("{text}\n").as_bytes()).await.unwrap();
    }
}

pub(crate) type Client = (Lines<BufReader<ReadHalf<tokio::io::DuplexStream>>>, WriteHalf<tokio::io::DuplexStream>);

pub(crate) async fn said(client: &mut Client, text: &str) {
    client.1.write_all(format!("{text}\n").as_bytes()).await.unwrap();
}

pub(crate) async fn heard(client: &mut Client) -> String {
    let line = tokio::time::timeout(Duration::from_secs(10), client.0.next_line()).await;
    line.expect("a message in time").unwrap().expect("a message")
}

/// A bridge to an upstream that is written here, and a way to make clients of it.
pub(crate) fn to_upstream(change: impl FnOnce(&mut BridgeOptions)) -> (impl Fn() -> Client, Upstream, Bridge) {
    let (to_read, to_write) = simplex(1 << 20);
    let (from_read, from_write) = simplex(1 << 20);
    let bridge = Bridge::new(pipes(from_read, to_write)).options(change);
    let service = bridge.clone().into_shared().unwrap();
    let client = move || {
        let (place, stream) = memory();
        tokio::spawn(place.serve(service.clone()));
        let (read, write) = tokio::io::split(stream);
        (BufReader::new(read).lines(), write)
    };
    (client, Upstream::new(to_read, from_write), bridge)
}

/// A bridge between a client and an upstream that are both written here.
fn between(isolation: Isolation) -> (Client, Upstream) {
    let (client, upstream, _) = to_upstream(|options| options.isolation = isolation);
    (client(), upstream)
}

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{"sampling":{},"x":{"y":1.0}},"clientInfo":{"name":"c","version":"1","odd":[1e2]}}}"#;

/// Opens a session; the upstream sees the client's own declarations.
async fn opened(isolation: Isolation) -> (Client, Upstream) {
    let (mut client, mut upstream) = between(isolation);
    said(&mut client, INITIALIZE).await;
    let asked = upstream.next().await;
    assert!(asked.contains(r#""protocolVersion":"2025-06-18""#), "{asked}");
    if isolation == Isolation::Auto {
        assert!(asked.contains(r#""capabilities":{"sampling":{},"x":{"y":1.0}}"#), "{asked}");
        assert!(asked.contains(r#""clientInfo":{"name":"c","version":"1","odd":[1e2]}"#), "{asked}");
    }
    let result =
        r#"{"protocolVersion":"2025-06-18","capabilities":{"odd":{"a":1.0}},"serverInfo":{"name":"s","version":"1"}}"#;
    upstream.say(&format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result}}}"#)).await;
    assert_eq!(heard(&mut client).await, format!(r#"{{"jsonrpc":"2.0","id":"i","result":{result}}}"#));
    said(&mut client, r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await;
    assert_eq!(upstream.next().await, r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    (client, upstream)
}

#[tokio::test]
async fn params_results_and_errors_pass_byte_for_byte() {
    let (mut client, mut upstream) = opened(Isolation::Auto).await;
    let odd = r#"{"name":"t","arguments":{"n":9007199254740993,"f":1.0,"__proto__":{"e":1e400},"s":"\u00e9\/ data: x\\n","":[ ]}, "_meta":{"k":"v","progressToken":"p","z":-0}}"#;
    said(&mut client, &format!(r#"{{"jsonrpc":"2.0","id":"q\n7","method":"tools/call","params":{odd}}}"#)).await;
    let sent = upstream.next().await;
    let want = odd.replace(r#""progressToken":"p""#, r#""progressToken":2"#);
    assert_eq!(sent, format!(r#"{{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{want}}}"#));

    upstream.say(r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":2,"progress":0.50,"x":[1.10]}}"#).await;
    let told = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"p","progress":0.50,"x":[1.10]}}"#;
    assert_eq!(heard(&mut client).await, told);

    let result = r#"{"content":[{"type":"text","text":"\u2028 data:\n"}],"n":12345678901234567890123,"structuredContent":{"a":1.0,"a2":{}} ,"_meta":{"y":null}}"#;
    upstream.say(&format!(r#"{{"result":{result},"id":2,"jsonrpc":"2.0"}}"#)).await;
    assert_eq!(heard(&mut client).await, format!(r#"{{"jsonrpc":"2.0","id":"q\n7","result":{result}}}"#));

    said(&mut client, r#"{"jsonrpc":"2.0","id":8,"method":"odd/method","params":{"a":1.0}}"#).await;
    assert_eq!(upstream.next().await, r#"{"jsonrpc":"2.0","id":3,"method":"odd/method","params":{"a":1.0}}"#);
    let error = r#"{"code":-32602,"message":"no\u0020","data":{"d":1.0,"__proto__":1}}"#;
    upstream.say(&format!(r#"{{"jsonrpc":"2.0","id":3,"error":{error}}}"#)).await;
    assert_eq!(heard(&mut client).await, format!(r#"{{"jsonrpc":"2.0","id":8,"error":{error}}}"#));
}

#[tokio::test]
async fn questions_and_cancellations_pass_in_both_directions() {
    let (mut client, mut upstream) = opened(Isolation::Auto).await;
    said(&mut client, r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}"#).await;
    assert_eq!(upstream.next().await, r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"t"}}"#);
    upstream.say(r#"{"jsonrpc":"2.0","id":"u1","method":"sampling/createMessage","params":{"n":1.0}}"#).await;
    let asked = heard(&mut client).await;
    assert_eq!(asked, r#"{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage","params":{"n":1.0}}"#);
    said(&mut client, r#"{"jsonrpc":"2.0","id":1,"result":{"m":2.0}}"#).await;
    assert_eq!(upstream.next().await, r#"{"jsonrpc":"2.0","id":"u1","result":{"m":2.0}}"#);

    said(&mut client, r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#).await;
    let cancelled = upstream.next().await;
    assert!(
        cancelled.contains(r#""method":"notifications/cancelled""#) && cancelled.contains(r#""requestId":2"#),
        "{cancelled}"
    );
    // A late answer, one twice, and one to nothing reach nobody.
    for id in ["2", "2", "77", "null"] {
        upstream.say(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"canary":1}}}}"#)).await;
    }
    upstream.say("not a message").await;
    upstream
        .say(r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":2,"progress":1}}"#)
        .await;
    said(&mut client, r#"{"jsonrpc":"2.0","id":5,"method":"ping"}"#).await;
    assert_eq!(heard(&mut client).await, r#"{"jsonrpc":"2.0","id":5,"result":{}}"#);

    // Outside of any call: the session's own client is asked.
    upstream.say(r#"{"jsonrpc":"2.0","id":9,"method":"roots/list"}"#).await;
    let asked = heard(&mut client).await;
    assert!(asked.contains(r#""method":"roots/list""#), "{asked}");
    // Notifications that nobody knows pass as they are.
    said(&mut client, r#"{"jsonrpc":"2.0","method":"odd/told","params":{"a":1.0}}"#).await;
    assert_eq!(upstream.next().await, r#"{"jsonrpc":"2.0","method":"odd/told","params":{"a":1.0}}"#);
    upstream.say(r#"{"jsonrpc":"2.0","method":"odd/heard","params":{"a":1.0}}"#).await;
    assert_eq!(heard(&mut client).await, r#"{"jsonrpc":"2.0","method":"odd/heard","params":{"a":1.0}}"#);
}

#[tokio::test]
async fn a_shared_upstream_can_ask_nobody_and_its_stray_messages_are_dropped() {
    let (mut client, mut upstream) = between(Isolation::Shared);
    said(&mut client, INITIALIZE).await;
    let asked = upstream.next().await;
    assert!(asked.contains(r#""capabilities":{}"#) && !asked.contains("odd"), "{asked}");
    upstream.say(r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"s","version":"1"}}}"#).await;
    assert!(upstream.next().await.contains("notifications/initialized"));
    heard(&mut client).await;
    said(&mut client, r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}"#).await;
    upstream.next().await;
    upstream.say(r#"{"jsonrpc":"2.0","id":7,"method":"elicitation/create","params":{"canary":1}}"#).await;
    let refused = upstream.next().await;
    assert!(refused.contains(r#""id":7"#) && refused.contains("-32601"), "{refused}");
    upstream
        .say(r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"canary"}}"#)
        .await;
    upstream.say(r#"{"jsonrpc":"2.0","id":2,"result":{"content":[]}}"#).await;
    assert_eq!(heard(&mut client).await, r#"{"jsonrpc":"2.0","id":1,"result":{"content":[]}}"#);
}

#[tokio::test]
async fn an_upstream_that_ends_in_a_call_fails_it_at_once() {
    let (mut client, mut upstream) = opened(Isolation::Auto).await;
    said(&mut client, r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}"#).await;
    upstream.next().await;
    upstream.write.shutdown().await.unwrap();
    let failed = heard(&mut client).await;
    assert!(failed.contains("-31007") && failed.contains("may or may not have run"), "{failed}");
    let next = r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#;
    said(&mut client, next).await;
    let failed = heard(&mut client).await;
    assert!(failed.contains("-31001") && failed.contains("retryAfterMs"), "{failed}");
}
