//! Multi-round-trip requests: the same handler with sessions and with stateless requests.

use crate::common;

use bytes::Bytes;
use common::{ALL, LEGACY, MODERN, Peer, code, failed, text};
use linchpin::prelude::*;
use linchpin::types::sample::{CreateMessageRequestParams, IncludeContext, SamplingMessage};
use linchpin_core::service::RequestContext;
use linchpin_core::{CallStart, Principal, Service};
use linchpin_proto::{engine, frame};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

#[derive(Deserialize, JsonSchema)]
struct Who {
    /// Your name.
    name: String,
    age: Option<u8>,
}

#[derive(Deserialize, JsonSchema)]
struct Sure {
    yes: bool,
}

#[derive(Deserialize, JsonSchema)]
struct Topic {
    topic: Option<String>,
}

#[derive(Default)]
struct Desk {
    effects: AtomicUsize,
}

impl Desk {
    async fn greet(&self, cx: &Cx, _: Topic) -> Result<String> {
        let who: Who = cx.elicit("who", "Who are you?").await?;
        Ok(format!("Hello {}, {}", who.name, who.age.unwrap_or(0)))
    }

    async fn two(&self, cx: &Cx, _: Topic) -> Result<String> {
        let first: Who = cx.elicit("first", "First?").await?;
        let second: Who = cx.elicit("second", "Second?").await?;
        Ok(format!("{} and {}", first.name, second.name))
    }

    async fn both(&self, cx: &Cx, _: Topic) -> Result<String> {
        let (first, second) = (cx.elicit::<Who>("first", "First?").await, cx.elicit::<Who>("second", "Second?").await);
        Ok(format!("{} and {}", first?.name, second?.name))
    }

    async fn once(&self, cx: &Cx, _: Topic) -> Result<String> {
        let ticket = cx.memoize("ticket", async { Ok(self.effects.fetch_add(1, Ordering::SeqCst) + 1) }).await?;
        let sure: Sure = cx.elicit("sure", "Really?").await?;
        Ok(format!("ticket {ticket}, {}", sure.yes))
    }

    async fn for_ever(&self, cx: &Cx, _: Topic) -> Result<String> {
        for n in 0.. {
            cx.elicit::<Sure>(&format!("q{n}"), "Again?").await?;
        }
        Ok("never".into())
    }

    async fn login(&self, cx: &Cx, _: Topic) -> Result<String> {
        Ok(format!("{:?}", cx.elicit_url("login", "Please log in.", "https://example.com/login").await?))
    }

    async fn bad_url(&self, cx: &Cx, _: Topic) -> Result<String> {
        Ok(format!("{:?}", cx.elicit_url("login", "Please log in.", "not a url").await?))
    }

    async fn think(&self, cx: &Cx, _: Topic) -> Result<String> {
        let request = CreateMessageRequestParams::new([SamplingMessage::user("Think.")], 10)
            .with_include_context(IncludeContext::AllServers);
        let answer = cx.sample("thought", request).await?;
        Ok(answer.content[0].as_text().unwrap_or_default().to_owned())
    }

    async fn unbalanced(&self, cx: &Cx, _: Topic) -> Result<String> {
        let result = json!({ "type": "tool_result", "toolUseId": "never asked", "content": [] });
        let message = serde_json::from_value(json!({ "role": "user", "content": [result] }))?;
        let request = CreateMessageRequestParams::new([message], 10);
        Ok(cx.sample("thought", request).await.map(|_| String::new())?)
    }

    async fn many_blocks(&self, cx: &Cx, q: Topic) -> Result<String> {
        let audio = q.topic.map(|_| json!({ "type": "audio", "data": "AAAA", "mimeType": "audio/wav" }));
        let second = audio.unwrap_or_else(|| json!({ "type": "text", "text": "two" }));
        let message = json!({ "role": "user", "content": [{ "type": "text", "text": "one" }, second] });
        let messages = vec![serde_json::from_value(message)?];
        let request = CreateMessageRequestParams::new(messages, 10);
        Ok(cx.sample("thought", request).await?.model)
    }

