//! Clients inside this program, each with a session of its own.

use super::server;
use linchpin::prelude::*;
use linchpin::types::version::Revision;
use serde_json::{Value, json};

async fn call(session: &Connection, tool: &str, arguments: Value) -> String {
    let result = session.call(tool, arguments).await.expect("a result");
    assert!(!result.is_error(), "{tool}: {}", result.text());
    result.text()
}

/// Counts differently in two sessions and reads both counters.
async fn count(one: &Connection, two: &Connection) {
    for expected in ["1", "2", "3"] {
        assert_eq!(call(one, "increment", json!({})).await, expected);
    }
    assert_eq!(call(two, "decrement", json!({})).await, "-1");
    assert_eq!(call(one, "get_value", json!({})).await, "3");
    assert_eq!(call(two, "get_value", json!({})).await, "-1");
}

#[tokio::test]
async fn two_connections_have_separate_counts() {
    for revision in Revision::ALL {
        let (client, place) = (Client::new("test", "1.0").revisions(&[revision]), in_process(server()));
        let (one, two) = (client.connect(place.clone()).await.expect("one"), client.connect(place).await.expect("two"));
        count(&one, &two).await;
        let memo = one.read("memo://insights").await.expect("a memo");
        assert_eq!(memo.text(), "The counter of this session is at 3.", "{revision:?}");
    }
}

#[tokio::test]
async fn two_http_sessions_have_separate_counts_and_ids() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("http://{}/mcp", listener.local_addr().expect("bound"));
    let serving = tokio::spawn(server().serve(http(listener)));
    let client = Client::new("test", "1.0").revisions(&[Revision::V2025_11_25]);
    let place = || remote(&url).expect("a URL");
    let (one, two) = (client.connect(place()).await.expect("one"), client.connect(place()).await.expect("two"));
    count(&one, &two).await;
    let (first, second) =
        (call(&one, "get_session_id", json!({})).await, call(&two, "get_session_id", json!({})).await);
    assert_ne!(first, second);
    serving.abort();
}

#[tokio::test]
async fn the_other_tools_resources_and_prompts_answer() {
    let session = Client::new("test", "1.0").connect(in_process(server())).await.expect("connected");
    assert_eq!(call(&session, "say_hello", json!({})).await, "hello");
    assert_eq!(call(&session, "sum", json!({ "a": 2, "b": 3 })).await, "5");
    let free = json!({ "any": ["thing", 1], "deep": { "er": null } });
    let echoed = call(&session, "echo", free.clone()).await;
    assert_eq!(serde_json::from_str::<Value>(&echoed).expect("JSON"), free);
    let refused = session.call("get_session_id", ()).await.expect("a result");
    assert!(refused.is_error() && refused.text() == "this call has no HTTP session");

    let folder = session.read("str:////srv/counter/").await.expect("a resource");
    assert_eq!(folder.text(), "/srv/counter/");

    // The wire has texts only; `goal` is a number in the handler.
    call(&session, "increment", json!({})).await;
    let prompt = session.prompt("counter_analysis", json!({ "goal": "5" })).await.expect("messages");
    let texts: Vec<&str> = prompt.messages.iter().filter_map(|message| message.content.as_text()).collect();
    assert!(texts[1].starts_with("It is at 1 and should reach 5, which is 4 away."), "{texts:?}");
    assert!(texts[1].ends_with("Be careful."), "{texts:?}");
    assert!(session.prompt("counter_analysis", json!({ "goal": "many" })).await.is_err());
}
