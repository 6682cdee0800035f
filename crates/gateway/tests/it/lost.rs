//! Upstreams that go away, say nothing, or say it to nobody.

use crate::bytes::{Client, Upstream, heard, said, to_upstream};
use crate::faults::{ABLE, answer, asked, json_of, opened, session};
use crate::revisions;
use http_body_util::{BodyExt, Full};
use linchpin::transport::{HttpExt, HttpOptions};
use linchpin_gateway::Isolation;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

fn call(id: u32, more: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"t"{more}}}}}"#)
}

fn done() -> Value {
    json!({ "result": { "content": [] } })
}

/// A client whose requests are stateless, at an upstream with sessions that has been asked for something by it.
async fn stateless(isolation: Isolation) -> (Client, Upstream) {
    let (client, mut upstream, _) = to_upstream(|options| {
        options.upstream = revisions(false);
        options.isolation = isolation;
    });
    let mut client = client();
    said(&mut client, &call(1, &format!(",{ABLE}"))).await;
    opened(&mut upstream, false).await;
    assert_eq!(asked(&mut upstream).await["method"], "notifications/initialized");
    (client, upstream)
}

#[tokio::test(start_paused = true)]
async fn an_upstream_that_says_nothing_when_it_is_opened_is_given_up_and_the_limit_is_named() {
    let (client, mut upstream, _) = to_upstream(|options| {
        options.upstream = revisions(false);
        Arc::make_mut(&mut options.client_limits).connections.open_ms_max = 90_000;
    });
    let mut client = client();
    said(&mut client, &call(1, &format!(",{ABLE}"))).await;
    assert_eq!(asked(&mut upstream).await["method"], "initialize");
    // It installs something, and takes its time.
    tokio::time::sleep(Duration::from_secs(80)).await;
    assert!(tokio::time::timeout(Duration::from_secs(5), heard(&mut client)).await.is_err());
    let failed = json_of(&mut client).await;
    assert_eq!(failed["error"]["code"], -31001, "{failed}");
    assert!(failed["error"]["message"].as_str().unwrap().contains("90"), "{failed}");
}

#[tokio::test]
async fn a_call_whose_upstream_ends_may_have_run() {
    for stateless in [false, true] {
        let (mut client, mut upstream, _) = session(|_| {}, stateless).await;
        said(&mut client, &call(1, "")).await;
        assert_eq!(asked(&mut upstream).await["method"], "tools/call");
        upstream.end().await;
        let failed = json_of(&mut client).await;
        assert_eq!((&failed["id"], &failed["error"]["code"]), (&json!(1), &json!(-31007)), "{failed}");
        assert!(failed["error"]["message"].as_str().unwrap().contains("may or may not have run"), "{failed}");
        // One that was never sent has not run.
        said(&mut client, &call(2, "")).await;
        assert_eq!(json_of(&mut client).await["error"]["code"], -31001);
    }
}

