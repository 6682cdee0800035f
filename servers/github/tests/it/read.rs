//! Reading: files as text, the checks of a pull request, and results as the published server writes them.

use crate::rows::{connected, in_o_r, sent, site};
use linchpin_rest::testing::{KEY, call};
use serde_json::{Value, json};

fn file(encoded: &str) -> Value {
    json!({ "type": "file", "path": "a", "sha": "1", "size": 3, "encoding": "base64", "content": encoded })
}

#[tokio::test]
async fn a_file_is_text_and_its_line_breaks_stay() {
    for (encoded, content, left_out) in [
        ("VGV4\ndA==\n", "Text", None),
        ("YQ0KYgpj", "a\r\nb\nc", None),
        // A right-to-left override and a tag character.
        ("YeKAruKAi/OggYFi", "ab", Some("3 control or invisible characters")),
        ("", "", None),
    ] {
        let site = site(move |seen| seen.path().ends_with("/contents/a").then(|| (200, file(encoded)))).await;
        let connection = connected(&site, |_| {}).await;
        let told = call(&connection, "get_file_contents", in_o_r(json!({ "path": "a", "branch": "x&y=1#z" }))).await;
        assert_eq!(told.structured["content"], content, "{}", told.result);
        assert_eq!(told.structured.get("left_out").and_then(Value::as_str), left_out);
        assert_eq!(sent(&site), ["GET /repos/o/r/contents/a?ref=x%26y%3D1%23z"]);
        let shown: Value = serde_json::from_str(&told.text).unwrap();
        assert_eq!(shown, told.structured, "the JSON is the text");
    }
}

#[tokio::test]
async fn what_is_no_text_is_left_out_and_an_image_is_shown() {
    for (encoded, blocks) in [("iVBORw0KGgo=", 1), ("AAEC", 0), ("/////w==", 0)] {
        let site = site(move |seen| seen.path().ends_with("/contents/a").then(|| (200, file(encoded)))).await;
        let connection = connected(&site, |_| {}).await;
        let told = call(&connection, "get_file_contents", in_o_r(json!({ "path": "a" }))).await;
        assert_eq!((told.structured.get("content"), &told.structured["binary"]), (None, &json!(true)));
        let images = told.result["content"].as_array().unwrap().iter().filter(|block| block["type"] == "image").count();
        assert_eq!(images, blocks, "{}", told.result);
    }
}

#[tokio::test]
async fn a_file_that_is_too_large_for_one_endpoint_comes_from_the_other() {
    let site = site(|seen| match seen.path() {
        "/repos/o/r/contents/a" => {
            Some((200, json!({ "type": "file", "sha": "big", "size": 2_000_000, "encoding": "none", "content": "" })))
        }
        "/repos/o/r/git/blobs/big" => Some((200, json!({ "encoding": "base64", "content": "YWFh".repeat(20_000) }))),
        _ => None,
    })
    .await;
    let connection = connected(&site, |_| {}).await;
    let mut arguments = in_o_r(json!({ "path": "a" }));
    let (mut whole, mut calls) = (0, 0);
    loop {
        let told = call(&connection, "get_file_contents", arguments.clone()).await;
        whole += told.structured["content"].as_str().unwrap().len();
        calls += 1;
        let Some(cursor) = told.structured.get("next_cursor") else { break };
        arguments["cursor"] = cursor.clone();
    }
    assert_eq!((whole, calls), (60_000, 3));
}

#[tokio::test]
async fn a_directory_is_an_array_and_a_large_one_is_still_whole() {
    let entries = |n: usize| {
        let entry = |at: usize| {
            json!({ "type": "file", "name": format!("file-{at}"), "path": format!("d/file-{at}"), "sha": "0".repeat(40),
                "size": at, "url": "https://api.github.com/long".repeat(9) })
        };
        Value::Array((0..n).map(entry).collect())
    };
    for (n, has_url) in [(2, true), (900, false)] {
        let answer = entries(n);
        let site = site(move |seen| seen.path().ends_with("/contents").then(|| (200, answer.clone()))).await;
        let connection = connected(&site, |_| {}).await;
        let told = call(&connection, "get_file_contents", in_o_r(json!({ "path": "/" }))).await;
        let shown: Value = serde_json::from_str(&told.text).unwrap();
        assert_eq!((shown.as_array().unwrap().len(), shown[0].get("url").is_some()), (n, has_url), "{}", told.result);
    }
}

#[tokio::test]
async fn a_file_that_has_the_token_in_it_is_shown_without() {
    // base64 of "x k3y-that-must-not-be-seen y"
    let encoded = "eCBrM3ktdGhhdC1tdXN0LW5vdC1iZS1zZWVuIHk=";
    let site = site(move |seen| seen.path().ends_with("/contents/a").then(|| (200, file(encoded)))).await;
    let connection = connected(&site, |_| {}).await;
    let told = call(&connection, "get_file_contents", in_o_r(json!({ "path": "a" }))).await;
    assert_eq!(told.structured["content"], "x *** y");
    assert!(!told.result.to_string().contains(KEY));
}

