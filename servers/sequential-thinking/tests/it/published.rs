//! The published server beside ours, call by call: npm `server-sequential-thinking` 2026.8.31.
//!
//! Differences that are meant, each with its reason; none of them has a flag to restore the old form unless it is named:
//! - Answers have `sessionId`, and `truncated` and `warnings` where there is something to say.
//! - `branches` are in the order they began. Theirs are in the order of the properties of an object: whole numbers first.
//! - Branches named `__proto__`, `constructor` or `toString` are recorded. Theirs fails, or loses them.
//! - `true`, `null`, `"0x10"` and `["3"]` are no numbers. Theirs reads them as JavaScript's `Number` does: `true` as 1, `"0x10"` as
//!   16, `["3"]` as 3.
//! - Arguments that are wrong are explained in our words; theirs names a validation library.
//! - The tool is not called read-only and idempotent: each call adds a thought.
//! - Thoughts are shown on standard error only with `--log-thoughts` (theirs: unless `DISABLE_THOUGHT_LOGGING=true`), without
//!   colours, and with control characters written out.

use crate::common;

use common::{Caller, LEGACY};
use linchpin::client::{Client, Connection};
use linchpin::transport::Child;
use linchpin_sequential_thinking::Config;
use serde_json::{Value, json};
use std::path::PathBuf;

async fn theirs() -> Connection {
    let root = std::env::var_os("LINCHPIN_PUBLISHED").expect("LINCHPIN_PUBLISHED names an installation");
    let child = Child::new(PathBuf::from(root).join("node_modules/.bin/mcp-server-sequential-thinking"));
    Client::new("test", "0")
        .revisions(LEGACY)
        .connect(child.env("DISABLE_THOUGHT_LOGGING", "true"))
        .await
        .expect("it starts")
}

/// Text and structured content, or `None` for an error.
async fn ask(connection: &Connection, arguments: Value) -> Option<(String, Value)> {
    let result = connection.call("sequentialthinking", arguments).await.expect("an answer");
    (!result.is_error()).then(|| {
        let structured = result.structured().expect("structured content");
        (result.text(), serde_json::from_str(structured).expect("JSON"))
    })
}

/// Our answer in the published form: without the members that only ours has.
fn published_form(value: &Value) -> (String, Value) {
    let mut value = value.clone();
    for ours in ["sessionId", "truncated", "warnings"] {
        value.as_object_mut().expect("an object").shift_remove(ours);
    }
    (serde_json::to_string_pretty(&value).expect("JSON"), value)
}

#[tokio::test]
#[ignore = "needs the published packages: cargo xtask test --only published"]
async fn the_same_steps_get_the_same_answers() {
    let (theirs, ours) = (theirs().await, Caller::speaking(Config::default(), LEGACY).await);
    let base = |more: Value| common::thought(1, more);
    for args in [
        base(json!({})),
        base(json!({ "thoughtNumber": 2, "nextThoughtNeeded": "true" })),
        base(json!({ "thoughtNumber": "3", "totalThoughts": "4", "nextThoughtNeeded": "False" })),
        base(json!({ "thoughtNumber": 9, "totalThoughts": 2 })),
        base(json!({ "thoughtNumber": 3.0 })),
        base(json!({ "thoughtNumber": " 3 " })),
        base(json!({ "thoughtNumber": "1e1" })),
        base(json!({ "isRevision": true, "revisesThought": 1 })),
        base(json!({ "isRevision": "true", "revisesThought": "77" })),
        base(json!({ "branchFromThought": 1, "branchId": "b" })),
        base(json!({ "branchFromThought": 99, "branchId": "a" })),
        base(json!({ "branchFromThought": 1, "branchId": "b" })),
        base(json!({ "branchFromThought": 1 })),
        base(json!({ "branchId": "c" })),
        base(json!({ "branchFromThought": 1, "branchId": "" })),
        base(json!({ "needsMoreThoughts": true })),
        base(json!({ "thought": "" })),
        base(json!({ "thought": "ä\u{1b}[31m\n\"quoted\" \\ \u{0}" })),
        base(json!({ "unknown": 1 })),
        // Refused by both, and counted by neither.
        base(json!({ "nextThoughtNeeded": "yes" })),
        base(json!({ "nextThoughtNeeded": 1 })),
        base(json!({ "thoughtNumber": 0 })),
        base(json!({ "thoughtNumber": -1 })),
        base(json!({ "thoughtNumber": 1.5 })),
        base(json!({ "thoughtNumber": "x" })),
        base(json!({ "thoughtNumber": "" })),
        base(json!({ "totalThoughts": 0 })),
        base(json!({ "revisesThought": 0 })),
        base(json!({ "branchFromThought": 0, "branchId": "z" })),
        base(json!({ "thought": 1 })),
        json!({ "thought": "t" }),
        json!({}),
        base(json!({})),
    ] {
        let their = ask(&theirs, args.clone()).await;
        let our = ask(&ours.0, args.clone()).await;
        assert_eq!(their, our.as_ref().map(|(_, value)| published_form(value)), "{args}");
        if let Some((text, value)) = our {
            assert_eq!(text, serde_json::to_string_pretty(&value).expect("JSON"), "the text is the structured content");
        }
    }
}

#[tokio::test]
#[ignore = "needs the published packages: cargo xtask test --only published"]
async fn the_differences_are_still_differences() {
    let (theirs, ours) = (theirs().await, Caller::speaking(Config::default(), LEGACY).await);
    let branch = |name: &str| common::thought(1, json!({ "branchFromThought": 1, "branchId": name }));
    for name in ["b", "10", "2"] {
        ask(&theirs, branch(name)).await.expect("recorded");
        ask(&ours.0, branch(name)).await.expect("recorded");
    }
    let (their, our) = (ask(&theirs, branch("b")).await.unwrap().1, ask(&ours.0, branch("b")).await.unwrap().1);
    assert_eq!((&their["branches"], &our["branches"]), (&json!(["2", "10", "b"]), &json!(["b", "10", "2"])));
    for name in ["__proto__", "constructor", "toString"] {
        let listed = |answer: Option<(String, Value)>| {
            answer.is_some_and(|(_, value)| value["branches"].as_array().is_some_and(|all| all.contains(&json!(name))))
        };
        assert!(!listed(ask(&theirs, branch(name)).await), "{name}");
        assert!(listed(ask(&ours.0, branch(name)).await), "{name}");
    }
    for wrong in [json!(true), json!("0x10"), json!("0b11"), json!(["3"]), json!([3])] {
        let wrong = common::thought(1, json!({ "thoughtNumber": wrong }));
        assert!(ask(&theirs, wrong.clone()).await.is_some() && ask(&ours.0, wrong.clone()).await.is_none(), "{wrong}");
    }
}

#[tokio::test]
#[ignore = "needs the published packages: cargo xtask test --only published"]
async fn the_lists_have_the_same_arguments() {
    let (theirs, ours) =
        (theirs().await.tools().await.unwrap(), Caller::of(Config::default()).await.0.tools().await.unwrap());
    assert_eq!(theirs.len(), 1);
    assert_eq!((&theirs[0].name, theirs.len()), (&ours[0].name, ours.len()));
    let schema = |text: &str| serde_json::from_str::<Value>(text).expect("JSON");
    let (their, our) = (schema(theirs[0].input_schema.get()), schema(ours[0].input_schema.get()));
    assert_eq!(their["required"], our["required"]);
    for (name, property) in their["properties"].as_object().unwrap() {
        for rule in ["type", "minimum"] {
            assert_eq!(property[rule], our["properties"][name][rule], "{name} {rule}");
        }
    }
}
