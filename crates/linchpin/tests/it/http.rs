//! A complete server over a real socket: the registry and the headers, end to end.

#![cfg(feature = "http")]

use crate::common;
use crate::observer::Record;

use linchpin::prelude::*;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

#[derive(Deserialize, JsonSchema)]
struct Query {
    #[schemars(extend("x-mcp-header" = "Region"))]
    region: String,
}

#[derive(Deserialize, JsonSchema)]
struct Sure {
    yes: bool,
}

#[derive(Default)]
struct Shop;

impl Shop {
    async fn query(&self, q: Query) -> String {
        q.region
    }

    async fn buy(&self, cx: &Cx, _: NoArgs) -> Result<String> {
        let sure: Sure = cx.elicit("sure", "Really?").await?;
        Ok(format!("bought: {}", sure.yes))
    }

    fn stock(q: Query) -> Json<Value> {
        Json(json!({ "stock": q.region.len() }))
    }

    async fn count(&self, cx: &Cx, _: NoArgs) -> &'static str {
        cx.progress(1.0, Some(2.0));
        "counted"
    }
}

async fn start() -> SocketAddr {
    start_observed(Record::default()).await
}

async fn start_observed(record: Record) -> SocketAddr {
    let (ready, addr) = tokio::sync::oneshot::channel();
    let server = Server::new("shop", "1")
        .observe(record)
        .state(Shop)
        .tool("query", Shop::query)
        .tool("buy", Shop::buy)
        .tool("count", Shop::count)
        .method("shop.example/hours", || Json(json!({ "open": 9 })))
        .with(linchpin::Extension::new("example.shop/stock", json!({})).method("of", Shop::stock).named_by("region"));
    tokio::spawn(server.serve(http("127.0.0.1:0").on_ready(move |addr| ready.send(addr).expect("somebody waits"))));
    addr.await.expect("it listens")
}

struct Response {
    status: u16,
    head: String,
    body: String,
}

impl Response {
    fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().filter_map(|l| l.split_once(": ")).find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, v)| v)
    }

    /// The messages of the body, of either kind.
    fn messages(&self) -> Vec<Value> {
        if self.header("content-type") == Some("text/event-stream") {
            let data = self.body.lines().filter_map(|l| l.strip_prefix("data: ")).filter(|d| !d.is_empty());
            return data.map(|d| serde_json::from_str(d).expect("JSON")).collect();
        }
        vec![serde_json::from_str(&self.body).unwrap_or_else(|e| panic!("{e}: {}", self.body))]
    }
}

/// One POST on a new connection.
async fn post(addr: SocketAddr, headers: &[(&str, &str)], body: &Value) -> Response {
    let mut tcp = TcpStream::connect(addr).await.expect("it listens");
    let mut request =
        format!("POST /mcp HTTP/1.1\r\nhost: {addr}\r\nconnection: close\r\ncontent-type: application/json\r\n");
    request += "accept: application/json, text/event-stream\r\n";
    for (name, value) in headers {
        request += &format!("{name}: {value}\r\n");
    }
    let body = body.to_string();
    request += &format!("content-length: {}\r\n\r\n{body}", body.len());
    tcp.write_all(request.as_bytes()).await.expect("it reads");
    let mut bytes = Vec::new();
    tcp.read_to_end(&mut bytes).await.expect("it answers");
    let text = String::from_utf8(bytes).expect("UTF-8");
    let (head, body) = text.split_once("\r\n\r\n").expect("a head");
    let status = head.split(' ').nth(1).and_then(|s| s.parse().ok()).expect("a status");
    let chunked = head.to_lowercase().contains("transfer-encoding: chunked");
    Response { status, head: head.to_owned(), body: if chunked { unchunk(body) } else { body.to_owned() } }
}

fn unchunk(mut body: &str) -> String {
    let mut whole = String::new();
    while let Some((size, rest)) = body.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).expect("a size");
        whole += &rest[..size];
        body = rest[size..].strip_prefix("\r\n").unwrap_or_default();
        if size == 0 {
            break;
        }
    }
    whole
}

