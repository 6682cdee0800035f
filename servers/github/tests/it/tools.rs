//! Which tools there are, how the server is configured, and how failures are told.

use crate::rows::{connected, in_o_r, last_body, suite};
use linchpin::client::Connection;
use linchpin::testing::site::json as answer;
use linchpin_github::{Config, SERVICE, open};
use linchpin_kit::{Secret, ToolChoice, Vars};
use linchpin_rest::testing::call;
use serde_json::json;

async fn names(connection: &Connection) -> Vec<String> {
    connection.tools().await.unwrap().iter().map(|tool| tool.name.clone()).collect()
}

fn named(set: &str, writes: Option<bool>) -> Vec<&'static str> {
    let all = SERVICE.tools.iter().filter(move |tool| tool.toolsets().any(|own| own == set));
    all.filter(|tool| writes.is_none_or(|writes| tool.writes == writes)).map(|tool| tool.name).collect()
}

#[tokio::test]
async fn each_name_of_the_server_has_its_set_of_tools() {
    let site = suite().site().await;
    let (original, compact, official) = (named("original", None), named("compact", None), named("official", None));
    assert_eq!((original.len(), compact.len(), official.len()), (26, 9, 31));
    for (published, sets, want) in
        [(true, "", &original), (false, "", &compact), (false, "original", &original), (true, "compact", &compact)]
    {
        let connection = connected(&site, |config| {
            let toolsets = if sets.is_empty() { Vec::new() } else { vec![sets.to_owned()] };
            config.api.tools = ToolChoice::default();
            (config.api.tools.published, config.api.tools.toolsets) = (published, toolsets);
        })
        .await;
        assert_eq!(names(&connection).await, *want, "{published} {sets}");
    }
}

#[tokio::test]
async fn the_compact_set_costs_a_model_less_than_eight_thousand_tokens() {
    let site = suite().site().await;
    let connection = connected(&site, |config| config.api.tools = ToolChoice::default()).await;
    let tools = connection.tools().await.unwrap();
    let whole = serde_json::to_string(&tools.to_vec()).unwrap().len() / 4;
    assert!(whole < 8_000 && whole <= 300 * tools.len(), "{whole} tokens for {} tools", tools.len());
}

#[tokio::test]
async fn without_a_token_nothing_is_written() {
    let site = suite().site().await;
    let anonymous = connected(&site, |config| config.api.key = None).await;
    let reading: Vec<&str> = SERVICE.tools.iter().filter(|tool| !tool.writes).map(|tool| tool.name).collect();
    assert_eq!(names(&anonymous).await, reading);
    assert!(!call(&anonymous, "get_issue", in_o_r(json!({ "issue_number": 1 }))).await.failed);
    assert_eq!(site.requests()[0].header("authorization"), None);
    let keyed = connected(&site, |config| config.api.tools.read_only = true).await;
    assert_eq!(names(&keyed).await, reading);
}

#[tokio::test]
async fn hints_say_what_a_tool_does() {
    let site = suite().site().await;
    let connection = connected(&site, |_| {}).await;
    for tool in connection.tools().await.unwrap().iter() {
        let hints = tool.annotations.clone().unwrap();
        let said = [hints.read_only_hint, hints.destructive_hint, hints.idempotent_hint].map(Option::unwrap);
        let want = match tool.name.as_str() {
            "create_or_update_file" | "push_files" | "merge_pull_request" => [false, true, false],
            "update_issue" | "update_pull_request" => [false, true, true],
            "delete_file" | "issue_write" => [false, true, false],
            "fork_repository" => [false, false, true],
            "github_files_write" | "github_issues_write" | "github_pulls_merge" => [false, true, false],
            name if name.starts_with("create") || name.ends_with("_write") => [false, false, false],
            "add_issue_comment" | "update_pull_request_branch" => [false, false, false],
            _ => [true, false, true],
        };
        assert_eq!((said, hints.open_world_hint), (want, Some(true)), "{}", tool.name);
    }
}