#[tokio::test]
async fn what_belongs_to_no_call_reaches_nobody() {
    let (mut client, mut upstream, _) = session(|_| {}, false).await;
    said(&mut client, &call(1, r#","_meta":{"progressToken":"p"}"#)).await;
    let first = asked(&mut upstream).await;
    said(&mut client, r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#).await;
    let cancelled = asked(&mut upstream).await;
    assert_eq!(cancelled["params"]["requestId"], first["id"], "{cancelled}");
    let canary = json!({ "result": { "canary": 1 } });
    answer(&mut upstream, &first, canary.clone()).await;
    said(&mut client, &call(2, r#","_meta":{"progressToken":"p"}"#)).await;
    let second = asked(&mut upstream).await;
    for (token, progress) in [(&first, 1), (&second, 2)] {
        let token = &token["params"]["_meta"]["progressToken"];
        let told = json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": { "progressToken": token, "progress": progress } });
        upstream.say(&told.to_string()).await;
    }
    upstream.say(&json!({ "jsonrpc": "2.0", "result": canary["result"] }).to_string()).await;
    assert_eq!(json_of(&mut client).await["params"]["progress"], 2);
    answer(&mut upstream, &second, done()).await;
    assert_eq!(json_of(&mut client).await["result"], json!({ "content": [] }));
    // After the answer there is nothing to tell of.
    let late = json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": { "progressToken": second["params"]["_meta"]["progressToken"], "progress": 3 } });
    upstream.say(&late.to_string()).await;
    said(&mut client, &call(3, "")).await;
    let third = asked(&mut upstream).await;
    answer(&mut upstream, &third, done()).await;
    assert_eq!(json_of(&mut client).await["id"], 3);
}

#[tokio::test]
async fn a_question_for_nobody_is_refused_and_nobody_sees_it() {
    for isolation in [Isolation::Auto, Isolation::Shared] {
        let (mut client, mut upstream) = stateless(isolation).await;
        let first = asked(&mut upstream).await;
        let question = json!({ "jsonrpc": "2.0", "id": "a", "method": "sampling/createMessage", "params": { "messages": [], "maxTokens": 1 } });
        if isolation == Isolation::Auto {
            // Outside of every call.
            answer(&mut upstream, &first, done()).await;
            assert_eq!(json_of(&mut client).await["id"], 1);
        }
        upstream.say(&question.to_string()).await;
        let refused = asked(&mut upstream).await;
        assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!("a"), &json!(-32601)), "{isolation:?}");
        if isolation == Isolation::Shared {
            answer(&mut upstream, &first, done()).await;
            assert_eq!(json_of(&mut client).await["result"]["resultType"], "complete");
        }
    }
}

#[tokio::test]
async fn an_upstream_of_a_version_that_nobody_knows_is_not_spoken_with() {
    let (client, mut upstream, _) = to_upstream(|options| options.upstream = revisions(false));
    let mut client = client();
    said(&mut client, &call(1, &format!(",{ABLE}"))).await;
    let first = asked(&mut upstream).await;
    let result =
        json!({ "protocolVersion": "2099-01-01", "capabilities": {}, "serverInfo": { "name": "s", "version": "1" } });
    answer(&mut upstream, &first, json!({ "result": result })).await;
    let failed = json_of(&mut client).await;
    assert_eq!(failed["error"]["code"], -31001, "{failed}");
    assert!(failed["error"]["message"].as_str().unwrap().contains("2099-01-01"), "{failed}");
}

#[tokio::test]
async fn a_client_that_closes_its_stream_cancels_the_call_at_the_upstream() {
    let (_, mut upstream, bridge) = to_upstream(|options| options.upstream = revisions(false));
    // It can be asked nothing: others would have a connection of their own, and these pipes cannot be opened twice.
    let meta = r#","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
    let service = bridge.into_service_with(HttpOptions::default()).unwrap();
    let request = http::Request::post("/mcp")
        .header("host", "localhost")
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", "tools/call")
        .header("mcp-name", "t")
        .body(Full::new(bytes::Bytes::from(call(1, meta))))
        .unwrap();
    let served = service.clone();
    let client = tokio::spawn(async move {
        let Ok(response) = served.handle(request).await;
        response.into_body().collect().await.map(|_| ())
    });
    opened(&mut upstream, false).await;
    assert_eq!(asked(&mut upstream).await["method"], "notifications/initialized");
    let called = asked(&mut upstream).await;
    assert_eq!(called["method"], "tools/call");
    client.abort();
    let cancelled = asked(&mut upstream).await;
    assert_eq!(
        (&cancelled["method"], &cancelled["params"]["requestId"]),
        (&json!("notifications/cancelled"), &called["id"])
    );
}

#[tokio::test]
async fn a_flood_of_changes_is_a_few_of_them_for_a_client_that_does_not_read() {
    let (mut client, mut upstream, _) = session(|_| {}, false).await;
    said(&mut client, &call(1, "")).await;
    let called = asked(&mut upstream).await;
    for _ in 0..10_000 {
        upstream.say(r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#).await;
    }
    answer(&mut upstream, &called, done()).await;
    let mut notices = 0;
    while json_of(&mut client).await["id"] != 1 {
        notices += 1;
    }
    assert!((1..5_000).contains(&notices), "{notices}");
}

/// What asks a client for a name.
async fn asks(upstream: &mut Upstream, id: &str) {
    let question = json!({ "jsonrpc": "2.0", "id": id, "method": "elicitation/create", "params": { "message": "?", "requestedSchema": { "type": "object", "properties": {} } } });
    upstream.say(&question.to_string()).await;
}

fn retry(id: u32, state: &Value) -> String {
    call(
        id,
        &format!(r#","requestState":{state},"inputResponses":{{"q1":{{"action":"accept","content":{{}}}}}},{ABLE}"#),
    )
}

#[tokio::test]
async fn a_state_belongs_to_its_arguments_although_a_number_is_out_of_range() {
    let (client, mut upstream, _) = to_upstream(|options| options.upstream = revisions(false));
    let mut client = client();
    let with = |id, n: &str, more: &str| call(id, &format!(r#","arguments":{{"n":{n}}}{more},{ABLE}"#));
    said(&mut client, &with(1, "1e400", "")).await;
    opened(&mut upstream, false).await;
    assert_eq!(asked(&mut upstream).await["method"], "notifications/initialized");
    assert!(upstream.next().await.contains("1e400"));
    asks(&mut upstream, "a").await;
    let state = json_of(&mut client).await["result"]["requestState"].take();
    let answers = format!(r#","requestState":{state},"inputResponses":{{"q1":{{"action":"accept","content":{{}}}}}}"#);
    said(&mut client, &with(2, "2e400", &answers)).await;
    assert_eq!(json_of(&mut client).await["error"]["code"], -32602);
    said(&mut client, &with(3, "1e400", &answers)).await;
    assert_eq!(asked(&mut upstream).await["result"]["action"], "accept");
}

#[tokio::test]
async fn of_two_retries_at_once_the_later_takes_over() {
    let (mut client, mut upstream) = stateless(Isolation::Auto).await;
    let called = asked(&mut upstream).await;
    asks(&mut upstream, "a").await;
    let state = json_of(&mut client).await["result"]["requestState"].take();
    said(&mut client, &retry(2, &state)).await;
    assert_eq!(asked(&mut upstream).await["result"]["action"], "accept");
    said(&mut client, &retry(3, &state)).await;
    let first = json_of(&mut client).await;
    assert_eq!((&first["id"], &first["error"]["code"]), (&json!(2), &json!(-32603)), "{first}");
    answer(&mut upstream, &called, done()).await;
    let second = json_of(&mut client).await;
    assert_eq!((&second["id"], &second["result"]["resultType"]), (&json!(3), &json!("complete")), "{second}");
}

#[tokio::test(start_paused = true)]
async fn a_parked_call_whose_client_never_comes_again_ends_at_the_upstream() {
    let (mut client, mut upstream) = stateless(Isolation::Auto).await;
    let called = asked(&mut upstream).await;
    asks(&mut upstream, "a").await;
    let state = json_of(&mut client).await["result"]["requestState"].take();
    tokio::time::sleep(Duration::from_secs(299)).await;
    assert!(tokio::time::timeout(Duration::from_millis(100), upstream.next()).await.is_err());
    let mut told = [asked(&mut upstream).await, asked(&mut upstream).await];
    told.sort_by_key(|message| message.get("method").is_some());
    assert_eq!((&told[0]["id"], &told[0]["result"]["action"]), (&json!("a"), &json!("cancel")), "{told:?}");
    assert_eq!(told[1]["params"]["requestId"], called["id"], "{told:?}");
    said(&mut client, &retry(2, &state)).await;
    assert_eq!(json_of(&mut client).await["error"]["code"], -32602);
}

#[tokio::test(start_paused = true)]
async fn progress_while_nobody_waits_reaches_the_retry_with_its_token() {
    let (client, mut upstream, _) = to_upstream(|options| options.upstream = revisions(false));
    let mut client = client();
    let with = |call: String, token: &str| call.replacen("\"_meta\":{", &format!("\"_meta\":{{{token}"), 1);
    said(&mut client, &with(call(1, &format!(",{ABLE}")), "\"progressToken\":\"first\",")).await;
    opened(&mut upstream, false).await;
    assert_eq!(asked(&mut upstream).await["method"], "notifications/initialized");
    let called = asked(&mut upstream).await;
    let progress = |n: u32| {
        let params = json!({ "progressToken": called["params"]["_meta"]["progressToken"], "progress": n });
        json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": params }).to_string()
    };
    let (again, late) = ("\"progressToken\":\"again\",", "\"progressToken\":9,");
    for (id, token, told) in [(2, again, json!("again")), (3, "", json!(null)), (4, late, json!(9))] {
        asks(&mut upstream, &format!("q{id}")).await;
        let state = json_of(&mut client).await["result"]["requestState"].take();
        upstream.say(&progress(10 * id)).await;
        tokio::time::sleep(Duration::from_millis(100)).await;
        let again = retry(id, &state).replace("\"q1\"", &format!("\"q{}\"", id - 1));
        said(&mut client, &with(again, token)).await;
        assert_eq!(asked(&mut upstream).await["result"]["action"], "accept");
        upstream.say(&progress(10 * id + 1)).await;
        for n in [10 * id, 10 * id + 1].iter().filter(|_| !told.is_null()) {
            let params = json_of(&mut client).await["params"].take();
            assert_eq!(params, json!({ "progressToken": told, "progress": n }));
        }
    }
    answer(&mut upstream, &called, done()).await;
    assert_eq!(json_of(&mut client).await["result"]["resultType"], "complete");
}