/// A stateless request, with the headers that mirror it.
async fn alone(addr: SocketAddr, capabilities: Value, params: Value, headers: &[(&str, &str)]) -> Response {
    let mut params = params;
    params["_meta"]["io.modelcontextprotocol/protocolVersion"] = common::MODERN.into();
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = capabilities;
    let name = params["name"].as_str().unwrap_or_default().to_owned();
    let mut all =
        vec![("mcp-protocol-version", common::MODERN), ("mcp-method", "tools/call"), ("mcp-name", name.as_str())];
    all.extend(headers);
    post(addr, &all, &json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params })).await
}

#[tokio::test]
async fn every_revision_is_served_at_one_address() {
    let addr = start().await;
    for revision in common::LEGACY {
        let hello =
            json!({ "protocolVersion": revision, "capabilities": {}, "clientInfo": { "name": "t", "version": "0" } });
        let r = post(addr, &[], &json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello })).await;
        assert_eq!((r.status, &r.messages()[0]["result"]["protocolVersion"]), (200, &json!(revision)));
        let session = r.header("mcp-session-id").expect("a session").to_owned();
        let call = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": { "name": "count", "_meta": { "progressToken": 7 } } });
        let r = post(addr, &[("mcp-session-id", &session)], &call).await;
        let messages = r.messages();
        assert_eq!(messages[0]["params"]["progressToken"], 7, "{revision}: {messages:?}");
        assert_eq!(messages[1]["result"]["content"][0]["text"], "counted");
        assert!(messages[1]["result"].get("resultType").is_none());
    }
    let r = alone(addr, json!({}), json!({ "name": "count", "_meta": { "progressToken": 7 } }), &[]).await;
    assert_eq!(r.header("content-type"), Some("text/event-stream"));
    assert_eq!(r.messages()[1]["result"]["resultType"], "complete");
    let r = alone(addr, json!({}), json!({ "name": "count" }), &[]).await;
    assert_eq!(r.header("content-type"), Some("application/json"), "nothing notified, nothing streamed");
}

#[tokio::test]
async fn a_method_of_an_extension_is_named_in_its_header_and_unknown_to_those_who_do_not_declare_it() {
    let addr = start().await;
    let declared = json!({ "extensions": { "example.shop/stock": {} } });
    for (name, capabilities, status, code) in [
        ("oslo", &declared, 200, Value::Null),
        ("bergen", &declared, 400, json!(-32020)),
        ("", &declared, 400, json!(-32020)),
        ("oslo", &json!({}), 404, json!(-32601)),
    ] {
        let mut headers = vec![("mcp-protocol-version", common::MODERN), ("mcp-method", "example.shop/stock/of")];
        headers.extend((!name.is_empty()).then_some(("mcp-name", name)));
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": common::MODERN,
            "io.modelcontextprotocol/clientCapabilities": capabilities,
        });
        let params = json!({ "region": "oslo", "_meta": meta });
        let request = json!({ "jsonrpc": "2.0", "id": 1, "method": "example.shop/stock/of", "params": params });
        let r = post(addr, &headers, &request).await;
        assert_eq!((r.status, &r.messages()[0]["error"]["code"]), (status, &code), "{name} {capabilities}: {}", r.body);
    }
}

#[tokio::test]
async fn mirrored_arguments_must_be_in_their_header_from_end_to_end() {
    let addr = start().await;
    let params = json!({ "name": "query", "arguments": { "region": "us-west1" } });
    for (headers, status) in [
        (&[("mcp-param-region", "us-west1")][..], 200),
        (&[("MCP-PARAM-REGION", "=?base64?dXMtd2VzdDE=?=")], 200),
        (&[("mcp-param-region", "us-west1"), ("mcp-param-other", "x")], 200),
        (&[("mcp-param-region", "eu-north1")], 400),
        (&[("mcp-param-region", "US-WEST1")], 400),
        (&[], 400),
    ] {
        let r = alone(addr, json!({}), params.clone(), headers).await;
        assert_eq!(r.status, status, "{headers:?}: {}", r.body);
        if status == 400 {
            assert_eq!(r.messages()[0]["error"]["code"], -32020, "{headers:?}");
        }
    }
}

