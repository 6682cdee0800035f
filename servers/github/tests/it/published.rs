//! GitHub's own description of its API (npm's `@octokit/openapi` 23.0.2), its own client (`@octokit/rest` 22.0.1), and the
//! published server (`@modelcontextprotocol/server-github` 2025.4.8) beside ours.
//!
//! Differences from the published server that are meant, each with its reason:
//! - `cursor`, `page` and the like where it has no further pages.
//! - Members that are `null` are left out.
//! - A review needs no `body`: to approve takes no words.
//! - `order` of `search_code` is accepted and not listed: GitHub no longer heeds it.
//! - Requests: a branch is read at `/git/ref/…`, where GitHub's description has it; the default branch is asked for; nothing is forced.
//!   Plain files are pushed by GraphQL, so that GitHub signs the commit.

use crate::rows::{connected, suite};
use linchpin::client::{Client, Connection};
use linchpin::testing::site::{Do, Seen, Site, json as answer};
use linchpin::transport::Child;
use linchpin_github::{API, CALLS, SERVICE};
use linchpin_rest::testing::{Suite, call, led};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Arc, LazyLock};
use url::form_urlencoded::parse;

const OWN: &str = include_str!("../contract/github.json");

/// What is no part of GitHub's description.
const GRAPHQL: &str = "/graphql";

fn installed() -> PathBuf {
    let root = std::env::var_os("LINCHPIN_PUBLISHED").expect("LINCHPIN_PUBLISHED names an installation");
    PathBuf::from(root).join("github")
}

/// GitHub's description of its API.
static THEIRS: LazyLock<Value> = LazyLock::new(|| {
    let path = installed().join("node_modules/@octokit/openapi/generated/api.github.com.json");
    serde_json::from_slice(&std::fs::read(path).expect("the description")).expect("JSON")
});

fn own() -> Value {
    serde_json::from_str(OWN).unwrap()
}

/// What a reference means, also within.
fn resolved(value: &Value) -> Value {
    match value {
        Value::Object(members) => match members.get("$ref").and_then(Value::as_str) {
            Some(place) => resolved(THEIRS.pointer(place.trim_start_matches('#')).expect("it leads somewhere")),
            None => Value::Object(members.iter().map(|(name, member)| (name.clone(), resolved(member))).collect()),
        },
        Value::Array(items) => Value::Array(items.iter().map(resolved).collect()),
        other => other.clone(),
    }
}

/// The operation of the description that one of ours is.
fn operation(method: &str, path: &str) -> &'static Value {
    // The root of a repository is a path of a file, for the description.
    let path = if path.ends_with("/contents") { format!("{path}/{{path}}") } else { path.to_owned() };
    let is_name = |part: &str| part.starts_with('{');
    let same = |theirs: &str| {
        let (ours, theirs): (Vec<&str>, Vec<&str>) = (path.split('/').collect(), theirs.split('/').collect());
        ours.len() == theirs.len() && ours.iter().zip(theirs).all(|(a, b)| *a == b || is_name(a) && is_name(b))
    };
    let paths = THEIRS["paths"].as_object().unwrap();
    let found = paths.iter().find(|(theirs, methods)| same(theirs) && methods.get(method.to_lowercase()).is_some());
    &found.unwrap_or_else(|| panic!("{method} {path} is not described")).1[method.to_lowercase()]
}

/// The schema with every object closed that has properties.
fn closed(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            if members.get("properties").is_some_and(Value::is_object) {
                members.insert("additionalProperties".to_owned(), json!(false));
            }
            members.values_mut().for_each(closed);
        }
        Value::Array(items) => items.iter_mut().for_each(closed),
        _ => {}
    }
}