    async fn form_of_all(&self, cx: &Cx, q: Topic) -> Result<String> {
        let sizes = json!({ "type": "array", "items": { "type": "string", "enum": ["s", "l"] } });
        let mut schema = json!({ "type": "object", "properties": {
            "name": { "type": "string", "title": "Name", "minLength": 1, "maxLength": 9, "format": "email", "default": "a@b" },
            "age": { "type": "integer", "minimum": 0, "maximum": 150, "default": 30 },
            "part": { "type": "number", "default": 0.5 },
            "sure": { "type": "boolean", "default": true },
            "color": { "type": "string", "oneOf": [{ "const": "r", "title": "Red" }, { "const": "b", "title": "Blue" }] },
            "plain": { "type": "string", "enum": ["x", "y"] }
        } });
        if q.topic.is_some() {
            schema["properties"]["sizes"] = sizes;
        }
        let answer = cx.elicit_raw("all", "Everything?", schema).await?;
        Ok(serde_json::to_string(&answer.content)?)
    }

    async fn places(&self, cx: &Cx, _: Topic) -> Result<String> {
        Ok(cx.roots("roots").await?.into_iter().map(|r| r.uri).collect::<Vec<_>>().join(" "))
    }

    async fn page(&self, cx: &Cx, _: NoArgs) -> Result<String> {
        Ok(cx.elicit::<Who>("who", "Who reads?").await?.name)
    }
}

fn server() -> Server<Desk> {
    Server::new("desk", "1")
        .state(Desk::default())
        .tool("greet", Desk::greet)
        .tool("two", Desk::two)
        .tool("both", Desk::both)
        .tool("once", Desk::once)
        .tool("for_ever", Desk::for_ever)
        .tool("login", Desk::login)
        .tool("bad_url", Desk::bad_url)
        .tool("think", Desk::think)
        .tool("unbalanced", Desk::unbalanced)
        .tool("many_blocks", Desk::many_blocks)
        .tool("form_of_all", Desk::form_of_all)
        .tool("places", Desk::places)
        .resource("desk://page", Desk::page)
        .prompt("brief", Desk::page)
}

fn everything() -> Value {
    json!({ "elicitation": { "form": {}, "url": {} }, "sampling": { "tools": {}, "context": {} }, "roots": {} })
}

async fn peer(server: Server<Desk>, revision: &'static str) -> Peer {
    Peer::of(shared(server), revision, everything()).await
}

fn shared(server: Server<Desk>) -> Arc<dyn Service> {
    use linchpin::transport::IntoService;
    server.into_shared().expect("it is put together rightly")
}

fn accept(content: Value) -> Value {
    json!({ "action": "accept", "content": content })
}

/// The parameters of a retry of a tool call.
fn retry(tool: &str, asked: &Value, responses: Value) -> Value {
    json!({ "name": tool, "arguments": {}, "inputResponses": responses, "requestState": asked["result"]["requestState"] })
}

fn wanted(asked: &Value) -> Vec<&str> {
    assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
    assert!(asked["result"]["requestState"].is_string(), "{asked}");
    asked["result"]["inputRequests"].as_object().expect("requests").keys().map(String::as_str).collect()
}

#[tokio::test]
async fn the_same_handler_asks_in_both_eras() {
    for revision in ALL {
        let mut peer = peer(server(), revision).await;
        if revision == MODERN {
            let asked = peer.call("greet", json!({})).await;
            assert_eq!(wanted(&asked), ["who"]);
            let request = &asked["result"]["inputRequests"]["who"];
            assert_eq!(
                (&request["method"], &request["params"]["mode"]),
                (&json!("elicitation/create"), &json!("form"))
            );
            assert_eq!(request["params"]["message"], "Who are you?");
            assert_eq!(request["params"]["requestedSchema"]["required"], json!(["name"]));
            assert!(peer.aside.is_empty(), "such a client is never sent a request");
            let answer = peer
                .ask("tools/call", retry("greet", &asked, json!({ "who": accept(json!({ "name": "Ada", "age": 3 })) })))
                .await;
            assert_eq!(text(&answer), "Hello Ada, 3");
            assert_eq!(answer["result"]["resultType"], "complete");
            continue;
        }
        let id = peer.start("greet", json!({})).await;
        if revision < "2025-06-18" {
            let answer = peer.answer(id).await;
            assert!(failed(&answer).contains("elicitation"), "the revision has none: {answer}");
            continue;
        }
        let question = peer.said("elicitation/create").await;
        assert_eq!(question["params"].get("mode").is_some(), revision == "2025-11-25", "{question}");
        assert_eq!(question["params"]["requestedSchema"]["properties"]["name"]["description"], "Your name.");
        peer.reply(&question, accept(json!({ "name": "Ada", "age": 3 }))).await;
        assert_eq!(text(&peer.answer(id).await), "Hello Ada, 3");
    }
}