#[tokio::test]
async fn the_status_of_a_pull_request_has_its_check_runs() {
    for (runs, shown) in [(None, json!("Two errors")), (Some(403), Value::Null)] {
        let site = site(move |seen| {
            let refused = || (runs.unwrap_or(200), json!({ "message": "Resource not accessible" }));
            (runs.is_some() && seen.path().ends_with("/check-runs")).then(refused)
        })
        .await;
        let connection = connected(&site, |_| {}).await;
        let told = call(&connection, "get_pull_request_status", in_o_r(json!({ "pull_number": 7 }))).await;
        assert!(!told.failed, "{}", told.result);
        assert_eq!(told.structured["state"], "success");
        assert_eq!(told.structured["check_runs"][0]["output"]["title"], shown, "{}", told.result);
        if runs.is_some() {
            let why = told.structured["check_runs"].as_str().unwrap();
            assert!(why.starts_with("not known: Permission Denied"), "{why}");
        }
    }
}

#[tokio::test]
async fn results_are_the_json_of_the_api_on_several_lines() {
    let site = site(|_| None).await;
    let connection = connected(&site, |_| {}).await;
    let told = call(&connection, "update_pull_request_branch", in_o_r(json!({ "pull_number": 7 }))).await;
    assert_eq!(told.text, "{\n  \"success\": true\n}");
    let told = call(&connection, "list_issues", in_o_r(json!({}))).await;
    assert!(told.text.starts_with("[\n  {\n    \"number\": 1,"), "{}", told.text);
    assert!(told.text.contains("\"reactions\""), "all of an issue is there");
    let told = call(&connection, "search_users", json!({ "q": "ann" })).await;
    assert!(told.text.starts_with("{\n  \"total_count\": 2,"), "{}", told.text);
    let compact = call(&connection, "github_issues_read", in_o_r(json!({ "method": "list" }))).await;
    assert!(compact.text.len() * 3 < told.text.len() * 8 && !compact.text.contains("reactions"), "{}", compact.text);
    let chosen = in_o_r(json!({ "method": "get", "issue_number": 1, "fields": ["title", "reactions.url"] }));
    let told = call(&connection, "github_issues_read", chosen).await;
    assert_eq!(told.structured, json!({ "title": "One", "reactions": { "url": "x" } }));
}

#[tokio::test]
async fn invisible_characters_are_in_no_result() {
    let site = site(|seen| {
        let title = "pay\u{202e}pal\u{e0041}\u{200b}";
        seen.path().ends_with("/issues/1").then(|| (200, json!({ "number": 1, "title": title, "body": title })))
    })
    .await;
    let connection = connected(&site, |_| {}).await;
    let told = call(&connection, "get_issue", in_o_r(json!({ "issue_number": 1 }))).await;
    assert_eq!((&told.structured["title"], &told.structured["body"]), (&json!("paypal"), &json!("paypal")));
    assert!(!told.result.to_string().contains(['\u{202e}', '\u{e0041}', '\u{200b}']));
}

#[tokio::test]
async fn checks_that_are_not_shown_are_counted_and_no_status_is_no_pending_one() {
    let run = |n: usize| json!({ "name": format!("run-{n}"), "status": "completed", "conclusion": "success" });
    for (statuses, total, runs, state, left_out) in [
        (json!([]), 0, 2, None, [None, None]),
        (json!([]), 0, 0, Some("pending"), [None, None]),
        (json!([{ "context": "c", "state": "success" }]), 3, 130, Some("pending"), [Some(2), Some(30)]),
    ] {
        let site = site(move |seen| match seen.path() {
            path if path.ends_with("/status") => {
                assert!(seen.query().contains("per_page=100"), "{}", seen.target);
                Some((200, json!({ "state": "pending", "sha": "c", "total_count": total, "statuses": statuses })))
            }
            path if path.ends_with("/check-runs") => {
                let shown: Vec<Value> = (0..runs.min(100)).map(run).collect();
                Some((200, json!({ "total_count": runs, "check_runs": shown })))
            }
            _ => None,
        })
        .await;
        let connection = connected(&site, |_| {}).await;
        for (tool, arguments) in [
            ("get_pull_request_status", json!({ "pull_number": 7 })),
            ("github_pulls_read", json!({ "method": "status", "pull_number": 7 })),
        ] {
            let told = call(&connection, tool, in_o_r(arguments)).await.structured;
            assert_eq!(told.get("state").and_then(Value::as_str), state, "{tool}: {told}");
            let counts =
                ["statuses_left_out", "check_runs_left_out"].map(|name| told.get(name).and_then(Value::as_u64));
            assert_eq!(counts, left_out, "{tool}: {told}");
        }
    }
}