/// Our description with the schemas of GitHub's.
fn description() -> String {
    let mut own = own();
    for one in own["operations"].as_array_mut().unwrap().iter_mut().filter(|one| one["path"] != GRAPHQL) {
        let theirs = operation(one["method"].as_str().unwrap(), one["path"].as_str().unwrap());
        let mut query = Map::new();
        let mut required = Vec::new();
        for parameter in theirs["parameters"].as_array().into_iter().flatten().map(resolved) {
            if parameter["in"] == "query" {
                if parameter["required"] == true {
                    required.push(parameter["name"].clone());
                }
                query.insert(parameter["name"].as_str().unwrap().to_owned(), parameter["schema"].clone());
            }
        }
        one["query"] =
            json!({ "type": "object", "properties": query, "required": required, "additionalProperties": false });
        let members = one.as_object_mut().unwrap();
        members.remove("body");
        let mut body = resolved(&theirs["requestBody"]["content"]["application/json"]["schema"]);
        if body.is_object() {
            body["type"] = json!("object");
            closed(&mut body);
            body["additionalProperties"] = json!(false);
            members.insert("body".to_owned(), body);
        }
    }
    own.to_string()
}

#[tokio::test]
#[ignore = "needs the published packages: cargo xtask test --only published"]
async fn every_row_makes_requests_that_githubs_description_allows() {
    Suite::new(&API, &SERVICE, &description()).contract().await;
}

/// A request without what may differ between clients.
fn essence(seen: &Seen) -> (String, String, BTreeSet<(String, String)>, Value) {
    let decoded =
        |text: &str| parse(format!("x={}", text.replace('+', "%2B")).as_bytes()).next().unwrap().1.into_owned();
    let query = parse(seen.query().as_bytes()).into_owned().collect();
    let body: Value = serde_json::from_slice(&seen.body).unwrap_or_default();
    let body = if body == json!({}) { Value::Null } else { body };
    (seen.method.clone(), decoded(seen.path()), query, body)
}

/// The calls of GitHub's client that do what a tool does, with the arguments `most` of the contract.
fn with_their_client(tool: &str, given: &Value) -> Vec<(&'static str, Value)> {
    let mut args = given.clone();
    for (ours, theirs) in [("query", "q"), ("perPage", "per_page"), ("autoInit", "auto_init")] {
        if let Some(value) = args.as_object_mut().unwrap().remove(ours) {
            args[theirs] = value;
        }
    }
    match tool {
        "create_or_update_file" => args["content"] = json!("VGV4dA=="),
        "list_issues" => args["labels"] = json!("bug,ui"),
        "search_issues" => {
            args = json!({ "q": "bug repo:o/r", "page": 2, "per_page": 50, "order": "asc", "sort": "created" })
        }
        _ => {}
    }
    let in_repository = |more: Value| {
        let mut all = json!({ "owner": given["owner"], "repo": given["repo"] });
        all.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        all
    };
    let one = |place| vec![(place, args.clone())];
    match tool {
        "create_or_update_file" => one("repos.createOrUpdateFileContents"),
        "search_repositories" => one("search.repos"),
        "create_repository" => one("repos.createForAuthenticatedUser"),
        "get_file_contents" => {
            let more = json!({ "path": given["path"], "ref": given["branch"] });
            vec![("repos.getContent", in_repository(more))]
        }
        "push_files" => {
            let entry = |path: &str, mode: &str, content: &str| json!({ "path": path, "mode": mode, "type": "blob", "content": content });
            let entries = [entry("run.sh", "100755", "x"), entry("a.txt", "100644", "y")];
            vec![
                ("git.getRef", in_repository(json!({ "ref": "heads/main" }))),
                ("git.getCommit", in_repository(json!({ "commit_sha": "aaa" }))),
                ("git.getTree", in_repository(json!({ "tree_sha": "ttt" }))),
                ("git.createTree", in_repository(json!({ "base_tree": "ttt", "tree": entries }))),
                ("git.createCommit", in_repository(json!({ "message": "m", "tree": "uuu", "parents": ["aaa"] }))),
                ("git.updateRef", in_repository(json!({ "ref": "heads/main", "sha": "ccc" }))),
            ]
        }
        "create_issue" => one("issues.create"),
        "create_pull_request" => one("pulls.create"),
        "fork_repository" => one("repos.createFork"),
        "create_branch" => vec![
            ("git.getRef", in_repository(json!({ "ref": "heads/main" }))),
            ("git.createRef", in_repository(json!({ "ref": "refs/heads/topic", "sha": "aaa" }))),
        ],
        "list_commits" => one("repos.listCommits"),
        "list_issues" => one("issues.listForRepo"),
        "update_issue" => one("issues.update"),
        "add_issue_comment" => one("issues.createComment"),
        "search_code" => one("search.code"),
        "search_issues" => one("search.issuesAndPullRequests"),
        "search_users" => one("search.users"),
        "get_issue" => one("issues.get"),
        "get_pull_request" => one("pulls.get"),
        "list_pull_requests" => one("pulls.list"),
        "create_pull_request_review" => one("pulls.createReview"),
        "merge_pull_request" => one("pulls.merge"),
        "get_pull_request_files" => one("pulls.listFiles"),
        "get_pull_request_status" => vec![
            ("pulls.get", args.clone()),
            ("repos.getCombinedStatusForRef", in_repository(json!({ "ref": "ccc", "per_page": 100 }))),
            ("checks.listForRef", in_repository(json!({ "ref": "ccc", "per_page": 100 }))),
        ],
        "update_pull_request_branch" => one("pulls.updateBranch"),
        "get_pull_request_comments" => one("pulls.listReviewComments"),
        "get_pull_request_reviews" => one("pulls.listReviews"),
        other => panic!("{other} has no calls here"),
    }
}

