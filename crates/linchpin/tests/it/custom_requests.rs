//! Requests and notifications of a server that the specification does not have, and the handlers of the host.

use linchpin::client::{BoxError, Connection, ErrorKind, ServerMessage};
use linchpin::prelude::*;
use linchpin::types::error::ErrorObject;
use linchpin::types::version::Revision;
use linchpin::{RequestError, RequestErrorKind};
use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use crate::common::{MODERN, Peer};

const PICK: &str = "example.com/pick";
const SAVED: &str = "notifications/example.com/saved";

#[derive(Deserialize)]
struct Pick {
    from: Vec<String>,
}

#[derive(Deserialize, JsonSchema)]
struct Ask {
    method: String,
    #[serde(default)]
    params: Value,
}

async fn pick(asked: ServerMessage<Pick>) -> Result<Value, BoxError> {
    match asked.params.from.first().map(String::as_str) {
        Some("code") => Err(ErrorObject::new(-32011, "none of these").into()),
        Some("error") => Err("not today".into()),
        Some(first) => Ok(json!({ "picked": first, "server": asked.server })),
        None => Err("nothing to pick from".into()),
    }
}

/// What the client answered, or the code of its error.
async fn ask(cx: &Cx, q: Ask) -> Result<Json<Value>> {
    cx.notify(SAVED, json!({ "path": "a" }))?;
    match cx.request::<Value>("k", &q.method, q.params).await {
        Ok(answer) => Ok(Json(answer)),
        Err(error) => match error.rpc() {
            Some(rpc) => Ok(Json(json!({ "code": rpc.code, "message": rpc.message }))),
            None => Err(error.into()),
        },
    }
}

fn server() -> Server {
    Server::new("s", "1.0").method("example.com/ask", ask)
}

fn host(revision: Revision) -> (Client, UnboundedReceiver<String>) {
    let (log, heard) = unbounded_channel();
    let client = Client::new("h", "1.0").revisions(&[revision]).on_request(PICK, pick).on_notification(
        SAVED,
        move |told: ServerMessage<Value>| {
            log.send(format!("{} saved {}", told.server, told.params["path"])).expect("the test reads");
        },
    );
    (client, heard)
}

async fn check(c: &Connection, mut heard: UnboundedReceiver<String>) {
    let revision = c.revision();
    let server = c.server().map_or_else(|| panic!("{revision:?}"), |server| server.name);
    let rows = [
        (PICK, json!({ "from": ["a", "b"] }), Ok(json!({ "picked": "a", "server": server }))),
        (PICK, json!({ "from": ["code"] }), Err((-32011, "none of these"))),
        (PICK, json!({ "from": ["error"] }), Err((-32603, "not today"))),
        (PICK, json!({ "from": 1 }), Err((-32602, "invalid type: integer `1`"))),
        ("example.com/other", json!({}), Err((-32601, "this client has no method example.com/other"))),
    ];
    for (method, params, expected) in rows {
        let answer = c.request("example.com/ask", json!({ "method": method, "params": params })).await;
        let told = heard.recv().await;
        assert_eq!(told.as_deref(), Some("s saved \"a\""));
        match (answer, expected) {
            (Ok(answer), Ok(expected)) => {
                let answer: Value = serde_json::from_str(answer.get()).unwrap();
                for member in ["picked", "server"] {
                    assert_eq!(answer[member], expected[member], "{revision:?}");
                }
            }
            (Ok(answer), Err((code, message))) => {
                let answer: Value = serde_json::from_str(answer.get()).unwrap();
                assert_eq!(answer["code"], code, "{revision:?}");
                assert!(answer["message"].as_str().unwrap().contains(message), "{revision:?} {answer}");
            }
            // Where the request is part of the result, a client that cannot answer has nobody to tell but the host.
            (Err(error), Err((_, message))) if revision >= Revision::V2026_07_28 => {
                assert!(error.to_string().contains(message), "{error}");
                let kind = if message.contains("no method") { ErrorKind::InvalidResponse } else { ErrorKind::Input };
                assert_eq!(error.kind(), kind, "{error}");
            }
            (answer, expected) => panic!("{revision:?} {method}: {answer:?} {expected:?}"),
        }
        while heard.try_recv().is_ok() {}
    }
}

