//! What single tools do, and what must never leave a session.

use linchpin::client::{Client, Progress};
use linchpin::prelude::*;
use linchpin::transport::{Bind, IntoService, Service, in_process};
use linchpin::types::elicit::ElicitResult;
use linchpin::types::version::Revision;
use linchpin_everything::{Everything, Options, server};
use linchpin_kit::ToolPrefix;
use linchpin_testing::{Script, TestClient};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::DuplexStream;

const SESSIONS: Revision = Revision::V2025_11_25;
const ALONE: Revision = Revision::V2026_07_28;

fn quick() -> Options {
    Options::default().with(|options| {
        options.log_ms = 10;
        options.update_ms = 10;
    })
}

/// A client of a server that others use too.
async fn joins(service: &Arc<dyn Service>, revision: Revision) -> TestClient<DuplexStream> {
    let (ours, theirs) = memory();
    tokio::spawn(ours.serve(service.clone()));
    let mut client = TestClient::new(theirs, revision).capability("elicitation", json!({ "url": {} }));
    client.open().await;
    client
}

async fn client(options: Options, revision: Revision) -> TestClient<DuplexStream> {
    joins(&server(options).unwrap().into_shared().unwrap(), revision).await
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_default()
}

#[tokio::test]
async fn names_and_hints_are_those_configurations_rely_on() {
    let mut client = client(Options::default(), SESSIONS).await;
    let list = client.request("tools/list", json!({})).await.unwrap();
    let tools = list["tools"].as_array().unwrap();
    let names: Vec<&str> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    let published = [
        "echo",
        "get-annotated-message",
        "get-resource-links",
        "get-resource-reference",
        "get-structured-content",
        "get-sum",
        "get-tiny-image",
        "gzip-file-as-resource",
        "toggle-simulated-logging",
        "toggle-subscriber-updates",
        "trigger-long-running-operation",
        "get-roots-list",
        "trigger-elicitation-request",
        "trigger-url-elicitation",
        "trigger-sampling-request",
        "simulate-research-query",
    ];
    for name in published {
        assert!(names.contains(&name), "{name} is missing");
    }
    let others: Vec<_> =
        names.iter().filter(|name| !published.contains(name) && !name.starts_with("everything_")).collect();
    assert!(others.is_empty(), "names that could collide with another server's: {others:?}");
    for tool in tools {
        let set: BTreeSet<&str> = tool["annotations"].as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(
            set,
            ["destructiveHint", "idempotentHint", "openWorldHint", "readOnlyHint"].into(),
            "{}",
            tool["name"]
        );
        assert_eq!(tool["inputSchema"]["type"], "object");
    }
    let weather = tools.iter().find(|tool| tool["name"] == "get-structured-content").unwrap();
    assert_eq!(weather["outputSchema"]["required"], json!(["temperature", "conditions", "humidity"]));
}