const CLIENT: &str = r#"
import { Octokit } from "@octokit/rest";
const log = { debug() {}, info() {}, warn() {}, error: console.error };
const octokit = new Octokit({ auth: "k", baseUrl: process.env.BASE, log });
for (const [place, args] of JSON.parse(process.env.CALLS)) {
  const [group, name] = place.split(".");
  await octokit.rest[group][name](args);
}
"#;

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the published packages: cargo xtask test --only published"]
async fn githubs_own_client_sends_the_same_requests() {
    let own = own();
    for row in CALLS.iter().take(26) {
        let arguments = &own["calls"][row.name()]["most"];
        let (ours, theirs) = (suite().site().await, suite().site().await);
        let connection = connected(&ours, |_| {}).await;
        let told = call(&connection, row.name(), arguments.clone()).await;
        assert!(!told.failed, "{}: {}", row.name(), told.result);
        let calls = json!(with_their_client(row.name(), arguments)).to_string();
        let mut node = Command::new("node");
        node.args(["--input-type=module", "-e", CLIENT]).current_dir(installed());
        let done = node.env("CALLS", calls).env("BASE", theirs.url("")).output().expect("node");
        assert!(done.status.success(), "{}: {}", row.name(), String::from_utf8_lossy(&done.stderr));
        let essences = |site: &Site| site.requests().iter().map(essence).collect::<Vec<_>>();
        assert_eq!(essences(&ours), essences(&theirs), "{}", row.name());
    }
}

/// The published server, whose one host is replaced by a site.
async fn published(site: &Site) -> Connection {
    let child =
        Child::new(installed().join("node_modules/.bin/mcp-server-github")).env("GITHUB_PERSONAL_ACCESS_TOKEN", "k");
    let child = child.envs(led("api.github.com", site));
    Client::new("test", "0").connect(child).await.expect("the published server starts")
}

/// The first example of an operation's answer in GitHub's description.
fn example(method: &str, path: &str) -> Value {
    let responses = operation(method, path)["responses"].as_object().unwrap();
    let (_, response) = responses.iter().find(|(status, _)| status.starts_with('2')).unwrap();
    let content = &resolved(response)["content"]["application/json"];
    content["examples"].as_object().and_then(|all| all.values().next()).map_or(Value::Null, |one| one["value"].clone())
}

/// A site that answers with these examples.
async fn examples() -> Site {
    let own = own();
    let mut known: BTreeMap<(String, Vec<String>), Value> = BTreeMap::new();
    for one in own["operations"].as_array().unwrap() {
        let (method, path) = (one["method"].as_str().unwrap(), one["path"].as_str().unwrap());
        let mut example = match path {
            GRAPHQL => {
                let moved = example("PATCH", "/repos/{owner}/{repo}/git/refs/{ref}");
                json!({ "data": { "createCommitOnBranch": { "commit": { "oid": moved["object"]["sha"] } } } })
            }
            _ => example(method, path),
        };
        if example["encoding"] == "base64" {
            // That of the description is no text.
            example["content"] = json!("VGV4\ndA==\n");
        }
        known.insert((method.to_owned(), path.split('/').map(str::to_owned).collect()), example);
    }
    let known = Arc::new(known);
    Site::new(move |_, seen| {
        // The published server reads a branch under an older address.
        let path =
            if seen.method == "GET" { seen.path().replace("/git/refs/", "/git/ref/") } else { seen.path().to_owned() };
        let path: Vec<&str> = path.split('/').collect();
        let fits = |parts: &[String]| {
            let rest = parts.last().is_some_and(|last| last.starts_with("{+"));
            (parts.len() == path.len() || rest && parts.len() < path.len())
                && parts.iter().zip(&path).all(|(part, own)| part.starts_with('{') || part == own)
        };
        // Words before names: `/contents` is no `{…}`.
        let found = known.iter().filter(|((method, parts), _)| *method == seen.method && fits(parts));
        let found = found.max_by_key(|((_, parts), _)| parts.iter().filter(|part| !part.starts_with('{')).count());
        vec![Do::Write(answer(200, "", found.map_or(&Value::Null, |(_, example)| example)))]
    })
    .await
}