#[tokio::test]
async fn a_custom_method_needs_its_header_and_an_unknown_one_is_not_found() {
    let addr = start().await;
    let meta = json!({ "io.modelcontextprotocol/protocolVersion": common::MODERN,
        "io.modelcontextprotocol/clientCapabilities": {} });
    for (method, header, status, code) in [
        ("shop.example/hours", Some("shop.example/hours"), 200, None),
        ("shop.example/hours", Some("shop.example/other"), 400, Some(-32020)),
        ("shop.example/hours", None, 400, Some(-32020)),
        ("shop.example/other", Some("shop.example/other"), 404, Some(-32601)),
        ("shop.example/other", None, 404, Some(-32601)),
    ] {
        let mut headers = vec![("mcp-protocol-version", common::MODERN)];
        headers.extend(header.map(|header| ("mcp-method", header)));
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": { "_meta": meta } });
        let r = post(addr, &headers, &body).await;
        let message = r.messages().remove(0);
        assert_eq!((r.status, message["error"]["code"].as_i64()), (status, code), "{method} {header:?}: {message}");
        assert_eq!(message["result"]["open"] == 9, status == 200, "{message}");
    }
    for revision in common::LEGACY {
        let hello =
            json!({ "protocolVersion": revision, "capabilities": {}, "clientInfo": { "name": "t", "version": "0" } });
        let r = post(addr, &[], &json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello })).await;
        let session = r.header("mcp-session-id").expect("a session").to_owned();
        for (method, expected) in [("shop.example/hours", json!(9)), ("shop.example/other", Value::Null)] {
            let body = json!({ "jsonrpc": "2.0", "id": 2, "method": method });
            let r = post(addr, &[("mcp-session-id", &session)], &body).await;
            assert_eq!((r.status, &r.messages()[0]["result"]["open"]), (200, &expected), "{revision}: {}", r.body);
        }
    }
}

#[tokio::test]
async fn sessions_streams_and_calls_over_http_are_observed() {
    let record = Record::default();
    let addr = start_observed(record.clone()).await;
    let r = alone(addr, json!({}), json!({ "name": "count", "_meta": { "progressToken": 1 } }), &[]).await;
    assert_eq!(r.messages().len(), 2, "{}", r.body);
    let hello =
        json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "0" } });
    let r = post(addr, &[], &json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello })).await;
    let session = r.header("mcp-session-id").expect("a session").to_owned();
    let call = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call",
        "params": { "name": "count", "_meta": { "progressToken": 1 } } });
    let r = post(addr, &[("mcp-session-id", &session)], &call).await;
    assert_eq!(r.messages().len(), 2, "{}", r.body);
    let expected = [
        "start tools/call",
        "end tools/call count ok",
        "stream opened",
        "stream closed",
        "session opened",
        "start initialize",
        "end initialize - ok",
        "start tools/call",
        "end tools/call count ok",
        "stream opened",
        "stream closed",
    ];
    let (mut seen, mut expected) = (record.lines(), expected.map(str::to_owned).to_vec());
    // A stream opens at the first notification, which may be before or after its call has ended.
    seen.sort();
    expected.sort();
    assert_eq!(seen, expected);
}

#[tokio::test]
async fn a_trace_is_taken_from_the_headers_unless_the_message_has_one() {
    let (here, there) = (
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "00-11111111111111111111111111111111-2222222222222222-00",
    );
    async fn traced(cx: &Cx) -> String {
        cx.trace().map_or("none".to_owned(), |trace| format!("{} {:?}", trace.traceparent, trace.tracestate))
    }
    let (ready, addr) = tokio::sync::oneshot::channel();
    let server = Server::new("traced", "1").tool("traced", traced);
    tokio::spawn(server.serve(http("127.0.0.1:0").on_ready(move |addr| ready.send(addr).expect("somebody waits"))));
    let addr = addr.await.expect("it listens");
    let both = [("traceparent", here), ("tracestate", "a=1")];
    for (headers, meta, expected) in [
        (&both[..], json!({}), format!("{here} Some(\"a=1\")")),
        (&both[..1], json!({}), format!("{here} None")),
        (&both[..], json!({ "traceparent": there }), format!("{there} None")),
        (&[("traceparent", "not a trace")], json!({}), "none".to_owned()),
        (&[], json!({}), "none".to_owned()),
    ] {
        let r = alone(addr, json!({}), json!({ "name": "traced", "_meta": meta }), headers).await;
        assert_eq!(r.messages()[0]["result"]["content"][0]["text"], expected, "{headers:?}");
    }
    let hello =
        json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "0" } });
    let r = post(addr, &[], &json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello })).await;
    let session = r.header("mcp-session-id").expect("a session").to_owned();
    let call = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": { "name": "traced" } });
    let r = post(addr, &[("mcp-session-id", &session), both[0]], &call).await;
    assert_eq!(r.messages()[0]["result"]["content"][0]["text"], format!("{here} None"));
}

