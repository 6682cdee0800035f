//! A small table in the manner of other APIs: forms, failures with a status of success, tokens of pages in a body, nested JSON,
//! verbs in a path, a restriction by parameter, requests that are signed.

use bytes::Bytes;
use http::Request;
use linchpin::BoxFuture;
use linchpin::Server;
use linchpin::testing::site::{Do, Site, json};
use linchpin_kit::{ErrorKind, Service, ToolError};
use linchpin_rest::testing::{Suite, call};
use linchpin_rest::{
    Api, Authorize, Call, Key, Pages, Problems, Rest, Scope, Step, boolean, get, int, number, object, post, segment,
    slashed, specs, text,
};
use serde_json::{Value, json};

pub(crate) const CALLS: &[Call] = &[
    post("slack_post_message", "Post", "chat", "Posts a message.", "/chat.postMessage")
        .args(&[text("channel_id").wire("channel"), text("text")])
        .fixed(&[("unfurl_links", "false"), ("unfurl_media", "false")])
        .form(),
    post("slack_get_history", "History", "chat", "Reads messages.", "/conversations.history")
        .args(&[
            text("channel_id").wire("channel"),
            int("limit").range(1, 200).default("10"),
            boolean("inclusive").opt(),
        ])
        .form()
        .reads()
        .list("messages")
        .items("messages")
        .beside("has_more")
        .pages(Pages::Token { at: "response_metadata.next_cursor", param: "cursor" }),
    post("retrieve", "Retrieve", "kb", "Searches a knowledge base.", "/knowledgebases/{knowledge_base_id}/retrieve")
        .args(&[
            segment("knowledge_base_id"),
            text("query").wire("retrievalQuery.text"),
            int("n").wire("retrievalConfiguration.vector.numberOfResults").range(1, 100).default("3"),
            object("filter", r#"{"type":"object"}"#).wire("retrievalConfiguration.vector.filter").opt(),
            text("region").in_header().wire("x-region").opt(),
        ])
        .fixed(&[("retrievalConfiguration.kind", "VECTOR"), ("retrievalConfiguration.rerank", "true")])
        .headers(&[("x-fieldmask", "results.text")])
        .reads()
        .always(),
    get("project_files", "Files", "projects", "Lists files.", "/projects/{project_id}/files/{branch}:list")
        .args(&[slashed("project_id"), segment("branch"), number("since", 0.0, 1e12).in_query().opt()])
        .list("files")
        .pages(Pages::Count { param: "offset", first: 0, last: 1_000, more: "", step: Step::Item })
        .always(),
];

pub(crate) const API: Api = Api::new("slack", "Slack", "https://slack.example/api", CALLS)
    .key(Key::bearer(&["SLACK_BOT_TOKEN"]))
    .scope(Scope::Parameter("channel"))
    .problems(Problems::PLAIN.words(&[(0, "Slack API error")]).message(&["error", "needed"]).failed(failed));

pub(crate) const SERVICE: Service = Service { name: "slack", tools: &specs::<{ CALLS.len() }>(CALLS) };

fn failed(answer: &Value) -> Option<ErrorKind> {
    match (answer["ok"].as_bool(), answer["error"].as_str()) {
        (Some(false), Some("channel_not_found")) => Some(ErrorKind::NotFound),
        (Some(false), Some("missing_scope" | "not_authed")) => Some(ErrorKind::Denied),
        (Some(false), _) => Some(ErrorKind::Upstream { status: None }),
        _ => None,
    }
}

pub(crate) fn suite() -> Suite {
    Suite::new(&API, &SERVICE, include_str!("../contract/slack.json"))
}

#[tokio::test]
async fn every_row_makes_requests_that_the_description_allows() {
    suite().contract().await;
}

#[tokio::test]
async fn no_argument_leads_a_request_elsewhere() {
    suite().hostile_arguments().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_fails_every_row_says_what_happened() {
    suite().faults().await;
}

#[tokio::test]
async fn forms_and_nested_bodies_have_what_is_always_sent() {
    let site = suite().site().await;
    let connection = suite().connect(suite().config(&site)).await;
    call(&connection, "slack_post_message", json!({ "channel_id": "C1", "text": "a&b=<!channel>" })).await;
    let filter = json!({ "equals": { "key": "a", "value": 1 } });
    let arguments = json!({ "knowledge_base_id": "KB", "query": "q", "filter": filter, "region": "eu" });
    call(&connection, "retrieve", arguments).await;
    call(&connection, "project_files", json!({ "project_id": "group/sub", "branch": "main", "since": 1.5 })).await;
    let seen = site.requests();
    let body = |n: usize| String::from_utf8(seen[n].body.clone()).unwrap();
    assert_eq!(body(0), "channel=C1&text=a%26b%3D%3C%21channel%3E&unfurl_links=false&unfurl_media=false");
    let want = json!({
        "retrievalQuery": { "text": "q" },
        "retrievalConfiguration": { "vector": { "numberOfResults": 3, "filter": filter }, "kind": "VECTOR", "rerank": true },
    });
    assert_eq!(serde_json::from_str::<Value>(&body(1)).unwrap(), want);
    assert_eq!((seen[1].header("x-region"), seen[1].header("x-fieldmask")), (Some("eu"), Some("results.text")));
    assert_eq!(seen[2].target, "/api/projects/group%2Fsub/files/main:list?since=1.5");
}

#[tokio::test]
async fn a_failure_with_a_status_of_success_is_a_failure() {
    for (said, kind, words) in [
        (json!({ "ok": false, "error": "channel_not_found" }), "not_found", "channel_not_found"),
        (
            json!({ "ok": false, "error": "missing_scope", "needed": "chat:write" }),
            "denied",
            "missing_scope\nchat:write",
        ),
        (json!({ "ok": false, "error": "fatal" }), "upstream", "fatal"),
    ] {
        let site = Site::saying(json(200, "", &said)).await;
        let connection = suite().connect(suite().config(&site)).await;
        let told = call(&connection, "slack_post_message", json!({ "channel_id": "C1", "text": "t" })).await;
        assert!(told.failed && told.text.starts_with("Slack API error"), "{}", told.result);
        assert_eq!((told.kind.as_str(), &told.result["content"][1]["text"]), (kind, &json!(words)));
        assert_eq!(site.requests().len(), 1);
    }
}

#[tokio::test]
async fn pages_with_a_token_and_pages_by_offset_are_read_to_their_end() {
    let site = Site::new(|_, seen| {
        let asked = if seen.method == "POST" { String::from_utf8_lossy(&seen.body).into_owned() } else { seen.query().to_owned() };
        let value = |name: &str| asked.split('&').find_map(|pair| pair.strip_prefix(name)?.parse::<usize>().ok());
        vec![Do::Write(json(200, "", &match value("cursor=").or(value("offset=")).unwrap_or(0) {
            n if n < 6 => {
                let next = if n < 4 { (n + 2).to_string() } else { String::new() };
                let items = if n < 4 || seen.method == "POST" { json!([n, n + 1]) } else { json!([]) };
                json!({ "ok": true, "messages": items, "files": items, "response_metadata": { "next_cursor": next } })
            }
            n => panic!("{n}"),
        }))]
    })
    .await;
    let connection = suite().connect(suite().config(&site)).await;
    for (tool, mut arguments, list, want) in [
        ("slack_get_history", json!({ "channel_id": "C1" }), "messages", 6),
        ("project_files", json!({ "project_id": "p", "branch": "b" }), "items", 4),
    ] {
        let mut all = Vec::new();
        loop {
            let told = call(&connection, tool, arguments.clone()).await;
            assert!(!told.failed, "{}", told.result);
            all.extend(told.structured[list].as_array().unwrap().clone());
            let Some(cursor) = told.structured.get("next_cursor") else { break };
            arguments["cursor"] = cursor.clone();
        }
        assert_eq!(json!(all), json!((0..want).collect::<Vec<_>>()), "{tool}");
    }
}

#[tokio::test]
async fn a_restriction_by_parameter_holds_wherever_the_parameter_is() {
    let site = suite().site().await;
    let connection = suite().connect(suite().config(&site).with(|config| config.only = vec!["C1".into()])).await;
    for (channel, allowed) in [("C1", true), ("C2", false), ("C1&channel=C2", false)] {
        for (tool, arguments) in [
            ("slack_post_message", json!({ "channel_id": channel, "text": "t" })),
            ("slack_get_history", json!({ "channel_id": channel })),
        ] {
            let before = site.requests().len();
            let told = call(&connection, tool, arguments).await;
            assert_eq!(
                (!told.failed, site.requests().len() > before),
                (allowed, allowed),
                "{channel}: {}",
                told.result
            );
        }
    }
}

/// Signs by the body, as AWS does.
struct Signed;

impl Authorize for Signed {
    fn authorize<'a>(&'a self, request: &'a mut Request<Bytes>) -> BoxFuture<'a, Result<(), ToolError>> {
        Box::pin(async move {
            let signature = format!("{} {} {}", request.method(), request.uri().path(), request.body().len());
            request.headers_mut().insert("x-signature", signature.parse().expect("a header"));
            Ok(())
        })
    }
}

#[tokio::test]
async fn every_attempt_is_signed_as_it_is_sent() {
    const UNSIGNED: Api = API.key(Key::NONE);
    let site = Site::new(|n, _| {
        vec![Do::Write(match n {
            0 => json(503, "retry-after: 0\r\n", &json!({})),
            1 => linchpin::testing::site::answer(307, "location: /other\r\n", ""),
            _ => json(200, "", &json!({})),
        })]
    })
    .await;
    let rest = Rest::open(&UNSIGNED, suite().config(&site)).unwrap().authorize(Signed);
    let server = rest.add_to(Server::new("t", "0"), &SERVICE).unwrap();
    let connection =
        linchpin::client::Client::new("t", "0").connect(linchpin::prelude::in_process(server)).await.unwrap();
    assert!(!call(&connection, "retrieve", json!({ "knowledge_base_id": "KB", "query": "q" })).await.failed);
    let signatures: Vec<String> =
        site.requests().iter().map(|seen| seen.header("x-signature").unwrap().to_owned()).collect();
    let first = signatures[0].replace("/other", "/api/knowledgebases/KB/retrieve");
    assert_eq!(signatures, [first.clone(), first.clone(), first.replace("/api/knowledgebases/KB/retrieve", "/other")]);
    assert!(site.requests().iter().all(|seen| seen.header("authorization").is_none()));
}
