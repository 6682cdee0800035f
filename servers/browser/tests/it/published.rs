//! The seven tools beside npm's archived `@modelcontextprotocol/server-puppeteer` 2025.5.12 in the same browser, on the same
//! pages.
//!
//! Differences that are meant, each with its reason: `launchOptions` and `allowDangerous` are the operator's; sizes are whole
//! numbers; `puppeteer_fill` replaces what is in the field; an option that is not there is an error; objects in the
//! console are shown; an element that does not appear is given up after 5 s instead of 30.

use crate::common::*;
use linchpin::client::Client;
use linchpin::transport::Child;
use serde_json::{Value, json};
use std::path::PathBuf;

/// With an icon, which browsers with a window ask for even where they have none.
const PAGE: &str = r#"<!doctype html><title>Fixture</title><link rel=icon href="data:,">
<input id=i><select id=s><option value=a>A<option value=b>B</select>
<button id=b onclick="this.textContent='clicked'">Press</button><button id=h style="display:none">hidden</button>
<script>console.log('hello')</script>"#;

/// The published server with the browser that ours finds.
async fn theirs() -> Caller {
    let home = std::env::var_os("LINCHPIN_PUBLISHED").expect("LINCHPIN_PUBLISHED names an installation");
    let program = PathBuf::from(home).join("node_modules/.bin/mcp-server-puppeteer");
    let path = std::env::var_os("PATH").expect("a PATH");
    let names = ["chromium-headless-shell", "google-chrome", "chromium", "chromium-browser", "microsoft-edge"];
    let browser = std::env::split_paths(&path).flat_map(|folder| names.map(|name| folder.join(name)));
    let browser = browser.into_iter().find(|file| file.is_file()).expect("a browser");
    let options = json!({ "executablePath": browser, "headless": true, "args": ["--no-sandbox"] });
    let child = Child::new(program).env("PUPPETEER_LAUNCH_OPTIONS", options.to_string()).env("ALLOW_DANGEROUS", "true");
    let connection = Client::new("test", "0").connect(child).await.expect("the published server starts");
    Caller { connection, changes: Default::default() }
}

/// Texts of an answer, pictures by their first bytes; an error's first line.
async fn told(caller: &Caller, tool: &str, arguments: &Value) -> Result<Vec<String>, String> {
    match caller.call(tool, arguments.clone()).await {
        Ok((blocks, _)) => Ok(blocks
            .into_iter()
            .map(|block| match block.find("iVBOR") {
                Some(at) => block[..at + 5].to_owned(),
                None => block,
            })
            .collect()),
        Err(error) => Err(error.lines().next().unwrap_or_default().to_owned()),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs the published packages and a browser: cargo xtask test --only published"]
async fn the_archived_server_has_the_same_tools_texts_and_resources() {
    let site = site(&[("/", HTML, PAGE.to_owned())]).await;
    let config = config(&[&site]).with(|config| config.tools.toolsets = vec!["puppeteer".to_owned()]);
    let (theirs, ours) = (theirs().await, Caller::of(config).await);
    let (their_tools, our_tools) = (theirs.connection.tools().await.unwrap(), ours.connection.tools().await.unwrap());
    let schema = |text: &str| serde_json::from_str::<Value>(text).expect("JSON");
    assert_eq!(their_tools.len(), 7);
    for (their, our) in their_tools.iter().zip(our_tools.iter()) {
        assert_eq!((&their.name, &their.description), (&our.name, &our.description));
        let (their, our) = (schema(their.input_schema.get()), schema(our.input_schema.get()));
        assert_eq!(their["required"], our["required"]);
        let names = |schema: &Value| {
            let mut names: Vec<String> = schema["properties"].as_object().unwrap().keys().cloned().collect();
            names.sort();
            names
        };
        assert_eq!(names(&their), names(&our));
    }
    for (tool, arguments) in [
        ("puppeteer_navigate", json!({ "url": site.url("/") })),
        ("puppeteer_screenshot", json!({ "name": "one" })),
        ("puppeteer_screenshot", json!({ "name": "two words/é", "selector": "#b", "encoded": true })),
        ("puppeteer_screenshot", json!({ "name": "x", "selector": "#zz" })),
        (
            "puppeteer_evaluate",
            json!({ "script": "setTimeout(() => document.body.append(Object.assign(document.createElement('input'), { id: 'late' })), 500); 1" }),
        ),
        ("puppeteer_fill", json!({ "selector": "#late", "value": "came" })),
        ("puppeteer_fill", json!({ "selector": "#i", "value": "new" })),
        ("puppeteer_evaluate", json!({ "script": "i.value" })),
        ("puppeteer_select", json!({ "selector": "#s", "value": "b" })),
        ("puppeteer_click", json!({ "selector": "#b" })),
        ("puppeteer_click", json!({ "selector": "#none" })),
        ("puppeteer_click", json!({ "selector": "#h" })),
        ("puppeteer_hover", json!({ "selector": "#b" })),
        ("puppeteer_evaluate", json!({ "script": "[i.value, s.value, b.textContent, late.value]" })),
        ("puppeteer_evaluate", json!({ "script": "console.log('a'); console.warn('b'); 1+1" })),
        ("puppeteer_evaluate", json!({ "script": "return 5" })),
        ("puppeteer_evaluate", json!({ "script": "(() => { throw new Error('x') })()" })),
        ("puppeteer_evaluate", json!({ "script": "undefined" })),
        ("puppeteer_evaluate", json!({ "script": "new Promise(r => setTimeout(() => r(7), 50))" })),
    ] {
        assert_eq!(told(&theirs, tool, &arguments).await, told(&ours, tool, &arguments).await, "{tool} {arguments}");
    }
    for uri in ["console://logs", "screenshot://one"] {
        let (their, our) = (theirs.connection.read(uri).await.unwrap(), ours.connection.read(uri).await.unwrap());
        let [their, our] = [their, our].map(|read| serde_json::to_value(&read.contents[0]).expect("JSON"));
        assert_eq!((&their["mimeType"], &their["text"]), (&our["mimeType"], &our["text"]), "{uri}");
        assert_eq!(their["blob"].is_string(), our["blob"].is_string(), "{uri}");
    }
    let listed = async |caller: &Caller| {
        let list = caller.connection.resources().await.unwrap();
        list.iter().map(|one| (one.uri.clone(), one.name.clone(), one.mime_type.clone())).collect::<Vec<_>>()
    };
    assert_eq!(listed(&theirs).await, listed(&ours).await);
}