#[tokio::test]
async fn calls_answer_as_documented() {
    let mut client = client(
        quick().with(|options| {
            options.expose_env = true;
            options.gzip_bytes_max = 100;
        }),
        SESSIONS,
    )
    .await;
    let long = format!("data:,{}", "a".repeat(101));
    // Tool, arguments, whether it fails, and what the answer says. The names of version 1 work unlisted.
    let cases = [
        ("echo", json!({"message": "hi"}), false, "Echo: hi"),
        ("echo", json!({}), true, "message"),
        ("echo", json!({"message": 1}), true, "string"),
        ("get-sum", json!({"a": 2, "b": 3}), false, "The sum of 2 and 3 is 5."),
        ("add", json!({"a": 0.5, "b": 0.25}), false, "The sum of 0.5 and 0.25 is 0.75."),
        ("annotatedMessage", json!({"messageType": "debug"}), false, "\"priority\":0.3"),
        ("get-annotated-message", json!({"messageType": "success", "includeImage": true}), false, "image/png"),
        ("get-annotated-message", json!({"messageType": "loud"}), true, "messageType"),
        ("getResourceLinks", json!({}), false, "demo://resource/dynamic/text/2"),
        ("get-resource-links", json!({"count": 11}), true, "count"),
        (
            "getResourceReference",
            json!({"resourceType": "Blob", "resourceId": 4}),
            false,
            "demo://resource/dynamic/blob/4",
        ),
        ("get-resource-reference", json!({"resourceId": 0}), true, "resourceId"),
        ("structuredContent", json!({"location": "New York"}), false, "Cloudy"),
        ("getTinyImage", json!({}), false, "image/png"),
        ("everything_mirrored_argument", json!({"region": "eu"}), false, "eu"),
        ("printEnv", json!({}), false, "(redacted)"),
        (
            "longRunningOperation",
            json!({"duration": 0, "steps": 1}),
            false,
            "completed. Duration: 0 seconds, Steps: 1.",
        ),
        ("trigger-long-running-operation", json!({"duration": 301}), true, "duration"),
        ("listRoots", json!({}), true, "roots"),
        ("startElicitation", json!({}), true, "elicitation"),
        ("sampleLLM", json!({"prompt": "hi"}), true, "sampling"),
        ("trigger-url-elicitation", json!({"url": "javascript:alert(1)"}), true, "must start with https:// or http://"),
        ("zip", json!({"files": {"a.txt": "data:,hello"}}), true, "/data: expected a string"),
        ("zip", json!({"data": "data:,hello", "outputType": "resource"}), false, "application/gzip"),
        ("zip", json!({"data": "data:,hello", "name": "../x"}), true, "`name` must be"),
        ("zip", json!({"data": long}), true, "limit of 100 bytes"),
        ("zip", json!({"data": "file:///etc/passwd"}), true, "`file:` URLs are refused"),
        ("zip", json!({"data": "http://127.0.0.1:8080/"}), true, "is this machine itself"),
        ("zip", json!({"data": "file:///etc/passwd"}), true, "`file:` URLs are refused"),
    ];
    for (tool, arguments, fails, says) in cases {
        let result = client.call(tool, arguments.clone()).await.unwrap();
        assert_eq!(result["isError"] == true, fails, "{tool} {arguments}: {result}");
        assert!(result.to_string().contains(says) || text(&result).contains(says), "{tool} {arguments}: {result}");
    }
}

#[tokio::test]
async fn the_environment_is_hidden_unless_configured_and_never_with_values() {
    for (options, offered) in
        [(Options::default(), false), (Options::default().with(|options| options.expose_env = true), true)]
    {
        let mut client = client(options, SESSIONS).await;
        let listed = client.request("tools/list", json!({})).await.unwrap().to_string().contains("get-env");
        assert_eq!(listed, offered);
        for name in ["get-env", "printEnv"] {
            match client.call(name, json!({})).await {
                Err(refused) => assert!(!offered && refused.code == -32602, "{refused}"),
                Ok(result) => {
                    let env: Value = serde_json::from_str(text(&result)).unwrap();
                    assert!(
                        offered
                            && env["PATH"] == "(redacted)"
                            && !result.to_string().contains(&std::env::var("PATH").unwrap())
                    );
                }
            }
        }
    }
    // Mounted beside other things it is off, too.
    let mounted = Everything::new(Options::default()).add_to(Server::new("mine", "1")).unwrap();
    let mut client = joins(&mounted.into_shared().unwrap(), ALONE).await;
    assert_eq!(client.call("get-env", json!({})).await.unwrap_err().code, -32602);
}

