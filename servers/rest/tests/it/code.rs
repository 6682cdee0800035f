//! Rows with code.

use crate::github::suite;
use linchpin::testing::site::{Do, Site, json};
use linchpin_kit::{ErrorKind, Service, ToolError};
use linchpin_rest::testing::{Suite, call};
use linchpin_rest::{Answer, Api, Args, Call, Pages, Problems, Rest, get, segment, specs};
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

/// The rooms that have names.
struct Names(&'static [(&'static str, &'static str)]);

const ROOMS: &[Call] = &[get("get_room", "Room", "rooms", "Reads a room.", "/rooms/{id}")
    .args(&[segment("id")])
    .list("people")
    .pages(Pages::Token { at: "next", param: "page" })
    .before(|rest, args| Box::pin(named(rest, args)))];
const HOUSE: Api = Api::new("house", "House", "https://house.example", ROOMS).problems(
    Problems::PLAIN
        .words(&[(0, "No")])
        .failed(|answer| answer["locked"].as_bool()?.then_some(ErrorKind::Denied))
        .advise(|answer| answer["locked"].as_bool()?.then_some("Ask for the key.")),
);
const SERVICE: Service = Service { name: "house", tools: &specs::<1>(ROOMS) };

async fn named(rest: &Rest, args: &mut Args) -> Result<Option<Answer>, ToolError> {
    let Names(names) = rest.state().ok_or_else(|| ToolError::new("no names"))?;
    match names.iter().find(|(name, _)| *name == args.text("id")) {
        Some((_, "")) => Ok(Some(json!({ "people": ["nobody"] }).into())),
        Some((_, id)) => {
            args.set("id", *id);
            Ok(None)
        }
        None => Err(ToolError::not_found("No such room")),
    }
}

#[tokio::test]
async fn code_before_a_request_changes_arguments_refuses_them_or_answers() {
    let rooms = json!({ "operations": [], "calls": {} }).to_string();
    let names = Names(&[("kitchen", "7"), ("cellar", "")]);
    let suite = Suite::new(&HOUSE, &SERVICE, &rooms);
    let site = Site::new(|n, _| {
        vec![Do::Write(match n {
            0 => json(200, "", &json!({ "people": ["ann"], "next": "p2" })),
            1 => json(200, "", &json!({ "people": ["bob"], "next": "p2" })),
            _ => json(200, "", &json!({ "locked": true })),
        })]
    })
    .await;
    let rest = Rest::open(&HOUSE, suite.config(&site)).unwrap().with_state(names);
    let connection = suite.serve(rest).await;
    let told = call(&connection, "get_room", json!({ "id": "cellar" })).await;
    assert_eq!(told.structured, json!({ "items": ["nobody"] }));
    let told = call(&connection, "get_room", json!({ "id": "attic" })).await;
    assert_eq!((told.text.as_str(), told.kind.as_str()), ("No such room", "not_found"));
    assert!(site.requests().is_empty());
    // The cursor belongs to the arguments as they were given. A page that leads to itself is the last.
    let told = call(&connection, "get_room", json!({ "id": "kitchen" })).await;
    let next = json!({ "id": "kitchen", "cursor": told.structured["next_cursor"] });
    let told = call(&connection, "get_room", next).await;
    assert_eq!(told.structured, json!({ "items": ["bob"] }));
    let told = call(&connection, "get_room", json!({ "id": "kitchen" })).await;
    assert_eq!((told.text.as_str(), told.kind.as_str()), ("No\nHint: Ask for the key.", "denied"));
    let targets: Vec<String> = site.requests().iter().map(|seen| seen.target.clone()).collect();
    assert_eq!(targets, ["/rooms/7", "/rooms/7?page=p2", "/rooms/7"]);
}
