//! Our requests beside the types that Sentry publishes about its API: npm's `@sentry/api` 0.1.0, which is made from Sentry's own
//! description. The published server (PyPI's `mcp-server-sentry` 2025.1.14) does not start any more, so that its list is held
//! against a copy of what it said.
//!
//! What the types lack is named below: pages of some lists (which the description of August 2026 has), issues without an
//! organization and shared issues (which no description has).

use crate::rows::suite;
use linchpin_rest::testing::call;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Parameters that came after these types were made.
const NEWER: [&str; 4] = ["per_page", "cursor", "query", "sort"];

/// What one operation may have.
#[derive(Debug)]
struct Operation {
    path: Vec<String>,
    query: BTreeSet<String>,
    body: BTreeSet<String>,
}

/// The operations in a file of types: each type has members of its own at four blanks, and theirs at eight.
fn operations(types: &str) -> Vec<Operation> {
    let mut all = Vec::new();
    let (mut part, mut query, mut body) = ("", BTreeSet::new(), BTreeSet::new());
    for line in types.lines() {
        if line.starts_with("export type ") {
            (part, query, body) = ("", BTreeSet::new(), BTreeSet::new());
        }
        let own = line.strip_prefix("    ").filter(|rest| !rest.starts_with(' ')).unwrap_or_default();
        if let Some(path) = own.strip_prefix("url: '").and_then(|rest| rest.strip_suffix("';")) {
            let path = path.split('/').map(str::to_owned).collect();
            all.push(Operation { path, query: std::mem::take(&mut query), body: std::mem::take(&mut body) });
        } else if own.ends_with('{') {
            part = own.trim_end_matches(['{', ' ', ':', '?']);
        }
        let inner = line.strip_prefix("        ").filter(|rest| rest.starts_with(|c: char| c.is_ascii_alphabetic()));
        if let Some((name, _)) = inner.and_then(|inner| inner.split_once(':')) {
            let name = name.trim_end_matches('?').to_owned();
            match part {
                "query" => _ = query.insert(name),
                "body" => _ = body.insert(name),
                _ => {}
            }
        }
    }
    all
}

/// What no operation at this path has.
fn unknown(all: &[Operation], path: &str, query: &BTreeSet<String>, body: &BTreeSet<String>) -> Option<Vec<String>> {
    let parts: Vec<&str> = path.split('/').collect();
    let is_here = |operation: &&Operation| {
        operation.path.len() == parts.len()
            && operation.path.iter().zip(&parts).all(|(known, part)| known.starts_with('{') || known == part)
    };
    let here = all.iter().filter(is_here).map(|operation| {
        let missing = query.difference(&operation.query).filter(|name| !NEWER.contains(&name.as_str()));
        missing.chain(body.difference(&operation.body)).cloned().collect::<Vec<_>>()
    });
    here.min_by_key(Vec::len)
}

#[tokio::test]
#[ignore = "needs the published packages: cargo xtask test --only published"]
async fn paths_and_parameters_are_those_that_sentry_publishes() {
    let home = std::env::var_os("LINCHPIN_PUBLISHED").expect("LINCHPIN_PUBLISHED names an installation");
    let file = std::path::PathBuf::from(home).join("node_modules/@sentry/api/dist/types.gen.d.ts");
    let all = operations(&std::fs::read_to_string(&file).unwrap_or_else(|e| panic!("{}: {e}", file.display())));
    assert!(all.len() > 100, "{}", all.len());
    let description: Value = serde_json::from_str(include_str!("../contract/sentry.json")).unwrap();
    let site = suite().site().await;
    let connection = suite().connect(suite().config(&site)).await;
    for (tool, examples) in description["calls"].as_object().unwrap() {
        let most = examples["most"].as_array().cloned().unwrap_or_else(|| vec![examples["most"].clone()]);
        for arguments in most {
            assert!(!call(&connection, tool, arguments).await.failed, "{tool}");
        }
    }
    let mut held = 0;
    for seen in site.requests() {
        let names = |value: &Value| value.as_object().into_iter().flatten().map(|(name, _)| name.clone()).collect();
        let query = seen.query().split('&').filter_map(|pair| Some(pair.split_once('=')?.0.to_owned())).collect();
        let body = names(&serde_json::from_slice(&seen.body).unwrap_or_default());
        match unknown(&all, seen.path(), &query, &body) {
            Some(missing) => assert_eq!(missing, [""; 0], "{} {}", seen.method, seen.target),
            None => assert!(seen.path().contains("/shared/issues/"), "{} is not there", seen.path()),
        }
        held += 1;
    }
    assert!(held >= 10, "{held}");
    // Controls: a parameter and a path that are not there.
    let issues = "/api/0/organizations/acme/issues/";
    let none = BTreeSet::new();
    let odd = BTreeSet::from(["odd".to_owned()]);
    assert_eq!(unknown(&all, issues, &odd, &none), Some(vec!["odd".to_owned()]));
    assert_eq!(unknown(&all, &format!("{issues}1/"), &none, &odd), Some(vec!["odd".to_owned()]));
    assert_eq!(unknown(&all, "/api/0/organizations/acme/odd/", &none, &none), None);
}

/// What the published server said of itself: name, required arguments.
#[tokio::test]
async fn the_tool_and_the_prompt_are_called_as_in_the_published_server() {
    let site = suite().site().await;
    let connection = crate::issues::connected(crate::rows::config(&site)).await;
    let tools = connection.tools().await.unwrap();
    let schema: Value = serde_json::from_str(tools[0].input_schema.get()).unwrap();
    assert_eq!((tools[0].name.as_str(), &schema["required"]), ("get_sentry_issue", &json!(["issue_id_or_url"])));
    let prompts = connection.prompts().await.unwrap();
    let prompt = serde_json::to_value(&prompts[0]).unwrap();
    assert_eq!(
        (&prompt["name"], &prompt["description"]),
        (&json!("sentry-issue"), &json!("Retrieve a Sentry issue by ID or URL"))
    );
    assert_eq!(
        prompt["arguments"],
        json!([{ "name": "issue_id_or_url", "description": "Sentry issue ID or URL", "required": true }])
    );
}
