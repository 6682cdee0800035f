//! Several rows as one tool, and rules across calls.

use bytes::Bytes;
use http::{Request, Response};
use linchpin::client::{Client, Connection};
use linchpin::prelude::in_process;
use linchpin::{BoxFuture, Server};
use linchpin_kit::{Service, ToolError};
use linchpin_rest::testing::call;
use linchpin_rest::{
    Api, Args, Call, Config, Guard, Rest, Scope, get, int, methods, patch, post, segment, specs, text,
};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

const LIST: Call = get("list", "List", "notes", "", "/{folder}/notes")
    .args(&[segment("folder"), int("size").range(1, 9).default("5"), text("at").opt().aliases(&["sha"])])
    .list("")
    .keep("id body:5")
    .trusted(|note| note["by"] == "us");
const ADD: Call = post("add", "Add", "notes", "", "/{folder}/notes").args(&[segment("folder"), text("title")]);
const CHANGE: Call = patch("change", "Change", "notes", "", "/{folder}/notes/{id}")
    .args(&[segment("folder"), int("id"), text("sha").opt()])
    .trusted(|note| note["by"] == "us");

const CALLS: &[Call] = &[
    methods("notes", "Notes", "notes", "Notes.", &[("list", LIST.keep("id")), ("add", ADD), ("change", CHANGE)]),
    LIST,
];
const API: Api = Api::new("notes", "Notes", "https://api.notes.example", CALLS).scope(Scope::Segments(&["folder"]));
const SERVICE: Service = Service { name: "notes", tools: &specs::<{ CALLS.len() }>(CALLS) };

type Lines = Arc<Mutex<Vec<String>>>;

/// The server over a function that writes down what is asked.
async fn connected(change: impl FnOnce(&mut Config), rule: Option<Rule>) -> (Connection, Lines) {
    let lines = Lines::default();
    let heard = lines.clone();
    let exchange = move |request: Request<Bytes>| {
        let line = format!("{} {} {}", request.method(), request.uri(), String::from_utf8_lossy(request.body()));
        heard.lock().unwrap().push(line.replace("https://api.notes.example", ""));
        let notes = json!([{ "id": 1, "body": "long words", "by": "us" }, { "id": 2, "by": "them" }]);
        let note = json!({ "id": 2, "body": "their words", "by": "them" });
        Response::new(Bytes::from(if request.method() == "GET" { notes } else { note }.to_string()))
    };
    let rest = Rest::open_over(&API, Config::default().with(change), exchange).unwrap();
    let rest = if let Some(rule) = rule { rest.guard(rule) } else { rest };
    let server = rest.add_to(Server::new("test", "0"), &SERVICE).unwrap();
    (Client::new("test", "0").check_results(true).connect(in_process(server)).await.unwrap(), lines)
}

#[tokio::test]
async fn a_tool_of_several_rows_has_the_arguments_of_all_and_each_call_those_of_one() {
    let (connection, lines) = connected(|_| {}, None).await;
    let tools = connection.tools().await.unwrap();
    let schema: Value = serde_json::from_str(tools[0].input_schema.get()).unwrap();
    let names: Vec<&String> = schema["properties"].as_object().unwrap().keys().collect();
    assert_eq!(names, ["method", "folder", "size", "at", "title", "id", "sha"]);
    assert_eq!(schema["required"], json!(["method", "folder"]));
    assert_eq!(schema["properties"]["method"]["enum"], json!(["list", "add", "change"]));
    assert_eq!(
        schema["properties"]["size"].get("default"),
        None,
        "clients that send defaults would send it with `add`"
    );
    let hints = tools[0].annotations.clone().unwrap();
    assert_eq!((hints.read_only_hint, hints.destructive_hint), (Some(false), Some(true)));

    for (arguments, sent) in [
        // An alias of one method is an argument of another.
        (json!({ "method": "list", "folder": "f", "sha": "x" }), "GET /f/notes?size=5&at=x "),
        (json!({ "method": "add", "folder": "f", "title": "t" }), r#"POST /f/notes {"title":"t"}"#),
        (json!({ "method": "change", "folder": "f", "id": 2, "sha": "x" }), r#"PATCH /f/notes/2 {"sha":"x"}"#),
    ] {
        let told = call(&connection, "notes", arguments).await;
        assert!(!told.failed, "{}", told.result);
        assert_eq!(lines.lock().unwrap().last().unwrap(), sent);
    }
    let before = lines.lock().unwrap().len();
    for (arguments, said) in [
        (json!({ "method": "add", "folder": "f", "title": "t", "size": 3 }), "Unknown argument: size"),
        (json!({ "method": "add", "folder": "f" }), "Missing required argument: title"),
        (json!({ "method": "list", "folder": ".." }), "Invalid argument folder"),
    ] {
        let told = call(&connection, "notes", arguments).await;
        assert!(told.failed && told.text.contains(said), "{}", told.result);
    }
    assert_eq!(lines.lock().unwrap().len(), before);
}

#[tokio::test]
async fn each_row_keeps_what_it_says_and_tells_what_it_cut() {
    let (connection, _) = connected(|_| {}, None).await;
    let short = call(&connection, "notes", json!({ "method": "list", "folder": "f" })).await;
    assert_eq!(short.structured["items"], json!([{ "id": 1 }, { "id": 2 }]));
    let long = call(&connection, "list", json!({ "folder": "f" })).await;
    assert_eq!(long.structured["items"][0], json!({ "id": 1, "body": "long " }));
    assert!(long.result.to_string().contains("[items.body: cut at character 5 of 10.]"), "{}", long.result);
}

#[tokio::test]
async fn what_was_done_is_no_failure_where_its_answer_may_not_be_shown() {
    let (connection, _) = connected(|config| config.lockdown = true, None).await;
    let told = call(&connection, "notes", json!({ "method": "change", "folder": "f", "id": 2 })).await;
    assert!(!told.failed && !told.result.to_string().contains("their words"), "{}", told.result);
    assert!(told.result.to_string().contains("[Done. The answer is left out"), "{}", told.result);
}

/// No folder may be written to after another one was read.
#[derive(Clone, Default)]
struct Rule(Lines);

impl Guard for Rule {
    fn before<'a>(&'a self, _: &'a Rest, call: &'a Call, args: &'a Args) -> BoxFuture<'a, Result<(), ToolError>> {
        let read = self.0.lock().unwrap();
        let elsewhere = call.writes() && read.iter().any(|folder| folder != args.text("folder"));
        let answer = if elsewhere { Err(ToolError::denied("Not after reading another folder")) } else { Ok(()) };
        Box::pin(async move { answer })
    }

    fn after(&self, _: &Call, args: &Args, answer: &Value) {
        assert!(!answer.is_null());
        self.0.lock().unwrap().push(args.text("folder").to_owned());
    }
}

#[tokio::test]
async fn a_rule_knows_the_row_its_arguments_and_earlier_answers() {
    let (connection, lines) = connected(|_| {}, Some(Rule::default())).await;
    let add = |folder: &str| json!({ "method": "add", "folder": folder, "title": "t" });
    assert!(!call(&connection, "notes", add("a")).await.failed);
    assert!(!call(&connection, "notes", json!({ "method": "list", "folder": "b" })).await.failed);
    let told = call(&connection, "notes", add("a")).await;
    assert!(told.failed && told.kind == "denied" && told.text.starts_with("Not after"), "{}", told.result);
    assert_eq!(lines.lock().unwrap().len(), 2);
}