#[tokio::test]
async fn long_answers_to_a_form_are_refused_unread() {
    let long = accept(json!({ "name": "Ada", "more": "x".repeat(300 << 10) }));
    let why = "the client's answer to elicitation/create is longer than 262144 bytes";
    let mut modern = peer(server(), MODERN).await;
    let asked = modern.call("greet", json!({})).await;
    let answer = modern.ask("tools/call", retry("greet", &asked, json!({ "who": long }))).await;
    assert_eq!(failed(&answer), why);
    let mut legacy = peer(server(), "2025-11-25").await;
    let id = legacy.start("greet", json!({})).await;
    let question = legacy.said("elicitation/create").await;
    legacy.reply(&question, long).await;
    assert_eq!(failed(&legacy.answer(id).await), why);
}

#[tokio::test]
async fn declining_and_dismissing_are_told_to_the_model() {
    for (action, said) in [("decline", "declined"), ("cancel", "dismissed")] {
        let mut modern = peer(server(), MODERN).await;
        let asked = modern.call("greet", json!({})).await;
        let answer = modern.ask("tools/call", retry("greet", &asked, json!({ "who": { "action": action } }))).await;
        assert!(failed(&answer).contains(said), "{answer}");
        let mut legacy = peer(server(), "2025-11-25").await;
        let id = legacy.start("greet", json!({})).await;
        let question = legacy.said("elicitation/create").await;
        legacy.reply(&question, json!({ "action": action })).await;
        assert!(failed(&legacy.answer(id).await).contains(said));
    }
}

#[tokio::test]
async fn urls_sampling_and_roots_are_asked_in_both_eras() {
    let rows = [
        ("login", "elicitation/create", json!({ "action": "accept" }), "Accepted(())"),
        (
            "think",
            "sampling/createMessage",
            json!({ "role": "assistant", "model": "m", "content": { "type": "text", "text": "done" } }),
            "done",
        ),
        (
            "places",
            "roots/list",
            json!({ "roots": [{ "uri": "file:///a" }, { "uri": "file:///b" }] }),
            "file:///a file:///b",
        ),
    ];
    for (tool, method, response, expected) in rows {
        let mut modern = peer(server(), MODERN).await;
        let asked = modern.call(tool, json!({})).await;
        let keys = wanted(&asked);
        let key = keys[0].to_owned();
        assert_eq!(asked["result"]["inputRequests"][&key]["method"], method);
        if tool == "login" {
            let params = &asked["result"]["inputRequests"][&key]["params"];
            assert_eq!((&params["mode"], &params["url"]), (&json!("url"), &json!("https://example.com/login")));
            assert_eq!(params["message"], "Please log in.");
        }
        let answer = modern.ask("tools/call", retry(tool, &asked, json!({ key: response.clone() }))).await;
        assert_eq!(text(&answer), expected);

        let mut legacy = peer(server(), "2025-11-25").await;
        let id = legacy.start(tool, json!({})).await;
        let question = legacy.said(method).await;
        if tool == "login" {
            assert!(question["params"]["elicitationId"].as_str().is_some_and(|id| id.len() >= 32), "{question}");
        }
        legacy.reply(&question, response).await;
        assert_eq!(text(&legacy.answer(id).await), expected);
    }
}

#[tokio::test]
async fn a_question_the_client_cannot_answer_is_never_sent() {
    let rows = [
        ("greet", json!({ "elicitation": { "url": {} } }), json!({ "elicitation": {} }), "elicitation"),
        ("login", json!({ "elicitation": {} }), json!({ "elicitation": { "url": {} } }), "elicitation.url"),
        ("think", json!({ "elicitation": {} }), json!({ "sampling": {} }), "sampling"),
        ("places", json!({}), json!({ "roots": {} }), "roots"),
    ];
    for (tool, capabilities, required, name) in rows {
        let mut modern = Peer::of(shared(server()), MODERN, capabilities.clone()).await;
        let answer = modern.call(tool, json!({})).await;
        assert_eq!(code(&answer), -32021, "{tool}: {answer}");
        assert_eq!(answer["error"]["data"]["requiredCapabilities"], required, "{tool}");
        let why = format!("the client did not declare a capability that this request needs: {name}");
        assert_eq!(answer["error"]["message"], why, "{tool}");
        let mut legacy = Peer::of(shared(server()), "2025-11-25", capabilities).await;
        assert!(failed(&legacy.call(tool, json!({})).await).contains("did not declare"), "{tool}");
        legacy.quiet().await;
    }
}

