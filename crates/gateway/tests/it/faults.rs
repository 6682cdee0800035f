//! What upstreams and clients do wrong, and what becomes of it.

use crate::bytes::{Client, Upstream, heard, said, to_upstream};
use crate::revisions;
use linchpin_gateway::{Bridge, BridgeOptions, Isolation};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// What stateless requests say of their client.
pub(crate) const ABLE: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{"form":{},"url":{}},"sampling":{}}}"#;

pub(crate) async fn json_of(client: &mut Client) -> Value {
    let line = heard(client).await;
    serde_json::from_str(&line).unwrap()
}

/// What the upstream is asked next, but for streams of changes.
pub(crate) async fn asked(upstream: &mut Upstream) -> Value {
    loop {
        let message: Value = serde_json::from_str(&upstream.next().await).unwrap();
        if message["method"] != "subscriptions/listen" {
            return message;
        }
    }
}

pub(crate) async fn answer(upstream: &mut Upstream, to: &Value, with: Value) {
    let mut message = json!({ "jsonrpc": "2.0", "id": to["id"] });
    message.as_object_mut().unwrap().extend(with.as_object().unwrap().clone());
    upstream.say(&message.to_string()).await;
}

/// Opens the upstream's side of a connection: a session, or what `server/discover` says.
pub(crate) async fn opened(upstream: &mut Upstream, stateless: bool) {
    let first = asked(upstream).await;
    if stateless {
        assert_eq!(first["method"], "server/discover");
        let result = json!({ "supportedVersions": ["2026-07-28"], "capabilities": { "tools": {} }, "resultType": "complete", "ttlMs": 0, "cacheScope": "private" });
        return answer(upstream, &first, json!({ "result": result })).await;
    }
    assert_eq!(first["method"], "initialize");
    let version = &first["params"]["protocolVersion"];
    let result = json!({ "protocolVersion": version, "capabilities": { "tools": {} }, "serverInfo": { "name": "s", "version": "1" } });
    answer(upstream, &first, json!({ "result": result })).await;
}

/// Opens a session that can be asked, at an upstream of this kind.
pub(crate) async fn session(change: impl FnOnce(&mut BridgeOptions), stateless: bool) -> (Client, Upstream, Bridge) {
    let (client, mut upstream, bridge) = to_upstream(|options| {
        options.upstream = revisions(stateless);
        change(options);
    });
    let mut client = client();
    said(&mut client, r#"{"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{"form":{},"url":{}}},"clientInfo":{"name":"c","version":"1"}}}"#).await;
    opened(&mut upstream, stateless).await;
    assert_eq!(json_of(&mut client).await["id"], "i");
    said(&mut client, r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await;
    if !stateless {
        assert_eq!(asked(&mut upstream).await["method"], "notifications/initialized");
    }
    (client, upstream, bridge)
}

#[tokio::test(start_paused = true)]
async fn pages_to_visit_first_are_asked_for_and_the_retry_repeats_the_call() {
    let (client, mut upstream, _) = to_upstream(|options| options.upstream = revisions(false));
    let mut client = client();
    said(&mut client, &format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"t",{ABLE}}}}}"#))
        .await;
    opened(&mut upstream, false).await;
    assert_eq!(asked(&mut upstream).await["method"], "notifications/initialized");
    let page = json!({ "error": { "code": -32042, "message": "visit", "data": { "elicitations": [
        { "mode": "url", "elicitationId": "e", "url": "https://example.com/login", "message": "log in" } ] } } });
    let call = asked(&mut upstream).await;
    answer(&mut upstream, &call, page.clone()).await;
    let wanted = json_of(&mut client).await["result"].take();
    assert_eq!(
        wanted["inputRequests"],
        json!({ "u1": { "method": "elicitation/create", "params": {
        "mode": "url", "url": "https://example.com/login", "message": "log in" } } }),
        "{wanted}"
    );
    let retry = |id: u32, action: &str| {
        let state = &wanted["requestState"];
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"t","requestState":{state},"inputResponses":{{"u1":{{"action":"{action}"}}}},{ABLE}}}}}"#
        )
    };
    said(&mut client, &retry(2, "accept")).await;
    // Not finished there at once: the call, which did not run, is made again.
    for _ in 0..3 {
        let call = asked(&mut upstream).await;
        assert_eq!(call["params"], json!({ "name": "t", "_meta": {} }), "{call}");
        answer(&mut upstream, &call, page.clone()).await;
    }
    let call = asked(&mut upstream).await;
    answer(&mut upstream, &call, json!({ "result": { "content": [] } })).await;
    let done = json_of(&mut client).await;
    assert_eq!((&done["id"], &done["result"]["resultType"]), (&json!(2), &json!("complete")));
    said(&mut client, &retry(3, "decline")).await;
    assert_eq!(json_of(&mut client).await["result"]["isError"], true);
}