/// Where ours lacks something that the published server answers.
fn lacking(theirs: &Value, ours: &Value, at: &str, missing: &mut Vec<String>) {
    match (theirs, ours) {
        (Value::Object(theirs), Value::Object(ours)) => {
            for (name, value) in theirs.iter().filter(|(_, value)| !value.is_null()) {
                lacking(value, ours.get(name).unwrap_or(&Value::Null), &format!("{at}.{name}"), missing);
            }
        }
        (Value::Array(theirs), Value::Array(ours)) if theirs.len() == ours.len() => {
            for (n, (theirs, ours)) in theirs.iter().zip(ours).enumerate() {
                lacking(theirs, ours, &format!("{at}.{n}"), missing);
            }
        }
        (theirs, ours) if theirs == ours => {}
        (theirs, ours) => missing.push(format!("{at}: {theirs} is {ours}")),
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the published packages: cargo xtask test --only published"]
async fn the_published_server_answers_nothing_that_ours_does_not() {
    let (own, site) = (own(), examples().await);
    let (theirs, ours) = (published(&site).await, connected(&site, |_| {}).await);
    for row in CALLS.iter().take(26) {
        let arguments = own["calls"][row.name()]["least"].clone();
        let told = call(&ours, row.name(), arguments.clone()).await;
        assert!(!told.failed, "{}: {}", row.name(), told.result);
        let their = theirs.call(row.name(), arguments).await.unwrap();
        assert!(!their.is_error(), "{}: {}", row.name(), their.text());
        let their = their.text();
        let (their, our): (Value, Value) =
            (serde_json::from_str(&their).unwrap(), serde_json::from_str(&told.text).unwrap());
        let mut missing = Vec::new();
        lacking(&their, &our, row.name(), &mut missing);
        assert_eq!(missing, [""; 0], "{}", row.name());
    }
}

#[tokio::test]
#[ignore = "needs the published packages: cargo xtask test --only published"]
async fn the_published_server_has_the_same_tools_with_the_same_arguments() {
    let site = suite().site().await;
    let theirs = published(&site).await.tools().await.unwrap();
    let ours = connected(&site, |_| {}).await.tools().await.unwrap();
    assert_eq!(theirs.len(), 26);
    let schema = |text: &str| -> Value { serde_json::from_str(text).unwrap() };
    for (their, our) in theirs.iter().zip(ours.iter()) {
        assert_eq!(their.name, our.name, "the same order");
        let row = CALLS.iter().find(|row| row.name() == their.name).unwrap();
        let (their, our) = (schema(their.input_schema.get()), schema(our.input_schema.get()));
        for (name, argument) in their["properties"].as_object().unwrap() {
            assert!(row.accepts(name), "{}: {name}", row.name());
            let listed = &our["properties"][name];
            if !listed.is_null() {
                assert_eq!(argument["enum"], listed["enum"], "{}: {name}", row.name());
                let number = |kind: &Value| kind == "number" || kind == "integer";
                let same = argument["type"] == listed["type"] || number(&argument["type"]) && number(&listed["type"]);
                assert!(same, "{}: {name}", row.name());
            }
        }
        let mut required = their["required"].clone();
        if row.name() == "create_pull_request_review" {
            required.as_array_mut().unwrap().retain(|name| name != "body");
        }
        assert_eq!(required, our["required"], "{}", row.name());
    }
}
