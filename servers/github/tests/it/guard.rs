//! What a session may not do together.

use crate::rows::{connected, in_o_r, moved, sent, served, site};
use linchpin::client::Client;
use linchpin::prelude::in_process;
use linchpin::testing::site::{Seen, Site};
use linchpin::types::version::Revision;
use linchpin_rest::testing::call;
use serde_json::{Value, json};

/// `o/secret` is private; every other repository is public.
async fn two_kinds() -> Site {
    site(|seen: &Seen| {
        let mut parts = seen.path().split('/').skip(1);
        match (parts.next(), parts.next(), parts.next(), parts.next()) {
            (Some("repos"), Some(owner), Some(repo), None) => {
                Some((200, json!({ "full_name": format!("{owner}/{repo}"), "private": repo == "secret" })))
            }
            (Some("repos"), Some(owner), Some(repo), Some("issues")) if seen.method == "GET" => {
                let url = format!("https://api.github.com/repos/{owner}/{repo}");
                Some((200, json!({ "number": 1, "title": "T", "repository_url": url })))
            }
            _ => None,
        }
    })
    .await
}

fn of(repo: &str, mut arguments: Value) -> Value {
    arguments["owner"] = json!("o");
    arguments["repo"] = json!(repo);
    arguments
}

#[tokio::test]
async fn what_was_read_in_private_is_not_written_in_public() {
    let site = two_kinds().await;
    let connection = connected(&site, |_| {}).await;
    let comment = |repo: &str| of(repo, json!({ "issue_number": 1, "body": "B" }));
    assert!(!call(&connection, "get_issue", of("secret", json!({ "issue_number": 1 }))).await.failed);
    let before = site.requests().len();
    for (tool, arguments) in [
        ("add_issue_comment", comment("public")),
        ("create_issue", of("public", json!({ "title": "T" }))),
        (
            "push_files",
            of("public", json!({ "branch": "b", "message": "m", "files": [{ "path": "a", "content": "c" }] })),
        ),
        ("create_repository", json!({ "name": "leak" })),
        ("github_issues_write", of("public", json!({ "method": "comment", "issue_number": 1, "body": "B" }))),
    ] {
        let told = call(&connection, tool, arguments).await;
        assert!(told.failed && told.kind == "denied", "{tool}: {}", told.result);
        let why = "This session has read o/secret, which is private, and ";
        assert!(told.text.starts_with(why) && told.text.contains("--allow-cross-visibility"), "{}", told.text);
    }
    assert!(site.requests()[before..].iter().all(|seen| seen.method == "GET"), "{:?}", sent(&site));
    // Private to private, and reading, is not what this is about.
    assert!(!call(&connection, "add_issue_comment", comment("secret")).await.failed);
    assert!(!call(&connection, "create_repository", json!({ "name": "n", "private": true })).await.failed);
    assert!(!call(&connection, "get_issue", of("public", json!({ "issue_number": 1 }))).await.failed);
}

#[tokio::test]
async fn sessions_of_one_server_are_told_apart_and_clients_without_one_are_not() {
    for (revision, denied) in [(Revision::V2025_11_25, false), (Revision::V2026_07_28, true)] {
        let site = two_kinds().await;
        let server = in_process(served(&site, |_| {}));
        let client = Client::new("test", "0").revisions(&[revision]);
        let one = client.connect(server.clone()).await.unwrap();
        let other = client.connect(server).await.unwrap();
        assert!(!call(&one, "get_issue", of("secret", json!({ "issue_number": 1 }))).await.failed);
        let comment = of("public", json!({ "issue_number": 1, "body": "B" }));
        assert!(call(&one, "add_issue_comment", comment.clone()).await.failed, "{revision:?}");
        assert_eq!(call(&other, "add_issue_comment", comment).await.failed, denied, "{revision:?}");
    }
}

#[tokio::test]
async fn what_a_search_finds_is_read_too() {
    let site = site(|seen| {
        let found = |item: Value| Some((200, json!({ "total_count": 1, "items": [item] })));
        match seen.path() {
            "/search/issues" => {
                found(json!({ "number": 1, "repository_url": "https://api.github.com/repos/o/secret" }))
            }
            "/search/code" => found(json!({ "path": "a", "repository": { "full_name": "o/secret", "private": true } })),
            "/repos/o/secret" => Some((200, json!({ "private": true }))),
            "/repos/o/r" => Some((200, json!({ "private": false }))),
            _ => None,
        }
    })
    .await;
    for tool in ["search_issues", "search_code"] {
        let connection = connected(&site, |_| {}).await;
        let write = in_o_r(json!({ "issue_number": 1, "body": "B" }));
        assert!(!call(&connection, "add_issue_comment", write.clone()).await.failed);
        assert!(!call(&connection, tool, json!({ "q": "x" })).await.failed);
        let told = call(&connection, "add_issue_comment", write).await;
        assert!(told.failed && told.kind == "denied", "{tool}: {}", told.result);
    }
}

