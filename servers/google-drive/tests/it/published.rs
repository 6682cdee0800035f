//! Our requests beside what Google publishes about its API: the discovery document of Drive in PyPI's
//! `google-api-python-client`, pinned. The archived npm server asks Google's own hosts, through a package of 200 MB that is
//! not installed for it: its tool and its texts are in the tests of texts, as its documentation and code have them.

use crate::rows::suite;
use linchpin_rest::testing::call;
use serde_json::{Value, json};
use std::path::PathBuf;

fn discovery() -> Value {
    let home: PathBuf =
        std::env::var_os("LINCHPIN_PUBLISHED").expect("LINCHPIN_PUBLISHED names an installation").into();
    let libraries = std::fs::read_dir(home.join("py/lib")).unwrap();
    let file = "site-packages/googleapiclient/discovery_cache/documents/drive.v3.json";
    let path = libraries.flatten().map(|library| library.path().join(file)).find(|path| path.is_file());
    let text = std::fs::read_to_string(path.expect("google-api-python-client is installed")).unwrap();
    serde_json::from_str(&text).expect("JSON")
}

/// What is wrong with the names in a mask of fields: `files(id,owners(displayName)),nextPageToken`.
fn unknown_fields(api: &Value, schema: &str, mask: &str) -> Vec<String> {
    let (mut wrong, mut path, mut name) = (Vec::new(), vec![schema.to_owned()], String::new());
    for c in mask.chars().chain([',']) {
        if !matches!(c, ',' | '(' | ')') {
            name.push(c);
            continue;
        }
        if !name.is_empty() {
            let at = path.last().cloned().unwrap_or_default();
            let member = &api["schemas"][&at]["properties"][&name];
            // A nested object without a name of its own has its members in place.
            let inline =
                |at: &str| at.split_once('/').map(|(schema, name)| api["schemas"][schema]["properties"][name].clone());
            let member = match inline(&at) {
                Some(outer) => outer["properties"][&name].clone(),
                None => member.clone(),
            };
            if member.is_null() {
                wrong.push(format!("{at} has no {name}"));
            }
            if c == '(' {
                let one = if member["type"] == "array" { &member["items"] } else { &member };
                path.push(one["$ref"].as_str().map_or_else(|| format!("{at}/{name}"), str::to_owned));
            }
            name.clear();
        }
        if c == ')' {
            path.pop();
        }
    }
    wrong
}

/// What is wrong with a request, by the method of the API that it is.
fn problems(api: &Value, resource: &str, method: &str, query: &str, body: &Value) -> Vec<String> {
    let method = &api["resources"][resource]["methods"][method];
    let mut wrong = Vec::new();
    for (name, value) in url::form_urlencoded::parse(query.as_bytes()) {
        let own = &method["parameters"][&*name];
        let known = if own.is_null() { &api["parameters"][&*name] } else { own };
        let fits = match known["type"].as_str() {
            Some("boolean") => matches!(&*value, "true" | "false"),
            Some("integer") => value.parse::<i64>().is_ok_and(|n| {
                let bound = |name: &str| known[name].as_str().and_then(|bound| bound.parse::<i64>().ok());
                bound("minimum").is_none_or(|least| n >= least) && bound("maximum").is_none_or(|most| n <= most)
            }),
            Some("string") => true,
            // Of uploads, which the document describes in words only.
            _ => name == "uploadType" && !method["mediaUpload"]["protocols"]["simple"]["multipart"].is_null(),
        };
        if !fits {
            wrong.push(format!("{name}={value}"));
        }
        if name == "fields" {
            let schema = method["response"]["$ref"].as_str().unwrap_or_default();
            wrong.extend(unknown_fields(api, schema, &value));
        }
    }
    for (name, parameter) in method["parameters"].as_object().into_iter().flatten() {
        let there = url::form_urlencoded::parse(query.as_bytes()).any(|(known, _)| known == *name);
        if parameter["required"] == true && parameter["location"] == "query" && !there {
            wrong.push(format!("{name} is missing"));
        }
    }
    let schema = method["request"]["$ref"].as_str().unwrap_or_default();
    for name in body.as_object().into_iter().flat_map(|members| members.keys()) {
        if api["schemas"][schema]["properties"][name].is_null() {
            wrong.push(format!("{schema} has no {name}"));
        }
    }
    wrong
}

#[tokio::test]
#[ignore = "needs the published packages: cargo xtask test --only published"]
async fn requests_are_as_the_discovery_document_says() {
    let api = discovery();
    assert_eq!(api["version"], "v3");
    let site = suite().site().await;
    suite().contract_at(&site).await;
    let connection = suite().connect(suite().config(&site)).await;
    call(&connection, "search", json!({ "query": "x", "page_size": 100 })).await;
    let mut tried = std::collections::BTreeSet::new();
    for seen in site.requests() {
        let path = seen.path().strip_prefix("/drive/v3/").unwrap();
        let (path, is_upload) = path.strip_prefix("upload/").map_or((path, false), |path| (path, true));
        let parts: Vec<&str> = path.split('/').collect();
        let (resource, method, template) = match (seen.method.as_str(), parts.as_slice()) {
            ("GET", ["files"]) => ("files", "list", "files"),
            ("GET", ["files", _]) => ("files", "get", "files/{fileId}"),
            ("GET", ["files", _, "export"]) => ("files", "export", "files/{fileId}/export"),
            ("GET", ["files", _, "comments"]) => ("comments", "list", "files/{fileId}/comments"),
            ("POST", ["files"]) => ("files", "create", "files"),
            ("PATCH", ["files", _]) => ("files", "update", "files/{fileId}"),
            ("POST", ["files", _, "permissions"]) => ("permissions", "create", "files/{fileId}/permissions"),
            other => panic!("{other:?} is no method of Drive"),
        };
        let described = &api["resources"][resource]["methods"][method];
        assert_eq!((&described["path"], &described["httpMethod"]), (&json!(template), &json!(seen.method)));
        if is_upload {
            let upload = described["mediaUpload"]["protocols"]["simple"]["path"].as_str().unwrap();
            assert_eq!(upload, format!("/upload/drive/v3/{template}"));
        }
        let body = String::from_utf8_lossy(&seen.body).into_owned();
        let body = if is_upload { body.split("\r\n").nth(3).unwrap().to_owned() } else { body };
        let body: Value = if body.is_empty() { Value::Null } else { serde_json::from_str(&body).expect("JSON") };
        assert_eq!(problems(&api, resource, method, seen.query(), &body), [""; 0], "{}", seen.target);
        tried.insert((resource, method));
    }
    assert_eq!(tried.len(), 7);
    // What must be found.
    for (resource, method, query, body) in [
        ("files", "list", "pageSize=0", json!({})),
        ("files", "list", "pageSize=abc", json!({})),
        ("files", "list", "fields=files(id,title)", json!({})),
        ("files", "get", "fields=owners(mail)", json!({})),
        ("files", "export", "", json!({})),
        ("comments", "list", "pageSize=101", json!({})),
        ("files", "create", "", json!({ "title": "x" })),
        ("files", "update", "supportsTeams=true", json!({})),
        ("permissions", "create", "", json!({ "email": "x" })),
    ] {
        assert!(!problems(&api, resource, method, query, &body).is_empty(), "{resource} {method} {query} {body}");
    }
}