#[tokio::test(start_paused = true)]
async fn a_page_is_shown_once_and_complete_when_the_upstream_no_longer_asks_for_it() {
    let (mut client, mut upstream, _) = session(|_| {}, true).await;
    said(&mut client, r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}"#).await;
    let wanted = json!({ "result": { "resultType": "input_required", "requestState": "s", "inputRequests": {
        "k": { "method": "elicitation/create", "params": { "mode": "url", "url": "https://example.com/", "message": "m" } } } } });
    let call = asked(&mut upstream).await;
    answer(&mut upstream, &call, wanted.clone()).await;
    let question = json_of(&mut client).await;
    assert_eq!(question["method"], "elicitation/create");
    let id = question["params"]["elicitationId"].as_str().unwrap().to_owned();
    said(&mut client, &json!({ "jsonrpc": "2.0", "id": question["id"], "result": { "action": "accept" } }).to_string())
        .await;
    for _ in 0..4 {
        let retry = asked(&mut upstream).await;
        assert_eq!(retry["params"]["inputResponses"], json!({ "k": { "action": "accept" } }));
        answer(&mut upstream, &retry, wanted.clone()).await;
    }
    let retry = asked(&mut upstream).await;
    answer(&mut upstream, &retry, json!({ "result": { "resultType": "complete", "content": [] } })).await;
    let told = json_of(&mut client).await;
    assert_eq!(
        (&told["method"], &told["params"]["elicitationId"]),
        (&json!("notifications/elicitation/complete"), &json!(id))
    );
    assert_eq!(json_of(&mut client).await["result"], json!({ "content": [] }));
}

#[tokio::test(start_paused = true)]
async fn rounds_that_never_end_or_make_no_sense_fail_the_call_alone() {
    let (mut client, mut upstream, _) = session(|_| {}, true).await;
    let long = "x".repeat(70_000);
    let input = |more: Value| {
        let mut result = json!({ "resultType": "input_required" });
        result.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({ "result": result })
    };
    let script = json!({ "k": { "method": "elicitation/create", "params": { "mode": "url", "url": "javascript:alert(1)", "message": "m" } } });
    for (method, with, why) in [
        ("tools/call", input(json!({})), "neither"),
        ("tools/call", input(json!({ "requestState": long })), "65536"),
        ("tools/list", input(json!({ "requestState": "s" })), "does not allow it"),
        ("tools/call", input(json!({ "requestState": "s" })), "16 times"),
        ("tools/call", input(json!({ "requestState": "s", "inputRequests": script })), "not a web page"),
    ] {
        said(&mut client, &format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{"name":"t"}}}}"#)).await;
        let failed = loop {
            tokio::select! {
                failed = json_of(&mut client) => break failed,
                call = asked(&mut upstream) => answer(&mut upstream, &call, with.clone()).await,
            }
        };
        assert_eq!(failed["error"]["code"], -32603, "{failed}");
        assert!(failed["error"]["message"].as_str().unwrap().contains(why), "{failed}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_upstream_that_hangs_fails_that_call_and_no_other() {
    let (mut client, mut upstream, _) = session(|options| options.call_ms_max = 5_000, false).await;
    for id in [1, 2] {
        said(&mut client, &format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"t"}}}}"#))
            .await;
    }
    let (first, second) = (asked(&mut upstream).await, asked(&mut upstream).await);
    answer(&mut upstream, &second, json!({ "result": { "content": [] } })).await;
    assert_eq!(json_of(&mut client).await["id"], 2);
    let failed = json_of(&mut client).await;
    assert_eq!((&failed["id"], &failed["error"]["code"]), (&json!(1), &json!(-31002)));
    // It is told so, and what it says then reaches nobody.
    let cancelled = asked(&mut upstream).await;
    assert_eq!(
        (&cancelled["method"], &cancelled["params"]["requestId"]),
        (&json!("notifications/cancelled"), &first["id"])
    );
    answer(&mut upstream, &first, json!({ "result": { "canary": 1 } })).await;
    said(&mut client, r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"t"}}"#).await;
    let third = asked(&mut upstream).await;
    answer(&mut upstream, &third, json!({ "result": { "content": [] } })).await;
    assert_eq!(json_of(&mut client).await["id"], 3);
}