#[tokio::test]
async fn requests_and_notifications_of_a_server_reach_the_host_in_every_revision_in_memory() {
    for revision in Revision::ALL {
        let (client, heard) = host(revision);
        check(&client.connect(in_process(server())).await.unwrap(), heard).await;
    }
}

#[cfg(all(feature = "http", feature = "remote"))]
#[tokio::test]
async fn requests_and_notifications_of_a_server_reach_the_host_in_every_revision_over_http() {
    for revision in Revision::ALL {
        let (ready, address) = tokio::sync::oneshot::channel();
        let http = http("127.0.0.1:0").on_ready(move |address| ready.send(address).expect("somebody waits"));
        let served = tokio::spawn(server().serve(http));
        let url = format!("http://{}/mcp", address.await.unwrap());
        let (client, heard) = host(revision);
        check(&client.connect(remote(&url).unwrap()).await.unwrap(), heard).await;
        served.abort();
    }
}

#[tokio::test]
async fn what_the_client_did_not_declare_and_what_its_revision_lacks_is_not_sent() {
    async fn refused(cx: &Cx, q: Ask) -> String {
        let error: RequestError = cx.request::<Value>("k", &q.method, q.params).await.expect_err("it is refused");
        match error.kind() {
            RequestErrorKind::Unsupported => "unsupported".to_owned(),
            RequestErrorKind::InvalidRequest => error.to_string(),
            other => format!("{other:?}"),
        }
    }
    for (revision, method, params, expected) in [
        ("2025-06-18", "elicitation/create", json!({}), "unsupported"),
        ("2025-06-18", "sampling/createMessage", json!({}), "unsupported"),
        ("2025-06-18", "roots/list", json!({}), "unsupported"),
        (MODERN, "ping", json!({}), "unsupported"),
        (MODERN, "tools/call", json!({}), "unsupported"),
        (MODERN, PICK, json!([1]), "the params of example.com/pick must be an object"),
        ("2025-06-18", PICK, json!("text"), "the params of example.com/pick must be an object"),
    ] {
        let mut peer = Peer::plain(Server::new("s", "1").tool("refused", refused), revision).await;
        let answer = peer.call("refused", json!({ "method": method, "params": params })).await;
        assert_eq!(answer["result"]["content"][0]["text"], expected, "{revision} {method}: {answer}");
    }
}

#[tokio::test]
async fn a_request_is_written_as_its_revision_has_it() {
    let server = || Server::new("s", "1").method("example.com/ask", ask);
    let params = json!({ "method": PICK, "params": { "from": ["a"] } });
    let mut peer = Peer::plain(server(), "2025-11-25").await;
    peer.request("example.com/ask", params.clone()).await;
    let told = peer.message().await;
    assert_eq!(told, json!({ "jsonrpc": "2.0", "method": SAVED, "params": { "path": "a" } }));
    let question = peer.message().await;
    assert_eq!((&question["method"], &question["params"]), (&json!(PICK), &json!({ "from": ["a"] })));
    let mut peer = Peer::plain(server(), MODERN).await;
    let answer = peer.ask("example.com/ask", params).await;
    assert_eq!(answer["result"]["resultType"], "input_required");
    let asked = json!({ "k": { "method": PICK, "params": { "from": ["a"] } } });
    assert_eq!(answer["result"]["inputRequests"], asked, "{answer}");
}

#[tokio::test]
async fn a_handler_for_a_method_with_a_callback_of_its_own_is_refused() {
    for (method, advice) in
        [("elicitation/create", "use `on_elicitation` or `on_url_elicitation`"), ("ping", "it is answered already")]
    {
        let client = Client::new("h", "1").on_request(method, async |_: ServerMessage<Value>| Ok(json!({})));
        let error = client.connect(in_process(server())).await.unwrap_err();
        assert_eq!(error.to_string(), format!("`on_request` cannot answer {method}: {advice}"));
    }
}

#[tokio::test]
async fn a_handler_for_a_notification_that_the_client_handles_is_refused() {
    let client =
        Client::new("h", "1").on_notification("notifications/tools/list_changed", |_: ServerMessage<Value>| {});
    let error = client.connect(in_process(server())).await.unwrap_err();
    assert!(error.to_string().contains("use `Client::on_change`"), "{error}");
}