#[tokio::test]
async fn refusals_of_hosts_and_origins_are_logged() {
    let service = Server::new("s", "1").into_service().expect("it is put together rightly");
    let logged = common::Logged::default();
    let _guard = tracing::subscriber::set_default(logged.clone());
    for (host, origin, status, why) in [
        ("localhost", "", 405, None),
        ("evil.example", "", 403, Some("this Host is not allowed")),
        ("localhost", "https://evil.example", 403, Some("this Origin is not allowed")),
    ] {
        let before = logged.text().len();
        let request = http::Request::put("/mcp").header("host", host);
        let request = if origin.is_empty() { request } else { request.header("origin", origin) };
        let request = request.body(http_body_util::Full::new(bytes::Bytes::new())).expect("a request");
        let response = service.handle(request).await.expect("an answer");
        assert_eq!(response.status(), status, "{host} {origin}");
        let said = logged.text().split_off(before);
        let refused = why.map(|why| format!("INFO message=refused a request why=\"{why}"));
        assert_eq!(said.contains("refused a request"), refused.is_some(), "{host} {origin}: {said}");
        assert!(refused.is_none_or(|refused| said.contains(&refused)), "{host} {origin}: {said}");
    }
}

#[tokio::test]
async fn a_question_takes_a_round_and_a_missing_capability_its_status() {
    let addr = start().await;
    let r = alone(addr, json!({}), json!({ "name": "buy" }), &[]).await;
    assert_eq!(r.status, 400);
    let error = r.messages()[0]["error"].clone();
    assert_eq!(
        (&error["code"], &error["data"]["requiredCapabilities"]),
        (&json!(-32021), &json!({ "elicitation": {} }))
    );
    let caps = json!({ "elicitation": { "form": {} } });
    let asked = alone(addr, caps.clone(), json!({ "name": "buy" }), &[]).await;
    let result = asked.messages()[0]["result"].clone();
    assert_eq!(
        (asked.status, asked.header("content-type"), &result["resultType"]),
        (200, Some("application/json"), &json!("input_required"))
    );
    let again = json!({ "name": "buy", "requestState": result["requestState"],
        "inputResponses": { "sure": { "action": "accept", "content": { "yes": true } } } });
    // A new connection: nothing is remembered between the round trips.
    let r = alone(addr, caps, again, &[]).await;
    assert_eq!(r.messages()[0]["result"]["content"][0]["text"], "bought: true");
}

/// Sends `true` when it is dropped.
struct TellDrop(Option<tokio::sync::oneshot::Sender<()>>);

impl Drop for TellDrop {
    fn drop(&mut self) {
        let _ = self.0.take().map(|tell| tell.send(()));
    }
}