#[tokio::test]
async fn arguments_may_be_spelled_as_in_githubs_own_server() {
    let site = suite().site().await;
    let connection = connected(&site, |_| {}).await;
    for (tool, ours, theirs) in [
        ("search_repositories", json!({ "query": "x", "perPage": 5 }), json!({ "q": "x", "per_page": 5 })),
        ("search_issues", json!({ "q": "x", "per_page": 5 }), json!({ "query": "x", "perPage": 5 })),
        ("get_pull_request", in_o_r(json!({ "pull_number": 7 })), in_o_r(json!({ "pullNumber": 7 }))),
        ("list_commits", in_o_r(json!({ "perPage": 5 })), in_o_r(json!({ "per_page": 5.0 }))),
        ("list_issues", in_o_r(json!({ "per_page": 5 })), in_o_r(json!({ "perPage": 5 }))),
        (
            "get_file_contents",
            in_o_r(json!({ "path": "a", "branch": "b" })),
            in_o_r(json!({ "path": "a", "ref": "b" })),
        ),
        (
            "update_pull_request_branch",
            in_o_r(json!({ "pull_number": 7, "expected_head_sha": "c" })),
            in_o_r(json!({ "pullNumber": 7, "expectedHeadSha": "c" })),
        ),
        ("create_repository", json!({ "name": "n", "autoInit": true }), json!({ "name": "n", "auto_init": true })),
    ] {
        let mut seen = Vec::new();
        for arguments in [ours, theirs] {
            let told = call(&connection, tool, arguments).await;
            assert!(!told.failed, "{tool}: {}", told.result);
            let last = site.requests().pop().unwrap();
            seen.push((last.target.clone(), String::from_utf8_lossy(&last.body).into_owned()));
        }
        assert_eq!(seen[0], seen[1], "{tool}");
    }
}

#[tokio::test]
async fn failures_begin_with_the_published_words_and_githubs_own_follow() {
    for (status, headers, first, kind) in [
        (401, "", "Authentication Failed: ", "denied"),
        (403, "", "Permission Denied: ", "denied"),
        (
            403,
            "x-ratelimit-limit: 60\r\nx-ratelimit-remaining: 0\r\nx-ratelimit-reset: 9999999999\r\n",
            "Rate Limit Exceeded",
            "limited",
        ),
        (403, "retry-after: 600\r\n", "Rate Limit Exceeded", "limited"),
        (429, "retry-after: 600\r\n", "Rate Limit Exceeded", "limited"),
        (404, "", "Not Found: ", "not_found"),
        (409, "", "Conflict: ", "conflict"),
        (422, "", "Validation Error: ", "invalid"),
        (500, "", "GitHub API Error: 500 Internal Server Error", "upstream"),
    ] {
        let said = json!({ "message": "Words of GitHub", "errors": [{ "field": "title" }] });
        let site = suite().site_but(move |_| Some(answer(status, headers, &said))).await;
        let connection = connected(&site, |_| {}).await;
        let told = call(&connection, "create_issue", in_o_r(json!({ "title": "T" }))).await;
        assert!(told.failed && told.kind == kind, "{status}: {}", told.result);
        assert!(told.text.starts_with(first), "{status}: {}", told.text);
        let words = told.result["content"][1]["text"].as_str().unwrap();
        assert!(words.contains("Words of GitHub") && words.contains("\"field\":\"title\""), "{words}");
    }
}

#[tokio::test]
async fn an_unknown_method_or_an_argument_of_another_one_is_an_error() {
    let site = suite().site().await;
    let connection = connected(&site, |_| {}).await;
    for (arguments, said) in [
        (json!({ "method": "drop" }), "drop"),
        (json!({}), "method"),
        (json!({ "method": "get" }), "Missing required argument: issue_number"),
        (json!({ "method": "get", "issue_number": 1, "labels": ["x"] }), "Unknown argument: labels"),
    ] {
        let told = call(&connection, "github_issues_read", in_o_r(arguments)).await;
        assert!(told.failed && told.text.contains(said), "{}", told.result);
    }
    assert!(site.requests().is_empty());
}

