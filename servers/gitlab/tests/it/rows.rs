//! Every row of the table: against a description of the API, with hostile arguments, and with everything that fails.

use linchpin::client::Connection;
use linchpin::testing::site::{Do, Site, json};
use linchpin_gitlab::{API, Config, SERVICE, TokenKind, open};
use linchpin_kit::{Secret, Vars};
use linchpin_rest::testing::{KEY, Suite, call};
use serde_json::json;

pub(crate) fn suite() -> Suite {
    Suite::new(&API, &SERVICE, include_str!("../contract/gitlab.json"))
}

/// A server for this site with these options.
pub(crate) async fn server(site: &Site, options: impl FnOnce(&mut Config)) -> Connection {
    let mut config = Config::default().with(|config| config.api = suite().config(site));
    options(&mut config);
    suite().serve(open(config).expect("a valid configuration")).await
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

#[tokio::test(flavor = "multi_thread")]
async fn whatever_fails_with_lockdown_every_row_says_what_happened() {
    let with_lockdown = suite().opened_by(|api| {
        open(Config::default().with(|config| {
            config.api = api;
            config.lockdown = true;
        }))
    });
    with_lockdown.faults().await;
}

#[tokio::test]
async fn the_token_is_sent_as_the_operator_says_and_in_no_other_header() {
    let site = suite().site().await;
    for (kind, name, value) in [
        (TokenKind::Bearer, "authorization", format!("Bearer {KEY}")),
        (TokenKind::PrivateToken, "private-token", KEY.to_owned()),
        (TokenKind::JobToken, "job-token", KEY.to_owned()),
    ] {
        let connection = server(&site, |config| config.token_kind = kind).await;
        call(&connection, "create_branch", json!({ "project_id": "group/project", "branch": "x" })).await;
        let seen = site.requests().last().unwrap().clone();
        let with: Vec<&str> =
            seen.headers.iter().filter(|(_, value)| value.contains(KEY)).map(|(name, _)| name.as_str()).collect();
        assert_eq!((with, seen.header(name)), (vec![name], Some(value.as_str())));
    }
    for (text, kind) in [("JOB-TOKEN", TokenKind::JobToken), ("private-token", TokenKind::PrivateToken)] {
        assert_eq!(text.parse::<TokenKind>().unwrap(), kind);
    }
    assert!("basic".parse::<TokenKind>().is_err());
}

#[tokio::test]
async fn where_projects_are_named_no_tool_reaches_another() {
    let site = suite().site().await;
    let connection = server(&site, |config| config.projects = vec!["group/project".into(), "42".into()]).await;
    for (project, allowed) in
        [("group/project", true), ("Group/Project", true), ("42", true), ("group/other", false), ("7", false)]
    {
        for (tool, arguments) in [
            ("create_issue", json!({ "title": "t" })),
            ("get_file_contents", json!({ "file_path": "a" })),
            (
                "push_files",
                json!({ "branch": "b", "files": [{ "file_path": "a", "content": "" }], "commit_message": "m" }),
            ),
            ("gitlab_issue_read", json!({ "method": "list" })),
            ("gitlab_mr_write", json!({ "method": "merge", "merge_request_iid": 6 })),
            ("gitlab_pipeline_read", json!({ "method": "trace", "job_id": 12 })),
            ("gitlab_search", json!({ "scope": "blobs", "search": "x" })),
        ] {
            let mut arguments = arguments.clone();
            arguments["project_id"] = json!(project);
            let before = site.requests().len();
            let told = call(&connection, tool, arguments).await;
            assert_eq!(!told.failed, allowed, "{tool} {project}: {}", told.result);
            assert_eq!(site.requests().len() > before, allowed, "{tool} {project}");
        }
    }
    let before = site.requests().len();
    for (tool, arguments) in [
        ("create_repository", json!({ "name": "x" })),
        ("fork_repository", json!({ "project_id": "group/project", "namespace": "other" })),
    ] {
        assert_eq!(call(&connection, tool, arguments).await.kind, "denied", "{tool}");
    }
    assert_eq!(site.requests().len(), before);
    let connection = server(&site, |config| config.projects = vec!["other/one".into()]).await;
    let told = call(&connection, "search_repositories", json!({ "search": "x" })).await;
    assert_eq!(told.structured["items"], json!([]), "{}", told.result);
}

#[tokio::test]
async fn an_issue_is_created_with_labels_and_told_whatever_form_they_have() {
    for labels in [json!(["bug", "p1"]), json!([{ "name": "bug", "color": "#f00" }]), json!("bug"), json!(null)] {
        let said = labels.clone();
        let site = Site::new(move |_, _| {
            vec![Do::Write(json(201, "", &json!({ "iid": 5, "labels": said, "confidential": true })))]
        })
        .await;
        let connection = server(&site, |_| {}).await;
        let arguments = json!({ "project_id": 42, "title": "t", "labels": ["bug", "p1"] });
        let told = call(&connection, "create_issue", arguments).await;
        assert!(!told.failed && told.structured["iid"] == 5, "{}", told.result);
        // A confidential issue is told to be one.
        assert!(told.text.contains("\"confidential\": true"), "{}", told.text);
        assert_eq!(told.structured.get("labels").unwrap_or(&json!(null)), &labels);
        let sent = &site.requests()[0];
        assert_eq!(sent.target, "/api/v4/projects/42/issues");
        assert_eq!(
            serde_json::from_slice::<serde_json::Value>(&sent.body).unwrap(),
            json!({ "title": "t", "labels": "bug,p1" })
        );
    }
}

#[tokio::test]
async fn a_draft_is_one_by_its_title() {
    let site = suite().site().await;
    let connection = server(&site, |_| {}).await;
    for (title, draft, want) in
        [("Mend", true, "Draft: Mend"), ("draft: Mend", true, "draft: Mend"), ("Mend", false, "Mend")]
    {
        let arguments = json!({
            "project_id": "g/p", "title": title, "source_branch": "a", "target_branch": "b", "draft": draft,
        });
        assert!(!call(&connection, "create_merge_request", arguments).await.failed);
        let sent = site.requests().last().unwrap().body.clone();
        let want = json!({ "title": want, "source_branch": "a", "target_branch": "b" });
        assert_eq!(serde_json::from_slice::<serde_json::Value>(&sent).unwrap(), want);
    }
}

#[tokio::test]
async fn texts_carry_out_no_quick_actions() {
    let site = suite().site().await;
    let connection = server(&site, |_| {}).await;
    let tools = [
        ("create_issue", json!({ "title": "t" }), "description"),
        ("create_merge_request", json!({ "title": "t", "source_branch": "a", "target_branch": "b" }), "description"),
        ("gitlab_issue_write", json!({ "method": "update", "issue_iid": 5 }), "description"),
        ("gitlab_issue_write", json!({ "method": "comment", "issue_iid": 5 }), "body"),
        ("gitlab_mr_write", json!({ "method": "update", "merge_request_iid": 6 }), "description"),
        ("gitlab_mr_write", json!({ "method": "comment", "merge_request_iid": 6 }), "body"),
    ];
    for (text, allowed) in [
        ("/close", false),
        ("Thanks\n/move other/project", false),
        ("Thanks\r\n  /Clone_with other/project\nx", false),
        ("Thanks\r/merge", false),
        ("see\n/etc/passwd and / or /close and `/close`\n//x\n/2", true),
    ] {
        for (tool, arguments, name) in &tools {
            let mut arguments = arguments.clone();
            (arguments["project_id"], arguments[*name]) = (json!("group/project"), json!(text));
            let before = site.requests().len();
            let told = call(&connection, tool, arguments).await;
            assert_eq!(!told.failed, allowed, "{tool} {text:?}: {}", told.result);
            assert!(allowed || told.text.contains("quick action"), "{}", told.text);
            assert_eq!(site.requests().len() > before, allowed);
        }
    }
}

#[tokio::test]
async fn a_merge_that_waits_for_its_pipeline_waits_in_all_versions() {
    let site = suite().site().await;
    let connection = server(&site, |_| {}).await;
    for (given, want) in [
        (json!({ "auto_merge": true }), json!({ "auto_merge": true, "merge_when_pipeline_succeeds": true })),
        (json!({ "auto_merge": false }), json!({ "auto_merge": false, "merge_when_pipeline_succeeds": false })),
        (json!({ "squash": true }), json!({ "squash": true })),
    ] {
        let mut arguments = given;
        (arguments["project_id"], arguments["method"]) = (json!("g/p"), json!("merge"));
        arguments["merge_request_iid"] = json!(6);
        let told = call(&connection, "gitlab_mr_write", arguments).await;
        assert!(!told.failed, "{}", told.result);
        let sent = site.requests().last().unwrap().body.clone();
        assert_eq!(serde_json::from_slice::<serde_json::Value>(&sent).unwrap(), want);
    }
}

#[tokio::test]
async fn errors_have_the_status_and_gitlabs_words() {
    for (status, said, first, words) in [
        (
            404,
            json!({ "message": "404 Project Not Found" }),
            "GitLab API error: 404 Not Found",
            "404 Project Not Found",
        ),
        (
            400,
            json!({ "message": { "title": ["can't be blank"] } }),
            "GitLab API error: 400 Bad Request",
            r#"{"title":["can't be blank"]}"#,
        ),
        (
            403,
            json!({ "error": "insufficient_scope", "error_description": "needs api" }),
            "GitLab API error: 403 Forbidden",
            "insufficient_scope\nneeds api",
        ),
    ] {
        let site = Site::saying(json(status, "", &said)).await;
        let connection = server(&site, |_| {}).await;
        let told = call(&connection, "create_branch", json!({ "project_id": "g/p", "branch": "x" })).await;
        assert_eq!((told.text.as_str(), &told.result["content"][1]["text"]), (first, &json!(words)));
    }
}

#[tokio::test]
async fn a_log_of_2_megabytes_is_its_end() {
    let mut log: String =
        (0..60_000).map(|n| format!("\u{1b}[0;32mline {n} of a log that is long\u{1b}[0m\n")).collect();
    log.push_str(&format!("the token is {KEY}\u{202e}\n"));
    assert!(log.len() > 2_000_000);
    let site = Site::new(move |_, _| {
        vec![Do::Write(linchpin::testing::site::answer(200, "content-type: text/plain\r\n", &log))]
    })
    .await;
    let connection = server(&site, |_| {}).await;
    for (lines, want) in [(json!(null), 200), (json!(2), 2), (json!(2000), 0)] {
        let arguments = json!({ "method": "trace", "project_id": "g/p", "job_id": 12, "lines": lines });
        let told = call(&connection, "gitlab_pipeline_read", arguments).await;
        let trace = told.structured["trace"].as_str().unwrap();
        assert!(trace.ends_with("line 59999 of a log that is long\nthe token is ***"), "{trace}");
        assert!(want == 0 || trace.lines().count() == want);
        assert_eq!(told.structured["lines"], trace.lines().count());
        assert!(told.text.len() < 25_000 && told.structured["lines_total"] == 60_001, "{}", told.structured);
    }
    let arguments = json!({ "method": "trace", "project_id": "g/p", "job_id": 12, "lines": 1, "skip": 2 });
    let told = call(&connection, "gitlab_pipeline_read", arguments).await;
    assert_eq!(told.structured["trace"], "line 59998 of a log that is long");
}

#[tokio::test]
async fn by_its_published_name_it_offers_the_published_tools() {
    let site = suite().site().await;
    let connection = server(&site, |config| {
        config.api.tools = Default::default();
        config.api.tools.published = true;
    })
    .await;
    let tools = connection.tools().await.unwrap();
    let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, SERVICE.tools[..9].iter().map(|tool| tool.name).collect::<Vec<_>>());
    let connection = server(&site, |config| config.api.tools.read_only = true).await;
    let tools = connection.tools().await.unwrap();
    let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
    let reads = [
        "search_repositories",
        "get_file_contents",
        "gitlab_issue_read",
        "gitlab_mr_read",
        "gitlab_pipeline_read",
        "gitlab_search",
        "gitlab_repo_tree",
        "gitlab_wiki",
    ];
    assert_eq!(names, reads);
}

