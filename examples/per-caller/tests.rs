//! Three people at one server.

use super::{Tokens, server};
use linchpin::prelude::*;
use linchpin::types::version::Revision;
use serde_json::json;

async fn names(connection: &Connection) -> Vec<String> {
    connection.tools().await.expect("a list").into_iter().map(|tool| tool.name).collect()
}

#[tokio::test]
async fn each_caller_has_the_tools_and_rights_of_its_token() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("http://{}/mcp", listener.local_addr().expect("bound"));
    let serving = tokio::spawn(server().expect("a server").serve(http(listener).guard(Tokens::new())));
    let client = Client::new("test", "1.0").revisions(&[Revision::V2025_11_25]);
    let connect = async |token: &str| client.connect(remote(&url).expect("a URL").bearer(token)).await;
    assert!(connect("guessed").await.is_err());
    let (ada, bob, eve) = (connect("ada-token").await, connect("bob-token").await, connect("eve-token").await);
    let (ada, bob, eve) = (ada.expect("ada"), bob.expect("bob"), eve.expect("eve"));

    assert_eq!(names(&ada).await, ["list", "add", "unlock"]);
    for other in [&bob, &eve] {
        assert_eq!(names(other).await, ["list", "add"]);
        assert!(other.call("unlock", json!({})).await.is_err());
    }
    assert_eq!(bob.call("add", json!({ "text": "milk" })).await.expect("a result").text(), "added");
    let refused = eve.call("add", json!({ "text": "spam" })).await.expect_err("the scope is missing").to_string();
    assert!(refused.contains("403") || refused.contains("notes:write"), "{refused}");
    assert_eq!(eve.call("list", json!({})).await.expect("a result").text(), "bob: milk");

    ada.call("unlock", json!({})).await.expect("a result");
    assert_eq!(ada.call("clear", json!({})).await.expect("a result").text(), "removed");
    assert!(bob.call("clear", json!({})).await.is_err(), "it is unlocked for one session only");
    serving.abort();
}