#[tokio::test]
async fn what_sampling_must_not_hold_is_not_sent() {
    for (capabilities, sent) in [(json!({ "sampling": {} }), false), (json!({ "sampling": { "context": {} } }), true)] {
        let mut modern = Peer::of(shared(server()), MODERN, capabilities.clone()).await;
        let asked = modern.call("think", json!({})).await;
        let params = &asked["result"]["inputRequests"]["thought"]["params"];
        assert_eq!(params.get("includeContext").is_some(), sent, "{asked}");
        assert_eq!(params["messages"][0]["role"], "user");
        let answer = modern.call("unbalanced", json!({})).await;
        assert!(failed(&answer).contains("followed at once by its result"), "{answer}");
        let mut legacy = Peer::of(shared(server()), "2025-11-25", capabilities).await;
        legacy.start("think", json!({})).await;
        let question = legacy.said("sampling/createMessage").await;
        assert_eq!(question["params"].get("includeContext").is_some(), sent, "{question}");
    }
}

#[tokio::test]
async fn a_text_that_is_no_url_is_never_offered_for_opening() {
    for revision in ["2025-11-25", MODERN] {
        let mut peer = peer(server(), revision).await;
        assert!(failed(&peer.call("bad_url", json!({})).await).contains("not an absolute URL"));
    }
}

#[tokio::test]
async fn answers_are_kept_from_round_to_round() {
    let mut peer = peer(server(), MODERN).await;
    let asked = peer.call("two", json!({})).await;
    assert_eq!(wanted(&asked), ["first"]);
    let asked =
        peer.ask("tools/call", retry("two", &asked, json!({ "first": accept(json!({ "name": "Ada" })) }))).await;
    assert_eq!(wanted(&asked), ["second"], "the first is known by now");
    // Unsolicited responses are ignored.
    let responses = json!({ "second": accept(json!({ "name": "Alan" })), "unknown": { "x": 1 } });
    let answer = peer.ask("tools/call", retry("two", &asked, responses)).await;
    assert_eq!(text(&answer), "Ada and Alan");
}

#[tokio::test]
async fn an_answer_that_was_taken_cannot_be_replaced_and_what_nobody_asked_for_is_not_carried() {
    let mut peer = peer(server().limits(|l| l.round_trips.state_bytes_max = 600), MODERN).await;
    let named = |name: &str| accept(json!({ "name": name }));
    let long = "x".repeat(10_000);
    // Before any state, beside an answer, and instead of one.
    let early =
        json!({ "name": "two", "arguments": {}, "inputResponses": { "first": named("Ada"), "unknown": named(&long) } });
    let asked = peer.ask("tools/call", early).await;
    assert_eq!(wanted(&asked), ["second"]);
    let early = json!({ "name": "two", "arguments": {}, "inputResponses": { "unknown": named(&long) } });
    let first = peer.ask("tools/call", early).await;
    assert_eq!(wanted(&first), ["first"]);
    let responses = json!({ "first": named("Ada"), "second": named("Eve"), "unknown": long });
    assert_eq!(wanted(&peer.ask("tools/call", retry("two", &first, responses)).await), ["second"]);
    let asked = peer.ask("tools/call", retry("two", &asked, json!({ "first": named("Eve"), "unknown": long }))).await;
    assert_eq!(wanted(&asked), ["second"]);
    // One that does not fit is asked for again.
    let responses = json!({ "first": named("Eve"), "second": accept(json!({ "name": 7 })) });
    let asked = peer.ask("tools/call", retry("two", &asked, responses)).await;
    assert_eq!(wanted(&asked), ["second"]);
    let responses = json!({ "first": named("Eve"), "second": named("Alan") });
    assert_eq!(text(&peer.ask("tools/call", retry("two", &asked, responses)).await), "Ada and Alan");
}

#[tokio::test]
async fn no_arguments_are_the_same_as_an_empty_object_in_a_retry() {
    let mut peer = peer(server(), MODERN).await;
    let without = [json!({ "name": "brief" }), json!({ "name": "brief", "arguments": null })];
    let with = json!({ "name": "brief", "arguments": {} });
    for (first, second) in without.iter().flat_map(|without| [(without, &with), (&with, without)]) {
        let asked = peer.ask("prompts/get", first.clone()).await;
        let mut again = second.clone();
        again["inputResponses"] = json!({ "who": accept(json!({ "name": "Ada" })) });
        again["requestState"] = asked["result"]["requestState"].clone();
        let answer = peer.ask("prompts/get", again).await;
        assert!(answer["result"].to_string().contains("Ada"), "{first} then {second}: {answer}");
    }
}