#[test]
fn hosts_of_enterprise_servers_are_found_and_variables_are_heeded() {
    let opened = |host: &str| {
        let config = Config::default().with(|config| config.host = Some(host.to_owned()));
        open(config).map(|rest| rest.config().api_url.clone())
    };
    for (host, url) in [
        ("git.example.com", Some("https://git.example.com/api/v3")),
        ("https://git.example.com/", Some("https://git.example.com/api/v3")),
        ("git.example.com:8443", Some("https://git.example.com:8443/api/v3")),
        ("octocorp.ghe.com", Some("https://api.octocorp.ghe.com")),
        ("https://api.octocorp.ghe.com", Some("https://api.octocorp.ghe.com")),
        ("github.com", None),
        ("https://api.github.com/", None),
    ] {
        assert_eq!(opened(host).unwrap().as_deref(), url, "{host}");
    }
    assert!(opened("http://git.example.com").is_err(), "no TLS");

    let read = |variables: &[(&str, &str)]| {
        let get = |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
        Config::from_env(Vars::new(&get)).unwrap()
    };
    let config = read(&[
        ("GITHUB_TOKEN", "hidden"),
        ("GITHUB_HOST", "git.example.com"),
        ("GITHUB_READ_ONLY", "1"),
        ("GITHUB_LOCKDOWN_MODE", "true"),
        ("MCP_GITHUB_REPO", "o/r,o/s"),
    ]);
    for (text, on) in [("TRUE", true), ("yes", true), ("on", true), ("0", false), ("False", false), ("", false)] {
        let config = read(&[("GITHUB_READ_ONLY", text), ("GITHUB_LOCKDOWN_MODE", text)]);
        assert_eq!((config.api.tools.read_only, config.lockdown), (on, on), "{text}");
    }
    for name in ["GITHUB_READ_ONLY", "GITHUB_LOCKDOWN_MODE"] {
        let get = |asked: &str| (asked == name).then(|| "enabled".to_owned());
        let refused = Config::from_env(Vars::new(&get)).unwrap_err();
        assert!(refused.to_string().contains(name), "{refused}");
    }
    assert!(config.api.tools.read_only && config.lockdown && !format!("{config:?}").contains("hidden"));
    assert_eq!((config.repositories.len(), config.host.as_deref()), (2, Some("git.example.com")));
    assert_eq!(config.api.key, Some(Secret::new("hidden")));
    let both = read(&[("GITHUB_TOKEN", "second"), ("GITHUB_PERSONAL_ACCESS_TOKEN", "first")]);
    assert_eq!(both.api.key, Some(Secret::new("first")));
    let url = read(&[("GITHUB_API_URL", "https://proxy.example/gh"), ("GITHUB_HOST", "git.example.com")]);
    assert_eq!(open(url).unwrap().config().api_url.as_deref(), Some("https://proxy.example/gh"));
    for wrong in ["o", "o/", "/r", "o/r/x"] {
        let config = Config::default().with(|config| config.repositories = vec![wrong.to_owned()]);
        assert!(open(config).is_err(), "{wrong}");
    }
}

#[tokio::test]
async fn a_search_for_issues_says_which_qualifiers_github_demands() {
    let site = suite().site().await;
    let connection = connected(&site, |_| {}).await;
    let tools = connection.tools().await.unwrap();
    for name in ["search_issues", "github_search"] {
        let tool = tools.iter().find(|tool| tool.name == name).unwrap();
        let said = serde_json::to_string(&tool).unwrap();
        assert!(said.contains("is:issue") && said.contains("is:pr"), "{said}");
    }
}

#[tokio::test]
async fn a_pull_request_is_approved_without_a_word() {
    let site = suite().site().await;
    let connection = connected(&site, |_| {}).await;
    let told =
        call(&connection, "create_pull_request_review", in_o_r(json!({ "pull_number": 7, "event": "APPROVE" }))).await;
    assert!(!told.failed, "{}", told.result);
    assert_eq!(last_body(&site), json!({ "event": "APPROVE" }));
}

#[tokio::test]
async fn a_used_up_allowance_for_searches_leaves_the_others() {
    const USED_UP: &str = "x-ratelimit-limit: 10\r\nx-ratelimit-remaining: 0\r\nx-ratelimit-reset: 9999999999\r\n";
    let site = suite()
        .site_but(|seen| (seen.path() == "/search/code").then(|| answer(200, USED_UP, &json!({ "items": [] }))))
        .await;
    let connection = connected(&site, |config| config.api.key = Some(Secret::new("of-limits"))).await;
    let search = json!({ "q": "x is:issue" });
    assert!(!call(&connection, "search_code", search.clone()).await.failed);
    let told = call(&connection, "search_code", search.clone()).await;
    assert!(told.kind == "limited" && told.text.starts_with("Rate Limit Exceeded: "), "{}", told.result);
    assert!(!call(&connection, "search_issues", search).await.failed);
    assert!(!call(&connection, "get_issue", in_o_r(json!({ "issue_number": 1 }))).await.failed);
}

#[tokio::test]
async fn what_github_asks_to_wait_for_holds_for_everything() {
    let site = suite()
        .site_but(|seen| (seen.path() == "/search/code").then(|| answer(403, "retry-after: 600\r\n", &json!({}))))
        .await;
    let connection = connected(&site, |config| config.api.key = Some(Secret::new("of-a-second-limit"))).await;
    for (tool, arguments) in [("search_code", json!({ "q": "x" })), ("get_issue", in_o_r(json!({ "issue_number": 1 })))]
    {
        let told = call(&connection, tool, arguments).await;
        assert!(told.kind == "limited" && told.text.starts_with("Rate Limit Exceeded: "), "{}", told.result);
    }
    assert_eq!(site.requests().len(), 1);
}
