//! The published servers beside ours: npm's archived `@modelcontextprotocol/server-brave-search` 0.6.2 and Brave's own
//! `@brave/brave-search-mcp-server` 2.1.4. Both ask one host that cannot be changed, so that only lists and what happens without a
//! request is compared.
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
use linchpin::transport::Child;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::PathBuf;

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