#[tokio::test]
async fn an_answer_to_a_form_of_ones_own_is_checked_as_that_of_a_type_is() {
    let wrong = [
        json!({ "name": "a@b.c", "age": "old" }),
        json!({ "name": "a@b.c", "age": 151 }),
        json!({ "name": "a@b.c", "plain": "z" }),
        json!({ "name": 7 }),
        json!({ "name": "a name that is too long" }),
    ];
    let right = json!({ "name": "a@b.c", "age": 30, "sure": true, "color": "r", "plain": "x" });
    for content in wrong {
        let mut modern = peer(server(), MODERN).await;
        let asked = modern.call("form_of_all", json!({})).await;
        let answers = json!({ "all": accept(content.clone()) });
        let asked = modern.ask("tools/call", retry("form_of_all", &asked, answers)).await;
        assert_eq!(wanted(&asked), ["all"], "{content}");
        let answers = json!({ "all": accept(right.clone()) });
        let answer = modern.ask("tools/call", retry("form_of_all", &asked, answers)).await;
        assert_eq!(serde_json::from_str::<Value>(text(&answer)).unwrap(), right);
        let mut legacy = peer(server(), "2025-11-25").await;
        let id = legacy.start("form_of_all", json!({})).await;
        let question = legacy.said("elicitation/create").await;
        legacy.reply(&question, accept(content.clone())).await;
        assert_eq!(failed(&legacy.answer(id).await), "the client's answer does not fit the form", "{content}");
    }
    let mut legacy = peer(server(), "2025-11-25").await;
    for answer in [accept(right), json!({ "action": "decline" })] {
        let id = legacy.start("form_of_all", json!({})).await;
        let question = legacy.said("elicitation/create").await;
        legacy.reply(&question, answer.clone()).await;
        let content = serde_json::from_str::<Value>(text(&legacy.answer(id).await)).unwrap();
        assert_eq!(content, answer.get("content").cloned().unwrap_or_default());
    }
}

#[tokio::test]
async fn several_questions_share_a_round_and_a_missing_answer_is_asked_for_again() {
    let mut peer = peer(server(), MODERN).await;
    let asked = peer.call("both", json!({})).await;
    assert_eq!(wanted(&asked), ["first", "second"]);
    let asked =
        peer.ask("tools/call", retry("both", &asked, json!({ "second": accept(json!({ "name": "Alan" })) }))).await;
    assert_eq!(wanted(&asked), ["first"]);
    let answer =
        peer.ask("tools/call", retry("both", &asked, json!({ "first": accept(json!({ "name": "Ada" })) }))).await;
    assert_eq!(text(&answer), "Ada and Alan");
}

#[tokio::test]
async fn an_answer_that_does_not_fit_is_asked_for_again() {
    let mut peer = peer(server(), MODERN).await;
    let mut asked = peer.call("greet", json!({})).await;
    for wrong in [
        json!({}),
        json!(7),
        json!(null),
        json!(["accept", { "name": "Ada" }]),
        accept(json!({ "age": 3 })),
        accept(json!({ "name": 7 })),
        json!({ "action": "perhaps" }),
    ] {
        asked = peer.ask("tools/call", retry("greet", &asked, json!({ "who": wrong }))).await;
        assert_eq!(wanted(&asked), ["who"], "{wrong}");
    }
    let answer =
        peer.ask("tools/call", retry("greet", &asked, json!({ "who": accept(json!({ "name": "Ada" })) }))).await;
    assert_eq!(text(&answer), "Hello Ada, 0");
    assert_eq!(code(&peer.ask("tools/call", retry("greet", &asked, json!([1]))).await), -32602, "no object at all");
}

#[tokio::test]
async fn an_effect_runs_once_however_many_rounds_follow() {
    let service = shared(server());
    let mut peer = Peer::of(service, MODERN, everything()).await;
    let asked = peer.call("once", json!({})).await;
    let again = peer.ask("tools/call", retry("once", &asked, json!({}))).await;
    let answer = peer.ask("tools/call", retry("once", &again, json!({ "sure": accept(json!({ "yes": true })) }))).await;
    assert_eq!(text(&answer), "ticket 1, true");
    // A new call repeats the effect.
    let asked = peer.call("once", json!({})).await;
    let answer =
        peer.ask("tools/call", retry("once", &asked, json!({ "sure": accept(json!({ "yes": false })) }))).await;
    assert_eq!(text(&answer), "ticket 2, false");
}