#[tokio::test(start_paused = true)]
async fn an_upstream_that_does_not_answer_when_asked_is_given_up() {
    let (mut client, mut upstream, bridge) = session(|options| options.quiet_ms_max = 30_000, false).await;
    let ping = asked(&mut upstream).await;
    assert_eq!(ping["method"], "ping");
    // An error is an answer.
    answer(&mut upstream, &ping, json!({ "error": { "code": -32601, "message": "no" } })).await;
    for _ in 0..3 {
        assert_eq!(bridge.ready(), Ok(()));
        assert_eq!(asked(&mut upstream).await["method"], "ping");
    }
    tokio::time::sleep(Duration::from_millis(10_100)).await;
    assert!(bridge.ready().is_err_and(|why| why.contains("does not answer")));
    // Once another attempt is due, only a request can find out more.
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(bridge.ready(), Ok(()));
    said(&mut client, r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#).await;
    assert_eq!(json_of(&mut client).await["error"]["code"], -31001);
}

#[tokio::test(start_paused = true)]
async fn a_pipe_on_which_a_call_was_given_up_is_lent_to_nobody() {
    for gives_up in [false, true] {
        let (client, mut upstream, _) = to_upstream(|options| {
            options.isolation = Isolation::Call;
            options.upstream = revisions(false);
            options.call_ms_max = 5_000;
        });
        let mut client = client();
        let call =
            |id: u32| format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"t",{ABLE}}}}}"#);
        said(&mut client, &call(1)).await;
        opened(&mut upstream, false).await;
        assert_eq!(asked(&mut upstream).await["method"], "notifications/initialized");
        let first = asked(&mut upstream).await;
        if !gives_up {
            answer(&mut upstream, &first, json!({ "result": { "content": [] } })).await;
        }
        assert_eq!(json_of(&mut client).await.get("error").is_some(), gives_up);
        said(&mut client, &call(2)).await;
        if gives_up {
            // The pipes cannot be opened again.
            assert_eq!(json_of(&mut client).await["error"]["code"], -31001);
        } else {
            assert_eq!(asked(&mut upstream).await["method"], "tools/call");
        }
    }
}

#[tokio::test]
async fn a_state_of_another_bridge_reaches_the_upstream_that_gave_it() {
    let (client, mut upstream, _) = to_upstream(|options| options.upstream = revisions(true));
    let mut client = client();
    let call = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"t","requestState":"parked-1.1",{ABLE}}}}}"#
    );
    said(&mut client, &call).await;
    opened(&mut upstream, true).await;
    let passed = asked(&mut upstream).await;
    assert_eq!(passed["params"]["requestState"], "parked-1.1", "{passed}");
}

/// The next stream of changes that the bridge opens at a stateless upstream.
async fn listens(upstream: &mut Upstream) -> Value {
    loop {
        let message: Value = serde_json::from_str(&upstream.next().await).unwrap();
        if message["method"] == "subscriptions/listen" {
            return message;
        }
    }
}

/// Says something on a stream of changes.
async fn tells(upstream: &mut Upstream, stream: &Value, method: &str) {
    let meta = json!({ "io.modelcontextprotocol/subscriptionId": stream["id"] });
    let told = json!({ "jsonrpc": "2.0", "method": method, "params": { "_meta": meta, "notifications": {} } });
    upstream.say(&told.to_string()).await;
}

