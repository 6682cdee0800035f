//! What a client is given through a bridge is what it is given directly, whatever the two revisions are.

use crate::{UPSTREAMS, able, bridge, curious, stream};
use linchpin::transport::{Bind, IntoService, memory};
use linchpin_core::Features;
use linchpin_testing::TestClient;
use linchpin_types::version::Revision;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::io::DuplexStream;

/// A client that speaks with the server itself.
async fn direct(revision: Revision) -> TestClient<DuplexStream> {
    let (place, stream) = memory();
    tokio::spawn(place.serve(linchpin_conformance::server().into_shared().unwrap()));
    let mut client = able(stream, revision);
    client.open().await;
    client
}

async fn through(revision: Revision, stateless: bool) -> TestClient<DuplexStream> {
    let bridge = bridge(linchpin_conformance::server(), stateless, |_| {});
    let mut client = able(stream(bridge), revision);
    client.open().await;
    client
}

/// Without what only says who answered, and for how long; and without what tools say of tasks, which are not translated.
fn plain(mut result: Value) -> Value {
    for tool in result["tools"].as_array_mut().into_iter().flatten() {
        tool.as_object_mut().map(|tool| tool.remove("execution"));
    }
    if let Some(members) = result.as_object_mut() {
        for own in ["ttlMs", "cacheScope", "_meta"] {
            members.remove(own);
        }
    }
    result
}

#[tokio::test]
async fn every_client_gets_the_same_answers_through_a_bridge_to_every_upstream() {
    let requests = [
        ("tools/list", json!({})),
        ("resources/list", json!({})),
        ("resources/templates/list", json!({})),
        ("prompts/list", json!({})),
        ("resources/read", json!({ "uri": "test://static-text" })),
        ("resources/read", json!({ "uri": "test://static-binary" })),
        ("prompts/get", json!({ "name": "test_simple_prompt" })),
        ("prompts/get", json!({ "name": "test_prompt_with_arguments", "arguments": { "arg1": "a", "arg2": "b" } })),
        ("tools/call", json!({ "name": "test_simple_text" })),
        ("tools/call", json!({ "name": "test_image_content" })),
        ("tools/call", json!({ "name": "test_multiple_content_types" })),
        ("tools/call", json!({ "name": "test_error_handling" })),
        (
            "completion/complete",
            json!({ "ref": { "type": "ref/prompt", "name": "test_prompt_with_arguments" },
                    "argument": { "name": "arg1", "value": "te" } }),
        ),
    ];
    for features in Features::all() {
        let mut own = direct(features.revision).await;
        for stateless in UPSTREAMS {
            let mut client = through(features.revision, stateless).await;
            for (method, params) in &requests {
                let want = own.request(method, params.clone()).await.map(plain).map_err(|e| (e.code, e.message));
                let got = client.request(method, params.clone()).await.map(plain).map_err(|e| (e.code, e.message));
                assert_eq!(got, want, "{} to stateless {stateless}: {method} {params}", features.revision);
            }
        }
    }
}

#[tokio::test]
async fn questions_reach_the_client_and_answers_the_tool_in_every_pass() {
    for features in Features::all() {
        for stateless in UPSTREAMS {
            let bridge = bridge(curious(), stateless, |_| {});
            let mut client = able(stream(bridge), features.revision);
            client.open().await;
            let about = format!("{} to stateless {stateless}", features.revision);
            for (tool, method, want) in [
                ("sample", "sampling/createMessage", "sampled"),
                ("roots", "roots/list", "1 at file:///work"),
                ("form", "elicitation/create", "ada"),
            ] {
                if tool == "form" && !features.elicitation {
                    continue;
                }
                let result = client.call(tool, json!({})).await.unwrap();
                assert!(result["content"][0]["text"].as_str().unwrap().contains(want), "{about}: {tool}: {result}");
                assert!(client.questions().iter().any(|asked| asked == method), "{about}: {tool} asks nothing");
            }
        }
    }
}

#[tokio::test]
async fn progress_comes_with_the_clients_token() {
    for features in Features::all() {
        for stateless in UPSTREAMS {
            let mut client = through(features.revision, stateless).await;
            client.set_meta("progressToken", json!("theirs"));
            let called = client.call("test_tool_with_progress", json!({})).await;
            assert!(called.is_ok(), "{called:?}");
            let told = client.expect("notifications/progress").await;
            assert_eq!(told["params"]["progressToken"], "theirs", "{} {stateless}", features.revision);
        }
    }
}

#[tokio::test]
async fn log_messages_of_a_call_reach_its_client() {
    for features in Features::all() {
        for stateless in UPSTREAMS {
            let mut client = through(features.revision, stateless).await;
            if features.stateless {
                client.set_meta("io.modelcontextprotocol/logLevel", json!("debug"));
            } else {
                client.request("logging/setLevel", json!({ "level": "debug" })).await.unwrap();
            }
            client.call("test_tool_with_logging", json!({})).await.unwrap();
            client.expect("notifications/message").await;
            if features.stateless {
                // Who does not ask for them gets none.
                client.drain(Duration::from_millis(50)).await;
                client.set_meta("io.modelcontextprotocol/logLevel", json!("emergency"));
                client.call("test_tool_with_logging", json!({})).await.unwrap();
                assert!(client.drain(Duration::from_millis(50)).await.is_empty(), "to stateless {stateless}");
            }
        }
    }
}

