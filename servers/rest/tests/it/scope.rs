//! What an operator restricts a server to.

use crate::github::{API, SERVICE, suite};
use linchpin::Server;
use linchpin::client::Client;
use linchpin::prelude::in_process;
use linchpin::testing::site::{Site, json as answer_json};
use linchpin_kit::{Given, Options, Vars};
use linchpin_rest::testing::call;
use linchpin_rest::{Api, Config, Key, KeyScopes, Rest};
use serde_json::{Value, json};

#[tokio::test]
async fn a_restriction_holds_for_every_row_and_every_step() {
    let suite = suite();
    let site = suite.site().await;
    let connection =
        suite.connect(suite.config(&site).with(|config| config.only = vec!["o/r".into(), "o/s".into()])).await;
    let elsewhere = |arguments: Value| {
        let mut arguments = arguments;
        arguments["owner"] = json!("other");
        arguments
    };
    for (tool, arguments) in [
        ("list_issues", json!({ "owner": "o", "repo": "r" })),
        ("create_issue", json!({ "owner": "o", "repo": "R", "title": "T" })),
        ("merge_pull_request", json!({ "owner": "o", "repo": "s", "pull_number": 1 })),
        ("get_file_contents", json!({ "owner": "o", "repo": "r", "path": "a" })),
        (
            "push_file",
            json!({ "owner": "o", "repo": "r", "branch": "main", "file": { "path": "a", "content": "" }, "message": "m" }),
        ),
    ] {
        let told = call(&connection, tool, arguments.clone()).await;
        assert!(!told.failed, "{tool}: {}", told.result);
        let before = site.requests().len();
        let told = call(&connection, tool, elsewhere(arguments)).await;
        assert!(
            told.failed && told.kind == "denied" && told.text.contains("Allowed: o/r, o/s."),
            "{tool}: {}",
            told.result
        );
        assert_eq!(site.requests().len(), before, "{tool}");
    }
    // What names no repository is narrowed, or is about none.
    let told = call(&connection, "search_issues", json!({ "q": "bug" })).await;
    assert_eq!(told.structured["items"], json!([{ "number": 1, "title": "One" }]), "what a search finds elsewhere");
    assert_eq!(site.requests().last().unwrap().query(), "q=bug+repo%3Ao%2Fr+repo%3Ao%2Fs");
    assert!(!call(&connection, "get_me", json!({})).await.failed);
}

#[tokio::test]
async fn in_lockdown_what_people_without_rights_wrote_is_left_out() {
    let suite = suite();
    let site = suite.site().await;
    for (lockdown, numbers) in [(false, json!([1, 2])), (true, json!([1]))] {
        let connection = suite.connect(suite.config(&site).with(|config| config.lockdown = lockdown)).await;
        let told = call(&connection, "list_issues", json!({ "owner": "o", "repo": "r" })).await;
        let items: Vec<&Value> =
            told.structured["items"].as_array().unwrap().iter().map(|item| &item["number"]).collect();
        assert_eq!(json!(items), numbers);
        assert_eq!(told.result.to_string().contains("[1 left out: "), lockdown, "{}", told.result);
    }
}

#[tokio::test]
async fn read_only_leaves_no_row_that_writes() {
    let suite = suite();
    let site = suite.site().await;
    let connection = suite.connect(suite.config(&site).with(|config| config.tools.read_only = true)).await;
    let names: Vec<String> = connection.tools().await.unwrap().iter().map(|tool| tool.name.clone()).collect();
    assert_eq!(names, ["list_issues", "get_issue", "get_file_contents", "search_issues", "get_me"]);
}

#[tokio::test]
async fn a_key_whose_scopes_allow_no_writing_leaves_no_row_that_writes() {
    const fn of(keys: &'static [&'static str]) -> Api {
        API.key(Key::bearer(&["KEY"]).scopes(KeyScopes { header: "x-scopes", keys, write: &["repo", "public"] }))
    }
    const OURS: Api = of(&["other", "k3y-"]);
    const OTHERS: Api = of(&["other"]);
    for (api, header, left) in [
        (&OURS, "x-scopes: gist, read:org\r\n", 5),
        (&OURS, "x-scopes: \r\n", 5),
        (&OURS, "x-scopes: gist, public\r\n", SERVICE.tools.len()),
        (&OURS, "", SERVICE.tools.len()),
        (&OTHERS, "x-scopes: gist\r\n", SERVICE.tools.len()),
    ] {
        let site = Site::saying(answer_json(200, header, &json!({ "login": "ann" }))).await;
        let server = Rest::open(api, suite().config(&site)).unwrap().add_to(Server::new("t", "0"), &SERVICE).unwrap();
        let connection = Client::new("t", "0").connect(in_process(server)).await.unwrap();
        let count = async || connection.tools().await.unwrap().len();
        assert_eq!(count().await, SERVICE.tools.len());
        assert!(!call(&connection, "get_me", json!({})).await.failed);
        for _ in 0..2 {
            assert_eq!(count().await, left, "{header}");
        }
    }
}

#[tokio::test]
async fn hints_follow_from_the_verb_and_what_the_row_says() {
    let suite = suite();
    let site = suite.site().await;
    let connection = suite.connect(suite.config(&site)).await;
    for tool in connection.tools().await.unwrap().iter() {
        let hints = tool.annotations.clone().unwrap();
        let said = [hints.read_only_hint, hints.destructive_hint, hints.idempotent_hint].map(Option::unwrap);
        let want = match tool.name.as_str() {
            "create_issue" => [false, false, false],
            "update_issue" => [false, true, true],
            "merge_pull_request" | "push_file" => [false, true, false],
            _ => [true, false, true],
        };
        assert_eq!((said, hints.open_world_hint), (want, Some(true)), "{}", tool.name);
    }
}

#[test]
fn the_environment_says_what_flags_say_and_nothing_to_restrict_is_an_error() {
    let get = |name: &str| {
        let value = match name {
            "GITHUB_TOKEN" => "hidden",
            "GITHUB_API_URL" => "https://git.example/api/v3",
            "MCP_GITHUB_TIMEOUT" => "5",
            "MCP_GITHUB_PACE_MS" => "250",
            "MCP_GITHUB_PROXY_URL" => "socks://me:hidden@p:1",
            "MCP_GITHUB_READ_ONLY" => "true",
            _ => return None,
        };
        Some(value.to_owned())
    };
    let mut config = Config::read_as("MCP_GITHUB", Vars::new(&get), &Given::default()).unwrap();
    config.settle_for(&API, Vars::new(&get)).unwrap();
    assert_eq!((config.timeout_ms, config.pace_ms), (5_000, Some(250)));
    assert_eq!(config.api_url.as_deref(), Some("https://git.example/api/v3"));
    assert!(config.tools.read_only && !format!("{config:?}").contains("hidden"), "{config:?}");
    assert!(!format!("{:?}", Rest::open(&API, config.clone()).unwrap()).contains("hidden"));
    const OTHER: Api = Api::new("other", "Other", "https://api.other.example", &[]);
    config.only = vec!["o/r".into()];
    let error = Rest::open(&OTHER, config).unwrap_err();
    assert_eq!(error.message(), "Other has nothing that it could be restricted to");
}