#[tokio::test(start_paused = true)]
async fn no_change_is_missed_while_a_session_subscribes_to_more_and_more() {
    let (mut client, mut upstream, _) = session(|_| {}, true).await;
    // With the first request of the session a stream is opened.
    said(&mut client, r#"{"jsonrpc":"2.0","id":0,"method":"tools/list"}"#).await;
    let (mut stream, mut listed) = (Value::Null, false);
    while stream.is_null() || !listed {
        let message: Value = serde_json::from_str(&upstream.next().await).unwrap();
        match message["method"] == "tools/list" {
            true => {
                listed = true;
                answer(&mut upstream, &message, json!({ "result": { "tools": [] } })).await;
            }
            false => stream = message,
        }
    }
    assert_eq!(json_of(&mut client).await["id"], 0);
    tells(&mut upstream, &stream, "notifications/subscriptions/acknowledged").await;
    for n in 1..=10 {
        said(
            &mut client,
            &format!(r#"{{"jsonrpc":"2.0","id":{n},"method":"resources/subscribe","params":{{"uri":"test://{n}"}}}}"#),
        )
        .await;
        let next = listens(&mut upstream).await;
        assert_eq!(next["params"]["notifications"]["resourceSubscriptions"].as_array().unwrap().len(), n);
        // The new stream is not open yet: the one before still counts.
        tells(&mut upstream, &stream, "notifications/tools/list_changed").await;
        assert_eq!(json_of(&mut client).await["method"], "notifications/tools/list_changed");
        tells(&mut upstream, &next, "notifications/subscriptions/acknowledged").await;
        let subscribed = json_of(&mut client).await;
        assert_eq!((&subscribed["id"], &subscribed["result"]), (&json!(n), &json!({})), "{subscribed}");
        let ended = asked(&mut upstream).await;
        assert_eq!(
            (&ended["method"], &ended["params"]["requestId"]),
            (&json!("notifications/cancelled"), &stream["id"])
        );
        stream = next;
    }
}

#[tokio::test]
async fn subscriptions_at_a_shared_upstream_end_with_their_sessions() {
    let (mut client, mut upstream, _bridge) = session(|options| options.isolation = Isolation::Shared, false).await;
    said(&mut client, r#"{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"test://a"}}"#).await;
    let subscribed = asked(&mut upstream).await;
    assert_eq!(subscribed["method"], "resources/subscribe");
    answer(&mut upstream, &subscribed, json!({ "result": {} })).await;
    assert_eq!(json_of(&mut client).await["id"], 1);
    drop(client);
    let ended = asked(&mut upstream).await;
    assert_eq!(
        (&ended["method"], &ended["params"]["uri"]),
        (&json!("resources/unsubscribe"), &json!("test://a")),
        "{ended}"
    );
}

#[tokio::test]
async fn clients_with_equal_ids_and_tokens_hear_only_their_own() {
    for isolation in [Isolation::Shared, Isolation::User] {
        for stateless in [false, true] {
            equal_ids_and_tokens(isolation, stateless).await;
        }
    }
}

/// Two stateless clients share a connection, and have the same ids and tokens.
async fn equal_ids_and_tokens(isolation: Isolation, stateless: bool) {
    let about = format!("{isolation:?} {stateless}");
    let (client, mut upstream, _) = to_upstream(|options| {
        options.upstream = revisions(stateless);
        options.isolation = isolation;
    });
    let (mut one, mut two) = (client(), client());
    let call = |name: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"name":"{name}","_meta":{{"progressToken":"p","io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{{}}}}}}}}"#
        )
    };
    said(&mut one, &call("one")).await;
    opened(&mut upstream, stateless).await;
    if !stateless {
        assert_eq!(asked(&mut upstream).await["method"], "notifications/initialized");
    }
    let first = asked(&mut upstream).await;
    said(&mut two, &call("two")).await;
    let second = asked(&mut upstream).await;
    assert_ne!(first["id"], second["id"]);
    for (call, canary) in [(&second, "two"), (&first, "one")] {
        let token = &call["params"]["_meta"]["progressToken"];
        let progress = json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": { "progressToken": token, "progress": 1, "message": canary } });
        upstream.say(&progress.to_string()).await;
    }
    // Foreign and doubled answers reach nobody.
    for id in [json!(999), json!("x"), first["id"].clone()] {
        let text = if id == first["id"] { "one" } else { "canary" };
        answer(
            &mut upstream,
            &json!({ "id": id }),
            json!({ "result": { "content": [{ "type": "text", "text": text }] } }),
        )
        .await;
    }
    answer(&mut upstream, &first, json!({ "result": { "content": [{ "type": "text", "text": "canary" }] } })).await;
    answer(&mut upstream, &second, json!({ "result": { "content": [{ "type": "text", "text": "two" }] } })).await;
    for (client, name) in [(&mut one, "one"), (&mut two, "two")] {
        let progress = json_of(client).await;
        assert_eq!(progress["params"], json!({ "progressToken": "p", "progress": 1, "message": name }), "{about}");
        let done = json_of(client).await;
        assert_eq!((&done["id"], &done["result"]["content"][0]["text"]), (&json!(7), &json!(name)));
    }
}

#[tokio::test]
async fn a_message_over_the_limit_fails_and_the_connection_lives() {
    let (mut client, mut upstream, _) =
        session(|options| Arc::make_mut(&mut options.client_limits).messages.frame_bytes_max = 10_000, false).await;
    said(&mut client, r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}"#).await;
    let call = asked(&mut upstream).await;
    answer(&mut upstream, &call, json!({ "result": { "content": [{ "type": "text", "text": "x".repeat(20_000) }] } }))
        .await;
    let failed = json_of(&mut client).await;
    assert_eq!((&failed["id"], &failed["error"]["code"]), (&json!(1), &json!(-32603)), "{failed}");
    assert!(failed["error"]["message"].as_str().unwrap().contains("10000"), "{failed}");
    // Neither broken text nor a byte order mark hurts it.
    upstream.say("\u{feff}{}").await;
    upstream.say("  ").await;
    upstream.say("[1,2").await;
    said(&mut client, r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"t"}}"#).await;
    let call = asked(&mut upstream).await;
    answer(&mut upstream, &call, json!({ "result": { "content": [] } })).await;
    assert_eq!(json_of(&mut client).await["result"], json!({ "content": [] }));
}

#[tokio::test]
async fn an_answer_of_the_wrong_shape_is_a_refusal() {
    // To a call that is parked.
    let (client, mut upstream, _) = to_upstream(|options| options.upstream = revisions(false));
    let mut client = client();
    let call = |id: u32, more: &str| {
        format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"t"{more},{ABLE}}}}}"#)
    };
    said(&mut client, &call(1, "")).await;
    opened(&mut upstream, false).await;
    assert_eq!(asked(&mut upstream).await["method"], "notifications/initialized");
    asked(&mut upstream).await;
    let question = json!({ "jsonrpc": "2.0", "id": "q", "method": "sampling/createMessage", "params": { "messages": [], "maxTokens": 1 } });
    upstream.say(&question.to_string()).await;
    let state = json_of(&mut client).await["result"]["requestState"].take();
    let given = format!(r#","requestState":{state},"inputResponses":{{"q1":{{"role":"assistant","model":"m"}}}}"#);
    said(&mut client, &call(2, &given)).await;
    let refused = asked(&mut upstream).await;
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!("q"), &json!(-32602)), "{refused}");
    // To a call that is made again: without the answer.
    let (mut client, mut upstream, _) = session(|_| {}, true).await;
    said(&mut client, r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}"#).await;
    let form = json!({ "method": "elicitation/create", "params": { "mode": "form", "message": "?", "requestedSchema": { "type": "object", "properties": {} } } });
    let wanted = json!({ "resultType": "input_required", "requestState": "s", "inputRequests": { "k": form } });
    let called = asked(&mut upstream).await;
    answer(&mut upstream, &called, json!({ "result": wanted })).await;
    let question = json_of(&mut client).await;
    said(&mut client, &json!({ "jsonrpc": "2.0", "id": question["id"], "result": { "content": {} } }).to_string())
        .await;
    let again = asked(&mut upstream).await;
    assert_eq!((&again["method"], &again["params"]["requestState"]), (&json!("tools/call"), &json!("s")), "{again}");
    assert!(again["params"]["inputResponses"].get("k").is_none(), "{again}");
}

