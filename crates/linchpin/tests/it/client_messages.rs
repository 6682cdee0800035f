//! The messages of a client and its handling of responses, against a scripted server that records everything.

use crate::common::scripted::{connect, refusal, result, scripted};
use linchpin::client::{ChangeFilter, ErrorKind};
use linchpin::prelude::*;
use linchpin::testing::Logged;
use linchpin::types::root::Root;
use linchpin::types::tool::Tool as ListedTool;
use linchpin::types::version::Revision;
use serde_json::{Value, json};
use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const DISCOVERED: &str = r#"{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{},"prompts":{},"resources":{},"completions":{}}}"#;
const HELLO: &str =
    r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"old","version":"1"}}"#;
const FORM: &str = r#""message":"Sure?","requestedSchema":{"type":"object","properties":{}}"#;

fn modern() -> Client {
    Client::new("h", "1").revisions(&[Revision::V2026_07_28])
}

fn legacy() -> Client {
    Client::new("h", "1").revisions(&[Revision::V2025_11_25])
}

/// Responds to the handshake of either era, and with this to all other requests.
fn opened(mut rest: impl FnMut(&str, &Value) -> String) -> impl FnMut(&Value) -> String {
    move |message| match message["method"].as_str() {
        Some("server/discover") => result(DISCOVERED),
        Some("initialize") => result(HELLO),
        Some("notifications/initialized") => String::new(),
        method => rest(method.unwrap_or_default(), message),
    }
}

