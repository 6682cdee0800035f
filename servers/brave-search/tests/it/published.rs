//! The published servers beside ours: npm's archived `@modelcontextprotocol/server-brave-search` 0.6.2 and Brave's own
//! `@brave/brave-search-mcp-server` 2.1.4: their lists, and of the archived one a search of the web, led to a double (it allows
//! itself one request a second).
//!
//! Differences that are meant, each with its reason:
//! - Arguments of Brave's server that are accepted and mean nothing here are not listed: `text_decorations` (results are text),
//!   the headers `api-version`, `accept`, `cache-control` and `user-agent` (they say nothing about a search), and for local search
//!   those that a search for places does not have.
//! - `country`, `search_lang` and `ui_lang` are words of a form, not lists of all codes: Brave adds codes, and the lists cost a
//!   model a thousand tokens.
//! - Rare arguments are accepted and not listed.
//! - Lists have an argument `cursor`.

use crate::rows::suite;
use linchpin::client::{Client, Connection};
use linchpin::testing::site::{Site, json as answer};
use linchpin::transport::Child;
use linchpin_rest::testing::{KEY, call, led};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::PathBuf;
use url::form_urlencoded::parse;

fn installed(name: &str) -> PathBuf {
    let root = std::env::var_os("LINCHPIN_PUBLISHED").expect("LINCHPIN_PUBLISHED names an installation");
    PathBuf::from(root).join("node_modules/.bin").join(name)
}

async fn theirs(name: &str) -> Connection {
    let child = Child::new(installed(name)).env("BRAVE_API_KEY", "k");
    Client::new("test", "0").connect(child).await.expect("the published server starts")
}

async fn ours() -> Connection {
    let site = suite().site().await;
    suite().connect(suite().config(&site)).await
}

fn schema(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

fn names(schema: &Value) -> BTreeSet<String> {
    schema["properties"].as_object().into_iter().flatten().map(|(name, _)| name.clone()).collect()
}

/// Both servers ask the same double: the same parameters (ours also say that results are to be without markup, and from the web
/// only), and texts that differ in markup only.
#[tokio::test]
#[ignore = "needs the published packages: cargo xtask test --only published"]
async fn a_search_of_the_web_asks_and_says_what_the_archived_server_does() {
    let result = |n: u32, text: &str| json!({ "title": format!("Result {n}"), "url": format!("https://{n}.example"), "description": text });
    let found = json!({ "web": { "results": [result(1, "A <strong>boat</strong>"), result(2, "Two boats")] } });
    let sites = [Site::saying(answer(200, "", &found)).await, Site::saying(answer(200, "", &found)).await];
    let child = Child::new(installed("mcp-server-brave-search")).env("BRAVE_API_KEY", KEY);
    let child = child.envs(led("api.search.brave.com", &sites[0]));
    let theirs = Client::new("test", "0").connect(child).await.expect("the published server starts");
    let ours = suite().connect(suite().config(&sites[1])).await;
    let arguments = json!({ "query": "boats & \"more\" ä", "count": 5 });
    let (their, our) =
        (call(&theirs, "brave_web_search", arguments.clone()).await, call(&ours, "brave_web_search", arguments).await);
    assert_eq!(their.text.replace("<strong>", "").replace("</strong>", ""), our.text, "{}", their.result);
    let [theirs, ours] = sites.map(|site| {
        let seen = site.requests().pop().unwrap();
        let mut query: BTreeSet<(String, String)> = parse(seen.query().as_bytes()).into_owned().collect();
        query.retain(|(name, _)| !["result_filter", "text_decorations"].contains(&name.as_str()));
        (site.requests().len(), seen.path().to_owned(), query, seen.header("x-subscription-token").map(str::to_owned))
    });
    assert_eq!(theirs, ours);
}

#[tokio::test]
#[ignore = "needs the published packages: cargo xtask test --only published"]
async fn the_archived_server_has_the_first_two_tools_with_the_same_arguments() {
    let (theirs, ours) = (theirs("mcp-server-brave-search").await, ours().await);
    let (theirs, ours) = (theirs.tools().await.unwrap(), ours.tools().await.unwrap());
    assert_eq!(theirs.len(), 2);
    for (at, tool) in theirs.iter().enumerate() {
        assert_eq!(tool.name, ours[at].name, "the same order");
        let (their, our) = (schema(tool.input_schema.get()), schema(ours[at].input_schema.get()));
        assert_eq!(their["required"], our["required"]);
        for name in names(&their) {
            assert_eq!(their["properties"][&name]["default"], our["properties"][&name]["default"], "{name}");
        }
    }
}

#[tokio::test]
#[ignore = "needs the published packages: cargo xtask test --only published"]
async fn braves_own_server_has_the_same_tools_and_arguments() {
    let (theirs, ours) = (theirs("brave-search-mcp-server").await, ours().await);
    let (theirs, ours) = (theirs.tools().await.unwrap(), ours.tools().await.unwrap());
    let listed =
        |tools: &[linchpin::types::tool::Tool]| tools.iter().map(|tool| tool.name.clone()).collect::<BTreeSet<_>>();
    assert_eq!(listed(&theirs), listed(&ours));
    for tool in theirs.iter() {
        let our = ours.iter().find(|our| our.name == tool.name).unwrap();
        let row = linchpin_brave_search::CALLS.iter().find(|row| row.name() == tool.name).unwrap();
        let (their, our) = (schema(tool.input_schema.get()), schema(our.input_schema.get()));
        let missing: Vec<String> = names(&their).into_iter().filter(|name| !row.accepts(name)).collect();
        assert!(missing.is_empty(), "{}: {missing:?}", tool.name);
        let more: Vec<String> = names(&our).difference(&names(&their)).cloned().collect();
        assert!(more.iter().all(|name| name == "cursor"), "{}: {more:?}", tool.name);
        let required = |schema: &Value| schema["required"].as_array().cloned().unwrap_or_default();
        assert_eq!(required(&their), required(&our), "{}", tool.name);
        for name in names(&their).intersection(&names(&our)) {
            let (their, our) = (&their["properties"][name], &our["properties"][name]);
            for bound in ["minimum", "maximum"] {
                let (their, our) = (their[bound].as_f64(), our[bound].as_f64());
                // Theirs has the limits of a machine's integers where it has none.
                assert!(their == our || name == "radius", "{} {name} {bound}: {their:?} {our:?}", tool.name);
            }
        }
    }
}