#[tokio::test]
async fn state_that_was_changed_or_belongs_elsewhere_is_refused() {
    let mut peer = peer(server(), MODERN).await;
    let asked = peer.call("greet", json!({})).await;
    let state = asked["result"]["requestState"].as_str().unwrap().to_owned();
    let good = json!({ "who": accept(json!({ "name": "Ada" })) });
    let mut flipped = state.clone().into_bytes();
    let middle = flipped.len() / 2;
    flipped[middle] = if flipped[middle] == b'A' { b'B' } else { b'A' };
    let with = |tool: &str, arguments: Value, state: Value| json!({ "name": tool, "arguments": arguments, "inputResponses": good, "requestState": state });
    let rows = [
        ("one character changed", with("greet", json!({}), String::from_utf8(flipped).unwrap().into())),
        ("cut short", with("greet", json!({}), state[..state.len() - 4].into())),
        ("empty", with("greet", json!({}), "".into())),
        ("made up", with("greet", json!({}), "AAAA".repeat(40).into())),
        ("no string", with("greet", json!({}), json!({ "round": 1 }))),
        ("far too long", with("greet", json!({}), "A".repeat(100_000).into())),
        ("another tool", with("two", json!({}), state.clone().into())),
        ("other arguments", with("greet", json!({ "topic": "other" }), state.clone().into())),
    ];
    for (what, params) in rows {
        assert_eq!(code(&peer.ask("tools/call", params).await), -32602, "{what}");
    }
    let answer =
        peer.ask("prompts/get", json!({ "name": "greet", "inputResponses": good, "requestState": state })).await;
    assert_eq!(code(&answer), -32602, "another method");
    let answer = peer.ask("tools/call", with("greet", json!({}), state.into())).await;
    assert_eq!(text(&answer), "Hello Ada, 0", "untouched it still holds");
}

#[tokio::test]
async fn state_expires() {
    let clock = linchpin::testing::Clock::pause();
    let mut peer = peer(server().limits(|l| l.round_trips.state_ms_max = 600_000), MODERN).await;
    let asked = peer.call("greet", json!({})).await;
    let retry = || retry("greet", &asked, json!({ "who": accept(json!({ "name": "Ada" })) }));
    clock.advance(Duration::from_secs(590)).await;
    assert_eq!(text(&peer.ask("tools/call", retry()).await), "Hello Ada, 0");
    clock.advance(Duration::from_secs(20)).await;
    let late = peer.ask("tools/call", retry()).await;
    assert_eq!(code(&late), -32602);
    assert!(late["error"]["message"].as_str().unwrap().contains("expired"), "{late}");
}

#[tokio::test]
async fn state_over_its_limit_is_not_sent() {
    let mut peer = peer(server().limits(|l| l.round_trips.state_bytes_max = 20), MODERN).await;
    let answer = peer.call("greet", json!({})).await;
    assert_eq!(code(&answer), -32603);
    assert!(answer["error"]["message"].as_str().unwrap().contains("limit is 20"), "{answer}");
}

#[tokio::test]
async fn replicas_with_the_same_key_carry_on_for_each_other_and_others_do_not() {
    let key = [7; 32];
    let mut first = peer(server().state_key(key), MODERN).await;
    let mut second = peer(server().state_key([8; 32]).state_key(key), MODERN).await;
    let mut stranger = peer(server(), MODERN).await;
    let asked = first.call("greet", json!({})).await;
    let params = retry("greet", &asked, json!({ "who": accept(json!({ "name": "Ada" })) }));
    assert_eq!(text(&second.ask("tools/call", params.clone()).await), "Hello Ada, 0", "an older key is still accepted");
    assert_eq!(code(&stranger.ask("tools/call", params).await), -32602);
}

