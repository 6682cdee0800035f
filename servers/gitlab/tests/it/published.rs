//! The published server beside ours: npm's archived `@modelcontextprotocol/server-gitlab` 2025.4.25; and GitLab's client for
//! Node, `@gitbeaker/rest` 43.8.0.
//!
//! Differences that are meant, each with its reason:
//! - What the published server reads strictly, and fails on, is read here: labels that are texts, commits without all members.
//! - `push_files` looks which files are there, and `previous_path` moves by a commit: GitLab takes it nowhere else.
//! - A draft is one by its title, and a fork's `namespace` is in the body: so GitLab documents it.
//! - Texts are said to be texts, and no longer `base64`.
//! - Results leave out avatars and links to the API, and what is `null`.

use crate::rows::{server, suite};
use linchpin::client::{Client, Connection};
use linchpin::testing::site::{Seen, Site};
use linchpin::transport::Child;
use linchpin_rest::testing::call;
use serde_json::{Map, Value, json};
use std::path::PathBuf;
use url::form_urlencoded::parse;

fn installed() -> PathBuf {
    std::env::var_os("LINCHPIN_PUBLISHED").expect("LINCHPIN_PUBLISHED names an installation").into()
}

async fn theirs(site: &Site) -> Connection {
    let child = Child::new(installed().join("node_modules/.bin/mcp-server-gitlab"))
        .env("GITLAB_PERSONAL_ACCESS_TOKEN", "k")
        .env("GITLAB_API_URL", site.url("/api/v4"));
    Client::new("test", "0").connect(child).await.expect("the published server starts")
}

/// The verb, the path, and all parameters wherever they are, as texts.
fn outline(seen: &Seen) -> (String, String, Map<String, Value>) {
    let mut all: Map<String, Value> =
        parse(seen.query().as_bytes()).into_owned().map(|(name, value)| (name, json!(value))).collect();
    if let Ok(Value::Object(body)) = serde_json::from_slice(&seen.body) {
        all.extend(body);
    }
    all.sort_keys();
    let text = |value: &Value| match value {
        Value::Number(_) | Value::Bool(_) => json!(value.to_string()),
        other => other.clone(),
    };
    let all = all.iter().map(|(name, value)| (name.clone(), text(value))).collect();
    (seen.method.clone(), seen.path().to_owned(), all)
}

