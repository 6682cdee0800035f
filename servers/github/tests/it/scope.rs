//! What the operator restricts: repositories, and whose words are shown.

use crate::rows::{connected, in_o_r, moved, sent, site, suite};
use linchpin::testing::site::Site;
use linchpin::testing::site::json as answer_json;
use linchpin_github::{Config, SERVICE};
use linchpin_rest::testing::call;
use serde_json::{Value, json};
use url::form_urlencoded::parse;

fn last_query(site: &Site) -> String {
    let seen = site.requests().pop().unwrap();
    parse(seen.query().as_bytes()).find(|(name, _)| name == "q").unwrap().1.into_owned()
}

fn only_o_r(config: &mut Config) {
    config.repositories = vec!["o/r".to_owned()];
}

#[tokio::test]
async fn outside_the_allowed_repositories_no_tool_sends_anything() {
    let site = site(|_| None).await;
    let connection = connected(&site, only_o_r).await;
    let contract: Value = serde_json::from_str(include_str!("../contract/github.json")).unwrap();
    let mut tried = 0;
    for (key, arguments) in contract["calls"].as_object().unwrap() {
        let (tool, method) = key.split_once(' ').unwrap_or((key, ""));
        if !SERVICE.tools.iter().any(|known| known.name == tool) || tool.contains("search") || tool == "get_me" {
            continue;
        }
        let mut arguments = arguments["least"].clone();
        if !method.is_empty() {
            arguments["method"] = json!(method);
        }
        if arguments.get("owner").is_some() {
            arguments["owner"] = json!("other");
        }
        let told = call(&connection, tool, arguments.clone()).await;
        assert!(told.failed && told.kind == "denied", "{tool} {arguments}: {}", told.result);
        assert!(told.text.contains("Allowed: o/r."), "{}", told.text);
        tried += 1;
    }
    assert!(tried >= 24 && site.requests().is_empty(), "{tried}: {:?}", sent(&site));
    let told = call(&connection, "get_issue", json!({ "owner": "O", "repo": "R", "issue_number": 1 })).await;
    assert!(!told.failed, "names have no case: {}", told.result);
}

#[tokio::test]
async fn a_search_stays_in_the_allowed_repositories_whatever_the_query_says() {
    let site = site(|_| None).await;
    let connection = connected(&site, only_o_r).await;
    for (asked, query) in [
        ("bug", "bug repo:o/r"),
        ("bug repo:other/x org:other user:u -repo:o/r", "bug repo:o/r"),
        ("(x) OR (repo:other/x secret)", "x secret repo:o/r"),
        ("x\" OR REPO:other/x", "x repo:o/r"),
        (
            "\"this or (that)\" label:\"good first\" repo:\"other/x\" not y",
            "\"this or (that)\" label:\"good first\" y repo:o/r",
        ),
        ("\"a\"repo:other/x b\\\" org:other\"", "\"a\" b \" org:other\" repo:o/r"),
    ] {
        for (tool, name) in [("search_code", "q"), ("search_issues", "q"), ("search_repositories", "query")] {
            let told = call(&connection, tool, json!({ (name): asked })).await;
            assert!(!told.failed, "{}", told.result);
            assert_eq!(last_query(&site), query, "{tool}");
            // One of the two is in another repository, and how many there are is not told either.
            assert_eq!(told.structured["items"].as_array().unwrap().len(), 1, "{tool}: {}", told.result);
            assert!(!told.result.to_string().contains("left out"), "{tool}: {}", told.result);
            assert!(!told.result.to_string().contains("other/x") && told.structured.get("total_count").is_none());
        }
    }
    assert!(!call(&connection, "search_users", json!({ "q": "ann" })).await.failed);
}

#[tokio::test]
async fn in_lockdown_the_words_of_strangers_are_left_out() {
    let site = site(|seen| match seen.path() {
        "/repos/o/r/issues/1" | "/repos/o/r/pulls/7" => Some((
            200,
            json!({ "number": 1, "title": "evil words", "author_association": "NONE", "head": { "sha": "c" } }),
        )),
        _ => None,
    })
    .await;
    let open = connected(&site, |_| {}).await;
    let locked = connected(&site, |config| config.lockdown = true).await;
    for (tool, arguments) in [
        ("get_issue", json!({ "issue_number": 1 })),
        ("get_pull_request", json!({ "pull_number": 7 })),
        ("get_pull_request_files", json!({ "pull_number": 7 })),
        ("get_file_contents", json!({ "path": "a", "branch": "refs/pull/7/head" })),
        ("github_pulls_read", json!({ "method": "files", "pull_number": 7 })),
        ("pull_request_read", json!({ "method": "get_commits", "pull_number": 7 })),
    ] {
        assert!(!call(&open, tool, in_o_r(arguments.clone())).await.failed, "{tool}");
        let told = call(&locked, tool, in_o_r(arguments)).await;
        assert!(told.failed && told.kind == "denied" && !told.result.to_string().contains("evil"), "{}", told.result);
    }
    for (tool, arguments) in [
        ("list_issues", json!({})),
        ("get_pull_request_comments", json!({ "pull_number": 7 })),
        ("github_issues_read", json!({ "method": "comments", "issue_number": 1 })),
    ] {
        let all = call(&open, tool, in_o_r(arguments.clone())).await.structured["items"].as_array().unwrap().len();
        let told = call(&locked, tool, in_o_r(arguments)).await;
        assert_eq!((all, told.structured["items"].as_array().unwrap().len()), (2, 1), "{tool}");
        assert!(told.result.to_string().contains("1 left out"), "{}", told.result);
    }
    // What was done is not called a failure.
    let told = call(&locked, "update_issue", in_o_r(json!({ "issue_number": 1, "state": "closed" }))).await;
    assert!(!told.failed && !told.result.to_string().contains("evil"), "{}", told.result);
    assert!(told.result.to_string().contains("[Done. "), "{}", told.result);
}