#[tokio::test]
async fn dropping_the_future_of_serve_stops_the_server() {
    let (ready, addr) = tokio::sync::oneshot::channel();
    let (tell, dropped) = tokio::sync::oneshot::channel();
    let (started, running) = tokio::sync::oneshot::channel();
    let first = std::sync::Arc::new(std::sync::Mutex::new(Some((TellDrop(Some(tell)), started))));
    let server = Server::new("dropped", "1").tool("wait", move |_: NoArgs| {
        let taken = first.lock().expect("not poisoned").take();
        async move {
            let Some((_guard, started)) = taken else { return };
            let _ = started.send(());
            std::future::pending::<()>().await;
        }
    });
    let place = http("127.0.0.1:0").on_ready(move |addr| ready.send(addr).expect("somebody waits"));
    let mut serving = Box::pin(server.serve(place));
    let addr: SocketAddr = tokio::select! {
        ended = &mut serving => panic!("it ended: {ended:?}"),
        addr = addr => addr.expect("it listens"),
    };
    let call = tokio::spawn(async move { alone(addr, json!({}), json!({ "name": "wait" }), &[]).await.status });
    running.await.expect("the call runs");
    drop(serving);
    let limit = std::time::Duration::from_secs(10);
    tokio::time::timeout(limit, dropped).await.expect("the running call is dropped").expect("told");
    assert!(call.await.is_err(), "its connection ends without an answer");
    let refused = async {
        while TcpStream::connect(addr).await.is_ok() {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(limit, refused).await.expect("nobody listens any more");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_server_that_was_not_told_to_installs_no_signal_handlers() {
    const SIGHUP_SIGINT_SIGTERM: u64 = 1 | 1 << 1 | 1 << 14;
    let caught = || {
        let status = std::fs::read_to_string("/proc/self/status").expect("Linux has it");
        let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).expect("a mask").trim();
        u64::from_str_radix(mask, 16).expect("hexadecimal") & SIGHUP_SIGINT_SIGTERM
    };
    let before = caught();
    let addr = start().await;
    assert_eq!(alone(addr, json!({}), json!({ "name": "count" }), &[]).await.status, 200);
    #[cfg(feature = "stdio")]
    {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("socket");
        let place = linchpin::transport::unix(&path);
        let serving = tokio::spawn(Server::new("unix", "1").serve(place));
        while tokio::net::UnixStream::connect(&path).await.is_err() {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        serving.abort();
    }
    assert_eq!(caught(), before);
}

#[tokio::test]
async fn a_mounted_server_runs_its_end_hooks_once_when_it_is_shut_down() {
    let ended = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let count = ended.clone();
    let server = Server::new("mounted", "1").on_shutdown(move || {
        let count = count.clone();
        async move {
            tokio::task::yield_now().await;
            count.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        }
    });
    let service = server.into_service().expect("it is put together rightly");
    tokio::join!(service.shutdown(), service.shutdown());
    service.clone().shutdown().await;
    assert_eq!(ended.load(std::sync::atomic::Ordering::SeqCst), 1);
}

#[tokio::test]
async fn each_session_has_a_state_of_its_own_and_each_request_without_one() {
    struct Counter(AtomicUsize, Arc<AtomicUsize>);
    impl Drop for Counter {
        fn drop(&mut self) {
            self.1.fetch_sub(1, Ordering::SeqCst);
        }
    }
    struct Count(Counter);
    #[register]
    impl Count {
        #[tool]
        fn count(&self) -> String {
            (self.0.0.fetch_add(1, Ordering::SeqCst) + 1).to_string()
        }
    }
    let alive = Arc::new(AtomicUsize::new(0));
    let counted = alive.clone();
    let server = Server::new("counter", "1").with_session(move || {
        counted.fetch_add(1, Ordering::SeqCst);
        Count(Counter(AtomicUsize::new(0), counted.clone()))
    });
    let (ready, addr) = tokio::sync::oneshot::channel();
    tokio::spawn(server.serve(http("127.0.0.1:0").on_ready(move |addr| ready.send(addr).expect("somebody waits"))));
    let addr = addr.await.expect("it listens");
    let session = async || {
        let hello = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "0" } });
        let r = post(addr, &[], &json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello })).await;
        r.header("mcp-session-id").expect("a session").to_owned()
    };
    let count = async |session: &str| {
        let call = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": { "name": "count" } });
        let r = post(addr, &[("mcp-session-id", session)], &call).await;
        r.messages()[0]["result"]["content"][0]["text"].clone()
    };
    let (one, two) = (session().await, session().await);
    assert_eq!((count(&one).await, count(&one).await, count(&two).await), (json!("1"), json!("2"), json!("1")));
    for _ in 0..2 {
        let r = alone(addr, json!({}), json!({ "name": "count" }), &[]).await;
        assert_eq!(r.messages()[0]["result"]["content"][0]["text"], "1", "no session, no memory");
    }
    assert_eq!(alive.load(Ordering::SeqCst), 2);
    let mut tcp = TcpStream::connect(addr).await.expect("it listens");
    let end = format!("DELETE /mcp HTTP/1.1\r\nhost: {addr}\r\nmcp-session-id: {one}\r\nconnection: close\r\n\r\n");
    tcp.write_all(end.as_bytes()).await.expect("it reads");
    let mut answer = Vec::new();
    tcp.read_to_end(&mut answer).await.expect("it answers");
    common::until("the state of the first is gone", || alive.load(Ordering::SeqCst) == 1).await;
    assert_eq!(count(&two).await, json!("2"));
}