fn schema(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

#[tokio::test]
#[ignore = "needs the published packages: cargo xtask test --only published"]
async fn the_archived_server_has_the_first_nine_tools_with_the_same_arguments() {
    let site = suite().site().await;
    let (theirs, ours) = (theirs(&site).await, suite().connect(suite().config(&site)).await);
    let (theirs, ours) = (theirs.tools().await.unwrap(), ours.tools().await.unwrap());
    assert_eq!(theirs.len(), 9);
    for (at, tool) in theirs.iter().enumerate() {
        assert_eq!(tool.name, ours[at].name, "the same order");
        let (their, our) = (schema(tool.input_schema.get()), schema(ours[at].input_schema.get()));
        let sorted = |schema: &Value| {
            let mut all: Vec<String> = schema["required"].as_array().unwrap().iter().map(Value::to_string).collect();
            all.sort();
            all
        };
        assert_eq!(sorted(&their), sorted(&our), "{}", tool.name);
        for (name, argument) in their["properties"].as_object().unwrap() {
            let (kind, own) = (&argument["type"], &our["properties"][name]["type"]);
            assert!(kind == own || *kind == json!("number") && *own == json!("integer"), "{} {name}", tool.name);
        }
    }
}

/// What theirs has and ours does not.
fn missing(theirs: &Value, ours: &Value, path: &str) -> Vec<String> {
    match (theirs, ours) {
        (Value::Object(their), Value::Object(our)) => their
            .iter()
            // Whether somebody's account is active says nothing about a project.
            .filter(|(name, value)| !value.is_null() && *name != "avatar_url" && **value != "active")
            .flat_map(|(name, value)| missing(value, our.get(name).unwrap_or(&Value::Null), &format!("{path}.{name}")))
            .collect(),
        (Value::Array(their), Value::Array(our)) if our.len() == their.len() => {
            their.iter().zip(our).flat_map(|(their, our)| missing(their, our, path)).collect()
        }
        (their, our) if our == their => Vec::new(),
        _ => vec![format!("{path}: {theirs} and {ours}")],
    }
}

#[tokio::test]
#[ignore = "needs the published packages: cargo xtask test --only published"]
async fn the_same_calls_send_the_same_and_return_the_same() {
    let site = suite().site().await;
    let (theirs, ours) = (theirs(&site).await, server(&site, |_| {}).await);
    let project = "group/project";
    let mut failed = Vec::new();
    for (tool, arguments) in [
        ("search_repositories", json!({ "search": "a b" })),
        ("search_repositories", json!({ "search": "a", "page": 2, "per_page": 5 })),
        ("create_repository", json!({ "name": "n", "visibility": "private", "initialize_with_readme": true })),
        ("get_file_contents", json!({ "project_id": project, "file_path": "docs/a b.md" })),
        (
            "create_or_update_file",
            json!({ "project_id": project, "file_path": "docs/a.md", "content": "x", "commit_message": "m", "branch": "main" }),
        ),
        (
            "push_files",
            json!({ "project_id": project, "branch": "b", "files": [{ "file_path": "a", "content": "x" }], "commit_message": "m" }),
        ),
        ("create_issue", json!({ "project_id": project, "title": "t", "labels": ["a", "b"], "assignee_ids": [7] })),
        (
            "create_merge_request",
            json!({ "project_id": project, "title": "t", "source_branch": "a", "target_branch": "b", "description": "d" }),
        ),
        ("fork_repository", json!({ "project_id": "42", "namespace": "group" })),
        ("create_branch", json!({ "project_id": project, "branch": "new" })),
    ] {
        let before = site.requests().len();
        let their = theirs.call(tool, arguments.clone()).await;
        let between = site.requests().len();
        let our = call(&ours, tool, arguments).await;
        assert!(!our.failed, "{tool}: {}", our.result);
        let mut wanted: Vec<_> = site.requests()[before..between].iter().map(outline).collect();
        let mut sent: Vec<_> = site.requests()[between..].iter().map(outline).collect();
        if tool == "push_files" {
            // Ours looks for the file, which is there.
            assert_eq!(sent.remove(0).0, "GET");
            assert_eq!(wanted[0].2["actions"][0]["action"], "create");
            wanted[0].2["actions"][0]["action"] = json!("update");
        }
        // Nothing is asked there; the default page is said here.
        assert_eq!(sent, wanted, "{tool}");
        match their.map(|answer| (answer.is_error(), answer.text())) {
            Ok((false, text)) => {
                let mut allowed = missing(&schema(&text), &our.structured, tool);
                // The site says nowhere how many there are: that is at least what is here.
                let meant = ["encoding: \"base64\" and \"text\"", "count: 0 and 1"];
                allowed.retain(|one| !meant.iter().any(|meant| one.ends_with(meant)));
                assert_eq!(allowed, [""; 0]);
            }
            _ => failed.push(tool),
        }
    }
    // Labels are texts, and an update of a file has no commit: what was done is said to have failed.
    assert_eq!(failed, ["create_or_update_file", "create_issue"]);
}

/// Requests of GitLab's client for Node.
const CLIENT: &str = r"
const { Gitlab } = require('@gitbeaker/rest');
const api = new Gitlab({ host: process.env.GITLAB_SITE, token: 'k' });
const p = 'group/project';
(async () => {
  await api.RepositoryFiles.show(p, 'docs/a.md', 'main');
  await api.RepositoryFiles.edit(p, 'docs/a.md', 'main', 'x', 'm');
  await api.RepositoryFiles.show(p, 'a', 'old');
  await api.Commits.create(p, 'b', 'm', [{ action: 'update', filePath: 'a', content: 'x' }], { startBranch: 'old' });
  await api.Projects.create({ name: 'n', visibility: 'private', initializeWithReadme: true });
  await api.Issues.create(p, 't', { description: 'd', labels: 'a,b', assigneeIds: [7] });
  await api.MergeRequests.create(p, 'a', 'b', 't', { description: 'd' });
  await api.Projects.fork(p, { namespace: 'group' });
  await api.Branches.create(p, 'new', 'main');
  await api.Issues.show(5, { projectId: p });
  await api.Issues.edit(p, 5, { stateEvent: 'close', addLabels: 'a' });
  await api.IssueNotes.create(p, 5, 'Seen');
  await api.MergeRequests.show(p, 6);
  await api.MergeRequestApprovals.approve(p, 6, { sha: 'abc' });
  await api.MergeRequests.merge(p, 6, { squash: true, sha: 'abc' });
  await api.MergeRequestNotes.create(p, 6, 'Seen');
  await api.Pipelines.show(p, 11);
  await api.Pipelines.retry(p, 11);
  await api.Pipelines.cancel(p, 11);
  await api.Jobs.show(p, 12);
  await api.Jobs.showLog(p, 12);
  await api.Jobs.play(p, 12);
  await api.ProjectWikis.show(p, 'home');
})().catch((e) => { console.error(e); process.exit(1); });
";

#[tokio::test]
#[ignore = "needs the published packages: cargo xtask test --only published"]
async fn gitlabs_client_for_node_sends_the_same() {
    let (site, own) = (suite().site().await, suite().site().await);
    let mut node = std::process::Command::new("node");
    node.args(["-e", CLIENT]).current_dir(installed()).env("GITLAB_SITE", site.url(""));
    let done = tokio::task::spawn_blocking(move || node.output()).await.unwrap().expect("node starts");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let connection = server(&own, |_| {}).await;
    let one = json!([{ "file_path": "a", "content": "x" }]);
    for (tool, arguments) in [
        (
            "create_or_update_file",
            json!({ "file_path": "docs/a.md", "content": "x", "commit_message": "m", "branch": "main" }),
        ),
        ("push_files", json!({ "branch": "b", "files": one, "commit_message": "m", "start_branch": "old" })),
        ("create_repository", json!({ "name": "n", "visibility": "private", "initialize_with_readme": true })),
        ("create_issue", json!({ "title": "t", "description": "d", "labels": ["a", "b"], "assignee_ids": [7] })),
        (
            "create_merge_request",
            json!({ "title": "t", "source_branch": "a", "target_branch": "b", "description": "d" }),
        ),
        ("fork_repository", json!({ "namespace": "group" })),
        ("create_branch", json!({ "branch": "new", "ref": "main" })),
        ("gitlab_issue_read", json!({ "method": "get", "issue_iid": 5 })),
        (
            "gitlab_issue_write",
            json!({ "method": "update", "issue_iid": 5, "state_event": "close", "add_labels": ["a"] }),
        ),
        ("gitlab_issue_write", json!({ "method": "comment", "issue_iid": 5, "body": "Seen" })),
        ("gitlab_mr_read", json!({ "method": "get", "merge_request_iid": 6 })),
        ("gitlab_mr_write", json!({ "method": "approve", "merge_request_iid": 6, "sha": "abc" })),
        ("gitlab_mr_write", json!({ "method": "merge", "merge_request_iid": 6, "squash": true, "sha": "abc" })),
        ("gitlab_mr_write", json!({ "method": "comment", "merge_request_iid": 6, "body": "Seen" })),
        ("gitlab_pipeline_read", json!({ "method": "get", "pipeline_id": 11 })),
        ("gitlab_pipeline_write", json!({ "method": "retry", "pipeline_id": 11 })),
        ("gitlab_pipeline_write", json!({ "method": "cancel", "pipeline_id": 11 })),
        ("gitlab_pipeline_read", json!({ "method": "job", "job_id": 12 })),
        ("gitlab_pipeline_read", json!({ "method": "trace", "job_id": 12 })),
        ("gitlab_pipeline_write", json!({ "method": "play_job", "job_id": 12 })),
        ("gitlab_wiki", json!({ "method": "get", "slug": "home" })),
    ] {
        let mut arguments = arguments;
        if tool != "create_repository" {
            arguments["project_id"] = json!("group/project");
        }
        let told = call(&connection, tool, arguments).await;
        assert!(!told.failed, "{tool}: {}", told.result);
    }
    let (sent, wanted): (Vec<_>, Vec<_>) =
        (own.requests().iter().map(outline).collect(), site.requests().iter().map(outline).collect());
    for (sent, wanted) in sent.iter().zip(&wanted) {
        assert_eq!(sent, wanted);
    }
    assert_eq!(sent.len(), wanted.len());
}
