//! Our tool beside npm's archived `@modelcontextprotocol/server-everart` 0.6.2, and our requests beside the types of npm's `everart`
//! 1.2.2, which it uses.
//!
//! Differences that are meant, each with its reason: `image_count` is an integer from 1 to 4, because all images are returned;
//! the resource is a list as JSON instead of an empty image.

use crate::rows::suite;
use linchpin::client::Client;
use linchpin::testing::site::{Seen, Site};
use linchpin::transport::Child;
use linchpin_rest::testing::{KEY, call, led};
use serde_json::{Value, json};
use std::path::PathBuf;

fn home() -> PathBuf {
    let root = std::env::var_os("LINCHPIN_PUBLISHED").expect("LINCHPIN_PUBLISHED names an installation");
    PathBuf::from(root).join("node_modules")
}

#[tokio::test]
#[ignore = "needs the published packages: cargo xtask test --only published"]
async fn the_archived_server_has_the_same_tool_arguments_and_resource() {
    let child = Child::new(home().join(".bin/mcp-server-everart")).env("EVERART_API_KEY", "k");
    let theirs = Client::new("test", "0").connect(child).await.expect("the published server starts");
    let site = suite().site().await;
    let ours = suite().connect(suite().config(&site)).await;
    let (their, our) = (theirs.tools().await.unwrap(), ours.tools().await.unwrap());
    assert_eq!((their.len(), &their[0].name), (1, &our[0].name));
    let schema = |text: &str| serde_json::from_str::<Value>(text).expect("JSON");
    let (their, our) = (schema(their[0].input_schema.get()), schema(our[0].input_schema.get()));
    assert_eq!(their["required"], our["required"]);
    for (name, argument) in their["properties"].as_object().unwrap() {
        assert_eq!(argument["default"], our["properties"][name]["default"], "{name}");
    }
    assert_eq!(theirs.resources().await.unwrap()[0].uri, "everart://images");
}

/// Both servers ask the same double: the same requests, and texts that differ in what is said of a browser only.
#[tokio::test]
#[ignore = "needs the published packages: cargo xtask test --only published"]
async fn requests_and_texts_are_those_of_the_archived_server_without_its_browser() {
    let (their_site, our_site) = (suite().site().await, suite().site().await);
    let child = Child::new(home().join(".bin/mcp-server-everart")).env("EVERART_API_KEY", KEY);
    let child = child.envs(led("api.everart.ai", &their_site));
    let theirs = Client::new("test", "0").connect(child).await.expect("the published server starts");
    let ours = suite().connect(suite().config(&our_site)).await;
    let arguments = json!({ "prompt": "a \"cat\"", "model": "9000", "image_count": 2 });
    let their = call(&theirs, "generate_image", arguments.clone()).await;
    let our = call(&ours, "generate_image", arguments).await;
    let words = their.text.replace("The image has been opened in your default browser.\n", "");
    assert_eq!(words, our.text, "{}", their.result);
    let asked = |site: &Site| {
        let of = |seen: &Seen| {
            let body: Value = serde_json::from_slice(&seen.body).unwrap_or_default();
            (seen.method.clone(), seen.target.clone(), seen.header("authorization").map(str::to_owned), body)
        };
        site.requests().iter().map(of).collect::<Vec<_>>()
    };
    assert_eq!(asked(&their_site), asked(&our_site));
}

#[tokio::test]
#[ignore = "needs the published packages: cargo xtask test --only published"]
async fn members_of_requests_and_states_are_those_of_everarts_own_client() {
    let read =
        |name: &str| std::fs::read_to_string(home().join("everart/dist/v1").join(name)).expect("everart is installed");
    let (types, code) = (read("generations.d.ts"), read("generations.js"));
    let site = suite().site().await;
    let connection = suite().connect(suite().config(&site)).await;
    call(&connection, "generate_image", json!({ "prompt": "x" })).await;
    let sent: Value = serde_json::from_slice(&site.requests()[0].body).unwrap();
    let is_sent = |name: &str| code.contains(&format!("body.{name} =")) || code.contains(&format!("        {name},\n"));
    for name in sent.as_object().unwrap().keys() {
        assert!(is_sent(name), "{name}");
    }
    assert!(!is_sent("imageCount") && !is_sent("style"), "controls");
    for state in ["STARTING", "PROCESSING", "SUCCEEDED", "FAILED", "CANCELED"] {
        assert!(types.contains(&format!("'{state}'")), "{state}");
    }
    for path in ["models/:id/generations", "generations/:id"] {
        assert!(code.contains(path), "{path}");
    }
}