/// Row 5 of the faults of tasks.
#[tokio::test]
async fn a_header_that_names_another_task_is_refused_and_nothing_is_touched() {
    let (ready, addr) = tokio::sync::oneshot::channel();
    let slow = async |_: NoArgs| {
        tokio::time::sleep(std::time::Duration::from_secs(60)).await;
        "late"
    };
    let server = Server::new("slow", "1").tool(Tool::new("slow", "").task_required(), slow);
    tokio::spawn(server.serve(http("127.0.0.1:0").on_ready(move |addr| ready.send(addr).expect("somebody waits"))));
    let addr = addr.await.expect("it listens");
    let ask = async |method: &str, name: Option<&str>, mut params: Value| {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": common::MODERN,
            "io.modelcontextprotocol/clientCapabilities": { "extensions": { "io.modelcontextprotocol/tasks": {} } },
        });
        let mut headers = vec![("mcp-protocol-version", common::MODERN), ("mcp-method", method)];
        headers.extend(name.map(|name| ("mcp-name", name)));
        let response =
            post(addr, &headers, &json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params })).await;
        (response.status, response.messages().remove(0))
    };
    let mut made = Vec::new();
    for _ in 0..2 {
        let (_, answer) = ask("tools/call", Some("slow"), json!({ "name": "slow", "arguments": {} })).await;
        made.push(answer["result"]["taskId"].as_str().expect("a task").to_owned());
    }
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        for name in [Some(made[1].as_str()), Some("tasks"), None] {
            let (status, answer) = ask(method, name, json!({ "taskId": made[0], "inputResponses": {} })).await;
            assert_eq!((status, common::code(&answer)), (400, -32020), "{method} {name:?}: {answer}");
        }
    }
    for id in &made {
        let (status, answer) = ask("tasks/get", Some(id), json!({ "taskId": id })).await;
        assert_eq!((status, &answer["result"]["status"]), (200, &json!("working")), "{answer}");
    }
}

#[tokio::test]
async fn a_panic_while_a_call_of_a_session_starts_leaves_its_id_free() {
    #[derive(Default)]
    struct PanicsOnce(AtomicUsize);
    impl linchpin::Observer for PanicsOnce {
        fn call_started(&self, call: &linchpin::CallInfo) {
            if call.method.as_ref() == "tools/call" && self.0.fetch_add(1, Ordering::Relaxed) == 0 {
                panic!("as the test wants it");
            }
        }
    }
    let server = Server::new("s", "1").observe(PanicsOnce::default()).tool("works", || "done");
    let service = linchpin::transport::HttpExt::into_service(server).unwrap();
    let send = |session: Option<http::HeaderValue>, body: Value| {
        let mut request = http::Request::post("/mcp")
            .header("host", "localhost")
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream");
        if let Some(session) = session {
            request = request.header("mcp-session-id", session);
        }
        let request = request.body(http_body_util::Full::new(bytes::Bytes::from(body.to_string()))).unwrap();
        let service = service.clone();
        tokio::spawn(async move {
            let Ok(response) = service.handle(request).await;
            response
        })
    };
    let hello =
        json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "0" } });
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello });
    let session = send(None, hello).await.unwrap().headers()["mcp-session-id"].clone();
    let call = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": { "name": "works" } });
    assert!(send(Some(session.clone()), call.clone()).await.unwrap_err().is_panic());
    let response = send(Some(session), call).await.unwrap();
    let body = http_body_util::BodyExt::collect(response.into_body()).await.unwrap().to_bytes();
    let answer: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(answer["result"]["content"][0]["text"], "done", "{answer}");
}