#[tokio::test]
async fn an_issue_that_has_moved_out_of_the_allowed_repositories_is_not_shown() {
    let site = moved().await;
    let connection = connected(&site, only_o_r).await;
    for (tool, arguments, denied) in [
        ("get_issue", json!({ "issue_number": 9 }), true),
        ("github_issues_read", json!({ "method": "get", "issue_number": 9 }), true),
        ("github_issues_read", json!({ "method": "comments", "issue_number": 9 }), false),
        ("issue_read", json!({ "method": "get_labels", "issue_number": 9 }), false),
        ("issue_read", json!({ "method": "get_sub_issues", "issue_number": 1 }), false),
        ("pull_request_read", json!({ "method": "get_comments", "pull_number": 9 }), false),
    ] {
        let told = call(&connection, tool, in_o_r(arguments)).await;
        assert_eq!((told.failed, told.kind == "denied"), (denied, denied), "{tool}: {}", told.result);
        assert!(!told.result.to_string().contains("hidden"), "{tool}: {}", told.result);
    }
    for (tool, arguments) in [
        ("get_issue", json!({ "issue_number": 1 })),
        ("github_issues_read", json!({ "method": "comments", "issue_number": 1 })),
        ("issue_read", json!({ "method": "get_labels", "issue_number": 1 })),
        ("pull_request_read", json!({ "method": "get_comments", "pull_number": 7 })),
    ] {
        let told = call(&connection, tool, in_o_r(arguments)).await;
        assert!(
            !told.failed && told.structured.get("items").is_none_or(|items| items[0].is_object()),
            "{tool}: {}",
            told.result
        );
    }
}

#[tokio::test]
async fn what_has_moved_is_neither_changed_nor_read_where_it_is_now() {
    let site = suite()
        .site_but(|seen| {
            let rest = seen.path().strip_prefix("/repos/o/r/")?;
            let status = if seen.method == "GET" { 301 } else { 307 };
            Some(answer_json(status, &format!("location: /repositories/5/{rest}\r\n"), &json!({})))
        })
        .await;
    let (all, one) = (connected(&site, |_| {}).await, connected(&site, only_o_r).await);
    for (connection, tool, arguments) in [
        (&all, "update_issue", json!({ "issue_number": 9, "state": "closed" })),
        (&all, "merge_pull_request", json!({ "pull_number": 7 })),
        (&one, "add_issue_comment", json!({ "issue_number": 9, "body": "B" })),
        (&one, "get_file_contents", json!({ "path": "a.txt" })),
        (&one, "list_commits", json!({})),
    ] {
        let told = call(connection, tool, in_o_r(arguments)).await;
        assert!(told.failed && told.kind == "conflict", "{tool}: {}", told.result);
    }
    let followed: Vec<String> = sent(&site).into_iter().filter(|line| line.contains("/repositories/")).collect();
    assert_eq!(followed, [""; 0]);
}

#[tokio::test]
async fn a_server_for_some_repositories_forks_none() {
    let site = site(|_| None).await;
    let connection = connected(&site, only_o_r).await;
    for (tool, arguments) in [("fork_repository", json!({})), ("github_repos_write", json!({ "method": "fork" }))] {
        let told = call(&connection, tool, in_o_r(arguments)).await;
        assert!(told.failed && told.kind == "denied" && told.text.contains("Allowed: o/r."), "{tool}: {}", told.result);
    }
    assert!(site.requests().is_empty(), "{:?}", sent(&site));
}

#[tokio::test]
async fn a_search_is_in_any_of_several_allowed_repositories() {
    let site = site(|_| None).await;
    let several = |n: usize| (0..n).map(|n| format!("o/r{n}")).collect::<Vec<_>>();
    let connection = connected(&site, |config| config.repositories = several(2)).await;
    for (tool, asked, query) in [
        ("search_issues", "bug", "bug (repo:o/r0 OR repo:o/r1)"),
        ("search_pull_requests", "bug", "bug is:pr (repo:o/r0 OR repo:o/r1)"),
        ("search_issues", "bug repo:O/R1 repo:other/x", "bug repo:o/r1"),
        ("search_code", "bug", "bug repo:o/r0 repo:o/r1"),
    ] {
        let told = call(&connection, tool, json!({ "q": asked })).await;
        assert!(!told.failed, "{}", told.result);
        assert_eq!(last_query(&site), query, "{tool}");
    }
    let before = site.requests().len();
    let enterprise = connected(&site, |config| {
        config.repositories = several(2);
        config.api.api_url = Some(site.url("/api/v3/"));
    })
    .await;
    let told = call(&enterprise, "search_issues", json!({ "q": "bug" })).await;
    assert!(told.kind == "invalid" && told.text.contains("in one repository at once"), "{}", told.result);
    let connection = connected(&site, |config| config.repositories = several(7)).await;
    for tool in ["search_issues", "search_pull_requests"] {
        let told = call(&connection, tool, json!({ "q": "bug" })).await;
        assert!(told.failed && told.kind == "invalid" && told.text.contains("o/r0, o/r1"), "{}", told.result);
    }
    assert_eq!(site.requests().len(), before);
    for arguments in [json!({ "q": "bug repo:o/r6" }), json!({ "q": "bug", "owner": "o", "repo": "r6" })] {
        let told = call(&connection, "search_issues", arguments).await;
        assert!(!told.failed, "{}", told.result);
        assert_eq!(last_query(&site), "bug repo:o/r6");
    }
}