/// One call as `principal`, which responds at once.
async fn as_principal(service: &Arc<dyn Service>, principal: Option<&str>, params: Value) -> Value {
    let mut params = params;
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": { "elicitation": {} }
    });
    let line = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }).to_string();
    let message = frame::message(Bytes::from(line), service.limits()).expect("a message");
    let mut request = engine::open(&message, None).ok();
    let context = RequestContext::default().with(|context| context.principal = principal.map(Principal::new));
    let mut context = Some(context.into());
    let started = std::future::poll_fn(|cx| {
        let started = service.start(request.take().expect("polled once"), context.take().expect("polled once"), cx);
        std::task::Poll::Ready(started)
    })
    .await;
    match started {
        CallStart::Done(reply) => serde_json::from_slice(&reply.frame()).expect("JSON"),
        CallStart::Running(_) => panic!("it waits for nothing"),
    }
}

#[tokio::test]
async fn state_is_bound_to_who_asked() {
    let service = shared(server());
    let asked = as_principal(&service, Some("ada"), json!({ "name": "greet", "arguments": {} })).await;
    let params = retry("greet", &asked, json!({ "who": accept(json!({ "name": "Ada" })) }));
    for other in [Some("alan"), Some(""), None] {
        assert_eq!(code(&as_principal(&service, other, params.clone()).await), -32602, "{other:?}");
    }
    assert_eq!(text(&as_principal(&service, Some("ada"), params).await), "Hello Ada, 0");
}

#[tokio::test]
async fn rounds_are_bounded() {
    let mut peer = peer(server().limits(|l| l.round_trips.per_request_max = 3), MODERN).await;
    let mut asked = peer.call("for_ever", json!({})).await;
    for round in 0..2 {
        let responses = json!({ (format!("q{round}")): accept(json!({ "yes": true })) });
        asked = peer.ask("tools/call", retry("for_ever", &asked, responses)).await;
        assert_eq!(wanted(&asked), [format!("q{}", round + 1)]);
    }
    let end = peer.ask("tools/call", retry("for_ever", &asked, json!({ "q2": accept(json!({ "yes": true })) }))).await;
    assert_eq!(code(&end), -32603);
    assert!(end["error"]["message"].as_str().unwrap().contains("3 round trips"), "{end}");
}

#[tokio::test]
async fn resources_and_prompts_ask_too() {
    for (method, params) in
        [("resources/read", json!({ "uri": "desk://page" })), ("prompts/get", json!({ "name": "brief" }))]
    {
        let mut modern = peer(server(), MODERN).await;
        let asked = modern.ask(method, params.clone()).await;
        assert_eq!(wanted(&asked), ["who"], "{method}");
        let mut again = params.clone();
        again["inputResponses"] = json!({ "who": accept(json!({ "name": "Ada" })) });
        again["requestState"] = asked["result"]["requestState"].clone();
        let answer = modern.ask(method, again).await;
        assert!(answer["result"].to_string().contains("Ada"), "{method}: {answer}");
        let mut legacy = peer(server(), "2025-11-25").await;
        let id = legacy.request(method, params).await;
        let question = legacy.said("elicitation/create").await;
        legacy.reply(&question, accept(json!({ "name": "Ada" }))).await;
        assert!(legacy.answer(id).await["result"].to_string().contains("Ada"), "{method}");
    }
}

#[tokio::test]
async fn a_session_that_does_not_answer_gets_its_question_withdrawn() {
    let mut peer = peer(server().limits(|l| l.server_requests.response_ms_max = 40), "2025-11-25").await;
    let id = peer.start("greet", json!({})).await;
    let question = peer.said("elicitation/create").await;
    let answer = peer.answer(id).await;
    assert!(failed(&answer).contains("did not answer"), "{answer}");
    let withdrawn = peer.said("notifications/cancelled").await;
    assert_eq!(withdrawn["params"]["requestId"], question["id"]);
    // A late response changes nothing.
    peer.reply(&question, accept(json!({ "name": "Ada" }))).await;
    peer.quiet().await;
}

#[tokio::test]
async fn cancelling_a_call_withdraws_its_question() {
    let mut peer = peer(server(), "2025-11-25").await;
    let id = peer.start("greet", json!({})).await;
    let question = peer.said("elicitation/create").await;
    peer.send(json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id } })).await;
    let withdrawn = peer.said("notifications/cancelled").await;
    assert_eq!(withdrawn["params"]["requestId"], question["id"]);
    peer.quiet().await;
}

