//! What the engine does with responses: confirmed ones, compressed ones, the words of errors, arguments under other names.

use crate::github::suite;
use linchpin::testing::site::{Do, Site, answer, json};
use linchpin_rest::testing::call;
use serde_json::json;
use std::io::Write as _;

#[tokio::test]
async fn what_the_server_confirms_is_not_sent_again() {
    let suite = suite();
    let site = Site::new(|n, seen| {
        vec![Do::Write(match (n, seen.header("if-none-match")) {
            (0, None) => json(200, "etag: \"one\"\r\n", &json!({ "number": 1 })),
            (1, Some("\"one\"")) => answer(304, "", ""),
            (2, Some("\"one\"")) => json(200, "etag: \"two\"\r\n", &json!({ "number": 2 })),
            (3, Some("\"two\"")) => answer(304, "etag: \"two\"\r\n", ""),
            // Another address, and another write.
            (4 | 5, None) => json(200, "etag: \"other\"\r\n", &json!({ "number": 3 })),
            other => panic!("{other:?}: {seen:?}"),
        })]
    })
    .await;
    let connection = suite.connect(suite.config(&site)).await;
    for (repo, number) in [("r", 1), ("r", 1), ("r", 2), ("r", 2), ("s", 3)] {
        let told = call(&connection, "get_issue", json!({ "owner": "o", "repo": repo, "issue_number": 1 })).await;
        assert_eq!(told.structured["number"], number, "{}", told.result);
    }
    let told = call(&connection, "update_issue", json!({ "owner": "o", "repo": "r", "issue_number": 1 })).await;
    assert_eq!(told.structured["number"], 3);
    assert_eq!(site.requests().len(), 6);
}

#[tokio::test]
async fn a_confirmation_of_something_unknown_is_an_error() {
    let suite = suite();
    let site = Site::saying(answer(304, "", "")).await;
    let connection = suite.connect(suite.config(&site)).await;
    let told = call(&connection, "get_me", json!({})).await;
    assert!(told.failed && told.kind == "upstream", "{}", told.result);
}

#[tokio::test]
async fn compressed_answers_are_read_and_limits_hold_for_what_is_in_them() {
    let suite = suite();
    let packed = |text: &str| {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        encoder.write_all(text.as_bytes()).unwrap();
        answer(200, "content-encoding: gzip\r\n", encoder.finish().unwrap())
    };
    let bodies = [packed(r#"{"login":"ann"}"#), packed(&format!("\"{}\"", "x".repeat(20 << 20)))];
    let site = Site::new(move |n, seen| {
        assert!(seen.header("accept-encoding").is_some_and(|codings| codings.contains("gzip")));
        vec![Do::Write(bodies[n].clone())]
    })
    .await;
    let connection = suite.connect(suite.config(&site)).await;
    assert_eq!(call(&connection, "get_me", json!({})).await.structured, json!({ "login": "ann" }));
    let told = call(&connection, "get_me", json!({})).await;
    assert!(told.failed && told.text.contains("exceeds the limit"), "{}", told.result);
}

#[tokio::test]
async fn errors_have_our_words_and_the_words_of_the_api_in_a_block_of_their_own() {
    let suite = suite();
    let said =
        json!({ "message": "Validation Failed\u{202e}", "errors": [{ "field": "title" }], "documentation_url": "x" });
    let site = Site::saying(json(422, "", &said)).await;
    let connection = suite.connect(suite.config(&site)).await;
    let told = call(&connection, "create_issue", json!({ "owner": "o", "repo": "r", "title": "T" })).await;
    assert_eq!(told.text, "Validation Error");
    let theirs = &told.result["content"][1];
    assert_eq!(theirs["text"], "Validation Failed\\u{202e}\n[{\"field\":\"title\"}]");
    assert_eq!(theirs["annotations"]["audience"], json!(["assistant"]));
}

#[tokio::test]
async fn a_limit_is_told_as_such_whatever_its_status_and_with_its_end() {
    let suite = suite();
    for (headers, kind, retry) in [
        ("", "denied", json!(null)),
        ("x-ratelimit-remaining: 7\r\n", "denied", json!(null)),
        ("retry-after: 60\r\n", "limited", json!(60)),
        ("x-ratelimit-remaining: 0\r\n", "limited", json!(null)),
    ] {
        let site = Site::saying(json(403, headers, &json!({ "message": "no" }))).await;
        let connection = suite.connect(suite.config(&site)).await;
        let told = call(&connection, "create_issue", json!({ "owner": "o", "repo": "r", "title": "T" })).await;
        assert_eq!(told.kind, kind, "{headers}: {}", told.result);
        assert_eq!(told.result["_meta"][linchpin_kit::ERROR_META]["retry_after"], retry, "{}", told.result);
        assert_eq!(told.text.starts_with("Rate Limit Exceeded"), kind == "limited", "{}", told.text);
        // Until then nothing more is sent.
        let sent = site.requests().len();
        let told = call(&connection, "get_me", json!({})).await;
        assert_eq!((told.failed, site.requests().len() > sent), (true, retry.is_null()), "{headers}: {}", told.result);
    }
}

#[tokio::test]
async fn arguments_have_other_names_too_and_unknown_ones_are_told() {
    let suite = suite();
    let site = suite.site().await;
    let connection = suite.connect(suite.config(&site)).await;
    for (arguments, query) in [
        (json!({ "owner": "o", "repo": "r", "per_page": 5 }), "state=open&per_page=5"),
        (json!({ "owner": "o", "repo": "r", "perPage": 5.0, "labels": "bug" }), "state=open&labels=bug&per_page=5"),
        (
            json!({ "owner": "o", "repo": "r", "labels": ["a", "b"], "state": null }),
            "state=open&labels=a%2Cb&per_page=30",
        ),
    ] {
        let told = call(&connection, "list_issues", arguments.clone()).await;
        assert!(!told.failed, "{arguments}: {}", told.result);
        assert_eq!(site.requests().last().unwrap().query(), query);
    }
    let before = site.requests().len();
    for (more, says) in [
        (json!({ "stat": "open" }), "Unknown argument: stat\nHint: Did you mean state?"),
        (json!({ "zzzzzz": 1 }), "Unknown argument: zzzzzz\nHint: Known: owner, repo, state, labels, perPage, cursor."),
        (json!({ "perPage": 101 }), "perPage"),
        (json!({ "state": "any" }), "state"),
        (json!({ "owner": "" }), "Invalid argument owner: it is empty"),
    ] {
        let mut arguments = json!({ "owner": "o", "repo": "r" });
        arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let told = call(&connection, "list_issues", arguments).await;
        assert!(told.failed && told.text.contains(says), "{}", told.result);
    }
    assert_eq!(site.requests().len(), before);
}