#[test]
fn the_variables_of_the_published_server_are_heeded() {
    let get = |name: &str| {
        let value = match name {
            "GITLAB_PERSONAL_ACCESS_TOKEN" => "hidden",
            "GITLAB_API_URL" => "https://gitlab.example/api/v4",
            "MCP_GITLAB_PROJECT" => "group/project, 42",
            "MCP_GITLAB_TOKEN_KIND" => "private-token",
            _ => return None,
        };
        Some(value.to_owned())
    };
    let config = Config::from_env(Vars::new(&get)).unwrap();
    assert_eq!(config.api.api_url.as_deref(), Some("https://gitlab.example/api/v4"));
    assert_eq!((config.projects.len(), config.token_kind), (2, TokenKind::PrivateToken));
    assert!(!format!("{config:?}").contains("hidden"));
    assert!(open(config).is_ok());
    let missing = open(Config::default()).unwrap_err().to_string();
    assert!(
        missing.starts_with("GITLAB_PERSONAL_ACCESS_TOKEN or GITLAB_TOKEN environment variable is required"),
        "{missing}"
    );
    let http = Config::default().with(|config| {
        config.api.key = Some(Secret::new("k"));
        config.api.api_url = Some("http://gitlab.example/api/v4".into());
    });
    assert!(open(http).is_err());
}
