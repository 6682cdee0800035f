//! The published server and ours side by side. The words are each server's own; what configurations and clients hold on to
//! is the same: names, arguments, addresses, the kinds of blocks, completions, the steps of progress.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Mutex};

use linchpin::client::{Client, Connection, Progress};
use linchpin::transport::Child;
use linchpin::transport::in_process;
use linchpin::types::elicit::ElicitResult;
use linchpin::types::version::Revision;
use linchpin_everything::{Options, server};
use serde_json::{Value, json};

/// Published, and left out here: they need a client that runs tasks.
const LEFT_OUT: &[&str] = &[
    "trigger-sampling-request-async",
    "trigger-elicitation-request-async",
    // Ours lists names, never values, and only when it is told to.
    "get-env",
];

fn host() -> Client {
    Client::new("beside-the-published", "1").revisions(&[Revision::V2025_11_25])
}

async fn theirs(host: &Client) -> Connection {
    let home = std::env::var_os("LINCHPIN_PUBLISHED").expect("LINCHPIN_PUBLISHED names where the packages are");
    let program = Path::new(&home).join("node_modules/.bin/mcp-server-everything");
    host.connect(Child::new(program)).await.expect("the published server starts")
}

async fn ours(host: &Client) -> Connection {
    host.connect(in_process(server(Options::default()).unwrap())).await.expect("ours starts")
}

async fn both() -> (Connection, Connection) {
    (theirs(&host()).await, ours(&host()).await)
}

async fn ask(server: &Connection, method: &str, params: &Value) -> Value {
    let answer = server.request(method, params).await;
    let answer = answer.unwrap_or_else(|error| panic!("{method} {params}: {error}"));
    serde_json::from_str(answer.as_json()).expect("JSON")
}

/// What of a list must be the same: the name or address of each, and which arguments it takes.
fn listed(answer: &Value, list: &str, name: &str) -> Vec<(String, Vec<String>)> {
    let all = answer[list].as_array().expect("a list");
    let mut found: Vec<_> = all
        .iter()
        .map(|one| {
            let prompt = one["arguments"].as_array().into_iter().flatten();
            let mut arguments: Vec<String> =
                prompt.map(|a| format!("{} {}", a["name"], a["required"] == true)).collect();
            let needed = &one["inputSchema"]["required"];
            let tool = one["inputSchema"]["properties"].as_object().into_iter().flatten();
            let is_needed = |name: &String| needed.as_array().is_some_and(|all| all.iter().any(|n| n == name));
            arguments.extend(tool.map(|(name, _)| format!("{name} {}", is_needed(name))));
            arguments.sort();
            (one[name].as_str().expect("a name").to_owned(), arguments)
        })
        .collect();
    found.sort();
    found
}

#[tokio::test]
#[ignore = "needs the published packages: cargo xtask test --only published"]
async fn everything_published_is_there_under_its_name_with_its_arguments() {
    let (theirs, ours) = both().await;
    for (method, list, name) in [
        ("tools/list", "tools", "name"),
        ("prompts/list", "prompts", "name"),
        ("resources/list", "resources", "uri"),
        ("resources/templates/list", "resourceTemplates", "uriTemplate"),
    ] {
        let here = listed(&ask(&ours, method, &json!({})).await, list, name);
        let there = listed(&ask(&theirs, method, &json!({})).await, list, name);
        assert!(!there.is_empty(), "{method}");
        for one in there.iter().filter(|(name, _)| !LEFT_OUT.contains(&name.as_str())) {
            let same = here.iter().find(|(name, _)| *name == one.0);
            assert_eq!(same, Some(one), "{method}");
        }
    }
}

/// The kinds of blocks, whom they are for, and the fields of structured content.
fn shape(result: &Value) -> Value {
    let blocks = result["content"].as_array().expect("content").iter();
    let blocks: Vec<Value> = blocks
        .map(|block| json!([block["type"], block["uri"], block["resource"]["uri"], block["annotations"]["audience"]]))
        .collect();
    let fields: Vec<&String> = result["structuredContent"].as_object().into_iter().flat_map(|all| all.keys()).collect();
    json!({"blocks": blocks, "fields": fields, "failed": result["isError"] == true})
}

