//! The published server and ours side by side. The words are each server's own; what configurations and clients hold on to
//! is the same: names, arguments, addresses, the kinds of blocks, completions, the steps of progress.

use std::path::Path;

use linchpin::client::{Client, Connection};
use linchpin::transport::Child;
use linchpin::transport::in_process;
use linchpin::types::version::Revision;
use linchpin_everything::{Options, server};
use serde_json::{Value, json};

/// Published, and left out here: they need tasks, or depend on what the client said it can do.
const LEFT_OUT: &[&str] = &[
    "simulate-research-query",
    "trigger-sampling-request-async",
    "trigger-elicitation-request-async",
    // Ours lists names, never values, and only when it is told to.
    "get-env",
];

async fn both() -> (Connection, Connection) {
    let home = std::env::var_os("LINCHPIN_PUBLISHED").expect("LINCHPIN_PUBLISHED names where the packages are");
    let program = Path::new(&home).join("node_modules/.bin/mcp-server-everything");
    let client = Client::new("beside-the-published", "1").revisions(&[Revision::V2025_11_25]);
    let theirs = client.connect(Child::new(program)).await.expect("the published server starts");
    let ours = client.connect(in_process(server(Options::default()).unwrap())).await.expect("ours starts");
    (theirs, ours)
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