#[tokio::test]
async fn a_client_that_refuses_or_answers_nonsense_is_an_error_for_the_model() {
    let mut peer = peer(server(), "2025-11-25").await;
    let id = peer.start("greet", json!({})).await;
    let question = peer.said("elicitation/create").await;
    let error = json!({ "code": -32601, "message": "no such thing here" });
    peer.send(json!({ "jsonrpc": "2.0", "id": question["id"], "error": error })).await;
    assert!(failed(&peer.answer(id).await).contains("no such thing here"));
    for nonsense in
        [json!({}), json!(["accept", { "name": "Ada" }]), accept(json!({ "age": 3 })), json!({ "action": "perhaps" })]
    {
        let id = peer.start("greet", json!({})).await;
        let question = peer.said("elicitation/create").await;
        peer.reply(&question, nonsense).await;
        failed(&peer.answer(id).await);
    }
}

#[tokio::test]
async fn questions_of_parallel_calls_find_their_own_way() {
    for revision in LEGACY.into_iter().filter(|r| *r >= "2025-06-18") {
        let mut peer = peer(server(), revision).await;
        let (a, b) = (peer.start("greet", json!({})).await, peer.start("greet", json!({})).await);
        let (qa, qb) = (peer.said("elicitation/create").await, peer.said("elicitation/create").await);
        assert_ne!(qa["id"], qb["id"], "ids are never used twice");
        peer.reply(&qb, accept(json!({ "name": "B" }))).await;
        assert_eq!(text(&peer.answer(b).await), "Hello B, 0");
        peer.reply(&qa, accept(json!({ "name": "A" }))).await;
        assert_eq!(text(&peer.answer(a).await), "Hello A, 0");
    }
}

#[tokio::test]
async fn sampling_is_fitted_to_what_the_revision_has() {
    for revision in LEGACY {
        let mut peer = peer(server(), revision).await;
        peer.start("many_blocks", json!({})).await;
        let messages = peer.said("sampling/createMessage").await["params"]["messages"].clone();
        let text = |t: &str| json!({ "type": "text", "text": t });
        let expected = match revision {
            "2025-11-25" => json!([{ "role": "user", "content": [text("one"), text("two")] }]),
            _ => json!([{ "role": "user", "content": text("one") }, { "role": "user", "content": text("two") }]),
        };
        assert_eq!(messages, expected, "{revision}");
        let id = peer.start("many_blocks", json!({ "topic": "audio" })).await;
        if revision == "2024-11-05" {
            assert!(failed(&peer.answer(id).await).contains("no audio"));
        } else {
            peer.said("sampling/createMessage").await;
        }
        let id = peer.start("login", json!({})).await;
        if revision == "2025-11-25" {
            peer.said("elicitation/create").await;
        } else {
            assert!(failed(&peer.answer(id).await).contains("URL"), "{revision}");
        }
    }
}

#[tokio::test]
async fn forms_are_fitted_to_what_the_revision_has() {
    for revision in ["2025-06-18", "2025-11-25", MODERN] {
        let mut peer = peer(server(), revision).await;
        let id = peer.start("form_of_all", json!({})).await;
        let schema = match peer.modern() {
            true => peer.answer(id).await["result"]["inputRequests"]["all"]["params"]["requestedSchema"].clone(),
            false => peer.said("elicitation/create").await["params"]["requestedSchema"].clone(),
        };
        let first = revision == "2025-06-18";
        for field in ["name", "age", "part"] {
            assert_eq!(schema["properties"][field].get("default").is_some(), !first, "{revision} {field}: {schema}");
        }
        assert_eq!(schema["properties"]["sure"]["default"], true, "{revision}");
        assert_eq!(schema["properties"]["name"]["maxLength"], 9);
        let color = &schema["properties"]["color"];
        assert_eq!(color.get("oneOf").is_some(), !first, "{revision}: {color}");
        if first {
            assert_eq!((&color["enum"], &color["enumNames"]), (&json!(["r", "b"]), &json!(["Red", "Blue"])));
        }
        let id = peer.start("form_of_all", json!({ "topic": "lists" })).await;
        if first {
            assert!(failed(&peer.answer(id).await).contains("`sizes`"));
        } else if peer.modern() {
            assert_eq!(wanted(&peer.answer(id).await), ["all"]);
        } else {
            peer.said("elicitation/create").await;
        }
    }
}

#[tokio::test]
async fn with_a_session_a_step_simply_runs() {
    let mut peer = peer(server(), "2025-11-25").await;
    for n in 1..3 {
        let id = peer.start("once", json!({})).await;
        let question = peer.said("elicitation/create").await;
        peer.reply(&question, accept(json!({ "yes": true }))).await;
        assert_eq!(text(&peer.answer(id).await), format!("ticket {n}, true"));
    }
}
