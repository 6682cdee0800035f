//! Extensions of one's own: announced in both eras, negotiated, with methods for those who declare them.

use crate::common::{ALL, LEGACY, MODERN, Peer, code, service};
use linchpin::Extension;
use linchpin::prelude::*;
use linchpin::transport::IntoService;
use linchpin::types::version::Revision;
use serde_json::{Value, json};

const SEARCH: &str = "com.example/search";

#[derive(Deserialize, JsonSchema)]
struct Query {
    query: String,
}

#[derive(Serialize, Deserialize)]
struct Found {
    notes: Vec<String>,
}

async fn run(prefix: &String, cx: &Cx, q: Query) -> Result<Json<Found>> {
    cx.notify("notifications/com.example/search/begun", json!({ "query": q.query }))?;
    Ok(Json(Found { notes: vec![format!("{prefix} {}", q.query)] }))
}

fn search() -> Extension<String> {
    Extension::new(SEARCH, json!({ "fast": true }))
        .state("buy".to_owned())
        .method("run", run)
        .named_by("query")
        .method("clear", || ())
}

fn server() -> Server {
    Server::new("notes", "1.0").with(search())
}

fn declared() -> Value {
    json!({ "extensions": { SEARCH: {} } })
}

#[tokio::test]
async fn an_extension_is_announced_to_stateless_clients_and_to_others_that_declare_it() {
    for revision in LEGACY {
        for (capabilities, announced) in [(declared(), true), (json!({}), false), (json!({ "extensions": {} }), false)]
        {
            let mut peer = Peer::silent(service(server()));
            let hello = json!({ "protocolVersion": revision, "capabilities": capabilities, "clientInfo": { "name": "t", "version": "0" } });
            let found = peer.ask("initialize", hello).await["result"]["capabilities"]["extensions"].clone();
            let expected = if announced { json!({ SEARCH: { "fast": true } }) } else { Value::Null };
            assert_eq!(found, expected, "{revision} {capabilities}");
        }
    }
    let mut peer = Peer::plain(server(), MODERN).await;
    let found = peer.ask("server/discover", json!({})).await["result"]["capabilities"]["extensions"].clone();
    assert_eq!(found, json!({ SEARCH: { "fast": true } }));
}

#[tokio::test]
async fn a_method_of_an_extension_exists_for_those_who_declare_it_only() {
    for revision in ALL {
        let mut peer = Peer::of(service(server()), revision, declared()).await;
        let found = peer.ask("com.example/search/run", json!({ "query": "milk" })).await;
        assert_eq!(found["result"]["notes"], json!(["buy milk"]), "{revision}: {found}");
        let told = peer.said("notifications/com.example/search/begun").await;
        assert_eq!(told["params"]["query"], "milk", "{revision}");
        let settings = json!({ "extensions": { SEARCH: 7, "com.example/other": {} } });
        for undeclared in [json!({}), json!({ "extensions": null }), settings] {
            let mut peer = Peer::of(service(server()), revision, undeclared.clone()).await;
            let refused = peer.ask("com.example/search/run", json!({ "query": "milk" })).await;
            assert_eq!(code(&refused), -32601, "{revision} {undeclared}: {refused}");
        }
    }
    // What a stateless client declared in an earlier request does not count.
    let mut peer = Peer::of(service(server()), MODERN, declared()).await;
    assert!(peer.ask("com.example/search/clear", json!({})).await["result"].is_object());
    peer.capabilities = json!({});
    assert_eq!(code(&peer.ask("com.example/search/clear", json!({})).await), -32601);
}

#[tokio::test]
async fn a_client_of_every_revision_calls_it_with_structs_of_its_own() {
    for revision in Revision::ALL {
        let (told, mut tells) = tokio::sync::mpsc::unbounded_channel();
        let client = Client::new("h", "1.0").revisions(&[revision]).extension(SEARCH, &json!({})).on_notification(
            "notifications/com.example/search/begun",
            move |begun| {
                let Query { query } = begun.params;
                let _ = told.send(query);
            },
        );
        let connection = client.connect(in_process(server())).await.unwrap();
        let query = json!({ "query": "milk" });
        let found = connection.request("com.example/search/run", query).named("milk").json::<Found>().await.unwrap();
        assert_eq!(found.notes, ["buy milk"], "{revision:?}");
        assert_eq!(tells.recv().await.as_deref(), Some("milk"), "{revision:?}");
        let settings = connection.capabilities().extensions[SEARCH].get().to_owned();
        assert_eq!(settings, r#"{"fast":true}"#, "{revision:?}");
    }
}

#[test]
fn mistakes_in_an_extension_are_reported_at_the_start() {
    let of = |identifier: &str| Server::new("s", "1").with(Extension::new(identifier, json!({})).method("run", || ()));
    for (server, expected) in [
        (of("io.modelcontextprotocol/x"), "the prefix is reserved"),
        (of("com.mcp.tools/x"), "the prefix is reserved"),
        (of("search"), "needs a prefix"),
        (of("com.example/"), "needs a prefix"),
        (of(SEARCH).with(Extension::new(SEARCH, json!({}))), "extension `com.example/search`: it is added twice"),
        (of(SEARCH).with(Extension::new(SEARCH, json!({})).method("run", || ())), "it is added twice"),
        (of("com.example/other").with(Extension::new(SEARCH, json!(7))), "an object of settings"),
        (
            Server::new("s", "1").with(Extension::new(SEARCH, json!({})).method("run", || ()).method("run", || ())),
            "method `com.example/search/run`: it is added twice",
        ),
        (Server::new("s", "1").with(Extension::new(SEARCH, json!({})).named_by("q")), "`named_by` follows a method"),
        (Server::new("s", "1").problem("the disk is full"), "the disk is full"),
    ] {
        let Err(error) = server.into_shared() else { panic!("it starts: {expected}") };
        assert!(error.to_string().contains(expected), "{expected}: {error}");
    }
}