#[tokio::test]
async fn changes_reach_sessions_and_listen_streams() {
    for features in Features::all() {
        for stateless in UPSTREAMS {
            let mut client = through(features.revision, stateless).await;
            if features.listens {
                let wanted = json!({ "notifications": { "promptsListChanged": true } });
                let id = client.start("subscriptions/listen", wanted).await;
                let told = client.expect("notifications/subscriptions/acknowledged").await;
                let meta = &told["params"]["_meta"];
                assert_eq!(meta["io.modelcontextprotocol/subscriptionId"], id, "{} {stateless}", features.revision);
            } else {
                // The stream that is held for the session is open once a subscription is acknowledged.
                let watched = json!({ "uri": "test://watched-resource" });
                client.request("resources/subscribe", watched.clone()).await.unwrap();
                client.request("resources/unsubscribe", watched).await.unwrap();
                tokio::time::sleep(Duration::from_millis(if stateless { 300 } else { 0 })).await;
            }
            client.call("test_trigger_prompt_change", json!({})).await.unwrap();
            client.expect("notifications/prompts/list_changed").await;
        }
    }
}

#[tokio::test]
async fn a_resource_that_does_not_exist_has_the_code_of_the_clients_revision() {
    for features in Features::all() {
        for stateless in UPSTREAMS {
            let mut client = through(features.revision, stateless).await;
            let error = client.request("resources/read", json!({ "uri": "test://none" })).await.unwrap_err();
            assert_eq!(error.code, features.resource_not_found, "{} to {stateless}", features.revision);
        }
    }
}

/// Calls a tool without going through rounds.
async fn round(client: &mut TestClient<DuplexStream>, params: &Value) -> Result<Value, i32> {
    let id = client.start("tools/call", params.clone()).await;
    client.finish(id).await.map_err(|error| error.code)
}

#[tokio::test]
async fn a_parked_call_runs_once_and_its_retries_end_alike() {
    let modern = Features::all().next().expect("a revision").revision;
    let mut client = able(stream(bridge(curious(), false, |_| {})), modern);
    client.open().await;
    let params = json!({ "name": "form", "arguments": {} });
    let asked = round(&mut client, &params).await.unwrap();
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    assert_eq!(asked["inputRequests"]["who"]["method"], "elicitation/create");
    assert_eq!(asked["inputRequests"]["who"]["params"]["mode"], "form");
    assert!(asked["inputRequests"]["who"]["params"].get("_meta").is_none(), "{asked}");
    let state = &asked["requestState"];
    let retry = |name: &str, state: &Value, responses: Value| json!({ "name": name, "arguments": {}, "inputResponses": responses, "requestState": state });
    let answer = json!({ "who": { "action": "accept", "content": { "username": "ada" } } });
    // Another tool's state, one that was changed, and one that nobody gave, run nothing.
    let state_text = state.as_str().unwrap_or_default();
    assert_eq!(round(&mut client, &retry("roots", state, answer.clone())).await, Err(-32602));
    let mut others = retry("form", state, answer.clone());
    others["arguments"] = json!({ "n": 1 });
    assert_eq!(round(&mut client, &others).await, Err(-32602));
    // Nor does that of a bridge that is gone: whether the call has run is not known, and it is not run again.
    let mut restarted = able(stream(bridge(curious(), false, |_| {})), modern);
    restarted.open().await;
    assert_eq!(round(&mut restarted, &retry("form", state, answer.clone())).await, Err(-32602));
    for changed in [
        state_text.replace("parked-", "parked-0"),
        format!("{state_text}0"),
        format!("{state_text}x"),
        "parked-".into(),
    ] {
        assert_eq!(round(&mut client, &retry("form", &json!(changed), answer.clone())).await, Err(-32602), "{changed}");
    }
    // Without the answer, and with an unknown one, the rest is asked again.
    let again = round(&mut client, &retry("form", state, json!({ "q9": {}, "who": 7 }))).await.unwrap();
    assert_eq!(again["inputRequests"], asked["inputRequests"]);
    assert_ne!(again["requestState"], asked["requestState"]);
    let first = round(&mut client, &retry("form", state, answer.clone())).await.unwrap();
    assert!(first["content"][0]["text"].as_str().unwrap().contains("ada"), "{first}");
    let second = round(&mut client, &retry("form", state, answer.clone())).await.unwrap();
    assert_eq!(second, first);
    // Who knows the question beforehand may answer it at once.
    let mut at_once = params.clone();
    at_once["inputResponses"] = answer;
    assert_eq!(round(&mut client, &at_once).await.unwrap()["content"], first["content"]);
}

#[tokio::test]
async fn clients_that_declare_nothing_are_not_asked() {
    for features in Features::all() {
        for stateless in UPSTREAMS {
            let mut client = TestClient::new(stream(bridge(curious(), stateless, |_| {})), features.revision);
            client.open().await;
            let refused = client.call("sample", json!({})).await;
            let about = format!("{} to {stateless}: {refused:?}", features.revision);
            match &refused {
                // Only these revisions have an error for it.
                Err(error) => {
                    assert_eq!((features.stateless, error.code), (true, -32021), "{about}");
                    let data: Value = serde_json::from_str(error.data.as_ref().unwrap().get()).unwrap();
                    assert_eq!(data, json!({ "requiredCapabilities": { "sampling": {} } }), "{about}");
                    assert!(error.message.ends_with("this request needs: sampling"), "{about}");
                }
                Ok(result) => assert_eq!((features.stateless, &result["isError"]), (false, &json!(true)), "{about}"),
            }
            assert!(client.questions().is_empty(), "{about}");
        }
    }
}