#[tokio::test]
async fn results_kept_for_a_session_are_read_by_it_alone() {
    let service = server(quick()).unwrap().into_shared().unwrap();
    let (mut one, mut two) = (joins(&service, SESSIONS).await, joins(&service, SESSIONS).await);
    let link = one.call("gzip-file-as-resource", json!({ "name": "a.gz", "data": "data:,hello" })).await.unwrap();
    let uri = json!({ "uri": link["content"][0]["uri"] });
    assert_eq!(uri["uri"], "demo://resource/session/a.gz");
    let read = one.request("resources/read", uri.clone()).await.unwrap();
    // What a gzip stream begins with, in base64.
    assert!(read["contents"][0]["blob"].as_str().unwrap().starts_with("H4sI"), "{read}");
    assert_eq!(read["contents"][0]["mimeType"], "application/gzip");
    assert_eq!(two.request("resources/read", uri.clone()).await.unwrap_err().code, -32002);
    let mut alone = joins(&service, ALONE).await;
    assert_eq!(alone.request("resources/read", uri).await.unwrap_err().code, -32602);
    let whole = alone.call("gzip-file-as-resource", json!({})).await.unwrap();
    assert_eq!(whole["content"][1]["type"], "resource", "without a session the result comes at once");
    for at in 0..7 {
        let kept = one.call("gzip-file-as-resource", json!({ "name": format!("{at}") })).await.unwrap();
        assert_ne!(kept["isError"], true);
    }
    let full = one.call("gzip-file-as-resource", json!({ "name": "one-too-many" })).await.unwrap();
    assert!(full["isError"] == true && text(&full).contains("8 results"), "{full}");
}