#[tokio::test]
async fn a_session_that_read_more_than_can_be_looked_up_does_not_write_in_public() {
    for (found, denied) in [(99, false), (101, true)] {
        let site = site(move |seen| {
            let item =
                |n: usize| json!({ "number": n, "repository_url": format!("https://api.github.com/repos/o/r{n}") });
            match seen.path() {
                "/search/issues" => Some((200, json!({ "items": (0..found).map(item).collect::<Vec<_>>() }))),
                path if path.matches('/').count() == 3 => Some((200, json!({ "private": false }))),
                _ => None,
            }
        })
        .await;
        let connection = connected(&site, |_| {}).await;
        assert!(!call(&connection, "search_issues", json!({ "q": "x", "per_page": 100 })).await.failed);
        let told = call(&connection, "create_issue", in_o_r(json!({ "title": "T" }))).await;
        assert_eq!((told.failed, told.text.contains("one may be private")), (denied, denied), "{}", told.result);
        assert_eq!(site.requests().len(), if denied { 2 } else { found + 3 }, "{:?}", sent(&site));
    }
}

#[tokio::test]
async fn work_in_one_repository_costs_no_request_more_and_the_operator_may_allow_the_rest() {
    let site = two_kinds().await;
    let connection = connected(&site, |_| {}).await;
    for repo in ["secret", "public"] {
        let session = connected(&site, |_| {}).await;
        let before = site.requests().len();
        call(&session, "get_issue", of(repo, json!({ "issue_number": 1 }))).await;
        call(&session, "add_issue_comment", of(repo, json!({ "issue_number": 1, "body": "B" }))).await;
        assert_eq!(site.requests().len() - before, 2, "{:?}", sent(&site));
    }
    drop(connection);
    let allowed = connected(&site, |config| config.allow_cross_visibility = true).await;
    call(&allowed, "get_issue", of("secret", json!({ "issue_number": 1 }))).await;
    let told = call(&allowed, "add_issue_comment", of("public", json!({ "issue_number": 1, "body": "B" }))).await;
    assert!(!told.failed, "{}", told.result);
}

#[tokio::test]
async fn when_the_visibility_cannot_be_told_nothing_is_written() {
    let site = site(|seen| (seen.target == "/repos/o/public").then(|| (500, json!({ "message": "no" })))).await;
    let connection = connected(&site, |_| {}).await;
    call(&connection, "get_issue", of("other", json!({ "issue_number": 1 }))).await;
    let told = call(&connection, "create_issue", of("public", json!({ "title": "T" }))).await;
    assert!(told.failed && told.kind == "upstream", "{}", told.result);
    assert!(!sent(&site).iter().any(|line| line.starts_with("POST")));
}

#[tokio::test]
async fn a_session_may_read_any_number_of_public_repositories_and_no_private_one_among_them_is_forgotten() {
    for (private, denied) in [(Some(false), false), (None, true)] {
        let site = site(move |seen| match seen.path() {
            "/search/code" => {
                let page = seen.query().len();
                let one = |n: usize| {
                    let mut repository = json!({ "full_name": format!("o/r{page}-{n}") });
                    if let Some(private) = private {
                        repository["private"] = json!(private);
                    }
                    json!({ "path": "a", "repository": repository })
                };
                Some((200, json!({ "items": (0..100).map(one).collect::<Vec<_>>() })))
            }
            "/repos/o/r" => Some((200, json!({ "private": false }))),
            "/repos/o/secret" => Some((200, json!({ "private": true }))),
            _ => None,
        })
        .await;
        let connection = connected(&site, |_| {}).await;
        for n in 1..=11 {
            assert!(!call(&connection, "search_code", json!({ "q": "x".repeat(n), "per_page": 100 })).await.failed);
        }
        let write = in_o_r(json!({ "title": "T" }));
        let told = call(&connection, "create_issue", write.clone()).await;
        assert_eq!((told.failed, told.text.contains("one may be private")), (denied, denied), "{}", told.result);
        assert!(!call(&connection, "get_issue", of("secret", json!({ "issue_number": 1 }))).await.failed);
        let told = call(&connection, "create_issue", write).await;
        assert!(told.failed && told.kind == "denied", "{}", told.result);
    }
}

#[tokio::test]
async fn an_issue_that_has_moved_is_read_where_it_is_now() {
    for (tool, arguments) in [
        ("get_issue", json!({ "issue_number": 9 })),
        ("github_issues_read", json!({ "method": "comments", "issue_number": 9 })),
        ("issue_read", json!({ "method": "get_labels", "issue_number": 9 })),
    ] {
        let site = moved().await;
        let connection = connected(&site, |_| {}).await;
        let write = in_o_r(json!({ "issue_number": 1, "body": "B" }));
        assert!(!call(&connection, "add_issue_comment", write.clone()).await.failed);
        assert!(call(&connection, tool, in_o_r(arguments)).await.text.contains("hidden"), "{tool}");
        let told = call(&connection, "add_issue_comment", write).await;
        assert!(told.failed && told.text.starts_with("This session has read o/secret"), "{tool}: {}", told.result);
    }
}
