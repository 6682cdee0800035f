//! The low-level server: its methods are functions of requests, on every transport and in every revision.

use crate::common::{ALL, LEGACY, MODERN, Peer};
use linchpin::prelude::*;
use linchpin::transport::{IntoService, ServerChange};
use linchpin::types::error::ErrorObject;
use linchpin::types::version::Revision;
use linchpin::{LowLevelServer, Request};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

#[derive(Deserialize)]
struct Call {
    name: String,
}

#[derive(Deserialize, JsonSchema)]
struct Sure {
    sure: bool,
}

async fn call(request: Request, cx: Cx) -> Result<Value> {
    let Call { name } = request.decode()?;
    match name.as_str() {
        "progress" => cx.progress(1.0, None),
        "ask" => {
            let Sure { sure } = cx.elicit("sure", "Sure?").await?;
            return Ok(json!({ "content": [{ "type": "text", "text": sure.to_string() }] }));
        }
        "list" => return Ok(json!([])),
        "error" => Err(ErrorObject::new(-32010, "no").with_data(RawValue::from_string("1.10".to_owned())?))?,
        "whole" => return Ok(json!({ "resultType": "task", "taskId": "t" })),
        "state" => return Ok(json!({ "resultType": "input_required", "requestState": "mine" })),
        "panic" => panic!("a bug"),
        _ => {}
    }
    Ok(json!({ "content": [{ "type": "text", "text": name }], "_meta": { "x.y/z": 1 } }))
}

fn server() -> LowLevelServer {
    let tools = json!({ "tools": [{ "name": "a", "inputSchema": { "type": "object" } }] });
    LowLevelServer::new("low", "1.0")
        .capabilities(json!({ "tools": {} }))
        .method("tools/list", move |_, _| std::future::ready(Ok(tools.clone())))
        .method("tools/call", call)
        .method("example.com/echo", async |request: Request, _| {
            Ok(RawValue::from_string(format!("{{\"echo\":{}}}", request.params_text()))?)
        })
}

async fn check(client: Client, to: impl linchpin::transport::Connector) {
    let c = client.on_elicitation(async |form| form.accept(json!({ "sure": true }))).connect(to).await.unwrap();
    let revision = c.revision();
    assert_eq!(c.server().map(|server| server.name).as_deref(), Some("low"), "{revision:?}");
    assert!(c.capabilities().tools.is_some() && c.capabilities().logging.is_none(), "{revision:?}");
    assert_eq!(c.tools().await.unwrap()[0].name, "a", "{revision:?}");
    let result = c.call("progress", ()).on_progress(|_| ()).await.unwrap();
    assert_eq!(result.text(), "progress", "{revision:?}");
    assert!(result.meta().unwrap().contains("\"x.y/z\":1"), "{revision:?}");
    if revision >= Revision::V2025_06_18 {
        assert_eq!(c.call("ask", ()).await.unwrap().text(), "true", "{revision:?}");
    }
    let error = c.call("error", ()).await.unwrap_err();
    let rpc = error.rpc().unwrap();
    assert_eq!((rpc.code, &*rpc.message, rpc.data.as_deref().map(RawValue::get)), (-32010, "no", Some("1.10")));
    for (method, params, code) in [
        ("tools/call", json!({ "name": 1 }), -32602),
        ("tools/call", json!({ "name": "list" }), -32603),
        ("prompts/list", json!({}), -32601),
        ("resources/read", json!({ "uri": "a" }), -32601),
        ("example.com/other", json!({}), -32601),
    ] {
        let error = c.request(method, params).await.unwrap_err();
        assert_eq!(error.rpc().map(|rpc| rpc.code), Some(code), "{revision:?} {method}: {error}");
    }
    // The next request is served all the same.
    let panicked = c.call("panic", ()).await;
    assert!(panicked.is_err() || panicked.unwrap().is_error(), "{revision:?}");
    let echo = c.request("example.com/echo", json!({ "n": 1 })).await.unwrap();
    let echo: Value = serde_json::from_str(echo.get()).unwrap();
    assert_eq!(echo["echo"]["n"], 1, "{revision:?}");
    c.ping().await.unwrap();
}

#[tokio::test]
async fn methods_are_served_in_every_revision_in_memory() {
    for revision in Revision::ALL {
        check(Client::new("h", "1").revisions(&[revision]), in_process(server())).await;
    }
}

#[cfg(all(feature = "http", feature = "remote"))]
#[tokio::test]
async fn methods_are_served_in_every_revision_over_http() {
    let (ready, address) = tokio::sync::oneshot::channel();
    let http = http("127.0.0.1:0").on_ready(move |address| ready.send(address).expect("somebody waits"));
    let served = tokio::spawn(server().serve(http));
    let url = format!("http://{}/mcp", address.await.unwrap());
    for revision in Revision::ALL {
        check(Client::new("h", "1").revisions(&[revision]), remote(&url).unwrap()).await;
    }
    served.abort();
}