#[tokio::test]
async fn what_a_session_started_reaches_only_it_and_ends_with_it() {
    let service = server(quick()).unwrap().into_shared().unwrap();
    let (mut one, mut two) = (joins(&service, SESSIONS).await, joins(&service, SESSIONS).await);
    let alive = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let before = alive();
    let uri = json!({ "uri": "demo://resource/dynamic/text/1" });
    one.request("resources/subscribe", uri.clone()).await.unwrap();
    two.request("resources/subscribe", uri).await.unwrap();
    one.call("toggle-simulated-logging", json!({})).await.unwrap();
    one.call("toggle-subscriber-updates", json!({})).await.unwrap();
    one.expect("notifications/message").await;
    one.expect("notifications/resources/updated").await;
    assert_eq!(alive(), before + 2);
    assert!(two.drain(Duration::from_millis(50)).await.is_empty(), "another session heard of it");
    drop(one);
    tokio::time::timeout(Duration::from_secs(5), async {
        // The first client's pipe ends as well.
        while alive() > before - 1 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await
    .expect("what the session started ends soon after it");
}

#[tokio::test]
async fn the_error_that_sends_to_a_url_comes_once_a_url_and_only_in_its_revision() {
    let arguments = json!({ "url": "https://example.com/login", "errorPath": true, "elicitationId": "mine" });
    for (revision, first) in [(Revision::V2025_06_18, None), (SESSIONS, Some(-32042)), (ALONE, None)] {
        let (ours, theirs) = memory();
        tokio::spawn(server(quick()).unwrap().serve(ours));
        let mut client = TestClient::new(theirs, revision)
            .capability("elicitation", json!({ "url": {} }))
            .answer("elicitation/create", |_| json!({ "action": "decline" }));
        client.open().await;
        let refused = client.call("trigger-url-elicitation", arguments.clone()).await.err();
        assert_eq!(refused.as_ref().map(|refused| refused.code), first, "{revision}");
        if let Some(refused) = refused {
            let data: Value = serde_json::from_str(refused.data.expect("details").get()).unwrap();
            assert_eq!(data["elicitations"][0]["elicitationId"], "mine");
            let second = client.call("trigger-url-elicitation", arguments.clone()).await.unwrap();
            assert_eq!(text(&second), "The user declined to open the page.");
        }
    }
}

#[tokio::test]
async fn a_step_between_two_questions_runs_once_in_every_revision_that_asks() {
    for revision in [Revision::V2025_06_18, SESSIONS, ALONE] {
        let (ours, theirs) = memory();
        tokio::spawn(server(quick()).unwrap().serve(ours));
        let said = Arc::new(Mutex::new(Vec::new()));
        let heard = said.clone();
        let mut client = TestClient::new(theirs, revision).answer("elicitation/create", move |params| {
            heard.lock().unwrap().push(params["message"].as_str().unwrap().to_owned());
            match params["requestedSchema"]["properties"].get("name") {
                Some(_) => json!({ "action": "accept", "content": { "name": "Ada" } }),
                None => json!({ "action": "accept", "content": { "color": "blue" } }),
            }
        });
        client.open().await;
        let result = client.call("everything_two_questions", json!({})).await.unwrap();
        let said = said.lock().unwrap();
        let number = said[1].split(|c: char| !c.is_ascii_digit()).find(|word| !word.is_empty()).unwrap();
        assert_eq!(text(&result), format!("Ada has the number {number} and likes blue."), "{revision}");
        assert_eq!(said.len(), 2, "{revision}: {said:?}");
    }
}

#[tokio::test]
async fn rounds_on_the_wire_are_as_specified() {
    let script = r#"
        > {"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"get-roots-list","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}
        < {"jsonrpc":"2.0","id":"a","error":{"code":-32021,"message":"<string>","data":{"requiredCapabilities":{"roots":{}}}}}
        > {"jsonrpc":"2.0","id":"b","method":"tools/call","params":{"name":"get-roots-list","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"roots":{}}}}}
        < {"jsonrpc":"2.0","id":"b","result":{"resultType":"input_required","inputRequests":{"roots":{"method":"roots/list","params":{}}},"requestState":"<save: state>","_meta":"<object>"}}
        # State is bound to its call.
        > {"jsonrpc":"2.0","id":"c","method":"tools/call","params":{"name":"trigger-elicitation-request","requestState":"<state>","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}}}
        < {"jsonrpc":"2.0","id":"c","error":{"code":-32602,"message":"<text: requestState>"}}
        > {"jsonrpc":"2.0","id":"d","method":"tools/call","params":{"name":"get-roots-list","inputResponses":{"roots":{"roots":[{"uri":"file:///a"}]}},"requestState":"<state>","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"roots":{}}}}}
        < {"jsonrpc":"2.0","id":"d","result":{"content":[{"type":"text","text":"<text: file:///a>"}],"resultType":"complete","_meta":"<object>"}}
        = 20
    "#;
    let (ours, theirs) = memory();
    tokio::spawn(server(quick()).unwrap().serve(ours));
    let kept = Script::parse(script).unwrap().play(theirs).await.unwrap_or_else(|mismatch| panic!("{mismatch}"));
    assert!(!kept["state"].as_str().unwrap().is_empty());
}

#[tokio::test]
async fn completions_narrow_with_what_was_typed_and_chosen() {
    let mut client = client(quick(), SESSIONS).await;
    let prompt = |name: &str| json!({ "type": "ref/prompt", "name": name });
    let template = json!({ "type": "ref/resource", "uri": "demo://resource/dynamic/text/{resourceId}" });
    let cases = [
        (prompt("completable-prompt"), "department", "s", json!({}), json!(["Sales", "Support"])),
        (
            prompt("completable-prompt"),
            "name",
            "",
            json!({ "department": "Engineering" }),
            json!(["Alice", "Bob", "Charlie"]),
        ),
        (prompt("completable-prompt"), "name", "h", json!({ "department": "Marketing" }), json!(["Henry"])),
        (prompt("completable-prompt"), "name", "", json!({ "department": "Nothing" }), json!([])),
        (prompt("resource-prompt"), "resourceType", "b", json!({}), json!(["Blob"])),
        (template, "resourceId", "7", json!({}), json!(["7"])),
    ];
    for (reference, name, value, chosen, want) in cases {
        let params = json!({ "ref": reference, "argument": { "name": name, "value": value }, "context": { "arguments": chosen } });
        let got = client.request("completion/complete", params.clone()).await.unwrap();
        assert_eq!(got["completion"]["values"], want, "{params}");
    }
}

#[tokio::test]
async fn several_servers_in_one_process_have_an_extra_tool_each() {
    let named = |name: &str| {
        let mut options = quick();
        options.tools.prefix = ToolPrefix::Text(format!("{name}_"));
        options.tools.scope = Some(name.to_owned());
        options
    };
    let both = Everything::new(named("two")).add_to(server(named("one")).unwrap()).unwrap();
    let mut client = joins(&both.into_shared().unwrap(), SESSIONS).await;
    for (toggled, there) in [("one", "one"), ("two", "one two"), ("one", "two"), ("one", "two one"), ("two", "one")] {
        client.call(&format!("{toggled}_everything_toggle_extra"), json!({})).await.unwrap();
        let list = client.request("tools/list", json!({})).await.unwrap();
        let names = list["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap());
        let extra: Vec<&str> = names.filter_map(|name| name.strip_suffix("_everything_extra")).collect();
        assert_eq!(extra.join(" "), there, "after {toggled}");
    }
}

/// The stages are the task's messages, and an ambiguous topic is asked about, whichever generation of tasks the client has.
#[tokio::test(start_paused = true)]
async fn research_is_a_task_with_stages_and_a_question_where_the_topic_is_ambiguous() {
    let stages = ["Gathering sources...", "Analyzing content...", "Synthesizing findings...", "Generating report..."];
    for revision in [SESSIONS, ALONE] {
        let asked = Arc::new(Mutex::new(Vec::new()));
        let ask = asked.clone();
        let host = Client::new("h", "1").revisions(&[revision]).on_elicitation(move |form| {
            ask.lock().unwrap().push(form.message.clone());
            async move { ElicitResult::accept([("interpretation", "snake")]) }
        });
        let server = host.connect(in_process(server(Options::default()).unwrap())).await.unwrap();
        for (ambiguous, questions) in [(false, 0), (true, 1)] {
            let (said, arguments) =
                (Arc::new(Mutex::new(Vec::new())), json!({ "topic": "Python", "ambiguous": ambiguous }));
            let hear = said.clone();
            let call = server.call("simulate-research-query", arguments);
            let call = call.on_progress(move |told: Progress| hear.lock().unwrap().extend(told.message));
            let report = call.await.unwrap().text();
            let title = if ambiguous { "Python (snake)" } else { "Python" };
            assert!(report.starts_with(&format!("# Research Report: {title}\n")), "{revision}: {report}");
            assert_eq!(report.contains("- **Clarification**: snake"), ambiguous);
            assert_eq!(asked.lock().unwrap().len(), questions, "{revision}");
            let said = said.lock().unwrap();
            let heard: Vec<_> = stages.iter().filter(|stage| said.iter().any(|one| one == *stage)).collect();
            // Looks at it are a second apart, as are its stages: some are missed.
            assert!(heard.len() >= 2, "{revision}: {said:?}");
        }
        let unclear = asked.lock().unwrap().pop().unwrap();
        assert!(unclear.contains("\"Python\""), "{unclear}");
        // A client that cannot be asked gets a report all the same.
        let deaf = Client::new("h", "1").revisions(&[revision]);
        let server = deaf.connect(in_process(linchpin_everything::server(Options::default()).unwrap())).await.unwrap();
        let report =
            server.call("simulate-research-query", json!({ "topic": "rust", "ambiguous": true })).await.unwrap();
        assert!(report.text().starts_with("# Research Report: rust\n"), "{}", report.text());
    }
    let mut old = client(Options::default(), Revision::V2025_06_18).await;
    let refused = old.call("simulate-research-query", json!({ "topic": "rust" })).await.unwrap_err();
    assert_eq!(refused.code, -32601, "a client that knows no tasks is refused");
}
