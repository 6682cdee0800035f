//! Completion functions are handlers: they take the state, the context and what is asked, or any of them.

use crate::common::{ALL, Peer};
use linchpin::Completion;
use linchpin::prelude::*;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};

#[derive(Deserialize, JsonSchema)]
struct Trip {
    #[allow(dead_code, reason = "only its name is asked for")]
    a: Option<String>,
    #[allow(dead_code, reason = "only its name is asked for")]
    b: Option<String>,
    #[allow(dead_code, reason = "only its name is asked for")]
    c: Option<String>,
    #[allow(dead_code, reason = "only its name is asked for")]
    d: Option<String>,
}

struct Places {
    names: Vec<&'static str>,
}

async fn all(places: &Places, cx: &Cx, asked: Completion) -> Vec<String> {
    tokio::task::yield_now().await;
    asked.filter(places.names.iter().map(|name| format!("{name} {}", cx.revision().as_str())))
}

fn of_state(places: &Places) -> Vec<String> {
    places.names.iter().map(|name| (*name).to_owned()).collect()
}

async fn of_context(cx: &Cx, asked: Completion) -> Result<Vec<String>> {
    match asked.value.as_str() {
        "fail" => Err(Error::tool(format!("no values in {}", cx.revision().as_str()))),
        value => Ok(vec![format!("{}={value}", asked.argument)]),
    }
}

fn of_nothing() -> Vec<&'static str> {
    vec!["constant"]
}

fn prompts() -> Server<Places> {
    let prompt = Prompt::new("trip", "")
        .complete_with("a", all)
        .complete_with("b", of_state)
        .complete("c", of_context)
        .complete("d", of_nothing);
    Server::new("travel", "1").state(Places { names: vec!["Oslo", "Bergen"] }).prompt(prompt, |_: Trip| "")
}

async fn complete(peer: &mut Peer, reference: Value, argument: &str, value: &str) -> Value {
    let argument = json!({ "name": argument, "value": value });
    let mut answer = peer.ask("completion/complete", json!({ "ref": reference, "argument": argument })).await;
    match answer["result"]["completion"]["values"].take() {
        Value::Null => answer["error"].take(),
        values => values,
    }
}

#[tokio::test]
async fn a_completion_function_takes_any_of_state_context_and_question() {
    for revision in ALL {
        let mut peer = Peer::plain(prompts().state(()), revision).await;
        let trip = || json!({ "type": "ref/prompt", "name": "trip" });
        for (argument, value, want) in [
            ("a", "ber", json!([format!("Bergen {revision}")])),
            ("b", "ber", json!(["Oslo", "Bergen"])),
            ("c", "x", json!(["c=x"])),
            ("c", "fail", json!({ "code": -32603, "message": format!("no values in {revision}") })),
            ("d", "", json!(["constant"])),
        ] {
            assert_eq!(complete(&mut peer, trip(), argument, value).await, want, "{argument} {value} in {revision}");
        }
    }
}

#[tokio::test]
async fn a_server_without_completion_functions_has_no_such_method() {
    let without = || Server::new("travel", "1").prompt("trip", |_: Trip| "").resource("log://{a}", |_: Trip| "");
    for revision in ALL {
        let mut peer = Peer::plain(without(), revision).await;
        for reference in
            [json!({ "type": "ref/prompt", "name": "trip" }), json!({ "type": "ref/resource", "uri": "log://{a}" })]
        {
            assert_eq!(complete(&mut peer, reference, "a", "").await["code"], -32601, "{revision}");
        }
    }
}

#[tokio::test]
async fn what_is_unknown_or_no_object_is_refused() {
    let served = || prompts().resource("log://{a}/{b}", |_: Trip| "").resource("log://all", || "").state(());
    let (trip, log) =
        (json!({ "type": "ref/prompt", "name": "trip" }), json!({ "type": "ref/resource", "uri": "log://{a}/{b}" }));
    let argument = json!({ "name": "a", "value": "" });
    let refused = [
        json!({ "ref": trip, "argument": { "name": "e", "value": "" } }),
        json!({ "ref": log, "argument": { "name": "c", "value": "" } }),
        json!({ "ref": { "type": "ref/resource", "uri": "log://all" }, "argument": argument }),
        json!({ "ref": ["ref/prompt", { "name": "trip" }], "argument": argument }),
        json!({ "ref": trip, "argument": ["a", ""] }),
        json!({ "ref": trip, "argument": argument, "context": [{ "b": "1" }] }),
    ];
    for revision in ALL {
        let mut peer = Peer::plain(served(), revision).await;
        for params in &refused {
            let answer = peer.ask("completion/complete", params.clone()).await;
            assert_eq!(answer["error"]["code"], -32602, "{params}: {answer}");
        }
        assert_eq!(complete(&mut peer, log.clone(), "b", "").await, json!([]), "a variable without suggestions");
        for context in [json!(null), json!({ "arguments": { "b": "1" } })] {
            let params = json!({ "ref": trip, "argument": { "name": "d", "value": "" }, "context": context });
            let answer = peer.ask("completion/complete", params).await;
            assert_eq!(answer["result"]["completion"]["values"], json!(["constant"]), "{answer}");
        }
    }
}

struct Log;

#[register]
impl Log {
    async fn days(&self, asked: Completion) -> Vec<String> {
        asked.filter(["monday", "friday"])
    }

    /// A day.
    #[resource("log://{day}", complete(day = Self::days))]
    async fn read(&self, day: String) -> String {
        day
    }
}

#[tokio::test]
async fn completion_functions_of_a_registered_type_are_its_methods() {
    let mut peer = Peer::plain(Server::new("log", "1").with(Log), "2025-11-25").await;
    let day = json!({ "type": "ref/resource", "uri": "log://{day}" });
    assert_eq!(complete(&mut peer, day, "day", "f").await, json!(["friday"]));
}

#[tokio::test]
async fn the_state_of_completion_functions_is_per_session_where_that_of_the_item_is() {
    struct Counter(AtomicUsize);
    let server = Server::new("counter", "1").session_state(|| Counter(AtomicUsize::new(0))).prompt(
        Prompt::new("trip", "")
            .complete_with("a", |counter: &Counter| vec![counter.0.fetch_add(1, Ordering::Relaxed).to_string()]),
        |_: Trip| "",
    );
    let service = crate::common::service(server.state(()));
    let trip = || json!({ "type": "ref/prompt", "name": "trip" });
    for _ in 0..2 {
        let mut peer = Peer::of(service.clone(), "2025-11-25", json!({})).await;
        for count in ["0", "1"] {
            assert_eq!(complete(&mut peer, trip(), "a", "").await, json!([count]));
        }
    }
}

#[test]
fn a_completion_function_of_another_state_is_reported_at_start() {
    let prompt = Prompt::new("trip", "").complete_with("a", of_state);
    let problem = Server::new("travel", "1").prompt(prompt, |_: Trip| "");
    let problem = linchpin::transport::IntoService::into_shared(problem).err().unwrap().to_string();
    assert!(problem.contains("completes `a` with a function of `"), "{problem}");
    assert!(problem.contains("Places`, which is not its state"), "{problem}");
}