#[tokio::test]
async fn questions_without_end_are_refused_and_the_call_goes_on() {
    let (client, mut upstream, _) = to_upstream(|options| options.upstream = revisions(false));
    let mut client = client();
    said(&mut client, &format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"t",{ABLE}}}}}"#))
        .await;
    opened(&mut upstream, false).await;
    assert_eq!(asked(&mut upstream).await["method"], "notifications/initialized");
    let call = asked(&mut upstream).await;
    for n in 0..1_000 {
        let question = json!({ "jsonrpc": "2.0", "id": format!("q{n}"), "method": "elicitation/create", "params": { "message": "?", "requestedSchema": { "type": "object", "properties": {} } } });
        upstream.say(&question.to_string()).await;
    }
    let mut refused = 0;
    while refused < 984 {
        let error = asked(&mut upstream).await;
        assert!(error["error"].is_object(), "{error}");
        refused += 1;
    }
    let wanted = json_of(&mut client).await;
    assert_eq!(wanted["result"]["inputRequests"].as_object().unwrap().len(), 16);
    answer(&mut upstream, &call, json!({ "result": { "content": [] } })).await;
    // Until the bridge has heard it.
    tokio::time::sleep(Duration::from_millis(100)).await;
    let retry = format!(
        r#"{{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{{"name":"t","requestState":{},{ABLE}}}}}"#,
        wanted["result"]["requestState"]
    );
    said(&mut client, &retry).await;
    assert_eq!(json_of(&mut client).await["result"]["resultType"], "complete");
}

