//! Methods that the specification does not have: in every revision and on every transport, with everything a tool has.

use linchpin::client::Connection;
use linchpin::prelude::*;
use linchpin::types::elicit::ElicitResult;
use linchpin::types::version::Revision;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Search {
    text: String,
}

#[derive(Deserialize, JsonSchema)]
struct Sure {
    sure: bool,
}

#[derive(Default)]
struct App {
    searches: AtomicUsize,
}

async fn search(app: &App, q: Search) -> Result<Json<Value>> {
    match q.text.as_str() {
        "" => Err(Error::protocol(-32010, "nothing to search for")),
        "list" => Ok(Json(json!([1]))),
        text => {
            let n = app.searches.fetch_add(1, Ordering::Relaxed) + 1;
            Ok(Json(
                json!({ "found": [text], "searches": n, "resultType": "mine", "_meta": { "example.com/cost": 1 } }),
            ))
        }
    }
}

async fn ask(cx: &Cx, q: Search) -> Result<Json<Value>> {
    let sure: Sure = cx.elicit("sure", &format!("Search {}?", q.text)).await?;
    Ok(Json(json!({ "sure": sure.sure })))
}

fn server() -> Server<App> {
    async fn marked(call: Call, next: Next) -> Reply {
        match call.arguments().contains("forbidden") {
            true => call.refuse_protocol(-32011, "not that"),
            false => next.run(call).await,
        }
    }
    Server::new("s", "1.0")
        .layer(marked)
        .method("example.com/nothing", || ())
        .state(App::default())
        .method("example.com/search", search)
        .method("example.com/ask", ask)
}

async fn result(c: &Connection, method: &str, params: Value) -> Result<Value, (i32, String)> {
    match c.request(method, params).await {
        Ok(raw) => Ok(serde_json::from_str(raw.get()).unwrap()),
        Err(error) => {
            let rpc = error.rpc().unwrap_or_else(|| panic!("{method}: {error}"));
            Err((rpc.code, rpc.message.to_string()))
        }
    }
}

async fn check(c: &Connection, revision: Revision) {
    let found = result(c, "example.com/search", json!({ "text": "oslo", "_meta": { "a.b/c": 1 } })).await.unwrap();
    assert_eq!(found["found"], json!(["oslo"]), "{revision:?}");
    assert_eq!(found["_meta"]["example.com/cost"], 1, "{revision:?}");
    let marked = (revision >= Revision::V2026_07_28).then(|| json!("complete"));
    assert_eq!(found.get("resultType"), marked.as_ref(), "{revision:?}");
    let nothing = result(c, "example.com/nothing", json!({})).await.unwrap();
    assert!(nothing.get("content").is_none(), "{revision:?}: {nothing}");

    let error = |code, message: &str| Err((code, message.to_owned()));
    for (method, params, expected) in [
        ("example.com/search", json!({ "text": "" }), error(-32010, "nothing to search for")),
        ("example.com/search", json!({ "text": "forbidden" }), error(-32011, "not that")),
        (
            "example.com/search",
            json!({ "text": "list" }),
            error(-32603, "the result of a method must be a JSON object"),
        ),
        ("example.com/other", json!({}), error(-32601, "method not found: example.com/other")),
    ] {
        assert_eq!(result(c, method, params).await, expected, "{revision:?}");
    }
    let (code, why) = result(c, "example.com/search", json!({ "words": 1 })).await.unwrap_err();
    assert!(code == -32602 && why.contains("invalid parameters") && why.contains("words"), "{revision:?}: {why}");
    if revision >= Revision::V2025_06_18 {
        let asked = result(c, "example.com/ask", json!({ "text": "it" })).await.unwrap();
        assert_eq!(asked["sure"], true, "{revision:?}");
    }
}

fn host(revision: Revision) -> Client {
    Client::new("h", "1.0").revisions(&[revision]).on_elicitation(async |form| match form.message.as_str() {
        "Search it?" => form.accept(json!({ "sure": true })),
        _ => ElicitResult::decline(),
    })
}

#[tokio::test]
async fn a_custom_method_is_called_in_every_revision_in_memory() {
    for revision in Revision::ALL {
        check(&host(revision).connect(in_process(server())).await.unwrap(), revision).await;
    }
}

#[tokio::test]
async fn a_state_for_one_round_is_not_taken_with_other_parameters() {
    let service = linchpin::transport::IntoService::into_shared(server()).unwrap();
    let capabilities = json!({ "elicitation": {} });
    let mut peer = crate::common::Peer::of(service, crate::common::MODERN, capabilities).await;
    let asked = peer.ask("example.com/ask", json!({ "text": "it" })).await;
    let state = asked["result"]["requestState"].as_str().unwrap_or_else(|| panic!("{asked}"));
    let answers = json!({ "sure": { "action": "accept", "content": { "sure": true } } });
    for (text, fits) in [("other", false), ("it", true)] {
        let params = json!({ "text": text, "requestState": state, "inputResponses": answers });
        let answer = peer.ask("example.com/ask", params).await;
        assert_eq!(answer["result"]["sure"] == true, fits, "{answer}");
        assert_eq!(answer["error"]["code"] == -32602, !fits, "{answer}");
    }
}

#[test]
fn mistakes_in_names_are_reported_at_the_start() {
    let long = "x".repeat(129);
    for (names, expected) in [
        (["tools/call", "a"], "method `tools/call`: the protocol defines it"),
        (["notifications/a", "b"], "method `notifications/a`: `notifications/` begins the names of notifications"),
        (["a", "a"], "method `a`: it is added twice"),
        (["", "a"], "method ``: a name is 1 to 128 printable ASCII characters, for example `example.com/search`"),
        ([&long, "a"], "a name is 1 to 128 printable ASCII characters"),
    ] {
        let server = names.iter().fold(Server::new("s", "1"), |server, name| server.method(name, || ()));
        let Err(error) = linchpin::transport::IntoService::into_shared(server) else { panic!("{names:?} passed") };
        assert!(error.to_string().contains(expected), "{error}");
    }
}