#[tokio::test]
#[ignore = "needs the published packages: cargo xtask test --only published"]
async fn calls_answer_the_same_kinds_of_blocks() {
    let (theirs, ours) = both().await;
    for (tool, arguments) in [
        ("get-annotated-message", json!({"messageType": "error"})),
        ("get-annotated-message", json!({"messageType": "success", "includeImage": true})),
        ("get-annotated-message", json!({"messageType": "debug"})),
        ("get-tiny-image", json!({})),
        ("get-structured-content", json!({"location": "Chicago"})),
        ("get-resource-links", json!({"count": 4})),
        ("get-resource-reference", json!({"resourceType": "Text", "resourceId": 1})),
        ("get-resource-reference", json!({"resourceType": "Blob", "resourceId": 2})),
        ("get-sum", json!({"a": 1})),
    ] {
        let params = json!({"name": tool, "arguments": arguments});
        let (there, here) = (ask(&theirs, "tools/call", &params).await, ask(&ours, "tools/call", &params).await);
        assert_eq!(shape(&here), shape(&there), "{params}");
    }
}

#[tokio::test]
#[ignore = "needs the published packages: cargo xtask test --only published"]
async fn what_a_client_computes_with_is_the_same_to_the_letter() {
    let (theirs, ours) = both().await;
    let department = json!({"ref": {"type": "ref/prompt", "name": "completable-prompt"}, "argument": {"name": "department", "value": "E"}});
    for (method, params) in [
        ("tools/call", json!({"name": "echo", "arguments": {"message": "hello"}})),
        ("tools/call", json!({"name": "get-sum", "arguments": {"a": 1, "b": 2.5}})),
        ("tools/call", json!({"name": "trigger-long-running-operation", "arguments": {"duration": 0.2, "steps": 2}})),
        ("completion/complete", department),
    ] {
        assert_eq!(ask(&ours, method, &params).await, ask(&theirs, method, &params).await, "{params}");
    }
}

/// What a host sees of a research: the messages of its stages, the question, and the report as far as it is about the topic.
#[tokio::test]
#[ignore = "needs the published packages: cargo xtask test --only published"]
async fn a_research_has_the_same_stages_question_and_findings() {
    let mut seen = Vec::new();
    for is_ours in [false, true] {
        let asked = Arc::new(Mutex::new(Vec::new()));
        let ask = asked.clone();
        let host = host().on_elicitation(move |form| {
            ask.lock().unwrap().push((form.message.clone(), serde_json::to_value(&form.schema).unwrap()));
            async move { ElicitResult::accept([("interpretation", "historical")]) }
        });
        let server = if is_ours { ours(&host).await } else { theirs(&host).await };
        let said = Arc::new(Mutex::new(Vec::new()));
        let hear = said.clone();
        let call = server.call("simulate-research-query", json!({"topic": "bridges", "ambiguous": true}));
        let call = call.on_progress(move |told: Progress| hear.lock().unwrap().extend(told.message));
        let report = call.await.unwrap().text();
        let findings = report.split("\n---\n").next().unwrap_or_default().to_owned();
        // Looks at it are a second apart, as are its stages: one may be missed.
        let said: BTreeSet<String> = said.lock().unwrap().drain(..).collect();
        assert!(said.len() >= 4, "{said:?}");
        seen.push((asked.lock().unwrap().clone(), findings, said));
    }
    let [theirs, ours] = [&seen[0], &seen[1]];
    assert_eq!((&ours.0, &ours.1), (&theirs.0, &theirs.1));
    let mut known = ["Gathering sources", "Analyzing content", "Synthesizing findings", "Generating report"]
        .map(|stage| format!("{stage}..."))
        .to_vec();
    known.push("Found multiple interpretations for \"bridges\". Requesting clarification...".to_owned());
    known.push("Continuing with interpretation: \"historical\"...".to_owned());
    for (_, _, said) in &seen {
        assert!(said.iter().all(|message| known.contains(message)), "{said:?}");
    }
}