#[tokio::test]
async fn questions_have_the_upstreams_keys_once_and_numbers_otherwise() {
    let (client, mut upstream, _) = to_upstream(|options| options.upstream = revisions(false));
    let mut client = client();
    said(&mut client, &format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"t",{ABLE}}}}}"#))
        .await;
    opened(&mut upstream, false).await;
    assert_eq!(asked(&mut upstream).await["method"], "notifications/initialized");
    asked(&mut upstream).await;
    let long = "k".repeat(129);
    for (n, key) in [json!("who"), json!("who"), json!("q2"), json!(long), json!(7), json!("")].iter().enumerate() {
        let question = json!({ "jsonrpc": "2.0", "id": n, "method": "sampling/createMessage",
            "params": { "n": n, "_meta": { "linchpin/key": key, "n": n } } });
        upstream.say(&question.to_string()).await;
    }
    let wanted = json_of(&mut client).await;
    let questions = wanted["result"]["inputRequests"].as_object().unwrap();
    let asked: Vec<_> = questions.iter().map(|(key, asked)| (key.as_str(), &asked["params"]["n"])).collect();
    let want = [("q1", 1), ("q2", 2), ("q3", 3), ("q4", 4), ("q5", 5), ("who", 0)].map(|(key, n)| (key, json!(n)));
    assert_eq!(asked, want.each_ref().map(|(key, n)| (*key, n)), "{wanted}");
    // What the key was sent in stays, the key does not: it is the client's already.
    assert_eq!(questions["who"]["params"]["_meta"], json!({ "n": 0 }));
}

