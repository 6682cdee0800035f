//! Rows with code.

use crate::github::suite;
use linchpin::testing::site::{Do, Site, json};
use linchpin_rest::testing::call;
use serde_json::json;

const PUSH: &str = r#"{"owner":"o","repo":"r","branch":"main","file":{"path":"a","content":"b"},"message":"m"}"#;

#[tokio::test]
async fn when_a_step_fails_no_further_one_is_taken() {
    let suite = suite();
    for failing in 0..4 {
        let site = Site::new(move |n, _| {
            let sha = json!({ "sha": "x", "object": { "sha": "x" } });
            vec![Do::Write(if n == failing { json(500, "", &json!({ "message": "no" })) } else { json(200, "", &sha) })]
        })
        .await;
        let connection = suite.connect(suite.config(&site)).await;
        let told = call(&connection, "push_file", serde_json::from_str(PUSH).unwrap()).await;
        assert!(told.failed && told.kind == "upstream", "{}", told.result);
        assert_eq!(site.requests().len(), failing + 1);
        // After a write whose outcome nobody knows, that is said.
        assert_eq!(told.text.contains("may have taken effect"), failing > 0, "{}", told.text);
    }
}

#[tokio::test]
async fn names_in_steps_are_as_safe_as_arguments_and_nothing_is_forced() {
    let suite = suite();
    let site = suite.site().await;
    let connection = suite.connect(suite.config(&site)).await;
    let mut arguments: serde_json::Value = serde_json::from_str(PUSH).unwrap();
    for branch in ["../../../pulls/1", "a/../b", "%2e%2e/x", ""] {
        arguments["branch"] = json!(branch);
        let told = call(&connection, "push_file", arguments.clone()).await;
        assert!(told.failed && told.kind == "invalid", "{branch}: {}", told.result);
    }
    assert!(site.requests().is_empty());
    arguments["branch"] = json!("feature/x y");
    assert!(!call(&connection, "push_file", arguments).await.failed);
    let seen = site.requests();
    assert_eq!(seen[0].target, "/repos/o/r/git/refs/heads/feature/x%20y");
    assert!(seen.iter().all(|request| !request.everything().contains("force")));
}