#[tokio::test]
async fn every_stateless_request_carries_its_claims_and_an_id_of_its_own() {
    // The state is JSON text in an unusual form, which must be returned unchanged.
    let state = r#""a\u00e9\/ b""#;
    let client = modern()
        .on_elicitation(|form| async move { form.accept_defaults() })
        .on_sampling(|sample| async move { Ok(sample.reply("m", "x")) })
        .sampling_tools()
        .roots(vec![Root::new("file:///w")]);
    let (c, heard) = connect(
        client,
        opened(move |method, m| match method {
            "tools/call" if m["params"]["name"] == "ask" && m["params"]["requestState"].is_null() => {
                result(&format!(
                    r#"{{"resultType":"input_required","inputRequests":{{"q":{{"method":"elicitation/create","params":{{{FORM}}}}}}},"requestState":{state}}}"#
                ))
            }
            // A second round trip without a state.
            "tools/call" if m["params"]["name"] == "ask" && m["params"]["inputResponses"]["r"].is_null() => {
                result(r#"{"resultType":"input_required","inputRequests":{"r":{"method":"roots/list"}}}"#)
            }
            // Server requests are not part of this revision.
            "tools/list" => format!(
                "{{\"jsonrpc\":\"2.0\",\"id\":\"s\",\"method\":\"roots/list\"}}\n{}",
                result(r#"{"resultType":"complete","tools":[]}"#)
            ),
            "subscriptions/listen" => concat!(
                r#"{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{"toolsListChanged":true},"_meta":{"io.modelcontextprotocol/subscriptionId":ID}}}"#,
                "\n"
            ).to_owned(),
            _ => result(r#"{"resultType":"complete","content":[],"messages":[],"contents":[],"prompts":[],"completion":{"values":[]}}"#),
        }),
    )
    .await;
    c.tools().await.unwrap();
    c.prompts().await.unwrap();
    let first = heard.lines().len();
    let error = c.call("ask", ()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooManyRoundTrips, "the third attempt has no state again");
    let rounds = heard.lines()[first..].to_vec();
    c.call("plain", ()).await.unwrap();
    c.prompt("p", ()).await.unwrap();
    c.read("a:b").await.unwrap();
    c.complete_prompt("p", "a", "x", Default::default()).await.unwrap();
    let changes = c.listen(ChangeFilter::lists()).await.unwrap();

    let mut ids = HashSet::new();
    for message in heard.messages() {
        let id = message["id"].as_u64().unwrap_or_else(|| panic!("no request: {message}"));
        assert!(ids.insert(id), "used twice: {message}");
        let meta = &message["params"]["_meta"];
        assert_eq!(meta["io.modelcontextprotocol/protocolVersion"], "2026-07-28", "{message}");
        assert_eq!(meta["io.modelcontextprotocol/clientInfo"], json!({ "name": "h", "version": "1" }), "{message}");
        let declared = json!({ "roots": {}, "sampling": { "tools": {} }, "elicitation": {},
            "extensions": { "io.modelcontextprotocol/tasks": {} } });
        assert_eq!(meta["io.modelcontextprotocol/clientCapabilities"], declared, "{message}");
    }
    assert_eq!(heard.count("subscriptions/listen"), 1);
    drop(changes);

    // The input and the state belong to the next attempt and to no other request.
    assert!(!rounds[0].contains("inputResponses") && !rounds[0].contains("requestState"), "{}", rounds[0]);
    assert!(rounds[1].contains(&format!("\"requestState\":{state}")), "as it came: {}", rounds[1]);
    assert!(rounds[1].contains(r#""inputResponses":{"q":{"action":"accept","content":{}}}"#), "{}", rounds[1]);
    assert!(!rounds[2].contains("requestState") && rounds[2].contains("file:///w"), "{}", rounds[2]);
    for other in heard.lines().iter().filter(|line| !rounds.contains(line)) {
        assert!(!other.contains("inputResponses") && !other.contains("requestState"), "{other}");
    }
}

#[tokio::test]
async fn a_session_opens_with_the_newest_revision_and_what_the_host_can_do() {
    let client = legacy()
        .on_elicitation(|form| async move { form.decline() })
        .on_url_elicitation(|ask| async move { ask.decline() })
        .on_sampling(|_| async { Err("no".into()) })
        .sampling_tools()
        .roots(Vec::new());
    let (c, heard) = connect(client, opened(|_, _| result(r#"{"tools":[],"content":[]}"#))).await;
    c.tools().await.unwrap();
    c.roots_changed().await.unwrap();
    c.call("x", ()).on_progress(|_| {}).await.unwrap();
    let want =
        ["initialize", "notifications/initialized", "tools/list", "notifications/roots/list_changed", "tools/call"];
    assert_eq!(heard.methods(), want);
    let said = heard.messages();
    assert_eq!(
        said[0]["params"],
        json!({
            "protocolVersion": "2025-11-25",
            "capabilities": { "roots": { "listChanged": true }, "sampling": { "tools": {} }, "elicitation": { "form": {}, "url": {} } },
            "clientInfo": { "name": "h", "version": "1" },
        })
    );
    assert_eq!(said[4]["params"]["_meta"]["progressToken"], said[4]["id"], "unique while the request runs");
}

#[tokio::test]
async fn requests_for_what_was_not_declared_are_refused_with_the_code_for_it() {
    let ask = |params: &str| format!("\"method\":\"elicitation/create\",\"params\":{{{params}}}");
    let form = ask(FORM);
    let url = ask(r#""mode":"url","message":"Go","url":"https://a.example","elicitationId":"e""#);
    let sample = r#""method":"sampling/createMessage","params":{"messages":[],"maxTokens":1}"#.to_owned();
    let sample_tools = sample.replace("}", r#","tools":[]}"#);
    let sample_choice = sample.replace("}", r#","toolChoice":{}}"#);
    let roots = r#""method":"roots/list""#.to_owned();
    let models = || legacy().on_sampling(|sample| async move { Ok(sample.reply("m", "x")) });
    let forms = || legacy().on_elicitation(|form| async move { form.decline() });
    let rows = [
        (legacy(), &form, json!(-32602)),
        (forms(), &form, json!("decline")),
        (forms(), &url, json!(-32602)),
        (legacy().on_url_elicitation(|ask| async move { ask.decline() }), &form, json!(-32602)),
        (forms(), &sample, json!(-32601)),
        (legacy().on_sampling(|_| async { Err("no".into()) }), &sample, json!(-1)),
        (models(), &sample, json!(null)),
        (models(), &sample_tools, json!(-32602)),
        (models(), &sample_choice, json!(-32602)),
        (models().sampling_tools(), &sample_tools, json!(null)),
        (forms(), &roots, json!(-32601)),
        (legacy().roots(vec![Root::new("https://a.example/")]), &roots, json!(-32603)),
        (forms(), &r#""method":"no/such""#.to_owned(), json!(-32601)),
        (forms(), &r#""method":"elicitation/create","params":{"mode":"form"}"#.to_owned(), json!(-32602)),
    ];
    for (client, asks, want) in rows {
        let asks = asks.clone();
        let question = asks.clone();
        let (c, heard) = connect(
            client,
            opened(move |method, _| match method {
                "tools/call" => format!(
                    "{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/elicitation/complete\",\"params\":{{\"elicitationId\":\"unknown\"}}}}\n\
                     {{\"jsonrpc\":\"2.0\",\"id\":\"s\",{question}}}\n"
                ),
                // The response to the server request; the call is the third message, after the handshake.
                _ => result(r#"{"content":[]}"#).replace("ID", "2"),
            }),
        )
        .await;
        c.call("x", ()).await.unwrap();
        let answer = heard.messages().into_iter().find(|m| m["id"] == "s").unwrap();
        let got = if answer["error"].is_null() { &answer["result"]["action"] } else { &answer["error"]["code"] };
        assert_eq!(*got, want, "{asks}: {answer}");
    }
}

#[tokio::test]
async fn an_answer_is_kept_as_long_as_it_says_and_for_its_own_request_only() {
    for (hint, kept) in [
        ("", false),
        (r#","ttlMs":0"#, false),
        (r#","ttlMs":-5"#, false),
        (r#","ttlMs":60000,"cacheScope":"private""#, true),
        (r#","ttlMs":60000,"cacheScope":"public""#, true),
    ] {
        let answer = move |method: &str, m: &Value| match method {
            "resources/read" if m["params"]["uri"] == "a:ask" && m["params"]["requestState"].is_null() => {
                result(r#"{"resultType":"input_required","requestState":"s","ttlMs":60000}"#)
            }
            _ => result(&format!(r#"{{"resultType":"complete","tools":[],"contents":[]{hint}}}"#)),
        };
        let (c, heard) = connect(modern(), opened(answer)).await;
        for _ in 0..3 {
            c.tools().await.unwrap();
            c.read("a:b").await.unwrap();
            c.read("a:c").await.unwrap();
        }
        let each = if kept { 1 } else { 3 };
        assert_eq!((heard.count("tools/list"), heard.count("resources/read")), (each, 2 * each), "{hint}");
        // Results that needed input are not cached.
        for _ in 0..2 {
            c.read("a:ask").await.unwrap();
        }
        assert_eq!(heard.count("resources/read"), 2 * each + 4, "{hint}");
        // Another connection shares nothing: it may belong to another user.
        let (other, heard) = connect(modern(), opened(answer)).await;
        other.tools().await.unwrap();
        assert_eq!(heard.count("tools/list"), 1);
    }
}

#[tokio::test]
async fn cursors_are_repeated_as_they_came_until_there_is_none() {
    // The next cursors of the pages; the expected requests, by revision.
    let first = "c \"1\"\u{e9}\n";
    for (client, cursors, want) in [
        (modern(), vec![json!(first), json!(""), json!("z")], vec![json!(null), json!(first), json!(""), json!("z")]),
        (legacy(), vec![json!(first), json!("")], vec![json!(null), json!(first)]),
        (modern(), vec![json!(null)], vec![json!(null)]),
        (legacy(), vec![], vec![json!(null)]),
    ] {
        let mut page = 0;
        let (c, heard) = connect(
            client,
            opened(move |_, _| {
                let mut answer =
                    json!({ "tools": [{ "name": format!("t{page}"), "inputSchema": { "type": "object" } }] });
                if let Some(cursor) = cursors.get(page) {
                    answer["nextCursor"] = cursor.clone();
                }
                page += 1;
                result(&answer.to_string())
            }),
        )
        .await;
        assert_eq!(c.tools().await.unwrap().len(), want.len());
        let asked: Vec<Value> = heard
            .messages()
            .iter()
            .filter(|m| m["method"] == "tools/list")
            .map(|m| m["params"]["cursor"].clone())
            .collect();
        assert_eq!(asked, want);
    }
}

#[tokio::test]
async fn fresh_pages_lead_on_as_they_did_when_they_came() {
    let (c, heard) = connect(
        modern(),
        opened(move |_, m| {
            let (name, next) =
                if m["params"]["cursor"].is_null() { ("a", json!("c \"1\"\u{e9}")) } else { ("b", json!(null)) };
            let tool = json!({ "name": name, "inputSchema": { "type": "object" } });
            let page = json!({ "resultType": "complete", "nextCursor": next, "tools": [tool], "ttlMs": 60_000 });
            result(&page.to_string())
        }),
    )
    .await;
    for _ in 0..2 {
        let names: Vec<String> = c.tools().await.unwrap().into_iter().map(|tool| tool.name).collect();
        assert_eq!((names.join(" ").as_str(), heard.count("tools/list")), ("a b", 2));
    }
}

#[tokio::test]
async fn a_cursor_that_is_refused_makes_all_pages_forgotten() {
    let mut refuse = true;
    let (c, heard) = connect(
        modern(),
        opened(move |_, m| {
            if m["params"]["cursor"].is_null() {
                return result(r#"{"resultType":"complete","tools":[],"nextCursor":"c","ttlMs":60000}"#);
            }
            if std::mem::take(&mut refuse) {
                refusal(-32602)
            } else {
                result(r#"{"resultType":"complete","tools":[]}"#)
            }
        }),
    )
    .await;
    assert_eq!(c.tools().await.unwrap_err().rpc().map(|rpc| rpc.code), Some(-32602));
    c.tools().await.unwrap();
    assert_eq!(heard.count("tools/list"), 4, "the first page was asked for again");
    // A fresh page is not requested again.
    let mut pages = c.pages::<ListedTool>();
    pages.next().await.unwrap().unwrap();
    assert_eq!(heard.count("tools/list"), 4);
}

#[tokio::test]
async fn an_older_servers_code_for_a_missing_resource_is_understood() {
    for code in [-32002, -32602] {
        let (c, _) = connect(modern(), opened(move |_, _| refusal(code))).await;
        assert_eq!(c.read("a:b").await.unwrap_err().rpc().map(|rpc| rpc.code), Some(code));
    }
}

#[tokio::test]
async fn an_initialize_that_is_given_up_is_not_cancelled() {
    let (place, heard) = scripted(|_| String::new());
    let client = legacy().limits(|l| (l.connections.open_ms_max, l.connections.close_ms_max) = (30, 30));
    assert_eq!(client.connect(place).await.unwrap_err().kind(), ErrorKind::Connect);
    tokio::time::sleep(Duration::from_millis(30)).await;
    assert_eq!(heard.methods(), ["initialize"]);
}

#[tokio::test]
async fn headers_that_do_not_fit_make_the_tools_be_listed_again_once() {
    for refusals in [1, 2] {
        let mut left = refusals;
        let (c, heard) = connect(
            modern(),
            opened(move |method, _| match method {
                "tools/call" if left > 0 => {
                    left -= 1;
                    refusal(-32020)
                }
                _ => result(r#"{"resultType":"complete","tools":[],"content":[]}"#),
            }),
        )
        .await;
        let end = c.call("x", ()).await;
        assert_eq!(end.is_ok(), refusals == 1, "{end:?}");
        assert_eq!(heard.methods(), ["server/discover", "tools/call", "tools/list", "tools/call"]);
    }
}

#[tokio::test]
async fn urls_of_an_error_are_visited_and_the_call_made_again_when_the_server_says_so() {
    let complete = |id: &str| {
        format!(
            "{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/elicitation/complete\",\"params\":{{\"elicitationId\":\"{id}\"}}}}\n"
        )
    };
    for agrees in [true, false] {
        let mut refuse = true;
        let visited = Arc::new(Mutex::new(Vec::new()));
        let visits = visited.clone();
        let client = legacy().on_url_elicitation(move |ask| {
            visits.lock().unwrap().push(ask.url.clone());
            async move { if agrees { ask.accept() } else { ask.decline() } }
        });
        let (c, heard) = connect(
            client,
            opened(move |_, _| {
                if !std::mem::take(&mut refuse) {
                    return result(r#"{"content":[]}"#);
                }
                let asked = r#"{"mode":"url","message":"Go","url":"https://a.example","elicitationId":"e"}"#;
                let error = format!(
                    "{{\"jsonrpc\":\"2.0\",\"id\":ID,\"error\":{{\"code\":-32042,\"message\":\"m\",\"data\":{{\"elicitations\":[{asked}]}}}}}}\n"
                );
                error + &complete("unknown") + &complete("e")
            }),
        )
        .await;
        let end = c.call("x", ()).await;
        assert_eq!(end.is_ok(), agrees, "{end:?}");
        assert_eq!(heard.count("tools/call"), if agrees { 2 } else { 1 });
        assert_eq!(*visited.lock().unwrap(), ["https://a.example"]);
    }
}

#[tokio::test]
async fn a_tool_whose_definition_breaks_the_rules_is_left_out_and_logged() {
    let tool = |name: &str, header: &str| {
        format!(
            r#"{{"name":"{name}","inputSchema":{{"type":"object","properties":{{"a":{{"type":"string","x-mcp-header":"{header}"}}}}}}}}"#
        )
    };
    for (client, left_out) in [(modern(), true), (legacy(), false)] {
        let logged = Logged::default();
        let _guard = tracing::subscriber::set_default(logged.clone());
        let tools = format!("[{},{},7]", tool("good", "A"), tool("bad", "a b"));
        let answer = move |_: &str, _: &Value| result(&format!(r#"{{"tools":{tools},"content":[]}}"#));
        let (c, heard) = connect(client, opened(answer)).await;
        let listed = c.tools().await.unwrap();
        let names: Vec<&str> = listed.iter().map(|tool| tool.name.as_str()).collect();
        let refused: Vec<&str> = listed.refused.iter().map(|refusal| refusal.name.as_str()).collect();
        let called = c.call("bad", ()).await;
        if left_out {
            assert_eq!((names, refused), (vec!["good"], vec!["bad", "(no name)"]));
            assert!(called.is_err_and(|error| error.kind() == ErrorKind::InvalidTool));
            assert_eq!(heard.count("tools/call"), 0);
            let log = logged.text();
            assert!(log.contains("name=\"bad\"") && log.contains("must be a header name"), "{log}");
        } else {
            assert_eq!((names, refused), (vec!["good", "bad"], vec!["(no name)"]));
            called.unwrap();
        }
    }
}

#[tokio::test]
async fn structured_results_are_held_against_the_schema_where_the_host_wants_that() {
    let tools = r#"[{"name":"x","inputSchema":{"type":"object"},"outputSchema":{"type":"object","required":["n"]}}]"#;
    for (checks, structured, fine) in [
        (true, r#","structuredContent":{"n":1}"#, true),
        (true, r#","structuredContent":{}"#, false),
        (true, "", false),
        (true, r#","isError":true"#, true),
        (false, r#","structuredContent":{}"#, true),
    ] {
        let answer = move |_: &str, _: &Value| result(&format!(r#"{{"tools":{tools},"content":[]{structured}}}"#));
        let (c, _) = connect(modern().check_results(checks), opened(answer)).await;
        let end = c.call("x", ()).await;
        assert_eq!(end.is_ok(), fine, "{structured}: {end:?}");
    }
}

#[tokio::test]
async fn a_subscription_of_which_nothing_is_granted_is_an_error_that_names_it() {
    let all = || ChangeFilter::lists().resource("memo://a").resource("memo://b");
    let none = "the list of tools, the list of prompts, the lists of resources, memo://a, memo://b";
    let rows = [
        (all(), "{}", Some(none)),
        (all(), r#"{"toolsListChanged":false,"resourceSubscriptions":[]}"#, Some(none)),
        (ChangeFilter::new().resource("memo://a"), r#"{"toolsListChanged":true}"#, Some("memo://a")),
        (ChangeFilter::new().tools(), r#"{"resourceSubscriptions":["memo://a"]}"#, Some("the list of tools")),
        (all(), r#"{"promptsListChanged":true}"#, None),
        (all(), r#"{"resourceSubscriptions":["memo://b"]}"#, None),
        // Nothing was asked for, and nothing is missing.
        (ChangeFilter::new(), "{}", None),
    ];
    for (filter, granted, refused) in rows {
        let acknowledged = format!(
            "{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/subscriptions/acknowledged\",\"params\":{{\"notifications\":{granted},\"_meta\":{{\"io.modelcontextprotocol/subscriptionId\":ID}}}}}}\n"
        );
        let answers = opened(move |method, _| match method {
            "subscriptions/listen" => acknowledged.clone(),
            _ => String::new(),
        });
        let (c, heard) = connect(modern(), answers).await;
        let listening = tokio::time::timeout(Duration::from_secs(20), c.listen(filter)).await.unwrap();
        let Some(names) = refused else {
            assert!(listening.unwrap().granted().is_some());
            continue;
        };
        let why = listening.err().expect("nothing was granted");
        assert_eq!(why.kind(), ErrorKind::NotGranted);
        assert_eq!(why.to_string(), format!("the server does not grant notifications of changes of {names}"));
        // The server need not keep what nobody hears.
        let cancelled = async {
            while heard.count("notifications/cancelled") < 1 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), cancelled).await.expect("it is cancelled");
        assert_eq!(heard.count("subscriptions/listen"), 1);
    }
}

#[tokio::test]
async fn without_a_time_limit_a_subscription_is_waited_for() {
    let mut listening = Value::Null;
    let answers = opened(move |method, m| match method {
        "subscriptions/listen" => {
            listening = m["id"].clone();
            String::new()
        }
        // Late: with the answer to another request.
        _ => {
            let meta = json!({ "io.modelcontextprotocol/subscriptionId": listening });
            let params = json!({ "notifications": { "toolsListChanged": true }, "_meta": meta });
            let method = "notifications/subscriptions/acknowledged";
            let said = json!({ "jsonrpc": "2.0", "method": method, "params": params });
            format!("{said}\n{}", result(r#"{"resultType":"complete","tools":[]}"#))
        }
    });
    let (c, _) = connect(modern().limits(|limits| limits.calls.run_ms_max = 0), answers).await;
    let later = async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        c.tools().await
    };
    let both = async { tokio::join!(c.listen(ChangeFilter::new().tools()), later) };
    let (changes, tools) = tokio::time::timeout(Duration::from_secs(20), both).await.expect("it is acknowledged");
    assert!(changes.expect("it did not fail at once").granted().is_some() && tools.is_ok());
}

#[tokio::test]
async fn nobody_is_asked_for_what_is_not_sent_any_more() {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    let client = modern().limits(|limits| limits.round_trips.per_request_max = 2).on_elicitation(move |form| {
        count.fetch_add(1, Ordering::SeqCst);
        async move { form.accept_defaults() }
    });
    let again = format!(
        r#"{{"resultType":"input_required","inputRequests":{{"q":{{"method":"elicitation/create","params":{{{FORM}}}}}}}}}"#
    );
    let (c, heard) = connect(client, opened(move |_, _| result(&again))).await;
    let error = c.call("x", ()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooManyRoundTrips);
    assert_eq!((heard.count("tools/call"), asked.load(Ordering::SeqCst)), (3, 2));
}

#[tokio::test]
async fn a_page_of_countless_items_is_refused_before_they_are_kept() {
    for items in ["0,0,0,0", r#"{"name":"a","inputSchema":{"type":"object"}},0,0,[]"#] {
        let client = modern().limits(|limits| limits.lists.items_max = 3);
        let list = format!(r#"{{"resultType":"complete","tools":[{items}]}}"#);
        let (c, _) = connect(client, opened(move |_, _| result(&list))).await;
        let error = c.tools().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidResponse);
        assert!(error.to_string().contains("past 3 items (lists.items_max)"), "{error}");
    }
}