#[tokio::test]
async fn codes_of_the_other_era_keep_their_number_in_the_details() {
    for (stateless, code, want) in [
        (true, -32022, None),
        (true, -32002, Some(-32002)),
        (false, -32050, Some(-32603)),
        (true, -32050, Some(-32050)),
    ] {
        let client_is_stateless = !stateless;
        let (mut client, mut upstream) = match client_is_stateless {
            false => {
                let (client, upstream, _) = session(|_| {}, stateless).await;
                (client, upstream)
            }
            true => {
                let (client, upstream, _) = to_upstream(|options| options.upstream = revisions(stateless));
                (client(), upstream)
            }
        };
        let meta = if client_is_stateless { ABLE } else { "\"x\":1" };
        said(&mut client, &format!(r#"{{"jsonrpc":"2.0","id":1,"method":"completion/complete","params":{{{meta}}}}}"#))
            .await;
        if client_is_stateless {
            opened(&mut upstream, stateless).await;
            assert_eq!(asked(&mut upstream).await["method"], "notifications/initialized");
        }
        let call = asked(&mut upstream).await;
        answer(&mut upstream, &call, json!({ "error": { "code": code, "message": "m" } })).await;
        let error = json_of(&mut client).await["error"].take();
        match want {
            // It speaks another revision now, and is opened anew: these pipes cannot be.
            None => assert_eq!(error["code"], -31001, "{error}"),
            Some(want) => assert_eq!(error["code"], want, "{error}"),
        }
        if want == Some(-32603) {
            assert_eq!(error["data"]["code"], code);
        }
    }
}

/// On a pipe nothing says during which call a question came. The bridge takes the latest one; if that one ends first, it was
/// another one's.
#[tokio::test(start_paused = true)]
async fn a_question_goes_on_when_the_call_it_was_taken_for_ends_first() {
    let (mut client, mut upstream, _) = session(|_| {}, false).await;
    let mut calls = Vec::new();
    for id in [1, 2] {
        said(
            &mut client,
            &format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"t{id}"}}}}"#),
        )
        .await;
        calls.push(asked(&mut upstream).await);
    }
    let question = r#"{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"Which?","requestedSchema":{"type":"object","properties":{}}}}"#;
    upstream.say(question).await;
    let first = json_of(&mut client).await;
    assert_eq!(first["method"], "elicitation/create");
    answer(&mut upstream, &calls[1], json!({ "result": { "content": [] } })).await;
    let mut again = Value::Null;
    let mut others = Vec::new();
    while again.is_null() || others.len() < 2 {
        let message = json_of(&mut client).await;
        match message["method"] == "elicitation/create" {
            true => again = message,
            false => others.push(message),
        }
    }
    assert!(others.iter().any(|message| message["id"] == 2), "{others:?}");
    assert!(others.iter().any(|message| message["params"]["requestId"] == first["id"]), "{others:?}");
    assert_ne!(again["id"], first["id"]);
    let accepted = json!({ "jsonrpc": "2.0", "id": again["id"], "result": { "action": "accept", "content": {} } });
    said(&mut client, &accepted.to_string()).await;
    let answered = asked(&mut upstream).await;
    assert_eq!((&answered["id"], &answered["result"]["action"]), (&json!("q"), &json!("accept")));
    // The last call ends with its question open: nobody is asked once more.
    upstream.say(&question.replace("\"q\"", "\"r\"")).await;
    let last = json_of(&mut client).await;
    answer(&mut upstream, &calls[0], json!({ "result": { "content": [] } })).await;
    let refused = asked(&mut upstream).await;
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!("r"), &json!(-32601)), "{last}");
}

/// The client gives up the call that a question was taken for: nobody is asked once more.
#[tokio::test(start_paused = true)]
async fn a_question_ends_with_the_call_that_its_client_cancels() {
    let (mut client, mut upstream, _) = session(|_| {}, false).await;
    for id in [1, 2] {
        said(
            &mut client,
            &format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"t{id}"}}}}"#),
        )
        .await;
        asked(&mut upstream).await;
    }
    let question = r#"{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"Which?","requestedSchema":{"type":"object","properties":{}}}}"#;
    upstream.say(question).await;
    assert_eq!(json_of(&mut client).await["method"], "elicitation/create");
    said(&mut client, r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}"#).await;
    let (mut refused, mut cancelled) = (Value::Null, Value::Null);
    while refused.is_null() || cancelled.is_null() {
        let message = asked(&mut upstream).await;
        if message["id"] == "q" { refused = message } else { cancelled = message }
    }
    assert_eq!((&refused["error"]["code"], &cancelled["method"]), (&json!(-32601), &json!("notifications/cancelled")));
    assert_eq!(json_of(&mut client).await["method"], "notifications/cancelled", "that question only");
    let quiet = tokio::time::timeout(Duration::from_secs(5), json_of(&mut client)).await;
    assert!(quiet.is_err(), "{quiet:?}");
}