#[tokio::test]
async fn a_result_with_a_type_of_its_own_is_sent_as_it_stands_and_others_get_what_their_revision_has() {
    for (revision, name, expected) in [
        (MODERN, "whole", json!({ "resultType": "task", "taskId": "t" })),
        (MODERN, "state", json!({ "resultType": "input_required", "requestState": "mine" })),
        ("2025-11-25", "hello", json!({ "content": [{ "type": "text", "text": "hello" }], "_meta": { "x.y/z": 1 } })),
        (
            MODERN,
            "hello",
            json!({
                "content": [{ "type": "text", "text": "hello" }],
                "resultType": "complete",
                "_meta": { "x.y/z": 1, "io.modelcontextprotocol/serverInfo": { "name": "low", "version": "1.0" } },
            }),
        ),
    ] {
        let mut peer = Peer::of(server().into_shared().unwrap(), revision, json!({})).await;
        let answer = peer.ask("tools/call", json!({ "name": name, "requestState": "mine" })).await;
        assert_eq!(answer["result"], expected, "{revision} {name}");
    }
}

#[tokio::test]
async fn a_fallback_gets_what_no_handler_has_and_built_in_methods_can_be_replaced() {
    for revision in ALL {
        let server = LowLevelServer::from(Server::new("low", "1.0").instructions("Be quick."))
            .fallback(async |request: Request, _| Ok(json!({ "method": request.method.as_str() })))
            .method("server/discover", async |_, _| Ok(json!({ "replaced": true })))
            .method("ping", async |_, _| Ok(json!({ "replaced": true })));
        let mut peer = Peer::of(server.into_shared().unwrap(), revision, json!({})).await;
        for method in ["tools/list", "example.com/a"] {
            assert_eq!(peer.ask(method, json!({})).await["result"]["method"], method, "{revision}");
        }
        let replaced = if LEGACY.contains(&revision) { "ping" } else { "server/discover" };
        assert_eq!(peer.ask(replaced, json!({})).await["result"]["replaced"], true, "{revision}");
    }
}

#[tokio::test]
async fn subscriptions_and_notifications_reach_it_as_any_server() {
    let told = Arc::new(AtomicUsize::new(0));
    let count = told.clone();
    let server = LowLevelServer::new("low", "1.0")
        .capabilities(json!({ "tools": { "listChanged": true }, "resources": { "subscribe": true } }))
        .on_notification("example.com/told", move || _ = count.fetch_add(1, Ordering::SeqCst));
    let changes = server.changes();
    let mut peer = Peer::of(server.into_shared().unwrap(), "2025-06-18", json!({})).await;
    assert!(peer.ask("resources/subscribe", json!({ "uri": "a://b" })).await.get("result").is_some());
    peer.send(json!({ "jsonrpc": "2.0", "method": "example.com/told" })).await;
    changes.publish(&ServerChange::Tools);
    assert_eq!(peer.message().await["method"], "notifications/tools/list_changed");
    changes.publish(&ServerChange::Updated("a://b".into()));
    assert_eq!(peer.said("notifications/resources/updated").await["params"]["uri"], "a://b");
    assert!(peer.ask("ping", json!({})).await.get("result").is_some());
    assert_eq!(told.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_result_with_line_breaks_stays_one_message_on_a_pipe() {
    for revision in ALL {
        let server = LowLevelServer::new("low", "1.0").method("example.com/raw", |_, _| {
            let raw = "{\n\"a\":\r\n{\"jsonrpc\":\"2.0\",\"id\":1,\n\"result\":{}}}";
            std::future::ready(RawValue::from_string(raw.to_owned()).map_err(Into::into))
        });
        let mut peer = Peer::of(server.into_shared().unwrap(), revision, json!({})).await;
        let answer = peer.ask("example.com/raw", json!({})).await;
        assert_eq!(answer["result"]["a"]["result"], json!({}), "{revision}: {answer}");
        peer.quiet().await;
    }
}

#[tokio::test]
async fn a_method_that_panics_before_its_future_is_an_error_and_the_server_goes_on() {
    let server = server().method("example.com/panic", |request: Request, _| {
        assert!(request.params_text().is_empty(), "a bug");
        std::future::ready(Ok(()))
    });
    let mut peer = Peer::of(server.into_shared().unwrap(), MODERN, json!({})).await;
    assert_eq!(peer.ask("example.com/panic", json!({ "a": 1 })).await["error"]["code"], -32603);
    assert_eq!(peer.ask("example.com/echo", json!({ "a": 1 })).await["result"]["echo"]["a"], 1);
}
